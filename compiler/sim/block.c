#include "sim/block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { KEPT_MAX = 64, HUGE_PAGE = 2 << 20 /* bytes of a large page */ };
static const size_t KEPT_BYTES_MAX = 32 << 20;

/* Those that were given back, the oldest first. */
static struct {
  pthread_mutex_t lock;
  int n;
  size_t bytes;
  struct {
    char *block;
    size_t size;
  } v[KEPT_MAX];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Removes number k.  The caller has the lock. */
static char *remove_kept(int k) {
  char *block = kept.v[k].block;
  kept.bytes -= kept.v[k].size;
  kept.n--;
  memmove(&kept.v[k], &kept.v[k + 1], (size_t)(kept.n - k) * sizeof kept.v[0]);
  return block;
}

static char *take_kept(size_t size) {
  char *block = NULL;
  pthread_mutex_lock(&kept.lock);
  for (int k = kept.n - 1; !block && k >= 0; k--) /* the last one may still be in a cache */
    if (kept.v[k].size == size)
      block = remove_kept(k);
  pthread_mutex_unlock(&kept.lock);
  return block;
}

char *sim_block_take(size_t size) {
  char *block = take_kept(size);
  if (block || size < 2 * HUGE_PAGE)
    return block ? block : malloc(size);
  block = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (block) /* instructions go through all partitions, which are far apart: large pages make that faster */
    madvise(block, size, MADV_HUGEPAGE);
  return block;
}

void sim_block_give(char *block, size_t size) {
  if (!block || size > KEPT_BYTES_MAX) {
    free(block);
    return;
  }
  pthread_mutex_lock(&kept.lock);
  while (kept.n == KEPT_MAX || kept.bytes + size > KEPT_BYTES_MAX)
    free(remove_kept(0));
  kept.v[kept.n].block = block;
  kept.v[kept.n++].size = size;
  kept.bytes += size;
  pthread_mutex_unlock(&kept.lock);
}
