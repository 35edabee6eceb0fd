#include "work/quota_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/index.h"

enum {
  CLIENTS_MAX = 1 << 16, /* about 10 MB; beyond that, some clients with nothing open are forgotten too early */
  CLIENTS_KEPT = CLIENTS_MAX / 4 * 3, /* that remain then, so that not each new client looks through all */
  NETWORK_MAX = 1024,                 /* clients of one network of 48 bits */
  SITE_SHARES = 4,                    /* of a network of 56 bits */
  NETWORK_SHARES = 16,                /* … of 48 bits */
  JOBS_RETRY_S = 2,                   /* one of the client's jobs will end: most take a fraction of this */
};

static const int64_t MINUTE_US = 60 * (int64_t)SECOND_US, DAY_US = 24 * 60 * 60 * (int64_t)SECOND_US;

/* ---- the table, under the lock ----------------------------------------------------------------------------------- */

static uint32_t hash_of(const struct quota *q, const char *name) {
  uint64_t h = q->seed;
  for (const char *p = name; *p; p++)
    h = hash_mix(h, (unsigned char)*p);
  return (uint32_t)h;
}

static bool is_full(const struct client *c, int64_t now) {
  return c->full_at_us <= now && c->links_full_at_us <= now && c->day_full_at_us <= now && c->notes_full_at_us <= now &&
         c->bytes_full_at_us <= now;
}

/* Forgets the clients of one chain that have nothing open and full buckets; with is_urgent also those whose buckets are
 * not full. */
static void forget_some(struct quota *q, struct chain_link *head, int64_t now, bool is_urgent) {
  for (struct chain_link *l = head, *next; l; l = next) {
    struct client *c = (struct client *)l;
    next = l->next;
    if (c->holds || (!is_urgent && !is_full(c, now)))
      continue;
    assert(!c->jobs && !c->connections && !c->inner);
    chain_remove(&q->clients, l);
    for (struct client *o = c->outer; o; o = o->outer)
      o->inner--;
    if (c->outer)
      c->outer->holds--;
    free(c);
  }
}

static void make_room(struct quota *q, int64_t now) {
  if (q->clients.n < CLIENTS_MAX)
    return;
  for (int urgent = 0; urgent < 2; urgent++)
    for (int i = 0; i < CHAINS && q->clients.n > CLIENTS_KEPT; i++) {
      q->sweep = (q->sweep + 1) % CHAINS;
      forget_some(q, q->clients.heads[q->sweep], now, urgent);
    }
}

/* NULL: no such client is known. */
static struct client *find(struct quota *q, const char *address) {
  for (struct chain_link *l = chain_first(&q->clients, hash_of(q, address)); l; l = chain_next(l))
    if (!strcmp(((struct client *)l)->name, address))
      return (struct client *)l;
  return NULL;
}

/* The name of the network of so many bits that the address is in; false if it is no address of IPv6. */
static bool name_network(const char *address, int bits, char out[QUOTA_NAME_SIZE]) {
  struct in6_addr six;
  char text[INET6_ADDRSTRLEN];
  if (!strchr(address, ':') || inet_pton(AF_INET6, address, &six) != 1)
    return false;
  assert(bits % 8 == 0);
  memset(six.s6_addr + bits / 8, 0, sizeof six.s6_addr - (size_t)bits / 8);
  inet_ntop(AF_INET6, &six, text, sizeof text);
  snprintf(out, QUOTA_NAME_SIZE, "%.40s/%d", text, bits);
  return true;
}

static struct client *add(struct quota *q, const char *address, struct client *outer, int shares) {
  const int64_t now = clock_now_us();
  const uint32_t hash = hash_of(q, address);
  forget_some(q, *chain_head(&q->clients, hash), now, false);
  make_room(q, now);
  struct client *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->quota = q;
  c->shares = shares;
  c->outer = outer;
  if (outer)
    outer->holds++;
  for (struct client *o = outer; o; o = o->outer)
    o->inner++;
  strncpy(c->name, address, QUOTA_NAME_SIZE - 1);
  chain_add(&q->clients, &c->link, hash);
  return c;
}

