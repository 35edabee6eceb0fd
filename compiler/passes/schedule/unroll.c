/* unroll: writes out the loops of a short program, and divides what it moves and computes into parts.
 *
 *     for i in 0 … 2 { load a[i]; load b[i];            load a[0]; load b[0]; load a[1]; load b[1]
 *                      c = a * b;                  ==>  c = a[0] * b[0]; store c0
 *                      store c[i] }                     c = a[1] * b[1]; store c1
 *
 * In a program of some microseconds a loop costs more than it saves.  The engine that starts the transfers of a round starts them
 * in the order of the loop, so that a load of the next round waits for a store of this one; and each buffer has one queue.  In a
 * program without loops the loads that wait for nothing come first, in the order in which they are needed, and each transfer is started by the
 * engine with which it is complete first (engine_programs/straight.c).
 *
 * Parts: a transfer and an element-wise instruction become two or more, each of a part of the elements, so that what reads the
 * first part need not wait for the others.  A part takes the time of an instruction's start more, and its descriptors are not shorter
 * than RUN_BYTES.  Products stay as they are: their tiles are the user's to choose (tile_op).
 *
 * schedule.c takes the program with loops or one of these, by what the simulated machine says. */
#include "base/array.h"
#include "ir/build.h"
#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/access.h"
#include "passes/lib/box.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/schedule/overlap.h"

enum {
  STEPS_MAX = 96,      /* instructions of the program without loops */
  DIVIDED_MAX = 36,    /* of one that is divided */
  PART_BYTES = 32768,  /* of a transfer */
  RUN_BYTES = 512,     /* of a descriptor */
  PART_ELEMENTS = 128, /* of an instruction, in each partition */
  PART_PARTITIONS = 64,
  SUPPLIED_BYTES = 2048
};

/* ---- loops -------------------------------------------------------------------------------------------------------- */

/* How many instructions the block executes; more than STEPS_MAX if there is something in it that cannot be written out. */
static int64_t executions(const struct pass_run *run, MlirBlock block, int64_t *bytes) {
  int64_t n = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op) && n <= STEPS_MAX;
       op = mlirOperationGetNextInBlock(op)) {
    struct repeated r;
    const struct nisa_op_def *def = nisa_op_of(op);
    if (ir_is(op, "scf.for")) {
      int64_t inside = 0;
      if (!coalesce_read_bounds(op, &r) || r.trips > STEPS_MAX)
        return STEPS_MAX + 1;
      n += r.trips * executions(run, ir_body(op), &inside);
      *bytes += r.trips * inside;
    } else if (mlirOperationGetNumRegions(op)) {
      return STEPS_MAX + 1;
    } else if (def && def->kind == NISA_ALLOC) {
      MlirType t = mlirValueGetType(ir_result(op));
      *bytes += nisa_type_space(t) == MEM_SBUF ? nisa_type_bytes(t) : 0;
    } else if (def && def->kind != NISA_RELEASE) {
      n++;
    }
  }
  return n;
}

/* Puts the body's operations before the loop, once for each round. */
static void write_out(struct pass_run *run, MlirOperation loop) {
  struct repeated r;
  MlirBlock block = mlirOperationGetBlock(loop);
  struct ir_builder b = edit_before(run, loop);

  if (!coalesce_read_bounds(loop, &r))
    return;
  for (int64_t k = 0; k < r.trips; k++) {
    struct schedule_renamed renamed = {.by_value.arena = run->arena};
    table_put(&renamed.by_value, r.counter.ptr, (void *)ir_index(&b, r.lower + k * r.step).ptr);
    MlirOperation end = mlirBlockGetTerminator(ir_body(loop));
    for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(loop)); !mlirOperationEqual(op, end);
         op = mlirOperationGetNextInBlock(op))
      (void)schedule_copy(run, &renamed, op, block, loop);
  }
  mlirOperationDestroy(loop);
}

static bool is_known(MlirValue v, int64_t *out) {
  struct linear l = {0};
  if (!linear_add(&l, v, 1) || !linear_is_constant(&l))
    return false;
  *out = l.constant;
  return true;
}

