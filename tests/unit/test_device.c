/* test_device: NEFFs on a device through libnrt's interface, which a library of the tests has (tests/neuron/libnrt.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff/device.h"
#include "neff/neff.h"
#include "neff/nrt.h"

#include <cmocka.h> /* after ours: it defines fail() */

#include "device_support.h"

static struct buf package; /* copies its input */

static int begin(void **state) {
  (void)state;
  find_library();
  make_package(DEVICE_IN_PLACE, &package);
  return 0;
}

static int end(void **state) {
  (void)state;
  buf_clear(&package);
  return 0;
}

/* ---- a whole run ------------------------------------------------------------------------------------------------- */

static const struct device_options options = {.library = library};

/* The model's input and output have one tensor, as its names say. */
static enum status execute(struct device *d, struct device_model *m, const float *in, float *out, struct diags *ds) {
  const struct device_io *ios;
  struct device_tensor *t;
  const int n = device_ios(m, &ios);
  assert_int_equal(n, 2);
  assert_string_equal(ios[0].name, "x.must_alias_input");
  assert_string_equal(ios[1].name, "x");
  assert_true(!ios[0].is_output && ios[1].is_output && ios[1].type == NRT_DTYPE_FLOAT32);
  assert_true(ios[0].size == BYTES && ios[0].rank == 2 && ios[0].dims[0] == 4 && ios[0].dims[1] == 8);
  enum status st = device_tensor_new(d, device_core(m), BYTES, "x", ds, &t);
  if (!st)
    st = device_tensor_write(t, 0, in, BYTES, ds);
  if (!st)
    st = device_profile_start(m, "/dev/null", ds);
  if (st)
    return st;
  const struct device_argument input = {ios[0].name, t}, output = {ios[1].name, t};
  st = device_execute(m, 1, &input, 1, &output, ds, NULL);
  const enum status stopped = device_profile_stop(m, "/dev/null", ds);
  st = st ? st : stopped;
  return st ? st : device_tensor_read(t, 0, out, BYTES, ds);
}

/* Opens, loads, executes and closes.  group: see device_load. */
static enum status run(const struct device_group *group, const float *in, float *out, struct diags *ds,
                       struct device_about *about) {
  struct device *d = NULL;
  struct device_model *m;
  enum status st = device_open(&options, ds, &d);
  if (st)
    return st;
  *about = *device_about(d);
  assert_true(about->is_stand_in && strstr(about->version, NRT_STAND_IN));
  st = device_load(d, package.data, package.len, 0, group, ds, &m);
  if (!st)
    st = execute(d, m, in, out, ds);
  const enum status closed = device_close(d, ds);
  return st ? st : closed;
}

static void a_package_runs_and_everything_is_released(void **state) {
  (void)state;
  float in[N], out[N] = {0};
  struct device_about about;
  struct diags ds;
  struct arena a;
  for (int i = 0; i < N; i++)
    in[i] = (float)i * 0.5f;
  arena_init(&a);
  diags_init(&ds, &a);
  assert_int_equal(run(NULL, in, out, &ds, &about), ST_OK);
  assert_memory_equal(in, out, BYTES);
  assert_int_equal(about.cores, 2);
  assert_int_equal(live(), 0);
  arena_clear(&a);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static const char *const functions[] = {
#define NRT_FUNCTION(kind, result, name, parameters) #name,
#include "neff/nrt.def"
#undef NRT_FUNCTION
};

static bool returns_no_status(const char *f) {
  return !strcmp(f, "nrt_close") || !strcmp(f, "nrt_destroy_tensor_set") || !strcmp(f, "nrt_tensor_free");
}

/* A program loads itself alone or as the only one of a group. */
static const struct device_group *group_of(const char *failing) {
  static const struct device_group alone = {0, 1};
  return strncmp(failing, "nrt_load_collectives", sizeof "nrt_load_collectives" - 1) ? NULL : &alone;
}

/* The run with a failure; the message must have the words. */
static void fail_in(const char *failing, const char *words, const char *more_words) {
  float in[N] = {0}, out[N];
  struct device_about about;
  struct diags ds;
  struct arena a;
  arena_init(&a);
  diags_init(&ds, &a);
  setenv("NRT_STAND_IN_FAIL", failing, 1);
  const enum status st = run(group_of(failing), in, out, &ds, &about);
  unsetenv("NRT_STAND_IN_FAIL");
  if (st != ST_INPUT || ds.n != 1 || ds.v[0].code != DG_NEURON_STATUS)
    fail_msg("%s: status %d, %d diagnostics", failing, st, ds.n);
  if (!strstr(ds.v[0].message, words) || !strstr(ds.v[0].message, more_words))
    fail_msg("%s: \"%s\" lacks \"%s\" or \"%s\"", failing, ds.v[0].message, words, more_words);
  if (live())
    fail_msg("%s: %d objects are left", failing, live());
  arena_clear(&a);
}

static void each_call_that_fails_is_reported_and_leaves_nothing(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    char failing[128];
    if (returns_no_status(functions[k]))
      continue;
    snprintf(failing, sizeof failing, "%s=4", functions[k]);
    fail_in(failing, functions[k], "NRT_RESOURCE (4)");
  }
}

