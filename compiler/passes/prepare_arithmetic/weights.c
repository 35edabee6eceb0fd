/* weights: a weighted sum over rows becomes a matrix product, and a product with one column a sum along rows.
 *
 *     sum over r of w[A,R] * x[A,R,N]    ==>  w[A,1,R] · x[A,R,N]           also without A, or with the same w[R] for all A
 *     x[A,M,K] · q[K,1]                  ==>  sum over k of x[A*M,K] * q[1,K]
 *
 * The Tensor engine adds up over the partitions, and w is a column of them as it is: x is read once, as it lies in HBM, and no engine
 * computes w * x.  The other way round, a product with one column wants x with K on the partitions.  All of x would be transposed to
 * use one column of the array; as it lies, Vector or GpSimd multiplies its rows, and Vector adds them up.  A matrix of several products
 * is transposed once for all of them, or all rounds of a loop.
 *
 * Only f32: no product of another type is rounded the same way.  A sum changes by its order.  Values with knobs stay as they are,
 * and so does what other operations read as well.  A batch of products costs a transfer for each, so the cheaper way is taken.
 */
#include <inttypes.h>
#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/product.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* ---- weighted sums --------------------------------------------------------------------------------------------------- */

struct weighted {
  MlirOperation multiply;
  MlirValue weights, x;
  bool has_batch;               /* the weights */
  int64_t batch, rows, columns; /* of x */
};

static bool is_f32(MlirValue v) {
  return mlirTypeIsAF32(ir_value_element(v));
}

/* The sum's loops are the batch, the rows, which are summed, and the columns.  Its result has the others in their order. */
static bool read_loops(const struct structured *s, struct weighted *w, int *first, int *end) {
  int l = 0;

  w->batch = w->rows = w->columns = 1;
  for (; l < s->n_loops && !s->reduction[l]; l++)
    w->batch *= s->extents[l];
  for (*first = l; l < s->n_loops && s->reduction[l]; l++)
    w->rows *= s->extents[l];
  for (*end = l; l < s->n_loops && !s->reduction[l]; l++)
    w->columns *= s->extents[l];
  return l == s->n_loops && prepare_keeps_order(s) && w->batch > 0 && w->rows > 1 && w->columns > 1;
}

/* True if operand o of the multiplication has all loops that are summed, those before them or none of these, and no others. */
static bool are_weights(const struct structured *s, int o, int first, int end, bool *has_batch) {
  int last = -1, n_batch = 0, n_rows = 0, all_batch = 0, all_rows = 0;

  for (int r = 0; r < mlirAffineMapGetNumResults(s->maps[o]); r++) {
    const int loop = structured_map_loop(s->maps[o], r);
    if (loop < 0)
      continue;
    if (loop <= last || (loop >= end && s->extents[loop] > 1))
      return false;
    last = loop;
    n_batch += loop < first && s->extents[loop] > 1;
    n_rows += loop >= first && loop < end && s->extents[loop] > 1;
  }
  for (int l = 0; l < end; l++) {
    all_batch += l < first && s->extents[l] > 1;
    all_rows += l >= first && s->extents[l] > 1;
  }
  *has_batch = n_batch > 0;
  return n_rows == all_rows && (!n_batch || n_batch == all_batch);
}

static bool read_weighted(MlirOperation op, struct weighted *w) {
  struct structured s, m;
  int first, end;

  if (!ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.kind != SK_REDUCTION || s.n_inputs != 1 ||
      s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[0]) || !structured_has_simple_maps(&s) ||
      !prepare_is_plain(op, "arith.addf") || !is_f32(ir_result(op)) || prepare_has_knob(ir_result(op)) ||
      !read_loops(&s, w, &first, &end))
    return false;
  MlirValue v = mlirOperationGetOperand(op, 0);
  w->multiply = ir_defining_op(v);
  if (mlirOperationIsNull(w->multiply) || !ir_is(w->multiply, "linalg.generic") || !ir_has_one_use(v) ||
      !structured_read(w->multiply, &m) || !structured_is_elementwise(&m) || m.n_inputs != 2 || m.n_inits != 1 ||
      !structured_has_simple_maps(&m) || !mlirAffineMapIsIdentity(m.maps[2]) ||
      !prepare_is_plain(w->multiply, "arith.mulf"))
    return false;
  for (int o = 0; o < 2; o++) {
    w->x = mlirOperationGetOperand(w->multiply, 1 - o);
    w->weights = mlirOperationGetOperand(w->multiply, o);
    if (mlirAffineMapIsIdentity(m.maps[1 - o]) && are_weights(&m, o, first, end, &w->has_batch) && is_f32(w->x) &&
        is_f32(w->weights))
      return prepare_elements(w->x) == w->batch * w->rows * w->columns;
  }
  return false;
}

