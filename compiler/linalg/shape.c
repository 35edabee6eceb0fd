/* shape: reshape, transpose, slice, pad, concatenate, copy.
 *
 * Reshapes become tensor.collapse_shape / expand_shape, which cost nothing once bufferized; pad and concatenate
 * write their pieces into a fresh tensor with insert_slice.
 */
#include <string.h>

#include "linalg/impl.h"

/* ---- reshape ----------------------------------------------------------------------------------------- */

static MlirValue collapse(struct emit *e, MlirValue x, MlirType to, int n, const int *end) {
  MlirNamedAttribute attr = emit_attr(e, "reassociation", emit_reassociation(e, n, end));
  return emit_result(emit_operation(e, &(struct emit_op){.name = "tensor.collapse_shape",
                                                         .n_operands = 1,
                                                         .operands = &x,
                                                         .n_results = 1,
                                                         .results = &to,
                                                         .n_attrs = 1,
                                                         .attrs = &attr}));
}

static MlirValue expand(struct emit *e, MlirValue x, MlirType to, int n, const int *end, int rank,
                        const int64_t *dims) {
  MlirNamedAttribute attrs[] = {emit_attr(e, "reassociation", emit_reassociation(e, n, end)),
                                emit_attr(e, "static_output_shape", emit_i64_array(e, rank, dims))};
  return emit_result(emit_operation(e, &(struct emit_op){.name = "tensor.expand_shape",
                                                         .n_operands = 1,
                                                         .operands = &x,
                                                         .n_results = 1,
                                                         .results = &to,
                                                         .n_attrs = 2,
                                                         .attrs = attrs}));
}

/* All elements are 1, or a group would be empty: through one flat dimension (rank 0: none). */
static MlirValue through_flat(struct emit *e, MlirValue x, const struct hlo_shape *from, int rank,
                              const int64_t *dims) {
  const int64_t total = hlo_shape_elements(from);
  int from_end = from->rank, to_end = rank;
  const int flat = from->rank && rank; /* rank of the shape in between */

  if (from->rank > flat)
    x = collapse(e, x, emit_tensor_type(e, from->dtype, flat, &total), flat, &from_end);
  if (rank > flat)
    x = expand(e, x, emit_tensor_type(e, from->dtype, rank, dims), flat, &to_end, rank, dims);
  return x;
}

MlirValue reshape_tensor(struct lower *l, MlirValue x, const struct hlo_shape *from, int rank, const int64_t *dims) {
  struct emit *e = &l->e;
  int end[HLO_RANK_MAX];
  MlirType to = emit_tensor_type(e, from->dtype, rank, dims);

  if (mlirTypeEqual(to, mlirValueGetType(x)))
    return x;
  if (hlo_shape_elements(from) == 0) /* nothing to carry over, and groups of zeros are ambiguous */
    return emit_empty(e, from->dtype, rank, dims);
  if (from->rank > rank && rank && emit_group_dims(rank, dims, from->rank, from->dims, end))
    return collapse(e, x, to, rank, end);
  if (from->rank < rank && from->rank && emit_group_dims(from->rank, from->dims, rank, dims, end))
    return expand(e, x, to, from->rank, end, rank, dims);
  return through_flat(e, x, from, rank, dims);
}

enum status lower_reshape(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];

  while (x->op == HLO_RESHAPE && mlirValueIsNull(node_of(l, x)->value)) /* put off */
    x = x->operands[0];
  lower_set(l, i, reshape_tensor(l, lower_value(l, x), &x->shape, i->shape.rank, i->shape.dims), lower_no_op());
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
  MlirValue v = emit_transpose(&l->e, lower_value(l, x), x->shape.dtype, x->shape.rank, x->shape.dims,
                               i->attrs->dimensions.v, &op);
  lower_set(l, i, v, op);
  return ST_OK;
}

static MlirOperation copy_value(struct lower *l, MlirValue v) {
  MlirType t = mlirValueGetType(v);
  MlirOperation empty = emit_operation(&l->e, &(struct emit_op){.name = "tensor.empty", .n_results = 1, .results = &t});
  return emit_linalg_named(&l->e, "linalg.copy", 1, &v, emit_result(empty), 0, NULL);
}

/* The number of the function's argument whose buffer v is a view of, or -1. */
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

/* Tensors are values, so a copy is needed only where the result would otherwise be the caller's own buffer. */
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
  lower_set(l, i, emit_result(op), op);
  return ST_OK;
}

MlirValue writable_value(struct lower *l, MlirValue x) {
  const int p = viewed_argument(l, x);
  return p < 0 || is_aliased(l->module, p) ? x : emit_result(copy_value(l, x));
}

MlirValue writable_tensor(struct lower *l, const struct hlo_instr *x) {
  return writable_value(l, lower_value(l, x));
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
  struct emit_slice s = {.rank = i->shape.rank, .offsets = offsets, .sizes = i->shape.dims, .strides = strides};
  MlirType t = emit_tensor_type(&l->e, i->shape.dtype, i->shape.rank, i->shape.dims);
  lower_set(l, i, emit_extract_slice(&l->e, lower_value(l, x), &s, t), lower_no_op());
  return ST_OK;
}

/* Which elements [first, first + count) of a dimension of size n survive the padding, and where the first lands. */
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

/* An operand as a scalar: a constant, or read from its 0-d tensor. */
static MlirValue scalar_operand(struct lower *l, const struct hlo_instr *x) {
  if (lower_is_splat(x))
    return lower_splat(l, x);
  return emit_extract(&l->e, lower_value(l, x), 0, NULL);
}

MlirValue pad_tensor(struct lower *l, MlirValue v, const struct hlo_shape *from, const struct hlo_pad_dim *pads,
                     MlirValue fill, const struct hlo_shape *to) {
  int64_t first[HLO_RANK_MAX], count[HLO_RANK_MAX], at[HLO_RANK_MAX], steps[HLO_RANK_MAX];
  bool cut = false;

  MlirValue dest = emit_fill(&l->e, fill, lower_empty(l, to));
  for (int k = 0; k < to->rank; k++) {
    pad_window(&pads[k], from->dims[k], to->dims[k], &first[k], &count[k], &at[k]);
    steps[k] = pads[k].interior + 1;
    cut |= count[k] != from->dims[k];
    if (count[k] == 0)
      return dest;
  }
  if (cut) {
    struct emit_slice s = {.rank = to->rank, .offsets = first, .sizes = count};
    v = emit_extract_slice(&l->e, v, &s, emit_tensor_type(&l->e, to->dtype, to->rank, count));
  }
  struct emit_slice s = {.rank = to->rank, .offsets = at, .sizes = count, .strides = steps};
  return emit_insert_slice(&l->e, v, dest, &s);
}

enum status lower_pad(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0];
  MlirValue fill = scalar_operand(l, i->operands[1]);
  lower_set(l, i, pad_tensor(l, lower_value(l, x), &x->shape, i->attrs->padding, fill, &i->shape), lower_no_op());
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
    struct emit_slice s = {.rank = i->shape.rank, .offsets = offsets, .sizes = x->shape.dims};
    if (hlo_shape_elements(&x->shape))
      dest = emit_insert_slice(&l->e, lower_value(l, x), dest, &s);
    offsets[axis] += x->shape.dims[axis];
  }
  lower_set(l, i, dest, lower_no_op());
  return ST_OK;
}
