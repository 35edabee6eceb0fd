/* compose: short names for what composed operations are written in.
 *
 * The first group takes equal shapes and dtypes, as HLO does; the second promotes and broadcasts, as NumPy does.  NULL
 * operands give NULL, so that a composition checks once, at its end.
 */
#ifndef TRACE_COMPOSE_H
#define TRACE_COMPOSE_H

#include "trace/tracer.h"

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
/* With a number on the right. */
static inline hlo_val bin_k(struct tracer *tr, enum hlo_op op, hlo_val x, double k) {
  return bin(tr, op, x, like(tr, x, k));
}
static inline hlo_val cmp_k(struct tracer *tr, enum hlo_direction d, hlo_val x, double k) {
  return cmp(tr, d, x, like(tr, x, k));
}
static inline hlo_val as_float(struct tracer *tr, hlo_val x) {
  return x ? cast(tr, x, promote_float(x->shape.dtype)) : NULL;
}

/* The largest finite number of a float type. */
double dtype_largest(enum dtype t);

/* BIN_… of two values, promoted and broadcast. */
hlo_val arith(struct tracer *tr, int which, hlo_val x, hlo_val y);
/* x == y, x < y, … likewise. */
hlo_val compare_vals(struct tracer *tr, enum hlo_direction d, hlo_val x, hlo_val y);
hlo_val sign_bit(struct tracer *tr, hlo_val x); /* of a float, as bool */
hlo_val where_vals(struct tracer *tr, hlo_val c, hlo_val x, hlo_val y);

/* Moving elements (shapes.c).  Axes are not negative. */
hlo_val flat(struct tracer *tr, hlo_val x);
/* The one axis to work along: the last one without an argument; None flattens x first.  False with an exception. */
bool axis_or_flat(struct tracer *tr, const char *name, PyObject *axis, hlo_val *x, int *at);
hlo_val reshape_to(struct tracer *tr, hlo_val x, int rank, const int64_t *dims);
hlo_val transpose_by(struct tracer *tr, hlo_val x, const int64_t *permutation); /* x itself where nothing moves */
hlo_val expand_at(struct tracer *tr, hlo_val x, int axis);                      /* a new axis of size 1 */
hlo_val slice_axis(struct tracer *tr, hlo_val x, int axis, int64_t start, int64_t stop);
hlo_val reverse_axis(struct tracer *tr, hlo_val x, int axis);
hlo_val concat_vals(struct tracer *tr, int n, hlo_val const *xs, int axis); /* equal dtypes */
/* Reads a sequence of arrays as values of one dtype (as: DT_NONE for the promoted one); *xs is in the arena. */
bool read_arrays(struct tracer *tr, const struct op_def *op, PyObject *o, PyObject *as, int *n, hlo_val **xs);
/* Two operands of one dtype, each with its own shape. */
bool read_pair(struct tracer *tr, PyObject *a, PyObject *b, enum dtype as, hlo_val out[2]);

/* A dot of two values of one dtype; booleans too. */
hlo_val dot_of(struct tracer *tr, hlo_val x, hlo_val y, const struct hlo_dot_dims *d);
/* The diagonal col = row + k of axes i and j: both are dropped, it becomes the last axis. */
hlo_val diagonal_of(struct tracer *tr, hlo_val x, int i, int j, int64_t k);

/* reduce_axes over one axis. */
hlo_val reduce_axis(struct tracer *tr, enum hlo_op op, hlo_val x, int axis, bool keepdims);
/* Adds up along the axes of mask, in float32 where x's dtype is narrower; the result has x's dtype. */
hlo_val sum_axes(struct tracer *tr, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims);
/* The positions 0, 1, … along an axis of x, as s32 in x's shape. */
hlo_val positions(struct tracer *tr, hlo_val x, int axis);

/* x at n index arrays of one shape: axes[i] of x is indexed by indices[i], whose values count from 0.  The result has the
 * indices' axes at `place`, the other axes of x in their order around them. */
hlo_val gather_at(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place);
/* x with v stored there; v has the shape gather_at would give. */
hlo_val scatter_at(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place, hlo_val v);
/* Indices as s32 that count from 0: negative ones are moved by size. */
hlo_val wrap_indices(struct tracer *tr, hlo_val indices, int64_t size);
/* Indices that are known: checked, made non-negative. */
hlo_val constant_indices(struct tracer *tr, PyObject *o, int axis, int64_t size);
/* A value to be stored in dtype t and broadcast to dims, by NumPy's rules for assignment. */
hlo_val stored_value(struct tracer *tr, PyObject *value, enum dtype t, int rank, const int64_t *dims);
/* x with value where the mask (of x's leading axes) holds. */
hlo_val store_masked(struct tracer *tr, hlo_val x, hlo_val mask, PyObject *value);
/* ufunc.accumulate; which: BIN_… */
PyObject *accumulate_call(struct tracer *tr, int which, PyObject *args, PyObject *kw);

#endif
