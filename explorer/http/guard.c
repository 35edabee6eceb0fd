#include "http/guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/log.h"
#include "http/address.h"
#include "http/http.h"
#include "job/quota.h"

enum {
  LINGER_MS = 1000,      /* a refused client may still be sending; closing at once would destroy its answer */
  LINGER_MAX = 16 << 20, /* and this much it may send */
  ANSWER_MAX = 4096,
};

struct guard {
  const struct config *cfg;
  struct deadlines *deadlines;
  atomic_bool is_draining;
  struct quota *quota;
  atomic_llong connections, accepted, refused[FF_COUNT];
};

/* recv(2) is only told a descriptor.  Written by the thread that owns the connection, while it is open. */
static struct {
  _Atomic(struct conn *) *at;
  int n;
} by_fd;

/* Each connection is a descriptor; children and files need some as well. */
static void raise_fd_limit(int connections) {
  struct rlimit r;
  rlim_t want = (rlim_t)connections + 512;
  if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
    return;
  r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur < want)
    log_warn("limits", "descriptors=%llu wanted=%llu", (unsigned long long)r.rlim_cur, (unsigned long long)want);
}

enum status guard_start(const struct config *cfg, struct quota *quota, struct guard **out, struct error *err) {
  struct rlimit r = {.rlim_cur = 0};
  struct guard *g = calloc(1, sizeof *g);
  if (!g)
    return fail(err, ST_NOMEM, "guard");
  g->cfg = cfg;
  g->quota = quota;
  raise_fd_limit(cfg->connections_max);
  getrlimit(RLIMIT_NOFILE, &r); /* no descriptor is larger */
  by_fd.n = (int)(r.rlim_cur < 1 << 20 ? r.rlim_cur : 1 << 20);
  by_fd.at = calloc((size_t)by_fd.n, sizeof *by_fd.at);
  enum status st = by_fd.at ? deadlines_start(&g->deadlines, err) : fail(err, ST_NOMEM, "guard");
  if (st)
    guard_stop(g);
  else
    *out = g;
  return st;
}

void guard_stop(struct guard *g) {
  if (!g)
    return;
  deadlines_stop(g->deadlines);
  free(by_fd.at);
  by_fd.at = NULL;
  by_fd.n = 0;
  free(g);
}

/* ---- refusing ------------------------------------------------------------------------------------------------------
 */

static enum problem problem_of(enum framing_fault f) {
  static const enum problem of[] = {
      [FF_NONE] = PB_BAD_REQUEST,       [FF_MALFORMED] = PB_BAD_REQUEST,    [FF_TARGET_TOO_LONG] = PB_TARGET,
      [FF_HEAD_TOO_LARGE] = PB_HEADERS, [FF_BODY_TOO_LARGE] = PB_TOO_LARGE, [FF_ENCODED] = PB_MEDIA_TYPE,
      [FF_EXPECT] = PB_EXPECT,          [FF_VERSION] = PB_VERSION,          [FF_CROWDED] = PB_CROWDED,
  };
  return of[f];
}

