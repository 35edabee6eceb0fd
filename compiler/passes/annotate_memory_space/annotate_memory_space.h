/* annotate_memory_space: declarations shared by its files. */
#ifndef PASSES_ANNOTATE_MEMORY_SPACE_H
#define PASSES_ANNOTATE_MEMORY_SPACE_H

#include "base/index.h"
#include "base/memory.h"
#include "ir/query.h"
#include "passes/pass.h"

/* ---- groups: memref values that must be in one memory, because they are views of one buffer ------------------ */

struct space_group {
  enum mem_space fixed;   /* space that cannot change: of an argument, a call, an allocation that has a space */
  enum mem_space claimed; /* space that a layout on the whole buffer asks for */
  enum mem_space space;   /* the chosen space */
};

struct space_groups {
  struct pass_run *run;
  struct {
    MlirValue *v;
    int n, cap;
  } values;              /* the memref values of the module, in the order of their definition */
  struct index by_value; /* maps a value to its number */
  int *parent;           /* union-find over the numbers */
  struct space_group *g; /* indexed by the number of a group's root */
};

/* Collects all memref values under root.  Joins each view with its source, and the loop-carried values of each
 * loop. */
void space_groups_init(struct space_groups *s, struct pass_run *run, MlirOperation root);
struct space_group *space_group_of(struct space_groups *s, MlirValue v);

/* ---- types ------------------------------------------------------------------------------------------- */

void space_set(MlirValue memref, enum mem_space space);

/* ---- copies ------------------------------------------------------------------------------------------ */

/* Allocates a buffer of v's shape in this memory before op. */
MlirValue space_alloc_before(struct pass_run *run, MlirOperation op, MlirValue v, enum mem_space space);
/* Casts v to another type of the same shape and memory before op.  Returns v itself if it has that type. */
MlirValue space_cast_before(struct pass_run *run, MlirOperation op, MlirValue v, MlirType t);
/* Builds memref.copy from → to, before or after op. */
MlirOperation space_copy_before(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to);
MlirOperation space_copy_after(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to);

#endif
