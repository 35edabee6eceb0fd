/* The pass engine-programs, on random sequences of instructions in loops: the programs never race, wait for each other in
 * a circle, or give other values than the sequence, in any order; and a wait that is removed is missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "mlir_support.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "passes/pass.h"
#include "sim/decode.h"
#include "sim/run.h"

#include <cmocka.h> /* last: it defines a macro called fail */

#define HBM "memref<16x4x8xf32, #nisa.mem<shared_hbm>>"
#define SLOTS "memref<4x16x8xf32, #nisa.mem<sbuf>>"
#define TILE "memref<4x8xf32, #nisa.mem<sbuf>>"

enum { SLOT_COUNT = 16, N = SLOT_COUNT * 4 * 8, DEPTH_MAX = 3, BUFFERS = 3, TEXT_MAX = 1 << 20 };

/* ---- random sequences -------------------------------------------------------------------------------------------- */

struct writer {
  struct buf text;
  uint64_t state;
  int depth, next;
  int trips[DEPTH_MAX];
  int tiles[16], n_tiles; /* allocations that are alive */
  bool has_places;        /* allocations name their copies, and never share memory */
  int64_t offset;
};

static int below(struct writer *w, int n) {
  w->state = w->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((w->state >> 33) % (uint64_t)n);
}

/* The index of a slot: a constant, or a sum of multiples of the variables around that stays below SLOT_COUNT. */
static const char *slot(struct writer *w) {
  static char out[4][64];
  static int turn;
  char *text = out[turn++ % 4];
  int most = 0, len = 0;
  text[0] = 0;
  for (int d = 0; d < w->depth; d++) {
    const int factor = below(w, 4);
    if (!factor || most + factor * (w->trips[d] - 1) >= SLOT_COUNT)
      continue;
    most += factor * (w->trips[d] - 1);
    len += snprintf(text + len, 64 - (size_t)len, "%s%%i%d*%d", len ? " + " : "", d, factor);
  }
  const int rest = below(w, SLOT_COUNT - most);
  snprintf(text + len, 64 - (size_t)len, "%s%d", len ? " + " : "", rest);
  return text;
}

/* An operand on chip: a slot of a large buffer, or a tile. */
static void put_operand(struct writer *w, const char *name) {
  if (w->n_tiles && below(w, 2))
    buf_printf(&w->text, "%s<4| 8>=" TILE " %%t%d[d0, d1]", name, w->tiles[below(w, w->n_tiles)]);
  else
    buf_printf(&w->text, "%s<4| 8>=" SLOTS " %%b%d[d0, %s, d1]", name, below(w, BUFFERS), slot(w));
}

static void put_hbm(struct writer *w, const char *name, const char *base) {
  buf_printf(&w->text, "%s<4| 8>=" HBM " %s[%s, d0, d1]", name, base, slot(w));
}

static void put_instr(struct writer *w) {
  const int kind = below(w, 6);
  static const char *const copies[] = {"vector", "gpsimd", "scalar"};
  buf_puts(&w->text, kind < 3 ? "nisa.tensor_copy(" : "nisa.dma_copy(");
  if (kind == 5)
    put_hbm(w, "dst", "%r");
  else
    put_operand(w, "dst");
  buf_puts(&w->text, ", ");
  if (kind == 3)
    put_hbm(w, "src", below(w, 4) ? "%a" : "%r");
  else
    put_operand(w, "src");
  buf_printf(&w->text, ") engine=%s\n", kind < 3 ? copies[kind] : "dma");
}

static void put_tile(struct writer *w) {
  const int k = w->next++;
  if (w->has_places) {
    const int copies = 1 + below(w, w->depth ? 4 : 1);
    buf_printf(&w->text, "%%t%d = nisa.alloc at=[0, %lld] copies=%d stride=64 : " TILE "\n", k, (long long)w->offset,
               copies);
    w->offset += 64 * copies;
  } else {
    buf_printf(&w->text, "%%t%d = nisa.alloc : " TILE "\n", k);
  }
  w->tiles[w->n_tiles++] = k;
  if (below(w, 2))
    buf_printf(&w->text, "nisa.memset(dst<4| 8>=" TILE " %%t%d[d0, d1], value=f32 %%one) engine=vector\n", k);
  else
    buf_printf(&w->text,
               "nisa.dma_copy(dst<4| 8>=" TILE " %%t%d[d0, d1], src<4| 8>=" HBM " %%a[%s, d0, d1]) engine=dma\n", k,
               slot(w));
}

