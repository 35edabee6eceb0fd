/* loops: simplifies while loops that never run, run once, or carry unneeded values.
 *
 *     while(x), condition that is false at first  ==>  x
 *     while(x) of a single iteration              ==>  body's instructions, with x for its parameter
 *     while(x, y, z), z neither used nor changed  ==>  while(x, y)        carry.c
 *
 * The carried values come first: a limit that a loop carries becomes a constant, so that the iterations can be counted
 * (trip.c).  Callees without callers stay for dce.  Linear if each body is copied once.
 */
#include "hlo/carry.h"
#include "hlo/inliner.h"
#include "hlo/literal.h"
#include "hlo/trip.h"

static struct hlo_instr *replace_loop(struct hlo_inliner *in, struct hlo_instr *i) {
  struct hlo_trip t;
  const struct hlo_instr *goes_on = i->called[1]->root;
  if (goes_on->op == HLO_CONSTANT && !hlo_literal_int(goes_on->attrs->literal, 0))
    return i->operands[0];
  if (!hlo_trip_find(i, &t) || t.n > 1)
    return NULL;
  if (!t.n)
    return i->operands[0];
  return hlo_inline_can(in, i->called[0]) ? hlo_inline_at(in, i, i->called[0], i->operands) : NULL;
}

void hlo_while_loop_simplifier(struct hlo_module *m, struct hlo_pass_result *r) {
  hlo_carry_shrink(m, r, HLO_WHILE);
  hlo_inline_walk(m, r, HLO_WHILE, replace_loop);
}
