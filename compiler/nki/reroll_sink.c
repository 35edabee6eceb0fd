/* reroll_sink: a tensor on chip is made just before the item that uses it first.
 *
 * While the tree is built, a tensor that several rounds of a loop use is made before the loop.  If those rounds do not become
 * a loop, they are items of the same list, and only the later ones may use it:
 *
 *     s0 = nl.ndarray(…)                        s0 = nl.ndarray(…)
 *     s1 = nl.ndarray(…)                        nisa.f(dst=s0, …)
 *     nisa.f(dst=s0, …)          ==>            nisa.g(…, data=s0)
 *     nisa.g(…, data=s0)                        s1 = nl.ndarray(…)
 *     nisa.f(dst=s1, …)                         nisa.f(dst=s1, …)
 *
 * On the right the tensors never have memory at the same time.  A tensor that a loop or branch on the device uses and that is
 * made before it stays before it.
 */
#include <string.h>

#include "base/array.h"
#include "nki/reroll_internal.h"

/* The item of a list that is being walked, and the loops and branches on the device around it in the list. */
struct level {
  int item, n_open, open[NKI_REGIONS_MAX];
};

struct sink {
  struct roll *r;
  int depth;
  struct level level[NKI_LOOPS_MAX + 1];
  /* for each tensor: the depth of the list with it from 1 on, 0: none; so many regions are open where it is made; the item of
   * its list that uses it first, -1: none does yet */
  struct made {
    int depth, n_open, use;
  } *made;
};

static struct made *made_of(const struct sink *s, struct nki_tensor *t) {
  struct nki_tensor *whole = roll_whole(s->r, nki_storage(t)), *same = roll_tensor_of(s->r, whole)->same_as;
  return &s->made[(same ? same : whole)->number];
}

static void note_use(void *user, struct nki_tensor *t, bool is_written) {
  struct sink *s = user;
  struct made *m = made_of(s, t);
  (void)is_written;
  if (!m->depth || m->use >= 0)
    return;
  const struct level *l = &s->level[m->depth - 1];
  m->use = l->n_open > m->n_open ? l->open[m->n_open] : l->item;
}

static void sink_list(struct sink *s, struct nki_items *items);

static void walk_item(struct sink *s, struct nki_item *x) {
  struct level *l = &s->level[s->depth - 1];
  if (x->loop)
    sink_list(s, &x->loop->items);
  if (x->tensor && mem_is_on_chip(x->tensor->space) && !x->tensor->reg)
    *made_of(s, x->tensor) = (struct made){.depth = s->depth, .n_open = l->n_open, .use = -1};
  if (!x->call)
    return;
  const enum nki_region region = nki_region_of(x->call);
  nki_each_tensor(x->call, note_use, s);
  if (region == NKI_BEGINS)
    l->open[l->n_open++] = l->item;
  if (region == NKI_ENDS)
    l->n_open--;
}

/* Moves the tensors of a list to their uses; those of one use keep their order. */
static void move_tensors(const struct sink *s, struct nki_items *items) {
  const int n = items->n;
  int *first = arena_new_array(s->r->arena, int, (size_t)n), *next = arena_new_array(s->r->arena, int, (size_t)n);
  struct nki_item *from = arena_dup(s->r->arena, items->v, (size_t)n * sizeof *from);
  memset(first, -1, (size_t)n * sizeof *first);
  for (int i = n - 1; i >= 0; i--) {
    const struct made *m = from[i].tensor ? made_of(s, from[i].tensor) : NULL;
    const int use = m && m->depth && m->use > i ? m->use : i;
    next[i] = use == i ? -1 : first[use];
    if (use != i)
      first[use] = i;
  }
  items->n = 0;
  for (int i = 0; i < n; i++) {
    const struct made *m = from[i].tensor ? made_of(s, from[i].tensor) : NULL;
    for (int k = first[i]; k >= 0; k = next[k])
      items->v[items->n++] = from[k];
    if (!m || !m->depth || m->use <= i)
      items->v[items->n++] = from[i];
  }
}

static void sink_list(struct sink *s, struct nki_items *items) {
  struct level *l = &s->level[s->depth++];
  *l = (struct level){.n_open = 0};
  for (l->item = 0; l->item < items->n; l->item++)
    walk_item(s, &items->v[l->item]);
  s->depth--;
  move_tensors(s, items);
}

void roll_sink(struct roll *r, struct nki_items *items) {
  struct sink s = {.r = r, .made = arena_new_array(r->arena, struct made, (size_t)r->tensors.n)};
  sink_list(&s, items);
}
