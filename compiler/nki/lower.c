/* lower: see lower.h.  plan.c decides when allocations begin and end. */
#include "nki/lower.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "nisa/nisa.h"
#include "nki/compose.h"
#include "nki/plan.h"

/* The memory of a tensor. */
struct home {
  MlirValue memref; /* null: there is none at present */
  bool is_flat;   /* some view does not step along the tensor's own dimensions: on chip it is (partitions, elements) */
  MlirValue flat; /* of a flat tensor in HBM that comes from outside: its memref as one dimension */
};

struct lower {
  struct ir *ir;
  const struct nki_program *p;
  struct diags *ds;
  struct arena arena;
  struct ir_builder b; /* at the end of the function */
  struct nki_plan plan;
  struct home *homes;                   /* of the program's tensors, and of those below */
  struct nki_tensor identity[DT_COUNT]; /* identity matrices; rank 0: not made yet */
};

/* The numbers of tensors that the program does not have: the result of a call as f32, temporary ones of compose.c, and
 * identity matrices. */
static int floats_number(const struct lower *l) {
  return l->p->tensors.n;
}
static int first_temp(const struct lower *l) {
  return l->p->tensors.n + 1;
}
static int identity_number(const struct lower *l, enum dtype t) {
  return first_temp(l) + NKI_TEMPS_MAX + (int)t;
}

static enum status refuse(struct lower *l, const struct nki_call *c, const char *hint, const char *what) {
  diag_add(l->ds, DS_ERROR, DG_NKI_UNSUPPORTED, c->locs.n ? c->locs.v[0] : NULL, "nisa.%s: %s", nki_def(c)->name, what)
      ->hint = hint;
  return ST_INPUT;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

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
static bool shape_by_pattern(const struct nki_call *c, struct nki_view *out, struct nki_error *err) {
  const struct nki_view *dst = nki_value(c, "dst")->view;
  const struct nki_value *pattern = nki_value(c, "pattern");
  int64_t dims[NKI_RANK_MAX] = {dst->dim[0].size};
  for (int k = 1; k <= pattern->n / 2; k++)
    dims[k] = pattern->ints[2 * k - 1];
  return nki_view_reshape(dst, 1 + pattern->n / 2, dims, out, err);
}

static void find_flat(struct lower *l) {
  struct nki_error err = {.arena = &l->arena};
  struct nki_view shaped;
  struct steps s;
  for (int i = 0; i < l->p->items.n; i++) {
    const struct nki_call *c = l->p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW && !steps_of(c->value[k].view, 1, &s))
        l->homes[c->value[k].view->tensor->number].is_flat = true;
    if (c && c->kind == NKI_IOTA && shape_by_pattern(c, &shaped, &err) && !steps_of(&shaped, 1, &s))
      l->homes[shaped.tensor->number].is_flat = true;
  }
}

static MlirType memref_type(struct lower *l, const struct nki_tensor *t, bool is_flat) {
  MlirAttribute space = nisa_space_attr(l->b.ctx, t->space), no_layout = {NULL};
  const bool on_chip = mem_is_on_chip(t->space);
  const int64_t flat[] = {on_chip ? t->dims[0] : nki_tensor_extent(t), nki_tensor_extent(t)};
  MlirType element = ir_element_type(&l->b, t->dtype);
  return is_flat ? mlirMemRefTypeGet(element, on_chip ? 2 : 1, flat, no_layout, space)
                 : mlirMemRefTypeGet(element, t->rank, t->dims, no_layout, space);
}

static MlirValue allocate(struct lower *l, const struct nki_tensor *t, bool is_flat) {
  MlirOperation op = nisa_create_alloc(l->b.loc, memref_type(l, t, is_flat), 64);
  mlirBlockAppendOwnedOperation(l->b.block, op);
  return ir_result(op);
}

/* The memref of a tensor; on chip it is allocated if there is none. */
static MlirValue memref_of(struct lower *l, const struct nki_tensor *t, bool is_flat) {
  struct home *h = &l->homes[t->number];
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
    h->flat = ir_op1_with(&l->b, "memref.collapse_shape", memref_type(l, t, true), 1, &h->memref, 1, &all);
  }
  return h->flat;
}

