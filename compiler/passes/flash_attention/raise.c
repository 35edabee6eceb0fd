/* raise: gives the values of an attention one shape, with the batch dimensions and a column for each row.
 *
 *     %s = batch_matmul %q, %k : [6, M, N]                 %q2 = expand_shape %q : [2, 3, M, K]   (%k the same)
 *     %e = expand_shape %s : [2, 3, M, N]          ==>     %e  = contract %q2, %k2 : [2, 3, M, N]
 *
 *     %r = collapse_shape %sum : [2, 3, M]
 *     %i = reciprocal %r                           ==>     %c = reciprocal %sum : [2, 3, M, 1]
 *     %c = expand_shape %i : [2, 3, M, 1]
 *
 * Earlier stages merge the batch dimensions of products and move element-wise operations before reshapes.  An expand_shape
 * moves up through such operations here, to the collapse_shape that it undoes or to the values from outside.  The second
 * product gets the shape of its weights before the collapse_shape.
 *
 * The old operations stay until the attention is rewritten.  If it is not, attention_lower restores the uses of their
 * results.  Linear in the operations that it looks at, 64 at most for each of them.
 */
#include "base/array.h"
#include "passes/flash_attention/flash_attention.h"
#include "passes/lib/edit.h"

enum { DEPTH_MAX = 64 };

/* ---- what may be raised ------------------------------------------------------------------------------------------ */

static bool has_knob(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

/* Element by element, with every operand in the shape of the result. */
static bool is_pointwise(MlirOperation op, struct structured *s) {
  if (!structured_read(op, s) || !structured_is_elementwise(s) || s->n_inits != 1 ||
      mlirOperationGetNumResults(op) != 1)
    return false;
  for (int k = 0; k <= s->n_inputs; k++)
    if (!mlirAffineMapIsIdentity(s->maps[k]))
      return false;
  for (int k = 0; k < s->n_inputs; k++)
    if (!mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, k))))
      return false;
  return true;
}

static bool is_batched(MlirOperation op, struct product *p) {
  return product_read(op, p) && p->n_batch == 1 && product_dim(p, 0, structured_map_loop(p->s.maps[2], 0)) == 0 &&
         product_dim(p, 1, structured_map_loop(p->s.maps[2], 0)) == 0;
}

/* ---- new operations ---------------------------------------------------------------------------------------------- */

static void note(struct pass_run *run, struct raised *r, MlirValue old, MlirValue made, bool is_replaced) {
  array_push(run->arena, r, (struct raised_value){old, made, is_replaced});
}

/* The shape that values get. */
struct shape {
  int rank;
  int64_t dims[STRUCTURED_LOOPS_MAX];
};

static MlirValue raise(struct pass_run *run, struct raised *r, MlirOperation before, MlirValue v,
                       const struct shape *to, int depth);

/* A product with one batch dimension as one with the batch dimensions of `dims`. */
static MlirValue raise_product(struct pass_run *run, const struct product *p, const struct shape *to) {
  const int more = to->rank - 3, batch = structured_map_loop(p->s.maps[2], 0);
  struct ir_builder b = edit_before(run, p->op);
  int64_t extents[STRUCTURED_LOOPS_MAX], results[STRUCTURED_LOOPS_MAX];
  MlirAttribute maps[3];
  MlirValue operand[2];

  for (int o = 0; o < 3; o++) {
    int n = 0;
    for (int d = 0; d < 3; d++) {
      const int loop = structured_map_loop(p->s.maps[o], d);
      for (int k = 0; k < (loop == batch ? more + 1 : 1); k++, n++) {
        extents[n] = loop == batch ? to->dims[k] : p->s.extents[loop];
        results[n] = loop == batch ? k : loop + more + (loop < batch);
      }
    }
    maps[o] = mlirAffineMapAttrGet(ir_map(&b, p->s.n_loops + more, n, results));
    if (o < 2)
      operand[o] = edit_reshape(&b, mlirOperationGetOperand(p->op, o), n, extents);
  }
  MlirValue out = ir_empty_of(&b, ir_tensor_of(ir_value_element(ir_result(p->op)), to->rank, to->dims));
  MlirNamedAttribute attr = ir_named(&b, "indexing_maps", mlirArrayAttrGet(b.ctx, 3, maps));
  return ir_result(ir_linalg_named(&b, "linalg.contract", 2, operand, out, 1, &attr));
}

