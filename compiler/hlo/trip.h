/* trip: the number of iterations of a while loop, if its state determines it. */
#ifndef HLO_TRIP_H
#define HLO_TRIP_H

#include "hlo/hlo.h"

/* Element `at` of the state has the values first, first + step, … in n iterations. */
struct hlo_trip {
  int at;
  int64_t first, step, n;
};

/* False if w does not count, or counts past the range of its counter's type. */
bool hlo_trip_find(const struct hlo_instr *w, struct hlo_trip *out);
/* The value of x if it is a 0-d constant of a signed integer type. */
bool hlo_int_constant(const struct hlo_instr *x, int64_t *v);

#endif
