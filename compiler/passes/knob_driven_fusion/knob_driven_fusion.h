/* knob_driven_fusion: declarations shared by its files.  See knob_driven_fusion.c. */
#ifndef PASSES_KNOB_DRIVEN_FUSION_H
#define PASSES_KNOB_DRIVEN_FUSION_H

#include "passes/lib/slice.h"
#include "passes/pass.h"

/* ---- parts.c: which part of a value an iteration writes and reads ------------------------------------------------- */

static inline int parts_n_carried(MlirOperation loop) {
  return (int)mlirOperationGetNumOperands(loop) - 3;
}
static inline MlirValue parts_counter(MlirOperation loop) {
  return mlirBlockGetArgument(ir_body(loop), 0);
}

/* Returns the loops of the block, but not those inside them. */
struct ir_ops parts_loops_in(struct arena *a, MlirBlock block);

/* Sets of dimensions: bit d is dimension d. */
enum { PARTS_NO_DIM = 0 };
#define PARTS_ALL_DIMS ((1u << STRUCTURED_LOOPS_MAX) - 1)
int parts_first_dim(unsigned dims); /* -1 for none */

/* Calls visit with each slice that is extracted from v, inserted into v, or inserted into a value that results from
 * such an insertion or from a loop that carries it.  Returns false if v is used in another way, or if visit returns
 * false. */
bool parts_each_slice(MlirValue v, bool (*visit)(const struct slice *, void *), void *user);

/* Returns the dimensions in which the loop writes its carried value k only at its counter, at most one step at a
 * time.  The part that an iteration writes is then complete after that iteration. */
unsigned parts_written(MlirOperation loop, int k);
/* Returns the dimensions in which all slices of the carried value k, written or read, are at the counter in that
 * way. */
unsigned parts_used(MlirOperation loop, int k);
/* True if the bounds are constants that give one iteration.  All that it writes is then complete after it. */
bool parts_runs_once(MlirOperation loop);
/* Returns the dimensions in which the loop reads v only at its counter (if is_within_step, at most one step at a
 * time).  Returns PARTS_ALL_DIMS if the loop does not read v, and PARTS_NO_DIM if it uses v in another way than by
 * slices. */
unsigned parts_read(MlirOperation loop, MlirValue v, bool is_within_step);

/* A value with a tail is computed by several loops, each on the result of the one before it.  Makes the slices of
 * such a value in `loop` read the result of the loop that wrote the part. */
void parts_read_where_written(struct pass_run *run, MlirOperation loop);
/* Makes the remaining slices read the latest value, after all merging: reading an old value after a loop has changed
 * it in place would need a copy. */
void parts_read_latest(struct pass_run *run);
/* Skips the loops that write other parts of the carried value k than `loop` does, and returns the value before
 * them. */
MlirValue parts_initial(MlirOperation loop, int k);

/* Makes slices of v in `block`, or in the loops in it, read the tile that was inserted into v. */
void parts_forward(struct pass_run *run, MlirValue v, MlirBlock block);

/* ---- merge.c ------------------------------------------------------------------------------------------------------ */

struct merging {
  struct pass_run *run;
  struct {
    MlirOperation *v;
    int n, cap;
  } made;            /* the merged loops that still exist, none inside another */
  const char *why;   /* why two loops cannot be merged; in the arena */
  MlirOperation who; /* the operation that `why` describes */
};

/* Merges two loops of one block with the same bounds, `first` before `second`.  Loops in between that read `first`
 * and are read by `second` become part of the merged loop, too.  Returns null if they cannot be merged, and sets
 * m->why. */
MlirOperation merge_loops(struct merging *m, MlirOperation first, MlirOperation second);
/* Merges loops with the same bounds that compute one value, each on the result of the one before it.  Such loops
 * compute the parts of a row, the last of which is a tail.  v is the result of the last loop. */
void merge_chain(struct merging *m, MlirValue v);
bool merge_has_same_bounds(MlirOperation a, MlirOperation b);
/* Returns text such as "0 to 256 in steps of 128". */
const char *merge_bounds_text(struct arena *a, MlirOperation loop);

/* ---- shrink.c ----------------------------------------------------------------------------------------------------- */

/* Reduces values that only the merged loops read to the part that an iteration needs. */
void shrink_loops(struct merging *m);

#endif
