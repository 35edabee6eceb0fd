/* exec_exchange: data from one core to the other (nisa/cores.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/machine.h"

bool sim_exchange_send(struct sim_machine *m, const struct sim_instr *i, struct sim_parcel *out) {
  struct sim_access src;
  m->instr = i;
  if (!sim_open(m, 1, &src))
    return false;
  const int64_t row = src.o->elements * src.size;
  *out = (struct sim_parcel){.bits = malloc((size_t)(src.o->partitions * row) + 1),
                             .partitions = src.o->partitions,
                             .elements = src.o->elements,
                             .type = src.type};
  if (!out->bits)
    return sim_fail(m, SIM_FAULT_MEMORY, "out of memory");
  for (int64_t p = 0; p < src.o->partitions; p++)
    if (!sim_read_bits(m, &src, p, 0, src.o->elements, out->bits + p * row))
      return false;
  return true;
}

bool sim_exec_exchange(struct sim_machine *m) {
  const struct sim_parcel *x = m->parcel;
  struct sim_access dst;
  if (!sim_open(m, 0, &dst))
    return false;
  if (x->partitions != dst.o->partitions || x->elements != dst.o->elements || x->type != dst.type)
    return sim_fail(m, SIM_FAULT_INSTRUCTION,
                    "the other core sends %" PRId64 " x %" PRId64 " elements of %s, but dst has %" PRId64 " x %" PRId64
                    " of %s",
                    x->partitions, x->elements, sim_type_name(x->type), dst.o->partitions, dst.o->elements,
                    sim_type_name(dst.type));
  const int64_t row = x->elements * dst.size;
  m->counts.dma_bytes += x->partitions * row;
  for (int64_t p = 0; p < x->partitions; p++)
    sim_write_bits(&dst, p, 0, x->elements, x->bits + p * row);
  return true;
}
