/* fft: np.fft, as HLO's fft of the last dimensions.
 *
 * Each transformed axis is cut or padded to its length n and moved to the end.  Axes that are the last ones already, in
 * order, are one instruction.  HLO divides inverse transforms by n; other norms multiply what it gives.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* What op->arg.n is made of. */
enum {
  FFT_INVERSE = 1,
  FFT_REAL = 2,   /* rfft and its like: of reals, or with FFT_INVERSE to reals */
  FFT_SWAPPED = 4 /* hfft and ihfft: the other direction, of the conjugate */
};

struct transform {
  int kind;
  int n; /* axes, in the order given */
  int64_t axes[HLO_RANK_MAX], lengths[HLO_RANK_MAX];
  enum { NORM_BACKWARD, NORM_ORTHO, NORM_FORWARD } norm;
};

/* ---- values ---------------------------------------------------------------------------------------------------------- */

/* x with n elements along an axis: the first ones, or zeros after them. */
static hlo_val resize(struct tracer *tr, hlo_val x, int axis, int64_t n) {
  struct hlo_pad_dim d[HLO_RANK_MAX] = {{0}};
  if (!x || x->shape.dims[axis] == n)
    return x;
  if (x->shape.dims[axis] > n)
    return val_slice(tr, x, axis, 0, n);
  d[axis].high = n - x->shape.dims[axis];
  return hlo_pad(&tr->b, x, hlo_scalar(&tr->b, x->shape.dtype, 0), d);
}

/* Exchanges an axis with the last one. */
static hlo_val exchange(struct tracer *tr, hlo_val x, int axis) {
  int64_t p[HLO_RANK_MAX];
  if (!x)
    return NULL;
  for (int i = 0; i < x->shape.rank; i++)
    p[i] = i;
  p[axis] = x->shape.rank - 1;
  p[x->shape.rank - 1] = axis;
  return val_transpose(tr, x, p);
}

static hlo_val refuse_length(struct tracer *tr) {
  char text[sizeof tr->b.err.text];
  memcpy(text, tr->b.err.text, sizeof text);
  tr->b.err = (struct error){0};
  return trace_refuse(DG_UNSUPPORTED_OP, "give n= with small factors, such as a power of two", "%s", text);
}

/* Transforms k last axes to these lengths. */
static hlo_val last_axes(struct tracer *tr, hlo_val x, enum hlo_fft kind, int k, const int64_t *lengths) {
  if (!x)
    return NULL;
  hlo_val v = hlo_fft(&tr->b, x, kind, k, lengths);
  return v || !tr->b.err.code ? v : refuse_length(tr);
}

static hlo_val along(struct tracer *tr, hlo_val x, enum hlo_fft kind, int axis, int64_t n) {
  const int64_t half = n / 2 + 1;
  x = resize(tr, x, axis, kind == HLO_FFT_TO_REAL ? half : n);
  return exchange(tr, last_axes(tr, exchange(tr, x, axis), kind, 1, &n), axis);
}

static hlo_val to_complex(struct tracer *tr, hlo_val x) {
  return cast(tr, x, DT_C64);
}

/* True if the first k axes of the transform are different and the last k of x, in order. */
static bool are_last(const struct transform *f, int k, int rank) {
  for (int i = 0; i < k; i++)
    if (f->axes[i] != rank - k + i)
      return false;
  return k > 1 && k <= 3; /* HLO transforms at most three dimensions */
}

/* Complex transforms along the first k axes, the last of them first. */
static hlo_val complex_axes(struct tracer *tr, hlo_val x, const struct transform *f, int k) {
  const enum hlo_fft kind = f->kind & FFT_INVERSE ? HLO_FFT_INVERSE : HLO_FFT_FORWARD;
  if (x && are_last(f, k, x->shape.rank)) {
    for (int i = 0; i < k; i++)
      x = resize(tr, x, (int)f->axes[i], f->lengths[i]);
    return last_axes(tr, x, kind, k, f->lengths);
  }
  for (int i = k - 1; i >= 0; i--)
    x = along(tr, x, kind, (int)f->axes[i], f->lengths[i]);
  return x;
}

