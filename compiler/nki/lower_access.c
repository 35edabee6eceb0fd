/* lower_access: the memories of tensors, and views as operands of instructions (nisa.h). */
#include <assert.h>
#include <string.h>

#include "nki/lower_internal.h"

/* A view as sums over the dimensions of its tensor's memref. */
struct steps {
  int rank;
  struct {
    int64_t start, by[NKI_RANK_MAX];
  } dim[NKI_RANK_MAX];
};

/* On chip: the steps of the par_dims leading dimensions over the partitions. */
static void partition_steps(const struct nki_view *v, int par_dims, struct steps *out) {
  out->dim[0].start = v->partition;
  for (int k = 0; k < par_dims; k++)
    out->dim[0].by[k] = v->dim[k].stride;
}

/* Writes the view over the tensor's own dimensions.  par_dims: on chip, the number of leading dimensions that count
 * partitions.  False if a step would leave a dimension. */
static bool steps_of(const struct nki_view *v, int par_dims, struct steps *out) {
  const struct nki_view whole = nki_whole(v->tensor);
  const int first = nki_is_on_chip(v);
  int64_t rest = v->offset;
  *out = (struct steps){.rank = whole.rank};
  if (first)
    partition_steps(v, par_dims, out);
  for (int d = first; d < whole.rank; d++) {
    out->dim[d].start = rest / whole.dim[d].stride;
    rest %= whole.dim[d].stride;
  }
  for (int k = first * par_dims; k < v->rank; k++) {
    int64_t stride = v->dim[k].size > 1 ? v->dim[k].stride : 0;
    for (int d = first; d < whole.rank; d++) {
      out->dim[d].by[k] = stride / whole.dim[d].stride;
      stride %= whole.dim[d].stride;
    }
  }
  for (int d = 0; d < whole.rank; d++) {
    int64_t last = out->dim[d].start;
    for (int k = 0; k < v->rank; k++)
      last += out->dim[d].by[k] * (v->dim[k].size - 1);
    if (last >= v->tensor->dims[d])
      return false;
  }
  return true;
}

/* Writes the view over (partitions, elements) on chip, and over the elements in HBM. */
static struct steps flat_steps(const struct nki_view *v, int par_dims) {
  const int first = nki_is_on_chip(v);
  struct steps s = {.rank = first + 1};
  if (first)
    partition_steps(v, par_dims, &s);
  s.dim[first].start = v->offset;
  for (int k = first * par_dims; k < v->rank; k++)
    s.dim[first].by[k] = v->dim[k].stride;
  return s;
}

/* dst in the shape of the pattern. */
bool nki_shape_by_pattern(const struct nki_call *c, struct nki_view *out, struct nki_error *err) {
  const struct nki_view *dst = nki_value(c, "dst")->view;
  const struct nki_value *pattern = nki_value(c, "pattern");
  int64_t dims[NKI_RANK_MAX] = {dst->dim[0].size};
  for (int k = 1; k <= pattern->n / 2; k++)
    dims[k] = pattern->ints[2 * k - 1];
  return nki_view_reshape(dst, 1 + pattern->n / 2, dims, out, err);
}

void nki_find_flat(struct nki_lower *l) {
  struct nki_error err = {.arena = &l->arena};
  struct nki_view shaped;
  struct steps s;
  for (int i = 0; i < l->p->items.n; i++) {
    const struct nki_call *c = l->p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW && !steps_of(c->value[k].view, 1, &s))
        l->homes[c->value[k].view->tensor->number].is_flat = true;
    if (c && c->kind == NKI_IOTA && nki_shape_by_pattern(c, &shaped, &err) && !steps_of(&shaped, 1, &s))
      l->homes[shaped.tensor->number].is_flat = true;
  }
}

MlirType nki_memref_type(struct nki_lower *l, const struct nki_tensor *t, bool is_flat) {
  MlirAttribute space = nisa_space_attr(l->b.ctx, t->space), no_layout = {NULL};
  const bool on_chip = mem_is_on_chip(t->space);
  const int64_t flat[] = {on_chip ? t->dims[0] : nki_tensor_extent(t), nki_tensor_extent(t)};
  MlirType element = ir_element_type(&l->b, t->dtype);
  return is_flat ? mlirMemRefTypeGet(element, on_chip ? 2 : 1, flat, no_layout, space)
                 : mlirMemRefTypeGet(element, t->rank, t->dims, no_layout, space);
}

static MlirValue allocate(struct nki_lower *l, const struct nki_tensor *t, bool is_flat) {
  MlirOperation op = nisa_create_alloc(l->b.loc, nki_memref_type(l, t, is_flat), 64);
  mlirBlockAppendOwnedOperation(l->b.block, op);
  return ir_result(op);
}

