/* reduce: rewrites reductions whose result has fewer than two dimensions, or that leave no loop for the partitions.
 *
 *     [M,N] -> [M]       ==>  [M,N] -> [M,1], collapsed            (the reduced dimension stays, with one element)
 *     [M,N] -> []        ==>  [M,N] -> [M,1], transpose, [1,M] -> [1,1]
 *     [N]   -> []        ==>  the same from [P,N/P], or [1,N] -> [1,1] for a small N
 *
 * The first of two steps starts from the neutral element of the combiner, the second from the initial value.  A
 * reduction to a scalar whose combiner has no neutral element (an argmax, for example) gets a first dimension of one
 * element and runs in one partition.
 *
 *     [A,M,N] -> [A]     ==>  [A,M,N] -> [A,M], then [A,M] -> [A]    (few rows A, and an M that fills the partitions)
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"
#include "passes/lib/price.h"

/* ---- combiners --------------------------------------------------------------------------------------------------- */

enum neutral { N_ZERO, N_ONE, N_LOWEST, N_HIGHEST, N_ONES };

static const struct combiner {
  const char *name;
  enum neutral neutral;
} combiners[] = {
    {"arith.addf", N_ZERO},        {"arith.addi", N_ZERO},       {"arith.mulf", N_ONE},      {"arith.muli", N_ONE},
    {"arith.maximumf", N_LOWEST},  {"arith.maxnumf", N_LOWEST},  {"arith.maxsi", N_LOWEST},  {"arith.maxui", N_ZERO},
    {"arith.minimumf", N_HIGHEST}, {"arith.minnumf", N_HIGHEST}, {"arith.minsi", N_HIGHEST}, {"arith.minui", N_ONES},
    {"arith.andi", N_ONES},        {"arith.ori", N_ZERO},        {"arith.xori", N_ZERO},
};

/* Returns the combiner of a body combiner(out, f(inputs)); NULL for any other body. */
static const struct combiner *combiner_of(MlirOperation op, const struct structured *s) {
  MlirBlock body = ir_body(op);
  MlirValue out = mlirBlockGetArgument(body, s->n_inputs);
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(mlirBlockGetTerminator(body), 0));

  if (mlirOperationIsNull(def) || !mlirOperationEqual(ir_only_user(out), def))
    return NULL;
  for (size_t i = 0; i < sizeof combiners / sizeof *combiners; i++)
    if (ir_is(def, combiners[i].name))
      return &combiners[i];
  return NULL;
}

static MlirValue neutral_value(struct ir_builder *b, MlirType t, enum neutral n) {
  if (mlirTypeIsAFloat(t))
    return ir_float(b, t, n == N_ONE ? 1 : n == N_LOWEST ? -INFINITY : n == N_HIGHEST ? INFINITY : 0);
  const unsigned bits = mlirIntegerTypeGetWidth(t);
  const int64_t lowest = (int64_t)(UINT64_MAX << (bits - 1));
  return ir_int(b, t, n == N_ONE ? 1 : n == N_LOWEST ? lowest : n == N_HIGHEST ? ~lowest : n == N_ONES ? -1 : 0);
}

/* ---- keeping the reduced dimensions ------------------------------------------------------------------------------ */

/* Extends the tile of v, which has a new dimension of one element for each reduced loop. */
static void keep_tile(MlirValue v, const struct structured *s, MlirLocation loc) {
  struct layout l = layout_read(v);
  int64_t tile[STRUCTURED_LOOPS_MAX];
  int n = 0, loop = 0;

  if (mlirOperationIsNull(l.layout_op))
    return;
  for (; loop < s->n_loops; loop++)
    tile[loop] = s->reduction[loop] || n >= l.n_tile ? 1 : l.tile[n++];
  if (l.n_tile && n == l.n_tile) {
    l.n_tile = s->n_loops;
    memcpy(l.tile, tile, (size_t)loop * sizeof *tile);
  }
  if (l.partition_dim >= 0) /* it counted the dimensions that are not reduced; it becomes the number of the loop */
    for (loop = 0, n = l.partition_dim; loop < s->n_loops; loop++)
      if (!s->reduction[loop] && n-- == 0) {
        l.partition_dim = loop;
        break;
      }
  layout_write(v, &l, loc);
}

