/* legalize_layout: on-chip buffers as the machine has them, with at most 128 partitions.
 *
 *     %b = memref.alloc() : memref<256x512xf32, 3 : i32>        %b = memref.alloc() : memref<128x2x4x128xf32, 3 : i32>
 *     "nkipy.layout"(%b) {tile_size = [128, 128]}
 *     %s = memref.subview %b[%i * 128, %j * 128]         ==>    %s = memref.subview %b[0, %i, %j, 0] [128, 1, 1, 128]
 *     linalg.exp … outs(%s)                                     %c = memref.collapse_shape %s : memref<128x128xf32, …>
 *     memref.copy %h, %b                                        linalg.exp … outs(%c)
 *                                                               scf.for %i { scf.for %j { memref.copy %h[…], … } }
 *
 * A buffer of shape d and tile t becomes [t of the partitions, blocks of each dimension, t of the free dimensions]:
 * tiles stand side by side in the free dimension.  There are ceil(d / t) blocks, of the last one only a part is used.
 * The partition dimension is the first one; of three and more dimensions, the first one whose tile is not 1, but never
 * the last (a tile [1, 128, 64] of a batch lies in 128 partitions).  Free dimensions are the last one and those in
 * between whose tile is not 1.  With a single block there are no block counts, so that a tile of 64x1x16 is 64x16.
 *
 * The tile is the layout's, or else the largest part that a computation takes, or else [128, 1 …, all].  The first of
 * these is taken in which each access hits whole blocks or stays within one; the others are cut, see access_cut.  A
 * buffer that no tile fits, because it is reshaped across partitions or sliced anyhow, or that is the table of a
 * gather, is moved to HBM, and what computes on it gets staged tiles (stage.c).  nkigen refuses
 * most of these.
 *
 * Operations then work on tiles (rewrite.c).  A buffer never loses its memory space, whatever it is
 * mixed with (nkigen makes temporaries without one).  Layout operations go.  Linear in uses.
 */
#include <inttypes.h>
#include <string.h>

#include "nisa/nisa.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"

enum {
  PARTS_MAX = 512, /* of one operation along one dimension; more means that the tile does not fit the access */
  ROUNDS_MAX = 3,  /* of finding operands that need a copy: one, and what a copy may bring along */
};

const struct physical *legal_find(const struct legalize *g, MlirValue root) {
  const struct physical *b = table_get(&g->by_root, root.ptr);
  return !b || mlirValueEqual(b->logical, b->physical) ? NULL : b;
}

/* ---- does a tile fit ------------------------------------------------------------------------------------------- */

static bool suits(const struct physical *b, const struct tiled_op *t, const struct access *a) {
  for (int d = 0; d < b->rank; d++) {
    const int64_t cut = access_cut(&a->at[d], a->size[d], b->tile[d]);
    if ((a->size[d] + cut - 1) / cut > PARTS_MAX)
      return false;
    if (d == b->partition && !tiled_is_movement(t) && !access_starts_well(&a->at[d], a->size[d], b->tile[d], cut))
      return false;
  }
  return true;
}

/* ---- choosing a tile ------------------------------------------------------------------------------------------- */

static void set_tile(struct physical *b, const int64_t *tile) {
  b->is_blocked = false;
  b->partition = 0;
  b->n_free = 0;
  for (int d = 0; d < b->rank; d++) {
    b->tile[d] = tile[d] < b->dims[d] ? tile[d] : b->dims[d];
    b->blocks[d] = (b->dims[d] + b->tile[d] - 1) / b->tile[d];
    b->is_blocked |= b->blocks[d] > 1;
  }
  for (int d = 0; b->rank > 2 && d < b->rank - 1; d++)
    if (b->tile[d] != 1) {
      b->partition = d;
      break;
    }
  for (int d = b->partition + 1; d < b->rank; d++)
    if (d == b->rank - 1 || b->tile[d] != 1)
      b->free[b->n_free++] = d;
}

/* The tile that a layout says; fewer entries than dimensions leave out those of extent 1. */
static bool layout_tile(const struct physical *b, int64_t *tile) {
  struct layout l = layout_read(b->logical);
  int k = 0, n_long = 0;

  for (int d = 0; d < b->rank; d++)
    n_long += b->dims[d] != 1;
  if (l.n_tile != b->rank && l.n_tile != n_long)
    return false;
  for (int d = 0; d < b->rank; d++)
    tile[d] = l.n_tile != b->rank && b->dims[d] == 1 ? 1 : l.tile[k++];
  for (int d = 0; d < b->rank; d++)
    if (tile[d] < 1)
      return false;
  return l.n_tile > 0;
}

struct uses {
  int n;
  struct tiled_op *op;
  struct access *access;
  int *operand;
};

