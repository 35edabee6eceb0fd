/* A work: what frames it takes, when its reader is woken, what its result says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* before cmocka, which has a macro called fail */
#include "driver/frame_scan.h"
#include "work/quota.h"
#include "work/work.h"
#include "driver/frames.h"
#include "driver/pipeline.h"

#include <cmocka.h>

static struct work *new_work(char key[JOB_KEY_SIZE]) {
  struct job job;
  job_init(&job);
  job.source = "x";
  job.source_len = 1;
  struct work *w = work_new(&job);
  assert_non_null(w);
  if (key)
    memcpy(key, work_key(w), JOB_KEY_SIZE);
  return w;
}

static enum status add(struct work *w, const char *json) {
  bool is_end;
  struct error err;
  return work_add_frame(w, json, strlen(json), &is_end, &err);
}

static void start(struct work *w, const char *key) {
  char text[300];
  snprintf(text, sizeof text,
           "{\"frame\":\"start\",\"version\":1,\"key\":\"%s\",\"language\":\"nkipy\",\"target\":\"trn2\",\"pipeline\":"
           "\"1\"}",
           key);
  assert_int_equal(add(w, text), ST_OK);
}

static const char kernel[] =
    "{\"frame\":\"kernel\",\"kernel\":0,\"name\":\"k\",\"inputs\":[],\"outputs\":[],\"more\":1}";
static const char stage[] = "{\"frame\":\"stage\",\"kernel\":0,\"stage\":{\"index\":0,\"text\":\"a\"}}";
static const char artifact[] = "{\"frame\":\"artifact\",\"artifact\":{\"name\":\"hlo.txt\"},\"data\":\"QQ==\"}";
static const char end_ok[] = "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":5}";

static json_t *result_of(struct work *w) {
  size_t len;
  char *text = work_result(w, &len);
  assert_non_null(text);
  json_t *r = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(r);
  free(text);
  return r;
}

static const char *string_at(json_t *o, const char *key) {
  return json_string_value(json_object_get(o, key));
}

static void work_gathers_its_frames_into_the_result(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  start(w, key);
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(add(w, stage), ST_OK);
  assert_int_equal(add(w, artifact), ST_OK);
  assert_int_equal(add(w, end_ok), ST_OK);
  json_t *r = result_of(w), *k = json_array_get(json_object_get(r, "kernels"), 0);
  assert_string_equal(string_at(r, "status"), "ok");
  assert_string_equal(string_at(r, "key"), key);
  assert_int_equal(json_integer_value(json_object_get(r, "time_us")), 5);
  assert_string_equal(string_at(k, "name"), "k");
  assert_int_equal(json_integer_value(json_object_get(k, "more")), 1);
  assert_string_equal(string_at(json_array_get(json_object_get(k, "stages"), 0), "text"), "a");
  assert_string_equal(string_at(json_array_get(json_object_get(r, "artifacts"), 0), "data"), "QQ==");
  json_decref(r);
  work_unref(w);
}

struct seen {
  int n, most;
  char text[2][sizeof artifact];
};

static bool see(void *user, const char *json, size_t len) {
  struct seen *s = user;
  assert_true(s->n < s->most && len < sizeof artifact);
  memcpy(s->text[s->n], json, len);
  s->text[s->n][len] = 0;
  return ++s->n < s->most;
}

static void artifacts_are_found_among_the_other_frames(void **state) {
  static const char other[] = "{\"frame\":\"artifact\",\"artifact\":{\"name\":\"hlo.pb\"},\"data\":\"\"}";
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  struct seen all = {.most = 2}, first = {.most = 1}, none = {.most = 2};
  (void)state;
  start(w, key);
  assert_true(work_each_artifact(w, see, &none) && none.n == 0);
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(add(w, artifact), ST_OK);
  assert_int_equal(add(w, stage), ST_OK);
  assert_int_equal(add(w, other), ST_OK);
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_false(work_each_artifact(w, see, &first));
  assert_string_equal(first.text[0], artifact);
  assert_false(work_each_artifact(w, see, &all));
  assert_string_equal(all.text[0], artifact);
  assert_string_equal(all.text[1], other);
  work_unref(w);
}

