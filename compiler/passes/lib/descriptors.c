/* descriptors: see the header.
 *
 * A descriptor moves elements that follow each other without a gap on both sides; on chip it stays in its partition.  So
 *
 *     dst<128| 36, 56> %sbuf[d0, d1, d2], src<128| 36, 56> %hbm[%i, d0, d1, d2]     %hbm has rows of 58
 *
 * has 128 * 36 descriptors of 56 elements.  The shapes of the buffers tell what follows what. */
#include "passes/lib/descriptors.h"

#include "ir/query.h"

/* Elements from one step of dimension d of the access to the next; -1 if the access has another form. */
static int64_t step_of(const struct nisa_access *x, int d) {
  int64_t dims[NISA_RANK_MAX], stride = 1, step = 0;
  const int rank = ir_shape(x->base, NISA_RANK_MAX, dims);

  if (rank > NISA_RANK_MAX)
    return -1;
  for (int r = rank - 1; r >= 0; r--) {
    struct nisa_index index;
    if (!nisa_access_index(x, r, &index))
      return -1;
    step += index.dim[d] * stride;
    stride *= nisa_access_extent(x, r);
  }
  return step;
}

/* The elements that follow each other without a gap. */
static int64_t run_of(const struct nisa_access *x) {
  const int first = mem_is_on_chip(nisa_access_space(x)) ? x->par_dims : 0;
  int64_t n = 1;

  for (int d = x->n_dims - 1; d >= first; d--) {
    if (x->tile[d] == 1)
      continue;
    if (step_of(x, d) != n)
      break;
    n *= x->tile[d];
  }
  return n;
}

int64_t descriptors_of(const struct nisa_access *dst, const struct nisa_access *src) {
  const int64_t x = run_of(dst), y = run_of(src), run = x < y ? x : y;
  const int64_t elements = nisa_partitions(dst) * nisa_free_elements(dst);
  return (elements + run - 1) / run;
}

int64_t descriptors_of_transpose(const struct nisa_access *dst, const struct nisa_access *src) {
  const int64_t rows = run_of(src), each = nisa_free_elements(dst), run = rows < each ? rows : each;
  return nisa_partitions(dst) * ((each + run - 1) / run);
}
