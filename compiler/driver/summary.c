#include "driver/summary.h"

#include <math.h>

#include "base/json.h"
#include "hlo/literal.h"

enum { BLOCK = 512 }; /* elements that are converted at a time */

struct statistics {
  int64_t n_finite, n_nan, n_inf, n_zero;
  double min, max, mean, deviation;
};

static struct hlo_literal as_literal(const struct trace_array *x) {
  const size_t n = (size_t)hlo_shape_elements(&x->shape);
  return (struct hlo_literal){.shape = x->shape, .data = x->data, .size = n * dtype_size(x->shape.dtype)};
}

/* Reads elements from `at` on; returns their number, at most BLOCK. */
static int read_block(const struct hlo_literal *l, int64_t n, int64_t at, double v[BLOCK]) {
  const int m = n - at < BLOCK ? (int)(n - at) : BLOCK;
  hlo_literal_doubles(l, (size_t)at, (size_t)m, v);
  return m;
}

static struct statistics find_statistics(const struct trace_array *x) {
  const struct hlo_literal l = as_literal(x);
  const int64_t n = hlo_shape_elements(&x->shape);
  struct statistics s = {.min = INFINITY, .max = -INFINITY};
  double v[BLOCK], squares = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int m = read_block(&l, n, at, v);
    for (int k = 0; k < m; k++) {
      if (!isfinite(v[k])) {
        *(isnan(v[k]) ? &s.n_nan : &s.n_inf) += 1;
        continue;
      }
      const double before = v[k] - s.mean;
      s.n_finite++;
      s.mean += before / (double)s.n_finite; /* Welford: the squares do not cancel */
      squares += before * (v[k] - s.mean);
      s.n_zero += v[k] == 0;
      s.min = v[k] < s.min ? v[k] : s.min;
      s.max = v[k] > s.max ? v[k] : s.max;
    }
  }
  s.deviation = s.n_finite ? sqrt(squares / (double)s.n_finite) : NAN;
  return s;
}

void summary_put(struct buf *b, const struct trace_array *x) {
  const struct statistics s = find_statistics(x);
  json_put_key(b, "shape");
  buf_putc(b, '[');
  for (int d = 0; d < x->shape.rank; d++)
    buf_printf(b, d ? ",%lld" : "%lld", (long long)x->shape.dims[d]);
  buf_putc(b, ']');
  json_put_field_str(b, "dtype", dtype_numpy_name(x->shape.dtype));
  json_put_field_double(b, "min", s.n_finite ? s.min : NAN);
  json_put_field_double(b, "max", s.n_finite ? s.max : NAN);
  json_put_field_double(b, "mean", s.n_finite ? s.mean : NAN);
  json_put_field_double(b, "std", s.deviation);
  json_put_field_int(b, "nan", s.n_nan);
  json_put_field_int(b, "inf", s.n_inf);
  json_put_field_int(b, "zero", s.n_zero);
}

void summary_put_histogram(struct buf *b, const struct trace_array *x) {
  const struct statistics s = find_statistics(x);
  const struct hlo_literal l = as_literal(x);
  const int64_t n = hlo_shape_elements(&x->shape);
  int64_t counts[SUMMARY_BINS] = {0};
  double v[BLOCK];

  if (!s.n_finite)
    return;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int m = read_block(&l, n, at, v);
    for (int k = 0; k < m; k++) {
      /* halves, so that the range of the largest floats does not overflow */
      const double width = s.max / 2 - s.min / 2;
      const double bin = width > 0 && isfinite(v[k]) ? (v[k] / 2 - s.min / 2) / width * SUMMARY_BINS : 0;
      if (isfinite(v[k]))
        counts[bin >= SUMMARY_BINS ? SUMMARY_BINS - 1 : (int)bin]++;
    }
  }
  json_put_key(b, "histogram");
  buf_putc(b, '{');
  json_put_field_double(b, "from", s.min);
  json_put_field_double(b, "to", s.max);
  json_put_key(b, "counts");
  buf_putc(b, '[');
  for (int k = 0; k < SUMMARY_BINS; k++)
    buf_printf(b, k ? ",%lld" : "%lld", (long long)counts[k]);
  buf_puts(b, "]}");
}

void summary_put_element(struct buf *b, double v) {
  json_put_comma(b);
  if (fabs(v) < 0x1p53 && v == trunc(v))
    buf_printf(b, "%.0f", v); /* integers are exact; nine digits are for f32 */
  else if (isfinite(v))
    buf_printf(b, "%.9g", v);
  else
    buf_puts(b, isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
}

void summary_put_slice(struct buf *b, const struct trace_array *x) {
  const struct hlo_literal l = as_literal(x);
  const int rank = x->shape.rank;
  const int64_t columns = rank ? x->shape.dims[rank - 1] : 1, rows = rank > 1 ? x->shape.dims[rank - 2] : 1;
  const bool is_empty = !hlo_shape_elements(&x->shape);
  json_put_key(b, "slice");
  buf_putc(b, '[');
  for (int64_t r = 0; !is_empty && r < rows && r < SUMMARY_SIDE; r++) {
    double v[SUMMARY_SIDE];
    const size_t n = columns < SUMMARY_SIDE ? (size_t)columns : SUMMARY_SIDE;
    hlo_literal_doubles(&l, (size_t)(r * columns), n, v);
    json_put_comma(b);
    buf_putc(b, '[');
    for (size_t k = 0; k < n; k++)
      summary_put_element(b, v[k]);
    buf_putc(b, ']');
  }
  buf_putc(b, ']');
}
