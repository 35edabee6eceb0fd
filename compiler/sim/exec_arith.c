/* exec_arith: instructions that compute element by element in integers and bits, and reductions. */
#include <assert.h>
#include <string.h>

#include "sim/elementwise.h"
#include "sim/row.h"

/* ---- operands as rows -------------------------------------------------------------------------------------------- */

static bool is_int(const struct sim_access *x) {
  return !sim_type_is_float(x->type);
}

/* The integer type that is as wide as x's, for its bits. */
static enum sim_type bits_type(const struct sim_access *x, bool is_unsigned) {
  return x->type == SIM_I1 ? SIM_I1 : sim_int_type(x->size, is_unsigned);
}

enum form { AS_F32, AS_INT, AS_BITS, AS_UNSIGNED_BITS };

/* How `op` takes operands x and y (y may be a row that is computed already: NULL). */
static enum form form_of(const struct sim_instr *i, enum sim_operator op, bool all_ints) {
  if (sim_operator_is_bits(op))
    return i->is_unsigned || op == SIM_SHIFT_RIGHT_LOGICAL ? AS_UNSIGNED_BITS : AS_BITS;
  return i->in_integers && all_ints ? AS_INT : AS_F32;
}

/* Elements of x in this form.  An operand of one element per partition is repeated; one of a single partition belongs to
 * all of them. */
static bool read_row(struct sim_machine *m, const struct sim_access *x, enum form form, int64_t p, int64_t first,
                     int64_t n, struct sim_row *out) {
  const bool is_column = x->o->elements == 1;
  const int64_t partition = x->o->partitions == 1 ? 0 : p, from = is_column ? 0 : first, count = is_column ? 1 : n;
  bool is_ok;
  out->is_int = form != AS_F32;
  if (form == AS_F32)
    is_ok = sim_read_f32(m, x, partition, from, count, out->f32);
  else
    is_ok = sim_read_int(m, x, form == AS_INT ? x->type : bits_type(x, form == AS_UNSIGNED_BITS), partition, from,
                         count, out->ints);
  for (int64_t k = count; is_ok && k < n; k++)
    if (out->is_int)
      out->ints[k] = out->ints[0];
    else
      out->f32[k] = out->f32[0];
  return is_ok;
}

static void write_row(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n,
                      const struct sim_row *r) {
  const struct sim_instr *i = m->instr;
  const enum sim_operator last = i->op[1] ? i->op[1] : i->op[0];
  if (!r->is_int)
    sim_write_f32(x, p, first, n, r->f32);
  else if (sim_operator_is_bits(last))
    sim_write_int(x, p, first, n, r->ints);
  else
    sim_write_int_value(x, p, first, n, r->ints, i->is_unsigned);
}

