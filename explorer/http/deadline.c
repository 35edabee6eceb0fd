#include "http/deadline.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

enum { TICK_MS = 250 }; /* how late a deadline may be noticed */

struct deadlines {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t stop;
  bool is_stopping;
  struct deadline *list;
};

/* Under the lock.  The library closes a descriptor after deadline_remove, which takes the lock, so no descriptor in the
 * list can have been closed and reused. */
static void cut_overdue(struct deadlines *d, int64_t now) {
  for (struct deadline *c = d->list; c; c = c->next) {
    if (c->is_cut || now < c->at_ms)
      continue;
    c->is_cut = true;
    shutdown(c->fd, SHUT_RDWR);
    log_debug("connection_cut", "fd=%d", c->fd);
  }
}

static void *run(void *user) {
  struct deadlines *d = user;
  pthread_mutex_lock(&d->lock);
  while (!d->is_stopping) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_clockwait(&d->stop, &d->lock, CLOCK_MONOTONIC, &until);
    cut_overdue(d, clock_now_ms());
  }
  pthread_mutex_unlock(&d->lock);
  return NULL;
}

enum status deadlines_start(struct deadlines **out, struct error *err) {
  struct deadlines *d = calloc(1, sizeof *d);
  if (!d)
    return fail(err, ST_NOMEM, "deadlines");
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->stop, NULL);
  if (pthread_create(&d->thread, NULL, run, d)) {
    free(d);
    return fail(err, ST_IO, "deadlines: no thread");
  }
  *out = d;
  return ST_OK;
}

void deadlines_stop(struct deadlines *d) {
  if (!d)
    return;
  pthread_mutex_lock(&d->lock);
  d->is_stopping = true;
  pthread_cond_signal(&d->stop);
  pthread_mutex_unlock(&d->lock);
  pthread_join(d->thread, NULL);
  assert(!d->list);
  pthread_cond_destroy(&d->stop);
  pthread_mutex_destroy(&d->lock);
  free(d);
}

void deadline_add(struct deadlines *d, struct deadline *c, int fd, int ms) {
  *c = (struct deadline){.fd = fd, .at_ms = clock_now_ms() + ms};
  pthread_mutex_lock(&d->lock);
  c->next = d->list;
  if (d->list)
    d->list->prev = c;
  d->list = c;
  pthread_mutex_unlock(&d->lock);
}

void deadline_remove(struct deadlines *d, struct deadline *c) {
  pthread_mutex_lock(&d->lock);
  assert(c->prev ? c->prev->next == c : d->list == c);
  if (c->prev)
    c->prev->next = c->next;
  else
    d->list = c->next;
  if (c->next)
    c->next->prev = c->prev;
  pthread_mutex_unlock(&d->lock);
}

void deadline_set(struct deadlines *d, struct deadline *c, int ms) {
  pthread_mutex_lock(&d->lock);
  c->at_ms = clock_now_ms() + ms;
  pthread_mutex_unlock(&d->lock);
}
