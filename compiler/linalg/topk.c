/* topk: lowers the k largest or smallest elements of each row to a call of a function without a body.
 *
 *     func.func private @topk(tensor<1024x2048xf32>) -> (tensor<1024x8xf32>, tensor<1024x8xi32>) attributes {nkipy.topk = {k = 8}}
 *
 *     k            i64: the results of each row
 *     smallest     present if they are the smallest ones, the smallest first; otherwise the largest, the largest first
 *     backwards    present if the results are in the opposite order, and of equal elements the later ones are taken; otherwise
 *                  the earlier ones
 *     total        present if the order is the total order of floats, in which -0 is below 0
 *
 * The results are the elements and their places.  The call passes through every stage unchanged and becomes max8, find_index8 and
 * match_replace8 (passes/linalg_to_nisa/topk.c); the interpreter computes it (interp/topk.c).
 *
 *     topk(x, k)                      k
 *     topk(-x, k)                     smallest, and the elements are negated
 *     sort(x)[…, -k:]                 backwards
 *     argsort(x)[…, -k:]              the largest of x reversed, of which the places are counted from the end; in the opposite order
 *     sort(x)[…, :k]                  smallest; with another operand 0, 1, 2 … the places, as of an argsort
 *
 * This takes about 3 k / 8 passes over a row.  Comparing all pairs (order.c) takes a pass for each element, but it is exact: it keeps
 * NaN, which NumPy sorts to the end and max8 leaves out, and zeros of both signs apart, as in the total order.  These are compared:
 *   - short rows,
 *   - rows of which topk takes more than a quarter, which may reach the zeros,
 *   - integers, which the Vector engine would round,
 *   - what max8 does not take.
 */
#include <string.h>

#include "linalg/impl.h"

enum { ROW_LEAST = 33, ROW_MOST = 16384, K_MOST = 64 };

bool topk_takes(const struct hlo_shape *x, int axis, int64_t k) {
  return (x->dtype == DT_F32 || x->dtype == DT_BF16 || x->dtype == DT_F16) && axis == x->rank - 1 && k >= 1 &&
         k <= K_MOST && x->dims[axis] >= ROW_LEAST && x->dims[axis] <= ROW_MOST && hlo_shape_elements(x) > 0;
}

void topk_call(struct lower *l, const struct topk *t, MlirValue *out) {
  const int rank = t->x->rank;
  const int64_t n = t->x->dims[rank - 1], rows = hlo_shape_elements(t->x) / n;
  const int64_t from[] = {rows, n}, to[] = {rows, t->k};
  int64_t dims[HLO_RANK_MAX];
  MlirNamedAttribute v[4];
  int n_attrs = 0;
  MlirType types[] = {ir_tensor_type(&l->b, t->x->dtype, 2, from), ir_tensor_type(&l->b, t->x->dtype, 2, to),
                      ir_tensor_type(&l->b, DT_I32, 2, to)};

  v[n_attrs++] = ir_named(&l->b, "k", ir_i64_attr(&l->b, t->k));
  if (t->is_smallest)
    v[n_attrs++] = ir_named(&l->b, "smallest", mlirUnitAttrGet(l->b.ctx));
  if (t->is_backwards)
    v[n_attrs++] = ir_named(&l->b, "backwards", mlirUnitAttrGet(l->b.ctx));
  if (t->is_total)
    v[n_attrs++] = ir_named(&l->b, "total", mlirUnitAttrGet(l->b.ctx));
  struct lower_target target = {.symbol = "topk",
                                .what_name = "nkipy.topk",
                                .what = mlirDictionaryAttrGet(l->b.ctx, n_attrs, v),
                                .type = mlirFunctionTypeGet(l->b.ctx, 1, types, 2, types + 1)};
  MlirNamedAttribute callee = ir_named(&l->b, "callee", lower_declare(l, &target));
  MlirValue x = lower_reshape_tensor(l, t->value, t->x, 2, from);
  MlirOperation op = ir_create(&l->b, &(struct ir_parts){.name = "func.call",
                                                         .n_operands = 1,
                                                         .operands = &x,
                                                         .n_results = 2,
                                                         .results = types + 1,
                                                         .n_attrs = 1,
                                                         .attrs = &callee});
  memcpy(dims, t->x->dims, (size_t)rank * sizeof *dims);
  dims[rank - 1] = t->k;
  for (int k = 0; k < 2; k++) {
    const struct hlo_shape made = {.dtype = k ? DT_I32 : t->x->dtype, .rank = 2, .dims = to};
    out[k] = lower_reshape_tensor(l, mlirOperationGetResult(op, k), &made, rank, dims);
  }
}

/* ---- sorts of which a part is read ------------------------------------------------------------------------------- */

/* True if c puts a smaller (is_descending: larger) first element before, where zeros of both signs and NaNs of all kinds are the
 * same. */
static bool is_plain_order(const struct hlo_computation *c, bool *is_descending) {
  const struct hlo_instr *r = c->root, *x, *y;
  if (r->op != HLO_COMPARE || (r->attrs->direction != HLO_LT && r->attrs->direction != HLO_GT))
    return false;
  if (!scalar_plain_order(r, &x, &y)) {
    x = r->operands[0];
    y = r->operands[1];
  }
  if (x->op != HLO_PARAMETER || y->op != HLO_PARAMETER || x->attrs->parameter_number + y->attrs->parameter_number != 1)
    return false;
  *is_descending = (r->attrs->direction == HLO_GT) == (x->attrs->parameter_number == 0);
  return true;
}

