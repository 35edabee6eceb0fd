/* check_compare: compares a stage's results with NumPy's. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "driver/check_internal.h"
#include "hlo/literal.h"

/* This is the only place with tolerances. f32: a single operation agrees to a few units in the last place (1e-7).  A
 * matmul or a softmax sums hundreds of products in another order than NumPy's BLAS, which changes about sqrt(K)
 * units of the largest partial sum: 1e-4 relative, and 1e-5 of the output's largest magnitude (or of 1) if terms of
 * a sum cancel.  A wrong pass has far larger errors. f16, bf16: three and two decimal digits; NumPy may round every
 * intermediate result, while the program rounds once. f8: one digit.  Integers and bool are not rounded. */
static void tolerance(enum dtype t, double *rtol, double *atol) {
  switch (t) {
  case DT_F64:
    *rtol = 1e-9, *atol = 1e-12;
    break;
  case DT_F32:
    *rtol = 1e-4, *atol = 1e-5;
    break;
  case DT_F16:
  case DT_BF16:
    *rtol = 1e-2, *atol = 1e-2;
    break;
  case DT_F8E4M3:
  case DT_F8E4M3FN:
  case DT_F8E5M2:
    *rtol = 0.25, *atol = 0.125;
    break;
  default:
    *rtol = 0, *atol = 0;
  }
}

static struct hlo_literal as_literal(const struct trace_array *x) {
  size_t n = (size_t)hlo_shape_elements(&x->shape);
  return (struct hlo_literal){.shape = x->shape, .data = x->data, .size = n * dtype_size(x->shape.dtype)};
}

/* An ill-conditioned kernel, such as a softmax of scores in the thousands, magnifies rounding errors, in NumPy's
 * result as in the program's.  So the program's error may be this many times the distance between NumPy's result and
 * the result in float64. */
enum { ROUNDING_FACTOR = 8 };

enum { BLOCK = 512 }; /* the number of elements that are compared at a time */

/* If terms of a sum cancel, an element's error has the size of the terms, not of the element.  The largest magnitude
 * in the output is used as an estimate of their size. */
static double largest_magnitude(const struct hlo_literal *x, int64_t n) {
  double most = 1, v[BLOCK];
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int m = n - k < BLOCK ? (int)(n - k) : BLOCK;
    hlo_literal_doubles(x, (size_t)k, (size_t)m, v);
    for (int i = 0; i < m; i++) {
      const double size = fabs(v[i]);
      most = size > most && size < INFINITY ? size : most;
    }
  }
  return most;
}

struct errors {
  double abs, rel;
  bool pass;
};

static void compare_float(double got, double want, double rtol, double atol, struct errors *e) {
  if (got == want || (isnan(got) && isnan(want)))
    return;
  double diff = fabs(got - want);
  if (!isfinite(diff)) { /* a NaN or an infinity on one side only */
    *e = (struct errors){INFINITY, INFINITY, false};
    return;
  }
  double rel = want != 0 ? diff / fabs(want) : INFINITY;
  if (diff > e->abs)
    e->abs = diff;
  if (rel > e->rel && diff > atol) /* the relative error of a value near zero is meaningless */
    e->rel = rel;
  if (!(diff <= atol + rtol * fabs(want)))
    e->pass = false;
}

/* Returns the largest difference; INFINITY if one is larger than `most`, or is not a number. */
static double largest_difference(const double *got, const double *want, int n, double most) {
  double largest = 0;
  int n_within = 0;
  for (int k = 0; k < n; k++) {
    const double diff = fabs(got[k] - want[k]);
    largest = diff > largest ? diff : largest;
    n_within += diff <= most;
  }
  return n_within == n ? largest : INFINITY;
}

static void compare_floats(const struct hlo_literal *x, const struct hlo_literal *y, int64_t n, double rtol,
                           double atol, struct errors *e) {
  double got[BLOCK], want[BLOCK];
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int m = n - k < BLOCK ? (int)(n - k) : BLOCK;
    hlo_literal_doubles(x, (size_t)k, (size_t)m, got);
    hlo_literal_doubles(y, (size_t)k, (size_t)m, want);
    const double largest = largest_difference(got, want, m, atol);
    if (largest <= atol) { /* then every element is within its own tolerance */
      e->abs = fmax(e->abs, largest);
      continue;
    }
    for (int i = 0; i < m; i++)
      compare_float(got[i], want[i], rtol, atol, e);
  }
}

static void compare_int(int64_t got, int64_t want, bool is_unsigned, struct errors *e) {
  if (got == want)
    return;
  double x = is_unsigned ? (double)(uint64_t)got : (double)got;
  double y = is_unsigned ? (double)(uint64_t)want : (double)want;
  double diff = fabs(x - y), rel = y != 0 ? diff / fabs(y) : INFINITY;
  e->abs = fmax(e->abs, diff);
  e->rel = fmax(e->rel, rel);
  e->pass = false;
}

static struct errors compare_array(const struct trace_array *got, const struct trace_array *want) {
  struct errors e = {0, 0, true};
  const enum dtype t = got->shape.dtype; /* the narrower type, if a pass narrowed 64 bits */
  const int64_t n = hlo_shape_elements(&want->shape);
  struct hlo_literal x = as_literal(got), y = as_literal(want);
  double rtol, atol;

  if (!hlo_shape_same_dims(&got->shape, &want->shape) ||
      (t != want->shape.dtype && t != dtype_narrow(want->shape.dtype)))
    return (struct errors){INFINITY, INFINITY, false};
  tolerance(t, &rtol, &atol);
  if (dtype_is_float(t)) {
    atol = atol * largest_magnitude(&y, n) + ROUNDING_FACTOR * want->rounding;
    compare_floats(&x, &y, n, rtol, atol, &e);
    return e;
  }
  for (int64_t k = 0; k < n; k++)
    compare_int(hlo_literal_int(&x, (size_t)k), hlo_literal_int(&y, (size_t)k), dtype_kind(t) == DK_UNSIGNED, &e);
  return e;
}

void check_compare(int n, const struct trace_array *got, const struct trace_array *want, struct check_result *r) {
  *r = (struct check_result){.pass = true};
  for (int k = 0; k < n; k++) {
    struct errors e = compare_array(&got[k], &want[k]);
    /* the worst output is a failing one if there is one, and of these the one with the largest error */
    if ((r->pass && !e.pass) || (r->pass == e.pass && e.abs > r->max_abs_err))
      r->worst_output = k;
    r->pass &= e.pass;
    r->max_abs_err = fmax(r->max_abs_err, e.abs);
    r->max_rel_err = fmax(r->max_rel_err, e.rel);
  }
  assert(n == 0 || (r->worst_output >= 0 && r->worst_output < n));
}
