/* exec_copy: instructions that move data. */
#include <assert.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/record.h"

enum { CHUNK = 1024 };

static bool is_int(enum sim_type t) {
  return !sim_type_is_float(t);
}

/* Elements of src converted to dst's type: bits between equal types, integers on gpsimd, else through f32. */
static bool convert(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src, int64_t p,
                    int64_t first, int64_t n) {
  union {
    char bits[CHUNK * 8];
    float f32[CHUNK];
    int64_t ints[CHUNK];
  } row;
  if (dst->type == src->type) {
    if (!sim_read_bits(m, src, p, first, n, row.bits))
      return false;
    sim_write_bits(dst, p, first, n, row.bits);
  } else if (m->instr->in_integers && is_int(src->type)) {
    if (!sim_read_int(m, src, src->type, p, first, n, row.ints))
      return false;
    sim_write_int_value(dst, p, first, n, row.ints, m->instr->is_unsigned);
  } else {
    if (!sim_read_f32(m, src, p, first, n, row.f32))
      return false;
    sim_write_f32(dst, p, first, n, row.f32);
  }
  return true;
}

static bool has_same_shape(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src) {
  return !src->at || (src->o->partitions == dst->o->partitions && src->o->elements == dst->o->elements) ||
         sim_fail(m, SIM_FAULT_INSTRUCTION, "%s has another shape than dst", src->name);
}

/* All of src as dst's type, in order, without gaps; for copies that overlap. */
static bool copy_overlapping(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src) {
  const int64_t n = dst->o->elements;
  void *whole;
  assert(dst->type == src->type);
  if (!sim_scratch(m, (size_t)(dst->o->partitions * n * src->size), &whole))
    return false;
  for (int64_t p = 0; p < dst->o->partitions; p++)
    if (!sim_read_bits(m, src, p, 0, n, (char *)whole + p * n * src->size))
      return false;
  for (int64_t p = 0; p < dst->o->partitions; p++)
    sim_write_bits(dst, p, 0, n, (const char *)whole + p * n * src->size);
  return true;
}

bool sim_exec_copy(struct sim_machine *m) {
  struct sim_access dst, src;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src) || !has_same_shape(m, &dst, &src))
    return false;
  if (m->instr->kind == NISA_DMA_COPY)
    m->counts.dma_bytes += dst.o->partitions * dst.o->elements * dst.size;
  if (sim_conflicts(&dst, &src)) {
    if (dst.type == src.type)
      return copy_overlapping(m, &dst, &src);
    if (sim_may_meet(m, &dst, &src))
      return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst overlaps src, which it reads as another type");
  }
  bool is_deferred = false;
  if (!sim_defer(m, &dst, &src, &is_deferred) || is_deferred)
    return is_deferred;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    bool is_done = false;
    if (dst.type == src.type && !sim_copy_row(m, &dst, &src, p, &is_done))
      return false;
    for (int64_t f = 0; !is_done && f < dst.o->elements; f += CHUNK)
      if (!convert(m, &dst, &src, p, f, dst.o->elements - f < CHUNK ? dst.o->elements - f : CHUNK))
        return false;
  }
  return true;
}

/* to[c][r] = from[r][c], with rows that are this many bytes apart, in squares that stay in the cache. */
static void turn(int size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                 int64_t columns) {
  enum { SIDE = 16 };
  for (int64_t c = 0; c < columns; c += SIDE)
    for (int64_t r = 0; r < rows; r += SIDE)
      for (int64_t k = c; k < columns && k < c + SIDE; k++)
        sim_copy(size, to + k * to_step + r * size, size, from + r * from_step + k * size, from_step,
                 rows - r < SIDE ? rows - r : SIDE);
}

/* Through copies without gaps. */
static bool transpose_apart(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src) {
  const int64_t rows = src->o->partitions, columns = src->o->elements;
  const int size = src->size;
  void *whole;
  if (!sim_scratch(m, (size_t)(2 * rows * columns * size), &whole))
    return false;
  char *in = whole, *out = in + rows * columns * size;
  for (int64_t p = 0; p < rows; p++)
    if (!sim_read_bits(m, src, p, 0, columns, in + p * columns * size))
      return false;
  turn(size, out, rows * size, in, columns * size, rows, columns);
  for (int64_t p = 0; p < columns; p++)
    sim_write_bits(dst, p, 0, rows, out + p * rows * size);
  return true;
}

