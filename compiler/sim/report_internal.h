/* report_internal: what the forms of a report share. */
#ifndef SIM_REPORT_INTERNAL_H
#define SIM_REPORT_INTERNAL_H

#include "base/buf.h"
#include "sim/profile.h"

/* "matmul", "dma_trigger", "table load" */
const char *sim_exec_name(const struct sim_timeline *t, const struct sim_exec *x);
/* The members of an object that say what lane k is. */
void sim_report_put_lane(const struct sim_timeline *t, int k, struct buf *b);

#endif
