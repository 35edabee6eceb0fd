/* outline: makes the loop of a group.  See fuse_row_tiles.c.
 *
 * Inside the loop each operand from HBM is copied once to a tile in SBUF and each member writes a tile of its own in
 * SBUF, in the same form in which knob-driven-tiling makes tiles.  A broadcast along the rows is computed once before
 * the loop, for one tile.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/edit.h"

/* ---- the loop's values -------------------------------------------------------------------------------------------- */

/* What a part covers: rows, columns, and in each loop over planes one of them. */
enum { ROWS, COLUMNS, PLANES, ALONG_MAX = PLANES + STRUCTURED_LOOPS_MAX };

/* One tile of rows and its columns.  at: NULL where the offset is a number. */
struct part {
  MlirValue at[ALONG_MAX];
  int64_t offset[ALONG_MAX], size[ALONG_MAX];
};

/* What one iteration computes: tiles of rows, side by side. */
struct round {
  int n;
  struct part part[FUSE_JAM_MAX];
};

/* A loop that is being made. */
struct making {
  struct fuse_block *b;
  const struct fuse_group *g;
  int n_out;
  MlirValue *out;                   /* the values that leave the group */
  struct table read;                /* the values that members read */
  struct table kept;                /* a broadcast along the rows -> its tile's first result in SBUF */
  struct table tiles[FUSE_JAM_MAX]; /* for each part of the present round: a value -> its tile */
};

static bool is_cut(const struct making *m) {
  return m->g->cut < m->g->columns;
}

/* What a part covers of a dimension of this extent that has the loop; -1: all of it. */
static int along_of(const struct making *m, const struct fuse_member *x, int loop, int64_t extent) {
  if (loop == x->row_loop)
    return ROWS;
  if (loop >= 0 && loop < m->g->n_planes)
    return PLANES + loop;
  return is_cut(m) && loop == x->column_loop && extent == m->g->columns ? COLUMNS : -1;
}

