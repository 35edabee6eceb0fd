/* run: calls one kernel with tensors, and makes a module of the recorded operations. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "hlo/complex.h"
#include "trace/array.h"
#include "trace/bytecode.h"
#include "trace/kernels.h"
#include "trace/nki/ast.h"
#include "trace/nki/run.h"
#include "trace/program.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

static uint64_t serials; /* serial numbers of traces; never reused, so a tensor of an earlier trace is recognised */

const struct src_loc *trace_return_loc(struct trace_program *program, const struct program_kernel *k) {
  if (!PyFunction_Check(k->fn))
    return NULL;
  PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(k->fn);
  const int at = bytecode_only_return(code);
  return at >= 0 ? ranges_code(&program->ranges, code, at, NULL) : NULL;
}

/* ---- results -------------------------------------------------------------------------------------------------- */

/* The kernel's outputs: the tensors that it returned, then the parameters that it wrote but did not return. */
struct results {
  int n;
  struct tensor **v; /* borrowed */
  int *alias;        /* the parameter that the output is, or -1 */
  bool *own;         /* true if the kernel returned it */
};

static bool not_tensor(PyObject *o, int index, bool single) {
  const char *hint = PyArray_Check(o) || PyArray_CheckScalar(o) || PyFloat_Check(o) || PyLong_Check(o)
                         ? "it does not depend on the inputs; add it to a tensor, or leave it out"
                         : "return a tensor, or a tuple or list of tensors";
  if (refuse_missing(o))
    return false;
  if (single)
    trace_refuse(DG_RESULT_NOT_TENSOR, hint, "the kernel returned an object of type %s, not a traced tensor",
                 Py_TYPE(o)->tp_name);
  else
    trace_refuse(DG_RESULT_NOT_TENSOR, hint, "result %d is an object of type %s, not a traced tensor", index,
                 Py_TYPE(o)->tp_name);
  return false;
}

static bool collect(struct tracer *tr, PyObject *r, int n_params, struct tensor **params, struct results *out) {
  bool single = !PyTuple_Check(r) && !PyList_Check(r);
  int n = r == Py_None ? 0 : single ? 1 : (int)PySequence_Fast_GET_SIZE(r);
  *out = (struct results){.v = arena_new_array(tr->a, struct tensor *, (size_t)n + (size_t)n_params),
                          .alias = arena_new_array(tr->a, int, (size_t)n + (size_t)n_params),
                          .own = arena_new_array(tr->a, bool, (size_t)n + (size_t)n_params)};
  for (int i = 0; i < n; i++) {
    PyObject *o = single ? r : PySequence_Fast_GET_ITEM(r, i);
    if (!tensor_check(o))
      return not_tensor(o, i, single);
    if (!tensor_val(tr, o))
      return false;
    out->v[i] = (struct tensor *)o;
    out->alias[i] = -1;
    out->own[i] = true;
  }
  out->n = n;
  for (int p = 0; p < n_params; p++) {
    if (!params[p]->mutated)
      continue;
    int at = 0;
    while (at < n && out->v[at] != params[p])
      at++;
    if (at == n) { /* written but not returned: it becomes an additional output */
      at = out->n++;
      out->v[at] = params[p];
    }
    out->alias[at] = p;
  }
  return true;
}

static struct trace_tensor border(struct tracer *tr, const char *name, hlo_val v, int alias_of) {
  return (struct trace_tensor){name, hlo_complex_shape(tr->a, &v->shape), alias_of, dtype_is_complex(v->shape.dtype)};
}