/* What is read of a sort: a slice of each part. */
struct parts {
  const struct hlo_instr *slice[2], *element[2];
  int64_t k;
  bool is_end, ok; /* the last k, not the first */
};

/* True if s takes the first or the last elements of all rows. */
static bool read_slice(const struct hlo_instr *s, int64_t n, int64_t *k, bool *is_end) {
  const int last = s->shape.rank - 1;
  if (s->op != HLO_SLICE)
    return false;
  for (int d = 0; d <= last; d++) {
    const struct hlo_slice_dim *a = &s->attrs->slice[d];
    if (a->stride != 1 || (d < last && (a->start != 0 || a->limit != s->operands[0]->shape.dims[d])))
      return false;
  }
  *k = s->shape.dims[last];
  *is_end = s->attrs->slice[last].start != 0;
  return *k < n && (!*is_end || s->attrs->slice[last].limit == n);
}

static void note_slice(struct parts *p, int part, const struct hlo_instr *s, int64_t n) {
  int64_t k;
  bool is_end;
  if (p->slice[part] || !read_slice(s, n, &k, &is_end) || (p->slice[!part] && (k != p->k || is_end != p->is_end))) {
    p->ok = false;
    return;
  }
  p->slice[part] = s;
  p->k = k;
  p->is_end = is_end;
}

static void note_user(struct parts *p, const struct hlo_instr *sort, const struct hlo_instr *u, int64_t n) {
  for (int o = 0; o < u->n_operands; o++) {
    if (u->operands[o] == sort && u->op == HLO_GET_TUPLE_ELEMENT && !p->element[u->attrs->tuple_index])
      p->element[u->attrs->tuple_index] = u;
    else if (u->operands[o] == sort && sort->shape.dtype != DT_TUPLE)
      note_slice(p, 0, u, n);
    else if (u->operands[o] == sort)
      p->ok = false;
    for (int part = 0; part < 2; part++)
      if (p->element[part] && u->operands[o] == p->element[part])
        note_slice(p, part, u, n);
  }
}

/* True if x is 0, 1, 2 … along the axis. */
static bool is_places(const struct hlo_instr *x, int axis) {
  return x->op == HLO_IOTA && x->attrs->dimensions.v[0] == axis && dtype_size(x->shape.dtype) == 4 &&
         !dtype_is_float(x->shape.dtype);
}

/* ---- the last places ----------------------------------------------------------------------------------------------- */

static MlirValue write_place(struct ir_builder *b, MlirValue const *args, void *user) {
  const int64_t *last = user;
  return ir_binary(b, "arith.subi", ir_int(b, mlirValueGetType(args[0]), *last), args[0]);
}

/* Of the results of a reversed row, the first of which is the last of the row: the places in the row, and both in the opposite order. */
static void turn_results(struct lower *l, const struct hlo_shape *x, int64_t k, MlirValue *out) {
  int64_t dims[HLO_RANK_MAX], last_dim = x->rank - 1, last_place = x->dims[last_dim] - 1;
  MlirAffineMap id = ir_identity_map(&l->b, x->rank), maps[] = {id, id};

  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[last_dim] = k;
  for (int part = 0; part < 2; part++) {
    const struct hlo_shape made = {.dtype = part ? DT_I32 : x->dtype, .rank = x->rank, .dims = dims};
    if (part)
      out[part] = ir_result(ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = x->rank,
                                                                          .n_inputs = 1,
                                                                          .inputs = &out[part],
                                                                          .maps = maps,
                                                                          .output = lower_empty(l, &made),
                                                                          .body = write_place,
                                                                          .user = &last_place}));
    if (k > 1)
      out[part] = ir_result(lower_reverse_tensor(l, out[part], &made, (struct hlo_ints){1, &last_dim}));
  }
}

bool topk_of_sort(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_computation *c = l->computation;
  const struct hlo_shape *x = &i->operands[0]->shape;
  const int axis = (int)i->attrs->dimensions.v[0];
  struct parts p = {.ok = i->n_operands == 1 || (i->n_operands == 2 && is_places(i->operands[1], axis))};
  bool is_descending;
  MlirValue out[2];

  if (!p.ok || i->knob || c->root == i || !is_plain_order(i->called[0], &is_descending))
    return false;
  hlo_for_each(u, c) note_user(&p, i, u, x->dims[axis]);
  for (int k = 0; k < 2; k++)
    p.ok &= !(p.element[k] && (p.element[k] == c->root || p.element[k]->knob || !p.slice[k]));
  if (!p.ok || (!p.slice[0] && !p.slice[1]) || !topk_takes(x, axis, p.k))
    return false;
  /* The places of the last elements of an order are those of the last of equal ones.  find_index8 finds the first, so the row is
   * reversed. */
  const bool is_turned = p.is_end && p.slice[1];
  int64_t along = axis;
  MlirValue value = lower_value(l, i->operands[0]);
  if (is_turned)
    value = ir_result(lower_reverse_tensor(l, value, x, (struct hlo_ints){1, &along}));
  /* The first of an ascending order are the smallest, and so are the last of a descending one. */
  topk_call(l,
            &(struct topk){.x = x,
                           .value = value,
                           .k = p.k,
                           .is_smallest = is_descending == p.is_end,
                           .is_backwards = p.is_end && !is_turned},
            out);
  if (is_turned)
    turn_results(l, x, p.k, out);
  MlirOperation work = ir_defining_op(out[0]);
  for (int k = 0; k < 2; k++) {
    if (p.slice[k])
      lower_set(l, p.slice[k], out[k], work);
    if (p.element[k])
      node_of(l, p.element[k])->is_done = true;
  }
  node_of(l, i)->is_done = true;
  return true;
}
