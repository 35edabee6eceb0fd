/* view: reads and writes tensors that are views of another tensor (see view.h). */
#include "trace/compose.h"
#include "trace/index.h"
#include "trace/loop.h"
#include "trace/refuse.h"
#include "trace/view_internal.h"

static const char unknown_hint[] = "write to the array itself, or take a copy first: np.copy(x)";

/* ---- doing and undoing a step ------------------------------------------------------------------------------------ */

/* Sets *here to the key in the computation that is being traced.  Inside a loop's body, the index of an outer loop is a
 * different value. */
static bool key_here(struct tracer *tr, const struct key *k, struct key *here) {
  *here = *k;
  for (int i = 0; i < k->rank; i++)
    if (k->axis[i].at && !(here->axis[i].at = loop_see(tr, k->axis[i].at)))
      return false;
  return true;
}

static hlo_val places_of(struct tracer *tr, const struct step *s) {
  struct hlo_shape shape = hlo_shape_array(tr->a, DT_I32, s->to_rank, s->to);
  return hlo_constant(&tr->b, shape, s->places);
}

static hlo_val step_do(struct tracer *tr, const struct step *s, hlo_val x) {
  struct key here;
  switch (x ? s->kind : STEP_RESHAPE) {
  case STEP_KEY:
    return key_here(tr, s->key, &here) ? index_slice(tr, x, &here) : NULL;
  case STEP_RESHAPE:
    return x ? hlo_reshape(&tr->b, x, s->to_rank, s->to) : NULL;
  case STEP_TRANSPOSE:
    return val_transpose(tr, x, s->perm);
  case STEP_REVERSE:
    return val_reverse(tr, x, s->axis);
  case STEP_PICK:
    return val_gather(tr, x, 1, &(int){0}, &(hlo_val){places_of(tr, s)}, 0);
  }
  return NULL;
}

/* Returns x, the value before the step, changed so that the result of the step is v. */
static hlo_val step_undo(struct tracer *tr, const struct step *s, hlo_val x, hlo_val v) {
  struct key here;
  int64_t inverse[HLO_RANK_MAX];
  switch (v ? s->kind : STEP_RESHAPE) {
  case STEP_KEY:
    return hlo_shape_elements(&v->shape) == 0 ? x : key_here(tr, s->key, &here) ? index_store(tr, x, v, &here) : NULL;
  case STEP_RESHAPE:
    return v ? hlo_reshape(&tr->b, v, s->from_rank, s->from) : NULL;
  case STEP_TRANSPOSE:
    for (int i = 0; i < s->to_rank; i++)
      inverse[s->perm[i]] = i;
    return val_transpose(tr, v, inverse);
  case STEP_REVERSE:
    return val_reverse(tr, v, s->axis);
  case STEP_PICK:
    return val_scatter(tr, x, 1, &(int){0}, &(hlo_val){places_of(tr, s)}, 0, v);
  }
  return NULL;
}

/* True if the value before a step is needed to undo one of the steps. */
static bool needs_value(const struct step *s, int n) {
  for (int i = 0; i < n; i++)
    if (s[i].kind == STEP_KEY || s[i].kind == STEP_PICK)
      return true;
  return false;
}

static hlo_val put(struct tracer *tr, const struct step *s, int n, hlo_val x, hlo_val v) {
  if (n == 0)
    return v;
  if (n > 1)
    v = put(tr, s + 1, n - 1, needs_value(s + 1, n - 1) ? step_do(tr, s, x) : NULL, v);
  return step_undo(tr, s, x, v);
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

bool view_refresh(struct tracer *tr, struct tensor *t) {
  struct tensor *base = (struct tensor *)t->base;
  if (!base)
    return true;
  if (!view_refresh(tr, base))
    return false;
  if (t->seen == base->version)
    return true;
  if (t->view->kind == VIEW_UNKNOWN || t->view->is_opaque) {
    trace_refuse(DG_UNSUPPORTED_INDEX, "take it again after the write, or take a copy before it: np.copy(x)",
                 t->view->is_opaque
                     ? "this shows an array that was written to after it was taken, which is not supported"
                     : "the array that this was reshaped from was written to; whether NumPy shows the "
                       "change here depends on the order of the elements in memory, which is not known");
    return false;
  }
  hlo_val v = loop_see(tr, base->v);
  for (int i = 0; v && i < t->view->n; i++)
    v = step_do(tr, &t->view->steps[i], v);
  if (!v)
    return false;
  tensor_set(t, v);
  t->seen = base->version;
  return true;
}

hlo_val view_write(struct tracer *tr, struct tensor *t, hlo_val v) {
  struct tensor *base = (struct tensor *)t->base;
  if (t->view->kind == VIEW_READ_ONLY)
    return trace_refuse(DG_BAD_ARGUMENT, "take a copy first: np.copy(x)", "assignment destination is read-only");
  if (t->view->is_opaque)
    return trace_refuse(DG_UNSUPPORTED_INDEX, unknown_hint, "a write to this view is not supported");
  if (t->view->kind == VIEW_UNKNOWN)
    return trace_refuse(
        DG_UNSUPPORTED_INDEX, unknown_hint,
        "this writes to the result of a reshape; whether that is a view in NumPy depends on the order of "
        "the elements in memory, which is not known here");
  return loop_may_write(tr, base) ? put(tr, t->view->steps, t->view->n, base->v, v) : NULL;
}

bool view_is_item(const struct tensor *y, PyObject *key, PyObject *value) {
  const struct tensor *t = (struct tensor *)value;
  return tensor_check(value) && t->base == (PyObject *)y && t->view->key == key && t->seen == y->version;
}
