/* check_internal: what the files of the numeric check share.
 *
 *   check.c          the function's signature, arguments and results, the engine
 *   check_prepare.c  from a stage's module to one that MLIR can translate to LLVM IR
 *   check_matmul.c   matrix products, by calls instead of loops
 *   check_product.c  the function that they call
 *   check_runtime.c  what compiled code calls: allocation, copies, narrow floats
 *   check_collective.c  what collectives mean to one processor
 *   check_compare.c  tolerances
 */
#ifndef DRIVER_CHECK_INTERNAL_H
#define DRIVER_CHECK_INTERNAL_H

#include "mlir-c/ExecutionEngine.h"

#include "driver/check.h"

/* Makes the module, a clone that only the check sees, ready for the execution engine; `function` gets the C interface.
 * Everything about our own dialects and memory spaces is dropped. */
MUST_USE enum status check_lower(struct ir *ir, MlirOperation module, MlirOperation function, struct arena *a,
                                 struct diags *ds);

/* "the check cannot run this stage: <what>"; returns ST_BUG. */
enum status check_refuse(struct diags *ds, const char *what);

/* Functions of memrefs that have no body, but this attribute, which says which collective they are, get one and lose
 * it.  check_collective_of: the attribute, null if the function has none. */
#define CHECK_COLLECTIVE "nkipy.collective"
MlirAttribute check_collective_of(MlirOperation function);
MUST_USE enum status check_give_bodies(struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds);

/* All memory that compiled code allocates between begin and end; end frees what it did not free itself. */
struct check_heap {
  struct check_block *blocks;
};
void check_heap_begin(struct check_heap *h);
void check_heap_end(struct check_heap *h);

/* Copies an array of any rank between two layouts of elements of `size` bytes; strides in elements. */
void check_copy(size_t size, int64_t rank, const int64_t *dims, char *to, const int64_t *to_strides, const char *from,
                const int64_t *from_strides);

/* Makes the functions of check_runtime.c known to the engine. */
void check_register_runtime(MlirExecutionEngine engine);

/* Names of the conversions between fp8 and f32 that compiled code calls: i8 -> f32 and f32 -> i8; NULL for a type
 * that needs none. */
const char *check_widen_name(MlirType t);
const char *check_narrow_name(MlirType t);
#define CHECK_POWER "nkx_ipow" /* math.ipowi on i64 */

/* Element (i, j) is at data + (i * row_stride + j * col_stride) * the size of its type. */
struct check_matrix {
  char *data;
  int64_t rows, cols, row_stride, col_stride;
};
/* c += a b; the elements of a and b have type t (f32, f16 or bf16), those of c are f32. */
void check_multiply(const struct check_matrix *a, const struct check_matrix *b, const struct check_matrix *c,
                    enum dtype t);

/* Replaces matrix products of buffers by calls, and makes the called functions known to the engine. */
void check_call_products(MlirOperation module, struct arena *a);
void check_register_products(MlirExecutionEngine engine);
void check_register(MlirExecutionEngine engine, const char *name, void (*fn)(void));

/* Small builders that put operations in front of another one (check_prepare.c). */
MlirOperation check_insert(MlirOperation before, const char *name, int n, MlirValue const *x, int n_results,
                           MlirType const *results, const char *callee);
MlirValue check_insert_constant(MlirOperation before, MlirAttribute value);
MlirValue check_convert(MlirOperation before, const char *name, MlirValue x, MlirType to); /* x itself if it is to */
/* Declares a private function if the module has none of that name yet. */
void check_declare(MlirOperation module, const char *name, int n, MlirType const *from, int n_results,
                   MlirType const *to);

#endif
