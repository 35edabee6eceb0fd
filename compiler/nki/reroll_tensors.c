/* reroll_tensors: the tensors of the result: groups of products, where each is made, and which become parts of one. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "nki/reroll_internal.h"

/* ---- groups of products ------------------------------------------------------------------------------------------ */

static struct nki_tensor *add_tensor(struct roll *r, const struct nki_tensor *like, int made) {
  struct nki_tensor *t = arena_dup(r->arena, like, sizeof *like);
  t->storage = t->retyped = NULL;
  t->number = r->tensors.n;
  array_push(r->arena, &r->tensors, (struct roll_tensor){.tensor = t, .made = made, .home = -1});
  return t;
}

/* The call with the tensors of its present groups, and without `accumulate`. */
static struct nki_call *with_groups(struct roll *r, struct nki_tensor *const *now, struct nki_call *c) {
  const int n = nki_n_params(nki_def(c));
  struct nki_call *out = c;
  for (int k = 0; k < n; k++) {
    const struct nki_value *v = &c->value[k];
    struct nki_tensor *t = v->kind == NKI_VIEW ? v->view->tensor : NULL;
    const bool drop = v->kind == NKI_FLAG && !strcmp(nki_def(c)->param[k].name, "accumulate");
    if (!drop && (!t || t->space != MEM_PSUM || now[t->number] == nki_storage(t)))
      continue;
    if (out == c)
      out = nki_call_keep(r->arena, c);
    if (drop) {
      out->value[k] = (struct nki_value){.kind = NKI_ABSENT};
    } else {
      out->value[k].view = arena_dup(r->arena, v->view, sizeof *v->view);
      out->value[k].view->tensor = nki_retyped(r->arena, now[t->number], t->dtype, t->packed);
    }
  }
  return out;
}

static void split_groups(struct roll *r, const struct nki_plan *plan) {
  const struct nki_program *p = r->record;
  struct nki_tensor **now = arena_new_array(r->arena, struct nki_tensor *, (size_t)p->tensors.n);
  for (int i = 0; i < p->tensors.n; i++)
    now[i] = p->tensors.v[i];
  for (int i = 0; i < p->items.n; i++) {
    struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && plan->items[i].opens && k < nki_n_params(nki_def(c)); k++) {
      struct nki_tensor *t = c->value[k].kind == NKI_VIEW ? nki_storage(c->value[k].view->tensor) : NULL;
      if (t && t->space == MEM_PSUM && nki_def(c)->param[k].kind == NKI_PARAM_DST) {
        now[t->number] = add_tensor(r, t, roll_body_of(r, i));
        now[t->number]->locs = c->locs;
        roll_tensor_of(r, now[t->number])->line = roll_tensor_of(r, t)->line;
      }
    }
    r->calls[i] = c && !plan->items[i].skip ? with_groups(r, now, c) : NULL;
  }
}

/* ---- homes ------------------------------------------------------------------------------------------------------- */

/* The innermost body that has both. */
static int common_body(const struct roll *r, int x, int y) {
  while (x != y) {
    int *deeper = r->bodies[x].depth >= r->bodies[y].depth ? &x : &y;
    *deeper = r->bodies[*deeper].outer;
  }
  return x;
}

/* While the items are walked: the loops and branches on the device around the present one. */
struct walk {
  struct roll *r;
  int item, n_open;
  struct {
    int scope, begin;
  } open[NKI_REGIONS_MAX];
};

/* The item that counts as the use of a tensor: one that was made outside of loops and branches on the device that are open
 * now is made before them, because it keeps its data from round to round. */
static int use_of(const struct walk *w, const struct nki_tensor *t) {
  int k = 0;
  if (mem_is_on_chip(t->space))
    for (int i = 0; i < w->n_open; i++)
      k = w->open[i].scope == t->scope ? i + 1 : k;
  return k < w->n_open ? w->open[k].begin : w->item;
}

static void note_use(void *user, struct nki_tensor *t, bool is_written) {
  struct walk *w = user;
  struct roll *r = w->r;
  struct roll_tensor *x = roll_tensor_of(r, t);
  const int use = use_of(w, t);
  const int here = mem_is_on_chip(t->space) ? roll_body_of(r, use) : 0; /* HBM is never released */
  (void)is_written;
  if (x->home < 0)
    x->first = use;
  x->home = x->home < 0 ? here : common_body(r, x->home, here);
  x->last = w->item;
  if (use == w->item)
    return;
  struct roll_carried *carried = arena_new(r->arena, struct roll_carried);
  *carried = (struct roll_carried){t, r->carried[use]};
  r->carried[use] = carried;
}

static void find_homes(struct roll *r) {
  struct walk w = {.r = r};
  r->carried = arena_new_array(r->arena, struct roll_carried *, (size_t)r->record->items.n);
  for (int i = 0; i < r->record->items.n; i++) {
    const struct nki_call *c = r->calls[i];
    const enum nki_region region = c ? nki_region_of(c) : NKI_NO_REGION;
    w.item = i;
    if (c)
      nki_each_tensor(c, note_use, &w);
    if (region == NKI_BEGINS)
      w.open[w.n_open++].begin = i;
    if (region == NKI_ENDS)
      w.n_open--;
    if (region == NKI_BEGINS || region == NKI_GOES_ON)
      w.open[w.n_open - 1].scope = c->scope;
  }
}

/* ---- tensors that are parts of one ------------------------------------------------------------------------------- */

/* The tensors with one home that one place of the source made: in rounds of a loop, or as the blocks of a tensor of beta 1. */
struct site {
  struct {
    int *v;
    int n, cap;
  } tensors;
};

