/* hlo_simplify_shape: rules for instructions that move elements. */
#include "hlo/simplify.h"

#include "hlo/rewrite.h"

static bool is_identity(struct hlo_ints v) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] != k)
      return false;
  return true;
}

/* The dimension numbers of `outer` after those of `inner`: outer[inner[k]] for each k. */
static struct hlo_ints compose(struct arena *a, struct hlo_ints outer, struct hlo_ints inner) {
  int64_t *v = arena_new_array(a, int64_t, (size_t)inner.n);
  for (int k = 0; k < inner.n; k++)
    v[k] = outer.v[inner.v[k]];
  return (struct hlo_ints){inner.n, v};
}

/* A broadcast of the same scalar in i's shape. */
static struct hlo_instr *broadcast_scalar(struct hlo_instr *i, struct hlo_instr *scalar) {
  return hlo_simplify_new(i, HLO_BROADCAST, i->shape, 1, &scalar);
}

static struct hlo_instr *reshape(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  if (hlo_shape_equal(&x->shape, &i->shape))
    return x;
  if (hlo_simplify_skips(s, i, 0, HLO_RESHAPE))
    return hlo_shape_equal(&x->operands[0]->shape, &i->shape)
               ? x->operands[0]
               : hlo_simplify_new(i, HLO_RESHAPE, i->shape, 1, x->operands);
  if (x->op == HLO_BROADCAST && !x->operands[0]->shape.rank && hlo_simplify_skips(s, i, 0, HLO_BROADCAST))
    return i->shape.rank ? broadcast_scalar(i, x->operands[0]) : x->operands[0];
  return NULL;
}

static struct hlo_instr *broadcast(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  if (i->attrs->dimensions.n == i->shape.rank && is_identity(i->attrs->dimensions))
    return x;
  if (x->op == HLO_RESHAPE && !x->operands[0]->shape.rank && hlo_simplify_skips(s, i, 0, HLO_RESHAPE))
    return broadcast_scalar(i, x->operands[0]);
  if (!hlo_simplify_skips(s, i, 0, HLO_BROADCAST))
    return NULL;
  struct hlo_instr *b = hlo_simplify_new(i, HLO_BROADCAST, i->shape, 1, x->operands);
  hlo_set_attrs(b, &(struct hlo_attrs){.dimensions = compose(s->m->arena, i->attrs->dimensions, x->attrs->dimensions)});
  return b;
}

/* transpose(x) that exchanges the first dimensions, in their order, with the others, in theirs: a transpose of a matrix between
 * reshapes, which a dot can read, and which meets its inverse.  NULL for any other one. */
static struct hlo_instr *transpose_of_matrix(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  const struct hlo_ints dims = i->attrs->dimensions;
  const int64_t first = dims.n > 2 ? dims.v[0] : 0, swapped[] = {1, 0};
  int64_t n[2] = {1, 1};

  if (!first || hlo_rewrite_is_pinned(i))
    return NULL;
  for (int k = 0; k < dims.n; k++) {
    if (dims.v[k] != (first + k) % dims.n)
      return NULL;
    n[k >= first] *= x->shape.dims[k];
  }
  if (n[0] < 1 || n[1] < 1)
    return NULL;
  if (n[0] == 1 || n[1] == 1)
    return hlo_simplify_new(i, HLO_RESHAPE, i->shape, 1, &x);
  const struct hlo_shape matrix = hlo_shape_array(s->m->arena, x->shape.dtype, 2, n);
  const struct hlo_shape turned = hlo_shape_array(s->m->arena, x->shape.dtype, 2, (int64_t[]){n[1], n[0]});
  if (hlo_simplify_skips(s, i, 0, HLO_RESHAPE))
    x = x->operands[0];
  if (!hlo_shape_equal(&x->shape, &matrix)) {
    x = hlo_simplify_new(i, HLO_RESHAPE, matrix, 1, &x);
    hlo_rewrite_inherit_places(x, i);
  } else if (x->op == HLO_TRANSPOSE && !hlo_rewrite_is_pinned(x) && s->n_skipped < SKIPPED_MAX) {
    s->skipped[s->n_skipped++] = x;
    return hlo_simplify_new(i, HLO_RESHAPE, i->shape, 1, x->operands);
  }
  struct hlo_instr *t = hlo_simplify_new(i, HLO_TRANSPOSE, turned, 1, &x);
  hlo_set_attrs(t, &(struct hlo_attrs){.dimensions = hlo_ints_dup(s->m->arena, 2, swapped)});
  hlo_rewrite_inherit_places(t, i);
  return hlo_simplify_new(i, HLO_RESHAPE, i->shape, 1, &t);
}

