/* view: views of tensors: indexing, places that move, access patterns. */
#include <stdarg.h>
#include <string.h>

#include "nki/view.h"

bool nki_refuse(struct nki_error *err, enum diag_code code, const char *hint, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  err->code = code;
  err->hint = hint;
  err->text = arena_vprintf(err->arena, fmt, ap);
  va_end(ap);
  return false;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

int64_t nki_elements(const struct nki_view *v) {
  int64_t n = 1;
  for (int i = 0; i < v->rank; i++)
    n *= v->dim[i].size;
  return n;
}

int64_t nki_free_elements(const struct nki_view *v) {
  int64_t n = 1;
  for (int i = 1; i < v->rank; i++)
    n *= v->dim[i].size;
  return n;
}

int64_t nki_tensor_extent(const struct nki_tensor *t) {
  int64_t n = 1;
  for (int i = mem_is_on_chip(t->space); i < t->rank; i++)
    n *= t->dims[i];
  return n;
}

struct nki_view nki_whole(struct nki_tensor *t) {
  struct nki_view v = {.tensor = t, .rank = t->rank};
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    v.dim[i] = (struct nki_dim){t->dims[i], stride};
    stride *= t->dims[i];
  }
  if (mem_is_on_chip(t->space))
    v.dim[0].stride = 1;
  return v;
}

/* Moves the view's first element by n steps of dimension d. */
static void advance(struct nki_view *v, int d, int64_t n) {
  int64_t *at = d < nki_n_partition_dims(v) ? &v->partition : &v->offset;
  *at += n * v->dim[d].stride;
}

void nki_remove_dim(struct nki_view *v, int d) {
  memmove(&v->dim[d], &v->dim[d + 1], (size_t)(v->rank - d - 1) * sizeof *v->dim);
  v->rank--;
}

bool nki_insert_dim(struct nki_view *v, int d, struct nki_dim dim, struct nki_error *err) {
  if (v->rank == NKI_RANK_MAX)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, NULL, "a tensor has at most %d dimensions", NKI_RANK_MAX);
  memmove(&v->dim[d + 1], &v->dim[d], (size_t)(v->rank - d) * sizeof *v->dim);
  v->dim[d] = dim;
  v->rank++;
  return true;
}

bool nki_find_dim(const struct nki_view *v, int64_t dim, int *out, struct nki_error *err) {
  *out = 0;
  if (dim < -v->rank || dim >= v->rank)
    return nki_refuse(err, DG_NKI_BOUNDS, NULL, "dimension %lld does not exist in a tensor of %d dimensions",
                      (long long)dim, v->rank);
  *out = (int)(dim < 0 ? dim + v->rank : dim);
  return true;
}

bool nki_refuse_partition(const char *method, struct nki_error *err) {
  return nki_refuse(err, DG_NKI_VIEW, "dimension 0 of a tensor in SBUF or PSUM counts partitions, and stays first",
                    "%s cannot change the partition dimension", method);
}

/* ---- indexing ---------------------------------------------------------------------------------------------------- */

static bool slice_dim(struct nki_view *v, int d, int64_t start, int64_t stop, int64_t step, struct nki_error *err) {
  const int64_t size = v->dim[d].size;
  if (step <= 0)
    return nki_refuse(err, DG_NKI_BOUNDS, "write a step of at least 1", "the step of a slice is %lld", (long long)step);
  if (start < 0 || start >= stop || stop > size)
    return nki_refuse(err, DG_NKI_BOUNDS,
                      arena_printf(err->arena, "0 <= start < stop <= %lld; min(stop, x.shape[%d]) ends a last part",
                                   (long long)size, d),
                      "the slice %lld:%lld is not inside dimension %d, which has %lld elements", (long long)start,
                      (long long)stop, d, (long long)size);
  advance(v, d, start);
  v->dim[d].size = (stop - start + step - 1) / step;
  v->dim[d].stride *= step;
  return true;
}