static void multiply_weights(struct pass_run *run, MlirOperation op, const struct weighted *w, double ns,
                             double other_ns) {
  MlirValue result = ir_result(op), old_init = mlirOperationGetOperand(op, 1);
  const bool is_batch = w->batch > 1;
  const int64_t x_dims[] = {w->batch, w->rows, w->columns}, out[] = {w->batch, 1, w->columns},
                each[] = {w->batch, 1, w->rows}, column[] = {w->rows, 1};
  int64_t old[STRUCTURED_LOOPS_MAX];
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  struct ir_builder b = edit_before(run, op);
  struct remark *r = pass_remark(run, op, RULE_WEIGH_BY_PRODUCT,
                                 "%" PRId64 " product%s of 1 by %" PRId64 " weights and %" PRId64 " columns", w->batch,
                                 w->batch == 1 ? "" : "s", w->rows, w->columns);

  price_chosen(r, ns);
  price_instead(r, "a multiplication and a sum", other_ns,
                "each element would be multiplied and stored before it is added");
  MlirValue x = edit_reshape(&b, w->x, 2 + is_batch, x_dims + !is_batch), sum;
  if (is_batch && w->has_batch) {
    MlirValue inputs[] = {edit_reshape(&b, w->weights, 3, each), x};
    sum = ir_result(
        ir_linalg_named(&b, "linalg.batch_matmul", 2, inputs, prepare_start_of(&b, old_init, 3, out), 0, NULL));
  } else {
    MlirValue weights = edit_reshape(&b, w->weights, 2, column);
    sum = is_batch ? prepare_batch_product(&b, weights, x, edit_reshape_init(&b, old_init, 3, out))
                   : prepare_product(&b, weights, x, prepare_start_of(&b, old_init, 2, out + 1));
  }
  mlirValueReplaceAllUsesOfWith(result, edit_reshape(&b, sum, old_rank, old));
  edit_erase_unused(run->arena, op);
  edit_erase_unused(run->arena, w->multiply);
}

static void try_weighted(struct pass_run *run, MlirOperation op) {
  const enum target t = run->target;
  struct weighted w;

  if (!read_weighted(op, &w) || prepare_has_knob(ir_result(w.multiply)))
    return;
  const double each = price_transfers_ns(t, w.batch, w.rows * w.columns * 4, w.columns * 4),
               product = fmax(each, (double)w.batch * price_product_ns(t, 1, w.rows, w.columns, 4));
  const int64_t lanes = w.batch > 1 ? w.batch : w.rows, row = w.rows * w.columns * w.batch / lanes;
  const double other =
      price_rows_ns(t, SIM_COST_VECTOR_TENSOR, lanes, row) + price_rows_ns(t, SIM_COST_VECTOR_REDUCE, lanes, row);
  if (w.batch > 1 && product >= other)
    return;
  pass_step(run, op, "weigh-by-product");
  multiply_weights(run, op, &w, product, other);
}

/* ---- products with one column ------------------------------------------------------------------------------------------ */

/* The value that v repeats along its first dimensions; v itself if it repeats none. */
static MlirValue repeated(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct structured s;

  if (mlirOperationIsNull(def) || !ir_is(def, "linalg.generic") || !structured_read(def, &s) || s.n_inputs != 1 ||
      !structured_is_elementwise(&s) || !structured_has_simple_maps(&s) || !mlirAffineMapIsIdentity(s.maps[1]) ||
      prepare_has_knob(v))
    return v;
  MlirBlock body = ir_body(def);
  MlirOperation end = mlirBlockGetTerminator(body);
  return mlirOperationEqual(mlirBlockGetFirstOperation(body), end) &&
                 mlirValueEqual(mlirOperationGetOperand(end, 0), mlirBlockGetArgument(body, 0))
             ? mlirOperationGetOperand(def, 0)
             : v;
}

static MlirValue multiply(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.mulf", args[0], args[1]);
}

static MlirValue add(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.addf", args[1], args[0]);
}

static void multiply_rows(struct pass_run *run, const struct product *p, MlirValue column, int64_t rows, int64_t k) {
  const int64_t whole[] = {rows, k}, row[] = {1, k}, out[] = {rows, 1};
  const bool reduction[] = {false, true};
  int64_t old[STRUCTURED_LOOPS_MAX];
  MlirValue result = ir_result(p->op);
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  struct ir_builder b = edit_before(run, p->op);
  const MlirType f32 = ir_value_element(result);
  MlirValue inputs[] = {edit_reshape(&b, mlirOperationGetOperand(p->op, 0), 2, whole),
                        edit_reshape(&b, column, 2, row)};
  const MlirAffineMap maps[] = {ir_identity_map(&b, 2), ir_map(&b, 2, 2, (int64_t[]){IR_CONST(0), 1}),
                                ir_identity_map(&b, 2), ir_map(&b, 2, 2, (int64_t[]){0, IR_CONST(0)})};
  MlirValue each =
      ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 2,
                                                           .n_inputs = 2,
                                                           .inputs = inputs,
                                                           .maps = maps,
                                                           .output = ir_empty_of(&b, ir_tensor_of(f32, 2, whole)),
                                                           .body = multiply}));
  MlirValue init = ir_fill(&b, ir_float(&b, f32, 0), ir_empty_of(&b, ir_tensor_of(f32, 2, out)));
  MlirValue sum = ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 2,
                                                                       .reduction = reduction,
                                                                       .n_inputs = 1,
                                                                       .inputs = &each,
                                                                       .maps = maps + 2,
                                                                       .output = init,
                                                                       .body = add}));
  mlirValueReplaceAllUsesOfWith(result, edit_reshape(&b, sum, old_rank, old));
  MlirOperation repeat = ir_defining_op(mlirOperationGetOperand(p->op, 1));
  edit_erase_unused(run->arena, p->op);
  if (!mlirOperationIsNull(repeat))
    edit_erase_unused(run->arena, repeat);
}

