/* cores: a launch on two cores, and where they meet. */
#include <string.h>

#include "base/buf.h"
#include "nki/nki.h"

int nki_program_cores(const struct nki_program *p) {
  int most = 0;
  for (int i = 0; i < p->items.n; i++)
    most = p->items.v[i].core > most ? p->items.v[i].core : most;
  return most + 1;
}

/* The next call from item *at on of which all cores have one, at the same time; NULL after the last one of the core. */
static const struct nki_call *next_meeting(const struct nki_program *p, int core, int *at) {
  while (*at < p->items.n) {
    const struct nki_item *x = &p->items.v[(*at)++];
    if (x->core == core && x->call && (x->call->kind == NKI_CORE_BARRIER || x->call->kind == NKI_SENDRECV))
      return x->call;
  }
  return NULL;
}

static const char *place_of(struct nki_error *err, const struct nki_call *c) {
  return c->locs.n ? arena_printf(err->arena, " (line %d)", c->locs.v[0]->range.line) : "";
}

static const char *shape_of(struct nki_error *err, const struct nki_view *v) {
  const char *text = arena_printf(err->arena, "%s (", nki_type_name(v->tensor));
  for (int i = 0; i < v->rank; i++)
    text = arena_printf(err->arena, "%s%s%lld", text, i ? ", " : "", (long long)v->dim[i].size);
  return arena_printf(err->arena, "%s)", text);
}

static bool same_elements(const struct nki_view *x, const struct nki_view *y) {
  return nki_elements(x) == nki_elements(y) && x->dim[0].size == y->dim[0].size &&
         x->tensor->dtype == y->tensor->dtype && x->tensor->packed == y->tensor->packed;
}

static bool check_other_is_missing(const struct nki_call *c, int core, struct nki_error *err) {
  return nki_refuse(err, DG_NKI_CORES,
                    "call it in all instances, outside of conditions on nl.program_id that only one of them meets",
                    "core %d calls %s, but core %d does not: it would wait for ever", core, nki_def(c)->name, !core);
}

/* x of core 0 and y of core 1, which are both an exchange. */
static bool check_exchange(const struct nki_call *x, const struct nki_call *y, struct nki_error *err) {
  const struct nki_view *a = nki_value(x, "src")->view, *b = nki_value(y, "dst")->view;
  const struct nki_view *back = nki_value(y, "src")->view, *here = nki_value(x, "dst")->view;
  const int64_t pipe = nki_first_int(nki_value(x, "pipe_id"), 0), other = nki_first_int(nki_value(y, "pipe_id"), 0);
  if (pipe != other)
    return nki_refuse(err, DG_NKI_CORES, "give both the same pipe_id",
                      "core 0 exchanges data through pipe %lld, core 1%s through pipe %lld", (long long)pipe,
                      place_of(err, y), (long long)other);
  for (int k = 0; k < 2; k++, a = back, b = here)
    if (!same_elements(a, b))
      return nki_refuse(err, DG_NKI_CORES, "give src and dst of both cores the same shape and type",
                        "core %d sends %s, but dst of core %d%s is %s", k, shape_of(err, a), !k,
                        k ? "" : place_of(err, y), shape_of(err, b));
  return true;
}

bool nki_check_meetings(const struct nki_program *p, struct nki_error *err, const struct nki_call **at) {
  const bool has_two = nki_program_cores(p) > 1;
  for (int i = 0, k = 0;;) {
    const struct nki_call *x = next_meeting(p, 0, &i), *y = has_two ? next_meeting(p, 1, &k) : NULL;
    *at = x ? x : y;
    if (!*at)
      return true;
    if (!has_two) {
      if (p->grid.cores < 2 || p->instances.n < 2 || p->instances.v[1].same_as >= 0)
        continue;
      return nki_refuse(err, DG_NKI_CORES, "launch the kernel itself on two cores, on trn2 or later",
                        "%s is between two cores, but as a part of this kernel both instances run on one",
                        nki_def(x)->name);
    }
    if (!x || !y)
      return check_other_is_missing(*at, x ? 0 : 1, err);
    if (x->kind != y->kind)
      return nki_refuse(err, DG_NKI_CORES, "call the same functions in the same order in all instances",
                        "core 0 calls %s where core 1%s calls %s: both would wait for ever", nki_def(x)->name,
                        place_of(err, y), nki_def(y)->name);
    if (x->kind == NKI_SENDRECV && !check_exchange(x, y, err))
      return false;
  }
}
