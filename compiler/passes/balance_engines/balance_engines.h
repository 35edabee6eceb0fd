/* balance_engines: declarations shared by its files.  See balance_engines.c. */
#ifndef PASSES_BALANCE_ENGINES_H
#define PASSES_BALANCE_ENGINES_H

#include "base/table.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

/* ---- move.c: which engines compute the same ------------------------------------------------------------------------- */

/* True if Vector computes the instruction, and another engine may. */
bool balance_is_movable(const struct nisa_instr *in, enum target t);
/* True if engine e computes the same values. */
bool balance_can_move(const struct nisa_instr *in, enum nisa_engine e, enum target t);
/* Moves the instruction, for which balance_can_move is true, to engine e.  Returns the operation, which may be new. */
MlirOperation balance_move(struct pass_run *run, const struct nisa_instr *in, enum nisa_engine e);

/* How often a loop's body runs, 1 if that is not known. */
int64_t balance_trips(MlirOperation loop);

/* ---- round.c: how long a round of a loop takes ---------------------------------------------------------------------- */

/* Nanoseconds for which each engine is busy. */
struct balance_load {
  double on[NISA_ENGINE_COUNT];
};

/* An instruction, or a loop inside with all that it does. */
struct balance_step {
  enum nisa_engine engine;           /* NISA_ENGINE_NONE: a loop inside */
  bool is_store;                     /* a transfer from the chip, which an engine that computes starts */
  double trigger[NISA_ENGINE_COUNT]; /* how long starting it keeps that engine */
  struct balance_load load;          /* of an instruction: its engine's only */
  int first_use, n_uses;
};

struct balance_use {
  int buffer;
  bool writes, is_far; /* is_far: in HBM */
};

struct balance_buffer {
  bool is_own;      /* allocated in the body of the loop: each round has one of its own */
  bool is_fixed;    /* an access is at the same place in all rounds */
  unsigned engines; /* 1 << those that use it */
};

/* The body of a loop, in program order. */
struct balance_round {
  struct arena *arena;
  struct table by_value; /* base of an access -> its buffer, plus 1 */
  MlirBlock block;
  int64_t trips; /* rounds of the loop */
  struct {
    struct balance_step *v;
    int n, cap;
  } steps;
  struct {
    struct balance_use *v;
    int n, cap;
  } uses;
  struct {
    struct balance_buffer *v;
    int n, cap;
  } buffers;
  double *times; /* for balance_round_ns */
};

/* Nanoseconds from when an engine is free again to when another one sees the result. */
double balance_delay_ns(enum nisa_engine e);
/* Adds a step; the caller fills load. */
struct balance_step *balance_add_step(struct balance_round *r, enum nisa_engine e);
/* Notes what an instruction, which is the last step or is in the loop that is the last step, reads and writes. */
void balance_add_uses(struct balance_round *r, const struct nisa_instr *in);
/* Adds up what the engines do. */
struct balance_load balance_total(const struct balance_round *r);
/* True for a loop inside, of products and what reads them out of PSUM. */
bool balance_is_product(const struct balance_step *s);
/* Plays it from `ready` on, when its operands are there.  lanes: when each engine is free.  Returns when it ends. */
double balance_play_product(const struct balance_step *s, double ready, double *lanes);
/* The time from round to round, when many of them run; a few rounds together, divided by their number. */
double balance_round_ns(struct balance_round *r);

/* ---- overlap.c, overlap_write.c: the order of a body ------------------------------------------------------------------ */

/* Another order of a body's steps.  Those before step a come before those from step b on of the round before; b is 0 if the rounds
 * follow each other. */
struct overlap_cuts {
  int a, b;
  int *order, *to;      /* step order[k] comes at place k, and step s at place to[s] */
  double before, after; /* ns of a round */
};

/* Looks for an order of the loop's body in which a round is shorter.  If it finds one, it gives the round's steps that order. */
bool overlap_choose(struct pass_run *run, MlirOperation loop, struct balance_round *r, struct overlap_cuts *out);
/* Writes the body in that order.  Its instructions may have been moved to other engines meanwhile. */
void overlap_apply(struct pass_run *run, MlirOperation loop, const struct overlap_cuts *cuts);

#endif
