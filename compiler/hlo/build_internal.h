/* build_internal: what the builders share. */
#ifndef HLO_BUILD_INTERNAL_H
#define HLO_BUILD_INTERNAL_H

#include "hlo/build.h"

/* Notes the first failure; always NULL, so that a builder can return it. */
hlo_val build_refuse(struct hlo_builder *b, const char *fmt, ...) PRINTF(2, 3);

/* Checks the draft (opcode, requested shape, operands, attributes; all may be the caller's storage), infers its shape
 * and appends it under `name` with its attributes copied.  NULL operands and refusals give NULL. */
hlo_val build_append(struct hlo_builder *b, const char *name, const struct hlo_instr *draft);

#endif
