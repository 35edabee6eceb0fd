/* module: `_nkxc`, the compiler as a Python extension: compiles and runs kernels that were traced.
 *
 * It is apart from _nkx because it needs MLIR, which takes a tenth of a second to load and set up: it is imported only when
 * a kernel is compiled or run (python/nkx/package.py).  A trace is passed from one module to the other in a capsule: both
 * are linked from the same objects.  Every function holds the interpreter's lock, which also guards the one MLIR context;
 * only a program runs without it.
 */
#include "trace/python.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "driver/check.h"
#include "driver/compile.h"
#include "driver/entry.h"
#include "driver/opt.h"
#include "driver/pipeline.h"
#include "hlo/passes.h"
#include "linalg/lower.h"
#include "package/package.h"
#include "passes/pass.h"
#include "sim/decode.h"
#include "sim/record.h"
#include "sim/report.h"
#include "sim/run.h"
#include "trace/inspect.h"
#include "trace/module.h"
#include "trace/operand.h"

enum { TEXT_MAX = 256 << 20 };

#define PROGRAM_CAPSULE "nkx.program"

static struct ir ir;
static bool is_started;
static PyObject *error_class; /* CompileError, a RuntimeError */

static bool start(void) {
  struct error err = {0};
  if (!is_started && ir_init(&ir, &err)) {
    PyErr_Format(PyExc_RuntimeError, "MLIR could not be set up: %s", err.text);
    return false;
  }
  return is_started = true;
}

struct ir *package_ir(void) {
  return start() ? &ir : NULL;
}

void *package_raise(const struct diags *ds, const char *what) {
  PyObject *text = PyUnicode_FromString(what);
  for (int i = 0; text && i < ds->n; i++) {
    const struct diag *d = &ds->v[i];
    if (d->severity == DS_ERROR) {
      PyObject *line = PyUnicode_FromFormat("%U\n  %s [%s]", text, d->message, diag_code_name(d->code));
      Py_SETREF(text, line);
    }
  }
  if (text)
    PyErr_SetObject(error_class, text);
  Py_XDECREF(text);
  return NULL;
}

/* ---- programs -------------------------------------------------------------------------------------------------- */

static void unload(PyObject *capsule) {
  check_unload(PyCapsule_GetPointer(capsule, PROGRAM_CAPSULE));
}

static PyObject *wrap_program(struct check_program *p, const struct trace_kernel *k) {
  PyObject *capsule = PyCapsule_New(p, PROGRAM_CAPSULE, unload);
  if (!capsule) {
    check_unload(p);
    return NULL;
  }
  return Py_BuildValue("{s:N,s:s,s:N,s:N}", "program", capsule, "name", k->name, "inputs",
                       inspect_tensors(k->inputs, k->n_inputs), "outputs", inspect_tensors(k->outputs, k->n_outputs));
}

/* The linalg of a trace, or MLIR text.  With a function's name the text is taken as it is; otherwise it must be on tensors,
 * and its signature is read. */
static enum status read_program(PyObject *o, const char *function, struct arena *a, struct diags *ds,
                                struct trace_kernel **k, MlirModule *module) {
  struct job job;
  Py_ssize_t len = 0;
  if (PyCapsule_CheckExact(o)) {
    *k = PyCapsule_GetPointer(o, TRACE_CAPSULE);
    enum status st = *k ? hlo_verify((*k)->module, ds) : ST_INPUT;
    return st ? st : linalg_from_hlo_plain(&ir, hlo_expanded(a, (*k)->module), ds, module);
  }
  job_init(&job);
  job.filename = "module.mlir";
  job.source = PyUnicode_AsUTF8AndSize(o, &len);
  job.source_len = (size_t)len;
  if (!job.source)
    return ST_INPUT;
  if (!function)
    return entry_read_mlir(&ir, a, &job, ds, k, module);
  *k = arena_new(a, struct trace_kernel);
  (*k)->name = function;
  return ir_parse(&ir, job.source, job.source_len, job.filename, a, ds, module);
}

/* load(trace or MLIR text, function or None): {"program", "name", "inputs", "outputs"}.  A text whose function is named
 * can be of any stage before NISA; it gives no inputs and outputs: the caller knows them. */
