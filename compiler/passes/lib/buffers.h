/* buffers: answers questions about memrefs: views and their roots, readers and writers, and whether slices are
 * disjoint. */
#ifndef PASSES_BUFFERS_H
#define PASSES_BUFFERS_H

#include "ir/query.h"
#include "passes/pass.h"

/* True for subview, cast, collapse_shape and similar operations: result 0 is another view of operand 0. */
bool buffer_is_view(MlirOperation op);
/* The value that v is a view of: an allocation, an argument, or the result of a loop. */
MlirValue buffer_root(MlirValue v);
/* Returns the value that may be the same buffer as operand k of op: the result of a view, a loop or a select; for a
 * yield, the result of its loop or branch.  Null if there is none. */
MlirValue buffer_passed_on(MlirOperation op, intptr_t k);
/* Sets kept[d] if the result of the subview `op` has dimension d of its operand.  A result of fewer dimensions
 * keeps, from left to right, those with the same sizes as the result.  Returns the operand's rank, at most
 * IR_MEMREF_RANK_MAX. */
int buffer_kept_dims(MlirOperation op, bool *kept);

enum { BUFFER_READS = 1, BUFFER_WRITES = 2 };
/* Returns what op does with the contents of operand k.  A view does nothing; an unknown operation does both. */
int buffer_access(MlirOperation op, intptr_t k);

/* One use of a buffer, directly or through views. */
struct buffer_use {
  MlirOperation op;
  intptr_t operand;
  int access;
};
struct buffer_uses {
  struct buffer_use *v;
  int n, cap;
};
/* All uses of root except those that make views. */
struct buffer_uses buffer_find_uses(struct arena *a, MlirValue root);

/* True if x comes before y in their block. */
bool buffer_is_before(MlirOperation x, MlirOperation y);

/* Computes the range of the values of an index: a constant, the counter of a loop with known bounds, or products and sums of
 * those.  False if it is another one. */
bool buffer_index_range(MlirValue v, int64_t *lo, int64_t *hi);

/* True if x and y, which are views of root, have no common element for any values of the loops' counters. */
bool buffer_disjoint(MlirValue root, MlirValue x, MlirValue y);

/* True if the view x in one iteration of the loop never overlaps the view y in another iteration: both are slices of
 * `root` whose offset moves with the loop's counter by at least their size. */
bool buffer_disjoint_across(MlirOperation loop, MlirValue root, MlirValue x, MlirValue y);

/* True if `read` belongs to an allocation, and no write to its elements can be executed before `at`, not even in an
 * earlier iteration of a loop: then the values of the elements are undefined.  `at` itself does not count as a
 * write. */
bool buffer_is_undefined(struct arena *a, MlirOperation at, MlirValue read);

/* True if both views are the same part of the same buffer: the same sequence of views of a common value. */
bool buffer_same_part(MlirValue x, MlirValue y);

#endif
