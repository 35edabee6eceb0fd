/* make: tensors that a kernel makes. */
#include <string.h>

#include "trace/nki/nki.h"
#include "trace/operand.h"
#include "trace/refuse.h"

static bool read_buffer(PyObject *o, enum mem_space *out) {
  PyObject *keep;
  const char *name = nki_name_of(o, &keep);
  bool known = false;
  for (int s = MEM_HBM; name && s < NISA_SPACES; s++)
    if (!strcmp(nisa_space_name((enum mem_space)s), name)) {
      *out = (enum mem_space)s;
      known = true;
    }
  if (name && !strcmp(name, "private_hbm")) {
    *out = MEM_HBM;
    known = true;
  }
  Py_XDECREF(keep);
  if (!known)
    trace_refuse(DG_NKI_MEMORY, "use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm", "%R is not a memory", o);
  return known;
}

const char *nki_variable_here(struct nki_recorder *r) {
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  const char *name = NULL;
  while (f && f != r->base) {
    PyCodeObject *code = PyFrame_GetCode(f);
    const bool is_users = ranges_has_code(r->ranges, code);
    if (is_users)
      name = bytecode_stored_name(code, PyFrame_GetLasti(f));
    name = name ? arena_strdup(r->program->arena, name) : NULL;
    Py_DECREF(code);
    PyFrameObject *back = is_users ? NULL : PyFrame_GetBack(f);
    Py_DECREF(f);
    f = back;
  }
  Py_XDECREF(f);
  return name;
}

/* Puts the tensor at an address: (partition, byte), or what a function of its partitions and its bytes in each says. */
static bool place_tensor(struct nki_recorder *r, struct nki_tensor *t, PyObject *address) {
  struct nki_error err = {.arena = r->program->arena};
  int64_t at[2];
  int n = 0;
  if (PyCallable_Check(address)) {
    const long long bytes = (long long)nki_tensor_extent(t) * (long long)dtype_size(t->dtype);
    PyObject *o = PyObject_CallFunction(address, "LL", (long long)t->dims[0], bytes);
    const bool ok = o && place_tensor(r, t, o);
    Py_XDECREF(o);
    return ok;
  }
  r->wrong = "address";
  if (!nki_read_ints(address, "address", false, 2, at, &n))
    return false;
  if (n != 2)
    return trace_refuse(DG_NKI_ADDRESS, "write (partition, byte)", "an address of %d number", n);
  return nki_tensor_place(r->program, t, at[0], at[1], &err) || nki_raise(&err);
}

PyObject *nki_make_tensor(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  PyObject *shape, *dtype, *buffer, *address = Py_None;
  const char *name;
  int64_t dims[NKI_RANK_MAX];
  enum dtype t;
  enum mem_space space;
  int n;
  (void)self;
  PyObject *other = r ? nki_unknown_among(args, NULL) : NULL;
  if (other)
    return other;
  if (!r || !PyArg_ParseTuple(args, "OOOz|O", &shape, &dtype, &buffer, &name, &address))
    return NULL;
  r->wrong = "shape";
  if (!nki_read_ints(shape, "shape", false, NKI_RANK_MAX, dims, &n))
    return NULL;
  r->wrong = "dtype";
  enum nki_packed packed;
  if (!nki_read_type(r, dtype, &t, &packed))
    return NULL;
  r->wrong = "buffer";
  if (!read_buffer(buffer, &space))
    return NULL;
  r->wrong = "shape";
  struct nki_error err = {.arena = r->program->arena};
  nki_note_rounds(r);
  struct nki_tensor *made =
      nki_tensor_make(r->program, name && *name ? name : nki_variable_here(r), t, space, n, dims, nki_here(r), &err);
  if (!made)
    return nki_raise(&err);
  made->packed = packed;
  if (address != Py_None && !place_tensor(r, made, address))
    return NULL;
  r->wrong = NULL;
  const struct nki_view whole = nki_whole(made);
  return nki_wrap(r, &whole);
}

PyObject *nki_make_constant(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_enter();
  int64_t dims[NKI_RANK_MAX];
  (void)self;
  if (!r)
    return NULL;
  PyArrayObject *a = (PyArrayObject *)PyArray_FROM_OF(o, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_NOTSWAPPED);
  if (!a)
    return NULL;
  const enum dtype t = dtype_from_num(PyArray_TYPE(a));
  const int n = PyArray_NDIM(a);
  if (t == DT_NONE || t == DT_BOOL || dtype_narrow(t) != t || dtype_is_complex(t) || n < 1 || n > NKI_RANK_MAX) {
    trace_refuse(DG_NKI_DTYPE, "give an array of 1 to 8 dimensions, of a type of nl other than bool_",
                 "a constant cannot have the type %R and %d dimensions", PyArray_DESCR(a), n);
    Py_DECREF(a);
    return NULL;
  }
  for (int k = 0; k < n; k++)
    dims[k] = PyArray_DIM(a, k);
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *made =
      nki_tensor_new(r->program, nki_variable_here(r), t, MEM_HBM, n, dims, -1, nki_here(r), &err);
  if (made)
    made->initial = arena_dup(r->program->arena, PyArray_DATA(a), (size_t)PyArray_NBYTES(a));
  Py_DECREF(a);
  if (!made)
    return nki_raise(&err);
  const struct nki_view whole = nki_whole(made);
  return nki_wrap(r, &whole);
}
