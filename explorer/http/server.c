#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/metrics.h"
#include "base/clock.h"
#include "base/log.h"
#include "ce/ce.h"
#include "driver/job.h"
#include "http/guard.h"
#include "job/quota.h"
#include "job/results.h"
#include "pool/pool.h"

enum {
  FIRST_PASSED_FD = 3,
  QUIET = 20, /* looks without a request: one may just have arrived */
  THREADS = 2,
  BIND_TRIES = 50,
  BIND_WAIT_US = 10000,
  CONNECTION_MEMORY = 64 << 10, /* headers must fit in it (framing.h); also the size of a chunk of a streamed answer */
};

struct server {
  const struct app *app;
  struct MHD_Daemon *daemon;
  atomic_int n_requests;
};

/* ---- one request --------------------------------------------------------------------------------------------------
 */

static struct conn *conn_of(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

static int fd_of(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

static bool is_json_type(struct MHD_Connection *c) {
  const char *t = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
  static const char json[] = "application/json";
  size_t n = sizeof json - 1;
  return t && !strncasecmp(t, json, n) && (!t[n] || t[n] == ';' || t[n] == ' ');
}

static bool is_get(const char *method) {
  return !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
}

static enum MHD_Result (*handler_of(const struct route *route, const char *method))(struct request *) {
  if (is_get(method))
    return route->get;
  if (!strcmp(method, MHD_HTTP_METHOD_POST))
    return route->post;
  if (!strcmp(method, MHD_HTTP_METHOD_OPTIONS))
    return route->is_open ? ce_options : NULL;
  return !strcmp(method, MHD_HTTP_METHOD_DELETE) ? route->remove : NULL;
}

/* Sets rq->route and rq->rest.  Only the routes of Compiler Explorer's API are also found with slashes too many. */
static void find_route(struct request *rq) {
  const char *rest;
  rq->route = route_find(rq->path, &rq->rest);
  if (rq->route && (!rq->route->is_ce || rq->route->keeps_slashes))
    return;
  rq->plain_path = ce_plain_path(rq->path);
  if (!rq->plain_path)
    return;
  const struct route *route = route_find(rq->plain_path, &rest);
  if (route && route->is_ce && !route->keeps_slashes) {
    rq->route = route;
    rq->rest = rest;
  }
}

/* A proxy's connections are many clients', so what each has open is counted by the request.  False: too much. */
static bool count_proxied(struct request *rq) {
  char address[ADDRESS_TEXT_SIZE];
  if (!rq->is_proxied || !rq->app->cfg->quota.connections)
    return true;
  http_client_address(rq, address);
  struct client *c = quota_client(rq->app->quota, address);
  if (client_connect(c)) {
    client_let_go(c);
    return false;
  }
  rq->counted = c;
  return true;
}

/* The first call for a request: what its headers alone refuse.  An answer this early ends the connection, because the
 * library reads no body after it; so whatever is fine is answered in the last call. */
static enum MHD_Result on_headers(struct request *rq, const char *method) {
  http_find_client(rq);
  if (!count_proxied(rq))
    return http_problem(rq, PB_CROWDED, NULL, NULL);
  find_route(rq);
  if (is_get(method))
    return MHD_YES;
  if (!rq->route)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  if (!handler_of(rq->route, method))
    return http_not_allowed(rq, rq->route->allow);
  if (rq->route->is_change && !http_header(rq, "X-Nkx-Request"))
    return http_problem(rq, PB_FOREIGN, NULL, NULL);
  if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
    return MHD_YES;
  if (rq->route->is_ce || is_json_type(rq->connection)) /* those look at the type themselves */
    return MHD_YES;
  return http_problem(rq, PB_MEDIA_TYPE, NULL, NULL);
}

static enum MHD_Result on_body(struct request *rq, const char *data, size_t n) {
  rq->body_seen += n;             /* at most FRAMING_BODY_MAX */
  buf_append(&rq->body, data, n); /* past its ceiling it frees itself and stays failed */
  return MHD_YES;
}

/* True once for a request of a client that does not wait as it was told: without that, a flood of refusals would cost
 * others more than the compiles it does not get. */
static bool is_held_up(struct request *rq) {
  char address[ADDRESS_TEXT_SIZE];
  if (rq->hold.was_held)
    return false;
  http_client_address(rq, address);
  return quota_is_early(rq->app->quota, address) && holds_add(rq->app->holds, &rq->hold, rq->connection);
}

static enum MHD_Result on_end_of_body(struct request *rq, const char *method) {
  if (is_get(method)) {
    if (!rq->route)
      return static_get(rq);
    return rq->route->get ? rq->route->get(rq) : http_not_allowed(rq, rq->route->allow);
  }
  if (buf_status(&rq->body) == ST_LIMIT) {
    char text[96];
    snprintf(text, sizeof text, "The body has %zu bytes; the limit is %d.", rq->body_seen, JOB_JSON_MAX);
    return http_problem(rq, PB_TOO_LARGE, text, NULL);
  }
  if (buf_status(&rq->body))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  if (rq->route->is_job && is_held_up(rq))
    return MHD_YES; /* we are called again */
  return handler_of(rq->route, method)(rq);
}

static struct request *request_new(struct server *s, struct MHD_Connection *c) {
  struct request *rq = calloc(1, sizeof *rq);
  if (!rq)
    return NULL;
  rq->app = s->app;
  rq->connection = c;
  rq->conn = conn_of(c);
  rq->began_us = clock_now_us();
  buf_init(&rq->body, JOB_JSON_MAX);
  atomic_fetch_add(&s->n_requests, 1);
  return rq;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *n, void **state) {
  struct server *s = user;
  struct request *rq = *state;
  const struct config *cfg = s->app->cfg;
  (void)version;

  if (!rq) {
    rq = *state = request_new(s, c);
    if (!rq)
      return MHD_NO;
    guard_allow(rq->conn, cfg->body_timeout_ms);
    rq->path = path; /* the library passes the same strings each time */
    rq->method = method;
    return on_headers(rq, method);
  }
  if (*n) {
    size_t taken = *n;
    *n = 0;
    return on_body(rq, data, taken);
  }
  if (!rq->work && rq->call.state == CALL_NONE)
    guard_allow(rq->conn, cfg->job_timeout_ms + cfg->wait_timeout_ms + cfg->answer_timeout_ms);
  return on_end_of_body(rq, method);
}

/* The route, not the path: an unlisted snippet's id is nobody's business. */
static void log_request(const struct request *rq) {
  log_info("request", "method=%.16s route=%s status=%u ms=%lld", rq->method, rq->route ? rq->route->path : "file",
           rq->status, (long long)(clock_now_us() - rq->began_us) / 1000);
}

static void on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how) {
  struct server *s = user;
  struct request *rq = *state;
  (void)how;
  if (!rq)
    return;
  guard_completed(rq->conn);
  metrics_count(s->app->metrics, rq->route, rq->status, clock_now_us() - rq->began_us);
  if (s->app->cfg->log_requests)
    log_request(rq);
  if (rq->counted) {
    client_disconnect(rq->counted);
    client_let_go(rq->counted);
  }
  editors_leave(s->app->editors, &rq->editor); /* before the work goes that a newer one might call off */
  if (rq->work) {
    results_release(s->app->results, rq->work, &rq->waiter, fd_of(c));
    work_unref(rq->work);
  }
  if (rq->free_state)
    rq->free_state(rq->state);
  buf_clear(&rq->body);
  free(rq->plain_path);
  free(rq);
  *state = NULL;
  atomic_fetch_sub(&s->n_requests, 1);
}

static void on_connection(void *user, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what) {
  struct server *s = user;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *socket_context = guard_open(s->app->guard, fd_of(c), info ? info->client_addr : NULL);
  } else {
    guard_close(*socket_context);
    *socket_context = NULL;
  }
}

