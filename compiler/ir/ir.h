/* ir: the MLIR context, locations, parsing, and running upstream passes.
 *
 * There is one context per process, with threading off, because a process that forks must not have MLIR's threads.
 * Creating it costs about 100 ms, so it is created once, before any fork.
 */
#ifndef IR_IR_H
#define IR_IR_H

#include <stdbool.h>
#include <string.h>

#include "mlir-c/IR.h"

#include "base/diag.h"
#include "base/src.h"

struct ir;
/* Functions that a module only declares, and whose code is known elsewhere: the NKI kernels that a kernel calls. */
struct ir_native {
  /* Returns a new NISA module with the function's code in *out, which the caller destroys.  is_written[k] is set if the
   * code writes argument k, or returns it; it has room for all of them.  ST_INPUT with a diagnostic if there is no such code. */
  enum status (*make)(const struct ir_native *n, struct ir *ir, MlirStringRef name, bool *is_written, struct diags *ds,
                      MlirModule *out);
  bool (*has)(const struct ir_native *n, MlirStringRef name);
};
struct ir_places;

struct ir {
  MlirContext ctx;
  struct ir_passes *passes; /* cache of parsed pass pipelines */
  struct ir_capture *capture;
  struct ir_places *places;       /* of the job, as long as one runs (places.h); NULL: none */
  const struct ir_native *native; /* of the kernel that is compiled; NULL: there are none */
};

/* Registers all dialects and passes, creates the context, and loads the dialects whose operations our passes create,
 * with nkipy and nisa from dialects.irdl.  Other dialects are loaded when a module names them. */
MUST_USE enum status ir_init(struct ir *ir, struct error *err);
void ir_clear(struct ir *ir);
/* How many contexts ir_init has created.  A cache of attributes or types is valid as long as this number is the
 * same. */
unsigned ir_contexts_made(void);

/* The IRDL text of the nkipy and nisa dialects, which is compiled in; build/dialects.irdl is a copy for mlir-opt. */
extern const char ir_dialects_irdl[];

/* True if the current kernel has code for the function of this name. */
static inline bool ir_has_native(const struct ir *ir, MlirStringRef name) {
  return ir->native && ir->native->has(ir->native, name);
}

/* ---- locations --------------------------------------------------------------------------------------
 * An operation's location is  name("#<id>", places)  or  name("#<id>+<more>", places): <id> is the operation's id in its
 * stage, places is a file range, a callsite chain or a fusion of at most SRC_LOCS_SHOWN of those, and <more> is the
 * number of further places.  Passes keep and fuse them; ir/snapshot.h reads them back. */

/* With the id of the operation that the new operation comes from. */
MlirLocation ir_loc_tagged(MlirContext ctx, int id, struct src_locs locs);

/* The most dimensions of a value: HLO has up to 16; a memref in its physical form has up to 17 (legalize_layout). */
enum { IR_RANK_MAX = 16, IR_MEMREF_RANK_MAX = 17 };

/* ---- small helpers ---------------------------------------------------------------------------------- */

/* Inline, as what follows: passes ask for the names of all operations, and the length of a constant is known when it is
 * compiled. */
static inline MlirStringRef ir_str(const char *s) {
  return mlirStringRefCreate(s, strlen(s));
}
/* True if op's name is exactly `name`. */
static inline bool ir_is(MlirOperation op, const char *name) {
  const MlirStringRef s = mlirIdentifierStr(mlirOperationGetName(op));
  return s.length == strlen(name) && !memcmp(s.data, name, s.length);
}
/* The number of op's name in the n names; -1 if it is none of them. */
int ir_which(MlirOperation op, int n, const char *const *names);
/* True if the name is longer than `prefix` ("linalg.") and begins with it. */
static inline bool ir_begins_with(MlirStringRef name, const char *prefix) {
  return name.length > strlen(prefix) && !memcmp(name.data, prefix, strlen(prefix));
}
/* The same of op's name. */
static inline bool ir_is_of(MlirOperation op, const char *prefix) {
  return ir_begins_with(mlirIdentifierStr(mlirOperationGetName(op)), prefix);
}

/* ---- passes ------------------------------------------------------------------------------------------ */

/* Runs an upstream pipeline ("builtin.module(canonicalize,cse)") on op.  Parsed pipelines are cached.  Does not verify
 * the result: that costs as much as a pass, and a caller that runs several pipelines verifies once, at the end.  MLIR's
 * errors become diagnostics (DG_PASS_FAILED, range from the operation's location). */
MUST_USE enum status ir_run_pipeline(struct ir *ir, MlirOperation op, const char *pipeline, struct arena *a,
                                     struct diags *ds);
/* Parses MLIR text, after a search for input on which MLIR's parser crashes.  Refuses such input with
 * DG_NESTING_TOO_DEEP or DG_IR_INVALID; refuses values that have more dimensions than our passes handle with
 * DG_IR_INVALID. */
enum { IR_NEST_MAX = 512 };
MUST_USE enum status ir_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a,
                              struct diags *ds, MlirModule *out);
/* Between begin and end, MLIR's diagnostics go to ds with `code`.  Captures nest: the innermost one gets them. */
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
