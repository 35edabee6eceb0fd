/* access: reads and writes the elements of operands, a partition or a part of it at a time. */
#include <assert.h>
#include <string.h>

#include "sim/machine.h"

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

/* A partition has one element in many programs, so only the indices that there are get a value. */
static inline struct walk walk_begin(const struct sim_access *x, int64_t p, int64_t first, int64_t n) {
  struct walk w;
  w.x = x;
  w.left = n;
  w.base = partition_at(x, p);
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

/* The units of a run whose elements have several: units first, first + step, … of the elements, `parts` times. */
struct units {
  int64_t first, step, n;
  int parts;
};

static struct units units_of(const struct sim_access *x, const struct run *r) {
  struct units u = {r->offset >> x->shift, r->step >> x->shift, r->n, x->parts};
  if (x->parts > 1 && (r->step == x->size || r->n == 1)) /* no gaps */
    u = (struct units){u.first, 1, r->n * x->parts, 1};
  return u;
}

static bool is_written(struct sim_machine *m, const struct sim_access *x, const struct run *r) {
  const struct units u = units_of(x, r);
  bool is = true;
  for (int k = 0; k < u.parts; k++)
    is = is && sim_state_is_written(&x->state, u.first + k, u.step, u.n);
  return is || sim_fail(m, SIM_FAULT_UNWRITTEN, "%s: reads memory that nothing has written", x->name);
}

/* The elements as one run without gaps, which one element always is.  False if they are not, or no element of a machine's type
 * can be at that address. */
static bool plain_run(const struct sim_access *x, int64_t p, int64_t first, int64_t n, struct run *r) {
  if (!x->at || x->n_free != 1 || (x->free[0].step != x->size && n > 1))
    return false;
  *r = (struct run){partition_at(x, p) + first * x->free[0].step, x->size, n};
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
  const struct units u = units_of(x, r);
  for (int k = 0; k < u.parts; k++)
    sim_state_write(&x->state, u.first + k, u.step, u.n);
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
