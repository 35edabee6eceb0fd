/* fft: Fourier transforms as products with constant matrices.
 *
 *     X[k] = sum over j of x[j] w^(j k),  w = exp(-2 pi i / n)  ==>  X = x W,  W[j,k] = w^(j k)
 *
 * The tensor engine multiplies matrices and nothing faster exists on the machine, so short transforms are one product.
 * A longer one of n = p q is done in four steps: with j = j1 q + j2 and k = k1 + k2 p,
 *
 *     y[j2,k1] = sum over j1 of x[j1,j2] w_p^(j1 k1)      products with a p by p matrix
 *     y[j2,k1] = y[j2,k1] w_n^(j2 k1)                     element by element
 *     X[k1,k2] = sum over j2 of y[j2,k1] w_q^(j2 k2)      products with a q by q matrix
 *     X[k] = X[k2,k1]                                     a transpose
 *
 * and p and q are divided again if they are long.  A product moves the dimension that it transforms to the end; over all
 * transformed dimensions in order, they come out in order.
 */
#include <math.h>

#include "hlo/complex.h"
#include "hlo/expand.h"

/* A transform of at most this length is one product, if it has factors at all: the side of the machine's array. */
enum { LENGTH_MAX = 128 };

struct matrix {
  int64_t rows, columns, n; /* element (j, k) is weight(j) exp(sign 2 pi i j k / n) */
  double sign, scale;
  bool is_half; /* rows are the first half of a spectrum: all but the first and the middle one count twice */
};

static double weight(const struct matrix *m, int64_t j) {
  return m->scale * (m->is_half && j && 2 * j != m->n ? 2 : 1);
}

static struct hlo_pair make_matrix(struct hlo_builder *b, const struct matrix *m) {
  const int64_t dims[] = {m->rows, m->columns};
  const struct hlo_shape s = {.dtype = DT_F32, .rank = 2, .dims = dims};
  const size_t n = (size_t)(m->rows * m->columns);
  float *re = arena_new_array(b->module->arena, float, n + 1), *im = arena_new_array(b->module->arena, float, n + 1);
  for (int64_t j = 0; j < m->rows; j++)
    for (int64_t k = 0; k < m->columns; k++) {
      const double angle = 2 * M_PI * (double)(j * k % m->n) / (double)m->n;
      re[j * m->columns + k] = (float)(weight(m, j) * cos(angle));
      im[j * m->columns + k] = (float)(weight(m, j) * m->sign * sin(angle));
    }
  return (struct hlo_pair){hlo_constant(b, s, re), hlo_constant(b, s, im)};
}

/* x's dimension d times the rows of y; the columns become the last dimension. */
static hlo_val product(struct hlo_builder *b, hlo_val x, int d, hlo_val y) {
  const int64_t from = d, row = 0;
  return x ? hlo_dot(b, x, y, &(struct hlo_dot_dims){{1, &from}, {1, &row}, {0, NULL}, {0, NULL}}, DT_F32) : NULL;
}

/* The same of pairs; the imaginary part of x may be NULL, for reals. */
static struct hlo_pair multiply(struct hlo_builder *b, struct hlo_pair x, int d, const struct matrix *m) {
  const struct hlo_pair w = make_matrix(b, m);
  struct hlo_pair y = {product(b, x.re, d, w.re), product(b, x.re, d, w.im)};
  if (x.im) {
    y.re = hlo_binary(b, HLO_SUBTRACT, y.re, product(b, x.im, d, w.im));
    y.im = hlo_binary(b, HLO_ADD, y.im, product(b, x.im, d, w.re));
  }
  return y;
}

/* ---- one dimension ---------------------------------------------------------------------------------------------- */

/* The divisor of n next below its root; 1 for a prime. */
static int64_t divisor(int64_t n) {
  int64_t p = (int64_t)sqrt((double)n);
  while (n % p)
    p--;
  return p;
}

static hlo_val split(struct hlo_builder *b, hlo_val x, int d, int64_t p) {
  int64_t dims[HLO_RANK_MAX + 1];
  if (!x)
    return NULL;
  for (int k = 0; k < x->shape.rank; k++)
    dims[k + (k > d)] = x->shape.dims[k];
  dims[d] = p;
  dims[d + 1] = x->shape.dims[d] / p;
  return hlo_reshape(b, x, x->shape.rank + 1, dims);
}

/* The last two dimensions, which change places, as one. */
static hlo_val join(struct hlo_builder *b, hlo_val x) {
  int64_t order[HLO_RANK_MAX], dims[HLO_RANK_MAX];
  if (!x)
    return NULL;
  const int last = x->shape.rank - 1;
  for (int k = 0; k <= last; k++) {
    order[k] = k;
    dims[k] = x->shape.dims[k];
  }
  order[last] = last - 1;
  order[last - 1] = last;
  dims[last - 1] = x->shape.dims[last] * x->shape.dims[last - 1];
  return hlo_reshape(b, hlo_transpose(b, x, order), last, dims);
}

static hlo_val spread(struct hlo_builder *b, hlo_val w, hlo_val like, int row, int column) {
  const int64_t dimensions[] = {row, column};
  return like ? hlo_broadcast(b, w, like->shape.rank, like->shape.dims, dimensions) : NULL;
}

