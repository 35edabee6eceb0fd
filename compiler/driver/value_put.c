#include "driver/value_put.h"

#include <math.h>

#include "base/json.h"
#include "driver/summary.h"
#include "hlo/literal.h"

enum { RANK_MAX = JOB_RANK_MAX + 1 };

/* Elements start, start + step, … of every dimension, n[d] of each. */
struct part {
  int rank;
  int64_t start[RANK_MAX], step[RANK_MAX], n[RANK_MAX];
};

static int64_t smaller(int64_t x, int64_t y) {
  return x < y ? x : y;
}

/* The two dimensions that are shown as rows and columns.  -1: there is none. */
struct view {
  int row, column;
};

static struct view find_view(const struct value *x) {
  const struct hlo_shape *s = &x->array.shape;
  struct view v = {-1, -1};
  for (int d = s->rank - 1; d >= 0 && v.row < 0; d--)
    if (s->dims[d] > 1)
      *(v.column < 0 ? &v.column : &v.row) = d;
  if (v.column < 0)
    v.column = s->rank - 1;
  if (x->is_on_chip && v.column > 0 && s->dims[0] > 1)
    v.row = 0;
  return v;
}

/* The part of each dimension that is shown without slices, or that a slice names. */
static struct part find_part(const struct value *x, int n_slices, const struct job_slice *slices) {
  const struct hlo_shape *s = &x->array.shape;
  const struct view v = find_view(x);
  struct part p = {.rank = s->rank};
  for (int d = 0; d < s->rank; d++) {
    const struct job_slice whole = {0, s->dims[d], 1};
    const struct job_slice corner = {0, d == v.row || d == v.column ? VALUE_SLICE_SIDE : 1, 1};
    const struct job_slice want = d < n_slices ? slices[d] : n_slices ? whole : corner;
    const int64_t stop = smaller(want.stop, s->dims[d]);
    p.start[d] = want.start;
    p.step[d] = want.step;
    p.n[d] = stop > want.start ? (stop - want.start + want.step - 1) / want.step : 0;
  }
  return p;
}

/* The number of elements; more than VALUE_SLICE_MAX if it is larger. */
static int64_t count(const struct part *p) {
  int64_t n = 1;
  for (int d = 0; d < p->rank; d++)
    if (!p->n[d])
      return 0;
  for (int d = 0; d < p->rank && n <= VALUE_SLICE_MAX; d++)
    n *= smaller(p->n[d], VALUE_SLICE_MAX + 1);
  return n;
}

/* The place in the array of element k of the part, both in row-major order. */
static size_t place(const struct hlo_shape *s, const struct part *p, int64_t k) {
  int64_t at = 0, step = 1;
  for (int d = p->rank - 1; d >= 0; d--) {
    at += (p->start[d] + k % p->n[d] * p->step[d]) * step;
    k /= p->n[d];
    step *= s->dims[d];
  }
  return (size_t)at;
}

static struct hlo_literal as_literal(const struct trace_array *x) {
  const size_t n = (size_t)hlo_shape_elements(&x->shape);
  return (struct hlo_literal){.shape = x->shape, .data = x->data, .size = n * dtype_size(x->shape.dtype)};
}

static void put_slice(struct buf *b, const struct trace_array *x, const struct part *p) {
  const struct hlo_literal l = as_literal(x);
  const int64_t n = count(p);
  json_put_key(b, "slice");
  buf_putc(b, '{');
  if (n > VALUE_SLICE_MAX) {
    buf_printf(b, "\"reason\":\"the slice has more than %d elements\"}", VALUE_SLICE_MAX);
    return;
  }
  json_put_field_ints(b, "start", p->rank, p->start);
  json_put_field_ints(b, "step", p->rank, p->step);
  json_put_field_ints(b, "shape", p->rank, p->n);
  json_put_key(b, "data");
  buf_putc(b, '[');
  for (int64_t k = 0; k < n; k++)
    summary_put_element(b, hlo_literal_double(&l, place(&x->shape, p, k)));
  buf_puts(b, "]}");
}

/* ---- the heat map ------------------------------------------------------------------------------------------------ */

/* A dimension as it is shown: n cells of `size` elements that are `step` elements apart, the last cell may be shorter. */
struct axis {
  int64_t length, step, size, n;
};

static struct axis find_axis(const struct hlo_shape *s, int d) {
  struct axis x = {.length = d < 0 ? 1 : s->dims[d], .step = 1};
  for (int k = d + 1; d >= 0 && k < s->rank; k++)
    x.step *= s->dims[k];
  x.size = (x.length + VALUE_HEAT_SIDE - 1) / VALUE_HEAT_SIDE;
  x.n = (x.length + x.size - 1) / x.size;
  return x;
}

/* The mean of the finite elements of the cell at r, c; NaN if there are none. */
static double mean_of(const struct hlo_literal *l, int64_t first, const struct axis *row, int64_t r,
                      const struct axis *column, int64_t c) {
  const int64_t r_end = smaller(r + row->size, row->length), c_end = smaller(c + column->size, column->length);
  double sum = 0;
  int64_t n = 0;
  for (int64_t i = r; i < r_end; i++)
    for (int64_t j = c; j < c_end; j++) {
      const double v = hlo_literal_double(l, (size_t)(first + i * row->step + j * column->step));
      if (isfinite(v)) {
        sum += v;
        n++;
      }
    }
  return n ? sum / (double)n : NAN;
}

static void put_mean(struct buf *b, double v) {
  json_put_comma(b);
  if (isfinite(v))
    buf_printf(b, "%.6g", v);
  else
    buf_puts(b, "null");
}

/* The other dimensions are at the part's start. */
static void put_heat(struct buf *b, const struct value *x, const struct part *p) {
  const struct hlo_literal l = as_literal(&x->array);
  const struct hlo_shape *s = &x->array.shape;
  const struct view v = find_view(x);
  const struct axis row = find_axis(s, v.row), column = find_axis(s, v.column);
  int64_t first = 0, at[RANK_MAX];
  for (int d = 0; d < s->rank; d++) {
    at[d] = d == v.row || d == v.column ? 0 : smaller(p->start[d], s->dims[d] - 1);
    first = first * s->dims[d] + at[d];
  }
  json_put_key(b, "heat");
  buf_putc(b, '{');
  json_put_field_ints(b, "at", s->rank, at);
  json_put_field_int(b, "row_dim", v.row);
  json_put_field_int(b, "column_dim", v.column);
  json_put_field_int(b, "rows", row.n);
  json_put_field_int(b, "columns", column.n);
  json_put_field_int(b, "row_step", row.size);
  json_put_field_int(b, "column_step", column.size);
  json_put_key(b, "means");
  buf_putc(b, '[');
  for (int64_t r = 0; r < row.length; r += row.size)
    for (int64_t c = 0; c < column.length; c += column.size)
      put_mean(b, mean_of(&l, first, &row, r, &column, c));
  buf_puts(b, "]}");
}

void value_put_array(struct buf *b, const struct value *v, int n_slices, const struct job_slice *slices) {
  const struct trace_array *x = &v->array;
  const struct part p = find_part(v, n_slices, slices);
  summary_put(b, x);
  summary_put_histogram(b, x);
  put_slice(b, x, &p);
  if (x->shape.rank && hlo_shape_elements(&x->shape))
    put_heat(b, v, &p);
}
