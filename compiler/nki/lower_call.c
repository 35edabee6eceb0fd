/* lower_call: one call as instructions. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "nki/lower_emit.h"

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

static bool refused(struct nki_copy *out, const char *what, const char *hint) {
  out->what = what;
  out->hint = hint;
  return false;
}

bool nki_copy_of(const struct nki_call *c, struct nki_copy *out) {
  *out = (struct nki_copy){.dst = *VIEW("dst"), .src = *VIEW("src")};
  struct nki_view *dst = &out->dst, *src = &out->src;
  const int64_t partitions = nki_is_on_chip(dst) ? dst->dim[0].size : nki_is_on_chip(src) ? src->dim[0].size : 0;
  if (nki_is_on_chip(dst) && nki_is_on_chip(src) && dst->dim[0].size != src->dim[0].size)
    return refused(out, "the partitions of both sides differ; that is not compiled here yet", "copy through HBM");
  if (!nki_views_align(dst, src, true))
    return refused(out, "the shapes of both sides have no common parts", "copy in several steps");
  if (partitions == 1 && dst->dim[0].size != 1 && (!lead_with_one(dst) || !lead_with_one(src)))
    return refused(out, "both sides have too many dimensions", "copy in several steps");
  out->par_dims = partitions ? leading(dst, partitions) : 1;
  return out->par_dims ||
         refused(out, "the rows of the array in HBM are not those of the partitions", "copy in several steps");
}

static enum status lower_dma_copy(struct nki_lower *l, const struct nki_call *c) {
  struct nki_copy copy;
  if (nki_value(c, "dst_index")->kind == NKI_VIEW || nki_value(c, "src_index")->kind == NKI_VIEW)
    return nki_lower_dma(l, c);
  if (!nki_copy_of(c, &copy))
    return nki_lower_refuse(l, c, copy.hint, copy.what);
  struct nisa_access x[] = {nki_access_of(l, &copy.dst, copy.par_dims), nki_access_of(l, &copy.src, copy.par_dims)};
  emit(l, NISA_DMA_COPY, NISA_ENGINE_DMA, c, x, NULL);
  return ST_OK;
}

static void put_matmul(struct nki_lower *l, const struct nki_call *c, const struct nki_view *stationary,
                       const struct nki_view *moving, const char *perf_opt) {
  const struct nki_value *at = nki_value(c, "tile_position");
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, stationary),
                            nki_access_on_chip(l, moving), scalar(ir_index(&l->b, nki_first_int(at, 0))),
                            scalar(ir_index(&l->b, at->n ? at->ints[1] : 0))};
  struct attrs attrs = {0};
  add_bool(l, &attrs, "is_transpose", nki_value(c, "is_transpose")->integer);
  add_text(l, &attrs, "perf_opt", perf_opt);
  add_text(l, &attrs, "psum_zero_region", "size2048");
  emit(l, NISA_MATMUL, c->engine, c, x, &attrs);
}

/* Half k of a view with two rows. */
static struct nki_view row_of(const struct nki_view *v, int64_t k) {
  struct nki_view out = *v;
  out.rank = 2;
  out.offset += k * v->dim[1].stride;
  out.dim[1] = v->dim[2];
  return out;
}

static void lower_matmul(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *mode = nki_value(c, "perf_mode");
  if (mode->kind != NKI_WORD || strcmp(mode->word, "double_row") != 0) {
    static const char *const tf32[] = {"none_", "tf32_stationary", "tf32_moving", "tf32"};
    const bool x = VIEW("stationary")->tensor->packed == NKI_TF32, y = VIEW("moving")->tensor->packed == NKI_TF32;
    put_matmul(l, c, VIEW("stationary"), VIEW("moving"),
               nki_value(c, "is_transpose")->integer ? "none_" : tf32[x + 2 * y]);
    return;
  }
  for (int k = 0; k < 2; k++) {
    const struct nki_view stationary = row_of(VIEW("stationary"), k), moving = row_of(VIEW("moving"), k);
    put_matmul(l, c, &stationary, &moving, "double_row");
  }
}

static void lower_tensor_tensor(struct nki_lower *l, const struct nki_call *c) {
  const char *op = nki_value(c, "op")->op->nisa;
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data1")),
                            nki_access_on_chip(l, VIEW("data2"))};
  struct attrs attrs = {0};
  if (!strcmp(op, "pow")) {
    emit(l, NISA_TENSOR_TENSOR_POWER, c->engine, c, x, NULL);
    return;
  }
  add_text(l, &attrs, "op", op);
  emit(l, NISA_TENSOR_TENSOR_ARITH, c->engine, c, x, &attrs);
}

