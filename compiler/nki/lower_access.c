/* lower_access: the memories of tensors, and views as operands of instructions (nisa.h). */
#include <assert.h>
#include <string.h>

#include "nki/lower_internal.h"

/* What an index counts: the rounds of a loop from 0 up, or from the last one down to 0, because accesses only grow (nisa.h). */
struct counter {
  const struct nki_loop *loop;
  bool is_down;
  const struct nki_tensor *reg; /* instead of a loop */
};
enum { COUNTERS_MAX = 2 * NKI_TERMS_MAX };

/* A view as sums over the dimensions of its tensor's memref. */
struct steps {
  int rank, n_counters;
  struct counter counter[COUNTERS_MAX];
  struct {
    int64_t start, by[NKI_RANK_MAX], each[COUNTERS_MAX]; /* per step of a dimension of the view, and of a counter */
  } dim[NKI_RANK_MAX];
};

/* Adds counters for a loop in each round of which dimension d grows by by[d]; the start, in the first round, becomes that with
 * the counters 0. */
static void add_counters(struct steps *s, const struct nki_loop *loop, const int64_t *by) {
  for (int is_down = 0; is_down < 2; is_down++) {
    bool is_used = false;
    for (int d = 0; d < s->rank; d++) {
      const int64_t each = is_down ? -by[d] : by[d];
      s->dim[d].each[s->n_counters] = each > 0 ? each : 0;
      is_used |= each > 0;
      s->dim[d].start += is_down && each > 0 ? by[d] * (loop->trips - 1) : 0;
    }
    if (is_used)
      s->counter[s->n_counters++] = (struct counter){.loop = loop, .is_down = is_down};
  }
}

/* Adds a register, for each one of which dimension d grows by `by`. */
static void add_register(struct steps *s, const struct nki_tensor *reg, int d, int64_t by) {
  for (int i = 0; i < s->rank; i++)
    s->dim[i].each[s->n_counters] = i == d ? by : 0;
  s->counter[s->n_counters++] = (struct counter){.reg = reg};
}

/* On chip: the steps of the par_dims leading dimensions over the partitions. */
static void partition_steps(const struct nki_view *v, int par_dims, struct steps *out) {
  for (int k = 0; nki_is_on_chip(v) && k < par_dims; k++)
    out->dim[0].by[k] = v->dim[k].stride;
}

/* Writes the view over the tensor's own dimensions.  par_dims: on chip, the number of leading dimensions that count
 * partitions.  False if a step would leave a dimension. */
static bool steps_of(const struct nki_view *v, int par_dims, struct steps *out) {
  const struct nki_view whole = nki_whole(v->tensor);
  const int first = nki_is_on_chip(v);
  struct nki_start at;
  if (!nki_start_of(v, &at))
    return false;
  *out = (struct steps){.rank = whole.rank};
  for (int d = 0; d < whole.rank; d++)
    out->dim[d].start = at.start[d];
  partition_steps(v, par_dims, out);
  for (int k = first * par_dims; k < v->rank; k++) {
    int64_t stride = v->dim[k].size > 1 ? v->dim[k].stride : 0;
    for (int d = first; d < whole.rank; d++) {
      out->dim[d].by[k] = stride / whole.dim[d].stride;
      stride %= whole.dim[d].stride;
    }
  }
  for (int d = 0; d < whole.rank; d++) {
    int64_t last = at.most[d];
    for (int k = 0; k < v->rank; k++)
      last += out->dim[d].by[k] * (v->dim[k].size - 1);
    if (last >= v->tensor->dims[d])
      return false;
  }
  for (int i = 0; i < v->n_terms; i++) {
    int64_t by[NKI_RANK_MAX];
    if (v->terms[i].reg) {
      add_register(out, v->terms[i].reg, v->terms[i].dim, v->terms[i].by);
      continue;
    }
    for (int d = 0; d < whole.rank; d++)
      by[d] = at.by[d][i];
    add_counters(out, v->terms[i].loop, by);
  }
  return true;
}

