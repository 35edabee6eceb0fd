/* loop: traces fori_loop(lower, upper, body, init) as an HLO while.  The body is traced once.
 *
 * The loop's state is one tuple: the counter (s32), the values that the body carries from one iteration to the next,
 * and the values that it reads from outside, which do not change.  They are in the tuple because an HLO computation can
 * read only its parameters.  Which values are read is known only after the body has run, so the tuple grows while the
 * body is traced.  A constant is not put in the tuple; it is repeated in the body.
 *
 *     while (s32[] i, carried…, outside…)   condition: i < upper   body: (i + 1, body(i, carried), outside…)
 *
 * The body runs in Python exactly once, with a LoopIndex (loop_index.c) as i and new tensors for the carried values.
 * As in NumPy, if a body writes into a carried tensor and returns it, the result is the caller's own object.
 */
#include "trace/loop.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "trace/args.h"
#include "trace/array.h"
#include "trace/operand.h"
#include "trace/ops.h"
#include "trace/refuse.h"

/* ---- values from outside ------------------------------------------------------------------------------------- */

/* Adds an element to the loop's state, and returns its value in the body. */
static hlo_val add_element(struct tracer *tr, struct loop *l, const struct hlo_shape *s) {
  struct hlo_computation *here = tr->b.computation;
  array_push(tr->a, &l->elems, *s);
  l->state->shape.elems = l->elems.v;
  l->state->shape.n_elems = l->elems.n;
  tr->b.computation = l->body;
  hlo_val v = hlo_tuple_element(&tr->b, l->state, l->elems.n - 1);
  tr->b.computation = here;
  return v;
}

/* True for a scalar constant or a broadcast of one.  It is cheap to repeat, and clearer in the body than an element of
 * the state. */
static bool is_constant(hlo_val v) {
  if (v->op == HLO_BROADCAST)
    v = v->operands[0];
  return v->op == HLO_CONSTANT && !v->shape.rank;
}

/* Repeats v, a constant or a broadcast of one, in the loop's body. */
static hlo_val repeat(struct tracer *tr, struct loop *l, hlo_val v) {
  struct hlo_computation *here = tr->b.computation;
  tr->b.computation = l->body;
  hlo_val c = v->op == HLO_BROADCAST ? v->operands[0] : v;
  hlo_val r = hlo_constant(&tr->b, c->shape, c->attrs->literal->data);
  if (v->op == HLO_BROADCAST)
    r = hlo_broadcast(&tr->b, r, v->shape.rank, v->shape.dims, v->attrs->dimensions.v);
  tr->b.computation = here;
  return r;
}

/* Returns the value in l's body (or in the kernel, if l is NULL) that is equal to v.  Returns NULL if v belongs neither
 * to that computation nor to one that encloses it. */
static hlo_val see(struct tracer *tr, struct loop *l, hlo_val v) {
  if (!l)
    return v->parent == tr->b.module->entry ? v : NULL;
  if (v->parent == l->body)
    return v;
  for (int k = 0; k < l->seen.n; k++)
    if (l->seen.v[k].outside == v)
      return l->seen.v[k].inside;
  hlo_val out = see(tr, l->outer, v);
  if (!out)
    return NULL;
  hlo_val in = is_constant(out) ? repeat(tr, l, out) : add_element(tr, l, &out->shape);
  array_push(tr->a, &l->seen, (struct seen){v, in});
  if (!is_constant(out))
    array_push(tr->a, &l->init, out);
  return in;
}

hlo_val loop_see(struct tracer *tr, hlo_val v) {
  hlo_val r = see(tr, tr->loop, v);
  if (!r && !tr->b.err.code)
    trace_refuse(DG_BAD_ARGUMENT, "return it from the body: what a loop computes leaves it as the carried value",
                 "a tensor that was made in the body of a fori_loop is used outside of that body");
  return r;
}

bool loop_may_write(struct tracer *tr, const struct tensor *t) {
  if (t->v->parent == tr->b.computation)
    return true;
  trace_refuse(DG_UNSUPPORTED_INDEX, "carry it: give it to fori_loop in init, and return it from the body",
               "the body of a fori_loop writes to a tensor from outside of it");
  return false;
}

