#include "pool/launcher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/notify.h"
#include "pool/wire.h"

enum {
  ZYGOTES_MAX = 16, /* the service has at most twelve (internal.h), and another launcher */
  ARGS_MAX = 32,
  BEYOND_LISTENERS = 16, /* descriptors that a program finds at fixed places are below */
  WARM_MS = 30000,       /* for the successor's zygote */
  WARM_TICK_MS = 20,
  END_WAIT_MS = 2000, /* for zygotes, once the service is gone */
  TICK_MS = 5,
  EXIT_KILLED = 4, /* the service's exit status when it was killed: our fault */
};

struct launched {
  uint32_t id;
  pid_t pid; /* 0: a free place */
};

struct launcher {
  const struct launcher_config *cfg;
  int control, signals;
  int *listen_fds, n_listen;
  pid_t service;
  struct notify notify;
  bool stands_by; /* a copy, of whose service another process is the parent */
  bool is_service_gone, is_to_be_replaced;
  int status;
  struct launched zygotes[ZYGOTES_MAX];
  /* A zygote that nobody has asked for yet: the predecessor's launcher has started it, or this one has for the successor. */
  int warm_fd; /* the server's end of its control socket; -1: there is none */
  pid_t warm_pid;
  int64_t warm_until_ms; /* it is being waited for, before the service is told to end; 0: it is not */
};

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static _Noreturn void become_zygote(char *const *argv, int ctl) {
  /* The symbols of all libraries are bound at its start: otherwise each of its children looks up those that it calls. */
  static char *const env[] = {"LD_BIND_NOW=1", NULL};
  sigset_t none;

  for (int s = 1; s < NSIG; s++)
    signal(s, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
    _exit(127);
  if (ctl == WIRE_CTL_FD)
    fcntl(ctl, F_SETFD, 0);
  else if (dup2(ctl, WIRE_CTL_FD) < 0)
    _exit(127);
  close_range(WIRE_CTL_FD + 1, ~0u, 0);
  execve(argv[0], argv, env);
  _exit(127);
}

static pid_t start_zygote(const struct launcher *l, const struct version *version, int ctl) {
  const struct launcher_config *cfg = l->cfg;
  char cpu[12], memory[12], resident[12], wall[12], format[12], level[12], server[12];
  const struct {
    const char *flag, *value;
  } flags[] = {
      {"--python-dir", version->python_dir},
      {"--site-dir", version->site_dir},
      {"--cgroup", cfg->cgroup_dir},
      {"--jail-without", cfg->jail_without},
      {"--jail-min", cfg->jail_min},
      {"--jail-failing", cfg->jail_failing},
      {"--memory-tricks", cfg->memory_tricks},
      {"--cpu-s", cpu},
      {"--memory-mib", memory},
      {"--resident-mib", resident},
      {"--wall-ms", wall},
      {"--log-format", format},
      {"--log-level", level},
      {"--server-pid", server},
  };
  const char *argv[ARGS_MAX] = {version->worker_path};
  int n = 1;
  snprintf(cpu, sizeof cpu, "%d", cfg->limits.cpu_s);
  snprintf(memory, sizeof memory, "%d", cfg->limits.memory_mib);
  snprintf(resident, sizeof resident, "%d", cfg->limits.resident_mib);
  snprintf(wall, sizeof wall, "%d", cfg->limits.wall_ms);
  snprintf(format, sizeof format, "%d", cfg->log_format);
  snprintf(level, sizeof level, "%d", cfg->log_level);
  snprintf(server, sizeof server, "%d", (int)l->service);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    if (!flags[i].value)
      continue;
    assert(n + 2 < ARGS_MAX);
    argv[n++] = flags[i].flag;
    argv[n++] = flags[i].value;
  }
  pid_t pid = fork();
  if (pid == 0)
    become_zygote((char *const *)argv, ctl);
  return pid;
}

static void stop_listening(struct launcher *l) {
  for (int i = 0; i < l->n_listen; i++) {
    if (l->listen_fds[i] >= 0)
      close(l->listen_fds[i]);
    l->listen_fds[i] = -1;
  }
}

