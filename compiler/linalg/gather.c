/* gather, scatter: reading and writing at computed places.
 *
 * A gather is a generic over its result whose body reads the operand with tensor.extract; the parts of an index
 * vector are inputs of the generic.  Parts for neighbouring dimensions of which a single element is taken (x[i, j])
 * become one index into the operand with these dimensions merged: engines gather by one.  A scatter is a loop over the
 * index vectors that inserts one window each, in order.  As in XLA, gather clamps its start indices, and scatter skips
 * a window that does not fit.
 */
#include "hlo/literal.h"
#include "linalg/impl.h"

static bool contains(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

/* True if component c of every index vector of a constant lies in [0, limit]. */
static bool is_known_inside(const struct hlo_instr *indices, int64_t vector_dim, int64_t c, int64_t limit) {
  const struct hlo_shape *s = &indices->shape;
  int64_t inner = 1, n = hlo_shape_elements(s);

  if (indices->op != HLO_CONSTANT || !dtype_is_int(s->dtype))
    return false;
  for (int d = s->rank - 1; d > vector_dim; d--)
    inner *= s->dims[d];
  const int64_t length = vector_dim < s->rank ? s->dims[vector_dim] : 1;
  for (int64_t k = 0; k < n; k++) {
    if (k / inner % length != c)
      continue;
    int64_t v = hlo_literal_int(indices->attrs->literal, (size_t)k);
    if (v < 0 || v > limit)
      return false;
  }
  return true;
}

/* ---- gather ------------------------------------------------------------------------------------------ */

struct gather_body {
  const struct hlo_instr *instr;
  MlirValue source;
  int first, n_merged; /* dimensions of the operand that are one in source */
};

static MlirValue start_index(struct emit *e, const struct hlo_instr *i, int component, MlirValue x) {
  const struct hlo_instr *indices = i->operands[1];
  const int64_t dim = i->attrs->gather->start_index_map.v[component];
  const int64_t limit = i->operands[0]->shape.dims[dim] - i->attrs->gather->slice_sizes.v[dim];
  MlirValue at = scalar_to_index(e, x, indices->shape.dtype);

  if (is_known_inside(indices, i->attrs->gather->index_vector_dim, component, limit))
    return at;
  return scalar_clamp_index(e, at, limit);
}

/* The loop of the result that runs over dimension `dim` of the indices. */
static int batch_loop(const struct hlo_gather_dims *g, int dim) {
  int loop = 0;
  for (int d = 0;; d++) {
    if (d == g->index_vector_dim)
      continue;
    while (contains(g->offset_dims, loop))
      loop++;
    if (d == dim)
      return loop;
    loop++;
  }
}

/* Sets first and n_merged. */
static void find_merged(struct gather_body *b) {
  const struct hlo_gather_dims *g = b->instr->attrs->gather;
  const int n = g->start_index_map.n, rank = b->instr->operands[0]->shape.rank;
  int64_t first = rank, last = -1;

  b->n_merged = 1;
  for (int c = 0; c < n; c++) {
    const int64_t d = g->start_index_map.v[c];
    first = d < first ? d : first;
    last = d > last ? d : last;
    if (!contains(g->collapsed_slice_dims, d) || g->slice_sizes.v[d] != 1)
      return;
  }
  if (n > 1 && last - first + 1 == n) {
    b->first = (int)first;
    b->n_merged = n;
  }
}

static MlirValue merged_source(struct lower *l, const struct gather_body *b) {
  const struct hlo_shape *s = &b->instr->operands[0]->shape;
  MlirValue v = lower_value(l, b->instr->operands[0]);
  int64_t dims[HLO_RANK_MAX];
  int rank = 0;

  if (b->n_merged == 1)
    return v;
  for (int d = 0; d < s->rank; d++) {
    if (d > b->first && d < b->first + b->n_merged)
      dims[rank - 1] *= s->dims[d];
    else
      dims[rank++] = s->dims[d];
  }
  return reshape_tensor(l, v, s, rank, dims);
}

/* at[rank], by the operand's dimensions, as by source's; their number. */
static int merge_places(struct emit *e, const struct gather_body *b, int rank, MlirValue *at) {
  const struct hlo_shape *s = &b->instr->operands[0]->shape;
  const int behind = b->first + b->n_merged;

  if (b->n_merged == 1)
    return rank;
  for (int d = b->first + 1; d < behind; d++) {
    MlirValue rows = emit_binary(e, "arith.muli", at[b->first], emit_index(e, s->dims[d]));
    at[b->first] = emit_binary(e, "arith.addi", rows, at[d]);
  }
  for (int d = behind; d < rank; d++)
    at[d - b->n_merged + 1] = at[d];
  return rank - b->n_merged + 1;
}

static MlirValue write_gather(struct emit *e, MlirValue const *args, void *user) {
  const struct gather_body *b = user;
  const struct hlo_gather_dims *g = b->instr->attrs->gather;
  const int rank = b->instr->operands[0]->shape.rank;
  MlirValue at[HLO_RANK_MAX] = {{NULL}};

  for (int c = 0; c < g->start_index_map.n; c++)
    at[g->start_index_map.v[c]] = start_index(e, b->instr, c, args[c]);
  for (int k = 0; k < g->operand_batching_dims.n; k++)
    at[g->operand_batching_dims.v[k]] = emit_linalg_index(e, batch_loop(g, (int)g->start_indices_batching_dims.v[k]));
  for (int d = 0, o = 0; d < rank; d++) {
    if (contains(g->operand_batching_dims, d))
      continue;
    if (!contains(g->collapsed_slice_dims, d)) {
      MlirValue within = emit_linalg_index(e, (int)g->offset_dims.v[o++]);
      at[d] = mlirValueIsNull(at[d]) ? within : emit_binary(e, "arith.addi", at[d], within);
    } else if (mlirValueIsNull(at[d])) {
      at[d] = emit_index(e, 0);
    }
  }
  return emit_extract(e, b->source, merge_places(e, b, rank, at), at);
}

/* Component c of the index vectors, by the result's batch loops. */
static MlirAffineMap component_map(struct lower *l, const struct hlo_instr *i, int c) {
  const struct hlo_gather_dims *g = i->attrs->gather;
  const int rank = i->operands[1]->shape.rank;
  int64_t results[HLO_RANK_MAX];

  for (int d = 0; d < rank; d++)
    results[d] = d == g->index_vector_dim ? EMIT_CONST(c) : batch_loop(g, d);
  return emit_map(&l->e, i->shape.rank, rank, results);
}

enum status lower_gather(struct lower *l, const struct hlo_instr *i) {
  struct gather_body body = {.instr = i};
  MlirValue inputs[HLO_RANK_MAX];
  MlirAffineMap maps[HLO_RANK_MAX + 1];
  const int n = i->attrs->gather->start_index_map.n;

  if (hlo_shape_elements(&i->operands[0]->shape) == 0 && hlo_shape_elements(&i->shape) != 0)
    return lower_refuse(l, i, "it reads from a tensor without elements");
  find_merged(&body);
  body.source = merged_source(l, &body);
  for (int c = 0; c < n; c++) {
    inputs[c] = lower_value(l, i->operands[1]);
    maps[c] = component_map(l, i, c);
  }
  maps[n] = emit_identity_map(&l->e, i->shape.rank);
  MlirOperation op = emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = i->shape.rank,
                                                                       .n_inputs = n,
                                                                       .inputs = inputs,
                                                                       .maps = maps,
                                                                       .output = lower_empty(l, &i->shape),
                                                                       .body = write_gather,
                                                                       .user = &body});
  lower_set(l, i, emit_result(op), op);
  return ST_OK;
}

