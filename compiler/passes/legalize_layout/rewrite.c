/* rewrite: makes operations work on physical buffers.  See legalize_layout.c.
 *
 * An operation is cut along its loops so that no part crosses a border between blocks of any operand.  The result is a
 * nest of scf.for over the full parts and, after each loop, the remainder.  The operands of a part are views of single
 * tiles (views.c).  Loops of extent 1 are dropped while more than two are left.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/range.h"
#include "passes/legalize_layout/rewrite.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"

/* Drops loops of extent 1 while more than two are left, but keeps the loop over the partitions and the last
 * reduction.  keep[l] is true if loop l stays.  Returns the number of loops that stay. */
static int kept_loops(const struct rewrite *r, const struct part *p, bool *keep) {
  const struct tiled_op *t = &r->t;
  int n = t->n_loops, n_reductions = 0;

  for (int l = 0; l < t->n_loops; l++) {
    n_reductions += t->reduction[l];
    keep[l] = true;
  }
  for (int l = 0; l < t->n_loops && n > 2 && t->kind != SK_MATMUL; l++) {
    if (p->size[l] != 1 || l == r->partition || (t->reduction[l] && n_reductions == 1))
      continue;
    n_reductions -= t->reduction[l];
    keep[l] = false;
    n--;
  }
  return n;
}

/* ---- building the operation ------------------------------------------------------------------------------------ */

/* Returns the index of the part's first iteration in loop l. */
static MlirValue first_index(const struct rewrite *r, struct ir_builder *b, const struct part *p, int l) {
  if (mlirValueIsNull(p->iv[l]))
    return ir_index(b, p->offset[l]);
  return memrefs_plus(b, memrefs_times(b, p->iv[l], r->cut[l]), p->offset[l]);
}

/* Adapts linalg.index, which counts from the part's first iteration: the index of a dropped loop becomes a constant
 * of the part; the others are added to the first index. */
static void set_indices(const struct rewrite *r, struct ir_builder *b, const struct part *p, MlirOperation op,
                        const bool *keep) {
  struct ir_ops ops = ir_collect_named(b->arena, op, "linalg.index");
  int number[LEGAL_RANK_MAX], n = 0;

  for (int l = 0; l < r->t.n_loops; l++) {
    number[l] = n;
    n += keep[l];
  }
  for (int k = 0; k < ops.n; k++) {
    const int l = (int)mlirIntegerAttrGetValueInt(ir_attr(ops.v[k], "dim"));
    MlirValue old = mlirOperationGetResult(ops.v[k], 0);
    assert(l >= 0 && l < r->t.n_loops);
    if (!keep[l]) {
      mlirValueReplaceAllUsesOfWith(old, first_index(r, b, p, l));
      mlirOperationDestroy(ops.v[k]);
      continue;
    }
    ir_set_attr(ops.v[k], "dim", ir_i64_attr(b, number[l]));
    if (mlirValueIsNull(p->iv[l]) && p->offset[l] == 0)
      continue;
    struct ir_builder in = *b;
    in.block = mlirOperationGetBlock(ops.v[k]);
    in.before = mlirOperationGetNextInBlock(ops.v[k]);
    MlirValue now = ir_binary(&in, "arith.addi", old, first_index(r, b, p, l));
    mlirValueReplaceAllUsesExcept(old, now, 1, (MlirOperation[]){ir_defining_op(now)});
  }
}

static void set_generic(const struct rewrite *r, struct ir_builder *b, MlirOperation op, const bool *keep) {
  const struct tiled_op *t = &r->t;
  MlirAttribute maps[STRUCTURED_OPERANDS_MAX], iterators[LEGAL_RANK_MAX];
  int number[LEGAL_RANK_MAX], n = 0;

  for (int l = 0; l < t->n_loops; l++) {
    number[l] = n;
    if (keep[l])
      iterators[n++] = ir_iterator(b->ctx, t->reduction[l]);
  }
  for (int o = 0; o < t->n_operands; o++) {
    int64_t results[LEGAL_RANK_MAX];
    bool drop[LEGAL_RANK_MAX];
    int m = 0;
    legal_dropped_dims(r, o, keep, drop);
    for (int d = 0; d < t->operand_rank[o]; d++)
      if (!drop[d])
        results[m++] = t->loop[o][d] < 0 ? IR_CONST(0) : number[t->loop[o][d]];
    maps[o] = mlirAffineMapAttrGet(ir_map(b, n, m, results));
  }
  ir_set_attr(op, "indexing_maps", mlirArrayAttrGet(b->ctx, t->n_operands, maps));
  ir_set_attr(op, "iterator_types", mlirArrayAttrGet(b->ctx, n, iterators));
}

