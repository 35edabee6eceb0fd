/* counter: lowers the counter of a while, and scalars that are computed from it.
 *
 * A counter starts at a constant, changes by a constant, and is compared with a constant.  The number of iterations is
 * then known, and the counter becomes the induction variable of an scf.for.  Integers computed from it (the starts of
 * slices) become index arithmetic instead of 0-d tensors if their range shows that they do not overflow.  Other 0-d
 * values that depend only on such integers are computed as scalars, too.
 */
#include <assert.h>

#include "hlo/trip.h"
#include "linalg/impl.h"

void counter_find(const struct hlo_instr *w, struct counter *out) {
  struct hlo_trip t;
  *out = (struct counter){.at = -1};
  if (hlo_trip_find(w, &t))
    *out = (struct counter){.at = t.at, .first = t.first, .step = t.step, .n = t.n};
}

/* For a while that counts down, the scf.for counts the iterations from 0 up. */
int64_t counter_lower(const struct counter *c) {
  return c->step > 0 ? c->first : 0;
}
int64_t counter_step(const struct counter *c) {
  return c->step > 0 ? c->step : 1;
}
int64_t counter_upper(const struct counter *c) {
  return counter_lower(c) + c->n * counter_step(c);
}

void counter_after(struct counter *c) {
  c->first += c->n * c->step;
  c->n = 1;
  c->iv = (MlirValue){NULL};
}

static MlirValue counter_index(struct lower *l, const struct counter *c) {
  if (mlirValueIsNull(c->iv))
    return ir_index(&l->b, c->first);
  if (c->step > 0)
    return c->iv;
  MlirValue scaled = ir_binary(&l->b, "arith.muli", c->iv, ir_index(&l->b, c->step));
  return ir_binary(&l->b, "arith.addi", scaled, ir_index(&l->b, c->first));
}

MlirValue counter_tensor(struct lower *l, const struct counter *c, enum dtype t) {
  MlirValue index = counter_index(l, c);
  MlirValue v = ir_op1(&l->b, "arith.index_cast", ir_element_type(&l->b, t), 1, &index);
  return ir_op1(&l->b, "tensor.from_elements", ir_tensor_type(&l->b, t, 0, NULL), 1, &v);
}

/* ---- scalars computed from a counter ------------------------------------------------------------------------- */

/* Scalar expressions are emitted by recursion, so their depth is limited.  An instruction beyond the limit is computed
 * as a 0-d tensor. */
enum { DEPTH_MAX = 64 };

/* True if the signed type t holds all values of the range. */
static bool fits(enum dtype t, __int128 low, __int128 high) {
  const int bits = 8 * (int)dtype_size(t) - 1;
  return low >= -((__int128)1 << bits) && high < (__int128)1 << bits;
}

/* Sets the range of x and returns true if x is an index or an integer constant. */
static bool range_of(struct lower *l, const struct hlo_instr *x, __int128 *low, __int128 *high) {
  const struct node *n = node_of(l, x);
  int64_t v;
  if (hlo_int_constant(x, &v)) {
    *low = *high = v;
    return true;
  }
  *low = n->low;
  *high = n->high;
  return n->scalar_kind == SCALAR_INDEX;
}

/* Returns true if i is a signed integer that is computed from indices and constants and cannot overflow.  Sets its
 * range. */
static bool is_index_expression(struct lower *l, const struct hlo_instr *i, __int128 *low, __int128 *high) {
  __int128 a, b, c, d;
  if (dtype_kind(i->shape.dtype) != DK_SIGNED)
    return false;
  if (i->op == HLO_CONVERT || i->op == HLO_COPY || i->op == HLO_RESHAPE)
    return range_of(l, i->operands[0], low, high) && fits(i->shape.dtype, *low, *high);
  if ((i->op != HLO_ADD && i->op != HLO_SUBTRACT && i->op != HLO_MULTIPLY) || !range_of(l, i->operands[0], &a, &b) ||
      !range_of(l, i->operands[1], &c, &d))
    return false;
  if (i->op == HLO_MULTIPLY) {
    const __int128 all[] = {a * c, a * d, b * c, b * d};
    *low = *high = all[0];
    for (int k = 1; k < 4; k++) {
      *low = all[k] < *low ? all[k] : *low;
      *high = all[k] > *high ? all[k] : *high;
    }
  } else {
    *low = i->op == HLO_ADD ? a + c : a - d;
    *high = i->op == HLO_ADD ? b + d : b - c;
  }
  return fits(i->shape.dtype, *low, *high);
}

static bool is_elementwise(const struct hlo_instr *i) {
  const enum hlo_class c = hlo_op_class(i->op);
  return ((c == HC_UNARY || c == HC_BINARY) && i->op != HLO_COPY) || i->op == HLO_CONVERT || i->op == HLO_COMPARE ||
         i->op == HLO_SELECT;
}

static bool is_scalar_expression(struct lower *l, const struct hlo_instr *i) {
  if (!is_elementwise(i) || !scalar_is_supported(i))
    return false;
  for (int k = 0; k < i->n_operands; k++)
    if (!node_of(l, i->operands[k])->scalar_kind && !lower_is_splat(i->operands[k]))
      return false;
  return true;
}