/* A fresh connection's socket buffer takes a few hundred bytes whole; if it does not, the client is not reading. */
static void tell(struct conn *c) {
  struct buf b;
  c->is_told = true;
  atomic_fetch_add(&c->guard->refused[c->framing.fault], 1);
  if (c->guard->cfg->log_requests)
    log_info("request_refused", "reason=\"%s\"", c->framing.reason ? c->framing.reason : "too many connections");
  if (!c->is_answered) {
    buf_init(&b, ANSWER_MAX);
    http_put_refusal(&b, problem_of(c->framing.fault), c->framing.reason);
    if (!buf_status(&b) && send(c->fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      log_debug("refusal", "the client is gone: %m");
    buf_clear(&b);
  }
  shutdown(c->fd, SHUT_WR);
  guard_allow(c, LINGER_MS);
}

/* ---- from start to end ---------------------------------------------------------------------------------------------
 */

/* False: the client at the other end has enough connections.  Those of a proxy are many clients': their requests are
 * counted instead (server.c). */
static bool count_client(struct guard *g, struct conn *c, const struct sockaddr *peer) {
  struct address a;
  char name[ADDRESS_TEXT_SIZE];
  if (!g->cfg->quota.connections)
    return true;
  address_of_socket(peer, &a);
  if (address_is_in(&a, &g->cfg->trusted_proxies))
    return true;
  address_put(&a, name);
  struct client *client = quota_client(g->quota, name);
  if (client_connect(client)) {
    client_let_go(client);
    return false;
  }
  c->client = client;
  return true;
}

struct conn *guard_open(struct guard *g, int fd, const struct sockaddr *peer) {
  struct conn *c = fd >= 0 && fd < by_fd.n ? calloc(1, sizeof *c) : NULL;
  if (!c)
    return NULL;
  c->guard = g;
  c->fd = fd;
  framing_init(&c->framing);
  deadline_add(g->deadlines, &c->deadline, fd, g->cfg->header_timeout_ms);
  atomic_store(&by_fd.at[fd], c);
  atomic_fetch_add(&g->connections, 1);
  atomic_fetch_add(&g->accepted, 1);
  if (!count_client(g, c, peer)) {
    c->framing.fault = FF_CROWDED;
    c->framing.reason = NULL; /* the problem's own text */
    tell(c);
  }
  return c;
}

void guard_close(struct conn *c) {
  if (!c)
    return;
  atomic_store(&by_fd.at[c->fd], NULL);
  deadline_remove(c->guard->deadlines, &c->deadline);
  atomic_fetch_sub(&c->guard->connections, 1);
  if (c->client) {
    client_disconnect(c->client);
    client_let_go(c->client);
  }
  free(c);
}

void guard_allow(struct conn *c, int ms) {
  if (c)
    deadline_set(c->guard->deadlines, &c->deadline, ms);
}

void guard_drain(struct guard *g) {
  atomic_store(&g->is_draining, true);
}

bool guard_is_draining(struct guard *g) {
  return atomic_load(&g->is_draining);
}

void guard_look(struct guard *g, struct guard_counts *out) {
  out->connections = atomic_load(&g->connections);
  out->accepted = atomic_load(&g->accepted);
  for (int i = 0; i < FF_COUNT; i++)
    out->refused[i] = atomic_load(&g->refused[i]);
}

/* ---- a refused connection ------------------------------------------------------------------------------------------
 */

static ssize_t failed(int e) {
  errno = e;
  return -1;
}

/* Reads what a refused client still sends, until it closes, or the deadline cuts it off. */
static ssize_t linger(struct conn *c, char *scratch, size_t n) {
  for (;;) {
    ssize_t got = recv(c->fd, scratch, n, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return failed(EAGAIN);
    if (got <= 0 || (c->lingers += got) > LINGER_MAX)
      return failed(ECONNRESET);
  }
}

void guard_answered(struct conn *c, int ms, bool closes) {
  if (!c)
    return;
  c->is_answered = true;
  c->is_closing |= closes;
  guard_allow(c, ms);
}

void guard_completed(struct conn *c) {
  if (!c)
    return;
  c->is_kept = true;
  c->is_answered = false;
  if (c->ahead > 0)
    c->ahead--;
  guard_allow(c, c->guard->cfg->idle_timeout_ms);
  if (c->framing.fault && !c->ahead && !c->is_told &&
      !c->is_closing) { /* what came behind the requests that were fine */
    tell(c);
    shutdown(c->fd, SHUT_RD); /* the library waits for bytes and shall hear that there are none */
  }
}

/* ---- reading -------------------------------------------------------------------------------------------------------
 */

/* Checks what was read; the number of bytes that are requests, whole or in part, and fine. */
static size_t check(struct conn *c, const char *p, size_t n) {
  size_t at = 0;
  while (at < n) {
    size_t taken;
    if (framing_is_between(&c->framing)) {
      if (c->framing.is_last) {
        c->has_more = true;
        break;
      }
      if (c->is_kept && !c->ahead)
        guard_allow(c, c->guard->cfg->header_timeout_ms);
    }
    enum framing_verdict v = framing_feed(&c->framing, p + at, n - at, &taken);
    if (v == FRAMING_REFUSED)
      break; /* what is malformed shows in its request; of that the library gets nothing more */
    at += taken;
    c->ahead += v == FRAMING_END;
  }
  return at;
}

ssize_t guard_recv(int fd, void *to, size_t n, int flags) {
  struct conn *c = fd >= 0 && fd < by_fd.n ? atomic_load(&by_fd.at[fd]) : NULL;
  if (!c)
    return failed(ECONNRESET);
  if (c->is_told)
    return linger(c, to, n);
  ssize_t got = recv(fd, to, n, flags);
  if (got <= 0)
    return got;
  size_t fine = check(c, to, (size_t)got);
  if (c->framing.fault && !c->ahead) {
    tell(c);
    return linger(c, to, n);
  }
  return fine ? (ssize_t)fine : failed(EAGAIN); /* nothing: bytes behind the last request */
}
