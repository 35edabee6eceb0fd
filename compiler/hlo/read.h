/* read: HLO from outside, as text in XLA's syntax or as a serialized HloModuleProto.
 *
 * Reads what XLA prints for the opcodes of opcodes.def.  Every operand must precede its user, as XLA prints it; called
 * computations may come in any order but must not call each other recursively.  The module that comes back verifies.
 * What has no form here (an opcode, a data type, an attribute that changes an instruction's meaning) is refused by name.
 *
 * An instruction's place is its range in the text; the place that its own metadata names (a Python line, with the chain
 * of its stack frame) is that range's caller.
 */
#ifndef HLO_READ_H
#define HLO_READ_H

#include "base/diag.h"
#include "hlo/hlo.h"

enum {
  HLO_READ_NEST_MAX = 32,       /* tuples in shapes, braces in attributes */
  HLO_READ_INSTRS_MAX = 100000, /* of one module */
};

/* NULL, with an error in ds that has the range in the text, when it cannot be read.  file names the text in ranges.
 * Everything lives in a; text need not outlive the call. */
struct hlo_module *hlo_read_text(struct arena *a, const char *text, size_t len, const char *file, struct diags *ds);

/* The same from the bytes of a HloModuleProto, or of a HloProto around one.  An error names the instruction; a place is
 * the Python line of the instruction's metadata. */
struct hlo_module *hlo_read_proto(struct arena *a, const void *data, size_t len, struct diags *ds);

/* False: the bytes look like a proto. */
bool hlo_is_text(const char *data, size_t len);

#endif
