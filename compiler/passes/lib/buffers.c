/* buffers: see buffers.h. */
#include "passes/lib/buffers.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/structured.h"
#include "passes/lib/carried.h"

bool buffer_is_view(MlirOperation op) {
  static const char *const views[] = {"memref.subview",          "memref.cast",    "memref.collapse_shape",
                                      "memref.expand_shape",     "memref.reshape", "memref.transpose",
                                      "memref.reinterpret_cast", "memref.view",    "memref.memory_space_cast"};
  return ir_is_of(op, "memref.") && ir_which(op, (int)(sizeof views / sizeof *views), views) >= 0;
}

MlirValue buffer_root(MlirValue v) {
  for (MlirOperation def; !mlirOperationIsNull(def = ir_defining_op(v)) && buffer_is_view(def);)
    v = mlirOperationGetOperand(def, 0);
  return v;
}

MlirValue buffer_passed_on(MlirOperation op, intptr_t k) {
  struct carried loop;
  if (carried_read(op, &loop) && k >= loop.first_init)
    return mlirOperationGetResult(op, k - loop.first_init);
  if (ir_is(op, "arith.select") || (buffer_is_view(op) && k == 0))
    return mlirOperationGetResult(op, 0);
  MlirOperation parent = mlirOperationGetParentOperation(op);
  if (ir_is(op, "scf.yield") && k < mlirOperationGetNumResults(parent))
    return mlirOperationGetResult(parent, k);
  if (ir_is(op, "scf.condition") && k > 0)
    return mlirOperationGetResult(parent, k - 1);
  return (MlirValue){NULL};
}

int buffer_kept_dims(MlirOperation op, bool *kept) {
  MlirAttribute sizes = ir_attr(op, "static_sizes");
  int64_t shape[IR_MEMREF_RANK_MAX];
  const int n = (int)mlirDenseArrayGetNumElements(sizes),
            rank = ir_shape(mlirOperationGetResult(op, 0), IR_MEMREF_RANK_MAX, shape);
  int k = 0; /* dimensions kept so far */

  assert(n <= IR_MEMREF_RANK_MAX && rank <= n);
  for (int d = 0; d < n; d++) {
    const bool all_are_needed = n - d == rank - k;
    kept[d] = k < rank && (all_are_needed || mlirDenseI64ArrayGetElement(sizes, d) == shape[k]);
    k += kept[d];
  }
  assert(k == rank);
  return n;
}

/* ---- accesses --------------------------------------------------------------------------------------- */

static int linalg_access(MlirOperation op, intptr_t k) {
  struct structured s;

  if (!structured_read(op, &s) || mlirOperationGetNumRegions(op) < 1)
    return BUFFER_READS | BUFFER_WRITES;
  MlirBlock body = ir_body(op);
  if (mlirBlockIsNull(body) || k >= mlirBlockGetNumArguments(body))
    return BUFFER_READS | BUFFER_WRITES;
  bool reads = ir_is_used(mlirBlockGetArgument(body, k));
  if (k < s.n_inputs)
    return BUFFER_READS;
  return BUFFER_WRITES | (reads ? BUFFER_READS : 0);
}

int buffer_access(MlirOperation op, intptr_t k) {
  if (ir_is_of(op, "linalg."))
    return linalg_access(op, k);
  if (ir_is(op, "memref.copy"))
    return k == 0 ? BUFFER_READS : BUFFER_WRITES;
  if (ir_is(op, "memref.load") || ir_is(op, "func.return"))
    return BUFFER_READS;
  if (ir_is(op, "memref.store"))
    return k == 1 ? BUFFER_WRITES : 0;
  if (ir_is_of(op, "nkipy.") || ir_is(op, "memref.dealloc") || ir_is(op, "memref.dim") || buffer_is_view(op))
    return 0;
  return BUFFER_READS | BUFFER_WRITES;
}

static void find_uses(struct arena *a, struct buffer_uses *uses, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t k = mlirOpOperandGetOperandNumber(u);

    if (buffer_is_view(op) && k == 0) {
      find_uses(a, uses, mlirOperationGetResult(op, 0));
      continue;
    }
    array_push(a, uses, (struct buffer_use){.op = op, .operand = k, .access = buffer_access(op, k)});
  }
}

