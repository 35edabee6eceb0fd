/* trip: the number of iterations of a while loop, if its state determines it.
 *
 * A counter begins at a constant, grows or shrinks by a constant, and is compared with a constant.
 */
#include "hlo/trip.h"

#include "hlo/literal.h"

bool hlo_int_constant(const struct hlo_instr *x, int64_t *v) {
  if (x->op != HLO_CONSTANT || x->shape.rank || dtype_kind(x->shape.dtype) != DK_SIGNED)
    return false;
  *v = hlo_literal_int(x->attrs->literal, 0);
  return true;
}

static bool is_part(const struct hlo_instr *x, const struct hlo_instr *param, int *k) {
  if (x->op != HLO_GET_TUPLE_ELEMENT || x->operands[0] != param)
    return false;
  *k = (int)x->attrs->tuple_index;
  return true;
}

static enum hlo_direction mirrored(enum hlo_direction d) {
  switch (d) {
  case HLO_GE:
    return HLO_LE;
  case HLO_GT:
    return HLO_LT;
  case HLO_LE:
    return HLO_GE;
  case HLO_LT:
    return HLO_GT;
  default:
    return d;
  }
}

/* The condition as "part k <direction> limit". */
static bool read_condition(const struct hlo_computation *c, int *k, enum hlo_direction *d, int64_t *limit) {
  const struct hlo_instr *r = c->root;
  if (r->op != HLO_COMPARE)
    return false;
  *d = r->attrs->direction;
  if (is_part(r->operands[0], c->params[0], k))
    return hlo_int_constant(r->operands[1], limit);
  *d = mirrored(*d);
  return is_part(r->operands[1], c->params[0], k) && hlo_int_constant(r->operands[0], limit);
}

static bool read_step(const struct hlo_computation *c, int k, int64_t *step) {
  const struct hlo_instr *next = c->root->op == HLO_TUPLE ? c->root->operands[k] : NULL;
  int at;
  if (!next || (next->op != HLO_ADD && next->op != HLO_SUBTRACT))
    return false;
  for (int side = 0; side < (next->op == HLO_ADD ? 2 : 1); side++)
    if (is_part(next->operands[side], c->params[0], &at) && at == k && hlo_int_constant(next->operands[!side], step)) {
      *step = next->op == HLO_ADD ? *step : -*step;
      return *step != 0 && *step != INT64_MIN;
    }
  return false;
}

/* For how many values of first, first + step, … the comparison with limit holds; -1: for all, or not known. */
static __int128 count_iterations(int64_t first, int64_t step, enum hlo_direction d, int64_t limit) {
  const __int128 distance = (__int128)limit - first;
  const bool up = step > 0;
  switch (d) {
  case HLO_EQ:
    return distance ? 0 : 1;
  case HLO_NE:
    return distance % step || distance / step < 0 ? -1 : distance / step;
  case HLO_LT:
  case HLO_GT: {
    const __int128 left = d == HLO_LT ? distance : -distance;
    return left <= 0 ? 0 : up != (d == HLO_LT) ? -1 : (left - 1) / (up ? step : -(__int128)step) + 1;
  }
  default: {
    const __int128 left = d == HLO_LE ? distance : -distance;
    return left < 0 ? 0 : up != (d == HLO_LE) ? -1 : left / (up ? step : -(__int128)step) + 1;
  }
  }
}

bool hlo_trip_find(const struct hlo_instr *w, struct hlo_trip *out) {
  const struct hlo_instr *init = w->operands[0];
  enum hlo_direction d;
  int64_t limit = 0, first = 0, step = 0;
  int k = -1;

  if (!read_condition(w->called[1], &k, &d, &limit) || !read_step(w->called[0], k, &step) || init->op != HLO_TUPLE ||
      !hlo_int_constant(init->operands[k], &first))
    return false;
  const __int128 n = count_iterations(first, step, d, limit), last = first + n * step;
  const int bits = 8 * (int)dtype_size(init->operands[k]->shape.dtype) - 1;
  if (n < 0 || last < -((__int128)1 << bits) || last >= (__int128)1 << bits) /* it would wrap */
    return false;
  *out = (struct hlo_trip){.at = k, .first = first, .step = step, .n = (int64_t)n};
  return true;
}
