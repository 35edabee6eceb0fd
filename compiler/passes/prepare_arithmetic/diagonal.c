/* diagonal: a sum that leaves one diagonal of an argument reads only this diagonal.
 *
 *     sum over j of select(j - i == k, x[A,N,M,B], 0)       ==>  x as [A,N*M,B], every (M+1)th of N*M from k on
 *     sum over i and j of the same                          ==>  the sum of these
 *
 * NumPy's diagonal and trace, and einsum('ii->i'), are traced as a mask.  In HBM a diagonal is a strided read of N elements, each with
 * a descriptor of its own, instead of all N*M, from which an engine would choose.  What is computed is on the chip, where a mask costs
 * less than a way through HBM, so only arguments are read like this.
 *
 * A diagonal that is shorter than the side that is left has zeros at its ends.  It is read if all that use the sum take slices
 * without these.  The result is exact: a sum of one element and zeros is that element.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/slice.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

struct diagonal {
  MlirOperation select;
  MlirValue x;
  int rank, first; /* the diagonal is of the dimensions first and first + 1 */
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t offset;        /* column minus row */
  int64_t start, count;  /* the first row, and how many */
  bool sums, keeps_rows; /* it is summed up; if not, what is left is a number for each row, or each column */
};

static bool is_argument(MlirValue v) {
  return mlirValueIsABlockArgument(v) && ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "func.func");
}

/* Reads select(mask, x, 0) in the whole body of op. */
static bool read_select(MlirOperation op, MlirValue *mask, MlirValue *x) {
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) ||
      !structured_is_elementwise(&s) || s.n_inputs != 2 || s.n_inits != 1 || prepare_has_knob(ir_result(op)))
    return false;
  for (int o = 0; o < 3; o++)
    if (!mlirAffineMapIsIdentity(s.maps[o]))
      return false;
  MlirBlock body = ir_body(op);
  MlirOperation choose = mlirBlockGetFirstOperation(body);
  if (!ir_is(choose, "arith.select") ||
      !mlirOperationEqual(mlirOperationGetNextInBlock(choose), mlirBlockGetTerminator(body)) ||
      !mlirValueEqual(mlirOperationGetOperand(choose, 0), mlirBlockGetArgument(body, 0)) ||
      !mlirValueEqual(mlirOperationGetOperand(choose, 1), mlirBlockGetArgument(body, 1)) ||
      !ir_is_zero(mlirOperationGetOperand(choose, 2)))
    return false;
  *mask = mlirOperationGetOperand(op, 0);
  *x = mlirOperationGetOperand(op, 1);
  return true;
}

static bool read_mask(MlirValue mask, struct diagonal *d) {
  struct prepare_places p;
  int64_t predicate;
  int n = 0;

  if (!prepare_read_mask(mask, &p, &predicate) || predicate != IR_INT_EQ)
    return false;
  for (int l = 0; l < d->rank; l++)
    n += p.factor[l] != 0;
  for (d->first = 0; d->first < d->rank - 1 && !p.factor[d->first];)
    d->first++;
  const int64_t row = p.factor[d->first], column = d->first < d->rank - 1 ? p.factor[d->first + 1] : 0;
  if (n != 2 || row + column || (row != 1 && row != -1)) /* rows and columns that are beside each other */
    return false;
  d->offset = row < 0 ? -p.constant : p.constant;
  const int64_t rows = d->dims[d->first], columns = d->dims[d->first + 1];
  d->start = d->offset < 0 ? -d->offset : 0;
  const int64_t end = columns - d->offset < rows ? columns - d->offset : rows;
  d->count = end - d->start;
  return d->count > 0;
}

/* True if the loops that are summed are rows, columns, or both. */
static bool read_sum(const struct structured *s, struct diagonal *d) {
  for (int l = 0; l < s->n_loops; l++)
    if (s->reduction[l] && l != d->first && l != d->first + 1)
      return false;
  d->sums = s->reduction[d->first] && s->reduction[d->first + 1];
  d->keeps_rows = !s->reduction[d->first];
  return prepare_keeps_order(s);
}

static bool starts_from_zero(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) && ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0));
}