void scalar_prepare(struct lower *l, const struct hlo_instr *x) {
  const struct node *n = node_of(l, x);
  if (x->shape.dtype == DT_TUPLE || x->shape.rank)
    return;
  if (n->scalar_kind == SCALAR_INDEX)
    scalar_index(l, x);
  else if (n->scalar_kind || lower_is_splat(x))
    scalar_of(l, x);
}

bool scalar_inherit(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *x) {
  struct node *n = node_of(l, i);
  const struct node *from = node_of(l, x);
  if (i->shape.rank || i->knob || (!from->scalar_kind && !lower_is_splat(x)))
    return false;
  n->scalar_kind = from->scalar_kind ? from->scalar_kind : SCALAR_OTHER;
  n->scalar = from->scalar;
  n->index = from->index;
  n->low = from->low;
  n->high = from->high;
  return true;
}

/* Decides if an element of a while's state is a scalar: if it is the counter, or a scalar passed in from outside. */
static bool note_element(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *t = i->operands[0];
  const struct node *from = node_of(l, t);
  const struct counter *c = &from->counter;
  struct node *n = node_of(l, i);

  if (from->origins && from->origins[i->attrs->tuple_index])
    return scalar_inherit(l, i, from->origins[i->attrs->tuple_index]);
  if (t->op == HLO_TUPLE || c->at != i->attrs->tuple_index)
    return false;
  const int64_t last = c->first + (c->n ? c->n - 1 : 0) * c->step;
  n->scalar_kind = SCALAR_INDEX;
  n->low = c->step > 0 ? c->first : last;
  n->high = c->step > 0 ? last : c->first;
  return true;
}

bool scalar_note(struct lower *l, const struct hlo_instr *i) {
  struct node *n = node_of(l, i);
  __int128 low, high;
  bool from_counter = false;

  if (i->shape.rank || i->shape.dtype == DT_TUPLE || i->knob)
    return false;
  if (i->op == HLO_GET_TUPLE_ELEMENT && note_element(l, i))
    return true;
  for (int k = 0; k < i->n_operands; k++) {
    const struct node *x = node_of(l, i->operands[k]);
    from_counter |= x->scalar_kind != SCALAR_NONE;
    n->scalar_depth = x->scalar_depth >= n->scalar_depth ? x->scalar_depth + 1 : n->scalar_depth;
  }
  if (!from_counter || n->scalar_depth > DEPTH_MAX)
    return false;
  if (is_index_expression(l, i, &low, &high)) {
    n->scalar_kind = SCALAR_INDEX;
    n->low = (int64_t)low;
    n->high = (int64_t)high;
  } else if (is_scalar_expression(l, i)) {
    n->scalar_kind = SCALAR_OTHER;
  }
  return n->scalar_kind != SCALAR_NONE;
}

MlirValue scalar_index(struct lower *l, const struct hlo_instr *i) {
  struct node *n = node_of(l, i);
  int64_t v;
  if (hlo_int_constant(i, &v))
    return ir_index(&l->b, v);
  if (!mlirValueIsNull(n->index))
    return n->index;
  MlirLocation outer = l->b.loc;
  l->b.loc = lower_location(l, i, NULL);
  if (i->op == HLO_GET_TUPLE_ELEMENT) {
    n->index = counter_index(l, &node_of(l, i->operands[0])->counter);
  } else {
    MlirValue x = scalar_index(l, i->operands[0]);
    n->index = i->n_operands == 1 ? x
                                  : ir_binary(&l->b,
                                              i->op == HLO_ADD        ? "arith.addi"
                                              : i->op == HLO_SUBTRACT ? "arith.subi"
                                                                      : "arith.muli",
                                              x, scalar_index(l, i->operands[1]));
  }
  l->b.loc = outer;
  return n->index;
}

MlirValue scalar_of(struct lower *l, const struct hlo_instr *i) {
  struct node *n = node_of(l, i);
  MlirValue x[3];
  if (lower_is_splat(i))
    return lower_splat(l, i);
  assert(i->shape.dtype != DT_TUPLE && !i->shape.rank);
  if (n->scalar_kind == SCALAR_NONE)
    return ir_extract(&l->b, lower_value(l, i), 0, NULL);
  if (!mlirValueIsNull(n->scalar))
    return n->scalar;
  MlirLocation outer = l->b.loc;
  l->b.loc = lower_location(l, i, NULL);
  if (n->scalar_kind == SCALAR_INDEX) {
    x[0] = scalar_index(l, i);
    n->scalar = ir_op1(&l->b, "arith.index_cast", ir_element_type(&l->b, i->shape.dtype), 1, x);
  } else {
    assert(i->n_operands <= 3);
    for (int k = 0; k < i->n_operands; k++)
      x[k] = scalar_of(l, i->operands[k]);
    n->scalar = scalar_apply(&l->b, i, x);
  }
  l->b.loc = outer;
  return n->scalar;
}

MlirValue scalar_tensor(struct lower *l, const struct hlo_instr *i) {
  MlirValue v = scalar_of(l, i);
  return ir_op1(&l->b, "tensor.from_elements", ir_tensor_type(&l->b, i->shape.dtype, 0, NULL), 1, &v);
}
