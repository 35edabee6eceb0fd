/* straight: plays a short program without loops on a model of the machine, for choices of the engine that computes
 * something or starts a transfer.
 *
 * The model has what matters in a program of some microseconds: engines execute in order; a transfer begins some time after the
 * engine that starts it is free and its data is there; GpSimd builds descriptors before; hardware supplies them at a rate; all
 * transfers share the DMA engines.  The constants are those of sim/cost.def.  What it leaves out: the order in which
 * transfers share the DMA engines, and the Tensor engine's clock, which it takes to be halved at the start.
 */
#ifndef PASSES_LIB_STRAIGHT_H
#define PASSES_LIB_STRAIGHT_H

#include "base/target.h"
#include "nisa/nisa.h"

enum { STRAIGHT_MAX = 128 }; /* instructions of a program that is played */

/* What an engine that starts a transfer takes, in ns: to build descriptors before; it is held; until the first byte. */
struct straight_start {
  double build, hold, first;
};

struct straight_step {
  MlirOperation op;
  enum nisa_engine engine; /* that computes; of a transfer the one that starts it */
  bool is_transfer, is_load;
  bool needs_table;                   /* an activation */
  double on[NISA_ENGINE_COUNT];       /* ns for which it keeps an engine that may compute it; -1: it may not */
  double work, supply;                /* of a transfer: of all DMA engines, and of its descriptors */
  const struct straight_start *start; /* of a transfer, by the engine that starts it */
  int64_t descriptors;
  int first_wait, n_waits; /* of straight.waits: the steps before it that it waits for */
  double end;              /* an answer of straight_play */
};

struct straight {
  enum target target;
  int n, n_waits, n_transfers;
  struct straight_step *steps;
  int *waits;
};

/* Reads the instructions of a block in their order.  False if it has more than plain loads, stores and what engines compute, a
 * loop, or more than STRAIGHT_MAX instructions.  A load is from an array in HBM that the block does not write. */
bool straight_read(struct arena *a, MlirBlock block, enum target t, struct straight *out);
/* Returns when all is complete, in nanoseconds; it is a little later the later the other steps end. */
double straight_play(struct straight *s);
/* Lets for each transfer Sync, Scalar or GpSimd start it, and one of the engines of `on` compute each other step, so that the program
 * ends early.  Begins with the engines that are there.  Returns what straight_play says then. */
double straight_choose(struct straight *s);
/* The same for transfers only. */
double straight_choose_starters(struct straight *s);

#endif
