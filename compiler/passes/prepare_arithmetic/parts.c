/* parts: what is computed of a value that is joined of parts is computed part by part, and joined afterwards.
 *
 *     %j = insert_slice %b into (insert_slice %a into empty[0, 0])[0, 64]        %p = mul(%a, extract_slice %s[0, 0])
 *     %y = mul(%j, %s)                                                     ==>   %q = mul(%b, extract_slice %s[0, 64])
 *                                                                                %y = insert_slice %q into (insert_slice %p into empty)
 *
 * Rotary embeddings are written so: x * cos + concatenate([-x[:, 64:], x[:, :64]]) * sin.  A joined value goes to HBM and back, because
 * its parts come from several places; the result is written part by part as it is (fuse_row_tiles/join.c).  Element by element the
 * operations are the same.
 *
 * Only equal parts along the last dimension, as long as rows of DMA, of which the operation is the only reader, and where parts of the
 * other operands cost nothing: those of arguments, of what is sliced anyhow, and of what only this operation reads.  Linear in operations.
 */
#include <assert.h>
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/slice.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum {
  PARTS_MAX = 4,   /* each is an instruction of its own */
  BYTES_MIN = 128, /* of a part of a row: shorter ones are read and written element by element in about the same time */
  DEPTH_MAX = 4
};

struct joined {
  MlirValue value, part[PARTS_MAX];
  MlirOperation insert[PARTS_MAX]; /* the last one first */
  int n;
  int64_t width; /* of a part */
};

/* Reads the insertions that end with v: of equal parts of rows, each place once. */
static bool read_joined(MlirValue v, struct joined *j) {
  int64_t dims[STRUCTURED_LOOPS_MAX], filled = 0;
  const int rank = mlirTypeIsARankedTensor(mlirValueGetType(v)) ? ir_shape(v, STRUCTURED_LOOPS_MAX, dims) : 0;
  MlirOperation op = ir_defining_op(v);

  *j = (struct joined){.value = v};
  for (; rank && !mlirOperationIsNull(op) && ir_is(op, "tensor.insert_slice");
       op = ir_defining_op(mlirOperationGetOperand(op, 1))) {
    struct slice s;
    if (j->n == PARTS_MAX || !ir_has_one_use(ir_result(op)) || !slice_read(op, &s) ||
        mlirShapedTypeGetRank(mlirValueGetType(slice_part(&s))) != rank)
      return false;
    for (int d = 0; d < rank; d++)
      if (s.offset[d] == SLICE_DYNAMIC || (d < rank - 1 && (s.offset[d] || s.size[d] != dims[d])))
        return false;
    j->width = s.size[rank - 1];
    if (j->width < 1 || dims[rank - 1] % j->width || s.offset[rank - 1] % j->width ||
        dims[rank - 1] / j->width > PARTS_MAX)
      return false;
    const int64_t at = s.offset[rank - 1] / j->width;
    if (j->part[at].ptr)
      return false;
    j->part[at] = slice_part(&s);
    j->insert[j->n++] = op;
    filled += j->width;
  }
  if (j->n < 2 || mlirOperationIsNull(op) || !ir_is(op, "tensor.empty") || filled != dims[rank - 1] ||
      j->n * j->width != dims[rank - 1])
    return false;
  return j->width * nisa_element_bytes(ir_value_element(v)) >= BYTES_MIN;
}

/* Reads an element-wise operation whose result has its loops in their order. */
static bool read_plain(struct pass_run *run, MlirOperation op, struct structured *s) {
  if (mlirOperationIsNull(op) || !prepare_may_change(run, op, s) || !structured_is_elementwise(s) || s->n_loops < 2 ||
      mlirAffineMapGetNumResults(s->maps[s->n_inputs]) != s->n_loops || prepare_has_op(run, op, "linalg.index"))
    return false;
  for (int d = 0; d < s->n_loops; d++)
    if (structured_map_loop(s->maps[s->n_inputs], d) != d)
      return false;
  return true;
}

/* The dimension of operand o that is divided; -1: it is the same for all parts. */
static int divided(MlirOperation op, const struct structured *s, int o) {
  MlirValue v = mlirOperationGetOperand(op, o);
  if (!mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return -1;
  for (int d = 0; d < (int)mlirAffineMapGetNumResults(s->maps[o]); d++)
    if (structured_map_loop(s->maps[o], d) == s->n_loops - 1)
      return d;
  return -1;
}

static bool is_sliced_anyhow(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def))
    return true;
  if (ir_is(def, "tensor.expand_shape") || ir_is(def, "tensor.extract_slice"))
    return is_sliced_anyhow(mlirOperationGetOperand(def, 0));
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "tensor.extract_slice"))
      return true;
  return false;
}

/* True if the operation can be computed part by part. */
static bool has_parts(struct pass_run *run, MlirOperation op, const struct joined *j, int depth) {
  struct structured s;

  if (depth > DEPTH_MAX || !read_plain(run, op, &s))
    return false;
  for (int o = 0; o < s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const int d = divided(op, &s, o);
    if (d < 0 || (mlirValueEqual(v, j->value) && d == s.n_loops - 1))
      continue;
    if (mlirValueEqual(v, j->value) ||
        (!is_sliced_anyhow(v) && !(ir_has_one_use(v) && has_parts(run, ir_defining_op(v), j, depth + 1))))
      return false;
  }
  return true;
}