/* Whatever a child's frames say, the result is JSON, and no member is there twice. */
static void work_writes_json_whatever_its_frames_say(void **state) {
  static const char *const good[] = {
      "{\"frame\":\"artifact\",\"artifact\":{ },\"data\":\"QQ==\"}",
      "{\"frame\":\"artifact\",\"artifact\":{\"name\":\"a\" \t },\"data\":\"QQ==\"}",
  };
  static const char *const bad[] = {
      "{\"frame\":\"artifact\",\"artifact\":{\"data\":\"QQ==\"},\"data\":\"QQ==\"}",
      "{\"frame\":\"kernel\",\"kernel\":0,\"name\":\"k\",\"inputs\":[],\"outputs\":[],\"stages\":[]}",
      "{\"frame\":\"kernel\",\"kernel\":0,\"name\":\"k\",\"inputs\":[],\"outputs\":[],\"value\":{}}",
      "{\"frame\":\"diagnostic\",\"diagnostic\":{\"x\":11111111111111111111111111111111111111111}}",
  };
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  start(w, key);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (add(w, bad[i]) != ST_INPUT)
      fail_msg("accepted: %s", bad[i]);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_int_equal(add(w, good[i]), ST_OK);
  assert_int_equal(add(w, end_ok), ST_OK);
  json_t *r = result_of(w), *list = json_object_get(r, "artifacts");
  assert_int_equal(json_array_size(list), 2);
  for (size_t i = 0; i < 2; i++)
    assert_string_equal(string_at(json_array_get(list, i), "data"), "QQ==");
  json_decref(r);
  work_unref(w);
}

static void work_refuses_frames_out_of_order(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  assert_int_equal(add(w, kernel), ST_INPUT); /* before the start */
  assert_int_equal(add(w, "{\"frame\":\"start\",\"version\":1,\"key\":\"0\",\"language\":\"nkipy\",\"target\":\"trn2\","
                          "\"pipeline\":\"1\"}"),
                   ST_INPUT); /* of another job */
  start(w, key);
  assert_int_equal(add(w, stage), ST_INPUT); /* of no kernel */
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(add(w, kernel), ST_INPUT); /* its number is taken */
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_int_equal(add(w, stage), ST_INPUT); /* after the end */
  json_t *r = result_of(w);
  assert_int_equal(json_array_size(json_object_get(r, "kernels")), 1);
  json_decref(r);
  work_unref(w);
}

