/* key: what stands between the brackets of x[key], with one entry for each axis of x. */
#ifndef TRACE_KEY_H
#define TRACE_KEY_H

#include "trace/tracer.h"

enum entry_kind { ENTRY_INT, ENTRY_SLICE, ENTRY_ARRAY };

/* How one axis of x is indexed. */
struct entry {
  enum entry_kind kind;
  int64_t start, step, count; /* of an integer and a slice: elements start, start + step, … */
  hlo_val indices;            /* of an array, as s32 that count from 0 */
  hlo_val at;                 /* an s32[] that is added to start, or NULL: it depends on the index of a loop */
};

struct key {
  int rank; /* of x */
  struct entry axis[HLO_RANK_MAX];
  int n_arrays, arrays[HLO_RANK_MAX]; /* the axes that arrays index; the arrays have one common shape */
  /* Other entries are between those of arrays and integers: NumPy puts the arrays' axes first then. */
  bool separated;
  int n_new;                /* axes of size 1, from None */
  int new_at[HLO_RANK_MAX]; /* their places in the result, where each array has one axis */
};

/* Reads the key of an array of this shape; false with an exception (or an error of the builder). */
bool key_read(struct tracer *tr, const struct hlo_shape *s, PyObject *key, struct key *k);
/* True if some entry depends on the index of a loop. */
bool key_moves(const struct key *k);
/* True if some slice takes more than one element and has a step other than 1. */
bool key_is_strided(const struct key *k);
/* The shape of the result without arrays: x's axes have the sizes `sizes`, integers' axes are dropped and None's added.
 * array_at: the places of the axes that arrays index.  Returns the rank, at most 2 * HLO_RANK_MAX. */
int key_result(const struct key *k, const int64_t *sizes, int64_t dims[2 * HLO_RANK_MAX], int array_at[HLO_RANK_MAX]);

#endif
