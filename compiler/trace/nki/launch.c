/* launch: runs a kernel once for each instance of its grid, and takes what it returns. */
#include <string.h>

#include "nki/canonical.h"
#include "nki/order.h"
#include "trace/counting.h"
#include "trace/nki/launch.h"
#include "trace/refuse.h"

static uint64_t serials; /* never reused */

/* ---- the record -------------------------------------------------------------------------------------------------- */

void nki_record_begin(struct nki_recorder *r, struct nki_program *p, struct ranges *ranges, struct diags *ds) {
  *r = (struct nki_recorder){
      .program = p, .ranges = ranges, .ds = ds, .serial = ++serials, .outside = counting_serial()};
  r->base = PyThreadState_GetFrame(PyThreadState_Get());
  nki_now = r;
}

void nki_record_end(struct nki_recorder *r) {
  if (r->program->writing) /* the kernel ended in it */
    nki_written_end(r->program, NULL);
  nki_number_lines(r->program);
  nki_now = NULL;
  Py_CLEAR(r->base);
}

bool nki_add_input(struct nki_recorder *r, const char *name, int number, enum dtype t, int rank, const int64_t *dims,
                   const struct src_loc *at) {
  struct nki_error err = {.arena = r->program->arena};
  if (nki_tensor_new(r->program, name, t, MEM_SHARED_HBM, rank, dims, number, src_locs_one(r->program->arena, at),
                     &err))
    return true;
  nki_raise(&err);
  return false;
}

PyObject *nki_input_object(struct nki_recorder *r, int number) {
  const struct nki_program *p = r->program;
  int i = 0;
  while (p->tensors.v[i]->input != number)
    i++;
  const struct nki_view whole = nki_whole(p->tensors.v[i]);
  return nki_wrap(r, &whole);
}

/* Reads a schedule, a tuple of pairs of names. */
static bool read_edges(PyObject *o, struct arena *a, struct nki_grid *out) {
  const int n = (int)PyTuple_GET_SIZE(o);
  struct nki_edge *edges = arena_new_array(a, struct nki_edge, (size_t)n);
  for (int i = 0; i < n; i++) {
    const char *after, *before;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(o, i), "ss", &after, &before))
      return false;
    edges[i] = (struct nki_edge){arena_strdup(a, after), arena_strdup(a, before)};
  }
  out->n_edges = n;
  out->edges = edges;
  return true;
}

bool nki_read_grid(PyObject *o, struct arena *a, struct nki_grid *out) {
  PyObject *dims, *edges;
  long long core_step;
  *out = (struct nki_grid){0};
  if (!PyArg_ParseTuple(o, "O!iiLO!", &PyTuple_Type, &dims, &out->cores, &out->core_axis, &core_step, &PyTuple_Type,
                        &edges) ||
      !nki_read_ints(dims, "grid", false, NKI_GRID_RANK_MAX, out->dims, &out->rank) || !read_edges(edges, a, out))
    return false;
  out->core_step = core_step;
  int64_t n = 1;
  for (int i = 0; i < out->rank; i++)
    if (__builtin_mul_overflow(n, out->dims[i], &n) || n > NKI_INSTANCES_MAX) {
      trace_refuse(DG_NKI_GRID, "loop over tiles inside of the kernel", "the grid has more than %d instances",
                   NKI_INSTANCES_MAX);
      return false;
    }
  return true;
}

bool nki_launch_grid(PyObject *grid, int generation, struct arena *a, struct nki_grid *out) {
  PyObject *module = PyImport_ImportModule("nkx.nki_grid");
  PyObject *read = module ? PyObject_CallMethod(module, "of", "Oi", grid ? grid : Py_None, generation) : NULL;
  const bool ok = read && nki_read_grid(read, a, out);
  Py_XDECREF(module);
  Py_XDECREF(read);
  return ok;
}

