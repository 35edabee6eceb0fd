/* shrink: reduces values that only the merged loops read to the part that an iteration needs.
 *
 *     %r:2 = scf.for %i … iter_args(%p = %empty, …) {              %r = scf.for %i … iter_args(…) {
 *       … extract_slice %p[%i, 0] [128, 512]                ==>      %e = tensor.empty() : tensor<128x512xf32>
 *       … insert_slice %tile into %p[%i, 0] [128, 512] … }           … extract_slice %e[0, 0] [128, 512]
 *     (nobody reads %r#0)                                            … insert_slice %tile into %e[0, 0] [128, 512] … }
 *
 * If every slice of a carried value is at the loop's counter in some dimension, and of the same size there, no
 * iteration sees what another one wrote: each iteration can start with a new value of that size.  The same holds in a
 * loop that runs once.  The value also shrinks in other dimensions where all slices have the same offset and size.  A
 * small fill or tensor.empty replaces an initial fill or tensor.empty; any other initial value is sliced.  The inner
 * loops are then handled in the same way.  The small value takes over the layout that the user or infer-layout gave the
 * large one, in SBUF.  Slices that are inserted but never read are erased.
 */
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "nisa/nisa.h"
#include "passes/knob_driven_fusion/knob_driven_fusion.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

/* A carried value that becomes smaller. */
struct local {
  struct pass_run *run;
  MlirOperation loop;
  int k;
  int rank;
  unsigned dims; /* those in which all its slices have one offset (a constant or the counter) and one size */
  int64_t offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX];
  int n_inserts;
};

static bool is_read(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!layout_is_annotation(mlirOpOperandGetOwner(u)))
      return true;
  return false;
}

static void erase_annotations(MlirValue v) {
  MlirOpOperand next;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    next = mlirOpOperandGetNextUse(u);
    mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
}

/* ---- which dimensions -------------------------------------------------------------------------------------------- */

/* Keeps the dimensions in which all slices have the offset and the size of the first one. */
static bool note_slice(const struct slice *s, void *user) {
  struct local *l = user;

  for (int d = 0; d < s->rank; d++) {
    const bool is_counter = s->offset[d] == SLICE_DYNAMIC;
    if (l->rank < 0) {
      l->offset[d] = s->offset[d];
      l->size[d] = s->size[d];
    }
    if (s->offset[d] != l->offset[d] || s->size[d] != l->size[d] ||
        (is_counter && !mlirValueEqual(s->at[d], parts_counter(l->loop))))
      l->dims &= ~(1u << d);
  }
  l->rank = s->rank;
  l->n_inserts += s->is_insert;
  return true;
}

/* True if each iteration has its own part, and the part is not the whole value. */
static bool has_own_part(const struct local *l, MlirType t) {
  bool is_own = parts_runs_once(l->loop), is_smaller = false;

  for (int d = 0; d < l->rank; d++) {
    is_own |= (l->dims >> d & 1) && l->offset[d] == SLICE_DYNAMIC;
    is_smaller |= (l->dims >> d & 1) && l->size[d] < mlirShapedTypeGetDimSize(t, d);
  }
  return is_own && (is_smaller || parts_runs_once(l->loop));
}

/* True if v, and the values that insertions and loops compute from it, are yielded only as the value of the loop that
 * carries them. */
static bool stays_in_place(MlirValue v, MlirOperation loop, int k) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const int at = (int)mlirOpOperandGetOperandNumber(u);
    if (ir_is(op, "scf.yield") && (at != k || !mlirOperationEqual(mlirOperationGetParentOperation(op), loop)))
      return false;
    if (ir_is(op, "tensor.insert_slice") && !stays_in_place(ir_result(op), loop, k))
      return false;
    if (ir_is(op, "scf.for") && (!stays_in_place(mlirBlockGetArgument(ir_body(op), at - 2), op, at - 3) ||
                                 !stays_in_place(mlirOperationGetResult(op, at - 3), loop, k)))
      return false;
  }
  return true;
}

static bool can_shrink(struct local *l) {
  MlirValue v = mlirBlockGetArgument(ir_body(l->loop), 1 + l->k);

  l->rank = -1;
  l->dims = PARTS_ALL_DIMS;
  return !is_read(mlirOperationGetResult(l->loop, l->k)) && parts_each_slice(v, note_slice, l) && l->n_inserts &&
         l->rank > 0 && has_own_part(l, mlirValueGetType(v)) && stays_in_place(v, l->loop, l->k);
}

/* ---- the small value --------------------------------------------------------------------------------------------- */