/* All operations on the buffer with what they take of it; false if there is one that is not understood. */
static bool read_uses(struct pass_run *run, const struct physical *b, struct uses *u) {
  struct buffer_uses all = buffer_find_uses(run->arena, b->logical);

  *u = (struct uses){0};
  u->op = arena_new_array(run->arena, struct tiled_op, (size_t)all.n + 1);
  u->access = arena_new_array(run->arena, struct access, (size_t)all.n + 1);
  u->operand = arena_new_array(run->arena, int, (size_t)all.n + 1);
  for (int k = 0; k < all.n; k++) {
    if (layout_is_annotation(all.v[k].op))
      continue;
    MlirValue v = mlirOperationGetOperand(all.v[k].op, all.v[k].operand);
    if (!tiled_read(all.v[k].op, &u->op[u->n]) || !access_read(v, &u->access[u->n]))
      return false;
    u->operand[u->n++] = (int)all.v[k].operand;
  }
  return true;
}

/* The largest part that a computation takes along each dimension. */
static bool used_tile(const struct physical *b, const struct uses *u, int64_t *tile) {
  bool found = false;

  for (int d = 0; d < b->rank; d++)
    tile[d] = 1;
  for (int k = 0; k < u->n; k++) {
    if (u->op[k].kind == SK_FILL || (tiled_is_movement(&u->op[k]) && u->op[k].kind != SK_MATMUL))
      continue;
    found = true;
    for (int d = 0; d < b->rank; d++)
      tile[d] = u->access[k].size[d] > tile[d] ? u->access[k].size[d] : tile[d];
  }
  return found;
}

/* Partitions from the first dimension that is longer than 1 (but not the last), all of the last one. */
static void plain_tile(const struct physical *b, int64_t *tile) {
  int p = 0;
  while (p < b->rank - 2 && b->dims[p] == 1)
    p++;
  for (int d = 0; d < b->rank; d++)
    tile[d] = d == b->rank - 1 ? b->dims[d] : 1;
  tile[p] = b->dims[p] < NISA_PARTITIONS ? b->dims[p] : NISA_PARTITIONS;
}

static bool try_tile(struct physical *b, const struct uses *u, const int64_t *tile) {
  set_tile(b, tile);
  if (b->tile[b->partition] > NISA_PARTITIONS)
    return false;
  for (int k = 0; k < u->n; k++)
    if (!suits(b, &u->op[k], &u->access[k]))
      return false;
  return true;
}

/* Chooses the physical form; false if there is none. */
static bool choose(struct pass_run *run, struct physical *b) {
  int64_t tile[LEGAL_RANK_MAX];
  struct uses u;

  if (!read_uses(run, b, &u))
    return false;
  if (layout_tile(b, tile) && try_tile(b, &u, tile))
    return true;
  if (used_tile(b, &u, tile) && try_tile(b, &u, tile))
    return true;
  plain_tile(b, tile);
  return try_tile(b, &u, tile);
}

/* ---- buffers --------------------------------------------------------------------------------------------------- */

/* A tile already, and what uses it besides takes it as it is: a call, a loop that hands it on. */
static bool is_opaque_tile(struct pass_run *run, const struct physical *b) {
  struct buffer_uses all = buffer_find_uses(run->arena, b->logical);
  struct tiled_op t;

  if (b->rank > 2 || b->dims[0] > NISA_PARTITIONS)
    return false;
  for (int k = 0; k < all.n; k++)
    if (!layout_is_annotation(all.v[k].op) && !tiled_read(all.v[k].op, &t))
      return true;
  return false;
}

/* Loaded from at computed places: a gather, which only DRAM can serve. */
static bool is_table(const struct physical *b) {
  for (MlirOpOperand u = mlirValueGetFirstUse(b->logical); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "memref.load"))
      return true;
  return false;
}

static bool can_move(const struct physical *b) {
  return memrefs_space(b->logical) == MEM_SBUF && !mlirOperationIsNull(ir_defining_op(b->logical));
}

/* The buffer goes to HBM; what computes on it gets tiles.  New buffers are found in the next round. */
static enum status move_to_hbm(struct pass_run *run, struct physical *b) {
  MlirOperation alloc = ir_defining_op(b->logical);
  MlirType t = memrefs_type(run->ir->ctx, memrefs_element(b->logical), b->rank, b->dims, MEM_HBM);
  struct buffer_uses uses = buffer_find_uses(run->arena, b->logical);

  if (!can_move(b) || !memrefs_can_retype(b->logical, t))
    return pass_fail(run, alloc, "no tile fits the ways in which this on-chip buffer is used");
  mlirValueSetType(b->logical, t);
  memrefs_retype_views(b->logical);
  for (int k = 0; k < uses.n; k++) {
    bool is_first = true;
    for (int j = 0; j < k; j++)
      is_first &= !mlirOperationEqual(uses.v[j].op, uses.v[k].op);
    if (is_first)
      legal_stage(run, uses.v[k].op);
  }
  pass_remark(run, alloc, "moved to HBM: no tile fits the ways in which it is used");
  return ST_OK;
}

static struct physical *add_buffer(struct legalize *g, MlirValue v) {
  struct physical *b = arena_new(g->run->arena, struct physical);

