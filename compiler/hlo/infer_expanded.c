/* infer_expanded: shape rules of instructions that op-expander writes out in simpler ones (XLA's operation semantics). */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define OP(i, k) ((i)->operands[k])

enum status hlo_infer_reduce_precision(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                       struct error *err) {
  const int64_t exponent = i->attrs->exponent_bits, mantissa = i->attrs->mantissa_bits;
  if (!dtype_is_float(OP(i, 0)->shape.dtype))
    REFUSE("reduce-precision: operand %s must be floating-point", TEXT(OP(i, 0)));
  if (exponent < 1 || mantissa < 0)
    REFUSE("reduce-precision: %lld exponent and %lld mantissa bits are not possible", (long long)exponent,
           (long long)mantissa);
  *out = OP(i, 0)->shape;
  return ST_OK;
}

/* Gives the state after it, and bits in the shape that the instruction claims. */
enum status hlo_infer_rng(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape *state = &OP(i, 0)->shape;
  if ((state->dtype != DT_U64 && state->dtype != DT_U32) || state->rank != 1)
    REFUSE("rng-bit-generator: the state %s must be u64[2]", TEXT(OP(i, 0)));
  if (i->shape.dtype != DT_TUPLE || i->shape.n_elems != 2 || !hlo_shape_equal(&i->shape.elems[0], state) ||
      !dtype_is_int(i->shape.elems[1].dtype))
    REFUSE("rng-bit-generator: gives a state %s and integers, not %s", TEXT(OP(i, 0)), TEXT(i));
  *out = i->shape;
  return ST_OK;
}

static bool is_square(const struct hlo_shape *s) {
  return dtype_is_float(s->dtype) && s->rank >= 2 && s->dims[s->rank - 1] == s->dims[s->rank - 2];
}

enum status hlo_infer_cholesky(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (!is_square(&OP(i, 0)->shape))
    REFUSE("cholesky: operand %s must be square matrices of floats", TEXT(OP(i, 0)));
  *out = OP(i, 0)->shape;
  return ST_OK;
}

enum status hlo_infer_triangular_solve(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                       struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape, *y = &OP(i, 1)->shape;
  bool fits = is_square(x) && y->dtype == x->dtype && y->rank == x->rank && i->attrs->triangular;
  for (int k = 0; fits && k < x->rank - 2; k++)
    fits = x->dims[k] == y->dims[k];
  if (!fits || y->dims[y->rank - (i->attrs->triangular->is_left ? 2 : 1)] != x->dims[x->rank - 1])
    REFUSE("triangular-solve: %s are not the sides of equations with the matrices %s", TEXT(OP(i, 1)), TEXT(OP(i, 0)));
  *out = *y;
  return ST_OK;
}
