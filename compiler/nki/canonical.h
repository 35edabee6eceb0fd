/* canonical: makes a program of a record in which only tensors and calls of nki.isa remain.
 *
 *     t = nl.load(a[nl.arange(128)[:, None], …], mask=…)  ==>   t = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
 *                                                               nisa.dma_copy(dst=t[0:100, :], src=a[0:100, :])
 *     nisa.tensor_copy(dst=y, src=x.reshape((128, 4, 8)).select(1, 2))
 *                                                         ==>   nisa.tensor_copy(dst=y, src=x[:, 16:24])
 *
 * What a call consists of was found when the kernel made it, because its Python goes on with the result: a shape, a type, or a
 * refusal at that place.  Here the two are taken apart: calls as they were written, masks and the expressions of views go, and
 * each item says which line of the record it comes from.  Linear in the items.
 */
#ifndef NKI_CANONICAL_H
#define NKI_CANONICAL_H

#include "nki/note.h"

/* Makes the canonical program in the record's arena; tensors and calls are those of the record.  Notes say, once for each place
 * of the source, what a call consists of, what a mask leaves, and what a view is. */
struct nki_program *nki_canonicalize(const struct nki_program *record, struct nki_notes *notes);

/* Gives each line of the record's text its id, when the record has ended: struct nki_written and written_id of items. */
void nki_number_lines(struct nki_program *p);

#endif
