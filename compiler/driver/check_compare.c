/* check_compare: compares a stage's results with NumPy's.  The server uses it, too, so it must not need MLIR. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/check_internal.h"
#include "hlo/literal.h"

/* This is the only place with tolerances; rtol is relative to an element, atol to the largest magnitude in its row.
 * f32: a single operation agrees to a few units in the last place (1e-7).  A matmul or a softmax sums hundreds of
 * products in another order than NumPy's BLAS, which changes about sqrt(K) units of the largest partial sum: 1e-4
 * relative, and 1e-5 of the row's largest magnitude if terms of a sum cancel.  A wrong pass has far larger errors.
 * f16, bf16: three and two decimal digits; the passes may round more often or less often than NumPy does.  f8: one
 * digit.  Integers and bool are not rounded. */
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
 * result as in the program's.  An element may differ by this many times its spread (trace.h), or the spread that three
 * of four elements of its row do not exceed: an element's own spread may be small by chance. */
enum { SPREAD_FACTOR = 8 };

/* Masks write numbers such as -1e9 among others; such elements say nothing about the size of a row's terms. */
static const double sentinel = 1e8;

/* Integers and comparisons may differ by one step in one of so many elements, as may as many elements again as differ
 * between NumPy's own runs. */
enum { ELEMENTS_PER_STEP = 20000 };

enum {
  BLOCK = 512,  /* the number of elements that are compared at a time */
  ROW_MIN = 16, /* shorter rows are taken together */
  SAMPLE = 64   /* the number of elements of a row whose spread is looked at */
};

/* ---- tolerances -------------------------------------------------------------------------------------------------- */

struct row {
  double scale;  /* the largest magnitude; if terms of a sum cancel, an element's error has the size of the terms */
  double spread; /* of three of four elements */
};

static int compare_numbers(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static double load(const struct trace_array *x, int64_t k) {
  const struct hlo_literal l = as_literal(x);
  return dtype_is_float(x->shape.dtype) ? hlo_literal_double(&l, (size_t)k) : (double)hlo_literal_int(&l, (size_t)k);
}

static struct row look_at_row(const struct trace_array *x, int64_t first, int64_t n) {
  const struct hlo_literal l = as_literal(x);
  const int64_t step = n > SAMPLE ? n / SAMPLE : 1;
  struct row r = {0, 0};
  double sample[2 * SAMPLE], v[BLOCK];
  int n_sample = 0;
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int m = n - k < BLOCK ? (int)(n - k) : BLOCK;
    hlo_literal_doubles(&l, (size_t)(first + k), (size_t)m, v);
    for (int i = 0; i < m; i++)
      if (fabs(v[i]) < sentinel)
        r.scale = fmax(r.scale, fabs(v[i]));
  }
  if (!x->spread) {
    r.scale = fmax(r.scale, 1);
    return r;
  }
  for (int64_t k = 0; k < n && n_sample < 2 * SAMPLE; k += step)
    if (fabs(load(x, first + k)) < sentinel)
      sample[n_sample++] = (double)x->spread[first + k];
  qsort(sample, (size_t)n_sample, sizeof *sample, compare_numbers);
  r.spread = n_sample ? sample[(3 * n_sample - 1) / 4] : 0;
  return r;
}

/* Returns the share of a row's scale that its spread reaches in a row that rounding does not throw off: three of four rows
 * have more.  A softmax of large scores takes one of two nearly equal keys, so rounding changes few rows, but these wholly,
 * and the runs that gave the spread show only some of the rows to which that may happen. */
static double calm_share(struct arena *a, const struct row *rows, int64_t n) {
  double *shares = arena_new_array(a, double, (size_t)n);
  for (int64_t k = 0; k < n; k++)
    shares[k] = rows[k].scale > 0 ? rows[k].spread / rows[k].scale : 0;
  qsort(shares, (size_t)n, sizeof *shares, compare_numbers);
  return shares[n / 4];
}

