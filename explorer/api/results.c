/* The stored results: whole, in parts, and packed. */
#include "api/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/diffs.h"
#include "api/pack.h"
#include "base/json.h"
#include "job/export.h"
#include "job/results.h"

enum part { PART_WHOLE, PART_STAGE, PART_ARTIFACT, PART_ALL, PART_DIFF };

struct state {
  enum part part;
  struct gather_stage stage;
  const char *name; /* of an artifact; in the path */
  struct diff_query query;
  const char *bad_field; /* of the query */
  enum diff_found diff_found;
  struct results *results;
  struct work *other; /* what is compared with; NULL: the same result */
  struct work_waiter other_waiter;
  struct body body;
  bool found;
  enum status st;
  struct error err;
};

static void free_state(void *user) {
  struct state *s = user;
  if (s->other) {
    results_release(s->results, s->other, &s->other_waiter, -1);
    work_unref(s->other);
  }
  body_clear(&s->body);
  free(s);
}

static bool is_key(const char *text, size_t len) {
  return strspn(text, "0123456789abcdef") == len && len == JOB_KEY_SIZE - 1;
}

/* What the path behind the key asks for; false if that is nothing there can be. */
static bool read_part(struct request *rq, const char *tail, struct state *s) {
  const char *kernel = MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, "kernel");
  if (!strcmp(tail, "/diff")) {
    s->part = PART_DIFF;
    if (diff_read_query(rq, &s->query, &s->bad_field))
      s->bad_field = NULL;
    return true;
  }
  if (kernel && !diff_read_number(kernel, &s->stage.kernel))
    return false;
  if (!*tail || !strcmp(tail, "/")) {
    s->part = PART_WHOLE;
    return true;
  }
  if (!strncmp(tail, "/stages/", 8)) {
    s->part = PART_STAGE;
    return diff_read_number(tail + 8, &s->stage.nth);
  }
  if (!strncmp(tail, "/artifacts/", 11)) {
    s->name = tail + 11;
    s->part = strcmp(s->name, "all.tar.gz") != 0 ? PART_ARTIFACT : PART_ALL;
    return true;
  }
  s->part = PART_ALL;
  return !strcmp(tail, "/all.tar.gz");
}

/* On a store thread, which has the time: big results take a while to cut up and pack. */
static void build(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  struct buf *b = &s->body.bytes;
  (void)db;
  switch (s->part) {
  case PART_WHOLE:
    s->body.type = "application/json";
    s->found = export_result(rq->work, b);
    break;
  case PART_STAGE:
    s->body.type = "application/json";
    s->found = work_stage(rq->work, &s->stage, b);
    break;
  case PART_ARTIFACT:
    s->found = export_file(rq->work, s->name, b, &s->body.type);
    s->body.file_name = strrchr(s->name, '/') ? strrchr(s->name, '/') + 1 : s->name;
    break;
  case PART_ALL:
    s->body.type = "application/gzip";
    s->body.file_name = "all.tar.gz";
    s->found = export_all(rq->work, b);
    break;
  case PART_DIFF:
    s->body.type = "application/json";
    s->st = diff_build(rq->work, s->other ? s->other : rq->work, &s->query, b, &s->diff_found, &s->err);
    s->found = !s->st && s->diff_found == DIFF_FOUND;
    break;
  }
  if (!s->found)
    return;
  body_pack(&s->body, s->part == PART_ALL);
  if (s->part == PART_WHOLE)
    body_keep(&s->body, rq->work);
}

/* Looks for the result that is compared with, if there is one; false if that cannot be, with the answer. */
static bool find_other(struct request *rq, struct state *s, enum MHD_Result *answer) {
  const char *with = MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, "with");
  if (s->part != PART_DIFF)
    return true;
  if (!s->bad_field && with && !is_key(with, strlen(with)))
    s->bad_field = "with";
  if (s->bad_field) {
    *answer = diff_bad_query(rq, s->bad_field);
    return false;
  }
  s->results = rq->app->results;
  s->other = with ? results_find(s->results, with) : NULL;
  *answer = MHD_NO;
  return !with || s->other;
}

static enum MHD_Result start(struct request *rq) {
  char key[JOB_KEY_SIZE];
  size_t n = strspn(rq->rest, "0123456789abcdef");
  enum MHD_Result answer;
  struct state *s = calloc(1, sizeof *s);
  if (!s)
    return MHD_NO;
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  if (!is_key(rq->rest, n) || !read_part(rq, rq->rest + n, s))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  memcpy(key, rq->rest, n);
  key[n] = 0;
  body_init(&s->body, rq);
  if (!find_other(rq, s, &answer))
    return answer;
  rq->work = results_find(rq->app->results, key);
  return rq->work ? MHD_YES : MHD_NO;
}

/* Once it was built. */
static enum MHD_Result finish(struct request *rq, struct state *s) {
  enum MHD_Result answer;
  if (rq->call.is_lost)
    return http_problem(rq, PB_STORE, NULL, NULL);
  if (s->st)
    return http_status_problem(rq, s->st, &s->err);
  if (s->diff_found != DIFF_FOUND)
    return diff_not_found(rq, s->diff_found);
  if (!s->found)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (s->part == PART_WHOLE && body_send_kept(rq, rq->work, &answer))
    return answer;
  return body_send(&s->body, rq);
}

enum MHD_Result api_results_get(struct request *rq) {
  struct state *s = rq->state;
  enum MHD_Result answer;
  if (!s) {
    enum MHD_Result r = start(rq);
    if (!rq->work)
      return r;
    s = rq->state;
  }
  if (rq->call.state == CALL_DONE)
    return finish(rq, s);
  if (!work_wait(rq->work, &rq->waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (s->other && !work_wait(s->other, &s->other_waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (work_look(rq->work, NULL, NULL) == WORK_REFUSED || (s->other && work_look(s->other, NULL, NULL) == WORK_REFUSED))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (s->part == PART_WHOLE && body_send_kept(rq, rq->work, &answer))
    return answer;
  return http_call_store(rq, STORE_READ, build);
}
