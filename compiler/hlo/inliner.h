/* inline: putting a computation's instructions in the place of what calls it. */
#ifndef HLO_INLINER_H
#define HLO_INLINER_H

#include "hlo/passes.h"

struct hlo_inliner {
  struct hlo_module *m;
  int n_instrs; /* of the module, as it grows */
  bool changed;
  bool keeps_tuple; /* for the rule: it met one that gives a tuple, and left it */
};

/* May c be copied?  Not when that would make the module huge, and not when its values are in fuse groups. */
bool hlo_inline_can(const struct hlo_inliner *in, const struct hlo_computation *c);
/* c's instructions in front of i, with args for its parameters; what is c's root there. */
struct hlo_instr *hlo_inline_at(struct hlo_inliner *in, struct hlo_instr *i, const struct hlo_computation *c,
                                struct hlo_instr *const *args);
/* Offers every `op` that carries no wishes to the rule, callees first, and replaces it by what the rule gives.  Gives
 * keeps_tuple. */
typedef struct hlo_instr *hlo_inline_rule(struct hlo_inliner *in, struct hlo_instr *i);
bool hlo_inline_walk(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op, hlo_inline_rule *rule);

#endif
