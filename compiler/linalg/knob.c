/* knob: emits the user's knobs as annotations directly after the operation that computes the value.
 *
 * A knob on a reshape, copy, convert or broadcast of a reduce or dot applies to that reduce or dot; a knob on a reshape
 * or copy of any other operation applies to that operation.  An annotation has one loop tile size per iterator of the
 * operation.  The function form lists parallel and reduction entries separately; this file interleaves them.  A tile
 * that fits a reduction but not the operation that scales its result, as in a mean, is applied to both.
 *
 * A tile that does not fit the loops in any of the accepted forms is refused, with the range of the knob call.  If it
 * fits the loops that the value had before simplification, it is ignored with a warning.  A tile that fits a regrouped
 * value (heads merged into rows after a transpose) but not the loops that compute it is also ignored with a warning.
 */
#include <assert.h>
#include <string.h>

#include "linalg/impl.h"

/* ---- which operation ---------------------------------------------------------------------------------- */

/* Returns the instruction whose operation carries the knob of i, or NULL if there is none, as for a parameter. */
static const struct hlo_instr *working_instr(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *source = i;

  while (hlo_is_light(source))
    source = source->operands[0];
  if (source->op == HLO_REDUCE || source->op == HLO_DOT)
    return source;
  while (mlirOperationIsNull(node_of(l, i)->work) && hlo_is_light(i))
    i = i->operands[0];
  return mlirOperationIsNull(node_of(l, i)->work) ? NULL : i;
}

/* ---- annotations -------------------------------------------------------------------------------------- */

static bool is_annotation(MlirOperation op) {
  return !mlirOperationIsNull(op) && (ir_is(op, "nkipy.tile_op") || ir_is(op, "nkipy.layout"));
}

/* Adds the annotation `name` to w's result, directly after the operation.  If the operation already has an annotation
 * of this name, its attributes are overwritten one by one instead.  The annotation has the location of the knob
 * call. */
static void annotate(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w, const char *name, int n,
                     MlirNamedAttribute const *attrs) {
  MlirOperation work = node_of(l, w)->work, at = mlirOperationGetNextInBlock(work);
  MlirValue v = ir_result(work);

  for (; is_annotation(at); at = mlirOperationGetNextInBlock(at)) {
    if (!ir_is(at, name))
      continue;
    for (int k = 0; k < n; k++)
      mlirOperationSetAttributeByName(at, mlirIdentifierStr(attrs[k].name), attrs[k].attribute);
    return;
  }
  struct ir_builder b = l->b;
  b.before = at;
  b.loc = ir_loc_tagged(l->ir->ctx, w->id, src_locs_one(&l->arena, i->knob->loc));
  ir_op0_with(&b, name, 1, &v, n, attrs);
}

static void annotate_tile(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w, int n,
                          const int64_t *tile) {
  MlirNamedAttribute attr = ir_named(&l->b, "loop_tile_size", ir_i64_array(&l->b, n, tile));
  annotate(l, i, w, "nkipy.tile_op", 1, &attr);
}

/* ---- loop tiles --------------------------------------------------------------------------------------- */

static const char *ints_text(struct lower *l, int n, const int64_t *v) {
  const char *s = "[";
  for (int k = 0; k < n; k++)
    s = arena_printf(l->ds->arena, "%s%s%lld", s, k ? ", " : "", (long long)v[k]);
  return arena_printf(l->ds->arena, "%s]", s);
}

static int count_reductions(const struct node *n) {
  int count = 0;
  for (int k = 0; n->reduction && k < n->n_loops; k++)
    count += n->reduction[k];
  return count;
}

/* Removes leading 1s of a dot's tile while it has more entries than the operation has loops.  They belong to batch
 * dimensions that were collapsed into one. */
static struct hlo_ints drop_collapsed(enum hlo_op op, const struct node *n, struct hlo_ints v) {
  while (op == HLO_DOT && v.n > n->n_loops && v.v[0] == 1)
    v = (struct hlo_ints){v.n - 1, v.v + 1};
  return v;
}

enum { DOT_K_MAX = 128 }; /* rows of the tensor engine */

/* Splits a reduction's tile that first has an entry per dimension of the value with its reduced axes kept (1 for each
 * reduced axis), and then an entry per reduced dimension: [128, 1, 64] is [128, 1] and [64].  Returns false if the tile
 * does not have this form. */
