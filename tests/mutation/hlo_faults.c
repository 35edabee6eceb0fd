/* hlo_faults: faults in HLO. */
#include <string.h>

#include "faults.h"
#include "hlo/build.h"

static void swap_instrs(struct hlo_instr *i) {
  struct hlo_instr *first = i->operands[0];
  i->operands[0] = i->operands[1];
  i->operands[1] = first;
}

static bool same_shape(const struct hlo_instr *x, const struct hlo_instr *y) {
  return x->shape.dtype == y->shape.dtype && hlo_shape_same_dims(&x->shape, &y->shape);
}

/* ---- kinds of faults: each returns true if i is a place of the kind, and changes it if that is wanted ---- */

static bool takes_two(const struct hlo_instr *i) {
  return i->n_operands == 2 && same_shape(i->operands[0], i->operands[1]);
}

static bool swap_operands(struct hlo_instr *i, bool is_wanted) {
  if (!takes_two(i) || (i->op != HLO_SUBTRACT && i->op != HLO_DIVIDE))
    return false;
  if (is_wanted)
    swap_instrs(i);
  return true;
}

static bool wrong_function(struct hlo_instr *i, bool is_wanted) {
  if (!takes_two(i) || (i->op != HLO_ADD && i->op != HLO_MAXIMUM))
    return false;
  if (is_wanted)
    i->op = i->op == HLO_ADD ? HLO_SUBTRACT : HLO_MINIMUM;
  return true;
}

static bool drop_operation(struct hlo_instr *i, bool is_wanted) {
  if (i->n_operands != 1 || !same_shape(i, i->operands[0]) ||
      (i->op != HLO_EXP && i->op != HLO_SQRT && i->op != HLO_TANH && i->op != HLO_NEGATE))
    return false;
  if (is_wanted)
    i->op = HLO_COPY;
  return true;
}

static bool wrong_operand(struct hlo_instr *i, bool is_wanted) {
  if (!takes_two(i) || i->operands[0] == i->operands[1])
    return false;
  if (is_wanted)
    i->operands[1] = i->operands[0];
  return true;
}

/* The first two dimensions exchanged where the shapes allow it. */
static bool wrong_axis(struct hlo_instr *i, bool is_wanted) {
  const struct hlo_ints d = i->attrs->dimensions;
  const struct hlo_shape *s = i->op == HLO_REDUCE && i->n_operands ? &i->operands[0]->shape : &i->shape;
  if (s->dtype == DT_TUPLE || s->rank < 2 || s->dims[0] != s->dims[1] || s->dims[0] < 2)
    return false;
  const bool is_transpose = i->op == HLO_TRANSPOSE && d.n == 2;
  const bool is_along = (i->op == HLO_BROADCAST || i->op == HLO_REDUCE) && d.n == 1 && d.v[0] < 2;
  if (!is_transpose && !is_along)
    return false;
  if (is_wanted) {
    const int64_t turned[2] = {d.v[0] ? 0 : 1, d.v[0]};
    struct hlo_attrs attrs = *i->attrs;
    attrs.dimensions = hlo_ints_dup(i->parent->module->arena, d.n, turned);
    hlo_set_attrs(i, &attrs);
  }
  return true;
}

/* Sums over the other dimension of a square operand. */
static bool wrong_contraction(struct hlo_instr *i, bool is_wanted) {
  if (i->op != HLO_DOT)
    return false;
  const struct hlo_shape *s = &i->operands[1]->shape;
  const struct hlo_dot_dims *dims = i->attrs->dot;
  if (s->rank != 2 || s->dims[0] != s->dims[1] || dims->rhs_contracting.n != 1)
    return false;
  if (is_wanted) {
    struct hlo_dot_dims *other = arena_new(i->parent->module->arena, struct hlo_dot_dims);
    *other = *dims;
    const int64_t turned = 1 - dims->rhs_contracting.v[0];
    other->rhs_contracting = hlo_ints_dup(i->parent->module->arena, 1, &turned);
    struct hlo_attrs attrs = *i->attrs;
    attrs.dot = other;
    hlo_set_attrs(i, &attrs);
  }
  return true;
}

