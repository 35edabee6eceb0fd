/* tiles: chooses partition loops and tile sizes.  See infer_layout.c. */
#include <assert.h>

#include "passes/infer_layout/infer_layout.h"

static bool spreads_partition(const struct tiled *t) {
  return structured_is_elementwise(&t->s) || t->s.kind == SK_REDUCTION;
}

/* ---- partition loops -------------------------------------------------------------------------------------------- */

/* True if no operand is indexed by a sum of this loop and another.  Each partition would have to hold more than its
 * own part of such an operand. */
static bool is_plain(const struct tiled *t, int loop) {
  for (int o = 0; o < t->s.n_inputs; o++)
    for (int r = 0; r < mlirAffineMapGetNumResults(t->s.maps[o]); r++) {
      MlirAffineExpr x = mlirAffineMapGetResult(t->s.maps[o], r);
      if (!mlirAffineExprIsADim(x) && mlirAffineExprIsFunctionOfDim(x, loop))
        return false;
    }
  return true;
}

/* Returns the partition loop without knobs: the loop over the first dimension of the result.  For a reduction it is the
 * loop over the first dimension of the first operand, or, if that one is reduced, the longest parallel loop that is a
 * dimension of the result.  Returns -1 if there is none. */
static int default_part(const struct tiled *t) {
  const int first = t->rank ? infer_result_loop(t, 0) : -1;
  int best = -1;

  if (t->s.kind != SK_REDUCTION)
    return first;
  const int lead = t->s.n_inputs ? infer_loop(t, 0, 0) : first;
  if (lead >= 0 && !t->s.reduction[lead])
    return lead;
  for (int d = 0; d < t->rank; d++) {
    const int loop = infer_result_loop(t, d);
    if (loop >= 0 && !t->s.reduction[loop] && (best < 0 || t->s.extents[loop] > t->s.extents[best]) &&
        is_plain(t, loop))
      best = loop;
  }
  return best;
}

static enum status read_part(struct infer *f, struct tiled *t) {
  const int p = t->at.partition_dim;
  if (p < 0)
    return ST_OK;
  if (p >= t->rank)
    return infer_bad_knob(f, t->at.layout_op, "partition_dim %d is not a dimension of a value of rank %d", p, t->rank);
  if (p > 0 && !spreads_partition(t)) { /* canonicalize-partition-dim reports the error */
    t->part = infer_result_loop(t, 0);
    return ST_OK;
  }
  t->part = infer_result_loop(t, p);
  if (t->part < 0 || t->s.reduction[t->part])
    return infer_bad_knob(f, t->at.layout_op, "dimension %d is reduced; it cannot lie across the partitions", p);
  t->is_part_given = spreads_partition(t);
  t->part_knob = t->at.layout_op;
  return ST_OK;
}

/* Returns the tile size that the user gives for a loop of this operation; 0 if there is none. */
static int64_t own_tile(const struct tiled *t, int loop) {
  const int d = infer_dim(t, t->s.n_inputs, loop);
  if (t->at.n_loop == t->s.n_loops)
    return t->at.loop[loop];
  return d >= 0 && t->at.n_tile == t->rank ? t->at.tile[d] : 0;
}

/* Gives the neighbour `to` the partition loop of `from`.  Operand o of `to` is the same value as operand p of
 * `from`. */
static enum status spread(struct infer *f, const struct tiled *from, int p, struct tiled *to, int o, bool *is_new) {
  const int dim = infer_dim(from, p, from->part), loop = dim < 0 ? -1 : infer_loop(to, o, dim);

  *is_new = false;
  if (loop < 0 || to->s.reduction[loop] || !spreads_partition(to) || infer_dim(to, to->s.n_inputs, loop) < 0)
    return ST_OK;
  if (to->is_part_given) {
    const bool differ = to->part != loop && from->s.extents[from->part] > 1 && to->s.extents[to->part] > 1;
    if (differ && !mlirOperationIsNull(from->part_knob) && !mlirOperationIsNull(to->part_knob) && !to->is_boundary) {
      to->is_boundary = true;
      pass_remark(f->run, to->op, RULE_PARTITION_CHANGES,
                  "partition_dim changes here: the knobs at %s and %s differ, data is laid out anew",
                  infer_place(f, from->part_knob), infer_place(f, to->part_knob));
    }
    return ST_OK;
  }
  if (own_tile(to, loop) > NISA_PARTITIONS) { /* two knobs: each is obeyed where it is */
    if (!mlirOperationIsNull(from->part_knob) && !to->is_boundary) {
      to->is_boundary = true;
      pass_remark(f->run, to->op, RULE_PARTITION_CHANGES,
                  "the partition_dim at %s ends here: this tile of %lld is longer than the %d partitions, data is laid "
                  "out anew",
                  infer_place(f, from->part_knob), (long long)own_tile(to, loop), NISA_PARTITIONS);
    }
    return ST_OK;
  }
  to->part = loop;
  to->is_part_given = *is_new = true;
  to->part_knob = from->part_knob;
  return ST_OK;
}

