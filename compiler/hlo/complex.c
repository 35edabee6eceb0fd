/* complex: a module with complex numbers as one of pairs of reals.
 *
 *     multiply(x, y)                  ==>  (x.re y.re - x.im y.im, x.re y.im + x.im y.re)
 *     transpose(x), dimensions=…      ==>  (transpose(x.re), transpose(x.im))
 *     parameter, while, tuple of c64[n]  ==>  the same of f32[n,2]
 *
 * Inside a computation a complex value is two arrays.  Where it crosses a border (parameters, results, tuples, what
 * loops carry) it is one array of reals with a last dimension of 2, so that no border gets more values than it had, and
 * an array of complex numbers in memory can be handed to the program as it is.  Either form is made from the other when
 * it is first needed.  Callers are written before what they call, because they read combiners.  Linear.
 */
#include "hlo/complex.h"

#include <assert.h>

#include "hlo/build_internal.h"
#include "hlo/expand.h"
#include "hlo/rewrite.h"

struct value {
  bool is_complex;      /* it was c64 */
  bool is_touched;      /* it, or an operand, was c64, or a tuple with c64 */
  struct hlo_pair pair; /* NULL until it is needed */
  hlo_val packed;       /* f32[…,2]; NULL until it is needed */
};

struct expander {
  struct hlo_builder b;
  struct value *values; /* by id, of the module's first instructions */
  int n_values;
};

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

bool hlo_complex_is_in(const struct hlo_shape *s) {
  for (int k = 0; s->dtype == DT_TUPLE && k < s->n_elems; k++)
    if (hlo_complex_is_in(&s->elems[k]))
      return true;
  return dtype_is_complex(s->dtype);
}

struct hlo_shape hlo_complex_shape(struct arena *a, const struct hlo_shape *s) {
  if (!hlo_complex_is_in(s))
    return *s;
  if (s->dtype == DT_TUPLE) {
    struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)s->n_elems);
    for (int k = 0; k < s->n_elems; k++)
      elems[k] = hlo_complex_shape(a, &s->elems[k]);
    return (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = s->n_elems, .elems = elems};
  }
  int64_t *dims = arena_new_array(a, int64_t, (size_t)s->rank + 1);
  for (int k = 0; k < s->rank; k++)
    dims[k] = s->dims[k];
  dims[s->rank] = 2;
  return (struct hlo_shape){.dtype = DT_F32, .rank = s->rank + 1, .dims = dims};
}

/* ---- the two forms of a value --------------------------------------------------------------------------------------- */

static struct value *value_of(struct expander *e, const struct hlo_instr *x) {
  assert(x->id < e->n_values);
  return &e->values[x->id];
}

/* x was complex before; what is built here never is. */
static bool was_complex(const struct expander *e, const struct hlo_instr *x) {
  return x->id < e->n_values && e->values[x->id].is_complex;
}

static hlo_val part(struct hlo_builder *b, hlo_val packed, int64_t k) {
  const int last = packed->shape.rank - 1;
  return hlo_reshape(b, hlo_expand_part(b, packed, last, k, k + 1), last, packed->shape.dims);
}

static struct hlo_pair pair_of(struct expander *e, const struct hlo_instr *x) {
  struct value *v = value_of(e, x);
  if (!v->pair.re && v->packed)
    v->pair = (struct hlo_pair){part(&e->b, v->packed, 0), part(&e->b, v->packed, 1)};
  return v->pair;
}

