/* npz: arrays from and to NumPy's files, for programs that are not Python and for results. */
#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/operand.h"
#include "trace/program.h"

/* Adds an error about the file, with the message of the Python exception if there is one. */
static enum status refuse_file(struct arena *a, struct diags *ds, const char *path, const char *what) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyObject *text = exc ? PyObject_Str(exc) : NULL;
  const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
  diag_add(ds, DS_ERROR, DG_BAD_INPUTS, NULL, "%s: %s", arena_strndup(a, path, strlen(path)), s ? s : what);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(exc);
  Py_XDECREF(tb);
  PyErr_Clear();
  return ST_INPUT;
}

/* The array of this name, or array i if the names are others and there are n; NULL with or without an exception. */
static PyObject *array_at(PyObject *z, const char *name, int i, int n) {
  PyObject *files = PyObject_GetAttrString(z, "files"), *key = PyUnicode_FromString(name), *o = NULL;
  const int has_name = files && key ? PySequence_Contains(files, key) : -1;
  if (has_name > 0) {
    o = PyObject_GetItem(z, key);
  } else if (!has_name && PySequence_Size(files) == n) {
    Py_SETREF(key, PySequence_GetItem(files, i));
    o = key ? PyObject_GetItem(z, key) : NULL;
  }
  Py_XDECREF(files);
  Py_XDECREF(key);
  return o;
}

/* NumPy's files hold narrow floats as bytes without the name of their type. */
static PyObject *as_type(PyObject *o, enum dtype t) {
  PyArrayObject *x = (PyArrayObject *)o;
  if (PyArray_TYPE(x) == NPY_VOID && (size_t)PyArray_ITEMSIZE(x) == dtype_size(t))
    return PyArray_View(x, dtype_descr(t), NULL);
  return PyArray_FromArray(x, dtype_descr(t), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_FORCECAST | NPY_ARRAY_NOTSWAPPED);
}

static enum status take(struct arena *a, const char *path, PyObject *o, const struct trace_tensor *want,
                        struct diags *ds, struct trace_array *out) {
  const struct hlo_shape *s = &want->shape;
  char have[DIMS_TEXT_MAX], needs[DIMS_TEXT_MAX];
  PyArrayObject *x = (PyArrayObject *)o;
  if (!PyArray_Check(o))
    return refuse_file(a, ds, path, "it does not hold arrays");
  if (PyArray_NDIM(x) != s->rank || !hlo_dims_equal(s->rank, PyArray_DIMS(x), s->dims)) {
    diag_add(ds, DS_ERROR, DG_BAD_INPUTS, NULL, "%s: the array for %s has shape %s; the program takes %s", path,
             want->name, dims_text(PyArray_NDIM(x), PyArray_DIMS(x), have), dims_text(s->rank, s->dims, needs));
    return ST_INPUT;
  }
  PyObject *c = as_type(o, s->dtype), *plain = c ? PyArray_FROM_OF(c, NPY_ARRAY_C_CONTIGUOUS) : NULL;
  Py_XDECREF(c);
  if (!plain)
    return refuse_file(a, ds, path, "an array cannot be converted");
  *out = (struct trace_array){
      .shape = *s,
      .data = arena_dup(a, PyArray_DATA((PyArrayObject *)plain), (size_t)PyArray_NBYTES((PyArrayObject *)plain))};
  Py_DECREF(plain);
  return ST_OK;
}

enum status trace_npz_read(struct arena *a, const char *path, int n, const struct trace_tensor *want, struct diags *ds,
                           struct trace_array *out) {
  PyObject *z = values_load_npz(path);
  enum status st = z ? ST_OK : refuse_file(a, ds, path, "it cannot be read");
  for (int i = 0; !st && i < n; i++) {
    PyObject *o = array_at(z, want[i].name, i, n);
    st = o ? take(a, path, o, &want[i], ds, &out[i])
           : refuse_file(a, ds, path, arena_printf(a, "there is no array %s", want[i].name));
    Py_XDECREF(o);
  }
  Py_XDECREF(z);
  return st;
}

static PyObject *as_array(const struct trace_array *x, bool is_complex) {
  PyObject *a =
      PyArray_NewFromDescr(&PyArray_Type, dtype_descr(is_complex ? DT_C64 : x->shape.dtype), x->shape.rank - is_complex,
                           (npy_intp *)(uintptr_t)x->shape.dims, NULL, NULL, 0, NULL);
  if (a)
    memcpy(PyArray_DATA((PyArrayObject *)a), x->data, (size_t)PyArray_NBYTES((PyArrayObject *)a));
  return a;
}

enum status trace_npz_write(struct arena *a, const char *path, int n, const struct trace_tensor *names,
                            const struct trace_array *arrays, struct diags *ds) {
  PyObject *named = PyDict_New(), *r = NULL;
  bool ok = named;
  for (int i = 0; ok && i < n; i++) {
    PyObject *x = as_array(&arrays[i], names[i].is_complex);
    ok = x && PyDict_SetItemString(named, names[i].name, x) == 0;
    Py_XDECREF(x);
  }
  PyObject *module = ok ? PyImport_ImportModule("nkx.npz") : NULL;
  if (module)
    r = PyObject_CallMethod(module, "save", "sO", path, named);
  const enum status st = r ? ST_OK : refuse_file(a, ds, path, "it cannot be written");
  Py_XDECREF(r);
  Py_XDECREF(module);
  Py_XDECREF(named);
  return st;
}
