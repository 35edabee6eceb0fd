/* The calls that the library makes for a connection and for a request, from the headers to the end of the answer. */
#include "http/server.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/index.h"
#include "base/log.h"
#include "http/guard.h"
#include "http/http.h"
#include "http/route.h"

enum {
  QUIET = 20, /* checks without a request before the server counts as drained: one may just have arrived */
  DRAIN_TICK_US = 5000,
  THREADS = 2,
  LARGE_MAX = 8, /* requests at once of routes with a body_max of their own, which bounds the memory that they take */
  CONNECTION_MEMORY = 64 << 10, /* headers must fit in it (framing.h); also the size of a chunk of a streamed answer */
};

struct server {
  struct server_config cfg;
  struct guard *guard;
  struct holds *holds;
  struct unsent *unsent;
  struct MHD_Daemon *daemon;
  atomic_int n_requests, n_large;
  uint64_t id_seed; /* of this start, so that ids of two starts differ */
  atomic_uint_least64_t n_ids;
};

/* ---- the first call: headers ------------------------------------------------------------------------------------- */

static struct conn *conn_of(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

static bool has_json_type(const struct request *rq) {
  const char *t = http_header(rq, MHD_HTTP_HEADER_CONTENT_TYPE);
  static const char json[] = "application/json";
  size_t n = sizeof json - 1;
  return t && !strncasecmp(t, json, n) && (!t[n] || t[n] == ';' || t[n] == ' ');
}

/* The connections of a proxy belong to many clients, so its clients' requests are counted instead.  False: this client
 * has too many open. */
static bool count_proxied(struct request *rq) {
  const struct http_hooks *hooks = &rq->cfg->hooks;
  char address[ADDRESS_TEXT_SIZE];
  if (!rq->is_proxied || !hooks->enter)
    return true;
  http_client_key(rq, address);
  return hooks->enter(hooks->user, address, &rq->counted);
}

/* Gives a request the room that its route's bodies may take; false if too many have such room. */
static bool make_room(struct request *rq) {
  if (!rq->route->body_max)
    return true;
  if (atomic_fetch_add(&rq->server->n_large, 1) >= LARGE_MAX) {
    atomic_fetch_sub(&rq->server->n_large, 1);
    return false;
  }
  rq->is_large = true;
  buf_init(&rq->body, rq->route->body_max);
  return true;
}

static bool is_id(const char *s) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const size_t n = s ? strspn(s, letters) : 0;
  return n >= 8 && n < REQUEST_ID_SIZE && !s[n];
}

static void set_id(struct request *rq) {
  const char *said = rq->is_proxied ? http_header(rq, "X-Request-Id") : NULL;
  if (is_id(said))
    snprintf(rq->id, sizeof rq->id, "%s", said);
  else
    snprintf(rq->id, sizeof rq->id, "%016llx",
             (unsigned long long)hash_mix(rq->server->id_seed, atomic_fetch_add(&rq->server->n_ids, 1)));
}

/* Refuses what the headers alone rule out.  An answer at this point ends the connection, because the library then does
 * not read the body; all other requests are answered in the last call. */
static enum MHD_Result on_headers(struct request *rq) {
  http_find_client(rq);
  set_id(rq);
  if (!count_proxied(rq))
    return http_problem(rq, PB_CROWDED, NULL, NULL);
  route_find(rq);
  if (route_is_get(rq->method))
    return MHD_YES;
  if (!rq->route)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (!route_handler_of(rq->route, rq->method))
    return http_not_allowed(rq, rq->route->allow);
  if (rq->route->is_change && !http_header(rq, "X-Nkx-Request"))
    return http_problem(rq, PB_FOREIGN, NULL, NULL);
  if (!make_room(rq))
    return http_problem(rq, PB_BUSY, "Too many large files are being read. Try again in a moment.", NULL);
  if (strcmp(rq->method, MHD_HTTP_METHOD_POST) != 0 || rq->route->takes_any_type || has_json_type(rq))
    return MHD_YES;
  return http_problem(rq, PB_MEDIA_TYPE, NULL, NULL);
}

