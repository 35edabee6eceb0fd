/* buffers: what passes ask about memrefs: views and their roots, who reads and writes, whether slices are disjoint. */
#ifndef PASSES_BUFFERS_H
#define PASSES_BUFFERS_H

#include "ir/structured.h"
#include "passes/pass.h"

/* subview, cast, collapse_shape and the like: result 0 is another view of operand 0. */
bool buffer_is_view(MlirOperation op);
/* What v is a view of: an allocation, an argument, a loop's result. */
MlirValue buffer_root(MlirValue v);
/* The value that may be the same buffer as operand k of op once op is done: a view's, a loop's or select's result, the
 * result of the loop or branch that a yield is in.  Null if there is none. */
MlirValue buffer_passed_on(MlirOperation op, intptr_t k);

enum { BUFFER_READS = 1, BUFFER_WRITES = 2 };
/* What op does with the contents of operand k; a view does nothing.  Unknown operations do both. */
int buffer_access(MlirOperation op, intptr_t k);

/* One use of a buffer, directly or through views. */
struct buffer_use {
  MlirOperation op;
  intptr_t operand;
  int access;
};
struct buffer_uses {
  int n, cap;
  struct buffer_use *v;
};
/* All uses of root but those that make views. */
struct buffer_uses buffer_find_uses(struct arena *a, MlirValue root);

/* The operation in `block` that is op or contains it; null if there is none. */
MlirOperation buffer_ancestor_in(MlirOperation op, MlirBlock block);
/* True if x stands before y in their block. */
bool buffer_is_before(MlirOperation x, MlirOperation y);

/* True if what x views in one iteration of the loop never overlaps what y views in another: both are slices of `root`
 * that move by at least their size with the loop's counter. */
bool buffer_disjoint_across(MlirOperation loop, MlirValue root, MlirValue x, MlirValue y);

/* True if x and y, views of root, have no element in common, whatever the loops around them count. */
bool buffer_disjoint(MlirValue root, MlirValue x, MlirValue y);

/* True if what `read` views cannot have been written when `at` is executed: it belongs to an allocation, and no write
 * to that part can come before, be it from an earlier iteration of a loop.  at itself does not count as a write. */
bool buffer_is_undefined(struct arena *a, MlirOperation at, MlirValue read);

/* True for two views that are the same part of the same buffer: the same steps, one by one, from a common value. */
bool buffer_same_part(MlirValue x, MlirValue y);

#endif
