/* The pool's thread: one epoll loop over the zygotes, their children, the clients and a descriptor that wakes it.
 *
 * Each child and each queued work has one deadline; these are few, so the next one is found by looking at all of them.
 * Events carry ids, never pointers, because the object that an event is about may be gone by the time it is handled.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/internal.h"

enum {
  SPARE = 2, /* children that wait beyond one for each worker */
  CLOSING_TICK_MS = 20,
  MEMORY_TICK_MS = 20,
  SLEEPERS_TICK_MS = 250,
  EXIT_NO_LAUNCHER = 4,
  REST_MS = 500, /* without a running job, before memory is given back */
};

/* ---- children ---------------------------------------------------------------------------------------------------- */

static bool may_begin(struct pool *p, const struct queued *q) {
  return fair_may_run(p, q->payer) && kid_idle(p, q->version);
}

/* Gives the works that wait to the children that do. */
static void dispatch(struct pool *p, int64_t now) {
  struct queued q;
  while (queue_pop(p, may_begin, &q)) {
    struct kid *k = kid_idle(p, q.version);
    if (!k) { /* it has died since */
      queue_put_back(p, q.work, q.watch_id, q.tries);
      return;
    }
    kid_give(p, k, &q, now);
  }
}

/* How many children of a version should wait: of today's SPARE more than there are workers. */
static int wanted(struct pool *p, int version, int n_queued) {
  if (version == VERSION_TODAY)
    return p->cfg.workers + SPARE;
  return n_queued > p->cfg.workers ? p->cfg.workers : n_queued ? n_queued : 1;
}

static void refill(struct pool *p, int version, int64_t now) {
  struct zygote *z = zygote_active(p, version);
  if (!z || z->asked || now < p->lines[version].retry_at_ms)
    return;
  int idle = 0;
  for (int i = 0; i < p->n_kids; i++)
    idle += p->kids[i].state == KID_IDLE && p->kids[i].zygote == z;
  const int n_queued = queue_count(p, version);
  if (!(n_queued > 0 && idle == 0) && now < p->refill_at_ms)
    return;
  int want = wanted(p, version, n_queued) - idle;
  if (want > KIDS_MAX - p->n_kids)
    want = KIDS_MAX - p->n_kids;
  if (want > 0)
    zygote_ask(p, z, want);
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

static struct kid *kid_of(struct pool *p, const struct work *w) {
  for (int i = 0; i < p->n_kids; i++)
    if (p->kids[i].work == w)
      return &p->kids[i];
  return NULL;
}

static void cancel_all_asked(struct pool *p) {
  struct work *list[KIDS_MAX];
  pthread_mutex_lock(&p->lock);
  int n = p->n_cancelled;
  memcpy(list, p->cancelled, (size_t)n * sizeof *list);
  p->n_cancelled = 0;
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < n; i++) {
    struct kid *k = kid_of(p, list[i]);
    if (k)
      kid_cancel(p, k);
    work_unref(list[i]);
  }
}

/* The client of the work with this watch id has hung up. */
static void client_left(struct pool *p, uint32_t watch_id) {
  struct work *w = NULL;
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->n_queued && !w; i++)
    if (p->queue[i].watch_id == watch_id)
      w = work_ref(p->queue[i].work);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->n_kids && !w; i++)
    if (p->kids[i].work && p->kids[i].watch_id == watch_id)
      w = work_ref(p->kids[i].work);
  if (w && work_give_up(w))
    queue_cancel(p, w);
  work_unref(w);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void handle_deadlines(struct pool *p, int64_t now) {
  for (int i = p->n_kids; i-- > 0;) {
    struct kid *k = &p->kids[i];
    if (k->state == KID_RUNNING && k->yields_at_ms && now >= k->yields_at_ms)
      kid_yield(k);
    if (k->state != KID_IDLE && now >= k->deadline_ms)
      kid_overdue(p, k);
  }
  queue_refuse_overdue(p, now);
}

static void sooner(int64_t *at, int64_t when) {
  if (when < *at)
    *at = when;
}

