/* view: tensors that show elements of another tensor, as NumPy's views do.
 *
 *     r = y[3]      r's base is y, and r shows its row 3
 *     r += 1        writes r, and with it row 3 of y
 *     y[...] = 0    changes y: r is computed again when it is read
 *
 * A view is a list of steps from the base's value to its own.  Each of them can be done (to read the view) and undone (to
 * put a new value of the view into the base).  In the HLO there are no views: a write makes a new value of the base.
 *
 * Whether NumPy's reshape is a view depends on the order of the elements in memory.  Tensors therefore know their strides.
 * Where the order is not known, a reshape may be read, but a write to it or to its base is refused.
 */
#ifndef TRACE_VIEW_H
#define TRACE_VIEW_H

#include "trace/key.h"
#include "trace/ops.h"
#include "trace/tensor.h"

enum view_kind { VIEW_WRITABLE, VIEW_READ_ONLY, VIEW_UNKNOWN };

/* True after t's value was computed again if its base has changed; false with an exception. */
bool view_refresh(struct tracer *tr, struct tensor *t);
/* The value of t's base with v in t's place; NULL with an exception where t must not be written. */
hlo_val view_write(struct tracer *tr, struct tensor *t, hlo_val v);

/* Makes t, which was computed so from base, a view of it: by a key without arrays. */
void view_link_key(struct tracer *tr, struct tensor *t, struct tensor *base, const struct key *k, PyObject *key);
/* The same of what an operation of the table returned, if it is one that returns views; else notes the order in memory. */
void view_link_result(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, PyObject *result);
/* Makes t a view of base by strides: of an array that begins `offset` elements into base's. */
bool view_link_strides(struct tracer *tr, struct tensor *t, struct tensor *base, int64_t offset);
/* True if value is y[key], read with this very key object, and y has not changed since. */
bool view_is_item(const struct tensor *y, PyObject *key, PyObject *value);

void view_order_c(struct tensor *t); /* in memory, the last axis varies fastest */
/* t was computed from x, and has its order in memory. */
void view_order_of(struct tensor *t, const struct tensor *x);

#endif
