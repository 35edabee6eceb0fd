/* knob_driven_tiling: translates tile annotations to a transform script.
 *
 *     %r = linalg.exp {nkipy.op_id = 0} …                     transform.structured.match ops{["linalg.exp"]} …
 *     "nkipy.tile_op"(%r) {loop_tile_size = [128, 512]}  ==>  transform.structured.tile_using_for … [128, 512]
 *                                                             transform.structured.promote_tensor to 3 : i32 …
 *
 * The pass changes one thing in the payload: the accumulator of a matmul starts from zero (accumulator.h).  The script
 * has one group of transform operations per tiled operation, in program order; it finds each operation by its number.
 * apply-and-strip-transforms runs the script.
 *
 * Element-wise operations, reductions, transposes and broadcasts get one loop per iterator.  Their operands are copied
 * to SBUF unless they are already there; the destination is always in SBUF.  A broadcast and a gather (a generic that
 * reads a table in its body) read their operands from where they are, which a DMA can do.  The tiles of a scan follow each
 * other, and the result before stays in SBUF.
 *
 * Matmul [tM, tN, tK]:  block_m { A block, transposed, to SBUF; block_n { B block to SBUF; tile_m { tile_n {
 *                         accumulator in PSUM; k { matmul } } } } }
 * or block_n around block_m.  blocks.c chooses the order and the blocks, which hold the whole of K: what is outside is
 * loaded once.  Blocks have one tile if the matmul is fused with another kind of operation.  If even one tile with the
 * whole of K does not fit, every step over K loads its own tiles.
 *
 * A dimension d that is not divisible by its tile t is first split at d - d % t, into whole tiles and one smaller tile.
 * So every slice has a static size.  For a matmul, N is split inside the block of A and K inside the PSUM accumulator,
 * so both parts share the block or the accumulator.
 *
 * Tiles are checked against the loops and against the machine: at most 128 partitions, a matmul at most 128 by 512 by
 * 128 (one PSUM bank of f32).  An error is reported at the location of the knob.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/index.h"
#include "ir/structured.h"
#include "nisa/nisa.h"
#include "passes/knob_driven_tiling/accumulator.h"
#include "passes/lib/blocks.h"
#include "passes/knob_driven_tiling/script.h"
#include "passes/lib/layout.h"
#include "passes/lib/scan.h"

enum { MATMUL_M_MAX = 128, MATMUL_N_MAX = 512, MATMUL_K_MAX = 128 };

struct tiled {
  MlirOperation op, knob; /* knob: the nkipy.tile_op */
  struct structured s;
  int64_t tile[STRUCTURED_LOOPS_MAX];
  int64_t op_id;
  struct multiplied product; /* of a matmul */
  struct blocks blocks;
};

/* ---- what is to be tiled ---------------------------------------------------------------------------- */

static bool is_matmul(const struct tiled *t) {
  return t->s.kind == SK_MATMUL;
}

static MlirOperation user_named(MlirValue v, const char *name) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), name))
      return mlirOpOperandGetOwner(u);
  return (MlirOperation){NULL};
}

static bool is_tileable(const struct structured *s) {
  return structured_is_elementwise(s) || s->kind == SK_REDUCTION || s->kind == SK_TRANSPOSE ||
         s->kind == SK_BROADCAST || s->kind == SK_MATMUL || s->kind == SK_BATCH_MATMUL;
}

/* True if op is a generic whose body reads a tensor at computed indices. */
static bool is_gather(const struct tiled *t) {
  if (!ir_is(t->op, "linalg.generic"))
    return false;
  MlirBlock body = ir_body(t->op);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "tensor.extract"))
      return true;
  return false;
}

/* True if DMA reads the inputs from where they are. */
static bool reads_by_dma(const struct tiled *t) {
  return t->s.kind == SK_BROADCAST || is_gather(t);
}

#define INVALID "Invalid tile configuration: "