static bool read_diagonal(MlirOperation op, struct diagonal *d) {
  struct structured s;
  MlirValue mask;

  if (!ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.kind != SK_REDUCTION || s.n_inputs != 1 ||
      s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[0]) || !structured_has_simple_maps(&s) ||
      !(prepare_is_plain(op, "arith.addf") || prepare_is_plain(op, "arith.addi")) || prepare_has_knob(ir_result(op)) ||
      !starts_from_zero(mlirOperationGetOperand(op, 1)))
    return false;
  d->select = ir_defining_op(mlirOperationGetOperand(op, 0));
  if (!read_select(d->select, &mask, &d->x) || !is_argument(d->x))
    return false;
  d->rank = ir_shape(d->x, STRUCTURED_LOOPS_MAX, d->dims);
  for (int k = 0; k < d->rank; k++)
    if (d->dims[k] < 1)
      return false;
  return d->rank > 1 && read_mask(mask, d) && read_sum(&s, d);
}

/* ---- what uses it ------------------------------------------------------------------------------------------------------ */

/* The dimension of the sum's result that is along the diagonal. */
static int dim_along(MlirOperation op, const struct diagonal *d) {
  struct structured s;
  const bool ok = structured_read(op, &s);
  for (int r = 0; ok && r < mlirAffineMapGetNumResults(s.maps[1]); r++)
    if (structured_map_loop(s.maps[1], r) == d->first + !d->keeps_rows)
      return r;
  return -1;
}

/* The first element of the result that is not zero by the mask. */
static int64_t first_of(const struct diagonal *d) {
  return d->keeps_rows ? d->start : d->start + d->offset;
}

/* True if all that use the result take slices of elements on the diagonal. */
static bool is_cut(MlirOperation op, const struct diagonal *d) {
  const int along = dim_along(op, d);
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    struct slice s;
    if (along < 0 || !slice_read(mlirOpOperandGetOwner(u), &s) || s.is_insert || s.offset[along] == SLICE_DYNAMIC ||
        s.offset[along] < first_of(d) || s.offset[along] + s.size[along] > first_of(d) + d->count)
      return false;
  }
  return true;
}

/* ---- the change ---------------------------------------------------------------------------------------------------------- */

/* x[A,N,M,B] -> [A,count,B], without dimensions of one element before and after. */
static MlirValue read_strided(struct ir_builder *b, const struct diagonal *d, int64_t whole[3], int *rank, int *along) {
  int64_t before = 1, after = 1, flat[3], offsets[3] = {0}, sizes[3], strides[3] = {1, 1, 1};
  const int64_t columns = d->dims[d->first + 1];

  for (int k = 0; k < d->rank; k++) {
    before *= k < d->first ? d->dims[k] : 1;
    after *= k > d->first + 1 ? d->dims[k] : 1;
  }
  *rank = 0;
  if (before > 1)
    flat[(*rank)++] = before;
  *along = *rank;
  flat[(*rank)++] = d->dims[d->first] * columns;
  if (after > 1)
    flat[(*rank)++] = after;
  for (int k = 0; k < *rank; k++)
    whole[k] = sizes[k] = k == *along ? d->count : flat[k];
  offsets[*along] = d->start * columns + d->start + d->offset;
  strides[*along] = columns + 1;
  const struct ir_slice s = {.rank = *rank, .offsets = offsets, .sizes = sizes, .strides = strides};
  return ir_extract_slice(b, edit_reshape(b, d->x, *rank, flat), &s,
                          ir_tensor_of(ir_value_element(d->x), *rank, sizes));
}

/* Makes op, the sum over rows and columns, one over the diagonal. */
static MlirValue sum_up(struct ir_builder *b, MlirOperation op, MlirValue x, int rank, int along, const int64_t *dims) {
  MlirOperation made = mlirOperationClone(op);
  MlirType element = ir_value_element(ir_result(op));
  int64_t left[3], loops[3];
  bool reduction[3] = {false, false, false};
  int n = 0;

  for (int k = 0; k < rank; k++) {
    reduction[k] = k == along;
    if (k == along)
      continue;
    left[n] = dims[k];
    loops[n++] = k;
  }
  MlirValue init = edit_reshape_init(b, mlirOperationGetOperand(op, 1), n, left);
  const MlirAffineMap maps[] = {ir_identity_map(b, rank), ir_map(b, rank, n, loops)};
  mlirOperationSetOperand(made, 0, x);
  mlirOperationSetOperand(made, 1, init);
  mlirValueSetType(ir_result(made), ir_tensor_of(element, n, left));
  edit_set_maps(made, 2, maps);
  edit_set_iterators(made, rank, reduction);
  return ir_result(ir_place(b, made));
}

