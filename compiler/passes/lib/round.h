/* round: a round of a loop, or the program as a single round, as steps that keep engines busy, and how long it takes.
 *
 * For passes that choose between orders or engines.  round.c says what of the machine is played. */
#ifndef PASSES_LIB_ROUND_H
#define PASSES_LIB_ROUND_H

#include "base/table.h"
#include "nisa/nisa.h"

/* Nanoseconds for which each engine is busy. */
struct round_load {
  double on[NISA_ENGINE_COUNT];
};

/* An instruction, or a loop inside with all that it does. */
struct round_step {
  enum nisa_engine engine;           /* NISA_ENGINE_NONE: a loop inside */
  bool is_store;                     /* a transfer from the chip, which an engine that computes starts */
  double trigger[NISA_ENGINE_COUNT]; /* how long starting it keeps that engine: loads Sync, stores one that computes */
  struct round_load load;            /* of an instruction: its engine's only */
  int first_use, n_uses;
};

struct round_use {
  int buffer;
  bool writes, is_far; /* is_far: in HBM */
};

struct round_buffer {
  bool is_own;      /* allocated in the body of the loop: each round has one of its own */
  bool is_fixed;    /* an access is at the same place in all rounds */
  unsigned engines; /* 1 << those that use it */
};

/* The body of a loop, in program order. */
struct round {
  struct arena *arena;
  struct table by_value; /* base of an access -> its buffer, plus 1 */
  MlirBlock block;
  int64_t trips; /* rounds of the loop */
  struct {
    struct round_step *v;
    int n, cap;
  } steps;
  struct {
    struct round_use *v;
    int n, cap;
  } uses;
  struct {
    struct round_buffer *v;
    int n, cap;
  } buffers;
  double *times; /* for round_ns */
};

/* Sets *out to a round of the body of op, a scf.for or a function, without steps. */
struct round round_of(struct arena *a, MlirOperation op, MlirBlock block);
/* How often a loop's body runs, 1 if that is not known. */
int64_t round_trips(MlirOperation loop);
/* Adds an instruction, which has an engine.  Returns its step, until the next call. */
struct round_step *round_add_instruction(struct round *r, const struct nisa_instr *in, enum target t);
/* Adds an operation with a body, of which `inner` says what one round takes. */
void round_add_inside(struct round *r, MlirOperation op, const struct round_load *inner, enum target t);
/* Nanoseconds from when an engine is free again to when another one sees the result. */
double round_delay_ns(enum nisa_engine e);
/* Adds up what the engines do. */
struct round_load round_total(const struct round *r);
/* Which part of the time that starting loads takes counts: one half if Scalar, which computes nothing, starts half of them. */
double round_share_of_loads(const struct round_load *total);
/* True for a loop inside, of products and what reads them out of PSUM. */
bool round_is_product(const struct round_step *s);
/* Plays it from `ready` on, when its operands are there.  lanes: when each engine is free.  Returns when it ends. */
double round_play_product(const struct round_step *s, double ready, double *lanes);
/* The time from round to round, when many of them run; a few rounds together, divided by their number. */
double round_ns(struct round *r);

#endif