struct queue {
  struct tiled **v;
  int first, n;
};

/* Spreads the partition loop of t to the operations that compute its operands and to the readers of its result. */
static enum status spread_from(struct infer *f, struct tiled *t, struct queue *q) {
  enum status st = ST_OK;
  bool is_new;

  for (int o = 0; !st && o < t->s.n_inputs; o++) {
    struct tiled *p = infer_find(f, mlirOperationGetOperand(t->op, o));
    if (!p)
      continue;
    st = spread(f, t, o, p, p->s.n_inputs, &is_new);
    if (is_new)
      q->v[q->n++] = p;
  }
  for (MlirOpOperand u = mlirValueGetFirstUse(t->value); !st && !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    const int o = (int)mlirOpOperandGetOperandNumber(u);
    struct tiled *c = mlirOperationGetNumResults(user) ? infer_find(f, mlirOperationGetResult(user, 0)) : NULL;
    if (!c || o >= c->s.n_inputs)
      continue;
    st = spread(f, t, t->s.n_inputs, c, o, &is_new);
    if (is_new)
      q->v[q->n++] = c;
  }
  return st;
}

/* ---- partition loops that we choose ------------------------------------------------------------------------------ */

bool infer_may_turn(const struct tiled *t, int loop) {
  return spreads_partition(t) && loop >= 0 && !t->s.reduction[loop] && infer_dim(t, t->s.n_inputs, loop) >= 0 &&
         is_plain(t, loop);
}

/* True if the operation computes with `part` across the partitions in the present order of its operands: a buffer's
 * partitions are its first dimension whose tile is not 1, and the loops before `part` have tiles of 1.  The last
 * dimension of a buffer is never across the partitions, unless it is the only one. */
static bool is_in_place(const struct tiled *t, int part) {
  for (int o = 0; o <= t->s.n_inputs; o++) {
    const int d = infer_dim(t, o, part), rank = (int)mlirAffineMapGetNumResults(t->s.maps[o]);
    if (d > 0 && d == rank - 1)
      return false;
    for (int k = 0; k < d; k++)
      if (infer_loop(t, o, k) > part)
        return false;
  }
  return true;
}

/* The most free dimensions of one access: an access pattern has four; many instructions with two sources take three. */
static int free_dims_max(const struct tiled *t) {
  return t->s.n_inputs == 1 && t->s.n_inits == 1 ? 4 : 3;
}

/* Sets tile[i] for every loop, with `part` across the partitions.  The loops after it are in one tile as far as it
 * holds them, from the last one on; loops before it take one step each.  A loop along which an operand is not plain,
 * and each loop of a gather, takes one step, too, unless it is the last one. */
static void vector_tile(const struct tiled *t, int part, int64_t *tile) {
  const bool is_turned = part == t->s.n_loops - 1;
  int last = t->s.n_loops - 1 - is_turned, n_free = 0;
  int64_t room = is_turned ? NISA_PARTITIONS : FREE_TILE_MAX;

  for (int i = 0; i < t->s.n_loops; i++)
    tile[i] = 1;
  if (part >= 0)
    tile[part] = NISA_PARTITIONS < t->s.extents[part] ? NISA_PARTITIONS : t->s.extents[part];
  for (int i = last; i >= 0 && i != part && room > 1 && n_free < free_dims_max(t); i--) {
    if (i < last && (is_turned || t->is_gather || !is_plain(t, i) || i < part))
      break;
    tile[i] = t->s.extents[i] < room ? t->s.extents[i] : room;
    room = tile[i] < t->s.extents[i] ? 1 : room / (tile[i] > 0 ? tile[i] : 1);
    n_free += tile[i] > 1;
  }
  infer_tile_turned(t, part, free_dims_max(t), tile);
}

