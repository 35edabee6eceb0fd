/* outer: outer products of many short vectors are computed in rows that fill the partitions.
 *
 *     a[B,M,1] · b[B,1,N]                  ==>  a as [B*p,M/p,1] * b, each row p times, as [B*p,1,N]
 *     a[B,M,1] * b[B,1,N], element-wise    ==>  the same, with whatever the operation computes
 *
 * A product of matrices that sums over one element uses one of 128 rows of the Tensor engine, leaves PSUM by an engine that could have
 * multiplied, and has a transfer for each of B.  Across the partitions lie B and as much of M as fills them: an instruction then
 * multiplies 128 rows, and a transfer stores them.
 *
 * Only if that takes less time: few and large products are as fast on the Tensor engine, and with M across the partitions.  The
 * result is exact: a sum of one product is that product.
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

struct outer {
  MlirOperation op;
  MlirValue left, right;       /* B*M and B*N elements in this order */
  bool is_product, is_swapped; /* the first input of an element-wise operation has the columns */
  int64_t batch, rows, columns, parts;
};

/* ---- what is one --------------------------------------------------------------------------------------------------------- */

static bool starts_from_zero(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) &&
         (ir_is(def, "tensor.empty") || (ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0))));
}

/* True if the operand's map has the first n loops in their order, then loops of one element and `last`. */
static bool is_in_order(const struct structured *s, int operand, int n, int last) {
  int next = 0;
  for (int r = 0; r < mlirAffineMapGetNumResults(s->maps[operand]); r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    if (loop < 0 || (loop != last && loop >= n && s->extents[loop] == 1))
      continue;
    if (loop != (next < n ? next : last))
      return false;
    next++;
  }
  return next == n + 1;
}

static bool read_product(MlirOperation op, struct outer *o) {
  struct product p;

  if (!product_read(op, &p) || p.s.extents[p.k] != 1 || p.n_batch < 1 || !mlirAttributeIsNull(ir_attr(op, "cast")) ||
      !starts_from_zero(mlirOperationGetOperand(op, 2)) || p.m != p.n_batch || p.n != p.n_batch + 1 ||
      !is_in_order(&p.s, 0, p.n_batch, p.m) || !is_in_order(&p.s, 1, p.n_batch, p.n))
    return false;
  for (int l = 0; l < p.n_batch; l++)
    if (structured_map_loop(p.s.maps[2], l) != l)
      return false;
  *o = (struct outer){.op = op,
                      .left = mlirOperationGetOperand(op, 0),
                      .right = mlirOperationGetOperand(op, 1),
                      .is_product = true,
                      .batch = 1,
                      .rows = p.s.extents[p.m],
                      .columns = p.s.extents[p.n]};
  for (int l = 0; l < p.n_batch; l++)
    o->batch *= p.s.extents[l];
  return true;
}

static bool read_elementwise(struct pass_run *run, MlirOperation op, struct outer *o) {
  struct structured s;

  if (!ir_is(op, "linalg.generic") || !prepare_may_change(run, op, &s) || s.kind != SK_ELEMENTWISE || s.n_inputs != 2 ||
      s.n_loops < 3 || !mlirAffineMapIsIdentity(s.maps[2]) || prepare_has_op(run, op, "linalg.index"))
    return false;
  const int m = s.n_loops - 2, n = s.n_loops - 1;
  o->is_swapped = !is_in_order(&s, 0, m, m);
  if (!is_in_order(&s, o->is_swapped, m, m) || !is_in_order(&s, !o->is_swapped, m, n))
    return false;
  *o = (struct outer){.op = op,
                      .left = mlirOperationGetOperand(op, o->is_swapped),
                      .right = mlirOperationGetOperand(op, !o->is_swapped),
                      .is_swapped = o->is_swapped,
                      .batch = 1,
                      .rows = s.extents[m],
                      .columns = s.extents[n]};
  for (int l = 0; l < m; l++)
    o->batch *= s.extents[l];
  return true;
}

/* ---- the decision ------------------------------------------------------------------------------------------------------ */

/* The fewest parts of a row's M that fill the partitions. */
static int64_t parts_of(const struct outer *o) {
  int64_t p = 1;
  while (p < o->rows && (o->rows % p || o->batch * p < NISA_PARTITIONS))
    p++;
  return p;
}

