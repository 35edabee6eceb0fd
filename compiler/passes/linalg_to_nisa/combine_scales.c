/* combine_scales: factors and summands become parts of the instruction that reads them.  See combine.c. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/busy.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/combine.h"

/* ---- two operations with scalars -------------------------------------------------------------------------------- */

enum { DST, SRC, OPERAND0, OPERAND1 };         /* tensor_scalar_arith */
enum { A_DST, A_RES, A_SRC, A_BIAS, A_SCALE }; /* activation */
enum { NEGATE_FOR = 64 }; /* elements per partition from which a subtraction costs more than to negate a column */

static bool is_arithmetic(const char *op) {
  return strncmp(op, "bitwise_", 8) && strncmp(op, "shift_", 6) && strncmp(op, "logical_", 8);
}

static MlirType element_of(const struct nisa_access *x) {
  MlirType t = mlirValueGetType(x->base);
  return nisa_is_scalar(x) ? t : mlirShapedTypeGetElementType(t);
}

static bool is_short_float(MlirType t) {
  return mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

/* True if the engines compute with x in f32 whatever its type is, without a loss. */
static bool is_number_type(const struct nisa_access *x) {
  return mlirTypeIsAF32(element_of(x)) || is_short_float(element_of(x));
}

/* True for a tensor_scalar_arith with floats. */
static bool is_float_scaling(const struct nisa_instr *in) {
  return in->def->kind == NISA_TENSOR_SCALAR_ARITH && in->engine == NISA_ENGINE_VECTOR && !link_is_unsigned(in) &&
         is_arithmetic(nisa_text_attr(in->op, "op0")) && is_number_type(&in->operand[OPERAND0]);
}

/* The buffer is f32, or all three are of one shorter type, so that two operations become one with one rounding: what is
 * rounded on purpose, to read it in another type, stays. */
static bool may_skip_rounding(const struct link *l) {
  MlirType t = mlirShapedTypeGetElementType(mlirValueGetType(l->buffer));
  return mlirTypeIsAF32(t) ||
         (is_short_float(t) && is_float_scaling(&l->w) && mlirTypeEqual(element_of(&l->w.operand[SRC]), t) &&
          mlirTypeEqual(element_of(&l->r.operand[DST]), t));
}

static bool is_single(const struct nisa_instr *in) {
  return nisa_is_absent(&in->operand[OPERAND1]);
}

static bool reverses_first(const struct nisa_instr *in) {
  const char *r = nisa_text_attr(in->op, "reverse_operands");
  return !strcmp(r, "first") || !strcmp(r, "both");
}

static bool combine_scalings(struct link *l) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  struct nisa_instr in = l->r;
  struct late late = {0};

  if (!is_float_scaling(&l->w) || !is_float_scaling(&l->r) || l->operand != SRC || !is_single(&l->w) ||
      !is_single(&l->r) || (link_is_in(&l->w.operand[SRC], MEM_PSUM) && link_is_in(&l->r.operand[OPERAND0], MEM_PSUM)))
    return false;
  if (!link_same_tile(&l->w.operand[SRC], &l->w.operand[DST]) || !link_can_read_late(l, &late))
    return false;
  in.operand[SRC] = l->w.operand[SRC];
  in.operand[OPERAND1] = l->r.operand[OPERAND0];
  in.operand[OPERAND0] = l->w.operand[OPERAND0];
  const MlirNamedAttribute attrs[] = {
      link_named(l, "op0", nisa_text_attr(l->w.op, "op0")), link_named(l, "op1", nisa_text_attr(l->r.op, "op0")),
      link_named(l, "reverse_operands", reverse[reverses_first(&l->w) + 2 * reverses_first(&l->r)])};
  link_replace(l, &in, &late, 3, attrs);
  return true;
}

/* ---- scale and bias of activation ------------------------------------------------------------------------------- */

/* Makes a constant f32, as an activation wants its scale and bias.  False if x is memory of another type. */
static bool to_f32(const struct link *l, struct nisa_access *x) {
  if (nisa_is_absent(x) || mlirTypeIsAF32(element_of(x)))
    return true;
  MlirAttribute value = nisa_is_scalar(x) ? ir_constant(x->base) : mlirAttributeGetNull();
  if (mlirAttributeIsNull(value) || !mlirAttributeIsAFloat(value))
    return false;
  struct ir_builder b = edit_before(l->run, l->r.op);
  *x = ln_scalar(ir_float(&b, mlirF32TypeGet(b.ctx), mlirFloatAttrGetValueDouble(value)));
  return true;
}

/* Reads the writer as x * scale + bias; null accesses mean 1 and 0.  A constant with a changed sign becomes a new
 * one before the reader.  Sets *is_negative if the bias has to be negated: a column that is subtracted. */
