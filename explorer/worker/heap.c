/* heap: see worker.h.
 *
 * After warming up, the heap is full of holes.  A child that fills them copies page after page of the zygote's heap, a
 * thousand for a small job.  So the holes are allocated here, for good, and a large piece of fresh memory is left free,
 * which children fill from its start; a few huge pages hold what a small job needs.  None of them may be the zygote's
 * already, or a child would copy it in small pieces: a small piece before them is left for what the zygote still needs.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"
#include "worker/prefault.h"
#include "worker/worker.h"

enum {
  HUGE = PREFAULT_HUGE,
  ROOM = 16 << 20,    /* left free; a job that needs more gets it from the system, as ever */
  LARGE = 32 << 20,   /* the largest that glibc takes */
  OURS = 64 << 10,    /* the zygote's */
  SMALL_STEPS = 1024, /* below it, every size there is */
  KEPT = 256 << 10,   /* most that glibc's cache holds, which it does not count as free: 7 of each small size */
};

void heap_set_aside(void) {
  /* everything from one heap, which stays as large as it gets: children live for one job */
  mallopt(M_MMAP_THRESHOLD, LARGE);
  mallopt(M_TRIM_THRESHOLD, LARGE);
  char *ours = malloc(OURS), *room = aligned_alloc(HUGE, ROOM);
  size_t filled = 0;

  if (!ours || !room)
    return;
  const size_t holes = mallinfo2().fordblks + KEPT; /* where malloc is not glibc's, some of them */
  for (size_t size = ROOM / 2; size >= 16; size -= size > SMALL_STEPS ? size / 8 : 8) {
    char *hole = NULL;
    while (filled < holes && (hole = malloc(size)) && hole < room) {
      filled += malloc_usable_size(hole);
      hole = NULL;
    }
    free(hole); /* this one lies behind the room */
  }
  /* where there are none, small ones do; the first piece is for small jobs, whose pages prefault knows */
  madvise(room + HUGE, ROOM - HUGE, MADV_HUGEPAGE);
  free(room);
  free(ours);
  log_debug("heap", "filled_kib=%zu", filled >> 10);
}