static hlo_val packed_of(struct expander *e, const struct hlo_instr *x) {
  struct value *v = value_of(e, x);
  int64_t dims[HLO_RANK_MAX + 1];
  if (v->packed || !v->pair.re)
    return v->packed;
  const struct hlo_shape *s = &v->pair.re->shape;
  for (int k = 0; k < s->rank; k++)
    dims[k] = s->dims[k];
  dims[s->rank] = 1;
  hlo_val parts[] = {hlo_reshape(&e->b, v->pair.re, s->rank + 1, dims),
                     hlo_reshape(&e->b, v->pair.im, s->rank + 1, dims)};
  v->packed = hlo_concatenate(&e->b, 2, parts, s->rank);
  return v->packed;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------ */

#define ADD(x, y) hlo_binary(b, HLO_ADD, x, y)
#define SUB(x, y) hlo_binary(b, HLO_SUBTRACT, x, y)
#define MUL(x, y) hlo_binary(b, HLO_MULTIPLY, x, y)
#define DIV(x, y) hlo_binary(b, HLO_DIVIDE, x, y)
#define UNARY(op, x) hlo_unary(b, HLO_##op, x)
#define NUMBER(x, v) hlo_expand_like(b, x, v)

static struct hlo_pair multiply(struct hlo_builder *b, struct hlo_pair x, struct hlo_pair y) {
  return (struct hlo_pair){SUB(MUL(x.re, y.re), MUL(x.im, y.im)), ADD(MUL(x.re, y.im), MUL(x.im, y.re))};
}

static struct hlo_pair scale(struct hlo_builder *b, struct hlo_pair x, hlo_val r) {
  return (struct hlo_pair){MUL(x.re, r), MUL(x.im, r)};
}

/* |x|, without leaving the range of floats on the way: the larger part times sqrt(1 + quotient^2). */
static hlo_val magnitude(struct hlo_builder *b, struct hlo_pair x) {
  hlo_val p = UNARY(ABS, x.re), q = UNARY(ABS, x.im);
  hlo_val high = hlo_binary(b, HLO_MAXIMUM, p, q), low = hlo_binary(b, HLO_MINIMUM, p, q), zero = NUMBER(high, 0);
  hlo_val is_zero = hlo_compare(b, HLO_EQ, high, zero);
  hlo_val ratio = DIV(low, hlo_select(b, is_zero, NUMBER(high, 1), high));
  hlo_val size = MUL(high, UNARY(SQRT, hlo_expand_with(b, HLO_ADD, MUL(ratio, ratio), 1)));
  hlo_val is_infinite = hlo_compare(b, HLO_EQ, high, NUMBER(high, __builtin_inf()));
  return hlo_select(b, is_infinite, high, size);
}

/* Smith's way: the divisor is scaled by its larger part, so that no square overflows. */
static struct hlo_pair divide(struct hlo_builder *b, struct hlo_pair x, struct hlo_pair y) {
  hlo_val is_re = hlo_compare(b, HLO_GE, UNARY(ABS, y.re), UNARY(ABS, y.im));
  hlo_val large = hlo_select(b, is_re, y.re, y.im), small = hlo_select(b, is_re, y.im, y.re);
  hlo_val r = DIV(small, large), d = ADD(large, MUL(small, r));
  hlo_val xr = hlo_select(b, is_re, x.re, x.im), xi = hlo_select(b, is_re, x.im, x.re);
  /* (xr + xi r, ±(xi - xr r)) / d, where the parts of x are swapped with those of y */
  hlo_val re = DIV(ADD(xr, MUL(xi, r)), d), im = DIV(SUB(xi, MUL(xr, r)), d);
  return (struct hlo_pair){re, hlo_select(b, is_re, im, UNARY(NEGATE, im))};
}

static struct hlo_pair exponential(struct hlo_builder *b, struct hlo_pair x) {
  return scale(b, (struct hlo_pair){UNARY(COS, x.im), UNARY(SIN, x.im)}, UNARY(EXP, x.re));
}

static struct hlo_pair logarithm(struct hlo_builder *b, struct hlo_pair x) {
  return (struct hlo_pair){UNARY(LOG, magnitude(b, x)), hlo_binary(b, HLO_ATAN2, x.im, x.re)};
}

/* The root with the positive real part: t = sqrt((|re| + |x|) / 2) is that part, or for a negative re the other one. */
static struct hlo_pair square_root(struct hlo_builder *b, struct hlo_pair x) {
  hlo_val half = hlo_expand_with(b, HLO_MULTIPLY, ADD(UNARY(ABS, x.re), magnitude(b, x)), 0.5), t = UNARY(SQRT, half);
  hlo_val zero = NUMBER(t, 0), is_zero = hlo_compare(b, HLO_EQ, t, zero);
  hlo_val twice = hlo_select(b, is_zero, NUMBER(t, 1), ADD(t, t)), other = DIV(x.im, twice);
  hlo_val is_left = hlo_compare(b, HLO_LT, x.re, zero), is_below = hlo_compare(b, HLO_LT, x.im, zero);
  hlo_val im = hlo_select(b, is_below, UNARY(NEGATE, t), t);
  return (struct hlo_pair){hlo_select(b, is_left, UNARY(ABS, other), t), hlo_select(b, is_left, im, other)};
}

/* sin x = (sin re cosh im, cos re sinh im), cos x = (cos re cosh im, -sin re sinh im) */
static struct hlo_pair wave(struct hlo_builder *b, struct hlo_pair x, bool is_sine) {
  hlo_val up = UNARY(EXP, x.im), down = UNARY(EXP, UNARY(NEGATE, x.im)), sine = UNARY(SIN, x.re),
          cosine = UNARY(COS, x.re);
  hlo_val cosh = hlo_expand_with(b, HLO_MULTIPLY, ADD(up, down), 0.5);
  hlo_val sinh = hlo_expand_with(b, HLO_MULTIPLY, SUB(up, down), 0.5);
  if (is_sine)
    return (struct hlo_pair){MUL(sine, cosh), MUL(cosine, sinh)};
  return (struct hlo_pair){MUL(cosine, cosh), UNARY(NEGATE, MUL(sine, sinh))};
}

static struct hlo_pair sign(struct hlo_builder *b, struct hlo_pair x) {
  hlo_val size = magnitude(b, x), is_zero = hlo_compare(b, HLO_EQ, size, NUMBER(size, 0));
  size = hlo_select(b, is_zero, NUMBER(size, 1), size);
  return (struct hlo_pair){DIV(x.re, size), DIV(x.im, size)};
}

/* x to the power y; 0 to the power 0 is 1, and to another power 0. */
static struct hlo_pair power(struct hlo_builder *b, struct hlo_pair x, struct hlo_pair y) {
  hlo_val zero = NUMBER(x.re, 0), one = NUMBER(x.re, 1);
  hlo_val is_zero = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_EQ, x.re, zero), hlo_compare(b, HLO_EQ, x.im, zero));
  hlo_val is_none = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_EQ, y.re, zero), hlo_compare(b, HLO_EQ, y.im, zero));
  struct hlo_pair base = {hlo_select(b, is_zero, one, x.re), x.im};
  struct hlo_pair r = exponential(b, multiply(b, y, logarithm(b, base)));
  return (struct hlo_pair){hlo_select(b, is_zero, hlo_select(b, is_none, one, zero), r.re),
                           hlo_select(b, is_zero, zero, r.im)};
}

