/* The server's side of the zygotes: start, messages, replacement.
 *
 * One zygote is active and makes the children.  Some time after it is ready a spare is started, which makes no
 * children.  When the active one dies, or does not answer, the spare replaces it at once.  All children of one zygote share its address
 * layout and hash seed, so a zygote is retired after some time: it makes no more children and ends with its last one.
 *
 * The launcher starts zygotes, by exec with nothing in the environment that kernels see, and nothing open but stdio and the
 * control socket, and reports when one has ended.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/internal.h"

enum {
  BACKOFF_FIRST_MS = 50,
  BACKOFF_MAX_MS = 5000,
  LASTING_RETRY_MS = 60000, /* a machine without a jail may get one, but hardly soon */
  START_MAX_MS = 60000,
  DOUBLINGS = 3, /* of it, after failures */
  END_WAIT_MS = 500,
  SILENCE_MS = 1000,     /* without an answer to a request for children; a child takes some 15 ms */
  SPARE_DELAY_MS = 1500, /* the spare waits until the service is up … */
  SPARE_BUSY_MS = 4000,  /* … and while jobs run, but not longer than this */
  SIGN_LAYER = 8,        /* weight of a failed step of a child's jail */
  SIGN_DIED = 1,         /* of a child that died before it was jailed, which may have other reasons */
  SIGNS_MANY = 32,       /* this much without a jailed child in between: there is no jail */
  TEND_TICK_MS = 10,
  KILL_AGAIN_MS = 100,
  OTHER_IDLE_MS = 300000, /* without a job, before the zygote of another version than today's ends */
  SILENT_MAX_MS = 10000,  /* then a zygote without jobs hangs; before, it may only be slow */
};

static uint32_t place_of(const struct pool *p, const struct zygote *z) {
  return (uint32_t)(z - p->zygotes);
}

static struct zygote *in_role(struct pool *p, enum zygote_role role) {
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (p->zygotes[i].role == role)
      return &p->zygotes[i];
  return NULL;
}

static struct zygote *of_version(struct pool *p, int version, enum zygote_role role) {
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (p->zygotes[i].role == role && p->zygotes[i].version == version)
      return &p->zygotes[i];
  return NULL;
}

struct zygote *zygote_active(struct pool *p, int version) {
  return of_version(p, version, ZYGOTE_ACTIVE);
}

/* A free place for a zygote of this version; NULL: there is none. */
static struct zygote *free_place(struct pool *p, int version) {
  int n = 0;
  for (int i = 0; i < ZYGOTES_MAX; i++)
    n += p->zygotes[i].role != ZYGOTE_NONE && p->zygotes[i].version == version;
  return n < (version == VERSION_TODAY ? TODAY_ZYGOTES_MAX : OTHER_ZYGOTES_MAX) ? in_role(p, ZYGOTE_NONE) : NULL;
}

static void set_health(struct pool *p, bool is_ready, const char *trouble) {
  pthread_mutex_lock(&p->lock);
  p->health.has_no_jail &= !is_ready;
  p->health.is_ready = is_ready;
  snprintf(p->health.trouble, sizeof p->health.trouble, "%s", trouble);
  pthread_mutex_unlock(&p->lock);
}

/* No zygote is left.  If the last one reported a trouble before it ended, that is a better reason than its end. */
static void set_unready(struct pool *p, const char *why) {
  pthread_mutex_lock(&p->lock);
  p->health.is_ready = false;
  if (!p->health.trouble[0])
    snprintf(p->health.trouble, sizeof p->health.trouble, "%s", why);
  pthread_mutex_unlock(&p->lock);
}

static void back_off(struct lineage *l, int64_t now) {
  int64_t wait = BACKOFF_FIRST_MS;
  for (int i = 0; i < l->failures && wait < BACKOFF_MAX_MS; i++)
    wait *= 2;
  l->failures++;
  wait = wait > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : wait;
  if (l->retry_at_ms < now + wait)
    l->retry_at_ms = now + wait;
}

/* Works of another version than today's are refused until its zygotes come up again. */
static void set_line(struct pool *p, int version, bool is_up, bool is_down) {
  assert(version != VERSION_TODAY);
  pthread_mutex_lock(&p->lock);
  p->lines[version].is_up = is_up;
  p->lines[version].is_down = is_down;
  pthread_mutex_unlock(&p->lock);
}

/* ---- from start to end ------------------------------------------------------------------------------------------- */

