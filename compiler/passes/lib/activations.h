/* activations: finds the functions that the Scalar engine has a table for in expressions of arith and math.
 *
 * An expression is read backwards from a value, through the bodies of elementwise linalg operations on tensors as if they
 * were one body, or within one body only.  A value of which the expression is a function becomes x, and the formula of the
 * whole (formula.h) is compared with the functions of the table:
 *
 *     sigmoid   silu   gelu (erf)   gelu_apprx_tanh   gelu_apprx_sigmoid   softplus   mish   rsqrt
 *
 * x itself may be scaled and shifted: sigmoid(2 x + 1).  All spellings of a function are found, also the stable ones with
 * np.where, log1p and logaddexp.
 */
#ifndef PASSES_ACTIVATIONS_H
#define PASSES_ACTIVATIONS_H

#include "base/table.h"
#include "ir/build.h"
#include "ir/structured.h"

struct activation {
  const char *name; /* as NISA writes it (nisa.h) */
  MlirValue x;      /* a tensor, or a value of the body */
  double scale, bias;
  int n_ops; /* operations of arith and math that it replaces */
};

struct activation_search {
  struct arena *arena; /* for what the search needs; the caller may clear it afterwards */
  /* Where the search goes on from one operation on tensors to the next; NULL: it stays in one body.  Searches may share it
   * as long as no operation is made or replaced; then the caller empties it. */
  struct table *through_tensors;
};

/* Looks for a function whose value is v, the result of an operation in a body.  False if there is none. */
bool activation_find(const struct activation_search *s, MlirValue v, struct activation *out);
/* True if op, in a body, can be the last operation of such a function.  A cheap test before activation_find. */
bool activation_may_end(MlirOperation op);
/* Writes the function of x in arith and math: the spelling that this file reads best.  It is computed in f32, and x and the
 * result, floats of up to 32 bits, are converted.  Constants are built by `outside`. */
MlirValue activation_build(struct ir_builder *b, struct ir_builder *outside, const struct activation *a, MlirValue x,
                           MlirType result);

/* The operation, on tensors, is elementwise with one result, and each of its tensors has the shape of the result and is read
 * in its order. */
bool activation_is_plain(MlirOperation op);
/* A float that engines have: f32, bf16 or f16. */
bool activation_has_type(MlirType t);

#endif
