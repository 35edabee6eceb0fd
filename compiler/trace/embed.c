/* embed: starts CPython inside the compiler's process.
 *
 * The module path has only Debian's standard library, the venv's site-packages and this project's modules.  The
 * environment and the site module are not read.  Modules that kernels often import are imported here, once.  They are
 * excluded from garbage collection, so that forked children share their pages.
 */
#include <assert.h>
#include <dirent.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "trace/array.h"
#include "trace/module.h"
#include "trace/trace.h"

/* Directories of Debian's python3.11. */
static const char *const stdlib[] = {"/usr/lib/python311.zip", "/usr/lib/python3.11",
                                     "/usr/lib/python3.11/lib-dynload"};

static enum status add_path(PyConfig *config, const char *path, struct error *err) {
  wchar_t *wide = Py_DecodeLocale(path, NULL);
  PyStatus st = wide ? PyWideStringList_Append(&config->module_search_paths, wide) : PyStatus_NoMemory();
  PyMem_RawFree(wide);
  return PyStatus_Exception(st) ? fail(err, ST_NOMEM, "python path %s", path) : ST_OK;
}

static enum status start_python(const char *python_dir, const char *site_dir, struct error *err) {
  PyPreConfig pre;
  PyConfig config;
  enum status st = ST_OK;
  PyPreConfig_InitIsolatedConfig(&pre);
  pre.utf8_mode = 1;
  if (PyStatus_Exception(Py_PreInitialize(&pre)) || PyImport_AppendInittab("_nkx", PyInit__nkx) < 0)
    return fail(err, ST_BUG, "python: pre-initialization failed");
  PyConfig_InitIsolatedConfig(&config);
  config.site_import = 0;
  config.write_bytecode = 0;
  config.module_search_paths_set = 1;
  config.install_signal_handlers = 0;
  for (size_t i = 0; !st && i < sizeof stdlib / sizeof *stdlib; i++)
    st = add_path(&config, stdlib[i], err);
  if (!st)
    st = add_path(&config, site_dir, err);
  if (!st)
    st = add_path(&config, python_dir, err);
  PyStatus ps = st ? PyStatus_Ok() : PyConfig_SetBytesString(&config, &config.program_name, "/usr/bin/python3.11");
  if (!st && !PyStatus_Exception(ps))
    ps = Py_InitializeFromConfig(&config);
  if (!st && PyStatus_Exception(ps))
    st = fail(err, ST_BUG, "python: %s", ps.err_msg ? ps.err_msg : "initialization failed");
  PyConfig_Clear(&config);
  return st;
}

/* Returns a failure with the text of the pending exception, for the log. */
static enum status fail_python(struct error *err, const char *what) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyErr_NormalizeException(&type, &exc, &tb);
  PyObject *s = exc ? PyObject_Str(exc) : NULL;
  const char *text = s ? PyUnicode_AsUTF8(s) : NULL;
  enum status st = fail(err, ST_BUG, "python: %s: %s", what, text ? text : "?");
  PyErr_Clear();
  Py_XDECREF(s);
  Py_XDECREF(type);
  Py_XDECREF(exc);
  Py_XDECREF(tb);
  return st;
}

/* Modules that kernels import, and those that the tracer uses while a job runs. */
static const char *const modules[] = {"numpy",
                                      "ml_dtypes",
                                      "inspect",
                                      "linecache",
                                      "warnings",
                                      "traceback",
                                      "math",
                                      "functools",
                                      "itertools",
                                      "typing",
                                      "dataclasses",
                                      "random",
                                      "collections",
                                      "_nkx",
                                      "nkx",
                                      "nkx.annotations",
                                      "nkx.device",
                                      "nkx.files",
                                      "nkx.half_typed",
                                      "nkx.mainguard",
                                      "nkx.places",
                                      "nkx.nki_ast",
                                      "ast",
                                      "nkipy",
                                      "nkipy.core.compile",
                                      "nkipy.core.trace",
                                      "nkipy.core.knob",
                                      "nkipy.core.ops",
                                      "nkipy.core.tensor_apis",
                                      "nkipy.core.typing",
                                      "nkipy.core.nki_op",
                                      "nkipy.runtime",
                                      "nkipy.core.language",
                                      "nkipy.distributed.collectives",
                                      "neuronxcc.nki.language",
                                      "nkigen",
                                      "nkigen.apis",
                                      "nkipy_kernelgen",
                                      "nkipy_kernelgen.apis",
                                      "numpy.linalg",
                                      "numpy.random"};

/* A program that ends its process would lose the diagnostics, so it gets a SystemExit instead.  For SIGPROF see
 * trace.h. */
static const char *const setup = "import warnings, os, posix, signal, sys, _nkx\n"
                                 "signal.signal(signal.SIGPROF, _nkx.stop_job)\n"
                                 "warnings.showwarning = _nkx.show_warning\n"
                                 "def _exit(status=0): raise SystemExit(status)\n"
                                 "os._exit = posix._exit = os.abort = posix.abort = _exit\n"
                                 "sys.setrecursionlimit(1000)\n";

static bool one_thread(void) {
  DIR *d = opendir("/proc/self/task");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.';
  if (d)
    closedir(d);
  return n == 1;
}

static bool freeze(void) {
  PyObject *gc = PyImport_ImportModule("gc");
  PyObject *r = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
  Py_XDECREF(r);
  r = gc ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
  Py_XDECREF(r);
  Py_XDECREF(gc);
  return r;
}

/* Zeroes the memory of arrays that the source makes outside of its kernels. */
static bool use_zeroed_memory(void) {
  PyObject *before = array_enter_loop(NULL);
  Py_XDECREF(before);
  return before;
}

enum status trace_init(const char *python_dir, const char *site_dir, struct error *err) {
  static const char *const threads[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"};
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
    if (setenv(threads[i], "1", 1) != 0)
      return fail(err, ST_NOMEM, "setenv: %m");
  enum status st = start_python(python_dir, site_dir, err);
  if (st)
    return st;
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    PyObject *m = PyImport_ImportModule(modules[i]);
    if (!m)
      return fail_python(err, modules[i]);
    Py_DECREF(m);
  }
  if (!module_ready() || !use_zeroed_memory())
    return fail_python(err, "numpy's C interface");
  if (PyRun_SimpleString(setup) != 0)
    return fail(err, ST_BUG, "python: setup failed");
  if (!freeze())
    return fail_python(err, "gc.freeze");
  if (!one_thread())
    return fail(err, ST_BUG, "python: more than one thread after start");
  return ST_OK;
}

void trace_warn_before_cpu_limit(int cpu_s) {
  const int64_t at_us = cpu_s > 4 ? (cpu_s - 2) * INT64_C(1000000) : cpu_s * INT64_C(750000);
  int64_t left_us = at_us - clock_cpu_us();
  if (left_us < 1) /* 0 would be no timer */
    left_us = 1;
  const struct itimerval t = {.it_interval = {.tv_sec = 1}, .it_value = {left_us / 1000000, left_us % 1000000}};

  assert(cpu_s > 0);
  setitimer(ITIMER_PROF, &t, NULL);
}

static void seed_module(const char *module, uint64_t seed) {
  PyObject *m = PyImport_ImportModule(module);
  PyObject *r = m ? PyObject_CallMethod(m, "seed", "K", (unsigned long long)(seed & 0xffffffff)) : NULL;
  PyErr_Clear();
  Py_XDECREF(r);
  Py_XDECREF(m);
}

void trace_after_fork(uint64_t seed) {
  PyOS_AfterFork_Child();
  seed_module("random", seed);
  seed_module("numpy.random", seed);
}
