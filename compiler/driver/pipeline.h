/* pipeline: the list of stages (stages.def) as data.  Needs neither CPython nor MLIR. */
#ifndef DRIVER_PIPELINE_H
#define DRIVER_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

enum stage_runner { RUN_TRACE, RUN_HLO, RUN_TO_LINALG, RUN_UPSTREAM, RUN_PASS, RUN_TO_NISA };

struct stage_def {
  enum stage_runner runner;
  const char *name, *phase, *dialect, *pass, *summary;
};

extern const struct stage_def pipeline_stages[];
extern const int pipeline_n_stages;

/* Returns the index of the stage `spec`: "cse" is the first stage of that name, "cse:2" the second; -1 if there is
 * none. */
int pipeline_find(const char *spec);
bool pipeline_has_stage(const char *spec);

/* The version of the pipeline, 12 hex digits: a hash of the sources that determine a stage's output
 * (driver/version.sh). */
const char *pipeline_version(void);
/* The release number, such as "0.2.0", from the file VERSION. */
const char *release_version(void);

/* Returns the stages as a JSON array of {"index","name","pass","phase","dialect","summary"}.  On the heap, the
 * caller frees it; NULL when out of memory. */
char *pipeline_describe(size_t *len);

#endif
