/* What a child sees of the file system: Python's standard library, the kernels' packages, and the few packages of
 * site-packages that kernels may import, not whatever else that environment holds. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <assert.h>
#include <string.h>

#include "worker/worker.h"

/* The directory of the standard library, from which the module os was loaded; heap, lives as long as the process.  NULL
 * if it cannot be found out. */
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
  static const char *const packages[] = {"numpy", "numpy.libs", "ml_dtypes"};
  const char *stdlib = stdlib_dir();
  enum status st;

  assert(cfg->python_dir[0] == '/' && cfg->site_dir[0] == '/');
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
    const char *path = worker_resolve(cfg->site_dir, packages[i]);
    if (path)
      st = jail_add_path(j, path, false, err);
  }
  if (!st) /* MLIR's snapshot pass opens it */
    st = jail_add_path(j, "/dev/null", true, err);
  return st ? st : jail_prepare(j, cfg->cgroup_dir, err);
}