/* A descriptor of the signals that a launcher reads, which are blocked; -1 if there is none. */
static int watch_signals(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGHUP);
  sigaddset(&mask, SIGCHLD);
  return signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- requests of the service ------------------------------------------------------------------------------------- */

static void tell_gone(struct launcher *l, uint32_t id) {
  const struct ctl_msg m = {.kind = CTL_GONE, .id = id};
  struct error err;
  if (!l->is_service_gone && wire_ctl_send(l->control, &m, NULL, 0, &err))
    log_debug("launcher", "%s", err.text); /* it is ending */
}

static void answer_ping(struct launcher *l, bool is_serving) {
  const struct ctl_msg m = {.kind = CTL_PING};
  struct error err;
  if (wire_ctl_send(l->control, &m, NULL, 0, &err))
    log_debug("launcher", "%s", err.text); /* it is ending */
  notify_alive(&l->notify, is_serving);
}

static struct launched *find_pid(struct launcher *l, pid_t pid) {
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (l->zygotes[i].pid == pid)
      return &l->zygotes[i];
  return NULL;
}

/* Gives the service the zygote that is there already, under the number by which it has asked for one. */
static bool hand_over_warm(struct launcher *l, struct launched *place, uint32_t id, int ctl) {
  const struct ctl_msg m = {.kind = CTL_ADOPT, .id = id};
  struct error err;
  const int fd = l->warm_fd;
  l->warm_fd = -1;
  /* never closed: the service, which may not have read this message yet, would take that for the zygote's end */
  if (fcntl(ctl, F_DUPFD_CLOEXEC, 0) < 0)
    log_debug("launcher", "%m");
  const bool is_sent = !wire_ctl_send(l->control, &m, &fd, 1, &err);
  close(fd);
  if (is_sent)
    *place = (struct launched){id, l->warm_pid};
  else
    kill(l->warm_pid, SIGKILL);
  l->warm_pid = 0;
  return is_sent;
}

static void on_start(struct launcher *l, uint32_t id, int version, int ctl) {
  const struct versions *vs = l->cfg->versions;
  struct launched *place = find_pid(l, 0);
  const bool may = place && ctl >= 0 && version >= 0 && version < vs->n;
  if (may && version == VERSION_TODAY && l->warm_pid && !l->warm_until_ms && hand_over_warm(l, place, id, ctl))
    return;
  pid_t pid = may ? start_zygote(l, &vs->v[version], ctl) : -1;
  if (pid < 0) {
    log_error("launcher", "a zygote cannot be started: %m");
    tell_gone(l, id);
  } else {
    *place = (struct launched){id, pid};
  }
}

static void run(struct launcher *l);

/* Its own zygotes, control socket and signals are all that a copy has.  It ends when the service does. */
static _Noreturn void become_copy(const struct launcher *from, int control) {
  struct launcher l = {.cfg = from->cfg,
                       .control = control,
                       .listen_fds = from->listen_fds,
                       .n_listen = from->n_listen,
                       .service = from->service,
                       .notify.fd = -1,
                       .warm_fd = -1,
                       .stands_by = true};
  prctl(PR_SET_NAME, "nkx-launcher");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  close(from->control);
  close(from->signals);
  if (from->warm_fd >= 0)
    close(from->warm_fd);
  if (from->notify.fd >= 0)
    close(from->notify.fd);
  stop_listening(&l);
  l.signals = watch_signals();
  if (l.signals >= 0)
    run(&l);
  _exit(0);
}

static void on_copy(struct launcher *l, uint32_t id, int control) {
  struct launched *place = find_pid(l, 0);
  pid_t pid = place && control >= 0 ? fork() : -1;
  if (pid == 0)
    become_copy(l, control);
  if (pid < 0)
    log_error("launcher", "a copy cannot be made: %m"); /* its socket is closed, which says so */
  else
    *place = (struct launched){id, pid};
}

