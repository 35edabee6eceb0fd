/* rewrite: operations on physical buffers.  See legalize_layout.c.
 *
 * An operation is cut along its loops so that no part crosses a border between blocks of any operand: a nest of
 * scf.for over the whole parts and, behind each loop, the rest.  In there it gets views of single tiles, without the
 * dimensions in which the part has extent 1 as far as two stay (the partitions first).
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/range.h"
#include "passes/lib/edit.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"

/* ---- reading --------------------------------------------------------------------------------------------------- */

static bool read_copy(MlirOperation op, struct tiled_op *t) {
  t->is_copy = true;
  t->kind = SK_UNARY;
  t->n_operands = 2;
  t->n_inputs = 1;
  t->n_loops = ir_shape(mlirOperationGetOperand(op, 1), LEGAL_RANK_MAX, t->extents);
  if (t->n_loops < 0 || t->n_loops > LEGAL_RANK_MAX)
    return false;
  for (int o = 0; o < 2; o++) {
    t->operand_rank[o] = t->n_loops;
    for (int d = 0; d < t->n_loops; d++)
      t->loop[o][d] = d;
  }
  return true;
}

bool tiled_read(MlirOperation op, struct tiled_op *t) {
  struct structured s;

  *t = (struct tiled_op){.op = op};
  if (ir_is(op, "memref.copy"))
    return read_copy(op, t);
  if (!structured_read(op, &s) || s.n_loops > LEGAL_RANK_MAX || s.n_inits != 1)
    return false;
  t->kind = s.kind;
  t->n_inputs = s.n_inputs;
  t->n_operands = s.n_inputs + s.n_inits;
  t->n_loops = s.n_loops;
  for (int l = 0; l < s.n_loops; l++) {
    t->reduction[l] = s.reduction[l];
    t->extents[l] = s.extents[l];
  }
  for (int o = 0; o < t->n_operands; o++) {
    if (!mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, o))))
      continue; /* a scalar: rank 0 */
    t->operand_rank[o] = (int)mlirAffineMapGetNumResults(s.maps[o]);
    if (t->operand_rank[o] > LEGAL_RANK_MAX)
      return false;
    for (int d = 0; d < t->operand_rank[o]; d++) {
      MlirAffineExpr x = mlirAffineMapGetResult(s.maps[o], d);
      t->loop[o][d] = structured_map_loop(s.maps[o], d);
      if (t->loop[o][d] < 0 && (!mlirAffineExprIsAConstant(x) || mlirAffineConstantExprGetValue(x) != 0))
        return false;
    }
  }
  return true;
}

/* ---- one part -------------------------------------------------------------------------------------------------- */

/* Where a part of an operation lies in its loops: loop l from iv[l] * cut[l] + offset[l] on, size[l] long. */
struct part {
  MlirValue iv[LEGAL_RANK_MAX];
  int64_t offset[LEGAL_RANK_MAX], size[LEGAL_RANK_MAX];
};

struct rewrite {
  struct legalize *g;
  struct tiled_op t;
  struct access access[STRUCTURED_OPERANDS_MAX];
  const struct physical *physical[STRUCTURED_OPERANDS_MAX]; /* NULL: the operand is sliced as it is */
  int64_t cut[LEGAL_RANK_MAX];
  int partition; /* loop over the partitions, -1 if none */
  bool whole;    /* one part */
};

static MlirValue materialize(struct ir_builder *b, const struct linear *l, int64_t divisor) {
  MlirValue sum = {NULL};

  for (int k = 0; k < l->n; k++) {
    if (l->term[k].factor == 0)
      continue;
    MlirValue v = memrefs_times(b, l->term[k].v, l->term[k].factor / divisor);
    sum = mlirValueIsNull(sum) ? v : ir_binary(b, "arith.addi", sum, v);
  }
  if (mlirValueIsNull(sum))
    return ir_index(b, l->constant / divisor);
  return memrefs_plus(b, sum, l->constant / divisor);
}

