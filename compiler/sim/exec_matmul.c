/* exec_matmul: dst(m, n) += sum over k of stationary(k, m) * moving(k, n), in f32. */
#include <string.h>

#include "sim/machine.h"
#include "sim/product.h"

/* The first matmul of a group that writes an element overwrites it; a later one adds.  What another instruction
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
    if (*shadow == dst->group)
      sim_load_f32(dst->type, at, 0, 1, &old);
    else
      old = 0;
    old += sums[j];
    sim_store_f32(dst->type, at, 0, 1, &old);
    *shadow = dst->group;
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
    to[j] = *shadow == dst->group ? to[j] + sums[j] : sums[j];
  memset(shadow, dst->group, (size_t)n);
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
  const size_t floats = (size_t)(depth * rows + depth * columns + rows * columns);
  if (!sim_scratch(m, floats * sizeof(float), &memory))
    return false;
  float *x = memory, *y = x + depth * rows, *sums = y + depth * columns;
  for (int64_t k = 0; k < depth; k++)
    if (!sim_read_f32(m, &a, k, 0, rows, x + k * rows) || !sim_read_f32(m, &b, k, 0, columns, y + k * columns))
      return false;
  memset(sums, 0, (size_t)(rows * columns) * sizeof *sums);
  sim_multiply(&(struct sim_matrix){(char *)x, rows, depth, 1, rows},
               &(struct sim_matrix){(char *)y, depth, columns, columns, 1},
               &(struct sim_matrix){(char *)sums, rows, columns, columns, 1}, DT_F32);
  for (int64_t p = 0; p < rows; p++)
    if (!add_plain_row(&dst, p, columns, sums + p * columns) && !add_row(m, &dst, p, columns, sums + p * columns))
      return false;
  return true;
}
