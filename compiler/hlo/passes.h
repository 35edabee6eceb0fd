/* passes: HLO to HLO, under XLA's names and with XLA's meanings.
 *
 * A pass edits the module in place.  It keeps the program's values (up to stated float identities, which XLA assumes
 * too), its parameters, outputs and aliases.  It records provenance with hlo_derive, and moves knobs and fuse groups to
 * the instructions that replace others.  Each takes linear time in the number of instructions, called computations
 * included.
 */
#ifndef HLO_PASSES_H
#define HLO_PASSES_H

#include "base/diag.h"
#include "hlo/hlo.h"

struct hlo_pass_result {
  bool changed;
  struct diags *ds; /* where a pass warns; NULL: nowhere */
};

/* Checks every shape, operand order, attribute, called computation and alias against HLO's rules; the first
 * violation becomes a DG_HLO_INVALID diagnostic and ST_INPUT. */
MUST_USE enum status hlo_verify(const struct hlo_module *m, struct diags *ds);

typedef void hlo_pass(struct hlo_module *m, struct hlo_pass_result *r);
/* In the order in which they run; the head of each file says why. */
hlo_pass hlo_op_expander;                                  /* expand.c */
hlo_pass hlo_convert_legalization;                         /* legalize.c */
hlo_pass hlo_call_inliner, hlo_conditional_simplifier;     /* inline.c */
hlo_pass hlo_zero_sized_elimination, hlo_constant_folding; /* fold.c */
hlo_pass hlo_while_loop_simplifier;                        /* loops.c */
hlo_pass hlo_broadcast_canonicalizer, hlo_dot_decomposer;  /* canonicalize.c */
hlo_pass hlo_reshape_mover;                                /* move_reshape.c */
hlo_pass hlo_algebraic_simplifier, hlo_transpose_folding;  /* simplify.c, fold_transpose.c */
hlo_pass hlo_cse, hlo_dce;                                 /* cse.c, dce.c */

/* m with nothing left for op-expander: m itself, or a copy in a that has been through it.  For a caller that only wants
 * the values m computes. */
const struct hlo_module *hlo_expanded(struct arena *a, const struct hlo_module *m);

/* All of them, in that order. */
struct hlo_pass_def {
  const char *name; /* "dce" */
  hlo_pass *fn;
};
extern const struct hlo_pass_def hlo_passes[];
extern const int hlo_n_passes;
/* The pass that XLA calls by this name; NULL if there is none. */
hlo_pass *hlo_pass_find(const char *name);

#endif
