#include "sim/machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/area.h"

enum { WORK_MAX = 1 << 16 }; /* elements between looks at the clock */

bool sim_fail(struct sim_machine *m, enum sim_fault_kind kind, const char *fmt, ...) {
  va_list ap;
  if (m->fault->kind)
    return false;
  m->fault->kind = kind;
  m->fault->instr = m->instr;
  if (m->instr)
    m->fault->loc = m->instr->loc;
  va_start(ap, fmt);
  vsnprintf(m->fault->text, sizeof m->fault->text, fmt, ap);
  va_end(ap);
  return false;
}

bool sim_is_late(const struct sim_machine *m) {
  return time_is_up(&m->options->limit);
}

bool sim_work(struct sim_machine *m, int64_t elements) {
  m->work += elements;
  if (m->work < WORK_MAX)
    return true;
  m->work = 0;
  return !sim_is_late(m) || sim_fail(m, SIM_FAULT_TIME, "its time was up");
}

bool sim_scratch(struct sim_machine *m, size_t n, void **out) {
  if (n > m->scratch_size) {
    char *more = realloc(m->scratch, n);
    if (!more)
      return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
    m->scratch = more;
    m->scratch_size = n;
  }
  *out = m->scratch;
  return true;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool is_inside(struct sim_machine *m, const struct sim_access *x) {
  for (const struct sim_bound *b = x->o->bounds; b < x->o->bounds + x->o->n_bounds; b++) {
    const int64_t at = sim_linear_value(&b->at, m->regs);
    if (at < -b->low || at >= b->extent - b->high) /* at may be any number: a sum could overflow */
      return sim_fail(m, SIM_FAULT_BOUNDS, "%s: index %lld + %lld … %lld of dimension %d, which has %lld", x->name,
                      (long long)at, (long long)b->low, (long long)b->high, b->dim, (long long)b->extent);
  }
  return true;
}

/* The free dimensions without those of one element, and with neighbours merged that are one run of elements. */
static void merge(struct sim_access *x) {
  const struct sim_operand *o = x->o;
  for (int k = o->par_dims; k < o->n_dims; k++) {
    const struct sim_dim d = x->dim[k];
    struct sim_dim *last = x->n_free ? &x->free[x->n_free - 1] : NULL;
    if (d.n == 1)
      continue;
    if (last && last->step == d.n * d.step)
      *last = (struct sim_dim){last->n * d.n, d.step};
    else
      x->free[x->n_free++] = d;
  }
  if (!x->n_free)
    x->free[x->n_free++] = (struct sim_dim){1, 0};
}

/* Where byte `offset` of the buffer is, in bytes after the first one. */
static int64_t physical(const struct sim_rows *y, int64_t offset) {
  return y->pitch ? offset / y->row * y->pitch + offset % y->row : offset;
}

/* The copy of its buffer that the operand selects. */
static int64_t copy_of(const struct sim_machine *m, const struct sim_access *x) {
  const int copies = m->program->buffers[x->buffer].place.copies;
  if (copies < 2 || (!x->o->copy.n && !x->o->copy.constant))
    return 0;
  const int64_t copy = sim_linear_value(&x->o->copy, m->regs) % copies;
  return copy < 0 ? copy + copies : copy;
}

void sim_move(struct sim_access *x, int64_t bytes) {
  const int64_t moved = physical(&x->rows, x->start + bytes) - physical(&x->rows, x->start);
  x->start += bytes;
  x->at += moved;
  x->state.first += moved >> x->shift;
}

static bool open_scalar(struct sim_machine *m, struct sim_access *x) {
  sim_store_register(x->type, m->regs[x->o->reg], x->scalar);
  return true;
}

static bool open_access(struct sim_machine *m, struct sim_access *x, bool writes) {
  const struct sim_operand *o = x->o;
  x->buffer = o->ref >= 0 ? (int)m->regs[o->ref] : o->buffer;
  const struct sim_buffer *b = &m->program->buffers[x->buffer];
  const struct sim_memory *memory = &m->memories[x->buffer];
  x->shift = __builtin_ctz((unsigned)b->unit);
  x->parts = x->size >> x->shift;
  if (!memory->data)
    return sim_fail(m, SIM_FAULT_RELEASED, "%s: the memory %s", x->name,
                    memory->is_released ? "has been released" : "is not allocated");
  if (!is_inside(m, x))
    return false;
  x->start = sim_linear_value(&o->start, m->regs);
  assert(x->start >= 0 && x->start < b->bytes && x->start % x->size == 0);
  const int64_t copy = copy_of(m, x), first = copy * (b->place.is_set ? b->place.stride : b->bytes);
  x->copy = memory->copy + copy;
  x->rows = (struct sim_rows){memory->data + first, memory->row, memory->pitch};
  x->state = memory->state;
  x->state.first += first >> x->shift;
  if (m->n_deferred && !writes)
    sim_settle_read(m, x);
  const int64_t at = physical(&x->rows, x->start);
  x->at = x->rows.first + at;
  x->state.first += at >> x->shift;
  for (int d = 0; d < o->n_dims; d++)
    x->dim[d] = (struct sim_dim){o->dim[d].n, physical(&x->rows, o->dim[d].step)};
  merge(x);
  if (m->n_deferred && writes)
    sim_settle_write(m, x);
  return true;
}

static bool open(struct sim_machine *m, int k, bool writes, struct sim_access *x) {
  const struct sim_operand *o = &m->instr->operand[k];
  *x = (struct sim_access){.o = o, .buffer = -1, .name = m->instr->def->operand[k].name, .type = o->type};

  if (o->kind == SIM_ABSENT || !o->type)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "%s is missing or has no type", x->name);
  x->size = sim_type_bytes(o->type);
  return o->kind == SIM_SCALAR ? open_scalar(m, x) : open_access(m, x, writes);
}

