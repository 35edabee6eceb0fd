/* nisa_values: runs programs of NISA on given arrays, as many as a test sends, in one process.
 *
 * A request on stdin is one line of decimal numbers, then the text, then the arrays' bytes:
 *
 *     text_bytes memory_max deadline_ms schedule seed n_arrays bytes_of_array_0 …
 *
 * The answer on stdout is one line of JSON: "kind" is "ok", "parse", "verify", "decode", "arguments", or the simulator's
 * name of a fault; with "line" and "message" if something was found, else with the results' types and shapes, and then
 * their bytes follow.  support/simulator.py is the other side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "mlir-c/BuiltinAttributes.h"

#include "base/clock.h"
#include "base/json.h"
#include "ir/query.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/run.h"

enum { ARRAYS_MAX = 256, ANSWER_MAX = 1 << 20, HUGE_PAGE = 2 << 20 };

struct request {
  char *text;
  size_t len;
  struct sim_options options;
  int n;
  long long bytes[ARRAYS_MAX];
  void *arrays[ARRAYS_MAX];
};

/* Memory for an array, to be freed.  Large ones are in large pages, as NumPy's are: a comparison with NumPy would else
 * compare page sizes. */
static void *new_array(size_t n) {
  if (n < 2 * HUGE_PAGE)
    return malloc(n + 1);
  void *p = aligned_alloc(HUGE_PAGE, (n / HUGE_PAGE + 1) * HUGE_PAGE);
  if (p)
    madvise(p, n, MADV_HUGEPAGE);
  return p;
}

static void read_bytes(void *to, size_t n) {
  if (!to || fread(to, 1, n, stdin) != n)
    exit(2);
}

/* False at the end of stdin. */
static bool read_request(struct arena *a, struct request *r) {
  long long len, memory, ms, seed;
  int schedule;
  if (scanf("%lld %lld %lld %d %lld %d", &len, &memory, &ms, &schedule, &seed, &r->n) != 6)
    return false;
  if (len < 0 || schedule < 0 || schedule >= SIM_SCHEDULE_COUNT || r->n < 0 || r->n > ARRAYS_MAX)
    exit(2);
  for (int k = 0; k < r->n; k++)
    if (scanf("%lld", &r->bytes[k]) != 1 || r->bytes[k] < 0)
      exit(2);
  if (getchar() != '\n')
    exit(2);
  r->len = (size_t)len;
  r->text = arena_alloc(a, r->len + 1);
  r->text[r->len] = 0;
  read_bytes(r->text, r->len);
  for (int k = 0; k < r->n; k++) {
    r->arrays[k] = new_array((size_t)r->bytes[k]);
    read_bytes(r->arrays[k], (size_t)r->bytes[k]);
  }
  r->options = (struct sim_options){.memory_max = memory,
                                    .limit = {.wall_us = ms ? clock_now_us() + ms * 1000 : 0},
                                    .schedule = (enum sim_schedule)schedule,
                                    .seed = (uint64_t)seed};
  return true;
}

static void finish(struct buf *b) {
  buf_puts(b, "}\n");
  fwrite(b->data, 1, b->len, stdout);
}

static void answer_fault(const char *kind, const struct src_loc *loc, const char *message, const char *instr) {
  struct buf b;
  buf_init(&b, ANSWER_MAX);
  buf_putc(&b, '{');
  json_put_field_str(&b, "kind", kind);
  json_put_field_int(&b, "line", loc ? loc->range.line : 0);
  json_put_field_str(&b, "message", message);
  json_put_field_str(&b, "instr", instr);
  finish(&b);
  buf_clear(&b);
}

static void answer_diags(const char *kind, const struct diags *ds) {
  answer_fault(kind, ds->n ? ds->v[0].loc : NULL, ds->n ? ds->v[0].message : "", "");
}