/* Closes the zygote's socket, which asks it to end its children and itself; it is killed if it does not. */
static void end(struct zygote *z, int64_t now) {
  if (z->fd >= 0)
    close(z->fd); /* leaves the epoll set with its last descriptor */
  z->fd = -1;
  z->is_up = false;
  z->role = ZYGOTE_ENDING;
  z->end_at_ms = now + END_WAIT_MS;
}

static const char *name_of(const struct pool *p, const struct zygote *z) {
  return p->cfg.versions->v[z->version].name;
}

/* After the loss of z: whether its version is still there, and when the next one is started. */
static void back_off_after(struct pool *p, const struct zygote *z, bool was_active, bool was_up, const char *why,
                           int64_t now) {
  const struct zygote *spare = of_version(p, z->version, ZYGOTE_SPARE);
  if (was_active && spare && spare->is_up)
    return;
  if (z->version != VERSION_TODAY && !was_up)
    set_line(p, z->version, false, true);
  else if (z->version != VERSION_TODAY)
    set_line(p, z->version, zygote_active(p, z->version), false);
  if (z->version == VERSION_TODAY && (was_active || !zygote_active(p, VERSION_TODAY)))
    set_unready(p, why);
  back_off(&p->lines[z->version], now);
}

/* The zygote died, or is of no use: its children end with it. */
static void lost(struct pool *p, struct zygote *z, const char *why, int64_t now) {
  bool was_active = z->role == ZYGOTE_ACTIVE, was_up = z->is_up;
  log_warn("zygote_lost", "pid=%d version=%s reason=\"%s\"", (int)z->pid, name_of(p, z), why);
  end(z, now);
  z->end_at_ms = now; /* there is nothing to wait for */
  for (int i = p->n_kids; i-- > 0;)
    if (p->kids[i].zygote == z)
      kid_drop(p, &p->kids[i]);
  if (z->is_gone)
    z->role = ZYGOTE_NONE;
  pthread_mutex_lock(&p->lock);
  p->health.restarts++;
  pthread_mutex_unlock(&p->lock);
  back_off_after(p, z, was_active, was_up, why, now);
}

static int jobs_of(const struct pool *p, const struct zygote *z) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++)
    n += p->kids[i].zygote == z && p->kids[i].state == KID_RUNNING;
  return n;
}

/* The active zygote hangs, or is slow: another one makes the children from now on.  Jobs of its children go on, so that a
 * zygote that is only slow costs nothing but its place; it retires once it answers.  If it has not for SILENT_MAX_MS, it is killed
 * when none of them is left. */
static void replace_silent(struct pool *p, struct zygote *z, int64_t now) {
  log_warn("zygote_silent", "pid=%d asked=%d silent_ms=%lld", (int)z->pid, z->asked, (long long)(now - z->spoken_ms));
  z->role = ZYGOTE_RETIRING;
  z->is_silent = true;
  pthread_mutex_lock(&p->lock);
  p->health.restarts++;
  pthread_mutex_unlock(&p->lock);
  if (z->version == VERSION_TODAY)
    set_health(p, false, "the process that makes the workers does not answer; another one takes over");
}

static void start(struct pool *p, struct zygote *z, int version, int64_t now) {
  int pair[2];

  *z = (struct zygote){.role = ZYGOTE_SPARE,
                       .version = version,
                       .fd = -1,
                       .started_ms = now,
                       .launch_id = ++p->last_launch_id,
                       .is_gone = true};
  p->lines[version].retry_at_ms = 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
    lost(p, z, "no socket pair", now);
    return;
  }
  z->is_gone = !launcher_start(p, z, pair[1]);
  close(pair[1]);
  z->fd = pair[0];
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_ZYGOTE, place_of(p, z))};
  if (z->is_gone || fcntl(pair[0], F_SETFL, O_NONBLOCK) || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, pair[0], &ev))
    lost(p, z, "it cannot be started", now);
}

void zygote_adopt(struct pool *p, uint32_t launch_id, int fd, int64_t now) {
  for (int i = 0; i < ZYGOTES_MAX && fd >= 0; i++) {
    struct zygote *z = &p->zygotes[i];
    if (z->role == ZYGOTE_NONE || z->launch_id != launch_id)
      continue;
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_ZYGOTE, place_of(p, z))};
    close(z->fd); /* which epoll then forgets; the other end was the launcher's */
    z->fd = fd;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
      lost(p, z, "it cannot be watched", now);
    return;
  }
  if (fd >= 0)
    close(fd);
}