bool sim_open(struct sim_machine *m, int k, struct sim_access *x) {
  return open(m, k, m->instr->def->operand[k].writes, x);
}

bool sim_look(struct sim_machine *m, int k, struct sim_access *x) {
  return open(m, k, false, x);
}

bool sim_conflicts(const struct sim_access *dst, const struct sim_access *src) {
  const struct sim_operand *a = dst->o, *b = src->o;
  if (b->kind != SIM_ACCESS || dst->buffer != src->buffer)
    return false;
  bool is_same = dst->at == src->at && a->n_dims == b->n_dims && a->par_dims == b->par_dims;
  for (int k = 0; is_same && k < a->n_dims; k++)
    is_same = a->dim[k].n == b->dim[k].n && a->dim[k].step == b->dim[k].step;
  return !is_same;
}

/* Rows and bytes of rows, around an operand. */
struct extent {
  int64_t row0, row1, byte0, byte1;
};

static struct extent extent_of(const struct sim_access *x, int64_t row) {
  struct extent e = {x->start / row, x->start / row + 1, x->start % row, x->start % row + x->size};
  for (int k = 0; k < x->o->n_dims; k++) {
    const struct sim_dim d = x->o->dim[k];
    if (d.step >= row)
      e.row1 += (d.n - 1) * ((d.step + row - 1) / row);
    else
      e.byte1 += (d.n - 1) * d.step;
  }
  return e;
}

bool sim_may_meet(const struct sim_machine *m, const struct sim_access *x, const struct sim_access *y) {
  const struct sim_buffer *b = &m->program->buffers[x->buffer];
  const int64_t row = mem_is_on_chip(b->space) && b->dims[0] ? b->bytes / b->dims[0] : b->bytes;
  const struct extent e = extent_of(x, row), f = extent_of(y, row);
  if (x->copy != y->copy)
    return false;
  return (e.row0 < f.row1 && f.row0 < e.row1 && e.byte0 < f.byte1 && f.byte0 < e.byte1) || e.byte1 > row ||
         f.byte1 > row;
}
