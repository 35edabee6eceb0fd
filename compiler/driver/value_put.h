/* value_put: a value as members of a JSON object. */
#ifndef DRIVER_VALUE_PUT_H
#define DRIVER_VALUE_PUT_H

#include "driver/value.h"

enum {
  VALUE_SLICE_MAX = 4096, /* elements of a slice */
  VALUE_SLICE_SIDE = 64,  /* of rows and columns, if the job has no slice */
  VALUE_HEAT_SIDE = 128   /* cells of a heat map */
};

/* Appends the statistics, "histogram", "slice" and "heat" of the value (frames.h).  Its rows and columns are the last two
 * dimensions that are longer than 1; in SBUF and PSUM the rows are the partitions.  slices: of the first n_slices dimensions;
 * the others are whole.  Without slices the slice has the first elements of the rows and columns, and one of each other. */
void value_put_array(struct buf *b, const struct value *v, int n_slices, const struct job_slice *slices);

#endif
