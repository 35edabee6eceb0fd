#include "trace/nki/ast.h"

#include <string.h>

#include "base/buf.h"
#include "trace/bytecode.h"
#include "trace/kernels.h"
#include "trace/refuse.h"

enum { TEXT_MAX = 8 << 20 }; /* the text has the source once, and a source is at most 256 KiB */

/* ---- what goes to Python ----------------------------------------------------------------------------------------- */

/* {file name: text} of the user's files. */
static PyObject *texts_of(const struct ranges *r) {
  PyObject *d = PyDict_New();
  for (int i = 0; d && i < r->files.n; i++) {
    const struct range_file *f = &r->files.v[i];
    PyObject *text = PyUnicode_DecodeUTF8(f->lines[0], f->lines[f->n_lines] - f->lines[0], "replace");
    if (!text || PyDict_SetItem(d, f->filename, text) < 0)
      Py_CLEAR(d);
    Py_XDECREF(text);
  }
  return d;
}

/* {name: (dtype, shape)} of the parameters that are tensors. */
static PyObject *params_of(const struct program_kernel *k, bool has_shapes) {
  PyObject *d = PyDict_New();
  for (int i = 0; d && has_shapes && i < k->n_params; i++) {
    const struct kparam *p = &k->params[i];
    PyObject *shape = PyTuple_New(p->rank);
    for (int j = 0; shape && j < p->rank; j++)
      PyTuple_SET_ITEM(shape, j, PyLong_FromLongLong(p->dims[j]));
    PyObject *o = shape ? Py_BuildValue("(sN)", dtype_numpy_name(p->dtype), shape) : NULL;
    if (!o || PyDict_SetItemString(d, p->name, o) < 0)
      Py_CLEAR(d);
    Py_XDECREF(o);
  }
  return d;
}

/* ---- what comes back --------------------------------------------------------------------------------------------- */

/* A place (file, line, column, end line, end column); NULL for None. */
static const struct src_loc *loc_of(struct ranges *r, PyObject *place) {
  PyObject *file;
  int line, col, end_line, end_col;
  if (place == Py_None || !PyArg_ParseTuple(place, "Uiiii", &file, &line, &col, &end_line, &end_col))
    return NULL;
  return ranges_exact(r, file, line, col, end_line, end_col);
}

static const char *text_of(struct arena *a, PyObject *o) {
  const char *s = o && o != Py_None ? PyUnicode_AsUTF8(o) : NULL;
  PyErr_Clear();
  return s ? arena_strdup(a, s) : NULL;
}

static enum diag_code code_of(const char *name) {
  for (int c = 0; name && c < DIAG_COUNT; c++)
    if (!strcmp(diag_code_name((enum diag_code)c), name))
      return (enum diag_code)c;
  return DG_INTERNAL;
}

static bool add_findings(struct trace_program *program, PyObject *list, struct diags *ds) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    PyObject *severity, *code, *message, *hint, *place;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OOOOO", &severity, &code, &message, &hint, &place))
      return false;
    const char *text = text_of(program->a, message);
    const bool is_error = PyUnicode_CompareWithASCIIString(severity, "error") == 0;
    struct diag *d =
        diag_add(ds, is_error ? DS_ERROR : DS_WARNING, code_of(text_of(program->a, code)),
                 loc_of(&program->ranges, place), "%s", text ? text : "the text of the message cannot be shown");
    d->hint = text_of(program->a, hint);
    d->stage = "nki-ast";
  }
  return !PyErr_Occurred();
}

static struct nki_ast *read_lines(struct trace_program *program, PyObject *list) {
  struct nki_ast *ast = arena_new(program->a, struct nki_ast);
  struct buf b;
  ast->v = arena_new_array(program->a, struct nki_ast_line, (size_t)PyList_GET_SIZE(list));
  buf_init(&b, TEXT_MAX);
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(list); i++) {
    PyObject *text, *name, *place;
    Py_ssize_t len;
    ok = PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OOO", &text, &name, &place);
    const char *utf8 = ok ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
    if (utf8)
      buf_append(&b, utf8, (size_t)len);
    buf_putc(&b, '\n');
    const char *kind = ok ? text_of(program->a, name) : NULL;
    if (kind)
      ast->v[ast->n++] = (struct nki_ast_line){(int)i + 1, kind, loc_of(&program->ranges, place)};
  }
  ok &= buf_status(&b) == ST_OK && !PyErr_Occurred();
  ast->text = ok ? arena_strndup(program->a, buf_text(&b), b.len) : "";
  ast->text_len = ok ? b.len : 0;
  ast->n = ok ? ast->n : 0;
  buf_clear(&b);
  return ast;
}