/* Gives every result a dimension for each loop, with one element if the loop is reduced. */
static void keep_dims(struct pass_run *run, MlirOperation op, struct structured *s) {
  struct ir_builder b = edit_before(run, op);
  int64_t dims[STRUCTURED_LOOPS_MAX], results[STRUCTURED_LOOPS_MAX];

  for (int l = 0; l < s->n_loops; l++) {
    dims[l] = s->reduction[l] ? 1 : s->extents[l];
    results[l] = s->reduction[l] ? IR_CONST(0) : l;
  }
  for (int r = 0; r < s->n_inits; r++) {
    int64_t old[STRUCTURED_LOOPS_MAX];
    const int rank = ir_shape(mlirOperationGetResult(op, r), STRUCTURED_LOOPS_MAX, old);
    s->maps[s->n_inputs + r] = ir_map(&b, s->n_loops, s->n_loops, results);
    prepare_result(run, op, s, r, s->n_loops, dims);
    if (rank < s->n_loops)
      keep_tile(mlirOperationGetResult(op, r), s, b.loc);
  }
  edit_set_maps(op, s->n_inputs + s->n_inits, s->maps);
}

/* ---- a first loop of one iteration ------------------------------------------------------------------------------- */

/* Returns m with a new first loop and a new first dimension, each of one iteration. */
static MlirAffineMap shifted(struct ir_builder *b, MlirAffineMap m, int n_loops) {
  int64_t results[STRUCTURED_LOOPS_MAX] = {0};
  const int n = (int)mlirAffineMapGetNumResults(m);

  for (int r = 0; r < n; r++) {
    MlirAffineExpr x = mlirAffineMapGetResult(m, r);
    results[r + 1] =
        mlirAffineExprIsADim(x) ? structured_map_loop(m, r) + 1 : IR_CONST(mlirAffineConstantExprGetValue(x));
  }
  return ir_map(b, n_loops + 1, n + 1, results);
}

static void prepend_tile(MlirValue v, MlirLocation loc) {
  struct layout l = layout_read(v);
  if (mlirOperationIsNull(l.layout_op) && mlirOperationIsNull(l.tile_op))
    return;
  if (l.n_loop && l.n_loop < LAYOUT_ENTRIES_MAX) {
    memmove(l.loop + 1, l.loop, (size_t)l.n_loop * sizeof *l.loop);
    l.loop[0] = 1;
    l.n_loop++;
  }
  l.n_tile = 0; /* of one element */
  l.partition_dim = -1;
  layout_write(v, &l, loc);
}

/* True if a new loop and dimension fit into the operation's arrays. */
static bool has_room(const struct structured *s) {
  bool fits = s->n_loops < STRUCTURED_LOOPS_MAX;
  for (int o = 0; o < s->n_inputs + s->n_inits; o++)
    fits &= mlirAffineMapGetNumResults(s->maps[o]) < STRUCTURED_LOOPS_MAX;
  return fits;
}

/* Adds a first loop of one iteration; the result becomes [1,1,…].  s has room for it. */
static void prepend_unit(struct pass_run *run, MlirOperation op, struct structured *s) {
  struct ir_builder b = edit_before(run, op);
  bool reduction[STRUCTURED_LOOPS_MAX] = {false};
  int64_t dims[STRUCTURED_LOOPS_MAX] = {1}, results[STRUCTURED_LOOPS_MAX] = {0};

  assert(has_room(s));
  for (int o = 0; o < s->n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX - 1, dims + 1);
    dims[0] = 1;
    mlirOperationSetOperand(op, o, edit_reshape(&b, v, rank + 1, dims));
    s->maps[o] = shifted(&b, s->maps[o], s->n_loops);
  }
  for (int l = 1; l <= s->n_loops; l++) {
    reduction[l] = true;
    dims[l] = 1;
    results[l] = IR_CONST(0);
  }
  for (int r = 0; r < s->n_inits; r++) {
    s->maps[s->n_inputs + r] = ir_map(&b, s->n_loops + 1, s->n_loops + 1, results);
    prepare_result(run, op, s, r, s->n_loops + 1, dims);
    prepend_tile(mlirOperationGetResult(op, r), b.loc);
  }
  edit_shift_indices(run, op, 1);
  edit_set_maps(op, s->n_inputs + s->n_inits, s->maps);
  edit_set_iterators(op, s->n_loops + 1, reduction);
}

