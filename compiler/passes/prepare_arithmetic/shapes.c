/* shapes: gives every operation at least two dimensions, the first one for the partitions.
 *
 * A value of rank 1 can be a column [N,1] (N partitions), a row [1,N] (one partition), spread [P,N/P], or [1,N,1,1] where
 * it meets images (N partitions).  A change
 * from one form to another moves data across partitions.  So an operation takes the form of its inputs, or else the
 * form of its users (a factor for each partition is a column, a bias along the free dimension is a row), or else the
 * fastest form.
 *
 * Inputs of operations with two or more loops get full rank.  A broadcast stays what it is, a dimension of one element:
 * along the free dimensions it is an access pattern, and legalize-layout copies a row to the partitions that read it.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

enum form_kind { FORM_NONE, FORM_COLUMN, FORM_ROW, FORM_SPREAD, FORM_INNER };

/* FORM_INNER is [1,N,1,1]: `rank` dimensions, of which `at` has the elements.  It is the form of a factor per channel of
 * an image, and of a sum over all other dimensions. */
struct form {
  enum form_kind kind;
  int rank, at;
};

struct shape {
  struct form form;
  int rank, at; /* at: the loop that takes the place of the only one; FORM_SPREAD has two */
  int64_t dims[STRUCTURED_LOOPS_MAX];
};

int64_t prepare_divisor(int64_t n, int64_t most) {
  for (int64_t d = most; d > 1; d--)
    if (n % d == 0)
      return d;
  return 1;
}

int64_t prepare_partitions(int64_t n) {
  return prepare_divisor(n, NISA_PARTITIONS);
}

/* ---- changing an operation --------------------------------------------------------------------------------------- */

bool prepare_has_knob(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

bool prepare_has_op(struct pass_run *run, MlirOperation op, const char *name) {
  return ir_collect_named(run->arena, op, name).n > 0;
}

void prepare_result(struct pass_run *run, MlirOperation op, const struct structured *s, int r, int rank,
                    const int64_t *dims) {
  struct ir_builder before = edit_before(run, op), after = edit_after(run, op);
  MlirValue result = mlirOperationGetResult(op, r), init = mlirOperationGetOperand(op, s->n_inputs + r);
  int64_t old[STRUCTURED_LOOPS_MAX];
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);

  MlirValue new_init = edit_reshape_init(&before, init, rank, dims);
  mlirOperationSetOperand(op, s->n_inputs + r, new_init);
  mlirValueSetType(result, ir_tensor_of(ir_value_element(result), rank, dims));
  MlirValue back = edit_reshape(&after, result, old_rank, old);
  if (mlirValueEqual(back, result))
    return;
  MlirOperation first = mlirOpResultGetOwner(back); /* if there are two reshapes, the one that reads the result */
  while (!mlirValueEqual(mlirOperationGetOperand(first, 0), result))
    first = mlirOpResultGetOwner(mlirOperationGetOperand(first, 0));
  edit_replace_data_uses(run->arena, result, back, first);
  if (!mlirOperationIsNull(ir_defining_op(init)))
    edit_erase_unused(run->arena, ir_defining_op(init));
}

/* ---- which form a value of rank 1 takes -------------------------------------------------------------------------- */

static const struct form no_form;

static struct form form_of(enum form_kind kind) {
  return (struct form){.kind = kind};
}

/* Returns the form of a value with the elements in one of several dimensions: not the first, and not the last. */
static struct form inner_form(int rank, int at) {
  return (struct form){FORM_INNER, rank, at};
}

/* Returns the form of a value of n elements that these dimensions were collapsed to. */
static struct form form_of_dims(int rank, const int64_t *dims, int64_t n) {
  if (rank < 2)
    return no_form;
  if (dims[0] == n)
    return form_of(FORM_COLUMN);
  for (int d = 1; d < rank - 1; d++)
    if (dims[d] == n)
      return inner_form(rank, d);
  return form_of(dims[0] == 1 ? FORM_ROW : rank == 2 ? FORM_SPREAD : FORM_NONE);
}