/* ---- carried values -------------------------------------------------------------------------------------- */

struct carried {
  int n;
  bool is_tuple;
  PyObject **init;    /* from the caller, borrowed */
  hlo_val *value;     /* the values of init */
  hlo_val *inside;    /* the values at the start of the body */
  PyObject **given;   /* the tensors that are passed to the body, owned */
  PyObject *returned; /* the object that the body returned, owned */
  PyObject **result;  /* the parts of `returned`, borrowed */
};

/* Returns the value of one part of init.  Python numbers become float32, the usual type for the initial value of a
 * sum. */
static hlo_val init_value(struct tracer *tr, PyObject *o) {
  struct operand x;
  if (PyBool_Check(o))
    return hlo_scalar(&tr->b, DT_BOOL, o == Py_True);
  if (!operand_read(tr, o, &x))
    return NULL;
  hlo_val v = x.array ? operand_array(tr, &x) : operand_val(tr, &x, x.weak ? DT_F32 : x.dtype);
  operand_clear(&x);
  return v;
}

static bool read_init(struct tracer *tr, PyObject *init, struct carried *c) {
  c->is_tuple = PyTuple_Check(init);
  if (PyList_Check(init) || PyDict_Check(init)) {
    trace_refuse(DG_BAD_ARGUMENT, "give a tensor, or a tuple of tensors", "fori_loop: init must not be a %s",
                 Py_TYPE(init)->tp_name);
    return false;
  }
  c->n = c->is_tuple ? (int)PyTuple_GET_SIZE(init) : 1;
  c->init = arena_new_array(tr->a, PyObject *, (size_t)c->n);
  c->value = arena_new_array(tr->a, hlo_val, (size_t)c->n);
  c->inside = arena_new_array(tr->a, hlo_val, (size_t)c->n);
  c->given = arena_new_array(tr->a, PyObject *, (size_t)c->n);
  c->result = arena_new_array(tr->a, PyObject *, (size_t)c->n);
  for (int k = 0; k < c->n; k++) {
    c->init[k] = c->is_tuple ? PyTuple_GET_ITEM(init, k) : init;
    if (!(c->value[k] = init_value(tr, c->init[k])))
      return false;
  }
  return true;
}

/* Returns the tensors in the form that the body receives and fori_loop returns: one tensor, or a tuple. */
static PyObject *pack(const struct carried *c, PyObject **v) {
  if (!c->is_tuple)
    return Py_NewRef(v[0]);
  PyObject *t = PyTuple_New(c->n);
  for (int k = 0; t && k < c->n; k++)
    PyTuple_SET_ITEM(t, k, Py_NewRef(v[k]));
  return t;
}

static const char *type_text(struct tracer *tr, const struct hlo_shape *s) {
  char dims[DIMS_TEXT_MAX];
  return arena_printf(tr->a, "%s %s", dtype_numpy_name(s->dtype), dims_text(s->rank, s->dims, dims));
}

/* Returns carried value k at the end of the body.  It must have the same type as at the start. */
static hlo_val result_value(struct tracer *tr, const struct carried *c, int k) {
  const struct hlo_shape *want = &c->value[k]->shape;
  struct operand x;
  if (!operand_read(tr, c->result[k], &x))
    return NULL;
  const bool is_number = x.weak && !x.v;
  const struct hlo_shape got = {.dtype = is_number ? want->dtype : operand_dtype(&x), .rank = x.rank, .dims = x.dims};
  const char *which = c->is_tuple ? arena_printf(tr->a, "carried value %d", k) : "the carried value";
  hlo_val v = NULL;
  if (!hlo_shape_same_dims(&got, want))
    trace_refuse(DG_SHAPE_MISMATCH,
                 "give init the shape that the body returns: every iteration must leave it as it was",
                 "fori_loop: %s is %s, but the body returns %s", which, type_text(tr, want), type_text(tr, &got));
  else if (got.dtype != want->dtype)
    trace_refuse(DG_DTYPE_PROMOTION, "give init that dtype, or convert what the body returns with .astype",
                 "fori_loop: %s is %s, but the body returns %s", which, type_text(tr, want), type_text(tr, &got));
  else
    v = operand_val(tr, &x, want->dtype);
  operand_clear(&x);
  return v;
}

