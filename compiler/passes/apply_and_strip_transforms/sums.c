/* sums: see sums.h.
 *
 * Within a loop of the first nest everything moves to the loop of the second that it corresponds to, except what handles the value that
 * the loop carries: slices of it, the copy to PSUM, and loops that carry it on.
 */
#include "passes/apply_and_strip_transforms/sums.h"

#include "base/array.h"
#include "ir/build.h"
#include "passes/lib/layout.h"

/* ---- the form of a product's loops ------------------------------------------------------------------------------- */

/* Copies a part of the carried value to PSUM, where a sum begins. */
static bool is_start(MlirOperation op) {
  if (!ir_is(op, "bufferization.materialize_in_destination"))
    return false;
  MlirOperation to = ir_defining_op(mlirOperationGetOperand(op, 1));
  return !mlirOperationIsNull(to) && ir_int_attr(to, "memory_space", 0) == MEM_PSUM;
}

static bool want_start(MlirOperation op, void *user) {
  (void)user;
  return is_start(op);
}

/* The number of the last matmul in op; -1 if there is none. */
static int64_t product_of(struct pass_run *run, MlirOperation op) {
  const struct ir_ops products = ir_collect_named(run->arena, op, "linalg.matmul");
  return products.n ? ir_int_attr(products.v[products.n - 1], "nkipy.op_id", -1) : -1;
}

static bool is_loop_of(struct pass_run *run, MlirOperation op, int64_t product) {
  return ir_is(op, "scf.for") && mlirOperationGetNumResults(op) == 1 && product_of(run, op) == product;
}

/* The first loop that carries the value from which the copy reads: there are several, each on the result of the one before it, if the
 * tiles do not divide the rows or the columns.  Null if it starts in something else than the result of a loop. */
static MlirOperation first_loop_of(struct pass_run *run, MlirOperation start) {
  const int64_t product = product_of(run, mlirOperationGetParentOperation(start));
  MlirValue v = mlirOperationGetOperand(start, 0);
  MlirOperation loop = {NULL};

  for (;;) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def)) {
      const intptr_t k = mlirBlockArgumentGetArgNumber(v);
      def = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
      if (k != 1 || !is_loop_of(run, def, product))
        return (MlirOperation){NULL};
      loop = def;
      v = mlirOperationGetOperand(def, 3);
    } else if (ir_is(def, "tensor.extract_slice")) {
      v = mlirOperationGetOperand(def, 0);
    } else if (is_loop_of(run, def, product)) {
      loop = def;
      v = mlirOperationGetOperand(def, 3);
    } else {
      return ir_is(def, "scf.for") && mlirOperationGetNumResults(def) == 1 ? loop : (MlirOperation){NULL};
    }
  }
}

struct list {
  MlirOperation *v;
  int n, cap;
};

static bool is_in(const struct list *l, MlirOperation op) {
  for (int k = 0; k < l->n; k++)
    if (mlirOperationEqual(l->v[k], op))
      return true;
  return false;
}

/* The first loops of products that start in the result of another loop. */
static struct list find_loops(struct pass_run *run) {
  const struct ir_ops starts = ir_collect(run->arena, run->module, want_start, NULL);
  struct list loops = {0};

  for (int k = 0; k < starts.n; k++) {
    MlirOperation loop = first_loop_of(run, starts.v[k]);
    if (!mlirOperationIsNull(loop) && product_of(run, loop) >= 0 && !is_in(&loops, loop))
      array_push(run->arena, &loops, loop);
  }
  return loops;
}

/* The loop that carries on what this one has computed of the product; null if it is the last. */
static MlirOperation next_loop(struct pass_run *run, MlirOperation loop, int64_t product) {
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(loop)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (mlirOpOperandGetOperandNumber(u) == 3 && is_loop_of(run, mlirOpOperandGetOwner(u), product))
      return mlirOpOperandGetOwner(u);
  return (MlirOperation){NULL};
}

/* ---- merging two loops ------------------------------------------------------------------------------------------- */

/* What a body does with the value that its loop carries. */
struct body {
  struct list inner;   /* those that carry it on */
  struct list own;     /* all operations that handle it, also those */
  MlirOperation start; /* the copy to PSUM, or null */
  MlirValue sum;       /* with a start: what is inserted */
};

