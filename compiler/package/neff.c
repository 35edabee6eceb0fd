/* neff: NEFF files for Python: simulation packages as programs of the simulated machine, and any NEFF on a Neuron device.
 *
 * A device, its models and the process's other threads share one interpreter lock; it is released while a model runs.
 */
#include "package/package.h"

#include <string.h>

#include "driver/entry.h"
#include "driver/job.h"
#include "neff/device.h"
#include "neff/nrt.h"
#include "neff/package.h"
#include "trace/inspect.h"

#define DEVICE_CAPSULE "nkx.device"
#define MODEL_CAPSULE "nkx.model"

/* ---- simulation packages ----------------------------------------------------------------------------------------- */

static enum status read_package(struct ir *ir, const void *bytes, size_t n, struct arena *a, struct diags *ds,
                                struct neff_opened *x, struct trace_kernel **k, MlirModule *module) {
  struct error err = {0};
  struct neff neff;
  struct job job;
  const char *stage;
  enum status st = neff_read(a, bytes, n, NEFF_LIMITS, &neff, &err);
  if (!st)
    st = neff_package_open(a, &neff, x, &err);
  if (st) {
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "%s", err.text);
    return st;
  }
  job_init(&job);
  job.source = x->text;
  job.source_len = x->text_len;
  job.filename = "program.mlir";
  job.language = LANG_MLIR;
  job.target = x->target;
  job.package = x;
  return entry_read_nisa(ir, a, &job, ds, k, module, &stage);
}

/* package(bytes): {"program": for simulate and profile, "name", "target", "inputs", "outputs"} of a simulation package. */
static PyObject *package(PyObject *self, PyObject *args) {
  const char *bytes;
  Py_ssize_t n;
  struct arena a;
  struct diags ds;
  struct neff_opened x;
  struct trace_kernel *k;
  MlirModule module;
  PyObject *r = NULL;
  struct ir *ir;
  (void)self;
  if (!PyArg_ParseTuple(args, "y#:package", &bytes, &n) || !(ir = package_ir()))
    return NULL;
  arena_init(&a);
  diags_init(&ds, &a);
  if (read_package(ir, bytes, (size_t)n, &a, &ds, &x, &k, &module)) {
    package_raise(&ds, "the simulation package cannot be loaded:");
  } else {
    PyObject *program = package_decode(module, k->name);
    if (program)
      r = Py_BuildValue("{s:N,s:s,s:s,s:N,s:N}", "program", program, "name", k->name, "target", target_name(x.target),
                        "inputs", inspect_tensors(k->inputs, k->n_inputs), "outputs",
                        inspect_tensors(k->outputs, k->n_outputs));
    mlirModuleDestroy(module);
  }
  arena_clear(&a);
  return r;
}

