/* The simulator: small programs in the readable form of NISA, their values, and the faults that stop them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "mlir_support.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/run.h"

#include <cmocka.h> /* last: it defines a macro called fail */

#define HBM "memref<4x8xf32, #nisa.mem<shared_hbm>>"
#define SBUF "memref<4x8xf32, #nisa.mem<sbuf>>"
#define PSUM "memref<4x8xf32, #nisa.mem<psum>>"
#define ALL(name, type, base) name "<4| 8>=" type " " base "[d0, d1]"
#define LOAD "nisa.dma_copy(" ALL("dst", SBUF, "%s") ", " ALL("src", HBM, "%a") ") engine=dma\n"
#define STORE "nisa.dma_copy(" ALL("dst", HBM, "%r") ", " ALL("src", SBUF, "%s") ") engine=dma\n"
#define FUNCTION(body) \
  "module attributes {nisa.target = #nisa.target<\"trn2\">} {\n" \
  "func.func @k(%a: " HBM ") -> " HBM " {\n" \
  "%r = nisa.alloc : " HBM "\n%s = nisa.alloc : " SBUF "\n" body "nisa.release %s : " SBUF "\nreturn %r : " HBM \
  "\n}\n}\n"

enum { ROWS = 4, COLS = 8, N = ROWS * COLS };

static float input[N], output[N];

/* Runs the program on input; output is its result.  The fault is in *fault, and its instruction in a. */
static void run(const char *text, struct arena *a, struct sim_fault *fault) {
  struct diags ds;
  MlirModule m = {NULL};
  struct sim_program p;
  const struct sim_options options = {0};
  const void *args[] = {input};
  void *results[] = {output};

  diags_init(&ds, a);
  if (nisa_parse(&ir, text, strlen(text), "t.nisa", a, &ds, &m) ||
      nisa_verify(mlirModuleGetOperation(m), TARGET_TRN2, a, &ds) ||
      sim_decode(mlirModuleGetOperation(m), "k", a, &ds, &p))
    fail_msg("%s", ds.n ? ds.v[0].message : "no message");
  enum status st = sim_run(&p, args, results, &options, NULL, fault);
  assert_int_equal(!st, !fault->kind);
  mlirModuleDestroy(m);
}

static void run_ok(const char *text) {
  struct arena a;
  struct sim_fault fault;
  arena_init(&a);
  run(text, &a, &fault);
  if (fault.kind)
    fail_msg("%s: %s", sim_fault_name(fault.kind), fault.text);
  arena_clear(&a);
}

static void run_to_fault(const char *text, enum sim_fault_kind kind, const char *instr) {
  struct arena a;
  struct sim_fault fault;
  arena_init(&a);
  run(text, &a, &fault);
  assert_string_equal(sim_fault_name(fault.kind), sim_fault_name(kind));
  assert_string_equal(fault.instr ? fault.instr->def->name : "", instr);
  arena_clear(&a);
}

static int fill(void **state) {
  (void)state;
  for (int k = 0; k < N; k++)
    input[k] = (float)(k - 7) / 4;
  return 0;
}

static void a_copy_through_sbuf_is_the_input(void **state) {
  (void)state;
  run_ok(FUNCTION(LOAD STORE));
  assert_memory_equal(output, input, sizeof input);
}

#define TURNED "memref<8x4xf32, #nisa.mem<sbuf>>"

static void a_transpose_and_back_is_the_input(void **state) {
  (void)state;
  run_ok(FUNCTION(
      LOAD "%t = nisa.alloc : " TURNED "\n"
           "nisa.dma_transpose(dst<8| 4>=" TURNED " %t[d0, d1], " ALL(
               "src", SBUF, "%s") ", "
                                  "permutation=[1, 0]) engine=dma\n"
                                  "nisa.dma_transpose(" ALL("dst", SBUF, "%s") ", src<8| 4>=" TURNED " %t[d0, d1], "
                                                                               "permutation=[1, 0]) engine=dma\n"
                                                                               "nisa.release %t : " TURNED "\n" STORE));
  assert_memory_equal(output, input, sizeof input);
}

#define LOOP(n) \
  "%lo = arith.constant 0 : index\n%hi = arith.constant " n " : index\n%one = arith.constant 1 : index\n" \
  "scf.for %i = %lo to %hi step %one {\n"

static void a_loop_adds_as_often_as_it_runs(void **state) {
  (void)state;
  run_ok(FUNCTION(LOAD LOOP("3") "nisa.tensor_tensor_arith(" ALL("dst", SBUF, "%s") ", " ALL(
      "lhs", SBUF, "%s") ", " ALL("rhs", SBUF, "%s") ", op=add) engine=vector\n}\n" STORE));
  for (int k = 0; k < N; k++)
    assert_true(output[k] == 8 * input[k]);
}

