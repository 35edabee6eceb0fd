/* read: the function as arrays of instructions, loops and buffers. */
#include <assert.h>

#include "base/array.h"
#include "nisa/streams.h"
#include "passes/engine_programs/engine_programs.h"
#include "passes/lib/access.h"
#include "passes/lib/buffers.h"

/* Where the walk is. */
struct reader {
  struct ep *ep;
  struct arena *arena;
  int loop;
};

int ep_loop_at(const struct ep *ep, int loop, int d) {
  while (ep->loops.v[loop].depth > d)
    loop = ep->loops.v[loop].parent;
  assert(ep->loops.v[loop].depth == d);
  return loop;
}

/* ---- what streams execute --------------------------------------------------------------------------------------- */

unsigned ep_needed(const struct ep *ep, MlirOperation op) {
  return (unsigned)(uintptr_t)table_get(&ep->needed, op.ptr);
}

static unsigned all_streams(const struct ep *ep) {
  return (1u << ep->n_streams) - 1;
}

static void need_value(struct ep *ep, MlirValue v, unsigned streams);

/* Adds to the streams that execute op: then they need its operands, and the loops around it, too.  Of what stands outside
 * of a core's region it needs the values only. */
static void need(struct ep *ep, MlirOperation op, unsigned streams) {
  const unsigned known = ep_needed(ep, op);
  if ((known | streams) == known || mlirOperationEqual(op, ep->function) ||
      mlirOperationIsNull(ir_ancestor_in(op, ir_body(ep->function))))
    return;
  table_put(&ep->needed, op.ptr, (void *)(uintptr_t)(known | streams));
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    need_value(ep, mlirOperationGetOperand(op, k), streams);
  need(ep, mlirOperationGetParentOperation(op), streams);
}

static void need_value(struct ep *ep, MlirValue v, unsigned streams) {
  MlirOperation def = ir_defining_op(v);
  if (!mlirOperationIsNull(def))
    need(ep, def, streams);
}

/* ---- control flow ----------------------------------------------------------------------------------------------- */

bool ep_bounds(MlirOperation loop, int64_t bound[3]) {
  for (int k = 0; k < 3; k++)
    if (!ir_int_constant(mlirOperationGetOperand(loop, k), &bound[k]))
      return false;
  return bound[2] > 0 && !mlirOperationGetNumResults(loop);
}

/* The loops nested in op, and op itself; EP_DEPTH_MAX + 1 if one depends on data, or is nested too deeply. */
static int height(struct ep *ep, MlirOperation op) {
  int64_t bound[3];
  int most = 0;
  if (!mlirOperationGetNumRegions(op))
    return table_get(&ep->controls, op.ptr) || ep_is_core_barrier(op) ? EP_DEPTH_MAX + 1 : 0;
  if (!ir_is(op, "scf.for") || !ep_bounds(op, bound))
    return EP_DEPTH_MAX + 1;
  for (MlirOperation in = mlirBlockGetFirstOperation(ir_body(op)); !mlirOperationIsNull(in) && most < EP_DEPTH_MAX;
       in = mlirOperationGetNextInBlock(in)) {
    const int h = height(ep, in);
    most = most > h ? most : h;
  }
  return most < EP_DEPTH_MAX ? most + 1 : EP_DEPTH_MAX + 1;
}

bool ep_is_core_barrier(MlirOperation op) {
  return nisa_sync_of(op) == NISA_SYNC_CORE_BARRIER;
}

bool ep_has_barrier(struct ep *ep, MlirOperation op) {
  return height(ep, op) > EP_DEPTH_MAX;
}

/* Every stream executes what control flow depends on. */
static void need_control(struct ep *ep, MlirOperation op) {
  need(ep, op, all_streams(ep));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    if (!mlirBlockIsNull(block))
      need(ep, mlirBlockGetTerminator(block), all_streams(ep));
  }
}

/* ---- accesses --------------------------------------------------------------------------------------------------- */

static int find_buffer(struct reader *r, MlirValue root) {
  struct ep *ep = r->ep;
  const int known = (int)(intptr_t)table_get(&ep->buffer_of, root.ptr) - 1;
  if (known >= 0)
    return known;
  table_put(&ep->buffer_of, root.ptr, (void *)(intptr_t)(ep->buffers.n + 1));
  array_push(r->arena, &ep->buffers,
             (struct ep_buffer){.root = root,
                                .alloc = ir_defining_op(root),
                                .space = nisa_type_space(mlirValueGetType(root)),
                                .loop = EP_NONE,
                                .copies = 1});
  return ep->buffers.n - 1;
}

/* v * factor as the variables of the loops around; false if it is not a sum of multiples of them. */
static bool add_index(struct reader *r, struct ep_linear *x, MlirValue v, int64_t factor) {
  struct linear sum = {0};
  if (!linear_add(&sum, v, factor))
    return false;
  x->constant += sum.constant;
  for (int k = 0; k < sum.n; k++) {
    if (!sum.term[k].factor)
      continue;
    if (!mlirValueIsABlockArgument(sum.term[k].v))
      return false;
    MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(sum.term[k].v));
    const int known = (int)(intptr_t)table_get(&r->ep->loop_of, loop.ptr) - 1;
    if (known < 0)
      return false;
    const struct ep_loop *l = &r->ep->loops.v[known];
    x->constant += sum.term[k].factor * l->lower;
    x->factor[l->depth] += sum.term[k].factor * l->step;
  }
  return true;
}

