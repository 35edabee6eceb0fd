/* unsent: see the header.  Few answers are large, so the share of a client is found by looking at all of them. */
#include "http/unsent.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct unsent_answer {
  struct unsent_answer *next, *prev;
  struct unsent *all;
  char client[UNSENT_CLIENT_SIZE];
  size_t len;
};

struct unsent {
  size_t max;
  pthread_mutex_t lock; /* guards what follows */
  struct unsent_answer *first;
  struct unsent_counts counts;
};

enum status unsent_start(size_t max, struct unsent **out, struct error *err) {
  struct unsent *u = calloc(1, sizeof *u);
  assert(max > 0);
  if (!u)
    return fail(err, ST_NOMEM, "unsent answers");
  u->max = max;
  pthread_mutex_init(&u->lock, NULL);
  *out = u;
  return ST_OK;
}

void unsent_stop(struct unsent *u) {
  if (!u)
    return;
  assert(!u->first);
  pthread_mutex_destroy(&u->lock);
  free(u);
}

/* Under the lock. */
static size_t bytes_of(const struct unsent *u, const char *client) {
  size_t n = 0;
  for (const struct unsent_answer *a = u->first; a; a = a->next)
    if (!strcmp(a->client, client))
      n += a->len;
  return n;
}

/* Under the lock.  What a client asks for alone is never refused, however large, unless others fill the memory. */
static bool has_room(const struct unsent *u, const char *client, size_t len) {
  const size_t own = bytes_of(u, client);
  return (!u->counts.bytes || u->counts.bytes + len <= u->max) && (!own || own + len <= u->max / UNSENT_CLIENT_PART);
}

struct unsent_answer *unsent_add(struct unsent *u, const char *client, size_t len) {
  struct unsent_answer *a = calloc(1, sizeof *a);
  assert(strlen(client) < UNSENT_CLIENT_SIZE);
  if (!a)
    return NULL;
  pthread_mutex_lock(&u->lock);
  const bool may = has_room(u, client, len);
  if (may) {
    *a = (struct unsent_answer){.next = u->first, .all = u, .len = len};
    strncpy(a->client, client, sizeof a->client - 1);
    if (u->first)
      u->first->prev = a;
    u->first = a;
    u->counts.bytes += len;
  } else {
    u->counts.refused++;
  }
  pthread_mutex_unlock(&u->lock);
  if (may)
    return a;
  free(a);
  return NULL;
}

bool unsent_has_room(struct unsent *u, const char *client, size_t len) {
  pthread_mutex_lock(&u->lock);
  const bool may = has_room(u, client, len);
  u->counts.refused += !may;
  pthread_mutex_unlock(&u->lock);
  return may;
}

void unsent_remove(struct unsent_answer *a) {
  if (!a)
    return;
  struct unsent *u = a->all;
  pthread_mutex_lock(&u->lock);
  if (a->prev)
    a->prev->next = a->next;
  else
    u->first = a->next;
  if (a->next)
    a->next->prev = a->prev;
  assert(u->counts.bytes >= a->len);
  u->counts.bytes -= a->len;
  pthread_mutex_unlock(&u->lock);
  free(a);
}

void unsent_look(struct unsent *u, struct unsent_counts *out) {
  pthread_mutex_lock(&u->lock);
  *out = u->counts;
  pthread_mutex_unlock(&u->lock);
}
