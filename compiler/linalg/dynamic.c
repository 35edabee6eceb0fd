/* dynamic: lowers dynamic-slice and dynamic-update-slice, whose starts are computed values.
 *
 * XLA clamps every start so that the slice stays inside the tensor.  A constant start becomes a static offset.  A start
 * that depends on a loop's counter is not clamped when its range shows that the slice stays inside.
 */
#include "hlo/literal.h"
#include "linalg/impl.h"

/* Reads the clamped starts of a window of the given sizes.  A static start goes to offsets and its entry in dynamic is
 * null; any other start goes to dynamic. */
static void read_starts(struct lower *l, const struct hlo_shape *x, const int64_t *sizes,
                        struct hlo_instr *const *starts, int64_t *offsets, MlirValue *dynamic) {
  for (int d = 0; d < x->rank; d++) {
    const int64_t limit = x->dims[d] - sizes[d];
    const bool is_constant = starts[d]->op == HLO_CONSTANT;
    int64_t v = is_constant ? hlo_literal_int(starts[d]->attrs->literal, 0) : 0;

    if (v < 0 && starts[d]->shape.dtype == DT_U64) /* as an unsigned number it exceeds every limit */
      v = limit;
    dynamic[d] = (MlirValue){NULL};
    if (limit == 0 || is_constant) {
      offsets[d] = v < 0 ? 0 : v > limit ? limit : v;
      continue;
    }
    offsets[d] = 0;
    const struct node *n = node_of(l, starts[d]);
    if (n->scalar_kind == SCALAR_INDEX) {
      dynamic[d] = scalar_index(l, starts[d]);
      if (n->low < 0 || n->high > limit)
        dynamic[d] = scalar_clamp_index(&l->b, dynamic[d], limit);
      continue;
    }
    MlirValue scalar = scalar_of(l, starts[d]);
    dynamic[d] = scalar_clamp_index(&l->b, scalar_to_index(&l->b, scalar, starts[d]->shape.dtype), limit);
  }
}

enum status lower_dynamic_slice(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];
  int64_t offsets[HLO_RANK_MAX];
  MlirValue dynamic[HLO_RANK_MAX];

  read_starts(l, &x->shape, i->shape.dims, i->operands + 1, offsets, dynamic);
  struct ir_slice s = {.rank = i->shape.rank, .offsets = offsets, .sizes = i->shape.dims, .dynamic = dynamic};
  MlirType t = ir_tensor_type(&l->b, i->shape.dtype, i->shape.rank, i->shape.dims);
  lower_set(l, i, ir_extract_slice(&l->b, lower_value(l, x), &s, t), lower_no_op());
  return ST_OK;
}

enum status lower_dynamic_update_slice(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0], *update = i->operands[1];
  int64_t offsets[HLO_RANK_MAX];
  MlirValue dynamic[HLO_RANK_MAX];

  read_starts(l, &x->shape, update->shape.dims, i->operands + 2, offsets, dynamic);
  struct ir_slice s = {.rank = x->shape.rank, .offsets = offsets, .sizes = update->shape.dims, .dynamic = dynamic};
  MlirValue dest = lower_writable(l, x);
  MlirValue v = lower_value(l, update);
  if (hlo_shape_elements(&update->shape))
    dest = ir_insert_slice(&l->b, v, dest, &s);
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
