/* balance_engines: declarations shared by its files.  See balance_engines.c. */
#ifndef PASSES_BALANCE_ENGINES_H
#define PASSES_BALANCE_ENGINES_H

#include "nisa/nisa.h"
#include "passes/lib/round.h"
#include "passes/lib/straight.h"
#include "passes/pass.h"

/* Says of each step which other engines may compute it. */
void balance_offer(struct straight *s);

/* These are in move.c. */

/* True if Vector computes the instruction, and another engine may. */
bool balance_is_movable(const struct nisa_instr *in, enum target t);
/* True if engine e computes the same values. */
bool balance_can_move(const struct nisa_instr *in, enum nisa_engine e, enum target t);
/* Moves the instruction, for which balance_can_move is true, to engine e.  Returns the operation, which may be new. */
MlirOperation balance_move(struct pass_run *run, const struct nisa_instr *in, enum nisa_engine e);

#endif
