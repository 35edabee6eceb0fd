/* The machine's time: what single instructions cost, and what holds in every timeline. */
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
#include "sim/decode.h"
#include "sim/report.h"
#include "sim/run.h"

#include <cmocka.h> /* last: it defines a macro called fail */

/* A program and its timeline. */
struct timed {
  struct arena arena;
  MlirModule module;
  struct sim_program program;
  struct sim_timeline timeline;
  struct sim_fault fault;
};

static void read_program(struct timed *t, const char *text, enum target target) {
  struct diags ds;
  arena_init(&t->arena);
  diags_init(&ds, &t->arena);
  t->module = (MlirModule){NULL};
  if (nisa_parse(&ir, text, strlen(text), "t.nisa", &t->arena, &ds, &t->module) ||
      nisa_verify(mlirModuleGetOperation(t->module), target, &t->arena, &ds) ||
      sim_decode(mlirModuleGetOperation(t->module), "k", &t->arena, &ds, &t->program))
    fail_msg("%s in\n%s", ds.n ? ds.v[0].message : "no message", text);
}

static enum status time_program(struct timed *t, enum target target) {
  return sim_time(&t->program, &(struct sim_time_options){.target = target}, &t->arena, &t->timeline, &t->fault);
}

static void time_text(struct timed *t, const char *text, enum target target) {
  read_program(t, text, target);
  if (time_program(t, target))
    fail_msg("%s in\n%s", t->fault.text, text);
}

static void forget(struct timed *t) {
  mlirModuleDestroy(t->module);
  arena_clear(&t->arena);
}

/* ---- single instructions ----------------------------------------------------------------------------------------- */

#define MODULE(target) "module attributes {nisa.target = #nisa.target<" target ">} {\nfunc.func @k("

static const char memories[] =
    "%hbm: memref<128x1024xf32, #nisa.mem<shared_hbm>>) {\n"
    "%s = nisa.alloc : memref<128x1024xf32, #nisa.mem<sbuf>>\n%t = nisa.alloc : memref<128x1024xf32, #nisa.mem<sbuf>>\n"
    "%b = nisa.alloc : memref<128x1024xbf16, #nisa.mem<sbuf>>\n%c = nisa.alloc : memref<128x1024xbf16, "
    "#nisa.mem<sbuf>>\n"
    "%p = nisa.alloc : memref<128x512xf32, #nisa.mem<psum>>\n%o = nisa.alloc : memref<128x1xf32, #nisa.mem<sbuf>>\n"
    "%c0 = arith.constant 0 : index\n%one = arith.constant 1.0 : f32\n";

#define S(n) "<128| " n ">=memref<128x1024xf32, #nisa.mem<sbuf>> %s[d0, d1]"
#define T(n) "<128| " n ">=memref<128x1024xf32, #nisa.mem<sbuf>> %t[d0, d1]"
#define B(n) "<128| " n ">=memref<128x1024xbf16, #nisa.mem<sbuf>> %b[d0, d1]"
#define C(n) "<128| " n ">=memref<128x1024xbf16, #nisa.mem<sbuf>> %c[d0, d1]"
#define P(n) "<128| " n ">=memref<128x512xf32, #nisa.mem<psum>> %p[d0, d1]"
#define O "<128| 1>=memref<128x1xf32, #nisa.mem<sbuf>> %o[d0, d1]"
#define H(n) "<128| " n ">=memref<128x1024xf32, #nisa.mem<shared_hbm>> %hbm[d0, d1]"
#define END "return\n}\n}\n"
static const char releases[] =
    "nisa.release %s : memref<128x1024xf32, #nisa.mem<sbuf>>\nnisa.release %t : memref<128x1024xf32, #nisa.mem<sbuf>>\n"
    "nisa.release %b : memref<128x1024xbf16, #nisa.mem<sbuf>>\nnisa.release %c : memref<128x1024xbf16, "
    "#nisa.mem<sbuf>>\n"
    "nisa.release %p : memref<128x512xf32, #nisa.mem<psum>>\nnisa.release %o : memref<128x1xf32, #nisa.mem<sbuf>>\n";

