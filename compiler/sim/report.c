/* report: a profile as JSON. */
#include "sim/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "sim/report_internal.h"

enum { PATH_PARTS_MAX = 200 };

static void put_us(struct buf *b, int64_t ps) {
  buf_printf(b, "%s%" PRId64 ".%06" PRId64, ps < 0 ? "-" : "", (ps < 0 ? -ps : ps) / 1000000,
             (ps < 0 ? -ps : ps) % 1000000);
}

static void put_field_us(struct buf *b, const char *key, int64_t ps) {
  json_put_key(b, key);
  put_us(b, ps);
}

/* Four digits after the point. */
static void put_field_ratio(struct buf *b, const char *key, int64_t part, int64_t whole) {
  json_put_key(b, key);
  buf_printf(b, "%.4f", whole ? (double)part / (double)whole : 0.0);
}

static void put_place(struct buf *b, const struct src_loc *loc) {
  if (!loc || !loc->range.line)
    return;
  json_put_key(b, "place");
  buf_putc(b, '{');
  json_put_field_str(b, "file", loc->range.file ? loc->range.file : "");
  json_put_field_int(b, "line", loc->range.line);
  json_put_field_int(b, "col", loc->range.col);
  json_put_field_int(b, "end_line", loc->range.end_line);
  json_put_field_int(b, "end_col", loc->range.end_col);
  buf_putc(b, '}');
}

static void put_waits(struct buf *b, const int64_t *waits_ps) {
  json_put_key(b, "waits_us");
  buf_putc(b, '{');
  for (int k = 0; k < SIM_WAIT_COUNT; k++)
    if (waits_ps[k])
      put_field_us(b, sim_wait_name((enum sim_wait)k), waits_ps[k]);
  buf_putc(b, '}');
}

void sim_report_put_lane(const struct sim_timeline *t, int k, struct buf *b) {
  const struct sim_lane *l = &t->lanes[k];
  json_put_field_str(b, "name", l->name);
  json_put_field_str(b, "engine", nisa_engine_name(l->engine));
  if (l->trigger >= 0)
    json_put_field_str(b, "on", t->lanes[l->trigger].name);
  if (t->program->n_cores > 1)
    json_put_field_int(b, "core", l->core);
}

