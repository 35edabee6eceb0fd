/* memrefs: makes operations on memrefs: allocations, views with the correct types, and copies. */
#ifndef PASSES_MEMREFS_H
#define PASSES_MEMREFS_H

#include "base/memory.h"
#include "ir/build.h"
#include "passes/pass.h"

/* memref<dims x element, space>, row-major. */
MlirType memrefs_type(MlirContext ctx, MlirType element, int rank, const int64_t *dims, enum mem_space space);
MlirType memrefs_element(MlirValue v);
int64_t memrefs_bits(MlirType element);    /* the size of one element in memory: i1 takes a byte */
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

/* A part of v with unit strides.  It begins at index at[d] in dimension d, or at offset[d] if at[d] is null or `at`
 * is NULL.  The result does not have dimension d if drop[d] is set (extent 1); if drop is NULL, it has all
 * dimensions. */
struct memrefs_part {
  const int64_t *offset, *size;
  MlirValue const *at;
  const bool *drop;
};
MlirValue memrefs_subview(struct ir_builder *b, MlirValue v, const struct memrefs_part *p);
/* Merges dimensions end[k-1] … end[k]-1 into one, for every k. */
MlirValue memrefs_collapse(struct ir_builder *b, MlirValue v, int n, const int *end);
/* Expands dimension k to dimensions end[k-1] … end[k]-1 of the given shape. */
MlirValue memrefs_expand(struct ir_builder *b, MlirValue v, const int *end, int rank, const int64_t *dims);

/* True if v can get type t, and all views of v, and views of those, can get the strides and the memory that follow
 * from it.  Casts, subviews and expand_shape can; a collapse_shape can if the dimensions that it merges stay
 * contiguous.  False if v is returned, passed to a call, or carried by a loop. */
bool memrefs_can_retype(MlirValue v, MlirType t);
/* After a change of v's type, gives the views of v the types that follow from it, and removes casts. */
void memrefs_retype_views(MlirValue v);

/* Removes copies within one memory that no operation needs, as the pass eliminate-same-memspace-copy does.  If buffers
 * have partitions already (dimension 0, after legalize-layout), copies from and to partitions where no engine starts stay: what reads
 * the one side does not read the other. */
void memrefs_drop_copies(struct pass_run *run, bool has_partitions);

/* Build v * factor and v + by, of type index.  They emit nothing for factor 1 and for 0. */
MlirValue memrefs_times(struct ir_builder *b, MlirValue v, int64_t factor);
MlirValue memrefs_plus(struct ir_builder *b, MlirValue v, int64_t by);

#endif
