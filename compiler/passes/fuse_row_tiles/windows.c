/* windows: slices of one value are read from one tile.  See fuse_row_tiles.c.
 *
 *     %p = insert_slice %x into %zeros[0, 0, 1, 1]                in the loop:
 *     %a = extract_slice %p[0, 0, 0, 0]                   ==>       %t = a tile of SBUF, zeros at its edges, the rows of %x inside
 *     %b = extract_slice %p[0, 0, 0, 1]                             %s = extract_slice %t[0, 0, 0, 0]; op(%s)
 *     op(%a); op(%b)                                                %u = extract_slice %t[0, 0, 0, 1]; op(%u)
 *
 * The windows of a convolution or of a stencil.  Each alone would be a load of nearly the same elements, and what is padded would go
 * to HBM before.  An instruction reads a window of the tile by its access pattern.
 *
 * Slices whose rows begin at different ones, as the rows above and below in a stencil, have a tile for each first row: an instruction
 * reads and writes the same partitions, and the same row is in another one there.
 *
 * Only slices that have all planes, where an iteration has whole rows, and where the smallest box around the slices has
 * fewer elements than they have together; or as many, if its rows are short: the weights of a depthwise convolution are then one
 * transfer, not one for each element.
 */
#include "base/array.h"
#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/edit.h"
#include "passes/lib/slice.h"

/* A descriptor of fewer bytes takes a DMA engine as long as one of these. */
enum { SHORT_ROW = 512 };

/* ---- which values are windows ------------------------------------------------------------------------------------- */

static bool has_all(const struct slice *s, int d, MlirType whole) {
  return s->offset[d] == 0 && s->size[d] == mlirShapedTypeGetDimSize(whole, d);
}

/* Reads v as a slice of a value outside SBUF that has all planes, and rows for those of the group. */
static bool read_window(const struct fuse_group *g, MlirValue v, struct slice *s) {
  MlirOperation def = ir_defining_op(v);

  if (mlirOperationIsNull(def) || !ir_is(def, "tensor.extract_slice") || !slice_read(def, s) ||
      mlirShapedTypeGetRank(mlirValueGetType(v)) != s->rank || s->rank <= g->n_planes + 1)
    return false;
  if (layout_read(v).space == MEM_SBUF || layout_read(slice_of(s)).space == MEM_SBUF)
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->offset[d] == SLICE_DYNAMIC || (d < g->n_planes && !has_all(s, d, mlirValueGetType(slice_of(s)))))
      return false;
  return s->size[g->n_planes] == g->rows;
}

bool fuse_is_one_of_slices(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  int n = 0;

  if (mlirOperationIsNull(def) || !ir_is(def, "tensor.extract_slice"))
    return false;
  MlirValue source = mlirOperationGetOperand(def, 0);
  for (MlirOpOperand u = mlirValueGetFirstUse(source); n < 2 && !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    n += ir_is(mlirOpOperandGetOwner(u), "tensor.extract_slice");
  return n > 1 && layout_read(source).space != MEM_SBUF;
}

/* Reads what a value is where x has been inserted into a constant: a padding of rows. */
static bool read_padding(const struct fuse_group *g, MlirValue source, struct slice *s) {
  MlirOperation def = ir_defining_op(source);

  if (mlirOperationIsNull(def) || !ir_is(def, "tensor.insert_slice") || !slice_read(def, s) ||
      mlirShapedTypeGetRank(mlirValueGetType(slice_part(s))) != s->rank || layout_read(slice_part(s)).space == MEM_SBUF)
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->offset[d] == SLICE_DYNAMIC || (d <= g->n_planes && !has_all(s, d, mlirValueGetType(source))))
      return false;
  MlirOperation fill = ir_defining_op(slice_of(s));
  return !mlirOperationIsNull(fill) && ir_is(fill, "linalg.fill");
}