/* True if the product adds to nothing. */
static bool starts_from_zero(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) &&
         (ir_is(def, "tensor.empty") || (ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0))));
}

/* DMA transposes f32 in runs of so many bytes, at half the rate of a copy of these. */
enum { TURNED_RUN = 128 };

/* A longer row does not stay in SBUF between the two operations.  The products of one matrix, without a batch, are a loop that keeps up
 * with its transposes, unless its rows are short and many. */
enum { LONGEST = 2048, SHORT = 512, MANY = 4096 };

/* What v is a reshape of. */
static MlirValue root_of(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  while (!mlirOperationIsNull(def) && (ir_is(def, "tensor.expand_shape") || ir_is(def, "tensor.collapse_shape"))) {
    v = mlirOperationGetOperand(def, 0);
    def = ir_defining_op(v);
  }
  return v;
}

/* An argument: it is in HBM, and would be transposed on its way. */
static bool is_given(MlirValue v) {
  return mlirValueIsABlockArgument(v) && ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "func.func");
}

/* The number of products that have v, or a reshape of it, on the left. */
static int products_of(const struct ir_ops *products, MlirValue v) {
  int n = 0;
  for (int i = 0; i < products->n; i++)
    n += !mlirOperationIsNull(products->v[i]) && mlirValueEqual(root_of(mlirOperationGetOperand(products->v[i], 0)), v);
  return n;
}

/* Product i becomes a sum along rows, if that takes less time; its place in the list is null then. */
static void try_column(struct pass_run *run, struct ir_ops *products, int i) {
  MlirOperation op = products->v[i];
  const enum target t = run->target;
  struct product p;
  int64_t rows = 1;

  if (!product_read(op, &p) || !ir_is(mlirOperationGetParentOperation(op), "func.func") || p.s.extents[p.n] != 1 ||
      !mlirAttributeIsNull(ir_attr(op, "cast")) || prepare_has_knob(ir_result(op)) || !is_f32(ir_result(op)) ||
      !starts_from_zero(mlirOperationGetOperand(op, 2)))
    return;
  MlirValue x = mlirOperationGetOperand(op, 0), column = repeated(mlirOperationGetOperand(op, 1));
  for (int l = 0; l < p.rank; l++) /* the rows in their order */
    if (structured_map_loop(p.s.maps[0], l) != (l < p.rank - 1 ? structured_map_loop(p.s.maps[2], l) : p.k))
      return;
  for (int l = 0; l < p.s.n_loops; l++)
    rows *= l == p.k || l == p.n ? 1 : p.s.extents[l];
  const int64_t k = p.s.extents[p.k];
  if (!is_f32(x) || !is_f32(column) || !is_given(root_of(x)) || products_of(products, root_of(x)) > 1 ||
      prepare_elements(column) != k || prepare_has_knob(column) || k < 2 || k > LONGEST || rows < NISA_PARTITIONS ||
      (!p.n_batch && (k > SHORT || rows < MANY)))
    return;
  const double ns = fmax(price_rows_ns(t, SIM_COST_GPSIMD_TENSOR, rows, k),
                         price_rows_ns(t, SIM_COST_VECTOR_REDUCE, rows, k)),
               other = 2 * price_transfer_ns(t, rows * k * 4, TURNED_RUN);
  if (ns >= other)
    return;
  pass_step(run, op, "column-by-rows");
  struct remark *r =
      pass_remark(run, op, RULE_COLUMN_BY_ROWS,
                  "%" PRId64 " rows of %" PRId64 " elements are multiplied by the column and added up", rows, k);
  price_chosen(r, ns);
  price_instead(r, "a product on the Tensor engine", other,
                "the elements of all rows would be transposed on their way");
  multiply_rows(run, &p, column, rows, k);
  products->v[i] = (MlirOperation){NULL};
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static bool is_sum(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return structured_read(op, &s) && s.kind == SK_REDUCTION;
}

static bool is_product(MlirOperation op, void *user) {
  struct product p;
  (void)user;
  return product_read(op, &p);
}

void prepare_weights(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_product, NULL);

  for (int i = 0; i < ops.n; i++)
    try_column(run, &ops, i);
  ops = ir_collect(run->arena, run->module, is_sum, NULL);
  for (int i = 0; i < ops.n; i++)
    try_weighted(run, ops.v[i]);
}
