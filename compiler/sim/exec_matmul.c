/* exec_matmul: dst(m, n) += sum over k of stationary(k, m) * moving(k, n), in f32. */
#include <assert.h>
#include <string.h>

#include "sim/machine.h"

enum { LANES = 16, ROWS = 4, COLS = 2 * LANES };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define PER_MACHINE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3", "fp-contract=fast")))
#else /* the choice is made before a sanitizer's runtime is ready */
#define PER_MACHINE
#endif

/* c[rows][columns] = a' b, of a[depth][rows] and b[depth][columns]; rows is a multiple of ROWS, columns of COLS.  A
 * block of ROWS x COLS sums stays in registers. */
PER_MACHINE static void product(int64_t depth, int64_t rows, int64_t columns, const float *a, const float *b,
                                float *c) {
  for (int64_t j = 0; j < columns; j += COLS)
    for (int64_t i = 0; i < rows; i += ROWS) {
      lanes acc[ROWS][2] = {{{0}}};
      for (int64_t k = 0; k < depth; k++) {
        const float *x = a + k * rows + i;
        const lanes b0 = *(const lanes *)(b + k * columns + j), b1 = *(const lanes *)(b + k * columns + j + LANES);
        for (int r = 0; r < ROWS; r++) {
          acc[r][0] += x[r] * b0;
          acc[r][1] += x[r] * b1;
        }
      }
      for (int r = 0; r < ROWS; r++)
        memcpy(c + (i + r) * columns + j, acc[r], sizeof acc[r]);
    }
}

static int64_t round_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* The first matmul that writes an element of an allocation overwrites it; a later one adds.  What another instruction
 * wrote there cannot be added to. */
static bool add_row(struct sim_machine *m, const struct sim_access *dst, int64_t p, int64_t n, const float *sums) {
  const struct sim_operand *o = dst->o;
  int64_t base = 0, rest = p;
  for (int k = o->par_dims - 1; k >= 0; k--) {
    base += rest % o->dim[k].n * o->dim[k].step;
    rest /= o->dim[k].n;
  }
  for (int64_t j = 0; j < n; j++) {
    int64_t offset = base, left = j;
    float old;
    for (int d = dst->n_free - 1; d >= 0; d--) {
      offset += left % dst->free[d].n * dst->free[d].step;
      left /= dst->free[d].n;
    }
    uint8_t *shadow = dst->shadow + offset / dst->size;
    char *at = dst->at + offset;
    if (*shadow == SIM_WRITTEN)
      return sim_fail(m, SIM_FAULT_ACCUMULATION, "dst: adds to what no matmul has written");
    if (*shadow == SIM_STARTED)
      sim_load_f32(dst->type, at, 0, 1, &old);
    else
      old = 0;
    old += sums[j];
    sim_store_f32(dst->type, at, 0, 1, &old);
    *shadow = SIM_STARTED;
  }
  return true;
}

/* The same for rows of adjacent f32 elements of one state. */
static bool add_plain_row(const struct sim_access *dst, int64_t p, int64_t n, const float *sums) {
  const struct sim_operand *o = dst->o;
  if (dst->type != SIM_F32 || dst->n_free != 1 || (dst->free[0].step != 4 && n > 1) || o->par_dims != 1)
    return false;
  uint8_t *shadow = dst->shadow + p * o->dim[0].step / 4;
  float *to = (float *)(void *)(dst->at + p * o->dim[0].step);
  if (*shadow == SIM_WRITTEN || (n > 1 && memcmp(shadow, shadow + 1, (size_t)n - 1)))
    return false;
  for (int64_t j = 0; j < n; j++)
    to[j] = *shadow == SIM_STARTED ? to[j] + sums[j] : sums[j];
  memset(shadow, SIM_STARTED, (size_t)n);
  return true;
}

bool sim_exec_matmul(struct sim_machine *m) {
  struct sim_access dst, a, b;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &a) || !sim_open(m, 2, &b))
    return false;
  const int64_t depth = a.o->partitions, rows = a.o->elements, columns = b.o->elements;
  if (b.o->partitions != depth || dst.o->partitions != rows || dst.o->elements != columns)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst is not as large as the product");
  const int64_t wide = round_up(columns, COLS), tall = round_up(rows, ROWS);
  const size_t floats = (size_t)(depth * tall + depth * wide + tall * wide);
  if (!sim_scratch(m, floats * sizeof(float), &memory))
    return false;
  float *x = memory, *y = x + depth * tall, *sums = y + depth * wide;
  for (int64_t k = 0; k < depth; k++) {
    memset(x + k * tall + rows, 0, (size_t)(tall - rows) * sizeof *x);
    memset(y + k * wide + columns, 0, (size_t)(wide - columns) * sizeof *y);
    if (!sim_read_f32(m, &a, k, 0, rows, x + k * tall) || !sim_read_f32(m, &b, k, 0, columns, y + k * wide))
      return false;
  }
  product(depth, tall, wide, x, y, sums);
  for (int64_t p = 0; p < rows; p++)
    if (!add_plain_row(&dst, p, columns, sums + p * wide) && !add_row(m, &dst, p, columns, sums + p * wide))
      return false;
  return true;
}