/* A single number has no form: it is the same in each. */
static struct form form_of_source(MlirValue v, int64_t n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  MlirOperation def = ir_defining_op(v);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

  if (mlirOperationIsNull(def) || !ir_is(def, "tensor.collapse_shape") || rank != 1 || dims[0] != n)
    return no_form;
  MlirValue source = mlirOperationGetOperand(def, 0);
  MlirOperation origin = ir_defining_op(source); /* only a computed value has a chosen form */
  if (mlirOperationIsNull(origin) || !structured_read(origin, &(struct structured){0}))
    return no_form;
  return form_of_dims(ir_shape(source, STRUCTURED_LOOPS_MAX, dims), dims, n);
}

enum { FOLLOW_MAX = 6 }; /* the depth of the search through users: this is a heuristic, and every form is correct */

static struct form form_of_users(MlirValue v, int64_t n, int depth);

static struct form form_of_user(MlirOpOperand use, int64_t n, int depth) {
  MlirOperation user = mlirOpOperandGetOwner(use);
  const int k = (int)mlirOpOperandGetOperandNumber(use);
  struct structured s;
  int64_t dims[STRUCTURED_LOOPS_MAX];

  if (ir_is(user, "tensor.expand_shape"))
    return form_of_dims(ir_shape(ir_result(user), STRUCTURED_LOOPS_MAX, dims), dims, n);
  if (!structured_read(user, &s) || !structured_is_elementwise(&s) || k >= s.n_inputs)
    return no_form;
  if (s.n_loops == 1)
    return form_of_users(ir_result(user), n, depth + 1);
  if (mlirAffineMapGetNumResults(s.maps[k]) != 1)
    return no_form;
  const int loop = structured_map_loop(s.maps[k], 0);
  if (loop > 0 && loop < s.n_loops - 1)
    return inner_form(s.n_loops, loop);
  return form_of(loop < 0 ? FORM_NONE : loop == 0 ? FORM_COLUMN : FORM_ROW);
}

static struct form form_of_users(MlirValue v, int64_t n, int depth) {
  struct form f = no_form;
  if (depth > FOLLOW_MAX)
    return f;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !f.kind && !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    f = form_of_user(u, n, depth);
  return f;
}

/* Returns the form of a value that v will be fused with, because its loops must agree with v's; FORM_NONE if it has
 * none yet. */
static struct form form_of_fused(MlirValue v, int64_t n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  struct form f = no_form;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !f.kind && !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation fuse = mlirOpOperandGetOwner(u);
    if (!ir_is(fuse, "nkipy.fuse_op") || !mlirAttributeIsNull(ir_attr(fuse, "never")))
      continue;
    for (intptr_t k = 0; !f.kind && k < mlirOperationGetNumOperands(fuse); k++)
      f = form_of_dims(ir_shape(mlirOperationGetOperand(fuse, k), STRUCTURED_LOOPS_MAX, dims), dims, n);
  }
  return f;
}

static struct form fast_form(int64_t n) {
  return form_of(n > PREPARE_ROW_MAX && prepare_partitions(n) > 1 ? FORM_SPREAD : FORM_ROW);
}

static struct shape shape_of(struct form f, int64_t n) {
  struct shape to = {.form = f, .rank = f.kind == FORM_INNER ? f.rank : 2};

  for (int d = 0; d < to.rank; d++)
    to.dims[d] = 1;
  to.at = f.kind == FORM_INNER ? f.at : f.kind == FORM_COLUMN ? 0 : 1;
  if (f.kind == FORM_SPREAD)
    to.dims[0] = prepare_partitions(n);
  to.dims[to.at] = n / to.dims[1 - (to.at > 0)];
  return to;
}

/* True if operand o of an operation with one loop has one element for each iteration, or one element.  Then it can
 * be reshaped. */
static bool is_plain(MlirOperation op, const struct structured *s, int o, int64_t n) {
  int64_t dims[STRUCTURED_LOOPS_MAX], total = 1;
  const int rank = ir_shape(mlirOperationGetOperand(op, o), STRUCTURED_LOOPS_MAX, dims);
  bool has_loop = false;

  for (int r = 0; r < rank; r++) {
    total *= dims[r];
    has_loop |= structured_map_loop(s->maps[o], r) == 0;
  }
  return rank >= 0 && total == (has_loop ? n : 1);
}

static struct shape choose_shape(struct pass_run *run, MlirOperation op, const struct structured *s, int64_t n) {
  struct layout l = layout_read(ir_result(op));
  const int64_t tile = l.n_loop ? l.loop[0] : l.n_tile ? l.tile[0] : 0;
  bool is_plain_op = !prepare_has_op(run, op, "linalg.index");
  struct form f = form_of_fused(ir_result(op), n);

