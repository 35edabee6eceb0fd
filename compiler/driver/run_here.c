/* run_here: see the header. */
#include "driver/run_here.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/compile.h"
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
