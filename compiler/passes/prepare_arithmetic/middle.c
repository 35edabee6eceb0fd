/* middle: what reduces dimensions before the last ones gets rows to reduce.
 *
 *     max of x[8,256,28,28] over dimension 1, and f(x, max[8,1,28,28])
 *                      ==>  t[8,784,256], a transpose of x; max of t over dimension 2, and f(t, max[8,784,1]); transposes back
 *
 * The engines reduce along the free dimension.  With the reduced dimension on the partitions nothing but a sum, as a product, is fast;
 * with one of the dimensions after it there, an instruction has a single step of the reduced one.  With rows, one instruction
 * reduces 128 of them, and numbers for each row are read by the instructions that compute with them.  The Tensor engine transposes
 * tiles on their way from and to HBM (fuse_row_tiles).
 *
 * A group changes together (groups.c): element-wise operations and reductions of the same dimensions.  An operand has all dimensions,
 * all that are not reduced, those that are reduced, with or without those before them, or one element.  Values of the group that
 * are read elsewhere are transposed back.  Nothing changes where another way takes less time, see weigh, nor for types that the Tensor
 * engine does not transpose.  No value changes; sums change by their order.
 */
#include <assert.h>
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "base/table.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* The number of the group that an operation is in, while groups are found. */
#define MIDDLE "nkx.middle"

/* With fewer rows in a tile, it is not fused with others, see fuse_row_tiles. */
enum { ROWS_LEAST = NISA_PARTITIONS / 4 };

/* What a group reduces: the loops `first` to `end` of n. */
struct middle {
  MlirBlock block;
  int n, first, end;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t batch, columns, rows; /* the products of the extents before, of and after what is reduced */
};

/* ---- what operands have -------------------------------------------------------------------------------------------- */

/* The three parts of the dimensions, in their order before. */
enum { BATCH, COLUMNS, ROWS, PARTS };

/* Which parts an operand has, with all of their dimensions. */
struct form {
  bool ok, has[PARTS];
};

static bool is_short(const struct middle *m, const struct structured *s) {
  return s->n_loops != m->n;
}

static int part_of_loop(const struct middle *m, const struct structured *s, int l) {
  return l < m->first ? BATCH : is_short(m, s) || l >= m->end ? ROWS : COLUMNS;
}

static struct form form_of(const struct middle *m, const struct structured *s, int operand, MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  int last = -1, n[PARTS] = {0}, all[PARTS] = {0};
  struct form f = {.ok = rank >= 0};

  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[operand], r);
    f.ok &= loop < 0 ? dims[r] == 1 : loop > last;
    if (loop >= 0 && s->extents[loop] > 1)
      n[part_of_loop(m, s, loop)]++;
    last = loop < 0 ? last : loop;
  }
  for (int l = 0; l < s->n_loops; l++)
    all[part_of_loop(m, s, l)] += s->extents[l] > 1;
  for (int p = 0; p < PARTS; p++) {
    f.has[p] = n[p] > 0;
    f.ok &= !n[p] || n[p] == all[p];
  }
  f.ok &= !f.has[ROWS] || f.has[BATCH] || m->batch == 1;
  return f;
}

static bool is_whole(const struct form *f) {
  return f->ok && f->has[ROWS] && f->has[COLUMNS];
}

static bool is_of_rows(const struct form *f) {
  return f->ok && f->has[ROWS] && !f->has[COLUMNS];
}

/* Writes the dimensions of a form; returns their number. */
static int dims_of(const struct middle *m, const struct form *f, int64_t *dims) {
  int n = 0;
  if (m->batch > 1)
    dims[n++] = f->has[BATCH] ? m->batch : 1;
  dims[n++] = f->has[ROWS] ? m->rows : 1;
  dims[n++] = f->has[COLUMNS] ? m->columns : 1;
  return n;
}

/* ---- which operations ------------------------------------------------------------------------------------------------ */

static bool is_made(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) && (ir_is(def, "tensor.empty") || ir_is(def, "linalg.fill"));
}

