/* divide: rewrites the division of floats to a multiplication by the reciprocal.
 *
 *     linalg.div(a, b)             ==>  linalg.mul(a, linalg.reciprocal(b))
 *     generic { x / c }            ==>  generic { x * (1/c) }                  c constant
 *     generic { 1 / x }            ==>  linalg.reciprocal(x)                   nothing else in the body, x whole
 *     generic { f(x, a / b) }      ==>  generic { f(x, a * r) }, r = linalg.reciprocal(b) of b's own, maybe smaller, shape
 *     generic { a / f(x) }         ==>  generic { a * (1 / f(x)) }             1 / y in a body means: reciprocal
 *
 * The last form is used for every divisor that is not an input which the body only divides by: a divisor that is
 * computed in the body, that has two uses, or that is the accumulator of a reduction.  A body may contain any number
 * of divisions, and reductions.
 *
 * A reciprocal of f16 or bf16 is f32, and the product is rounded to the narrow type: the engines compute in f32 anyway, and
 * a reciprocal rounded to 8 bits would make the quotient wrong by more than its own rounding.
 *
 * Constants: 1/c is also correct for 0, infinity and NaN (x/0 is x times infinity, sign and NaN included).  If 1/c is
 * not a normal number of the type in which it is computed (c is tiny or huge), two factors are used.
 *
 * Not changed: integers (exact), and quotients that are rounded to an integer at once (floor, ceil, a conversion):
 * the reciprocal's rounding would turn 49/49 into 0.  Those become or stay a divf in a generic's body, for the
 * vector engine's divide.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <float.h>
#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/price.h"

/* ---- what must stay exact --------------------------------------------------------------------------------------- */

static bool rounds_to_integer(MlirOperation op) {
  static const char *const names[] = {"math.floor",   "math.ceil",    "math.round",   "math.roundeven", "math.trunc",
                                      "arith.fptosi", "arith.fptoui", "linalg.floor", "linalg.ceil",    "linalg.round"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (ir_is(op, names[i]))
      return true;
  return false;
}

/* True if an operation in the body of the generic `user` that reads operand `operand` rounds it. */
static bool body_rounds(MlirOperation user, intptr_t operand) {
  if (!ir_is(user, "linalg.generic"))
    return false;
  MlirValue arg = mlirBlockGetArgument(ir_body(user), operand);
  for (MlirOpOperand u = mlirValueGetFirstUse(arg); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (rounds_to_integer(mlirOpOperandGetOwner(u)))
      return true;
  return false;
}

static bool is_rounded(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (rounds_to_integer(user) || body_rounds(user, mlirOpOperandGetOperandNumber(u)))
      return true;
  }
  return false;
}

/* True if the quotient is rounded in the body of op, or if it is yielded and the result of op is rounded. */
static bool is_quotient_rounded(MlirOperation op, MlirOperation div) {
  MlirValue q = ir_result(div);

  if (is_rounded(q))
    return true;
  for (MlirOpOperand u = mlirValueGetFirstUse(q); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "linalg.yield") &&
        is_rounded(mlirOperationGetResult(op, mlirOpOperandGetOperandNumber(u))))
      return true;
  return false;
}

/* ---- reciprocals ------------------------------------------------------------------------------------------------ */

/* Annotates the reciprocal r of `like`'s divisor, which has like's shape, with like's tiles, and with SBUF, because
 * only the product reads r. */
static void annotate_like(MlirValue r, MlirValue like, MlirLocation loc) {
  struct layout l = layout_read(like);
  if (mlirOperationIsNull(l.layout_op) && mlirOperationIsNull(l.tile_op))
    return;
  l.layout_op = l.tile_op = (MlirOperation){NULL};
  l.space = MEM_SBUF;
  layout_write(r, &l, loc);
}

static bool is_narrow(MlirType t) {
  return mlirTypeIsAF16(t) || mlirTypeIsABF16(t);
}

/* The type in which quotients of t are computed. */
static MlirType wide_type(MlirType t) {
  return is_narrow(t) ? mlirF32TypeGet(mlirTypeGetContext(t)) : t;
}