/* The memref of a tensor; on chip it is allocated if there is none. */
MlirValue nki_memref_of(struct nki_lower *l, const struct nki_tensor *t, bool is_flat) {
  struct nki_home *h = &l->homes[t->number];
  if (mlirValueIsNull(h->memref))
    h->memref = allocate(l, t, h->is_flat && mem_is_on_chip(t->space));
  if (!is_flat || mem_is_on_chip(t->space) || t->rank == 1)
    return h->memref;
  if (mlirValueIsNull(h->flat)) {
    MlirAttribute dims[NKI_RANK_MAX];
    for (int i = 0; i < t->rank; i++)
      dims[i] = ir_i64_attr(&l->b, i);
    MlirAttribute group = mlirArrayAttrGet(l->b.ctx, t->rank, dims);
    MlirNamedAttribute all = ir_named(&l->b, "reassociation", mlirArrayAttrGet(l->b.ctx, 1, &group));
    h->flat = ir_op1_with(&l->b, "memref.collapse_shape", nki_memref_type(l, t, true), 1, &h->memref, 1, &all);
  }
  return h->flat;
}

void nki_release(struct nki_lower *l, struct nki_home *h) {
  ir_op0(&l->b, "nisa.release", 1, &h->memref);
  h->memref = (MlirValue){NULL};
}

/* The map (d0, …) -> (start + by[0] * d0 + …, …). */
static MlirAffineMap map_of(struct nki_lower *l, int n_dims, const struct steps *s) {
  MlirContext ctx = l->b.ctx;
  MlirAffineExpr result[NKI_RANK_MAX];
  for (int d = 0; d < s->rank; d++) {
    MlirAffineExpr e = {NULL};
    for (int k = 0; k < n_dims; k++) {
      if (!s->dim[d].by[k])
        continue;
      MlirAffineExpr x = mlirAffineDimExprGet(ctx, k);
      if (s->dim[d].by[k] != 1)
        x = mlirAffineMulExprGet(x, mlirAffineConstantExprGet(ctx, s->dim[d].by[k]));
      e = mlirAffineExprIsNull(e) ? x : mlirAffineAddExprGet(e, x);
    }
    MlirAffineExpr start = mlirAffineConstantExprGet(ctx, s->dim[d].start);
    result[d] = mlirAffineExprIsNull(e) ? start : s->dim[d].start ? mlirAffineAddExprGet(e, start) : e;
  }
  return mlirAffineMapGet(ctx, n_dims, 0, s->rank, result);
}

static struct nisa_access access_with(struct nki_lower *l, const struct nki_view *v, int par_dims, bool is_flat) {
  struct steps s;
  if (is_flat)
    s = flat_steps(v, par_dims);
  else if (!steps_of(v, par_dims, &s))
    assert(!"a view was split where its tensor's dimensions are not");
  struct nisa_access x = {.base = nki_memref_of(l, v->tensor, is_flat), .n_dims = v->rank, .par_dims = par_dims};
  for (int k = 0; k < v->rank; k++)
    x.tile[k] = v->dim[k].size;
  if (x.n_dims == par_dims) /* a tile has at least one free dimension */
    x.tile[x.n_dims++] = 1;
  x.map = map_of(l, x.n_dims, &s);
  return x;
}

/* The view as an operand, with par_dims leading dimensions for the partitions. */
struct nisa_access nki_access_of(struct nki_lower *l, const struct nki_view *v, int par_dims) {
  return access_with(l, v, par_dims, l->homes[v->tensor->number].is_flat);
}

bool nki_follows_dims(const struct nki_view *v) {
  struct steps s;
  return steps_of(v, 1, &s);
}

struct nisa_access nki_access_with_dims(struct nki_lower *l, const struct nki_view *v) {
  return access_with(l, v, 1, false);
}

/* The same view with fewer dimensions: those of size 1 are dropped, and neighbours that are one run are merged. */
static struct nki_view simple(const struct nki_view *v) {
  struct nki_view out = *v;
  out.rank = 1;
  for (int k = 1; k < v->rank; k++) {
    const struct nki_dim *x = &v->dim[k];
    struct nki_dim *last = &out.dim[out.rank - 1];
    if (x->size == 1)
      continue;
    if (out.rank > 1 && last->stride == x->stride * x->size)
      *last = (struct nki_dim){last->size * x->size, x->stride};
    else
      out.dim[out.rank++] = *x;
  }
  return out;
}

struct nisa_access nki_access_on_chip(struct nki_lower *l, const struct nki_view *v) {
  struct nki_view s = simple(v);
  struct steps steps;
  /* merged dimensions may be no step along one dimension of the tensor any more */
  if (!l->homes[v->tensor->number].is_flat && !steps_of(&s, 1, &steps))
    s = *v;
  return nki_access_of(l, &s, 1);
}
