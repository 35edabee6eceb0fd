/* memory: blocks of memory, counted by the slots that hold views of them.
 *
 * A block that nothing has written is "raw": its bytes are set when an instruction uses it, unless the instruction writes
 * all of it.  They are then NaNs (in 16-, 32- and 64-bit floats; in most 8-bit ones and as integers, an odd number), so
 * that a result that depends on them is wrong.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "interp/internal.h"
#include "sim/simd.h"

const uint64_t interp_unwritten = 0x7ffa7ffa7ffa7ffa;

struct memory_block {
  struct memory_block *next; /* of all blocks */
  struct memory_block *next_free;
  size_t size;
  int64_t n_views; /* slots that hold a view of it */
  bool is_raw, is_released;
  bool is_sum; /* a product has accumulated into all of it, and nothing else has written it since */
  max_align_t data[];
};

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

static struct memory_block *new_block(struct machine *m, size_t size) {
  struct memory_block *b = size > SIZE_MAX / 2 ? NULL : malloc(sizeof *b + size);
  if (!b)
    arena_oom(size);
  *b = (struct memory_block){.next = m->blocks, .size = size};
  m->blocks = b;
  return b;
}

void machine_allocate(struct machine *m, struct view *v, size_t bytes) {
  const size_t size = rounded(bytes);
  struct memory_block *b = reuse(m, size);
  if (!b)
    b = new_block(m, size);
  b->n_views = 1;
  b->is_raw = true;
  b->is_sum = b->is_released = false;
  machine_drop_view(m, v);
  v->block = b;
  v->base = v->data = (char *)b->data;
}

void machine_drop_view(struct machine *m, struct view *v) {
  struct memory_block *b = v->block;
  v->block = NULL;
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
  to->base = from->base;
  to->data = from->data;
  memcpy(to->dims, from->dims, n);
  memcpy(to->strides, from->strides, n);
}

void machine_free_all(struct machine *m) {
  while (m->blocks) {
    struct memory_block *b = m->blocks;
    m->blocks = b->next;
    free(b);
  }
}

bool machine_is_sole_view(const struct view *v) {
  return v->block && v->block->n_views == 1;
}

bool machine_is_unwritten(const struct view *v) {
  return v->block && v->block->is_raw;
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

static bool is_released(struct machine *m, const struct instr *in, const struct memory_block *b) {
  return b && b->is_released && !machine_fault(m, in, "uses a buffer that was released");
}

bool machine_may_use(struct machine *m, const struct instr *in, int slot) {
  struct memory_block *b = view_of(m, slot)->block;
  if (is_released(m, in, b))
    return false;
  if (b && b->is_raw)
    spoil(b);
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
  if (b && b->is_raw && !is_whole(m, slot))
    spoil(b);
  if (b)
    b->is_raw = b->is_sum = false;
  return true;
}

bool machine_may_write(struct machine *m, const struct instr *in, int slot) {
  struct memory_block *b = view_of(m, slot)->block;
  if (!machine_may_use(m, in, slot))
    return false;
  if (b)
    b->is_sum = false;
  return true;
}

bool machine_may_accumulate(struct machine *m, const struct instr *in, int slot, bool *has_unwritten) {
  struct memory_block *b = view_of(m, slot)->block;
  const bool all = b && is_whole(m, slot);
  *has_unwritten = !b || !b->is_sum;
  if (is_released(m, in, b))
    return false;
  if (all && b->is_raw) {
    memset(b->data, 0, b->size);
    b->is_raw = *has_unwritten = false;
  }
  if (!machine_may_use(m, in, slot))
    return false;
  if (b)
    b->is_sum |= all;
  return true;
}
