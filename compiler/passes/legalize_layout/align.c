/* align: copies operands that an engine cannot read where they are.  See legalize_layout.h.
 *
 *     linalg.add ins(%a, %b) outs(%c)              %t = memref.alloc() with the tiles of %c
 *     %b has other partitions than %c         ==>  memref.copy %b, %t
 *                                                  linalg.add ins(%a, %t) outs(%c)
 *
 *     linalg.matmul ins(%a[4:8], %b) outs(%c) ==>  %t = memref.alloc(); memref.copy %a[4:8], %t
 *                                                  linalg.matmul ins(%t, %b) outs(%c)
 *
 *     memref.copy %psum, %s in blocks of       ==> %t = memref.alloc() with the tiles of %psum
 *     one partition                                memref.copy %psum, %t; memref.copy %t, %s
 *
 * An engine starts at partition 0, 32, 64 or 96.  DMA starts anywhere, but does not reach PSUM, so what is copied from one place in
 * SBUF to another may have any partitions.
 */
#include "nisa/nisa.h"
#include "nisa/range.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/memrefs.h"

/* Lets op read its operand o from a new buffer in SBUF with these tiles (NULL: those that suit op), to which it is copied before. */
static void read_copy_of(const struct legalize *g, const struct tiled_op *t, int o, const struct layout *at) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  struct ir_builder b = edit_before(g->run, t->op);
  int64_t dims[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);
  MlirValue own = memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(v), rank, dims, MEM_SBUF));

  if (at)
    layout_write(own, at, b.loc);
  memrefs_copy(&b, v, own);
  mlirOperationSetOperand(t->op, o, own);
}

/* ---- partitions other than the result's -------------------------------------------------------------------------- */

/* Returns the dimension of operand o's buffer that loop l goes over, or -1 if there is none.  The access goes to
 * *a. */
static int dim_of_loop(const struct tiled_op *t, int o, int l, struct access *a) {
  if (!access_read(mlirOperationGetOperand(t->op, o), a))
    return -1;
  for (int k = 0; k < t->operand_rank[o]; k++)
    if (t->loop[o][k] == l)
      return a->dim[k];
  return -1;
}

/* True if operand o can be read in the same parts along loop p as the result is written. */
static bool has_same_parts(const struct legalize *g, const struct tiled_op *t, int o, int p) {
  const int result = t->n_operands - 1;
  struct access a, r;
  const int d = dim_of_loop(t, o, p, &a), e = dim_of_loop(t, result, p, &r);
  const struct physical *from = d < 0 ? NULL : legal_find(g, a.root), *to = e < 0 ? NULL : legal_find(g, r.root);

  if (!from || !to)
    return true;
  const int64_t x = access_cut(&a.at[d], a.size[d], from->tile[d]), y = access_cut(&r.at[e], r.size[e], to->tile[e]);
  const int64_t n = t->extents[p], cut = x >= n && y >= n ? n : x >= n ? y : y >= n ? x : nisa_gcd(x, y);
  return access_starts_well(&a.at[d], a.size[d], from->tile[d], cut) &&
         access_starts_well(&r.at[e], r.size[e], to->tile[e], cut);
}

/* Sets the tile of operand o to that of the result along each dimension, and to 1 in dimensions before the
 * partitions.  Returns false if the partition dimension is the last of several or the second of two: no buffer can have
 * it there. */
static bool tile_like_result(const struct legalize *g, const struct tiled_op *t, int o, int p, struct layout *l) {
  int64_t dims[LEGAL_RANK_MAX];
  bool is_behind = false;

  l->n_tile = ir_shape(mlirOperationGetOperand(t->op, o), LEGAL_RANK_MAX, dims);
  for (int k = 0; k < l->n_tile; k++) {
    const int loop = t->loop[o][k];
    struct access r;
    const int d = loop < 0 ? -1 : dim_of_loop(t, t->n_operands - 1, loop, &r);
    const struct physical *to = d < 0 ? NULL : legal_find(g, r.root);
    if (loop == p && k > 0 && (k == l->n_tile - 1 || l->n_tile == 2))
      return false;
    is_behind |= loop == p;
    l->tile[k] = !is_behind ? 1 : to ? to->tile[d] : dims[k];
    l->tile[k] = l->tile[k] < dims[k] ? l->tile[k] : dims[k];
  }
  return is_behind;
}

/* Copies inputs of a computation whose partitions are other ones than the result's. */
static bool align_with_result(const struct legalize *g, struct tiled_op *t) {
  bool changed = false;

  const int p = legal_partition_loop(g, t, t->n_operands - 1);
  for (int o = 0; p >= 0 && t->extents[p] != 1 && o < t->n_inputs; o++) {
    const int l = legal_partition_loop(g, t, o);
    if (l == -2 || !legal_indexes(t, o, p) || (l == p && has_same_parts(g, t, o, p)))
      continue;
    struct layout at = {.space = MEM_SBUF, .partition_dim = 0};
    if (!tile_like_result(g, t, o, p, &at))
      continue;
    read_copy_of(g, t, o, &at);
    struct remark *r =
        pass_remark(g->run, t->op, RULE_ALIGN_PARTITIONS, "operand %d is copied to the partitions of the result", o);
    remark_reject(r, "reading it in place", "a lane reads its own partition only");
    changed = true;
  }
  return changed;
}

/* ---- partitions at which no engine starts ------------------------------------------------------------------------ */