void zygote_gone(struct pool *p, uint32_t launch_id, int64_t now) {
  for (int i = 0; i < ZYGOTES_MAX; i++) {
    struct zygote *z = &p->zygotes[i];
    if (z->role == ZYGOTE_NONE || z->launch_id != launch_id)
      continue;
    z->is_gone = true;
    if (z->role == ZYGOTE_ENDING)
      z->role = ZYGOTE_NONE;
    else
      lost(p, z, "it died", now);
  }
}

static void promote(struct pool *p, struct zygote *z) {
  assert(z->role == ZYGOTE_SPARE && z->is_up && !zygote_active(p, z->version));
  z->role = ZYGOTE_ACTIVE;
  z->active_ms = clock_now_ms();
  p->refill_at_ms = clock_now_ms();
  p->lines[z->version].used_ms = z->active_ms;
  log_info("zygote_active", "pid=%d version=%s", (int)z->pid, name_of(p, z));
}

static bool is_worn(const struct pool *p, const struct zygote *z, int64_t now) {
  return z->jobs >= p->cfg.zygote_jobs || now - z->active_ms >= (int64_t)p->cfg.zygote_minutes * 60000;
}

static bool is_spare_due(const struct pool *p, const struct zygote *active, int64_t now) {
  if (!active)
    return true;
  int64_t age = now - active->active_ms;
  return is_worn(p, active, now) || age >= SPARE_BUSY_MS || (age >= SPARE_DELAY_MS && kids_in(p, KID_RUNNING) == 0);
}

/* Has an ending zygote killed once its time is over; asks only once, however long it takes, but again if it could not be
 * asked.  Nobody reports the end of a zygote whose launcher is silent; it ends by itself, because its socket was closed. */
static void kill_overdue(struct pool *p, struct zygote *z, int64_t now) {
  const bool was_asked = z->end_at_ms == INT64_MAX;
  if (z->role != ZYGOTE_ENDING || (now < z->end_at_ms && !was_asked))
    return;
  const bool is_asked = was_asked || z->is_gone || launcher_kill(p, z);
  z->end_at_ms = is_asked ? INT64_MAX : now + KILL_AGAIN_MS;
  if (z->is_gone || launcher_is_silent(p, z->launcher))
    z->role = ZYGOTE_NONE;
}

/* Another zygote of this version is to make the children from now on, or none. */
static void retire(struct pool *p, struct zygote *z, int64_t now) {
  log_info("zygote_replaced", "pid=%d version=%s jobs=%d minutes=%lld", (int)z->pid, name_of(p, z), z->jobs,
           (long long)(now - z->active_ms) / 60000);
  z->role = ZYGOTE_RETIRING;
  pthread_mutex_lock(&p->lock);
  p->health.replaced++;
  pthread_mutex_unlock(&p->lock);
  for (int i = p->n_kids; z->version != VERSION_TODAY && i-- > 0;) /* those of today's serve until others come */
    if (p->kids[i].zygote == z && p->kids[i].state == KID_IDLE)
      kid_retire(&p->kids[i]);
}

/* Another version than today's has one zygote, while it is in use, and no spare. */
static void tend_other(struct pool *p, int version, int64_t now) {
  struct zygote *active = zygote_active(p, version), *next = of_version(p, version, ZYGOTE_SPARE);
  struct lineage *l = &p->lines[version];
  if (active && jobs_of(p, active))
    l->used_ms = now;
  if (active && (is_worn(p, active, now) || now - l->used_ms >= OTHER_IDLE_MS)) {
    retire(p, active, now);
    set_line(p, version, false, false);
    active = NULL;
  }
  if (!active && next && next->is_up) {
    set_line(p, version, true, false);
    promote(p, next);
    return;
  }
  struct zygote *place = active || next ? NULL : free_place(p, version);
  if (place && now >= l->retry_at_ms && !p->is_closing && queue_count(p, version)) {
    set_line(p, version, false, false);
    start(p, place, version, now);
  }
}

static void tend_today(struct pool *p, int64_t now) {
  struct zygote *active = zygote_active(p, VERSION_TODAY), *spare = of_version(p, VERSION_TODAY, ZYGOTE_SPARE);
  struct zygote *place = free_place(p, VERSION_TODAY);
  if (!spare && place && now >= p->lines[VERSION_TODAY].retry_at_ms && !p->is_closing && is_spare_due(p, active, now)) {
    start(p, place, VERSION_TODAY, now);
    return;
  }
  if (!spare || !spare->is_up)
    return;
  if (active && is_worn(p, active, now)) {
    retire(p, active, now);
    active = NULL;
  }
  if (!active)
    promote(p, spare);
}