  for (int o = 0; o < s->n_inputs + s->n_inits; o++)
    is_plain_op &= is_plain(op, s, o, n);
  if (n == 1)
    f = form_of(FORM_ROW);
  else if (!f.kind && prepare_has_op(run, op, "tensor.extract")) /* a gather: an index per partition */
    f = form_of(FORM_COLUMN);
  else if (!f.kind && tile)
    f = form_of(tile <= NISA_PARTITIONS ? FORM_COLUMN : FORM_ROW);
  for (int o = 0; !f.kind && o < s->n_inputs; o++)
    f = form_of_source(mlirOperationGetOperand(op, o), n);
  if (!f.kind)
    f = form_of_users(ir_result(op), n, 0);
  if (!f.kind)
    f = fast_form(n);
  if (f.kind == FORM_SPREAD && (!is_plain_op || tile || prepare_partitions(n) == 1))
    f = form_of(FORM_ROW);
  if (f.kind == FORM_INNER && (!is_plain_op || tile))
    f = form_of(FORM_COLUMN);
  return shape_of(f, n);
}

/* ---- rank 0 and 1 ------------------------------------------------------------------------------------------------ */

static void annotate_shape(MlirValue v, const struct shape *to, MlirLocation loc) {
  struct layout l = layout_read(v);
  int64_t *lists[] = {l.loop, l.tile};
  int *counts[] = {&l.n_loop, &l.n_tile};

  if (mlirOperationIsNull(l.layout_op) && mlirOperationIsNull(l.tile_op))
    return;
  for (int i = 0; i < 2; i++) {
    if (*counts[i] != 1)
      continue;
    const int64_t t = lists[i][0];
    for (int d = 0; d < to->rank; d++)
      lists[i][d] = d == to->at ? t : 1;
    *counts[i] = to->rank;
  }
  layout_write(v, &l, loc);
}

/* Returns the map of an operand that keeps its shape: loop 0 becomes the loop of form `to` that replaces it. */
static MlirAffineMap renamed(struct ir_builder *b, MlirAffineMap m, const struct shape *to) {
  int64_t results[STRUCTURED_LOOPS_MAX];
  const int n = (int)mlirAffineMapGetNumResults(m);

  for (int r = 0; r < n; r++) {
    MlirAffineExpr x = mlirAffineMapGetResult(m, r);
    if (mlirAffineExprIsADim(x))
      results[r] = to->at;
    else
      results[r] = IR_CONST(mlirAffineExprIsAConstant(x) ? mlirAffineConstantExprGetValue(x) : 0);
  }
  return ir_map(b, to->rank, n, results);
}

static void raise_rank(struct pass_run *run, MlirOperation op, const struct structured *s) {
  assert(s->n_loops < 2);
  const int64_t n = s->n_loops ? s->extents[0] : 1;
  const struct shape to = choose_shape(run, op, s, n);
  int64_t one[STRUCTURED_LOOPS_MAX], zeros[STRUCTURED_LOOPS_MAX];
  bool reduction[STRUCTURED_LOOPS_MAX] = {false};
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];

  for (int d = 0; d < to.rank; d++) {
    one[d] = 1;
    zeros[d] = IR_CONST(0);
  }
  for (int o = 0; o < s->n_inputs; o++) {
    bool has_loop = false;
    for (int r = 0; r < mlirAffineMapGetNumResults(s->maps[o]); r++)
      has_loop |= structured_map_loop(s->maps[o], r) == 0;
    maps[o] = has_loop || n == 1 ? ir_identity_map(&b, to.rank) : ir_map(&b, to.rank, to.rank, zeros);
    MlirValue v = mlirOperationGetOperand(op, o);
    if (is_plain(op, s, o, n))
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, to.rank, has_loop ? to.dims : one));
    else
      maps[o] = renamed(&b, s->maps[o], &to);
  }
  for (int r = 0; r < s->n_inits; r++) {
    maps[s->n_inputs + r] = ir_identity_map(&b, to.rank);
    prepare_result(run, op, s, r, to.rank, to.dims);
    annotate_shape(mlirOperationGetResult(op, r), &to, b.loc);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s->n_inputs + s->n_inits, maps);
  edit_set_iterators(op, to.rank, reduction);
  if (to.at && to.form.kind != FORM_SPREAD)
    edit_shift_indices(run, op, to.at);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Sets at[loop] if map m has the loop.  False if the loops are not in order, or if a dimension of several elements
 * has none. */
