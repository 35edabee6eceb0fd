/* select_scatter: lowers select-and-scatter, the gradient of max-pooling.  Each window of the operand selects one of
 * its elements, and the window's source value is combined into the result at that element.
 *
 * All windows are processed together.  The elements of the window are processed in order, as slices with the windows'
 * strides:
 *
 *     best, which = x[slice 0], 0
 *     for k = 1 … :  keeps = select(best, x[slice k]);  best, which = keeps ? (best, which) : (x[slice k], k)
 *     for k = 0 … :  y[slice k] = which == k ? scatter(y[slice k], source) : y[slice k]
 *
 * If windows reach into padding, x and y are padded, and so is a tensor `inside` of ones.  The loop then starts with no
 * element selected, and selects only elements that are not padding:
 *
 *     which = -1
 *     for k = 0 … :  keeps = not inside[slice k], or which >= 0 and select(best, x[slice k]);  …
 *
 * Very large windows, and windows that leave out elements at the start of the operand, are processed one by one in
 * loops over scalars, which no engine can run.
 */
#include "linalg/impl.h"

enum { ELEMENTS_MAX = 128 }; /* elements of a window; the number of emitted operations is a multiple of them */

struct select_scatter {
  struct lower *l;
  const struct hlo_instr *instr;
  MlirValue x, source;
  MlirValue inside;    /* has the shape of x: 1 for elements, 0 for padding; null if there is no padding */
  MlirValue const *at; /* the window's position */
  int64_t element;     /* row-major number of an element in the window */
};

/* ---- all windows at once -------------------------------------------------------------------------------------- */

/* Yields true if the first element stays selected.  args: the element selected so far, another element. */
static MlirValue write_keeps(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  MlirValue keeps;
  body_write(s->l, b, s->instr->called[0], args, &keeps);
  return keeps;
}

/* Yields true if the selection does not change.  args: the element selected so far, another element, the number of the
 * selected one (-1 for none), 1 if the other is inside and 0 if it is padding. */
static MlirValue write_keeps_inside(struct ir_builder *b, MlirValue const *args, void *user) {
  MlirValue zero = ir_int(b, mlirValueGetType(args[2]), 0), keeps = write_keeps(b, args, user);
  MlirValue is_padding = ir_cmpi(b, IR_INT_EQ, args[3], zero), is_any = ir_cmpi(b, IR_INT_SGE, args[2], zero);
  return ir_binary(b, "arith.ori", is_padding, ir_binary(b, "arith.andi", is_any, keeps));
}

static MlirValue write_select(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_select(b, args[0], args[1], args[2]);
}

/* Yields the number of the selected element.  args: true if the element selected so far stays, its number. */
static MlirValue write_number(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  return ir_select(b, args[0], args[1], ir_int(b, mlirValueGetType(args[1]), s->element));
}

/* Yields the new value of element s->element.  args: the number of the selected element, the source, the old value. */
static MlirValue write_scattered(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  MlirValue here = ir_cmpi(b, IR_INT_EQ, args[0], ir_int(b, mlirValueGetType(args[0]), s->element)), sum;
  body_write(s->l, b, s->instr->called[1], (MlirValue[]){args[2], args[1]}, &sum);
  return ir_select(b, here, sum, args[2]);
}

/* Emits an element-wise operation on n tensors that have one element per window. */
static MlirValue over_positions(struct select_scatter *s, enum dtype t, int n, MlirValue const *inputs,
                                ir_body_fn body) {
  struct ir_builder *b = &s->l->b;
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  MlirAffineMap id = ir_identity_map(b, positions->rank), maps[] = {id, id, id, id, id};

  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = positions->rank,
                                                             .n_inputs = n,
                                                             .inputs = inputs,
                                                             .maps = maps,
                                                             .output = ir_empty(b, t, positions->rank, positions->dims),
                                                             .body = body,
                                                             .user = s}));
}

/* Returns the slice with element number s->element of every window. */
static struct ir_slice slice_of(const struct select_scatter *s, int64_t *offsets, int64_t *strides) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  int64_t rest = s->element;

  for (int d = positions->rank - 1; d >= 0; d--) {
    const struct hlo_window_dim *w = &s->instr->attrs->window->v[d];
    offsets[d] = rest % w->size;
    strides[d] = w->stride;
    rest /= w->size;
  }
  return (struct ir_slice){positions->rank, offsets, positions->dims, strides, NULL};
}

static MlirValue read_element(struct select_scatter *s, MlirValue x, enum dtype t) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  int64_t offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];
  struct ir_slice at = slice_of(s, offsets, strides);
  return ir_extract_slice(&s->l->b, x, &at, ir_tensor_type(&s->l->b, t, positions->rank, positions->dims));
}

