/* warm: keeps the Tensor engine busy until its first operands are there.
 *
 *     load a; load b                              load a; load b
 *     p = a @ b     at half of the clock   ==>    z = 0; q = z @ z; q = q + z @ z     while the loads are on their way
 *                                                 p = a @ b                           at the full clock
 *
 * Trainium2 decides about the clock of its Tensor engine every 3.4 us (SIM_TENSOR_WINDOW of sim/cost.def): the engine has half of its
 * clock until it was busy for most of such a window.  The first loads of a kernel take about 3 us, so the products of a short
 * kernel would all run at half of the clock.  The products of zeros go to a bank of PSUM that nobody reads. */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "passes/lib/edit.h"
#include "passes/schedule/overlap.h"
#include "sim/cost.h"

enum {
  SIDE = NISA_PARTITIONS,
  PRODUCTS = 2,
  TIMES = 4 /* the moving operand is the same columns so many times */
};

bool schedule_can_warm(const struct pass_run *run) {
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  return sim_constant_ps(SIM_TENSOR_WINDOW, run->target) && functions.n == 1 &&
         ir_collect_named(run->arena, functions.v[0], "nisa.matmul").n;
}

/* Columns of each product of f32 with which the engine is busy for as much of a window as it must be. */
static int64_t columns_of(enum target t) {
  const int64_t busy = sim_constant_ps(SIM_TENSOR_WINDOW, t) * sim_constant(SIM_TENSOR_UP, t) / 100,
                column = 2 * sim_cycles_ps(sim_constant(SIM_TENSOR_F32, t), NISA_ENGINE_TENSOR, t);
  return (busy + PRODUCTS * TIMES * column - 1) / (PRODUCTS * TIMES * column) * TIMES;
}

static MlirValue new_buffer(struct ir_builder *b, int64_t columns, enum mem_space space) {
  MlirType type = mlirMemRefTypeContiguousGet(mlirF32TypeGet(b->ctx), 2, (int64_t[]){SIDE, columns},
                                              nisa_space_attr(b->ctx, space));
  return ir_result(ir_place(b, nisa_create_alloc(b->loc, type, 64)));
}

/* The first columns / TIMES columns of the buffer, TIMES times. */
static struct nisa_access repeated(MlirContext ctx, MlirValue buffer, int64_t columns) {
  MlirAffineExpr at[] = {mlirAffineDimExprGet(ctx, 0), mlirAffineDimExprGet(ctx, 2)};
  return (struct nisa_access){.base = buffer,
                              .map = mlirAffineMapGet(ctx, 3, 0, 2, at),
                              .n_dims = 3,
                              .tile = {SIDE, TIMES, columns / TIMES},
                              .par_dims = 1};
}

static void explain(struct pass_run *run, MlirOperation function, int64_t columns, const struct schedule_what *what) {
  struct remark *r =
      pass_remark(run, function, RULE_WARM_CLOCK,
                  "%d products of zeros with %" PRId64 " columns while the first loads are on their way: the program "
                  "takes %.2f us instead of %.2f",
                  PRODUCTS, columns, what->warm / 1000, what->after / 1000);
  remark_cost(r, "%.2f us", what->warm / 1000);
  remark_reject_for(r, "products from the first operands on", NULL,
                    arena_printf(run->arena, "%.2f us", what->after / 1000),
                    "the engine would have half of its clock for them");
}

void schedule_warm(struct pass_run *run, MlirOperation function, const struct schedule_what *what) {
  const struct ir_ops products = ir_collect_named(run->arena, function, "nisa.matmul");
  struct ir_builder b = edit_before(run, mlirBlockGetFirstOperation(ir_body(function)));
  const int64_t columns = columns_of(run->target);
  MlirContext ctx = b.ctx;
  b.loc = mlirOperationGetLocation(products.v[0]); /* it is there for their sake */
  MlirValue zeros = new_buffer(&b, SIDE, MEM_SBUF), sums = new_buffer(&b, columns, MEM_PSUM),
            zero = ir_float(&b, mlirF32TypeGet(ctx), 0), place = ir_index(&b, 0);

  const struct nisa_instr set = {.def = nisa_op_def(NISA_MEMSET),
                                 .engine = NISA_ENGINE_VECTOR,
                                 .operand = {nisa_matrix(ctx, zeros, SIDE, SIDE), {.base = zero}}};
  (void)ir_place(&b, nisa_create(&set, b.loc, 0, NULL));
  const struct nisa_instr product = {.def = nisa_op_def(NISA_MATMUL),
                                     .engine = NISA_ENGINE_TENSOR,
                                     .operand = {nisa_matrix(ctx, sums, SIDE, columns),
                                                 nisa_matrix(ctx, zeros, SIDE, SIDE),
                                                 repeated(ctx, zeros, columns),
                                                 {.base = place},
                                                 {.base = place}}};
  const MlirNamedAttribute attrs[] = {
      ir_named(&b, "is_transpose", mlirBoolAttrGet(ctx, false)),
      ir_named(&b, "perf_opt", mlirStringAttrGet(ctx, ir_str("none_"))),
      ir_named(&b, "psum_zero_region", mlirStringAttrGet(ctx, ir_str("size2048"))),
  };
  for (int k = 0; k < PRODUCTS; k++)
    (void)ir_place(&b, nisa_create(&product, b.loc, sizeof attrs / sizeof *attrs, attrs));
  (void)ir_place(&b, nisa_create_release(b.loc, sums));
  (void)ir_place(&b, nisa_create_release(b.loc, zeros));
  explain(run, function, columns, what);
}
