/* middle: what reduces dimensions before the last ones gets rows to reduce, or bands.
 *
 *     max of x[8,256,28,28] over dimension 1, and f(x, max[8,1,28,28])
 *                      ==>  t[8,784,256], a transpose of x; max of t over dimension 2, and f(t, max[8,784,1]); transposes back
 *
 * The engines reduce along the free dimension.  With the reduced dimension on the partitions nothing but a sum, as a product, is fast;
 * with one of the dimensions after it there, an instruction has a single step of the reduced one.  With rows, one instruction
 * reduces 128 of them, and numbers for each row are read by the instructions that compute with them.  The Tensor engine transposes
 * tiles on their way from and to HBM (fuse_row_tiles).
 *
 *     the same of x[8,21,64,64]   ==>  t[8*32,21,128]: 32 bands of 128 positions of each image; max of t over dimension 1
 *
 * Rows of few elements, each of which is transposed, take long.  A band has all columns of some positions, and lies in a partition: the
 * bands of all images fill the partitions, and the engines reduce with a step.  DMA copies the values to bands and back.
 *
 * A group changes together (groups.c): element-wise operations and reductions of the same dimensions.  An operand has all dimensions,
 * all that are not reduced, those that are reduced, with or without those before them, or one element.  Values of the group that
 * are read elsewhere go back.  Nothing changes where another way takes less time, see choose; only types that the Tensor engine
 * transposes get rows.  The option bands=N asks for N bands of each image, bands=0 for none.  No value changes; sums change by their
 * order.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "base/table.h"
#include "nisa/nisa.h"
#include "passes/prepare_arithmetic/middle.h"

/* With fewer rows in a tile, it is not fused with others, see fuse_row_tiles. */
enum { ROWS_LEAST = NISA_PARTITIONS / 4 };

/* ---- what operands have -------------------------------------------------------------------------------------------- */

static bool is_short(const struct middle *m, const struct structured *s) {
  return s->n_loops != m->n;
}

static int part_of_loop(const struct middle *m, const struct structured *s, int l) {
  return l < m->first ? BATCH : is_short(m, s) || l >= m->end ? ROWS : COLUMNS;
}

