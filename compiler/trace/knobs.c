/* knobs: lets the kernel choose the tiling and the memory of a value.
 *
 *   knob.knob(x).tile_op(tile_size=[…]).layout(mem_space=…, partition_dim=…, tile_size=[…])      nkigen
 *   knob(x, partition_dim=…, mem_space=…, tile_size=…, reduction_tile=…)                         nkipy, older nkigen
 *   knob.fuse(a, b, …), knob.fuse(a, …, never=True)
 *
 * A knob is recorded on the instruction that defines the value.  Several calls for one value are merged: each attribute
 * has the last value that was given.  On NumPy arrays knobs do nothing, so that a kernel also runs as plain Python.
 */
#include "trace/knobs.h"

#include <assert.h>
#include <string.h>

#include "trace/refuse.h"
#include "trace/tensor.h"
#include "trace/trace.h"

static PyTypeObject *builder_type;

struct builder {
  PyObject_HEAD PyObject *target; /* the tensor, or NULL if the builder does nothing */
};

/* ---- reading the attributes -------------------------------------------------------------------------------- */

static bool read_space(PyObject *o, enum mem_space *out) {
  const char *s = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  PyErr_Clear();
  for (int m = MEM_HBM; s && m <= MEM_SHARED_HBM; m++)
    if (strcmp(s, hlo_mem_space_name((enum mem_space)m)) == 0) {
      *out = (enum mem_space)m;
      return true;
    }
  trace_refuse(DG_BAD_KNOB, "use \"Hbm\", \"Psum\", \"Sbuf\" or \"SharedHbm\"", "unknown mem_space %R", o);
  return false;
}

static bool read_partition(PyObject *o, int rank, int *out) {
  PyObject *i = PyBool_Check(o) ? NULL : PyNumber_Index(o);
  PyErr_Clear();
  long v = i ? PyLong_AsLong(i) : -1;
  PyErr_Clear();
  bool ok = i && v >= 0 && v < rank;
  Py_XDECREF(i);
  *out = (int)v;
  if (!ok)
    trace_refuse(DG_BAD_KNOB, "partition_dim names an axis of the value, counted from 0",
                 "partition_dim %R is out of range for a value with %d axes", o, rank);
  return ok;
}

static bool read_tile(struct tracer *tr, PyObject *o, const char *name, bool int_ok, struct hlo_ints *out) {
  int64_t v[HLO_RANK_MAX * 2];
  int n = 0;
  bool is_int = PyIndex_Check(o) && !tensor_check(o);
  PyObject *seq = is_int ? NULL : PyTuple_Check(o) || PyList_Check(o) ? PySequence_Fast(o, "") : NULL;
  if ((is_int && !int_ok) || (!is_int && !seq)) {
    trace_refuse(DG_BAD_KNOB, "write it as a list: [128, 128]", "%s must be a list of positive integers", name);
    return false;
  }
  Py_ssize_t len = seq ? PySequence_Fast_GET_SIZE(seq) : 1;
  bool ok = len > 0 && len <= HLO_RANK_MAX * 2;
  for (Py_ssize_t i = 0; ok && i < len; i++) {
    PyObject *item = seq ? PySequence_Fast_GET_ITEM(seq, i) : o;
    PyObject *num = PyIndex_Check(item) && !tensor_check(item) && !PyBool_Check(item) ? PyNumber_Index(item) : NULL;
    v[n] = num ? PyLong_AsLongLong(num) : -1;
    PyErr_Clear();
    Py_XDECREF(num);
    ok = v[n++] > 0;
  }
  Py_XDECREF(seq);
  if (!ok)
    trace_refuse(DG_BAD_KNOB, NULL, "%s must hold positive integers, not %R", name, o);
  else
    *out = hlo_ints_dup(tr->a, n, v);
  return ok;
}

static bool given(PyObject *o) {
  return o && o != Py_None;
}

/* ---- recording ---------------------------------------------------------------------------------------------- */

/* Returns a copy of the value's knob, which the caller changes and stores; NULL if the knob has no effect here. */
static struct hlo_knob *begin(struct tracer *tr, struct tensor *t) {
  assert(tr == tracer_now && t->serial == tr->serial);
  const struct src_loc *loc = tr->b.locs.n ? tr->b.locs.v[0] : NULL;
  if (dtype_is_complex(t->dtype)) {
    diag_add(tr->ds, DS_WARNING, DG_KNOB_IGNORED, loc,
             "a knob on complex numbers has no effect: they are computed as pairs of reals")
        ->hint = "put the knob on a real value that the kernel computes";
    return NULL;
  }
  if (t->v->op == HLO_PARAMETER) {
    struct diag *d =
        diag_add(tr->ds, DS_WARNING, DG_KNOB_IGNORED, loc, "a knob on the input \"%s\" has no effect", t->v->name);
    d->hint = "put the knob on a value that the kernel computes";
    return NULL;
  }
  struct hlo_knob *k = arena_new(tr->a, struct hlo_knob);
  *k = t->v->knob ? *t->v->knob : (struct hlo_knob){.partition_dim = -1};
  k->loc = loc;
  k->loops = hlo_loops_of(tr->a, t->v);
  return k;
}