/* The factor that gives the norm, after HLO's division of inverse transforms by n. */
static double factor(const struct transform *f) {
  double n = 1;
  for (int i = 0; i < f->n; i++)
    n *= (double)f->lengths[i];
  const double unit = f->kind & FFT_INVERSE ? n : 1; /* undoes HLO's division */
  if (f->norm == NORM_ORTHO)
    return unit / sqrt(n);
  return (f->norm == NORM_FORWARD) == !(f->kind & FFT_INVERSE) ? unit / n : unit;
}

/* As many axes as the transform has, of which the last is that of half a spectrum. */
static hlo_val transform(struct tracer *tr, hlo_val x, const struct transform *f) {
  const int last = f->n - 1;
  if (!(f->kind & FFT_REAL)) {
    x = complex_axes(tr, to_complex(tr, x), f, f->n);
  } else if (!(f->kind & FFT_INVERSE)) {
    x = along(tr, cast(tr, x, DT_F32), HLO_FFT_OF_REAL, (int)f->axes[last], f->lengths[last]);
    x = complex_axes(tr, x, f, last);
  } else {
    x = complex_axes(tr, to_complex(tr, x), f, last);
    x = along(tr, x, HLO_FFT_TO_REAL, (int)f->axes[last], f->lengths[last]);
  }
  const double k = factor(f);
  return k == 1 ? x : val_scale(tr, x, k);
}

/* ---- arguments ------------------------------------------------------------------------------------------------------- */

static bool read_norm(PyObject *o, struct transform *f) {
  const char *text = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  f->norm = NORM_BACKWARD;
  if (!o || o == Py_None || (text && strcmp(text, "backward") == 0))
    return true;
  f->norm = text && strcmp(text, "ortho") == 0 ? NORM_ORTHO : NORM_FORWARD;
  if (f->norm == NORM_ORTHO || (text && strcmp(text, "forward") == 0))
    return true;
  trace_refuse(DG_BAD_ARGUMENT, NULL, "Invalid norm value %S; should be \"backward\", \"ortho\" or \"forward\".", o);
  return false;
}

static bool gives_reals(const struct transform *f) {
  return (f->kind & FFT_REAL) && (f->kind & FFT_INVERSE);
}

/* The length that an axis has without n=: of half a spectrum that of an even whole. */
static int64_t default_length(const struct transform *f, hlo_val x, int i) {
  const int64_t n = x->shape.dims[f->axes[i]];
  return gives_reals(f) && i == f->n - 1 ? 2 * (n - 1) : n;
}

static bool check_lengths(const struct transform *f) {
  for (int i = 0; i < f->n; i++)
    if (f->lengths[i] < 1) {
      trace_refuse(DG_BAD_ARGUMENT, NULL, "Invalid number of FFT data points (%lld) specified.",
                   (long long)f->lengths[i]);
      return false;
    }
  return true;
}

static bool check_input(const struct op_def *op, const struct transform *f, hlo_val x) {
  if (val_is_complex(x) && (f->kind & FFT_REAL) && !(f->kind & FFT_INVERSE)) {
    trace_refuse(DG_UNSUPPORTED_DTYPE, "take the real part, or use the transform of complex numbers",
                 "%s is not defined for complex numbers", op->name);
    return false;
  }
  return true;
}

