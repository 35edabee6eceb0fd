/* POST /api/v1/compile: answers a kernel with its stages, all at once or as they come.
 *
 * The connection is suspended while there is nothing to send, and the work resumes it.  A stream's status line is sent
 * with its first frame, so a work that is refused before that is answered with a proper 503.
 */
#include "api/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/hmac.h>

#include "api/part.h"
#include "api/services.h"
#include "api/stream.h"
#include "api/told.h"
#include "api/whole.h"
#include "base/json.h"
#include "pool/pool.h"

enum {
  JSON_NEST_MAX = 64,
  /* What a job takes in its arena: its texts, once and a little more, and its inputs. */
  ROOM = (64 << 10) + JOB_INPUTS_MAX * (int)sizeof(struct job_input),
  ROOM_PER_BYTE = 3,
};

#define EDITOR_HEADER "X-Nkx-Editor"

/* ---- what handlers that compile share ---------------------------------------------------------------------------- */

enum status compile_check_nesting(const struct buf *b, struct error *err) {
  if (json_nesting(buf_text(b), b->len) > JSON_NEST_MAX)
    return fail(err, ST_INPUT, "The JSON is nested more than %d levels deep.", JSON_NEST_MAX);
  return ST_OK;
}

enum status compile_arena(struct arena *a, size_t text_len, struct error *err) {
  arena_init(a);
  return arena_reserve(a, ROOM + ROOM_PER_BYTE * text_len) ? ST_OK : fail(err, ST_NOMEM, "request");
}

enum { MAC_SIZE = 65 };

/* The hexadecimal HMAC of a text under the store's secret, which all servers on it have. */
static void put_mac(struct request *rq, const char *text, char mac[MAC_SIZE]) {
  unsigned char digest[32];
  unsigned int n;
  HMAC(EVP_sha256(), store_secret(services_of(rq)->store), STORE_SECRET_SIZE, (const unsigned char *)text, strlen(text),
       digest, &n);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf(mac + 2 * i, 3, "%02x", digest[i]);
}

/* The scope of a client that gives none is made of its address.  So what a client compiles without a scope is found by that
 * client only. */
void compile_own_scope(struct request *rq, char scope[JOB_SCOPE_MAX + 1]) {
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  put_mac(rq, address, scope);
}

/* A work for the job in its scope; NULL when out of memory. */
static struct work *new_work(struct request *rq, const struct job *job) {
  char own[JOB_SCOPE_MAX + 1];
  struct job scoped = *job;
  if (!job->scope) {
    compile_own_scope(rq, own);
    scoped.scope = own;
  }
  return work_new(&scoped);
}

static enum results_mode mode_of(struct request *rq) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_CACHE_CONTROL);
  if (!h)
    return RESULTS_CACHED;
  return strcasestr(h, "no-store") ? RESULTS_APART : strcasestr(h, "no-cache") ? RESULTS_FRESH : RESULTS_CACHED;
}

/* Takes w. */
static enum status run(struct request *rq, struct work *w, enum results_mode mode, struct error *err) {
  const struct services *s = services_of(rq);
  struct api_part *part = api_part(rq);
  char address[ADDRESS_TEXT_SIZE];
  http_client_key(rq, address);
  struct results_ask ask = {
      .mode = mode, .client_fd = http_client_fd(rq), .payer = quota_client(s->quota, address), .waiter = &part->waiter};
  enum status st = results_compile(s->results, w, &ask, &part->work, err);
  part->is_found = !st && work_look(part->work, NULL, NULL) == WORK_ENDED;
  client_let_go(ask.payer);
  if (!st && part->waiter.is_first)
    told_say_used(s, address, QUOTA_USE_COMPILE, 1);
  rq->refusal = ask.verdict == QUOTA_JOBS ? PB_JOBS : PB_COMPILES;
  rq->retry_s = ask.retry_s;
  return st;
}

enum status compile_start_as(struct request *rq, const struct job *job, enum results_mode mode, struct error *err) {
  struct work *w = new_work(rq, job);
  return w ? run(rq, w, mode, err) : fail(err, ST_NOMEM, "request");
}