static struct request *request_new(struct server *s, struct MHD_Connection *c, const char *path, const char *method) {
  struct request *rq = calloc(1, sizeof *rq + s->cfg.part_size);
  if (!rq)
    return NULL;
  rq->server = s;
  rq->unsent = s->unsent;
  rq->cfg = &s->cfg;
  rq->connection = c;
  rq->conn = conn_of(c);
  rq->path = path; /* the library passes the same strings in each call */
  rq->method = method;
  rq->began_us = clock_now_us();
  rq->part = rq + 1;
  buf_init(&rq->body, s->cfg.body_max);
  atomic_fetch_add(&s->n_requests, 1);
  return rq;
}

/* ---- the last call: the handler ---------------------------------------------------------------------------------- */

/* True once for a request of a client that does not wait as it was told to; the handler is called again later.  Without
 * this, a flood of refused requests would cost other clients more than the refused compiles would. */
static bool is_held(struct request *rq) {
  const struct http_hooks *hooks = &rq->cfg->hooks;
  char address[ADDRESS_TEXT_SIZE];
  if (!(rq->route->is_job || rq->route->is_link) || rq->hold.was_held || !hooks->is_early)
    return false;
  http_client_key(rq, address);
  return hooks->is_early(hooks->user, address, rq->route->is_link) &&
         holds_add(rq->server->holds, &rq->hold, rq->connection);
}

/* What is going to be refused is not made first: that may mean a compile, or to unpack a result. */
static bool admit(struct request *rq) {
  char client[ADDRESS_TEXT_SIZE];
  if (rq->is_admitted || !rq->route || !rq->route->is_bulky)
    return true;
  http_client_key(rq, client);
  rq->is_admitted = unsent_has_room(rq->unsent, client, UNSENT_COUNTED);
  return rq->is_admitted;
}

static enum MHD_Result handle(struct request *rq) {
  enum MHD_Result answer;
  if (rq->is_abandoned)
    return MHD_NO;
  if (rq->route && rq->cfg->hooks.admit && !rq->cfg->hooks.admit(rq, &answer))
    return answer;
  if (!admit(rq))
    return http_problem(rq, PB_UNSENT, NULL, NULL);
  if (route_is_get(rq->method)) {
    if (!rq->route)
      return rq->cfg->kind == SERVER_OPS ? http_problem(rq, PB_NOT_FOUND, NULL, NULL) : static_get(rq);
    return rq->route->get ? rq->route->get(rq) : http_not_allowed(rq, rq->route->allow);
  }
  assert(rq->route); /* otherwise on_headers has answered */
  if (buf_status(&rq->body) == ST_LIMIT) {
    char text[96];
    snprintf(text, sizeof text, "The body has %zu bytes; the limit is %zu.", rq->body_seen, rq->body.max);
    return http_problem(rq, PB_TOO_LARGE, text, NULL);
  }
  if (buf_status(&rq->body))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  return is_held(rq) ? MHD_YES : route_handler_of(rq->route, rq->method)(rq);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *n, void **state) {
  struct server *s = user;
  struct request *rq = *state;
  const struct http_config *cfg = &s->cfg.http;
  (void)version;

  if (!rq) {
    rq = *state = request_new(s, c, path, method);
    if (!rq)
      return MHD_NO;
    guard_allow(rq->conn, cfg->body_timeout_ms);
    return on_headers(rq);
  }
  if (*n) {
    rq->body_seen += *n;             /* at most FRAMING_BODY_MAX */
    buf_append(&rq->body, data, *n); /* past its ceiling it frees itself and stays failed */
    *n = 0;
    return MHD_YES;
  }
  if (!rq->is_read)
    guard_allow(rq->conn, s->cfg.handler_ms + cfg->answer_timeout_ms);
  rq->is_read = true;
  return handle(rq);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Names the route, not the path: the id of an unlisted snippet is a secret. */
static void log_request(const struct request *rq) {
  char client[CLIENT_NAME_SIZE];
  http_client_name(rq, client);
  log_info("request", "method=%.16s route=%s status=%u ms=%lld id=%s client=%s", rq->method,
           rq->route ? rq->route->path : "file", rq->status, (long long)(clock_now_us() - rq->began_us) / 1000, rq->id,
           client);
}

static void on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how) {
  struct server *s = user;
  struct request *rq = *state;
  (void)c;
  (void)how;
  if (!rq)
    return;
  guard_completed(rq->conn);
  if (s->cfg.hooks.end)
    s->cfg.hooks.end(rq);
  if (s->cfg.http.log_requests)
    log_request(rq);
  if (rq->counted)
    s->cfg.hooks.leave(rq->counted);
  if (rq->free_state)
    rq->free_state(rq->state);
  buf_clear(&rq->body);
  if (rq->is_large)
    atomic_fetch_sub(&s->n_large, 1);
  free(rq->plain_path);
  free(rq);
  *state = NULL;
  int before = atomic_fetch_sub(&s->n_requests, 1);
  assert(before > 0);
  (void)before;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void on_connection(void *user, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what) {
  struct server *s = user;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *peer = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *socket_context = guard_open(s->guard, fd ? fd->connect_fd : -1, peer ? peer->client_addr : NULL);
  } else {
    guard_close(*socket_context);
    *socket_context = NULL;
  }
}

