/* instances: the runs of a kernel that is launched with a grid, and what is equal in programs. */
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "nki/compose.h"
#include "nki/nki.h"
#include "nki/order.h"

/* ---- equal calls ------------------------------------------------------------------------------------------------- */

/* A part of a program.  Tensors of two parts correspond if they have the same key.  The tensors of the whole program are
 * the same in both; those that a part makes itself are numbered in order. */
struct part {
  const struct nki_program *p;
  int first, n; /* items */
  int *key;     /* of each tensor of the program */
};

static bool is_common(const struct nki_tensor *t) {
  return t->input >= 0 || t->space == MEM_SHARED_HBM;
}

static struct part part_of(const struct nki_program *p, int first, int n, struct arena *a) {
  struct part x = {p, first, n, arena_new_array(a, int, (size_t)p->tensors.n)};
  int made = 0;
  for (int i = 0; i < p->tensors.n; i++)
    x.key[i] = is_common(p->tensors.v[i]) ? -1 - i : INT_MAX;
  for (int i = first; i < first + n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    const struct nki_value *dst = c && nki_makes_register(c) ? nki_value(c, "dst") : NULL;
    const struct nki_tensor *t = dst ? dst->view->tensor : p->items.v[i].tensor;
    if (t && !is_common(t))
      x.key[t->number] = made++;
  }
  return x;
}

static bool same_elements(const struct nki_tensor *x, const struct nki_tensor *y) {
  if (!x->initial || !y->initial)
    return x->initial == y->initial;
  return !memcmp(x->initial, y->initial, (size_t)nki_tensor_extent(x) * dtype_size(x->dtype));
}

static bool same_tensor(const struct nki_tensor *x, const struct nki_tensor *y) {
  return nki_same_type(x, y) && nki_same_address(x, y) && x->input == y->input && x->reg == y->reg &&
         same_elements(x, y);
}

static bool same_terms(const struct part *a, const struct nki_view *x, const struct part *b, const struct nki_view *y) {
  bool same = x->n_terms == y->n_terms;
  for (int i = 0; same && i < x->n_terms; i++) {
    const struct nki_term *t = &x->terms[i], *u = &y->terms[i];
    same = t->loop == u->loop && !t->reg == !u->reg && t->partition == u->partition && t->offset == u->offset &&
           (!t->reg || (a->key[t->reg->number] == b->key[u->reg->number] && t->dim == u->dim && t->by == u->by));
  }
  return same;
}

static bool same_view(const struct part *a, const struct nki_view *x, const struct part *b, const struct nki_view *y) {
  bool same = a->key[x->tensor->number] == b->key[y->tensor->number] && x->tensor->dtype == y->tensor->dtype &&
              x->tensor->packed == y->tensor->packed && x->partition == y->partition && x->offset == y->offset &&
              x->rank == y->rank && same_terms(a, x, b, y);
  for (int i = 0; same && i < x->rank; i++)
    same = x->dim[i].size == y->dim[i].size && x->dim[i].stride == y->dim[i].stride;
  return same;
}

static bool same_value(const struct part *a, const struct nki_value *x, const struct part *b,
                       const struct nki_value *y) {
  if (x->kind != y->kind)
    return false;
  switch (x->kind) {
  case NKI_ABSENT:
    return true;
  case NKI_VIEW:
    return same_view(a, x->view, b, y->view);
  case NKI_FLOAT:
    return !memcmp(&x->number, &y->number, sizeof x->number); /* signs of zeros, and NaN, count */
  case NKI_INT:
  case NKI_FLAG:
    return x->integer == y->integer;
  case NKI_OP:
    return x->op == y->op;
  case NKI_WORD:
    return !strcmp(x->word, y->word);
  case NKI_LIST:
    return x->n == y->n && !memcmp(x->ints, y->ints, (size_t)x->n * sizeof *x->ints);
  }
  return false;
}

