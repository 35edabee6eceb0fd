/* simulate: runs the last stage of a kernel on the simulated machine, and reports what it computes.
 *
 * The frame "simulation" (frames.h) has a summary of every output, its errors against the reference, the fault that
 * stopped the run if there was one, and the values that the job watches.
 */
#ifndef DRIVER_SIMULATE_H
#define DRIVER_SIMULATE_H

#include "driver/job.h"
#include "driver/stage.h"
#include "trace/trace.h"

struct simulate_request {
  const struct job *job;
  const struct trace_kernel *kernel;
  int number;                /* of the kernel in the job */
  MlirModule module;         /* of NISA, verified */
  const struct stage *stage; /* that shows it */
  bool is_nisa;              /* the source is NISA */
  const struct trace_array *in, *want;
  const char *reference; /* what computed `want`, for the user: "numpy"; NULL: there is no `want` */
  struct arena *arena;
};

/* Returns NULL if the kernel's inputs and outputs fit into the job's memory, otherwise why they do not. */
const char *simulate_refusal(const struct job *job, const struct trace_kernel *k, struct arena *a);

/* Runs the kernel and appends the frame.  Faults, wrong outputs and limits become diagnostics in ds. */
void simulate_put_frame(struct buf *b, const struct simulate_request *rq, struct diags *ds);

/* Appends the frame of a kernel that was not run: status is "skipped" or "limit". */
void simulate_put_refusal(struct buf *b, int kernel, const char *status, const char *reason);

#endif
