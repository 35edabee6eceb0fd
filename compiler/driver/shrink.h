/* shrink: makes a kernel that is refused, crashes or fails its check small, with the same fault.
 *
 * The reducer (trace/shrink.h) has no state: a job with options.shrink names smaller forms of itself.  The search compiles them, each
 * as a job of its own, keeps those with the same fault, and asks again with what it has kept.  Its jobs are run by whoever has it
 * (job_runner.h): `nkx shrink` runs each in a process of its own, so a candidate may crash; the server has them compiled like any
 * other job, with the limits and the turns that these have (POST /api/v1/shrink).  A script may also drive the search itself.
 *
 * Two faults are the same if their codes and stages are.  A refusal while the kernel is traced has no stage, and one code for
 * many reasons; there the messages must be the same, too, but for their numbers.
 */
#ifndef DRIVER_SHRINK_H
#define DRIVER_SHRINK_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/buf.h"
#include "driver/job.h"
#include "driver/job_runner.h"

enum { SHRINK_SECONDS = 120, SHRINK_CANDIDATES = 2000, SHRINK_SECONDS_MAX = 86400, SHRINK_CANDIDATES_MAX = 1000000 };

/* The first error of a job. */
struct shrink_fault {
  char code[48];  /* of diag.def; "worker-died" after a crash; "": the job is right */
  char stage[72]; /* "cse:2", also the last stage before a crash; "": no stage */
  char kind[256]; /* of a fault without a stage, its message without numbers */
};

struct shrink_step {
  const char *what; /* "without 2 statements at line 7"; NULL: the job as it is */
  int number;       /* candidates so far */
  int lines;        /* of the source and its files as they are kept now */
  bool is_kept;
  const struct json_t *changes; /* as in shrink_result, of what is kept now; borrowed */
};
typedef void (*shrink_progress)(void *user, const struct shrink_step *step);

struct shrink_result {
  struct job job; /* the smallest one; its texts live in the arena */
  struct shrink_fault fault;
  struct json_t *changes; /* members of the request that are others in the smallest one; the caller releases it */
  int n_tried, n_kept, lines;
  const char *stopped; /* "seconds", "candidates" or "nothing smaller has the fault" */
};

/* Shrinks a job.  ST_INPUT with a message if the job has no fault, or takes longer than the seconds.  The time of a candidate is
 * three times that of the job as it is, and five seconds; one that takes longer is not kept.  Other statuses are the runner's. */
MUST_USE enum status shrink_search(const struct job_runner *runner, struct arena *a, const struct job *job, int seconds,
                                   int candidates, shrink_progress progress, void *user, struct shrink_result *out,
                                   struct error *err);

/* Append the frames of a search (frames.h). */
void shrink_put_step(struct buf *b, const struct shrink_step *step);
void shrink_put_result(struct buf *b, const struct shrink_result *r);

#endif
