/* record: adds tensors and calls to a program, after a check against the rules of the hardware.
 *
 * The limits are those of the architecture guides and of the NKI reference; nisa_verify checks the same rules again on
 * what becomes of the calls, but here the error is at the user's expression and in the user's words.
 */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "nki/nki.h"
#include "nki/rules.h"

/* ---- items and rounds -------------------------------------------------------------------------------------------- */

void nki_item_add(struct nki_program *p, struct nki_item x) {
  x.round = p->rounds.n ? p->round : -1;
  x.id = p->items.n + 1;
  x.core = p->core;
  x.written = p->writing;
  x.before = p->empty;
  p->empty = NULL;
  if (x.written)
    x.written->n++;
  x.locs = x.call ? x.call->locs : x.tensor->locs;
  array_push(p->arena, &p->items, x);
}

/* A round is found among the rounds that the last items belong to: the way from the present one outwards. */
void nki_set_rounds(struct nki_program *p, int n, const struct nki_round *rounds) {
  int way[NKI_LOOPS_MAX] = {0}, have = 0, same = 0;
  assert(n <= NKI_LOOPS_MAX);
  for (int r = p->rounds.n ? p->round : -1; r >= 0; r = p->rounds.v[r].outer)
    way[have++] = r;
  while (same < n && same < have && p->rounds.v[way[have - 1 - same]].loop == rounds[same].loop &&
         p->rounds.v[way[have - 1 - same]].number == rounds[same].number)
    same++;
  p->round = same ? way[have - same] : -1;
  for (; same < n; same++) {
    struct nki_round round = rounds[same];
    round.outer = p->round;
    array_push(p->arena, &p->rounds, round);
    p->round = p->rounds.n - 1;
  }
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The tensor with this name, or NULL. */
static struct nki_tensor *find_named(const struct nki_program *p, const char *name) {
  for (struct index_probe k = index_probe(&p->names, hash_text(name)); index_next(&k);)
    if (k.entry < p->tensors.n && !strcmp(p->tensors.v[k.entry]->name, name)) /* the last tensors may be dropped */
      return p->tensors.v[k.entry];
  return NULL;
}

const char *nki_unique_name(struct nki_program *p, const char *name, enum mem_space space) {
  if (!name || !*name)
    name = nisa_space_name(space);
  struct nki_tensor *first = find_named(p, name);
  const char *other = arena_strdup(p->arena, name);
  while (first && find_named(p, other))
    other = arena_printf(p->arena, "%s_%d", name, ++first->n_alike);
  return other;
}

static bool check_tensor(const struct nki_program *p, enum dtype dtype, enum mem_space space, int rank,
                         const int64_t *dims, struct nki_error *err) {
  const struct nisa_machine *m = nisa_machine(p->target);
  const bool on_chip = mem_is_on_chip(space);
  const int least = on_chip ? 2 : 1;
  int64_t free = (int64_t)dtype_size(dtype);
  if (rank < least || rank > NKI_RANK_MAX)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, on_chip ? "the first dimension counts partitions; add one" : NULL,
                      "a tensor in %s has %d to %d dimensions, not %d", nisa_space_name(space), least, NKI_RANK_MAX,
                      rank);
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 1 || dims[i] > INT64_C(1) << 40)
      return nki_refuse(err, DG_NKI_SIZE_LIMIT, NULL, "dimension %d of a tensor has the size %lld", i,
                        (long long)dims[i]);
    if (i >= (on_chip ? 1 : 0) && free <= INT64_C(1) << 50)
      free *= dims[i];
  }
  if (!on_chip)
    return free <= INT64_C(1) << 40 ? true : nki_refuse(err, DG_NKI_SIZE_LIMIT, NULL, "the tensor has more than 1 TiB");
  if (dims[0] > m->partitions)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "split the first dimension into tiles of nl.tile_size.pmax",
                      "a tensor in %s has %lld partitions, but there are %lld", nisa_space_name(space),
                      (long long)dims[0], (long long)m->partitions);
  const int64_t room = space == MEM_SBUF ? m->sbuf_bytes : m->psum_bytes;
  if (free > room)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "use smaller tiles",
                      "a tensor needs %lld bytes in each partition of %s, which has %lld", (long long)free,
                      nisa_space_name(space), (long long)room);
  return true;
}

