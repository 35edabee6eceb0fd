/* emit: the programs of the streams.
 *
 * The entry block keeps the allocations, the constants, and the views of arguments and globals.  Each stream gets a copy
 * of the rest that has only what the stream needs: its instructions with the waits before them, the triggers of its
 * queues, and the loops and the index arithmetic that these need.  Copies keep the locations of their originals.
 */
#include <assert.h>
#include <inttypes.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"

#include "nisa/streams.h"
#include "passes/engine_programs/engine_programs.h"
#include "passes/lib/price.h"

struct emitter {
  struct ep *ep;
  struct ep_counts counts; /* of the instructions that raise semaphores */
  struct table entry;      /* operations that stay in the entry block -> themselves */
  struct table hoisted;    /* value of an allocation in a loop -> the one in the entry block */
  int stream;
  struct table values;  /* value -> its copy in the stream */
  int64_t ahead;        /* the loop that is written has the first so many rounds; 0: the others, or all */
  MlirBlock top;        /* of the stream's program */
  MlirOperation end;    /* its terminator */
  MlirOperation placed; /* the last operation of it that has its place (place_part), or null */
  MlirOperation backs;  /* in the program of Sync, the first of the parts that free transfers may go before, or null */
  bool is_synced;       /* nothing was executed since the last barrier but loads of registers for control flow */
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static MlirValue copy_of(const struct emitter *e, MlirValue v) {
  MlirValue copy = {table_get(&e->values, v.ptr)};
  if (mlirValueIsNull(copy))
    copy.ptr = table_get(&e->hoisted, v.ptr);
  return mlirValueIsNull(copy) ? v : copy;
}

static void set_copy(struct emitter *e, MlirValue v, MlirValue copy) {
  table_put(&e->values, v.ptr, (void *)(uintptr_t)copy.ptr);
}

static void copy_op(struct emitter *e, struct ir_builder *b, MlirOperation op, const char *engine, bool signals) {
  MlirOperation copy = mlirOperationClone(op);
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    mlirOperationSetOperand(copy, k, copy_of(e, mlirOperationGetOperand(op, k)));
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    set_copy(e, mlirOperationGetResult(op, k), mlirOperationGetResult(copy, k));
  if (engine)
    ir_set_attr(copy, "engine", mlirStringAttrGet(b->ctx, ir_str(engine)));
  if (signals)
    nisa_set_signal(copy);
  ir_place(b, copy);
}

/* The number of the iteration of an scf.for, from 0. */
static MlirValue iteration_of(struct emitter *e, struct ir_builder *b, MlirOperation loop) {
  MlirValue v = copy_of(e, mlirBlockGetArgument(ir_body(loop), 0));
  MlirValue lower = mlirOperationGetOperand(loop, 0), step = mlirOperationGetOperand(loop, 2);
  int64_t from, by;
  if (!ir_int_constant(lower, &from) || from)
    v = ir_binary(b, "arith.subi", v, copy_of(e, lower));
  if (!ir_int_constant(step, &by) || by != 1)
    v = ir_binary(b, "arith.divui", v, copy_of(e, step));
  return v;
}

/* ---- waits ------------------------------------------------------------------------------------------------------ */

static void emit_wait(struct emitter *e, struct ir_builder *b, const struct ep_wait *w) {
  const struct ep *ep = e->ep;
  const struct ep_linear count = ep_count_of(ep, &e->counts, w, INT64_MAX);
  const int around = w->loop != EP_NONE ? ep->loops.v[w->loop].parent : ep->instrs.v[w->to].loop;
  MlirAffineExpr sum = {NULL};
  MlirValue indices[EP_DEPTH_MAX];
  int64_t constant = count.constant;
  intptr_t n = 0;

  for (int k = 0; k < w->depth; k++) {
    if (!count.factor[k])
      continue;
    const struct ep_loop *l = &ep->loops.v[ep_loop_at(ep, around, k)];
    int64_t factor = count.factor[k];
    if (factor % l->step) {
      indices[n] = iteration_of(e, b, l->op);
    } else {
      indices[n] = copy_of(e, mlirBlockGetArgument(ir_body(l->op), 0));
      factor /= l->step;
      constant -= factor * l->lower;
    }
    MlirAffineExpr term =
        mlirAffineMulExprGet(mlirAffineSymbolExprGet(b->ctx, n), mlirAffineConstantExprGet(b->ctx, factor));
    sum = n++ ? mlirAffineAddExprGet(sum, term) : term;
  }
  MlirAffineExpr rest = mlirAffineConstantExprGet(b->ctx, constant);
  sum = n ? mlirAffineAddExprGet(sum, rest) : rest;
  MlirAffineMap map = mlirAffineMapGet(b->ctx, 0, n, 1, &sum);
  ir_place(b, nisa_create_wait(b->loc, ep->streams[w->from_stream].name, map, n, indices));
}

static void emit_waits(struct emitter *e, struct ir_builder *b, int first) {
  for (int k = first; k != EP_NONE; k = e->ep->waits.v[k].next) {
    const struct ep_wait *w = &e->ep->waits.v[k];
    if (w->is_kept && w->on == e->stream && !(e->ahead && ep_rounds_ahead(e->ep, w) >= e->ahead))
      emit_wait(e, b, w);
  }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void emit_block(struct emitter *e, struct ir_builder *b, MlirBlock block);

static void emit_barrier(struct emitter *e, struct ir_builder *b) {
  ir_place(b, nisa_create_barrier(b->loc));
  e->is_synced = true;
}

/* A copy of a loop or branch.  *bounds: the lower and the upper bound of a loop, NULL for those that it has. */
static void emit_regions(struct emitter *e, struct ir_builder *b, MlirOperation op, bool starts_with_barrier,
                         const MlirValue *bounds) {
  const intptr_t n = mlirOperationGetNumOperands(op), n_results = mlirOperationGetNumResults(op);
  const intptr_t n_regions = mlirOperationGetNumRegions(op), n_attrs = mlirOperationGetNumAttributes(op);
  struct arena *a = b->arena;
  MlirValue *operands = arena_new_array(a, MlirValue, (size_t)n);
  MlirType *results = arena_new_array(a, MlirType, (size_t)n_results);
  MlirRegion *regions = arena_new_array(a, MlirRegion, (size_t)n_regions);
  MlirNamedAttribute *attrs = arena_new_array(a, MlirNamedAttribute, (size_t)n_attrs);

  for (intptr_t k = 0; k < n; k++)
    operands[k] = bounds && k < 2 ? bounds[k] : copy_of(e, mlirOperationGetOperand(op, k));
  for (intptr_t k = 0; k < n_results; k++)
    results[k] = mlirValueGetType(mlirOperationGetResult(op, k));
  for (intptr_t k = 0; k < n_attrs; k++)
    attrs[k] = mlirOperationGetAttribute(op, k);
  for (intptr_t k = 0; k < n_regions; k++) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, k));
    regions[k] = mlirRegionCreate();
    if (mlirBlockIsNull(block))
      continue;
    struct ir_builder inside = *b;
    inside.block = mlirBlockCreate(0, NULL, NULL);
    mlirRegionAppendOwnedBlock(regions[k], inside.block);
    for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++) {
      MlirValue old = mlirBlockGetArgument(block, i);
      set_copy(e, old, mlirBlockAddArgument(inside.block, mlirValueGetType(old), b->loc));
    }
    if (starts_with_barrier)
      emit_barrier(e, &inside);
    emit_block(e, &inside, block);
    inside.loc = mlirOperationGetLocation(mlirBlockGetTerminator(block));
    copy_op(e, &inside, mlirBlockGetTerminator(block), NULL, false);
  }
  MlirOperation copy = ir_create(b, &(struct ir_parts){.name = mlirIdentifierStr(mlirOperationGetName(op)).data,
                                                       .n_operands = (int)n,
                                                       .operands = operands,
                                                       .n_results = (int)n_results,
                                                       .results = results,
                                                       .n_attrs = (int)n_attrs,
                                                       .attrs = attrs,
                                                       .n_regions = (int)n_regions,
                                                       .regions = regions});
  for (intptr_t k = 0; k < n_results; k++)
    set_copy(e, mlirOperationGetResult(op, k), mlirOperationGetResult(copy, k));
}