static void follow(struct pass_run *run, MlirValue carried, MlirBlock block, struct body *b) {
  for (MlirOpOperand u = mlirValueGetFirstUse(carried); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!mlirBlockEqual(mlirOperationGetBlock(op), block) || is_in(&b->own, op))
      continue;
    array_push(run->arena, &b->own, op);
    if (is_start(op)) {
      b->start = op;
      array_push(run->arena, &b->own, ir_defining_op(mlirOperationGetOperand(op, 1)));
      continue;
    }
    if (ir_is(op, "scf.for"))
      array_push(run->arena, &b->inner, op);
    if (ir_is(op, "tensor.insert_slice"))
      b->sum = mlirOperationGetOperand(op, 0);
    if (mlirOperationGetNumResults(op) == 1)
      follow(run, ir_result(op), block, b);
  }
}

static struct body read_body(struct pass_run *run, MlirOperation loop) {
  struct body b = {0};
  follow(run, mlirBlockGetArgument(ir_body(loop), 1), ir_body(loop), &b);
  return b;
}

static bool is_same_number(MlirValue x, MlirValue y) {
  int64_t a, b;
  return mlirValueEqual(x, y) || (ir_int_constant(x, &a) && ir_int_constant(y, &b) && a == b);
}

static bool has_same_form(struct pass_run *run, MlirOperation x, MlirOperation y) {
  if (mlirOperationGetNumResults(x) != 1 || mlirOperationGetNumResults(y) != 1)
    return false;
  for (int k = 0; k < 3; k++)
    if (!is_same_number(mlirOperationGetOperand(x, k), mlirOperationGetOperand(y, k)))
      return false;
  const struct body a = read_body(run, x), b = read_body(run, y);
  if (mlirOperationIsNull(a.start) != mlirOperationIsNull(b.start) || a.inner.n != b.inner.n ||
      mlirOperationIsNull(a.start) == !a.inner.n)
    return false;
  for (int k = 0; k < a.inner.n; k++)
    if (!has_same_form(run, a.inner.v[k], b.inner.v[k]))
      return false;
  return true;
}

/* Moves operations of x before `at`, from `op` on as far as the end or a loop that carries the value.  Returns that loop. */
static MlirOperation move(const struct body *x, MlirOperation op, MlirOperation at) {
  while (!mlirOperationIsNull(op) && !is_in(&x->inner, op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (!is_in(&x->own, op) && !ir_is(op, "scf.yield"))
      mlirOperationMoveBefore(op, at);
    op = next;
  }
  return op;
}

/* ---- the order of loads ------------------------------------------------------------------------------------------ */

static bool runs_once(MlirOperation loop) {
  int64_t lower, upper, step;
  return ir_int_constant(mlirOperationGetOperand(loop, 0), &lower) &&
         ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) &&
         ir_int_constant(mlirOperationGetOperand(loop, 2), &step) && lower < upper && upper - lower <= step;
}

/* True if what op computes is only used in the loop, which is in the same block. */
static bool is_used_in(MlirOperation op, MlirOperation loop) {
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(op, r)); !mlirOpOperandIsNull(u);
         u = mlirOpOperandGetNextUse(u)) {
      MlirOperation user = mlirOpOperandGetOwner(u), here = ir_ancestor_in(user, mlirOperationGetBlock(loop));
      if (mlirOperationEqual(user, loop) || mlirOperationIsNull(here) || !mlirOperationEqual(here, loop))
        return false;
    }
  return true;
}

/* What a loop computes before an inner loop that runs once goes into that, so that it can come after the first sum. */
static void sink(struct pass_run *run, MlirOperation loop) {
  const struct body b = read_body(run, loop);
  struct list ops = {0};

  if (b.inner.n != 1 || !runs_once(b.inner.v[0]))
    return;
  MlirOperation inner = b.inner.v[0];
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(loop)); !mlirOperationEqual(op, inner);
       op = mlirOperationGetNextInBlock(op))
    if (!is_in(&b.own, op))
      array_push(run->arena, &ops, op);
  while (ops.n--) /* from the last on: users first */
    if (is_used_in(ops.v[ops.n], inner))
      mlirOperationMoveBefore(ops.v[ops.n], mlirBlockGetFirstOperation(ir_body(inner)));
  sink(run, inner);
}

