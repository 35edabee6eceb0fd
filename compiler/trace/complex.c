/* complex: complex numbers in the trace (see complex.h).
 *
 * Most operations record the instruction that they record for floats, on c64.  Here is what differs: parts, and functions
 * whose form for floats is not right for complex numbers.
 */
#include "trace/complex.h"

#include <math.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

bool op_takes_complex(const struct op_def *op) {
  static const enum op_id ids[] = {
      OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE, OP_POWER, OP_LOGICAL_AND, OP_LOGICAL_OR, OP_LOGICAL_XOR, OP_EQUAL,
      OP_NOT_EQUAL, OP_ISCLOSE, OP_ALLCLOSE, OP_ARRAY_EQUAL, OP_ARRAY_EQUIV,
      /* one operand */
      OP_ABS, OP_NEGATIVE, OP_POSITIVE, OP_SIGN, OP_EXP, OP_LOG, OP_LOG2, OP_LOG10, OP_EXP2, OP_SQRT, OP_SIN, OP_COS,
      OP_TAN, OP_TANH, OP_SINH, OP_COSH, OP_SQUARE, OP_RECIPROCAL, OP_LOGICAL_NOT, OP_ISNAN, OP_ISINF, OP_ISFINITE,
      OP_ROUND, OP_ASTYPE, OP_COPY, OP_REAL, OP_IMAG, OP_CONJUGATE, OP_ANGLE, OP_ISREAL, OP_ISCOMPLEX, OP_ISREALOBJ,
      OP_ISCOMPLEXOBJ,
      /* reductions */
      OP_SUM, OP_PROD, OP_MEAN, OP_VAR, OP_STD, OP_ANY, OP_ALL, OP_COUNT_NONZERO, OP_CUMSUM, OP_CUMPROD,
      OP_CUMULATIVE_SUM, OP_CUMULATIVE_PROD,
      /* products */
      OP_MATMUL, OP_DOT, OP_OUTER, OP_INNER, OP_VDOT, OP_VECDOT, OP_TENSORDOT, OP_EINSUM, OP_KRON, OP_CROSS,
      OP_MATRIX_POWER, OP_MULTI_DOT, OP_NORM, OP_VECTOR_NORM, OP_DIAGONAL, OP_TRACE, OP_LINALG_DIAGONAL,
      OP_LINALG_TRACE, OP_DIAG, OP_DIAGFLAT, OP_TRIL, OP_TRIU,
      /* Fourier transforms */
      OP_FFT, OP_IFFT, OP_IRFFT, OP_HFFT, OP_FFT2, OP_IFFT2, OP_IRFFT2, OP_FFTN, OP_IFFTN, OP_IRFFTN, OP_FFTSHIFT,
      OP_IFFTSHIFT,
      /* moving elements */
      OP_RESHAPE, OP_RAVEL, OP_TRANSPOSE, OP_SWAPAXES, OP_MOVEAXIS, OP_ROLLAXIS, OP_EXPAND_DIMS, OP_SQUEEZE,
      OP_CONCATENATE, OP_STACK, OP_SPLIT, OP_ARRAY_SPLIT, OP_BROADCAST_TO, OP_REPEAT, OP_TILE, OP_FLIP, OP_FLIPLR,
      OP_FLIPUD, OP_ROLL, OP_ROT90, OP_PAD, OP_DIFF, OP_ATLEAST_1D, OP_ATLEAST_2D, OP_ATLEAST_3D, OP_HSTACK, OP_VSTACK,
      OP_DSTACK, OP_COLUMN_STACK, OP_HSPLIT, OP_VSPLIT, OP_DSPLIT, OP_UNSTACK, OP_APPEND, OP_BROADCAST_ARRAYS,
      OP_MESHGRID, OP_MATRIX_TRANSPOSE, OP_WHERE, OP_TAKE, OP_TAKE_ALONG_AXIS, OP_PUT_ALONG_AXIS, OP_COPYTO, OP_PUTMASK,
      OP_FILL_DIAGONAL, OP_SELECT, OP_CHOOSE, OP_COMPRESS, OP_ZEROS_LIKE, OP_ONES_LIKE, OP_EMPTY_LIKE, OP_FULL_LIKE,
      OP_SHAPE, OP_NDIM, OP_SIZE, OP_ZEROS, OP_ONES, OP_FULL, OP_CONSTANT};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (op == &op_table[ids[i]])
      return true;
  trace_refuse(DG_UNSUPPORTED_DTYPE, "compute with x.real and x.imag, or with np.abs(x)",
               "%s is not supported for complex numbers", op->name);
  return false;
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

hlo_val val_real(struct tracer *tr, hlo_val x) {
  return hlo_complex_part(&tr->b, HLO_REAL, x);
}

hlo_val val_imag(struct tracer *tr, hlo_val x) {
  return hlo_complex_part(&tr->b, HLO_IMAG, x);
}

hlo_val val_complex(struct tracer *tr, hlo_val re, hlo_val im) {
  return hlo_complex(&tr->b, re, im);
}

hlo_val val_conjugate(struct tracer *tr, hlo_val x) {
  return val_is_complex(x) ? val_complex(tr, val_real(tr, x), un(tr, HLO_NEGATE, val_imag(tr, x))) : x;
}

hlo_val val_by_parts(struct tracer *tr, hlo_val x, hlo_val (*f)(struct tracer *tr, hlo_val x)) {
  hlo_val re = val_real(tr, x), im = val_imag(tr, x);
  return re && im ? val_complex(tr, f(tr, re), f(tr, im)) : NULL;
}

hlo_val val_scale(struct tracer *tr, hlo_val x, double k) {
  if (!val_is_complex(x))
    return bin_k(tr, HLO_MULTIPLY, x, k);
  return val_complex(tr, bin_k(tr, HLO_MULTIPLY, val_real(tr, x), k), bin_k(tr, HLO_MULTIPLY, val_imag(tr, x), k));
}

/* ---- powers and products --------------------------------------------------------------------------------------------- */

hlo_val val_whole_power(struct tracer *tr, hlo_val x, long long n) {
  hlo_val v = NULL;
  for (unsigned long long rest = n < 0 ? 0ull - (unsigned long long)n : (unsigned long long)n; x && rest; rest >>= 1) {
    if (rest & 1)
      v = v ? bin(tr, HLO_MULTIPLY, v, x) : x;
    if (rest > 1)
      x = bin(tr, HLO_MULTIPLY, x, x);
  }
  if (!n)
    return val_like(tr, x, 1);
  return n < 0 ? bin(tr, HLO_DIVIDE, val_like(tr, v, 1), v) : v;
}

/* Halves the axis: the second half is multiplied to the first one; an odd last element waits. */
hlo_val val_complex_product(struct tracer *tr, hlo_val x, int axis) {
  hlo_val odd = NULL;
  int64_t dims[HLO_RANK_MAX];
  if (x && !x->shape.dims[axis]) {
    for (int i = 0; i < x->shape.rank; i++)
      dims[i] = i == axis ? 1 : x->shape.dims[i];
    return hlo_full(&tr->b, x->shape.dtype, x->shape.rank, dims, 1);
  }
  while (x && x->shape.dims[axis] > 1) {
    const int64_t n = x->shape.dims[axis], half = n / 2;
    if (n % 2) {
      hlo_val last = val_slice(tr, x, axis, n - 1, n);
      odd = odd ? bin(tr, HLO_MULTIPLY, odd, last) : last;
    }
    x = bin(tr, HLO_MULTIPLY, val_slice(tr, x, axis, 0, half), val_slice(tr, x, axis, half, 2 * half));
  }
  return odd ? bin(tr, HLO_MULTIPLY, x, odd) : x;
}

/* ---- functions ------------------------------------------------------------------------------------------------------- */

/* tanh(a + ib) = (sinh 2a + i sin 2b) / (cosh 2a + cos 2b).  From |a| = 20 on this is ±1 in float32; before, nothing
 * overflows.  With t = tanh a and u = tan b: (t (1 + u²) + i u (1 - t²)) / (1 + t² u²); in sines and cosines of b, so
 * that no pole of the tangent is met: (t + i s c (1 - t²)) / (c² + t² s²). */
hlo_val val_complex_tanh(struct tracer *tr, hlo_val x) {
  hlo_val a = val_real(tr, x), b = val_imag(tr, x), t = un(tr, HLO_TANH, a), s = un(tr, HLO_SIN, b),
          c = un(tr, HLO_COS, b);
  hlo_val ts = bin(tr, HLO_MULTIPLY, t, s),
          d = bin(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, c, c), bin(tr, HLO_MULTIPLY, ts, ts));
  /* 1 - t² as 1 / cosh², which keeps its digits where t is close to 1 */
  hlo_val cosh = unary_cosh(tr, sel(tr, cmp_k(tr, HLO_LT, un(tr, HLO_ABS, a), 20), a, val_like(tr, a, 20)));
  hlo_val rest = bin(tr, HLO_DIVIDE, bin(tr, HLO_MULTIPLY, s, c), bin(tr, HLO_MULTIPLY, cosh, cosh));
  return val_complex(tr, bin(tr, HLO_DIVIDE, t, d), bin(tr, HLO_DIVIDE, rest, d));
}

