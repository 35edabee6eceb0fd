/* tensor: the Python type of the tensors of an NKI kernel, and of views of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/bytecode.h"
#include "trace/nki/nki.h"
#include "trace/refuse.h"

PyTypeObject *nki_tensor_type;

static struct nki_tensor_object *self_of(PyObject *o) {
  return (struct nki_tensor_object *)o;
}

PyObject *nki_wrap(struct nki_recorder *r, const struct nki_view *v) {
  struct nki_tensor_object *o = PyObject_New(struct nki_tensor_object, nki_tensor_type);
  if (o) {
    o->view = *v;
    o->serial = r->serial;
  }
  return (PyObject *)o;
}

struct nki_view *nki_view_of(struct nki_recorder *r, PyObject *o, const char *what) {
  if (!nki_is_tensor(o)) {
    if (!refuse_missing(o))
      trace_refuse(DG_NKI_CALL, NULL, "%s must be a tensor, not %s", what, Py_TYPE(o)->tp_name);
    return NULL;
  }
  if (self_of(o)->serial != r->serial)
    return trace_refuse(DG_NKI_CALL, "make it inside of the kernel, or pass it as an argument",
                        "%s is a tensor of another kernel", what);
  return &self_of(o)->view;
}

struct nki_view *nki_plain(struct nki_view *v, const char *what) {
  if (!v->columns)
    return v;
  return trace_refuse(DG_NKI_VIEW,
                      "index or reshape the tensor before .indirect, or copy the columns with nisa.tensor_copy",
                      "%s is columns that numbers select, which are an operand of nki.isa only",
                      strcmp(what, "self") != 0 ? what : "the view");
}

/* The view of the object that is asked. */
static struct nki_view *asked_view(PyObject *self, struct nki_recorder **r) {
  *r = nki_enter();
  return *r ? nki_view_of(*r, self, "self") : NULL;
}

/* The view of a method's object: columns that numbers select have no views of their own. */
static struct nki_view *own_view(PyObject *self, struct nki_recorder **r) {
  struct nki_view *v = asked_view(self, r);
  return v ? nki_plain(v, "self") : NULL;
}

/* ---- indexing ---------------------------------------------------------------------------------------------------- */

/* An entry of an index, and the register by which it begins later, or NULL. */
struct entry {
  struct nki_index at;
  struct nki_tensor *reg;
};

static bool read_bound(PyObject *o, bool *has, int64_t *out) {
  *has = o != Py_None;
  return !*has || nki_read_int(o, "a bound of a slice", out);
}

/* A slice of nl.ds with a register as its start: (register, size). */
static bool read_moving(struct nki_recorder *r, PyObject *o, struct entry *out, bool *is) {
  PyObject *start = PyObject_GetAttrString(o, "nki_start"),
           *size = start ? PyObject_GetAttrString(o, "nki_size") : NULL;
  PyErr_Clear();
  *is = size != NULL;
  bool ok = *is;
  if (ok) {
    bool is_register;
    out->at = (struct nki_index){.kind = NKI_SLICE, .step = 1, .has_start = true, .has_stop = true};
    out->reg = nki_index_register(r, start, &is_register);
    ok = out->reg && nki_read_int(size, "size", &out->at.stop);
  }
  Py_XDECREF(start);
  Py_XDECREF(size);
  return ok;
}

static bool read_slice(struct nki_recorder *r, const PySliceObject *s, struct nki_index *out) {
  PyObject *parts[] = {s->start, s->stop, s->step};
  bool has_step;
  for (int i = 0; i < 3; i++) {
    bool is;
    (void)nki_register_of(r, parts[i], &is);
    PyErr_Clear();
    if (!is)
      continue;
    trace_refuse(DG_NKI_REGISTER_IN_HOST_CODE, "write nl.ds(start, size): the size is known at compile time",
                 "a bound of a slice is a register");
    return false;
  }
  return read_bound(s->start, &out->has_start, &out->start) && read_bound(s->stop, &out->has_stop, &out->stop) &&
         read_bound(s->step, &has_step, &out->step);
}

static bool read_index(struct nki_recorder *r, PyObject *o, struct entry *entry) {
  struct nki_index *out = &entry->at;
  bool is = false;
  *entry = (struct entry){.at = {.kind = NKI_SLICE, .step = 1}};
  if (o == Py_Ellipsis) {
    out->kind = NKI_ELLIPSIS;
    return true;
  }
  if (o == Py_None) {
    out->kind = NKI_NEW;
    return true;
  }
  if (PySlice_Check(o))
    return read_slice(r, (PySliceObject *)o, out);
  out->kind = NKI_AT;
  if (nki_is_tensor(o) || PyArray_Check(o) || PyList_Check(o)) {
    trace_refuse(DG_NKI_OPERAND, "write .select(dim, index) or .ap(…, scalar_offset=index), or for rows .vector_select",
                 "an index is a tensor");
    return false;
  }
  if (!PyLong_Check(o)) {
    entry->reg = nki_index_register(r, o, &is);
    if (is)
      return entry->reg != NULL;
    const bool ok = read_moving(r, o, entry, &is);
    if (is)
      return ok;
  }
  return nki_read_int(o, "an index", &out->start);
}