static void release(struct lower *l, struct home *h) {
  ir_op0(&l->b, "nisa.release", 1, &h->memref);
  h->memref = (MlirValue){NULL};
}

/* The map (d0, …) -> (start + by[0] * d0 + …, …). */
static MlirAffineMap map_of(struct lower *l, int n_dims, const struct steps *s) {
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

/* The view as an operand, with par_dims leading dimensions for the partitions. */
static struct nisa_access access_of(struct lower *l, const struct nki_view *v, int par_dims) {
  const struct nki_tensor *t = v->tensor;
  const struct home *h = &l->homes[t->number];
  struct steps s;
  if (h->is_flat)
    s = flat_steps(v, par_dims);
  else if (!steps_of(v, par_dims, &s))
    assert(!"a view was split where its tensor's dimensions are not");
  struct nisa_access x = {.base = memref_of(l, t, h->is_flat), .n_dims = v->rank, .par_dims = par_dims};
  for (int k = 0; k < v->rank; k++)
    x.tile[k] = v->dim[k].size;
  if (x.n_dims == par_dims) /* a tile has at least one free dimension */
    x.tile[x.n_dims++] = 1;
  x.map = map_of(l, x.n_dims, &s);
  return x;
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

static struct nisa_access on_chip(struct lower *l, const struct nki_view *v) {
  struct nki_view s = simple(v);
  struct steps steps;
  /* merged dimensions may be no step along one dimension of the tensor any more */
  if (!l->homes[v->tensor->number].is_flat && !steps_of(&s, 1, &steps))
    s = *v;
  return access_of(l, &s, 1);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static struct nisa_access scalar(MlirValue v) {
  return (struct nisa_access){.base = v};
}

static MlirType f32(struct lower *l) {
  return mlirF32TypeGet(l->b.ctx);
}

/* A number or a column; `bits`: an integer of dst's type. */
static struct nisa_access number_or_column(struct lower *l, const struct nki_value *v, double missing,
                                           enum dtype bits) {
  if (v->kind == NKI_VIEW)
    return on_chip(l, v->view);
  if (bits != DT_NONE)
    return scalar(ir_int(&l->b, ir_element_type(&l->b, bits), v->integer));
  return scalar(ir_float(&l->b, f32(l), v->kind == NKI_ABSENT ? missing : v->number));
}

static bool is_unsigned(const struct nki_call *c) {
  for (int k = 0; k < nki_n_params(nki_def(c)); k++)
    if (c->value[k].kind == NKI_VIEW && dtype_kind(c->value[k].view->tensor->dtype) == DK_UNSIGNED)
      return true;
  return false;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

enum { ATTRS_MAX = 6 };
struct attrs {
  int n;
  MlirNamedAttribute v[ATTRS_MAX];
};
static void add_attr(struct lower *l, struct attrs *x, const char *name, MlirAttribute value) {
  assert(x->n < ATTRS_MAX);
  x->v[x->n++] = ir_named(&l->b, name, value);
}
static void add_text(struct lower *l, struct attrs *x, const char *name, const char *text) {
  add_attr(l, x, name, mlirStringAttrGet(l->b.ctx, ir_str(text)));
}
static void add_bool(struct lower *l, struct attrs *x, const char *name, bool v) {
  add_attr(l, x, name, mlirBoolAttrGet(l->b.ctx, v));
}

static void emit(struct lower *l, enum nisa_kind kind, enum nisa_engine engine, const struct nki_call *c,
                 const struct nisa_access *operands, struct attrs *attrs) {
  struct nisa_instr in = {.def = nisa_op_def(kind), .engine = engine};
  struct attrs none = {0};
  attrs = attrs ? attrs : &none;
  memcpy(in.operand, operands, (size_t)in.def->n_operands * sizeof *operands);
  if (is_unsigned(c))
    add_attr(l, attrs, "unsigned", mlirUnitAttrGet(l->b.ctx));
  mlirBlockAppendOwnedOperation(l->b.block, nisa_create(&in, l->b.loc, attrs->n, attrs->v));
}

#define VIEW(name) (nki_value(c, name)->view)

/* How many leading dimensions make up n elements; 0 if none do. */
static int leading(const struct nki_view *v, int64_t n) {
  int64_t have = 1;
  for (int k = 0; k < v->rank; k++)
    if ((have *= v->dim[k].size) == n)
      return k + 1;
  return 0;
}

static bool lead_with_one(struct nki_view *v) {
  if (v->rank == NKI_RANK_MAX)
    return false;
  memmove(&v->dim[1], &v->dim[0], (size_t)v->rank++ * sizeof *v->dim);
  v->dim[0] = (struct nki_dim){1, 1};
  return true;
}

static enum status lower_dma_copy(struct lower *l, const struct nki_call *c) {
  struct nki_view dst = *VIEW("dst"), src = *VIEW("src");
  const int64_t partitions = nki_is_on_chip(&dst) ? dst.dim[0].size : nki_is_on_chip(&src) ? src.dim[0].size : 0;
  if (nki_is_on_chip(&dst) && nki_is_on_chip(&src) && dst.dim[0].size != src.dim[0].size)
    return refuse(l, c, "copy through HBM", "the partitions of both sides differ; that is not compiled here yet");
  if (!nki_views_align(&dst, &src))
    return refuse(l, c, "copy in several steps", "the shapes of both sides have no common parts");
  if (partitions == 1 && dst.dim[0].size != 1 && (!lead_with_one(&dst) || !lead_with_one(&src)))
    return refuse(l, c, "copy in several steps", "both sides have too many dimensions");
  const int par_dims = partitions ? leading(&dst, partitions) : 1;
  if (!par_dims)
    return refuse(l, c, "copy in several steps", "the rows of the array in HBM are not those of the partitions");
  struct nisa_access x[] = {access_of(l, &dst, par_dims), access_of(l, &src, par_dims)};
  emit(l, NISA_DMA_COPY, NISA_ENGINE_DMA, c, x, NULL);
  return ST_OK;
}

static enum status lower_matmul(struct lower *l, const struct nki_call *c) {
  MlirValue zero = ir_index(&l->b, 0);
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("stationary")), on_chip(l, VIEW("moving")),
                            scalar(zero), scalar(zero)};
  struct attrs attrs = {0};
  add_bool(l, &attrs, "is_transpose", false);
  add_text(l, &attrs, "perf_opt", "none_");
  add_text(l, &attrs, "psum_zero_region", "size2048");
  emit(l, NISA_MATMUL, c->engine, c, x, &attrs);
  return ST_OK;
}

static void lower_dma_transpose(struct lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {access_of(l, VIEW("dst"), 1), access_of(l, VIEW("src"), 1)};
  static const int64_t turned[] = {1, 0};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "permutation", ir_i64_array(&l->b, 2, turned));
  emit(l, NISA_DMA_TRANSPOSE, NISA_ENGINE_DMA, c, x, &attrs);
}

static void lower_tensor_tensor(struct lower *l, const struct nki_call *c) {
  const char *op = nki_value(c, "op")->op->nisa;
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data1")), on_chip(l, VIEW("data2"))};
  struct attrs attrs = {0};
  if (!strcmp(op, "pow")) {
    emit(l, NISA_TENSOR_TENSOR_POWER, c->engine, c, x, NULL);
    return;
  }
  add_text(l, &attrs, "op", op);
  emit(l, NISA_TENSOR_TENSOR_ARITH, c->engine, c, x, &attrs);
}

static void lower_tensor_scalar(struct lower *l, const struct nki_call *c) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  const struct nki_value *op0 = nki_value(c, "op0"), *op1 = nki_value(c, "op1");
  const enum dtype bits = op0->op->is == NKI_BITS ? VIEW("dst")->tensor->dtype : DT_NONE;
  struct nisa_access x[4] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data")),
                             number_or_column(l, nki_value(c, "operand0"), 0, bits)};
  if (op1->kind == NKI_OP)
    x[3] = number_or_column(l, nki_value(c, "operand1"), 0, bits);
  struct attrs attrs = {0};
  add_text(l, &attrs, "op0", op0->op->nisa);
  if (op1->kind == NKI_OP)
    add_text(l, &attrs, "op1", op1->op->nisa);
  const bool first = nki_value(c, "reverse0")->integer, second = nki_value(c, "reverse1")->integer;
  add_text(l, &attrs, "reverse_operands", reverse[first + 2 * second]);
  emit(l, NISA_TENSOR_SCALAR_ARITH, c->engine, c, x, &attrs);
}

