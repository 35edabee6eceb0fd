/* inline: putting a computation's instructions in the place of what calls it. */
#ifndef HLO_INLINE_H
#define HLO_INLINE_H

#include "hlo/passes.h"

struct inliner {
  struct hlo_module *m;
  int n_instrs; /* of the module, as it grows */
  bool changed;
  bool keeps_tuple; /* for the rule: it met one that gives a tuple, and left it */
};

/* May c be copied?  Not when that would make the module huge, and not when its values are in fuse groups. */
bool inline_can(const struct inliner *in, const struct hlo_computation *c);
/* c's instructions in front of i, with args for its parameters; what is c's root there. */
struct hlo_instr *inline_at(struct inliner *in, struct hlo_instr *i, const struct hlo_computation *c,
                            struct hlo_instr *const *args);
/* Offers every `op` that carries no wishes to the rule, callees first, and replaces it by what the rule gives.  Gives
 * keeps_tuple. */
typedef struct hlo_instr *inline_rule(struct inliner *in, struct hlo_instr *i);
bool inline_walk(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op, inline_rule *rule);

#endif