static bool wrong_direction(struct hlo_instr *i, bool is_wanted) {
  static const enum hlo_direction other[] = {HLO_NE, HLO_EQ, HLO_GT, HLO_GE, HLO_LT, HLO_LE};
  if (i->op != HLO_COMPARE)
    return false;
  if (is_wanted) {
    struct hlo_attrs attrs = *i->attrs;
    attrs.direction = other[attrs.direction];
    hlo_set_attrs(i, &attrs);
  }
  return true;
}

/* A slice that begins and ends an element too early. */
static bool wrong_offset(struct hlo_instr *i, bool is_wanted) {
  int d = 0;
  if (i->op != HLO_SLICE)
    return false;
  while (d < i->shape.rank && i->attrs->slice[d].start == 0)
    d++;
  if (d == i->shape.rank)
    return false;
  if (is_wanted) {
    struct hlo_slice_dim *dims = arena_new_array(i->parent->module->arena, struct hlo_slice_dim, (size_t)i->shape.rank);
    memcpy(dims, i->attrs->slice, (size_t)i->shape.rank * sizeof *dims);
    dims[d].start--;
    dims[d].limit--;
    struct hlo_attrs attrs = *i->attrs;
    attrs.slice = dims;
    hlo_set_attrs(i, &attrs);
  }
  return true;
}

static bool scale_constant(struct hlo_instr *i, bool is_wanted) {
  const struct hlo_literal *from = i->op == HLO_CONSTANT ? i->attrs->literal : NULL;
  if (!from || from->shape.dtype != DT_F32 || !from->size)
    return false;
  const float *v = from->data;
  if (!(v[0] - v[0] == 0) || v[0] == 0)
    return false;
  if (is_wanted) {
    struct hlo_literal *to = arena_new(i->parent->module->arena, struct hlo_literal);
    float *data = arena_alloc(i->parent->module->arena, from->size);
    for (size_t k = 0; k < from->size / sizeof *data; k++)
      data[k] = v[k] * 1.25F;
    *to = *from;
    to->data = data;
    struct hlo_attrs attrs = *i->attrs;
    attrs.literal = to;
    hlo_set_attrs(i, &attrs);
  }
  return true;
}

/* f32 that goes through bf16. */
static bool wrong_rounding(struct hlo_instr *i, bool is_wanted) {
  if (!takes_two(i) || i->shape.dtype != DT_F32 || hlo_op_class(i->op) != HC_BINARY)
    return false;
  if (is_wanted) {
    struct hlo_builder b;
    hlo_builder_init(&b, i->parent->module);
    b.computation = i->parent;
    b.before = i;
    i->operands[0] = hlo_convert(&b, hlo_convert(&b, i->operands[0], DT_BF16), DT_F32);
  }
  return true;
}

static bool swap_branches(struct hlo_instr *i, bool is_wanted) {
  const bool is_select = i->op == HLO_SELECT;
  if (!is_select && (i->op != HLO_CONDITIONAL || i->n_called < 2))
    return false;
  if (is_wanted && is_select) {
    struct hlo_instr *first = i->operands[1];
    i->operands[1] = i->operands[2];
    i->operands[2] = first;
  } else if (is_wanted) {
    struct hlo_computation *first = i->called[0];
    i->called[0] = i->called[1];
    i->called[1] = first;
  }
  return true;
}

static const struct {
  const char *name;
  bool (*change)(struct hlo_instr *i, bool is_wanted);
} kinds[] = {
    {"swap-operands", swap_operands},     {"wrong-function", wrong_function}, {"drop-operation", drop_operation},
    {"wrong-operand", wrong_operand},     {"wrong-axis", wrong_axis},         {"wrong-axis", wrong_contraction},
    {"wrong-direction", wrong_direction}, {"wrong-offset", wrong_offset},     {"scale-constant", scale_constant},
    {"wrong-rounding", wrong_rounding},   {"swap-branches", swap_branches},
};

static bool in_computation(struct hlo_computation *c, const char *kind, int *n) {
  for (struct hlo_instr *i = c->first; i; i = i->next)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      if (!strcmp(kinds[k].name, kind) && kinds[k].change(i, *n == 0) && !(*n)--)
        return true;
  return false;
}

bool fault_in_hlo(struct hlo_module *m, const char *kind, int n) {
  if (in_computation(m->entry, kind, &n))
    return true;
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    if (c != m->entry && in_computation(c, kind, &n))
      return true;
  return false;
}