static bool read_affine(const struct link *l, struct nisa_access *scale, struct nisa_access *bias, bool *is_negative) {
  const char *op0 = nisa_text_attr(l->w.op, "op0"), *op1 = nisa_text_attr(l->w.op, "op1");
  const struct nisa_access *c = &l->w.operand[OPERAND0];
  const bool turned = reverses_first(&l->w);
  struct ir_builder b = edit_before(l->run, l->r.op);
  MlirType f32 = mlirF32TypeGet(b.ctx);

  *scale = *bias = (struct nisa_access){.n_dims = 0};
  if (!is_single(&l->w)) {
    *scale = *c;
    *bias = l->w.operand[OPERAND1];
    return !strcmp(op0, "multiply") && !strcmp(op1, "add") && is_number_type(bias);
  }
  if (!strcmp(op0, "multiply")) {
    *scale = *c;
  } else if (!strcmp(op0, "add")) {
    *bias = *c;
  } else if (!strcmp(op0, "subtract") && turned) {
    *scale = ln_scalar(ir_float(&b, f32, -1));
    *bias = *c;
  } else if (!strcmp(op0, "subtract") && nisa_is_scalar(c) && !mlirAttributeIsNull(ir_constant(c->base))) {
    *bias = ln_scalar(ir_float(&b, f32, -mlirFloatAttrGetValueDouble(ir_constant(c->base))));
  } else if (!strcmp(op0, "subtract") && nisa_is_data(c) && nisa_free_elements(&l->w.operand[SRC]) >= NEGATE_FOR) {
    *bias = *c;
    *is_negative = true;
  } else {
    return false;
  }
  return true;
}

/* Emits minus the column before the reader, into a new buffer that is released after the reader.  Returns the column there. */
static struct nisa_access negated(struct link *l, const struct nisa_access *column) {
  MlirContext ctx = l->run->ir->ctx;
  struct ir_builder b = edit_before(l->run, l->r.op);
  MlirType f32 = mlirF32TypeGet(ctx);
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(l->buffer));
  MlirType t = mlirMemRefTypeContiguousGet(f32, 2, (int64_t[]){nisa_partitions(column), 1}, space);
  MlirOperation alloc = nisa_create_alloc(b.loc, t, 64);
  struct nisa_instr in = {.def = nisa_op_def(NISA_TENSOR_SCALAR_ARITH), .engine = NISA_ENGINE_VECTOR};
  struct nisa_access at = {.base = mlirOperationGetResult(alloc, 0), .n_dims = 2, .par_dims = 1, .tile = {0, 1}};
  MlirAffineExpr results[] = {mlirAffineDimExprGet(ctx, 0), mlirAffineConstantExprGet(ctx, 0)};

  at.tile[0] = nisa_partitions(column);
  at.map = mlirAffineMapGet(ctx, 2, 0, 2, results);
  in.operand[DST] = at;
  in.operand[SRC] = *column;
  in.operand[OPERAND0] = ln_scalar(ir_float(&b, f32, -1));
  const MlirNamedAttribute attrs[] = {link_named(l, "op0", "multiply"), link_named(l, "reverse_operands", "none")};
  MlirOperation made = nisa_create(&in, b.loc, 2, attrs);
  MlirOperation release = nisa_create_release(b.loc, at.base);
  mlirBlockInsertOwnedOperationBefore(b.block, l->r.op, alloc);
  mlirBlockInsertOwnedOperationBefore(b.block, l->r.op, made);
  mlirBlockInsertOwnedOperationAfter(b.block, l->r.op, release);
  link_set_position(l->positions, made, *link_position(l->positions, l->r.op));
  return at;
}

static bool combine_activation(struct link *l) {
  struct nisa_instr in = l->r;
  struct nisa_access scale, bias;
  struct late late = {0};
  MlirNamedAttribute attrs[LN_ATTRS_MAX];
  bool is_negative = false;

  if (!is_float_scaling(&l->w) || l->r.def->kind != NISA_ACTIVATION || l->operand != A_SRC ||
      !link_is_constant(&l->r.operand[A_SCALE], 1) || link_is_unsigned(&l->r) ||
      !link_same_tile(&l->w.operand[SRC], &l->w.operand[DST]))
    return false;
  if (!read_affine(l, &scale, &bias, &is_negative) || !to_f32(l, &scale) || (!is_negative && !to_f32(l, &bias)))
    return false;
  if (!nisa_is_absent(&bias)) {
    if (!link_is_constant(&l->r.operand[A_BIAS], 0) || (l->run->target == TARGET_TRN1 && nisa_is_scalar(&bias)))
      return false;
    in.operand[A_BIAS] = bias;
  }
  if (!nisa_is_absent(&scale))
    in.operand[A_SCALE] = scale;
  in.operand[A_SRC] = l->w.operand[SRC];
  if (link_is_in(&in.operand[A_SRC], MEM_PSUM) && (link_is_in(&scale, MEM_PSUM) || link_is_in(&bias, MEM_PSUM)))
    return false;
  if (!link_can_read_late(l, &late))
    return false;
  if (is_negative)
    in.operand[A_BIAS] = negated(l, &bias);
  link_replace(l, &in, &late, ln_own_attrs(l->r.op, attrs), attrs);
  return true;
}

