/* inspect: returns traces as Python objects, for tests and for the package for ordinary Python.
 *
 *   _nkx.trace_source(source, filename="kernel.py", kernel=None, inputs=None, seed=0, evaluate=False, npz=None,
 *                     files=None)
 *
 * returns {"status", "diagnostics", "output", "kernels"}.  Each kernel has its module as text, as a proto and as a list
 * of instructions with their ranges; with evaluate=True it also has input values and NumPy's results.  inputs is a list
 * of (name or None, shape, dtype name).  The functions of trace.h do the tracing, as in the compiler.
 */
#include "trace/inspect.h"

#include "base/buf.h"
#include "hlo/print.h"
#include "trace/args.h"
#include "trace/operand.h"
#include "trace/program.h"
#include "trace/tracer.h"

enum { TEXT_MAX = 256 << 20 };

static PyObject *loc_list(const struct src_loc *loc) {
  PyObject *list = PyList_New(0);
  for (; list && loc; loc = loc->caller) {
    PyObject *r = Py_BuildValue("(ziiiiz)", loc->range.file, loc->range.line, loc->range.col, loc->range.end_line,
                                loc->range.end_col, loc->func);
    if (!r || PyList_Append(list, r) < 0)
      Py_CLEAR(list);
    Py_XDECREF(r);
  }
  return list;
}

static PyObject *int_list(struct hlo_ints v) {
  PyObject *l = PyList_New(v.n);
  for (int i = 0; l && i < v.n; i++)
    PyList_SET_ITEM(l, i, PyLong_FromLongLong(v.v[i]));
  return l;
}

static PyObject *shape_tuple(const struct hlo_shape *s) {
  return PyArray_IntTupleFromIntp(s->rank, s->dims);
}

static PyObject *knob_dict(const struct hlo_knob *k) {
  if (!k)
    return Py_NewRef(Py_None);
  return Py_BuildValue(
      "{s:N,s:N,s:N,s:N,s:z,s:i}", "loop_tile", int_list(k->loop_tile), "tile_size", int_list(k->tile_size),
      "reduction_tile", int_list(k->reduction_tile), "layout_tile", int_list(k->layout_tile), "mem_space",
      k->mem_space == MEM_NONE ? NULL : hlo_mem_space_name(k->mem_space), "partition_dim", k->partition_dim);
}

/* Makes a list of the values of the expression `make` for i = 0 … n - 1. */
#define LIST(n, make) \
  ({ \
    PyObject *list_ = PyList_New(0); \
    for (int i = 0; list_ && i < (n); i++) { \
      PyObject *item_ = (make); \
      if (!item_ || PyList_Append(list_, item_) < 0) \
        Py_CLEAR(list_); \
      Py_XDECREF(item_); \
    } \
    list_; \
  })

static PyObject *instr_dict(const struct hlo_instr *in) {
  return Py_BuildValue("{s:i,s:s,s:s,s:N,s:s,s:N,s:N,s:N}", "id", in->id, "name", in->name, "opcode",
                       hlo_op_name(in->op), "shape", shape_tuple(&in->shape), "dtype",
                       in->shape.dtype == DT_TUPLE ? "tuple" : dtype_numpy_name(in->shape.dtype), "operands",
                       LIST(in->n_operands, PyLong_FromLong(in->operands[i]->id)), "src",
                       loc_list(in->locs.n ? in->locs.v[0] : NULL), "knob", knob_dict(in->knob));
}

static PyObject *instr_list(const struct hlo_module *m) {
  PyObject *list = PyList_New(0);
  hlo_for_each(in, m->entry) {
    PyObject *d = list ? instr_dict(in) : NULL;
    if (!d || PyList_Append(list, d) < 0)
      Py_CLEAR(list);
    Py_XDECREF(d);
  }
  return list;
}

/* As NumPy has it: complex numbers, not pairs of reals. */
static PyObject *tensor_dict(const struct trace_tensor *t) {
  const enum dtype dtype = t->is_complex ? DT_C64 : t->shape.dtype;
  return Py_BuildValue("{s:s,s:N,s:s,s:i}", "name", t->name, "shape",
                       PyArray_IntTupleFromIntp(t->shape.rank - t->is_complex, t->shape.dims), "dtype",
                       dtype_numpy_name(dtype), "alias_of", t->alias_of);
}

