/* tensor_index: t[…] of the tensors of an NKI kernel. */
#include <inttypes.h>
#include <stdio.h>

#include "trace/nki/nki.h"
#include "trace/refuse.h"

/* An entry of an index, and the register by which it begins later, or NULL. */
struct entry {
  struct nki_index at;
  struct nki_tensor *reg;
};

static bool read_bound(PyObject *o, bool *has, int64_t *out) {
  *has = o != Py_None;
  return !*has || nki_read_int(o, "a bound of a slice", out);
}

/* A slice of nl.ds with a register as its start: (register, size). */
static bool read_moving(struct nki_recorder *r, PyObject *o, struct entry *out, bool *is) {
  PyObject *start = PyObject_GetAttrString(o, "nki_start"),
           *size = start ? PyObject_GetAttrString(o, "nki_size") : NULL;
  PyErr_Clear();
  *is = size != NULL;
  bool ok = *is;
  if (ok) {
    bool is_register;
    out->at = (struct nki_index){.kind = NKI_SLICE, .step = 1, .has_start = true, .has_stop = true};
    out->reg = nki_index_register(r, start, &is_register);
    ok = out->reg && nki_read_int(size, "size", &out->at.stop);
  }
  Py_XDECREF(start);
  Py_XDECREF(size);
  return ok;
}

static bool read_slice(struct nki_recorder *r, const PySliceObject *s, struct nki_index *out) {
  PyObject *parts[] = {s->start, s->stop, s->step};
  bool has_step;
  for (int i = 0; i < 3; i++) {
    bool is;
    (void)nki_register_of(r, parts[i], &is);
    PyErr_Clear();
    if (!is)
      continue;
    trace_refuse(DG_NKI_REGISTER_IN_HOST_CODE, "write nl.ds(start, size): the size is known at compile time",
                 "a bound of a slice is a register");
    return false;
  }
  return read_bound(s->start, &out->has_start, &out->start) && read_bound(s->stop, &out->has_stop, &out->stop) &&
         read_bound(s->step, &has_step, &out->step);
}

static bool read_index(struct nki_recorder *r, PyObject *o, struct entry *entry) {
  struct nki_index *out = &entry->at;
  bool is = false;
  *entry = (struct entry){.at = {.kind = NKI_SLICE, .step = 1}};
  if (o == Py_Ellipsis) {
    out->kind = NKI_ELLIPSIS;
    return true;
  }
  if (o == Py_None) {
    out->kind = NKI_NEW;
    return true;
  }
  if (PySlice_Check(o))
    return read_slice(r, (PySliceObject *)o, out);
  out->kind = NKI_AT;
  if (nki_is_tensor(o) || PyArray_Check(o) || PyList_Check(o)) {
    trace_refuse(DG_NKI_OPERAND, "write .select(dim, index) or .ap(…, scalar_offset=index), or for rows .vector_select",
                 "an index is a tensor");
    return false;
  }
  if (!PyLong_Check(o)) {
    entry->reg = nki_index_register(r, o, &is);
    if (is)
      return entry->reg != NULL;
    const bool ok = read_moving(r, o, entry, &is);
    if (is)
      return ok;
  }
  return nki_read_int(o, "an index", &out->start);
}

/* Moves the view v[at[0], …] by the registers of its entries: each along the dimension of v that it indexes. */
static bool move_by_registers(struct nki_recorder *r, const struct nki_view *v, int n, const struct entry *at,
                              struct nki_view *out, struct nki_error *err) {
  struct nki_view moved = *v;
  int n_dims = 0, d = 0;
  for (int i = 0; i < n; i++)
    n_dims += at[i].at.kind == NKI_AT || at[i].at.kind == NKI_SLICE;
  for (int i = 0; i < n; i++) {
    if (at[i].reg && !nki_view_move(&moved, d, at[i].reg, r->program->arena, err))
      return false;
    d += at[i].at.kind == NKI_ELLIPSIS ? v->rank - n_dims : at[i].at.kind != NKI_NEW;
  }
  out->n_terms = moved.n_terms;
  out->terms = moved.terms;
  return true;
}

