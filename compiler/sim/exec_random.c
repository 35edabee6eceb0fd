/* exec_random: random numbers.  nisa/nisa.h says how the generators go on, and how a seed makes their state. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/machine.h"
#include "sim/row.h"

enum { WORDS = 6, MOST = 4 }; /* of the state of a generator; generators of a lane */

struct sim_generators {
  uint32_t word[2][NISA_PARTITIONS][MOST][WORDS]; /* of Vector and of GpSimd */
};

static bool is_gpsimd(const struct sim_machine *m) {
  return m->instr->engine == NISA_ENGINE_GPSIMD;
}

/* The generators that each lane of the engine has. */
static int count(const struct sim_machine *m) {
  return is_gpsimd(m) ? 1 : MOST;
}

/* The finalizer of MurmurHash3, which spreads each bit over the word. */
static uint32_t spread(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

static void seed(struct sim_generators *g, bool gpsimd, uint32_t s) {
  for (uint32_t lane = 0; lane < NISA_PARTITIONS; lane++)
    for (uint32_t k = 0; k < MOST; k++)
      for (uint32_t w = 0; w < WORDS; w++)
        g->word[gpsimd][lane][k][w] = spread(s + 0x9e3779b9u * (1 + w + WORDS * (k + MOST * lane)));
}

/* The generators of the engine, seeded with 0 at their first use. */
static uint32_t (*generators(struct sim_machine *m)) [MOST][WORDS] {
  struct sim_generators **own = &m->generators[m->core];
  if (!*own) {
    *own = calloc(1, sizeof **own);
    if (!*own)
      arena_oom(sizeof **own);
    seed(*own, false, 0);
    seed(*own, true, 0);
  }
  return (*own)->word[is_gpsimd(m)];
}

/* XORWOW: five words that are shifted through, and a counter. */
static uint32_t next(uint32_t *w) {
  const uint32_t t = w[0] ^ w[0] >> 2;
  memmove(w, w + 1, 4 * sizeof *w);
  w[4] = (w[4] ^ w[4] << 4) ^ (t ^ t << 1);
  w[5] += 362437;
  return w[4] + w[5];
}

static bool read_bound(struct sim_machine *m, int operand, int64_t p, float *out) {
  struct sim_access x;
  return sim_open(m, operand, &x) && sim_read_f32(m, &x, x.o->partitions == 1 ? 0 : p, 0, 1, out);
}

bool sim_exec_random(struct sim_machine *m) {
  const bool is_number = m->instr->operand[1].kind != SIM_ABSENT;
  struct sim_access dst;
  float low = 0, high = 1, numbers[SIM_CHUNK];
  int64_t bits[SIM_CHUNK];
  if (!sim_open(m, 0, &dst))
    return false;
  for (int64_t p = 0; p < dst.o->partitions; p++) {
    uint32_t (*lane)[WORDS] = generators(m)[p];
    if (is_number && (!read_bound(m, 1, p, &low) || !read_bound(m, 2, p, &high)))
      return false;
    const float width = high - low;
    for (int64_t f = 0; f < dst.o->elements; f += SIM_CHUNK) {
      const int64_t n = dst.o->elements - f < SIM_CHUNK ? dst.o->elements - f : SIM_CHUNK;
      if (!sim_work(m, n))
        return false;
      for (int64_t k = 0; k < n; k++) {
        const uint32_t x = next(lane[(f + k) % count(m)]);
        const float part = (float)(x >> 8) * 0x1p-24f * width; /* rounded before it is added */
        bits[k] = x;
        numbers[k] = low + part;
      }
      if (is_number)
        sim_write_f32(&dst, p, f, n, numbers);
      else
        sim_write_int(&dst, p, f, n, bits);
    }
  }
  return true;
}

bool sim_exec_random_seed(struct sim_machine *m) {
  struct sim_access src;
  int64_t s;
  if (!sim_open(m, 0, &src) || !sim_read_int(m, &src, src.type, 0, 0, 1, &s))
    return false;
  (void)generators(m);
  seed(m->generators[m->core], is_gpsimd(m), (uint32_t)s);
  return true;
}

/* The words of a lane, one generator after the other. */
bool sim_exec_random_state(struct sim_machine *m) {
  struct sim_access x;
  int64_t row[MOST * WORDS];
  const int n = count(m) * WORDS;
  if (!sim_open(m, 0, &x))
    return false;
  if (x.o->elements != n)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "a lane has %d words", n);
  for (int64_t p = 0; p < x.o->partitions; p++) {
    uint32_t *words = generators(m)[p][0];
    if (m->instr->kind == NISA_RANDOM_SET_STATE) {
      if (!sim_read_int(m, &x, x.type, p, 0, n, row))
        return false;
      for (int k = 0; k < n; k++)
        words[k] = (uint32_t)row[k];
    } else {
      for (int k = 0; k < n; k++)
        row[k] = words[k];
      sim_write_int(&x, p, 0, n, row);
    }
  }
  return true;
}
