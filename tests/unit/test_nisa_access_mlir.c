/* The C API of accesses: what is built is what is read, and what does not fit together is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/ir.h"
#include "ir/structured.h"
#include "nisa/nisa.h"
#include "nisa/range.h"
#include "mlir_support.h"

#include <cmocka.h> /* last: it defines a macro called fail */

struct text {
  struct arena arena;
  struct diags ds;
  MlirModule m;
};

static void parse(struct text *t, const char *text) {
  arena_init(&t->arena);
  diags_init(&t->ds, &t->arena);
  if (ir_parse(&ir, text, strlen(text), "t.mlir", &t->arena, &t->ds, &t->m))
    fail_msg("%s", t->ds.v[0].message);
}

static void done(struct text *t) {
  mlirModuleDestroy(t->m);
  arena_clear(&t->arena);
}

static MlirOperation first(struct text *t, const char *name) {
  struct ir_ops ops = ir_collect_named(&t->arena, mlirModuleGetOperation(t->m), name);
  assert_true(ops.n > 0);
  return ops.v[0];
}

#define FUNCTION(body) \
  "func.func @f(%x: memref<2x128x64xf32, #nisa.mem<\"hbm\">>, %i: index, %j: index) {\n" \
  "  %one = arith.constant 1.0 : f32\n" \
  "  %s = \"nisa.alloc\"() {alignment = 64 : i64} : () -> memref<128x64xf32, #nisa.mem<\"sbuf\">>\n" body \
  "  return\n}\n"

static const char copy_text[] =
    FUNCTION("\"nisa.dma_copy\"(%s, %x, %i, %j) {operandSegmentSizes = array<i32: 1, 0, 1, 2>, engine = \"dma\",\n"
             "dst_ap = affine_map<(d0, d1) -> (d0, d1)>, dst_tile = array<i64: 32, 16>, dst_par_dims = 1 : i32,\n"
             "src_ap = affine_map<(d0, d1)[s0, s1] -> (s0, d0 * 2 + s1 + 3, d1)>, src_tile = array<i64: 32, 16>,\n"
             "src_par_dims = 1 : i32} : (memref<128x64xf32, #nisa.mem<\"sbuf\">>, memref<2x128x64xf32, "
             "#nisa.mem<\"hbm\">>, index, index) -> ()\n");

static void an_operation_is_taken_apart(void **state) {
  struct text t;
  struct nisa_instr in;
  struct nisa_index at;
  (void)state;
  parse(&t, copy_text);
  assert_true(nisa_read(first(&t, "nisa.dma_copy"), &in, NULL));
  assert_int_equal(in.def->kind, NISA_DMA_COPY);
  assert_int_equal(in.engine, NISA_ENGINE_DMA);
  const struct nisa_access *src = nisa_operand(&in, "src");
  assert_int_equal(nisa_access_space(src), MEM_HBM);
  assert_int_equal(nisa_access_space(nisa_operand(&in, "dst")), MEM_SBUF);
  assert_int_equal(src->n_indices, 2);
  assert_int_equal(nisa_partitions(src), 32);
  assert_int_equal(nisa_free_elements(src), 16);
  assert_true(nisa_access_index(src, 1, &at));
  assert_int_equal(at.constant, 3);
  assert_int_equal(at.dim[0], 2);
  assert_int_equal(at.dim[1], 0);
  assert_int_equal(at.sym[1], 1);
  assert_null(nisa_operand(&in, "src_index"));
  done(&t);
}

static void what_is_built_is_read_back(void **state) {
  struct text t;
  struct nisa_instr in, again;
  (void)state;
  parse(&t, copy_text);
  MlirOperation op = first(&t, "nisa.dma_copy");
  assert_true(nisa_read(op, &in, NULL));
  MlirOperation copy = nisa_create(&in, mlirOperationGetLocation(op), 0, NULL);
  assert_true(mlirOperationVerify(copy));
  assert_true(nisa_read(copy, &again, NULL));
  for (int k = 0; k < in.def->n_operands; k++) {
    assert_true(mlirValueEqual(in.operand[k].base, again.operand[k].base));
    assert_true(mlirAffineMapEqual(in.operand[k].map, again.operand[k].map));
    assert_int_equal(in.operand[k].n_indices, again.operand[k].n_indices);
    assert_int_equal(in.operand[k].n_dims, again.operand[k].n_dims);
    assert_memory_equal(in.operand[k].tile, again.operand[k].tile, sizeof in.operand[k].tile);
    assert_int_equal(in.operand[k].par_dims, again.operand[k].par_dims);
  }
  mlirOperationDestroy(copy);
  done(&t);
}

static void a_scalar_operand_has_no_access(void **state) {
  struct text t;
  struct nisa_instr in;
  (void)state;
  parse(&t,
        FUNCTION("\"nisa.memset\"(%s, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = \"vector\",\n"
                 "dst_ap = affine_map<(d0, d1) -> (d0, d1)>, dst_tile = array<i64: 32, 16>, dst_par_dims = 1 : i32}\n"
                 ": (memref<128x64xf32, #nisa.mem<\"sbuf\">>, f32) -> ()\n"));
  assert_true(nisa_read(first(&t, "nisa.memset"), &in, NULL));
  assert_true(nisa_is_scalar(nisa_operand(&in, "value")));
  assert_false(nisa_is_scalar(nisa_operand(&in, "dst")));
  done(&t);
}

