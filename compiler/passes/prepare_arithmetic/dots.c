/* dots: the product of a long row with a column is a sum of products.
 *
 *     x[1,K] · y[K,1]   ==>  sum of x[K] * y[K]
 *
 * The Tensor engine would sum over the partitions, for one column of its array, and needs an element of each vector in each of them: beyond
 * 512 elements in a partition they no longer come there in one transfer, and each is a descriptor of its own.  As a sum the vectors lie
 * in rows of the partitions, Vector multiplies and adds them up.  Only f32: a product of another type is rounded at its end only.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { LONG = NISA_PARTITIONS * 512 };

static MlirValue product(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.mulf", args[0], args[1]);
}

static MlirValue sum(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.addf", args[1], args[0]);
}

/* The number of products; 0 if op is no product of a long row with a column, or other operations than its own ask for its form. */
static int64_t terms(MlirOperation op) {
  struct structured s;
  const bool is_one = structured_read(op, &s) && s.kind == SK_MATMUL && s.extents[0] == 1 && s.extents[1] == 1;

  if (!is_one || s.extents[2] <= LONG || prepare_has_knob(ir_result(op)))
    return 0;
  MlirOperation init = ir_defining_op(mlirOperationGetOperand(op, 2));
  if (mlirOperationIsNull(init) || !ir_is(init, "tensor.empty")) /* the sum would start from another value than zero */
    return 0;
  for (int o = 0; o < 3; o++)
    if (!mlirTypeIsAF32(ir_value_element(mlirOperationGetOperand(op, o))) ||
        prepare_has_knob(mlirOperationGetOperand(op, o)))
      return 0;
  return s.extents[2];
}

static void explain(struct pass_run *run, MlirOperation op, int64_t n) {
  struct remark *r = pass_remark(run, op, RULE_DOT_AS_SUM, "%" PRId64 " products are added up along rows", n);
  price_chosen(r, price_transfer_ns(run->target, 8 * n, n / NISA_PARTITIONS * 4) +
                      2 * price_rows_ns(run->target, SIM_COST_VECTOR_REDUCE, NISA_PARTITIONS, n / NISA_PARTITIONS));
  price_instead(r, "a product of matrices", price_transfer_ns(run->target, 8 * n, 4),
                "each element would be a descriptor");
}

void prepare_dots(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.matmul");

  for (int i = 0; i < all.n; i++) {
    MlirOperation op = all.v[i];
    const int64_t n = terms(op);
    if (!n)
      continue;
    pass_step(run, op, "dot-as-sum");
    explain(run, op, n);
    struct ir_builder b = edit_before(run, op);
    MlirType row = ir_tensor_of(mlirF32TypeGet(run->ir->ctx), 1, &n), one = mlirValueGetType(ir_result(op));
    MlirValue vectors[2];
    for (int o = 0; o < 2; o++)
      vectors[o] = edit_reshape(&b, mlirOperationGetOperand(op, o), 1, &n);
    MlirAffineMap each = ir_identity_map(&b, 1), maps[] = {each, each, each};
    MlirValue products = ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 1,
                                                                              .n_inputs = 2,
                                                                              .inputs = vectors,
                                                                              .maps = maps,
                                                                              .output = ir_empty_of(&b, row),
                                                                              .body = product}));
    MlirAffineMap to_one[] = {each, ir_map(&b, 1, 2, (int64_t[]){IR_CONST(0), IR_CONST(0)})};
    MlirValue zero = ir_fill(&b, ir_float(&b, mlirF32TypeGet(run->ir->ctx), 0), ir_empty_of(&b, one));
    MlirValue total = ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 1,
                                                                           .reduction = (const bool[]){true},
                                                                           .n_inputs = 1,
                                                                           .inputs = &products,
                                                                           .maps = to_one,
                                                                           .output = zero,
                                                                           .body = sum}));
    edit_replace_data_uses(run->arena, ir_result(op), total, (MlirOperation){NULL});
    edit_erase_unused(run->arena, op);
  }
}