/* Returns the number of the element that each window selects, or -1 if it has only padding. */
static MlirValue select_elements(struct select_scatter *s, int64_t n) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  struct ir_builder *b = &s->l->b;
  const enum dtype t = s->instr->shape.dtype;
  const bool is_padded = !mlirValueIsNull(s->inside);

  s->element = 0;
  MlirValue best = read_element(s, s->x, t);
  MlirValue which =
      ir_fill(b, ir_number(b, DT_I32, is_padded ? -1 : 0), ir_empty(b, DT_I32, positions->rank, positions->dims));
  for (s->element = !is_padded; s->element < n; s->element++) {
    MlirValue in[] = {best, read_element(s, s->x, t), which, {NULL}};
    if (is_padded)
      in[3] = read_element(s, s->inside, DT_I32);
    MlirValue keeps = is_padded ? over_positions(s, DT_BOOL, 4, in, write_keeps_inside)
                                : over_positions(s, DT_BOOL, 2, in, write_keeps);
    which = over_positions(s, DT_I32, 2, (MlirValue[]){keeps, which}, write_number);
    best = over_positions(s, t, 3, (MlirValue[]){keeps, best, in[1]}, write_select);
  }
  return which;
}

static MlirValue scatter_by_elements(struct select_scatter *s, MlirValue dest, int64_t n) {
  int64_t offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];
  const enum dtype t = s->instr->shape.dtype;
  MlirValue which = select_elements(s, n);

  for (s->element = 0; s->element < n; s->element++) {
    MlirValue in[] = {which, s->source, read_element(s, dest, t)};
    MlirValue changed = over_positions(s, t, 3, in, write_scattered);
    struct ir_slice at = slice_of(s, offsets, strides);
    dest = ir_insert_slice(&s->l->b, changed, dest, &at);
  }
  return dest;
}

/* Does the same on padded operands, and removes the padding from the result. */
static MlirValue scatter_padded(struct select_scatter *s, int64_t n) {
  const struct hlo_instr *i = s->instr;
  struct lower *l = s->l;
  struct hlo_pad_dim pads[HLO_RANK_MAX];
  struct hlo_shape padded = i->shape, ones = i->shape;
  int64_t dims[HLO_RANK_MAX], offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];

  for (int d = 0; d < i->shape.rank; d++) {
    const struct hlo_window_dim *w = &i->attrs->window->v[d];
    /* high may be negative: after the last window the operand may have elements that no window reaches */
    pads[d] = (struct hlo_pad_dim){w->low, w->high > 0 ? w->high : 0, 0};
    dims[d] = i->shape.dims[d] + pads[d].low + pads[d].high;
    offsets[d] = w->low;
    strides[d] = 1;
  }
  padded.dims = dims;
  ones.dtype = DT_I32;
  MlirValue one = ir_fill(&l->b, ir_number(&l->b, DT_I32, 1), lower_empty(l, &ones));
  struct hlo_shape inside = padded;
  inside.dtype = DT_I32;
  s->inside = lower_pad_tensor(l, one, &ones, pads, ir_number(&l->b, DT_I32, 0), &inside);
  s->x = lower_pad_tensor(l, s->x, &i->shape, pads, ir_number(&l->b, i->shape.dtype, 0), &padded);
  MlirValue dest = ir_fill(&l->b, scalar_of(l, i->operands[2]), lower_empty(l, &padded));
  struct ir_slice whole = {i->shape.rank, offsets, i->shape.dims, strides, NULL};
  return ir_extract_slice(&l->b, scatter_by_elements(s, dest, n), &whole,
                          ir_tensor_type(&l->b, i->shape.dtype, i->shape.rank, i->shape.dims));
}

/* ---- one window after the other ---------------------------------------------------------------------------------- */

