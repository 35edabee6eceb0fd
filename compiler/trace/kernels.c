/* kernels: the `trace` decorator, which turns functions into Kernel objects.
 *
 * Calling a Kernel calls the plain function, so that it can be checked as NumPy code.  In a job, the first call (or
 * .specialize) with arrays also records them.  The kernel is compiled for their shapes (resolve.c).
 */
#include "trace/kernels.h"

#include <stddef.h>
#include <string.h>

#include <structmember.h>

#include "trace/calls.h"
#include "trace/nki/nki.h"
#include "trace/program.h"
#include "trace/refuse.h"
#include "trace/tracer.h"

PyTypeObject *kernel_type;

static PyObject *bind(PyObject *fn, PyObject *args, PyObject *kw) {
  PyObject *inspect = PyImport_ImportModule("inspect"), *sig = NULL, *method = NULL, *bound = NULL, *done = NULL;
  if (inspect && (sig = PyObject_CallMethod(inspect, "signature", "O", fn)) &&
      (method = PyObject_GetAttrString(sig, "bind")) && (bound = PyObject_Call(method, args, kw)))
    done = PyObject_CallMethod(bound, "apply_defaults", NULL);
  if (!done)
    Py_CLEAR(bound);
  Py_XDECREF(done);
  Py_XDECREF(method);
  Py_XDECREF(sig);
  Py_XDECREF(inspect);
  return bound;
}

static bool record(struct kernel *k, PyObject *args, PyObject *kw) {
  PyObject *bound = bind(k->fn, args, kw);
  PyObject *a = bound ? PyObject_GetAttrString(bound, "args") : NULL,
           *d = bound ? PyObject_GetAttrString(bound, "kwargs") : NULL;
  PyObject *copied = a ? call_copy(a) : NULL, *dict = d ? call_copy_named(d) : NULL;
  const bool ok = copied && dict;
  if (ok) {
    Py_XSETREF(k->args, Py_NewRef(copied));
    Py_XSETREF(k->kw, Py_NewRef(dict));
  }
  Py_XDECREF(bound);
  Py_XDECREF(a);
  Py_XDECREF(d);
  Py_XDECREF(copied);
  Py_XDECREF(dict);
  return ok;
}

/* Calls nkx.package.NAME(self, *args, **kw). */
static PyObject *call_package(const char *name, PyObject *self, PyObject *args, PyObject *kw) {
  PyObject *package = PyImport_ImportModule("nkx.package"), *all = NULL, *r = NULL;
  PyObject *fn = package ? PyObject_GetAttrString(package, name) : NULL, *first = PyTuple_Pack(1, self);
  if (fn && first && (all = PySequence_Concat(first, args)))
    r = PyObject_Call(fn, all, kw);
  Py_XDECREF(package);
  Py_XDECREF(fn);
  Py_XDECREF(first);
  Py_XDECREF(all);
  return r;
}

static PyObject *trace_decorator(PyObject *self, PyObject *args, PyObject *kw);

/* ---- the Kernel type --------------------------------------------------------------------------------------------- */

/* Records the arguments of a call of an NKI kernel if there are arrays among them, those of frameworks as NumPy's.  False with an
 * exception. */
static bool record_call(struct kernel *k, struct kernel *own, PyObject *args, PyObject *kw) {
  PyObject *module = PyImport_ImportModule("nkx.nki_run");
  PyObject *both = module ? PyObject_CallMethod(module, "as_arrays", "OO", args, kw ? kw : Py_None) : NULL;
  PyObject *own_args, *own_kw;
  Py_XDECREF(module);
  bool ok = both && PyArg_ParseTuple(both, "O!O!", &PyTuple_Type, &own_args, &PyDict_Type, &own_kw);
  if (ok && call_has_array(own_args, own_kw)) {
    ok = record(own, own_args, own_kw);
    if (ok)
      Py_XSETREF(own->launched, Py_XNewRef(k->grid));
  }
  Py_XDECREF(both);
  return ok;
}

/* Keeps the pending exception for trace_open. */
static void note_failed(struct kernel *k) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyErr_NormalizeException(&type, &exc, &tb);
  program_now->failed = k;
  program_now->failed_by = exc;
  PyErr_Restore(type, exc, tb);
}

