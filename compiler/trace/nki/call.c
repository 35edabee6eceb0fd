/* call: the functions of nki.isa, and what a refused call becomes. */
#include <string.h>

#include "nki/order.h"
#include "nki/refused.h"
#include "trace/counting.h"
#include "trace/nki/ast.h"
#include "trace/nki/nki.h"
#include "trace/operand.h"
#include "trace/refuse.h"

struct nki_recorder *nki_now;

struct nki_recorder *nki_enter(void) {
  if (!nki_now)
    return trace_refuse(DG_NKI_CALL, "call it inside of a kernel, a function with @nki.jit",
                        "no NKI kernel is running here");
  return nki_now;
}

struct src_locs nki_here(struct nki_recorder *r) {
  return src_locs_one(r->program->arena, ranges_here_in_round(r->ranges, r->base));
}

void nki_note_rounds(struct nki_recorder *r) {
  struct counting_run runs[NKI_LOOPS_MAX];
  struct nki_round rounds[NKI_LOOPS_MAX];
  const int n = counting_runs(r->outside, runs, NKI_LOOPS_MAX);
  for (int i = 0; i < n; i++)
    rounds[i] = (struct nki_round){-1, runs[i].serial, runs[i].round, runs[i].is_independent};
  nki_set_rounds(r->program, n, rounds);
}

void *nki_raise(const struct nki_error *err) {
  return trace_refuse(err->code, err->hint, "%s", err->text);
}

/* The parameter that a refusal is about: the one whose name its text begins with; NULL if it is about the whole call. */
static const char *blamed(const struct nki_call_def *def, const char *text) {
  for (int k = 0; k < nki_n_params(def); k++) {
    const size_t len = strlen(def->param[k].name);
    if (!strncmp(text, def->param[k].name, len) && text[len] == ' ')
      return def->param[k].name;
  }
  return NULL;
}

enum { REFUSED_MAX = 50 }; /* calls; then the kernel ends */

static bool is_known(const struct diags *ds, const struct diag *d) {
  bool is = false;
  for (const struct diag *x = ds->v; x < d; x++)
    is |= x->code == d->code && x->loc && d->loc && !memcmp(&x->loc->range, &d->loc->range, sizeof d->loc->range);
  return is;
}

/* Lets r->wrong be the parameter that the exception names, where it does (nkx/nki_blame.py). */
static void adopt_argument(struct nki_recorder *r, PyObject *exc) {
  PyObject *o = PyObject_GetAttrString(exc, "argument");
  const char *name = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  if (name)
    r->wrong = arena_strdup(r->program->arena, name);
  Py_XDECREF(o);
  PyErr_Clear();
}

bool nki_report(void) {
  struct nki_recorder *r = nki_now;
  PyObject *type, *exc, *tb;
  const char *hint;
  PyErr_Fetch(&type, &exc, &tb);
  PyErr_NormalizeException(&type, &exc, &tb);
  const int code = exc ? refuse_code(exc, &hint) : -1;
  if (!r || !r->owner || code < DG_NKI_CALL || code > DG_NKI_DEPRECATED || ++r->n_refused > REFUSED_MAX) {
    PyErr_Restore(type, exc, tb);
    return false;
  }
  adopt_argument(r, exc);
  const struct src_loc *call = ranges_here(r->ranges, r->base), *at = nki_argument_loc(r->ranges, call, r->wrong);
  r->wrong = NULL;
  const int before = r->ds->n;
  PyErr_Restore(type, exc, tb);
  program_exception(r->owner, r->ds);
  if (r->ds->n == before) /* there are as many diagnostics as a job may have */
    return true;
  struct diag *d = &r->ds->v[before];
  d->loc = at;
  if (is_known(r->ds, d) || nki_is_repeated(r->ds, r->first_finding, r->n_findings, call))
    r->ds->n--;
  return true;
}

/* What a refused operation would have given (nkx/nki_unknown.py). */
static PyObject *unknown;

