/* ends: what reduces the first dimension and the last ones is reduced along the last ones first.
 *
 *     s = sum of x[16,3,224,224] over 0, 2 and 3    ==>  t = sum of x over 2 and 3: t[16,3]
 *                                                        s = sum of t over 0
 *
 * The dimension in the middle would lie across the partitions, and fill few of them.  The first step has rows of all images, 48 here, which
 * other steps lay across all partitions (row_parts.c); the second one has a number for each of them.
 *
 * Only where the dimension in the middle fills less than half of the partitions, and only if the result of the first step is not
 * rounded: f32, integers, or the largest or smallest.  Sums are added in another order.  Linear in operations.
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { KEPT_MOST = NISA_PARTITIONS / 2 - 1, ROW_LEAST = NISA_PARTITIONS };

/* The loops of such a reduction: the first one that is reduced, the one that is kept, and the product of the last ones. */
struct ends {
  int first, kept;
  int64_t row;
};

static bool is_exact(MlirOperation op, const char *combiner) {
  MlirType t = ir_value_element(ir_result(op));
  return !mlirTypeIsAFloat(t) || mlirTypeIsAF32(t) || strstr(combiner, "max") || strstr(combiner, "min");
}

static bool read_ends(struct pass_run *run, MlirOperation op, struct structured *s, struct ends *e) {
  *e = (struct ends){-1, -1, 1};
  if (!prepare_may_change(run, op, s) || s->kind != SK_REDUCTION || s->n_inputs != 1 ||
      prepare_has_op(run, op, "linalg.index"))
    return false;
  for (int l = 0; l < s->n_loops; l++) {
    if (s->extents[l] < 1)
      return false;
    if (s->extents[l] == 1)
      continue;
    if (e->first < 0 && s->reduction[l])
      e->first = l;
    else if (e->first >= 0 && e->kept < 0 && !s->reduction[l])
      e->kept = l;
    else if (e->kept >= 0 && s->reduction[l])
      e->row *= s->extents[l];
    else
      return false;
  }
  const char *combiner = prepare_combiner(op, s);
  return e->kept >= 0 && e->row >= ROW_LEAST && s->extents[e->kept] <= KEPT_MOST && combiner && is_exact(op, combiner);
}

static void split(struct pass_run *run, MlirOperation op, struct structured *s, const struct ends *e) {
  const int64_t n = s->extents[e->first], kept = s->extents[e->kept];
  const enum target t = run->target;

  prepare_reduce_partitions(run, op, n, kept);
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[] = {s->maps[0], ir_map(&b, s->n_loops, 2, (int64_t[]){e->first, e->kept})};
  s->reduction[e->first] = false;
  edit_set_maps(op, 2, maps);
  edit_set_iterators(op, s->n_loops, s->reduction);
  struct remark *r = pass_remark(run, op, RULE_REDUCE_IN_TWO_STEPS,
                                 "reduced in two steps: %" PRId64 " rows of %" PRId64 " elements, then %" PRId64
                                 " numbers for each result",
                                 n * kept, e->row, n);
  remark_limit(r, "partitions", "partitions", kept, NISA_PARTITIONS);
  price_chosen(r, price_rows_ns(t, SIM_COST_VECTOR_REDUCE, n * kept, e->row) +
                      price_rows_ns(t, SIM_COST_VECTOR_REDUCE, kept, n));
  price_instead(r, "one step", price_rows_ns(t, SIM_COST_VECTOR_REDUCE, kept, n * e->row), "most lanes would be idle");
}

void prepare_ends(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.generic");
  for (int i = 0; i < all.n; i++) {
    struct structured s;
    struct ends e;
    if (!read_ends(run, all.v[i], &s, &e))
      continue;
    pass_step(run, all.v[i], "reduce-rows-first");
    split(run, all.v[i], &s, &e);
  }
}