/* The last execution of a program of one instruction. */
static struct sim_exec single(const char *target, const char *instr) {
  struct timed t;
  char text[4000];
  enum target number;
  assert_true(target_from_name(target, &number));
  snprintf(text, sizeof text, "module attributes {nisa.target = #nisa.target<%s>} {\nfunc.func @k(%s%s\n%s" END, target,
           memories, instr, releases);
  time_text(&t, text, number);
  const struct sim_exec x = t.timeline.execs[t.timeline.n - 1];
  forget(&t);
  return x;
}

/* From its start: when its engine is free, when it is done; ps. */
static void costs(const char *target, const char *instr, int64_t free, int64_t done) {
  const struct sim_exec x = single(target, instr);
  if (x.free - x.start != free || x.end - x.start != done)
    fail_msg("%s on %s: %lld and %lld ps, not %lld and %lld", instr, target, (long long)(x.free - x.start),
             (long long)(x.end - x.start), (long long)free, (long long)done);
}

/* N cycles of a clock in MHz, in ps. */
static int64_t cycles(int64_t n, int64_t mhz) {
  return (n * 1000000 + mhz / 2) / mhz;
}

static void a_copy_from_psum_takes_a_cycle_an_element(void **state) {
  (void)state;
  const char *copy = "nisa.tensor_copy(dst" S("512") ", src" P("512") ") engine=vector";
  costs("trn2", copy, cycles(512, 960) + 75000, cycles(512, 960) + 157000);
  costs("trn1", copy, cycles(512, 1120) + 56000, cycles(512, 1120) + 70000);
  costs("trn3", copy, cycles(512, 1200) + 60000, cycles(512, 1200) + 126000);
}

static void vector_copies_faster_inside_sbuf(void **state) {
  (void)state;
  costs("trn2", "nisa.tensor_copy(dst" S("512") ", src" T("512") ") engine=vector", cycles(256, 960) + 75000,
        cycles(256, 960) + 157000);
  costs("trn2", "nisa.tensor_copy(dst" B("512") ", src" C("512") ") engine=vector", cycles(128, 960) + 75000,
        cycles(128, 960) + 157000);
  costs("trn2", "nisa.tensor_copy(dst" B("512") ", src" T("512") ") engine=vector", cycles(512, 960) + 75000,
        cycles(512, 960) + 157000);
  costs("trn1", "nisa.tensor_copy(dst" B("512") ", src" C("512") ") engine=vector", cycles(512, 1120) + 56000,
        cycles(512, 1120) + 70000);
}

static void two_operands_in_sbuf_take_two_cycles_an_element(void **state) {
  (void)state;
  costs("trn2", "nisa.tensor_tensor_arith(dst" S("512") ", lhs" S("512") ", rhs" T("512") ", op=add) engine=vector",
        cycles(1024, 960) + 75000, cycles(1024, 960) + 157000);
  costs("trn2", "nisa.tensor_tensor_arith(dst" S("512") ", lhs" P("512") ", rhs" T("512") ", op=add) engine=vector",
        cycles(512, 960) + 75000, cycles(512, 960) + 157000);
  costs("trn2", "nisa.tensor_tensor_arith(dst" B("512") ", lhs" C("512") ", rhs" B("512") ", op=add) engine=vector",
        cycles(512, 960) + 75000, cycles(512, 960) + 157000);
}

static void a_reduction_takes_a_cycle_an_element(void **state) {
  (void)state;
  costs("trn2", "nisa.tensor_reduce_arith(dst" O ", src" S("512") ", op=max, negated=false, num_r_dim=1) engine=vector",
        cycles(512, 960) + 60000, cycles(512, 960) + 152000);
}

static void an_operand_of_each_partition_costs_an_access_more(void **state) {
  (void)state;
  costs("trn2",
        "nisa.tensor_scalar_arith(dst" S("512") ", src" T("512") ", operand0" O ", op0=multiply, "
                                                                 "reverse_operands=none) engine=vector",
        cycles(256, 960) + 128000, cycles(256, 960) + 215000);
}

#define EXP(source) "nisa.activation(dst" S("512") ", src" source ", bias" O ", scale=f32 %one, op=exp) engine=scalar"

static void an_exponential_loads_its_table_and_takes_a_cycle_an_element(void **state) {
  (void)state;
  costs("trn2", EXP(P("512")), cycles(512, 1200) + 143000, cycles(512, 1200) + 260000);
  costs("trn2", EXP(T("512")), cycles(512, 1200) + 143000, cycles(512, 1200) + 280000);
  assert_int_equal(single("trn2", EXP(T("512"))).start, 1283000);
}

