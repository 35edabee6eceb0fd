/* The commands of the terminal in forks of one warm process: a test does not wait for Python, NumPy and MLIR to start.
 *
 *   nkx-warm FD      FD: a stream socket, on which requests come one after another (tests/support/warm.py)
 *
 * A request is a length (uint32_t, native), so many bytes, and three descriptors for the command's standard streams.  The
 * bytes are the command's directory, NAME=VALUE for variables of its environment, and its arguments, each with a NUL.  The
 * answer is the process's number and, when it has ended, its exit status as wait() has it (int32_t each).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mlir-c/Diagnostics.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/compile.h"
#include "driver/main.h"
#include "driver/paths.h"
#include "trace/trace.h"

enum { REQUEST_MAX = 1 << 20, ARGUMENTS_MAX = 1000 };

static struct ir warm;
static bool is_taken;

/* The linker puts these in the place of the functions (--wrap): what is initialised is not initialised again. */
enum status __real_trace_init(const char *python_dir, const char *site_dir, struct error *err);
enum status __real_ir_init(struct ir *ir, struct error *err);
enum status __wrap_trace_init(const char *python_dir, const char *site_dir, struct error *err);
enum status __wrap_ir_init(struct ir *ir, struct error *err);

enum status __wrap_trace_init(const char *python_dir, const char *site_dir, struct error *err) {
  return Py_IsInitialized() ? ST_OK : __real_trace_init(python_dir, site_dir, err);
}

/* The context's own handler, which comes after this one, looks for the capture in `warm`. */
static MlirLogicalResult share_capture(MlirDiagnostic d, void *user) {
  (void)d;
  warm.capture = ((const struct ir *)user)->capture;
  return mlirLogicalResultFailure();
}

enum status __wrap_ir_init(struct ir *ir, struct error *err) {
  if (mlirContextIsNull(warm.ctx) || is_taken)
    return __real_ir_init(ir, err);
  is_taken = true;
  *ir = warm;
  mlirContextAttachDiagnosticHandler(ir->ctx, share_capture, ir, NULL);
  return ST_OK;
}

static enum status drop_frame(void *user, const char *json, size_t len) {
  (void)user;
  (void)json;
  (void)len;
  return ST_OK;
}

static enum status warm_up(struct error *err) {
  static const char kernel[] = "{\"source\":\"import numpy as np\\ndef warm(x):\\n    return np.exp(x @ x.T)\","
                               "\"inputs\":[{\"shape\":[64,32],\"dtype\":\"float32\"}],\"options\":{\"check\":true}}";
  struct arena a;
  struct paths paths;
  struct job job;

  arena_init(&a);
  job_init(&job);
  enum status st = paths_find(&a, &paths, err);
  if (!st)
    st = __real_trace_init(paths.python_dir, paths.site_dir, err);
  if (!st)
    st = __real_ir_init(&warm, err);
  if (!st)
    st = job_parse(&a, kernel, strlen(kernel), &job, err);
  if (!st)
    st = compile_run(&warm, &job, drop_frame, NULL);
  arena_clear(&a);
  return st;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* The length of the request, and its descriptors; 0 when the tests have ended. */
static uint32_t receive(int s, int fds[3]) {
  uint32_t len = 0;
  union {
    char bytes[CMSG_SPACE(3 * sizeof(int))];
    struct cmsghdr head;
  } control;
  struct msghdr m = {.msg_iov = &(struct iovec){&len, sizeof len},
                     .msg_iovlen = 1,
                     .msg_control = control.bytes,
                     .msg_controllen = sizeof control.bytes};
  const ssize_t n = recvmsg(s, &m, MSG_WAITALL | MSG_CMSG_CLOEXEC);
  const struct cmsghdr *c = n == sizeof len ? CMSG_FIRSTHDR(&m) : NULL;
  if (!c || c->cmsg_len != CMSG_LEN(3 * sizeof(int)))
    return 0;
  memcpy(fds, CMSG_DATA(c), 3 * sizeof(int));
  return len;
}

/* The command, in the child.  text: see the top of the file. */
static _Noreturn void run(int s, const int fds[3], char *text, uint32_t len) {
  char *argv[ARGUMENTS_MAX + 1] = {"nkx"};
  int argc = 1;
  for (char *at = text + strlen(text) + 1; at < text + len && argc < ARGUMENTS_MAX; at += strlen(at) + 1)
    if (argc == 1 && strchr(at, '='))
      putenv(at);
    else
      argv[argc++] = at;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) || chdir(text) || dup2(fds[0], 0) < 0 || dup2(fds[1], 1) < 0 ||
      dup2(fds[2], 2) < 0)
    _exit(125);
  close(s);
  PyOS_AfterFork_Child();
  exit(driver_main(argc, argv));
}

static bool serve(int s) {
  static char text[REQUEST_MAX + 1];
  int fds[3];
  int32_t answer[2];
  const uint32_t len = receive(s, fds);
  if (!len || len > REQUEST_MAX || recv(s, text, len, MSG_WAITALL) != (ssize_t)len)
    return false;
  text[len] = 0;
  PyOS_BeforeFork();
  const pid_t pid = fork();
  if (pid == 0)
    run(s, fds, text, len);
  PyOS_AfterFork_Parent();
  for (int i = 0; i < 3; i++)
    close(fds[i]);
  answer[0] = pid;
  if (pid < 0 || send(s, answer, sizeof *answer, MSG_NOSIGNAL) < 0 || waitpid(pid, &answer[1], 0) != pid)
    return false;
  return send(s, &answer[1], sizeof *answer, MSG_NOSIGNAL) == sizeof *answer;
}

int main(int argc, char **argv) {
  struct error err;
  if (argc != 2 || warm_up(&err)) {
    fprintf(stderr, "nkx-warm: %s\n", argc == 2 ? err.text : "expected a descriptor");
    return EXIT_FAILURE;
  }
  while (serve(atoi(argv[1])))
    ;
  return EXIT_SUCCESS;
}
