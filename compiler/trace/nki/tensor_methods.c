/* tensor_methods: the methods of the tensors of an NKI kernel. */
#include "trace/nki/nki.h"
#include "trace/refuse.h"

/* ---- methods that make views ------------------------------------------------------------------------------------- */

/* Returns the object of `out`, the result of a method of v, or the exception of *err. */
static PyObject *finish(struct nki_recorder *r, const struct nki_view *v, const char *method, PyObject *args,
                        PyObject *kw, bool ok, struct nki_view *out, const struct nki_error *err) {
  if (!ok)
    return nki_raise(err);
  out->written = nki_shows_views(r) ? arena_printf(r->program->arena, "%s.%s", nki_written_view(r, v),
                                                   nki_written_call(r, method, args, kw))
                                    : NULL;
  return nki_wrap(r, out);
}

/* f(v, one list of ints) */
typedef bool ints_method(const struct nki_view *v, int n, const int64_t *dims, struct nki_view *out,
                         struct nki_error *err);

static PyObject *call_with_ints(PyObject *self, PyObject *args, PyObject *kw, const char *method, const char *what,
                                ints_method *f) {
  struct nki_recorder *r;
  if (kw && PyDict_GET_SIZE(kw)) {
    PyObject *one = PyTuple_GET_SIZE(args) || PyDict_GET_SIZE(kw) > 1 ? NULL : PyDict_GetItemString(kw, what);
    PyObject *plain = one ? PyTuple_Pack(1, one) : NULL, *result = NULL;
    if (plain)
      result = call_with_ints(self, plain, NULL, method, what, f);
    else
      trace_refuse(DG_NKI_CALL, NULL, "%s takes %s", method, what);
    Py_XDECREF(plain);
    return result;
  }
  const struct nki_view *v = nki_own_view(self, &r);
  int64_t dims[NKI_RANK_MAX];
  int n;
  PyObject *list =
      PyTuple_GET_SIZE(args) == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0)) ? PyTuple_GET_ITEM(args, 0) : args;
  if (!v || !nki_read_ints(list, what, false, NKI_RANK_MAX, dims, &n))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  const bool ok = f(v, n, dims, &out, &err);
  return finish(r, v, method, args, NULL, ok, &out, &err);
}

static PyObject *tensor_permute(PyObject *self, PyObject *args, PyObject *kw) {
  return call_with_ints(self, args, kw, "permute", "dims", nki_view_permute);
}
static PyObject *tensor_reshape(PyObject *self, PyObject *args, PyObject *kw) {
  return call_with_ints(self, args, kw, "reshape", "shape", nki_view_reshape);
}

static PyObject *tensor_reshape_dim(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", "shape", NULL};
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *dim, *shape;
  int64_t d, dims[NKI_RANK_MAX];
  int n;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "OO:reshape_dim", names, &dim, &shape) ||
      !nki_read_int(dim, "dim", &d) || !nki_read_ints(shape, "shape", false, NKI_RANK_MAX, dims, &n))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  const bool ok = nki_view_reshape_dim(v, d, n, dims, &out, &err);
  return finish(r, v, "reshape_dim", args, kw, ok, &out, &err);
}

/* Methods with one to four integers. */
static PyObject *call_with_numbers(PyObject *self, PyObject *args, PyObject *kw, const char *format, char **names,
                                   bool (*f)(const struct nki_view *v, const int64_t *x, struct nki_view *out,
                                             struct nki_error *err)) {
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *given[4] = {NULL};
  int64_t x[4] = {0, 0, 0, 1};
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, format, names, &given[0], &given[1], &given[2], &given[3]))
    return NULL;
  for (int i = 0; i < 4; i++)
    if (given[i] && !nki_read_int(given[i], names[i], &x[i]))
      return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  const bool ok = f(v, x, &out, &err);
  return finish(r, v, strchr(format, ':') + 1, args, kw, ok, &out, &err);
}