/* ---- an operation with a scalar, then one with a tensor --------------------------------------------------------- */

/* True if scalar_tensor_tensor has the operator. */
static bool takes_tensor(const char *op) {
  static const char *const ops[] = {"add",   "subtract", "multiply", "max",   "min",  "is_eq",
                                    "is_ne", "is_gt",    "is_ge",    "is_lt", "is_le"};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
    if (!strcmp(op, ops[k]))
      return true;
  return false;
}

/* The one instruction is no shorter where the operation with the scalar is fast and the other one reads PSUM or short
 * floats. */
bool combine_tensor(struct link *l) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  struct nisa_instr in = {.def = nisa_op_def(NISA_SCALAR_TENSOR_TENSOR), .engine = NISA_ENGINE_VECTOR};
  const struct nisa_access *other = &l->r.operand[l->operand == 1 ? 2 : 1];
  struct late late = {0};

  if (!may_skip_rounding(l) || nisa_keeps_order(l->w.op) || nisa_keeps_order(l->r.op) || !is_float_scaling(&l->w) ||
      !is_single(&l->w) || l->r.def->kind != NISA_TENSOR_TENSOR_ARITH || l->r.engine != NISA_ENGINE_VECTOR ||
      link_is_unsigned(&l->r) || !is_number_type(other) || !takes_tensor(nisa_text_attr(l->w.op, "op0")) ||
      !takes_tensor(nisa_text_attr(l->r.op, "op")) ||
      (link_is_in(&l->w.operand[SRC], MEM_PSUM) && link_is_in(other, MEM_PSUM)) ||
      !link_same_tile(&l->w.operand[SRC], &l->w.operand[DST]) || !link_can_read_late(l, &late))
    return false;
  in.operand[DST] = l->r.operand[DST];
  in.operand[SRC] = l->w.operand[SRC];
  in.operand[OPERAND0] = l->w.operand[OPERAND0];
  in.operand[OPERAND1] = *other;
  const MlirNamedAttribute attrs[] = {
      link_named(l, "op0", nisa_text_attr(l->w.op, "op0")), link_named(l, "op1", nisa_text_attr(l->r.op, "op")),
      link_named(l, "reverse_operands", reverse[reverses_first(&l->w) + 2 * (l->operand == 2)])};
  const enum target t = l->run->target;
  const double both = busy_ns(&l->w, NISA_ENGINE_VECTOR, t) + busy_ns(&l->r, NISA_ENGINE_VECTOR, t);
  const double one = busy_with_attrs_ns(&in, NISA_ENGINE_VECTOR, t, 3, attrs);
  if (one >= both)
    return false;
  struct remark *rk = pass_remark(l->run, l->r.op, RULE_SCALAR_TENSOR, "scalar_tensor_tensor: %.0f ns", one);
  remark_cost(rk, "%.0f ns", one);
  remark_reject_for(rk, "two instructions", NULL, arena_printf(l->run->arena, "%.0f ns", both),
                    "Vector would write the values between them and read them again");
  link_replace(l, &in, &late, 3, attrs);
  return true;
}

/* ---- the reciprocal of a root ----------------------------------------------------------------------------------- */

static bool combine_rsqrt(struct link *l) {
  struct nisa_instr in = l->w;
  struct late late = {0};

  if (l->w.def->kind != NISA_ACTIVATION || strcmp(nisa_text_attr(l->w.op, "op"), "sqrt") || link_is_unsigned(&l->w) ||
      !nisa_is_absent(&l->w.operand[A_RES]) || l->r.def->kind != NISA_RECIPROCAL || !link_can_read_late(l, &late))
    return false;
  in.operand[A_DST] = l->r.operand[0];
  const MlirNamedAttribute op = link_named(l, "op", "rsqrt");
  link_replace(l, &in, &late, 1, &op);
  return true;
}

bool combine_scale(struct link *l) {
  return may_skip_rounding(l) && (combine_scalings(l) || combine_activation(l) || combine_rsqrt(l));
}
