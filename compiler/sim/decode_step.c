/* decode_step: scalar arithmetic. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/query.h"
#include "sim/decode_internal.h"

static const struct {
  const char *name;
  enum sim_step_kind kind;
  int n_operands;
} steps[] = {
#define SIM_STEP(e, name, operands) {"arith." name, e, operands},
#include "sim/steps.def"
#undef SIM_STEP
};

static enum status decode_constant(struct decoder *d, MlirOperation op) {
  MlirAttribute value = ir_attr(op, "value");
  MlirType t = mlirAttributeGetType(value);
  int64_t bits;

  if (mlirAttributeIsAInteger(value)) {
    bits = mlirTypeIsAInteger(t) && mlirIntegerTypeGetWidth(t) == 1 ? mlirIntegerAttrGetValueInt(value) != 0
                                                                    : mlirIntegerAttrGetValueInt(value);
  } else if (mlirAttributeIsAFloat(value)) {
    double v = mlirFloatAttrGetValueDouble(value);
    memcpy(&bits, &v, sizeof bits);
  } else {
    return decode_refuse(d, op, "its value is not a number");
  }
  decode_define(d, mlirOperationGetResult(op, 0))->reg = decode_register(d, bits);
  return ST_OK;
}

enum status decode_step(struct decoder *d, MlirOperation op) {
  if (ir_is(op, "arith.constant"))
    return decode_constant(d, op);
  for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
    if (!ir_is(op, steps[k].name))
      continue;
    MlirValue r = mlirOperationGetResult(op, 0), x = mlirOperationGetOperand(op, steps[k].kind == SIM_STEP_SELECT);
    MlirAttribute predicate = ir_attr(op, "predicate");
    int reg[3] = {-1, -1, -1};
    for (int i = 0; i < steps[k].n_operands; i++)
      reg[i] = decode_scalar(d, mlirOperationGetOperand(op, i));
    struct sim_node n = {.kind = SIM_NODE_STEP,
                         .step = steps[k].kind,
                         .type = decode_type(mlirValueGetType(r), false),
                         .from = decode_type(mlirValueGetType(x), false),
                         .predicate = mlirAttributeIsNull(predicate) ? 0 : (int)mlirIntegerAttrGetValueInt(predicate),
                         .a = decode_register(d, 0),
                         .b = reg[0],
                         .c = reg[1],
                         .d = reg[2]};
    if (!n.type || !n.from)
      return decode_refuse(d, op, "its type");
    decode_define(d, r)->reg = n.a;
    array_push(d->arena, &d->nodes, n);
    return ST_OK;
  }
  return decode_refuse(d, op, "it is not scalar arithmetic that programs use");
}