static bool read_results(struct carried *c) {
  PyObject *r = c->returned;
  if (c->is_tuple && (!PyTuple_Check(r) || PyTuple_GET_SIZE(r) != c->n)) {
    trace_refuse(DG_BAD_ARGUMENT, "return a tuple with one entry per carried value",
                 PyTuple_Check(r) ? "fori_loop: init has %d values, but the body returns a tuple of %zd"
                                  : "fori_loop: init is a tuple of %d, but the body returns another type",
                 c->n, PyTuple_Check(r) ? PyTuple_GET_SIZE(r) : 0);
    return false;
  }
  if (!c->is_tuple && (PyTuple_Check(r) || r == Py_None)) {
    trace_refuse(DG_BAD_ARGUMENT, "return the new value of what the loop carries",
                 "fori_loop: the body must return one tensor, not a %s", r == Py_None ? "None" : "tuple");
    return false;
  }
  for (int k = 0; k < c->n; k++)
    c->result[k] = c->is_tuple ? PyTuple_GET_ITEM(r, k) : r;
  return true;
}

/* ---- the computations ---------------------------------------------------------------------------------------- */

static void begin(struct tracer *tr, struct loop *l, int64_t lower, int64_t upper) {
  struct hlo_module *m = tr->b.module;
  struct hlo_shape counter = {.dtype = DT_I32}, none = {.dtype = DT_TUPLE};
  *l = (struct loop){.outer = tr->loop, .serial = ++tr->n_loops, .lower = lower, .upper = upper};
  array_push(tr->a, &l->init, hlo_scalar(&tr->b, DT_I32, (double)lower));
  l->body = hlo_computation_new(m, arena_printf(tr->a, "fori_loop_%llu_body", (unsigned long long)l->serial));
  l->around = tr->b.computation;
  l->last_fuse = m->last_fuse;
  tr->b.computation = l->body;
  l->state = hlo_parameter(&tr->b, "state", none);
  tr->loop = l;
  l->index = l->state ? add_element(tr, l, &counter) : NULL;
}

/* Returns to the computation around the loop.  If the body failed, removes what later stages would read from it. */
static void end(struct tracer *tr, struct loop *l, bool ok) {
  assert(tr->loop == l && tr->b.computation == l->body);
  struct hlo_module *m = tr->b.module;
  tr->b.computation = l->around;
  tr->loop = l->outer;
  if (ok) {
    hlo_computation_move_last(l->body);
    return;
  }
  struct unfinished *u = arena_new(tr->a, struct unfinished);
  *u = (struct unfinished){l->body, tr->unfinished};
  tr->unfinished = u;
  *(l->last_fuse ? &l->last_fuse->next : &m->fuses) = NULL;
  m->last_fuse = l->last_fuse;
}

static struct hlo_computation *make_condition(struct tracer *tr, const struct loop *l) {
  struct hlo_module *m = tr->b.module;
  struct hlo_builder b = tr->b;
  b.computation =
      hlo_computation_new(m, arena_printf(tr->a, "fori_loop_%llu_condition", (unsigned long long)l->serial));
  hlo_val i = hlo_tuple_element(&b, hlo_parameter(&b, "state", l->state->shape), 0);
  b.computation->root = hlo_compare(&b, HLO_LT, i, hlo_scalar(&b, DT_I32, (double)l->upper));
  if (b.err.code && !tr->b.err.code)
    tr->b.err = b.err;
  return b.computation;
}

/* Sets the body's root, which is the state after an iteration. */
static bool close_body(struct tracer *tr, struct loop *l, int n, hlo_val const *results) {
  hlo_val *next = arena_new_array(tr->a, hlo_val, (size_t)l->state->shape.n_elems);
  int at = 0;
  next[at++] = hlo_binary(&tr->b, HLO_ADD, l->index, hlo_scalar(&tr->b, DT_I32, 1));
  for (int k = 0; k < n; k++)
    next[at++] = results[k];
  for (int k = 0; k < l->seen.n; k++) {
    hlo_val in = l->seen.v[k].inside;
    if (in->op == HLO_GET_TUPLE_ELEMENT && in->operands[0] == l->state)
      next[at++] = in;
  }
  assert(at == l->elems.n && at == l->init.n);
  l->body->root = hlo_tuple(&tr->b, at, next);
  return l->body->root;
}