/* i (a + ib) = -b + ia */
static hlo_val times_i(struct tracer *tr, hlo_val x) {
  return val_complex(tr, un(tr, HLO_NEGATE, val_imag(tr, x)), val_real(tr, x));
}

/* tan x = -i tanh(ix) */
hlo_val val_complex_tan(struct tracer *tr, hlo_val x) {
  return un(tr, HLO_NEGATE, times_i(tr, val_complex_tanh(tr, times_i(tr, x))));
}

/* sinh(a + ib) = sinh a cos b + i cosh a sin b */
hlo_val val_complex_sinh(struct tracer *tr, hlo_val x) {
  hlo_val a = val_real(tr, x), b = val_imag(tr, x);
  if (!a || !b)
    return NULL;
  return val_complex(tr, bin(tr, HLO_MULTIPLY, unary_sinh(tr, a), un(tr, HLO_COS, b)),
                     bin(tr, HLO_MULTIPLY, unary_cosh(tr, a), un(tr, HLO_SIN, b)));
}

/* cosh(a + ib) = cosh a cos b + i sinh a sin b */
hlo_val val_complex_cosh(struct tracer *tr, hlo_val x) {
  hlo_val a = val_real(tr, x), b = val_imag(tr, x);
  if (!a || !b)
    return NULL;
  return val_complex(tr, bin(tr, HLO_MULTIPLY, unary_cosh(tr, a), un(tr, HLO_COS, b)),
                     bin(tr, HLO_MULTIPLY, unary_sinh(tr, a), un(tr, HLO_SIN, b)));
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

hlo_val unary_conjugate(struct tracer *tr, hlo_val x) {
  return val_is_complex(x) ? val_conjugate(tr, x) : un(tr, HLO_COPY, x);
}

/* real (arg 0) and imag (arg 1).  The real part of a real tensor is the tensor. */
PyObject *op_part(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"val", NULL};
  PyObject *o;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &o))
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  if (val_is_complex(x))
    return tensor_wrap(tr, op->arg.n ? val_imag(tr, x) : val_real(tr, x));
  if (op->arg.n)
    return tensor_wrap(tr, val_like(tr, x, 0));
  return tensor_check(o) ? Py_NewRef(o) : tensor_wrap(tr, x);
}

