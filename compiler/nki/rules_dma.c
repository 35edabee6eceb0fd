/* rules_dma: the operands of DMA transfers other than plain copies. */
#include <string.h>

#include "nki/rules.h"

#define VIEW(name) (nki_value(c, name)->view)

/* ---- rows that numbers select ------------------------------------------------------------------------------------ */

static bool check_side(const struct nki_call *c, const char *name, const char *index, const char *other,
                       struct nki_error *err) {
  const struct nki_view *x = VIEW(name), *y = VIEW(other);
  const struct nki_value *rows = nki_value(c, index);
  if (rows->kind != NKI_VIEW)
    return true;
  if (y->tensor->space != MEM_SBUF || y->dim[0].size != x->dim[0].size)
    return nki_refuse(err, DG_NKI_OPERAND, "one row for each partition",
                      "rows of %s are selected for %lld partitions, but %s is in %s and has %lld", name,
                      (long long)x->dim[0].size, other, nisa_space_name(y->tensor->space), (long long)y->dim[0].size);
  if (x->tensor->dtype != y->tensor->dtype)
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy", "dst is %s, but src is %s",
                      dtype_numpy_name(VIEW("dst")->tensor->dtype), dtype_numpy_name(VIEW("src")->tensor->dtype));
  return true;
}

bool nki_check_rows(const struct nki_call *c, struct nki_error *err) {
  if (nki_value(c, "dst_index")->kind == NKI_VIEW && nki_value(c, "src_index")->kind == NKI_VIEW)
    return nki_refuse(err, DG_NKI_OPERAND, "copy the rows to SBUF first",
                      "rows of dst and of src are selected at once");
  return check_side(c, "dst", "dst_index", "src", err) && check_side(c, "src", "src_index", "dst", err);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static bool check_compute(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const struct nki_value *other = nki_value(c, "other");
  if (strcmp(nki_value(c, "reduce_op")->op->nisa, "add") != 0)
    return nki_refuse(err, DG_NKI_OPERATOR, "DMA adds; use nisa.tensor_tensor", "reduce_op is %s",
                      nki_value(c, "reduce_op")->op->name);
  if (!nki_check_rows(c, err))
    return false;
  if (other->kind != NKI_VIEW && nki_value(c, "dst_index")->kind != NKI_VIEW)
    return nki_refuse(err, DG_NKI_CALL, "give two sources", "one source is given");
  if (nki_elements(src) != nki_elements(dst) ||
      (other->kind == NKI_VIEW && nki_elements(other->view) != nki_elements(dst)))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL, "dst has %lld elements, but a source has another number",
                      (long long)nki_elements(dst));
  return true;
}

/* ---- transposes -------------------------------------------------------------------------------------------------- */

/* The axes: those that are given, or the reverse order. */
static bool check_axes(const struct nki_call *c, struct nki_error *err) {
  static const int64_t known[][4] = {{1, 0}, {2, 1, 0}, {3, 1, 2, 0}};
  const struct nki_value *axes = nki_value(c, "axes");
  const int rank = VIEW("src")->rank;
  bool fits = rank >= 2 && rank <= 4 && (!axes->n || axes->n == rank);
  for (int k = 0; fits && k < axes->n; k++)
    fits = axes->ints[k] == known[rank - 2][k];
  return fits || nki_refuse(err, DG_NKI_OPERAND, "use (1, 0), (2, 1, 0) or (3, 1, 2, 0)",
                            "DMA does not transpose %d dimensions like this", rank);
}

static bool check_transpose(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const size_t bytes = dtype_size(src->tensor->dtype);
  const int last = src->rank - 1;
  if (!check_axes(c, err))
    return false;
  if (bytes != 2 && bytes != 4)
    return nki_refuse(err, DG_NKI_DTYPE, NULL, "DMA transposes elements of 2 or 4 bytes, not %s",
                      dtype_numpy_name(src->tensor->dtype));
  if (src->tensor->dtype != dst->tensor->dtype)
    return nki_refuse(err, DG_NKI_DTYPE, "a transpose does not convert", "src is %s, but dst is %s",
                      dtype_numpy_name(src->tensor->dtype), dtype_numpy_name(dst->tensor->dtype));
  bool fits =
      dst->rank == src->rank && dst->dim[0].size == src->dim[last].size && dst->dim[last].size == src->dim[0].size;
  for (int k = 1; fits && k < last; k++)
    fits = dst->dim[k].size == src->dim[k].size;
  if (!fits && src->rank == 2)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "the transpose of src has the shape (%lld, %lld), but dst has (%lld, %lld)",
                      (long long)src->dim[1].size, (long long)src->dim[0].size, (long long)dst->dim[0].size,
                      (long long)nki_free_elements(dst));
  return fits || nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "the first and the last dimension change places",
                            "dst has another shape than the transpose of src");
}

bool nki_rules_dma(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  (void)p;
  return c->kind == NKI_DMA_COMPUTE ? check_compute(c, err) : check_transpose(c, err);
}
