/* decode: from a function of NISA to a program: functions, loops, branches, allocations. */
#include "sim/decode.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/internal.h"
#include "ir/query.h"
#include "nisa/cores.h"
#include "sim/decode_internal.h"

enum { DEPTH_MAX = 64 }; /* of nested loops and branches */

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum status decode_refuse(struct decoder *d, MlirOperation op, const char *what) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  diag_add(d->ds, DS_ERROR, DG_INTERNAL, ir_first_place(d->arena, mlirOperationGetLocation(op)),
           "the simulator cannot run %.*s: %s", (int)name.length, name.data, what);
  return ST_INPUT;
}

int decode_register(struct decoder *d, int64_t initial) {
  array_push(d->arena, &d->regs, initial);
  return d->regs.n - 1;
}

const struct decoded *decode_find(const struct decoder *d, MlirValue v) {
  for (struct index_probe p = index_probe(&d->by_value, hash_pointer(v.ptr)); index_next(&p);)
    if (mlirValueEqual(d->values.v[p.entry].value, v))
      return &d->values.v[p.entry];
  return NULL;
}

struct decoded *decode_define(struct decoder *d, MlirValue v) {
  assert(!decode_find(d, v));
  index_add(&d->by_value, hash_pointer(v.ptr), d->values.n);
  return array_push(d->arena, &d->values,
                    (struct decoded){.value = v, .reg = -1, .buffer = -1, .ref = -1, .group = -1});
}

int decode_scalar(const struct decoder *d, MlirValue v) {
  const struct decoded *x = decode_find(d, v);
  assert(x && x->reg >= 0);
  return x->reg;
}

static void define_scalar(struct decoder *d, MlirValue v, int reg) {
  decode_define(d, v)->reg = reg;
}

enum sim_type decode_type(MlirType t, bool is_unsigned) {
  if (mlirTypeIsAIndex(t))
    return SIM_I64;
  if (mlirTypeIsAInteger(t)) {
    const unsigned width = mlirIntegerTypeGetWidth(t);
    return width == 1 ? SIM_I1 : width % 8 ? SIM_NONE : sim_int_type((int)width / 8, is_unsigned);
  }
  return mlirTypeIsAF32(t)            ? SIM_F32
         : mlirTypeIsABF16(t)         ? SIM_BF16
         : mlirTypeIsAF16(t)          ? SIM_F16
         : mlirTypeIsAF64(t)          ? SIM_F64
         : mlirTypeIsAFloat8E4M3(t)   ? SIM_F8E4M3
         : mlirTypeIsAFloat8E4M3FN(t) ? SIM_F8E4M3FN
         : mlirTypeIsAFloat8E5M2(t)   ? SIM_F8E5M2
                                      : SIM_NONE;
}

struct sim_linear decode_add(struct decoder *d, struct sim_linear x, int reg, int64_t factor) {
  if (!factor)
    return x;
  struct sim_term *terms = arena_new_array(d->arena, struct sim_term, (size_t)x.n + 1);
  for (int k = 0; k < x.n; k++)
    terms[k] = x.terms[k];
  terms[x.n] = (struct sim_term){reg, factor};
  return (struct sim_linear){x.constant, x.n + 1, terms};
}

enum status decode_buffer(struct decoder *d, MlirValue v, enum sim_buffer_kind kind, const struct src_loc *loc,
                          int *number) {
  MlirType t = mlirValueGetType(v);
  const int rank = (int)mlirShapedTypeGetRank(t);
  struct sim_buffer b = {.kind = kind,
                         .space = nisa_type_space(t),
                         .type = decode_type(mlirShapedTypeGetElementType(t), false),
                         .rank = rank,
                         .loc = loc};
  if (rank > NISA_RANK_MAX || !b.type || !mlirShapedTypeHasStaticShape(t))
    return ST_INPUT;
  struct decoded *x = decode_define(d, v);
  b.bytes = b.unit = sim_type_bytes(b.type);
  x->buffer = *number = d->buffers.n;
  x->type = b.type;
  x->rank = rank;
  for (int k = rank - 1; k >= 0; k--) {
    b.dims[k] = x->dims[k] = mlirShapedTypeGetDimSize(t, k);
    x->steps[k] = b.bytes;
    if (__builtin_mul_overflow(b.bytes, b.dims[k], &b.bytes))
      return ST_INPUT;
  }
  array_push(d->arena, &d->buffers, b);
  return ST_OK;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

int decode_emit(struct decoder *d, struct sim_node n) {
  array_push(d->arena, &d->nodes, n);
  return d->nodes.n - 1;
}

static void move(struct decoder *d, int to, int from) {
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_MOVE, .a = to, .b = from});
}

