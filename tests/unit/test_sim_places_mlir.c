/* The simulator's memories: allocations that have places run like others, and what shares bytes disturbs each other. */
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
#define SCRATCH "memref<4x8xf32, #nisa.mem<hbm>>"
#define SBUF "memref<4x8xf32, #nisa.mem<sbuf>>"
#define ALL(name, type, base) name "<4| 8>=" type " " base "[d0, d1]"
#define DMA(to, to_base, from, from_base) \
  "nisa.dma_copy(" ALL("dst", to, to_base) ", " ALL("src", from, from_base) ") engine=dma\n"
#define SET(type, base, value) "nisa.memset(" ALL("dst", type, base) ", value=f32 " value ") engine=vector\n"
#define RELEASE(type, base) "nisa.release " base " : " type "\n"
#define FUNCTION(body) \
  "module attributes {nisa.target = #nisa.target<\"trn2\">} {\n" \
  "func.func @k(%a: " HBM ") -> " HBM " {\n" \
  "%seven = arith.constant 7.0 : f32\n%r = nisa.alloc : " HBM "\n" body "return %r : " HBM "\n}\n}\n"
#define LOOP(n) \
  "%lo = arith.constant 0 : index\n%hi = arith.constant " n " : index\n%one = arith.constant 1 : index\n" \
  "scf.for %i = %lo to %hi step %one {\n"

enum { ROWS = 4, COLS = 8, N = ROWS * COLS };

static float input[N], output[N];

struct outcome {
  bool is_legal; /* nisa_verify accepts it */
  struct sim_fault fault;
};

/* Runs a program even if the verifier refuses its places. */
static struct outcome run(const char *text) {
  struct arena a;
  struct diags ds;
  MlirModule m = {NULL};
  struct sim_program p;
  struct outcome o;
  const void *args[] = {input};
  void *results[] = {output};

  arena_init(&a);
  diags_init(&ds, &a);
  if (nisa_parse(&ir, text, strlen(text), "t.nisa", &a, &ds, &m))
    fail_msg("%s", ds.n ? ds.v[0].message : "no message");
  o.is_legal = !nisa_verify(mlirModuleGetOperation(m), TARGET_TRN2, &a, &ds);
  if (sim_decode(mlirModuleGetOperation(m), "k", &a, &ds, &p))
    fail_msg("%s", ds.n ? ds.v[0].message : "no message");
  enum status st = sim_run(&p, args, results, &(struct sim_options){0}, NULL, &o.fault);
  assert_int_equal(!st, !o.fault.kind);
  mlirModuleDestroy(m);
  arena_clear(&a);
  return o;
}

static void run_legal(const char *text) {
  const struct outcome o = run(text);
  assert_true(o.is_legal);
  assert_string_equal(o.fault.text, "");
}

static int fill(void **state) {
  (void)state;
  for (int k = 0; k < N; k++)
    input[k] = (float)(k - 7) / 4;
  return 0;
}

static void data_passes_through_every_memory_at_its_place(void **state) {
  (void)state;
  run_legal(FUNCTION("%h = nisa.alloc at=[256] : " SCRATCH "\n%s = nisa.alloc at=[32, 4096] : " SBUF
                     "\n%t = nisa.alloc at=[96, 4] : " SBUF "\n" DMA(SCRATCH, "%h", HBM, "%a")
                         DMA(SBUF, "%s", SCRATCH, "%h") DMA(SBUF, "%t", SBUF, "%s") DMA(HBM, "%r", SBUF, "%t")
                             RELEASE(SBUF, "%s") RELEASE(SBUF, "%t")));
  assert_memory_equal(output, input, sizeof input);
}

#define TURNED "memref<8x4xf32, #nisa.mem<sbuf>>"

static void partitions_and_bytes_can_be_exchanged(void **state) {
  (void)state;
  run_legal(FUNCTION("%s = nisa.alloc at=[0, 64] : " SBUF "\n%t = nisa.alloc at=[0, 0] : " TURNED "\n" DMA(
      SBUF, "%s", HBM,
      "%a") "nisa.dma_copy(dst<8| 4>=" TURNED " %t[d0, d1], src<8| 4>=" SBUF " %s[d1, d0]) engine=dma\n"
            "nisa.dma_copy(" ALL("dst", HBM, "%r") ", src<4| 8>=" TURNED " %t[d1, d0]) engine=dma\n" RELEASE(SBUF, "%s")
                         RELEASE(TURNED, "%t")));
  assert_memory_equal(output, input, sizeof input);
}

#define SUMS "memref<8x8xf32, #nisa.mem<psum>>"
#define OUT "memref<8x8xf32, #nisa.mem<sbuf>>"

static void products_add_up_in_their_bank(void **state) {
  (void)state;
  run_legal(FUNCTION(
      "%s = nisa.alloc at=[0, 4] : " SBUF "\n%p = nisa.alloc at=[3, 0] : " SUMS "\n%t = nisa.alloc at=[64, 0] : " OUT
      "\n" DMA(SBUF, "%s", HBM, "%a")
          LOOP("2") "nisa.matmul(dst<8| 8>=" SUMS " %p[d0, d1], " ALL("stationary", SBUF, "%s") ", " ALL(
              "moving", SBUF,
              "%s") ", row_pos=index %lo, col_pos=index %lo, is_transpose=false, perf_opt=none_, "
                    "psum_zero_region=size2048) "
                    "engine=tensor\n}\n"
                    "nisa.tensor_copy(dst<8| 8>=" OUT " %t[d0, d1], src<8| 8>=" SUMS " %p[d0, d1]) engine=vector\n"
                    "nisa.dma_copy(" ALL("dst", HBM, "%r") ", src<4| 8>=" OUT " %t[d0, d1]) engine=dma\n" RELEASE(
                        SUMS, "%p") RELEASE(OUT, "%t") RELEASE(SBUF, "%s")));
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++) {
      float want = 0;
      for (int k = 0; k < ROWS; k++)
        want += input[k * COLS + i] * input[k * COLS + j];
      assert_true(output[i * COLS + j] == 2 * want); /* sums of small binary fractions are exact */
    }
}

