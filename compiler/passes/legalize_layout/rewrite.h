/* rewrite: what rewrite.c and views.c share. */
#ifndef PASSES_LEGALIZE_LAYOUT_REWRITE_H
#define PASSES_LEGALIZE_LAYOUT_REWRITE_H

#include "ir/build.h"
#include "passes/legalize_layout/legalize_layout.h"

/* A part of an operation: in loop l, size[l] iterations from iv[l] * cut[l] + offset[l] on; iv[l] may be null. */
struct part {
  MlirValue iv[LEGAL_RANK_MAX];
  int64_t offset[LEGAL_RANK_MAX], size[LEGAL_RANK_MAX];
};

struct rewrite {
  struct legalize *g;
  struct tiled_op t;
  struct access access[STRUCTURED_OPERANDS_MAX];
  const struct physical *physical[STRUCTURED_OPERANDS_MAX]; /* NULL: the operand keeps its form */
  int64_t cut[LEGAL_RANK_MAX];
  int partition; /* the loop over the partitions, -1 if none */
  bool whole;    /* one part */
};

/* views.c */

/* Operand o of the part, without the dimensions that belong to loops that are not kept. */
MlirValue legal_view(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *keep);
/* drop[d]: dimension d of operand o belongs to a loop that is not kept. */
void legal_dropped_dims(const struct rewrite *r, int o, const bool *keep, bool *drop);

#endif
