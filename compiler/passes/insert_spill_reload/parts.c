/* parts: finds which elements of a buffer have been written, and copies only those.
 *
 *     memref<128x2x49x512>, 130 rows of 25000:      memref.copy %a[0, 0, 0, 0] [128, 1, 48, 512], %s[…]
 *     block 1 has 2 rows, the last block   ==>      memref.copy %a[0, 0, 48, 0] [128, 1, 1, 424], %s[…]
 *     of a row has 424 elements                     memref.copy %a[0, 1, 0, 0] [2, 1, 48, 512], %s[…]
 *                                                   memref.copy %a[0, 1, 48, 0] [2, 1, 1, 424], %s[…]
 *
 * A buffer in physical form consists of whole tiles, but the last tile of a dimension may be used only partly
 * (legalize_layout.c).  Nothing writes the rest of it, and a copy must not read what nothing has written.  Each writer
 * has a view, which is a box of the buffer that moves with the counters of loops.  If the box moves by no more than its
 * size, all its places together are a larger box; otherwise each place is a box of its own.  Boxes that are adjacent
 * are joined.  Boxes that still overlap remain so: then some elements are copied twice.
 *
 * The boxes contain at least what was written, so that no value gets lost.  They contain more than that if an offset is
 * not known, if a box has more places than PLACES_MAX, or if a writer is not executed.
 */
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/insert_spill_reload/insert_spill_reload.h"
#include "passes/lib/access.h"
#include "passes/lib/buffers.h"
#include "passes/lib/memrefs.h"

enum { PLACES_MAX = 64 };

/* ---- joining boxes --------------------------------------------------------------------------------------------- */

/* Returns true if the boxes together are a box, and sets *sum to it.  sum may be x or y. */
static bool join(int rank, const struct spill_box *x, const struct spill_box *y, struct spill_box *sum) {
  bool x_in_y = true, y_in_x = true, is_touching = true;
  int n_differ = 0;

  for (int d = 0; d < rank; d++) {
    x_in_y &= y->low[d] <= x->low[d] && x->end[d] <= y->end[d];
    y_in_x &= x->low[d] <= y->low[d] && y->end[d] <= x->end[d];
    n_differ += x->low[d] != y->low[d] || x->end[d] != y->end[d];
    is_touching &= x->low[d] <= y->end[d] && y->low[d] <= x->end[d];
  }
  if (!x_in_y && !y_in_x && (n_differ != 1 || !is_touching))
    return false;
  for (int d = 0; d < rank; d++) {
    sum->low[d] = x->low[d] < y->low[d] ? x->low[d] : y->low[d];
    sum->end[d] = x->end[d] > y->end[d] ? x->end[d] : y->end[d];
  }
  return true;
}

static void add_box(struct arena *a, int rank, struct spill_parts *p, struct spill_box box) {
  for (int k = 0; k < p->n;) {
    if (!join(rank, &p->v[k], &box, &box)) {
      k++;
      continue;
    }
    p->n--;
    memmove(&p->v[k], &p->v[k + 1], (size_t)(p->n - k) * sizeof *p->v);
    k = 0; /* the box has grown: it may touch the ones before, too */
  }
  array_push(a, p, box);
}

void spill_parts_add(struct arena *a, MlirValue buffer, struct spill_parts *p, const struct spill_parts *more) {
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(buffer));
  for (int k = 0; k < more->n; k++)
    add_box(a, rank, p, more->v[k]);
}

/* ---- the boxes of a writer ------------------------------------------------------------------------------------- */

/* The values of a loop's counter: from, from + step, … */
struct counter {
  int64_t from, step, n;
};

static bool read_counter(MlirValue v, struct counter *c) {
  int64_t end;

  if (!mlirValueIsABlockArgument(v) || mlirBlockArgumentGetArgNumber(v) != 0)
    return false;
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
  if (!ir_is(loop, "scf.for") || !ir_int_constant(mlirOperationGetOperand(loop, 0), &c->from) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &end) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &c->step) || c->step <= 0 || end <= c->from)
    return false;
  c->n = (end - c->from + c->step - 1) / c->step;
  return true;
}

static void drop_term(struct linear *l, int k) {
  l->term[k] = l->term[--l->n];
}

/* Replaces v by a number in all dimensions. */
static void put_value(struct access *x, MlirValue v, int64_t value) {
  for (int d = 0; d < x->rank; d++)
    for (int k = x->at[d].n; k-- > 0;)
      if (mlirValueEqual(x->at[d].term[k].v, v)) {
        x->at[d].constant += x->at[d].term[k].factor * value;
        drop_term(&x->at[d], k);
      }
}