static PyObject *array_object(const struct trace_array *v, bool is_complex) {
  PyObject *a =
      PyArray_NewFromDescr(&PyArray_Type, dtype_descr(is_complex ? DT_C64 : v->shape.dtype), v->shape.rank - is_complex,
                           (npy_intp *)(uintptr_t)v->shape.dims, NULL, NULL, 0, NULL);
  if (a)
    memcpy(PyArray_DATA((PyArrayObject *)a), v->data, (size_t)PyArray_NBYTES((PyArrayObject *)a));
  return a;
}

PyObject *inspect_tensors(const struct trace_tensor *v, int n) {
  return LIST(n, tensor_dict(&v[i]));
}

PyObject *inspect_aliases(const struct hlo_module *m) {
  return LIST(m->n_aliases,
              Py_BuildValue("(iisO)", m->aliases[i].output_index, m->aliases[i].param_index, m->aliases[i].param_name,
                            m->aliases[i].is_user_returned ? Py_True : Py_False));
}

PyObject *inspect_module(const struct hlo_module *m, bool proto) {
  struct buf b;
  struct hlo_print_options opt = {0};
  buf_init(&b, TEXT_MAX);
  enum status st = proto ? hlo_write_proto(m, &b) : hlo_print(m, &opt, &b, m->arena, NULL);
  PyObject *r = st      ? NULL
                : proto ? PyBytes_FromStringAndSize(buf_text(&b), (Py_ssize_t)b.len)
                        : PyUnicode_DecodeUTF8(buf_text(&b), (Py_ssize_t)b.len, "replace");
  buf_clear(&b);
  if (st && !PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "the module cannot be written");
  return r;
}

static PyObject *fuse_list(const struct hlo_module *m) {
  PyObject *list = PyList_New(0);
  for (const struct hlo_fuse *f = m->fuses; list && f; f = f->next) {
    PyObject *ids = LIST(f->n, PyLong_FromLong(f->v[i]->id));
    if (!ids || PyList_Append(list, ids) < 0)
      Py_CLEAR(list);
    Py_XDECREF(ids);
  }
  return list;
}

/* Sets dict[key] = value.  Takes ownership of value. */
static bool put(PyObject *dict, const char *key, PyObject *value) {
  bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
  Py_XDECREF(value);
  return ok;
}

static bool put_values(PyObject *d, struct trace_kernel *t, uint64_t seed, struct diags *ds) {
  struct arena *a = t->program->a;
  struct trace_array *in = arena_new_array(a, struct trace_array, (size_t)t->n_inputs),
                     *out = arena_new_array(a, struct trace_array, (size_t)t->n_outputs);
  bool is_drawn;
  if (trace_make_inputs(t, seed, TRACE_AROUND_ZERO, ds, in, &is_drawn) || trace_eval_numpy(t, in, ds, out))
    return true; /* a diagnostic states why the values are missing */
  return put(d, "input_values", LIST(t->n_inputs, array_object(&in[i], t->inputs[i].is_complex))) &&
         put(d, "expected", LIST(t->n_outputs, array_object(&out[i], t->outputs[i].is_complex)));
}

static PyObject *kernel_dict(struct trace_kernel *t, bool evaluate, uint64_t seed, struct diags *ds) {
  PyObject *d = PyDict_New();
  bool ok = d && put(d, "name", PyUnicode_FromString(t->name)) && put(d, "text", inspect_module(t->module, false)) &&
            put(d, "proto", inspect_module(t->module, true)) && put(d, "instructions", instr_list(t->module)) &&
            put(d, "fuses", fuse_list(t->module)) && put(d, "time_us", PyLong_FromLongLong(t->time_us)) &&
            put(d, "inputs", inspect_tensors(t->inputs, t->n_inputs)) &&
            put(d, "outputs", inspect_tensors(t->outputs, t->n_outputs));
  if (ok && evaluate)
    ok = put_values(d, t, seed, ds);
  if (!ok)
    Py_CLEAR(d);
  return d;
}

PyObject *inspect_kernel(struct trace_kernel *t) {
  return kernel_dict(t, false, 0, NULL);
}

