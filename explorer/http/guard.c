#include "http/guard.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/log.h"
#include "http/address.h"
#include "http/problem.h"
#include "http/server.h"

enum {
  LINGER_MS = 1000,      /* a refused client may still be sending; closing at once would destroy its answer */
  LINGER_MAX = 16 << 20, /* bytes that it may still send */
  ANSWER_MAX = 4096,
  SPARE_FDS = 512, /* descriptors for children and files */
  FDS_MAX = 1 << 20,
};

struct guard {
  const struct server_config *cfg;
  struct deadlines *deadlines;
  atomic_bool is_draining;
  atomic_llong connections, accepted, refused[FF_COUNT];
};

/* The open connections by their descriptors, because recv(2) gets nothing else.  An entry is written by the thread that
 * owns the connection. */
static struct {
  _Atomic(struct conn *) *at;
  int n;
  int users; /* guards, which are started and stopped by one thread */
} by_fd;

static void raise_fd_limit(int connections) {
  struct rlimit r;
  rlim_t want = (rlim_t)connections + SPARE_FDS;
  if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
    return;
  r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur < want)
    log_warn("limits", "descriptors=%llu wanted=%llu", (unsigned long long)r.rlim_cur, (unsigned long long)want);
}

static void make_table(int connections) {
  struct rlimit r = {.rlim_cur = 0};
  raise_fd_limit(connections);
  getrlimit(RLIMIT_NOFILE, &r); /* every descriptor is smaller than this */
  by_fd.n = (int)(r.rlim_cur < FDS_MAX ? r.rlim_cur : FDS_MAX);
  by_fd.at = calloc((size_t)by_fd.n, sizeof *by_fd.at);
}

enum status guard_start(const struct server_config *cfg, struct guard **out, struct error *err) {
  struct guard *g = calloc(1, sizeof *g);
  if (!g)
    return fail(err, ST_NOMEM, "guard");
  g->cfg = cfg;
  if (!by_fd.users++)
    make_table(cfg->http.connections_max);
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
  assert(atomic_load(&g->connections) == 0);
  deadlines_stop(g->deadlines);
  if (!--by_fd.users) {
    free(by_fd.at);
    by_fd.at = NULL;
    by_fd.n = 0;
  }
  free(g);
}

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

static enum problem problem_of(enum framing_fault f) {
  static const enum problem of[] = {
      [FF_NONE] = PB_BAD_REQUEST,       [FF_MALFORMED] = PB_BAD_REQUEST,    [FF_TARGET_TOO_LONG] = PB_TARGET,
      [FF_HEAD_TOO_LARGE] = PB_HEADERS, [FF_BODY_TOO_LARGE] = PB_TOO_LARGE, [FF_ENCODED] = PB_MEDIA_TYPE,
      [FF_EXPECT] = PB_EXPECT,          [FF_VERSION] = PB_VERSION,          [FF_CROWDED] = PB_CROWDED,
  };
  return of[f];
}

/* Answers with the refusal, once.  The socket buffer of a fresh connection takes a few hundred bytes at once; if it
 * does not, the client is not reading. */
static void tell(struct conn *c) {
  struct buf b;
  assert(c->framing.fault && !c->is_told);
  c->is_told = true;
  atomic_fetch_add(&c->guard->refused[c->framing.fault], 1);
  if (c->guard->cfg->http.log_requests)
    log_info("request_refused", "reason=\"%s\"", c->framing.reason ? c->framing.reason : "too many connections");
  if (!c->is_answered) {
    buf_init(&b, ANSWER_MAX);
    problem_put_answer(&b, problem_of(c->framing.fault), c->framing.reason);
    if (!buf_status(&b) && send(c->fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      log_debug("refusal", "the client is gone: %m");
    buf_clear(&b);
  }
  shutdown(c->fd, SHUT_WR);
  guard_allow(c, LINGER_MS);
}

/* ---- from start to end ------------------------------------------------------------------------------------------- */

/* False: the client at the other end has too many connections.  A proxy's connections are not counted; its clients'
 * requests are (server.c). */
static bool count_client(struct guard *g, struct conn *c, const struct sockaddr *peer) {
  const struct http_hooks *hooks = &g->cfg->hooks;
  struct address a;
  char name[ADDRESS_TEXT_SIZE];
  address_of_socket(peer, &a);
  if (!hooks->enter || address_is_in(&a, &g->cfg->http.trusted_proxies))
    return true;
  address_put(&a, name);
  return hooks->enter(hooks->user, name, &c->counted);
}

struct conn *guard_open(struct guard *g, int fd, const struct sockaddr *peer) {
  struct conn *c = fd >= 0 && fd < by_fd.n ? calloc(1, sizeof *c) : NULL;
  if (!c)
    return NULL;
  c->guard = g;
  c->fd = fd;
  framing_init(&c->framing);
  deadline_add(g->deadlines, &c->deadline, fd, g->cfg->http.header_timeout_ms);
  atomic_store(&by_fd.at[fd], c);
  atomic_fetch_add(&g->connections, 1);
  atomic_fetch_add(&g->accepted, 1);
  if (!count_client(g, c, peer)) {
    c->framing.fault = FF_CROWDED;
    c->framing.reason = NULL; /* the problem's own text is used */
    tell(c);
  }
  return c;
}

void guard_close(struct conn *c) {
  if (!c)
    return;
  assert(atomic_load(&by_fd.at[c->fd]) == c);
  atomic_store(&by_fd.at[c->fd], NULL);
  deadline_remove(c->guard->deadlines, &c->deadline);
  atomic_fetch_sub(&c->guard->connections, 1);
  if (c->counted)
    c->guard->cfg->hooks.leave(c->counted);
  free(c);
}

void guard_allow(struct conn *c, int ms) {
  if (c)
    deadline_set(c->guard->deadlines, &c->deadline, ms);
}

void guard_drain(struct guard *g) {
  atomic_store(&g->is_draining, true);
}

bool guard_is_draining(const struct conn *c) {
  return c && atomic_load(&c->guard->is_draining);
}

void guard_look(struct guard *g, struct guard_counts *out) {
  out->connections = atomic_load(&g->connections);
  out->accepted = atomic_load(&g->accepted);
  for (int i = 0; i < FF_COUNT; i++)
    out->refused[i] = atomic_load(&g->refused[i]);
}

/* ---- a refused connection ---------------------------------------------------------------------------------------- */

static ssize_t failed(int e) {
  errno = e;
  return -1;
}

/* Reads and drops what a refused client still sends, until it closes or its deadline cuts it off. */
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
  guard_allow(c, c->guard->cfg->http.idle_timeout_ms);
  if (c->framing.fault && !c->ahead && !c->is_told && !c->is_closing) { /* the fault came after good requests */
    tell(c);
    shutdown(c->fd, SHUT_RD); /* the library waits for bytes; this tells it that none will come */
  }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Checks the n bytes that were read; returns how many of them, from the start, belong to well-formed requests. */
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
        guard_allow(c, c->guard->cfg->http.header_timeout_ms);
    }
    enum framing_verdict v = framing_feed(&c->framing, p + at, n - at, &taken);
    if (v == FRAMING_REFUSED)
      break; /* the library gets nothing more of a malformed request */
    assert(taken <= n - at);
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
  return fine ? (ssize_t)fine : failed(EAGAIN); /* 0: all bytes came after the last request */
}
