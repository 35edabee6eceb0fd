/* verify_ops: what the files that check the operands of operations together have in common.
 *
 *   verify_ops.c        most operations
 *   verify_transfers.c  DMA transfers, collectives
 *   verify_gather.c     shuffles, gathers, random numbers
 *   verify_packed.c     packed elements with scales
 */
#ifndef NISA_VERIFY_OPS_H
#define NISA_VERIFY_OPS_H

#include "nisa/verify.h"

/* The element type of an operand in memory. */
MlirType nisa_element(const struct nisa_access *x);
/* Checks that the operand has dst's partitions and as many elements in each. */
void nisa_check_same(struct nisa_check *c, const struct nisa_instr *in, const char *name);
/* Checks that the operand is a scalar or has one element for each of dst's partitions. */
void nisa_check_column(struct nisa_check *c, const struct nisa_instr *in, const char *name);
/* Checks that the operand has dst's partitions, and at least `least` and at most `most` elements in each. */
void nisa_check_elements(struct nisa_check *c, const struct nisa_instr *in, const char *name, int64_t least,
                         int64_t most);
/* Checks a limit of the Tensor engine. */
void nisa_check_limit(struct nisa_check *c, const struct nisa_instr *in, const char *what, int64_t n, int64_t max);

/* Checks the shapes of a product: of dst, stationary and moving, the first three operands. */
void nisa_check_product(struct nisa_check *c, const struct nisa_instr *in);
/* Checks the operand that says where in the array of the Tensor engine a product lies that uses so many rows or columns. */
void nisa_check_position(struct nisa_check *c, const struct nisa_instr *in, int operand, int64_t used);

void nisa_check_dma_copy(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_dma_transpose(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_indirect(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_scatter(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_dma_compute(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_exchange(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_collective(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_shuffle(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_gather(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_transpose(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_local_gather(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_bounds(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_topk(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_nonzero(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_random(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_seed(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_state(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_matmul_mx(struct nisa_check *c, const struct nisa_instr *in);
void nisa_check_quantize(struct nisa_check *c, const struct nisa_instr *in);

#endif
