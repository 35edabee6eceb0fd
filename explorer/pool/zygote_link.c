/* The server's side of the zygote: start, messages, replacement.
 *
 * The zygote is started by exec with an empty environment and nothing open but stdio and its control socket.  It asks
 * to be killed when the thread that started it ends, which is the pool's, so that not even a killed server leaves it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/internal.h"

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 5000, END_WAIT_MS = 500, ARGS_MAX = 8 };

/* Between fork and exec of a process with threads only async-signal-safe calls are allowed. */
static _Noreturn void become_zygote(char *const *argv, int ctl) {
  static char *const no_env[] = {NULL};
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
  execve(argv[0], argv, no_env);
  _exit(127);
}

static pid_t launch(const struct pool_config *cfg, int ctl) {
  const char *argv[ARGS_MAX] = {cfg->worker_path};
  int n = 1;
  if (cfg->python_dir) {
    argv[n++] = "--python-dir";
    argv[n++] = cfg->python_dir;
  }
  if (cfg->site_dir) {
    argv[n++] = "--site-dir";
    argv[n++] = cfg->site_dir;
  }
  pid_t pid = fork();
  if (pid == 0)
    become_zygote((char *const *)argv, ctl);
  return pid;
}

void zygote_start(struct pool *p, int64_t now) {
  int pair[2];

  p->zygote.retry_at_ms = 0;
  p->zygote.started_ms = now;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
    zygote_lost(p, "no socket pair", now);
    return;
  }
  p->zygote.pid = launch(&p->cfg, pair[1]);
  close(pair[1]);
  p->zygote.fd = pair[0];
  struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_tag(EV_ZYGOTE, 0)};
  if (p->zygote.pid < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, pair[0], &ev))
    zygote_lost(p, "it cannot be started", now);
}

/* Children whose zygote died are ours to reap (we are their subreaper). True if the zygote itself was among them. */
bool zygote_reap(struct pool *p) {
  bool is_gone = false;
  for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
    is_gone |= pid == p->zygote.pid;
  if (is_gone)
    p->zygote.pid = 0;
  return is_gone;
}

/* Closing its socket asks it to end its children and itself; it is killed if it does not.  Either way nothing is left. */
void zygote_end(struct pool *p) {
  if (p->zygote.fd >= 0)
    close(p->zygote.fd);
  for (int ms = 0; p->zygote.pid > 0 && !zygote_reap(p); ms++) {
    if (ms == END_WAIT_MS)
      kill(p->zygote.pid, SIGKILL);
    usleep(1000);
  }
  while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* killed with their parent, so this does not wait long */
    ;
  p->zygote.fd = -1;
  p->zygote.pid = 0;
  p->zygote.is_up = false;
  p->zygote.asked = 0;
}

static void set_health(struct pool *p, bool is_ready, const char *trouble) {
  pthread_mutex_lock(&p->lock);
  p->health.is_ready = is_ready;
  snprintf(p->health.trouble, sizeof p->health.trouble, "%s", trouble);
  pthread_mutex_unlock(&p->lock);
}

static void back_off(struct pool *p, int64_t now) {
  int64_t wait = BACKOFF_FIRST_MS;
  for (int i = 0; i < p->zygote.failures && wait < BACKOFF_MAX_MS; i++)
    wait *= 2;
  p->zygote.failures++;
  p->zygote.retry_at_ms = now + (wait > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : wait);
}

void zygote_lost(struct pool *p, const char *why, int64_t now) {
  log_warn("zygote_lost", "reason=\"%s\"", why);
  zygote_end(p);
  for (int i = p->n_kids; i-- > 0;)
    kid_drop(p, &p->kids[i]);
  pthread_mutex_lock(&p->lock);
  p->health.restarts++;
  pthread_mutex_unlock(&p->lock);
  /* what it said about itself before it ended is the better reason */
  set_health(p, false, p->health.trouble[0] ? p->health.trouble : why);
  back_off(p, now);
}

void zygote_ask(struct pool *p, int n) {
  struct ctl_msg m = {.kind = CTL_SPAWN, .value = n};
  struct error err;
  p->zygote.asked = n;
  if (wire_ctl_send(p->zygote.fd, &m, NULL, 0, &err))
    zygote_lost(p, err.text, clock_now_ms());
}

static void on_child(struct pool *p, const struct ctl_msg *m, int fds[2]) {
  if (p->zygote.asked > 0)
    p->zygote.asked--;
  if (fds[0] < 0 || fds[1] < 0) {
    log_error("pool", "a child came without its descriptors");
    return;
  }
  p->zygote.failures = 0;
  kid_add(p, m, fds[0], fds[1]);
  fds[0] = fds[1] = -1; /* the kid's now */
  pthread_mutex_lock(&p->lock);
  bool is_news = p->health.layers != m->layers || !p->health.is_ready;
  p->health.layers = m->layers;
  p->health.landlock_abi = m->landlock_abi;
  pthread_mutex_unlock(&p->lock);
  if (is_news)
    log_info("jail", "layers=0x%x landlock_abi=%d", m->layers, m->landlock_abi);
  set_health(p, true, "");
}

static void on_message(struct pool *p, const struct ctl_msg *m, int fds[2], int64_t now) {
  struct kid *k;
  switch (m->kind) {
  case CTL_HELLO:
    p->zygote.is_up = true;
    log_info("zygote_up", "pid=%d warm_up_ms=%d", (int)p->zygote.pid, m->value);
    break;
  case CTL_CHILD:
    on_child(p, m, fds);
    break;
  case CTL_EXIT:
    k = kid_find(p, m->id);
    if (k)
      kid_exited(p, k, m);
    break;
  case CTL_FAIL:
    log_error("jail", "%s", m->text);
    p->zygote.asked = 0;
    set_health(p, false, m->text);
    back_off(p, now);
    break;
  default:
    log_error("pool", "control message of kind %u", m->kind);
  }
}

void zygote_read(struct pool *p, int64_t now) {
  struct ctl_msg m;
  struct error err;
  int fds[2];

  while (p->zygote.fd >= 0) {
    enum status st = wire_ctl_recv(p->zygote.fd, &m, fds, &err);
    if (st == ST_BUSY)
      return;
    if (st) {
      zygote_lost(p, err.text, now);
      return;
    }
    on_message(p, &m, fds, now);
    for (int i = 0; i < 2; i++)
      if (fds[i] >= 0)
        close(fds[i]);
  }
}
