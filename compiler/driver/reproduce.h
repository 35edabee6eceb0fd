/* reproduce: a file that shows a failed check again, without the kernel: the program before the pass, the pass, the
 * inputs and NumPy's results.  `nkx reproduce FILE` runs it.
 *
 *   { "reproducer": 1, "kernel": "f", "target": "trn2", "stage": "legalize-layout", "index": 36,
 *     "pass": "legalize-layout", "before": "module { … }" | "before_base64": an HloModuleProto,
 *     "inputs": [ {"name", "dtype", "shape", "data": base64} … ],
 *     "outputs": [ {"name", "dtype", "shape", "data", "spread"?: base64 of f32} … ] }
 */
#ifndef DRIVER_REPRODUCE_H
#define DRIVER_REPRODUCE_H

#include "base/buf.h"
#include "base/target.h"
#include "driver/stage_check.h"

struct reproducer {
  const struct stage_def *stage; /* the one that fails */
  int index;
  enum target target;
  const struct trace_kernel *kernel;
  const struct check_set *set;
  /* The program before the pass, or of the trace itself if that fails; one of them is empty. */
  MlirOperation module;
  const struct buf *proto;
};

/* Appends the file.  The buffer is in error if its limit is reached. */
void reproduce_put(struct buf *b, const struct reproducer *r);

#endif
