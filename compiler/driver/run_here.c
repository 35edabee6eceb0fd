/* run_here: see the header. */
#include "driver/run_here.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/shrink.h"
#include "trace/trace.h"

enum { DIED_STATUS = 17 };

static enum status run_in_process(void *user, const struct job *job, int ms, frame_sink see, void *see_user,
                                  enum job_end *end, struct error *err) {
  (void)ms;
  *end = JOB_ENDED;
  const enum status st = compile_run(user, job, see, see_user);
  return st == ST_OK || st == ST_INPUT ? ST_OK : fail(err, st, "a limit was reached");
}

struct job_runner run_here(struct ir *ir) {
  return (struct job_runner){run_in_process, ir};
}

/* In the new process: runs the job and ends. */
static _Noreturn void run_child(struct ir *ir, const struct job *job, int ms, frame_sink see, void *see_user) {
  const struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}};
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) { /* what candidates print is of no interest */
    dup2(null, STDERR_FILENO);
    dup2(null, STDOUT_FILENO);
  }
  signal(SIGALRM, SIG_DFL);
  setitimer(ITIMER_REAL, &timer, NULL);
  trace_after_fork(job->seed);
  const enum status st = compile_run(ir, job, see, see_user);
  _exit(st == ST_OK || st == ST_INPUT || st == ST_LIMIT ? 0 : DIED_STATUS);
}

static enum status run_in_fork(void *user, const struct job *job, int ms, frame_sink see, void *see_user,
                               enum job_end *end, struct error *err) {
  int status = 0;
  if (job->shrink.is_set) /* it executes nothing of the kernel, and its answer is for this process */
    return run_in_process(user, job, ms, see, see_user, end, err);
  fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0)
    return fail(err, ST_IO, "fork: %m");
  if (pid == 0)
    run_child(user, job, ms, see, see_user);
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return fail(err, ST_IO, "waitpid: %m");
  const bool is_late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  *end = is_late ? JOB_LATE : WIFSIGNALED(status) || WEXITSTATUS(status) ? JOB_DIED : JOB_ENDED;
  return ST_OK;
}

struct job_runner run_alone(struct ir *ir) {
  return (struct job_runner){run_in_fork, ir};
}

/* ---- a search as frames ------------------------------------------------------------------------------------------ */

struct search {
  frame_sink sink;
  void *user;
  enum status st; /* of the sink */
};

static void say(struct search *s, struct buf *b) {
  if (!s->st)
    s->st = buf_status(b) ? buf_status(b) : s->sink(s->user, buf_text(b), b->len);
  buf_clear(b);
}

static void say_step(void *user, const struct shrink_step *step) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  shrink_put_step(&b, step);
  say(user, &b);
}

static void say_start(struct search *s, const struct job *job) {
  size_t len;
  char key[JOB_KEY_SIZE] = "", *text = job_dump(job, &len);
  struct buf b;
  if (text)
    job_key(text, len, key);
  free(text);
  buf_init(&b, FRAME_MAX);
  frames_put_start(&b, key, language_name(job->language), target_name(job->target), pipeline_version());
  say(s, &b);
}

static void say_error(struct search *s, const char *message) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"diagnostic\",\"diagnostic\":{");
  json_put_field_str(&b, "severity", "error");
  json_put_field_str(&b, "code", diag_code_name(DG_SEARCH));
  json_put_field_str(&b, "message", message);
  buf_puts(&b, "}}");
  say(s, &b);
}

enum status run_shrink(struct ir *ir, const struct job *job, frame_sink sink, void *user) {
  const struct job_runner runner = run_alone(ir);
  const int64_t began_us = clock_now_us();
  struct search s = {sink, user, ST_OK};
  struct shrink_result r;
  struct arena a;
  struct error err;
  struct buf b;
  arena_init(&a);
  say_start(&s, job);
  const enum status st =
      shrink_search(&runner, &a, job, job->shrink_seconds, job->shrink_candidates, say_step, &s, &r, &err);
  buf_init(&b, FRAME_MAX);
  if (st) {
    say_error(&s, err.text);
  } else {
    shrink_put_result(&b, &r);
    json_decref(r.changes);
    say(&s, &b);
  }
  buf_printf(&b, "{\"frame\":\"end\",\"status\":\"%s\",\"time_us\":%lld}", st ? "error" : "ok",
             (long long)(clock_now_us() - began_us));
  say(&s, &b);
  arena_clear(&a);
  return s.st ? s.st : st;
}