/* Calls an @nki.jit kernel.  In another NKI kernel it is a plain function, in a NumPy kernel that is traced a custom call
 * (nkx/nki_kernel.py); otherwise it runs on arrays (nkx/nki_run.py), whose shapes it is compiled for, too, unless they come
 * from a run of a NumPy kernel. */
static PyObject *call_nki(struct kernel *k, PyObject *args, PyObject *kw) {
  struct kernel *own = k->of ? k->of : k;
  if (nki_now && k->grid)
    return trace_refuse(DG_NKI_GRID, "call it without a grid",
                        "a kernel inside of a kernel is launched with the grid %R", k->grid);
  if (nki_now)
    return PyObject_Call(k->fn, args, kw);
  if (program_now && !program_now->is_rerun && !own->args && !tracer_now && !record_call(k, own, args, kw))
    return NULL;
  PyObject *module = PyImport_ImportModule(tracer_now ? "nkx.nki_kernel" : "nkx.nki_run"), *r = NULL;
  PyObject *call = module ? PyObject_GetAttrString(module, tracer_now ? "call_traced" : "call") : NULL;
  PyObject *first = PyTuple_Pack(1, (PyObject *)k), *all = first ? PySequence_Concat(first, args) : NULL;
  const bool was_watching = calls_pause();
  if (call && all)
    r = PyObject_Call(call, all, kw);
  calls_resume(was_watching);
  if (!r && program_now && !tracer_now)
    note_failed(own);
  Py_XDECREF(module);
  Py_XDECREF(call);
  Py_XDECREF(first);
  Py_XDECREF(all);
  return r;
}

static PyObject *kernel_call(PyObject *self, PyObject *args, PyObject *kw) {
  struct kernel *k = (struct kernel *)self;
  if (k->nki)
    return call_nki(k, args, kw);
  if (program_now && !k->args && !tracer_now && call_has_array(args, kw) && !record(k, args, kw))
    return NULL;
  return PyObject_Call(k->fn, args, kw);
}

/* In an ordinary Python the package traces immediately (nkx/package.py).  In a job this records the arguments. */
static PyObject *kernel_specialize(PyObject *self, PyObject *args, PyObject *kw) {
  if (!program_now)
    return call_package("specialize", self, args, kw);
  return record((struct kernel *)self, args, kw) ? Py_NewRef(self) : NULL;
}

static PyObject *kernel_to_mlir(PyObject *self, PyObject *args, PyObject *kw) {
  return call_package("to_mlir", self, args, kw);
}

