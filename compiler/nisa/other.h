/* other: what nisa/parse.h reads besides the form that nisa/print.h writes.
 *
 * Other compilers for the same machine print NISA in nearly the same form.  The reader takes their text as it is:
 *
 *     reverse_operands=none_            the operators that have a trailing '_' there:  "none"
 *     dma_copy_indirect without src_index_dim     the index is of dimension 0 of src
 *     memref<128x1xindex, …>            indices in memory are i32
 *
 * An operand as  view(…)  is refused: it names memory in another shape than its own.
 */
#ifndef NISA_OTHER_H
#define NISA_OTHER_H

#include <stddef.h>

#include "nisa/kinds.h"

/* Our word for the value of n bytes of this attribute; NULL if it is the same. */
const char *nisa_other_word(const char *name, size_t name_len, const char *value, size_t n);

/* The name and the value in MLIR's form of an attribute that may be left out; *name is NULL if there is none. */
void nisa_other_default(enum nisa_kind kind, const char **name, const char **value);

/* True if an element type of memory begins here, after its 'x', that stands for i32.  *n: its length. */
bool nisa_other_index(const char *text, const char *at, const char *end, size_t *n);

#endif