struct nki_tensor *nki_tensor_new(struct nki_program *p, const char *name, enum dtype dtype, enum mem_space space,
                                  int rank, const int64_t *dims, int input, struct src_locs locs,
                                  struct nki_error *err) {
  if (!check_tensor(p, dtype, space, rank, dims, err))
    return NULL;
  struct nki_tensor *t = arena_new(p->arena, struct nki_tensor);
  *t = (struct nki_tensor){.number = p->tensors.n,
                           .dtype = dtype,
                           .space = space,
                           .rank = rank,
                           .input = input,
                           .core = p->core,
                           .locs = locs};
  memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
  t->called = name ? arena_strdup(p->arena, name) : NULL;
  t->name = nki_unique_name(p, name, space);
  p->names.arena = p->arena;
  index_add(&p->names, hash_text(t->name), p->tensors.n);
  array_push(p->arena, &p->tensors, t);
  t->scope = p->n_open ? p->open[p->n_open - 1].scope : 0;
  if (input < 0)
    nki_item_add(p, (struct nki_item){.tensor = t});
  return t;
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

static bool is_32bit(const struct nki_value *v) {
  return v->kind != NKI_VIEW || v->view->tensor->dtype == DT_I32 || v->view->tensor->dtype == DT_U32;
}

static bool all_in_sbuf(const struct nki_call *c) {
  for (int i = 0; i < nki_n_params(nki_def(c)); i++)
    if (c->value[i].kind == NKI_VIEW && c->value[i].view->tensor->space != MEM_SBUF)
      return false;
  return true;
}

/* The engine of a call that names none. */
static enum nisa_engine usual_engine(const struct nki_call *c) {
  if (c->kind == NKI_TENSOR_TENSOR) {
    const struct nki_op *op = nki_value(c, "op")->op;
    bool ints = op->is == NKI_ARITH && all_in_sbuf(c);
    for (int i = 0; i < nki_n_params(nki_def(c)); i++)
      ints &= is_32bit(&c->value[i]);
    if (ints || !strcmp(op->nisa, "pow"))
      return NISA_ENGINE_GPSIMD;
  }
  if (c->kind == NKI_NC_TRANSPOSE)
    return nki_transpose_engine(c);
  return nki_def(c)->engines[0];
}

static bool choose_engine(struct nki_call *c, struct nki_error *err) {
  const struct nki_call_def *def = nki_def(c);
  if (c->engine == NISA_ENGINE_NONE)
    c->engine = usual_engine(c);
  bool may = false;
  for (int i = 0; i < NKI_ENGINES_MAX; i++)
    may |= def->engines[i] == c->engine;
  if (!may)
    return nki_refuse(err, DG_NKI_CALL, NULL, "%s does not run on the engine %s", def->name,
                      nisa_engine_name(c->engine));
  if (c->engine == NISA_ENGINE_GPSIMD && c->kind != NKI_CORE_BARRIER && !all_in_sbuf(c))
    return nki_refuse(err, DG_NKI_MEMORY, "copy the operand to SBUF first", "GpSimd cannot access PSUM");
  return true;
}

bool nki_call_add(struct nki_program *p, const struct nki_call *call, struct nki_error *err) {
  struct nki_call *c = nki_call_keep(p->arena, call);
  if (p->n_calls >= NKI_CALLS_MAX)
    return nki_refuse(err, DG_TOO_MANY_OPS, "use fewer or larger tiles", "the kernel has more than %d calls",
                      NKI_CALLS_MAX);
  if (!nki_check_scopes(p, c, err) || !nki_check_call(p, c, err) || !choose_engine(c, err))
    return false;
  c->in_order = p->in_order;
  nki_item_add(p, (struct nki_item){.call = c});
  p->n_calls++;
  return true;
}

bool nki_reads(const struct nki_call *c, const struct nki_tensor *t) {
  for (int k = 0; k < nki_n_params(nki_def(c)); k++)
    if (nki_def(c)->param[k].kind != NKI_PARAM_DST && c->value[k].kind == NKI_VIEW &&
        nki_is_same(c->value[k].view->tensor, t))
      return true;
  return false;
}

bool nki_is_output(const struct nki_program *p, const struct nki_tensor *t) {
  for (int i = 0; i < p->n_outputs; i++)
    if (p->outputs[i] == t)
      return true;
  return false;
}

bool nki_is_written(const struct nki_program *p, const struct nki_tensor *t) {
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (nki_def(c)->param[k].kind == NKI_PARAM_DST && c->value[k].kind == NKI_VIEW &&
          nki_is_same(c->value[k].view->tensor, t))
        return true;
  }
  return false;
}

