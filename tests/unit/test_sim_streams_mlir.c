/* Engine programs in the simulator: their values in every order, deadlocks, races, and the wait that is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlir_support.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/run.h"

#include <cmocka.h> /* last: it defines a macro called fail */

#define HBM "memref<6x4x8xf32, #nisa.mem<shared_hbm>>"
#define SBUF "memref<4x8xf32, #nisa.mem<sbuf>>"
#define PSUM "memref<8x8xf32, #nisa.mem<psum>>"
#define WIDE "memref<8x8xf32, #nisa.mem<sbuf>>"
#define WIDES "memref<6x8x8xf32, #nisa.mem<shared_hbm>>"
#define INT "memref<1x1xi32, #nisa.mem<sbuf>>"
#define ALL(name, type, base) name "<4| 8>=" type " " base "[d0, d1]"
#define TILE(name, base) name "<4| 8>=" HBM " " base "[%i, d0, d1]"
#define COLUMNS(name, base, from, n) name "<4| " #n ">=" SBUF " " base "[d0, d1 + " #from "]"
#define ROTATE(to, from, type) "%" to " = nisa.rotate %" from "[%i] : " type "\n"
#define LOOP "scf.for %i = %c0 to %c6 step %c1 {\n"
#define ALLOC(name, copies, type) name " = \"nisa.alloc\"() {copies = " #copies " : i64} : () -> " type "\n"
#define MODULE(result, body) \
  "module attributes {nisa.target = #nisa.target<trn2>} {\n" \
  "func.func @k(%a: " HBM ") -> " result " {\n" \
  "%r = nisa.alloc : " result "\n" \
  "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c6 = arith.constant 6 : index\n" \
  "%one = arith.constant 1.0 : f32\n" body "return %r : " result "\n}\n}\n"

enum { TILES = 6, ROWS = 4, COLS = 8, N = TILES * ROWS * COLS, OUT_MAX = TILES * 8 * 8 };

static float input[N], output[OUT_MAX];

/* Changes a decoded program before it runs; NULL: it does not. */
typedef void (*change)(struct sim_program *p);

/* Runs the program in this order, with values; or, without, only checks its order. */
static void run_changed(const char *text, enum sim_schedule schedule, uint64_t seed, bool has_values, change f,
                        struct sim_fault *fault, char *instr) {
  struct arena a;
  struct diags ds;
  MlirModule m = {NULL};
  struct sim_program p;
  const struct sim_options options = {.schedule = schedule, .seed = seed};
  const void *args[] = {input};
  void *results[] = {output};

  arena_init(&a);
  diags_init(&ds, &a);
  if (nisa_parse(&ir, text, strlen(text), "t.nisa", &a, &ds, &m) ||
      nisa_verify(mlirModuleGetOperation(m), TARGET_TRN2, &a, &ds) ||
      sim_decode(mlirModuleGetOperation(m), "k", &a, &ds, &p))
    fail_msg("%s\n%s", ds.n ? ds.v[0].message : "no message", text);
  if (f)
    f(&p);
  enum status st =
      has_values ? sim_run(&p, args, results, &options, NULL, fault) : sim_check_order(&p, &options, fault);
  assert_int_equal(!st, !fault->kind);
  snprintf(instr, 40, "%s", fault->instr ? fault->instr->def->name : "");
  fault->instr = fault->other = NULL; /* of the arena */
  fault->loc = fault->other_loc = NULL;
  mlirModuleDestroy(m);
  arena_clear(&a);
}

static void run(const char *text, enum sim_schedule schedule, uint64_t seed, struct sim_fault *fault) {
  char instr[40];
  run_changed(text, schedule, seed, true, NULL, fault, instr);
}

/* In every order: the kind of fault, at this instruction, with this in its text. */
static void expect_fault(const char *text, enum sim_fault_kind kind, const char *instr, const char *part) {
  for (int s = 0; s < SIM_SCHEDULE_COUNT; s++)
    for (uint64_t seed = 0; seed < (s == SIM_SCHEDULE_RANDOM ? 8 : 1); seed++) {
      struct sim_fault fault;
      char at[40];
      run_changed(text, (enum sim_schedule)s, seed, true, NULL, &fault, at);
      if (fault.kind != kind)
        fail_msg("%s: %s, not %s", sim_fault_name(fault.kind), fault.text, sim_fault_name(kind));
      if (instr)
        assert_string_equal(at, instr);
      if (part && !strstr(fault.text, part))
        fail_msg("%s", fault.text);
    }
}

