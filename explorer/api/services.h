/* services: the parts of the running server that its handlers use. */
#ifndef API_SERVICES_H
#define API_SERVICES_H

#include <stdint.h>

#include "base/buf.h"
#include "http/http.h"
#include "http/server.h"

struct confinement;
struct editors;
struct hub;
struct identity_config;
struct kept;
struct lessons;
struct metrics;
struct misses;
struct peers;
struct pool;
struct quota;
struct ready;
struct remote;
struct results;
struct runs;
struct seal;
struct searches;
struct store;
struct versions;

/* Constant after start (app.c). */
struct services {
  const struct confinement *confinement; /* what the server gave up */
  struct pool *pool;
  struct server *server; /* the public one */
  struct store *store;
  const char *report_url; /* --report-url, or NULL */
  const struct identity_config *identity;
  const struct versions *versions; /* of the compiler */
  struct peers *peers;             /* the other servers on the store; NULL: there are none */
  uint64_t server_id;              /* by which they know this one: drawn at its start */
  struct remote *remote;           /* NULL: commands do not reach this server */
  struct results *results;
  struct quota *quota;
  struct editors *editors;
  struct misses *misses;
  struct metrics *metrics;
  struct ready *ready;
  struct runs *runs; /* on Neuron hosts */
  struct hub *sessions;
  struct seal *seal;
  struct searches *searches;
  struct lessons *lessons;
  struct kept *kept;                             /* answers about snippets */
  struct buf examples, pipeline, targets, rules; /* answers that never change (info.h) */
  int work_ms;                                   /* how long a work may take, from its request to its end */
};

static inline const struct services *services_of(const struct request *rq) {
  return rq->cfg->hooks.user;
}

#endif
