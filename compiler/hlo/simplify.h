/* simplify: rules of the algebraic simplifier.
 *
 * A rule looks at one instruction whose operands are already simplified and gives an instruction of the same shape
 * that computes the same value, or NULL: one that exists before i, or a new one made with hlo_simplify_new.  The engine
 * (simplify.c) decides whether i may give way and moves places, knobs and groups over.
 */
#ifndef HLO_SIMPLIFY_H
#define HLO_SIMPLIFY_H

#include "hlo/hlo.h"

enum { SKIPPED_MAX = 2 };

struct hlo_simplifier {
  struct hlo_module *m;
  bool changed;
  int first_new_id;                       /* ids from here on were made for the instruction being simplified */
  struct hlo_instr *skipped[SKIPPED_MAX]; /* what the rule looked through: its places go to the heir as well */
  int n_skipped;
};

/* hlo_simplify_math.c: element-wise instructions, compare, select, convert, dot, reduce. */
struct hlo_instr *hlo_simplify_math(struct hlo_simplifier *s, struct hlo_instr *i);
/* hlo_simplify_shape.c: instructions that only move elements. */
struct hlo_instr *hlo_simplify_shape(struct hlo_simplifier *s, struct hlo_instr *i);

/* A new instruction in front of i. */
struct hlo_instr *hlo_simplify_new(struct hlo_instr *i, enum hlo_op op, struct hlo_shape shape, int n_operands,
                                   struct hlo_instr *const *operands);
/* A new splat of v in i's shape; NULL when i carries wishes, which a constant cannot fulfil. */
struct hlo_instr *hlo_simplify_splat(struct hlo_simplifier *s, struct hlo_instr *i, double v);
/* True if i's operand k is an `op` that may be looked through; notes it. */
bool hlo_simplify_skips(struct hlo_simplifier *s, const struct hlo_instr *i, int k, enum hlo_op op);
/* The one-element constant that every element of x equals, or NULL. */
const struct hlo_literal *hlo_simplify_splat_of(const struct hlo_instr *x);

#endif