static MlirValue raise_pointwise(struct pass_run *run, struct raised *r, MlirOperation op, const struct structured *s,
                                 const struct shape *to, int depth) {
  MlirValue operand[STRUCTURED_OPERANDS_MAX];
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  const bool parallel[STRUCTURED_LOOPS_MAX] = {false};

  for (int k = 0; k < s->n_inputs; k++)
    operand[k] = raise(run, r, op, mlirOperationGetOperand(op, k), to, depth - 1);
  struct ir_builder b = edit_before(run, op);
  MlirType type = ir_tensor_of(ir_value_element(ir_result(op)), to->rank, to->dims);
  operand[s->n_inputs] = ir_empty_of(&b, type);
  MlirOperation made = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(b.block, op, made);
  for (int k = 0; k <= s->n_inputs; k++) {
    mlirOperationSetOperand(made, k, operand[k]);
    maps[k] = ir_identity_map(&b, to->rank);
  }
  mlirValueSetType(ir_result(made), type);
  if (ir_is(made, "linalg.generic")) {
    edit_set_maps(made, s->n_inputs + 1, maps);
    edit_set_iterators(made, to->rank, parallel);
  }
  return ir_result(made);
}

static bool ends_alike(const struct shape *to, const int64_t *matrices) {
  return to->rank > 3 && to->dims[to->rank - 2] == matrices[1] && to->dims[to->rank - 1] == matrices[2];
}

/* Returns v in another shape, for operations from `before` on.  A product or an element-wise operation that computes v is
 * repeated in that shape. */
static MlirValue raise(struct pass_run *run, struct raised *r, MlirOperation before, MlirValue v,
                       const struct shape *to, int depth) {
  MlirOperation def = ir_defining_op(v);
  int64_t now[STRUCTURED_LOOPS_MAX];
  MlirValue made = {NULL};
  struct structured s;
  struct product p;

  for (int k = 0; k < r->n; k++) /* more than one operation may read it */
    if (mlirValueEqual(r->v[k].old, v))
      return r->v[k].made;
  const int n = ir_shape(v, STRUCTURED_LOOPS_MAX, now);
  if (!mlirOperationIsNull(def) && depth && !has_knob(v)) {
    if (n == 3 && ends_alike(to, now) && is_batched(def, &p))
      made = raise_product(run, &p, to);
    else if (is_pointwise(def, &s))
      made = raise_pointwise(run, r, def, &s, to, depth);
  }
  if (!mlirValueIsNull(made)) {
    note(run, r, v, made, false);
    return made;
  }
  struct ir_builder b = edit_before(run, before);
  return edit_reshape(&b, v, to->rank, to->dims);
}

/* ---- the attention ----------------------------------------------------------------------------------------------- */

/* The operations from the weights up to a product. */
struct walk {
  struct pass_run *run;
  MlirBlock block;
  struct ir_ops seen, reshapes; /* reshapes: the expand_shapes, each after those that it depends on */
  bool has_product, has_exp;
};

static void walk_up(struct walk *w, MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct structured s;
  struct product p;

  if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), w->block) || w->seen.n == DEPTH_MAX * 2)
    return;
  for (int k = 0; k < w->seen.n; k++)
    if (mlirOperationEqual(w->seen.v[k], def))
      return;
  array_push(w->run->arena, &w->seen, def);
  if (product_read(def, &p)) {
    w->has_product = true;
    return;
  }
  const bool expands = ir_is(def, "tensor.expand_shape");
  w->has_exp |= ir_is(def, "linalg.exp");
  if (expands || ir_is(def, "tensor.collapse_shape"))
    walk_up(w, mlirOperationGetOperand(def, 0));
  else if (structured_read(def, &s) && s.kind != SK_FILL && s.kind != SK_TRANSPOSE && s.kind != SK_BROADCAST)
    for (int o = 0; o < s.n_inputs; o++)
      walk_up(w, mlirOperationGetOperand(def, o));
  if (expands)
    array_push(w->run->arena, &w->reshapes, def);
}

/* An expand_shape of something that the attention computes: of products and what is computed from them element by element, or of
 * one element for each query. */
static void raise_reshape(struct walk *w, struct raised *r, MlirOperation expand) {
  MlirValue from = mlirOperationGetOperand(expand, 0), to = ir_result(expand);
  MlirOperation def = ir_defining_op(from);
  int64_t now[STRUCTURED_LOOPS_MAX];
  struct shape shape;
  struct structured s;
  struct product p;

  shape.rank = ir_shape(to, STRUCTURED_LOOPS_MAX, shape.dims);
  if (mlirOperationIsNull(def) || has_knob(from) || has_knob(to) || shape.rank < 2)
    return;
  const bool is_row = shape.dims[shape.rank - 1] == 1, has_form = is_pointwise(def, &s) || is_batched(def, &p);
  ir_shape(from, STRUCTURED_LOOPS_MAX, now);
  if (!has_form || (is_row ? !is_pointwise(def, &s)
                           : mlirShapedTypeGetRank(mlirValueGetType(from)) != 3 || !ends_alike(&shape, now)))
    return;
  MlirValue made = raise(w->run, r, expand, from, &shape, DEPTH_MAX);
  mlirValueReplaceAllUsesOfWith(to, made);
  note(w->run, r, to, made, true);
}