/* NKIPyKernel.trace(f), NKIPyKernel.trace(f, backend=…) */
static PyObject *kernel_trace(PyObject *cls, PyObject *args, PyObject *kw) {
  return trace_decorator(cls, args, kw);
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
  struct kernel *k = (struct kernel *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(k->fn);
  Py_VISIT(k->dict);
  Py_VISIT(k->name);
  Py_VISIT(k->input_specs);
  Py_VISIT(k->args);
  Py_VISIT(k->kw);
  Py_VISIT(k->code);
  Py_VISIT(k->grid);
  Py_VISIT(k->of);
  Py_VISIT(k->launched);
  return 0;
}

static int kernel_clear(PyObject *self) {
  struct kernel *k = (struct kernel *)self;
  Py_CLEAR(k->fn);
  Py_CLEAR(k->dict);
  Py_CLEAR(k->name);
  Py_CLEAR(k->input_specs);
  Py_CLEAR(k->args);
  Py_CLEAR(k->kw);
  Py_CLEAR(k->code);
  Py_CLEAR(k->grid);
  Py_CLEAR(k->of);
  Py_CLEAR(k->launched);
  return 0;
}

static void kernel_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  kernel_clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

static PyObject *kernel_get(PyObject *self, void *which) {
  struct kernel *k = (struct kernel *)self;
  PyObject *o = which == (void *)0   ? k->fn
                : which == (void *)1 ? k->name
                : which == (void *)3 ? k->grid
                                     : k->input_specs;
  return Py_NewRef(o ? o : Py_None);
}
/* _code: the object that nkx.package stores for the last specialize.  In a job it is made from the recorded call when
 * it is first read. */
static PyObject *kernel_get_code(PyObject *self, void *closure) {
  (void)closure;
  struct kernel *k = (struct kernel *)self;
  if (!k->code && k->args) {
    PyObject *call = PyTuple_Pack(2, k->args, k->kw);
    k->code = call ? call_package("code_of_call", self, call, NULL) : NULL;
    Py_XDECREF(call);
    if (!k->code)
      return NULL;
  }
  return Py_NewRef(k->code ? k->code : Py_None);
}
static int kernel_set_code(PyObject *self, PyObject *value, void *closure) {
  (void)closure;
  Py_XSETREF(((struct kernel *)self)->code, Py_XNewRef(value));
  return 0;
}
static PyObject *kernel_get_generation(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromLong(((struct kernel *)self)->nki);
}
static PyObject *kernel_traced(PyObject *self, void *closure) {
  (void)self, (void)closure;
  return Py_NewRef(Py_True);
}
static PyObject *kernel_doc(PyObject *self, void *closure) {
  (void)closure;
  return PyObject_GetAttrString(((struct kernel *)self)->fn, "__doc__");
}

/* Returns a copy of the function's own attributes, as functools.wraps makes; NULL if it has none. */
static PyObject *copy_attributes(PyObject *fn) {
  PyObject *theirs = PyObject_GetAttrString(fn, "__dict__");
  PyObject *copy = theirs && PyDict_CheckExact(theirs) ? PyDict_Copy(theirs) : NULL;
  Py_XDECREF(theirs);
  PyErr_Clear();
  return copy;
}

PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name) {
  if (!PyCallable_Check(fn))
    return trace_refuse(DG_BAD_ARGUMENT, "write @trace or @trace(input_specs=[…]) above the function",
                        "trace needs a function, not %s", Py_TYPE(fn)->tp_name);
  PyObject *own_name = name && name != Py_None ? Py_NewRef(name) : PyObject_GetAttrString(fn, "__name__");
  if (!own_name || !PyUnicode_Check(own_name)) {
    PyErr_Clear();
    Py_XSETREF(own_name, PyUnicode_FromString("kernel"));
  }
  struct kernel *k = own_name ? PyObject_GC_New(struct kernel, kernel_type) : NULL;
  if (!k) {
    Py_XDECREF(own_name);
    return NULL;
  }
  if (Py_IS_TYPE(fn, kernel_type)) /* trace(trace(f)) */
    fn = ((struct kernel *)fn)->fn;
  k->fn = Py_NewRef(fn);
  k->dict = copy_attributes(fn);
  k->name = own_name;
  k->input_specs = specs && specs != Py_None ? Py_NewRef(specs) : NULL;
  k->args = k->kw = k->code = k->grid = k->launched = NULL;
  k->of = NULL;
  k->nki = 0;
  PyObject_GC_Track((PyObject *)k);
  return (PyObject *)k;
}

/* Returns a new Kernel.  In a job it is added to the kernels that were found. */
static PyObject *make_and_register(PyObject *fn, PyObject *specs, PyObject *name) {
  PyObject *k = kernel_make(fn, specs, name);
  if (k && program_now && program_now->found && PyList_Append(program_now->found, k) < 0)
    Py_CLEAR(k);
  return k;
}

/* trace(f), @trace, @trace(input_specs=…, name=…), @trace(backend=…) */
static PyObject *decorate(PyObject *options, PyObject *fn) {
  return make_and_register(fn, PyTuple_GET_ITEM(options, 0), PyTuple_GET_ITEM(options, 1));
}
static PyMethodDef decorate_def = {"trace", decorate, METH_O, NULL};

static PyObject *trace_decorator(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"func", "input_specs", "name", "backend", NULL};
  PyObject *fn = NULL, *specs = Py_None, *name = Py_None, *backend = NULL;
  (void)self;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|O$OOO:trace", names, &fn, &specs, &name, &backend))
    return NULL;
  if (backend && backend != Py_None) {
    const char *b = PyUnicode_Check(backend) ? PyUnicode_AsUTF8(backend) : "";
    if (!b || (strcmp(b, "hlo") && strcmp(b, "nkigen") && strcmp(b, "cpu")))
      return trace_refuse(DG_BAD_ARGUMENT, "use \"hlo\" or \"nkigen\"", "unknown backend %R", backend);
  }
  if (fn && fn != Py_None)
    return make_and_register(fn, specs, name);
  PyObject *options = PyTuple_Pack(2, specs, name);
  PyObject *r = options ? PyCFunction_New(&decorate_def, options) : NULL;
  Py_XDECREF(options);
  return r;
}

