#include "trace/calls.h"

#include "trace/bytecode.h"
#include "trace/kernels.h"
#include "trace/program.h"

static bool has_array(PyObject *o, int depth) {
  if (PyTuple_Check(o) && depth < CALL_NESTING_MAX)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      if (has_array(PyTuple_GET_ITEM(o, i), depth + 1))
        return true;
  return PyArray_Check(o);
}

bool call_has_array(PyObject *args, PyObject *kw) {
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
    if (has_array(PyTuple_GET_ITEM(args, i), 0))
      return true;
  while (kw && PyDict_Next(kw, &pos, &key, &value))
    if (has_array(value, 0))
      return true;
  return false;
}

/* Appends to list; path: the place of o. */
static bool add_places(PyObject *list, PyObject *o, PyObject *path) {
  bool ok = true;
  if (PyArray_Check(o)) {
    PyObject *found = PyTuple_Pack(2, path, o);
    ok = found && PyList_Append(list, found) == 0;
    Py_XDECREF(found);
    return ok;
  }
  if (!has_array(o, (int)PyTuple_GET_SIZE(path)))
    return true;
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(o); i++) {
    PyObject *last = Py_BuildValue("(n)", i), *longer = last ? PySequence_Concat(path, last) : NULL;
    ok = longer && add_places(list, PyTuple_GET_ITEM(o, i), longer);
    Py_XDECREF(last);
    Py_XDECREF(longer);
  }
  return ok;
}

PyObject *call_arrays(PyObject *o) {
  PyObject *list = PyList_New(0), *path = PyTuple_New(0);
  if (!list || !path || !add_places(list, o, path))
    Py_CLEAR(list);
  Py_XDECREF(path);
  return list;
}

const char *call_array_name(struct arena *a, const char *name, PyObject *path) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path); i++)
    name = arena_printf(a, "%s_%ld", name, PyLong_AsLong(PyTuple_GET_ITEM(path, i)));
  return name;
}

/* Takes the tuple over.  Returns it as an instance of the class of `like`, which has names for its elements (NamedTuple). */
static PyObject *as_named_tuple(PyObject *t, PyObject *like) {
  PyObject *named = PyObject_CallMethod((PyObject *)Py_TYPE(like), "_make", "(O)", t);
  if (!named) {
    PyErr_Clear();
    return t;
  }
  Py_DECREF(t);
  return named;
}

static PyObject *copy(PyObject *o, int depth);

static PyObject *copy_tuple(PyObject *o, int depth) {
  bool same = true;
  PyObject *t = PyTuple_New(PyTuple_GET_SIZE(o));
  for (Py_ssize_t i = 0; t && i < PyTuple_GET_SIZE(o); i++) {
    PyObject *c = copy(PyTuple_GET_ITEM(o, i), depth + 1);
    same &= c == PyTuple_GET_ITEM(o, i);
    if (!c)
      Py_CLEAR(t);
    else
      PyTuple_SET_ITEM(t, i, c);
  }
  if (t && same)
    Py_SETREF(t, Py_NewRef(o));
  return t && !same && !PyTuple_CheckExact(o) ? as_named_tuple(t, o) : t;
}

static PyObject *copy(PyObject *o, int depth) {
  if (PyTuple_Check(o) && depth < CALL_NESTING_MAX)
    return copy_tuple(o, depth);
  return PyArray_Check(o) ? PyArray_NewCopy((PyArrayObject *)o, NPY_CORDER) : Py_NewRef(o);
}

PyObject *call_copy(PyObject *o) {
  return copy(o, 0);
}

PyObject *call_with(PyObject *o, PyObject *path, PyObject *value) {
  if (!PyTuple_GET_SIZE(path))
    return Py_NewRef(value);
  const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(path, 0)), n = PyTuple_GET_SIZE(o);
  PyObject *rest = PyTuple_GetSlice(path, 1, PyTuple_GET_SIZE(path));
  PyObject *part = rest ? call_with(PyTuple_GET_ITEM(o, at), rest, value) : NULL, *t = part ? PyTuple_New(n) : NULL;
  for (Py_ssize_t i = 0; t && i < n; i++)
    PyTuple_SET_ITEM(t, i, Py_NewRef(i == at ? part : PyTuple_GET_ITEM(o, i)));
  Py_XDECREF(rest);
  Py_XDECREF(part);
  return t && !PyTuple_CheckExact(o) ? as_named_tuple(t, o) : t;
}

PyObject *call_copy_named(PyObject *kw) {
  PyObject *copy = PyDict_New(), *key, *value;
  Py_ssize_t pos = 0;
  while (copy && PyDict_Next(kw, &pos, &key, &value)) {
    PyObject *c = call_copy(value);
    if (!c || PyDict_SetItem(copy, key, c) < 0)
      Py_CLEAR(copy);
    Py_XDECREF(c);
  }
  return copy;
}

/* ---- calls of plain functions -------------------------------------------------------------------------------------- */

/* The call with arrays that runs: its frame, which is only compared, and (args, kw) unless the function is noted already. */
static const PyFrameObject *running;
static PyObject *running_call;
static Py_ssize_t n_nki; /* so many of the program's decorated functions are known to be NKI kernels */
static bool is_watching;

/* Sets *args and *kw to the arguments of a frame that begins, new references, with defaults filled in.  False without an
 * exception. */
