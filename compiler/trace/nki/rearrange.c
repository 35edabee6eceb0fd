/* rearrange: the dimensions of a view by names.
 *
 *     t.rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 4})
 *
 * splits dimension 1 into a and b, of which a has 4 elements, and exchanges them.  A pattern has a name or a tuple of names
 * for each dimension; both patterns have the same names.  It is a reshape_dim of each tuple of the source, a permute, and a
 * flatten_dims of each tuple of the destination, with their rules. */
#include <string.h>

#include "trace/nki/nki.h"
#include "trace/refuse.h"

/* A pattern as a row of names, which Python owns: dimension d has count[d] of them. */
struct pattern {
  int n_dims, n_names;
  int count[NKI_RANK_MAX];
  PyObject *name[NKI_RANK_MAX];
};

static bool refuse(const char *hint, const char *what, const char *side) {
  trace_refuse(DG_NKI_VIEW, hint, what, side);
  return false;
}

static int find(const struct pattern *p, PyObject *name) {
  for (int i = 0; i < p->n_names; i++)
    if (PyUnicode_Compare(p->name[i], name) == 0)
      return i;
  return -1;
}

static bool add_name(struct pattern *p, PyObject *name, const char *side) {
  if (!PyUnicode_Check(name))
    return refuse("write ('p', ('a', 'b'))", "a name in the %s is no string", side);
  if (find(p, name) >= 0)
    return refuse(NULL, "a name is twice in the %s", side);
  if (p->n_names == NKI_RANK_MAX)
    return refuse("a tensor has at most 8 dimensions", "there are too many names in the %s", side);
  p->name[p->n_names++] = name;
  return true;
}

/* The names are those of `o`, which outlives *p. */
static bool read_pattern(PyObject *o, const char *side, struct pattern *p) {
  *p = (struct pattern){.n_dims = 0};
  if (!PyTuple_Check(o) && !PyList_Check(o))
    return refuse("write ('p', ('a', 'b'))", "the %s is no tuple of names", side);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    PyObject *x = PySequence_Fast_GET_ITEM(o, i);
    const int before = p->n_names;
    if (!PyTuple_Check(x) && !PyList_Check(x)) {
      if (!add_name(p, x, side))
        return false;
    } else {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(x); k++)
        if (!add_name(p, PySequence_Fast_GET_ITEM(x, k), side))
          return false;
    }
    if (p->n_names == before)
      return refuse("use expand_dim or squeeze_dim", "a dimension in the %s has no name", side);
    p->count[p->n_dims++] = p->n_names - before;
  }
  return true;
}

/* The size of each name of the source: those of fixed_sizes, -1 for those that follow from the dimension's size. */
static bool read_sizes(PyObject *o, const struct pattern *from, int64_t *size) {
  Py_ssize_t pos = 0;
  PyObject *key, *value;
  for (int i = 0; i < from->n_names; i++)
    size[i] = -1;
  if (o && o != Py_None && !PyDict_Check(o))
    return refuse("write {'a': 4}", "the %s are no dictionary", "fixed sizes");
  while (o && o != Py_None && PyDict_Next(o, &pos, &key, &value)) {
    const int i = PyUnicode_Check(key) ? find(from, key) : -1;
    if (i < 0)
      return refuse(NULL, "a name of fixed_sizes is not in the %s", "source pattern");
    if (!nki_read_int(value, "a size", &size[i]))
      return false;
    if (size[i] < 1)
      return refuse(NULL, "a size in %s is less than 1", "fixed_sizes");
  }
  return true;
}

/* Splits each dimension into its names. */
static bool split(struct nki_view *v, const struct pattern *from, const int64_t *size, struct nki_error *err) {
  int at = 0;
  for (int d = 0; d < from->n_dims; at += from->count[d++]) {
    const struct nki_view before = *v;
    int unknown = 0;
    for (int k = 0; k < from->count[d]; k++)
      unknown += size[at + k] < 0;
    if (unknown > 1)
      return nki_refuse(err, DG_NKI_VIEW, "give the sizes of all names but one in fixed_sizes",
                        "dimension %d is split into %d sizes that are not known", d, unknown);
    if ((from->count[d] > 1 || !unknown) && !nki_view_reshape_dim(&before, at, from->count[d], &size[at], v, err))
      return false;
  }
  return true;
}

static bool merge(struct nki_view *v, const struct pattern *to, struct nki_error *err) {
  for (int d = 0; d < to->n_dims; d++) {
    const struct nki_view before = *v;
    if (to->count[d] > 1 && !nki_view_flatten_dims(&before, d, d + to->count[d] - 1, v, err))
      return false;
  }
  return true;
}

static bool rearrange(struct nki_view *v, const struct pattern *from, const struct pattern *to, const int64_t *size,
                      struct nki_error *err) {
  int64_t order[NKI_RANK_MAX];
  if (from->n_dims != v->rank)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "the source pattern has %d dimensions, but the tensor %d", from->n_dims,
                      v->rank);
  bool is_same = to->n_names == from->n_names;
  for (int i = 0; is_same && i < to->n_names; i++)
    is_same = (order[i] = find(from, to->name[i])) >= 0;
  if (!is_same)
    return nki_refuse(err, DG_NKI_VIEW, "both patterns have the same names",
                      "the source pattern has %d names, the destination pattern has others", from->n_names);
  if (!split(v, from, size, err))
    return false;
  const struct nki_view before = *v;
  return nki_view_permute(&before, to->n_names, order, v, err) && merge(v, to, err);
}

PyObject *nki_tensor_rearrange(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"src_pattern", "dst_pattern", "fixed_sizes", NULL};
  struct nki_recorder *r = nki_enter();
  struct nki_view *own = r ? nki_view_of(r, self, "self") : NULL;
  PyObject *source, *target, *sizes = NULL;
  struct pattern from, to;
  int64_t size[NKI_RANK_MAX];
  if (!own || !nki_plain(own, "self") ||
      !PyArg_ParseTupleAndKeywords(args, kw, "OO|O:rearrange", names, &source, &target, &sizes) ||
      !read_pattern(source, "source pattern", &from) || !read_pattern(target, "destination pattern", &to) ||
      !read_sizes(sizes, &from, size))
    return NULL;
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view v = *own;
  if (!rearrange(&v, &from, &to, size, &err))
    return nki_raise(&err);
  v.written = nki_shows_views(r) ? arena_printf(r->program->arena, "%s.%s", nki_written_view(r, own),
                                                nki_written_call(r, "rearrange", args, kw))
                                 : NULL;
  return nki_wrap(r, &v);
}
