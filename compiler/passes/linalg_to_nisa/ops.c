/* ops: compiles one scalar operation of a body, for a whole tile.
 *
 *   two operands      tensor_tensor_arith; tensor_scalar_arith if one is a scalar or has one element per partition;
 *                     tensor_tensor_power.  gpsimd if integers have to stay integers, otherwise vector
 *   function          activation; 1/x is reciprocal, -x a multiplication; angles: angles.c
 *   conversion        convert.c
 *   comparison        compare.c
 *
 * GpSimd cannot access PSUM, and vector reads at most one operand there; other operands are copied to SBUF first.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

#define N(a) (int)(sizeof(a) / sizeof(a)[0])

/* ---- two operands ----------------------------------------------------------------------------------------------- */

static bool is_bool(MlirType t) {
  return mlirTypeIsAInteger(t) && mlirIntegerTypeGetWidth(t) == 1;
}

const char *ln_operator(MlirOperation op, bool *is_unsigned) {
  static const struct {
    const char *name, *op;
    bool is_unsigned;
  } table[] = {
      {"arith.addf", "add", 0},
      {"arith.addi", "add", 0},
      {"arith.subf", "subtract", 0},
      {"arith.subi", "subtract", 0},
      {"arith.mulf", "multiply", 0},
      {"arith.muli", "multiply", 0},
      {"arith.divf", "divide", 0},
      {"arith.maximumf", "max", 0},
      {"arith.minimumf", "min", 0},
      {"arith.maxsi", "max", 0},
      {"arith.minsi", "min", 0},
      {"arith.maxui", "max", 1},
      {"arith.minui", "min", 1},
      {"arith.remf", "mod", 0},
      {"arith.divsi", "divide_int", 0},
      {"arith.divui", "divide_int", 1},
      {"arith.remsi", "mod_int", 0},
      {"arith.remui", "mod_int", 1},
      {"arith.shli", "shift_left", 0},
      {"arith.shrsi", "shift_right_arith", 0},
      {"arith.shrui", "shift_right_logical", 0},
      {"math.powf", "pow", 0},
      {"math.ipowi", "pow", 0},
  };
  *is_unsigned = false;
  for (int k = 0; k < N(table); k++)
    if (ir_is(op, table[k].name)) {
      *is_unsigned = table[k].is_unsigned;
      return table[k].op;
    }
  const bool logical = mlirOperationGetNumResults(op) && is_bool(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (ir_is(op, "arith.andi"))
    return logical ? "logical_and" : "bitwise_and";
  if (ir_is(op, "arith.ori"))
    return logical ? "logical_or" : "bitwise_or";
  if (ir_is(op, "arith.xori"))
    return logical ? "logical_xor" : "bitwise_xor";
  return NULL;
}

static bool is_comparison(const char *op) {
  return !strncmp(op, "is_", 3);
}

static bool is_bitwise(const char *op) {
  return !strncmp(op, "bitwise_", 8) || !strncmp(op, "logical_", 8) || !strncmp(op, "shift_", 6);
}

static bool is_commutative(const char *op) {
  return !strcmp(op, "add") || !strcmp(op, "multiply") || !strcmp(op, "max") || !strcmp(op, "min") ||
         !strcmp(op, "is_eq") || !strcmp(op, "is_ne") || !strncmp(op, "bitwise_", 8) || !strncmp(op, "logical_", 8);
}

static bool needs_integers(const struct ln_arg *x) {
  MlirType t = x->view ? x->view->element : mlirValueGetType(x->scalar);
  return mlirTypeIsAInteger(t) && mlirIntegerTypeGetWidth(t) > 16;
}

/* Vector computes in f32, which represents integers up to 16 bits exactly but does not wrap around. */
static enum nisa_engine engine_for(const char *op, const struct ln_view *dst, const struct ln_arg *x,
                                   const struct ln_arg *y) {
  if (!strcmp(op, "pow"))
    return NISA_ENGINE_GPSIMD;
  if (is_bitwise(op))
    return NISA_ENGINE_VECTOR;
  if (needs_integers(x) || needs_integers(y) || (mlirTypeIsAInteger(dst->element) && !is_comparison(op)))
    return NISA_ENGINE_GPSIMD;
  return NISA_ENGINE_VECTOR;
}

/* Replaces *v, which is in PSUM, by a copy in SBUF. */
static enum status into_sbuf(struct ln_walk *w, const struct ln_view **v, const struct ln_view **temp) {
  *temp = ln_temp(w, (*v)->element, MEM_SBUF, ln_partition_atoms(*v), ln_view_atoms(*v));
  const struct ln_view *src = *v;
  *v = *temp;
  return ln_move(w, *temp, src, false);
}

static bool is_in_psum(const struct ln_arg *x) {
  return x->view && x->view->space == MEM_PSUM;
}

static bool is_per_partition(const struct ln_view *v, ln_atoms par) {
  return !(ln_view_atoms(v) & ~par);
}

static enum status emit_arith(struct ln_walk *w, ln_atoms par, const char *op, enum nisa_engine engine,
                              const struct ln_view *dst, struct ln_arg x, struct ln_arg y, bool is_unsigned) {
  struct ln *ln = w->ln;
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst)), column = ln_shape_of(w, par, par);
  struct ln_attr attrs[4] = {{"op", ln_text(ln, op)}};
  struct nisa_access o[4] = {{.n_dims = 0}};
  enum status st = ln_access(w, dst, &s, &o[0]);
  bool swapped = false;

  /* make the side with one element per partition, or none, the scalar */
  if (!x.view || (y.view && is_per_partition(x.view, par) && !is_per_partition(y.view, par))) {
    struct ln_arg t = x;
    x = y;
    y = t;
    swapped = true;
  }
  assert(x.view);
  const bool tensors = y.view && !(is_per_partition(y.view, par) && !is_per_partition(dst, par));
  if (!st)
    st = ln_access(w, x.view, &s, &o[1]);
  if (y.view && !st)
    st = ln_access(w, y.view, tensors ? &s : &column, &o[2]);
  if (!y.view)
    o[2] = ln_scalar(y.scalar);
  if (st)
    return st;
  int n = 1;
  if (tensors && swapped) {
    struct nisa_access t = o[1];
    o[1] = o[2];
    o[2] = t;
  }
  if (tensors && !strcmp(op, "pow")) {
    ln_emit(ln, NISA_TENSOR_TENSOR_POWER, engine, o, NULL);
    return ST_OK;
  }
  if (!tensors) {
    attrs[0].name = "op0";
    attrs[n++] = (struct ln_attr){"reverse_operands", ln_text(ln, swapped && !is_commutative(op) ? "first" : "none")};
  }
  if (is_unsigned)
    attrs[n++] = (struct ln_attr){"unsigned", mlirUnitAttrGet(ln->b.ctx)};
  ln_emit(ln, tensors ? NISA_TENSOR_TENSOR_ARITH : NISA_TENSOR_SCALAR_ARITH, engine, o, attrs);
  return ST_OK;
}

