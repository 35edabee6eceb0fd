/* topk: lowers the k largest or smallest elements of each row (linalg/topk.c) to max8 and its companions.
 *
 *     %v, %p = call @topk(%x)      ==>      for each 128 rows: dma_copy(x, %x)
 *                                           for each eight results:
 *                                             max8(v, x); find_index8(p, x, v)
 *                                             match_replace8(y, x, v, NaN), then x = y     before the next eight
 *                                           dma_copy(%v, v); dma_copy(%p, p)
 *
 * Of equal elements find_index8 names the first ones, in order; match_replace8 replaces those.  NaN is never among the eight, so what is
 * replaced does not come again, whatever the row has.  The smallest elements are the largest ones of -x.
 *
 * Zeros of both signs are equal, also where the call asks for the total order.  A NaN in a row is left out, where NumPy has it above
 * all numbers; and where fewer than k elements are left, the others are -inf (of the smallest: inf) at place -1.
 */
#include <math.h>
#include <string.h>

#include "ir/query.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

enum { EIGHT = 8 };

struct topk {
  struct ln *ln;
  MlirValue x, results[2]; /* results: null if nothing reads it */
  MlirType element;
  int64_t rows, n, k, rounds;
  bool is_smallest, is_backwards;
};

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* Columns from `first` on, in a buffer of as many rows as the tile. */
static struct nisa_access columns(struct ln *ln, MlirValue buffer, int64_t rows, int64_t first, int64_t n) {
  MlirContext ctx = ln->b.ctx;
  MlirAffineExpr at = mlirAffineAddExprGet(mlirAffineDimExprGet(ctx, 1), mlirAffineConstantExprGet(ctx, first));
  MlirAffineExpr index[] = {mlirAffineDimExprGet(ctx, 0), at};
  return (struct nisa_access){
      .base = buffer, .n_dims = 2, .par_dims = 1, .tile = {rows, n}, .map = mlirAffineMapGet(ctx, 2, 0, 2, index)};
}

/* The rows from `first` on of an array in HBM; at: the loop's counter of tiles, or null. */
static struct nisa_access rows_of(struct ln *ln, MlirValue array, MlirValue at, int64_t first, int64_t rows,
                                  int64_t n) {
  MlirContext ctx = ln->b.ctx;
  MlirAffineExpr d0 = mlirAffineDimExprGet(ctx, 0);
  MlirAffineExpr from = mlirValueIsNull(at) ? mlirAffineConstantExprGet(ctx, first)
                                            : mlirAffineMulExprGet(mlirAffineSymbolExprGet(ctx, 0),
                                                                   mlirAffineConstantExprGet(ctx, NISA_PARTITIONS));
  MlirAffineExpr index[] = {mlirAffineAddExprGet(d0, from), mlirAffineDimExprGet(ctx, 1)};
  const int n_indices = !mlirValueIsNull(at);
  return (struct nisa_access){.base = array,
                              .n_dims = 2,
                              .par_dims = 1,
                              .tile = {rows, n},
                              .n_indices = n_indices,
                              .indices = {at},
                              .map = mlirAffineMapGet(ctx, 2, n_indices, 2, index)};
}

static MlirValue buffer(struct topk *t, MlirType element, int64_t rows, int64_t n) {
  MlirType m = ln_memref(t->ln, element, 2, (int64_t[]){rows, n}, MEM_SBUF);
  return mlirOperationGetResult(ln_insert(t->ln, nisa_create_alloc(t->ln->b.loc, m, 64)), 0);
}