struct form middle_form(const struct middle *m, const struct structured *s, int operand, MlirValue v) {
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
  const struct form out = middle_form(m, &s, s.n_inputs, ir_result(op));
  if (is_reduction ? n_reduced != m->end - m->first || !middle_is_of_rows(&out)
                   : !middle_is_whole(&out) && !middle_is_of_rows(&out))
    return false;
  for (int o = 0; o < s.n_inputs; o++) {
    const struct form f = middle_form(m, &s, o, mlirOperationGetOperand(op, o));
    if (!f.ok || (!ir_is(op, "linalg.generic") && middle_is_whole(&f) != middle_is_whole(&out)))
      return false;
  }
  return (middle_is_whole(&out) || is_reduction || !prepare_has_op(run, op, "linalg.index")) &&
         has_known_places(m, run, op);
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

/* About how many cycles of the Vector engine the group takes: with rows, in the best number of bands, and as it is; NEVER: it cannot be
 * so. */
struct weight {
  int64_t turned, banded, kept;
  int64_t each;  /* that number, for each of the batch */
  int64_t asked; /* with the number that an option asks for */
};

/* Cycles of an instruction and elements of one; bytes between HBM and SBUF in a cycle; cycles from the first transfer of a loop to
 * its first result, and back to HBM. */
enum { FIXED = 64, FREE_MAX = 2048, BYTES_A_CYCLE = 360, LATENCY = 9600 };
enum {
  TRANSFER = 3000,       /* cycles of one, however short */
  SHORT_RUN = 48,        /* elements that follow each other in HBM, with which transfers take twice as long */
  RUN_MIN = 8,           /* elements of a row of a band */
  BANDS_MOST = 4096,     /* of one of the batch */
  BAND_MAX = 12288,      /* elements of a band in a partition with which loops are not cut */
  BANDS_PERCENT = 85,    /* of the time of another form, which bands must take less than */
  RESULT = 4000,         /* cycles in which the result so far comes from HBM and goes back, */
  RESULT_BEGINS = 10000, /* of which so many pass while the first columns come */
  PRODUCT_MIN = NISA_PARTITIONS / 2 /* columns of a sum in a batch that is a product with ones */
};

static const int64_t NEVER = INT64_C(1) << 50; /* what a group cannot be; the sum of many fits in 64 bits */

static int64_t ceil_div(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

/* True if the batch fills the partitions. */
static bool fills(const struct middle *m) {
  return m->batch >= NISA_PARTITIONS * 3 / 4;
}

/* The cycles in which partitions that each have one of the batch reduce what comes in tiles of some columns. */
static int64_t cost_in_batch(const struct middle *m) {
  const int64_t columns = m->rows < FREE_MAX ? FREE_MAX / m->rows : 1,
                steps = ceil_div(m->columns, columns) * ceil_div(m->rows, FREE_MAX),
                results = fills(m) ? 0 : steps * RESULT - RESULT_BEGINS;
  return m->columns * m->rows * ceil_div(m->batch, NISA_PARTITIONS) + (results > LATENCY ? results : LATENCY);
}

/* The cycles of a reduction with the best loop across the partitions, which is not reduced, nor the last one: that one would be
 * transposed.  With one after what is reduced, of a batch each step has a transfer of its own. */
static int64_t cost_kept(const struct middle *m) {
  int64_t all = m->batch * m->columns * m->rows, best = m->batch > 1 ? cost_in_batch(m) : NEVER;

  for (int l = m->end; l < m->n - 1; l++) {
    int64_t run = 1;
    for (int k = l + 1; k < m->n; k++)
      run *= m->dims[k];
    run = run < FREE_MAX ? run : FREE_MAX;
    const int64_t lanes = m->dims[l] < NISA_PARTITIONS ? m->dims[l] : NISA_PARTITIONS,
                  steps = ceil_div(all, lanes * run),
                  cost = LATENCY + steps * (FIXED + run + (m->batch > 1 ? TRANSFER : 0));
    best = cost < best ? cost : best;
  }
  return best;
}

bool middle_is_in(const struct prepare_group *g, MlirOperation op) {
  return !mlirOperationIsNull(op) && prepare_is_marked(op, g->mark) &&
         mlirIntegerAttrGetValueInt(ir_attr(op, g->mark)) == g->number;
}

static bool can_turn(MlirValue v) {
  MlirType t = ir_value_element(v);
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

bool middle_is_read_outside(const struct prepare_group *g, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!middle_is_in(g, mlirOpOperandGetOwner(u)))
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

  if (!middle_is_in(g, op) || !structured_read(op, &s))
    return false;
  for (int o = 0; o < s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct form f = middle_form(m, &s, o, v);
    if (middle_is_of_rows(&f) || (depth < DEPTH_MAX && reads_rows(g, m, ir_defining_op(v), depth + 1)))
      return true;
  }
  return false;
}

/* The cycles of a product with ones.  A value of the group goes to HBM before it if there is a batch or it has no room, and what is
 * computed with numbers for each row also reads these in all partitions. */
static int64_t cost_of_sum(const struct prepare_group *g, const struct middle *m, MlirOperation op) {
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, 0));
  const int64_t bytes = m->batch * m->columns * m->rows * 4;
  const bool is_computed = middle_is_in(g, def),
             stays = m->batch == 1 && bytes / NISA_PARTITIONS <= nisa_machine(g->run->target)->sbuf_bytes / 2;
  const bool is_second = reads_rows(g, m, def, 0);
  const int passes = !is_computed ? 1 : (stays ? 0 : 2) + 1 + is_second;
  return passes * (bytes / BYTES_A_CYCLE) + LATENCY * (is_second || (is_computed && !stays) ? 2 : 1);
}

/* What of a group costs time. */
struct load {
  int on_all;    /* operations on all elements, reductions among them */
  int on_whole;  /* those whose result has all elements */
  int on_rows;   /* operations on numbers for each row */
  int moved;     /* values with all elements that come from outside, or leave */
  bool can_turn; /* the Tensor engine transposes these */
  bool can_band; /* nothing belongs to one of the batch, whatever the row */
};

