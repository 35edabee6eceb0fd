#include "api/seal.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "api/compile.h"
#include "api/services.h"
#include "api/snippet.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/pool.h"
#include "pool/versions.h"
#include "session/hub.h"
#include "store/sessions.h"

enum {
  LOOK_MS = 60000, /* between two looks; more often if sessions end sooner */
  LOOK_OF = 4,
  WATCH_MS = 200, /* how soon a compile notices that the server stops */
};

struct seal {
  const struct services *services;
  int64_t idle_ms;
  pthread_t thread;
  sem_t stop; /* posted once */
};

/* One session. */
struct sealing {
  struct store_task task; /* first: a struct store_task * is also a struct sealing * */
  sem_t done;             /* the step that was begun has ended */
  int64_t before_ms;
  struct ident_hash session;
  struct buf request; /* {"request", "view"?} */
  bool found;
  struct store_snippet link;
  char id[IDENT_LEN + 1];
  enum status st;
  struct error err;
};

/* True if the semaphore was posted; it stays so. */
static bool is_posted(sem_t *s, int64_t wait_ms) {
  const int64_t ns = clock_now_ns() + wait_ms * INT64_C(1000000);
  const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  int r;
  while ((r = sem_clockwait(s, CLOCK_MONOTONIC, &until)) && errno == EINTR)
    ;
  if (!r)
    sem_post(s);
  return !r;
}

static void end_step(void *user) {
  sem_post(&((struct sealing *)user)->done);
}

