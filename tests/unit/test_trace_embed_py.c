/* The tracer through trace.h, in an embedded interpreter, as the compiler uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "trace/trace.h"

#include <cmocka.h> /* after ours: it defines fail() */

struct fixture {
  struct arena a;
  struct diags ds;
  struct trace_request rq;
  struct trace_program *job;
};

static enum status open_source(struct fixture *f, const char *source) {
  arena_init(&f->a);
  diags_init(&f->ds, &f->a);
  f->rq = (struct trace_request){.source = source, .source_len = strlen(source), .filename = "kernel.py"};
  f->job = NULL;
  return trace_open(&f->a, &f->rq, &f->ds, &f->job);
}

static void close_source(struct fixture *f) {
  trace_close(f->job);
  arena_clear(&f->a);
}

static const struct diag *first(const struct fixture *f) {
  assert_true(f->ds.n > 0);
  return &f->ds.v[0];
}

static const char matmul_add[] = "import numpy as np\n"
                                 "from nkigen import trace, knob\n"
                                 "@trace(input_specs=[((4, 8), 'f32'), ((8, 3), 'f32'), ((3,), 'f32')])\n"
                                 "def kernel(a, b, c):\n"
                                 "    return np.maximum(a @ b + c, 0)\n";

static void a_kernel_is_traced_and_numpy_agrees_on_its_shape(void **state) {
  struct fixture f;
  struct trace_kernel *k = NULL;
  struct trace_array in[3], out[1];
  bool is_drawn;
  (void)state;
  assert_int_equal(open_source(&f, matmul_add), ST_OK);
  assert_int_equal(trace_count(f.job), 1);
  assert_int_equal(trace_kernel(f.job, 0, &f.ds, &k), ST_OK);
  assert_string_equal(k->name, "kernel");
  assert_int_equal(k->n_inputs, 3);
  assert_int_equal(k->n_outputs, 1);
  assert_string_equal(k->inputs[2].name, "c");
  assert_string_equal(k->outputs[0].name, "output0");
  assert_int_equal(k->outputs[0].shape.rank, 2);
  assert_int_equal(trace_make_inputs(k, 7, TRACE_AROUND_ZERO, &f.ds, in, &is_drawn), ST_OK);
  assert_int_equal(trace_eval_numpy(k, in, &f.ds, out), ST_OK);
  const float *a = in[0].data, *b = in[1].data, *c = in[2].data, *r = out[0].data;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 3; j++) {
      float want = c[j];
      for (int n = 0; n < 8; n++)
        want += a[i * 8 + n] * b[n * 3 + j];
      assert_float_equal(r[i * 3 + j], want > 0 ? want : 0, 1e-5);
    }
  assert_int_equal(f.ds.n, 0);
  close_source(&f);
}

static void the_same_seed_gives_the_same_inputs(void **state) {
  struct fixture f;
  struct trace_kernel *k = NULL;
  struct trace_array x[3], y[3], z[3];
  bool is_drawn;
  (void)state;
  assert_int_equal(open_source(&f, matmul_add), ST_OK);
  assert_int_equal(trace_kernel(f.job, 0, &f.ds, &k), ST_OK);
  assert_int_equal(trace_make_inputs(k, 7, TRACE_AROUND_ZERO, &f.ds, x, &is_drawn), ST_OK);
  assert_int_equal(trace_make_inputs(k, 7, TRACE_AROUND_ZERO, &f.ds, y, &is_drawn), ST_OK);
  assert_int_equal(trace_make_inputs(k, 8, TRACE_AROUND_ZERO, &f.ds, z, &is_drawn), ST_OK);
  assert_memory_equal(x[0].data, y[0].data, 4 * 8 * sizeof(float));
  assert_memory_not_equal(x[0].data, z[0].data, 4 * 8 * sizeof(float));
  close_source(&f);
}

static void jobs_can_follow_one_another(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) {
    struct fixture f;
    struct trace_kernel *k = NULL;
    assert_int_equal(open_source(&f, i % 2 ? matmul_add : "def f(:\n"), i % 2 ? ST_OK : ST_INPUT);
    if (i % 2)
      assert_int_equal(trace_kernel(f.job, 0, &f.ds, &k), ST_OK);
    else
      assert_int_equal(first(&f)->code, DG_PYTHON_SYNTAX);
    close_source(&f);
  }
}

static void ending_the_process_is_a_diagnostic(void **state) {
  static const char *const sources[] = {"import sys\nsys.exit(3)\n", "import os\nos._exit(3)\n", "raise SystemExit\n",
                                        "raise KeyboardInterrupt\n", "import os\nos.abort()\n"};
  (void)state;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    struct fixture f;
    assert_int_equal(open_source(&f, sources[i]), ST_INPUT);
    assert_int_equal(first(&f)->code, DG_PYTHON_EXCEPTION);
    assert_non_null(first(&f)->loc);
    close_source(&f);
  }
}

static void what_is_printed_is_kept_up_to_the_limit(void **state) {
  struct fixture f;
  size_t n = 0;
  (void)state;
  assert_int_equal(open_source(&f, "print('hi')\ndef f(x): return x\n"), ST_OK);
  assert_memory_equal(trace_output(f.job, &n), "hi\n", 3);
  assert_int_equal(n, 3);
  close_source(&f);
  assert_int_equal(open_source(&f, "for i in range(9999): print('\\u00e9' * 40)\ndef f(x): return x\n"), ST_OK);
  trace_output(f.job, &n);
  assert_true(n <= TRACE_OUTPUT_MAX && n > TRACE_OUTPUT_MAX - 8);
  close_source(&f);
}

