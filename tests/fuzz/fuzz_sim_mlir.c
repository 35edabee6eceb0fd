/* The simulator on texts of NISA: what the verifier accepts is decoded and run, within its limits of memory and time.
 *
 * Most changes of single bytes only make a text unreadable, so that the mutator mostly works on lines and numbers: it
 * removes, repeats and exchanges lines, replaces a line's tail by another line's, and changes numbers and words. */
#include <ctype.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"

#include "base/clock.h"
#include "fuzz.h"
#include "ir/query.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/run.h"

enum { TIME_US = 50000, LATE_US = 8000000 };
static const int64_t memory_max = 4 << 20;

static struct ir ir;

/* The name of the first function; NULL if there is none. */
static const char *first_function(struct arena *a, MlirModule m) {
  for (MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(m)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "func.func")) {
      MlirStringRef name = mlirStringAttrGetValue(ir_attr(op, "sym_name"));
      return arena_strndup(a, name.data, name.length);
    }
  return NULL;
}

/* Zeros as arguments, and room for results; false if they are larger than the limit. */
static bool make_values(struct arena *a, int n, const struct sim_value *v, void ***out) {
  *out = arena_new_array(a, void *, (size_t)n);
  for (int k = 0; k < n; k++) {
    if (v[k].bytes < 0 || v[k].bytes > memory_max)
      return false;
    (*out)[k] = arena_alloc(a, (size_t)v[k].bytes);
    memset((*out)[k], 0, (size_t)v[k].bytes);
  }
  return true;
}

static void run(const struct sim_program *p, struct arena *a) {
  const int64_t begin = clock_now_us();
  const struct sim_options options = {.memory_max = memory_max,
                                      .limit = {.wall_us = begin + TIME_US},
                                      .schedule = (enum sim_schedule)(p->n_nodes % SIM_SCHEDULE_COUNT),
                                      .seed = 1};
  struct sim_fault fault;
  void **args, **results;

  if (!make_values(a, p->n_args, p->args, &args) || !make_values(a, p->n_results, p->results, &results))
    return;
  enum status st = sim_run(p, (const void *const *)args, results, &options, NULL, &fault);
  FUZZ_CHECK(!st == !fault.kind);
  FUZZ_CHECK(fault.kind >= 0 && fault.kind < SIM_FAULT_KINDS && memchr(fault.text, 0, sizeof fault.text));
  if (clock_now_us() - begin < LATE_US)
    return;
  fprintf(stderr, "%lld ms\n", (long long)(clock_now_us() - begin) / 1000);
  FUZZ_CHECK(!"the program was stopped in time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct diags ds;
  struct error err;
  struct sim_program p;
  enum target target;
  MlirModule m;

  if (mlirContextIsNull(ir.ctx) && ir_init(&ir, &err))
    abort();
  arena_init(&a);
  diags_init(&ds, &a);
  if (nisa_parse(&ir, (const char *)data, size, "t.nisa", &a, &ds, &m) == ST_OK) {
    MlirOperation module = mlirModuleGetOperation(m);
    const char *name = first_function(&a, m);
    if (name && nisa_module_target(module, &target) && !nisa_verify(module, target, &a, &ds) &&
        !sim_decode(module, name, &a, &ds, &p))
      run(&p, &a);
    mlirModuleDestroy(m);
  }
  arena_clear(&a);
  return 0;
}

/* ---- the mutator ------------------------------------------------------------------------------------------------- */

static uint32_t state;

static uint32_t draw(uint32_t n) {
  state = state * 1664525u + 1013904223u;
  return n ? (state >> 8) % n : 0;
}

struct span {
  size_t at, n;
};

static struct span draw_line(const char *text, size_t size) {
  size_t at = draw((uint32_t)size), end = at;
  while (at > 0 && text[at - 1] != '\n')
    at--;
  while (end < size && text[end++] != '\n')
    ;
  return (struct span){at, end - at};
}

/* A run of characters of one kind that begins at or after a drawn place; {size, 0} if there is none. */
static struct span draw_run(const char *text, size_t size, int (*is)(int)) {
  size_t at = draw((uint32_t)size), n = 0;
  while (at < size && !is((unsigned char)text[at]))
    at++;
  while (at + n < size && is((unsigned char)text[at + n]))
    n++;
  return (struct span){at, n};
}

/* Puts `with` where the span is; returns the new size, or the old one when there is no room. */
static size_t replace(char *text, size_t size, size_t max, struct span s, const char *with, size_t n) {
  static char copy[1 << 16];
  if (size - s.n + n > max || n > sizeof copy)
    return size;
  memcpy(copy, with, n); /* it may be a part of the text */
  memmove(text + s.at + n, text + s.at + s.n, size - s.at - s.n);
  memcpy(text + s.at, copy, n);
  return size - s.n + n;
}

static size_t change_number(char *text, size_t size, size_t max) {
  static const int64_t values[] = {0,   1,   2,   3,   4,   8,     31,    32,      64,
                                   127, 128, 129, 512, 513, 65535, 65536, 1 << 20, INT64_MAX};
  const struct span s = draw_run(text, size, isdigit);
  char number[24];
  int n = snprintf(number, sizeof number, "%lld", (long long)values[draw(sizeof values / sizeof *values)]);
  return replace(text, size, max, s, number, (size_t)n);
}

static size_t change_word(char *text, size_t size, size_t max) {
  const struct span to = draw_run(text, size, isalpha), from = draw_run(text, size, isalpha);
  return replace(text, size, max, to, text + from.at, from.n);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  char *text = (char *)data;
  state = seed;
  if (!size)
    return LLVMFuzzerMutate(data, size, max);
  const struct span a = draw_line(text, size), b = draw_line(text, size);
  switch (draw(10)) {
  case 0:
    return LLVMFuzzerMutate(data, size, max);
  case 1: /* remove a line */
    return replace(text, size, max, a, "", 0);
  case 2: /* repeat a line elsewhere */
    return replace(text, size, max, (struct span){b.at, 0}, text + a.at, a.n);
  case 3:
    return replace(text, size, max, b, text + a.at, a.n);
  case 4: { /* the head of one line, the tail of another */
    const size_t head = draw((uint32_t)b.n), tail = draw((uint32_t)a.n);
    return replace(text, size, max, (struct span){b.at + head, b.n - head}, text + a.at + tail, a.n - tail);
  }
  case 5:
  case 6:
    return change_word(text, size, max);
  default:
    return change_number(text, size, max);
  }
}