static bool factors_divide(const struct linear *l, int64_t by) {
  for (int k = 0; k < l->n; k++)
    if (l->term[k].factor % by)
      return false;
  return l->constant % by == 0;
}

/* An index: v, or the constant where v is null. */
struct place {
  int64_t constant;
  MlirValue v;
};

/* Splits an offset into the block and the place in it. */
static void locate(struct ir_builder *b, const struct linear *at, int64_t tile, struct place *block,
                   struct place *inner) {
  *block = *inner = (struct place){0};
  if (linear_is_constant(at)) {
    block->constant = at->constant / tile;
    inner->constant = at->constant % tile;
  } else if (factors_divide(at, tile)) {
    block->v = materialize(b, at, tile);
  } else {
    int64_t g = nisa_gcd(tile, at->constant); /* what divides everything need not be divided and multiplied again */
    for (int k = 0; k < at->n; k++)
      g = nisa_gcd(g, at->term[k].factor);
    MlirValue v = materialize(b, at, g), t = ir_index(b, tile / g);
    block->v = ir_binary(b, "arith.divui", v, t);
    if (linear_granule(at) % tile)
      inner->v = memrefs_times(b, ir_binary(b, "arith.remui", v, t), g);
  }
}

/* The offset and size of a part in one dimension of an operand. */
static int64_t part_of_loop(const struct rewrite *r, const struct part *p, int l, struct linear *at, int64_t whole) {
  if (l < 0)
    return whole;
  at->constant += p->offset[l];
  if (!mlirValueIsNull(p->iv[l]))
    linear_add(at, p->iv[l], r->cut[l]);
  return p->size[l];
}

/* Which of the operand's dimensions are left out when the loops not in `keep` are. */
static void dropped_dims(const struct rewrite *r, int o, const bool *keep, bool *drop) {
  const struct tiled_op *t = &r->t;
  for (int d = 0; d < t->operand_rank[o]; d++) {
    int l = t->loop[o][d];
    if (l < 0 && t->operand_rank[o] == t->n_loops)
      l = d;
    drop[d] = l >= 0 && !keep[l];
  }
}

/* The tile of a physical buffer that one part of the operation touches, by dimension of the logical buffer. */
struct tile_part {
  const struct physical *buffer;
  int64_t size[LEGAL_RANK_MAX];
  struct place block[LEGAL_RANK_MAX], inner[LEGAL_RANK_MAX]; /* which block, and the offset in it */
  int order[LEGAL_RANK_MAX], n_order; /* dimensions that the tile has: the partitions, then the free ones */
};

static void find_tile(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p, struct tile_part *t) {
  const struct access *a = &r->access[o];
  const struct physical *buffer = r->physical[o];
  struct linear at[LEGAL_RANK_MAX];

  *t = (struct tile_part){.buffer = buffer};
  for (int d = 0; d < buffer->rank; d++) {
    at[d] = a->at[d];
    t->size[d] = a->size[d];
  }
  for (int k = 0; k < a->view_rank; k++)
    if (a->dim[k] >= 0)
      t->size[a->dim[k]] = part_of_loop(r, p, r->t.loop[o][k], &at[a->dim[k]], a->size[a->dim[k]]);
  for (int d = 0; d < buffer->rank; d++)
    locate(b, &at[d], buffer->tile[d], &t->block[d], &t->inner[d]);
  t->order[t->n_order++] = buffer->partition;
  for (int k = 0; k < buffer->n_free; k++)
    t->order[t->n_order++] = buffer->free[k];
}

