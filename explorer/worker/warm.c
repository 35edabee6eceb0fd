/* Warming up: whatever is initialised lazily is initialised here, once.
 *
 * A kernel goes through the whole path with the numeric check on, which loads code generation as well.  The modules of
 * the standard library that kernels import are loaded too: no job pays for them, and those that need a shared library
 * would not find it in the jail.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <malloc.h>
#include <string.h>

#include "base/log.h"
#include "driver/compile.h"
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

/* The fields of a job's JSON without its options. */
static const char *const kernels[] = {
    [MEMORY_ANY_KERNEL] =
        "\"source\":\"import numpy as np\\n"
        "def warm(x, w, b):\\n"
        "    h = np.maximum(np.matmul(x, w) + b, 0)\\n"
        "    return np.exp(h - np.max(h, axis=-1, keepdims=True)) / np.sqrt(np.mean(h * h) + 1)\\n\","
        "\"inputs\":[{\"shape\":[64,32],\"dtype\":\"float32\"},{\"shape\":[32,48],\"dtype\":\"float32\"},"
        "{\"shape\":[48],\"dtype\":\"float32\"}]",
    [MEMORY_LEAST_KERNEL] = "\"source\":\"'''Least'''\\nimport numpy as np\\nfrom nkigen import trace\\n\\n"
                            "@trace(input_specs=[((8, 16), 'f32')])\\n"
                            "def least(x):\\n    return np.add(x, 1.0)\\n\"",
};

bool worker_has_one_thread(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  for (const struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.';
  if (d)
    closedir(d);
  return n == 1;
}

static enum status drop_frame(void *user, const char *json, size_t len) {
  (void)user;
  (void)json;
  (void)len;
  return ST_OK;
}

enum status worker_compile_kernel(struct ir *ir, enum memory_kernel which, bool is_checked, struct error *err) {
  const char *flag = is_checked ? "true" : "false";
  struct arena a;
  struct job job;

  arena_init(&a);
  job_init(&job);
  char *json = arena_printf(&a, "{%s,\"options\":{\"check\":%s,\"artifacts\":%s}}", kernels[which], flag, flag);
  enum status st = job_parse(&a, json, strlen(json), &job, err); /* as every job is */
  if (!st && compile_run(ir, &job, drop_frame, NULL))
    log_warn("warm_up", "the warm-up kernel did not compile");
  arena_clear(&a);
  return st;
}

static enum status run_python(const char *code, struct error *err) {
  return PyRun_SimpleString(code) ? fail(err, ST_BUG, "Python refused the warm-up code") : ST_OK;
}

enum status worker_warm_up(const struct worker_config *cfg, struct ir *ir, struct error *err) {
  enum status st = trace_init(cfg->python_dir, cfg->site_dir, err);
  if (!st)
    st = ir_init(ir, err);
  if (!st)
    st = run_python(preload, err);
  if (!st)
    st = worker_compile_kernel(ir, MEMORY_ANY_KERNEL, true, err);
  if (!st)
    st = run_python(freeze, err);
  if (st)
    return st;
  worker_exit_when_out_of_memory();
  malloc_trim(0);
  return worker_has_one_thread() ? ST_OK : fail(err, ST_BUG, "a thread is left; a process that forks must have one");
}
