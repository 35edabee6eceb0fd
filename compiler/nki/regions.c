/* regions: registers, and loops and branches on the device, in a record. */
#include <assert.h>

#include "base/array.h"
#include "nki/nki.h"
#include "nki/rules.h"

/* ---- registers --------------------------------------------------------------------------------------------------- */

bool nki_is_open(const struct nki_program *p, const struct nki_tensor *t) {
  bool is = !t->scope;
  for (int k = 0; k < p->n_open; k++)
    is |= p->open[k].scope == t->scope;
  return is;
}

/* Those of register_alloc that exist here. */
static int registers_alive(const struct nki_program *p) {
  int n = 0;
  for (int i = 0; i < p->tensors.n; i++) {
    const struct nki_tensor *t = p->tensors.v[i];
    n += t->reg == NKI_REGISTER && nki_is_open(p, t) && i >= p->first_tensor;
  }
  return n + p->n_open; /* a loop counts in one, and a branch tests one */
}

struct nki_tensor *nki_register_new(struct nki_program *p, const char *name, enum nki_register_kind kind,
                                    enum dtype dtype, struct src_locs locs, struct nki_error *err) {
  static const int64_t one[] = {1, 1};
  const int n_items = p->items.n;
  if (kind == NKI_REGISTER && registers_alive(p) >= NKI_REGISTERS_MAX) {
    nki_refuse(err, DG_NKI_SIZE_LIMIT, "write to a register again with nisa.register_move, or keep numbers in SBUF",
               "there are more than %d registers; an engine has so many", NKI_REGISTERS_MAX);
    return NULL;
  }
  struct nki_tensor *t = nki_tensor_new(p, name ? name : "reg", dtype, MEM_SBUF, 2, one, -1, locs, err);
  if (!t)
    return NULL;
  t->reg = kind;
  if (kind == NKI_RESULT) {
    t->is_typed = true;
    p->items.n = n_items;
  }
  return t;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void open_region(struct nki_program *p, int begin) {
  assert(p->n_open < NKI_REGIONS_MAX);
  p->open[p->n_open].scope = ++p->n_scopes;
  p->open[p->n_open++].begin = begin;
}

/* Moves the last item to place `to`. */
static void move_last(struct nki_program *p, int to) {
  struct nki_item last = p->items.v[p->items.n - 1];
  for (int i = p->items.n - 1; i > to; i--) {
    p->items.v[i] = p->items.v[i - 1];
    p->items.v[i].id = i + 1;
  }
  last.id = to + 1;
  p->items.v[to] = last;
}

bool nki_region_begin(struct nki_program *p, const struct nki_call *call, int begin, struct nki_error *err) {
  if (p->n_open == NKI_REGIONS_MAX)
    return nki_refuse(err, DG_NKI_DEVICE_LOOP, "use fewer loops in each other",
                      "more than %d loops and branches on the device are in each other", NKI_REGIONS_MAX);
  if (!nki_call_add(p, call, err))
    return false;
  move_last(p, begin);
  open_region(p, begin);
  const int scope = p->open[p->n_open - 1].scope;
  p->items.v[begin].call->scope = scope;
  for (int i = begin; i < p->items.n; i++) { /* what the condition made */
    struct nki_call *c = p->items.v[i].call;
    if (p->items.v[i].tensor)
      p->items.v[i].tensor->scope = scope;
    if (c && c->kind == NKI_REGISTER_ALU)
      nki_value(c, "dst")->view->tensor->scope = scope;
  }
  for (int k = 0; k < nki_n_params(nki_def(call)); k++) /* the index of the loop */
    if (nki_def(call)->param[k].kind == NKI_PARAM_DST)
      call->value[k].view->tensor->scope = scope;
  return true;
}

bool nki_region_go_on(struct nki_program *p, const struct nki_call *call, struct nki_error *err) {
  assert(p->n_open);
  if (!nki_call_add(p, call, err))
    return false;
  p->items.v[p->items.n - 1].round = p->items.v[p->open[p->n_open - 1].begin].round;
  p->open[p->n_open - 1].scope = ++p->n_scopes;
  p->items.v[p->items.n - 1].call->scope = p->n_scopes;
  return true;
}

void nki_region_end(struct nki_program *p, struct src_locs locs) {
  assert(p->n_open);
  const int begin = p->open[--p->n_open].begin;
  struct nki_call *end = arena_new(p->arena, struct nki_call);
  *end = (struct nki_call){.kind = NKI_DEVICE_END, .engine = NISA_ENGINE_SYNC, .locs = locs};
  if (p->items.v[p->items.n - 1].call && p->items.v[p->items.n - 1].call->kind == NKI_DEVICE_ELSE) {
    p->items.n--; /* the branch is empty */
    p->n_calls--;
  }
  nki_item_add(p, (struct nki_item){.call = end});
  p->n_calls++;
  p->items.v[p->items.n - 1].round = p->items.v[begin].round;
}

void nki_region_find(const struct nki_items *items, int begin, int *middle, int *end) {
  int depth = 0;
  *middle = -1;
  for (*end = begin;; ++*end) {
    const struct nki_call *c = items->v[*end].call;
    const enum nki_region region = c ? nki_region_of(c) : NKI_NO_REGION;
    depth += region == NKI_BEGINS;
    if (region == NKI_GOES_ON && depth == 1)
      *middle = *end;
    if (region == NKI_ENDS && --depth == 0)
      return;
  }
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* A parameter is the tensor, or a view that the register moves. */
static bool check_tensor(const struct nki_program *p, const struct nki_param_def *def, const struct nki_tensor *t,
                         bool moves, struct nki_error *err) {
  const char *how = moves ? "is moved by the register" : t->reg ? "is the register" : "is";
  if (!nki_is_open(p, t))
    return nki_refuse(err, DG_NKI_DEVICE_LOOP,
                      t->reg ? "make it with nisa.register_alloc before the loop, and write it with nisa.register_move"
                             : "make the tensor before the loop or branch",
                      "%s %s %s, which was made in a loop or branch on the device and does not exist outside of it",
                      def->name, how, t->name);
  if (t->reg && !t->is_typed && (moves || def->kind != NKI_PARAM_DST))
    return nki_refuse(err, DG_NKI_OPERAND, "give register_alloc a number, or write it with nisa.register_load",
                      "%s %s %s, to which nothing has been written", def->name, how, t->name);
  return true;
}

bool nki_check_scopes(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  if (p->n_open && (c->kind == NKI_CORE_BARRIER || c->kind == NKI_SENDRECV))
    return nki_refuse(err, DG_NKI_DEVICE_LOOP, "let the cores meet outside of it",
                      "%s in a loop or branch on the device: how often the cores would meet is not known",
                      nki_def(c)->name);
  for (int k = 0; k < nki_n_params(nki_def(c)); k++) {
    const struct nki_param_def *def = &nki_def(c)->param[k];
    const struct nki_view *v = c->value[k].kind == NKI_VIEW ? c->value[k].view : NULL;
    if (v && !check_tensor(p, def, nki_storage(v->tensor), false, err))
      return false;
    for (int i = 0; v && i < v->n_terms; i++)
      if (v->terms[i].reg && !check_tensor(p, def, v->terms[i].reg, true, err))
        return false;
  }
  return true;
}
