/* rows: the leading dimensions of a normalisation become one.
 *
 *     sum of x[4,8,8,32,32] over the last three, and f(x, sum[4,8])   ==>  sum of x[32,8192], f(x, sum[32,1]), then reshapes back
 *
 * One dimension lies across the partitions, so that a row for each of 4 images and 8 groups would fill 8 of them, or the sums
 * and the operations on single elements would choose different ones and meet in HBM.
 *
 * A group of operations changes together: element-wise ones and reductions over all of the trailing dimensions that read each
 * other's results and have the same leading ones.  An operand has all dimensions, the leading ones or some of them, the trailing
 * ones, or one element.  What else touches the group is an argument, a constant, a reshape, or the return; any operation may touch
 * numbers for each row.  A product of matrices in a batch, also through a reshape, has its own way with leading dimensions.  Nothing changes where a
 * knob names the dimensions, or if one of them across the partitions, with the others in its rows, would take less time, see cost.
 */
#include <assert.h>
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* The number of the group that an operation is in, while groups are found. */
#define ROWS "nkx.rows"

/* The leading dimensions of a group. */
struct lead {
  int n;
  int64_t dims[STRUCTURED_LOOPS_MAX], rows; /* rows: their product */
  int64_t cost, rejected;                   /* of rows, and of the best single dimension */
};

enum part { WHOLE, LEADING, SOME_LEADING, TRAILING, ONE, OTHER };

/* Which dimensions of the loops the operand has, n of them leading; others of it have one element. */
static enum part part_of(const struct structured *s, int operand, MlirValue v, int n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  bool has[STRUCTURED_LOOPS_MAX] = {false};
  int last = -1, n_leading = 0, n_trailing = 0, all_trailing = 0;

  if (rank < 0)
    return OTHER;
  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    if (loop < 0 ? dims[r] != 1 : loop <= last)
      return OTHER;
    if (loop >= 0)
      has[last = loop] = true;
  }
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] != 1) {
      *(l < n ? &n_leading : &n_trailing) += has[l];
      all_trailing += l >= n;
    }
  int all_leading = 0;
  for (int l = 0; l < n; l++)
    all_leading += s->extents[l] != 1;
  if (!n_leading && !n_trailing)
    return ONE;
  if (n_leading == all_leading)
    return n_trailing == all_trailing ? WHOLE : n_trailing ? OTHER : LEADING;
  if (n_leading)
    return n_trailing ? OTHER : SOME_LEADING;
  return n_trailing < all_trailing ? OTHER : TRAILING;
}

static bool has_annotation(MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    if (prepare_has_knob(mlirOperationGetResult(op, r)))
      return true;
  return false;
}

static bool reads(struct pass_run *run, MlirOperation op, struct structured *s) {
  return structured_read(op, s) && s->n_inits == 1 && structured_has_simple_maps(s) && !has_annotation(op) &&
         (structured_is_elementwise(s) || (s->kind == SK_REDUCTION && s->n_inputs == 1)) &&
         !prepare_has_op(run, op, "linalg.index") && !prepare_has_op(run, op, "tensor.extract");
}

/* About how many cycles an instruction on each tile takes, if so many rows lie across the partitions. */
static int64_t cost(int64_t rows, int64_t columns) {
  enum { FIXED = 64 }; /* of an instruction on the vector engine */
  return (rows + NISA_PARTITIONS - 1) / NISA_PARTITIONS * (FIXED + columns);
}

/* Reads the leading dimensions of a reduction that is faster with one of them.  Returns false for anything else. */
static bool is_seed(struct pass_run *run, MlirOperation op, struct lead *lead) {
  struct structured s;
  int64_t columns = 1;

  if (!reads(run, op, &s) || s.kind != SK_REDUCTION)
    return false;
  for (int l = 0; l < s.n_loops; l++)
    if (s.extents[l] < 1)
      return false;
  *lead = (struct lead){.rows = 1};
  for (; lead->n < s.n_loops && !s.reduction[lead->n]; lead->n++)
    lead->rows *= lead->dims[lead->n] = s.extents[lead->n];
  for (int l = lead->n; l < s.n_loops; l++)
    columns *= s.extents[l];
  lead->cost = cost(lead->rows, columns);
  lead->rejected = INT64_MAX;
  for (int l = 0; l < lead->n; l++) {
    const int64_t other = cost(lead->dims[l], lead->rows / lead->dims[l] * columns);
    lead->rejected = other < lead->rejected ? other : lead->rejected;
  }
  return lead->n > 1 && lead->n < s.n_loops && lead->cost < lead->rejected;
}

