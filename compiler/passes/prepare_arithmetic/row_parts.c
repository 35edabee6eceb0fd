/* row_parts: few long rows are cut, and the parts of all of them lie across the partitions together.
 *
 *     m = max of x[8,32000] along rows, f(x, m[8])   ==>  p = max of x as [128,2000] along rows
 *                                                         m = p of all parts of the same row, for each part: [128,1]
 *                                                         f(x as [128,2000], m), then a reshape back
 *
 * Few rows fill few partitions.  16 parts of each of 8 rows fill all, and an instruction computes all of them.  A number for each row is
 * one for each part, so that no operation needs it in other partitions.  What the parts of a row have is combined so:
 *
 *     t[i,j] = p[j]                         a copy along the free dimension, turned on the Tensor engine
 *     m[i]   = max over j of t[i,j] if i and j are parts of the same row, otherwise of the neutral element
 *
 * No number goes through HBM, and no product would carry a NaN or an infinity of one row to another.  A row whose length has no
 * suitable divisor has a tail of fewer elements than parts.  Each part of the row computes with it, too:
 *
 *     x[16,50257]                           ==>  x[:, :50256] as [128,6282], x[:, 50256:] for each part: [128,1]
 *
 * A row may have several dimensions, x[16,3,256,256] over the last three: they are one row of 196608 elements.
 *
 * All operations of a block on rows of the same number and length change together, if nothing but arguments, constants, numbers for
 * each row, values for each column and the return touch them.  What is reduced is f32, or the largest or smallest of another float.
 * Sums are added in another order; all else is exact.  Runs before the steps that find other forms for the same operations.
 */
#include "passes/prepare_arithmetic/row_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* Rows and elements of a row. */
enum { ROWS_MOST = NISA_PARTITIONS / 2, COLUMNS_LEAST = 512 };
/* Elements of a single row of several dimensions: fewer are as fast with one of these across the partitions. */
enum { ONE_ROW_LEAST = 1 << 18 };
/* Of so few rows, with a first dimension that long, each dimension is reduced by itself in less time (reduce.c) if a part is longer than
 * this, and so has no room beside what is computed with it. */
enum { STEPS_ROWS = NISA_PARTITIONS / 4, STEPS_FIRST = NISA_PARTITIONS / 2, STEPS_LENGTH = 1 << 14 };
/* To combine what the parts of a row have: five instructions, each of which waits for the one before; and to do it with numbers that
 * go through HBM and back, see short.c. */
enum { ACROSS_NS = 1800, AWAY_NS = 12000 };

/* The operations of the group have this attribute while it is found. */
#define PARTS "nkx.parts"

/* ---- what an operation computes ---------------------------------------------------------------------------------------- */

MlirValue row_parts_origin(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  while (!mlirOperationIsNull(def) && (ir_is(def, "tensor.expand_shape") || ir_is(def, "tensor.collapse_shape"))) {
    v = mlirOperationGetOperand(def, 0);
    def = ir_defining_op(v);
  }
  return v;
}

/* The first of the last loops that have so many steps together; s->n_loops if none have. */
static int column_loop(const struct structured *s, int64_t columns) {
  int64_t steps = 1;
  for (int l = s->n_loops - 1; l >= 0 && steps < columns; l--) {
    steps *= s->extents[l];
    if (steps == columns)
      return l;
  }
  return s->n_loops;
}

struct row_parts_has row_parts_has_of(const struct row_parts *g, const struct structured *s, enum row_parts_kind kind,
                                      int operand, MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims),
            row = kind == PARTS_NUMBERS ? s->n_loops : column_loop(s, g->columns);
  struct row_parts_has has = {.ok = rank >= 0};
  int last = -1, n_leading = 0, all_leading = 0, n_columns = 0, all_columns = 0;

  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    has.ok &= loop < 0 ? dims[r] == 1 : loop > last;
    last = loop < 0 ? last : loop;
    n_leading += loop >= 0 && loop < row && s->extents[loop] > 1;
    n_columns += loop >= row && s->extents[loop] > 1;
  }
  for (int l = 0; l < s->n_loops; l++)
    *(l < row ? &all_leading : &all_columns) += s->extents[l] > 1;
  has.columns = n_columns > 0;
  has.rows = n_leading > 0 || (!all_leading && kind != PARTS_NUMBERS && has.columns);
  has.ok &= (!n_leading || n_leading == all_leading) && (!n_columns || n_columns == all_columns);
  return has;
}

static bool starts_from_number(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) && ir_is(def, "linalg.fill");
}

