/* compile: runs one job through the stages of pipeline.h and reports frames (frames.h). */
#ifndef DRIVER_COMPILE_H
#define DRIVER_COMPILE_H

#include "base/error.h"
#include "driver/frames.h"
#include "driver/job.h"
#include "ir/ir.h"

struct trace_kernel;

/* Runs the job.  ST_OK: every kernel reached the last stage, and the last frame says "ok".  ST_INPUT: a kernel was
 * refused or a check failed; the frames give the reason, and the stages that were reached were reported.  Also
 * returns ST_LIMIT, or the status of the sink.  trace_init and ir_init must have been called. */
MUST_USE enum status compile_run(struct ir *ir, const struct job *job, frame_sink sink, void *user);

/* Does the same for one kernel that was traced already: the job's source and inputs are not used, and nothing is
 * checked against NumPy.  The HLO passes change k's module.  trace_init need not have been called.  last: the module of
 * the last stage if all are done, otherwise null; the caller destroys it.  It may be NULL. */
MUST_USE enum status compile_traced(struct ir *ir, const struct job *job, struct trace_kernel *k, frame_sink sink,
                                    void *user, MlirModule *last);

#endif