static void apply(enum sim_operator op, int64_t n, const struct sim_row *x, const struct sim_row *y,
                  struct sim_row *out) {
  assert(x->is_int == y->is_int);
  out->is_int = x->is_int;
  if (x->is_int)
    sim_arith_int(op, n, x->ints, y->ints, out->ints);
  else
    sim_arith_f32(op, n, x->f32, y->f32, out->f32);
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

/* operand k after r: r = r op[k] operand, or turned. */
static bool apply_operand(struct sim_machine *m, const struct elementwise *e, int k, int64_t p, int64_t first,
                          int64_t n, struct sim_row *r) {
  const struct sim_instr *i = m->instr;
  const struct sim_access *x = &e->src[1 + k];
  const enum form form = form_of(i, i->op[k], is_int(x) && r->is_int);
  struct sim_row y;
  if (form == AS_F32)
    sim_row_to_f32(r, n, i->is_unsigned);
  else if (form != AS_INT)
    sim_row_to_bits(r, n, form == AS_UNSIGNED_BITS);
  if (!read_row(m, x, form, p, first, n, &y))
    return false;
  if (i->is_reversed[k])
    apply(i->op[k], n, &y, r, r);
  else
    apply(i->op[k], n, r, &y, r);
  return true;
}

static bool compute(struct sim_machine *m, const struct elementwise *e, int64_t p, int64_t first, int64_t n,
                    struct sim_row *r) {
  const struct sim_instr *i = m->instr;
  const struct sim_access *x = &e->src[0];

  if (i->kind == NISA_TENSOR_SCALAR_ARITH) {
    const enum form form = form_of(i, i->op[0], is_int(x) && is_int(&e->src[1]));
    if (!read_row(m, x, form, p, first, n, r) || !apply_operand(m, e, 0, p, first, n, r))
      return false;
    return e->n_src < 3 || apply_operand(m, e, 1, p, first, n, r);
  }
  const enum sim_operator op = i->kind == NISA_TENSOR_TENSOR_POWER ? SIM_POW : i->op[0];
  const enum form form = form_of(i, op, is_int(x) && is_int(&e->src[1]));
  struct sim_row y;
  if (!read_row(m, x, form, p, first, n, r) || !read_row(m, &e->src[1], form, p, first, n, &y))
    return false;
  apply(op, n, r, &y, r);
  return true;
}

static bool open_elementwise(struct sim_machine *m, struct elementwise *e) {
  const struct sim_instr *i = m->instr;
  if (!sim_open(m, 0, &e->dst))
    return false;
  if (i->kind == NISA_ACTIVATION) {
    e->has_sum = i->operand[1].kind != SIM_ABSENT;
    if ((e->has_sum && !sim_open(m, 1, &e->sum)) || !sim_open(m, 2, &e->src[0]) || !sim_open(m, 3, &e->src[2]) ||
        !sim_open(m, 4, &e->src[1]))
      return false;
    e->n_src = 3;
  } else {
    for (int k = 1; k < i->def->n_operands && i->operand[k].kind != SIM_ABSENT; k++)
      if (!sim_open(m, k, &e->src[e->n_src++]))
        return false;
  }
  const struct sim_operand *d = e->dst.o;
  for (int k = 0; k < e->n_src; k++) {
    const struct sim_operand *o = e->src[k].o;
    bool fits = (o->partitions == d->partitions && (o->elements == d->elements || o->elements == 1)) ||
                (k && o->partitions == 1 && o->elements == 1);
    if (!fits || (!k && o->elements != d->elements))
      return sim_fail(m, SIM_FAULT_INSTRUCTION, "%s has another shape than dst", e->src[k].name);
  }
  for (int k = 0; k < 2; k++)
    if (i->op[k] == SIM_NO_OPERATOR && i->kind != NISA_RECIPROCAL && i->kind != NISA_TENSOR_TENSOR_POWER &&
        (k == 0 || i->kind == NISA_SCALAR_TENSOR_TENSOR || (i->kind == NISA_TENSOR_SCALAR_ARITH && e->n_src == 3)))
      return sim_fail(m, SIM_FAULT_INSTRUCTION, "it names no operator");
  return true;
}

/* Writes after everything is read: for operands that overlap in part. */
static bool run_overlapping(struct sim_machine *m, const struct elementwise *e) {
  const int64_t elements = e->dst.o->elements, chunks = (elements + SIM_CHUNK - 1) / SIM_CHUNK;
  void *memory;
  if (!sim_scratch(m, (size_t)(e->dst.o->partitions * chunks) * sizeof(struct sim_row), &memory))
    return false;
  struct sim_row *rows = memory;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t p = 0, at = 0; p < e->dst.o->partitions; p++)
      for (int64_t f = 0; f < elements; f += SIM_CHUNK, at++) {
        const int64_t n = elements - f < SIM_CHUNK ? elements - f : SIM_CHUNK;
        if (pass)
          write_row(m, &e->dst, p, f, n, &rows[at]);
        else if (!compute(m, e, p, f, n, &rows[at]))
          return false;
      }
  return true;
}

/* True if every value between the steps is f32. */
static bool computes_in_f32(const struct sim_instr *i, const struct elementwise *e) {
  if (i->kind == NISA_ACTIVATION || i->kind == NISA_RECIPROCAL || sim_operator_is_function(i->op[0]) ||
      sim_operator_is_function(i->op[1]))
    return true;
  if (sim_operator_is_bits(i->op[0]) || sim_operator_is_bits(i->op[1]))
    return false;
  return !i->in_integers || !is_int(&e->src[0]) || !is_int(&e->src[1]);
}

