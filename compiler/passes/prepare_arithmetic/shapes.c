/* shapes: gives every operation at least two dimensions, the first one for the partitions.
 *
 * A value of rank 1 can be a column [N,1] (N partitions), a row [1,N] (one partition) or spread [P,N/P].  A change
 * from one form to another moves data across partitions.  So an operation takes the form of its inputs, or else the
 * form of its users (a factor for each partition is a column, a bias along the free dimension is a row), or else the
 * fastest form.
 *
 * Inputs of operations with two or more loops get full rank.  Those that are broadcast along the partitions are
 * copied along them, because an engine reads each partition's own memory.  A broadcast along another dimension
 * stays: it is an access pattern.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

enum form { FORM_NONE, FORM_COLUMN, FORM_ROW, FORM_SPREAD };

struct shape2 {
  enum form form;
  int64_t dims[2];
};

int64_t prepare_partitions(int64_t n) {
  for (int64_t p = NISA_PARTITIONS; p > 1; p--)
    if (n % p == 0)
      return p;
  return 1;
}

/* ---- changing an operation --------------------------------------------------------------------------------------- */

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

/* Returns the form of a value of n elements that these dimensions were collapsed to. */
static enum form form_of_dims(int rank, const int64_t *dims, int64_t n) {
  if (rank < 2)
    return FORM_NONE;
  if (dims[0] == n)
    return FORM_COLUMN;
  return dims[0] == 1 ? FORM_ROW : rank == 2 ? FORM_SPREAD : FORM_NONE;
}

static enum form form_of_source(MlirValue v, int64_t n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  MlirOperation def = ir_defining_op(v);

  if (mlirOperationIsNull(def) || !ir_is(def, "tensor.collapse_shape"))
    return FORM_NONE;
  MlirValue source = mlirOperationGetOperand(def, 0);
  MlirOperation origin = ir_defining_op(source); /* only a computed value has a chosen form */
  if (mlirOperationIsNull(origin) || !structured_read(origin, &(struct structured){0}))
    return FORM_NONE;
  return form_of_dims(ir_shape(source, STRUCTURED_LOOPS_MAX, dims), dims, n);
}

enum { FOLLOW_MAX = 6 }; /* the depth of the search through users: this is a heuristic, and every form is correct */

static enum form form_of_users(MlirValue v, int64_t n, int depth);

static enum form form_of_user(MlirOpOperand use, int64_t n, int depth) {
  MlirOperation user = mlirOpOperandGetOwner(use);
  const int k = (int)mlirOpOperandGetOperandNumber(use);
  struct structured s;
  int64_t dims[STRUCTURED_LOOPS_MAX];

  if (ir_is(user, "tensor.expand_shape"))
    return form_of_dims(ir_shape(ir_result(user), STRUCTURED_LOOPS_MAX, dims), dims, n);
  if (!structured_read(user, &s) || !structured_is_elementwise(&s) || k >= s.n_inputs)
    return FORM_NONE;
  if (s.n_loops == 1)
    return form_of_users(ir_result(user), n, depth + 1);
  if (mlirAffineMapGetNumResults(s.maps[k]) != 1)
    return FORM_NONE;
  const int loop = structured_map_loop(s.maps[k], 0);
  return loop < 0 ? FORM_NONE : loop == 0 ? FORM_COLUMN : FORM_ROW;
}

static enum form form_of_users(MlirValue v, int64_t n, int depth) {
  enum form f = FORM_NONE;
  if (depth > FOLLOW_MAX)
    return f;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !f && !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    f = form_of_user(u, n, depth);
  return f;
}

/* Returns the form of a value that v will be fused with, because its loops must agree with v's; FORM_NONE if it has
 * none yet. */