/* Puts the values of known indices into the access. */
static void fold(MlirContext ctx, struct nisa_access *x) {
  MlirAffineExpr results[NISA_RANK_MAX];
  const int rank = (int)mlirAffineMapGetNumResults(x->map);
  int64_t value[NISA_RANK_MAX];

  if (!x->n_indices)
    return;
  for (int k = 0; k < x->n_indices; k++)
    if (!is_known(x->indices[k], &value[k]))
      return;
  for (int r = 0; r < rank; r++) {
    struct nisa_index i;
    if (!nisa_access_index(x, r, &i))
      return;
    for (int k = 0; k < x->n_indices; k++) {
      i.constant += i.sym[k] * value[k];
      i.sym[k] = 0;
    }
    results[r] = nisa_index_expr(ctx, x, &i);
  }
  x->n_indices = 0;
  x->map = mlirAffineMapGet(ctx, x->n_dims, 0, rank, results);
}

static void replace(struct pass_run *run, MlirOperation op, const struct nisa_instr *in) {
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, nisa_create_like(run->arena, in, op));
  mlirOperationDestroy(op);
}

static bool is_instruction(MlirOperation op, void *user) {
  const struct nisa_op_def *def = nisa_op_of(op);
  (void)user;
  return def && def->kind != NISA_ALLOC && def->kind != NISA_RELEASE;
}

static bool is_number(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "arith.");
}

static void fold_all(struct pass_run *run, MlirOperation function) {
  struct ir_ops numbers = ir_collect(run->arena, function, is_number, NULL);
  for (int k = 0; k < numbers.n; k++) {
    int64_t v;
    if (ir_is(numbers.v[k], "arith.constant") || !is_known(ir_result(numbers.v[k]), &v))
      continue;
    struct ir_builder b = edit_before(run, numbers.v[k]);
    mlirValueReplaceAllUsesOfWith(ir_result(numbers.v[k]), ir_index(&b, v));
  }
  const struct ir_ops ops = ir_collect(run->arena, function, is_instruction, NULL);
  for (int k = 0; k < ops.n; k++) {
    struct nisa_instr in;
    bool folds = false;
    if (!nisa_read(ops.v[k], &in, NULL))
      continue;
    for (int i = 0; i < in.def->n_operands; i++)
      if (nisa_is_data(&in.operand[i]) && in.operand[i].n_indices) {
        fold(run->ir->ctx, &in.operand[i]);
        folds |= !in.operand[i].n_indices;
      }
    if (folds)
      replace(run, ops.v[k], &in);
  }
  numbers = ir_collect(run->arena, function, is_number, NULL);
  while (numbers.n--)
    schedule_erase_if_unused(numbers.v[numbers.n]);
}

/* ---- parts -------------------------------------------------------------------------------------------------------- */

/* Makes x its first or second half along the outermost of dimensions first … end - 1 that has several places; false if they are odd
 * in number. */
static bool halve(MlirContext ctx, struct nisa_access *x, int first, int end, bool second) {
  MlirAffineExpr results[NISA_RANK_MAX];
  const int rank = (int)mlirAffineMapGetNumResults(x->map);

  while (first < end && x->tile[first] == 1)
    first++;
  if (first == end || x->tile[first] % 2)
    return false;
  x->tile[first] /= 2;
  for (int r = 0; r < rank; r++) {
    struct nisa_index i;
    if (!nisa_access_index(x, r, &i))
      return false;
    i.constant += second ? i.dim[first] * x->tile[first] : 0;
    results[r] = nisa_index_expr(ctx, x, &i);
  }
  x->map = mlirAffineMapGet(ctx, x->n_dims, x->n_indices, rank, results);
  return true;
}

static bool is_on_chip(const struct nisa_access *x) {
  return mem_is_on_chip(nisa_access_space(x));
}

static int64_t free_bytes(const struct nisa_access *x) {
  return nisa_free_elements(x) * nisa_element_bytes(nisa_access_element(x));
}

