/* draw: pseudo-random numbers for inputs, the same on every machine.
 *
 * The generator is splitmix64, whose n-th number depends on its seed and on n alone.  So numbers are made block by block in
 * loops that the compiler turns into vectors: the weights of one layer are millions of numbers.
 */
#include "trace/draw.h"

#include "base/per_machine.h"

enum { BLOCK = 512, WIDE_INT_MAX = 1000000 };
static const uint64_t step = 0x9e3779b97f4a7c15u;

PER_MACHINE static void make_random(uint64_t state, uint64_t *out) {
  for (uint64_t k = 0; k < BLOCK; k++) {
    uint64_t z = state + (k + 1) * step;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    out[k] = z ^ z >> 31;
  }
}

static inline double uniform(uint64_t r) { /* in (0, 1) */
  return ((double)(int64_t)(r >> 11) + 0.5) * 0x1p-53;
}

PER_MACHINE static void around_zero(int n, const uint64_t *r, float *out) {
  for (int k = 0; k < n; k++)
    out[k] = (float)(2 * uniform(r[k]) - 1);
}

/* One of 16 is 0, one is -0, two are whole numbers, so that there are equal ones. */
PER_MACHINE static void wide(int n, const uint64_t *r, float *out) {
  for (int k = 0; k < n; k++) {
    const uint64_t kind = r[k] & 15;
    const float any = (float)(16 * uniform(r[k]) - 8), whole = (float)((int)(r[k] >> 60) - 8);
    const float zero = kind ? -0.0f : 0.0f;
    out[k] = kind > 3 ? any : kind > 1 ? whole : zero;
  }
}

static float other_float(enum trace_ranges ranges, uint64_t r) {
  const double u = uniform(r);
  switch (ranges) {
  case TRACE_POSITIVE:
    return (float)(0.25 + 1.75 * u);
  case TRACE_LARGE:
    return (float)(2 + 6 * u);
  case TRACE_WIDE_NONZERO:
    return (r & 7) == 0 ? (float)((int)(r >> 60) < 8 ? -2 : 3) : (float)((r & 8 ? -1 : 1) * (0.0625 + 7.9375 * u));
  default:
    return (r & 7) == 0 ? (float)(1 + (int)(r >> 60)) : (float)(0.0625 + 15.9375 * u);
  }
}

static void make_floats(enum trace_ranges ranges, int n, const uint64_t *r, float *out) {
  if (ranges == TRACE_AROUND_ZERO)
    around_zero(n, r, out);
  else if (ranges == TRACE_WIDE || ranges == TRACE_WIDE_FLOATS)
    wide(n, r, out);
  else
    for (int k = 0; k < n; k++)
      out[k] = other_float(ranges, r[k]);
}

static int32_t random_int(enum dtype t, enum trace_ranges ranges, uint64_t r) {
  const int32_t small = (int32_t)((r >> 33) & 3);
  if (t == DT_BOOL)
    return small & 1;
  if (ranges != TRACE_AROUND_ZERO && ranges != TRACE_WIDE && ranges != TRACE_WIDE_FLOATS)
    return small + 1;
  if (ranges != TRACE_WIDE)
    return small;
  if ((r & 7) == 0)
    return small;
  const int64_t most = dtype_size(t) == 1 ? 127 : dtype_size(t) == 2 ? 32767 : WIDE_INT_MAX;
  const int64_t v = (int64_t)(uniform(r) * (double)most);
  return (int32_t)(dtype_kind(t) == DK_SIGNED && (r & 8) ? -v : v);
}

void draw_values(enum dtype t, int64_t n, enum trace_ranges ranges, uint64_t *state, void *data) {
  uint64_t r[BLOCK];
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int most = n - first < BLOCK ? (int)(n - first) : BLOCK;
    make_random(*state, r);
    *state += (uint64_t)most * step;
    if (dtype_is_float(t))
      make_floats(ranges, most, r, (float *)data + first);
    for (int k = 0; !dtype_is_float(t) && k < most; k++)
      ((int32_t *)data)[first + k] = random_int(t, ranges, r[k]);
  }
}
