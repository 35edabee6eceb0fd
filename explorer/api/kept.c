#include "api/kept.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/store.h"

enum {
  BUCKETS = 4096,
  PLACE_BYTES = 256,   /* what an answer costs besides its bytes */
  ASK_AGAIN_MS = 1000, /* a store that was away is not asked for what is kept */
};

struct answer {
  struct kept_answer seen; /* first: a struct kept_answer * is also ours */
  atomic_int references;   /* the table's, and one per reader */
  enum kept_kind kind;
  struct ident_hash id;
  int64_t checked_ms; /* when the store said so; monotonic */
  int64_t expires_ms; /* Unix time; 0: never */
  struct answer *chain, *newer, *older;
  char bytes[];
};

struct kept {
  bool is_shared;
  pthread_mutex_t lock; /* guards what follows */
  struct answer *buckets[BUCKETS];
  struct answer *newest, *oldest;
  int64_t total;
  int64_t asked_ms; /* when the store last was away */
  bool is_away;
  uint64_t moment;
};

enum status kept_start(bool is_shared, struct kept **out, struct error *err) {
  struct kept *k = calloc(1, sizeof *k);
  if (!k)
    return fail(err, ST_NOMEM, "kept");
  k->is_shared = is_shared;
  pthread_mutex_init(&k->lock, NULL);
  *out = k;
  return ST_OK;
}

void kept_release(const struct kept_answer *a) {
  struct answer *own = (struct answer *)(uintptr_t)a;
  if (own && atomic_fetch_sub(&own->references, 1) == 1)
    free(own);
}

/* ---- the table, under the lock ------------------------------------------------------------------------------------- */

static struct answer **bucket_of(struct kept *k, enum kept_kind kind, const struct ident_hash *id) {
  uint32_t h; /* an id's hash is as good as any */
  memcpy(&h, id->bytes, sizeof h);
  return &k->buckets[(h + (uint32_t)kind) % BUCKETS];
}

static struct answer *find(struct kept *k, enum kept_kind kind, const struct ident_hash *id) {
  struct answer *a = *bucket_of(k, kind, id);
  while (a && (a->kind != kind || memcmp(&a->id, id, sizeof *id) != 0))
    a = a->chain;
  return a;
}

static void unlink_use(struct kept *k, struct answer *a) {
  *(a->newer ? &a->newer->older : &k->newest) = a->older;
  *(a->older ? &a->older->newer : &k->oldest) = a->newer;
}

static void link_newest(struct kept *k, struct answer *a) {
  a->newer = NULL;
  a->older = k->newest;
  *(k->newest ? &k->newest->newer : &k->oldest) = a;
  k->newest = a;
}

static void drop(struct kept *k, struct answer *a) {
  struct answer **at = bucket_of(k, a->kind, &a->id);
  while (*at != a)
    at = &(*at)->chain;
  *at = a->chain;
  unlink_use(k, a);
  k->total -= (int64_t)a->seen.len + PLACE_BYTES;
  kept_release(&a->seen);
}

void kept_stop(struct kept *k) {
  if (!k)
    return;
  while (k->oldest)
    drop(k, k->oldest);
  pthread_mutex_destroy(&k->lock);
  free(k);
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

static int64_t good_for_ms(const struct kept *k, int64_t now) {
  if (k->is_away && now - k->asked_ms < ASK_AGAIN_MS)
    return KEPT_AWAY_MS;
  return k->is_shared ? 0 : INT64_MAX;
}

static const struct kept_answer *look(struct kept *k, enum kept_kind kind, const struct ident_hash *id, int64_t now,
                                      int64_t good_ms) {
  struct answer *a = find(k, kind, id);
  if (!a || now - a->checked_ms >= good_ms)
    return NULL;
  if (a->expires_ms && a->expires_ms <= store_now_ms()) {
    drop(k, a);
    return NULL;
  }
  unlink_use(k, a);
  link_newest(k, a);
  atomic_fetch_add(&a->references, 1);
  return &a->seen;
}

const struct kept_answer *kept_find(struct kept *k, enum kept_kind kind, const struct ident_hash *id) {
  int64_t now = clock_now_ms();
  pthread_mutex_lock(&k->lock);
  const struct kept_answer *a = look(k, kind, id, now, good_for_ms(k, now));
  pthread_mutex_unlock(&k->lock);
  return a;
}

const struct kept_answer *kept_find_away(struct kept *k, enum kept_kind kind, const struct ident_hash *id) {
  int64_t now = clock_now_ms();
  pthread_mutex_lock(&k->lock);
  k->is_away = true;
  k->asked_ms = now;
  const struct kept_answer *a = look(k, kind, id, now, KEPT_AWAY_MS);
  pthread_mutex_unlock(&k->lock);
  return a;
}

uint64_t kept_moment(struct kept *k) {
  pthread_mutex_lock(&k->lock);
  uint64_t m = k->moment;
  pthread_mutex_unlock(&k->lock);
  return m;
}

static struct answer *answer_new(enum kept_kind kind, const struct ident_hash *id, int64_t expires_ms,
                                 const struct buf *bytes) {
  size_t n = bytes ? bytes->len : 0;
  struct answer *a = n <= KEPT_ONE_MAX ? malloc(sizeof *a + n) : NULL;
  if (!a)
    return NULL; /* then it is not kept */
  *a = (struct answer){.kind = kind, .id = *id, .checked_ms = clock_now_ms(), .expires_ms = expires_ms};
  if (n)
    memcpy(a->bytes, bytes->data, n);
  a->seen = (struct kept_answer){a->bytes, n};
  atomic_init(&a->references, 1);
  return a;
}

void kept_add(struct kept *k, enum kept_kind kind, const struct ident_hash *id, uint64_t moment, int64_t expires_ms,
              const struct buf *bytes) {
  struct answer *a = answer_new(kind, id, expires_ms, bytes);
  if (!a)
    return;
  pthread_mutex_lock(&k->lock);
  k->is_away = false; /* it has just been read */
  if (moment == k->moment) {
    struct answer *old = find(k, kind, id), **at = bucket_of(k, kind, id);
    if (old)
      drop(k, old);
    a->chain = *at;
    *at = a;
    link_newest(k, a);
    k->total += (int64_t)a->seen.len + PLACE_BYTES;
    while (k->total > KEPT_BYTES_MAX)
      drop(k, k->oldest);
    a = NULL;
  }
  pthread_mutex_unlock(&k->lock);
  free(a);
}

void kept_forget(struct kept *k) {
  pthread_mutex_lock(&k->lock);
  k->moment++;
  while (k->oldest)
    drop(k, k->oldest);
  pthread_mutex_unlock(&k->lock);
}
