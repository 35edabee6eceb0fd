/* POST /api/compiler/ID/compile and its form for browsers without scripts: on the same way as /api/v1/compile, with the
 * answer put together on a store thread, which has the time. */
#include "api/compile.h"

#include <stdlib.h>

#include "base/clock.h"
#include "ce/internal.h"

enum { ANSWER_MAX = 128 << 20 }; /* every pass before and after, of a job's 32 MiB of frames */

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

/* Takes reply; NULL leaves a failed buffer. */
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

static void build(struct request *rq, struct db *db) {
  struct state *s = rq->state;
  (void)db;
  write_answer(s, ce_reply(&s->ask, rq->work, s->was_cached || work_was_loaded(rq->work)));
}

/* Sets rq->work, or answers. */
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
    st = compile_start_as(rq, &s->arena, &job, RESULTS_FRESH, &err);
  else if (!st)
    st = compile_start(rq, &s->arena, &job, &err);
  if (st)
    return http_status_problem(rq, st, &err);
  s->was_cached = work_look(rq->work, NULL, NULL) == WORK_ENDED && work_began_us(rq->work) < asked_us;
  buf_clear(&rq->body);
  return MHD_YES;
}

enum MHD_Result ce_compile(struct request *rq) {
  struct state *s = rq->state;
  if (!s) {
    enum MHD_Result answer = start(rq);
    if (!rq->work)
      return answer;
    s = rq->state;
  }
  if (rq->call.state == CALL_DONE)
    return rq->call.is_lost ? http_problem(rq, PB_BUSY, NULL, NULL) : send_answer(rq, s);
  if (!work_wait(rq->work, &rq->waiter, true, http_park, http_resume, rq->connection))
    return MHD_YES;
  if (work_look(rq->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  return http_call_store(rq, STORE_READ, build);
}