/* Drops the dimensions of size 1, but keeps one that is reduced.  *n: the number of dimensions that are reduced. */
static struct nki_view drop_ones(const struct nki_view *v, int *n) {
  struct nki_view out = *v;
  int kept = 0;
  out.rank = 1;
  for (int k = 1; k < v->rank; k++) {
    const bool reduced = k >= v->rank - *n;
    if (v->dim[k].size == 1 && !(reduced && k == v->rank - 1 && !kept))
      continue;
    kept += reduced;
    out.dim[out.rank++] = v->dim[k];
  }
  *n = kept;
  return out;
}

static void lower_reduce(struct lower *l, const struct nki_call *c) {
  int n = nki_value(c, "axis")->n;
  const struct nki_view data = drop_ones(VIEW("data"), &n);
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), access_of(l, &data, 1)};
  struct attrs attrs = {0};
  const bool negate = nki_value(c, "negate")->integer;
  const char *op = nki_value(c, "op")->op->nisa;
  /* NKI negates the result, NISA what it reads: -max(x) is min(-x) */
  if (negate && (!strcmp(op, "max") || !strcmp(op, "min")))
    op = !strcmp(op, "max") ? "min" : "max";
  add_text(l, &attrs, "op", op);
  add_bool(l, &attrs, "negated", negate);
  add_attr(l, &attrs, "num_r_dim", ir_i64_attr(&l->b, n));
  emit(l, NISA_TENSOR_REDUCE_ARITH, c->engine, c, x, &attrs);
}