/* True if the run reached the call, and it failed as it must. */
static bool fails_at(const char *function, int nth) {
  char failing[128];
  float in[N] = {0}, out[N];
  struct device_about about;
  struct diags ds;
  struct arena a;
  snprintf(failing, sizeof failing, "%s@%d=4", function, nth);
  arena_init(&a);
  diags_init(&ds, &a);
  assert_int_equal(run(group_of(failing), in, out, &ds, &about),
                   ST_OK); /* the library counts from nrt_init on, which a failure before it does not reach */
  setenv("NRT_STAND_IN_FAIL", failing, 1);
  const enum status st = run(group_of(failing), in, out, &ds, &about);
  unsetenv("NRT_STAND_IN_FAIL");
  const bool is_reached = st != ST_OK;
  if (is_reached &&
      (st != ST_INPUT || ds.n != 1 || ds.v[0].code != DG_NEURON_STATUS || !strstr(ds.v[0].message, function)))
    fail_msg("%s: status %d, %d diagnostics", failing, st, ds.n);
  if (live())
    fail_msg("%s: %d objects are left", failing, live());
  arena_clear(&a);
  return is_reached;
}

enum { CALLS_MAX = 100 };

static void every_call_of_a_run_fails_in_turn(void **state) {
  (void)state;
  int calls = 0;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    if (returns_no_status(functions[k]))
      continue;
    int n = 0;
    while (n < CALLS_MAX && fails_at(functions[k], n + 1))
      n++;
    if (!n)
      fail_msg("a run has no call of %s", functions[k]);
    calls += n;
  }
  assert_in_range(calls, 18,
                  CALLS_MAX - 1); /* two tensor sets, each with a tensor, and each other function at least once */
}

static void each_status_has_its_name_and_a_meaning(void **state) {
  (void)state;
  static const struct {
    int number;
    const char *name;
  } statuses[] = {
#define NRT_STATUS(number, name, what) {number, "NRT_" #name " (" #number "): " what},
#include "neff/nrt_status.def"
#undef NRT_STATUS
  };
  for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++) {
    char failing[64];
    if (!statuses[k].number)
      continue;
    snprintf(failing, sizeof failing, "nrt_execute=%d", statuses[k].number);
    fail_in(failing, "nrt_execute", statuses[k].name);
  }
  fail_in("nrt_execute=77", "nrt_execute", "status 77, which is not documented");
}

static void a_failure_in_the_second_of_two_calls_releases_what_the_first_made(void **state) {
  (void)state;
  fail_in("nrt_allocate_tensor_set@2=11", "nrt_allocate_tensor_set", "NRT_FAIL_HOST_MEM_ALLOC");
  fail_in("nrt_add_tensor_to_tensor_set@2=2", "nrt_add_tensor_to_tensor_set of x", "NRT_INVALID");
}

static void the_program_of_a_group_is_loaded_with_its_rank(void **state) {
  (void)state;
  struct device *d = NULL;
  struct device_model *m;
  struct diags ds;
  struct arena a;
  const struct device_group alone = {0, 1}, pair = {1, 2};
  arena_init(&a);
  diags_init(&ds, &a);
  assert_int_equal(device_open(&options, &ds, &d), ST_OK);
  assert_int_equal(device_load(d, package.data, package.len, 0, &alone, &ds, &m), ST_OK);
  assert_int_equal(device_load(d, package.data, package.len, 0, &pair, &ds, &m), ST_INPUT);
  assert_non_null(strstr(ds.v[0].message, "nrt_load_collectives: NRT_INVALID (2)"));
  assert_int_equal(device_close(d, &ds), ST_OK);
  assert_int_equal(live(), 0);
  arena_clear(&a);
}

static void a_core_that_is_not_visible_and_a_bad_range_are_refused(void **state) {
  (void)state;
  struct device *d = NULL;
  struct device_model *m;
  struct diags ds;
  struct arena a;
  static const char *const bad[] = {"", "-1", "3-2", "1-", "1,2", "a", "1-99999"};
  arena_init(&a);
  diags_init(&ds, &a);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    const struct device_options with = {.library = library, .cores = bad[k]};
    assert_int_equal(device_open(&with, &ds, &d), ST_INPUT);
    assert_int_equal(ds.v[ds.n - 1].code, DG_BAD_ARGUMENT);
  }
  const struct device_options with = {.library = library, .cores = "4-6"};
  assert_int_equal(device_open(&with, &ds, &d), ST_OK);
  assert_int_equal(device_about(d)->cores, 3);
  assert_int_equal(device_load(d, package.data, package.len, 2, NULL, &ds, &m), ST_OK);
  assert_int_equal(device_load(d, package.data, package.len, 3, NULL, &ds, &m), ST_INPUT);
  assert_non_null(strstr(ds.v[ds.n - 1].message, "NRT_LOAD_NOT_ENOUGH_NC (9)"));
  assert_int_equal(device_close(d, &ds), ST_OK);
  assert_int_equal(live(), 0);
  unsetenv("NEURON_RT_VISIBLE_CORES");
  arena_clear(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_package_runs_and_everything_is_released),
      cmocka_unit_test(each_call_that_fails_is_reported_and_leaves_nothing),
      cmocka_unit_test(every_call_of_a_run_fails_in_turn),
      cmocka_unit_test(each_status_has_its_name_and_a_meaning),
      cmocka_unit_test(a_failure_in_the_second_of_two_calls_releases_what_the_first_made),
      cmocka_unit_test(the_program_of_a_group_is_loaded_with_its_rank),
      cmocka_unit_test(a_core_that_is_not_visible_and_a_bad_range_are_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
