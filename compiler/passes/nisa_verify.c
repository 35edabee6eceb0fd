/* nisa_verify: runs the hardware verifier; changes nothing.
 *
 *     nkx opt --linalg-to-nisa=target=trn1 --nisa-verify in.mlir
 *
 * The target is the option `target` if given, otherwise the module's nisa.target.
 */
#include "nisa/nisa.h"
#include "passes/pass.h"

static enum status run_pass(struct pass_run *run) {
  enum target t;
  const enum status st = pass_nisa_target(run, &t);
  return st ? st : nisa_verify(run->module, t, run->arena, run->ds);
}

const struct pass_def nisa_verify_pass = {
    .name = "nisa-verify",
    .run = run_pass,
};
