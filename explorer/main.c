/* nkx: the service, and the entry to the command line.
 *
 * `nkx serve` runs in this process, which never links CPython or MLIR.  The other subcommands that compile are
 * nkx-worker's, which replaces this process; `nkx runner` and `nkx token` are nkx-runner's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "base/log.h"
#include "chosen.h"
#include "config.h"
#include "driver/main.h"
#include "driver/pipeline.h"
#include "http/server.h"
#include "own_runner.h"
#include "pool/launcher.h"
#include "pool/pool.h"
#include "store_main.h"

enum {
  HEAPS_MAX = 2, /* shared by all threads: a heap for each would keep what its largest result took */
  LARGE =
      128
      << 10, /* bytes; a larger block is mapped alone and unmapped at once, and a heap keeps at most this much free */
};

static const char help[] =
    "usage: nkx COMMAND …\n"
    "  serve      runs the service: the page and the API\n"
    "  compile    compiles a kernel and prints its stages\n"
    "  run        runs a kernel on the simulated machine\n"
    "  resume     goes on from the text of a stage that was changed\n"
    "  opt        runs single passes on MLIR text\n"
    "  tune       searches for knobs that make a kernel faster on the simulated machine\n"
    "  diff       finds where two results part: the first stage and operation, in text and in values\n"
    "  shrink     makes a kernel that is refused or wrong as small as it can be\n"
    "  reproduce  runs the program of a failed check again\n"
    "  doc        says what a call of NKI or an instruction does\n"
    "  why        tells what led to an operation of a stage\n"
    "  steps      shows the rewrites inside a stage\n"
    "  mcp        serves assistants: the Model Context Protocol on standard input and output\n"
    "  lsp        serves editors: the Language Server Protocol on standard input and output\n"
    "  lesson     proves that a lesson is right on what the pipeline does today\n"
    "  nki        rewrites NKI kernels of beta 1 for the newest generation\n"
    "  neff       shows, unpacks, compares and makes NEFF files\n"
    "  store      backs up, restores and checks the service's store; shows and removes links\n"
    "  runner     connects a Neuron host to a service, and manages the tokens for that\n"
    "  token      makes, lists and revokes the tokens by which programs sign in to a service\n"
    "  doctor     says which layers of the jail this machine supports\n"
    "`nkx COMMAND --help` lists the options of a command; `nkx --version` prints the version.\n";

/* ---- serve ------------------------------------------------------------------------------------------------------- */

/* Before it is replaced, a service goes on until no long job runs: its clients would wait for that job's end, because the successor answers
 * none before.  At most --drain-timeout-ms, or until it is to end at once. */
static int wait_for_calm(const struct config *cfg, struct pool *pool, const sigset_t *stop) {
  const struct timespec tick = {.tv_nsec = 20000000};
  const int64_t until = clock_now_ms() + cfg->drain_timeout_ms;
  struct pool_health h;
  int sig = -1;
  for (pool_look(pool, &h); (h.long_running || h.waiting) && sig < 0 && clock_now_ms() < until; pool_look(pool, &h))
    sig = sigtimedwait(stop, NULL, &tick);
  return sig < 0 ? SIGHUP : sig;
}

/* Runs the service until a signal of the set comes; takes over the descriptors. */
static enum status serve(const struct config *cfg, const sigset_t *stop, const struct listeners *at, int launcher_fd,
                         int runner_fd, struct error *err) {
  struct app app = {0};
  int sig;
  enum status st = app_start(cfg, launcher_fd, at, &app, err);
  if (!st) {
    log_info("serving", "url=http://%s:%d workers=%d", cfg->http.host, at->ports[LISTEN_PUBLIC], cfg->workers);
    if (cfg->http.ops_port)
      log_info("operations", "url=http://%s:%d", cfg->http.ops_host, at->ports[LISTEN_OPS]);
    pool_set_serving(app.services.pool);
    own_runner_begin(app.services.store, runner_fd);
    sigwait(stop, &sig);
    if (sig == SIGHUP)
      sig = wait_for_calm(cfg, app.services.pool, stop);
    log_info("stopping", "signal=%d", sig);
  }
  app_stop(&app);
  return st;
}