/* fft, ifft, rfft, irfft, hfft, ihfft: (a, n=None, axis=-1, norm=None) */
PyObject *op_fft(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "n", "axis", "norm", "out", NULL};
  PyObject *a, *n = NULL, *axis = NULL, *norm = NULL, *out = NULL;
  struct transform f = {.kind = op->arg.n & ~FFT_SWAPPED, .n = 1};
  int at = -1;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOO", names, &a, &n, &axis, &norm, &out) ||
      !args_only_none(out, op->name, "out") || !read_norm(norm, &f))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !check_input(op, &f, x))
    return NULL;
  if (!axis)
    at = x->shape.rank - 1;
  if (at < 0 && (!axis || !args_axis(axis, x->shape.rank, &at)))
    return axis ? NULL : trace_refuse(DG_BAD_ARGUMENT, NULL, "%s needs at least one dimension", op->name);
  f.axes[0] = at;
  f.lengths[0] = default_length(&f, x, 0);
  if ((n && n != Py_None && !args_int(n, "n", &f.lengths[0])) || !check_lengths(&f))
    return NULL;
  if (op->arg.n & FFT_SWAPPED) { /* hfft(a) is n irfft(conj(a)), ihfft(a) is conj(rfft(a)) / n */
    static const int other[] = {
        [NORM_BACKWARD] = NORM_FORWARD, [NORM_ORTHO] = NORM_ORTHO, [NORM_FORWARD] = NORM_BACKWARD};
    f.norm = other[f.norm];
    x = f.kind & FFT_INVERSE ? val_conjugate(tr, x) : x;
  }
  x = transform(tr, x, &f);
  return tensor_wrap(tr, op->arg.n & FFT_SWAPPED && !(f.kind & FFT_INVERSE) ? val_conjugate(tr, x) : x);
}

/* Reads axes= and s=.  An entry -1 of s is the axis's own length. */
static bool read_axes(hlo_val x, PyObject *s, PyObject *axes, bool is_2d, struct transform *f) {
  int n = 0;
  const bool has_s = s && s != Py_None, has_axes = axes && axes != Py_None;
  if (has_s && !args_dims(s, "s", &n, f->lengths))
    return false;
  f->n = is_2d && !axes ? 2 : has_s ? n : x->shape.rank;
  if (has_axes && !args_dims(axes, "axes", &f->n, f->axes))
    return false;
  if (has_s && n != f->n) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "Shape and axes have different lengths.");
    return false;
  }
  for (int i = 0; i < f->n; i++) {
    int at = 0;
    PyObject *axis = PyLong_FromLongLong(has_axes ? f->axes[i] : i - f->n);
    const bool ok = axis && args_axis(axis, x->shape.rank, &at);
    Py_XDECREF(axis);
    if (!ok)
      return false;
    f->axes[i] = at;
  }
  for (int i = 0; i < f->n; i++)
    if (!has_s || f->lengths[i] == -1)
      f->lengths[i] = default_length(f, x, i);
  return true;
}

static PyObject *over_axes(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, bool is_2d) {
  static char *names[] = {"a", "s", "axes", "norm", "out", NULL};
  PyObject *a, *s = NULL, *axes = NULL, *norm = NULL, *out = NULL;
  struct transform f = {.kind = op->arg.n};
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOO", names, &a, &s, &axes, &norm, &out) ||
      !args_only_none(out, op->name, "out") || !read_norm(norm, &f))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !check_input(op, &f, x) || !read_axes(x, s, axes, is_2d, &f) || !check_lengths(&f))
    return NULL;
  if (!f.n && (f.kind & FFT_REAL))
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: at least 1 axis must be transformed", op->name);
  return tensor_wrap(tr, transform(tr, x, &f));
}

/* fft2 and its like: (a, s=None, axes=(-2, -1), norm=None) */
PyObject *op_fft2(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return over_axes(tr, op, args, kw, true);
}

/* fftn and its like: (a, s=None, axes=None, norm=None) */
PyObject *op_fftn(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return over_axes(tr, op, args, kw, false);
}

/* fftshift (arg 0) and ifftshift (arg 1): (x, axes=None) rolls each axis by half of its size. */
PyObject *op_fftshift(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "axes", NULL};
  PyObject *a, *axes = NULL;
  bool mask[HLO_RANK_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &axes))
    return NULL;
  hlo_val x = operand_alone(tr, a), v = x;
  if (!x || !args_axes(axes, x->shape.rank, mask))
    return NULL;
  for (int i = 0; v && i < x->shape.rank; i++) {
    const int64_t n = x->shape.dims[i], first = op->arg.n ? n / 2 : n - n / 2;
    if (!mask[i] || n < 2)
      continue;
    hlo_val parts[] = {val_slice(tr, v, i, first, n), val_slice(tr, v, i, 0, first)};
    v = parts[0] && parts[1] ? val_concat(tr, 2, parts, i) : NULL;
  }
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : v);
}