/* ---- scatter ----------------------------------------------------------------------------------------- */

/* Everything about one scatter that does not change from loop to loop. */
struct scatter {
  struct lower *l;
  const struct hlo_instr *instr;
  MlirValue indices, updates;
  int n_batch; /* dimensions of the index vectors' space */
  int64_t batch[HLO_RANK_MAX], batch_in_indices[HLO_RANK_MAX], batch_in_updates[HLO_RANK_MAX];
  int64_t window[HLO_RANK_MAX];       /* the window in the operand: 1 where a dimension is inserted */
  int64_t update[HLO_RANK_MAX];       /* the window in updates: 1 in the batch dimensions */
  int64_t dims[HLO_RANK_MAX], n_dims; /* window without the inserted dimensions */
  MlirValue at[HLO_RANK_MAX];         /* the batch loops' variables */
  bool combines;                      /* the update with what is there; otherwise it takes its place */
};

static void scatter_init(struct lower *l, struct scatter *s, const struct hlo_instr *i) {
  const struct hlo_scatter_dims *d = i->attrs->scatter;
  const struct hlo_shape *x = &i->operands[0]->shape, *idx = &i->operands[1]->shape, *u = &i->operands[2]->shape;

  *s = (struct scatter){.l = l, .instr = i};
  for (int k = 0, b = 0; k < idx->rank; k++)
    if (k != d->index_vector_dim) {
      s->batch[b] = idx->dims[k];
      s->batch_in_indices[b++] = k;
      s->n_batch = b;
    }
  for (int k = 0, b = 0; k < u->rank; k++) {
    const bool in_window = contains(d->update_window_dims, k);
    s->update[k] = in_window ? u->dims[k] : 1;
    if (in_window)
      s->dims[s->n_dims++] = u->dims[k];
    else
      s->batch_in_updates[b++] = k;
  }
  for (int k = 0, w = 0; k < x->rank; k++)
    s->window[k] = contains(d->inserted_window_dims, k) || contains(d->input_batching_dims, k) ? 1 : s->dims[w++];
}

