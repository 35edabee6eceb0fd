/* moments: mean and variance of rows from one reading of their elements.
 *
 *     reduce(s, x, add)                                             bn_stats(t[0:6], x[0:n/2])
 *     tensor_scalar(m, s, 1/n, multiply)                            bn_stats(t[6:12], x[n/2:n])
 *     tensor_scalar(c, x, m, subtract)                       ==>    bn_aggr(p, t)
 *     tensor_tensor(q, c, c, multiply)                              tensor_scalar(c, x, p[0], subtract)   if c is read elsewhere
 *     reduce(v, q, add)
 *     tensor_scalar(w, v, 1/n, multiply); op(w)                     op(p[1])
 *
 * p has the mean and the variance of each partition.  Readers of m and w read p.  A factor other than 1/n, such as that of an
 * unbiased variance, becomes a multiplication of p[1]; so does the sum v itself if it is read otherwise.
 *
 * All is in one block; s, m, c, q and v are f32 in SBUF and have one writer each; nothing writes x after the first reduction.
 * bn_stats reads at most 512 elements of a partition, so longer rows are read in parts of equal length as far as possible.
 * bn_aggr weights them by their counts.  The numbers are those of the sums, rounded less often.
 *
 * Runs at the end of linalg-to-nisa, before combine.c.  Linear in the reductions, times the uses of their operands.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"
#include "passes/lib/busy.h"
#include "passes/lib/price.h"

enum {
  STATS = 6,        /* numbers that bn_stats writes */
  STATS_MOST = 512, /* elements that it reads */
  PARTS_MOST = 32,  /* of a row; longer rows keep their sums, whose code does not grow */
  ALIGNMENT = 64,
};

/* An instruction with the buffer that it writes. */
struct step {
  struct nisa_instr in;
  MlirOperation alloc, release;
};

struct moments {
  struct pass_run *run;
  struct step sum, mean, centred, square, variance; /* s, m, c, q, v */
  int64_t n;                                        /* elements of a row */
  bool is_centred_read;                             /* c is read by others than the square */
};

/* ---- parts of a row ------------------------------------------------------------------------------------------------ */

/* How the free dimensions of an access are divided: those before `dim` element by element, `dim` into n_cuts parts. */
struct parts {
  int dim;
  int64_t n_before, n_cuts;
};

static struct parts divide(const struct nisa_access *x) {
  int64_t inner = 1;
  int d = x->n_dims - 1;

  while (d > x->par_dims && inner * x->tile[d] <= STATS_MOST)
    inner *= x->tile[d--];
  struct parts p = {.dim = d, .n_before = 1};
  const int64_t most = STATS_MOST / inner;
  p.n_cuts = (x->tile[d] + most - 1) / most;
  for (int k = x->par_dims; k < d; k++)
    p.n_before *= x->tile[k];
  return p;
}

static int64_t count_parts(const struct nisa_access *x) {
  const struct parts p = divide(x);
  return p.n_before * p.n_cuts;
}

/* The part `number` of x. */
static struct nisa_access part_of(MlirContext ctx, const struct nisa_access *x, const struct parts *p, int64_t number) {
  MlirAffineExpr dims[NISA_TILE_MAX], results[NISA_RANK_MAX];
  struct nisa_access out = *x;
  const int64_t cut = number % p->n_cuts, first = x->tile[p->dim] * cut / p->n_cuts;
  int64_t before = number / p->n_cuts;

