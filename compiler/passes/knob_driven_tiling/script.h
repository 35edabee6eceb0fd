/* script: writes a transform script, one operation after the other.
 *
 * The script is text, which is easier to read than code that builds operations of the transform dialect.  It is parsed
 * once, at the end.  A handle is represented by the number of its SSA value.  Every operation of the script gets the
 * location of the payload operation that it transforms, so that it refers to the source, too.
 */
#ifndef PASSES_SCRIPT_H
#define PASSES_SCRIPT_H

#include <stdint.h>

#include "base/buf.h"
#include "passes/pass.h"

struct script {
  struct pass_run *run;
  struct buf text;
  MlirLocation at; /* location of the operations that are written next */
  struct {
    MlirLocation *v;
    int n, cap;
  } locs;              /* one location per operation, in order */
  int next;            /* the next free handle */
  MlirOperation shown; /* the sequence that is in the module; null: none */
};

void script_init(struct script *s, struct pass_run *run);
void script_clear(struct script *s);

/* Matches the payload operation with this name and nkipy.op_id. */
int script_match(struct script *s, const char *name, int64_t op_id);
/* Splits the loop `dim` at `at` into two operations.  The second one works on the result of the first one. */
void script_split(struct script *s, int h, int64_t at, int dim, int *head, int *rest);
/* Puts loops with these tile sizes (0: no loop for that dimension) around h.  Returns the handle of the operation
 * inside. */
int script_tile(struct script *s, int h, int n, const int64_t *tile);
/* Gives operand `operand` of h a buffer in a memory space, and copies the part that h reads into it. */
void script_promote(struct script *s, int h, int operand, int mem_space);
int script_transpose_lhs(struct script *s, int h); /* computes C = A B from the transposed A */
int script_producer(struct script *s, int h, int operand);
/* Sets an integer attribute of h. */
void script_annotate(struct script *s, int h, const char *name, int64_t value);

/* Puts the script as it is into the module, if somebody goes through the pass's rewrites. */
MUST_USE enum status script_show(struct script *s);
/* Ends the script and puts it at the end of the module, as @__transform_main. */
MUST_USE enum status script_finish(struct script *s);

#endif