/* True if the body reads no position, or only that in the one dimension that is reduced. */
static bool has_known_places(const struct middle *m, struct pass_run *run, MlirOperation op) {
  const struct ir_ops at = ir_collect_named(run->arena, op, "linalg.index");
  for (int i = 0; i < at.n; i++)
    if (m->end - m->first != 1 || mlirIntegerAttrGetValueInt(ir_attr(at.v[i], "dim")) != m->first)
      return false;
  return true;
}

static bool fits(struct pass_run *run, MlirOperation op, const void *what) {
  const struct middle *m = what;
  struct structured s;

  if (!prepare_may_change(run, op, &s) || !mlirBlockEqual(mlirOperationGetBlock(op), m->block) ||
      !is_made(mlirOperationGetOperand(op, s.n_inputs)))
    return false;
  const bool is_reduction = s.kind == SK_REDUCTION;
  if (is_short(m, &s) && (s.n_loops != m->n - (m->end - m->first) || is_reduction))
    return false;
  int n_reduced = 0;
  for (int l = 0; l < s.n_loops; l++) {
    const int64_t extent = m->dims[is_short(m, &s) && l >= m->first ? l + m->end - m->first : l];
    const bool is_column = part_of_loop(m, &s, l) == COLUMNS;
    if ((s.extents[l] != extent && !(is_column && s.extents[l] == 1)) || (s.reduction[l] && !is_column))
      return false;
    n_reduced += s.reduction[l];
  }
  const struct form out = form_of(m, &s, s.n_inputs, ir_result(op));
  if (is_reduction ? n_reduced != m->end - m->first || !is_of_rows(&out) : !is_whole(&out) && !is_of_rows(&out))
    return false;
  for (int o = 0; o < s.n_inputs; o++) {
    const struct form f = form_of(m, &s, o, mlirOperationGetOperand(op, o));
    if (!f.ok || (!ir_is(op, "linalg.generic") && is_whole(&f) != is_whole(&out)))
      return false;
  }
  return (is_whole(&out) || is_reduction || !prepare_has_op(run, op, "linalg.index")) && has_known_places(m, run, op);
}

/* Reads the dimensions of a reduction with others after it.  Returns false for anything else. */
static bool is_seed(struct pass_run *run, MlirOperation op, struct middle *m) {
  struct structured s;
  int l = 0;

  *m = (struct middle){.block = mlirOperationGetBlock(op), .batch = 1, .columns = 1, .rows = 1};
  if (!structured_read(op, &s) || s.kind != SK_REDUCTION)
    return false;
  for (int i = 0; i < s.n_loops; i++)
    if ((m->dims[i] = s.extents[i]) < 1)
      return false;
  m->n = s.n_loops;
  for (; l < s.n_loops && !s.reduction[l]; l++)
    m->batch *= s.extents[l];
  for (m->first = l; l < s.n_loops && s.reduction[l]; l++)
    m->columns *= s.extents[l];
  for (m->end = l; l < s.n_loops && !s.reduction[l]; l++)
    m->rows *= s.extents[l];
  return l == s.n_loops && m->columns > 1 && m->rows >= ROWS_LEAST && fits(run, op, m);
}

/* ---- the decision ------------------------------------------------------------------------------------------------------ */

/* About how many cycles of the Vector engine the group takes: with rows, and as it is. */
struct weight {
  int64_t turned, kept;
};

/* Cycles of an instruction and elements of one; bytes between HBM and SBUF in a cycle; cycles from the first transfer of a loop to
 * its first result, and back to HBM. */
enum { FIXED = 64, FREE_MAX = 2048, BYTES_A_CYCLE = 360, LATENCY = 9600 };

static int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

/* The cycles of a reduction with the best loop across the partitions, which is not reduced, nor the last one: that one would be
 * transposed. */
