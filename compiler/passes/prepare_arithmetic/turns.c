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
 * A matrix with a short side, or a batch of them, is cut along its long side: pieces of it are turned as rows, and runs of a piece moved
 * to their places.
 *
 *     %t = linalg.transpose ins(%x : 16x50176x3) permutation = [0, 2, 1]
 *       ==>
 *     %g = linalg.generic of expand_shape %x : 1792x448x3, to 1792x3x448
 *     %t = linalg.transpose ins(expand_shape %g : 16x112x3x448) permutation = [0, 2, 1, 3]
 *
 * In what stays a transpose, neighbours that stay neighbours become one dimension: more of it is a matrix.
 *
 * What computes each element from one element, before the transpose or after it, does that with the rows, where they are on the chip anyhow:
 * an image is often scaled when its channels become the last dimension or the first.
 *
 * A transpose that a product of matrices reads stays as it is: the product reads its operand in either order.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum {
  FREE_DIMS = 4,   /* of an access pattern */
  ROW_MOST = 2048, /* elements of a tile in each partition */
  BLOCK = 350,     /* cycles from one turned block of 128 by 128 to the next: it is moved twice, and leaves PSUM once */
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

/* ---- what is computed beside -------------------------------------------------------------------------------------- */

enum { BESIDE_MAX = 8 };

/* Operations with one operand, each of which computes an element from one element, in their order: of what the transpose reads, and of its
 * result. */
struct beside {
  MlirOperation ops[2 * BESIDE_MAX];
  int n_before, n;
};

static bool is_of_one(struct pass_run *run, MlirOperation op) {
  struct structured s;

  if (mlirOperationIsNull(op) || !prepare_may_change(run, op, &s) || !structured_is_elementwise(&s) ||
      s.n_inputs != 1 || prepare_has_op(run, op, "linalg.index"))
    return false;
  for (int o = 0; o < 2; o++) {
    if (mlirAffineMapGetNumResults(s.maps[o]) != s.n_loops)
      return false;
    for (int d = 0; d < s.n_loops; d++)
      if (structured_map_loop(s.maps[o], d) != d)
        return false;
  }
  return true;
}

static void find_beside(struct pass_run *run, MlirOperation transpose, struct beside *f) {
  MlirOperation at = transpose, before[BESIDE_MAX];
  int n = 0;

  *f = (struct beside){.n = 0};
  for (MlirOperation def; n < BESIDE_MAX; at = before[n++] = def) {
    MlirValue v = mlirOperationGetOperand(at, 0);
    def = ir_defining_op(v);
    if (!is_of_one(run, def) || mlirOperationIsNull(ir_only_user(v)) ||
        !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(transpose)))
      break;
  }
  while (n)
    f->ops[f->n++] = before[--n];
  f->n_before = f->n;
  at = transpose;
  for (MlirOperation next; f->n < f->n_before + BESIDE_MAX; at = f->ops[f->n++] = next) {
    next = ir_only_user(ir_result(at));
    if (!is_of_one(run, next) || !mlirValueEqual(mlirOperationGetOperand(next, 0), ir_result(at)) ||
        !mlirBlockEqual(mlirOperationGetBlock(next), mlirOperationGetBlock(transpose)))
      break;
  }
}

static MlirOperation last_of(MlirOperation transpose, const struct beside *f) {
  return f->n > f->n_before ? f->ops[f->n - 1] : transpose;
}

/* Copies x, which has these dimensions in the order of the map, and computes the same of it; the copy is a part of the first operation, if
 * that is one with maps of its own. */