/* Writes the view over (partitions, elements) on chip, and over the elements in HBM. */
static struct steps flat_steps(const struct nki_view *v, int par_dims) {
  const int first = nki_is_on_chip(v);
  struct steps s = {.rank = first + 1};
  s.dim[0].start = v->partition;
  s.dim[first].start = v->offset;
  partition_steps(v, par_dims, &s);
  for (int k = first * par_dims; k < v->rank; k++)
    s.dim[first].by[k] = v->dim[k].stride;
  for (int i = 0; i < v->n_terms; i++) {
    int64_t by[2] = {v->terms[i].partition};
    if (v->terms[i].reg) {
      add_register(&s, v->terms[i].reg, first, v->terms[i].offset);
      continue;
    }
    by[first] = v->terms[i].offset;
    add_counters(&s, v->terms[i].loop, by);
  }
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

/* Of a transfer, the dimensions that both sides have in common decide. */
static void find_flat_copy(struct nki_lower *l, const struct nki_call *c) {
  struct nki_copy copy;
  struct steps s;
  if (nki_value(c, "dst_index")->kind == NKI_VIEW || nki_value(c, "src_index")->kind == NKI_VIEW ||
      !nki_copy_of(c, &copy))
    return;
  for (int k = 0; k < 2; k++) {
    const struct nki_view *v = k ? &copy.src : &copy.dst;
    if (!steps_of(v, copy.par_dims, &s))
      l->homes[v->tensor->number].is_flat = true;
  }
}

static void find_flat(struct nki_lower *l, const struct nki_items *items) {
  struct nki_error err = {.arena = &l->arena};
  struct nki_view shaped;
  struct steps s;
  for (int i = 0; i < items->n; i++) {
    const struct nki_call *c = items->v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW && (c->value[k].view->tensor->storage || !steps_of(c->value[k].view, 1, &s)))
        l->homes[c->value[k].view->tensor->number].is_flat = true;
    if (c && c->kind == NKI_DMA_COPY)
      find_flat_copy(l, c);
    if (c && c->kind == NKI_IOTA && nki_shape_by_pattern(c, &shaped, &err) && !steps_of(&shaped, 1, &s))
      l->homes[shaped.tensor->number].is_flat = true;
    if (items->v[i].loop)
      find_flat(l, &items->v[i].loop->items);
  }
}

void nki_find_flat(struct nki_lower *l) {
  find_flat(l, &l->p->items);
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
  MlirOperation op = nisa_create_alloc(l->b.loc, nki_memref_type(l, t, is_flat), t->has_address ? 0 : 64);
  const int64_t bank = nisa_machine(l->p->target)->psum_bank_bytes;
  struct nisa_place at = {.partition = t->partition, .offset = t->address};
  if (t->space == MEM_PSUM)
    at = (struct nisa_place){.bank = t->address / bank, .offset = t->address % bank};
  if (t->has_address)
    nisa_set_address(op, &at);
  mlirBlockAppendOwnedOperation(l->b.block, op);
  return ir_result(op);
}

/* The memref of a tensor; on chip it is allocated if there is none. */
MlirValue nki_memref_of(struct nki_lower *l, const struct nki_tensor *t, bool is_flat) {
  t = t->storage ? t->storage : t;
  struct nki_home *h = &l->homes[t->number];
  if (mlirValueIsNull(h->memref))
    h->memref = allocate(l, t, h->is_flat && mem_is_on_chip(t->space));
  if (!is_flat || mem_is_on_chip(t->space) || t->rank == 1)
    return h->memref;
  if (!mlirValueIsNull(h->flat))
    return h->flat;
  MlirAttribute dims[NKI_RANK_MAX];
  for (int i = 0; i < t->rank; i++)
    dims[i] = ir_i64_attr(&l->b, i);
  MlirAttribute group = mlirArrayAttrGet(l->b.ctx, t->rank, dims);
  MlirNamedAttribute all = ir_named(&l->b, "reassociation", mlirArrayAttrGet(l->b.ctx, 1, &group));
  MlirValue flat = ir_op1_with(&l->b, "memref.collapse_shape", nki_memref_type(l, t, true), 1, &h->memref, 1, &all);
  if (!l->nesting) /* what a loop makes does not exist after it */
    h->flat = flat;
  return flat;
}

void nki_release(struct nki_lower *l, struct nki_home *h) {
  ir_op0(&l->b, "nisa.release", 1, &h->memref);
  h->memref = (MlirValue){NULL};
}

