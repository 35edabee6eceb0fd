/* search_routes: the requests of searches, what they find, and their answers. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/compile.h"
#include "api/part.h"
#include "api/search_internal.h"
#include "driver/parting.h"
#include "driver/shrink.h"

enum { FRAME_ROOM = 2 << 20, SHRINK_DEFAULT_S = 60, PARTING_DEFAULT_S = 120 };

/* ---- what is found ----------------------------------------------------------------------------------------------- */

static void say_step(void *user, const struct shrink_step *step) {
  struct buf b;
  buf_init(&b, FRAME_ROOM);
  shrink_put_step(&b, step);
  search_say(user, &b);
}

static enum status go_shrink(struct search *s, const struct job_runner *runner, struct error *err) {
  struct shrink_result r;
  struct buf b;
  const enum status st = shrink_search(runner, &s->arena, &s->jobs[0], s->seconds, s->candidates, say_step, s, &r, err);
  if (st)
    return st;
  if (search_is_ending(s))
    r.stopped = "the server ends";
  buf_init(&b, FRAME_ROOM);
  shrink_put_result(&b, &r);
  json_decref(r.changes);
  search_say(s, &b);
  return ST_OK;
}

static void say_compared(void *user, const char *stage, int line, int n_values) {
  struct buf b;
  buf_init(&b, FRAME_ROOM);
  parting_put_progress(&b, stage, line, n_values);
  search_say(user, &b);
}

static enum status go_parting(struct search *s, const struct job_runner *runner, struct error *err) {
  struct parting r;
  struct buf b;
  const enum status st = parting_find(runner, &s->arena, s->jobs, s->with_values, say_compared, s, &r, err);
  if (st)
    return st;
  buf_init(&b, FRAME_ROOM);
  parting_put(&b, &r, s->with_values);
  search_say(s, &b);
  return ST_OK;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static enum status read_count(const json_t *v, const char *name, int most, int *out, struct error *err) {
  if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > most)
    return fail(err, ST_INPUT, "%s: expected an integer from 1 to %d", name, most);
  *out = (int)json_integer_value(v);
  return ST_OK;
}

static enum status read_job(struct request *rq, struct search *s, const json_t *v, const char *name, struct job *out,
                            struct error *err) {
  struct error why;
  enum status st = job_read(&s->arena, v, out, &why);
  if (!st)
    st = compile_choose_version(rq, out, &why);
  if (st)
    return fail(err, st, "%s: %.200s", name, why.text);
  if (out->tune.seconds || out->upgrade || out->shrink.is_set || out->value.is_set || out->steps || out->is_binary)
    return fail(
        err, ST_INPUT,
        "%s: a search is for a text that goes through the stages, without tune, upgrade, shrink, value and steps",
        name);
  if (!out->scope)
    out->scope = s->scope;
  return ST_OK;
}

static enum status read_field(struct request *rq, struct search *s, const char *key, const json_t *v, bool is_shrink,
                              int *n_jobs, struct error *err) {
  if (!strcmp(key, "seconds"))
    return read_count(v, key, SEARCH_SECONDS_MAX, &s->seconds, err);
  if (is_shrink && !strcmp(key, "candidates"))
    return read_count(v, key, SEARCH_CANDIDATES_MAX, &s->candidates, err);
  if (!is_shrink && !strcmp(key, "values") && json_is_boolean(v)) {
    s->with_values = json_is_true(v);
    return ST_OK;
  }
  const int side = is_shrink ? (!strcmp(key, "request") ? 0 : -1)
                             : (!strcmp(key, "a")   ? 0
                                : !strcmp(key, "b") ? 1
                                                    : -1);
  if (side < 0)
    return fail(err, ST_INPUT, "%.60s: there is no such field, or it has another type", key);
  ++*n_jobs;
  return read_job(rq, s, v, key, &s->jobs[side], err);
}

static enum status read_search(struct request *rq, struct search *s, bool is_shrink, struct error *err) {
  json_error_t jerr;
  const char *key;
  json_t *v;
  int n_jobs = 0;
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &jerr);
  enum status st = !root ? fail(err, ST_INPUT, "line %d column %d: %s", jerr.line, jerr.column, jerr.text)
                   : !json_is_object(root) ? fail(err, ST_INPUT, "expected a JSON object")
                                           : ST_OK;
  if (!st) {
    json_object_foreach(root, key, v) {
      st = read_field(rq, s, key, v, is_shrink, &n_jobs, err);
      if (st)
        break;
    }
  }
  if (!st && n_jobs < (is_shrink ? 1 : 2))
    st = fail(err, ST_INPUT, is_shrink ? "request: missing" : "a and b: expected a request for each");
  if (!st && is_shrink && s->jobs[0].resume.stage)
    st = fail(err, ST_INPUT, "request.options.resume: a kernel is made smaller from its source on");
  json_decref(root);
  return st;
}

static enum status start(struct request *rq, bool is_shrink, struct error *err) {
  struct search *s = search_new();
  if (!s)
    return fail(err, ST_NOMEM, "a search");
  s->seconds = is_shrink ? SHRINK_DEFAULT_S : PARTING_DEFAULT_S;
  s->candidates = SEARCH_CANDIDATES_MAX;
  s->with_values = true;
  s->go = is_shrink ? go_shrink : go_parting;
  compile_own_scope(rq, s->scope);
  enum status st = compile_check_nesting(&rq->body, err);
  if (!st)
    st = compile_arena(&s->arena, 2 * rq->body.len, err);
  if (!st)
    st = read_search(rq, s, is_shrink, err);
  buf_clear(&rq->body);
  if (!st)
    return search_begin(rq, s, err);
  search_free(s);
  return st;
}

enum status search_shrink(struct request *rq, const struct job *job, struct error *err) {
  struct search *s = search_new();
  size_t len = 0;
  char *text = s ? job_dump(job, &len) : NULL;
  enum status st = text ? compile_arena(&s->arena, 2 * len, err) : fail(err, ST_NOMEM, "a search");
  if (!st)
    st = job_parse(&s->arena, text, len, &s->jobs[0], err);
  free(text);
  if (st) {
    if (s)
      search_free(s);
    return st;
  }
  compile_own_scope(rq, s->scope);
  if (!s->jobs[0].scope)
    s->jobs[0].scope = s->scope;
  s->seconds = job->shrink_seconds;
  s->candidates = job->shrink_candidates;
  s->go = go_shrink;
  return search_begin(rq, s, err);
}

static enum MHD_Result answer(struct request *rq, bool is_shrink) {
  struct error err;
  const enum status st = api_part(rq)->work ? ST_OK : start(rq, is_shrink, &err);
  return st ? http_status_problem(rq, st, &err) : compile_answer(rq);
}

enum MHD_Result api_shrink(struct request *rq) {
  return answer(rq, true);
}

enum MHD_Result api_parting(struct request *rq) {
  return answer(rq, false);
}
