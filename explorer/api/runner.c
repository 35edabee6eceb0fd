/* POST /api/v1/runner/next and /api/v1/runner/beat/RUN: a runner asks for work, and says that it is alive. */
#include "api/runs_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/target.h"

enum { TEXT_MAX_LEN = 200 };

/* ---- what a runner is ---------------------------------------------------------------------------------------------- */

/* Takes the known members out of the description that a runner sent; nothing else of it is kept and shown. */
static enum status read_texts(struct buf *b, const json_t *about, struct error *err) {
  static const char *const names[] = {"name", "instance_type", "release", "compiler", "runtime", "missing"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const json_t *v = json_object_get(about, names[i]);
    if (v && (!json_is_string(v) || json_string_length(v) > TEXT_MAX_LEN))
      return fail(err, ST_INPUT, "about.%s: expected a text of at most %d bytes", names[i], TEXT_MAX_LEN);
    if (v)
      json_put_field_str(b, names[i], json_string_value(v));
  }
  return ST_OK;
}

static enum status read_can(struct buf *b, const json_t *list, int *can, struct error *err) {
  static const char *const names[] = {"compile", "execute", "profile", "nki"};
  enum { N = sizeof names / sizeof *names };
  size_t i;
  json_t *v;
  json_put_key(b, "can");
  buf_putc(b, '[');
  json_array_foreach((json_t *)list, i, v) {
    const char *text = json_string_value(v);
    int bit = 0;
    while (bit < N && (!text || strcmp(text, names[bit]) != 0))
      bit++;
    if (bit == N || *can & 1 << bit)
      return fail(err, ST_INPUT, "about.can: expected some of \"compile\", \"execute\", \"profile\", \"nki\"");
    *can |= 1 << bit;
    json_put_comma(b);
    json_put_cstr(b, names[bit]);
  }
  buf_putc(b, ']');
  return *can & RUN_COMPILE ? ST_OK : fail(err, ST_INPUT, "about.can: a runner compiles at least");
}

static enum status read_about(struct run_state_of *s, const json_t *about, struct error *err) {
  struct buf *b = &s->ask_about;
  const char *target = json_string_value(json_object_get(about, "target"));
  const json_t *cores = json_object_get(about, "cores");
  enum target t;
  if (!json_is_object(about))
    return fail(err, ST_INPUT, "about: expected an object");
  if (target && !target_from_name(target, &t))
    return fail(err, ST_INPUT, "about.target: there is no such machine");
  buf_putc(b, '{');
  enum status st = read_texts(b, about, err);
  if (!st)
    st = read_can(b, json_object_get(about, "can"), &s->runner.can, err);
  if (target)
    json_put_field_str(b, "target", target_name(t));
  if (json_is_integer(cores) && json_integer_value(cores) >= 0)
    json_put_field_int(b, "cores", json_integer_value(cores));
  json_put_field_bool(b, "stand_in", json_is_true(json_object_get(about, "stand_in")));
  buf_putc(b, '}');
  s->runner.about = buf_text(b);
  s->runner.target = target ? target_name(t) : "";
  return st;
}

static enum status read_wait(struct run_state_of *s, struct error *err) {
  const json_t *v = json_object_get(s->body, "wait_ms");
  if (!v)
    return ST_OK;
  if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > RUNS_WAIT_MS)
    return fail(err, ST_INPUT, "wait_ms: expected milliseconds, at most %d", RUNS_WAIT_MS);
  s->until_ms = clock_now_ms() + json_integer_value(v);
  return ST_OK;
}

static enum status read_runner(struct run_state_of *s, struct error *err) {
  const json_t *id = json_object_get(s->body, "runner");
  if (!json_is_string(id) || json_string_length(id) != IDENT_LEN || !ident_is_valid(json_string_value(id), IDENT_LEN))
    return fail(err, ST_INPUT, "runner: expected an id of %d letters", IDENT_LEN);
  ident_hash(json_string_value(id), IDENT_LEN, &s->runner.id);
  s->runner.token = s->token;
  const enum status st = read_wait(s, err);
  return st ? st : read_about(s, json_object_get(s->body, "about"), err);
}

/* ---- next ---------------------------------------------------------------------------------------------------------- */