static int exit_of(enum status st, const struct error *err) {
  if (!st)
    return EXIT_DONE;
  fprintf(stderr, "nkx: %s\n", err->text);
  return st == ST_INPUT ? EXIT_USAGE : EXIT_FAULT;
}

/* Listens, and splits into launcher and service.  Returns the exit status.  In the launcher *end then says whether the service has ended so
 * that a successor can take over the sockets. */
static int listen_and_serve(const struct config *cfg, const sigset_t *stop, struct listeners *at,
                            struct launcher_end *end) {
  struct jail_limits limits = cfg->limits;
  limits.wall_ms = cfg->job_timeout_ms;
  const struct launcher_config launcher_cfg = {
      .versions = &cfg->versions,
      .limits = limits,
      .jail_min = cfg->jail_min,
      .jail_without = cfg->jail_without,
      .jail_failing = cfg->jail_failing,
      .memory_tricks = cfg->worker_memory,
      .cgroup_dir = cfg->cgroup_dir,
      .log_format = cfg->log_format,
      .log_level = cfg->log_level,
  };
  struct error err;
  bool is_service = false;
  int launcher_fd = -1, runner_fd = -1;

  enum status st = server_listen(&cfg->http, at, &err);
  if (!st && config_sqlite_path(cfg) && mkdir(cfg->data_dir, 0700) && errno != EEXIST)
    st = fail(&err, ST_INPUT, "--data-dir: %.160s: %m", cfg->data_dir);
  if (!st)
    st = own_runner_split(cfg, at, &runner_fd, &err);
  if (!st)
    st = launcher_split(&launcher_cfg, at->fds, LISTENERS, &is_service, &launcher_fd, end, &err);
  if (!st && is_service)
    st = serve(cfg, stop, at, launcher_fd, runner_fd, &err);
  return st || is_service ? exit_of(st, &err) : end->status;
}

/* Puts the listening sockets where a started program expects them; returns how many there are, 0 after a failure. */
static int pass_listeners(const struct listeners *at) {
  enum { FIRST_PASSED_FD = 3, BEYOND = 16 };
  int n = 0, high[LISTENERS];
  while (n < LISTENERS && at->fds[n] >= 0) {
    high[n] = fcntl(at->fds[n], F_DUPFD_CLOEXEC, BEYOND); /* so that none is in another one's place */
    if (high[n] < 0)
      return 0;
    n++;
  }
  for (int i = 0; i < n; i++)
    if (dup2(high[i], FIRST_PASSED_FD + i) < 0)
      return 0;
  return n;
}

/* After SIGHUP: the program that is now at this one's path starts with the same arguments, in this process, and takes
 * over the listening sockets, where clients have been waiting. */
static int become_successor(const struct listeners *at, const struct launcher_end *end, char **argv) {
  char pid[16], count[16], path[PATH_MAX];
  struct arena a;
  struct error err;
  const char *dir;
  arena_init(&a);
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  if (!config_program_dir(&a, &dir, &err)) {
    snprintf(path, sizeof path, "%s/nkx", dir);
    const int n = pass_listeners(at);
    launcher_pass_warm(end);
    snprintf(count, sizeof count, "%d", n);
    if (n && !setenv("LISTEN_PID", pid, 1) && !setenv("LISTEN_FDS", count, 1))
      execv(path, argv);
  }
  fprintf(stderr, "nkx: the new program cannot be started: %m\n");
  return EXIT_FAULT;
}

/* Results of many MiB come and go.  Their memory must go back to the system, however large the largest was. */
static void limit_heaps(void) {
  mallopt(M_ARENA_MAX, HEAPS_MAX);
  mallopt(M_MMAP_THRESHOLD, LARGE); /* also stops the threshold from growing */
  mallopt(M_TRIM_THRESHOLD, LARGE);
}

static int serve_main(int argc, char **argv) {
  struct arena a;
  struct config cfg;
  struct error err;
  sigset_t blocked, stop;
  struct launcher_end end = {0};
  struct listeners at = {.fds = {-1, -1}};

  for (int i = 0; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      fputs(config_help, stdout);
      return EXIT_DONE;
    }
  }
  limit_heaps();
  arena_init(&a);
  enum status st = config_parse(&a, argc, argv, environ, &cfg, &err);
  int status = exit_of(st, &err);
  if (!st) {
    log_set_format((enum log_format)cfg.log_format);
    log_set_level((enum log_level)cfg.log_level);
    config_warn_unknown(environ);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow counts as a full disk */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGHUP);
    blocked = stop;
    sigaddset(&blocked, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL); /* before the first thread, so that only sigwait sees them */
    status = listen_and_serve(&cfg, &stop, &at, &end);
  }
  arena_clear(&a);
  return end.is_to_be_replaced ? become_successor(&at, &end, argv - 2) : status;
}

