/* order: see order.h. */
#include "nki/order.h"

#include <string.h>

#include "base/array.h"

static struct nki_order *order_of(struct nki_program *p, struct nki_call *c) {
  if (!c->order) {
    c->order = arena_new(p->arena, struct nki_order);
    *c->order = (struct nki_order){.item = -1, .region = -1};
  }
  return c->order;
}

void nki_order_name(struct nki_program *p, struct nki_call *c, const char *name) {
  struct nki_order *o = order_of(p, c);
  o->name = name;
  o->is_named = true;
}

void nki_order_add(struct nki_program *p, struct nki_call *after, struct nki_call *before) {
  order_of(p, after);
  order_of(p, before);
  array_push(p->arena, &p->waits, (struct nki_wait){after, before});
}

/* ---- the calls of the running instance --------------------------------------------------------------------------- */

/* Says where the calls that have an order are. */
static void locate(struct nki_program *p, int first) {
  int open[NKI_REGIONS_MAX], n_open = 0;
  for (int i = first; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    const enum nki_region region = c ? nki_region_of(c) : NKI_NO_REGION;
    if (c && c->order) {
      c->order->item = i;
      c->order->region = n_open ? open[n_open - 1] : -1;
    }
    if (region == NKI_BEGINS)
      open[n_open++] = i;
    else if (region == NKI_GOES_ON)
      open[n_open - 1] = i;
    else if (region == NKI_ENDS)
      n_open--;
  }
}

/* The calls that the kernel names, by name. */
struct named {
  struct index by_name;
  struct {
    struct nki_call **v;
    int n, cap;
  } calls;
};

static void find_names(struct nki_program *p, int first, struct named *out) {
  for (int i = first; i < p->items.n; i++) {
    struct nki_call *c = p->items.v[i].call;
    if (!c || !c->order || !c->order->is_named)
      continue;
    index_add(&out->by_name, hash_text(c->order->name), out->calls.n);
    array_push(p->arena, &out->calls, c);
  }
}

static struct nki_call *find(const struct named *n, const char *name, struct nki_error *err,
                             const struct nki_call **at) {
  struct nki_call *found = NULL;
  for (struct index_probe k = index_probe(&n->by_name, hash_text(name)); index_next(&k);) {
    struct nki_call *c = n->calls.v[k.entry];
    if (strcmp(c->order->name, name) != 0)
      continue;
    if (found) {
      *at = c->order->item > found->order->item ? c : found;
      nki_refuse(err, DG_NKI_NAME_IN_USE, "give each call a name of its own: name=f\"…{i}\" in a loop",
                 "two calls have the name \"%s\", which the schedule says", name);
      return NULL;
    }
    found = c;
  }
  if (!found)
    nki_refuse(err, DG_NKI_NAME_IN_USE, "name= of a call of nki.isa says how a schedule calls it",
               "the schedule says \"%s\", but no call has this name", name);
  return found;
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

/* Its name in NISA, where commas separate names. */
static const char *name_of(struct nki_program *p, struct nki_call *c) {
  if (!c->order->name || strchr(c->order->name, ','))
    c->order->name = arena_printf(p->arena, "#%d", c->order->item);
  return c->order->name;
}

static bool resolve(struct nki_program *p, const struct nki_wait *w, struct nki_error *err,
                    const struct nki_call **at) {
  struct nki_order *after = w->after->order, *before = w->before->order;
  *at = w->after;
  if (before->item >= after->item)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "make the calls in the order that the schedule says",
                      "%s waits for %s, which the kernel calls later; calls are not moved here",
                      after->is_named ? after->name : nki_def(w->after)->name,
                      before->is_named ? before->name : nki_def(w->before)->name);
  if (before->region != after->region)
    return nki_refuse(err, DG_NKI_DEVICE_LOOP, "both have to be in the same loops and branches on the device",
                      "%s waits for a call outside of its loop or branch on the device, or in another one",
                      after->is_named ? after->name : nki_def(w->after)->name);
  before->is_awaited = true;
  const char *name = name_of(p, w->before);
  for (int i = 0; i < after->after.n; i++)
    if (!strcmp(after->after.v[i], name))
      return true;
  array_push(p->arena, &after->after, name);
  return true;
}

bool nki_order_resolve(struct nki_program *p, struct nki_error *err, const struct nki_call **at) {
  const int first = p->instances.v[p->instances.n - 1].first;
  struct named named = {.by_name.arena = p->arena};
  *at = NULL;
  if (!p->waits.n && !p->grid.n_edges)
    return true;
  locate(p, first);
  find_names(p, first, &named);
  for (int i = 0; i < p->grid.n_edges; i++) {
    struct nki_wait w = {find(&named, p->grid.edges[i].after, err, at), NULL};
    w.before = w.after ? find(&named, p->grid.edges[i].before, err, at) : NULL;
    if (!w.before || !resolve(p, &w, err, at))
      return false;
  }
  for (int i = 0; i < p->waits.n; i++)
    if (!resolve(p, &p->waits.v[i], err, at))
      return false;
  p->waits.n = 0;
  return true;
}

bool nki_order_equal(const struct nki_call *x, const struct nki_call *y) {
  if (!nki_is_ordered(x) || !nki_is_ordered(y))
    return nki_is_ordered(x) == nki_is_ordered(y);
  bool same = !strcmp(x->order->name ? x->order->name : "", y->order->name ? y->order->name : "") &&
              x->order->is_awaited == y->order->is_awaited && x->order->after.n == y->order->after.n;
  for (int i = 0; same && i < x->order->after.n; i++)
    same = !strcmp(x->order->after.v[i], y->order->after.v[i]);
  return same;
}
