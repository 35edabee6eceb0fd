/* lower_dma: transfers other than plain copies as instructions. */
#include "nki/lower_emit.h"

/* ---- rows that numbers select ------------------------------------------------------------------------------------ */

static bool skips(const struct nki_call *c) {
  const struct nki_value *mode = nki_value(c, "oob_mode");
  return mode->kind == NKI_WORD && !strcmp(mode->word, "skip");
}

static void add_row_attrs(struct nki_lower *l, const struct nki_call *c, const char *dim, const char *max,
                          const struct nki_view *v, struct attrs *attrs) {
  add_attr(l, attrs, dim, ir_i64_attr(&l->b, 0));
  add_attr(l, attrs, max, ir_i64_attr(&l->b, v->tensor->dims[0]));
  if (skips(c))
    add_attr(l, attrs, "skips_out_of_range", mlirUnitAttrGet(l->b.ctx));
}

/* A view whose rows are selected steps along the dimensions of its tensor. */
static enum status row_access(struct nki_lower *l, const struct nki_call *c, const struct nki_view *v,
                              struct nisa_access *out) {
  if (!nki_follows_dims(v))
    return nki_lower_refuse(l, c, "select rows of a tensor whose dimension 0 is the rows",
                            "the selected rows go over several rows of the tensor");
  *out = nki_access_with_dims(l, v);
  return ST_OK;
}

/* dst = the rows of src */
static enum status lower_gather(struct nki_lower *l, const struct nki_call *c, const struct nki_view *dst) {
  struct nisa_access x[3] = {nki_access_of(l, dst, 1)};
  struct attrs attrs = {0};
  enum status st = row_access(l, c, VIEW("src"), &x[1]);
  if (st)
    return st;
  x[2] = nki_access_on_chip(l, VIEW("src_index"));
  add_row_attrs(l, c, "src_index_dim", "src_indirect_max_index", VIEW("src"), &attrs);
  emit(l, NISA_DMA_COPY_INDIRECT, NISA_ENGINE_DMA, c, x, &attrs);
  return ST_OK;
}