static bool do_flatten(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_flatten_dims(v, x[0], x[1], out, err);
}
static PyObject *tensor_flatten_dims(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"start_dim", "end_dim", NULL};
  return call_with_numbers(self, args, kw, "OO:flatten_dims", names, do_flatten);
}
static bool do_expand(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_expand_dim(v, x[0], out, err);
}
static PyObject *tensor_expand_dim(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", NULL};
  return call_with_numbers(self, args, kw, "O:expand_dim", names, do_expand);
}
static bool do_squeeze(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_squeeze_dim(v, x[0], out, err);
}
static PyObject *tensor_squeeze_dim(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", NULL};
  return call_with_numbers(self, args, kw, "O:squeeze_dim", names, do_squeeze);
}
static bool do_broadcast(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_broadcast(v, x[0], x[1], out, err);
}
static PyObject *tensor_broadcast(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", "size", NULL};
  return call_with_numbers(self, args, kw, "OO:broadcast", names, do_broadcast);
}
static bool do_slice(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_slice(v, x[0], x[1], x[2], x[3], out, err);
}
static PyObject *tensor_slice(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", "start", "end", "step", NULL};
  return call_with_numbers(self, args, kw, "OOO|O:slice", names, do_slice);
}
static bool do_select(const struct nki_view *v, const int64_t *x, struct nki_view *out, struct nki_error *err) {
  return nki_view_select(v, x[0], x[1], out, err);
}
static PyObject *tensor_select(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", "index", NULL};
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *dim, *index;
  int64_t d;
  bool is;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "OO:select", names, &dim, &index))
    return NULL;
  (void)nki_register_of(r, index, &is);
  PyErr_Clear();
  if (is || nki_is_tensor(index)) {
    struct nki_tensor *reg = nki_offset_register(r, index, "index");
    struct nki_error err = {.arena = r->program->arena};
    struct nki_view moved = *v, out;
    if (!reg || !nki_read_int(dim, "dim", &d))
      return NULL;
    const bool ok = nki_view_select(v, d, 0, &out, &err) &&
                    nki_view_move(&moved, (int)(d < 0 ? d + v->rank : d), reg, r->program->arena, &err);
    out.n_terms = moved.n_terms;
    out.terms = moved.terms;
    return finish(r, v, "select", args, kw, ok, &out, &err);
  }
  return call_with_numbers(self, args, kw, "OO:select", names, do_select);
}

static PyObject *tensor_view(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dtype", NULL};
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *dtype;
  enum dtype t;
  enum nki_packed packed;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "O:view", names, &dtype) || !nki_read_type(r, dtype, &t, &packed))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  const bool ok = nki_view_as(v, t, packed, r->program->arena, &out, &err);
  return finish(r, v, "view", args, kw, ok, &out, &err);
}

/* The view of an argument that selects rows, in the arena; NULL with an exception. */
static struct nki_view *rows_of(struct nki_recorder *r, PyObject *o, const char *what) {
  struct nki_view *v = nki_view_of(r, o, what);
  return v && nki_plain(v, what) ? arena_dup(r->program->arena, v, sizeof *v) : NULL;
}