static bool arguments_of(PyFrameObject *frame, PyCodeObject *code, PyObject **args, PyObject **kw) {
  PyObject *locals = PyFrame_GetLocals(frame), *names = PyCode_GetVarnames(code), *rest = NULL;
  const int n_named = code->co_argcount, n_keyword = code->co_kwonlyargcount;
  const bool has_rest = code->co_flags & CO_VARARGS, has_more = code->co_flags & CO_VARKEYWORDS;
  PyObject *list = PyList_New(0);
  *args = NULL;
  *kw = PyDict_New();
  bool ok = locals && names && list && *kw;
  for (int i = 0; ok && i < n_named + n_keyword; i++) {
    PyObject *name = PyTuple_GET_ITEM(names, i), *value = PyObject_GetItem(locals, name);
    ok = value && (i < n_named ? PyList_Append(list, value) : PyDict_SetItem(*kw, name, value)) == 0;
    Py_XDECREF(value);
  }
  if (ok && has_rest) {
    rest = PyObject_GetItem(locals, PyTuple_GET_ITEM(names, n_named + n_keyword));
    ok = rest && PyList_SetSlice(list, n_named, n_named, rest) == 0;
    Py_XDECREF(rest);
  }
  if (ok && has_more) {
    rest = PyObject_GetItem(locals, PyTuple_GET_ITEM(names, n_named + n_keyword + has_rest));
    ok = rest && PyDict_Update(*kw, rest) == 0;
    Py_XDECREF(rest);
  }
  if (ok)
    *args = PyList_AsTuple(list);
  PyErr_Clear();
  Py_XDECREF(locals);
  Py_XDECREF(names);
  Py_XDECREF(list);
  if (!*args)
    Py_CLEAR(*kw);
  return *args;
}

/* The call whose frame begins is the one that runs, if it has arrays. */
static void begin(struct trace_program *program, PyFrameObject *frame, PyCodeObject *code) {
  PyObject *args, *kw;
  if (!arguments_of(frame, code, &args, &kw))
    return;
  if (call_has_array(args, kw)) {
    running = frame;
    if (!PyDict_Contains(program->called, (PyObject *)code)) {
      PyObject *own_args = call_copy(args), *own_kw = call_copy_named(kw);
      running_call = own_args && own_kw ? PyTuple_Pack(2, own_args, own_kw) : NULL;
      Py_XDECREF(own_args);
      Py_XDECREF(own_kw);
      PyErr_Clear(); /* without memory for a copy, the call is not noted */
    }
  }
  Py_DECREF(args);
  Py_DECREF(kw);
}

static bool is_array(PyObject *o) {
  return PyArray_Check(o) || PyArray_IsScalar(o, Generic);
}

/* True for an array and for several. */
static bool is_result(PyObject *o) {
  if (PyTuple_Check(o) || PyList_Check(o))
    return PySequence_Fast_GET_SIZE(o) && is_array(PySequence_Fast_GET_ITEM(o, 0));
  return is_array(o);
}

/* Notes the call that ends, if it returns an array, or several. */
static void end(struct trace_program *program, PyFrameObject *frame, PyObject *result) {
  running = NULL;
  if (running_call && result && is_result(result)) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    if (PyDict_SetItem(program->called, (PyObject *)code, running_call) < 0)
      PyErr_Clear();
    Py_DECREF(code);
  }
  Py_CLEAR(running_call);
}

/* True if a decorated function that is no NKI kernel is the kernel. */
static bool has_numpy_kernel(const struct trace_program *program) {
  const Py_ssize_t n = PyList_GET_SIZE(program->found);
  for (; n_nki < n; n_nki++)
    if (!((const struct kernel *)PyList_GET_ITEM(program->found, n_nki))->nki)
      return true;
  return false;
}

static int on_event(PyObject *unused, PyFrameObject *frame, int what, PyObject *arg) {
  struct trace_program *program = program_now;
  (void)unused;
  if (what == PyTrace_RETURN && frame == running && program)
    end(program, frame, arg);
  if (what != PyTrace_CALL || running || !program)
    return 0;
  if (!program->rq->kernel && has_numpy_kernel(program)) {
    calls_unwatch();
    return 0;
  }
  PyCodeObject *code = PyFrame_GetCode(frame);
  const char *name = (code->co_flags & CO_OPTIMIZED) ? bytecode_name(code) : NULL; /* not a module's or a class's */
  if (name && name[0] != '<' && bytecode_is_from(code, program->filename))
    begin(program, frame, code);
  Py_DECREF(code);
  return 0;
}

void calls_watch(struct trace_program *program) {
  running = NULL;
  n_nki = 0;
  is_watching = program->called || (program->called = PyDict_New());
  if (is_watching)
    PyEval_SetProfile(on_event, NULL);
  PyErr_Clear();
}

bool calls_pause(void) {
  const bool was = is_watching;
  if (was)
    PyEval_SetProfile(NULL, NULL);
  is_watching = false;
  return was;
}

void calls_resume(bool was_watching) {
  if (was_watching)
    PyEval_SetProfile(on_event, NULL);
  is_watching = was_watching;
}

void calls_unwatch(void) {
  PyEval_SetProfile(NULL, NULL);
  is_watching = false;
  running = NULL;
  Py_CLEAR(running_call);
}

PyObject *calls_of(const struct trace_program *program, PyObject *fn) {
  PyCodeObject *code = program->called ? bytecode_of(fn) : NULL;
  PyObject *call = code ? PyDict_GetItemWithError(program->called, (PyObject *)code) : NULL;
  Py_XDECREF(code);
  PyErr_Clear();
  return call;
}
