/* aside: see the header. */
#include "aside/aside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "driver/compile.h"
#include "driver/frames.h"
#include "driver/paths.h"
#include "driver/run_here.h"
#include "driver/terminal.h"
#include "ir/ir.h"
#include "trace/trace.h"

struct aside_host {
  struct ir ir;
  struct job defaults;
};

enum status aside_host_start(struct arena *a, struct aside_host **out, struct error *err) {
  struct aside_host *host = arena_new(a, struct aside_host);
  struct paths paths;
  enum status st = paths_find(a, &paths, err);
  if (!st)
    st = trace_init(paths.python_dir, paths.site_dir, err);
  if (!st)
    st = ir_init(&host->ir, err);
  job_init(&host->defaults);
  signal(SIGPIPE, SIG_IGN);
  *out = host;
  return st;
}

/* ---- the job's process ------------------------------------------------------------------------------------------- */

static enum status send_all(int fd, const char *p, size_t n) {
  while (n) {
    const ssize_t done = write(fd, p, n);
    if (done < 0 && errno != EINTR)
      return ST_IO;
    p += done > 0 ? done : 0;
    n -= done > 0 ? (size_t)done : 0;
  }
  return ST_OK;
}

static enum status send_frame(void *user, const char *json, size_t len) {
  const int fd = *(const int *)user;
  const enum status st = send_all(fd, json, len);
  return st ? st : send_all(fd, "\n", 1);
}

/* The client's streams are not the kernel's: it reads nothing, and what it prints goes to standard error. */
static bool take_streams(void) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static _Noreturn void run(struct aside_host *host, const struct job *job, bool with_files, int fd, pid_t parent) {
  struct arena a;
  struct terminal t;
  enum status st = ST_OK;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || !take_streams())
    _exit(EXIT_FAILURE);
  signal(SIGINT, SIG_IGN); /* a terminal sends Ctrl-C to the whole group; the parent decides when the job ends */
  trace_after_fork(host->defaults.seed);
  arena_init(&a);
  terminal_init(&t, &a);
  t.job = *job;
  if (with_files && job->language == LANG_NKIPY)
    st = terminal_find_files(&t);
  if (!st)
    st = t.job.shrink_seconds ? run_shrink(&host->ir, &t.job, send_frame, &fd)
                              : compile_run(&host->ir, &t.job, send_frame, &fd);
  _exit(st == ST_OK || st == ST_INPUT || st == ST_LIMIT ? EXIT_SUCCESS : EXIT_FAILURE);
}

enum status aside_start(struct aside *s, struct aside_host *host, const struct job *job, bool with_files, int seconds,
                        struct error *err) {
  int fds[2];
  const pid_t parent = getpid();
  assert(!s->pid);
  if (pipe2(fds, O_CLOEXEC))
    return fail(err, ST_IO, "pipe: %m");
  const pid_t pid = fork();
  if (pid == 0) {
    close(fds[0]);
    run(host, job, with_files, fds[1], parent);
  }
  close(fds[1]);
  if (pid < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK)) {
    close(fds[0]);
    return fail(err, ST_IO, "fork: %m");
  }
  *s = (struct aside){.pid = pid, .fd = fds[0]};
  s->deadline_ms = seconds ? clock_now_ms() + (int64_t)seconds * 1000 : 0;
  buf_init(&s->line, FRAME_MAX);
  result_file_init(&s->file);
  return ST_OK;
}

/* ---- its frames -------------------------------------------------------------------------------------------------- */

int aside_timeout_ms(const struct aside *s) {
  if (!s->pid || !s->deadline_ms)
    return -1;
  const int64_t left = s->deadline_ms - clock_now_ms();
  return left < 0 ? 0 : (int)left;
}

static void end(struct aside *s, bool is_killed) {
  if (is_killed)
    kill(s->pid, SIGKILL);
  while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  close(s->fd);
  s->pid = 0;
}

/* Takes the bytes of frames; false if they are none that a job may send. */
static bool take(struct aside *s, const char *p, size_t n) {
  struct error err;
  while (n) {
    const char *newline = memchr(p, '\n', n);
    const size_t len = newline ? (size_t)(newline - p) : n;
    if (buf_append(&s->line, p, len))
      return false;
    p += len;
    n -= len;
    if (!newline)
      break;
    p++;
    n--;
    if (result_file_add(&s->file, buf_text(&s->line), s->line.len, &err))
      return false;
    s->has_end = s->file.gather.is_ended;
    s->line.len = 0;
  }
  return true;
}

bool aside_read(struct aside *s) {
  char chunk[64 << 10];
  if (!s->pid)
    return true;
  s->is_late = s->deadline_ms && clock_now_ms() >= s->deadline_ms;
  ssize_t n = -1;
  while (!s->is_late && (n = read(s->fd, chunk, sizeof chunk)) > 0)
    if (!take(s, chunk, (size_t)n))
      break;
  if (!s->is_late && n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  end(s, n != 0);
  return true;
}

void aside_clear(struct aside *s) {
  if (s->pid)
    end(s, true);
  buf_clear(&s->line);
  result_file_clear(&s->file);
  *s = (struct aside){0};
}

enum status aside_result(const struct aside *s, struct json_t **out, struct error *err) {
  assert(!s->pid);
  if (s->is_late)
    return fail(err, ST_TIMEOUT, "the job took longer than its limit and was stopped");
  if (!s->has_end)
    return fail(err, ST_BUG, "the process of the job ended before its result was there");
  return result_file_parse(&s->file, out, err);
}
