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

/* ---- complex numbers -------------------------------------------------------------------------------------- */

/* A combiner that adds, or hands on the second of its values. */
static bool is_plain_combiner(const struct hlo_instr *i) {
  const struct hlo_computation *c = i->n_called == 1 ? i->called[0] : NULL;
  const struct hlo_instr *r = c ? c->root : NULL;
  if (!r || c->n_params != 2)
    return false;
  if (i->op == HLO_SCATTER && (r == c->params[1] || (r->op == HLO_COPY && r->operands[0] == c->params[1])))
    return true;
  return r->op == HLO_ADD && ((r->operands[0] == c->params[0] && r->operands[1] == c->params[1]) ||
                              (r->operands[0] == c->params[1] && r->operands[1] == c->params[0]));
}

bool hlo_infer_is_complex_op(const struct hlo_instr *i) {
  switch (i->op) {
  case HLO_ABS:
  case HLO_NEGATE:
  case HLO_EXP:
  case HLO_LOG:
  case HLO_SQRT:
  case HLO_RSQRT:
  case HLO_SIN:
  case HLO_COS:
  case HLO_SIGN:
  case HLO_COPY:
  case HLO_ADD:
  case HLO_SUBTRACT:
  case HLO_MULTIPLY:
  case HLO_DIVIDE:
  case HLO_POWER:
  case HLO_SELECT:
  case HLO_REAL:
  case HLO_IMAG:
  case HLO_FFT:
  case HLO_BROADCAST:
  case HLO_RESHAPE:
  case HLO_TRANSPOSE:
  case HLO_SLICE:
  case HLO_PAD:
  case HLO_CONCATENATE:
  case HLO_REVERSE:
  case HLO_DOT:
  case HLO_CONVOLUTION:
  case HLO_GATHER:
  case HLO_DYNAMIC_SLICE:
  case HLO_DYNAMIC_UPDATE_SLICE:
    return true;
  case HLO_COMPARE:
    return i->attrs->direction == HLO_EQ || i->attrs->direction == HLO_NE;
  case HLO_CONVERT:
    return dtype_is_complex(i->shape.dtype);
  case HLO_REDUCE:
    return i->n_operands == 2 && is_plain_combiner(i);
  case HLO_REDUCE_WINDOW:
  case HLO_SCATTER:
    return is_plain_combiner(i);
  default:
    return hlo_op_hands_on(i->op);
  }
}

bool hlo_infer_may_make_complex(const struct hlo_instr *i) {
  switch (i->op) {
  case HLO_PARAMETER:
  case HLO_CONSTANT:
  case HLO_CONVERT:
  case HLO_COMPLEX:
  case HLO_FFT:
  case HLO_COPY:
    return true;
  default:
    return hlo_op_hands_on(i->op);
  }
}

enum status hlo_infer_complex_part(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  *out = *x;
  if (i->op == HLO_COMPLEX) {
    if (x->dtype != DT_F32 || !hlo_shape_equal(x, &OP(i, 1)->shape))
      REFUSE("complex: the parts %s and %s must be f32 and have one shape", TEXT(OP(i, 0)), TEXT(OP(i, 1)));
    out->dtype = DT_C64;
    return ST_OK;
  }
  if (!dtype_is_complex(x->dtype))
    REFUSE("%s: operand %s must be complex", hlo_op_name(i->op), TEXT(OP(i, 0)));
  out->dtype = DT_F32;
  return ST_OK;
}

/* A length is transformed by matrices of its factors, and needs as many factors of its own: large ones are too much
 * for constants. */
enum { FFT_LENGTH_MAX = 1 << 20, FFT_FACTOR_MAX = 1024 };

static bool has_small_factors(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    while (n % p == 0)
      n /= p;
  return n <= FFT_FACTOR_MAX;
}

/* The last dimensions are transformed.  Of a real array's spectrum only the first n / 2 + 1 values are kept. */
enum status hlo_infer_fft(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  const struct hlo_ints n = i->attrs->fft_length;
  const enum hlo_fft kind = i->attrs->fft_type;
  int64_t dims[HLO_RANK_MAX];
  if (n.n < 1 || n.n > 3 || n.n > x->rank || x->dtype != (kind == HLO_FFT_OF_REAL ? DT_F32 : DT_C64))
    REFUSE("fft: operand %s cannot be transformed", TEXT(OP(i, 0)));
  for (int k = 0; k < x->rank; k++) {
    const int64_t length = k < x->rank - n.n ? x->dims[k] : n.v[k - (x->rank - n.n)];
    const bool is_half = k == x->rank - 1 && kind == HLO_FFT_TO_REAL;
    if (length < 0 || x->dims[k] != (is_half ? length / 2 + 1 : length))
      REFUSE("fft: dimension %d of %s does not have the length %lld", k, TEXT(OP(i, 0)), (long long)length);
    if (k >= x->rank - n.n && (length > FFT_LENGTH_MAX || !has_small_factors(length)))
      REFUSE("fft: the length %lld is above %d or has a prime factor above %d, which is not supported",
             (long long)length, FFT_LENGTH_MAX, FFT_FACTOR_MAX);
    dims[k] = k == x->rank - 1 && kind == HLO_FFT_OF_REAL ? length / 2 + 1 : length;
  }
  *out = hlo_shape_array(a, kind == HLO_FFT_TO_REAL ? DT_F32 : DT_C64, x->rank, dims);
  return ST_OK;
}

/* ---- random bits, matrices --------------------------------------------------------------------------------- */

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
