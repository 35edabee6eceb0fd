/* expand: writes out functions that no engine has in the bodies of generics.
 *
 *     math.log1p x   2 artanh(x / (2 + x)) by four terms of its series for |x| < 1/4, log(1 + x) elsewhere
 *     math.expm1 x   2 t / (1 - t), t = tanh(x / 2), for |x| < 1/2, exp(x) - 1 elsewhere
 *     math.tan x     sin x / cos x
 *     math.cbrt x    sign x · |x|^(1/3)
 *     math.log2 x, math.log10 x, math.exp2 x   by log and exp
 *     math.ctpop x   sums of neighbouring bits, then of pairs, nibbles, bytes
 *     math.ctlz x    the bits below the highest one set, and counted
 *
 * Functions of 16-bit floats are computed in f32, because MLIR rounds them once.  The formulas for log1p and expm1
 * keep the digits of small x that 1 + x and exp(x) lose; see also trace/unary.c, which writes NumPy's functions in
 * the same way.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <math.h>

#include "passes/lib/edit.h"

/* The insertion points: operations go into the body; constants go before the generic. */
struct place {
  struct ir_builder body, outside;
};

static MlirValue number(struct place *p, MlirValue like, double v) {
  return ir_float(&p->outside, mlirValueGetType(like), v);
}

static MlirValue bits(struct place *p, MlirValue like, int64_t v) {
  return ir_int(&p->outside, mlirValueGetType(like), v);
}

static MlirValue op1(struct place *p, const char *name, MlirValue x) {
  return ir_unary(&p->body, name, x);
}

static MlirValue op2(struct place *p, const char *name, MlirValue x, MlirValue y) {
  return ir_binary(&p->body, name, x, y);
}

static MlirValue scaled(struct place *p, MlirValue x, double by) {
  return op2(p, "arith.mulf", x, number(p, x, by));
}

static MlirValue is_within(struct place *p, MlirValue x, double limit) {
  return ir_cmpf(&p->body, IR_FLT_OLT, op1(p, "math.absf", x), number(p, x, limit));
}

/* ---- floats ----------------------------------------------------------------------------------------------------- */

static MlirValue log1p_of(struct place *p, MlirValue x) {
  static const double terms[] = {1.0 / 5, 1.0 / 3, 1};
  MlirValue s = op2(p, "arith.divf", x, op2(p, "arith.addf", x, number(p, x, 2)));
  MlirValue z = op2(p, "arith.mulf", s, s), sum = number(p, x, 1.0 / 7);
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
    sum = op2(p, "arith.addf", op2(p, "arith.mulf", sum, z), number(p, x, terms[i]));
  MlirValue near = op2(p, "arith.mulf", op2(p, "arith.addf", s, s), sum);
  MlirValue far = op1(p, "math.log", op2(p, "arith.addf", x, number(p, x, 1)));
  return ir_select(&p->body, is_within(p, x, 0.25), near, far);
}

static MlirValue expm1_of(struct place *p, MlirValue x) {
  MlirValue one = number(p, x, 1), t = op1(p, "math.tanh", scaled(p, x, 0.5));
  MlirValue near = op2(p, "arith.divf", op2(p, "arith.addf", t, t), op2(p, "arith.subf", one, t));
  return ir_select(&p->body, is_within(p, x, 0.5), near, op2(p, "arith.subf", op1(p, "math.exp", x), one));
}

static MlirValue tan_of(struct place *p, MlirValue x) {
  return op2(p, "arith.divf", op1(p, "math.sin", x), op1(p, "math.cos", x));
}

static MlirValue cbrt_of(struct place *p, MlirValue x) {
  MlirValue root = op2(p, "math.powf", op1(p, "math.absf", x), number(p, x, 1.0 / 3));
  MlirValue is_negative = ir_cmpf(&p->body, IR_FLT_OLT, x, number(p, x, 0));
  return ir_select(&p->body, is_negative, op1(p, "arith.negf", root), root);
}

static MlirValue log2_of(struct place *p, MlirValue x) {
  return scaled(p, op1(p, "math.log", x), 1 / log(2.0));
}

static MlirValue log10_of(struct place *p, MlirValue x) {
  return scaled(p, op1(p, "math.log", x), 1 / log(10.0));
}

static MlirValue exp2_of(struct place *p, MlirValue x) {
  return op1(p, "math.exp", scaled(p, x, log(2.0)));
}

/* ---- bits of an i32 --------------------------------------------------------------------------------------------- */