static void expect_ok(const char *text) {
  float first[OUT_MAX];
  for (int s = 0; s < SIM_SCHEDULE_COUNT; s++)
    for (uint64_t seed = 0; seed < (s == SIM_SCHEDULE_RANDOM ? 20 : 1); seed++) {
      struct sim_fault fault;
      memset(output, 0, sizeof output);
      run(text, (enum sim_schedule)s, seed, &fault);
      if (fault.kind)
        fail_msg("%s: %s", sim_fault_name(fault.kind), fault.text);
      if (!s)
        memcpy(first, output, sizeof first);
      assert_memory_equal(first, output, sizeof first);
    }
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

#define LOADS \
  "nisa.queue qIn on sync {\n" LOOP ROTATE("s", "in", SBUF) "nisa.dma_copy(" ALL("dst", SBUF, "%s") ", " TILE( \
      "src", "%a") ") engine=dma signal\n}\n}\n"
#define STORES \
  "nisa.queue qOut on gpsimd {\n" LOOP ROTATE("d", "out", SBUF) "nisa.dma_copy(" TILE("dst", "%r") ", " ALL( \
      "src", SBUF, "%d") ") engine=dma signal\n}\n}\n"

/* r = 1 / a, with two copies of each buffer. */
static const char double_buffered[] =
    MODULE(HBM, ALLOC("%in", 2, SBUF)
                    ALLOC("%out", 2,
                          SBUF) "nisa.program vector {\n" LOOP "nisa.wait qIn >= %i + 1\n"
                                "nisa.wait qOut >= %i - 1\n" ROTATE("s", "in", SBUF)
                                    ROTATE("d", "out", SBUF) "nisa.reciprocal(" ALL("dst", SBUF, "%d") ", " ALL(
                                        "src", SBUF, "%s") ") engine=vector signal\n}\n}\n"
                                                           "nisa.program gpsimd {\n" LOOP "nisa.wait vector >= %i + 1\n"
                                                           "nisa.dma_trigger qOut\n}\n}\n"
                                                           "nisa.program sync {\n" LOOP "nisa.wait vector >= %i - 1\n"
                                                           "nisa.dma_trigger qIn\n}\n}\n" LOADS STORES);

#define MATMUL \
  "nisa.matmul(dst<8| 8>=" PSUM " %q[d0, d1], stationary<4| 8>=" SBUF " %s[d0, d1], moving<4| 8>=" SBUF \
  " %s[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) " \
  "engine=tensor"

/* r = 2 * transposed a * a: each product accumulates twice. */
static const char accumulating[] =
    MODULE(WIDES, ALLOC("%in", 3, SBUF) ALLOC("%p", 2, PSUM)
                      ALLOC("%out", 1, WIDE) "nisa.program tensor {\n" LOOP "nisa.wait qIn >= %i + 1\n"
                                             "nisa.wait vector >= %i - 1\n" ROTATE("s", "in", SBUF)
                                                 ROTATE("q", "p", PSUM) MATMUL
           "\n" MATMUL " signal\n}\n}\n"
           "nisa.program vector {\n" LOOP "nisa.wait tensor >= %i + 1\n"
           "nisa.wait qOut >= %i\n" ROTATE("q", "p", PSUM)
               ROTATE("d", "out",
                      WIDE) "nisa.tensor_copy(dst<8| 8>=" WIDE " %d[d0, d1], src<8| 8>=" PSUM
                            " %q[d0, d1]) engine=vector signal\n}\n}\n"
                            "nisa.program gpsimd {\n" LOOP "nisa.wait vector >= %i + 1\n"
                            "nisa.dma_trigger qOut\n}\n}\n"
                            "nisa.program sync {\n" LOOP "nisa.wait tensor >= %i - 2\n"
                            "nisa.dma_trigger qIn\n}\n}\n" LOADS "nisa.queue qOut on gpsimd {\n" LOOP ROTATE(
                                "d", "out", WIDE) "nisa.dma_copy(dst<8| 8>=" WIDES " %r[%i, d0, d1], src<8| 8>=" WIDE
                                                  " %d[d0, d1]) engine=dma signal\n}\n}\n");

#define CONDITION(engine) \
  "%reg = nisa.register_load(src<1| 1>=" INT " %n[d0, d1]) engine=" engine " : i32\n" \
  "%go = arith.cmpi sgt, %reg, %zero : i32\nscf.condition(%go)\n"
#define FOLLOW(engine) \
  "scf.while : () -> () {\nnisa.barrier\nnisa.wait gpsimd >= 1\n" CONDITION( \
      engine) "} do {\nscf.yield\n}\nnisa.barrier\n"

/* r[0] = a[0] * 8: a loop that runs as long as a counter in memory is greater than 0. */
static const char counting[] = MODULE(
    HBM,
    "%zero = arith.constant 0 : i32\n%minus = arith.constant -1 : i32\n%four = arith.constant 4 : i32\n"
    "%two = arith.constant 2.0 : f32\n%x = nisa.alloc : " SBUF "\n%n = nisa.alloc : " INT "\n"
    "nisa.program vector {\nnisa.wait qIn >= 1\nscf.while : () -> () {\nnisa.barrier\n"
    "nisa.wait gpsimd >= 1\n" CONDITION(
        "vector") "} do {\n"
                  "nisa.tensor_scalar_arith(" ALL("dst", SBUF, "%x") ", " ALL(
                      "src", SBUF,
                      "%x") ", operand0=f32 %two, op0=multiply, reverse_operands=none) "
                            "engine=vector\nscf.yield\n}\nnisa.barrier\n}\n"
                            "nisa.program gpsimd {\nnisa.memset(dst<1| 1>=" INT
                            " %n[d0, d1], value=i32 %four) engine=gpsimd\n"
                            "scf.while : () -> () {\nnisa.barrier\n"
                            "nisa.tensor_scalar_arith(dst<1| 1>=" INT " %n[d0, d1], src<1| 1>=" INT " %n[d0, d1], "
                            "operand0=i32 %minus, op0=add, reverse_operands=none) engine=gpsimd signal\n" CONDITION(
                                "gpsimd") "} do {\nscf.yield\n}\nnisa.barrier\n" LOOP "nisa.dma_trigger qOut\n}\n}\n"
                                          "nisa.program sync {\nnisa.dma_trigger qIn\n" FOLLOW(
                                              "sync") "}\n"
                                                      "nisa.queue qIn on sync {\nnisa.dma_copy(" ALL(
                                                          "dst", SBUF,
                                                          "%x") ", src<4| 8>=" HBM
                                                                " %a[0, d0, d1]) engine=dma signal\n" FOLLOW(
                                                                    "sync") "}\n"
                                                                            "nisa.queue qOut on gpsimd {\n" FOLLOW(
                                                                                "gpsimd") LOOP
    "nisa.dma_copy(dst<4| 8>=" HBM " %r[%i, d0, d1], " ALL("src", SBUF, "%x") ") engine=dma\n}\n}\n");

#define PRODUCT(dst) \
  "nisa.matmul(dst<8| 8>=" PSUM " " dst "[d0, d1], stationary<4| 8>=" SBUF " %s[d0, d1], moving<4| 8>=" SBUF \
  " %s[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) " \
  "engine=tensor signal\n"
#define FROM_PSUM(src) \
  "nisa.tensor_copy(dst<8| 8>=" WIDE " %o[d0, d1], src<8| 8>=" PSUM " " src "[d0, d1]) engine=vector signal\n"
#define OUT(tile) \
  "nisa.dma_copy(dst<8| 8>=" WIDES " %r[" tile ", d0, d1], src<8| 8>=" WIDE " %o[d0, d1]) engine=dma signal\n"

/* A group of 601 products next to 600 groups of one, of which the last is r[3 …]; the first is r[0 … 2]. */
static const char many_groups[] = MODULE(
    WIDES,
    "%n = arith.constant 600 : index\n%c3 = arith.constant 3 : index\n%s = nisa.alloc : " SBUF
    "\n%o = nisa.alloc : " WIDE "\n%long = nisa.alloc : " PSUM "\n" ALLOC(
        "%p", 2,
        PSUM) "nisa.program tensor {\nnisa.wait gpsimd >= 1\nscf.for %i = %c0 to %n step %c1 {\n"
              "nisa.wait vector >= %i - 1\n" ROTATE("q", "p", PSUM) PRODUCT("%q") PRODUCT("%long") "}\n" PRODUCT(
                  "%long") "}\n"
                           "nisa.program vector {\nscf.for %i = %c0 to %n step %c1 {\nnisa.wait tensor >= %i*2 + "
                           "1\n" ROTATE("q", "p", PSUM) FROM_PSUM(
                               "%q") "}\n"
                                     "nisa.wait qOut >= 3\nnisa.wait tensor >= 1201\n" FROM_PSUM(
                                         "%long") "}\n"
                                                  "nisa.program gpsimd {\nnisa.memset(" ALL(
                                                      "dst", SBUF,
                                                      "%s") ", value=f32 %one) engine=gpsimd signal\n"
                                                            "nisa.wait vector >= 600\nnisa.dma_trigger "
                                                            "qOut\nnisa.dma_trigger qOut\nnisa.dma_trigger qOut\n"
                                                            "nisa.wait vector >= 601\nnisa.dma_trigger "
                                                            "qOut\nnisa.dma_trigger qOut\nnisa.dma_trigger qOut\n}\n"
                                                            "nisa.queue qOut on gpsimd {\nscf.for %i = %c3 to %c6 step "
                                                            "%c1 {\n" OUT(
                                                                "%i") "}\n"
                                                                      "scf.for %i = %c0 to %c3 step %c1 {\n" OUT(
                                                                          "%i") "}\n}\n");

/* ---- right programs --------------------------------------------------------------------------------------------- */

static void fill(void) {
  for (int k = 0; k < N; k++)
    input[k] = (float)(k % 13 + 1) / 4;
}

static void two_copies_of_a_buffer_give_the_values_of_one_in_every_order(void **state) {
  (void)state;
  expect_ok(double_buffered);
  for (int k = 0; k < N; k++)
    assert_float_equal(output[k], 1 / input[k], 1e-6);
}

static void each_turn_of_a_psum_buffer_is_a_new_accumulation_group(void **state) {
  (void)state;
  expect_ok(accumulating);
  for (int t = 0; t < TILES; t++)
    for (int m = 0; m < COLS; m++)
      for (int n = 0; n < COLS; n++) {
        float sum = 0;
        for (int k = 0; k < ROWS; k++)
          sum += input[(t * ROWS + k) * COLS + m] * input[(t * ROWS + k) * COLS + n];
        assert_float_equal(output[(t * COLS + m) * COLS + n], 2 * sum, 1e-4);
      }
}

static void a_long_group_lives_next_to_more_groups_than_there_are_numbers(void **state) {
  (void)state;
  expect_ok(many_groups);
  for (int k = 0; k < OUT_MAX; k++)
    assert_float_equal(output[k], k < OUT_MAX / 2 ? 4 * 601 : 4, 0);
}

static void all_streams_leave_a_loop_that_depends_on_data_after_the_same_round(void **state) {
  (void)state;
  expect_ok(counting);
  for (int k = 0; k < N; k++)
    assert_float_equal(output[k], input[k % (ROWS * COLS)] * 8, 1e-6);
}

/* ---- waits that are missing ------------------------------------------------------------------------------------- */

/* The k-th wait of the text, from its name to the end of its line; false if there are fewer. */
static bool find_wait(const char *text, int k, size_t *from, size_t *to) {
  const char *at = text;
  do {
    at = strstr(at, "nisa.wait");
    if (!at)
      return false;
    *from = (size_t)(at - text);
    *to = (size_t)(strchr(at, '\n') - text);
    at = text + *to;
  } while (k--);
  return true;
}

static void every_wait_matters(const char *text) {
  char changed[8192];
  size_t from, to;
  int k = 0;
  assert_true(strlen(text) + 16 < sizeof changed);
  for (; find_wait(text, k, &from, &to); k++) {
    snprintf(changed, sizeof changed, "%.*s%s", (int)from, text, text + to);
    expect_fault(changed, SIM_FAULT_RACE, NULL, "no semaphore orders it");
    snprintf(changed, sizeof changed, "%.*s - 1%s", (int)to, text, text + to);
    expect_fault(changed, SIM_FAULT_RACE, NULL, "no semaphore orders it");
  }
  assert_true(k > 1);
}

static void a_wait_that_is_removed_or_weakened_is_a_race_in_every_order(void **state) {
  (void)state;
  every_wait_matters(double_buffered);
  every_wait_matters(accumulating);
}

/* As above, in a loop whose conditions are loaded: what is loaded too early may also be the wrong number, and then the
 * streams do not meet. */
static void a_register_is_not_loaded_before_it_is_computed(void **state) {
  char changed[8192];
  size_t from, to;
  (void)state;
  for (int k = 0; find_wait(counting, k, &from, &to); k++) {
    struct sim_fault fault;
    snprintf(changed, sizeof changed, "%.*s%s", (int)from, counting, counting + to);
    run(changed, SIM_SCHEDULE_TURNS, 0, &fault);
    if (k) /* the first one is implied by the barrier */
      assert_string_equal(sim_fault_name(fault.kind), "race");
  }
}

static void a_race_names_both_instructions_and_the_bytes(void **state) {
  (void)state;
  expect_fault(MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program vector {\nnisa.memset(" COLUMNS(
                               "dst", "%s", 0, 4) ", value=f32 %one) engine=vector\n}\n"
                                                  "nisa.program gpsimd {\nnisa.memset(" COLUMNS(
                                                      "dst", "%s", 2, 4) ", value=f32 %one) "
                                                                         "engine=gpsimd\n}\n"),
               SIM_FAULT_RACE, "memset", "dst: writes sbuf bytes 8 … 15");
}

/* Reading is no race; nor are areas that interleave without a byte in common. */
static void what_shares_no_byte_or_only_reads_is_no_race(void **state) {
  (void)state;
#define ALTERNATE(first, engine) \
  "nisa.memset(dst<4| 4>=" SBUF " %s[d0, d1*2 + " #first "], value=f32 %one) engine=" engine
  expect_fault(MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program vector {\n" ALTERNATE(
                               0, "vector") "\n}\n"
                                            "nisa.program gpsimd {\n" ALTERNATE(1, "gpsimd") "\n}\n"),
               SIM_FAULT_RESULT, NULL, NULL);
  expect_fault(MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program vector {\n" ALTERNATE(
                               0, "vector") "\n}\n"
                                            "nisa.program gpsimd {\n" ALTERNATE(0, "gpsimd") "\n}\n"),
               SIM_FAULT_RACE, NULL, NULL);
  expect_fault(
      MODULE(HBM,
             "%s = nisa.alloc : " SBUF "\n%x = nisa.alloc : " SBUF "\n%y = nisa.alloc : " SBUF "\n"
             "nisa.program vector {\nnisa.wait gpsimd >= 1\nnisa.tensor_copy(" ALL("dst", SBUF, "%x") ", " ALL(
                 "src", SBUF, "%s") ") engine=vector\n}\nnisa.program scalar {\nnisa.wait gpsimd >= 1\n"
                                    "nisa.tensor_copy(" ALL("dst", SBUF, "%y") ", " ALL(
                                        "src", SBUF, "%s") ") engine=scalar\n}\n"
                                                           "nisa.program gpsimd {\nnisa.memset(" ALL(
                                                               "dst", SBUF, "%s") ", value=f32 %one) engine=gpsimd "
                                                                                  "signal\n}\n"),
      SIM_FAULT_RESULT, NULL, NULL);
}