double infer_steps(const struct tiled *t, int part) {
  int64_t tile[STRUCTURED_LOOPS_MAX];
  double n = 1;

  vector_tile(t, part, tile);
  for (int i = 0; i < t->s.n_loops; i++)
    n *= tile[i] > 0 ? (double)((t->s.extents[i] + tile[i] - 1) / tile[i]) : 1;
  return n;
}

enum {
  WORTH_TURNING = 4,    /* the smallest gain that is worth the transposes at the ends of a chain */
  INSTRUCTION_COST = 64 /* of an instruction without its elements, in elements per partition */
};

/* Returns a measure of the time with `part` across the partitions: an instruction takes a cycle for each element of a
 * partition, and partitions that are filled backwards get a transfer each. */
static double cost(const struct tiled *t, int part) {
  int64_t tile[STRUCTURED_LOOPS_MAX], run = 1;

  vector_tile(t, part, tile);
  for (int i = 0; i < t->s.n_loops; i++)
    run *= i == part ? 1 : tile[i];
  const int64_t each = part >= 0 && (t->backwards >> part & 1) ? tile[part] : 1;
  return infer_steps(t, part) * (double)((run + INSTRUCTION_COST) * each) * (is_in_place(t, part) ? 1 : WORTH_TURNING);
}

/* With three or more dimensions the leading one is often a short batch, which leaves most partitions idle, so a
 * longer loop replaces it.  The last loop is not chosen, so that rows stay contiguous and the copies are plain strided
 * DMA. */
static bool choose_part(struct tiled *t) {
  const int usual = default_part(t);
  int best = usual;

  if ((!spreads_partition(t) && t->s.kind != SK_BROADCAST) || t->s.n_loops < 3 || usual < 0)
    return false;
  for (int i = 0; i < t->s.n_loops - 1; i++)
    if (!t->s.reduction[i] && infer_dim(t, t->s.n_inputs, i) >= 0 && cost(t, i) < cost(t, best) && is_plain(t, i) &&
        (spreads_partition(t) || is_in_place(t, i)))
      best = i;
  if (best == usual)
    return false;
  t->part = best;
  return true;
}

enum status infer_partitions(struct infer *f) {
  struct queue q = {.v = arena_new_array(f->run->arena, struct tiled *, 2 * (size_t)f->n + 1)};
  enum status st = ST_OK;

  for (int i = 0; !st && i < f->n; i++) {
    st = read_part(f, &f->v[i]);
    if (f->v[i].is_part_given)
      q.v[q.n++] = &f->v[i];
  }
  while (!st && q.first < q.n)
    st = spread_from(f, q.v[q.first++], &q);
  assert(q.n <= f->n); /* each operation gets its loop once */
  for (int i = 0; !st && i < f->n; i++) {
    if (f->v[i].is_part_given || !choose_part(&f->v[i]))
      continue;
    f->v[i].is_part_given = true;
    q.v[q.n++] = &f->v[i];
    while (!st && q.first < q.n)
      st = spread_from(f, q.v[q.first++], &q);
  }
  for (int i = 0; !st && i < f->n; i++) {
    struct tiled *t = &f->v[i];
    if (t->part < 0)
      t->part = default_part(t);
    if (t->part < 0 && t->s.kind == SK_REDUCTION && t->s.n_loops > 1)
      st = pass_fail(f->run, t->op,
                     "every dimension is reduced, so none is left for the partitions; "
                     "prepare-arithmetic splits such reductions");
  }
  return st;
}

/* ---- limits of one operation ------------------------------------------------------------------------------------ */

static int64_t min64(int64_t x, int64_t y) {
  return x < y ? x : y;
}

static void limit(struct infer *f, const struct tiled *t, int loop, int64_t hard, int64_t soft) {
  assert(loop >= 0 && loop < t->s.n_loops);
  struct tile_var *v = &f->vars[t->var + loop];
  v->hard = min64(v->hard, hard);
  v->soft = min64(v->soft, soft);
}

/* The stationary operand has at most 128 columns, the moving one 512 (a PSUM bank); both have at most 128 rows. */
static void limit_matmul(struct infer *f, const struct tiled *t) {
  const int batch = t->s.n_loops - 3;
  static const int64_t most[] = {NISA_PARTITIONS, NISA_BANK_F32, NISA_PARTITIONS};

  for (int i = 0; i < batch; i++)
    limit(f, t, i, 1, 1);
  for (int i = 0; i < 3; i++)
    limit(f, t, batch + i, most[i], most[i]);
}

/* Returns the number of tiles of a transpose: one covers the last loop and up to 128 steps of `part`, the others take
 * one step each. */
