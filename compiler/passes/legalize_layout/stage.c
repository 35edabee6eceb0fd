/* stage: copies DRAM operands of operations to on-chip buffers and back.  See legalize_layout.h.
 *
 *     linalg.exp ins(%h) outs(%x)        %s = memref.alloc() : …, 3 : i32
 *                                   ==>  memref.copy %h, %s
 *                                        linalg.exp ins(%s) outs(%x)
 *
 *     linalg.fill ins(%c) outs(%h)       %t = memref.alloc() : [at most 128, 1 …, at most 2048], 3 : i32
 *                                   ==>  linalg.fill ins(%c) outs(%t)
 *                                        scf.for … { memref.copy %t, %h[…] }
 *
 * Moving data needs no engine, so copies, transposes and broadcasts stay.  This file also broadcasts rows that all
 * partitions read.
 */
#include <assert.h>

#include "nisa/nisa.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"

enum { FILL_FREE_MAX = 2048 }; /* elements per partition of the tile that is copied */

/* ---- fills ----------------------------------------------------------------------------------------------------- */

struct fill {
  MlirValue tile, to;
  int rank;
  int64_t dims[LEGAL_RANK_MAX], cut[LEGAL_RANK_MAX];
  MlirValue at[LEGAL_RANK_MAX];
  int64_t offset[LEGAL_RANK_MAX], size[LEGAL_RANK_MAX];
};

static MlirValue part_or_all(struct ir_builder *b, MlirValue v, const struct memrefs_part *p) {
  int64_t dims[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);

  for (int d = 0; d < rank; d++)
    if (dims[d] != p->size[d])
      return memrefs_subview(b, v, p);
  return v;
}

static void copy_tiles(struct fill *f, struct ir_builder *b, int d) {
  static const int64_t zero[LEGAL_RANK_MAX] = {0};

  if (d == f->rank) {
    MlirValue from = part_or_all(b, f->tile, &(struct memrefs_part){.offset = zero, .size = f->size});
    MlirValue to = part_or_all(b, f->to, &(struct memrefs_part){.offset = f->offset, .size = f->size, .at = f->at});
    memrefs_copy(b, from, to);
    return;
  }
  const int64_t n = f->dims[d] / f->cut[d], rest = f->dims[d] % f->cut[d];
  f->at[d] = (MlirValue){NULL};
  f->offset[d] = 0;
  f->size[d] = f->cut[d];
  if (n > 1) {
    struct ir_builder in;
    f->at[d] = ir_count_loop(b, n, &in);
    f->at[d] = memrefs_times(&in, f->at[d], f->cut[d]);
    copy_tiles(f, &in, d + 1);
  } else {
    copy_tiles(f, b, d + 1);
  }
  if (rest) {
    f->at[d] = (MlirValue){NULL};
    f->offset[d] = n * f->cut[d];
    f->size[d] = rest;
    copy_tiles(f, b, d + 1);
  }
}

/* Chooses the tile that is copied: the first dimension longer than 1, but not the last, lies across the partitions, and
 * the tile has as much of the dimensions after it as it holds.  Those between the two become blocks (plain_tile), of
 * which an operation has a limited number. */
static void cut_fill(struct fill *f) {
  int64_t room = FILL_FREE_MAX;
  int p = 0;

  while (p < f->rank - 2 && f->dims[p] == 1)
    p++;
  for (int d = f->rank - 1; d >= 0; d--) {
    const int64_t fits = d < f->rank - 1 && room > LEGAL_PARTS_MAX ? LEGAL_PARTS_MAX : room;
    const int64_t most = d == p ? NISA_PARTITIONS : d > p ? fits : 1;
    f->cut[d] = f->dims[d] < most ? f->dims[d] : most;
    if (d > p)
      room = f->cut[d] < f->dims[d] ? 1 : room / (f->cut[d] > 0 ? f->cut[d] : 1);
  }
}

