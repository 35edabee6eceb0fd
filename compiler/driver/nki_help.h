/* nki_help: the calls of nki.isa and the functions of nki.language that are compiled, for readers: NkiHelp in openapi.json.
 *
 * Calls, their operands and engines come from nki/calls.def, operators from nki/calls.c, costs from sim/cost.def; what the
 * compiler itself does not need to know stands in nki/instructions.def and nki/language.def.
 */
#ifndef DRIVER_NKI_HELP_H
#define DRIVER_NKI_HELP_H

#include "base/buf.h"

/* Appends a JSON object. */
void nki_help_put(struct buf *b);

#endif
