/* report_columns: a timeline as columns of small numbers, from which a page draws it.
 *
 * A trace for Perfetto takes 200 to 300 bytes for each execution; this form takes about 12.  Most executions of a lane begin
 * when the one before has ended, last as long as many others, and repeat the instructions before them.  So a page of a
 * lane's executions has the gap before each, and numbers of tables for the rest.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "base/json.h"
#include "sim/report.h"
#include "sim/report_internal.h"

enum { PAGE = 2048, BUSY_BINS = 256 };

/* What an execution is, apart from its instruction and its time. */
struct tag {
  const char *name;
  int reason;
  bool is_critical, is_half;
};

struct table {
  struct arena arena;
  struct index by_tag, by_length;
  struct {
    struct tag *v;
    int n, cap;
  } tags;
  struct {
    int64_t *v;
    int n, cap;
  } lengths;
  int *tag, *length; /* of each execution */
};

static bool same_tag(const struct tag *x, const struct tag *y) {
  return x->reason == y->reason && x->is_critical == y->is_critical && x->is_half == y->is_half &&
         !strcmp(x->name, y->name);
}

static int tag_number(struct table *t, const struct tag *x) {
  uint64_t h = hash_mix((uint64_t)x->reason * 4 + x->is_critical * 2 + x->is_half, 0);
  for (const char *p = x->name; *p; p++)
    h = hash_mix(h, (uint64_t)*p);
  for (struct index_probe p = index_probe(&t->by_tag, (uint32_t)h); index_next(&p);)
    if (same_tag(&t->tags.v[p.entry], x))
      return p.entry;
  index_add(&t->by_tag, (uint32_t)h, t->tags.n);
  array_push(&t->arena, &t->tags, *x);
  return t->tags.n - 1;
}

static int length_number(struct table *t, int64_t ps) {
  const uint32_t hash = (uint32_t)hash_mix((uint64_t)ps, 1);
  for (struct index_probe p = index_probe(&t->by_length, hash); index_next(&p);)
    if (t->lengths.v[p.entry] == ps)
      return p.entry;
  index_add(&t->by_length, hash, t->lengths.n);
  array_push(&t->arena, &t->lengths, ps);
  return t->lengths.n - 1;
}

