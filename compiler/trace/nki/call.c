/* call: the functions of nki.isa, and tensors that a kernel makes. */
#include <string.h>

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

/* ---- arguments --------------------------------------------------------------------------------------------------- */

bool nki_read_int(PyObject *o, const char *what, int64_t *out) {
  PyObject *i = PyNumber_Index(o);
  if (!i) {
    PyErr_Clear();
    if (!refuse_missing(o))
      trace_refuse(DG_NKI_CALL, NULL, "%s must be an integer, not %s", what, Py_TYPE(o)->tp_name);
    return false;
  }
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(i, &overflow);
  Py_DECREF(i);
  if (overflow)
    trace_refuse(DG_NKI_CALL, NULL, "%s is too large", what);
  return !overflow;
}

bool nki_read_ints(PyObject *o, const char *what, bool pairs, int max, int64_t *out, int *n) {
  *n = 0;
  if (!pairs && PyIndex_Check(o))
    return nki_read_int(o, what, &out[(*n)++]);
  PyObject *seq = PySequence_Fast(o, "");
  if (!seq) {
    PyErr_Clear();
    trace_refuse(DG_NKI_CALL, pairs ? "write [[stride, size], …]" : "write (1, 2, …)", "%s must be a sequence, not %s",
                 what, Py_TYPE(o)->tp_name);
    return false;
  }
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(seq); i++) {
    PyObject *x = PySequence_Fast_GET_ITEM(seq, i);
    int got = 0;
    ok = *n + 1 + pairs <= max;
    if (!ok)
      trace_refuse(DG_NKI_CALL, NULL, "%s has more than %d entries", what, pairs ? max / 2 : max);
    else if (!pairs)
      ok = nki_read_int(x, what, &out[(*n)++]);
    else if ((ok = nki_read_ints(x, what, false, 2, &out[*n], &got))) {
      *n += got;
      if (!(ok = got == 2))
        trace_refuse(DG_NKI_CALL, "write [[stride, size], …]", "an entry of %s is no pair", what);
    }
  }
  Py_DECREF(seq);
  return ok;
}

bool nki_read_dtype(PyObject *o, enum dtype *out) {
  *out = dtype_from_py(o);
  if (*out != DT_NONE)
    return true;
  PyErr_Clear();
  if (!refuse_missing(o))
    trace_refuse(DG_NKI_DTYPE, "use a type of nl, such as nl.float32", "%R is not a data type", o);
  return false;
}

bool nki_read_type(struct nki_recorder *r, PyObject *o, enum dtype *out, enum nki_packed *packed) {
  const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  *packed = text ? nki_packed_find(text, out) : NKI_PLAIN;
  PyErr_Clear();
  if (*packed && r->program->target != TARGET_TRN3) {
    trace_refuse(DG_NKI_DTYPE, "choose the target trn3", "%s does not have the type %s",
                 target_name(r->program->target), text);
    return false;
  }
  return *packed || nki_read_dtype(o, out);
}

PyObject *nki_dtype_object(enum dtype t) {
  return (PyObject *)dtype_descr(t);
}

/* "memset(dst, value, engine=None): dst = value" */
static const char *signature(struct arena *a, const struct nki_call_def *def) {
  const char *text = arena_printf(a, "%s(", def->name);
  for (int k = 0; k < nki_n_params(def); k++)
    text =
        arena_printf(a, "%s%s%s%s", text, k ? ", " : "", def->param[k].name, def->param[k].is_optional ? "=None" : "");
  return arena_printf(a, "%s): %s", text, def->what);
}

/* Raises the exception of a name that cannot be used (nkx/nki_names.py).  False if `o` is none. */
static bool refuse_unavailable(PyObject *o) {
  PyObject *module = PyImport_ImportModule("nkx.nki_names");
  PyObject *cls = module ? PyObject_GetAttrString(module, "Unavailable") : NULL;
  const bool is = cls && PyObject_TypeCheck(o, (PyTypeObject *)cls);
  PyErr_Clear();
  PyObject *r = is ? PyObject_CallNoArgs(o) : NULL;
  Py_XDECREF(r);
  Py_XDECREF(module);
  Py_XDECREF(cls);
  return is;
}