struct buffer_uses buffer_find_uses(struct arena *a, MlirValue root) {
  struct buffer_uses uses = {0};
  find_uses(a, &uses, root);
  return uses;
}

/* ---- order ------------------------------------------------------------------------------------------ */

bool buffer_is_before(MlirOperation x, MlirOperation y) {
  return !mlirOperationEqual(x, y) && mlirOperationIsBeforeInBlock(x, y);
}

/* ---- slices ----------------------------------------------------------------------------------------- */

/* A cast changes only the type. */
static bool is_step(MlirOperation view) {
  return !ir_is(view, "memref.cast");
}

/* Returns the number of views between root and v, without casts; -1 if v is not a view of root. */
static int n_steps(MlirValue root, MlirValue v) {
  int n = 0;

  while (!mlirValueEqual(v, root)) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) || !buffer_is_view(def))
      return -1;
    n += is_step(def);
    v = mlirOperationGetOperand(def, 0);
  }
  return n;
}

/* Returns the view that is followed by `left` more views on the way to v.  For 0 this is the view that defines v. */
static MlirOperation step_of(MlirValue v, int left) {
  MlirOperation def = ir_defining_op(v);

  while (!is_step(def) || left-- > 0)
    def = ir_defining_op(mlirOperationGetOperand(def, 0));
  assert(buffer_is_view(def));
  return def;
}

/* True if x and y select the same part of their sources. */
static bool same_step(MlirOperation x, MlirOperation y) {
  if (mlirOperationEqual(x, y))
    return true;
  const intptr_t n = mlirOperationGetNumOperands(x);
  if (!ir_is(x, "memref.subview") || !ir_is(y, "memref.subview") || n != mlirOperationGetNumOperands(y))
    return false;
  for (intptr_t k = 1; k < n; k++)
    if (!mlirValueEqual(mlirOperationGetOperand(x, k), mlirOperationGetOperand(y, k)))
      return false;
  static const char *const parts[] = {"static_offsets", "static_sizes", "static_strides"};
  for (int k = 0; k < 3; k++)
    if (!mlirAttributeEqual(ir_attr(x, parts[k]), ir_attr(y, parts[k])))
      return false;
  return true;
}

/* Returns by how much v grows from one iteration of the loop to the next, if v is the counter or a multiple of it;
 * otherwise 0. */
static int64_t stride_in(MlirOperation loop, MlirValue v) {
  int64_t step, factor = 1;
  MlirOperation def = ir_defining_op(v);

  if (!ir_is(loop, "scf.for") || !ir_int_constant(mlirOperationGetOperand(loop, 2), &step))
    return 0;
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.muli")) {
    if (ir_int_constant(mlirOperationGetOperand(def, 1), &factor))
      v = mlirOperationGetOperand(def, 0);
    else if (ir_int_constant(mlirOperationGetOperand(def, 0), &factor))
      v = mlirOperationGetOperand(def, 1);
  }
  MlirBlock body = ir_body(loop);
  return mlirValueEqual(v, mlirBlockGetArgument(body, 0)) ? step * factor : 0;
}

/* True if both subviews have, in one dimension, the same offset, and each iteration of the loop moves it by at least
 * their sizes. */
static bool move_apart(MlirOperation loop, MlirOperation x, MlirOperation y) {
  if (!ir_is(x, "memref.subview") || !ir_is(y, "memref.subview"))
    return false;
  MlirAttribute ox = ir_attr(x, "static_offsets"), oy = ir_attr(y, "static_offsets"), sx = ir_attr(x, "static_sizes"),
                sy = ir_attr(y, "static_sizes"), tx = ir_attr(x, "static_strides"), ty = ir_attr(y, "static_strides");
  intptr_t px = 1, py = 1;

  for (intptr_t d = 0; d < mlirDenseArrayGetNumElements(ox); d++) {
    const bool dx = mlirDenseI64ArrayGetElement(ox, d) == mlirShapedTypeGetDynamicStrideOrOffset();
    const bool dy = mlirDenseI64ArrayGetElement(oy, d) == mlirShapedTypeGetDynamicStrideOrOffset();
    MlirValue vx = {NULL}, vy = {NULL};
    if (dx)
      vx = mlirOperationGetOperand(x, px++);
    if (dy)
      vy = mlirOperationGetOperand(y, py++);
    if (!dx || !dy || !mlirValueEqual(vx, vy) || mlirDenseI64ArrayGetElement(tx, d) != 1 ||
        mlirDenseI64ArrayGetElement(ty, d) != 1)
      continue;
    const int64_t stride = stride_in(loop, vx), nx = mlirDenseI64ArrayGetElement(sx, d),
                  ny = mlirDenseI64ArrayGetElement(sy, d);
    if (nx >= 0 && ny >= 0 && stride >= nx && stride >= ny && stride > 0)
      return true;
  }
  return false;
}