#define LOAD_FIRST "nisa.dma_copy(" ALL("dst", SBUF, "%s") ", src<4| 8>=" HBM " %a[0, d0, d1]) engine=dma"
static void a_queue_alone_does_not_order_its_transfers(void **state) {
  (void)state;
#define TWICE(between) \
  MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program sync {\nnisa.dma_trigger q\n" between \
              "nisa.dma_trigger q\n}\nnisa.queue q on sync {\n" LOAD_FIRST " signal\n" LOAD_FIRST "\n}\n")
  expect_fault(TWICE(""), SIM_FAULT_RACE, "dma_copy", NULL);
  expect_fault(TWICE("nisa.wait q >= 1\n"), SIM_FAULT_RESULT, NULL, NULL);
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void put(struct sim_program *p, int nth, int partition, int64_t offset) {
  for (int k = 0; k < p->n_buffers; k++)
    if (p->buffers[k].space == MEM_SBUF && !nth--)
      ((struct sim_buffer *)(uintptr_t)&p->buffers[k])->place =
          (struct sim_place){.is_set = true, .partition = partition, .offset = offset, .copies = 1};
}
static void share(struct sim_program *p) {
  put(p, 0, 0, 0);
  put(p, 1, 0, 16);
}
static void share_nothing(struct sim_program *p) {
  put(p, 0, 0, 0);
  put(p, 1, 0, 32);
}
static void other_partitions(struct sim_program *p) {
  put(p, 0, 0, 0);
  put(p, 1, 32, 0);
}

static void buffers_that_share_bytes_by_their_places_race(void **state) {
  static const char text[] = MODULE(
      HBM, "%s = nisa.alloc : " SBUF "\n%t = nisa.alloc : " SBUF "\nnisa.program vector {\nnisa.memset(" ALL(
               "dst", SBUF, "%s") ", value=f32 %one) engine=vector\n}\nnisa.program gpsimd "
                                  "{\nnisa.memset(" ALL("dst", SBUF, "%t") ", value=f32 %one) engine=gpsimd\n}\n");
  static const struct {
    change f;
    enum sim_fault_kind kind;
  } cases[] = {{NULL, SIM_FAULT_NONE},
               {share, SIM_FAULT_RACE},
               {share_nothing, SIM_FAULT_NONE},
               {other_partitions, SIM_FAULT_NONE}};
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct sim_fault fault;
    char at[40];
    run_changed(text, SIM_SCHEDULE_TURNS, 0, false, cases[k].f, &fault, at);
    assert_string_equal(sim_fault_name(fault.kind), sim_fault_name(cases[k].kind));
    if (fault.kind)
      assert_non_null(strstr(fault.text, "SBUF bytes 16 … 31"));
  }
}