/* Gives the slices of op the diagonal alone. */
static void cut_anew(MlirOperation op, const struct diagonal *d, MlirValue short_one) {
  const int along = dim_along(op, d);
  while (ir_is_used(ir_result(op))) {
    struct slice s;
    if (!slice_read(mlirOpOperandGetOwner(mlirValueGetFirstUse(ir_result(op))), &s))
      return; /* is_cut has read it */
    s.offset[along] -= first_of(d);
    slice_set(&s, short_one);
  }
}

static void remark(struct pass_run *run, MlirOperation op, const struct diagonal *d) {
  const enum target t = run->target;
  const struct price_shape all = price_shape_of(d->x);
  const int64_t run_bytes = d->first + 2 < d->rank ? d->dims[d->rank - 1] * all.element_bytes : all.element_bytes,
                bytes = price_bytes(&all) / (d->dims[d->first] * d->dims[d->first + 1]) * d->count;
  struct remark *r = pass_remark(run, op, RULE_DIAGONAL,
                                 "reads %" PRId64 " elements of a diagonal, each %" PRId64 " after the one before",
                                 d->count, d->dims[d->first + 1] + 1);
  price_chosen(r, price_transfer_ns(t, bytes, run_bytes));
  price_instead(r, "a mask on all elements",
                price_transfer_ns(t, price_bytes(&all), all.columns * all.element_bytes) +
                    price_rows_ns(t, SIM_COST_VECTOR_PREDICATED, all.rows, all.columns) +
                    price_rows_ns(t, SIM_COST_VECTOR_REDUCE, all.rows, all.columns),
                "all of it would be loaded, and an engine would choose");
}

static void rewrite(struct pass_run *run, MlirOperation op, const struct diagonal *d) {
  MlirValue result = ir_result(op);
  int64_t dims[3], old[STRUCTURED_LOOPS_MAX];
  int rank, along;
  struct ir_builder b = edit_before(run, op);
  MlirValue x = read_strided(&b, d, dims, &rank, &along);
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);

  remark(run, op, d);
  if (d->sums) {
    x = sum_up(&b, op, x, rank, along, dims);
  } else if (d->count < d->dims[d->first + !d->keeps_rows]) {
    old[dim_along(op, d)] = d->count;
    cut_anew(op, d, edit_reshape(&b, x, old_rank, old));
  }
  if (ir_is_used(result))
    mlirValueReplaceAllUsesOfWith(result, edit_reshape(&b, x, old_rank, old));
  edit_erase_unused(run->arena, op);
}

/* Erases op and the element-wise operations that only it used. */
static void erase_dead(struct arena *a, MlirOperation op, int depth) {
  enum { DEPTH_MAX = 8, OPERANDS = 4 };
  MlirOperation defs[OPERANDS];
  struct structured s;
  int n = 0;

  if (mlirOperationIsNull(op) || depth > DEPTH_MAX || !structured_read(op, &s) || ir_is_used(ir_result(op)))
    return;
  for (int o = 0; o < s.n_inputs && o < OPERANDS; o++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, o));
    bool is_known = mlirOperationIsNull(def);
    for (int k = 0; k < n; k++)
      is_known |= mlirOperationEqual(defs[k], def);
    if (!is_known)
      defs[n++] = def;
  }
  edit_erase_unused(a, op);
  for (int k = 0; k < n; k++)
    erase_dead(a, defs[k], depth + 1);
}

static bool is_sum(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return structured_read(op, &s) && s.kind == SK_REDUCTION;
}

void prepare_diagonal(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, is_sum, NULL);

  for (int i = 0; i < ops.n; i++) {
    struct diagonal d;
    if (!read_diagonal(ops.v[i], &d) || (!d.sums && d.count < d.dims[d.first + !d.keeps_rows] && !is_cut(ops.v[i], &d)))
      continue;
    pass_step(run, ops.v[i], "diagonal");
    rewrite(run, ops.v[i], &d);
    erase_dead(run->arena, d.select, 0);
  }
}
