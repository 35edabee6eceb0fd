/* rules: what the hardware demands of the operands of a call.  record.c checks the commonest calls, rules.c the others. */
#ifndef NKI_RULES_H
#define NKI_RULES_H

#include "nki/nki.h"

/* Each returns false with *err.  name: of the operand v.
 *
 * v has as many partitions as dst. */
bool nki_same_partitions(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
/* v corresponds to dst element by element. */
bool nki_same_shape(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
/* v has one element for each partition of dst. */
bool nki_is_column(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
bool nki_not_both_in_psum(const char *x, const struct nki_view *v, const char *y, const struct nki_view *w,
                          struct nki_error *err);
/* The `pattern` of the call has as many elements as dst. */
bool nki_check_pattern(const struct nki_call *c, struct nki_error *err);

/* The rules of the calls that record.c does not know. */
bool nki_rules_more(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);

#endif
