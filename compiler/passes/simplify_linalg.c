/* simplify_linalg: rewrites operations to the simplest form that an engine or a DMA queue executes in one step.
 *
 * 1. A transpose that moves more than two dimensions longer than 1 becomes loops around two-dimensional pieces, because
 *    a DMA transposes two dimensions at a time.  The pieces are copies where that is possible:
 *
 *        linalg.transpose ins(%x) outs(%y) permutation = [0, 2, 1, 3]      2x128x2x128
 *     ==>
 *        scf.for %b { scf.for %h { memref.copy %x[%b, :, %h, :], %y[%b, %h, :, :] } }
 *
 *    The two dimensions of a piece are, in this order of preference: the last dimension and the longest other one, if
 *    the last one stays last; the long one and the longest one that stays, if exactly two dimensions change places and
 *    one of them is short (at most 16); otherwise the last dimensions of input and output, transposed in tiles of 128
 *    by 128.  On the chip the partition dimension is one of the two if it stays first.
 *    A transpose in DRAM that moves only dimensions of extent 1 becomes a copy.
 * 2. DMA transposes only into SBUF: a transpose from DRAM to DRAM goes through a tile in SBUF.
 * 3. A generic that adds, subtracts, multiplies, divides or takes the maximum or minimum of two values of its own shape
 *    becomes linalg.add and so on.  Its maps must be the identity in each dimension (nkigen does not check their
 *    order); the operands are in the order of the body.
 * 4. Remaining copies within one memory are removed, as in eliminate-same-memspace-copy, but for those that legalize-layout made
 *    because no engine starts at the partition of the other side.
 *
 * Gathers are not changed here: legalize-layout keeps their tables in DRAM.  Linear in operations.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

enum { TILE = 128, SHORT = 16 };

/* ---- transposes ------------------------------------------------------------------------------------------------ */

static int longest_other(const struct tiled_op *t, int but1, int but2) {
  int best = -1;
  for (int l = 0; l < t->n_loops; l++)
    if (l != but1 && l != but2 && t->extents[l] > 1 && (best < 0 || t->extents[l] > t->extents[best]))
      best = l;
  return best;
}

/* True if loop l is the same dimension of the input and of the output. */
static bool stays(const struct tiled_op *t, int l) {
  return t->loop[0][l] == l;
}

/* If exactly two dimensions change places and one is short, returns the long one and sets *other to the longest
 * dimension that stays.  Otherwise returns -1. */
static int long_swapped(const struct tiled_op *t, int *other) {
  int moved[LEGAL_RANK_MAX], n = 0;

  *other = -1;
  for (int l = 0; l < t->n_loops; l++)
    if (!stays(t, l))
      moved[n++] = l;
    else if (t->extents[l] > 1 && (*other < 0 || t->extents[l] > t->extents[*other]))
      *other = l;
  if (n != 2 || *other < 0)
    return -1;
  const int l = t->extents[moved[0]] > t->extents[moved[1]] ? moved[0] : moved[1];
  const int s = l == moved[0] ? moved[1] : moved[0];
  return t->extents[s] <= SHORT && t->extents[s] < t->extents[l] ? l : -1;
}

/* Chooses the two loops that stay in one operation; the others become scf.for loops. */
static void choose_pair(const struct tiled_op *t, bool on_chip, int *x, int *y) {
  const int last = t->n_loops - 1, in_last = t->loop[0][last];

  if (on_chip && stays(t, 0)) { /* each partition is handled separately */
    *x = 0;
    *y = longest_other(t, 0, -1);
  } else if (in_last == last) {
    *x = last;
    *y = longest_other(t, last, -1);
  } else {
    *x = long_swapped(t, y);
    if (*x >= 0)
      return;
    *x = in_last;
    *y = last;
  }
}

static bool is_transpose(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "linalg.transpose") && mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, 0)));
}

/* True if the dimensions longer than 1 keep their order. */
static bool keeps_order(const struct tiled_op *t) {
  for (int d = 0, before = -1; d < t->operand_rank[0]; d++) {
    if (t->extents[t->loop[0][d]] == 1)
      continue;
    if (t->loop[0][d] < before)
      return false;
    before = t->loop[0][d];
  }
  return true;
}

/* Drops the dimensions of extent 1 of v, but keeps at least one dimension. */
static MlirValue without_units(struct ir_builder *b, MlirValue v) {
  int64_t dims[LEGAL_RANK_MAX], zero[LEGAL_RANK_MAX] = {0};
  bool drop[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);
  int left = rank;

  for (int d = 0; d < rank; d++) {
    drop[d] = dims[d] == 1 && left > 1;
    left -= drop[d];
  }
  return left == rank ? v : memrefs_subview(b, v, &(struct memrefs_part){.offset = zero, .size = dims, .drop = drop});
}

