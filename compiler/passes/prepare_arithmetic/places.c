/* places: what the elements of a value say about where they are.
 *
 *     %i = linalg.generic { yield index_cast(linalg.index 0) }
 *     %j = linalg.generic { yield index_cast(linalg.index 1) }         the places j - i
 *     %d = linalg.sub ins(%j, %i)
 *
 * Masks of triangles and diagonals begin like this.  The places are read through sums and differences of values of the same
 * dimensions; anything else has none.  Each value is read once for each use: the depth is bounded.
 *
 * Such a value becomes one operation, for which GpSimd has an instruction:
 *
 *     %d = linalg.generic { yield index_cast(linalg.index 1 - linalg.index 0) }
 *
 * Otherwise each of the operations would write, and read, a whole tensor.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { DEPTH_MAX = 8 };

static void add(struct prepare_places *p, const struct prepare_places *x, int64_t sign) {
  p->constant += sign * x->constant;
  p->n_steps += x->n_steps;
  for (int l = 0; l < STRUCTURED_LOOPS_MAX; l++)
    p->factor[l] += sign * x->factor[l];
}

static bool read_value(MlirValue v, int n_loops, int depth, struct prepare_places *p);

/* A scalar in the body of op. */
static bool read_scalar(MlirOperation op, const struct structured *s, MlirValue v, int depth,
                        struct prepare_places *p) {
  struct prepare_places x = {0}, y = {0};

  *p = (struct prepare_places){0};
  if (depth > DEPTH_MAX)
    return false;
  if (ir_int_constant(v, &p->constant))
    return p->constant >= INT32_MIN && p->constant <= INT32_MAX;
  if (mlirValueIsABlockArgument(v)) {
    const int k = (int)mlirBlockArgumentGetArgNumber(v);
    return mlirBlockEqual(mlirBlockArgumentGetOwner(v), ir_body(op)) && k < s->n_inputs &&
           mlirAffineMapIsIdentity(s->maps[k]) && read_value(mlirOperationGetOperand(op, k), s->n_loops, depth + 1, p);
  }
  MlirOperation def = ir_defining_op(v);
  if (ir_is(def, "linalg.index")) {
    p->factor[ir_int_attr(def, "dim", 0)] = 1;
    return true;
  }
  if (ir_is(def, "arith.index_cast"))
    return read_scalar(op, s, mlirOperationGetOperand(def, 0), depth + 1, p);
  const bool is_sub = ir_is(def, "arith.subi");
  if (!is_sub && !ir_is(def, "arith.addi"))
    return false;
  if (!read_scalar(op, s, mlirOperationGetOperand(def, 0), depth + 1, &x) ||
      !read_scalar(op, s, mlirOperationGetOperand(def, 1), depth + 1, &y))
    return false;
  add(p, &x, 1);
  add(p, &y, is_sub ? -1 : 1);
  return true;
}

static bool read_value(MlirValue v, int n_loops, int depth, struct prepare_places *p) {
  MlirOperation op = ir_defining_op(v);
  struct prepare_places x = {0}, y = {0};
  struct structured s;

  *p = (struct prepare_places){0};
  if (depth > DEPTH_MAX || mlirOperationIsNull(op) || !structured_read(op, &s) || !structured_is_elementwise(&s) ||
      s.n_loops != n_loops || s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]) || prepare_has_knob(v) ||
      !mlirTypeIsAInteger(ir_value_element(v)) || mlirIntegerTypeGetWidth(ir_value_element(v)) != 32)
    return false;
  if (ir_is(op, "linalg.generic")) {
    if (!read_scalar(op, &s, mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0), depth + 1, p))
      return false;
  } else {
    const bool is_sub = ir_is(op, "linalg.sub");
    if ((!is_sub && !ir_is(op, "linalg.add")) || !read_value(mlirOperationGetOperand(op, 0), n_loops, depth + 1, &x) ||
        !read_value(mlirOperationGetOperand(op, 1), n_loops, depth + 1, &y))
      return false;
    add(p, &x, 1);
    add(p, &y, is_sub ? -1 : 1);
  }
  p->n_steps++;
  return true;
}

bool prepare_read_places(MlirValue v, struct prepare_places *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  int64_t most;

  if (rank < 1 || !read_value(v, rank, 0, p))
    return false;
  most = p->constant < 0 ? -p->constant : p->constant;
  for (int d = 0; d < rank; d++)
    most += (p->factor[d] < 0 ? -p->factor[d] : p->factor[d]) * dims[d];
  return most <= INT32_MAX; /* no sum wraps around */
}

