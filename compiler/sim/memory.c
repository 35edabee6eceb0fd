/* memory: what holds the data of a run.
 *
 * A buffer without a place has a block of its own, with its state after it.  Those that have places lie in SBUF, PSUM or
 * the scratch space in HBM, so that what is written to one place is read from any other that has the same bytes.  Of
 * each of these memories as much is simulated as places reach.  The state of a unit of n bytes at byte k is number
 * k / n of the states of all units of that size: buffers that share no byte of memory share no state.  The unit of a buffer is
 * its smallest element.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/block.h"
#include "sim/machine.h"

enum { LINE = 64, WORD = 8, BANK_BYTES = NISA_BANK_F32 * 4 };
static const int64_t MEMORY_MAX = (int64_t)2 << 30;

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

static size_t units_of(const struct sim_buffer *b) {
  return (size_t)(all_bytes(b) / b->unit);
}

/* The bytes of a block before its state: the data, unless the caller has given the memory for it. */
static size_t data_bytes(const struct sim_buffer *b, const struct sim_memory *x) {
  return x->given ? 0 : ((size_t)all_bytes(b) + WORD - 1) / WORD * WORD;
}

static size_t block_size(const struct sim_buffer *b, const struct sim_memory *x) {
  return data_bytes(b, x) + sim_state_bytes(b->space == MEM_PSUM, units_of(b)) + 1;
}

/* The state of n units at `at`. */
static struct sim_state state_at(bool is_psum, void *at) {
  return (struct sim_state){.bits = is_psum ? NULL : at, .groups = is_psum ? at : NULL};
}

static char *block_of(const struct sim_memory *x) {
  return !x->given ? x->data : x->state.bits ? (char *)x->state.bits : (char *)x->state.groups;
}

static bool take_own(struct sim_machine *m, const struct sim_buffer *b, struct sim_memory *x, bool is_written) {
  char *block = sim_block_take(block_size(b, x));
  if (!block)
    return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
  x->data = x->given ? x->given : block;
  x->state = state_at(b->space == MEM_PSUM, block + data_bytes(b, x));
  sim_state_fill(&x->state, 0, (int64_t)units_of(b), is_written);
  return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int space_number(enum mem_space space, int core) {
  return !mem_is_on_chip(space) ? SIM_SCRATCH : (space == MEM_SBUF ? SIM_SBUF : SIM_PSUM) + core * SIM_SPACES_PER_CORE;
}

static int space_of(const struct sim_buffer *b) {
  return space_number(b->space, b->core);
}

struct sim_space *sim_space_of(struct sim_machine *m, enum mem_space space, int core) {
  return &m->spaces[space_number(space, core)];
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

/* Makes the memory in which b has its place. */
static bool make_space(struct sim_machine *m, const struct sim_buffer *b, struct sim_space *s) {
  const int64_t rows = mem_is_on_chip(b->space) ? NISA_PARTITIONS : 1;
  const int64_t end = end_of_places(m->program, space_of(b));

  if (end < 0 || end > memory_max(m))
    return fail_at(m, b);
  s->pitch = (end + LINE) / LINE * LINE;
  s->pitch += s->pitch / LINE % 2 ? 0 : LINE; /* so that rows do not compete for the same sets of a cache */
  s->size = (size_t)(rows * s->pitch);
  s->data = sim_block_take(s->size);
  bool has_all = s->data != NULL;
  for (int k = 0; k < SIM_SIZES; k++) {
    const size_t bytes = sim_state_bytes(b->space == MEM_PSUM, s->size >> k);
    void *at = calloc(bytes, 1);
    s->state[k] = state_at(b->space == MEM_PSUM, at);
    has_all &= at != NULL;
  }
  return has_all || sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
}

static bool take_place(struct sim_machine *m, const struct sim_buffer *b, int64_t copy, struct sim_memory *x,
                       bool is_written) {
  struct sim_space *s = &m->spaces[space_of(b)];
  const int size = b->unit, kind = __builtin_ctz((unsigned)size);
  const int64_t rows = mem_is_on_chip(b->space) ? b->dims[0] : 1, row = row_bytes(b);

  if (!s->data && !make_space(m, b, s))
    return false;
  x->copy = copy % b->place.copies;
  sim_settle_place(m, (int)(b - m->program->buffers), x->copy);
  const int64_t at = b->place.partition * s->pitch + begin_of(b) + x->copy * b->place.stride;
  assert(at % size == 0 && at + (rows - 1) * s->pitch + row <= NISA_PARTITIONS * s->pitch);
  x->data = s->data + at;
  x->state = s->state[kind];
  x->state.first = at / size;
  x->row = row;
  x->pitch = mem_is_on_chip(b->space) ? s->pitch : 0;
  for (int64_t p = 0; p < rows; p++)
    sim_state_fill(&x->state, p * s->pitch / size, row / size, is_written);
  return true;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static bool has_state(const struct sim_memory *x) {
  return x->state.bits || x->state.groups;
}

void sim_drop(struct sim_machine *m, int buffer) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  struct sim_memory *x = &m->memories[buffer];
  if (x->data && m->options->n_watches)
    sim_watch_end(m, buffer);
  if (x->data && has_state(x)) { /* what has no state is borrowed */
    m->used -= all_bytes(b);
    if (!b->place.is_set) {
      sim_settle_drop(m, buffer);
      sim_block_give(block_of(x), block_size(b, x));
    }
  }
  x->data = NULL;
  x->state = (struct sim_state){.bits = NULL};
}

bool sim_allocate(struct sim_machine *m, int buffer, int64_t copy, bool is_written) {
  const struct sim_buffer *b = &m->program->buffers[buffer];
  struct sim_memory *x = &m->memories[buffer];

  sim_drop(m, buffer);
  if (all_bytes(b) > memory_max(m) - m->used)
    return fail_at(m, b);
  if (!(b->place.is_set ? take_place(m, b, copy, x, is_written) : take_own(m, b, x, is_written)))
    return false;
  x->is_released = false;
  m->used += all_bytes(b);
  m->most = m->used > m->most ? m->used : m->most;
  return true;
}

void sim_free_memories(struct sim_machine *m) {
  if (m->options->n_watches)
    sim_settle_all(m);
  m->n_deferred = 0;
  for (int k = 0; k < m->program->n_buffers; k++)
    sim_drop(m, k);
  for (int k = 0; k < SIM_SPACES; k++) {
    if (m->spaces[k].data)
      sim_block_give(m->spaces[k].data, m->spaces[k].size);
    for (int n = 0; n < SIM_SIZES; n++) {
      free(m->spaces[k].state[n].bits);
      free(m->spaces[k].state[n].groups);
    }
  }
  free(m->memories);
}
