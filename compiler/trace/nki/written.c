/* written: calls and views as a kernel writes them, for the text of nki-trace (nki/nki.h, struct nki_written). */
#include <string.h>

#include "trace/nki/nki.h"
#include "trace/operand.h"
#include "trace/program.h"

bool nki_is_shown(const struct nki_recorder *r) {
  return r->owner && !r->owner->is_live;
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static bool is_whole(const struct nki_view *v) {
  const struct nki_view whole = nki_whole(v->tensor);
  return !v->partition && !v->offset && !v->n_terms && v->rank == whole.rank &&
         !memcmp(v->dim, whole.dim, (size_t)v->rank * sizeof *v->dim);
}

const char *nki_written_view(struct nki_recorder *r, const struct nki_view *v) {
  return v->written ? v->written : is_whole(v) ? v->tensor->name : nki_view_text(r->program->arena, v);
}

/* An argument as it would be written. */
static const char *argument_text(struct nki_recorder *r, PyObject *o) {
  bool is;
  const struct nki_tensor *reg = nki_is_tensor(o) ? NULL : nki_register_of(r, o, &is);
  PyErr_Clear();
  if (nki_is_tensor(o))
    return nki_written_view(r, &((struct nki_tensor_object *)o)->view);
  if (reg)
    return reg->name;
  enum dtype t = PyArray_DescrCheck(o) ? dtype_from_num(((PyArray_Descr *)o)->type_num) : DT_NONE;
  if (t != DT_NONE)
    return arena_printf(r->program->arena, "nl.%s", dtype_numpy_name(t));
  PyObject *s = PyObject_Repr(o);
  const char *text = s ? PyUnicode_AsUTF8(s) : NULL;
  text = text ? arena_strdup(r->program->arena, text) : "…";
  PyErr_Clear();
  Py_XDECREF(s);
  return text;
}

const char *nki_written_call(struct nki_recorder *r, const char *name, PyObject *args, PyObject *kw) {
  struct arena *a = r->program->arena;
  const char *text = arena_printf(a, "%s(", name), *comma = "";
  PyObject *key, *value;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++, comma = ", ")
    text = arena_printf(a, "%s%s%s", text, comma, argument_text(r, PyTuple_GET_ITEM(args, i)));
  for (Py_ssize_t at = 0; kw && PyDict_Next(kw, &at, &key, &value); comma = ", ")
    text = arena_printf(a, "%s%s%s=%s", text, comma, PyUnicode_AsUTF8(key), argument_text(r, value));
  return arena_printf(a, "%s)", text);
}

/* ---- for nkx/nki_written.py -------------------------------------------------------------------------------------- */

/* nki_written_begin(name): whether a call that is shown as it was written begins: in a job, and not inside of another one. */
static PyObject *written_begin(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_now;
  (void)self;
  if (!r || !nki_shows_views(r))
    Py_RETURN_FALSE;
  const char *name = PyUnicode_AsUTF8(o);
  if (!name)
    return NULL;
  nki_note_rounds(r);
  return PyBool_FromLong(nki_written_begin(r->program, name, nki_here(r)));
}

/* nki_is_writing(): whether a call that is shown as it was written is being made. */
static PyObject *is_writing(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyBool_FromLong(nki_now && nki_now->program->writing);
}

/* nki_written_end(text or None) */
static PyObject *written_end(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_now;
  const char *text = o == Py_None ? NULL : PyUnicode_AsUTF8(o);
  (void)self;
  if (!text && o != Py_None)
    return NULL;
  if (r && r->program->writing)
    nki_written_end(r->program, text);
  Py_RETURN_NONE;
}

/* nki_written_note(text) */
static PyObject *written_note(PyObject *self, PyObject *o) {
  const char *text = PyUnicode_AsUTF8(o);
  (void)self;
  if (!text)
    return NULL;
  if (nki_now)
    nki_written_note(nki_now->program, text);
  Py_RETURN_NONE;
}

/* nki_written_view(tensor): its expression. */
static PyObject *written_view(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_enter();
  const struct nki_view *v = r ? nki_view_of(r, o, "tensor") : NULL;
  (void)self;
  return v ? PyUnicode_FromString(nki_written_view(r, v)) : NULL;
}

PyMethodDef nki_written_methods[] = {
    {"nki_written_begin", written_begin, METH_O, "nki_written_begin(name)"},
    {"nki_is_writing", is_writing, METH_NOARGS, "Whether a call is being made that is shown as it was written."},
    {"nki_written_end", written_end, METH_O, "nki_written_end(text or None)"},
    {"nki_written_note", written_note, METH_O, "nki_written_note(text)"},
    {"nki_written_view", written_view, METH_O, "nki_written_view(tensor): its expression."},
    {NULL, NULL, 0, NULL}};
