/* short: a partition holds several short rows, or a part of a long one.
 *
 *     sum of x[65536,10] over the last, and f(x, sum[65536])   ==>  sum of x[512,128,10] over the last, f(x, sum[512,128,1])
 *
 * With a row in each partition, 65536 rows of 10 elements are 512 tiles: as many instructions of 10 elements for each operation, and
 * descriptors of 40 bytes.  Rows that follow each other in HBM may follow each other in a partition, too: then there are 4 tiles,
 * instructions have 1280 elements, and a descriptor moves 5 KiB.
 *
 *     x[8,32000] + b[32000]   ==>  x[8,125,256] + b[1,125,256]
 *
 * Few long rows fill few partitions.  Each is cut, and its parts lie across the partitions: an instruction for each row.
 *
 * A group of operations changes together (groups.c): element-wise ones, and reductions of the row, of all rows, or of both.  An operand
 * has all dimensions, the leading ones, the last one, or one element; and a body may read its position in the row.  A reduction of all rows to one first reduces the rows
 * of each partition, then the partitions.  Nothing changes where a knob names the dimensions, or something else than arguments,
 * constants, reshapes and the return touches a value of the group, because it has rows in tiles; nor where it would take more cycles, see
 * weigh.  No value changes but by the order of sums.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* The number of the group that an operation is in, while groups are found. */
#define SHORT "nkx.short"

/* From LONG_BYTES on a row fills a descriptor; ELEMENTS_MAX of a partition are a tile's.  Of long rows, a reduction takes about STEP cycles
 * more, for the transpose and the instruction that reduce the partitions, and what reads a number for each row SPREAD, until the number is
 * in all partitions. */
enum {
  LONG_BYTES = 512,
  ROWS_LEAST = 2 * NISA_PARTITIONS,
  FEW_ROWS = 32,
  ELEMENTS_MAX = 2048,
  STEP = 5000,
  SPREAD = 20000,
  LOOPS = 3
};

/* What the operations of a group have: leading dimensions, and a last one; and their new dimensions. */
struct rows {
  int n;
  int64_t dims[STRUCTURED_LOOPS_MAX], rows, columns; /* rows: the product of the leading ones */
  bool is_long;
  int64_t to
      [LOOPS]; /* short rows: two dimensions of rows, of which the second lies in a partition, and the row; long ones: the rows, and two of
                        the row, of which the first lies across the partitions */
};

/* ---- which operations ---------------------------------------------------------------------------------------------- */

/* The loops of an operation: the leading ones, and that of the row. */
struct loops {
  int n_leading, row; /* row: -1 if there is none */
  bool has_rows;      /* the leading ones are those of the group; false: they have one step each */
  int64_t columns;    /* steps of the row's */
};

static bool read_loops(const struct rows *w, const struct structured *s, struct loops *x) {
  bool is_equal = true, is_one = true;

  *x = (struct loops){w->n, s->n_loops > w->n ? w->n : -1, true, 1};
  if (s->n_loops == 1 && w->is_long && s->extents[0] == w->columns)
    *x = (struct loops){0, 0, false, 1};
  if (s->n_loops != x->n_leading + (x->row >= 0))
    return false;
  for (int l = 0; l < x->n_leading; l++) {
    is_equal &= s->extents[l] == w->dims[l];
    is_one &= s->extents[l] == 1;
    if (s->reduction[l] != s->reduction[0])
      return false;
  }
  x->has_rows = x->n_leading && is_equal;
  x->columns = x->row >= 0 ? s->extents[x->row] : 1;
  return (x->has_rows || (is_one && w->is_long)) && (x->columns == 1 || x->columns == w->columns);
}

struct part {
  bool ok, has_rows, has_columns;
};

static struct part part_of(const struct loops *x, const struct structured *s, int operand, MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  struct part p = {.ok = rank >= 0};
  int last = -1, n_leading = 0, all_leading = 0;

  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    p.ok &= loop < 0 ? dims[r] == 1 : loop > last;
    last = loop < 0 ? last : loop;
    n_leading += loop >= 0 && loop < x->n_leading && s->extents[loop] > 1;
    p.has_columns |= loop >= 0 && loop == x->row && s->extents[loop] > 1;
  }
  for (int l = 0; l < x->n_leading; l++)
    all_leading += s->extents[l] > 1;
  p.has_rows = n_leading > 0;
  p.ok &= !n_leading || n_leading == all_leading;
  return p;
}

