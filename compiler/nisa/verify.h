/* verify: what the files of the hardware verifier share.  nisa_verify itself is in nisa.h. */
#ifndef NISA_VERIFY_H
#define NISA_VERIFY_H

#include "nisa/nisa.h"

struct nisa_check {
  const struct nisa_machine *machine;
  enum target target;
  struct arena *arena;
  struct diags *ds;
  int n_errors;
};

/* A violation by op: a diagnostic with its place, "nisa.matmul: <text>", which the caller may make more precise. */
struct diag *nisa_complain(struct nisa_check *c, MlirOperation op, const char *fmt, ...) PRINTF(3, 4);

/* One operand: memory, types, partitions, access pattern. */
void nisa_check_access(struct nisa_check *c, const struct nisa_instr *in, int k);
/* What the operation demands of its operands together. */
void nisa_check_instr(struct nisa_check *c, const struct nisa_instr *in);
/* Allocations: forms, release, writers; and how much is live where. */
void nisa_check_memory(struct nisa_check *c, MlirOperation module);

#endif