static double copy_steps(const struct tiled *t, int part) {
  double n = 1;
  for (int i = 0; i < t->s.n_loops - 1; i++)
    n *= i == part ? (double)((t->s.extents[i] + NISA_PARTITIONS - 1) / NISA_PARTITIONS) : (double)t->s.extents[i];
  return n;
}

/* True if the last two dimensions are exchanged and the others stay: of a batch only large matrices, because the parts of small ones
 * are there sooner. */
static bool turns_matrices(const struct tiled *t) {
  if (t->rank < 2)
    return false;
  for (int d = 0; d < t->rank; d++) {
    const int to = d < t->rank - 2 ? d : 2 * t->rank - 3 - d;
    if (infer_dim(t, 1, infer_loop(t, 0, d)) != to)
      return false;
  }
  const int loops[] = {infer_result_loop(t, t->rank - 2), infer_result_loop(t, t->rank - 1)};
  return t->rank == 2 || t->s.extents[loops[0]] > TRANSPOSE_TILE_MAX || t->s.extents[loops[1]] > TRANSPOSE_TILE_MAX;
}

/* Tiles of a transpose are two-dimensional: the last dimensions of the result and of the operand, at most 128 each.
 * Those of a matrix, and of large ones in a batch, are longer, so that its rows are read and written in runs of 2 KiB; legalize-layout cuts such a tile
 * into parts of 128 rows and columns.  If the last dimension stays last, the transpose is a copy in another order; its tiles extend along the last dimension
 * and the one that fills most partitions. */
static void limit_transpose(struct infer *f, const struct tiled *t) {
  const int last = t->rank - 1, was_last = last < 0 ? -1 : infer_dim(t, 1, infer_loop(t, 0, last));
  int across = 0;

  if (t->at.partition_dim > 0) /* canonicalize-partition-dim puts it first */
    limit(f, t, infer_result_loop(t, t->at.partition_dim), NISA_PARTITIONS, NISA_PARTITIONS);
  if (turns_matrices(t) && !t->at.n_loop && !t->at.n_tile) {
    for (int d = 0; d < t->rank; d++)
      limit(f, t, infer_result_loop(t, d), INT64_MAX, d < t->rank - 2 ? 1 : TRANSPOSE_TILE_MAX);
    return;
  }
  for (int d = 1; d < last; d++)
    if (copy_steps(t, infer_result_loop(t, d)) < copy_steps(t, infer_result_loop(t, across)))
      across = d;

  for (int d = 0; d < t->rank; d++) {
    const int loop = infer_result_loop(t, d);
    if (was_last != last)
      limit(f, t, loop, d == 0 || loop == infer_loop(t, 0, 0) ? NISA_PARTITIONS : INT64_MAX,
            d == last || d == was_last ? NISA_PARTITIONS : 1);
    else
      limit(f, t, loop, d == 0 || d == across ? NISA_PARTITIONS : INT64_MAX,
            d == across ? NISA_PARTITIONS
            : d == last ? FREE_TILE_MAX
                        : 1);
  }
}

/* The partition loop takes up to 128, the loops after it a long run.  If the last loop is the partition loop, the
 * operands will be transposed in tiles of at most 128 rows and columns. */
static void limit_vector(struct infer *f, const struct tiled *t) {
  int64_t tile[STRUCTURED_LOOPS_MAX];

  vector_tile(t, t->part, tile);
  for (int i = 0; i < t->s.n_loops; i++)
    limit(f, t, i, i == t->part ? NISA_PARTITIONS : INT64_MAX,
          i == t->part && tile[i] < NISA_PARTITIONS ? NISA_PARTITIONS : tile[i]);
}

static void limit_operation(struct infer *f, const struct tiled *t) {
  for (int i = 0; i < t->s.n_loops; i++)
    f->vars[t->var + i] =
        (struct tile_var){.parent = t->var + i, .extent = t->s.extents[i], .hard = INT64_MAX, .soft = INT64_MAX};
  if (t->s.kind == SK_MATMUL || t->s.kind == SK_BATCH_MATMUL)
    limit_matmul(f, t);
  else if (t->s.kind == SK_TRANSPOSE)
    limit_transpose(f, t);
  else
    limit_vector(f, t);
}

/* ---- the user's sizes ------------------------------------------------------------------------------------------- */

static const char *kind_name(const struct tiled *t, int loop) {
  static const char *const matmul[] = {"M", "N", "K"};
  if (t->s.kind == SK_MATMUL)
    return matmul[loop];
  return loop == t->part ? "partition" : "free";
}