/* ---- start and stop -----------------------------------------------------------------------------------------------
 */

/* Called for the path and for each argument's value. A NUL would end the string early: "/index.html%00.js" must not
 * mean the page, so such a text becomes empty, which is no path at all. */
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

static int listen_on(const struct addrinfo *at) {
  int one = 1;
  int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
  if (fd < 0)
    return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN)) {
    int e = errno;
    close(fd);
    errno = e;
    return -1;
  }
  return fd;
}

/* A socket that whoever started us listens on already (systemd's protocol: LISTEN_FDS), or -1.  What connects while
 * nobody accepts waits in it, so a restart refuses nobody. */
static enum status take_listener(int *out, struct error *err) {
  const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
  int is_listening = 0;
  socklen_t len = sizeof is_listening;
  *out = -1;
  if (!pid || !n || atoi(pid) != getpid() || atoi(n) < 1)
    return ST_OK;
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  if (getsockopt(FIRST_PASSED_FD, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) || !is_listening)
    return fail(err, ST_INPUT, "LISTEN_FDS: descriptor %d is no listening socket", FIRST_PASSED_FD);
  /* not where children expect their own */
  *out = fcntl(FIRST_PASSED_FD, F_DUPFD_CLOEXEC, FIRST_PASSED_FD + 1);
  close(FIRST_PASSED_FD);
  if (*out < 0 || fcntl(*out, F_SETFL, O_NONBLOCK))
    return fail(err, ST_IO, "LISTEN_FDS: %m");
  return ST_OK;
}