static int long_running(const struct pool *p) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++)
    n += p->kids[i].state == KID_RUNNING && !p->kids[i].yields_at_ms;
  return n;
}

/* Milliseconds until something is due. */
static int next_timeout(struct pool *p, int64_t now) {
  int64_t at = zygotes_due(p, now);
  sooner(&at, launchers_due(p));
  for (int i = 0; i < p->n_kids; i++)
    if (p->kids[i].state != KID_IDLE) {
      sooner(&at, p->kids[i].deadline_ms);
      if (p->kids[i].state == KID_RUNNING && p->kids[i].yields_at_ms)
        sooner(&at, p->kids[i].yields_at_ms);
    }
  if (!p->has_cgroup && kids_in(p, KID_RUNNING))
    sooner(&at, p->memory_at_ms);
  if (p->refill_at_ms > now)
    sooner(&at, p->refill_at_ms);
  if (p->trim_at_ms)
    sooner(&at, p->trim_at_ms);
  pthread_mutex_lock(&p->lock);
  if (p->n_queued)
    sooner(&at, p->sleepers_at_ms);
  for (int i = 0; i < p->n_queued; i++)
    sooner(&at, p->queue[i].since_ms + p->cfg.wait_timeout_ms);
  if (p->is_closing)
    sooner(&at, now + CLOSING_TICK_MS);
  p->health.running = kids_in(p, KID_RUNNING);
  p->health.long_running = long_running(p);
  p->health.idle = kids_in(p, KID_IDLE);
  pthread_mutex_unlock(&p->lock);
  return at <= now ? 0 : (int)(at - now);
}

static void handle_event(struct pool *p, const struct epoll_event *ev, int64_t now) {
  uint32_t which = (uint32_t)ev->data.u64;
  uint64_t drained;
  struct kid *k;

  switch ((enum event_kind)(ev->data.u64 >> 32)) {
  case EV_WAKE:
    if (read(p->wake_fd, &drained, sizeof drained) < 0) {
      /* it was read before */
    }
    break;
  case EV_LAUNCHER:
    if (!launcher_read(p, (int)which, now))
      _exit(EXIT_NO_LAUNCHER); /* no zygote can be started, and nobody could replace this process */
    break;
  case EV_ZYGOTE:
    zygote_read(p, &p->zygotes[which], now);
    break;
  case EV_KID:
    k = kid_find(p, which);
    if (k && k->fd >= 0)
      kid_event(p, k, ev->events, now);
    break;
  case EV_CLIENT:
    client_left(p, which);
    break;
  }
}

/* Results are large and live for a moment: when nothing runs, their memory goes back to the system. */
static void trim_at_rest(struct pool *p, int64_t now) {
  if (kids_in(p, KID_RUNNING))
    p->trim_at_ms = now + REST_MS;
  if (!p->trim_at_ms || now < p->trim_at_ms)
    return;
  malloc_trim(0);
  p->trim_at_ms = 0;
}

/* When the pool is closing: refuses the works that wait; true when nothing runs any more or the grace period is
 * over. */
static bool closing_is_over(struct pool *p, int64_t now) {
  pthread_mutex_lock(&p->lock);
  bool is_closing = p->is_closing;
  int64_t deadline = p->closing_deadline_ms;
  pthread_mutex_unlock(&p->lock);
  if (!is_closing)
    return false;
  queue_refuse_all(p);
  return now >= deadline || kids_in(p, KID_RUNNING) == 0;
}

static void *run(void *user) {
  struct pool *p = user;
  struct epoll_event events[EVENTS_MAX];

  for (;;) {
    int64_t now = clock_now_ms();
    launchers_tend(p, now);
    zygotes_tend(p, now);
    cancel_all_asked(p);
    handle_deadlines(p, now);
    if (now >= p->memory_at_ms) {
      kids_watch_memory(p);
      p->memory_at_ms = now + MEMORY_TICK_MS;
    }
    dispatch(p, now);
    if (now >= p->sleepers_at_ms) {
      fair_end_sleepers(p, now);
      p->sleepers_at_ms = now + SLEEPERS_TICK_MS;
    }
    queue_tell_places(p);
    for (int v = 0; v < p->cfg.versions->n; v++)
      refill(p, v, now);
    trim_at_rest(p, now);
    if (closing_is_over(p, now))
      break;
    int n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, next_timeout(p, now));
    now = clock_now_ms();
    for (int i = 0; i < n; i++)
      handle_event(p, &events[i], now);
  }
  while (p->n_kids)
    kid_drop(p, &p->kids[p->n_kids - 1]);
  zygotes_end(p);
  queue_refuse_all(p); /* works that kid_drop put back */
  assert(p->n_kids == 0);
  return NULL;
}

