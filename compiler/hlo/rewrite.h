/* rewrite: what the passes share: which instructions carry a user's wishes, and where those go.
 *
 * A knob, and membership in a fuse group, is a wish about one value.  Such an instruction is "pinned": it may give way
 * only to one that computes the same value and is not pinned itself, and no rule may look through it.  While a pass
 * runs, hlo_instr.is_fused says whether an instruction is in a fuse group, and hlo_instr.scratch of a removed one what
 * took its place.  A pass that keeps something else in scratch clears it before it ends: nobody walks over all
 * instructions to do so.
 */
#ifndef HLO_REWRITE_H
#define HLO_REWRITE_H

#include "hlo/hlo.h"

void hlo_rewrite_begin(struct hlo_module *m); /* sets is_fused */
/* Points fuse groups at heirs; drops members that are gone, and groups of one; clears is_fused. */
void hlo_rewrite_end(struct hlo_module *m);

bool hlo_rewrite_is_pinned(const struct hlo_instr *i);
/* Replaces i's operands by what took their place. */
void hlo_rewrite_forward_operands(struct hlo_instr *i);
/* heir takes over for dead: places, provenance, knob, fuse group. */
void hlo_rewrite_inherit(struct hlo_instr *heir, struct hlo_instr *dead);
/* The same without knob and fuse group, for an instruction that helps to compute what dead computed. */
void hlo_rewrite_inherit_places(struct hlo_instr *heir, const struct hlo_instr *dead);
/* x once more, in front of `before`, with other operands and this shape: attributes, places and knob, no fuse group. */
struct hlo_instr *hlo_rewrite_copy(struct hlo_instr *before, const struct hlo_instr *x, struct hlo_shape shape,
                                   struct hlo_instr *const *operands);
/* The same in front of x, under x's name: for an x that is removed next. */
struct hlo_instr *hlo_rewrite_replace(struct hlo_instr *x, struct hlo_shape shape, struct hlo_instr *const *operands);
/* Unlinks i; users that come later are forwarded to heir. */
void hlo_rewrite_remove(struct hlo_instr *i, struct hlo_instr *heir);

#endif