  out.tile[p->dim] = x->tile[p->dim] * (cut + 1) / p->n_cuts - first;
  for (int d = x->n_dims - 1; d >= 0; d--) {
    int64_t at = d == p->dim ? first : 0;
    if (d >= x->par_dims && d < p->dim) {
      at = before % x->tile[d];
      before /= x->tile[d];
      out.tile[d] = 1;
    }
    dims[d] = mlirAffineAddExprGet(mlirAffineDimExprGet(ctx, d), mlirAffineConstantExprGet(ctx, at));
  }
  const intptr_t n_symbols = mlirAffineMapGetNumSymbols(x->map), rank = mlirAffineMapGetNumResults(x->map);
  MlirAffineMap shift = mlirAffineMapGet(ctx, x->n_dims, n_symbols, x->n_dims, dims);
  for (intptr_t r = 0; r < rank; r++)
    results[r] = mlirAffineExprCompose(mlirAffineMapGetResult(x->map, r), shift);
  out.map = mlirAffineMapGet(ctx, x->n_dims, n_symbols, rank, results);
  return out;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool is_f32(const struct nisa_access *x) {
  return mlirTypeIsAF32(nisa_access_element(x));
}

static bool is_float(const struct nisa_access *x) {
  MlirType t = nisa_access_element(x);
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

static int count_readers(MlirValue buffer) {
  struct nisa_instr in;
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (nisa_read(mlirOpOperandGetOwner(u), &in, NULL) && in.def->kind != NISA_RELEASE)
      n++;
  return n - 1; /* the writer */
}

/* Reads the only writer of x's buffer, which is f32 in SBUF, written in the block of `at`, and released there. */
static bool read_step(const struct nisa_access *x, MlirOperation at, struct step *out) {
  if (nisa_is_absent(x) || nisa_is_scalar(x) || !is_f32(x))
    return false;
  const struct ln_uses u = ln_uses_of(x->base);
  out->alloc = ln_own_alloc(x->base, at);
  out->release = u.release;
  return !mlirOperationIsNull(out->alloc) && u.is_known && u.n_writers == 1 && !mlirOperationIsNull(u.release) &&
         mlirBlockEqual(mlirOperationGetBlock(u.writer), mlirOperationGetBlock(at)) &&
         mlirBlockEqual(mlirOperationGetBlock(u.release), mlirOperationGetBlock(at)) &&
         nisa_read(u.writer, &out->in, NULL) && mlirValueEqual(out->in.operand[0].base, x->base) &&
         ln_same_access(&out->in.operand[0], x) && buffer_is_before(u.writer, at);
}

/* True if the instruction adds up all elements of each partition of its source. */
static bool is_row_sum(const struct nisa_instr *in) {
  MlirAttribute negated = ir_attr(in->op, "negated");
  return in->def->kind == NISA_TENSOR_REDUCE_ARITH && !strcmp(nisa_text_attr(in->op, "op"), "add") &&
         (mlirAttributeIsNull(negated) || !mlirBoolAttrGetValue(negated)) && nisa_free_elements(&in->operand[0]) == 1;
}

enum { DST, SRC, OPERAND0, OPERAND1 }; /* tensor_scalar_arith */

/* True for dst = src `op` operand0. */
static bool is_scaling(const struct nisa_instr *in, const char *op) {
  return in->def->kind == NISA_TENSOR_SCALAR_ARITH && !strcmp(nisa_text_attr(in->op, "op0"), op) &&
         !strcmp(nisa_text_attr(in->op, "reverse_operands"), "none") && nisa_is_absent(&in->operand[OPERAND1]) &&
         mlirAttributeIsNull(ir_attr(in->op, "unsigned"));
}

/* The constant that the instruction multiplies by; 0 if it does something else. */
static double factor_of(const struct nisa_instr *in) {
  if (!is_scaling(in, "multiply") || !nisa_is_scalar(&in->operand[OPERAND0]))
    return 0;
  MlirAttribute a = ir_constant(in->operand[OPERAND0].base);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) ? mlirFloatAttrGetValueDouble(a) : 0;
}

static bool is_inverse(double factor, int64_t n) {
  return fabs(factor * (double)n - 1) < 1e-6;
}

/* True if nothing can write x after `at`: all its writers are before, in the same block. */
static bool is_written_before(const struct nisa_access *x, MlirOperation at) {
  struct nisa_instr in;
  for (MlirOpOperand u = mlirValueGetFirstUse(x->base); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, x->base) &&
          (!mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(at)) || !buffer_is_before(op, at)))
        return false;
  }
  return true;
}