/* ---- instructions that treat both parts alike ------------------------------------------------------------------------- */

/* i on the real (k == 0) or imaginary parts of its complex operands; other operands as they are. */
static hlo_val apply_to(struct expander *e, const struct hlo_instr *i, int k) {
  enum { OPERANDS_MAX = 3 };
  struct arena *a = e->b.module->arena;
  struct hlo_instr *few[OPERANDS_MAX], **v = few;
  struct hlo_computation *combiner;
  struct hlo_instr draft = *i;
  if (i->n_operands > OPERANDS_MAX)
    v = arena_new_array(a, struct hlo_instr *, (size_t)i->n_operands);
  for (int n = 0; n < i->n_operands; n++) {
    v[n] = i->operands[n];
    if (was_complex(e, v[n])) {
      const struct hlo_pair x = pair_of(e, v[n]);
      v[n] = k ? x.im : x.re;
    }
  }
  draft.operands = v;
  draft.shape.dtype = DT_F32;
  if (i->n_called) {
    const enum hlo_op op = i->called[0]->root->op == HLO_ADD ? HLO_ADD : HLO_COPY;
    combiner = hlo_build_combiner(e->b.module, op == HLO_ADD ? "add" : "scatter_assign", op, DT_F32);
    draft.called = &combiner;
  }
  return hlo_build_append(&e->b, NULL, &draft);
}