/* Text that does not pack well: digits of a random number. */
static void work_limits_what_its_frames_take_packed(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  struct error err = {0};
  uint32_t x = 1;
  bool is_end;
  enum status st = ST_OK;
  enum { SIZE = 4 << 20 };
  char *big = malloc(SIZE);
  (void)state;
  assert_non_null(big);
  int head = snprintf(big, SIZE, "{\"frame\":\"diagnostic\",\"diagnostic\":{\"message\":\"");
  for (int i = head; i < SIZE - 3; i++) {
    x = x * 1664525 + 1013904223;
    big[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[x >> 26];
  }
  memcpy(big + SIZE - 3, "\"}}", 3);
  start(w, key);
  for (int n = 0; !st && n < 100; n++)
    st = work_add_frame(w, big, SIZE, &is_end, &err);
  assert_int_equal(st, ST_LIMIT);
  assert_non_null(strstr(err.text, "40 MiB"));
  assert_true(work_bytes(w) > WORK_PACKED_MAX / 2 && work_bytes(w) <= WORK_PACKED_MAX);
  work_fail(w, DG_OUTPUT_LIMIT, "too much", NULL); /* still fits */
  json_t *r = result_of(w);
  assert_string_equal(string_at(r, "status"), "error");
  json_decref(r);
  free(big);
  work_unref(w);
}

static void frames_are_read_one_by_one(void **state) {
  char key[JOB_KEY_SIZE], text[4096];
  struct work *w = new_work(key);
  struct buf b;
  size_t at = 0;
  bool at_end = false;
  int n_frames = 0;
  (void)state;
  start(w, key);
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(add(w, stage), ST_OK);
  buf_init(&b, 1 << 20);
  for (size_t before = 1; before != at; n_frames++) {
    before = at;
    assert_true(work_read_frame(w, &at, 1 << 20, &b, &at_end));
    assert_false(at_end);
  }
  assert_int_equal(n_frames, 4); /* the last time there was none */
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_false(work_read_frame(w, &at, 4, &b, &at_end)); /* longer than that */
  assert_true(work_read_frame(w, &at, 1 << 20, &b, &at_end));
  assert_true(at_end);
  size_t n = work_read(w, 0, text, sizeof text, &at_end);
  assert_int_equal(b.len, n);
  assert_memory_equal(b.data, text, n);
  buf_clear(&b);
  work_unref(w);
}

static void work_limits_the_frames_of_a_kind(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  start(w, key);
  assert_int_equal(add(w, kernel), ST_OK);
  for (int i = 0; i < 128; i++)
    assert_int_equal(add(w, stage), ST_OK);
  assert_int_equal(add(w, stage), ST_LIMIT);
  work_unref(w);
}

static void work_limits_its_bytes(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  struct error err;
  bool is_end;
  enum status st = ST_OK;
  size_t size = FRAME_MAX, n = 0;
  char *big = malloc(size);
  (void)state;
  assert_non_null(big);
  int head = snprintf(big, size, "{\"frame\":\"diagnostic\",\"diagnostic\":{\"message\":\"");
  memset(big + head, 'x', size - (size_t)head);
  memcpy(big + size - 3, "\"}}", 3);
  start(w, key);
  for (; !st && n < 100; n++)
    st = work_add_frame(w, big, size, &is_end, &err);
  assert_int_equal(st, ST_LIMIT);
  assert_int_equal(n, WORK_BYTES_MAX / FRAME_MAX); /* the start takes the last one's place */
  work_fail(w, DG_OUTPUT_LIMIT, "too much", NULL); /* still fits */
  json_t *r = result_of(w);
  assert_string_equal(string_at(r, "status"), "error");
  json_decref(r);
  free(big);
  work_unref(w);
}

static void work_that_fails_before_its_start_still_has_a_whole_result(void **state) {
  struct work *w = new_work(NULL);
  char text[2000];
  bool at_end;
  (void)state;
  work_fail(w, DG_WORKER_DIED, "a \"quoted\" message", "a hint");
  json_t *r = result_of(w), *d = json_array_get(json_object_get(r, "diagnostics"), 0);
  assert_string_equal(string_at(r, "status"), "error");
  assert_string_equal(string_at(d, "code"), "worker-died");
  assert_string_equal(string_at(d, "message"), "a \"quoted\" message");
  size_t n = work_read(w, 0, text, sizeof text, &at_end);
  assert_true(at_end);
  assert_memory_equal(text, "{\"frame\":\"start\"", 16);
  assert_int_equal(text[n - 1], '\n');
  json_decref(r);
  work_unref(w);
}

static int parked, resumed;
static struct work_waiter waiter;
static void park(void *user) {
  (void)user;
  parked++;
}
static void resume(void *user) {
  (void)user;
  resumed++;
}

static void work_wakes_its_reader_once_when_there_is_something(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  parked = resumed = 0;
  assert_false(work_wait(w, &waiter, false, park, resume, NULL));
  assert_int_equal(parked, 1);
  start(w, key);
  assert_int_equal(resumed, 1);
  assert_true(work_wait(w, &waiter, false, park, resume, NULL));
  assert_false(work_wait(w, &waiter, true, park, resume, NULL)); /* now for the whole */
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(resumed, 1);
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_int_equal(resumed, 2);
  work_unref(w);
}

static void work_does_not_call_a_reader_that_left(void **state) {
  struct work *w = new_work(NULL);
  (void)state;
  parked = resumed = 0;
  assert_false(work_wait(w, &waiter, true, park, resume, NULL));
  work_forget_reader(w, &waiter);
  work_refuse(w);
  assert_int_equal(resumed, 0);
  assert_int_equal(work_look(w, NULL, NULL), WORK_REFUSED);
  work_unref(w);
}

static void work_wakes_each_of_its_readers(void **state) {
  struct work_waiter second = {0};
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  parked = resumed = 0;
  assert_false(work_wait(w, &waiter, true, park, resume, NULL));
  assert_false(work_wait(w, &second, false, park, resume, NULL));
  start(w, key);
  assert_int_equal(resumed, 1); /* who wants the whole waits on */
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_int_equal(resumed, 2);
  work_unref(w);
}

static int abandoned;
static void count_abandoned(void *user, struct work *w) {
  (void)user;
  assert_false(work_join(w)); /* too late: it is being cancelled */
  abandoned++;
}

static struct work *watched_work(char key[JOB_KEY_SIZE]) {
  struct work *w = new_work(key);
  abandoned = 0;
  work_on_abandoned(w, count_abandoned, NULL);
  return w;
}

static void work_is_given_up_by_its_last_reader_only(void **state) {
  struct work *w = watched_work(NULL);
  (void)state;
  assert_true(work_join(w));
  assert_false(work_give_up(w));
  work_leave(w, NULL);
  assert_int_equal(abandoned, 0);
  work_leave(w, NULL);
  assert_int_equal(abandoned, 1);
  work_unref(w);
}

static void work_whose_first_reader_left_is_not_given_up_for_it(void **state) {
  struct work_waiter first = {.is_first = true};
  struct work *w = watched_work(NULL);
  (void)state;
  assert_true(work_join(w));
  work_leave(w, &first);
  assert_false(work_give_up(w)); /* word of the first one's end that comes late */
  assert_int_equal(abandoned, 0);
  work_leave(w, NULL);
  assert_int_equal(abandoned, 1);
  work_unref(w);
}

static void work_calls_off_one_reader_and_goes_on_for_the_other(void **state) {
  struct work_waiter first = {.is_first = true}, second = {0};
  char key[JOB_KEY_SIZE];
  struct work *w = watched_work(key);
  (void)state;
  parked = resumed = 0;
  assert_true(work_join(w));
  start(w, key);
  assert_false(work_wait(w, &first, true, park, resume, NULL));
  assert_false(work_wait(w, &second, true, park, resume, NULL));
  assert_true(work_call_off(w, &first));
  assert_int_equal(abandoned, 0);
  assert_int_equal(resumed, 1);
  assert_true(work_is_called_off(w, &first));
  assert_true(work_wait(w, &first, true, park, resume, NULL)); /* it waits for nothing any more */
  assert_false(work_call_off(w, &first));                      /* once is enough */
  work_leave(w, &first);                                       /* it has left already */
  assert_int_equal(abandoned, 0);
  assert_true(work_call_off(w, &second));
  assert_int_equal(abandoned, 1);
  work_unref(w);
}

static void work_that_has_ended_is_not_called_off(void **state) {
  struct work_waiter first = {.is_first = true};
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key);
  (void)state;
  start(w, key);
  assert_int_equal(add(w, end_ok), ST_OK);
  assert_false(work_call_off(w, &first));
  assert_false(work_is_called_off(w, &first));
  work_leave(w, &first);
  work_unref(w);
}

