/* Runs and leases in the store: who holds one, and what a late runner may still change.  On SQLite, and on the PostgreSQL
 * database that NKX_TEST_STORE names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* before cmocka, which has a macro called fail */
#include "store/db.h"
#include "store/runs.h"

#include <cmocka.h>

static char url[300], dir[64];
static struct error err;

#define OK(call) \
  do { \
    if ((call) != ST_OK) { \
      print_error("%s: %s\n", #call, err.text); \
      assert_true(false); \
    } \
  } while (0)

static struct ident_hash hash_of(const char *text) {
  struct ident_hash h;
  ident_hash(text, strlen(text), &h);
  return h;
}

static int open_db(void **state) {
  struct db *db;
  OK(db_open(url, true, &db, &err));
  OK(db_migrate(db, &err));
  OK(db_run(db, "DELETE FROM runs", NULL, 0, NULL, NULL, NULL, &err));
  OK(db_run(db, "DELETE FROM runners", NULL, 0, NULL, NULL, NULL, &err));
  OK(db_run(db, "DELETE FROM runner_tokens", NULL, 0, NULL, NULL, NULL, &err));
  *state = db;
  return 0;
}

static int close_db(void **state) {
  db_close(*state);
  return 0;
}

static enum run_put put(struct db *db, const char *id, const char *owner, const char *target, int wants) {
  enum run_put verdict;
  const struct store_run r = {.id = hash_of(id),
                              .owner = hash_of(owner),
                              .target = target,
                              .wants = wants,
                              .about = "{\"kernel\":\"k\"}",
                              .n_files = 1,
                              .files = {{"hlo.pb", "\0proto", 6}}};
  OK(store_put_run(db, &r, 4, 2, &verdict, &err));
  return verdict;
}

static bool take(struct db *db, const char *name, const char *target, int lease_ms, struct run_taken *out) {
  const struct runner r = {hash_of(name), hash_of("token"), "{}", target, RUN_COMPILE | RUN_EXECUTE};
  bool found;
  buf_clear(&out->about);
  OK(store_take_run(db, &r, lease_ms, out, &found, &err));
  return found;
}

static enum run_hold beat(struct db *db, const struct run_taken *t, const char *log) {
  enum run_hold hold;
  OK(store_beat_run(db, &t->id, t->fence, log, 10000, &hold, &err));
  return hold;
}

static enum run_hold end(struct db *db, const struct run_taken *t, enum run_state state, const char *outcome) {
  enum run_hold hold;
  OK(store_end_run(db, &t->id, t->fence, state, outcome, &hold, &err));
  return hold;
}

static struct run_view view; /* of the last look */
static enum run_state look(struct db *db, const char *id) {
  const struct ident_hash h = hash_of(id);
  bool found;
  run_view_clear(&view);
  run_view_init(&view);
  OK(store_get_run(db, &h, &view, &found, &err));
  assert_true(found);
  return view.state;
}

static struct run_taken one = {.about.max = RUN_ABOUT_MAX}, two = {.about.max = RUN_ABOUT_MAX};

static void runs_are_taken_in_order_by_runners_that_can_do_them(void **state) {
  struct db *db = *state;
  assert_int_equal(put(db, "a", "x", "trn1", RUN_COMPILE | RUN_EXECUTE), RUN_PUT);
  usleep(2000); /* a run is older than another by its time in milliseconds */
  assert_int_equal(put(db, "b", "x", "trn2", RUN_COMPILE), RUN_PUT);
  usleep(2000);
  assert_int_equal(put(db, "c", "y", "trn2", RUN_COMPILE | RUN_PROFILE), RUN_PUT);
  assert_int_equal(look(db, "c"), RUN_WAITING);
  assert_int_equal(view.position, 3);
  assert_true(take(db, "r1", "trn2", 10000, &one));
  assert_int_equal(one.wants, RUN_COMPILE);
  assert_string_equal(buf_text(&one.about), "{\"kernel\":\"k\"}");
  assert_int_equal(look(db, "b"), RUN_RUNNING);
  assert_string_equal(buf_text(&view.runner), "{}");
  assert_int_equal(look(db, "c"), RUN_WAITING);
  assert_int_equal(view.position, 2);
  assert_false(take(db, "r2", "trn2", 10000, &two)); /* c wants a profile */
  assert_true(take(db, "r2", "", 10000, &two));      /* any target */
  assert_int_equal(look(db, "a"), RUN_RUNNING);
}

static void a_queue_and_a_share_of_it_have_ends(void **state) {
  struct db *db = *state;
  assert_int_equal(put(db, "a", "x", "trn2", RUN_COMPILE), RUN_PUT);
  assert_int_equal(put(db, "b", "x", "trn2", RUN_COMPILE), RUN_PUT);
  assert_int_equal(put(db, "c", "x", "trn2", RUN_COMPILE), RUN_OWNER_FULL);
  assert_int_equal(put(db, "c", "y", "trn2", RUN_COMPILE), RUN_PUT);
  assert_int_equal(put(db, "d", "z", "trn2", RUN_COMPILE), RUN_PUT);
  assert_int_equal(put(db, "e", "w", "trn2", RUN_COMPILE), RUN_QUEUE_FULL);
}

static void a_runner_whose_lease_is_over_changes_nothing_once_another_has_the_run(void **state) {
  struct db *db = *state;
  enum run_hold hold;
  const struct run_file file = {"kernel.neff", "neff", 4};
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_true(take(db, "r1", "", 10000, &one));
  assert_false(take(db, "r2", "", 10000, &two));
  assert_int_equal(beat(db, &one, "first\n"), RUN_HELD);
  OK(store_beat_run(db, &one.id, one.fence, "", -1000, &hold, &err)); /* a lease that is over already */
  assert_int_equal(look(db, "a"), RUN_WAITING);
  assert_true(take(db, "r2", "", 10000, &two));
  assert_true(two.fence != one.fence && two.tries == 2);
  assert_int_equal(beat(db, &one, "late\n"), RUN_LOST);
  OK(store_put_run_file(db, &one.id, one.fence, &file, &hold, &err));
  assert_int_equal(hold, RUN_LOST);
  assert_int_equal(end(db, &one, RUN_DONE, "{\"by\":1}"), RUN_LOST);
  assert_int_equal(end(db, &two, RUN_DONE, "{\"by\":2}"), RUN_HELD);
  assert_int_equal(end(db, &two, RUN_FAILED, "{\"by\":3}"), RUN_SETTLED); /* its answer was lost on the way */
  assert_int_equal(look(db, "a"), RUN_DONE);
  assert_string_equal(buf_text(&view.outcome), "{\"by\":2}");
  assert_string_equal(buf_text(&view.log), "first\n");
  assert_false(take(db, "r1", "", 10000, &one));
}

static void a_runner_that_was_away_goes_on_if_nobody_took_its_run(void **state) {
  struct db *db = *state;
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_true(take(db, "r1", "", -1000, &one));
  assert_int_equal(beat(db, &one, "back\n"), RUN_HELD);
  assert_false(take(db, "r2", "", 10000, &two));
  assert_int_equal(end(db, &one, RUN_DONE, "{}"), RUN_HELD);
}

static void a_run_that_was_lost_several_times_fails(void **state) {
  struct db *db = *state;
  put(db, "a", "x", "trn2", RUN_COMPILE);
  for (int i = 0; i < RUN_TRIES; i++)
    assert_true(take(db, "r", "", -1000, &one));
  assert_false(take(db, "r", "", 10000, &two));
  assert_int_equal(look(db, "a"), RUN_FAILED);
  assert_non_null(strstr(buf_text(&view.outcome), "runner-lost"));
  assert_int_equal(end(db, &one, RUN_DONE, "{}"), RUN_LOST);
}

static void a_cancelled_run_takes_nothing_more(void **state) {
  struct db *db = *state;
  const struct ident_hash h = hash_of("a");
  bool found;
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_true(take(db, "r1", "", 10000, &one));
  OK(store_cancel_run(db, &h, &found, &err));
  assert_true(found);
  assert_int_equal(beat(db, &one, ""), RUN_LOST);
  assert_int_equal(end(db, &one, RUN_DONE, "{}"), RUN_LOST);
  assert_int_equal(look(db, "a"), RUN_CANCELLED);
}

static void the_fence_nought_holds_no_lease(void **state) {
  struct db *db = *state;
  struct run_taken t = {.id = hash_of("a")};
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_int_equal(beat(db, &t, ""), RUN_LOST);
  assert_int_equal(end(db, &t, RUN_DONE, "{}"), RUN_LOST);
}

static void a_long_log_says_that_lines_are_missing(void **state) {
  struct db *db = *state;
  char line[1001];
  memset(line, 'x', sizeof line - 2);
  line[999] = '\n';
  line[1000] = 0;
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_true(take(db, "r1", "", 10000, &one));
  for (int i = 0; i < 80; i++)
    assert_int_equal(beat(db, &one, line), RUN_HELD);
  look(db, "a");
  assert_true(view.log.len > RUN_LOG_MAX - 1200 && view.log.len < RUN_LOG_MAX + 200);
  assert_non_null(strstr(buf_text(&view.log), "lines are left out here"));
}

static void what_a_revoked_token_began_goes_to_others(void **state) {
  struct db *db = *state;
  const struct ident_hash token = hash_of("token");
  bool found, is_valid;
  OK(store_put_token(db, "lab", &token, &err));
  assert_int_equal(store_put_token(db, "lab", &token, &err), ST_DENIED);
  OK(store_check_token(db, &token, &is_valid, &err));
  assert_true(is_valid);
  put(db, "a", "x", "trn2", RUN_COMPILE);
  assert_true(take(db, "r1", "", 10000, &one));
  OK(store_revoke_token(db, "lab", &found, &err));
  assert_true(found);
  OK(store_check_token(db, &token, &is_valid, &err));
  assert_false(is_valid);
  assert_int_equal(end(db, &one, RUN_DONE, "{}"), RUN_LOST);
  assert_true(take(db, "r2", "", 10000, &two));
  OK(store_revoke_token(db, "lab", &found, &err));
  assert_false(found);
}

static void files_come_back_as_they_were(void **state) {
  struct db *db = *state;
  const struct ident_hash h = hash_of("a");
  struct buf b;
  bool found;
  put(db, "a", "x", "trn2", RUN_COMPILE);
  buf_init(&b, RUN_FILE_MAX);
  OK(store_get_run_file(db, &h, "hlo.pb", &b, &found, &err));
  assert_true(found && b.len == 6 && !memcmp(b.data, "\0proto", 6));
  OK(store_get_run_file(db, &h, "none", &b, &found, &err));
  assert_false(found);
  OK(db_run(db, "UPDATE run_files SET data = hash", NULL, 0, NULL, NULL, NULL, &err));
  assert_int_equal(store_get_run_file(db, &h, "hlo.pb", &b, &found, &err), ST_IO);
  buf_clear(&b);
}

static void the_oldest_ended_runs_make_room_and_no_run_that_waits(void **state) {
  struct db *db = *state;
  const char *const ids[] = {"a", "b", "c"};
  bool found;
  for (int i = 0; i < 3; i++) {
    put(db, ids[i], "x", "trn2", RUN_COMPILE);
    assert_true(take(db, "r", "", 10000, &one));
    assert_int_equal(end(db, &one, RUN_DONE, "{}"), RUN_HELD);
    usleep(2000);
  }
  put(db, "waits", "x", "trn2", RUN_COMPILE);
  OK(store_purge_runs(db, 13, &err)); /* each has a file of 6 bytes */
  for (int i = 0; i < 3; i++) {
    const struct ident_hash h = hash_of(ids[i]);
    run_view_clear(&view);
    run_view_init(&view);
    OK(store_get_run(db, &h, &view, &found, &err));
    assert_int_equal(found, i > 0);
  }
  OK(store_purge_runs(db, 0, &err));
  assert_int_equal(look(db, "waits"), RUN_WAITING);
}

static bool take_again(struct db *db, const char *name, struct run_taken *out) {
  return take(db, name, "", 60000, out);
}

/* A runner whose data were refused does not get the run again; the run fails when the time for another one is over, unless one is
 * connected. */
static void a_run_whose_only_runner_lied_fails(void **state) {
  struct db *db = *state;
  enum run_hold hold;
  const struct ident_hash token = hash_of("token");
  OK(store_put_token(db, "lab", &token, &err));
  assert_int_equal(put(db, "a", "alice", "trn2", RUN_COMPILE), RUN_PUT);
  assert_true(take_again(db, "liar", &one));
  OK(store_refuse_run(db, &one.id, one.fence, "wrong\n", 60000, &hold, &err));
  assert_int_equal(hold, RUN_HELD);
  assert_false(take_again(db, "liar", &two));
  assert_int_equal(look(db, "a"), RUN_WAITING);
  assert_true(take_again(db, "other", &two));
  OK(store_refuse_run(db, &two.id, two.fence, "wrong, too\n", -1, &hold, &err));
  assert_true(take_again(db, "liar", &one)); /* the other one is there, and waits for the next */
  OK(store_refuse_run(db, &one.id, one.fence, "", -1, &hold, &err));
  OK(store_purge_runs(db, 1000, &err));
  assert_int_equal(look(db, "a"), RUN_FAILED); /* three have had it */
  assert_non_null(strstr(buf_text(&view.outcome), "runner-lost"));

  assert_int_equal(put(db, "b", "alice", "trn2", RUN_COMPILE), RUN_PUT);
  assert_true(take_again(db, "liar", &one));
  OK(store_refuse_run(db, &one.id, one.fence, "", -1, &hold, &err));
  OK(store_purge_runs(db, 1000, &err));
  assert_int_equal(look(db, "b"), RUN_WAITING);
  const struct runner other = {hash_of("other"), token, "{}", "", RUN_COMPILE};
  OK(store_forget_runner(db, &other, &err));
  OK(store_purge_runs(db, 1000, &err));
  assert_int_equal(look(db, "b"), RUN_FAILED);
  assert_non_null(strstr(buf_text(&view.outcome), "runner-data"));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_db, close_db)
  const struct CMUnitTest tests[] = {
      TEST(runs_are_taken_in_order_by_runners_that_can_do_them),
      TEST(a_queue_and_a_share_of_it_have_ends),
      TEST(a_runner_whose_lease_is_over_changes_nothing_once_another_has_the_run),
      TEST(a_runner_that_was_away_goes_on_if_nobody_took_its_run),
      TEST(a_run_that_was_lost_several_times_fails),
      TEST(a_cancelled_run_takes_nothing_more),
      TEST(the_fence_nought_holds_no_lease),
      TEST(a_long_log_says_that_lines_are_missing),
      TEST(what_a_revoked_token_began_goes_to_others),
      TEST(files_come_back_as_they_were),
      TEST(a_run_whose_only_runner_lied_fails),
      TEST(the_oldest_ended_runs_make_room_and_no_run_that_waits),
  };
  const char *given = getenv("NKX_TEST_STORE");
  snprintf(dir, sizeof dir, "/tmp/nkx-runs-XXXXXX");
  if (!mkdtemp(dir))
    return 1;
  snprintf(url, sizeof url, given ? "%s" : "sqlite:%s/x.sqlite", given ? given : dir);
  print_message("on %s\n", given ? "PostgreSQL" : "SQLite");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  run_view_clear(&view);
  buf_clear(&one.about);
  buf_clear(&two.about);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command) ? 1 : failed;
}