/* By how much the box moves along dimension d when term k takes its next value; INT64_MAX if that is not known. */
static int64_t stride(const struct access *x, int d, int k) {
  struct counter c;
  return read_counter(x->at[d].term[k].v, &c) ? x->at[d].term[k].factor * c.step : INT64_MAX;
}

/* Finds the term that moves the box least, so that its places are joined before those of larger steps.  Returns false
 * if the box has no term. */
static bool smallest_term(const struct access *x, int *dim, int *term) {
  bool found = false;
  for (int d = 0; d < x->rank; d++)
    for (int k = 0; k < x->at[d].n; k++)
      if (!found || llabs(stride(x, d, k)) < llabs(stride(x, *dim, *term))) {
        *dim = d;
        *term = k;
        found = true;
      }
  return found;
}

static bool moves_other_dim(const struct access *x, int dim, MlirValue v) {
  for (int d = 0; d < x->rank; d++)
    for (int k = 0; d != dim && k < x->at[d].n; k++)
      if (mlirValueEqual(x->at[d].term[k].v, v))
        return true;
  return false;
}

/* Adds the places of x, at most `may` boxes. */
static void add_places(struct arena *a, struct access x, int64_t may, struct spill_parts *out) {
  int64_t extents[ACCESS_RANK_MAX];
  struct spill_box box;
  int d, k;

  ir_shape(x.root, ACCESS_RANK_MAX, extents);
  while (smallest_term(&x, &d, &k)) {
    MlirValue v = x.at[d].term[k].v;
    const int64_t factor = x.at[d].term[k].factor, by = stride(&x, d, k);
    struct counter c;
    if (!read_counter(v, &c)) { /* anywhere along the dimension */
      x.at[d] = (struct linear){0};
      x.size[d] = extents[d];
      continue;
    }
    if (c.n <= may && (llabs(by) > x.size[d] || moves_other_dim(&x, d, v))) {
      for (int64_t i = 0; i < c.n; i++) {
        struct access place = x;
        put_value(&place, v, c.from + i * c.step);
        add_places(a, place, may / c.n, out);
      }
      return;
    }
    x.at[d].constant += factor * c.from + (by < 0 ? by * (c.n - 1) : 0);
    x.size[d] += llabs(by) * (c.n - 1);
    drop_term(&x.at[d], k);
  }
  for (d = 0; d < x.rank; d++) {
    const int64_t low = x.at[d].constant, end = low + x.size[d];
    box.low[d] = low > 0 ? low : 0;
    box.end[d] = end < extents[d] ? end : extents[d];
  }
  add_box(a, x.rank, out, box);
}

/* Reads the innermost view on the way to v that is a box; it contains v.  Returns false if there is none. */
static bool read_box(MlirValue v, struct access *x) {
  while (!access_read(v, x)) {
    MlirOperation view = ir_defining_op(v);
    if (mlirOperationIsNull(view) || !buffer_is_view(view))
      return false;
    v = mlirOperationGetOperand(view, 0);
  }
  return true;
}

static struct spill_box whole(MlirValue buffer) {
  struct spill_box box = {0};
  ir_shape(buffer, IR_MEMREF_RANK_MAX, box.end);
  return box;
}

struct spill_parts spill_parts_written(struct arena *a, MlirValue view) {
  struct spill_parts p = {0};
  struct access x;

  if (read_box(view, &x))
    add_places(a, x, PLACES_MAX, &p);
  else
    array_push(a, &p, whole(buffer_root(view)));
  return p;
}

/* ---- copying --------------------------------------------------------------------------------------------------- */

static MlirValue part_of(struct ir_builder *b, MlirValue buffer, int rank, const struct spill_box *box) {
  int64_t size[IR_MEMREF_RANK_MAX];
  for (int d = 0; d < rank; d++)
    size[d] = box->end[d] - box->low[d];
  return memrefs_subview(b, buffer, &(struct memrefs_part){.offset = box->low, .size = size});
}

void spill_parts_copy(struct ir_builder *b, const struct spill_parts *p, MlirValue from, MlirValue to) {
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(from));
  const struct spill_box all = whole(from);

  for (int k = 0; k < p->n; k++) {
    const struct spill_box *box = &p->v[k];
    const size_t bytes = (size_t)rank * sizeof *box->low;
    if (!memcmp(box->low, all.low, bytes) && !memcmp(box->end, all.end, bytes)) {
      memrefs_copy(b, from, to);
      continue;
    }
    MlirValue source = part_of(b, from, rank, box);
    memrefs_copy(b, source, part_of(b, to, rank, box));
  }
}