/* x times w^(j2 k1), where j2 is dimension d and k1 the last one. */
static struct hlo_pair twist(struct hlo_builder *b, struct hlo_pair x, int d, int64_t n, double sign) {
  if (!x.re)
    return x;
  const int last = x.re->shape.rank - 1;
  struct hlo_pair w = make_matrix(b, &(struct matrix){x.re->shape.dims[d], x.re->shape.dims[last], n, sign, 1, false});
  w = (struct hlo_pair){spread(b, w.re, x.re, d, last), spread(b, w.im, x.re, d, last)};
  return (struct hlo_pair){
      hlo_binary(b, HLO_SUBTRACT, hlo_binary(b, HLO_MULTIPLY, x.re, w.re), hlo_binary(b, HLO_MULTIPLY, x.im, w.im)),
      hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MULTIPLY, x.re, w.im), hlo_binary(b, HLO_MULTIPLY, x.im, w.re))};
}

/* Transforms dimension d and moves it to the end. */
static struct hlo_pair transform(struct hlo_builder *b, struct hlo_pair x, int d, double sign, double scale) {
  if (!x.re)
    return x;
  const int64_t n = x.re->shape.dims[d], p = n > LENGTH_MAX ? divisor(n) : 1;
  if (p == 1 || x.re->shape.rank == HLO_RANK_MAX)
    return multiply(b, x, d, &(struct matrix){n, n, n, sign, scale, false});
  x = (struct hlo_pair){split(b, x.re, d, p), x.im ? split(b, x.im, d, p) : NULL};
  x = transform(b, x, d, sign, scale);
  x = twist(b, x, d, n, sign);
  x = transform(b, x, d, sign, 1);
  return (struct hlo_pair){join(b, x.re), join(b, x.im)};
}

/* ---- transforms of and to reals ------------------------------------------------------------------------------------ */

/* The last dimension: its first n / 2 + 1 values. */
static struct hlo_pair transform_real(struct hlo_builder *b, hlo_val x) {
  const int last = x->shape.rank - 1;
  const int64_t n = x->shape.dims[last], half = n / 2 + 1;
  if (n <= LENGTH_MAX || divisor(n) == 1)
    return multiply(b, (struct hlo_pair){x, NULL}, last, &(struct matrix){n, half, n, -1, 1, false});
  struct hlo_pair y = transform(b, (struct hlo_pair){x, NULL}, last, -1, 1);
  return (struct hlo_pair){hlo_expand_part(b, y.re, last, 0, half), hlo_expand_part(b, y.im, last, 0, half)};
}

/* x[1], … of the half of a spectrum, mirrored: what follows it in the whole spectrum of n values. */
static hlo_val mirror(struct hlo_builder *b, hlo_val x, int64_t n) {
  const int last = x->shape.rank - 1;
  const int64_t dim = last;
  return hlo_reverse(b, hlo_expand_part(b, x, last, 1, n - n / 2), 1, &dim);
}

/* The reals of which the last dimension is half a spectrum. */
static hlo_val transform_to_real(struct hlo_builder *b, struct hlo_pair x, int64_t n) {
  if (!x.re)
    return NULL;
  const int last = x.re->shape.rank - 1;
  const double scale = 1 / (double)n;
  if (n <= LENGTH_MAX || divisor(n) == 1) {
    const struct hlo_pair w = make_matrix(b, &(struct matrix){n / 2 + 1, n, n, 1, scale, true});
    return hlo_binary(b, HLO_SUBTRACT, product(b, x.re, last, w.re), product(b, x.im, last, w.im));
  }
  hlo_val re[] = {x.re, mirror(b, x.re, n)}, im[] = {x.im, hlo_unary(b, HLO_NEGATE, mirror(b, x.im, n))};
  const struct hlo_pair whole = {hlo_concatenate(b, 2, re, last), hlo_concatenate(b, 2, im, last)};
  return transform(b, whole, last, 1, scale).re;
}

/* Dimension `from` moves to the end. */
static hlo_val move_to_end(struct hlo_builder *b, hlo_val x, int from) {
  int64_t order[HLO_RANK_MAX];
  if (!x || from == x->shape.rank - 1)
    return x;
  for (int k = 0; k < x->shape.rank; k++)
    order[k] = k < from ? k : k < x->shape.rank - 1 ? k + 1 : from;
  return hlo_transpose(b, x, order);
}

/* ---- the instruction --------------------------------------------------------------------------------------------- */

struct hlo_pair hlo_complex_fft(struct hlo_builder *b, const struct hlo_instr *i, struct hlo_pair x) {
  const enum hlo_fft kind = i->attrs->fft_type;
  const struct hlo_ints lengths = i->attrs->fft_length;
  const int first = i->shape.rank - lengths.n, last = i->shape.rank - 1;
  const bool is_forward = kind == HLO_FFT_FORWARD || kind == HLO_FFT_OF_REAL;
  const bool has_half = kind == HLO_FFT_OF_REAL || kind == HLO_FFT_TO_REAL;
  const double sign = is_forward ? -1 : 1;

  if (!hlo_shape_elements(&i->shape))
    return (struct hlo_pair){hlo_full(b, DT_F32, i->shape.rank, i->shape.dims, 0),
                             hlo_full(b, DT_F32, i->shape.rank, i->shape.dims, 0)};
  if (kind == HLO_FFT_OF_REAL)
    x = transform_real(b, x.re);
  for (int k = first; k < last + !has_half; k++)
    x = transform(b, x, first, sign, is_forward ? 1 : 1 / (double)lengths.v[k - first]);
  if (has_half && first < last) /* the last dimension was passed over, and came to be the first of the transformed */
    x = (struct hlo_pair){move_to_end(b, x.re, first), move_to_end(b, x.im, first)};
  if (kind == HLO_FFT_TO_REAL)
    return (struct hlo_pair){transform_to_real(b, x, lengths.v[lengths.n - 1]), NULL};
  return x;
}