static void warnings_are_diagnostics_with_their_place(void **state) {
  struct fixture f;
  (void)state;
  assert_int_equal(open_source(&f, "import warnings\ndef f(x): return x\nwarnings.warn('mind the gap')\n"), ST_OK);
  assert_int_equal(f.ds.n, 1);
  assert_int_equal(first(&f)->severity, DS_WARNING);
  assert_string_equal(first(&f)->message, "UserWarning: mind the gap");
  assert_int_equal(first(&f)->loc->range.line, 3);
  assert_int_equal(first(&f)->loc->range.end_col, 30);
  close_source(&f);
}

static void a_forked_child_can_trace(void **state) {
  (void)state;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    struct fixture f;
    struct trace_kernel *k = NULL;
    trace_after_fork(1);
    bool ok = open_source(&f, matmul_add) == ST_OK && trace_kernel(f.job, 0, &f.ds, &k) == ST_OK;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The bar is 15 µs an operation; sanitizers and a busy machine get slack, so this only catches a wrong order of growth.
 */
static void tracing_an_operation_is_cheap(void **state) {
  struct fixture f;
  struct trace_kernel *k = NULL;
  (void)state;
  assert_int_equal(open_source(&f, "from nkigen import trace\n"
                                   "@trace(input_specs=[((4, 8), 'f32')])\n"
                                   "def kernel(x):\n"
                                   "    for i in range(5000):\n"
                                   "        x = x * x + x\n"
                                   "    return x\n"),
                   ST_OK);
  int64_t start = clock_now_ns();
  assert_int_equal(trace_kernel(f.job, 0, &f.ds, &k), ST_OK);
  double us = (double)(clock_now_ns() - start) / 1000 / 10000;
  print_message("%.2f us per operation\n", us);
  assert_true(us < 150);
  close_source(&f);
}

/* The check of nki-ast and nki-trace runs their texts: a text that says something else computes something else. */
static void a_text_of_nki_is_what_is_run(void **state) {
  static const char head[] =
      "import nki\nimport nki.language as nl\nimport nki.isa as nisa\nimport numpy as np\n@nki.jit\n";
  static const char text[] = "def k(x):\n"
                             "  out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)\n"
                             "  t = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)\n"
                             "  nisa.dma_copy(dst=t, src=x)\n"
                             "  nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=%s)\n"
                             "  nisa.dma_copy(dst=out, src=t)\n"
                             "  return out\n";
  char source[2048], one[1024], two[1024], none[1024];
  struct fixture f;
  struct trace_kernel *k = NULL;
  struct trace_array in[1], out[1];
  bool is_drawn;
  (void)state;
  snprintf(one, sizeof one, text, "1.0");
  snprintf(two, sizeof two, text, "2.0");
  snprintf(none, sizeof none, text, "a_name_that_is_nowhere");
  snprintf(source, sizeof source, "%s%sk(np.zeros((4, 8), np.float32))\n", head, one);
  assert_int_equal(open_source(&f, source), ST_OK);
  assert_int_equal(trace_kernel(f.job, 0, &f.ds, &k), ST_OK);
  assert_int_equal(trace_make_inputs(k, 7, TRACE_AROUND_ZERO, &f.ds, in, &is_drawn), ST_OK);
  const float *x = in[0].data;
  for (int is_source = 0; is_source < 2; is_source++) {
    const char *const texts[] = {one, two};
    for (int i = 0; i < 2; i++) {
      out[0] = (struct trace_array){.shape = k->outputs[0].shape};
      assert_int_equal(trace_eval_nki_text(k, texts[i], strlen(texts[i]), is_source, in, &f.ds, out), ST_OK);
      for (int e = 0; e < 32; e++)
        assert_float_equal(((const float *)out[0].data)[e], x[e] + (float)(i + 1), 1e-6);
    }
    assert_int_equal(f.ds.n, 0);
  }
  assert_int_equal(trace_eval_nki_text(k, none, strlen(none), false, in, &f.ds, out), ST_INPUT);
  assert_non_null(strstr(first(&f)->message, "a_name_that_is_nowhere"));
  close_source(&f);
}

static int start(void **state) {
  struct error err = {0};
  (void)state;
  const char *build = getenv("BUILD"), *venv = getenv("VENV");
  char python[512], site[512];
  snprintf(python, sizeof python, "%s/python", build ? build : "build");
  snprintf(site, sizeof site, "%s/lib/python3.11/site-packages", venv ? venv : "build/venv");
  enum status st = trace_init(python, site, &err);
  if (st)
    print_message("%s: %s\n", status_name(st), err.text);
  return st ? -1 : 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_is_traced_and_numpy_agrees_on_its_shape),
      cmocka_unit_test(the_same_seed_gives_the_same_inputs),
      cmocka_unit_test(jobs_can_follow_one_another),
      cmocka_unit_test(ending_the_process_is_a_diagnostic),
      cmocka_unit_test(what_is_printed_is_kept_up_to_the_limit),
      cmocka_unit_test(warnings_are_diagnostics_with_their_place),
      cmocka_unit_test(a_forked_child_can_trace),
      cmocka_unit_test(tracing_an_operation_is_cheap),
      cmocka_unit_test(a_text_of_nki_is_what_is_run),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