/* ---- two steps --------------------------------------------------------------------------------------------------- */

static MlirValue combine(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_binary(b, user, args[1], args[0]);
}

/* Reshapes the input of a reduction of one dimension to [P, N/P] or [1, N]. */
static void view_as_matrix(struct pass_run *run, MlirOperation op, struct structured *s) {
  struct ir_builder b = edit_before(run, op);
  const int64_t n = s->extents[0], p = n > PREPARE_ROW_MAX ? prepare_partitions(n) : 1;

  mlirOperationSetOperand(op, 0, edit_reshape(&b, mlirOperationGetOperand(op, 0), 2, (int64_t[]){p, n / p}));
  s->n_loops = 2;
  s->extents[0] = p;
  s->extents[1] = n / p;
  s->reduction[1] = true;
  s->maps[0] = ir_identity_map(&b, 2);
}

/* Derives the annotations of the first step from those of v.  A loop tile of the single original loop applies to the
 * free dimension. */
static void annotate_first(MlirValue v, const struct structured *s, MlirLocation loc) {
  struct layout l = layout_read(v);

  if (mlirOperationIsNull(l.layout_op) && mlirOperationIsNull(l.tile_op))
    return;
  if (l.n_loop == 1 && s->n_loops == 2) {
    l.loop[1] = l.loop[0] < s->extents[1] ? l.loop[0] : s->extents[1];
    l.loop[0] = s->extents[0] < NISA_PARTITIONS ? s->extents[0] : NISA_PARTITIONS;
    l.n_loop = 2;
  }
  l.n_tile = 0;
  l.partition_dim = -1;
  l.space = s->extents[0] == 1 ? l.space : MEM_SBUF;
  layout_write(v, &l, loc);
}

/* Annotates the scalar with the layout, which has no tile and no partition dimension. */
static void annotate_scalar(MlirValue v, struct layout l, MlirLocation loc) {
  if (mlirOperationIsNull(l.layout_op))
    return;
  l.layout_op = l.tile_op = (MlirOperation){NULL};
  l.n_loop = l.n_tile = 0;
  l.partition_dim = -1;
  layout_write(v, &l, loc);
}

/* The loop that is reduced across the partitions: the first one, or without a knob the one that fills most of them.  The last one is along
 * the rows. */
static int widest_loop(MlirOperation op, const struct structured *s) {
  int best = 0;
  for (int l = 1; l < s->n_loops - 1 && !prepare_has_knob(ir_result(op)); l++)
    if (s->extents[best] < NISA_PARTITIONS && s->extents[l] > s->extents[best])
      best = l;
  return best;
}

/* Makes op reduce all loops except one.  Sets dims to the shape of its result, [P, 1, …] or [1, P, …]. */
static void keep_loop(struct pass_run *run, MlirOperation op, struct structured *s, int kept, int64_t *dims) {
  struct ir_builder b = edit_before(run, op);
  int64_t results[STRUCTURED_LOOPS_MAX];

  for (int l = 0; l < s->n_loops; l++) {
    dims[l] = l == kept ? s->extents[l] : 1;
    results[l] = l == kept ? l : IR_CONST(0);
  }
  s->reduction[kept] = false;
  s->maps[1] = ir_map(&b, s->n_loops, s->n_loops, results);
  annotate_first(ir_result(op), s, b.loc);
  edit_set_iterators(op, s->n_loops, s->reduction);
  edit_set_maps(op, 2, s->maps);
}