static void work_tells_each_reader_of_its_stream_its_place_in_the_queue(void **state) {
  struct work_waiter first = {0}, whole = {0};
  struct work *w = new_work(NULL);
  (void)state;
  parked = resumed = 0;
  assert_false(work_wait(w, &first, false, park, resume, NULL));
  assert_false(work_wait(w, &whole, true, park, resume, NULL));
  work_set_position(w, 3);
  assert_int_equal(resumed, 1);
  assert_int_equal(work_take_position(w, &first), 3);
  assert_int_equal(work_take_position(w, &first), 0); /* no news */
  assert_false(work_wait_at(w, &first, 0, park, resume, NULL));
  work_set_position(w, 3);
  assert_int_equal(resumed, 1);
  work_set_position(w, 2);
  assert_int_equal(resumed, 2);
  assert_int_equal(work_take_position(w, &first), 2);
  work_begin(w);
  assert_int_equal(work_take_position(w, &first), 0);
  work_forget_reader(w, &whole);
  work_unref(w);
}

/* What a farewell is for who has read up to `at`: lines, each a frame. */
static char *farewell(struct work *w, size_t at, struct buf *b) {
  buf_init(b, 1 << 16);
  work_put_farewell(w, at, DG_SUPERSEDED, "x", b);
  assert_int_equal(buf_status(b), ST_OK);
  return b->data;
}