/* From op to the end of the program: only triggers, waits, loops of them, and constants that nothing else uses. */
static bool is_only_triggers(const struct emitter *e, MlirOperation op) {
  for (; !mlirOperationEqual(op, e->end); op = mlirOperationGetNextInBlock(op)) {
    if (!ir_is(op, "arith.constant") && !ir_is(op, "scf.for") && !ir_is(op, "nisa.wait") &&
        !ir_is(op, "nisa.dma_trigger"))
      return false;
  }
  return true;
}

/* What was written last in the program of Sync, outside of all loops, is moved up if it is free. */
static void place_part(struct emitter *e, const struct ir_builder *b, enum ep_sync_part part) {
  if (e->stream != EP_SYNC || !mlirBlockEqual(b->block, e->top))
    return;
  MlirOperation next,
      op = mlirOperationIsNull(e->placed) ? mlirBlockGetFirstOperation(e->top) : mlirOperationGetNextInBlock(e->placed);
  if (mlirOperationEqual(op, e->end))
    return;
  if (!is_only_triggers(e, op))
    part = EP_PART_FIXED;
  if (part == EP_PART_FIXED)
    e->backs = (MlirOperation){NULL};
  else if (part == EP_PART_BACKS && mlirOperationIsNull(e->backs))
    e->backs = op;
  const bool moves = part == EP_PART_FREE && !mlirOperationIsNull(e->backs);
  for (; !mlirOperationEqual(op, e->end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (moves)
      mlirOperationMoveBefore(op, e->backs);
    else
      e->placed = op;
  }
}

static void remark_ahead(struct emitter *e, MlirOperation op, int64_t ahead, int64_t trips) {
  struct remark *r =
      pass_remark(e->ep->run, op, RULE_RUN_AHEAD,
                  "the first %" PRId64 " of %" PRId64 " rounds of its transfers wait for nothing", ahead, trips);
  remark_cost(r, "%s", price_count(e->ep->run->arena, trips - ahead, "wait"));
  remark_reject_for(
      r, "one loop with the wait", NULL, price_count(e->ep->run->arena, trips, "wait"),
      arena_printf(e->ep->run->arena, "%" PRId64 " rounds would wait for what comes before the loop", ahead));
}

/* A loop of an engine's program: in that of Sync two, if its first rounds have nothing to wait for. */
static void emit_loop(struct emitter *e, struct ir_builder *b, MlirOperation op, int loop) {
  const struct ep_loop *l = &e->ep->loops.v[loop];
  const int64_t ahead = e->stream == EP_SYNC ? ep_loop_ahead(e->ep, &e->counts, loop) : 0;
  if (!ahead) {
    emit_waits(e, b, l->waits);
    emit_regions(e, b, op, false, NULL);
    place_part(e, b, ep_sync_part(e->ep, l->first, l->end, 0));
    return;
  }
  emit_waits(e, b, l->waits);
  const MlirValue lower = copy_of(e, mlirOperationGetOperand(op, 0)),
                  upper = copy_of(e, mlirOperationGetOperand(op, 1));
  const MlirValue middle = ir_index(b, l->lower + ahead * l->step);
  e->ahead = ahead;
  emit_regions(e, b, op, false, (MlirValue[]){lower, middle});
  e->ahead = 0;
  place_part(e, b, ep_sync_part(e->ep, l->first, l->end, ahead));
  b->loc = mlirOperationGetLocation(op);
  emit_regions(e, b, op, false, (MlirValue[]){middle, upper});
  place_part(e, b, EP_PART_FIXED);
  remark_ahead(e, op, ahead, l->trips);
}

/* Control flow on data: all streams meet. */
static void emit_control(struct emitter *e, struct ir_builder *b, MlirOperation op) {
  const bool is_branch = ir_is(op, "scf.if");
  if (is_branch)
    emit_barrier(e, b);
  emit_regions(e, b, op, !is_branch, NULL);
  emit_barrier(e, b);
}

static void emit_instr(struct emitter *e, struct ir_builder *b, MlirOperation op, int k) {
  const struct ep *ep = e->ep;
  const struct ep_instr *i = &ep->instrs.v[k];
  const bool is_load = i->kind == NISA_REGISTER_LOAD;
  const int s = e->stream;

  e->is_synced = false;
  if (i->streams >> s & 1) {
    if (is_load || s < EP_ENGINES)
      emit_waits(e, b, i->waits);
    copy_op(e, b, op, is_load ? ep->streams[ep->streams[s].on].name : NULL, i->signals >> s & 1);
    return;
  }
  for (int q = EP_ENGINES; !is_load && q < ep->n_streams; q++)
    if (i->streams >> q & 1 && ep->streams[q].on == s) {
      emit_waits(e, b, i->waits);
      ir_place(b, nisa_create_trigger(b->loc, ep->streams[q].name));
    }
}

/* How often the body of a loop was executed, counted through the loops around it in its segment as far as it matters modulo
 * `copies`. */
static MlirValue executions_of(struct emitter *e, struct ir_builder *b, MlirOperation op, int64_t copies) {
  const struct ep *ep = e->ep;
  const int loop = (int)(intptr_t)table_get(&ep->loop_of, op.ptr) - 1;
  MlirValue n = iteration_of(e, b, op);
  int64_t each = 1; /* executions in an iteration of the next loop around */
  for (int k = loop; k != EP_NONE && copies > 1 && ep->loops.v[k].parent != EP_NONE; k = ep->loops.v[k].parent) {
    each *= ep->loops.v[k].trips;
    if (each % copies == 0)
      break;
    MlirValue outer = iteration_of(e, b, ep->loops.v[ep->loops.v[k].parent].op);
    n = ir_binary(b, "arith.addi", ir_binary(b, "arith.muli", outer, ir_index(b, each)), n);
  }
  return n;
}

/* The copy of an allocation that an iteration uses.  In PSUM it begins an accumulation group. */
static void emit_rotate(struct emitter *e, struct ir_builder *b, MlirOperation alloc) {
  MlirOperation parent = mlirOperationGetParentOperation(alloc);
  MlirValue v = mlirOperationGetResult(alloc, 0), hoisted = {table_get(&e->hoisted, v.ptr)};
  const int64_t copies = ir_int_attr(ir_defining_op(hoisted), "copies", 0);
  if (copies < 1)
    return;
  MlirValue at = ir_is(parent, "scf.for") ? executions_of(e, b, parent, copies) : ir_index(b, 0);
  MlirOperation rotate = ir_place(b, nisa_create_rotate(b->loc, hoisted, at));
  set_copy(e, v, mlirOperationGetResult(rotate, 0));
}

static void emit_op(struct emitter *e, struct ir_builder *b, MlirOperation op) {
  struct ep *ep = e->ep;
  const struct nisa_op_def *def = nisa_op_of(op);
  const bool is_needed = ep_needed(ep, op) >> e->stream & 1;
  const int instr = (int)(intptr_t)table_get(&ep->instr_of, op.ptr) - 1;
  const int loop = (int)(intptr_t)table_get(&ep->loop_of, op.ptr) - 1;

  b->loc = mlirOperationGetLocation(op);
  if (mlirBlockEqual(b->block, e->top)) /* what is in a loop comes into the program with the loop */
    pass_step(ep->run, op, "write-operation");
  if (instr >= 0) {
    emit_instr(e, b, op, instr);
    place_part(e, b, ep_sync_part(e->ep, instr, instr + 1, 0));
  } else if (ep_is_core_barrier(op)) {
    ir_place(b, nisa_create_core_barrier(b->loc));
    e->is_synced = true;
  } else if (table_get(&ep->controls, op.ptr)) {
    if (!e->is_synced)
      emit_barrier(e, b);
    copy_op(e, b, op, ep->streams[ep->streams[e->stream].on].name, false);
  } else if (loop >= 0) {
    e->is_synced = false;
    if (is_needed) {
      emit_loop(e, b, op, loop);
    }
  } else if (mlirOperationGetNumRegions(op)) {
    if (ep_has_barrier(ep, op)) /* otherwise a loop that is never executed */
      emit_control(e, b, op);
  } else if (is_needed && def && def->kind == NISA_ALLOC) {
    emit_rotate(e, b, op);
  } else if (is_needed && !def) {
    copy_op(e, b, op, NULL, false);
  }
}

/* All but the terminator. */
static void emit_block(struct emitter *e, struct ir_builder *b, MlirBlock block) {
  MlirOperation end = mlirBlockGetTerminator(block);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    if (!table_get(&e->entry, op.ptr))
      emit_op(e, b, op);
}

/* ---- the entry block --------------------------------------------------------------------------------------------- */

static void keep(struct emitter *e, MlirOperation op) {
  table_put(&e->entry, op.ptr, op.ptr);
}

static void move_before(MlirOperation op, MlirBlock block, MlirOperation before) {
  mlirOperationRemoveFromParent(op);
  mlirBlockInsertOwnedOperationBefore(block, before, op);
}

/* Copies of the allocations in loops have their place in PSUM in turn even if there is one: each begins a group. */
static void hoist_alloc(struct emitter *e, MlirOperation alloc, MlirBlock block, MlirOperation before) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  MlirOperation copy = mlirOperationClone(alloc);
  MlirAttribute one = mlirIntegerAttrGet(mlirIntegerTypeGet(e->ep->run->ir->ctx, 64), 1),
                zero = mlirIntegerAttrGet(mlirIntegerTypeGet(e->ep->run->ir->ctx, 64), 0);
  if (nisa_type_space(mlirValueGetType(v)) == MEM_PSUM && ir_int_attr(alloc, "copies", 0) < 1) {
    ir_set_attr(copy, "copies", one);
    ir_set_attr(copy, "stride", zero);
  }
  mlirBlockInsertOwnedOperationBefore(block, before, copy);
  table_put(&e->hoisted, v.ptr, (void *)(uintptr_t)mlirOperationGetResult(copy, 0).ptr);
  keep(e, copy);
}

