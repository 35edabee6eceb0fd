/* move: instructions of Vector on another engine.
 *
 *     tensor_tensor_arith, tensor_scalar_arith, tensor_reduce_arith, tensor_copy, memset  on GpSimd: the same instruction
 *     tensor_copy                                                                  on Scalar: the same instruction
 *     tensor_scalar_arith x * a + b                     on Scalar: activation copy, scale = a, bias = b
 *     tensor_scalar_arith max(x * a, 0)                 on Scalar: activation relu, scale = a
 *     tensor_tensor_arith x * x                         on Scalar: activation square
 *
 * All of them compute in f32 and round once, when they write.  Integers stay where they are, because GpSimd does not compute
 * them in f32.  GpSimd does not reach PSUM, and on trn1 it has no way to SBUF of its own.  On trn1 the bias of an activation
 * has to be in memory unless it is 0.  What keeps its order (nisa/nisa.h) stays.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/balance_engines/balance_engines.h"
#include "passes/lib/edit.h"

enum { DST, SRC, OPERAND0, OPERAND1 };         /* tensor_scalar_arith */
enum { A_DST, A_RES, A_SRC, A_BIAS, A_SCALE }; /* activation */

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static bool is_float(MlirType t) {
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

static bool is_constant(const struct nisa_access *x, double want) {
  MlirAttribute a = nisa_is_scalar(x) ? ir_constant(x->base) : mlirAttributeGetNull();
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) == want;
}

/* ---- as an activation ---------------------------------------------------------------------------------------------- */

/* An operation as function(x * scale + bias); absent operands mean 1 and 0. */
struct affine {
  struct nisa_access scale, bias;
  const char *function;
};

/* A scalar, or a column of f32 that is not in PSUM. */
static bool may_be_column(const struct nisa_access *x) {
  return nisa_is_scalar(x) ? mlirTypeIsAF32(mlirValueGetType(x->base))
                           : mlirTypeIsAF32(nisa_access_element(x)) && nisa_access_space(x) == MEM_SBUF;
}

static bool is_same(const struct nisa_access *x, const struct nisa_access *y) {
  if (!nisa_is_data(x) || !nisa_is_data(y) || !mlirValueEqual(x->base, y->base) ||
      !mlirAffineMapEqual(x->map, y->map) || x->n_dims != y->n_dims || x->par_dims != y->par_dims ||
      x->n_indices != y->n_indices || !mlirTypeEqual(nisa_access_element(x), nisa_access_element(y)) ||
      memcmp(x->tile, y->tile, (size_t)x->n_dims * sizeof *x->tile) != 0)
    return false;
  for (int k = 0; k < x->n_indices; k++)
    if (!mlirValueEqual(x->indices[k], y->indices[k]))
      return false;
  return true;
}

static bool is_square(const struct nisa_instr *in) {
  return in->def->kind == NISA_TENSOR_TENSOR_ARITH && !strcmp(nisa_text_attr(in->op, "op"), "multiply") &&
         is_same(&in->operand[SRC], &in->operand[OPERAND0]);
}

static bool read_affine(const struct nisa_instr *in, enum target t, struct affine *out) {
  const char *op0 = nisa_text_attr(in->op, "op0"), *op1 = nisa_text_attr(in->op, "op1");
  const struct nisa_access *x = &in->operand[OPERAND0], *y = &in->operand[OPERAND1];

  *out = (struct affine){.function = is_square(in) ? "square" : "copy"};
  if (is_square(in))
    return true;
  if (in->def->kind != NISA_TENSOR_SCALAR_ARITH || strcmp(nisa_text_attr(in->op, "reverse_operands"), "none") != 0 ||
      !may_be_column(x))
    return false;
  if (!strcmp(op0, "add") && nisa_is_absent(y)) {
    out->bias = *x;
  } else if (!strcmp(op0, "multiply")) {
    out->scale = *x;
  } else {
    return false;
  }
  if (nisa_is_absent(y))
    return nisa_is_data(x) || t != TARGET_TRN1 || nisa_is_absent(&out->bias);
  if (!strcmp(op1, "max") && is_constant(y, 0)) {
    out->function = "relu";
    return true;
  }
  out->bias = *y;
  return !strcmp(op1, "add") && may_be_column(y) && (nisa_is_data(y) || t != TARGET_TRN1);
}

