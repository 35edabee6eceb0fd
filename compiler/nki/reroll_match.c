/* reroll_match: compares rounds of a loop, and makes a loop of equal ones. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "nki/order.h"
#include "nki/reroll_internal.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Where a view begins, in the tensor of which its own may be a part. */
struct place {
  struct nki_tensor *tensor;
  int64_t partition, offset;
};

static struct place place_of(struct roll *r, const struct nki_view *v) {
  struct nki_tensor *t = nki_storage(v->tensor);
  const struct roll_tensor *x = roll_tensor_of(r, t);
  struct nki_tensor *whole = roll_whole(r, t), *same = roll_tensor_of(r, whole)->same_as;
  const int64_t at = x->at * (int64_t)dtype_size(t->dtype) / (int64_t)dtype_size(v->tensor->dtype); /* whole rows */
  return (struct place){nki_retyped(r->arena, same ? same : whole, v->tensor->dtype, v->tensor->packed), v->partition,
                        v->offset + at};
}

static bool differ(struct roll *r, const char *fmt, ...) PRINTF(2, 3);
static bool differ(struct roll *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  r->why = arena_vprintf(r->arena, fmt, ap);
  va_end(ap);
  return false;
}

/* A register of round y is that of the round which it equals. */
static const struct nki_tensor *register_of(struct roll *r, const struct nki_tensor *t) {
  const struct nki_tensor *same = roll_tensor_of(r, t)->same_as;
  return same ? same : t;
}

static bool same_terms(struct roll *r, int n, const struct nki_term *x, int m, const struct nki_term *y) {
  bool same = n == m;
  for (int i = 0; same && i < n; i++) {
    same = !x[i].loop == !y[i].loop && x[i].partition == y[i].partition && x[i].offset == y[i].offset;
    if (same && x[i].loop)
      same = x[i].loop->depth == y[i].loop->depth;
    else if (same)
      same = register_of(r, x[i].reg) == register_of(r, y[i].reg) && x[i].dim == y[i].dim && x[i].by == y[i].by;
  }
  return same;
}

