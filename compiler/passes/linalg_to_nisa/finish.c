/* finish: completes the pass after all operations are lowered.
 *
 * Replaces the old allocations that are still used: by results, reshapes in HBM, and values of loops.  Refuses
 * operations that are neither instructions nor allowed beside instructions.  Gives all memrefs #nisa.mem memory
 * spaces.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "passes/lib/buffers.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static bool is_view(MlirOperation op, void *user) {
  (void)user;
  return buffer_is_view(op);
}

static void erase_dead_views(struct ln *ln) {
  struct ir_ops views = ir_collect(ln->run->arena, ln->run->module, is_view, NULL);
  while (views.n--)
    if (!ir_is_used(mlirOperationGetResult(views.v[views.n], 0)))
      mlirOperationDestroy(views.v[views.n]);
}

enum status ln_replace_allocs(struct ln *ln, const struct ir_ops *allocs) {
  enum status st = ST_OK;

  erase_dead_views(ln);
  for (int k = 0; k < allocs->n; k++) {
    MlirValue old = mlirOperationGetResult(allocs->v[k], 0), new = ln_buffer(ln, old);
    const bool used = ir_is_used(old);
    if (used && !mlirTypeEqual(mlirValueGetType(old), mlirValueGetType(new))) {
      ln->op = allocs->v[k];
      st = ln_fail(ln, "it is used in a way that its form on chip does not allow");
      continue;
    }
    mlirValueReplaceAllUsesOfWith(old, new);
    mlirOperationDestroy(allocs->v[k]);
  }
  return st;
}

/* ---- types and attributes --------------------------------------------------------------------------------------- */

/* Returns t with its memory space as #nisa.mem. */
static MlirType converted(MlirContext ctx, MlirType t) {
  if (!mlirTypeIsAMemRef(t))
    return t;
  MlirType element = mlirShapedTypeGetElementType(t);
  int64_t dims[IR_MEMREF_RANK_MAX];
  intptr_t rank = mlirShapedTypeGetRank(t);
  assert(rank <= IR_MEMREF_RANK_MAX);
  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return mlirMemRefTypeGet(element, rank, dims, mlirMemRefTypeGetLayout(t), nisa_space_attr(ctx, ln_type_space(t)));
}

static void convert_value(MlirContext ctx, MlirValue v) {
  mlirValueSetType(v, converted(ctx, mlirValueGetType(v)));
}

static void convert_function(MlirContext ctx, MlirOperation f, struct arena *a) {
  MlirType t = mlirTypeAttrGetValue(ir_attr(f, "function_type"));
  intptr_t n = mlirFunctionTypeGetNumInputs(t), m = mlirFunctionTypeGetNumResults(t);
  MlirType *types = arena_new_array(a, MlirType, (size_t)(n + m) + 1);

  for (intptr_t k = 0; k < n; k++)
    types[k] = converted(ctx, mlirFunctionTypeGetInput(t, k));
  for (intptr_t k = 0; k < m; k++)
    types[n + k] = converted(ctx, mlirFunctionTypeGetResult(t, k));
  MlirType new = mlirFunctionTypeGet(ctx, n, types, m, types + n);
  ir_set_attr(f, "function_type", mlirTypeAttrGet(new));
  if (m == 0 || !mlirAttributeIsNull(ir_attr(f, "nki.output_names")))
    return;
  MlirAttribute *names = arena_new_array(a, MlirAttribute, (size_t)m);
  for (intptr_t k = 0; k < m; k++)
    names[k] = mlirStringAttrGet(ctx, ir_str(m == 1 ? "output" : arena_printf(a, "output_%d", (int)k)));
  ir_set_attr(f, "nki.output_names", mlirArrayAttrGet(ctx, m, names));
}

static void strip_attributes(MlirOperation op) {
  for (intptr_t k = mlirOperationGetNumDiscardableAttributes(op) - 1; k >= 0; k--) {
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetDiscardableAttribute(op, k).name);
    if (ir_begins_with(name, "nkipy."))
      mlirOperationRemoveDiscardableAttributeByName(op, name);
  }
}