static struct trace_kernel *finish(struct trace_program *program, struct program_kernel *k, struct tracer *tr,
                                   struct tensor **params, const struct results *rs) {
  struct hlo_module *m = tr->b.module;
  assert(m->entry->n_params == k->n_params);
  struct trace_kernel *t = arena_new(program->a, struct trace_kernel);
  for (const struct unfinished *u = tr->unfinished; u; u = u->next)
    hlo_computation_remove(u->body);
  hlo_val *values = arena_new_array(tr->a, hlo_val, (size_t)rs->n);
  const char **names = arena_new_array(tr->a, const char *, (size_t)rs->n);
  t->outputs = arena_new_array(tr->a, struct trace_tensor, (size_t)rs->n);
  m->aliases = arena_new_array(tr->a, struct hlo_alias, (size_t)rs->n);
  for (int i = 0; i < rs->n; i++) {
    int p = rs->alias[i];
    hlo_val v = rs->v[i]->v;
    values[i] = v->op == HLO_PARAMETER ? hlo_unary(&tr->b, HLO_COPY, v) : v;
    names[i] = p >= 0 ? k->params[p].name : arena_printf(tr->a, "output%d", i);
    t->outputs[i] = border(tr, names[i], v, p);
    if (p >= 0)
      m->aliases[m->n_aliases++] = (struct hlo_alias){i, p, names[i], rs->own[i]};
  }
  t->inputs = arena_new_array(tr->a, struct trace_tensor, (size_t)k->n_params);
  for (int p = 0; p < k->n_params; p++) {
    hlo_val v = m->entry->params[p];
    t->inputs[p] = border(tr, k->params[p].name, v, -1);
    if (params[p]->mutated)
      v->name = arena_printf(tr->a, "%s.must_alias_input", v->name);
  }
  t->name = k->name;
  t->module = m;
  t->n_inputs = k->n_params;
  t->n_outputs = rs->n;
  t->program = program;
  t->n_calls = tr->calls.n;
  t->calls = tr->calls.v;
  return hlo_finish(&tr->b, rs->n, values, names) == ST_OK ? t : NULL;
}

/* Returns the operations that were recorded before a refusal, or NULL if there are none.  If a loop was being traced,
 * its body is included, but there is no `while` that calls it. */
static struct trace_kernel *keep_partial(struct trace_program *program, const struct program_kernel *k,
                                         struct tracer *tr) {
  const struct hlo_module *m = tr->b.module;
  if (m->entry->n_params != k->n_params || (m->entry->n_instrs == k->n_params && m->computations == m->entry))
    return NULL;
  struct trace_kernel *t = arena_new(program->a, struct trace_kernel);
  *t = (struct trace_kernel){.name = k->name, .module = tr->b.module, .is_partial = true, .n_inputs = k->n_params};
  t->inputs = arena_new_array(tr->a, struct trace_tensor, (size_t)k->n_params);
  for (int p = 0; p < k->n_params; p++)
    t->inputs[p] = border(tr, k->params[p].name, m->entry->params[p], -1);
  return t;
}

/* ---- the call ------------------------------------------------------------------------------------------------- */

static bool make_parameters(struct trace_program *program, struct tracer *tr, const struct program_kernel *k,
                            struct tensor **params) {
  for (int i = 0; i < k->n_params; i++) {
    const struct kparam *p = &k->params[i];
    tr->b.locs = src_locs_one(tr->a, kernel_param_loc(program, k, p->name));
    if (dtype_is_complex(p->dtype) && p->rank == HLO_RANK_MAX)
      return trace_refuse(DG_UNSUPPORTED_DTYPE, "merge two dimensions",
                          "input \"%s\" has %d dimensions; complex numbers can have at most %d", p->name, p->rank,
                          HLO_RANK_MAX - 1);
    hlo_val v = hlo_parameter(&tr->b, p->name, hlo_shape_array(tr->a, p->dtype, p->rank, p->dims));
    params[i] = (struct tensor *)tensor_wrap(tr, v);
    if (!params[i])
      return false;
    params[i]->param = i;
  }
  return true;
}

static struct trace_kernel *call_and_finish(struct trace_program *program, struct program_kernel *k, struct tracer *tr,
                                            struct tensor **params) {
  PyObject *args = NULL, *kw = NULL, *r = NULL;
  struct trace_kernel *t = NULL;
  struct results rs;
  if (make_parameters(program, tr, k, params) && kernel_arguments(k, (PyObject *const *)params, &args, &kw))
    r = PyObject_Call(k->fn, args, kw);
  if (r)
    Py_SETREF(r, array_unwrap(tr, r));
  const struct src_loc *at = r ? trace_return_loc(program, k) : NULL;
  at = at ? at : kernel_def_loc(program, k);
  tr->b.locs = src_locs_one(tr->a, at);
  if (r && collect(tr, r, k->n_params, params, &rs))
    t = finish(program, k, tr, params, &rs);
  if (!t && tr->b.err.code && !PyErr_Occurred())
    trace_refuse(DG_INTERNAL, NULL, "%s", tr->b.err.text);
  if (!t) {
    int before = program->ds->n;
    program_exception(program, program->ds);
    if (program->ds->n > before && !program->ds->v[program->ds->n - 1].loc) /* no line of the source raised it */
      program->ds->v[program->ds->n - 1].loc = at;
  }
  Py_XDECREF(args);
  Py_XDECREF(kw);
  Py_XDECREF(r);
  return t;
}