/* A transfer between HBM and the chip whose halves are worth a start. */
static bool is_long_transfer(const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  if ((in->def->kind != NISA_DMA_COPY && in->def->kind != NISA_DMA_TRANSPOSE) || is_on_chip(dst) == is_on_chip(src))
    return false;
  return nisa_partitions(dst) * free_bytes(dst) >= 2 * PART_BYTES &&
         (in->def->kind == NISA_DMA_TRANSPOSE || free_bytes(dst) >= 2 * RUN_BYTES);
}

/* A load of more partitions than there are DMA engines, whose descriptors take longer to be supplied than its bytes to be moved. */
static bool is_wide_load(const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  return (in->def->kind == NISA_DMA_COPY || in->def->kind == NISA_DMA_TRANSPOSE) && is_on_chip(dst) &&
         !is_on_chip(src) && nisa_partitions(dst) >= 2 * PART_PARTITIONS && free_bytes(dst) <= SUPPLIED_BYTES;
}

/* True if operand k of the instruction is divided. */
static bool is_divided(const struct nisa_instr *in, int k) {
  if (!nisa_is_data(&in->operand[k]))
    return false;
  return coalesce_is_transfer(in) || coalesce_is_wide(in, k);
}

static bool is_divisible(const struct nisa_instr *in) {
  if (coalesce_is_transfer(in))
    return is_long_transfer(in);
  return coalesce_is_elementwise(in) && nisa_free_elements(&in->operand[0]) >= (int64_t)2 * PART_ELEMENTS;
}

/* How an instruction is divided: its elements in each partition, or the partitions of a load. */
enum how { BY_ELEMENTS, BY_PARTITIONS };

static void divide(struct pass_run *run, MlirOperation op, enum how how) {
  struct nisa_instr in, half[2];
  if (!nisa_read(op, &in, NULL) || !(how == BY_ELEMENTS ? is_divisible(&in) : is_wide_load(&in)))
    return;
  for (int second = 0; second < 2; second++) {
    half[second] = in;
    for (int k = 0; k < in.def->n_operands; k++) {
      struct nisa_access *x = &half[second].operand[k];
      const bool by_partitions = (how == BY_PARTITIONS) != (in.def->kind == NISA_DMA_TRANSPOSE && k);
      if (is_divided(&in, k) &&
          !halve(run->ir->ctx, x, by_partitions ? 0 : x->par_dims, by_partitions ? x->par_dims : x->n_dims, second))
        return;
    }
  }
  MlirOperation first = nisa_create_like(run->arena, &half[0], op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, first);
  replace(run, op, &half[1]);
}

/* ---- loads --------------------------------------------------------------------------------------------------------- */

struct loads {
  struct table written; /* root in HBM -> itself */
  struct table used;    /* root on chip that something else than a load that comes first has used -> itself */
};

/* True if all that it uses are arguments, allocations, views and numbers. */
static bool may_come_first(MlirOperation op) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, k));
    if (!mlirOperationIsNull(def) && !ir_is(def, "nisa.alloc") &&
        ((!buffer_is_view(def) && !ir_is_of(def, "arith.")) || !may_come_first(def)))
      return false;
  }
  return true;
}

/* Moves op and what it uses before `place`. */
static void bring(MlirOperation op, MlirOperation place) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, k));
    if (!mlirOperationIsNull(def) && !buffer_is_before(def, place))
      bring(def, place);
  }
  mlirOperationMoveBefore(op, place);
}

static bool is_early(const struct loads *l, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  return (in->def->kind == NISA_DMA_COPY || in->def->kind == NISA_DMA_TRANSPOSE) && is_on_chip(dst) &&
         !is_on_chip(src) && !nisa_keeps_order(in->op) && !table_get(&l->written, buffer_root(src->base).ptr) &&
         !table_get(&l->used, buffer_root(dst->base).ptr) && may_come_first(in->op);
}

