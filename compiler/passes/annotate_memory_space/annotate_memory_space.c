/* annotate_memory_space: gives every buffer a memory space.
 *
 *     %a = memref.alloc() : memref<256x256xf32>                     %a = memref.alloc() : memref<256x256xf32, 3 : i32>
 *     "nkipy.layout"(%a) {mem_space = 3 : i32, …}            ==>    "nkipy.layout"(%a) {mem_space = 3 : i32, …}
 *     "nkipy.tile_op"(%a) {…}
 *
 * 1. Views of one buffer and loop-carried values form a group that is in one memory (groups.c).
 *    Arguments and results of calls are in SharedHbm.  Allocations for tiles already have a space.  A layout on a whole
 *    buffer states its space.  If the layouts of values that share a buffer differ, on-chip memory wins, since copies
 *    can read and write tiles there, too.  A group without any information is in Hbm: operations on tiles state the
 *    space of their tiles, and other data is moved by copies.  A table of constants (memref.global) is in Hbm.
 * 2. If a layout puts a part of a buffer into a memory other than the buffer's (for example the product of one batch
 *    iteration in SBUF while the results are in SharedHbm), the part gets its own buffer.  The new buffer is first
 *    filled from the part, unless the part was never written.  It is written back where the part is inserted, or
 *    otherwise after the last use.
 * 3. Returned values are in SharedHbm.  A value that the user put on-chip stays there and is copied out before the
 *    return.
 * 4. tile_op operations are erased.  Layouts stay and name the chosen space.
 *
 * After the pass every memref has a space.  The space Constant is only for buffers that are filled with one scalar.
 */
#include "passes/annotate_memory_space/annotate_memory_space.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/table.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

/* ---- layouts ---------------------------------------------------------------------------------------- */

static int claim_of(MlirOperation layout) {
  MlirAttribute a = ir_attr(layout, "mem_space");
  return mlirAttributeIsNull(a) ? MEM_NONE : (int)mlirIntegerAttrGetValueInt(a);
}

static bool is_on_memref(MlirOperation layout) {
  return mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(layout, 0)));
}

static bool is_fill_of_constant(MlirOperation op) {
  MlirOperation def = ir_is(op, "linalg.fill") ? ir_defining_op(mlirOperationGetOperand(op, 0)) : (MlirOperation){NULL};
  return !mlirOperationIsNull(def) && ir_is(def, "arith.constant");
}

static enum status check_constant(struct pass_run *run, MlirOperation layout) {
  MlirValue root = buffer_root(mlirOperationGetOperand(layout, 0));

  for (MlirOpOperand u = mlirValueGetFirstUse(root); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (is_fill_of_constant(mlirOpOperandGetOwner(u)))
      return ST_OK;
  return pass_fail(run, layout, "CONSTANT memory space requires a scalar broadcast: a buffer filled with one constant");
}

static void claim(struct space_group *g, enum mem_space space) {
  if (g->claimed == MEM_NONE || (mem_is_dram(g->claimed) && !mem_is_dram(space)))
    g->claimed = space;
}

/* ---- what is fixed ---------------------------------------------------------------------------------- */

static void fix(struct space_groups *s, MlirValue v, enum mem_space space) {
  struct space_group *g;

  if (!mlirTypeIsAMemRef(mlirValueGetType(v)))
    return;
  g = space_group_of(s, v);
  if (g->fixed == MEM_NONE)
    g->fixed = space;
}

static void fix_boundaries(struct space_groups *s, const struct ir_ops *functions) {
  for (int f = 0; f < functions->n; f++) {
    MlirBlock body = ir_body(functions->v[f]);
    for (intptr_t k = 0; !mlirBlockIsNull(body) && k < mlirBlockGetNumArguments(body); k++)
      fix(s, mlirBlockGetArgument(body, k), MEM_SHARED_HBM);
  }
  for (int k = 0; k < s->values.n; k++) {
    MlirOperation def = ir_defining_op(s->values.v[k]);
    if (!mlirOperationIsNull(def) && ir_is(def, "func.call"))
      fix(s, s->values.v[k], MEM_SHARED_HBM);
    else if (!mlirOperationIsNull(def) && ir_is(def, "memref.get_global"))
      fix(s, s->values.v[k], MEM_HBM);
    else if (memrefs_space(s->values.v[k]) != MEM_NONE)
      fix(s, s->values.v[k], memrefs_space(s->values.v[k]));
  }
}

static void decide(struct space_groups *s, const struct ir_ops *returns) {
  for (int k = 0; k < s->values.n; k++) {
    struct space_group *g = space_group_of(s, s->values.v[k]);
    g->space = g->fixed ? g->fixed : g->claimed;
  }
  for (int r = 0; r < returns->n; r++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(returns->v[r]); k++) {
      MlirValue v = mlirOperationGetOperand(returns->v[r], k);
      struct space_group *g = mlirTypeIsAMemRef(mlirValueGetType(v)) ? space_group_of(s, v) : NULL;
      if (g && !g->fixed && (g->space == MEM_NONE || mem_is_dram(g->space)))
        g->space = MEM_SHARED_HBM;
    }
  for (int k = 0; k < s->values.n; k++) {
    struct space_group *g = space_group_of(s, s->values.v[k]);
    if (g->space == MEM_NONE)
      g->space = MEM_HBM;
  }
}

/* ---- parts that lie elsewhere ----------------------------------------------------------------------- */

/* Returns the copy in v's block that writes v back to its own place (bufferization makes it from
 * tensor.insert_slice), or null. */
static MlirOperation put_back(MlirValue v) {
  MlirBlock block = mlirOperationGetBlock(ir_defining_op(v));

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, "memref.copy") && mlirOpOperandGetOperandNumber(u) == 0 &&
        mlirBlockEqual(mlirOperationGetBlock(op), block) && buffer_same_part(v, mlirOperationGetOperand(op, 1)))
      return op;
  }
  return (MlirOperation){NULL};
}

