/* legalize_layout: gives on-chip buffers the form that the machine requires, with at most 128 partitions.
 *
 *     %b = memref.alloc() : memref<256x512xf32, 3 : i32>        %b = memref.alloc() : memref<128x2x4x128xf32, 3 : i32>
 *     "nkipy.layout"(%b) {tile_size = [128, 128]}
 *     %s = memref.subview %b[%i * 128, %j * 128]         ==>    %s = memref.subview %b[0, %i, %j, 0] [128, 1, 1, 128]
 *     linalg.exp … outs(%s)                                     %c = memref.collapse_shape %s : memref<128x128xf32, …>
 *     memref.copy %h, %b                                        linalg.exp … outs(%c)
 *                                                               scf.for %i { scf.for %j { memref.copy %h[…], … } }
 *
 * A buffer of shape d and tile t becomes [t of the partitions, blocks of each dimension, t of the free dimensions]:
 * the tiles are next to each other in the free dimension.  There are ceil(d / t) blocks; the last one may be used only
 * partly.  The partition dimension is the first one; with three or more dimensions it is the first one whose tile is
 * not 1, but never the last (a tile [1, 128, 64] of a batch is in 128 partitions).  The free dimensions are the last
 * one and those in between whose tile is not 1.  With a single block the shape has no block counts, so a tile of
 * 64x1x16 becomes 64x16.
 *
 * The candidates for the tile are that of the layout, the largest part that a computation uses, with all of the dimensions along
 * which such parts would be cut and without, and [128, 1 …, all].
 * The pass takes the first one that suits all accesses; an access that spans several blocks is cut (see access_cut).  A
 * buffer is moved to HBM if no tile suits its accesses, because it is reshaped across partitions or sliced in another
 * way, or if it is the table of a gather.  Computations on it then get staged tiles (stage.c).  nkigen refuses most of
 * these cases.
 *
 * Operations then work on tiles (rewrite.c).  A buffer always keeps its memory space (nkigen makes temporaries without
 * one).  Layout operations are erased.  Linear in uses.
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
  ROUNDS_MAX = 3, /* of searching operands that need a copy: one, and more for the operands of new copies */
};

const struct physical *legal_find(const struct legalize *g, MlirValue root) {
  const struct physical *b = table_get(&g->by_root, root.ptr);
  return !b || mlirValueEqual(b->logical, b->physical) ? NULL : b;
}

/* ---- does a tile fit ------------------------------------------------------------------------------------------- */

