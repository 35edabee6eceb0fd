/* memory: blocks of memory, counted by the slots that hold views of them.
 *
 * A block that nothing has written is "raw": its bytes are set when an instruction uses it, unless the instruction writes
 * all of it.  They are then NaNs (in 16-, 32- and 64-bit floats; in most 8-bit ones and as integers, an odd number), so
 * that a result that depends on them is wrong.
 *
 * Copies of memory that does not change are put off (parts.c) until an instruction uses the block in another way than as
 * an operand of a matrix product, which finds the elements where they are.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interp/internal.h"
#include "sim/simd.h"

/* Of all blocks.  What takes more runs for longer than anybody waits. */
static const size_t MEMORY_MAX = (size_t)16 << 30;

const uint64_t interp_unwritten = 0x7ffa7ffa7ffa7ffa;

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static size_t rounded(size_t bytes) {
  return (bytes | (sizeof interp_unwritten - 1)) + 1;
}

/* The list of free blocks that has those of this size, among others. */
static struct memory_block **free_list(struct machine *m, size_t size) {
  return &m->free[(size / 64 * 0x9e3779b97f4a7c15u >> 32) % FREE_LISTS];
}

static struct memory_block *reuse(struct machine *m, size_t size) {
  for (struct memory_block **p = free_list(m, size); *p; p = &(*p)->next_free)
    if ((*p)->size == size) {
      struct memory_block *b = *p;
      *p = b->next_free;
      return b;
    }
  return NULL;
}

/* NULL: there is not so much memory. */
static struct memory_block *new_block(struct machine *m, size_t size) {
  struct memory_block *b = size > MEMORY_MAX - m->bytes ? NULL : malloc(sizeof *b + size);
  if (!b)
    return NULL;
  *b = (struct memory_block){.next = m->blocks, .size = size};
  m->blocks = b;
  m->bytes += size;
  return b;
}

bool machine_allocate(struct machine *m, const struct instr *in, struct view *v, size_t bytes) {
  const size_t size = rounded(bytes);
  struct memory_block *b = reuse(m, size);
  if (!b)
    b = new_block(m, size);
  if (!b)
    return !fail(m->err, ST_LIMIT, "%s was not run: it needs %.4g GiB of memory", in->name, ldexp((double)size, -30));
  b->n_views = 1;
  b->bytes = bytes;
  b->is_raw = true;
  b->is_sum = b->is_released = b->has_digest = false;
  b->parts.n = 0;
  machine_drop_view(m, v);
  v->block = b;
  v->base = v->data = (char *)b->data;
  return true;
}

void machine_drop_view(struct machine *m, struct view *v) {
  struct memory_block *b = v->block;
  v->block = NULL;
  v->is_fixed = false;
  if (!b || --b->n_views)
    return;
  b->next_free = *free_list(m, b->size);
  *free_list(m, b->size) = b;
}

void machine_assign_view(struct machine *m, struct view *to, const struct view *from, int rank) {
  const size_t n = (size_t)rank * sizeof *to->dims;
  if (to == from)
    return;
  if (from->block)
    from->block->n_views++;
  machine_drop_view(m, to);
  to->block = from->block;
  to->is_fixed = from->is_fixed;
  to->base = from->base;
  to->data = from->data;
  memcpy(to->dims, from->dims, n);
  memcpy(to->strides, from->strides, n);
}

void machine_free_all(struct machine *m) {
  while (m->blocks) {
    struct memory_block *b = m->blocks;
    m->blocks = b->next;
    free(b->parts.v);
    free(b);
  }
}

bool machine_is_sole_view(const struct view *v) {
  return v->block && v->block->n_views == 1;
}

bool machine_is_unwritten(const struct view *v) {
  return v->block && v->block->is_raw && !v->block->parts.n;
}

/* ---- uses -------------------------------------------------------------------------------------------------------- */

/* A released block stays until no slot has a view of it, so that each later use of it is found. */
void machine_release(struct view *v) {
  if (v->block) /* not an argument */
    v->block->is_released = true;
}

SIM_PER_MACHINE static void spoil(struct memory_block *b) {
  uint64_t *words = (uint64_t *)(void *)b->data;
  for (size_t k = 0; k < b->size / sizeof *words; k++)
    words[k] = interp_unwritten;
  b->is_raw = false;
}

/* True if one part writes the whole block. */
static bool is_covered(const struct memory_block *b) {
  for (int k = 0; k < b->parts.n; k++) {
    const struct rows *to = &b->parts.v[k].to;
    if (to->data == (const char *)b->data && (to->step == to->length || to->n == 1) &&
        rounded((size_t)(to->n * to->length)) == b->size)
      return true;
  }
  return false;
}

