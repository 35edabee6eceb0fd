/* rounds: declarations shared by the files that make one instruction of several rounds.  See rounds.c. */
#ifndef PASSES_COALESCE_ROUNDS_H
#define PASSES_COALESCE_ROUNDS_H

#include "passes/coalesce_transfers/coalesce_transfers.h"

enum { INSTRS_MAX = 64, OUTER_MAX = 96, TILES_MAX = 64, ROUNDS_MAX = 1024 };

/* What becomes of the rounds of an instruction. */
enum how {
  HOW_ONE,     /* one instruction */
  HOW_TENSORS, /* one instruction, in which a column that is another one in each round is an operand like the others */
  HOW_APART    /* a loop of this instruction alone */
};

/* An access to memory that is older than the loop. */
struct outer {
  const struct nisa_access *x;
  struct side side;
  bool writes;
};

struct body {
  struct pass_run *run;
  struct repeated r; /* in: the instruction that is looked at */
  const struct coalesce_limits *limits;
  struct nisa_instr v[INSTRS_MAX];
  enum how how[INSTRS_MAX];
  int n;
  bool is_mixed;                              /* not all of it are transfers and instructions for each element */
  MlirValue tile[TILES_MAX], wide[TILES_MAX]; /* an allocation of the loop, and the one for all rounds */
  int n_tiles;
  struct outer outer[OUTER_MAX];
  int n_outer;
};

/* The number of the loop's allocation; -1 if v is another value. */
int rounds_tile_of(const struct body *b, MlirValue v);

/* ---- rounds_make.c: making the instructions --------------------------------------------------------------------------- */

/* True if the instruction has a column that may be an operand like the others: tensor_scalar_arith of one operation. */
bool rounds_may_be_tensors(const struct nisa_instr *in);
/* That instruction, with an element of the column for each of dst. */
struct nisa_instr rounds_as_tensors(MlirContext ctx, const struct nisa_instr *in);
/* The allocations for all rounds, in no block yet. */
void rounds_allocate(struct body *b);
/* Makes v[k] the instruction of all rounds; false if it gets too many dimensions.  What is apart stays as it is. */
bool rounds_widen(struct body *b, int k);
/* Puts the instructions in the place of the loop, or of a round in it, in the order of a round. */
void rounds_emit(struct body *b);

#endif