/* What a reduction reduces. */
struct reduced {
  bool rows, columns;
};

static struct reduced reduced_of(const struct loops *x, const struct structured *s) {
  return (struct reduced){x->n_leading && s->reduction[0], x->row >= 0 && s->reduction[x->row]};
}

/* True if the result of op has the loops that are not reduced. */
static bool has_result(const struct loops *x, const struct structured *s, const struct part *out) {
  const struct reduced reduced = reduced_of(x, s);
  return out->ok && out->has_rows == (x->has_rows && !reduced.rows) &&
         out->has_columns == (!reduced.columns && x->columns > 1) &&
         (x->has_rows || (!reduced.rows && !reduced.columns)) &&
         (s->kind != SK_REDUCTION || reduced.rows || reduced.columns);
}

/* True if the body reads its position in other loops than the row's. */
static bool reads_other_position(struct pass_run *run, MlirOperation op, const struct loops *x) {
  const struct ir_ops all = ir_collect_named(run->arena, op, "linalg.index");
  for (int i = 0; i < all.n; i++)
    if (mlirIntegerAttrGetValueInt(ir_attr(all.v[i], "dim")) != x->row)
      return true;
  return false;
}

static bool fits(struct pass_run *run, MlirOperation op, const void *what) {
  const struct rows *w = what;
  struct structured s;
  struct loops x;

  if (!prepare_may_change(run, op, &s) || !read_loops(w, &s, &x) || reads_other_position(run, op, &x))
    return false;
  const struct part out = part_of(&x, &s, s.n_inputs, ir_result(op));
  if (!has_result(&x, &s, &out))
    return false;
  if (reduced_of(&x, &s).rows &&
      (s.n_inputs != 1 || !mlirAffineMapIsIdentity(s.maps[0]) || !prepare_has_combiner(op, &s)))
    return false;
  for (int o = 0; o < s.n_inputs; o++)
    if (!part_of(&x, &s, o, mlirOperationGetOperand(op, o)).ok)
      return false;
  return true;
}

static int64_t bytes_of(MlirValue v) {
  MlirType t = ir_value_element(v);
  return mlirTypeIsAFloat(t)     ? mlirFloatTypeGetWidth(t) / 8
         : mlirTypeIsAInteger(t) ? (mlirIntegerTypeGetWidth(t) + 7) / 8
                                 : LONG_BYTES;
}

/* Cuts the rows, or the row, in two dimensions; false if they do not fill the partitions. */
static bool cut(struct rows *w, int64_t element_bytes) {
  w->is_long = w->rows <= FEW_ROWS;
  const int64_t partitions = prepare_partitions(w->is_long ? w->columns : w->rows);
  if (partitions < NISA_PARTITIONS / 2 || w->columns < 2 || w->rows < 2)
    return false;
  if (w->is_long) {
    memcpy(w->to, (int64_t[]){w->rows, partitions, w->columns / partitions}, sizeof w->to);
    return w->columns / partitions > 1;
  }
  if (w->rows < ROWS_LEAST || w->columns * element_bytes >= LONG_BYTES)
    return false;
  const int64_t each = prepare_divisor(w->rows / partitions, ELEMENTS_MAX / w->columns);
  memcpy(w->to, (int64_t[]){w->rows / each, each, w->columns}, sizeof w->to);
  return each > 1;
}

/* Reads the dimensions of an operation on short rows, or on few long ones.  Returns false for anything else. */
static bool is_seed(struct pass_run *run, MlirOperation op, struct rows *w) {
  struct structured s;

  *w = (struct rows){.rows = 1};
  if (!structured_read(op, &s) || s.n_loops < 2 || s.n_inputs < 1)
    return false;
  w->n = s.n_loops - 1;
  for (int l = 0; l < s.n_loops; l++)
    if (s.extents[l] < 1)
      return false;
  for (int l = 0; l < w->n; l++)
    w->rows *= w->dims[l] = s.extents[l];
  w->columns = s.extents[w->n];
  return cut(w, bytes_of(mlirOperationGetOperand(op, 0))) && fits(run, op, w);
}

