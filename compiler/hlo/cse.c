/* cse: of two instructions that compute the same value from the same operands, the later gives way.
 *
 * Same opcode, operands, attributes and shape; called computations alike; constants equal bit by bit (so 0.0 and -0.0
 * stay apart, and equal NaNs merge).  Parameters, custom calls and roots stay.  One hash table per computation.
 */
#include "hlo/passes.h"

#include <string.h>

#include "hlo/rewrite.h"

/* ---- hashing ----------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

static uint64_t mix_ints(uint64_t h, struct hlo_ints v) {
  for (int k = 0; k < v.n; k++)
    h = mix(h, (uint64_t)v.v[k]);
  return mix(h, (uint64_t)v.n);
}

static uint64_t mix_bytes(uint64_t h, const void *p, size_t n) {
  for (; n >= 8; n -= 8, p = (const char *)p + 8) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    h = mix(h, v);
  }
  uint64_t v = 0;
  if (n)
    memcpy(&v, p, n);
  return mix(h, v);
}

/* Attributes that rarely differ between otherwise equal instructions are left to the comparison. */
static uint64_t hash_instr(const struct hlo_instr *i) {
  uint64_t h = mix(0, (uint64_t)i->op);
  h = mix(h, (uint64_t)i->shape.dtype);
  h = mix_ints(h, (struct hlo_ints){i->shape.rank, i->shape.dims});
  for (int k = 0; k < i->n_operands; k++)
    h = mix(h, (uint64_t)i->operands[k]->id);
  h = mix_ints(h, i->attrs->dimensions);
  h = mix(h, (uint64_t)i->attrs->direction);
  h = mix(h, (uint64_t)i->attrs->tuple_index);
  if (i->attrs->slice)
    h = mix_bytes(h, i->attrs->slice, (size_t)i->operands[0]->shape.rank * sizeof *i->attrs->slice);
  if (i->attrs->padding)
    h = mix_bytes(h, i->attrs->padding, (size_t)i->operands[0]->shape.rank * sizeof *i->attrs->padding);
  if (i->attrs->literal)
    h = mix_bytes(h, i->attrs->literal->data, i->attrs->literal->size);
  return h;
}

/* ---- equality ---------------------------------------------------------------------------------------- */

static bool gather_equal(const struct hlo_gather_dims *x, const struct hlo_gather_dims *y) {
  return hlo_ints_equal(x->offset_dims, y->offset_dims) &&
         hlo_ints_equal(x->collapsed_slice_dims, y->collapsed_slice_dims) &&
         hlo_ints_equal(x->start_index_map, y->start_index_map) && hlo_ints_equal(x->slice_sizes, y->slice_sizes) &&
         hlo_ints_equal(x->operand_batching_dims, y->operand_batching_dims) &&
         hlo_ints_equal(x->start_indices_batching_dims, y->start_indices_batching_dims) &&
         x->index_vector_dim == y->index_vector_dim && x->indices_are_sorted == y->indices_are_sorted;
}

static bool scatter_equal(const struct hlo_scatter_dims *x, const struct hlo_scatter_dims *y) {
  return hlo_ints_equal(x->update_window_dims, y->update_window_dims) &&
         hlo_ints_equal(x->inserted_window_dims, y->inserted_window_dims) &&
         hlo_ints_equal(x->scatter_dims_to_operand_dims, y->scatter_dims_to_operand_dims) &&
         hlo_ints_equal(x->input_batching_dims, y->input_batching_dims) &&
         hlo_ints_equal(x->scatter_indices_batching_dims, y->scatter_indices_batching_dims) &&
         x->index_vector_dim == y->index_vector_dim && x->indices_are_sorted == y->indices_are_sorted &&
         x->unique_indices == y->unique_indices;
}