/* True if the first operand is [K, M] already. */
static bool is_lhs_transposed(const struct tiled *t) {
  return structured_map_loop(t->s.maps[0], 0) == 2;
}

static enum status check_matmul(struct pass_run *run, const struct tiled *t) {
  static const int64_t most[] = {MATMUL_M_MAX, MATMUL_N_MAX, MATMUL_K_MAX};

  if (structured_map_loop(t->s.maps[1], 0) != 2 || mlirAffineMapGetNumResults(t->s.maps[0]) != 2)
    return pass_fail(run, t->op, "a matmul with a transposed or broadcast operand cannot be tiled");
  for (int k = 0; k < 3; k++) {
    const char name = "MNK"[k];
    if (t->tile[k] > t->s.extents[k])
      return pass_fail(run, t->knob, INVALID "matmul %c tile (%" PRId64 ") is larger than %c dimension (%" PRId64 ")",
                       name, t->tile[k], name, t->s.extents[k]);
    if (t->tile[k] > most[k])
      return pass_fail(run, t->knob,
                       INVALID "matmul %c tile (%" PRId64 ") is larger than the hardware's limit of %" PRId64 "%s",
                       name, t->tile[k], most[k], k == 1 ? " (one PSUM bank)" : "");
  }
  return ST_OK;
}

/* Checks that the leading dimension of each operand in SBUF, which is spread over the partitions, is not too
 * large. */
static enum status check_partitions(struct pass_run *run, const struct tiled *t) {
  if (t->s.kind == SK_TRANSPOSE && t->s.n_loops == 2)
    return ST_OK; /* legalize-layout cuts its tiles into parts of 128 rows and columns */
  for (int o = 0; o < t->s.n_inputs + t->s.n_inits; o++) {
    int64_t dims[STRUCTURED_LOOPS_MAX];
    if (ir_shape(mlirOperationGetOperand(t->op, o), STRUCTURED_LOOPS_MAX, dims) < 1 ||
        mlirAffineMapGetNumResults(t->s.maps[o]) < 1)
      continue;
    if (o < t->s.n_inputs && reads_by_dma(t))
      continue;
    int loop = structured_map_loop(t->s.maps[o], 0);
    if (loop >= 0 && t->tile[loop] > NISA_PARTITIONS)
      return pass_fail(run, t->knob,
                       INVALID "tile entry %d (%" PRId64 ") goes over the partitions, of which there are %d", loop,
                       t->tile[loop], NISA_PARTITIONS);
  }
  return ST_OK;
}

static enum status check(struct pass_run *run, const struct tiled *t, int n_entries) {
  if (t->s.kind == SK_BATCH_MATMUL)
    return pass_fail(run, t->knob, INVALID "a batch_matmul is tiled as a loop of matmuls: run decompose-batch-matmul");
  if (n_entries != t->s.n_loops && is_matmul(t))
    return pass_fail(run, t->knob, INVALID "a matmul needs three entries, [M, N, K], not %d", n_entries);
  if (n_entries != t->s.n_loops)
    return pass_fail(run, t->knob, INVALID "%d entries for an operation with %d loops", n_entries, t->s.n_loops);
  for (int k = 0; k < n_entries; k++) {
    if (t->s.extents[k] < 0)
      return pass_fail(run, t->op, "only operations with static shapes can be tiled");
    if (t->tile[k] < 1)
      return pass_fail(run, t->knob, INVALID "tile entry %d (%" PRId64 ") is not positive", k, t->tile[k]);
  }
  if (is_matmul(t))
    return check_matmul(run, t);
  for (int k = 0; k < n_entries; k++)
    if (t->tile[k] > t->s.extents[k])
      return pass_fail(run, t->knob, INVALID "tile entry %d (%" PRId64 ") is larger than the dimension (%" PRId64 ")",
                       k, t->tile[k], t->s.extents[k]);
  return check_partitions(run, t);
}

