/* parting: finds where two results part: the first stage and the first operation, in text and in values.
 *
 * Stages are paired by name ("cse:2"); those that only one side has are left out.  In text, the first pair whose lines differ
 * (diff/diff.h) has the place.  A value is what options.value takes (value.h), on the inputs of a check, compared element by element
 * within the check's tolerances.
 *
 * Of values, the results of the kernels come first: what their last stages return.  Then the operations of the first stage whose
 * text differs are compared in their order, each with its counterpart (diff/counterpart.h); up to there the values are the same, if
 * the inputs are.  If none of them differs but the results do, the first stage whose results differ is looked for by halves, and its
 * operations are compared.  After HLO, values of other shapes, and of lines that are executed more often, are other tiles or
 * layouts: they have no counterpart.
 */
#ifndef DRIVER_PARTING_H
#define DRIVER_PARTING_H

#include "base/arena.h"
#include "base/error.h"
#include "base/buf.h"
#include "driver/job.h"
#include "driver/job_runner.h"

enum { PARTING_VALUES_MAX = 400 }; /* pairs of values that are compared: each is a compile up to its stage */

struct parting_place {
  const char *stage;   /* "cse:2"; NULL: they do not part */
  int line[2];         /* of each side; 0: the side has no such line */
  const char *text[2]; /* those lines, or NULL */
};

/* What the kernels return. */
struct parting_results {
  bool is_known, is_same;
  const char *reason; /* why it is not known */
  const char *name;   /* of the first result that differs; NULL: not known */
  const char *index;  /* its first element that differs; NULL: the shapes do */
  double got[2];
  double max_abs_err; /* also of results that are the same, within the tolerances */
};

struct parting {
  struct parting_place text, value;
  struct parting_results results;
  const char *alone_stage; /* whose lines were compared last; NULL: none were */
  int n_lines_alone[2];    /* its lines that compute something and have no counterpart */
  const char *note;        /* why the values were not compared to the end; NULL: they were */
  const char *index;       /* of value: the first element that differs, "[0, 3]"; NULL: the shapes do */
  double got[2], max_abs_err;
  int n_stages, n_alone; /* pairs of stages, and stages of one side */
  int n_values;          /* pairs of values that were compared */
};

/* A pair of values was compared; n_values: how many so far. */
typedef void (*parting_progress)(void *user, const char *stage, int line, int n_values);

/* Compiles both jobs and compares their first kernels, or those of the job's name.  ST_INPUT with a message if one of them
 * has no stages; other statuses are the runner's.  When its time is up (ST_TIMEOUT), what was found until then is the result. */
MUST_USE enum status parting_find(const struct job_runner *runner, struct arena *a, const struct job jobs[2],
                                  bool with_values, parting_progress progress, void *user, struct parting *out,
                                  struct error *err);

/* Append the frames of a search (frames.h). */
void parting_put_progress(struct buf *b, const char *stage, int line, int n_values);
void parting_put(struct buf *b, const struct parting *r, bool with_values);

#endif
