/* report_internal: what the forms of a report share. */
#ifndef SIM_REPORT_INTERNAL_H
#define SIM_REPORT_INTERNAL_H

#include "sim/profile.h"

/* "matmul", "dma_trigger", "table load" */
const char *sim_exec_name(const struct sim_timeline *t, const struct sim_exec *x);

#endif