static void tend_version(struct pool *p, int version, int64_t now) {
  if (version == VERSION_TODAY)
    tend_today(p, now);
  else
    tend_other(p, version, now);
}

/* How long a zygote may take to come up.  After a failure it gets twice the time: on a machine that is too slow or too busy for the first
 * limit none would ever come up otherwise. */
static int64_t start_max_ms(const struct pool *p, const struct zygote *z) {
  const int failures = p->lines[z->version].failures;
  return (int64_t)START_MAX_MS << (failures < DOUBLINGS ? failures : DOUBLINGS);
}

void zygotes_tend(struct pool *p, int64_t now) {
  for (int i = 0; i < ZYGOTES_MAX; i++) {
    struct zygote *z = &p->zygotes[i];
    kill_overdue(p, z, now);
    if (z->role == ZYGOTE_ACTIVE && z->asked && now - z->spoken_ms >= SILENCE_MS)
      replace_silent(p, z, now);
    if (z->role == ZYGOTE_RETIRING && z->is_silent && now - z->spoken_ms >= SILENT_MAX_MS && !jobs_of(p, z))
      lost(p, z, "it does not answer", now);
    else if (z->role == ZYGOTE_RETIRING && !z->is_silent && kids_of(p, z) == 0)
      end(z, now);
    if (z->role == ZYGOTE_SPARE && !z->is_up && now - z->started_ms > start_max_ms(p, z))
      lost(p, z, "it did not come up in time", now);
  }
  for (int v = 0; v < p->cfg.versions->n; v++)
    tend_version(p, v, now);
}

int64_t zygotes_due(const struct pool *p, int64_t now) {
  int64_t at = now + 1000;
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (p->zygotes[i].role == ZYGOTE_ENDING && p->zygotes[i].end_at_ms < at)
      at = p->zygotes[i].end_at_ms;
    else if (p->zygotes[i].role == ZYGOTE_ACTIVE && p->zygotes[i].asked && p->zygotes[i].spoken_ms + SILENCE_MS < at)
      at = p->zygotes[i].spoken_ms + SILENCE_MS;
  for (int v = 0; v < p->cfg.versions->n; v++)
    if (p->lines[v].retry_at_ms > now && p->lines[v].retry_at_ms < at)
      at = p->lines[v].retry_at_ms;
  return at;
}