/* True if the operation has the leading dimensions, and its operands whole parts of its dimensions. */
static bool fits(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct structured s;

  if (!reads(run, op, &s) || s.n_loops < lead->n)
    return false;
  for (int l = 0; l < s.n_loops; l++)
    if (l < lead->n ? s.reduction[l] || s.extents[l] != lead->dims[l]
                    : s.extents[l] < 1 || (s.kind == SK_REDUCTION && !s.reduction[l]))
      return false;
  for (int o = 0; o < s.n_inputs + s.n_inits; o++) {
    const enum part part = part_of(&s, o, mlirOperationGetOperand(op, o), lead->n);
    if (part == OTHER || (o >= s.n_inputs && part != (s.kind == SK_REDUCTION ? LEADING : WHOLE) &&
                          !(part == LEADING && s.n_loops == lead->n)))
      return false;
  }
  return true;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

struct group {
  struct pass_run *run;
  const struct lead *lead;
  int number;
  MlirOperation *ops; /* room for every candidate: none is put in twice */
  int n;
  bool is_free; /* nothing that wants the old shapes touches it */
};

static bool is_marked(MlirOperation op) {
  return !mlirAttributeIsNull(ir_attr(op, ROWS));
}

static bool is_moved(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape") || ir_is(op, "linalg.transpose");
}

/* True for a product of matrices in a batch. */
static bool is_batch_product(MlirOperation op) {
  struct structured s;
  if (!structured_read(op, &s))
    return false;
  return s.kind == SK_BATCH_MATMUL || (s.kind == SK_REDUCTION && s.n_inputs > 1 && s.n_loops > 3);
}

/* True if v, through reshapes and transposes, comes from a product of matrices in a batch. */
static bool comes_from_batch(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  while (!mlirOperationIsNull(def) && is_moved(def))
    def = ir_defining_op(mlirOperationGetOperand(def, 0));
  return !mlirOperationIsNull(def) && is_batch_product(def);
}

/* True if such a product reads the result of op, a reshape or a transpose, through others of these. */
static bool goes_to_batch(MlirOperation op, int depth) {
  enum { DEPTH_MAX = 16 };
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (is_batch_product(user) || (is_moved(user) && (depth == DEPTH_MAX || goes_to_batch(user, depth + 1))))
      return true;
  }
  return false;
}

/* Puts op, which makes or reads v, in the group, or finds that it may or may not touch one. */
static void meet(struct group *g, MlirOperation op, MlirValue v) {
  static const char *const neutral[] = {"tensor.empty", "linalg.fill", "arith.constant", "func.return"};

  if (mlirOperationIsNull(op) || prepare_elements(v) == 1)
    return; /* an argument, or a number */
  if (is_moved(op)) {
    g->is_free &= !comes_from_batch(v) && !goes_to_batch(op, 0);
    if (!ir_is(op, "linalg.transpose"))
      return;
  }
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
    if (ir_is(op, neutral[i]))
      return;
  if (is_marked(op)) { /* by this group, or by one before it that was given up */
    g->is_free &= mlirIntegerAttrGetValueInt(ir_attr(op, ROWS)) == g->number;
    return;
  }
  if (!fits(g->run, op, g->lead)) {
    g->is_free &= prepare_elements(v) <= g->lead->rows; /* a number for each row is soon in another shape */
    return;
  }
  ir_set_attr(op, ROWS, mlirIntegerAttrGet(mlirIntegerTypeGet(mlirOperationGetContext(op), 64), g->number));
  g->ops[g->n++] = op;
}

static void grow(struct group *g, MlirOperation seed) {
  meet(g, seed, ir_result(seed));
  for (int i = 0; i < g->n; i++) {
    MlirOperation op = g->ops[i];
    for (intptr_t o = 0; o < mlirOperationGetNumOperands(op); o++) {
      MlirValue v = mlirOperationGetOperand(op, o);
      meet(g, ir_defining_op(v), v);
    }
    for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
      meet(g, mlirOpOperandGetOwner(u), ir_result(op));
  }
}

