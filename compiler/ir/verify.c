/* verify: see snapshot.h.
 *
 * A pass leaves most operations as they are, and MLIR's verifier takes longer than most passes.  It looks at an operation and all that
 * is in it, so functions and loops that are themselves as they were are opened here, and only what changed in them is
 * verified.  An operation's verifier looks at what the hashes are made of, its attributes, the types of its operands and
 * results, and at its regions; that of a loop also at the end of its body.  That values are defined before they are used is
 * checked for all.
 */
#include "base/index.h"
#include "ir/internal.h"
#include "ir/query.h"
#include "ir/snapshot.h"

struct verified {
  const struct ir_prints *before;
  struct index by_print;
};

static bool was_there(const struct verified *v, MlirOperation op) {
  const uint64_t print = ir_print_of(op);
  for (struct index_probe p = index_probe(&v->by_print, (uint32_t)print); index_next(&p);)
    if (v->before->v[p.entry] == print)
      return true;
  return false;
}

/* True if op and all that is in it were there. */
static bool were_there(const struct verified *v, MlirOperation op) {
  if (mlirOperationGetNumSuccessors(op) || !was_there(v, op))
    return false;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (MlirOperation in = mlirBlockGetFirstOperation(b); !mlirOperationIsNull(in);
           in = mlirOperationGetNextInBlock(in))
        if (!were_there(v, in))
          return false;
  return true;
}

/* The block of a function or a loop that can be opened, because it and the block's end are as they were; null: of no other. */
static MlirBlock body_of_old(const struct verified *v, MlirOperation op) {
  static const char *const names[] = {"func.func", "scf.for"};
  const MlirBlock none = {NULL}, b = ir_which(op, 2, names) < 0 ? none : ir_body(op);
  if (mlirBlockIsNull(b) || !mlirBlockIsNull(mlirBlockGetNextInRegion(b)) || !was_there(v, op))
    return none;
  const MlirOperation end = mlirBlockGetTerminator(b);
  return !mlirOperationIsNull(end) && was_there(v, end) ? b : none;
}

static bool verify(const struct verified *v, MlirOperation op) {
  const MlirBlock b = body_of_old(v, op);
  if (mlirBlockIsNull(b))
    return were_there(v, op) || mlirOperationVerify(op);
  for (MlirOperation in = mlirBlockGetFirstOperation(b); !mlirOperationIsNull(in); in = mlirOperationGetNextInBlock(in))
    if (!verify(v, in))
      return false;
  return true;
}

/* True if v is defined before op, in its block or in one around it.  False also for what comes from another block of a region. */
static bool is_defined(MlirValue v, MlirOperation op) {
  if (mlirValueIsABlockArgument(v))
    return !mlirOperationIsNull(ir_ancestor_in(op, mlirBlockArgumentGetOwner(v)));
  const MlirOperation def = mlirOpResultGetOwner(v), at = ir_ancestor_in(op, mlirOperationGetBlock(def));
  return !mlirOperationIsNull(at) && !mlirOperationEqual(def, at) && mlirOperationIsBeforeInBlock(def, at);
}

static MlirWalkResult check_operands(MlirOperation op, void *user) {
  bool *ok = user;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op) && *ok; k++)
    *ok = is_defined(mlirOperationGetOperand(op, k), op);
  return *ok ? MlirWalkResultAdvance : MlirWalkResultInterrupt;
}

bool ir_verify_changed(MlirOperation module, const struct ir_prints *before, struct arena *a) {
  struct verified v = {before, {.arena = a}};
  const MlirOperation only = mlirBlockGetFirstOperation(ir_body(module));
  bool ok = before->n > 0 && !mlirOperationIsNull(only) && ir_is(only, "func.func") &&
            mlirOperationIsNull(mlirOperationGetNextInBlock(only));
  for (int k = 0; k < before->n && ok; k++)
    index_add(&v.by_print, (uint32_t)before->v[k], k);
  if (ok && !was_there(&v, module))
    ok = false;
  if (ok)
    mlirOperationWalk(module, check_operands, &ok, MlirWalkPreOrder);
  return ok ? verify(&v, only) : mlirOperationVerify(module);
}
