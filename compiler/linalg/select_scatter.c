/* select_scatter: each window of the operand selects an element of its own, where the window's source is combined into
 * the result: the gradient of max-pooling.
 *
 * Positions are worked on together, one element of the windows after the other, as slices with the windows' strides:
 *
 *     best, which = x[slice 0], 0
 *     for k = 1 … :  keeps = select(best, x[slice k]);  best, which = keeps ? (best, which) : (x[slice k], k)
 *     for k = 0 … :  y[slice k] = which == k ? scatter(y[slice k], source) : y[slice k]
 *
 * Windows that reach into padding, where nothing can be selected, and very large ones go position by position, in loops
 * of scalars, which no engine has.
 */
#include "linalg/impl.h"

enum { ELEMENTS_MAX = 128 }; /* of a window that is written out */

struct select_scatter {
  struct lower *l;
  const struct hlo_instr *instr;
  MlirValue x, source;
  MlirValue const *at; /* the window's position */
  int64_t element;     /* of the window, by rows */
};

/* ---- all positions at once -------------------------------------------------------------------------------------- */

/* Whether what was selected so far stays; args: it, another element. */
static MlirValue write_keeps(struct emit *e, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  MlirValue keeps;
  inline_computation(s->l, e, s->instr->called[0], args, &keeps);
  return keeps;
}

static MlirValue write_select(struct emit *e, MlirValue const *args, void *user) {
  (void)user;
  return emit_select(e, args[0], args[1], args[2]);
}

/* args: whether the element selected so far stays, its number */
static MlirValue write_number(struct emit *e, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  return emit_select(e, args[0], args[1], emit_int(e, mlirValueGetType(args[1]), s->element));
}

/* args: the number of the element selected, the source, what is there */
static MlirValue write_scattered(struct emit *e, MlirValue const *args, void *user) {
  const struct select_scatter *s = user;
  MlirValue here = emit_cmpi(e, INT_EQ, args[0], emit_int(e, mlirValueGetType(args[0]), s->element)), sum;
  inline_computation(s->l, e, s->instr->called[1], (MlirValue[]){args[2], args[1]}, &sum);
  return emit_select(e, here, sum, args[2]);
}

/* A new tensor over the positions, from n of them. */
static MlirValue over_positions(struct select_scatter *s, enum dtype t, int n, MlirValue const *inputs,
                                emit_body body) {
  struct emit *e = &s->l->e;
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  MlirAffineMap id = emit_identity_map(e, positions->rank), maps[] = {id, id, id, id};

  return emit_result(
      emit_linalg_generic(e, &(struct emit_generic){.n_loops = positions->rank,
                                                    .n_inputs = n,
                                                    .inputs = inputs,
                                                    .maps = maps,
                                                    .output = emit_empty(e, t, positions->rank, positions->dims),
                                                    .body = body,
                                                    .user = s}));
}

/* Element number s->element of every window. */
static struct emit_slice slice_of(const struct select_scatter *s, int64_t *offsets, int64_t *strides) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  int64_t rest = s->element;

  for (int d = positions->rank - 1; d >= 0; d--) {
    const struct hlo_window_dim *w = &s->instr->attrs->window->v[d];
    offsets[d] = rest % w->size;
    strides[d] = w->stride;
    rest /= w->size;
  }
  return (struct emit_slice){positions->rank, offsets, positions->dims, strides, NULL};
}

static MlirValue read_element(struct select_scatter *s, MlirValue x) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  int64_t offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];
  struct emit_slice at = slice_of(s, offsets, strides);
  return emit_extract_slice(&s->l->e, x, &at,
                            emit_tensor_type(&s->l->e, s->instr->shape.dtype, positions->rank, positions->dims));
}

/* The number of the element that each window selects. */
static MlirValue select_elements(struct select_scatter *s, int64_t n) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  struct emit *e = &s->l->e;
  const enum dtype t = s->instr->shape.dtype;

  s->element = 0;
  MlirValue best = read_element(s, s->x);
  MlirValue which = emit_fill(e, emit_number(e, DT_I32, 0), emit_empty(e, DT_I32, positions->rank, positions->dims));
  for (s->element = 1; s->element < n; s->element++) {
    MlirValue other = read_element(s, s->x);
    MlirValue keeps = over_positions(s, DT_BOOL, 2, (MlirValue[]){best, other}, write_keeps);
    which = over_positions(s, DT_I32, 2, (MlirValue[]){keeps, which}, write_number);
    best = over_positions(s, t, 3, (MlirValue[]){keeps, best, other}, write_select);
  }
  return which;
}

static MlirValue scatter_by_elements(struct select_scatter *s, MlirValue dest, int64_t n) {
  int64_t offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];
  MlirValue which = select_elements(s, n);

  for (s->element = 0; s->element < n; s->element++) {
    MlirValue in[] = {which, s->source, read_element(s, dest)};
    MlirValue changed = over_positions(s, s->instr->shape.dtype, 3, in, write_scattered);
    struct emit_slice at = slice_of(s, offsets, strides);
    dest = emit_insert_slice(&s->l->e, changed, dest, &at);
  }
  return dest;
}