/* ---- the decision ---------------------------------------------------------------------------------------------------- */

struct weight {
  int64_t chosen, kept; /* cycles */
};

/* The cycles of an instruction for all rows, and as they are, with one of the leading dimensions across the partitions. */
static struct weight weigh_one(const struct rows *w) {
  struct weight x = {w->is_long ? w->rows * prepare_cycles(w->to[1], w->to[2])
                                : prepare_cycles(w->to[0], w->to[1] * w->to[2]),
                     INT64_MAX};
  for (int l = 0; l < w->n; l++) {
    const int64_t kept = prepare_cycles(w->dims[l], w->rows / w->dims[l] * w->columns);
    x.kept = kept < x.kept ? kept : x.kept;
  }
  return x;
}

/* Weighs the group.  With a row in each partition an instruction reads a number for each row beside the elements, and so takes part
 * in another one: such operations cost nothing then. */
static struct weight weigh(const struct prepare_group *g, const struct rows *w) {
  const struct weight one = weigh_one(w);
  struct weight all = {0};
  bool is_first = true; /* there is no other instruction yet */

  for (int i = 0; i < g->n; i++) {
    struct structured s;
    struct loops x;
    bool reads_rows = false;
    if (!structured_read(g->ops[i], &s) || !read_loops(w, &s, &x) || x.columns == 1)
      continue;
    for (int o = 0; o < s.n_inputs && s.kind != SK_REDUCTION; o++) {
      const struct part p = part_of(&x, &s, o, mlirOperationGetOperand(g->ops[i], o));
      reads_rows |= p.has_rows && !p.has_columns;
    }
    all.chosen += one.chosen;
    if (w->is_long)
      all.chosen += reduced_of(&x, &s).columns ? STEP : reads_rows ? SPREAD : 0;
    all.kept += reads_rows && !is_first ? 0 : one.kept;
    is_first = false;
  }
  return all;
}

/* ---- the change -------------------------------------------------------------------------------------------------------- */

/* The new form of an operand: its dimensions, and the loop of each or the only element. */
static void place(const struct rows *w, const struct loops *x, const struct part *p, int64_t *dims, int64_t *at) {
  const bool has_any = p->has_rows || p->has_columns;
  for (int d = 0; d < LOOPS; d++) {
    const bool is_of_rows = d < (w->is_long ? 1 : 2);
    const bool has = is_of_rows ? p->has_rows : p->has_columns, is_one = is_of_rows ? !x->has_rows : x->columns == 1;
    dims[d] = has ? w->to[d] : 1;
    at[d] = has || (has_any && is_one) ? d : IR_CONST(0); /* loops of one step are loops, too */
  }
}

/* What the operation reduces becomes loops that are reduced; of all short rows those of a partition, with another operation after it. */
static void reduce(struct pass_run *run, MlirOperation op, const struct rows *w, const struct loops *x,
                   const struct structured *s, MlirAffineMap *maps) {
  const struct reduced reduced = reduced_of(x, s);
  struct ir_builder b = edit_before(run, op);
  bool loops[LOOPS];

  for (int d = 0; d < LOOPS; d++)
    loops[d] = d < (w->is_long ? 1 : 2) ? reduced.rows : reduced.columns || (reduced.rows && x->columns == 1);
  if (reduced.rows && reduced.columns && w->is_long && x->columns > 1) { /* those of a partition, then the partitions */
    prepare_reduce_partitions(run, op, w->to[1], 1);
    maps[1] = ir_map(&b, LOOPS, 2, (int64_t[]){1, IR_CONST(0)});
    loops[1] = false;
  } else if (reduced.rows && (reduced.columns || x->columns == 1)) { /* to one element */
    int64_t zeros[STRUCTURED_LOOPS_MAX];
    const int rank = (int)mlirAffineMapGetNumResults(s->maps[1]);
    for (int r = 0; r < rank; r++)
      zeros[r] = IR_CONST(0);
    maps[1] = ir_map(&b, LOOPS, rank, zeros);
  } else if (reduced.rows && !w->is_long) {
    prepare_reduce_partitions(run, op, w->to[0], x->columns);
    maps[1] = ir_map(&b, LOOPS, 2, (int64_t[]){0, 2});
    loops[0] = false;
  }
  edit_set_maps(op, s->n_inputs + 1, maps);
  edit_set_iterators(op, LOOPS, loops);
}

