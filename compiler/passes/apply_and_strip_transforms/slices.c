/* slices: see slices.h. */
#include "passes/apply_and_strip_transforms/slices.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/slice.h"

/* ---- offsets ---------------------------------------------------------------------------------------- */

/* Gets the only value of a loop's counter.  Returns false if the loop does not run exactly once. */
static bool single_value(MlirValue v, int64_t *out) {
  int64_t upper, step;

  if (!mlirValueIsABlockArgument(v) || mlirBlockArgumentGetArgNumber(v) != 0)
    return false;
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
  return ir_is(loop, "scf.for") && ir_int_constant(mlirOperationGetOperand(loop, 0), out) &&
         ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) &&
         ir_int_constant(mlirOperationGetOperand(loop, 2), &step) && *out < upper && *out + step >= upper;
}

/* Changes the offsets of s, which are relative to the result of `outer`, to offsets into the source of `outer`. */
static bool rebase(struct slice *s, const struct slice *outer) {
  int64_t only;

  if (s->rank != outer->rank)
    return false;
  for (int d = 0; d < s->rank; d++) {
    if (outer->offset[d] == SLICE_DYNAMIC)
      return false;
    if (outer->offset[d] == 0)
      continue;
    if (s->offset[d] != SLICE_DYNAMIC)
      s->offset[d] += outer->offset[d];
    else if (single_value(s->at[d], &only))
      s->offset[d] = outer->offset[d] + only;
    else
      return false;
  }
  return true;
}

/* ---- which slices ----------------------------------------------------------------------------------- */

static bool same_static(const struct slice *x, const struct slice *y) {
  if (x->rank != y->rank)
    return false;
  for (int d = 0; d < x->rank; d++)
    if (x->offset[d] == SLICE_DYNAMIC || x->offset[d] != y->offset[d] || x->size[d] != y->size[d])
      return false;
  return true;
}

/* True if op is an extract_slice at constant offsets that keeps the rank. */
static bool is_part(MlirOperation op, struct slice *s) {
  if (!slice_read(op, s) || s->is_insert)
    return false;
  if (mlirShapedTypeGetRank(mlirValueGetType(mlirOperationGetResult(op, 0))) != s->rank)
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->offset[d] == SLICE_DYNAMIC)
      return false;
  return true;
}

static bool is_extract(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "tensor.extract_slice");
}

/* ---- loops ------------------------------------------------------------------------------------------ */

/* The change to the values that a part flows through. */
struct move {
  struct slice part;
  MlirType whole;      /* the new type of the values */
  MlirOperation end;   /* the insert_slice that puts the part back */
  bool is_done, apply; /* apply: change the IR, not only check it */
};

static bool thread(struct move *m, MlirValue v);

static bool thread_loop(struct move *m, MlirOperation loop, intptr_t operand) {
  if (operand < 3)
    return false;
  MlirBlock body = ir_body(loop);
  MlirValue carried = mlirBlockGetArgument(body, operand - 2), result = mlirOperationGetResult(loop, operand - 3);

  if (m->apply) {
    mlirValueSetType(carried, m->whole);
    mlirValueSetType(result, m->whole);
  }
  return thread(m, carried) && thread(m, result);
}

static bool thslice_read(struct move *m, MlirOperation op, intptr_t operand) {
  struct slice s;

  if (!slice_read(op, &s))
    return false;
  if (s.is_insert && operand == 0) { /* the part is put back where it was taken from */
    if (!same_static(&s, &m->part) || m->is_done)
      return false;
    m->is_done = true;
    m->end = op;
    return true;
  }
  if (!rebase(&s, &m->part))
    return false;
  if (m->apply)
    slice_set(&s, slice_of(&s));
  if (!s.is_insert)
    return true;
  if (m->apply)
    mlirValueSetType(mlirOperationGetResult(op, 0), m->whole);
  return thread(m, mlirOperationGetResult(op, 0));
}

/* Checks or changes all uses of v, which is the part or a value computed from it in place. */
static bool thread(struct move *m, MlirValue v) {
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t at = mlirOpOperandGetOperandNumber(u);
    next = mlirOpOperandGetNextUse(u); /* slice_set changes the list of uses */
    bool ok = ir_is(op, "scf.for") ? thread_loop(m, op, at) : ir_is(op, "scf.yield") || thslice_read(m, op, at);
    if (!ok)
      return false;
  }
  return true;
}

/* True if the part is put back into the value it was taken from. */
static bool put_back_into(const struct move *m) {
  struct slice end;
  return slice_read(m->end, &end) && mlirValueEqual(slice_of(&end), slice_of(&m->part));
}

static bool move_part(MlirOperation op) {
  struct move m = {0};

  if (!is_part(op, &m.part))
    return false;
  MlirValue whole = slice_of(&m.part), part = mlirOperationGetResult(op, 0);
  m.whole = mlirValueGetType(whole);
  if (!thread(&m, part) || !m.is_done || !put_back_into(&m))
    return false;
  m.apply = true;
  m.is_done = false;
  thread(&m, part);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(m.end, 0), mlirOperationGetOperand(m.end, 0));
  mlirOperationDestroy(m.end);
  mlirValueReplaceAllUsesOfWith(part, whole);
  mlirOperationDestroy(op);
  return true;
}

/* ---- slices of slices ------------------------------------------------------------------------------- */

static bool is_whole(const struct slice *s) {
  return slice_is_whole(s, mlirValueGetType(slice_of(s)));
}

static void merge(MlirOperation op) {
  struct slice s, outer;

  while (slice_read(op, &s)) {
    MlirOperation def = ir_defining_op(slice_of(&s));
    if (mlirOperationIsNull(def) || !is_part(def, &outer) || is_whole(&outer) || !rebase(&s, &outer))
      return;
    slice_set(&s, slice_of(&outer));
  }
}

void slices_move_into_loops(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_extract, NULL);
  bool *gone = arena_new_array(run->arena, bool, (size_t)ops.n);

  for (int k = 0; k < ops.n; k++) {
    pass_step(run, ops.v[k], "move-slice-into-loop");
    gone[k] = move_part(ops.v[k]);
  }
  for (int k = 0; k < ops.n; k++)
    if (!gone[k]) {
      pass_step(run, ops.v[k], "merge-slices");
      merge(ops.v[k]);
    }
  for (int k = ops.n - 1; k >= 0; k--) {
    struct slice s;
    if (!gone[k] && !ir_is_used(mlirOperationGetResult(ops.v[k], 0)) && is_part(ops.v[k], &s) && !is_whole(&s)) {
      pass_step(run, ops.v[k], "drop-unused");
      mlirOperationDestroy(ops.v[k]);
    }
  }
}