/* The slice of operand o of the member in a part: rank dimensions, offsets and sizes. */
static struct ir_slice slice_of(const struct making *m, const struct fuse_member *x, int o, const struct part *p,
                                int64_t *offsets, int64_t *sizes, MlirValue *dynamic) {
  const MlirAffineMap map = x->s.maps[o];
  int64_t dims[STRUCTURED_LOOPS_MAX];
  MlirValue v = o < x->s.n_inputs ? mlirOperationGetOperand(x->node->op, o) : ir_result(x->node->op);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

  for (int d = 0; d < rank; d++) {
    const int along = along_of(m, x, structured_map_loop(map, d), dims[d]);
    offsets[d] = along < 0 ? 0 : p->offset[along];
    sizes[d] = along < 0 ? dims[d] : p->size[along];
    dynamic[d] = along < 0 ? (MlirValue){NULL} : p->at[along];
  }
  return (struct ir_slice){.rank = rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
}

MlirValue fuse_tile_in_sbuf(struct ir_builder *b, MlirType t) {
  const MlirNamedAttribute attrs[] = {ir_named(b, "memory_space", ir_i32_attr(b, MEM_SBUF)),
                                      ir_segments(b, 3, (int32_t[]){0, 0, 0})};
  return ir_op1_with(b, "bufferization.alloc_tensor", t, 0, NULL, 2, attrs);
}

/* ---- operands ----------------------------------------------------------------------------------------------------- */

/* Computes one tile of a broadcast along the rows, which stays in SBUF while the loop runs. */
static MlirValue keep_broadcast(struct ir_builder *b, const struct making *m, MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  MlirOperation from = ir_defining_op(v);
  struct layout at = layout_read(v);

  dims[0] = m->g->tile;
  b->loc = mlirOperationGetLocation(from);
  MlirValue to = ir_empty_of(b, ir_tensor_of(ir_value_element(v), rank, dims));
  MlirValue made = ir_result(ir_linalg_copying(b, "linalg.broadcast", mlirOperationGetOperand(from, 0), to,
                                               ir_named(b, "dimensions", ir_attr(from, "dimensions"))));
  at.space = MEM_SBUF;
  at.partition_dim = 0;
  at.n_tile = at.n_loop = rank;
  memcpy(at.tile, dims, (size_t)rank * sizeof *dims);
  memcpy(at.loop, dims, (size_t)rank * sizeof *dims);
  layout_write(made, &at, b->loc);
  return made;
}

static void note_operands(struct ir_builder *b, struct making *m) {
  for (int i = 0; i < m->g->n; i++)
    for (int o = 0; o < m->g->v[i]->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(m->g->v[i]->node->op, o);
      table_put(&m->read, v.ptr, m->g->v[i]);
      if (fuse_is_same_in_rows(m->g->v[i], o) && !table_get(&m->kept, v.ptr))
        table_put(&m->kept, v.ptr, (void *)keep_broadcast(b, m, v).ptr);
    }
}

/* Returns the tile of an operand: that of a member, the part of a value in SBUF, or a copy of the part. */
static MlirValue operand(struct ir_builder *b, struct making *m, const struct fuse_member *x, int o,
                         const struct part *p, struct table *tiles) {
  MlirValue v = mlirOperationGetOperand(x->node->op, o);
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];

  if (!mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return v;
  assert(!x->takes_columns);
  MlirValue tile = {table_get(tiles, v.ptr)}, kept = {table_get(&m->kept, v.ptr)};
  if (tile.ptr)
    return tile;
  const struct ir_slice s = slice_of(m, x, o, p, offsets, sizes, dynamic);
  MlirType t = ir_tensor_of(ir_value_element(v), s.rank, sizes);
  if (kept.ptr) {
    offsets[0] = 0;
    dynamic[0] = (MlirValue){NULL};
    tile = mlirTypeEqual(t, mlirValueGetType(kept)) ? kept : ir_extract_slice(b, kept, &s, t);
  } else if (fuse_window_of(m->g, v)) {
    tile = fuse_load_window(b, m->g, v, &s, tiles);
  } else {
    tile = ir_extract_slice(b, v, &s, t);
    if (layout_read(v).space != MEM_SBUF) {
      MlirValue copied[] = {tile, fuse_tile_in_sbuf(b, t)};
      tile = ir_op1(b, "bufferization.materialize_in_destination", t, 2, copied);
    }
  }
  table_put(tiles, v.ptr, (void *)tile.ptr);
  return tile;
}

/* ---- one iteration ------------------------------------------------------------------------------------------------ */

/* Returns the number of the value among those that leave the group, or -1. */
static int out_number(const struct making *m, MlirValue v) {
  for (int k = 0; k < m->n_out; k++)
    if (mlirValueEqual(m->out[k], v))
      return k;
  return -1;
}

/* Computes a part with the member. */
static MlirValue compute(struct ir_builder *b, struct making *m, const struct fuse_member *x, const struct part *p,
                         struct table *tiles) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];
  MlirOperation op = x->node->op, init = ir_defining_op(mlirOperationGetOperand(op, x->s.n_inputs));
  const struct ir_slice s = slice_of(m, x, x->s.n_inputs, p, offsets, sizes, dynamic);

  b->loc = mlirOperationGetLocation(op);
  MlirOperation made = mlirOperationClone(op);
  for (int o = 0; o < x->s.n_inputs; o++)
    mlirOperationSetOperand(made, o, operand(b, m, x, o, p, tiles));
  MlirType t = ir_tensor_of(ir_value_element(ir_result(op)), s.rank, sizes);
  MlirValue to = fuse_tile_in_sbuf(b, t);
  if (ir_is(init, "linalg.fill")) {
    b->loc = mlirOperationGetLocation(init);
    to = ir_fill(b, mlirOperationGetOperand(init, 0), to);
    b->loc = mlirOperationGetLocation(op);
  }
  mlirOperationSetOperand(made, x->s.n_inputs, to);
  mlirValueSetType(ir_result(made), t);
  mlirBlockInsertOwnedOperationBefore(b->block, b->before, made);
  return ir_result(made);
}

/* Inserts the tile of a value that leaves the group into what is carried. */
static void insert(struct ir_builder *b, const struct making *m, const struct fuse_member *x, const struct part *p,
                   MlirValue tile, MlirValue *carried) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];
  const struct ir_slice s = slice_of(m, x, x->s.n_inputs, p, offsets, sizes, dynamic);
  *carried = ir_insert_slice(b, tile, *carried, &s);
}

/* What reads in the group a value that lies in SBUF and leaves the group reads it there: then no tile of its own has to be copied. */
static void read_there(struct ir_builder *b, struct making *m, const struct fuse_member *x, const struct round *r,
                       MlirValue carried) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX], v = ir_result(x->node->op);

  for (int u = 0; u < r->n; u++) {
    const struct ir_slice s = slice_of(m, x, x->s.n_inputs, &r->part[u], offsets, sizes, dynamic);
    MlirType t = mlirValueGetType((MlirValue){table_get(&m->tiles[u], v.ptr)});
    table_put(&m->tiles[u], v.ptr, (void *)ir_extract_slice(b, carried, &s, t).ptr);
  }
}

/* Tiles of a round that lie side by side in what a transpose loads or stores: n from `first` on. */
struct beside {
  int first, n;
};

