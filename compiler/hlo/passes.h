/* passes: HLO to HLO, under XLA's names and with XLA's meanings.
 *
 * A pass edits the module in place, keeps every program's values (up to stated float identities that XLA also
 * assumes), keeps parameters, outputs and aliases, records provenance with hlo_derive, and moves knobs and fuse
 * groups to the heirs.  Each is linear in the number of instructions (called computations included).
 */
#ifndef HLO_PASSES_H
#define HLO_PASSES_H

#include "base/diag.h"
#include "hlo/hlo.h"

struct hlo_pass_result {
  bool changed;
};

/* Checks every shape, operand order, attribute, called computation and alias against HLO's rules; the first
 * violation becomes a DG_HLO_INVALID diagnostic and ST_INPUT. */
MUST_USE enum status hlo_verify(const struct hlo_module *m, struct diags *ds);

/* inline.c */
void hlo_call_inliner(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_conditional_simplifier(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_while_loop_simplifier(struct hlo_module *m, struct hlo_pass_result *r);
/* fold.c, fold_transpose.c */
void hlo_constant_folding(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_zero_sized_elimination(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_transpose_folding(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_algebraic_simplifier(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_cse(struct hlo_module *m, struct hlo_pass_result *r);
void hlo_dce(struct hlo_module *m, struct hlo_pass_result *r);

/* The pass that XLA calls by this name ("dce"); NULL if there is none. */
typedef void (*hlo_pass_fn)(struct hlo_module *m, struct hlo_pass_result *r);
hlo_pass_fn hlo_pass_find(const char *name);

#endif
