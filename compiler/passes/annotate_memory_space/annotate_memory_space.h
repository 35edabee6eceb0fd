/* annotate_memory_space: what its files share. */
#ifndef PASSES_ANNOTATE_MEMORY_SPACE_H
#define PASSES_ANNOTATE_MEMORY_SPACE_H

#include "base/index.h"
#include "ir/query.h"
#include "base/memory.h"
#include "passes/pass.h"

/* ---- groups: memref values that must lie in one memory because they are views of one buffer ---------- */

struct space_group {
  int fixed;   /* cannot be changed: an argument, a call, an allocation that has a space */
  int claimed; /* what a layout on the whole buffer asks for */
  int space;   /* decided */
};

struct space_groups {
  struct pass_run *run;
  struct {
    MlirValue *v;
    int n, cap;
  } values;              /* the memref values of the module, in the order of their definition */
  struct index by_value; /* their numbers */
  int *parent;           /* union-find over them */
  struct space_group *g; /* by number of a group's root */
};

/* Collects all memref values under root and joins views with what they are views of, loops with what they carry. */
void space_groups_init(struct space_groups *s, struct pass_run *run, MlirOperation root);
struct space_group *space_group_of(struct space_groups *s, MlirValue v);

/* ---- types ------------------------------------------------------------------------------------------- */

void space_set(MlirValue memref, int space);
/* memref<the shape of v, row-major, space>. */
MlirType space_plain_type(MlirValue v, int space);

/* ---- copies ------------------------------------------------------------------------------------------ */

/* A new buffer of v's shape in a space, placed before op. */
MlirValue space_alloc_before(struct pass_run *run, MlirOperation op, MlirValue v, int space);
/* v as another type of the same shape and space, before op; v itself if it has that type. */
MlirValue space_cast_before(struct pass_run *run, MlirOperation op, MlirValue v, MlirType t);
/* memref.copy from → to, before op or behind it. */
MlirOperation space_copy_before(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to);
MlirOperation space_copy_after(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to);

#endif
