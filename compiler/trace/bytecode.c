/* bytecode: code objects and instructions of CPython 3.11 (Python/compile.c, Include/opcode.h). */
#include "trace/bytecode.h"

#include <assert.h>
#include <opcode.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "the tracer reads the instructions of CPython 3.11: check every function of this file against another version"
#endif

/* A chain of __wrapped__ may be circular, so its length is limited.  No program wraps a function this often. */
enum { WRAPPERS_MAX = 100 };

PyCodeObject *bytecode_of(PyObject *fn) {
  PyObject *o = Py_NewRef(fn), *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  for (int depth = 0; o && !PyFunction_Check(o); depth++) {
    PyObject *next =
        depth < WRAPPERS_MAX ? PyObject_GetAttrString(o, PyMethod_Check(o) ? "__func__" : "__wrapped__") : NULL;
    PyErr_Clear();
    Py_SETREF(o, next);
  }
  PyCodeObject *code = o ? (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(o)) : NULL;
  Py_XDECREF(o);
  PyErr_Restore(type, exc, tb);
  return code;
}

bool bytecode_is_from(PyCodeObject *code, PyObject *filename) {
  assert(PyUnicode_Check(filename));
  return code->co_filename == filename || (PyUnicode_GET_LENGTH(code->co_filename) == PyUnicode_GET_LENGTH(filename) &&
                                           PyUnicode_Compare(code->co_filename, filename) == 0);
}

PyObject *bytecode_filename(PyCodeObject *code) {
  return code->co_filename;
}

int bytecode_first_line(PyCodeObject *code) {
  return code->co_firstlineno;
}

static const char *text_of(PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  PyErr_Clear();
  return text;
}

const char *bytecode_qualified_name(PyCodeObject *code) {
  return text_of(code->co_qualname);
}

const char *bytecode_name(PyCodeObject *code) {
  return text_of(code->co_name);
}

/* Reads the places of all instructions of a code object; false if that fails. */
static bool read_places(PyCodeObject *code, struct bytecode_place *out, Py_ssize_t n) {
  PyObject *iter = PyObject_CallMethod((PyObject *)code, "co_positions", NULL), *item = NULL;
  Py_ssize_t k = 0;
  for (; iter && k < n && (item = PyIter_Next(iter)); k++) {
    int *const field[] = {&out[k].line, &out[k].end_line, &out[k].col, &out[k].end_col};
    for (int i = 0; i < 4; i++) {
      PyObject *v = PyTuple_GET_ITEM(item, i);
      *field[i] = v == Py_None ? -1 : (int)PyLong_AsLong(v);
    }
    Py_DECREF(item);
  }
  Py_XDECREF(iter);
  PyErr_Clear();
  return k == n;
}

/* CPython reads its table of places from the start for each query, so the trace of a long function would take time by the
 * square of its length.  The places of the last long function are kept.  NULL for a short one. */
static const struct bytecode_place *long_places(PyCodeObject *code) {
  enum { LONG = 2048 }; /* instructions */
  static PyCodeObject *last;
  static struct bytecode_place *places;
  const Py_ssize_t n = Py_SIZE(code);
  if (n < LONG)
    return NULL;
  if (last != code) {
    PyMem_Free(places);
    places = PyMem_New(struct bytecode_place, (size_t)n);
    if (places && !read_places(code, places, n)) {
      PyMem_Free(places);
      places = NULL;
    }
    PyErr_Clear();
    Py_XSETREF(last, (PyCodeObject *)Py_NewRef((PyObject *)code));
  }
  return places;
}

static bool find_place(PyCodeObject *code, int lasti, struct bytecode_place *p) {
  const struct bytecode_place *all = long_places(code);
  if (!all || lasti < 0 || lasti / (int)sizeof(_Py_CODEUNIT) >= Py_SIZE(code))
    return PyCode_Addr2Location(code, lasti, &p->line, &p->col, &p->end_line, &p->end_col);
  *p = all[lasti / (int)sizeof(_Py_CODEUNIT)];
  return true;
}