static bool split_kept(const struct node *n, int n_red, struct hlo_ints tile, struct hlo_ints *of_value,
                       struct hlo_ints *of_reduction) {
  if (tile.n != n->n_loops + n_red)
    return false;
  for (int k = 0; k < n->n_loops; k++)
    if (n->reduction[k] && tile.v[k] != 1)
      return false;
  *of_value = (struct hlo_ints){n->n_loops, tile.v};
  *of_reduction = (struct hlo_ints){n_red, tile.v + n->n_loops};
  return true;
}

/* Turns the function form into one entry per loop.  Returns false if it does not fit.  The tile has an entry per
 * parallel loop, or per dimension of a value that keeps its reduced axes.  Entries for the reduced dimensions may
 * follow.  For a dot it may be the whole [M, N, K].  A loop without an entry is not tiled, except for a dot's K beyond
 * DOT_K_MAX. */
static bool interleave(enum hlo_op op, const struct node *n, const struct hlo_knob *knob, int64_t *out) {
  const int n_red = count_reductions(n), n_par = n->n_loops - n_red;
  struct hlo_ints tile = drop_collapsed(op, n, knob->tile_size), red = knob->reduction_tile;

  if (!n_red && red.n) { /* an element-wise operation after a reduction, on a value that keeps the reduced axes */
    if (tile.n + red.n != n->n_loops)
      return false;
    for (int k = 0; k < n->n_loops; k++)
      out[k] = k < tile.n ? tile.v[k] : red.v[k - tile.n] < n->extents[k] ? red.v[k - tile.n] : n->extents[k];
    return true;
  }
  if (op != HLO_DOT && n_red && !red.n)
    split_kept(n, n_red, tile, &tile, &red);
  const bool whole = n_red && !red.n && tile.n == n->n_loops && op == HLO_DOT;
  const bool value_shaped = n_red && tile.n == n->n_loops;
  while (op == HLO_DOT && !whole && tile.n > n_par && tile.v[0] == 1)
    tile = (struct hlo_ints){tile.n - 1, tile.v + 1};
  if ((tile.n != n_par && !value_shaped && tile.n) || (red.n != n_red && red.n))
    return false;
  for (int k = 0, p = 0, r = 0; k < n->n_loops; k++) {
    const bool reduced = n->reduction && n->reduction[k];
    out[k] = op == HLO_DOT && reduced && n->extents[k] > DOT_K_MAX ? DOT_K_MAX : n->extents[k];
    if (whole)
      out[k] = tile.v[k];
    else if (reduced && red.n)
      out[k] = red.v[r++];
    else if (!reduced && tile.n)
      out[k] = tile.v[value_shaped ? k : p++];
  }
  return true;
}

static bool fits(const struct node *n, const int64_t *tile) {
  for (int k = 0; k < n->n_loops; k++)
    if (tile[k] < 1 || tile[k] > n->extents[k])
      return false;
  return true;
}

/* Matches the dimensions of the annotated value with those of the operation's result.  at[d] is the result's dimension
 * for dimension d of the value, or -1 for a dimension of size 1 without a match.  Returns false if the shapes differ in
 * more than dimensions of size 1. */
static bool match_dims(const struct hlo_shape *s, MlirType result, int64_t at[HLO_RANK_MAX]) {
  const int rank = (int)mlirShapedTypeGetRank(result);
  int r = 0;

  bool equal = s->rank == rank;
  for (int d = 0; equal && d < rank; d++)
    equal = s->dims[d] == mlirShapedTypeGetDimSize(result, d);
  for (int d = 0; d < s->rank; d++) {
    at[d] = equal ? d : -1;
    if (equal || s->dims[d] == 1)
      continue;
    while (r < rank && mlirShapedTypeGetDimSize(result, r) == 1)
      r++;
    if (r == rank || mlirShapedTypeGetDimSize(result, r) != s->dims[d])
      return false;
    at[d] = r++;
  }
  while (r < rank && mlirShapedTypeGetDimSize(result, r) == 1)
    r++;
  return equal || r == rank;
}

/* True if the tile fits the value i, and i is a reshape of w's result to other dimensions. */
static bool is_of_regrouped(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w,
                            struct hlo_ints tile) {
  int64_t at[HLO_RANK_MAX];

  if (w->op == HLO_REDUCE || w->op == HLO_DOT || tile.n != i->shape.rank)
    return false;
  for (int k = 0; k < tile.n; k++)
    if (tile.v[k] < 1 || tile.v[k] > i->shape.dims[k])
      return false;
  return !match_dims(&i->shape, mlirValueGetType(ir_result(node_of(l, w)->work)), at);
}

