/* recognize_scans: finds running results, and makes them scans (lib/scan.h), which are one instruction for each tile.
 *
 *     x @ (row <= column)                                           a product with a triangle of ones: cumsum
 *     x[1:] op x[:-1], then [2:] op [:-2], then [4:] op [:-4] …     doubling: cumprod, running maxima and minima
 *     windows of length n over n - 1 neutral elements and x         reduce-window: what JAX writes
 *     v = v * a[t] + b[t], again and again                          the steps of a recurrence (unrolled.h)
 *
 *                                                              ==>  %y, %last = linalg.generic … reduction (lib/scan.h)
 *
 * The first three take n products, log2(n) passes and n operations for each element; a scan takes one operation.  The scan runs
 * along the last dimension of a matrix.  Another dimension is moved there by a transpose, which the product had already;
 * where doubling or windows would get two transposes that take longer than they do, they stay.
 *
 * What changes: the results of a sum are added in NumPy's order, one after the other; those of doubling are no longer
 * combined in pairs.  An infinity or NaN no longer spoils the results before it, as it does in the product.  Only floats of 16
 * and 32 bits: the Vector engine computes in f32, where integers above 2^24 are not exact.
 *
 * Values that a knob asks something for remain as they are.  Runs on tensors, before layouts.  Linear in operations.
 */
#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/product.h"
#include "passes/lib/scan.h"
#include "passes/recognize_scans/unrolled.h"
#include "passes/lib/price.h"

/* A running result of x along the dimension `axis`. */
struct found {
  MlirValue x;
  int axis;
  const char *combine; /* the operation of arith */
  double initial;
  const char *was; /* what it was written as, for the remark */
  int64_t passes;  /* over x as it was written; 0: more than any scan takes */
};

/* Sets combine and initial for the operation `name` of linalg or arith. */
static bool read_operator(const char *name, struct found *f) {
  static const struct {
    const char *name, *scalar;
    double initial;
  } known[] = {{"linalg.add", "arith.addf", -0.0},
               {"arith.addf", "arith.addf", -0.0}, /* -0 + -0 = -0 */
               {"linalg.mul", "arith.mulf", 1},
               {"arith.mulf", "arith.mulf", 1},
               {"linalg.max", "arith.maximumf", -HUGE_VAL},
               {"arith.maximumf", "arith.maximumf", -HUGE_VAL},
               {"linalg.min", "arith.minimumf", HUGE_VAL},
               {"arith.minimumf", "arith.minimumf", HUGE_VAL}};

  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strcmp(name, known[k].name)) {
      f->combine = known[k].scalar;
      f->initial = known[k].initial;
      return true;
    }
  return false;
}

static const char *name_of(MlirOperation op) {
  return mlirIdentifierStr(mlirOperationGetName(op)).data;
}

/* ---- products with a triangle ----------------------------------------------------------------------------------- */

/* Follows v through element-wise generics of one operation each, from the value that the body's argument has. */
static MlirOperation body_of(MlirValue v, const char *name) {
  MlirOperation op = ir_defining_op(v);
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.n_inits != 1 ||
      s.kind != SK_ELEMENTWISE)
    return (MlirOperation){NULL};
  for (int o = 0; o <= s.n_inputs; o++)
    if (!mlirAffineMapIsIdentity(s.maps[o]))
      return (MlirOperation){NULL};
  MlirOperation only = form_only_operation(op);
  return !mlirOperationIsNull(only) && ir_is(only, name) ? only : (MlirOperation){NULL};
}

/* The dimension whose index v has in every element; -1 if v is something else. */
static int index_dim(MlirValue v) {
  MlirOperation op = ir_defining_op(v);
  struct structured s;
  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.n_inits != 1 ||
      !mlirAffineMapIsIdentity(s.maps[s.n_inputs]))
    return -1;
  MlirOperation cast = ir_defining_op(mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0));
  if (mlirOperationIsNull(cast) || !ir_is(cast, "arith.index_cast"))
    return -1;
  MlirOperation index = ir_defining_op(mlirOperationGetOperand(cast, 0));
  return mlirOperationIsNull(index) || !ir_is(index, "linalg.index") ? -1 : (int)ir_int_attr(index, "dim", -1);
}