enum status ln_arith(struct ln_walk *w, ln_atoms par, const char *op, const struct ln_view *dst, struct ln_arg x,
                     struct ln_arg y, bool is_unsigned) {
  enum nisa_engine engine = engine_for(op, dst, &x, &y);
  const struct ln_view *tx = NULL, *ty = NULL, *td = NULL, *to = dst;
  enum status st = ST_OK;
  const bool gpsimd = engine == NISA_ENGINE_GPSIMD;

  if (is_in_psum(&x) && (gpsimd || is_in_psum(&y)))
    st = into_sbuf(w, &x.view, &tx);
  if (!st && is_in_psum(&y) && gpsimd)
    st = into_sbuf(w, &y.view, &ty);
  if (!st && gpsimd && dst->space == MEM_PSUM)
    to = td = ln_temp(w, dst->element, MEM_SBUF, par, ln_view_atoms(dst));
  if (!st)
    st = emit_arith(w, par, op, engine, to, x, y, is_unsigned);
  if (!st && td)
    st = ln_move(w, dst, td, false);
  ln_release(w->ln, td);
  ln_release(w->ln, ty);
  ln_release(w->ln, tx);
  return st;
}

enum status ln_two_ops(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *x,
                       const char *op0, double c0, bool reverse0, const char *op1, double c1) {
  struct ln *ln = w->ln;
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst));
  MlirType f32 = mlirF32TypeGet(ln->b.ctx);
  struct nisa_access o[4] = {{.n_dims = 0}};
  const struct ln_attr attrs[] = {{"op0", ln_text(ln, op0)},
                                  {"op1", ln_text(ln, op1)},
                                  {"reverse_operands", ln_text(ln, reverse0 ? "first" : "none")},
                                  {NULL, {NULL}}};

  enum status st = ln_access(w, dst, &s, &o[0]);
  if (!st)
    st = ln_access(w, x, &s, &o[1]);
  if (st)
    return st;
  o[2] = ln_scalar(ir_float(&ln->b, f32, c0));
  o[3] = ln_scalar(ir_float(&ln->b, f32, c1));
  ln_emit(ln, NISA_TENSOR_SCALAR_ARITH, NISA_ENGINE_VECTOR, o, attrs);
  return ST_OK;
}