MlirValue fuse_cover_source(const struct fuse_cover *c) {
  return mlirOperationGetOperand(c->slice, 0);
}

static struct fuse_cover *cover_of(struct fuse_group *g, struct arena *a, const struct slice *s) {
  for (int k = 0; k < g->n_covers; k++)
    if (mlirValueEqual(fuse_cover_source(&g->covers[k]), slice_of(s)) &&
        g->covers[k].offset[g->n_planes] == s->offset[g->n_planes])
      return &g->covers[k];
  struct fuse_cover *c = &g->covers[g->n_covers++];
  *c = (struct fuse_cover){.slice = s->op,
                           .rank = s->rank,
                           .offset = arena_new_array(a, int64_t, (size_t)s->rank),
                           .end = arena_new_array(a, int64_t, (size_t)s->rank)};
  for (int d = 0; d < s->rank; d++)
    c->offset[d] = INT64_MAX;
  return c;
}

static int64_t elements(const struct fuse_group *g, int rank, const int64_t *sizes) {
  int64_t n = 1;
  for (int d = g->n_planes + 1; d < rank; d++)
    n *= sizes[d];
  return n;
}

/* Adds a slice to the box of its source. */
static void note_window(struct fuse_block *b, struct fuse_group *g, MlirValue v, const struct slice *s) {
  struct arena *a = b->run->arena;
  struct fuse_window *w = arena_new(a, struct fuse_window);

  *w = (struct fuse_window){cover_of(g, a, s), arena_new_array(a, int64_t, (size_t)s->rank)};
  for (int d = 0; d < s->rank; d++) {
    const int64_t end = s->offset[d] + s->size[d];
    w->offset[d] = s->offset[d];
    w->cover->offset[d] = s->offset[d] < w->cover->offset[d] ? s->offset[d] : w->cover->offset[d];
    w->cover->end[d] = end > w->cover->end[d] ? end : w->cover->end[d];
  }
  w->cover->n++;
  w->cover->alone += elements(g, s->rank, s->size);
  table_put(&g->windows, v.ptr, w);
}

/* The operand of a member, where all of its rows have their place in it; null for others. */
static MlirValue rows_of(const struct fuse_group *g, int i, int o) {
  const struct fuse_member *m = g->v[i];
  MlirValue v = mlirOperationGetOperand(m->node->op, o);
  return mlirTypeIsARankedTensor(mlirValueGetType(v)) && structured_map_loop(m->s.maps[o], m->row_dim) == m->row_loop
             ? v
             : (MlirValue){NULL};
}

/* What is padded is read itself, too: MLIR's canonicalizer makes this of the window in the middle. */
static void note_middle(struct fuse_block *b, struct fuse_group *g, MlirValue v) {
  struct slice s;
  for (int k = 0; k < g->n_covers; k++)
    if (read_padding(g, fuse_cover_source(&g->covers[k]), &s) && mlirValueEqual(slice_part(&s), v)) {
      struct fuse_window *w = arena_new(b->run->arena, struct fuse_window);
      *w = (struct fuse_window){&g->covers[k], arena_new_array(b->run->arena, int64_t, (size_t)s.rank)};
      bool is_inside = true;
      for (int d = 0; d < s.rank; d++) {
        w->offset[d] = s.offset[d];
        is_inside &= s.offset[d] >= g->covers[k].offset[d] && s.offset[d] + s.size[d] <= g->covers[k].end[d];
      }
      if (!is_inside)
        continue;
      table_put(&g->windows, v.ptr, w);
      w->cover->n++;
      w->cover->alone += elements(g, s.rank, s.size);
    }
}