static void a_farewell_ends_a_stream_wherever_it_is(void **state) {
  char key[JOB_KEY_SIZE], lines[4096];
  struct work *w = new_work(key);
  struct buf b;
  bool at_end;
  (void)state;
  assert_int_equal(strncmp(farewell(w, 0, &b), "{\"frame\":\"start\"", 16), 0);
  buf_clear(&b);
  start(w, key);
  assert_int_equal(add(w, kernel), ST_OK);
  size_t n = work_read(w, 0, lines, sizeof lines - 1, &at_end);
  for (size_t at = 1; at <= n; at++) { /* what was read and the farewell are whole frames together */
    char all[8192];
    int ends = 0;
    snprintf(all, sizeof all, "%.*s%s", (int)at, lines, farewell(w, at, &b));
    buf_clear(&b);
    char *save, *line = strtok_r(all, "\n", &save);
    for (; line; line = strtok_r(NULL, "\n", &save)) {
      struct frame f;
      assert_int_equal(frame_scan(line, strlen(line), &f, NULL), ST_OK);
      ends += f.kind == FRAME_END;
    }
    assert_int_equal(ends, 1);
  }
  work_unref(w);
}

static void work_tells_who_pays_once(void **state) {
  const struct quota_config cfg = {.jobs = 1};
  struct work_waiter first = {.is_first = true};
  struct quota *q;
  struct error err;
  int retry;
  (void)state;
  assert_int_equal(quota_start(&cfg, &q, &err), ST_OK);
  struct client *c = quota_client(q, "192.0.2.1");
  for (int how = 0; how < 4; how++) {
    struct work *w = new_work(NULL);
    assert_int_equal(client_begin_job(c, &retry), QUOTA_OK);
    assert_int_equal(client_begin_job(c, &retry), QUOTA_JOBS);
    work_set_payer(w, client_hold(c));
    if (how == 0)
      work_refuse(w);
    else if (how == 1)
      work_fail(w, DG_INTERNAL, "x", NULL);
    else if (how == 2)
      assert_true(work_call_off(w, &first));
    if (how == 2)
      work_refuse(w); /* which comes after */
    work_unref(w);
    first = (struct work_waiter){.is_first = true};
  }
  assert_int_equal(client_begin_job(c, &retry), QUOTA_OK);
  client_end_job(c, true);
  client_let_go(c);
  quota_stop(q);
}

static int lasting, passing;
static void count_end(void *user, struct work *w, bool is_lasting) {
  (void)user;
  (void)w;
  *(is_lasting ? &lasting : &passing) += 1;
}

