/* run_here: the runners of the terminal's searches (job_runner.h). */
#ifndef DRIVER_RUN_HERE_H
#define DRIVER_RUN_HERE_H

#include "driver/job_runner.h"

struct ir;

/* Runs each job in this process.  A crash ends everything, and a job's limit of time is not used. */
struct job_runner run_here(struct ir *ir);
/* Runs each job in a fork, so that it may crash; what `see` writes must be in memory that the processes share. */
struct job_runner run_alone(struct ir *ir);

/* Makes a job smaller within its limits (job.h), and gives the frames of the search to sink, as the server has them. */
MUST_USE enum status run_shrink(struct ir *ir, const struct job *job, frame_sink sink, void *user);

#endif
