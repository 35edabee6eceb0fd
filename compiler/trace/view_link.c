/* view_link: makes tensors views of others in the cases where NumPy makes views (see view.h). */
#include <assert.h>
#include <string.h>

#include "trace/loop.h"
#include "trace/refuse.h"
#include "trace/view_internal.h"

/* ---- order in memory --------------------------------------------------------------------------------------------- */

void view_order_c(struct tensor *t) {
  npy_intp step = 1;
  for (int i = t->rank; i-- > 0; step *= t->dims[i])
    t->strides[i] = step;
  t->has_strides = true;
}

/* True if the last axis varies fastest; there may be gaps between the elements.  NumPy gives a result the order of its
 * operands. */
static bool is_c_like(const struct tensor *t) {
  npy_intp last = 0;
  for (int i = t->rank; t->has_strides && i-- > 0;) {
    const npy_intp step = t->strides[i] < 0 ? -t->strides[i] : t->strides[i];
    if (t->dims[i] > 1 && step < last)
      return false;
    last = t->dims[i] > 1 ? step : last;
  }
  return t->has_strides;
}

static bool is_contiguous(const struct tensor *t) {
  npy_intp step = 1;
  for (int i = t->rank; t->has_strides && i-- > 0; step *= t->dims[i])
    if (t->dims[i] != 1 && t->strides[i] != step)
      return false;
  return t->has_strides;
}

void view_order_of(struct tensor *t, const struct tensor *x) {
  t->has_strides = t->has_strides && is_c_like(x);
}

/* Applies NumPy's rule for a reshape without a copy: axes that are split or merged must be adjacent in memory.  Sets
 * the new strides.  Returns false if the reshape copies. */
static bool reshape_strides(int from_rank, const int64_t *from, const npy_intp *strides, int to_rank, const int64_t *to,
                            npy_intp *out) {
  int64_t old[HLO_RANK_MAX];
  npy_intp step[HLO_RANK_MAX];
  int n = 0, i = 0, j = 0;
  for (int d = 0; d < from_rank; d++)
    if (from[d] != 1) {
      old[n] = from[d];
      step[n++] = strides[d];
    }
  while (i < n && j < to_rank) {
    int i_end = i + 1, j_end = j + 1;
    int64_t a = old[i], b = to[j];
    while (a != b)
      if (a < b) {
        if (i_end == n)
          return false;
        a *= old[i_end++];
      } else {
        if (j_end == to_rank)
          return false;
        b *= to[j_end++];
      }
    for (int k = i; k + 1 < i_end; k++)
      if (step[k] != step[k + 1] * old[k + 1])
        return false;
    npy_intp s = step[i_end - 1];
    for (int k = j_end; k-- > j; s *= to[k])
      out[k] = s;
    i = i_end;
    j = j_end;
  }
  for (; j < to_rank; j++) /* axes of size 1 */
    out[j] = 1;
  return true;
}

/* True if the shapes differ only in axes of size 1. */
static bool same_but_ones(int n, const int64_t *a, int m, const int64_t *b) {
  int i = 0, j = 0;
  for (;; i++, j++) {
    while (i < n && a[i] == 1)
      i++;
    while (j < m && b[j] == 1)
      j++;
    if (i == n || j == m || a[i] != b[j])
      return i == n && j == m;
  }
}

/* Sets out to the strides after one step on an array with strides `in`.  Returns false if they are not known.  Sets
 * *copies if NumPy makes a copy. */
static bool step_strides(const struct step *s, const npy_intp *in, npy_intp *out, bool *copies) {
  switch (s->kind) {
  case STEP_KEY:
    for (int i = 0; i < s->to_rank; i++)
      out[i] = in[i] * (npy_intp)s->key->axis[i].step;
    return true;
  case STEP_RESHAPE:
    for (int i = 0; i < s->from_rank; i++)
      if (!s->from[i]) /* nothing is shared in an empty array */
        return false;
    *copies = !reshape_strides(s->from_rank, s->from, in, s->to_rank, s->to, out);
    return !*copies;
  case STEP_TRANSPOSE:
    for (int i = 0; i < s->to_rank; i++)
      out[i] = in[s->perm[i]];
    return true;
  case STEP_REVERSE:
    memcpy(out, in, (size_t)s->to_rank * sizeof *out);
    out[s->axis] = -in[s->axis];
    return true;
  case STEP_PICK:
    return false;
  }
  return false;
}

/* ---- making views ------------------------------------------------------------------------------------------------ */

static struct step *add_step(struct tracer *tr, struct view *w, enum step_kind kind, int from_rank, const int64_t *from,
                             int to_rank, const int64_t *to) {
  struct step *s = &w->steps[w->n++];
  s->kind = kind;
  s->from_rank = from_rank;
  s->to_rank = to_rank;
  s->from = hlo_ints_dup(tr->a, from_rank, from).v;
  s->to = hlo_ints_dup(tr->a, to_rank, to).v;
  return s;
}

