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
  return m->options->deadline_us && clock_now_us() > m->options->deadline_us;
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

/* Where byte `offset` of a buffer is, in bytes after its first one. */
static int64_t physical(const struct sim_memory *y, int64_t offset) {
  return y->pitch ? offset / y->row * y->pitch + offset % y->row : offset;
}

/* Where the copy that the operand selects begins, in bytes after the first one. */
static int64_t copy_at(const struct sim_machine *m, const struct sim_access *x) {
  const struct sim_buffer *b = &m->program->buffers[x->buffer];
  if (b->place.copies < 2 || (!x->o->copy.n && !x->o->copy.constant))
    return 0;
  const int64_t copy = sim_linear_value(&x->o->copy, m->regs) % b->place.copies;
  return (copy < 0 ? copy + b->place.copies : copy) * (b->place.is_set ? b->place.stride : b->bytes);
}

void sim_move(const struct sim_machine *m, struct sim_access *x, int64_t bytes) {
  const struct sim_memory *y = &m->memories[x->buffer];
  const int64_t moved = physical(y, x->start + bytes) - physical(y, x->start);
  x->start += bytes;
  x->at += moved;
  x->shadow = x->shadow ? x->shadow + moved / x->size : NULL;
}

bool sim_open(struct sim_machine *m, int k, struct sim_access *x) {
  const struct sim_operand *o = &m->instr->operand[k];
  *x = (struct sim_access){.o = o, .buffer = -1, .name = m->instr->def->operand[k].name, .type = o->type};

  if (o->kind == SIM_ABSENT || !o->type)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "%s is missing or has no type", x->name);
  x->size = sim_type_bytes(o->type);
  if (o->kind == SIM_SCALAR) {
    sim_store_register(o->type, m->regs[o->reg], x->scalar);
    x->scalar_shadow = SIM_WRITTEN;
    x->at = NULL;
    return true;
  }
  x->buffer = o->ref >= 0 ? (int)m->regs[o->ref] : o->buffer;
  const struct sim_memory *memory = &m->memories[x->buffer];
  if (!memory->data)
    return sim_fail(m, SIM_FAULT_RELEASED, "%s: the memory %s", x->name,
                    memory->is_released ? "has been released" : "is not allocated");
  if (!is_inside(m, x))
    return false;
  x->start = sim_linear_value(&o->start, m->regs);
  assert(x->start >= 0 && x->start < m->program->buffers[x->buffer].bytes && x->start % x->size == 0);
  const int64_t at = physical(memory, x->start) + copy_at(m, x);
  x->at = memory->data + at;
  x->shadow = memory->shadow ? memory->shadow + at / x->size : NULL;
  for (int d = 0; d < o->n_dims; d++)
    x->dim[d] = (struct sim_dim){o->dim[d].n, physical(memory, o->dim[d].step)};
  merge(x);
  return true;
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

/* ---- walking ----------------------------------------------------------------------------------------------------- */

/* A run of elements with one step: offset in bytes from the operand's first element. */
struct run {
  int64_t offset, step, n;
};

struct walk {
  const struct sim_access *x;
  int64_t base, left;
  int64_t index[NISA_TILE_MAX];
};

/* The byte at which partition p begins. */
static int64_t partition_at(const struct sim_access *x, int64_t p) {
  int64_t at = 0;
  if (x->o->par_dims == 1)
    return p * x->dim[0].step;
  for (int k = x->o->par_dims - 1; k >= 0; k--) {
    at += p % x->dim[k].n * x->dim[k].step;
    p /= x->dim[k].n;
  }
  return at;
}

static struct walk walk_begin(const struct sim_access *x, int64_t p, int64_t first, int64_t n) {
  struct walk w = {.x = x, .left = n, .base = partition_at(x, p)};
  if (x->n_free == 1) {
    w.index[0] = first;
    return w;
  }
  for (int k = x->n_free - 1; k >= 0; k--) {
    w.index[k] = first % x->free[k].n;
    first /= x->free[k].n;
  }
  assert(!first);
  return w;
}