/* True if the parts of a row can be combined on the engines without loss. */
static bool is_combined(MlirOperation op, const struct structured *s) {
  const char *name = prepare_combiner(op, s);
  MlirType t = ir_value_element(ir_result(op));
  return name && starts_from_number(mlirOperationGetOperand(op, s->n_inputs)) &&
         (mlirTypeIsAF32(t) ||
          (mlirTypeIsAFloat(t) && mlirFloatTypeGetWidth(t) == 16 && (strstr(name, "max") || strstr(name, "min"))));
}

enum row_parts_kind row_parts_read(struct pass_run *run, const struct row_parts *g, MlirOperation op,
                                   struct structured *s) {
  int64_t all = 1;

  if (!prepare_may_change(run, op, s) || s->n_loops < 1 || s->n_inputs < 1 || prepare_has_op(run, op, "linalg.index") ||
      !mlirBlockEqual(mlirOperationGetBlock(op), g->block))
    return PARTS_OTHER;
  for (int l = 0; l < s->n_loops; l++) {
    if (s->extents[l] < 1)
      return PARTS_OTHER;
    all *= s->extents[l];
  }
  const int row = column_loop(s, g->columns);
  const bool is_whole = s->n_loops > 1 && row < s->n_loops && all == g->rows * g->columns;
  const enum row_parts_kind kind = s->kind == SK_REDUCTION         ? is_whole ? PARTS_REDUCE : PARTS_OTHER
                                   : is_whole                      ? PARTS_WHOLE
                                   : all == g->rows && g->rows > 1 ? PARTS_NUMBERS
                                                                   : PARTS_OTHER;
  for (int l = 0; kind == PARTS_REDUCE && l < s->n_loops; l++)
    if (s->extents[l] > 1 && s->reduction[l] != (l >= row))
      return PARTS_OTHER;
  if (kind == PARTS_OTHER || (kind == PARTS_REDUCE && !is_combined(op, s)))
    return PARTS_OTHER;
  for (int o = 0; o < s->n_inputs + s->n_inits; o++)
    if (!row_parts_has_of(g, s, kind, o, mlirOperationGetOperand(op, o)).ok)
      return PARTS_OTHER;
  const struct row_parts_has out = row_parts_has_of(g, s, kind, s->n_inputs, ir_result(op));
  const bool has_columns = kind == PARTS_WHOLE;
  return out.columns == has_columns && (out.rows || g->rows == 1) ? kind : PARTS_OTHER;
}

/* ---- the group ------------------------------------------------------------------------------------------------------------ */

static bool is_in(MlirOperation op) {
  return !mlirOperationIsNull(op) && prepare_is_marked(op, PARTS);
}

/* True if v, also in another shape, is read by an operation of the group. */
static bool is_read_inside(MlirValue v, int depth) {
  enum { DEPTH_MAX = 8 };
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    const bool is_moved = ir_is(user, "tensor.expand_shape") || ir_is(user, "tensor.collapse_shape");
    if (is_in(user) || (is_moved && depth < DEPTH_MAX && is_read_inside(ir_result(user), depth + 1)))
      return true;
  }
  return false;
}

static void put_in(MlirOperation op) {
  ir_set_attr(op, PARTS, mlirUnitAttrGet(mlirOperationGetContext(op)));
}

/* True if the operation reads a result of the group's. */
static bool reads_inside(MlirOperation op, const struct structured *s) {
  for (int o = 0; o < s->n_inputs; o++)
    if (is_in(ir_defining_op(row_parts_origin(mlirOperationGetOperand(op, o)))))
      return true;
  return false;
}

/* Marks the operations on whole rows, then those between them on a number for each row. */
static void find(struct pass_run *run, struct row_parts *g, const struct ir_ops *all) {
  struct structured s;

  for (int i = 0; i < all->n; i++) {
    const enum row_parts_kind kind = row_parts_read(run, g, all->v[i], &s);
    if (kind == PARTS_WHOLE || kind == PARTS_REDUCE)
      put_in(all->v[i]);
  }
  for (int i = all->n - 1; i >= 0; i--)
    if (row_parts_read(run, g, all->v[i], &s) == PARTS_NUMBERS && is_read_inside(ir_result(all->v[i]), 0))
      put_in(all->v[i]);
  for (int i = 0; i < all->n; i++) {
    if (!is_in(all->v[i]))
      continue;
    if (row_parts_read(run, g, all->v[i], &s) == PARTS_NUMBERS && !reads_inside(all->v[i], &s))
      mlirOperationRemoveAttributeByName(all->v[i], mlirStringRefCreateFromCString(PARTS));
    else
      g->ops[g->n++] = all->v[i];
  }
}

/* True if v is an argument of the function, a constant, or computed by the group. */
static bool may_read(MlirValue v) {
  v = row_parts_origin(v);
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def))
    return ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "func.func");
  return is_in(def) || ir_is(def, "arith.constant");
}

