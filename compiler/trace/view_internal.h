/* view_internal: the parts of a view, for view.c, which reads and writes views, and view_link.c, which makes them. */
#ifndef TRACE_VIEW_INTERNAL_H
#define TRACE_VIEW_INTERNAL_H

#include "trace/view.h"

enum step_kind { STEP_KEY, STEP_RESHAPE, STEP_TRANSPOSE, STEP_REVERSE, STEP_PICK };

/* One step from the base to the view. */
struct step {
  enum step_kind kind;
  int from_rank, to_rank;
  const int64_t *from, *to; /* the shapes before and after it */
  const struct key *key;    /* KEY: integers and slices; all axes are kept */
  const int64_t *perm;      /* TRANSPOSE */
  int axis;                 /* REVERSE */
  const int32_t *places;    /* PICK: the positions of the view's elements in a base of one axis */
};

struct view {
  enum view_kind kind;
  bool is_opaque; /* true if the steps are not known; the view can then be read only until the base changes */
  int n;
  struct step *steps;
  PyObject *key; /* the key of y[key], only to be compared; or NULL */
};

#endif