/* The position in the row is that in the last loop, or in the two that a long row has become. */
static void change_positions(struct pass_run *run, MlirOperation op, const struct rows *w) {
  const struct ir_ops all = ir_collect_named(run->arena, op, "linalg.index");

  for (int i = 0; i < all.n; i++) {
    struct ir_builder b = edit_before(run, all.v[i]);
    MlirValue at = ir_linalg_index(&b, 2);
    if (w->is_long)
      at = ir_binary(&b, "arith.addi", ir_binary(&b, "arith.muli", ir_linalg_index(&b, 1), ir_index(&b, w->to[2])), at);
    edit_replace_data_uses(run->arena, ir_result(all.v[i]), at, (MlirOperation){NULL});
    mlirOperationDestroy(all.v[i]);
  }
}

static void rewrite(struct pass_run *run, MlirOperation op, const struct rows *w) {
  struct structured s;
  struct loops x;
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  const bool ok = structured_read(op, &s) && read_loops(w, &s, &x);

  assert(ok);
  (void)ok;
  const struct reduced reduced = reduced_of(&x, &s);
  const bool keeps_result = reduced.rows && (!w->is_long || reduced.columns || x.columns == 1);
  for (int o = 0; o < s.n_inputs + 1; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct part p = part_of(&x, &s, o, v);
    int64_t dims[LOOPS], at[LOOPS];
    place(w, &x, &p, dims, at);
    maps[o] = ir_map(&b, LOOPS, LOOPS, at);
    if (o < s.n_inputs)
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, LOOPS, dims));
    else if (!keeps_result)
      prepare_result(run, op, &s, 0, LOOPS, dims);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  reduce(run, op, w, &x, &s, maps);
  change_positions(run, op, w);
}

static void remark_group(struct pass_run *run, MlirOperation op, const struct rows *w, const struct weight *x) {
  struct remark *r =
      w->is_long ? pass_remark(run, op, RULE_LONG_ROWS,
                               "%" PRId64 " partitions hold %" PRId64 " elements each of a row", w->to[1], w->to[2])
                 : pass_remark(run, op, RULE_SHORT_ROWS,
                               "each partition holds %" PRId64 " rows of %" PRId64 " elements", w->to[1], w->columns);
  const int64_t partitions = w->to[w->is_long];
  remark_cost(r, "%" PRId64 " cycles", x->chosen);
  remark_limit(r, "partitions", "partitions", partitions < NISA_PARTITIONS ? partitions : NISA_PARTITIONS,
               NISA_PARTITIONS);
  remark_reject_for(r, "a row in each partition", NULL, arena_printf(run->arena, "%" PRId64 " cycles", x->kept),
                    w->is_long ? "most partitions would be empty"
                               : "instructions and descriptors would have few elements");
}

void prepare_short(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run); /* none of these is erased here */
  MlirOperation *ops = arena_alloc(run->arena, (size_t)all.n * sizeof *ops);

  for (int i = 0; i < all.n; i++) {
    struct rows w;
    if (prepare_is_marked(all.v[i], SHORT) || !is_seed(run, all.v[i], &w))
      continue;
    struct prepare_group g = {
        .run = run, .mark = SHORT, .fits = fits, .what = &w, .rows = w.rows, .number = i, .ops = ops, .is_free = true};
    prepare_grow(&g, all.v[i]);
    const struct weight x = weigh(&g, &w);
    if (!g.is_free || x.chosen >= x.kept)
      continue;
    remark_group(run, all.v[i], &w, &x);
    for (int k = 0; k < g.n; k++) {
      pass_step(run, ops[k], w.is_long ? "long-rows" : "short-rows");
      rewrite(run, ops[k], &w);
    }
  }
  prepare_unmark(all, SHORT);
}
