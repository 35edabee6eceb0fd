/* box: the part of a buffer that an access goes over, where its indices are known: for programs without loops. */
#ifndef PASSES_LIB_BOX_H
#define PASSES_LIB_BOX_H

#include "nisa/nisa.h"

/* The indices low … high of each dimension of `base`, a view of the buffer `root`. */
struct box {
  const void *root, *base;
  bool is_known; /* not known: all of the buffer */
  int rank;
  int64_t low[NISA_RANK_MAX], high[NISA_RANK_MAX];
};

/* x is data.  An access between whose elements there are gaps counts with them. */
struct box box_of(const struct nisa_access *x);
/* False if the two have no element in common. */
bool box_meets(const struct box *x, const struct box *y);

#endif