/* The first instruction after load number k that reads of its buffer what it loads. */
static int reader_of(const struct nisa_instr *instrs, int n, int k) {
  const struct box loaded = box_of(&instrs[k].operand[0]);
  while (++k < n)
    for (int i = 1; instrs[k].def && i < instrs[k].def->n_operands; i++) {
      if (!nisa_is_data(&instrs[k].operand[i]))
        continue;
      const struct box read = box_of(&instrs[k].operand[i]);
      if (box_meets(&read, &loaded))
        return k;
    }
  return n;
}

/* Puts the loads that wait for nothing first, in the order in which they are needed, and the allocations of all that they fill. */
static void put_loads_first(struct pass_run *run, MlirOperation function) {
  const struct ir_ops ops = ir_collect(run->arena, function, is_instruction, NULL);
  struct loads l = {.written.arena = run->arena, .used.arena = run->arena};
  struct nisa_instr *instrs = arena_new_array(run->arena, struct nisa_instr, (size_t)ops.n + 1);
  int *reader = arena_new_array(run->arena, int, (size_t)ops.n + 1);
  MlirOperation place = {NULL};

  for (int k = 0; k < ops.n; k++) {
    if (!nisa_read(ops.v[k], &instrs[k], NULL))
      instrs[k].def = NULL; /* it is left where it is */
    else if (!is_on_chip(&instrs[k].operand[0]))
      table_put(&l.written, buffer_root(instrs[k].operand[0].base).ptr, run);
  }
  for (int k = 0; k < ops.n; k++) {
    const struct nisa_instr *in = &instrs[k];
    reader[k] = -1;
    if (!in->def)
      continue;
    if (is_early(&l, in)) {
      reader[k] = reader_of(instrs, ops.n, k);
      continue;
    }
    if (mlirOperationIsNull(place))
      place = ops.v[k];
    for (int i = 0; i < in->def->n_operands; i++)
      if (nisa_is_data(&in->operand[i]))
        table_put(&l.used, buffer_root(in->operand[i].base).ptr, run);
  }
  if (mlirOperationIsNull(place))
    return;
  for (int r = 0; r <= ops.n; r++)
    for (int k = 0; k < ops.n; k++)
      if (reader[k] == r)
        bring(ops.v[k], place);
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

/* Registers, or an order that the kernel fixes. */
static bool has_state(const struct pass_run *run, MlirOperation function) {
  const struct ir_ops ops = ir_collect(run->arena, function, is_instruction, NULL);
  for (int k = 0; k < ops.n; k++)
    if (nisa_keeps_order(ops.v[k]) || mlirOperationGetNumResults(ops.v[k]))
      return true;
  return false;
}

bool schedule_can_unroll(const struct pass_run *run, MlirOperation function) {
  enum { PART_OF_SBUF = 2 };
  int64_t bytes = 0;
  const int64_t n = executions(run, ir_body(function), &bytes);
  return n > 0 && n <= STEPS_MAX && bytes <= nisa_machine(run->target)->sbuf_bytes / PART_OF_SBUF &&
         !has_state(run, function);
}

void schedule_unroll(struct pass_run *run, MlirOperation function) {
  const struct ir_ops loops = ir_collect_named(run->arena, function, "scf.for");
  for (int k = loops.n - 1; k >= 0; k--) {
    pass_step(run, loops.v[k], "unroll");
    write_out(run, loops.v[k]);
  }
  fold_all(run, function);
}

int schedule_divide(struct pass_run *run, MlirOperation function, int parts, bool halves) {
  for (; parts > 1; parts /= 2) {
    const struct ir_ops ops = ir_collect(run->arena, function, is_instruction, NULL);
    for (int k = 0; ops.n <= DIVIDED_MAX && k < ops.n; k++)
      divide(run, ops.v[k], BY_ELEMENTS);
  }
  if (halves) {
    const struct ir_ops ops = ir_collect(run->arena, function, is_instruction, NULL);
    for (int k = 0; ops.n <= DIVIDED_MAX && k < ops.n; k++)
      divide(run, ops.v[k], BY_PARTITIONS);
  }
  put_loads_first(run, function);
  return ir_collect(run->arena, function, is_instruction, NULL).n;
}
