/* operand: reads the arguments that users pass to an operation.
 *
 * A tensor is used as a value.  Arrays, NumPy scalars, lists and Python numbers become constants of the dtype that the
 * operation computes in; NumPy converts them.  64-bit constants are narrowed.  An integer that does not fit in 32 bits
 * is refused, because without its upper half results would be wrong.
 */
#include "trace/operand.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/loop.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

static PyArray_Descr *descrs[DT_COUNT]; /* filled by dtype_init */

bool dtype_init(void) {
  static const struct {
    enum dtype t;
    int num;
  } builtin[] = {{DT_BOOL, NPY_BOOL},  {DT_I8, NPY_INT8},     {DT_I16, NPY_INT16},   {DT_I32, NPY_INT32},
                 {DT_I64, NPY_INT64},  {DT_U8, NPY_UINT8},    {DT_U16, NPY_UINT16},  {DT_U32, NPY_UINT32},
                 {DT_U64, NPY_UINT64}, {DT_F16, NPY_FLOAT16}, {DT_F32, NPY_FLOAT32}, {DT_F64, NPY_FLOAT64},
                 {DT_C64, NPY_CFLOAT}, {DT_C128, NPY_CDOUBLE}};
  for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
    descrs[builtin[i].t] = PyArray_DescrFromType(builtin[i].num);
  PyObject *m = PyImport_ImportModule("ml_dtypes");
  if (!m)
    return false;
  static const enum dtype from_ml[] = {DT_BF16, DT_F8E4M3, DT_F8E4M3FN, DT_F8E5M2};
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof from_ml / sizeof *from_ml; i++) {
    PyObject *cls = PyObject_GetAttrString(m, dtype_numpy_name(from_ml[i]));
    ok = cls && PyArray_DescrConverter(cls, &descrs[from_ml[i]]);
    Py_XDECREF(cls);
  }
  Py_DECREF(m);
  return ok;
}

enum dtype dtype_from_num(int type_num) {
  if (type_num == NPY_LONGLONG) /* a second int64 type on this platform, with a different number */
    return DT_I64;
  if (type_num == NPY_ULONGLONG)
    return DT_U64;
  for (int t = 1; t < DT_COUNT; t++)
    if (descrs[t] && descrs[t]->type_num == type_num)
      return (enum dtype)t;
  return DT_NONE;
}

PyArray_Descr *dtype_descr(enum dtype t) {
  assert(t > DT_NONE && t < DT_COUNT && descrs[t]);
  Py_INCREF(descrs[t]);
  return descrs[t];
}

static enum dtype refuse_dtype(PyObject *o) {
  PyErr_Clear();
  if (refuse_missing(o))
    return DT_NONE;
  trace_refuse(DG_UNSUPPORTED_DTYPE, "use float32, bfloat16, float16, int32, int8, uint8 or bool",
               "the dtype %R is not supported", o);
  return DT_NONE;
}

