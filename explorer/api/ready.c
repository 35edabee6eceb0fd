#include "api/ready.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/compile.h"
#include "api/services.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "jail/confine.h"
#include "pool/pool.h"
#include "store/store.h"
#include "work/work.h"

enum {
  TRIAL_MS = 4000,
  GOOD_FOR_MS = 1000, /* how long an outcome is used */
  TICK_MS = 50,
  WHY_MAX = 160,
  ANSWER_MAX = 2048,
};

static const char kernel[] = "{\"source\":\"import numpy as np\\ndef ready(x):\\n    return np.exp(x) + 1\\n\","
                             "\"inputs\":[{\"name\":\"x\",\"shape\":[4,8],\"dtype\":\"float32\"}]}";

struct outcome {
  bool is_ready;
  char worker[WHY_MAX], store[WHY_MAX];
  int64_t took_ms, at_ms;
};

/* A request that waits for a trial; it is its handler's state. */
struct waiting {
  struct waiting *next;
  struct MHD_Connection *connection;
  struct outcome outcome;
};

struct ready {
  const struct services *services;
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t wanted;
  struct waiting *waiting;
  struct outcome last;
  bool is_stopping, is_draining;
  bool is_stopped; /* for the thread that stops it */
};

/* Something that ends on another thread, maybe after nobody waits for it any more; the last reference frees it. */
struct event {
  atomic_int refs;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_over;
  struct store_task task;
  enum status st;
  struct error err;
};

static struct event *event_new(int refs) {
  struct event *e = calloc(1, sizeof *e);
  if (!e)
    return NULL;
  atomic_init(&e->refs, refs);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->changed, NULL);
  return e;
}

