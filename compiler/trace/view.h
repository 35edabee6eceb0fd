/* view: tensors whose elements are elements of another tensor, as in NumPy's views.
 *
 *     r = y[3]      r's base is y, and r is row 3 of y
 *     r += 1        writes r and also row 3 of y
 *     y[...] = 0    changes y; r is computed again when it is read
 *
 * A view is a list of steps from the base's value to the view's value.  Each step can be applied (to read the view) and
 * undone (to store a new value of the view in the base).  The HLO has no views: a write makes a new value of the base.
 *
 * In NumPy, the order of the elements in memory determines if a reshape is a view.  Tensors therefore have strides.  If
 * the order is not known, a reshape may be read, but a write to it or to its base is refused.
 */
#ifndef TRACE_VIEW_H
#define TRACE_VIEW_H

#include "trace/key.h"
#include "trace/ops.h"
#include "trace/tensor.h"

enum view_kind { VIEW_WRITABLE, VIEW_READ_ONLY, VIEW_UNKNOWN };

/* Computes t's value again if its base has changed.  False with an exception. */
bool view_refresh(struct tracer *tr, struct tensor *t);
/* Returns the value of t's base with v as the value of t; NULL with an exception if t must not be written. */
hlo_val view_write(struct tracer *tr, struct tensor *t, hlo_val v);

/* Makes t, which was computed from base with a key without arrays, a view of base. */
void view_link_key(struct tracer *tr, struct tensor *t, struct tensor *base, const struct key *k, PyObject *key);
/* Does the same for the result of an operation of the table, if the operation returns views; otherwise records the
 * result's order in memory. */
void view_link_result(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, PyObject *result);
/* Makes t a view of base, based on t's strides and the offset of its first element in base's array. */
bool view_link_strides(struct tracer *tr, struct tensor *t, struct tensor *base, int64_t offset, bool is_read_only);
/* True if value is y[key], read with the same key object, and y has not changed since then. */
bool view_is_item(const struct tensor *y, PyObject *key, PyObject *value);

void view_order_c(struct tensor *t); /* records that the last axis varies fastest in memory */
/* Records that t, which was computed from x, has x's order in memory. */
void view_order_of(struct tensor *t, const struct tensor *x);

#endif