bool buffer_disjoint_across(MlirOperation loop, MlirValue root, MlirValue x, MlirValue y) {
  const int nx = n_steps(root, x), ny = n_steps(root, y);

  for (int k = 0; k < nx && k < ny; k++) {
    MlirOperation sx = step_of(x, nx - 1 - k), sy = step_of(y, ny - 1 - k);
    if (move_apart(loop, sx, sy))
      return true;
    if (!same_step(sx, sy))
      return false;
  }
  return false;
}

bool buffer_index_range(MlirValue v, int64_t *lo, int64_t *hi) {
  int64_t lb, ub, step, l2, h2;
  MlirOperation def = ir_defining_op(v);

  if (ir_int_constant(v, lo)) {
    *hi = *lo;
    return true;
  }
  if (mlirOperationIsNull(def)) {
    MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
    if (!ir_is(loop, "scf.for") || mlirBlockArgumentGetArgNumber(v) != 0 ||
        !ir_int_constant(mlirOperationGetOperand(loop, 0), &lb) ||
        !ir_int_constant(mlirOperationGetOperand(loop, 1), &ub) ||
        !ir_int_constant(mlirOperationGetOperand(loop, 2), &step) || step <= 0 || lb >= ub)
      return false;
    *lo = lb;
    *hi = lb + (ub - 1 - lb) / step * step;
    return true;
  }
  if (!ir_is(def, "arith.muli") && !ir_is(def, "arith.addi"))
    return false;
  if (!buffer_index_range(mlirOperationGetOperand(def, 0), lo, hi) ||
      !buffer_index_range(mlirOperationGetOperand(def, 1), &l2, &h2))
    return false;
  if (ir_is(def, "arith.addi")) {
    *lo += l2;
    *hi += h2;
    return true;
  }
  if (*lo < 0 || l2 < 0)
    return false;
  *lo *= l2;
  *hi *= h2;
  return true;
}

/* A part of a buffer, in the buffer's own dimensions: the first element is between lo and hi, and there are n
 * elements. */
struct box {
  int rank, dim[IR_MEMREF_RANK_MAX]; /* dim[d]: the dimension of the buffer that dimension d of the view is */
  int64_t lo[IR_MEMREF_RANK_MAX], hi[IR_MEMREF_RANK_MAX], n[IR_MEMREF_RANK_MAX];
};

static bool narrow(struct box *b, MlirOperation op) {
  MlirAttribute offsets = ir_attr(op, "static_offsets"), sizes = ir_attr(op, "static_sizes"),
                strides = ir_attr(op, "static_strides");
  bool kept[IR_MEMREF_RANK_MAX];
  const int rank = buffer_kept_dims(op, kept);
  intptr_t next = 1;

  b->rank = 0;
  for (int d = 0; d < rank; d++) {
    const int to = b->dim[d];
    int64_t lo = mlirDenseI64ArrayGetElement(offsets, d), hi = lo;
    const int64_t n = mlirDenseI64ArrayGetElement(sizes, d);
    if (n < 0 || mlirDenseI64ArrayGetElement(strides, d) != 1)
      return false;
    if (lo == mlirShapedTypeGetDynamicStrideOrOffset() &&
        !buffer_index_range(mlirOperationGetOperand(op, next++), &lo, &hi)) {
      lo = 0; /* the offset is unknown: anywhere in the source of the view */
      hi = b->n[to] - n;
    }
    b->lo[to] += lo;
    b->hi[to] += hi;
    b->n[to] = n;
    if (kept[d])
      b->dim[b->rank++] = to;
  }
  return true;
}