/* Moves the view v[at[0], …] by the registers of its entries: each along the dimension of v that it indexes. */
static bool move_by_registers(struct nki_recorder *r, const struct nki_view *v, int n, const struct entry *at,
                              struct nki_view *out, struct nki_error *err) {
  struct nki_view moved = *v;
  int n_dims = 0, d = 0;
  for (int i = 0; i < n; i++)
    n_dims += at[i].at.kind == NKI_AT || at[i].at.kind == NKI_SLICE;
  for (int i = 0; i < n; i++) {
    if (at[i].reg && !nki_view_move(&moved, d, at[i].reg, r->program->arena, err))
      return false;
    d += at[i].at.kind == NKI_ELLIPSIS ? v->rank - n_dims : at[i].at.kind != NKI_NEW;
  }
  out->n_terms = moved.n_terms;
  out->terms = moved.terms;
  return true;
}

enum { ENTRY_MAX = 80 /* characters of an entry of an index */ };

/* Writes an entry of an index as the kernel wrote it; out has ENTRY_MAX characters.  Returns how many it wrote. */
static int put_entry(char *out, const struct entry *e) {
  const struct nki_index *x = &e->at;
  char start[24] = "", stop[24] = "", step[24] = "";
  if (x->kind == NKI_ELLIPSIS || x->kind == NKI_NEW)
    return snprintf(out, ENTRY_MAX, "%s", x->kind == NKI_NEW ? "None" : "...");
  if (x->kind == NKI_AT)
    return e->reg ? snprintf(out, ENTRY_MAX, "%.40s", e->reg->name) : snprintf(out, ENTRY_MAX, "%" PRId64, x->start);
  if (e->reg)
    return snprintf(out, ENTRY_MAX, "nl.ds(%.40s, %" PRId64 ")", e->reg->name, x->stop);
  if (x->has_start)
    snprintf(start, sizeof start, "%" PRId64, x->start);
  if (x->has_stop)
    snprintf(stop, sizeof stop, "%" PRId64, x->stop);
  if (x->step != 1)
    snprintf(step, sizeof step, ":%" PRId64, x->step);
  return snprintf(out, ENTRY_MAX, "%s:%s%s", start, stop, step);
}

/* Notes the expression that made a view: v[at[0], …].  Inside of a call that is shown as it was written nobody sees views. */
static void note_index(struct nki_recorder *r, const struct nki_view *v, int n, const struct entry *at,
                       struct nki_view *out) {
  char text[2 * NKI_RANK_MAX * (ENTRY_MAX + 2)] = "";
  int len = 0;
  out->written = NULL;
  if (!nki_shows_views(r))
    return;
  for (int i = 0; i < n; i++) {
    if (i)
      len += snprintf(text + len, sizeof text - (size_t)len, ", ");
    len += put_entry(text + len, &at[i]);
  }
  out->written = arena_printf(r->program->arena, "%s[%s]", nki_written_view(r, v), text);
}

static PyObject *subscript(PyObject *self, PyObject *key) {
  struct nki_recorder *r;
  const struct nki_view *v = own_view(self, &r);
  struct entry entries[2 * NKI_RANK_MAX];
  struct nki_index at[2 * NKI_RANK_MAX];
  const Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
  if (!v)
    return NULL;
  if (n > 2 * NKI_RANK_MAX)
    return trace_refuse(DG_NKI_BOUNDS, "give one for each dimension, or ... for those that stay whole",
                        "there are %zd indices for %d dimensions", n, v->rank);
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!read_index(r, PyTuple_Check(key) ? PyTuple_GET_ITEM(key, i) : key, &entries[i]))
      return NULL;
    at[i] = entries[i].at;
  }
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  if (!nki_view_index(v, (int)n, at, &out, &err) || !move_by_registers(r, v, (int)n, entries, &out, &err))
    return nki_raise(&err);
  note_index(r, v, (int)n, entries, &out);
  return nki_wrap(r, &out);
}

static PyObject *tensor_subscript(PyObject *self, PyObject *key) {
  PyObject *other = nki_unknown_among(PyTuple_Check(key) ? key : NULL, NULL);
  return other ? other : nki_or_unknown(nki_is_unknown(key) ? Py_NewRef(key) : subscript(self, key));
}