/* Of the last dimension in bytes: accesses of one buffer may have elements of different sizes. */
static struct ep_range read_range(struct reader *r, const struct nisa_access *x, int dim) {
  const bool is_last = dim + 1 == mlirAffineMapGetNumResults(x->map);
  const int64_t unit = is_last ? nisa_element_bytes(nisa_access_element(x)) : 1;
  struct ep_range out = {.is_known = true, .width = unit};
  struct nisa_index at;
  if (!nisa_access_index(x, dim, &at))
    return (struct ep_range){0};
  out.low.constant = at.constant * unit;
  for (int k = 0; k < x->n_dims; k++) {
    out.width += at.dim[k] * (x->tile[k] - 1) * unit;
    if (x->tile[k] > 1 && at.dim[k] * unit > out.period)
      out.period = at.dim[k] * unit;
  }
  out.run = unit;
  for (int k = 0; k < x->n_dims; k++)
    out.run += at.dim[k] * unit < out.period ? at.dim[k] * (x->tile[k] - 1) * unit : 0;
  if (out.run >= out.period)
    out.period = 0;
  for (int k = 0; out.is_known && k < x->n_indices; k++)
    out.is_known = !at.sym[k] || add_index(r, &out.low, x->indices[k], at.sym[k] * unit);
  return out;
}

static struct ep_access read_access(struct reader *r, const struct nisa_access *x, bool writes, bool is_whole) {
  MlirValue root = buffer_root(x->base);
  MlirOperation def = ir_defining_op(root);
  struct ep_access out = {.writes = writes, .base = x->base};
  const bool is_known = mlirValueIsABlockArgument(root)
                            ? ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(root)), "func.func")
                            : ir_is(def, "nisa.alloc") || ir_is(def, "memref.get_global");
  if (!is_known) {
    out.buffer = EP_NONE;
    return out;
  }
  out.buffer = find_buffer(r, root);
  if (is_whole)
    return out;
  out.rank = (int)mlirAffineMapGetNumResults(x->map);
  struct ep_range *range = arena_new_array(r->arena, struct ep_range, (size_t)out.rank);
  for (int k = 0; k < out.rank; k++)
    range[k] = read_range(r, x, k);
  out.range = range;
  return out;
}

struct accesses {
  struct ep_access *v;
  int n, cap;
};

/* A queue loads the registers in a transfer's indices itself.  When the transfer is complete, so are the loads. */
static void add_loaded(struct reader *r, MlirValue v, struct accesses *out) {
  MlirOperation def = ir_defining_op(v);
  struct nisa_instr in;
  if (mlirOperationIsNull(def))
    return;
  if (ir_is_of(def, "arith."))
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(def); k++)
      add_loaded(r, mlirOperationGetOperand(def, k), out);
  if (ir_is(def, "nisa.register_load") && !table_get(&r->ep->controls, def.ptr) && nisa_read(def, &in, NULL)) {
    struct ep_access x = read_access(r, &in.operand[0], false, false);
    x.is_earlier = true;
    array_push(r->arena, out, x);
  }
}

static void read_operands(struct reader *r, const struct nisa_instr *in, bool is_transfer, struct accesses *out) {
  for (int k = 0; k < in->def->n_operands; k++) {
    const struct nisa_access *x = &in->operand[k];
    const struct nisa_operand_def *d = &in->def->operand[k];
    if (nisa_is_absent(x) || nisa_is_scalar(x))
      continue;
    array_push(r->arena, out, read_access(r, x, d->writes, nisa_indirect_operand(in->def->kind) == k));
    for (int i = 0; is_transfer && i < x->n_indices; i++)
      add_loaded(r, x->indices[i], out);
  }
}

/* The streams whose instructions use the register, directly or through arithmetic.  Sets *by_control if control flow
 * does. */
static unsigned users_of(struct ep *ep, MlirValue v, bool *by_control) {
  unsigned streams = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (nisa_op_of(op) && nisa_op_of(op)->kind != NISA_REGISTER_LOAD) {
      streams |= 1u << ep_stream_of(ep, op);
    } else if (ir_is_of(op, "arith.")) {
      streams |= users_of(ep, mlirOperationGetResult(op, 0), by_control);
    } else {
      *by_control = true;
    }
  }
  return streams;
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

static void read_block(struct reader *r, MlirBlock block);