/* True if v is 1 where the row is at most the column, and 0 elsewhere. */
static bool is_triangle(MlirValue v) {
  MlirOperation convert = body_of(v, "arith.uitofp");
  if (mlirOperationIsNull(convert))
    return false;
  MlirValue mask = mlirOperationGetOperand(ir_defining_op(v), 0);
  MlirOperation compare = body_of(mask, "arith.cmpi");
  if (mlirOperationIsNull(compare))
    return false;
  MlirOperation owner = ir_defining_op(mask);
  const int64_t predicate = ir_int_attr(compare, "predicate", -1);
  MlirBlock body = ir_body(owner);
  for (int k = 0; k < 2; k++)
    if (!mlirValueEqual(mlirOperationGetOperand(compare, k), mlirBlockGetArgument(body, k)))
      return false;
  return predicate == IR_INT_SLE && index_dim(mlirOperationGetOperand(owner, 0)) == 0 &&
         index_dim(mlirOperationGetOperand(owner, 1)) == 1;
}

/* True if the product starts from zero. */
static bool starts_from_zero(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  if (mlirOperationIsNull(def))
    return false;
  return ir_is(def, "tensor.empty") || (ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0)));
}

static bool find_triangle(MlirOperation op, struct found *f) {
  struct product p;

  if (!product_read(op, &p) || p.rank != 2 || product_dim(&p, 0, p.k) != 1 || product_dim(&p, 1, p.k) != 0 ||
      !starts_from_zero(mlirOperationGetOperand(op, 2)) || !is_triangle(mlirOperationGetOperand(op, 1)))
    return false;
  *f = (struct found){.x = mlirOperationGetOperand(op, 0), .axis = 1, .was = "a product with a triangle of ones"};
  return mlirTypeEqual(mlirValueGetType(f->x), mlirValueGetType(ir_result(op))) && read_operator("linalg.add", f);
}

/* ---- doubling --------------------------------------------------------------------------------------------------- */

/* True if op takes or puts the elements [from, from + n) of `axis`, and all of the other dimensions, which have these
 * extents. */
static bool is_cut(MlirOperation op, const char *name, int rank, const int64_t *dims, int axis, int64_t from,
                   int64_t n) {
  if (mlirOperationIsNull(op) || !ir_is(op, name))
    return false;
  MlirAttribute offsets = ir_attr(op, "static_offsets"), sizes = ir_attr(op, "static_sizes"),
                strides = ir_attr(op, "static_strides");
  if (mlirDenseArrayGetNumElements(offsets) != rank)
    return false;
  for (int d = 0; d < rank; d++)
    if (mlirDenseI64ArrayGetElement(offsets, d) != (d == axis ? from : 0) ||
        mlirDenseI64ArrayGetElement(sizes, d) != (d == axis ? n : dims[d]) ||
        mlirDenseI64ArrayGetElement(strides, d) != 1)
      return false;
  return true;
}

/* The value that v is those elements of; null if it is not. */
static MlirValue cut_from(MlirValue v, int rank, const int64_t *dims, int axis, int64_t from, int64_t n) {
  MlirOperation op = ir_defining_op(v);
  return is_cut(op, "tensor.extract_slice", rank, dims, axis, from, n) ? mlirOperationGetOperand(op, 0)
                                                                       : (MlirValue){NULL};
}

/* v = [w[:step], w[step:] op w[:-step]] along `axis`, for one value w, which is returned; null if it is not. */
static MlirValue doubled(MlirValue v, int axis, int64_t step, MlirOperation *combine) {
  const MlirValue none = {NULL};
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  const int64_t n = dims[axis];
  MlirOperation tail = ir_defining_op(v);

  if (form_is_annotated(v) || !is_cut(tail, "tensor.insert_slice", rank, dims, axis, step, n - step))
    return none;
  MlirOperation head = ir_defining_op(mlirOperationGetOperand(tail, 1));
  if (!is_cut(head, "tensor.insert_slice", rank, dims, axis, 0, step))
    return none;
  MlirOperation op = ir_defining_op(mlirOperationGetOperand(tail, 0));
  if (mlirOperationIsNull(op) || !ir_is_of(op, "linalg.") || mlirOperationGetNumOperands(op) != 3 ||
      form_is_annotated(ir_result(op)))
    return none;
  const MlirValue w[] = {cut_from(mlirOperationGetOperand(head, 0), rank, dims, axis, 0, step),
                         cut_from(mlirOperationGetOperand(op, 0), rank, dims, axis, step, n - step),
                         cut_from(mlirOperationGetOperand(op, 1), rank, dims, axis, 0, n - step)};
  if (mlirValueIsNull(w[0]) || !mlirValueEqual(w[0], w[1]) || !mlirValueEqual(w[0], w[2]))
    return none;
  *combine = op;
  return w[0];
}

