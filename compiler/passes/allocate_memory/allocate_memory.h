/* allocate_memory: what the files of the pass share. */
#ifndef PASSES_ALLOCATE_MEMORY_H
#define PASSES_ALLOCATE_MEMORY_H

#include "nisa/lifetime.h"
#include "passes/pass.h"

/* How many copies an allocation should have, and why. */
struct copies {
  int wanted;
  unsigned readers, writers; /* bits 1 << nisa_engine */
  const char *why;           /* "filled by dma, read by vector"; NULL for an allocation that is in no loop */
};

/* x is an allocation of the module of the pass. */
struct copies copies_of(struct pass_run *run, const struct nisa_lifetime *x);

/* in_place.c: lets instructions overwrite an operand that nothing reads later, in loops whose buffers do not fit into SBUF twice. */
void sums_in_place(struct pass_run *run, MlirOperation function, const struct nisa_machine *machine);

#endif