/* ---- other faults ----------------------------------------------------------------------------------------------- */

static void streams_that_wait_for_each_other_are_a_deadlock_that_names_them(void **state) {
  (void)state;
  expect_fault(MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program vector {\nnisa.wait gpsimd >= 1\nnisa.memset(" ALL(
                               "dst", SBUF, "%s") ", value=f32 %one) engine=vector signal\n}\n"
                                                  "nisa.program gpsimd {\nnisa.wait vector >= 1\nnisa.memset(" ALL(
                                                      "dst", SBUF, "%s") ", value=f32 %one) engine=gpsimd signal\n}\n"),
               SIM_FAULT_DEADLOCK, "memset",
               "vector waits for gpsimd >= 1, which is 0; gpsimd waits for vector >= 1, which is 0");
}

static void a_transfer_that_nothing_triggers_is_a_deadlock(void **state) {
  (void)state;
  expect_fault(
      MODULE(HBM, "%s = nisa.alloc : " SBUF "\nnisa.program sync {\n}\nnisa.queue q on sync {\n" LOAD_FIRST "\n}\n"),
      SIM_FAULT_DEADLOCK, "dma_copy", "q waits for trigger 1 of sync");
}

static void a_trigger_without_a_transfer_is_reported(void **state) {
  (void)state;
  expect_fault(MODULE(HBM, "nisa.program sync {\nnisa.dma_trigger q\n}\nnisa.queue q on sync {\n}\n"),
               SIM_FAULT_INSTRUCTION, NULL, "q is triggered 1 times, but has 0 transfers");
}

