/* test_device_run: a job's NEFF on a device, through libnrt's interface (tests/neuron/libnrt.c): the kernel's tensors, aliases, times,
 * each call of the library failing in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/device_run.h"
#include "neff/nrt.h"

#include <cmocka.h> /* after ours: it defines fail() */

#include "device_support.h"

enum { REPEATS = 3, CALLS_MAX = 100 };

static struct buf packages[2];

static int begin(void **state) {
  (void)state;
  find_library();
  make_package(DEVICE_IN_PLACE, &packages[DEVICE_IN_PLACE]);
  make_package(DEVICE_OWN_OUTPUT, &packages[DEVICE_OWN_OUTPUT]);
  return 0;
}

static int end(void **state) {
  (void)state;
  buf_clear(&packages[DEVICE_IN_PLACE]);
  buf_clear(&packages[DEVICE_OWN_OUTPUT]);
  return 0;
}

static const int64_t dims[] = {4, 8};

/* What a kernel of one input and one output makes of its NEFF. */
struct run {
  struct arena arena;
  struct diags ds;
  struct job_device job;
  struct device_run device;
  struct trace_tensor input, output; /* of the kernel */
  float in[N];
  struct trace_array out;
  struct device_times times;
};

static void run_begin(struct run *r, enum device_package which) {
  *r = (struct run){.job = {.library = library,
                            .neff = packages[which].data,
                            .neff_size = packages[which].len,
                            .repeats = REPEATS,
                            .profile_path = "/dev/null"}};
  arena_init(&r->arena);
  diags_init(&r->ds, &r->arena);
  r->input = (struct trace_tensor){"x", hlo_shape_array(&r->arena, DT_F32, 2, dims), -1, false};
  r->output = r->input;
  r->output.name = which == DEVICE_IN_PLACE ? "x" : "y";
  for (int k = 0; k < N; k++)
    r->in[k] = (float)k - 7.5f;
}

/* From opening to closing, with n_in inputs and n_out outputs of the kernel's. */
static enum status run_all(struct run *r, int n_in, int n_out) {
  const struct trace_tensor inputs[] = {r->input, r->input}, outputs[] = {r->output, r->output};
  const struct trace_array array = {.shape = r->input.shape, .data = r->in}, in[] = {array, array};
  struct trace_array out[2] = {0};
  enum status st = device_run_open(&r->job, &r->arena, &r->ds, &r->device);
  if (!st)
    st = device_run_execute(&r->device, n_in, inputs, in, n_out, outputs, out, &r->ds, &r->times);
  const enum status closed = device_run_close(&r->device, &r->ds);
  r->out = out[0];
  return st ? st : closed;
}

static void run_end(struct run *r) {
  arena_clear(&r->arena);
}

static void a_neff_computes_the_kernels_outputs(void **state) {
  (void)state;
  for (int which = 0; which < 2; which++) {
    struct run r;
    run_begin(&r, (enum device_package)which);
    assert_int_equal(run_all(&r, 1, 1), ST_OK);
    assert_int_equal(r.ds.n, 0);
    assert_int_equal(r.device.n_inputs, 1);
    assert_int_equal(r.device.n_outputs, 1);
    assert_string_equal(r.device.inputs[0].name, "x");
    assert_string_equal(r.device.outputs[0].name, r.output.name);
    assert_true(hlo_shape_equal(&r.device.inputs[0].shape, &r.input.shape));
    assert_memory_equal(r.out.data, r.in, BYTES);
    assert_true(r.times.first_ns > 0 && r.times.least_ns > 0 && r.times.median_ns >= r.times.least_ns);
    assert_int_equal(live(), 0);
    run_end(&r);
  }
}

static void what_ran_and_its_times_are_members_of_the_frame(void **state) {
  (void)state;
  struct run r;
  struct buf b;
  run_begin(&r, DEVICE_OWN_OUTPUT);
  r.job.repeats = 0;
  buf_init(&b, 4096);
  assert_int_equal(device_run_open(&r.job, &r.arena, &r.ds, &r.device), ST_OK);
  buf_putc(&b, '{');
  device_run_put_about(&b, &r.device);
  device_run_put_times(&b, &r.device, &(struct device_times){1500, -1, -1});
  assert_non_null(strstr(b.data, library));
  assert_non_null(strstr(b.data, "\"stand_in\":true,\"cores\":2,\"measured\":{\"executions\":1,\"first_us\":1.5}"));
  assert_int_equal(device_run_close(&r.device, &r.ds), ST_OK);
  r.job.repeats = REPEATS;
  b.len = 1;
  device_run_put_times(&b, &r.device, &(struct device_times){4000, 1000, 2000});
  assert_string_equal(b.data, "{\"measured\":{\"executions\":4,\"first_us\":4,\"least_us\":1,\"median_us\":2}");
  buf_clear(&b);
  run_end(&r);
}

