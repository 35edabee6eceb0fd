#include "api/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/diffs.h"
#include "api/pack.h"
#include "api/part.h"
#include "api/services.h"
#include "api/whys.h"
#include "job/export.h"
#include "job/results.h"

enum part { PART_WHOLE, PART_STAGE, PART_SOURCES, PART_ARTIFACT, PART_ALL, PART_DIFF, PART_COMPARISON, PART_WHY };

struct state {
  enum part part;
  struct gather_stage stage;
  const char *name; /* of an artifact; in the path */
  struct diff_query query;
  struct why_query why;
  const char *bad_field; /* of the query */
  enum diff_found diff_found;
  struct results *results;
  struct work *other; /* the result to compare with; NULL: the same one */
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

/* Reads the part of the path after the key; false if it names no part. */
static bool read_part(struct request *rq, const char *tail, struct state *s) {
  const char *kernel = http_argument(rq, "kernel");
  if (!strcmp(tail, "/diff")) {
    s->part = PART_DIFF;
    if (diff_read_query(rq, &s->query, &s->bad_field))
      s->bad_field = NULL;
    return true;
  }
  if (!strcmp(tail, "/comparison")) {
    s->part = PART_COMPARISON;
    if (!http_argument(rq, "with"))
      s->bad_field = "with";
    return true;
  }
  if (!strcmp(tail, "/why")) {
    s->part = PART_WHY;
    if (why_read_query(rq, &s->why, &s->bad_field))
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
  if (!strcmp(tail, "/sources")) {
    s->part = PART_SOURCES;
    return true;
  }
  if (!strncmp(tail, "/artifacts/", 11)) {
    s->name = tail + 11;
    s->part = strcmp(s->name, "all.tar.gz") != 0 ? PART_ARTIFACT : PART_ALL;
    return true;
  }
  s->part = PART_ALL;
  return !strcmp(tail, "/all.tar.gz");
}

/* On a store thread, because a large result takes a while to be cut up and packed. */
static void build(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  struct work *w = api_part(rq)->work;
  struct buf *b = &s->body.bytes;
  (void)db;
  switch (s->part) {
  case PART_WHOLE:
    s->body.type = "application/json";
    s->found = export_result(w, b);
    break;
  case PART_STAGE:
    s->body.type = "application/json";
    s->found = work_stage(w, &s->stage, b);
    break;
  case PART_SOURCES:
    s->body.type = "application/json";
    s->found = work_sources(w, b);
    break;
  case PART_ARTIFACT:
    s->found = export_file(w, s->name, b, &s->body.type);
    s->body.file_name = strrchr(s->name, '/') ? strrchr(s->name, '/') + 1 : s->name;
    break;
  case PART_ALL:
    s->body.type = "application/gzip";
    s->body.file_name = "all.tar.gz";
    s->found = export_all(w, b);
    break;
  case PART_COMPARISON:
    s->body.type = "application/json";
    s->found = export_comparison(w, s->other, b);
    break;
  case PART_DIFF:
    s->body.type = "application/json";
    s->st = diff_build(w, s->other ? s->other : w, &s->query, b, &s->diff_found, &s->err);
    s->found = !s->st && s->diff_found == DIFF_FOUND;
    break;
  case PART_WHY:
    s->body.type = "application/json";
    s->st = why_build(w, &s->why, b, &s->found, &s->err);
    break;
  }
  if (!s->found)
    return;
  body_pack(&s->body, s->part == PART_ALL);
  if (s->part == PART_WHOLE)
    body_keep(&s->body, w);
}

/* Finds the result to compare with, if one is named; false, with the answer, if the query is wrong or memory ran
 * out. */
static bool find_other(struct request *rq, struct state *s, enum MHD_Result *answer) {
  const char *with = http_argument(rq, "with");
  if (s->part != PART_DIFF && s->part != PART_COMPARISON)
    return true;
  if (!s->bad_field && with && !is_key(with, strlen(with)))
    s->bad_field = "with";
  if (s->bad_field) {
    *answer = diff_bad_query(rq, s->bad_field);
    return false;
  }
  s->results = services_of(rq)->results;
  s->other = with ? results_find(s->results, with) : NULL;
  *answer = MHD_NO;
  return !with || s->other;
}

/* Sets the request's work, or answers. */
static enum MHD_Result start(struct request *rq) {
  struct api_part *part = api_part(rq);
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
  assert(n == sizeof key - 1);
  memcpy(key, rq->rest, n);
  key[n] = 0;
  body_init(&s->body, rq);
  if (s->part == PART_WHY && s->bad_field)
    return http_problem(rq, PB_BAD_FIELD,
                        "stage: expected a stage's number, its name, or NAME:N; line: a number from 1", s->bad_field);
  if (!find_other(rq, s, &answer))
    return answer;
  part->work = results_find(services_of(rq)->results, key);
  return part->work ? MHD_YES : MHD_NO;
}

/* Once the body was built. */
static enum MHD_Result finish(struct request *rq, struct state *s) {
  struct api_part *part = api_part(rq);
  enum MHD_Result answer;
  if (part->call.is_lost)
    return http_problem(rq, PB_STORE, NULL, NULL);
  if (s->st)
    return http_status_problem(rq, s->st, &s->err);
  if (s->diff_found != DIFF_FOUND)
    return diff_not_found(rq, s->diff_found);
  if (!s->found)
    return http_problem(rq, PB_NOT_FOUND, s->part == PART_WHY ? s->err.text : NULL, NULL);
  if (s->part == PART_WHOLE && body_send_kept(rq, part->work, &answer))
    return answer;
  return body_send(&s->body, rq);
}

static bool is_refused(struct work *w) {
  return w && work_look(w, NULL, NULL) == WORK_REFUSED;
}

enum MHD_Result api_results_get(struct request *rq) {
  struct api_part *part = api_part(rq);
  enum MHD_Result answer;
  if (!rq->state) {
    answer = start(rq);
    if (!part->work)
      return answer;
  }
  struct state *s = rq->state;
  if (part->call.state == CALL_DONE)
    return finish(rq, s);
  if (!api_wait(rq) || (s->other && !api_wait_for(rq, s->other, &s->other_waiter)))
    return MHD_YES;
  if (is_refused(part->work) || is_refused(s->other))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (s->part == PART_WHOLE && body_send_kept(rq, part->work, &answer))
    return answer;
  return api_build(rq, build);
}