static struct view *view_new(struct tracer *tr, int max_steps) {
  struct view *w = arena_new(tr->a, struct view);
  w->steps = arena_new_array(tr->a, struct step, (size_t)max_steps);
  return w;
}

static void link_to(struct tensor *t, struct tensor *base, const struct view *w) {
  assert(t != base);
  Py_XSETREF(t->base, Py_NewRef((PyObject *)base));
  t->view = w;
  t->seen = base->version;
}

/* Links t to base by the steps, unless NumPy makes a copy.  is_ravel: NumPy copies if the elements are not
 * contiguous. */
static void link_steps(struct tensor *t, struct tensor *base, struct view *w, bool is_ravel) {
  npy_intp in[HLO_RANK_MAX], out[HLO_RANK_MAX];
  bool known = base->has_strides, copies = false;
  memcpy(in, base->strides, sizeof in);
  for (int i = 0; i < w->n && !copies; i++) {
    const struct step *s = &w->steps[i];
    const bool was_known = known;
    known = known && step_strides(s, in, out, &copies);
    if (!was_known && s->kind == STEP_RESHAPE && w->kind == VIEW_WRITABLE &&
        !same_but_ones(s->from_rank, s->from, s->to_rank, s->to))
      w->kind = VIEW_UNKNOWN;
    memcpy(in, out, sizeof in);
  }
  if (is_ravel && base->has_strides && !is_contiguous(base))
    copies = true;
  if (copies) {
    view_order_c(t);
    return;
  }
  known = known && !w->is_opaque;
  t->has_strides = known;
  if (known)
    memcpy(t->strides, in, sizeof in);
  link_to(t, base, w);
}

/* Adds the step of a key.  The key's integers become slices of one element, so that all axes are kept. */
static void add_key_step(struct tracer *tr, struct view *w, int rank, const int64_t *from, const struct key *k) {
  int64_t counts[HLO_RANK_MAX];
  for (int i = 0; i < rank; i++)
    counts[i] = k->axis[i].count;
  struct key *slices = arena_new(tr->a, struct key);
  *slices = *k;
  for (int i = 0; i < rank; i++)
    slices->axis[i].kind = ENTRY_SLICE;
  add_step(tr, w, STEP_KEY, rank, from, rank, counts)->key = slices;
}

void view_link_key(struct tracer *tr, struct tensor *t, struct tensor *base, const struct key *k, PyObject *key) {
  struct view *w = view_new(tr, 2);
  add_key_step(tr, w, base->rank, base->dims, k);
  add_step(tr, w, STEP_RESHAPE, base->rank, w->steps[0].to, t->rank, t->dims);
  w->key = key;
  link_steps(t, base, w, false);
}

/* ---- results of operations --------------------------------------------------------------------------------------- */

/* Returns the axis that a gather reverses (val_reverse), or -1. */
static int reversed_axis(hlo_val v) {
  hlo_val at = v->operands[1];
  if (!hlo_shape_same_dims(&v->shape, &v->operands[0]->shape) || at->op != HLO_CONSTANT || at->shape.rank != 1 ||
      v->attrs->gather->collapsed_slice_dims.n != 1)
    return -1;
  const int32_t *places = at->attrs->literal->data;
  for (int64_t i = 0; i < at->shape.dims[0]; i++)
    if (places[i] != at->shape.dims[0] - 1 - i)
      return -1;
  return (int)v->attrs->gather->collapsed_slice_dims.v[0];
}

static struct key key_of_slice(hlo_val v) {
  struct key k = {.rank = v->shape.rank};
  for (int i = 0; i < k.rank; i++) {
    const struct hlo_slice_dim *d = &v->attrs->slice[i];
    k.axis[i] = (struct entry){ENTRY_SLICE, d->start, d->stride, v->shape.dims[i], NULL, NULL};
  }
  return k;
}

/* Adds the step of one instruction.  Returns false if no step can represent it. */
static bool add_instr_step(struct tracer *tr, struct view *w, hlo_val v) {
  const struct hlo_shape *from = &v->operands[0]->shape, *to = &v->shape;
  struct key k;
  int axis;
  switch (v->op) {
  case HLO_COPY:
    return true;
  case HLO_RESHAPE:
    add_step(tr, w, STEP_RESHAPE, from->rank, from->dims, to->rank, to->dims);
    return true;
  case HLO_TRANSPOSE:
    add_step(tr, w, STEP_TRANSPOSE, from->rank, from->dims, to->rank, to->dims)->perm = v->attrs->dimensions.v;
    return true;
  case HLO_SLICE:
    k = key_of_slice(v);
    add_key_step(tr, w, from->rank, from->dims, &k);
    return true;
  case HLO_GATHER:
    if ((axis = reversed_axis(v)) < 0)
      return false;
    add_step(tr, w, STEP_REVERSE, from->rank, from->dims, to->rank, to->dims)->axis = axis;
    return true;
  default:
    return false;
  }
}

