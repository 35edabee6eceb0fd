/* hugetext: see memory.h.
 *
 * A forked child has no page table entries for the pages of mapped files: it takes thousands of small faults for code
 * that every job runs, and the kernel releases as many entries at its end.  Anonymous memory is mapped in a child from
 * its start, and a huge page of it is one entry.  So the parts of libraries that jobs use are copied into huge pages,
 * which then replace them at the same addresses; all children share the copies.
 *
 * Assumes one thread, and that neither this file's code nor libc's is moved: both are smaller than a huge
 * page, and only whole huge pages are moved.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "worker/memory/pages.h"

enum {
  PAGES_HOT = 12, /* of the 512 in a huge page: from here on the faults cost more than its memory is worth */
  MOVED_MAX = 80, /* huge pages */
  MAPPINGS_MAX = 64,
};

struct mapping {
  uintptr_t from, to;
  int prot;
};

/* How many pages of the list are read by jobs and lie in [at, at + PAGE_HUGE). */
static size_t pages_read(const struct memory_pages *p, uintptr_t at) {
  size_t n = 0;
  for (int i = 0; i < p->n && p->v[i].at < at + PAGE_HUGE; i++) {
    uintptr_t from = p->v[i].at, to = from + p->v[i].len;
    if (p->v[i].is_written || to <= at)
      continue;
    from = from > at ? from : at;
    to = to < at + PAGE_HUGE ? to : at + PAGE_HUGE;
    n += (to - from) / PAGE_SIZE;
  }
  assert(n <= PAGE_HUGE / PAGE_SIZE);
  return n;
}

/* Replaces [from, to) with a copy in huge pages.  False: nothing has changed. */
static bool move(uintptr_t from, uintptr_t to, int prot) {
  const size_t len = to - from;
  assert(from < to && from % PAGE_HUGE == 0);
  char *copy = huge_alloc(len);
  if (!copy)
    return false;
  memcpy(copy, (const void *)from, len);
  if (huge_collapse(copy, len) && huge_move(copy, len, prot, from))
    return true;
  munmap(copy, len);
  return false;
}

/* Moves the hot runs of one mapping, `most` huge pages at most; returns how many it moved. */
static size_t move_hot(const struct memory_pages *p, const struct mapping *m, size_t most) {
  uintptr_t at = (m->from + PAGE_HUGE - 1) & ~(uintptr_t)(PAGE_HUGE - 1), from = 0;
  size_t moved = 0;
  for (;; at += PAGE_HUGE) {
    bool is_inside = at + PAGE_HUGE <= m->to;
    bool is_hot = is_inside && pages_read(p, at) >= PAGES_HOT && moved + (from ? (at - from) / PAGE_HUGE : 0) < most;
    if (is_hot && !from)
      from = at;
    if (!is_hot && from) {
      if (!move(from, at, m->prot))
        return moved;
      moved += (at - from) / PAGE_HUGE;
      from = 0;
    }
    if (!is_inside)
      return moved;
  }
}

/* Finds the read-only private mappings of files that are large enough; our own code is left where it is. */
static int find_mappings(struct mapping found[MAPPINGS_MAX]) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512], mode[5], file;
  int n = 0;
  while (maps && n < MAPPINGS_MAX && fgets(line, sizeof line, maps)) {
    struct mapping m;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %c", &m.from, &m.to, mode, &file) != 4 ||
        m.to - m.from < PAGE_HUGE || mode[0] != 'r' || mode[1] != '-' || mode[3] != 'p' || file != '/')
      continue;
    if ((uintptr_t)hugetext_move >= m.from && (uintptr_t)hugetext_move < m.to)
      continue;
    m.prot = PROT_READ | (mode[2] == 'x' ? PROT_EXEC : 0);
    found[n++] = m;
  }
  if (maps)
    fclose(maps);
  return n;
}

void hugetext_move(const struct memory_pages *p) {
  struct mapping found[MAPPINGS_MAX];
  const int n = find_mappings(found); /* before the first move, which changes the file that it reads */
  size_t moved = 0;
  for (int i = 0; i < n && moved < MOVED_MAX; i++)
    moved += move_hot(p, &found[i], MOVED_MAX - moved);
  log_debug("hugetext", "mib=%zu", moved * (PAGE_HUGE >> 20));
}
