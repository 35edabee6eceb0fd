/* retype: tensors and views as elements of another type. */
#include <assert.h>

#include "nki/nki.h"

struct nki_tensor *nki_retyped(struct arena *a, struct nki_tensor *t, enum dtype dtype, enum nki_packed packed) {
  struct nki_tensor **at = &t->retyped;
  assert(!t->storage);
  if (t->dtype == dtype && t->packed == packed)
    return t;
  assert(!t->reg);
  while (*at && ((*at)->dtype != dtype || (*at)->packed != packed))
    at = &(*at)->retyped;
  struct nki_tensor *x = *at;
  if (x)
    return x;
  x = *at = arena_dup(a, t, sizeof *t);
  const int64_t bytes = t->dims[t->rank - 1] * (int64_t)dtype_size(t->dtype);
  assert(bytes % (int64_t)dtype_size(dtype) == 0);
  x->dtype = dtype;
  x->packed = packed;
  x->dims[t->rank - 1] = bytes / (int64_t)dtype_size(dtype);
  x->storage = t;
  x->retyped = NULL;
  x->name = arena_printf(a, "%s.view(nl.%s)", t->name, nki_type_name(x));
  return x;
}

/* Elements of two sizes, in bytes. */
struct sizes {
  int64_t from, to;
};

/* n elements become others; false if they are no whole number of them. */
static bool rescale(struct sizes s, int64_t *n) {
  if (*n * s.from % s.to)
    return false;
  *n = *n * s.from / s.to;
  return true;
}

/* The tensor, and where the view begins in it. */
static bool rebase(const struct nki_view *v, struct sizes s, enum dtype dtype, enum nki_packed packed, struct arena *a,
                   struct nki_view *out, struct nki_error *err) {
  static const char copy[] = "copy it into a new tensor first";
  struct nki_tensor *storage = nki_storage(v->tensor);
  struct nki_term *terms = v->n_terms ? arena_dup(a, v->terms, (size_t)v->n_terms * sizeof *terms) : NULL;
  int64_t row = v->tensor->dims[v->tensor->rank - 1];
  *out = *v;
  if (v->tensor->reg)
    return nki_refuse(err, DG_NKI_VIEW, NULL, "a register has no other type");
  if (v->rows)
    return nki_refuse(err, DG_NKI_VIEW, "select the rows of a view", "rows that numbers select have no other type");
  if (v->tensor->space == MEM_PSUM && s.from != s.to)
    return nki_refuse(err, DG_NKI_VIEW, "copy it to SBUF first",
                      "elements of %lld bytes in PSUM cannot be seen as %lld", (long long)s.from, (long long)s.to);
  if (!rescale(s, &row))
    return nki_refuse(err, DG_NKI_VIEW, copy,
                      "the last dimension of %s has %lld elements of %lld bytes, no whole number of %lld",
                      v->tensor->name, (long long)row, (long long)s.from, (long long)s.to);
  bool ok = rescale(s, &out->offset);
  for (int i = 0; ok && i < v->n_terms; i++) {
    ok = rescale(s, &terms[i].offset);
    if (ok && terms[i].reg && terms[i].dim == v->tensor->rank - 1)
      ok = rescale(s, &terms[i].by);
  }
  if (!ok)
    return nki_refuse(err, DG_NKI_VIEW, copy, "the view does not begin at an element of %lld bytes", (long long)s.to);
  out->terms = terms;
  out->tensor = nki_retyped(a, storage, dtype, packed);
  return true;
}

static struct sizes sizes_of(const struct nki_view *v, enum dtype dtype) {
  return (struct sizes){(int64_t)dtype_size(v->tensor->dtype), (int64_t)dtype_size(dtype)};
}

bool nki_view_begin_as(const struct nki_view *v, enum dtype dtype, enum nki_packed packed, struct arena *a,
                       struct nki_view *out, struct nki_error *err) {
  return rebase(v, sizes_of(v, dtype), dtype, packed, a, out, err);
}

bool nki_view_as(const struct nki_view *v, enum dtype dtype, enum nki_packed packed, struct arena *a,
                 struct nki_view *out, struct nki_error *err) {
  const struct sizes s = sizes_of(v, dtype);
  const int last = v->rank - 1;
  if (!rebase(v, s, dtype, packed, a, out, err))
    return false;
  if (v->dim[last].size > 1 && v->dim[last].stride != 1 && s.from != s.to)
    return nki_refuse(err, DG_NKI_VIEW, "copy it into a new tensor first",
                      "the last dimension has gaps between its elements");
  if (!rescale(s, &out->dim[last].size))
    return nki_refuse(err, DG_NKI_VIEW, NULL,
                      "%lld elements of %lld bytes are no whole number of elements of %lld bytes",
                      (long long)v->dim[last].size, (long long)s.from, (long long)s.to);
  if (s.from != s.to)
    out->dim[last].stride = 1;
  for (int i = nki_is_on_chip(v); i < last; i++)
    if (v->dim[i].size == 1)
      out->dim[i].stride = 0;
    else if (!rescale(s, &out->dim[i].stride))
      return nki_refuse(err, DG_NKI_VIEW, "copy it into a new tensor first",
                        "the steps of dimension %d are no whole number of elements of %lld bytes", i, (long long)s.to);
  return true;
}
