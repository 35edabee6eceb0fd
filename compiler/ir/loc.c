/* loc: converts Python places to MLIR locations, which snapshot.c reads back.
 *
 *   one place          loc("kernel.py":10:8 to 10:23), wrapped in name("function") when the function is known
 *   with its callers   callsite(<place> at <caller's place>)
 *   several            fused[<place>, …]
 *   in rounds of Python loops (base/rounds.h)   name("@<rounds>")(<place>)
 *   an operation           name("#<id>")(<places>)
 *   one with more places   name("#<id>+<number of further places>")(<places>)
 *
 * The name of a function in which loops enclose the place is followed by a tab and the ranges of their headers:
 * "function\t<line>:<col>:<end line>:<end col>,…".
 *
 * A function name that starts with '#' or '@' would look like an id or a round; Python has no such names.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/internal.h"

/* Names are short, but those of functions and loops come from the user. */
enum { NAME_MAX_BYTES = 1 << 16 };

static MlirLocation with_name(MlirContext ctx, const struct buf *name, MlirLocation loc) {
  return mlirLocationNameGet(ctx, mlirStringRefCreate(buf_text(name), name->len), loc);
}

/* Wraps a location in the function's name and the loops. */
static MlirLocation in_function(MlirContext ctx, const struct src_loc *p, MlirLocation loc) {
  if (!p->n_loops)
    return p->func && p->func[0] ? mlirLocationNameGet(ctx, ir_str(p->func), loc) : loc;
  struct buf name;
  buf_init(&name, NAME_MAX_BYTES);
  buf_puts(&name, p->func ? p->func : "");
  for (int i = 0; i < p->n_loops; i++) {
    const struct src_range *r = &p->loops[i];
    buf_printf(&name, "%c%d:%d:%d:%d", i ? ',' : '\t', r->line, r->col, r->end_line, r->end_col);
  }
  loc = buf_status(&name) ? loc : with_name(ctx, &name, loc);
  buf_clear(&name);
  return loc;
}

static MlirLocation place(MlirContext ctx, const struct src_loc *p) {
  const struct src_range *r = &p->range;
  MlirLocation loc = mlirLocationFileLineColRangeGet(ctx, ir_str(r->file ? r->file : "?"), (unsigned)r->line,
                                                     (unsigned)r->col, (unsigned)r->end_line, (unsigned)r->end_col);
  loc = in_function(ctx, p, loc);
  return p->caller ? mlirLocationCallSiteGet(loc, place(ctx, p->caller)) : loc;
}

MlirLocation ir_loc_of_place(MlirContext ctx, const struct src_loc *p) {
  MlirLocation loc = place(ctx, p);
  if (!p->rounds)
    return loc;
  struct buf name;
  buf_init(&name, NAME_MAX_BYTES);
  buf_putc(&name, '@');
  rounds_print(&name, p->rounds);
  loc = buf_status(&name) ? loc : with_name(ctx, &name, loc);
  buf_clear(&name);
  return loc;
}

int ir_loc_loops(struct arena *a, MlirStringRef name, size_t *func_len, const struct src_range **loops) {
  const char *tab = memchr(name.data, '\t', name.length), *end = name.data + name.length;
  *func_len = tab ? (size_t)(tab - name.data) : name.length;
  if (!tab)
    return 0;
  size_t n = 1;
  for (const char *p = tab; p < end; p++)
    n += *p == ',';
  struct src_range *v = arena_new_array(a, struct src_range, n);
  const char *p = arena_strndup(a, tab + 1, (size_t)(end - tab - 1)); /* ends with a NUL for strtol */
  for (size_t i = 0; i < n; i++) {
    int *const field[] = {&v[i].line, &v[i].col, &v[i].end_line, &v[i].end_col};
    for (int k = 0; k < 4; k++) {
      char *next;
      *field[k] = (int)strtol(p, &next, 10);
      p = next + (*next == ':' || *next == ',');
    }
  }
  *loops = v;
  return (int)n;
}

/* Makes a location of the places only, without an id.  {0} gives an unknown location. */
static MlirLocation places(MlirContext ctx, struct src_locs locs) {
  MlirLocation v[SRC_LOCS_SHOWN];
  const int n = src_locs_shown(locs);
  assert(n >= 0);
  if (!n)
    return mlirLocationUnknownGet(ctx);
  for (int i = 0; i < n; i++)
    v[i] = ir_loc_of_place(ctx, locs.v[i]);
  return n == 1 ? v[0] : mlirLocationFusedGet(ctx, n, v, (MlirAttribute){NULL});
}

/* Writes v before `end`; returns its first digit.  Every operation of every stage gets such a name. */
static char *digits(char *end, int v) {
  do
    *--end = (char)('0' + v % 10);
  while (v /= 10);
  return end;
}

MlirLocation ir_loc_of_op(MlirContext ctx, int id, int more, MlirLocation places) {
  char name[32], *end = name + sizeof name, *s = end;
  assert(id >= 0 && more >= 0);
  if (more) {
    s = digits(s, more);
    *--s = '+';
  }
  s = digits(s, id);
  *--s = '#';
  return mlirLocationNameGet(ctx, mlirStringRefCreate(s, (size_t)(end - s)), places);
}

MlirLocation ir_loc_tagged(MlirContext ctx, int id, struct src_locs locs) {
  return ir_loc_of_op(ctx, id, src_locs_hidden(locs), places(ctx, locs));
}