/* What a loop carries or a branch returns: a scalar in a register; of a memref the number of its buffer, and the byte
 * of its first element.  Its elements are in row-major order without gaps. */
struct carried {
  int reg, start;
};

static bool is_memref(MlirValue v) {
  return mlirTypeIsAMemRef(mlirValueGetType(v));
}

static struct carried *carried_registers(struct decoder *d, MlirOperation op) {
  const intptr_t n = mlirOperationGetNumResults(op);
  struct carried *c = arena_new_array(d->arena, struct carried, (size_t)n);
  for (intptr_t k = 0; k < n; k++)
    c[k] = (struct carried){decode_register(d, 0), decode_register(d, 0)};
  return c;
}

/* Steps of x's shape in row-major order without gaps; false if x has other ones. */
static bool is_plain(const struct decoded *x) {
  int64_t step = sim_type_bytes(x->type);
  for (int k = x->rank - 1; k >= 0; step *= x->dims[k--])
    if (x->dims[k] != 1 && x->steps[k] != step)
      return false;
  return true;
}

/* Sets c to what v is now. */
static bool carry(struct decoder *d, struct carried c, MlirValue v) {
  if (!is_memref(v)) {
    move(d, c.reg, decode_scalar(d, v));
    return true;
  }
  const struct decoded *x = decode_find(d, v);
  if (!is_plain(x) || x->copy.n)
    return false;
  move(d, c.reg, x->ref >= 0 ? x->ref : decode_register(d, x->buffer));
  decode_emit(d, (struct sim_node){
                     .kind = SIM_NODE_LINEAR, .a = c.start, .linear = arena_dup(d->arena, &x->start, sizeof x->start)});
  return true;
}

/* Copies what the block yields. */
static bool carry_yielded(struct decoder *d, MlirBlock block, const struct carried *to) {
  MlirOperation yield = mlirBlockGetTerminator(block);
  const intptr_t n = mlirOperationGetNumOperands(yield);
  struct carried *temporary = arena_new_array(d->arena, struct carried, (size_t)n);
  for (intptr_t k = 0; k < n; k++) { /* a value may be both yielded and overwritten */
    temporary[k] = (struct carried){decode_register(d, 0), decode_register(d, 0)};
    if (!carry(d, temporary[k], mlirOperationGetOperand(yield, k)))
      return false;
  }
  for (intptr_t k = 0; k < n; k++) {
    move(d, to[k].reg, temporary[k].reg);
    move(d, to[k].start, temporary[k].start);
  }
  return true;
}

static enum status define_carried(struct decoder *d, MlirOperation op, MlirValue v, struct carried c) {
  if (!is_memref(v)) {
    define_scalar(d, v, c.reg);
    return ST_OK;
  }
  MlirType t = mlirValueGetType(v);
  struct decoded *x = decode_define(d, v);
  x->ref = c.reg;
  x->start = decode_add(d, x->start, c.start, 1);
  x->type = decode_type(mlirShapedTypeGetElementType(t), false);
  x->rank = (int)mlirShapedTypeGetRank(t);
  if (!x->type || x->rank > NISA_RANK_MAX || !mlirShapedTypeHasStaticShape(t))
    return decode_refuse(d, op, "it carries a memref of no static shape");
  int64_t step = sim_type_bytes(x->type);
  for (int k = x->rank - 1; k >= 0; k--) {
    x->dims[k] = mlirShapedTypeGetDimSize(t, k);
    x->steps[k] = step;
    step *= x->dims[k];
  }
  return ST_OK;
}

static enum status define_results(struct decoder *d, MlirOperation op, const struct carried *c) {
  enum status st = ST_OK;
  for (intptr_t k = 0; !st && k < mlirOperationGetNumResults(op); k++)
    st = define_carried(d, op, mlirOperationGetResult(op, k), c[k]);
  return st;
}

static enum status refuse_gaps(struct decoder *d, MlirOperation op) {
  return decode_refuse(d, op, "it carries a memref with gaps");
}

