/* hugetext: see prefault.h.
 *
 * Pages of files are not mapped in a forked child until it touches them: thousands of small faults for code that every
 * job runs, and as many pages to let go of when it ends.  Anonymous memory is mapped at once, and a huge page of it is
 * one entry of a table, so the parts of libraries that jobs use are copied into such pages, which then take their
 * place.  The addresses, and what stands there, stay the same; the copies are shared by all children.
 *
 * Assumes one thread, and that none of this file's code or libc's lies in what is moved: those libraries are smaller
 * than a huge page.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "worker/prefault.h"

enum {
  PAGE = PREFAULT_PAGE,
  HUGE = PREFAULT_HUGE,
  PAGES_HOT = 12, /* of the 512 of a huge page: as many faults cost more than its share of memory is worth */
  MOVED_MAX = 80, /* huge pages */
};

struct mapping {
  uintptr_t from, to;
  int prot;
};

/* Pages on the list, for reading, in [at, at + HUGE). */
static size_t pages_read(const struct prefault *p, uintptr_t at) {
  size_t n = 0;
  for (int i = 0; i < p->n && p->v[i].at < at + HUGE; i++) {
    uintptr_t from = p->v[i].at, to = from + p->v[i].len;
    if (p->v[i].is_written || to <= at)
      continue;
    from = from > at ? from : at;
    to = to < at + HUGE ? to : at + HUGE;
    n += (to - from) / PAGE;
  }
  return n;
}

char *hugetext_room(size_t len) {
  char *all = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return NULL;
  char *room = (char *)(((uintptr_t)all + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
  if (room > all)
    munmap(all, (size_t)(room - all));
  munmap(room + len, (size_t)(all + HUGE - room));
  if (!madvise(room, len, MADV_HUGEPAGE))
    return room;
  munmap(room, len);
  return NULL;
}

bool hugetext_place(char *copy, size_t len, int prot, uintptr_t to) {
  if (prot != (PROT_READ | PROT_WRITE) && mprotect(copy, len, prot))
    return false;
  return mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to) == (void *)to;
}

/* Puts a copy in huge pages in the place of [from, to).  False: all is as it was. */
static bool move(uintptr_t from, uintptr_t to, int prot) {
  const size_t len = to - from;
  char *copy = hugetext_room(len);
  if (!copy)
    return false;
  memcpy(copy, (const void *)from, len);
  if (!madvise(copy, len, MADV_COLLAPSE) && hugetext_place(copy, len, prot, from))
    return true;
  munmap(copy, len);
  return false;
}

/* Moves the hot runs of one mapping; returns how many huge pages that took. */
static size_t move_hot(const struct prefault *p, const struct mapping *m, size_t most) {
  uintptr_t at = (m->from + HUGE - 1) & ~(uintptr_t)(HUGE - 1), from = 0;
  size_t moved = 0;
  for (;; at += HUGE) {
    bool is_hot =
        at + HUGE <= m->to && pages_read(p, at) >= PAGES_HOT && moved + (from ? (at - from) / HUGE : 0) < most;
    if (is_hot && !from)
      from = at;
    if (!is_hot && from) {
      if (!move(from, at, m->prot))
        return moved;
      moved += (at - from) / HUGE;
      from = 0;
    }
    if (at + HUGE > m->to)
      return moved;
  }
}

void hugetext_move(const struct prefault *p) {
  enum { MAPPINGS_MAX = 64 };
  struct mapping found[MAPPINGS_MAX];
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512], mode[5], file;
  size_t moved = 0;
  int n = 0;

  while (maps && n < MAPPINGS_MAX && fgets(line, sizeof line, maps)) {
    struct mapping m;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %c", &m.from, &m.to, mode, &file) != 4 ||
        m.to - m.from < HUGE || mode[0] != 'r' || mode[1] != '-' || mode[3] != 'p' || file != '/')
      continue;
    if ((uintptr_t)hugetext_move >= m.from && (uintptr_t)hugetext_move < m.to)
      continue;
    m.prot = PROT_READ | (mode[2] == 'x' ? PROT_EXEC : 0);
    found[n++] = m;
  }
  if (maps)
    fclose(maps); /* before the file's lines change */
  for (int i = 0; i < n && moved < MOVED_MAX; i++)
    moved += move_hot(p, &found[i], MOVED_MAX - moved);
  log_debug("hugetext", "mib=%zu", moved * (HUGE >> 20));
}