/* The rows of dst = src, or are increased by it */
static enum status lower_scatter(struct nki_lower *l, const struct nki_call *c, bool adds) {
  struct nisa_access x[3];
  struct attrs attrs = {0};
  enum status st = row_access(l, c, VIEW("dst"), &x[0]);
  if (st)
    return st;
  x[1] = nki_access_of(l, VIEW("src"), 1);
  x[2] = nki_access_on_chip(l, VIEW("dst_index"));
  add_row_attrs(l, c, "dst_index_dim", "dst_indirect_max_index", VIEW("dst"), &attrs);
  if (adds)
    add_text(l, &attrs, "op", "add");
  emit(l, NISA_DMA_SCATTER, NISA_ENGINE_DMA, c, x, &attrs);
  return ST_OK;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The dimensions of dst and of both sources are split until they are the same. */
static bool align(struct nki_view *dst, struct nki_view *src, struct nki_view *other) {
  return nki_views_align(dst, src, false) && nki_views_align(dst, other, false) && nki_views_align(dst, src, false);
}

/* The number of leading dimensions of dst that have so many elements, 1 if `partitions` is 0; 0 if there is none. */
static int partition_dims(const struct nki_view *dst, int64_t partitions) {
  int64_t have = 1;
  if (!partitions)
    return 1;
  for (int k = 0; k < dst->rank; k++)
    if ((have *= dst->dim[k].size) == partitions)
      return k + 1;
  return 0;
}

static int64_t partitions_of(const struct nki_view *v) {
  return nki_is_on_chip(v) ? v->dim[0].size : 0;
}

static enum status lower_sum(struct nki_lower *l, const struct nki_call *c, const struct nki_view *first) {
  struct nki_view dst = *VIEW("dst"), src = *first, other = *VIEW("other");
  const int64_t most[] = {partitions_of(&dst), partitions_of(&src), partitions_of(&other)};
  int64_t partitions = 0;
  for (int k = 0; k < 3; k++) {
    if (most[k] && partitions && most[k] != partitions)
      return nki_lower_refuse(l, c, "copy through HBM", "the partitions of the operands differ");
    partitions = most[k] ? most[k] : partitions;
  }
  if (!align(&dst, &src, &other))
    return nki_lower_refuse(l, c, "add in several steps", "the shapes of the operands have no common parts");
  const int par_dims = partition_dims(&dst, partitions);
  if (!par_dims)
    return nki_lower_refuse(l, c, "add in several steps",
                            "the rows of an array in HBM are not those of the partitions");
  struct nisa_access x[] = {nki_access_of(l, &dst, par_dims), nki_access_of(l, &src, par_dims),
                            nki_access_of(l, &other, par_dims)};
  struct attrs attrs = {0};
  add_text(l, &attrs, "op", "add");
  emit(l, NISA_DMA_COMPUTE, NISA_ENGINE_DMA, c, x, &attrs);
  return ST_OK;
}

/* The rows of src are gathered first. */
static enum status lower_compute(struct nki_lower *l, const struct nki_call *c) {
  if (nki_value(c, "dst_index")->kind == NKI_VIEW)
    return lower_scatter(l, c, true);
  if (nki_value(c, "src_index")->kind != NKI_VIEW)
    return lower_sum(l, c, VIEW("src"));
  struct nki_tensor rows = {.number = nki_first_temp(l),
                            .dtype = VIEW("src")->tensor->dtype,
                            .space = MEM_SBUF,
                            .rank = 2,
                            .dims = {VIEW("src")->dim[0].size, nki_free_elements(VIEW("src"))},
                            .input = -1};
  const struct nki_view flat = nki_whole(&rows);
  struct nki_view shaped = flat;
  struct nki_error err = {.arena = l->ds->arena};
  int64_t dims[NKI_RANK_MAX];
  for (int k = 0; k < VIEW("src")->rank; k++)
    dims[k] = VIEW("src")->dim[k].size;
  if (!nki_view_reshape(&flat, VIEW("src")->rank, dims, &shaped, &err))
    return nki_lower_refuse(l, c, err.hint, err.text);
  l->homes[rows.number].is_flat = true;
  enum status st = lower_gather(l, c, &shaped);
  if (!st)
    st = lower_sum(l, c, &flat);
  if (!st)
    nki_release(l, &l->homes[rows.number]);
  l->homes[rows.number].is_flat = false;
  return st;
}

/* ---- transposes -------------------------------------------------------------------------------------------------- */

/* One instruction for each index of the dimensions in the middle. */
static void lower_transpose(struct nki_lower *l, const struct nki_call *c) {
  static const int64_t turned[] = {1, 0};
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const int last = src->rank - 1;
  int64_t n = 1;
  for (int k = 1; k < last; k++)
    n *= src->dim[k].size;
  for (int64_t i = 0; i < n; i++) {
    struct nki_view to = *dst, from = *src;
    int64_t rest = i;
    for (int k = last - 1; k > 0; k--) {
      const int64_t at = rest % src->dim[k].size;
      rest /= src->dim[k].size;
      to.offset += at * dst->dim[k].stride;
      from.offset += at * src->dim[k].stride;
    }
    to.rank = from.rank = 2;
    to.dim[1] = dst->dim[last];
    from.dim[1] = src->dim[last];
    struct nisa_access x[] = {nki_access_of(l, &to, 1), nki_access_of(l, &from, 1)};
    struct attrs attrs = {0};
    add_attr(l, &attrs, "permutation", ir_i64_array(&l->b, 2, turned));
    emit(l, NISA_DMA_TRANSPOSE, NISA_ENGINE_DMA, c, x, &attrs);
  }
}

enum status nki_lower_dma(struct nki_lower *l, const struct nki_call *c) {
  if (c->kind == NKI_DMA_COMPUTE)
    return lower_compute(l, c);
  if (c->kind == NKI_DMA_COPY)
    return nki_value(c, "src_index")->kind == NKI_VIEW ? lower_gather(l, c, VIEW("dst")) : lower_scatter(l, c, false);
  lower_transpose(l, c);
  return ST_OK;
}
