/* normalize: the second half of prepare-arithmetic: two dimensions for everything; see prepare_arithmetic.c. */
#ifndef PASSES_NORMALIZE_H
#define PASSES_NORMALIZE_H

#include "passes/lib/edit.h"
#include "passes/pass.h"

enum { NORM_PARTITIONS = 128 };
/* A row of this many elements is one instruction of about its length in cycles, which is less than what spreading it
 * over the partitions costs in DMA descriptors. */
enum { NORM_ROW_MAX = 512 };

enum status normalize_shapes(struct pass_run *run);

/* ---- for operations that other passes change --------------------------------------------------------------------- */

/* Every input of the generic op in full rank: its dimension d is loop d, or 1 (map result 0) where the loop is missing.
 * An input that lacks loop `partition` is copied along it by linalg.broadcast.  Inputs with other maps (permuted, or
 * with computed indices) are left. */
void normalize_inputs(struct pass_run *run, MlirOperation op, int partition);

/* ---- between the two files ---------------------------------------------------------------------------------------- */

/* The largest divisor of n that is at most NORM_PARTITIONS. */
int64_t normalize_partitions(int64_t n);
void normalize_set_maps(struct pass_run *run, MlirOperation op, int n, MlirAffineMap const *maps);
void normalize_set_iterators(struct pass_run *run, MlirOperation op, int n, const bool *reduction);
/* Result r of op in this shape from now on, its init, too; other users than annotations get a reshape.  The caller sets
 * the maps. */
void normalize_result(struct pass_run *run, MlirOperation op, const struct structured *s, int r, int rank,
                      const int64_t *dims);
bool normalize_has_op(struct pass_run *run, MlirOperation op, const char *name);
void normalize_reduction(struct pass_run *run, MlirOperation op);

#endif