#define MATMUL(stationary, moving) \
  "nisa.matmul(dst" P("512") ", stationary" stationary ", moving" moving ", row_pos=index %c0, col_pos=index %c0, " \
                             "is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor"

static void a_product_takes_a_cycle_a_column_and_four_in_f32(void **state) {
  (void)state;
  costs("trn1", MATMUL(C("128"), B("512")), cycles(512, 2800), cycles(512, 2800) + 150000);
  costs("trn1", MATMUL(T("128"), S("512")), cycles(2048, 2800), cycles(2048, 2800) + 150000);
  /* trn2 starts with half of the clock */
  costs("trn2", MATMUL(C("128"), B("512")), 2 * cycles(512, 2400), 2 * cycles(512, 2400) + 205000);
  costs("trn2", MATMUL(T("128"), S("512")), 2 * cycles(2048, 2400), 2 * cycles(2048, 2400) + 205000);
}

static void a_lone_transfer_takes_its_descriptors_and_its_fixed_parts(void **state) {
  (void)state;
  const struct sim_exec x = single("trn2", "nisa.dma_copy(dst" S("1024") ", src" H("1024") ") engine=dma");
  const int64_t descriptor = (4096 * 1000000LL + 12800) / 25600; /* at the rate that all engines sustain */
  assert_int_equal(x.ready, 1330000);
  assert_int_equal(x.start, 1330000);
  assert_int_equal(x.end - x.start, 8 * descriptor + 150000);
}

static void short_descriptors_cost_their_overhead(void **state) {
  (void)state;
  const struct sim_exec x = single("trn2", "nisa.dma_copy(dst" S("64") ", src" H("64") ") engine=dma");
  const int64_t descriptor = 4500 + (256 * 1000000LL + 13500) / 27000, supply = 128 * 4000;
  assert_true(8 * descriptor < supply); /* which then decides */
  assert_int_equal(x.end - x.start, supply + 150000);
}

/* ---- a tiled product --------------------------------------------------------------------------------------------- */

static const char product[] =
    "%hbm: memref<128x1024xf32, #nisa.mem<shared_hbm>>) {\n"
    "%a = nisa.alloc : memref<128x8x1024xbf16, #nisa.mem<sbuf>>\n%b = nisa.alloc : memref<128x8x1024xbf16, "
    "#nisa.mem<sbuf>>\n"
    "%c = nisa.alloc : memref<128x8x1024xf32, #nisa.mem<sbuf>>\n"
    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c2 = arith.constant 2 : index\n"
    "%c8 = arith.constant 8 : index\n%c128 = arith.constant 128 : index\n%c512 = arith.constant 512 : index\n"
    "scf.for %i = %c0 to %c8 step %c1 {\nscf.for %j = %c0 to %c2 step %c1 {\n"
    "%i1 = arith.muli %i, %c128 : index\n%j1 = arith.muli %j, %c512 : index\n"
    "%p = nisa.alloc : memref<128x512xf32, #nisa.mem<psum>>\n"
    "scf.for %k = %c0 to %c8 step %c1 {\n"
    "nisa.matmul(dst<128| 512>=memref<128x512xf32, #nisa.mem<psum>> %p[d0, d1], "
    "stationary<128| 128>=memref<128x8x1024xbf16, #nisa.mem<sbuf>> %a[d0, %k, %i1 + d1], "
    "moving<128| 512>=memref<128x8x1024xbf16, #nisa.mem<sbuf>> %b[d0, %k, %j1 + d1], row_pos=index %c0, "
    "col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor\n}\n"
    "nisa.tensor_copy(dst<128| 512>=memref<128x8x1024xf32, #nisa.mem<sbuf>> %c[d0, %i, %j1 + d1], "
    "src<128| 512>=memref<128x512xf32, #nisa.mem<psum>> %p[d0, d1]) engine=vector\n"
    "nisa.release %p : memref<128x512xf32, #nisa.mem<psum>>\n}\n}\n"
    "nisa.release %a : memref<128x8x1024xbf16, #nisa.mem<sbuf>>\nnisa.release %b : memref<128x8x1024xbf16, "
    "#nisa.mem<sbuf>>\n"
    "nisa.release %c : memref<128x8x1024xf32, #nisa.mem<sbuf>>\n";

