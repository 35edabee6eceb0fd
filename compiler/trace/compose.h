/* compose: building blocks for operations that consist of several HLO instructions.
 *
 * The functions with short names require equal shapes and dtypes, as HLO does.  If an operand is NULL they return NULL,
 * so that a composition needs only one check, at its end (see tracer.h for the error).  Axes count from 0 and are in
 * range, unless stated otherwise.
 */
#ifndef TRACE_COMPOSE_H
#define TRACE_COMPOSE_H

#include "trace/ops.h"

/* Returns the number v in x's shape and dtype. */
hlo_val val_like(struct tracer *tr, hlo_val x, double v);

static inline hlo_val un(struct tracer *tr, enum hlo_op op, hlo_val x) {
  return hlo_unary(&tr->b, op, x);
}
static inline hlo_val bin(struct tracer *tr, enum hlo_op op, hlo_val x, hlo_val y) {
  return hlo_binary(&tr->b, op, x, y);
}
static inline hlo_val cmp(struct tracer *tr, enum hlo_direction d, hlo_val x, hlo_val y) {
  return hlo_compare(&tr->b, d, x, y);
}
static inline hlo_val sel(struct tracer *tr, hlo_val c, hlo_val x, hlo_val y) {
  return hlo_select(&tr->b, c, x, y);
}
static inline hlo_val cast(struct tracer *tr, hlo_val x, enum dtype t) {
  return x ? hlo_convert(&tr->b, x, t) : NULL;
}
/* The same with a number as the second operand. */
static inline hlo_val bin_k(struct tracer *tr, enum hlo_op op, hlo_val x, double k) {
  return bin(tr, op, x, val_like(tr, x, k));
}
static inline hlo_val cmp_k(struct tracer *tr, enum hlo_direction d, hlo_val x, double k) {
  return cmp(tr, d, x, val_like(tr, x, k));
}
static inline hlo_val as_float(struct tracer *tr, hlo_val x) {
  return x ? cast(tr, x, promote_float(x->shape.dtype)) : NULL;
}

/* ---- arithmetic (elementwise.c) ---- */

hlo_val val_nonzero(struct tracer *tr, hlo_val x);  /* x != 0, as bool */
hlo_val val_sign_bit(struct tracer *tr, hlo_val x); /* the sign bit of a float, as bool */
/* Emits a binary operation of the table on values of equal shapes and dtypes. */
hlo_val val_binary(struct tracer *tr, enum op_id which, hlo_val x, hlo_val y);
/* The same for operands, which are promoted and broadcast as in NumPy.  `as` is DT_NONE or the dtype to compute in. */
hlo_val operand_binary(struct tracer *tr, enum op_id which, struct operand xy[2], enum dtype as);
/* These promote and broadcast their operands, then emit a binary operation, a comparison, and c ? x : y. */
hlo_val val_arith(struct tracer *tr, enum op_id which, hlo_val x, hlo_val y);
hlo_val val_compare(struct tracer *tr, enum hlo_direction d, hlo_val x, hlo_val y);
hlo_val val_where(struct tracer *tr, hlo_val c, hlo_val x, hlo_val y);

/* ---- constants and broadcasting (operand.c) ---- */

/* Returns the array as a constant of dtype t. */
hlo_val val_array(struct tracer *tr, PyArrayObject *array, enum dtype t);
hlo_val val_broadcast(struct tracer *tr, hlo_val v, int rank, const int64_t *dims);

/* ---- moving elements (shapes.c, index.c) ---- */

hlo_val val_flat(struct tracer *tr, hlo_val x); /* x reshaped to one axis */
hlo_val val_reshape(struct tracer *tr, hlo_val x, int rank, const int64_t *dims);
hlo_val val_transpose(struct tracer *tr, hlo_val x, const int64_t *permutation); /* x itself if no axis moves */
hlo_val val_expand(struct tracer *tr, hlo_val x, int axis);                      /* inserts an axis of size 1 */
hlo_val val_slice(struct tracer *tr, hlo_val x, int axis, int64_t start, int64_t stop);
hlo_val val_reverse(struct tracer *tr, hlo_val x, int axis);
hlo_val val_concat(struct tracer *tr, int n, hlo_val const *xs, int axis); /* of equal dtypes */
/* Reads the one axis that a function works along.  Without an argument it is the last axis; None flattens *x first.
 * False with an exception. */
bool args_axis_or_flat(struct tracer *tr, const char *func, PyObject *axis, hlo_val *x, int *at);

/* ---- products (products.c, matrices.c) ---- */

hlo_val val_matmul(struct tracer *tr, hlo_val x, hlo_val y); /* of equal dtypes */
/* Emits a dot of two values of the same dtype, which may be bool. */
hlo_val val_dot(struct tracer *tr, hlo_val x, hlo_val y, const struct hlo_dot_dims *d);
/* Returns x with the axes i (rows) and j (columns) replaced by a new last axis, the diagonal column = row + k. */
hlo_val val_diagonal(struct tracer *tr, hlo_val x, int i, int j, int64_t k);

/* ---- reductions (reduce.c) ---- */

/* Reduces x over the axes in mask.  op: HLO_ADD, HLO_MULTIPLY, HLO_MAXIMUM, HLO_MINIMUM, HLO_AND or HLO_OR. */
hlo_val val_reduce(struct tracer *tr, enum hlo_op op, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims);
hlo_val val_reduce_axis(struct tracer *tr, enum hlo_op op, hlo_val x, int axis, bool keepdims);
/* Returns the sum over the axes in mask, in x's dtype.  A dtype narrower than float32 is accumulated in float32. */
hlo_val val_sum(struct tracer *tr, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims);
/* Returns the positions 0, 1, … along an axis of x, as s32 in x's shape. */
hlo_val val_positions(struct tracer *tr, hlo_val x, int axis);

/* ---- elements by index (along.c, select.c, index.c) ---- */

/* Returns x indexed by n arrays of the same shape.  The values of indices[i] count from 0 and index axis axes[i] of x.
 * The result has the indices' axes at `place`, and the other axes of x in their order around them. */
hlo_val val_gather(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place);
/* Returns x with v stored at the elements that val_gather reads.  v has the shape of val_gather's result. */
hlo_val val_scatter(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place, hlo_val v);
/* Returns x indexed by integers along one axis, which is replaced by the indices' axes.  Negative indices count from
 * the end. */
hlo_val val_take(struct tracer *tr, hlo_val x, hlo_val indices, int axis);
/* Returns the indices as s32 that count from 0: `size` is added to negative indices. */
hlo_val val_wrap_indices(struct tracer *tr, hlo_val indices, int64_t size);
/* Returns indices that are known while tracing, checked and made non-negative. */
hlo_val val_known_indices(struct tracer *tr, PyObject *o, int axis, int64_t size);
/* Returns a value to be stored in an array of dtype t, converted and broadcast to dims by NumPy's rules for
 * assignment. */
hlo_val val_stored(struct tracer *tr, PyObject *value, enum dtype t, int rank, const int64_t *dims);
/* Returns x with `value` stored at each true element of the mask, which covers x's leading axes. */
hlo_val val_store_masked(struct tracer *tr, hlo_val x, hlo_val mask, PyObject *value);

#endif
