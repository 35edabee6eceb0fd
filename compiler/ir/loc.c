/* loc: converts Python places to MLIR locations, which snapshot.c reads back.
 *
 *   one place          loc("kernel.py":10:8 to 10:23), wrapped in name("function") when the function is known
 *   with its callers   callsite(<place> at <caller's place>)
 *   several            fused[<place>, …]
 *   an operation           name("#<id>")(<places>)
 *   one with more places   name("#<id>+<number of further places>")(<places>)
 *
 * A function name that starts with '#' would look like an id; Python has no such names.
 */
#include <assert.h>
#include <stdio.h>

#include "ir/internal.h"

static MlirLocation place(MlirContext ctx, const struct src_loc *p) {
  const struct src_range *r = &p->range;
  MlirLocation loc = mlirLocationFileLineColRangeGet(ctx, ir_str(r->file ? r->file : "?"), (unsigned)r->line,
                                                     (unsigned)r->col, (unsigned)r->end_line, (unsigned)r->end_col);
  if (p->func && p->func[0])
    loc = mlirLocationNameGet(ctx, ir_str(p->func), loc);
  return p->caller ? mlirLocationCallSiteGet(loc, place(ctx, p->caller)) : loc;
}

/* Makes a location of the places only, without an id.  {0} gives an unknown location. */
static MlirLocation places(MlirContext ctx, struct src_locs locs) {
  MlirLocation v[SRC_LOCS_SHOWN];
  const int n = src_locs_shown(locs);
  assert(n >= 0);
  if (!n)
    return mlirLocationUnknownGet(ctx);
  for (int i = 0; i < n; i++)
    v[i] = place(ctx, locs.v[i]);
  return n == 1 ? v[0] : mlirLocationFusedGet(ctx, n, v, (MlirAttribute){NULL});
}

MlirLocation ir_loc_of_op(MlirContext ctx, int id, int more, MlirLocation places) {
  char name[32];
  if (more)
    snprintf(name, sizeof name, "#%d+%d", id, more);
  else
    snprintf(name, sizeof name, "#%d", id);
  return mlirLocationNameGet(ctx, ir_str(name), places);
}

MlirLocation ir_loc_tagged(MlirContext ctx, int id, struct src_locs locs) {
  return ir_loc_of_op(ctx, id, src_locs_hidden(locs), places(ctx, locs));
}
