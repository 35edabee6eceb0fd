/* stage_check: the check of one kernel's stages, one after the other.
 *
 * A stage whose program comes down to one that was run before, such as one that gained attributes only, has its result.
 * A stage that would take the job past its processor time (RLIMIT_CPU) or its deadline is skipped, so that the stages
 * after it are still made.
 */
#ifndef DRIVER_STAGE_CHECK_H
#define DRIVER_STAGE_CHECK_H

#include "driver/stage.h"

enum { STAGE_CHECKS_MAX = 64 }; /* programs that are remembered */

struct stage_checks {
  struct ir *ir;
  struct trace_kernel *kernel;
  struct arena *arena;
  uint64_t seed;
  int64_t deadline_us; /* of clock_now_us; 0: none */
  /* private */
  struct trace_array *in, *want;
  const char *no_check;    /* why there are none */
  struct stage_check last; /* of the stage before */
  int64_t began_us;
  int64_t longest_cpu_us, longest_us; /* of the longest runs */
  bool is_out_of_time;
  int n_known;
  struct {
    unsigned char digest[CHECK_DIGEST];
    struct check_result result;
  } known[STAGE_CHECKS_MAX];
};

/* Makes inputs and runs NumPy, or, of a program that was read, its first stage; a failure leaves every stage "skipped"
 * with the reason.  The first five fields are the caller's; module as in stage_checks_run. */
void stage_checks_begin(struct stage_checks *c, MlirModule module, const struct stage_def *first);

/* Sets s->check; the first stage that is wrong gets a diagnostic, and the first one that there is no time for.  module:
 * the stage's program, for HLO ignored. */
void stage_checks_run(struct stage_checks *c, MlirModule module, struct stage *s, struct diags *ds);

#endif
