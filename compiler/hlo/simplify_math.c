/* hlo_simplify_math: rules about values.
 *
 * The rules assume about floats what XLA's simplifier assumes, and nothing more: x+0 becomes x, although -0.0+0 is 0.0.
 * x*0 and x-x stay, because of NaN and infinities.
 */
#include "hlo/simplify.h"

#include <string.h>

#include "hlo/literal.h"

static bool is_all(const struct hlo_instr *x, double v) {
  const struct hlo_literal *l = hlo_simplify_splat_of(x);
  return l && hlo_literal_double(l, 0) == v;
}

/* ---- unary and binary -------------------------------------------------------------------------------- */

/* negate(negate(x)), not(not(x)) ==> x */
static struct hlo_instr *involution(struct hlo_simplifier *s, struct hlo_instr *i) {
  return hlo_simplify_skips(s, i, 0, i->op) ? i->operands[0]->operands[0] : NULL;
}

/* copy(x) ==> x, except a copy of a parameter into the tuple of results: the caller gets a buffer of its own. */
static struct hlo_instr *plain_copy(struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0], *root = i->parent->root;
  if (x->op == HLO_PARAMETER && root && root->op == HLO_TUPLE)
    for (int k = 0; k < root->n_operands; k++)
      if (root->operands[k] == i)
        return NULL;
  return x;
}

static struct hlo_instr *multiply(struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0], *y = i->operands[1];
  for (int k = 0; k < 2; k++) {
    if (is_all(i->operands[k], 1))
      return i->operands[1 - k];
    if (dtype_is_int(i->shape.dtype) && is_all(i->operands[k], 0))
      return k ? y : x;
  }
  return NULL;
}

/* pow(x, 1) ==> x; pow(x, 2) ==> x*x */
static struct hlo_instr *power(struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  if (is_all(i->operands[1], 1))
    return x;
  if (is_all(i->operands[1], 2))
    return hlo_simplify_new(i, HLO_MULTIPLY, i->shape, 2, (struct hlo_instr *[]){x, x});
  return NULL;
}

static struct hlo_instr *binary(struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0], *y = i->operands[1];
  switch (i->op) {
  case HLO_ADD:
    return is_all(y, 0) ? x : is_all(x, 0) ? y : NULL;
  case HLO_SUBTRACT:
    return is_all(y, 0) ? x : NULL;
  case HLO_MULTIPLY:
    return multiply(i);
  case HLO_DIVIDE:
    return is_all(y, 1) ? x : NULL;
  case HLO_POWER:
    return power(i);
  case HLO_MAXIMUM:
  case HLO_MINIMUM:
  case HLO_AND:
  case HLO_OR:
    return x == y ? x : NULL;
  default:
    return NULL;
  }
}

/* compare(x, x) of integers only, because floats have NaN */
static struct hlo_instr *compare(struct hlo_simplifier *s, struct hlo_instr *i) {
  if (i->operands[0] != i->operands[1] || dtype_is_float(i->operands[0]->shape.dtype))
    return NULL;
  return hlo_simplify_splat(
      s, i, i->attrs->direction == HLO_EQ || i->attrs->direction == HLO_GE || i->attrs->direction == HLO_LE);
}

static struct hlo_instr *select(struct hlo_instr *i) {
  if (i->operands[1] == i->operands[2])
    return i->operands[1];
  if (is_all(i->operands[0], 1))
    return i->operands[1];
  return is_all(i->operands[0], 0) ? i->operands[2] : NULL;
}

/* ---- convert ----------------------------------------------------------------------------------------- */

struct range {
  int exponent_bits, mantissa_bits; /* with the implicit bit */
  bool has_infinity;
};

static struct range range_of(enum dtype t) {
  switch (t) {
  case DT_F8E5M2:
    return (struct range){5, 3, true};
  case DT_F8E4M3:
    return (struct range){4, 4, true};
  case DT_F8E4M3FN:
    return (struct range){4, 4, false};
  case DT_F16:
    return (struct range){5, 11, true};
  case DT_BF16:
    return (struct range){8, 8, true};
  case DT_F32:
    return (struct range){8, 24, true};
  default:
    return (struct range){11, 53, true};
  }
}

static int value_bits(enum dtype t) {
  return 8 * (int)dtype_size(t) - (dtype_kind(t) == DK_SIGNED);
}

