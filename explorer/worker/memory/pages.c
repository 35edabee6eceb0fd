/* pages: which pages a job touches, and memory in huge pages.
 *
 * A forked process compiles a kernel and then reads in /proc/self/pagemap which of its pages are its own by now (it wrote
 * them) and which pages of files are mapped (it read them).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "worker/memory/pages.h"

enum { PROBE_MAX_S = 20 }; /* then the probe is killed */

/* ---- the probe -------------------------------------------------------------------------------------------------- */

static void add(struct memory_pages *p, uintptr_t at, bool is_written) {
  struct page_range *last = p->n ? &p->v[p->n - 1] : NULL;
  assert(!last || last->at + last->len <= at);
  if (last && last->is_written == is_written && last->at + last->len == at)
    last->len += PAGE_SIZE;
  else if (p->n < PAGE_RANGES_MAX)
    p->v[p->n++] = (struct page_range){at, PAGE_SIZE, is_written};
  else
    p->n_dropped++;
}

/* Adds the pages of one mapping that the job has written or read. */
static void add_mapping(struct memory_pages *p, int pagemap, uintptr_t from, uintptr_t to, bool is_writable) {
  uint64_t v[PAGE_CHUNK];

  while (from < to) {
    size_t n = (to - from) / PAGE_SIZE < PAGE_CHUNK ? (to - from) / PAGE_SIZE : PAGE_CHUNK;
    ssize_t got = pread(pagemap, v, n * sizeof *v, (off_t)(from / PAGE_SIZE * sizeof *v));
    if (got <= 0)
      return;
    n = (size_t)got / sizeof *v;
    for (size_t i = 0; i < n; i++) {
      bool is_written = is_writable && !(v[i] & PAGE_OF_FILE) && v[i] & PAGE_EXCLUSIVE;
      if (v[i] & PAGE_PRESENT && (is_written || v[i] & PAGE_OF_FILE))
        add(p, from + i * PAGE_SIZE, is_written);
    }
    from += n * PAGE_SIZE;
  }
}

static void add_all_mappings(struct memory_pages *p) {
  FILE *maps = fopen("/proc/self/maps", "re");
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  char line[512], mode[5];
  uintptr_t from, to;

  while (maps && pagemap >= 0 && fgets(line, sizeof line, maps))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) == 3 && mode[0] == 'r' && mode[3] == 'p')
      add_mapping(p, pagemap, from, to, mode[1] == 'w');
  if (maps)
    fclose(maps);
  if (pagemap >= 0)
    close(pagemap);
}

static _Noreturn void probe(memory_run run, void *user, enum memory_kernel which, struct memory_pages *out) {
  alarm(PROBE_MAX_S);
  if (run(user, which))
    add_all_mappings(out);
  _exit(0);
}

enum status pages_learn(memory_run run, void *user, enum memory_kernel which, struct memory_pages *out,
                        struct error *err) {
  /* Shared, so that the probe can write it.  It is unmapped again, because no child may write what others read. */
  struct memory_pages *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = -1;

  if (seen == MAP_FAILED)
    return fail(err, ST_NOMEM, "memory for the pages that jobs touch: %m");
  PyOS_BeforeFork();
  pid_t pid = fork();
  if (!pid)
    probe(run, user, which, seen);
  PyOS_AfterFork_Parent();
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
    log_warn("memory_probe", "the probe failed; jobs will take longer");
  else
    memcpy(out, seen, sizeof *out);
  if (out->n_dropped)
    log_warn("memory_probe", "dropped=%d page ranges beyond %d", out->n_dropped, PAGE_RANGES_MAX);
  munmap(seen, sizeof *seen);
  return ST_OK;
}

/* ---- huge pages ------------------------------------------------------------------------------------------------- */

char *huge_alloc(size_t len) {
  assert(len && len % PAGE_HUGE == 0);
  char *all = mmap(NULL, len + PAGE_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return NULL;
  char *aligned = (char *)(((uintptr_t)all + PAGE_HUGE - 1) & ~(uintptr_t)(PAGE_HUGE - 1));
  if (aligned > all)
    munmap(all, (size_t)(aligned - all));
  munmap(aligned + len, (size_t)(all + PAGE_HUGE - aligned));
  if (!madvise(aligned, len, MADV_HUGEPAGE))
    return aligned;
  munmap(aligned, len);
  return NULL;
}

bool huge_collapse(char *copy, size_t len) {
  return !madvise(copy, len, MADV_COLLAPSE);
}

bool huge_move(char *copy, size_t len, int prot, uintptr_t to) {
  assert(len && len % PAGE_SIZE == 0 && to % PAGE_SIZE == 0 && (uintptr_t)copy % PAGE_SIZE == 0);
  if (prot != (PROT_READ | PROT_WRITE) && mprotect(copy, len, prot))
    return false;
  return mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to) == (void *)to;
}