static enum status give(struct infer *f, const struct tiled *t, int loop, int64_t size, MlirOperation knob) {
  struct tile_var *v = &f->vars[t->var + loop];
  if (size < 1)
    return infer_bad_knob(f, knob, "a tile size of %lld is not possible", (long long)size);
  if (size > v->hard)
    return infer_bad_knob(f, knob, "tile size %lld along the %s dimension exceeds the hardware limit of %lld",
                          (long long)size, kind_name(t, loop), (long long)v->hard);
  v->user = size;
  v->knob = knob;
  return ST_OK;
}

/* Cuts a tile of a transpose along the operand's first dimension to 128, because that dimension is on the partitions;
 * the user may regard it as a free one. */
static void cut_transpose(struct infer *f, struct tiled *t) {
  const int loop = t->s.kind == SK_TRANSPOSE ? infer_loop(t, 0, 0) : -1;
  const int dim = infer_dim(t, t->s.n_inputs, loop);
  struct layout *l = &t->at;
  MlirOperation knob = {NULL};
  int64_t size = 0;

  if (dim <= 0)
    return;
  const bool is_cut = l->n_loop == t->s.n_loops && l->loop[loop] <= NISA_PARTITIONS; /* and the tile holds several */
  if (l->n_tile == t->rank && l->tile[dim] > NISA_PARTITIONS && !is_cut) {
    size = l->tile[dim];
    l->tile[dim] = NISA_PARTITIONS;
    knob = l->layout_op;
  }
  if (l->n_loop == t->s.n_loops && l->loop[loop] > NISA_PARTITIONS) {
    size = l->loop[loop];
    l->loop[loop] = NISA_PARTITIONS;
    knob = l->tile_op;
  }
  if (size)
    infer_warn_knob(f, knob,
                    "tile size %lld along dimension %d is cut to %d: what this transposes lies across the "
                    "partitions there",
                    (long long)size, dim, NISA_PARTITIONS);
}

/* Reads the user's sizes: the tile_op gives them per loop, and the layout per dimension of the value. */
static enum status read_tiles(struct infer *f, const struct tiled *t) {
  enum status st = ST_OK;
  const struct layout *l = &t->at;

  if (l->n_loop && l->n_loop != t->s.n_loops)
    return infer_bad_knob(f, l->tile_op, "loop_tile_size %s has %d entries, but the operation has %d loops",
                          layout_ints(f->run->arena, l->n_loop, l->loop), l->n_loop, t->s.n_loops);
  if (l->n_tile && l->n_tile != t->rank)
    return infer_bad_knob(f, l->layout_op, "tile_size %s has %d entries, but the value has rank %d",
                          layout_ints(f->run->arena, l->n_tile, l->tile), l->n_tile, t->rank);
  for (int i = 0; !st && i < l->n_loop; i++)
    st = give(f, t, i, l->loop[i], l->tile_op);
  for (int d = 0; !st && d < l->n_tile; d++) {
    const int loop = infer_result_loop(t, d);
    if (loop < 0)
      continue;
    const int64_t had = f->vars[t->var + loop].user, now = l->tile[d];
    if (!had)
      st = give(f, t, loop, now, l->layout_op);
    else if (now < 1 || (now > had ? now % had : had % now))
      st = infer_bad_knob(f, l->layout_op, "incompatible tile_size: %lld here and %lld in the tile_op at %s",
                          (long long)now, (long long)had, infer_place(f, l->tile_op));
  }
  return st;
}

/* ---- merging ---------------------------------------------------------------------------------------------------- */

static int root_of(const struct infer *f, int v) {
  while (f->vars[v].parent != v)
    v = f->vars[v].parent = f->vars[f->vars[v].parent].parent;
  return v;
}

/* Gives both loops one tile size, if their limits and the user's sizes allow it.  A size given by the user never
 * changes. */
static enum status merge(struct infer *f, int x, int y) {
  struct tile_var *a = &f->vars[root_of(f, x)], *b = &f->vars[root_of(f, y)];

  if (a == b || a->extent != b->extent)
    return ST_OK;
  if (a->user && b->user && a->user != b->user)
    return ST_OK; /* both sizes stay: the value is not passed on tile by tile */
  const struct tile_var *given = a->user ? a : b;
  const int64_t hard = min64(a->hard, b->hard);
  if (given->user > hard)
    return ST_OK;
  a->user = given->user;
  a->knob = given->knob;
  a->hard = hard;
  a->soft = min64(a->soft, b->soft);
  b->parent = (int)(a - f->vars);
  return ST_OK;
}