static PyObject *load(PyObject *self, PyObject *args) {
  PyObject *o, *r = NULL;
  const char *function;
  (void)self;
  if (!PyArg_ParseTuple(args, "Oz:load", &o, &function) || !start())
    return NULL;
  struct check_program *p = NULL;
  struct trace_kernel *k = NULL;
  MlirModule module = {NULL};
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = read_program(o, function, &a, &ds, &k, &module);
  if (!st)
    st = check_load(&ir, module, k->module ? k->module->name : k->name, &a, &ds, &p);
  if (!st)
    r = wrap_program(p, k);
  else if (!PyErr_Occurred())
    package_raise(&ds, "the kernel cannot be compiled for this processor:");
  if (!mlirModuleIsNull(module))
    mlirModuleDestroy(module);
  arena_clear(&a);
  return r;
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

static bool read_array(PyObject *o, struct trace_array *out) {
  if (!PyArray_Check(o) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)o)) {
    PyErr_SetString(PyExc_TypeError, "run: an argument is not an array in C order");
    return false;
  }
  PyArrayObject *x = (PyArrayObject *)o;
  out->shape.dtype = dtype_from_num(PyArray_TYPE(x));
  out->shape.rank = PyArray_NDIM(x);
  out->shape.dims = PyArray_DIMS(x);
  out->data = PyArray_DATA(x);
  return true;
}

/* The arrays of a list, which keeps owning them; false with an exception. */
static bool read_arrays(struct arena *a, PyObject *list, int *n, struct trace_array **out) {
  *n = (int)PyList_GET_SIZE(list);
  *out = arena_new_array(a, struct trace_array, (size_t)*n);
  for (int i = 0; i < *n; i++)
    if (!read_array(PyList_GET_ITEM(list, i), &(*out)[i]))
      return false;
  return true;
}

/* run(program, inputs, outputs): fills the arrays of the list `outputs`.  All arrays are in C order and have the shapes and
 * dtypes that load returned. */
static PyObject *run(PyObject *self, PyObject *args) {
  PyObject *capsule, *inputs, *outputs;
  struct trace_array *in, *out;
  int n_in, n_out;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!O!:run", &capsule, &PyList_Type, &inputs, &PyList_Type, &outputs))
    return NULL;
  const struct check_program *p = PyCapsule_GetPointer(capsule, PROGRAM_CAPSULE);
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = ST_INPUT;
  if (p && read_arrays(&a, inputs, &n_in, &in) && read_arrays(&a, outputs, &n_out, &out)) {
    void **to = arena_new_array(&a, void *, (size_t)n_out);
    for (int i = 0; i < n_out; i++)
      to[i] = out[i].data;
    Py_BEGIN_ALLOW_THREADS;
    st = check_run(p, n_in, in, n_out, out, &a, &ds);
    for (int i = 0; !st && i < n_out; i++)
      memcpy(to[i], out[i].data, (size_t)hlo_shape_elements(&out[i].shape) * dtype_size(out[i].shape.dtype));
    Py_END_ALLOW_THREADS;
    if (st)
      package_raise(&ds, "the kernel could not be run:");
  }
  arena_clear(&a);
  return st ? NULL : Py_NewRef(Py_None);
}

/* ---- stages ---------------------------------------------------------------------------------------------------- */

static enum status give_frame(void *user, const char *json, size_t len) {
  PyObject *r = PyObject_CallFunction(user, "s#", json, (Py_ssize_t)len);
  Py_XDECREF(r);
  return r ? ST_OK : ST_DENIED;
}

/* stages(trace or None, job as JSON, function): calls function with each frame (driver/frames.h).  With a trace, which the
 * stages change, the job needs only target and stop_after; without one, it is a program in HLO or MLIR. */
