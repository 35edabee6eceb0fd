/* einsum: sums of products that are described by index letters.
 *
 * Letters and "..." become labels; the ellipsis' axes get separate labels, counted from the right.  Each operand is
 * first simplified on its own: repeated labels become a diagonal, and labels that occur neither in another operand nor
 * in the output are summed.  Then the operands are multiplied from left to right by HLO dots.  A label that both
 * operands of a dot have is a batch dimension if it is needed later, and contracted otherwise.
 */
#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

enum { LABEL_DOTS = 52, LABELS = LABEL_DOTS + HLO_RANK_MAX }; /* a–z, A–Z, and the ellipsis' axes */

struct term {
  hlo_val v;
  int n;
  int label[HLO_RANK_MAX]; /* per axis */
};

static int letter(char c) {
  return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

static bool refuse_subscripts(const char *why) {
  trace_refuse(DG_BAD_ARGUMENT, "write it like np.einsum(\"ij,jk->ik\", a, b)", "einsum: %s", why);
  return false;
}

/* Reads subscripts up to a comma or the arrow.  If rank < 0 they are the output's, whose ellipsis has n_dots axes. */
static bool read_labels(const char **at, const char *end, int rank, int n_dots, struct term *t) {
  const char *p = *at;
  int letters = 0;
  bool dots = false;
  t->n = 0;
  for (const char *q = p; q < end && *q != ',' && *q != '-'; q++)
    letters += letter(*q) >= 0;
  int fill = rank < 0 ? n_dots : rank - letters;
  for (; p < end && *p != ',' && *p != '-'; p++) {
    if (*p == ' ')
      continue;
    if (*p == '.') {
      if (dots || end - p < 3 || p[1] != '.' || p[2] != '.')
        return refuse_subscripts("an ellipsis is three dots, and there is at most one per operand");
      dots = true;
      if (!args_rank(t->n + fill))
        return false;
      for (int i = 0; i < fill; i++)
        t->label[t->n++] = LABEL_DOTS + HLO_RANK_MAX - fill + i;
      p += 2;
      continue;
    }
    if (letter(*p) < 0)
      return refuse_subscripts("only letters, commas, \"->\" and \"...\" are allowed");
    if (!args_rank(t->n + 1))
      return false;
    t->label[t->n++] = letter(*p);
  }
  *at = p;
  if (rank >= 0 && t->n != rank)
    return refuse_subscripts("an operand does not have as many dimensions as its subscripts say");
  return true;
}

/* Sets the output if there is no "->": the ellipsis, then every letter that occurs once, in alphabetical order
 * (capitals first). */
static bool implicit_output(int n, const struct term *ts, struct term *out) {
  int count[LABELS] = {0}, total = 0;
  out->n = 0;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < ts[i].n; k++)
      count[ts[i].label[k]]++;
  for (int l = 0; l < LABELS; l++)
    total += l < LABEL_DOTS ? count[l] == 1 : count[l] > 0;
  if (!args_rank(total))
    return false;
  for (int l = LABEL_DOTS; l < LABELS; l++)
    if (count[l])
      out->label[out->n++] = l;
  for (int i = 0; i < LABEL_DOTS; i++) {
    int l = i < 26 ? i + 26 : i - 26;
    if (count[l] == 1)
      out->label[out->n++] = l;
  }
  return true;
}

static bool has(const struct term *t, int label) {
  for (int k = 0; k < t->n; k++)
    if (t->label[k] == label)
      return true;
  return false;
}

static int axis_of(const struct term *t, int label) {
  int k = 0;
  while (t->label[k] != label) {
    k++;
    assert(k < t->n);
  }
  return k;
}

static void drop(struct term *t, int axis) {
  assert(axis >= 0 && axis < t->n);
  memmove(t->label + axis, t->label + axis + 1, (size_t)(t->n - axis - 1) * sizeof *t->label);
  t->n--;
}

