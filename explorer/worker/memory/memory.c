/* The order of the tricks: see memory.h.
 *
 * heap comes first, because the probes allocate as children do.  hugetext uses the pages of a kernel that uses
 * everything.  prefault uses those of the least kernel; it comes last, because the pages that are worth prefaulting depend
 * on what is in huge pages by then.
 */
#include "worker/memory/memory.h"

#include <assert.h>

#include "base/log.h"
#include "worker/memory/pages.h"

static bool is_on(uint32_t tricks, enum memory_trick t) {
  return tricks >> t & 1;
}

enum status memory_prepare(uint32_t tricks, memory_run run, void *user, const struct memory_pages **out,
                           struct error *err) {
  static struct memory_pages any, least;
  static bool is_prepared;
  enum status st = ST_OK;

  assert(!is_prepared && tricks <= MEMORY_ALL);
  is_prepared = true;
  if (is_on(tricks, MEMORY_HEAP))
    heap_set_aside();
  if (is_on(tricks, MEMORY_HUGETEXT)) {
    st = pages_learn(run, user, MEMORY_ANY_KERNEL, &any, err);
    if (!st)
      hugetext_move(&any);
  }
  if (!st && is_on(tricks, MEMORY_PREFAULT)) {
    st = pages_learn(run, user, MEMORY_LEAST_KERNEL, &least, err);
    log_debug("prefault", "ranges=%d", least.n);
  }
  if (!st)
    *out = &least;
  return st;
}
