#include "own_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "neff/vendor.h"
#include "store/ident.h"
#include "store/runs.h"

static const char token_name[] = "the-servers-own-runner", token_text[] = "the server's own runner";

enum {
  RUNNER_UID = 65532, /* not CONFINE_UID, and not that of the workers */
  TOKEN_FD = 3,
  AGAIN_MS = 1000,
  AGAIN_MAX_MS = 60000,
  END_MS = 3000, /* for the runner, once the server is gone */
  ARGS_MAX = 32,
};

struct keeper {
  const struct config *cfg;
  const char *program, *runner, *url, *cache; /* program: the compiler; cache: NULL, if it cannot be made */
  char token[IDENT_LEN + 1];
};

/* ---- the runner -------------------------------------------------------------------------------------------------- */

/* A pipe that holds the token and ends after it, so that it is on no command line.  It belongs to the user who makes it, and only that
 * one can open it by its name. */
static bool put_token(const struct keeper *k) {
  int fds[2];
  if (pipe(fds) || write(fds[1], k->token, IDENT_LEN) != IDENT_LEN || dup2(fds[0], TOKEN_FD) < 0)
    return false;
  close_range(TOKEN_FD + 1, ~0U, 0);
  return true;
}

static bool leave_root(const struct keeper *k) {
  if (geteuid() || k->cfg->confine != CONFINE_YES)
    return true;
  return !setgroups(0, NULL) && !setresgid(RUNNER_UID, RUNNER_UID, RUNNER_UID) &&
         !setresuid(RUNNER_UID, RUNNER_UID, RUNNER_UID) && !prctl(PR_SET_DUMPABLE, 1);
}

static _Noreturn void become_runner(const struct keeper *k) {
  const struct config *c = k->cfg;
  char time[16], memory[16], size[16];
  const char *argv[ARGS_MAX];
  int n = 0;
  snprintf(time, sizeof time, "%d", c->cc_s);
  snprintf(memory, sizeof memory, "%d", c->cc_memory_mib);
  snprintf(size, sizeof size, "%d", c->cc_cache_mib);
  const char *const fixed[] = {k->runner,        "--server",     k->url,        "--token-file",
                               "/dev/fd/3",      "--name",       "this server", "--allow-http",
                               "--only-compile", "--neuronx-cc", k->program,    "--cc-walls",
                               "--cc-time",      time,           "--cc-memory", memory,
                               "--cc-cache-mib", size,           "--cc-cache",  k->cache ? k->cache : "none"};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    argv[n++] = fixed[i];
  if (config_sqlite_path(c)) { /* who is not root's runner may read what the service may read */
    argv[n++] = "--cc-hide";
    argv[n++] = c->data_dir;
  }
  argv[n] = NULL;
  if (!leave_root(k) || !put_token(k) || setenv("NKX_LOG_FORMAT", c->log_format == LOG_JSON ? "json" : "text", 1))
    _exit(127);
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* a change of ids clears it */
  execv(k->runner, (char *const *)argv);
  log_error("own_runner", "program=%s %s", k->runner, strerror(errno));
  _exit(127);
}

/* ---- the keeper -------------------------------------------------------------------------------------------------- */

/* True if the server is gone within these milliseconds; or the process, of which *is_ended says so. */
static bool wait_for(int server, int process, int ms, bool *is_ended) {
  struct pollfd p[] = {{server, POLLIN, 0}, {process, POLLIN, 0}};
  const int n = poll(p, 2, ms);
  *is_ended = n > 0 && p[1].revents;
  return n > 0 && p[0].revents;
}