static void put_block(struct writer *w) {
  const int first = w->n_tiles;
  for (int k = 2 + below(w, 4); k > 0; k--) {
    const int what = below(w, 8);
    if (what < 2 && w->depth < DEPTH_MAX) {
      const int d = w->depth++;
      w->trips[d] = 1 + below(w, 5);
      buf_printf(&w->text, "scf.for %%i%d = %%c0 to %%c%d step %%c1 {\n", d, w->trips[d]);
      put_block(w);
      buf_puts(&w->text, "}\n");
      w->depth--;
    } else if (what < 4 && w->n_tiles < 16) {
      put_tile(w);
    } else {
      put_instr(w);
    }
  }
  while (w->n_tiles > first)
    buf_printf(&w->text, "nisa.release %%t%d : " TILE "\n", w->tiles[--w->n_tiles]);
}

static void write_random(struct writer *w, uint64_t seed) {
  *w = (struct writer){.state = seed * 2654435761u + 1, .has_places = seed % 2, .offset = 4096};
  buf_init(&w->text, TEXT_MAX);
  buf_puts(&w->text, "// nisa text 1\nmodule attributes {nisa.target = #nisa.target<trn2>} {\nfunc.func @k(%a: " HBM
                     ") -> " HBM " {\n%r = nisa.alloc : " HBM "\n%one = arith.constant 1.0 : f32\n");
  for (int k = 0; k < 6; k++)
    buf_printf(&w->text, "%%c%d = arith.constant %d : index\n", k, k);
  for (int k = 0; k < BUFFERS; k++)
    buf_printf(&w->text,
               w->has_places ? "%%b%d = nisa.alloc at=[0, %d] : " SLOTS "\n" : "%%b%d = nisa.alloc : " SLOTS "\n", k,
               1024 * k);
  for (int k = 0; k < BUFFERS; k++)
    buf_printf(&w->text, "nisa.memset(dst<4| 16, 8>=" SLOTS " %%b%d[d0, d1, d2], value=f32 %%one) engine=vector\n", k);
  buf_puts(&w->text,
           "nisa.dma_copy(dst<4| 16, 8>=" HBM " %r[d1, d0, d2], src<4| 16, 8>=" SLOTS " %b0[d0, d1, d2]) engine=dma\n");
  for (int k = 0; k < 3; k++)
    put_block(w);
  for (int k = 0; k < BUFFERS; k++)
    buf_printf(&w->text, "nisa.release %%b%d : " SLOTS "\n", k);
  buf_puts(&w->text, "return %r : " HBM "\n}\n}\n");
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

struct machine {
  struct arena arena;
  struct diags ds;
  MlirModule module;
  struct sim_program plain, engines;
};

static void run_pass(struct machine *m, const char *name) {
  struct pass_run run = {.ir = &ir,
                         .module = mlirModuleGetOperation(m->module),
                         .target = TARGET_TRN2,
                         .options = "",
                         .arena = &m->arena,
                         .ds = &m->ds,
                         .def = pass_find(name)};
  assert_non_null(run.def);
  if (run.def->run(&run) || nisa_verify(run.module, TARGET_TRN2, &m->arena, &m->ds))
    fail_msg("%s: %s", name, m->ds.n ? m->ds.v[0].message : "no message");
}

static void decode(struct machine *m, struct sim_program *out) {
  if (sim_decode(mlirModuleGetOperation(m->module), "k", &m->arena, &m->ds, out))
    fail_msg("%s", m->ds.n ? m->ds.v[0].message : "no message");
}

static void start(struct machine *m, const char *text, bool has_places) {
  arena_init(&m->arena);
  diags_init(&m->ds, &m->arena);
  if (nisa_parse(&ir, text, strlen(text), "t.nisa", &m->arena, &m->ds, &m->module))
    fail_msg("%s\n%s", m->ds.n ? m->ds.v[0].message : "no message", text);
  if (!has_places)
    run_pass(m, "allocate-memory");
  decode(m, &m->plain);
  run_pass(m, "engine-programs");
  decode(m, &m->engines);
}

static void stop(struct machine *m) {
  mlirModuleDestroy(m->module);
  arena_clear(&m->arena);
}

static float input[N];

static void run_values(const struct sim_program *p, enum sim_schedule schedule, uint64_t seed, float *out,
                       const char *text) {
  struct sim_fault fault;
  const struct sim_options options = {.schedule = schedule, .seed = seed};
  const void *args[] = {input};
  void *results[] = {out};
  if (sim_run(p, args, results, &options, NULL, &fault))
    fail_msg("seed %d: %s: %s\n%s", (int)seed, sim_fault_name(fault.kind), fault.text, text);
}

static bool is_ordered(const struct sim_program *p) {
  struct sim_fault fault;
  return !sim_check_order(p, &(struct sim_options){0}, &fault);
}

/* Returns how many waits the program has, and how many of them nobody misses. */
static int count_unneeded(const struct sim_program *p, int *n) {
  static const struct sim_linear zero;
  int unneeded = 0;
  for (int k = 0; k < p->n_nodes; k++) {
    struct sim_node *node = (struct sim_node *)&p->nodes[k];
    if (node->kind != SIM_NODE_WAIT)
      continue;
    const struct sim_linear *count = node->linear;
    node->linear = &zero;
    unneeded += is_ordered(p);
    node->linear = count;
    (*n)++;
  }
  return unneeded;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static int fill(void **state) {
  (void)state;
  for (int k = 0; k < N; k++)
    input[k] = (float)(k + 2);
  return 0;
}

static int seeds(void) {
  const char *n = getenv("ENGINE_PROGRAMS_SEEDS");
  return n ? atoi(n) : 150;
}

static void random_sequences_have_their_values_in_every_order(void **state) {
  static float expected[N], got[N];
  int waits = 0, unneeded = 0;
  (void)state;
  for (int seed = 0; seed < seeds(); seed++) {
    struct writer w;
    struct machine m;
    write_random(&w, (uint64_t)seed);
    const char *text = buf_text(&w.text);
    start(&m, text, w.has_places);
    run_values(&m.plain, SIM_SCHEDULE_TURNS, (uint64_t)seed, expected, text);
    for (int s = 0; s < SIM_SCHEDULE_COUNT; s++) {
      run_values(&m.engines, (enum sim_schedule)s, (uint64_t)seed, got, text);
      if (memcmp(got, expected, sizeof got))
        fail_msg("seed %d: other values in order %d\n%s", seed, s, text);
    }
    unneeded += count_unneeded(&m.engines, &waits);
    stop(&m);
    buf_clear(&w.text);
  }
  print_message("%d waits, %d of them for more than is needed\n", waits, unneeded);
  assert_true(waits > 2 * seeds());
  assert_true(unneeded * 6 < waits); /* what is no sum of multiples is waited for longer */
}

#define WHOLE(name, type, base) name "<4| 8>=" type " " base "[d0, d1]"
#define ROW(name, base) name "<4| 8>=" HBM " " base "[%i, d0, d1]"
#define CELL(name, type, base) name "<1| 1>=memref<1x1x" type ", #nisa.mem<sbuf>> " base "[d0, d1]"
#define CELL_ALLOC(name, type) name " = nisa.alloc : memref<1x1x" type ", #nisa.mem<sbuf>>\n"
#define CELL_RELEASE(name, type) "nisa.release " name " : memref<1x1x" type ", #nisa.mem<sbuf>>\n"
#define FUNCTION(body) \
  "module attributes {nisa.target = #nisa.target<trn2>} {\nfunc.func @k(%a: " HBM ") -> " HBM " {\n" \
  "%r = nisa.alloc : " HBM "\n%one = arith.constant 1.0 : f32\n%four = arith.constant 4 : i32\n" \
  "%n1 = arith.constant 1 : i32\n%n0 = arith.constant 0 : i32\n%c0 = arith.constant 0 : index\n" \
  "%c1 = arith.constant 1 : index\n%c16 = arith.constant 16 : index\n" body "return %r : " HBM "\n}\n}\n"
#define LOAD "nisa.dma_copy(" WHOLE("dst", TILE, "%t") ", " ROW("src", "%a") ") engine=dma\n"
#define STORE "nisa.dma_copy(" ROW("dst", "%r") ", " WHOLE("src", TILE, "%u") ") engine=dma\n"
#define DOUBLE \
  "nisa.tensor_tensor_arith(" WHOLE("dst", TILE, "%u") ", " WHOLE("lhs", TILE, "%t") ", " WHOLE( \
      "rhs", TILE, "%t") ", op=add) engine=vector\n"
#define ROWS(inside) "scf.for %i = %c0 to %c16 step %c1 {\n" inside "}\n"

/* Runs the sequence and its programs, in every order; returns how many waits nobody misses.  *waits: how many there
 * are. */
static int run_all(const char *text, float *expected, int *waits) {
  static float got[N];
  struct machine m;
  *waits = 0;
  start(&m, text, false);
  run_values(&m.plain, SIM_SCHEDULE_TURNS, 0, expected, text);
  for (int s = 0; s < SIM_SCHEDULE_COUNT; s++)
    for (uint64_t seed = 0; seed < 4; seed++) {
      run_values(&m.engines, (enum sim_schedule)s, seed, got, text);
      assert_memory_equal(got, expected, sizeof got);
    }
  const int unneeded = count_unneeded(&m.engines, waits);
  stop(&m);
  return unneeded;
}

static void a_loop_that_loads_computes_and_stores_has_four_waits(void **state) {
  static float expected[N];
  int waits;
  (void)state;
  const int unneeded =
      run_all(FUNCTION(ROWS("%t = nisa.alloc : " TILE "\n" LOAD "%u = nisa.alloc : " TILE "\n" DOUBLE STORE
                            "nisa.release %t : " TILE "\nnisa.release %u : " TILE "\n")),
              expected, &waits);
  for (int k = 0; k < N; k++)
    assert_true(expected[k] == 2 * input[k]);
  assert_int_equal(unneeded, 0);
  assert_int_equal(waits, 4); /* for the load, for the copy to store from, for the result, for the copy to load to */
}

#define CELL_OP(dst, src, value, op, engine) \
  "nisa.tensor_scalar_arith(" CELL("dst", "i32", dst) ", " CELL( \
      "src", "i32", src) ", operand0=i32 " value ", op0=" op ", reverse_operands=none) engine=" engine "\n"

/* %f counts, %g is its last bit. */
static const char branches[] = FUNCTION(
    CELL_ALLOC("%f", "i32")
        CELL_ALLOC("%g", "i32") "nisa.memset(" CELL("dst", "i32", "%f") ", value=i32 %n0) engine=gpsimd\n" ROWS(
            "%t = nisa.alloc : " TILE "\n%u = nisa.alloc : " TILE
            "\n" LOAD CELL_OP("%g", "%f", "%n1", "bitwise_and", "vector") "%v = nisa.register_load(" CELL(
                "src", "i32", "%g") ") engine=sync : i32\n"
                                    "%odd = arith.cmpi ne, %v, %n0 : i32\n"
                                    "scf.if %odd {\n" DOUBLE "} else {\n"
                                    "nisa.tensor_copy(" WHOLE("dst", TILE, "%u") ", " WHOLE(
                                        "src", TILE,
                                        "%t") ") engine=scalar\n}\n" STORE CELL_OP("%f", "%f", "%n1", "add",
                                                                                   "gpsimd") "nisa.release %t : " TILE
                                                                                             "\nnisa.release %u : " TILE
                                                                                             "\n")
            CELL_RELEASE("%f", "i32") CELL_RELEASE("%g", "i32"));

static void a_branch_on_data_runs_in_all_streams(void **state) {
  static float expected[N];
  int waits;
  (void)state;
  run_all(branches, expected, &waits);
  for (int k = 0; k < N; k++)
    assert_true(expected[k] == (float)(k / 32 % 2 ? 2 : 1) * input[k]);
}

/* %f counts; the row that is copied is loaded into a register, by the queue itself. */
static const char rows[] = FUNCTION(CELL_ALLOC("%f", "i32") "nisa.memset(" CELL(
    "dst", "i32", "%f") ", value=i32 %n0) engine=gpsimd\n"
                        "%u = nisa.alloc : " TILE "\n" ROWS("%v = nisa.register_load(" CELL(
                            "src", "i32", "%f") ") engine=sync : i32\n"
                                                "%w = arith.index_cast %v : i32 to index\n"
                                                "nisa.dma_copy(" WHOLE(
                                                    "dst", TILE, "%u") ", src<4| 8>=" HBM
                                                                       " %a[%w, d0, d1]) engine=dma\n" STORE CELL_OP(
                                                                           "%f", "%f", "%n1", "add",
                                                                           "gpsimd")) "nisa.release %u : " TILE
                                                                                      "\n" CELL_RELEASE("%f", "i32"));

static void a_queue_loads_the_registers_of_its_transfers(void **state) {
  static float expected[N];
  int waits;
  (void)state;
  run_all(rows, expected, &waits);
  assert_memory_equal(expected, input, sizeof input);
}

/* A loop that runs as long as %f is less than four: row 0 is doubled four times; then all rows are copied. */
static const char rounds[] =
    FUNCTION(CELL_ALLOC("%f", "i32") CELL_ALLOC("%g", "i1") "nisa.memset(" CELL(
        "dst", "i32",
        "%f") ", value=i32 %n0) engine=gpsimd\n"
              "%t = nisa.alloc : " TILE "\n%u = nisa.alloc : " TILE "\n"
              "nisa.dma_copy(" WHOLE(
                  "dst", TILE,
                  "%t") ", src<4| 8>=" HBM " %a[0, d0, d1]) engine=dma\n"
                        "scf.while : () -> () {\n"
                        "nisa.tensor_scalar_arith(" CELL("dst", "i1", "%g") ", " CELL(
                            "src", "i32",
                            "%f") ", operand0=i32 %four, op0=is_lt, "
                                  "reverse_operands=none) engine=vector\n"
                                  "%v = nisa.register_load(" CELL(
                                      "src", "i1",
                                      "%g") ") engine=sync : i1\nscf.condition(%v)\n} do {\n" DOUBLE
                                            "nisa.tensor_copy(" WHOLE("dst", TILE, "%t") ", " WHOLE("src", TILE, "%u") ") engine=scalar\n" CELL_OP("%f", "%f", "%n1", "add", "gpsimd") "scf.yield\n}\n" ROWS(
                                                "nisa.tensor_copy(" WHOLE("dst", TILE, "%u") ", " WHOLE(
                                                    "src", TILE,
                                                    "%t") ") engine=scalar\n" STORE) "nisa.release %t : " TILE
                                                                                     "\nnisa.release %u : " TILE
                                                                                     "\n" CELL_RELEASE("%f", "i32")
                                                                                         CELL_RELEASE("%g", "i1"));

static void a_loop_on_data_runs_in_all_streams(void **state) {
  static float expected[N];
  int waits;
  (void)state;
  run_all(rounds, expected, &waits);
  for (int k = 0; k < N; k++)
    assert_true(expected[k] == 16 * input[k % 32]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_loop_that_loads_computes_and_stores_has_four_waits, fill),
      cmocka_unit_test_setup(a_branch_on_data_runs_in_all_streams, fill),
      cmocka_unit_test_setup(a_loop_on_data_runs_in_all_streams, fill),
      cmocka_unit_test_setup(a_queue_loads_the_registers_of_its_transfers, fill),
      cmocka_unit_test_setup(random_sequences_have_their_values_in_every_order, fill),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