  *b = (struct physical){.logical = v};
  b->rank = ir_shape(v, LEGAL_RANK_MAX, b->dims);
  *g->end = b;
  g->end = &b->next;
  table_put(&g->by_root, v.ptr, b);
  return b;
}

/* Chooses a form for every on-chip buffer; again as long as buffers move to HBM. */
static enum status choose_all(struct legalize *g) {
  struct pass_run *run = g->run;
  bool again;

  do {
    struct ir_ops allocs = ir_collect_named(run->arena, run->module, "memref.alloc");
    again = false;
    g->buffers = NULL;
    g->end = &g->buffers;
    g->by_root = (struct table){.arena = run->arena};
    for (int k = 0; k < allocs.n; k++) {
      MlirValue v = mlirOperationGetResult(allocs.v[k], 0);
      MlirType t = mlirValueGetType(v);
      if (!memrefs_is_on_chip(v))
        continue;
      if (!mlirShapedTypeHasStaticShape(t) || mlirShapedTypeGetRank(t) > LEGAL_RANK_MAX)
        return pass_fail(run, allocs.v[k], "an on-chip buffer needs known extents and at most %d dimensions",
                         LEGAL_RANK_MAX);
      struct physical *b = add_buffer(g, v);
      if (b->rank == 0 || (!is_table(b) && choose(run, b)))
        continue;
      if (!is_table(b) && is_opaque_tile(run, b)) {
        b->physical = b->logical;
        continue;
      }
      enum status st = move_to_hbm(run, b);
      if (st)
        return st;
      again = true;
    }
  } while (again);
  return ST_OK;
}

/* The buffer in its physical form, in the place of the old one. */
static void make(struct legalize *g, struct physical *b) {
  int64_t shape[2 * LEGAL_RANK_MAX + 1];
  int n = 0;

  if (b->rank <= 2 && !b->is_blocked)
    b->physical = b->logical;
  if (!mlirValueIsNull(b->physical))
    return;
  shape[n++] = b->tile[b->partition];
  for (int d = 0; b->is_blocked && d < b->rank; d++)
    shape[n++] = b->blocks[d];
  for (int k = 0; k < b->n_free; k++)
    shape[n++] = b->tile[b->free[k]];
  struct ir_builder at = edit_before(g->run, ir_defining_op(b->logical));
  MlirType t = memrefs_type(at.ctx, memrefs_element(b->logical), n, shape, memrefs_space(b->logical));
  b->physical = memrefs_alloc(&at, t);
  const char *blocks = "";
  for (int d = 0; b->is_blocked && d < b->rank; d++)
    blocks = arena_printf(g->run->arena, "%s%s%" PRId64, blocks, d ? "x" : ", blocks ", b->blocks[d]);
  pass_remark(g->run, ir_defining_op(b->logical), "lies as %s: %" PRId64 " partition%s%s",
              layout_ints(g->run->arena, n, shape), shape[0], shape[0] == 1 ? "" : "s", blocks);
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

static void clean_up(struct legalize *g) {
  struct ir_ops all = ir_collect(g->run->arena, g->run->module, NULL, NULL);

  for (int k = all.n - 1; k >= 0; k--)
    if (ir_is(all.v[k], "nkipy.layout") ||
        (buffer_is_view(all.v[k]) && !ir_is_used(mlirOperationGetResult(all.v[k], 0))))
      mlirOperationDestroy(all.v[k]);
  for (struct physical *b = g->buffers; b; b = b->next)
    if (!mlirValueEqual(b->logical, b->physical) && !ir_is_used(b->logical))
      mlirOperationDestroy(ir_defining_op(b->logical));
}

static bool is_tiled(MlirOperation op, void *user) {
  (void)user;
  struct tiled_op t;
  return tiled_read(op, &t);
}

static enum status run_pass(struct pass_run *run) {
  struct legalize g = {.run = run};
  struct ir_ops ops = ir_collect(run->arena, run->module, is_tiled, NULL);

  for (int k = 0; k < ops.n; k++)
    legal_stage(run, ops.v[k]);
  enum status st = choose_all(&g);
  bool is_new = true;
  for (int round = 0; !st && is_new && round < ROUNDS_MAX; round++) {
    is_new = false;
    ops = ir_collect(run->arena, run->module, is_tiled, NULL);
    for (int k = 0; k < ops.n; k++)
      is_new |= legal_spread(&g, ops.v[k]) || legal_align(&g, ops.v[k]);
    if (is_new)
      st = choose_all(&g); /* for the new buffers */
  }
  for (struct physical *b = g.buffers; !st && b; b = b->next)
    make(&g, b);
  ops = ir_collect(run->arena, run->module, is_tiled, NULL);
  for (int k = 0; !st && k < ops.n; k++)
    legal_rewrite(&g, ops.v[k]);
  if (!st)
    clean_up(&g);
  return st;
}

const struct pass_def legalize_layout = {
    .name = "legalize-layout",
    .run = run_pass,
};