static PyObject *set_unknown(PyObject *self, PyObject *o) {
  (void)self;
  Py_XSETREF(unknown, Py_NewRef(o));
  Py_RETURN_NONE;
}

PyObject *nki_or_unknown(PyObject *result) {
  if (result || !unknown || !nki_now || nki_now->program->writing || !nki_report())
    return result;
  return Py_NewRef(unknown);
}

enum { UNKNOWN_DEPTH = 4 }; /* of a pattern in arguments, and more */

static bool holds_unknown(PyObject *o, int depth) {
  bool has = o == unknown;
  if (PySlice_Check(o)) {
    const PySliceObject *s = (PySliceObject *)o;
    return s->start == unknown || s->stop == unknown || s->step == unknown;
  }
  for (Py_ssize_t i = 0; !has && depth && PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
    has = holds_unknown(PyTuple_GET_ITEM(o, i), depth - 1);
  for (Py_ssize_t i = 0; !has && depth && PyList_Check(o) && i < PyList_GET_SIZE(o); i++)
    has = holds_unknown(PyList_GET_ITEM(o, i), depth - 1);
  return has;
}

bool nki_holds_unknown(PyObject *o) {
  return unknown && holds_unknown(o, UNKNOWN_DEPTH);
}

bool nki_is_unknown(PyObject *o) {
  return unknown && o == unknown;
}

PyObject *nki_unknown_among(PyObject *args, PyObject *kw) {
  bool has = unknown && nki_now && nki_now->n_refused && args && holds_unknown(args, UNKNOWN_DEPTH);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; unknown && nki_now && nki_now->n_refused && kw && PyDict_Next(kw, &at, &key, &value);)
    has |= holds_unknown(value, UNKNOWN_DEPTH);
  return has ? Py_NewRef(unknown) : NULL;
}

/* ---- what a call returns ----------------------------------------------------------------------------------------- */

struct instruction {
  PyObject_HEAD struct nki_call *call; /* NULL: it was refused */
  uint64_t serial;                     /* of its record, as long as which it lives */
};
static PyTypeObject *instruction_type;

/* A new reference. */
static PyObject *instruction(const struct nki_recorder *r, struct nki_call *call) {
  struct instruction *x = PyObject_New(struct instruction, instruction_type);
  if (x) {
    x->call = call;
    x->serial = r->serial;
  }
  return (PyObject *)x;
}

static void instruction_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* The call that o is, of the running instance; NULL with an exception. */
static struct instruction *instruction_of(const struct nki_recorder *r, PyObject *o) {
  if (!PyObject_TypeCheck(o, instruction_type))
    return trace_refuse(DG_NKI_CALL, "give it what calls of nki.isa return",
                        "depends_on takes instructions, not an object of type %s", Py_TYPE(o)->tp_name);
  struct instruction *x = (struct instruction *)o;
  if (x->serial != r->serial)
    return trace_refuse(DG_NKI_CALL, NULL, "an instruction belongs to another run of a kernel");
  return x;
}

/* instruction.depends_on(instruction, …) */
static PyObject *depends_on(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  const struct instruction *x = r ? instruction_of(r, self) : NULL;
  bool ok = x;
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(args); i++) {
    const struct instruction *y = instruction_of(r, PyTuple_GET_ITEM(args, i));
    ok = y || nki_report();
    if (y && x->call && y->call)
      nki_order_add(r->program, x->call, y->call);
  }
  return ok ? Py_NewRef(self) : NULL;
}