/* Sets out to the knob's tile, with one entry per loop of n.  Returns false if the tile does not fit the loops. */
static bool read_loop_tile(enum hlo_op op, const struct node *n, const struct hlo_knob *knob, int64_t *out) {
  const struct hlo_knob moved = {.tile_size = knob->loop_tile};

  if (!knob->loop_tile.n)
    return interleave(op, n, knob, out) && fits(n, out);
  const struct hlo_ints given = drop_collapsed(op, n, knob->loop_tile);
  if (given.n == n->n_loops && fits(n, given.v)) {
    memcpy(out, given.v, (size_t)given.n * sizeof *out);
    return true;
  }
  return interleave(op, n, &moved, out) && fits(n, out); /* the value may have had other loops when the knob was set */
}

/* True if the knob fits the loops that the value had when the knob was set. */
static bool was_right(const struct hlo_knob *knob) {
  const struct hlo_loops *had = knob->loops;
  int64_t tile[HLO_RANK_MAX + 1];

  if (!had)
    return false;
  const struct node then = {.n_loops = had->n, .extents = had->extents, .reduction = had->reduction};
  return read_loop_tile(had->op, &then, knob, tile);
}

/* Adds an error, or only a warning if the knob fits the loops that the value had before simplification. */
static enum status refuse(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w, const struct node *n) {
  const struct hlo_knob *knob = i->knob;
  const struct hlo_ints given = knob->loop_tile.n   ? knob->loop_tile
                                : knob->tile_size.n ? knob->tile_size
                                                    : knob->reduction_tile;
  const char *kinds = "", *tile = ints_text(l, given.n, given.v), *loops = ints_text(l, n->n_loops, n->extents);

  if (was_right(knob)) {
    diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, knob->loc,
             "the tile size %s has no effect: the value became simpler and is computed by %%%s, whose loops are %s",
             tile, w->name, loops);
    return ST_OK;
  }
  for (int k = 0; k < n->n_loops; k++)
    kinds = arena_printf(l->ds->arena, "%s%s%s", kinds, k ? ", " : "",
                         n->reduction && n->reduction[k] ? "reduction" : "parallel");
  struct diag *d = diag_add(l->ds, DS_ERROR, DG_BAD_KNOB, knob->loc, "%s %s does not fit %%%s, whose loops are %s (%s)",
                            knob->loop_tile.n   ? "tile_op's tile_size"
                            : knob->tile_size.n ? "tile_size"
                                                : "reduction_tile",
                            tile, i->name, loops, kinds);
  d->hint = "give one entry per loop, each between 1 and the loop's length";
  return ST_INPUT;
}

/* ---- a reduction with a factor -------------------------------------------------------------------------- */

/* Returns the reduction whose result w multiplies or divides by a constant, as a mean does; NULL if w does not. */
static const struct hlo_instr *scaled_reduction(struct lower *l, const struct hlo_instr *w) {
  if (w->op != HLO_DIVIDE && w->op != HLO_MULTIPLY)
    return NULL;
  for (int k = 0; k < 2; k++) {
    const struct hlo_instr *x = w->operands[k], *factor = w->operands[1 - k];
    while (hlo_is_light(x) && x->op != HLO_BROADCAST)
      x = x->operands[0];
    while (hlo_is_light(factor))
      factor = factor->operands[0];
    if (x->op == HLO_REDUCE && lower_is_splat(factor) && !mlirOperationIsNull(node_of(l, x)->work))
      return x;
  }
  return NULL;
}

/* Sets out to the entries of a reduction's tile that are for w, which scales the reduction's result.  w's dimensions
 * must be the parallel loops and any number of dimensions of size 1; otherwise returns false. */
static bool tile_of_result(const struct node *n, const int64_t *tile, const struct hlo_instr *w, int64_t *out) {
  int k = 0;

  for (int d = 0; d < w->shape.rank; d++) {
    out[d] = 1;
    if (w->shape.dims[d] == 1)
      continue;
    while (k < n->n_loops && (n->reduction[k] || n->extents[k] == 1))
      k++;
    if (k == n->n_loops || n->extents[k] != w->shape.dims[d])
      return false;
    out[d] = tile[k++];
  }
  return true;
}

