/* build_internal: what the builders share. */
#ifndef HLO_BUILD_INTERNAL_H
#define HLO_BUILD_INTERNAL_H

#include "hlo/build.h"

/* Notes the first failure; always NULL, so that a builder can return it. */
hlo_val hlo_build_refuse(struct hlo_builder *b, const char *fmt, ...) PRINTF(2, 3);

/* Checks the draft (opcode, requested shape, operands, attributes; all may be the caller's storage), infers its shape
 * and appends it under `name` with its attributes copied; attrs NULL are none.  NULL operands and refusals give NULL. */
hlo_val hlo_build_append(struct hlo_builder *b, const char *name, const struct hlo_instr *draft);

/* (lhs, rhs) -> result on scalars, named as the device tool chain expects; op HLO_COPY gives rhs.  Made once per
 * module, prefix and dtype. */
struct hlo_computation *hlo_build_combiner(struct hlo_module *m, const char *prefix, enum hlo_op op, enum dtype t);

#endif
