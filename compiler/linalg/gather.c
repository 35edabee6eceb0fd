/* gather: lowers gather and scatter, which read and write at computed indices.
 *
 * A gather is a generic over its result whose body reads the operand with tensor.extract.  The components of an index
 * vector are inputs of the generic.  If all components belong to adjacent dimensions and take one element from each
 * (x[i, j]), these dimensions of the operand are merged and the components become one index, because engines gather by
 * one index.  A scatter is a loop over the index vectors.  Each iteration inserts one window, in order.  As in XLA,
 * gather clamps its start indices, and scatter skips a window that does not fit.
 */
#include <assert.h>

#include "hlo/literal.h"
#include "linalg/impl.h"

static bool contains(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

/* True if the indices are constant and component c of every index vector lies in [0, limit]. */
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
  int first, n_merged; /* n_merged dimensions of the operand, from first on, are one dimension in source */
};

static MlirValue start_index(struct ir_builder *b, const struct hlo_instr *i, int component, MlirValue x) {
  const struct hlo_instr *indices = i->operands[1];
  const int64_t dim = i->attrs->gather->start_index_map.v[component];
  const int64_t limit = i->operands[0]->shape.dims[dim] - i->attrs->gather->slice_sizes.v[dim];
  MlirValue at = scalar_to_index(b, x, indices->shape.dtype);

  if (is_known_inside(indices, i->attrs->gather->index_vector_dim, component, limit))
    return at;
  return scalar_clamp_index(b, at, limit);
}

/* Returns the loop of the result that runs over dimension `dim` of the indices. */
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
  return lower_reshape_tensor(l, v, s, rank, dims);
}

/* `at` has an index for each dimension of the operand.  Turns it into an index for each dimension of source, and
 * returns their number. */
static int merge_places(struct ir_builder *b, const struct gather_body *body, int rank, MlirValue *at) {
  const struct hlo_shape *s = &body->instr->operands[0]->shape;
  const int after = body->first + body->n_merged;

  if (body->n_merged == 1)
    return rank;
  for (int d = body->first + 1; d < after; d++) {
    MlirValue rows = ir_binary(b, "arith.muli", at[body->first], ir_index(b, s->dims[d]));
    at[body->first] = ir_binary(b, "arith.addi", rows, at[d]);
  }
  for (int d = after; d < rank; d++)
    at[d - body->n_merged + 1] = at[d];
  return rank - body->n_merged + 1;
}

static MlirValue write_gather(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct gather_body *body = user;
  const struct hlo_gather_dims *g = body->instr->attrs->gather;
  const int rank = body->instr->operands[0]->shape.rank;
  MlirValue at[HLO_RANK_MAX] = {{NULL}};

  for (int c = 0; c < g->start_index_map.n; c++)
    at[g->start_index_map.v[c]] = start_index(b, body->instr, c, args[c]);
  for (int k = 0; k < g->operand_batching_dims.n; k++)
    at[g->operand_batching_dims.v[k]] = ir_linalg_index(b, batch_loop(g, (int)g->start_indices_batching_dims.v[k]));
  for (int d = 0, o = 0; d < rank; d++) {
    if (contains(g->operand_batching_dims, d))
      continue;
    if (!contains(g->collapsed_slice_dims, d)) {
      MlirValue within = ir_linalg_index(b, (int)g->offset_dims.v[o++]);
      at[d] = mlirValueIsNull(at[d]) ? within : ir_binary(b, "arith.addi", at[d], within);
    } else if (mlirValueIsNull(at[d])) {
      at[d] = ir_index(b, 0);
    }
  }
  return ir_extract(b, body->source, merge_places(b, body, rank, at), at);
}

/* Returns the map that reads component c of the index vectors in the loops of the result. */
static MlirAffineMap component_map(struct lower *l, const struct hlo_instr *i, int c) {
  const struct hlo_gather_dims *g = i->attrs->gather;
  const int rank = i->operands[1]->shape.rank;
  int64_t results[HLO_RANK_MAX];

  for (int d = 0; d < rank; d++)
    results[d] = d == g->index_vector_dim ? IR_CONST(c) : batch_loop(g, d);
  return ir_map(&l->b, i->shape.rank, rank, results);
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
  maps[n] = ir_identity_map(&l->b, i->shape.rank);
  MlirOperation op = ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = i->shape.rank,
                                                                   .n_inputs = n,
                                                                   .inputs = inputs,
                                                                   .maps = maps,
                                                                   .output = lower_empty(l, &i->shape),
                                                                   .body = write_gather,
                                                                   .user = &body});
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

