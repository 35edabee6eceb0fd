/* draw: pseudo-random numbers for inputs. */
#ifndef TRACE_DRAW_H
#define TRACE_DRAW_H

#include "trace/trace.h"

/* Fills n elements, of float32 or int32, with values for an input of dtype t.  *state, the generator's, moves on. */
void draw_values(enum dtype t, int64_t n, enum trace_ranges ranges, uint64_t *state, void *data);

#endif