static MlirValue shifted(struct place *p, MlirValue x, int by) {
  return op2(p, "arith.shrui", x, bits(p, x, by));
}

static MlirValue masked(struct place *p, MlirValue x, int64_t mask) {
  return op2(p, "arith.andi", x, bits(p, x, mask));
}

static MlirValue ctpop_of(struct place *p, MlirValue x) {
  MlirValue pairs = op2(p, "arith.subi", x, masked(p, shifted(p, x, 1), 0x55555555));
  MlirValue fours = op2(p, "arith.addi", masked(p, pairs, 0x33333333), masked(p, shifted(p, pairs, 2), 0x33333333));
  MlirValue bytes = masked(p, op2(p, "arith.addi", fours, shifted(p, fours, 4)), 0x0f0f0f0f);
  MlirValue halves = op2(p, "arith.addi", bytes, shifted(p, bytes, 8));
  return masked(p, op2(p, "arith.addi", halves, shifted(p, halves, 16)), 63);
}

static MlirValue ctlz_of(struct place *p, MlirValue x) {
  for (int by = 1; by < 32; by *= 2)
    x = op2(p, "arith.ori", x, shifted(p, x, by));
  return op2(p, "arith.subi", bits(p, x, 32), ctpop_of(p, x));
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct function {
  const char *name;
  MlirValue (*of)(struct place *p, MlirValue x);
} functions[] = {
    {"math.log1p", log1p_of}, {"math.expm1", expm1_of}, {"math.tan", tan_of},
    {"math.cbrt", cbrt_of},   {"math.log2", log2_of},   {"math.log10", log10_of},
    {"math.exp2", exp2_of},   {"math.ctpop", ctpop_of}, {"math.ctlz", ctlz_of},
};

static const struct function *find_function(MlirOperation op) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (ir_is(op, functions[i].name))
      return &functions[i];
  return NULL;
}

static bool is_lacking(MlirOperation op, void *user) {
  (void)user;
  return find_function(op);
}

/* Computes f of an integer with fewer bits: the zeros that widening adds at the top are not leading zeros of x. */
static MlirValue of_narrow_int(struct place *p, const struct function *f, MlirValue x, unsigned width) {
  MlirType type = mlirValueGetType(x), i32 = mlirIntegerTypeGet(p->body.ctx, 32);
  MlirValue wide = ir_op1(&p->body, "arith.extui", i32, 1, &x);
  MlirValue v = f->of(p, wide);
  if (f->of == ctlz_of)
    v = op2(p, "arith.subi", v, bits(p, wide, 32 - (int64_t)width));
  return ir_op1(&p->body, "arith.trunci", type, 1, &v);
}

static MlirValue of_narrow_float(struct place *p, const struct function *f, MlirValue x) {
  MlirType type = mlirValueGetType(x);
  MlirValue wide = ir_op1(&p->body, "arith.extf", mlirF32TypeGet(p->body.ctx), 1, &x);
  MlirValue v = f->of(p, wide);
  return ir_op1(&p->body, "arith.truncf", type, 1, &v);
}

static void expand(struct pass_run *run, MlirOperation generic, MlirOperation op) {
  struct place p = {edit_before(run, op), edit_before(run, generic)};
  const struct function *f = find_function(op);
  MlirValue x = mlirOperationGetOperand(op, 0), v;
  MlirType t = mlirValueGetType(x);

  const bool is_int = mlirTypeIsAInteger(t);
  const unsigned width = is_int ? mlirIntegerTypeGetWidth(t) : mlirFloatTypeGetWidth(t);

  if (width > 32) /* no engine has them: linalg-to-nisa refuses them */
    return;
  p.outside.loc = p.body.loc;
  v = width == 32 ? f->of(&p, x) : is_int ? of_narrow_int(&p, f, x, width) : of_narrow_float(&p, f, x);
  mlirValueReplaceAllUsesOfWith(ir_result(op), v);
  struct remark *r = pass_remark(run, generic, RULE_WRITE_OUT_FUNCTION, "%s written out: no engine has it", f->name);
  remark_reject(r, "one instruction", "no engine has the function");
  mlirOperationDestroy(op);
}

void prepare_expand(struct pass_run *run, MlirOperation generic) {
  struct ir_ops ops = ir_collect(run->arena, generic, is_lacking, NULL);

  for (int i = 0; i < ops.n; i++)
    expand(run, generic, ops.v[i]);
}
