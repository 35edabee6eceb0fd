/* reroll: makes loops of the rounds of an NKI record.
 *
 *     nisa.dma_copy(dst=x, src=a[0:128])           for i in nl.affine_range(2):
 *     nisa.dma_copy(dst=out[0:128], src=x)           x = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
 *     nisa.dma_copy(dst=x_1, src=a[128:256])   ==>   nisa.dma_copy(dst=x, src=a[i*128:i*128+128])
 *     nisa.dma_copy(dst=out[128:256], src=x_1)       nisa.dma_copy(dst=out[i*128:i*128+128], src=x)
 *
 * So a loop of Python is unrolled when the kernel runs, and a loop again afterwards (the guide says both: that all are unrolled, and
 * that they are kept).  The values are the same.
 *
 * The record says to which round of which loop of Python each call belongs (nki.h), so rounds are compared, not guessed.
 * Rounds become a loop if they make the same calls with the same sizes and numbers, and every place of a view is affine in
 * the number of the round.  Inner loops come first.  A loop whose rounds are not all equal is cut where they differ: a run of
 * at least three rounds becomes a loop, the others stay as they are.  The time is linear in the number of calls.
 *
 * Tensors.  A tensor on chip is made where it is used: in the innermost round that has all its uses, before the first of
 * them.  A group of products in PSUM that shares its tensor with other groups gets a tensor of its own (plan.h); then
 * `accumulate` says nothing more and is left out: the first product of each element overwrites it, the others add to it.
 * Tensors of the rounds of a loop that are all in use at one time become parts of one tensor with a dimension more:
 *
 *     tiles = []                                     tile = nl.ndarray((128, 4, 512), nl.float32, buffer=nl.sbuf)
 *     for k in range(4):                       ==>   for i in nl.affine_range(4):
 *       tile = nl.ndarray((128, 512), …)               nisa.dma_copy(dst=tile[:, i, :], src=a[i*128:i*128+128])
 *       nisa.dma_copy(dst=tile, src=a[k*128:…])
 *       tiles.append(tile)
 */
#ifndef NKI_REROLL_H
#define NKI_REROLL_H

#include "nki/note.h"

/* Makes a program with loops of a record, or of the canonical program of one, in its arena.  Notes say what became of loops of
 * Python.  keep_rounds: only tensors change, and every round stays as
 * it is.  ST_INPUT with a diagnostic if a use of PSUM has no form in NISA. */
MUST_USE enum status nki_reroll(const struct nki_program *record, bool keep_rounds, struct diags *ds,
                                struct nki_program **out, struct nki_notes *notes);

#endif