enum dtype dtype_from_py(PyObject *o) {
  PyArray_Descr *d = NULL;
  if (!PyArray_DescrConverter(o, &d)) {
    PyErr_Clear();
    const char *name = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
    enum dtype t = name ? dtype_from_name(name) : DT_NONE;
    return t == DT_NONE ? refuse_dtype(o) : dtype_narrow(t);
  }
  enum dtype t = dtype_from_num(d->type_num);
  Py_DECREF(d);
  return t == DT_NONE ? refuse_dtype(o) : dtype_narrow(t);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

/* Returns true if the array's 64-bit integers fit in the 32-bit type t; otherwise false with an exception. */
static bool fits(PyArrayObject *array, enum dtype t) {
  PyArrayObject *c = (PyArrayObject *)PyArray_GETCONTIGUOUS(array);
  if (!c)
    return false;
  const npy_intp n = PyArray_SIZE(c);
  const int64_t *p = PyArray_DATA(c);
  bool ok = true;
  for (npy_intp i = 0; i < n && ok; i++)
    ok = t == DT_U32 ? (uint64_t)p[i] <= UINT32_MAX : p[i] >= INT32_MIN && p[i] <= INT32_MAX;
  Py_DECREF(c);
  if (!ok && !PyErr_Occurred())
    trace_refuse(DG_UNSUPPORTED_DTYPE, "use values that fit in 32 bits", "a 64-bit integer constant does not fit in %s",
                 dtype_numpy_name(t));
  return ok;
}

static bool read_array(PyObject *o, struct operand *x) {
  x->array = (PyArrayObject *)PyArray_FROM_O(o);
  if (!x->array)
    return false;
  enum dtype t = dtype_from_num(PyArray_TYPE(x->array));
  if (t == DT_NONE) {
    if (PyArray_TYPE(x->array) == NPY_OBJECT && !PyArray_Check(o))
      trace_refuse(DG_BAD_ARGUMENT, NULL, "an object of type %s cannot be an operand", Py_TYPE(o)->tp_name);
    else
      refuse_dtype((PyObject *)PyArray_DESCR(x->array));
    return false;
  }
  x->dtype = dtype_narrow(t);
  if ((t == DT_I64 || t == DT_U64) && !fits(x->array, x->dtype))
    return false;
  x->rank = PyArray_NDIM(x->array);
  x->dims = PyArray_DIMS(x->array);
  if (x->rank > HLO_RANK_MAX) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "arrays of %d dimensions are not supported (at most %d)", x->rank,
                 HLO_RANK_MAX);
    return false;
  }
  return true;
}

static bool read_operand(struct tracer *tr, PyObject *o, struct operand *x) {
  *x = (struct operand){.weak = STRONG};
  if (tensor_check(o)) {
    x->v = tensor_val(tr, o);
    if (!x->v)
      return false;
    x->dtype = x->v->shape.dtype;
    x->rank = x->v->shape.rank;
    x->dims = x->v->shape.dims;
    return true;
  }
  if (loop_index_check(o)) { /* a Python int whose value is not known */
    x->v = loop_index_val(tr, o);
    x->weak = WEAK_INT;
    return x->v;
  }
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    x->weak = WEAK_INT;
    x->value = PyLong_AsDouble(o);
    x->integer = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
      PyErr_Clear();
      x->integer = overflow > 0 ? LLONG_MAX : LLONG_MIN;
      x->value = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
    }
    return true;
  }
  if (PyFloat_CheckExact(o)) {
    x->weak = WEAK_FLOAT;
    x->value = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyComplex_CheckExact(o)) {
    x->weak = WEAK_COMPLEX;
    x->value = PyComplex_RealAsDouble(o);
    x->imag = PyComplex_ImagAsDouble(o);
    return true;
  }
  if (o == Py_None || PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || PySet_Check(o)) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "an object of type %s cannot be an operand", Py_TYPE(o)->tp_name);
    return false;
  }
  if (!read_array(o, x)) {
    operand_clear(x);
    return false;
  }
  return true;
}

bool operand_read(struct tracer *tr, PyObject *o, struct operand *x) {
  if (!read_operand(tr, o, x))
    return false;
  if (!dtype_is_complex(operand_dtype(x)) || !tr->op || op_takes_complex(tr->op))
    return true;
  operand_clear(x);
  return false;
}

void operand_clear(struct operand *x) {
  Py_CLEAR(x->array);
}

struct operand operand_of(hlo_val v) {
  return (struct operand){.v = v, .dtype = v->shape.dtype, .rank = v->shape.rank, .dims = v->shape.dims};
}

enum dtype operand_dtype(const struct operand *x) {
  static const enum dtype weak[] = {[WEAK_INT] = DT_I32, [WEAK_FLOAT] = DT_F32, [WEAK_COMPLEX] = DT_C64};
  return x->weak ? weak[x->weak] : x->dtype;
}

/* ---- making values ------------------------------------------------------------------------------------- */

hlo_val val_array(struct tracer *tr, PyArrayObject *array, enum dtype t) {
  PyArrayObject *c = (PyArrayObject *)PyArray_FromArray(
      array, dtype_descr(t), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_FORCECAST);
  if (!c)
    return NULL;
  struct hlo_shape s = hlo_shape_array(tr->a, t, PyArray_NDIM(c), PyArray_DIMS(c));
  hlo_val v = hlo_constant(&tr->b, s, PyArray_DATA(c));
  Py_DECREF(c);
  return v;
}

