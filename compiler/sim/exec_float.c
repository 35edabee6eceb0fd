/* exec_float: instructions that compute element by element in f32, which are most.
 *
 * A row of f32 that lies in memory without gaps is read where it is, and computed where it belongs; others go through a
 * room on the stack.  An operand of one element per partition is one number for a whole row. */
#include <assert.h>

#include "sim/elementwise.h"
#include "sim/function.h"
#include "sim/row.h"

/* The operands of one partition that are one number. */
struct column {
  bool is_one[3];
  float value[3];
};

static bool read_columns(struct sim_machine *m, const struct elementwise *e, int64_t p, struct column *c) {
  for (int k = 1; k < e->n_src; k++) {
    const struct sim_operand *o = e->src[k].o;
    c->is_one[k] = o->elements == 1;
    if (c->is_one[k] && !sim_read_f32(m, &e->src[k], o->partitions == 1 ? 0 : p, 0, 1, &c->value[k]))
      return false;
  }
  return true;
}

/* out = x op[k] y, or a function of x. */
static void apply_one(const struct sim_instr *i, int k, int64_t n, const float *x, float y, float *out) {
  if (sim_operator_is_function(i->op[k]))
    sim_function_f32(i->op[k], n, x, out);
  else
    sim_arith_scalar_f32(i->op[k], i->is_reversed[k], n, x, y, out);
}

/* The values of dst's elements first … first+n-1 of partition p. */
static bool compute(struct sim_machine *m, const struct elementwise *e, const struct column *c, int64_t p,
                    int64_t first, int64_t n, float *out) {
  const struct sim_instr *i = m->instr;
  float room[2][SIM_CHUNK];
  const float *x = sim_row_f32(m, &e->src[0], p, first, n, room[0]), *y;
  if (!x)
    return false;
  switch (i->kind) {
  case NISA_ACTIVATION:
    sim_scale_f32(n, x, c->value[1], c->value[2], out);
    sim_function_f32(i->op[0], n, out, out);
    return true;
  case NISA_RECIPROCAL:
    sim_arith_scalar_f32(SIM_DIVIDE, true, n, x, 1, out);
    return true;
  case NISA_TENSOR_SCALAR_ARITH:
    apply_one(i, 0, n, x, c->value[1], out);
    if (e->n_src == 3)
      apply_one(i, 1, n, out, c->value[2], out);
    return true;
  case NISA_SCALAR_TENSOR_TENSOR:
    apply_one(i, 0, n, x, c->value[1], room[0]); /* not into out, which may be operand1 */
    y = sim_row_f32(m, &e->src[2], p, first, n, room[1]);
    if (y)
      sim_arith_f32(i->op[1], n, i->is_reversed[1] ? y : room[0], i->is_reversed[1] ? room[0] : y, out);
    return y != NULL;
  default: {
    const enum sim_operator op = i->kind == NISA_TENSOR_TENSOR_POWER ? SIM_POW : i->op[0];
    if (c->is_one[1]) {
      sim_arith_scalar_f32(op, false, n, x, c->value[1], out);
      return true;
    }
    y = sim_row_f32(m, &e->src[1], p, first, n, room[1]);
    if (y)
      sim_arith_f32(op, n, x, y, out);
    return y != NULL;
  }
  }
}

static int64_t least(int64_t x, int64_t y) {
  return x < y ? x : y;
}

static bool add_sum(struct sim_machine *m, const struct elementwise *e, int64_t p, float sum) {
  float old;
  if (!sim_read_f32(m, &e->sum, p, 0, 1, &old))
    return false;
  old += sum;
  sim_write_f32(&e->sum, p, 0, 1, &old);
  return true;
}

/* Writes after everything is read. */
static bool run_overlapping(struct sim_machine *m, const struct elementwise *e) {
  const int64_t n = e->dst.o->elements, partitions = e->dst.o->partitions;
  struct column c;
  void *memory;
  if (!sim_scratch(m, (size_t)(partitions * n) * sizeof(float), &memory))
    return false;
  float *values = memory;
  for (int64_t p = 0; p < partitions; p++) {
    if (!read_columns(m, e, p, &c))
      return false;
    for (int64_t f = 0; f < n; f += SIM_CHUNK)
      if (!compute(m, e, &c, p, f, least(n - f, SIM_CHUNK), values + p * n + f))
        return false;
  }
  for (int64_t p = 0; p < partitions; p++) {
    sim_write_f32(&e->dst, p, 0, n, values + p * n);
    if (e->has_sum && !add_sum(m, e, p, sim_sum_f32(n, values + p * n)))
      return false;
  }
  return true;
}

bool sim_exec_float(struct sim_machine *m, const struct elementwise *e) {
  float room[SIM_CHUNK];
  struct column c;
  if (e->overlaps)
    return run_overlapping(m, e);
  for (int64_t p = 0; p < e->dst.o->partitions; p++) {
    float sum = 0;
    if (!read_columns(m, e, p, &c))
      return false;
    for (int64_t f = 0; f < e->dst.o->elements; f += SIM_CHUNK) {
      const int64_t n = least(e->dst.o->elements - f, SIM_CHUNK);
      float *out = sim_start_f32(&e->dst, p, f, n, room);
      if (!compute(m, e, &c, p, f, n, out))
        return false;
      if (e->has_sum)
        sum += sim_sum_f32(n, out);
      sim_finish_f32(&e->dst, p, f, n, out);
    }
    if (e->has_sum && !add_sum(m, e, p, sum))
      return false;
  }
  return true;
}