/* reg += step */
static void advance(struct decoder *d, int reg, int step) {
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_STEP,
                                   .step = SIM_STEP_ADDI,
                                   .type = SIM_I64,
                                   .from = SIM_I64,
                                   .a = reg,
                                   .b = reg,
                                   .c = step});
}

/* True if the block allocates memory that has several copies. */
static bool has_copies(MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "nisa.alloc") && ir_int_attr(op, "copies", 1) > 1)
      return true;
  return false;
}

/* The body of a loop; its executions are counted, from the start of the function, if an allocation needs it. */
static enum status decode_body(struct decoder *d, MlirBlock body, int depth) {
  enum status st = decode_block(d, body, depth);
  if (!st && d->iteration >= 0)
    advance(d, d->iteration, decode_register(d, 1));
  return st;
}

/*      variable = lower
 * top: less = variable < upper;  unless less goto end
 *      body;  variable += step;  goto top                                       */
static enum status decode_for(struct decoder *d, MlirOperation op, int depth) {
  MlirBlock body = ir_body(op);
  const int lower = decode_scalar(d, mlirOperationGetOperand(op, 0));
  const int upper = decode_scalar(d, mlirOperationGetOperand(op, 1));
  const int step = decode_scalar(d, mlirOperationGetOperand(op, 2));
  const int variable = decode_register(d, 0), less = decode_register(d, 0), outer = d->iteration;
  struct carried *carried = carried_registers(d, op);

  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++) {
    if (!carry(d, carried[k], mlirOperationGetOperand(op, 3 + k)))
      return refuse_gaps(d, op);
    enum status defined = define_carried(d, op, mlirBlockGetArgument(body, 1 + k), carried[k]);
    if (defined)
      return defined;
  }
  define_scalar(d, mlirBlockGetArgument(body, 0), variable);
  move(d, variable, lower);
  d->iteration = has_copies(body) ? decode_register(d, 0) : -1;
  const int top = decode_emit(d, (struct sim_node){.kind = SIM_NODE_LESS, .a = less, .b = variable, .c = upper});
  const int leave = decode_emit(d, (struct sim_node){.kind = SIM_NODE_UNLESS, .a = less});
  enum status st = decode_body(d, body, depth + 1);
  if (st)
    return st;
  d->iteration = outer;
  if (!carry_yielded(d, body, carried))
    return refuse_gaps(d, op);
  advance(d, variable, step);
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_GOTO, .b = top});
  d->nodes.v[leave].b = d->nodes.n;
  return define_results(d, op, carried);
}

static enum status decode_if(struct decoder *d, MlirOperation op, int depth) {
  struct carried *results = carried_registers(d, op);
  const int skip =
      decode_emit(d, (struct sim_node){.kind = SIM_NODE_UNLESS, .a = decode_scalar(d, mlirOperationGetOperand(op, 0))});
  enum status st = decode_block(d, ir_body(op), depth + 1);
  if (st)
    return st;
  if (!carry_yielded(d, ir_body(op), results))
    return refuse_gaps(d, op);
  MlirBlock other = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 1));
  if (mlirBlockIsNull(other)) {
    d->nodes.v[skip].b = d->nodes.n;
    return ST_OK;
  }
  const int leave = decode_emit(d, (struct sim_node){.kind = SIM_NODE_GOTO});
  d->nodes.v[skip].b = d->nodes.n;
  st = decode_block(d, other, depth + 1);
  if (st)
    return st;
  if (!carry_yielded(d, other, results))
    return refuse_gaps(d, op);
  d->nodes.v[leave].b = d->nodes.n;
  return define_results(d, op, results);
}

/* top: first region;  unless its condition goto end;  second region;  goto top */
static enum status decode_while(struct decoder *d, MlirOperation op, int depth) {
  MlirBlock before = ir_body(op), after = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 1));
  if (mlirOperationGetNumOperands(op) || mlirOperationGetNumResults(op))
    return decode_refuse(d, op, "it carries values");
  const int top = d->nodes.n;
  enum status st = decode_block(d, before, depth + 1);
  if (st)
    return st;
  MlirValue condition = mlirOperationGetOperand(mlirBlockGetTerminator(before), 0);
  const int leave = decode_emit(d, (struct sim_node){.kind = SIM_NODE_UNLESS, .a = decode_scalar(d, condition)});
  st = decode_block(d, after, depth + 1);
  if (st)
    return st;
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_GOTO, .b = top});
  d->nodes.v[leave].b = d->nodes.n;
  return ST_OK;
}

