/* layout: reads and writes the annotations of values, nkipy.layout and nkipy.tile_op.
 *
 * A value has at most one of each, directly after its definition and before its other users; the layout comes first.
 * Both are users of the value: code that replaces the value's uses moves them to the new value, unless it excludes
 * them.
 */
#ifndef PASSES_LAYOUT_H
#define PASSES_LAYOUT_H

#include "base/memory.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* This is one more than the number of loops of any operation that the passes read, so a list that is too long is
 * never taken for one that fits. */
enum { LAYOUT_ENTRIES_MAX = STRUCTURED_LOOPS_MAX + 1 };

/* The contents of the annotations of one value. */
struct layout {
  MlirOperation layout_op, tile_op; /* null when there is none */
  int space;                        /* enum mem_space, or another number if the user wrote one */
  int partition_dim;                /* -1 if not given */
  int n_tile, n_loop;               /* 0 if not given */
  int64_t tile[LAYOUT_ENTRIES_MAX], loop[LAYOUT_ENTRIES_MAX];
};

/* Reads the annotations of v.  If there are several, the first tile_op counts, and for each attribute of the layout
 * the first layout operation that has it.  layout_op is then the first of all. */
struct layout layout_read(MlirValue v);
/* Makes the annotations of v match l: one layout operation, and one tile_op if l->n_loop.  Existing operations are
 * changed and keep their location, new ones get loc.  They are placed directly after the definition. */
void layout_write(MlirValue v, const struct layout *l, MlirLocation loc);

/* True if op is a layout or tile_op. */
bool layout_is_annotation(MlirOperation op);
const char *layout_space_name(int space); /* "SBUF" */

/* Formats n numbers as "[128,512]", allocated in a. */
const char *layout_ints(struct arena *a, int n, const int64_t *v);

#endif
