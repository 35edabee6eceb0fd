#include "sim/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "hlo/literal.h"

/* The narrow floats that have no C type, by the functions that read and print literals. */
static enum dtype dtype_of(enum sim_type t) {
  switch (t) {
  case SIM_F16:
    return DT_F16;
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

static float bf16_value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float v;
  memcpy(&v, &wide, sizeof v);
  return v;
}

static uint16_t bf16_bits(float v) {
  uint32_t b;
  memcpy(&b, &v, sizeof b);
  if ((b & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(b >> 16 | 0x40); /* NaN stays NaN, quiet */
  return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

#define EACH(body) \
  for (int64_t k = 0; k < n; k++, at += step) { \
    body \
  } \
  break
#define LOAD(T, to) \
  EACH({ \
    T v; \
    memcpy(&v, at, sizeof v); \
    out[k] = (to)v; \
  })

void sim_load_f32(enum sim_type t, const char *at, int64_t step, int64_t n, float *out) {
  switch (t) {
  case SIM_F32:
    if (step == sizeof *out) {
      memcpy(out, at, (size_t)n * sizeof *out);
      break;
    }
    LOAD(float, float);
  case SIM_BF16:
    EACH({
      uint16_t v;
      memcpy(&v, at, sizeof v);
      out[k] = bf16_value(v);
    });
  case SIM_F16:
    EACH({
      uint16_t v;
      memcpy(&v, at, sizeof v);
      out[k] = (float)hlo_literal_decode_float(DT_F16, v);
    });
  case SIM_F64:
    LOAD(double, float);
  case SIM_I1:
    EACH(out[k] = *at != 0;);
  case SIM_I8:
    LOAD(int8_t, float);
  case SIM_U8:
    LOAD(uint8_t, float);
  case SIM_I16:
    LOAD(int16_t, float);
  case SIM_U16:
    LOAD(uint16_t, float);
  case SIM_I32:
    LOAD(int32_t, float);
  case SIM_U32:
    LOAD(uint32_t, float);
  case SIM_I64:
    LOAD(int64_t, float);
  case SIM_U64:
    LOAD(uint64_t, float);
  default: {
    const float *values = f8_values(t);
    EACH(out[k] = values[(uint8_t)*at];);
  }
  }
}

/* Truncated; out of range the nearest value; NaN gives 0. */
#define STORE_INT(T, low, high) \
  EACH({ \
    const float x = in[k]; \
    T v = x != x ? 0 : x <= (float)(low) ? (T)(low) : x >= (float)(high) ? (T)(high) : (T)x; \
    memcpy(at, &v, sizeof v); \
  })

void sim_store_f32(enum sim_type t, char *at, int64_t step, int64_t n, const float *in) {
  switch (t) {
  case SIM_F32:
    if (step == sizeof *in) {
      memcpy(at, in, (size_t)n * sizeof *in);
      break;
    }
    EACH(memcpy(at, &in[k], sizeof *in););
  case SIM_BF16:
    EACH({
      const uint16_t v = bf16_bits(in[k]);
      memcpy(at, &v, sizeof v);
    });
  case SIM_F16:
    EACH({
      const uint16_t v = (uint16_t)hlo_literal_encode_float(DT_F16, (double)in[k]);
      memcpy(at, &v, sizeof v);
    });
  case SIM_F64:
    EACH({
      const double v = (double)in[k];
      memcpy(at, &v, sizeof v);
    });
  case SIM_I1:
    EACH(*at = in[k] >= 1;);
  case SIM_I8:
    STORE_INT(int8_t, INT8_MIN, INT8_MAX);
  case SIM_U8:
    STORE_INT(uint8_t, 0, UINT8_MAX);
  case SIM_I16:
    STORE_INT(int16_t, INT16_MIN, INT16_MAX);
  case SIM_U16:
    STORE_INT(uint16_t, 0, UINT16_MAX);
  case SIM_I32:
    STORE_INT(int32_t, INT32_MIN, INT32_MAX);
  case SIM_U32:
    STORE_INT(uint32_t, 0, UINT32_MAX);
  case SIM_I64:
    STORE_INT(int64_t, INT64_MIN, INT64_MAX);
  case SIM_U64:
    STORE_INT(uint64_t, 0, UINT64_MAX);
  default:
    EACH(*at = (char)hlo_literal_encode_float(dtype_of(t), (double)in[k]););
  }
}

void sim_load_int(enum sim_type t, const char *at, int64_t step, int64_t n, int64_t *out) {
  switch (t) {
  case SIM_I1:
    EACH(out[k] = *at != 0;);
  case SIM_I8:
    LOAD(int8_t, int64_t);
  case SIM_I16:
    LOAD(int16_t, int64_t);
  case SIM_U16:
  case SIM_F16:
  case SIM_BF16:
    LOAD(uint16_t, int64_t);
  case SIM_I32:
    LOAD(int32_t, int64_t);
  case SIM_U32:
  case SIM_F32:
    LOAD(uint32_t, int64_t);
  case SIM_I64:
  case SIM_U64:
  case SIM_F64:
    LOAD(int64_t, int64_t);
  default:
    LOAD(uint8_t, int64_t);
  }
}

void sim_store_int(enum sim_type t, char *at, int64_t step, int64_t n, const int64_t *in) {
  if (t == SIM_I1) {
    for (int64_t k = 0; k < n; k++, at += step)
      *at = in[k] & 1;
    return;
  }
  switch (sim_type_bytes(t)) { /* little-endian: the low bytes are first */
  case 1:
    EACH(memcpy(at, &in[k], 1););
  case 2:
    EACH(memcpy(at, &in[k], 2););
  case 4:
    EACH(memcpy(at, &in[k], 4););
  default:
    EACH(memcpy(at, &in[k], 8););
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