static struct hlo_instr *transpose(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0], *matrix;
  if (is_identity(i->attrs->dimensions))
    return x;
  if (x->op != HLO_TRANSPOSE && (matrix = transpose_of_matrix(s, i)))
    return matrix;
  if (!hlo_simplify_skips(s, i, 0, HLO_TRANSPOSE))
    return NULL;
  struct hlo_ints both = compose(s->m->arena, x->attrs->dimensions, i->attrs->dimensions);
  if (is_identity(both))
    return x->operands[0];
  struct hlo_instr *t = hlo_simplify_new(i, HLO_TRANSPOSE, i->shape, 1, x->operands);
  hlo_set_attrs(t, &(struct hlo_attrs){.dimensions = both});
  return t;
}

static bool is_whole(const struct hlo_instr *i) {
  const struct hlo_shape *s = &i->operands[0]->shape;
  for (int k = 0; k < s->rank; k++)
    if (i->attrs->slice[k].start || i->attrs->slice[k].limit != s->dims[k] ||
        (i->attrs->slice[k].stride != 1 && s->dims[k] > 1))
      return false;
  return true;
}

/* slice(slice(x)): starts and strides scale with the inner stride; no element lies outside the inner range, so the
 * products cannot overflow, except for a stride beyond the range, which then has the effect of 1. */
static struct hlo_instr *slice(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  int rank = x->shape.rank;
  if (is_whole(i))
    return x;
  struct hlo_instr *turned = hlo_simplify_slice_of_reverse(s, i);
  if (turned)
    return turned;
  if (!hlo_simplify_skips(s, i, 0, HLO_SLICE))
    return NULL;
  struct hlo_slice_dim *both = arena_new_array(s->m->arena, struct hlo_slice_dim, (size_t)rank);
  for (int k = 0; k < rank; k++) {
    const struct hlo_slice_dim *in = &x->attrs->slice[k], *out = &i->attrs->slice[k];
    int64_t n = i->shape.dims[k];
    if (!n) {
      both[k] = (struct hlo_slice_dim){0, 0, 1};
      continue;
    }
    both[k].start = in->start + out->start * in->stride;
    both[k].stride = n > 1 ? in->stride * out->stride : 1;
    both[k].limit = both[k].start + (n - 1) * both[k].stride + 1;
  }
  struct hlo_instr *r = hlo_simplify_new(i, HLO_SLICE, i->shape, 1, x->operands);
  hlo_set_attrs(r, &(struct hlo_attrs){.slice = both});
  return r;
}

static struct hlo_instr *pad(struct hlo_instr *i) {
  for (int k = 0; k < i->shape.rank; k++)
    if (i->attrs->padding[k].low || i->attrs->padding[k].high || i->attrs->padding[k].interior)
      return NULL;
  return i->operands[0];
}

/* Operands without elements are dropped. */
static struct hlo_instr *concatenate(struct hlo_simplifier *s, struct hlo_instr *i) {
  int64_t at = i->attrs->dimensions.v[0];
  struct hlo_instr **rest = arena_new_array(s->m->arena, struct hlo_instr *, (size_t)i->n_operands);
  int n = 0;
  for (int k = 0; k < i->n_operands; k++)
    if (i->operands[k]->shape.dims[at])
      rest[n++] = i->operands[k];
  if (!n)
    return i->operands[0];
  if (n == 1)
    return rest[0];
  if (n == i->n_operands)
    return NULL;
  struct hlo_instr *c = hlo_simplify_new(i, HLO_CONCATENATE, i->shape, n, rest);
  hlo_set_attrs(c, &(struct hlo_attrs){.dimensions = i->attrs->dimensions});
  return c;
}

struct hlo_instr *hlo_simplify_shape(struct hlo_simplifier *s, struct hlo_instr *i) {
  switch (i->op) {
  case HLO_RESHAPE:
    return reshape(s, i);
  case HLO_BROADCAST:
    return broadcast(s, i);
  case HLO_TRANSPOSE:
    return transpose(s, i);
  case HLO_SLICE:
    return slice(s, i);
  case HLO_GATHER:
  case HLO_REVERSE:
    return hlo_simplify_reverse(s, i);
  case HLO_PAD:
    return pad(i);
  case HLO_CONCATENATE:
    return concatenate(s, i);
  case HLO_GET_TUPLE_ELEMENT:
    return i->operands[0]->op == HLO_TUPLE ? i->operands[0]->operands[i->attrs->tuple_index] : NULL;
  default:
    return NULL;
  }
}