static void faults_of_instructions_are_found_in_streams(void **state) {
  (void)state;
  expect_fault(MODULE(HBM, "%s = nisa.alloc : " SBUF "\n%t = nisa.alloc : " SBUF
                           "\nnisa.program vector {\nnisa.tensor_copy(" ALL("dst", SBUF, "%t") ", " ALL(
                               "src", SBUF, "%s") ") engine=vector\n}\n"),
               SIM_FAULT_UNWRITTEN, "tensor_copy", "src");
}

/* ---- random programs -------------------------------------------------------------------------------------------- */

/* Straight-line programs of four engines and two queues, with waits at random.  Which accesses are ordered is computed
 * from all paths between events, and compared with what the checker says. */
enum { EVENTS_MAX = 96, STREAMS = 6, BUFFERS = 3 };
static const char *const stream_names[STREAMS] = {"vector", "scalar", "gpsimd", "sync", "qA", "qB"};
static const int started_by[STREAMS] = {-1, -1, -1, -1, 3, 1};

struct event {
  int stream;
  enum { EV_COPY, EV_WAIT, EV_TRIGGER } kind;
  int other, count;         /* a wait's semaphore and count; a trigger's queue */
  int buffer[2], column[2]; /* dst, src: four columns from there on */
  bool signals;
};