static void move_uses(MlirValue from, MlirValue to) {
  assert(!mlirValueEqual(from, to));
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(from); !mlirOpOperandIsNull(u); u = next) {
    next = mlirOpOperandGetNextUse(u);
    mlirOperationSetOperand(mlirOpOperandGetOwner(u), mlirOpOperandGetOperandNumber(u), to);
  }
}

/* Updates the types of the views of v, whose source has changed. */
static enum status retype_views(struct pass_run *run, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!buffer_is_view(op))
      continue;
    MlirValue result = mlirOperationGetResult(op, 0);
    MlirType t = mlirValueGetType(v), was = mlirValueGetType(result);
    if (!ir_is(op, "memref.subview") || mlirShapedTypeGetRank(t) != mlirShapedTypeGetRank(was))
      return pass_fail(run, op, "a view of a part of a buffer that is to lie in other memory cannot be moved");
    int64_t strides[IR_MEMREF_RANK_MAX], offset;
    if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(t, strides, &offset)))
      return pass_fail(run, op, "a buffer whose strides are not known cannot be moved to other memory");
    MlirAttribute offsets = ir_attr(op, "static_offsets");
    const intptr_t rank = mlirShapedTypeGetRank(t);
    int64_t dims[IR_MEMREF_RANK_MAX], at = offset;
    for (intptr_t d = 0; d < rank; d++) {
      const int64_t o = mlirDenseI64ArrayGetElement(offsets, d);
      const bool dynamic = o == mlirShapedTypeGetDynamicStrideOrOffset() ||
                           at == mlirShapedTypeGetDynamicStrideOrOffset() ||
                           strides[d] == mlirShapedTypeGetDynamicStrideOrOffset();
      at = dynamic ? mlirShapedTypeGetDynamicStrideOrOffset() : at + o * strides[d];
      dims[d] = mlirShapedTypeGetDimSize(was, d);
    }
    MlirAttribute layout = mlirStridedLayoutAttrGet(mlirTypeGetContext(t), at, rank, strides);
    mlirValueSetType(result, mlirMemRefTypeGet(mlirShapedTypeGetElementType(was), rank, dims, layout,
                                               mlirMemRefTypeGetMemorySpace(t)));
    enum status st = retype_views(run, result);
    if (st)
      return st;
  }
  return ST_OK;
}

static enum status move_part(struct pass_run *run, MlirOperation layout, enum mem_space space) {
  MlirValue v = mlirOperationGetOperand(layout, 0);
  MlirOperation def = ir_defining_op(v);

  if (mlirOperationIsNull(def) || !buffer_is_view(def))
    return pass_fail(run, layout, "the value shares a buffer with one that lies in other memory");
  struct buffer_uses uses = buffer_find_uses(run->arena, v);
  MlirBlock block = mlirOperationGetBlock(def);
  MlirOperation last = def, back = put_back(v);
  bool reads = false, writes = false;
  for (int k = 0; k < uses.n; k++) {
    MlirOperation here = ir_ancestor_in(uses.v[k].op, block);
    reads |= (uses.v[k].access & BUFFER_READS) && !mlirOperationEqual(uses.v[k].op, back);
    writes |= (uses.v[k].access & BUFFER_WRITES) != 0;
    if (buffer_is_before(last, here))
      last = here;
  }
  const bool fill = !buffer_is_undefined(run->arena, def, v);
  MlirOperation next = mlirOperationGetNextInBlock(def);
  MlirValue own = space_alloc_before(run, next, v, space);
  move_uses(v, own);
  /* a write may not cover all elements, so the old contents are needed, too */
  if (fill && (reads || writes))
    space_copy_before(run, next, v, own);
  if (writes && mlirOperationIsNull(back))
    space_copy_after(run, last, own, v);
  struct remark *r = pass_remark(run, layout, RULE_OWN_BUFFER, "a part of a buffer gets a buffer of its own in %s",
                                 layout_space_name(space));
  remark_reject(r, "its place in the whole", "the whole lies in other memory");
  return retype_views(run, own);
}

