/* Warming up: whatever is initialised lazily is initialised here, once.
 *
 * A kernel goes through the whole path with the numeric check on, which loads code generation as well.  The modules
 * of the standard library that kernels import are loaded too: it saves each job their cost, and those that need a
 * shared library would not find it in the jail.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <printf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "driver/compile.h"
#include "driver/paths.h"
#include "trace/trace.h"
#include "worker/worker.h"

static const char preload[] =
    "import importlib, gc\n"
    "for name in ('abc', 'argparse', 'array', 'ast', 'base64', 'bisect', 'cmath', 'collections', 'collections.abc',\n"
    "             'contextlib', 'copy', 'csv', 'ctypes', 'dataclasses', 'datetime', 'decimal', 'enum', 'fractions',\n"
    "             'functools', 'hashlib', 'heapq', 'inspect', 'io', 'itertools', 'json', 'logging', 'math', "
    "'numbers',\n"
    "             'operator', 'os', 'pathlib', 'pickle', 'pprint', 'random', 're', 'socket', 'statistics', 'string',\n"
    "             'struct', 'subprocess', 'sys', 'textwrap', 'threading', 'time', 'traceback', 'types', 'typing',\n"
    "             'typing_extensions', 'unittest', 'uuid', 'warnings', 'weakref'):\n"
    "    try:\n"
    "        importlib.import_module(name)\n"
    "    except ImportError:\n"
    "        pass\n"
    "del importlib, name\n";
static const char freeze[] = "gc.collect(); gc.freeze(); del gc\n";

/* As a job's JSON, but for its options. */
static const char *const kernels[] = {
    [WORKER_ANY_KERNEL] =
        "\"source\":\"import numpy as np\\n"
        "def warm(x, w, b):\\n"
        "    h = np.maximum(np.matmul(x, w) + b, 0)\\n"
        "    return np.exp(h - np.max(h, axis=-1, keepdims=True)) / np.sqrt(np.mean(h * h) + 1)\\n\","
        "\"inputs\":[{\"shape\":[64,32],\"dtype\":\"float32\"},{\"shape\":[32,48],\"dtype\":\"float32\"},"
        "{\"shape\":[48],\"dtype\":\"float32\"}]",
    [WORKER_LEAST_KERNEL] = "\"source\":\"import numpy as np\\ndef least(x):\\n    return x + 1\\n\","
                            "\"inputs\":[{\"shape\":[8,16],\"dtype\":\"float32\"}]",
};

/* Stands in front of glibc's: libquadmath, which NumPy's linear algebra brings, asks for a printf format of its own, and
 * from then on glibc formats everything in a way that is several times slower.  Told that there is no room, it does
 * without. */
__attribute__((visibility("default"))) int register_printf_type(printf_va_arg_function *take) {
  (void)take;
  return -1;
}

static int count_threads(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  if (!d)
    return 0;
  for (struct dirent *e; (e = readdir(d));)
    n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static enum status drop_frame(void *user, const char *json, size_t len) {
  (void)json;
  *(size_t *)user += len;
  return ST_OK;
}

/* Through job_parse, as every job. */
enum status worker_compile_kernel(struct ir *ir, enum worker_kernel which, bool is_checked, struct error *err) {
  const char *flag = is_checked ? "true" : "false";
  struct arena a;
  struct job job;
  size_t bytes = 0;

  arena_init(&a);
  job_init(&job);
  char *json = arena_printf(&a, "{%s,\"options\":{\"check\":%s,\"artifacts\":%s}}", kernels[which], flag, flag);
  enum status st = job_parse(&a, json, strlen(json), &job, err);
  if (!st && compile_run(ir, &job, drop_frame, &bytes)) /* not fatal: jobs then pay for what is still cold */
    log_warn("warm_up", "the warm-up kernel did not compile");
  arena_clear(&a);
  return st;
}

static enum status run_python(const char *code, struct error *err) {
  return PyRun_SimpleString(code) ? fail(err, ST_BUG, "Python refused the warm-up code") : ST_OK;
}

/* C++ reports "out of memory" by calling this; without it a failed allocation in MLIR would look like a crash. */
typedef void (*new_handler)(void);
new_handler cpp_set_new_handler(new_handler h) __asm__("_ZSt15set_new_handlerPFvvE");

static void out_of_memory(void) {
  _exit(EXIT_OOM);
}

enum status worker_warm_up(const struct worker_config *cfg, struct ir *ir, struct error *err) {
  enum status st = trace_init(cfg->python_dir, cfg->site_dir, err);
  if (!st)
    st = ir_init(ir, err);
  if (!st)
    st = run_python(preload, err);
  if (!st)
    st = worker_compile_kernel(ir, WORKER_ANY_KERNEL, true, err);
  if (!st)
    st = run_python(freeze, err);
  if (st)
    return st;
  cpp_set_new_handler(out_of_memory);
  malloc_trim(0);
  int threads = count_threads();
  return threads == 1 ? ST_OK
                      : fail(err, ST_BUG, "%d threads after warming up; a process that forks must have one", threads);
}

/* ---- configuration ------------------------------------------------------------------------------------------------
 */

/* dir/name made absolute, or NULL if there is no such thing; heap, lives as long as the process. */
static const char *resolve(const char *dir, const char *name) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", name) >= sizeof path)
    return NULL;
  return realpath(path, NULL);
}