PyObject *kernels_nki(PyObject *self, PyObject *args) {
  PyObject *fn;
  int generation;
  (void)self;
  if (!PyArg_ParseTuple(args, "Oi:nki_kernel", &fn, &generation))
    return NULL;
  PyObject *k = make_and_register(fn, NULL, NULL);
  if (k)
    ((struct kernel *)k)->nki = generation;
  return k;
}

static PyObject *call_grid(const char *function, PyObject *a, PyObject *b) {
  PyObject *module = PyImport_ImportModule("nkx.nki_grid");
  PyObject *r = module ? PyObject_CallMethod(module, function, "OO", a, b) : NULL;
  Py_XDECREF(module);
  return r;
}

/* kernel.with_schedule(schedule): the same kernel, launched with a schedule. */
static PyObject *kernel_with_schedule(PyObject *self, PyObject *schedule) {
  if (!((struct kernel *)self)->nki)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "only an @nki.jit kernel has a schedule");
  return call_grid("scheduled", self, schedule);
}

/* kernel[grid]: the same kernel, launched with a grid. */
static PyObject *kernel_launch(PyObject *self, PyObject *grid) {
  struct kernel *k = (struct kernel *)self;
  if (!k->nki)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "only an @nki.jit kernel is launched with a grid");
  if (PyLong_Check(grid) && PyLong_AsLong(grid) == 1) /* one core, as without a grid */
    return Py_NewRef(self);
  PyErr_Clear();
  grid = k->grid ? call_grid("relaunched", k->grid, grid) : Py_NewRef(grid);
  if (!grid)
    return NULL;
  struct kernel *other = (struct kernel *)kernel_make(k->fn, NULL, k->name);
  if (!other) {
    Py_DECREF(grid);
    return NULL;
  }
  other->nki = k->nki;
  other->grid = grid;
  other->of = (struct kernel *)Py_NewRef((PyObject *)(k->of ? k->of : k));
  return (PyObject *)other;
}

bool kernels_init(PyObject *module) {
  static PyMethodDef methods[] = {
      {"specialize", PYFUNC(kernel_specialize), METH_VARARGS | METH_KEYWORDS,
       "Traces the kernel with these arguments; arrays become its inputs."},
      {"to_mlir", PYFUNC(kernel_to_mlir), METH_VARARGS | METH_KEYWORDS, "The kernel as linalg on tensors."},
      {"with_schedule", kernel_with_schedule, METH_O,
       "The kernel with a schedule: [(after, before or [before, …]), …]."},
      {"trace", PYFUNC(kernel_trace), METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Marks a function as a kernel."},
      {NULL, NULL, 0, NULL}};
  static PyGetSetDef getset[] = {{"__wrapped__", kernel_get, NULL, NULL, (void *)0},
                                 {"__name__", kernel_get, NULL, NULL, (void *)1},
                                 {"input_specs", kernel_get, NULL, NULL, (void *)2},
                                 {"__traced__", kernel_traced, NULL, NULL, NULL},
                                 {"__doc__", kernel_doc, NULL, NULL, NULL},
                                 {"func", kernel_get, NULL, NULL, (void *)0},
                                 {"generation", kernel_get_generation, NULL, NULL, NULL},
                                 {"grid", kernel_get, NULL, NULL, (void *)3},
                                 {"_code", kernel_get_code, kernel_set_code, NULL, NULL},
                                 {NULL, NULL, NULL, NULL, NULL}};
  static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(struct kernel, dict), READONLY, NULL},
                                  {NULL, 0, 0, 0, NULL}};
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, kernel_dealloc}, {Py_tp_members, members},  {Py_tp_traverse, kernel_traverse},
      {Py_tp_clear, kernel_clear},     {Py_tp_call, kernel_call}, {Py_mp_subscript, kernel_launch},
      {Py_tp_methods, methods},        {Py_tp_getset, getset},    {0, NULL}};
  static PyType_Spec spec = {.name = "nkx.Kernel",
                             .basicsize = sizeof(struct kernel),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  static PyMethodDef trace_def = {"trace", PYFUNC(trace_decorator), METH_VARARGS | METH_KEYWORDS,
                                  "Marks a function as a kernel."};
  kernel_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  PyObject *f = PyCFunction_New(&trace_def, NULL);
  bool ok = kernel_type && f && PyModule_AddObjectRef(module, "Kernel", (PyObject *)kernel_type) == 0 &&
            PyModule_AddObjectRef(module, "trace", f) == 0;
  Py_XDECREF(f);
  return ok;
}