static int64_t tensor_busy(enum target target, int64_t *half) {
  struct timed t;
  struct sim_profile p;
  char text[4000];
  int64_t busy = 0;
  snprintf(text, sizeof text, "module attributes {nisa.target = #nisa.target<%s>} {\nfunc.func @k(%s" END,
           target_name(target), product);
  time_text(&t, text, target);
  sim_profile_make(&t.timeline, &t.arena, &p);
  for (int k = 0; k < t.timeline.n_lanes; k++)
    if (t.timeline.lanes[k].engine == NISA_ENGINE_TENSOR)
      busy = p.lanes[k].busy_ps;
  assert_int_equal(p.matmul_operations, 2LL * 1024 * 1024 * 1024);
  *half = p.half_clock_ps;
  forget(&t);
  return busy;
}

static void a_tiled_product_keeps_the_tensor_engine_busy_for_its_cycles(void **state) {
  enum { PRODUCTS = 8 * 2 * 8 };
  int64_t half;
  (void)state;
  assert_int_equal(tensor_busy(TARGET_TRN1, &half), PRODUCTS * cycles(512, 2800));
  assert_int_equal(half, 0);
  assert_int_equal(tensor_busy(TARGET_TRN3, &half), PRODUCTS * cycles(512, 2400));
  assert_int_equal(half, 0);
  /* half of the clock for the first window, 3413 ns: what it computes takes twice as long; the stationary operand of the
   * first product is loaded meanwhile, in 128 cycles */
  const int64_t first_window = 3413000 - 2 * cycles(128, 2400);
  assert_int_equal(tensor_busy(TARGET_TRN2, &half), PRODUCTS * cycles(512, 2400) + first_window / 2);
}

/* ---- what holds in every timeline -------------------------------------------------------------------------------- */

enum { ENGINES = 4, LANES = 7, ITEMS_MAX = 60, WAITS = 3 };

/* One item of a random program: which lane, and what it waits for: the count-th signal of a lane. */
struct item {
  int lane, n_waits;
  struct {
    int lane, count;
  } wait[WAITS];
};

struct random_program {
  int n, count[LANES]; /* items of each lane */
  struct item item[ITEMS_MAX];
  struct buf text;
};

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static const char *const lane_names[LANES] = {"tensor", "vector", "scalar", "gpsimd", "sync", "qSyncIn", "qGpsimdOut"};
static const char *const lane_instrs[LANES] = {
    [0] = MATMUL(T("128"), S("512")) " signal",
    [1] = "nisa.tensor_copy(dst" S("512") ", src" P("512") ") engine=vector signal",
    [2] = "nisa.activation(dst" S("512") ", src" T("512") ", bias" O ", scale=f32 %one, op=exp) engine=scalar signal",
    [3] = "nisa.tensor_copy(dst" T("512") ", src" S("512") ") engine=gpsimd signal",
    [5] = "nisa.dma_copy(dst" S("512") ", src" H("512") ") engine=dma signal",
    [6] = "nisa.dma_copy(dst" H("64") ", src" S("64") ") engine=dma signal", /* by descriptors that GpSimd builds */
};

static int trigger_of(int lane) {
  return lane == 5 ? 4 : lane == 6 ? 3 : -1;
}

/* Items in one order in which they can run: each waits only for earlier ones. */
static void draw(struct random_program *r, uint32_t seed) {
  memset(r, 0, sizeof *r);
  r->n = 5 + (int)(next_random(&seed) % (ITEMS_MAX - 5));
  for (int k = 0; k < r->n; k++) {
    struct item *x = &r->item[k];
    do
      x->lane = (int)(next_random(&seed) % LANES);
    while (x->lane == 4);
    for (int w = (int)(next_random(&seed) % WAITS); w > 0; w--) {
      const int lane = (int)(next_random(&seed) % LANES);
      if (lane == x->lane || !r->count[lane])
        continue;
      x->wait[x->n_waits].lane = lane;
      x->wait[x->n_waits++].count = 1 + (int)(next_random(&seed) % (unsigned)r->count[lane]);
    }
    r->count[x->lane]++;
  }
}