/* Returns the steps from the value x to v, or NULL if v is not a rearrangement of x. */
static struct view *view_between(struct tracer *tr, hlo_val x, hlo_val v) {
  enum { STEPS_MAX = 2 * HLO_RANK_MAX };
  hlo_val chain[STEPS_MAX];
  int n = 0;
  for (; v != x; v = v->operands[0]) {
    if (n == STEPS_MAX || v->n_operands == 0)
      return NULL;
    chain[n++] = v;
  }
  struct view *w = view_new(tr, n + 1);
  while (n-- > 0)
    if (!add_instr_step(tr, w, chain[n]))
      return NULL;
  return w;
}

/* Returns true if an operation of NumPy returns views of its argument, and sets the kind of these views. */
static bool returns_view(const struct op_def *op, enum view_kind *kind) {
  static const enum op_id writable[] = {OP_RESHAPE,    OP_RAVEL,           OP_TRANSPOSE, OP_SWAPAXES,   OP_MOVEAXIS,
                                        OP_ROLLAXIS,   OP_EXPAND_DIMS,     OP_SQUEEZE,   OP_SPLIT,      OP_ARRAY_SPLIT,
                                        OP_HSPLIT,     OP_VSPLIT,          OP_DSPLIT,    OP_UNSTACK,    OP_FLIP,
                                        OP_FLIPLR,     OP_FLIPUD,          OP_ROT90,     OP_ATLEAST_1D, OP_ATLEAST_2D,
                                        OP_ATLEAST_3D, OP_MATRIX_TRANSPOSE};
  static const enum op_id read_only[] = {OP_BROADCAST_TO, OP_DIAGONAL, OP_LINALG_DIAGONAL};
  for (size_t i = 0; i < sizeof writable / sizeof *writable; i++)
    if (op == &op_table[writable[i]]) {
      *kind = VIEW_WRITABLE;
      return true;
    }
  for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
    if (op == &op_table[read_only[i]]) {
      *kind = VIEW_READ_ONLY;
      return true;
    }
  return false;
}

/* Returns the tensor in argument i, which the result may be a view of, or NULL. */
static struct tensor *viewed(PyObject *args, PyObject *kw, Py_ssize_t i) {
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  if (i < PyTuple_GET_SIZE(args))
    return tensor_check(PyTuple_GET_ITEM(args, i)) ? (struct tensor *)PyTuple_GET_ITEM(args, i) : NULL;
  while (kw && PyDict_Next(kw, &pos, &key, &value))
    if (tensor_check(value))
      return (struct tensor *)value;
  return NULL;
}

static void link_one(struct tracer *tr, PyObject *o, struct tensor *base, enum view_kind kind, bool is_ravel) {
  struct tensor *t = (struct tensor *)o;
  if (!base || !tensor_check(o) || t == base)
    return;
  struct view *w = view_between(tr, loop_see(tr, base->v), t->v);
  const bool is_opaque = !w;
  w = w ? w : view_new(tr, 1);
  w->kind = kind;
  w->is_opaque = is_opaque;
  link_steps(t, base, w, is_ravel);
}

/* real and imag are views of a complex tensor.  HLO has no write to a part, so that one is refused. */
static bool link_part(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *result) {
  PyObject *of = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
  if ((op != &op_table[OP_REAL] && op != &op_table[OP_IMAG]) || !of || !tensor_check(of) ||
      !dtype_is_complex(((struct tensor *)of)->dtype))
    return false;
  struct view *w = view_new(tr, 1);
  w->kind = VIEW_WRITABLE;
  w->is_opaque = true;
  link_steps((struct tensor *)result, (struct tensor *)of, w, false);
  return true;
}

/* Records the order of a new array that an operation made: it is C order if all operands have C order. */
static void note_order(PyObject *args, PyObject *result) {
  if (!tensor_check(result))
    return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
    PyObject *o = PyTuple_GET_ITEM(args, i);
    const bool is_list = PyList_Check(o) || PyTuple_Check(o);
    for (Py_ssize_t j = 0; j < (is_list ? PySequence_Fast_GET_SIZE(o) : 1); j++) {
      PyObject *x = is_list ? PySequence_Fast_GET_ITEM(o, j) : o;
      if (tensor_check(x))
        view_order_of((struct tensor *)result, (struct tensor *)x);
    }
  }
}