/* Replaces axes that have the same label by one axis, their diagonal. */
static bool take_diagonals(struct tracer *tr, struct term *t) {
  for (int i = 0; i < t->n; i++)
    for (int j = i + 1; j < t->n; j++)
      if (t->label[i] == t->label[j]) {
        int label = t->label[i];
        if (t->v->shape.dims[i] != t->v->shape.dims[j])
          return refuse_subscripts("an index is repeated on axes of different size");
        t->v = val_diagonal(tr, t->v, i, j, 0);
        drop(t, j);
        drop(t, i);
        t->label[t->n++] = label;
        return t->v && take_diagonals(tr, t);
      }
  return t->v;
}

/* Sums over labels that are not needed. */
static bool sum_alone(struct tracer *tr, struct term *t, const bool needed[LABELS]) {
  bool mask[HLO_RANK_MAX] = {0}, any = false;
  int n = 0;
  for (int k = 0; k < t->n; k++) {
    mask[k] = !needed[t->label[k]];
    any = any || mask[k];
  }
  if (!any)
    return true;
  t->v = val_sum(tr, t->v, mask, false);
  for (int k = 0; k < t->n; k++)
    if (!mask[k])
      t->label[n++] = t->label[k];
  t->n = n;
  return t->v;
}

/* Marks the labels that these terms or the output have. */
static void mark_needed(const struct term *out, int n, const struct term *ts, bool needed[LABELS]) {
  memset(needed, 0, LABELS * sizeof *needed);
  for (int k = 0; k < out->n; k++)
    needed[out->label[k]] = true;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < ts[i].n; k++)
      needed[ts[i].label[k]] = true;
}

static bool multiply(struct tracer *tr, struct term *x, const struct term *y, const bool needed[LABELS]) {
  int64_t xb[HLO_RANK_MAX], yb[HLO_RANK_MAX], xc[HLO_RANK_MAX], yc[HLO_RANK_MAX];
  int nb = 0, nc = 0;
  struct term r = {.n = 0};
  for (int k = 0; k < x->n; k++)
    if (has(y, x->label[k])) {
      int64_t other = axis_of(y, x->label[k]);
      if (needed[x->label[k]])
        xb[nb] = k, yb[nb++] = other, r.label[r.n++] = x->label[k];
      else
        xc[nc] = k, yc[nc++] = other;
    }
  if (x->n + y->n - nb - 2 * nc > HLO_RANK_MAX)
    return refuse_subscripts("a product has too many dimensions");
  for (int k = 0; k < x->n; k++)
    if (!has(y, x->label[k]))
      r.label[r.n++] = x->label[k];
  for (int k = 0; k < y->n; k++)
    if (!has(x, y->label[k]))
      r.label[r.n++] = y->label[k];
  struct hlo_dot_dims d = {hlo_ints_dup(tr->a, nc, xc), hlo_ints_dup(tr->a, nc, yc), hlo_ints_dup(tr->a, nb, xb),
                           hlo_ints_dup(tr->a, nb, yb)};
  r.v = val_dot(tr, x->v, y->v, &d);
  *x = r;
  return r.v;
}

/* Gives every label one size.  Axes of size 1 are broadcast to it. */
static bool match_sizes(struct tracer *tr, int n, struct term *ts) {
  int64_t size[LABELS], dims[HLO_RANK_MAX];
  for (int l = 0; l < LABELS; l++)
    size[l] = 1;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < ts[i].n; k++) {
      int64_t d = ts[i].v->shape.dims[k], *s = &size[ts[i].label[k]];
      if (d != 1 && *s != 1 && d != *s) {
        trace_refuse(DG_SHAPE_MISMATCH, "one letter stands for one size",
                     "einsum: an index has the sizes %lld and %lld", (long long)*s, (long long)d);
        return false;
      }
      *s = d == 1 ? *s : d;
    }
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < ts[i].n; k++)
      dims[k] = size[ts[i].label[k]];
    if (!(ts[i].v = val_broadcast(tr, ts[i].v, ts[i].n, dims)))
      return false;
  }
  return true;
}

