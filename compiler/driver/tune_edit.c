#include "driver/tune_edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static const char *line_start(const char *text, int line) {
  while (--line > 0 && text) {
    text = strchr(text, '\n');
    text = text ? text + 1 : NULL;
  }
  return text;
}

/* The byte of a place, whose column counts code points from 1; false if the text has no such place. */
static bool find_byte(const char *text, int line, int col, size_t *out) {
  const char *p = line_start(text, line);
  for (; p && col > 1 && *p && *p != '\n'; col--)
    do
      p++;
    while (((unsigned char)*p & 0xc0) == 0x80);
  *out = p ? (size_t)(p - text) : 0;
  return p && col == 1;
}

/* The column of a byte: code points from 1. */
static int column(const char *text, size_t at) {
  int col = 1;
  while (at > 0 && text[at - 1] != '\n')
    col += ((unsigned char)text[--at] & 0xc0) != 0x80;
  return col;
}

/* ---- sites ------------------------------------------------------------------------------------------------------- */

/* Reads "[128, 512]", "\"Hbm\"" or "1". */
static bool read_value(struct arena *a, const char *text, struct tune_value *out) {
  *out = (struct tune_value){0};
  if (*text == '"') {
    out->text = arena_strdup(a, text);
    return true;
  }
  text += *text == '[';
  for (char *end; out->n < TUNE_ENTRIES_MAX && *text && *text != ']'; text = end) {
    out->entry[out->n] = strtoll(text, &end, 10);
    if (end == text)
      return false;
    out->n++;
    end += strspn(end, ", ");
  }
  return out->n > 0;
}

static bool is_one(const struct tune_site *x, const struct tune_site *y) {
  return x->what == y->what && x->from == y->from && x->to == y->to;
}

static void add(struct tune_sites *s, struct arena *a, const struct tune_site *site) {
  for (int k = 0; k < s->n; k++)
    if (is_one(&s->v[k], site))
      return;
  array_push(a, s, *site);
}

/* A tile is two arguments of the call, by parallel and by reduced loops: each dimension of the value has one of the parallel
 * loops, or all loops are dimensions of it. */
static bool fits_a_call(const struct tune_site *s) {
  int parallel = 0;
  for (int k = 0; k < s->n_dims; k++)
    parallel += s->dims[k] >= 0;
  return s->what != TUNE_TILE || (s->n_dims > 0 && (parallel == s->n_dims || s->now.n == s->n_dims));
}

void tune_add_remark(struct tune_sites *s, struct arena *a, const char *text, const char *file,
                     const struct remark *r) {
  const struct remark_knob *knob = r->knob;
  const struct src_loc *loc = r->locs.n ? r->locs.v[0] : NULL;
  struct tune_site site = {0};
  if (!knob || !loc || !loc->range.file || strcmp(loc->range.file, file) != 0 || knob->n_dims > TUNE_ENTRIES_MAX)
    return;
  site.what = !strcmp(knob->argument, "tile_size")       ? TUNE_TILE
              : !strcmp(knob->argument, "mem_space")     ? TUNE_SPACE
              : !strcmp(knob->argument, "partition_dim") ? TUNE_DIM
                                                         : TUNE_DROP;
  site.range = loc->range;
  site.range.file = file; /* the remark does not live as long */
  site.n_dims = knob->n_dims;
  for (int k = 0; k < knob->n_dims; k++)
    site.dims[k] = knob->dims[k];
  if (site.what == TUNE_DROP || !find_byte(text, loc->range.line, loc->range.col, &site.from) ||
      !find_byte(text, loc->range.end_line, loc->range.end_col, &site.to) || !read_value(a, knob->value, &site.now) ||
      !fits_a_call(&site))
    return;
  for (const struct remark_rejected *x = r->rejected; x && site.n_offers < TUNE_ENTRIES_MAX; x = x->next)
    site.n_offers += x->value && read_value(a, x->value, &site.offers[site.n_offers]);
  add(s, a, &site);
}

