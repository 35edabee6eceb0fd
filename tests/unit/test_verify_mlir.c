/* ir_verify_changed finds what a verification of the whole module finds, wherever the damage is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "ir/query.h"
#include "ir/snapshot.h"
#include "mlir_support.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <cmocka.h> /* last: it defines a macro called fail */

static const char program[] = "func.func @f(%x: memref<4xf32>, %a: f32) -> f32 {\n"
                              "  %zero = arith.constant 0 : index\n"
                              "  %one = arith.constant 1 : index\n"
                              "  %four = arith.constant 4 : index\n"
                              "  %b = arith.mulf %a, %a : f32\n"
                              "  %r = scf.for %i = %zero to %four step %one iter_args(%s = %a) -> (f32) {\n"
                              "    %v = memref.load %x[%i] : memref<4xf32>\n"
                              "    %t = arith.addf %s, %v : f32\n"
                              "    %u = arith.mulf %t, %b : f32\n"
                              "    linalg.fill ins(%u : f32) outs(%x : memref<4xf32>)\n"
                              "    scf.yield %u : f32\n"
                              "  }\n"
                              "  return %r : f32\n"
                              "}\n";

/* The k-th operation of this name. */
static MlirOperation find(struct arena *a, MlirModule m, const char *name, int k) {
  const struct ir_ops ops = ir_collect_named(a, mlirModuleGetOperation(m), name);
  assert_true(k < ops.n);
  return ops.v[k];
}

static void leave(struct arena *a, MlirModule m) {
  (void)a;
  (void)m;
}

static void multiply_before_the_loop_by_itself(struct arena *a, MlirModule m) {
  MlirOperation op = find(a, m, "arith.mulf", 0);
  mlirOperationMoveBefore(op, find(a, m, "arith.constant", 0));
}

static void use_before_the_definition(struct arena *a, MlirModule m) {
  mlirOperationMoveBefore(find(a, m, "arith.mulf", 1), find(a, m, "arith.addf", 0));
}

static void define_after_the_use(struct arena *a, MlirModule m) {
  mlirOperationMoveAfter(find(a, m, "arith.mulf", 0), find(a, m, "scf.for", 0));
}

static void use_outside_the_loop(struct arena *a, MlirModule m) {
  mlirOperationSetOperand(find(a, m, "func.return", 0), 0, mlirOperationGetResult(find(a, m, "arith.addf", 0), 0));
}

static void load_another_type(struct arena *a, MlirModule m) {
  mlirValueSetType(mlirOperationGetResult(find(a, m, "memref.load", 0), 0), mlirF16TypeGet(ir.ctx));
}

static void change_the_type_that_others_read(struct arena *a, MlirModule m) {
  mlirValueSetType(mlirOperationGetResult(find(a, m, "arith.mulf", 0), 0), mlirF16TypeGet(ir.ctx));
}

static void yield_another_type(struct arena *a, MlirModule m) {
  mlirOperationSetOperand(find(a, m, "scf.yield", 0), 0, mlirBlockGetArgument(ir_body(find(a, m, "scf.for", 0)), 0));
}

static void end_a_body_without_a_yield(struct arena *a, MlirModule m) {
  mlirOperationDestroy(find(a, m, "scf.yield", 0));
}

static void return_another_type(struct arena *a, MlirModule m) {
  mlirOperationSetOperand(find(a, m, "func.return", 0), 0, mlirOperationGetResult(find(a, m, "arith.constant", 0), 0));
}

static void end_an_inner_region_without_a_yield(struct arena *a, MlirModule m) {
  mlirOperationDestroy(find(a, m, "linalg.yield", 0));
}

static void change_the_function_type(struct arena *a, MlirModule m) {
  MlirType none = mlirFunctionTypeGet(ir.ctx, 0, NULL, 0, NULL);
  ir_set_attr(find(a, m, "func.func", 0), "function_type", mlirTypeAttrGet(none));
}

static void damage_is_found_wherever_it_is(void **state) {
  static const struct {
    void (*change)(struct arena *, MlirModule);
    bool is_valid;
  } cases[] = {
      {leave, true},
      {multiply_before_the_loop_by_itself, true},
      {use_before_the_definition, false},
      {define_after_the_use, false},
      {use_outside_the_loop, false},
      {load_another_type, false},
      {change_the_type_that_others_read, false},
      {yield_another_type, false},
      {end_a_body_without_a_yield, false},
      {return_another_type, false},
      {end_an_inner_region_without_a_yield, false},
      {change_the_function_type, false},
  };
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct arena a;
    struct diags ds;
    struct ir_capture c;
    struct ir_prints before = {0};
    MlirModule m;
    arena_init(&a);
    diags_init(&ds, &a);
    assert_int_equal(ir_parse(&ir, program, strlen(program), "f.mlir", &a, &ds, &m), ST_OK);
    MlirOperation module = mlirModuleGetOperation(m);
    ir_prints_take(module, &a, &before);
    cases[k].change(&a, m);
    ir_capture_begin(&ir, &c, &ds, DG_PASS_FAILED, &a);
    const bool is_valid = ir_verify_changed(module, &before, &a);
    const int errors = c.errors;
    const bool is_whole_valid = mlirOperationVerify(module);
    ir_capture_end(&ir, &c);
    if (is_valid != cases[k].is_valid || is_valid != is_whole_valid || (errors > 0) == is_valid)
      fail_msg("case %zu: %d, of the whole module %d, %d errors", k, is_valid, is_whole_valid, errors);
    mlirModuleDestroy(m);
    arena_clear(&a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(damage_is_found_wherever_it_is),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