static void write_lane(struct random_program *r, int lane) {
  if (trigger_of(lane) < 0)
    buf_printf(&r->text, "nisa.program %s {\n", lane_names[lane]);
  else
    buf_printf(&r->text, "nisa.queue %s on %s {\n", lane_names[lane], lane_names[trigger_of(lane)]);
  for (int k = 0; k < r->n; k++) {
    const struct item *x = &r->item[k];
    if (x->lane != lane && trigger_of(x->lane) != lane)
      continue;
    for (int w = 0; trigger_of(lane) < 0 && w < x->n_waits; w++)
      buf_printf(&r->text, "nisa.wait %s >= %d\n", lane_names[x->wait[w].lane], x->wait[w].count);
    if (x->lane == lane)
      buf_printf(&r->text, "%s\n", lane_instrs[lane]);
    else
      buf_printf(&r->text, "nisa.dma_trigger %s\n", lane_names[x->lane]);
  }
  buf_puts(&r->text, "}\n");
}

static const char *write_program(struct random_program *r) {
  buf_init(&r->text, 1 << 20);
  buf_printf(&r->text, MODULE("trn2") "%s", memories);
  for (int k = 0; k < LANES; k++)
    write_lane(r, k);
  buf_puts(&r->text, END);
  assert_int_equal(buf_status(&r->text), ST_OK);
  return buf_text(&r->text);
}

static int lane_number(const struct sim_timeline *t, const char *name) {
  for (int k = 0; k < t->n_lanes; k++)
    if (!strcmp(t->lanes[k].name, name))
      return k;
  return -1;
}

/* The n-th instruction or transfer of a lane, from 1. */
static const struct sim_exec *nth(const struct sim_timeline *t, int lane, int n, enum sim_exec_kind kind) {
  for (int k = 0; k < t->n; k++)
    if (t->execs[k].lane == lane && t->execs[k].kind == kind && !--n)
      return &t->execs[k];
  fail_msg("a lane lacks an execution");
  return NULL;
}

static const struct sim_exec *done(const struct sim_timeline *t, int lane, int n) {
  const int at = lane_number(t, lane_names[lane]);
  return nth(t, at, n, trigger_of(lane) < 0 ? SIM_EXEC_INSTR : SIM_EXEC_TRANSFER);
}

static void no_engine_does_two_things_at_once(const struct sim_timeline *t) {
  int64_t free[LANES + 1] = {0};
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    if (t->lanes[x->lane].trigger >= 0)
      continue;
    assert_true(x->start >= free[x->lane]);
    free[x->lane] = x->free;
  }
}

static void nothing_starts_before_what_it_waits_for(const struct sim_timeline *t, const struct random_program *r) {
  int seen[LANES] = {0}, triggers[LANES] = {0};
  for (int k = 0; k < r->n; k++) {
    const struct item *x = &r->item[k];
    const int on = trigger_of(x->lane) < 0 ? x->lane : trigger_of(x->lane);
    const struct sim_exec *e = trigger_of(x->lane) < 0
                                   ? done(t, x->lane, ++seen[x->lane])
                                   : nth(t, lane_number(t, lane_names[on]), ++triggers[on], SIM_EXEC_TRIGGER);
    for (int w = 0; w < x->n_waits; w++) {
      const struct sim_exec *from = done(t, x->wait[w].lane, x->wait[w].count);
      const int64_t latency = sim_cost_signal(t->lanes[from->lane].engine, t->lanes[e->lane].engine, t->target);
      assert_true(e->start >= from->end + latency);
    }
    if (trigger_of(x->lane) >= 0)
      assert_true(done(t, x->lane, ++seen[x->lane])->start > e->start);
  }
}

