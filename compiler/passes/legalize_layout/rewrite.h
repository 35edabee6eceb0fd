/* rewrite: declarations shared by rewrite.c and views.c. */
#ifndef PASSES_LEGALIZE_LAYOUT_REWRITE_H
#define PASSES_LEGALIZE_LAYOUT_REWRITE_H

#include "ir/build.h"
#include "passes/legalize_layout/legalize_layout.h"

/* A part of an operation: in loop l it has size[l] iterations, starting at iv[l] * cut[l] + offset[l]; iv[l] may be
 * null. */
struct part {
  MlirValue iv[LEGAL_RANK_MAX];
  int64_t offset[LEGAL_RANK_MAX], size[LEGAL_RANK_MAX];
};

struct rewrite {
  const struct legalize *g;
  struct tiled_op t;
  struct access access[STRUCTURED_OPERANDS_MAX];
  const struct physical *physical[STRUCTURED_OPERANDS_MAX]; /* NULL: the operand keeps its form */
  int64_t cut[LEGAL_RANK_MAX];
  int partition; /* the loop over the partitions, -1 if none */
};

/* views.c */

/* Returns operand o of the part, without the dimensions that belong to dropped loops. */
MlirValue legal_view(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *keep);
/* Sets drop[d] if dimension d of operand o belongs to a dropped loop. */
void legal_dropped_dims(const struct rewrite *r, int o, const bool *keep, bool *drop);

#endif