static int64_t cost_kept(const struct middle *m) {
  int64_t all = m->batch * m->columns * m->rows, best = INT64_MAX / 2;

  for (int l = 0; l < m->n - 1; l++) {
    int64_t run = 1;
    if (l >= m->first && l < m->end)
      continue;
    for (int k = l + 1; k < m->n; k++)
      run *= m->dims[k];
    run = run < FREE_MAX ? run : FREE_MAX;
    const int64_t lanes = m->dims[l] < NISA_PARTITIONS ? m->dims[l] : NISA_PARTITIONS;
    const int64_t cost = ceil_div(all, lanes * run) * (FIXED + run);
    best = cost < best ? cost : best;
  }
  return best + LATENCY;
}

static bool is_in(const struct prepare_group *g, MlirOperation op) {
  return !mlirOperationIsNull(op) && prepare_is_marked(op, g->mark) &&
         mlirIntegerAttrGetValueInt(ir_attr(op, g->mark)) == g->number;
}

static bool can_turn(MlirValue v) {
  MlirType t = ir_value_element(v);
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

static bool is_read_outside(const struct prepare_group *g, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!is_in(g, mlirOpOperandGetOwner(u)))
      return true;
  return false;
}

/* True if op is a sum of f32, which is a product with ones otherwise. */
static bool is_sum(MlirOperation op, const struct structured *s) {
  return s->kind == SK_REDUCTION && s->n_inputs == 1 && prepare_is_plain(op, "arith.addf") &&
         mlirTypeIsAF32(ir_value_element(ir_result(op))) &&
         mlirTypeIsAF32(ir_value_element(mlirOperationGetOperand(op, 0)));
}

/* True if op, or what it reads of the group, computes with numbers for each row. */
static bool reads_rows(const struct prepare_group *g, const struct middle *m, MlirOperation op, int depth) {
  enum { DEPTH_MAX = 4 };
  struct structured s;

  if (!is_in(g, op) || !structured_read(op, &s))
    return false;
  for (int o = 0; o < s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct form f = form_of(m, &s, o, v);
    if (is_of_rows(&f) || (depth < DEPTH_MAX && reads_rows(g, m, ir_defining_op(v), depth + 1)))
      return true;
  }
  return false;
}

/* The cycles of a product with ones.  A value of the group goes to HBM before it if there is a batch or it has no room, and what is
 * computed with numbers for each row also reads these in all partitions. */
static int64_t cost_of_sum(const struct prepare_group *g, const struct middle *m, MlirOperation op) {
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, 0));
  const int64_t bytes = m->batch * m->columns * m->rows * 4;
  const bool is_computed = is_in(g, def),
             stays = m->batch == 1 && bytes / NISA_PARTITIONS <= nisa_machine(g->run->target)->sbuf_bytes / 2;
  const bool is_second = reads_rows(g, m, def, 0);
  const int passes = !is_computed ? 1 : (stays ? 0 : 2) + 1 + is_second;
  return passes * (bytes / BYTES_A_CYCLE) + LATENCY * (is_second || (is_computed && !stays) ? 2 : 1);
}

/* Weighs the group; returns false if it has to stay as it is. */
static bool weigh(const struct prepare_group *g, const struct middle *m, struct weight *w) {
  const int64_t tiles = m->batch * ceil_div(m->rows, NISA_PARTITIONS), one = tiles * (FIXED + m->columns),
                bytes = m->batch * m->columns * m->rows * 4;
  struct table turned = {.arena = g->run->arena};

  *w = (struct weight){.turned = LATENCY};
  for (int i = 0; i < g->n; i++) {
    MlirOperation op = g->ops[i];
    struct structured s;
    if (!structured_read(op, &s))
      return false;
    const struct form out = form_of(m, &s, s.n_inputs, ir_result(op));
    for (int o = 0; o < s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(op, o);
      const struct form f = form_of(m, &s, o, v);
      if (!is_whole(&f) || is_in(g, ir_defining_op(v)) || table_get(&turned, v.ptr))
        continue;
      if (!can_turn(v))
        return false;
      table_put(&turned, v.ptr, &turned);
      w->turned += one;
    }
    if (!is_whole(&out) && s.kind != SK_REDUCTION) {
      w->turned += tiles * FIXED;
      w->kept += FIXED + m->batch * m->rows / NISA_PARTITIONS;
      continue;
    }
    w->turned += one;
    if (is_whole(&out) && is_read_outside(g, ir_result(op))) {
      if (!can_turn(ir_result(op)))
        return false;
      w->turned += one;
      w->kept += 2 * (bytes / BYTES_A_CYCLE) + LATENCY;
    }
    if (is_sum(op, &s))
      w->kept += cost_of_sum(g, m, op);
    else if (s.kind == SK_REDUCTION)
      w->kept += cost_kept(m);
  }
  return true;
}