static void release(struct topk *t, MlirValue v) {
  if (!mlirValueIsNull(v))
    ln_insert(t->ln, nisa_create_release(t->ln->b.loc, v));
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static struct nisa_access number(struct topk *t, MlirType type, double v) {
  return (struct nisa_access){.base = ir_float(&t->ln->b, type, v)};
}

static void negate(struct topk *t, struct nisa_access to, struct nisa_access from) {
  const struct nisa_access x[] = {to, from, number(t, mlirF32TypeGet(t->ln->b.ctx), -1), {.base = {NULL}}};
  const struct ln_attr attrs[] = {
      {"op0", ln_text(t->ln, "multiply")}, {"reverse_operands", ln_text(t->ln, "none")}, {NULL, {NULL}}};
  ln_emit(t->ln, NISA_TENSOR_SCALAR_ARITH, NISA_ENGINE_VECTOR, x, attrs);
}

static void move(struct topk *t, struct nisa_access to, struct nisa_access from, enum nisa_kind kind) {
  const struct nisa_access x[] = {to, from};
  ln_emit(t->ln, kind, kind == NISA_DMA_COPY ? NISA_ENGINE_DMA : NISA_ENGINE_VECTOR, x, NULL);
}

/* Finds the results of the rows in x, which it may change. */
static void find(struct topk *t, MlirValue x, int64_t rows, MlirValue values, MlirValue places) {
  struct ln *ln = t->ln;
  MlirValue other = {NULL};

  for (int64_t r = 0; r < t->rounds; r++) {
    const struct nisa_access row = columns(ln, x, rows, 0, t->n), eight = columns(ln, values, rows, r * EIGHT, EIGHT);
    ln_emit(ln, NISA_MAX8, NISA_ENGINE_VECTOR, (const struct nisa_access[]){eight, row}, NULL);
    if (!mlirValueIsNull(places)) {
      const struct nisa_access at = columns(ln, places, rows, r * EIGHT, EIGHT);
      ln_emit(ln, NISA_FIND_INDEX8, NISA_ENGINE_VECTOR, (const struct nisa_access[]){at, row, eight}, NULL);
    }
    if (r + 1 == t->rounds)
      break;
    if (mlirValueIsNull(other))
      other = buffer(t, t->element, rows, t->n);
    const struct nisa_access to = columns(ln, other, rows, 0, t->n);
    ln_emit(ln, NISA_MATCH_REPLACE8, NISA_ENGINE_VECTOR,
            (const struct nisa_access[]){to, {.base = {NULL}}, row, eight, number(t, t->element, NAN)}, NULL);
    MlirValue was = x;
    x = other;
    other = was;
  }
  release(t, x);
  release(t, other);
}

/* Stores `from`, whose first k columns are the results. */
static void store(struct topk *t, MlirValue result, MlirValue from, MlirValue at, int64_t first, int64_t rows) {
  move(t, rows_of(t->ln, result, at, first, rows, t->k), columns(t->ln, from, rows, 0, t->k), NISA_DMA_COPY);
}

/* Returns the found elements as the call asks for them: negated, or in the opposite order, column by column because no access
 * goes backwards.  Releases `values`. */
static MlirValue finish(struct topk *t, MlirValue values, int64_t rows) {
  struct ln *ln = t->ln;
  if (!t->is_smallest && !t->is_backwards)
    return values;
  MlirValue out = buffer(t, t->element, rows, t->k);
  const int64_t step = t->is_backwards ? 1 : t->k;
  for (int64_t c = 0; c < t->k; c += step) {
    const struct nisa_access to = columns(ln, out, rows, t->is_backwards ? t->k - 1 - c : 0, step),
                             found = columns(ln, values, rows, c, step);
    if (t->is_smallest)
      negate(t, to, found);
    else
      move(t, to, found, NISA_TENSOR_COPY);
  }
  release(t, values);
  return out;
}

static void lower_tile(struct topk *t, MlirValue at, int64_t first, int64_t rows) {
  struct ln *ln = t->ln;
  MlirType i32 = mlirIntegerTypeGet(ln->b.ctx, 32);
  MlirValue x = buffer(t, t->element, rows, t->n), values = buffer(t, t->element, rows, t->rounds * EIGHT);
  MlirValue places = mlirValueIsNull(t->results[1]) ? t->results[1] : buffer(t, i32, rows, t->rounds * EIGHT);

  move(t, columns(ln, x, rows, 0, t->n), rows_of(ln, t->x, at, first, rows, t->n), NISA_DMA_COPY);
  if (t->is_smallest) {
    MlirValue negated = buffer(t, t->element, rows, t->n);
    negate(t, columns(ln, negated, rows, 0, t->n), columns(ln, x, rows, 0, t->n));
    release(t, x);
    x = negated;
  }
  find(t, x, rows, values, places);
  if (!mlirValueIsNull(t->results[0])) {
    values = finish(t, values, rows);
    store(t, t->results[0], values, at, first, rows);
  }
  if (!mlirValueIsNull(places))
    store(t, t->results[1], places, at, first, rows);
  release(t, values);
  release(t, places);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static bool has(MlirAttribute what, const char *name) {
  return !mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(what, ir_str(name)));
}

static bool is_matrix(MlirType t) {
  return mlirTypeIsAMemRef(t) && mlirShapedTypeGetRank(t) == 2 && mlirShapedTypeHasStaticShape(t);
}

static enum status read_call(struct ln *ln, MlirAttribute what, struct topk *t) {
  MlirOperation op = ln->op;

  if (!mlirAttributeIsADictionary(what) || !has(what, "k") || mlirOperationGetNumOperands(op) != 1 ||
      mlirOperationGetNumResults(op) != 2 || !is_matrix(mlirValueGetType(mlirOperationGetOperand(op, 0))) ||
      !is_matrix(mlirValueGetType(mlirOperationGetResult(op, 0))) ||
      !is_matrix(mlirValueGetType(mlirOperationGetResult(op, 1))))
    return ln_fail(ln, "its nkipy.topk is not one of a matrix");
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 0));
  *t = (struct topk){.ln = ln,
                     .x = ln_without_casts(ln, mlirOperationGetOperand(op, 0)),
                     .element = mlirShapedTypeGetElementType(type),
                     .rows = mlirShapedTypeGetDimSize(type, 0),
                     .n = mlirShapedTypeGetDimSize(type, 1),
                     .k = mlirShapedTypeGetDimSize(mlirValueGetType(mlirOperationGetResult(op, 0)), 1),
                     .is_smallest = has(what, "smallest"),
                     .is_backwards = has(what, "backwards")};
  t->rounds = (t->k + EIGHT - 1) / EIGHT;
  if (!mlirTypeIsAFloat(t->element) || t->n < EIGHT || t->k < 1 || t->k > t->n)
    return ln_fail(ln, "max8 finds the largest of eight floats or more");
  if (t->n * nisa_element_bytes(t->element) * 3 > nisa_machine(ln->run->target)->sbuf_bytes)
    return ln_fail(ln, "three buffers with whole rows do not fit into SBUF");
  return ST_OK;
}