/* Called for the path and for the value of each argument.  A NUL would end the string early, and "/index.html%00.js"
 * must not mean the page; so a text with a NUL becomes empty, which is no path at all. */
static size_t on_unescape(void *user, struct MHD_Connection *c, char *text) {
  (void)user;
  (void)c;
  size_t n = MHD_http_unescape(text);
  if (memchr(text, 0, n))
    text[n = 0] = 0;
  return n;
}

PRINTF(2, 0) static void on_log(void *user, const char *fmt, va_list ap) {
  char text[200];
  (void)user;
  vsnprintf(text, sizeof text, fmt, ap);
  text[strcspn(text, "\r\n")] = 0;
  log_debug("http", "%s", text);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct server *s, int listen_fd) {
  return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                          on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
                          MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
                          (unsigned)s->cfg.http.connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
                          on_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
                          on_connection, s, MHD_OPTION_END);
}

enum status server_start(const struct server_config *cfg, int listen_fd, struct server **out, struct error *err) {
  struct server *s = calloc(1, sizeof *s);
  if (!s)
    return fail(err, ST_NOMEM, "server");
  assert(!cfg->hooks.enter == !cfg->hooks.leave);
  s->cfg = *cfg;
  if (getrandom(&s->id_seed, sizeof s->id_seed, 0) != (ssize_t)sizeof s->id_seed)
    s->id_seed = (uint64_t)clock_now_ns();
  enum status st = unsent_start((size_t)s->cfg.http.answers_mib << 20, &s->unsent, err);
  if (!st)
    st = holds_start(HOLD_MS, &s->holds, err);
  if (!st)
    st = guard_start(&s->cfg, &s->guard, err);
  if (!st) {
    s->daemon = start_daemon(s, listen_fd);
    if (!s->daemon)
      st = fail(err, ST_IO,
                "the HTTP library did not start (%m); is the limit of open descriptors (ulimit -n) too small?");
  }
  if (st)
    server_stop(s);
  else
    *out = s;
  return st;
}

void server_quiesce(struct server *s) {
  guard_drain(s->guard);
  int fd = MHD_quiesce_daemon(s->daemon);
  if (fd >= 0)
    close(fd);
}

void server_drain(struct server *s, int ms) {
  int64_t until = clock_now_ms() + ms;
  for (int quiet = 0; quiet < QUIET && clock_now_ms() < until; usleep(DRAIN_TICK_US))
    quiet = atomic_load(&s->n_requests) > 0 ? 0 : quiet + 1;
}

void server_stop(struct server *s) {
  if (!s)
    return;
  holds_stop(s->holds); /* the library must not be stopped while a connection is suspended */
  if (s->daemon)
    MHD_stop_daemon(s->daemon);
  assert(atomic_load(&s->n_requests) == 0);
  guard_stop(s->guard);
  holds_free(s->holds);
  unsent_stop(s->unsent);
  free(s);
}

void server_look(struct server *s, struct guard_counts *out) {
  guard_look(s->guard, out);
}

void server_look_unsent(struct server *s, struct unsent_counts *out) {
  unsent_look(s->unsent, out);
}
