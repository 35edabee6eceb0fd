/* accuracy: how far simulated times are from measured ones, as JSON. */
#ifndef DRIVER_ACCURACY_H
#define DRIVER_ACCURACY_H

#include "base/buf.h"
#include "base/target.h"

/* Appends {"median","worst","kernels","uncalibrated": ["…"]} of sim/accuracy.h; median and worst are shares of the measured
 * time, and null if no kernel was measured. */
void accuracy_put(struct buf *b, enum target t);

#endif