static MlirOperation activate(struct pass_run *run, const struct nisa_instr *in) {
  struct affine as;
  struct ir_builder b = edit_before(run, in->op);
  struct nisa_instr out = {.def = nisa_op_def(NISA_ACTIVATION), .engine = NISA_ENGINE_SCALAR};

  (void)read_affine(in, run->target, &as);
  out.operand[A_DST] = in->operand[DST];
  out.operand[A_SRC] = in->operand[SRC];
  out.operand[A_BIAS] = as.bias;
  out.operand[A_SCALE] = as.scale;
  if (nisa_is_absent(&as.bias))
    out.operand[A_BIAS] = (struct nisa_access){.base = ir_float(&b, mlirF32TypeGet(b.ctx), 0)};
  if (nisa_is_absent(&as.scale))
    out.operand[A_SCALE] = (struct nisa_access){.base = ir_float(&b, mlirF32TypeGet(b.ctx), 1)};
  const MlirNamedAttribute op = ir_named(&b, "op", mlirStringAttrGet(b.ctx, ir_str(as.function)));
  MlirOperation made = nisa_create(&out, b.loc, 1, &op);
  mlirBlockInsertOwnedOperationBefore(b.block, in->op, made);
  mlirOperationDestroy(in->op);
  return made;
}

/* ---- which --------------------------------------------------------------------------------------------------------- */

bool balance_is_movable(const struct nisa_instr *in, enum target t) {
  return in->engine == NISA_ENGINE_VECTOR && !nisa_keeps_order(in->op) &&
         (balance_can_move(in, NISA_ENGINE_SCALAR, t) || balance_can_move(in, NISA_ENGINE_GPSIMD, t));
}

static bool are_floats(const struct nisa_instr *in) {
  for (int k = 0; k < in->def->n_operands; k++)
    if (nisa_is_data(&in->operand[k]) && !is_float(nisa_access_element(&in->operand[k])))
      return false;
  return true;
}

static bool is_out_of_psum(const struct nisa_instr *in) {
  for (int k = 0; k < in->def->n_operands; k++)
    if (nisa_is_data(&in->operand[k]) && nisa_access_space(&in->operand[k]) == MEM_PSUM)
      return false;
  return true;
}

static bool is_arithmetic(const char *op) {
  return strncmp(op, "bitwise_", 8) != 0 && strncmp(op, "shift_", 6) != 0;
}

static bool gpsimd_computes(const struct nisa_instr *in) {
  switch (in->def->kind) {
  case NISA_TENSOR_COPY:
  case NISA_MEMSET:
    return true;
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_REDUCE_ARITH:
    return is_arithmetic(nisa_text_attr(in->op, "op"));
  case NISA_TENSOR_SCALAR_ARITH:
    return is_arithmetic(nisa_text_attr(in->op, "op0")) && is_arithmetic(nisa_text_attr(in->op, "op1"));
  default:
    return false;
  }
}

bool balance_can_move(const struct nisa_instr *in, enum nisa_engine e, enum target t) {
  struct affine as;
  if (!nisa_is_data(&in->operand[DST]) || !are_floats(in))
    return false;
  if (e == NISA_ENGINE_GPSIMD)
    return t != TARGET_TRN1 && gpsimd_computes(in) && is_out_of_psum(in);
  return in->def->kind == NISA_TENSOR_COPY || read_affine(in, t, &as);
}

MlirOperation balance_move(struct pass_run *run, const struct nisa_instr *in, enum nisa_engine e) {
  if (e == NISA_ENGINE_SCALAR && in->def->kind != NISA_TENSOR_COPY)
    return activate(run, in);
  ir_set_attr(in->op, "engine", mlirStringAttrGet(run->ir->ctx, ir_str(nisa_engine_name(e))));
  return in->op;
}
