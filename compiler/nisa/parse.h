/* parse: reads the readable form of NISA (nisa/print.h).
 *
 * The parser rewrites every NISA operation of the text in MLIR's generic form, and MLIR parses the result.  The types
 * in the readable form suffice for this.  Places in MLIR's diagnostics, and the locations of operations, are
 * places in the given text.  The text may mix operations in the generic and in the readable form.
 */
#ifndef NISA_PARSE_H
#define NISA_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/ir.h"

/* The first line of the text is NISA_TEXT_MARKER. */
bool nisa_is_text(const char *text, size_t len);

/* As ir_parse.  The text may begin with the marker line.  ST_INPUT and a DG_IR_INVALID at line and column if the text
 * is not valid, or the operands of an operation do not fit its access maps; ST_LIMIT if it is too long or nested too
 * deeply. */
MUST_USE enum status nisa_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a,
                                struct diags *ds, MlirModule *out);

#endif