/* Each start is what its cause says, so no chain of causes is longer. */
static void each_start_has_its_cause(const struct sim_timeline *t) {
  for (int k = 0; k < t->n; k++) {
    const struct sim_exec *x = &t->execs[k];
    const struct sim_exec *cause = x->cause < 0 ? NULL : &t->execs[x->cause];
    const int64_t begun = x->is_matmul && x->reason == SIM_REASON_SIGNAL ? x->ready : x->start;
    switch ((enum sim_reason)x->reason) {
    case SIM_REASON_START:
      assert_int_equal(x->is_matmul ? x->ready : x->start, 0);
      break;
    case SIM_REASON_ENGINE:
      assert_int_equal(x->start, cause->free);
      break;
    case SIM_REASON_STATIONARY:
      assert_int_equal(x->ready, cause->start);
      break;
    case SIM_REASON_SIGNAL:
    case SIM_REASON_INTERLOCK:
      assert_int_equal(begun,
                       cause->end + sim_cost_signal(t->lanes[cause->lane].engine, t->lanes[x->lane].engine, t->target));
      break;
    case SIM_REASON_BUILD:
      assert_int_equal(x->start, cause->end);
      break;
    case SIM_REASON_TRIGGER:
      assert_int_equal(x->start, x->ready);
      assert_true(cause->kind == SIM_EXEC_TRIGGER && cause->start < x->start);
      break;
    case SIM_REASON_QUEUE:
      assert_true(x->start > x->ready && cause->lane == x->lane && cause->start <= x->start);
      break;
    default:
      fail_msg("a reason that this program cannot have");
    }
  }
}

static void the_total_is_the_longest_path(const struct sim_timeline *t, struct arena *a) {
  struct sim_profile p;
  int64_t end = 0, sum = 0;
  sim_profile_make(t, a, &p);
  for (int k = 0; k < p.n_path; k++) {
    assert_int_equal(p.path[k].from_ps, end);
    end = p.path[k].to_ps;
  }
  assert_int_equal(end, t->total_ps);
  for (int k = 0; k < SIM_WAIT_COUNT; k++)
    sum += p.path_waits_ps[k];
  assert_int_equal(sum, t->total_ps);
}

static void random_programs_keep_the_rules(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 150; seed++) {
    struct random_program r;
    struct timed t;
    draw(&r, seed);
    time_text(&t, write_program(&r), TARGET_TRN2);
    no_engine_does_two_things_at_once(&t.timeline);
    nothing_starts_before_what_it_waits_for(&t.timeline, &r);
    each_start_has_its_cause(&t.timeline);
    the_total_is_the_longest_path(&t.timeline, &t.arena);
    forget(&t);
    buf_clear(&r.text);
  }
}

static void report(struct timed *t, struct buf *out) {
  struct sim_profile p;
  sim_profile_make(&t->timeline, &t->arena, &p);
  buf_init(out, 1 << 24);
  assert_int_equal(sim_report_json(&p, NULL, out), ST_OK);
  assert_int_equal(sim_report_trace(&p, out), ST_OK);
  assert_int_equal(sim_report_text(&p, out), ST_OK);
}