static void wait_step(struct sealing *s) {
  while (sem_wait(&s->done))
    ; /* a signal */
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------ */

static void park(void *user) {
  (void)user; /* this thread waits by the semaphore */
}

/* Compiles the job, and keeps its frames.  ST_BUSY: not now. */
static enum status compile(struct seal *seal, struct sealing *s, const struct job *job) {
  struct work_waiter waiter = {0};
  struct work *w = work_new(job);
  const int64_t until = clock_now_ms() + seal->services->work_ms;
  if (!w)
    return fail(&s->err, ST_NOMEM, "a session's link");
  enum status st = pool_submit(seal->services->pool, w, 0);
  if (!st && !work_wait(w, &waiter, true, park, end_step, s))
    while (!is_posted(&s->done, WATCH_MS) && !is_posted(&seal->stop, 0) && clock_now_ms() < until)
      ;
  work_forget_reader(w, &waiter);
  size_t len = 0;
  char *frames = !st && work_look(w, NULL, NULL) == WORK_ENDED ? work_frames(w, &len) : NULL;
  if (!frames)
    st = fail(&s->err, ST_BUSY, "the kernel cannot be compiled now");
  else if (buf_append(&s->link.frames, frames, len))
    st = fail(&s->err, ST_NOMEM, "a session's link");
  free(frames);
  work_leave(w, &waiter);
  work_unref(w);
  sem_trywait(&s->done);
  return st;
}

/* Today's pipeline, or the version that was chosen. */
static enum status choose_version(const struct seal *seal, struct sealing *s, struct job *job) {
  const struct versions *vs = seal->services->versions;
  const int v = versions_find(vs, job->version);
  if (v < 0)
    return fail(&s->err, ST_ABSENT, "a version that is not installed");
  job->version = v == VERSION_TODAY ? NULL : vs->v[v].pipeline;
  return ST_OK;
}

static enum status make_link(struct seal *seal, struct sealing *s, const json_t *both) {
  const struct snippet_extra extra = {.view = json_object_get(both, "view")};
  struct arena a;
  struct job job;
  enum status st = compile_arena(&a, s->request.len, &s->err);
  if (st)
    return st;
  st = job_read(&a, json_object_get(both, "request"), &job, &s->err);
  if (!st)
    st = choose_version(seal, s, &job);
  if (!st)
    st = snippet_write_doc(&s->link.doc, &job, &extra, &s->err);
  if (!st)
    st = compile(seal, s, &job);
  arena_clear(&a);
  return st;
}

static enum status name_link(struct sealing *s) {
  char token[IDENT_LEN + 1];
  enum status st = ident_new(s->id, &s->err);
  if (!st)
    st = ident_new(token, &s->err);
  if (st)
    return st;
  ident_hash(s->id, IDENT_LEN, &s->link.id);
  ident_hash(token, IDENT_LEN, &s->link.token);
  s->link.created_ms = store_now_ms();
  return ST_OK;
}

/* ---- the store ------------------------------------------------------------------------------------------------------- */

static void find(struct store_task *t, struct db *db) {
  struct sealing *s = (struct sealing *)t;
  s->st = store_find_idle_session(db, s->before_ms, &s->session, &s->request, &s->found, &s->err);
  end_step(s);
}

/* has_link: s->link is what it becomes. */
static enum status end(struct seal *seal, struct sealing *s, bool has_link) {
  struct hub *h = seal->services->sessions;
  struct hub_write w = {.w = {.act = SESSION_SEAL,
                              .session = s->session,
                              .number = s->before_ms,
                              .text = has_link ? s->id : "",
                              .link = has_link ? &s->link : NULL},
                        .resume = end_step,
                        .user = s};
  w.room = hub_enter(h, &s->session);
  if (!w.room)
    return fail(&s->err, ST_BUSY, "too many sessions");
  hub_make(h, &w);
  wait_step(s);
  hub_leave(h, w.room);
  if (w.st)
    s->err = w.err;
  else if (!w.w.verdict)
    log_info("session_sealed", "link=%s", has_link ? "yes" : "no");
  if (!w.st && !w.w.verdict && has_link)
    store_took(seal->services->store, s->link.packed);
  return w.st;
}

/* A kernel that cannot become a link, now or later, does not keep its session. */
static enum status seal_found(struct seal *seal, struct sealing *s) {
  if (!store_has_room(seal->services->store))
    return fail(&s->err, ST_FULL, "no link is stored");
  json_t *both = json_loadb(buf_text(&s->request), s->request.len, 0, NULL);
  enum status st = both ? make_link(seal, s, both) : fail(&s->err, ST_INPUT, "a damaged request");
  json_decref(both);
  if (!st)
    st = name_link(s);
  if (st == ST_INPUT || st == ST_ABSENT || st == ST_LIMIT) {
    log_warn("session_seal", "status=%s %s", status_name(st), s->err.text);
    return end(seal, s, false);
  }
  return st ? st : end(seal, s, true);
}

/* True if there may be another one. */
static bool seal_one(struct seal *seal) {
  struct sealing s = {.task.run = find, .before_ms = store_now_ms() - seal->idle_ms};
  bool again = false;
  sem_init(&s.done, 0, 0);
  store_snippet_init(&s.link);
  buf_init(&s.request, 2 * SESSION_REQUEST_MAX);
  if (store_submit(seal->services->store, STORE_READ, &s.task)) {
    wait_step(&s);
    if (!s.st && s.found) {
      s.st = seal_found(seal, &s);
      again = s.st == ST_OK;
    }
    if (s.st)
      log_warn("session_seal", "status=%s %s", status_name(s.st), s.err.text);
  }
  buf_clear(&s.request);
  store_snippet_clear(&s.link);
  sem_destroy(&s.done);
  return again;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------ */

static void *run(void *user) {
  struct seal *s = user;
  const int64_t look_ms = s->idle_ms / LOOK_OF < LOOK_MS ? s->idle_ms / LOOK_OF : LOOK_MS;
  while (!is_posted(&s->stop, look_ms))
    while (!is_posted(&s->stop, 0) && seal_one(s))
      ;
  return NULL;
}

enum status seal_start(const struct services *services, int64_t idle_ms, struct seal **out, struct error *err) {
  struct seal *s = calloc(1, sizeof *s);
  if (!s)
    return fail(err, ST_NOMEM, "sessions");
  s->services = services;
  s->idle_ms = idle_ms;
  sem_init(&s->stop, 0, 0);
  if (pthread_create(&s->thread, NULL, run, s)) {
    sem_destroy(&s->stop);
    free(s);
    return fail(err, ST_IO, "sessions: no thread");
  }
  *out = s;
  return ST_OK;
}

void seal_stop(struct seal *s) {
  if (!s)
    return;
  sem_post(&s->stop);
  pthread_join(s->thread, NULL);
  sem_destroy(&s->stop);
  free(s);
}