static void split_transpose(struct pass_run *run, MlirOperation op) {
  const bool on_chip =
      memrefs_is_on_chip(mlirOperationGetOperand(op, 0)) || memrefs_is_on_chip(mlirOperationGetOperand(op, 1));
  int64_t cut[LEGAL_RANK_MAX];
  struct tiled_op t;
  int x, y;

  if (!tiled_read(op, &t))
    return;
  if (!on_chip && keeps_order(&t)) { /* nothing moves */
    struct ir_builder b = edit_before(run, op);
    MlirValue from = without_units(&b, mlirOperationGetOperand(op, 0));
    struct remark *r = pass_remark(run, op, RULE_TRANSPOSE_IS_COPY, "a transpose that moves nothing is a copy");
    const struct price_shape s = price_shape_of(from);
    price_chosen(r, price_copy_ns(run->target, from));
    price_instead(r, "a transpose", price_transfer_ns(run->target, price_bytes(&s), s.element_bytes),
                  "it would move single elements");
    memrefs_copy(&b, from, without_units(&b, mlirOperationGetOperand(op, 1)));
    mlirOperationDestroy(op);
    return;
  }
  if (t.n_loops <= 2 && on_chip)
    return; /* one tile */
  choose_pair(&t, on_chip, &x, &y);
  int at_x = -1, at_y = -1; /* positions of x and y in the input */
  for (int d = 0; d < t.n_loops; d++) {
    at_x = t.loop[0][d] == x ? d : at_x;
    at_y = t.loop[0][d] == y ? d : at_y;
  }
  const bool is_copy = y < 0 || (x < y) == (at_x < at_y);
  const int first = y < 0 || x < y ? x : y; /* the partition loop, if the piece is on the chip */
  for (int l = 0; l < t.n_loops; l++) {
    cut[l] = l == x || l == y ? t.extents[l] : 1;
    if (cut[l] > TILE && (!is_copy || (on_chip && l == first)))
      cut[l] = TILE;
  }
  pass_remark(run, op, RULE_SPLIT_TRANSPOSE, "a transpose of %d dimensions becomes loops around %s of two", t.n_loops,
              is_copy ? "copies" : "transposes");
  legal_split(run, op, cut, -1);
}

/* ---- generics -------------------------------------------------------------------------------------------------- */

static const char *named(MlirOperation arith) {
  static const char *const table[][2] = {
      {"arith.addf", "linalg.add"},  {"arith.addi", "linalg.add"},     {"arith.subf", "linalg.sub"},
      {"arith.subi", "linalg.sub"},  {"arith.mulf", "linalg.mul"},     {"arith.muli", "linalg.mul"},
      {"arith.divf", "linalg.div"},  {"arith.maximumf", "linalg.max"}, {"arith.maxsi", "linalg.max"},
      {"arith.minsi", "linalg.min"}, {"arith.minimumf", "linalg.min"}};
  for (size_t k = 0; k < sizeof table / sizeof *table; k++)
    if (ir_is(arith, table[k][0]))
      return table[k][1];
  return NULL;
}

static bool same_types(MlirOperation op) {
  MlirType first = memrefs_element(mlirOperationGetOperand(op, 0));

  if (mlirTypeIsAInteger(first) && mlirIntegerTypeGetWidth(first) == 1)
    return false; /* linalg treats a sum of booleans as a logical or */
  for (int o = 1; o < 3; o++)
    if (!mlirTypeEqual(first, memrefs_element(mlirOperationGetOperand(op, o))))
      return false;
  return true;
}

static bool has_identity_maps(const struct tiled_op *t) {
  for (int o = 0; o < 3; o++) {
    if (t->operand_rank[o] != t->n_loops)
      return false;
    for (int d = 0; d < t->n_loops; d++)
      if (t->loop[o][d] != d && t->extents[d] != 1)
        return false;
  }
  return true;
}

static void name_generic(struct pass_run *run, MlirOperation op) {
  struct tiled_op t;

  if (!tiled_read(op, &t) || t.kind != SK_ELEMENTWISE || t.n_operands != 3 || t.n_inputs != 2 || !has_identity_maps(&t))
    return;
  for (int o = 0; o < 3; o++)
    if (!mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, o))))
      return;
  MlirBlock body = ir_body(op);
  MlirOperation arith = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  const char *name = named(arith);
  if (!name || !mlirOperationEqual(mlirOperationGetNextInBlock(arith), end) || !same_types(op) ||
      !mlirValueEqual(mlirOperationGetOperand(end, 0), mlirOperationGetResult(arith, 0)))
    return;
  MlirValue operands[3] = {{NULL}, {NULL}, mlirOperationGetOperand(op, 2)};
  for (int k = 0; k < 2; k++) {
    MlirValue v = mlirOperationGetOperand(arith, k);
    if (!mlirValueIsABlockArgument(v) || !mlirBlockEqual(mlirBlockArgumentGetOwner(v), body) ||
        mlirBlockArgumentGetArgNumber(v) > 1)
      return;
    operands[k] = mlirOperationGetOperand(op, mlirBlockArgumentGetArgNumber(v));
  }
  struct ir_builder b = edit_before(run, op);
  MlirAttribute id = ir_attr(op, "nkipy.op_id");
  const bool has_id = !mlirAttributeIsNull(id);
  MlirNamedAttribute attr = {{NULL}, id};
  if (has_id)
    attr = ir_named(&b, "nkipy.op_id", id);
  ir_linalg_named(&b, name, 2, operands, operands[2], has_id, &attr);
  mlirOperationDestroy(op);
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_transpose, NULL);

  for (int k = 0; k < ops.n; k++) {
    pass_step(run, ops.v[k], "split-transpose");
    split_transpose(run, ops.v[k]);
  }
  ops = ir_collect(run->arena, run->module, is_transpose, NULL);
  for (int k = 0; k < ops.n; k++) {
    pass_step(run, ops.v[k], "stage-transpose");
    legal_stage_transpose(run, ops.v[k]);
  }
  ops = ir_collect_named(run->arena, run->module, "linalg.generic");
  for (int k = 0; k < ops.n; k++) {
    pass_step(run, ops.v[k], "name-operation");
    name_generic(run, ops.v[k]);
  }
  memrefs_drop_copies(run, true);
  return ST_OK;
}

const struct pass_def simplify_linalg = {
    .name = "simplify-linalg",
    .run = run_pass,
};
