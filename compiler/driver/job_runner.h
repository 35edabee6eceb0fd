/* job_runner: runs the jobs of a search, such as shrink.h and parting.h.
 *
 * A search is made of jobs, one after another.  It does not know who runs them: the terminal runs them in its own process or in
 * forks of it (run_here.h), the server gives them to its workers (explorer/api/search.h).
 */
#ifndef DRIVER_JOB_RUNNER_H
#define DRIVER_JOB_RUNNER_H

#include <stdbool.h>

#include "base/error.h"
#include "driver/frames.h"
#include "driver/job.h"

enum job_end {
  JOB_ENDED, /* with its last frame, whether the kernel was right or refused */
  JOB_LATE,  /* it took longer than it was allowed to */
  JOB_DIED,  /* its process did */
};

struct job_runner {
  /* Runs the job and gives its frames to `see`, in their order and perhaps in another process.  ms: how long it may take; 0: as long
   * as any job.  Any status but ST_OK ends the search: ST_TIMEOUT when its time is up, ST_DENIED when nobody wants it any more. */
  enum status (*run)(void *user, const struct job *job, int ms, frame_sink see, void *see_user, enum job_end *end,
                     struct error *err);
  void *user;
};

#endif