static bool squares(const struct nisa_instr *in) {
  const struct nisa_access *x = &in->operand[1], *y = &in->operand[2];
  return in->def->kind == NISA_TENSOR_TENSOR_ARITH && !strcmp(nisa_text_attr(in->op, "op"), "multiply") &&
         mlirAttributeIsNull(ir_attr(in->op, "unsigned")) && mlirValueEqual(x->base, y->base) && ln_same_access(x, y);
}

/* True if all readers of the buffer read its only column, in all of its partitions. */
static bool is_read_whole(MlirValue buffer, const struct nisa_access *column) {
  struct nisa_instr in;
  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    if (!nisa_read(mlirOpOperandGetOwner(u), &in, NULL))
      return false;
    for (int k = 0; in.def->kind != NISA_RELEASE && k < in.def->n_operands; k++)
      if (!nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, buffer) &&
          !ln_same_access(&in.operand[k], column))
        return false;
  }
  return true;
}

/* Reads what leads to the sum of squares `reduce`, from its end. */
static bool match(struct pass_run *run, MlirOperation reduce, struct moments *m) {
  *m = (struct moments){.run = run};
  struct nisa_instr *v = &m->variance.in, *c = &m->centred.in;

  if (!nisa_read(reduce, v, NULL) || !is_row_sum(v) ||
      !read_step(&v->operand[0], mlirBlockGetTerminator(mlirOperationGetBlock(reduce)), &m->variance) ||
      !read_step(&v->operand[1], reduce, &m->square) || !squares(&m->square.in) ||
      count_readers(m->square.in.operand[0].base) != 1)
    return false;
  if (!read_step(&m->square.in.operand[1], m->square.in.op, &m->centred) || !is_scaling(c, "subtract") ||
      !read_step(&c->operand[OPERAND0], c->op, &m->mean) ||
      !read_step(&m->mean.in.operand[SRC], m->mean.in.op, &m->sum))
    return false;
  const struct nisa_access *x = &m->sum.in.operand[1];
  m->n = nisa_free_elements(x);
  m->is_centred_read = count_readers(m->centred.in.operand[0].base) > 2; /* the square reads it twice */
  return is_row_sum(&m->sum.in) && count_readers(m->sum.in.operand[0].base) == 1 &&
         is_inverse(factor_of(&m->mean.in), m->n) && mlirValueEqual(x->base, c->operand[SRC].base) &&
         ln_same_access(x, &c->operand[SRC]) && nisa_free_elements(&v->operand[1]) == m->n && is_float(x) &&
         mem_is_on_chip(nisa_access_space(x)) && is_written_before(x, m->sum.in.op) && count_parts(x) <= PARTS_MOST &&
         is_read_whole(m->mean.in.operand[DST].base, &m->mean.in.operand[DST]);
}

/* ---- replacing ----------------------------------------------------------------------------------------------------- */

/* A buffer of f32 with so many elements in each partition, allocated by the builder.  Returns all of it. */
static struct nisa_access new_buffer(struct moments *m, struct ir_builder *b, int64_t elements) {
  const struct nisa_access *column = &m->sum.in.operand[0];
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(column->base));
  const int64_t dims[] = {nisa_partitions(column), elements};
  MlirType t = mlirMemRefTypeContiguousGet(mlirF32TypeGet(b->ctx), 2, dims, space);
  MlirOperation alloc = nisa_create_alloc(b->loc, t, ALIGNMENT);

  mlirBlockInsertOwnedOperationBefore(b->block, b->before, alloc);
  struct nisa_access x = {.base = mlirOperationGetResult(alloc, 0), .n_dims = 2, .par_dims = 1};
  memcpy(x.tile, dims, sizeof dims);
  x.map = mlirAffineMapMultiDimIdentityGet(b->ctx, 2);
  return x;
}