/* The tile as a subview of the physical buffer, in all dimensions of that buffer; *rank: how many. */
static MlirValue slice_tile(struct ir_builder *b, const struct tile_part *t, int *rank) {
  const struct physical *buffer = t->buffer;
  int64_t offsets[2 * LEGAL_RANK_MAX + 1], sizes[2 * LEGAL_RANK_MAX + 1];
  MlirValue values[2 * LEGAL_RANK_MAX + 1];
  bool is_whole = !buffer->is_blocked;
  int n = 0;

  for (int k = 0; k < t->n_order; k++) {
    const int d = t->order[k];
    offsets[n] = t->inner[d].constant;
    values[n] = t->inner[d].v;
    sizes[n++] = t->size[d];
    is_whole &= t->size[d] == buffer->tile[d];
    for (int x = 0; k == 0 && buffer->is_blocked && x < buffer->rank; x++) { /* after the partitions */
      offsets[n] = t->block[x].constant;
      values[n] = t->block[x].v;
      sizes[n++] = 1;
    }
  }
  assert(n == mlirShapedTypeGetRank(mlirValueGetType(buffer->physical)));
  *rank = n;
  if (is_whole)
    return buffer->physical;
  return memrefs_subview(b, buffer->physical, &(struct memrefs_part){.offset = offsets, .size = sizes, .at = values});
}

/* How to reshape a sliced tile into the dimensions that an operation wants: the slice's dimensions collapse into
 * groups, one for each wanted dimension that the tile has, and expand by wanted dimensions that it does not have
 * (extent 1). */
struct tile_shape {
  int n_groups, end[LEGAL_RANK_MAX]; /* first dimension of the slice after group g */
  int n, fine[LEGAL_RANK_MAX];       /* wanted dimensions; the first one after group g */
  int64_t extents[LEGAL_RANK_MAX];   /* of the wanted dimensions */
  bool expands;
};

static void add_unit(struct tile_shape *s) {
  s->extents[s->n++] = 1;
  s->expands = true;
}

/* True if the tile has dimension d at position k of its order or later. */
static bool comes_later(const struct tile_part *t, int k, int d) {
  for (; k < t->n_order; k++)
    if (t->order[k] == d)
      return true;
  return false;
}

/* wanted: dimensions of the buffer, -1 for one of extent 1.  Those that are not wanted have extent 1 and join the group
 * before them; at the beginning, the group after them. */
static void plan_shape(const struct tile_part *t, int n_wanted, const int *wanted, struct tile_shape *s) {
  int place = t->buffer->is_blocked ? 1 + t->buffer->rank : 1, w = 0;

  *s = (struct tile_shape){0};
  for (int k = 0; k < t->n_order; k++, place++) {
    const int d = t->order[k];
    for (; w < n_wanted && wanted[w] != d && !comes_later(t, k, wanted[w]); w++)
      add_unit(s);
    if (w < n_wanted && wanted[w] == d) {
      s->extents[s->n++] = t->size[d];
      s->end[s->n_groups] = place;
      s->fine[s->n_groups++] = s->n;
      w++;
    } else if (s->n_groups) {
      s->end[s->n_groups - 1] = place;
    }
  }
  for (; w < n_wanted; w++)
    add_unit(s);
  if (s->n_groups)
    s->fine[s->n_groups - 1] = s->n;
}

/* The tile of a physical buffer that a part of the operation touches, with the dimensions that are not dropped. */
static MlirValue view_physical(struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *drop) {
  const struct access *a = &r->access[o];
  int wanted[LEGAL_RANK_MAX], n_wanted = 0, rank;
  struct tile_part tile;
  struct tile_shape s;

  find_tile(r, b, o, p, &tile);
  MlirValue v = slice_tile(b, &tile, &rank);
  for (int k = 0; k < a->view_rank; k++)
    if (!drop[k])
      wanted[n_wanted++] = a->dim[k];
  plan_shape(&tile, n_wanted, wanted, &s);
  assert(s.n == n_wanted);
  if (s.n_groups != rank || (s.n_groups && s.end[s.n_groups - 1] != rank))
    v = memrefs_collapse(b, v, s.n_groups, s.end);
  return s.expands ? memrefs_expand(b, v, s.fine, s.n, s.extents) : v;
}

