/* expand: the rules of the pass op-expander, which writes instructions out as simpler ones.
 *
 * A rule gets a builder that inserts instructions before i.  It returns the replacement of i: a value of i's shape (a
 * tuple if i returns one), i itself if it needs no change, or NULL if the builder refused.  The shape rules have checked
 * i.
 */
#ifndef HLO_EXPAND_H
#define HLO_EXPAND_H

#include "hlo/build.h"

typedef hlo_val hlo_expand_rule(struct hlo_builder *b, struct hlo_instr *i);

hlo_expand_rule hlo_expand_reduce_precision, hlo_expand_bitcast_convert;             /* expand_bits.c */
hlo_expand_rule hlo_expand_rng;                                                      /* expand_rng.c */
hlo_expand_rule hlo_expand_cholesky, hlo_expand_triangular_solve, hlo_expand_lapack; /* expand_solve.c */

bool hlo_expand_is_lapack(const struct hlo_instr *i); /* a call that hlo_expand_lapack may know */

/* expand.c: a splat of v in x's shape, and x op v. */
hlo_val hlo_expand_like(struct hlo_builder *b, hlo_val x, double v);
hlo_val hlo_expand_with(struct hlo_builder *b, enum hlo_op op, hlo_val x, double v);
/* Elements [start, limit) of dimension d. */
hlo_val hlo_expand_part(struct hlo_builder *b, hlo_val x, int d, int64_t start, int64_t limit);

#endif