static void stage_fill(struct pass_run *run, MlirOperation op) {
  struct ir_builder b = edit_before(run, op);
  struct fill f = {.to = mlirOperationGetOperand(op, 1)};

  f.rank = ir_shape(f.to, LEGAL_RANK_MAX, f.dims);
  assert(f.rank >= 0 && f.rank <= LEGAL_RANK_MAX); /* tiled_read understands the fill */
  if (f.rank < 2) {
    const int64_t n = f.rank ? f.dims[0] : 1;
    f.to = memrefs_expand(&b, f.to, (int[]){2}, 2, (int64_t[]){1, n});
    f.rank = ir_shape(f.to, LEGAL_RANK_MAX, f.dims);
  }
  cut_fill(&f);
  f.tile = memrefs_alloc(&b, memrefs_type(run->ir->ctx, memrefs_element(f.to), f.rank, f.cut, MEM_SBUF));
  MlirOperation fill = mlirOperationClone(op);
  mlirOperationSetOperand(fill, 1, f.tile);
  mlirBlockInsertOwnedOperationBefore(b.block, op, fill);
  copy_tiles(&f, &b, 0);
  mlirOperationDestroy(op);
}

/* ---- computations ---------------------------------------------------------------------------------------------- */

/* True if op is a generic that yields one of its inputs unchanged. */
static bool yields_input(MlirOperation op) {
  MlirBlock body = ir_body(op);
  MlirOperation end = mlirBlockGetTerminator(body);
  return mlirOperationEqual(mlirBlockGetFirstOperation(body), end) &&
         mlirValueIsABlockArgument(mlirOperationGetOperand(end, 0));
}

bool legal_needs_engine(const struct tiled_op *t) {
  switch (t->kind) {
  case SK_UNARY:
    return !t->is_copy && !ir_is(t->op, "linalg.copy");
  case SK_ELEMENTWISE:
    return !yields_input(t->op);
  case SK_BINARY:
  case SK_REDUCTION:
  case SK_MATMUL:
    return true;
  default:
    return false;
  }
}

static void stage_operand(struct pass_run *run, const struct tiled_op *t, int o) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  int64_t dims[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims), access = buffer_access(t->op, o);
  const bool is_psum = t->kind == SK_MATMUL && o == t->n_operands - 1;
  struct ir_builder before = edit_before(run, t->op), after = edit_after(run, t->op);
  MlirValue own =
      memrefs_alloc(&before, memrefs_type(run->ir->ctx, memrefs_element(v), rank, dims, is_psum ? MEM_PSUM : MEM_SBUF));

  if (access & BUFFER_READS)
    memrefs_copy(&before, v, own);
  if (access & BUFFER_WRITES)
    memrefs_copy(&after, own, v);
  mlirOperationSetOperand(t->op, o, own);
}

void legal_stage(struct pass_run *run, MlirOperation op) {
  struct tiled_op t;

  if (ir_is(op, "linalg.fill") && memrefs_is_dram(mlirOperationGetOperand(op, 1)) &&
      mlirShapedTypeGetRank(mlirValueGetType(mlirOperationGetOperand(op, 1))) > 0) {
    stage_fill(run, op);
    return;
  }
  if (!tiled_read(op, &t) || !legal_needs_engine(&t))
    return;
  for (int o = 0; o < t.n_operands; o++)
    if (memrefs_is_dram(mlirOperationGetOperand(op, o)) && t.operand_rank[o] > 0)
      stage_operand(run, &t, o);
}

void legal_stage_transpose(struct pass_run *run, MlirOperation op) {
  MlirValue to = mlirOperationGetOperand(op, 1);
  int64_t dims[LEGAL_RANK_MAX];

  if (!memrefs_is_dram(mlirOperationGetOperand(op, 0)) || !memrefs_is_dram(to))
    return;
  const int rank = ir_shape(to, LEGAL_RANK_MAX, dims);
  struct ir_builder b = edit_before(run, op), after = edit_after(run, op);
  MlirValue tile = memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(to), rank, dims, MEM_SBUF));
  mlirOperationSetOperand(op, 1, tile);
  memrefs_copy(&after, tile, to);
}

/* ---- rows for all partitions ----------------------------------------------------------------------------------- */

bool legal_indexes(const struct tiled_op *t, int o, int loop) {
  for (int d = 0; d < t->operand_rank[o]; d++)
    if (t->loop[o][d] == loop)
      return true;
  return false;
}

/* True if inputs x and y read the same elements of one buffer. */
static bool reads_the_same(const struct tiled_op *t, int x, int y) {
  if (!mlirValueEqual(mlirOperationGetOperand(t->op, x), mlirOperationGetOperand(t->op, y)) ||
      t->operand_rank[x] != t->operand_rank[y])
    return false;
  for (int d = 0; d < t->operand_rank[x]; d++)
    if (t->loop[x][d] != t->loop[y][d])
      return false;
  return true;
}

