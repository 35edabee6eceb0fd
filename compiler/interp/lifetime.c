/* lifetime: finds the instruction after which a view is not used any more.
 *
 * A block's slots are its arguments and what its instructions compute.  Walking backwards, the first use that is met is the
 * last one; a use inside a loop or a branch counts as a use by the whole loop or branch.  What the terminator hands on
 * lives until the end of the block.
 */
#include "base/array.h"
#include "interp/internal.h"

struct lifetimes {
  struct arena *arena;
  const struct slot *slots;
  const struct block **owner; /* of each slot: the block that it belongs to */
  bool *is_used;              /* after the present instruction */
  int *uses;                  /* by the present instruction; one inside of it counts as two */
  struct uses {
    int *v;
    int n, cap;
  } list;
};

static void add_use(struct lifetimes *l, int slot, int weight) {
  if (l->slots[slot].view < 0)
    return;
  if (!l->uses[slot])
    array_push(l->arena, &l->list, slot);
  l->uses[slot] += weight;
}

static void add_uses(struct lifetimes *l, const struct instr *in, int weight);

static void add_uses_in_block(struct lifetimes *l, const struct block *b) {
  for (int k = 0; k < b->code.n; k++)
    add_uses(l, &b->code.v[k], 2);
  for (int k = 0; k < b->n_results; k++)
    add_use(l, b->results[k], 2);
}

static int n_blocks(const struct instr *in) {
  return in->op == OP_FOR ? 1 : in->op == OP_IF || in->op == OP_WHILE ? 2 : 0;
}

static void add_uses(struct lifetimes *l, const struct instr *in, int weight) {
  for (int k = 0; k < in->n_args; k++)
    add_use(l, in->args[k], weight);
  for (int k = 0; k < n_blocks(in); k++)
    add_uses_in_block(l, in->blocks[k]);
  for (int k = 0; in->op == OP_STRUCTURED && k < in->structured->code.n; k++)
    if (in->structured->code.v[k].op == OP_LOAD)
      add_use(l, in->structured->code.v[k].args[0], 2);
}

static void own(struct lifetimes *l, const struct block *b) {
  for (int k = 0; k < b->n_args; k++)
    l->owner[b->args[k]] = b;
  for (int k = 0; k < b->code.n; k++)
    for (int i = 0; i < b->code.v[k].n_results; i++)
      l->owner[b->code.v[k].results[i]] = b;
}

static void end_views(struct lifetimes *l, const struct block *b, struct instr *in) {
  l->list.n = 0;
  add_uses(l, in, 1);
  for (int k = 0; k < in->n_results; k++)
    add_use(l, in->results[k], 2); /* a result that is never used */
  int *dying = arena_new_array(l->arena, int, (size_t)l->list.n);
  for (int sole = 1; sole >= 0; sole--)
    for (int k = 0; k < l->list.n; k++) {
      const int slot = l->list.v[k];
      if (l->owner[slot] != b || l->is_used[slot] || (l->uses[slot] == 1) != sole)
        continue;
      dying[in->n_dying++] = slot;
      in->n_sole += sole;
    }
  for (int k = 0; k < l->list.n; k++) {
    const int slot = l->list.v[k];
    l->is_used[slot] |= l->owner[slot] == b; /* the others are those of blocks inside or outside of this one */
    l->uses[slot] = 0;
  }
  in->dying = dying;
}

static void end_block(struct lifetimes *l, struct block *b) {
  int *ends = arena_new_array(l->arena, int, (size_t)(b->n_args + b->n_results));
  for (int k = 0; k < b->n_results; k++) {
    const int slot = b->results[k];
    if (l->slots[slot].view < 0 || l->owner[slot] != b || l->is_used[slot])
      continue;
    l->is_used[slot] = true;
    ends[b->n_ends++] = slot;
  }
  b->ends = ends;
}

static void find(struct lifetimes *l, struct block *b) {
  own(l, b);
  end_block(l, b);
  for (int k = b->code.n; k--;)
    end_views(l, b, &b->code.v[k]);
  for (int k = 0; k < b->n_args; k++) /* arguments that are never used */
    if (l->slots[b->args[k]].view >= 0 && !l->is_used[b->args[k]])
      b->ends[b->n_ends++] = b->args[k];
  for (int k = 0; k < b->code.n; k++)
    for (int i = 0; i < n_blocks(&b->code.v[k]); i++)
      find(l, b->code.v[k].blocks[i]);
}

void find_lifetimes(struct arena *a, int n_slots, const struct slot *slots, struct block *body) {
  struct lifetimes l = {.arena = a,
                        .slots = slots,
                        .owner = arena_new_array(a, const struct block *, (size_t)n_slots),
                        .is_used = arena_new_array(a, bool, (size_t)n_slots),
                        .uses = arena_new_array(a, int, (size_t)n_slots)};
  for (int k = 0; k < n_slots; k++)
    l.owner[k] = NULL, l.is_used[k] = false, l.uses[k] = 0;
  find(&l, body);
}
