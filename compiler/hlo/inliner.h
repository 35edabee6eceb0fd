/* inline: replacing a call by the instructions of the called computation. */
#ifndef HLO_INLINER_H
#define HLO_INLINER_H

#include "hlo/passes.h"

struct hlo_inliner {
  struct hlo_module *m;
  int n_instrs; /* of the module, as it grows */
  bool changed;
  bool keeps_tuple; /* set by the rule: it left an instruction that returns a tuple */
};

/* True if c may be copied: the module stays small enough, and no value of c is in a fuse group. */
bool hlo_inline_can(const struct hlo_inliner *in, const struct hlo_computation *c);
/* Copies c's instructions before i, with args for its parameters; returns the copy of c's root. */
struct hlo_instr *hlo_inline_at(struct hlo_inliner *in, struct hlo_instr *i, const struct hlo_computation *c,
                                struct hlo_instr *const *args);
/* Calls the rule for every `op` that is not pinned, callees first, and replaces it by what the rule returns.  Returns
 * keeps_tuple. */
typedef struct hlo_instr *hlo_inline_rule(struct hlo_inliner *in, struct hlo_instr *i);
bool hlo_inline_walk(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op, hlo_inline_rule *rule);

#endif