static MlirValue copy_beside(struct ir_builder *b, MlirValue x, MlirAffineMap map, int rank, const int64_t *dims,
                             const struct beside *f) {
  const MlirAffineMap maps[] = {map, ir_identity_map(b, rank)}, same[] = {maps[1], maps[1]};
  const bool reduction[STRUCTURED_LOOPS_MAX] = {false}, copies = f->n && ir_is(f->ops[0], "linalg.generic");
  MlirValue v = copies ? x : prepare_copy(b, x, map, rank, dims);

  for (int k = 0; k < f->n; k++) {
    MlirOperation made = mlirOperationClone(f->ops[k]);
    MlirType type = ir_tensor_of(ir_value_element(ir_result(f->ops[k])), rank, dims);
    mlirOperationSetOperand(made, 0, v);
    mlirOperationSetOperand(made, 1, ir_empty_of(b, type));
    mlirValueSetType(ir_result(made), type);
    if (ir_is(made, "linalg.generic")) {
      edit_set_maps(made, 2, k ? same : maps);
      edit_set_iterators(made, rank, reduction);
    }
    mlirBlockInsertOwnedOperationBefore(b->block, b->before, made);
    v = ir_result(made);
  }
  return v;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/* How many short rows lie in a partition, one after the other: one instruction turns all of them. */
static int64_t rows_together(const struct turn *t) {
  const int64_t most = t->rows / NISA_PARTITIONS < ROW_MOST / t->row ? t->rows / NISA_PARTITIONS : ROW_MOST / t->row;
  return t->n < FREE_DIMS && most > 1 ? prepare_divisor(t->rows, most) : 1;
}

static MlirValue in_rows(struct ir_builder *b, MlirValue x, const struct turn *t, const struct beside *f) {
  const int64_t together = rows_together(t);
  const int first = together > 1 ? 2 : 1;
  int64_t from[1 + FREE_DIMS] = {t->rows / together, together}, to[1 + FREE_DIMS] = {t->rows / together, together},
                   loops[1 + FREE_DIMS] = {0, 1};

  for (int d = 0; d < t->n; d++) {
    from[first + d] = to[first + t->to[d]] = t->dims[d];
    loops[first + d] = first + t->to[d];
  }
  const int n = first + t->n;
  return copy_beside(b, edit_reshape(b, x, n, from), ir_map(b, n, n, loops), n, to, f);
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

/* The dimensions and their order, with neighbours that stay neighbours as one: [256,56,56] -> [56,56,256] is a matrix turned.  False if
 * the last one stays the last. */
static bool read_order(const struct structured *s, int *rank, int64_t *dims, int64_t *order) {
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
  return true;
}

/* ---- a short side -------------------------------------------------------------------------------------------------- */

enum {
  ELEMENTS_MAX = 2048, /* of a piece */
  BYTES_A_CYCLE = 360, /* between HBM and SBUF */
  DESCRIPTOR = 512,    /* bytes; less takes as long */
};

/* Matrices of a batch with a short side; pieces of `length` of the long one are turned. */
struct strip {
  int64_t batch, dims[2], length;
  int at; /* of the long side, before */
  int64_t cycles;
};

/* The best length of pieces: they fill the partitions, and have as many elements as a tile. */
static bool read_strip(int rank, const int64_t *dims, const int64_t *order, int64_t element_bytes, struct strip *t) {
  *t = (struct strip){.batch = rank == 3 ? dims[0] : 1};
  if ((rank != 2 && rank != 3) || order[rank - 1] != rank - 2)
    return false;
  memcpy(t->dims, dims + rank - 2, sizeof t->dims);
  t->at = t->dims[1] > t->dims[0];
  const int64_t n = t->dims[t->at], narrow = t->dims[!t->at];
  int64_t most = t->batch * n / NISA_PARTITIONS;
  most = most < ELEMENTS_MAX / narrow ? most : ELEMENTS_MAX / narrow;
  t->length = prepare_divisor(n, most < n / 2 ? most : n / 2);
  if (t->length < 2)
    return false;
  const int64_t run = t->length * element_bytes, bytes = t->batch * n * narrow * element_bytes;
  t->cycles = prepare_cycles(t->batch * n / t->length, t->length * narrow) +
              2 * bytes / BYTES_A_CYCLE * (run < DESCRIPTOR ? parts(DESCRIPTOR, run) : 1);
  return true;
}

/* Exchanges the two dimensions before the last one of v, which has the dimensions [batch, a, b, last]. */
static MlirValue exchange(struct ir_builder *b, MlirValue v, const int64_t *dims) {
  const int64_t order[] = {0, 2, 1, 3};
  return ir_result(ir_transpose(b, edit_reshape(b, v, 4, dims), 4, order));
}

static MlirValue in_strips(struct ir_builder *b, MlirValue x, const struct strip *t, const struct beside *f) {
  const int64_t pieces = t->dims[t->at] / t->length, narrow = t->dims[!t->at];
  struct turn turn = {
      .n = 2, .rows = t->batch * pieces, .row = t->length * narrow, .dims = {t->length, narrow}, .to = {1, 0}};
  if (!t->at)
    return exchange(b, in_rows(b, x, &turn, f), (int64_t[]){t->batch, pieces, narrow, t->length});
  turn.dims[0] = narrow;
  turn.dims[1] = t->length;
  return in_rows(b, exchange(b, x, (int64_t[]){t->batch, narrow, pieces, t->length}), &turn, f);
}

static void explain_strip(struct pass_run *run, MlirOperation op, const struct strip *t, int64_t rejected) {
  const int64_t rows = t->batch * t->dims[t->at] / t->length;
  struct remark *r = pass_remark(run, op, RULE_TURN_IN_STRIPS,
                                 "%" PRId64 " pieces of %" PRId64 " by %" PRId64 " elements are turned by themselves",
                                 rows, t->length, t->dims[!t->at]);
  remark_cost(r, "%" PRId64 " cycles", t->cycles);
  remark_limit(r, "partitions", "partitions", rows < NISA_PARTITIONS ? rows : NISA_PARTITIONS, NISA_PARTITIONS);
  remark_reject_for(r, "blocks of 128 by 128", NULL, arena_printf(run->arena, "%" PRId64 " cycles", rejected),
                    "most of each block would be empty");
}

/* ---- all transposes ---------------------------------------------------------------------------------------------- */

/* Returns what takes the place of the transpose, and of what is computed beside it; null if it stays.  Of what has only other dimensions
 * *f is empty then. */
static MlirValue other_form(struct pass_run *run, MlirOperation op, const struct structured *s, struct beside *f) {
  struct ir_builder b = edit_before(run, last_of(op, f)); /* where everything that they read is known */
  MlirValue x = mlirOperationGetOperand(f->n_before ? f->ops[0] : op, 0);
  int64_t dims[STRUCTURED_LOOPS_MAX], order[STRUCTURED_LOOPS_MAX];
  struct turn t;
  struct strip strip = {0};
  int rank;

  const bool has_order = read_order(s, &rank, dims, order);
  const bool has_strips = has_order && read_strip(rank, dims, order, price_shape_of(x).element_bytes, &strip);
  if (read_turn(s, &t) && prepare_cycles(t.rows, t.row) < cycles_in_blocks(&t) &&
      (!has_strips || prepare_cycles(t.rows, t.row) <= strip.cycles)) {
    explain(run, op, &t);
    pass_step(run, op, "turn-in-rows");
    return in_rows(&b, x, &t, f);
  }
  const int64_t in_blocks =
      has_strips ? strip.batch * parts(strip.dims[0], NISA_PARTITIONS) * parts(strip.dims[1], NISA_PARTITIONS) * BLOCK
                 : 0;
  if (has_strips && strip.cycles < in_blocks) {
    explain_strip(run, op, &strip, in_blocks);
    pass_step(run, op, "turn-in-strips");
    return in_strips(&b, x, &strip, f);
  }
  if (!has_order || rank == s->n_loops)
    return (MlirValue){NULL};
  pass_step(run, op, "neighbours-as-one");
  *f = (struct beside){.n = 0};
  b = edit_before(run, op);
  return ir_result(ir_transpose(&b, edit_reshape(&b, mlirOperationGetOperand(op, 0), rank, dims), rank, order));
}

void prepare_turns(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.transpose");

  for (int i = 0; i < all.n; i++) {
    struct structured s;
    MlirOperation op = all.v[i];
    if (!structured_read(op, &s) || prepare_has_knob(ir_result(op)) || feeds_product(ir_result(op)))
      continue;
    struct beside f;
    find_beside(run, op, &f);
    MlirValue made = other_form(run, op, &s, &f);
    if (mlirValueIsNull(made))
      continue;
    int64_t dims[STRUCTURED_LOOPS_MAX];
    MlirOperation last = last_of(op, &f);
    const int rank = ir_shape(ir_result(last), STRUCTURED_LOOPS_MAX, dims);
    struct ir_builder b = edit_before(run, last);
    MlirValue turned = edit_reshape(&b, made, rank, dims);
    edit_replace_data_uses(run->arena, ir_result(last), turned, (MlirOperation){NULL});
    for (int k = f.n - 1; k > f.n_before; k--)
      edit_erase_unused(run->arena, f.ops[k]);
    edit_erase_unused(run->arena, f.n > f.n_before ? f.ops[f.n_before] : op); /* with it the transpose */
    for (int k = f.n_before; k--;)
      edit_erase_unused(run->arena, f.ops[k]);
  }
}