static PyObject *stages(PyObject *self, PyObject *args) {
  PyObject *capsule, *function;
  const char *json;
  Py_ssize_t len;
  struct job job;
  struct error err = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "Os#O:stages", &capsule, &json, &len, &function))
    return NULL;
  struct trace_kernel *k = capsule == Py_None ? NULL : PyCapsule_GetPointer(capsule, TRACE_CAPSULE);
  if (PyErr_Occurred() || !start())
    return NULL;
  struct arena a;
  arena_init(&a);
  enum status st = job_parse(&a, json, (size_t)len, &job, &err);
  if (st || (!k && job.language == LANG_NKIPY))
    PyErr_Format(PyExc_ValueError, "stages: %s", st ? err.text : "Python is traced by _nkx");
  else
    st = k ? compile_traced(&ir, &job, k, give_frame, function, NULL) : compile_run(&ir, &job, give_frame, function);
  arena_clear(&a);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- the simulated machine --------------------------------------------------------------------------------------- */

#define SIMULATOR_CAPSULE "nkx.simulator"

/* A kernel's last stage, decoded; all of it is in the arena. */
struct simulator {
  struct arena arena;
  struct sim_program program;
};

static void clear_simulator(struct simulator *s) {
  arena_clear(&s->arena);
  free(s);
}

static void unload_simulator(PyObject *capsule) {
  clear_simulator(PyCapsule_GetPointer(capsule, SIMULATOR_CAPSULE));
}

/* Passes diagnostics on; the stages themselves are not wanted. */
static enum status give_diagnostic(void *user, const char *json, size_t len) {
  static const char start[] = "{\"frame\":\"diagnostic\"";
  return len > sizeof start && !memcmp(json, start, sizeof start - 1) ? give_frame(user, json, len) : ST_OK;
}

PyObject *package_decode(MlirModule module, const char *name) {
  struct simulator *s = calloc(1, sizeof *s);
  struct diags ds;
  if (!s)
    return PyErr_NoMemory();
  arena_init(&s->arena);
  diags_init(&ds, &s->arena);
  PyObject *r = NULL;
  if (sim_decode(mlirModuleGetOperation(module), name, &s->arena, &ds, &s->program))
    package_raise(&ds, "the kernel cannot be simulated:");
  else
    r = PyCapsule_New(s, SIMULATOR_CAPSULE, unload_simulator);
  if (!r)
    clear_simulator(s);
  return r;
}

/* simulator(trace, job as JSON, function): the last stage as a program for `simulate`; None if a stage refuses.  Calls
 * function with the frames of diagnostics. */
static PyObject *simulator(PyObject *self, PyObject *args) {
  PyObject *capsule, *function, *r = NULL;
  const char *json;
  Py_ssize_t len;
  struct job job;
  struct error err = {0};
  struct arena a;
  MlirModule last;
  (void)self;
  if (!PyArg_ParseTuple(args, "Os#O:simulator", &capsule, &json, &len, &function))
    return NULL;
  struct trace_kernel *k = PyCapsule_GetPointer(capsule, TRACE_CAPSULE);
  if (!k || !start())
    return NULL;
  arena_init(&a);
  if (job_parse(&a, json, (size_t)len, &job, &err)) {
    PyErr_Format(PyExc_ValueError, "simulator: %s", err.text);
  } else {
    const enum status st = compile_traced(&ir, &job, k, give_diagnostic, function, &last);
    if (!mlirModuleIsNull(last)) {
      r = st || PyErr_Occurred() ? NULL : package_decode(last, k->module ? k->module->name : k->name);
      mlirModuleDestroy(last);
    }
  }
  arena_clear(&a);
  return r || PyErr_Occurred() ? r : Py_NewRef(Py_None);
}

/* Copies a result, which a pass may have narrowed, to the caller's array. */
static void copy_result(struct arena *a, const struct trace_array *from, const struct trace_array *to) {
  const enum dtype t = to->shape.dtype;
  const void *data = from->shape.dtype == t ? from->data : check_convert_array(a, from, t).data;
  memcpy(to->data, data, (size_t)hlo_shape_elements(&to->shape) * dtype_size(t));
}

static void add_fault(struct diags *ds, const struct sim_fault *f) {
  const char *place =
      f->loc ? arena_printf(ds->arena, "%s:%d:%d: ", f->loc->range.file, f->loc->range.line, f->loc->range.col) : "";
  diag_add(ds, DS_ERROR, DG_SIMULATION_FAULT, f->loc, "%s%s: %s%s%s", place, sim_fault_name(f->kind),
           f->instr ? f->instr->def->name : "", f->instr ? ": " : "", f->text);
}

