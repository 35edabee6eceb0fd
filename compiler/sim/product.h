/* product: matrix products in f32, fast enough to check and to simulate kernels of real sizes. */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H

#include <stdint.h>

#include "base/dtype.h"

/* Element (i, j) is at data + (i * row_stride + j * col_stride) * the size of its type. */
struct sim_matrix {
  char *data;
  int64_t rows, cols, row_stride, col_stride;
};

/* c += a b; the elements of a and b have type t (f32, f16 or bf16), those of c are f32. */
void sim_multiply(const struct sim_matrix *a, const struct sim_matrix *b, const struct sim_matrix *c, enum dtype t);

#endif
