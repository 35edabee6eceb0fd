/* The server's side of the launchers: who starts zygotes, and whether it answers.
 *
 * Only a launcher can start a process with privileges, and only a launcher can replace one.  So a second one stands by, a copy of the
 * first that was made while that was well.  Each is asked for a sign of life twice a second.  When the active one is silent, the other
 * takes over and is asked for a copy of itself.  The silent one is not killed: it is the parent of the zygotes that run, and the first
 * one is the service's own.  Once it answers it stands by.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/internal.h"

enum {
  PING_MS = 500,
  SILENT_MS = 1000,   /* without an answer; with PING_MS, less than 2 s until it is known */
  COPY_MS = 5000,     /* between two requests for a copy, which may fail */
  COPY_DELAY_MS = 500 /* after the start, when the first zygotes matter more */
};

static bool send_to(struct launcher_link *l, const struct ctl_msg *m, const int *fd) {
  struct error err;
  if (l->fd >= 0 && !wire_ctl_send(l->fd, m, fd, fd ? 1 : 0, &err))
    return true;
  log_error("launcher", "%s", l->fd < 0 ? "it is gone" : err.text);
  return false;
}

static bool tell(struct launcher_link *l, enum ctl_kind what, uint32_t id, int32_t value, const int *fd) {
  const struct ctl_msg m = {.kind = what, .id = id, .value = value};
  return send_to(l, &m, fd);
}

bool launcher_start(struct pool *p, struct zygote *z, int fd) {
  z->launcher = p->launcher;
  return tell(&p->launchers[p->launcher], CTL_START, z->launch_id, z->version, &fd);
}

bool launcher_kill(struct pool *p, const struct zygote *z) {
  return tell(&p->launchers[z->launcher], CTL_KILL, z->launch_id, 0, NULL);
}

bool launcher_is_silent(const struct pool *p, int which) {
  return p->launchers[which].fd < 0 || p->launchers[which].is_silent;
}

static bool watch(struct pool *p, int which, int fd) {
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_LAUNCHER, (uint32_t)which)};
  p->launchers[which] = (struct launcher_link){.fd = fd};
  return !fcntl(fd, F_SETFL, O_NONBLOCK) && !epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

bool launchers_init(struct pool *p) {
  for (int i = 0; i < LAUNCHERS_MAX; i++)
    p->launchers[i].fd = -1;
  p->copy_at_ms = clock_now_ms() + COPY_DELAY_MS;
  return watch(p, 0, p->cfg.launcher_fd);
}

void launchers_clear(struct pool *p) {
  for (int i = 0; i < LAUNCHERS_MAX; i++)
    if (p->launchers[i].fd >= 0)
      close(p->launchers[i].fd);
}

/* A launcher that is no more, or could not be watched; the first one's end is the service's. */
static void drop(struct pool *p, int which) {
  assert(which > 0);
  close(p->launchers[which].fd);
  p->launchers[which].fd = -1;
  for (int i = 0; i < ZYGOTES_MAX; i++) /* they end with their launcher, and nobody reports it */
    p->zygotes[i].is_gone |= p->zygotes[i].launcher == which;
}

/* Asks the active launcher for a copy of itself, unless another one stands by. */
static void ask_for_copy(struct pool *p, int64_t now) {
  int place = -1, pair[2];
  for (int i = 0; i < LAUNCHERS_MAX; i++) {
    if (i != p->launcher && !launcher_is_silent(p, i))
      return;
    if (p->launchers[i].fd < 0)
      place = i;
  }
  p->copy_at_ms = now + COPY_MS;
  if (place < 0 || launcher_is_silent(p, p->launcher) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  bool is_asked = tell(&p->launchers[p->launcher], CTL_COPY, ++p->last_launch_id, 0, &pair[1]);
  close(pair[1]);
  if (!is_asked) {
    close(pair[0]);
    return;
  }
  bool is_watched = watch(p, place, pair[0]);
  p->launchers[place].is_silent = true; /* until it has answered */
  if (!is_watched)
    drop(p, place);
}

static void take_over(struct pool *p) {
  for (int i = 0; i < LAUNCHERS_MAX; i++)
    if (!launcher_is_silent(p, i)) {
      log_warn("launcher_replaced", "another process starts the zygotes from now on");
      p->launcher = i;
      p->copy_at_ms = 0;
      return;
    }
}

static void set_silent(struct pool *p, bool is_silent) {
  pthread_mutex_lock(&p->lock);
  p->is_launcher_silent = is_silent;
  pthread_mutex_unlock(&p->lock);
}

static void look_after(struct pool *p, int which, int64_t now) {
  struct launcher_link *l = &p->launchers[which];
  if (l->fd < 0)
    return;
  if (l->asked_ms && !l->is_silent && now - l->asked_ms >= SILENT_MS) {
    l->is_silent = true;
    log_warn("launcher_silent", "is_active=%d silent_ms=%lld", which == p->launcher, (long long)(now - l->asked_ms));
  }
  if (!l->asked_ms && now >= l->ping_at_ms) {
    l->asked_ms = now;
    const struct ctl_msg m = {.kind = CTL_PING, .value = atomic_load(&p->is_serving)};
    if (!send_to(l, &m, NULL))
      l->is_silent = true;
  }
}

void launchers_tend(struct pool *p, int64_t now) {
  for (int i = 0; i < LAUNCHERS_MAX; i++)
    look_after(p, i, now);
  if (launcher_is_silent(p, p->launcher))
    take_over(p);
  set_silent(p, launcher_is_silent(p, p->launcher));
  /* the first zygote moves the launcher into a leaf of its control group, and a copy must be there, too */
  if (now >= p->copy_at_ms && !p->is_closing && zygote_active(p, VERSION_TODAY))
    ask_for_copy(p, now);
}

int64_t launchers_due(const struct pool *p) {
  int64_t at = INT64_MAX;
  for (int i = 0; i < LAUNCHERS_MAX; i++) {
    const struct launcher_link *l = &p->launchers[i];
    const int64_t own = !l->asked_ms ? l->ping_at_ms : l->asked_ms + SILENT_MS;
    if (l->fd >= 0 && !(l->asked_ms && l->is_silent) && own < at)
      at = own;
  }
  return at;
}

bool launcher_read(struct pool *p, int which, int64_t now) {
  struct launcher_link *l = &p->launchers[which];
  struct ctl_msg m;
  struct error err;
  int fds[2];
  enum status st = ST_BUSY;
  while (l->fd >= 0 && !(st = wire_ctl_recv(l->fd, &m, fds, &err))) {
    if (l->is_silent && which != p->launcher)
      log_info("launcher_stands_by", "place=%d", which);
    l->is_silent = false;
    if (m.kind == CTL_PING) {
      l->asked_ms = 0;
      l->ping_at_ms = now + PING_MS;
    } else if (m.kind == CTL_GONE) {
      zygote_gone(p, m.id, now);
    } else if (m.kind == CTL_ADOPT) {
      zygote_adopt(p, m.id, fds[0], now);
    }
  }
  if (st == ST_BUSY)
    return true;
  log_error("launcher", "%s", err.text);
  if (which == 0)
    return false;
  drop(p, which);
  return true;
}