static void what_is_written_to_shared_bytes_is_read_from_both(void **state) {
  (void)state;
  const struct outcome o = run(FUNCTION("%s = nisa.alloc at=[0, 0] : " SBUF "\n%t = nisa.alloc at=[0, 16] : " SBUF
                                        "\n" SET(SBUF, "%t", "%seven") DMA(SBUF, "%s", HBM, "%a")
                                            DMA(HBM, "%r", SBUF, "%t") RELEASE(SBUF, "%s") RELEASE(SBUF, "%t")));
  assert_false(o.is_legal);
  assert_string_equal(o.fault.text, "");
  for (int k = 0; k < N; k++)
    assert_true(output[k] == (k % COLS < 4 ? input[k + 4] : 7));
}

static void memory_that_is_used_again_begins_unwritten(void **state) {
  (void)state;
  const struct outcome o = run(FUNCTION("%s = nisa.alloc at=[0, 0] : " SBUF "\n" DMA(SBUF, "%s", HBM, "%a") RELEASE(
      SBUF, "%s") "%t = nisa.alloc at=[0, 0] : " SBUF "\n" DMA(HBM, "%r", SBUF, "%t") RELEASE(SBUF, "%t")));
  assert_true(o.is_legal);
  assert_string_equal(sim_fault_name(o.fault.kind), "unwritten-read");
}

#define BYTES "memref<4x32xi8, #nisa.mem<sbuf>>"

static void neighbours_of_other_types_leave_memory_unwritten(void **state) {
  (void)state;
  const struct outcome o = run(FUNCTION("%b = nisa.alloc at=[0, 0] : " BYTES "\n%s = nisa.alloc at=[0, 32] : " SBUF
                                        "\n%c = nisa.alloc at=[0, 64] : " BYTES "\n%zero = arith.constant 0 : i8\n"
                                        "nisa.memset(dst<4| 32>=" BYTES " %b[d0, d1], value=i8 %zero) engine=vector\n"
                                        "nisa.memset(dst<4| 32>=" BYTES
                                        " %c[d0, d1], value=i8 %zero) engine=vector\n" DMA(HBM, "%r", SBUF, "%s")
                                            RELEASE(SBUF, "%s") RELEASE(BYTES, "%b") RELEASE(BYTES, "%c")));
  assert_true(o.is_legal);
  assert_string_equal(sim_fault_name(o.fault.kind), "unwritten-read");
}

#define ROW "memref<1x8xf32, #nisa.mem<sbuf>>"
#define BOTH "memref<1x16xf32, #nisa.mem<sbuf>>"

/* A second allocation covers both copies and shows what is in them. */
static void copies_are_used_in_turn(void **state) {
  (void)state;
  const struct outcome o = run(FUNCTION(
      DMA(HBM, "%r", HBM, "%a") "%b = nisa.alloc at=[0, 0] : " BOTH "\n"
                                "nisa.memset(dst<1| 16>=" BOTH " %b[d0, d1], value=f32 %seven) engine=vector\n" LOOP(
                                    "3") "%c = nisa.alloc at=[0, 0] copies=2 stride=32 : " ROW "\n"
                                         "nisa.dma_copy(dst<1| 8>=" ROW " %c[d0, d1], src<1| 8>=" HBM
                                         " %a[%i + d0, d1]) engine=dma\n" RELEASE(
                                             ROW, "%c") "}\n"
                                                        "nisa.dma_copy(dst<2| 8>=" HBM " %r[d0, d1], src<2| 8>=" BOTH
                                                        " %b[0, d0*8 + d1]) engine=dma\n" RELEASE(BOTH, "%b")));
  assert_false(o.is_legal);
  assert_string_equal(o.fault.text, "");
  assert_memory_equal(output, input + 2 * COLS, COLS * sizeof *input);
  assert_memory_equal(output + COLS, input + COLS, COLS * sizeof *input);
}

static void memory_beyond_the_limit_is_a_fault(void **state) {
  (void)state;
  const struct outcome o =
      run(FUNCTION(DMA(HBM, "%r", HBM, "%a") "%h = nisa.alloc at=[1099511627776] : " SCRATCH "\n"));
  assert_string_equal(sim_fault_name(o.fault.kind), "memory-limit");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(data_passes_through_every_memory_at_its_place),
      cmocka_unit_test(partitions_and_bytes_can_be_exchanged),
      cmocka_unit_test(products_add_up_in_their_bank),
      cmocka_unit_test(what_is_written_to_shared_bytes_is_read_from_both),
      cmocka_unit_test(memory_that_is_used_again_begins_unwritten),
      cmocka_unit_test(neighbours_of_other_types_leave_memory_unwritten),
      cmocka_unit_test(copies_are_used_in_turn),
      cmocka_unit_test(memory_beyond_the_limit_is_a_fault),
  };
  fill(NULL);
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