/* Applies the function form.  Returns false with an exception; returns true also if the knob has no effect. */
static bool apply_function(struct tracer *tr, struct tensor *t, PyObject *pd, PyObject *ms, PyObject *tile,
                           PyObject *red) {
  struct hlo_knob scratch = {.partition_dim = -1};
  if (!tensor_val(tr, (PyObject *)t) || (given(pd) && !read_partition(pd, t->rank, &scratch.partition_dim)) ||
      (given(ms) && !read_space(ms, &scratch.mem_space)) ||
      (given(tile) && !read_tile(tr, tile, "tile_size", true, &scratch.tile_size)) ||
      (given(red) && !read_tile(tr, red, "reduction_tile", true, &scratch.reduction_tile)))
    return false;
  if (!given(pd) && !given(ms) && !given(tile) && !given(red))
    return true;
  int n = scratch.tile_size.n, m = scratch.reduction_tile.n;
  if (n && n != t->rank && n + m != t->rank &&
      !(n == 3 && t->rank == 2)) { /* 3: an old spelling of matmul's [M, N, K] */
    trace_refuse(DG_BAD_KNOB, "give one entry per axis of the value, and the reduced axes in reduction_tile",
                 "tile_size has %d entries for a value with %d axes", n, t->rank);
    return false;
  }
  struct hlo_knob *k = begin(tr, t);
  if (!k)
    return true;
  if (given(pd))
    k->partition_dim = scratch.partition_dim;
  if (given(ms))
    k->mem_space = scratch.mem_space;
  if (n)
    k->tile_size = scratch.tile_size;
  if (m)
    k->reduction_tile = scratch.reduction_tile;
  t->v->knob = k;
  return true;
}

static PyObject *function_form(PyObject *x, PyObject *pd, PyObject *ms, PyObject *tile, PyObject *red) {
  if (!tensor_check(x))
    return Py_NewRef(x);
  struct tracer *tr = tracer_enter();
  return tr && apply_function(tr, (struct tensor *)x, pd, ms, tile, red) ? Py_NewRef(x) : NULL;
}

/* ---- the builder --------------------------------------------------------------------------------------------- */

static PyObject *make_builder(PyObject *x) {
  struct builder *b = PyObject_New(struct builder, builder_type);
  if (b)
    b->target = tensor_check(x) ? Py_NewRef(x) : NULL;
  return (PyObject *)b;
}

static void builder_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(((struct builder *)self)->target);
  PyObject_Free(self);
  Py_DECREF(type);
}

static struct tensor *builder_target(PyObject *self, struct tracer **tr) {
  struct builder *b = (struct builder *)self;
  *tr = b->target ? tracer_enter() : NULL;
  return *tr && tensor_val(*tr, b->target) ? (struct tensor *)b->target : NULL;
}

/* Turns the TypeError for a wrong keyword or a positional argument into an error with the code bad-knob. */
static void adopt_knob_error(void) {
  PyObject *type, *value, *tb;
  if (!PyErr_ExceptionMatches(PyExc_TypeError))
    return;
  PyErr_Fetch(&type, &value, &tb);
  PyErr_NormalizeException(&type, &value, &tb);
  trace_refuse(DG_BAD_KNOB, NULL, "%S", value ? value : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(tb);
}

static PyObject *builder_tile_op(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"tile_size", NULL};
  PyObject *tile = NULL;
  struct tracer *tr;
  struct hlo_ints v;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$O:tile_op", names, &tile)) {
    adopt_knob_error();
    return NULL;
  }
  struct tensor *t = builder_target(self, &tr);
  if (!t || !given(tile))
    return PyErr_Occurred() ? NULL : Py_NewRef(self);
  if (!read_tile(tr, tile, "tile_size", false, &v))
    return NULL;
  struct hlo_knob *k = begin(tr, t);
  if (k) {
    k->loop_tile = v;
    t->v->knob = k;
  }
  return Py_NewRef(self);
}