/* x with e * by added to it; x may be null. */
static MlirAffineExpr plus(MlirContext ctx, MlirAffineExpr x, MlirAffineExpr e, int64_t by) {
  if (!by)
    return x;
  if (by != 1)
    e = mlirAffineMulExprGet(e, mlirAffineConstantExprGet(ctx, by));
  return mlirAffineExprIsNull(x) ? e : mlirAffineAddExprGet(x, e);
}

static MlirValue index_of(struct nki_lower *l, const struct counter *c) {
  if (c->reg)
    return nki_register_index(l, c->reg);
  MlirValue v = l->counters[c->loop->depth];
  return c->is_down ? ir_binary(&l->b, "arith.subi", ir_index(&l->b, c->loop->trips - 1), v) : v;
}

MlirValue nki_sum(struct nki_lower *l, int64_t start, int n, const struct nki_term *terms) {
  MlirValue sum = ir_index(&l->b, start);
  for (int i = 0; i < n; i++) {
    MlirValue by = ir_index(&l->b, terms[i].offset);
    sum = ir_binary(&l->b, "arith.addi", sum, ir_binary(&l->b, "arith.muli", l->counters[terms[i].loop->depth], by));
  }
  return sum;
}

/* Sets the map (d0, …)[s0, …] -> (start + by[0] * d0 + … + each[0] * s0 + …, …) and its indices.  Each use of a counter is an index
 * of its own, in the order of the text, as the parser has them: the printer writes nothing else in brackets.  If there are more uses
 * than an access has indices, a counter is one index. */
static void put_map(struct nki_lower *l, struct nisa_access *x, const struct steps *s) {
  MlirContext ctx = l->b.ctx;
  MlirAffineExpr result[NKI_RANK_MAX];
  MlirValue counter[COUNTERS_MAX];
  int n_uses = 0;
  for (int i = 0; i < s->n_counters; i++) {
    counter[i] = index_of(l, &s->counter[i]);
    for (int d = 0; d < s->rank; d++)
      n_uses += s->dim[d].each[i] != 0;
  }
  const bool is_apart = n_uses <= NISA_RANK_MAX;
  if (!is_apart)
    memcpy(x->indices, counter, sizeof *counter * (size_t)s->n_counters);
  for (int d = 0; d < s->rank; d++) {
    MlirAffineExpr e = {NULL};
    for (int k = 0; k < x->n_dims; k++)
      e = plus(ctx, e, mlirAffineDimExprGet(ctx, k), s->dim[d].by[k]);
    for (int i = 0; i < s->n_counters; i++) {
      if (!s->dim[d].each[i])
        continue;
      e = plus(ctx, e, mlirAffineSymbolExprGet(ctx, is_apart ? x->n_indices : i), s->dim[d].each[i]);
      if (is_apart)
        x->indices[x->n_indices++] = counter[i];
    }
    MlirAffineExpr start = mlirAffineConstantExprGet(ctx, s->dim[d].start);
    result[d] = mlirAffineExprIsNull(e) ? start : s->dim[d].start ? mlirAffineAddExprGet(e, start) : e;
  }
  x->n_indices = is_apart ? x->n_indices : s->n_counters;
  x->map = mlirAffineMapGet(ctx, x->n_dims, x->n_indices, s->rank, result);
}

static struct nisa_access access_with(struct nki_lower *l, const struct nki_view *v, int par_dims, bool is_flat) {
  struct steps s;
  if (is_flat)
    s = flat_steps(v, par_dims);
  else if (!steps_of(v, par_dims, &s))
    assert(!"a view was split where its tensor's dimensions are not");
  struct nisa_access x = {.base = nki_memref_of(l, v->tensor, is_flat), .n_dims = v->rank, .par_dims = par_dims};
  MlirType element = ir_element_type(&l->b, v->tensor->dtype);
  if (!mlirTypeEqual(element, nisa_access_element(&x)))
    x.type = element;
  for (int k = 0; k < v->rank; k++)
    x.tile[k] = v->dim[k].size;
  if (x.n_dims == par_dims) /* a tile has at least one free dimension */
    x.tile[x.n_dims++] = 1;
  put_map(l, &x, &s);
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
