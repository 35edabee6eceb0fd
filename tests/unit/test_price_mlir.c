/* What remarks say of costs: the figures are those of the simulator's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "mlir_support.h"
#include "passes/lib/price.h"

#include <cmocka.h> /* last: it defines a macro called fail */

static const double NEAR = 0.02; /* cycles are whole picoseconds in the simulator */

static void near(double x, double y) {
  if (x > y * (1 + NEAR) || x < y * (1 - NEAR))
    fail_msg("%f is not about %f", x, y);
}

/* A transfer takes what the simulator says of the same descriptors. */
static void a_transfer_takes_what_it_takes_the_simulator(void **state) {
  enum { PARTITIONS = 128 };
  (void)state;
  for (int t = 0; t < TARGET_COUNT; t++)
    for (int64_t run = 16; run <= 4096; run *= 4) {
      const double alone = (double)sim_constant_ps(SIM_DMA_DESCRIPTOR, (enum target)t) +
                           (double)run * 1e6 / (double)sim_constant(SIM_DMA_RATE, (enum target)t);
      const double capped = (double)run * 1e6 / (double)sim_constant(SIM_DMA_CAP, (enum target)t);
      const double each =
          (run < sim_constant(SIM_DMA_SMALL, (enum target)t) ? 2 : 1) * (alone > capped ? alone : capped);
      const struct sim_dma_cost dma = {.bytes = PARTITIONS * run,
                                       .descriptor_bytes = run,
                                       .descriptors = PARTITIONS,
                                       .units = PARTITIONS,
                                       .unit_ps = (int64_t)each};
      const double simulated = (double)(sim_trigger_cost(&dma, NISA_ENGINE_SYNC, (enum target)t).start +
                                        sim_dma_alone(&dma, NISA_ENGINE_SYNC, (enum target)t)) /
                               SIM_PS_PER_NS;
      near(price_transfer_ns((enum target)t, PARTITIONS * run, run), simulated);
    }
}

static void shorter_runs_more_bytes_and_more_transfers_cost_more(void **state) {
  const enum target t = TARGET_TRN2;
  (void)state;
  assert_true(price_transfer_ns(t, 1 << 20, 4) > 4 * price_transfer_ns(t, 1 << 20, 4096));
  assert_true(price_transfer_ns(t, 1 << 22, 4096) > price_transfer_ns(t, 1 << 20, 4096));
  assert_true(price_transfers_ns(t, 8, 1 << 17, 1024) > price_transfer_ns(t, 1 << 20, 1024));
  assert_true(price_transfers_ns(t, 0, 1 << 17, 1024) < 1);
}

static void an_instruction_takes_its_overhead_and_its_elements(void **state) {
  (void)state;
  for (int t = 0; t < TARGET_COUNT; t++)
    for (int r = 0; r < SIM_COST_COUNT; r++) {
      const struct sim_rule_def *def = sim_rule_def((enum sim_cost_rule)r);
      const double hold = (double)sim_constant_ps(def->hold, (enum target)t) / SIM_PS_PER_NS,
                   elements =
                       (double)sim_cycles_ps((int64_t)10 * def->slope[t], def->engine, (enum target)t) / SIM_PS_PER_NS;
      if (def->slope[t])
        near(price_instructions_ns((enum target)t, (enum sim_cost_rule)r, 3, 1000), 3 * (hold + elements));
    }
  /* 300 rows of 5000 columns: three tiles of three instructions each */
  const double hold = price_instructions_ns(TARGET_TRN2, SIM_COST_ACTIVATION, 1, 0),
               all = price_instructions_ns(TARGET_TRN2, SIM_COST_ACTIVATION, 1, 15000) - hold;
  near(price_rows_ns(TARGET_TRN2, SIM_COST_ACTIVATION, 300, 5000), 9 * hold + all);
}

static void a_product_of_f32_takes_four_passes(void **state) {
  const enum target t = TARGET_TRN2;
  (void)state;
  near(price_product_ns(t, 256, 512, 1024, 4), 4 * price_product_ns(t, 256, 512, 1024, 2));
  near(price_product_ns(t, 256, 512, 1024, 2), 2 * 4 * price_product_ns(t, 128, 128, 1024, 2));
  assert_true(price_product_ns(t, 1, 1, 1, 2) > 0.9 * price_product_ns(t, 1, 1, 64, 2)); /* the shortest one */
}

