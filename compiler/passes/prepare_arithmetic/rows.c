/* rows: the leading dimensions of a normalisation become one.
 *
 *     sum of x[4,8,8,32,32] over the last three, and f(x, sum[4,8])   ==>  sum of x[32,8192], f(x, sum[32,1]), then reshapes back
 *
 * One dimension lies across the partitions, so that a row for each of 4 images and 8 groups would fill 8 of them, or the sums
 * and the operations on single elements would choose different ones and meet in HBM.
 *
 * A group of operations changes together: element-wise ones and reductions over all of the trailing dimensions that read each
 * other's results and have the same leading ones.  An operand has all dimensions, the leading ones or some of them, the trailing
 * ones, or one element.  What else touches the group is an argument, a constant, a reshape, or the return; any operation may touch
 * numbers for each row.  A product of matrices in a batch, also through a reshape, has its own way with leading dimensions.  Nothing changes where a
 * knob names the dimensions, or if one of them across the partitions, with the others in its rows, would take less time, see cost.
 *
 *     sum of x[8,512,14,14] over the last two   ==>   sum of x[128,32,196], then a reshape back
 *
 * Where nothing but sums and what is computed with these comes of many short rows, each partition gets neighbouring rows: one load and
 * one instruction take several of them, and a partition's part of the result is one run.
 */
#include <assert.h>
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* The number of the group that an operation is in, while groups are found. */
#define ROWS "nkx.rows"

/* The leading dimensions of a group. */
struct lead {
  int n;
  int64_t dims[STRUCTURED_LOOPS_MAX], rows; /* rows: their product */
  int64_t cost, rejected;                   /* of rows, and of the best single dimension */
  bool is_parted;                           /* each partition gets neighbouring rows, in a dimension of their own */
};

enum part { WHOLE, LEADING, SOME_LEADING, TRAILING, ONE, OTHER };

/* Which dimensions of the loops the operand has, n of them leading; others of it have one element. */
static enum part part_of(const struct structured *s, int operand, MlirValue v, int n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  bool has[STRUCTURED_LOOPS_MAX] = {false};
  int last = -1, n_leading = 0, n_trailing = 0, all_trailing = 0;

  if (rank < 0)
    return OTHER;
  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    if (loop < 0 ? dims[r] != 1 : loop <= last)
      return OTHER;
    if (loop >= 0)
      has[last = loop] = true;
  }
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] != 1) {
      *(l < n ? &n_leading : &n_trailing) += has[l];
      all_trailing += l >= n;
    }
  int all_leading = 0;
  for (int l = 0; l < n; l++)
    all_leading += s->extents[l] != 1;
  if (!n_leading && !n_trailing)
    return ONE;
  if (n_leading == all_leading)
    return n_trailing == all_trailing ? WHOLE : n_trailing ? OTHER : LEADING;
  if (n_leading)
    return n_trailing ? OTHER : SOME_LEADING;
  return n_trailing < all_trailing ? OTHER : TRAILING;
}

static bool reads(struct pass_run *run, MlirOperation op, struct structured *s) {
  return prepare_may_change(run, op, s) && (structured_is_elementwise(s) || s->n_inputs == 1) &&
         !prepare_has_op(run, op, "linalg.index");
}

int64_t prepare_cycles(int64_t rows, int64_t columns) {
  enum { FIXED = 64 }; /* of an instruction on the vector engine */
  return (rows + NISA_PARTITIONS - 1) / NISA_PARTITIONS * (FIXED + columns);
}

/* Reads the leading dimensions of a reduction, and how many elements of each it reduces.  Returns false for anything else. */
static bool read_lead(struct pass_run *run, MlirOperation op, struct structured *s, struct lead *lead,
                      int64_t *columns) {
  if (!reads(run, op, s) || s->kind != SK_REDUCTION)
    return false;
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] < 1)
      return false;
  *lead = (struct lead){.rows = 1};
  for (; lead->n < s->n_loops && !s->reduction[lead->n]; lead->n++)
    lead->rows *= lead->dims[lead->n] = s->extents[lead->n];
  *columns = 1;
  for (int l = lead->n; l < s->n_loops; l++)
    *columns *= s->extents[l];
  return true;
}

/* Reads the leading dimensions of a reduction that is faster with one of them.  Returns false for anything else. */
static bool is_seed(struct pass_run *run, MlirOperation op, struct lead *lead) {
  struct structured s;
  int64_t columns;

  if (!read_lead(run, op, &s, lead, &columns))
    return false;
  lead->cost = prepare_cycles(lead->rows, columns);
  lead->rejected = INT64_MAX;
  for (int l = 0; l < lead->n; l++) {
    const int64_t other = prepare_cycles(lead->dims[l], lead->rows / lead->dims[l] * columns);
    lead->rejected = other < lead->rejected ? other : lead->rejected;
  }
  return lead->n > 1 && lead->n < s.n_loops && lead->cost < lead->rejected;
}

