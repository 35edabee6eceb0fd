/* tensors: arrays with names in one file, in the form of safetensors.
 *
 *     8 bytes: length of the header, little endian; the header, JSON; the elements
 *     {"__metadata__": {text: text}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}
 *
 * The arrays lie one after the other, in the order of the header, in C order and little endian, and nothing else follows.  A
 * float8_e4m3 that can be infinite, for which safetensors has no name, is called F8_E4M3B here.
 */
#ifndef NEFF_TENSORS_H
#define NEFF_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/error.h"

enum { TENSOR_RANK_MAX = 16, TENSORS_MAX = 1024, TENSORS_META_MAX = 16 };

struct tensor {
  const char *name;
  enum dtype dtype;
  int rank;
  int64_t dims[TENSOR_RANK_MAX];
  const void *data;
  size_t size; /* bytes */
};

struct tensors_meta {
  const char *key, *value;
};

struct tensors {
  int n, n_meta;
  struct tensor *v;
  struct tensors_meta meta[TENSORS_META_MAX];
};

/* Appends the file.  ST_LIMIT: b has no room.  ST_INPUT: a type that has no name, or a shape that does not fit the size. */
MUST_USE enum status tensors_write(struct buf *b, const struct tensors *t, struct error *err);
/* Reads a file that somebody sends.  Everything lives in a, the elements aligned for every type.  ST_INPUT: it is none. */
MUST_USE enum status tensors_read(struct arena *a, const void *data, size_t size, struct tensors *out,
                                  struct error *err);
/* The tensor whose name is both texts together; NULL: there is none. */
const struct tensor *tensors_find(const struct tensors *t, const char *prefix, const char *name);
/* NULL: there is none. */
const char *tensors_meta(const struct tensors *t, const char *key);
bool tensor_same_type(const struct tensor *x, const struct tensor *y);

#endif