/* ---- the change ---------------------------------------------------------------------------------------------------------- */

struct change {
  struct pass_run *run;
  const struct prepare_group *g;
  const struct middle *m;
  struct table made;   /* a value of the group, and what replaced it elsewhere -> the new value */
  struct table turned; /* another value -> its transpose */
};

static MlirValue swap(const struct change *c, struct ir_builder *b, MlirValue v) {
  const int64_t two[] = {1, 0}, three[] = {0, 2, 1};
  return ir_result(ir_transpose(b, v, c->m->batch > 1 ? 3 : 2, c->m->batch > 1 ? three : two));
}

/* The operand v in its new form. */
static MlirValue operand(struct change *c, struct ir_builder *b, MlirValue v, const struct form *f) {
  int64_t dims[PARTS];
  const int rank = dims_of(c->m, f, dims);
  MlirValue made = {table_get(&c->made, v.ptr)}, turned = {table_get(&c->turned, v.ptr)};

  if (made.ptr && mlirTypeEqual(mlirValueGetType(made), ir_tensor_of(ir_value_element(v), rank, dims)))
    return made;
  if (!is_whole(f))
    return edit_reshape(b, v, rank, dims);
  if (turned.ptr)
    return turned;
  const int64_t before[] = {c->m->batch, c->m->columns, c->m->rows};
  turned = swap(c, b, edit_reshape(b, v, rank, before + (rank == 2)));
  table_put(&c->turned, v.ptr, (void *)turned.ptr);
  return turned;
}

static void set_places(struct pass_run *run, MlirOperation op, int dim) {
  const struct ir_ops at = ir_collect_named(run->arena, op, "linalg.index");
  for (int i = 0; i < at.n; i++)
    ir_set_attr(at.v[i], "dim", mlirIntegerAttrGet(mlirIntegerTypeGet(mlirOperationGetContext(op), 64), dim));
}

/* Numbers for each row in another shape: a row in HBM is where the column is stored, and needs no transpose. */
static MlirValue in_shape(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims) {
  const int64_t n = prepare_elements(v);
  MlirValue flat = edit_reshape(b, v, 1, &n);
  return rank == 1 ? flat
                   : ir_expand_shape(b, flat, ir_tensor_of(ir_value_element(v), rank, dims), 1, &rank, rank, dims);
}

