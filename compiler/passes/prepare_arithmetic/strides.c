/* strides: slices with a step along the last dimension get the form that interleave.c reads in rows.
 *
 *     extract_slice %x[0, 0] [64, 259] [2, 2] : 128x517
 *       ==>
 *     %r = extract_slice %x[0, 0] [64, 517] [2, 1]               the rows
 *     %a = extract_slice %r[0, 0] [64, 258] [1, 2]               pairs, as far as there are whole ones
 *     %b = extract_slice %r[0, 516] [64, 1]                      what is left
 *     insert_slice %b into (insert_slice %a into empty[0, 0])[0, 258]
 *
 * By DMA each element of such a slice would be a descriptor of its own.  Linear in slices.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* An extract_slice whose offsets, sizes and strides are known, with a result of the same rank. */
struct strided {
  int rank;
  int64_t dims[STRUCTURED_LOOPS_MAX], offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX],
      stride[STRUCTURED_LOOPS_MAX];
};

static bool read_strided(MlirOperation op, struct strided *s) {
  MlirAttribute offsets = ir_attr(op, "static_offsets"), sizes = ir_attr(op, "static_sizes"),
                strides = ir_attr(op, "static_strides");
  int64_t rows = 1;

  s->rank = ir_shape(mlirOperationGetOperand(op, 0), STRUCTURED_LOOPS_MAX, s->dims);
  if (s->rank < 2 || mlirShapedTypeGetRank(mlirValueGetType(ir_result(op))) != s->rank)
    return false;
  for (int d = 0; d < s->rank; d++) {
    s->offset[d] = mlirDenseI64ArrayGetElement(offsets, d);
    s->size[d] = mlirDenseI64ArrayGetElement(sizes, d);
    s->stride[d] = mlirDenseI64ArrayGetElement(strides, d);
    if (s->offset[d] == mlirShapedTypeGetDynamicStrideOrOffset() || s->size[d] == mlirShapedTypeGetDynamicSize() ||
        s->stride[d] == mlirShapedTypeGetDynamicStrideOrOffset())
      return false;
    rows *= d < s->rank - 1 ? s->size[d] : 1;
  }
  const int last = s->rank - 1;
  return s->stride[last] > 1 && s->size[last] > 1 && prepare_comb_pays(rows, s->size[last] - 1, s->stride[last]);
}

static MlirValue part_of(struct ir_builder *b, MlirValue x, int rank, const int64_t *offset, const int64_t *size,
                         const int64_t *stride) {
  const struct ir_slice s = {.rank = rank, .offsets = offset, .sizes = size, .strides = stride};
  return ir_extract_slice(b, x, &s, ir_tensor_of(ir_value_element(x), rank, size));
}

/* The rows of the slice, whole: its other dimensions are sliced.  Sets s to the slice of that. */
static MlirValue take_rows(struct ir_builder *b, MlirValue x, struct strided *s) {
  const int last = s->rank - 1;
  struct strided rows = *s;
  bool is_plain = true;

  rows.offset[last] = 0;
  rows.size[last] = s->dims[last];
  rows.stride[last] = 1;
  for (int d = 0; d < last; d++) {
    is_plain &= s->stride[d] == 1;
    s->dims[d] = s->size[d];
    s->offset[d] = 0;
    s->stride[d] = 1;
  }
  if (!is_plain)
    return part_of(b, x, s->rank, rows.offset, rows.size, rows.stride);
  for (int d = 0; d < last; d++)
    s->offset[d] = rows.offset[d];
  return x;
}

/* The slice in two parts: whole groups, and the last element of each row. */
static MlirValue in_two(struct ir_builder *b, MlirValue x, const struct strided *s) {
  const int last = s->rank - 1;
  struct strided groups = *s, end = *s;
  int64_t at[STRUCTURED_LOOPS_MAX] = {0};

  groups.size[last]--;
  end.offset[last] += groups.size[last] * s->stride[last];
  end.size[last] = end.stride[last] = 1;
  MlirValue whole = ir_empty_of(b, ir_tensor_of(ir_value_element(x), s->rank, s->size));
  const struct ir_slice first = {.rank = s->rank, .offsets = at, .sizes = groups.size};
  whole = ir_insert_slice(b, part_of(b, x, s->rank, groups.offset, groups.size, groups.stride), whole, &first);
  at[last] = groups.size[last];
  const struct ir_slice second = {.rank = s->rank, .offsets = at, .sizes = end.size};
  return ir_insert_slice(b, part_of(b, x, s->rank, end.offset, end.size, end.stride), whole, &second);
}

void prepare_strides(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "tensor.extract_slice");

  for (int i = 0; i < all.n; i++) {
    struct strided s;
    MlirOperation op = all.v[i];
    if (!read_strided(op, &s) || prepare_has_knob(ir_result(op)))
      continue;
    struct ir_builder b = edit_before(run, op);
    const int last = s.rank - 1;
    const bool is_odd = s.size[last] * s.stride[last] > s.dims[last];
    MlirValue of = mlirOperationGetOperand(op, 0), rows = take_rows(&b, of, &s);
    if (!is_odd && mlirValueEqual(rows, of))
      continue;
    pass_step(run, op, "step-in-parts");
    MlirValue v = is_odd ? in_two(&b, rows, &s) : part_of(&b, rows, s.rank, s.offset, s.size, s.stride);
    edit_replace_data_uses(run->arena, ir_result(op), v, (MlirOperation){NULL});
    edit_erase_unused(run->arena, op);
  }
}
