/* parting: finds where two results part: the first stage and the first operation, in text and in values.
 *
 * Stages are paired by name ("cse:2"); those that only one side has are left out.  In text, the first pair whose lines differ
 * (diff/diff.h) has the place.  In values, the operations of a pair are those on lines that the diff pairs, and a value is what
 * options.value takes (value.h), on the inputs of a check, compared element by element within the check's tolerances.  Up to
 * the first change of text the values are the same, if the inputs are.  From there on the last values of the stages are compared,
 * by halves: once two results differ, later stages carry the difference on.  Then the operations of the first stage that differs are
 * compared in the order of its text.
 */
#ifndef DRIVER_PARTING_H
#define DRIVER_PARTING_H

#include "base/arena.h"
#include "base/error.h"
#include "driver/job.h"

struct ir;

enum { PARTING_VALUES_MAX = 400 }; /* pairs of values that are taken: each is a compile up to its stage */

struct parting_place {
  const char *stage;   /* "cse:2"; NULL: they do not part */
  int line[2];         /* of each side; 0: the side has no such line */
  const char *text[2]; /* those lines, or NULL */
};

struct parting {
  struct parting_place text, value;
  const char *note;  /* why the values were not compared to the end; NULL: they were */
  const char *index; /* of value: the first element that differs, "[0, 3]"; NULL: the shapes do */
  double got[2], max_abs_err;
  int n_stages, n_alone; /* pairs of stages, and stages of one side */
  int n_values;          /* pairs of values that were compared */
};

/* Compiles both jobs and compares their first kernels, or those of the job's name.  ST_INPUT with a message if one of them
 * has no stages. */
MUST_USE enum status parting_find(struct ir *ir, struct arena *a, const struct job jobs[2], bool with_values,
                                  struct parting *out, struct error *err);

#endif