void fuse_find_windows(struct fuse_block *b, struct fuse_group *g) {
  struct arena *a = b->run->arena;
  size_t most = 0;

  for (int i = 0; i < g->n; i++)
    most += (size_t)g->v[i]->s.n_inputs;
  g->n_covers = 0;
  g->covers = arena_new_array(a, struct fuse_cover, most + 1);
  g->windows = (struct table){.arena = a};
  if (g->has_transpose)
    return;
  for (int i = 0; i < g->n; i++)
    for (int o = 0; o < g->v[i]->s.n_inputs; o++) {
      MlirValue v = rows_of(g, i, o);
      struct slice s;
      if (!mlirValueIsNull(v) && !table_get(&g->windows, v.ptr) && read_window(g, v, &s))
        note_window(b, g, v, &s);
    }
  for (int k = 0; k < g->n_covers; k++) {
    struct fuse_cover *c = &g->covers[k];
    int64_t *size = arena_new_array(a, int64_t, (size_t)c->rank);
    for (int d = 0; d < c->rank; d++)
      size[d] = c->end[d] - c->offset[d];
    c->elements = elements(g, c->rank, size);
  }
  for (int i = 0; i < g->n; i++)
    for (int o = 0; o < g->v[i]->s.n_inputs; o++) {
      MlirValue v = rows_of(g, i, o);
      if (!mlirValueIsNull(v) && !table_get(&g->windows, v.ptr))
        note_middle(b, g, v);
    }
  for (int k = 0; k < g->n_covers; k++) {
    struct fuse_cover *c = &g->covers[k];
    const int64_t bytes =
        c->elements * nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(fuse_cover_source(c))));
    c->pays = c->elements < c->alone || (c->n > 1 && c->elements == c->alone && bytes <= SHORT_ROW);
  }
}

void fuse_forget_windows(struct fuse_block *b, struct fuse_group *g) {
  g->n_covers = 0;
  g->windows = (struct table){.arena = b->run->arena};
}

const struct fuse_window *fuse_window_of(const struct fuse_group *g, MlirValue v) {
  const struct fuse_window *w = table_get(&g->windows, v.ptr);
  return w && w->cover->pays ? w : NULL;
}

/* ---- the tile ------------------------------------------------------------------------------------------------------ */

/* Fills the elements of the tile from `from` to `to` in dimension d. */
static MlirValue fill_edge(struct ir_builder *b, MlirValue tile, MlirValue by, int d, int64_t from, int64_t to) {
  int64_t offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(tile, STRUCTURED_LOOPS_MAX, sizes);

  if (from >= to)
    return tile;
  offsets[d] = from;
  sizes[d] = to - from;
  const struct ir_slice s = {.rank = rank, .offsets = offsets, .sizes = sizes};
  MlirValue edge = ir_extract_slice(b, tile, &s, ir_tensor_of(ir_value_element(tile), rank, sizes));
  return ir_insert_slice(b, ir_fill(b, by, edge), tile, &s);
}