static void read_instr(struct reader *r, MlirOperation op) {
  struct ep *ep = r->ep;
  struct nisa_instr in;
  struct accesses x = {0};
  bool by_control = false;
  const bool is_read = nisa_read(op, &in, NULL);
  assert(is_read); /* the verifier has accepted the module */
  (void)is_read;
  const bool is_load = in.def->kind == NISA_REGISTER_LOAD;
  const unsigned streams =
      is_load ? users_of(ep, mlirOperationGetResult(op, 0), &by_control) : 1u << ep_stream_of(ep, op);
  const int first = is_load ? EP_SYNC : ep_stream_of(ep, op);
  need(ep, op, streams);
  if (first >= EP_ENGINES) { /* its trigger is in the same loops */
    const unsigned on = 1u << ep->streams[first].on;
    need(ep, mlirOperationGetParentOperation(op), on);
  }
  for (int s = 0; s < ep->n_streams; s++)
    ep->streams[s].n += (streams >> s & 1) && (!is_load || s < EP_ENGINES);
  read_operands(r, &in, first >= EP_ENGINES, &x);
  table_put(&ep->instr_of, op.ptr, (void *)(intptr_t)(ep->instrs.n + 1));
  array_push(r->arena, &ep->instrs,
             (struct ep_instr){.op = op,
                               .kind = in.def->kind,
                               .streams = streams,
                               .segment = ep->n_segments - 1,
                               .loop = r->loop,
                               .n_accesses = x.n,
                               .accesses = x.v,
                               .waits = EP_NONE});
}

static void read_alloc(struct reader *r, MlirOperation alloc) {
  const int k = find_buffer(r, mlirOperationGetResult(alloc, 0));
  struct ep_buffer *b = &r->ep->buffers.v[k];
  const int64_t offset = ir_int_attr(alloc, "offset", -1), stride = ir_int_attr(alloc, "stride", 0);
  const int64_t bank = nisa_machine(r->ep->run->target)->psum_bank_bytes;
  b->loop = r->loop;
  b->copies = ir_int_attr(alloc, "copies", 1);
  b->is_placed = offset >= 0;
  b->from = offset + (b->space == MEM_PSUM ? ir_int_attr(alloc, "bank", 0) * bank : 0);
  b->to = b->from + stride * (b->copies - 1) + nisa_type_bytes(mlirValueGetType(b->root));
}

/* Control flow on data: barriers are around it and at the start of each region. */
static void read_control(struct reader *r, MlirOperation op) {
  const int outer = r->loop;
  need_control(r->ep, op);
  for (intptr_t k = 0; k < mlirOperationGetNumRegions(op); k++) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, k));
    r->ep->n_segments++;
    r->loop = EP_NONE;
    if (!mlirBlockIsNull(block))
      read_block(r, block);
  }
  r->ep->n_segments++;
  r->loop = outer;
}

static void read_loop(struct reader *r, MlirOperation op) {
  struct ep *ep = r->ep;
  int64_t bound[3];
  const int number = ep->loops.n, depth = ep_depth(ep, r->loop);

  if (ep_has_barrier(ep, op)) {
    read_control(r, op);
    return;
  }
  ep_bounds(op, bound);
  const int64_t trips = bound[1] > bound[0] ? (bound[1] - bound[0] + bound[2] - 1) / bound[2] : 0;
  if (!trips)
    return;
  table_put(&ep->loop_of, op.ptr, (void *)(intptr_t)(number + 1));
  array_push(r->arena, &ep->loops,
             (struct ep_loop){.op = op,
                              .parent = r->loop,
                              .depth = depth,
                              .segment = ep->n_segments - 1,
                              .trips = trips,
                              .lower = bound[0],
                              .step = bound[2],
                              .first = ep->instrs.n,
                              .waits = EP_NONE});
  r->loop = number;
  read_block(r, ir_body(op));
  r->loop = ep->loops.v[number].parent;
  ep->loops.v[number].end = ep->instrs.n;
}

static void read_block(struct reader *r, MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const struct nisa_op_def *def = nisa_op_of(op);
    if (table_get(&r->ep->controls, op.ptr)) { /* every stream loads it, between barriers */
      need_control(r->ep, op);
      r->ep->n_segments++;
    } else if (ep_is_core_barrier(op)) {
      r->ep->n_segments++;
    } else if (def && def->kind == NISA_ALLOC) {
      read_alloc(r, op);
    } else if (def && def->kind != NISA_RELEASE) {
      read_instr(r, op);
    } else if (ir_is(op, "scf.for")) {
      read_loop(r, op);
    } else if (mlirOperationGetNumRegions(op)) {
      read_control(r, op);
    }
  }
}

static void find_controls(struct ep *ep) {
  struct ir_ops loads = ir_collect_named(ep->run->arena, ep->function, "nisa.register_load");
  for (int k = 0; k < loads.n; k++) {
    bool by_control = false;
    users_of(ep, mlirOperationGetResult(loads.v[k], 0), &by_control);
    if (by_control)
      table_put(&ep->controls, loads.v[k].ptr, loads.v[k].ptr);
  }
}

void ep_read(struct ep *ep) {
  struct reader r = {.ep = ep, .arena = ep->run->arena, .loop = EP_NONE};
  ep->n_segments = 1;
  find_controls(ep);
  read_block(&r, ir_body(ep->function));
}