/* ---- operands and results in a body ----------------------------------------------------------------------------- */

static MlirValue operand(MlirOperation op, int k) {
  return mlirOperationGetOperand(op, k);
}

/* Converts an index scalar to i32, because the data that it is combined with is stored as i32. */
static MlirValue storable(struct ln_body *b, MlirValue v) {
  MlirType t = mlirValueGetType(v);
  int64_t c;
  if (!mlirTypeIsAIndex(t))
    return v;
  struct ir_builder *at = &b->w->ln->b;
  MlirType i32 = mlirIntegerTypeGet(at->ctx, 32);
  return ir_int_constant(v, &c) ? ir_int(at, i32, c) : ir_op1(at, "arith.index_cast", i32, 1, &v);
}

enum status ln_arg_of(struct ln_body *b, MlirValue v, struct ln_arg *out) {
  struct ln_value *x = ln_value_of(b, v);
  *out = (struct ln_arg){.view = NULL};
  if (x->kind == LN_ONE) {
    out->scalar = storable(b, x->one);
    return ST_OK;
  }
  struct ln_view *view;
  enum status st = ln_materialize(b, x, &view);
  out->view = view;
  return st;
}

/* These conversions are free: 1 or 0 to any number, f32 to a narrower float. */
MlirValue ln_converted_result(MlirOperation op) {
  MlirValue r = mlirOperationGetResult(op, 0);
  MlirOperation user = ir_only_user(r);

  if (mlirOperationIsNull(user) || mlirOperationGetNumResults(user) != 1)
    return r;
  const bool compares = ir_is(op, "arith.cmpf") || ir_is(op, "arith.cmpi");
  if (compares && (ir_is(user, "arith.uitofp") || ir_is(user, "arith.extui")))
    return mlirOperationGetResult(user, 0);
  const bool computes = mlirTypeIsAF32(mlirValueGetType(r)) && !ir_is(op, "arith.select");
  return computes && ir_is(user, "arith.truncf") ? mlirOperationGetResult(user, 0) : r;
}

struct ln_view *ln_temp_like(struct ln_body *b, MlirType t, ln_atoms atoms) {
  return ln_temp(b->w, t, MEM_SBUF, b->par, atoms | b->par);
}

struct ln_arg ln_number_arg(struct ln_body *b, MlirType t, double v) {
  struct ir_builder *at = &b->w->ln->b;
  return (struct ln_arg){.scalar = mlirTypeIsAFloat(t) ? ir_float(at, t, v) : ir_int(at, t, (int64_t)v)};
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

enum status ln_activate(struct ln_walk *w, ln_atoms par, const char *function, const struct ln_view *dst,
                        const struct ln_view *src, bool is_unsigned) {
  struct ln *ln = w->ln;
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst));
  MlirType f32 = mlirF32TypeGet(ln->b.ctx);
  struct nisa_access o[6] = {{.n_dims = 0}};
  const struct ln_attr attrs[] = {
      {"op", ln_text(ln, function)}, {is_unsigned ? "unsigned" : NULL, mlirUnitAttrGet(ln->b.ctx)}, {NULL, {NULL}}};

  enum status st = ln_access(w, dst, &s, &o[0]);
  if (!st)
    st = ln_access(w, src, &s, &o[2]);
  if (st)
    return st;
  const bool keeps_zero = !strcmp(function, "reciprocal") || !strcmp(function, "round_even"); /* -0 + 0 would be 0 */
  o[3] = ln_scalar(ir_float(&ln->b, f32, keeps_zero ? -0.0 : 0));
  o[4] = ln_scalar(ir_float(&ln->b, f32, 1));
  ln_emit(ln, NISA_ACTIVATION, NISA_ENGINE_SCALAR, o, attrs);
  return ST_OK;
}

