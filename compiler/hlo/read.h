/* read: parses HLO, as text in XLA's syntax or as a serialized HloModuleProto.
 *
 * Reads what XLA prints for the opcodes of opcodes.def.  Every operand must precede its user, as XLA prints it; called
 * computations may come in any order but must not call each other recursively.  The resulting module
 * verifies.  An unknown opcode, data type or attribute that changes an instruction's meaning is refused by name.
 *
 * An instruction's place is its range in the text.  The place in its metadata (a Python line with its call chain) is the
 * caller of that range.
 */
#ifndef HLO_READ_H
#define HLO_READ_H

#include "base/diag.h"
#include "hlo/hlo.h"

enum {
  HLO_READ_NEST_MAX = 32,       /* tuples in shapes, braces in attributes */
  HLO_READ_INSTRS_MAX = 100000, /* of one module */
};

/* Returns NULL, with a diagnostic that has the range in the text, when the text cannot be read.  file is the file name in
 * ranges.  The module lives in a; text need not outlive the call. */
struct hlo_module *hlo_read_text(struct arena *a, const char *text, size_t len, const char *file, struct diags *ds);

/* The same from the bytes of a HloModuleProto, or of a HloProto that contains one.  A diagnostic names the instruction; a
 * place is the Python line of the instruction's metadata. */
struct hlo_module *hlo_read_proto(struct arena *a, const void *data, size_t len, struct diags *ds);

/* True if the bytes look like text, false if they look like a proto. */
bool hlo_is_text(const char *data, size_t len);

#endif