/* Computes the smallest known box that contains the elements of v. */
static bool box_of(MlirValue root, MlirValue v, struct box *b) {
  const int n = n_steps(root, v);

  *b = (struct box){0};
  b->rank = ir_shape(root, IR_MEMREF_RANK_MAX, b->n);
  assert(b->rank <= IR_MEMREF_RANK_MAX);
  if (n < 0 || b->rank < 0)
    return false;
  for (int d = 0; d < b->rank; d++)
    b->dim[d] = d;
  for (int k = 0; k < n; k++) {
    struct box inner = *b;
    MlirOperation view = step_of(v, n - 1 - k);
    if (!ir_is(view, "memref.subview") || !narrow(&inner, view))
      break; /* the box of the views so far contains the remaining ones */
    *b = inner;
  }
  return true;
}

bool buffer_disjoint(MlirValue root, MlirValue x, MlirValue y) {
  struct box bx, by;
  int64_t dims[IR_MEMREF_RANK_MAX];
  const int rank = ir_shape(root, IR_MEMREF_RANK_MAX, dims);

  if (!box_of(root, x, &bx) || !box_of(root, y, &by))
    return false;
  for (int d = 0; d < rank; d++)
    if (bx.hi[d] + bx.n[d] <= by.lo[d] || by.hi[d] + by.n[d] <= bx.lo[d])
      return true;
  return false;
}

bool buffer_same_part(MlirValue x, MlirValue y) {
  MlirValue root = buffer_root(x);
  if (!mlirValueEqual(root, buffer_root(y)))
    return false;
  const int n = n_steps(root, x);
  if (n < 0 || n != n_steps(root, y))
    return false;
  for (int k = 0; k < n; k++)
    if (!same_step(step_of(x, k), step_of(y, k)))
      return false;
  return true;
}

/* ---- undefined contents ------------------------------------------------------------------------------ */

/* True if the write may be executed before `at`.  Both access `alloc`. */
static bool may_precede(MlirValue alloc, MlirOperation write, MlirValue written, MlirOperation at, MlirValue read) {
  MlirBlock home = mlirOperationGetBlock(ir_defining_op(alloc));
  MlirBlock block = mlirOperationGetBlock(at);

  if (buffer_disjoint(alloc, written, read))
    return false;
  /* find the innermost block that contains both */
  while (mlirOperationIsNull(ir_ancestor_in(write, block))) {
    MlirOperation parent = mlirBlockGetParentOperation(block);
    if (mlirOperationIsNull(parent) || mlirOperationIsNull(mlirOperationGetParentOperation(parent)))
      return true;
    block = mlirOperationGetBlock(parent);
  }
  MlirOperation w = ir_ancestor_in(write, block), c = ir_ancestor_in(at, block);
  if (mlirOperationEqual(w, c) || buffer_is_before(w, c))
    return true;
  /* The write comes after `at`.  It is executed earlier only in an earlier iteration of a loop that does not contain
   * the allocation. */
  for (; !mlirBlockEqual(block, home); block = mlirOperationGetBlock(mlirBlockGetParentOperation(block))) {
    MlirOperation loop = mlirBlockGetParentOperation(block);
    if (mlirOperationIsNull(loop) || ir_is(loop, "func.func"))
      return true;
    if (!buffer_disjoint_across(loop, alloc, written, read) && !ir_is(loop, "scf.if"))
      return true;
  }
  return false;
}

bool buffer_is_undefined(struct arena *a, MlirOperation at, MlirValue read) {
  MlirValue alloc = buffer_root(read);
  MlirOperation def = ir_defining_op(alloc);

  if (mlirOperationIsNull(def) || !ir_is(def, "memref.alloc"))
    return false;
  struct buffer_uses uses = buffer_find_uses(a, alloc);
  for (int k = 0; k < uses.n; k++) {
    const struct buffer_use *u = &uses.v[k];
    if ((u->access & BUFFER_WRITES) && !mlirOperationEqual(u->op, at) &&
        may_precede(alloc, u->op, mlirOperationGetOperand(u->op, u->operand), at, read))
      return false;
  }
  return true;
}