static void work_loads_what_another_gave(void **state) {
  char key[JOB_KEY_SIZE];
  struct work *w = new_work(key), *copy = work_new_stored(key);
  size_t len, n1, n2;
  (void)state;
  lasting = passing = 0;
  work_on_end(w, count_end, NULL);
  work_on_end(copy, count_end, NULL);
  start(w, key);
  assert_int_equal(add(w, kernel), ST_OK);
  assert_int_equal(add(w, stage), ST_OK);
  assert_int_equal(add(w, end_ok), ST_OK);
  char *frames = work_frames(w, &len);
  assert_int_equal(work_load(copy, frames, len - 30, NULL), ST_INPUT); /* cut off: nothing is loaded */
  assert_int_equal(work_look(copy, NULL, NULL), WORK_WAITING);
  assert_int_equal(work_load(copy, frames, len, NULL), ST_OK);
  char *r1 = work_result(w, &n1), *r2 = work_result(copy, &n2);
  assert_string_equal(r1, r2);
  assert_int_equal(lasting, 2);
  assert_int_equal(passing, 0);
  free(frames);
  free(r1);
  free(r2);
  work_unref(w);
  work_unref(copy);
}

static void work_that_fails_is_not_lasting(void **state) {
  struct work *w = new_work(NULL);
  (void)state;
  lasting = passing = 0;
  work_on_end(w, count_end, NULL);
  work_fail(w, DG_WORKER_DIED, "x", NULL);
  assert_int_equal(lasting, 0);
  assert_int_equal(passing, 1);
  work_unref(w);
}

static void work_keeps_its_own_start_in_place_of_the_childs(void **state) {
  char key[JOB_KEY_SIZE], text[400];
  struct work *w = new_work(key);
  (void)state;
  snprintf(text, sizeof text,
           "{\"frame\":\"start\",\"version\":1,\"key\":\"%s\",\"language\":\"evil\",\"target\":\"x\",\"pipeline\":"
           "\"0\"}",
           key);
  assert_int_equal(add(w, text), ST_OK);
  assert_int_equal(add(w, end_ok), ST_OK);
  json_t *r = result_of(w);
  assert_string_equal(string_at(r, "language"), "nkipy");
  assert_string_equal(string_at(r, "pipeline"), pipeline_version());
  json_decref(r);
  work_unref(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(work_gathers_its_frames_into_the_result),
      cmocka_unit_test(artifacts_are_found_among_the_other_frames),
      cmocka_unit_test(work_writes_json_whatever_its_frames_say),
      cmocka_unit_test(work_refuses_frames_out_of_order),
      cmocka_unit_test(work_limits_the_frames_of_a_kind),
      cmocka_unit_test(work_limits_its_bytes),
      cmocka_unit_test(work_that_fails_before_its_start_still_has_a_whole_result),
      cmocka_unit_test(work_wakes_its_reader_once_when_there_is_something),
      cmocka_unit_test(work_does_not_call_a_reader_that_left),
      cmocka_unit_test(work_wakes_each_of_its_readers),
      cmocka_unit_test(work_is_given_up_by_its_last_reader_only),
      cmocka_unit_test(work_whose_first_reader_left_is_not_given_up_for_it),
      cmocka_unit_test(work_calls_off_one_reader_and_goes_on_for_the_other),
      cmocka_unit_test(work_that_has_ended_is_not_called_off),
      cmocka_unit_test(work_tells_each_reader_of_its_stream_its_place_in_the_queue),
      cmocka_unit_test(a_farewell_ends_a_stream_wherever_it_is),
      cmocka_unit_test(work_tells_who_pays_once),
      cmocka_unit_test(work_loads_what_another_gave),
      cmocka_unit_test(work_limits_what_its_frames_take_packed),
      cmocka_unit_test(frames_are_read_one_by_one),
      cmocka_unit_test(work_that_fails_is_not_lasting),
      cmocka_unit_test(work_keeps_its_own_start_in_place_of_the_childs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