/* ---- position by position --------------------------------------------------------------------------------------- */

/* Carried: whether an element has been selected, the element, where it is. */
static void select_element(struct emit *e, MlirValue const *within, MlirValue *carried, void *user) {
  const struct select_scatter *s = user;
  const int rank = s->instr->shape.rank;
  MlirValue place[HLO_RANK_MAX], inside = emit_int(e, mlirIntegerTypeGet(e->ctx, 1), 1), keeps;

  for (int d = 0; d < rank; d++) {
    const struct hlo_window_dim *w = &s->instr->attrs->window->v[d];
    MlirValue p = emit_binary(e, "arith.muli", s->at[d], emit_index(e, w->stride));
    p = emit_binary(e, "arith.addi", p, within[d]);
    place[d] = emit_binary(e, "arith.subi", p, emit_index(e, w->low));
    MlirValue ok = emit_cmpi(e, INT_ULT, place[d], emit_index(e, s->instr->shape.dims[d]));
    inside = emit_binary(e, "arith.andi", inside, ok);
  }
  for (int d = 0; d < rank; d++)
    place[d] = emit_select(e, inside, place[d], emit_index(e, 0));
  MlirValue x = emit_extract(e, s->x, rank, place), pair[] = {carried[1], x};
  inline_computation(s->l, e, s->instr->called[0], pair, &keeps);
  MlirValue first = emit_binary(e, "arith.xori", carried[0], emit_int(e, mlirIntegerTypeGet(e->ctx, 1), 1));
  MlirValue loses = emit_binary(e, "arith.xori", keeps, emit_int(e, mlirIntegerTypeGet(e->ctx, 1), 1));
  MlirValue takes = emit_binary(e, "arith.andi", inside, emit_binary(e, "arith.ori", first, loses));
  carried[0] = emit_binary(e, "arith.ori", carried[0], inside);
  carried[1] = emit_select(e, takes, x, carried[1]);
  for (int d = 0; d < rank; d++)
    carried[2 + d] = emit_select(e, takes, place[d], carried[2 + d]);
}

static void scatter_selected(struct emit *e, MlirValue const *at, MlirValue *carried, void *user) {
  struct select_scatter *s = user;
  const struct hlo_instr *i = s->instr;
  const int rank = i->shape.rank;
  MlirValue best[HLO_RANK_MAX + 2], sum;
  int64_t sizes[HLO_RANK_MAX];

  for (int d = 0; d < rank; d++) {
    sizes[d] = i->attrs->window->v[d].size;
    best[2 + d] = emit_index(e, 0);
  }
  best[0] = emit_int(e, mlirIntegerTypeGet(e->ctx, 1), 0);
  best[1] = emit_number(e, i->shape.dtype, 0);
  s->at = at;
  emit_loop_nest(
      e, &(struct emit_loops){.n = rank, .extents = sizes, .n_carried = 2 + rank, .body = select_element, .user = s},
      best);
  MlirValue old = emit_extract(e, carried[0], rank, best + 2);
  MlirValue pair[] = {old, emit_extract(e, s->source, rank, at)};
  inline_computation(s->l, e, i->called[1], pair, &sum);
  carried[0] = emit_insert(e, emit_select(e, best[0], sum, old), carried[0], rank, best + 2);
}

static MlirValue scatter_by_positions(struct select_scatter *s, MlirValue dest) {
  const struct hlo_shape *positions = &s->instr->operands[1]->shape;
  emit_loop_nest(
      &s->l->e,
      &(struct emit_loops){
          .n = positions->rank, .extents = positions->dims, .n_carried = 1, .body = scatter_selected, .user = s},
      &dest);
  return dest;
}

/* ---- the instruction -------------------------------------------------------------------------------------------- */

/* How many elements a window has; 0 if windows reach into padding. */
static int64_t window_elements(const struct hlo_window *w) {
  int64_t n = 1;
  for (int d = 0; d < w->n; d++) {
    if (w->v[d].low || w->v[d].high)
      return 0;
    n *= w->v[d].size;
  }
  return n;
}

enum status lower_select_and_scatter(struct lower *l, const struct hlo_instr *i) {
  struct select_scatter s = {.l = l, .instr = i};
  enum status st = inline_check(l, i, i->called[0]);
  if (!st)
    st = inline_check(l, i, i->called[1]);
  if (st)
    return st;
  s.x = lower_value(l, i->operands[0]);
  s.source = lower_value(l, i->operands[1]);
  MlirValue dest = emit_fill(&l->e, scalar_of(l, i->operands[2]), lower_empty(l, &i->shape));
  const int64_t n = window_elements(i->attrs->window);
  if (hlo_shape_elements(&i->shape) && hlo_shape_elements(&i->operands[1]->shape))
    dest = n && n <= ELEMENTS_MAX ? scatter_by_elements(&s, dest, n) : scatter_by_positions(&s, dest);
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
