/* POST /api/compiler/ID/compile, and its form for browsers without scripts.  It compiles as /api/v1/compile does; the
 * answer is made on a store thread, because that takes a while. */
#include "api/compile.h"

#include <stdlib.h>

#include "api/part.h"
#include "base/clock.h"
#include "ce/internal.h"

enum { ANSWER_MAX = 4 * WORK_BYTES_MAX }; /* with the pass pipeline, each stage is in the answer twice */

struct state {
  struct arena arena;
  struct ce_ask ask;
  bool was_cached, is_json;
  struct buf answer;
};

static void free_state(void *user) {
  struct state *s = user;
  buf_clear(&s->answer);
  ce_ask_clear(&s->ask);
  arena_clear(&s->arena);
  free(s);
}

static int append(const char *text, size_t n, void *user) {
  return buf_append(user, text, n) ? -1 : 0;
}

/* Takes reply; NULL, out of memory, leaves a failed buffer. */
static void write_answer(struct state *s, json_t *reply) {
  if (!reply)
    s->answer.failed = ST_NOMEM;
  else if (s->is_json)
    json_dump_callback(reply, append, &s->answer, JSON_COMPACT);
  else
    ce_reply_text(reply, s->ask.filters_ansi, &s->answer);
  json_decref(reply);
}

static enum MHD_Result send_answer(struct request *rq, struct state *s) {
  return s->is_json ? ce_send_json(rq, &s->answer, CE_NO_STORE) : ce_send_text(rq, &s->answer, CE_NO_STORE);
}

/* On a store thread. */
static void build(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  struct work *w = api_part(rq)->work;
  (void)db;
  write_answer(s, ce_reply(&s->ask, w, s->was_cached || work_was_loaded(w)));
}

/* Reads the request and sets its work, or answers. */
static enum MHD_Result start(struct request *rq) {
  struct state *s = calloc(1, sizeof *s);
  enum MHD_Result answer = MHD_NO;
  int64_t asked_us = clock_now_us();
  struct error err;
  struct job job;
  if (!s)
    return MHD_NO;
  enum status st = compile_arena(&s->arena, rq->body.len, &err);
  ce_ask_init(&s->ask);
  buf_init(&s->answer, ANSWER_MAX);
  s->is_json = ce_wants_json(rq);
  rq->state = s;
  rq->free_state = free_state;
  if (st)
    return http_status_problem(rq, st, &err);
  if (!ce_ask_read(rq, &s->arena, &s->ask, &answer))
    return answer;
  st = s->ask.args.complaint ? ST_OK : ce_ask_job(&s->ask, &s->arena, &job, &err);
  if (!st && s->ask.args.complaint) {
    write_answer(s, ce_reply_complaint(&s->ask));
    return send_answer(rq, s);
  }
  if (!st && s->ask.is_fresh)
    st = compile_start_as(rq, &job, RESULTS_FRESH, &err);
  else if (!st)
    st = compile_start(rq, &job, &err);
  if (st)
    return http_status_problem(rq, st, &err);
  struct work *w = api_part(rq)->work;
  s->was_cached = work_look(w, NULL, NULL) == WORK_ENDED && work_began_us(w) < asked_us;
  buf_clear(&rq->body);
  return MHD_YES;
}

enum MHD_Result ce_compile(struct request *rq) {
  const struct api_part *part = api_part(rq);
  if (!rq->state) {
    enum MHD_Result answer = start(rq);
    if (!part->work)
      return answer;
  }
  if (part->call.state == CALL_DONE)
    return part->call.is_lost ? http_problem(rq, PB_BUSY, NULL, NULL) : send_answer(rq, rq->state);
  if (!api_wait(rq))
    return MHD_YES;
  if (work_look(part->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  return api_build(rq, build);
}
