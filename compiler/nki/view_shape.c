/* view_shape: views with other dimensions: permuted, split, merged, broadcast; and the order of their elements. */
#include <assert.h>
#include <string.h>

#include "nki/view.h"

bool nki_view_permute(const struct nki_view *v, int n, const int64_t *dims, struct nki_view *out,
                      struct nki_error *err) {
  bool seen[NKI_RANK_MAX] = {false};
  *out = *v;
  if (n != v->rank)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "permute has %d numbers for %d dimensions", n, v->rank);
  for (int i = 0; i < n; i++) {
    int d;
    if (!nki_find_dim(v, dims[i], &d, err))
      return false;
    if (seen[d])
      return nki_refuse(err, DG_NKI_VIEW, NULL, "permute names dimension %d twice", d);
    seen[d] = true;
    out->dim[i] = v->dim[d];
    if (i == 0 && d != 0 && nki_is_partition(v, 0))
      return nki_refuse_partition("permute", err);
  }
  return true;
}

/* Merges neighbouring dimensions of d[n] that are one run of strides, and drops those of size 1.  Returns their number. */
static int merge_dims(int n, struct nki_dim *d) {
  int m = 0;
  for (int i = 0; i < n; i++) {
    if (d[i].size == 1)
      continue;
    if (m && d[m - 1].stride == d[i].stride * d[i].size)
      d[m - 1] = (struct nki_dim){d[m - 1].size * d[i].size, d[i].stride};
    else
      d[m++] = d[i];
  }
  return m;
}

/* Gives the elements of from[n] the sizes of to[m], whose strides it sets.  False if the strides do not allow it. */
static bool split_dims(int n, const struct nki_dim *from, int m, struct nki_dim *to) {
  struct nki_dim merged[NKI_RANK_MAX];
  memcpy(merged, from, (size_t)n * sizeof *from);
  int k = merge_dims(n, merged) - 1;
  int64_t left = k >= 0 ? merged[k].size : 1, stride = k >= 0 ? merged[k].stride : 1;
  for (int i = m - 1; i >= 0; i--) {
    if (to[i].size == 1) {
      to[i].stride = 0;
      continue;
    }
    if (left == 1 && k > 0) {
      left = merged[--k].size;
      stride = merged[k].stride;
    }
    if (left % to[i].size)
      return false;
    to[i].stride = stride;
    stride *= to[i].size;
    left /= to[i].size;
  }
  return true;
}

/* Replaces the dimensions first … last of v by n dimensions with these sizes. */
static bool replace_dims(const struct nki_view *v, int first, int last, int n, const int64_t *dims,
                         struct nki_view *out, struct nki_error *err) {
  int64_t had = 1, has = 1;
  int free_one = -1;
  struct nki_dim to[NKI_RANK_MAX];
  if (v->rank - (last - first + 1) + n > NKI_RANK_MAX)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, NULL, "a tensor has at most %d dimensions", NKI_RANK_MAX);
  for (int i = first; i <= last; i++)
    had *= v->dim[i].size;
  for (int i = 0; i < n; i++) {
    to[i] = (struct nki_dim){dims[i], 0};
    if (dims[i] == -1 && free_one < 0)
      free_one = i;
    else if (dims[i] < 1 || dims[i] > had)
      return nki_refuse(err, DG_NKI_VIEW, NULL, "%lld is not a size that %lld elements can have", (long long)dims[i],
                        (long long)had);
    else
      has *= dims[i];
  }
  if (free_one >= 0) {
    to[free_one].size = had / has;
    has *= to[free_one].size;
  }
  if (has != had)
    return nki_refuse(err, DG_NKI_VIEW, "give sizes with the same product", "%lld elements cannot become %lld",
                      (long long)had, (long long)has);
  if (!split_dims(last - first + 1, &v->dim[first], n, to))
    return nki_refuse(err, DG_NKI_VIEW, "copy it into a new tensor first",
                      "the elements do not lie in an order that has this shape");
  *out = *v;
  memmove(&out->dim[first + n], &v->dim[last + 1], (size_t)(v->rank - last - 1) * sizeof *v->dim);
  memcpy(&out->dim[first], to, (size_t)n * sizeof *to);
  out->rank = v->rank - (last - first + 1) + n;
  return true;
}