/* Elements first … first + n - 1 of each partition. */
static struct nisa_access columns(MlirContext ctx, const struct nisa_access *x, int64_t first, int64_t n) {
  struct nisa_access out = *x;
  MlirAffineExpr at = mlirAffineConstantExprGet(ctx, first);
  MlirAffineExpr results[] = {mlirAffineDimExprGet(ctx, 0), at};
  if (n > 1)
    results[1] = mlirAffineAddExprGet(mlirAffineDimExprGet(ctx, 1), at);
  out.tile[1] = n;
  out.map = mlirAffineMapGet(ctx, 2, 0, 2, results);
  return out;
}

static void insert(struct ir_builder *b, const struct nisa_instr *in, int n_attrs, MlirNamedAttribute const *attrs) {
  mlirBlockInsertOwnedOperationBefore(b->block, b->before, nisa_create(in, b->loc, n_attrs, attrs));
}

static void insert_release(struct ir_builder *b, MlirValue buffer) {
  const struct nisa_instr in = {.def = nisa_op_def(NISA_RELEASE), .operand = {{.base = buffer}}};
  insert(b, &in, 0, NULL);
}

/* dst = src * factor */
static void insert_scaling(struct ir_builder *b, const struct nisa_access *dst, const struct nisa_access *src,
                           double factor) {
  struct nisa_instr in = {.def = nisa_op_def(NISA_TENSOR_SCALAR_ARITH), .engine = NISA_ENGINE_VECTOR};
  in.operand[DST] = *dst;
  in.operand[SRC] = *src;
  in.operand[OPERAND0] = ln_scalar(ir_float(b, mlirF32TypeGet(b->ctx), factor));
  const MlirNamedAttribute attrs[] = {ir_named(b, "op0", mlirStringAttrGet(b->ctx, ir_str("multiply"))),
                                      ir_named(b, "reverse_operands", mlirStringAttrGet(b->ctx, ir_str("none")))};
  insert(b, &in, 2, attrs);
}

/* Emits bn_stats of each part of the row, and bn_aggr, in the place of the first sum.  Returns mean and variance. */
static struct nisa_access emit(struct moments *m) {
  MlirOperation at = m->sum.in.op;
  struct ir_builder b = edit_before(m->run, at);
  MlirLocation both[] = {mlirOperationGetLocation(at), mlirOperationGetLocation(m->variance.in.op)};
  b.loc = mlirLocationFusedGet(b.ctx, 2, both, mlirAttributeGetNull());
  const struct nisa_access *x = &m->sum.in.operand[1];
  const struct parts parts = divide(x);
  const int64_t n = count_parts(x);
  const struct nisa_access p = new_buffer(m, &b, 2), t = new_buffer(m, &b, STATS * n);

  for (int64_t k = 0; k < n; k++) {
    struct nisa_instr in = {.def = nisa_op_def(NISA_BN_STATS), .engine = NISA_ENGINE_VECTOR};
    in.operand[0] = columns(b.ctx, &t, STATS * k, STATS);
    in.operand[1] = part_of(b.ctx, x, &parts, k);
    insert(&b, &in, 0, NULL);
  }
  struct nisa_instr all = {.def = nisa_op_def(NISA_BN_AGGR), .engine = NISA_ENGINE_VECTOR, .operand = {p, t}};
  insert(&b, &all, 0, NULL);
  insert_release(&b, t.base);
  return p;
}

/* Lets the readers of a column read column `number` of p. */
static void read_instead(struct moments *m, MlirValue column, const struct nisa_access *p, int64_t number) {
  MlirContext ctx = m->run->ir->ctx;
  struct nisa_instr in;
  MlirNamedAttribute attrs[LN_ATTRS_MAX];

  for (MlirOpOperand u = mlirValueGetFirstUse(column); !mlirOpOperandIsNull(u); u = mlirValueGetFirstUse(column)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    (void)nisa_read(op, &in, NULL);
    for (int k = 0; k < in.def->n_operands; k++)
      if (!nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, column))
        in.operand[k] = columns(ctx, p, number, 1);
    MlirOperation made = nisa_create(&in, mlirOperationGetLocation(op), ln_own_attrs(op, attrs), attrs);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, made);
    mlirOperationDestroy(op);
  }
}

static void destroy(const struct step *s) {
  mlirOperationDestroy(s->in.op);
  mlirOperationDestroy(s->release);
  mlirOperationDestroy(s->alloc);
}