static enum form form_of_fused(MlirValue v, int64_t n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  enum form f = FORM_NONE;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !f && !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation fuse = mlirOpOperandGetOwner(u);
    for (intptr_t k = 0; !f && ir_is(fuse, "nkipy.fuse_op") && k < mlirOperationGetNumOperands(fuse); k++)
      f = form_of_dims(ir_shape(mlirOperationGetOperand(fuse, k), STRUCTURED_LOOPS_MAX, dims), dims, n);
  }
  return f;
}

static enum form fast_form(int64_t n) {
  return n > PREPARE_ROW_MAX && prepare_partitions(n) > 1 ? FORM_SPREAD : FORM_ROW;
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

static struct shape2 choose_shape(struct pass_run *run, MlirOperation op, const struct structured *s, int64_t n) {
  struct layout l = layout_read(ir_result(op));
  const int64_t tile = l.n_loop ? l.loop[0] : l.n_tile ? l.tile[0] : 0;
  bool is_plain_op = !prepare_has_op(run, op, "linalg.index");
  enum form f = form_of_fused(ir_result(op), n);

  for (int o = 0; o < s->n_inputs + s->n_inits; o++)
    is_plain_op &= is_plain(op, s, o, n);
  if (n == 1)
    f = FORM_ROW;
  else if (!f && prepare_has_op(run, op, "tensor.extract")) /* a gather: an index per partition */
    f = FORM_COLUMN;
  else if (!f && tile)
    f = tile <= NISA_PARTITIONS ? FORM_COLUMN : FORM_ROW;
  for (int o = 0; !f && o < s->n_inputs; o++)
    f = form_of_source(mlirOperationGetOperand(op, o), n);
  if (!f)
    f = form_of_users(ir_result(op), n, 0);
  if (!f)
    f = fast_form(n);
  if (f == FORM_SPREAD && (!is_plain_op || tile || prepare_partitions(n) == 1))
    f = FORM_ROW;
  const int64_t p = f == FORM_COLUMN ? n : f == FORM_ROW ? 1 : prepare_partitions(n);
  return (struct shape2){f, {p, n / p}};
}

/* ---- rank 0 and 1 ------------------------------------------------------------------------------------------------ */

static void annotate_2d(MlirValue v, const struct shape2 *to, MlirLocation loc) {
  struct layout l = layout_read(v);
  int64_t *lists[] = {l.loop, l.tile};
  int *counts[] = {&l.n_loop, &l.n_tile};

  if (mlirOperationIsNull(l.layout_op) && mlirOperationIsNull(l.tile_op))
    return;
  for (int i = 0; i < 2; i++) {
    if (*counts[i] != 1)
      continue;
    const int64_t t = lists[i][0];
    lists[i][0] = to->form == FORM_COLUMN ? t : 1;
    lists[i][1] = to->form == FORM_COLUMN ? 1 : t;
    *counts[i] = 2;
  }
  layout_write(v, &l, loc);
}

/* Returns the map of an operand that keeps its shape: loop 0 becomes the loop of form `to` that replaces it. */
static MlirAffineMap renamed(struct ir_builder *b, MlirAffineMap m, const struct shape2 *to) {
  int64_t results[STRUCTURED_LOOPS_MAX];
  const int n = (int)mlirAffineMapGetNumResults(m);

  for (int r = 0; r < n; r++) {
    MlirAffineExpr x = mlirAffineMapGetResult(m, r);
    if (mlirAffineExprIsADim(x))
      results[r] = to->form == FORM_COLUMN ? 0 : 1;
    else
      results[r] = IR_CONST(mlirAffineExprIsAConstant(x) ? mlirAffineConstantExprGetValue(x) : 0);
  }
  return ir_map(b, 2, n, results);
}

static void raise_rank(struct pass_run *run, MlirOperation op, const struct structured *s) {
  assert(s->n_loops < 2);
  const int64_t n = s->n_loops ? s->extents[0] : 1, one[] = {1, 1};
  const struct shape2 to = choose_shape(run, op, s, n);
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];