/* Component c of the index vector at the current batch position, as an index. */
static MlirValue scatter_index(struct emit *e, const struct scatter *s, int c) {
  const struct hlo_shape *idx = &s->instr->operands[1]->shape;
  MlirValue at[HLO_RANK_MAX];

  for (int b = 0; b < s->n_batch; b++)
    at[s->batch_in_indices[b]] = s->at[b];
  if (s->instr->attrs->scatter->index_vector_dim < idx->rank)
    at[s->instr->attrs->scatter->index_vector_dim] = emit_index(e, c);
  return scalar_to_index(e, emit_extract(e, s->indices, idx->rank, at), idx->dtype);
}

/* A slice of fewer dimensions says by its sizes alone which ones it leaves out.  With a dimension of size 1 in the window
 * that is ambiguous, and the window keeps all of them. */
static bool has_unit(const struct scatter *s) {
  for (int k = 0; k < s->n_dims; k++)
    if (s->dims[k] == 1)
      return true;
  return false;
}

/* piece, of the window's shape in updates, in its shape in the operand. */
static MlirValue as_window(struct emit *e, const struct scatter *s, MlirValue piece) {
  const struct hlo_shape *x = &s->instr->operands[0]->shape;
  struct hlo_shape from = s->instr->operands[2]->shape;
  struct lower *l = s->l;
  const struct emit outer = l->e;

  from.dims = s->update;
  l->e = *e;
  piece = reshape_tensor(l, piece, &from, x->rank, s->window);
  l->e = outer;
  return piece;
}

static MlirValue write_combination(struct emit *e, MlirValue const *args, void *user) {
  const struct scatter *s = user;
  MlirValue result;
  inline_computation(s->l, e, s->instr->called[0], args, &result);
  return result;
}

static MlirValue combine_windows(struct emit *e, const struct scatter *s, MlirValue old, MlirValue update) {
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(old));
  int64_t dims[HLO_RANK_MAX];
  MlirAffineMap id = emit_identity_map(e, rank);
  for (int k = 0; k < rank; k++)
    dims[k] = mlirShapedTypeGetDimSize(mlirValueGetType(old), k);
  return emit_result(
      emit_linalg_generic(e, &(struct emit_generic){.n_loops = rank,
                                                    .n_inputs = 2,
                                                    .inputs = (MlirValue[]){old, update},
                                                    .maps = (MlirAffineMap[]){id, id, id},
                                                    .output = emit_empty(e, s->instr->shape.dtype, rank, dims),
                                                    .body = write_combination,
                                                    .user = (void *)(uintptr_t)s}));
}

static MlirValue insert_window(struct emit *e, const struct scatter *s, MlirValue const *start, MlirValue dest) {
  const struct hlo_shape *x = &s->instr->operands[0]->shape, *u = &s->instr->operands[2]->shape;
  const int64_t zeros[HLO_RANK_MAX] = {0};
  MlirValue from[HLO_RANK_MAX] = {{NULL}};

  for (int b = 0; b < s->n_batch; b++)
    from[s->batch_in_updates[b]] = s->at[b];
  struct emit_slice take = {.rank = u->rank, .offsets = zeros, .sizes = s->update, .dynamic = from};
  const bool clear = !has_unit(s);
  MlirType t = clear ? emit_tensor_type(e, u->dtype, (int)s->n_dims, s->dims)
                     : emit_tensor_type(e, u->dtype, u->rank, s->update);
  MlirValue piece = emit_extract_slice(e, s->updates, &take, t);
  if (!clear)
    piece = as_window(e, s, piece);
  struct emit_slice put = {.rank = x->rank, .offsets = zeros, .sizes = s->window, .dynamic = start};
  if (s->combines) {
    MlirValue old = emit_extract_slice(e, dest, &put, mlirValueGetType(piece));
    piece = combine_windows(e, s, old, piece);
  }
  return emit_insert_slice(e, piece, dest, &put);
}

