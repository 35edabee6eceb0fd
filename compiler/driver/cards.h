/* cards: what each NISA instruction does, as JSON: Instruction in openapi.json.
 *
 * Every fact comes from the table that the compiler itself uses: engines and operands from nisa/ops.def, limits from
 * nisa/kinds.c, sentences and costs from sim/cards.h.
 */
#ifndef DRIVER_CARDS_H
#define DRIVER_CARDS_H

#include "base/buf.h"
#include "nisa/kinds.h"

/* Appends an array with all instructions. */
void cards_put_instructions(struct buf *b);

/* Parts of it.  The elements of limits and costs go to an array that the caller has opened. */
void cards_put_memories(struct buf *b, const char *key, unsigned spaces); /* a field with their names */
void cards_put_limits(struct buf *b, enum nisa_kind kind);
void cards_put_costs(struct buf *b, enum nisa_kind kind);

#endif