static void timing_twice_gives_the_same_bytes(void **state) {
  struct random_program r;
  struct timed t;
  struct buf first, second;
  (void)state;
  draw(&r, 7);
  time_text(&t, write_program(&r), TARGET_TRN2);
  report(&t, &first);
  assert_int_equal(time_program(&t, TARGET_TRN2), ST_OK);
  report(&t, &second);
  assert_string_equal(buf_text(&first), buf_text(&second));
  buf_clear(&first);
  buf_clear(&second);
  forget(&t);
  buf_clear(&r.text);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

#define TILE "memref<128x128xf32, #nisa.mem<sbuf>>"
#define COPY(dst, src) \
  "nisa.tensor_copy(dst<128| 128>=" TILE " %" dst "[d0, d1], src<128| 128>=" TILE " %" src "[d0, d1]) engine=vector\n"

/* %a and %b take turns in each round, so both live from the first round to the last one. */
static void a_place_of_two_buffers_counts_once(void **state) {
  static const char text[] =
      MODULE("trn2") "%hbm: memref<128x128xf32, #nisa.mem<shared_hbm>>) {\n"
                     "%a = nisa.alloc at=[0, 0] : " TILE "\n%b = nisa.alloc at=[0, 0] : " TILE "\n"
                     "%c = nisa.alloc at=[0, 512] : " TILE "\n"
                     "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c4 = arith.constant 4 : index\n"
                     "nisa.program vector {\nscf.for %i = %c0 to %c4 step %c1 {\n" COPY("a", "c") COPY("c", "a")
                         COPY("b", "c") COPY("c", "b") "}\n}\n"
                                                       "return\n}\n}\n";
  struct timed t;
  struct sim_profile p;
  int64_t fullest = 0;
  (void)state;
  time_text(&t, text, TARGET_TRN2);
  sim_profile_make(&t.timeline, &t.arena, &p);
  const struct sim_occupancy *o = &p.sbuf[0];
  assert_true(o->n_lives == 3);
  assert_int_equal(o->peak_bytes, 512 + 512);
  for (int k = 0; k < o->n_points; k++)
    fullest = o->points[k].bytes > fullest ? o->points[k].bytes : fullest;
  assert_int_equal(fullest, o->peak_bytes);
  assert_int_equal(o->points[o->n_points - 1].bytes, 0);
  forget(&t);
}

/* ---- programs that cannot end ------------------------------------------------------------------------------------ */

static void fails(const char *streams, const char *text) {
  struct timed t;
  char program[4000];
  snprintf(program, sizeof program, MODULE("trn2") "%s%s" END, memories, streams);
  read_program(&t, program, TARGET_TRN2);
  assert_int_equal(time_program(&t, TARGET_TRN2), ST_INPUT);
  assert_string_equal(t.fault.text, text);
  forget(&t);
}

static void a_wait_that_is_never_met_is_a_fault(void **state) {
  (void)state;
  fails("nisa.program vector {\nnisa.wait scalar >= 1\n"
        "nisa.tensor_copy(dst" S("512") ", src" P("512") ") engine=vector signal\n}\n"
                                                         "nisa.program scalar {\nnisa.wait vector >= 1\n"
                                                         "nisa.tensor_copy(dst" T("512") ", src" P(
                                                             "512") ") engine=scalar signal\n}\n",
        "vector waits for scalar >= 1, which never happens");
}

static void a_transfer_that_nothing_starts_is_a_fault(void **state) {
  (void)state;
  fails("nisa.program sync {\nnisa.dma_trigger qSyncIn\n}\nnisa.queue qSyncIn on sync {\n"
        "nisa.dma_copy(dst" S("512") ", src" H("512") ") engine=dma signal\n"
                                                      "nisa.dma_copy(dst" T("512") ", src" H(
                                                          "512") ") engine=dma signal\n}\n",
        "nothing starts a transfer of qSyncIn");
}

static void engines_wait_for_each_other_at_a_barrier(void **state) {
  static const char streams[] = "nisa.program vector {\nnisa.tensor_copy(dst" S("512") ", src" P(
      "512") ") engine=vector\nnisa.barrier\n}\n"
             "nisa.program scalar {\nnisa.barrier\nnisa.tensor_copy(dst" T("512") ", src" P(
                 "512") ") engine=scalar\n}\n";
  struct timed t;
  char program[4000];
  (void)state;
  snprintf(program, sizeof program, MODULE("trn2") "%s%s" END, memories, streams);
  time_text(&t, program, TARGET_TRN2);
  const int scalar = lane_number(&t.timeline, "scalar"), vector = lane_number(&t.timeline, "vector");
  assert_true(nth(&t.timeline, scalar, 1, SIM_EXEC_INSTR)->start > nth(&t.timeline, vector, 1, SIM_EXEC_INSTR)->end);
  forget(&t);
}

static void a_loop_without_end_is_a_fault(void **state) {
  static const char loop[] =
      "%hbm: memref<128x1024xf32, #nisa.mem<shared_hbm>>) {\n%t = nisa.alloc : memref<1x8xf32, #nisa.mem<sbuf>>\n"
      "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%n = arith.constant 1000000000000 : index\n"
      "%zero = arith.constant 0.0 : f32\nscf.for %i = %c0 to %n step %c1 {\n"
      "nisa.memset(dst<1| 8>=memref<1x8xf32, #nisa.mem<sbuf>> %t[d0, d1], value=f32 %zero) engine=vector\n}\n"
      "nisa.release %t : memref<1x8xf32, #nisa.mem<sbuf>>\n";
  const struct sim_time_options options = {.target = TARGET_TRN2, .executions_max = 10000};
  struct timed t;
  char program[4000];
  (void)state;
  snprintf(program, sizeof program, MODULE("trn2") "%s" END, loop);
  read_program(&t, program, TARGET_TRN2);
  assert_int_equal(sim_time(&t.program, &options, &t.arena, &t.timeline, &t.fault), ST_INPUT);
  assert_int_equal(t.fault.kind, SIM_FAULT_TIME);
  forget(&t);
}

/* ---- control that depends on data -------------------------------------------------------------------------------- */

/* Reads a number from memory and runs as many rounds. */
static const char rounds[] =
    "module attributes {nisa.target = #nisa.target<\"trn2\">} {\n"
    "func.func @k(%a: memref<1x1xi32, #nisa.mem<shared_hbm>>) -> memref<1x1xi32, #nisa.mem<shared_hbm>> {\n"
    "%s = nisa.alloc : memref<1x1xi32, #nisa.mem<sbuf>>\n%t = nisa.alloc : memref<1x8xf32, #nisa.mem<sbuf>>\n"
    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%zero = arith.constant 0.0 : f32\n"
    "nisa.dma_copy(dst<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %s[d0, d1], "
    "src<1| 1>=memref<1x1xi32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma\n"
    "%v = nisa.register_load(src<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %s[d0, d1]) engine=sync : i32\n"
    "%n = arith.index_cast %v : i32 to index\n"
    "scf.for %i = %c0 to %n step %c1 {\n"
    "nisa.memset(dst<1| 8>=memref<1x8xf32, #nisa.mem<sbuf>> %t[d0, d1], value=f32 %zero) engine=vector\n}\n"
    "nisa.release %s : memref<1x1xi32, #nisa.mem<sbuf>>\nnisa.release %t : memref<1x8xf32, #nisa.mem<sbuf>>\n"
    "return %a : memref<1x1xi32, #nisa.mem<shared_hbm>>\n}\n}\n";

static int64_t on_vector(const struct timed *t) {
  struct sim_profile p;
  sim_profile_make(&t->timeline, (struct arena *)&t->arena, &p);
  return p.lanes[lane_number(&t->timeline, "vector")].executions;
}

static void branches_on_data_go_as_they_went_with_values(void **state) {
  const int32_t n = 5;
  int32_t out;
  const void *args[] = {&n};
  void *results[] = {&out};
  struct timed t;
  struct sim_record record;
  (void)state;
  read_program(&t, rounds, TARGET_TRN2);
  sim_record_init(&record, t.program.n_streams, &t.arena);
  if (sim_run(&t.program, args, results, &(struct sim_options){.record = &record}, NULL, &t.fault))
    fail_msg("%s", t.fault.text);
  const struct sim_time_options options = {.target = TARGET_TRN2, .record = &record};
  assert_int_equal(sim_time(&t.program, &options, &t.arena, &t.timeline, &t.fault), ST_OK);
  assert_int_equal(t.timeline.n_assumed, 0);
  assert_int_equal(on_vector(&t), n);
  forget(&t);
}

static void without_values_a_loop_on_data_is_assumed_to_run_once(void **state) {
  struct timed t;
  (void)state;
  time_text(&t, rounds, TARGET_TRN2);
  assert_int_equal(t.timeline.n_assumed, 2);
  assert_int_equal(on_vector(&t), 1);
  forget(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_copy_from_psum_takes_a_cycle_an_element),
      cmocka_unit_test(vector_copies_faster_inside_sbuf),
      cmocka_unit_test(two_operands_in_sbuf_take_two_cycles_an_element),
      cmocka_unit_test(a_reduction_takes_a_cycle_an_element),
      cmocka_unit_test(an_operand_of_each_partition_costs_an_access_more),
      cmocka_unit_test(an_exponential_loads_its_table_and_takes_a_cycle_an_element),
      cmocka_unit_test(a_product_takes_a_cycle_a_column_and_four_in_f32),
      cmocka_unit_test(a_lone_transfer_takes_its_descriptors_and_its_fixed_parts),
      cmocka_unit_test(short_descriptors_cost_their_overhead),
      cmocka_unit_test(a_tiled_product_keeps_the_tensor_engine_busy_for_its_cycles),
      cmocka_unit_test(random_programs_keep_the_rules),
      cmocka_unit_test(timing_twice_gives_the_same_bytes),
      cmocka_unit_test(a_wait_that_is_never_met_is_a_fault),
      cmocka_unit_test(a_transfer_that_nothing_starts_is_a_fault),
      cmocka_unit_test(engines_wait_for_each_other_at_a_barrier),
      cmocka_unit_test(a_place_of_two_buffers_counts_once),
      cmocka_unit_test(a_loop_without_end_is_a_fault),
      cmocka_unit_test(branches_on_data_go_as_they_went_with_values),
      cmocka_unit_test(without_values_a_loop_on_data_is_assumed_to_run_once),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
