#include "api/kept.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/recent.h"
#include "store/store.h"

enum {
  PLACE_BYTES = 256,   /* what an answer takes besides its bytes */
  ASK_AGAIN_MS = 1000, /* how long a store that failed is not asked for what is kept */
};

struct answer {
  struct kept_answer seen; /* first: a struct kept_answer * is also a struct answer * */
  struct chain_link link;
  struct recent_link used;
  atomic_int references; /* the table's, and one for each reader */
  enum kept_kind kind;
  struct ident_hash id;
  int64_t checked_ms; /* when the store confirmed it; monotonic */
  int64_t expires_ms; /* Unix time; 0: never */
  char bytes[];
};

struct kept {
  bool is_shared;
  int64_t bytes_max;
  pthread_mutex_t lock; /* guards what follows */
  struct chain_table answers;
  struct recent_list recent;
  int64_t total;
  int64_t failed_ms; /* when the store last failed to answer */
  bool is_away;
  uint64_t moment;
};

enum status kept_start(bool is_shared, int64_t bytes_max, struct kept **out, struct error *err) {
  struct kept *k = calloc(1, sizeof *k);
  if (!k)
    return fail(err, ST_NOMEM, "kept");
  k->is_shared = is_shared;
  k->bytes_max = bytes_max;
  pthread_mutex_init(&k->lock, NULL);
  *out = k;
  return ST_OK;
}

void kept_release(const struct kept_answer *a) {
  struct answer *own = (struct answer *)(uintptr_t)a;
  if (!own)
    return;
  int before = atomic_fetch_sub(&own->references, 1);
  assert(before > 0);
  if (before == 1)
    free(own);
}

/* ---- the table, under the lock ----------------------------------------------------------------------------------- */

static struct answer *of_link(struct chain_link *l) {
  return (struct answer *)((char *)l - offsetof(struct answer, link));
}

static struct answer *oldest(const struct kept *k) {
  struct recent_link *l = k->recent.oldest;
  return l ? (struct answer *)((char *)l - offsetof(struct answer, used)) : NULL;
}

static uint32_t hash_of(enum kept_kind kind, const struct ident_hash *id) {
  return (uint32_t)hash_mix(hash_bytes(id->bytes, sizeof id->bytes), kind);
}

static struct answer *find(struct kept *k, enum kept_kind kind, const struct ident_hash *id) {
  for (struct chain_link *l = chain_first(&k->answers, hash_of(kind, id)); l; l = chain_next(l))
    if (of_link(l)->kind == kind && !memcmp(&of_link(l)->id, id, sizeof *id))
      return of_link(l);
  return NULL;
}

static int64_t cost(const struct answer *a) {
  return (int64_t)a->seen.len + PLACE_BYTES;
}

static void add(struct kept *k, struct answer *a) {
  chain_add(&k->answers, &a->link, hash_of(a->kind, &a->id));
  recent_add(&k->recent, &a->used);
  k->total += cost(a);
}

static void drop(struct kept *k, struct answer *a) {
  chain_remove(&k->answers, &a->link);
  recent_remove(&k->recent, &a->used);
  k->total -= cost(a);
  assert(k->total >= 0);
  kept_release(&a->seen);
}

void kept_stop(struct kept *k) {
  if (!k)
    return;
  while (oldest(k))
    drop(k, oldest(k));
  assert(!k->answers.n && !k->total);
  pthread_mutex_destroy(&k->lock);
  free(k);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* How old an answer may be that is given without asking the store. */
static int64_t good_for_ms(const struct kept *k, int64_t now) {
  if (k->is_away && now - k->failed_ms < ASK_AGAIN_MS)
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
  recent_remove(&k->recent, &a->used);
  recent_add(&k->recent, &a->used);
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
  k->failed_ms = now;
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

/* NULL when it is too large or there is no memory: it is not kept then. */
static struct answer *answer_new(const struct kept *k, enum kept_kind kind, const struct ident_hash *id,
                                 int64_t expires_ms, const struct buf *bytes) {
  size_t n = bytes ? bytes->len : 0;
  struct answer *a = (int64_t)n <= k->bytes_max / KEPT_PARTS ? malloc(sizeof *a + n) : NULL;
  if (!a)
    return NULL;
  *a = (struct answer){.kind = kind, .id = *id, .checked_ms = clock_now_ms(), .expires_ms = expires_ms};
  if (n)
    memcpy(a->bytes, bytes->data, n);
  a->seen = (struct kept_answer){a->bytes, n};
  atomic_init(&a->references, 1);
  return a;
}

void kept_add(struct kept *k, enum kept_kind kind, const struct ident_hash *id, uint64_t moment, int64_t expires_ms,
              const struct buf *bytes) {
  struct answer *a = answer_new(k, kind, id, expires_ms, bytes);
  if (!a)
    return;
  pthread_mutex_lock(&k->lock);
  assert(moment <= k->moment);
  k->is_away = false; /* the store has just been read */
  if (moment == k->moment) {
    struct answer *old = find(k, kind, id);
    if (old)
      drop(k, old);
    add(k, a);
    while (k->total > k->bytes_max)
      drop(k, oldest(k));
    a = NULL;
  }
  pthread_mutex_unlock(&k->lock);
  free(a);
}

void kept_forget(struct kept *k) {
  pthread_mutex_lock(&k->lock);
  k->moment++;
  while (oldest(k))
    drop(k, oldest(k));
  pthread_mutex_unlock(&k->lock);
}

int64_t kept_bytes(struct kept *k) {
  pthread_mutex_lock(&k->lock);
  const int64_t n = k->total;
  pthread_mutex_unlock(&k->lock);
  return n;
}