static int64_t op_id(MlirOperation op) {
  MlirAttribute a = ir_attr(op, "nkipy.op_id");
  return mlirAttributeIsNull(a) ? -1 : mlirIntegerAttrGetValueInt(a);
}

/* True if an extent is 0: then nothing is computed, so there is nothing to tile. */
static bool is_empty(const struct structured *s) {
  for (int k = 0; k < s->n_loops; k++)
    if (s->extents[k] == 0)
      return true;
  return false;
}

/* Reads the tile of op.  Returns false if op is not to be tiled. */
static bool read_tiled(MlirOperation op, struct tiled *t, int *n_entries) {
  struct scan scan;

  if (!structured_read(op, &t->s) || !is_tileable(&t->s) || is_empty(&t->s))
    return false;
  if (mlirOperationGetNumResults(op) != 1 && (mlirOperationGetNumResults(op) != 2 || !scan_read(op, &scan)))
    return false;
  t->op = op;
  t->op_id = op_id(op);
  t->knob = user_named(mlirOperationGetResult(op, 0), "nkipy.tile_op");
  if (mlirOperationIsNull(t->knob))
    return false;
  MlirAttribute tile = ir_attr(t->knob, "loop_tile_size");
  if (mlirAttributeIsNull(tile) || !mlirAttributeIsADenseI64Array(tile))
    return false;
  *n_entries = (int)mlirDenseArrayGetNumElements(tile); /* check() refuses a number other than that of the loops */
  for (int k = 0; k < *n_entries && k < STRUCTURED_LOOPS_MAX; k++)
    t->tile[k] = mlirDenseI64ArrayGetElement(tile, k);
  return *n_entries > 0;
}

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "linalg.");
}

static bool is_numbered(MlirOperation op, void *user) {
  (void)user;
  return is_linalg(op, NULL) && op_id(op) >= 0;
}

/* The numbered operations, indexed by number. */
struct numbered {
  struct ir_ops ops;
  struct index by_id;
};

static uint32_t hash_id(int64_t id) {
  return (uint32_t)hash_mix(0, (uint64_t)id);
}

static struct numbered find_numbered(struct pass_run *run) {
  struct numbered n = {.ops = ir_collect(run->arena, run->module, is_numbered, NULL), .by_id.arena = run->arena};
  for (int k = 0; k < n.ops.n; k++)
    index_add(&n.by_id, hash_id(op_id(n.ops.v[k])), k);
  return n;
}

/* Checks that only one operation has this name and number, because the script finds operations by them. */
static enum status check_id(struct pass_run *run, const struct tiled *t, const struct numbered *numbered) {
  int same = 0;

  if (t->op_id < 0)
    return pass_fail(run, t->op, "the operation has no nkipy.op_id: run assign-linalg-op-ids");
  for (struct index_probe p = index_probe(&numbered->by_id, hash_id(t->op_id)); index_next(&p);) {
    MlirOperation op = numbered->ops.v[p.entry];
    same += op_id(op) == t->op_id && mlirIdentifierEqual(mlirOperationGetName(op), mlirOperationGetName(t->op));
  }
  return same == 1 ? ST_OK
                   : pass_fail(run, t->op, "nkipy.op_id %" PRId64 " is used more than once: run assign-linalg-op-ids",
                               t->op_id);
}

/* ---- element-wise operations, reductions, transposes ------------------------------------------------ */

/* True if the value is in SBUF or is a part of one that is. */
static bool is_in_sbuf(MlirValue v) {
  for (;;) {
    MlirOperation layout = user_named(v, "nkipy.layout");
    if (!mlirOperationIsNull(layout)) {
      MlirAttribute space = ir_attr(layout, "mem_space");
      if (!mlirAttributeIsNull(space))
        return mlirIntegerAttrGetValueInt(space) == MEM_SBUF;
    }
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) || !ir_is(def, "tensor.extract_slice"))
      return false;
    v = mlirOperationGetOperand(def, 0);
  }
}

