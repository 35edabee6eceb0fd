/* Of an editor's requests the last to enter wins, whichever of them starts its work first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "work/editors.h"
#include "work/work.h"

#include <cmocka.h>

static struct editors *editors;

/* One request. */
struct asked {
  struct editor_place place;
  struct work *work;
  struct work_waiter waiter;
};

static struct asked ask(const char *job) {
  struct asked a = {.work = work_new_stored("a key that no job has, as long as those are, 64 hexadecimal ones")};
  assert_non_null(a.work);
  snprintf(a.place.key, sizeof a.place.key, "192.0.2.1 an-editor-of-a-page");
  snprintf(a.place.job, sizeof a.place.job, "%s", job);
  return a;
}

static void begin(struct asked *a) {
  editors_set_work(editors, &a->place, a->work, &a->waiter);
}

static bool is_off(struct asked *a) {
  return work_is_called_off(a->work, &a->waiter);
}

static void leave(struct asked *a) {
  editors_leave(editors, &a->place);
  work_unref(a->work);
}

static int set_up(void **state) {
  struct error err;
  (void)state;
  return editors_start(&editors, &err);
}

static int tear_down(void **state) {
  (void)state;
  editors_stop(editors);
  return 0;
}

static void a_newer_one_ends_the_one_before(void **state) {
  struct asked a = ask(""), b = ask("");
  (void)state;
  editors_enter(editors, &a.place);
  begin(&a);
  assert_false(is_off(&a));
  editors_enter(editors, &b.place);
  assert_true(is_off(&a)); /* already: there is room for the newer one's work */
  begin(&b);
  assert_false(is_off(&b));
  assert_int_equal(editors_called_off(editors), 1);
  leave(&a);
  leave(&b);
}

static void a_newer_one_of_another_server_ends_only_older_ones(void **state) {
  struct asked a = ask(""), late = ask("");
  (void)state;
  a.place.entered_ms = 1000;
  editors_enter(editors, &a.place);
  begin(&a);
  editors_end_before(editors, a.place.key, 1000); /* not newer than this one */
  editors_end_before(editors, "192.0.2.1 another-editor-of-a-page", 2000);
  assert_false(is_off(&a));
  editors_end_before(editors, a.place.key, 1001);
  assert_true(is_off(&a));
  editors_end_before(editors, a.place.key, 1001); /* twice is fine */
  late.place.entered_ms = 1000;
  editors_enter(editors, &late.place);
  editors_end_before(editors, late.place.key, 1001); /* before it has a work */
  begin(&late);
  assert_true(is_off(&late));
  leave(&a);
  leave(&late);
}

static void an_older_one_that_starts_later_ends_itself(void **state) {
  struct asked a = ask(""), b = ask(""), c = ask("");
  (void)state;
  editors_enter(editors, &a.place);
  editors_enter(editors, &b.place);
  editors_enter(editors, &c.place);
  begin(&c);
  begin(&a);
  begin(&b);
  assert_true(is_off(&a) && is_off(&b));
  assert_false(is_off(&c));
  leave(&b);
  leave(&c);
  leave(&a);
}

static void one_of_the_same_job_goes_on_until_the_newer_one_reads_it(void **state) {
  struct asked a = ask("job"), b = ask("job"), c = ask("job"), d = ask("another");
  (void)state;
  editors_enter(editors, &a.place);
  begin(&a);
  editors_enter(editors, &b.place);
  editors_enter(editors, &c.place);
  assert_false(is_off(&a));
  begin(&c);
  assert_true(is_off(&a));
  begin(&b);
  assert_true(is_off(&b));
  assert_false(is_off(&c));
  editors_enter(editors, &d.place);
  assert_true(is_off(&c));
  leave(&d); /* never started: refused */
  leave(&c);
  leave(&b);
  leave(&a);
}

static void other_editors_are_left_alone(void **state) {
  struct asked a = ask(""), b = ask(""), gone = ask("");
  (void)state;
  snprintf(b.place.key, sizeof b.place.key, "192.0.2.2 an-editor-of-a-page");
  editors_enter(editors, &gone.place);
  begin(&gone);
  leave(&gone);
  editors_enter(editors, &a.place);
  editors_enter(editors, &b.place);
  begin(&a);
  begin(&b);
  assert_false(is_off(&a) || is_off(&b));
  assert_int_equal(editors_called_off(editors), 0);
  leave(&a);
  leave(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_newer_one_ends_the_one_before, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_newer_one_of_another_server_ends_only_older_ones, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_older_one_that_starts_later_ends_itself, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_of_the_same_job_goes_on_until_the_newer_one_reads_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(other_editors_are_left_alone, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