/* Returns the copy that fills the buffer of input o, if the operation is the only reader of that buffer, reads it the same
 * way in each operand that it is, and comes after the copy in the same block; otherwise null. */
static MlirOperation copy_for(const struct tiled_op *t, int o) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  MlirOperation def = ir_defining_op(v), copy = {NULL}, none = {NULL};

  if (mlirOperationIsNull(def) || !ir_is(def, "memref.alloc"))
    return none;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const int at = (int)mlirOpOperandGetOperandNumber(u);
    if (mlirOperationEqual(op, t->op) && (at >= t->n_inputs || !reads_the_same(t, o, at)))
      return none;
    if (mlirOperationEqual(op, t->op) || layout_is_annotation(op))
      continue;
    if (!mlirOperationIsNull(copy) || !ir_is(op, "memref.copy") || at != 1 ||
        !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(t->op)) ||
        !mlirOperationIsBeforeInBlock(op, t->op))
      return none;
    copy = op;
  }
  return copy;
}

/* Lets input o read the rows of `own`, of which each iteration of loop p has its own one. */
static void read_rows(struct ir_builder *b, struct tiled_op *t, int o, int p, MlirValue own) {
  MlirAttribute maps = ir_attr(t->op, "indexing_maps"), now[STRUCTURED_OPERANDS_MAX];
  int64_t results[LEGAL_RANK_MAX];

  t->loop[o][p] = p;
  for (int d = 0; d < t->operand_rank[o]; d++)
    results[d] = t->loop[o][d] < 0 ? IR_CONST(0) : t->loop[o][d];
  for (int k = 0; k < t->n_operands; k++)
    now[k] = mlirArrayAttrGetElement(maps, k);
  now[o] = mlirAffineMapAttrGet(ir_map(b, t->n_loops, t->operand_rank[o], results));
  ir_set_attr(t->op, "indexing_maps", mlirArrayAttrGet(b->ctx, t->n_operands, now));
  mlirOperationSetOperand(t->op, o, own);
}

/* Broadcasts operand o, which has extent 1 along loop p, to a new buffer with as many rows as the loop has
 * iterations.  Inputs that read the same as o read the new buffer too.  A row that was copied to the chip for this comes
 * directly from where the copy took it. */
static void spread_operand(struct pass_run *run, struct tiled_op *t, int o, int p) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  MlirOperation copy = copy_for(t, o);
  struct ir_builder b = edit_before(run, mlirOperationIsNull(copy) ? t->op : copy);
  int64_t dims[LEGAL_RANK_MAX], wide[LEGAL_RANK_MAX], zero[LEGAL_RANK_MAX] = {0};
  bool drop[LEGAL_RANK_MAX] = {false};
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);

  b.loc = mlirOperationGetLocation(t->op);
  if (!mlirOperationIsNull(copy)) {
    v = mlirOperationGetOperand(copy, 0);
    b.before = mlirOperationGetNextInBlock(copy);
    mlirOperationDestroy(copy);
  }
  for (int d = 0; d < rank; d++)
    wide[d] = d == p ? t->extents[p] : dims[d];
  drop[p] = true;
  MlirValue own = memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(v), rank, wide, MEM_SBUF));
  MlirValue row = memrefs_subview(&b, v, &(struct memrefs_part){.offset = zero, .size = dims, .drop = drop});
  ir_broadcast(&b, row, own, p);
  for (int k = t->n_inputs - 1; k >= o; k--) /* o is the last: the others are compared with it */
    if (reads_the_same(t, o, k))
      read_rows(&b, t, k, p, own);
  struct remark *r = pass_remark(run, t->op, RULE_BROADCAST_TO_PARTITIONS, "operand %d is copied to all partitions", o);
  remark_reject(r, "reading it in place", "a lane reads its own partition only");
}

bool legal_spread(const struct legalize *g, MlirOperation op) {
  struct tiled_op t;
  bool changed = false;

  if (!ir_is(op, "linalg.generic") || !tiled_read(op, &t))
    return false;
  const int p = legal_partition_loop(g, &t, t.n_operands - 1);
  for (int o = 0; p >= 0 && t.extents[p] != 1 && o < t.n_inputs; o++) {
    const int l = legal_partition_loop(g, &t, o);
    if (l == -2 || l == p || legal_indexes(&t, o, p) || t.operand_rank[o] != t.n_loops)
      continue;
    spread_operand(g->run, &t, o, p);
    changed = true;
  }
  return changed;
}