/* A product and a sum on the Scalar engine: an activation that copies. */
static void lower_scale(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *op1 = nki_value(c, "op1"), *first = nki_value(c, "operand0");
  const bool multiplies = !strcmp(nki_value(c, "op0")->op->nisa, "multiply");
  const struct nki_value *bias = !multiplies ? first : op1->kind == NKI_OP ? nki_value(c, "operand1") : NULL;
  static const struct nki_value absent = {.kind = NKI_ABSENT};
  struct nisa_access x[6] = {nki_access_on_chip(l, VIEW("dst")),
                             {.n_dims = 0},
                             nki_access_on_chip(l, VIEW("data")),
                             number_or_column(l, bias ? bias : &absent, 0, DT_NONE),
                             number_or_column(l, multiplies ? first : &absent, 1, DT_NONE)};
  struct attrs attrs = {0};
  add_text(l, &attrs, "op", "copy");
  emit(l, NISA_ACTIVATION, c->engine, c, x, &attrs);
}

static void lower_tensor_scalar(struct nki_lower *l, const struct nki_call *c) {
  if (c->engine == NISA_ENGINE_SCALAR) {
    lower_scale(l, c);
    return;
  }
  static const char *const reverse[] = {"none", "first", "second", "both"};
  const struct nki_value *op0 = nki_value(c, "op0"), *op1 = nki_value(c, "op1");
  const enum dtype bits = op0->op->is == NKI_BITS ? VIEW("dst")->tensor->dtype : DT_NONE;
  struct nisa_access x[4] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data")),
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

static void lower_reduce(struct nki_lower *l, const struct nki_call *c) {
  int n = nki_value(c, "axis")->n;
  const struct nki_view data = drop_ones(VIEW("data"), &n);
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_of(l, &data, 1)};
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

static void lower_partition_reduce(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data"))};
  struct attrs attrs = {0};
  add_text(l, &attrs, "reduce_op", nki_value(c, "op")->op->nisa);
  add_attr(l, &attrs, "num_r_dim", ir_i64_attr(&l->b, 0));
  emit(l, NISA_CROSS_LANE_REDUCE_ARITH, c->engine, c, x, &attrs);
}

static void put_memset(struct nki_lower *l, const struct nki_call *c, const struct nki_view *dst, double value,
                       enum nisa_engine engine) {
  struct nisa_access x[] = {nki_access_on_chip(l, dst), scalar(ir_number(&l->b, dst->tensor->dtype, value))};
  emit(l, NISA_MEMSET, engine, c, x, NULL);
}

static void lower_activation(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *res = nki_value(c, "reduce_res");
  const struct nki_value *cmd = c->kind == NKI_ACTIVATION ? nki_value(c, "reduce_cmd") : NULL;
  const bool goes_on = cmd && cmd->kind == NKI_WORD && !strcmp(cmd->word, "reduce");
  if (res->kind == NKI_VIEW && !goes_on) /* NISA adds to it */
    put_memset(l, c, res->view, 0, NISA_ENGINE_VECTOR);
  struct nisa_access x[6] = {nki_access_on_chip(l, VIEW("dst")),
                             {.n_dims = 0},
                             nki_access_on_chip(l, VIEW("data")),
                             number_or_column(l, nki_value(c, "bias"), 0, DT_NONE),
                             number_or_column(l, nki_value(c, "scale"), 1, DT_NONE)};
  if (res->kind == NKI_VIEW)
    x[1] = nki_access_on_chip(l, res->view);
  struct attrs attrs = {0};
  add_text(l, &attrs, "op", nki_value(c, "op")->op->nisa);
  emit(l, NISA_ACTIVATION, c->engine, c, x, &attrs);
}

/* A number as an element that is written: an integer is the nearest, of two the even one, within its limits. */
static double as_element(enum dtype t, double v) {
  if (!dtype_is_int(t))
    return v;
  const bool is_signed = dtype_kind(t) == DK_SIGNED;
  const double range = ldexp(1, 8 * (int)dtype_size(t)), least = is_signed ? -range / 2 : 0;
  return isnan(v) ? 0 : fmax(least, fmin(nearbyint(v), least + range - 1));
}

static void lower_predicated(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *src = nki_value(c, "src");
  const enum dtype t = VIEW("dst")->tensor->dtype;
  struct nisa_access x[] = {
      nki_access_on_chip(l, VIEW("dst")),
      src->kind == NKI_VIEW ? nki_access_on_chip(l, src->view)
                            : scalar(ir_number(&l->b, t, as_element(t, src->number))),
      nki_access_on_chip(l, VIEW("predicate")),
  };
  struct attrs attrs = {0};
  add_bool(l, &attrs, "reverse_pred", nki_value(c, "reverse_pred")->integer);
  emit(l, NISA_TENSOR_COPY_PREDICATED, c->engine, c, x, &attrs);
}

static enum status lower_iota(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *pattern = nki_value(c, "pattern");
  struct nki_error err = {.arena = l->ds->arena};
  struct nki_view dst;
  int64_t by[NKI_RANK_MAX] = {nki_first_int(nki_value(c, "channel_multiplier"), 0)};
  const int n = 1 + pattern->n / 2;
  for (int k = 1; k < n; k++)
    by[k] = pattern->ints[2 * k - 2];
  if (!nki_shape_by_pattern(c, &dst, &err))
    return nki_lower_refuse(l, c, err.hint, err.text);
  const struct nki_value *offset = nki_value(c, "offset");
  struct nisa_access x[] = {nki_access_of(l, &dst, 1),
                            scalar(nki_sum(l, nki_first_int(offset, 0), offset->n_terms, offset->terms))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "coefficients", ir_i64_array(&l->b, n, by));
  emit(l, NISA_IOTA, c->engine, c, x, &attrs);
  return ST_OK;
}

/* The identity matrix of a type, in SBUF until the function ends.  At its first use it is made of the numbers column -
 * row, of which those on the diagonal are 0. */
static struct nki_view identity_of(struct nki_lower *l, const struct nki_call *c, enum dtype dtype) {
  struct nki_tensor *t = &l->identity[dtype];
  const bool is_made = t->rank;
  *t = (struct nki_tensor){.number = nki_identity_number(l, dtype),
                           .dtype = dtype,
                           .space = MEM_SBUF,
                           .rank = 2,
                           .dims = {NISA_PARTITIONS, NISA_PARTITIONS},
                           .input = -1};
  struct nki_tensor numbers = *t;
  struct nki_view out = nki_whole(t), from = nki_whole(&numbers);
  if (is_made)
    return out;
  numbers.number = nki_first_temp(l);
  numbers.dtype = DT_F32;
  static const int64_t by[] = {-1, 1};
  struct nisa_access iota[] = {nki_access_of(l, &from, 1), scalar(ir_index(&l->b, 0))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "coefficients", ir_i64_array(&l->b, 2, by));
  emit(l, NISA_IOTA, NISA_ENGINE_GPSIMD, c, iota, &attrs);
  struct nisa_access compare[4] = {nki_access_of(l, &out, 1), iota[0], scalar(ir_float(&l->b, f32(l), 0))};
  attrs = (struct attrs){0};
  add_text(l, &attrs, "op0", "is_eq");
  add_text(l, &attrs, "reverse_operands", "none");
  emit(l, NISA_TENSOR_SCALAR_ARITH, NISA_ENGINE_VECTOR, c, compare, &attrs);
  nki_release(l, &l->homes[numbers.number]);
  return out;
}

void nki_make_identity(struct nki_lower *l, const struct nki_call *c) {
  if (!l->identity[VIEW("data")->tensor->dtype].rank)
    identity_of(l, c, VIEW("data")->tensor->dtype);
}

/* data.T @ identity: is_transpose passes the elements through unchanged. */
static enum status lower_transpose(struct nki_lower *l, const struct nki_call *c) {
  if (c->engine == NISA_ENGINE_VECTOR) {
    nki_lower_copy(l, c, NISA_TRANSPOSE, "data");
    return ST_OK;
  }
  const int64_t rows = VIEW("data")->dim[0].size;
  struct nki_view identity = identity_of(l, c, VIEW("data")->tensor->dtype);
  identity.dim[0].size = identity.dim[1].size = rows;
  MlirValue zero = ir_index(&l->b, 0);
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data")),
                            nki_access_of(l, &identity, 1), scalar(zero), scalar(zero)};
  struct attrs attrs = {0};
  add_bool(l, &attrs, "is_transpose", true);
  add_text(l, &attrs, "perf_opt", "none_");
  add_text(l, &attrs, "psum_zero_region", "size2048");
  emit(l, NISA_MATMUL, c->engine, c, x, &attrs);
  return ST_OK;
}