/* ---- the change -------------------------------------------------------------------------------------------------- */

static MlirValue yield_first(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)b;
  (void)user;
  return args[0];
}

/* Repeats v, which the map reads with some of the leading dimensions, along the others: a number for each row. */
static MlirValue for_each_row(struct ir_builder *b, MlirValue v, MlirAffineMap map, const struct lead *lead) {
  int64_t loops[STRUCTURED_LOOPS_MAX];
  const int rank = (int)mlirAffineMapGetNumResults(map);

  for (int r = 0; r < rank; r++)
    loops[r] = structured_map_loop(map, r) < 0 ? IR_CONST(0) : structured_map_loop(map, r);
  MlirAffineMap maps[] = {ir_map(b, lead->n, rank, loops), ir_identity_map(b, lead->n)};
  return ir_result(ir_linalg_generic(
      b, &(struct ir_generic){.n_loops = lead->n,
                              .n_inputs = 1,
                              .inputs = &v,
                              .maps = maps,
                              .output = ir_empty_of(b, ir_tensor_of(ir_value_element(v), lead->n, lead->dims)),
                              .body = yield_first}));
}

static void rewrite(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct structured s;
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  int64_t columns = 1;
  const bool ok = structured_read(op, &s);

  assert(ok);
  (void)ok;
  for (int l = lead->n; l < s.n_loops; l++)
    columns *= s.extents[l];
  for (int o = 0; o < s.n_inputs + s.n_inits; o++) {
    const enum part part = part_of(&s, o, mlirOperationGetOperand(op, o), lead->n);
    const bool has_rows = part == WHOLE || part == LEADING || part == SOME_LEADING,
               has_columns = part == WHOLE || part == TRAILING;
    const int64_t dims[] = {has_rows ? lead->rows : 1, has_columns ? columns : 1};
    maps[o] = ir_map(&b, 2, 2, (int64_t[]){has_rows ? 0 : IR_CONST(0), has_columns ? 1 : IR_CONST(0)});
    MlirValue v = mlirOperationGetOperand(op, o);
    if (part == SOME_LEADING)
      v = for_each_row(&b, v, s.maps[o], lead);
    if (o < s.n_inputs)
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, 2, dims));
    else
      prepare_result(run, op, &s, o - s.n_inputs, 2, dims);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s.n_inputs + s.n_inits, maps);
  edit_set_iterators(op, 2, (bool[]){false, s.kind == SK_REDUCTION});
}

static void remark_lead(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct remark *r =
      pass_remark(run, op, RULE_ROWS, "the %d leading dimensions are one of %" PRId64, lead->n, lead->rows);
  remark_limit(r, "partitions", "partitions", lead->rows < NISA_PARTITIONS ? lead->rows : NISA_PARTITIONS,
               NISA_PARTITIONS);
  remark_reject(r, "one of them across the partitions",
                arena_printf(run->arena, "an instruction on all tiles would take %" PRId64 " cycles, not %" PRId64,
                             lead->rejected, lead->cost));
}

static bool is_candidate(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return structured_read(op, &s) && (structured_is_elementwise(&s) || s.kind == SK_REDUCTION);
}

void prepare_rows(struct pass_run *run) {
  const struct ir_ops all = ir_collect(run->arena, run->module, is_candidate, NULL); /* none of these is erased here */

  MlirOperation *ops = arena_alloc(run->arena, (size_t)all.n * sizeof *ops);

  for (int i = 0; i < all.n; i++) {
    struct lead lead;
    if (is_marked(all.v[i]) || !is_seed(run, all.v[i], &lead))
      continue;
    struct group g = {.run = run, .lead = &lead, .number = i, .ops = ops, .is_free = true};
    grow(&g, all.v[i]);
    if (g.is_free)
      remark_lead(run, all.v[i], &lead);
    for (int k = 0; g.is_free && k < g.n; k++) {
      pass_step(run, ops[k], "leading-dimensions-as-one");
      rewrite(run, ops[k], &lead);
    }
  }
  for (int i = 0; i < all.n; i++)
    if (is_marked(all.v[i]))
      mlirOperationRemoveAttributeByName(all.v[i], mlirStringRefCreateFromCString(ROWS));
}
