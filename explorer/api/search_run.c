/* search_run: the threads of searches, and the runner that gives their jobs to the pool. */
#include "api/search_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/part.h"
#include "api/services.h"
#include "api/told.h"
#include "base/clock.h"
#include "base/log.h"
#include "driver/frames.h"
#include "driver/pipeline.h"
#include "pool/pool.h"

enum {
  LOOK_MS = 200,  /* how soon a search notices that nobody wants it */
  AGAIN_MS = 500, /* until a job that found no room tries again */
  STACK_BYTES = 512 << 10,
  SMALL_FRAME = 4 << 10,
};

struct searches {
  const struct services *services;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t ended;
  struct search *first;
  int n;
  atomic_bool is_ending;
};

bool search_is_ending(const struct search *s) {
  return atomic_load(&s->all->is_ending);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static bool has_hung_up(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLRDHUP};
  return fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Whether the search is to go on.  The descriptor may be another client's by now, but then the request has left its work. */
static enum status look(const struct search *s, struct error *err) {
  if (!work_has_readers(s->work) || has_hung_up(s->client_fd))
    return fail(err, ST_DENIED, "the client has left");
  if (search_is_ending(s) || clock_now_ms() >= s->until_ms)
    return fail(err, ST_TIMEOUT, "the time of the search is up");
  return ST_OK;
}

/* True if the job has ended before ms were over. */
static bool is_woken(struct search *s, int64_t ms) {
  const int64_t ns = clock_now_ns() + ms * INT64_C(1000000);
  const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  int r;
  while ((r = sem_clockwait(&s->woken, CLOCK_MONOTONIC, &until)) && errno == EINTR)
    ;
  return !r;
}

static enum status pause_for(struct search *s, int64_t ms, struct error *err) {
  const int64_t until_ms = clock_now_ms() + ms;
  enum status st = look(s, err);
  for (int64_t left; !st && (left = until_ms - clock_now_ms()) > 0; st = look(s, err))
    is_woken(s, left < LOOK_MS ? left : LOOK_MS);
  return st;
}

static void wake(void *user) {
  sem_post(&((struct search *)user)->woken);
}

static void park(void *user) {
  (void)user; /* the thread waits by the semaphore */
}

/* ---- one job ----------------------------------------------------------------------------------------------------- */

struct reader {
  frame_sink see;
  void *user;
  enum status st;
};

static bool show_frame(void *user, const char *json, size_t len) {
  struct reader *r = user;
  r->st = r->see(r->user, json, len);
  return !r->st;
}

/* Gives the job to the pool; *out is NULL if there is no room for it now, and *wait_ms says when to try again. */
static enum status submit(struct search *s, const struct job *job, struct work **out, int64_t *wait_ms,
                          struct error *err) {
  int retry_s = 0;
  *out = NULL;
  if (client_begin_job(s->payer, &retry_s)) {
    *wait_ms = retry_s > 0 ? retry_s * INT64_C(1000) : AGAIN_MS;
    return ST_OK;
  }
  struct work *w = work_new(job);
  if (!w) {
    client_end_job(s->payer, false);
    return fail(err, ST_NOMEM, "a job of a search");
  }
  work_set_payer(w, client_hold(s->payer));
  if (pool_submit(s->services->pool, w, 0)) {
    work_refuse(w); /* which gives the client's share back */
    work_leave(w, NULL);
    work_unref(w);
    *wait_ms = AGAIN_MS;
    return ST_OK;
  }
  told_say_used(s->services, s->address, QUOTA_USE_COMPILE, 1);
  *out = w;
  return ST_OK;
}

/* Waits until the work has ended or was refused; *is_late: it was given up, because it takes too long. */
static enum status wait_for(struct search *s, struct work *w, struct work_waiter *waiter, int ms, bool *is_late,
                            struct error *err) {
  enum status st = ST_OK;
  *is_late = false;
  if (!work_wait(w, waiter, true, park, wake, s))
    while (!is_woken(s, LOOK_MS) && !(st = look(s, err)) && !*is_late) {
      const int64_t began_us = work_began_us(w);
      *is_late = ms && began_us && clock_now_us() - began_us > ms * INT64_C(1000);
    }
  work_forget_reader(w, waiter);
  while (!sem_trywait(&s->woken))
    ;
  return st;
}

static enum status run_job(void *user, const struct job *job, int ms, frame_sink see, void *see_user, enum job_end *end,
                           struct error *err) {
  struct search *s = user;
  enum status st = look(s, err);
  for (bool is_done = false; !st && !is_done;) {
    struct work_waiter waiter = {0};
    struct reader reader = {see, see_user, ST_OK};
    struct work *w;
    int64_t wait_ms = AGAIN_MS;
    bool is_late = false;
    st = submit(s, job, &w, &wait_ms, err);
    if (!st && w)
      st = wait_for(s, w, &waiter, ms, &is_late, err);
    if (!st && w && is_late) {
      *end = JOB_LATE;
      is_done = true;
    } else if (!st && w && work_look(w, NULL, NULL) == WORK_ENDED) {
      *end = JOB_ENDED;
      is_done = true;
      if (!work_each_frame(w, show_frame, &reader))
        st = fail(err, reader.st ? reader.st : ST_NOMEM, "the frames of a job");
    }
    if (w) {
      work_leave(w, &waiter);
      work_unref(w);
    }
    if (!st && !is_done)
      st = pause_for(s, wait_ms, err);
  }
  return st;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

void search_say(struct search *s, struct buf *b) {
  struct error err;
  bool is_end;
  if (!buf_status(b) && work_add_frame(s->work, buf_text(b), b->len, &is_end, &err))
    log_debug("search", "job=%s a frame is left out: %s", work_tag(s->work), err.text);
  buf_clear(b);
}

static void say_start(struct search *s) {
  const struct job *j = &s->jobs[0];
  struct buf b;
  buf_init(&b, SMALL_FRAME);
  frames_put_start(&b, work_key(s->work), language_name(j->language), target_name(j->target), work_pipeline(s->work));
  search_say(s, &b);
}

static void end_well(struct search *s, int64_t began_us) {
  struct buf b;
  buf_init(&b, SMALL_FRAME);
  buf_printf(&b, "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":%lld}", (long long)(clock_now_us() - began_us));
  search_say(s, &b);
}

static void leave(struct search *s) {
  struct searches *all = s->all;
  pthread_mutex_lock(&all->lock);
  for (struct search **at = &all->first; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  all->n--;
  search_free(s);
  pthread_cond_signal(&all->ended); /* under the lock: after it, `all` may be gone */
  pthread_mutex_unlock(&all->lock);
}

static void *run(void *user) {
  struct search *s = user;
  const struct job_runner runner = {run_job, s};
  const int64_t began_us = clock_now_us();
  struct error err = {0};
  work_begin(s->work);
  say_start(s);
  const enum status st = s->go(s, &runner, &err);
  if (!st)
    end_well(s, began_us);
  if (work_look(s->work, NULL, NULL) != WORK_ENDED) {
    const bool is_for_user = st == ST_INPUT || st == ST_LIMIT || st == ST_TIMEOUT;
    if (st && !is_for_user && st != ST_DENIED)
      log_warn("search", "job=%s status=%s %s", work_tag(s->work), status_name(st), err.text);
    work_fail(s->work, is_for_user ? DG_SEARCH : DG_INTERNAL, is_for_user ? err.text : "The search could not go on.",
              NULL);
  }
  log_info("search_done", "job=%s wall_ms=%lld status=%s", work_tag(s->work),
           (long long)(clock_now_us() - began_us) / 1000, status_name(st));
  leave(s);
  return NULL;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

struct search *search_new(void) {
  struct search *s = calloc(1, sizeof *s);
  if (s) {
    arena_init(&s->arena);
    sem_init(&s->woken, 0, 0);
  }
  return s;
}

void search_free(struct search *s) {
  work_unref(s->work);
  client_let_go(s->payer);
  arena_clear(&s->arena);
  sem_destroy(&s->woken);
  free(s);
}

/* Under the lock. */
static enum status enter(struct searches *all, struct search *s, struct request *rq, struct error *err) {
  const void *site = s->payer ? client_site(s->payer) : NULL;
  int n_own = 0;
  for (const struct search *o = all->first; o; o = o->next)
    n_own += site && o->payer && client_site(o->payer) == site;
  rq->refusal = PB_JOBS;
  if (n_own >= SEARCHES_CLIENT_MAX)
    return fail(err, ST_QUOTA, "searches");
  if (all->n >= SEARCHES_MAX || atomic_load(&all->is_ending))
    return fail(err, ST_BUSY, "searches");
  s->next = all->first;
  all->first = s;
  all->n++;
  return ST_OK;
}

static bool start_thread(struct search *s) {
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  const bool ok = !pthread_create(&thread, &attr, run, s);
  pthread_attr_destroy(&attr);
  return ok;
}

enum status search_begin(struct request *rq, struct search *s, struct error *err) {
  struct searches *all = services_of(rq)->searches;
  s->services = services_of(rq);
  s->all = all;
  http_client_key(rq, s->address);
  s->payer = quota_client(s->services->quota, s->address);
  s->client_fd = http_client_fd(rq);
  s->until_ms = clock_now_ms() + s->seconds * INT64_C(1000);
  s->work = work_new(&s->jobs[0]);
  if (!s->work) {
    search_free(s);
    return fail(err, ST_NOMEM, "a search");
  }
  pthread_mutex_lock(&all->lock);
  const enum status st = enter(all, s, rq, err);
  pthread_mutex_unlock(&all->lock);
  if (st) {
    work_refuse(s->work);
    work_leave(s->work, NULL);
    search_free(s);
    return st;
  }
  struct work *w = work_ref(s->work);
  const int extra_ms = s->seconds * 1000 + s->services->work_ms;
  if (!start_thread(s)) {
    work_refuse(w);
    work_leave(w, NULL);
    work_unref(w);
    leave(s);
    return fail(err, ST_BUSY, "a thread for a search");
  }
  api_part(rq)->work = w;
  rq->extra_ms = extra_ms;
  http_allow(rq, extra_ms + rq->cfg->http.answer_timeout_ms); /* until a whole answer is there */
  return ST_OK;
}

enum status searches_start(const struct services *services, struct searches **out, struct error *err) {
  struct searches *all = calloc(1, sizeof *all);
  if (!all)
    return fail(err, ST_NOMEM, "searches");
  all->services = services;
  pthread_mutex_init(&all->lock, NULL);
  pthread_cond_init(&all->ended, NULL);
  *out = all;
  return ST_OK;
}

void searches_end(struct searches *all) {
  atomic_store(&all->is_ending, true);
}

void searches_stop(struct searches *all) {
  if (!all)
    return;
  searches_end(all);
  pthread_mutex_lock(&all->lock);
  while (all->n)
    pthread_cond_wait(&all->ended, &all->lock);
  pthread_mutex_unlock(&all->lock);
  pthread_mutex_destroy(&all->lock);
  pthread_cond_destroy(&all->ended);
  free(all);
}