/* Makes the tile of a padding, which has all rows: `rows` are the planes and rows of the part, in the source. */
static MlirValue load_padded(struct ir_builder *b, const struct fuse_group *g, const struct fuse_cover *c,
                             const struct slice *pad, const struct ir_slice *rows, MlirValue tile) {
  MlirValue by = mlirOperationGetOperand(ir_defining_op(slice_of(pad)), 0), x = slice_part(pad);
  int64_t from[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue zero[STRUCTURED_LOOPS_MAX] = {{NULL}};

  for (int d = 0; d < c->rank; d++) {
    const bool is_row = d <= g->n_planes;
    const int64_t first = pad->offset[d] > c->offset[d] ? pad->offset[d] : c->offset[d];
    const int64_t end = pad->offset[d] + pad->size[d] < c->end[d] ? pad->offset[d] + pad->size[d] : c->end[d];
    from[d] = is_row ? rows->offsets[d] : first - pad->offset[d];
    at[d] = is_row ? 0 : first - c->offset[d];
    sizes[d] = is_row ? rows->sizes[d] : end - first;
    if (is_row)
      continue;
    tile = fill_edge(b, tile, by, d, 0, at[d]);
    tile = fill_edge(b, tile, by, d, at[d] + sizes[d], c->end[d] - c->offset[d]);
  }
  const struct ir_slice inside = {.rank = c->rank, .offsets = from, .sizes = sizes, .dynamic = rows->dynamic};
  const struct ir_slice place = {.rank = c->rank, .offsets = at, .sizes = sizes, .dynamic = zero};
  MlirValue part = ir_extract_slice(b, x, &inside, ir_tensor_of(ir_value_element(x), c->rank, sizes));
  return ir_insert_slice(b, part, tile, &place);
}

/* True if what is padded has elements in the box: otherwise the box is read as it is. */
static bool meets(const struct fuse_group *g, const struct fuse_cover *c, const struct slice *pad) {
  bool ok = true;
  for (int d = g->n_planes + 1; d < c->rank; d++)
    ok &= pad->offset[d] < c->end[d] && c->offset[d] < pad->offset[d] + pad->size[d];
  return ok;
}

MlirValue fuse_load_window(struct ir_builder *b, const struct fuse_group *g, MlirValue v, const struct ir_slice *s,
                           struct table *tiles) {
  const struct fuse_window *w = fuse_window_of(g, v);
  const struct fuse_cover *c = w->cover;
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX], tile = {table_get(tiles, c)};
  struct slice pad;

  for (int d = 0; d < c->rank; d++) {
    const bool is_row = d <= g->n_planes;
    const bool is_added = is_row && s->dynamic[d].ptr && c->offset[d];
    offsets[d] = c->offset[d] + (is_row ? s->offsets[d] : 0);
    sizes[d] = is_row ? s->sizes[d] : c->end[d] - c->offset[d];
    dynamic[d] = !is_row    ? (MlirValue){NULL}
                 : is_added ? ir_binary(b, "arith.addi", s->dynamic[d], ir_index(b, c->offset[d]))
                            : s->dynamic[d];
  }
  const struct ir_slice box = {.rank = c->rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  MlirType t = ir_tensor_of(ir_value_element(v), c->rank, sizes);
  if (!tile.ptr && read_padding(g, fuse_cover_source(c), &pad) && meets(g, c, &pad)) {
    tile = load_padded(b, g, c, &pad, &box, fuse_tile_in_sbuf(b, t));
  } else if (!tile.ptr) {
    MlirValue copied[] = {ir_extract_slice(b, fuse_cover_source(c), &box, t), fuse_tile_in_sbuf(b, t)};
    tile = ir_op1(b, "bufferization.materialize_in_destination", t, 2, copied);
  }
  table_put(tiles, c, (void *)tile.ptr);
  for (int d = 0; d < c->rank; d++) {
    offsets[d] = d <= g->n_planes ? 0 : w->offset[d] - c->offset[d];
    sizes[d] = s->sizes[d];
    dynamic[d] = (MlirValue){NULL};
  }
  return ir_extract_slice(b, tile, &box, ir_tensor_of(ir_value_element(v), c->rank, sizes));
}

/* ---- what is left over --------------------------------------------------------------------------------------------- */

/* Erases the operation if only annotations read its result. */
static bool drop(MlirOperation op) {
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!layout_is_annotation(mlirOpOperandGetOwner(u)))
      return false;
  for (MlirOpOperand u; u = mlirValueGetFirstUse(ir_result(op)), !mlirOpOperandIsNull(u);)
    mlirOperationDestroy(mlirOpOperandGetOwner(u));
  mlirOperationDestroy(op);
  return true;
}

void fuse_drop_windows(struct pass_run *run) {
  struct ir_ops slices = ir_collect_named(run->arena, run->module, "tensor.extract_slice");
  for (int k = 0; k < slices.n; k++) {
    MlirOperation from = ir_defining_op(mlirOperationGetOperand(slices.v[k], 0));
    if (drop(slices.v[k]) && !mlirOperationIsNull(from) && ir_is(from, "tensor.insert_slice"))
      drop(from);
  }
}