/* The same slice, of the buffer itself if the operand is a subview; null if the operand is no such thing. */
static MlirValue view_root(struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *drop) {
  MlirValue v = mlirOperationGetOperand(r->t.op, o);
  int64_t offsets[LEGAL_RANK_MAX], sizes[LEGAL_RANK_MAX];
  MlirValue values[LEGAL_RANK_MAX];
  bool gone[LEGAL_RANK_MAX];
  MlirOperation def = ir_defining_op(v);
  struct access a;

  if (mlirOperationIsNull(def) || !ir_is(def, "memref.subview") || !access_read(v, &a))
    return (MlirValue){NULL};
  for (int k = 0; k < a.view_rank; k++)
    if (a.dim[k] < 0 || (k && a.dim[k] <= a.dim[k - 1]))
      return (MlirValue){NULL};
  for (int d = 0; d < a.rank; d++)
    gone[d] = true;
  for (int k = 0; k < a.view_rank; k++) {
    gone[a.dim[k]] = drop[k];
    a.size[a.dim[k]] = part_of_loop(r, p, r->t.loop[o][k], &a.at[a.dim[k]], a.size[a.dim[k]]);
  }
  for (int d = 0; d < a.rank; d++) {
    sizes[d] = a.size[d];
    offsets[d] = a.at[d].constant;
    values[d] = linear_is_constant(&a.at[d]) ? (MlirValue){NULL} : materialize(b, &a.at[d], 1);
  }
  return memrefs_subview(b, a.root,
                         &(struct memrefs_part){.offset = offsets, .size = sizes, .at = values, .drop = gone});
}

/* A slice of an operand that is no physical buffer. */
static MlirValue view_plain(struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *drop) {
  MlirValue v = mlirOperationGetOperand(r->t.op, o);
  int64_t dims[LEGAL_RANK_MAX], offsets[LEGAL_RANK_MAX], sizes[LEGAL_RANK_MAX];
  MlirValue values[LEGAL_RANK_MAX];
  bool changes = false;

  if (!mlirTypeIsAMemRef(mlirValueGetType(v)))
    return v;
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);
  for (int d = 0; d < rank; d++) {
    struct linear at = {0};
    sizes[d] = part_of_loop(r, p, r->t.loop[o][d], &at, dims[d]);
    changes |= drop[d] || sizes[d] != dims[d];
  }
  if (!changes)
    return v;
  MlirValue direct = view_root(r, b, o, p, drop);
  if (!mlirValueIsNull(direct))
    return direct;
  for (int d = 0; d < rank; d++) {
    struct linear at = {0};
    part_of_loop(r, p, r->t.loop[o][d], &at, dims[d]);
    offsets[d] = at.constant;
    values[d] = linear_is_constant(&at) ? (MlirValue){NULL} : materialize(b, &at, 1);
  }
  return memrefs_subview(b, v, &(struct memrefs_part){.offset = offsets, .size = sizes, .at = values, .drop = drop});
}

/* Loops of extent 1 go while two are left; the loop over the partitions and the last reduction stay. */
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

/* linalg.index counts the loops of the part: those that go have one value, and all begin where the part does. */
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
    struct ir_builder in = *b;
    in.block = mlirOperationGetBlock(ops.v[k]);
    in.before = mlirOperationGetNextInBlock(ops.v[k]);
    const bool is_first = mlirValueIsNull(p->iv[l]) && p->offset[l] == 0;
    MlirValue from = {NULL};
    if (!keep[l] || !is_first)
      from = mlirValueIsNull(p->iv[l]) ? ir_index(b, p->offset[l])
                                       : memrefs_plus(b, memrefs_times(b, p->iv[l], r->cut[l]), p->offset[l]);
    if (!keep[l]) {
      mlirValueReplaceAllUsesOfWith(old, from);
      mlirOperationDestroy(ops.v[k]);
      continue;
    }
    MlirAttribute dim = ir_i64_attr(b, number[l]);
    ir_set_attr(ops.v[k], "dim", dim);
    if (is_first)
      continue;
    MlirValue now = ir_binary(&in, "arith.addi", old, from);
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
    dropped_dims(r, o, keep, drop);
    for (int d = 0; d < t->operand_rank[o]; d++)
      if (!drop[d])
        results[m++] = t->loop[o][d] < 0 ? IR_CONST(0) : number[t->loop[o][d]];
    maps[o] = mlirAffineMapAttrGet(ir_map(b, n, m, results));
  }
  ir_set_attr(op, "indexing_maps", mlirArrayAttrGet(b->ctx, t->n_operands, maps));
  ir_set_attr(op, "iterator_types", mlirArrayAttrGet(b->ctx, n, iterators));
}