/* neff_is_package(bytes): whether the NEFF is a simulation package. */
static PyObject *neff_is_package(PyObject *self, PyObject *args) {
  const char *bytes;
  Py_ssize_t n;
  struct neff_header h;
  struct error err = {0};
  (void)self;
  if (!PyArg_ParseTuple(args, "y#:neff_is_package", &bytes, &n))
    return NULL;
  if (neff_header_get(bytes, (size_t)n, &h, &err))
    return PyErr_Format(PyExc_ValueError, "%s", err.text);
  return PyBool_FromLong((h.features & NEFF_FEATURE_SIMULATION) != 0);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* A model keeps its device; device NULL: it was closed. */
struct py_device {
  struct device *device;
};
struct py_model {
  PyObject *owner; /* the capsule of the device */
  struct device_model *model;
};

static struct py_device *device_of(PyObject *capsule) {
  struct py_device *d = PyCapsule_GetPointer(capsule, DEVICE_CAPSULE);
  if (d && !d->device) {
    PyErr_SetString(PyExc_RuntimeError, "the Neuron runtime has been closed");
    return NULL;
  }
  return d;
}

static void clear_device(PyObject *capsule) {
  struct py_device *d = PyCapsule_GetPointer(capsule, DEVICE_CAPSULE);
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  device_close(d->device, &ds); /* what it says has nobody to hear it */
  arena_clear(&a);
  PyMem_Free(d);
}

static void clear_model(PyObject *capsule) {
  struct py_model *m = PyCapsule_GetPointer(capsule, MODEL_CAPSULE);
  const struct py_device *d = PyCapsule_GetPointer(m->owner, DEVICE_CAPSULE);
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  if (d->device && m->model)
    device_unload(m->model, &ds);
  arena_clear(&a);
  Py_DECREF(m->owner);
  PyMem_Free(m);
}

/* neuron_open(path of libnrt or None, cores or None): (device, {"library", "version", "stand_in", "cores"}). */
static PyObject *neuron_open(PyObject *self, PyObject *args) {
  struct device_options o;
  struct arena a;
  struct diags ds;
  PyObject *r = NULL;
  (void)self;
  if (!PyArg_ParseTuple(args, "zz:neuron_open", &o.library, &o.cores))
    return NULL;
  struct py_device *d = PyMem_Calloc(1, sizeof *d);
  if (!d)
    return PyErr_NoMemory();
  arena_init(&a);
  diags_init(&ds, &a);
  if (device_open(&o, &ds, &d->device)) {
    package_raise(&ds, "there is no Neuron device:");
    PyMem_Free(d);
  } else {
    const struct device_about *about = device_about(d->device);
    r = Py_BuildValue("N{s:s,s:s,s:O,s:i}", PyCapsule_New(d, DEVICE_CAPSULE, clear_device), "library", about->path,
                      "version", about->version, "stand_in", about->is_stand_in ? Py_True : Py_False, "cores",
                      about->cores);
  }
  arena_clear(&a);
  return r;
}

/* neuron_close(device): releases everything; models cannot be used any more. */
static PyObject *neuron_close(PyObject *self, PyObject *args) {
  PyObject *capsule, *r = NULL;
  struct py_device *d;
  struct arena a;
  struct diags ds;
  (void)self;
  if (!PyArg_ParseTuple(args, "O:neuron_close", &capsule) || !(d = device_of(capsule)))
    return NULL;
  arena_init(&a);
  diags_init(&ds, &a);
  if (device_close(d->device, &ds))
    package_raise(&ds, "the Neuron runtime was closed with errors:");
  else
    r = Py_NewRef(Py_None);
  d->device = NULL;
  arena_clear(&a);
  return r;
}

/* The tensors of a model, as (name, is_output, dtype, shape). */
static PyObject *list_ios(const struct device_model *m) {
  const struct device_io *ios;
  const int n = device_ios(m, &ios);
  PyObject *list = PyList_New(n);
  for (int k = 0; list && k < n; k++) {
    PyObject *shape = PyTuple_New(ios[k].rank);
    for (int i = 0; shape && i < ios[k].rank; i++)
      PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(ios[k].dims[i]));
    PyObject *one = Py_BuildValue("sOsN", ios[k].name, ios[k].is_output ? Py_True : Py_False,
                                  dtype_numpy_name(nrt_dtype_to(ios[k].type)), shape);
    if (one)
      PyList_SET_ITEM(list, k, one);
    else
      Py_CLEAR(list);
  }
  return list;
}

/* neuron_load(device, bytes, core, (rank, size) or None): (model, [(name, is_output, dtype, shape), …]). */
static PyObject *neuron_load(PyObject *self, PyObject *args) {
  PyObject *capsule, *group, *r = NULL;
  const char *bytes;
  Py_ssize_t n;
  int core;
  struct device_group g;
  struct py_device *d;
  struct arena a;
  struct diags ds;
  (void)self;
  if (!PyArg_ParseTuple(args, "Oy#iO:neuron_load", &capsule, &bytes, &n, &core, &group) || !(d = device_of(capsule)))
    return NULL;
  if (group != Py_None && !PyArg_ParseTuple(group, "II", &g.rank, &g.size))
    return NULL;
  struct py_model *m = PyMem_Calloc(1, sizeof *m);
  if (!m)
    return PyErr_NoMemory();
  arena_init(&a);
  diags_init(&ds, &a);
  if (device_load(d->device, bytes, (size_t)n, core, group == Py_None ? NULL : &g, &ds, &m->model)) {
    package_raise(&ds, "the NEFF cannot be loaded:");
    PyMem_Free(m);
  } else {
    m->owner = Py_NewRef(capsule);
    r = Py_BuildValue("NN", PyCapsule_New(m, MODEL_CAPSULE, clear_model), list_ios(m->model));
  }
  arena_clear(&a);
  return r;
}

/* ---- executions -------------------------------------------------------------------------------------------------- */

/* The arrays of an execution, and their tensors. */
struct binding {
  int n;
  struct device_argument *v;
  PyArrayObject **arrays;
};

/* Reads [(name, array in C order), …]; false with an exception. */
static bool read_binding(struct arena *a, PyObject *list, struct binding *b) {
  b->n = (int)PyList_GET_SIZE(list);
  b->v = arena_new_array(a, struct device_argument, (size_t)b->n + 1);
  b->arrays = arena_new_array(a, PyArrayObject *, (size_t)b->n + 1);
  memset(b->v, 0, (size_t)b->n * sizeof *b->v);
  for (int k = 0; k < b->n; k++) {
    PyObject *o;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, k), "sO", &b->v[k].name, &o))
      return false;
    if (!PyArray_Check(o) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)o)) {
      PyErr_SetString(PyExc_TypeError, "neuron_run: an argument is not an array in C order");
      return false;
    }
    b->arrays[k] = (PyArrayObject *)o;
  }
  return true;
}