static void on_kill(struct launcher *l, uint32_t id) {
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (l->zygotes[i].pid && l->zygotes[i].id == id)
      kill(l->zygotes[i].pid, SIGKILL); /* it was not reaped yet, so the pid is still its own */
}

static void read_control(struct launcher *l) {
  struct ctl_msg m;
  int fds[2];
  if (wire_ctl_recv(l->control, &m, fds, NULL)) {
    close(l->control); /* the service is ending; reap sees its exit */
    l->control = -1;
    l->is_service_gone |= l->stands_by;
    return;
  }
  if (m.kind == CTL_PING)
    answer_ping(l, m.value);
  else if (m.kind == CTL_COPY)
    on_copy(l, m.id, fds[0]);
  else if (m.kind == CTL_START)
    on_start(l, m.id, m.value, fds[0]);
  else if (m.kind == CTL_KILL)
    on_kill(l, m.id);
  for (int i = 0; i < 2; i++)
    if (fds[i] >= 0)
      close(fds[i]);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Ends the children of a zygote that died; they are now this process's children, because it is their subreaper.  A child asks the kernel to
 * end it with its zygote, but one that was just being made may not have done so yet. */
static void end_orphans(struct launcher *l) {
  FILE *f = fopen("/proc/thread-self/children", "re"); /* some kernels lack it; each child then ends by itself */
  int pid;
  while (f && fscanf(f, "%d", &pid) == 1)
    if (pid != l->service && pid != l->warm_pid && !find_pid(l, pid))
      kill(pid, SIGKILL); /* not reaped yet, so the pid is its own */
  if (f)
    fclose(f);
}

static void drop_warm(struct launcher *l) {
  if (l->warm_fd >= 0)
    close(l->warm_fd);
  l->warm_fd = -1;
  l->warm_pid = 0;
}

/* Reaps the service, zygotes, and children whose zygote died.  False when no process is left. */
static bool reap(struct launcher *l) {
  pid_t pid;
  int status;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    struct launched *z = find_pid(l, pid);
    if (pid == l->warm_pid) {
      drop_warm(l);
    } else if (z) {
      tell_gone(l, z->id);
      z->pid = 0;
      end_orphans(l);
    } else if (pid == l->service) {
      l->is_service_gone = true;
      l->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_KILLED;
      if (WIFSIGNALED(status))
        log_error("service_died", "signal=%d", WTERMSIG(status));
    }
  }
  return pid == 0;
}

/* Starts the zygote of the successor from the program that is now at the worker's path. */
static void begin_warm(struct launcher *l) {
  int pair[2];
  l->warm_until_ms = clock_now_ms() + WARM_MS;
  if (l->warm_pid || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  pid_t pid = start_zygote(l, &l->cfg->versions->v[VERSION_TODAY], pair[1]);
  close(pair[1]);
  if (pid > 0) {
    l->warm_fd = pair[0];
    l->warm_pid = pid;
  } else {
    close(pair[0]);
  }
}

static void read_signals(struct launcher *l) {
  struct signalfd_siginfo info;
  while (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD || l->stands_by)
      continue; /* every iteration reaps; a terminal's signals are for the first launcher */
    l->is_to_be_replaced = info.ssi_signo == SIGHUP;
    notify_send(&l->notify, l->is_to_be_replaced ? "RELOADING=1" : "STOPPING=1");
    if (l->is_to_be_replaced) {
      begin_warm(l);
    } else {
      stop_listening(l); /* otherwise clients would wait for a successor that does not come */
      l->warm_until_ms = 0;
      kill(l->service, (int)info.ssi_signo);
    }
  }
}

/* The service goes on until the successor's zygote is warm: it has sent its hello, which the successor will read. */
static void tend_warm(struct launcher *l, bool has_said_hello) {
  if (!l->warm_until_ms || (l->warm_pid && !has_said_hello && clock_now_ms() < l->warm_until_ms))
    return;
  l->warm_until_ms = 0;
  kill(l->service, SIGHUP);
}

static bool has_zygotes(const struct launcher *l) {
  for (int i = 0; i < ZYGOTES_MAX; i++)
    if (l->zygotes[i].pid)
      return true;
  return false;
}

