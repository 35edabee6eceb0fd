/* edit: see edit.h. */
#include "passes/lib/edit.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"

/* ---- places ----------------------------------------------------------------------------------------------------- */

struct ir_builder edit_before(struct pass_run *run, MlirOperation op) {
  return (struct ir_builder){.ctx = run->ir->ctx,
                             .block = mlirOperationGetBlock(op),
                             .loc = mlirOperationGetLocation(op),
                             .arena = run->arena,
                             .before = op};
}

struct ir_builder edit_after(struct pass_run *run, MlirOperation op) {
  struct ir_builder b = edit_before(run, op);
  do
    b.before = mlirOperationGetNextInBlock(b.before);
  while (!mlirOperationIsNull(b.before) && ir_is_of(b.before, "nkipy."));
  return b;
}

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

/* If v extends an element to the type of the accumulator, returns that element; otherwise v. */
static MlirValue before_extension(MlirValue v) {
  static const char *const names[] = {"arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp"};
  MlirOperation def = ir_defining_op(v);

  for (size_t i = 0; !mlirOperationIsNull(def) && i < sizeof names / sizeof *names; i++)
    if (ir_is(def, names[i]))
      return mlirOperationGetOperand(def, 0);
  return v;
}

/* True if v is name(x, y) and one operand is argument `arg` of the body; sets *other to the other operand. */
static bool is_with_argument(MlirValue v, const char *flt, const char *integer, MlirValue arg, MlirValue *other) {
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def) || (!ir_is(def, flt) && !ir_is(def, integer)))
    return false;
  for (int i = 0; i < 2; i++)
    if (mlirValueEqual(before_extension(mlirOperationGetOperand(def, i)), arg)) {
      *other = mlirOperationGetOperand(def, 1 - i);
      return true;
    }
  return false;
}

bool edit_multiplies_and_adds(MlirOperation generic) {
  MlirBlock body = ir_body(generic);
  MlirValue product, rest, yielded = mlirOperationGetOperand(mlirBlockGetTerminator(body), 0);

  for (MlirOperation o = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (ir_is(o, "arith.extui") || ir_is(o, "arith.sitofp") || ir_is(o, "arith.uitofp"))
      return false;
  return is_with_argument(yielded, "arith.addf", "arith.addi", mlirBlockGetArgument(body, 2), &product) &&
         is_with_argument(product, "arith.mulf", "arith.muli", mlirBlockGetArgument(body, 0), &rest) &&
         mlirValueEqual(before_extension(rest), mlirBlockGetArgument(body, 1));
}

/* ---- uses ------------------------------------------------------------------------------------------------------- */

void edit_replace_data_uses(struct arena *a, MlirValue v, MlirValue by, MlirOperation except) {
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    n++;
  MlirOpOperand *uses = arena_new_array(a, MlirOpOperand, (size_t)n + 1);
  n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    uses[n++] = u;
  while (n--) {
    MlirOperation op = mlirOpOperandGetOwner(uses[n]);
    if (!ir_is_of(op, "nkipy.") && (mlirOperationIsNull(except) || !mlirOperationEqual(op, except)))
      mlirOperationSetOperand(op, mlirOpOperandGetOperandNumber(uses[n]), by);
  }
}

/* True if op has results and none of them is used.  An operation without results (on memrefs) exists for its effect. */
static bool is_unused(MlirOperation op) {
  if (!mlirOperationGetNumResults(op))
    return false;
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    if (ir_is_used(mlirOperationGetResult(op, r)))
      return false;
  return true;
}

/* True for the operations that this file makes, and for constants: they have no effect besides their result. */
static bool is_erasable(MlirOperation op) {
  static const char *const names[] = {"tensor.empty",        "linalg.fill",      "tensor.collapse_shape",
                                      "tensor.expand_shape", "linalg.transpose", "linalg.broadcast",
                                      "arith.constant"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (ir_is(op, names[i]))
      return true;
  return false;
}

void edit_erase_unused(struct arena *a, MlirOperation op) {
  struct ir_ops defs = {0};

  if (!is_unused(op))
    return;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, i));
    bool is_known = mlirOperationIsNull(def) || !is_erasable(def);
    for (int k = 0; k < defs.n; k++)
      is_known |= mlirOperationEqual(defs.v[k], def);
    if (!is_known)
      array_push(a, &defs, def);
  }
  mlirOperationDestroy(op);
  while (defs.n)
    edit_erase_unused(a, defs.v[--defs.n]);
}