/* True if every step reads the same elements of operand o.  Then tiling makes no slice of it that could be promoted:
 * the copy would take the place of the value for all its users, and of its layout.  legalize-layout makes the copy. */
static bool is_same_in_each_step(const struct tiled *t, int o) {
  for (int d = 0; d < mlirAffineMapGetNumResults(t->s.maps[o]); d++)
    if (!mlirAffineExprIsAConstant(mlirAffineMapGetResult(t->s.maps[o], d)))
      return false;
  return true;
}

static bool needs_promotion(const struct tiled *t, int o) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  return !reads_by_dma(t) && mlirTypeIsARankedTensor(mlirValueGetType(v)) && !is_in_sbuf(v) &&
         !is_same_in_each_step(t, o);
}

static void promote_operands(struct script *s, const struct tiled *t, int h) {
  for (int o = 0; o < t->s.n_inputs; o++)
    if (needs_promotion(t, o))
      script_promote(s, h, o, MEM_SBUF);
  script_promote(s, h, t->s.n_inputs, MEM_SBUF);
  if (t->s.n_inits == 2 && !is_in_sbuf(mlirOperationGetResult(t->op, 1))) /* of a scan, the result before */
    script_promote(s, h, t->s.n_inputs + 1, MEM_SBUF);
}

/* Splits h at the first loop, from `dim` on, whose extent the tile does not divide.  Continues with both parts. */
static void tile_parts(struct script *s, const struct tiled *t, int h, int dim, const int64_t *tile) {
  assert(dim >= 0 && dim <= t->s.n_loops);
  while (dim < t->s.n_loops && t->s.extents[dim] % tile[dim] == 0)
    dim++;
  if (dim == t->s.n_loops) {
    promote_operands(s, t, script_tile(s, h, dim, tile));
    return;
  }
  int head, rest;
  int64_t small[STRUCTURED_LOOPS_MAX];
  memcpy(small, tile, sizeof small);
  small[dim] = t->s.extents[dim] % tile[dim];
  script_split(s, h, t->s.extents[dim] - small[dim], dim, &head, &rest);
  tile_parts(s, t, head, dim + 1, tile);
  tile_parts(s, t, rest, dim + 1, small);
}

/* ---- matmul ----------------------------------------------------------------------------------------- */

/* The size of a block of `most` tiles; of the remainder of a split, which has fewer, all of it. */
static int64_t block_of(int64_t extent, int64_t tile, int64_t most) {
  const int64_t size = tile * (most ? most : 1);
  return size < extent ? size : extent;
}

static int64_t element_bytes(MlirValue v) {
  MlirType t = mlirShapedTypeGetElementType(mlirValueGetType(v));
  const unsigned bits = mlirTypeIsAInteger(t) ? mlirIntegerTypeGetWidth(t) : mlirFloatTypeGetWidth(t);
  return (bits + 7) / 8;
}

/* True if the matmul is to be fused with another kind of operation, whose loops go over single tiles. */
static bool is_fused_with_others(const struct tiled *t) {
  MlirValue v = mlirOperationGetResult(t->op, 0);

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation fuse = mlirOpOperandGetOwner(u);
    for (intptr_t k = 0; ir_is(fuse, "nkipy.fuse_op") && k < mlirOperationGetNumOperands(fuse); k++) {
      MlirOperation def = ir_defining_op(mlirOperationGetOperand(fuse, k));
      struct structured s;
      if (!mlirOperationIsNull(def) && structured_read(def, &s) && s.kind != SK_MATMUL)
        return true;
    }
  }
  return false;
}

static struct multiplied read_factors(struct pass_run *run, const struct tiled *t) {
  struct multiplied p = {.sbuf = nisa_machine(run->target)->sbuf_bytes};
  for (int loop = 0; loop < 2; loop++) {
    MlirValue v = mlirOperationGetOperand(t->op, loop);
    p.factor[loop] = (struct factor){element_bytes(v), is_in_sbuf(v), loop == 0 && !is_lhs_transposed(t)};
  }
  memcpy(p.extent, t->s.extents, sizeof p.extent);
  memcpy(p.tile, t->tile, sizeof p.tile);
  return p;
}