/* Computes part k of the operation's result. */
static MlirValue compute_part(struct pass_run *run, struct ir_builder *b, MlirOperation op, const struct joined *j,
                              int k) {
  struct structured s;
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX] = {0};
  const bool ok = read_plain(run, op, &s);
  MlirOperation made = mlirOperationClone(op);

  assert(ok);
  (void)ok;
  for (int o = 0; o < s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const int d = divided(op, &s, o);
    if (d < 0)
      continue;
    if (mlirValueEqual(v, j->value)) {
      mlirOperationSetOperand(made, o, j->part[k]);
      continue;
    }
    if (!is_sliced_anyhow(v)) {
      mlirOperationSetOperand(made, o, compute_part(run, b, ir_defining_op(v), j, k));
      continue;
    }
    const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
    offsets[d] = k * j->width;
    dims[d] = j->width;
    const struct ir_slice part = {.rank = rank, .offsets = offsets, .sizes = dims};
    mlirOperationSetOperand(made, o, ir_extract_slice(b, v, &part, ir_tensor_of(ir_value_element(v), rank, dims)));
    offsets[d] = 0;
  }
  const int rank = ir_shape(ir_result(op), STRUCTURED_LOOPS_MAX, dims);
  dims[rank - 1] = j->width;
  MlirType type = ir_tensor_of(ir_value_element(ir_result(op)), rank, dims);
  mlirOperationSetOperand(made, s.n_inputs, ir_empty_of(b, type));
  mlirValueSetType(ir_result(made), type);
  return ir_result(ir_place(b, made));
}

/* Erases the operation, which nothing reads, and those that only it has read. */
static void erase(struct pass_run *run, MlirOperation op) {
  MlirOperation read[STRUCTURED_OPERANDS_MAX];
  struct structured s, from;
  int n = 0;

  if (!read_plain(run, op, &s))
    return;
  for (int o = 0; o < s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    MlirOperation def = ir_defining_op(v);
    if (read_plain(run, def, &from) && ir_has_one_use(v)) /* the others stay, or go with op */
      read[n++] = def;
  }
  edit_erase_unused(run->arena, op);
  for (int k = 0; k < n; k++)
    erase(run, read[k]);
}

static void explain(struct pass_run *run, MlirOperation op, const struct joined *j) {
  const struct price_shape shape = price_shape_of(j->value);
  const double one = price_rows_ns(run->target, SIM_COST_VECTOR_COPY, shape.rows, j->width),
               whole = price_rows_ns(run->target, SIM_COST_VECTOR_COPY, shape.rows, shape.columns);
  struct remark *r = pass_remark(
      run, op, RULE_COMPUTE_IN_PARTS,
      "each of %d parts of %" PRId64 " elements of a row is computed by itself, and joined then", j->n, j->width);
  price_chosen(r, j->n * one);
  price_instead(r, "what is joined first", whole + price_away_ns(run->target, j->value),
                "the joined value goes to HBM and comes back");
}

static void rewrite(struct pass_run *run, MlirOperation op, const struct joined *j) {
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX] = {0};
  struct ir_builder b = edit_before(run, op);
  MlirValue result = ir_result(op), whole = ir_empty_of(&b, mlirValueGetType(result)), part[PARTS_MAX];
  const int rank = ir_shape(result, STRUCTURED_LOOPS_MAX, dims);

  explain(run, op, j);
  for (int k = 0; k < j->n; k++)
    part[k] = compute_part(run, &b, op, j, k);
  dims[rank - 1] = j->width;
  for (int k = 0; k < j->n; k++) {
    offsets[rank - 1] = k * j->width;
    const struct ir_slice at = {.rank = rank, .offsets = offsets, .sizes = dims};
    whole = ir_insert_slice(&b, part[k], whole, &at);
  }
  edit_replace_data_uses(run->arena, result, whole, (MlirOperation){NULL});
  erase(run, op);
  for (int k = 0; k < j->n; k++)
    mlirOperationDestroy(j->insert[k]);
}

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return structured_read(op, &(struct structured){0});
}

void prepare_parts(struct pass_run *run) {
  const struct ir_ops all = ir_collect(run->arena, run->module, is_linalg, NULL);

  for (int i = 0; i < all.n; i++) {
    struct structured s;
    struct joined j;
    MlirOperation op = all.v[i];
    bool is_joined = false;
    if (!read_plain(run, op, &s) || prepare_has_knob(ir_result(op)))
      continue;
    for (int o = 0; !is_joined && o < s.n_inputs; o++)
      is_joined = read_joined(mlirOperationGetOperand(op, o), &j);
    if (!is_joined || !has_parts(run, op, &j, 0))
      continue;
    pass_step(run, op, "compute-in-parts");
    rewrite(run, op, &j);
  }
}
