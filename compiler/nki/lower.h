/* lower: makes a NISA module (nisa/nisa.h) of an NKI program.
 *
 * Every call becomes one instruction, or a few.  A tensor on chip is allocated at its first use and released after its
 * last one; NKI's own tensors live until the function ends.  Every operation has the location ir_loc_tagged(its line in
 * the program's text, its places).
 *
 * PSUM.  In NISA an allocation in PSUM starts an accumulation group, and nothing else writes to it.  In NKI a tensor can
 * be used for several groups, one after another: a product with accumulate=False, or a write by another engine, starts
 * anew.  Each such use becomes an allocation of its own.  A memset to zero before products becomes nothing, because a
 * group starts from zero by itself.
 */
#ifndef NKI_LOWER_H
#define NKI_LOWER_H

#include "ir/ir.h"
#include "nki/nki.h"

/* The caller destroys *out, which is set on success only.  ST_INPUT with a diagnostic if a call cannot be expressed. */
MUST_USE enum status nki_lower(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out);

#endif