void nki_warn_of_cores(const struct nki_program *p, struct diags *ds, const struct src_loc *at) {
  if (p->grid.cores < 2 || nki_program_cores(p) > 1)
    return;
  const bool can = !p->on_one_core && p->target != TARGET_TRN1;
  struct diag *d =
      can ? diag_add(ds, DS_WARNING, DG_NKI_ONE_CORE, at,
                     "the instances on both cores make the same calls with the same results; one core makes them once")
          : diag_add(ds, DS_WARNING, DG_NKI_ONE_CORE, at,
                     p->on_one_core
                         ? "this launch on %d cores is a part of a kernel that runs on one, which runs the "
                           "instances one after another"
                         : "the launch asks for %d cores, but those of trn1 run no kernel together: one runs "
                           "the instances one after another",
                     p->grid.cores);
  d->hint =
      can ? "divide the work by nl.program_id(0)" : "the values are those of the launch; its time is that of one core";
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Returns the tensor that a result is; NULL with an exception. */
static struct nki_tensor *result_tensor(struct nki_recorder *r, PyObject *o) {
  static const char hint[] = "return what nl.ndarray(…, buffer=nl.shared_hbm) made";
  if (!nki_is_tensor(o))
    return trace_refuse(DG_NKI_OUTPUT, hint, "the kernel returned an object of type %s, not a tensor",
                        Py_TYPE(o)->tp_name);
  const struct nki_view *v = nki_view_of(r, o, "a result");
  if (!v)
    return NULL;
  struct nki_tensor *t = v->tensor;
  if (t->space != MEM_SHARED_HBM)
    return trace_refuse(DG_NKI_OUTPUT, hint, "%s is in %s, but results are in shared_hbm", t->name,
                        nisa_space_name(t->space));
  if (v->rank != t->rank || nki_elements(v) != nki_tensor_extent(t))
    return trace_refuse(DG_NKI_OUTPUT, hint, "a part of %s is returned", t->name);
  return t;
}

/* Reads the results of the first instance; those of the others are the same tensors. */
static bool add_results(struct nki_recorder *r, PyObject *result) {
  struct nki_program *p = r->program;
  const bool single = !PyTuple_Check(result) && !PyList_Check(result), first = p->instances.n == 1;
  const int n = result == Py_None ? 0 : single ? 1 : (int)PySequence_Fast_GET_SIZE(result);
  struct nki_tensor **outputs = first ? arena_new_array(p->arena, struct nki_tensor *, (size_t)n) : p->outputs;
  bool same = first || n == p->n_outputs;
  for (int i = 0; same && i < n; i++) {
    struct nki_tensor *t = result_tensor(r, single ? result : PySequence_Fast_GET_ITEM(result, i));
    if (!t)
      return false;
    same = first || outputs[i] == t;
    outputs[i] = t;
  }
  if (!same) {
    trace_refuse(DG_NKI_GRID, "return the same tensors in the same order",
                 "instance %d returns other tensors than instance 0", p->instances.n - 1);
    return false;
  }
  p->outputs = outputs;
  p->n_outputs = n;
  return true;
}

/* A kernel that returns nothing has the parameters that it writes as results. */
static void take_written_parameters(struct nki_program *p) {
  p->outputs = arena_new_array(p->arena, struct nki_tensor *, (size_t)p->tensors.n);
  for (int i = 0; i < p->tensors.n; i++)
    if (p->tensors.v[i]->input >= 0 && nki_is_written(p, p->tensors.v[i]))
      p->outputs[p->n_outputs++] = p->tensors.v[i];
}

/* Checks the results when all instances have run. */
static bool check_results(struct nki_program *p) {
  if (!p->n_outputs)
    take_written_parameters(p);
  if (!p->n_outputs)
    return trace_refuse(DG_NKI_OUTPUT, "return the tensors in shared_hbm that it writes", "the kernel returns nothing");
  for (int i = 0; i < p->n_outputs; i++)
    if (p->outputs[i]->input < 0 && !nki_is_written(p, p->outputs[i]))
      return trace_refuse(DG_NKI_OUTPUT, "store to it, with nl.store or nisa.dma_copy; a loop may have run zero times",
                          "nothing is written to the result %s", p->outputs[i]->name);
  for (int i = 0; i < p->tensors.n; i++) {
    const struct nki_tensor *t = p->tensors.v[i];
    if (t->input >= 0 && !nki_is_output(p, t) && nki_is_written(p, t))
      return trace_refuse(DG_NKI_OUTPUT, "return it, too, or write to a new tensor",
                          "the kernel writes to the parameter %s, but does not return it", t->name);
  }
  return true;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static enum nki_returned what_returned(PyObject *result) {
  return result == Py_None                               ? NKI_RETURNED_NOTHING
         : PyTuple_Check(result) || PyList_Check(result) ? NKI_RETURNED_SEQUENCE
                                                         : NKI_RETURNED_TENSOR;
}

/* Ends loops and branches on the device that the kernel left.  False with an exception, unless the analysis has found why. */
static bool end_regions(struct nki_recorder *r) {
  bool is_known = !r->program->n_open;
  while (r->program->n_open)
    nki_region_end(r->program, (struct src_locs){0});
  for (int i = r->first_finding; i < r->first_finding + r->n_findings && !is_known; i++) {
    is_known = r->ds->v[i].code == DG_NKI_DEVICE_LOOP;
    r->n_refused += is_known;
  }
  if (!is_known)
    trace_refuse(DG_NKI_DEVICE_LOOP, "let the condition of nl.while_loop end it",
                 "a loop on the device was left in its middle");
  return is_known;
}

/* The pending exception is nkx.nki_unknown.AfterRefusal, and there is a refusal; then it is cleared. */
static bool ends_after_refusal(const struct nki_recorder *r) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyObject *module = PyImport_ImportModule("nkx.nki_unknown");
  PyObject *after = module ? PyObject_GetAttrString(module, "AfterRefusal") : NULL;
  const bool is = r->n_refused && after && type && PyErr_GivenExceptionMatches(type, after);
  PyErr_Clear();
  Py_XDECREF(module);
  Py_XDECREF(after);
  PyErr_Restore(type, exc, tb);
  if (is)
    PyErr_Clear();
  return is;
}

/* Resolves the waits of the running instance.  False with an exception; in a job, if it is about a call, a diagnostic. */
static bool resolve_order(struct nki_recorder *r) {
  struct nki_error err = {.arena = r->program->arena};
  const struct nki_call *at;
  if (r->n_refused || nki_order_resolve(r->program, &err, &at))
    return true;
  if (!at || !r->owner || !r->ds) {
    nki_raise(&err);
    return false;
  }
  struct diag *d = diag_add(r->ds, DS_ERROR, err.code, at->locs.n ? at->locs.v[0] : NULL, "%s", err.text);
  d->hint = err.hint;
  r->n_refused++;
  return true;
}

bool nki_record_instances(struct nki_recorder *r, nki_runner *run, void *user, enum nki_returned *returned) {
  const int64_t n = nki_grid_size(&r->program->grid);
  bool ok = true;
  for (int64_t i = 0; ok && !r->n_refused && i < n; i++) {
    nki_instance_begin(r->program);
    r->serial = ++serials; /* tensors of another instance are refused */
    PyObject *result = run(user, r);
    if (!result && ends_after_refusal(r))
      result = Py_NewRef(Py_None);
    ok = result && end_regions(r) && resolve_order(r) && (r->n_refused || r->is_cut || add_results(r, result));
    if (ok)
      *returned = what_returned(result);
    Py_XDECREF(result);
    nki_instance_end(r->program);
  }
  ok = ok && (r->n_refused || r->is_cut || check_results(r->program));
  if (!ok || r->n_refused || r->is_cut)
    r->program->n_outputs = 0;
  return ok;
}