static enum status bind_listener(const struct config *cfg, int *out, struct error *err) {
  struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *list;
  int e = getaddrinfo(cfg->host, cfg->port, &hints, &list);
  if (e)
    return fail(err, ST_INPUT, "--host: %.80s: %s", cfg->host, gai_strerror(e));
  int fd = -1;
  for (int i = 0; i < BIND_TRIES && fd < 0; i++) { /* a server that was killed is gone in a moment */
    for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next)
      fd = listen_on(at);
    if (fd < 0 && errno != EADDRINUSE)
      break;
    if (fd < 0)
      usleep(BIND_WAIT_US);
  }
  e = errno;
  freeaddrinfo(list);
  errno = e;
  if (fd < 0)
    return fail(err, ST_INPUT, "cannot listen on %.80s port %.8s: %m", cfg->host, cfg->port);
  *out = fd;
  return ST_OK;
}

enum status server_listen(const struct config *cfg, int *out, int *port, struct error *err) {
  struct sockaddr_storage bound;
  socklen_t len = sizeof bound;
  char service[12];
  enum status st = take_listener(out, err);
  if (!st && *out < 0)
    st = bind_listener(cfg, out, err);
  if (st)
    return st;
  if (getsockname(*out, (struct sockaddr *)&bound, &len) ||
      getnameinfo((struct sockaddr *)&bound, len, NULL, 0, service, sizeof service, NI_NUMERICSERV))
    service[0] = 0;
  *port = atoi(service);
  return ST_OK;
}

enum status server_start(const struct app *app, int listen_fd, struct server **out, struct error *err) {
  struct server *s = calloc(1, sizeof *s);
  if (!s)
    return fail(err, ST_NOMEM, "server");
  s->app = app;
  s->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
                               NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
                               listen_fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
                               (unsigned)app->cfg->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                               (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
                               on_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                               MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
  if (!s->daemon) {
    free(s);
    return fail(err, ST_IO, "the HTTP library did not start");
  }
  *out = s;
  return ST_OK;
}

void server_quiesce(struct server *s) {
  guard_drain(s->app->guard);
  int fd = MHD_quiesce_daemon(s->daemon);
  if (fd >= 0)
    close(fd);
}

void server_drain(struct server *s, int ms) {
  int64_t until = clock_now_ms() + ms;
  for (int quiet = 0; quiet < QUIET && clock_now_ms() < until; usleep(5000))
    quiet = atomic_load(&s->n_requests) > 0 ? 0 : quiet + 1;
}

void server_stop(struct server *s) {
  MHD_stop_daemon(s->daemon);
  free(s);
}