/* ---- scatter ----------------------------------------------------------------------------------------- */

/* The state of one scatter.  Only `at` changes while its loops are emitted. */
struct scatter {
  struct lower *l;
  const struct hlo_instr *instr;
  MlirValue indices, updates;
  int n_batch; /* dimensions of the indices other than index_vector_dim; the batch arrays have an entry for each */
  int64_t batch[HLO_RANK_MAX], batch_in_indices[HLO_RANK_MAX], batch_in_updates[HLO_RANK_MAX];
  int64_t window[HLO_RANK_MAX];       /* the window's shape in the operand; inserted and batching dimensions are 1 */
  int64_t update[HLO_RANK_MAX];       /* the window's shape in updates; batch dimensions are 1 */
  int64_t dims[HLO_RANK_MAX], n_dims; /* the window's shape without these dimensions */
  MlirValue const *at;                /* induction variables of the batch loops */
  bool combines;                      /* true: combine the update with the old element; false: replace it */
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

/* Returns component c of the index vector at the current batch position, as an index. */
static MlirValue scatter_index(struct ir_builder *b, const struct scatter *s, int c) {
  const struct hlo_shape *idx = &s->instr->operands[1]->shape;
  MlirValue at[HLO_RANK_MAX];

  for (int k = 0; k < s->n_batch; k++)
    at[s->batch_in_indices[k]] = s->at[k];
  if (s->instr->attrs->scatter->index_vector_dim < idx->rank)
    at[s->instr->attrs->scatter->index_vector_dim] = ir_index(b, c);
  return scalar_to_index(b, ir_extract(b, s->indices, idx->rank, at), idx->dtype);
}

/* Returns true if a dimension of the window has size 1.  The dimensions that a rank-reducing slice drops are known only
 * from the sizes in its result type, which is ambiguous if the window has a dimension of size 1.  The window then keeps
 * all dimensions. */
static bool has_unit(const struct scatter *s) {
  for (int k = 0; k < s->n_dims; k++)
    if (s->dims[k] == 1)
      return true;
  return false;
}

/* Reshapes piece from the window's shape in updates to its shape in the operand. */
static MlirValue as_window(struct ir_builder *b, const struct scatter *s, MlirValue piece) {
  const struct hlo_shape *x = &s->instr->operands[0]->shape;
  struct hlo_shape from = s->instr->operands[2]->shape;
  struct lower *l = s->l;
  const struct ir_builder outer = l->b;

  from.dims = s->update;
  l->b = *b;
  piece = lower_reshape_tensor(l, piece, &from, x->rank, s->window);
  l->b = outer;
  return piece;
}

static MlirValue write_combination(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct scatter *s = user;
  MlirValue result;
  body_write(s->l, b, s->instr->called[0], args, &result);
  return result;
}

static MlirValue combine_windows(struct ir_builder *b, const struct scatter *s, MlirValue old, MlirValue update) {
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(old));
  int64_t dims[HLO_RANK_MAX];
  MlirAffineMap id = ir_identity_map(b, rank);
  for (int k = 0; k < rank; k++)
    dims[k] = mlirShapedTypeGetDimSize(mlirValueGetType(old), k);
  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = rank,
                                                             .n_inputs = 2,
                                                             .inputs = (MlirValue[]){old, update},
                                                             .maps = (MlirAffineMap[]){id, id, id},
                                                             .output = ir_empty(b, s->instr->shape.dtype, rank, dims),
                                                             .body = write_combination,
                                                             .user = (void *)(uintptr_t)s}));
}

