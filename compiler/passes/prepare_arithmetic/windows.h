/* windows: declarations for operations with windows, shared by windows.c and convolution.c. */
#ifndef PASSES_WINDOWS_H
#define PASSES_WINDOWS_H

#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* The index in one dimension of an operand: offset + sum of coef * loop.  With two terms it is a window: the first
 * loop is the position, the second the element.  Loops of one iteration are not included. */
struct window_dim {
  int n, loop[2];
  int64_t coef[2], offset;
};

/* An operand.  A loop is in at most one of its dimensions. */
struct window_side {
  MlirValue v;
  int rank;
  struct window_dim d[STRUCTURED_LOOPS_MAX];
};

/* A linalg.generic with static shapes, one result, and a window in at least one operand. */
struct windowed {
  struct pass_run *run;
  MlirOperation op;
  struct structured s;
  struct window_side sides[STRUCTURED_OPERANDS_MAX]; /* the inputs, then the destination */
};

static inline bool windows_has_loop(const struct window_side *side, int loop) {
  for (int r = 0; r < side->rank; r++)
    for (int k = 0; k < side->d[r].n; k++)
      if (side->d[r].loop[k] == loop)
        return true;
  return false;
}

/* Slices the operand: a dimension with one loop gets that loop's extent, stride 1 and offset 0; a dimension without
 * a loop gets one element. */
void windows_cut(struct ir_builder *b, const struct windowed *w, struct window_side *side);
/* Copies the windows of dimension r out: r becomes the position, and the element becomes a new dimension before
 * dimension `at`.  Requires side->rank < STRUCTURED_LOOPS_MAX. */
void windows_unfold(struct ir_builder *b, const struct windowed *w, struct window_side *side, int r, int at);
/* Warns that the knobs of op have no effect, because its loops are gone, and erases them. */
void windows_drop_knobs(struct pass_run *run, MlirOperation op, const char *why);

/* convolution.c: replaces a convolution by a matrix product; false if it is not one. */
bool windows_convolution(struct windowed *w);

#endif