static MlirValue widen(struct ir_builder *b, MlirValue x) {
  MlirType t = mlirValueGetType(x);
  return is_narrow(t) ? ir_op1(b, "arith.extf", wide_type(t), 1, &x) : x;
}

/* a * r, where r has the wide type, rounded to a's type. */
static MlirValue product(struct ir_builder *b, MlirValue a, MlirValue r) {
  MlirType t = mlirValueGetType(a);
  MlirValue p = ir_binary(b, "arith.mulf", widen(b, a), r);
  return is_narrow(t) ? ir_op1(b, "arith.truncf", t, 1, &p) : p;
}

static MlirValue invert(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_binary(b, "arith.divf", *(const MlirValue *)user, widen(b, args[0]));
}

static MlirValue multiply(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return product(b, args[0], args[1]);
}

/* Returns the reciprocal of the tensor x, in the wide type. */
static MlirValue reciprocal(struct ir_builder *b, MlirValue x) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(x, STRUCTURED_LOOPS_MAX, dims);
  MlirType t = ir_value_element(x), wide = wide_type(t);
  MlirValue empty = ir_empty_of(b, ir_tensor_of(wide, rank, dims));
  if (!is_narrow(t))
    return ir_result(ir_linalg_named(b, "linalg.reciprocal", 1, &x, empty, 0, NULL));
  MlirValue one = ir_float(b, wide, 1);
  const MlirAffineMap maps[] = {ir_identity_map(b, rank), ir_identity_map(b, rank)};
  return ir_result(ir_linalg_generic(
      b,
      &(struct ir_generic){
          .n_loops = rank, .n_inputs = 1, .inputs = &x, .maps = maps, .output = empty, .body = invert, .user = &one}));
}

static bool is_number(MlirValue v, double *out) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a) || !mlirAttributeIsAFloat(a))
    return false;
  *out = mlirFloatAttrGetValueDouble(a);
  return true;
}

/* Sets the range of the normal numbers of a wide type; false for types in which no division is done. */
static bool float_range(MlirType t, double *min, double *max) {
  if (mlirTypeIsAF32(t)) {
    *min = FLT_MIN;
    *max = FLT_MAX;
  } else if (mlirTypeIsAF64(t)) {
    *min = DBL_MIN;
    *max = DBL_MAX;
  } else {
    return false;
  }
  return true;
}

/* Computes c's reciprocal as first * second; second is 1 if one factor is sufficient.  False if that is impossible. */
static bool reciprocal_factors(MlirType t, double c, double *first, double *second) {
  double min, max;

  if (!float_range(t, &min, &max))
    return false;
  *first = 1 / c;
  *second = 1;
  if (c == 0 || !isfinite(c) || (fabs(*first) >= min && fabs(*first) <= max))
    return true;
  int exponent;
  frexp(c, &exponent);
  *first = ldexp(1, -exponent / 2);
  *second = 1 / (c * *first);
  return isfinite(*second);
}

/* ---- one division in a body -------------------------------------------------------------------------------------- */

static void replace(MlirOperation div, MlirValue by) {
  mlirValueReplaceAllUsesOfWith(ir_result(div), by);
  mlirOperationDestroy(div);
}

static bool by_constant(struct pass_run *run, MlirOperation op, MlirOperation div) {
  MlirValue x = mlirOperationGetOperand(div, 0);
  MlirType t = wide_type(mlirValueGetType(x));
  double c, first, second;

  if (!is_number(mlirOperationGetOperand(div, 1), &c) || !reciprocal_factors(t, c, &first, &second))
    return false;
  struct ir_builder outer = edit_before(run, op), b = edit_before(run, div);
  outer.loc = b.loc;
  MlirValue quotient = product(&b, x, ir_float(&outer, t, first));
  if (second != 1)
    quotient = product(&b, quotient, ir_float(&outer, t, second));
  struct remark *r = pass_remark(run, op, RULE_MULTIPLY_BY_INVERSE, "x / %g as x * %g", c, 1 / c);
  const struct price_shape s = price_shape_of(ir_result(op));
  const double times = price_rows_ns(run->target, SIM_COST_VECTOR_SCALAR, s.rows, s.columns);
  price_chosen(r, second != 1 ? 2 * times : times);
  price_instead(r, "a division", price_rows_ns(run->target, SIM_COST_RECIPROCAL, s.rows, s.columns) + times,
                "it takes a reciprocal and a multiplication");
  replace(div, quotient);
  return true;
}