static void run(struct launcher *l) {
  while (!l->is_service_gone) {
    struct pollfd p[3] = {{.fd = l->signals, .events = POLLIN},
                          {.fd = l->control, .events = POLLIN},
                          {.fd = l->warm_until_ms ? l->warm_fd : -1, .events = POLLIN}};
    if (poll(p, 3, l->warm_until_ms ? WARM_TICK_MS : -1) < 0 && errno != EINTR)
      break;
    if (p[0].revents)
      read_signals(l);
    if (p[1].revents)
      read_control(l);
    reap(l);
    tend_warm(l, p[2].revents & POLLIN);
  }
  /* zygotes end when their server is gone, but for that of the successor */
  if (l->warm_pid && (!l->is_to_be_replaced || l->status))
    kill(l->warm_pid, SIGKILL);
  int64_t until = clock_now_ms() + END_WAIT_MS;
  for (; reap(l) && (!l->warm_pid || has_zygotes(l)); usleep(TICK_MS * 1000))
    for (int i = 0; i < ZYGOTES_MAX && clock_now_ms() >= until; i++)
      if (l->zygotes[i].pid)
        kill(l->zygotes[i].pid, SIGKILL);
}

/* ---- from one program to the next ------------------------------------------------------------------------------ */

static const char warm_variable[] = "WARM_ZYGOTE"; /* DESCRIPTOR:PID */

void launcher_pass_warm(const struct launcher_end *end) {
  char text[32];
  const int fd = end->warm_fd < 0 ? -1 : fcntl(end->warm_fd, F_DUPFD, BEYOND_LISTENERS);
  snprintf(text, sizeof text, "%d:%d", fd, (int)end->warm_pid);
  if (fd >= 0 && setenv(warm_variable, text, 1))
    close(fd); /* it ends when nobody has the socket */
}

/* It may be another process's, if somebody has set the variable: only a child of this one counts. */
static void take_warm(struct launcher *l) {
  const char *text = getenv(warm_variable);
  int fd = -1, pid = 0, status;
  l->warm_fd = -1;
  if (text && sscanf(text, "%d:%d", &fd, &pid) == 2 && fd >= BEYOND_LISTENERS && pid > 0 &&
      !fcntl(fd, F_SETFD, FD_CLOEXEC)) {
    if (!waitpid(pid, &status, WNOHANG)) {
      l->warm_fd = fd;
      l->warm_pid = pid;
    } else {
      close(fd);
    }
  }
  unsetenv(warm_variable);
}

/* ---- the split --------------------------------------------------------------------------------------------------- */

enum status launcher_split(const struct launcher_config *cfg, int *listen_fds, int n_listen, bool *is_service,
                           int *control_fd, struct launcher_end *end, struct error *err) {
  struct launcher l = {.cfg = cfg, .listen_fds = listen_fds, .n_listen = n_listen, .signals = -1};
  take_warm(&l);
  int pair[2];
  pid_t parent = getpid();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return fail(err, ST_IO, "launcher: %m");
  l.service = fork();
  if (l.service == 0) {
    close(pair[0]);
    if (l.warm_fd >= 0)
      close(l.warm_fd);
    *control_fd = pair[1];
    *is_service = true;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
      _exit(EXIT_KILLED);
    return ST_OK;
  }
  close(pair[1]);
  *is_service = false;
  if (l.service < 0) {
    close(pair[0]);
    return fail(err, ST_IO, "launcher: %m");
  }
  l.control = pair[0];
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* this process becomes the parent of a killed zygote's children */
  l.signals = watch_signals();
  notify_open(&l.notify);
  if (l.signals < 0)
    kill(l.service, SIGKILL);
  run(&l);
  notify_close(&l.notify);
  if (l.signals >= 0)
    close(l.signals);
  if (l.control >= 0)
    close(l.control);
  *end = (struct launcher_end){l.status, l.is_to_be_replaced && !l.status && listen_fds[0] >= 0, l.warm_fd, l.warm_pid};
  return ST_OK;
}