static const int64_t no_limit = INT64_C(1) << 50;

/* Runs the program; `out` has the caller's arrays. */
static enum status simulate_on(const struct simulator *s, int n_in, const struct trace_array *in, int n_out,
                               const struct trace_array *out, struct sim_record *record, struct arena *a,
                               struct diags *ds) {
  const struct sim_options options = {.memory_max = no_limit, .record = record};
  struct trace_array *got = arena_dup(a, out, (size_t)n_out * sizeof *out);
  struct check_binding b;
  struct sim_fault fault = {0};
  enum status st = check_bind(&s->program, n_in, in, n_out, got, a, ds, &b);
  if (!st)
    st = sim_run(&s->program, b.args, b.results, &options, NULL, &fault);
  for (int i = 0; !st && i < n_out; i++)
    copy_result(a, &got[i], &out[i]);
  if (fault.kind)
    add_fault(ds, &fault);
  return st;
}

/* simulate(simulator, inputs, outputs): as run. */
static PyObject *simulate(PyObject *self, PyObject *args) {
  PyObject *capsule, *inputs, *outputs;
  struct trace_array *in, *out;
  int n_in, n_out;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!O!:simulate", &capsule, &PyList_Type, &inputs, &PyList_Type, &outputs))
    return NULL;
  const struct simulator *s = PyCapsule_GetPointer(capsule, SIMULATOR_CAPSULE);
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = ST_INPUT;
  if (s && read_arrays(&a, inputs, &n_in, &in) && read_arrays(&a, outputs, &n_out, &out)) {
    Py_BEGIN_ALLOW_THREADS;
    st = simulate_on(s, n_in, in, n_out, out, NULL, &a, &ds);
    Py_END_ALLOW_THREADS;
    if (st)
      package_raise(&ds, "the simulated machine cannot run the kernel:");
  }
  arena_clear(&a);
  return st ? NULL : Py_NewRef(Py_None);
}

/* Finds out when each instruction runs. */
static enum status find_profile(const struct simulator *s, enum target target, const struct sim_record *record,
                                struct arena *a, struct diags *ds, struct sim_profile *out) {
  const struct sim_time_options options = {.target = target, .record = record};
  struct sim_timeline *timeline = arena_new(a, struct sim_timeline);
  struct sim_fault fault = {0};
  enum status st = sim_time(&s->program, &options, a, timeline, &fault);
  if (st)
    add_fault(ds, &fault);
  else
    sim_profile_make(timeline, a, out);
  return st;
}

static PyObject *profile_texts(const struct sim_profile *p) {
  struct buf json, text, trace;
  PyObject *r = NULL;
  buf_init(&json, TEXT_MAX);
  buf_init(&text, TEXT_MAX);
  buf_init(&trace, TEXT_MAX);
  if (sim_report_json(p, NULL, &json) || sim_report_text(p, &text) || sim_report_trace(p, &trace))
    PyErr_SetString(PyExc_MemoryError, "the profile is too large");
  else
    r = Py_BuildValue("(sss)", buf_text(&json), buf_text(&text), buf_text(&trace));
  buf_clear(&json);
  buf_clear(&text);
  buf_clear(&trace);
  return r;
}

/* profile(simulator, inputs, outputs, target): runs the program like simulate.  Returns the texts of sim/report.h: the
 * profile as JSON, for a terminal, and the trace. */
static PyObject *profile(PyObject *self, PyObject *args) {
  PyObject *capsule, *inputs, *outputs, *r = NULL;
  struct trace_array *in, *out;
  int n_in, n_out, target;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!O!i:profile", &capsule, &PyList_Type, &inputs, &PyList_Type, &outputs, &target))
    return NULL;
  const struct simulator *s = PyCapsule_GetPointer(capsule, SIMULATOR_CAPSULE);
  struct sim_record record;
  struct sim_profile p;
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  if (s && read_arrays(&a, inputs, &n_in, &in) && read_arrays(&a, outputs, &n_out, &out)) {
    enum status st;
    Py_BEGIN_ALLOW_THREADS;
    sim_record_init(&record, s->program.n_streams, &a);
    st = simulate_on(s, n_in, in, n_out, out, &record, &a, &ds);
    if (!st)
      st = find_profile(s, (enum target)target, &record, &a, &ds, &p);
    Py_END_ALLOW_THREADS;
    r = st ? package_raise(&ds, "the simulated machine cannot run the kernel:") : profile_texts(&p);
  }
  arena_clear(&a);
  return r;
}