struct nki_ast *nki_analyse(struct trace_program *program, const struct program_kernel *k, bool has_shapes,
                            struct diags *ds) {
  PyCodeObject *code = bytecode_of(k->fn);
  if (code) /* its file is then among the program's */
    (void)ranges_has_code(&program->ranges, code);
  Py_XDECREF((PyObject *)code);
  PyObject *module = PyImport_ImportModule("nkx.nki_ast"), *texts = texts_of(&program->ranges),
           *params = params_of(k, has_shapes), *r = NULL, *lines, *findings;
  if (module && texts && params)
    r = PyObject_CallMethod(module, "analyse", "OiOOO", k->fn, k->kernel->nki, texts, params,
                            kernel_half_typed(program, k).is_cut ? Py_True : Py_False);
  struct nki_ast *ast = NULL;
  if (r && PyArg_ParseTuple(r, "O!O!", &PyList_Type, &lines, &PyList_Type, &findings) &&
      add_findings(program, findings, ds))
    ast = read_lines(program, lines);
  if (!ast && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) { /* not the end of the job's time */
    PyErr_Clear();
    diag_add(ds, DS_WARNING, DG_INTERNAL, NULL, "the kernel %s could not be analysed", k->name);
    ast = arena_new(program->a, struct nki_ast);
    *ast = (struct nki_ast){.text = ""};
  }
  Py_XDECREF(r);
  Py_XDECREF(module);
  Py_XDECREF(texts);
  Py_XDECREF(params);
  return ast;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

const struct src_loc *nki_argument_loc(struct ranges *r, const struct src_loc *loc, const char *param) {
  const struct range_file *f = NULL;
  PyObject *type, *exc, *tb;
  for (int i = 0; loc && i < r->files.n; i++)
    if (!strcmp(r->files.v[i].name, loc->range.file))
      f = &r->files.v[i];
  if (!f || !param)
    return loc;
  PyErr_Fetch(&type, &exc, &tb);
  PyObject *module = PyImport_ImportModule("nkx.nki_source");
  PyObject *place = module ? PyObject_CallMethod(module, "argument", "Os#iiiis", f->filename, f->lines[0],
                                                 (Py_ssize_t)(f->lines[f->n_lines] - f->lines[0]), loc->range.line,
                                                 loc->range.col, loc->range.end_line, loc->range.end_col, param)
                           : NULL;
  const struct src_loc *found = place ? loc_of(r, place) : NULL;
  if (found) {
    struct src_loc *copy = arena_dup(r->a, loc, sizeof *loc);
    copy->range = found->range;
    loc = copy;
  }
  Py_XDECREF(place);
  Py_XDECREF(module);
  PyErr_Restore(type, exc, tb); /* discards an exception raised above */
  return loc;
}

static bool is_before(int line, int col, int other_line, int other_col) {
  return line < other_line || (line == other_line && col < other_col);
}

static bool overlap(const struct src_range *x, const struct src_range *y) {
  return !strcmp(x->file, y->file) && is_before(x->line, x->col, y->end_line, y->end_col) &&
         is_before(y->line, y->col, x->end_line, x->end_col);
}

bool nki_is_repeated(const struct diags *ds, int first, int n, const struct src_loc *loc) {
  bool is = false;
  for (int k = first; loc && k < first + n; k++)
    is |= ds->v[k].severity == DS_ERROR && ds->v[k].loc && overlap(&ds->v[k].loc->range, &loc->range);
  return is;
}

void nki_drop_repeated(struct diags *ds, int first, int n) {
  int kept = first + n;
  for (int i = kept; i < ds->n; i++)
    if (ds->v[i].severity != DS_ERROR || !nki_is_repeated(ds, first, n, ds->v[i].loc))
      ds->v[kept++] = ds->v[i];
  ds->n = kept;
}

bool nki_has_error(const struct diags *ds, int first) {
  bool any = false;
  for (int i = first; i < ds->n; i++)
    any |= ds->v[i].severity == DS_ERROR;
  return any;
}
