/* nisa_verify: the hardware verifier as a pass that changes nothing.
 *
 *     nkx opt --linalg-to-nisa=target=trn1 --nisa-verify in.mlir
 *
 * The machine is the option's, or else the module's nisa.target.
 */
#include <string.h>

#include "nisa/nisa.h"
#include "passes/pass.h"

static enum status run_pass(struct pass_run *run) {
  const char *name = pass_option(run, "target");
  enum target t = run->target;

  if (!name) {
    nisa_module_target(run->module, &t);
    return nisa_verify(run->module, t, run->arena, run->ds);
  }
  for (int k = TARGET_TRN1; k <= TARGET_TRN3; k++)
    if (!strcmp(name, target_name((enum target)k)))
      return nisa_verify(run->module, (enum target)k, run->arena, run->ds);
  return pass_fail(run, run->module, "target=%s: there is no such target", name);
}

const struct pass_def nisa_verify_pass = {
    .name = "nisa-verify",
    .summary = "Checks instructions against what the hardware demands; changes nothing.",
    .run = run_pass,
};