/* Runs the body once.  Returns false with an exception. */
static bool trace_body(struct tracer *tr, struct loop *l, struct carried *c, PyObject *body) {
  const struct src_locs locs = tr->b.locs;
  hlo_val *next = arena_new_array(tr->a, hlo_val, (size_t)c->n);
  for (int k = 0; k < c->n; k++) {
    array_push(tr->a, &l->init, c->value[k]);
    c->inside[k] = add_element(tr, l, &c->value[k]->shape);
    if (!(c->given[k] = tensor_wrap(tr, c->inside[k])))
      return false;
  }
  PyObject *index = loop_index_new(tr, l), *acc = index ? pack(c, c->given) : NULL;
  PyObject *memory = acc ? array_enter_loop(l) : NULL, *r = NULL;
  r = memory ? PyObject_CallFunctionObjArgs(body, index, acc, NULL) : NULL;
  c->returned = r ? array_unwrap(tr, r) : NULL;
  array_leave_loop(memory);
  Py_XDECREF(r);
  Py_XDECREF(index);
  Py_XDECREF(acc);
  tr->b.locs = locs;
  if (!c->returned || !read_results(c))
    return false;
  for (int k = 0; k < c->n; k++)
    if (!(next[k] = result_value(tr, c, k)))
      return false;
  return close_body(tr, l, c->n, next);
}

/* In NumPy, a body that writes into a carried array writes into the caller's array.  If the body also returns it, that
 * array is the loop's result (*in_place).  If not, the array's contents would be known only by unrolling the loop, so
 * the loop is refused. */
static bool writes_in_place(struct tracer *tr, const struct carried *c, int k, bool *in_place) {
  const bool is_written = ((struct tensor *)c->given[k])->v != c->inside[k], is_same = c->result[k] == c->given[k];
  *in_place = is_same && tensor_check(c->init[k]);
  if (!is_written || !tensor_check(c->init[k]))
    return true;
  if (is_same)
    return loop_may_write(tr, (struct tensor *)c->init[k]);
  trace_refuse(DG_UNSUPPORTED_INDEX, "return the tensor that is written to, or write to a copy: np.copy(acc)",
               "fori_loop: the body writes to carried value %d and returns another tensor in its place", k);
  return false;
}

static PyObject *results_of(struct tracer *tr, const struct carried *c, hlo_val state) {
  PyObject **out = arena_new_array(tr->a, PyObject *, (size_t)c->n), *r = NULL;
  bool ok = state, in_place;
  for (int k = 0; ok && k < c->n; k++) {
    hlo_val v = hlo_tuple_element(&tr->b, state, k + 1);
    ok = v && writes_in_place(tr, c, k, &in_place);
    if (ok && in_place) {
      struct tensor *t = (struct tensor *)c->init[k];
      ok = tensor_val(tr, (PyObject *)t) && tensor_store(tr, t, v, ((struct tensor *)c->given[k])->mutated);
      out[k] = Py_NewRef((PyObject *)t);
    } else if (ok && c->result[k] == c->given[k] && PyArray_CheckExact(c->init[k]) && !tr->loop) {
      ok = array_become_value(tr, c->init[k], v); /* a NumPy array that the body filled */
      out[k] = Py_NewRef(c->init[k]);
    } else if (ok) {
      ok = (out[k] = tensor_wrap(tr, v));
    }
  }
  if (ok)
    r = pack(c, out);
  for (int k = 0; k < c->n; k++)
    Py_XDECREF(out[k]);
  return r;
}