static void lower_partition_reduce(struct lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data"))};
  struct attrs attrs = {0};
  add_text(l, &attrs, "reduce_op", nki_value(c, "op")->op->nisa);
  add_attr(l, &attrs, "num_r_dim", ir_i64_attr(&l->b, 0));
  emit(l, NISA_CROSS_LANE_REDUCE_ARITH, c->engine, c, x, &attrs);
}

static void put_memset(struct lower *l, const struct nki_call *c, const struct nki_view *dst, double value,
                       enum nisa_engine engine) {
  struct nisa_access x[] = {on_chip(l, dst), scalar(ir_number(&l->b, dst->tensor->dtype, value))};
  emit(l, NISA_MEMSET, engine, c, x, NULL);
}

static void lower_activation(struct lower *l, const struct nki_call *c) {
  const struct nki_value *res = nki_value(c, "reduce_res");
  if (res->kind == NKI_VIEW) /* NISA adds to it */
    put_memset(l, c, res->view, 0, NISA_ENGINE_VECTOR);
  struct nisa_access x[6] = {on_chip(l, VIEW("dst")),
                             {.n_dims = 0},
                             on_chip(l, VIEW("data")),
                             number_or_column(l, nki_value(c, "bias"), 0, DT_NONE),
                             number_or_column(l, nki_value(c, "scale"), 1, DT_NONE)};
  if (res->kind == NKI_VIEW)
    x[1] = on_chip(l, res->view);
  struct attrs attrs = {0};
  add_text(l, &attrs, "op", nki_value(c, "op")->op->nisa);
  emit(l, NISA_ACTIVATION, c->engine, c, x, &attrs);
}

static void lower_predicated(struct lower *l, const struct nki_call *c) {
  const struct nki_value *src = nki_value(c, "src");
  const enum dtype t = VIEW("dst")->tensor->dtype;
  struct nisa_access x[] = {
      on_chip(l, VIEW("dst")),
      src->kind == NKI_VIEW ? on_chip(l, src->view) : scalar(ir_number(&l->b, t, src->number)),
      on_chip(l, VIEW("predicate")),
  };
  struct attrs attrs = {0};
  add_bool(l, &attrs, "reverse_pred", nki_value(c, "reverse_pred")->integer);
  emit(l, NISA_TENSOR_COPY_PREDICATED, c->engine, c, x, &attrs);
}

static int64_t first_int(const struct nki_value *v) {
  return v->n ? v->ints[0] : 0;
}

