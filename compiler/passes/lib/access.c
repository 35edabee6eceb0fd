/* access: see access.h.
 *
 * Subviews with unit strides, casts, and reshapes that only insert or remove dimensions of extent 1 are boxes of the
 * buffer that they are views of.  Other reshapes and unknown operations are not.  Offsets are sums of multiples of
 * values, so that the beginning of a block can be recognised.
 */
#include "passes/lib/access.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "nisa/range.h"
#include "passes/lib/buffers.h"

/* ---- offsets --------------------------------------------------------------------------------------------------- */

static bool add_term(struct linear *l, MlirValue v, int64_t factor) {
  for (int k = 0; k < l->n; k++)
    if (mlirValueEqual(l->term[k].v, v)) {
      l->term[k].factor += factor;
      return true;
    }
  if (l->n == ACCESS_TERMS_MAX)
    return false;
  l->term[l->n].v = v;
  l->term[l->n++].factor = factor;
  return true;
}

bool linear_add(struct linear *l, MlirValue v, int64_t factor) {
  MlirOperation def = ir_defining_op(v);
  int64_t c;

  if (ir_int_constant(v, &c)) {
    l->constant += c * factor;
    return true;
  }
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.addi"))
    return linear_add(l, mlirOperationGetOperand(def, 0), factor) &&
           linear_add(l, mlirOperationGetOperand(def, 1), factor);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.subi"))
    return linear_add(l, mlirOperationGetOperand(def, 0), factor) &&
           linear_add(l, mlirOperationGetOperand(def, 1), -factor);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.muli"))
    for (int k = 0; k < 2; k++)
      if (ir_int_constant(mlirOperationGetOperand(def, k), &c))
        return linear_add(l, mlirOperationGetOperand(def, 1 - k), factor * c);
  return add_term(l, v, factor);
}

void linear_add_new(struct linear *l, MlirValue v, int64_t factor) {
  assert(l->n <= ACCESS_TERMS_MAX);
  l->term[l->n].v = v;
  l->term[l->n++].factor = factor;
}

/* Returns a number that divides all values of v.  For the counter of a loop it follows from the loop's lower bound
 * and step; otherwise it is 1. */
static int64_t value_granule(MlirValue v) {
  int64_t from, step;

  if (!mlirValueIsABlockArgument(v) || mlirBlockArgumentGetArgNumber(v) != 0)
    return 1;
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
  if (!ir_is(loop, "scf.for") || !ir_int_constant(mlirOperationGetOperand(loop, 0), &from) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step))
    return 1;
  return nisa_gcd(from, step);
}

int64_t linear_granule(const struct linear *l) {
  int64_t g = nisa_gcd(l->constant, 0);
  for (int k = 0; k < l->n; k++)
    g = nisa_gcd(g, l->term[k].factor * value_granule(l->term[k].v));
  return g;
}

bool linear_is_constant(const struct linear *l) {
  for (int k = 0; k < l->n; k++)
    if (l->term[k].factor)
      return false;
  return true;
}

/* ---- tiles ----------------------------------------------------------------------------------------------------- */

enum { QUADRANT = 32 }; /* engines start at a multiple of this many partitions */

int64_t access_cut(const struct linear *at, int64_t size, int64_t tile) {
  if (linear_is_constant(at) && at->constant % tile + size <= tile)
    return size;
  const int64_t g = nisa_gcd(tile, linear_granule(at));
  return size <= g ? size : g;
}

