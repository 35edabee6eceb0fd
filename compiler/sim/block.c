#include "sim/block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { KEPT_MAX = 64, HUGE_PAGE = 2 << 20 /* bytes of a large page */ };
/* Blocks are kept as long as all blocks together, those in use included, have no more bytes. */
static const size_t BYTES_MAX = 96 << 20;

/* Those that were given back, the oldest first. */
static struct {
  pthread_mutex_t lock;
  int n;
  size_t bytes, used; /* of those that are kept; of those that are in use */
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

/* Frees the oldest ones until so many bytes more are within the limit, or none is left.  The caller has the lock. */
static void make_room(size_t more) {
  while (kept.n && kept.bytes + kept.used + more > BYTES_MAX)
    free(remove_kept(0));
}

static char *take_kept(size_t size) {
  char *block = NULL;
  pthread_mutex_lock(&kept.lock);
  for (int k = kept.n - 1; !block && k >= 0; k--) /* the last one may still be in a cache */
    if (kept.v[k].size == size)
      block = remove_kept(k);
  if (!block)
    make_room(size);
  kept.used += size;
  pthread_mutex_unlock(&kept.lock);
  return block;
}

static char *take_new(size_t size) {
  if (size < 2 * HUGE_PAGE)
    return malloc(size);
  char *block = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (block) /* instructions go through all partitions, which are far apart: large pages make that faster */
    madvise(block, size, MADV_HUGEPAGE);
  return block;
}

char *sim_block_take(size_t size) {
  char *block = take_kept(size);
  if (!block)
    block = take_new(size);
  if (!block) {
    pthread_mutex_lock(&kept.lock);
    kept.used -= size;
    pthread_mutex_unlock(&kept.lock);
  }
  return block;
}

void sim_block_give(char *block, size_t size) {
  pthread_mutex_lock(&kept.lock);
  kept.used -= size;
  if (kept.used + size <= BYTES_MAX) {
    make_room(size);
    if (kept.n == KEPT_MAX)
      free(remove_kept(0));
    kept.v[kept.n].block = block;
    kept.v[kept.n++].size = size;
    kept.bytes += size;
    block = NULL;
  }
  pthread_mutex_unlock(&kept.lock);
  free(block);
}