bool sim_exec_transpose(struct sim_machine *m) {
  struct sim_access dst, src;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const int64_t rows = src.o->partitions, columns = src.o->elements, to = sim_plain(&dst), from = sim_plain(&src);
  const bool is_plain = src.o->n_dims == 2 && dst.o->n_dims == 2;
  if (dst.o->partitions != columns || dst.o->elements != rows || src.type != dst.type)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst is not the transpose of src");
  m->counts.dma_bytes += rows * columns * src.size;
  if (!is_plain || to < 0 || from < 0 || dst.buffer == src.buffer)
    return transpose_apart(m, &dst, &src);
  if (!sim_check_plain(m, &src))
    return false;
  turn(src.size, dst.at, to * dst.size, src.at, from * src.size, rows, columns);
  sim_mark_plain(&dst);
  return true;
}

/* Moves x, the operand whose rows the index names, to the row of partition p.  *is_there: false if the partition is
 * skipped. */
static bool find_row(struct sim_machine *m, const struct sim_access *index, int64_t p, struct sim_access *x,
                     bool *is_there) {
  const struct sim_instr *i = m->instr;
  int64_t at, last = x->start;
  if (!sim_read_int(m, index, index->type, p, 0, 1, &at))
    return false;
  if (i->skips)
    at &= 0xffffffff; /* the index is unsigned */
  *is_there = at >= 0 && at < i->limit;
  if (!*is_there)
    return i->skips || sim_fail(m, SIM_FAULT_BOUNDS, "%s: index %lld of partition %lld is outside 0 … %lld",
                                index->name, (long long)at, (long long)p, (long long)(i->limit - 1));
  last += at * i->index_step;
  for (int k = 0; k < x->o->n_dims; k++)
    last += x->o->dim[k].step * (x->o->dim[k].n - 1);
  if (last >= m->program->buffers[x->buffer].bytes)
    return sim_fail(m, SIM_FAULT_BOUNDS, "%s: index %lld of partition %lld leads outside the memory", index->name,
                    (long long)at, (long long)p);
  sim_move(x, at * i->index_step);
  return true;
}

/* dst = src + other for n elements of partition p. */
static bool add_elements(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src,
                         const struct sim_access *other, int64_t p, int64_t first, int64_t n) {
  float x[CHUNK], y[CHUNK];
  if (!sim_read_f32(m, src, p, first, n, x) || !sim_read_f32(m, other, p, first, n, y))
    return false;
  for (int64_t k = 0; k < n; k++)
    x[k] += y[k];
  sim_write_f32(dst, p, first, n, x);
  return true;
}

/* One of dst and src, moved for each partition by its index, which is added to the index of one dimension. */
bool sim_exec_gather(struct sim_machine *m) {
  const bool scatters = m->instr->kind == NISA_DMA_SCATTER, adds = m->instr->op[0] == SIM_ADD;
  struct sim_access dst, src, index;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src) || !sim_open(m, 2, &index) || !has_same_shape(m, &dst, &src))
    return false;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    struct sim_access to = dst, from = src;
    bool is_there;
    if (!find_row(m, &index, p, scatters ? &to : &from, &is_there))
      return false;
    for (int64_t f = 0; is_there && f < dst.o->elements; f += CHUNK) {
      const int64_t n = dst.o->elements - f < CHUNK ? dst.o->elements - f : CHUNK;
      if (adds ? !add_elements(m, &to, &from, &to, p, f, n) : !convert(m, &to, &from, p, f, n))
        return false;
    }
  }
  m->counts.dma_bytes += dst.o->partitions * dst.o->elements * dst.size;
  return true;
}