static void end_runner(pid_t pid, int process) {
  struct pollfd p = {process, POLLIN, 0};
  kill(pid, SIGTERM);
  if (poll(&p, 1, END_MS) < 1)
    kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

/* Starts the runner; true once the server is gone. */
static bool run_once(const struct keeper *k) {
  const pid_t pid = fork();
  bool is_ended = false, is_gone = false;
  if (!pid)
    become_runner(k);
  const int process = pid > 0 ? pidfd_open(pid, 0) : -1;
  while (process >= 0 && !is_ended && !is_gone)
    is_gone = wait_for(TOKEN_FD, process, -1, &is_ended);
  if (is_gone && !is_ended)
    end_runner(pid, process);
  else if (pid > 0)
    waitpid(pid, NULL, 0);
  if (process >= 0)
    close(process);
  return is_gone;
}

static bool read_token(struct keeper *k) {
  size_t n = 0;
  for (ssize_t got; n < IDENT_LEN && ((got = read(TOKEN_FD, k->token + n, IDENT_LEN - n)) > 0 || errno == EINTR);)
    n += got > 0 ? (size_t)got : 0;
  return n == IDENT_LEN;
}

static _Noreturn void keep(struct keeper *k, int fd) {
  sigset_t none;
  int ms = AGAIN_MS;
  bool ignored;
  setsid(); /* a Ctrl-C is for the server, whose end ends this one */
  sigemptyset(&none);
  for (int s = 1; s < NSIG; s++)
    signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (dup2(fd, TOKEN_FD) < 0 || fcntl(TOKEN_FD, F_SETFD, FD_CLOEXEC) || close_range(TOKEN_FD + 1, ~0U, 0) ||
      !read_token(k))
    _exit(0);
  for (bool is_gone = false; !is_gone;) {
    const int64_t began = clock_now_ms();
    is_gone = run_once(k);
    ms = clock_now_ms() - began > AGAIN_MAX_MS ? AGAIN_MS : ms;
    if (is_gone || wait_for(TOKEN_FD, -1, ms, &ignored))
      break;
    log_warn("own_runner", "it has ended and is started again");
    ms = 2 * ms < AGAIN_MAX_MS ? 2 * ms : AGAIN_MAX_MS;
  }
  _exit(0);
}

/* ---- the server's side ------------------------------------------------------------------------------------------- */

/* What every address means is this machine's own. */
static const char *url_of(struct arena *a, const char *host, int port) {
  if (!strcmp(host, "0.0.0.0") || !strcmp(host, "::") || !strcmp(host, "localhost"))
    host = "127.0.0.1";
  return arena_printf(a, strchr(host, ':') ? "http://[%s]:%d" : "http://%s:%d", host, port);
}

/* Beside the data directory: what is in that is the service's alone. */
static const char *make_cache(struct arena *a, const struct config *cfg) {
  size_t n = strlen(cfg->data_dir);
  while (n > 1 && cfg->data_dir[n - 1] == '/')
    n--;
  const char *path = cfg->cc_cache ? cfg->cc_cache : arena_printf(a, "%.*s.neuronx-cc", (int)n, cfg->data_dir);
  if (!strcmp(path, "none"))
    return NULL;
  const bool is_new = !mkdir(path, 0700);
  if ((!is_new && errno != EEXIST) ||
      (is_new && !geteuid() && cfg->confine == CONFINE_YES && chown(path, RUNNER_UID, RUNNER_UID))) {
    log_warn("own_runner", "cache=%s %s: what the vendor's compiler makes is not kept", path, strerror(errno));
    return NULL;
  }
  return path;
}

static enum status find_program(struct arena *a, const struct config *cfg, const char **out, struct error *err) {
  const bool is_any = !cfg->neuronx_cc || !strcmp(cfg->neuronx_cc, "auto");
  *out = NULL;
  if (!cfg->runs.most || (!is_any && !strcmp(cfg->neuronx_cc, "none")))
    return ST_OK;
  *out = vendor_program(a, is_any ? NULL : cfg->neuronx_cc);
  return *out || is_any ? ST_OK : fail(err, ST_INPUT, "--neuronx-cc: %.120s is no program", cfg->neuronx_cc);
}

/* A process that is not the launcher's child: that one reaps only what it has started. */
static enum status split(struct keeper *k, const int fds[2], struct error *err) {
  const pid_t pid = fork();
  if (!pid) {
    close(fds[1]);
    if (fork())
      _exit(0);
    keep(k, fds[0]);
  }
  if (pid > 0)
    waitpid(pid, NULL, 0);
  return pid > 0 ? ST_OK : fail(err, ST_IO, "fork: %m");
}

enum status own_runner_split(const struct config *cfg, const struct listeners *at, int *token_fd, struct error *err) {
  struct keeper k = {.cfg = cfg};
  struct arena a;
  const char *dir;
  int fds[2];
  *token_fd = -1;
  arena_init(&a);
  enum status st = find_program(&a, cfg, &k.program, err);
  if (!st && k.program)
    st = config_program_dir(&a, &dir, err);
  if (!st && k.program) {
    k.runner = arena_printf(&a, "%s/nkx-runner", dir);
    k.url = url_of(&a, cfg->http.host, at->ports[LISTEN_PUBLIC]);
    k.cache = make_cache(&a, cfg);
    st = pipe2(fds, O_CLOEXEC) ? fail(err, ST_IO, "pipe: %m") : split(&k, fds, err);
    if (!st) {
      close(fds[0]);
      *token_fd = fds[1];
      log_info("own_runner", "neuronx-cc=%s", k.program);
    }
  }
  arena_clear(&a);
  return st;
}

struct beginning {
  struct store_task task; /* the first member */
  int fd;
  char token[IDENT_LEN + 1];
};

/* A token that is there already is that of an earlier start. */
static void begin(struct store_task *t, struct db *db) {
  struct beginning *b = (struct beginning *)t;
  struct ident_hash hash;
  struct error err;
  ident_hash(b->token, IDENT_LEN, &hash);
  const enum status st = store_put_token(db, token_name, &hash, &err);
  if (st && st != ST_DENIED)
    log_warn("own_runner", "%s", err.text);
  else if (write(b->fd, b->token, IDENT_LEN) != IDENT_LEN)
    log_warn("own_runner", "its keeper is gone");
  free(b);
}

void own_runner_begin(struct store *store, int token_fd) {
  struct beginning *b = token_fd < 0 ? NULL : calloc(1, sizeof *b);
  if (!b)
    return;
  b->task.run = begin;
  b->fd = token_fd;
  ident_derive(store_secret(store), STORE_SECRET_SIZE, token_text, sizeof token_text - 1, b->token);
  if (!store_submit(store, STORE_WRITE, &b->task))
    free(b);
}
