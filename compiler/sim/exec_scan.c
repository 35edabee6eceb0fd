/* exec_scan: instructions that go along a partition: running results, statistics, and the eight largest elements.
 *
 * Each reads all of a partition as f32 before it writes there, so dst may be a source. */
#include <math.h>
#include <stdlib.h>

#include "sim/machine.h"
#include "sim/row.h"

/* All elements of partition p. */
static bool read_all(struct sim_machine *m, const struct sim_access *x, int64_t p, float *out) {
  for (int64_t f = 0; f < x->o->elements; f += SIM_CHUNK) {
    const int64_t n = x->o->elements - f < SIM_CHUNK ? x->o->elements - f : SIM_CHUNK;
    if (!sim_work(m, n) || !sim_read_f32(m, x, p, f, n, out + f))
      return false;
  }
  return true;
}

static void write_all(const struct sim_access *x, int64_t p, const float *in) {
  for (int64_t f = 0; f < x->o->elements; f += SIM_CHUNK)
    sim_write_f32(x, p, f, x->o->elements - f < SIM_CHUNK ? x->o->elements - f : SIM_CHUNK, in + f);
}

/* A number, or the element of partition p. */
static bool read_number(struct sim_machine *m, const struct sim_access *x, int64_t p, float *out) {
  return sim_read_f32(m, x, x->o->partitions == 1 ? 0 : p, 0, 1, out);
}

static bool refuse_shape(struct sim_machine *m) {
  return sim_fail(m, SIM_FAULT_INSTRUCTION, "the operands have shapes that do not fit");
}

static bool has_row(const struct sim_access *x, const struct sim_access *dst, int64_t elements) {
  return x->o->partitions == dst->o->partitions && x->o->elements == elements;
}

/* ---- running results --------------------------------------------------------------------------------------------- */

static float apply(enum sim_operator op, bool is_turned, float x, float y) {
  float r;
  sim_arith_f32(op, 1, is_turned ? &y : &x, is_turned ? &x : &y, &r);
  return r;
}

/* x: lhs or src; y: rhs or operand0.  Writes the results to x. */
static void scan_row(const struct sim_instr *i, int64_t n, float *x, const float *y, float r) {
  for (int64_t k = 0; k < n; k++) {
    if (i->kind == NISA_TENSOR_TENSOR_SCAN)
      r = apply(i->op[1], i->is_reversed[1], apply(i->op[0], i->is_reversed[0], x[k], r), y[k]);
    else
      r = apply(i->op[1], false, r, apply(i->op[0], false, x[k], *y));
    x[k] = r;
  }
}

bool sim_exec_scan(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  const bool has_two = i->kind == NISA_TENSOR_TENSOR_SCAN;
  struct sim_access dst, x, y, initial;
  void *memory;
  float first;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &x) || !sim_open(m, 2, &y) || !sim_open(m, 3, &initial))
    return false;
  const int64_t n = dst.o->elements;
  if (!has_row(&x, &dst, n) || (has_two ? !has_row(&y, &dst, n) : y.o->elements != 1) || initial.o->elements != 1 ||
      !i->op[0] || !i->op[1])
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)(2 * n) * sizeof(float), &memory))
    return false;
  float *row = memory, *other = row + n;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    if (!read_all(m, &x, p, row) || !(has_two ? read_all(m, &y, p, other) : read_number(m, &y, p, other)) ||
        !read_number(m, &initial, p, &first))
      return false;
    scan_row(i, n, row, other, first);
    write_all(&dst, p, row);
  }
  return true;
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* Count, mean, and variance * count of the elements 0, 2, 4, … of x. */
static void stats_of(int64_t n, const float *x, float out[3]) {
  const int64_t count = (n + 1) / 2;
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; k += 2)
    sum += (double)x[k];
  const double mean = count ? sum / (double)count : 0;
  for (int64_t k = 0; k < n; k += 2)
    squares += ((double)x[k] - mean) * ((double)x[k] - mean);
  out[0] = (float)count, out[1] = (float)mean, out[2] = (float)squares;
}

/* x: groups of count, mean, and variance * count. */
static void aggregate(int64_t n, const float *x, float out[2]) {
  double count = 0, sum = 0, squares = 0;
  for (int64_t k = 0; k < n; k += 3) {
    count += (double)x[k];
    sum += (double)x[k] * (double)x[k + 1];
  }
  const double mean = sum / count;
  for (int64_t k = 0; k < n; k += 3)
    squares += (double)x[k + 2] + (double)x[k] * ((double)x[k + 1] - mean) * ((double)x[k + 1] - mean);
  out[0] = (float)mean, out[1] = (float)(squares / count);
}

