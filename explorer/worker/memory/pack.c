/* pack: see memory.h.
 *
 * What the zygote has in small pages is copied into a child's page tables entry by entry and released entry by entry.
 * Each entry touches the kernel's record of one page, and these records are scattered over memory: seven thousand of them
 * for one small job.  The parts of a huge page lie next to each other, and so do their records.  So what children share
 * is copied into huge pages, without gaps and whatever the borders of mappings, and parts of these are then moved to the
 * old addresses.  A child that writes still copies one small page.
 *
 * Assumes one thread.  Between the copy and the move nothing may write to that memory: only system calls are made in
 * between.  Code is moved while it runs, which is safe because the bytes at each address stay the same.
 */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "worker/memory/pages.h"

enum {
  GAP = 16,     /* unwanted pages between two wanted ones that are copied with them */
  RUN_MIN = 16, /* pages; a shorter run is not worth a mapping of its own */
  RUNS_MAX = 256,
  MAPPINGS_MAX = 512,
};

struct run {
  uintptr_t from, to;
  int prot;
};

struct packing {
  const struct memory_pages *known;
  int at; /* index in known: earlier ranges end before the page that is looked at */
  int pagemap;
  struct run mappings[MAPPINGS_MAX], runs[RUNS_MAX];
  int n_mappings, n_runs;
  int n_dropped; /* mappings and runs beyond these numbers: they stay in small pages */
};

/* Finds readable private memory that has no huge pages yet, in rising order of addresses. */
static void find_mappings(struct packing *p) {
  FILE *f = fopen("/proc/self/smaps", "re");
  char line[512], mode[5], name[16];
  struct run m = {0};
  uintptr_t from, to;
  long huge_kib;
  bool is_wanted = false;

  while (f && fgets(line, sizeof line, f)) {
    *name = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %15s", &from, &to, mode, name) >= 3) {
      m = (struct run){from, to, PROT_READ | (mode[1] == 'w' ? PROT_WRITE : 0) | (mode[2] == 'x' ? PROT_EXEC : 0)};
      is_wanted = mode[0] == 'r' && mode[3] == 'p' && (*name != '[' || !strcmp(name, "[heap]"));
    } else if (is_wanted && sscanf(line, "AnonHugePages: %ld", &huge_kib) == 1 && !huge_kib) {
      if (p->n_mappings < MAPPINGS_MAX)
        p->mappings[p->n_mappings++] = m;
      else
        p->n_dropped++;
    }
  }
  if (f)
    fclose(f);
}

/* Whether jobs read the page at this address; callers ask in rising order of addresses. */
static bool is_read(struct packing *p, uintptr_t page) {
  const struct memory_pages *k = p->known;
  while (p->at < k->n && k->v[p->at].at + k->v[p->at].len <= page)
    p->at++;
  return p->at < k->n && k->v[p->at].at <= page && !k->v[p->at].is_written;
}

/* Keeps the run if it is long enough and at least half of its pages are wanted; *r is empty afterwards. */
static void end_run(struct packing *p, struct run *r, size_t wanted) {
  const size_t pages = (r->to - r->from) / PAGE_SIZE;
  assert(wanted <= pages && (!p->n_runs || p->runs[p->n_runs - 1].to <= r->from));
  if (pages >= RUN_MIN && wanted >= pages / 2) {
    if (p->n_runs < RUNS_MAX)
      p->runs[p->n_runs++] = *r;
    else
      p->n_dropped++;
  }
  r->from = r->to = 0;
}

/* Adds the runs of pages in one mapping that a child shares with the zygote or will read. */
static void find_runs(struct packing *p, const struct run *m) {
  uint64_t v[PAGE_CHUNK];
  struct run r = {.prot = m->prot};
  size_t wanted = 0;

  for (uintptr_t at = m->from; at < m->to;) {
    size_t n = (m->to - at) / PAGE_SIZE < PAGE_CHUNK ? (m->to - at) / PAGE_SIZE : PAGE_CHUNK;
    ssize_t got = pread(p->pagemap, v, n * sizeof *v, (off_t)(at / PAGE_SIZE * sizeof *v));
    if (got <= 0)
      break;
    n = (size_t)got / sizeof *v;
    for (size_t i = 0; i < n; i++, at += PAGE_SIZE) {
      bool is_ours = v[i] & PAGE_PRESENT && !(v[i] & PAGE_OF_FILE);
      if (!is_ours && !is_read(p, at))
        continue;
      if (r.from && at - r.to > GAP * PAGE_SIZE) {
        end_run(p, &r, wanted);
        wanted = 0;
      }
      if (!r.from)
        r.from = at;
      r.to = at + PAGE_SIZE;
      wanted++;
    }
  }
  if (r.from)
    end_run(p, &r, wanted);
}

/* Copies the runs one after another into huge pages of *len bytes; NULL when there are none. */
static char *copy_runs(const struct packing *p, size_t *len) {
  size_t total = 0;
  for (int i = 0; i < p->n_runs; i++)
    total += p->runs[i].to - p->runs[i].from;
  *len = (total + PAGE_HUGE - 1) & ~(size_t)(PAGE_HUGE - 1);
  char *copy = total ? huge_alloc(*len) : NULL, *to = copy;
  if (!copy)
    return NULL;
  for (int i = 0; i < p->n_runs; i++) {
    const size_t n = p->runs[i].to - p->runs[i].from;
    memcpy(to, (const void *)p->runs[i].from, n);
    to += n;
  }
  if (huge_collapse(copy, *len))
    return copy;
  munmap(copy, *len);
  return NULL;
}

/* Moves the copies over the originals; returns how many bytes were moved.  It writes to the stack only, which stays where
 * it is: a write to an original that is about to be replaced would be lost. */
static size_t move_runs(const struct packing *p, char *from, size_t len) {
  size_t moved = 0;
  for (int i = 0; i < p->n_runs; i++) {
    const struct run *r = &p->runs[i];
    const size_t n = r->to - r->from;
    if (!huge_move(from + moved, n, r->prot, r->from))
      break; /* the others stay where they are */
    moved += n;
  }
  if (moved < len)
    munmap(from + moved, len - moved);
  return moved;
}

#ifdef __SANITIZE_ADDRESS__ /* it maps terabytes of its own, and forbids reads between allocations */
static const bool may_pack = false;
#else
static const bool may_pack = true;
#endif

void pack_shared(const struct memory_pages *known) {
  static struct packing p; /* called once; not from the heap, which is moved */
  size_t len;

  if (!may_pack)
    return;
  p.known = known;
  find_mappings(&p);
  p.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < p.n_mappings; i++)
    find_runs(&p, &p.mappings[i]);
  if (p.pagemap >= 0)
    close(p.pagemap);
  char *copy = copy_runs(&p, &len);
  const size_t moved = copy ? move_runs(&p, copy, len) : 0;
  if (p.n_dropped)
    log_warn("pack", "dropped=%d mappings or runs", p.n_dropped);
  log_debug("pack", "runs=%d kib=%zu", p.n_runs, moved >> 10);
}