/* Makes the operation in its new form; what is read outside is turned back. */
static void rewrite(struct change *c, MlirOperation op) {
  struct structured s;
  struct ir_builder b = edit_before(c->run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  MlirOperation made = mlirOperationClone(op);
  int64_t dims[PARTS], old[STRUCTURED_LOOPS_MAX];
  const bool ok = structured_read(op, &s);
  const struct form out = form_of(c->m, &s, s.n_inputs, ir_result(op));
  const bool has_columns = is_whole(&out) || s.kind == SK_REDUCTION; /* the loop over columns has more than one step */
  const int loops = c->m->batch > 1 ? 3 : 2;

  assert(ok);
  (void)ok;
  mlirOperationRemoveAttributeByName(made, mlirStringRefCreateFromCString(MIDDLE));
  for (int o = 0; o < s.n_inputs + 1; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct form f = form_of(c->m, &s, o, o < s.n_inputs ? v : ir_result(op));
    const int rank = dims_of(c->m, &f, dims);
    int64_t at[PARTS];
    for (int d = 0; d < rank; d++)
      at[d] = f.has[(const int[]){BATCH, ROWS, COLUMNS}[d + PARTS - rank]] || (d == rank - 1 && !has_columns)
                  ? d
                  : IR_CONST(0);
    maps[o] = ir_map(&b, loops, rank, at);
    mlirOperationSetOperand(made, o, o < s.n_inputs ? operand(c, &b, v, &f) : edit_reshape_init(&b, v, rank, dims));
  }
  MlirValue result = ir_result(made), was = ir_result(op);
  mlirValueSetType(result, mlirValueGetType(mlirOperationGetOperand(made, s.n_inputs)));
  if (ir_is(op, "linalg.generic")) {
    edit_set_maps(made, s.n_inputs + 1, maps);
    edit_set_iterators(made, loops, (bool[]){false, loops == 2 && s.kind == SK_REDUCTION, s.kind == SK_REDUCTION});
    set_places(c->run, made, loops - 1);
  }
  ir_place(&b, made);
  table_put(&c->made, was.ptr, (void *)result.ptr);
  if (!is_read_outside(c->g, was))
    return;
  const int rank = ir_shape(was, STRUCTURED_LOOPS_MAX, old);
  MlirValue back = is_whole(&out) ? edit_reshape(&b, swap(c, &b, result), rank, old) : in_shape(&b, result, rank, old);
  edit_replace_data_uses(c->run->arena, was, back, (MlirOperation){NULL});
  table_put(&c->made, back.ptr, (void *)result.ptr);
}

static void change(struct pass_run *run, const struct prepare_group *g, const struct middle *m, struct ir_ops all) {
  struct change c = {.run = run, .g = g, .m = m, .made = {.arena = run->arena}, .turned = {.arena = run->arena}};

  for (int i = 0; i < all.n; i++) /* in program order */
    if (!mlirOperationIsNull(all.v[i]) && is_in(g, all.v[i]))
      rewrite(&c, all.v[i]);
  for (int i = all.n - 1; i >= 0; i--)
    if (!mlirOperationIsNull(all.v[i]) && is_in(g, all.v[i])) {
      mlirOperationDestroy(all.v[i]);
      all.v[i] = (MlirOperation){NULL};
    }
}

void prepare_middle(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run);
  MlirOperation *ops = arena_alloc(run->arena, (size_t)all.n * sizeof *ops);

  for (int i = 0; i < all.n; i++) {
    struct middle m;
    struct weight w;
    if (mlirOperationIsNull(all.v[i]) || prepare_is_marked(all.v[i], MIDDLE) || !is_seed(run, all.v[i], &m))
      continue;
    struct prepare_group g = {.run = run,
                              .mark = MIDDLE,
                              .fits = fits,
                              .what = &m,
                              .rows = m.batch * m.rows,
                              .number = i,
                              .ops = ops,
                              .is_free = true};
    prepare_grow(&g, all.v[i]);
    if (!g.is_free || !weigh(&g, &m, &w) || w.turned >= w.kept)
      continue;
    struct remark *r = pass_remark(run, all.v[i], RULE_COLUMNS_AS_ROWS,
                                   "rows of %" PRId64 " elements, transposed: %d operations on %" PRId64
                                   " rows take %" PRId64 " cycles",
                                   m.columns, g.n, m.batch * m.rows, w.turned);
    remark_cost(r, "%" PRId64 " cycles", w.turned);
    remark_limit(r, "partitions", "partitions", m.rows < NISA_PARTITIONS ? m.rows : NISA_PARTITIONS, NISA_PARTITIONS);
    remark_reject_for(r, "the dimensions in their order", NULL, arena_printf(run->arena, "%" PRId64 " cycles", w.kept),
                      "an instruction would have few elements, or a value would be transposed for each reduction");
    pass_step(run, all.v[i], "columns-as-rows");
    change(run, &g, &m, all);
  }
  prepare_unmark(all, MIDDLE);
}
