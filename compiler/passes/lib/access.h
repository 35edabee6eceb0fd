/* access: describes views as boxes of the buffer that they are views of, and tells at which partition a box starts. */
#ifndef PASSES_ACCESS_H
#define PASSES_ACCESS_H

#include "ir/query.h"

/* A view that exceeds these limits is treated as one that cannot be read. */
enum { ACCESS_RANK_MAX = 8, ACCESS_TERMS_MAX = 8 };

/* constant + sum of factor * value. */
struct linear {
  int64_t constant;
  int n;
  struct {
    MlirValue v;
    int64_t factor;
  } term[ACCESS_TERMS_MAX + 1]; /* one more for linear_add_new */
};

/* Adds v * factor to l, with sums and products of constants taken apart.  False when l has too many terms. */
bool linear_add(struct linear *l, MlirValue v, int64_t factor);
/* Adds v * factor, where v is a new value that l does not contain yet, such as a new counter.  May be called once
 * for each l. */
void linear_add_new(struct linear *l, MlirValue v, int64_t factor);
bool linear_is_constant(const struct linear *l);
/* The largest number that divides l for all values; 0 for the constant 0. */
int64_t linear_granule(const struct linear *l);

/* A view, described as a box in the buffer that it is a view of. */
struct access {
  MlirValue root;
  int rank; /* of root */
  struct linear at[ACCESS_RANK_MAX];
  int64_t size[ACCESS_RANK_MAX];
  int view_rank;
  int dim[ACCESS_RANK_MAX]; /* the dimension of root that each dimension of the view is; -1: none, its extent is 1 */
};

/* False if v is not a box, or its extents are not known. */
bool access_read(MlirValue v, struct access *a);

/* The access covers `size` elements from `at` on, along a dimension that is divided into tiles.  Returns the length
 * of the parts that never cross the border of a tile; it is `size` or more if no cut is needed. */
int64_t access_cut(const struct linear *at, int64_t size, int64_t tile);
/* True if an engine can start at the partition where each part of length `cut` of such an access begins. */
bool access_starts_well(const struct linear *at, int64_t size, int64_t tile, int64_t cut);

#endif
