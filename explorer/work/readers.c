/* The readers of a work: they wait, join, leave and are cancelled. */
#include <assert.h>

#include "work/internal.h"

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static bool has_news(const struct work *w, const struct work_waiter *me) {
  return w->transcript.text_len > me->at || (!me->at && w->position && w->position != me->position);
}

static bool is_ready(const struct work *w, const struct work_waiter *me) {
  return work_is_settled(w) || me->is_called_off || (!me->whole && has_news(w, me));
}

void work_wake(struct work *w) {
  struct work_waiter **at = &w->waiters;
  while (*at) {
    struct work_waiter *r = *at;
    if (is_ready(w, r)) {
      *at = r->next; /* before the call, after which the reader may use its place again */
      r->resume(r->user);
    } else {
      at = &r->next;
    }
  }
}

static bool wait_for(struct work *w, struct work_waiter *me, void (*park)(void *), void (*resume)(void *), void *user) {
  pthread_mutex_lock(&w->lock);
  me->resume = resume;
  me->user = user;
  bool ready = is_ready(w, me);
  if (!ready) {
    me->next = w->waiters;
    w->waiters = me;
    park(user); /* under the lock, so that resume cannot come first */
  }
  pthread_mutex_unlock(&w->lock);
  return ready;
}

bool work_wait(struct work *w, struct work_waiter *me, bool whole, void (*park)(void *), void (*resume)(void *),
               void *user) {
  me->at = 0;
  me->whole = whole;
  return wait_for(w, me, park, resume, user);
}

bool work_wait_at(struct work *w, struct work_waiter *me, size_t at, void (*park)(void *), void (*resume)(void *),
                  void *user) {
  me->at = at;
  me->whole = false;
  return wait_for(w, me, park, resume, user);
}

void work_forget_reader(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  for (struct work_waiter **at = &w->waiters; *at; at = &(*at)->next) {
    if (*at == me) {
      *at = me->next;
      break;
    }
  }
  pthread_mutex_unlock(&w->lock);
}

int work_take_position(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  int news = w->position != me->position ? w->position : 0;
  me->position = w->position;
  pthread_mutex_unlock(&w->lock);
  return news;
}

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

bool work_join(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool may = w->state == WORK_ENDED || (w->state != WORK_REFUSED && !w->is_given_up);
  w->n_readers += may;
  pthread_mutex_unlock(&w->lock);
  return may;
}

/* Under the lock: true if that was the last one. */
static bool leave(struct work *w, const struct work_waiter *me) {
  assert(w->n_readers > 0);
  bool is_last = --w->n_readers == 0;
  w->is_given_up |= is_last;
  w->has_lost_first |= me && me->is_first;
  return is_last;
}

/* Outside the lock: nobody reads w any more. */
static void tell_abandoned(struct work *w) {
  pthread_mutex_lock(&w->lock);
  work_abandoned_fn fn = w->on_abandoned;
  void *user = w->on_abandoned_user;
  pthread_mutex_unlock(&w->lock);
  if (fn)
    fn(user, w);
}

void work_leave(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  bool is_last = !(me && me->is_called_off) && leave(w, me);
  pthread_mutex_unlock(&w->lock);
  if (is_last)
    tell_abandoned(w);
}

bool work_has_readers(struct work *w) {
  pthread_mutex_lock(&w->lock);
  const bool has = w->n_readers > 0;
  pthread_mutex_unlock(&w->lock);
  return has;
}

bool work_call_off(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  bool does = !work_is_settled(w) && !me->is_called_off;
  bool is_last = does && leave(w, me);
  me->is_called_off |= does;
  if (does)
    work_wake(w);
  pthread_mutex_unlock(&w->lock);
  if (is_last) {
    work_release_payer(w); /* so that the newer compile can take its place at once */
    tell_abandoned(w);
  }
  return does;
}

bool work_is_called_off(struct work *w, const struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  bool is = me->is_called_off;
  pthread_mutex_unlock(&w->lock);
  return is;
}

bool work_give_up(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool is_sole = w->n_readers <= 1 && !w->has_lost_first;
  w->is_given_up |= is_sole;
  pthread_mutex_unlock(&w->lock);
  return is_sole;
}

void work_on_abandoned(struct work *w, work_abandoned_fn fn, void *user) {
  pthread_mutex_lock(&w->lock);
  w->on_abandoned = fn;
  w->on_abandoned_user = user;
  pthread_mutex_unlock(&w->lock);
}
