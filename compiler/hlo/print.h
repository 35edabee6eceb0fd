/* print: HLO text in XLA's syntax, and the HloModuleProto. */
#ifndef HLO_PRINT_H
#define HLO_PRINT_H

#include "base/buf.h"
#include "hlo/hlo.h"

/* Line (1-based) on which each instruction was printed. */
struct hlo_line {
  const struct hlo_instr *instr;
  int line;
};
struct hlo_lines {
  int n;
  struct hlo_line *v; /* in the arena given to hlo_print, in printing order */
};

struct hlo_print_options {
  bool metadata;       /* metadata={…}: long, so off in the panes and on in the hlo.txt artifact */
  int64_t elide_above; /* constants with more elements print as {...}, as XLA does; 0: never */
};

/* Appends the whole module.  XLA's parser accepts the text, and parsing it gives the same module (unless constants
 * were elided).  lines may be NULL. */
enum status hlo_print(const struct hlo_module *m, const struct hlo_print_options *opt, struct buf *out, struct arena *a,
                      struct hlo_lines *lines);

/* Appends the serialized HloModuleProto (XLA's xla/service/hlo.proto), with source ranges in OpMetadata and the
 * call chains in the stack-frame index. */
enum status hlo_write_proto(const struct hlo_module *m, struct buf *out);

#endif