/* Makes op start from the neutral element, in a tensor of these dimensions. */
static void start_neutral(struct pass_run *run, MlirOperation op, const struct combiner *c, int rank,
                          const int64_t *dims) {
  struct ir_builder b = edit_before(run, op);
  MlirType element = ir_value_element(ir_result(op));
  MlirValue empty = ir_empty_of(&b, ir_tensor_of(element, rank, dims));

  mlirOperationSetOperand(op, 1, ir_fill(&b, neutral_value(&b, element, c->neutral), empty));
  mlirValueSetType(ir_result(op), mlirValueGetType(empty));
}

/* Emits the second step: reduces a row [1,P] to [1,1], starting from init. */
static MlirValue reduce_row(struct ir_builder *b, MlirValue row, MlirValue init, const struct combiner *c) {
  const bool reduction[] = {false, true};
  MlirAffineMap maps[] = {ir_identity_map(b, 2), ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)})};

  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                             .reduction = reduction,
                                                             .n_inputs = 1,
                                                             .inputs = &row,
                                                             .maps = maps,
                                                             .output = edit_reshape_init(b, init, 2, (int64_t[]){1, 1}),
                                                             .body = combine,
                                                             .user = (void *)(uintptr_t)c->name}));
}

/* Reduces all loops to a scalar: first within the partitions, then across them.  One step is enough if there is one
 * partition. */
static void reduce_in_two_steps(struct pass_run *run, MlirOperation op, struct structured *s,
                                const struct combiner *c) {
  MlirValue result = ir_result(op), init = mlirOperationGetOperand(op, 1);
  const struct layout asked = layout_read(result);
  const struct price_shape whole = price_shape_of(mlirOperationGetOperand(op, 0));
  int64_t dims[STRUCTURED_LOOPS_MAX], old[STRUCTURED_LOOPS_MAX];
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);

  if (s->n_loops == 1)
    view_as_matrix(run, op, s);
  const int kept = widest_loop(op, s);
  const int64_t rows = s->extents[kept];
  keep_loop(run, op, s, kept, dims);
  if (rows == 1) {
    prepare_result(run, op, s, 0, s->n_loops, dims);
    return;
  }
  start_neutral(run, op, c, s->n_loops, dims);
  struct ir_builder b = edit_after(run, op);
  MlirValue column = edit_reshape(&b, result, 2, (int64_t[]){rows, 1});
  MlirValue row = ir_result(ir_transpose(&b, column, 2, (int64_t[]){1, 0}));
  MlirValue scalar = reduce_row(&b, row, init, c);
  MlirOperation reader = ir_defining_op(mlirValueEqual(column, result) ? row : column);
  edit_replace_data_uses(run->arena, result, edit_reshape(&b, scalar, old_rank, old), reader);
  annotate_scalar(scalar, asked, mlirOperationGetLocation(op));
  if (!mlirOperationIsNull(ir_defining_op(init)))
    edit_erase_unused(run->arena, ir_defining_op(init));
  struct remark *r =
      pass_remark(run, op, RULE_REDUCE_IN_TWO_STEPS, "reduced in two steps: within the partitions, then across them");
  const enum target t = run->target;
  const int64_t elements = whole.rows * whole.columns;
  price_chosen(r, price_rows_ns(t, SIM_COST_VECTOR_REDUCE, rows, elements / rows) +
                      price_transpose_ns(t, rows, 1, whole.element_bytes) +
                      price_rows_ns(t, SIM_COST_VECTOR_REDUCE, 1, rows));
  price_instead(r, "one step",
                price_transfer_ns(t, price_bytes(&whole), elements / rows * whole.element_bytes) +
                    price_rows_ns(t, SIM_COST_VECTOR_REDUCE, 1, elements),
                "all elements would be moved to one partition: an instruction reduces along the free dimension only");
}

