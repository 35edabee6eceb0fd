/* busy: estimates of how long an instruction keeps its engine, or would keep another one, without what it waits for.
 *
 * They are for choices between engines.  The simulator (sim/cost.def) has the figures in full, with their sources. */
#ifndef PASSES_BUSY_H
#define PASSES_BUSY_H

#include "base/target.h"
#include "nisa/nisa.h"

/* Elements of each partition of the largest operand. */
int64_t busy_elements(const struct nisa_instr *in);
/* Nanoseconds for which an instruction keeps engine e, which may be another one than its own; on NISA_ENGINE_DMA what all
 * DMA engines together take. */
double busy_ns(const struct nisa_instr *in, enum nisa_engine e, enum target t);
/* The same for an instruction that does not exist yet, with attributes of its own. */
double busy_with_attrs_ns(const struct nisa_instr *in, enum nisa_engine e, enum target t, int n,
                          MlirNamedAttribute const *attrs);
/* What of that an instruction takes whatever its elements are. */
double busy_start_ns(const struct nisa_instr *in, enum nisa_engine e);
/* Nanoseconds for which starting a transfer of so many descriptors keeps an engine. */
double busy_trigger_ns(enum nisa_engine e, int64_t descriptors, enum target t);

#endif