static PyObject *trace_loop(struct tracer *tr, int64_t lower, int64_t upper, PyObject *body, struct carried *c) {
  struct loop l;
  hlo_val state = NULL;
  begin(tr, &l, lower, upper);
  bool ok = l.index && trace_body(tr, &l, c, body);
  end(tr, &l, ok);
  if (ok)
    state = hlo_while(&tr->b, make_condition(tr, &l), l.body, hlo_tuple(&tr->b, l.init.n, l.init.v));
  PyObject *r = results_of(tr, c, state);
  for (int k = 0; k < c->n; k++)
    Py_XDECREF(c->given[k]);
  Py_XDECREF(c->returned);
  return r;
}

/* Returns init, the result of a loop without iterations. */
static PyObject *untouched(struct tracer *tr, const struct carried *c) {
  PyObject **out = arena_new_array(tr->a, PyObject *, (size_t)c->n), *r = NULL;
  bool ok = true;
  for (int k = 0; ok && k < c->n; k++)
    ok = (out[k] = tensor_check(c->init[k]) ? Py_NewRef(c->init[k]) : tensor_wrap(tr, c->value[k]));
  if (ok)
    r = pack(c, out);
  for (int k = 0; k < c->n; k++)
    Py_XDECREF(out[k]);
  return r;
}

/* ---- the call ------------------------------------------------------------------------------------------------ */

static bool read_bound(PyObject *o, const char *which, int64_t *out) {
  if (loop_index_check(o)) {
    trace_refuse(DG_BAD_ARGUMENT, "loop over the largest range, and use np.where for what lies outside",
                 "fori_loop: %s is another loop's index; bounds must be Python integers", which);
    return false;
  }
  if (!args_int(o, which, out))
    return false;
  if (*out < INT32_MIN || *out > INT32_MAX)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "fori_loop: %s does not fit in 32 bits", which);
  return *out >= INT32_MIN && *out <= INT32_MAX;
}

static PyObject *fori_loop_traced(PyObject *lower, PyObject *upper, PyObject *body, PyObject *init) {
  struct tracer *tr = tracer_enter();
  struct carried c = {0};
  int64_t from = 0, to = 0;
  PyObject *r = NULL, *plain = array_unwrap(tr, init);
  int depth = 0;
  if (!plain)
    return NULL;
  for (const struct loop *l = tr->loop; l; l = l->outer)
    depth++;
  if (depth >= LOOP_NEST_MAX)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "fori_loop: more than %d loops in each other", LOOP_NEST_MAX);
  else if (!PyCallable_Check(body))
    trace_refuse(DG_BAD_ARGUMENT, "give a function of (i, acc)", "fori_loop: body must be a function, not a %s",
                 Py_TYPE(body)->tp_name);
  else if (read_bound(lower, "lower", &from) && read_bound(upper, "upper", &to) && read_init(tr, plain, &c))
    r = from < to ? trace_loop(tr, from, to, body, &c) : untouched(tr, &c);
  if (!r && !PyErr_Occurred())
    trace_refuse(tr->b.err.code == ST_INPUT ? DG_SHAPE_MISMATCH : DG_INTERNAL, NULL, "%s", tr->b.err.text);
  tr->b.err = (struct error){0};
  Py_DECREF(plain);
  return r;
}

static PyObject *fori_loop_plain(PyObject *lower, PyObject *upper, PyObject *body, PyObject *acc) {
  Py_ssize_t from = PyNumber_AsSsize_t(lower, PyExc_OverflowError), to = -1;
  if (from != -1 || !PyErr_Occurred())
    to = PyNumber_AsSsize_t(upper, PyExc_OverflowError);
  if (PyErr_Occurred())
    return NULL;
  Py_INCREF(acc);
  for (Py_ssize_t i = from; acc && i < to; i++) {
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *next = index ? PyObject_CallFunctionObjArgs(body, index, acc, NULL) : NULL;
    Py_XDECREF(index);
    Py_SETREF(acc, next);
  }
  return acc;
}

PyObject *loop_fori(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"lower", "upper", "body", "init", NULL};
  PyObject *lower, *upper, *body, *init;
  (void)self;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOOO:fori_loop", names, &lower, &upper, &body, &init))
    return NULL;
  return tracer_now ? fori_loop_traced(lower, upper, body, init) : fori_loop_plain(lower, upper, body, init);
}
