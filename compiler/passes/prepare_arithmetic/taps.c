/* taps: a column of a matrix that is read along rows becomes a row of the transposed matrix.
 *
 *     %w = extract_slice %m[0, 2] [256, 1] : 256x4            %t = linalg.transpose %m : 4x256
 *     linalg.generic {… (i, j) -> (j, 0)} ins(…, %w)    ==>   %w = extract_slice %t[2, 0] [1, 256]
 *                                                             linalg.generic {… (i, j) -> (0, j)} ins(…, %w)
 *
 * The taps of a convolution over channels and the scale and shift of a normalisation are read so: x * w[:, 0] + w[:, 1].  A row that is
 * the same for all rows is copied to all partitions.  From a column each element is a descriptor of its own in each
 * partition; from a row the descriptor of a partition has all of them.  The matrix is transposed once for all of its columns.
 *
 * A column that is read down the partitions, (i, j) -> (i, 0), stays what it is.  So do slices with knobs, and those of wide
 * matrices, where the transpose costs more.  Linear in uses.
 */
#include <inttypes.h>

#include "base/array.h"
#include "base/index.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/slice.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { COLUMNS_MAX = 256 }; /* of the matrix; of a wider one the transpose moves too much that is not wanted */

/* A matrix and its transpose. */
struct turned {
  MlirValue of, value;
};
struct all_turned {
  struct turned *v;
  int n, cap;
  struct index by_matrix;
};

/* True if op reads operand o, [n, 1], along its last loop: (…, j) -> (j, 0). */
static bool reads_along(MlirOperation op, int o, struct structured *s) {
  return ir_is(op, "linalg.generic") && structured_read(op, s) && o < s->n_inputs && s->n_loops > 1 &&
         mlirAffineMapGetNumResults(s->maps[o]) == 2 && structured_map_loop(s->maps[o], 0) == s->n_loops - 1 &&
         structured_map_loop(s->maps[o], 1) < 0;
}

/* Reads a column of a matrix that all of its readers read along rows. */
static bool read_column(MlirOperation op, struct slice *s) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int n = 0;

  if (!slice_read(op, s) || s->is_insert || s->rank != 2 || s->size[1] != 1 || s->offset[0] ||
      prepare_has_knob(ir_result(op)))
    return false;
  ir_shape(slice_of(s), STRUCTURED_LOOPS_MAX, dims);
  if (dims[0] != s->size[0] || dims[1] < 2 || dims[1] > COLUMNS_MAX || s->offset[1] == SLICE_DYNAMIC)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u), n++)
    if (!reads_along(mlirOpOperandGetOwner(u), (int)mlirOpOperandGetOperandNumber(u), &(struct structured){0}))
      return false;
  return n > 0;
}

static MlirValue turned_matrix(struct pass_run *run, MlirOperation op, const struct slice *s, struct all_turned *all) {
  MlirValue of = slice_of(s);
  const struct price_shape shape = price_shape_of(of);
  const double turned = price_transpose_ns(run->target, shape.rows, shape.columns, shape.element_bytes) +
                        price_away_ns(run->target, of),
               as_is = price_transfer_ns(run->target, NISA_PARTITIONS * shape.rows * shape.element_bytes,
                                         shape.element_bytes);

  for (struct index_probe p = index_probe(&all->by_matrix, hash_pointer(of.ptr)); index_next(&p);)
    if (mlirValueEqual(all->v[p.entry].of, of))
      return all->v[p.entry].value;
  MlirValue v = {NULL};
  if (turned < as_is) {
    MlirOperation def = ir_defining_op(of);
    MlirBlock block = mlirOperationIsNull(def) ? mlirBlockArgumentGetOwner(of) : mlirOperationGetBlock(def);
    MlirOperation first =
        mlirOperationIsNull(def) ? mlirBlockGetFirstOperation(block) : mlirOperationGetNextInBlock(def);
    struct ir_builder b = edit_before(run, op);
    b.block = block; /* where all of its slices see it */
    b.before = first;
    v = ir_result(ir_transpose(&b, of, 2, (int64_t[]){1, 0}));
    struct remark *r =
        pass_remark(run, op, RULE_COLUMN_AS_ROW,
                    "a column that is read along rows, of %" PRId64 ": their matrix is transposed", shape.columns);
    price_chosen(r, turned);
    price_instead(r, "the column, copied to all partitions", as_is,
                  "each element is a descriptor of its own in each partition");
  }
  index_add(&all->by_matrix, hash_pointer(of.ptr), all->n);
  array_push(run->arena, all, ((struct turned){of, v}));
  return v;
}

/* Lets the readers of the column read the row, which is [1, n]. */
static void read_row(struct pass_run *run, MlirOperation op, MlirValue row) {
  struct ir_ops users = {0};

  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    array_push(run->arena, &users, mlirOpOperandGetOwner(u));
  for (int i = 0; i < users.n; i++) {
    struct structured s;
    struct ir_builder b = edit_before(run, users.v[i]);
    for (int o = 0; structured_read(users.v[i], &s) && o < s.n_inputs; o++) {
      if (!mlirValueEqual(mlirOperationGetOperand(users.v[i], o), ir_result(op)))
        continue;
      mlirOperationSetOperand(users.v[i], o, row);
      s.maps[o] = ir_map(&b, s.n_loops, 2, (int64_t[]){IR_CONST(0), s.n_loops - 1});
      edit_set_maps(users.v[i], s.n_inputs + s.n_inits, s.maps);
    }
  }
}

void prepare_taps(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "tensor.extract_slice");
  struct all_turned turned = {.by_matrix.arena = run->arena};

  for (int i = 0; i < all.n; i++) {
    struct slice s;
    if (!read_column(all.v[i], &s))
      continue;
    pass_step(run, all.v[i], "column-as-row");
    MlirValue matrix = turned_matrix(run, all.v[i], &s, &turned);
    if (mlirValueIsNull(matrix))
      continue;
    const int64_t offsets[] = {s.offset[1], 0}, sizes[] = {1, s.size[0]};
    const struct ir_slice part = {.rank = 2, .offsets = offsets, .sizes = sizes};
    struct ir_builder b = edit_before(run, all.v[i]);
    read_row(run, all.v[i], ir_extract_slice(&b, matrix, &part, ir_tensor_of(ir_value_element(matrix), 2, sizes)));
    edit_erase_unused(run->arena, all.v[i]);
  }
}