/* The part of operand o of x, or of its result, in the tiles together.  rows: of each of them. */
static struct ir_slice slice_beside(const struct making *m, const struct fuse_member *x, int o, const struct round *r,
                                    struct beside at, int64_t *offsets, int64_t *sizes, MlirValue *dynamic,
                                    int64_t *rows) {
  struct part all = r->part[at.first];

  all.size[ROWS] = 0;
  for (int u = 0; u < at.n; u++)
    all.size[ROWS] += rows[u] = r->part[at.first + u].size[ROWS];
  return slice_of(m, x, o, &all, offsets, sizes, dynamic);
}

/* Computes tiles with a member that transposes what it reads. */
static void take_columns(struct ir_builder *b, struct making *m, const struct fuse_member *x, const struct round *r,
                         struct beside at) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], rows[FUSE_JAM_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX], tile[FUSE_JAM_MAX];
  const struct ir_slice s = slice_beside(m, x, 0, r, at, offsets, sizes, dynamic, rows);

  fuse_take_columns(b, mlirOperationGetOperand(x->node->op, 0), &s, at.n, rows, tile);
  for (int u = 0; u < at.n; u++)
    table_put(&m->tiles[at.first + u], ir_result(x->node->op).ptr, (void *)tile[u].ptr);
}

/* Transposes tiles with a member, and inserts them into what is carried. */
static void put_columns(struct ir_builder *b, struct making *m, const struct fuse_member *x, const struct round *r,
                        struct beside at, MlirValue *carried) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], rows[FUSE_JAM_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX], tile[FUSE_JAM_MAX];
  const struct ir_slice s = slice_beside(m, x, 1, r, at, offsets, sizes, dynamic, rows);

  for (int u = 0; u < at.n; u++)
    tile[u] = operand(b, m, x, 0, &r->part[at.first + u], &m->tiles[at.first + u]);
  *carried = fuse_put_columns(b, at.n, rows, tile, *carried, &s);
}

/* Computes a round with a transpose; k: the number of its result among those that leave the group, or -1. */
static void turn(struct ir_builder *b, struct making *m, const struct fuse_member *x, const struct round *r, int k,
                 MlirValue *carried) {
  const int n = fuse_jams_planes(m->g) ? 1 : r->n;

  b->loc = mlirOperationGetLocation(x->node->op);
  for (int u = 0; u < r->n; u += n) {
    const struct beside at = {u, n};
    if (x->takes_columns)
      take_columns(b, m, x, r, at);
    else
      put_columns(b, m, x, r, at, &carried[k]);
  }
  for (int u = 0; x->takes_columns && k >= 0 && u < r->n; u++)
    insert(b, m, x, &r->part[u], (MlirValue){table_get(&m->tiles[u], ir_result(x->node->op).ptr)}, &carried[k]);
}

/* Computes the parts of a round with all members, each member for all parts before the next one; inserts them into the
 * carried values. */
static void iterate(struct ir_builder *b, struct making *m, const struct round *r, MlirValue *carried) {
  for (int u = 0; u < r->n; u++)
    m->tiles[u] = (struct table){.arena = b->arena};
  for (int i = 0; i < m->g->n; i++) {
    const struct fuse_member *x = m->g->v[i];
    MlirValue v = ir_result(x->node->op);
    const int k = out_number(m, v);
    if (fuse_turns(x))
      turn(b, m, x, r, k, carried);
    for (int u = 0; !fuse_turns(x) && u < r->n; u++) {
      MlirValue tile = compute(b, m, x, &r->part[u], &m->tiles[u]);
      table_put(&m->tiles[u], v.ptr, (void *)tile.ptr);
      if (k >= 0)
        insert(b, m, x, &r->part[u], tile, &carried[k]);
    }
    if (k >= 0 && x->at.space == MEM_SBUF && table_get(&m->read, v.ptr))
      read_there(b, m, x, r, carried[k]);
  }
}

static MlirLocation of_group(MlirContext ctx, struct arena *a, const struct fuse_group *g) {
  MlirLocation *at = arena_new_array(a, MlirLocation, (size_t)g->n);
  for (int i = 0; i < g->n; i++)
    at[i] = mlirOperationGetLocation(g->v[i]->node->op);
  return g->n == 1 ? at[0] : mlirLocationFusedGet(ctx, g->n, at, mlirAttributeGetNull());
}

/* The direction in which the tiles of a round lie side by side, and the extent of a tile there. */
static int jam_along(const struct making *m) {
  return fuse_jams_planes(m->g) ? PLANES + m->g->n_planes - 1 : ROWS;
}

static int64_t tile_along(const struct making *m, int d) {
  return d == ROWS ? m->g->tile : d == COLUMNS ? m->g->cut : 1;
}