struct random_program {
  struct event v[EVENTS_MAX];
  int n;
  bool before[EVENTS_MAX][EVENTS_MAX];
};

static uint32_t draw_state;
static int draw(int n) {
  draw_state = draw_state * 1664525u + 1013904223u;
  return (int)((draw_state >> 8) % (unsigned)n);
}

/* Events in an order in which they can happen; a trigger comes right before its transfer.  Before each access the engine
 * waits for most of what the other streams have done. */
static void make_random(struct random_program *p) {
  int raised[STREAMS] = {0};
  memset(p, 0, sizeof *p);
  const int n_copies = 2 + draw(8), care = 20 + draw(200);
  for (int c = 0; c < n_copies; c++) {
    const int streams[] = {0, 1, 2, 4, 5};
    struct event e = {.stream = streams[draw(5)], .signals = draw(care) > 5};
    const bool is_transfer = started_by[e.stream] >= 0;
    const int host = is_transfer ? started_by[e.stream] : e.stream;
    for (int s = 0; s < STREAMS; s++)
      if (s != host && raised[s] && draw(care) > 10)
        p->v[p->n++] = (struct event){.stream = host, .kind = EV_WAIT, .other = s, .count = raised[s] - !draw(care)};
    for (int k = 0; k < 2; k++) {
      e.buffer[k] = draw(BUFFERS);
      e.column[k] = draw(5);
    }
    if (is_transfer)
      p->v[p->n++] = (struct event){.stream = host, .kind = EV_TRIGGER, .other = e.stream};
    raised[e.stream] += e.signals;
    p->v[p->n++] = e;
  }
  assert_true(p->n <= EVENTS_MAX);
}