bool prepare_has_combiner(MlirOperation op, const struct structured *s) {
  return combiner_of(op, s) != NULL;
}

const char *prepare_combiner(MlirOperation op, const struct structured *s) {
  const struct combiner *c = combiner_of(op, s);
  return c ? c->name : NULL;
}

MlirValue prepare_neutral(struct ir_builder *b, MlirType t, const char *combiner) {
  size_t i = 0;
  while (strcmp(combiners[i].name, combiner))
    i++;
  return neutral_value(b, t, combiners[i].neutral);
}

void prepare_reduce_partitions(struct pass_run *run, MlirOperation op, int64_t partitions, int64_t columns) {
  struct structured s;
  MlirValue result = ir_result(op), init = mlirOperationGetOperand(op, 1);
  const int64_t dims[] = {partitions, columns};
  int64_t old[STRUCTURED_LOOPS_MAX];
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  const bool ok = structured_read(op, &s);
  const struct combiner *c = combiner_of(op, &s);

  assert(ok && c);
  (void)ok;
  start_neutral(run, op, c, 2, dims);
  struct ir_builder b = edit_after(run, op);
  MlirAffineMap maps[] = {ir_identity_map(&b, 2), ir_map(&b, 2, 1, (int64_t[]){1})};
  MlirOperation second = ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 2,
                                                                    .reduction = (const bool[]){true, false},
                                                                    .n_inputs = 1,
                                                                    .inputs = &result,
                                                                    .maps = maps,
                                                                    .output = edit_reshape_init(&b, init, 1, &columns),
                                                                    .body = combine,
                                                                    .user = (void *)(uintptr_t)c->name});
  edit_replace_data_uses(run->arena, result, edit_reshape(&b, ir_result(second), old_rank, old), second);
  if (!mlirOperationIsNull(ir_defining_op(init)))
    edit_erase_unused(run->arena, ir_defining_op(init));
}

/* ---- few rows ------------------------------------------------------------------------------------------------------ */

/* With so few rows, and so many elements of the first reduced dimension, these lie across the partitions in a step before. */
enum { FEW_ROWS = NISA_PARTITIONS / 4, FILLING = NISA_PARTITIONS / 2 };

/* True if op reduces the dimensions after the first one, which has few rows, and the second one would fill the partitions. */
static bool has_few_rows(struct pass_run *run, MlirOperation op, const struct structured *s, const struct combiner *c) {
  MlirType t = ir_value_element(ir_result(op));

  if (!c || s->n_loops < 3 || s->reduction[0] || s->extents[0] > FEW_ROWS || s->extents[1] < FILLING ||
      prepare_has_knob(ir_result(op)) || prepare_has_op(run, op, "linalg.index") ||
      (mlirTypeIsAFloat(t) && !mlirTypeIsAF32(t)) || structured_map_loop(s->maps[1], 0) != 0)
    return false;
  int64_t inner = 1;
  for (int l = 1; l < s->n_loops; l++) {
    if (!s->reduction[l])
      return false;
    inner *= l > 1 ? s->extents[l] : 1;
  }
  return inner >= NISA_PARTITIONS;
}

