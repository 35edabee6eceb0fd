/* interp: executes a module of tensors or buffers without making machine code.
 *
 * The module has functions of tensors or memrefs, scf loops and branches, arith, math, tensor, memref and structured
 * operations of linalg.  Tensors need no bufferization: they share memory until one of them changes.
 * It is read once into a compact program, which any number of threads may run.  The body of a structured operation is
 * computed for a row of elements at a time, so that the time per element is that of the arithmetic.  Floats narrower
 * than f32 are computed in f32 and rounded after each operation.
 */
#ifndef INTERP_INTERP_H
#define INTERP_INTERP_H

#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "hlo/hlo.h"
#include "ir/ir.h"

struct interp_program;

/* Reads function `name` of the module, which may be destroyed afterwards unless it has constants: their data belongs to
 * the context.  NULL if the module has an operation or a type that is not known here; *what is its name then.  The
 * program lives in a. */
const struct interp_program *interp_read(MlirOperation module, const char *name, struct arena *a, const char **what);

/* An argument or a result: element (i, j, …) is at data + (i * strides[0] + j * strides[1] + …) * element size. */
struct interp_buffer {
  char *data;
  int64_t dims[HLO_RANK_MAX], strides[HLO_RANK_MAX]; /* dims: of arguments */
  bool is_fixed; /* an argument whose elements stay as they are as long as the products of the options are used */
};

/* Results of matrix products, which several runs of one kernel's programs may use one after the other.  They take at most
 * bytes_max bytes. */
struct interp_products *interp_products_new(size_t bytes_max);
void interp_products_free(struct interp_products *p); /* NULL is fine */

/* The attribute of functions without a body that find the largest elements of rows (linalg/topk.c). */
#define INTERP_TOPK "nkipy.topk"

/* A value that a run keeps: the argument of a call of the function INTERP_WATCH, which has no body.  The caller zeroes all
 * members but nth, and calls interp_watch_clear after the run. */
#define INTERP_WATCH "nkx_watch"
struct interp_watch {
  int64_t nth;          /* the value at this execution of the call, from 1; 0: at the last */
  int64_t n_executions; /* of the call */
  bool is_kept;         /* the members below are set */
  enum dtype dtype;     /* integers count as signed */
  int rank;             /* 0 of a scalar */
  int64_t dims[IR_MEMREF_RANK_MAX];
  char *data; /* the elements in row-major order, without gaps; on the heap */
};
void interp_watch_clear(struct interp_watch *w);

/* Computes a function that the module only declares.  args and results are row-major and without gaps. */
struct interp_native {
  enum status (*run)(void *user, const char *name, int n_args, const void *const *args, int n_results,
                     void *const *results, struct error *err);
  void *user;
};

struct interp_options {
  struct interp_products *products;   /* of earlier runs; or NULL */
  struct interp_watch *watch;         /* what keeps a value; or NULL */
  const struct interp_native *native; /* what runs functions that begin with HLO_NATIVE_PREFIX; or NULL */
  struct time_limit limit;            /* looked at between operations */
};

/* Runs the program on args, which it may write.  The results may be parts of arguments; `take` receives each of them before
 * the program's memory is freed.  Memory that nothing has written holds NaNs; a matrix product takes it as zero, as PSUM
 * does.  ST_INPUT: it accesses an element outside of a buffer; ST_TIMEOUT: the deadline has passed; ST_LIMIT: it needs
 * more memory than 16 GiB, or than there is.  err says at which operation. */
typedef void interp_taker(void *user, int i, const struct interp_buffer *result);
MUST_USE enum status interp_run(const struct interp_program *p, const struct interp_options *options,
                                const struct interp_buffer *args, interp_taker *take, void *user, struct error *err);

/* True if the program may write into argument number `arg`. */
bool interp_may_write(const struct interp_program *p, int arg);

/* Copies an array of any rank between two layouts of elements of `size` bytes; strides in elements. */
void interp_copy(size_t size, int64_t rank, const int64_t *dims, char *to, const int64_t *to_strides, const char *from,
                 const int64_t *from_strides);

/* x to the power n, as math.ipowi.  It wraps; a negative exponent gives the integer part, and 0 where MLIR's result is
 * undefined. */
int64_t interp_power(int64_t x, int64_t n);

#endif