/* Sets what a round covers along d: `size` from `offset`, in tiles if they lie there side by side.  at: the loop's counter, which
 * stands for the offset, or NULL. */
static void set_round(struct ir_builder *b, const struct making *m, int d, struct round *r, MlirValue at,
                      int64_t offset, int64_t size) {
  const bool is_jam = d == jam_along(m);
  const int64_t tile = is_jam ? tile_along(m, d) : size;

  if (is_jam)
    r->n = (int)((size + tile - 1) / tile);
  for (int u = 0; u < (is_jam ? r->n : FUSE_JAM_MAX); u++) {
    const int64_t from = is_jam ? u * tile : 0;
    r->part[u].at[d] = mlirValueIsNull(at) || !from ? at : ir_binary(b, "arith.addi", at, ir_index(b, from));
    r->part[u].offset[d] = offset + from;
    r->part[u].size[d] = size - from < tile ? size - from : tile;
  }
}

/* The loops, the outermost first.  The rows are in the loop over columns because they have more rounds: a loop that starts again
 * waits for its buffers.  Planes are in the loop over rows, because what is the same in all of them is loaded before. */
static int along_at(int depth) {
  return depth == 0 ? COLUMNS : depth == 1 ? ROWS : depth;
}

static int64_t extent_along(const struct making *m, int d) {
  return d == ROWS ? m->g->rows : d == COLUMNS ? m->g->columns : m->g->v[0]->s.extents[d - PLANES];
}

static int64_t step_along(const struct making *m, int d) {
  return tile_along(m, d) * (d == jam_along(m) ? m->g->jam : 1);
}

/* Computes what is left to do from this depth on: a loop over whole steps, then the rest. */
static void go_along(struct ir_builder *b, struct making *m, int depth, struct round *r, MlirValue *carried) {
  if (depth == PLANES + m->g->n_planes) {
    iterate(b, m, r, carried);
    return;
  }
  const int d = along_at(depth);
  const int64_t extent = extent_along(m, d), step = step_along(m, d), over = extent % step, whole = extent - over;
  b->loc = of_group(b->ctx, b->arena, m->g);
  if (whole > step) {
    MlirValue bounds[] = {ir_index(b, 0), ir_index(b, whole), ir_index(b, step)};
    struct ir_builder inside;
    MlirValue *now = arena_new_array(b->arena, MlirValue, (size_t)m->n_out + 1);
    MlirRegion region = ir_loop_region(b, m->n_out, carried, &inside);
    for (int k = 0; k < m->n_out; k++)
      now[k] = mlirBlockGetArgument(inside.block, 1 + k);
    set_round(&inside, m, d, r, mlirBlockGetArgument(inside.block, 0), 0, step);
    go_along(&inside, m, depth + 1, r, now);
    inside.loc = b->loc;
    ir_yield(&inside, m->n_out, now);
    MlirOperation loop = ir_for(b, bounds, m->n_out, carried, region);
    for (int k = 0; k < m->n_out; k++)
      carried[k] = mlirOperationGetResult(loop, k);
  } else if (whole) {
    set_round(b, m, d, r, (MlirValue){NULL}, 0, step);
    go_along(b, m, depth + 1, r, carried);
  }
  if (!over)
    return;
  set_round(b, m, d, r, (MlirValue){NULL}, whole, over);
  go_along(b, m, depth + 1, r, carried);
}

/* ---- one group ---------------------------------------------------------------------------------------------------- */

void fuse_make_loop(struct ir_builder *b, struct fuse_block *block, const struct fuse_group *g) {
  struct making m = {.b = block, .g = g, .read = {.arena = b->arena}, .kept = {.arena = b->arena}};
  MlirValue *carried = arena_new_array(b->arena, MlirValue, (size_t)g->n + 1);
  struct round r = {0};

  m.out = arena_new_array(b->arena, MlirValue, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++)
    if (fuse_leaves(block, g, ir_result(g->v[i]->node->op))) {
      b->loc = mlirOperationGetLocation(g->v[i]->node->op);
      m.out[m.n_out] = ir_result(g->v[i]->node->op);
      carried[m.n_out] = ir_empty_of(b, mlirValueGetType(m.out[m.n_out]));
      m.n_out++;
    }
  note_operands(b, &m);
  go_along(b, &m, 0, &r, carried);
  for (int k = 0; k < m.n_out; k++) {
    struct layout at = layout_read(m.out[k]);
    at.n_loop = 0;
    edit_replace_data_uses(b->arena, m.out[k], carried[k], (MlirOperation){NULL});
    layout_write(carried[k], &at, mlirOperationGetLocation(at.layout_op));
  }
}
