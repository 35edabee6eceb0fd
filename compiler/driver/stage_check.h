/* stage_check: checks the stages of one kernel in sequence.
 *
 * Some stages lower to a program that was run before, for example if a pass only added attributes; they get that
 * program's result.  The others run on all sets of inputs; if the inputs are large, they do so at the end of each phase,
 * and the other results say that they are of the usual inputs only.  A stage that could exceed the job's processor time
 * (RLIMIT_CPU) or its deadline is skipped, so that the later stages are still made.
 */
#ifndef DRIVER_STAGE_CHECK_H
#define DRIVER_STAGE_CHECK_H

#include "driver/stage.h"

enum { STAGE_CHECKS_MAX = 64 }; /* programs whose results are kept; others are run again */

/* Inputs, and what NumPy computes from them. */
struct check_set {
  const char *what; /* for messages: "on inputs of wide ranges"; empty for the usual ones */
  struct trace_array *in, *want;
  struct check_tolerance *tolerances;
};
enum { CHECK_SETS_MAX = 2 };

struct stage_checks {
  struct ir *ir;
  struct trace_kernel *kernel;
  const struct pipeline *pipeline;
  struct arena *arena;
  uint64_t seed;
  const char *inputs_npz; /* inputs of a program that is not Python; NULL: from the seed */
  int64_t deadline_us;    /* of clock_now_us; 0: none */
  bool only_inputs;       /* of a program that is not Python: nothing is compared */
  /* set by stage_checks_begin */
  struct trace_array *in, *want; /* the usual inputs; want: if there is no no_check */
  bool has_inputs;
  const char *no_check; /* the reason why no stage can be checked; NULL if they can */
  /* private */
  struct check_set sets[CHECK_SETS_MAX];
  int n_sets;
  const char *no_wide_set;          /* why there is no such set; NULL if there is one, or none is wanted */
  struct interp_products *products; /* of all runs */
  struct stage_check last;          /* the result of the previous stage */
  int64_t began_us;
  int64_t longest_cpu_us, longest_us; /* the times of the longest runs */
  bool is_large;                      /* it is run on all sets at the end of each phase only */
  bool wants_all_runs;                /* by the present stage */
  bool is_out_of_time;
  int n_known;
  struct known_result {
    unsigned char digest[CHECK_DIGEST];
    struct check_result result;
  } known[STAGE_CHECKS_MAX];
};

/* Makes inputs and runs the kernel in NumPy or, if it was read as a program, its first stage.  Pseudo-random inputs come
 * from ranges in which the kernel's functions are defined; a second set has wide ranges, zeros, both signs and equal
 * values, of which zeros and then negative values are left out until NumPy's results from it are finite.  Results that were
 * not compared with such a set have a note that says so.  After a failure every stage is "skipped", with the reason; so it is if the kernel draws random numbers, or if
 * its outputs are mostly NaN or infinite.  The caller has set the first seven fields; module is as in stage_checks_run. */
void stage_checks_begin(struct stage_checks *c, MlirModule module, const struct stage_def *first);
/* Frees what only checks of further stages need.  Results stay, in the arena.  c may be zeroed. */
void stage_checks_end(struct stage_checks *c);

/* Sets s->check.  The first stage that fails gets a diagnostic, and so does the first stage for which there is no
 * time. module: the stage's program; not used for HLO. */
void stage_checks_run(struct stage_checks *c, MlirModule module, struct stage *s, struct diags *ds);

/* Returns the inputs that a result is about. */
const struct check_set *stage_checks_set_of(const struct stage_checks *c, const struct check_result *r);

#endif
