/* The stored results: whole, in parts, and packed. */
#include "api/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/pack.h"
#include "base/json.h"
#include "job/export.h"
#include "job/results.h"

enum part { PART_WHOLE, PART_STAGE, PART_ARTIFACT, PART_ALL };

struct state {
  enum part part;
  int kernel, stage;
  const char *name; /* of an artifact; in the path */
  struct body body;
  bool found;
};

static void free_state(void *user) {
  struct state *s = user;
  body_clear(&s->body);
  free(s);
}

static bool read_number(const char *text, int *out) {
  char *end;
  long n = strtol(text, &end, 10);
  *out = (int)n;
  return *text >= '0' && *text <= '9' && !*end && n < 100000;
}

/* What the path behind the key asks for; false if that is nothing there can be. */
static bool read_part(struct request *rq, const char *tail, struct state *s) {
  const char *kernel = MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, "kernel");
  if (kernel && !read_number(kernel, &s->kernel))
    return false;
  if (!*tail || !strcmp(tail, "/")) {
    s->part = PART_WHOLE;
    return true;
  }
  if (!strncmp(tail, "/stages/", 8)) {
    s->part = PART_STAGE;
    return read_number(tail + 8, &s->stage);
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
    s->found = export_stage(rq->work, s->kernel, s->stage, b);
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
  }
  if (!s->found)
    return;
  body_pack(&s->body, s->part == PART_ALL);
  if (s->part == PART_WHOLE)
    body_keep(&s->body, rq->work);
}

static enum MHD_Result start(struct request *rq) {
  char key[JOB_KEY_SIZE];
  size_t n = strspn(rq->rest, "0123456789abcdef");
  struct state *s = calloc(1, sizeof *s);
  if (!s)
    return MHD_NO;
  rq->state = s;
  rq->free_state = free_state;
  rq->is_private = true;
  if (n != JOB_KEY_SIZE - 1 || !read_part(rq, rq->rest + n, s))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  memcpy(key, rq->rest, n);
  key[n] = 0;
  body_init(&s->body, rq);
  rq->work = results_find(rq->app->results, key);
  return rq->work ? MHD_YES : MHD_NO;
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
  if (rq->call.state == CALL_DONE) {
    if (rq->call.is_lost)
      return http_problem(rq, PB_STORE, NULL, NULL);
    if (!s->found)
      return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
    if (s->part == PART_WHOLE && body_send_kept(rq, rq->work, &answer))
      return answer;
    return body_send(&s->body, rq);
  }
  if (!work_wait(rq->work, &rq->waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (work_look(rq->work, NULL, NULL) == WORK_REFUSED)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (s->part == PART_WHOLE && body_send_kept(rq, rq->work, &answer))
    return answer;
  return http_call_store(rq, STORE_READ, build);
}
