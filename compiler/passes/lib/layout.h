/* layout: the annotations on values, nkipy.layout and nkipy.tile_op, as passes read and write them.
 *
 * A value has at most one of each, directly behind its definition (before anything else that uses it), the layout
 * first.  Both are users of the value, so replacing the value's uses moves them along unless they are excepted.
 */
#ifndef PASSES_LAYOUT_H
#define PASSES_LAYOUT_H

#include "base/memory.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* What the annotations of one value say. */
struct layout {
  MlirOperation layout_op, tile_op; /* null operations if there are none */
  int space;                        /* MEM_NONE if not said */
  int partition_dim;                /* -1 if not said */
  int n_tile, n_loop;               /* 0 if not said */
  int64_t tile[STRUCTURED_LOOPS_MAX], loop[STRUCTURED_LOOPS_MAX];
};

/* Reads them.  Of several layout or tile_op operations on a value the first ones count; what a first layout leaves open
 * is taken from the next. */
struct layout layout_read(MlirValue v);
/* Makes the value's annotations say what l says: one layout operation, and one tile_op if l->n_loop.  Operations that
 * are there are changed and keep their location, new ones get loc; they end up directly behind the definition. */
void layout_write(MlirValue v, const struct layout *l, MlirLocation loc);

/* A layout or tile_op of v. */
bool layout_is_annotation(MlirOperation op);
const char *layout_space_name(int space); /* "SBUF" */

/* `n` numbers as "[128,512]", in a. */
const char *layout_ints(struct arena *a, int n, const int64_t *v);

/* Operation op behind the definition of v: after the defining operation, or first in the block of an argument. */
void layout_insert_behind(MlirValue v, MlirOperation op);

#endif
