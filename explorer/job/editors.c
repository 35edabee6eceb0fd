#include "job/editors.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "job/results.h"

enum { BUCKETS = 1024 };

struct editors {
  struct results *results;
  pthread_mutex_t lock; /* guards what follows; locks of works and of the pool are taken inside it */
  struct editor_place *buckets[BUCKETS];
  int64_t n_called_off;
};

bool editor_is_name(const char *name) {
  size_t n = 0;
  while (isalnum((unsigned char)name[n]) || name[n] == '-' || name[n] == '_')
    n++;
  return !name[n] && n >= EDITOR_NAME_MIN && n <= EDITOR_NAME_MAX;
}

static struct editor_place **bucket_of(struct editors *e, const char *key) {
  uint32_t h = 2166136261u; /* FNV-1a; the names are random */
  for (const char *p = key; *p; p++)
    h = (h ^ (unsigned char)*p) * 16777619u;
  return &e->buckets[(h ^ h >> 16) % BUCKETS];
}

/* Under the lock. */
static void call_off(struct editors *e, struct editor_place *p) {
  e->n_called_off += results_call_off(e->results, p->work, p->waiter, p->client_fd);
}

/* Under the lock: those of the same editor that stand behind, hence are older, go; but not those of the job `but`. */
static void end_older(struct editors *e, struct editor_place *place, const char *but) {
  struct editor_place **at = &place->chain;
  while (*at) {
    struct editor_place *old = *at;
    if (strcmp(old->key, place->key) != 0 || (*but && !strcmp(old->job, but))) {
      at = &old->chain;
      continue;
    }
    *at = old->chain;
    old->is_entered = false;
    if (old->work)
      call_off(e, old);
    else
      old->is_late = true;
  }
}

void editors_enter(struct editors *e, struct editor_place *place) {
  pthread_mutex_lock(&e->lock);
  struct editor_place **head = bucket_of(e, place->key);
  place->chain = *head;
  place->is_entered = true;
  *head = place;
  end_older(e, place, place->job);
  pthread_mutex_unlock(&e->lock);
}

void editors_set_work(struct editors *e, struct editor_place *place, struct work *work, struct work_waiter *waiter,
                      int client_fd) {
  pthread_mutex_lock(&e->lock);
  place->work = work;
  place->waiter = waiter;
  place->client_fd = client_fd;
  if (place->is_late)
    call_off(e, place);
  else
    end_older(e, place, "");
  pthread_mutex_unlock(&e->lock);
}

void editors_leave(struct editors *e, struct editor_place *place) {
  pthread_mutex_lock(&e->lock);
  if (place->is_entered) {
    struct editor_place **at = bucket_of(e, place->key);
    while (*at != place)
      at = &(*at)->chain;
    *at = place->chain;
    place->is_entered = false;
  }
  pthread_mutex_unlock(&e->lock);
}

int64_t editors_called_off(struct editors *e) {
  pthread_mutex_lock(&e->lock);
  int64_t n = e->n_called_off;
  pthread_mutex_unlock(&e->lock);
  return n;
}

enum status editors_start(struct results *r, struct editors **out, struct error *err) {
  struct editors *e = calloc(1, sizeof *e);
  if (!e)
    return fail(err, ST_NOMEM, "editors");
  e->results = r;
  pthread_mutex_init(&e->lock, NULL);
  *out = e;
  return ST_OK;
}

void editors_stop(struct editors *e) {
  if (!e)
    return;
  pthread_mutex_destroy(&e->lock);
  free(e);
}
