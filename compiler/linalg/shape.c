/* shape: lowers reshape, transpose, slice, pad, concatenate and copy.
 *
 * Reshapes become tensor.collapse_shape and expand_shape, which are views after bufferization.  Pad and concatenate
 * write their pieces into a new tensor with insert_slice.
 */
#include <assert.h>

#include "linalg/impl.h"

/* ---- reshape ----------------------------------------------------------------------------------------- */

/* Reshapes via one flat dimension, or via rank 0 if one of the ranks is 0. */
static MlirValue through_flat(struct ir_builder *b, MlirValue x, const struct hlo_shape *from, int rank,
                              const int64_t *dims) {
  const int64_t total = hlo_shape_elements(from);
  int from_end = from->rank, to_end = rank;
  const int flat = from->rank && rank; /* rank of the shape in between */

  if (from->rank > flat)
    x = ir_collapse_shape(b, x, ir_tensor_type(b, from->dtype, flat, &total), flat, &from_end);
  if (rank > flat)
    x = ir_expand_shape(b, x, ir_tensor_type(b, from->dtype, rank, dims), flat, &to_end, rank, dims);
  return x;
}

MlirValue lower_reshape_tensor(struct lower *l, MlirValue x, const struct hlo_shape *from, int rank,
                               const int64_t *dims) {
  struct ir_builder *b = &l->b;
  int end[HLO_RANK_MAX];
  MlirType to = ir_tensor_type(b, from->dtype, rank, dims);

  if (mlirTypeEqual(to, mlirValueGetType(x)))
    return x;
  if (hlo_shape_elements(from) == 0) /* there is no data, and dimensions of size 0 cannot be grouped uniquely */
    return ir_empty(b, from->dtype, rank, dims);
  if (from->rank > rank && rank && ir_group_dims(rank, dims, from->rank, from->dims, end))
    return ir_collapse_shape(b, x, to, rank, end);
  if (from->rank < rank && from->rank && ir_group_dims(from->rank, from->dims, rank, dims, end))
    return ir_expand_shape(b, x, to, from->rank, end, rank, dims);
  return through_flat(b, x, from, rank, dims);
}

enum status lower_reshape(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];

  while (x->op == HLO_RESHAPE && mlirValueIsNull(node_of(l, x)->value)) /* not emitted */
    x = x->operands[0];
  lower_set(l, i, lower_reshape_tensor(l, lower_value(l, x), &x->shape, i->shape.rank, i->shape.dims), lower_no_op());
  return ST_OK;
}

/* ---- transpose, copy --------------------------------------------------------------------------------- */

enum status lower_transpose(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];
  bool identity = true;
  MlirOperation op;

  for (int k = 0; k < i->shape.rank; k++)
    identity &= i->attrs->dimensions.v[k] == k;
  if (identity) {
    lower_set(l, i, lower_value(l, x), lower_no_op());
    return ST_OK;
  }
  op = ir_transpose(&l->b, lower_value(l, x), x->shape.rank, i->attrs->dimensions.v);
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

static MlirOperation copy_value(struct lower *l, MlirValue v) {
  MlirValue empty = ir_empty_of(&l->b, mlirValueGetType(v));
  return ir_linalg_named(&l->b, "linalg.copy", 1, &v, empty, 0, NULL);
}

/* Returns the number of the function's argument that v is, or is a view of; -1 if there is none. */
static int viewed_argument(struct lower *l, MlirValue v) {
  static const char *const views[] = {"tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape"};
  while (mlirValueIsAOpResult(v)) {
    MlirOperation def = mlirOpResultGetOwner(v);
    bool is_view = false;
    for (size_t k = 0; k < sizeof views / sizeof *views; k++)
      is_view |= ir_is(def, views[k]);
    if (!is_view)
      return -1;
    v = mlirOperationGetOperand(def, 0);
  }
  return mlirBlockEqual(mlirBlockArgumentGetOwner(v), l->function) ? (int)mlirBlockArgumentGetArgNumber(v) : -1;
}

static bool is_aliased(const struct hlo_module *m, int parameter) {
  for (int k = 0; k < m->n_aliases; k++)
    if (m->aliases[k].param_index == parameter)
      return true;
  return false;
}