static int tensor_assign(PyObject *self, PyObject *key, PyObject *value) {
  (void)self, (void)key, (void)value;
  trace_refuse(DG_NKI_TILE_ASSIGNMENT, "write nisa.tensor_copy(dst=tile[…], src=value), or nl.store for HBM",
               "a part of a tensor cannot be assigned to");
  return nki_report() ? 0 : -1;
}

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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *own = own_view(self, &r), *v = own;
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
  const struct nki_view *v = own_view(self, &r);
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
  const struct nki_view *v = own_view(self, &r);
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

/* Whether the user's code asks for the attribute with a dot. */
static bool reads_attribute(const struct nki_recorder *r) {
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  PyCodeObject *code = f ? PyFrame_GetCode(f) : NULL;
  const bool is = code && ranges_has_code(r->ranges, code) && bytecode_reads_attribute(code, PyFrame_GetLasti(f));
  Py_XDECREF(code);
  Py_XDECREF(f);
  return is;
}

/* t.name where a tensor has no such attribute: refused, and unknown.  hasattr and getattr get Python's answer. */
static PyObject *tensor_attribute(PyObject *self, PyObject *name) {
  PyObject *o = PyObject_GenericGetAttr(self, name);
  if (o || !nki_now || !nki_is_shown(nki_now) || !PyErr_ExceptionMatches(PyExc_AttributeError) ||
      !reads_attribute(nki_now))
    return o;
  PyErr_Clear();
  PyObject *module = PyImport_ImportModule("nkx.nki_unknown");
  PyObject *r = module ? PyObject_CallMethod(module, "no_attribute", "O", name) : NULL;
  Py_XDECREF(module);
  return nki_or_unknown(r);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static PyObject *tensor_is_contiguous(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = own_view(self, &r);
  return v ? PyBool_FromLong(nki_is_contiguous(v)) : NULL;
}

static PyObject *tensor_is_indirect(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = asked_view(self, &r);
  return v ? PyBool_FromLong(v->rows || v->columns) : NULL;
}

/* [[stride, size], …], as .ap takes it, and what .offset gives. */
static PyObject *tensor_get_pattern(PyObject *self, PyObject *unused) {
  struct nki_recorder *r;
  (void)unused;
  const struct nki_view *v = own_view(self, &r);
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

static PyObject *int_tuple(const struct nki_view *v, bool strides) {
  PyObject *t = PyTuple_New(v->rank);
  for (int i = 0; t && i < v->rank; i++) {
    int64_t x = strides ? v->dim[i].stride : v->dim[i].size;
    if (strides && i == 0 && nki_is_on_chip(v))
      x *= nki_tensor_extent(v->tensor);
    PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(x));
  }
  return t;
}

enum member { SHAPE, STRIDES, OFFSET, DTYPE, BUFFER, NDIM, SIZE, NAME };

/* A type that NumPy does not have, as nl has it. */
static PyObject *named_type(const char *name) {
  PyObject *module = PyImport_ImportModule("nkx.nki_names");
  PyObject *type = module ? PyObject_CallMethod(module, "named_type", "s", name) : NULL;
  Py_XDECREF(module);
  return type;
}

static PyObject *tensor_get(PyObject *self, void *which) {
  struct nki_recorder *r;
  const enum member m = (enum member)(intptr_t)which;
  const struct nki_view *v = m == STRIDES || m == OFFSET ? own_view(self, &r) : asked_view(self, &r);
  if (!v)
    return NULL;
  switch (m) {
  case SHAPE:
    return int_tuple(v, false);
  case STRIDES:
    return int_tuple(v, true);
  case OFFSET:
    return PyLong_FromLongLong(v->offset + (nki_is_on_chip(v) ? v->partition * nki_tensor_extent(v->tensor) : 0));
  case DTYPE:
    if (v->tensor->packed)
      return named_type(nki_type_name(v->tensor));
    return nki_dtype_object(v->tensor->dtype);
  case BUFFER:
    return PyUnicode_FromString(nisa_space_name(v->tensor->space));
  case NDIM:
    return PyLong_FromLong(v->rank);
  case SIZE:
    return PyLong_FromLongLong(nki_elements(v));
  case NAME:
    return PyUnicode_FromString(v->tensor->name);
  }
  return NULL;
}

static PyObject *tensor_repr(PyObject *self) {
  const struct nki_view *v = &self_of(self)->view;
  if (!nki_now || self_of(self)->serial != nki_now->serial)
    return PyUnicode_FromString("<a tensor of another NKI kernel>");
  PyObject *shape = int_tuple(v, false);
  PyObject *s = shape ? PyUnicode_FromFormat("%s: %s%R in %s", v->tensor->name, dtype_numpy_name(v->tensor->dtype),
                                             shape, nisa_space_name(v->tensor->space))
                      : NULL;
  Py_XDECREF(shape);
  return s;
}

static Py_ssize_t tensor_length(PyObject *self) {
  return (Py_ssize_t)self_of(self)->view.dim[0].size;
}

/* ---- what tensors do not have ------------------------------------------------------------------------------------ */

/* When the kernel runs on after that, the result is the tensor. */
static PyObject *refuse_operator(PyObject *x, PyObject *y) {
  trace_refuse(DG_NKI_TENSOR_OPERATOR, "use nl.add(x, y), nl.multiply(x, y), …, or the calls of nki.isa",
               "tensors of NKI have no operators");
  return nki_report() ? Py_NewRef(nki_is_tensor(x) ? x : y) : NULL;
}
static PyObject *refuse_unary(PyObject *x) {
  return refuse_operator(x, NULL);
}
static PyObject *refuse_power(PyObject *x, PyObject *y, PyObject *modulus) {
  (void)modulus;
  return refuse_operator(x, y);
}
static PyObject *compare(PyObject *x, PyObject *y, int how) {
  if (how == Py_EQ || how == Py_NE) /* with None and other objects: identity, as `x in list` needs it */
    if (!nki_is_tensor(y) || !nki_is_tensor(x) || x == y)
      return PyBool_FromLong((x == y) == (how == Py_EQ));
  return refuse_operator(x, y);
}
static int refuse_truth(PyObject *self) {
  (void)self;
  trace_refuse(DG_NKI_TENSOR_TRUTH, "compare sizes or other Python values; use nl.where for data",
               "a tensor has no truth value while the kernel is compiled");
  return nki_report() ? 0 : -1;
}
static PyObject *refuse_iter(PyObject *self) {
  (void)self;
  return trace_refuse(DG_NKI_TENSOR_OPERATOR, "iterate over a range, and index the tensor", "a tensor is no sequence");
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

#define KW METH_VARARGS | METH_KEYWORDS

bool nki_tensor_init(PyObject *module) {
  static PyMethodDef methods[] = {
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
  static PyGetSetDef getset[] = {{"shape", tensor_get, NULL, NULL, (void *)SHAPE},
                                 {"strides", tensor_get, NULL, NULL, (void *)STRIDES},
                                 {"offset", tensor_get, NULL, NULL, (void *)OFFSET},
                                 {"dtype", tensor_get, NULL, NULL, (void *)DTYPE},
                                 {"buffer", tensor_get, NULL, NULL, (void *)BUFFER},
                                 {"ndim", tensor_get, NULL, NULL, (void *)NDIM},
                                 {"size", tensor_get, NULL, NULL, (void *)SIZE},
                                 {"name", tensor_get, NULL, NULL, (void *)NAME},
                                 {NULL, NULL, NULL, NULL, NULL}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods},
                                {Py_tp_getset, getset},
                                {Py_tp_repr, tensor_repr},
                                {Py_tp_getattro, tensor_attribute},
                                {Py_mp_subscript, tensor_subscript},
                                {Py_mp_ass_subscript, tensor_assign},
                                {Py_sq_length, tensor_length},
                                {Py_tp_iter, refuse_iter},
                                {Py_tp_richcompare, compare},
                                {Py_tp_hash, PyObject_HashNotImplemented},
                                {Py_nb_add, refuse_operator},
                                {Py_nb_subtract, refuse_operator},
                                {Py_nb_multiply, refuse_operator},
                                {Py_nb_true_divide, refuse_operator},
                                {Py_nb_floor_divide, refuse_operator},
                                {Py_nb_remainder, refuse_operator},
                                {Py_nb_matrix_multiply, refuse_operator},
                                {Py_nb_and, refuse_operator},
                                {Py_nb_or, refuse_operator},
                                {Py_nb_xor, refuse_operator},
                                {Py_nb_lshift, refuse_operator},
                                {Py_nb_rshift, refuse_operator},
                                {Py_nb_power, refuse_power},
                                {Py_nb_negative, refuse_unary},
                                {Py_nb_absolute, refuse_unary},
                                {Py_nb_invert, refuse_unary},
                                {Py_nb_bool, refuse_truth},
                                {0, NULL}};
  static PyType_Spec spec = {.name = "nki.Tensor",
                             .basicsize = sizeof(struct nki_tensor_object),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  nki_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
  return nki_tensor_type && PyModule_AddObjectRef(module, "NkiTensor", (PyObject *)nki_tensor_type) == 0;
}
