/* product: computes C += A B in f32, fast enough to check kernels of real sizes.
 *
 * The algorithm is classic blocking.  A block of B is packed into panels of COLS columns and stays in the cache
 * while groups of ROWS rows of A are multiplied with it; the innermost step keeps ROWS x COLS sums, or half of them, in
 * registers.  The compiler makes a version of that step for each kind of machine, and one of them is chosen at start-up.  A
 * kernel of 100 GFLOP takes some seconds; in plain loops it would take minutes.
 */
#include "sim/product.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/literal.h"
#include "sim/simd.h"

enum {
  LANES = SIM_LANES,
  ROWS = 8,
  COLS = 2 * LANES,
  DEPTH = 256, /* rows of a block of B */
  WIDTH = 512, /* columns of a block of B, a multiple of COLS: 512 KiB */
};

typedef sim_lanes lanes;

/* Adds the product of n rows, stored as [depth][ROWS], and a panel, stored as [depth][COLS], to n rows of c, which are
 * `stride` apart.  n is a constant, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void add_sums(int n, int64_t depth, const float *rows, const float *panel,
                                                           float *c, int64_t stride) {
  lanes acc[ROWS][2] = {{{0}}};

  for (int64_t q = 0; q < depth; q++) {
    const lanes b0 = *(const lanes *)(panel + q * COLS), b1 = *(const lanes *)(panel + q * COLS + LANES);
    for (int i = 0; i < n; i++) {
      acc[i][0] += rows[q * ROWS + i] * b0;
      acc[i][1] += rows[q * ROWS + i] * b1;
    }
  }
  for (int i = 0; i < n; i++) {
    *(lanes *)(c + i * stride) += acc[i][0];
    *(lanes *)(c + i * stride + LANES) += acc[i][1];
  }
}

SIM_PER_MACHINE_WITH("O3", "fp-contract=fast")
static void add_all(int64_t depth, const float *rows, const float *panel, float *c, int64_t stride) {
  add_sums(ROWS, depth, rows, panel, c, stride);
}

SIM_PER_MACHINE_WITH("O3", "fp-contract=fast")
static void add_half(int64_t depth, const float *rows, const float *panel, float *c, int64_t stride) {
  add_sums(ROWS / 2, depth, rows, panel, c, stride);
}

/* True if the machine has registers for the sums of ROWS rows. */
static bool has_many_registers(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

/* Adds the product of ROWS rows and a panel to ROWS rows of c. */
static void add_product(int64_t depth, const float *rows, const float *panel, float *c, int64_t stride) {
  if (has_many_registers()) {
    add_all(depth, rows, panel, c, stride);
  } else {
    add_half(depth, rows, panel, c, stride);
    add_half(depth, rows + ROWS / 2, panel, c + ROWS / 2 * stride, stride);
  }
}

/* ---- packing --------------------------------------------------------------------------------------------------- */

static float element(enum dtype t, const char *p) {
  uint16_t bits;
  uint32_t wide;
  float v;

  memcpy(&bits, p, sizeof bits);
  if (t != DT_BF16)
    return (float)hlo_literal_decode_float(t, bits);
  wide = (uint32_t)bits << 16;
  memcpy(&v, &wide, sizeof v);
  return v;
}

static void *allocate(int64_t n_floats) {
  void *p = malloc((size_t)(n_floats + 1) * sizeof(float));
  if (!p)
    arena_oom((size_t)n_floats * sizeof(float));
  return p;
}

/* Returns x if it is f32; otherwise a row-major copy in f32, whose data the caller frees. */
static struct sim_matrix widen(const struct sim_matrix *x, enum dtype t) {
  struct sim_matrix y = *x;

  if (t == DT_F32)
    return y;
  float *to = allocate(x->rows * x->cols);
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++)
      to[i * x->cols + j] = element(t, x->data + (i * x->row_stride + j * x->col_stride) * (int64_t)dtype_size(t));
  y.data = (char *)to;
  y.row_stride = x->cols;
  y.col_stride = 1;
  return y;
}

static const float *at(const struct sim_matrix *x, int64_t i, int64_t j) {
  return (const float *)(const void *)x->data + i * x->row_stride + j * x->col_stride;
}

static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

