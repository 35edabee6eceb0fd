/* cores: see the header. */
#include "nisa/cores.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

bool nisa_is_core(MlirOperation op) {
  if (!ir_is(op, "scf.execute_region"))
    return false;
  MlirAttribute a = ir_attr(op, "nisa.core");
  return !mlirAttributeIsNull(a) && mlirAttributeIsAInteger(a);
}

int nisa_core_number(MlirOperation core) {
  return (int)ir_int_attr(core, "nisa.core", 0);
}

MlirOperation nisa_core_around(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !nisa_is_core(op))
    op = mlirOperationGetParentOperation(op);
  return op;
}

/* The first region of a core from op on, in its block. */
static MlirOperation next_core(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !nisa_is_core(op))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

static MlirOperation first_core(MlirOperation function) {
  MlirBlock body = ir_body(function);
  return mlirBlockIsNull(body) ? (MlirOperation){NULL} : next_core(mlirBlockGetFirstOperation(body));
}

bool nisa_has_cores(MlirOperation function) {
  return !mlirOperationIsNull(first_core(function));
}

struct ir_ops nisa_roots(struct arena *a, MlirOperation function) {
  struct ir_ops roots = {.v = arena_new_array(a, MlirOperation, NISA_CORES)};
  for (MlirOperation op = first_core(function); !mlirOperationIsNull(op) && roots.n < NISA_CORES;
       op = next_core(mlirOperationGetNextInBlock(op)))
    roots.v[roots.n++] = op;
  if (!roots.n)
    roots.v[roots.n++] = function;
  return roots;
}

const char *nisa_root_label(struct arena *a, MlirOperation root) {
  return nisa_is_core(root) ? arena_printf(a, "core %d: ", nisa_core_number(root)) : "";
}

MlirOperation nisa_create_core(MlirLocation loc, int number) {
  MlirContext ctx = mlirLocationGetContext(loc);
  MlirOperationState yield = mlirOperationStateGet(ir_str("scf.yield"), loc);
  MlirOperationState st = mlirOperationStateGet(ir_str("scf.execute_region"), loc);
  MlirNamedAttribute attr = mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("nisa.core")),
                                                  mlirIntegerAttrGet(mlirIntegerTypeGet(ctx, 64), number));
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);

  mlirBlockAppendOwnedOperation(block, mlirOperationCreate(&yield));
  mlirRegionAppendOwnedBlock(region, block);
  mlirOperationStateAddOwnedRegions(&st, 1, &region);
  mlirOperationStateAddAttributes(&st, 1, &attr);
  return mlirOperationCreate(&st);
}