static PyObject *diag_dict(const struct diag *d) {
  return Py_BuildValue("{s:s,s:s,s:s,s:z,s:N}", "severity", diag_severity_name(d->severity), "code",
                       diag_code_name(d->code), "message", d->message, "hint", d->hint, "src", loc_list(d->loc));
}

static bool read_inputs(struct arena *a, PyObject *o, struct trace_request *rq) {
  PyObject *seq = o && o != Py_None ? PySequence_Fast(o, "inputs must be a list") : NULL;
  if (!seq)
    return !PyErr_Occurred();
  Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
  struct trace_input_spec *in = arena_new_array(a, struct trace_input_spec, (size_t)n);
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < n; i++) {
    const char *name, *dtype;
    PyObject *shape;
    int64_t dims[HLO_RANK_MAX];
    int rank = 0;
    ok = PyArg_ParseTuple(PySequence_Fast_GET_ITEM(seq, i), "zOs", &name, &shape, &dtype) &&
         args_dims(shape, "shape", &rank, dims);
    if (ok) {
      in[i].name = name ? arena_strdup(a, name) : NULL;
      in[i].shape = hlo_shape_array(a, dtype_from_name(dtype), rank, dims);
    }
  }
  Py_DECREF(seq);
  rq->inputs = in;
  rq->n_inputs = (int)n;
  return ok;
}

static PyObject *run(struct arena *a, const struct trace_request *rq, bool evaluate, uint64_t seed) {
  struct diags ds;
  struct trace_program *program = NULL;
  size_t len = 0;
  diags_init(&ds, a);
  enum status st = trace_open(a, rq, &ds, &program);
  PyObject *kernels = PyList_New(0), *d = PyDict_New();
  for (int i = 0; kernels && i < trace_count(program); i++) {
    struct trace_kernel *t = NULL;
    enum status one = trace_kernel(program, i, &ds, &t);
    st = st ? st : one;
    if (one || !t) /* a partial trace is not returned */
      continue;
    PyObject *k = kernel_dict(t, evaluate, seed, &ds);
    if (!k || PyList_Append(kernels, k) < 0)
      Py_CLEAR(kernels);
    Py_XDECREF(k);
  }
  const char *text = trace_output(program, &len);
  bool ok = kernels && d && put(d, "kernels", Py_NewRef(kernels)) &&
            put(d, "status", PyUnicode_FromString(status_name(st))) &&
            put(d, "output", PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "replace")) &&
            put(d, "diagnostics", LIST(ds.n, diag_dict(&ds.v[i])));
  trace_close(program);
  Py_XDECREF(kernels);
  if (!ok)
    Py_CLEAR(d);
  return d;
}

/* Reads files: a list of pairs of name and text.  The texts live as long as the list. */
static bool read_files(struct arena *a, PyObject *list, struct trace_request *rq) {
  if (!list || list == Py_None)
    return true;
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "files must be a list of (name, text)");
    return false;
  }
  struct trace_file *files = arena_new_array(a, struct trace_file, (size_t)PyList_GET_SIZE(list));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    Py_ssize_t len = 0;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "ss#", &files[i].name, &files[i].source, &len))
      return false;
    files[i].source_len = (size_t)len;
  }
  rq->files = files;
  rq->n_files = (int)PyList_GET_SIZE(list);
  return true;
}

PyObject *inspect_trace_source(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"source", "filename", "kernel", "inputs", "seed", "evaluate", "npz", "files", NULL};
  struct trace_request rq = {.filename = "kernel.py"};
  struct arena a;
  Py_ssize_t len = 0;
  PyObject *inputs = NULL, *files = NULL, *r = NULL;
  unsigned long long seed = 0;
  int evaluate = 0;
  (void)self;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "s#|szOKpzO:trace_source", names, &rq.source, &len, &rq.filename,
                                   &rq.kernel, &inputs, &seed, &evaluate, &rq.inputs_npz, &files))
    return NULL;
  if (program_now || tracer_now) {
    PyErr_SetString(PyExc_RuntimeError, "another source is being traced");
    return NULL;
  }
  rq.source_len = (size_t)len;
  arena_init(&a);
  if (read_inputs(&a, inputs, &rq) && read_files(&a, files, &rq))
    r = run(&a, &rq, evaluate, seed);
  arena_clear(&a);
  return r;
}
