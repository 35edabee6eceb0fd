/* print_literal: a constant's value as HLO text. */
#ifndef HLO_PRINT_LITERAL_H
#define HLO_PRINT_LITERAL_H

#include "base/buf.h"
#include "hlo/hlo.h"

/* "1.5", "{ { 1, 2 }, { 3, 4 } }"; "{...}" when elide_above is not 0 and there are more elements than that. */
void hlo_print_literal(struct buf *out, const struct hlo_literal *l, int64_t elide_above);

#endif