/* True if the group, reshapes and the return are all that reads v. */
static bool is_kept_inside(MlirValue v, int depth) {
  enum { DEPTH_MAX = 8 };
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (is_in(user) || ir_is(user, "func.return"))
      continue;
    if ((!ir_is(user, "tensor.expand_shape") && !ir_is(user, "tensor.collapse_shape")) || depth == DEPTH_MAX ||
        !is_kept_inside(ir_result(user), depth + 1))
      return false;
  }
  return true;
}

/* True if nothing that wants rows as they are touches one of them. */
static bool is_free(struct pass_run *run, const struct row_parts *g) {
  for (int i = 0; i < g->n; i++) {
    struct structured s;
    const enum row_parts_kind kind = row_parts_read(run, g, g->ops[i], &s);
    if (kind == PARTS_NUMBERS)
      continue;
    if (kind == PARTS_WHOLE && !is_kept_inside(ir_result(g->ops[i]), 0))
      return false;
    for (int o = 0; o < s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(g->ops[i], o);
      const struct row_parts_has has = row_parts_has_of(g, &s, kind, o, v);
      if (has.rows && has.columns && !may_read(v))
        return false;
    }
  }
  return true;
}

/* ---- the decision --------------------------------------------------------------------------------------------------------- */

struct weight {
  int n_whole, n_reduce,
      n_read; /* operations on all elements, those of them that reduce, and that read a number for each row */
  int n_columns, n_values; /* those that read a value for each column, and different such values */
  int64_t moved;           /* bytes of rows that are loaded and stored */
  const void *values[STRUCTURED_OPERANDS_MAX];
};

/* Counts values for each column: each is copied for the rows. */
static void count_columns(struct weight *w, MlirValue v) {
  const void *key = row_parts_origin(v).ptr;
  for (int k = 0; k < w->n_values; k++)
    if (w->values[k] == key)
      return;
  if (w->n_values < STRUCTURED_OPERANDS_MAX)
    w->values[w->n_values++] = key;
}

static struct weight weigh(struct pass_run *run, const struct row_parts *g) {
  struct weight w = {0};

  for (int i = 0; i < g->n; i++) {
    struct structured s;
    const enum row_parts_kind kind = row_parts_read(run, g, g->ops[i], &s);
    bool reads_number = false, reads_columns = false;
    if (kind == PARTS_NUMBERS)
      continue;
    for (int o = 0; o < s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(g->ops[i], o);
      const struct row_parts_has has = row_parts_has_of(g, &s, kind, o, v);
      reads_number |= has.rows && !has.columns;
      if (has.columns && !has.rows) {
        reads_columns = true;
        count_columns(&w, v);
      }
      if (has.rows && has.columns && !is_in(ir_defining_op(row_parts_origin(v))))
        w.moved += g->rows * g->columns * price_shape_of(v).element_bytes;
    }
    if (kind == PARTS_WHOLE && !is_read_inside(ir_result(g->ops[i]), 0))
      w.moved += g->rows * g->columns * price_shape_of(ir_result(g->ops[i])).element_bytes;
    w.n_whole++;
    w.n_reduce += kind == PARTS_REDUCE;
    w.n_read += reads_number;
    w.n_columns += reads_columns;
  }
  return w;
}

/* About how long n operations take that read so many elements, of which some read another value for each of them. */
static double compute_ns(enum target t, const struct weight *w, int n, int64_t rows, int64_t columns) {
  return n * price_rows_ns(t, SIM_COST_VECTOR_REDUCE, rows, columns) +
         w->n_columns * (price_rows_ns(t, SIM_COST_VECTOR_TENSOR, rows, columns) -
                         price_rows_ns(t, SIM_COST_VECTOR_REDUCE, rows, columns));
}

/* What it costs with these parts. */
static double parts_ns(enum target t, const struct row_parts *g, const struct weight *w) {
  const int64_t partitions = g->rows * g->each, run = g->length * 4, bytes = g->rows * g->columns * 4;
  double ns = compute_ns(t, w, w->n_whole, partitions, g->length) + w->n_reduce * (double)ACROSS_NS;
  if (w->n_values && g->rows > 1) /* loaded, stored for each row, and loaded again */
    ns += 3 * price_transfers_ns(t, w->n_values, bytes, run);
  if (g->tail)
    ns += compute_ns(t, w, w->n_whole, partitions, g->tail) + price_transfer_ns(t, w->moved, g->each * run);
  return ns;
}

/* What it costs with a row in each partition, or with parts of one row after another. */
static double other_ns(enum target t, const struct row_parts *g, const struct weight *w) {
  const int64_t p = prepare_partitions(g->columns);
  const int n = w->n_whole - (w->n_read < w->n_whole ? w->n_read : 0);
  const double as_is = compute_ns(t, w, n, g->rows, g->columns),
               one_row =
                   (double)g->rows * compute_ns(t, w, w->n_whole, p, g->columns / p) + w->n_reduce * (double)AWAY_NS;
  return g->rows <= NISA_PARTITIONS / 4 && p >= NISA_PARTITIONS / 2 ? fmin(as_is, one_row) : as_is;
}