/* Returns false if an operation is none that the pass knows. */
static bool measure(const struct prepare_group *g, const struct middle *m, struct load *l) {
  struct table seen = {.arena = g->run->arena};

  *l = (struct load){.can_turn = true, .can_band = true};
  for (int i = 0; i < g->n; i++) {
    MlirOperation op = g->ops[i];
    struct structured s;
    if (!structured_read(op, &s))
      return false;
    const struct form out = middle_form(m, &s, s.n_inputs, ir_result(op));
    for (int o = 0; o < s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(op, o);
      const struct form f = middle_form(m, &s, o, v);
      l->can_band &= f.has[ROWS] || !f.has[BATCH];
      if (!middle_is_whole(&f) || middle_is_in(g, ir_defining_op(v)) || table_get(&seen, v.ptr))
        continue;
      table_put(&seen, v.ptr, &seen);
      l->can_turn &= can_turn(v);
      l->moved++;
    }
    const bool is_all = middle_is_whole(&out) || s.kind == SK_REDUCTION;
    l->on_all += is_all;
    l->on_rows += !is_all;
    l->on_whole += middle_is_whole(&out);
    if (middle_is_whole(&out) && middle_is_read_outside(g, ir_result(op))) {
      l->can_turn &= can_turn(ir_result(op));
      l->moved++;
    }
  }
  return true;
}

static int64_t elements(const struct middle *m) {
  return m->batch * m->columns * m->rows;
}

/* Of a batch each transfer is that of one of it. */
static int64_t cost_turned(const struct middle *m, const struct load *l) {
  const int64_t tiles = m->batch * ceil_div(m->rows, NISA_PARTITIONS), one = tiles * (FIXED + m->columns),
                transfer = m->columns * m->rows * 4 / BYTES_A_CYCLE,
                least = TRANSFER < 8 * transfer ? TRANSFER : 8 * transfer;
  if (!l->can_turn)
    return NEVER;
  return LATENCY + (l->on_all + l->moved) * one + l->on_rows * tiles * FIXED +
         (m->batch > 1 ? l->moved * m->batch * (transfer > least ? transfer : least) : 0);
}

/* A value goes to HBM in bands, and is read again: three transfers, whose runs are the rows of a band. */
static int64_t cost_banded(const struct middle *m, const struct load *l, int64_t each) {
  const int64_t run = m->rows / each, one = m->columns * run, tiles = ceil_div(m->batch * each, NISA_PARTITIONS),
                moved = 3 * (elements(m) * 4 / BYTES_A_CYCLE), cost = one + FIXED * ceil_div(one, FREE_MAX),
                waits = moved / (2 * tiles); /* the engines wait for the first tile, and transfers for the last one */
  return LATENCY + l->on_all * tiles * (one > BAND_MAX ? cost * 3 / 2 : cost) + l->on_rows * tiles * (run + FIXED) +
         l->moved * (moved + waits + moved * SHORT_RUN * SHORT_RUN / (run * run));
}

/* Finds the best number of bands. */
static void weigh_bands(const struct middle *m, const struct load *l, struct weight *w) {
  w->banded = NEVER;
  if (!l->can_band || m->batch == 1 || fills(m))
    return;
  for (int64_t each = 2; each <= BANDS_MOST && each * RUN_MIN <= m->rows; each++) {
    const int64_t cost = m->rows % each ? NEVER : cost_banded(m, l, each);
    if (cost < w->banded) {
      w->banded = cost;
      w->each = each;
    }
  }
}

/* The cycles of an operation whose result has all elements, of a batch: it goes to HBM and comes back, unless the batch fills the
 * partitions. */
static int64_t cost_of_whole(const struct middle *m) {
  const int64_t lanes = m->batch > m->columns ? m->batch : m->columns, moved = 2 * (elements(m) * 4 / BYTES_A_CYCLE),
                computed = elements(m) / (lanes < NISA_PARTITIONS ? lanes : NISA_PARTITIONS);
  if (fills(m))
    return computed;
  return LATENCY + (computed > moved ? computed : moved);
}

static int64_t weigh_kept(const struct prepare_group *g, const struct middle *m, const struct load *l) {
  int64_t kept = l->on_rows * (FIXED + m->batch * m->rows / NISA_PARTITIONS);

  for (int i = 0; i < g->n; i++) {
    struct structured s;
    if (!structured_read(g->ops[i], &s))
      continue;
    const struct form out = middle_form(m, &s, s.n_inputs, ir_result(g->ops[i]));
    if ((m->batch == 1 || m->columns >= PRODUCT_MIN) && is_sum(g->ops[i], &s))
      kept += cost_of_sum(g, m, g->ops[i]);
    else if (s.kind == SK_REDUCTION)
      kept += cost_kept(m);
    else if (m->batch > 1 && middle_is_whole(&out))
      kept += cost_of_whole(m);
    if (m->batch == 1 && middle_is_whole(&out) && middle_is_read_outside(g, ir_result(g->ops[i])))
      kept += 2 * (elements(m) * 4 / BYTES_A_CYCLE) + LATENCY;
  }
  return kept;
}