void nki_lower_copy(struct nki_lower *l, const struct nki_call *c, enum nisa_kind kind, const char *src) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW(src))};
  emit(l, kind, c->engine, c, x, NULL);
}

static void add_two_operators(struct nki_lower *l, const struct nki_call *c, struct attrs *attrs) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  add_text(l, attrs, "op0", nki_value(c, "op0")->op->nisa);
  add_text(l, attrs, "op1", nki_value(c, "op1")->op->nisa);
  add_text(l, attrs, "reverse_operands",
           reverse[nki_value(c, "reverse0")->integer + 2 * nki_value(c, "reverse1")->integer]);
}

static void lower_scan(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data0")),
                            nki_access_on_chip(l, VIEW("data1")),
                            number_or_column(l, nki_value(c, "initial"), 0, DT_NONE)};
  struct attrs attrs = {0};
  add_two_operators(l, c, &attrs);
  emit(l, NISA_TENSOR_TENSOR_SCAN, c->engine, c, x, &attrs);
}

static void lower_scalar_tensor(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data")),
                            number_or_column(l, nki_value(c, "operand0"), 0, DT_NONE),
                            nki_access_on_chip(l, VIEW("operand1"))};
  struct attrs attrs = {0};
  add_two_operators(l, c, &attrs);
  emit(l, NISA_SCALAR_TENSOR_TENSOR, c->engine, c, x, &attrs);
}

