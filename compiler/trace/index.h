/* index: x[key] and x[key] = value of a tensor. */
#ifndef TRACE_INDEX_H
#define TRACE_INDEX_H

#include "trace/tensor.h"

struct key;

PyObject *index_get(struct tracer *tr, struct tensor *t, PyObject *key); /* NULL: see tracer.h */
int index_set(struct tracer *tr, struct tensor *t, PyObject *key, PyObject *value);
/* index_slice returns the elements that the integers and slices of a key select, with all axes of x kept.  index_store
 * returns x with v stored there; v has as many elements. */
hlo_val index_slice(struct tracer *tr, hlo_val x, const struct key *k);
hlo_val index_store(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k);

#endif