static size_t bytes_of(const struct binding *b, int k) {
  return (size_t)PyArray_NBYTES(b->arrays[k]);
}

/* An output has the tensor of the input that is the same array. */
static enum status make_tensors(struct device *d, int core, const struct binding *in, struct binding *out,
                                struct diags *ds) {
  enum status st = ST_OK;
  for (int k = 0; k < in->n && !st; k++) {
    st = device_tensor_new(d, core, bytes_of(in, k), in->v[k].name, ds, &in->v[k].tensor);
    if (!st)
      st = device_tensor_write(in->v[k].tensor, 0, PyArray_DATA(in->arrays[k]), bytes_of(in, k), ds);
  }
  for (int k = 0; k < out->n && !st; k++) {
    for (int i = 0; i < in->n; i++)
      if (in->arrays[i] == out->arrays[k])
        out->v[k].tensor = in->v[i].tensor;
    if (!out->v[k].tensor)
      st = device_tensor_new(d, core, bytes_of(out, k), out->v[k].name, ds, &out->v[k].tensor);
  }
  return st;
}

static void free_tensors(const struct binding *in, const struct binding *out) {
  for (int k = 0; k < out->n; k++) {
    bool is_input = false;
    for (int i = 0; i < in->n; i++)
      is_input |= in->v[i].tensor == out->v[k].tensor;
    if (!is_input)
      device_tensor_free(out->v[k].tensor);
  }
  for (int k = 0; k < in->n; k++)
    device_tensor_free(in->v[k].tensor);
}

static enum status execute(struct device *d, struct device_model *m, const struct binding *in, struct binding *out,
                           const char *profile, int64_t *ns, struct diags *ds) {
  enum status st = make_tensors(d, device_core(m), in, out, ds);
  if (!st && profile)
    st = device_profile_start(m, profile, ds);
  if (!st) {
    st = device_execute(m, in->n, in->v, out->n, out->v, ds, ns);
    const enum status stopped = profile ? device_profile_stop(m, profile, ds) : ST_OK;
    st = st ? st : stopped;
  }
  for (int k = 0; k < out->n && !st; k++)
    st = device_tensor_read(out->v[k].tensor, 0, PyArray_DATA(out->arrays[k]), bytes_of(out, k), ds);
  free_tensors(in, out);
  return st;
}

/* neuron_run(model, inputs, outputs, file for the profile or None): executes the model on lists of (name, array), fills the
 * outputs, and returns the nanoseconds of the runtime's call.  An array that is in both lists is written in place. */
static PyObject *neuron_run(PyObject *self, PyObject *args) {
  PyObject *capsule, *inputs, *outputs, *r = NULL;
  const char *profile;
  struct binding in, out;
  const struct py_model *m;
  struct py_device *d;
  struct arena a;
  struct diags ds;
  int64_t ns = 0;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!O!z:neuron_run", &capsule, &PyList_Type, &inputs, &PyList_Type, &outputs, &profile) ||
      !(m = PyCapsule_GetPointer(capsule, MODEL_CAPSULE)) || !(d = device_of(m->owner)))
    return NULL;
  arena_init(&a);
  diags_init(&ds, &a);
  if (read_binding(&a, inputs, &in) && read_binding(&a, outputs, &out)) {
    enum status st;
    Py_BEGIN_ALLOW_THREADS;
    st = execute(d->device, m->model, &in, &out, profile, &ns, &ds);
    Py_END_ALLOW_THREADS;
    r = st ? package_raise(&ds, "the NEFF cannot be executed:") : PyLong_FromLongLong(ns);
  }
  arena_clear(&a);
  return r;
}

PyMethodDef package_neff_methods[] = {
    {"package", package, METH_VARARGS, "Loads a simulation package."},
    {"neff_is_package", neff_is_package, METH_VARARGS, "Whether a NEFF is a simulation package."},
    {"neuron_open", neuron_open, METH_VARARGS, "Initialises the Neuron runtime."},
    {"neuron_close", neuron_close, METH_VARARGS, "Closes it."},
    {"neuron_load", neuron_load, METH_VARARGS, "Loads a NEFF on a core."},
    {"neuron_run", neuron_run, METH_VARARGS, "Executes a model."},
    {NULL, NULL, 0, NULL}};