enum status ln_reciprocal(struct ln_walk *w, ln_atoms par, const struct ln_view *dst, const struct ln_view *src) {
  enum { SHORT = 8 }; /* of these few elements per partition, Vector's reciprocal is ready first */
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst));
  struct nisa_access o[2];

  if (ln_extent(w, ln_view_atoms(dst) & ~par) > SHORT)
    return ln_activate(w, par, "reciprocal", dst, src, false);
  enum status st = ln_access(w, dst, &s, &o[0]);
  if (!st)
    st = ln_access(w, src, &s, &o[1]);
  if (!st)
    ln_emit(w->ln, NISA_RECIPROCAL, NISA_ENGINE_VECTOR, o, NULL);
  return st;
}

static const char *function_of(MlirOperation op) {
  static const char *const table[][2] = {
      {"math.exp", "exp"},     {"math.log", "log"},   {"math.sqrt", "sqrt"},   {"math.rsqrt", "rsqrt"},
      {"math.tanh", "tanh"},   {"math.sin", "sin"},   {"math.erf", "erf"},     {"math.absf", "abs"},
      {"math.floor", "floor"}, {"math.ceil", "ceil"}, {"math.round", "round"}, {"math.roundeven", "round_even"},
      {"math.trunc", "trunc"},
  };
  MlirAttribute marked = ir_attr(op, "nkipy.function");
  if (!mlirAttributeIsNull(marked)) /* functions.c */
    return mlirStringAttrGetValue(marked).data;
  for (int k = 0; k < N(table); k++)
    if (ir_is(op, table[k][0]))
      return table[k][1];
  return NULL;
}

static enum status apply_absi(struct ln_body *b, const struct ln_view *dst, const struct ln_view *src) {
  struct ln_view *minus = ln_temp_like(b, src->element, ln_view_atoms(src));
  enum status st = ln_arith(b->w, b->par, "subtract", minus, ln_number_arg(b, src->element, 0), ln_data(src), false);
  if (!st)
    st = ln_arith(b->w, b->par, "max", dst, ln_data(src), ln_data(minus), false);
  ln_release(b->w->ln, minus);
  return st;
}

static enum status apply_unary(struct ln_body *b, MlirOperation op) {
  struct ln_arg x;
  struct ln_view *dst;
  enum status st = ln_arg_of(b, operand(op, 0), &x);
  if (!st)
    st = ln_target(b, ln_converted_result(op), ln_arg_atoms(&x), &dst);
  if (st)
    return st;
  if (ir_is(op, "arith.negf"))
    return ln_arith(b->w, b->par, "multiply", dst, x, ln_number_arg(b, mlirValueGetType(operand(op, 0)), -1), false);
  if (ir_is(op, "math.cos"))
    return ln_cos(b, dst, x.view);
  if (ir_is(op, "math.atan"))
    return ln_arctan2(b, dst, x, ln_number_arg(b, mlirF32TypeGet(b->w->ln->b.ctx), 1));
  if (ir_is(op, "math.absi"))
    return apply_absi(b, dst, x.view);
  return ln_activate(b->w, b->par, function_of(op), dst, x.view, false);
}

/* ---- sign ------------------------------------------------------------------------------------------------------- */

static bool is_number(MlirValue v, double want) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a))
    return false;
  return mlirAttributeIsAFloat(a) ? mlirFloatAttrGetValueDouble(a) == want
                                  : mlirAttributeIsAInteger(a) && (double)mlirIntegerAttrGetValueInt(a) == want;
}