#define ROW "memref<1x8xf32, #nisa.mem<sbuf>>"

static void an_index_moves_the_access(void **state) {
  (void)state;
  run_ok(FUNCTION("%row = nisa.alloc : " ROW "\n" LOAD LOOP(
      "4") "nisa.dma_copy(dst<1| 8>=" ROW " %row[d0, d1], src<1| 8>=" HBM " %a[%i + d0, d1]) engine=dma\n"
           "nisa.dma_copy(dst<1| 8>=" HBM " %r[%i + d0, d1], src<1| 8>=" ROW " %row[d0, d1]) engine=dma\n}\n"
           "nisa.release %row : " ROW "\n"));
  assert_memory_equal(output, input, sizeof input);
}

static void memory_that_nothing_wrote_is_not_read(void **state) {
  (void)state;
  run_to_fault(FUNCTION("%no = arith.constant false\nscf.if %no {\n" LOAD "}\n" STORE), SIM_FAULT_UNWRITTEN,
               "dma_copy");
}

#define ONE "memref<1x1xi32, #nisa.mem<sbuf>>"

static void an_index_beyond_the_memory_is_found(void **state) {
  (void)state;
  run_to_fault(FUNCTION("%index = nisa.alloc : " ONE "\n%far = arith.constant 3 : i32\n"
                        "nisa.memset(dst<1| 1>=" ONE " %index[d0, d1], value=i32 %far) engine=gpsimd\n"
                        "%v = nisa.register_load(src<1| 1>=" ONE " %index[d0, d1]) engine=sync : i32\n"
                        "%i = arith.index_cast %v : i32 to index\n" LOAD "nisa.dma_copy(dst<2| 8>=" HBM
                        " %r[%i + d0, d1], src<2| 8>=" SBUF " %s[d0, d1]) engine=dma\n"
                        "nisa.release %index : " ONE "\n" STORE),
               SIM_FAULT_BOUNDS, "dma_copy");
}

static void a_result_that_is_not_complete_is_found(void **state) {
  (void)state;
  run_to_fault(FUNCTION(LOAD "nisa.dma_copy(dst<4| 7>=" HBM " %r[d0, d1], src<4| 7>=" SBUF " %s[d0, d1]) engine=dma\n"),
               SIM_FAULT_RESULT, "");
}

#define SUMS "memref<8x8xf32, #nisa.mem<psum>>"
#define OUT "memref<8x8xf32, #nisa.mem<sbuf>>"
#define MATMUL \
  "nisa.matmul(dst<8| 8>=" SUMS " %p[d0, d1], " ALL("stationary", SBUF, "%s") ", " ALL( \
      "moving", SBUF, "%s") ", row_pos=index %lo, col_pos=index %lo, is_transpose=false, perf_opt=none_, " \
                            "psum_zero_region=size2048) engine=tensor\n"
#define FINISH \
  "nisa.tensor_copy(dst<8| 8>=" OUT " %t[d0, d1], src<8| 8>=" SUMS " %p[d0, d1]) engine=vector\n" \
  "nisa.dma_copy(" ALL("dst", HBM, "%r") ", src<4| 8>=" OUT " %t[d0, d1]) engine=dma\n" \
                                         "nisa.release %p : " SUMS "\nnisa.release %t : " OUT "\n"

static const char product[] =
    FUNCTION(LOAD "%p = nisa.alloc : " SUMS "\n%t = nisa.alloc : " OUT "\n" LOOP("2") MATMUL "}\n" FINISH);

static void products_add_up_in_psum(void **state) {
  (void)state;
  run_ok(product);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++) {
      float want = 0;
      for (int k = 0; k < ROWS; k++)
        want += input[k * COLS + i] * input[k * COLS + j];
      assert_true(output[i * COLS + j] == 2 * want); /* sums of small binary fractions are exact */
    }
}

static void a_run_can_be_repeated(void **state) {
  float first[N];
  (void)state;
  run_ok(product);
  memcpy(first, output, sizeof first);
  run_ok(product);
  assert_memory_equal(first, output, sizeof first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_copy_through_sbuf_is_the_input),
      cmocka_unit_test(a_transpose_and_back_is_the_input),
      cmocka_unit_test(a_loop_adds_as_often_as_it_runs),
      cmocka_unit_test(an_index_moves_the_access),
      cmocka_unit_test(memory_that_nothing_wrote_is_not_read),
      cmocka_unit_test(an_index_beyond_the_memory_is_found),
      cmocka_unit_test(a_result_that_is_not_complete_is_found),
      cmocka_unit_test(products_add_up_in_psum),
      cmocka_unit_test(a_run_can_be_repeated),
  };
  fill(NULL);
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
