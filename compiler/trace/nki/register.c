/* register: registers, and loops and branches on the device, for nkx/nki_registers.py.
 *
 * A register is an object of Python whose attribute nki_register is the tensor that it is in the record.
 */
#include "trace/nki/nki.h"
#include "trace/refuse.h"

struct nki_tensor *nki_register_of(struct nki_recorder *r, PyObject *o, bool *is) {
  *is = false;
  if (PyLong_Check(o) || PyFloat_Check(o) || o == Py_None || nki_is_tensor(o))
    return NULL;
  PyObject *t = PyObject_GetAttrString(o, "nki_register");
  PyErr_Clear();
  *is = t && nki_is_tensor(t);
  const struct nki_view *v = *is ? nki_view_of(r, t, "a register") : NULL;
  Py_XDECREF(t);
  return v ? v->tensor : NULL;
}

struct nki_tensor *nki_index_register(struct nki_recorder *r, PyObject *o, bool *is) {
  struct nki_tensor *t = nki_register_of(r, o, is);
  if (t && t->is_typed && t->dtype == DT_F32)
    return trace_refuse(DG_NKI_DTYPE, "load an integer", "an index is the register %s of float32", t->name);
  return t;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static PyObject *object_of(struct nki_recorder *r, struct nki_tensor *t, const struct nki_error *err) {
  if (!t)
    return nki_raise(err);
  const struct nki_view whole = nki_whole(t);
  return nki_wrap(r, &whole);
}

/* nki_register(): a new register, to which nothing has been written. */
static PyObject *new_register(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  if (!r)
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  nki_note_rounds(r);
  return object_of(r, nki_register_new(r->program, nki_variable_here(r), NKI_REGISTER, DT_I32, nki_here(r), &err),
                   &err);
}

static struct nki_value view_value(struct nki_recorder *r, struct nki_tensor *t) {
  const struct nki_view whole = nki_whole(t);
  return (struct nki_value){.kind = NKI_VIEW, .view = arena_dup(r->program->arena, &whole, sizeof whole)};
}

struct nki_tensor *nki_offset_register(struct nki_recorder *r, PyObject *o, const char *what) {
  bool is;
  struct nki_tensor *reg = nki_index_register(r, o, &is);
  if (reg || is)
    return reg;
  if (!nki_is_tensor(o))
    return trace_refuse(DG_NKI_OPERAND, "load it with nisa.register_load",
                        "%s must be a register or a tensor of one element, not %s", what, Py_TYPE(o)->tp_name);
  struct nki_view *v = nki_view_of(r, o, what);
  struct nki_error err = {.arena = r->program->arena};
  struct nki_call load = {.kind = NKI_REGISTER_LOAD, .locs = nki_here(r)};
  if (!v || !nki_plain(v, what))
    return NULL;
  if (dtype_is_float(v->tensor->dtype))
    return trace_refuse(DG_NKI_DTYPE, "use an integer", "%s has the type %s", what, nki_type_name(v->tensor));
  nki_note_rounds(r);
  reg = nki_register_new(r->program, NULL, NKI_REGISTER, DT_I32, load.locs, &err);
  if (!reg)
    return nki_raise(&err);
  load.value[0] = view_value(r, reg);
  load.value[1] = (struct nki_value){.kind = NKI_VIEW, .view = arena_dup(r->program->arena, v, sizeof *v)};
  return nki_call_add(r->program, &load, &err) ? reg : nki_raise(&err);
}

/* Reads a register or a number. */
static bool read_value(struct nki_recorder *r, PyObject *o, const char *what, struct nki_value *out) {
  bool is;
  struct nki_tensor *reg = nki_register_of(r, o, &is);
  if (is && !reg)
    return false;
  if (reg) {
    *out = view_value(r, reg);
    return true;
  }
  if (PyFloat_Check(o)) {
    *out = (struct nki_value){.kind = NKI_FLOAT, .number = PyFloat_AS_DOUBLE(o)};
    return true;
  }
  out->kind = NKI_INT;
  if (!nki_read_int(o, what, &out->integer))
    return false;
  out->number = (double)out->integer;
  return true;
}

/* The new register that the call, which is made now, has as its result.  NULL with *err. */
static struct nki_tensor *make_result(struct nki_recorder *r, struct nki_call *c, struct nki_error *err) {
  c->locs = nki_here(r);
  nki_note_rounds(r);
  struct nki_tensor *dst = nki_register_new(r->program, nki_variable_here(r), NKI_RESULT, DT_I32, c->locs, err);
  if (dst)
    c->value[0] = view_value(r, dst);
  return dst;
}

/* nki_register_alu(op, x, y): a register with the result. */
static PyObject *register_alu(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  struct nki_call c = {.kind = NKI_REGISTER_ALU};
  const char *op;
  PyObject *x, *y;
  (void)self;
  if (!r || !PyArg_ParseTuple(args, "sOO", &op, &x, &y) || !read_value(r, x, "an operand", &c.value[2]) ||
      !read_value(r, y, "an operand", &c.value[3]))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *dst = make_result(r, &c, &err);
  if (!dst)
    return nki_raise(&err);
  c.value[1] = (struct nki_value){.kind = NKI_OP, .op = nki_op_find(op)};
  return nki_call_add(r->program, &c, &err) ? object_of(r, dst, &err) : nki_raise(&err);
}

/* ---- loops and branches ------------------------------------------------------------------------------------------ */

/* nki_device_for(lower, upper, step): the register that counts. */
static PyObject *device_for(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  struct nki_call c = {.kind = NKI_DEVICE_FOR};
  PyObject *lower, *upper;
  int64_t step;
  PyObject *by;
  (void)self;
  if (!r || !PyArg_ParseTuple(args, "OOO", &lower, &upper, &by) || !read_value(r, lower, "lower", &c.value[1]) ||
      !read_value(r, upper, "upper", &c.value[2]) || !nki_read_int(by, "step", &step))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *dst = make_result(r, &c, &err);
  if (!dst)
    return nki_raise(&err);
  c.value[3] = (struct nki_value){.kind = NKI_LIST, .n = 1, .ints = arena_dup(r->program->arena, &step, sizeof step)};
  return nki_region_begin(r->program, &c, r->program->items.n, &err) ? object_of(r, dst, &err) : nki_raise(&err);
}

/* nki_mark(): where the next item will be. */
static PyObject *mark(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  return r ? PyLong_FromLong(r->program->items.n) : NULL;
}

/* Adds a call with a condition, or without. */
static bool add_part(struct nki_recorder *r, enum nki_call_kind kind, PyObject *condition, int begin) {
  struct nki_call c = {.kind = kind, .locs = nki_here(r)};
  struct nki_error err = {.arena = r->program->arena};
  if (condition && !read_value(r, condition, "the condition", &c.value[0]))
    return false;
  nki_note_rounds(r);
  const bool ok = nki_region_of(&c) == NKI_BEGINS ? nki_region_begin(r->program, &c, begin, &err)
                                                  : nki_region_go_on(r->program, &c, &err);
  if (!ok)
    nki_raise(&err);
  return ok;
}

/* nki_device_while(mark, condition): a loop whose condition was recorded from the mark on. */
static PyObject *device_while(PyObject *self, PyObject *args) {
  struct nki_recorder *r = nki_enter();
  PyObject *condition;
  int begin;
  (void)self;
  if (!r || !PyArg_ParseTuple(args, "iO", &begin, &condition) || !add_part(r, NKI_DEVICE_WHILE, NULL, begin) ||
      !add_part(r, NKI_DEVICE_DO, condition, 0))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *device_if(PyObject *self, PyObject *condition) {
  struct nki_recorder *r = nki_enter();
  (void)self;
  if (!r || !add_part(r, NKI_DEVICE_IF, condition, r->program->items.n))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *device_else(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  if (!r || !add_part(r, NKI_DEVICE_ELSE, NULL, 0))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *device_end(PyObject *self, PyObject *unused) {
  struct nki_recorder *r = nki_enter();
  (void)self, (void)unused;
  if (!r)
    return NULL;
  nki_region_end(r->program, nki_here(r));
  Py_RETURN_NONE;
}

/* nki_device_depth(): the loops and branches on the device that are open. */
static PyObject *device_depth(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyLong_FromLong(nki_now ? nki_now->program->n_open : 0);
}

/* nki_device_known(): whether the analysis has found a mistake in a loop or branch on the device. */
static PyObject *device_known(PyObject *self, PyObject *unused) {
  const struct nki_recorder *r = nki_now;
  bool is = false;
  (void)self, (void)unused;
  for (int i = 0; r && i < r->n_findings; i++)
    is |= r->ds->v[r->first_finding + i].code == DG_NKI_DEVICE_LOOP;
  return PyBool_FromLong(is);
}

/* nki_is_local(tensor): whether it was made in a loop or branch on the device that has ended. */
static PyObject *is_local(PyObject *self, PyObject *o) {
  struct nki_recorder *r = nki_enter();
  const struct nki_view *v = r ? nki_view_of(r, o, "a tensor") : NULL;
  (void)self;
  return v ? PyBool_FromLong(!nki_is_open(r->program, v->tensor)) : NULL;
}

PyMethodDef nki_register_methods[] = {
    {"nki_register", new_register, METH_NOARGS, "A new register."},
    {"nki_register_alu", register_alu, METH_VARARGS, "nki_register_alu(op, x, y): a register with the result."},
    {"nki_mark", mark, METH_NOARGS, "Where the next item will be."},
    {"nki_device_for", device_for, METH_VARARGS, "nki_device_for(lower, upper, step): begins a loop; its register."},
    {"nki_device_while", device_while, METH_VARARGS, "nki_device_while(mark, condition): begins the body of a loop."},
    {"nki_device_if", device_if, METH_O, "nki_device_if(condition): begins a branch."},
    {"nki_device_else", device_else, METH_NOARGS, "Begins the other branch."},
    {"nki_device_end", device_end, METH_NOARGS, "Ends the loop or branch."},
    {"nki_device_known", device_known, METH_NOARGS,
     "Whether the analysis has found a mistake in a loop on the device."},
    {"nki_is_local", is_local, METH_O, "Whether a tensor was made in a loop or branch on the device that has ended."},
    {"nki_device_depth", device_depth, METH_NOARGS, "The loops and branches on the device that are open."},
    {NULL, NULL, 0, NULL}};