static bool is_released(struct machine *m, const struct instr *in, const struct memory_block *b) {
  return b && b->is_released && !machine_fault(m, in, "uses a buffer that was released");
}

/* Makes the block's bytes what the program expects. */
static void settle(struct memory_block *b) {
  if (b->is_raw && !is_covered(b))
    spoil(b);
  b->is_raw = false;
  parts_copy(&b->parts);
}

bool machine_may_use(struct machine *m, const struct instr *in, int slot) {
  struct memory_block *b = view_of(m, slot)->block;
  if (is_released(m, in, b))
    return false;
  if (b && (b->is_raw || b->parts.n))
    settle(b);
  return true;
}

/* True if the view has all elements of its block. */
static bool is_whole(const struct machine *m, int slot) {
  const struct view *v = view_of(m, slot);
  int64_t n = 1;
  for (int d = rank_of(m, slot) - 1; d >= 0; d--) {
    if (v->strides[d] != n)
      return false;
    n *= v->dims[d];
  }
  return v->data == (char *)v->block->data && rounded((size_t)n * dtype_size(m->p->slots[slot].t)) == v->block->size;
}

bool machine_will_fill(struct machine *m, const struct instr *in, int slot) {
  struct memory_block *b = view_of(m, slot)->block;
  if (is_released(m, in, b))
    return false;
  if (b && (b->is_raw || b->parts.n) && !is_whole(m, slot))
    settle(b);
  if (b) {
    b->is_raw = b->is_sum = b->has_digest = false;
    b->parts.n = 0;
  }
  return true;
}

bool machine_may_write(struct machine *m, const struct instr *in, int slot) {
  struct memory_block *b = view_of(m, slot)->block;
  if (!machine_may_use(m, in, slot))
    return false;
  if (b)
    b->is_sum = b->has_digest = false;
  return true;
}

bool machine_may_accumulate(struct machine *m, const struct instr *in, int slot, bool *has_unwritten) {
  struct memory_block *b = view_of(m, slot)->block;
  const bool all = b && is_whole(m, slot);
  *has_unwritten = !b || !b->is_sum;
  if (is_released(m, in, b))
    return false;
  if (all && b->is_raw && !b->parts.n) {
    memset(b->data, 0, b->size);
    b->is_raw = *has_unwritten = false;
  }
  if (!machine_may_use(m, in, slot))
    return false;
  if (b) {
    b->is_sum |= all;
    b->has_digest = false;
  }
  return true;
}

bool machine_is_zero(const struct machine *m, int slot) {
  const struct view *v = view_of(m, slot);
  return machine_is_unwritten(v) && !v->block->is_released && is_whole(m, slot);
}

bool machine_is_sum(const struct machine *m, int slot) {
  const struct memory_block *b = view_of(m, slot)->block;
  return b && b->is_sum;
}

/* ---- copies that are put off -------------------------------------------------------------------------------------- */

/* Of fewer bytes it costs less to copy them. */
enum { LEAST_PUT_OFF = 16 << 10 };

bool machine_find_fixed(const struct machine *m, int slot, struct rows *out) {
  const struct view *v = view_of(m, slot);
  if (!m->products || !parts_rows(v, rank_of(m, slot), dtype_size(m->p->slots[slot].t), out))
    return false;
  if (!v->block || v->block->is_released)
    return v->is_fixed;
  const struct rows rows = *out;
  return parts_find(&v->block->parts, &rows, out);
}

bool machine_put_off(const struct machine *m, const struct view *to, size_t size, const struct rows *from) {
  struct memory_block *b = to->block;
  struct part x = {.from = from->data, .from_step = from->step};
  if (!m->products || !b || b->is_released || from->n * from->length < LEAST_PUT_OFF ||
      !parts_rows(to, 2, size, &x.to) || x.to.n != from->n || x.to.length != from->length || !parts_add(&b->parts, &x))
    return false;
  b->is_sum = b->has_digest = false;
  return true;
}

bool machine_put_off_sum(const struct machine *m, int slot, const struct rows *from) {
  const struct view *to = view_of(m, slot);
  if (!machine_put_off(m, to, sizeof(float), from))
    return false;
  to->block->is_sum = is_whole(m, slot);
  return true;
}

bool machine_put_off_copy(const struct machine *m, int from, const struct view *to) {
  struct rows rows;
  return rank_of(m, from) == 2 && machine_find_fixed(m, from, &rows) &&
         machine_put_off(m, to, dtype_size(m->p->slots[from].t), &rows);
}