static enum status trace_one(struct trace_program *program, int i, struct diags *ds, struct trace_kernel **out) {
  assert(i >= 0 && i < program->n && !tracer_now);
  struct program_kernel *k = &program->kernels[i];
  int64_t start = clock_now_us();
  *out = NULL;
  program_enter(program, ds);
  const bool has_shapes = kernel_resolve(program, k);
  if (!has_shapes && !(k->kernel && k->kernel->nki)) {
    program_leave(program);
    return ST_INPUT;
  }
  if (k->kernel && k->kernel->nki) {
    const int before = ds->n;
    enum status st = nki_trace_kernel(program, k, has_shapes, ds, out);
    if (program->held && k->kernel == program->failed && !nki_has_error(ds, before)) {
      const struct diag *held = program->held;
      struct diag *d = diag_add(ds, held->severity, held->code, held->loc, "%s", held->message);
      d->hint = held->hint;
    }
    program_leave(program);
    if (*out)
      (*out)->index = i;
    k->done = *out;
    return st;
  }
  struct tracer *tr = arena_new(program->a, struct tracer);
  *tr = (struct tracer){.a = program->a, .ranges = &program->ranges, .ds = ds, .serial = ++serials};
  tr->base = PyThreadState_GetFrame(PyThreadState_Get());
  hlo_builder_init(&tr->b, hlo_module_new(program->a, k->name));
  tr->b.locs = src_locs_one(tr->a, kernel_def_loc(program, k));
  struct tensor **params = arena_new_array(program->a, struct tensor *, (size_t)k->n_params);
  tracer_now = tr;
  if (array_trace_begin(tr))
    *out = call_and_finish(program, k, tr, params);
  else
    program_exception(program, ds);
  array_trace_end(tr);
  tracer_now = NULL;
  bool is_refused = !*out;
  if (is_refused)
    *out = keep_partial(program, k, tr);
  Py_CLEAR(tr->base);
  for (int p = 0; p < k->n_params; p++)
    Py_XDECREF(params[p]);
  program_leave(program);
  if (*out)
    (*out)->time_us = clock_now_us() - start;
  if (is_refused)
    return ds->n && ds->v[ds->n - 1].code == DG_TOO_MANY_OPS ? ST_LIMIT : ST_INPUT;
  (*out)->index = i;
  k->done = *out;
  return ST_OK;
}

/* True if the kernel does nothing but call one NKI kernel. */
static bool is_one_call(const struct trace_kernel *t) {
  int n_calls = 0;
  for (hlo_val v = t->module->entry->first; v; v = v->next)
    if (v->op == HLO_CUSTOM_CALL)
      n_calls++;
    else if (v->op != HLO_PARAMETER && v->op != HLO_COPY && v->op != HLO_TUPLE && v->op != HLO_GET_TUPLE_ELEMENT)
      return false;
  return n_calls == 1;
}

/* Traces a function that calls NKI kernels, which are compiled beside it.  It is left out if it does no more than they do, and, with a
 * note instead of its errors, if it is no kernel: it may be a test of theirs. */
static enum status trace_caller(struct trace_program *program, int i, struct diags *ds, struct trace_kernel **out) {
  const char *name = program->kernels[i].name;
  const int before = ds->n;
  const bool had_error = ds->has_error;
  const enum status st = trace_one(program, i, ds, out);
  if (!st && !is_one_call(*out))
    return ST_OK;
  *out = NULL;
  const struct diag *first = NULL;
  for (int j = before; st && j < ds->n && !first; j++)
    first = ds->v[j].severity == DS_ERROR ? arena_dup(program->a, &ds->v[j], sizeof *ds->v) : NULL;
  ds->n = before;
  ds->has_error = had_error;
  if (first)
    diag_add(ds, DS_NOTE, first->code, first->loc, "\"%s\", which calls NKI kernels, is not compiled with them: %s",
             name, first->message)
        ->hint = first->hint;
  return ST_OK;
}

enum status trace_kernel(struct trace_program *program, int i, struct diags *ds, struct trace_kernel **out) {
  const bool is_caller = program->kernels[i].is_caller;
  const enum status st = (is_caller ? trace_caller : trace_one)(program, i, ds, out);
  return st && program_was_stopped(ds) ? ST_LIMIT : st;
}