static PyObject *builder_layout(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"partition_dim", "mem_space", "tile_size", NULL};
  PyObject *pd = NULL, *ms = NULL, *tile = NULL;
  struct tracer *tr;
  struct hlo_knob s = {.partition_dim = -1};
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$OOO:layout", names, &pd, &ms, &tile)) {
    adopt_knob_error();
    return NULL;
  }
  struct tensor *t = builder_target(self, &tr);
  if (!t || (!given(pd) && !given(ms) && !given(tile)))
    return PyErr_Occurred() ? NULL : Py_NewRef(self);
  if ((given(pd) && !read_partition(pd, t->rank, &s.partition_dim)) || (given(ms) && !read_space(ms, &s.mem_space)) ||
      (given(tile) && !read_tile(tr, tile, "tile_size", true, &s.layout_tile)))
    return NULL;
  struct hlo_knob *k = begin(tr, t);
  if (k) {
    if (given(pd))
      k->partition_dim = s.partition_dim;
    if (given(ms))
      k->mem_space = s.mem_space;
    if (given(tile))
      k->layout_tile = s.layout_tile;
    t->v->knob = k;
  }
  return Py_NewRef(self);
}

/* ---- what users call ------------------------------------------------------------------------------------------ */

static PyObject *parse_and_apply(PyObject *args, PyObject *kw, bool builder_when_bare) {
  static char *names[] = {"x", "partition_dim", "mem_space", "tile_size", "reduction_tile", NULL};
  static char *names_nkipy[] = {"tensor", "partition_dim", "mem_space", "tile_size", "reduction_tile", NULL};
  PyObject *x, *pd = NULL, *ms = NULL, *tile = NULL, *red = NULL;
  char **n = kw && PyDict_GetItemString(kw, "tensor") ? names_nkipy : names;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOO:knob", n, &x, &pd, &ms, &tile, &red)) {
    adopt_knob_error();
    return NULL;
  }
  if (builder_when_bare && !given(pd) && !given(ms) && !given(tile) && !given(red))
    return make_builder(x);
  return function_form(x, pd, ms, tile, red);
}

PyObject *knob_call(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self;
  return parse_and_apply(args, kw, true);
}

PyObject *knob_function(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self;
  return parse_and_apply(args, kw, false);
}

/* Reads never=…, the only keyword of fuse.  names: the keywords, or NULL. */
static bool read_never(PyObject *const *values, PyObject *names, bool *never) {
  *never = false;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
    if (!name)
      return false;
    if (strcmp(name, "never") != 0) {
      trace_refuse(DG_BAD_KNOB, NULL, "fuse takes tensors and never, not %s", name);
      return false;
    }
    const int is_true = PyObject_IsTrue(values[i]);
    if (is_true < 0)
      return false;
    *never = is_true;
  }
  return true;
}

PyObject *knob_fuse(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  (void)self;
  bool traced = n > 0, inputs = false, never;
  if (!read_never(args + n, names, &never))
    return NULL;
  for (Py_ssize_t i = 0; i < n; i++)
    traced = traced && tensor_check(args[i]);
  if (never && n < 1)
    return trace_refuse(DG_BAD_KNOB, NULL, "fuse needs at least one tensor with never=True");
  if (!never && n < 2)
    return trace_refuse(DG_BAD_KNOB, NULL, "fuse needs at least two tensors, not %zd", n);
  if (!traced)
    return Py_NewRef(Py_None);
  struct tracer *tr = tracer_enter();
  if (!tr)
    return NULL;
  struct hlo_fuse *f = arena_new(tr->a, struct hlo_fuse);
  *f = (struct hlo_fuse){.is_never = never,
                         .n = (int)n,
                         .v = arena_new_array(tr->a, struct hlo_instr *, (size_t)n),
                         .loc = tr->b.locs.n ? tr->b.locs.v[0] : NULL};
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!(f->v[i] = tensor_val(tr, args[i])))
      return NULL;
    inputs = inputs || f->v[i]->op == HLO_PARAMETER;
  }
  if (inputs) {
    diag_add(tr->ds, DS_WARNING, DG_KNOB_IGNORED, f->loc, "fuse with an input has no effect")->hint =
        "fuse values that the kernel computes";
    return Py_NewRef(Py_None);
  }
  struct hlo_module *m = tr->b.module;
  *(m->last_fuse ? &m->last_fuse->next : &m->fuses) = f;
  m->last_fuse = f;
  return Py_NewRef(Py_None);
}

bool knobs_init(PyObject *module) {
  static PyMethodDef methods[] = {{"tile_op", PYFUNC(builder_tile_op), METH_VARARGS | METH_KEYWORDS,
                                   "tile_op($self, /, *, tile_size)\n--\n\n"
                                   "The sizes of the tiles in which the operation runs, one entry per loop."},
                                  {"layout", PYFUNC(builder_layout), METH_VARARGS | METH_KEYWORDS,
                                   "layout($self, /, *, partition_dim=None, mem_space=None, tile_size=None)\n--\n\n"
                                   "Where the value lives: the memory, the axis along the partitions, its tiles."},
                                  {NULL, NULL, 0, NULL}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, builder_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  static PyType_Spec spec = {.name = "nkx.Knob",
                             .basicsize = sizeof(struct builder),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  builder_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  return builder_type;
}