/* Finds the client, or adds it with the networks that it is in.  What was just found or added is held while the next is added, which
 * may make room. */
static struct client *find_or_add(struct quota *q, const char *address) {
  static const struct {
    int bits, shares;
  } levels[] = {{48, NETWORK_SHARES}, {56, SITE_SHARES}};
  struct client *c = find(q, address), *outer = NULL;
  char name[QUOTA_NAME_SIZE];
  for (int i = 0; !c && i < 2 && name_network(address, levels[i].bits, name); i++) {
    struct client *network = find(q, name);
    if (!network && outer && outer->inner >= NETWORK_MAX)
      return outer;
    if (outer)
      outer->holds++;
    if (!network)
      network = add(q, name, outer, levels[i].shares);
    if (outer)
      outer->holds--;
    if (!network)
      return NULL;
    outer = network;
  }
  if (c || (outer && (outer->outer ? outer->outer : outer)->inner >= NETWORK_MAX))
    return c ? c : outer;
  if (outer)
    outer->holds++;
  c = add(q, address, outer, 1);
  if (outer)
    outer->holds--;
  return c;
}

struct client *quota_client(struct quota *q, const char *address) {
  assert(strlen(address) < QUOTA_NAME_SIZE);
  pthread_mutex_lock(&q->lock);
  struct client *c = find_or_add(q, address);
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
  c->holds--; /* it is forgotten later, once its bucket is full: until then its use is remembered */
  assert(c->holds >= 0);
  pthread_mutex_unlock(&q->lock);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* A bucket of n that fills within a period is kept as the time at which it will be full: what is taken from it moves that by its
 * share of the period, and it may not lie more than a period ahead.  Returns 0, with *next set to the new time, or the seconds after
 * which to try again.  Without a limit (n = 0) there is nothing to count. */
static int draw(int64_t full_at_us, int n, int64_t period_us, int64_t now, int64_t *next) {
  *next = full_at_us;
  if (!n)
    return 0;
  *next = (full_at_us > now ? full_at_us : now) + period_us / n;
  return *next > now + period_us ? (int)((*next - now - period_us + SECOND_US - 1) / SECOND_US) : 0;
}

/* Under the lock: whether the client, or a network, could begin a compile. */
static enum quota_verdict may_begin(const struct client *c, int64_t now, int *retry_s) {
  const struct quota_config *cfg = &c->quota->cfg;
  int64_t full_at;
  if (cfg->jobs && c->jobs + c->elsewhere.jobs >= cfg->jobs * c->shares) {
    *retry_s = JOBS_RETRY_S;
    return QUOTA_JOBS;
  }
  const int wait_s = draw(c->full_at_us, cfg->compiles * c->shares, MINUTE_US, now, &full_at);
  *retry_s = wait_s;
  return wait_s ? QUOTA_COMPILES : QUOTA_OK;
}

/* Under the lock. */
static enum quota_verdict take(struct client *c, int *retry_s) {
  const int64_t now = clock_now_us();
  for (const struct client *o = c; o; o = o->outer) {
    const enum quota_verdict v = may_begin(o, now, retry_s);
    if (v != QUOTA_OK)
      return v;
  }
  for (struct client *o = c; o; o = o->outer) {
    (void)draw(o->full_at_us, c->quota->cfg.compiles * o->shares, MINUTE_US, now, &o->full_at_us);
    o->jobs++;
  }
  quota_tell_more(c);
  return QUOTA_OK;
}

enum quota_verdict client_begin_job(struct client *c, int *retry_s) {
  if (!c)
    return QUOTA_OK;
  pthread_mutex_lock(&c->quota->lock);
  enum quota_verdict v = take(c, retry_s);
  c->wait_until_us = v == QUOTA_OK ? 0 : clock_now_us() + *retry_s * (int64_t)SECOND_US;
  c->quota->refused[v] += v != QUOTA_OK;
  pthread_mutex_unlock(&c->quota->lock);
  return v;
}

void client_end_job(struct client *c, bool has_run) {
  if (!c)
    return;
  pthread_mutex_lock(&c->quota->lock);
  for (struct client *o = c; o; o = o->outer) {
    o->jobs--;
    assert(o->jobs >= 0);
    if (!has_run && c->quota->cfg.compiles)
      o->full_at_us -= MINUTE_US / ((int64_t)c->quota->cfg.compiles * o->shares);
  }
  pthread_mutex_unlock(&c->quota->lock);
}

enum quota_verdict client_store_link(struct client *c, int *retry_s) {
  if (!c)
    return QUOTA_OK;
  pthread_mutex_lock(&c->quota->lock);
  const struct quota_config *cfg = &c->quota->cfg;
  const int64_t now = clock_now_us();
  int wait_s = 0;
  for (const struct client *o = c; o && !wait_s; o = o->outer) {
    int64_t minute, day;
    const int of_minute = draw(o->links_full_at_us, cfg->links * o->shares, MINUTE_US, now, &minute),
              of_day = draw(o->day_full_at_us, cfg->links_a_day * o->shares, DAY_US, now, &day);
    wait_s = of_minute > of_day ? of_minute : of_day;
  }
  const bool may = !wait_s;
  for (struct client *o = c; o && may; o = o->outer) {
    (void)draw(o->links_full_at_us, cfg->links * o->shares, MINUTE_US, now, &o->links_full_at_us);
    (void)draw(o->day_full_at_us, cfg->links_a_day * o->shares, DAY_US, now, &o->day_full_at_us);
  }
  c->link_wait_until_us = may ? 0 : now + wait_s * (int64_t)SECOND_US;
  if (!may) {
    *retry_s = wait_s;
    c->quota->refused[QUOTA_LINKS]++;
  }
  pthread_mutex_unlock(&c->quota->lock);
  return may ? QUOTA_OK : QUOTA_LINKS;
}

enum quota_verdict client_write_notes(struct client *c, int *retry_s) {
  if (!c)
    return QUOTA_OK;
  pthread_mutex_lock(&c->quota->lock);
  const int n = c->quota->cfg.links * QUOTA_NOTES_A_LINK;
  const int64_t now = clock_now_us();
  int64_t next;
  int wait_s = 0;
  for (const struct client *o = c; o && !wait_s; o = o->outer)
    wait_s = draw(o->notes_full_at_us, n * o->shares, MINUTE_US, now, &next);
  for (struct client *o = c; o && !wait_s; o = o->outer)
    (void)draw(o->notes_full_at_us, n * o->shares, MINUTE_US, now, &o->notes_full_at_us);
  *retry_s = wait_s;
  c->quota->refused[QUOTA_LINKS] += wait_s > 0;
  pthread_mutex_unlock(&c->quota->lock);
  return wait_s ? QUOTA_LINKS : QUOTA_OK;
}

enum quota_verdict client_has_link_bytes(struct client *c, int *retry_s) {
  if (!c || !c->quota->cfg.link_mib_a_day)
    return QUOTA_OK;
  pthread_mutex_lock(&c->quota->lock);
  int64_t owed_us = INT64_MIN;
  for (const struct client *o = c; o; o = o->outer)
    if (owed_us < o->bytes_full_at_us - clock_now_us() - DAY_US)
      owed_us = o->bytes_full_at_us - clock_now_us() - DAY_US;
  const bool may = owed_us < 0;
  if (!may) {
    *retry_s = (int)(owed_us / SECOND_US) + 1;
    c->link_wait_until_us = clock_now_us() + owed_us;
  }
  c->quota->refused[QUOTA_LINK_BYTES] += !may;
  pthread_mutex_unlock(&c->quota->lock);
  return may ? QUOTA_OK : QUOTA_LINK_BYTES;
}

void client_take_link_bytes(struct client *c, int64_t bytes) {
  if (!c || !c->quota->cfg.link_mib_a_day)
    return;
  const double part = (double)bytes / ((double)c->quota->cfg.link_mib_a_day * (1 << 20));
  const int64_t now = clock_now_us();
  pthread_mutex_lock(&c->quota->lock);
  for (struct client *o = c; o; o = o->outer)
    o->bytes_full_at_us =
        (o->bytes_full_at_us > now ? o->bytes_full_at_us : now) + (int64_t)(part * (double)DAY_US / o->shares);
  pthread_mutex_unlock(&c->quota->lock);
}

/* The bucket after n were drawn from it, and at most empty. */
static int64_t drawn(int64_t full_at_us, int64_t n, int64_t size, int64_t period_us, int64_t now) {
  if (!size)
    return full_at_us;
  const int64_t from = full_at_us > now ? full_at_us : now, most = now + period_us;
  const int64_t next = n >= size ? most : from + period_us / size * n;
  return next < most ? next : from > most ? from : most;
}

void quota_used_elsewhere(struct quota *q, const char *address, enum quota_use what, int64_t n) {
  const struct quota_config *cfg = &q->cfg;
  if (n <= 0 || strlen(address) >= QUOTA_NAME_SIZE)
    return;
  struct client *c = quota_client(q, address);
  const int64_t now = clock_now_us();
  pthread_mutex_lock(&q->lock);
  for (struct client *o = c; o && what == QUOTA_USE_COMPILE; o = o->outer)
    o->full_at_us = drawn(o->full_at_us, n, (int64_t)cfg->compiles * o->shares, MINUTE_US, now);
  for (struct client *o = c; o && what == QUOTA_USE_LINK; o = o->outer) {
    o->links_full_at_us = drawn(o->links_full_at_us, n, (int64_t)cfg->links * o->shares, MINUTE_US, now);
    o->day_full_at_us = drawn(o->day_full_at_us, n, (int64_t)cfg->links_a_day * o->shares, DAY_US, now);
  }
  pthread_mutex_unlock(&q->lock);
  if (what == QUOTA_USE_LINK_BYTES)
    client_take_link_bytes(c, n);
  client_let_go(c);
}

int client_jobs(struct client *c) {
  if (!c)
    return 0;
  pthread_mutex_lock(&c->quota->lock);
  int n = c->jobs;
  for (const struct client *o = c->outer; o; o = o->outer)
    n = o->jobs / o->shares > n ? o->jobs / o->shares : n;
  pthread_mutex_unlock(&c->quota->lock);
  return n;
}

const void *client_site(const struct client *c) {
  return c && c->outer && c->outer->outer ? c->outer : c; /* constant once the client exists */
}

bool quota_is_early(struct quota *q, const char *address, bool is_link) {
  pthread_mutex_lock(&q->lock);
  const struct client *c = find(q, address);
  bool is_early = c && (is_link ? c->link_wait_until_us : c->wait_until_us) > clock_now_us();
  pthread_mutex_unlock(&q->lock);
  return is_early;
}

bool quota_enter(struct quota *q, const char *address, struct client **client) {
  struct client *c = q->cfg.connections ? quota_client(q, address) : NULL;
  if (c) {
    pthread_mutex_lock(&q->lock);
    bool may = true;
    for (const struct client *o = c; o; o = o->outer)
      may = may && o->connections + o->elsewhere.connections < q->cfg.connections * o->shares;
    for (struct client *o = c; o; o = o->outer)
      o->connections += may;
    if (may)
      quota_tell_more(c);
    q->refused[QUOTA_CONNECTIONS] += !may;
    pthread_mutex_unlock(&q->lock);
    if (!may) {
      client_let_go(c);
      return false;
    }
  }
  *client = c;
  return true;
}

void quota_leave(struct client *c) {
  if (!c)
    return;
  pthread_mutex_lock(&c->quota->lock);
  for (struct client *o = c; o; o = o->outer) {
    o->connections--;
    assert(o->connections >= 0);
  }
  pthread_mutex_unlock(&c->quota->lock);
  client_let_go(c);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

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
  quota_forget_open(q);
  for (int i = 0; i < CHAINS; i++)
    for (struct chain_link *l = q->clients.heads[i], *next; l; l = next) {
      assert(!((struct client *)l)->holds || ((struct client *)l)->inner); /* its clients hold a network */
      next = l->next;
      free(l);
    }
  pthread_mutex_destroy(&q->lock);
  free(q);
}

void quota_look(struct quota *q, struct quota_counts *out) {
  pthread_mutex_lock(&q->lock);
  memcpy(out->refused, q->refused, sizeof out->refused);
  out->clients = q->clients.n;
  pthread_mutex_unlock(&q->lock);
}