static void explain(struct topk *t) {
  struct arena *a = t->ln->run->arena;
  const int64_t passes = t->rounds * (mlirValueIsNull(t->results[1]) ? 2 : 3) - 1;
  struct remark *r = pass_remark(t->ln->run, t->ln->op, RULE_TOPK,
                                 "%lld of each row by max8: %lld passes over %lld elements; a NaN in a row is left out",
                                 (long long)t->k, (long long)passes, (long long)t->n);
  remark_cost(r, "%lld passes", (long long)passes);
  remark_reject_for(r, "ranks by comparing all pairs", NULL, arena_printf(a, "%lld passes", (long long)t->n),
                    "each element would be compared with all others of its row");
}

enum status ln_lower_topk(struct ln *ln, MlirAttribute what) {
  struct topk t;
  enum status st = read_call(ln, what, &t);

  if (st)
    return st;
  for (int k = 0; k < 2; k++) {
    MlirValue result = mlirOperationGetResult(ln->op, k);
    t.results[k] = ir_is_used(result) ? ln_new_result(ln, result) : (MlirValue){NULL};
  }
  if (t.is_backwards && !mlirValueIsNull(t.results[1]))
    return ln_fail(ln, "find_index8 finds the first of equal elements, not the last");
  explain(&t);
  const int64_t whole = t.rows / NISA_PARTITIONS, over = t.rows % NISA_PARTITIONS;
  const struct ir_builder outside = ln->b;
  if (whole > 1) {
    MlirValue at = ln_open_loop(ln, whole);
    lower_tile(&t, at, 0, NISA_PARTITIONS);
    ln->b = outside;
  } else if (whole) {
    lower_tile(&t, (MlirValue){NULL}, 0, NISA_PARTITIONS);
  }
  if (over)
    lower_tile(&t, (MlirValue){NULL}, whole * NISA_PARTITIONS, over);
  return ST_OK;
}
