#include "job/quota.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
  BUCKETS = 4096,
  CLIENTS_MAX = 1 << 16, /* some 8 MB; beyond it, those without anything open are forgotten before their time */
  NAME_SIZE = 48,
  MINUTE_US = 60000000,
  JOBS_RETRY_S = 2, /* a job of one's own ends sooner or later: most take a fraction of this */
};

struct client {
  struct quota *quota;
  struct client *chain;
  int holds, jobs, connections;
  int64_t full_at_us;    /* when the bucket will be full again */
  int64_t told_until_us; /* when to try again, as it was told with the last refusal; 0: none, or it got through since */
  char name[NAME_SIZE];
};

struct quota {
  struct quota_config cfg;
  uint64_t seed;        /* nobody shall choose addresses that fall into one bucket */
  pthread_mutex_t lock; /* guards what follows, and all clients */
  struct client *buckets[BUCKETS];
  struct quota_counts counts;
};

static struct client **bucket_of(struct quota *q, const char *name) {
  uint64_t h = q->seed;
  for (const char *p = name; *p; p++)
    h = (h ^ (unsigned char)*p) * 1099511628211u; /* FNV-1a */
  return &q->buckets[(h ^ h >> 32) % BUCKETS];
}

/* Under the lock: removes from one bucket whoever has nothing open; with is_urgent also those with an empty bucket. */
static void forget_some(struct quota *q, struct client **at, int64_t now, bool is_urgent) {
  while (*at) {
    struct client *c = *at;
    if (c->holds || (!is_urgent && c->full_at_us > now)) {
      at = &c->chain;
      continue;
    }
    *at = c->chain;
    free(c);
    q->counts.clients--;
  }
}

static void make_room(struct quota *q, int64_t now) {
  for (int urgent = 0; urgent < 2 && q->counts.clients >= CLIENTS_MAX; urgent++)
    for (int i = 0; i < BUCKETS; i++)
      forget_some(q, &q->buckets[i], now, urgent);
}

/* Under the lock; NULL: nobody known. */
static struct client *find(struct client *c, const char *address) {
  while (c && strcmp(c->name, address) != 0)
    c = c->chain;
  return c;
}

struct client *quota_client(struct quota *q, const char *address) {
  int64_t now = clock_now_us();
  pthread_mutex_lock(&q->lock);
  struct client **bucket = bucket_of(q, address), *c = find(*bucket, address);
  if (!c) {
    forget_some(q, bucket, now, false);
    make_room(q, now);
    c = calloc(1, sizeof *c);
    if (c) {
      c->quota = q;
      strncpy(c->name, address, NAME_SIZE - 1);
      c->chain = *bucket;
      *bucket = c;
      q->counts.clients++;
    }
  }
  if (c)
    c->holds++;
  pthread_mutex_unlock(&q->lock);
  return c;
}

struct client *client_hold(struct client *c) {
  if (!c)
    return NULL;
  pthread_mutex_lock(&c->quota->lock);
  c->holds++;
  pthread_mutex_unlock(&c->quota->lock);
  return c;
}

void client_let_go(struct client *c) {
  if (!c)
    return;
  struct quota *q = c->quota;
  pthread_mutex_lock(&q->lock);
  c->holds--; /* it is removed later, with its bucket full: until then its use is remembered */
  pthread_mutex_unlock(&q->lock);
}

/* ---- counting ------------------------------------------------------------------------------------------------------
 */

/* Under the lock.  The bucket as the moment at which it will be full: each compile puts that off by its share of a
 * minute, and it may not be further away than a minute. */
static enum quota_verdict take(struct client *c, int *retry_s) {
  const struct quota_config *cfg = &c->quota->cfg;
  if (cfg->jobs && c->jobs >= cfg->jobs) {
    *retry_s = JOBS_RETRY_S;
    return QUOTA_JOBS;
  }
  if (cfg->compiles) {
    int64_t now = clock_now_us(), share = MINUTE_US / cfg->compiles;
    int64_t full_at = (c->full_at_us > now ? c->full_at_us : now) + share;
    if (full_at > now + MINUTE_US) {
      *retry_s = (int)((full_at - now - MINUTE_US + 999999) / 1000000);
      return QUOTA_COMPILES;
    }
    c->full_at_us = full_at;
  }
  c->jobs++;
  return QUOTA_OK;
}

enum quota_verdict client_begin_job(struct client *c, int *retry_s) {
  if (!c)
    return QUOTA_OK;
  pthread_mutex_lock(&c->quota->lock);
  enum quota_verdict v = take(c, retry_s);
  c->told_until_us = v == QUOTA_OK ? 0 : clock_now_us() + *retry_s * (int64_t)1000000;
  c->quota->counts.refused[v] += v != QUOTA_OK;
  pthread_mutex_unlock(&c->quota->lock);
  return v;
}

void client_end_job(struct client *c, bool has_run) {
  if (!c)
    return;
  pthread_mutex_lock(&c->quota->lock);
  c->jobs--;
  if (!has_run && c->quota->cfg.compiles)
    c->full_at_us -= MINUTE_US / c->quota->cfg.compiles;
  pthread_mutex_unlock(&c->quota->lock);
}

int client_jobs(struct client *c) {
  if (!c)
    return 0;
  pthread_mutex_lock(&c->quota->lock);
  int n = c->jobs;
  pthread_mutex_unlock(&c->quota->lock);
  return n;
}

bool quota_is_early(struct quota *q, const char *address) {
  pthread_mutex_lock(&q->lock);
  const struct client *c = find(*bucket_of(q, address), address);
  bool is_early = c && c->told_until_us > clock_now_us();
  pthread_mutex_unlock(&q->lock);
  return is_early;
}

enum quota_verdict client_connect(struct client *c) {
  if (!c)
    return QUOTA_OK;
  struct quota *q = c->quota;
  pthread_mutex_lock(&q->lock);
  bool may = !q->cfg.connections || c->connections < q->cfg.connections;
  c->connections += may;
  q->counts.refused[QUOTA_CONNECTIONS] += !may;
  pthread_mutex_unlock(&q->lock);
  return may ? QUOTA_OK : QUOTA_CONNECTIONS;
}

void client_disconnect(struct client *c) {
  if (!c)
    return;
  pthread_mutex_lock(&c->quota->lock);
  c->connections--;
  pthread_mutex_unlock(&c->quota->lock);
}

/* ---- start and stop ------------------------------------------------------------------------------------------------
 */

enum status quota_start(const struct quota_config *cfg, struct quota **out, struct error *err) {
  struct quota *q = calloc(1, sizeof *q);
  if (!q)
    return fail(err, ST_NOMEM, "quota");
  q->cfg = *cfg;
  if (getrandom(&q->seed, sizeof q->seed, 0) != (ssize_t)sizeof q->seed)
    q->seed = (uint64_t)clock_now_ns();
  pthread_mutex_init(&q->lock, NULL);
  *out = q;
  return ST_OK;
}

void quota_stop(struct quota *q) {
  if (!q)
    return;
  for (int i = 0; i < BUCKETS; i++)
    for (struct client *c = q->buckets[i], *next; c; c = next) {
      next = c->chain;
      free(c);
    }
  pthread_mutex_destroy(&q->lock);
  free(q);
}

void quota_look(struct quota *q, struct quota_counts *out) {
  pthread_mutex_lock(&q->lock);
  *out = q->counts;
  pthread_mutex_unlock(&q->lock);
}