/* angle(z, deg=False) */
PyObject *op_angle(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"z", "deg", NULL};
  PyObject *o, *deg = NULL;
  bool is_deg = false;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &o, &deg) || !args_flag(deg, &is_deg))
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (x && !val_is_complex(x))
    x = as_float(tr, x);
  if (!x)
    return NULL;
  hlo_val v = val_is_complex(x) ? bin(tr, HLO_ATAN2, val_imag(tr, x), val_real(tr, x))
                                : bin(tr, HLO_ATAN2, val_like(tr, x, 0), x);
  return tensor_wrap(tr, is_deg ? bin_k(tr, HLO_MULTIPLY, v, 180 / acos(-1.0)) : v);
}

/* iscomplex (arg 0): the imaginary part is not 0; isreal (arg 1): it is. */
PyObject *op_is_complex(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", NULL};
  PyObject *o;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &o))
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  if (!val_is_complex(x))
    return tensor_wrap(tr, hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, op->arg.n));
  return tensor_wrap(tr, cmp_k(tr, op->arg.n ? HLO_EQ : HLO_NE, val_imag(tr, x), 0));
}

/* iscomplexobj (arg 0) and isrealobj (arg 1) are known while tracing. */
PyObject *op_is_complex_object(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", NULL};
  PyObject *o;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &o))
    return NULL;
  hlo_val x = tensor_check(o) ? tensor_val(tr, o) : operand_alone(tr, o);
  return x ? PyBool_FromLong(val_is_complex(x) != (bool)op->arg.n) : NULL;
}