/* Finds the steps backwards, from the largest power of 2 below the length to 1, each with the same operation. */
static bool find_doubling(MlirOperation op, struct found *f) {
  MlirValue v = ir_result(op);
  int64_t dims[STRUCTURED_LOOPS_MAX], step = 1;
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  MlirOperation combine;
  int axis = 0;

  if (!ir_is(op, "tensor.insert_slice") || rank < 1 || rank > STRUCTURED_LOOPS_MAX)
    return false;
  MlirAttribute offsets = ir_attr(op, "static_offsets");
  while (axis < rank && mlirDenseI64ArrayGetElement(offsets, axis) == 0)
    axis++;
  if (axis == rank)
    return false;
  while (step * 2 < dims[axis])
    step *= 2;
  *f = (struct found){.axis = axis, .was = "doubling"};
  for (; step >= 1; step /= 2) {
    struct found now = *f;
    v = doubled(v, axis, step, &combine);
    now.passes++;
    if (mlirValueIsNull(v) || !read_operator(name_of(combine), &now) ||
        (f->combine && strcmp(f->combine, now.combine) != 0))
      return false;
    *f = now;
  }
  f->x = v;
  return true;
}

/* ---- windows ---------------------------------------------------------------------------------------------------- */

/* The number that a fill has in every element. */
static bool fill_number(MlirValue v, MlirValue *dest, double *out) {
  MlirOperation op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.fill"))
    return false;
  MlirAttribute a = ir_constant(mlirOperationGetOperand(op, 0));
  *dest = mlirOperationGetOperand(op, 1);
  *out = !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) ? mlirFloatAttrGetValueDouble(a) : NAN;
  return !isnan(*out);
}

/* True if the generic's loops are the result's dimensions and then the window's, which lies at their sums. */
static bool has_window_maps(const struct structured *s, int rank) {
  if (s->n_inputs != 2 || s->n_inits != 1 || s->n_loops != 2 * rank || mlirAffineMapGetNumResults(s->maps[0]) != rank)
    return false;
  MlirContext ctx = mlirAffineMapGetContext(s->maps[0]);
  for (int d = 0; d < rank; d++) {
    MlirAffineExpr sum = mlirAffineAddExprGet(mlirAffineDimExprGet(ctx, d), mlirAffineDimExprGet(ctx, rank + d));
    if (!mlirAffineExprEqual(mlirAffineMapGetResult(s->maps[0], d), sum) ||
        structured_map_loop(s->maps[1], d) != rank + d || structured_map_loop(s->maps[2], d) != d || s->reduction[d] ||
        !s->reduction[rank + d])
      return false;
  }
  return true;
}

/* The dimension along which the window is as long as the operand; the windows have one element along the others. */
static int window_axis(const struct structured *s, int rank) {
  int axis = -1;
  for (int d = 0; d < rank; d++) {
    if (s->extents[rank + d] == 1)
      continue;
    if (axis >= 0 || s->extents[rank + d] != s->extents[d])
      return -1;
    axis = d;
  }
  return axis;
}

static bool find_window(MlirOperation op, struct found *f) {
  struct structured s;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  double first, before;
  MlirValue dest;

  if (!ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.kind != SK_REDUCTION)
    return false;
  const int rank = ir_shape(ir_result(op), STRUCTURED_LOOPS_MAX, dims);
  if (!has_window_maps(&s, rank))
    return false;
  const int axis = window_axis(&s, rank);
  MlirOperation body = form_only_operation(op), put = ir_defining_op(mlirOperationGetOperand(op, 0));
  if (axis < 0 || mlirOperationIsNull(body) || mlirOperationGetNumOperands(body) != 2)
    return false;
  bool is_in = false, is_out = false;
  for (int k = 0; k < 2; k++) {
    is_in |= mlirValueEqual(mlirOperationGetOperand(body, k), mlirBlockGetArgument(ir_body(op), 0));
    is_out |= mlirValueEqual(mlirOperationGetOperand(body, k), mlirBlockGetArgument(ir_body(op), 2));
  }
  const int64_t n = dims[axis];
  *f = (struct found){.axis = axis, .was = "windows that begin at the first element", .passes = n};
  if (!is_in || !is_out || !read_operator(name_of(body), f) ||
      !is_cut(put, "tensor.insert_slice", rank, dims, axis, n - 1, n) ||
      !fill_number(mlirOperationGetOperand(put, 1), &dest, &before) ||
      !fill_number(mlirOperationGetOperand(op, 2), &dest, &first))
    return false;
  f->x = mlirOperationGetOperand(put, 0);
  return before == f->initial && first == f->initial &&
         mlirTypeEqual(mlirValueGetType(f->x), mlirValueGetType(ir_result(op)));
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* x as [before, along, after], by the dimensions before and after the axis. */
struct around {
  int64_t before, along, after;
};

static struct around look_around(const struct found *f) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(f->x, STRUCTURED_LOOPS_MAX, dims);
  struct around a = {1, dims[f->axis], 1};

  for (int d = 0; d < f->axis; d++)
    a.before *= dims[d];
  for (int d = f->axis + 1; d < rank; d++)
    a.after *= dims[d];
  return a;
}