static void event_unref(struct event *e) {
  if (atomic_fetch_sub(&e->refs, 1) != 1)
    return;
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

static void event_end(void *user) {
  struct event *e = user;
  pthread_mutex_lock(&e->lock);
  e->is_over = true;
  pthread_cond_signal(&e->changed);
  pthread_mutex_unlock(&e->lock);
}

/* False if it does not end in time. */
static bool event_wait(struct event *e) {
  int64_t until_ns = clock_now_ns() + TRIAL_MS * INT64_C(1000000);
  struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
  int timed_out = 0;
  pthread_mutex_lock(&e->lock);
  while (!e->is_over && !timed_out)
    timed_out = pthread_cond_clockwait(&e->changed, &e->lock, CLOCK_MONOTONIC, &until);
  bool is_over = e->is_over;
  pthread_mutex_unlock(&e->lock);
  return is_over;
}

/* ---- the trials -------------------------------------------------------------------------------------------------- */

static int64_t jobs_ended(struct pool *p) {
  struct pool_health h;
  int64_t n = 0;
  pool_look(p, &h);
  for (int i = 0; i < POOL_OUTCOMES; i++)
    n += i == POOL_REFUSED ? 0 : h.outcomes[i];
  return n;
}

static void park(void *user) {
  (void)user; /* this thread waits by event_wait */
}

/* Compiles the kernel.  *is_over: it ended in time, or the pool did not take it (*is_taken). */
static enum work_state compile(const struct ready *r, struct work *w, struct event *e, bool *is_taken, bool *is_over,
                               bool *is_ok) {
  struct work_waiter waiter = {0};
  *is_over = true;
  *is_taken = pool_submit(r->services->pool, w, 0) == ST_OK;
  if (*is_taken && !work_wait(w, &waiter, true, park, event_end, e))
    *is_over = event_wait(e);
  if (*is_taken && !*is_over)
    work_forget_reader(w, &waiter);
  return work_look(w, NULL, is_ok);
}

static bool run_kernel(const struct ready *r, struct work *w, struct event *e, char why[WHY_MAX]) {
  struct pool *pool = r->services->pool;
  struct pool_health h;
  bool is_taken, is_over, is_ok;
  const int64_t before = jobs_ended(pool);
  const enum work_state s = compile(r, w, e, &is_taken, &is_over, &is_ok);
  pool_look(pool, &h);
  if (s == WORK_ENDED && is_ok) { /* a pool whose launcher hangs compiles for now, but cannot replace what dies */
    snprintf(why, WHY_MAX, "%.120s", h.is_ready ? "ok" : h.trouble);
    return h.is_ready;
  }
  for (int waited = 0; !is_taken && waited < TRIAL_MS && jobs_ended(pool) == before; waited += TICK_MS)
    nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
  pool_look(pool, &h);
  if (h.is_ready && s != WORK_ENDED && jobs_ended(pool) > before) {
    snprintf(why, WHY_MAX, "busy");
    return true;
  }
  snprintf(why, WHY_MAX, "%.120s",
           h.trouble[0]      ? h.trouble
           : !is_over        ? "a small kernel took more than 4 s"
           : s == WORK_ENDED ? "a small kernel did not compile"
                             : "no worker takes a job");
  return false;
}

static bool try_worker(const struct ready *r, char why[WHY_MAX]) {
  struct arena a;
  struct job job;
  struct error err;
  snprintf(why, WHY_MAX, "out of memory");
  if (compile_arena(&a, sizeof kernel, &err))
    return false;
  struct work *w = job_parse(&a, kernel, sizeof kernel - 1, &job, &err) ? NULL : work_new(&job);
  struct event *e = event_new(1); /* the work does not use it any more when run_kernel returns */
  arena_clear(&a);
  bool is_ok = w && e && run_kernel(r, w, e, why);
  if (w)
    work_leave(w, NULL);
  work_unref(w);
  if (e)
    event_unref(e);
  return is_ok;
}

static void run_store(struct store_task *t, struct db *db) {
  struct event *e = (struct event *)((char *)t - offsetof(struct event, task));
  e->st = store_probe(db, &e->err);
  event_end(e);
  event_unref(e);
}

static bool try_store(const struct ready *r, char why[WHY_MAX]) {
  struct event *e = event_new(2);
  bool is_ok = false;
  snprintf(why, WHY_MAX, "out of memory");
  if (!e)
    return false;
  e->task.run = run_store;
  if (!store_submit(r->services->store, STORE_WRITE, &e->task)) {
    snprintf(why, WHY_MAX, "too many writes wait");
    event_unref(e);
  } else if (!event_wait(e)) {
    snprintf(why, WHY_MAX, "a row took more than 4 s");
  } else {
    is_ok = e->st == ST_OK;
    snprintf(why, WHY_MAX, "%s", is_ok ? "ok" : status_name(e->st)); /* the error's text may name hosts and paths */
    if (!is_ok)
      log_warn("store_trial", "status=%s %s", status_name(e->st), e->err.text);
  }
  event_unref(e);
  return is_ok;
}

static void try_all(const struct ready *r, struct outcome *o) {
  int64_t began = clock_now_ms();
  bool worker = try_worker(r, o->worker), store = try_store(r, o->store);
  o->is_ready = worker && store;
  o->at_ms = clock_now_ms();
  o->took_ms = o->at_ms - began;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void answer_all(struct ready *r) {
  for (struct waiting *w = r->waiting, *next; w; w = next) {
    next = w->next; /* w may be gone once it is resumed */
    w->outcome = r->last;
    MHD_resume_connection(w->connection);
  }
  r->waiting = NULL;
}

static void *run(void *user) {
  struct ready *r = user;
  struct outcome o;
  pthread_mutex_lock(&r->lock);
  for (;;) {
    while (!r->waiting && !r->is_stopping)
      pthread_cond_wait(&r->wanted, &r->lock);
    if (r->is_stopping)
      break;
    pthread_mutex_unlock(&r->lock);
    try_all(r, &o);
    pthread_mutex_lock(&r->lock);
    r->last = o;
    answer_all(r);
  }
  answer_all(r);
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

enum status ready_start(const struct services *services, struct ready **out, struct error *err) {
  struct ready *r = calloc(1, sizeof *r);
  if (!r)
    return fail(err, ST_NOMEM, "ready");
  r->services = services;
  r->last.at_ms = -GOOD_FOR_MS;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->wanted, NULL);
  if (pthread_create(&r->thread, NULL, run, r)) {
    free(r);
    return fail(err, ST_IO, "ready: no thread");
  }
  *out = r;
  return ST_OK;
}

void ready_drain(struct ready *r) {
  pthread_mutex_lock(&r->lock);
  r->is_draining = true;
  pthread_mutex_unlock(&r->lock);
}

void ready_stop(struct ready *r) {
  if (!r || r->is_stopped)
    return;
  r->is_stopped = true;
  pthread_mutex_lock(&r->lock);
  r->is_stopping = r->is_draining = true;
  pthread_cond_signal(&r->wanted);
  pthread_mutex_unlock(&r->lock);
  pthread_join(r->thread, NULL);
  assert(!r->waiting);
}

void ready_free(struct ready *r) {
  if (!r)
    return;
  ready_stop(r);
  pthread_cond_destroy(&r->wanted);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_outcome(struct request *rq, const struct outcome *o, bool is_draining) {
  static const char *const spaces[] = {[SPACE_OK] = "ok", [SPACE_NEARLY_FULL] = "nearly full", [SPACE_FULL] = "full"};
  struct pool_health h;
  struct store_counts counts;
  struct buf b;
  bool is_ready = o->is_ready && !is_draining;
  const struct confinement *c = services_of(rq)->confinement;
  pool_look(services_of(rq)->pool, &h);
  store_look(services_of(rq)->store, &counts);
  buf_init(&b, ANSWER_MAX);
  buf_putc(&b, '{');
  json_put_field_str(&b, "status", is_draining ? "stopping" : is_ready ? "ready" : "unready");
  json_put_field_str(&b, "worker", o->worker);
  json_put_field_str(&b, "store", o->store);
  json_put_field_str(&b, "space", spaces[counts.space]);
  json_put_field_str(&b, "level", jail_level_name(h.level));
  json_put_field_str(&b, "level_why", h.level_why);
  json_put_key(&b, "server");
  buf_putc(&b, '{');
  for (int l = 0; l < CONFINE_COUNT; l++)
    json_put_field_bool(&b, confine_layer_name((enum confine_layer)l), c->layers >> l & 1);
  buf_putc(&b, '}');
  json_put_field_int(&b, "took_ms", o->took_ms);
  buf_puts(&b, "}\n");
  enum MHD_Result m = http_json(rq, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, buf_text(&b), b.len, false);
  buf_clear(&b);
  return m;
}

enum MHD_Result api_ready(struct request *rq) {
  struct ready *r = services_of(rq)->ready;
  struct waiting *w = rq->state;
  struct outcome o;
  if (w)
    return send_outcome(rq, &w->outcome, false);
  pthread_mutex_lock(&r->lock);
  o = r->last;
  bool is_draining = r->is_draining, is_known = is_draining || clock_now_ms() - o.at_ms < GOOD_FOR_MS;
  if (!is_known && (w = calloc(1, sizeof *w))) {
    w->connection = rq->connection;
    w->next = r->waiting;
    r->waiting = w;
    rq->state = w;
    rq->free_state = free;
    MHD_suspend_connection(rq->connection); /* under the lock, so that the resume cannot come first */
    pthread_cond_signal(&r->wanted);
  }
  pthread_mutex_unlock(&r->lock);
  if (!is_known)
    return w ? MHD_YES : MHD_NO;
  return send_outcome(rq, &o, is_draining);
}
