#include "http/hold.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

struct holds {
  int ms;
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t moved;
  bool is_stopping;
  struct hold *first, *last; /* all wait equally long, so they are resumed in the order in which they came */
};

/* Under the lock: resumes the requests whose time has come, or all of them. */
static void resume(struct holds *h, bool is_all) {
  int64_t now = clock_now_ms();
  while (h->first && (is_all || h->first->until_ms <= now)) {
    struct hold *one = h->first;
    h->first = one->next;
    if (!h->first)
      h->last = NULL;
    MHD_resume_connection(one->connection); /* from here on the request may end at any time, and `one` with it */
  }
  assert(!h->first == !h->last);
}

static void *run(void *user) {
  struct holds *h = user;
  pthread_mutex_lock(&h->lock);
  while (!h->is_stopping) {
    if (!h->first) {
      pthread_cond_wait(&h->moved, &h->lock);
    } else {
      struct timespec until = {.tv_sec = h->first->until_ms / 1000, .tv_nsec = h->first->until_ms % 1000 * 1000000};
      pthread_cond_clockwait(&h->moved, &h->lock, CLOCK_MONOTONIC, &until);
    }
    resume(h, false);
  }
  resume(h, true);
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

bool holds_add(struct holds *h, struct hold *one, struct MHD_Connection *connection) {
  assert(!one->was_held);
  pthread_mutex_lock(&h->lock);
  bool ok = !h->is_stopping;
  if (ok) {
    *one = (struct hold){.connection = connection, .until_ms = clock_now_ms() + h->ms, .was_held = true};
    MHD_suspend_connection(connection);
    if (h->last)
      h->last->next = one;
    else
      h->first = one;
    h->last = one;
    if (h->first == one)
      pthread_cond_signal(&h->moved);
  }
  pthread_mutex_unlock(&h->lock);
  return ok;
}

void holds_wake(struct holds *h) {
  pthread_mutex_lock(&h->lock);
  resume(h, true);
  pthread_mutex_unlock(&h->lock);
}

enum status holds_start(int ms, struct holds **out, struct error *err) {
  struct holds *h = calloc(1, sizeof *h);
  if (!h)
    return fail(err, ST_NOMEM, "holds");
  h->ms = ms;
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->moved, NULL);
  *out = h;
  if (pthread_create(&h->thread, NULL, run, h))
    return fail(err, ST_IO, "holds: no thread");
  h->has_thread = true;
  return ST_OK;
}

void holds_stop(struct holds *h) {
  if (!h || !h->has_thread)
    return;
  pthread_mutex_lock(&h->lock);
  h->is_stopping = true;
  pthread_cond_signal(&h->moved);
  pthread_mutex_unlock(&h->lock);
  pthread_join(h->thread, NULL);
  h->has_thread = false;
}

void holds_free(struct holds *h) {
  if (!h)
    return;
  holds_stop(h);
  pthread_cond_destroy(&h->moved);
  pthread_mutex_destroy(&h->lock);
  free(h);
}
