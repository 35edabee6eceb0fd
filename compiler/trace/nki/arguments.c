/* arguments: from Python's arguments of a call of nki.isa to the values of its parameters. */
#include <string.h>

#include "nki/order.h"
#include "trace/nki/nki.h"
#include "trace/operand.h"
#include "trace/refuse.h"

/* ---- what is read ------------------------------------------------------------------------------------------------ */

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
    trace_refuse(DG_NKI_ARGUMENT, "use a float, or a smaller number", "the integer %s needs more than 64 bits", what);
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
      trace_refuse(DG_NKI_SIZE_LIMIT, "merge dimensions or entries, or split the call",
                   "%s has %zd entries, but at most %d are possible", what, PySequence_Fast_GET_SIZE(seq),
                   pairs ? max / 2 : max);
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

/* Raises the exception of a name that cannot be used (nkx/nki_names.py).  False if `o` is none. */
static bool refuse_unavailable(PyObject *o) {
  PyObject *module = PyImport_ImportModule("nkx.nki_names");
  PyObject *cls = module ? PyObject_GetAttrString(module, "Unavailable") : NULL;
  const bool is = cls && PyObject_TypeCheck(o, (PyTypeObject *)cls);
  PyErr_Clear();
  PyObject *r = is ? PyObject_CallMethod(o, "_refuse", NULL) : NULL;
  Py_XDECREF(r);
  Py_XDECREF(module);
  Py_XDECREF(cls);
  return is;
}

bool nki_read_dtype(PyObject *o, enum dtype *out) {
  *out = dtype_from_py(o);
  if (*out != DT_NONE && !dtype_is_complex(*out))
    return true;
  PyErr_Clear();
  if (!refuse_unavailable(o) && !refuse_missing(o))
    trace_refuse(DG_NKI_DTYPE, "use a type of nl, such as nl.float32", "%R is not a data type", o);
  return false;
}

bool nki_read_type(struct nki_recorder *r, PyObject *o, enum dtype *out, enum nki_packed *packed) {
  const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
  *packed = text ? nki_packed_find(text, out) : NKI_PLAIN;
  PyErr_Clear();
  if (nki_is_packed(*packed) && r->program->target != TARGET_TRN3) {
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

const char *nki_name_of(PyObject *o, PyObject **keep) {
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

/* What is no operator: a function of nl that no engine has, or another object. */
static void refuse_operator(const struct nki_param_def *def, PyObject *o, const char *name) {
  const bool is_not = name && (!strcmp(name, "logical_not") || !strcmp(name, "invert"));
  const char *remedy = is_not ? "write op=nl.equal with operand 0, or call nl.logical_not"
                              : "use an operator of nl, such as nl.add or nl.maximum, or a function, such as nl.exp";
  if (PyCallable_Check(o) && name)
    trace_refuse(DG_NKI_OPERATOR, remedy, "%s cannot be %s, which no engine has", def->name, name);
  else
    trace_refuse(DG_NKI_OPERATOR, remedy, "%s cannot be %R", def->name, o);
}

static bool read_op(PyObject *o, const struct nki_param_def *def, struct nki_value *out) {
  PyObject *keep;
  const char *name = nki_name_of(o, &keep);
  const struct nki_op *op = name ? nki_op_find(name) : NULL;
  const bool wants_function = def->kind == NKI_PARAM_FUNC || (def->kind == NKI_PARAM_ALU && op && op->is_alu);
  if (!op && !refuse_unavailable(o))
    refuse_operator(def, o, name);
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
  const char *name = nki_name_of(o, &keep);
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
  const char *name = nki_name_of(o, &keep);
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

/* name=: how a schedule calls the call. */
static bool read_name(struct nki_recorder *r, struct nki_call *c, PyObject *value) {
  if (value == Py_None || (PyUnicode_Check(value) && !PyUnicode_GET_LENGTH(value)))
    return true;
  const char *name = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;
  if (!name) {
    PyErr_Clear(); /* it cannot be written as UTF-8 */
    trace_refuse(DG_NKI_CALL, NULL, "name of nisa.%s is not a string", nki_def(c)->name);
    r->wrong = "name";
    return false;
  }
  nki_order_name(r->program, c, arena_strdup(r->program->arena, name));
  return true;
}

static bool bind_params(struct nki_recorder *r, struct nki_call *c, PyObject *args, PyObject *kw, bool unknown) {
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
    if (k < 0 && PyUnicode_CompareWithASCIIString(key, "name") == 0) {
      if (!read_name(r, c, value))
        return false;
      continue;
    }
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
    if (given[k] && !(unknown && nki_holds_unknown(given[k])) && !read_argument(r, c, k, given[k]))
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

bool nki_bind(struct nki_recorder *r, struct nki_call *c, PyObject *args, PyObject *kw, bool unknown) {
  return bind_params(r, c, args, kw, unknown) && bind_rows(r, c);
}
