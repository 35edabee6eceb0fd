/* profile_internal: the parts of a profile. */
#ifndef SIM_PROFILE_INTERNAL_H
#define SIM_PROFILE_INTERNAL_H

#include "sim/profile.h"

enum sim_wait sim_wait_of(const struct sim_timeline *t, const struct sim_exec *x);
/* The work of all DMA engines on a transfer, ps. */
int64_t sim_dma_total(const struct sim_dma_cost *d);
/* occupancy.c */
void sim_occupancy_make(const struct sim_timeline *t, enum mem_space space, int core, struct arena *a,
                        struct sim_occupancy *out);
/* advice.c: needs the path. */
void sim_advice_make(const struct sim_timeline *t, struct arena *a, struct sim_profile *out);

#endif