/* dst = src + other.  Elements that lie at the same place in several operands are read before they are written. */
bool sim_exec_dma_compute(struct sim_machine *m) {
  struct sim_access dst, src, other;
  void *memory;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src) || !sim_open(m, 2, &other) || !has_same_shape(m, &dst, &src) ||
      !has_same_shape(m, &dst, &other))
    return false;
  const int64_t partitions = dst.o->partitions, n = dst.o->elements;
  if (!sim_scratch(m, (size_t)(2 * partitions * n) * sizeof(float), &memory))
    return false;
  float *x = memory, *y = x + partitions * n;
  for (int64_t p = 0; p < partitions; p++)
    if (!sim_work(m, n) || !sim_read_f32(m, &src, p, 0, n, x + p * n) || !sim_read_f32(m, &other, p, 0, n, y + p * n))
      return false;
  for (int64_t k = 0; k < partitions * n; k++)
    x[k] += y[k];
  for (int64_t p = 0; p < partitions; p++)
    sim_write_f32(&dst, p, 0, n, x + p * n);
  m->counts.dma_bytes += partitions * n * dst.size;
  return true;
}

bool sim_exec_predicated(struct sim_machine *m) {
  struct sim_access dst, src, predicate;
  int64_t chosen[CHUNK];
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src) || !sim_open(m, 2, &predicate) || !has_same_shape(m, &dst, &src) ||
      !has_same_shape(m, &dst, &predicate))
    return false;
  for (int64_t p = 0; p < dst.o->partitions; p++)
    for (int64_t f = 0; f < dst.o->elements; f += CHUNK) {
      const int64_t n = dst.o->elements - f < CHUNK ? dst.o->elements - f : CHUNK;
      float test[CHUNK];
      if (!sim_read_f32(m, &predicate, p, f, n, test))
        return false;
      for (int64_t k = 0; k < n; k++)
        chosen[k] = (test[k] != 0) != m->instr->where_zero;
      for (int64_t k = 0, end; k < n; k = end) { /* run by run of chosen elements */
        for (end = k; end < n && chosen[end] == chosen[k]; end++)
          ;
        if (chosen[k] && !convert(m, &dst, &src, p, f + k, end - k))
          return false;
      }
    }
  return true;
}

bool sim_exec_memset(struct sim_machine *m) {
  struct sim_access dst, value;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &value))
    return false;
  for (int64_t p = 0; p < dst.o->partitions; p++)
    for (int64_t f = 0; f < dst.o->elements; f += CHUNK)
      if (!convert(m, &dst, &value, p, f, dst.o->elements - f < CHUNK ? dst.o->elements - f : CHUNK))
        return false;
  return true;
}

bool sim_exec_iota(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, offset;
  int64_t first, row[CHUNK];
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &offset) || !sim_read_int(m, &offset, offset.type, 0, 0, 1, &first))
    return false;
  const struct sim_operand *o = dst.o;
  for (int64_t p = 0; p < o->partitions; p++)
    for (int64_t f = 0; f < o->elements; f += CHUNK) {
      const int64_t n = o->elements - f < CHUNK ? o->elements - f : CHUNK;
      for (int64_t k = 0; k < n; k++) {
        uint64_t v = (uint64_t)first;
        int64_t rest = f + k, partition = p;
        for (int d = o->n_dims - 1; d >= 0; d--) {
          int64_t *left = d < o->par_dims ? &partition : &rest;
          v += (uint64_t)i->coefficient[d] * (uint64_t)(*left % o->dim[d].n);
          *left /= o->dim[d].n;
        }
        row[k] = (int64_t)v;
      }
      sim_write_int_value(&dst, p, f, n, row, i->is_unsigned);
    }
  return true;
}

bool sim_exec_register_store(struct sim_machine *m) {
  struct sim_access dst;
  char element[8];
  if (!sim_open(m, 0, &dst))
    return false;
  sim_store_register(dst.type, m->regs[m->instr->operand[1].reg], element);
  sim_write_bits(&dst, 0, 0, 1, element);
  return true;
}

bool sim_exec_register_load(struct sim_machine *m) {
  struct sim_access src;
  char element[8];
  if (!sim_open(m, 0, &src) || !sim_read_bits(m, &src, 0, 0, 1, element))
    return false;
  m->regs[m->instr->result] = sim_load_register(src.type, element);
  if (m->options->record)
    sim_record_load(m->options->record, m->stream, m->regs[m->instr->result]);
  return true;
}
