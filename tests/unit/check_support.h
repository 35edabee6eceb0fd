/* check_support: runs IR text in the check, for tests. */
#ifndef UNIT_CHECK_SUPPORT_H
#define UNIT_CHECK_SUPPORT_H

#include "driver/check_internal.h"
#include "linalg_support.h"

struct job {
  struct arena arena;
  struct diags ds;
  MlirModule m;
  int n_in, n_out;
  struct trace_array in[4], out[4];
};

static void job_begin(struct job *j, const char *text) {
  memset(j, 0, sizeof *j);
  arena_init(&j->arena);
  diags_init(&j->ds, &j->arena);
  if (ir_parse(&ir, text, strlen(text), "t.mlir", &j->arena, &j->ds, &j->m))
    fail_msg("%s", j->ds.v[0].message);
}

static void job_end(struct job *j) {
  mlirModuleDestroy(j->m);
  arena_clear(&j->arena);
}

/* An f32 input counting up from `first`. */
static void count_up(struct job *j, float first, int rank, const int64_t *dims) {
  struct trace_array *x = &j->in[j->n_in++];
  x->shape = hlo_shape_array(&j->arena, DT_F32, rank, dims);
  int64_t n = hlo_shape_elements(&x->shape);
  float *v = x->data = arena_new_array(&j->arena, float, (size_t)n);
  for (int64_t k = 0; k < n; k++)
    v[k] = first + (float)k;
}

static void result(struct job *j, int rank, const int64_t *dims) {
  j->out[j->n_out++].shape = hlo_shape_array(&j->arena, DT_F32, rank, dims);
}

/* Runs the same module as machine code; the results must be those of the interpreter. */
static void compare_with_machine_code(struct job *j) {
  struct check_program *p;
  struct check_result r;
  struct trace_array got[4];
  for (int k = 0; k < j->n_out; k++)
    got[k].shape = j->out[k].shape;
  assert_int_equal(check_open(&ir, j->m, "k", &j->arena, &j->ds, &p), ST_OK);
  check_set_machine_code(p);
  assert_int_equal(check_link(&ir, p, &j->arena, &j->ds), ST_OK);
  assert_int_equal(check_run(p, j->n_in, j->in, j->n_out, got, &j->arena, &j->ds), ST_OK);
  check_compare(j->n_out, got, j->out, &r);
  if (!r.pass)
    fail_msg("the interpreter and machine code differ by %g", r.max_abs_err);
  check_unload(p);
}

static enum status run_job(struct job *j) {
  enum status st = check_execute(&ir, j->m, "k", j->n_in, j->in, j->n_out, j->out, &j->arena, &j->ds);
  if (!st)
    compare_with_machine_code(j);
  return st;
}

static void run_ok(struct job *j) {
  if (run_job(j))
    fail_msg("%s", j->ds.v[0].message);
}

static float at(const struct job *j, int output, int64_t k) {
  return ((const float *)j->out[output].data)[k];
}

#endif