static bool read_input(MlirAffineMap m, int rank, const int64_t *dims, bool *at) {
  int last = -1;
  memset(at, 0, STRUCTURED_LOOPS_MAX * sizeof *at);
  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(m, r);
    if (loop < 0 && dims[r] == 1)
      continue;
    if (loop <= last)
      return false;
    at[loop] = true;
    last = loop;
  }
  return true;
}

void prepare_inputs(struct pass_run *run, MlirOperation op) {
  struct structured s;
  struct ir_builder b = edit_before(run, op);
  bool changed = false;

  if (!structured_read(op, &s) || !ir_is(op, "linalg.generic"))
    return;
  for (int o = 0; o < s.n_inputs; o++) {
    int64_t dims[STRUCTURED_LOOPS_MAX], results[STRUCTURED_LOOPS_MAX];
    bool at[STRUCTURED_LOOPS_MAX];
    MlirValue v = mlirOperationGetOperand(op, o);
    const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

    if (rank < 0 || !read_input(s.maps[o], rank, dims, at) || mlirAffineMapIsIdentity(s.maps[o]))
      continue;
    for (int l = 0; l < s.n_loops; l++) {
      dims[l] = at[l] ? s.extents[l] : 1;
      results[l] = at[l] || s.extents[l] == 1 ? l : IR_CONST(0);
    }
    v = edit_reshape(&b, v, s.n_loops, dims);
    mlirOperationSetOperand(op, o, v);
    s.maps[o] = ir_map(&b, s.n_loops, s.n_loops, results);
    changed = true;
  }
  if (changed)
    edit_set_maps(op, s.n_inputs + s.n_inits, s.maps);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void shape_elementwise(struct pass_run *run, MlirOperation op) {
  struct structured s;

  structured_read(op, &s);
  if (s.n_loops < 2) {
    if (!structured_has_simple_maps(&s))
      return;
    raise_rank(run, op, &s);
    structured_read(op, &s);
  }
  if (prepare_has_op(run, op, "tensor.extract")) /* the inputs are indices, which DMA reads */
    return;
  prepare_inputs(run, op);
}

/* Reshapes a fill that is still used: the initial values of operations already have their own. */
static void shape_fill(struct pass_run *run, MlirOperation fill) {
  int64_t dims[STRUCTURED_LOOPS_MAX], n = 1;
  const int rank = ir_shape(ir_result(fill), STRUCTURED_LOOPS_MAX, dims);
  struct structured s;

  if (rank < 0 || rank > 1 || !ir_is_used(ir_result(fill)))
    return;
  if (rank)
    n = dims[0];
  struct form f = form_of_users(ir_result(fill), n, 0);
  if (!f.kind)
    f = fast_form(n);
  const struct shape to = shape_of(f, n);
  structured_read(fill, &s);
  prepare_result(run, fill, &s, 0, to.rank, to.dims);
}

static bool is_static(const struct structured *s) {
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] <= 0) /* the extent is dynamic, or there is nothing to do */
      return false;
  return true;
}

static bool is_wanted(MlirOperation op, void *user) {
  const bool fills = *(const bool *)user;
  struct structured s;

  if (!structured_read(op, &s) || mlirOperationGetNumResults(op) < 1 || !is_static(&s))
    return false;
  return fills ? s.kind == SK_FILL : structured_is_elementwise(&s) || s.kind == SK_REDUCTION;
}

void prepare_shapes(struct pass_run *run) {
  bool fills = false;
  struct ir_ops ops = ir_collect(run->arena, run->module, is_wanted, &fills);

  for (int i = 0; i < ops.n; i++) {
    struct structured s;
    structured_read(ops.v[i], &s);
    pass_step(run, ops.v[i], s.kind == SK_REDUCTION ? "shape-reduction" : "two-dimensions");
    if (s.kind == SK_REDUCTION)
      prepare_reduction(run, ops.v[i]);
    else
      shape_elementwise(run, ops.v[i]);
  }
  fills = true;
  ops = ir_collect(run->arena, run->module, is_wanted, &fills);
  for (int i = 0; i < ops.n; i++) {
    pass_step(run, ops.v[i], "shape-fill");
    shape_fill(run, ops.v[i]);
  }
}
