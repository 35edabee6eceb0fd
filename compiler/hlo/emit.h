/* emit: what the text and the proto of a module have in common: names at the boundary, and the stack-frame index. */
#ifndef HLO_EMIT_H
#define HLO_EMIT_H

#include "hlo/hlo.h"

/* Stack frames as HloModuleProto.stack_frame_index has them: each list is numbered from 1, 0 means none. */
struct frame_file_location {
  int file, function;
  struct src_range range;
};
struct frame {
  int location, parent;
};
struct frames {
  int n_files, n_functions, n_locations, n_frames;
  const char **files, **functions;
  struct frame_file_location *locations;
  struct frame *frames;
  struct frame_index *index; /* finds entries; emit.c */
};

struct emit {
  const struct hlo_module *module;
  struct arena *arena;
  const char *module_name;
  const char **param_names; /* of the entry, with ".must_alias_input" where the program writes in place */
  struct frames frames;
};

/* with_frames: gather the stack frames of all instructions; without, frames stay empty. */
void emit_init(struct emit *e, struct arena *a, const struct hlo_module *m, bool with_frames);
const char *emit_name(const struct emit *e, const struct hlo_instr *i);
struct emit_pair {
  const char *key, *value;
};
enum { EMIT_PAIRS_MAX = 2 };
/* The frontend attributes of an entry parameter, the root or a custom call; how many. */
int emit_frontend_attributes(const struct emit *e, const struct hlo_instr *i, struct emit_pair out[EMIT_PAIRS_MAX]);
/* The stack frame that i's first place ends in; 0 if it has none or frames were not gathered. */
int emit_frame(const struct emit *e, const struct hlo_instr *i);
/* The instruction whose value a computation has: its root, or the last one. */
const struct hlo_instr *emit_root(const struct hlo_computation *c);

#endif