/* All products of a sum have the same blocks, so that their loops are the same. */
static void choose_blocks(struct pass_run *run, struct tiled *t) {
  MlirOperation first = t->op;
  struct multiplied *last = NULL, sum;
  bool is_fused = is_fused_with_others(t);

  t->product = read_factors(run, t);
  for (MlirOperation op = first; !mlirOperationIsNull(op); op = accumulator_before(op))
    first = op;
  for (MlirOperation op = first; !mlirOperationIsNull(op); op = accumulator_after(op)) {
    struct tiled other;
    int n;
    if (!read_tiled(op, &other, &n))
      break;
    struct multiplied *p = last ? arena_new(run->arena, struct multiplied) : &sum;
    *p = read_factors(run, &other);
    if (last)
      last->next = p;
    last = p;
    is_fused |= is_fused_with_others(&other);
  }
  t->blocks = blocks_choose(last ? &sum : &t->product);
  if (t->blocks.m && is_fused)
    t->blocks = (struct blocks){1, 1, false};
}

typedef void (*emit_part)(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile);

/* Calls emit for the whole tiles of a loop and for the remainder. */
static void each_part(struct script *s, const struct tiled *t, int h, int loop, emit_part emit) {
  const int64_t extent = t->s.extents[loop], tile = t->tile[loop], over = extent % tile;
  int head, rest;

  if (!over) {
    emit(s, t, h, extent, tile);
    return;
  }
  script_split(s, h, extent - over, loop, &head, &rest);
  emit(s, t, head, extent - over, tile);
  emit(s, t, rest, over, over);
}

/* Transposes the left operand, as the tensor engine requires, and copies it to SBUF. */
static int promote_lhs(struct script *s, const struct tiled *t, int h) {
  if (is_lhs_transposed(t)) {
    if (!is_in_sbuf(mlirOperationGetOperand(t->op, 0)))
      script_promote(s, h, 0, MEM_SBUF);
    return h;
  }
  h = script_transpose_lhs(s, h);
  script_annotate(s, h, "nkipy.op_id", t->op_id); /* transposing makes a new operation */
  script_promote(s, script_producer(s, h, 0), 1, MEM_SBUF);
  return h;
}

static void promote_rhs(struct script *s, const struct tiled *t, int h) {
  if (!is_in_sbuf(mlirOperationGetOperand(t->op, 1)))
    script_promote(s, h, 1, MEM_SBUF);
}

static void emit_k(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  (void)extent;
  h = script_tile(s, h, 3, (int64_t[]){0, 0, tile});
  if (!t->blocks.m)
    promote_rhs(s, t, promote_lhs(s, t, h));
}

/* Passes the tile of the loop outside, which is smaller in the remainder of a split, to the loop inside. */
struct outer_part {
  struct tiled t; /* first: the functions for the loop inside get a pointer to it */
  int64_t tile;
};

/* What is in both loops over blocks. */
static void emit_tiles(struct script *s, const struct tiled *t, int h, int64_t tile_m, int64_t tile_n) {
  h = script_tile(s, h, 3, (int64_t[]){tile_m, 0, 0});
  h = script_tile(s, h, 3, (int64_t[]){0, tile_n, 0});
  script_promote(s, h, 2, MEM_PSUM);
  each_part(s, t, h, 2, emit_k);
}

static int open_m(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  h = script_tile(s, h, 3, (int64_t[]){block_of(extent, tile, t->blocks.m), 0, 0});
  return t->blocks.m ? promote_lhs(s, t, h) : h;
}

static int open_n(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  h = script_tile(s, h, 3, (int64_t[]){0, block_of(extent, tile, t->blocks.n), 0});
  if (t->blocks.n)
    promote_rhs(s, t, h);
  return h;
}