enum { ENTRY_MAX = 80 /* characters of an entry of an index */ };

/* Writes an entry of an index as the kernel wrote it; out has ENTRY_MAX characters.  Returns how many it wrote. */
static int put_entry(char *out, const struct entry *e) {
  const struct nki_index *x = &e->at;
  char start[24] = "", stop[24] = "", step[24] = "";
  if (x->kind == NKI_ELLIPSIS || x->kind == NKI_NEW)
    return snprintf(out, ENTRY_MAX, "%s", x->kind == NKI_NEW ? "None" : "...");
  if (x->kind == NKI_AT)
    return e->reg ? snprintf(out, ENTRY_MAX, "%.40s", e->reg->name) : snprintf(out, ENTRY_MAX, "%" PRId64, x->start);
  if (e->reg)
    return snprintf(out, ENTRY_MAX, "nl.ds(%.40s, %" PRId64 ")", e->reg->name, x->stop);
  if (x->has_start)
    snprintf(start, sizeof start, "%" PRId64, x->start);
  if (x->has_stop)
    snprintf(stop, sizeof stop, "%" PRId64, x->stop);
  if (x->step != 1)
    snprintf(step, sizeof step, ":%" PRId64, x->step);
  return snprintf(out, ENTRY_MAX, "%s:%s%s", start, stop, step);
}

/* Notes the expression that made a view: v[at[0], …].  Inside of a call that is shown as it was written nobody sees views. */
static void note_index(struct nki_recorder *r, const struct nki_view *v, int n, const struct entry *at,
                       struct nki_view *out) {
  char text[2 * NKI_RANK_MAX * (ENTRY_MAX + 2)] = "";
  int len = 0;
  out->written = NULL;
  if (!nki_shows_views(r))
    return;
  for (int i = 0; i < n; i++) {
    if (i)
      len += snprintf(text + len, sizeof text - (size_t)len, ", ");
    len += put_entry(text + len, &at[i]);
  }
  out->written = arena_printf(r->program->arena, "%s[%s]", nki_written_view(r, v), text);
}

static PyObject *subscript(PyObject *self, PyObject *key) {
  struct nki_recorder *r;
  const struct nki_view *v = nki_own_view(self, &r);
  struct entry entries[2 * NKI_RANK_MAX];
  struct nki_index at[2 * NKI_RANK_MAX];
  const Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
  if (!v)
    return NULL;
  if (n > 2 * NKI_RANK_MAX)
    return trace_refuse(DG_NKI_BOUNDS, "give one for each dimension, or ... for those that stay whole",
                        "there are %zd indices for %d dimensions", n, v->rank);
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!read_index(r, PyTuple_Check(key) ? PyTuple_GET_ITEM(key, i) : key, &entries[i]))
      return NULL;
    at[i] = entries[i].at;
  }
  struct nki_error err = {.arena = r->program->arena};
  struct nki_view out;
  if (!nki_view_index(v, (int)n, at, &out, &err) || !move_by_registers(r, v, (int)n, entries, &out, &err))
    return nki_raise(&err);
  note_index(r, v, (int)n, entries, &out);
  return nki_wrap(r, &out);
}

PyObject *nki_tensor_subscript(PyObject *self, PyObject *key) {
  PyObject *other = nki_unknown_among(PyTuple_Check(key) ? key : NULL, NULL);
  return other ? other : nki_or_unknown(nki_is_unknown(key) ? Py_NewRef(key) : subscript(self, key));
}

int nki_tensor_assign(PyObject *self, PyObject *key, PyObject *value) {
  (void)self, (void)key, (void)value;
  trace_refuse(DG_NKI_TILE_ASSIGNMENT, "write nisa.tensor_copy(dst=tile[…], src=value), or nl.store for HBM",
               "a part of a tensor cannot be assigned to");
  return nki_report() ? 0 : -1;
}