/* Adapts a transpose or broadcast to the loops that stay.  Returns false if it moves no dimension, so that a copy is
 * enough. */
static bool set_copying(const struct rewrite *r, struct ir_builder *b, MlirOperation op, const bool *keep) {
  const struct tiled_op *t = &r->t;
  int64_t values[LEGAL_RANK_MAX];
  int number[LEGAL_RANK_MAX], n = 0, m = 0;
  bool moves = false;

  for (int l = 0; l < t->n_loops; l++) {
    number[l] = n;
    n += keep[l];
  }
  if (t->kind == SK_TRANSPOSE) { /* permutation: result dimension i is dimension permutation[i] of the input */
    int place[LEGAL_RANK_MAX] = {0};
    for (int d = 0; d < t->operand_rank[0]; d++)
      if (keep[t->loop[0][d]])
        place[number[t->loop[0][d]]] = m++;
    for (int i = 0; i < n; i++) {
      values[i] = place[i];
      moves |= values[i] != i;
    }
    ir_set_attr(op, "permutation", ir_i64_array(b, n, values));
    return moves;
  }
  for (int l = 0; l < t->n_loops; l++) {
    bool is_read = false;
    for (int d = 0; d < t->operand_rank[0]; d++)
      is_read |= t->loop[0][d] == l;
    if (keep[l] && !is_read)
      values[m++] = number[l];
  }
  ir_set_attr(op, "dimensions", ir_i64_array(b, m, values));
  return m > 0;
}

/* Gives the operands of a one-dimensional memref.copy a second dimension: they become a column if the loop is over
 * the partitions, otherwise a row. */
static void widen_copy(struct rewrite *r, struct ir_builder *b, MlirValue *v) {
  const bool is_column = r->partition == 0;
  for (int o = 0; o < 2; o++) {
    int64_t n;
    if (ir_shape(v[o], 1, &n) != 1)
      return;
    v[o] = memrefs_expand(b, v[o], (int[]){2}, 2, is_column ? (int64_t[]){n, 1} : (int64_t[]){1, n});
  }
}

static void emit_part(struct rewrite *r, struct ir_builder *b, const struct part *p) {
  MlirValue operands[STRUCTURED_OPERANDS_MAX];
  bool keep[LEGAL_RANK_MAX];
  struct tiled_op *t = &r->t;
  const int n = kept_loops(r, p, keep);

  for (int o = 0; o < t->n_operands; o++)
    operands[o] = legal_view(r, b, o, p, keep);
  if (t->is_copy) {
    if (n == 1)
      widen_copy(r, b, operands);
    memrefs_copy(b, operands[0], operands[1]);
    return;
  }
  MlirOperation op = mlirOperationClone(t->op);
  for (int o = 0; o < t->n_operands; o++)
    mlirOperationSetOperand(op, o, operands[o]);
  if ((t->kind == SK_TRANSPOSE || t->kind == SK_BROADCAST) && !set_copying(r, b, op, keep)) {
    mlirOperationDestroy(op);
    memrefs_copy(b, operands[0], operands[1]);
    return;
  }
  if (ir_is(op, "linalg.generic")) {
    set_generic(r, b, op, keep);
    set_indices(r, b, p, op, keep);
  }
  mlirBlockInsertOwnedOperationBefore(b->block, b->before, op);
}

/* Emits loops l, l + 1, …: first over the full parts, then the remainder. */
static void emit_nest(struct rewrite *r, struct ir_builder *b, int l, struct part *p) {
  if (l == r->t.n_loops) {
    emit_part(r, b, p);
    return;
  }
  const int64_t extent = r->t.extents[l], cut = r->cut[l], n = extent / cut;
  p->iv[l] = (MlirValue){NULL};
  p->offset[l] = 0;
  p->size[l] = n ? cut : extent;
  if (n > 1) {
    struct ir_builder in;
    p->iv[l] = ir_count_loop(b, n, &in);
    emit_nest(r, &in, l + 1, p);
  } else {
    emit_nest(r, b, l + 1, p);
  }
  if (n && extent % cut) {
    p->iv[l] = (MlirValue){NULL};
    p->offset[l] = n * cut;
    p->size[l] = extent % cut;
    emit_nest(r, b, l + 1, p);
  }
}