/* The name of an operator, an engine or a choice: a str, or what has a `name` or `__name__`.  NULL without an exception. */
static const char *name_of(PyObject *o, PyObject **keep) {
  static const char *const attributes[] = {"name", "__name__"};
  *keep = PyUnicode_Check(o) ? Py_NewRef(o) : NULL;
  for (int i = 0; i < 2 && !*keep; i++) {
    *keep = PyObject_GetAttrString(o, attributes[i]);
    PyErr_Clear();
    if (*keep && !PyUnicode_Check(*keep))
      Py_CLEAR(*keep);
  }
  const char *s = *keep ? PyUnicode_AsUTF8(*keep) : NULL;
  PyErr_Clear();
  return s;
}

static bool read_op(PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  PyObject *keep;
  const char *name = name_of(o, &keep);
  const struct nki_op *op = name ? nki_op_find(name) : NULL;
  const bool wants_function = def->kind == NKI_PARAM_FUNC || (def->kind == NKI_PARAM_ALU && op && op->is_alu);
  if (!op && !refuse_unavailable(o))
    trace_refuse(DG_NKI_OPERATOR, NULL, "%s cannot be %R", def->name, o);
  else if (op && (op->is == NKI_FUNC) != wants_function)
    trace_refuse(DG_NKI_OPERATOR,
                 wants_function ? "use nisa.tensor_tensor or nisa.tensor_scalar" : "use nisa.activation",
                 wants_function ? "%s must be a function of one value, but %s is an operator"
                                : "%s must be an operator of two values, but %s is a function",
                 def->name, op->name);
  *out = (struct nki_value){.kind = NKI_OP, .op = op};
  Py_XDECREF(keep);
  return op && (op->is == NKI_FUNC) == wants_function;
}

static bool read_engine(PyObject *o, enum nisa_engine *out) {
  PyObject *keep;
  const char *name = name_of(o, &keep);
  *out = NISA_ENGINE_NONE;
  bool known = name && !strcmp(name, "unknown");
  for (int e = NISA_ENGINE_NONE + 1; name && e < NISA_ENGINE_COUNT; e++)
    if (!strcmp(nisa_engine_name((enum nisa_engine)e), name)) {
      *out = (enum nisa_engine)e;
      known = true;
    }
  Py_XDECREF(keep);
  if (!known)
    trace_refuse(DG_NKI_CALL, "use nisa.engine.vector, scalar, gpsimd or tensor", "%R is not an engine", o);
  return known;
}

static bool read_number(PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  if (PyLong_Check(o) || PyArray_IsScalar(o, Integer)) {
    if (!nki_read_int(o, def->name, &out->integer))
      return false;
    out->kind = NKI_INT;
    out->number = (double)out->integer;
    return true;
  }
  out->number = PyFloat_AsDouble(o);
  if (out->number == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    if (!refuse_missing(o))
      trace_refuse(DG_NKI_CALL, NULL, "%s must be a number%s, not %s", def->name,
                   def->kind == NKI_PARAM_NUMBER ? " or a tensor" : "", Py_TYPE(o)->tp_name);
    return false;
  }
  out->kind = NKI_FLOAT;
  return true;
}

/* A parameter that has no memories is a register. */
static bool read_register(struct nki_recorder *r, PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  bool is;
  struct nki_tensor *reg = nki_register_of(r, o, &is);
  if (!is && !refuse_missing(o))
    trace_refuse(DG_NKI_OPERAND, "make one with nisa.register_alloc", "%s must be a register, not %s", def->name,
                 Py_TYPE(o)->tp_name);
  if (!reg)
    return false;
  const struct nki_view whole = nki_whole(reg);
  *out = (struct nki_value){.kind = NKI_VIEW, .view = arena_dup(r->program->arena, &whole, sizeof whole)};
  return true;
}

static bool read_register_or_number(struct nki_recorder *r, PyObject *o, const struct nki_param_def *def,
                                    struct nki_value *out) {
  bool is;
  (void)nki_register_of(r, o, &is);
  PyErr_Clear();
  return is ? read_register(r, o, def, out) : read_number(o, def, out);
}

static bool read_view(struct nki_recorder *r, PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  const struct nki_view *v = nki_view_of(r, o, def->name);
  if (!v)
    return false;
  *out = (struct nki_value){.kind = NKI_VIEW, .view = arena_dup(r->program->arena, v, sizeof *v)};
  return true;
}

