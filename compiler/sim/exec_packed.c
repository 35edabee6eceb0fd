/* exec_packed: four elements in an integer, and scales that 32 of them share (nisa/nisa.h, matmul_mx). */
#include <math.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/row.h"

enum { FOUR = 4, SHARE = 8, GROUP = 32, BIAS = 127, SCALE_NAN = 255 };

/* The partition of the scales that has those of partition p. */
static int64_t scale_row(int64_t p) {
  return p / GROUP * GROUP + p % GROUP / SHARE;
}

static float scale_of(int64_t x) {
  x &= 0xff;
  return x == SCALE_NAN ? NAN : ldexpf(1, (int)x - BIAS);
}

/* f4E2M1FN: sign, two bits of exponent, one of mantissa. */
static float four_bits(int64_t x) {
  static const float magnitude[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return x & 8 ? -magnitude[x & 7] : magnitude[x & 7];
}

static float element_of(enum sim_type format, int64_t packed, int j) {
  float v;
  if (format == SIM_NONE)
    return four_bits(packed >> 4 * j & 15);
  const char byte = (char)(packed >> 8 * j & 0xff);
  sim_load_f32(format, &byte, 0, 1, &v);
  return v;
}

bool sim_read_packed(struct sim_machine *m, const struct sim_access *x, const struct sim_access *scale,
                     enum sim_type format, float *out) {
  const int64_t n = x->o->elements;
  int64_t packed[SIM_CHUNK], scales[SIM_CHUNK];
  for (int64_t p = 0; p < x->o->partitions; p++)
    for (int64_t f = 0; f < n; f += SIM_CHUNK) {
      const int64_t count = n - f < SIM_CHUNK ? n - f : SIM_CHUNK;
      if (!sim_read_int(m, x, x->type, p, f, count, packed) ||
          !sim_read_int(m, scale, scale->type, scale_row(p), f, count, scales))
        return false;
      for (int j = 0; j < FOUR; j++)
        for (int64_t k = 0; k < count; k++)
          out[(p * FOUR + j) * n + f + k] = element_of(format, packed[k], j) * scale_of(scales[k]);
    }
  return true;
}

/* ---- quantize_mx ------------------------------------------------------------------------------------------------- */

/* The scale of a group whose largest magnitude is `most`. */
static int64_t scale_for(enum sim_type format, float most) {
  if (!isfinite(most))
    return SCALE_NAN;
  if (most == 0)
    return 0;
  const int exponent = ilogbf(most) - (format == SIM_F8E4M3FN ? 7 : 14) + BIAS;
  return exponent < 0 ? 0 : exponent;
}

/* Eight partitions from `first` on, whose elements are in x, one row of n after the other. */
static void quantize(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *scale, int64_t first,
                     int64_t n, const float *x) {
  const enum sim_type format = m->instr->format[0];
  for (int64_t c = 0; c < n / FOUR; c++) {
    float most = 0;
    for (int64_t p = 0; p < SHARE; p++)
      for (int j = 0; j < FOUR; j++) {
        const float v = fabsf(x[p * n + FOUR * c + j]);
        most = v > most || v != v ? v : most;
      }
    const int64_t s = scale_for(format, most);
    const float by = s == SCALE_NAN ? 1 : scale_of(s);
    sim_write_int(scale, scale_row(first), c, 1, &s);
    for (int64_t p = 0; p < SHARE; p++) {
      int64_t packed = 0;
      for (int j = 0; j < FOUR; j++) {
        const float v = x[p * n + FOUR * c + j] / by;
        unsigned char byte;
        sim_store_f32(format, (char *)&byte, 0, 1, &v);
        packed |= (int64_t)byte << 8 * j;
      }
      sim_write_int(dst, first + p, c, 1, &packed);
    }
  }
}

bool sim_exec_quantize(struct sim_machine *m) {
  struct sim_access dst, scale, src;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &scale) || !sim_open(m, 2, &src))
    return false;
  const int64_t n = src.o->elements;
  if (src.o->partitions != dst.o->partitions || n != FOUR * dst.o->elements || src.o->partitions % GROUP)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "the operands have shapes that do not fit");
  if (!sim_scratch(m, (size_t)(SHARE * n) * sizeof(float), &memory))
    return false;
  float *x = memory;
  for (int64_t first = 0; first < src.o->partitions; first += SHARE) {
    for (int64_t p = 0; p < SHARE; p++)
      if (!sim_work(m, n) || !sim_read_f32(m, &src, first + p, 0, n, x + p * n))
        return false;
    quantize(m, &dst, &scale, first, n, x);
  }
  return true;
}