/* Carried values: true if an element has been selected, the element, its indices. */
static void select_element(struct ir_builder *b, MlirValue const *within, MlirValue *carried, void *user) {
  const struct select_scatter *s = user;
  const int rank = s->instr->shape.rank;
  MlirValue place[HLO_RANK_MAX], inside = ir_int(b, mlirIntegerTypeGet(b->ctx, 1), 1), keeps;

  for (int d = 0; d < rank; d++) {
    const struct hlo_window_dim *w = &s->instr->attrs->window->v[d];
    MlirValue p = ir_binary(b, "arith.muli", s->at[d], ir_index(b, w->stride));
    p = ir_binary(b, "arith.addi", p, within[d]);
    place[d] = ir_binary(b, "arith.subi", p, ir_index(b, w->low));
    MlirValue ok = ir_cmpi(b, IR_INT_ULT, place[d], ir_index(b, s->instr->shape.dims[d]));
    inside = ir_binary(b, "arith.andi", inside, ok);
  }
  for (int d = 0; d < rank; d++)
    place[d] = ir_select(b, inside, place[d], ir_index(b, 0));
  MlirValue x = ir_extract(b, s->x, rank, place), pair[] = {carried[1], x};
  body_write(s->l, b, s->instr->called[0], pair, &keeps);
  MlirValue first = ir_binary(b, "arith.xori", carried[0], ir_int(b, mlirIntegerTypeGet(b->ctx, 1), 1));
  MlirValue loses = ir_binary(b, "arith.xori", keeps, ir_int(b, mlirIntegerTypeGet(b->ctx, 1), 1));
  MlirValue takes = ir_binary(b, "arith.andi", inside, ir_binary(b, "arith.ori", first, loses));
  carried[0] = ir_binary(b, "arith.ori", carried[0], inside);
  carried[1] = ir_select(b, takes, x, carried[1]);
  for (int d = 0; d < rank; d++)
    carried[2 + d] = ir_select(b, takes, place[d], carried[2 + d]);
}

static void scatter_selected(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  struct select_scatter *s = user;
  const struct hlo_instr *i = s->instr;
  const int rank = i->shape.rank;
  MlirValue best[HLO_RANK_MAX + 2], sum;
  int64_t sizes[HLO_RANK_MAX];

  for (int d = 0; d < rank; d++) {
    sizes[d] = i->attrs->window->v[d].size;
    best[2 + d] = ir_index(b, 0);
  }
  best[0] = ir_int(b, mlirIntegerTypeGet(b->ctx, 1), 0);
  best[1] = ir_number(b, i->shape.dtype, 0);
  s->at = at;
  ir_loop_nest(
      b, &(struct ir_loops){.n = rank, .extents = sizes, .n_carried = 2 + rank, .body = select_element, .user = s},
      best);
  MlirValue old = ir_extract(b, carried[0], rank, best + 2);
  MlirValue pair[] = {old, ir_extract(b, s->source, rank, at)};
  body_write(s->l, b, i->called[1], pair, &sum);
  carried[0] = ir_insert(b, ir_select(b, best[0], sum, old), carried[0], rank, best + 2);
}

static MlirValue scatter_by_positions(struct select_scatter *s, MlirValue dest) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  ir_loop_nest(
      &s->l->b,
      &(struct ir_loops){
          .n = positions->rank, .extents = positions->dims, .n_carried = 1, .body = scatter_selected, .user = s},
      &dest);
  return dest;
}

/* ---- the instruction -------------------------------------------------------------------------------------------- */

/* Returns the number of elements of a window, or INT64_MAX if it overflows. */
static int64_t window_elements(const struct hlo_window *w) {
  int64_t n = 1;
  for (int d = 0; d < w->n; d++)
    n = __builtin_mul_overflow(n, w->v[d].size, &n) ? INT64_MAX : n;
  return n;
}

/* Returns true if windows start before the operand or reach beyond it.  Sets *is_cut if elements before the first
 * window are left out. */
static bool has_padding(const struct hlo_window *w, bool *is_cut) {
  bool any = false;
  *is_cut = false;
  for (int d = 0; d < w->n; d++) {
    any |= w->v[d].low > 0 || w->v[d].high > 0;
    *is_cut |= w->v[d].low < 0;
  }
  return any;
}

enum status lower_select_and_scatter(struct lower *l, const struct hlo_instr *i) {
  struct select_scatter s = {.l = l, .instr = i};
  bool is_cut;
  enum status st = body_check(l, i, i->called[0]);
  if (!st)
    st = body_check(l, i, i->called[1]);
  if (st)
    return st;
  s.x = lower_value(l, i->operands[0]);
  s.source = lower_value(l, i->operands[1]);
  const int64_t n = window_elements(i->attrs->window);
  const bool is_padded = has_padding(i->attrs->window, &is_cut);
  const bool is_empty = !hlo_shape_elements(&i->shape) || !hlo_shape_elements(&i->operands[1]->shape);
  if (!is_empty && is_padded && !is_cut && n <= ELEMENTS_MAX) {
    lower_set(l, i, scatter_padded(&s, n), lower_no_op());
    return ST_OK;
  }
  MlirValue dest = ir_fill(&l->b, scalar_of(l, i->operands[2]), lower_empty(l, &i->shape));
  if (!is_empty)
    dest =
        !is_padded && !is_cut && n <= ELEMENTS_MAX ? scatter_by_elements(&s, dest, n) : scatter_by_positions(&s, dest);
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