static bool read_list(struct nki_recorder *r, PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  enum { MOST = 32 }; /* the entries of a shuffle_mask */
  int64_t v[MOST];
  const bool pairs = !strcmp(def->name, "pattern");
  *out = (struct nki_value){.kind = NKI_LIST};
  if (!nki_read_ints(o, def->name, pairs, MOST, v, &out->n))
    return false;
  out->ints = arena_dup(r->program->arena, v, (size_t)out->n * sizeof *v);
  return true;
}

static bool read_flag(PyObject *o, struct nki_value *out) {
  const int truth = PyObject_IsTrue(o);
  *out = (struct nki_value){.kind = NKI_FLAG, .integer = truth > 0};
  return truth >= 0;
}

static bool read_word(struct nki_recorder *r, PyObject *o, struct nki_value *out) {
  PyObject *keep = NULL, *text = NULL;
  const char *name = name_of(o, &keep);
  if (!name && (text = PyObject_Str(o)))
    name = PyUnicode_AsUTF8(text);
  *out = (struct nki_value){.kind = NKI_WORD, .word = name ? arena_strdup(r->program->arena, name) : NULL};
  Py_XDECREF(keep);
  Py_XDECREF(text);
  return name;
}

static bool read_argument(struct nki_recorder *r, struct nki_call *c, int k, PyObject *o) {
  const struct nki_param_def *def = &nki_def(c)->param[k];
  struct nki_value *out = &c->value[k];
  if (o == Py_None && def->is_optional)
    return true;
  switch (def->kind) {
  case NKI_PARAM_DST:
  case NKI_PARAM_SRC:
    return def->memories ? read_view(r, o, def, out) : read_register(r, o, def, out);
  case NKI_PARAM_NUMBER:
    if (!def->memories)
      return read_register_or_number(r, o, def, out);
    return nki_is_tensor(o) ? read_view(r, o, def, out) : read_number(o, def, out);
  case NKI_PARAM_CONST:
    return read_number(o, def, out);
  case NKI_PARAM_OP:
  case NKI_PARAM_ALU:
  case NKI_PARAM_FUNC:
    return read_op(o, def, out);
  case NKI_PARAM_FLAG:
    return read_flag(o, out);
  case NKI_PARAM_INTS:
    return read_list(r, o, def, out);
  case NKI_PARAM_ENGINE:
    return read_engine(o, &c->engine);
  case NKI_PARAM_WORD:
    return read_word(r, o, out);
  case NKI_PARAM_END:
    break;
  }
  return false;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static bool refuse_keyword(struct nki_recorder *r, const struct nki_call_def *def, PyObject *key) {
  const bool mask = PyUnicode_CompareWithASCIIString(key, "mask") == 0;
  if (mask || PyUnicode_CompareWithASCIIString(key, "dtype") == 0)
    trace_refuse(mask ? DG_NKI_MASK_REMOVED : DG_NKI_REMOVED_API,
                 mask ? "slice the operands to the part that is wanted" : "the result has the type of dst",
                 "nisa.%s has no %U: that is beta 1", def->name, key);
  else
    trace_refuse(DG_NKI_CALL, signature(r->program->arena, def), "nisa.%s has no parameter \"%U\"", def->name, key);
  return false;
}

static int find_param(const struct nki_call_def *def, PyObject *key) {
  for (int k = 0; k < nki_n_params(def); k++)
    if (PyUnicode_CompareWithASCIIString(key, def->param[k].name) == 0)
      return k;
  return -1;
}

static bool bind(struct nki_recorder *r, struct nki_call *c, PyObject *args, PyObject *kw) {
  const struct nki_call_def *def = nki_def(c);
  PyObject *given[NKI_PARAMS_MAX] = {NULL}, *key, *value;
  const int n = nki_n_params(def);
  Py_ssize_t pos = 0;
  if (PyTuple_GET_SIZE(args) > n) {
    trace_refuse(DG_NKI_CALL, NULL, "nisa.%s has %d parameters, but %zd arguments are given", def->name, n,
                 PyTuple_GET_SIZE(args));
    return false;
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); k++)
    given[k] = PyTuple_GET_ITEM(args, k);
  while (kw && PyDict_Next(kw, &pos, &key, &value)) {
    const int k = find_param(def, key);
    if (k < 0 && PyUnicode_CompareWithASCIIString(key, "name") == 0)
      continue;
    if (k < 0)
      return refuse_keyword(r, def, key);
    if (given[k]) {
      trace_refuse(DG_NKI_CALL, NULL, "nisa.%s: \"%s\" is given twice", def->name, def->param[k].name);
      r->wrong = def->param[k].name;
      return false;
    }
    given[k] = value;
  }
  for (int k = 0; k < n; k++) {
    if (!given[k] && !def->param[k].is_optional) {
      trace_refuse(DG_NKI_CALL, signature(r->program->arena, def), "nisa.%s: \"%s\" is missing", def->name,
                   def->param[k].name);
      return false;
    }
    r->wrong = def->param[k].name;
    if (given[k] && !read_argument(r, c, k, given[k]))
      return false;
    r->wrong = NULL;
  }
  return true;
}