/* ---- boundaries ------------------------------------------------------------------------------------- */

static MlirType shared(MlirType t) {
  if (!mlirTypeIsAMemRef(t))
    return t;
  int64_t dims[IR_MEMREF_RANK_MAX];
  for (intptr_t d = 0; d < mlirShapedTypeGetRank(t); d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), mlirShapedTypeGetRank(t), dims, mlirMemRefTypeGetLayout(t),
                           mlirIntegerAttrGet(mlirIntegerTypeGet(mlirTypeGetContext(t), 32), MEM_SHARED_HBM));
}

/* Copies operands that are not in SharedHbm to SharedHbm before op. */
static void copy_out(struct pass_run *run, MlirOperation op) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirValue v = mlirOperationGetOperand(op, k);
    if (!mlirTypeIsAMemRef(mlirValueGetType(v)) || memrefs_space(v) == MEM_SHARED_HBM)
      continue;
    MlirValue out = space_alloc_before(run, op, v, MEM_SHARED_HBM);
    space_copy_before(run, op, v, out);
    if (ir_is(op, "func.call")) /* a call must match the types of the function */
      out = space_cast_before(run, op, out, shared(mlirValueGetType(v)));
    mlirOperationSetOperand(op, k, out);
    pass_remark(run, op, RULE_COPY_TO_SHARED, "copied to shared HBM");
  }
}

/* Puts all memrefs in a declaration's type into shared HBM. */
static void retype_declaration(struct pass_run *run, MlirOperation function) {
  MlirType was = mlirTypeAttrGetValue(ir_attr(function, "function_type"));
  const intptr_t n = mlirFunctionTypeGetNumInputs(was), m = mlirFunctionTypeGetNumResults(was);
  MlirType *types = arena_new_array(run->arena, MlirType, (size_t)(n + m));

  for (intptr_t k = 0; k < n; k++)
    types[k] = shared(mlirFunctionTypeGetInput(was, k));
  for (intptr_t k = 0; k < m; k++)
    types[n + k] = shared(mlirFunctionTypeGetResult(was, k));
  ir_set_attr(function, "function_type", mlirTypeAttrGet(mlirFunctionTypeGet(run->ir->ctx, n, types, m, types + n)));
}

static void retype_function(struct pass_run *run, MlirOperation function) {
  if (mlirBlockIsNull(ir_body(function)))
    retype_declaration(run, function);
  else
    edit_retype_function(run, function);
}