static bool same_call(const struct part *a, const struct nki_call *x, const struct part *b, const struct nki_call *y) {
  bool same = x->kind == y->kind && x->engine == y->engine && x->in_order == y->in_order && nki_order_equal(x, y);
  for (int k = 0; same && k < nki_n_params(nki_def(x)); k++)
    same = same_value(a, &x->value[k], b, &y->value[k]);
  return same;
}

/* Skips the items that make tensors which every instance has. */
static int next_item(const struct part *x, int i) {
  while (i < x->first + x->n && !x->p->items.v[i].call && is_common(x->p->items.v[i].tensor))
    i++;
  return i;
}

static bool same_parts(const struct part *a, const struct part *b) {
  int i = next_item(a, a->first), k = next_item(b, b->first);
  for (; i < a->first + a->n && k < b->first + b->n; i = next_item(a, i + 1), k = next_item(b, k + 1)) {
    const struct nki_item *x = &a->p->items.v[i], *y = &b->p->items.v[k];
    if (!x->call != !y->call || (x->call ? !same_call(a, x->call, b, y->call) : !same_tensor(x->tensor, y->tensor)))
      return false;
  }
  return i == a->first + a->n && k == b->first + b->n;
}

bool nki_programs_equal(const struct nki_program *p, const struct nki_program *q) {
  bool same = p->target == q->target && p->tensors.n == q->tensors.n && p->items.n == q->items.n &&
              p->n_outputs == q->n_outputs;
  for (int i = 0; same && i < p->tensors.n; i++)
    same = same_tensor(p->tensors.v[i], q->tensors.v[i]);
  for (int i = 0; same && i < p->n_outputs; i++)
    same = p->outputs[i]->number == q->outputs[i]->number;
  if (!same)
    return false;
  struct arena scratch;
  arena_init(&scratch);
  const struct part a = part_of(p, 0, p->items.n, &scratch), b = part_of(q, 0, q->items.n, &scratch);
  same = same_parts(&a, &b);
  arena_clear(&scratch);
  return same;
}

static uint64_t hash_view(const struct part *a, uint64_t h, const struct nki_view *v) {
  h = hash_mix(h, (uint64_t)a->key[v->tensor->number]);
  h = hash_mix(hash_mix(h, (uint64_t)v->partition), (uint64_t)v->offset);
  for (int i = 0; i < v->rank; i++)
    h = hash_mix(hash_mix(h, (uint64_t)v->dim[i].size), (uint64_t)v->dim[i].stride);
  return h;
}

/* Of what most instances differ in: the calls and their views. */
static uint64_t hash_part(const struct part *a) {
  uint64_t h = 0;
  for (int i = next_item(a, a->first); i < a->first + a->n; i = next_item(a, i + 1)) {
    const struct nki_call *c = a->p->items.v[i].call;
    h = hash_mix(h, c ? (uint64_t)c->kind : NKI_CALLS);
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW)
        h = hash_view(a, h, c->value[k].view);
  }
  return h;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

int64_t nki_grid_size(const struct nki_grid *g) {
  int64_t n = 1;
  for (int i = 0; i < g->rank; i++)
    n *= g->dims[i];
  return n;
}

static int launched_on(const struct nki_grid *g, const int64_t *id) {
  return g->cores < 2 ? 0 : (int)(id[g->core_axis] / g->core_step % g->cores);
}

/* trn1 has no cores that run one kernel together. */
static int core_of(const struct nki_program *p, const int64_t *id) {
  return p->on_one_core || p->target == TARGET_TRN1 ? 0 : launched_on(&p->grid, id);
}

int nki_instance_core(const struct nki_program *p) {
  return p->instances.n ? launched_on(&p->grid, p->instances.v[p->instances.n - 1].id) : 0;
}

struct nki_instance *nki_instance_begin(struct nki_program *p) {
  struct nki_instance x = {.first = p->items.n, .same_as = -1};
  int64_t rest = p->instances.n;
  for (int i = p->grid.rank - 1; i >= 0; i--) {
    x.id[i] = rest % p->grid.dims[i];
    rest /= p->grid.dims[i];
  }
  x.core = p->core = core_of(p, x.id);
  p->next_shared = 0;
  p->first_tensor = p->tensors.n;
  return array_push(p->arena, &p->instances, x);
}

