/* exec_matmul: dst(m, n) += sum over k of stationary(k, m) * moving(k, n), in f32. */
#include <assert.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/product.h"

/* What another instruction wrote cannot be added to.  In engine programs it may be left from a buffer that had the same
 * place before, and is overwritten: nisa_verify sees to it that no other instruction writes to the buffer itself. */
static bool is_in_the_way(const struct sim_machine *m, uint8_t state) {
  return state == SIM_WRITTEN && !m->program->has_engines;
}

/* The state of dst, which nisa_verify has found to be in PSUM, from its first element on. */
static uint8_t *groups_of(const struct sim_access *dst) {
  assert(dst->state.groups);
  return dst->state.groups + dst->state.first;
}

/* The first matmul of a group that writes an element overwrites it; a later one adds. */
static bool add_row(struct sim_machine *m, const struct sim_access *dst, uint8_t group, int64_t p, int64_t n,
                    const float *sums) {
  const struct sim_operand *o = dst->o;
  int64_t base = 0, rest = p;
  for (int k = o->par_dims - 1; k >= 0; k--) {
    base += rest % dst->dim[k].n * dst->dim[k].step;
    rest /= dst->dim[k].n;
  }
  for (int64_t j = 0; j < n; j++) {
    int64_t offset = base, left = j;
    float old;
    for (int d = dst->n_free - 1; d >= 0; d--) {
      offset += left % dst->free[d].n * dst->free[d].step;
      left /= dst->free[d].n;
    }
    uint8_t *state = groups_of(dst) + offset / dst->size;
    char *at = dst->at + offset;
    if (is_in_the_way(m, *state))
      return sim_fail(m, SIM_FAULT_ACCUMULATION, "dst: adds to what no matmul has written");
    if (*state == group)
      sim_load_f32(dst->type, at, 0, 1, &old);
    else
      old = 0;
    old += sums[j];
    sim_store_f32(dst->type, at, 0, 1, &old);
    *state = group;
  }
  return true;
}

/* Rounds to 10 bits of the mantissa, nearest even.  Infinities and NaN stay. */
static void round_to_tf32(float *v, int64_t n) {
  enum { DROPPED = 13 };
  for (int64_t k = 0; k < n; k++) {
    uint32_t bits;
    memcpy(&bits, v + k, sizeof bits);
    if ((bits >> 23 & 0xff) == 0xff)
      continue;
    bits += (1u << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1);
    bits &= ~((1u << DROPPED) - 1);
    memcpy(v + k, &bits, sizeof bits);
  }
}

/* x as a matrix of f32 with a row for each partition: in place, or widened or rounded into room. */
static bool as_matrix(struct sim_machine *m, const struct sim_access *x, bool is_tf32, float *room,
                      struct sim_matrix *out) {
  const int64_t rows = x->o->partitions, columns = x->o->elements,
                distance = x->type == SIM_F32 && !is_tf32 ? sim_plain(x) : -1;
  if (distance >= 0) {
    *out = (struct sim_matrix){x->at, rows, columns, distance, 1};
    return sim_check_plain(m, x);
  }
  *out = (struct sim_matrix){(char *)room, rows, columns, columns, 1};
  for (int64_t k = 0; k < rows; k++)
    if (!sim_read_f32(m, x, k, 0, columns, room + k * columns))
      return false;
  if (is_tf32)
    round_to_tf32(room, rows * columns);
  return true;
}

static struct sim_matrix transposed(struct sim_matrix x) {
  return (struct sim_matrix){x.data, x.cols, x.rows, x.col_stride, x.row_stride};
}

/* Makes dst, which is plain, ready for sums to be added in place: zero where the group starts here.  False if its rows are
 * not all in one state; then nothing has changed. */
static bool start_in_place(const struct sim_machine *m, const struct sim_access *dst, uint8_t group, int64_t distance) {
  const int64_t rows = dst->o->partitions, columns = dst->o->elements;
  uint8_t *groups = groups_of(dst);
  const uint8_t state = *groups;
  if (is_in_the_way(m, state))
    return false;
  for (int64_t p = 0; p < rows; p++) {
    const uint8_t *s = groups + p * distance;
    if (*s != state || (columns > 1 && memcmp(s, s + 1, (size_t)columns - 1)))
      return false;
  }
  for (int64_t p = 0; p < rows && state != group; p++) {
    memset(dst->at + p * distance * 4, 0, (size_t)columns * 4);
    memset(groups + p * distance, group, (size_t)columns);
  }
  return true;
}

/* is_transpose: the elements go through unchanged, even infinities and NaN. */
static bool pass_through(struct sim_machine *m, const struct sim_access *dst, struct sim_matrix x, float *row) {
  if (dst->o->elements != x.cols)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "moving is no identity matrix");
  for (int64_t p = 0; p < x.rows; p++) {
    for (int64_t k = 0; k < x.cols; k++)
      memcpy(row + k, x.data + (p * x.row_stride + k * x.col_stride) * (int64_t)sizeof *row, sizeof *row);
    if (!add_row(m, dst, sim_group_of(m, dst), p, x.cols, row))
      return false;
  }
  return true;
}

/* Operand k, 1 or 2, of a matmul_mx as a matrix with four rows for each partition. */
static bool as_packed(struct sim_machine *m, int k, const struct sim_access *x, float *room, struct sim_matrix *out) {
  struct sim_access scale;
  *out = (struct sim_matrix){(char *)room, 4 * x->o->partitions, x->o->elements, x->o->elements, 1};
  return sim_open(m, k + 2, &scale) && sim_read_packed(m, x, &scale, m->instr->format[k - 1], room);
}

bool sim_exec_matmul(struct sim_machine *m) {
  const bool is_packed = m->instr->kind == NISA_MATMUL_MX;
  struct sim_access dst, a, b;
  struct sim_matrix x, y;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &a) || !sim_open(m, 2, &b))
    return false;
  const int64_t depth = (is_packed ? 4 : 1) * a.o->partitions, rows = a.o->elements, columns = b.o->elements;
  if (b.o->partitions != a.o->partitions || dst.o->partitions != rows || dst.o->elements != columns)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst is not as large as the product");
  const size_t floats = (size_t)(depth * rows + depth * columns + rows * columns);
  if (!sim_scratch(m, floats * sizeof(float), &memory))
    return false;
  float *room = memory, *sums = room + depth * (rows + columns);
  if (is_packed ? !as_packed(m, 1, &a, room, &x) || !as_packed(m, 2, &b, room + depth * rows, &y)
                : !as_matrix(m, &a, m->instr->is_tf32[0], room, &x) ||
                      !as_matrix(m, &b, m->instr->is_tf32[1], room + depth * rows, &y))
    return false;
  x = transposed(x);
  if (m->instr->is_transpose)
    return pass_through(m, &dst, x, sums);
  const uint8_t group = sim_group_of(m, &dst);
  const int64_t distance = dst.type == SIM_F32 ? sim_plain(&dst) : -1;
  if (distance >= 0 && start_in_place(m, &dst, group, distance)) {
    sim_multiply(&x, &y, &(struct sim_matrix){dst.at, rows, columns, distance, 1}, DT_F32);
    return true;
  }
  memset(sums, 0, (size_t)(rows * columns) * sizeof *sums);
  sim_multiply(&x, &y, &(struct sim_matrix){(char *)sums, rows, columns, columns, 1}, DT_F32);
  for (int64_t p = 0; p < rows; p++)
    if (!add_row(m, &dst, group, p, columns, sums + p * columns))
      return false;
  return true;
}