/* Sets the limits of an integer type. */
static void int_limits(enum dtype t, long long *lo, long long *hi) {
  int bits = (int)dtype_size(t) * 8;
  *lo = dtype_kind(t) == DK_SIGNED ? -(1LL << (bits - 1)) : 0;
  *hi = dtype_kind(t) == DK_SIGNED ? (1LL << (bits - 1)) - 1 : (1LL << bits) - 1;
}

static hlo_val complex_number(struct tracer *tr, const struct operand *x) {
  const float pair[] = {(float)x->value, (float)x->imag};
  return hlo_constant(&tr->b, (struct hlo_shape){.dtype = DT_C64}, pair);
}

/* As in NumPy, a complex operand becomes a truth value, but no real number. */
static hlo_val from_complex(struct tracer *tr, const struct operand *x, enum dtype t) {
  if (t == DT_BOOL)
    return val_nonzero(tr, operand_val(tr, x, DT_C64));
  return trace_refuse(DG_DTYPE_PROMOTION, "take a part first: x.real, x.imag or np.abs(x)",
                      "complex numbers cannot be converted to %s", dtype_numpy_name(t));
}

hlo_val operand_val(struct tracer *tr, const struct operand *x, enum dtype t) {
  if (dtype_is_complex(operand_dtype(x)) && !dtype_is_complex(t))
    return from_complex(tr, x, t);
  if (x->weak == WEAK_COMPLEX)
    return complex_number(tr, x);
  if (x->v)
    return hlo_convert(&tr->b, x->v, t);
  if (x->array)
    return val_array(tr, x->array, t);
  if (x->weak == WEAK_INT && dtype_is_int(t)) {
    long long lo, hi;
    int_limits(t, &lo, &hi);
    if (x->integer < lo || x->integer > hi)
      return trace_refuse(DG_BAD_ARGUMENT, "convert the tensor to a wider type first: x.astype(np.int32)",
                          "Python integer %lld out of bounds for %s", x->integer, dtype_numpy_name(t));
  }
  assert(x->weak != STRONG);
  return hlo_scalar(&tr->b, t, t == DT_BOOL ? x->value != 0 : x->value);
}

hlo_val operand_at(struct tracer *tr, const struct operand *x, enum dtype t, int rank, const int64_t *dims) {
  if (x->v && (dtype_is_complex(t) || !dtype_is_complex(x->dtype))) /* NKIPy broadcasts before it converts */
    return hlo_convert(&tr->b, val_broadcast(tr, x->v, rank, dims), t);
  return val_broadcast(tr, operand_val(tr, x, t), rank, dims);
}

hlo_val operand_array(struct tracer *tr, const struct operand *x) {
  hlo_val c = operand_val(tr, x, x->dtype);
  const size_t size = dtype_size(x->dtype); /* of an element */
  if (!c || !c->shape.rank || !c->attrs->literal->size ||
      memcmp(c->attrs->literal->data, (const char *)c->attrs->literal->data + size, c->attrs->literal->size - size) !=
          0)
    return c;
  hlo_remove(c);
  return hlo_broadcast(&tr->b, hlo_constant(&tr->b, (struct hlo_shape){.dtype = x->dtype}, c->attrs->literal->data),
                       c->shape.rank, c->shape.dims, NULL);
}

hlo_val operand_alone(struct tracer *tr, PyObject *o) {
  struct operand x;
  if (!operand_read(tr, o, &x))
    return NULL;
  hlo_val v = operand_val(tr, &x, operand_dtype(&x));
  operand_clear(&x);
  return v;
}