/* ---- any thread -------------------------------------------------------------------------------------------------- */

uint32_t pool_watch(struct pool *p, int client_fd) {
  struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT};
  pthread_mutex_lock(&p->lock);
  uint32_t id = ++p->last_watch_id ? p->last_watch_id : ++p->last_watch_id;
  pthread_mutex_unlock(&p->lock);
  ev.data.u64 = event_tag(EV_CLIENT, id);
  if (client_fd >= 0 && !epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, client_fd, &ev))
    return id;
  log_warn("pool", "a client cannot be watched: %m");
  return 0;
}

void pool_unwatch(struct pool *p, int client_fd) {
  epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, client_fd, NULL); /* fails if it was not watched */
}

void pool_set_serving(struct pool *p) {
  atomic_store(&p->is_serving, true);
}

enum pool_version pool_look_version(struct pool *p, const char *pipeline) {
  const int v = versions_find(p->cfg.versions, pipeline);
  if (v <= VERSION_TODAY)
    return POOL_VERSION_UP;
  pthread_mutex_lock(&p->lock);
  const struct lineage *l = &p->lines[v];
  const enum pool_version is = l->is_down ? POOL_VERSION_DOWN : l->is_up ? POOL_VERSION_UP : POOL_VERSION_STARTING;
  pthread_mutex_unlock(&p->lock);
  return is;
}

void pool_look(struct pool *p, struct pool_health *h) {
  pthread_mutex_lock(&p->lock);
  *h = p->health;
  h->waiting = p->n_queued;
  if (p->is_launcher_silent) {
    h->is_ready = false;
    if (!h->trouble[0])
      snprintf(h->trouble, sizeof h->trouble, "the process that starts the others does not answer");
  }
  pthread_mutex_unlock(&p->lock);
}

void pool_free(struct pool *p) {
  if (!p)
    return;
  if (p->epoll_fd >= 0)
    close(p->epoll_fd);
  if (p->wake_fd >= 0)
    close(p->wake_fd);
  launchers_clear(p);
  for (int i = 0; i < p->n_cancelled; i++)
    work_unref(p->cancelled[i]);
  pthread_mutex_destroy(&p->lock);
  free(p->queue);
  free(p);
}

enum status pool_start(const struct pool_config *cfg, struct pool **out, struct error *err) {
  struct pool *p = calloc(1, sizeof *p);
  if (!p)
    return fail(err, ST_NOMEM, "pool");
  p->cfg = *cfg;
  pthread_mutex_init(&p->lock, NULL);
  p->queue = calloc((size_t)(cfg->queue_max + KIDS_MAX), sizeof *p->queue);
  p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_WAKE, 0)};
  enum status st = ST_OK;
  if (!p->queue || p->epoll_fd < 0 || p->wake_fd < 0 || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &ev) ||
      !launchers_init(p))
    st = fail(err, ST_IO, "pool: %m");
  if (!st && pthread_create(&p->thread, NULL, run, p))
    st = fail(err, ST_IO, "pool: no thread");
  if (st)
    pool_free(p);
  else
    *out = p;
  return st;
}

void pool_close(struct pool *p, int grace_ms) {
  pthread_mutex_lock(&p->lock);
  p->is_closing = true;
  p->closing_deadline_ms = clock_now_ms() + grace_ms;
  pthread_mutex_unlock(&p->lock);
  pool_wake(p);
  pthread_join(p->thread, NULL);
}