static bool suits(const struct physical *b, const struct tiled_op *t, const struct access *a) {
  for (int d = 0; d < b->rank; d++) {
    const int64_t cut = access_cut(&a->at[d], a->size[d], b->tile[d]);
    if ((a->size[d] + cut - 1) / cut > LEGAL_PARTS_MAX)
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

/* Reads the tile of the layout.  A layout with fewer entries than dimensions omits those of extent 1.  Returns false
 * if there is no valid tile. */
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

/* Collects all operations on the buffer and the parts that they access.  Returns false if one of them is not
 * understood. */
static bool read_uses(struct arena *a, const struct physical *b, struct uses *u) {
  struct buffer_uses all = buffer_find_uses(a, b->logical);

  *u = (struct uses){0};
  u->op = arena_new_array(a, struct tiled_op, (size_t)all.n + 1);
  u->access = arena_new_array(a, struct access, (size_t)all.n + 1);
  u->operand = arena_new_array(a, int, (size_t)all.n + 1);
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

/* Finds the largest part that a computation uses along each dimension.  Returns false if there is no computation. */
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

/* Takes all of each dimension along which a computation's part would lie in several blocks, as the windows of a convolution do.
 * Returns false if there is none. */
static bool whole_tile(const struct physical *b, const struct uses *u, int64_t *tile) {
  bool found = false;

  for (int d = 0; d < b->rank; d++) {
    bool is_cut = false;
    for (int k = 0; k < u->n; k++)
      is_cut |= u->op[k].kind != SK_FILL && !tiled_is_movement(&u->op[k]) &&
                access_cut(&u->access[k].at[d], u->access[k].size[d], tile[d]) < u->access[k].size[d];
    tile[d] = is_cut ? b->dims[d] : tile[d];
    found |= is_cut;
  }
  return found;
}

/* Puts the first dimension longer than 1 (but not the last one) on the partitions and takes all of the last
 * dimension. */
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

static bool choose_for(struct physical *b, const struct uses *u) {
  int64_t tile[LEGAL_RANK_MAX];

  if (layout_tile(b, tile) && try_tile(b, u, tile))
    return true;
  if (used_tile(b, u, tile)) {
    int64_t whole[LEGAL_RANK_MAX];
    memcpy(whole, tile, sizeof whole);
    if (whole_tile(b, u, whole) && try_tile(b, u, whole))
      return true;
    if (try_tile(b, u, tile))
      return true;
  }
  plain_tile(b, tile);
  return try_tile(b, u, tile);
}

/* Chooses the physical form.  Returns false if there is none.  What the buffers need for that is in memory that they use one after the
 * other. */
static bool choose(struct physical *b) {
  struct arena own;
  struct uses u;

  arena_init(&own);
  const bool is_chosen = read_uses(&own, b, &u) && choose_for(b, &u);
  arena_clear(&own);
  return is_chosen;
}

/* ---- buffers --------------------------------------------------------------------------------------------------- */

/* True if the buffer is one tile that an operation other than a tiled one, such as a call or a loop, uses in its
 * present form. */
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

/* True if elements are loaded at computed indices: this is a gather, which needs its table in DRAM. */
static bool is_table(const struct physical *b) {
  for (MlirOpOperand u = mlirValueGetFirstUse(b->logical); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "memref.load"))
      return true;
  return false;
}

static bool can_move(const struct physical *b) {
  return memrefs_space(b->logical) == MEM_SBUF && !mlirOperationIsNull(ir_defining_op(b->logical));
}

/* Moves the buffer to HBM and stages the computations on it in new on-chip buffers, which the next round finds. */
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
  struct remark *r =
      pass_remark(run, alloc, RULE_LAYOUT_IN_HBM, "moved to HBM: no tile fits the ways in which it is used");
  remark_reject(r, "SBUF", "on the chip it has one tile, which its users cannot share");
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

/* Chooses a form for every on-chip buffer.  Repeats while buffers move to HBM.  A staged buffer has a form, so each round
 * moves one of the first buffers at least; more rounds than that are a fault of staging, and would never end. */
static enum status choose_all(struct legalize *g) {
  struct pass_run *run = g->run;
  int rounds = 0, rounds_max = 0;
  bool again;

  do {
    struct ir_ops allocs = ir_collect_named(run->arena, run->module, "memref.alloc");
    rounds_max = rounds == 0 ? allocs.n + 1 : rounds_max;
    if (rounds++ > rounds_max)
      return pass_fail(run, run->module, "staged buffers have no tile");
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
      if (b->rank == 0 || (!is_table(b) && choose(b)))
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

/* Allocates the buffer in its physical form before the old one. */
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
  struct remark *r =
      pass_remark(g->run, ir_defining_op(b->logical), RULE_PHYSICAL_LAYOUT, "lies as %s: %" PRId64 " partition%s%s",
                  layout_ints(g->run->arena, n, shape), shape[0], shape[0] == 1 ? "" : "s", blocks);
  remark_limit(r, "partitions", "partitions", shape[0], NISA_PARTITIONS);
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

  for (int k = 0; k < ops.n; k++) {
    pass_step(run, ops.v[k], "stage-in-own-buffer");
    legal_stage(run, ops.v[k]);
  }
  enum status st = choose_all(&g);
  bool is_new = true;
  for (int round = 0; !st && is_new && round < ROUNDS_MAX; round++) {
    is_new = false;
    ops = ir_collect(run->arena, run->module, is_tiled, NULL);
    for (int k = 0; k < ops.n; k++) {
      pass_step(run, ops.v[k], "spread-over-partitions");
      is_new |= legal_spread(&g, ops.v[k]) || legal_align(&g, ops.v[k]);
    }
    if (is_new)
      st = choose_all(&g); /* chooses forms for the new buffers, too */
  }
  if (!st && legal_hoist(run))
    st = choose_all(&g);
  for (struct physical *b = g.buffers; !st && b; b = b->next) {
    pass_step(run, ir_defining_op(b->logical), "make-physical-buffer");
    make(&g, b);
  }
  ops = ir_collect(run->arena, run->module, is_tiled, NULL);
  for (int k = 0; !st && k < ops.n; k++) {
    pass_step(run, ops.v[k], "use-physical-buffers");
    legal_rewrite(&g, ops.v[k]);
  }
  pass_step(run, run->module, "drop-unused");
  if (!st)
    clean_up(&g);
  return st;
}

const struct pass_def legalize_layout = {
    .name = "legalize-layout",
    .run = run_pass,
};
