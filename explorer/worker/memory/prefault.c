/* prefault: see memory.h.
 *
 * The pages are those that the least kernel touches, so nearly every job touches them.  Where the kernel lacks MADV_POPULATE_*
 * (Linux 5.14), the job faults them in itself.
 */
#include <assert.h>
#include <poll.h>

#include "worker/memory/pages.h"

enum {
  SOON_MS = 3,    /* a child whose job comes this soon was made for it: it starts at once */
  LOOK_EVERY = 8, /* ranges between two looks for a job */
};

bool memory_prefault(const struct memory_pages *p, int job_fd) {
  struct pollfd job = {.fd = job_fd, .events = POLLIN};
  assert(job_fd >= 0);
  if (!p->n)
    return true;
  bool is_waiting = poll(&job, 1, SOON_MS) == 0;
  for (int i = 0; is_waiting && i < p->n; i++) {
    const struct page_range *r = &p->v[i];
    if (i % LOOK_EVERY == 0)
      is_waiting = poll(&job, 1, 0) == 0;
    /* fails for a mapping that only the probe had, and on older kernels */
    (void)!madvise((void *)r->at, r->len, r->is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  }
  return !(job.revents & POLLHUP);
}