/* The sum of y begins with that of x. */
static void join_sums(struct pass_run *run, const struct body *x, const struct body *y, MlirOperation first) {
  struct {
    MlirOpOperand *v;
    int n, cap;
  } uses = {0};
  MlirValue begin = ir_result(y->start);

  for (MlirOpOperand u = mlirValueGetFirstUse(begin); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    array_push(run->arena, &uses, u);
  for (int k = 0; k < uses.n; k++)
    mlirOperationSetOperand(mlirOpOperandGetOwner(uses.v[k]), mlirOpOperandGetOperandNumber(uses.v[k]), x->sum);
  MlirOperation at = mlirBlockGetFirstOperation(mlirOperationGetBlock(y->start));
  while (is_in(&y->own, at))
    at = mlirOperationGetNextInBlock(at);
  for (int k = 0; k < y->own.n; k++) /* the copy's operands */
    if (mlirOperationIsBeforeInBlock(y->own.v[k], y->start))
      mlirOperationMoveBefore(y->own.v[k], at);
  mlirOperationMoveBefore(y->start, at);
  move(x, first, mlirOperationGetNextInBlock(y->start));
  mlirValueReplaceAllUsesOfWith(ir_result(x->start), begin);
}

/* Moves what x computes into y, before what y computes at the same place. */
static void merge(struct pass_run *run, MlirOperation x, MlirOperation y) {
  const struct body a = read_body(run, x), b = read_body(run, y);
  MlirOperation from = mlirBlockGetFirstOperation(ir_body(x)), at = mlirBlockGetFirstOperation(ir_body(y));

  mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(ir_body(x), 0), mlirBlockGetArgument(ir_body(y), 0));
  if (!mlirOperationIsNull(a.start)) {
    join_sums(run, &a, &b, from);
    return;
  }
  for (int k = 0; k < a.inner.n; k++) {
    from = mlirOperationGetNextInBlock(move(&a, from, at));
    at = mlirOperationGetNextInBlock(b.inner.v[k]);
    merge(run, a.inner.v[k], b.inner.v[k]);
  }
  move(&a, from, at);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void erase_annotations(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v), next; !mlirOpOperandIsNull(u); u = next) {
    next = mlirOpOperandGetNextUse(u);
    if (layout_is_annotation(mlirOpOperandGetOwner(u)))
      mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
}

static enum status refuse(struct pass_run *run, MlirOperation loop) {
  return pass_fail(run, loop, "the loops of two products that are added up differ");
}

/* Merges the loops of the product before it into those of a product, from the first on. */
static enum status merge_products(struct pass_run *run, MlirOperation first) {
  struct list x = {0}, y = {0};
  const int64_t product = product_of(run, first);

  for (MlirOperation op = first; !mlirOperationIsNull(op); op = next_loop(run, op, product))
    array_push(run->arena, &y, op);
  MlirValue v = mlirOperationGetOperand(first, 3);
  for (int k = y.n - 1; k >= 0; k--) { /* from the last on */
    MlirOperation op = ir_defining_op(v);
    if (mlirOperationIsNull(op) || !ir_is(op, "scf.for") || !has_same_form(run, op, y.v[k]))
      return refuse(run, y.v[k]);
    array_push(run->arena, &x, op);
    v = mlirOperationGetOperand(op, 3);
  }
  for (int k = 0; k < y.n; k++) {
    sink(run, y.v[k]);
    merge(run, x.v[y.n - 1 - k], y.v[k]);
  }
  mlirOperationSetOperand(first, 3, v);
  erase_annotations(ir_result(x.v[0]));
  for (int k = 0; k < x.n; k++)
    mlirOperationDestroy(x.v[k]);
  return ST_OK;
}

enum status sums_merge_loops(struct pass_run *run) {
  const struct list loops = find_loops(run);
  enum status st = ST_OK;

  for (int k = 0; !st && k < loops.n; k++) {
    pass_step(run, loops.v[k], "merge-sums");
    st = merge_products(run, loops.v[k]);
  }
  return st;
}