static bool walk_next(struct walk *w, struct run *r) {
  const struct sim_access *x = w->x;
  int k = x->n_free - 1;

  if (!w->left)
    return false;
  const int64_t inner = x->free[k].n - w->index[k];
  r->n = inner < w->left ? inner : w->left;
  r->step = x->free[k].step;
  r->offset = w->base;
  for (int d = 0; d <= k; d++)
    r->offset += w->index[d] * x->free[d].step;
  w->left -= r->n;
  w->index[k] += r->n;
  while (k > 0 && w->index[k] == x->free[k].n) {
    w->index[k--] = 0;
    w->index[k]++;
  }
  return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_written(struct sim_machine *m, const struct sim_access *x, const struct run *r) {
  if (!x->shadow)
    return true;
  const uint8_t *s = x->shadow + r->offset / x->size;
  const int64_t step = r->step / x->size;
  bool is_ok = true;
  if (step == 1)
    is_ok = !memchr(s, SIM_UNWRITTEN, (size_t)r->n);
  else
    for (int64_t k = 0; is_ok && k < r->n; k++)
      is_ok = s[k * step] != SIM_UNWRITTEN;
  return is_ok || sim_fail(m, SIM_FAULT_UNWRITTEN, "%s: reads memory that nothing has written", x->name);
}

/* The elements as one run without gaps; false if they are not, or no element of a machine's type can be at that address. */
static bool plain_run(const struct sim_access *x, int64_t p, int64_t first, int64_t n, struct run *r) {
  if (!x->at || x->n_free != 1 || (x->free[0].step != x->size && n > 1))
    return false;
  *r = (struct run){partition_at(x, p) + first * x->size, x->size, n};
  return (uintptr_t)(x->at + r->offset) % (size_t)x->size == 0;
}

const float *sim_row_f32(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n,
                         float *room) {
  struct run r;
  if (x->type == SIM_F32 && plain_run(x, p, first, n, &r))
    return is_written(m, x, &r) ? (const float *)(const void *)(x->at + r.offset) : NULL;
  return sim_read_f32(m, x, p, first, n, room) ? room : NULL;
}

int64_t sim_plain(const struct sim_access *x) {
  struct run r;
  return x->o->par_dims == 1 && plain_run(x, 0, 0, x->o->elements, &r) ? x->dim[0].step / x->size : -1;
}

bool sim_check_plain(struct sim_machine *m, const struct sim_access *x) {
  struct run r;
  for (int64_t p = 0; p < x->o->partitions; p++)
    if (!plain_run(x, p, 0, x->o->elements, &r) || !is_written(m, x, &r))
      return false;
  return true;
}

bool sim_read_f32(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n, float *out) {
  struct run r;
  if (!x->at) {
    sim_load_f32(x->type, x->scalar, 0, n, out);
    return true;
  }
  for (struct walk w = walk_begin(x, p, first, n); walk_next(&w, &r); out += r.n) {
    if (!is_written(m, x, &r))
      return false;
    sim_load_f32(x->type, x->at + r.offset, r.step, r.n, out);
  }
  return true;
}

bool sim_read_int(struct sim_machine *m, const struct sim_access *x, enum sim_type t, int64_t p, int64_t first,
                  int64_t n, int64_t *out) {
  struct run r;
  assert(sim_type_bytes(t) == x->size);
  if (!x->at) {
    sim_load_int(t, x->scalar, 0, n, out);
    return true;
  }
  for (struct walk w = walk_begin(x, p, first, n); walk_next(&w, &r); out += r.n) {
    if (!is_written(m, x, &r))
      return false;
    sim_load_int(t, x->at + r.offset, r.step, r.n, out);
  }
  return true;
}

bool sim_read_bits(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n, char *out) {
  struct run r;
  if (!x->at) {
    sim_copy(x->size, out, x->size, x->scalar, 0, n);
    return true;
  }
  for (struct walk w = walk_begin(x, p, first, n); walk_next(&w, &r); out += r.n * x->size) {
    if (!is_written(m, x, &r))
      return false;
    sim_copy(x->size, out, x->size, x->at + r.offset, r.step, r.n);
  }
  return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void mark(const struct sim_access *x, const struct run *r) {
  uint8_t *s = x->shadow + r->offset / x->size;
  const int64_t step = r->step / x->size;
  if (step == 1)
    memset(s, SIM_WRITTEN, (size_t)r->n);
  else
    for (int64_t k = 0; k < r->n; k++)
      s[k * step] = SIM_WRITTEN;
}

void sim_mark_plain(const struct sim_access *x) {
  struct run r;
  for (int64_t p = 0; p < x->o->partitions; p++)
    if (plain_run(x, p, 0, x->o->elements, &r))
      mark(x, &r);
}

float *sim_start_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, float *room) {
  struct run r;
  return x->type == SIM_F32 && plain_run(x, p, first, n, &r) ? (float *)(void *)(x->at + r.offset) : room;
}

void sim_finish_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const float *row) {
  struct run r;
  if (x->type == SIM_F32 && plain_run(x, p, first, n, &r) && (const char *)row == x->at + r.offset)
    mark(x, &r);
  else
    sim_write_f32(x, p, first, n, row);
}

bool sim_copy_row(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src, int64_t p,
                  bool *is_done) {
  struct run to, from;
  const int64_t n = dst->o->elements;
  *is_done = plain_run(dst, p, 0, n, &to) && plain_run(src, p, 0, n, &from);
  if (!*is_done)
    return true;
  if (!is_written(m, src, &from))
    return false;
  memmove(dst->at + to.offset, src->at + from.offset, (size_t)(n * dst->size));
  mark(dst, &to);
  return true;
}

#define WRITE(store, advance) \
  struct run r; \
  for (struct walk w = walk_begin(x, p, first, n); walk_next(&w, &r); advance) { \
    store; \
    mark(x, &r); \
  }

void sim_write_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const float *in) {
  WRITE(sim_store_f32(x->type, x->at + r.offset, r.step, r.n, in), in += r.n)
}

void sim_write_int(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const int64_t *in) {
  WRITE(sim_store_int(x->type, x->at + r.offset, r.step, r.n, in), in += r.n)
}

void sim_write_int_value(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const int64_t *in,
                         bool is_unsigned) {
  WRITE(sim_store_int_value(x->type, x->at + r.offset, r.step, r.n, in, is_unsigned), in += r.n)
}

void sim_write_bits(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const char *in) {
  WRITE(sim_copy(x->size, x->at + r.offset, r.step, in, x->size, r.n), in += r.n * x->size)
}