/* True if an engine can start at the first partition of each part of operand o. */
static bool starts_well(const struct legalize *g, const struct tiled_op *t, int o, const int64_t *cut) {
  struct access a;

  if (!memrefs_is_on_chip(mlirOperationGetOperand(t->op, o)) || !access_read(mlirOperationGetOperand(t->op, o), &a))
    return true;
  const struct physical *b = legal_find(g, a.root);
  const int d = b ? b->partition : 0, l = legal_partition_loop(g, t, o);
  return access_starts_well(&a.at[d], a.size[d], b ? b->tile[d] : NISA_PARTITIONS, l < 0 ? a.size[d] : cut[l]);
}

/* Copies the factors of a product that begin, or that cut the product so that a part of it begins, where the tensor engine cannot. */
static bool align_product(const struct legalize *g, const struct tiled_op *t) {
  int64_t cut[LEGAL_RANK_MAX];
  bool changed = false;

  legal_cuts(g, t, cut);
  const bool is_result_well = starts_well(g, t, 2, cut);
  for (int o = 0; o < 2; o++) {
    const int rows = t->loop[2][0];
    if (!memrefs_is_on_chip(mlirOperationGetOperand(t->op, o)) ||
        (starts_well(g, t, o, cut) && (is_result_well || !legal_indexes(t, o, rows) || cut[rows] == t->extents[rows])))
      continue;
    read_copy_of(g, t, o, NULL);
    struct remark *r = pass_remark(g->run, t->op, RULE_ALIGN_PARTITIONS, "operand %d is copied to partition 0", o);
    remark_reject(r, "reading it in place", "an engine starts at partition 0, 32, 64 or 96");
    changed = true;
  }
  return changed;
}

/* Lets op, a copy out of PSUM, read its part from a copy of the whole buffer, which lies in SBUF as the buffer does in PSUM.  Returns
 * false if the part is not a box at a known place. */
static bool read_part_of_copy(const struct legalize *g, const struct tiled_op *t, const struct access *a,
                              const struct physical *p) {
  int64_t dims[LEGAL_RANK_MAX], offset[LEGAL_RANK_MAX];
  struct layout at = {.space = MEM_SBUF, .partition_dim = 0};
  bool drop[LEGAL_RANK_MAX];

  ir_shape(a->root, LEGAL_RANK_MAX, dims);
  for (int d = 0; d < a->rank; d++) {
    if (!linear_is_constant(&a->at[d]))
      return false;
    offset[d] = a->at[d].constant;
    drop[d] = true;
    at.tile[at.n_tile++] = p ? p->tile[d] : dims[d];
  }
  for (int k = 0; k < a->view_rank; k++) {
    if (a->dim[k] < 0 || (k && a->dim[k] <= a->dim[k - 1]))
      return false;
    drop[a->dim[k]] = false;
  }
  struct ir_builder b = edit_before(g->run, t->op);
  MlirValue own = memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(a->root), a->rank, dims, MEM_SBUF));
  layout_write(own, &at, b.loc);
  memrefs_copy(&b, a->root, own);
  mlirOperationSetOperand(
      t->op, 0, memrefs_subview(&b, own, &(struct memrefs_part){.offset = offset, .size = a->size, .drop = drop}));
  return true;
}

/* Lets a copy between PSUM and SBUF go through a buffer in SBUF that lies as the one in PSUM does, if the one in SBUF has other
 * parts, or if the part of the one in PSUM begins where no engine starts. */
static bool align_copy(const struct legalize *g, const struct tiled_op *t) {
  MlirValue from = mlirOperationGetOperand(t->op, 0), to = mlirOperationGetOperand(t->op, 1);
  int64_t cut[LEGAL_RANK_MAX];
  struct access a;

  if (!memrefs_is_on_chip(from) || !memrefs_is_on_chip(to) ||
      (memrefs_space(from) == MEM_PSUM) == (memrefs_space(to) == MEM_PSUM))
    return false;
  legal_cuts(g, t, cut);
  const int psum = memrefs_space(from) == MEM_PSUM ? 0 : 1;
  if ((starts_well(g, t, 0, cut) && starts_well(g, t, 1, cut)) || !access_read(psum ? to : from, &a))
    return false;
  const struct physical *p = legal_find(g, a.root);
  struct layout at = {.space = MEM_SBUF, .partition_dim = 0};
  if (!starts_well(g, t, psum, t->extents)) {
    if (psum || !read_part_of_copy(g, t, &a, p))
      return false;
  } else {
    at.n_tile = p ? a.view_rank : 0;
    for (int k = 0; k < at.n_tile; k++)
      at.tile[k] = a.dim[k] < 0 ? 1 : p->tile[a.dim[k]] < a.size[a.dim[k]] ? p->tile[a.dim[k]] : a.size[a.dim[k]];
    read_copy_of(g, t, 0, at.n_tile ? &at : NULL);
  }
  struct remark *r = pass_remark(g->run, t->op, RULE_ALIGN_PARTITIONS, "%s PSUM through a buffer with its partitions",
                                 psum ? "to" : "from");
  remark_reject(r, "one copy", "an engine starts at partition 0, 32, 64 or 96, and DMA does not reach PSUM");
  return true;
}

bool legal_align(const struct legalize *g, MlirOperation op) {
  struct tiled_op t;

  if (!tiled_read(op, &t))
    return false;
  if (t.is_copy)
    return align_copy(g, &t);
  if (t.kind == SK_MATMUL)
    return align_product(g, &t);
  return legal_needs_engine(&t) && !tiled_is_movement(&t) && align_with_result(g, &t);
}
