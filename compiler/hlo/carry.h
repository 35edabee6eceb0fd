/* carry: removes unneeded elements from the tuples that loops carry and conditionals return. */
#ifndef HLO_CARRY_H
#define HLO_CARRY_H

#include "hlo/passes.h"

/* op: HLO_WHILE or HLO_CONDITIONAL. */
void hlo_carry_shrink(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op);

#endif
