/* body: compiles the body of a generic to a sequence of instructions.
 *
 *     %t = arith.mulf %a, %b                       nisa.alloc t
 *     %u = math.exp %t                     ==>     tensor_tensor_arith(t, a, b, multiply)
 *     linalg.yield %u                              activation(out, t, exp); nisa.release t
 *
 * Each operation covers the whole tile at once.  A value that all elements share stays a scalar.  linalg.index, and
 * values that are linear in it, stay formulas until an instruction needs them as data.  A value has only the loops
 * that it depends on.  The last operation writes the result; the others write buffers in SBUF, which are released
 * after their last use.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- values ----------------------------------------------------------------------------------------------------- */

void ln_define(struct ln_body *b, struct ln_value value) {
  array_push(&b->w->ln->scratch, &b->values, value);
}

static struct ln_value *find(struct ln_body *b, MlirValue v) {
  for (int k = 0; k < b->values.n; k++)
    if (mlirValueEqual(b->values.v[k].v, v))
      return &b->values.v[k];
  return NULL;
}

struct ln_value *ln_value_of(struct ln_body *b, MlirValue v) {
  struct ln_value *x = find(b, v);
  struct ln_view *cell;
  if (x)
    return x;
  MlirValue at = ln_buffer(b->w->ln, v); /* a scalar that was loaded from memory is in a cell */
  if (!mlirValueEqual(at, v) && !ln_trace_element(b->w, at, 0, NULL, &cell))
    ln_define(b, (struct ln_value){.v = v, .kind = LN_MANY, .at = cell});
  else
    ln_define(b, (struct ln_value){.v = v, .kind = LN_ONE, .one = v});
  return &b->values.v[b->values.n - 1];
}

MlirType ln_storage(MlirType t) {
  MlirContext ctx = mlirTypeGetContext(t);
  if (mlirTypeIsAIndex(t))
    return mlirIntegerTypeGet(ctx, 32);
  if (nisa_element_bytes(t) == 0 || nisa_element_bytes(t) > 4)
    return (MlirType){NULL};
  return t;
}

enum status ln_target(struct ln_body *b, MlirValue result, ln_atoms atoms, struct ln_view **out) {
  if (!mlirValueIsNull(b->sink) && mlirValueEqual(result, b->sink)) {
    assert(b->dst);
    *out = b->dst;
  } else {
    MlirType t = ln_storage(mlirValueGetType(result));
    if (mlirTypeIsNull(t))
      return ln_fail(b->w->ln, "no engine computes on a type as wide as this");
    *out = ln_temp(b->w, t, MEM_SBUF, b->par, atoms | b->par);
  }
  ln_define(b, (struct ln_value){.v = result, .kind = LN_MANY, .at = *out});
  return ST_OK;
}

enum status ln_iota(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_form *position) {
  struct ln *ln = w->ln;
  struct ir_builder *b = &ln->b;
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst));
  struct nisa_access x[2];
  int64_t coef[NISA_TILE_MAX] = {0};

  enum status st = ln_access(w, dst, &s, &x[0]);
  if (st)
    return st;
  for (int k = 0; k < s.n; k++)
    for (int t = 0; t < position->n; t++)
      if (position->term[t].atom == s.atom[k]) /* a tile without partitions starts with an extra 1 */
        coef[k + (s.n_par == 0)] = position->term[t].coef;
  MlirValue offset = ir_index(b, position->constant);
  if (!mlirValueIsNull(position->offset))
    offset = position->constant ? ir_binary(b, "arith.addi", position->offset, offset) : position->offset;
  x[1] = ln_scalar(offset);
  const struct ln_attr attrs[] = {{"coefficients", ir_i64_array(b, x[0].n_dims, coef)}, {NULL, {NULL}}};
  ln_emit(ln, NISA_IOTA, NISA_ENGINE_GPSIMD, x, attrs);
  return ST_OK;
}