bool prepare_read_mask(MlirValue v, struct prepare_places *p, int64_t *predicate) {
  MlirOperation op = ir_defining_op(v);
  struct prepare_places x = {0}, y = {0};
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) ||
      !structured_is_elementwise(&s) || s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]) ||
      prepare_has_knob(v))
    return false;
  MlirOperation compare = ir_defining_op(mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0));
  if (mlirOperationIsNull(compare) || !ir_is(compare, "arith.cmpi"))
    return false;
  if (!read_scalar(op, &s, mlirOperationGetOperand(compare, 0), 0, &x) ||
      !read_scalar(op, &s, mlirOperationGetOperand(compare, 1), 0, &y))
    return false;
  *p = x;
  add(p, &y, -1);
  *predicate = ir_int_attr(compare, "predicate", -1);
  return true;
}

/* ---- one operation --------------------------------------------------------------------------------------------------- */

/* Writes the body for the places in user. */
static MlirValue count(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct prepare_places *p = user;
  MlirValue sum = {NULL};

  for (int sign = 1; sign >= -1; sign -= 2) /* what is added first, so that there is something to subtract from */
    for (int d = 0; d < STRUCTURED_LOOPS_MAX; d++) {
      const int64_t factor = p->factor[d] * sign;
      if (factor <= 0)
        continue;
      MlirValue at = ir_linalg_index(b, d);
      if (factor > 1)
        at = ir_binary(b, "arith.muli", at, ir_index(b, factor));
      if (mlirValueIsNull(sum) && sign < 0)
        sum = ir_index(b, 0);
      sum = mlirValueIsNull(sum) ? at : ir_binary(b, sign > 0 ? "arith.addi" : "arith.subi", sum, at);
    }
  if (p->constant)
    sum = ir_binary(b, "arith.addi", sum, ir_index(b, p->constant));
  return ir_op1(b, "arith.index_cast", mlirValueGetType(args[0]), 1, &sum);
}

static bool is_elementwise(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return structured_read(op, &s) && structured_is_elementwise(&s) && mlirOperationGetNumResults(op) == 1;
}

/* True if all that use v are places themselves, so that they will not need it. */
static bool is_part_of_others(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    struct prepare_places p;
    if (!is_elementwise(user, NULL) || !prepare_read_places(ir_result(user), &p))
      return false;
  }
  return true;
}

static void make_one(struct pass_run *run, MlirOperation op, struct prepare_places *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  MlirValue v = ir_result(op);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  const struct price_shape s = price_shape_of(v);
  struct ir_builder b = edit_before(run, op);
  const MlirAffineMap map = ir_identity_map(&b, rank);
  struct remark *r = pass_remark(run, op, RULE_COUNT_AT_ONCE, "counted by one operation instead of %d", p->n_steps);
  const double each = price_rows_ns(run->target, SIM_COST_GPSIMD_COPY, s.rows, s.columns);

  price_chosen(r, each);
  price_instead(r, "an operation for each step", p->n_steps * each, "each would write a tensor for the next one");
  MlirOperation made = ir_linalg_generic(
      &b, &(struct ir_generic){
              .n_loops = rank, .maps = &map, .output = ir_empty_of(&b, mlirValueGetType(v)), .body = count, .user = p});
  mlirValueReplaceAllUsesOfWith(v, ir_result(made));
}

void prepare_places(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, is_elementwise, NULL);

  for (int i = ops.n - 1; i >= 0; i--) { /* what reads a value before the value */
    struct prepare_places p;
    MlirValue v = ir_result(ops.v[i]);
    bool is_any = false;
    if (!prepare_read_places(v, &p))
      continue;
    if (!ir_is_used(v)) { /* by what became one operation */
      mlirOperationDestroy(ops.v[i]);
      continue;
    }
    for (int d = 0; d < STRUCTURED_LOOPS_MAX; d++)
      is_any |= p.factor[d] != 0;
    if (!is_any || p.n_steps < 2 || is_part_of_others(v))
      continue;
    pass_step(run, ops.v[i], "count-at-once");
    make_one(run, ops.v[i], &p);
    mlirOperationDestroy(ops.v[i]);
  }
}