/* False for a broadcast and for a transpose of more than two dimensions: they move data between partitions, so they
 * read from HBM in their own tiles. */
static bool reads_tiles(const struct tiled *t) {
  return t->s.kind != SK_BROADCAST && !(t->s.kind == SK_TRANSPOSE && t->rank > 2);
}

/* True if a product reads so large a value that it comes from HBM: the product reads blocks of it there, whatever the tiles in
 * which it was written, and would only make these short. */
static bool reads_blocks(const struct infer *f, const struct tiled *p, const struct tiled *c) {
  return (c->s.kind == SK_MATMUL || c->s.kind == SK_BATCH_MATMUL) && infer_is_too_large(f, p);
}

static bool has_few_steps(const struct infer *f, int var) {
  enum { FEW = NISA_PARTITIONS / 4 };
  const struct tile_var *v = &f->vars[root_of(f, var)];
  const int64_t tile = min64(v->hard, v->soft);
  return !v->user && tile <= FEW && tile < v->extent;
}

/* True if one tile size would leave few partitions: loop x of p, whose result c reads by loop y, lies across the partitions, and the
 * other operation takes few steps at a time along it, as a maximum over the channels of an image does.  The value goes through
 * HBM. */
static bool leaves_few_partitions(const struct infer *f, const struct tiled *p, int x, const struct tiled *c, int y) {
  return (x == p->part && y != c->part && has_few_steps(f, c->var + y)) ||
         (y == c->part && x != p->part && has_few_steps(f, p->var + x));
}

/* The tiles of a product are added to those of the product before it, in PSUM. */
static enum status merge_sums(struct infer *f, const struct tiled *c) {
  const struct tiled *p = c->s.kind == SK_MATMUL ? infer_find(f, mlirOperationGetOperand(c->op, 2)) : NULL;
  enum status st = ST_OK;

  for (int l = 0; p && p->s.kind == SK_MATMUL && !st && l < 2; l++)
    st = merge(f, p->var + l, c->var + l);
  return st;
}

static enum status merge_reads(struct infer *f, const struct tiled *c) {
  enum status st = ST_OK;

  for (int o = 0; reads_tiles(c) && o < c->s.n_inputs; o++) {
    const struct tiled *p = infer_find(f, mlirOperationGetOperand(c->op, o));
    const bool is_apart = p && reads_blocks(f, p, c);
    for (int d = 0; p && !st && d < p->rank; d++) {
      const int x = infer_result_loop(p, d), y = infer_loop(c, o, d);
      if (x >= 0 && y >= 0 && !leaves_few_partitions(f, p, x, c, y) &&
          (!is_apart || x == p->part || f->vars[root_of(f, p->var + x)].user || f->vars[root_of(f, c->var + y)].user))
        st = merge(f, p->var + x, c->var + y);
    }
  }
  return st;
}

int64_t infer_given_tile(const struct infer *f, const struct tiled *t, int loop) {
  return f->vars[root_of(f, t->var + loop)].user;
}

int64_t infer_tile(const struct infer *f, const struct tiled *t, int loop) {
  assert(loop >= 0 && loop < t->s.n_loops);
  const struct tile_var *v = &f->vars[root_of(f, t->var + loop)];
  const int64_t most = min64(v->hard, v->soft);

  if (v->user) /* knob-driven-tiling reports a size that is too large, at the operation that has it */
    return t->at.n_loop || t->at.n_tile ? v->user : min64(v->user, v->extent);
  if (v->extent <= most)
    return v->extent > 0 ? v->extent : 1;
  /* use as few tiles as possible; along a long free dimension use equal ones if the extent divides evenly */
  const int64_t n = (v->extent + most - 1) / most;
  return most > NISA_BANK_F32 && v->extent % n == 0 ? v->extent / n : most;
}

enum status infer_tiles(struct infer *f) {
  enum status st = ST_OK;

  for (int i = 0; i < f->n; i++)
    limit_operation(f, &f->v[i]);
  for (int i = 0; !st && i < f->n; i++) {
    cut_transpose(f, &f->v[i]);
    st = read_tiles(f, &f->v[i]);
  }
  for (int i = 0; !st && i < f->n; i++)
    st = merge_reads(f, &f->v[i]);
  for (int i = 0; !st && i < f->n; i++)
    st = merge_sums(f, &f->v[i]);
  return st;
}