static void a_map_of_another_rank_is_refused(void **state) {
  struct text t;
  struct nisa_instr in;
  const char *why;
  (void)state;
  parse(&t, FUNCTION("\"nisa.memset\"(%s, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = \"vector\",\n"
                     "dst_ap = affine_map<(d0, d1) -> (d0)>, dst_tile = array<i64: 32, 16>, dst_par_dims = 1 : i32}\n"
                     ": (memref<128x64xf32, #nisa.mem<\"sbuf\">>, f32) -> ()\n"));
  assert_false(nisa_read(first(&t, "nisa.memset"), &in, &why));
  assert_string_equal(why, "a map has another number of results than the memref has dimensions");
  done(&t);
}

static void every_operation_is_declared(void **state) {
  (void)state;
  for (int k = 0; k < NISA_KIND_COUNT; k++) {
    const struct nisa_op_def *d = nisa_op_def((enum nisa_kind)k);
    assert_int_equal(d->kind, k);
    assert_true(mlirContextIsRegisteredOperation(ir.ctx, ir_str(d->full_name)));
  }
}

static void spaces_and_targets_have_attributes(void **state) {
  (void)state;
  for (int s = MEM_HBM; s <= MEM_SHARED_HBM; s++) {
    MlirAttribute a = nisa_space_attr(ir.ctx, (enum mem_space)s);
    assert_false(mlirAttributeIsNull(a));
    MlirType t = mlirMemRefTypeContiguousGet(mlirF32TypeGet(ir.ctx), 2, (int64_t[]){128, 8}, a);
    assert_int_equal(nisa_type_space(t), s);
    assert_int_equal(nisa_type_bytes(t), mem_is_on_chip((enum mem_space)s) ? 32 : 4096);
  }
  assert_int_equal(
      nisa_type_space(mlirMemRefTypeContiguousGet(mlirF32TypeGet(ir.ctx), 0, NULL, mlirAttributeGetNull())), MEM_NONE);
  for (int k = TARGET_TRN1; k <= TARGET_TRN3; k++)
    assert_false(mlirAttributeIsNull(nisa_target_attr(ir.ctx, (enum target)k)));
}

static void loops_bound_indices(void **state) {
  struct text t;
  int64_t low, high;
  (void)state;
  parse(&t, "func.func @f(%x: index) {\n"
            "  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n  %c8 = arith.constant 8 : index\n"
            "  %c48 = arith.constant 48 : index\n  %c128 = arith.constant 128 : index\n"
            "  scf.for %i = %c1 to %c8 step %c3 {\n"
            "    %m = arith.muli %i, %c48 : index\n    %r = arith.remui %m, %c128 : index\n"
            "    %u = arith.divui %x, %c3 : index\n  }\n  return\n}\n");
  MlirOperation mul = first(&t, "arith.muli");
  assert_true(nisa_bounds(mlirOperationGetResult(mul, 0), &low, &high)); /* i is 1, 4 or 7 */
  assert_int_equal(low, 48);
  assert_int_equal(high, 336);
  assert_int_equal(nisa_divisor(mlirOperationGetResult(mul, 0)), 48);
  assert_true(nisa_bounds(mlirOperationGetResult(first(&t, "arith.remui"), 0), &low, &high));
  assert_int_equal(high, 112); /* a multiple of 48 leaves a multiple of 16 */
  assert_false(nisa_bounds(mlirOperationGetResult(first(&t, "arith.divui"), 0), &low, &high));
  done(&t);
}

static void whole_blocks_leave_no_remainder(void **state) {
  struct text t;
  int64_t low, high;
  (void)state;
  parse(&t,
        "func.func @f() {\n"
        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
        "  %c8 = arith.constant 8 : index\n  %c64 = arith.constant 64 : index\n  %c517 = arith.constant 517 : index\n"
        "  scf.for %b = %c0 to %c2 step %c1 {\n    scf.for %i = %c0 to %c8 step %c1 {\n"
        "      %m = arith.muli %b, %c517 : index\n      %k = arith.muli %i, %c64 : index\n"
        "      %s = arith.addi %m, %k : index\n      %r = arith.remui %s, %c517 : index\n    }\n  }\n  return\n}\n");
  assert_true(nisa_bounds(mlirOperationGetResult(first(&t, "arith.remui"), 0), &low, &high));
  assert_int_equal(low, 0);
  assert_int_equal(high, 448);
  done(&t);
}

static void the_peak_counts_what_is_live_at_once(void **state) {
  struct text t;
  int64_t sbuf, psum;
  (void)state;
  parse(&t, "func.func @f() {\n"
            "  %a = \"nisa.alloc\"() : () -> memref<128x8xf32, #nisa.mem<\"sbuf\">>\n"
            "  %b = \"nisa.alloc\"() : () -> memref<128x2x4xbf16, #nisa.mem<\"sbuf\">>\n"
            "  \"nisa.release\"(%b) : (memref<128x2x4xbf16, #nisa.mem<\"sbuf\">>) -> ()\n"
            "  %p = \"nisa.alloc\"() : () -> memref<128x1xf32, #nisa.mem<\"psum\">>\n"
            "  %c = \"nisa.alloc\"() : () -> memref<128x3xi1, #nisa.mem<\"sbuf\">>\n  return\n}\n");
  nisa_memory_peak(mlirModuleGetOperation(t.m), TARGET_TRN2, &t.arena, &sbuf, &psum);
  assert_int_equal(sbuf, 32 + 16);
  assert_int_equal(psum, 2048);
  done(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_operation_is_taken_apart),
      cmocka_unit_test(what_is_built_is_read_back),
      cmocka_unit_test(a_scalar_operand_has_no_access),
      cmocka_unit_test(a_map_of_another_rank_is_refused),
      cmocka_unit_test(every_operation_is_declared),
      cmocka_unit_test(spaces_and_targets_have_attributes),
      cmocka_unit_test(loops_bound_indices),
      cmocka_unit_test(whole_blocks_leave_no_remainder),
      cmocka_unit_test(the_peak_counts_what_is_live_at_once),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