bool nki_view_reshape(const struct nki_view *v, int n, const int64_t *dims, struct nki_view *out,
                      struct nki_error *err) {
  const int first = nki_n_partition_dims(v);
  if (n <= first || n > NKI_RANK_MAX)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "a tensor in this memory has %d to %d dimensions, not %d", first + 1,
                      NKI_RANK_MAX, n);
  if (first && dims[0] != v->dim[0].size)
    return nki_refuse_partition("reshape", err);
  return replace_dims(v, first, v->rank - 1, n - first, dims + first, out, err);
}

bool nki_view_reshape_dim(const struct nki_view *v, int64_t dim, int n, const int64_t *dims, struct nki_view *out,
                          struct nki_error *err) {
  int d;
  if (!nki_find_dim(v, dim, &d, err))
    return false;
  if (n < 1 || n > NKI_RANK_MAX)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "a dimension can become 1 to %d dimensions, not %d", NKI_RANK_MAX, n);
  if (nki_is_partition(v, d) && (n != 1 || dims[0] != v->dim[0].size))
    return nki_refuse_partition("reshape_dim", err);
  return replace_dims(v, d, d, n, dims, out, err);
}

bool nki_view_flatten_dims(const struct nki_view *v, int64_t first, int64_t last, struct nki_view *out,
                           struct nki_error *err) {
  int from, to;
  if (!nki_find_dim(v, first, &from, err) || !nki_find_dim(v, last, &to, err))
    return false;
  if (from > to)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "flatten_dims(%d, %d) has no dimensions", from, to);
  if (nki_is_partition(v, from) && to > 0)
    return nki_refuse_partition("flatten_dims", err);
  const int64_t all = -1;
  return replace_dims(v, from, to, 1, &all, out, err);
}

bool nki_view_expand_dim(const struct nki_view *v, int64_t dim, struct nki_view *out, struct nki_error *err) {
  const int64_t d = dim < 0 ? dim + v->rank + 1 : dim;
  if (d < 0 || d > v->rank)
    return nki_refuse(err, DG_NKI_BOUNDS, NULL, "a tensor of %d dimensions gets no dimension %lld", v->rank,
                      (long long)dim);
  if (d == 0 && nki_is_partition(v, 0))
    return nki_refuse_partition("expand_dim", err);
  *out = *v;
  return nki_insert_dim(out, (int)d, (struct nki_dim){1, 0}, err);
}

bool nki_view_squeeze_dim(const struct nki_view *v, int64_t dim, struct nki_view *out, struct nki_error *err) {
  int d;
  *out = *v;
  if (!nki_find_dim(v, dim, &d, err))
    return false;
  if (nki_is_partition(v, d))
    return nki_refuse_partition("squeeze_dim", err);
  if (v->dim[d].size != 1)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "dimension %d has %lld elements, so it cannot be dropped", d,
                      (long long)v->dim[d].size);
  if (v->rank == nki_n_partition_dims(v) + 1)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "the last dimension cannot be dropped");
  nki_remove_dim(out, d);
  return true;
}

bool nki_view_broadcast(const struct nki_view *v, int64_t dim, int64_t size, struct nki_view *out,
                        struct nki_error *err) {
  int d;
  *out = *v;
  if (!nki_find_dim(v, dim, &d, err))
    return false;
  if (nki_is_partition(v, d))
    return nki_refuse_partition("broadcast", err);
  if (v->dim[d].size != 1 || size < 1)
    return nki_refuse(err, DG_NKI_VIEW, "only a dimension of size 1 can be repeated",
                      "dimension %d has %lld elements and cannot be broadcast to %lld", d, (long long)v->dim[d].size,
                      (long long)size);
  out->dim[d] = (struct nki_dim){size, 0};
  return true;
}

