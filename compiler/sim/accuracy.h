/* accuracy: how far simulated times are from measured ones.
 *
 * The figures are those of measured.def, which tests/measured writes and checks.  They are the only copy: the API, the
 * terminal and the documents get them from there. */
#ifndef SIM_ACCURACY_H
#define SIM_ACCURACY_H

#include "base/buf.h"
#include "base/target.h"

/* Errors are shares of the measured time. */
struct sim_accuracy {
  int kernels; /* that were measured; 0: the others mean nothing */
  double median, worst;
};
struct sim_accuracy sim_accuracy(enum target t);

/* Calls fn with each thing that costs what was inferred from another machine or a similar instruction. */
void sim_uncalibrated(enum target t, void (*fn)(void *user, const char *what), void *user);

/* Appends "simulated times of trn2 …" as a sentence. */
void sim_accuracy_text(enum target t, struct buf *b);

#endif
