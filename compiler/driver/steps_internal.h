/* steps_internal: what the files of the recorder share.
 *
 *   steps.c        the recorder, and the steps that our passes report
 *   steps_other.c  the steps of lowerings and of MLIR's canonicalizer, which report none
 */
#ifndef DRIVER_STEPS_INTERNAL_H
#define DRIVER_STEPS_INTERNAL_H

#include "base/table.h"
#include "base/step.h"
#include "driver/compile_internal.h"

/* A text of the program, and the lines of its operations. */
struct state {
  struct buf text;
  struct arena arena;
  struct table line_of; /* an operation's pointer -> its line */
};

/* What the pass has said that it does. */
struct attempt {
  const char *rule; /* NULL: nothing yet */
  const char *name; /* of the operation; NULL: there is none */
  int id, line;     /* of the operation: in the stage before, -1: none; in the state before, 0: none */
};

struct steps {
  struct step_listener listener;
  struct path *p;
  const struct stage_def *def;
  int index;
  const char *how, *reason;
  struct state *now;
  uint64_t mark; /* of the program that `now` shows */
  bool is_open;  /* the program has changed since, and is not valid */
  struct attempt attempt;
  struct buf begin;            /* the text that the first edit changes */
  const struct ir_op **before; /* [id]: the operation of the stage before, NULL: none */
  int n_ids;
  MlirOperation copy; /* of the program, for a pass that is run again */
  struct buf out;
  int n, n_put;
  bool is_full;
};

struct steps_span {
  size_t from, end[2]; /* bytes: of both texts; of each */
  int line, n_from;    /* lines of the first */
};
/* The smallest run of whole lines of a that is replaced to make it b. */
struct steps_span steps_between(const struct buf *a, const char *b, size_t nb);

/* The program as it is, owned by the caller; NULL if its text is too long.  module: for a stage of MLIR. */
struct state *steps_read(const struct steps *s, MlirOperation module);
void steps_state_free(struct state *x);
/* Makes s->now another state, which s owns then. */
void steps_replace(struct steps *s, struct state *by);
bool steps_is_text(const struct state *x, const char *text, size_t len);
/* What the rule is tried on: op is in s->now. */
struct attempt steps_attempt(struct steps *s, void *op, const char *rule);
/* Adds the step of s->attempt from s->now to a text. */
void steps_add(struct steps *s, const char *text, size_t len);

/* One step for each operation of the stage before, from the map of the stage that a lowering has made. */
void steps_of_lowering(struct steps *s, const struct stage *made);
#define STEPS_CANONICALIZE "builtin.module(canonicalize)"
/* The steps of MLIR's canonicalizer on s->copy. */
void steps_of_canonicalizer(struct steps *s);

#endif