bool operand_read_list(struct tracer *tr, const char *func, PyObject *o, PyObject *dtype, int *n, hlo_val **xs) {
  enum dtype as = DT_NONE;
  if (dtype && dtype != Py_None && (as = dtype_from_py(dtype)) == DT_NONE)
    return false;
  PyObject *seq = PySequence_Fast(o, "a sequence of arrays is needed");
  if (!seq)
    return false;
  *n = (int)PySequence_Fast_GET_SIZE(seq);
  if (*n == 0) {
    Py_DECREF(seq);
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: need at least one array", func);
    return false;
  }
  struct operand *ops = arena_new_array(tr->a, struct operand, (size_t)*n);
  *xs = arena_new_array(tr->a, hlo_val, (size_t)*n);
  int got = 0;
  while (got < *n && operand_read(tr, PySequence_Fast_GET_ITEM(seq, got), &ops[got]))
    got++;
  enum dtype t = got < *n ? DT_NONE : as != DT_NONE ? as : promote_operands(*n, ops);
  bool ok = t != DT_NONE;
  for (int i = 0; i < got; i++) {
    (*xs)[i] = ok ? operand_val(tr, &ops[i], t) : NULL;
    ok = ok && (*xs)[i];
    operand_clear(&ops[i]);
  }
  Py_DECREF(seq);
  return ok;
}

bool operand_read_pair(struct tracer *tr, PyObject *a, PyObject *b, enum dtype as, hlo_val out[2]) {
  struct operand xy[2] = {{0}};
  bool ok = operand_read(tr, a, &xy[0]) && operand_read(tr, b, &xy[1]);
  enum dtype t = ok ? promote_operands(2, xy) : DT_NONE;
  if (t != DT_NONE && as != DT_NONE)
    t = as;
  if (t != DT_NONE) {
    out[0] = operand_val(tr, &xy[0], t);
    out[1] = operand_val(tr, &xy[1], t);
  }
  operand_clear(&xy[0]);
  operand_clear(&xy[1]);
  return t != DT_NONE && out[0] && out[1];
}

/* ---- broadcasting -------------------------------------------------------------------------------------- */

static bool refuse_broadcast(int n, const struct operand *xs, const char *what) {
  char text[DIMS_TEXT_MAX];
  PyObject *all = PyUnicode_FromString("");
  for (int i = 0; all && i < n; i++)
    Py_SETREF(all, PyUnicode_FromFormat("%U%s%s", all, i ? " " : "", dims_text(xs[i].rank, xs[i].dims, text)));
  if (all)
    trace_refuse(DG_SHAPE_MISMATCH, "the axes are matched from the right; each pair must be equal or one of them 1",
                 "%s could not be broadcast together with shapes %U", what, all);
  Py_XDECREF(all);
  return false;
}

bool operand_broadcast(int n, const struct operand *xs, int *rank, int64_t *dims) {
  return operand_broadcast_named(n, xs, rank, dims, "operands");
}

bool operand_broadcast_named(int n, const struct operand *xs, int *rank, int64_t *dims, const char *what) {
  *rank = 0;
  for (int i = 0; i < n; i++)
    *rank = xs[i].rank > *rank ? xs[i].rank : *rank;
  for (int d = 0; d < *rank; d++)
    dims[d] = 1;
  for (int i = 0; i < n; i++)
    for (int d = 0; d < xs[i].rank; d++) {
      int64_t size = xs[i].dims[d], *at = &dims[*rank - xs[i].rank + d];
      if (*at == 1)
        *at = size;
      else if (size != 1 && size != *at)
        return refuse_broadcast(n, xs, what);
    }
  return true;
}

/* A reshape removes the dimensions that change; the broadcast adds them with the new size. */
hlo_val val_broadcast(struct tracer *tr, hlo_val v, int rank, const int64_t *dims) {
  if (!v || (v->shape.rank == rank && hlo_dims_equal(rank, v->shape.dims, dims)))
    return v;
  int64_t kept[HLO_RANK_MAX], place[HLO_RANK_MAX];
  int n = 0, lead = rank - v->shape.rank;
  assert(lead >= 0);
  for (int d = 0; d < v->shape.rank; d++)
    if (v->shape.dims[d] == dims[lead + d]) {
      kept[n] = v->shape.dims[d];
      place[n++] = lead + d;
    }
  v = hlo_reshape(&tr->b, v, n, kept);
  return hlo_broadcast(&tr->b, v, rank, dims, place);
}
