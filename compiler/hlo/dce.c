/* dce: removes instructions and computations that the root does not need.
 *
 * Operands precede their users and callees their callers, so one backward sweep over the computations, last first,
 * knows of each instruction whether anything needs it.  Parameters stay: they are the kernel's signature.
 */
#include "hlo/passes.h"
#include "hlo/rewrite.h"

/* Its address in scratch marks an instruction as needed until the sweep reaches it. */
static char needed_mark; /* only its address is used */

static bool is_needed(const struct hlo_instr *i) {
  return i->scratch == &needed_mark || i->op == HLO_PARAMETER || i == i->parent->root;
}

static void sweep(struct hlo_computation *c, bool *is_called, struct hlo_pass_result *r) {
  for (struct hlo_instr *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    hlo_prefetch(i, -1);
    if (!is_needed(i)) {
      hlo_step(i, "remove-unused");
      hlo_remove(i);
      r->changed = true;
      continue;
    }
    i->scratch = NULL;
    for (int k = 0; k < i->n_operands; k++)
      i->operands[k]->scratch = &needed_mark;
    for (int k = 0; k < i->n_called; k++)
      is_called[i->called[k]->id] = true;
  }
}

static void drop_uncalled(struct hlo_module *m, const bool *is_called, struct hlo_pass_result *r) {
  struct hlo_computation **at = &m->computations;
  while (*at) {
    if (is_called[(*at)->id]) {
      if (*at == m->entry)
        m->entry_link = at;
      at = &(*at)->next;
      continue;
    }
    *at = (*at)->next;
    m->n_computations--;
    r->changed = true;
  }
}

void hlo_dce(struct hlo_module *m, struct hlo_pass_result *r) {
  struct arena scratch;
  struct hlo_computation **order;
  int n = 0;

  arena_init(&scratch);
  bool *is_called = arena_new_array(&scratch, bool, (size_t)m->next_computation_id);
  order = arena_new_array(&scratch, struct hlo_computation *, (size_t)m->n_computations);
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    order[n++] = c;
  is_called[m->entry->id] = true;
  while (n-- > 0)
    if (is_called[order[n]->id])
      sweep(order[n], is_called, r);
  if (m->entry->root)
    hlo_step(m->entry->root, "remove-uncalled");
  drop_uncalled(m, is_called, r);
  hlo_rewrite_end(m);
  arena_clear(&scratch);
}