/* Row numbers of an operand x become the operand x_index of the call. */
static bool bind_rows(struct nki_recorder *r, struct nki_call *c) {
  const struct nki_call_def *def = nki_def(c);
  for (int k = 0; k < nki_n_params(def); k++) {
    if (c->value[k].kind != NKI_VIEW || !c->value[k].view->rows)
      continue;
    const char *name = arena_printf(r->program->arena, "%s_index", def->param[k].name);
    int to = 0;
    while (to < nki_n_params(def) && strcmp(def->param[to].name, name) != 0)
      to++;
    if (to == nki_n_params(def)) {
      trace_refuse(DG_NKI_OPERAND, "copy the rows to SBUF with nisa.dma_copy first",
                   "%s of nisa.%s cannot be rows that are selected by number", def->param[k].name, def->name);
      return false;
    }
    c->value[to] = (struct nki_value){.kind = NKI_VIEW, .view = c->value[k].view->rows};
    c->value[k].view->rows = NULL;
  }
  return true;
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

/* Makes the call whose number is `kind`. */
static PyObject *isa_call(PyObject *kind, PyObject *args, PyObject *kw) {
  struct nki_recorder *r = nki_enter();
  struct nki_call c = {.kind = (enum nki_call_kind)PyLong_AsLong(kind)};
  if (!r)
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  bool ok = bind(r, &c, args, kw) && bind_rows(r, &c);
  if (ok) {
    c.locs = nki_here(r);
    nki_note_rounds(r);
    ok = nki_call_add(r->program, &c, &err);
    if (!ok) {
      nki_raise(&err);
      r->wrong = blamed(nki_def(&c), err.text);
    }
  }
  return ok || nki_report() ? Py_NewRef(Py_None) : NULL;
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

/* nki_operators(): {name: whether it takes two values}. */
static PyObject *operators(PyObject *self, PyObject *unused) {
  PyObject *d = PyDict_New();
  (void)self, (void)unused;
  for (int i = 0; d && i < nki_n_ops; i++)
    if (PyDict_SetItemString(d, nki_ops[i].name, nki_ops[i].is == NKI_FUNC ? Py_False : Py_True) < 0)
      Py_CLEAR(d);
  return d;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static bool read_buffer(PyObject *o, enum mem_space *out) {
  PyObject *keep;
  const char *name = name_of(o, &keep);
  bool known = false;
  for (int s = MEM_HBM; name && s < NISA_SPACES; s++)
    if (!strcmp(nisa_space_name((enum mem_space)s), name)) {
      *out = (enum mem_space)s;
      known = true;
    }
  if (name && !strcmp(name, "private_hbm")) {
    *out = MEM_HBM;
    known = true;
  }
  Py_XDECREF(keep);
  if (!known)
    trace_refuse(DG_NKI_MEMORY, "use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm", "%R is not a memory", o);
  return known;
}

const char *nki_variable_here(struct nki_recorder *r) {
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  const char *name = NULL;
  while (f && f != r->base) {
    PyCodeObject *code = PyFrame_GetCode(f);
    const bool is_users = ranges_has_code(r->ranges, code);
    if (is_users)
      name = bytecode_stored_name(code, PyFrame_GetLasti(f));
    name = name ? arena_strdup(r->program->arena, name) : NULL;
    Py_DECREF(code);
    PyFrameObject *back = is_users ? NULL : PyFrame_GetBack(f);
    Py_DECREF(f);
    f = back;
  }
  Py_XDECREF(f);
  return name;
}

/* Puts the tensor at an address: (partition, byte), or what a function of its partitions and its bytes in each says. */
static bool place_tensor(struct nki_recorder *r, struct nki_tensor *t, PyObject *address) {
  struct nki_error err = {.arena = r->program->arena};
  int64_t at[2];
  int n = 0;
  if (PyCallable_Check(address)) {
    const long long bytes = (long long)nki_tensor_extent(t) * (long long)dtype_size(t->dtype);
    PyObject *o = PyObject_CallFunction(address, "LL", (long long)t->dims[0], bytes);
    const bool ok = o && place_tensor(r, t, o);
    Py_XDECREF(o);
    return ok;
  }
  r->wrong = "address";
  if (!nki_read_ints(address, "address", false, 2, at, &n))
    return false;
  if (n != 2)
    return trace_refuse(DG_NKI_ADDRESS, "write (partition, byte)", "an address of %d number", n);
  return nki_tensor_place(r->program, t, at[0], at[1], &err) || nki_raise(&err);
}

/* nki_ndarray(shape, dtype, buffer, name, address): address is None, or as above */
static PyObject *make_tensor(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  PyObject *shape, *dtype, *buffer, *address = Py_None;
  const char *name;
  int64_t dims[NKI_RANK_MAX];
  enum dtype t;
  enum mem_space space;
  int n;
  (void)self;
  if (!r || !PyArg_ParseTuple(args, "OOOz|O", &shape, &dtype, &buffer, &name, &address))
    return NULL;
  r->wrong = "shape";
  if (!nki_read_ints(shape, "shape", false, NKI_RANK_MAX, dims, &n))
    return NULL;
  r->wrong = "dtype";
  enum nki_packed packed;
  if (!nki_read_type(r, dtype, &t, &packed))
    return NULL;
  r->wrong = "buffer";
  if (!read_buffer(buffer, &space))
    return NULL;
  r->wrong = "shape";
  struct nki_error err = {.arena = r->program->arena};
  nki_note_rounds(r);
  struct nki_tensor *made =
      nki_tensor_make(r->program, name && *name ? name : nki_variable_here(r), t, space, n, dims, nki_here(r), &err);
  if (!made)
    return nki_raise(&err);
  made->packed = packed;
  if (address != Py_None && !place_tensor(r, made, address))
    return NULL;
  r->wrong = NULL;
  const struct nki_view whole = nki_whole(made);
  return nki_wrap(r, &whole);
}

/* nki_constant(array): a tensor in HBM that has its elements. */
static PyObject *make_constant(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_enter();
  int64_t dims[NKI_RANK_MAX];
  (void)self;
  if (!r)
    return NULL;
  PyArrayObject *a = (PyArrayObject *)PyArray_FROM_OF(o, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_NOTSWAPPED);
  if (!a)
    return NULL;
  const enum dtype t = dtype_from_num(PyArray_TYPE(a));
  const int n = PyArray_NDIM(a);
  if (t == DT_NONE || t == DT_BOOL || dtype_narrow(t) != t || n < 1 || n > NKI_RANK_MAX) {
    trace_refuse(DG_NKI_DTYPE, "give an array of 1 to 8 dimensions, of a type of nl other than bool_",
                 "a constant cannot have the type %R and %d dimensions", PyArray_DESCR(a), n);
    Py_DECREF(a);
    return NULL;
  }
  for (int k = 0; k < n; k++)
    dims[k] = PyArray_DIM(a, k);
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *made =
      nki_tensor_new(r->program, nki_variable_here(r), t, MEM_HBM, n, dims, -1, nki_here(r), &err);
  if (made)
    made->initial = arena_dup(r->program->arena, PyArray_DATA(a), (size_t)PyArray_NBYTES(a));
  Py_DECREF(a);
  if (!made)
    return nki_raise(&err);
  const struct nki_view whole = nki_whole(made);
  return nki_wrap(r, &whole);
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
    {"nki_operators", operators, METH_NOARGS, "The operators and functions by name."},
    {"nki_ndarray", make_tensor, METH_VARARGS, "nki_ndarray(shape, dtype, buffer, name, address=None)"},
    {"nki_constant", make_constant, METH_O, "nki_constant(array): a tensor in HBM that has its elements."},
    {"nki_redirect", redirect, METH_VARARGS, "nki_redirect(result, view, accumulate)"},
    {"nki_is_recording", is_recording, METH_NOARGS, "Whether an NKI kernel is running."},
    {"nki_program", program_now_running, METH_NOARGS, "The running instance's numbers, and the sizes of the grid."},
    {"nki_target", target, METH_NOARGS, "The machine that the running kernel is compiled for."},
    {NULL, NULL, 0, NULL}};