/* ---- the other commands ------------------------------------------------------------------------------------------ */

/* Replaces this process by another program of this one's directory, with the same arguments. */
static int become(const char *program, char **argv) {
  struct arena a;
  struct error err;
  const char *dir;

  arena_init(&a);
  if (config_program_dir(&a, &dir, &err)) {
    fprintf(stderr, "nkx: %s\n", err.text);
    return EXIT_FAULT;
  }
  const char *path = arena_printf(&a, "%s/%s", dir, program);
  execv(path, argv);
  fprintf(stderr, "nkx: %s: %m\n", path);
  return EXIT_FAULT;
}

/* A command of the compiler, in the version that it names. */
static int command_main(char **argv) {
  struct arena a;
  struct error err;
  const char *worker;

  arena_init(&a);
  const enum status st = chosen_worker(&a, argv, &worker, &err);
  if (st)
    return exit_of(st, &err);
  if (!worker)
    return become("nkx-worker", argv);
  execv(worker, argv);
  fprintf(stderr, "nkx: %s: %m\n", worker);
  return EXIT_FAULT;
}

/* The HTTP client is nkx-runner's. */
static int token_main(int argc, char **argv) {
  struct arena a;
  arena_init(&a);
  char **all = arena_new_array(&a, char *, (size_t)argc + 2);
  all[0] = argv[0];
  all[1] = "for";
  memcpy(all + 2, argv + 1, (size_t)(argc - 1) * sizeof *argv);
  return become("nkx-runner", all);
}

/* Without this a program that is started with closed descriptors 0 to 2 would open its sockets and files there, and write messages into
 * them. */
static void fill_stdio(void) {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2)
    fd = open("/dev/null", O_RDWR);
  if (fd > 2)
    close(fd);
}

/* nkx neff vendor, or nkx neff pack of a kernel: of a folder it has --like. */
static bool compiles_neff(int argc, char **argv) {
  if (argc < 3 || strcmp(argv[2], "pack") != 0)
    return argc > 2 && !strcmp(argv[2], "vendor");
  for (int i = 3; i < argc; i++)
    if (!strcmp(argv[i], "--like"))
      return false;
  return true;
}

int main(int argc, char **argv) {
  static const char *const worker_commands[] = {"compile",   "run",  "resume", "tune",  "lesson",
                                                "shrink",    "diff", "why",    "steps", "opt",
                                                "reproduce", "nki",  "doctor", "mcp",   "lsp"};
  const char *what = argc > 1 ? argv[1] : "";

  fill_stdio();
  if (!strcmp(what, "serve") || !strcmp(what, "store"))
    umask(077); /* what is stored, and backups of it, are everybody's kernels */
  if (!strcmp(what, "serve"))
    return serve_main(argc - 2, argv + 2);
  if (!strcmp(what, "doc"))
    return doc_main(argc - 1, argv + 1);
  if (!strcmp(what, "neff"))
    return compiles_neff(argc, argv) ? become("nkx-worker", argv) : neff_main(argc - 1, argv + 1);
  if (!strcmp(what, "runner"))
    return become("nkx-runner", argv);
  if (!strcmp(what, "token"))
    return token_main(argc, argv);
  if (!strcmp(what, "store"))
    return store_main(argc - 2, argv + 2);
  for (size_t i = 0; i < sizeof worker_commands / sizeof *worker_commands; i++)
    if (!strcmp(what, worker_commands[i]))
      return command_main(argv);
  if (!strcmp(what, "--version")) {
    printf("nkx %s, pipeline %s\n", release_version(), pipeline_version());
    return EXIT_DONE;
  }
  if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
    fputs(help, stdout);
    return EXIT_DONE;
  }
  fputs(help, stderr);
  return EXIT_USAGE;
}
