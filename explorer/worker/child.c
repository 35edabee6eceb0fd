/* One child: jail, one job, exit.
 *
 * Once the job is read, its author controls this process: ctypes gives Python code the whole address space.  So nothing
 * here is trusted from then on; the server checks every byte that comes back.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "driver/compile.h"
#include "pool/wire.h"
#include "trace/trace.h"
#include "worker/worker.h"

static bool read_all(int fd, void *p, size_t n) {
  for (char *at = p; n;) {
    ssize_t k = read(fd, at, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

static enum status send_frame(void *user, const char *json, size_t len) {
  int fd = *(const int *)user;
  unsigned char head[WIRE_HEADER];
  struct iovec v[2] = {{head, sizeof head}, {(void *)json, len}};

  wire_put_len(head, (uint32_t)len);
  for (int i = 0; i < 2;) {
    ssize_t k = writev(fd, v + i, 2 - i);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0)
      return ST_IO;
    for (; i < 2 && (size_t)k >= v[i].iov_len; i++)
      k -= (ssize_t)v[i].iov_len;
    if (i < 2) {
      v[i].iov_base = (char *)v[i].iov_base + k;
      v[i].iov_len -= (size_t)k;
    }
  }
  return ST_OK;
}

/* The job's text, in the arena.  NULL when it does not arrive whole; an idle child also gets NULL when the server ends. */
static char *read_job(struct arena *a, int fd, size_t *len) {
  unsigned char head[WIRE_HEADER];
  if (!read_all(fd, head, sizeof head))
    return NULL;
  *len = wire_get_len(head);
  if (*len > JOB_WIRE_MAX)
    return NULL;
  char *text = arena_alloc(a, *len + 1);
  return read_all(fd, text, *len) ? text : NULL;
}

/* The part of the resident memory that a simulated run may take for its data; the rest is for a byte that goes with each
 * element, for inputs, outputs and the stages. */
enum { SIMULATION_PART = 3 };

static int serve(const struct jail_limits *limits, struct ir *ir, int fd) {
  struct arena a;
  struct job job;
  struct error err;
  char key[JOB_KEY_SIZE];
  size_t len;

  arena_init(&a);
  char *text = read_job(&a, fd, &len);
  if (!text || job_parse(&a, text, len, &job, &err))
    return EXIT_JOB_LOST;
  job_key(text, len, key); /* the server sends what job_dump wrote */
  job.key = key;
  if (limits->wall_ms)
    job.deadline_us = clock_now_us() + limits->wall_ms * INT64_C(1000);
  job.memory_max = (int64_t)limits->resident_mib * (1 << 20) / SIMULATION_PART;
  switch (compile_run(ir, &job, send_frame, &fd)) {
  case ST_OK:
  case ST_INPUT:
  case ST_LIMIT:
  case ST_TIMEOUT:
    return 0;
  case ST_NOMEM:
    return EXIT_OOM;
  default:
    return EXIT_JOB_FAULT;
  }
}

void child_after_fork(void) {
  struct job defaults;
  job_init(&defaults);
  trace_after_fork(defaults.seed);
}

_Noreturn void child_main(const struct jail *j, int64_t began_us, const struct memory_pages *pages, struct ir *ir,
                          int job_fd) {
  struct jail_report report;

  assert(job_fd >= 0 && began_us > 0);
  trace_warn_before_cpu_limit(j->limits.cpu_s); /* before the jail, which allows no timer */
  enum status st = jail_enter(j, &job_fd, WIRE_JOB_FD, &report);
  report.took_us = (int32_t)(clock_now_us() - began_us);
  if (write(job_fd, &report, sizeof report) != (ssize_t)sizeof report || st)
    _exit(EXIT_JOB_LOST);
  /* the costs of forking, paid while there is no job */
  if (!memory_prefault(pages, job_fd))
    _exit(EXIT_JOB_LOST);
  child_after_fork();
  _exit(serve(&j->limits, ir, job_fd));
}
