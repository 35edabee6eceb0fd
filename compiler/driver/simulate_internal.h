/* simulate_internal: the state of a simulation.
 *
 *   simulate.c        the run of the last stage: values, time
 *   simulate_value.c  one value of a stage
 *   simulate_watch.c  what the job watches meanwhile
 */
#ifndef DRIVER_SIMULATE_INTERNAL_H
#define DRIVER_SIMULATE_INTERNAL_H

#include "driver/simulate.h"
#include "sim/profile.h"
#include "sim/run.h"

struct simulation {
  const struct simulate_request *rq;
  struct diags *ds;
  struct sim_program program;
  struct trace_array *out;
  const struct ir_op **ops; /* of each instruction in the stage; NULL: not known */
  int *lines;        /* of each instruction in the stage's text, or in the source if that is NISA; 0: not known */
  int *buffer_lines; /* the same of each buffer */
  int n_watches;
  struct sim_watch *watches;
  struct simulate_watched *watched; /* of each watch of the job: which of them are its own */
  struct sim_fault fault;
  struct sim_counts counts;
  int64_t time_us;
  struct sim_record record; /* of a run that came to its end */
  bool has_record;
  struct sim_timeline timeline;
  struct sim_profile profile;
};

/* Returns the number of the operand of this name; without a name of the first that is written.  -1: there is none. */
int simulate_find_operand(const struct sim_instr *i, const char *name);
enum dtype simulate_dtype(enum sim_type t);
/* Runs the program with its watches.  ST_INPUT with s->fault, or with a diagnostic if the program cannot be run. */
MUST_USE enum status simulate_run(struct simulation *s);

/* Finds what the job watches, and appends the member "values". */
void simulate_find_watches(struct simulation *s);
void simulate_put_watches(const struct simulation *s, struct buf *b);

#endif