bool access_starts_well(const struct linear *at, int64_t size, int64_t tile, int64_t cut) {
  int64_t start = linear_is_constant(at) ? at->constant % tile : nisa_gcd(tile, linear_granule(at)) % tile;
  if (cut < size)
    start = nisa_gcd(start, cut % tile);
  const int64_t n = cut < size ? cut : size;
  return start == 0 || (start % (2 * QUADRANT) == 0 && n <= 2 * QUADRANT) || (start % QUADRANT == 0 && n <= QUADRANT);
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

static bool read_subview(MlirOperation op, struct access *a) {
  MlirAttribute offsets = ir_attr(op, "static_offsets"), sizes = ir_attr(op, "static_sizes"),
                strides = ir_attr(op, "static_strides");
  bool kept[IR_MEMREF_RANK_MAX];
  const int n = buffer_kept_dims(op, kept);
  intptr_t next = 1;

  assert(n == a->view_rank);
  a->view_rank = 0;
  for (int k = 0; k < n; k++) {
    const int64_t at = mlirDenseI64ArrayGetElement(offsets, k), size = mlirDenseI64ArrayGetElement(sizes, k);
    const int d = a->dim[k];
    MlirValue v = {NULL};
    if (at == mlirShapedTypeGetDynamicStrideOrOffset())
      v = mlirOperationGetOperand(op, next++);
    if (size < 0 || mlirDenseI64ArrayGetElement(strides, k) != 1)
      return false;
    if (d >= 0) {
      a->size[d] = size;
      if (mlirValueIsNull(v))
        a->at[d].constant += at;
      else if (!linear_add(&a->at[d], v, 1))
        return false;
    }
    if (kept[k])
      a->dim[a->view_rank++] = d;
  }
  return true;
}

/* Reads a reshape.  Returns false if a group of the reassociation has more than one dimension that is longer than 1. */
static bool read_reshape(MlirOperation op, struct access *a) {
  const bool expands = ir_is(op, "memref.expand_shape");
  MlirType fine = mlirValueGetType(expands ? mlirOperationGetResult(op, 0) : mlirOperationGetOperand(op, 0));
  MlirAttribute groups = ir_attr(op, "reassociation");
  const int n = (int)mlirArrayAttrGetNumElements(groups), n_fine = (int)mlirShapedTypeGetRank(fine);
  int coarse[ACCESS_RANK_MAX], before[ACCESS_RANK_MAX];

  if (n_fine > ACCESS_RANK_MAX || n > ACCESS_RANK_MAX || n == 0)
    return false;
  for (int k = 0; k < ACCESS_RANK_MAX; k++)
    before[k] = a->dim[k];
  for (int k = 0; k < n; k++) {
    MlirAttribute g = mlirArrayAttrGetElement(groups, k);
    const int first = (int)mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(g, 0));
    const int end = first + (int)mlirArrayAttrGetNumElements(g);
    int is_long = -1;
    for (int d = first; d < end; d++) {
      if (mlirShapedTypeGetDimSize(fine, d) == 1)
        continue;
      if (is_long >= 0)
        return false;
      is_long = d;
    }
    if (is_long < 0) /* all have extent 1: prefer one that is a dimension of the buffer */
      for (int d = first; d < end && is_long < 0; d++)
        if (expands || before[d] >= 0)
          is_long = d;
    coarse[k] = is_long;
    if (expands)
      for (int d = first; d < end; d++)
        a->dim[d] = d == is_long ? before[k] : -1;
  }
  for (int k = 0; !expands && k < n; k++)
    a->dim[k] = coarse[k] < 0 ? -1 : before[coarse[k]];
  a->view_rank = expands ? n_fine : n;
  return true;
}

bool access_read(MlirValue v, struct access *a) {
  MlirOperation def = ir_defining_op(v);

  if (mlirOperationIsNull(def) || !buffer_is_view(def)) {
    *a = (struct access){.root = v, .rank = ir_shape(v, ACCESS_RANK_MAX, a->size)};
    if (a->rank < 0 || a->rank > ACCESS_RANK_MAX)
      return false;
    ir_shape(v, ACCESS_RANK_MAX, a->size);
    a->view_rank = a->rank;
    for (int d = 0; d < a->rank; d++)
      a->dim[d] = d;
    return true;
  }
  if (!access_read(mlirOperationGetOperand(def, 0), a))
    return false;
  if (ir_is(def, "memref.cast"))
    return true;
  if (ir_is(def, "memref.subview"))
    return read_subview(def, a);
  return (ir_is(def, "memref.collapse_shape") || ir_is(def, "memref.expand_shape")) && read_reshape(def, a);
}
