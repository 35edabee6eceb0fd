/* index: x[key] and x[key] = value of a tensor. */
#ifndef TRACE_INDEX_H
#define TRACE_INDEX_H

#include "trace/tensor.h"

PyObject *index_get(struct tracer *tr, struct tensor *t, PyObject *key); /* NULL: see tracer.h */
int index_set(struct tracer *tr, struct tensor *t, PyObject *key, PyObject *value);

#endif