/* Weighs the group; returns false if an operation is none that the pass knows. */
static bool weigh(const struct prepare_group *g, const struct middle *m, int64_t asked, struct weight *w) {
  struct load l;
  if (!measure(g, m, &l))
    return false;
  *w = (struct weight){.turned = cost_turned(m, &l), .kept = weigh_kept(g, m, &l), .asked = NEVER};
  weigh_bands(m, &l, w);
  if (asked > 0 && l.can_band && m->rows % asked == 0)
    w->asked = cost_banded(m, &l, asked);
  return true;
}

/* Chooses the form, by the option if there is one.  False: the group stays as it is. */
static bool choose(const struct prepare_group *g, struct middle *m, struct weight *w) {
  const char *text = pass_option(g->run, "bands");
  const int64_t asked = text ? atoi(text) : 0;

  if (!weigh(g, m, asked, w))
    return false;
  if (asked > 0 && w->asked < NEVER) {
    m->each = asked;
    return true;
  }
  const int64_t other = w->turned < w->kept ? w->turned : w->kept;
  m->each = !text && w->banded < NEVER && w->banded * 100 < other * BANDS_PERCENT ? w->each : 0;
  return m->each || (w->turned < NEVER && w->turned < w->kept);
}

/* ---- remarks ------------------------------------------------------------------------------------------------------------ */

static const char *cycles(struct arena *a, int64_t n) {
  return arena_printf(a, "%" PRId64 " cycles", n);
}

static void explain_rows(struct pass_run *run, MlirOperation op, const struct prepare_group *g, const struct middle *m,
                         const struct weight *w) {
  struct remark *r =
      pass_remark(run, op, RULE_COLUMNS_AS_ROWS,
                  "rows of %" PRId64 " elements, transposed: %d operations on %" PRId64 " rows take %" PRId64 " cycles",
                  m->columns, g->n, m->batch * m->rows, w->turned);
  remark_cost(r, "%" PRId64 " cycles", w->turned);
  remark_limit(r, "partitions", "partitions", m->rows < NISA_PARTITIONS ? m->rows : NISA_PARTITIONS, NISA_PARTITIONS);
  remark_reject_for(r, "the dimensions in their order", NULL, cycles(run->arena, w->kept),
                    "an instruction would have few elements, or a value would be transposed for each reduction");
}

static void explain_bands(struct pass_run *run, MlirOperation op, const struct prepare_group *g, const struct middle *m,
                          const struct weight *w) {
  const int64_t bands = m->batch * m->each, cost = m->each == w->each ? w->banded : w->asked;
  const bool is_turned = w->turned < w->kept;
  struct remark *r = pass_remark(run, op, RULE_COLUMNS_IN_BANDS,
                                 "%" PRId64 " bands of %" PRId64 "x%" PRId64
                                 " elements, across the partitions: %d operations take %" PRId64 " cycles",
                                 bands, m->columns, m->rows / m->each, g->n, cost);
  remark_cost(r, "%" PRId64 " cycles", cost);
  remark_limit(r, "partitions", "partitions", bands < NISA_PARTITIONS ? bands : NISA_PARTITIONS, NISA_PARTITIONS);
  remark_reject_for(r, is_turned ? "transposed values" : "the dimensions in their order", NULL,
                    cycles(run->arena, is_turned ? w->turned : w->kept),
                    is_turned ? "rows of few elements, each of which is transposed"
                              : "an instruction would have few elements, or tiles few partitions");
}

/* ---- the pass --------------------------------------------------------------------------------------------------------- */

void prepare_middle(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run);
  MlirOperation *ops = arena_alloc(run->arena, (size_t)all.n * sizeof *ops);

  for (int i = 0; i < all.n; i++) {
    struct middle m;
    struct weight w = {0};
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
    if (!g.is_free || !choose(&g, &m, &w))
      continue;
    if (m.each)
      explain_bands(run, all.v[i], &g, &m, &w);
    else
      explain_rows(run, all.v[i], &g, &m, &w);
    pass_step(run, all.v[i], m.each ? "columns-in-bands" : "columns-as-rows");
    middle_build(run, &g, &m, all);
  }
  prepare_unmark(all, MIDDLE);
}