struct bytecode_place bytecode_place(PyCodeObject *code, int lasti) {
  struct bytecode_place p = {0};
  if (!find_place(code, lasti, &p) || p.line < 1) {
    const int first = code->co_firstlineno > 1 ? code->co_firstlineno : 1; /* code.replace() accepts any number */
    p = (struct bytecode_place){first, 0, first, 0};
  }
  return p;
}

int bytecode_body_line(PyCodeObject *code) {
  enum { LOOKED_AT = 64 }; /* the prologue has a few instructions for each free variable */
  int line = 0;
  for (int i = 0; i < LOOKED_AT && line <= code->co_firstlineno; i++)
    line = PyCode_Addr2Line(code, i * (int)sizeof(_Py_CODEUNIT));
  return line > code->co_firstlineno ? line : 0;
}

/* ---- instructions: two bytes each, the operation and its argument ------------------------------------------------ */

/* Returns the instructions as the compiler wrote them, without the interpreter's specializations: a new reference.
 * CPython copies all of them on each call, and tracing asks for each operation of a function, so the result for the
 * last code object is cached. */
static PyObject *instructions(PyCodeObject *code) {
  static PyCodeObject *last;
  static PyObject *bytes;
  if (last != code) {
    Py_XSETREF(bytes, PyCode_GetCode(code));
    Py_XSETREF(last, bytes ? (PyCodeObject *)Py_NewRef((PyObject *)code) : NULL);
    PyErr_Clear();
  }
  return Py_XNewRef(bytes);
}

/* Reads the instruction at byte offset lasti.  Returns false if there is none. */
static bool read_at(PyCodeObject *code, int lasti, unsigned char out[2]) {
  PyObject *bytes = lasti >= 0 ? instructions(code) : NULL;
  const bool ok = bytes && lasti + 1 < PyBytes_GET_SIZE(bytes);
  for (int i = 0; ok && i < 2; i++)
    out[i] = (unsigned char)PyBytes_AS_STRING(bytes)[lasti + i];
  Py_XDECREF(bytes);
  return ok;
}

bool bytecode_is_iteration(PyCodeObject *code, int lasti) {
  unsigned char in[2];
  return read_at(code, lasti, in) && (in[0] == GET_ITER || in[0] == FOR_ITER);
}

int bytecode_only_return(PyCodeObject *code) {
  PyObject *bytes = instructions(code);
  int at = -1, n = 0;
  for (Py_ssize_t i = 0; bytes && i + 1 < PyBytes_GET_SIZE(bytes); i += 2)
    if ((unsigned char)PyBytes_AS_STRING(bytes)[i] == RETURN_VALUE) {
      at = (int)i;
      n++;
    }
  Py_XDECREF(bytes);
  return n == 1 ? at : -1;
}

bool bytecode_reads_attribute(PyCodeObject *code, int lasti) {
  unsigned char in[2];
  return lasti >= 0 && read_at(code, lasti, in) && (in[0] == LOAD_ATTR || in[0] == LOAD_METHOD);
}

const char *bytecode_stored_name(PyCodeObject *code, int lasti) {
  unsigned char in[2];
  int at = lasti, wide = 0;
  if (lasti < 0)
    return NULL;
  do /* the call's cache entries come after it, and CALL after PRECALL; a loop stores what it iterates over */
    at += 2;
  while (read_at(code, at, in) &&
         (in[0] == CACHE || in[0] == CALL || in[0] == GET_ITER || (in[0] == FOR_ITER && (wide = 0, true)) ||
          (in[0] == EXTENDED_ARG && (wide = wide << 8 | in[1], true))));
  if (!read_at(code, at, in))
    return NULL;
  const int arg = wide << 8 | in[1];
  PyObject *name = NULL;
  if (in[0] == STORE_FAST || in[0] == STORE_DEREF) {
    PyObject *all = code->co_localsplusnames;
    name = arg < PyTuple_GET_SIZE(all) ? PyTuple_GET_ITEM(all, arg) : NULL;
  } else if (in[0] == STORE_NAME || in[0] == STORE_GLOBAL) {
    name = arg < PyTuple_GET_SIZE(code->co_names) ? PyTuple_GET_ITEM(code->co_names, arg) : NULL;
  }
  const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
  PyErr_Clear();
  return text;
}