/* True if op is select(x != 0 and not NaN, copysign(1, x), x). */
static bool is_sign(MlirOperation op) {
  MlirOperation c, s;
  if (!ir_is(op, "arith.select"))
    return false;
  c = ir_defining_op(operand(op, 0));
  s = ir_defining_op(operand(op, 1));
  MlirValue x = operand(op, 2);
  if (mlirOperationIsNull(c) || !ir_is(c, "arith.cmpf") || mlirOperationIsNull(s) || !ir_is(s, "math.copysign"))
    return false;
  return mlirIntegerAttrGetValueInt(ir_attr(c, "predicate")) == IR_FLT_ONE && mlirValueEqual(operand(c, 0), x) &&
         is_number(operand(c, 1), 0) && is_number(operand(s, 0), 1) && mlirValueEqual(operand(s, 1), x);
}

bool ln_is_absorbed(MlirOperation op) {
  if (!ir_is(op, "arith.cmpf") && !ir_is(op, "math.copysign"))
    return false;
  MlirOperation user = ir_only_user(mlirOperationGetResult(op, 0));
  return !mlirOperationIsNull(user) && is_sign(user);
}

static enum status apply_sign(struct ln_body *b, MlirOperation op) {
  struct ln_arg x;
  struct ln_view *dst;
  enum status st = ln_arg_of(b, operand(op, 2), &x);
  if (!st)
    st = ln_target(b, mlirOperationGetResult(op, 0), ln_arg_atoms(&x), &dst);
  return st ? st : ln_activate(b->w, b->par, "sign", dst, x.view, false);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static enum status apply_binary(struct ln_body *b, MlirOperation op, const char *name, bool is_unsigned) {
  struct ln_arg x, y;
  struct ln_view *dst;
  enum status st = ln_arg_of(b, operand(op, 0), &x);
  if (!st)
    st = ln_arg_of(b, operand(op, 1), &y);
  if (!st)
    st = ln_target(b, ln_converted_result(op), ln_arg_atoms(&x) | ln_arg_atoms(&y), &dst);
  if (st)
    return st;
  if (ir_is(op, "arith.divf") && !x.view && is_number(x.scalar, 1))
    return ln_reciprocal(b->w, b->par, dst, y.view);
  if (ir_is(op, "arith.mulf") && mlirValueEqual(operand(op, 0), operand(op, 1)))
    return ln_activate(b->w, b->par, "square", dst, x.view, false);
  return ln_arith(b->w, b->par, name, dst, x, y, is_unsigned);
}

static enum status apply_arctan2(struct ln_body *b, MlirOperation op) {
  struct ln_arg y = {.view = NULL}, x = {.view = NULL};
  struct ln_view *dst;
  enum status st = ln_arg_of(b, operand(op, 0), &y);
  if (!st)
    st = ln_arg_of(b, operand(op, 1), &x);
  if (!st)
    st = ln_target(b, ln_converted_result(op), ln_arg_atoms(&y) | ln_arg_atoms(&x), &dst);
  return st ? st : ln_arctan2(b, dst, y, x);
}

enum status ln_apply(struct ln_body *b, MlirOperation op) {
  bool is_unsigned;
  const char *name = ln_operator(op, &is_unsigned);

  if (name)
    return apply_binary(b, op, name, is_unsigned);
  if (ir_is(op, "arith.cmpf") || ir_is(op, "arith.cmpi"))
    return ln_compare(b, op);
  if (is_sign(op))
    return apply_sign(b, op);
  if (ir_is(op, "arith.select"))
    return ln_select(b, op);
  if (ln_is_conversion(op))
    return ln_convert(b, op);
  if (ir_is(op, "arith.bitcast"))
    return ln_bitcast(b, op);
  if (ir_is(op, "math.atan2"))
    return apply_arctan2(b, op);
  if (function_of(op) || ir_is(op, "math.atan") || ir_is(op, "arith.negf") || ir_is(op, "math.cos") ||
      ir_is(op, "math.absi"))
    return apply_unary(b, op);
  return ln_fail(b->w->ln, "no engine computes %s", mlirIdentifierStr(mlirOperationGetName(op)).data);
}