/* Packs rows q0 … q0+depth-1 and columns j0 … j0+width-1 of b as panels; missing columns are zero. */
SIM_PER_MACHINE static void pack_panels(const struct sim_matrix *b, int64_t q0, int64_t depth, int64_t j0,
                                        int64_t width, float *to) {
  for (int64_t j = 0; j < width; j += COLS) {
    const int64_t n = least(COLS, width - j);
    for (int64_t q = 0; q < depth; q++, to += COLS) {
      const float *from = at(b, q0 + q, j0 + j);
      if (n == COLS && b->col_stride == 1) {
        memcpy(to, from, COLS * sizeof *to);
        continue;
      }
      for (int64_t k = 0; k < n; k++)
        to[k] = from[k * b->col_stride];
      memset(to + n, 0, (size_t)(COLS - n) * sizeof *to);
    }
  }
}

/* Packs rows i0 … i0+n-1 and columns q0 … q0+depth-1 of a as [depth][ROWS]; missing rows are zero. */
SIM_PER_MACHINE static void pack_rows(const struct sim_matrix *a, int64_t i0, int64_t n, int64_t q0, int64_t depth,
                                      float *to) {
  if (n == ROWS && a->row_stride == 1) { /* a is transposed */
    for (int64_t q = 0; q < depth; q++)
      memcpy(to + q * ROWS, at(a, i0, q0 + q), ROWS * sizeof *to);
    return;
  }
  if (n == ROWS && a->col_stride == 1) {
    const float *from = at(a, i0, q0);
    for (int64_t q = 0; q < depth; q++, to += ROWS)
      for (int64_t i = 0; i < ROWS; i++)
        to[i] = from[i * a->row_stride + q];
    return;
  }
  for (int64_t i = 0; i < ROWS; i++) {
    const float *from = at(a, i0 + (i < n ? i : 0), q0);
    for (int64_t q = 0; q < depth; q++)
      to[q * ROWS + i] = i < n ? from[q * a->col_stride] : 0;
  }
}

/* ---- the product ----------------------------------------------------------------------------------------------- */

/* The same at the edges of c, or where its columns are not adjacent. */
static void add_part(const struct sim_matrix *c, int64_t i0, int64_t j0, int64_t depth, const float *rows,
                     const float *panel) {
  const int64_t n = least(ROWS, c->rows - i0), cols = least(COLS, c->cols - j0);
  float sums[ROWS * COLS] = {0};

  add_product(depth, rows, panel, sums, COLS);
  for (int64_t i = 0; i < n; i++) {
    float *out = (float *)(void *)c->data + (i0 + i) * c->row_stride + j0 * c->col_stride;
    for (int64_t j = 0; j < cols; j++)
      out[j * c->col_stride] += sums[i * COLS + j];
  }
}

static void add_tile(const struct sim_matrix *c, int64_t i0, int64_t j0, int64_t depth, const float *rows,
                     const float *panel) {
  if (c->rows - i0 < ROWS || c->cols - j0 < COLS || c->col_stride != 1)
    add_part(c, i0, j0, depth, rows, panel);
  else
    add_product(depth, rows, panel, (float *)(void *)c->data + i0 * c->row_stride + j0, c->row_stride);
}

void sim_multiply(const struct sim_matrix *x, const struct sim_matrix *y, const struct sim_matrix *c, enum dtype t) {
  assert(x->rows == c->rows && y->cols == c->cols && x->cols == y->rows);
  const struct sim_matrix a = widen(x, t), b = widen(y, t);
  static _Thread_local float panels[DEPTH * WIDTH],
      rows[DEPTH * ROWS]; /* kept: to get 512 KiB takes as long as to use it */

  for (int64_t j = 0; j < b.cols; j += WIDTH)
    for (int64_t q = 0; q < b.rows; q += DEPTH) {
      const int64_t width = least(WIDTH, b.cols - j), depth = least(DEPTH, b.rows - q);
      pack_panels(&b, q, depth, j, width, panels);
      for (int64_t i = 0; i < a.rows; i += ROWS) {
        pack_rows(&a, i, least(ROWS, a.rows - i), q, depth, rows);
        for (int64_t p = 0; p < width; p += COLS)
          add_tile(c, i, j + p, depth, rows, panels + p * depth);
      }
    }
  if (a.data != x->data)
    free(a.data);
  if (b.data != y->data)
    free(b.data);
}