static void answer_values(const struct sim_program *p, void *const *results, int64_t run_us, int64_t grown_kib,
                          const struct sim_counts *counts) {
  struct buf b;
  buf_init(&b, ANSWER_MAX);
  buf_putc(&b, '{');
  json_put_field_str(&b, "kind", "ok");
  json_put_field_int(&b, "run_us", run_us);
  json_put_field_int(&b, "instrs", counts->instrs);
  json_put_field_int(&b, "grown_kib", grown_kib);
  json_put_key(&b, "results");
  buf_putc(&b, '[');
  for (int k = 0; k < p->n_results; k++) {
    json_put_comma(&b);
    buf_putc(&b, '{');
    json_put_field_str(&b, "type", sim_type_name(p->results[k].type));
    json_put_field_int(&b, "bytes", p->results[k].bytes);
    json_put_key(&b, "shape");
    buf_putc(&b, '[');
    for (int d = 0; d < p->results[k].rank; d++) {
      json_put_comma(&b);
      json_put_int(&b, p->results[k].dims[d]);
    }
    buf_puts(&b, "]}");
  }
  buf_putc(&b, ']');
  finish(&b);
  buf_clear(&b);
  for (int k = 0; k < p->n_results; k++)
    fwrite(results[k], 1, (size_t)p->results[k].bytes, stdout);
}

/* Processor time: other processes do not count. */
static int64_t processor_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The memory that the process has now, and the most that it had. */
static int64_t resident_kib(void) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%*d %ld", &pages) != 1)
    exit(2);
  fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static int64_t most_kib(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

static void run(const struct sim_program *p, const struct request *r, struct arena *a) {
  struct sim_fault fault;
  struct sim_counts counts;

  if (p->n_args != r->n) {
    answer_fault("arguments", NULL, "another number of arguments", "");
    return;
  }
  for (int k = 0; k < r->n; k++)
    if (p->args[k].bytes != r->bytes[k]) {
      answer_fault("arguments", NULL, "an argument of another size", "");
      return;
    }
  void **results = arena_new_array(a, void *, (size_t)p->n_results);
  for (int k = 0; k < p->n_results; k++) {
    results[k] = new_array((size_t)p->results[k].bytes);
    if (!results[k])
      exit(2);
    memset(results[k], 0, (size_t)p->results[k].bytes); /* the pages are the caller's: not measured */
  }
  const int64_t before_kib = resident_kib(), begin = processor_us();
  if (sim_run(p, (const void *const *)r->arrays, results, &r->options, &counts, &fault)) {
    answer_fault(sim_fault_name(fault.kind), fault.loc, fault.text, fault.instr ? fault.instr->def->name : "");
  } else {
    const int64_t run_us = processor_us() - begin;
    answer_values(p, results, run_us, most_kib() - before_kib, &counts);
  }
  for (int k = 0; k < p->n_results; k++)
    free(results[k]);
}

/* The name of the first function. */
static const char *first_function(struct arena *a, MlirModule m) {
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(m)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "func.func")) {
      MlirStringRef name = mlirStringAttrGetValue(ir_attr(op, "sym_name"));
      return arena_strndup(a, name.data, name.length);
    }
  return "";
}

static void serve(struct ir *ir, const struct request *r, struct arena *a) {
  struct diags ds;
  struct sim_program p;
  MlirModule m;
  enum target target = TARGET_TRN2;

  diags_init(&ds, a);
  if (nisa_parse(ir, r->text, r->len, "t.nisa", a, &ds, &m)) {
    answer_diags("parse", &ds);
    return;
  }
  MlirOperation module = mlirModuleGetOperation(m);
  nisa_module_target(module, &target);
  if (nisa_verify(module, target, a, &ds))
    answer_diags("verify", &ds);
  else if (sim_decode(module, first_function(a, m), a, &ds, &p))
    answer_diags("decode", &ds);
  else
    run(&p, r, a);
  mlirModuleDestroy(m);
}

int main(void) {
  struct ir ir;
  struct error err;
  struct request r;

  if (ir_init(&ir, &err))
    return 2;
  for (;;) {
    struct arena a;
    arena_init(&a);
    const bool is_more = read_request(&a, &r);
    if (is_more) {
      serve(&ir, &r, &a);
      fflush(stdout);
      for (int k = 0; k < r.n; k++)
        free(r.arrays[k]);
    }
    arena_clear(&a);
    if (!is_more)
      break;
  }
  ir_clear(&ir);
  return 0;
}
