/* heap: see worker.h.
 *
 * After warming up, the heap is full of holes.  A child that fills them copies page after page of the zygote's heap, a
 * thousand for a small job.  So the holes are allocated here, for good, and a large piece of fresh memory is left free,
 * which children fill from its start; a few huge pages hold what a small job needs.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"
#include "worker/worker.h"

enum {
  HUGE = 2 << 20,
  ROOM = 16 << 20,    /* left free; a job that needs more gets it from the system, as ever */
  LARGE = 32 << 20,   /* the largest that glibc takes */
  SMALL_STEPS = 1024, /* below it, every size there is */
};

void heap_set_aside(void) {
  /* everything from one heap, which stays as large as it gets: children live for one job */
  mallopt(M_MMAP_THRESHOLD, LARGE);
  mallopt(M_TRIM_THRESHOLD, LARGE);
  const size_t holes = mallinfo2().fordblks; /* 0 where malloc is not glibc's */
  char *room = malloc(ROOM);
  size_t filled = 0;
  if (!room)
    return;
  for (size_t size = ROOM / 2; size >= 16; size -= size > SMALL_STEPS ? size / 8 : 8) {
    char *hole = NULL;
    while (filled < holes && (hole = malloc(size)) && hole < room) {
      filled += malloc_usable_size(hole);
      hole = NULL;
    }
    free(hole); /* this one lies behind the room */
  }
  uintptr_t from = ((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1), to = (uintptr_t)room + ROOM;
  madvise((void *)from, (to & ~(uintptr_t)(HUGE - 1)) - from, MADV_HUGEPAGE); /* where there are none, small ones do */
  free(room);
  log_debug("heap", "filled_kib=%zu", filled >> 10);
}