static MlirBlock region_block(MlirRegion r, int n, MlirType const *types, MlirLocation loc) {
  MlirLocation locs[2] = {loc, loc};
  MlirBlock b = mlirBlockCreate(n, types, locs);
  mlirRegionAppendOwnedBlock(r, b);
  return b;
}

static void yield(struct emit *e, MlirValue v) {
  emit_operation(e, &(struct emit_op){.name = "scf.yield", .n_operands = 1, .operands = &v});
}

/* if (inside) dest with the window, else dest */
static MlirValue insert_if(struct emit *e, const struct scatter *s, MlirValue inside, MlirValue const *start,
                           MlirValue dest) {
  MlirRegion regions[] = {mlirRegionCreate(), mlirRegionCreate()};
  MlirType t = mlirValueGetType(dest);
  struct emit then = *e, otherwise = *e;

  then.block = region_block(regions[0], 0, NULL, e->loc);
  yield(&then, insert_window(&then, s, start, dest));
  otherwise.block = region_block(regions[1], 0, NULL, e->loc);
  yield(&otherwise, dest);
  return emit_result(emit_operation(e, &(struct emit_op){.name = "scf.if",
                                                         .n_operands = 1,
                                                         .operands = &inside,
                                                         .n_results = 1,
                                                         .results = &t,
                                                         .n_regions = 2,
                                                         .regions = regions}));
}

static MlirValue scatter_one(struct emit *e, const struct scatter *s, MlirValue dest) {
  const struct hlo_scatter_dims *d = s->instr->attrs->scatter;
  const struct hlo_shape *x = &s->instr->operands[0]->shape;
  MlirValue start[HLO_RANK_MAX] = {{NULL}}, inside = {NULL};

  for (int c = 0; c < d->scatter_dims_to_operand_dims.n; c++) {
    const int64_t dim = d->scatter_dims_to_operand_dims.v[c], limit = x->dims[dim] - s->window[dim];
    start[dim] = scatter_index(e, s, c);
    if (is_known_inside(s->instr->operands[1], d->index_vector_dim, c, limit))
      continue;
    /* one unsigned comparison also catches negative indices */
    MlirValue ok = emit_cmpi(e, INT_ULE, start[dim], emit_index(e, limit));
    inside = mlirValueIsNull(inside) ? ok : emit_binary(e, "arith.andi", inside, ok);
  }
  for (int b = 0; b < d->input_batching_dims.n; b++)
    for (int k = 0; k < s->n_batch; k++)
      if (s->batch_in_indices[k] == d->scatter_indices_batching_dims.v[b])
        start[d->input_batching_dims.v[b]] = s->at[k];
  if (mlirValueIsNull(inside))
    return insert_window(e, s, start, dest);
  return insert_if(e, s, inside, start, dest);
}

static MlirValue scatter_loop(struct emit *e, struct scatter *s, int depth, MlirValue dest) {
  if (depth == s->n_batch)
    return scatter_one(e, s, dest);

  MlirValue operands[] = {emit_index(e, 0), emit_index(e, s->batch[depth]), emit_index(e, 1), dest};
  MlirType types[] = {emit_index_type(e), mlirValueGetType(dest)};
  MlirRegion region = mlirRegionCreate();
  struct emit body = *e;

  body.block = region_block(region, 2, types, e->loc);
  s->at[depth] = mlirBlockGetArgument(body.block, 0);
  yield(&body, scatter_loop(&body, s, depth + 1, mlirBlockGetArgument(body.block, 1)));
  return emit_result(emit_operation(e, &(struct emit_op){.name = "scf.for",
                                                         .n_operands = 4,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = types + 1,
                                                         .n_regions = 1,
                                                         .regions = &region}));
}

enum status lower_scatter(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_computation *c = i->called[0];
  struct scatter s;

  const struct hlo_instr *root = c->root;
  if (root && root->op == HLO_COPY)
    root = root->operands[0];
  scatter_init(l, &s, i);
  s.combines = root->op != HLO_PARAMETER || root->attrs->parameter_number != 1;
  enum status st = s.combines ? inline_check(l, i, c) : ST_OK;
  if (st)
    return st;
  MlirValue dest = writable_tensor(l, i->operands[0]);
  s.indices = lower_value(l, i->operands[1]);
  s.updates = lower_value(l, i->operands[2]);
  if (hlo_shape_elements(&i->operands[2]->shape))
    dest = scatter_loop(&l->e, &s, 0, dest);
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
