/* cse: merges instructions that compute the same value from the same operands; the first one stays.
 *
 * Same opcode, operands, attributes and shape; called computations alike; constants equal bit by bit (so 0.0 and -0.0
 * stay apart, and equal NaNs merge).  Parameters, custom calls and roots stay.  One hash table per computation.
 */
#include "hlo/passes.h"

#include <string.h>

#include "base/index.h"
#include "hlo/attrs.h"
#include "hlo/rewrite.h"

/* ---- hashing ----------------------------------------------------------------------------------------- */

static uint64_t hash_instr(const struct hlo_instr *i) {
  uint64_t h = hash_mix(0, (uint64_t)i->op);
  h = hash_mix(h, (uint64_t)i->shape.dtype);
  for (int k = 0; k < i->shape.rank; k++)
    h = hash_mix(h, (uint64_t)i->shape.dims[k]);
  for (int k = 0; k < i->n_operands; k++)
    h = hash_mix(h, (uint64_t)i->operands[k]->id);
  return hlo_attrs_hash(i, h);
}

/* ---- equality ---------------------------------------------------------------------------------------- */

static bool attributes_equal(const struct hlo_instr *x, const struct hlo_instr *y) {
  return x->op == y->op && hlo_shape_equal(&x->shape, &y->shape) && hlo_attrs_equal(x, y);
}

/* Compares instruction by instruction.  Combiners have three; a longer computation, or one with calls, counts as
 * different. */
static bool computations_equal(const struct hlo_computation *x, const struct hlo_computation *y) {
  enum { COMBINER_MAX = 8 };
  const struct hlo_instr *xs[COMBINER_MAX], *ys[COMBINER_MAX];
  int n = 0;
  if (x == y)
    return true;
  if (x->n_instrs != y->n_instrs || x->n_instrs > COMBINER_MAX)
    return false;
  const struct hlo_instr *j = y->first;
  for (const struct hlo_instr *i = x->first; i; i = i->next, j = j->next, n++) {
    if (!attributes_equal(i, j) || i->n_operands != j->n_operands || i->n_called || j->n_called ||
        i->op == HLO_CUSTOM_CALL || (i == x->root) != (j == y->root))
      return false;
    for (int k = 0; k < i->n_operands; k++)
      for (int at = 0; at < n; at++)
        if ((i->operands[k] == xs[at]) != (j->operands[k] == ys[at]))
          return false;
    xs[n] = i;
    ys[n] = j;
  }
  return true;
}

static bool instrs_equal(const struct hlo_instr *x, const struct hlo_instr *y) {
  if (x->n_operands != y->n_operands || x->n_called != y->n_called || !attributes_equal(x, y))
    return false;
  for (int k = 0; k < x->n_operands; k++)
    if (x->operands[k] != y->operands[k])
      return false;
  for (int k = 0; k < x->n_called; k++)
    if (!computations_equal(x->called[k], y->called[k]))
      return false;
  return true;
}

static bool knobs_equal(const struct hlo_knob *x, const struct hlo_knob *y) {
  return hlo_ints_equal(x->loop_tile, y->loop_tile) && hlo_ints_equal(x->tile_size, y->tile_size) &&
         hlo_ints_equal(x->reduction_tile, y->reduction_tile) && hlo_ints_equal(x->layout_tile, y->layout_tile) &&
         x->mem_space == y->mem_space && x->partition_dim == y->partition_dim;
}

/* One value can have only one knob and be in only one fuse group. */
static bool annotations_agree(const struct hlo_instr *x, const struct hlo_instr *y) {
  if (x->is_fused && y->is_fused)
    return false;
  return !x->knob || !y->knob || x->knob == y->knob || knobs_equal(x->knob, y->knob);
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

static bool can_merge(const struct hlo_instr *i) {
  return i->op != HLO_PARAMETER && i->op != HLO_CUSTOM_CALL && !hlo_op_is_collective(i->op) && i != i->parent->root;
}

/* Equal instructions with different annotations have neighbouring slots; at most this many are compared. */
enum { TRIES_MAX = 16 };

/* Slots are small, because they are visited in random order. */
struct slot {
  uint32_t hash;
  int n; /* one more than the instruction's place in kept; 0: empty */
};

static size_t n_slots(const struct hlo_computation *c) {
  size_t cap = 16;
  while (2 * cap < 3 * (size_t)c->n_instrs)
    cap *= 2;
  return cap;
}

/* With room for the slots and the instructions of c. */
static void merge_computation(struct slot *slots, struct hlo_instr **kept, struct hlo_computation *c,
                              struct hlo_pass_result *r) {
  const size_t cap = n_slots(c);
  int n_kept = 0;

  memset(slots, 0, cap * sizeof *slots);
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    if (!can_merge(i))
      continue;
    const uint32_t h = (uint32_t)hash_instr(i);
    struct hlo_instr *same = NULL;
    size_t at = h & (cap - 1);
    int tries = 0;
    for (; slots[at].n && !same && tries < TRIES_MAX; at = (at + 1) & (cap - 1)) {
      struct hlo_instr *other = kept[slots[at].n - 1];
      if (slots[at].hash != h || !instrs_equal(other, i))
        continue;
      tries++;
      if (annotations_agree(other, i))
        same = other;
    }
    if (same) {
      hlo_step(i, "merge-equal");
      hlo_rewrite_inherit(same, i);
      hlo_rewrite_remove(i, same);
      r->changed = true;
    } else if (!slots[at].n) {
      kept[n_kept++] = i;
      slots[at] = (struct slot){h, n_kept};
    }
  }
}

void hlo_cse(struct hlo_module *m, struct hlo_pass_result *r) {
  struct arena scratch;
  const struct hlo_computation *largest = m->entry;
  arena_init(&scratch);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    if (c->n_instrs > largest->n_instrs)
      largest = c;
  struct slot *slots = arena_new_array(&scratch, struct slot, n_slots(largest));
  struct hlo_instr **kept = arena_new_array(&scratch, struct hlo_instr *, (size_t)largest->n_instrs);
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    merge_computation(slots, kept, c, r);
  hlo_rewrite_end(m);
  arena_clear(&scratch);
}