/* True if the body reads argument arg only as the divisor of quotients that need not be exact. */
static bool only_divides(MlirOperation op, MlirValue arg) {
  for (MlirOpOperand u = mlirValueGetFirstUse(arg); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!ir_is(user, "arith.divf") || mlirOpOperandGetOperandNumber(u) != 1 || is_quotient_rounded(op, user))
      return false;
  }
  return true;
}

static bool is_input(MlirOperation op, const struct structured *s, MlirValue arg) {
  return mlirValueIsABlockArgument(arg) && mlirBlockEqual(mlirBlockArgumentGetOwner(arg), ir_body(op)) &&
         mlirBlockArgumentGetArgNumber(arg) < s->n_inputs;
}

/* divisor: what is inverted, perhaps fewer elements than there are quotients. */
static void remark_reciprocal(struct pass_run *run, MlirOperation op, MlirValue divisor) {
  struct remark *r = pass_remark(run, op, RULE_MULTIPLY_BY_RECIPROCAL, "division as multiplication by a reciprocal");
  struct price_shape all = price_shape_of(ir_result(op)), own = price_shape_of(divisor);
  if (price_bytes(&own) >= price_bytes(&all)) /* as many, perhaps in another shape, or quotients that are reduced */
    all = own;
  const double times = price_rows_ns(run->target, SIM_COST_VECTOR_TENSOR, all.rows, all.columns);
  price_chosen(r, price_rows_ns(run->target, SIM_COST_RECIPROCAL, own.rows, own.columns) + times);
  price_instead(r, "a division", price_rows_ns(run->target, SIM_COST_RECIPROCAL, all.rows, all.columns) + times,
                "it inverts the divisor of each quotient, and multiplies");
}

/* Inverts the input b, which div divides by, before op, once for all divisions. */
static void invert_input(struct pass_run *run, MlirOperation op, const struct structured *s, MlirValue b) {
  const intptr_t k = mlirBlockArgumentGetArgNumber(b);
  MlirValue divisor = mlirOperationGetOperand(op, k);
  struct ir_builder at = edit_before(run, op);
  MlirValue r = reciprocal(&at, divisor);
  const bool is_whole = mlirAffineMapEqual(s->maps[k], s->maps[s->n_inputs]) && structured_is_elementwise(s);
  if (is_whole && mlirTypeEqual(mlirValueGetType(r), mlirValueGetType(ir_result(op))))
    annotate_like(r, ir_result(op), at.loc);
  mlirOperationSetOperand(op, k, r);
  mlirValueSetType(b, ir_value_element(r));
  struct ir_ops divs = ir_collect_named(run->arena, op, "arith.divf");
  for (int i = 0; i < divs.n; i++) {
    if (!mlirValueEqual(mlirOperationGetOperand(divs.v[i], 1), b))
      continue;
    struct ir_builder body = edit_before(run, divs.v[i]);
    replace(divs.v[i], product(&body, mlirOperationGetOperand(divs.v[i], 0), b));
  }
  remark_reciprocal(run, op, divisor);
}

static bool in_body(struct pass_run *run, MlirOperation op, MlirOperation div) {
  MlirValue a = mlirOperationGetOperand(div, 0), b = mlirOperationGetOperand(div, 1);
  struct ir_builder outer = edit_before(run, op), at = edit_before(run, div);
  double c;

  if (is_number(a, &c) && c == 1)
    return false;
  outer.loc = at.loc;
  MlirValue one = ir_float(&outer, wide_type(mlirValueGetType(b)), 1);
  replace(div, product(&at, a, ir_binary(&at, "arith.divf", one, widen(&at, b))));
  remark_reciprocal(run, op, ir_result(op));
  return true;
}

/* ---- whole operations -------------------------------------------------------------------------------------------- */

