/* turns: a transpose that leaves its first dimensions where they are turns each row by itself.
 *
 *     %t = linalg.transpose ins(%x : 4x64x2x2x32x32) permutation = [0, 1, 4, 2, 5, 3]
 *       ==>
 *     %r = collapse_shape %x : 256x2x2x32x32
 *     %g = linalg.generic {(n,h,a,w,b) -> (n,a,b,h,w), (n,h,a,w,b) -> (n,h,a,w,b)} ins(%r) { yield }
 *     %t = expand_shape %g
 *
 * The dimensions that stay lie across the partitions, and one instruction copies the rows of 128 of them in another order: it reads its
 * operand by an access pattern of at most four free dimensions.  As a transpose each pair of the last dimensions, before and
 * after, is turned by itself, on the Tensor engine or by DMA.  The cheaper one is taken.
 *
 * In what stays a transpose, neighbours that stay neighbours become one dimension: more of it is a matrix.
 *
 * A transpose that a product of matrices reads stays as it is: the product reads its operand in either order.
 */
#include <assert.h>
#include <inttypes.h>

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum {
  FREE_DIMS = 4, /* of an access pattern */
  BLOCK = 350,   /* cycles from one turned block of 128 by 128 to the next: it is moved twice, and leaves PSUM once */
};

/* A transpose whose first dimensions stay; neighbours that stay neighbours are one dimension. */
struct turn {
  int n;                   /* of dimensions after the first ones */
  int64_t rows, row;       /* the product of the first dimensions, and of the others */
  int64_t dims[FREE_DIMS]; /* in the operand */
  int to[FREE_DIMS];       /* their places in the result, from 0 */
};

static bool read_turn(const struct structured *s, struct turn *t) {
  int first = 0, starts[FREE_DIMS];

  *t = (struct turn){.rows = 1, .row = 1};
  for (int l = 0; l < s->n_loops; l++)
    if (s->extents[l] < 1)
      return false;
  while (first < s->n_loops && structured_map_loop(s->maps[0], first) == first)
    t->rows *= s->extents[first++];
  if (!first || structured_map_loop(s->maps[0], s->n_loops - 1) == s->n_loops - 1)
    return false;
  for (int d = first; d < s->n_loops; d++) {
    const int loop = structured_map_loop(s->maps[0], d);
    const bool is_next = d > first && loop == structured_map_loop(s->maps[0], d - 1) + 1;
    if (loop < 0 || (!is_next && t->n == FREE_DIMS))
      return false;
    if (!is_next) {
      t->dims[t->n] = 1;
      starts[t->n++] = loop;
    }
    t->dims[t->n - 1] *= s->extents[loop];
    t->row *= s->extents[loop];
  }
  for (int d = 0; d < t->n; d++)
    for (int other = 0; other < t->n; other++)
      t->to[d] += starts[other] < starts[d];
  return true;
}

static int64_t parts(int64_t n, int64_t of) {
  return (n + of - 1) / of;
}

/* The last dimension before and the last one after make a block. */
static int64_t cycles_in_blocks(const struct turn *t) {
  int after = 0;
  while (t->to[after] != t->n - 1)
    after++;
  const int64_t a = t->dims[t->n - 1], b = t->dims[after];
  return t->rows * (t->row / (a * b)) * parts(a, NISA_PARTITIONS) * parts(b, NISA_PARTITIONS) * BLOCK;
}

/* True if a product reads v, or a reshape of it. */
static bool feeds_product(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    struct structured s;
    if (structured_read(user, &s) && (s.kind == SK_MATMUL || s.kind == SK_BATCH_MATMUL || s.kind == SK_OTHER ||
                                      (s.kind == SK_REDUCTION && s.n_inputs > 1)))
      return true;
    if ((ir_is(user, "tensor.expand_shape") || ir_is(user, "tensor.collapse_shape")) && feeds_product(ir_result(user)))
      return true;
  }
  return false;
}