/* Tensors are values, so a copy is needed only if the result would otherwise be an argument of the caller. */
enum status lower_copy(struct lower *l, const struct hlo_instr *i) {
  if (i->shape.dtype == DT_TUPLE) {
    lower_copy_tuple(l, i);
    return ST_OK;
  }
  MlirValue v = lower_value(l, i->operands[0]);
  if (viewed_argument(l, v) < 0) {
    lower_set(l, i, v, lower_no_op());
    return ST_OK;
  }
  MlirOperation op = copy_value(l, v);
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

MlirValue lower_writable_value(struct lower *l, MlirValue x) {
  const int p = viewed_argument(l, x);
  return p < 0 || is_aliased(l->module, p) ? x : ir_result(copy_value(l, x));
}

MlirValue lower_writable(struct lower *l, const struct hlo_instr *x) {
  return lower_writable_value(l, lower_value(l, x));
}

/* ---- slice, pad, concatenate ------------------------------------------------------------------------- */

enum status lower_slice(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];
  int64_t offsets[HLO_RANK_MAX], strides[HLO_RANK_MAX];

  if (hlo_shape_equal(&x->shape, &i->shape)) {
    lower_set(l, i, lower_value(l, x), lower_no_op());
    return ST_OK;
  }
  for (int k = 0; k < i->shape.rank; k++) {
    offsets[k] = i->shape.dims[k] ? i->attrs->slice[k].start : 0;
    strides[k] = i->attrs->slice[k].stride;
  }
  struct ir_slice s = {.rank = i->shape.rank, .offsets = offsets, .sizes = i->shape.dims, .strides = strides};
  MlirType t = ir_tensor_type(&l->b, i->shape.dtype, i->shape.rank, i->shape.dims);
  lower_set(l, i, ir_extract_slice(&l->b, lower_value(l, x), &s, t), lower_no_op());
  return ST_OK;
}

/* Finds the elements [first, first + count) of a dimension of size n that negative padding does not remove.  *at is the
 * index of the first of them in the result. */
static void pad_window(const struct hlo_pad_dim *p, int64_t n, int64_t result, int64_t *first, int64_t *count,
                       int64_t *at) {
  const int64_t step = p->interior + 1;

  *first = p->low < 0 ? (-p->low + step - 1) / step : 0;
  *at = p->low + *first * step;
  int64_t room = *at < result ? (result - *at + step - 1) / step : 0;
  *count = n - *first < room ? n - *first : room;
  if (*count < 0)
    *count = 0;
}

/* Returns an operand as a scalar: a constant, or a value read from the operand's 0-d tensor. */
static MlirValue scalar_operand(struct lower *l, const struct hlo_instr *x) {
  if (lower_is_splat(x))
    return lower_splat(l, x);
  return ir_extract(&l->b, lower_value(l, x), 0, NULL);
}

MlirValue lower_pad_tensor(struct lower *l, MlirValue v, const struct hlo_shape *from, const struct hlo_pad_dim *pads,
                           MlirValue fill, const struct hlo_shape *to) {
  int64_t first[HLO_RANK_MAX], count[HLO_RANK_MAX], at[HLO_RANK_MAX], steps[HLO_RANK_MAX];
  bool cut = false;

  MlirValue dest = ir_fill(&l->b, fill, lower_empty(l, to));
  assert(from->rank == to->rank);
  for (int k = 0; k < to->rank; k++) {
    pad_window(&pads[k], from->dims[k], to->dims[k], &first[k], &count[k], &at[k]);
    steps[k] = pads[k].interior + 1;
    cut |= count[k] != from->dims[k];
    if (count[k] == 0)
      return dest;
  }
  if (cut) {
    struct ir_slice s = {.rank = to->rank, .offsets = first, .sizes = count};
    v = ir_extract_slice(&l->b, v, &s, ir_tensor_type(&l->b, to->dtype, to->rank, count));
  }
  struct ir_slice s = {.rank = to->rank, .offsets = at, .sizes = count, .strides = steps};
  return ir_insert_slice(&l->b, v, dest, &s);
}

enum status lower_pad(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];
  MlirValue fill = scalar_operand(l, i->operands[1]);
  lower_set(l, i, lower_pad_tensor(l, lower_value(l, x), &x->shape, i->attrs->padding, fill, &i->shape), lower_no_op());
  return ST_OK;
}

enum status lower_concatenate(struct lower *l, const struct hlo_instr *i) {
  const int64_t axis = i->attrs->dimensions.v[0];
  int64_t offsets[HLO_RANK_MAX] = {0};

  if (i->n_operands == 1) {
    lower_set(l, i, lower_value(l, i->operands[0]), lower_no_op());
    return ST_OK;
  }
  MlirValue dest = lower_empty(l, &i->shape);
  for (int k = 0; k < i->n_operands; k++) {
    const struct hlo_instr *x = i->operands[k];
    struct ir_slice s = {.rank = i->shape.rank, .offsets = offsets, .sizes = x->shape.dims};
    if (hlo_shape_elements(&x->shape))
      dest = ir_insert_slice(&l->b, lower_value(l, x), dest, &s);
    offsets[axis] += x->shape.dims[axis];
  }
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
