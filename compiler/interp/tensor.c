/* tensor: runs operations that make a tensor from another one.
 *
 *     %r = tensor.insert_slice %tile into %t[...]
 *
 * %r takes the memory of %t, and only the tile is written, if this is the last use of %t and no other slot has a view of
 * its memory.  Otherwise %r is a copy.
 */
#include <string.h>

#include "interp/internal.h"

/* True if the instruction may write into the operand's memory: nothing else uses the memory, now or later. */
static bool may_take(const struct machine *m, const struct instr *in, int slot) {
  bool dies = false;
  for (int k = 0; k < in->n_sole; k++)
    dies |= in->dying[k] == slot;
  return dies && machine_is_sole_view(view_of(m, slot));
}

/* Gives the result row-major memory for a tensor of the shape of `from`. */
static bool allocate_like(struct machine *m, const struct instr *in, int result, int from) {
  struct view *to = view_of(m, result);
  const int rank = rank_of(m, from);
  int64_t n = 1;
  memcpy(to->dims, view_of(m, from)->dims, (size_t)rank * sizeof *to->dims);
  machine_row_major(to, rank);
  for (int d = 0; d < rank; d++)
    n *= to->dims[d];
  return machine_allocate(m, in, to, (size_t)n * dtype_size(m->p->slots[result].t));
}

static bool copy(struct machine *m, const struct instr *in, int to, int from) {
  const struct view *x = view_of(m, from), *y = view_of(m, to);
  if (machine_put_off_copy(m, from, y))
    return true;
  if (!machine_may_use(m, in, from) || !machine_will_fill(m, in, to))
    return false;
  for (int d = 0; d < rank_of(m, from); d++)
    if (!x->dims[d])
      return true;
  interp_copy(dtype_size(m->p->slots[from].t), rank_of(m, from), x->dims, y->data, y->strides, x->data, x->strides);
  return true;
}

bool tensor_begin(struct machine *m, const struct instr *in, int result, int from, bool needs_elements) {
  if (may_take(m, in, from)) {
    machine_assign_view(m, view_of(m, result), view_of(m, from), rank_of(m, from));
    return true;
  }
  if (!allocate_like(m, in, result, from))
    return false;
  return !needs_elements || machine_is_unwritten(view_of(m, from)) || copy(m, in, result, from);
}

static bool is_row_major(const struct machine *m, int slot) {
  const struct view *v = view_of(m, slot);
  int64_t n = 1;
  for (int d = rank_of(m, slot) - 1; d >= 0; d--) {
    if (v->dims[d] != 1 && v->strides[d] != n)
      return false;
    n *= v->dims[d];
  }
  return true;
}

bool tensor_pack(struct machine *m, const struct instr *in, int result, int from) {
  if (is_row_major(m, from)) {
    machine_assign_view(m, view_of(m, result), view_of(m, from), rank_of(m, from));
    return true;
  }
  return allocate_like(m, in, result, from) && copy(m, in, result, from);
}

/* A constant is never written, so it needs no copy. */
void run_constant_tensor(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  machine_drop_view(m, v);
  v->base = v->data = (char *)(uintptr_t)in->view.offsets;
  memcpy(v->dims, in->view.sizes, (size_t)in->view.n * sizeof *v->dims);
  if (in->view.strides)
    memcpy(v->strides, in->view.strides, (size_t)in->view.n * sizeof *v->strides);
  else
    machine_row_major(v, in->view.n);
}

bool run_insert_slice(struct machine *m, const struct instr *in) {
  const int result = in->results[0], source = in->args[0];
  const struct view *from = view_of(m, source);
  int64_t dims[HLO_RANK_MAX], strides[HLO_RANK_MAX];
  struct view part = {.dims = dims, .strides = strides};
  bool is_empty = false;
  if (!tensor_begin(m, in, result, in->args[1], true) || !machine_slice(m, in, view_of(m, result), in->args + 2, &part))
    return false;
  part.block = view_of(m, result)->block;
  for (int d = 0; d < rank_of(m, source); d++) {
    is_empty |= !dims[d];
    if (dims[d] != from->dims[d])
      return machine_fault(m, in, "copies between tensors of different shapes");
  }
  if (is_empty || machine_put_off_copy(m, source, &part))
    return true;
  if (!machine_may_use(m, in, source) || !machine_may_write(m, in, result))
    return false;
  interp_copy(dtype_size(m->p->slots[result].t), rank_of(m, source), dims, part.data, strides, from->data,
              from->strides);
  return true;
}

bool run_insert(struct machine *m, const struct instr *in) {
  const int result = in->results[0];
  if (!tensor_begin(m, in, result, in->args[1], true) || !machine_may_write(m, in, result))
    return false;
  char *at = element_at(m, result, in->args + 2);
  if (!at)
    return machine_fault(m, in, "writes outside of its tensor");
  row_store(m->p->slots[result].t, at, 1, 1, &m->scalars[in->args[0]]);
  return true;
}

bool run_elements(struct machine *m, const struct instr *in) {
  struct view *v = view_of(m, in->results[0]);
  const enum dtype t = m->p->slots[in->results[0]].t;
  const size_t size = dtype_size(t);
  memcpy(v->dims, in->view.sizes, (size_t)in->view.n * sizeof *v->dims);
  machine_row_major(v, in->view.n);
  if (!machine_allocate(m, in, v, (size_t)in->n_args * size))
    return false;
  for (int k = 0; k < in->n_args; k++)
    row_store(t, v->data + (size_t)k * size, 1, 1, &m->scalars[in->args[k]]);
  return machine_will_fill(m, in, in->results[0]);
}