static MlirValue insert_window(struct ir_builder *b, const struct scatter *s, MlirValue const *start, MlirValue dest) {
  const struct hlo_shape *x = &s->instr->operands[0]->shape, *u = &s->instr->operands[2]->shape;
  const int64_t zeros[HLO_RANK_MAX] = {0};
  MlirValue from[HLO_RANK_MAX] = {{NULL}};

  for (int k = 0; k < s->n_batch; k++)
    from[s->batch_in_updates[k]] = s->at[k];
  struct ir_slice take = {.rank = u->rank, .offsets = zeros, .sizes = s->update, .dynamic = from};
  const bool clear = !has_unit(s);
  MlirType t =
      clear ? ir_tensor_type(b, u->dtype, (int)s->n_dims, s->dims) : ir_tensor_type(b, u->dtype, u->rank, s->update);
  MlirValue piece = ir_extract_slice(b, s->updates, &take, t);
  if (!clear)
    piece = as_window(b, s, piece);
  struct ir_slice put = {.rank = x->rank, .offsets = zeros, .sizes = s->window, .dynamic = start};
  if (s->combines) {
    MlirValue old = ir_extract_slice(b, dest, &put, mlirValueGetType(piece));
    piece = combine_windows(b, s, old, piece);
  }
  return ir_insert_slice(b, piece, dest, &put);
}

/* Emits: if (inside) dest with the window inserted, else dest. */
static MlirValue insert_if(struct ir_builder *b, const struct scatter *s, MlirValue inside, MlirValue const *start,
                           MlirValue dest) {
  struct ir_builder then, otherwise;
  MlirRegion regions[] = {ir_region(b, 0, NULL, &then), ir_region(b, 0, NULL, &otherwise)};
  MlirType t = mlirValueGetType(dest);

  MlirValue changed = insert_window(&then, s, start, dest);
  ir_yield(&then, 1, &changed);
  ir_yield(&otherwise, 1, &dest);
  return ir_result(ir_if(b, inside, 1, &t, regions));
}

static MlirValue scatter_one(struct ir_builder *b, const struct scatter *s, MlirValue dest) {
  const struct hlo_scatter_dims *d = s->instr->attrs->scatter;
  const struct hlo_shape *x = &s->instr->operands[0]->shape;
  MlirValue start[HLO_RANK_MAX] = {{NULL}}, inside = {NULL};

  for (int c = 0; c < d->scatter_dims_to_operand_dims.n; c++) {
    const int64_t dim = d->scatter_dims_to_operand_dims.v[c], limit = x->dims[dim] - s->window[dim];
    start[dim] = scatter_index(b, s, c);
    if (is_known_inside(s->instr->operands[1], d->index_vector_dim, c, limit))
      continue;
    /* an unsigned comparison also excludes negative indices */
    MlirValue ok = ir_cmpi(b, IR_INT_ULE, start[dim], ir_index(b, limit));
    inside = mlirValueIsNull(inside) ? ok : ir_binary(b, "arith.andi", inside, ok);
  }
  for (int i = 0; i < d->input_batching_dims.n; i++)
    for (int k = 0; k < s->n_batch; k++)
      if (s->batch_in_indices[k] == d->scatter_indices_batching_dims.v[i])
        start[d->input_batching_dims.v[i]] = s->at[k];
  if (mlirValueIsNull(inside))
    return insert_window(b, s, start, dest);
  return insert_if(b, s, inside, start, dest);
}

static void scatter_in_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  struct scatter *s = user;
  s->at = at;
  carried[0] = scatter_one(b, s, carried[0]);
}

enum status lower_scatter(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_computation *c = i->called[0];
  struct scatter s;

  const struct hlo_instr *root = c->root;
  if (root && root->op == HLO_COPY)
    root = root->operands[0];
  scatter_init(l, &s, i);
  s.combines = root->op != HLO_PARAMETER || root->attrs->parameter_number != 1;
  enum status st = s.combines ? body_check(l, i, c) : ST_OK;
  if (st)
    return st;
  MlirValue dest = lower_writable(l, i->operands[0]);
  s.indices = lower_value(l, i->operands[1]);
  s.updates = lower_value(l, i->operands[2]);
  if (hlo_shape_elements(&i->operands[2]->shape))
    ir_loop_nest(
        &l->b,
        &(struct ir_loops){.n = s.n_batch, .extents = s.batch, .n_carried = 1, .body = scatter_in_loop, .user = &s},
        &dest);
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