static PyObject *tensor_ap(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype", NULL};
  struct nki_recorder *r;
  const struct nki_view *own = nki_own_view(self, &r), *v = own;
  PyObject *pattern, *offset = Py_None, *scalar = Py_None, *vector = Py_None, *dtype = Py_None;
  int64_t pairs[NKI_RANK_MAX][2], at = 0;
  int n, indirect_dim = 0;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "O|OOOiO:ap", names, &pattern, &offset, &scalar, &vector,
                                         &indirect_dim, &dtype))
    return NULL;
  if (scalar != Py_None && vector != Py_None)
    return trace_refuse(DG_NKI_VIEW, "use two copies", "an access pattern has scalar_offset and vector_offset");
  if (indirect_dim && scalar == Py_None)
    return trace_refuse(DG_NKI_VIEW, "make it dimension 0", "rows are selected in dimension 0, not %d", indirect_dim);
  if (!nki_read_ints(pattern, "pattern", true, 2 * NKI_RANK_MAX, pairs[0], &n) ||
      (offset != Py_None && !nki_read_int(offset, "offset", &at)))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view retyped;
  enum dtype t;
  enum nki_packed packed;
  if (dtype != Py_None) {
    if (!nki_read_type(r, dtype, &t, &packed))
      return NULL;
    if (!nki_view_begin_as(v, t, packed, r->program->arena, &retyped, &err))
      return nki_raise(&err);
    v = &retyped;
  }
  struct nki_view out, *rows = vector != Py_None ? rows_of(r, vector, "vector_offset") : NULL;
  if (vector != Py_None && !rows)
    return NULL;
  const int64_t (*p)[2] = (const int64_t (*)[2])pairs;
  bool ok = rows ? nki_view_rows(v, n / 2, p, at, rows, &out, &err) : nki_view_ap(v, n / 2, p, at, &out, &err);
  struct nki_tensor *reg = ok && scalar != Py_None ? nki_offset_register(r, scalar, "scalar_offset") : NULL;
  if (ok && scalar != Py_None && !reg)
    return NULL;
  ok = ok && (!reg || nki_view_move_by_tensor(&out, indirect_dim, reg, r->program->arena, &err));
  return finish(r, own, "ap", args, kw, ok, &out, &err);
}

/* t.vector_select(0, rows): the rows of t with these numbers. */
static PyObject *tensor_vector_select(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dim", "vector_offset", NULL};
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *vector;
  int dim;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "iO:vector_select", names, &dim, &vector))
    return NULL;
  struct nki_view *rows = rows_of(r, vector, "vector_offset"), out;
  if (!rows)
    return NULL;
  if (dim)
    return trace_refuse(DG_NKI_VIEW, "make it dimension 0", "rows are selected in dimension 0, not %d", dim);
  int64_t pairs[NKI_RANK_MAX][2] = {{0, rows->dim[0].size}};
  for (int i = 1; i < v->rank; i++)
    pairs[i][0] = v->dim[i].stride, pairs[i][1] = v->dim[i].size;
  struct nki_error err = {.arena = r->program->arena};
  const bool ok = nki_view_rows(v, v->rank, (const int64_t (*)[2])pairs, 0, rows, &out, &err);
  return finish(r, v, "vector_select", args, kw, ok, &out, &err);
}

/* t.indirect(index, num_elem=None): columns.c. */
static PyObject *tensor_indirect(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"index", "num_elem", NULL};
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  PyObject *numbers, *n_elements = Py_None;
  int64_t n = -1;
  if (!v || !PyArg_ParseTupleAndKeywords(args, kw, "O|O:indirect", names, &numbers, &n_elements) ||
      (n_elements != Py_None && !nki_read_int(n_elements, "num_elem", &n)))
    return NULL;
  struct nki_view *index = nki_view_of(r, numbers, "index");
  if (!index || !nki_plain(index, "index"))
    return NULL;
  if (n_elements != Py_None && n < 0)
    n = 0;
  const char *written = nki_shows_views(r) ? arena_printf(r->program->arena, "%s.%s", nki_written_view(r, v),
                                                          nki_written_call(r, "indirect", args, kw))
                                           : NULL;
  return nki_tensor_columns(r, v, index, n, written);
}

/* ---- after a refusal ---------------------------------------------------------------------------------------------- */

/* A method that makes a view: a view that is refused, or made with something unknown, is unknown, and the kernel goes on. */
static PyObject *go_on(PyObject *self, PyObject *args, PyObject *kw, PyCFunctionWithKeywords f) {
  PyObject *other = nki_unknown_among(args, kw);
  return other ? other : nki_or_unknown(f(self, args, kw));
}
#define GOES_ON(method, f) \
  static PyObject *on_##method(PyObject *self, PyObject *args, PyObject *kw) { \
    return go_on(self, args, kw, f); \
  }