/* The step from round to round is `partition`: engines begin at certain partitions only. */
static bool engine_can_step(const struct nki_call *c, const struct nki_view *v, int64_t partition) {
  const int64_t n = v->dim[0].size, unit = n > 64 ? 128 : n > 32 ? 64 : 32;
  return !partition || !nki_is_on_chip(v) || nki_def(c)->engines[0] == NISA_ENGINE_DMA || partition % unit == 0;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* A product lies within one bank in every round: the steps of all loops keep its place relative to some grid. */
static bool stays_in_bank(const struct roll *r, const struct nki_call *c, const struct nki_view *v, int64_t offset,
                          int64_t step) {
  const struct nisa_machine *m = nisa_machine(r->record->target);
  const int64_t unit = (int64_t)dtype_size(v->tensor->dtype);
  int64_t grid = gcd(m->matmul_one_bank ? m->psum_bank_bytes : m->psum_bytes, step * unit), span = unit;
  if (v->tensor->space != MEM_PSUM || c->engine != NISA_ENGINE_TENSOR)
    return true;
  for (int i = 0; i < v->n_terms; i++)
    grid = gcd(grid, v->terms[i].offset * unit);
  for (int i = 1; i < v->rank; i++)
    span += (v->dim[i].size - 1) * v->dim[i].stride * unit;
  return offset * unit % grid + span <= grid;
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static bool match_view(struct roll *r, const struct nki_call *c, const char *name, const struct nki_view *x0,
                       const struct nki_view *x1, const struct nki_view *y, int64_t k) {
  const struct place a = place_of(r, x0), b = place_of(r, x1 ? x1 : y), d = place_of(r, y);
  if (a.tensor != d.tensor)
    return differ(r, "%s of nisa.%s is a tensor of another round: %s, and then %s", name, nki_def(c)->name,
                  a.tensor->name, d.tensor->name);
  if (x0->rank != y->rank || memcmp(x0->dim, y->dim, (size_t)x0->rank * sizeof *x0->dim) != 0)
    return differ(r, "%s of nisa.%s has other sizes or strides", name, nki_def(c)->name);
  if (!same_terms(r, x0->n_terms, x0->terms, y->n_terms, y->terms))
    return differ(r, "%s of nisa.%s moves differently in the loops inside, or by another register", name,
                  nki_def(c)->name);
  const int64_t partition = b.partition - a.partition, offset = b.offset - a.offset;
  if (d.partition - a.partition != k * partition || d.offset - a.offset != k * offset)
    return differ(r, "the place of %s of nisa.%s is not affine in the round", name, nki_def(c)->name);
  if (k > 1)
    return true;
  if ((partition || offset) && x0->n_terms == NKI_TERMS_MAX)
    return differ(r, "the place of %s of nisa.%s depends on more than %d loops", name, nki_def(c)->name, NKI_TERMS_MAX);
  if (!engine_can_step(c, x0, partition))
    return differ(r, "%s of nisa.%s steps over partitions by %" PRId64, name, nki_def(c)->name, partition);
  if (!stays_in_bank(r, c, x0, a.offset, offset))
    return differ(r, "%s of nisa.%s steps over the banks of PSUM irregularly", name, nki_def(c)->name);
  return true;
}

/* The one list that may be affine in the round: where an iota begins. */
static bool may_step(const struct nki_param_def *def, const struct nki_value *v) {
  return v->n == 1 && !strcmp(def->name, "offset");
}

static bool match_list(struct roll *r, const struct nki_call *c, const struct nki_param_def *def,
                       const struct nki_value *x0, const struct nki_value *x1, const struct nki_value *y, int64_t k) {
  if (x0->n == y->n && may_step(def, x0) && same_terms(r, x0->n_terms, x0->terms, y->n_terms, y->terms) &&
      x0->n_terms < NKI_TERMS_MAX) {
    const int64_t step = (x1 ? x1 : y)->ints[0] - x0->ints[0];
    return y->ints[0] - x0->ints[0] == k * step ||
           differ(r, "%s of nisa.%s is not affine in the round", def->name, nki_def(c)->name);
  }
  if (x0->n == y->n && !memcmp(x0->ints, y->ints, (size_t)x0->n * sizeof *x0->ints))
    return true;
  return differ(r, "%s of nisa.%s has other values", def->name, nki_def(c)->name);
}

static bool match_value(struct roll *r, const struct nki_call *c, int at, const struct nki_value *x0,
                        const struct nki_value *x1, const struct nki_value *y, int64_t k) {
  const struct nki_param_def *def = &nki_def(c)->param[at];
  bool same = x0->kind == y->kind;
  if (same && x0->kind == NKI_VIEW)
    return match_view(r, c, def->name, x0->view, x1 ? x1->view : NULL, y->view, k);
  if (same && x0->kind == NKI_LIST)
    return match_list(r, c, def, x0, x1, y, k);
  if (same && x0->kind == NKI_WORD)
    same = !strcmp(x0->word, y->word);
  else if (same) /* bits, because of NaN and the sign of zero */
    same = !memcmp(&x0->number, &y->number, sizeof x0->number) && x0->integer == y->integer && x0->op == y->op;
  if (same)
    return true;
  if (x0->kind == NKI_FLOAT && y->kind == NKI_FLOAT)
    return differ(r, "%s of nisa.%s is %g, and then %g", def->name, nki_def(c)->name, x0->number, y->number);
  return differ(r, "%s of nisa.%s has another value", def->name, nki_def(c)->name);
}

static bool match_call(struct roll *r, const struct nki_call *x0, const struct nki_call *x1, const struct nki_call *y,
                       int64_t k) {
  if (x0->kind != y->kind)
    return differ(r, "one calls nisa.%s where another calls nisa.%s", nki_def(x0)->name, nki_def(y)->name);
  if (nki_region_of(x0))
    return differ(r, "they have a loop or a branch on the device");
  if (nki_is_ordered(x0) || nki_is_ordered(y))
    return differ(r, "nisa.%s waits for another call, or another one waits for it", nki_def(x0)->name);
  if (x0->in_order != y->in_order)
    return differ(r, "one call of nisa.%s is in no_reorder, another is not", nki_def(x0)->name);
  if (x0->engine != y->engine)
    return differ(r, "nisa.%s runs on another engine", nki_def(x0)->name);
  for (int i = 0; i < nki_n_params(nki_def(x0)); i++)
    if (!match_value(r, x0, i, &x0->value[i], x1 ? &x1->value[i] : NULL, &y->value[i], k))
      return false;
  return true;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static bool match_tensor(struct roll *r, const struct nki_tensor *x, const struct nki_tensor *y) {
  if (!nki_same_type(x, y))
    return differ(r, "the tensor %s has another shape, type or memory", x->name);
  if (!nki_same_address(x, y))
    return differ(r, "the tensor %s has another address", x->name);
  roll_tensor_of(r, y)->same_as = r->tensors.v[x->number].tensor;
  return true;
}

bool roll_matches(struct roll *r, const struct nki_items *x0, const struct nki_items *x1, const struct nki_items *y,
                  int64_t k) {
  bool ok = true;
  if (x0->n != y->n)
    return differ(r, "one has %d lines, another has %d", x0->n, y->n);
  for (int i = 0; ok && i < y->n; i++) {
    const struct nki_item *a = &x0->v[i], *b = x1 ? &x1->v[i] : NULL, *d = &y->v[i];
    if (!a->call != !d->call || !a->loop != !d->loop)
      return differ(r, "they do not make the same calls");
    if (a->call && d->call->kind == a->call->kind && nki_makes_register(a->call))
      ok = match_tensor(r, nki_value(a->call, "dst")->view->tensor, nki_value(d->call, "dst")->view->tensor);
    if (!ok)
      return false;
    if (a->call)
      ok = match_call(r, a->call, b ? b->call : NULL, d->call, k);
    else if (a->tensor)
      ok = match_tensor(r, a->tensor, d->tensor);
    else if (a->loop->trips != d->loop->trips || a->loop->depth != d->loop->depth)
      return differ(r, "a loop inside has %" PRId64 " rounds, and then %" PRId64, a->loop->trips, d->loop->trips);
    else
      ok = roll_matches(r, &a->loop->items, b ? &b->loop->items : NULL, &d->loop->items, k);
  }
  return ok;
}

void roll_forget(struct roll *r, const struct nki_items *x) {
  for (int i = 0; i < x->n; i++) {
    const struct nki_call *c = x->v[i].call;
    if (x->v[i].tensor)
      roll_tensor_of(r, x->v[i].tensor)->same_as = NULL;
    if (c && nki_makes_register(c))
      roll_tensor_of(r, nki_value(c, "dst")->view->tensor)->same_as = NULL;
    if (x->v[i].loop)
      roll_forget(r, &x->v[i].loop->items);
  }
}

static void merge_ids(struct roll *r, struct nki_item *x, const struct nki_item *y) {
  const int *more = y->from.n ? y->from.v : &y->id, n = y->from.n ? y->from.n : 1;
  if (!x->from.n)
    array_push(r->arena, &x->from, x->id);
  for (int i = 0; i < n; i++)
    array_push(r->arena, &x->from, more[i]);
}

void roll_merge(struct roll *r, struct nki_items *x, const struct nki_items *y) {
  for (int i = 0; i < x->n; i++) {
    x->v[i].locs = src_locs_union(r->arena, x->v[i].locs, y->v[i].locs);
    merge_ids(r, &x->v[i], &y->v[i]);
    if (x->v[i].loop)
      roll_merge(r, &x->v[i].loop->items, &y->v[i].loop->items);
  }
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The terms of x with one more before them. */
static const struct nki_term *add_term(struct roll *r, const struct nki_loop *loop, int64_t partition, int64_t offset,
                                       const struct nki_term *terms, int n) {
  struct nki_term *v = arena_new_array(r->arena, struct nki_term, (size_t)n + 1);
  v[0] = (struct nki_term){.loop = loop, .partition = partition, .offset = offset};
  for (int i = 0; i < n; i++)
    v[i + 1] = terms[i];
  return v;
}

/* The terms of a view of a part: the whole tensor has one dimension more, before those that registers move along. */
static const struct nki_term *deeper_terms(struct roll *r, const struct nki_view *v) {
  struct nki_term *terms = v->n_terms ? arena_dup(r->arena, v->terms, (size_t)v->n_terms * sizeof *terms) : NULL;
  for (int i = 0; i < v->n_terms; i++)
    terms[i].dim += terms[i].reg != NULL;
  return terms;
}

struct nki_call *roll_settled(struct roll *r, const struct nki_call *c) {
  struct nki_call *out = nki_call_keep(r->arena, c);
  for (int i = 0; i < nki_n_params(nki_def(c)); i++) {
    if (c->value[i].kind != NKI_VIEW)
      continue;
    const struct place at = place_of(r, c->value[i].view);
    struct nki_view *v = out->value[i].view = arena_dup(r->arena, c->value[i].view, sizeof *v);
    if (roll_whole(r, nki_storage(v->tensor)) != nki_storage(v->tensor))
      v->terms = deeper_terms(r, v);
    v->tensor = at.tensor;
    v->partition = at.partition;
    v->offset = at.offset;
  }
  return out;
}

static struct nki_call *affine_call(struct roll *r, const struct nki_loop *loop, const struct nki_call *x0,
                                    const struct nki_call *x1) {
  struct nki_call *out = roll_settled(r, x0);
  for (int i = 0; i < nki_n_params(nki_def(x0)); i++) {
    struct nki_value *v = &out->value[i];
    if (v->kind == NKI_VIEW) {
      const struct place a = place_of(r, x0->value[i].view), b = place_of(r, x1->value[i].view);
      if (a.partition != b.partition || a.offset != b.offset)
        v->view->terms =
            add_term(r, loop, b.partition - a.partition, b.offset - a.offset, v->view->terms, v->view->n_terms++);
    } else if (v->kind == NKI_LIST && v->n == 1 && x1->value[i].ints[0] != v->ints[0]) {
      v->terms = add_term(r, loop, 0, x1->value[i].ints[0] - v->ints[0], v->terms, v->n_terms++);
    }
  }
  return out;
}

void roll_make_affine(struct roll *r, const struct nki_loop *loop, struct nki_items *x0, const struct nki_items *x1) {
  for (int i = 0; i < x0->n; i++)
    if (x0->v[i].call)
      x0->v[i].call = affine_call(r, loop, x0->v[i].call, x1->v[i].call);
    else if (x0->v[i].loop)
      roll_make_affine(r, loop, &x0->v[i].loop->items, &x1->v[i].loop->items);
}