static void emit_n_inside(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  emit_tiles(s, t, open_n(s, t, h, extent, tile), ((const struct outer_part *)t)->tile, tile);
}

static void emit_m_inside(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  emit_tiles(s, t, open_m(s, t, h, extent, tile), tile, ((const struct outer_part *)t)->tile);
}

static void emit_m(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  const struct outer_part m = {.t = *t, .tile = tile};
  each_part(s, &m.t, open_m(s, t, h, extent, tile), 1, emit_n_inside);
}

static void emit_n(struct script *s, const struct tiled *t, int h, int64_t extent, int64_t tile) {
  const struct outer_part n = {.t = *t, .tile = tile};
  each_part(s, &n.t, open_n(s, t, h, extent, tile), 0, emit_m_inside);
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static const char *bytes_text(struct pass_run *run, int64_t n) {
  return arena_printf(run->arena, "%" PRId64 " bytes loaded", n);
}

static void remark_blocks(struct pass_run *run, const struct tiled *t) {
  const struct multiplied *p = &t->product;
  const struct blocks one = {1, 1, false}, *b = t->blocks.m ? &t->blocks : &one;
  struct remark *r =
      t->blocks.m
          ? pass_remark(run, t->op, RULE_MATMUL_BLOCKS,
                        "blocks of %" PRId64 "x%" PRId64 " tiles in SBUF, %s outside: %" PRId64 " bytes are loaded",
                        b->m, b->n, b->n_outside ? "columns" : "rows", blocks_traffic(p, b))
          : pass_remark(run, t->op, RULE_MATMUL_BLOCKS, "no blocks: each step over K loads its own tiles");

  remark_limit(r, "SBUF for blocks", "bytes per partition", blocks_bytes(p, b), p->sbuf);
  const int64_t all_m = p->extent[0] / p->tile[0], all_n = p->extent[1] / p->tile[1];
  const struct blocks all = {all_m, all_n, false};
  const struct blocks turned = {b->m, b->n, !b->n_outside};
  remark_cost(r, "%s", bytes_text(run, blocks_traffic(p, b)));
  if (b->m < all_m && b->n < all_n)
    remark_reject_for(
        r, arena_printf(run->arena, "%" PRId64 "x%" PRId64, all_m, all_n), NULL,
        bytes_text(run, blocks_traffic(p, &all)),
        is_fused_with_others(t) && t->blocks.m
            ? "the product is fused with an operation whose loops go over single tiles"
            : arena_printf(run->arena, "they would take %" PRId64 " bytes of each partition", blocks_bytes(p, &all)));
  else if (b->m > 1 || b->n > 1)
    remark_reject_for(r, "1x1", NULL, bytes_text(run, blocks_traffic(p, &one)), "it would load more, or more often");
  else
    remark_reject_for(r, b->n_outside ? "rows outside" : "columns outside", NULL,
                      bytes_text(run, blocks_traffic(p, &turned)), "it loads no less");
}

static void remark_matmul(struct pass_run *run, const struct tiled *t) {
  struct remark *r = pass_remark(run, t->op, RULE_PSUM_SUM, "accumulates in PSUM");
  remark_limit(r, "PSUM bank", "bytes per partition", t->tile[1] * 4, nisa_machine(run->target)->psum_bank_bytes);
  remark_reject(r, "a sum in SBUF", "the tensor engine writes to PSUM only");
  if (!is_lhs_transposed(t)) {
    r = pass_remark(run, t->op, RULE_TRANSPOSE_LEFT,
                    "the left input is transposed: the tensor engine wants its rows across the partitions");
    remark_reject(r, "no transpose", "the operand is [M, K], and K must lie across the partitions");
  }
  remark_blocks(run, t);
}

/* Writes remarks such as "TILE=[128,512,128], 2x1x4 of them", and the number of operands that are copied to SBUF. */
static void remark_tile(struct pass_run *run, const struct tiled *t) {
  const char *count = "";
  for (int l = 0; l < t->s.n_loops; l++)
    count =
        arena_printf(run->arena, "%s%s%" PRId64, count, l ? "x" : "", (t->s.extents[l] + t->tile[l] - 1) / t->tile[l]);
  struct remark *r =
      pass_remark(run, t->op, RULE_TILES, "TILE=%s, %s of them", layout_ints(run->arena, t->s.n_loops, t->tile), count);
  const int rows = structured_map_loop(t->s.maps[t->s.n_inputs], 0);
  if (rows >= 0)
    remark_limit(r, "partitions", "partitions", t->tile[rows] < NISA_PARTITIONS ? t->tile[rows] : NISA_PARTITIONS,
                 NISA_PARTITIONS);
  if (is_matmul(t))
    remark_limit(r, "PSUM bank", "f32 columns of the product", t->tile[1], NISA_BANK_F32);
  const bool turns_lhs = is_matmul(t) && !is_lhs_transposed(t);
  int promoted = 0;
  for (int o = 0; o < t->s.n_inputs; o++)
    promoted += (turns_lhs && o == 0) || needs_promotion(t, o);
  if (promoted) {
    r = pass_remark(run, t->op, RULE_PROMOTE, "promoted %d input%s to SBUF%s", promoted, promoted == 1 ? "" : "s",
                    is_matmul(t) && t->blocks.m ? ", in blocks that serve several tiles" : "");
    remark_reject(r, "reading HBM", "only DMA reaches it");
  }
  if (is_matmul(t))
    remark_matmul(run, t);
}

static void emit(struct script *s, const struct tiled *t) {
  s->at = mlirOperationGetLocation(t->op);
  int h = script_match(s, mlirIdentifierStr(mlirOperationGetName(t->op)).data, t->op_id);
  if (is_matmul(t))
    each_part(s, t, h, t->blocks.n_outside, t->blocks.n_outside ? emit_n : emit_m);
  else
    tile_parts(s, t, h, 0, t->tile);
  remark_tile(s->run, t);
}

/* Makes accumulators start from zero before tiling: this adds operations, which are tiled like the others. */
static void start_from_zero(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_linalg, NULL);
  int64_t next_id = 0;

  for (int k = 0; k < ops.n; k++)
    next_id = op_id(ops.v[k]) >= next_id ? op_id(ops.v[k]) + 1 : next_id;
  for (int k = 0; k < ops.n; k++) {
    struct tiled t;
    int n;
    pass_step(run, ops.v[k], "start-from-zero");
    if (read_tiled(ops.v[k], &t, &n) && is_matmul(&t) && n == 3)
      accumulator_start_from_zero(run, t.op, &next_id);
  }
}