/* If op reshapes a reshape back to the first value's type, replaces it by that value. */
static void fold_round_trip(MlirOperation op) {
  MlirOperation inner = ir_defining_op(mlirOperationGetOperand(op, 0));
  if (mlirOperationIsNull(inner) || (!ir_is(inner, "tensor.collapse_shape") && !ir_is(inner, "tensor.expand_shape")))
    return;
  MlirValue first = mlirOperationGetOperand(inner, 0);
  if (mlirTypeEqual(mlirValueGetType(first), mlirValueGetType(ir_result(op))))
    mlirValueReplaceAllUsesOfWith(ir_result(op), first);
}

void edit_retype_function(struct pass_run *run, MlirOperation function) {
  MlirBlock body = ir_body(function);
  MlirOperation end = mlirBlockGetTerminator(body);
  const intptr_t n = mlirBlockGetNumArguments(body), m = mlirOperationGetNumOperands(end);
  MlirType *types = arena_new_array(run->arena, MlirType, (size_t)(n + m));

  for (intptr_t k = 0; k < n; k++)
    types[k] = mlirValueGetType(mlirBlockGetArgument(body, k));
  for (intptr_t k = 0; k < m; k++)
    types[n + k] = mlirValueGetType(mlirOperationGetOperand(end, k));
  ir_set_attr(function, "function_type", mlirTypeAttrGet(mlirFunctionTypeGet(run->ir->ctx, n, types, m, types + n)));
}

void edit_sweep(struct pass_run *run) {
  struct ir_ops all = ir_collect(run->arena, run->module, NULL, NULL);
  for (int i = 0; i < all.n; i++)
    if (ir_is(all.v[i], "tensor.collapse_shape") || ir_is(all.v[i], "tensor.expand_shape"))
      fold_round_trip(all.v[i]);
  while (all.n--)
    if (is_erasable(all.v[all.n]) && is_unused(all.v[all.n]))
      mlirOperationDestroy(all.v[all.n]);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

/* Returns an existing result of the same reshape of v, if its block has it before the insertion point of b;
 * otherwise a null value. */
static MlirValue existing(const struct ir_builder *b, const char *name, MlirValue v, MlirType to) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, name) && mlirTypeEqual(mlirValueGetType(ir_result(op)), to) &&
        mlirBlockEqual(mlirOperationGetBlock(op), b->block) && !mlirOperationIsNull(b->before) &&
        mlirOperationIsBeforeInBlock(op, b->before))
      return ir_result(op);
  }
  return (MlirValue){NULL};
}

static MlirValue collapse(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims, const int *end) {
  MlirType to = ir_tensor_of(ir_value_element(v), rank, dims);
  MlirValue known = existing(b, "tensor.collapse_shape", v, to);
  return mlirValueIsNull(known) ? ir_collapse_shape(b, v, to, rank, end) : known;
}

static MlirValue expand(struct ir_builder *b, MlirValue v, int n, const int *end, int rank, const int64_t *dims) {
  MlirType to = ir_tensor_of(ir_value_element(v), rank, dims);
  MlirValue known = existing(b, "tensor.expand_shape", v, to);
  return mlirValueIsNull(known) ? ir_expand_shape(b, v, to, n, end, rank, dims) : known;
}

/* If v is the result of a reshape, returns the source of the reshape; otherwise v. */
static MlirValue reshape_source(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def) || (!ir_is(def, "tensor.collapse_shape") && !ir_is(def, "tensor.expand_shape")))
    return v;
  return mlirOperationGetOperand(def, 0);
}

