/* value: finds out what one value of one stage is, on the inputs that a check uses.
 *
 *   HLO             an instruction of the entry computation is the result of a program that ends there; one of a loop's
 *                   body is the value that linalg has in its place
 *   linalg, memref  the interpreter (interp/interp.h) keeps it while it runs the stage
 *   NISA            the simulator does (sim/options.h)
 *
 * A tensor or a scalar is taken when its operation has been executed.  Of an operation that writes memory, the value is that
 * memory, afterwards.  A buffer that is asked for by name, or on the line that allocates it, is taken at the end of its life:
 * before it is released, or at the end of the block.
 */
#ifndef DRIVER_VALUE_H
#define DRIVER_VALUE_H

#include "driver/stage.h"
#include "driver/job.h"
#include "hlo/hlo.h"

struct value_request {
  struct ir *ir;
  const struct job *job; /* its member `value` is set */
  const struct trace_kernel *kernel;
  MlirModule module;         /* of stages after HLO */
  const struct stage *stage; /* the value's */
  bool is_nisa;              /* the source is NISA */
  const struct trace_array *in;
  struct arena *arena;
};

struct value {
  const char *reason;  /* why there is none; then only line and op may be set */
  int line;            /* of the operation after which it was taken; 0: not known */
  const char *op;      /* "linalg.exp"; NULL: not known */
  int op_id;           /* of the operation that computes it, in the stage; -1: it is none, such as an argument */
  const char *operand; /* of an instruction of NISA, or NULL */
  int64_t nth, executions;
  int64_t unwritten; /* elements that nothing has written: they are 0 here */
  bool is_on_chip;   /* it is in SBUF or PSUM: the first dimension is partitions */
  struct trace_array array;
};

/* All of out lives in the request's arena. */
void value_evaluate(const struct value_request *rq, struct value *out);

/* Finds the value of an instruction of m's entry computation, and changes m so that it is the result.  Returns NULL, or
 * why it cannot be found. */
const char *value_of_hlo(struct ir *ir, struct hlo_module *m, struct hlo_instr *i, const struct trace_array *in,
                         struct arena *a, struct trace_array *out);

#endif