static void note_uses(const struct nki_program *p, const struct nki_instance *x, bool *reads, bool *writes) {
  for (int i = x->first; i < x->first + x->n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW)
        (nki_def(c)->param[k].kind == NKI_PARAM_DST ? writes : reads)[c->value[k].view->tensor->number] = true;
  }
}

/* True if the result of the call depends on a state that earlier calls left in an engine, or in the memory that it writes. */
static bool goes_on(const struct nki_call *c) {
  switch (c->kind) {
  case NKI_RNG:
  case NKI_RAND2:
  case NKI_RAND_GET_STATE:
  case NKI_DROPOUT:
    return true;
  case NKI_DMA_COMPUTE: /* it adds to rows of dst */
    return nki_value(c, "dst_index")->kind == NKI_VIEW;
  default:
    return nki_needs_registers(c);
  }
}

/* True if a second run of the instance leaves what the first one has left: no call goes on from another one, and it reads
 * no common tensor that it writes. */
static bool may_run_once(const struct nki_program *p, const struct nki_instance *x, struct arena *a) {
  bool *reads = arena_new_array(a, bool, (size_t)p->tensors.n),
       *writes = arena_new_array(a, bool, (size_t)p->tensors.n);
  for (int i = x->first; i < x->first + x->n; i++)
    if (p->items.v[i].call && goes_on(p->items.v[i].call))
      return false;
  note_uses(p, x, reads, writes);
  for (int i = 0; i < p->tensors.n; i++)
    if (is_common(p->tensors.v[i]) && reads[i] && writes[i])
      return false;
  return true;
}

void nki_instance_end(struct nki_program *p) {
  const int last = p->instances.n - 1;
  struct nki_instance *x = &p->instances.v[last];
  struct arena scratch;
  x->n = p->items.n - x->first;
  x->after = p->empty;
  p->empty = NULL;
  arena_init(&scratch);
  const struct part b = part_of(p, x->first, x->n, &scratch);
  bool makes_common = false;
  x->hash = hash_part(&b);
  for (int i = p->first_tensor; i < p->tensors.n; i++)
    makes_common |= is_common(p->tensors.v[i]);
  for (int i = 0; i < last && !makes_common && x->same_as < 0; i++) {
    const struct nki_instance *y = &p->instances.v[i];
    if (y->same_as >= 0 || y->hash != x->hash)
      continue;
    const struct part a = part_of(p, y->first, y->n, &scratch);
    if (same_parts(&a, &b) && may_run_once(p, x, &scratch))
      x->same_as = i;
  }
  if (x->same_as >= 0) {
    for (int i = x->first; i < p->items.n; i++)
      p->n_calls -= p->items.v[i].call != NULL;
    p->items.n = x->first;
    p->tensors.n = p->first_tensor;
    x->n = 0;
    x->after = NULL;
  }
  arena_clear(&scratch);
}

struct nki_tensor *nki_tensor_make(struct nki_program *p, const char *name, enum dtype dtype, enum mem_space space,
                                   int rank, const int64_t *dims, struct src_locs locs, struct nki_error *err) {
  if (space != MEM_SHARED_HBM)
    return nki_tensor_new(p, name, dtype, space, rank, dims, -1, locs, err);
  const int k = p->next_shared++;
  if (k == p->shared.n) {
    struct nki_tensor *made = nki_tensor_new(p, name, dtype, space, rank, dims, -1, locs, err);
    if (made)
      array_push(p->arena, &p->shared, made);
    return made;
  }
  struct nki_tensor *t = p->shared.v[k];
  if (t->dtype == dtype && t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
    return t;
  nki_refuse(err, DG_NKI_GRID, "all instances share these tensors, which they make in the same order",
             "instance %d makes tensor %d in shared_hbm with another shape or type than instance 0", p->instances.n - 1,
             k);
  return NULL;
}
