/* pipeline: the list of stages (stages.def) as data.  Needs neither CPython nor MLIR. */
#ifndef DRIVER_PIPELINE_H
#define DRIVER_PIPELINE_H

#include "driver/compile.h"

enum stage_runner { RUN_TRACE, RUN_HLO, RUN_TO_LINALG, RUN_UPSTREAM, RUN_PASS, RUN_TO_NISA };

struct stage_def {
  enum stage_runner runner;
  const char *name, *phase, *dialect, *pass, *summary;
};

extern const struct stage_def pipeline_stages[];
extern const int pipeline_n_stages;

/* Index of the stage that `spec` ("cse", "cse:2") names; "cse" alone is the first of that name; -1 when there is none.
 */
int pipeline_find(const char *spec);

#endif