/* True if the scan is faster than the passes over x as it is written, with the two transposes that bring the axis to the
 * end.  Those of a matrix take about as long as four passes, those of many small ones several times as long. */
static bool is_worth_turning(const struct found *f) {
  enum { OF_ONE = 4, OF_MANY = 16 };
  const struct around a = look_around(f);
  return !f->passes || a.after == 1 || f->passes >= (a.before == 1 ? OF_ONE : OF_MANY);
}

/* Makes the scan of f->x: of a matrix whose rows it runs along. */
static MlirValue make(struct ir_builder *b, const struct found *f) {
  static const int64_t of_one[] = {1, 0}, of_many[] = {0, 2, 1};
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(f->x, STRUCTURED_LOOPS_MAX, dims), n = look_around(f).before == 1 ? 2 : 3;
  const struct around a = look_around(f);
  const int64_t from[] = {a.before, a.along, a.after}, to[] = {a.before, a.after, a.along};
  const int64_t *p = n == 2 ? of_one : of_many;
  const bool is_turned = a.after != 1;
  MlirValue x = f->x;

  if (is_turned)
    x = ir_result(ir_transpose(b, edit_reshape(b, x, n, from + 3 - n), n, p));
  x = edit_reshape(b, x, 2, (int64_t[]){a.before * a.after, a.along});
  x = scan_build(b, x, f->combine, f->initial);
  if (is_turned)
    x = ir_result(ir_transpose(b, edit_reshape(b, x, n, to + 3 - n), n, p));
  return edit_reshape(b, x, rank, dims);
}

static bool find(MlirOperation op, struct found *f) {
  if (form_is_annotated(ir_result(op)) || (!find_triangle(op, f) && !find_doubling(op, f) && !find_window(op, f)))
    return false;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(f->x, STRUCTURED_LOOPS_MAX, dims);
  for (int d = 0; d < rank; d++)
    if (dims[d] < 1)
      return false;
  MlirType t = ir_value_element(f->x);
  if (!is_worth_turning(f))
    return false;
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t); /* 8-bit floats lack infinities */
}

/* The operations that running results are written with. */
static bool may_be_part(MlirOperation op, void *user) {
  (void)user;
  return mlirOperationGetNumResults(op) == 1 && mlirTypeIsARankedTensor(mlirValueGetType(ir_result(op))) &&
         (ir_is_of(op, "linalg.") || ir_is(op, "tensor.insert_slice") || ir_is(op, "tensor.extract_slice"));
}

/* Backwards, so that the last step of doubling is found first, and what it leaves unused is erased. */
static enum status run_pass(struct pass_run *run) {
  unrolled_recurrences(run);
  struct ir_ops ops = ir_collect(run->arena, run->module, may_be_part, NULL);
  bool any = false;

  for (int i = ops.n - 1; i >= 0; i--) {
    struct found f;
    if (!ir_is_used(ir_result(ops.v[i])) || !find(ops.v[i], &f))
      continue;
    pass_step(run, ops.v[i], "make-scan");
    struct ir_builder b = edit_before(run, ops.v[i]);
    MlirValue made = make(&b, &f);
    struct remark *r = pass_remark(run, ops.v[i], RULE_SCAN, "running results by one scan instead of %s", f.was);
    const struct price_shape s = price_shape_of(f.x);
    const int64_t n = mlirShapedTypeGetDimSize(mlirValueGetType(f.x), f.axis), rows = s.rows * s.columns / (n ? n : 1);
    price_chosen(r, price_rows_ns(run->target, SIM_COST_SCAN, rows, n));
    price_instead(r, "the operations as written",
                  f.passes ? (double)f.passes * price_rows_ns(run->target, SIM_COST_VECTOR_TENSOR, rows, n)
                           : price_product_ns(run->target, rows, n, n, s.element_bytes) +
                                 2 * price_transpose_ns(run->target, rows, n, s.element_bytes),
                  "they compute each result anew, or in log2(n) passes");
    mlirValueReplaceAllUsesOfWith(ir_result(ops.v[i]), made);
    any = true;
  }
  for (int i = ops.n - 1; any && i >= 0; i--)
    if (!ir_is_used(ir_result(ops.v[i]))) {
      pass_step(run, ops.v[i], "drop-unused");
      mlirOperationDestroy(ops.v[i]);
    }
  if (any)
    edit_sweep(run);
  return ST_OK;
}

const struct pass_def recognize_scans = {
    .name = "recognize-scans",
    .run = run_pass,
};
