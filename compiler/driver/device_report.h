/* device_report: the outputs of a Neuron device beside the expected ones, as members of the object "device" (frames.h). */
#ifndef DRIVER_DEVICE_REPORT_H
#define DRIVER_DEVICE_REPORT_H

#include "base/buf.h"
#include "trace/trace.h"

struct check_result;

struct device_expected {
  const char *reference;               /* what `want` is from: "numpy"; NULL: there is none */
  const struct trace_array *want;      /* with its spread, if that is known */
  const struct trace_array *simulated; /* of the same type; NULL: it was not simulated */
};

/* Appends {"name", statistics, "reference"?, "simulator"?} to an open array.  of_reference, of_simulator: how they compare;
 * set if there is such a comparison. */
void device_report_put_output(struct buf *b, const char *name, const struct trace_array *got,
                              const struct device_expected *e, struct check_result *of_reference,
                              struct check_result *of_simulator);

#endif