static MlirType small_type(const struct local *l, MlirType large) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  for (int d = 0; d < l->rank; d++)
    dims[d] = l->dims >> d & 1 ? l->size[d] : mlirShapedTypeGetDimSize(large, d);
  return ir_tensor_of(mlirShapedTypeGetElementType(large), l->rank, dims);
}

/* Builds the small value at the beginning of an iteration. */
static MlirValue begin(const struct local *l) {
  MlirBlock body = ir_body(l->loop);
  struct ir_builder b = edit_before(l->run, mlirBlockGetFirstOperation(body));
  MlirValue v = parts_initial(l->loop, l->k);
  MlirOperation def = ir_defining_op(v);
  MlirType large = mlirValueGetType(v), small = small_type(l, large);
  int64_t offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  MlirValue at[STRUCTURED_LOOPS_MAX];

  b.loc = mlirOperationGetLocation(l->loop);
  if (!mlirOperationIsNull(def) && ir_is(def, "tensor.empty"))
    return ir_empty_of(&b, small);
  if (!mlirOperationIsNull(def) && ir_is(def, "linalg.fill"))
    return ir_fill(&b, mlirOperationGetOperand(def, 0), ir_empty_of(&b, small));
  for (int d = 0; d < l->rank; d++) {
    sizes[d] = mlirShapedTypeGetDimSize(small, d);
    const bool is_counter = (l->dims >> d & 1) && l->offset[d] == SLICE_DYNAMIC;
    at[d] = is_counter ? parts_counter(l->loop) : (MlirValue){NULL};
    offsets[d] = (l->dims >> d & 1) && !is_counter ? l->offset[d] : 0;
  }
  return ir_extract_slice(&b, v, &(struct ir_slice){l->rank, offsets, sizes, NULL, at}, small);
}

/* Makes the offsets of slices of v relative to the part, and gives the values computed from v in place the small
 * type. */
static void retype(const struct local *l, MlirValue v) {
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t at = mlirOpOperandGetOperandNumber(u);
    struct slice s;
    next = mlirOpOperandGetNextUse(u); /* slice_set changes the list of uses */
    if (ir_is(op, "scf.for")) {
      MlirValue inside = mlirBlockGetArgument(ir_body(op), at - 2), result = mlirOperationGetResult(op, at - 3);
      mlirValueSetType(inside, small_type(l, mlirValueGetType(inside)));
      mlirValueSetType(result, small_type(l, mlirValueGetType(result)));
      retype(l, inside);
      retype(l, result);
    }
    if (!slice_read(op, &s))
      continue;
    for (int d = 0; d < s.rank; d++)
      if (l->dims >> d & 1)
        s.offset[d] = 0;
    slice_set(&s, v);
    if (!s.is_insert)
      continue;
    mlirValueSetType(ir_result(op), small_type(l, mlirValueGetType(ir_result(op))));
    retype(l, ir_result(op));
  }
}

/* In the loop's own body, replaces slices of the whole small value by the value, and insertions of a whole value by
 * the inserted value. */
static void fold_whole(const struct local *l, MlirValue v) {
  MlirBlock body = ir_body(l->loop);
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    struct slice s;
    next = mlirOpOperandGetNextUse(u);
    if (!mlirBlockEqual(mlirOperationGetBlock(op), body) || !slice_read(op, &s) || !mlirValueEqual(slice_of(&s), v))
      continue;
    if (s.is_insert)
      fold_whole(l, ir_result(op));
    if (!slice_is_whole(&s, mlirValueGetType(v)) ||
        !mlirTypeEqual(mlirValueGetType(slice_part(&s)), mlirValueGetType(v)))
      continue;
    mlirValueReplaceAllUsesOfWith(ir_result(op), s.is_insert ? slice_part(&s) : v);
    mlirOperationDestroy(op);
    next = mlirValueGetFirstUse(v); /* the uses of an extracted slice are now uses of v */
  }
}

/* ---- annotations ------------------------------------------------------------------------------------------------- */

/* True if a loop or an insertion computes v.  Otherwise v is the tile of an operation, which is in SBUF anyway. */
static bool is_named_place(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && (ir_is(def, "scf.for") || ir_is(def, "tensor.insert_slice"));
}

/* Moves the layout of the large value to the small one, or to the fill that the small one starts from.  The initial
 * value of the loop gets the layout, too, if another loop computes it (another part of the value). */