static void tolerate_row(const struct trace_array *x, int64_t first, int64_t n, double rtol, double atol, struct row r,
                         double calm, float *of, struct check_tolerance *t) {
  const bool is_float = dtype_is_float(x->shape.dtype);
  for (int64_t k = first; k < first + n; k++) {
    const double size = is_float ? fabs(load(x, k)) : 0, spread = x->spread ? (double)x->spread[k] : 0;
    const double alone = isfinite(size) ? rtol * size : 0;
    const bool is_alike = size < sentinel;
    const double base = alone + (is_alike ? atol * r.scale + SPREAD_FACTOR * r.spread : 0);
    /* what the element of a row that is not thrown off, and the others of this row, stay within */
    const double usual = alone + (is_alike ? atol * r.scale + SPREAD_FACTOR * fmin(r.spread, calm * r.scale) : 0);
    if (spread > usual) {
      t->n_jumps += 2;
      if (spread < INFINITY)
        t->jump = fmax(t->jump, 2 * spread);
    }
    of[k] = (float)fmax(base, base + SPREAD_FACTOR * fmax(0, spread - r.spread));
  }
}

static void tolerate(struct arena *a, const struct trace_array *x, enum dtype type, struct check_tolerance *t) {
  const int64_t n = hlo_shape_elements(&x->shape);
  float *of = arena_new_array(a, float, (size_t)n);
  double rtol, atol;
  *t = (struct check_tolerance){.of = of};
  tolerance(type, &rtol, &atol);
  int64_t width = x->shape.rank ? x->shape.dims[x->shape.rank - 1] : 1;
  if (width > 0 && width < ROW_MIN)
    width *= (ROW_MIN + width - 1) / width;
  const int64_t n_rows = width ? (n + width - 1) / width : 0;
  struct row *rows = arena_new_array(a, struct row, (size_t)n_rows);
  for (int64_t k = 0; k < n_rows; k++)
    rows[k] = dtype_is_float(x->shape.dtype) ? look_at_row(x, k * width, n - k * width < width ? n - k * width : width)
                                             : (struct row){0, 0};
  const double calm = n_rows && x->spread ? calm_share(a, rows, n_rows) : 0;
  for (int64_t k = 0; k < n_rows; k++)
    tolerate_row(x, k * width, n - k * width < width ? n - k * width : width, rtol, atol, rows[k], calm, of, t);
  if (x->spread && !dtype_is_float(type)) {
    t->n_jumps += n / ELEMENTS_PER_STEP;
    t->jump = fmax(t->jump, 1);
  }
}

void check_tolerate(struct arena *a, int n, const struct trace_array *want, struct check_tolerance *out) {
  for (int k = 0; k < n; k++)
    tolerate(a, &want[k], want[k].shape.dtype, &out[k]);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

struct errors {
  double abs, rel;
  bool pass;
  int64_t n_beyond, first; /* elements beyond their tolerance, and the first one's place */
  double got, want;        /* of the first one */
  double farthest;         /* the largest difference of those */
};

/* The relative error of an element that its tolerance does not tell from zero is meaningless. */
static double relative(double diff, double want, double most) {
  return fabs(want) > most || diff > most ? want != 0 ? diff / fabs(want) : INFINITY : 0;
}

static void compare_element(int64_t at, double got, double want, double most, struct errors *e) {
  if (got == want || (isnan(got) && isnan(want)) || most == INFINITY)
    return;
  double diff = fabs(got - want);
  if (isnan(diff))
    diff = INFINITY; /* a NaN or an infinity on one side only */
  const double rel = relative(diff, want, most);
  e->abs = fmax(e->abs, diff);
  e->rel = fmax(e->rel, isnan(rel) ? INFINITY : rel);
  if (diff <= most)
    return;
  if (!e->n_beyond++) {
    e->first = at;
    e->got = got;
    e->want = want;
  }
  e->farthest = fmax(e->farthest, diff);
}

/* Does the same for n elements, if all are numbers within finite tolerances; false, and nothing is done, if not. */
static bool compare_block(const double *got, const double *want, int n, const float *most, struct errors *e) {
  double abs = 0, rel = 0;
  int n_within = 0;
  for (int k = 0; k < n; k++) {
    const double diff = fabs(got[k] - want[k]), limit = (double)most[k], size = fabs(want[k]);
    const double ratio = diff / (size > limit ? size : INFINITY);
    abs = diff > abs ? diff : abs;
    rel = ratio > rel ? ratio : rel;
    n_within += diff <= limit && limit < INFINITY;
  }
  if (n_within < n)
    return false;
  e->abs = fmax(e->abs, abs);
  e->rel = fmax(e->rel, rel);
  return true;
}

static void compare_floats(const struct hlo_literal *x, const struct hlo_literal *y, int64_t n, const float *most,
                           struct errors *e) {
  double got[BLOCK], want[BLOCK];
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int m = n - k < BLOCK ? (int)(n - k) : BLOCK;
    hlo_literal_doubles(x, (size_t)k, (size_t)m, got);
    hlo_literal_doubles(y, (size_t)k, (size_t)m, want);
    for (int i = compare_block(got, want, m, most + k, e) ? m : 0; i < m; i++)
      compare_element(k + i, got[i], want[i], (double)most[k + i], e);
  }
}

