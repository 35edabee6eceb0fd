/* check_build: refuses a stage, and builds the operations that a check inserts. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "driver/check_internal.h"
#include "ir/query.h"

enum status check_refuse(struct diags *ds, const char *what) {
  diag_add(ds, DS_ERROR, DG_INTERNAL, NULL, "the check cannot run this stage: %s", what);
  return ST_BUG;
}

void check_register(MlirExecutionEngine engine, const char *name, void (*fn)(void)) {
  void *p;
  static_assert(sizeof p == sizeof fn, "functions have addresses like data");
  memcpy(&p, &fn, sizeof p); /* ISO C has no cast from functions to data */
  mlirExecutionEngineRegisterSymbol(engine, mlirStringRefCreateFromCString(name), p);
}

MlirOperation check_insert(MlirOperation before, const char *name, int n, MlirValue const *x, int n_results,
                           MlirType const *results, const char *callee) {
  MlirContext ctx = mlirOperationGetContext(before);
  MlirOperationState st = mlirOperationStateGet(ir_str(name), mlirOperationGetLocation(before));
  MlirNamedAttribute attr;

  mlirOperationStateAddOperands(&st, n, x);
  mlirOperationStateAddResults(&st, n_results, results);
  if (callee) {
    attr =
        mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("callee")), mlirFlatSymbolRefAttrGet(ctx, ir_str(callee)));
    mlirOperationStateAddAttributes(&st, 1, &attr);
  }
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return op;
}

MlirValue check_insert_constant(MlirOperation before, MlirAttribute value) {
  MlirType t = mlirAttributeGetType(value);
  MlirNamedAttribute attr =
      mlirNamedAttributeGet(mlirIdentifierGet(mlirOperationGetContext(before), ir_str("value")), value);
  MlirOperationState st = mlirOperationStateGet(ir_str("arith.constant"), mlirOperationGetLocation(before));

  mlirOperationStateAddResults(&st, 1, &t);
  mlirOperationStateAddAttributes(&st, 1, &attr);
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return mlirOperationGetResult(op, 0);
}

void check_declare(MlirOperation module, const char *name, int n, MlirType const *from, int n_results,
                   MlirType const *to) {
  MlirContext ctx = mlirOperationGetContext(module);
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(module));

  if (!mlirOperationIsNull(ir_find_symbol(module, "func.func", ir_str(name))))
    return;
  MlirNamedAttribute attrs[] = {
      mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("sym_name")), mlirStringAttrGet(ctx, ir_str(name))),
      mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("sym_visibility")),
                            mlirStringAttrGet(ctx, ir_str("private"))),
      mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("function_type")),
                            mlirTypeAttrGet(mlirFunctionTypeGet(ctx, n, from, n_results, to))),
  };
  MlirRegion region = mlirRegionCreate();
  MlirOperationState st = mlirOperationStateGet(ir_str("func.func"), mlirLocationUnknownGet(ctx));
  mlirOperationStateAddAttributes(&st, 3, attrs);
  mlirOperationStateAddOwnedRegions(&st, 1, &region);
  mlirBlockInsertOwnedOperation(body, 0, mlirOperationCreate(&st));
}

MlirValue check_convert(MlirOperation before, const char *name, MlirValue x, MlirType to) {
  if (mlirTypeEqual(mlirValueGetType(x), to))
    return x;
  return mlirOperationGetResult(check_insert(before, name, 1, &x, 1, &to, NULL), 0);
}