/* Applies a tile that does not fit w to both w and the reduction whose result w scales.  Returns false if there is no
 * such reduction, or if the tile does not fit it either. */
static bool set_scaled_tile(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w) {
  const struct hlo_instr *r = scaled_reduction(l, w);
  int64_t tile[HLO_RANK_MAX + 1], of_result[HLO_RANK_MAX + 1];

  if (!r || !read_loop_tile(r->op, node_of(l, r), i->knob, tile) || !tile_of_result(node_of(l, r), tile, w, of_result))
    return false;
  annotate_tile(l, i, r, node_of(l, r)->n_loops, tile);
  annotate_tile(l, i, w, w->shape.rank, of_result);
  return true;
}

static enum status set_loop_tile(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w) {
  const struct node *n = node_of(l, w);
  const struct hlo_knob *knob = i->knob;
  const struct hlo_ints stated = knob->loop_tile.n ? knob->loop_tile : knob->tile_size;
  int64_t tile[HLO_RANK_MAX + 1];

  if (stated.n && stated.n != n->n_loops && is_of_regrouped(l, i, w, stated)) {
    diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, knob->loc,
             "tile_size %s has no effect: the value is a reshape of %%%s, whose loops are %s",
             ints_text(l, stated.n, stated.v), w->name, ints_text(l, n->n_loops, n->extents));
    return ST_OK;
  }
  if (i->op == HLO_BROADCAST && i->shape.rank != w->shape.rank && (knob->loop_tile.n || knob->tile_size.n)) {
    diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, knob->loc,
             "this tile size has no effect: %%%s repeats the values of %%%s and has no loops of its own", i->name,
             w->name);
    return ST_OK;
  }
  if (!stated.n && !knob->reduction_tile.n)
    return ST_OK;
  if (read_loop_tile(w->op, n, knob, tile)) {
    annotate_tile(l, i, w, n->n_loops, tile);
    return ST_OK;
  }
  return set_scaled_tile(l, i, w) ? ST_OK : refuse(l, i, w, n);
}

/* ---- layout -------------------------------------------------------------------------------------------- */

static enum status check_layout(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_knob *knob = i->knob;
  const int rank = i->shape.rank;

  if (knob->layout_tile.n && knob->layout_tile.n != rank) {
    diag_add(l->ds, DS_ERROR, DG_BAD_KNOB, knob->loc, "layout's tile_size %s does not fit the value's shape %s",
             ints_text(l, knob->layout_tile.n, knob->layout_tile.v), ints_text(l, rank, i->shape.dims));
    return ST_INPUT;
  }
  if (knob->partition_dim >= rank) {
    diag_add(l->ds, DS_ERROR, DG_BAD_KNOB, knob->loc, "partition_dim %d is not a dimension of a value of rank %d",
             knob->partition_dim, rank);
    return ST_INPUT;
  }
  return ST_OK;
}

/* Returns true, and adds a warning, if the operation reduces dimension d now but did not when the knob was set. */
static bool lost_partition_dim(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w, int64_t d) {
  const struct node *n = node_of(l, w);
  const struct hlo_loops *had = i->knob->loops;
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(ir_result(n->work)));

  d = d < 0 ? 0 : d;
  if (!had || !n->reduction || n->n_loops != rank || !n->reduction[d])
    return false;
  if (had->n == i->shape.rank && had->reduction[i->knob->partition_dim])
    return false;
  diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, i->knob->loc,
           "partition_dim %d has no effect: the value became simpler and is computed by %%%s, which reduces it",
           i->knob->partition_dim, w->name);
  return true;
}

/* Adds the layout annotation.  The user gives the layout for the annotated value; the annotation gives it for the
 * operation's result.  If a reshape between them does more than insert or remove dimensions of size 1, the tile and the
 * partition dimension are omitted and will be inferred. */
static enum status set_layout(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *w) {
  const struct hlo_knob *knob = i->knob;
  MlirOperation work = node_of(l, w)->work;
  MlirType result = mlirValueGetType(ir_result(work));
  const int rank = (int)mlirShapedTypeGetRank(result);
  /* the function form's tile_size is also the layout's tile if it has an entry per dimension of the value */
  struct hlo_ints tile = knob->layout_tile.n ? knob->layout_tile : knob->tile_size;
  int64_t at[HLO_RANK_MAX], dims[HLO_RANK_MAX];
  MlirNamedAttribute attrs[3];
  int n = 0;