  for (int o = 0; o < s->n_inputs; o++) {
    bool has_loop = false;
    for (int r = 0; r < mlirAffineMapGetNumResults(s->maps[o]); r++)
      has_loop |= structured_map_loop(s->maps[o], r) == 0;
    maps[o] = has_loop || n == 1 ? ir_identity_map(&b, 2) : ir_map(&b, 2, 2, (int64_t[]){-1, -1});
    MlirValue v = mlirOperationGetOperand(op, o);
    if (is_plain(op, s, o, n))
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, 2, has_loop ? to.dims : one));
    else
      maps[o] = renamed(&b, s->maps[o], &to);
  }
  for (int r = 0; r < s->n_inits; r++) {
    maps[s->n_inputs + r] = ir_identity_map(&b, 2);
    prepare_result(run, op, s, r, 2, to.dims);
    annotate_2d(mlirOperationGetResult(op, r), &to, b.loc);
  }
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s->n_inputs + s->n_inits, maps);
  edit_set_iterators(op, 2, (const bool[]){false, false});
  if (to.form == FORM_ROW)
    edit_shift_indices(run, op, 1);
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

/* Returns v[…, 1, …] copied along dimension p, which gets n elements.  Reuses an earlier copy in the block if there
 * is one. */
static MlirValue broadcast(struct ir_builder *b, MlirValue v, int rank, int64_t *dims, int p, int64_t n) {
  int64_t less[STRUCTURED_LOOPS_MAX];
  assert(dims[p] == 1);
  for (int i = 0, k = 0; i < rank; i++)
    if (i != p)
      less[k++] = dims[i];
  dims[p] = n;
  MlirType type = ir_tensor_of(ir_value_element(v), rank, dims);
  MlirValue narrow = edit_reshape(b, v, rank - 1, less);
  for (MlirOpOperand u = mlirValueGetFirstUse(narrow); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation made = mlirOpOperandGetOwner(u);
    if (ir_is(made, "linalg.broadcast") && mlirTypeEqual(mlirValueGetType(ir_result(made)), type) &&
        mlirBlockEqual(mlirOperationGetBlock(made), b->block) &&
        mlirAttributeEqual(ir_attr(made, "dimensions"), ir_i64_array(b, 1, (int64_t[]){p})) &&
        mlirOperationIsBeforeInBlock(made, b->before))
      return ir_result(made);
  }
  MlirValue empty = ir_empty_of(b, type);
  MlirNamedAttribute attr = ir_named(b, "dimensions", ir_i64_array(b, 1, (int64_t[]){p}));
  return ir_result(ir_linalg_copying(b, "linalg.broadcast", narrow, empty, attr));
}

void prepare_inputs(struct pass_run *run, MlirOperation op, int partition) {
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
    if (results[partition] != partition) {
      v = broadcast(&b, v, s.n_loops, dims, partition, s.extents[partition]);
      results[partition] = partition;
      struct remark *r = pass_remark(run, op, RULE_BROADCAST_TO_PARTITIONS, "input %d is copied to all partitions", o);
      remark_reject(r, "reading it in place", "a lane reads its own partition only");
    }
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
  struct layout l = layout_read(ir_result(op));
  prepare_inputs(run, op, l.partition_dim > 0 && l.partition_dim < s.n_loops ? l.partition_dim : 0);
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
  enum form f = form_of_users(ir_result(fill), n, 0);
  if (!f)
    f = fast_form(n);
  const int64_t p = f == FORM_COLUMN ? n : f == FORM_ROW ? 1 : prepare_partitions(n);
  structured_read(fill, &s);
  prepare_result(run, fill, &s, 0, 2, (int64_t[]){p, n / p});
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
    if (s.kind == SK_REDUCTION)
      prepare_reduction(run, ops.v[i]);
    else
      shape_elementwise(run, ops.v[i]);
  }
  fills = true;
  ops = ir_collect(run->arena, run->module, is_wanted, &fills);
  for (int i = 0; i < ops.n; i++)
    shape_fill(run, ops.v[i]);
}