void zygotes_end(struct pool *p) {
  int64_t began = clock_now_ms();
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (p->zygotes[i].role != ZYGOTE_NONE)
      end(&p->zygotes[i], began);
  while (in_role(p, ZYGOTE_ENDING)) {
    struct pollfd f[LAUNCHERS_MAX];
    for (int i = 0; i < LAUNCHERS_MAX; i++)
      f[i] = (struct pollfd){.fd = p->launchers[i].fd, .events = POLLIN};
    int n = poll(f, LAUNCHERS_MAX, TEND_TICK_MS);
    launchers_tend(p, clock_now_ms());
    for (int i = 0; n > 0 && i < LAUNCHERS_MAX; i++)
      if (f[i].revents && !launcher_read(p, i, clock_now_ms()))
        return; /* the zygotes end with their launcher */
    for (int i = 0; i < ZYGOTES_MAX; i++)
      kill_overdue(p, &p->zygotes[i], clock_now_ms());
  }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

void zygote_ask(struct pool *p, struct zygote *z, int n) {
  struct ctl_msg m = {.kind = CTL_SPAWN, .value = n};
  struct error err;
  z->asked = n;
  z->spoken_ms = clock_now_ms();
  if (wire_ctl_send(z->fd, &m, NULL, 0, &err))
    lost(p, z, err.text, clock_now_ms());
}

static void on_hello(struct pool *p, struct zygote *z, const struct ctl_msg *m) {
  z->is_up = true;
  z->pid = (pid_t)m->id;
  log_info("zygote_up", "pid=%d version=%s warm_up_ms=%d", (int)z->pid, name_of(p, z), m->value);
  if (z->version != VERSION_TODAY)
    return;
  p->has_cgroup = m->has_cgroup;
  pthread_mutex_lock(&p->lock);
  bool is_news = p->health.restarts + p->health.replaced == 0 && !zygote_active(p, VERSION_TODAY);
  is_news |= p->health.level != (enum jail_level)m->level;
  p->health.level = (enum jail_level)m->level;
  memcpy(p->health.level_why, m->text, sizeof p->health.level_why);
  p->health.level_why[sizeof p->health.level_why - 1] = 0;
  pthread_mutex_unlock(&p->lock);
  if (is_news && m->level == JAIL_NONE)
    log_warn("jail_level", "level=none reason=\"%s\"", m->text);
  else if (is_news)
    log_info("jail_level", "level=%s%s%s%s", jail_level_name((enum jail_level)m->level),
             m->text[0] ? " next_needs=\"" : "", m->text, m->text[0] ? "\"" : "");
}

static void on_child(struct pool *p, struct zygote *z, const struct ctl_msg *m, int fds[2]) {
  if (z->asked > 0)
    z->asked--;
  if (fds[0] < 0 || fds[1] < 0) {
    log_error("pool", "a child came without its descriptors");
    return;
  }
  if (z->role == ZYGOTE_RETIRING &&
      (z->version != VERSION_TODAY ||
       zygote_active(p, VERSION_TODAY))) { /* it came late, from a zygote that was silent */
    zygote_signal(z, m->id, SIGKILL);
    return;
  }
  p->lines[z->version].failures = p->lines[z->version].no_jail_signs = 0;
  for (int i = p->n_kids; i-- > 0;) /* idle ones of a retired zygote were kept only until there are others */
    if (p->kids[i].state == KID_IDLE && p->kids[i].zygote->role == ZYGOTE_RETIRING &&
        p->kids[i].zygote->version == z->version)
      kid_retire(&p->kids[i]);
  kid_add(p, z, m, fds[0], fds[1]);
  fds[0] = fds[1] = -1; /* the kid's now */
  pthread_mutex_lock(&p->lock);
  bool is_news = p->health.layers != m->layers || !p->health.is_ready;
  p->health.layers = m->layers;
  p->health.landlock_abi = m->landlock_abi;
  pthread_mutex_unlock(&p->lock);
  if (is_news)
    log_info("jail", "layers=0x%x landlock_abi=%d", m->layers, m->landlock_abi);
  if (z->role == ZYGOTE_ACTIVE && z->version == VERSION_TODAY)
    set_health(p, true, "");
}

/* A child could not be made, or not jailed. */
static void on_fail(struct pool *p, struct zygote *z, const struct ctl_msg *m, int64_t now) {
  struct lineage *l = &p->lines[z->version];
  z->asked = 0;
  back_off(l, now);
  l->no_jail_signs += m->value == FAULT_DIED ? SIGN_DIED : SIGN_LAYER;
  if (m->value != FAULT_LASTING && l->no_jail_signs < SIGNS_MANY)
    return;
  if (z->version == VERSION_TODAY) {
    set_health(p, false, m->text);
    pthread_mutex_lock(&p->lock);
    p->health.has_no_jail = true;
    pthread_mutex_unlock(&p->lock);
  } else {
    set_line(p, z->version, false, true);
  }
  if (m->value == FAULT_LASTING)
    l->retry_at_ms = now + LASTING_RETRY_MS;
}

static void on_message(struct pool *p, struct zygote *z, const struct ctl_msg *m, int fds[2], int64_t now) {
  struct kid *k;
  z->spoken_ms = now;
  z->is_silent = false; /* it was only slow; it retires all the same */
  switch (m->kind) {
  case CTL_HELLO:
    on_hello(p, z, m);
    break;
  case CTL_CHILD:
    on_child(p, z, m, fds);
    break;
  case CTL_EXIT:
    k = kid_find_of(p, z, m->id);
    if (k)
      kid_exited(p, k, m);
    break;
  case CTL_FAIL:
    log_error("jail", "%s", m->text);
    on_fail(p, z, m, now);
    break;
  default:
    log_error("pool", "control message of kind %u", m->kind);
  }
}

void zygote_read(struct pool *p, struct zygote *z, int64_t now) {
  struct ctl_msg m;
  struct error err;
  int fds[2];

  while (z->fd >= 0) {
    enum status st = wire_ctl_recv(z->fd, &m, fds, &err);
    if (st == ST_BUSY)
      return;
    if (st) {
      lost(p, z, err.text, now);
      return;
    }
    on_message(p, z, &m, fds, now);
    for (int i = 0; i < 2; i++)
      if (fds[i] >= 0)
        close(fds[i]);
  }
}