static struct sim_place place_of(MlirOperation alloc) {
  struct nisa_place p;
  if (!nisa_has_place_attr(alloc) || !nisa_place_of(alloc, &p))
    return (struct sim_place){.copies = (int)ir_int_attr(alloc, "copies", 1)};
  return (struct sim_place){.is_set = true,
                            .partition = (int)p.partition,
                            .bank = (int)p.bank,
                            .offset = p.offset,
                            .copies = (int)p.copies,
                            .stride = p.stride};
}

static enum status decode_nisa(struct decoder *d, MlirOperation op, const struct nisa_op_def *def) {
  int buffer;
  if (def->kind == NISA_ALLOC) {
    if (decode_buffer(d, mlirOperationGetResult(op, 0), SIM_ALLOC,
                      ir_first_place(d->arena, mlirOperationGetLocation(op)), &buffer))
      return decode_refuse(d, op, "its type has no size in memory");
    d->buffers.v[buffer].place = place_of(op);
    d->buffers.v[buffer].core = d->core;
    decode_emit(d, (struct sim_node){.kind = SIM_NODE_ALLOC, .a = buffer, .b = d->iteration});
    return ST_OK;
  }
  if (def->kind == NISA_RELEASE) {
    const struct decoded *x = decode_find(d, mlirOperationGetOperand(op, 0));
    assert(x && x->reg < 0);
    if (x->buffer < 0)
      return decode_refuse(d, op, "which memory it releases is known only at run time");
    decode_emit(d, (struct sim_node){.kind = SIM_NODE_RELEASE, .a = x->buffer});
    return ST_OK;
  }
  enum status st = decode_instr(d, op);
  if (!st)
    decode_emit(d, (struct sim_node){.kind = SIM_NODE_INSTR, .a = d->instrs.n - 1});
  return st;
}

/* arith.select of memrefs. */
static enum status decode_choice(struct decoder *d, MlirOperation op) {
  struct carried x[3];
  for (int k = 0; k < 3; k++)
    x[k] = (struct carried){decode_register(d, 0), decode_register(d, 0)};
  for (int k = 1; k < 3; k++)
    if (!carry(d, x[k], mlirOperationGetOperand(op, k)))
      return refuse_gaps(d, op);
  const int condition = decode_scalar(d, mlirOperationGetOperand(op, 0));
  struct sim_node n = {
      .kind = SIM_NODE_STEP, .step = SIM_STEP_SELECT, .type = SIM_I64, .from = SIM_I64, .b = condition};
  n.a = x[0].reg, n.c = x[1].reg, n.d = x[2].reg;
  decode_emit(d, n);
  n.a = x[0].start, n.c = x[1].start, n.d = x[2].start;
  decode_emit(d, n);
  return define_carried(d, op, mlirOperationGetResult(op, 0), x[0]);
}

static enum status decode_op(struct decoder *d, MlirOperation op, int depth) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  const struct nisa_op_def *def = nisa_op_of(op);
  if (def)
    return decode_nisa(d, op, def);
  if (nisa_sync_of(op))
    return decode_sync(d, op);
  if (nisa_is_stream(op) || (nisa_is_core(op) && !nisa_has_streams(op))) {
    array_push(d->arena, &d->streams, op);
    return ST_OK;
  }
  if (nisa_is_core(op)) {
    d->core = nisa_core_number(op);
    enum status st = decode_block(d, ir_body(op), depth + 1);
    d->core = 0;
    return st;
  }
  if (ir_is(op, "arith.select") && is_memref(mlirOperationGetResult(op, 0)))
    return decode_choice(d, op);
  if (ir_begins_with(name, "arith."))
    return decode_step(d, op);
  if (ir_begins_with(name, "memref."))
    return decode_view(d, op);
  if (ir_is(op, "scf.for"))
    return decode_for(d, op, depth);
  if (ir_is(op, "scf.while"))
    return decode_while(d, op, depth);
  if (ir_is(op, "scf.if"))
    return decode_if(d, op, depth);
  return decode_refuse(d, op, "it is not an operation of NISA");
}