static void prices_are_round_figures(void **state) {
  struct arena a;
  (void)state;
  arena_init(&a);
  assert_string_equal(price_text(&a, 0), "nothing");
  assert_string_equal(price_text(&a, 52.4), "about 0.052 us");
  assert_string_equal(price_text(&a, 12340), "about 12.3 us");
  assert_string_equal(price_text(&a, 123456), "about 123 us");
  assert_string_equal(price_count(&a, 1, "tile"), "1 tile");
  assert_string_equal(price_count(&a, 4, "tile"), "4 tiles");
  arena_clear(&a);
}

static void a_remark_has_the_cost_of_both(void **state) {
  struct remarks all = {0};
  struct arena a;
  struct buf b;
  (void)state;
  arena_init(&a);
  buf_init(&b, 4096);
  struct remark *r = remark_add(&all, &a, &(struct remark){.rule = RULE_DROP_SELF_COPY, .text = "removed"});
  price_chosen(r, 0);
  price_instead(r, "the copy", 2100, "it changes nothing");
  remark_put_reasons(&b, r);
  assert_string_equal(buf_text(&b),
                      "\"rule\":\"drop-self-copy\",\"cost\":\"nothing\",\"rejected\":[{\"choice\":\"the copy\","
                      "\"reason\":\"it changes nothing\",\"cost\":\"about 2.1 us\"}]");
  price_chosen(NULL, 1);
  price_instead(NULL, "x", 1, "y");
  remark_cost(NULL, "%d", 1);
  remark_forced(NULL, "x");
  buf_clear(&b);
  arena_clear(&a);
}

static void a_value_is_a_matrix_of_its_last_dimension(void **state) {
  const MlirType f32 = mlirF32TypeGet(ir.ctx), bf16 = mlirBF16TypeGet(ir.ctx);
  const MlirLocation loc = mlirLocationUnknownGet(ir.ctx);
  const int64_t dims[] = {4, 128, 96};
  (void)state;
  MlirOperationState s = mlirOperationStateGet(ir_str("test.two"), loc);
  const MlirType types[] = {mlirRankedTensorTypeGet(3, dims, bf16, mlirAttributeGetNull()), f32};
  mlirOperationStateAddResults(&s, 2, types);
  mlirContextSetAllowUnregisteredDialects(ir.ctx, true);
  MlirOperation op = mlirOperationCreate(&s);
  const struct price_shape shape = price_shape_of(mlirOperationGetResult(op, 0)),
                           scalar = price_shape_of(mlirOperationGetResult(op, 1));
  assert_int_equal(shape.rows, 512);
  assert_int_equal(shape.columns, 96);
  assert_int_equal(price_bytes(&shape), 512 * 96 * 2);
  assert_int_equal(price_bytes(&scalar), 4);
  near(price_away_ns(TARGET_TRN2, mlirOperationGetResult(op, 0)),
       2 * price_copy_ns(TARGET_TRN2, mlirOperationGetResult(op, 0)));
  mlirOperationDestroy(op);
}

static void a_shape_beyond_all_numbers_has_a_price(void **state) {
  const MlirLocation loc = mlirLocationUnknownGet(ir.ctx);
  const int64_t dims[] = {INT64_C(1) << 40, INT64_C(1) << 40, 7};
  (void)state;
  MlirOperationState s = mlirOperationStateGet(ir_str("test.one"), loc);
  const MlirType types[] = {mlirRankedTensorTypeGet(3, dims, mlirF32TypeGet(ir.ctx), mlirAttributeGetNull())};
  mlirOperationStateAddResults(&s, 1, types);
  mlirContextSetAllowUnregisteredDialects(ir.ctx, true);
  MlirOperation op = mlirOperationCreate(&s);
  const struct price_shape shape = price_shape_of(mlirOperationGetResult(op, 0));
  assert_true(shape.rows > 1 << 30 && price_bytes(&shape) > shape.rows);
  assert_true(price_away_ns(TARGET_TRN2, mlirOperationGetResult(op, 0)) > 1e12);
  mlirOperationDestroy(op);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_transfer_takes_what_it_takes_the_simulator),
      cmocka_unit_test(shorter_runs_more_bytes_and_more_transfers_cost_more),
      cmocka_unit_test(an_instruction_takes_its_overhead_and_its_elements),
      cmocka_unit_test(a_product_of_f32_takes_four_passes),
      cmocka_unit_test(prices_are_round_figures),
      cmocka_unit_test(a_remark_has_the_cost_of_both),
      cmocka_unit_test(a_value_is_a_matrix_of_its_last_dimension),
      cmocka_unit_test(a_shape_beyond_all_numbers_has_a_price),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
