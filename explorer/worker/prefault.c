/* prefault: see worker.h.
 *
 * A forked child shares the zygote's pages: the first write to each is a fault and a copy, and what the zygote mapped of
 * files is not mapped in the child at all.  A small job pays many such faults, a fifth of its time.
 * Some of those pages are the same for every job, so one child is asked: it compiles the least of kernels, then looks up
 * in /proc/self/pagemap which of its pages are its own by now.  Every later child gets these pages while it waits for its
 * job.  Where the kernel does not offer this (MADV_POPULATE_* came with 5.14) nothing is lost but time.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "worker/prefault.h"
#include "worker/worker.h"

enum {
  CHUNK = 512,      /* pages looked at in one read */
  SOON_MS = 3,      /* a child whose job comes this soon is wanted now, not kept in stock */
  LOOK_EVERY = 8,   /* ranges taken between two looks for a job */
  PROBE_MAX_S = 20, /* the probe is ended then */
};

/* ---- the probe -------------------------------------------------------------------------------------------------- */

static void add(struct prefault *p, uintptr_t at, size_t len, bool is_written) {
  struct prefault_range *last = p->n ? &p->v[p->n - 1] : NULL;
  if (last && last->is_written == is_written && last->at + last->len == at)
    last->len += len;
  else if (p->n < PREFAULT_RANGES_MAX)
    p->v[p->n++] = (struct prefault_range){at, len, is_written};
}

/* The pages of one mapping that the job has made its own or has read. */
static void look_at(struct prefault *p, int pagemap, uintptr_t from, uintptr_t to, bool is_writable) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint64_t v[CHUNK];

  while (from < to) {
    size_t n = (to - from) / page < CHUNK ? (to - from) / page : CHUNK;
    ssize_t got = pread(pagemap, v, n * sizeof *v, (off_t)(from / page * sizeof *v));
    if (got <= 0)
      return;
    n = (size_t)got / sizeof *v;
    for (size_t i = 0; i < n; i++) {
      bool is_mine = is_writable && !(v[i] & PAGE_OF_FILE) && v[i] & PAGE_EXCLUSIVE;
      if (v[i] & PAGE_PRESENT && (is_mine || v[i] & PAGE_OF_FILE))
        add(p, from + i * page, page, is_mine);
    }
    from += n * page;
  }
}

static void look_around(struct prefault *p) {
  FILE *maps = fopen("/proc/self/maps", "re");
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  char line[512], mode[5];
  uintptr_t from, to;

  while (maps && pagemap >= 0 && fgets(line, sizeof line, maps))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) == 3 && mode[0] == 'r' && mode[3] == 'p')
      look_at(p, pagemap, from, to, mode[1] == 'w');
  if (maps)
    fclose(maps);
  if (pagemap >= 0)
    close(pagemap);
}

static _Noreturn void probe(struct ir *ir, enum worker_kernel which, struct prefault *out) {
  struct error err;
  alarm(PROBE_MAX_S);
  child_is_forked();
  if (!worker_compile_kernel(ir, which, false, &err))
    look_around(out);
  _exit(0);
}

static enum status learn(struct ir *ir, enum worker_kernel which, struct prefault *out, struct error *err) {
  /* shared, so that the probe can write it; no child may, so it does not stay */
  struct prefault *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = -1;

  if (seen == MAP_FAILED)
    return fail(err, ST_NOMEM, "prefault");
  PyOS_BeforeFork();
  pid_t pid = fork();
  if (!pid)
    probe(ir, which, seen);
  PyOS_AfterFork_Parent();
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
    log_warn("prefault", "the probe failed; jobs will take longer");
  else
    memcpy(out, seen, sizeof *out);
  munmap(seen, sizeof *seen);
  return ST_OK;
}

enum status prefault_learn(struct ir *ir, struct prefault **out, struct error *err) {
  static struct prefault p[1]; /* not from the heap, whose fresh memory is the children's */
  enum status st = learn(ir, WORKER_ANY_KERNEL, p, err);
  if (!st) {
    hugetext_move(p); /* what any kernel may run */
    pack_shared(p);
  }
  if (!st)
    st = learn(ir, WORKER_LEAST_KERNEL, p, err);
  *out = p;
  return st;
}

/* ---- a child ---------------------------------------------------------------------------------------------------- */

bool prefault_take(const struct prefault *p, int job_fd) {
  struct pollfd job = {.fd = job_fd, .events = POLLIN};
  bool is_in_stock = poll(&job, 1, SOON_MS) == 0;
  for (int i = 0; is_in_stock && i < p->n && (i % LOOK_EVERY || poll(&job, 1, 0) == 0); i++)
    if (madvise((void *)p->v[i].at, p->v[i].len, p->v[i].is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)) {
      /* a mapping of the probe's own, or a kernel that cannot */
    }
  return !(job.revents & POLLHUP);
}
