/* literal: conversion between C numbers and the bytes of a constant.
 *
 * All floats narrower than f32 consist of sign, exponent and mantissa, with different widths, so one table and one pair
 * of functions handle them.  They round from double directly, because going through f32 would round twice.  e4m3fn has no
 * infinities and only one NaN per sign (all bits set); a value beyond its range becomes NaN, as in ml_dtypes and XLA.
 */
#include "hlo/literal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct format {
  int exponent_bits, mantissa_bits, bias;
  bool is_finite_only; /* "fn" */
};

static const struct format *format_of(enum dtype t) {
  static const struct format f16 = {5, 10, 15, false}, bf16 = {8, 7, 127, false}, e4m3 = {4, 3, 7, false},
                             e4m3fn = {4, 3, 7, true}, e5m2 = {5, 2, 15, false};
  switch (t) {
  case DT_F16:
    return &f16;
  case DT_BF16:
    return &bf16;
  case DT_F8E4M3:
    return &e4m3;
  case DT_F8E4M3FN:
    return &e4m3fn;
  default:
    assert(t == DT_F8E5M2);
    return &e5m2;
  }
}

double hlo_literal_decode_float(enum dtype t, uint32_t bits) {
  const struct format *f = format_of(t);
  uint32_t top = (1u << f->exponent_bits) - 1, ones = (1u << f->mantissa_bits) - 1;
  uint32_t mantissa = bits & ones, exponent = bits >> f->mantissa_bits & top;
  double sign = bits >> (f->exponent_bits + f->mantissa_bits) & 1 ? -1.0 : 1.0;

  if (exponent == top && (!f->is_finite_only || mantissa == ones))
    return mantissa ? copysign(NAN, sign) : sign * INFINITY;
  if (!exponent)
    return sign * ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
  return sign * ldexp(mantissa + (ones + 1.0), (int)exponent - f->bias - f->mantissa_bits);
}

uint32_t hlo_literal_encode_float(enum dtype t, double v) {
  const struct format *f = format_of(t);
  uint32_t top = (1u << f->exponent_bits) - 1, ones = (1u << f->mantissa_bits) - 1;
  uint32_t sign = signbit(v) ? 1u << (f->exponent_bits + f->mantissa_bits) : 0;
  uint32_t quiet_nan =
      f->is_finite_only ? top << f->mantissa_bits | ones : top << f->mantissa_bits | 1u << (f->mantissa_bits - 1);
  uint32_t beyond = f->is_finite_only ? quiet_nan : top << f->mantissa_bits;
  uint32_t largest = f->is_finite_only ? quiet_nan - 1 : beyond - 1;
  int exponent;

  if (isnan(v))
    return sign | quiet_nan;
  v = fabs(v);
  if (isinf(v))
    return sign | beyond;
  if (v == 0)
    return sign;
  frexp(v, &exponent); /* v = m * 2^exponent, m in [0.5, 1) */
  int biased = exponent - 1 + f->bias;
  if (biased < 1)
    biased = 1; /* subnormal: same unit in the last place as the smallest normal */
  if (biased > (int)top)
    return sign | beyond;
  /* In units of the last place v is at most 2^(mantissa_bits + 1): exact; rint rounds to even.  A carry out of the
   * mantissa moves into the exponent by itself, and a subnormal has no implicit bit to take away. */
  uint32_t units = (uint32_t)rint(ldexp(v, f->mantissa_bits + f->bias - biased));
  uint32_t bits = ((uint32_t)(biased - 1) << f->mantissa_bits) + units;
  return sign | (bits > largest ? beyond : bits);
}

int hlo_literal_nan_bits(enum dtype t) {
  assert(dtype_is_float(t));
  if (t == DT_F64)
    return 52;
  if (t == DT_F32)
    return 23;
  return format_of(t)->is_finite_only ? 0 : format_of(t)->mantissa_bits;
}

static int64_t to_int(double v) {
  if (isnan(v))
    return 0;
  if (v >= 0x1p63)
    return v >= 0x1p64 ? -1 : (int64_t)(uint64_t)v;
  return v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

void hlo_literal_store(enum dtype t, double v, void *out) {
  switch (dtype_kind(t)) {
  case DK_BOOL:
    *(uint8_t *)out = v != 0;
    return;
  case DK_SIGNED:
  case DK_UNSIGNED: {
    int64_t n = to_int(v);
    if (v >= 0x1p63 && dtype_kind(t) == DK_SIGNED)
      n = INT64_MAX;
    memcpy(out, &n, dtype_size(t)); /* little-endian: the low bytes */
    return;
  }
  case DK_COMPLEX: {
    const float pair[] = {(float)v, 0};
    assert(t == DT_C64);
    memcpy(out, pair, sizeof pair);
    return;
  }
  default:
    break;
  }
  if (t == DT_F64) {
    memcpy(out, &v, sizeof v);
  } else if (t == DT_F32) {
    float f = (float)v;
    memcpy(out, &f, sizeof f);
  } else {
    uint32_t bits = hlo_literal_encode_float(t, v);
    memcpy(out, &bits, dtype_size(t));
  }
}

int64_t hlo_literal_int(const struct hlo_literal *l, size_t k) {
  enum dtype t = l->shape.dtype;
  size_t size = dtype_size(t);
  uint64_t bits = 0;
  memcpy(&bits, (const char *)l->data + k * size, size);
  if (dtype_kind(t) == DK_SIGNED && size < 8 && bits >> (8 * size - 1))
    bits |= ~(uint64_t)0 << (8 * size);
  return (int64_t)bits;
}

double hlo_literal_double(const struct hlo_literal *l, size_t k) {
  const char *p = (const char *)l->data + k * dtype_size(l->shape.dtype);
  switch (l->shape.dtype) {
  case DT_F64: {
    double d;
    memcpy(&d, p, sizeof d);
    return d;
  }
  case DT_F32: {
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
  }
  case DT_U64:
    return (double)(uint64_t)hlo_literal_int(l, k);
  default:
    break;
  }
  assert(!dtype_is_complex(l->shape.dtype));
  if (!dtype_is_float(l->shape.dtype))
    return (double)hlo_literal_int(l, k);
  return hlo_literal_decode_float(l->shape.dtype, (uint32_t)hlo_literal_int(l, k));
}

void hlo_literal_doubles(const struct hlo_literal *l, size_t first, size_t n, double *out) {
  if (l->shape.dtype == DT_F32) {
    const char *p = (const char *)l->data + first * sizeof(float);
    for (size_t k = 0; k < n; k++) {
      float f;
      memcpy(&f, p + k * sizeof f, sizeof f);
      out[k] = (double)f;
    }
    return;
  }
  for (size_t k = 0; k < n; k++)
    out[k] = hlo_literal_double(l, first + k);
}

void hlo_literal_store_extreme(enum dtype t, bool lowest, void *out) {
  if (t == DT_F8E4M3FN) {
    hlo_literal_store(t, lowest ? -448.0 : 448.0, out);
  } else if (dtype_is_float(t)) {
    hlo_literal_store(t, lowest ? -INFINITY : INFINITY, out);
  } else if (t == DT_BOOL) {
    hlo_literal_store(t, !lowest, out);
  } else {
    memset(out, lowest ? 0 : 0xff, dtype_size(t));
    if (dtype_kind(t) == DK_SIGNED)
      ((uint8_t *)out)[dtype_size(t) - 1] = lowest ? 0x80 : 0x7f;
  }
}
