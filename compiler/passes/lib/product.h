/* product: reads contractions, linalg operations that multiply matrices, with or without a batch. */
#ifndef PASSES_PRODUCT_H
#define PASSES_PRODUCT_H

#include "ir/structured.h"

/* A contraction whose result is [batch…, M, N]: linalg.matmul, linalg.batch_matmul, linalg.contract, or a linalg.generic
 * that multiplies and adds.  An operand may lack some batch dimensions, or hold M and K, or K and N, in the other
 * order. */
struct product {
  MlirOperation op;
  struct structured s;
  int rank, n_batch; /* rank of the result and its batch dimensions; rank == n_batch + 2 */
  int m, n, k;       /* numbers of the loops */
};

/* Returns false if op is not such a contraction. */
bool product_read(MlirOperation op, struct product *out);
/* Returns the dimension of the operand that is the loop; -1 if there is none. */
int product_dim(const struct product *p, int operand, int loop);

#endif