/* ---- the operation --------------------------------------------------------------------------------------------- */

/* Makes a fill of a whole buffer one instruction, on a view with the partitions and one free dimension.  Returns
 * false if op is not such a fill. */
static bool fill_whole(struct rewrite *r) {
  const int o = r->t.n_operands - 1;
  const struct physical *buffer = r->physical[o];

  if (r->t.kind != SK_FILL || !buffer || !buffer->is_blocked)
    return false;
  for (int d = 0; d < buffer->rank; d++)
    if (r->access[o].size[d] != buffer->dims[d])
      return false;
  struct ir_builder b = edit_before(r->g->run, r->t.op);
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(buffer->physical));
  mlirOperationSetOperand(r->t.op, o, memrefs_collapse(&b, buffer->physical, 2, (int[]){1, rank}));
  return true;
}

/* Finds the loop over the partitions: that of the result, or else of the last operand that has one.  Operands with
 * another partition loop (legal_align could not copy them, or they are indices of a gather) are copied by DMA when they
 * become operands of instructions. */
static void find_partition(struct rewrite *r) {
  r->partition = -1;
  for (int o = r->t.n_operands - 1; o >= 0 && r->partition < 0; o--) {
    const int l = legal_partition_loop(r->g, &r->t, o);
    r->partition = l == -2 ? -1 : l;
  }
}

/* Reads how the operands access their buffers.  Returns true if a buffer has a physical form. */
static bool read_operands(struct rewrite *r) {
  bool changes = false;

  for (int o = 0; o < r->t.n_operands; o++) {
    MlirValue v = mlirOperationGetOperand(r->t.op, o);
    if (!mlirTypeIsAMemRef(mlirValueGetType(v)) || !access_read(v, &r->access[o]))
      continue;
    r->physical[o] = legal_find(r->g, r->access[o].root);
    changes |= r->physical[o] != NULL;
  }
  return changes;
}

static void find_cuts(struct rewrite *r) {
  struct tiled_op *t = &r->t;

  for (int l = 0; l < t->n_loops; l++)
    r->cut[l] = t->extents[l];
  for (int o = 0; o < t->n_operands; o++)
    for (int k = 0; r->physical[o] && k < r->access[o].view_rank; k++) {
      const int l = t->loop[o][k], d = r->access[o].dim[k];
      if (l < 0 || d < 0)
        continue;
      const int64_t cut = access_cut(&r->access[o].at[d], r->access[o].size[d], r->physical[o]->tile[d]);
      if (cut < t->extents[l])
        r->cut[l] = r->cut[l] == t->extents[l] ? cut : nisa_gcd(r->cut[l], cut);
    }
}

void legal_cuts(const struct legalize *g, const struct tiled_op *t, int64_t *cut) {
  struct rewrite r = {.g = g, .t = *t};

  read_operands(&r);
  find_cuts(&r);
  memcpy(cut, r.cut, sizeof r.cut);
}

void legal_rewrite(struct legalize *g, MlirOperation op) {
  struct rewrite r = {.g = g};
  struct part p;

  if (!tiled_read(op, &r.t) || !read_operands(&r) || fill_whole(&r))
    return;
  find_partition(&r);
  find_cuts(&r);
  struct ir_builder b = edit_before(g->run, op);
  emit_nest(&r, &b, 0, &p);
  mlirOperationDestroy(op);
}

void legal_split(struct pass_run *run, MlirOperation op, const int64_t *cut, int partition) {
  struct legalize g = {.run = run};
  struct rewrite r = {.g = &g, .partition = partition};
  struct part p;

  if (!tiled_read(op, &r.t))
    return;
  for (int l = 0; l < r.t.n_loops; l++)
    r.cut[l] = cut[l];
  struct ir_builder b = edit_before(run, op);
  emit_nest(&r, &b, 0, &p);
  mlirOperationDestroy(op);
}