enum status decode_block(struct decoder *d, MlirBlock block, int depth) {
  if (depth > DEPTH_MAX)
    return decode_refuse(d, mlirBlockGetParentOperation(block), "it is nested too deeply");
  MlirOperation end = mlirBlockGetTerminator(block);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op)) {
    enum status st = decode_op(d, op, depth);
    if (st)
      return st;
  }
  return ST_OK;
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static struct sim_value as_value(const struct decoded *x) {
  struct sim_value v = {.type = x->type, .rank = x->rank, .buffer = x->buffer, .ref = x->ref, .start = x->start};
  v.bytes = sim_type_bytes(v.type);
  for (int k = 0; k < x->rank; k++) {
    v.dims[k] = x->dims[k];
    v.steps[k] = x->steps[k];
    v.bytes *= x->dims[k];
  }
  return v;
}

/* Notes the products whose sums nothing reads. */
static void find_products_for_clock(struct decoder *d) {
  bool *is_read = arena_new_array(d->arena, bool, (size_t)d->buffers.n + 1);

  for (int n = 0; n < d->instrs.n; n++) {
    const struct sim_instr *i = &d->instrs.v[n];
    for (int k = i->kind == NISA_MATMUL; k < i->def->n_operands; k++)
      if (i->operand[k].kind == SIM_ACCESS && i->operand[k].buffer >= 0 && i->def->operand[k].reads)
        is_read[i->operand[k].buffer] = true;
  }
  for (int n = 0; n < d->instrs.n; n++) {
    struct sim_instr *i = &d->instrs.v[n];
    i->is_for_clock = i->kind == NISA_MATMUL && i->operand[0].buffer >= 0 && !is_read[i->operand[0].buffer];
  }
}

static enum status decode_function(struct decoder *d, MlirOperation function, struct sim_program *out) {
  MlirBlock body = ir_body(function);
  const intptr_t n_args = mlirBlockGetNumArguments(body);
  struct sim_value *args = arena_new_array(d->arena, struct sim_value, (size_t)n_args);
  int buffer;

  for (intptr_t k = 0; k < n_args; k++) {
    MlirValue v = mlirBlockGetArgument(body, k);
    if (!mlirTypeIsAMemRef(mlirValueGetType(v)) || decode_buffer(d, v, SIM_ARGUMENT, NULL, &buffer))
      return decode_refuse(d, function, "an argument is not a memref of a static shape");
    args[k] = as_value(decode_find(d, v));
  }
  enum status st = decode_block(d, body, 0);
  if (st)
    return st;
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_END});
  const struct sim_stream *streams;
  st = decode_streams(d, &streams);
  if (st)
    return st;
  find_products_for_clock(d);
  MlirOperation end = mlirBlockGetTerminator(body);
  const intptr_t n_results = mlirOperationGetNumOperands(end);
  struct sim_value *results = arena_new_array(d->arena, struct sim_value, (size_t)n_results);
  for (intptr_t k = 0; k < n_results; k++) {
    const struct decoded *x = decode_find(d, mlirOperationGetOperand(end, k));
    if (!x || x->reg >= 0)
      return decode_refuse(d, end, "a result is not a memref");
    results[k] = as_value(x);
  }
  *out = (struct sim_program){
      .n_buffers = d->buffers.n,
      .buffers = d->buffers.v,
      .n_instrs = d->instrs.n,
      .instrs = d->instrs.v,
      .n_nodes = d->nodes.n,
      .nodes = d->nodes.v,
      .n_cores = nisa_has_cores(function) ? NISA_CORES : 1,
      .n_streams = d->streams.n,
      .streams = streams,
      .has_engines = nisa_has_streams(function),
      .n_regs = d->regs.n,
      .initial = d->regs.v,
      .n_args = (int)n_args,
      .args = args,
      .n_results = (int)n_results,
      .results = results,
  };
  return ST_OK;
}

enum status sim_decode(MlirOperation module, const char *name, struct arena *a, struct diags *ds,
                       struct sim_program *out) {
  struct decoder d = {.module = module, .arena = a, .ds = ds, .by_value = {.arena = a}, .iteration = -1};
  MlirOperation function = ir_find_symbol(module, "func.func", ir_str(name));
  if (mlirOperationIsNull(function) || mlirBlockIsNull(ir_body(function)))
    return decode_refuse(&d, module, "it has no such function");
  return decode_function(&d, function, out);
}
