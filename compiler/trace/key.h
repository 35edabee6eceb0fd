/* key: the key of x[key], with one entry for each axis of x. */
#ifndef TRACE_KEY_H
#define TRACE_KEY_H

#include "trace/tracer.h"

enum entry_kind { ENTRY_INT, ENTRY_SLICE, ENTRY_ARRAY };

/* How one axis of x is indexed. */
struct entry {
  enum entry_kind kind;
  int64_t start, step, count; /* integer and slice: the `count` elements start, start + step, … */
  hlo_val indices;            /* array: its elements, as s32 that count from 0 */
  hlo_val at;                 /* an s32[] that depends on the index of a loop and is added to start, or NULL */
};

struct key {
  int rank; /* of x */
  struct entry axis[HLO_RANK_MAX];
  int n_arrays, arrays[HLO_RANK_MAX]; /* the axes that arrays index; the arrays have one common shape */
  /* True if other entries are between those of arrays and integers.  NumPy then puts the arrays' axes first. */
  bool separated;
  int n_new;                /* axes of size 1, from None */
  int new_at[HLO_RANK_MAX]; /* their places in the result, where each array has one axis */
};

/* Reads the key of an array of this shape.  Returns false with an exception or an error of the builder. */
bool key_read(struct tracer *tr, const struct hlo_shape *s, PyObject *key, struct key *k);
/* True if some entry depends on the index of a loop. */
bool key_moves(const struct key *k);
/* True if some slice takes more than one element and has a step other than 1. */
bool key_is_strided(const struct key *k);
/* Sets dims to the shape of the result before arrays are applied: x's axes have the sizes `sizes`, the axes of integers
 * are removed, and those of None are added.  Sets array_at to the places of the axes that arrays index.  Returns the
 * rank, at most 2 * HLO_RANK_MAX. */
int key_result(const struct key *k, const int64_t *sizes, int64_t dims[2 * HLO_RANK_MAX], int array_at[HLO_RANK_MAX]);

#endif
