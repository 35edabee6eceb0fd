/* summary: an array's statistics, as members of a JSON object. */
#ifndef DRIVER_SUMMARY_H
#define DRIVER_SUMMARY_H

#include "base/buf.h"
#include "trace/trace.h"

/* Appends  "shape","dtype","min","max","mean","std","nan","inf","zero"  to an open object.  min, max, mean and std are over the
 * elements that are finite, and null if there are none. */
void summary_put(struct buf *b, const struct trace_array *x);

/* Appends "histogram": {"from","to","counts"} of the finite elements, in SUMMARY_BINS equal steps; nothing if there
 * are none. */
enum { SUMMARY_BINS = 32 };
void summary_put_histogram(struct buf *b, const struct trace_array *x);

/* Appends "slice": the elements [0, n) of every dimension, at most SUMMARY_SIDE of the last two and one of the others, as
 * a list of rows; an element that is not finite is a string. */
enum { SUMMARY_SIDE = 8 };
void summary_put_slice(struct buf *b, const struct trace_array *x);

/* Appends one number, or a string if it is not finite. */
void summary_put_element(struct buf *b, double v);

#endif
