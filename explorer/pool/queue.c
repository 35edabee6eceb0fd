/* The works that wait for a child, and those that are no longer wanted.
 *
 * The queue is served in turns: it holds the first work of each client, then the second of each, and so on, and within
 * each of these groups it is first come, first served.  So a client that sends many works waits for its own.
 */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/internal.h"

const char *const pool_outcomes[POOL_OUTCOMES] = {
    "ok", "error", "cancelled", "time-limit", "memory-limit", "output-limit", "worker-died", "internal", "refused"};

void pool_count(struct pool *p, const char *how) {
  for (int i = 0; i < POOL_OUTCOMES; i++) {
    if (!strcmp(how, pool_outcomes[i])) {
      pthread_mutex_lock(&p->lock);
      p->health.outcomes[i]++;
      pthread_mutex_unlock(&p->lock);
      return;
    }
  }
  assert(!"an outcome of the list");
}

void pool_wake(struct pool *p) {
  uint64_t one = 1;
  if (write(p->wake_fd, &one, sizeof one) < 0) {
    /* full: it will wake up anyway */
  }
}

/* Ends a work that never reached a child, and takes the caller's reference. */
static void refuse(struct pool *p, struct work *w) {
  pool_count(p, pool_outcomes[POOL_REFUSED]);
  work_refuse(w);
  work_unref(w);
}

/* The handler that took the request has made sure that it is installed. */
static int version_of(const struct pool *p, const struct work *w) {
  const int v = versions_find(p->cfg.versions, work_pipeline(w));
  assert(v >= 0);
  return v;
}

/* ---- under the lock ---------------------------------------------------------------------------------------------- */

static struct queued remove_at(struct pool *p, int i) {
  assert(i >= 0 && i < p->n_queued);
  struct queued q = p->queue[i];
  memmove(&p->queue[i], &p->queue[i + 1], (size_t)(p->n_queued - i - 1) * sizeof *p->queue);
  p->n_queued--;
  p->is_queue_moved = true;
  return q;
}

/* Beyond what pool_submit fills there is room for one work of each child (pool_requeue). */
static void insert_at(struct pool *p, int i, struct queued q) {
  assert(i >= 0 && i <= p->n_queued && p->n_queued < p->cfg.queue_max + KIDS_MAX);
  memmove(&p->queue[i + 1], &p->queue[i], (size_t)(p->n_queued - i) * sizeof *p->queue);
  p->queue[i] = q;
  p->n_queued++;
  p->is_queue_moved = true;
}

/* ---- the pool's thread ------------------------------------------------------------------------------------------- */

bool queue_pop(struct pool *p, bool (*may_run)(struct pool *p, const struct queued *q), struct queued *out) {
  int i = 0;
  pthread_mutex_lock(&p->lock);
  while (i < p->n_queued && !may_run(p, &p->queue[i]))
    i++;
  const bool any = i < p->n_queued;
  if (any)
    *out = remove_at(p, i);
  pthread_mutex_unlock(&p->lock);
  return any;
}

int queue_count(struct pool *p, int version) {
  int n = 0;
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->n_queued; i++)
    n += p->queue[i].version == version;
  pthread_mutex_unlock(&p->lock);
  return n;
}

bool queue_has_other(const struct pool *p, const void *payer) {
  for (int i = 0; i < p->n_queued; i++)
    if (p->queue[i].payer != payer)
      return true;
  return false;
}

void queue_put_back(struct pool *p, struct work *w, uint32_t watch_id, int tries) {
  pthread_mutex_lock(&p->lock);
  insert_at(p, 0,
            (struct queued){.work = w,
                            .payer = work_payer(w),
                            .since_ms = clock_now_ms(),
                            .watch_id = watch_id,
                            .tries = tries,
                            .version = version_of(p, w)});
  pthread_mutex_unlock(&p->lock);
}

/* How long a work of this version may wait; only this thread sets what it depends on. */
static int wait_ms(const struct pool *p, int version) {
  return p->health.has_no_jail || p->lines[version].is_down ? 0 : p->cfg.wait_timeout_ms;
}

void queue_refuse_overdue(struct pool *p, int64_t now) {
  for (;;) {
    struct work *w = NULL;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->n_queued && !w; i++)
      if (now - p->queue[i].since_ms >= wait_ms(p, p->queue[i].version))
        w = remove_at(p, i).work;
    pthread_mutex_unlock(&p->lock);
    if (!w)
      return;
    log_warn("job_refused", "job=%s reason=waited", work_tag(w));
    refuse(p, w);
  }
}

static bool any_may(struct pool *p, const struct queued *q) {
  (void)p, (void)q;
  return true;
}

void queue_refuse_all(struct pool *p) {
  struct queued q;
  while (queue_pop(p, any_may, &q))
    refuse(p, q.work);
}

void queue_tell_places(struct pool *p) {
  pthread_mutex_lock(&p->lock);
  for (int i = 0; p->is_queue_moved && i < p->n_queued; i++)
    work_set_position(p->queue[i].work, i + 1);
  p->is_queue_moved = false;
  pthread_mutex_unlock(&p->lock);
}

/* ---- any thread -------------------------------------------------------------------------------------------------- */

void queue_cancel(struct pool *p, struct work *w) {
  struct work *queued = NULL;
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->n_queued && !queued; i++)
    if (p->queue[i].work == w)
      queued = remove_at(p, i).work;
  enum work_state s = queued ? WORK_WAITING : work_look(w, NULL, NULL);
  if (!queued && (s == WORK_RUNNING || s == WORK_WAITING) && p->n_cancelled < KIDS_MAX)
    p->cancelled[p->n_cancelled++] = work_ref(w);
  pthread_mutex_unlock(&p->lock);
  if (queued) {
    log_info("job_cancelled", "job=%s reason=no_reader", work_tag(queued));
    refuse(p, queued);
  } else {
    pool_wake(p);
  }
}

/* Nobody reads w any more. */
static void on_abandoned(void *user, struct work *w) {
  enum work_state s = work_look(w, NULL, NULL);
  if (s == WORK_WAITING || s == WORK_RUNNING)
    queue_cancel(user, w);
}

enum status pool_submit(struct pool *p, struct work *w, uint32_t watch_id) {
  enum status st = ST_BUSY;
  int turn = work_turn(w);
  const void *payer = work_payer(w);
  work_on_abandoned(w, on_abandoned, p);
  pthread_mutex_lock(&p->lock);
  if (!p->is_closing && p->n_queued < p->cfg.queue_max) {
    int at = p->n_queued;
    while (at > 0 && p->queue[at - 1].turn > turn)
      at--;
    insert_at(p, at,
              (struct queued){.work = work_ref(w),
                              .payer = payer,
                              .since_ms = clock_now_ms(),
                              .watch_id = watch_id,
                              .turn = turn,
                              .version = version_of(p, w)});
    st = ST_OK;
  }
  pthread_mutex_unlock(&p->lock);
  if (!st)
    pool_wake(p);
  return st;
}
