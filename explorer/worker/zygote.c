/* The zygote's loop: makes children when the server asks, passes their descriptors to the server once they are jailed,
 * and reaps them.
 *
 * One thread, one poll.  When the server is gone the loop ends and so does every child: each asked the kernel to kill it
 * when its parent ends.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/wire.h"
#include "worker/worker.h"

enum { CHILDREN_MAX = 256, SPAWN_BURST_MAX = 64 };

struct kid {
  pid_t pid;
  uint32_t id;
  int gate, pidfd; /* its socket and pidfd while it enters its jail; then -1: the server has them */
};

struct zygote {
  struct jail jail;
  struct ir ir;
  const struct memory_pages *pages;
  struct kid kids[CHILDREN_MAX];
  int n_kids, to_spawn;
  uint32_t next_id;
  int signals;
};

static enum status report_failure(const char *text, enum ctl_fault fault) {
  struct ctl_msg m = {.kind = CTL_FAIL, .value = (int32_t)fault};
  snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, text);
  return wire_ctl_send(WIRE_CTL_FD, &m, NULL, 0, NULL);
}

/* ---- making a child -----------------------------------------------------------------------------------------------
 */

static enum status spawn(struct zygote *z, struct error *err) {
  struct jail_child c;

  assert(z->n_kids < CHILDREN_MAX && worker_has_one_thread());
  PyOS_BeforeFork();
  uint32_t id = ++z->next_id;
  int64_t began_us = clock_now_us();
  enum status st = jail_spawn(&z->jail, id, &c, err);
  if (!st && c.pid == 0)
    child_main(&z->jail, began_us, z->pages, &z->ir, c.fd);
  PyOS_AfterFork_Parent();
  if (st)
    return st;
  st = jail_settle(&z->jail, &c, err);
  if (st) {
    jail_end(&z->jail, id, &c);
    return st;
  }
  z->kids[z->n_kids++] = (struct kid){.pid = c.pid, .id = id, .gate = c.fd, .pidfd = c.pidfd};
  return ST_OK;
}

/* One child per iteration of the loop, so that many requested children do not delay exits and hand-overs. */
static enum status spawn_one(struct zygote *z) {
  struct error err;
  if (z->n_kids == CHILDREN_MAX) {
    z->to_spawn = 0;
    return report_failure("too many children", FAULT_LAYER);
  }
  if (!spawn(z, &err)) {
    z->to_spawn--;
    return ST_OK;
  }
  z->to_spawn = 0; /* the server decides when to try again */
  return report_failure(err.text, FAULT_LAYER);
}

/* The child has reported on its jail: gives it to the server, or tells the server what failed. */
static enum status hand_over(struct kid *k) {
  struct jail_report r;
  struct ctl_msg m = {.kind = CTL_CHILD, .id = k->id, .value = (int32_t)k->pid};
  enum status st;

  assert(k->gate >= 0 && k->pidfd >= 0);
  ssize_t n = recv(k->gate, &r, sizeof r, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return ST_OK;
  if (n == (ssize_t)sizeof r && r.failed < 0) {
    m.layers = r.layers;
    m.landlock_abi = r.landlock_abi;
    m.jail_us = r.took_us;
    st = wire_ctl_send(WIRE_CTL_FD, &m, (int[]){k->gate, k->pidfd}, 2, NULL);
  } else {
    char text[160];
    if (n == (ssize_t)sizeof r)
      snprintf(text, sizeof text, "jail layer %s: %s", jail_layer_name((enum jail_layer)r.failed), strerror(r.error));
    else
      snprintf(text, sizeof text, "a child died while its jail was built");
    kill(k->pid, SIGKILL);
    st = report_failure(text, n == (ssize_t)sizeof r ? FAULT_LAYER : FAULT_DIED);
  }
  close(k->gate);
  close(k->pidfd);
  k->gate = k->pidfd = -1;
  return st;
}

/* ---- the loop -----------------------------------------------------------------------------------------------------
 */

static void forget(struct zygote *z, int i) {
  assert(i >= 0 && i < z->n_kids);
  if (z->kids[i].gate >= 0) {
    close(z->kids[i].gate);
    close(z->kids[i].pidfd);
  }
  z->kids[i] = z->kids[--z->n_kids];
}

static enum status reap(struct zygote *z) {
  struct signalfd_siginfo info;
  struct rusage used;
  int status;
  pid_t pid;