enum status compile_start(struct request *rq, const struct job *job, struct error *err) {
  return compile_start_as(rq, job, mode_of(rq), err);
}

enum MHD_Result compile_refused(struct request *rq) {
  struct pool_health h;
  const struct work *w = api_part(rq)->work;
  pool_look(services_of(rq)->pool, &h);
  const enum pool_version v = w ? pool_look_version(services_of(rq)->pool, work_pipeline(w)) : POOL_VERSION_UP;
  if (v)
    return http_problem(rq, v == POOL_VERSION_DOWN ? PB_VERSION_DOWN : PB_STARTING, NULL, NULL);
  return http_problem(rq, h.is_ready ? PB_BUSY : h.has_no_jail ? PB_UNAVAILABLE : PB_STARTING, NULL, NULL);
}

/* ---- the route --------------------------------------------------------------------------------------------------- */

/* From now on the request is its editor's newest, here and on the other servers. */
static void enter_editor(struct request *rq, const char *name) {
  const struct services *s = services_of(rq);
  struct editor_place *place = &api_part(rq)->editor;
  char address[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE + EDITOR_NAME_MAX + 2];
  http_client_key(rq, address);
  snprintf(text, sizeof text, "%s %s", address, name);
  put_mac(rq, text, place->key);
  place->entered_ms = store_now_ms();
  editors_enter(s->editors, place);
  told_say_editor(s, place);
}

/* compile_start for a request that names its editor.  The request enters first, because cancelling the editor's older
 * compile makes room for this one. */
static enum status start_for_editor(struct request *rq, const struct job *job, const char *name, struct error *err) {
  const struct services *s = services_of(rq);
  struct api_part *part = api_part(rq);
  struct editor_place *place = &part->editor;
  const enum results_mode mode = mode_of(rq);
  if (!editor_is_name(name))
    return fail(err, ST_INPUT, EDITOR_HEADER ": expected %d to %d letters, digits, \"-\" or \"_\"", EDITOR_NAME_MIN,
                EDITOR_NAME_MAX);
  struct work *w = new_work(rq, job);
  if (!w)
    return fail(err, ST_NOMEM, "request");
  if (mode == RESULTS_CACHED)
    memcpy(place->job, work_key(w), JOB_KEY_SIZE);
  enter_editor(rq, name);
  enum status st = run(rq, w, mode, err);
  if (!st)
    editors_set_work(s->editors, place, part->work, &part->waiter);
  return st;
}

static enum status start(struct request *rq, struct error *err) {
  struct arena a;
  struct job job;

  enum status st = compile_check_nesting(&rq->body, err);
  if (!st)
    st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  st = job_parse(&a, buf_text(&rq->body), rq->body.len, &job, err);
  if (!st)
    st = compile_choose_version(rq, &job, err);
  const char *editor = http_header(rq, EDITOR_HEADER);
  if (!st)
    st = editor ? start_for_editor(rq, &job, editor, err) : compile_start(rq, &job, err);
  arena_clear(&a);
  buf_clear(&rq->body);
  return st;
}

static bool accepts(struct request *rq, const char *type) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_ACCEPT);
  return h && strcasestr(h, type);
}

enum MHD_Result compile_answer(struct request *rq) {
  struct api_part *part = api_part(rq);
  const bool is_sse = accepts(rq, "text/event-stream"), is_stream = is_sse || accepts(rq, "application/x-ndjson");

  if (!work_wait(part->work, &part->waiter, !is_stream, http_park, http_resume, rq->connection))
    return MHD_YES; /* we are called again */
  bool is_called_off = work_is_called_off(part->work, &part->waiter);
  if (is_called_off && !is_stream)
    return http_problem(rq, PB_SUPERSEDED, NULL, NULL);
  if (!is_called_off && work_look(part->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  if (is_stream)
    return stream_send(rq, is_sse);
  return whole_send(rq);
}

enum MHD_Result api_compile(struct request *rq) {
  struct error err;
  const enum status st = api_part(rq)->work ? ST_OK : start(rq, &err);
  return st ? http_status_problem(rq, st, &err) : compile_answer(rq);
}
