/* linalg_support: builds a program with HLO builders, lowers it, runs it and compares with hlo_eval.
 *
 * Every program is checked three times: the module as lowered, its printed text parsed again, and the module after
 * bufferization, which is what memref stages look like.
 */
#ifndef LINALG_SUPPORT_H
#define LINALG_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "driver/check.h"
#include "hlo/build.h"
#include "hlo/passes.h"
#include "hlo_eval.h"
#include "linalg/lower.h"
#include "mlir_support.h"

#include <cmocka.h> /* last: it defines a macro called fail */

enum { IN_MAX = 8 };

struct program {
  struct arena arena;
  struct diags ds;
  struct hlo_module *module;
  struct hlo_builder b;
  int n_in, n_out;
  struct trace_array in[IN_MAX], out[IN_MAX];
  uint64_t random;
  const char *text; /* of the lowered module, without locations */
};

static inline void begin(struct program *p) {
  memset(p, 0, sizeof *p);
  arena_init(&p->arena);
  diags_init(&p->ds, &p->arena);
  p->module = hlo_module_new(&p->arena, "kernel");
  hlo_builder_init(&p->b, p->module);
  p->random = 0x9e3779b97f4a7c15u;
}
static inline void end(struct program *p) {
  arena_clear(&p->arena);
}

static inline uint32_t next_random(struct program *p) {
  p->random = p->random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(p->random >> 33);
}

#define DIMS(...) \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { \
    __VA_ARGS__ \
  }
#define INTS(...) ((const int64_t[]){__VA_ARGS__})
#define SCALAR 0, NULL
static inline struct hlo_ints list(struct program *p, int n, const int64_t *v) {
  return hlo_ints_dup(&p->arena, n, v);
}
#define LIST(p, ...) list((p), DIMS(__VA_ARGS__))
#define NONE ((struct hlo_ints){0, NULL})

/* A parameter with values: floats in (low, high), integers and bool between them inclusive. */
static inline hlo_val input(struct program *p, enum dtype t, double low, double high, int rank, const int64_t *dims) {
  struct trace_array *x = &p->in[p->n_in];
  x->shape = hlo_shape_array(&p->arena, t, rank, dims);
  size_t n = (size_t)hlo_shape_elements(&x->shape), size = dtype_size(t);
  x->data = arena_alloc(&p->arena, n * size);
  for (size_t k = 0; k < n; k++) {
    double u = (double)next_random(p) / 2147483648.0;
    double v = dtype_is_float(t) ? low + u * (high - low) : floor(low + u * (high - low + 1));
    hlo_literal_store(t, v, (char *)x->data + k * size);
  }
  return hlo_parameter(&p->b, arena_printf(&p->arena, "p%d", p->n_in++), x->shape);
}

/* A parameter with the given values. */
static inline hlo_val input_values(struct program *p, enum dtype t, int n, const double *v) {
  hlo_val x = input(p, t, 0, 0, 1, (int64_t[]){n});
  for (int k = 0; k < n; k++)
    hlo_literal_store(t, v[k], (char *)p->in[p->n_in - 1].data + (size_t)k * dtype_size(t));
  return x;
}
#define VALUES(...) \
  (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]) { \
    __VA_ARGS__ \
  }

static inline void append_text(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}
static inline const char *module_text(struct program *p, MlirModule m) {
  struct buf text;
  buf_init(&text, 16 << 20);
  mlirOperationPrint(mlirModuleGetOperation(m), append_text, &text);
  const char *s = arena_strdup(&p->arena, buf_text(&text));
  buf_clear(&text);
  return s;
}

static inline void print_diags(const struct program *p) {
  for (int k = 0; k < p->ds.n; k++)
    print_error("diagnostic: %s\n", p->ds.v[k].message);
}

static inline void run_and_compare(struct program *p, MlirModule m, const char *what) {
  struct trace_array got[IN_MAX] = {{.data = NULL}};
  struct check_result r;

  for (int k = 0; k < p->n_out; k++)
    got[k].shape = p->out[k].shape;
  enum status st = check_execute(&ir, m, "kernel", p->n_in, p->in, p->n_out, got, &p->arena, &p->ds);
  if (st) {
    print_diags(p);
    fail_msg("%s: check_execute says %s\n%s", what, status_name(st), module_text(p, m));
  }
  check_compare(p->n_out, got, p->out, &r);
  if (!r.pass)
    fail_msg("%s: output %d is off by %g (relative %g)\n%s", what, r.worst_output, r.max_abs_err, r.max_rel_err,
             module_text(p, m));
}

/* Ends the program with these results, and checks it in all forms. */
static inline void check_results(struct program *p, int n, hlo_val const *results) {
  static const char BUFFERIZE[] = "builtin.module(one-shot-bufferize{bufferize-function-boundaries "
                                  "function-boundary-type-conversion=identity-layout-map},canonicalize)";
  const char *names[] = {"o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7"};
  MlirModule m, again;

  for (int k = 0; k < n; k++)
    if (!results[k])
      fail_msg("not built: %s", p->b.err.text);
  assert_int_equal(hlo_finish(&p->b, n, results, names), ST_OK);
  p->n_out = n;
  hlo_eval(&p->arena, p->module, p->in, p->out);
  if (linalg_from_hlo(&ir, p->module, &p->ds, &m)) {
    print_diags(p);
    fail_msg("not lowered");
  }
  p->text = module_text(p, m);
  run_and_compare(p, m, "lowered");
  if (ir_parse(&ir, p->text, strlen(p->text), "kernel.mlir", &p->arena, &p->ds, &again)) {
    print_diags(p);
    fail_msg("does not parse again:\n%s", p->text);
  }
  assert_true(mlirOperationVerify(mlirModuleGetOperation(again)));
  mlirModuleDestroy(again);
  if (ir_run_pipeline(&ir, mlirModuleGetOperation(m), BUFFERIZE, &p->arena, &p->ds)) {
    print_diags(p);
    fail_msg("does not bufferize:\n%s", p->text);
  }
  run_and_compare(p, m, "bufferized");
  mlirModuleDestroy(m);
}

static inline void check_result(struct program *p, hlo_val x) {
  check_results(p, 1, &x);
}

static inline void expect_text(const struct program *p, const char *wanted) {
  if (!strstr(p->text, wanted))
    fail_msg("expected %s in\n%s", wanted, p->text);
}
static inline void expect_no_text(const struct program *p, const char *unwanted) {
  if (strstr(p->text, unwanted))
    fail_msg("unexpected %s in\n%s", unwanted, p->text);
}

#endif
