/* fold: replaces instructions whose value is known by constants.
 *
 *     add(constant, constant)     ==>  constant      constant-folding
 *     f32[0,4] add(x, y)          ==>  constant {}   zero-sized-hlo-elimination
 *
 * It folds conversions, comparisons, selects, and arithmetic that is exact in double and rounded once, so that every
 * machine computes the same: + - * / of floats up to f32, + - * of integers up to 32 bits.  A result with more than
 * ELEMENTS_MAX elements is not folded, because its constant would make the program larger.
 */
#include <math.h>
#include <string.h>

#include "hlo/literal.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

enum { ELEMENTS_MAX = 4096 };

static bool is_exact(enum dtype t) {
  return t == DT_BOOL || dtype_size(t) <= 4;
}

/* Computes one element of i from its operands' values; false if it cannot be folded. */
static bool fold_element(const struct hlo_instr *i, const double *x, double *out) {
  const enum dtype_kind k = dtype_kind(i->operands[0]->shape.dtype);
  switch (i->op) {
  case HLO_CONVERT:
    if (dtype_is_float(i->operands[0]->shape.dtype) && !dtype_is_float(i->shape.dtype) && i->shape.dtype != DT_BOOL &&
        !(fabs(x[0]) < 0x1p31 && (x[0] >= 0 || dtype_kind(i->shape.dtype) == DK_SIGNED)))
      return false; /* out of range: machines differ */
    *out = x[0];
    return true;
  case HLO_COMPARE:
    *out = i->attrs->direction == HLO_EQ   ? x[0] == x[1]
           : i->attrs->direction == HLO_NE ? x[0] != x[1]
           : i->attrs->direction == HLO_GE ? x[0] >= x[1]
           : i->attrs->direction == HLO_GT ? x[0] > x[1]
           : i->attrs->direction == HLO_LE ? x[0] <= x[1]
                                           : x[0] < x[1];
    return !i->attrs->is_total_order;
  case HLO_SELECT:
    *out = x[0] != 0 ? x[1] : x[2];
    return true;
  case HLO_NEGATE:
    *out = k == DK_FLOAT ? -x[0] : 0 - x[0];
    return true;
  case HLO_NOT:
    *out = x[0] == 0;
    return k == DK_BOOL;
  case HLO_AND:
    *out = x[0] != 0 && x[1] != 0;
    return k == DK_BOOL;
  case HLO_OR:
    *out = x[0] != 0 || x[1] != 0;
    return k == DK_BOOL;
  case HLO_ADD:
    *out = x[0] + x[1];
    return k != DK_BOOL;
  case HLO_SUBTRACT:
    *out = x[0] - x[1];
    return true;
  case HLO_MULTIPLY:
    *out = x[0] * x[1];
    return k != DK_BOOL && (k == DK_FLOAT || fabs(*out) < 0x1p53);
  case HLO_DIVIDE:
    *out = x[0] / x[1];
    return k == DK_FLOAT;
  default:
    return false;
  }
}

static struct hlo_literal *new_literal(struct hlo_module *m, const struct hlo_shape *s, size_t n, void **data) {
  struct hlo_literal *l = arena_new(m->arena, struct hlo_literal);
  const size_t size = dtype_size(s->dtype);
  *data = arena_alloc(m->arena, n * size + 1);
  *l = (struct hlo_literal){*s, *data, n * size};
  return l;
}

static struct hlo_instr *put_constant(struct hlo_instr *i, const struct hlo_literal *l) {
  struct hlo_instr *c = hlo_insert(i, HLO_CONSTANT, NULL, i->shape, 0, NULL);
  hlo_set_attrs(c, &(struct hlo_attrs){.literal = l});
  return c;
}

static struct hlo_instr *fold(struct hlo_module *m, struct hlo_instr *i) {
  const int64_t n = i->shape.dtype == DT_TUPLE ? -1 : hlo_shape_elements(&i->shape);
  void *data;
  if (n < 1 || n > ELEMENTS_MAX || !i->n_operands || i->n_operands > 3 || !is_exact(i->shape.dtype))
    return NULL;
  for (int k = 0; k < i->n_operands; k++)
    if (i->operands[k]->op != HLO_CONSTANT || !is_exact(i->operands[k]->shape.dtype))
      return NULL;
  if (i->op == HLO_RESHAPE) {
    struct hlo_literal *l = arena_dup(m->arena, i->operands[0]->attrs->literal, sizeof *l);
    l->shape = i->shape;
    return put_constant(i, l);
  }
  for (int k = 0; k < i->n_operands; k++)
    if (!hlo_shape_same_dims(&i->operands[k]->shape, &i->shape))
      return NULL;
  struct hlo_literal *l = new_literal(m, &i->shape, (size_t)n, &data);
  for (int64_t at = 0; at < n; at++) {
    double x[3], v;
    for (int k = 0; k < i->n_operands; k++)
      x[k] = hlo_literal_double(i->operands[k]->attrs->literal, (size_t)at);
    if (!fold_element(i, x, &v))
      return NULL;
    hlo_literal_store(i->shape.dtype, v, (char *)data + (size_t)at * dtype_size(i->shape.dtype));
  }
  return put_constant(i, l);
}

static struct hlo_instr *make_empty(struct hlo_module *m, struct hlo_instr *i) {
  void *data;
  if (i->shape.dtype == DT_TUPLE || hlo_shape_elements(&i->shape) != 0 || i->op == HLO_CONSTANT)
    return NULL;
  return put_constant(i, new_literal(m, &i->shape, 0, &data));
}

static void walk(struct hlo_module *m, struct hlo_pass_result *r, const char *name,
                 struct hlo_instr *(*rule)(struct hlo_module *, struct hlo_instr *)) {
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      hlo_rewrite_forward_operands(i);
      hlo_step(i, name);
      struct hlo_instr *heir =
          hlo_rewrite_is_pinned(i) || i->op == HLO_PARAMETER || (i == c->root && c == m->entry) ? NULL : rule(m, i);
      if (!heir)
        continue;
      if (c->root == i)
        c->root = heir;
      hlo_rewrite_inherit(heir, i);
      hlo_rewrite_remove(i, heir);
      r->changed = true;
    }
  hlo_rewrite_end(m);
}

void hlo_constant_folding(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, "fold-constant", fold);
}

void hlo_zero_sized_elimination(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, "make-empty-constant", make_empty);
}
