/* rewrite: what the passes share: which instructions the user has annotated, and how annotations move.
 *
 * A knob and membership in a fuse group are annotations of one value.  An annotated instruction is "pinned": it may be
 * replaced only by one that computes the same value and is not pinned itself, and no rule may look through it.  While a
 * pass runs, hlo_instr.is_fused says whether an instruction is in a fuse group, and hlo_instr.scratch of a removed
 * instruction points to its replacement.  A pass that keeps something else in scratch must clear it before it ends.
 */
#ifndef HLO_REWRITE_H
#define HLO_REWRITE_H

#include "hlo/hlo.h"

void hlo_rewrite_begin(struct hlo_module *m); /* sets is_fused */
/* Replaces removed members of fuse groups by their heirs; drops groups of one; clears is_fused. */
void hlo_rewrite_end(struct hlo_module *m);

bool hlo_rewrite_is_pinned(const struct hlo_instr *i);
/* The rule of this name is tried on i next (base/step.h). */
static inline void hlo_step(struct hlo_instr *i, const char *rule) {
  step_next(i->parent->module->steps, i, rule);
}
/* Replaces i's removed operands by their replacements. */
void hlo_rewrite_forward_operands(struct hlo_instr *i);
/* heir replaces dead: it gets its places, provenance, knob and fuse group. */
void hlo_rewrite_inherit(struct hlo_instr *heir, struct hlo_instr *dead);
/* The same without knob and fuse group, for an instruction that helps to compute what dead computed. */
void hlo_rewrite_inherit_places(struct hlo_instr *heir, const struct hlo_instr *dead);
/* A copy of x before `before`, with other operands and this shape.  It has x's attributes, places and knob, but is in no
 * fuse group. */
struct hlo_instr *hlo_rewrite_copy(struct hlo_instr *before, const struct hlo_instr *x, struct hlo_shape shape,
                                   struct hlo_instr *const *operands);
/* The same before x, with x's name: for an x that is removed next. */
struct hlo_instr *hlo_rewrite_replace(struct hlo_instr *x, struct hlo_shape shape, struct hlo_instr *const *operands);
/* Unlinks i; later users get heir as their operand. */
void hlo_rewrite_remove(struct hlo_instr *i, struct hlo_instr *heir);

#endif
