/* ir: what every MLIR part shares: the context, locations, and running upstream passes.
 *
 * One context per process, threading off (a process that forks must not have MLIR's threads).  Creating it costs
 * about 100 ms, so it is made once, before any fork.
 */
#ifndef IR_IR_H
#define IR_IR_H

#include <stdbool.h>

#include "mlir-c/IR.h"

#include "base/diag.h"
#include "base/src.h"

struct ir {
  MlirContext ctx;
  struct ir_passes *passes; /* parsed pass pipelines, kept */
  struct ir_capture *capture;
};

/* Registers all dialects and passes, creates the context, loads the dialects that passes make operations of, nkipy and
 * nisa from dialects.irdl; others are loaded when a module names them. */
MUST_USE enum status ir_init(struct ir *ir, struct error *err);
void ir_clear(struct ir *ir);
/* How often ir_init made a context: for those who keep what belongs to one. */
unsigned ir_contexts_made(void);

/* The IRDL text of the nkipy and nisa dialects, compiled in (also written to build/dialects.irdl for mlir-opt). */
extern const char ir_dialects_irdl[];

/* ---- locations --------------------------------------------------------------------------------------
 * An operation's location is  name("#<id>", places): <id> is its id in the stage it belongs to and places a file
 * range, a callsite chain or a fusion of those.  Passes carry and fuse these; ir/snapshot.h reads them back. */

/* Places only, no id.  {0} gives an unknown location. */
MlirLocation ir_loc_places(MlirContext ctx, struct src_locs locs);
/* With id: for code that lowers one of our operations (id) to MLIR. */
MlirLocation ir_loc_tagged(MlirContext ctx, int id, struct src_locs locs);

/* ---- small helpers ---------------------------------------------------------------------------------- */

static inline MlirStringRef ir_str(const char *s) {
  return mlirStringRefCreateFromCString(s);
}
/* True if op's name is exactly `name`. */
bool ir_is(MlirOperation op, const char *name);
/* True if the name begins with `prefix` ("linalg.") and goes on. */
bool ir_begins_with(MlirStringRef name, const char *prefix);
bool ir_is_of(MlirOperation op, const char *prefix); /* op's name */

/* ---- passes ------------------------------------------------------------------------------------------ */

/* Runs an upstream pipeline ("builtin.module(canonicalize,cse)") on op; parsed pipelines are kept for the next time.
 * Does not verify what it leaves: that costs as much as a pass, and whoever runs several verifies once, at the end.
 * What MLIR reports becomes diagnostics (DG_PASS_FAILED, range from the operation's location). */
MUST_USE enum status ir_run_pipeline(struct ir *ir, MlirOperation op, const char *pipeline, struct arena *a,
                                     struct diags *ds);
/* Parses MLIR text after looking for what MLIR does not survive; refuses with DG_NESTING_TOO_DEEP or DG_IR_INVALID. */
enum { IR_NEST_MAX = 512 };
MUST_USE enum status ir_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a,
                              struct diags *ds, MlirModule *out);
/* While open, MLIR's diagnostics go to ds with `code` and the stage's name; nests. */
struct ir_capture {
  struct diags *ds;
  enum diag_code code;
  struct arena *arena;
  int errors;
  struct ir_capture *outer;
};
void ir_capture_begin(struct ir *ir, struct ir_capture *c, struct diags *ds, enum diag_code code, struct arena *a);
void ir_capture_end(struct ir *ir, struct ir_capture *c);

#endif