static bool has_shape(MlirValue v, int rank, const int64_t *dims) {
  int64_t own[STRUCTURED_LOOPS_MAX];
  return ir_shape(v, STRUCTURED_LOOPS_MAX, own) == rank && (!rank || !memcmp(own, dims, (size_t)rank * sizeof *own));
}

MlirValue edit_reshape(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims) {
  int64_t from[STRUCTURED_LOOPS_MAX], total = 1;
  int end[STRUCTURED_LOOPS_MAX];

  if (has_shape(v, rank, dims))
    return v;
  v = reshape_source(v);
  if (has_shape(v, rank, dims))
    return v;
  const int n = ir_shape(v, STRUCTURED_LOOPS_MAX, from);
  MlirOperation def = ir_defining_op(v);
  if (n == 2 && rank == 2 && from[0] == dims[1] && from[1] == dims[0] && (from[0] == 1 || from[1] == 1) &&
      !mlirOperationIsNull(def) && structured_read(def, &(struct structured){0}))
    return ir_result(ir_transpose(b, v, 2, (int64_t[]){1, 0}));
  if (n > rank && rank && ir_group_dims(rank, dims, n, from, end))
    return collapse(b, v, rank, dims, end);
  if (n < rank && n && ir_group_dims(n, from, rank, dims, end))
    return expand(b, v, n, end, rank, dims);
  for (int i = 0; i < n; i++)
    total *= from[i];
  const int flat = n && rank; /* the rank of the intermediate value: 1, or 0 from or to a scalar */
  if (n > flat)
    v = collapse(b, v, flat, &total, (int[]){n});
  return rank > flat ? expand(b, v, flat, (int[]){rank}, rank, dims) : v;
}

MlirValue edit_reshape_init(struct ir_builder *b, MlirValue init, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(init);

  if (has_shape(init, rank, dims))
    return init;
  if (!mlirOperationIsNull(def) && ir_is(def, "tensor.empty"))
    return ir_empty_of(b, ir_tensor_of(ir_value_element(init), rank, dims));
  if (mlirOperationIsNull(def) || !ir_is(def, "linalg.fill"))
    return edit_reshape(b, init, rank, dims);
  struct ir_builder at = *b;
  at.loc = mlirOperationGetLocation(def);
  return ir_fill(&at, mlirOperationGetOperand(def, 0),
                 edit_reshape_init(&at, mlirOperationGetOperand(def, 1), rank, dims));
}

/* ---- generics --------------------------------------------------------------------------------------------------- */

void edit_set_maps(MlirOperation generic, int n, MlirAffineMap const *maps) {
  MlirAttribute v[STRUCTURED_OPERANDS_MAX];

  assert(n <= STRUCTURED_OPERANDS_MAX);
  for (int i = 0; i < n; i++)
    v[i] = mlirAffineMapAttrGet(maps[i]);
  ir_set_attr(generic, "indexing_maps", mlirArrayAttrGet(mlirOperationGetContext(generic), n, v));
}

void edit_set_iterators(MlirOperation generic, int n, const bool *reduction) {
  MlirContext ctx = mlirOperationGetContext(generic);
  MlirAttribute v[STRUCTURED_LOOPS_MAX];

  assert(n <= STRUCTURED_LOOPS_MAX);
  for (int i = 0; i < n; i++)
    v[i] = ir_iterator(ctx, reduction[i]);
  ir_set_attr(generic, "iterator_types", mlirArrayAttrGet(ctx, n, v));
}

void edit_shift_indices(struct pass_run *run, MlirOperation generic, int by) {
  struct ir_ops ops = ir_collect_named(run->arena, generic, "linalg.index");

  for (int i = 0; i < ops.n; i++) {
    MlirAttribute dim = ir_attr(ops.v[i], "dim");
    ir_set_attr(ops.v[i], "dim", mlirIntegerAttrGet(mlirAttributeGetType(dim), mlirIntegerAttrGetValueInt(dim) + by));
  }
}
