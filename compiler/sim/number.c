#include "sim/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "hlo/literal.h"
#include "sim/simd.h"

/* The narrow floats that have no C type, by the functions that read and print literals. */
static enum dtype dtype_of(enum sim_type t) {
  switch (t) {
  case SIM_F8E4M3:
    return DT_F8E4M3;
  case SIM_F8E4M3FN:
    return DT_F8E4M3FN;
  case SIM_F8E5M2:
    return DT_F8E5M2;
  default:
    return DT_NONE;
  }
}

/* Values of all bytes of an fp8 type; filled when it is first used. */
static const float *f8_values(enum sim_type t) {
  static float values[SIM_TYPE_COUNT][256];
  static bool is_filled[SIM_TYPE_COUNT];
  if (!is_filled[t]) {
    for (uint32_t b = 0; b < 256; b++)
      values[t][b] = (float)hlo_literal_decode_float(dtype_of(t), b);
    is_filled[t] = true;
  }
  return values[t];
}

static inline float bf16_value(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float v;
  memcpy(&v, &wide, sizeof v);
  return v;
}

/* Without branches, so that it is computed for several elements at once. */
static inline uint16_t bf16_bits(float v) {
  uint32_t b;
  memcpy(&b, &v, sizeof b);
  const uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16, quiet = b >> 16 | 0x40; /* NaN stays NaN */
  return (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

static inline float f16_value(uint16_t bits) {
  _Float16 v;
  memcpy(&v, &bits, sizeof v);
  return (float)v;
}

static inline uint16_t f16_bits(float v) {
  const _Float16 narrow = (_Float16)v;
  uint16_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

/* A loop over elements that lie `step` bytes apart, and a faster one for those without gaps. */
#define EACH(size, body) \
  if (step == (size)) \
    for (int64_t k = 0; k < n; k++) { \
      body(at + k * (size)) \
    } \
  else \
    for (int64_t k = 0; k < n; k++) { \
      body(at + k * step) \
    } \
  break

#define LOAD_AS(p, T, value) \
  T v; \
  memcpy(&v, (p), sizeof v); \
  out[k] = (value);
#define STORE_AS(p, T, value) \
  const T v = (value); \
  memcpy((p), &v, sizeof v);

#define I1(p) LOAD_AS(p, int8_t, (float)(v != 0))
#define I8(p) LOAD_AS(p, int8_t, (float)v)
#define U8(p) LOAD_AS(p, uint8_t, (float)v)
#define I16(p) LOAD_AS(p, int16_t, (float)v)
#define U16(p) LOAD_AS(p, uint16_t, (float)v)
#define I32(p) LOAD_AS(p, int32_t, (float)v)
#define U32(p) LOAD_AS(p, uint32_t, (float)v)
#define I64(p) LOAD_AS(p, int64_t, (float)v)
#define U64(p) LOAD_AS(p, uint64_t, (float)v)
#define F32(p) LOAD_AS(p, float, v)
#define F64(p) LOAD_AS(p, double, (float)v)
#define F16(p) LOAD_AS(p, uint16_t, f16_value(v))
#define BF16(p) LOAD_AS(p, uint16_t, bf16_value(v))
#define F8(p) LOAD_AS(p, uint8_t, values[v])

SIM_PER_MACHINE void sim_load_f32(enum sim_type t, const char *at, int64_t step, int64_t n, float *out) {
  switch (t) {
  case SIM_I1:
    EACH(1, I1);
  case SIM_I8:
    EACH(1, I8);
  case SIM_U8:
    EACH(1, U8);
  case SIM_I16:
    EACH(2, I16);
  case SIM_U16:
    EACH(2, U16);
  case SIM_I32:
    EACH(4, I32);
  case SIM_U32:
    EACH(4, U32);
  case SIM_I64:
    EACH(8, I64);
  case SIM_U64:
    EACH(8, U64);
  case SIM_F32:
    EACH(4, F32);
  case SIM_F64:
    EACH(8, F64);
  case SIM_F16:
    EACH(2, F16);
  case SIM_BF16:
    EACH(2, BF16);
  default: {
    const float *values = f8_values(t);
    EACH(1, F8);
  }
  }
}

#undef I1
#undef I8
#undef U8
#undef I16
#undef U16
#undef I32
#undef U32
#undef I64
#undef U64
#undef F32
#undef F64
#undef F16
#undef BF16
#undef F8

/* Rounded to nearest even, which the default rounding mode is; out of range the nearest value; NaN gives 0. */
#define CLIP(T, x, low, high) \
  ((x) != (x) ? (T)0 : (x) <= (float)(low) ? (T)(low) : (x) >= (float)(high) ? (T)(high) : (T)rintf(x))
#define I1(p) STORE_AS(p, int8_t, in[k] > 0.5f)
#define I8(p) STORE_AS(p, int8_t, CLIP(int8_t, in[k], INT8_MIN, INT8_MAX))
#define U8(p) STORE_AS(p, uint8_t, CLIP(uint8_t, in[k], 0, UINT8_MAX))
#define I16(p) STORE_AS(p, int16_t, CLIP(int16_t, in[k], INT16_MIN, INT16_MAX))
#define U16(p) STORE_AS(p, uint16_t, CLIP(uint16_t, in[k], 0, UINT16_MAX))
#define I32(p) STORE_AS(p, int32_t, CLIP(int32_t, in[k], INT32_MIN, INT32_MAX))
#define U32(p) STORE_AS(p, uint32_t, CLIP(uint32_t, in[k], 0, UINT32_MAX))
#define I64(p) STORE_AS(p, int64_t, CLIP(int64_t, in[k], INT64_MIN, INT64_MAX))
#define U64(p) STORE_AS(p, uint64_t, CLIP(uint64_t, in[k], 0, UINT64_MAX))
#define F32(p) STORE_AS(p, float, in[k])
#define F64(p) STORE_AS(p, double, (double)in[k])
#define F16(p) STORE_AS(p, uint16_t, f16_bits(in[k]))
#define BF16(p) STORE_AS(p, uint16_t, bf16_bits(in[k]))
#define F8(p) STORE_AS(p, uint8_t, (uint8_t)hlo_literal_encode_float(dtype_of(t), (double)in[k]))

SIM_PER_MACHINE void sim_store_f32(enum sim_type t, char *at, int64_t step, int64_t n, const float *in) {
  switch (t) {
  case SIM_I1:
    EACH(1, I1);
  case SIM_I8:
    EACH(1, I8);
  case SIM_U8:
    EACH(1, U8);
  case SIM_I16:
    EACH(2, I16);
  case SIM_U16:
    EACH(2, U16);
  case SIM_I32:
    EACH(4, I32);
  case SIM_U32:
    EACH(4, U32);
  case SIM_I64:
    EACH(8, I64);
  case SIM_U64:
    EACH(8, U64);
  case SIM_F32:
    EACH(4, F32);
  case SIM_F64:
    EACH(8, F64);
  case SIM_F16:
    EACH(2, F16);
  case SIM_BF16:
    EACH(2, BF16);
  default:
    EACH(1, F8);
  }
}

#undef I1
#undef I8
#undef U8
#undef I16
#undef U16
#undef I32
#undef U32
#undef I64
#undef U64
#undef F32
#undef F64
#undef F16
#undef BF16
#undef F8

#define BOOL(p) LOAD_AS(p, int8_t, v != 0)
#define BITS8(p) LOAD_AS(p, uint8_t, v)
#define I8(p) LOAD_AS(p, int8_t, v)
#define I16(p) LOAD_AS(p, int16_t, v)
#define BITS16(p) LOAD_AS(p, uint16_t, v)
#define I32(p) LOAD_AS(p, int32_t, v)
#define BITS32(p) LOAD_AS(p, uint32_t, v)
#define I64(p) LOAD_AS(p, int64_t, v)

SIM_PER_MACHINE void sim_load_int(enum sim_type t, const char *at, int64_t step, int64_t n, int64_t *out) {
  switch (t) {
  case SIM_I1:
    EACH(1, BOOL);
  case SIM_I8:
    EACH(1, I8);
  case SIM_I16:
    EACH(2, I16);
  case SIM_U16:
  case SIM_F16:
  case SIM_BF16:
    EACH(2, BITS16);
  case SIM_I32:
    EACH(4, I32);
  case SIM_U32:
  case SIM_F32:
    EACH(4, BITS32);
  case SIM_I64:
  case SIM_U64:
  case SIM_F64:
    EACH(8, I64);
  default:
    EACH(1, BITS8);
  }
}

#define LOW8(p) memcpy((p), &in[k], 1);
#define LOW16(p) memcpy((p), &in[k], 2);
#define LOW32(p) memcpy((p), &in[k], 4);
#define LOW64(p) memcpy((p), &in[k], 8);

SIM_PER_MACHINE void sim_store_int(enum sim_type t, char *at, int64_t step, int64_t n, const int64_t *in) {
  if (t == SIM_I1) {
    for (int64_t k = 0; k < n; k++, at += step)
      *at = in[k] & 1;
    return;
  }
  switch (sim_type_bytes(t)) { /* little-endian: the low bytes are first */
  case 1:
    EACH(1, LOW8);
  case 2:
    EACH(2, LOW16);
  case 4:
    EACH(4, LOW32);
  default:
    EACH(8, LOW64);
  }
}

void sim_store_int_value(enum sim_type t, char *at, int64_t step, int64_t n, const int64_t *in, bool is_unsigned) {
  if (!sim_type_is_float(t)) {
    sim_store_int(t, at, step, n, in);
    return;
  }
  for (int64_t k = 0; k < n; k++, at += step) {
    const float v = is_unsigned ? (float)(uint32_t)in[k] : (float)(int32_t)in[k];
    sim_store_f32(t, at, step, 1, &v);
  }
}

#define COPY(bytes) \
  for (int64_t k = 0; k < n; k++) \
    memcpy(to + k * to_step, from + k * from_step, (bytes)); \
  break

void sim_copy(int size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
  if (to_step == size && from_step == size) {
    memmove(to, from, (size_t)n * (size_t)size);
    return;
  }
  switch (size) {
  case 1:
    COPY(1);
  case 2:
    COPY(2);
  case 4:
    COPY(4);
  default:
    assert(size == 8);
    COPY(8);
  }
}

void sim_store_register(enum sim_type t, int64_t reg, char *at) {
  if (!sim_type_is_float(t)) {
    sim_store_int(t, at, 0, 1, &reg);
    return;
  }
  double v;
  memcpy(&v, &reg, sizeof v);
  if (t == SIM_F64) {
    memcpy(at, &v, sizeof v);
    return;
  }
  const float narrow = (float)v;
  sim_store_f32(t, at, 0, 1, &narrow);
}

int64_t sim_load_register(enum sim_type t, const char *at) {
  int64_t bits;
  if (!sim_type_is_float(t)) {
    sim_load_int(t, at, 0, 1, &bits);
    return bits;
  }
  double v;
  if (t == SIM_F64) {
    memcpy(&v, at, sizeof v);
  } else {
    float f;
    sim_load_f32(t, at, 0, 1, &f);
    v = (double)f;
  }
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
