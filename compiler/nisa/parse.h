/* parse: reads the readable form of NISA (nisa/print.h) back.
 *
 * Every NISA operation of the text is rewritten in MLIR's generic form and MLIR parses the result: the types that the
 * form says are all that takes.  Places in what MLIR reports, and in the locations of the operations, are those of
 * the text that was given.  Generic operations among the readable ones are fine.
 */
#ifndef NISA_PARSE_H
#define NISA_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/ir.h"

/* Whether the text's first line is NISA_TEXT_MARKER. */
bool nisa_is_text(const char *text, size_t len);

/* As ir_parse, with or without the marker line.  ST_INPUT with a DG_IR_INVALID at line and column if the text is wrong
 * or an operation's operands do not fit its access maps; ST_LIMIT if it is too long or nested too deeply. */
MUST_USE enum status nisa_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a,
                                struct diags *ds, MlirModule *out);

#endif
