/* spread: long rows and columns are spread over the partitions.
 *
 *     f(x[1,N])               ==>  f(x[P,N/P]), then reshapes back       also [N,1], [1,N,1] and the like
 *     sum of x[1,N] or x[N,1] ==>  sum of x[N], which reduce.c spreads
 *
 * A row lies in one partition, and a column takes one tile for each 128 elements.  shapes.c gives values of rank 1 the
 * form that their neighbours have; here the neighbours decide, too.  A matrix product, or an operation on more elements
 * that reads the column as a factor for each of its partitions wants the form that there is.  So this changes whole
 * groups of operations that read each other's results, and only groups that otherwise read arguments, constants,
 * reshapes and single numbers, and whose results are returned, reshaped or single numbers.
 *
 * The operations that may change carry the attribute SPREAD while the groups are found.  Each is taken out at most once.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"

#include "base/arena.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

#define SPREAD "nkx.spread"

static bool is_spread(MlirOperation op) {
  return !mlirOperationIsNull(op) && !mlirAttributeIsNull(ir_attr(op, SPREAD));
}

/* Returns the number of elements if one loop has them all; 0 if not. */
static int64_t only_extent(const struct structured *s) {
  int64_t n = 0;
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] != 1)
      n = n || s->extents[l] < 1 ? -1 : s->extents[l];
  return n < 0 ? 0 : n;
}

int64_t prepare_elements(MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX], n = 1;
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  for (int d = 0; d < rank; d++)
    n *= dims[d];
  return rank < 0 ? -1 : n;
}

/* True if the operation combines all elements to one, in any order. */
static bool is_sum(MlirOperation op, const struct structured *s) {
  return s->kind == SK_REDUCTION && s->n_inputs == 1 && s->n_inits == 1 && prepare_elements(ir_result(op)) == 1;
}

static bool is_candidate(MlirOperation op, void *user) {
  struct pass_run *run = user;
  struct structured s;
  if (!structured_read(op, &s) || s.n_loops < 2 || !structured_has_simple_maps(&s) ||
      !(structured_is_elementwise(&s) || is_sum(op, &s)))
    return false;
  const int64_t n = only_extent(&s);
  return n > PREPARE_ROW_MAX && prepare_partitions(n) > 1 && !prepare_has_op(run, op, "linalg.index") &&
         !prepare_has_op(run, op, "tensor.extract");
}

static bool is_reshape(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape");
}

/* An argument of the function, a constant, a number, or a value in an order of its own. */
static bool may_read(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  if (prepare_elements(v) == 1)
    return true;
  if (mlirOperationIsNull(def))
    return ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "func.func");
  return is_spread(def) || is_reshape(def) || ir_is(def, "arith.constant") || ir_is(def, "tensor.empty") ||
         ir_is(def, "linalg.fill");
}

static bool may_be_read_by(MlirOperation user, MlirValue v) {
  return is_spread(user) || is_reshape(user) || ir_is(user, "func.return") ||
         (prepare_elements(v) == 1 && !layout_is_annotation(user));
}

/* True if all neighbours of the operation leave its form to it. */
static bool is_free(MlirOperation op) {
  for (intptr_t o = 0; o < mlirOperationGetNumOperands(op); o++)
    if (!may_read(mlirOperationGetOperand(op, o)))
      return false;
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(op, r)); !mlirOpOperandIsNull(u);
         u = mlirOpOperandGetNextUse(u))
      if (!may_be_read_by(mlirOpOperandGetOwner(u), mlirOperationGetResult(op, r)))
        return false;
  return true;
}

struct stack {
  MlirOperation *v; /* room for each candidate: none is pushed twice */
  int n;
};

static void take_out(struct stack *s, MlirOperation op) {
  if (!is_spread(op))
    return;
  mlirOperationRemoveAttributeByName(op, mlirStringRefCreateFromCString(SPREAD));
  s->v[s->n++] = op;
}

static void take_out_neighbours(struct stack *s, MlirOperation op) {
  for (intptr_t o = 0; o < mlirOperationGetNumOperands(op); o++)
    take_out(s, ir_defining_op(mlirOperationGetOperand(op, o)));
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(op, r)); !mlirOpOperandIsNull(u);
         u = mlirOpOperandGetNextUse(u))
      take_out(s, mlirOpOperandGetOwner(u));
}

/* Makes the reduction one of a vector: reduce.c reduces it within the partitions, then across them. */
static void spread_sum(struct pass_run *run, MlirOperation op, const struct structured *s, int64_t n) {
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[] = {ir_identity_map(&b, 1), ir_map(&b, 1, 0, NULL)};

  mlirOperationSetOperand(op, 0, edit_reshape(&b, mlirOperationGetOperand(op, 0), 1, &n));
  prepare_result(run, op, s, 0, 0, NULL);
  edit_set_maps(op, 2, maps);
  edit_set_iterators(op, 1, (bool[]){true});
}

static void spread_elementwise(struct pass_run *run, MlirOperation op, const struct structured *s, int64_t n) {
  const int64_t p = prepare_partitions(n);
  const int64_t to[] = {p, n / p}, one[] = {1, 1}, zeros[] = {IR_CONST(0), IR_CONST(0)};
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];

  for (int o = 0; o < s->n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const int64_t total = prepare_elements(v);
    assert(total == n || total == 1); /* a dimension is a loop or has one element */
    mlirOperationSetOperand(op, o, edit_reshape(&b, v, 2, total == n ? to : one));
    maps[o] = total == n ? ir_identity_map(&b, 2) : ir_map(&b, 2, 2, zeros);
  }
  for (int r = 0; r < s->n_inits; r++) {
    maps[s->n_inputs + r] = ir_identity_map(&b, 2);
    prepare_result(run, op, s, r, 2, to);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s->n_inputs + s->n_inits, maps);
  edit_set_iterators(op, 2, (bool[]){false, false});
}

static void spread(struct pass_run *run, MlirOperation op) {
  struct structured s;
  structured_read(op, &s);
  if (s.kind == SK_REDUCTION)
    spread_sum(run, op, &s, only_extent(&s));
  else
    spread_elementwise(run, op, &s, only_extent(&s));
}

void prepare_spread(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, is_candidate, run);
  struct stack out = {arena_alloc(run->arena, (size_t)ops.n * sizeof *out.v), 0};

  for (int i = 0; i < ops.n; i++)
    ir_set_attr(ops.v[i], SPREAD, mlirUnitAttrGet(mlirOperationGetContext(ops.v[i])));
  for (int i = 0; i < ops.n; i++) {
    if (is_spread(ops.v[i]) && !is_free(ops.v[i]))
      take_out(&out, ops.v[i]);
    while (out.n)
      take_out_neighbours(&out, out.v[--out.n]);
  }
  for (int i = 0; i < ops.n; i++)
    if (is_spread(ops.v[i])) {
      mlirOperationRemoveAttributeByName(ops.v[i], mlirStringRefCreateFromCString(SPREAD));
      spread(run, ops.v[i]);
    }
}