static bool at_dim(struct nki_view *v, int d, int64_t at, struct nki_error *err) {
  const int64_t size = v->dim[d].size, from = at < 0 ? at + size : at;
  if (from < 0 || from >= size)
    return nki_refuse(
        err, DG_NKI_BOUNDS, arena_printf(err->arena, "write an index from 0 to %lld", (long long)size - 1),
        "the index %lld is not inside dimension %d, which has %lld elements", (long long)at, d, (long long)size);
  advance(v, d, from);
  v->dim[d] = (struct nki_dim){1, v->dim[d].stride};
  return true;
}

/* Applies one index to dimension *d, and moves *d to the next dimension. */
static bool index_dim(struct nki_view *v, int *d, const struct nki_index *x, struct nki_error *err) {
  if (x->kind == NKI_AT)
    return at_dim(v, (*d)++, x->start, err);
  const int64_t size = v->dim[*d].size;
  int64_t start = x->has_start ? x->start : 0, stop = x->has_stop ? x->stop : size;
  start += start < 0 ? size : 0;
  stop += stop < 0 ? size : 0;
  return slice_dim(v, (*d)++, start, stop, x->step, err);
}

bool nki_view_index(const struct nki_view *v, int n, const struct nki_index *at, struct nki_view *out,
                    struct nki_error *err) {
  int n_dims = 0, n_ellipses = 0, d = 0, n_drop = 0;
  bool drop[NKI_RANK_MAX + 1] = {false};
  for (int i = 0; i < n; i++) {
    n_dims += at[i].kind == NKI_AT || at[i].kind == NKI_SLICE;
    n_ellipses += at[i].kind == NKI_ELLIPSIS;
  }
  if (n_dims > v->rank || n_ellipses > 1)
    return nki_refuse(err, DG_NKI_BOUNDS, "give one for each dimension, or ... for those that stay whole",
                      "there are %d indices for %d dimensions", n_dims, v->rank);
  *out = *v;
  for (int i = 0; i < n; i++) {
    if (at[i].kind == NKI_ELLIPSIS) {
      d += v->rank - n_dims;
    } else if (at[i].kind == NKI_NEW) {
      if (nki_is_partition(v, 0) && d == 0)
        return nki_refuse_partition("None in an index", err);
      if (!nki_insert_dim(out, d++, (struct nki_dim){1, 0}, err))
        return false;
    } else {
      if (!index_dim(out, &d, &at[i], err))
        return false;
      drop[d - 1] = at[i].kind == NKI_AT && !nki_is_partition(v, d - 1);
      n_drop += drop[d - 1];
    }
  }
  const int least = nki_is_on_chip(v) ? 2 : 1;
  for (int k = 0; k < out->rank && n_drop;)
    if (drop[k] && out->rank > least) {
      nki_remove_dim(out, k);
      memmove(&drop[k], &drop[k + 1], (size_t)(NKI_RANK_MAX - k) * sizeof *drop);
      n_drop--;
    } else {
      k++;
    }
  return true;
}

bool nki_view_slice(const struct nki_view *v, int64_t dim, int64_t start, int64_t end, int64_t step,
                    struct nki_view *out, struct nki_error *err) {
  int d;
  *out = *v;
  return nki_find_dim(v, dim, &d, err) && slice_dim(out, d, start, end, step, err);
}

bool nki_view_select(const struct nki_view *v, int64_t dim, int64_t index, struct nki_view *out,
                     struct nki_error *err) {
  int d;
  if (!nki_find_dim(v, dim, &d, err))
    return false;
  struct nki_index at[NKI_RANK_MAX] = {{0}};
  for (int i = 0; i < d; i++)
    at[i] = (struct nki_index){.kind = NKI_SLICE, .step = 1};
  at[d] = (struct nki_index){.kind = NKI_AT, .start = index};
  return nki_view_index(v, d + 1, at, out, err);
}

/* ---- in loops ---------------------------------------------------------------------------------------------------- */

/* The index of an element of a tensor. */
static void index_of(const struct nki_view *whole, int64_t partition, int64_t offset, int64_t *at) {
  for (int d = 0; d < whole->rank; d++) {
    const bool counts_partitions = d < nki_n_partition_dims(whole);
    at[d] = counts_partitions ? partition : offset / whole->dim[d].stride;
    offset = counts_partitions ? offset : offset % whole->dim[d].stride;
  }
}

