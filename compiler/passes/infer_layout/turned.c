/* turned: the tile of rows that an operation puts in another order.  See infer_layout.c.
 *
 *     [64, 56, 2, 56, 2] -> [64, 2, 2, 56, 56]:  64 x 2 x 2 x 8 x 56, not 64 x 1 x 1 x 36 x 56
 *
 * A tile that only follows the order of the result has the last dimensions of that, of which the operand's last one may be none: each
 * element is then a descriptor of DMA of its own.  With the short dimensions whole both sides have runs.
 */
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/infer_layout/infer_layout.h"

/* True if the operation copies or computes elements of one operand in another order, in which its last dimension is not the last
 * one any more, with `part` first on both sides. */
static bool turns_rows(const struct tiled *t, int part) {
  const int n = t->s.n_loops;

  if (!structured_is_elementwise(&t->s) || t->s.n_inputs != 1 || t->s.n_inits != 1 || t->is_gather || n < 3 ||
      t->rank != n || mlirAffineMapGetNumResults(t->s.maps[0]) != n || infer_loop(t, 0, n - 1) == n - 1)
    return false;
  for (int d = 0; d < n; d++)
    if (infer_loop(t, 0, d) < 0 || infer_result_loop(t, d) != d)
      return false;
  return part == 0 && infer_loop(t, 0, 0) == 0;
}

static int64_t divisor(int64_t n, int64_t most) {
  while (n % most)
    most--;
  return most;
}

/* How many times as long as their bytes need transfers of tiles of operand o take; 1 is the result. */
static int64_t slowness(const struct tiled *t, int o, const int64_t *tile) {
  enum { DESCRIPTOR = 512 }; /* bytes; fewer take a DMA engine as long */
  int64_t run = nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(t->value)));

  for (int d = t->s.n_loops - 1; d >= 0; d--) {
    const int loop = infer_loop(t, o, d);
    run *= tile[loop];
    if (tile[loop] < t->s.extents[loop])
      break;
  }
  return run < DESCRIPTOR ? DESCRIPTOR / run : 1;
}

/* The short dimensions of rows that are turned, whole: then what remains of the tile has runs in either order, so that DMA reads and
 * writes several elements at once. */
static void tile_short_ones(const struct tiled *t, int free_dims, int64_t *tile) {
  int64_t room = FREE_TILE_MAX;

  for (int i = 1; i < t->s.n_loops; i++)
    tile[i] = 1;
  for (int n_free = 0; room > 1 && n_free < free_dims; n_free++) {
    int next = 0;
    for (int i = t->s.n_loops - 1; i > 0; i--)
      if (tile[i] == 1 && t->s.extents[i] > 1 && (!next || t->s.extents[i] < t->s.extents[next]))
        next = i;
    if (!next)
      return;
    const int64_t part = t->s.extents[next] <= room ? t->s.extents[next] : divisor(t->s.extents[next], room);
    tile[next] = 2 * part > room || part == t->s.extents[next] ? part : room;
    room = tile[next] < t->s.extents[next] ? 1 : room / tile[next];
  }
}

void infer_tile_turned(const struct tiled *t, int part, int free_dims, int64_t *tile) {
  int64_t other[STRUCTURED_LOOPS_MAX] = {tile[0]};

  if (!turns_rows(t, part))
    return;
  tile_short_ones(t, free_dims, other);
  if (slowness(t, 0, other) + slowness(t, 1, other) < slowness(t, 0, tile) + slowness(t, 1, tile))
    memcpy(tile, other, (size_t)t->s.n_loops * sizeof *tile);
}
