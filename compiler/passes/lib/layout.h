/* layout: the annotations of values, nkipy.layout and nkipy.tile_op, as passes read and write them.
 *
 * A value has at most one of each, directly after its definition and before its other users, the layout first.  Both
 * are users of the value: code that replaces the value's uses moves them along, unless it excepts them.
 */
#ifndef PASSES_LAYOUT_H
#define PASSES_LAYOUT_H

#include "base/memory.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* One more than the loops of any operation that we read, so that a longer list is not taken for one that fits. */
enum { LAYOUT_ENTRIES_MAX = STRUCTURED_LOOPS_MAX + 1 };

/* What the annotations of one value say. */
struct layout {
  MlirOperation layout_op, tile_op; /* null when there is none */
  int space;                        /* enum mem_space, or another number if the user wrote one */
  int partition_dim;                /* -1 if not given */
  int n_tile, n_loop;               /* 0 if not given */
  int64_t tile[LAYOUT_ENTRIES_MAX], loop[LAYOUT_ENTRIES_MAX];
};

/* Reads them.  If a value has several, the first tile_op counts, and the first layout operation that gives an attribute
 * counts for that attribute.  layout_op is then the first of all. */
struct layout layout_read(MlirValue v);
/* Makes the value's annotations say what l says: one layout operation, and one tile_op if l->n_loop.  Existing
 * operations are changed and keep their location, new ones get loc.  They end up directly after the definition. */
void layout_write(MlirValue v, const struct layout *l, MlirLocation loc);

/* op is a layout or tile_op. */
bool layout_is_annotation(MlirOperation op);
const char *layout_space_name(int space); /* "SBUF" */

/* n numbers as "[128,512]", in a. */
const char *layout_ints(struct arena *a, int n, const int64_t *v);

#endif