static void compare_ints(const struct hlo_literal *x, const struct hlo_literal *y, int64_t n, const float *most,
                         struct errors *e) {
  const bool is_unsigned = dtype_kind(x->shape.dtype) == DK_UNSIGNED;
  for (int64_t k = 0; k < n; k++) {
    const int64_t got = hlo_literal_int(x, (size_t)k), want = hlo_literal_int(y, (size_t)k);
    if (got != want)
      compare_element(k, is_unsigned ? (double)(uint64_t)got : (double)got,
                      is_unsigned ? (double)(uint64_t)want : (double)want, (double)most[k], e);
  }
}

static struct errors compare_array(const struct trace_array *got, const struct trace_array *want,
                                   const struct check_tolerance *given) {
  struct errors e = {.pass = true, .first = -1};
  const enum dtype t = got->shape.dtype; /* the narrower type, if a pass narrowed 64 bits */
  const int64_t n = hlo_shape_elements(&want->shape);
  struct hlo_literal x = as_literal(got), y = as_literal(want);
  struct check_tolerance own;
  struct arena scratch;

  if (!hlo_shape_same_dims(&got->shape, &want->shape) ||
      (t != want->shape.dtype && t != dtype_narrow(want->shape.dtype)))
    return (struct errors){.abs = INFINITY, .rel = INFINITY, .first = -1};
  arena_init(&scratch);
  if (!given || t != want->shape.dtype) {
    tolerate(&scratch, want, t, &own);
    given = &own;
  }
  if (dtype_is_float(t))
    compare_floats(&x, &y, n, given->of, &e);
  else
    compare_ints(&x, &y, n, given->of, &e);
  e.pass = !e.n_beyond || (e.n_beyond <= given->n_jumps && e.farthest <= given->jump);
  arena_clear(&scratch);
  return e;
}

void check_compare_within(int n, const struct trace_array *got, const struct trace_array *want,
                          const struct check_tolerance *tolerances, struct check_result *r) {
  *r = (struct check_result){.pass = true, .wrong_index = -1};
  for (int k = 0; k < n; k++) {
    struct errors e = compare_array(&got[k], &want[k], tolerances ? &tolerances[k] : NULL);
    /* the worst output is a failing one if there is one, and of these the one with the largest error */
    if ((r->pass && !e.pass) || (r->pass == e.pass && e.abs > r->max_abs_err)) {
      r->worst_output = k;
      r->wrong_index = e.pass ? -1 : e.first;
      r->got = e.got;
      r->expected = e.want;
    }
    r->pass &= e.pass;
    r->max_abs_err = fmax(r->max_abs_err, e.abs);
    r->max_rel_err = fmax(r->max_rel_err, e.rel);
  }
  assert(n == 0 || (r->worst_output >= 0 && r->worst_output < n));
}

void check_compare(int n, const struct trace_array *got, const struct trace_array *want, struct check_result *r) {
  check_compare_within(n, got, want, NULL, r);
}

struct trace_array check_convert_array(struct arena *a, const struct trace_array *x, enum dtype t) {
  const struct hlo_literal from = {.shape = x->shape, .data = x->data};
  const size_t n = (size_t)hlo_shape_elements(&x->shape), size = dtype_size(t);
  struct trace_array out = {.shape = x->shape, .data = arena_alloc(a, n * size + 1)};
  out.shape.dtype = t;
  for (size_t k = 0; k < n; k++)
    hlo_literal_store(t, dtype_is_float(t) ? hlo_literal_double(&from, k) : (double)hlo_literal_int(&from, k),
                      (char *)out.data + k * size);
  return out;
}

void check_put_index(struct buf *b, const struct hlo_shape *s, int64_t at) {
  int64_t step = hlo_shape_elements(s);
  buf_putc(b, '[');
  for (int d = 0; d < s->rank; d++) {
    step /= s->dims[d];
    buf_printf(b, d ? ", %lld" : "%lld", (long long)(at / step));
    at %= step;
  }
  buf_putc(b, ']');
}
