/* POST /api/v1/runner/end/RUN: a runner ends its run.
 *
 * The outcome is written here from what the runner says, field by field: nothing else of it is kept and shown.  Outputs are
 * compared before the run ends, so that a run with wrong data never counts as done.
 */
#include "api/runs_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MESSAGE_MAX = 8 << 10, OUTCOME_MAX = 1 << 20 };

/* ---- what the runner says ------------------------------------------------------------------------------------------ */

static enum status put_text(struct buf *b, const json_t *o, const char *name, bool is_needed, struct error *err) {
  const json_t *v = json_object_get(o, name);
  if (!v && !is_needed)
    return ST_OK;
  if (!json_is_string(v) || json_string_length(v) > MESSAGE_MAX)
    return fail(err, ST_INPUT, "%s: expected a text of at most %d bytes", name, MESSAGE_MAX);
  json_put_field_str(b, name, json_string_value(v));
  return ST_OK;
}

static enum status put_time(struct buf *b, const json_t *o, const char *name, bool is_needed, struct error *err) {
  const json_t *v = json_object_get(o, name);
  const double us = json_number_value(v);
  if (!v && !is_needed)
    return ST_OK;
  if (!json_is_number(v) || !isfinite(us) || us < 0)
    return fail(err, ST_INPUT, "measured.%s: expected microseconds", name);
  json_put_field_double(b, name, us);
  return ST_OK;
}

static enum status put_measured(struct buf *b, const json_t *m, struct error *err) {
  const json_int_t n = json_integer_value(json_object_get(m, "executions"));
  if (n < 1 || n > 10000000)
    return fail(err, ST_INPUT, "measured.executions: expected how often the kernel was executed");
  json_put_key(b, "measured");
  buf_putc(b, '{');
  json_put_field_int(b, "executions", n);
  enum status st = put_time(b, m, "first_us", true, err);
  if (!st)
    st = put_time(b, m, "least_us", n > 1, err);
  if (!st)
    st = put_time(b, m, "median_us", n > 1, err);
  buf_putc(b, '}');
  return st;
}

static bool is_place(const json_t *o) {
  static const char *const numbers[] = {"line", "col", "end_line", "end_col"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const json_t *v = json_object_get(o, numbers[i]);
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > INT_MAX)
      return false;
  }
  return json_string_value(json_object_get(o, "file"));
}

/* The place of the HLO instruction that the compiler's error names, if the run knows it.  The file comes from the process that ran
 * the kernel's Python, and may be anything. */
static enum status put_place(struct run_state_of *s, struct db *db, struct error *err) {
  static const char *const numbers[] = {"line", "col", "end_line", "end_col"};
  const char *name = json_string_value(json_object_get(s->body, "instruction"));
  bool found = false;
  struct buf b;
  if (!name)
    return ST_OK;
  buf_init(&b, RUN_FILE_MAX);
  const enum status st = store_get_run_file(db, &s->run, RUN_PLACES, &b, &found, err);
  json_t *all = !st && found ? json_loadb(buf_text(&b), b.len, 0, NULL) : NULL;
  const json_t *o = json_object_get(all, name);
  if (is_place(o)) {
    json_put_key(&s->answer, "range");
    buf_putc(&s->answer, '{');
    json_put_field_str(&s->answer, "file", json_string_value(json_object_get(o, "file")));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      json_put_field_int(&s->answer, numbers[i], json_integer_value(json_object_get(o, numbers[i])));
    buf_putc(&s->answer, '}');
  }
  json_decref(all);
  buf_clear(&b);
  return st;
}

/* {"status","code","message","hint"?,"instruction"?,"range"?} */
static enum status put_failure(struct run_state_of *s, struct db *db, struct error *err) {
  struct buf *b = &s->answer;
  buf_puts(b, "{\"status\":\"error\"");
  enum status st = put_text(b, s->body, "code", true, err);
  if (!st)
    st = put_text(b, s->body, "message", true, err);
  if (!st)
    st = put_text(b, s->body, "hint", false, err);
  if (!st)
    st = put_text(b, s->body, "instruction", false, err);
  if (!st)
    st = put_place(s, db, err);
  buf_putc(b, '}');
  s->end = RUN_FAILED;
  return st;
}

