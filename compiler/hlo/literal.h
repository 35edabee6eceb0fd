/* literal: elements of a constant as C numbers, for every dtype. */
#ifndef HLO_LITERAL_H
#define HLO_LITERAL_H

#include "hlo/hlo.h"

/* Writes v as one element of dtype t: floats rounded to nearest even, integers truncated (saturated where v does not
 * fit 64 bits, NaN as 0, then wrapped to the width), bool v != 0. */
void hlo_literal_store(enum dtype t, double v, void *out);
/* Element k as a double: exact except for 64-bit integers beyond 2^53. */
double hlo_literal_double(const struct hlo_literal *l, size_t k);
/* The n elements from `first` on, likewise. */
void hlo_literal_doubles(const struct hlo_literal *l, size_t first, size_t n, double *out);
/* Element k of an integer or bool literal; uint64 as the same bits. */
int64_t hlo_literal_int(const struct hlo_literal *l, size_t k);

/* -inf (lowest) or +inf; the largest finite value for a float type without infinities; an integer type's limits. */
void hlo_literal_store_extreme(enum dtype t, bool lowest, void *out);

/* Narrow floats.  bits: the element's bit pattern. */
double hlo_literal_decode_float(enum dtype t, uint32_t bits);
uint32_t hlo_literal_encode_float(enum dtype t, double v);
/* The low bits of a NaN of this float type that are free to be anything but all 0; 0 for a type with one NaN. */
int hlo_literal_nan_bits(enum dtype t);

#endif
