/* export: what the text and the proto of a module share: names of inputs and outputs, and the stack-frame index. */
#ifndef HLO_EXPORT_H
#define HLO_EXPORT_H

#include "hlo/hlo.h"

/* Stack frames as HloModuleProto.stack_frame_index has them: each list is numbered from 1, 0 means none. */
struct hlo_frame_file_location {
  int file, function;
  struct src_range range;
};
struct hlo_frame {
  int location, parent;
};
struct hlo_frames {
  int n_files, n_functions, n_locations, n_frames;
  const char **files, **functions;
  struct hlo_frame_file_location *locations;
  struct hlo_frame *frames;
  struct hlo_frame_index *index; /* finds entries; export.c */
};

struct hlo_export {
  const struct hlo_module *module;
  struct arena *arena;
  const char *module_name;
  const char **param_names; /* of the entry, with ".must_alias_input" where the program writes in place */
  struct hlo_frames frames;
};

/* with_frames: collects the stack frames of all instructions; otherwise frames stay empty. */
void hlo_export_init(struct hlo_export *e, struct arena *a, const struct hlo_module *m, bool with_frames);
const char *hlo_export_name(const struct hlo_export *e, const struct hlo_instr *i);
struct hlo_export_pair {
  const char *key, *value;
};
enum { HLO_EXPORT_PAIRS_MAX = 2 };
/* Writes the frontend attributes of an entry parameter, the root or a custom call; returns how many there are. */
int hlo_export_frontend_attributes(const struct hlo_export *e, const struct hlo_instr *i,
                                   struct hlo_export_pair out[HLO_EXPORT_PAIRS_MAX]);
/* The innermost stack frame of i's first place; 0 if it has none or frames were not collected. */
int hlo_export_frame(const struct hlo_export *e, const struct hlo_instr *i);
/* The instruction whose value a computation has: its root, or the last one. */
const struct hlo_instr *hlo_export_root(const struct hlo_computation *c);

#endif
