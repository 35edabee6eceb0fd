/* views: builds the operands of one part of an operation.  See rewrite.c.
 *
 *     part (i, j) of %b, tiles 128x128     ==>     subview %b[0, %i, %j, 0] [128, 1, 1, 128], collapsed to 128x128
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/range.h"
#include "passes/legalize_layout/rewrite.h"
#include "passes/lib/buffers.h"
#include "passes/lib/memrefs.h"

/* ---- offsets --------------------------------------------------------------------------------------------------- */

/* Builds the value l / divisor; divisor divides all terms. */
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

/* An index: v, or the constant if v is null. */
struct place {
  int64_t constant;
  MlirValue v;
};

/* Divides the offset into terms that are multiples of the tile and the others.  True if the others stay below the tile: then
 * they are the offset in the block, and nothing has to be divided. */
static bool stays_in_block(const struct linear *at, int64_t tile, struct linear *outer, struct linear *inner) {
  int64_t most = at->constant;

  *outer = (struct linear){0};
  *inner = (struct linear){.constant = at->constant};
  for (int k = 0; k < at->n; k++) {
    struct linear *to = at->term[k].factor % tile ? inner : outer;
    int64_t lo, hi;
    to->term[to->n++] = at->term[k];
    if (to == outer)
      continue;
    if (at->term[k].factor < 0 || !buffer_index_range(at->term[k].v, &lo, &hi) || lo < 0 || hi >= tile)
      return false;
    most += hi * at->term[k].factor;
  }
  return at->constant >= 0 && most < tile;
}

/* Splits an offset into the number of the block and the offset in it. */
static void locate(struct ir_builder *b, const struct linear *at, int64_t tile, struct place *block,
                   struct place *inner) {
  struct linear outer, rest;

  *block = *inner = (struct place){0};
  if (linear_is_constant(at)) {
    block->constant = at->constant / tile;
    inner->constant = at->constant % tile;
  } else if (factors_divide(at, tile)) {
    block->v = materialize(b, at, tile);
  } else if (stays_in_block(at, tile, &outer, &rest)) {
    block->v = materialize(b, &outer, tile);
    inner->v = materialize(b, &rest, 1);
  } else {
    int64_t g = nisa_gcd(tile, at->constant); /* the division leaves out the common divisor of all terms */
    for (int k = 0; k < at->n; k++)
      g = nisa_gcd(g, at->term[k].factor);
    MlirValue v = materialize(b, at, g), t = ir_index(b, tile / g);
    block->v = ir_binary(b, "arith.divui", v, t);
    if (linear_granule(at) % tile)
      inner->v = memrefs_times(b, ir_binary(b, "arith.remui", v, t), g);
  }
}

/* Adds the offset of the part in loop l to `at`, and returns the size of the part.  A dimension without a loop is
 * whole. */
static int64_t part_of_loop(const struct rewrite *r, const struct part *p, int l, struct linear *at, int64_t whole) {
  if (l < 0)
    return whole;
  at->constant += p->offset[l];
  if (!mlirValueIsNull(p->iv[l]))
    linear_add_new(at, p->iv[l], r->cut[l]);
  return p->size[l];
}

void legal_dropped_dims(const struct rewrite *r, int o, const bool *keep, bool *drop) {
  const struct tiled_op *t = &r->t;
  for (int d = 0; d < t->operand_rank[o]; d++) {
    int l = t->loop[o][d];
    if (l < 0 && t->operand_rank[o] == t->n_loops)
      l = d;
    drop[d] = l >= 0 && !keep[l];
  }
}

/* ---- physical buffers ------------------------------------------------------------------------------------------ */

/* The tile of a physical buffer that one part of the operation uses; the arrays are indexed by dimension of the
 * logical buffer. */
struct tile_part {
  const struct physical *buffer;
  int64_t size[LEGAL_RANK_MAX];
  struct place block[LEGAL_RANK_MAX], inner[LEGAL_RANK_MAX]; /* number of the block and offset in it */
  int order[LEGAL_RANK_MAX], n_order; /* dimensions of the tile: the partitions, then the free ones */
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

/* Builds the tile as a subview of the physical buffer, in all dimensions of that buffer.  *rank is their number. */
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
    for (int x = 0; k == 0 && buffer->is_blocked && x < buffer->rank; x++) { /* blocks come after the partitions */
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

/* Describes how to reshape a sliced tile to the dimensions that an operation wants.  The slice's dimensions collapse
 * into groups, one for each wanted dimension that the tile has; then the groups expand by the wanted dimensions that
 * the tile does not have (extent 1). */
struct tile_shape {
  int n_groups, end[LEGAL_RANK_MAX]; /* first dimension of the slice after group g */
  int n, fine[LEGAL_RANK_MAX];       /* number of wanted dimensions; the first one after group g */
  int64_t extents[LEGAL_RANK_MAX];   /* extents of the wanted dimensions */
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

/* Plans the shape.  wanted holds dimensions of the buffer, or -1 for a dimension of extent 1.  Dimensions that are
 * not wanted have extent 1 and join the group before them or, at the beginning, the group after them. */
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

/* Builds the part of an operand whose buffer gets a physical form: a view of one tile. */
static MlirValue view_physical(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p,
                               const bool *drop) {
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

/* ---- other buffers --------------------------------------------------------------------------------------------- */

/* Builds the same slice as view_plain directly from the buffer if the operand is a subview of it.  Otherwise returns
 * null. */
static MlirValue view_root(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p,
                           const bool *drop) {
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

/* Builds the part of an operand whose buffer keeps its form. */
static MlirValue view_plain(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p,
                            const bool *drop) {
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

MlirValue legal_view(const struct rewrite *r, struct ir_builder *b, int o, const struct part *p, const bool *keep) {
  bool drop[LEGAL_RANK_MAX];

  legal_dropped_dims(r, o, keep, drop);
  return r->physical[o] ? view_physical(r, b, o, p, drop) : view_plain(r, b, o, p, drop);
}
