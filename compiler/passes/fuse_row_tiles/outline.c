/* outline: makes the loop of a group.  See fuse_row_tiles.c.
 *
 * The operations of the block are moved to an order in which the members of a group are next to each other: that of the
 * program, except that operations between two members that depend on a member come after the group.  Ready operations
 * are taken from a heap by their number in the program; a group has the number of its last member.
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

/* One tile of rows and its columns.  at: NULL where the offset is a number. */
struct part {
  MlirValue at[2];
  int64_t offset[2], size[2];
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
  struct table kept;                /* a broadcast along the rows -> its tile's first result in SBUF */
  struct table tiles[FUSE_JAM_MAX]; /* for each part of the present round: a value -> its tile */
};

static bool is_cut(const struct making *m) {
  return m->g->cut < m->g->columns;
}

/* The slice of operand o of the member in a part: rank dimensions, offsets and sizes. */
static struct ir_slice slice_of(const struct making *m, const struct fuse_member *x, int o, const struct part *p,
                                int64_t *offsets, int64_t *sizes, MlirValue *dynamic) {
  const MlirAffineMap map = x->s.maps[o];
  int64_t dims[STRUCTURED_LOOPS_MAX];
  MlirValue v = o < x->s.n_inputs ? mlirOperationGetOperand(x->node->op, o) : ir_result(x->node->op);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

  for (int d = 0; d < rank; d++) {
    const int loop = structured_map_loop(map, d);
    const bool is_column = is_cut(m) && loop != x->row_loop && loop == x->column_loop && dims[d] == m->g->columns;
    offsets[d] = 0;
    sizes[d] = dims[d];
    dynamic[d] = (MlirValue){NULL};
    if (loop != x->row_loop && !is_column)
      continue;
    offsets[d] = p->offset[is_column];
    sizes[d] = p->size[is_column];
    dynamic[d] = p->at[is_column];
  }
  return (struct ir_slice){.rank = rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
}

static MlirValue tile_in_sbuf(struct ir_builder *b, MlirType t) {
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

static void keep_broadcasts(struct ir_builder *b, struct making *m) {
  for (int i = 0; i < m->g->n; i++)
    for (int o = 0; o < m->g->v[i]->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(m->g->v[i]->node->op, o);
      if (fuse_is_same_in_rows(v) && !table_get(&m->kept, v.ptr))
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
  MlirValue tile = {table_get(tiles, v.ptr)}, kept = {table_get(&m->kept, v.ptr)};
  if (tile.ptr)
    return tile;
  const struct ir_slice s = slice_of(m, x, o, p, offsets, sizes, dynamic);
  MlirType t = ir_tensor_of(ir_value_element(v), s.rank, sizes);
  if (kept.ptr) {
    offsets[0] = 0;
    dynamic[0] = (MlirValue){NULL};
    tile = mlirTypeEqual(t, mlirValueGetType(kept)) ? kept : ir_extract_slice(b, kept, &s, t);
  } else {
    tile = ir_extract_slice(b, v, &s, t);
    if (layout_read(v).space != MEM_SBUF) {
      MlirValue copied[] = {tile, tile_in_sbuf(b, t)};
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
  MlirValue to = tile_in_sbuf(b, t);
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

/* Computes the parts of a round with all members, each member for all parts before the next one; inserts them into the
 * carried values. */
static void iterate(struct ir_builder *b, struct making *m, const struct round *r, MlirValue *carried) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];

  for (int u = 0; u < r->n; u++)
    m->tiles[u] = (struct table){.arena = b->arena};
  for (int i = 0; i < m->g->n; i++)
    for (int u = 0; u < r->n; u++) {
      const struct fuse_member *x = m->g->v[i];
      const struct part *p = &r->part[u];
      MlirValue v = ir_result(x->node->op), tile = compute(b, m, x, p, &m->tiles[u]);
      const int k = out_number(m, v);
      table_put(&m->tiles[u], v.ptr, (void *)tile.ptr);
      if (k < 0)
        continue;
      const struct ir_slice s = slice_of(m, x, x->s.n_inputs, p, offsets, sizes, dynamic);
      carried[k] = ir_insert_slice(b, tile, carried[k], &s);
    }
}

static MlirLocation of_group(MlirContext ctx, struct arena *a, const struct fuse_group *g) {
  MlirLocation *at = arena_new_array(a, MlirLocation, (size_t)g->n);
  for (int i = 0; i < g->n; i++)
    at[i] = mlirOperationGetLocation(g->v[i]->node->op);
  return g->n == 1 ? at[0] : mlirLocationFusedGet(ctx, g->n, at, mlirAttributeGetNull());
}

/* Sets what a round covers along dimension d: `size` rows from `offset`, in tiles, or columns.  at: the loop's counter,
 * which stands for the offset, or NULL. */
static void set_round(struct ir_builder *b, const struct making *m, int d, struct round *r, MlirValue at,
                      int64_t offset, int64_t size) {
  const int64_t tile = d ? size : m->g->tile;

  if (!d)
    r->n = (int)((size + tile - 1) / tile);
  for (int u = 0; u < (d ? FUSE_JAM_MAX : r->n); u++) {
    const int64_t from = d ? 0 : u * tile;
    r->part[u].at[d] = mlirValueIsNull(at) || !from ? at : ir_binary(b, "arith.addi", at, ir_index(b, from));
    r->part[u].offset[d] = offset + from;
    r->part[u].size[d] = size - from < tile ? size - from : tile;
  }
}

/* Computes what is left to do along dimension d (1: columns) and the earlier one (0: rows): a loop over whole steps, then
 * the rest.  The rows are the inner loop because they have more rounds: a loop that starts again waits for its buffers. */
static void go_along(struct ir_builder *b, struct making *m, int d, struct round *r, MlirValue *carried) {
  if (d < 0) {
    iterate(b, m, r, carried);
    return;
  }
  const int64_t extent = d ? m->g->columns : m->g->rows, step = d ? m->g->cut : m->g->tile * m->g->jam;
  const int64_t over = extent % step, whole = extent - over;
  b->loc = of_group(b->ctx, b->arena, m->g);
  if (whole > step) {
    MlirValue bounds[] = {ir_index(b, 0), ir_index(b, whole), ir_index(b, step)};
    struct ir_builder inside;
    MlirValue *now = arena_new_array(b->arena, MlirValue, (size_t)m->n_out + 1);
    MlirRegion region = ir_loop_region(b, m->n_out, carried, &inside);
    for (int k = 0; k < m->n_out; k++)
      now[k] = mlirBlockGetArgument(inside.block, 1 + k);
    set_round(&inside, m, d, r, mlirBlockGetArgument(inside.block, 0), 0, step);
    go_along(&inside, m, d - 1, r, now);
    inside.loc = b->loc;
    ir_yield(&inside, m->n_out, now);
    MlirOperation loop = ir_for(b, bounds, m->n_out, carried, region);
    for (int k = 0; k < m->n_out; k++)
      carried[k] = mlirOperationGetResult(loop, k);
  } else if (whole) {
    set_round(b, m, d, r, (MlirValue){NULL}, 0, step);
    go_along(b, m, d - 1, r, carried);
  }
  if (!over)
    return;
  set_round(b, m, d, r, (MlirValue){NULL}, whole, over);
  go_along(b, m, d - 1, r, carried);
}

/* ---- one group ---------------------------------------------------------------------------------------------------- */

static bool is_unread(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!layout_is_annotation(mlirOpOperandGetOwner(u)))
      return false;
  return true;
}

static void destroy_annotated(MlirOperation op) {
  MlirOpOperand u;
  while (u = mlirValueGetFirstUse(ir_result(op)), !mlirOpOperandIsNull(u)) {
    assert(ir_is_of(mlirOpOperandGetOwner(u), "nkipy."));
    mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
  mlirOperationDestroy(op);
}

/* Makes the loop at the builder's place. */
static void make_loop(struct ir_builder *b, struct fuse_block *block, const struct fuse_group *g) {
  struct making m = {.b = block, .g = g, .kept = {.arena = b->arena}};
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
  keep_broadcasts(b, &m);
  go_along(b, &m, 1, &r, carried);
  for (int k = 0; k < m.n_out; k++) {
    struct layout at = layout_read(m.out[k]);
    at.n_loop = 0;
    edit_replace_data_uses(b->arena, m.out[k], carried[k], (MlirOperation){NULL});
    layout_write(carried[k], &at, mlirOperationGetLocation(at.layout_op));
  }
}

/* ---- the order ---------------------------------------------------------------------------------------------------- */

/* What is moved as one: an operation or a group. */
struct unit {
  int number; /* of the node, or of the last member */
  const struct fuse_group *group;
  int waits; /* the operands that are not placed yet */
};

struct heap {
  int n;
  int *v; /* numbers of units; the parent is smaller than its children */
};

static void heap_push(struct heap *h, int x) {
  int i = h->n++;
  for (; i > 0 && h->v[(i - 1) / 2] > x; i = (i - 1) / 2)
    h->v[i] = h->v[(i - 1) / 2];
  h->v[i] = x;
}

static int heap_pop(struct heap *h) {
  const int top = h->v[0], x = h->v[--h->n];
  int i = 0;
  for (int child; child = 2 * i + 1, child < h->n; i = child) {
    child += child + 1 < h->n && h->v[child + 1] < h->v[child];
    if (h->v[child] >= x)
      break;
    h->v[i] = h->v[child];
  }
  h->v[i] = x;
  return top;
}

/* The unit that places the node, by the node's number. */
struct units {
  struct fuse_block *b;
  struct unit *v; /* v[i] is valid if i is the number of an operation without a group or of a last member */
  int *of_node;
};

static struct units find_units(struct fuse_block *b) {
  struct arena *a = b->run->arena;
  struct units u = {b, arena_new_array(a, struct unit, (size_t)b->n + 1), arena_new_array(a, int, (size_t)b->n + 1)};

  for (int i = 0; i < b->n; i++) {
    u.v[i].number = i;
    u.of_node[i] = i;
  }
  for (int k = 0; k < b->n_groups; k++) {
    const struct fuse_group *g = &b->groups[k];
    if (g->why_not)
      continue;
    const int last = (int)(g->v[g->n - 1]->node - b->v);
    for (int i = 0; i < g->n; i++)
      u.of_node[g->v[i]->node - b->v] = last;
    u.v[last].group = g;
  }
  return u;
}

/* Calls visit with the unit of each use, in this block, of a result of node i. */
static void each_reader(struct units *u, int i, void (*visit)(struct units *, int reader, void *), void *user) {
  MlirOperation op = u->b->v[i].op;

  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    for (MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, r)); !mlirOpOperandIsNull(use);
         use = mlirOpOperandGetNextUse(use)) {
      MlirOperation here = ir_ancestor_in(mlirOpOperandGetOwner(use), u->b->block);
      const struct fuse_node *node = mlirOperationIsNull(here) ? NULL : table_get(&u->b->by_op, here.ptr);
      if (node && u->of_node[node - u->b->v] != u->of_node[i])
        visit(u, u->of_node[node - u->b->v], user);
    }
}

static void add_wait(struct units *u, int reader, void *user) {
  (void)user;
  u->v[reader].waits++;
}

static void take_wait(struct units *u, int reader, void *user) {
  if (!--u->v[reader].waits)
    heap_push(user, reader);
}

void fuse_outline(struct fuse_block *b) {
  struct arena *a = b->run->arena;
  struct units u = find_units(b);
  struct heap ready = {.v = arena_new_array(a, int, (size_t)b->n + 1)};
  int *order = arena_new_array(a, int, (size_t)b->n + 1), n = 0, n_placed = 0;
  MlirOperation end = mlirBlockGetTerminator(b->block);

  for (int i = 0; i < b->n; i++)
    each_reader(&u, i, add_wait, NULL);
  for (int i = 0; i < b->n; i++)
    if (u.of_node[i] == i && !u.v[i].waits)
      heap_push(&ready, i);
  while (ready.n) {
    const int i = order[n++] = heap_pop(&ready);
    const struct fuse_group *g = u.v[i].group;
    for (int k = 0; k < (g ? g->n : 1); k++, n_placed++)
      each_reader(&u, g ? (int)(g->v[k]->node - b->v) : i, take_wait, &ready);
  }
  assert(n_placed == b->n); /* groups never depend on themselves: see groups.c */
  for (int k = 0; k < n; k++) {
    if (!u.v[order[k]].group) {
      mlirOperationMoveBefore(b->v[order[k]].op, end);
      continue;
    }
    struct ir_builder at = edit_before(b->run, end);
    make_loop(&at, b, u.v[order[k]].group);
  }
  for (int i = b->n - 1; i >= 0; i--)
    if (u.v[u.of_node[i]].group || (ir_is(b->v[i].op, "linalg.broadcast") && is_unread(ir_result(b->v[i].op))))
      destroy_annotated(b->v[i].op);
}