static enum status write_script(struct pass_run *run, struct script *s, int *n_tiled) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_linalg, NULL);
  const struct numbered numbered = find_numbered(run);

  *n_tiled = 0;
  for (int k = 0; k < ops.n; k++) {
    struct tiled t;
    int n;
    if (!read_tiled(ops.v[k], &t, &n))
      continue;
    pass_step(run, ops.v[k], "write-script");
    enum status st = check(run, &t, n);
    if (!st)
      st = check_id(run, &t, &numbered);
    if (st)
      return st;
    if (is_matmul(&t))
      choose_blocks(run, &t);
    emit(s, &t);
    (*n_tiled)++;
    st = script_show(s);
    if (st)
      return st;
  }
  return ST_OK;
}

static enum status run_pass(struct pass_run *run) {
  struct script s;
  int n_tiled;

  start_from_zero(run);
  script_init(&s, run);
  enum status st = write_script(run, &s, &n_tiled);
  /* if there are annotations but no operation can be tiled, there is no script */
  if (!st && (n_tiled || !ir_collect_named(run->arena, run->module, "nkipy.tile_op").n))
    st = script_finish(&s);
  script_clear(&s);
  return st;
}

const struct pass_def knob_driven_tiling = {
    .name = "knob-driven-tiling",
    .run = run_pass,
};