static enum status lower_iota(struct lower *l, const struct nki_call *c) {
  const struct nki_value *pattern = nki_value(c, "pattern");
  struct nki_error err = {.arena = l->ds->arena};
  struct nki_view dst;
  int64_t by[NKI_RANK_MAX] = {first_int(nki_value(c, "channel_multiplier"))};
  const int n = 1 + pattern->n / 2;
  for (int k = 1; k < n; k++)
    by[k] = pattern->ints[2 * k - 2];
  if (!shape_by_pattern(c, &dst, &err))
    return refuse(l, c, err.hint, err.text);
  struct nisa_access x[] = {access_of(l, &dst, 1), scalar(ir_index(&l->b, first_int(nki_value(c, "offset"))))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "coefficients", ir_i64_array(&l->b, n, by));
  emit(l, NISA_IOTA, c->engine, c, x, &attrs);
  return ST_OK;
}

/* The identity matrix of a type, in SBUF until the function ends.  At its first use it is made of the numbers column -
 * row, of which those on the diagonal are 0. */
static struct nki_view identity_of(struct lower *l, const struct nki_call *c, enum dtype dtype) {
  struct nki_tensor *t = &l->identity[dtype];
  const bool is_made = t->rank;
  *t = (struct nki_tensor){.number = identity_number(l, dtype),
                           .dtype = dtype,
                           .space = MEM_SBUF,
                           .rank = 2,
                           .dims = {NISA_PARTITIONS, NISA_PARTITIONS},
                           .input = -1};
  struct nki_tensor numbers = *t;
  struct nki_view out = nki_whole(t), from = nki_whole(&numbers);
  if (is_made)
    return out;
  numbers.number = first_temp(l);
  numbers.dtype = DT_F32;
  static const int64_t by[] = {-1, 1};
  struct nisa_access iota[] = {access_of(l, &from, 1), scalar(ir_index(&l->b, 0))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "coefficients", ir_i64_array(&l->b, 2, by));
  emit(l, NISA_IOTA, NISA_ENGINE_GPSIMD, c, iota, &attrs);
  struct nisa_access compare[4] = {access_of(l, &out, 1), iota[0], scalar(ir_float(&l->b, f32(l), 0))};
  attrs = (struct attrs){0};
  add_text(l, &attrs, "op0", "is_eq");
  add_text(l, &attrs, "reverse_operands", "none");
  emit(l, NISA_TENSOR_SCALAR_ARITH, NISA_ENGINE_VECTOR, c, compare, &attrs);
  release(l, &l->homes[numbers.number]);
  return out;
}

/* data.T @ identity: is_transpose passes the elements through unchanged. */
static enum status lower_transpose(struct lower *l, const struct nki_call *c) {
  const int64_t rows = VIEW("data")->dim[0].size;
  struct nki_view identity = identity_of(l, c, VIEW("data")->tensor->dtype);
  identity.dim[0].size = identity.dim[1].size = rows;
  MlirValue zero = ir_index(&l->b, 0);
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data")), access_of(l, &identity, 1), scalar(zero),
                            scalar(zero)};
  struct attrs attrs = {0};
  add_bool(l, &attrs, "is_transpose", true);
  add_text(l, &attrs, "perf_opt", "none_");
  add_text(l, &attrs, "psum_zero_region", "size2048");
  emit(l, NISA_MATMUL, c->engine, c, x, &attrs);
  return ST_OK;
}

static void lower_copy(struct lower *l, const struct nki_call *c, enum nisa_kind kind, const char *src) {
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW(src))};
  emit(l, kind, c->engine, c, x, NULL);
}

static void lower_scan(struct lower *l, const struct nki_call *c) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data0")), on_chip(l, VIEW("data1")),
                            number_or_column(l, nki_value(c, "initial"), 0, DT_NONE)};
  struct attrs attrs = {0};
  add_text(l, &attrs, "op0", nki_value(c, "op0")->op->nisa);
  add_text(l, &attrs, "op1", nki_value(c, "op1")->op->nisa);
  add_text(l, &attrs, "reverse_operands",
           reverse[nki_value(c, "reverse0")->integer + 2 * nki_value(c, "reverse1")->integer]);
  emit(l, NISA_TENSOR_TENSOR_SCAN, c->engine, c, x, &attrs);
}

/* What leaves y as it is in `start op y`; 0 - y for subtract. */
static double start_of(const char *op) {
  return !strcmp(op, "multiply") ? 1 : !strcmp(op, "max") ? -INFINITY : !strcmp(op, "min") ? INFINITY : 0;
}

