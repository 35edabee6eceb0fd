/* simplify: rules of the algebraic simplifier.
 *
 * A rule looks at one instruction i whose operands are already simplified.  It returns an instruction of the same shape
 * that computes the same value, either one that precedes i or a new one made with hlo_simplify_new; or NULL.  The engine
 * (simplify.c) decides whether i may be replaced, and moves places, knobs and groups.
 */
#ifndef HLO_SIMPLIFY_H
#define HLO_SIMPLIFY_H

#include "hlo/hlo.h"

enum { SKIPPED_MAX = 2 };

struct hlo_simplifier {
  struct hlo_module *m;
  bool changed;
  int first_new_id; /* ids from here on were made for the instruction being simplified */
  struct hlo_instr
      *skipped[SKIPPED_MAX]; /* instructions that the rule looked through: the heir gets their places, too */
  int n_skipped;
};

/* hlo_simplify_math.c: element-wise instructions, compare, select, convert, dot, reduce. */
struct hlo_instr *hlo_simplify_math(struct hlo_simplifier *s, struct hlo_instr *i);
/* hlo_simplify_shape.c: instructions that only move elements. */
struct hlo_instr *hlo_simplify_shape(struct hlo_simplifier *s, struct hlo_instr *i);
/* hlo_simplify_reverse.c: gather and reverse, where they take an axis backwards. */
struct hlo_instr *hlo_simplify_reverse(struct hlo_simplifier *s, struct hlo_instr *i);
/* slice(reverse(x)): reverse(slice(x)), so that only what is read is turned. */
struct hlo_instr *hlo_simplify_slice_of_reverse(struct hlo_simplifier *s, struct hlo_instr *i);

/* Of i, a gather: x backwards along an axis, in the form that needs the least time. */
struct hlo_instr *hlo_simplify_turned(struct hlo_instr *i, struct hlo_instr *x, int axis);
/* hlo_simplify_runs.c: a gather by constant places that are a few runs, as a concatenation of slices. */
struct hlo_instr *hlo_simplify_runs(struct hlo_instr *i);
/* The axis of which i, a gather, takes constant places (a one-dimensional s32) and leaves all others as they are; -1 for any other
 * gather. */
int hlo_simplify_gathered_axis(const struct hlo_instr *i);

/* ---- what rules make, before i ------------------------------------------------------------------------------------- */

/* x with other dimensions; x if it has them. */
struct hlo_instr *hlo_simplify_reshaped(struct hlo_instr *i, struct hlo_instr *x, int rank, const int64_t *dims);
/* That part of x along the axis, and all of x along the others. */
struct hlo_instr *hlo_simplify_part(struct hlo_instr *i, struct hlo_instr *x, int axis, struct hlo_slice_dim part);
/* The parts, one after the other along the axis; with one part, that. */
struct hlo_instr *hlo_simplify_joined(struct hlo_instr *i, int axis, int n, struct hlo_instr *const *parts);
/* A new instruction before i. */
struct hlo_instr *hlo_simplify_new(struct hlo_instr *i, enum hlo_op op, struct hlo_shape shape, int n_operands,
                                   struct hlo_instr *const *operands);
/* A new splat of v in i's shape; NULL when i is pinned, because a constant cannot have annotations. */
struct hlo_instr *hlo_simplify_splat(struct hlo_simplifier *s, struct hlo_instr *i, double v);
/* True if i's operand k is an `op` that may be looked through; notes it. */
bool hlo_simplify_skips(struct hlo_simplifier *s, const struct hlo_instr *i, int k, enum hlo_op op);
/* The one-element constant that every element of x equals, or NULL. */
const struct hlo_literal *hlo_simplify_splat_of(const struct hlo_instr *x);

#endif
