/* place: finds addresses for allocations whose lifetimes are known.  It knows nothing of MLIR.
 *
 *     bytes ^   +-----+                A and B are never alive together, so they may share bytes.  C was allocated twice
 *           |   |  C  |  copy 1        over, so that one copy can be filled while the other is read; both keep their bytes
 *           |   |  C  |  copy 0        during the whole loop.
 *           |   +-----+
 *           | AAAA  BBBB
 *           +----------------> operations in program order
 */
#ifndef PASSES_ALLOCATE_MEMORY_PLACE_H
#define PASSES_ALLOCATE_MEMORY_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct place_item {
  int64_t bytes, align;   /* of one copy; align is at least 1 */
  int from, to;           /* with one copy it is alive in [from, to) */
  int loop_from, loop_to; /* with several copies, in [loop_from, loop_to); loop_to is INT_MAX if it is in no loop */
  int copies;             /* as many as are wanted; afterwards as many as fit */
  int wanted;             /* set by place_items: copies at first */
  bool
      is_with_products; /* the Tensor engine works in its loop, which needs its operands early more than memory of its own */
  bool is_fixed;        /* it has one copy, at the offset that is given; fixed ones may have bytes in common */
  int64_t offset, stride; /* the result; copy k is at offset + k * stride */
};

/* Places all items in [0, capacity), so that items that are alive together have no byte in common, unless both are fixed.
 *
 * Copies are taken away only if not all fit: of items with more than two first, those that take the most bytes first, and then of
 * those that wanted fewer.  Where there is
 * room, memory is not reused soon after it became free, because a write must wait for the last reader of what was there.
 *
 * Returns false if the items do not fit even with one copy each; *failed is then one of those for which there was no
 * room.  Time: about the square of n for every copy that is taken away. */
bool place_items(struct arena *a, struct place_item *v, int n, int64_t capacity, int *failed);

#endif
