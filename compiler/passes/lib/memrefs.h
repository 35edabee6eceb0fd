/* memrefs: creating memref operations: allocations, views with the type they must have, copies, loops over blocks. */
#ifndef PASSES_MEMREFS_H
#define PASSES_MEMREFS_H

#include "ir/build.h"
#include "base/memory.h"
#include "passes/pass.h"

/* memref<dims x element, space>, row-major; space is an enum mem_space. */
MlirType memrefs_type(MlirContext ctx, MlirType element, int rank, const int64_t *dims, int space);
MlirType memrefs_element(MlirValue v);
int64_t memrefs_bits(MlirType element); /* of one element in memory: i1 takes a byte */
int memrefs_space(MlirValue v);         /* enum mem_space, MEM_NONE if it has none */
bool memrefs_is_on_chip(MlirValue v);   /* in SBUF or PSUM */
bool memrefs_is_dram(MlirValue v);      /* in Hbm or SharedHbm */

MlirValue memrefs_alloc(struct ir_builder *b, MlirType type);
MlirOperation memrefs_copy(struct ir_builder *b, MlirValue from, MlirValue to);
/* memref.memory operations without results: "memref.dealloc". */
MlirOperation memrefs_dealloc(struct ir_builder *b, MlirValue v);

/* A part of v with unit strides: first element at[d] if not null, else offset[d].  Dimensions d with drop[d] (extent 1)
 * are left out of the result; drop NULL keeps all. */
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

/* Whether views of a value of type t, all the way down, can be given other strides and memory: casts, subviews and
 * expand_shape can, a collapse_shape if what it merges stays contiguous.  Not if v is returned or handed on. */
bool memrefs_can_retype(MlirValue v, MlirType t);
/* Gives the views of v the types they have now that v's type has changed; casts go. */
void memrefs_retype_views(MlirValue v);

/* Removes copies within one memory that nobody needs: what eliminate-same-memspace-copy does. */
void memrefs_drop_copies(struct pass_run *run);

/* v * factor, v + by as index values; factor 1 and constant 0 make nothing. */
MlirValue memrefs_times(struct ir_builder *b, MlirValue v, int64_t factor);
MlirValue memrefs_plus(struct ir_builder *b, MlirValue v, int64_t by);

#endif