bool nki_instruction_init(PyObject *module) {
  static PyMethodDef methods[] = {
      {"depends_on", depends_on, METH_VARARGS, "depends_on(instruction, …): it begins when these are complete."},
      {NULL, NULL, 0, NULL}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, instruction_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  static PyType_Spec spec = {.name = "_nkx.NkiInstruction",
                             .basicsize = sizeof(struct instruction),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  instruction_type = (PyTypeObject *)PyType_FromSpec(&spec);
  return instruction_type && PyModule_AddType(module, instruction_type) == 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static struct nki_call *last_call(const struct nki_program *p) {
  return p->items.n ? p->items.v[p->items.n - 1].call : NULL;
}

/* Ends a call that is shown as it was written, with its text; a pending exception remains. */
static void end_written(struct nki_recorder *r, const struct nki_call *c, PyObject *args, PyObject *kw) {
  struct arena *a = r->program->arena;
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  const char *name = arena_printf(a, "nisa.%s", nki_def(c)->name);
  PyObject *module = PyImport_ImportModule("nkx.nki_written"), *none = kw ? NULL : PyDict_New();
  PyObject *s = module ? PyObject_CallMethod(module, "call_text", "sOO", name, args, kw ? kw : none) : NULL;
  const char *text = s ? PyUnicode_AsUTF8(s) : NULL;
  nki_written_end(r->program, text ? arena_strdup(a, text) : name);
  Py_XDECREF(s);
  Py_XDECREF(none);
  Py_XDECREF(module);
  PyErr_Clear();
  PyErr_Restore(type, exc, tb);
}

/* For a call that another one makes, which is shown as it was written: r->wrong becomes the parameter of that one whose argument
 * is the operand.  A pending exception remains. */
static void blame_outer(struct nki_recorder *r, const struct nki_call_def *def, PyObject *args, PyObject *kw) {
  PyObject *operand = NULL, *type, *exc, *tb;
  if (!r->wrong || !r->program->writing)
    return;
  PyErr_Fetch(&type, &exc, &tb);
  for (int k = 0; k < nki_n_params(def) && k < PyTuple_GET_SIZE(args); k++)
    if (!strcmp(def->param[k].name, r->wrong))
      operand = PyTuple_GET_ITEM(args, k);
  if (kw && !operand)
    operand = PyDict_GetItemString(kw, r->wrong);
  PyObject *module = PyImport_ImportModule("nkx.nki_blame");
  PyObject *o = module ? PyObject_CallMethod(module, "of_operand", "sO", r->wrong, operand ? operand : Py_None) : NULL;
  const char *name = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  r->wrong = name ? arena_strdup(r->program->arena, name) : NULL;
  Py_XDECREF(o);
  Py_XDECREF(module);
  PyErr_Restore(type, exc, tb); /* discards an exception raised above */
}

/* Makes the call whose number is `kind`. */
static PyObject *isa_call(PyObject *kind, PyObject *args, PyObject *kw) {
  struct nki_recorder *r = nki_enter();
  struct nki_call c = {.kind = (enum nki_call_kind)PyLong_AsLong(kind)};
  if (!r)
    return NULL;
  PyObject *other = nki_unknown_among(args, kw);
  Py_XDECREF(other);
  struct nki_error err = {.arena = r->program->arena};
  bool ok = nki_bind(r, &c, args, kw, other);
  if (ok && other)
    return instruction(r, NULL);
  if (ok) {
    bool is_written = false;
    c.locs = nki_here(r);
    nki_note_rounds(r);
    struct nki_scatter later;
    ok = nki_gather_columns(r, &c, &is_written, &later);
    if (ok && !(ok = nki_call_add(r->program, &c, &err))) {
      nki_raise(&err);
      r->wrong = blamed(nki_def(&c), err.text);
    }
    ok = ok && (!later.is_due || nki_scatter_columns(r, &later));
    if (is_written)
      end_written(r, &c, args, kw);
  }
  if (!ok)
    blame_outer(r, nki_def(&c), args, kw);
  return ok || nki_report() ? instruction(r, ok ? last_call(r->program) : NULL) : NULL;
}

/* (name, kind, memories, whether it may be left out) */
static PyObject *param_object(const struct nki_param_def *p) {
  static const char *const kinds[] = {
      [NKI_PARAM_DST] = "dst",       [NKI_PARAM_SRC] = "src",   [NKI_PARAM_NUMBER] = "number",
      [NKI_PARAM_CONST] = "const",   [NKI_PARAM_OP] = "op",     [NKI_PARAM_ALU] = "op",
      [NKI_PARAM_FUNC] = "func",     [NKI_PARAM_FLAG] = "flag", [NKI_PARAM_INTS] = "ints",
      [NKI_PARAM_ENGINE] = "engine", [NKI_PARAM_WORD] = "word"};
  PyObject *memories = PyList_New(0);
  for (int s = MEM_HBM; memories && s < NISA_SPACES; s++)
    if (p->memories >> s & 1) {
      PyObject *name = PyUnicode_FromString(nisa_space_name((enum mem_space)s));
      if (!name || PyList_Append(memories, name) < 0)
        Py_CLEAR(memories);
      Py_XDECREF(name);
    }
  return memories ? Py_BuildValue("(ssNO)", p->name, kinds[p->kind], memories, p->is_optional ? Py_True : Py_False)
                  : NULL;
}

/* nki_signatures(): {name: ([engine, …], [parameter, …])} of the calls of nki.isa, for nkx/nki_source.py. */
static PyObject *signatures(PyObject *self, PyObject *unused) {
  PyObject *d = PyDict_New();
  (void)self, (void)unused;
  for (int k = 0; d && nki_is_users((enum nki_call_kind)k); k++) {
    const struct nki_call_def *def = &nki_calls[k];
    PyObject *engines = PyList_New(0), *params = PyList_New(0);
    bool ok = engines && params;
    for (int e = 0; ok && e < NKI_ENGINES_MAX && def->engines[e] != NISA_ENGINE_NONE; e++) {
      PyObject *name = PyUnicode_FromString(nisa_engine_name(def->engines[e]));
      ok = name && PyList_Append(engines, name) == 0;
      Py_XDECREF(name);
    }
    for (int i = 0; ok && i < nki_n_params(def); i++) {
      PyObject *p = param_object(&def->param[i]);
      ok = p && PyList_Append(params, p) == 0;
      Py_XDECREF(p);
    }
    PyObject *both = ok ? PyTuple_Pack(2, engines, params) : NULL;
    if (!both || PyDict_SetItemString(d, def->name, both) < 0)
      Py_CLEAR(d);
    Py_XDECREF(both);
    Py_XDECREF(engines);
    Py_XDECREF(params);
  }
  return d;
}

/* nki_isa(): {name: function} of the calls of nki.isa. */
static PyObject *isa_functions(PyObject *self, PyObject *unused) {
  static PyMethodDef defs[NKI_CALLS];
  PyObject *d = PyDict_New();
  (void)self, (void)unused;
  for (int k = 0; d && nki_is_users((enum nki_call_kind)k); k++) {
    defs[k] = (PyMethodDef){nki_calls[k].name, PYFUNC(isa_call), METH_VARARGS | METH_KEYWORDS, nki_calls[k].what};
    PyObject *kind = PyLong_FromLong(k), *f = kind ? PyCFunction_New(&defs[k], kind) : NULL;
    if (!f || PyDict_SetItemString(d, nki_calls[k].name, f) < 0)
      Py_CLEAR(d);
    Py_XDECREF(kind);
    Py_XDECREF(f);
  }
  return d;
}

/* nki_report(exception): whether it is a refusal that has become a diagnostic.  In a running Python program it stays an exception,
 * with all of its traceback. */
static PyObject *report_exception(PyObject *self, PyObject *exception) {
  (void)self;
  if (!nki_now || !nki_is_shown(nki_now))
    Py_RETURN_FALSE;
  PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  const bool is = nki_report();
  PyErr_Clear();
  return PyBool_FromLong(is);
}

/* nki_refused(): [(name, whether newer NKI has it, whether beta 1 does, why, what to do), …] */
static PyObject *refused_names(PyObject *self, PyObject *unused) {
  PyObject *list = PyList_New(nki_n_refused);
  (void)self, (void)unused;
  for (int i = 0; list && i < nki_n_refused; i++) {
    const struct nki_refused *x = &nki_refused[i];
    PyObject *o = Py_BuildValue("(sOOss)", x->name, x->newer ? Py_True : Py_False, x->beta1 ? Py_True : Py_False,
                                x->why, x->instead);
    if (!o)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, o);
  }
  return list;
}

/* nki_operators(): {name: whether it takes two values}. */
static PyObject *operators(PyObject *self, PyObject *unused) {
  PyObject *d = PyDict_New();
  (void)self, (void)unused;
  for (int i = 0; d && i < nki_n_ops; i++)
    if (PyDict_SetItemString(d, nki_ops[i].name, nki_ops[i].is == NKI_FUNC ? Py_False : Py_True) < 0)
      Py_CLEAR(d);
  return d;
}

/* nki_redirect(result, view, accumulate): whether the last call, which wrote the new tensor `result`, writes to the view
 * instead (nki_call_redirect).  accumulate is None or a bool. */
static PyObject *redirect(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  PyObject *result, *to, *accumulate;
  (void)self;
  if (!r || !PyArg_ParseTuple(args, "OOO", &result, &to, &accumulate))
    return NULL;
  const struct nki_view *from = nki_view_of(r, result, "result"), *v = from ? nki_view_of(r, to, "dst") : NULL;
  if (!v)
    return NULL;
  return PyBool_FromLong(
      nki_call_redirect(r->program, from->tensor, v, accumulate == Py_None ? -1 : accumulate == Py_True));
}

static PyObject *is_recording(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyBool_FromLong(nki_now != NULL);
}

/* nki_in_order(begins): a block of no_reorder begins or ends. */
static PyObject *in_order(PyObject *self, PyObject *begins) {
  (void)self;
  if (nki_now)
    nki_now->program->in_order += begins == Py_True ? 1 : -1;
  Py_RETURN_NONE;
}

/* nki_target(): "trn2" */
static PyObject *target(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  return r ? PyUnicode_FromString(target_name(r->program->target)) : NULL;
}

/* nki_program(): (the running instance's number on each axis, the sizes of the axes) */
static PyObject *program_now_running(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  if (!r)
    return NULL;
  const struct nki_program *p = r->program;
  const struct nki_instance *x = &p->instances.v[p->instances.n - 1];
  PyObject *ids = PyTuple_New(p->grid.rank), *sizes = PyTuple_New(p->grid.rank);
  for (int i = 0; ids && sizes && i < p->grid.rank; i++) {
    PyTuple_SET_ITEM(ids, i, PyLong_FromLongLong(x->id[i]));
    PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(p->grid.dims[i]));
  }
  return ids && sizes ? Py_BuildValue("(NN)", ids, sizes) : NULL;
}

PyMethodDef nki_methods[] = {
    {"nki_isa", isa_functions, METH_NOARGS, "The calls of nki.isa by name."},
    {"nki_signatures", signatures, METH_NOARGS, "The parameters and engines of the calls of nki.isa by name."},
    {"nki_unknown", set_unknown, METH_O, "nki_unknown(object): what a refused operation gives."},
    {"nki_report", report_exception, METH_O, "nki_report(exception): whether it has become a diagnostic."},
    {"nki_refused", refused_names, METH_NOARGS, "The names of NKI that are not compiled, with why."},
    {"nki_operators", operators, METH_NOARGS, "The operators and functions by name."},
    {"nki_ndarray", nki_make_tensor, METH_VARARGS, "nki_ndarray(shape, dtype, buffer, name, address=None)"},
    {"nki_constant", nki_make_constant, METH_O, "nki_constant(array): a tensor in HBM that has its elements."},
    {"nki_redirect", redirect, METH_VARARGS, "nki_redirect(result, view, accumulate)"},
    {"nki_is_recording", is_recording, METH_NOARGS, "Whether an NKI kernel is running."},
    {"nki_program", program_now_running, METH_NOARGS, "The running instance's numbers, and the sizes of the grid."},
    {"nki_in_order", in_order, METH_O, "nki_in_order(begins): a block begins or ends whose calls stay in their order."},
    {"nki_target", target, METH_NOARGS, "The machine that the running kernel is compiled for."},
    {NULL, NULL, 0, NULL}};
