/* arguments: arguments of functions that are read in many places, before the analysis.
 *
 *     %t = tensor.extract_slice %x[%i, 0] …         %m = bufferization.to_buffer %x read_only
 *     … reads of %t                           ==>   …
 *                                                   %y = bufferization.to_tensor %m restrict
 *                                                   %t = tensor.extract_slice %y[%i, 0] …
 *                                                   … reads of %t
 *
 * All slices of an argument share its buffer, and upstream's analysis looks, for each of them, through all the others: its time
 * grows with the square of their number.  Here the answer is known: where an argument is only read, each of its slices is a view of its
 * buffer.  A tensor that is read from the buffer has one slice.  The result is the same.
 *
 * An argument that any operation might write stays as it is, and so does one with few slices.
 */
#include "ir/structured.h"
#include "passes/lib/edit.h"
#include "passes/one_shot_bufferize/arguments.h"

enum { MANY = 12 };

static bool is_only_read(MlirValue v);

/* True if the operation only reads this operand, and so do all operations that read slices that it takes of it. */
static bool only_reads(MlirOpOperand use) {
  MlirOperation op = mlirOpOperandGetOwner(use);
  const unsigned k = mlirOpOperandGetOperandNumber(use);
  struct structured s;

  if (ir_is(op, "tensor.extract_slice"))
    return k == 0 && is_only_read(mlirOperationGetResult(op, 0));
  if (ir_is(op, "bufferization.materialize_in_destination") || ir_is(op, "tensor.insert_slice"))
    return k == 0;
  return structured_read(op, &s) ? (int)k < s.n_inputs : ir_is(op, "tensor.extract");
}

static bool is_only_read(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!only_reads(u))
      return false;
  return true;
}

/* The number of slices of v that are only read; -1 if v has other uses. */
static int count_slices(MlirValue v) {
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u), n++) {
    if (!ir_is(mlirOpOperandGetOwner(u), "tensor.extract_slice") || !only_reads(u))
      return -1;
  }
  return n;
}

/* Lets each of the n slices read a tensor of its own. */
static void read_apart(struct pass_run *run, MlirValue v, int n) {
  MlirOperation *slices = arena_new_array(run->arena, MlirOperation, (size_t)n);
  int k = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    slices[k++] = mlirOpOperandGetOwner(u);
  MlirValue buffer = bufferize_read_only(run, v, mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(v)));
  for (k = 0; k < n; k++) {
    struct ir_builder b = edit_before(run, slices[k]);
    MlirNamedAttribute apart = ir_named(&b, "restrict", mlirUnitAttrGet(b.ctx));
    MlirValue own = ir_op1_with(&b, "bufferization.to_tensor", mlirValueGetType(v), 1, &buffer, 1, &apart);
    mlirOperationSetOperand(slices[k], 0, own);
  }
}

void bufferize_read_arguments(struct pass_run *run, MlirOperation function) {
  MlirBlock body = ir_body(function);
  const intptr_t n = mlirBlockIsNull(body) ? 0 : mlirBlockGetNumArguments(body);

  for (intptr_t k = 0; k < n; k++) {
    MlirValue v = mlirBlockGetArgument(body, k);
    const int slices = count_slices(v);
    if (slices >= MANY && mlirShapedTypeGetRank(mlirValueGetType(v)) <= STRUCTURED_LOOPS_MAX)
      read_apart(run, v, slices);
  }
}