/* Reads the leading dimensions of a reduction of short rows, of which each partition gets several that are neighbours. */
static bool is_parted_seed(struct pass_run *run, MlirOperation op, struct lead *lead) {
  enum {
    BYTES_MIN = 512,     /* of a row: what computes with shorter ones changes as a whole, see short.c */
    COLUMNS_MAX = 256,   /* longer rows fill an instruction */
    EACH_MIN = 16,       /* rows of a partition */
    ELEMENTS_MAX = 16384 /* of a partition: 64 KiB */
  };
  struct structured s;
  int64_t columns;

  if (!read_lead(run, op, &s, lead, &columns))
    return false;
  lead->is_parted = true;
  const int64_t each = lead->rows / NISA_PARTITIONS;
  lead->cost = prepare_cycles(NISA_PARTITIONS, each * columns);
  lead->rejected = prepare_cycles(lead->rows, columns);
  return lead->rows % NISA_PARTITIONS == 0 && each >= EACH_MIN && columns <= COLUMNS_MAX &&
         columns * price_shape_of(mlirOperationGetOperand(op, 0)).element_bytes >= BYTES_MIN &&
         each * columns <= ELEMENTS_MAX && (lead->n != 2 || lead->dims[0] != NISA_PARTITIONS) && lead->n < s.n_loops;
}

/* True if the operation has the leading dimensions, and its operands whole parts of its dimensions. */
static bool fits(struct pass_run *run, MlirOperation op, const void *what) {
  const struct lead *lead = what;
  struct structured s;

  if (!reads(run, op, &s) || s.n_loops < lead->n)
    return false;
  for (int l = lead->n; lead->is_parted && s.kind != SK_REDUCTION && l < s.n_loops; l++)
    if (s.extents[l] != 1)
      return false; /* it has all rows and columns */
  for (int l = 0; l < s.n_loops; l++)
    if (l < lead->n ? s.reduction[l] || s.extents[l] != lead->dims[l]
                    : s.extents[l] < 1 || (s.kind == SK_REDUCTION && !s.reduction[l]))
      return false;
  for (int o = 0; o < s.n_inputs + s.n_inits; o++) {
    const enum part part = part_of(&s, o, mlirOperationGetOperand(op, o), lead->n);
    if (lead->is_parted && part == SOME_LEADING)
      return false;
    if (part == OTHER || (o >= s.n_inputs && part != (s.kind == SK_REDUCTION ? LEADING : WHOLE) &&
                          !(part == LEADING && s.n_loops == lead->n)))
      return false;
  }
  return true;
}

/* ---- the change -------------------------------------------------------------------------------------------------- */

static MlirValue yield_first(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)b;
  (void)user;
  return args[0];
}

MlirValue prepare_copy(struct ir_builder *b, MlirValue v, MlirAffineMap map, int n, const int64_t *dims) {
  MlirAffineMap maps[] = {map, ir_identity_map(b, n)};
  return ir_result(
      ir_linalg_generic(b, &(struct ir_generic){.n_loops = n,
                                                .n_inputs = 1,
                                                .inputs = &v,
                                                .maps = maps,
                                                .output = ir_empty_of(b, ir_tensor_of(ir_value_element(v), n, dims)),
                                                .body = yield_first}));
}

/* Repeats v, which the map reads with some of the leading dimensions, along the others: a number for each row. */
static MlirValue for_each_row(struct ir_builder *b, MlirValue v, MlirAffineMap map, const struct lead *lead) {
  int64_t loops[STRUCTURED_LOOPS_MAX];
  const int rank = (int)mlirAffineMapGetNumResults(map);

  for (int r = 0; r < rank; r++)
    loops[r] = structured_map_loop(map, r) < 0 ? IR_CONST(0) : structured_map_loop(map, r);
  return prepare_copy(b, v, ir_map(b, lead->n, rank, loops), lead->n, lead->dims);
}

