/* expand_bits: rules for instructions that work on the bits of floats and integers.
 *
 *     reduce-precision(x)                  ==>  integer arithmetic on x's bits: rounded to the nearest, ties to even,
 *                                               beyond the range infinite, below it zero
 *     bitcast-convert u32[n] to u16[n,2]   ==>  concatenate(x & 0xffff, x >> 16)
 *     bitcast-convert u16[n,2] to u32[n]   ==>  x[:,0] | x[:,1] << 16
 *
 * A bit cast to 64 bits stays, and is refused later, unless it is undone (expand_rng.c makes such pairs).
 */
#include "hlo/expand.h"
#include "hlo/literal.h"

/* The unsigned type of this many bytes; DT_NONE for 8, which the hardware does not have. */
static enum dtype unsigned_of(size_t size) {
  return size == 4 ? DT_U32 : size == 2 ? DT_U16 : size == 1 ? DT_U8 : DT_NONE;
}

/* ---- reduce-precision -------------------------------------------------------------------------------------- */

struct format {
  int bits, exponent, mantissa;
};

static bool find_format(enum dtype t, struct format *out) {
  if (t != DT_F32 && t != DT_F16 && t != DT_BF16)
    return false;
  const int mantissa = hlo_literal_nan_bits(t), bits = 8 * (int)dtype_size(t);
  *out = (struct format){bits, bits - 1 - mantissa, mantissa};
  return true;
}

/* The bits of x, of 2 or 4 bytes, as 32-bit integers; and back. */
static hlo_val to_bits(struct hlo_builder *b, hlo_val x) {
  return dtype_size(x->shape.dtype) == 4 ? hlo_bitcast_convert(b, x, DT_I32)
                                         : hlo_convert(b, hlo_bitcast_convert(b, x, DT_U16), DT_I32);
}

static hlo_val from_bits(struct hlo_builder *b, hlo_val bits, enum dtype t) {
  return dtype_size(t) == 4 ? hlo_bitcast_convert(b, bits, t) : hlo_bitcast_convert(b, hlo_convert(b, bits, DT_U16), t);
}

/* The magnitude x with `cut` bits of the mantissa rounded away; a carry moves into the exponent by itself. */
static hlo_val round_bits(struct hlo_builder *b, hlo_val x, int cut) {
  const int64_t unit = (int64_t)1 << cut;
  hlo_val is_odd = hlo_expand_with(b, HLO_AND, hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, x, cut), 1);
  hlo_val bias = hlo_expand_with(b, HLO_ADD, is_odd, (double)(unit / 2 - 1));
  return hlo_expand_with(b, HLO_AND, hlo_binary(b, HLO_ADD, x, bias), (double)-unit);
}

static hlo_val compare_with(struct hlo_builder *b, enum hlo_direction d, hlo_val x, int64_t v) {
  return hlo_compare(b, d, x, hlo_expand_like(b, x, (double)v));
}

/* The magnitude x; infinity or zero where an exponent of fewer bits cannot express it. */
static hlo_val clip_exponent(struct hlo_builder *b, hlo_val x, const struct format *f, int64_t exponent_bits) {
  const int64_t ones = ((int64_t)1 << f->exponent) - 1, bias = ones / 2;
  const int64_t reach = ((int64_t)1 << (exponent_bits - 1)) - 1;
  hlo_val e = hlo_expand_with(b, HLO_AND, x, (double)(ones << f->mantissa));
  hlo_val above = compare_with(b, HLO_GT, e, (bias + reach) << f->mantissa);
  hlo_val below = compare_with(b, HLO_LE, e, (bias - reach) << f->mantissa);
  x = hlo_select(b, above, hlo_expand_like(b, x, (double)(ones << f->mantissa)), x);
  return hlo_select(b, below, hlo_expand_like(b, x, 0), x);
}

hlo_val hlo_expand_reduce_precision(struct hlo_builder *b, struct hlo_instr *i) {
  const int64_t exponent = i->attrs->exponent_bits, mantissa = i->attrs->mantissa_bits;
  hlo_val x = i->operands[0];
  struct format f;
  if (!find_format(x->shape.dtype, &f))
    return i;
  if (exponent >= f.exponent && mantissa >= f.mantissa)
    return x;
  const int64_t infinity = (((int64_t)1 << f.exponent) - 1) << f.mantissa, sign = (int64_t)1 << (f.bits - 1);
  hlo_val bits = to_bits(b, x), size = hlo_expand_with(b, HLO_AND, bits, (double)(sign - 1)), r = size;
  if (mantissa < f.mantissa)
    r = round_bits(b, r, f.mantissa - (int)mantissa);
  if (exponent < f.exponent)
    r = clip_exponent(b, r, &f, exponent);
  hlo_val is_nan = compare_with(b, HLO_GT, size, infinity);
  r = hlo_select(b, is_nan, size, r);
  hlo_val is_negative = hlo_expand_with(b, HLO_AND, bits, (double)(f.bits == 32 ? INT32_MIN : sign));
  return from_bits(b, hlo_binary(b, HLO_OR, r, is_negative), x->shape.dtype);
}

/* ---- bitcast-convert ---------------------------------------------------------------------------------------- */

static hlo_val split(struct hlo_builder *b, hlo_val x, enum dtype to) {
  enum { PARTS_MAX = 8 };
  const size_t size = dtype_size(to), n = dtype_size(x->shape.dtype) / size;
  int64_t dims[HLO_RANK_MAX + 1];
  hlo_val parts[PARTS_MAX];
  for (int d = 0; d < x->shape.rank; d++)
    dims[d] = x->shape.dims[d];
  dims[x->shape.rank] = 1;
  for (size_t k = 0; k < n; k++) {
    hlo_val part = k ? hlo_expand_with(b, HLO_SHIFT_RIGHT_LOGICAL, x, (double)(8 * size * k)) : x;
    part = hlo_expand_with(b, HLO_AND, part, (double)(((int64_t)1 << (8 * size)) - 1));
    parts[k] = hlo_reshape(b, hlo_convert(b, part, to), x->shape.rank + 1, dims);
  }
  return hlo_concatenate(b, (int)n, parts, x->shape.rank);
}

static hlo_val join(struct hlo_builder *b, hlo_val x, enum dtype to) {
  const size_t size = dtype_size(x->shape.dtype), n = dtype_size(to) / size;
  const int last = x->shape.rank - 1;
  hlo_val all = NULL;
  for (size_t k = 0; k < n; k++) {
    hlo_val part = hlo_reshape(b, hlo_expand_part(b, x, last, (int64_t)k, (int64_t)k + 1), last, x->shape.dims);
    part = hlo_convert(b, part, to);
    if (k)
      part = hlo_expand_with(b, HLO_SHIFT_LEFT, part, (double)(8 * size * k));
    all = all ? hlo_binary(b, HLO_OR, all, part) : part;
  }
  return all;
}

hlo_val hlo_expand_bitcast_convert(struct hlo_builder *b, struct hlo_instr *i) {
  hlo_val x = i->operands[0];
  const enum dtype t = i->shape.dtype;
  const size_t from = dtype_size(x->shape.dtype), to = dtype_size(t);
  if (x->op == HLO_BITCAST_CONVERT && hlo_shape_equal(&x->operands[0]->shape, &i->shape))
    return x->operands[0];
  if (from == to || from == 8 || to == 8)
    return i;
  x = hlo_bitcast_convert(b, x, unsigned_of(from));
  x = from > to ? split(b, x, unsigned_of(to)) : join(b, x, unsigned_of(to));
  return hlo_bitcast_convert(b, x, t);
}
