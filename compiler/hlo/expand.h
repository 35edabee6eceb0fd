/* expand: instructions written out in simpler ones, by the pass op-expander.
 *
 * A rule gets a builder that puts instructions in front of i, and gives what takes i's place: a value of i's shape (a
 * tuple if i gives one), i itself if it is fine as it is, or NULL if the builder refused.  What i was has been checked
 * by the shape rules.
 */
#ifndef HLO_EXPAND_H
#define HLO_EXPAND_H

#include "hlo/build.h"

typedef hlo_val hlo_expand_rule(struct hlo_builder *b, struct hlo_instr *i);

hlo_expand_rule hlo_expand_reduce_precision, hlo_expand_bitcast_convert;             /* expand_bits.c */
hlo_expand_rule hlo_expand_rng;                                                      /* expand_rng.c */
hlo_expand_rule hlo_expand_cholesky, hlo_expand_triangular_solve, hlo_expand_lapack; /* expand_solve.c */

/* expand.c: v in every element of x's shape, and x op v. */
hlo_val hlo_expand_like(struct hlo_builder *b, hlo_val x, double v);
hlo_val hlo_expand_with(struct hlo_builder *b, enum hlo_op op, hlo_val x, double v);
/* Elements [start, limit) of dimension d. */
hlo_val hlo_expand_part(struct hlo_builder *b, hlo_val x, int d, int64_t start, int64_t limit);

#endif