static struct hlo_pair apply_to_both(struct expander *e, const struct hlo_instr *i) {
  return (struct hlo_pair){apply_to(e, i, 0), apply_to(e, i, 1)};
}

/* A product of sums, dot or convolution, of these parts. */
static hlo_val product(struct expander *e, const struct hlo_instr *i, hlo_val x, hlo_val y) {
  hlo_val v[] = {x, y};
  struct hlo_instr draft = *i;
  draft.operands = v;
  draft.shape.dtype = DT_F32;
  return hlo_build_append(&e->b, NULL, &draft);
}

static struct hlo_pair products(struct expander *e, const struct hlo_instr *i, struct hlo_pair x, struct hlo_pair y) {
  struct hlo_builder *b = &e->b;
  return (struct hlo_pair){SUB(product(e, i, x.re, y.re), product(e, i, x.im, y.im)),
                           ADD(product(e, i, x.re, y.im), product(e, i, x.im, y.re))};
}

/* ---- leaves ------------------------------------------------------------------------------------------------------------ */

static struct hlo_pair split_constant(struct hlo_builder *b, const struct hlo_instr *i) {
  const size_t n = (size_t)hlo_shape_elements(&i->shape);
  const float *from = i->attrs->literal->data;
  float *re = arena_new_array(b->module->arena, float, n + 1), *im = arena_new_array(b->module->arena, float, n + 1);
  for (size_t k = 0; k < n; k++) {
    re[k] = from[2 * k];
    im[k] = from[2 * k + 1];
  }
  struct hlo_shape s = i->shape;
  s.dtype = DT_F32;
  return (struct hlo_pair){hlo_constant(b, s, re), hlo_constant(b, s, im)};
}

/* ---- instructions ------------------------------------------------------------------------------------------------------ */

/* The pair that i is; of a real result, the real part alone. */
static struct hlo_pair expand_value(struct expander *e, const struct hlo_instr *i) {
  struct hlo_builder *b = &e->b;
  struct hlo_pair v[2] = {{NULL, NULL}, {NULL, NULL}};
  hlo_val r;
  for (int k = 0; k < i->n_operands && k < 2; k++)
    v[k] = was_complex(e, i->operands[k]) ? pair_of(e, i->operands[k]) : (struct hlo_pair){i->operands[k], NULL};
  switch (i->op) {
  case HLO_CONSTANT:
    return split_constant(b, i);
  case HLO_COMPLEX:
    return (struct hlo_pair){i->operands[0], i->operands[1]};
  case HLO_CONVERT:
    r = v[0].im ? NULL : hlo_convert(b, i->operands[0], DT_F32);
    return r ? (struct hlo_pair){r, NUMBER(r, 0)} : v[0];
  case HLO_REAL:
    return (struct hlo_pair){v[0].re, NULL};
  case HLO_IMAG:
    return (struct hlo_pair){v[0].im, NULL};
  case HLO_ABS:
    return (struct hlo_pair){magnitude(b, v[0]), NULL};
  case HLO_MULTIPLY:
    return multiply(b, v[0], v[1]);
  case HLO_DIVIDE:
    return divide(b, v[0], v[1]);
  case HLO_EXP:
    return exponential(b, v[0]);
  case HLO_LOG:
    return logarithm(b, v[0]);
  case HLO_SQRT:
    return square_root(b, v[0]);
  case HLO_RSQRT:
    r = NUMBER(v[0].re, 1);
    return divide(b, (struct hlo_pair){r, NUMBER(r, 0)}, square_root(b, v[0]));
  case HLO_SIN:
  case HLO_COS:
    return wave(b, v[0], i->op == HLO_SIN);
  case HLO_SIGN:
    return sign(b, v[0]);
  case HLO_POWER:
    return power(b, v[0], v[1]);
  case HLO_COMPARE:
    r = hlo_compare(b, i->attrs->direction, v[0].im, v[1].im);
    return (struct hlo_pair){hlo_binary(b, i->attrs->direction == HLO_EQ ? HLO_AND : HLO_OR,
                                        hlo_compare(b, i->attrs->direction, v[0].re, v[1].re), r),
                             NULL};
  case HLO_DOT:
  case HLO_CONVOLUTION:
    return products(e, i, v[0], v[1]);
  case HLO_FFT:
    return hlo_complex_fft(b, i, v[0]);
  default:
    return apply_to_both(e, i);
  }
}

