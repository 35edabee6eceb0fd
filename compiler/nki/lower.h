/* lower: makes a NISA module (nisa/nisa.h) of an NKI program that reroll.h made; a record is rerolled first.
 *
 * Every call becomes one instruction, or a few, and every loop an scf.for.  A tensor on chip is allocated where it is made
 * and released after its last use in the same loop; NKI's own tensors live until the function ends.  A program for two
 * cores becomes one region for each (nisa/cores.h).  Every operation has the location ir_loc_tagged(the id of its item, its
 * places).
 */
#ifndef NKI_LOWER_H
#define NKI_LOWER_H

#include "ir/ir.h"
#include "nki/nki.h"

/* The caller destroys *out, which is set on success only.  ST_INPUT with a diagnostic if a call cannot be expressed. */
MUST_USE enum status nki_lower(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out);

#endif
