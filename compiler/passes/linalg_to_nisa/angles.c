/* angles: computes functions of angles that no engine has from functions that the engines have.
 *
 *     cos(x)      = sin(pi/2 - |x|), pi/2 in two parts: the difference keeps its digits where the cosine is near 0
 *     atan2(y, x)   r = arctan(min(|x|, |y|) / max(|x|, |y|)); if |y| > |x|: pi/2 - r; if x < 0: pi - r; the sign of y
 *
 * The quotient is in [0, 1], because the table of arctan ends at pi/2.  If both operands are equal,
 * the quotient is 1, also for two infinities; if the smaller one is 0, it is 0, also for two zeros.  The sign of a
 * zero counts: the reciprocal distinguishes -0 from 0.  A positive constant x, as in arctan(y) = atan2(y, 1), needs
 * about half of the steps.
 */
#include <assert.h>
#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

#define PI 3.14159265358979323846
#define HALF_PI (PI / 2)

enum { TEMPS_MAX = 8 }; /* ln_arctan2 needs the most */

/* A sequence of instructions on tiles of the same shape.  After an error, no more instructions are emitted. */
struct steps {
  struct ln_body *b;
  ln_atoms atoms;
  MlirType f32, bit;
  enum status st;
  int n;
  struct ln_view *temps[TEMPS_MAX];
};

static struct steps begin(struct ln_body *b, ln_atoms atoms) {
  MlirContext ctx = b->w->ln->b.ctx;
  return (struct steps){.b = b, .atoms = atoms, .f32 = mlirF32TypeGet(ctx), .bit = mlirIntegerTypeGet(ctx, 1)};
}

static enum status end(struct steps *s) {
  while (s->n)
    ln_release(s->b->w->ln, s->temps[--s->n]);
  return s->st;
}

static struct ln_view *temp(struct steps *s, MlirType t) {
  assert(s->n < TEMPS_MAX);
  return s->temps[s->n++] = ln_temp_like(s->b, t, s->atoms);
}

static struct ln_arg number(struct steps *s, double v) {
  return ln_number_arg(s->b, s->f32, v);
}

static void arith(struct steps *s, const char *op, const struct ln_view *dst, struct ln_arg x, struct ln_arg y) {
  if (!s->st)
    s->st = ln_arith(s->b->w, s->b->par, op, dst, x, y, false);
}

static void activate(struct steps *s, const char *function, const struct ln_view *dst, const struct ln_view *src) {
  if (!s->st)
    s->st = ln_activate(s->b->w, s->b->par, function, dst, src, false);
}

/* dst = x * factor + sum */
static void scale(struct steps *s, const struct ln_view *dst, const struct ln_view *x, double factor, double sum) {
  if (!s->st)
    s->st = ln_two_ops(s->b->w, s->b->par, dst, x, "multiply", factor, false, "add", sum);
}

static void put_where(struct steps *s, const struct ln_view *dst, struct ln_arg x, const struct ln_view *bits) {
  if (!s->st)
    s->st = ln_copy_where(s->b, dst, &x, bits, false);
}

/* bits = x < 0 or x is -0.  Overwrites scratch. */
static void sign_bit(struct steps *s, const struct ln_view *bits, const struct ln_view *x,
                     const struct ln_view *scratch, const struct ln_view *more_bits) {
  if (!s->st)
    s->st = ln_reciprocal(s->b->w, s->b->par, scratch, x);
  arith(s, "is_lt", more_bits, ln_data(scratch), number(s, 0));
  arith(s, "is_lt", bits, ln_data(x), number(s, 0));
  arith(s, "logical_or", bits, ln_data(bits), ln_data(more_bits));
}

enum status ln_cos(struct ln_body *b, const struct ln_view *dst, const struct ln_view *x) {
  struct steps s = begin(b, ln_view_atoms(x));
  struct ln_view *turned = temp(&s, s.f32);

  activate(&s, "abs", turned, x);
  if (!s.st)
    s.st = ln_two_ops(b->w, b->par, turned, turned, "subtract", (float)HALF_PI, true, "add", HALF_PI - (float)HALF_PI);
  activate(&s, "sin", dst, turned);
  return end(&s);
}

/* Returns an operand as data, even if it is a scalar. */
static struct ln_view *data_of(struct steps *s, const struct ln_arg *x) {
  if (x->view || s->st)
    return (struct ln_view *)x->view;
  struct ln_view *v = temp(s, s->f32);
  s->st = ln_set(s->b->w, v, x->scalar);
  return v;
}

static bool is_positive(const struct ln_arg *x) {
  MlirAttribute a = x->view ? mlirAttributeGetNull() : ir_constant(x->scalar);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) > 0 &&
         mlirFloatAttrGetValueDouble(a) < HUGE_VAL;
}

enum status ln_arctan2(struct ln_body *b, const struct ln_view *dst, struct ln_arg y_arg, struct ln_arg x_arg) {
  struct steps s = begin(b, ln_view_atoms(dst));
  const bool right = is_positive(&x_arg); /* (x, y) is in the right half-plane for all y */
  const struct ln_view *y = data_of(&s, &y_arg), *x = right ? NULL : data_of(&s, &x_arg);
  struct ln_view *r = temp(&s, s.f32), *u = temp(&s, s.f32), *is_steep = temp(&s, s.bit), *bits = temp(&s, s.bit),
                 *more_bits = temp(&s, s.bit);

  if (s.st)
    return end(&s);
  struct ln_arg width = x_arg; /* |x| */
  activate(&s, "abs", r, y);
  if (!right) {
    struct ln_view *size = temp(&s, s.f32);
    activate(&s, "abs", size, x);
    width = ln_data(size);
  }
  arith(&s, "is_gt", is_steep, ln_data(r), width);
  arith(&s, "min", u, ln_data(r), width);
  arith(&s, "max", r, ln_data(r), width);
  if (!right) {
    arith(&s, "is_eq", bits, ln_data(u), ln_data(r));
    arith(&s, "is_eq", more_bits, ln_data(u), number(&s, 0));
  }
  arith(&s, "divide", r, ln_data(u), ln_data(r));
  if (!right) {
    put_where(&s, r, number(&s, 1), bits);
    put_where(&s, r, number(&s, 0), more_bits);
  }
  activate(&s, "arctan", r, r);
  scale(&s, u, r, -1, HALF_PI);
  put_where(&s, r, ln_data(u), is_steep);
  if (!right) {
    sign_bit(&s, bits, x, u, more_bits);
    scale(&s, u, r, -1, PI);
    put_where(&s, r, ln_data(u), bits);
  }
  sign_bit(&s, bits, y, u, more_bits);
  scale(&s, u, bits, -2, 1);
  arith(&s, "multiply", dst, ln_data(r), ln_data(u));
  return end(&s);
}