/* The expand_shape to this shape that ends what is computed from v alone, element by element; null if there is none. */
static MlirOperation expand_after(MlirValue v, const struct shape *to) {
  MlirOperation none = {NULL};
  struct structured s;

  for (int k = 0; k <= ATTENTION_EPILOGUE_MAX; k++) {
    MlirOperation op = ir_only_user(v);
    if (mlirOperationIsNull(op))
      return none;
    if (ir_is(op, "tensor.expand_shape")) {
      MlirType want = ir_tensor_of(ir_value_element(v), to->rank, to->dims);
      return mlirTypeEqual(mlirValueGetType(ir_result(op)), want) && !has_knob(ir_result(op)) ? op : none;
    }
    if (!is_pointwise(op, &s) || s.n_inputs != 1)
      return none;
    v = ir_result(op);
  }
  return none;
}

/* Raises the second product to the shape of its weights, and the reshapes of its result with it.  Returns the product. */
static MlirOperation raise_mixed(struct pass_run *run, struct raised *r, MlirOperation mixed) {
  MlirOperation collapse = ir_defining_op(mlirOperationGetOperand(mixed, 0));
  MlirValue old = ir_result(mixed);
  int64_t now[STRUCTURED_LOOPS_MAX];
  struct shape to;
  struct product p;

  if (mlirOperationIsNull(collapse) || !ir_is(collapse, "tensor.collapse_shape") || has_knob(old) ||
      !is_batched(mixed, &p))
    return mixed;
  to.rank = ir_shape(mlirOperationGetOperand(collapse, 0), STRUCTURED_LOOPS_MAX, to.dims);
  ir_shape(ir_result(collapse), STRUCTURED_LOOPS_MAX, now);
  if (!ends_alike(&to, now) || product_dim(&p, 0, p.m) != 1)
    return mixed;
  to.dims[to.rank - 1] = p.s.extents[p.n];
  MlirOperation end = expand_after(old, &to);
  if (!mlirOperationIsNull(end)) {
    MlirValue all = raise(run, r, end, mlirOperationGetOperand(end, 0), &to, DEPTH_MAX);
    mlirValueReplaceAllUsesOfWith(ir_result(end), all);
    note(run, r, ir_result(end), all, true);
    return ir_defining_op(raise(run, r, end, old, &to, 0)); /* it was noted */
  }
  MlirValue made = raise_product(run, &p, &to);
  struct ir_builder b = edit_after(run, ir_defining_op(made));
  ir_shape(old, STRUCTURED_LOOPS_MAX, now);
  MlirValue flat = edit_reshape(&b, made, 3, now);
  note(run, r, old, flat, true);
  for (MlirOpOperand u = mlirValueGetFirstUse(old); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!ir_is(user, "tensor.expand_shape") ||
        !mlirTypeEqual(mlirValueGetType(ir_result(user)), mlirValueGetType(made)))
      continue;
    mlirValueReplaceAllUsesOfWith(ir_result(user), made);
    note(run, r, ir_result(user), made, true);
  }
  mlirValueReplaceAllUsesOfWith(old, flat);
  return ir_defining_op(made);
}

MlirOperation attention_raise(struct pass_run *run, MlirOperation mixed, struct raised *out) {
  struct walk w = {.run = run, .block = mlirOperationGetBlock(mixed)};

  *out = (struct raised){0};
  walk_up(&w, mlirOperationGetOperand(mixed, 0));
  if (!w.has_product || !w.has_exp)
    return mixed;
  for (int k = 0; k < w.reshapes.n; k++)
    raise_reshape(&w, out, w.reshapes.v[k]);
  return raise_mixed(run, out, mixed);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

static bool is_old(const struct raised *r, MlirOperation op) {
  for (int k = 0; k < r->n; k++)
    if (mlirOperationEqual(ir_defining_op(r->v[k].old), op))
      return true;
  return false;
}

bool attention_is_replaced(const struct raised *r, MlirOperation op) {
  if (is_old(r, op))
    return true;
  if (!r->n || (!ir_is(op, "tensor.collapse_shape") && !ir_is(op, "tensor.expand_shape")))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!is_old(r, mlirOpOperandGetOwner(u)))
      return false;
  return true;
}

void attention_keep_raised(struct pass_run *run, struct raised *r) {
  for (int k = r->n - 1; k >= 0; k--)
    edit_erase_unused(run->arena, ir_defining_op(r->v[k].old));
  r->n = 0;
}

void attention_lower(struct pass_run *run, struct raised *r) {
  for (int k = 0; k < r->n; k++)
    if (r->v[k].is_replaced)
      mlirValueReplaceAllUsesOfWith(r->v[k].made, r->v[k].old);
  for (int k = r->n - 1; k >= 0; k--) {
    bool is_erased = false;
    for (int j = k + 1; j < r->n; j++)
      is_erased |= mlirValueEqual(r->v[j].made, r->v[k].made);
    if (!is_erased)
      edit_erase_unused(run->arena, ir_defining_op(r->v[k].made));
  }
  r->n = 0;
}