static void lower_cumulative(struct lower *l, const struct nki_call *c) {
  const char *op1 = nki_value(c, "op1")->op->nisa;
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("src")),
                            number_or_column(l, nki_value(c, "imm0"), 0, DT_NONE),
                            number_or_column(l, nki_value(c, "imm1"), start_of(op1), DT_NONE)};
  struct attrs attrs = {0};
  add_text(l, &attrs, "op0", nki_value(c, "op0")->op->nisa);
  add_text(l, &attrs, "op1", op1);
  emit(l, NISA_TENSOR_SCALAR_CUMULATIVE, c->engine, c, x, &attrs);
}

static void lower_find(struct lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {on_chip(l, VIEW("dst")), on_chip(l, VIEW("data")), on_chip(l, VIEW("vals"))};
  emit(l, NISA_FIND_INDEX8, c->engine, c, x, NULL);
}

static void lower_replace(struct lower *l, const struct nki_call *c) {
  const struct nki_value *places = nki_value(c, "dst_idx");
  struct nisa_access x[] = {on_chip(l, VIEW("dst")),
                            {.n_dims = 0},
                            on_chip(l, VIEW("data")),
                            on_chip(l, VIEW("vals")),
                            scalar(ir_float(&l->b, f32(l), nki_value(c, "imm")->number))};
  if (places->kind == NKI_VIEW)
    x[1] = on_chip(l, places->view);
  emit(l, NISA_MATCH_REPLACE8, c->engine, c, x, NULL);
}

static enum status lower_call(struct lower *l, const struct nki_call *c) {
  switch (c->kind) {
  case NKI_DMA_COPY:
    return lower_dma_copy(l, c);
  case NKI_TENSOR_COPY:
    lower_copy(l, c, NISA_TENSOR_COPY, "src");
    return ST_OK;
  case NKI_TENSOR_COPY_PREDICATED:
    lower_predicated(l, c);
    return ST_OK;
  case NKI_MEMSET:
    put_memset(l, c, VIEW("dst"), nki_value(c, "value")->number, c->engine);
    return ST_OK;
  case NKI_NC_MATMUL:
    return lower_matmul(l, c);
  case NKI_TENSOR_TENSOR:
    lower_tensor_tensor(l, c);
    return ST_OK;
  case NKI_TENSOR_SCALAR:
    lower_tensor_scalar(l, c);
    return ST_OK;
  case NKI_TENSOR_REDUCE:
    lower_reduce(l, c);
    return ST_OK;
  case NKI_TENSOR_PARTITION_REDUCE:
    lower_partition_reduce(l, c);
    return ST_OK;
  case NKI_ACTIVATION:
  case NKI_ACTIVATION_REDUCE:
    lower_activation(l, c);
    return ST_OK;
  case NKI_RECIPROCAL:
    lower_copy(l, c, NISA_RECIPROCAL, "data");
    return ST_OK;
  case NKI_IOTA:
    return lower_iota(l, c);
  case NKI_TENSOR_TENSOR_SCAN:
    lower_scan(l, c);
    return ST_OK;
  case NKI_TENSOR_SCALAR_CUMULATIVE:
    lower_cumulative(l, c);
    return ST_OK;
  case NKI_BN_STATS:
    lower_copy(l, c, NISA_BN_STATS, "data");
    return ST_OK;
  case NKI_BN_AGGR:
    lower_copy(l, c, NISA_BN_AGGR, "data");
    return ST_OK;
  case NKI_MAX8:
    lower_copy(l, c, NISA_MAX8, "src");
    return ST_OK;
  case NKI_NC_FIND_INDEX8:
    lower_find(l, c);
    return ST_OK;
  case NKI_NC_MATCH_REPLACE8:
    lower_replace(l, c);
    return ST_OK;
  case NKI_DMA_TRANSPOSE:
    lower_dma_transpose(l, c);
    return ST_OK;
  case NKI_NC_TRANSPOSE:
    return lower_transpose(l, c);
  default:
    return ST_BUG; /* compose.c has taken it apart */
  }
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* Gives what the call writes in PSUM a new allocation. */
static void open_groups(struct lower *l, const struct nki_call *c) {
  for (int k = 0; k < nki_n_params(nki_def(c)); k++)
    if (nki_def(c)->param[k].kind == NKI_PARAM_DST && c->value[k].kind == NKI_VIEW)
      l->homes[c->value[k].view->tensor->number].memref = (MlirValue){NULL};
}

/* ---- signed and unsigned integers -------------------------------------------------------------------------------- */

/* NISA reads and writes all integers of an instruction as signed, or all as unsigned.  True if that is not what the call
 * means: its result is converted to an integer of another kind than those that it reads. */
static bool mixes_signs(const struct nki_call *c) {
  const struct nki_value *dst = nki_value(c, "dst"), *op = NULL;
  bool differs = false;
  if (c->kind == NKI_TENSOR_COPY_PREDICATED || c->kind == NKI_DMA_COPY || !dtype_is_int(dst->view->tensor->dtype))
    return false;
  for (int k = 0; k < nki_n_params(nki_def(c)); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind == NKI_OP && !op)
      op = v;
    if (v->kind == NKI_VIEW && dtype_is_int(v->view->tensor->dtype))
      differs |= dtype_kind(v->view->tensor->dtype) != dtype_kind(dst->view->tensor->dtype);
  }
  return differs && !(op && op->op->is == NKI_BITS);
}