/* What leaves y as it is in `start op y`; 0 - y for subtract. */
static double start_of(const char *op) {
  return !strcmp(op, "multiply") ? 1 : !strcmp(op, "max") ? -INFINITY : !strcmp(op, "min") ? INFINITY : 0;
}

static void lower_cumulative(struct nki_lower *l, const struct nki_call *c) {
  const char *op1 = nki_value(c, "op1")->op->nisa;
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("src")),
                            number_or_column(l, nki_value(c, "imm0"), 0, DT_NONE),
                            number_or_column(l, nki_value(c, "imm1"), start_of(op1), DT_NONE)};
  struct attrs attrs = {0};
  add_text(l, &attrs, "op0", nki_value(c, "op0")->op->nisa);
  add_text(l, &attrs, "op1", op1);
  emit(l, NISA_TENSOR_SCALAR_CUMULATIVE, c->engine, c, x, &attrs);
}

static void lower_find(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data")),
                            nki_access_on_chip(l, VIEW("vals"))};
  emit(l, NISA_FIND_INDEX8, c->engine, c, x, NULL);
}

static void lower_replace(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *places = nki_value(c, "dst_idx");
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")),
                            {.n_dims = 0},
                            nki_access_on_chip(l, VIEW("data")),
                            nki_access_on_chip(l, VIEW("vals")),
                            scalar(ir_float(&l->b, f32(l), nki_value(c, "imm")->number))};
  if (places->kind == NKI_VIEW)
    x[1] = nki_access_on_chip(l, places->view);
  emit(l, NISA_MATCH_REPLACE8, c->engine, c, x, NULL);
}

enum status nki_lower_call(struct nki_lower *l, const struct nki_call *c) {
  switch (c->kind) {
  case NKI_DMA_COPY:
    return lower_dma_copy(l, c);
  case NKI_TENSOR_COPY:
    nki_lower_copy(l, c, NISA_TENSOR_COPY, "src");
    break;
  case NKI_TENSOR_COPY_PREDICATED:
    lower_predicated(l, c);
    break;
  case NKI_MEMSET:
    put_memset(l, c, VIEW("dst"), nki_value(c, "value")->number, c->engine);
    break;
  case NKI_NC_MATMUL:
    lower_matmul(l, c);
    break;
  case NKI_TENSOR_TENSOR:
    lower_tensor_tensor(l, c);
    break;
  case NKI_TENSOR_SCALAR:
    lower_tensor_scalar(l, c);
    break;
  case NKI_TENSOR_REDUCE:
    lower_reduce(l, c);
    break;
  case NKI_TENSOR_PARTITION_REDUCE:
    lower_partition_reduce(l, c);
    break;
  case NKI_ACTIVATION:
  case NKI_ACTIVATION_REDUCE:
    lower_activation(l, c);
    break;
  case NKI_RECIPROCAL:
    nki_lower_copy(l, c, NISA_RECIPROCAL, "data");
    break;
  case NKI_IOTA:
    return lower_iota(l, c);
  case NKI_TENSOR_TENSOR_SCAN:
    lower_scan(l, c);
    break;
  case NKI_SCALAR_TENSOR_TENSOR:
    lower_scalar_tensor(l, c);
    break;
  case NKI_TENSOR_SCALAR_CUMULATIVE:
    lower_cumulative(l, c);
    break;
  case NKI_BN_STATS:
    nki_lower_copy(l, c, NISA_BN_STATS, "data");
    break;
  case NKI_BN_AGGR:
    nki_lower_copy(l, c, NISA_BN_AGGR, "data");
    break;
  case NKI_MAX8:
    nki_lower_copy(l, c, NISA_MAX8, "src");
    break;
  case NKI_NC_FIND_INDEX8:
    lower_find(l, c);
    break;
  case NKI_NC_MATCH_REPLACE8:
    lower_replace(l, c);
    break;
  case NKI_NC_TRANSPOSE:
    return lower_transpose(l, c);
  default:
    return nki_lower_more(l, c);
  }
  return ST_OK;
}