static PyObject *pipeline(PyObject *self, PyObject *unused) {
  size_t len;
  char *json = pipeline_describe(&pipeline_hlo, &len);
  PyObject *r = json ? PyUnicode_DecodeUTF8(json, (Py_ssize_t)len, "strict") : PyErr_NoMemory();
  (void)self, (void)unused;
  free(json);
  return r;
}

/* ---- single passes --------------------------------------------------------------------------------------------- */

static void put(MlirStringRef s, void *user) {
  if (buf_append(user, s.data, s.length)) {
    /* print asks buf_status */
  }
}

static PyObject *print(MlirModule module, bool is_generic) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  if (is_generic)
    mlirOpPrintingFlagsPrintGenericOpForm(flags);
  mlirOperationPrintWithFlags(mlirModuleGetOperation(module), flags, put, &b);
  mlirOpPrintingFlagsDestroy(flags);
  PyObject *r = buf_status(&b) ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(buf_text(&b), (Py_ssize_t)b.len, "replace");
  buf_clear(&b);
  return r;
}

static enum status run_list(MlirModule module, PyObject *list, enum target target, struct arena *a, struct diags *ds) {
  struct error err = {0};
  struct remarks remarks = {0};
  enum status st = ST_OK;
  for (Py_ssize_t i = 0; !st && i < PyList_GET_SIZE(list); i++) {
    const char *arg = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
    st = arg ? opt_run_pass(&ir, mlirModuleGetOperation(module), arg, target, a, ds, &remarks, &err) : ST_INPUT;
  }
  if (err.text[0] && !PyErr_Occurred())
    PyErr_SetString(PyExc_ValueError, err.text);
  return st;
}

/* passes(MLIR text, ["name=options", …], target, is_generic): the text after the last pass. */
static PyObject *passes(PyObject *self, PyObject *args) {
  PyObject *list, *r = NULL;
  const char *text;
  Py_ssize_t len;
  int target, is_generic;
  MlirModule module;
  (void)self;
  if (!PyArg_ParseTuple(args, "s#O!ip:passes", &text, &len, &PyList_Type, &list, &target, &is_generic) || !start())
    return NULL;
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = ir_parse(&ir, text, (size_t)len, "module.mlir", &a, &ds, &module);
  if (!st) {
    st = run_list(module, list, (enum target)target, &a, &ds);
    r = st ? NULL : print(module, is_generic);
    mlirModuleDestroy(module);
  }
  if (st && !PyErr_Occurred())
    package_raise(&ds, "the passes refuse the module:");
  arena_clear(&a);
  return r;
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "Compiles a trace or MLIR text for this processor."},
    {"run", run, METH_VARARGS, "Runs a program."},
    {"stages", stages, METH_VARARGS, "Takes a trace or a program in HLO or MLIR through the stages."},
    {"simulator", simulator, METH_VARARGS, "Compiles a trace for the simulated machine."},
    {"simulate", simulate, METH_VARARGS, "Runs a program of simulator."},
    {"profile", profile, METH_VARARGS, "Runs a program of simulator, and says how long it would take."},
    {"pipeline", pipeline, METH_NOARGS, "The stages as JSON."},
    {"passes", passes, METH_VARARGS, "Runs single passes on MLIR text."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_nkxc",
                                        .m_doc = "The compiler of nkx.",
                                        .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__nkxc(void);
PyMODINIT_FUNC PyInit__nkxc(void) {
  PyObject *m = PyModule_Create(&definition);
  error_class = m ? PyErr_NewException("nkx.CompileError", PyExc_RuntimeError, NULL) : NULL;
  if (m && error_class && module_ready() && dtype_init() && !PyModule_AddFunctions(m, package_neff_methods) &&
      PyModule_AddObjectRef(m, "CompileError", error_class) == 0)
    return m;
  Py_XDECREF(m);
  return NULL;
}