enum status ln_materialize(struct ln_body *b, struct ln_value *x, struct ln_view **out) {
  struct ln_walk *w = b->w;
  enum status st = ST_OK;

  if (x->kind == LN_MANY) {
    struct ln_view *staged;
    st = ln_stage(w, x->at, b->par, &staged);
    x->at = *out = staged;
    return st;
  }
  MlirType t = ln_storage(mlirValueGetType(x->v));
  ln_atoms atoms = b->par;
  if (mlirTypeIsNull(t)) /* positions may pass through i64 */
    t = mlirIntegerTypeGet(w->ln->b.ctx, 32);
  if (x->kind == LN_POSITION)
    atoms |= ln_form_atoms(&x->position);
  struct ln_view *v = ln_temp(w, t, MEM_SBUF, b->par, atoms);
  st = x->kind == LN_ONE ? ln_set(w, v, x->one) : ln_iota(w, b->par, v, &x->position);
  x->kind = LN_MANY;
  x->at = *out = v;
  return st;
}

/* ---- lifetimes -------------------------------------------------------------------------------------------------- */

/* True if an operation after `at` in the block uses v. */
static bool is_used_after(struct ln_body *b, MlirOperation at, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!mlirBlockEqual(mlirOperationGetBlock(user), b->block))
      continue;
    for (MlirOperation op = mlirOperationGetNextInBlock(at); !mlirOperationIsNull(op);
         op = mlirOperationGetNextInBlock(op))
      if (mlirOperationEqual(op, user))
        return true;
  }
  return false;
}

static void release(struct ln_body *b, struct ln_view *v) {
  ln_release(b->w->ln, v);
  v->is_temp = false;
}

/* Releases the buffers with values that no operation after `at` needs. */
static void release_dead(struct ln_body *b, MlirOperation at) {
  for (int k = 0; k < b->values.n; k++) {
    struct ln_view *v = b->values.v[k].kind == LN_MANY ? b->values.v[k].at : NULL;
    bool live = false;
    if (!v || !v->is_temp)
      continue;
    for (int j = 0; j < b->values.n && !live; j++)
      live = b->values.v[j].kind == LN_MANY && b->values.v[j].at == v && is_used_after(b, at, b->values.v[j].v);
    if (!live)
      release(b, v);
  }
}

void ln_body_finish(struct ln_body *b) {
  for (int k = 0; k < b->values.n; k++)
    if (b->values.v[k].kind == LN_MANY && b->values.v[k].at->is_temp)
      release(b, b->values.v[k].at);
}

/* ---- operations that make no data ------------------------------------------------------------------------------- */

static bool is_pure_scalar(MlirOperation op) {
  return mlirOperationGetNumResults(op) == 1 && !mlirOperationGetNumRegions(op) &&
         (ir_is_of(op, "arith.") || ir_is_of(op, "math."));
}

/* Moves an operation on scalars before the generic, so that it is executed once. */
static void hoist(struct ln_body *b, MlirOperation op) {
  MlirOperation copy = mlirOperationClone(op);
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    const struct ln_value *x = ln_value_of(b, mlirOperationGetOperand(op, k));
    assert(x->kind == LN_ONE);
    mlirOperationSetOperand(copy, k, x->one);
  }
  ln_insert(b->w->ln, copy);
  ln_define(
      b, (struct ln_value){.v = mlirOperationGetResult(op, 0), .kind = LN_ONE, .one = mlirOperationGetResult(copy, 0)});
}

static bool all_one(struct ln_body *b, MlirOperation op) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    if (ln_value_of(b, mlirOperationGetOperand(op, k))->kind != LN_ONE)
      return false;
  return true;
}

static bool is_wide_integer(MlirType t) {
  return mlirTypeIsAIndex(t) || (mlirTypeIsAInteger(t) && mlirIntegerTypeGetWidth(t) >= 32);
}

/* Sets *out to v as a formula: a position, a constant, or an index that all elements share.  False if v is none of
 * these. */