/* Computes the result of the call as f32, in which the engine computes anyway, and converts that. */
static enum status lower_by_floats(struct lower *l, const struct nki_call *c) {
  const struct nki_value *dst = nki_value(c, "dst");
  struct nki_tensor floats = {
      .number = floats_number(l), .dtype = DT_F32, .space = MEM_SBUF, .rank = dst->view->rank, .input = -1};
  for (int k = 0; k < floats.rank; k++)
    floats.dims[k] = dst->view->dim[k].size;
  struct nki_view whole = nki_whole(&floats);
  struct nki_call first = *c, then = {.kind = NKI_TENSOR_COPY, .engine = NISA_ENGINE_VECTOR, .locs = c->locs};
  first.value[dst - c->value].view = &whole;
  then.value[0] = *dst;
  then.value[1] = (struct nki_value){.kind = NKI_VIEW, .view = &whole};
  enum status st = lower_call(l, &first);
  if (st)
    return st;
  lower_copy(l, &then, NISA_TENSOR_COPY, "src");
  release(l, &l->homes[floats.number]);
  return ST_OK;
}

static enum status lower_alone(struct lower *l, const struct nki_call *c) {
  return mixes_signs(c) ? lower_by_floats(l, c) : lower_call(l, c);
}

static enum status lower_steps(struct lower *l, const struct nki_call *c) {
  struct nki_steps s = {.arena = &l->arena, .first_temp = first_temp(l)};
  enum status st = ST_OK;
  if (!nki_compose(c, &s))
    return lower_alone(l, c);
  for (int k = 0; !st && k < s.n; k++)
    st = lower_alone(l, &s.step[k]);
  for (int k = 0; !st && k < s.n_temps; k++)
    release(l, &l->homes[s.temp[k]->number]);
  return st;
}

