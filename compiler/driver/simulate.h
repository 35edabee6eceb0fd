/* simulate: runs the last stage of a kernel on the simulated machine, and reports what it computes and how long it takes.
 *
 * The frame "simulation" (frames.h) has a summary of every output, its errors against the reference, the fault that
 * stopped the run if there was one, and the values that the job watches.  The frame "profile" has the time of the run,
 * in the form of sim/report.h.
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

/* Decodes the kernel's program, for the functions below.  ST_INPUT with a diagnostic: the simulator cannot run it. */
struct simulation;
MUST_USE enum status simulate_open(const struct simulate_request *rq, struct diags *ds, struct simulation **out);

/* Runs the kernel and appends the frame of its values.  Faults, wrong outputs and limits become diagnostics. */
void simulate_put_values(struct simulation *s, struct buf *b);

/* Finds out when each instruction runs.  False with a diagnostic if the program does not come to its end, or takes too
 * long; then there is nothing for the functions below.  All of it lives in a. */
bool simulate_time(struct simulation *s, struct arena *a);
/* Append the frame of the profile, and the timeline as a trace and as columns (sim/report.h): ST_LIMIT if it is too long for b. */
MUST_USE enum status simulate_put_profile(const struct simulation *s, struct buf *b);
MUST_USE enum status simulate_put_trace(const struct simulation *s, struct buf *b);
MUST_USE enum status simulate_put_columns(const struct simulation *s, struct buf *b);

/* Finds the value that the job asks for.  Returns NULL, or the reason why there is none. */
struct simulated_value {
  const char *operand; /* of the instruction, or NULL */
  int64_t nth, executions;
  int64_t unwritten; /* elements of a buffer that nothing has written: they are 0 */
  bool is_on_chip;   /* it is in SBUF or PSUM: the first dimension is partitions */
  struct trace_array array;
};
const char *simulate_value(const struct simulate_request *rq, struct simulated_value *out);

/* Appends the frame of a kernel that was not run: status is "skipped" or "limit". */
void simulate_put_refusal(struct buf *b, int kernel, const char *status, const char *reason);

#endif