/* The members of the device's object that the runner knows. */
static enum status put_device(struct run_state_of *s, struct error *err) {
  struct buf *b = &s->answer;
  const json_t *device = json_object_get(s->body, "device");
  enum status st = put_text(b, device, "library", true, err);
  if (!st)
    st = put_text(b, device, "version", true, err);
  json_put_field_bool(b, "stand_in", json_is_true(json_object_get(device, "stand_in")));
  return st ? st : put_measured(b, json_object_get(s->body, "measured"), err);
}

/* ---- the outcome ---------------------------------------------------------------------------------------------------- */

static void put_success(struct run_state_of *s, struct db *db) {
  struct buf *b = &s->answer;
  const char *sha256 = json_string_value(json_object_get(s->body, "outputs_sha256"));
  buf_puts(b, "{\"status\":\"ok\"");
  s->end = RUN_DONE;
  if (s->view.wants & RUN_EXECUTE) {
    json_put_key(b, "device");
    buf_puts(b, "{\"status\":\"ok\"");
    s->st = put_device(s, &s->err);
    if (!s->st)
      s->st = runs_compare(db, &s->run, sha256 ? sha256 : "", b, &s->err);
    buf_putc(b, '}');
  }
  buf_putc(b, '}');
}

/* On a store thread for what takes long.  A fence that is not the run's is refused by the next step, too. */
static void compose(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  const char *status = json_string_value(json_object_get(s->body, "status"));
  if (!runner_check(s, db))
    return;
  s->st = store_get_run(db, &s->run, &s->view, &s->found, &s->err);
  if (s->st || !s->found)
    return;
  if (status && !strcmp(status, "ok"))
    put_success(s, db);
  else if (status && !strcmp(status, "error"))
    s->st = put_failure(s, db, &s->err);
  else
    s->st = fail(&s->err, ST_INPUT, "status: expected \"ok\" or \"error\"");
  if (!s->st && buf_status(&s->answer))
    s->st = fail(&s->err, ST_NOMEM, "an outcome");
  if (!s->st && s->answer.len > OUTCOME_MAX)
    s->st = fail(&s->err, ST_INPUT, "the outcome is longer than %d bytes", OUTCOME_MAX);
  s->has_wrong_data = s->st == ST_INPUT;
}

/* On the store's writing thread. */
static void end(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  char line[sizeof s->err.text + 80];
  if (s->has_wrong_data) {
    snprintf(line, sizeof line, "what the runner sent was refused, and the run goes to another one: %s\n", s->err.text);
    s->st = store_refuse_run(db, &s->run, s->fence, line, services_of(rq)->runs->cfg.lease_ms, &s->hold, &s->err);
  } else {
    s->st = store_end_run(db, &s->run, s->fence, s->end, buf_text(&s->answer), &s->hold, &s->err);
  }
  s->is_written = true;
}

enum MHD_Result api_runner_end(struct request *rq) {
  struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return runner_read(rq, false, &answer) && runner_read_body(rq, &answer) ? api_call_store(rq, STORE_BUILD, compose)
                                                                            : answer;
  if (s->has_wrong_data && !s->is_written && !api_part(rq)->call.is_lost)
    return api_call_store(rq, STORE_WRITE, end);
  if (run_failed(rq, &answer))
    return answer;
  if (!s->found)
    return http_problem(rq, PB_LEASE, NULL, NULL);
  if (!s->is_written)
    return api_call_store(rq, STORE_WRITE, end);
  runs_wake(rq);
  if (s->hold == RUN_HELD)
    runs_note(rq, s->has_wrong_data ? RUNS_REFUSED : s->end == RUN_DONE ? RUNS_ENDED_DONE : RUNS_ENDED_FAILED);
  if (s->has_wrong_data && s->hold != RUN_LOST)
    return http_problem(rq, PB_RUNNER_DATA, NULL, NULL);
  return runner_answer_hold(rq);
}