void tune_add_statements(struct tune_sites *s, struct arena *a, const char *text, const char *file) {
  for (int k = 0; k < s->written.n_statements; k++) {
    const struct knob_statement *x = &s->written.statements[k];
    struct tune_site site = {.what = TUNE_DROP, .from = x->part.from, .to = x->part.to, .n_offers = 1};
    site.range = (struct src_range){file, x->line, column(text, site.from), x->end_line, column(text, site.to)};
    add(s, a, &site);
  }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_list(struct buf *b, const char *name, const struct tune_value *v, const bool *wanted, bool is) {
  int n = 0;
  for (int k = 0; k < v->n; k++) {
    if (wanted[k] != is)
      continue;
    if (!n++)
      buf_printf(b, ", %s=[", name);
    else
      buf_puts(b, ", ");
    buf_printf(b, "%lld", (long long)v->entry[k]);
  }
  if (n)
    buf_putc(b, ']');
}

static void put_tile(struct buf *b, const struct tune_site *s, const struct tune_value *v) {
  bool is_parallel[TUNE_ENTRIES_MAX] = {false};
  for (int k = 0; k < s->n_dims; k++)
    if (s->dims[k] >= 0)
      is_parallel[s->dims[k]] = true;
  put_list(b, "tile_size", v, is_parallel, true);
  put_list(b, "reduction_tile", v, is_parallel, false);
}

/* Appends the arguments after the expression, of all sites of one range. */
static void put_arguments(struct buf *b, const struct tune_sites *s, const struct tune_value *const *chosen, int site) {
  for (int k = site; k < s->n; k++) {
    const struct tune_site *x = &s->v[k];
    if (!chosen[k] || x->from != s->v[site].from || x->to != s->v[site].to)
      continue;
    if (x->what == TUNE_TILE)
      put_tile(b, x, chosen[k]);
    else if (x->what == TUNE_SPACE)
      buf_printf(b, ", mem_space=%s", chosen[k]->text);
    else if (x->what == TUNE_DIM)
      buf_printf(b, ", partition_dim=%lld", (long long)chosen[k]->entry[0]);
  }
}

void tune_put_call(struct buf *b, const struct tune_sites *s, const struct tune_value *const *chosen, int site) {
  if (s->v[site].what == TUNE_DROP) {
    buf_puts(b, "pass");
    return;
  }
  buf_puts(b, "knob.knob(…");
  put_arguments(b, s, chosen, site);
  buf_putc(b, ')');
}

/* True for the first site of its range that has a value. */
static bool leads(const struct tune_sites *s, const struct tune_value *const *chosen, int site) {
  if (!chosen[site])
    return false;
  for (int k = 0; k < site; k++)
    if (chosen[k] && s->v[k].from == s->v[site].from && s->v[k].to == s->v[site].to)
      return false;
  return true;
}

/* The chosen expression that ends at `at` and begins last before `from`, or -1. */
static int next_end(const struct tune_sites *s, const struct tune_value *const *chosen, size_t at, size_t from) {
  int found = -1;
  for (int k = 0; k < s->n; k++)
    if (s->v[k].to == at && s->v[k].from < from && s->v[k].what != TUNE_DROP && leads(s, chosen, k) &&
        (found < 0 || s->v[k].from > s->v[found].from))
      found = k;
  return found;
}

/* The chosen expression that begins at `at` and ends last before `to`, or -1. */
static int next_beginning(const struct tune_sites *s, const struct tune_value *const *chosen, size_t at, size_t to) {
  int found = -1;
  for (int k = 0; k < s->n; k++)
    if (s->v[k].from == at && s->v[k].to < to && s->v[k].what != TUNE_DROP && leads(s, chosen, k) &&
        (found < 0 || s->v[k].to > s->v[found].to))
      found = k;
  return found;
}

/* What stands at byte `at`: first the ends of the expressions, inner ones first, then the beginnings, outer ones first.  Ranges
 * of expressions are nested or apart. */
static void put_at(struct buf *b, const struct tune_sites *s, const struct tune_value *const *chosen, size_t at,
                   const char *name) {
  for (int k = next_end(s, chosen, at, SIZE_MAX); k >= 0; k = next_end(s, chosen, at, s->v[k].from)) {
    put_arguments(b, s, chosen, k);
    buf_putc(b, ')');
  }
  for (int k = next_beginning(s, chosen, at, SIZE_MAX); k >= 0; k = next_beginning(s, chosen, at, s->v[k].to))
    buf_printf(b, "%s.knob(", name);
}

static bool is_edge(const struct tune_sites *s, const struct tune_value *const *chosen, size_t at) {
  for (int k = 0; k < s->n; k++)
    if (chosen[k] && (s->v[k].from == at || s->v[k].to == at))
      return true;
  return false;
}

static const struct tune_site *dropped_at(const struct tune_sites *s, const struct tune_value *const *chosen,
                                          size_t at) {
  for (int k = 0; k < s->n; k++)
    if (chosen[k] && s->v[k].what == TUNE_DROP && s->v[k].from == at)
      return &s->v[k];
  return NULL;
}

void tune_put_text(struct buf *b, const char *text, const struct tune_sites *s,
                   const struct tune_value *const *chosen) {
  const size_t len = strlen(text);
  bool has_any = false;
  for (int k = 0; k < s->n; k++)
    has_any |= chosen[k] && s->v[k].what != TUNE_DROP;
  const bool imports = has_any && !s->written.name;
  const char *name = imports ? "nkx_knob" : s->written.name;
  for (size_t at = 0; at <= len; at++) {
    if (imports && at == s->written.import_at)
      buf_puts(b, "from nkigen import knob as nkx_knob\n");
    const struct tune_site *dropped = dropped_at(s, chosen, at);
    if (dropped) {
      buf_puts(b, "pass");
      at = dropped->to;
    }
    if (is_edge(s, chosen, at))
      put_at(b, s, chosen, at, name);
    if (at < len)
      buf_putc(b, text[at]);
  }
}