static bool same_site(const struct roll_tensor *x, const struct roll_tensor *y) {
  const struct nki_tensor *a = x->tensor, *b = y->tensor;
  return x->home == y->home && a->scope == b->scope && a->core == b->core && !a->initial == !b->initial &&
         nki_same_type(a, b) && src_loc_equal(a->locs.v[0], b->locs.v[0]);
}

static uint32_t site_hash(const struct roll_tensor *x) {
  uint64_t h = hash_mix(0, (uint64_t)x->home);
  for (const struct src_loc *l = x->tensor->locs.v[0]; l; l = l->caller)
    h = hash_mix(hash_mix(h, (uint64_t)l->range.line), (uint64_t)l->range.col);
  return (uint32_t)h;
}

/* True if the tensors as parts of one take no more memory, and can be where they are then. */
static bool can_be_parts(const struct roll *r, const struct site *s) {
  const struct nki_tensor *t = r->tensors.v[s->tensors.v[0]].tensor;
  const struct nisa_machine *m = nisa_machine(r->record->target);
  const int64_t bytes = nki_tensor_extent(t) * (int64_t)dtype_size(t->dtype), bank = m->psum_bank_bytes;
  int latest = 0, earliest = r->record->items.n;
  if (s->tensors.n < 2 || t->rank == NKI_RANK_MAX)
    return false;
  if (!mem_is_on_chip(t->space))
    return true;
  if (t->space == MEM_PSUM && bytes % bank && bank % bytes)
    return false;
  for (int i = 0; i < s->tensors.n; i++) {
    const struct roll_tensor *x = &r->tensors.v[s->tensors.v[i]];
    latest = x->first > latest ? x->first : latest;
    earliest = x->last < earliest ? x->last : earliest;
  }
  return latest <= earliest && bytes * s->tensors.n <= (t->space == MEM_SBUF ? m->sbuf_bytes : m->psum_bytes);
}

/* The elements of constants, one after another; NULL if the tensors are none. */
static const void *joined(struct roll *r, const struct site *s) {
  const struct nki_tensor *first = r->tensors.v[s->tensors.v[0]].tensor;
  const size_t bytes = (size_t)nki_tensor_extent(first) * dtype_size(first->dtype);
  if (!first->initial)
    return NULL;
  char *all = arena_new_array(r->arena, char, bytes *(size_t)s->tensors.n);
  for (int i = 0; i < s->tensors.n; i++)
    memcpy(all + (size_t)i * bytes, r->tensors.v[s->tensors.v[i]].tensor->initial, bytes);
  return all;
}

static void make_parts(struct roll *r, const struct site *s) {
  const int *v = s->tensors.v;
  struct nki_tensor like = *r->tensors.v[v[0]].tensor;
  const int64_t extent = nki_tensor_extent(&like);
  const int at = mem_is_on_chip(like.space);
  memmove(&like.dims[at + 1], &like.dims[at], (size_t)(like.rank - at) * sizeof *like.dims);
  like.dims[at] = s->tensors.n;
  like.rank++;
  like.initial = joined(r, s);
  struct nki_tensor *all = add_tensor(r, &like, 0);
  roll_tensor_of(r, all)->home = r->tensors.v[v[0]].home;
  roll_tensor_of(r, all)->line = r->tensors.v[v[0]].line;
  for (int i = 0; i < s->tensors.n; i++) {
    r->tensors.v[v[i]].part_of = all;
    r->tensors.v[v[i]].at = i * extent;
    all->locs = src_locs_union(r->arena, all->locs, r->tensors.v[v[i]].tensor->locs);
  }
}

static void find_parts(struct roll *r) {
  struct {
    struct site *v;
    int n, cap;
  } sites = {0};
  struct index by_place = {.arena = r->arena};
  const int n = r->tensors.n;
  for (int i = 0; i < n; i++) {
    const struct roll_tensor *x = &r->tensors.v[i];
    if (x->home < 0 || x->tensor->reg || x->tensor->input >= 0 || x->tensor->has_address || !x->tensor->locs.n ||
        nki_is_output(r->record, x->tensor))
      continue;
    const uint32_t hash = site_hash(x);
    struct site *s = NULL;
    for (struct index_probe k = index_probe(&by_place, hash); !s && index_next(&k);)
      if (same_site(&r->tensors.v[sites.v[k.entry].tensors.v[0]], x))
        s = &sites.v[k.entry];
    if (!s) {
      index_add(&by_place, hash, sites.n);
      s = array_push(r->arena, &sites, (struct site){{0}});
    }
    array_push(r->arena, &s->tensors, i);
  }
  for (int i = 0; i < sites.n; i++)
    if (can_be_parts(r, &sites.v[i]))
      make_parts(r, &sites.v[i]);
}

struct nki_tensor *roll_whole(struct roll *r, struct nki_tensor *t) {
  const struct roll_tensor *x = roll_tensor_of(r, t);
  return x->part_of ? x->part_of : t;
}

void roll_tensors(struct roll *r, const struct nki_plan *plan) {
  const struct nki_program *p = r->record;
  r->calls = arena_new_array(r->arena, struct nki_call *, (size_t)p->items.n);
  for (int i = 0; i < p->tensors.n; i++)
    array_push(r->arena, &r->tensors, (struct roll_tensor){.tensor = p->tensors.v[i], .home = -1});
  for (int i = 0; i < p->items.n; i++)
    if (p->items.v[i].tensor) {
      roll_tensor_of(r, p->items.v[i].tensor)->made = roll_body_of(r, i);
      roll_tensor_of(r, p->items.v[i].tensor)->line = p->items.v[i].id;
    }
  split_groups(r, plan);
  find_homes(r);
  if (!r->keep_rounds)
    find_parts(r);
}
