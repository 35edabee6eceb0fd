/* parting_internal: the state of a search for the place where two results part.
 *
 *   parting.c        stages, the order of what is compared, frames
 *   parting_lines.c  which lines of a stage compute the same
 *   parting_value.c  two values: taken from jobs, and compared
 */
#ifndef DRIVER_PARTING_INTERNAL_H
#define DRIVER_PARTING_INTERNAL_H

#include <jansson.h>

#include "diff/counterpart.h"
#include "driver/parting.h"

struct parting_side {
  const struct job *job;
  json_t *result;
};

/* A stage that both sides have. */
struct parting_pair {
  const char *name;
  int at[2];    /* in the results */
  int index[2]; /* in the pipelines */
  struct diff_text text[2];
  int n_lines[2];
  bool is_same;
  bool is_hlo;  /* its values are whole tensors, whose shapes are no matter of layout */
  int first[2]; /* the first lines that differ */
};

struct parting_finder {
  const struct job_runner *runner;
  parting_progress progress;
  void *user;
  struct arena *arena;
  struct parting_side sides[2];
  struct {
    struct parting_pair *v;
    int n, cap;
  } pairs;
  struct parting *out;
};

/* A value of a side: that of a line, or of a name that is seen there. */
struct parting_want {
  int stage, line;   /* of the side's pipeline, and of the stage's text */
  const char *name;  /* NULL: the line's own */
  const char *label; /* the stage's name, for the progress */
};

enum parting_verdict {
  PARTING_NO_VALUE, /* one side has none */
  PARTING_OTHER,    /* they are no counterparts: another tile or layout, another number of executions */
  PARTING_ALIKE,
  PARTING_APART,
};

/* The first element that differs, and by how much any do, also within the tolerances. */
struct parting_found {
  const char *index; /* "[0, 3]"; NULL: the shapes differ */
  double got[2], max_abs_err;
};

/* Takes the values of both sides and compares them.  same_shape: others are no counterparts.  *reason, if there is no value: why, or
 * NULL; it and found->index live in the finder's arena. */
MUST_USE enum status parting_compare(struct parting_finder *f, const struct parting_want want[2], bool same_shape,
                                     enum parting_verdict *verdict, struct parting_found *found, const char **reason,
                                     struct error *err);
/* False, with a note, if no more pairs of values may be compared. */
bool parting_has_budget(struct parting_finder *f);

/* The results of a side's stage, and the line that returns them. */
struct parting_returned {
  int line; /* 0: the text has none */
  int n;
  const char **names;
};
struct parting_returned parting_returned(struct arena *a, struct diff_text text);
/* Pairs the lines of a stage by what they compute. */
struct counterparts parting_pair_lines(const struct parting_finder *f, const struct parting_pair *p);

#endif