bool sim_exec_elementwise(struct sim_machine *m) {
  struct elementwise e = {.n_src = 0};
  struct sim_row r;
  if (!open_elementwise(m, &e))
    return false;
  for (int k = 0; k < e.n_src; k++)
    e.overlaps |= sim_conflicts(&e.dst, &e.src[k]);
  if (computes_in_f32(m->instr, &e))
    return sim_exec_float(m, &e);
  if (e.overlaps)
    return run_overlapping(m, &e);
  for (int64_t p = 0; p < e.dst.o->partitions; p++)
    for (int64_t f = 0; f < e.dst.o->elements; f += SIM_CHUNK) {
      const int64_t n = e.dst.o->elements - f < SIM_CHUNK ? e.dst.o->elements - f : SIM_CHUNK;
      if (!compute(m, &e, p, f, n, &r))
        return false;
      write_row(m, &e.dst, p, f, n, &r);
    }
  return true;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* The reduction of one row of integers to one value. */
static int64_t fold_int(enum sim_operator op, int64_t n, const int64_t *x) {
  int64_t r = x[0];
  for (int64_t k = 1; k < n; k++)
    sim_arith_int(op, 1, &r, x + k, &r);
  return r;
}

static void negate(int64_t n, int64_t *x) {
  for (int64_t k = 0; k < n; k++)
    x[k] = (int64_t)(0 - (uint64_t)x[k]);
}

/* The value of op over `count` elements of partition p from `first`. */
static bool reduce_float(struct sim_machine *m, const struct sim_access *src, int64_t p, int64_t first, int64_t count,
                         float *total) {
  const struct sim_instr *i = m->instr;
  float room[SIM_CHUNK];
  for (int64_t f = 0; f < count; f += SIM_CHUNK) {
    const int64_t n = count - f < SIM_CHUNK ? count - f : SIM_CHUNK;
    const float *x = sim_work(m, n) ? sim_row_f32(m, src, p, first + f, n, room) : NULL;
    if (!x)
      return false;
    if (i->negates) {
      sim_arith_scalar_f32(SIM_MULTIPLY, false, n, x, -1, room);
      x = room;
    }
    const float r = sim_fold_f32(i->op[0], n, x);
    if (f)
      sim_arith_f32(i->op[0], 1, total, &r, total);
    else
      *total = r;
  }
  return true;
}

static bool reduce_int(struct sim_machine *m, const struct sim_access *src, enum form form, int64_t p, int64_t first,
                       int64_t count, int64_t *total) {
  const struct sim_instr *i = m->instr;
  struct sim_row r;
  for (int64_t f = 0; f < count; f += SIM_CHUNK) {
    const int64_t n = count - f < SIM_CHUNK ? count - f : SIM_CHUNK;
    if (!sim_work(m, n) || !read_row(m, src, form, p, first + f, n, &r))
      return false;
    if (i->negates)
      negate(n, r.ints);
    const int64_t x = fold_int(i->op[0], n, r.ints);
    if (f)
      sim_arith_int(i->op[0], 1, total, &x, total);
    else
      *total = x;
  }
  return true;
}

bool sim_exec_reduce(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, src;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  int64_t count = 1;
  for (int k = src.o->n_dims - i->reduced_dims; k < src.o->n_dims; k++)
    count *= src.o->dim[k].n;
  const int64_t kept = src.o->elements / count;
  if (kept != dst.o->elements || src.o->partitions != dst.o->partitions || !i->op[0])
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst has another shape than what remains of src");
  const enum form form = form_of(i, i->op[0], is_int(&src));
  void *memory; /* all results are computed before the first is written: dst may be a part of src */
  if (!sim_scratch(m, (size_t)(dst.o->partitions * kept) * sizeof(int64_t), &memory))
    return false;
  int64_t *ints = memory;
  float *floats = memory;
  for (int64_t p = 0; p < dst.o->partitions; p++)
    for (int64_t k = 0; k < kept; k++)
      if (form == AS_F32 ? !reduce_float(m, &src, p, k * count, count, &floats[p * kept + k])
                         : !reduce_int(m, &src, form, p, k * count, count, &ints[p * kept + k]))
        return false;
  for (int64_t p = 0; p < dst.o->partitions; p++)
    if (form == AS_F32)
      sim_write_f32(&dst, p, 0, kept, floats + p * kept);
    else if (form != AS_INT)
      sim_write_int(&dst, p, 0, kept, ints + p * kept);
    else
      sim_write_int_value(&dst, p, 0, kept, ints + p * kept, i->is_unsigned);
  return true;
}

bool sim_exec_cross_lane(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, src;
  struct sim_row total, r;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  if (dst.o->partitions != 1 || dst.o->elements != src.o->elements || !i->op[0])
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst has another shape than a partition of src");
  const enum form form = form_of(i, i->op[0], is_int(&src));
  for (int64_t f = 0; f < dst.o->elements; f += SIM_CHUNK) {
    const int64_t n = dst.o->elements - f < SIM_CHUNK ? dst.o->elements - f : SIM_CHUNK;
    for (int64_t p = 0; p < src.o->partitions; p++) {
      if (!read_row(m, &src, form, p, f, n, p ? &r : &total))
        return false;
      if (p)
        apply(i->op[0], n, &total, &r, &total);
    }
    write_row(m, &dst, 0, f, n, &total);
  }
  return true;
}