  while (read(z->signals, &info, sizeof info) > 0)
    ;
  while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
    for (int i = 0; i < z->n_kids; i++) {
      if (z->kids[i].pid != pid)
        continue;
      struct ctl_msg m = {.kind = CTL_EXIT, .id = z->kids[i].id, .value = status};
      m.cpu_ms = (int32_t)((used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
                           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
      m.rss_kb = (int32_t)used.ru_maxrss;
      m.was_oom = jail_bury(&z->jail, z->kids[i].id);
      bool was_ours = z->kids[i].gate >= 0;
      forget(z, i);
      if (was_ours ? report_failure("a child died while its jail was built", FAULT_DIED)
                   : wire_ctl_send(WIRE_CTL_FD, &m, NULL, 0, NULL))
        return ST_IO;
      break;
    }
  }
  return ST_OK;
}

static void signal_kid(const struct zygote *z, uint32_t id, int sig) {
  for (int i = 0; i < z->n_kids; i++)
    if (z->kids[i].id == id && (sig == SIGKILL || sig == SIGPROF))
      kill(z->kids[i].pid, sig); /* not reaped yet, so no other process has this pid */
}

/* Nothing depends on it, so a failure is only logged. */
static void slow_kid(const struct zygote *z, uint32_t id, int nice) {
  for (int i = 0; i < z->n_kids; i++)
    if (z->kids[i].id == id && setpriority(PRIO_PROCESS, (id_t)z->kids[i].pid, nice))
      log_debug("nice", "%m");
}

static enum status read_command(struct zygote *z) {
  struct ctl_msg m;
  int fds[2];
  enum status st = wire_ctl_recv(WIRE_CTL_FD, &m, fds, NULL);
  if (!st && m.kind == CTL_SPAWN && m.value > 0)
    z->to_spawn = m.value > SPAWN_BURST_MAX ? SPAWN_BURST_MAX : m.value;
  if (!st && m.kind == CTL_SIGNAL)
    signal_kid(z, m.id, m.value);
  if (!st && m.kind == CTL_NICE)
    slow_kid(z, m.id, m.value);
  return st == ST_BUSY ? ST_OK : st;
}

static enum status turn(struct zygote *z) {
  struct pollfd p[2 + CHILDREN_MAX];
  int n = 2, which[CHILDREN_MAX];
  enum status st = ST_OK;

  p[0] = (struct pollfd){.fd = WIRE_CTL_FD, .events = POLLIN};
  p[1] = (struct pollfd){.fd = z->signals, .events = POLLIN};
  for (int i = 0; i < z->n_kids; i++) {
    if (z->kids[i].gate < 0)
      continue;
    which[n - 2] = i;
    p[n++] = (struct pollfd){.fd = z->kids[i].gate, .events = POLLIN};
  }
  if (poll(p, (nfds_t)n, z->to_spawn ? 0 : -1) < 0)
    return errno == EINTR ? ST_OK : ST_IO;
  for (int i = 2; i < n && !st; i++) /* before reaping, which moves kids */
    if (p[i].revents)
      st = hand_over(&z->kids[which[i - 2]]);
  if (!st && p[1].revents)
    st = reap(z);
  if (!st && p[0].revents)
    st = read_command(z);
  if (!st && z->to_spawn)
    st = spawn_one(z);
  return st;
}

/* Compiles a kernel in a process that was just forked, for memory_prepare. */
static bool run_as_child(void *ir, enum memory_kernel which) {
  struct error err;
  child_after_fork();
  return !worker_compile_kernel(ir, which, false, &err);
}

static enum status start(struct zygote *z, const struct worker_config *cfg, struct error *err) {
  sigset_t chld;
  enum status st = worker_warm_up(cfg, &z->ir, err);
  if (!st)
    st = memory_prepare(cfg->memory_tricks, run_as_child, &z->ir, &z->pages, err);
  if (!st)
    st = worker_jail(cfg, &z->jail, err);
  if (st)
    return st;
  sigemptyset(&chld);
  sigaddset(&chld, SIGCHLD);
  sigprocmask(SIG_BLOCK, &chld, NULL);
  signal(SIGINT, SIG_IGN); /* a terminal sends Ctrl-C to the whole group; the server decides when the zygote ends */
  signal(SIGPIPE, SIG_IGN);
  z->signals = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
  return z->signals < 0 ? fail(err, ST_IO, "signalfd: %m") : ST_OK;
}

int zygote_main(const struct worker_config *cfg) {
  struct zygote *z = calloc(1, sizeof *z);
  struct ctl_msg hello = {.kind = CTL_HELLO};
  struct error err;
  int64_t began = clock_now_ms();

  unsetenv("LD_BIND_NOW"); /* the dynamic linker has read it */
  if (!z || fcntl(WIRE_CTL_FD, F_GETFD) < 0) {
    log_error("zygote", "no control socket: this program is started by `nkx serve`");
    return 2;
  }
  enum status st = start(z, cfg, &err);
  if (st) {
    log_error("zygote", "%s", err.text);
    (void)!report_failure(err.text, st == ST_DENIED ? FAULT_LASTING : FAULT_LAYER);
    return 4;
  }
  hello.id = (uint32_t)getpid();
  hello.value = (int32_t)(clock_now_ms() - began);
  hello.landlock_abi = z->jail.landlock_abi;
  hello.level = z->jail.level;
  hello.has_cgroup = cgroup_is_open(&z->jail.cgroup) && z->jail.cgroup.has_memory;
  snprintf(hello.text, sizeof hello.text, "%s", z->jail.why);
  st = wire_ctl_send(WIRE_CTL_FD, &hello, NULL, 0, NULL);
  while (!st)
    st = turn(z);
  for (int i = 0; i < z->n_kids; i++)
    kill(z->kids[i].pid, SIGKILL);
  while (wait(NULL) > 0) /* leaves no child for another process to reap */
    ;
  cgroup_close(&z->jail.cgroup);
  _exit(0);
}
