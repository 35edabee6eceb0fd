/* value_put: a value as members of a JSON object. */
#ifndef DRIVER_VALUE_PUT_H
#define DRIVER_VALUE_PUT_H

#include "driver/value.h"

enum {
  VALUE_SLICE_MAX = 4096, /* elements of a slice */
  VALUE_SLICE_SIDE = 64,  /* of the last two dimensions, if the job has no slice */
  VALUE_HEAT_SIDE = 128   /* cells of a heat map */
};

/* Appends the statistics, "histogram", "slice" and "heat" of x (frames.h).  slices: of the first n_slices dimensions; the
 * others are whole.  Without slices the slice has the first elements of the last two dimensions that are longer than 1, and one of each other. */
void value_put_array(struct buf *b, const struct trace_array *x, int n_slices, const struct job_slice *slices);

#endif
