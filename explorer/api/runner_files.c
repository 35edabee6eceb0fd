/* GET and POST /api/v1/runner/files/RUN/NAME: the files that a runner takes, and those that it brings. */
#include "api/runs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

static bool is_one_of(const char *name, const char *const *list) {
  while (*list && strcmp(*list, name) != 0)
    list++;
  return *list;
}

/* What is expected of a run is for the comparison only: a runner does not get it. */
static bool is_given(const char *name) {
  static const char *const names[] = {"hlo.pb", "inputs.safetensors", NULL};
  return is_one_of(name, names);
}

static bool is_brought(const char *name) {
  static const char *const names[] = {"outputs.safetensors", "kernel.neff", "kernel.nki.py", "profile.ntff", NULL};
  return is_one_of(name, names);
}

/* ---- giving -------------------------------------------------------------------------------------------------------- */

static void read_file(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  if (runner_check(s, db))
    s->st = store_look_hold(db, &s->run, s->fence, &s->hold, &s->err);
  if (!s->st && s->is_allowed && s->hold == RUN_HELD)
    s->st = store_get_run_file(db, &s->run, s->name, &s->answer, &s->found, &s->err);
}

enum MHD_Result api_runner_file_get(struct request *rq) {
  struct run_state_of *s = rq->state;
  enum MHD_Result answer;
  if (!s) {
    if (!runner_read(rq, true, &answer))
      return answer;
    s = rq->state;
    return is_given(s->name) ? api_call_store(rq, STORE_WRITE, read_file) : http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  }
  if (run_failed(rq, &answer))
    return answer;
  if (s->hold != RUN_HELD)
    return http_problem(rq, PB_LEASE, NULL, NULL);
  if (!s->found)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  struct http_bytes b = {.data = s->answer.data,
                         .len = s->answer.len,
                         .type = "application/octet-stream",
                         .release = free,
                         .user = s->answer.data};
  s->answer = (struct buf){.max = s->answer.max};
  return http_bytes(rq, MHD_HTTP_OK, &b);
}

/* ---- taking -------------------------------------------------------------------------------------------------------- */

static void put_file(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  char name[sizeof s->name + sizeof RUN_OUT];
  snprintf(name, sizeof name, RUN_OUT "%s", s->name);
  const struct run_file f = {name, buf_text(&rq->body), rq->body.len};
  if (runner_check(s, db))
    s->st = store_put_run_file(db, &s->run, s->fence, &f, &s->hold, &s->err);
}

static bool has_right_hash(struct request *rq) {
  const char *said = http_header(rq, "X-Nkx-Sha256");
  struct ident_hash want, got;
  SHA256((const unsigned char *)buf_text(&rq->body), rq->body.len, got.bytes);
  return said && run_read_hex(said, strlen(said), &want) && ident_hash_equal(&want, &got);
}

static enum MHD_Result start_put(struct request *rq) {
  const char *type = http_header(rq, MHD_HTTP_HEADER_CONTENT_TYPE);
  enum MHD_Result answer;
  if (!type || strcasecmp(type, "application/octet-stream") != 0)
    return http_problem(rq, PB_MEDIA_TYPE, "The body must be a file, sent as application/octet-stream.", NULL);
  if (!runner_read(rq, true, &answer))
    return answer;
  const struct run_state_of *s = rq->state;
  if (!is_brought(s->name))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (!has_right_hash(rq))
    return http_problem(rq, PB_RUNNER_DATA, "The body does not have the SHA-256 that X-Nkx-Sha256 says.", NULL);
  return api_call_store(rq, STORE_WRITE, put_file);
}

enum MHD_Result api_runner_file_put(struct request *rq) {
  return rq->state ? runner_answer_hold(rq) : start_put(rq);
}
