/* memory: what holds the data of a run.
 *
 * A buffer without a place has a block of its own, with its shadow after it.  Those that have places lie in SBUF, PSUM or
 * the scratch space in HBM, so that what is written to one place is read from any other that has the same bytes.  Of
 * each of these memories as much is simulated as places reach.  The shadow of an element of n bytes at byte k is byte
 * k / n of the shadow of all elements of that size: buffers that share no byte of memory share none there.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/machine.h"

enum { HUGE_PAGE = 2 << 20 }; /* bytes of a large page */
enum { LINE = 64, BANK_BYTES = NISA_BANK_F32 * 4 };
static const int64_t MEMORY_MAX = (int64_t)2 << 30;
static const size_t SPARE_BYTES_MAX = 32 << 20;

static int64_t memory_max(const struct sim_machine *m) {
  return m->options->memory_max ? m->options->memory_max : MEMORY_MAX;
}

static bool fail_at(struct sim_machine *m, const struct sim_buffer *b) {
  m->instr = NULL;
  m->fault->loc = b->loc;
  return sim_fail(m, SIM_FAULT_MEMORY, "its data needs more than %lld MiB", (long long)(memory_max(m) >> 20));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Of a buffer without a place, which has all its copies at the same time. */
static int64_t all_bytes(const struct sim_buffer *b) {
  return b->bytes * (b->place.copies > 1 ? b->place.copies : 1);
}

static size_t elements_of(const struct sim_buffer *b) {
  return (size_t)(all_bytes(b) / sim_type_bytes(b->type));
}

/* The size of a block with data, unless the caller has given the memory for it, and shadow. */
static size_t block_size(const struct sim_buffer *b, const struct sim_memory *x) {
  return (x->given ? 0 : (size_t)all_bytes(b)) + elements_of(b) + 1;
}

static char *take_block(struct sim_machine *m, size_t size) {
  for (int k = 0; k < SIM_SPARE; k++)
    if (m->spare[k].block && m->spare[k].size == size) {
      char *block = m->spare[k].block;
      m->spare[k].block = NULL;
      m->spare_bytes -= size;
      return block;
    }
  if (size < 2 * HUGE_PAGE)
    return malloc(size);
  char *block = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (block)
    madvise(block, size, MADV_HUGEPAGE); /* only faster: the kernel makes 512 times fewer pages */
  return block;
}

static void give_back(struct sim_machine *m, char *block, size_t size) {
  for (int k = 0; k < SIM_SPARE && m->spare_bytes + size <= SPARE_BYTES_MAX; k++)
    if (!m->spare[k].block) {
      m->spare[k] = (struct sim_spare){block, size};
      m->spare_bytes += size;
      return;
    }
  free(block);
}

static bool take_own(struct sim_machine *m, const struct sim_buffer *b, struct sim_memory *x, enum sim_shadow shadow) {
  char *block = take_block(m, block_size(b, x));
  if (!block)
    return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
  x->data = x->given ? x->given : block;
  x->shadow = (uint8_t *)block + (x->given ? 0 : all_bytes(b));
  memset(x->shadow, shadow, elements_of(b));
  return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int space_of(const struct sim_buffer *b) {
  return b->space == MEM_SBUF ? SIM_SBUF : b->space == MEM_PSUM ? SIM_PSUM : SIM_SCRATCH;
}

/* The bytes of the buffer in each partition on chip, and all of them in HBM. */
static int64_t row_bytes(const struct sim_buffer *b) {
  return mem_is_on_chip(b->space) && b->dims[0] ? b->bytes / b->dims[0] : b->bytes;
}

/* Where copy 0 begins in its partitions. */
static int64_t begin_of(const struct sim_buffer *b) {
  return b->place.bank * (int64_t)BANK_BYTES + b->place.offset;
}

/* The end of the last place in the memory; negative if it exceeds 64 bits. */
static int64_t end_of_places(const struct sim_program *p, int space) {
  int64_t end = 0;
  for (int k = 0; k < p->n_buffers; k++) {
    const struct sim_buffer *b = &p->buffers[k];
    int64_t e;
    if (!b->place.is_set || space_of(b) != space)
      continue;
    if (__builtin_mul_overflow(b->place.copies - 1, b->place.stride, &e) ||
        __builtin_add_overflow(e, begin_of(b), &e) || __builtin_add_overflow(e, row_bytes(b), &e))
      return -1;
    end = e > end ? e : end;
  }
  return end;
}

/* Memory that is zero; pages that are not used take none.  Large pages make it faster, because instructions go through
 * all partitions, which are far apart. */
static void *map_zeros(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  if (size >= 2 * HUGE_PAGE)
    madvise(p, size, MADV_HUGEPAGE);
  return p;
}

/* Makes the memory in which b has its place. */
static bool make_space(struct sim_machine *m, const struct sim_buffer *b, struct sim_space *s) {
  const int64_t rows = mem_is_on_chip(b->space) ? NISA_PARTITIONS : 1;
  const int64_t end = end_of_places(m->program, space_of(b));

  if (end < 0 || end > memory_max(m))
    return fail_at(m, b);
  s->pitch = (end + LINE) / LINE * LINE;
  s->pitch += s->pitch / LINE % 2 ? 0 : LINE; /* so that rows do not compete for the same sets of a cache */
  s->size = (size_t)(rows * s->pitch);
  s->data = map_zeros(s->size);
  for (int k = 0; k < SIM_SHADOWS; k++)
    s->shadow[k] = map_zeros(s->size >> k);
  for (int k = 0; k < SIM_SHADOWS; k++)
    if (!s->data || !s->shadow[k])
      return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
  return true;
}

static bool take_place(struct sim_machine *m, const struct sim_buffer *b, int64_t copy, struct sim_memory *x,
                       enum sim_shadow shadow) {
  struct sim_space *s = &m->spaces[space_of(b)];
  const int size = sim_type_bytes(b->type), kind = __builtin_ctz((unsigned)size);
  const int64_t rows = mem_is_on_chip(b->space) ? b->dims[0] : 1, row = row_bytes(b);

  if (!s->data && !make_space(m, b, s))
    return false;
  const int64_t at = b->place.partition * s->pitch + begin_of(b) + copy % b->place.copies * b->place.stride;
  assert(at % size == 0 && at + (rows - 1) * s->pitch + row <= NISA_PARTITIONS * s->pitch);
  x->data = s->data + at;
  x->shadow = s->shadow[kind] + at / size;
  x->row = row;
  x->pitch = mem_is_on_chip(b->space) ? s->pitch : 0;
  for (int64_t p = 0; p < rows; p++)
    memset(x->shadow + p * s->pitch / size, shadow, (size_t)(row / size));
  return true;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

void sim_drop(struct sim_machine *m, int buffer) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  struct sim_memory *x = &m->memories[buffer];
  if (x->data && m->options->n_watches)
    sim_watch_end(m, buffer);
  if (x->data && x->shadow) { /* what has no shadow is borrowed */
    m->used -= all_bytes(b);
    if (!b->place.is_set)
      give_back(m, x->given ? (char *)x->shadow : x->data, block_size(b, x));
  }
  x->data = NULL;
  x->shadow = NULL;
}

bool sim_allocate(struct sim_machine *m, int buffer, int64_t copy, enum sim_shadow shadow) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  struct sim_memory *x = &m->memories[buffer];

  sim_drop(m, buffer);
  if (all_bytes(b) > memory_max(m) - m->used)
    return fail_at(m, b);
  if (!(b->place.is_set ? take_place(m, b, copy, x, shadow) : take_own(m, b, x, shadow)))
    return false;
  x->is_released = false;
  m->used += all_bytes(b);
  m->most = m->used > m->most ? m->used : m->most;
  return true;
}

void sim_free_memories(struct sim_machine *m) {
  for (int k = 0; k < m->program->n_buffers; k++)
    sim_drop(m, k);
  for (int k = 0; k < SIM_SPARE; k++)
    free(m->spare[k].block);
  for (int k = 0; k < SIM_SPACES; k++) {
    if (m->spaces[k].data)
      munmap(m->spaces[k].data, m->spaces[k].size);
    for (int n = 0; n < SIM_SHADOWS; n++)
      if (m->spaces[k].shadow[n])
        munmap(m->spaces[k].shadow[n], m->spaces[k].size >> n);
  }
  free(m->memories);
}