void ln_convert_types(struct ln *ln) {
  MlirContext ctx = ln->run->ir->ctx;
  struct ir_ops all = ir_collect(ln->run->arena, ln->run->module, NULL, NULL);

  for (int k = 0; k < all.n; k++) {
    MlirOperation op = all.v[k];
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
      convert_value(ctx, mlirOperationGetResult(op, r));
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
      for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
           b = mlirBlockGetNextInRegion(b))
        for (intptr_t i = 0; i < mlirBlockGetNumArguments(b); i++)
          convert_value(ctx, mlirBlockGetArgument(b, i));
    if (ir_is(op, "func.func"))
      convert_function(ctx, op, ln->run->arena);
    if (ir_is(op, "memref.global")) {
      MlirAttribute t = ir_attr(op, "type");
      ir_set_attr(op, "type", mlirTypeAttrGet(converted(ctx, mlirTypeAttrGetValue(t))));
    }
    strip_attributes(op);
  }
  ln->is_converted = true;
}

/* ---- what is left ----------------------------------------------------------------------------------------------- */

/* True if op may stay in a module of instructions. */
static bool is_allowed(MlirOperation op) {
  static const char *const names[] = {"builtin.module", "func.func",        "func.return", "scf.for",
                                      "scf.while",      "scf.condition",    "scf.if",      "scf.yield",
                                      "memref.global",  "memref.get_global"};
  if (ir_is_of(op, "nisa.") || ir_is_of(op, "arith."))
    return true;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k]))
      return true;
  return buffer_is_view(op) && !mem_is_on_chip(ln_space(mlirOperationGetResult(op, 0)));
}

static enum status refuse_leftover(struct ln *ln, MlirOperation op) {
  ln->op = op;
  if (!ir_is(op, "func.call"))
    return ln_fail(ln, "no instruction does what it does");
  MlirStringRef name = mlirFlatSymbolRefAttrGetValue(ir_attr(op, "callee"));
  return ln_fail(ln, "no instruction does what @%.*s does, and it came without NISA text; neuronx-cc links such calls",
                 (int)name.length, name.data);
}

enum status ln_refuse_leftovers(struct ln *ln) {
  struct ir_ops all = ir_collect(ln->run->arena, ln->run->module, NULL, NULL);
  enum status st = ST_OK;

  for (int k = 0; k < all.n; k++)
    if (!is_allowed(all.v[k]) && !ln_has_code(ln->run->ir, all.v[k], ln->codes))
      st = refuse_leftover(ln, all.v[k]);
  return st;
}

static bool has_engine(MlirOperation op, void *user) {
  (void)user;
  return nisa_op_of(op) && !mlirAttributeIsNull(ir_attr(op, "engine"));
}

/* n_merged: the instructions of the module that others took in. */
void ln_remark_engines(struct pass_run *run, int n_merged) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  int of_all = 0;

  for (int k = 0; k < functions.n; k++)
    of_all += ir_collect(run->arena, functions.v[k], has_engine, NULL).n;
  for (int k = 0; k < functions.n; k++) {
    struct ir_ops all = ir_collect(run->arena, functions.v[k], has_engine, NULL);
    int n[NISA_ENGINE_COUNT] = {0}, total = 0;
    const char *text = "";
    for (int i = 0; i < all.n; i++) {
      MlirAttribute engine = ir_attr(all.v[i], "engine");
      n[nisa_engine_from_name(mlirStringAttrGetValue(engine))]++;
      total++;
    }
    for (int e = NISA_ENGINE_NONE + 1; e < NISA_ENGINE_COUNT; e++)
      if (n[e])
        text =
            arena_printf(run->arena, "%s%s %d %s", text, *text ? "," : "", n[e], nisa_engine_name((enum nisa_engine)e));
    struct remark *r = pass_remark(run, functions.v[k], RULE_INSTRUCTIONS, "%d instruction%s, loops counted once:%s",
                                   total, total == 1 ? "" : "s", text);
    remark_cost(r, "%d in all functions", of_all);
    remark_reject_for(r, "the instructions of each operation", NULL,
                      arena_printf(run->arena, "%d in all functions", of_all + n_merged),
                      "some of them do together what one can do");
  }
}

void ln_erase_declarations(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++)
    if (mlirBlockIsNull(ir_body(functions.v[k])))
      mlirOperationDestroy(functions.v[k]);
}
