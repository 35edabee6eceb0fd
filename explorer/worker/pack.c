/* pack: see prefault.h.
 *
 * What the zygote has in small pages is copied into a child's tables entry by entry and let go of likewise, and each
 * entry touches the kernel's record of one page, somewhere in memory: seven thousand of them for one small job.  Pages
 * that are parts of a huge one lie next to each other, and so do their records.  So what children share is copied into huge
 * pages, densely and without regard to borders, and the copies are moved to where the pages were.  A child still copies
 * only the small page that it writes.
 *
 * Assumes one thread.  Nothing may be written to memory that is going to be moved between its copying and its moving;
 * only system calls are made meanwhile.  Code is moved while it runs: what stands at an address stays the same.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "worker/prefault.h"

enum {
  PAGE = PREFAULT_PAGE,
  CHUNK = 512, /* pages looked at in one read */
  GAP = 16,    /* pages between two wanted ones that are taken along */
  LEAST = 16,  /* pages; a shorter run is not worth a mapping of its own */
  RUNS_MAX = 256,
  MAPPINGS_MAX = 512,
};

struct run {
  uintptr_t from, to;
  int prot;
};

struct packing {
  const struct prefault *known;
  int at; /* in known: ranges before it lie before what is looked at */
  int pagemap;
  struct run mappings[MAPPINGS_MAX], runs[RUNS_MAX];
  int n_mappings, n_runs;
};

/* Private memory in small pages that can be read, by rising address. */
static void find_mappings(struct packing *p) {
  FILE *f = fopen("/proc/self/smaps", "re");
  char line[512], mode[5], name[16];
  struct run m = {0};
  uintptr_t from, to;
  long huge_kib;
  bool is_wanted = false;

  while (f && p->n_mappings < MAPPINGS_MAX && fgets(line, sizeof line, f)) {
    *name = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %15s", &from, &to, mode, name) >= 3) {
      m = (struct run){from, to, PROT_READ | (mode[1] == 'w' ? PROT_WRITE : 0) | (mode[2] == 'x' ? PROT_EXEC : 0)};
      is_wanted = mode[0] == 'r' && mode[3] == 'p' && (*name != '[' || !strcmp(name, "[heap]"));
    } else if (is_wanted && sscanf(line, "AnonHugePages: %ld", &huge_kib) == 1 && !huge_kib) {
      p->mappings[p->n_mappings++] = m;
    }
  }
  if (f)
    fclose(f);
}

/* Whether children read the page at this address; asked by rising address. */
static bool is_read(struct packing *p, uintptr_t page) {
  const struct prefault *k = p->known;
  while (p->at < k->n && k->v[p->at].at + k->v[p->at].len <= page)
    p->at++;
  return p->at < k->n && k->v[p->at].at <= page && !k->v[p->at].is_written;
}

static void end_run(struct packing *p, struct run *r, size_t wanted) {
  const size_t pages = (r->to - r->from) / PAGE;
  if (pages >= LEAST && wanted >= pages / 2 && p->n_runs < RUNS_MAX)
    p->runs[p->n_runs++] = *r;
  r->from = r->to = 0;
}

/* Adds the runs of pages that a child will have, or want, in one mapping. */
static void find_runs(struct packing *p, const struct run *m) {
  uint64_t v[CHUNK];
  struct run r = {.prot = m->prot};
  size_t wanted = 0;

  for (uintptr_t at = m->from; at < m->to;) {
    size_t n = (m->to - at) / PAGE < CHUNK ? (m->to - at) / PAGE : CHUNK;
    ssize_t got = pread(p->pagemap, v, n * sizeof *v, (off_t)(at / PAGE * sizeof *v));
    if (got <= 0)
      break;
    n = (size_t)got / sizeof *v;
    for (size_t i = 0; i < n; i++, at += PAGE) {
      bool is_ours = v[i] & PAGE_PRESENT && !(v[i] & PAGE_OF_FILE);
      if (!is_ours && !is_read(p, at))
        continue;
      if (r.from && at - r.to > GAP * PAGE) {
        end_run(p, &r, wanted);
        wanted = 0;
      }
      if (!r.from)
        r.from = at;
      r.to = at + PAGE;
      wanted++;
    }
  }
  if (r.from)
    end_run(p, &r, wanted);
}

/* Copies the runs one after another into huge pages, *len bytes; NULL when there are none to be had. */
static char *copy_runs(const struct packing *p, size_t *len) {
  size_t total = 0;
  for (int i = 0; i < p->n_runs; i++)
    total += p->runs[i].to - p->runs[i].from;
  *len = (total + PREFAULT_HUGE - 1) & ~(size_t)(PREFAULT_HUGE - 1);
  char *copy = total ? hugetext_room(*len) : NULL, *to = copy;
  if (!copy)
    return NULL;
  for (int i = 0; i < p->n_runs; i++) {
    const size_t n = p->runs[i].to - p->runs[i].from;
    memcpy(to, (const void *)p->runs[i].from, n);
    to += n;
  }
  if (!madvise(copy, *len, MADV_COLLAPSE))
    return copy;
  munmap(copy, *len);
  return NULL;
}

#ifdef __SANITIZE_ADDRESS__ /* has terabytes of its own, and forbids to read between what is allocated */
static const bool may_pack = false;
#else
static const bool may_pack = true;
#endif

void pack_shared(const struct prefault *known) {
  static struct packing p; /* once in a process's life */
  size_t len, left;

  if (!may_pack)
    return;
  p.known = known;
  find_mappings(&p);
  p.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < p.n_mappings; i++)
    find_runs(&p, &p.mappings[i]);
  if (p.pagemap >= 0)
    close(p.pagemap);
  char *from = copy_runs(&p, &len);
  if (!from)
    return;
  left = len;
  for (int i = 0; i < p.n_runs; i++) {
    const struct run *r = &p.runs[i];
    const size_t n = r->to - r->from;
    if (!hugetext_place(from, n, r->prot, r->from))
      break; /* the rest stays where it is */
    from += n;
    left -= n;
  }
  munmap(from, left);
  log_debug("pack", "runs=%d kib=%zu", p.n_runs, (len - left) >> 10);
}