static bool is_cheaper(struct pass_run *run, const struct outer *o, double *ns, double *other) {
  enum { ELEMENTS = 2048 }; /* of an instruction */
  const enum target t = run->target;
  const int64_t bytes = nisa_element_bytes(ir_value_element(ir_result(o->op))), rows = o->batch * o->parts,
                row = o->rows / o->parts * o->columns, lanes = o->rows < NISA_PARTITIONS ? o->rows : NISA_PARTITIONS,
                blocks = o->batch * ((o->rows + lanes - 1) / lanes),
                stores = (rows + NISA_PARTITIONS - 1) / NISA_PARTITIONS * ((row + ELEMENTS - 1) / ELEMENTS);
  const double stored = price_transfers_ns(t, blocks, lanes * o->columns * bytes, o->columns * bytes),
               brought = o->is_product ? 0 : stored; /* the columns, for all partitions */
  const double copied = price_transfer_ns(t, rows * o->columns * bytes, o->columns * bytes);
  *ns = fmax(price_transfers_ns(t, stores, o->batch * o->rows * o->columns * bytes / stores, row * bytes),
             price_rows_ns(t, SIM_COST_VECTOR_TENSOR, rows, row)) +
        (o->parts > 1 ? 3 : 1) * copied; /* loaded; loaded, stored for each part, and loaded again */
  *other = fmax(stored, brought);
  return *ns < *other;
}

/* ---- the change ---------------------------------------------------------------------------------------------------------- */

static MlirValue multiply(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, mlirTypeIsAFloat(mlirValueGetType(args[0])) ? "arith.mulf" : "arith.muli", args[0], args[1]);
}

static void rewrite(struct pass_run *run, const struct outer *o) {
  const int64_t rows = o->batch * o->parts, each = o->rows / o->parts, whole[] = {rows, each, o->columns},
                left[] = {rows, each, 1}, right[] = {rows, 1, o->columns}, once[] = {o->batch, 1, o->columns},
                often[] = {o->batch, o->parts, o->columns};
  int64_t old[STRUCTURED_LOOPS_MAX];
  MlirValue result = ir_result(o->op);
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  struct ir_builder b = edit_before(run, o->op);
  MlirValue columns = edit_reshape(&b, o->right, 3, once);

  if (o->parts > 1)
    columns = prepare_copy(&b, columns, ir_map(&b, 3, 3, (int64_t[]){0, IR_CONST(0), 2}), 3, often);
  MlirValue inputs[2];
  inputs[o->is_swapped] = edit_reshape(&b, o->left, 3, left);
  inputs[!o->is_swapped] = edit_reshape(&b, columns, 3, right);
  MlirAffineMap maps[3] = {[2] = ir_identity_map(&b, 3)};
  maps[o->is_swapped] = ir_map(&b, 3, 3, (int64_t[]){0, 1, IR_CONST(0)});
  maps[!o->is_swapped] = ir_map(&b, 3, 3, (int64_t[]){0, IR_CONST(0), 2});
  MlirType type = ir_tensor_of(ir_value_element(result), 3, whole);
  MlirOperation made;
  if (o->is_product) {
    made = ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 3,
                                                      .n_inputs = 2,
                                                      .inputs = inputs,
                                                      .maps = maps,
                                                      .output = ir_empty_of(&b, type),
                                                      .body = multiply});
  } else {
    made = mlirOperationClone(o->op);
    for (int k = 0; k < 2; k++)
      mlirOperationSetOperand(made, k, inputs[k]);
    mlirOperationSetOperand(made, 2, ir_empty_of(&b, type));
    mlirValueSetType(ir_result(made), type);
    edit_set_maps(made, 3, maps);
    edit_set_iterators(made, 3, (const bool[]){false, false, false});
    made = ir_place(&b, made);
  }
  mlirValueReplaceAllUsesOfWith(result, edit_reshape(&b, ir_result(made), old_rank, old));
  edit_erase_unused(run->arena, o->op);
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return structured_read(op, &(struct structured){0});
}

void prepare_outer(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, is_linalg, NULL);

  for (int i = 0; i < ops.n; i++) {
    struct outer o;
    double ns, other;
    if ((!read_product(ops.v[i], &o) && !read_elementwise(run, ops.v[i], &o)) ||
        prepare_has_knob(ir_result(ops.v[i])) || o.rows < 2 || o.columns < 2)
      continue;
    MlirType t = ir_value_element(ir_result(o.op));
    if (!mlirTypeEqual(t, ir_value_element(o.left)) || !mlirTypeEqual(t, ir_value_element(o.right)))
      continue;
    o.parts = parts_of(&o);
    if (!is_cheaper(run, &o, &ns, &other))
      continue;
    pass_step(run, o.op, "outer-in-rows");
    struct remark *r = pass_remark(run, o.op, RULE_OUTER_IN_ROWS,
                                   "%" PRId64 " rows of %" PRId64 " by %" PRId64 " lie across the partitions",
                                   o.batch * o.parts, o.rows / o.parts, o.columns);
    price_chosen(r, ns);
    price_instead(r, o.is_product ? "products on the Tensor engine" : "one of them after another", other,
                  "each of them would be a transfer of its own");
    rewrite(run, &o);
  }
}
