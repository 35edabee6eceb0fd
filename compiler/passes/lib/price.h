/* price: what the choices of a pass cost, in round figures for its remarks.
 *
 * A price is the simulated time, in nanoseconds, of what is executed if nothing else is in the way, by the figures of
 * sim/cost.def: from shapes alone, without regard to what runs beside it.  So it says which of two choices does more, and about
 * how much.  Few steps decide by it (prepare_arithmetic/weights.c, outer.c).  Each function is a few operations of arithmetic.
 *
 *     struct remark *r = pass_remark(run, copy, RULE_DROP_SELF_COPY, "removed a copy");
 *     price_chosen(r, 0);                                                      // "nothing"
 *     price_instead(r, "the copy", price_copy_ns(run->target, v), "it changes nothing"); // "about 2.1 us"
 */
#ifndef PASSES_LIB_PRICE_H
#define PASSES_LIB_PRICE_H

#include "nisa/nisa.h"
#include "passes/pass.h"
#include "sim/cost.h"

/* A value as a matrix: all dimensions but the last are rows. What is not known counts as 1. */
struct price_shape {
  int64_t rows, columns, element_bytes;
};
/* Of a tensor or a memref; of anything else one element of 4 bytes. */
struct price_shape price_shape_of(MlirValue v);
int64_t price_bytes(const struct price_shape *s);

/* A transfer of so many bytes in runs without gaps of `run` bytes, from its trigger on; between HBM and the chip, or within HBM. */
double price_transfer_ns(enum target t, int64_t bytes, int64_t run);
/* The same for n transfers, which one engine starts one after another while the DMA engines move others. */
double price_transfers_ns(enum target t, int64_t n, int64_t bytes, int64_t run);
/* A copy between these accesses, one of which is in HBM; and a transpose, which reads rows of src. */
double price_move_ns(enum target t, const struct nisa_access *dst, const struct nisa_access *src);
double price_turn_ns(enum target t, const struct nisa_access *dst, const struct nisa_access *src);
/* n instructions of so many elements of each partition. */
double price_instructions_ns(enum target t, enum sim_cost_rule rule, int64_t n, int64_t elements);
/* An operation on a whole value: instructions of 128 rows and at most 2048 columns. */
double price_rows_ns(enum target t, enum sim_cost_rule rule, int64_t rows, int64_t columns);
/* A product of matrices with M rows, K summed, N columns: the Tensor engine alone, at full clock. */
double price_product_ns(enum target t, int64_t m, int64_t k, int64_t n, int64_t element_bytes);
/* Transposes of a matrix on the Tensor engine, 128 by 128 elements at a time, and their way out of PSUM. */
double price_transpose_ns(enum target t, int64_t rows, int64_t columns, int64_t element_bytes);
/* A copy of v within its memory: on the chip by Vector, otherwise by DMA. */
double price_copy_ns(enum target t, MlirValue v);
/* v stored to HBM, and loaded from there. */
double price_away_ns(enum target t, MlirValue v);

/* Says what the chosen costs: "about 2.1 us", or "nothing". */
void price_chosen(struct remark *r, double ns);
/* Adds a rejected choice that no knob takes. */
void price_instead(struct remark *r, const char *choice, double ns, const char *reason);
/* "1 tile", "4 tiles". */
const char *price_count(struct arena *a, int64_t n, const char *what);
/* The text of a price, in the arena. */
const char *price_text(struct arena *a, double ns);

#endif