static bool position_of(struct ln_body *b, MlirValue v, struct ln_form *out) {
  struct ln_value *x = ln_value_of(b, v);
  if (x->kind == LN_MANY)
    return false;
  *out = x->position;
  if (x->kind == LN_ONE) {
    *out = (struct ln_form){.n = 0};
    if (!ir_int_constant(x->one, &out->constant)) {
      if (!mlirTypeIsAIndex(mlirValueGetType(x->one)))
        return false;
      out->offset = x->one;
    }
  }
  return true;
}

static void scale(struct ln_body *b, struct ln_form *f, int64_t c) {
  f->constant *= c;
  for (int k = 0; k < f->n; k++)
    f->term[k].coef *= c;
  if (!mlirValueIsNull(f->offset))
    f->offset = ir_binary(&b->w->ln->b, "arith.muli", f->offset, ir_index(&b->w->ln->b, c));
}

/* Defines the result of op as a position if it is a sum, a multiple or a cast of positions. */
static bool fold_position(struct ln_body *b, MlirOperation op) {
  MlirValue r = mlirOperationGetResult(op, 0);
  struct ln_form f, g;

  if (!is_wide_integer(mlirValueGetType(r)) || !position_of(b, mlirOperationGetOperand(op, 0), &f))
    return false;
  if (ir_is(op, "arith.addi") || ir_is(op, "arith.subi") || ir_is(op, "arith.muli")) {
    if (!position_of(b, mlirOperationGetOperand(op, 1), &g))
      return false;
    if (ir_is(op, "arith.muli")) {
      const bool g_is_number = !g.n && mlirValueIsNull(g.offset), f_is_number = !f.n && mlirValueIsNull(f.offset);
      if (!g_is_number && !f_is_number)
        return false;
      struct ln_form *number = g_is_number ? &g : &f, *other = g_is_number ? &f : &g;
      scale(b, other, number->constant);
      f = *other;
    } else {
      if (ir_is(op, "arith.subi"))
        scale(b, &g, -1);
      ln_add_form(&b->w->ln->b, &f, &g, 1);
    }
  } else if (!ir_is(op, "arith.index_cast") && !ir_is(op, "arith.index_castui") && !ir_is(op, "arith.extsi") &&
             !ir_is(op, "arith.extui") && !ir_is(op, "arith.trunci")) {
    return false;
  }
  ln_define(b, (struct ln_value){.v = r, .kind = LN_POSITION, .position = f});
  return true;
}

/* ---- the body --------------------------------------------------------------------------------------------------- */

static enum status compile_op(struct ln_body *b, MlirOperation op) {
  if (mlirOperationGetNumResults(op) != 1)
    return ln_fail(b->w->ln, "its body has more than plain arithmetic");
  MlirValue r = mlirOperationGetResult(op, 0);
  if (find(b, r) || ln_is_absorbed(op))
    return ST_OK;
  if (ir_is(op, "linalg.index")) {
    MlirAttribute dim = ir_attr(op, "dim");
    struct ln_form f = ln_loop_form(b->w, (int)mlirIntegerAttrGetValueInt(dim));
    ln_define(b, (struct ln_value){.v = r, .kind = LN_POSITION, .position = f});
    return ST_OK;
  }
  if (ir_is(op, "memref.load"))
    return ln_gather(b, op);
  if (!is_pure_scalar(op))
    return ln_fail(b->w->ln, "its body has %s", mlirIdentifierStr(mlirOperationGetName(op)).data);
  if (all_one(b, op)) {
    hoist(b, op);
    return ST_OK;
  }
  return fold_position(b, op) ? ST_OK : ln_apply(b, op);
}

enum status ln_compile_body(struct ln_body *b, MlirOperation until) {
  for (MlirOperation op = mlirBlockGetFirstOperation(b->block); !mlirOperationEqual(op, until);
       op = mlirOperationGetNextInBlock(op)) {
    enum status st = compile_op(b, op);
    if (st)
      return st;
    release_dead(b, op);
  }
  return ST_OK;
}
