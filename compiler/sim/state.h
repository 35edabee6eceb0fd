/* state: which elements of a memory are written.
 *
 * PSUM has a byte per element, which also tells which accumulation group wrote it.  Other memories have a bit per
 * element, so that a row is checked and marked in a few steps and the state takes little memory beside the data. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <string.h>

#include "sim/bits.h"

/* A byte of PSUM.  SIM_STARTED … SIM_GROUP_END - 1: a matmul of the accumulation group of this number has written it;
 * SIM_ENDED: one of a group to which nothing is added any more. */
enum sim_shadow { SIM_UNWRITTEN, SIM_WRITTEN, SIM_STARTED, SIM_GROUP_END = 255, SIM_ENDED = 255 };

struct sim_state {
  uint64_t *bits;  /* set: the element is written */
  uint8_t *groups; /* of PSUM; with neither of both all elements are written, and none will be */
  int64_t first;   /* the bit or byte of the first element */
};

/* The bytes that the states of n elements take. */
static inline size_t sim_state_bytes(bool is_psum, size_t n) {
  return is_psum ? n : sim_bits_bytes(n);
}

/* The next functions are about the n elements first, first + step, …, counted from s->first. */

static inline bool sim_state_is_written(const struct sim_state *s, int64_t first, int64_t step, int64_t n) {
  bool is_written = true;
  first += s->first;
  if (s->bits && step == 1)
    return sim_bits_all(s->bits, first, n);
  if (s->groups && step == 1)
    return !memchr(s->groups + first, SIM_UNWRITTEN, (size_t)n);
  for (int64_t k = 0; s->bits && k < n; k++)
    is_written &= sim_bit_get(s->bits, first + k * step);
  for (int64_t k = 0; s->groups && k < n; k++)
    is_written &= s->groups[first + k * step] != SIM_UNWRITTEN;
  return is_written;
}

static inline void sim_state_fill(const struct sim_state *s, int64_t first, int64_t n, bool is_written) {
  if (s->bits)
    sim_bits_fill(s->bits, s->first + first, n, is_written);
  else
    memset(s->groups + s->first + first, is_written ? SIM_WRITTEN : SIM_UNWRITTEN, (size_t)n);
}

static inline void sim_state_write(const struct sim_state *s, int64_t first, int64_t step, int64_t n) {
  if (step == 1) {
    sim_state_fill(s, first, n, true);
    return;
  }
  first += s->first;
  for (int64_t k = 0; k < n; k++)
    if (s->bits)
      sim_bit_set(s->bits, first + k * step);
    else
      s->groups[first + k * step] = SIM_WRITTEN;
}

#endif