static void fill(struct table *t, const struct sim_profile *p) {
  const struct sim_timeline *line = p->timeline;
  const size_t n = (size_t)line->n;
  bool *is_critical = arena_new_array(&t->arena, bool, n + 1);
  memset(is_critical, 0, n);
  for (int k = 0; k < p->n_path; k++)
    is_critical[p->path[k].exec] = true;
  t->tag = arena_new_array(&t->arena, int, n + 1);
  t->length = arena_new_array(&t->arena, int, n + 1);
  for (int k = 0; k < line->n; k++) {
    const struct sim_exec *x = &line->execs[k];
    const struct tag tag = {sim_exec_name(line, x), x->reason, is_critical[k], x->is_half_clock};
    t->tag[k] = tag_number(t, &tag);
    t->length[k] = length_number(t, x->free - x->start);
  }
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void put_lanes(const struct sim_timeline *t, struct buf *b) {
  json_put_key(b, "lanes");
  buf_putc(b, '[');
  for (int k = 0; k < t->n_lanes; k++) {
    json_put_comma(b);
    buf_putc(b, '{');
    sim_report_put_lane(t, k, b);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_instructions(const struct sim_timeline *t, const int *lines, struct buf *b) {
  json_put_key(b, "instructions");
  buf_putc(b, '[');
  for (int k = 0; k < t->program->n_instrs; k++) {
    const struct sim_instr *i = &t->program->instrs[k];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", i->def->name);
    json_put_field_int(b, "line", lines ? lines[k] : 0);
    if (i->loc && i->loc->range.line) {
      json_put_field_str(b, "file", i->loc->range.file ? i->loc->range.file : "");
      json_put_field_int(b, "src_line", i->loc->range.line);
    }
    if (i->engine == NISA_ENGINE_DMA) {
      json_put_field_int(b, "bytes", t->costs[k].dma.bytes);
      json_put_field_int(b, "descriptor_bytes", t->costs[k].dma.descriptor_bytes);
    }
    if (t->costs[k].confidence == SIM_CONFIDENCE_L)
      json_put_field_bool(b, "low", 1);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_tags(const struct table *t, struct buf *b) {
  json_put_key(b, "tags");
  buf_putc(b, '[');
  for (int k = 0; k < t->tags.n; k++) {
    const struct tag *x = &t->tags.v[k];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", x->name);
    json_put_field_str(b, "reason", sim_reason_name((enum sim_reason)x->reason));
    if (x->is_critical)
      json_put_field_bool(b, "critical", 1);
    if (x->is_half)
      json_put_field_bool(b, "half", 1);
    buf_putc(b, '}');
  }
  buf_puts(b, "],\"lengths\":[");
  for (int k = 0; k < t->lengths.n; k++) {
    json_put_comma(b);
    json_put_int(b, t->lengths.v[k]);
  }
  buf_putc(b, ']');
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

/* The executions of one lane, in the order of their starts; by_lane[first … first + n - 1]. */
struct page {
  const struct sim_timeline *timeline;
  const struct table *table;
  const int *execs;
  int n;
};

static void put_column(const struct page *p, const char *key, int64_t (*value)(const struct page *p, int k),
                       struct buf *b) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int k = 0; k < p->n; k++) {
    json_put_comma(b);
    json_put_int(b, value(p, k));
  }
  buf_putc(b, ']');
}

static const struct sim_exec *exec_at(const struct page *p, int k) {
  return &p->timeline->execs[p->execs[k]];
}

static int64_t instr_step(const struct page *p, int k) {
  return exec_at(p, k)->instr - (k ? exec_at(p, k - 1)->instr : 0);
}

static int64_t gap(const struct page *p, int k) {
  return exec_at(p, k)->start - (k ? exec_at(p, k - 1)->free : exec_at(p, 0)->start);
}

static int64_t length_of(const struct page *p, int k) {
  return p->table->length[p->execs[k]];
}

static int64_t tag_of(const struct page *p, int k) {
  return p->table->tag[p->execs[k]];
}

static void put_page(const struct page *p, struct buf *b) {
  int64_t to = 0;
  for (int k = 0; k < p->n; k++)
    to = exec_at(p, k)->free > to ? exec_at(p, k)->free : to;
  json_put_comma(b);
  buf_puts(b, "\n{");
  json_put_field_int(b, "lane", exec_at(p, 0)->lane);
  json_put_field_int(b, "from_ps", exec_at(p, 0)->start);
  json_put_field_int(b, "to_ps", to);
  put_column(p, "instr", instr_step, b);
  put_column(p, "gap", gap, b);
  put_column(p, "length", length_of, b);
  put_column(p, "tag", tag_of, b);
  buf_putc(b, '}');
}

/* Adds the part of the lane's bins that from … to covers. */
static void cover(int64_t *bins, int64_t width, int64_t from, int64_t to) {
  for (int64_t k = from / width; k < BUSY_BINS && k * width < to; k++) {
    const int64_t begin = k * width > from ? k * width : from, end = (k + 1) * width < to ? (k + 1) * width : to;
    bins[k] += end - begin;
  }
}

/* The share of each bin in which the lane is busy, in percent; transfers that overlap count once. */
static void put_busy(const struct page *lane, struct buf *b) {
  const int64_t width = lane->timeline->total_ps / BUSY_BINS + 1;
  int64_t bins[BUSY_BINS] = {0}, done = 0;
  for (int k = 0; k < lane->n; k++) {
    const struct sim_exec *x = exec_at(lane, k);
    if (x->free > done)
      cover(bins, width, x->start > done ? x->start : done, x->free);
    done = x->free > done ? x->free : done;
  }
  json_put_comma(b);
  buf_putc(b, '[');
  for (int k = 0; k < BUSY_BINS; k++) {
    json_put_comma(b);
    json_put_int(b, (bins[k] * 100 + width / 2) / width);
  }
  buf_putc(b, ']');
}

/* Sorts the executions by lane, in order: those of lane k begin at first[k]. */
static int *sort_by_lane(struct arena *a, const struct sim_timeline *t, int *first) {
  int *out = arena_new_array(a, int, (size_t)t->n + 1), *next = arena_new_array(a, int, (size_t)t->n_lanes + 1);
  memset(first, 0, ((size_t)t->n_lanes + 1) * sizeof *first);
  for (int k = 0; k < t->n; k++)
    first[t->execs[k].lane + 1]++;
  for (int k = 0; k < t->n_lanes; k++)
    first[k + 1] += first[k];
  memcpy(next, first, (size_t)t->n_lanes * sizeof *next);
  for (int k = 0; k < t->n; k++)
    out[next[t->execs[k].lane]++] = k;
  return out;
}

static void put_pages(struct table *table, const struct sim_timeline *t, struct buf *b) {
  int *first = arena_new_array(&table->arena, int, (size_t)t->n_lanes + 1);
  const int *execs = sort_by_lane(&table->arena, t, first);
  buf_puts(b, ",\"busy\":[");
  for (int k = 0; k < t->n_lanes; k++)
    put_busy(&(struct page){t, table, execs + first[k], first[k + 1] - first[k]}, b);
  buf_puts(b, "],\"pages\":[");
  for (int k = 0; k < t->n_lanes; k++)
    for (int at = first[k]; at < first[k + 1] && !buf_status(b); at += PAGE) {
      const int left = first[k + 1] - at;
      put_page(&(struct page){t, table, execs + at, left < PAGE ? left : PAGE}, b);
    }
  buf_puts(b, "]}\n");
}

enum status sim_report_columns(const struct sim_profile *p, const struct sim_report_lines *lines, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  struct table table = {.tags = {0}};
  arena_init(&table.arena);
  table.by_tag.arena = table.by_length.arena = &table.arena;
  fill(&table, p);
  buf_puts(b, "{\"version\":1");
  json_put_field_str(b, "target", target_name(t->target));
  json_put_field_int(b, "total_ps", t->total_ps);
  json_put_field_int(b, "n", t->n);
  json_put_field_bool(b, "ideal", t->is_ideal);
  put_lanes(t, b);
  put_instructions(t, lines ? lines->instrs : NULL, b);
  put_tags(&table, b);
  put_pages(&table, t, b);
  arena_clear(&table.arena);
  return buf_status(b);
}