/* A transpose or broadcast of what is kept; false if that moves nothing and a copy will do. */
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
    int place[LEGAL_RANK_MAX];
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

/* memref.copy of one dimension goes between two: a column or a row, as the buffer on the chip is. */
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
  bool keep[LEGAL_RANK_MAX], drop[LEGAL_RANK_MAX];
  struct tiled_op *t = &r->t;
  const int n = kept_loops(r, p, keep);

  for (int o = 0; o < t->n_operands; o++) {
    dropped_dims(r, o, keep, drop);
    operands[o] = r->physical[o] ? view_physical(r, b, o, p, drop) : view_plain(r, b, o, p, drop);
  }
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

/* Loops l and on: over the whole parts, then the rest. */
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

/* A fill of a whole buffer is one instruction: partitions by everything else. */
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

/* A gather reads at computed places, by DMA: its indices may lie in any way. */
static bool is_gather(MlirOperation op) {
  MlirBlock body = mlirOperationGetNumRegions(op) ? ir_body(op) : (MlirBlock){NULL};
  MlirOperation x = mlirBlockIsNull(body) ? (MlirOperation){NULL} : mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(x) && !ir_is(x, "memref.load"))
    x = mlirOperationGetNextInBlock(x);
  return !mlirOperationIsNull(x);
}

bool tiled_is_movement(const struct tiled_op *t) {
  return t->is_copy || is_gather(t->op) || t->kind == SK_TRANSPOSE || t->kind == SK_BROADCAST || t->kind == SK_MATMUL ||
         ir_is(t->op, "linalg.copy");
}

int legal_partition_loop(const struct legalize *g, const struct tiled_op *t, int o) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  struct access a;

  if (!memrefs_is_on_chip(v) || t->operand_rank[o] == 0)
    return -2;
  if (!access_read(v, &a))
    return t->loop[o][0];
  const struct physical *b = legal_find(g, a.root);
  for (int k = 0; k < a.view_rank; k++)
    if (a.dim[k] == (b ? b->partition : 0))
      return t->loop[o][k];
  return -1;
}

/* Finds the loop over the partitions: the result's, or that of the last operand that has one.  Other operands may lie
 * along another one (what legal_align could not copy, indices of a gather): NISA's instructions get a copy by DMA. */
static void find_partition(struct rewrite *r) {
  r->partition = -1;
  for (int o = r->t.n_operands - 1; o >= 0 && r->partition < 0; o--) {
    const int l = legal_partition_loop(r->g, &r->t, o);
    r->partition = l == -2 ? -1 : l;
  }
}

static void find_cuts(struct rewrite *r) {
  struct tiled_op *t = &r->t;

  r->whole = true;
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
  for (int l = 0; l < t->n_loops; l++)
    r->whole &= r->cut[l] >= t->extents[l];
}

void legal_rewrite(struct legalize *g, MlirOperation op) {
  struct rewrite r = {.g = g};
  bool changes = false;
  struct part p;

  if (!tiled_read(op, &r.t))
    return;
  for (int o = 0; o < r.t.n_operands; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    if (!mlirTypeIsAMemRef(mlirValueGetType(v)) || !access_read(v, &r.access[o]))
      continue;
    r.physical[o] = legal_find(g, r.access[o].root);
    changes |= r.physical[o] != NULL;
  }
  if (!changes || fill_whole(&r))
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