/* Fills before[][]: the edges, then all paths. */
static void close_paths(struct random_program *p) {
  for (int j = 0; j < p->n; j++)
    for (int i = 0; i < j; i++) {
      const struct event *x = &p->v[i], *y = &p->v[j];
      if (x->stream == y->stream && x->stream < 4)
        p->before[i][j] = true;
      if (x->kind == EV_TRIGGER && j == i + 1)
        p->before[i][j] = true;
      if (y->kind != EV_WAIT || x->stream != y->other)
        continue;
      int raised = 0; /* before x, in its stream */
      for (int k = 0; k < i; k++)
        raised += p->v[k].stream == x->stream && p->v[k].kind == EV_COPY && p->v[k].signals;
      p->before[i][j] |= raised < y->count;
    }
  for (int k = 0; k < p->n; k++)
    for (int i = 0; i < p->n; i++)
      for (int j = 0; j < p->n && p->before[i][k]; j++)
        p->before[i][j] |= p->before[k][j];
}

static bool conflict(const struct event *x, const struct event *y) {
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 2; b++)
      if ((!a || !b) && x->buffer[a] == y->buffer[b] && abs(x->column[a] - y->column[b]) < 4)
        return true;
  return false;
}

static bool has_race(const struct random_program *p) {
  for (int j = 0; j < p->n; j++)
    for (int i = 0; i < j; i++)
      if (p->v[i].kind == EV_COPY && p->v[j].kind == EV_COPY && !p->before[i][j] && conflict(&p->v[i], &p->v[j]))
        return true;
  return false;
}