/* The run is refused because the NEFF is another kernel's, and leaves nothing. */
static void refuse(struct run *r, int n_in, int n_out, const char *words) {
  assert_int_equal(run_all(r, n_in, n_out), ST_INPUT);
  assert_int_equal(r->ds.n, 1);
  assert_int_equal(r->ds.v[0].code, DG_NEURON_NEFF);
  if (!strstr(r->ds.v[0].message, words))
    fail_msg("\"%s\" lacks \"%s\"", r->ds.v[0].message, words);
  assert_int_equal(live(), 0);
  run_end(r);
}

static void a_neff_of_another_kernel_is_refused(void **state) {
  (void)state;
  struct run r;
  run_begin(&r, DEVICE_OWN_OUTPUT);
  r.input.name = "z";
  refuse(&r, 1, 1, "the NEFF has no input z");
  run_begin(&r, DEVICE_OWN_OUTPUT);
  r.output.name = "x";
  refuse(&r, 1, 1, "the NEFF has no output x");
  run_begin(&r, DEVICE_OWN_OUTPUT);
  r.output.shape = hlo_shape_array(&r.arena, DT_BF16, 2, dims);
  refuse(&r, 1, 1, "the output y has 128 bytes in the NEFF, and 64 in the kernel");
  run_begin(&r, DEVICE_OWN_OUTPUT);
  refuse(&r, 2, 1, "the NEFF has 1 inputs and 1 outputs, the kernel 2 and 1");
  run_begin(&r, DEVICE_OWN_OUTPUT);
  refuse(&r, 1, 0, "the NEFF has 1 inputs and 1 outputs, the kernel 1 and 0");
}

static void a_library_that_is_not_there_leaves_nothing(void **state) {
  (void)state;
  struct run r;
  run_begin(&r, DEVICE_OWN_OUTPUT);
  r.job.library = "/none/libnrt.so.1";
  assert_int_equal(run_all(&r, 1, 1), ST_INPUT);
  assert_int_equal(r.ds.v[0].code, DG_NEURON_LIBRARY);
  run_end(&r);
}

static const char *const functions[] = {
#define NRT_FUNCTION(kind, result, name, parameters) #name,
#include "neff/nrt.def"
#undef NRT_FUNCTION
};

static bool is_called(const char *f) {
  static const char *const not_here[] = {"nrt_close", "nrt_destroy_tensor_set", "nrt_tensor_free",
                                         "nrt_load_collectives"};
  for (size_t k = 0; k < sizeof not_here / sizeof *not_here; k++)
    if (!strcmp(f, not_here[k]))
      return false;
  return true;
}

/* True if a run has an nth call of the function, which failed as it must. */
static bool fails_at(enum device_package which, const char *function, int nth) {
  char failing[128];
  struct run r;
  run_begin(&r, which);
  assert_int_equal(run_all(&r, 1, 1), ST_OK); /* the library counts from nrt_init on, which may not be reached below */
  run_end(&r);
  run_begin(&r, which);
  snprintf(failing, sizeof failing, "%s@%d=4", function, nth);
  setenv("NRT_STAND_IN_FAIL", failing, 1);
  const enum status st = run_all(&r, 1, 1);
  unsetenv("NRT_STAND_IN_FAIL");
  if (st && (st != ST_INPUT || r.ds.n != 1 || r.ds.v[0].code != DG_NEURON_STATUS ||
             !strstr(r.ds.v[0].message, function) || !strstr(r.ds.v[0].message, "NRT_RESOURCE (4)")))
    fail_msg("%s: status %d, %d diagnostics", failing, st, r.ds.n);
  if (live())
    fail_msg("%s: %d objects are left", failing, live());
  run_end(&r);
  return st != ST_OK;
}

static int count_failures(enum device_package which) {
  int calls = 0;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    int n = 0;
    while (is_called(functions[k]) && n < CALLS_MAX && fails_at(which, functions[k], n + 1))
      n++;
    if (is_called(functions[k]) && !n)
      fail_msg("a run has no call of %s", functions[k]);
    calls += n;
  }
  return calls;
}

static void every_call_of_a_run_fails_in_turn(void **state) {
  (void)state;
  const int in_place = count_failures(DEVICE_IN_PLACE), own = count_failures(DEVICE_OWN_OUTPUT);
  assert_in_range(in_place, 20, CALLS_MAX);
  assert_int_equal(own, in_place + 1); /* one more tensor is allocated */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_neff_computes_the_kernels_outputs),
      cmocka_unit_test(what_ran_and_its_times_are_members_of_the_frame),
      cmocka_unit_test(a_neff_of_another_kernel_is_refused),
      cmocka_unit_test(a_library_that_is_not_there_leaves_nothing),
      cmocka_unit_test(every_call_of_a_run_fails_in_turn),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
