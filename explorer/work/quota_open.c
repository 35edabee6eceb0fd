/* What clients have open on the other servers of a site, so that a share of compiles and of connections is one over all of them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "work/quota_internal.h"

enum {
  STEPS = 16,              /* in which connections are told */
  ELSEWHERE_MAX = 1 << 16, /* clients of other servers that are known, about 5 MB */
  OPEN_MAX = 1 << 20,      /* of one client; what is told may be wrong */
  REPEAT_US = 2 * SECOND_US,
  FORGET_US = 6 * SECOND_US, /* after three that were lost */
};

/* What one other server has open of one client, which this holds. */
struct open_elsewhere {
  struct chain_link link; /* first, as chain.h wants it */
  uint64_t server;
  struct client *client;
  struct quota_open open;
  int64_t until_us;
};

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static struct quota_open open_of(const struct client *c) {
  const int step = c->quota->cfg.connections / STEPS > 1 ? c->quota->cfg.connections / STEPS : 1;
  return (struct quota_open){c->jobs, c->connections / step * step};
}

static void tell(struct client *c, const struct quota_open *now) {
  struct quota *q = c->quota;
  q->tell(q->tell_user, c->name, now);
  c->told = *now;
  c->told_at_us = clock_now_us();
  if (c->is_listed)
    return;
  c->is_listed = true;
  c->holds++;
  c->next_told = q->told;
  q->told = c;
}

void quota_tell_others(struct quota *q, quota_tell_fn tell_fn, void *user) {
  q->tell = tell_fn;
  q->tell_user = user;
}

void quota_tell_more(struct client *c) {
  const struct quota_open now = open_of(c);
  if (c->quota->tell && (now.jobs > c->told.jobs || now.connections > c->told.connections))
    tell(c, &now);
}

static bool has_changed(const struct client *c, const struct quota_open *now) {
  return now->jobs != c->told.jobs || now->connections != c->told.connections;
}

/* Tells what is not so any more, or is due again, and drops from the list those who have nothing open. */
static void tell_rest(struct quota *q, int64_t now_us) {
  for (struct client **at = &q->told; *at;) {
    struct client *c = *at;
    const struct quota_open now = open_of(c);
    if (has_changed(c, &now) || now_us - c->told_at_us >= REPEAT_US)
      tell(c, &now);
    if (now.jobs || now.connections) {
      at = &c->next_told;
      continue;
    }
    *at = c->next_told;
    c->is_listed = false;
    c->holds--;
    assert(c->holds >= 0);
  }
}

/* ---- hearing ----------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(uint64_t server, const char *address) {
  uint32_t h = (uint32_t)(server ^ server >> 32);
  for (const char *p = address; *p; p++)
    h = (h ^ (unsigned char)*p) * 16777619u;
  return h;
}

static struct open_elsewhere *find(struct quota *q, uint64_t server, const char *address) {
  for (struct chain_link *l = chain_first(&q->elsewhere, hash_of(server, address)); l; l = chain_next(l)) {
    struct open_elsewhere *e = (struct open_elsewhere *)l;
    if (e->server == server && !strcmp(e->client->name, address))
      return e;
  }
  return NULL;
}

/* The client, and the networks that it is in, have so much open there from now on. */
static void set(struct open_elsewhere *e, const struct quota_open *open) {
  for (struct client *o = e->client; o; o = o->outer) {
    o->elsewhere.jobs += open->jobs - e->open.jobs;
    o->elsewhere.connections += open->connections - e->open.connections;
    assert(o->elsewhere.jobs >= 0 && o->elsewhere.connections >= 0);
  }
  e->open = *open;
}

static void drop(struct quota *q, struct open_elsewhere *e) {
  set(e, &(struct quota_open){0});
  chain_remove(&q->elsewhere, &e->link);
  e->client->holds--;
  assert(e->client->holds >= 0);
  free(e);
}

/* A new record that holds the client; NULL: there is no room. */
static struct open_elsewhere *add(struct quota *q, uint64_t server, struct client *c) {
  struct open_elsewhere *e = q->elsewhere.n < ELSEWHERE_MAX ? calloc(1, sizeof *e) : NULL;
  if (!e)
    return NULL;
  e->server = server;
  e->client = c;
  c->holds++;
  chain_add(&q->elsewhere, &e->link, hash_of(server, c->name));
  return e;
}

static int within(int n) {
  return n < 0 ? 0 : n < OPEN_MAX ? n : OPEN_MAX;
}

void quota_open_elsewhere(struct quota *q, uint64_t server, const char *address, const struct quota_open *told) {
  const struct quota_open open = {within(told->jobs), within(told->connections)};
  const bool is_some = open.jobs || open.connections;
  if (strlen(address) >= QUOTA_NAME_SIZE || strchr(address, '/')) /* a network is known by its clients */
    return;
  struct client *c = is_some ? quota_client(q, address) : NULL;
  pthread_mutex_lock(&q->lock);
  struct open_elsewhere *e = find(q, server, address);
  if (!e && c && !strcmp(c->name, address))
    e = add(q, server, c);
  if (e && is_some) {
    set(e, &open);
    e->until_us = clock_now_us() + FORGET_US;
  } else if (e) {
    drop(q, e);
  }
  pthread_mutex_unlock(&q->lock);
  client_let_go(c);
}

static void forget(struct quota *q, int64_t since_us) {
  for (int i = 0; i < CHAINS && q->elsewhere.n; i++)
    for (struct chain_link *l = q->elsewhere.heads[i], *next; l; l = next) {
      struct open_elsewhere *e = (struct open_elsewhere *)l;
      next = l->next;
      if (e->until_us <= since_us)
        drop(q, e);
    }
}

void quota_tick(struct quota *q) {
  const int64_t now = clock_now_us();
  pthread_mutex_lock(&q->lock);
  tell_rest(q, now);
  forget(q, now);
  pthread_mutex_unlock(&q->lock);
}

void quota_forget_open(struct quota *q) {
  forget(q, INT64_MAX);
  for (struct client *c = q->told; c; c = c->next_told)
    c->holds--;
  q->told = NULL;
}