/* Replaces a generic { yield 1 / x } over all of x. */
static bool whole_reciprocal(struct pass_run *run, MlirOperation op, const struct structured *s, MlirOperation div) {
  MlirOperation last = mlirBlockGetTerminator(ir_body(op));
  double c;

  if (s->kind != SK_ELEMENTWISE || s->n_inputs != 1 || s->n_inits != 1 || !mlirAffineMapIsIdentity(s->maps[0]) ||
      !mlirAffineMapIsIdentity(s->maps[1]) || !is_number(mlirOperationGetOperand(div, 0), &c) || c != 1 ||
      !mlirValueEqual(mlirOperationGetOperand(div, 1), mlirBlockGetArgument(ir_body(op), 0)) ||
      !mlirValueEqual(mlirOperationGetOperand(last, 0), ir_result(div)))
    return false;
  if (!mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(op, 0)), mlirValueGetType(ir_result(op))))
    return false;
  struct ir_builder b = edit_before(run, op);
  MlirValue x = mlirOperationGetOperand(op, 0);
  MlirOperation made = ir_linalg_named(&b, "linalg.reciprocal", 1, &x, mlirOperationGetOperand(op, 1), 0, NULL);
  mlirValueReplaceAllUsesOfWith(ir_result(op), ir_result(made));
  mlirOperationDestroy(op);
  return true;
}

static MlirValue divide_elements(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.divf", args[0], args[1]);
}

static void rewrite_named(struct pass_run *run, MlirOperation op, const struct structured *s) {
  MlirValue in[] = {mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1)};
  MlirValue out = mlirOperationGetOperand(op, 2), made;
  struct ir_builder b = edit_before(run, op);

  if (is_rounded(ir_result(op))) {
    made = ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = s->n_loops,
                                                                .n_inputs = 2,
                                                                .inputs = in,
                                                                .maps = s->maps,
                                                                .output = out,
                                                                .body = divide_elements}));
  } else {
    remark_reciprocal(run, op, in[1]);
    in[1] = reciprocal(&b, in[1]);
    annotate_like(in[1], ir_result(op), b.loc);
    made = is_narrow(ir_value_element(out))
               ? ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = s->n_loops,
                                                                      .n_inputs = 2,
                                                                      .inputs = in,
                                                                      .maps = s->maps,
                                                                      .output = out,
                                                                      .body = multiply}))
               : ir_result(ir_linalg_named(&b, "linalg.mul", 2, in, out, 0, NULL));
  }
  mlirValueReplaceAllUsesOfWith(ir_result(op), made);
  mlirOperationDestroy(op);
}

/* Does one step on one division of op's body; false if it stays as it is. */
static bool rewrite_one(struct pass_run *run, MlirOperation op, const struct structured *s, MlirOperation div) {
  MlirValue b = mlirOperationGetOperand(div, 1);

  if (is_quotient_rounded(op, div))
    return false;
  if (by_constant(run, op, div))
    return true;
  if (!is_input(op, s, b) || !only_divides(op, b))
    return in_body(run, op, div);
  invert_input(run, op, s, b);
  return true;
}

/* Rewrites the divisions of the body.  Every step removes a division that can be replaced, so the loop terminates. */
static void rewrite_body(struct pass_run *run, MlirOperation op, const struct structured *s) {
  struct ir_ops divs = ir_collect_named(run->arena, op, "arith.divf");
  int i = 0;

  if (divs.n == 1 && !is_quotient_rounded(op, divs.v[0]) && whole_reciprocal(run, op, s, divs.v[0]))
    return;
  while (i < divs.n) {
    if (!rewrite_one(run, op, s, divs.v[i])) {
      i++;
      continue;
    }
    divs = ir_collect_named(run->arena, op, "arith.divf");
    i = 0;
  }
}

void prepare_divide(struct pass_run *run, MlirOperation op) {
  struct structured s;

  if (!structured_read(op, &s) || !mlirOperationGetNumResults(op))
    return;
  if (ir_is(op, "linalg.generic"))
    rewrite_body(run, op, &s);
  else if (ir_is(op, "linalg.div") && mlirTypeIsAFloat(ir_value_element(ir_result(op))))
    rewrite_named(run, op, &s);
}