/* Reads w = v / n, if that is all that reads v. */
static bool read_quotient(const struct moments *m, struct step *w) {
  const struct nisa_access *v = &m->variance.in.operand[0];
  struct nisa_instr in;

  if (count_readers(v->base) != 1)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(v->base); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!nisa_read(op, &in, NULL) || !is_inverse(factor_of(&in), m->n) || !ln_same_access(&in.operand[SRC], v))
      continue;
    MlirOperation end = mlirBlockGetTerminator(mlirOperationGetBlock(m->variance.in.op));
    return mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(m->variance.in.op)) &&
           read_step(&in.operand[DST], end, w) && is_read_whole(in.operand[DST].base, &in.operand[DST]);
  }
  return false;
}

static MlirOperation later(MlirOperation x, MlirOperation y) {
  return buffer_is_before(x, y) ? y : x;
}

static void say(const struct moments *m) {
  const int64_t n = count_parts(&m->sum.in.operand[1]);
  struct remark *r = pass_remark(m->run, m->variance.in.op, RULE_MOMENTS,
                                 "mean and variance of %" PRId64 " elements by bn_stats, in %" PRId64 " part%s", m->n,
                                 n, n > 1 ? "s" : "");
  remark_limit(r, "bn_stats", "elements per partition", m->n / n, STATS_MOST);
  enum { PASSES = 4 };
  const enum target t = m->run->target;
  const int64_t elements = busy_elements(&m->sum.in);
  price_chosen(r, price_instructions_ns(t, SIM_COST_BN_STATS, n, elements / n) +
                      price_instructions_ns(t, SIM_COST_BN_AGGR, 1, STATS * n));
  price_instead(
      r, "two sums", PASSES * busy_ns(&m->sum.in, NISA_ENGINE_VECTOR, t),
      "the second one needs the mean: in four passes the elements would be read again, less the mean, and squared");
}

/* p is released where the last of the columns was. */
static void release_late(struct moments *m, const struct nisa_access *p, MlirOperation other) {
  MlirOperation last = later(m->mean.release, other);
  struct ir_builder b = edit_before(m->run, mlirOperationGetNextInBlock(last));
  insert_release(&b, p->base);
}

static void replace(struct moments *m) {
  struct step w;
  const bool has_quotient = read_quotient(m, &w);
  MlirOperation reduce = m->variance.in.op;
  MlirValue mean = m->mean.in.operand[DST].base;

  say(m);
  const struct nisa_access p = emit(m), variance = columns(m->run->ir->ctx, &p, 1, 1);
  release_late(m, &p, has_quotient ? w.release : reduce);
  if (has_quotient) {
    mlirOperationDestroy(w.in.op);
    destroy(&m->variance);
  } else {
    struct ir_builder b = edit_before(m->run, reduce);
    insert_scaling(&b, &m->variance.in.operand[0], &variance, (double)m->n);
    mlirOperationDestroy(reduce);
  }
  destroy(&m->square);
  if (!m->is_centred_read)
    destroy(&m->centred);
  mlirOperationDestroy(m->mean.in.op);
  destroy(&m->sum);
  mlirOperationDestroy(m->mean.release);
  read_instead(m, mean, &p, 0);
  mlirOperationDestroy(m->mean.alloc);
  if (!has_quotient)
    return;
  mlirOperationDestroy(w.release);
  read_instead(m, mlirOperationGetResult(w.alloc, 0), &p, 1);
  mlirOperationDestroy(w.alloc);
}

int ln_moments(struct pass_run *run) {
  struct ir_ops reductions = ir_collect_named(run->arena, run->module, "nisa.tensor_reduce_arith");
  struct moments m;
  int n = 0;

  for (int k = 0; k < reductions.n; k++)
    if (match(run, reductions.v[k], &m)) { /* the other sum, which goes, too, is before it in the list */
      pass_step(run, reductions.v[k], "mean-and-variance");
      replace(&m);
      n++;
    }
  return n;
}