static bool window_equal(const struct hlo_window *x, const struct hlo_window *y) {
  if (x->n != y->n)
    return false;
  for (int k = 0; k < x->n; k++) {
    const struct hlo_window_dim *p = &x->v[k], *q = &y->v[k];
    if (p->size != q->size || p->stride != q->stride || p->low != q->low || p->high != q->high ||
        p->window_dilation != q->window_dilation || p->base_dilation != q->base_dilation ||
        p->is_reversed != q->is_reversed)
      return false;
  }
  return true;
}

static bool conv_equal(const struct hlo_conv_dims *x, const struct hlo_conv_dims *y) {
  return x->input_batch == y->input_batch && x->input_feature == y->input_feature &&
         x->kernel_input_feature == y->kernel_input_feature && x->kernel_output_feature == y->kernel_output_feature &&
         x->output_batch == y->output_batch && x->output_feature == y->output_feature &&
         hlo_ints_equal(x->input_spatial, y->input_spatial) && hlo_ints_equal(x->kernel_spatial, y->kernel_spatial) &&
         hlo_ints_equal(x->output_spatial, y->output_spatial) && x->feature_group_count == y->feature_group_count &&
         x->batch_group_count == y->batch_group_count;
}

static bool literal_equal(const struct hlo_literal *x, const struct hlo_literal *y) {
  return x->size == y->size && hlo_shape_equal(&x->shape, &y->shape) && !memcmp(x->data, y->data, x->size);
}

/* Both NULL, or both there and alike. */
#define SAME(x, y, equal) ((x) == (y) || ((x) && (y) && equal((x), (y))))

static bool attributes_equal(const struct hlo_instr *x, const struct hlo_instr *y) {
  size_t rank = x->n_operands ? (size_t)x->operands[0]->shape.rank : 0;
  if (x->op != y->op || !hlo_shape_equal(&x->shape, &y->shape) ||
      !hlo_ints_equal(x->attrs->dimensions, y->attrs->dimensions) || x->attrs->direction != y->attrs->direction ||
      x->attrs->is_total_order != y->attrs->is_total_order || x->attrs->k != y->attrs->k ||
      x->attrs->is_smallest != y->attrs->is_smallest || x->attrs->is_stable != y->attrs->is_stable ||
      x->attrs->tuple_index != y->attrs->tuple_index || x->attrs->parameter_number != y->attrs->parameter_number)
    return false;
  if (x->op == HLO_SLICE && memcmp(x->attrs->slice, y->attrs->slice, rank * sizeof *x->attrs->slice) != 0)
    return false;
  if (x->op == HLO_PAD && memcmp(x->attrs->padding, y->attrs->padding, rank * sizeof *x->attrs->padding) != 0)
    return false;
  return SAME(x->attrs->dot, y->attrs->dot, hlo_dot_dims_equal) &&
         SAME(x->attrs->gather, y->attrs->gather, gather_equal) &&
         SAME(x->attrs->window, y->attrs->window, window_equal) && SAME(x->attrs->conv, y->attrs->conv, conv_equal) &&
         SAME(x->attrs->scatter, y->attrs->scatter, scatter_equal) &&
         SAME(x->attrs->literal, y->attrs->literal, literal_equal);
}

/* Instruction by instruction.  Combiners have three; anything longer, or calling further, counts as different. */
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

/* Two different wishes about one value cannot both be kept; neither can two memberships in fuse groups. */
static bool wishes_agree(const struct hlo_instr *x, const struct hlo_instr *y) {
  if (x->is_fused && y->is_fused)
    return false;
  return !x->knob || !y->knob || x->knob == y->knob || knobs_equal(x->knob, y->knob);
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

static bool can_merge(const struct hlo_instr *i) {
  return i->op != HLO_PARAMETER && i->op != HLO_CUSTOM_CALL && !hlo_op_is_collective(i->op) && i != i->parent->root;
}

/* Equal instructions whose wishes differ stand side by side; more than this many are not worth looking through. */
enum { TRIES_MAX = 16 };

/* Small slots: they are looked at in no order, so the fewer bytes the better. */
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
      if (wishes_agree(other, i))
        same = other;
    }
    if (same) {
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