  enum status st = check_layout(l, i);
  if (st)
    return st;
  assert(mlirOperationGetNumResults(work) == 1);
  const bool matches = match_dims(&i->shape, result, at);
  if (knob->mem_space != MEM_NONE)
    attrs[n++] = ir_named(&l->b, "mem_space", ir_i32_attr(&l->b, knob->mem_space));
  if (knob->partition_dim >= 0 && matches && !lost_partition_dim(l, i, w, at[knob->partition_dim])) {
    int64_t d = at[knob->partition_dim];
    attrs[n++] = ir_named(&l->b, "partition_dim", ir_i32_attr(&l->b, d < 0 ? 0 : d));
  }
  if (tile.n && tile.n == i->shape.rank && matches) {
    for (int k = 0; k < rank; k++)
      dims[k] = 1;
    for (int k = 0; k < tile.n; k++)
      if (at[k] >= 0)
        dims[at[k]] = tile.v[k];
    attrs[n++] = ir_named(&l->b, "tile_size", ir_i64_array(&l->b, rank, dims));
  }
  if (n)
    annotate(l, i, w, "nkipy.layout", n, attrs);
  return ST_OK;
}

/* ---- fuse groups --------------------------------------------------------------------------------------- */

/* Emits an nkipy.fuse_op of the value with itself, which has the attribute `never`. */
static void never_fuse(struct ir_builder *b, MlirValue v) {
  const MlirNamedAttribute never = ir_named(b, "never", mlirUnitAttrGet(b->ctx));
  ir_op0_with(b, "nkipy.fuse_op", 2, (MlirValue[]){v, v}, 1, &never);
}

/* Emits one nkipy.fuse_op of the earliest value and each of the others.  Pairs are used because the values may differ
 * in shape, which a variadic operand in IRDL does not allow.  The common value is the first operand of each pair. */
static void set_fuse(struct lower *l, const struct hlo_fuse *f) {
  struct ir_builder b = l->b;
  int first = 0;

  for (int k = 0; k < f->n; k++) {
    if (f->v[k]->parent == f->v[0]->parent && working_instr(l, f->v[k]))
      continue;
    diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, f->loc, "fuse has no effect: %%%s is not computed by a loop",
             f->v[k]->name);
    return;
  }
  if (f->is_never) {
    b.loc = ir_loc_tagged(l->ir->ctx, f->v[f->n - 1]->id, src_locs_one(&l->arena, f->loc));
    for (int k = 0; k < f->n; k++)
      never_fuse(&b, ir_result(node_of(l, working_instr(l, f->v[k]))->work));
    return;
  }
  for (int k = 1; k < f->n; k++)
    first = working_instr(l, f->v[k])->id < working_instr(l, f->v[first])->id ? k : first;
  b.loc = ir_loc_tagged(l->ir->ctx, f->v[f->n - 1]->id, src_locs_one(&l->arena, f->loc));
  for (int k = 0; k < f->n; k++) {
    MlirValue pair[] = {ir_result(node_of(l, working_instr(l, f->v[first]))->work),
                        ir_result(node_of(l, working_instr(l, f->v[k]))->work)};
    if (k != first && !mlirValueEqual(pair[0], pair[1]))
      ir_op0(&b, "nkipy.fuse_op", 2, pair);
  }
}

enum status lower_knobs(struct lower *l, const struct hlo_computation *c) {
  enum status st = ST_OK;

  hlo_for_each(i, c) {
    if (!i->knob)
      continue;
    const struct hlo_instr *w = working_instr(l, i);
    if (!w) {
      if (i->op != HLO_PARAMETER && i->op != HLO_CONSTANT)
        diag_add(l->ds, DS_WARNING, DG_KNOB_IGNORED, i->knob->loc,
                 "this knob has no effect: %%%s only moves data and is not computed by a loop", i->name);
      continue;
    }
    enum status one = set_loop_tile(l, i, w);
    if (!one)
      one = set_layout(l, i, w);
    st = one ? one : st;
  }
  for (const struct hlo_fuse *f = l->module->fuses; f && !st; f = f->next)
    if (f->v[0]->parent == c)
      set_fuse(l, f);
  return st;
}