/* A loop has a second round, so the difference of its index to that of the first is the step. */
bool nki_start_of(const struct nki_view *v, struct nki_start *out) {
  const struct nki_view whole = nki_whole(v->tensor);
  int64_t least[NKI_RANK_MAX], next[NKI_RANK_MAX];
  index_of(&whole, v->partition, v->offset, out->start);
  memcpy(least, out->start, sizeof least);
  memcpy(out->most, out->start, sizeof least);
  for (int i = 0; i < v->n_terms; i++) {
    const struct nki_term *t = &v->terms[i];
    for (int d = 0; t->reg && d < whole.rank; d++) /* how far it goes is known on the device only */
      out->by[d][i] = d == t->dim ? t->by : 0;
    if (t->reg)
      continue;
    index_of(&whole, v->partition + t->partition, v->offset + t->offset, next);
    for (int d = 0; d < whole.rank; d++) {
      out->by[d][i] = next[d] - out->start[d];
      *(out->by[d][i] < 0 ? &least[d] : &out->most[d]) += out->by[d][i] * (t->loop->trips - 1);
    }
  }
  bool is_inside = true;
  for (int d = 0; d < whole.rank; d++)
    is_inside &= least[d] >= 0 && out->most[d] < v->tensor->dims[d];
  return is_inside;
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

static bool add_term(struct nki_view *v, struct nki_term t, struct arena *a, struct nki_error *err) {
  if (v->n_terms == NKI_TERMS_MAX)
    return nki_refuse(err, DG_NKI_VIEW, "add the registers first",
                      "the place of a view depends on more than %d registers", NKI_TERMS_MAX);
  struct nki_term *terms = arena_new_array(a, struct nki_term, (size_t)v->n_terms + 1);
  for (int i = 0; i < v->n_terms; i++)
    terms[i] = v->terms[i];
  terms[v->n_terms++] = t;
  v->terms = terms;
  return true;
}

bool nki_view_move(struct nki_view *v, int d, struct nki_tensor *reg, struct arena *a, struct nki_error *err) {
  const struct nki_view whole = nki_whole(v->tensor);
  const int64_t stride = v->dim[d].stride;
  int t = nki_n_partition_dims(v);
  if (nki_is_partition(v, d))
    return nki_refuse(err, DG_NKI_VIEW, "index a free dimension, or copy through HBM",
                      "a register cannot select partitions: which ones an engine uses is known at compile time");
  while (t < whole.rank - 1 && stride % whole.dim[t].stride)
    t++;
  return add_term(v, (struct nki_term){.reg = reg, .offset = stride, .dim = t, .by = stride / whole.dim[t].stride}, a,
                  err);
}

bool nki_view_move_by_tensor(struct nki_view *v, int64_t dim, struct nki_tensor *reg, struct arena *a,
                             struct nki_error *err) {
  const struct nki_view whole = nki_whole(v->tensor);
  int d;
  if (!nki_find_dim(&whole, dim, &d, err))
    return false;
  if (nki_is_partition(&whole, d))
    return nki_refuse(err, DG_NKI_VIEW, "pass indirect_dim=1, or a later dimension",
                      "a register cannot select partitions: which ones an engine uses is known at compile time");
  return add_term(v, (struct nki_term){.reg = reg, .offset = whole.dim[d].stride, .dim = d, .by = 1}, a, err);
}

/* ---- access patterns --------------------------------------------------------------------------------------------- */

bool nki_view_ap(const struct nki_view *v, int n, const int64_t (*pairs)[2], int64_t offset, struct nki_view *out,
                 struct nki_error *err) {
  const struct nki_tensor *t = v->tensor;
  const int64_t extent = nki_tensor_extent(t);
  const bool on_chip = nki_is_on_chip(v);
  if (n < 1 || n > NKI_RANK_MAX || (on_chip && n < 2))
    return nki_refuse(err, DG_NKI_VIEW, NULL, "an access pattern in this memory has %d to %d pairs, not %d",
                      on_chip ? 2 : 1, NKI_RANK_MAX, n);
  if (offset < 0)
    return nki_refuse(err, DG_NKI_BOUNDS, NULL, "the offset of an access pattern is %lld", (long long)offset);
  *out = (struct nki_view){.tensor = v->tensor,
                           .partition = v->partition,
                           .offset = v->offset + offset,
                           .rank = n,
                           .n_terms = v->n_terms,
                           .terms = v->terms};
  int64_t last = 0;
  for (int i = 0; i < n; i++) {
    out->dim[i] = (struct nki_dim){pairs[i][1], pairs[i][0]};
    if (pairs[i][1] < 1 || pairs[i][0] < 0 || pairs[i][1] > INT64_MAX >> 32 || pairs[i][0] > INT64_MAX >> 32)
      return nki_refuse(err, DG_NKI_VIEW, "write [stride, size] with a stride of at least 0 and a size of at least 1",
                        "[%lld, %lld] is not a stride and a size", (long long)pairs[i][0], (long long)pairs[i][1]);
    if (!on_chip || i)
      last += (pairs[i][1] - 1) * pairs[i][0];
    if (last > INT64_MAX >> 8)
      break;
  }
  if (on_chip) {
    if (pairs[0][0] != extent && pairs[0][1] > 1)
      return nki_refuse(err, DG_NKI_VIEW,
                        "the first pair counts partitions: its stride is the number of elements in one",
                        "the first stride is %lld, but a partition of %s has %lld elements", (long long)pairs[0][0],
                        t->name, (long long)extent);
    out->dim[0].stride = 1;
    out->partition += offset / extent;
    out->offset = v->offset + offset % extent;
    if (out->partition + out->dim[0].size > t->dims[0])
      return nki_refuse(err, DG_NKI_BOUNDS, NULL, "the pattern ends in partition %lld, but %s has %lld",
                        (long long)(out->partition + out->dim[0].size), t->name, (long long)t->dims[0]);
  }
  if (out->offset + last >= extent)
    return nki_refuse(err, DG_NKI_BOUNDS, NULL, "the pattern ends at element %lld, but %s has %lld%s",
                      (long long)(out->offset + last), t->name, (long long)extent, on_chip ? " in a partition" : "");
  return true;
}

/* True if v is all of its tensor with other dimensions, so that its rows are not those of the tensor. */
static bool has_other_rows(const struct nki_view *v) {
  int64_t all = 1, row = 1;
  for (int i = 0; i < v->tensor->rank; i++) {
    all *= v->tensor->dims[i];
    row *= i ? v->tensor->dims[i] : 1;
  }
  return nki_is_contiguous(v) && nki_elements(v) == all && v->dim[0].stride != row;
}

bool nki_view_rows(const struct nki_view *v, int n, const int64_t (*pairs)[2], int64_t offset, struct nki_view *rows,
                   struct nki_view *out, struct nki_error *err) {
  int64_t fixed[NKI_RANK_MAX][2] = {{0}};
  if (nki_is_on_chip(v))
    return nki_refuse(err, DG_NKI_VIEW, "gather on chip with nisa.nc_n_gather", "rows are selected in HBM only");
  if (has_other_rows(v))
    return nki_refuse(err, DG_NKI_VIEW,
                      "give the tensor this shape when it is made, or multiply the numbers and use the tensor itself",
                      "the rows of %s are selected by its own shape, not by that of reshape", v->tensor->name);
  if (rows->tensor->space != MEM_SBUF || nki_free_elements(rows) != 1)
    return nki_refuse(err, DG_NKI_VIEW, "give a tensor of shape (partitions, 1) in SBUF",
                      "the row numbers are in %s, %lld in each partition", nisa_space_name(rows->tensor->space),
                      (long long)nki_free_elements(rows));
  if (rows->tensor->dtype != DT_U32 && rows->tensor->dtype != DT_I32)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint32", "the row numbers have the type %s",
                      dtype_numpy_name(rows->tensor->dtype));
  for (int i = 0; i < n && i < NKI_RANK_MAX; i++)
    memcpy(fixed[i], pairs[i], sizeof fixed[i]);
  fixed[0][0] = 0;
  if (!nki_view_ap(v, n, (const int64_t (*)[2])fixed, offset, out, err))
    return false;
  if (rows->dim[0].size != out->dim[0].size)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "there are %lld row numbers, but the pattern has %lld rows",
                      (long long)rows->dim[0].size, (long long)out->dim[0].size);
  out->rows = rows;
  return true;
}