static enum status lower_item(struct lower *l, int i) {
  const struct nki_call *c = l->p->items.v[i].call;
  const struct nki_item_plan *plan = &l->plan.items[i];
  if (!c)
    return ST_OK;
  l->b.loc = ir_loc_tagged(l->b.ctx, i + 1, c->locs);
  if (plan->opens)
    open_groups(l, c);
  enum status st = plan->skip ? ST_OK : lower_steps(l, c);
  for (int k = 0; !st && k < nki_n_params(nki_def(c)); k++)
    if (plan->ends >> k & 1)
      release(l, &l->homes[c->value[k].view->tensor->number]);
  return st;
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static int count_inputs(const struct nki_program *p) {
  int n = 0;
  for (int i = 0; i < p->tensors.n; i++)
    n += p->tensors.v[i]->input >= 0;
  return n;
}

static MlirRegion make_region(struct lower *l, int n, MlirType *types) {
  MlirLocation *locs = arena_new_array(&l->arena, MlirLocation, (size_t)n);
  MlirRegion region = mlirRegionCreate();
  for (int i = 0; i < l->p->tensors.n; i++) {
    const struct nki_tensor *t = l->p->tensors.v[i];
    if (t->input < 0)
      continue;
    types[t->input] = memref_type(l, t, false);
    locs[t->input] = ir_loc_tagged(l->b.ctx, 0, t->locs);
  }
  l->b.block = mlirBlockCreate(n, types, locs);
  mlirRegionAppendOwnedBlock(region, l->b.block);
  for (int i = 0; i < l->p->tensors.n; i++)
    if (l->p->tensors.v[i]->input >= 0)
      l->homes[i].memref = mlirBlockGetArgument(l->b.block, l->p->tensors.v[i]->input);
  return region;
}

static void add_function(struct lower *l, MlirModule module, MlirRegion region, int n_args, MlirType *args) {
  const struct nki_program *p = l->p;
  MlirType *results = arena_new_array(&l->arena, MlirType, (size_t)p->n_outputs);
  MlirAttribute *names = arena_new_array(&l->arena, MlirAttribute, (size_t)p->n_outputs);
  for (int i = 0; i < p->n_outputs; i++) {
    results[i] = memref_type(l, p->outputs[i], false);
    names[i] = mlirStringAttrGet(l->b.ctx, ir_str(p->outputs[i]->name));
  }
  MlirNamedAttribute attrs[] = {
      ir_named(&l->b, "sym_name", mlirStringAttrGet(l->b.ctx, ir_str(p->name))),
      ir_named(&l->b, "function_type",
               mlirTypeAttrGet(mlirFunctionTypeGet(l->b.ctx, n_args, args, p->n_outputs, results))),
      ir_named(&l->b, "nki.output_names", mlirArrayAttrGet(l->b.ctx, p->n_outputs, names)),
  };
  struct ir_builder top = l->b;
  top.block = mlirModuleGetBody(module);
  top.loc = ir_loc_tagged(l->b.ctx, 0, p->locs);
  ir_create(&top,
            &(struct ir_parts){.name = "func.func", .n_attrs = 3, .attrs = attrs, .n_regions = 1, .regions = &region});
}

static enum status lower_function(struct lower *l, MlirModule module) {
  const struct nki_program *p = l->p;
  const int n = count_inputs(p);
  MlirType *args = arena_new_array(&l->arena, MlirType, (size_t)n);
  MlirValue *results = arena_new_array(&l->arena, MlirValue, (size_t)p->n_outputs);
  MlirRegion region = make_region(l, n, args);
  enum status st = ST_OK;
  for (int i = 0; !st && i < p->items.n; i++)
    st = lower_item(l, i);
  if (st) {
    mlirRegionDestroy(region);
    return st;
  }
  for (int i = 0; i < p->n_outputs; i++)
    results[i] = memref_of(l, p->outputs[i], false);
  for (int t = 0; t < DT_COUNT; t++)
    if (l->identity[t].rank)
      release(l, &l->homes[l->identity[t].number]);
  l->b.loc = ir_loc_tagged(l->b.ctx, p->items.n + 1, p->return_locs);
  ir_op0(&l->b, "func.return", p->n_outputs, results);
  add_function(l, module, region, n, args);
  return ST_OK;
}

enum status nki_lower(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out) {
  struct lower l = {.ir = ir, .p = p, .ds = ds};
  struct ir_capture capture;
  arena_init(&l.arena);
  l.homes = arena_new_array(&l.arena, struct home, (size_t)identity_number(&l, DT_COUNT));
  l.b = (struct ir_builder){.ctx = ir->ctx, .loc = mlirLocationUnknownGet(ir->ctx), .arena = &l.arena};
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(ir->ctx));
  mlirOperationSetAttributeByName(mlirModuleGetOperation(module), ir_str("nisa.target"),
                                  nisa_target_attr(ir->ctx, p->target));
  find_flat(&l);
  ir_capture_begin(ir, &capture, ds, DG_INTERNAL, ds->arena);
  enum status st = nki_plan_make(p, &l.arena, ds, &l.plan) ? lower_function(&l, module) : ST_INPUT;
  if (!st && !mlirOperationVerify(mlirModuleGetOperation(module)))
    st = ST_BUG;
  ir_capture_end(ir, &capture);
  arena_clear(&l.arena);
  if (st)
    mlirModuleDestroy(module);
  else
    *out = module;
  return st;
}