static hlo_val evaluate(struct tracer *tr, int n, struct term *ts, const struct term *out) {
  bool needed[LABELS];
  int64_t p[HLO_RANK_MAX];
  if (!match_sizes(tr, n, ts))
    return NULL;
  for (int i = 0; i < n; i++) {
    if (!take_diagonals(tr, &ts[i]))
      return NULL;
    struct term self = ts[i];
    ts[i].n = 0; /* marks only the labels of the other terms */
    mark_needed(out, n, ts, needed);
    ts[i] = self;
    if (!sum_alone(tr, &ts[i], needed))
      return NULL;
  }
  for (int i = 1; i < n; i++) {
    mark_needed(out, n - i - 1, ts + i + 1, needed);
    if (!multiply(tr, &ts[0], &ts[i], needed))
      return NULL;
  }
  for (int k = 0; k < out->n; k++)
    p[k] = axis_of(&ts[0], out->label[k]);
  return val_transpose(tr, ts[0].v, p);
}

static bool check_output(int n, const struct term *ts, const struct term *out) {
  for (int k = 0; k < out->n; k++) {
    bool found = false;
    for (int i = 0; i < n; i++)
      found = found || has(&ts[i], out->label[k]);
    for (int j = 0; j < k; j++)
      if (out->label[j] == out->label[k])
        return refuse_subscripts("the output names an index twice");
    if (!found && out->label[k] < LABEL_DOTS)
      return refuse_subscripts("the output names an index that no operand has");
  }
  return true;
}

static bool parse(const char *text, int n, struct term *ts, struct term *out) {
  const char *p = text, *end = text + strlen(text);
  int n_dots = 0;
  for (int i = 0; i < n; i++) {
    if (i && (p == end || *p++ != ','))
      return refuse_subscripts("fewer subscripts than operands");
    if (!read_labels(&p, end, ts[i].v->shape.rank, 0, &ts[i]))
      return false;
    int dots = 0;
    for (int k = 0; k < ts[i].n; k++)
      dots += ts[i].label[k] >= LABEL_DOTS;
    n_dots = dots > n_dots ? dots : n_dots;
  }
  if (p < end && *p == ',')
    return refuse_subscripts("more subscripts than operands");
  if (p == end)
    return implicit_output(n, ts, out);
  if (end - p < 2 || p[1] != '>')
    return refuse_subscripts("an arrow is written \"->\"");
  p += 2;
  if (!read_labels(&p, end, -1, n_dots, out))
    return false;
  return p == end ? check_output(n, ts, out) : refuse_subscripts("there is more than one output");
}

PyObject *op_einsum(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(args) - 1;
  const char *text =
      n >= 1 && PyUnicode_Check(PyTuple_GET_ITEM(args, 0)) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 0)) : NULL;
  PyObject *dtype = kw ? PyDict_GetItemString(kw, "dtype") : NULL;
  if (!text)
    return trace_refuse(DG_UNSUPPORTED_OP, "write it like np.einsum(\"ij,jk->ik\", a, b)",
                        "einsum without a text of subscripts is not supported");
  PyObject *arrays = PyTuple_GetSlice(args, 1, n + 1);
  hlo_val *xs = NULL;
  int got = 0;
  struct term out = {.n = 0}, *ts = arena_new_array(tr->a, struct term, (size_t)n);
  bool ok = arrays && operand_read_list(tr, op->name, arrays, dtype, &got, &xs);
  Py_XDECREF(arrays);
  if (!ok)
    return NULL;
  for (int i = 0; i < got; i++)
    ts[i].v = xs[i];
  hlo_val v = parse(text, got, ts, &out) ? evaluate(tr, got, ts, &out) : NULL;
  return tensor_wrap(tr, v && v == xs[0] ? un(tr, HLO_COPY, v) : v);
}