static void put_lanes(const struct sim_profile *p, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  json_put_key(b, "lanes");
  buf_putc(b, '[');
  for (int k = 0; k < t->n_lanes; k++) {
    const struct sim_lane_use *u = &p->lanes[k];
    json_put_comma(b);
    buf_putc(b, '{');
    sim_report_put_lane(t, k, b);
    put_field_us(b, "busy_us", u->busy_ps);
    put_field_ratio(b, "share", u->busy_ps, t->total_ps);
    json_put_field_int(b, "executions", u->executions);
    if (t->lanes[k].trigger >= 0)
      json_put_field_int(b, "bytes", u->bytes);
    put_waits(b, u->waits_ps);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

/* ---- the critical path ------------------------------------------------------------------------------------------- */

const char *sim_exec_name(const struct sim_timeline *t, const struct sim_exec *x) {
  switch ((enum sim_exec_kind)x->kind) {
  case SIM_EXEC_TRIGGER:
    return "dma_trigger";
  case SIM_EXEC_BUILD:
    return "descriptors";
  case SIM_EXEC_TABLE:
    return "table load";
  case SIM_EXEC_BARRIER:
    return "barrier";
  default:
    return t->program->instrs[x->instr].def->name;
  }
}

static int by_length(const void *x, const void *y) {
  const struct sim_path_part *a = x, *b = y;
  const int64_t u = a->to_ps - a->from_ps, v = b->to_ps - b->from_ps;
  return u != v ? (u > v ? -1 : 1) : (a->from_ps > b->from_ps) - (a->from_ps < b->from_ps);
}

static int by_start(const void *x, const void *y) {
  const struct sim_path_part *a = x, *b = y;
  return (a->from_ps > b->from_ps) - (a->from_ps < b->from_ps);
}

static void put_line(const int *lines, int number, struct buf *b) {
  if (lines && lines[number])
    json_put_field_int(b, "line", lines[number]);
}

static void put_part(const struct sim_timeline *t, const struct sim_path_part *part, const int *lines, struct buf *b) {
  const struct sim_exec *x = &t->execs[part->exec];
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "lane", t->lanes[x->lane].name);
  json_put_field_str(b, "what", sim_exec_name(t, x));
  json_put_field_str(b, "for", sim_wait_name(part->wait));
  put_field_us(b, "from_us", part->from_ps);
  put_field_us(b, "to_us", part->to_ps);
  if (x->instr >= 0) {
    json_put_field_int(b, "instr", x->instr);
    put_line(lines, x->instr, b);
    put_place(b, t->program->instrs[x->instr].loc);
  }
  buf_putc(b, '}');
}

static void put_path(const struct sim_profile *p, const int *lines, struct buf *b) {
  struct sim_path_part *parts = malloc(((size_t)p->n_path + 1) * sizeof *parts);
  if (!parts)
    arena_oom((size_t)p->n_path * sizeof *parts);
  for (int k = 0; k < p->n_path; k++)
    parts[k] = p->path[k];
  const int n = p->n_path < PATH_PARTS_MAX ? p->n_path : PATH_PARTS_MAX;
  qsort(parts, (size_t)p->n_path, sizeof *parts, by_length);
  qsort(parts, (size_t)n, sizeof *parts, by_start);
  json_put_key(b, "path");
  buf_putc(b, '{');
  put_waits(b, p->path_waits_ps);
  put_field_us(b, "low_confidence_us", p->low_ps);
  json_put_field_int(b, "count", p->n_path);
  json_put_key(b, "parts");
  buf_putc(b, '[');
  for (int k = 0; k < n; k++)
    put_part(p->timeline, &parts[k], lines, b);
  buf_puts(b, "]}");
  free(parts);
}

/* ---- lines, advice, memory ---------------------------------------------------------------------------------------- */

static void put_lines(const struct sim_profile *p, struct buf *b) {
  json_put_key(b, "lines");
  buf_putc(b, '[');
  for (int k = 0; k < p->n_lines; k++) {
    const struct sim_line *x = &p->lines[k];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "file", x->file);
    json_put_field_int(b, "line", x->line);
    json_put_field_int(b, "executions", x->executions);
    json_put_field_int(b, "bytes", x->bytes);
    json_put_field_int(b, "operations", x->operations);
    json_put_key(b, "busy_us");
    buf_putc(b, '{');
    for (int e = 1; e < NISA_ENGINE_COUNT; e++)
      if (x->busy_ps[e])
        put_field_us(b, nisa_engine_name((enum nisa_engine)e), x->busy_ps[e]);
    buf_putc(b, '}');
    put_field_us(b, "critical_us", x->critical_ps);
    put_field_ratio(b, "share", x->critical_ps, p->timeline->total_ps);
    put_waits(b, x->waits_ps);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_advice(const struct sim_profile *p, struct buf *b) {
  static const char *const names[] = {"low", "medium", "high"};
  json_put_key(b, "advice");
  buf_putc(b, '[');
  for (int k = 0; k < p->n_advice; k++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "text", p->advice[k].text);
    put_field_us(b, "cost_us", p->advice[k].cost_ps);
    json_put_field_str(b, "confidence", names[p->advice[k].confidence]);
    put_place(b, p->advice[k].loc);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_alive(const struct sim_timeline *t, const struct sim_occupancy *o, const int *lines, struct buf *b) {
  json_put_key(b, "alive");
  buf_putc(b, '[');
  for (int k = 0; k < o->n_alive; k++) {
    const struct sim_life *x = o->alive[k];
    const struct sim_buffer *buffer = &t->program->buffers[x->buffer];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "buffer", x->buffer);
    put_line(lines, x->buffer, b);
    json_put_field_int(b, "bytes", buffer->rank && buffer->dims[0] ? buffer->bytes / buffer->dims[0] : buffer->bytes);
    put_field_us(b, "from_us", x->from);
    put_field_us(b, "to_us", x->to);
    if (buffer->place.is_set) {
      const struct sim_place *at = &buffer->place;
      json_put_key(b, "at");
      buf_printf(b, "[%d,%" PRId64 "]", o->space == MEM_PSUM ? at->bank : at->partition,
                 at->offset + (at->copies > 1 ? x->instance % at->copies * at->stride : 0));
    }
    put_place(b, buffer->loc);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_buffers(const struct sim_timeline *t, const struct sim_occupancy *o, const int *lines, struct buf *b) {
  json_put_key(b, "buffers");
  buf_putc(b, '[');
  for (int k = 0; k < o->n_buffers; k++) {
    const struct sim_buffer *buffer = &t->program->buffers[o->buffers[k]];
    json_put_comma(b);
    buf_putc(b, '{');
    put_line(lines, o->buffers[k], b);
    json_put_field_int(b, "bytes", buffer->rank && buffer->dims[0] ? buffer->bytes / buffer->dims[0] : buffer->bytes);
    json_put_field_int(b, "partitions", buffer->rank ? buffer->dims[0] : 1);
    if (buffer->place.is_set)
      json_put_field_int(b, "first_partition", buffer->place.partition);
    if (buffer->place.copies > 1)
      json_put_field_int(b, "copies", buffer->place.copies);
    put_place(b, buffer->loc);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

/* The first byte of the copy that a life has, in each partition; -1: not placed. */
static int64_t byte_of(const struct sim_timeline *t, const struct sim_occupancy *o, const struct sim_life *x) {
  const struct sim_place *at = &t->program->buffers[x->buffer].place;
  const int64_t bank = o->space == MEM_PSUM ? at->bank * nisa_machine(t->target)->psum_bank_bytes : 0;
  return at->is_set ? bank + at->offset + (at->copies > 1 ? x->instance % at->copies * at->stride : 0) : -1;
}

static void put_lives(const struct sim_timeline *t, const struct sim_occupancy *o, struct buf *b) {
  json_put_field_int(b, "n_lives", o->n_lives);
  json_put_key(b, "lives");
  buf_putc(b, '[');
  for (int k = 0; k < o->n_shown; k++) {
    const struct sim_life *x = o->shown[k].life;
    json_put_comma(b);
    buf_printf(b, "[%d,", o->shown[k].buffer);
    put_us(b, x->from);
    buf_putc(b, ',');
    put_us(b, x->to);
    buf_printf(b, ",%" PRId64 "]", byte_of(t, o, x));
  }
  buf_putc(b, ']');
}

static void put_occupancy(const struct sim_timeline *t, const char *key, const struct sim_occupancy *o,
                          const int *lines, struct buf *b) {
  json_put_key(b, key);
  buf_putc(b, '{');
  json_put_field_int(b, "capacity", o->capacity);
  json_put_field_int(b, "peak", o->peak_bytes);
  put_field_us(b, "peak_us", o->peak_ps);
  json_put_field_bool(b, "has_places", o->has_places);
  put_alive(t, o, lines, b);
  put_buffers(t, o, lines, b);
  put_lives(t, o, b);
  json_put_key(b, "points");
  buf_putc(b, '[');
  for (int k = 0; k < o->n_points; k++) {
    json_put_comma(b);
    buf_putc(b, '[');
    put_us(b, o->points[k].ps);
    buf_printf(b, ",%" PRId64 ",[", o->points[k].bytes);
    for (int i = 0; i < 8; i++)
      buf_printf(b, "%s%" PRId64, i ? "," : "", o->points[k].part[i]);
    buf_puts(b, "]]");
  }
  buf_puts(b, "]}");
}

static void put_memory(const struct sim_profile *p, const char *key, int core, const int *lines, struct buf *b) {
  json_put_key(b, key);
  buf_putc(b, '{');
  put_occupancy(p->timeline, "sbuf", &p->sbuf[core], lines, b);
  put_occupancy(p->timeline, "psum", &p->psum[core], lines, b);
  buf_putc(b, '}');
}

/* ---- rates -------------------------------------------------------------------------------------------------------- */

/* 10^9 a second. */
static void put_field_giga(struct buf *b, const char *key, int64_t n, int64_t ps) {
  json_put_key(b, key);
  buf_printf(b, "%.3f", ps ? (double)n * 1e3 / (double)ps : 0.0);
}

static void put_rates(const struct sim_profile *p, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  const int64_t hbm = p->hbm_read + p->hbm_written, operations = p->matmul_operations + p->operations;
  const int64_t peak_gb_s = sim_peak_gb_s(t);
  json_put_key(b, "dma");
  buf_putc(b, '{');
  json_put_field_int(b, "bytes", p->dma_bytes);
  json_put_field_int(b, "hbm_read", p->hbm_read);
  json_put_field_int(b, "hbm_written", p->hbm_written);
  put_field_giga(b, "gb_s", p->dma_bytes, t->total_ps);
  json_put_field_int(b, "peak_gb_s", peak_gb_s);
  put_field_ratio(b, "engines_share", p->dma_engine_ps, t->total_ps * sim_dma_engines(t));
  buf_putc(b, '}');
  json_put_key(b, "roofline");
  buf_putc(b, '{');
  json_put_field_int(b, "operations", operations);
  json_put_field_int(b, "bytes", hbm);
  put_field_ratio(b, "intensity", operations, hbm);
  put_field_giga(b, "attained_gflops", operations, t->total_ps);
  json_put_field_int(b, "peak_gflops", p->peak_operations / 1000000000);
  json_put_field_int(b, "peak_gb_s", peak_gb_s);
  put_field_ratio(b, "knee", p->peak_operations / 1000000000, peak_gb_s);
  buf_putc(b, '}');
  json_put_key(b, "tensor");
  buf_putc(b, '{');
  json_put_field_int(b, "operations", p->matmul_operations);
  put_field_us(b, "half_clock_us", p->half_clock_ps);
  json_put_key(b, "share_of_peak");
  buf_printf(b, "%.4f",
             t->total_ps ? (double)p->matmul_operations * 1e12 / (double)t->total_ps / (double)p->peak_operations
                         : 0.0);
  buf_putc(b, '}');
}

enum status sim_report_json(const struct sim_profile *p, const struct sim_report_lines *lines, struct buf *b) {
  static const struct sim_report_lines none = {.instrs = NULL};
  const struct sim_timeline *t = p->timeline;
  lines = lines ? lines : &none;
  buf_putc(b, '{');
  json_put_field_str(b, "target", target_name(t->target));
  put_field_us(b, "total_us", t->total_ps);
  put_field_us(b, "launch_us", sim_constant_ps(SIM_LAUNCH, t->target));
  json_put_field_bool(b, "ideal", t->is_ideal);
  json_put_field_int(b, "assumed_branches", t->n_assumed);
  json_put_field_int(b, "executions", t->n);
  json_put_field_str(b, "bound", p->bound);
  put_lanes(p, b);
  put_path(p, lines->instrs, b);
  put_lines(p, b);
  put_advice(p, b);
  put_memory(p, "memory", 0, lines->buffers, b);
  if (t->program->n_cores > 1)
    put_memory(p, "core1_memory", 1, lines->buffers, b);
  put_rates(p, b);
  buf_putc(b, '}');
  return buf_status(b);
}