/* Reduces all but the first two dimensions, then the second one.  Returns the second operation. */
static MlirOperation reduce_rows_first(struct pass_run *run, MlirOperation op, struct structured *s,
                                       const struct combiner *c) {
  MlirValue result = ir_result(op), init = mlirOperationGetOperand(op, 1);
  const int64_t dims[] = {s->extents[0], s->extents[1]};
  int64_t old[STRUCTURED_LOOPS_MAX];
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  const bool reduction[] = {false, true};

  start_neutral(run, op, c, 2, dims);
  struct ir_builder b = edit_after(run, op);
  s->reduction[1] = false;
  s->maps[1] = ir_map(&b, s->n_loops, 2, (int64_t[]){0, 1});
  edit_set_iterators(op, s->n_loops, s->reduction);
  edit_set_maps(op, 2, s->maps);
  MlirAffineMap maps[] = {ir_identity_map(&b, 2), ir_map(&b, 2, 1, (int64_t[]){0})};
  MlirOperation second = ir_linalg_generic(&b, &(struct ir_generic){.n_loops = 2,
                                                                    .reduction = reduction,
                                                                    .n_inputs = 1,
                                                                    .inputs = &result,
                                                                    .maps = maps,
                                                                    .output = edit_reshape_init(&b, init, 1, dims),
                                                                    .body = combine,
                                                                    .user = (void *)(uintptr_t)c->name});
  edit_replace_data_uses(run->arena, result, edit_reshape(&b, ir_result(second), old_rank, old), second);
  if (!mlirOperationIsNull(ir_defining_op(init)))
    edit_erase_unused(run->arena, ir_defining_op(init));
  struct remark *r = pass_remark(run, op, RULE_REDUCE_IN_TWO_STEPS,
                                 "reduced in two steps: dimension 1 lies across the partitions in the first one");
  remark_limit(r, "partitions", "partitions", dims[1] < NISA_PARTITIONS ? dims[1] : NISA_PARTITIONS, NISA_PARTITIONS);
  const enum target t = run->target;
  int64_t inner = 1;
  for (int l = 2; l < s->n_loops; l++)
    inner *= s->extents[l];
  price_chosen(r, price_rows_ns(t, SIM_COST_VECTOR_REDUCE, dims[0] * dims[1], inner) +
                      price_transpose_ns(t, dims[1], dims[0], price_shape_of(result).element_bytes) +
                      price_rows_ns(t, SIM_COST_VECTOR_REDUCE, dims[0], dims[1]));
  price_instead(r, "one step", price_rows_ns(t, SIM_COST_VECTOR_REDUCE, dims[0], dims[1] * inner),
                "most lanes would be idle, and elements would be moved to other partitions for it");
  return second;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* True if the results lack dimensions and may get them back: with fewer than two there is none for the free elements,
 * and with more than two the last one left could not lie across the partitions. */
static bool lacks_dims(const struct structured *s) {
  for (int r = 0; r < s->n_inits; r++) {
    const MlirAffineMap m = s->maps[s->n_inputs + r];
    int last = -1;
    for (int d = 0; d < mlirAffineMapGetNumResults(m); d++) {
      const int loop = structured_map_loop(m, d);
      if (loop >= 0 && loop <= last)
        return false; /* permuted */
      last = loop >= 0 ? loop : last;
    }
  }
  const int rank = (int)mlirAffineMapGetNumResults(s->maps[s->n_inputs]);
  return rank < 2 || (s->n_loops > 2 && rank < s->n_loops);
}

void prepare_reduction(struct pass_run *run, MlirOperation op) {
  struct structured s;
  int partition = -1;

  if (!structured_read(op, &s) || !structured_has_simple_maps(&s) || !ir_is(op, "linalg.generic"))
    return;
  for (int l = s.n_loops - 1; l >= 0; l--)
    if (!s.reduction[l])
      partition = l;
  if (partition < 0) {
    const struct combiner *c = s.n_inputs == 1 && s.n_inits == 1 && mlirAffineMapIsIdentity(s.maps[0]) &&
                                       !prepare_has_op(run, op, "linalg.index")
                                   ? combiner_of(op, &s)
                                   : NULL;
    if (c)
      reduce_in_two_steps(run, op, &s, c);
    else if (has_room(&s))
      prepend_unit(run, op, &s);
    return;
  }
  if (prepare_columns(run, op, &s))
    return;
  const struct combiner *few =
      s.n_inputs == 1 && s.n_inits == 1 && mlirAffineMapIsIdentity(s.maps[0]) ? combiner_of(op, &s) : NULL;
  if (has_few_rows(run, op, &s, few)) {
    MlirOperation second = reduce_rows_first(run, op, &s, few);
    prepare_reduction(run, second);
  }
  if (lacks_dims(&s))
    keep_dims(run, op, &s);
  prepare_inputs(run, op);
}
