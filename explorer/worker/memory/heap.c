/* heap: see memory.h.
 *
 * After warming up, the heap has many free pieces between used ones.  A child that allocates from them copies page after
 * page of the zygote's heap, about a thousand pages for a small job.  So these pieces are allocated here and never freed,
 * and one large block of fresh memory is left free, which children fill from its start.  Its first huge page holds what a
 * small job needs.  The zygote must not touch the block, or a child would copy those pages in small pieces; for what the
 * zygote still allocates, a small block is left free before it.
 */
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/log.h"
#include "worker/memory/pages.h"

enum {
  ROOM = 16 << 20,        /* left free; a job that needs more extends the heap as usual */
  LARGE = 32 << 20,       /* glibc's upper bound of M_MMAP_THRESHOLD */
  OURS = 64 << 10,        /* for the zygote */
  SMALL_STEPS = 1024,     /* below it, each size that malloc distinguishes is tried */
  CACHED_MAX = 256 << 10, /* in glibc's per-thread cache, which mallinfo2 does not count as free */
};

void heap_set_aside(void) {
  /* one heap that is never trimmed: children live for one job */
  mallopt(M_MMAP_THRESHOLD, LARGE);
  mallopt(M_TRIM_THRESHOLD, LARGE);
  char *ours = malloc(OURS), *room = aligned_alloc(PAGE_HUGE, ROOM);
  size_t filled = 0;

  if (!ours || !room) {
    free(ours);
    free(room);
    return;
  }
  assert((uintptr_t)room % PAGE_HUGE == 0);
  const size_t holes = mallinfo2().fordblks + CACHED_MAX; /* with an allocator other than glibc's, only CACHED_MAX */
  for (size_t size = ROOM / 2; size >= 16; size -= size > SMALL_STEPS ? size / 8 : 8) {
    char *hole = NULL;
    while (filled < holes && (hole = malloc(size)) && hole < room) {
      filled += malloc_usable_size(hole);
      hole = NULL;
    }
    free(hole); /* it comes after the room, so it is no hole */
  }
  /* The first huge page is left out: prefault knows its small pages.  Where the kernel has no huge pages, it uses small
   * ones. */
  madvise(room + PAGE_HUGE, ROOM - PAGE_HUGE, MADV_HUGEPAGE);
  free(room);
  free(ours);
  log_debug("heap", "filled_kib=%zu", filled >> 10);
}