/* True if u has every value of t.  The larger range of an "fn" type does not matter: a wider exponent covers it. */
static bool is_lossless(enum dtype t, enum dtype u) {
  enum dtype_kind k = dtype_kind(t), l = dtype_kind(u);
  if (t == u || k == DK_BOOL)
    return true;
  if (l == DK_BOOL || (k == DK_FLOAT && l != DK_FLOAT))
    return false;
  struct range to = range_of(u);
  if (k == DK_FLOAT) {
    struct range from = range_of(t);
    return from.exponent_bits < to.exponent_bits
               ? from.mantissa_bits <= to.mantissa_bits
               : from.exponent_bits == to.exponent_bits && from.mantissa_bits <= to.mantissa_bits &&
                     from.has_infinity == to.has_infinity;
  }
  if (l == DK_FLOAT) /* f16 reaches 65504 only, which the mantissa of 11 bits already rules out for wider integers */
    return value_bits(t) <= to.mantissa_bits && to.exponent_bits >= 5;
  return value_bits(t) <= value_bits(u) && (k == DK_UNSIGNED || l == DK_SIGNED);
}

/* convert to the same type ==> x; convert(convert(x)) ==> convert(x) when the inner one loses nothing.  An integer
 * that went through a float comes back only to its own type: a float out of range converts differently. */
static struct hlo_instr *convert(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  if (x->shape.dtype == i->shape.dtype)
    return x;
  if (!hlo_simplify_skips(s, i, 0, HLO_CONVERT))
    return NULL;
  enum dtype from = x->operands[0]->shape.dtype, via = x->shape.dtype, to = i->shape.dtype;
  if (!is_lossless(from, via))
    return NULL;
  if (from == to)
    return x->operands[0];
  if (dtype_is_int(from) && dtype_is_float(via) && dtype_is_int(to))
    return NULL;
  return hlo_simplify_new(i, HLO_CONVERT, i->shape, 1, x->operands);
}

/* ---- reductions and products ------------------------------------------------------------------------- */

/* Is `init` the neutral element of i's combiner? */
static bool is_neutral(const struct hlo_instr *i) {
  const struct hlo_instr *root = i->called[0]->root;
  const struct hlo_literal *l = hlo_simplify_splat_of(i->operands[1]);
  char extreme[8] = {0};
  if (!l || root->n_operands != 2 || root->operands[0]->op != HLO_PARAMETER || root->operands[1]->op != HLO_PARAMETER ||
      root->operands[0] == root->operands[1])
    return false;
  switch (root->op) {
  case HLO_ADD:
    return hlo_literal_double(l, 0) == 0;
  case HLO_MULTIPLY:
    return hlo_literal_double(l, 0) == 1;
  case HLO_MAXIMUM:
  case HLO_MINIMUM:
    hlo_literal_store_extreme(l->shape.dtype, root->op == HLO_MAXIMUM, extreme);
    return !memcmp(extreme, l->data, l->size);
  case HLO_OR:
    return hlo_literal_int(l, 0) == 0;
  case HLO_AND:
    memset(extreme, l->shape.dtype == DT_BOOL ? 1 : 0xff, sizeof extreme);
    return !memcmp(extreme, l->data, l->size);
  default:
    return false;
  }
}

/* A reduce over dimensions of size 1 becomes a reshape. */
static struct hlo_instr *reduce(struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  if (i->n_operands != 2)
    return NULL;
  for (int k = 0; k < i->attrs->dimensions.n; k++)
    if (x->shape.dims[i->attrs->dimensions.v[k]] != 1)
      return NULL;
  if (!is_neutral(i))
    return NULL;
  return i->attrs->dimensions.n ? hlo_simplify_new(i, HLO_RESHAPE, i->shape, 1, &x) : x;
}

/* A dot of an operand without elements is 0. */
static struct hlo_instr *dot(struct hlo_simplifier *s, struct hlo_instr *i) {
  for (int k = 0; k < 2; k++)
    if (!hlo_shape_elements(&i->operands[k]->shape))
      return hlo_simplify_splat(s, i, 0);
  return NULL;
}

struct hlo_instr *hlo_simplify_math(struct hlo_simplifier *s, struct hlo_instr *i) {
  switch (i->op) {
  case HLO_NEGATE:
  case HLO_NOT:
    return involution(s, i);
  case HLO_COPY:
    return plain_copy(i);
  case HLO_CONVERT:
    return convert(s, i);
  case HLO_COMPARE:
    return compare(s, i);
  case HLO_SELECT:
    return select(i);
  case HLO_REDUCE:
    return reduce(i);
  case HLO_DOT:
    return dot(s, i);
  default:
    return hlo_op_class(i->op) == HC_BINARY ? binary(i) : NULL;
  }
}