void view_link_result(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, PyObject *result) {
  enum view_kind kind;
  if (tensor_check(result) && link_part(tr, op, args, result))
    return;
  if (!returns_view(op, &kind)) {
    note_order(args, result);
    if (tensor_check(result) && ((struct tensor *)result)->rank == 0 && strcmp(op->kind, "creation") != 0 &&
        op != &op_table[OP_COPY])
      ((struct tensor *)result)->is_scalar = true;
    return;
  }
  if (tensor_check(result)) {
    link_one(tr, result, viewed(args, kw, 0), kind, op == &op_table[OP_RAVEL]);
    return;
  }
  const bool is_atleast =
      op == &op_table[OP_ATLEAST_1D] || op == &op_table[OP_ATLEAST_2D] || op == &op_table[OP_ATLEAST_3D];
  if (PyList_Check(result) || PyTuple_Check(result))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++)
      link_one(tr, PySequence_Fast_GET_ITEM(result, i), viewed(args, kw, is_atleast ? i : 0), kind, false);
}

/* ---- views by strides -------------------------------------------------------------------------------------------- */

/* Finds the slices of base that t's strides describe.  Returns false if slices are not sufficient. */
static bool find_slices(const struct tensor *t, const struct tensor *base, int64_t offset, struct key *k) {
  *k = (struct key){.rank = base->rank};
  int next = 0;
  for (int d = 0; d < base->rank; d++) {
    const npy_intp step = base->strides[d];
    if (step <= 0 || (d && base->strides[d - 1] < step * base->dims[d]))
      return false; /* only arrays in C order are supported here */
    k->axis[d] = (struct entry){ENTRY_SLICE, offset / step, 1, 1, NULL, NULL};
    offset %= step;
  }
  for (int i = 0; i < t->rank; i++) {
    if (t->dims[i] == 1)
      continue;
    for (;; next++) {
      if (next == base->rank)
        return false;
      const npy_intp step = t->strides[i] / base->strides[next];
      const int64_t last = k->axis[next].start + (t->dims[i] - 1) * step;
      if (step && t->strides[i] % base->strides[next] == 0 && last >= 0 && last < base->dims[next]) {
        k->axis[next].step = step;
        k->axis[next++].count = t->dims[i];
        break;
      }
    }
  }
  return true;
}

/* Finds the positions of t's elements in base, counted in base's logical order.  Returns false if an element is not in
 * base. */
static bool find_places(const struct tensor *t, const struct tensor *base, int64_t offset, int32_t *places) {
  int64_t n = 1, at[HLO_RANK_MAX] = {0};
  for (int i = 0; i < t->rank; i++)
    n *= t->dims[i];
  if (!is_contiguous(base))
    return false;
  for (int64_t e = 0; e < n; e++) {
    int64_t place = offset;
    for (int i = 0; i < t->rank; i++)
      place += at[i] * t->strides[i];
    if (place < 0 || place > INT32_MAX)
      return false;
    places[e] = (int32_t)place;
    for (int i = t->rank; i-- > 0 && ++at[i] == t->dims[i];)
      at[i] = 0;
  }
  return true;
}

bool view_link_strides(struct tracer *tr, struct tensor *t, struct tensor *base, int64_t offset, bool is_read_only) {
  struct view *w = view_new(tr, 3);
  w->kind = is_read_only ? VIEW_READ_ONLY : VIEW_WRITABLE;
  struct key k;
  int64_t n = 1, total = 1;
  for (int i = 0; i < t->rank; i++)
    n *= t->dims[i];
  for (int i = 0; i < base->rank; i++)
    total *= base->dims[i];
  if (n && find_slices(t, base, offset, &k)) {
    add_key_step(tr, w, base->rank, base->dims, &k);
    add_step(tr, w, STEP_RESHAPE, base->rank, w->steps[0].to, t->rank, t->dims);
  } else if (n && is_contiguous(base) && is_contiguous(t)) {
    add_step(tr, w, STEP_RESHAPE, base->rank, base->dims, 1, &total);
    k = (struct key){.rank = 1, .axis = {{ENTRY_SLICE, offset, 1, n, NULL, NULL}}};
    add_key_step(tr, w, 1, &total, &k);
    add_step(tr, w, STEP_RESHAPE, 1, &n, t->rank, t->dims);
  } else {
    int32_t *places = arena_new_array(tr->a, int32_t, (size_t)n);
    if (!find_places(t, base, offset, places)) {
      trace_refuse(DG_UNSUPPORTED_INDEX, "take a copy first: np.copy(x)",
                   "a write to this view of a NumPy array is not supported");
      return false;
    }
    add_step(tr, w, STEP_RESHAPE, base->rank, base->dims, 1, &total);
    add_step(tr, w, STEP_PICK, 1, &total, t->rank, t->dims)->places = places;
  }
  link_to(t, base, w);
  return true;
}