/* Views at the top whose operands are in the entry block. */
static bool is_entry_view(const struct emitter *e, MlirOperation op) {
  if (!ir_is_of(op, "memref."))
    return false;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, k));
    const bool is_outside =
        mlirOperationIsNull(def) || mlirOperationIsNull(ir_ancestor_in(def, mlirOperationGetBlock(op)));
    if (!is_outside && !table_get(&e->entry, def.ptr))
      return false;
  }
  return true;
}

/* Allocations come first, then constants, then views. */
static void make_entry(struct emitter *e, MlirBlock body) {
  struct ep *ep = e->ep;
  struct arena *a = ep->run->arena;
  struct ir_ops allocs = ir_collect_named(a, ep->function, "nisa.alloc");
  struct ir_ops constants = ir_collect_named(a, ep->function, "arith.constant");
  MlirOperation first = mlirBlockGetFirstOperation(body);

  for (int k = 0; k < allocs.n; k++) {
    MlirOperation op = allocs.v[k];
    if (!mlirBlockEqual(mlirOperationGetBlock(op), body)) {
      hoist_alloc(e, op, body, first);
      continue;
    }
    keep(e, op);
    if (mlirOperationEqual(op, first))
      first = mlirOperationGetNextInBlock(op);
    else
      move_before(op, body, first);
  }
  for (int k = 0; k < constants.n; k++) {
    keep(e, constants.v[k]);
    if (mlirOperationEqual(constants.v[k], first))
      first = mlirOperationGetNextInBlock(first);
    else
      move_before(constants.v[k], body, first);
  }
  for (MlirOperation op = first; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (is_entry_view(e, op))
      keep(e, op);
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* An engine has a program if it executes something or triggers transfers.  Every core has one at least, in which it meets
 * the other. */
static bool has_program(const struct ep *ep, int stream) {
  bool has = ep->streams[stream].n > 0 || (ep->is_core && stream == EP_SYNC);
  for (int q = EP_ENGINES; q < ep->n_streams; q++)
    has |= ep->streams[q].on == stream;
  return has;
}

static void emit_stream(struct emitter *e, MlirBlock body, MlirOperation before, int s) {
  const struct ep *ep = e->ep;
  MlirLocation loc = mlirOperationGetLocation(ep->function);
  // cppcheck-suppress arrayIndexOutOfBoundsCond
  const char *on = s < EP_ENGINES ? NULL : ep->streams[ep->streams[s].on].name;
  MlirOperation stream = nisa_create_stream(loc, ep->streams[s].name, on);
  MlirBlock block = ir_body(stream);
  MlirOperation yield = mlirBlockGetTerminator(block);
  /* the program is complete at any time, so that each operation can be shown as a step */
  struct ir_builder b = {.ctx = ep->run->ir->ctx, .block = block, .loc = loc, .arena = ep->run->arena, .before = yield};

  e->stream = s;
  e->top = block;
  e->end = yield;
  e->placed = e->backs = (MlirOperation){NULL};
  e->values = (struct table){.arena = ep->run->arena};
  e->is_synced = false;
  mlirBlockInsertOwnedOperationBefore(body, before, stream);
  keep(e, stream);
  emit_block(e, &b, body);
}

/* Destroys what the streams have copies of, the last one first. */
static void erase_originals(struct emitter *e, MlirBlock body, MlirOperation end) {
  struct ir_ops old = {NULL};
  int n = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    n++;
  old.v = arena_new_array(e->ep->run->arena, MlirOperation, (size_t)n);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op))
    if (!table_get(&e->entry, op.ptr))
      old.v[old.n++] = op;
  while (old.n)
    mlirOperationDestroy(old.v[--old.n]);
}

void ep_emit(struct ep *ep) {
  struct arena *a = ep->run->arena;
  MlirBlock body = ir_body(ep->function);
  MlirOperation end = mlirBlockGetTerminator(body);
  struct emitter e = {.ep = ep, .entry = {.arena = a}, .hoisted = {.arena = a}};

  ep_count(ep, true, INT64_MAX, &e.counts);
  pass_step(ep->run, ep->function, "make-entry");
  make_entry(&e, body);
  for (int s = 0; s < ep->n_streams; s++)
    if (has_program(ep, s)) {
      pass_step(ep->run, ep->function, s < EP_ENGINES ? "write-program" : "write-queue");
      emit_stream(&e, body, end, s);
    }
  pass_step(ep->run, ep->function, "remove-originals");
  erase_originals(&e, body, end);
}
