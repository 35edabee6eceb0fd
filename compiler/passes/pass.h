/* pass: the form of our own MLIR passes.
 *
 * A pass changes one module in place.  It never prints and never exits.  What it creates keeps the location of the
 * operation it comes from; an operation made from several has their locations fused.  So source maps and provenance
 * survive.  A remark tells the user about a decision; a diagnostic with the operation's place stops the pass.
 */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "base/diag.h"
#include "base/step.h"
#include "base/target.h"
#include "ir/ir.h"
#include "passes/remark.h"

struct pass_run {
  struct ir *ir;
  MlirOperation module;
  enum target target;
  const char *options; /* the text after '=', "" if none */
  struct arena *arena; /* outlives the pass: remarks and diagnostics point into it */
  struct diags *ds;
  struct remarks *remarks;     /* may be NULL */
  struct step_listener *steps; /* likewise */
  const struct pass_def *def;
};

struct pass_def {
  const char *name; /* as users type it: "infer-layout" */
  /* ST_OK, or ST_INPUT with a diagnostic. */
  enum status (*run)(struct pass_run *run);
};

const struct pass_def *pass_find(const char *name); /* NULL when none of our passes has this name */

/* Adds a remark: by this rule, the pass decided what the text says about op.  Returns it, so that the caller can add the
 * limits, the choices that were rejected and the knob (remark.h); NULL if nobody wants remarks. */
struct remark *pass_remark(struct pass_run *run, MlirOperation op, enum rule rule, const char *fmt, ...) PRINTF(4, 5);
/* Drops the run's remarks of the rule about op, or about what it was made from, whose text begins so: something else became of op. */
void pass_drop_remarks(struct pass_run *run, MlirOperation op, enum rule rule, const char *beginning);
/* The rule of this name is tried on op next (base/step.h).  The program must be valid by then, or else this rewrite and the
 * one before become one step. */
static inline void pass_step(struct pass_run *run, MlirOperation op, const char *rule) {
  step_next(run->steps, op.ptr, rule);
}
/* Adds an error about op, at its first place, and returns ST_INPUT. */
enum status pass_fail(struct pass_run *run, MlirOperation op, const char *fmt, ...) PRINTF(3, 4);

/* The target in the option "target"; run->target without that option. */
MUST_USE enum status pass_target(struct pass_run *run, enum target *out);
/* The same of a program of instructions: run->target only if the module names none, either. */
MUST_USE enum status pass_nisa_target(struct pass_run *run, enum target *out);
/* The value of option `key` in run->options ("sbuf-capacity=1024 target=trn2"), or NULL; in the arena. */
const char *pass_option(struct pass_run *run, const char *key);

#endif
