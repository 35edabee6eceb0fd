/* plant: changes a program after a pass, as a fault of the pass would.
 *
 * NKX_PLANT=STAGE/KIND/N changes place number N (from 0) of its kind in what the stage made; STAGE is a name as
 * --stop-after takes it.  The process says on standard error if it found the place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "driver/pipeline.h"
#include "driver/plant.h"
#include "faults.h"
#include "ir/query.h"

struct search {
  const char *kind;
  int n;
  bool is_done;
};

static MlirOperation dead;

void fault_remove(MlirOperation op) {
  dead = op;
}

bool fault_is_one_of(MlirOperation op, const char *const *names) {
  for (; *names; names++)
    if (ir_is(op, *names))
      return true;
  return false;
}

MlirValue fault_constant(MlirOperation before, MlirAttribute value) {
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

MlirValue fault_index(MlirOperation before, int64_t value) {
  return fault_constant(before, mlirIntegerAttrGet(mlirIndexTypeGet(mlirOperationGetContext(before)), value));
}

struct earlier {
  MlirOperation op, found;
  bool (*is_of)(MlirOperation, MlirOperation);
};

static MlirWalkResult look_before(MlirOperation op, void *user) {
  struct earlier *e = user;
  if (mlirOperationEqual(op, e->op))
    return MlirWalkResultInterrupt;
  if (e->is_of(op, e->op))
    e->found = op;
  return MlirWalkResultAdvance;
}

MlirOperation fault_earlier(MlirOperation op, bool (*is_of)(MlirOperation, MlirOperation op)) {
  struct earlier e = {.op = op, .is_of = is_of};
  MlirOperation function = op;
  while (!mlirOperationIsNull(function) && !ir_is(function, "func.func"))
    function = mlirOperationGetParentOperation(function);
  if (!mlirOperationIsNull(function))
    mlirOperationWalk(function, look_before, &e, MlirWalkPreOrder);
  return e.found;
}

static bool change(const struct fault_kind *kinds, MlirOperation op, struct search *s) {
  for (; kinds->name; kinds++)
    if (!strcmp(kinds->name, s->kind) && kinds->change(op, s->n == 0) && !s->n--)
      return true;
  return false;
}

static MlirWalkResult look_at(MlirOperation op, void *user) {
  struct search *s = user;
  MlirOperation parent = mlirOperationGetParentOperation(op);
  if (!mlirOperationIsNull(parent) && ir_is_of(parent, "linalg.") && !ir_is(parent, "linalg.generic"))
    return MlirWalkResultAdvance; /* the body that the name implies, which no text shows */
  s->is_done = change(linalg_faults, op, s) || change(nisa_faults, op, s) || change(streams_faults, op, s);
  return s->is_done ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

bool plant_fault(int index, struct hlo_module *hlo, MlirModule module) {
  const char *what = getenv("NKX_PLANT");
  char stage[64], kind[64];
  int n;
  if (!what || sscanf(what, "%63[^/]/%63[^/]/%d", stage, kind, &n) != 3 || pipeline_find(&pipeline_hlo, stage) != index)
    return false;
  struct search s = {.kind = kind, .n = n};
  if (hlo)
    s.is_done = fault_in_hlo(hlo, kind, n);
  else
    mlirOperationWalk(mlirModuleGetOperation(module), look_at, &s, MlirWalkPreOrder);
  if (!mlirOperationIsNull(dead))
    mlirOperationDestroy(dead);
  dead = (MlirOperation){NULL};
  fprintf(stderr, s.is_done ? "planted %s\n" : "no place for %s\n", what);
  return s.is_done;
}
