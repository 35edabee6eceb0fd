#include "trace/counting.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* The iterator of one loop.  It is in the list of running loops from its first element to its end. */
struct counter {
  PyObject_HEAD;
  PyObject *inner; /* the iterator over the elements; NULL for `while` */
  PyObject *place;
  const void *frame; /* the loop's frame; only compared */
  uint64_t serial;
  int round;
  bool has_begun; /* of `while` */
  bool is_independent;
  struct counter *outer, *next; /* in the list: the loop that began before, and the one that began after */
};

static struct counter *newest; /* of the list of running loops */
static struct counter *oldest;
static uint64_t serials; /* of runs; never reused */

static bool is_listed(const struct counter *c) {
  return c->frame;
}

static void enlist(struct counter *c) {
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  c->frame = frame;
  c->serial = ++serials;
  Py_XDECREF(frame);
  if (!frame)
    return;
  c->outer = newest;
  c->next = NULL;
  *(newest ? &newest->next : &oldest) = c;
  newest = c;
}

static void delist(struct counter *c) {
  if (!is_listed(c))
    return;
  *(c->outer ? &c->outer->next : &oldest) = c->next;
  *(c->next ? &c->next->outer : &newest) = c->outer;
  c->frame = NULL;
}

static void bump(struct counter *c) {
  c->round += c->round < INT_MAX;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

/* Of `while`: one element, during which the loop runs. */
static PyObject *next_once(struct counter *c) {
  if (c->has_begun) {
    delist(c);
    return NULL;
  }
  c->has_begun = true;
  enlist(c);
  return PyTuple_New(0);
}

static PyObject *counter_next(PyObject *self) {
  struct counter *c = (struct counter *)self;
  if (!c->inner)
    return next_once(c);
  if (!is_listed(c))
    enlist(c);
  bump(c); /* before the element is made: iterating over a tensor records an operation */
  PyObject *item = Py_TYPE(c->inner)->tp_iternext(c->inner);
  if (!item)
    delist(c);
  return item;
}

static int counter_traverse(PyObject *self, visitproc visit, void *arg) {
  struct counter *c = (struct counter *)self;
  Py_VISIT(c->inner);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

static void counter_dealloc(PyObject *self) {
  struct counter *c = (struct counter *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delist(c);
  Py_CLEAR(c->inner);
  Py_CLEAR(c->place);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_iter, PyObject_SelfIter},
                              {Py_tp_iternext, counter_next},
                              {Py_tp_traverse, counter_traverse},
                              {Py_tp_dealloc, counter_dealloc},
                              {0, NULL}};
static PyType_Spec spec = {.name = "nkx.counter",
                           .basicsize = sizeof(struct counter),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};
static PyTypeObject *type;

/* inner: taken over; NULL for `while`. */
static PyObject *new_counter(PyObject *inner, PyObject *place) {
  struct counter *c = PyObject_GC_New(struct counter, type);
  if (!c) {
    Py_XDECREF(inner);
    return NULL;
  }
  c->inner = inner;
  c->place = Py_NewRef(place);
  c->frame = NULL;
  c->round = -1;
  c->has_begun = c->is_independent = false;
  c->outer = c->next = NULL;
  PyObject_GC_Track((PyObject *)c);
  return (PyObject *)c;
}

/* ---- the builtins ------------------------------------------------------------------------------------------------ */

static PyObject *each(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  (void)self;
  assert(n == 2);
  (void)n;
  PyObject *inner = PyObject_GetIter(args[0]), *of = (PyObject *)Py_TYPE(args[0]);
  if (!inner || PyObject_HasAttrString(of, "nkx_runs_once"))
    return inner;
  struct counter *c = (struct counter *)new_counter(inner, args[1]);
  if (c)
    c->is_independent = PyObject_HasAttrString(of, "nkx_is_independent");
  return (PyObject *)c;
}

static PyObject *once(PyObject *self, PyObject *place) {
  (void)self;
  return new_counter(NULL, place);
}

/* Returns the innermost running loop of the current frame, which is a `while`. */
static struct counter *innermost(void) {
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  struct counter *c = newest;
  while (c && c->frame != frame)
    c = c->outer;
  Py_XDECREF(frame);
  return c;
}

static PyObject *begin_round(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  struct counter *c = innermost();
  if (c)
    bump(c);
  Py_RETURN_TRUE;
}

/* Ends the loop before its `else`. */
static PyObject *end_rounds(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  struct counter *c = innermost();
  if (c)
    delist(c);
  Py_RETURN_NONE;
}

static PyMethodDef builtins[] = {{"nkx.each", PYFUNC(each), METH_FASTCALL, NULL},
                                 {"nkx.once", once, METH_O, NULL},
                                 {"nkx.round", begin_round, METH_NOARGS, NULL},
                                 {"nkx.end", end_rounds, METH_NOARGS, NULL}};

bool counting_init(void) {
  type = (PyTypeObject *)PyType_FromSpec(&spec);
  PyObject *all = type ? PyEval_GetBuiltins() : NULL;
  for (size_t i = 0; all && i < sizeof builtins / sizeof *builtins; i++) {
    PyObject *f = PyCFunction_New(&builtins[i], NULL);
    if (!f || PyDict_SetItemString(all, builtins[i].ml_name, f) < 0)
      all = NULL;
    Py_XDECREF(f);
  }
  return all;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

bool counting_any(void) {
  return oldest;
}

int counting_loops(const PyFrameObject *frame, struct counting_loop *out, int max) {
  int n = 0;
  for (const struct counter *c = oldest; c; c = c->next) {
    if (c->frame != frame)
      continue;
    if (n < max)
      out[n] = (struct counting_loop){c->place, c->round};
    n++;
  }
  return n;
}

int counting_runs(uint64_t after, struct counting_run *out, int max) {
  int n = 0;
  for (const struct counter *c = oldest; c && n < max; c = c->next)
    if (c->serial > after)
      out[n++] = (struct counting_run){c->serial, c->round, c->is_independent};
  return n;
}

uint64_t counting_serial(void) {
  return serials;
}

PyObject *counting_compile(const char *text, PyObject *filename) {
  if (!strstr(text, "for") && !strstr(text, "while") && !strstr(text, "register_")) /* branches on registers, too */
    return NULL;
  PyObject *module = PyImport_ImportModule("nkx.rounds");
  PyObject *code = module ? PyObject_CallMethod(module, "compiled", "sO", text, filename) : NULL;
  Py_XDECREF(module);
  PyErr_Clear();
  if (code == Py_None)
    Py_CLEAR(code);
  return code;
}