static bool parse_count(const char *text, int *out) {
  char *end;
  long v = strtol(text, &end, 10);
  *out = (int)v;
  return end != text && !*end && v > 0 && v < 1 << 20;
}

static bool parse_number(const char *text, int most, int *out) {
  char *end;
  long v = strtol(text, &end, 10);
  *out = (int)v;
  return end != text && !*end && v >= 0 && v <= most;
}

struct options {
  const char *python, *site;
};

/* False if the value is no good; *is_known says whether there is such an option. */
static bool take_option(const char *name, const char *value, struct options *o, struct worker_config *c,
                        bool *is_known) {
  *is_known = true;
  if (!strcmp(name, "--python-dir"))
    return (o->python = value) != NULL;
  if (!strcmp(name, "--site-dir"))
    return (o->site = value) != NULL;
  if (!strcmp(name, "--cgroup"))
    return (c->cgroup_dir = value) != NULL;
  if (!strcmp(name, "--cpu-s"))
    return value && parse_count(value, &c->limits.cpu_s);
  if (!strcmp(name, "--memory-mib"))
    return value && parse_count(value, &c->limits.memory_mib);
  if (!strcmp(name, "--resident-mib"))
    return value && parse_count(value, &c->limits.resident_mib);
  if (!strcmp(name, "--wall-ms"))
    return value && parse_number(value, INT_MAX, &c->limits.wall_ms);
  if (!strcmp(name, "--log-format"))
    return value && parse_number(value, LOG_JSON, &c->log_format);
  if (!strcmp(name, "--log-level"))
    return value && parse_number(value, LOG_ERROR, &c->log_level);
  if (!strcmp(name, "--server-pid"))
    return value && parse_number(value, INT_MAX, &c->server_pid);
  if (!strcmp(name, "--jail-min"))
    return value && (c->min_level = jail_level_find(value)) >= 0;
  if (!strcmp(name, "--jail-without"))
    return value && jail_layers_find(value, &c->missing);
  if (!strcmp(name, "--jail-failing"))
    return value && jail_layers_find(value, &c->failing);
  return *is_known = false;
}

enum status worker_config_parse(int argc, char **argv, struct arena *a, struct worker_config *out, struct error *err) {
  struct paths defaults = {0};
  struct options o = {0};

  *out = (struct worker_config){
      .limits = {JAIL_CPU_S, JAIL_MEMORY_MIB, JAIL_RESIDENT_MIB, 0}, .min_level = JAIL_C, .log_level = LOG_INFO};
  for (int i = 1; i < argc; i += 2) {
    bool is_known;
    if (!take_option(argv[i], argv[i + 1], &o, out, &is_known))
      return fail(err, ST_INPUT, is_known ? "%s: wrong or missing value" : "unknown option %s", argv[i]);
  }
  if (!o.python || !o.site) {
    enum status st = paths_find(a, &defaults, err);
    if (st)
      return st;
  }
  out->python_dir = resolve("", o.python ? o.python : defaults.python_dir);
  out->site_dir = resolve("", o.site ? o.site : defaults.site_dir);
  if (!out->python_dir)
    return fail(err, ST_INPUT, "--python-dir: no directory %s", o.python ? o.python : defaults.python_dir);
  if (!out->site_dir)
    return fail(err, ST_INPUT, "--site-dir: no directory %s", o.site ? o.site : defaults.site_dir);
  return ST_OK;
}

/* Directory of the standard library: where the module os came from.  NULL if it cannot be told. */
static const char *stdlib_dir(void) {
  const char *dir = NULL;
  PyObject *os = PyImport_ImportModule("os");
  PyObject *file = os ? PyObject_GetAttrString(os, "__file__") : NULL;
  const char *text = file ? PyUnicode_AsUTF8(file) : NULL;
  if (text) {
    char *copy = strdup(text), *slash = copy ? strrchr(copy, '/') : NULL;
    if (slash)
      *slash = 0;
    dir = copy;
  }
  PyErr_Clear();
  Py_XDECREF(file);
  Py_XDECREF(os);
  return dir;
}

enum status worker_jail(const struct worker_config *cfg, struct jail *j, struct error *err) {
  /* of site-packages only what kernels may import, not whatever else the environment holds */
  static const char *const packages[] = {"numpy", "numpy.libs", "ml_dtypes"};
  const char *stdlib = stdlib_dir();
  enum status st;

  *j = (struct jail){.limits = cfg->limits,
                     .min_level = (enum jail_level)cfg->min_level,
                     .missing = cfg->missing,
                     .failing = cfg->failing,
                     .server_pid = cfg->server_pid};
  if (!stdlib)
    return fail(err, ST_BUG, "cannot find Python's standard library");
  st = jail_add_path(j, stdlib, false, err);
  if (!st)
    st = jail_add_path(j, cfg->python_dir, false, err);
  for (size_t i = 0; i < sizeof packages / sizeof *packages && !st; i++) {
    const char *path = resolve(cfg->site_dir, packages[i]);
    if (path)
      st = jail_add_path(j, path, false, err);
  }
  if (!st) /* MLIR's snapshot pass opens it */
    st = jail_add_path(j, "/dev/null", true, err);
  return st ? st : jail_prepare(j, cfg->cgroup_dir, err);
}