GOES_ON(permute, tensor_permute)
GOES_ON(reshape, tensor_reshape)
GOES_ON(reshape_dim, tensor_reshape_dim)
GOES_ON(flatten_dims, tensor_flatten_dims)
GOES_ON(expand_dim, tensor_expand_dim)
GOES_ON(squeeze_dim, tensor_squeeze_dim)
GOES_ON(broadcast, tensor_broadcast)
GOES_ON(slice, tensor_slice)
GOES_ON(select, tensor_select)
GOES_ON(ap, tensor_ap)
GOES_ON(view, tensor_view)
GOES_ON(vector_select, tensor_vector_select)
GOES_ON(indirect, tensor_indirect)
GOES_ON(rearrange, nki_tensor_rearrange)
#undef GOES_ON

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static PyObject *tensor_is_contiguous(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = nki_own_view(self, &r);
  return v ? PyBool_FromLong(nki_is_contiguous(v)) : NULL;
}

static PyObject *tensor_is_indirect(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = nki_asked_view(self, &r);
  return v ? PyBool_FromLong(v->rows || v->columns) : NULL;
}

/* [[stride, size], …], as .ap takes it, and what .offset gives. */
static PyObject *tensor_get_pattern(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = nki_own_view(self, &r);
  if (v && v->rows)
    return trace_refuse(DG_NKI_VIEW, NULL, "rows that numbers select have no pattern");
  PyObject *list = v ? PyList_New(v->rank) : NULL;
  for (int i = 0; list && i < v->rank; i++) {
    const bool is_partition = i == 0 && nki_is_on_chip(v);
    const int64_t stride = v->dim[i].stride * (is_partition ? nki_tensor_extent(v->tensor) : 1);
    PyList_SET_ITEM(list, i, Py_BuildValue("[LL]", (long long)stride, (long long)v->dim[i].size));
  }
  return list;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define KW METH_VARARGS | METH_KEYWORDS

PyMethodDef nki_tensor_methods[] = {
    {"permute", PYFUNC(on_permute), KW, "permute(dims): the dimensions in another order."},
    {"reshape", PYFUNC(on_reshape), KW, "reshape(shape): the same elements in another shape."},
    {"reshape_dim", PYFUNC(on_reshape_dim), KW, "reshape_dim(dim, shape): splits a dimension."},
    {"flatten_dims", PYFUNC(on_flatten_dims), KW, "flatten_dims(start_dim, end_dim): merges dimensions."},
    {"expand_dim", PYFUNC(on_expand_dim), KW, "expand_dim(dim): adds a dimension of size 1."},
    {"squeeze_dim", PYFUNC(on_squeeze_dim), KW, "squeeze_dim(dim): drops a dimension of size 1."},
    {"broadcast", PYFUNC(on_broadcast), KW, "broadcast(dim, size): repeats a dimension of size 1."},
    {"slice", PYFUNC(on_slice), KW, "slice(dim, start, end, step=1)"},
    {"select", PYFUNC(on_select), KW, "select(dim, index): drops a dimension."},
    {"ap", PYFUNC(on_ap), KW,
     "ap(pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None): an access "
     "pattern, "
     "[[stride, size], …]."},
    {"view", PYFUNC(on_view), KW, "view(dtype): the same bytes as elements of another type."},
    {"reinterpret_cast", PYFUNC(on_view), KW, "The same as view."},
    {"vector_select", PYFUNC(on_vector_select), KW, "vector_select(dim, vector_offset): rows of HBM by number."},
    {"rearrange", PYFUNC(on_rearrange), KW,
     "rearrange(src_pattern, dst_pattern, fixed_sizes=None): dimensions by names, split, merged and in another "
     "order."},
    {"get_pattern", tensor_get_pattern, METH_NOARGS, "The access pattern of the view, [[stride, size], …]."},
    {"indirect", PYFUNC(on_indirect), KW, "indirect(index, num_elem=None): columns of SBUF by number."},
    {"is_indirect", tensor_is_indirect, METH_NOARGS, "Whether numbers select its rows or columns."},
    {"is_contiguous", tensor_is_contiguous, METH_NOARGS, "Whether the elements lie one after another."},
    {NULL, NULL, 0, NULL}};
