/* knob_driven_fusion: what its files share.  See knob_driven_fusion.c. */
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

/* The loops of the block, but not those inside them. */
struct ir_ops parts_loops_in(struct arena *a, MlirBlock block);

/* Sets of dimensions: bit d is dimension d. */
enum { PARTS_NO_DIM = 0 };
#define PARTS_ALL_DIMS ((1u << STRUCTURED_LOOPS_MAX) - 1)
int parts_first_dim(unsigned dims); /* -1 for none */

/* Calls visit with each slice that is extracted from v, inserted into v or inserted into what v becomes thereby, also in
 * the loops that carry it.  False if v is used in another way, or if visit returns false. */
bool parts_each_slice(MlirValue v, bool (*visit)(const struct slice *, void *), void *user);

/* The dimensions in which the loop writes its carried value k only at its counter, at most a step at a time: what an
 * iteration writes is then complete after it. */
unsigned parts_written(MlirOperation loop, int k);
/* The dimensions in which all slices of the carried value k, written and read, are at the counter in that way. */
unsigned parts_used(MlirOperation loop, int k);
/* The bounds are constants for one iteration.  Everything that it writes is complete after it. */
bool parts_runs_once(MlirOperation loop);
/* The dimensions in which the loop reads v only at its counter.  is_within_step: only if at most a step at a time.
 * PARTS_ALL_DIMS if the loop does not read v; PARTS_NO_DIM if it uses v in another way than by slices. */
unsigned parts_read(MlirOperation loop, MlirValue v, bool is_within_step);

/* Makes slices in `loop` of results of earlier loops read from the loop that wrote the part: a value with a tail is
 * computed by several loops, each on the result of the one before it. */
void parts_read_where_written(struct pass_run *run, MlirOperation loop);
/* The other way round, for the slices that are left when all is merged: reading an old value after a loop has carried it
 * on would need a copy of it. */
void parts_read_latest(struct pass_run *run);
/* The value that v was before the loops that write only other parts of it than `loop` does to its carried value k. */
MlirValue parts_initial(MlirOperation loop, int k);

/* Makes slices of v that are read in `block`, or in the loops in it, read what was inserted into v. */
void parts_forward(struct pass_run *run, MlirValue v, MlirBlock block);

/* ---- merge.c ------------------------------------------------------------------------------------------------------ */

struct merging {
  struct pass_run *run;
  struct {
    MlirOperation *v;
    int n, cap;
  } made;            /* the merged loops that are still there, none inside another */
  const char *why;   /* why two loops cannot be one; in the arena */
  MlirOperation who; /* what `why` is about */
};

/* Merges two loops of one block with the same bounds, `first` before `second`.  Loops in between that read `first` and
 * are read by `second` become part of the merged loop, too.  Null if they cannot be merged; m->why says why. */
MlirOperation merge_loops(struct merging *m, MlirOperation first, MlirOperation second);
/* Merges loops that compute one value, each on the result of the one before it, where they have the same bounds: the
 * parts of a row, of which the last one is a tail.  v is the result of the last one. */
void merge_chain(struct merging *m, MlirValue v);
bool merge_has_same_bounds(MlirOperation a, MlirOperation b);
/* "0 to 256 in steps of 128" */
const char *merge_bounds_text(struct arena *a, MlirOperation loop);

/* ---- shrink.c ----------------------------------------------------------------------------------------------------- */

/* Values that only the merged loops read become as large as the part that an iteration needs. */
void shrink_loops(struct merging *m);

#endif