/* ---- order of the elements --------------------------------------------------------------------------------------- */

bool nki_is_contiguous(const struct nki_view *v) {
  struct nki_dim d[NKI_RANK_MAX];
  const int first = nki_n_partition_dims(v);
  memcpy(d, &v->dim[first], (size_t)(v->rank - first) * sizeof *d);
  const int n = merge_dims(v->rank - first, d);
  return n == 0 || (n == 1 && d[0].stride == 1);
}

/* Takes dimensions from the end of from[*n]: one of `size` elements, with its stride in *out. */
static bool take_inner(struct nki_dim *from, int n, int64_t size, struct nki_dim *out) {
  assert(n > 0);
  struct nki_dim *d = &from[n - 1];
  if (d->size % size)
    return false;
  *out = (struct nki_dim){size, d->stride};
  d->stride *= size;
  d->size /= size;
  return true;
}

/* Drops the dimensions of size 1, but not those that count partitions. */
static void drop_ones(struct nki_view *v) {
  for (int i = v->rank - 1; i >= nki_n_partition_dims(v); i--)
    if (v->dim[i].size == 1 && v->rank > 1)
      nki_remove_dim(v, i);
}

/* Merges the last of d[*n] with the one before it, if they are one run of strides and not one of the first `kept`. */
static bool merge_last(struct nki_dim *d, int *n, int kept) {
  if (*n < kept + 2 || d[*n - 2].stride != d[*n - 1].stride * d[*n - 1].size)
    return false;
  d[*n - 2] = (struct nki_dim){d[*n - 2].size * d[*n - 1].size, d[*n - 1].stride};
  --*n;
  return true;
}

/* Merges the last dimensions of a[*n] and b[*m], the larger one first, until one divides the other. */
static bool merge_until_divided(struct nki_dim *a, int *n, int kept_a, struct nki_dim *b, int *m, int kept_b) {
  for (;;) {
    const int64_t x = a[*n - 1].size, y = b[*m - 1].size;
    if (x % y == 0 || y % x == 0)
      return true;
    const bool is_first = x > y && merge_last(a, n, kept_a);
    if (!is_first && !merge_last(b, m, kept_b) && !merge_last(a, n, kept_a))
      return false;
  }
}

bool nki_views_align(struct nki_view *x, struct nki_view *y, bool merges) {
  struct nki_dim a[NKI_RANK_MAX], b[NKI_RANK_MAX], out_a[2 * NKI_RANK_MAX], out_b[2 * NKI_RANK_MAX];
  drop_ones(x);
  drop_ones(y);
  int n = x->rank, m = y->rank, k = 0;
  memcpy(a, x->dim, sizeof a);
  memcpy(b, y->dim, sizeof b);
  for (; n && m; k++) {
    if (merges && !merge_until_divided(a, &n, nki_n_partition_dims(x), b, &m, nki_n_partition_dims(y)))
      return false;
    const int64_t size = a[n - 1].size < b[m - 1].size ? a[n - 1].size : b[m - 1].size;
    if (!take_inner(a, n, size, &out_a[k]) || !take_inner(b, m, size, &out_b[k]))
      return false;
    n -= a[n - 1].size == 1;
    m -= b[m - 1].size == 1;
    if (k == 2 * NKI_RANK_MAX - 1)
      return false;
  }
  for (; n; n--)
    if (a[n - 1].size != 1)
      return false;
  for (; m; m--)
    if (b[m - 1].size != 1)
      return false;
  if (k > NKI_RANK_MAX)
    return false;
  x->rank = y->rank = k;
  for (int i = 0; i < k; i++) {
    x->dim[i] = out_a[k - 1 - i];
    y->dim[i] = out_b[k - 1 - i];
  }
  return true;
}