static void write_random(const struct random_program *p, char *text, size_t size) {
  size_t n = 0;
  n += (size_t)snprintf(text + n, size - n,
                        "module attributes {nisa.target = #nisa.target<trn2>} {\nfunc.func @k() {\n");
  for (int b = 0; b < BUFFERS; b++)
    n += (size_t)snprintf(text + n, size - n, "%%b%d = nisa.alloc : " SBUF "\n", b);
  for (int s = 0; s < STREAMS; s++) {
    n += started_by[s] < 0 ? (size_t)snprintf(text + n, size - n, "nisa.program %s {\n", stream_names[s])
                           : (size_t)snprintf(text + n, size - n, "nisa.queue %s on %s {\n", stream_names[s],
                                              stream_names[started_by[s]]);
    for (int k = 0; k < p->n; k++) {
      const struct event *e = &p->v[k];
      if (e->stream != s)
        continue;
      if (e->kind == EV_WAIT)
        n += (size_t)snprintf(text + n, size - n, "nisa.wait %s >= %d\n", stream_names[e->other], e->count);
      else if (e->kind == EV_TRIGGER)
        n += (size_t)snprintf(text + n, size - n, "nisa.dma_trigger %s\n", stream_names[e->other]);
      else
        n += (size_t)snprintf(text + n, size - n,
                              "nisa.%s(dst<4| 4>=" SBUF " %%b%d[d0, d1 + %d], src<4| 4>=" SBUF
                              " %%b%d[d0, d1 + %d]) engine=%s%s\n",
                              s < 4 ? "tensor_copy" : "dma_copy", e->buffer[0], e->column[0], e->buffer[1],
                              e->column[1], s < 4 ? stream_names[s] : "dma", e->signals ? " signal" : "");
    }
    n += (size_t)snprintf(text + n, size - n, "}\n");
  }
  n += (size_t)snprintf(text + n, size - n, "return\n}\n}\n");
  assert_true(n < size);
}

static void the_checker_finds_a_race_exactly_where_no_path_orders_two_accesses(void **state) {
  static struct random_program p;
  static char text[64 << 10];
  int n_races = 0;
  (void)state;
  enum { PROGRAMS = 400 };
  for (uint32_t seed = 0; seed < PROGRAMS; seed++) {
    draw_state = seed * 7919 + 1;
    make_random(&p);
    close_paths(&p);
    write_random(&p, text, sizeof text);
    const bool expected = has_race(&p);
    n_races += expected;
    for (int s = 0; s < SIM_SCHEDULE_COUNT; s++) {
      struct sim_fault fault;
      char at[40];
      run_changed(text, (enum sim_schedule)s, seed, false, NULL, &fault, at);
      if ((fault.kind == SIM_FAULT_RACE) != expected || (fault.kind && fault.kind != SIM_FAULT_RACE))
        fail_msg("seed %u, order %d: %s %s\n%s", seed, s, sim_fault_name(fault.kind), fault.text, text);
    }
  }
  assert_in_range(n_races, PROGRAMS / 8, PROGRAMS - PROGRAMS / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_copies_of_a_buffer_give_the_values_of_one_in_every_order),
      cmocka_unit_test(each_turn_of_a_psum_buffer_is_a_new_accumulation_group),
      cmocka_unit_test(a_long_group_lives_next_to_more_groups_than_there_are_numbers),
      cmocka_unit_test(all_streams_leave_a_loop_that_depends_on_data_after_the_same_round),
      cmocka_unit_test(a_wait_that_is_removed_or_weakened_is_a_race_in_every_order),
      cmocka_unit_test(a_register_is_not_loaded_before_it_is_computed),
      cmocka_unit_test(a_race_names_both_instructions_and_the_bytes),
      cmocka_unit_test(what_shares_no_byte_or_only_reads_is_no_race),
      cmocka_unit_test(a_queue_alone_does_not_order_its_transfers),
      cmocka_unit_test(buffers_that_share_bytes_by_their_places_race),
      cmocka_unit_test(streams_that_wait_for_each_other_are_a_deadlock_that_names_them),
      cmocka_unit_test(a_transfer_that_nothing_triggers_is_a_deadlock),
      cmocka_unit_test(a_trigger_without_a_transfer_is_reported),
      cmocka_unit_test(faults_of_instructions_are_found_in_streams),
      cmocka_unit_test(the_checker_finds_a_race_exactly_where_no_path_orders_two_accesses),
  };
  fill();
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