/* Chooses how many parts a row has; returns what that costs. */
static double choose(enum target t, struct row_parts *g, const struct weight *w) {
  struct row_parts best = *g;
  double least = INFINITY;

  for (g->each = NISA_PARTITIONS / g->rows; g->each > 1; g->each--) {
    g->length = g->columns / g->each;
    g->tail = g->columns % g->each;
    const double ns = parts_ns(t, g, w);
    if (ns < least) {
      least = ns;
      best = *g;
    }
  }
  *g = best;
  return least;
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */

/* Reads the rows that op reduces, if they are few and long. */
static bool is_seed(MlirOperation op, struct row_parts *g) {
  struct structured s;

  if (!structured_read(op, &s) || s.kind != SK_REDUCTION || s.n_loops < 2 || !s.reduction[s.n_loops - 1])
    return false;
  int row = s.n_loops;
  *g = (struct row_parts){.rows = 1, .columns = 1, .block = mlirOperationGetBlock(op)};
  for (; row > 0 && (s.reduction[row - 1] || s.extents[row - 1] == 1) && s.extents[row - 1] > 0; row--)
    g->columns *= s.extents[row - 1];
  g->first = s.extents[row];
  for (int l = 0; l < row; l++) {
    if (s.extents[l] < 1 || s.extents[l] > ROWS_MOST)
      return false;
    g->rows *= s.extents[l];
  }
  if (g->rows > ROWS_MOST || g->columns < COLUMNS_LEAST)
    return false;
  if (g->rows > 1)
    return true;
  /* One row that fills the partitions is spread over them, see spread.c; of several dimensions one may fill them. */
  for (int l = 0; l < s.n_loops - 1; l++)
    if (s.extents[l] % NISA_PARTITIONS == 0)
      return false;
  return (g->first < g->columns && g->columns >= ONE_ROW_LEAST) || prepare_partitions(g->columns) < NISA_PARTITIONS / 2;
}

/* True if each dimension of the rows is better reduced by itself, as reduce.c does. */
static bool has_better_steps(const struct row_parts *g) {
  return g->first < g->columns && g->first >= STEPS_FIRST && g->rows <= STEPS_ROWS && g->length > STEPS_LENGTH;
}

static void remark(struct pass_run *run, const struct row_parts *g, double ns, double other) {
  struct remark *r = pass_remark(
      run, g->ops[0], RULE_ROW_PARTS,
      "%" PRId64 " parts of %" PRId64 " elements of each of %" PRId64 " rows lie across the partitions%s", g->each,
      g->length, g->rows,
      g->tail ? arena_printf(run->arena, "; %" PRId64 " more of each row are computed beside them", g->tail) : "");
  price_chosen(r, ns);
  remark_limit(r, "partitions", "partitions", g->rows * g->each, NISA_PARTITIONS);
  price_instead(r, "a row in each partition, or one row after another", other,
                "most partitions would be empty, or numbers for each row would go through HBM");
}

/* Groups of rows of these numbers and lengths are looked for; a module with more of them has others left as they are, so that the time
 * is linear in the number of operations. */
enum { GROUPS_MAX = 64 };

/* Adds the rows of op, unless they are there. */
static int add_seed(MlirOperation op, struct row_parts *groups, int n) {
  struct row_parts g;
  if (n == GROUPS_MAX || !is_seed(op, &g))
    return n;
  for (int k = 0; k < n; k++)
    if (groups[k].rows == g.rows && groups[k].columns == g.columns && mlirBlockEqual(groups[k].block, g.block))
      return n;
  groups[n] = g;
  return n + 1;
}

void prepare_row_parts(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run);
  struct row_parts groups[GROUPS_MAX];
  int n = 0;

  for (int i = 0; i < all.n; i++)
    n = add_seed(all.v[i], groups, n);
  for (int k = 0; k < n; k++) {
    struct row_parts *g = &groups[k];
    const struct ir_ops now = prepare_candidates(run);
    g->ops = arena_alloc(run->arena, (size_t)now.n * sizeof *g->ops);
    find(run, g, &now);
    const struct weight w = weigh(run, g);
    const double other = other_ns(run->target, g, &w), ns = choose(run->target, g, &w);
    const bool is_better = w.n_reduce && ns < other && !has_better_steps(g) && is_free(run, g);
    prepare_unmark(now, PARTS);
    if (!is_better)
      continue;
    remark(run, g, ns, other);
    row_parts_build(run, g);
  }
}
