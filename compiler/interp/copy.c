/* copy: copies an array between two layouts. */
#include <string.h>

#include "interp/interp.h"

/* Copies one dimension, element by element.  The callers pass constant sizes, so that a copy is one instruction. */
static inline void copy_elements(size_t size, int64_t n, char *to, int64_t to_stride, const char *from,
                                 int64_t from_stride) {
  for (int64_t k = 0; k < n; k++)
    memcpy(to + k * to_stride * (int64_t)size, from + k * from_stride * (int64_t)size, size);
}

static void copy_row(size_t size, int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride) {
  switch (size) {
  case 1:
    copy_elements(1, n, to, to_stride, from, from_stride);
    break;
  case 2:
    copy_elements(2, n, to, to_stride, from, from_stride);
    break;
  case 4:
    copy_elements(4, n, to, to_stride, from, from_stride);
    break;
  default:
    copy_elements(size, n, to, to_stride, from, from_stride);
  }
}

/* unit: the number of bytes that are copied at once, because their elements are adjacent on both sides. */
static void copy_dims(size_t size, size_t unit, int64_t rank, const int64_t *dims, char *to, const int64_t *to_strides,
                      const char *from, const int64_t *from_strides) {
  if (!rank) {
    memcpy(to, from, unit);
  } else if (rank == 1 && unit == size) {
    copy_row(size, dims[0], to, to_strides[0], from, from_strides[0]);
  } else {
    for (int64_t k = 0; k < dims[0]; k++)
      copy_dims(size, unit, rank - 1, dims + 1, to + k * to_strides[0] * (int64_t)size, to_strides + 1,
                from + k * from_strides[0] * (int64_t)size, from_strides + 1);
  }
}

void interp_copy(size_t size, int64_t rank, const int64_t *dims, char *to, const int64_t *to_strides, const char *from,
                 const int64_t *from_strides) {
  int64_t run = 1;

  while (rank && to_strides[rank - 1] == run && from_strides[rank - 1] == run)
    run *= dims[--rank];
  copy_dims(size, size * (size_t)run, rank, dims, to, to_strides, from, from_strides);
}