bool sim_exec_stats(struct sim_machine *m) {
  const bool aggregates = m->instr->kind == NISA_BN_AGGR;
  struct sim_access dst, src;
  void *memory;
  float out[6];
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t n = src.o->elements;
  if (!has_row(&src, &dst, n) || dst.o->elements != (aggregates ? 2 : 6) || (aggregates && n % 3))
    return refuse_shape(m);
  if (!sim_scratch(m, (size_t)n * sizeof(float), &memory))
    return false;
  float *row = memory;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    if (!read_all(m, &src, p, row))
      return false;
    if (aggregates) {
      aggregate(n, row, out);
    } else {
      stats_of(n, row, out);
      stats_of(n - 1, row + 1, out + 3);
    }
    write_all(&dst, p, out);
  }
  return true;
}

/* ---- eight elements ---------------------------------------------------------------------------------------------- */

enum { EIGHT = 8 };

static void largest(int64_t n, const float *x, float out[EIGHT]) {
  for (int k = 0; k < EIGHT; k++)
    out[k] = -INFINITY;
  for (int64_t k = 0; k < n; k++) {
    if (!(x[k] > out[EIGHT - 1]))
      continue;
    int at = EIGHT - 1;
    for (; at > 0 && x[k] > out[at - 1]; at--)
      out[at] = out[at - 1];
    out[at] = x[k];
  }
}

/* The place of value in x that has `skip` such places before it; -1 if there is none. */
static int64_t place_of(int64_t n, const float *x, float value, int skip) {
  for (int64_t k = 0; k < n; k++)
    if (x[k] == value && !skip--)
      return k;
  return -1;
}

static void find(int64_t n, const float *x, const float values[EIGHT], int64_t out[EIGHT]) {
  for (int k = 0; k < EIGHT; k++) {
    int before = 0;
    for (int j = 0; j < k; j++)
      before += values[j] == values[k];
    out[k] = place_of(n, x, values[k], before);
  }
}

/* A value that occurs later in `values` too has the places after those of the later ones. */
static void find_backwards(int64_t n, const float *x, const float values[EIGHT], int64_t out[EIGHT]) {
  for (int k = EIGHT - 1; k >= 0; k--) {
    int before = 0;
    for (int j = k + 1; j < EIGHT; j++)
      before += values[j] == values[k];
    out[k] = place_of(n, x, values[k], before);
  }
}

struct eight {
  struct sim_access dst, index, src, values, replacement;
  bool has_index;
};

static bool open_eight(struct sim_machine *m, struct eight *e) {
  const struct sim_instr *i = m->instr;
  const bool replaces = i->kind == NISA_MATCH_REPLACE8;
  const int src = replaces ? 2 : 1;
  e->has_index = replaces && i->operand[1].kind != SIM_ABSENT;
  if (!sim_open(m, 0, &e->dst) || (e->has_index && !sim_open(m, 1, &e->index)) || !sim_open(m, src, &e->src) ||
      (i->kind != NISA_MAX8 && !sim_open(m, src + 1, &e->values)) || (replaces && !sim_open(m, 4, &e->replacement)))
    return false;
  const int64_t n = e->src.o->elements;
  if (!has_row(&e->src, &e->dst, n) || e->dst.o->elements != (replaces ? n : EIGHT) ||
      (i->kind != NISA_MAX8 && !has_row(&e->values, &e->dst, EIGHT)) ||
      (e->has_index && !has_row(&e->index, &e->dst, EIGHT)))
    return refuse_shape(m);
  return true;
}

bool sim_exec_eight(struct sim_machine *m) {
  const enum nisa_kind kind = m->instr->kind;
  struct eight e;
  void *memory;
  float values[EIGHT], replacement;
  int64_t places[EIGHT];
  if (!open_eight(m, &e))
    return false;
  const int64_t n = e.src.o->elements;
  if (!sim_scratch(m, (size_t)n * sizeof(float), &memory))
    return false;
  float *row = memory;
  for (int64_t p = 0; p < e.dst.o->partitions; p++) {
    if (!read_all(m, &e.src, p, row) || (kind != NISA_MAX8 && !read_all(m, &e.values, p, values)))
      return false;
    if (kind == NISA_MAX8) {
      largest(n, row, values);
      write_all(&e.dst, p, values);
    } else if (kind == NISA_FIND_INDEX8) {
      find(n, row, values, places);
      sim_write_int_value(&e.dst, p, 0, EIGHT, places, m->instr->is_unsigned);
    } else {
      if (!read_number(m, &e.replacement, 0, &replacement))
        return false;
      find_backwards(n, row, values, places);
      for (int k = 0; k < EIGHT; k++)
        if (places[k] >= 0)
          row[places[k]] = replacement;
      write_all(&e.dst, p, row);
      if (e.has_index)
        sim_write_int_value(&e.index, p, 0, EIGHT, places, m->instr->is_unsigned);
    }
  }
  return true;
}