/* On the store's writing thread. */
static void take(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  if (runner_check(s, db))
    s->st = store_take_run(db, &s->runner, services_of(rq)->runs->cfg.lease_ms, &s->taken, &s->found, &s->err);
}

static void forget(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  if (runner_check(s, db))
    s->st = store_forget_runner(db, &s->runner, &s->err);
}

/* On a reading thread, once it is known that the runner is there: asking costs no write then. */
static void look(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  if (runner_check(s, db))
    s->st = store_has_run(db, &s->runner, &s->is_offered, &s->err);
}

static enum MHD_Result start_next(struct request *rq) {
  enum MHD_Result answer;
  struct error err;
  if (!runner_read(rq, false, &answer) || !runner_read_body(rq, &answer))
    return answer;
  struct run_state_of *s = rq->state;
  const enum status st = read_runner(s, &err);
  if (st)
    return http_status_problem(rq, st, &err);
  const bool leaves = json_is_true(json_object_get(s->body, "leaves"));
  s->until_ms = leaves ? 0 : s->until_ms;
  return api_call_store(rq, STORE_WRITE, leaves ? forget : take);
}

static void put_hex(char *out, const struct ident_hash *h) {
  for (int i = 0; i < IDENT_HASH_SIZE; i++)
    snprintf(out + 2 * i, 3, "%02x", h->bytes[i]);
}

static enum MHD_Result send_run(struct request *rq) {
  const struct run_state_of *s = rq->state;
  const struct run_taken *t = &s->taken;
  char hex[2 * IDENT_HASH_SIZE + 1];
  struct buf b;
  put_hex(hex, &t->id);
  buf_init(&b, 2 * RUN_ABOUT_MAX);
  buf_putc(&b, '{');
  json_put_field_str(&b, "run", hex);
  json_put_key(&b, "fence"); /* a text: readers of JSON take large numbers for floats */
  buf_printf(&b, "\"%lld\"", (long long)t->fence);
  json_put_field_int(&b, "lease_ms", services_of(rq)->runs->cfg.lease_ms);
  json_put_field_int(&b, "attempt", t->tries);
  json_put_field_str(&b, "target", t->target);
  json_put_field_bool(&b, "execute", t->wants & RUN_EXECUTE);
  json_put_field_bool(&b, "profile", t->wants & RUN_PROFILE);
  json_put_field_bool(&b, "nki", t->wants & RUN_NKI);
  json_put_key(&b, "about");
  buf_append(&b, buf_text(&t->about), t->about.len);
  buf_puts(&b, "}\n");
  const enum MHD_Result r = http_json(rq, MHD_HTTP_OK, buf_text(&b), b.len, false);
  buf_clear(&b);
  return r;
}

enum MHD_Result api_runner_next(struct request *rq) {
  struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return start_next(rq);
  if (api_part(rq)->call.state == CALL_NONE) /* it was held */
    return http_is_gone(rq) ? MHD_NO : api_call_store(rq, STORE_READ, look);
  if (run_failed(rq, &answer))
    return answer;
  if (s->found) {
    runs_note(rq, s->taken.tries > 1 ? RUNS_AGAIN : RUNS_TAKEN);
    runs_wake(rq); /* for those who follow the run */
    return send_run(rq);
  }
  if (s->is_offered) {
    s->is_offered = false;
    return http_is_gone(rq) ? MHD_NO : api_call_store(rq, STORE_WRITE, take);
  }
  if (run_hold(rq))
    return MHD_YES;
  return http_send(rq, MHD_HTTP_NO_CONTENT, MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT));
}

/* ---- beat ---------------------------------------------------------------------------------------------------------- */

static void beat(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  const char *log = json_string_value(json_object_get(s->body, "log"));
  if (runner_check(s, db))
    s->st =
        store_beat_run(db, &s->run, s->fence, log ? log : "", services_of(rq)->runs->cfg.lease_ms, &s->hold, &s->err);
}

enum MHD_Result api_runner_beat(struct request *rq) {
  const struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s)
    return runner_read(rq, false, &answer) && runner_read_body(rq, &answer) ? api_call_store(rq, STORE_WRITE, beat)
                                                                            : answer;
  if (s->hold == RUN_HELD && json_string_length(json_object_get(s->body, "log")))
    runs_wake(rq);
  return runner_answer_hold(rq);
}
