#include "work/editors.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"

struct editors {
  pthread_mutex_t lock; /* guards what follows; locks of works and of the pool are taken inside it */
  struct chain_table places;
  int64_t n_called_off;
};

bool editor_is_name(const char *name) {
  size_t n = 0;
  while (isalnum((unsigned char)name[n]) || name[n] == '-' || name[n] == '_')
    n++;
  return !name[n] && n >= EDITOR_NAME_MIN && n <= EDITOR_NAME_MAX;
}

/* ---- under the lock ---------------------------------------------------------------------------------------------- */

static void call_off(struct editors *e, struct editor_place *p) {
  assert(p->work && p->waiter);
  e->n_called_off += work_call_off(p->work, p->waiter);
}

static void withdraw(struct editors *e, struct editor_place *p) {
  assert(p->is_entered);
  chain_remove(&e->places, &p->link);
  p->is_entered = false;
}

static void end(struct editors *e, struct editor_place *p) {
  withdraw(e, p);
  if (p->work)
    call_off(e, p);
  else
    p->is_late = true;
}

/* Ends the requests of the same editor that are older than this one, except those of the job `but`.  A chain has newer
 * places before older ones. */
static void end_older(struct editors *e, struct editor_place *place, const char *but) {
  for (struct chain_link *l = chain_next(&place->link), *next; l; l = next) {
    struct editor_place *old = (struct editor_place *)l;
    next = chain_next(l);
    if (strcmp(old->key, place->key) != 0 || (*but && !strcmp(old->job, but)))
      continue;
    end(e, old);
  }
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

void editors_enter(struct editors *e, struct editor_place *place) {
  assert(!place->is_entered && *place->key);
  pthread_mutex_lock(&e->lock);
  chain_add(&e->places, &place->link, hash_text(place->key));
  place->is_entered = true;
  end_older(e, place, place->job);
  pthread_mutex_unlock(&e->lock);
}

void editors_set_work(struct editors *e, struct editor_place *place, struct work *work, struct work_waiter *waiter) {
  pthread_mutex_lock(&e->lock);
  place->work = work;
  place->waiter = waiter;
  if (place->is_late) {
    call_off(e, place);
  } else {
    assert(place->is_entered); /* only a newer one removes a place before its request ends */
    end_older(e, place, "");
  }
  pthread_mutex_unlock(&e->lock);
}

void editors_end_before(struct editors *e, const char *key, int64_t entered_ms) {
  pthread_mutex_lock(&e->lock);
  for (struct chain_link *l = chain_first(&e->places, hash_text(key)), *next; l; l = next) {
    struct editor_place *p = (struct editor_place *)l;
    next = chain_next(l);
    if (!strcmp(p->key, key) && p->entered_ms < entered_ms)
      end(e, p);
  }
  pthread_mutex_unlock(&e->lock);
}

void editors_leave(struct editors *e, struct editor_place *place) {
  pthread_mutex_lock(&e->lock);
  if (place->is_entered)
    withdraw(e, place);
  pthread_mutex_unlock(&e->lock);
}

int64_t editors_called_off(struct editors *e) {
  pthread_mutex_lock(&e->lock);
  int64_t n = e->n_called_off;
  pthread_mutex_unlock(&e->lock);
  return n;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

enum status editors_start(struct editors **out, struct error *err) {
  struct editors *e = calloc(1, sizeof *e);
  if (!e)
    return fail(err, ST_NOMEM, "editors");
  pthread_mutex_init(&e->lock, NULL);
  *out = e;
  return ST_OK;
}

void editors_stop(struct editors *e) {
  if (!e)
    return;
  assert(e->places.n == 0);
  pthread_mutex_destroy(&e->lock);
  free(e);
}
