/* apply_and_strip_transforms: runs the transform script of knob-driven-tiling and takes it away.
 *
 * @__transform_main is interpreted on the module; then all transform operations and the attribute that announces them
 * go.  Without a script there is only that to do.
 *
 * A split operation leaves its parts as slices around their loops.  Those are moved into the loops, so that what comes
 * out is one loop nest over the whole tiles and, behind it, one over the rest, both on the whole value:
 *
 *     %s = extract_slice %init[128, 0] [2, 64]
 *     %r = scf.for %i = 0 to 2 step 2 iter_args(%a = %s)            %r = scf.for %i = 128 to 130 step 2
 *       extract_slice %x2[%i, 0], … %a[%i, 0]                ==>          iter_args(%a = %init)
 *     %o = insert_slice %r into %init[128, 0]                           extract_slice %x[%i, 0], … %a[%i, 0]
 *
 * This is what fusion and the passes on buffers expect: every offset is a multiple of the tile, and no view of a part
 * stands between a loop and its buffer.  slices.c does it; it changes nothing where the pattern is not complete.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Dialect/Transform/Interpreter.h"

#include "ir/structured.h"
#include "passes/pass.h"
#include "passes/apply_and_strip_transforms/slices.h"

static bool is_transform(MlirOperation op, void *user) {
  (void)user;
  MlirStringRef n = mlirIdentifierStr(mlirOperationGetName(op));
  return n.length > 10 && !memcmp(n.data, "transform.", 10);
}

static bool is_entry(MlirOperation op, void *user) {
  (void)user;
  if (!ir_is(op, "transform.named_sequence"))
    return false;
  MlirAttribute name = ir_attr(op, "sym_name");
  return mlirStringRefEqual(mlirStringAttrGetValue(name), ir_str("__transform_main"));
}

/* Looking for an operation by its number goes through the whole function, which tiling makes several times as large:
 * all are looked for first.  Each handle then waits for its step; no step touches the operations of others. */
static void match_first(struct pass_run *run, MlirOperation entry) {
  struct ir_ops matches = ir_collect_named(run->arena, entry, "transform.structured.match");
  MlirBlock body = ir_body(entry);
  MlirValue root = mlirBlockGetArgument(body, 0);
  MlirOperation last = {NULL};

  for (int k = 0; k < matches.n; k++) {
    MlirOperation op = matches.v[k];
    MlirAttribute attrs = ir_attr(op, "op_attrs");
    if (!mlirBlockEqual(mlirOperationGetBlock(op), body) || !mlirValueEqual(mlirOperationGetOperand(op, 0), root) ||
        mlirAttributeIsNull(attrs) ||
        mlirAttributeIsNull(mlirDictionaryAttrGetElementByName(attrs, ir_str("nkipy.op_id"))))
      continue;
    if (!mlirOperationIsNull(last))
      mlirOperationMoveAfter(op, last);
    else if (!mlirOperationEqual(op, mlirBlockGetFirstOperation(body)))
      mlirOperationMoveBefore(op, mlirBlockGetFirstOperation(body));
    last = op;
  }
}

/* What the script works on: the function if there is one, so that the script itself is not searched. */
static MlirOperation payload(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  return functions.n == 1 ? functions.v[0] : run->module;
}

static enum status apply(struct pass_run *run, MlirOperation entry) {
  struct ir_capture c;
  MlirTransformOptions options = mlirTransformOptionsCreate();

  mlirTransformOptionsEnableExpensiveChecks(options, false); /* our own script; they look at all handles each time */

  ir_capture_begin(run->ir, &c, run->ds, DG_PASS_FAILED, run->arena);
  match_first(run, entry);
  MlirLogicalResult done = mlirTransformApplyNamedSequence(payload(run), entry, run->module, options);
  ir_capture_end(run->ir, &c);
  mlirTransformOptionsDestroy(options);
  if (mlirLogicalResultIsSuccess(done) && !c.errors)
    return ST_OK;
  return pass_fail(run, run->module, "transform interpretation failed");
}

static void strip(struct pass_run *run) {
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(run->module));
  MlirOperation next;

  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (is_transform(op, NULL))
      mlirOperationDestroy(op);
  }
  mlirOperationRemoveAttributeByName(run->module, ir_str("transform.with_named_sequence"));
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops entries = ir_collect(run->arena, run->module, is_entry, NULL);

  enum status st = entries.n ? apply(run, entries.v[0]) : ST_OK;
  if (st)
    return st;
  strip(run);
  slices_move_into_loops(run);
  return ST_OK;
}

const struct pass_def apply_and_strip_transforms = {
    .name = "apply-and-strip-transforms",
    .run = run_pass,
};