static void rewrite(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct structured s;
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  int64_t columns = 1;
  const int rank = lead->is_parted ? 3 : 2;
  const bool ok = structured_read(op, &s);

  assert(ok);
  (void)ok;
  for (int l = lead->n; l < s.n_loops; l++)
    columns *= s.extents[l];
  for (int o = 0; o < s.n_inputs + s.n_inits; o++) {
    const enum part part = part_of(&s, o, mlirOperationGetOperand(op, o), lead->n);
    const bool has_rows = part == WHOLE || part == LEADING || part == SOME_LEADING,
               has_columns = part == WHOLE || part == TRAILING;
    const bool has[] = {has_rows, has_rows && lead->is_parted, has_columns};
    const int64_t extents[] = {lead->is_parted ? NISA_PARTITIONS : lead->rows, lead->rows / NISA_PARTITIONS, columns};
    int64_t dims[3], loops[3];
    for (int d = 0, k = 0; d < 3; d++)
      if (d != 1 || lead->is_parted) {
        dims[k] = has[d] ? extents[d] : 1;
        loops[k] = has[d] ? k : IR_CONST(0);
        k++;
      }
    maps[o] = ir_map(&b, rank, rank, loops);
    MlirValue v = mlirOperationGetOperand(op, o);
    if (part == SOME_LEADING)
      v = for_each_row(&b, v, s.maps[o], lead);
    if (o < s.n_inputs)
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, rank, dims));
    else
      prepare_result(run, op, &s, o - s.n_inputs, rank, dims);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s.n_inputs + s.n_inits, maps);
  edit_set_iterators(
      op, rank, rank == 3 ? (bool[]){false, false, s.kind == SK_REDUCTION} : (bool[]){false, s.kind == SK_REDUCTION});
}

static void remark_parted(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct remark *r = pass_remark(run, op, RULE_ROWS, "each partition has %" PRId64 " neighbouring rows of %" PRId64,
                                 lead->rows / NISA_PARTITIONS, lead->rows);
  remark_cost(r, "%" PRId64 " cycles", lead->cost);
  remark_limit(r, "partitions", "partitions", NISA_PARTITIONS, NISA_PARTITIONS);
  remark_reject_for(r, "one of them in each", NULL, arena_printf(run->arena, "%" PRId64 " cycles", lead->rejected),
                    "an instruction and a transfer for each 128 rows");
}

static void remark_lead(struct pass_run *run, MlirOperation op, const struct lead *lead) {
  struct remark *r =
      pass_remark(run, op, RULE_ROWS, "the %d leading dimensions are one of %" PRId64, lead->n, lead->rows);
  remark_cost(r, "%" PRId64 " cycles", lead->cost);
  remark_limit(r, "partitions", "partitions", lead->rows < NISA_PARTITIONS ? lead->rows : NISA_PARTITIONS,
               NISA_PARTITIONS);
  remark_reject_for(r, "one of them across the partitions", NULL,
                    arena_printf(run->arena, "%" PRId64 " cycles", lead->rejected),
                    "it would fill fewer partitions, with longer rows");
}

/* True if all readers of v, also through reshapes, are in the group or return it. */
static bool stays_inside(const struct prepare_group *g, MlirValue v, int depth) {
  enum { DEPTH_MAX = 8 };
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (ir_is(user, "func.return") || prepare_is_marked(user, g->mark))
      continue;
    if ((!ir_is(user, "tensor.expand_shape") && !ir_is(user, "tensor.collapse_shape")) || depth == DEPTH_MAX ||
        !stays_inside(g, ir_result(user), depth + 1))
      return false;
  }
  return true;
}

/* The schedule writes so few instructions out without loops, all loads first: a load, a store and each operation for each 128
 * rows.  That is as fast. */
enum { WRITTEN_OUT = 96 };

/* Changes the group around op. */
static void change_group(struct pass_run *run, MlirOperation op, int number, const struct lead *lead,
                         MlirOperation *ops) {
  struct prepare_group g = {.run = run,
                            .mark = ROWS,
                            .fits = fits,
                            .what = lead,
                            .rows = lead->rows,
                            .number = number,
                            .ops = ops,
                            .is_free = true};

  prepare_grow(&g, op);
  for (int k = 0; lead->is_parted && k < g.n; k++)
    g.is_free = g.is_free && stays_inside(&g, ir_result(ops[k]), 0);
  if (lead->is_parted && lead->rows / NISA_PARTITIONS * (g.n + 2) <= WRITTEN_OUT)
    return;
  if (!g.is_free)
    return;
  if (lead->is_parted)
    remark_parted(run, op, lead);
  else
    remark_lead(run, op, lead);
  for (int k = 0; k < g.n; k++) {
    pass_step(run, ops[k], lead->is_parted ? "rows-in-parts" : "leading-dimensions-as-one");
    rewrite(run, ops[k], lead);
  }
}

void prepare_rows(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run); /* none of these is erased here */
  MlirOperation *ops = arena_alloc(run->arena, (size_t)all.n * sizeof *ops);
  struct lead lead;

  for (int i = 0; i < all.n; i++)
    if (!prepare_is_marked(all.v[i], ROWS) && is_seed(run, all.v[i], &lead))
      change_group(run, all.v[i], i, &lead, ops);
  prepare_unmark(all, ROWS);
  for (int i = 0; i < all.n; i++)
    if (!prepare_is_marked(all.v[i], ROWS) && is_parted_seed(run, all.v[i], &lead))
      change_group(run, all.v[i], i, &lead, ops);
  prepare_unmark(all, ROWS);
}
