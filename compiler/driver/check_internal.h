/* check_internal: declarations that the files of the numeric check share.
 *
 *   check.c             the function's signature, arguments and results; the interpreter and the engine
 *   check_prepare.c     prepares a stage's module
 *   check_matmul.c      matrix products as calls instead of loops
 *   check_nisa.c        a stage of NISA, in the simulator
 *   check_runtime.c     the other functions that compiled code calls: allocation, copies, narrow floats
 *   check_collective.c  collectives on one processor
 *   check_compare.c     tolerances
 *   check_build.c       helpers of the others
 */
#ifndef DRIVER_CHECK_INTERNAL_H
#define DRIVER_CHECK_INTERNAL_H

#include "mlir-c/ExecutionEngine.h"

#include "driver/check.h"

/* These change the module, a clone that only the check uses (check_prepare.c). */
/* Removes attributes, operations and memory spaces of our own dialects.  True if the module has tensors. */
bool check_clean(MlirOperation module, MlirOperation function, struct arena *a);
/* Replaces tensors by buffers. */
MUST_USE enum status check_bufferize(struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds);
/* Lowers a module of buffers for the execution engine; `function` gets the C interface. */
MUST_USE enum status check_lower(struct ir *ir, MlirOperation module, MlirOperation function, struct arena *a,
                                 struct diags *ds);

/* Adds the error "the check cannot run this stage: <what>"; returns ST_BUG. */
enum status check_refuse(struct diags *ds, const char *what);

/* A function of memrefs with this attribute has no body; the attribute describes the collective.  check_give_bodies
 * gives such functions a body and removes the attribute.  check_collective_of returns the attribute, null if the
 * function has none. */
#define CHECK_COLLECTIVE "nkipy.collective"
MlirAttribute check_collective_of(MlirOperation function);
MUST_USE enum status check_give_bodies(struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds);

/* The list of all memory that compiled code allocates on this thread between begin and end; end frees the rest of
 * it. */
struct check_heap {
  struct check_block *blocks;
};
void check_heap_begin(struct check_heap *h);
void check_heap_end(struct check_heap *h);

/* Register the functions of check_runtime.c and check_matmul.c with the engine. */
void check_register_runtime(MlirExecutionEngine engine);
void check_register_products(MlirExecutionEngine engine);

/* Return the names of the functions that convert fp8, as i8, to f32 and back; NULL for a type that needs none. */
const char *check_widen_name(MlirType t);
const char *check_narrow_name(MlirType t);
#define CHECK_POWER "nkx_ipow" /* math.ipowi on i64 */

/* Replaces matrix products of buffers by calls. */
void check_call_products(MlirOperation module, struct arena *a);

/* check_build.c */
void check_register(MlirExecutionEngine engine, const char *name, void (*fn)(void));
/* These insert an operation before another one. */
MlirOperation check_insert(MlirOperation before, const char *name, int n, MlirValue const *x, int n_results,
                           MlirType const *results, const char *callee);
MlirValue check_insert_constant(MlirOperation before, MlirAttribute value);
MlirValue check_convert(MlirOperation before, const char *name, MlirValue x, MlirType to); /* x if it has that type */
/* Declares a private function, unless the module has one of this name. */
void check_declare(MlirOperation module, const char *name, int n, MlirType const *from, int n_results,
                   MlirType const *to);

#endif