/* Instructions that stay, on packed values. */
static bool is_border(const struct hlo_instr *i) {
  return i->op == HLO_PARAMETER || hlo_op_hands_on(i->op) || i->shape.dtype == DT_TUPLE;
}

static void pack_border(struct expander *e, struct hlo_instr *i) {
  for (int k = 0; k < i->n_operands; k++)
    if (was_complex(e, i->operands[k]))
      i->operands[k] = packed_of(e, i->operands[k]);
  if (was_complex(e, i))
    value_of(e, i)->packed = i;
  i->shape = hlo_complex_shape(e->b.module->arena, &i->shape);
}

/* What was built in front of i comes from i; combiners come to stand in front of the computation. */
static void adopt(struct hlo_instr *i, struct hlo_instr *before) {
  for (struct hlo_instr *x = before ? before->next : i->parent->first; x != i; x = x->next) {
    hlo_rewrite_inherit_places(x, i);
    for (int k = 0; k < x->n_called; k++)
      hlo_computation_move_before(x->called[k], i->parent);
  }
}

static void expand_instr(struct expander *e, struct hlo_instr *i) {
  struct hlo_instr *before = i->prev;
  struct hlo_computation *c = i->parent;
  e->b.before = i;
  e->b.locs = i->locs;
  if (is_border(i)) {
    pack_border(e, i);
    adopt(i, before);
    return;
  }
  const struct hlo_pair made = expand_value(e, i);
  hlo_val heir = made.re;
  if (was_complex(e, i)) {
    value_of(e, i)->pair = made;
    heir = c->root == i ? packed_of(e, i) : NULL;
  }
  if (c->root == i && heir) {
    hlo_rewrite_inherit_places(heir, i);
    c->root = heir;
  }
  adopt(i, before);
  if (!e->b.err.code)
    hlo_rewrite_remove(i, heir);
}

/* ---- the module -------------------------------------------------------------------------------------------------------- */

bool hlo_complex_is_used(const struct hlo_module *m) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    for (const struct hlo_instr *i = c->first; i; i = i->next)
      if (hlo_complex_is_in(&i->shape))
        return true;
  return false;
}

static void find_complex(struct expander *e, struct hlo_module *m) {
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      struct value *v = value_of(e, i);
      v->is_complex = dtype_is_complex(i->shape.dtype);
      v->is_touched = hlo_complex_is_in(&i->shape);
      for (int k = 0; k < i->n_operands; k++)
        v->is_touched |= hlo_complex_is_in(&i->operands[k]->shape);
    }
}

static void expand_computation(struct expander *e, struct hlo_computation *c) {
  e->b.computation = c;
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    if (i->id < e->n_values && value_of(e, i)->is_touched)
      expand_instr(e, i);
  }
}

void hlo_complex_expand(struct hlo_module *m) {
  struct arena scratch;
  struct expander e = {.n_values = m->next_id};
  int n = 0;

  arena_init(&scratch);
  hlo_builder_init(&e.b, m);
  e.values = arena_new_array(&scratch, struct value, (size_t)m->next_id);
  find_complex(&e, m);
  struct hlo_computation **order = arena_new_array(&scratch, struct hlo_computation *, (size_t)m->n_computations);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    order[n++] = c;
  while (n-- > 0)
    expand_computation(&e, order[n]);
  assert(!e.b.err.code); /* the shape rules have seen every instruction */
  arena_clear(&scratch);
}