static MlirValue in_rows(struct ir_builder *b, MlirValue x, const struct turn *t) {
  int64_t from[1 + FREE_DIMS] = {t->rows}, to[1 + FREE_DIMS] = {t->rows}, loops[1 + FREE_DIMS] = {0};

  for (int d = 0; d < t->n; d++) {
    from[1 + d] = to[1 + t->to[d]] = t->dims[d];
    loops[1 + d] = 1 + t->to[d];
  }
  return prepare_copy(b, edit_reshape(b, x, 1 + t->n, from), ir_map(b, 1 + t->n, 1 + t->n, loops), 1 + t->n, to);
}

static void explain(struct pass_run *run, MlirOperation op, const struct turn *t) {
  struct remark *r =
      pass_remark(run, op, RULE_TURN_IN_ROWS, "each of %" PRId64 " rows of %" PRId64 " elements is turned by itself",
                  t->rows, t->row);
  remark_cost(r, "%" PRId64 " cycles", prepare_cycles(t->rows, t->row));
  remark_limit(r, "partitions", "partitions", t->rows < NISA_PARTITIONS ? t->rows : NISA_PARTITIONS, NISA_PARTITIONS);
  remark_reject_for(r, "blocks of 128 by 128", NULL,
                    arena_printf(run->arena, "%" PRId64 " cycles", cycles_in_blocks(t)),
                    "each block is turned and moved by itself, and most of it would be empty");
}

/* ---- fewer dimensions -------------------------------------------------------------------------------------------- */

/* Makes neighbours that stay neighbours one dimension: [256,56,56] -> [56,56,256] is a matrix turned.  False if there are none. */
static bool read_fewer(const struct structured *s, int *rank, int64_t *dims, int64_t *order) {
  int starts[STRUCTURED_LOOPS_MAX], n = 0;

  if (structured_map_loop(s->maps[0], s->n_loops - 1) == s->n_loops - 1)
    return false;
  for (int d = 0; d < s->n_loops; d++) {
    const int loop = structured_map_loop(s->maps[0], d);
    if (loop < 0 || s->extents[loop] < 1)
      return false;
    if (!d || loop != structured_map_loop(s->maps[0], d - 1) + 1) {
      dims[n] = 1;
      starts[n++] = loop;
    }
    dims[n - 1] *= s->extents[loop];
  }
  for (int k = 0; k < n; k++) {
    int to = 0;
    for (int other = 0; other < n; other++)
      to += starts[other] < starts[k];
    order[to] = k;
  }
  *rank = n;
  return n < s->n_loops;
}

/* ---- all transposes ---------------------------------------------------------------------------------------------- */

/* Returns what takes the transpose's place; null if it stays. */
static MlirValue other_form(struct pass_run *run, MlirOperation op, const struct structured *s) {
  struct ir_builder b = edit_before(run, op);
  MlirValue x = mlirOperationGetOperand(op, 0);
  int64_t dims[STRUCTURED_LOOPS_MAX], order[STRUCTURED_LOOPS_MAX];
  struct turn t;
  int rank;

  if (read_turn(s, &t) && prepare_cycles(t.rows, t.row) < cycles_in_blocks(&t)) {
    explain(run, op, &t);
    pass_step(run, op, "turn-in-rows");
    return in_rows(&b, x, &t);
  }
  if (!read_fewer(s, &rank, dims, order))
    return (MlirValue){NULL};
  pass_step(run, op, "neighbours-as-one");
  return ir_result(ir_transpose(&b, edit_reshape(&b, x, rank, dims), rank, order));
}

void prepare_turns(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.transpose");

  for (int i = 0; i < all.n; i++) {
    struct structured s;
    MlirOperation op = all.v[i];
    if (!structured_read(op, &s) || prepare_has_knob(ir_result(op)) || feeds_product(ir_result(op)))
      continue;
    MlirValue made = other_form(run, op, &s);
    if (mlirValueIsNull(made))
      continue;
    int64_t dims[STRUCTURED_LOOPS_MAX];
    const int rank = ir_shape(ir_result(op), STRUCTURED_LOOPS_MAX, dims);
    struct ir_builder b = edit_before(run, op);
    MlirValue turned = edit_reshape(&b, made, rank, dims);
    edit_replace_data_uses(run->arena, ir_result(op), turned, (MlirOperation){NULL});
    edit_erase_unused(run->arena, op);
  }
}
