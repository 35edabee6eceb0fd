/* pass: the form of our own MLIR passes.
 *
 * A pass changes one module in place.  It never prints and never exits; it keeps the location on what it creates
 * (an operation made from others takes theirs, fused), so that source maps and provenance survive.  What the user
 * should know is a remark, what stops the pass a diagnostic with the place of the operation.
 */
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "base/diag.h"
#include "base/target.h"
#include "ir/ir.h"

/* Something a pass decided about one operation, as data: "TILE=[128,128,128]". */
struct remark {
  const char *pass;
  const char *text;
  const char *name;     /* of the operation it is about: "linalg.matmul" */
  struct src_locs locs; /* its first place */
  int op;               /* its id in the stage before, or that of the operation it was made from; -1: none */
  struct remark *next;
};

struct remarks {
  struct remark *first, *last;
  int n;
};
enum { REMARKS_MAX = 2000 };

struct pass_run {
  struct ir *ir;
  MlirOperation module;
  enum target target;
  const char *options; /* as typed behind '=', "" if none */
  struct arena *arena; /* lives longer than the pass: remarks and diagnostics point into it */
  struct diags *ds;
  struct remarks *remarks; /* may be NULL */
  const struct pass_def *def;
};

struct pass_def {
  const char *name;    /* as users type it: "infer-layout" */
  const char *summary; /* one or two sentences for the page */
  /* ST_OK, or ST_INPUT with a diagnostic. */
  enum status (*run)(struct pass_run *run);
};

const struct pass_def *pass_find(const char *name); /* NULL when it is none of ours */

void pass_remark(struct pass_run *run, MlirOperation op, const char *fmt, ...) PRINTF(3, 4);
/* Adds an error about op, with its first place, and returns ST_INPUT. */
enum status pass_fail(struct pass_run *run, MlirOperation op, const char *fmt, ...) PRINTF(3, 4);

/* The machine that option "target" names; without it, run->target. */
MUST_USE enum status pass_target(struct pass_run *run, enum target *out);
/* The value of option `key` in run->options ("sbuf-capacity=1024 target=trn2"), or NULL; in the arena. */
const char *pass_option(struct pass_run *run, const char *key);

#endif
