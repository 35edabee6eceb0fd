/* An earlier version of the compiler, for tests of versions side by side: its pass balance-engines does not exist yet.  The linker
 * puts these in the place of today's (--wrap). */
#include "driver/pipeline.h"
#include "passes/pass.h"

const char *__wrap_pipeline_version(void);
const char *__wrap_release_version(void);
extern const struct pass_def __wrap_balance_engines;

const char *__wrap_pipeline_version(void) {
  return "0123456789ab";
}

const char *__wrap_release_version(void) {
  return "0.1.0";
}

static enum status do_nothing(struct pass_run *run) {
  (void)run;
  return ST_OK;
}

const struct pass_def __wrap_balance_engines = {.name = "balance-engines", .run = do_nothing};