static void move_layout(const struct local *l, MlirValue begin, MlirValue small) {
  MlirValue large = mlirOperationGetResult(l->loop, l->k), initial = mlirOperationGetOperand(l->loop, 3 + l->k);
  struct layout at = layout_read(large);

  if (mlirOperationIsNull(at.layout_op))
    return;
  MlirOperation def = ir_defining_op(initial);
  if (!mlirOperationIsNull(def) && ir_is(def, "scf.for") && mlirOperationIsNull(layout_read(initial).layout_op))
    layout_write(initial, &at, mlirOperationGetLocation(at.layout_op));
  for (int d = 0; d < at.n_tile && d < l->rank; d++)
    if ((l->dims >> d & 1) && at.tile[d] > l->size[d])
      at.tile[d] = l->size[d];
  at.n_loop = 0;
  if (at.partition_dim <= 0 && (l->dims & 1) && l->size[0] <= NISA_PARTITIONS)
    at.space = MEM_SBUF;
  MlirValue place = is_named_place(small) ? small : begin;
  if (is_named_place(small) || ir_is(ir_defining_op(begin), "linalg.fill"))
    layout_write(place, &at, mlirOperationGetLocation(at.layout_op));
  erase_annotations(large);
}

/* ---- the loop without the value ---------------------------------------------------------------------------------- */

static MlirOperation drop_carried(struct pass_run *run, MlirOperation loop, int k) {
  const int n = parts_n_carried(loop);
  MlirValue bounds[3], *carried = arena_new_array(run->arena, MlirValue, (size_t)n + 1);
  struct ir_builder b = edit_before(run, loop), inside;
  MlirBlock from = ir_body(loop);
  MlirOperation end = mlirBlockGetTerminator(from), op;

  for (int i = 0; i < 3; i++)
    bounds[i] = mlirOperationGetOperand(loop, i);
  for (int i = 0; i < n - 1; i++)
    carried[i] = mlirOperationGetOperand(loop, 3 + i + (i >= k));
  MlirRegion region = ir_loop_region(&b, n - 1, carried, &inside);
  MlirBlock to = inside.block;
  mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 0), mlirBlockGetArgument(to, 0));
  for (int i = 0; i < n - 1; i++) {
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 1 + i + (i >= k)), mlirBlockGetArgument(to, 1 + i));
    carried[i] = mlirOperationGetOperand(end, i + (i >= k));
  }
  while (op = mlirBlockGetFirstOperation(from), !mlirOperationEqual(op, end)) {
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
  }
  inside.loc = mlirOperationGetLocation(end);
  ir_yield(&inside, n - 1, carried);
  for (int i = 0; i < n - 1; i++)
    carried[i] = mlirOperationGetOperand(loop, 3 + i + (i >= k));
  MlirOperation made = ir_for(&b, bounds, n - 1, carried, region);
  for (int i = 0; i < n - 1; i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, i + (i >= k)), mlirOperationGetResult(made, i));
  mlirOperationDestroy(loop);
  return made;
}

/* ---- what is left over ------------------------------------------------------------------------------------------- */

static bool is_slice(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "tensor.extract_slice") || ir_is(op, "tensor.insert_slice");
}

/* Erases slices that no operation reads, from the last to the first. */
static void sweep(struct pass_run *run, MlirOperation loop) {
  struct ir_ops all = ir_collect(run->arena, loop, is_slice, NULL);

  while (all.n--) {
    if (is_read(ir_result(all.v[all.n])))
      continue;
    erase_annotations(ir_result(all.v[all.n]));
    edit_erase_unused(run->arena, all.v[all.n]);
  }
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Shrinks the carried values of the loop, then those of the inner loops.  Returns the loop, or the one that replaces
 * it. */
static MlirOperation shrink(struct pass_run *run, MlirOperation loop, int *n_shrunk) {
  for (int k = parts_n_carried(loop) - 1; k >= 0; k--) {
    struct local l = {.run = run, .loop = loop, .k = k};
    if (!can_shrink(&l))
      continue;
    MlirValue inside = mlirBlockGetArgument(ir_body(loop), 1 + k), small = begin(&l);
    mlirValueReplaceAllUsesOfWith(inside, small);
    retype(&l, small);
    fold_whole(&l, small);
    move_layout(&l, small, mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(loop)), k));
    loop = drop_carried(run, loop, k);
    (*n_shrunk)++;
  }
  sweep(run, loop);
  const struct ir_ops inner = parts_loops_in(run->arena, ir_body(loop));
  for (int i = 0; i < inner.n; i++)
    shrink(run, inner.v[i], n_shrunk);
  return loop;
}

void shrink_loops(struct merging *m) {
  int n_shrunk;

  if (!m->made.n)
    return;
  parts_read_latest(m->run);
  do { /* repeat: after the last loop of a chain is handled, no operation reads the results of the earlier ones */
    n_shrunk = 0;
    for (int k = 0; k < m->made.n; k++)
      m->made.v[k] = shrink(m->run, m->made.v[k], &n_shrunk);
  } while (n_shrunk);
  edit_sweep(m->run);
}
