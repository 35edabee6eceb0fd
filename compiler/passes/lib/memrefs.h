/* memrefs: makes operations on memrefs: allocations, views with the type that they must have, and copies. */
#ifndef PASSES_MEMREFS_H
#define PASSES_MEMREFS_H

#include "base/memory.h"
#include "ir/build.h"
#include "passes/pass.h"

/* memref<dims x element, space>, row-major. */
MlirType memrefs_type(MlirContext ctx, MlirType element, int rank, const int64_t *dims, enum mem_space space);
MlirType memrefs_element(MlirValue v);
int64_t memrefs_bits(MlirType element);    /* of one element in memory: i1 takes a byte */
enum mem_space memrefs_space(MlirValue v); /* MEM_NONE if it has none, or is not a memref */
static inline bool memrefs_is_on_chip(MlirValue v) {
  return mem_is_on_chip(memrefs_space(v));
}
static inline bool memrefs_is_dram(MlirValue v) {
  return mem_is_dram(memrefs_space(v));
}

MlirValue memrefs_alloc(struct ir_builder *b, MlirType type);
MlirOperation memrefs_copy(struct ir_builder *b, MlirValue from, MlirValue to);
MlirOperation memrefs_dealloc(struct ir_builder *b, MlirValue v);

/* A part of v with unit strides.  It begins at index at[d] in dimension d, or at offset[d] where at[d] is null (at
 * NULL: everywhere).  The result has no dimension d where drop[d] is set (extent 1); drop NULL keeps all. */
struct memrefs_part {
  const int64_t *offset, *size;
  MlirValue const *at;
  const bool *drop;
};
MlirValue memrefs_subview(struct ir_builder *b, MlirValue v, const struct memrefs_part *p);
/* Dimensions end[k-1] … end[k]-1 become one. */
MlirValue memrefs_collapse(struct ir_builder *b, MlirValue v, int n, const int *end);
/* Dimension k becomes dimensions end[k-1] … end[k]-1 of the given shape. */
MlirValue memrefs_expand(struct ir_builder *b, MlirValue v, const int *end, int rank, const int64_t *dims);

/* True if v can get type t, and all views of v and of its views can get the strides and the memory that follow.  Casts,
 * subviews and expand_shape can; a collapse_shape can if what it merges stays contiguous.  False if v is returned,
 * passed to a call or carried by a loop. */
bool memrefs_can_retype(MlirValue v, MlirType t);
/* After v's type has changed, gives the views of v the types that follow; removes casts. */
void memrefs_retype_views(MlirValue v);

/* Removes copies within one memory that no operation needs: the work of eliminate-same-memspace-copy. */
void memrefs_drop_copies(struct pass_run *run);

/* v * factor, v + by, of type index; emits nothing for factor 1 and for 0. */
MlirValue memrefs_times(struct ir_builder *b, MlirValue v, int64_t factor);
MlirValue memrefs_plus(struct ir_builder *b, MlirValue v, int64_t by);

#endif