/* ---- results that are written elsewhere -------------------------------------------------------------------------- */

static bool is_same_view(const struct nki_view *v, const struct nki_view *w) {
  bool same = v->tensor == w->tensor && v->partition == w->partition && v->offset == w->offset && v->rank == w->rank &&
              v->n_terms == w->n_terms && v->terms == w->terms;
  for (int i = 0; same && i < v->rank; i++)
    same = v->dim[i].size == w->dim[i].size && v->dim[i].stride == w->dim[i].stride;
  return same;
}

/* A value of type `first` that is converted to `to` is the same as one that is written as `to` at once: engines compute
 * in f32, and copies of bits do not change them. */
static bool rounds_once(enum dtype first, enum dtype to) {
  return first == to || first == DT_F32;
}

/* The parameter of c that writes `from`, which no other parameter uses; -1 if there is none. */
static int written_by(const struct nki_call *c, const struct nki_tensor *from, const struct nki_view *to) {
  int found = -1;
  for (int k = 0; k < nki_n_params(nki_def(c)); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind != NKI_VIEW)
      continue;
    if (nki_is_same(v->view->tensor, from)) {
      if (v->view->tensor->storage || found >= 0 || nki_def(c)->param[k].kind != NKI_PARAM_DST)
        return -1;
      found = k;
    } else if (nki_is_same(v->view->tensor, to->tensor) && !is_same_view(v->view, to)) {
      return -1;
    }
  }
  return found;
}

/* The last item has taken the place of these two. */
static void take_over(struct nki_program *p, const struct nki_item *old) {
  struct nki_item *x = &p->items.v[p->items.n - 1];
  struct nki_written *w = old[1].written;
  x->before = old[0].before;
  if (!w || w == x->written)
    return;
  w->n -= 2;
  if (x->written) {
    x->written->takes = w;
    w->is_taken = true;
  }
  if (!w->n) { /* its line is just before */
    w->next = x->before;
    x->before = w;
  }
}

bool nki_call_redirect(struct nki_program *p, const struct nki_tensor *from, const struct nki_view *to,
                       int accumulate) {
  const int n = p->items.n;
  const struct nki_call *old = n >= 2 ? p->items.v[n - 1].call : NULL;
  if (!old || p->items.v[n - 2].tensor != from || from->number != p->tensors.n - 1 ||
      !rounds_once(from->dtype, to->tensor->dtype))
    return false;
  const int k = written_by(old, from, to);
  if (k < 0)
    return false;
  struct nki_call c = nki_call_copy(old);
  struct nki_error err = {.arena = p->arena};
  const struct nki_item kept[] = {p->items.v[n - 2], p->items.v[n - 1]};
  c.value[k].view = arena_dup(p->arena, to, sizeof *to);
  for (int i = 0; accumulate >= 0 && i < nki_n_params(nki_def(&c)); i++)
    if (!strcmp(nki_def(&c)->param[i].name, "accumulate"))
      c.value[i] = (struct nki_value){.kind = NKI_FLAG, .integer = accumulate};
  p->items.n = n - 2;
  p->n_calls--;
  if (nki_call_add(p, &c, &err)) {
    p->tensors.n--;
    take_over(p, kept);
    return true;
  }
  p->n_calls++;
  p->items.v[n - 2] = kept[0];
  p->items.v[n - 1] = kept[1];
  p->items.n = n;
  return false;
}
