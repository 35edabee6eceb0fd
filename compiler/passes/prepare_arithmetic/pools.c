/* pools: what reduces windows of images has rows of all images.
 *
 *     max of x[8,28,2,28,2,256] over 2 and 4    ==>  max of x[224,2,28,2,256] over 1 and 3, then a reshape back
 *
 * One dimension lies across the partitions.  Where it is not the first one, or is short, an instruction has few partitions or a part of a
 * window; the result so far would come from HBM and go back for the next part.  The first dimensions become one, as many of them as
 * fill the partitions, and a partition has all windows of its row.
 *
 * Only a reduction of one input by itself, in the order of its dimensions, whose elements are those of an argument; what else reads
 * the input or the result is not touched.  Exact.  Linear in operations.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"
#include "passes/prepare_arithmetic/row_parts.h"

/* The loops before the first that is reduced which fill the partitions together, at least two; 0: there are none, or one of them does
 * alone. */
static int loops_together(const struct structured *s) {
  int64_t rows = 1, widest = 1;
  int l = 0;

  for (; l < s->n_loops && !s->reduction[l] && rows < NISA_PARTITIONS; l++) {
    rows *= s->extents[l];
    widest = s->extents[l] > widest ? s->extents[l] : widest;
  }
  return l > 1 && widest < NISA_PARTITIONS / 2 && rows >= 2 * widest ? l : 0;
}

/* True if a loop that is not reduced comes after one that is. */
static bool has_windows(const struct structured *s) {
  bool is_after = false;
  for (int l = 0; l < s->n_loops; l++) {
    if (is_after && !s->reduction[l] && s->extents[l] > 1)
      return true;
    is_after |= s->reduction[l];
  }
  return false;
}

static bool is_pool(struct pass_run *run, MlirOperation op, struct structured *s) {
  if (!prepare_may_change(run, op, s) || s->kind != SK_REDUCTION || s->n_inputs != 1 || !has_windows(s) ||
      prepare_has_op(run, op, "linalg.index") || !mlirAffineMapIsIdentity(s->maps[0]) || !prepare_keeps_order(s) ||
      !mlirOperationIsNull(ir_defining_op(row_parts_origin(mlirOperationGetOperand(op, 0)))))
    return false;
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] < 1)
      return false;
  return true;
}

/* Makes the first n loops one. */
static void join(struct pass_run *run, MlirOperation op, const struct structured *s, int n) {
  struct ir_builder b = edit_before(run, op);
  const int loops = s->n_loops - n + 1;
  int64_t in[STRUCTURED_LOOPS_MAX], out[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX], rows = 1;
  bool reduction[STRUCTURED_LOOPS_MAX] = {false};

  for (int l = 0; l < n; l++)
    rows *= s->extents[l];
  in[0] = out[0] = rows;
  to[0] = 0;
  for (int l = 1; l < loops; l++) {
    reduction[l] = s->reduction[l + n - 1];
    in[l] = s->extents[l + n - 1];
    out[l] = reduction[l] ? 1 : in[l];
    to[l] = reduction[l] ? IR_CONST(0) : l;
  }
  mlirOperationSetOperand(op, 0, edit_reshape(&b, mlirOperationGetOperand(op, 0), loops, in));
  prepare_result(run, op, s, 0, loops, out);
  MlirAffineMap maps[] = {ir_identity_map(&b, loops), ir_map(&b, loops, loops, to)};
  edit_set_maps(op, 2, maps);
  edit_set_iterators(op, loops, reduction);
}

static void explain(struct pass_run *run, MlirOperation op, const struct structured *s, int n) {
  int64_t rows = 1, widest = 1, row = 1;

  for (int l = 0; l < n; l++) {
    rows *= s->extents[l];
    widest = s->extents[l] > widest ? s->extents[l] : widest;
  }
  for (int l = n; l < s->n_loops; l++)
    row *= s->extents[l];
  struct remark *r = pass_remark(run, op, RULE_ROWS, "the %d leading dimensions are one of %" PRId64, n, rows);
  remark_limit(r, "partitions", "partitions", rows < NISA_PARTITIONS ? rows : NISA_PARTITIONS, NISA_PARTITIONS);
  price_chosen(r, price_rows_ns(run->target, SIM_COST_VECTOR_REDUCE, rows, row));
  price_instead(r, "one of them across the partitions",
                price_rows_ns(run->target, SIM_COST_VECTOR_REDUCE, widest, rows / widest * row),
                "most lanes would be idle");
}

void prepare_pools(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.generic");
  for (int i = 0; i < all.n; i++) {
    struct structured s;
    const int n = is_pool(run, all.v[i], &s) ? loops_together(&s) : 0;
    if (!n)
      continue;
    explain(run, all.v[i], &s, n);
    pass_step(run, all.v[i], "rows-of-all-images");
    join(run, all.v[i], &s, n);
  }
}
