/* verify: what the files of the hardware verifier share.  nisa.h declares nisa_verify. */
#ifndef NISA_VERIFY_H
#define NISA_VERIFY_H

#include "nisa/streams.h"

struct nisa_lifetimes;

struct nisa_check {
  const struct nisa_machine *machine;
  enum target target;
  const char *stage; /* that made the module */
  struct arena *arena;
  struct diags *ds;
  int n_errors;
};

/* Adds a diagnostic about op, at its place: "nisa.matmul: <text>".  The caller may make it more precise. */
struct diag *nisa_complain(struct nisa_check *c, MlirOperation op, const char *fmt, ...) PRINTF(3, 4);

/* Checks that the operands fit together. */
void nisa_check_instr(struct nisa_check *c, const struct nisa_instr *in);
/* Checks allocations: their forms, releases and writers, and the memory in use at every point. */
void nisa_check_memory(struct nisa_check *c, MlirOperation module);
/* Checks engine programs: where streams, waits, triggers, barriers and copies stand, and that they fit together. */
void nisa_check_streams(struct nisa_check *c, MlirOperation module);
/* verify_cores.c: checks programs of two cores: where their regions and what both use stand, and that they meet as often. */
void nisa_check_cores(struct nisa_check *c, MlirOperation module);
/* verify_registers.c: checks that no sequencer needs more registers at a time than it has. */
enum { NISA_REGISTERS_MAX = 64 };
void nisa_check_registers(struct nisa_check *c, MlirOperation module);
/* Checks the places of a function's allocations: either none on chip has one or all have.  Those of a program that runs in
 * order do not share memory while both are alive; what engine programs use at the same time, other checks find. */
void nisa_check_places(struct nisa_check *c, const struct nisa_lifetimes *l, bool in_program_order);

#endif
