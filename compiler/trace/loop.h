/* loop: fori_loop, whose body is traced once, and the index that is passed to the body. */
#ifndef TRACE_LOOP_H
#define TRACE_LOOP_H

#include "trace/tensor.h"

enum { LOOP_NEST_MAX = 8 };

/* A fori_loop whose body is running. */
struct loop {
  struct loop *outer;
  uint64_t serial; /* unique in the trace */
  int64_t lower, upper;
  struct hlo_computation *body, *around;
  hlo_val state, index; /* the body's parameter, a tuple, and its first element */
  struct {
    struct hlo_shape *v;
    int n, cap;
  } elems; /* the tuple's shapes */
  struct {
    hlo_val *v;
    int n, cap;
  } init; /* the elements' values before the first iteration */
  struct {
    struct seen {
      hlo_val outside, inside;
    } *v;
    int n, cap;
  } seen;                     /* values from outside that the body reads */
  struct hlo_fuse *last_fuse; /* the module's last fuse group before the loop */
  PyObject *memory;           /* the handler of NumPy arrays that are made in the body, borrowed; see array.c */
};

/* fori_loop(lower, upper, body, init) */
PyObject *loop_fori(PyObject *self, PyObject *args, PyObject *kw);
/* Returns v as a value of the computation that is being traced, which may be the body of a loop while v is from
 * outside.  NULL with an exception if v was made in the body of another loop. */
hlo_val loop_see(struct tracer *tr, hlo_val v);
/* Returns true if t's value was made in the computation that is being traced; otherwise false with an exception. */
bool loop_may_write(struct tracer *tr, const struct tensor *t);

/* ---- the index: a sum of multiples of the indices of running loops, and a constant (loop_index.c) ---- */

extern PyTypeObject *loop_index_type;
static inline bool loop_index_check(PyObject *o) {
  return Py_IS_TYPE(o, loop_index_type);
}
PyObject *loop_index_new(struct tracer *tr, const struct loop *l); /* the index of l */
/* Returns the index as an s32[]; NULL with an exception. */
hlo_val loop_index_val(struct tracer *tr, PyObject *o);
/* Sets the smallest and the largest value of the index.  False with an exception. */
bool loop_index_range(struct tracer *tr, PyObject *o, int64_t *low, int64_t *high);
/* Computes stop - start, each of them a LoopIndex or an int.  False if it is not the same in every iteration. */
bool loop_index_distance(PyObject *start, PyObject *stop, int64_t *out);
/* Computes x + times * y if both are ints or LoopIndices, at least one a LoopIndex.  *out is a LoopIndex, an int if no
 * index remains in the sum, or NULL with an exception.  Returns false without an exception for other operands. */
bool loop_index_add(PyObject *x, PyObject *y, int64_t times, PyObject **out);
/* Computes x * y in the same way.  Also returns false for the product of two indices. */
bool loop_index_multiply(PyObject *x, PyObject *y, PyObject **out);
bool loop_index_init(PyObject *module);

#endif