static void retype_globals(struct pass_run *run) {
  struct ir_ops globals = ir_collect_named(run->arena, run->module, "memref.global");
  struct ir_ops uses = ir_collect_named(run->arena, run->module, "memref.get_global");

  for (int g = 0; g < globals.n; g++) {
    MlirAttribute name = ir_attr(globals.v[g], "sym_name");
    for (int k = 0; k < uses.n; k++) {
      MlirAttribute used = ir_attr(uses.v[k], "name");
      if (!mlirStringRefEqual(mlirFlatSymbolRefAttrGetValue(used), mlirStringAttrGetValue(name)))
        continue;
      MlirType t = mlirValueGetType(mlirOperationGetResult(uses.v[k], 0));
      mlirOperationSetInherentAttributeByName(globals.v[g], ir_str("type"), mlirTypeAttrGet(t));
    }
  }
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static enum status read_layouts(struct pass_run *run, struct space_groups *s, const struct ir_ops *layouts) {
  for (int k = 0; k < layouts->n; k++) {
    const int space = claim_of(layouts->v[k]);
    MlirValue v = mlirOperationGetOperand(layouts->v[k], 0);
    if (space == MEM_NONE || !is_on_memref(layouts->v[k]))
      continue;
    if (space < MEM_HBM || space > MEM_CONSTANT)
      return pass_fail(run, layouts->v[k], "%d is not a memory space", space);
    enum status st = space == MEM_CONSTANT ? check_constant(run, layouts->v[k]) : ST_OK;
    if (st)
      return st;
    if (mlirValueEqual(buffer_root(v), v))
      claim(space_group_of(s, v), (enum mem_space)space);
  }
  return ST_OK;
}

static enum status move_parts(struct pass_run *run, const struct ir_ops *layouts) {
  for (int k = 0; k < layouts->n; k++) {
    const enum mem_space wanted = (enum mem_space)claim_of(layouts->v[k]); /* checked by read_layouts */
    if (wanted == MEM_NONE || !is_on_memref(layouts->v[k]))
      continue;
    MlirValue v = mlirOperationGetOperand(layouts->v[k], 0);
    const enum mem_space is = memrefs_space(v);
    if (is == wanted || (mem_is_dram(is) && mem_is_dram(wanted)) || mlirValueEqual(buffer_root(v), v))
      continue;
    enum status st = move_part(run, layouts->v[k], wanted);
    if (st)
      return st;
  }
  return ST_OK;
}

/* What decided where the buffers of the module lie: maps each memref.alloc to a text. */
static struct table find_reasons(struct pass_run *run, struct space_groups *s) {
  struct ir_ops allocs = ir_collect_named(run->arena, run->module, "memref.alloc");
  struct table why = {.arena = run->arena};

  for (int k = 0; k < allocs.n; k++) {
    const struct space_group *g = space_group_of(s, mlirOperationGetResult(allocs.v[k], 0));
    const char *text = g->fixed != MEM_NONE         ? "an operation that uses it fixes the memory"
                       : g->claimed == g->space     ? "the layout of its value asks for it"
                       : g->space == MEM_SHARED_HBM ? "it is returned"
                                                    : "no layout asks for memory on the chip";
    table_put(&why, allocs.v[k].ptr, (void *)(uintptr_t)text);
  }
  return why;
}

/* Says in which memory each buffer lies.  A buffer without a reason was made by this pass. */
static void remark_memories(struct pass_run *run, const struct table *why) {
  struct ir_ops allocs = ir_collect_named(run->arena, run->module, "memref.alloc");

  for (int k = 0; k < allocs.n; k++) {
    const enum mem_space space = memrefs_space(mlirOperationGetResult(allocs.v[k], 0));
    const char *reason = table_get(why, allocs.v[k].ptr);
    struct remark *r = pass_remark(run, allocs.v[k], RULE_BUFFER_MEMORY, "lies in %s", layout_space_name(space));
    const double away = price_away_ns(run->target, mlirOperationGetResult(allocs.v[k], 0));
    const bool is_on_chip = mem_is_on_chip(space);
    price_chosen(r, is_on_chip ? 0 : space == MEM_SHARED_HBM ? away / 2 : away);
    price_instead(r, is_on_chip ? "HBM" : "SBUF", is_on_chip ? away : 0,
                  reason ? reason : "it holds a copy that is to lie there");
  }
}

static void finish_layouts(struct pass_run *run, const struct ir_ops *layouts) {
  MlirType i32 = mlirIntegerTypeGet(run->ir->ctx, 32);
  struct ir_ops tiles = ir_collect_named(run->arena, run->module, "nkipy.tile_op");

  for (int k = 0; k < layouts->n; k++)
    if (is_on_memref(layouts->v[k]))
      ir_set_attr(layouts->v[k], "mem_space",
                  mlirIntegerAttrGet(i32, memrefs_space(mlirOperationGetOperand(layouts->v[k], 0))));
  for (int k = 0; k < tiles.n; k++)
    mlirOperationDestroy(tiles.v[k]);
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  struct ir_ops returns = ir_collect_named(run->arena, run->module, "func.return");
  struct ir_ops calls = ir_collect_named(run->arena, run->module, "func.call");
  struct ir_ops layouts = ir_collect_named(run->arena, run->module, "nkipy.layout");
  struct space_groups s;

  space_groups_init(&s, run, run->module);
  fix_boundaries(&s, &functions);
  enum status st = read_layouts(run, &s, &layouts);
  if (st)
    return st;
  decide(&s, &returns);
  const struct table why = find_reasons(run, &s);
  pass_step(run, run->module, "set-memories");
  for (int k = 0; k < s.values.n; k++)
    space_set(s.values.v[k], space_group_of(&s, s.values.v[k])->space);
  st = move_parts(run, &layouts);
  if (st)
    return st;
  for (int k = 0; k < calls.n; k++) {
    pass_step(run, calls.v[k], "copy-argument");
    copy_out(run, calls.v[k]);
  }
  for (int k = 0; k < returns.n; k++) {
    pass_step(run, returns.v[k], "copy-result");
    copy_out(run, returns.v[k]);
  }
  for (int k = 0; k < functions.n; k++)
    retype_function(run, functions.v[k]);
  retype_globals(run);
  pass_step(run, run->module, "finish-annotations");
  finish_layouts(run, &layouts);
  remark_memories(run, &why);
  return ST_OK;
}

const struct pass_def annotate_memory_space = {
    .name = "annotate-memory-space",
    .run = run_pass,
};
