/* pipeline: the lists of stages as data: stages.def for NumPy, HLO and MLIR, the stages of it that the reference has, and
 * nki_stages.def for NKI kernels.  Needs neither CPython nor MLIR. */
#ifndef DRIVER_PIPELINE_H
#define DRIVER_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

enum stage_runner {
  RUN_TRACE,
  RUN_HLO,
  RUN_TO_LINALG,
  RUN_UPSTREAM,
  RUN_PASS,
  RUN_TO_NISA,
  RUN_NKI_AST,
  RUN_NKI_TRACE,
  RUN_NKI_CANONICALIZE,
  RUN_NKI_REROLL,
  RUN_NKI_LOWER,
};
/* What a stage's program is. */
enum stage_form { FORM_HLO, FORM_MLIR, FORM_NISA, FORM_NKI };

/* What a user changed at a stage (by_hand.h): nothing, its pass does not run, it was put in, its pass has options. */
enum stage_hand { HAND_NONE, HAND_OUT, HAND_IN, HAND_OPTIONS };

struct stage_def {
  enum stage_runner runner;
  const char *name, *phase, *dialect, *pass, *summary;
  bool is_own; /* the reference does not have it */
  enum stage_hand hand;
  const char *options; /* of an own pass, or NULL */
};

enum stage_form stage_form(const struct stage_def *def);

struct pipeline {
  const char *name; /* "hlo", "reference", "nki" */
  const struct stage_def *stages;
  int n;
  const struct pipeline *base; /* the one that a user changed; NULL: this is one of those below */
};
extern const struct pipeline pipeline_hlo, pipeline_reference, pipeline_nki;
/* The index in pipeline_hlo of a stage of it or of pipeline_reference. */
int pipeline_index_in_hlo(const struct stage_def *def);

/* True if the own pass of this name works on buffers; false: on tensors, as one-shot-bufferize and those before it do. */
bool pipeline_takes_buffers(const char *pass);

/* Returns the index in a pipeline of the stage `spec`: "cse" is the first stage of that name, "cse:2" the second; -1 if
 * there is none. */
int pipeline_find(const struct pipeline *p, const char *spec);
/* The same, but `text` may also be the index in digits. */
int pipeline_stage(const struct pipeline *p, const char *text);
/* True if some pipeline has this stage. */
bool pipeline_has_stage(const char *spec);

/* The version of the pipeline, 12 hex digits: a hash of the sources that determine a stage's output
 * (driver/version.sh). */
const char *pipeline_version(void);
/* The release number, such as "0.2.0", from the file VERSION. */
const char *release_version(void);

/* Returns the stages of a pipeline as a JSON array of {"index","name","pass","phase","dialect","summary"}.  On the heap, the
 * caller frees it; NULL when out of memory. */
char *pipeline_describe(const struct pipeline *p, size_t *len);

#endif
