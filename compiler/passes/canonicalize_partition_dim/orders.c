/* orders: see orders.h.
 *
 * Memory.  The turned value is in SBUF if the original is, or if only the transpose back reads it; otherwise it is in
 * HBM.  The transpose back is in the same memory as the original, but if it has more than two dimensions it is in HBM,
 * because the partition dimension of its tile need not be the first one.
 *
 * Tiles.  A value in SBUF is stored in the tiles of the operations that read it.  A transpose writes it in tiles of at
 * most 128 both ways, because its operand and its result both have their first dimension across the partitions.
 */
#include "passes/canonicalize_partition_dim/orders.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"

void orders_invert(int rank, const int64_t *perm, int64_t *out) {
  for (int i = 0; i < rank; i++)
    out[perm[i]] = i;
}

bool orders_is_identity(int rank, const int64_t *perm) {
  for (int i = 0; i < rank; i++)
    if (perm[i] != i)
      return false;
  return true;
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

static struct order *add(struct orders *o, MlirValue value, MlirValue turned, int rank, const int64_t *perm) {
  assert(rank <= STRUCTURED_LOOPS_MAX);
  struct order *made = array_push(o->run->arena, o, (struct order){.value = value, .turned = turned, .rank = rank});
  memcpy(made->perm, perm, (size_t)rank * sizeof *perm);
  return made;
}

static struct order *find(struct orders *o, MlirValue value, int rank, const int64_t *perm) {
  for (int i = o->n - 1; i >= 0; i--)
    if (mlirValueEqual(o->v[i].value, value) && o->v[i].rank == rank &&
        !memcmp(o->v[i].perm, perm, (size_t)rank * sizeof *perm))
      return &o->v[i];
  return NULL;
}

/* ---- transposes to another order --------------------------------------------------------------------------------- */

/* Builds after the definition of v and its annotations, with the location of that definition.  For a block argument,
 * builds at the start of the block, with the location of the reader. */
static struct ir_builder after_value(struct orders *o, MlirValue v, MlirOperation reader) {
  MlirOperation def = ir_defining_op(v);
  if (!mlirOperationIsNull(def))
    return edit_after(o->run, def);
  struct ir_builder b = edit_before(o->run, reader);
  b.block = mlirBlockArgumentGetOwner(v);
  b.before = mlirBlockGetFirstOperation(b.block);
  return b;
}

static int64_t at_most_partitions(int64_t tile) {
  return tile > NISA_PARTITIONS ? NISA_PARTITIONS : tile;
}

/* Returns a transpose that another operation already asked for, and records that it is read in tiles of `tile`, too.
 * It moves to HBM if its readers have different tiles, because they cannot share a value in SBUF. */
static MlirValue share(const struct order *known, MlirOperation reader, const int64_t *tile) {
  struct layout l = layout_read(known->turned);
  const bool is_same = l.n_tile == known->rank && !memcmp(l.tile, tile, (size_t)known->rank * sizeof *tile);

  if (!known->is_back && !is_same && l.space == MEM_SBUF) {
    l.space = MEM_HBM;
    layout_write(known->turned, &l, mlirOperationGetLocation(reader));
  }
  return known->turned;
}

static MlirValue transposed(struct orders *o, struct ir_builder *b, MlirValue x, int rank, const int64_t *perm,
                            const int64_t *tile) {
  struct layout l = {.space = MEM_SBUF, .partition_dim = 0, .n_tile = rank, .n_loop = rank};
  MlirValue y = ir_result(ir_transpose(b, x, rank, perm));

  for (int i = 0; i < rank; i++) {
    l.tile[i] = tile[i];
    l.loop[i] = perm[i] == 0 ? at_most_partitions(tile[i]) : tile[i];
  }
  layout_write(y, &l, b->loc);
  add(o, x, y, rank, perm);
  struct remark *r = pass_remark(o->run, ir_defining_op(y), RULE_TRANSPOSE_TO_PARTITIONS,
                                 "transposed, so that dimension %d lies across the partitions", (int)perm[0]);
  remark_limit(r, "partitions", "partitions", at_most_partitions(tile[0]), NISA_PARTITIONS);
  remark_reject(r, "the order of the operand", "another dimension lies across the partitions there");
  return y;
}

MlirValue orders_turned(struct orders *o, MlirOperation reader, MlirValue x, int rank, const int64_t *perm,
                        const int64_t *tile) {
  int64_t dims[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX];
  MlirOperation def = ir_defining_op(x);

  if (orders_is_identity(rank, perm))
    return x;
  const struct order *known = find(o, x, rank, perm);
  if (known)
    return share(known, reader, tile);
  struct ir_builder b = after_value(o, x, reader);
  if (mlirOperationIsNull(def) || !ir_is(def, "linalg.fill"))
    return transposed(o, &b, x, rank, perm, tile);
  ir_shape(x, STRUCTURED_LOOPS_MAX, dims);
  for (int i = 0; i < rank; i++)
    to[i] = dims[perm[i]];
  return add(o, x, edit_reshape_init(&b, x, rank, to), rank, perm)->turned;
}

/* ---- transposes back --------------------------------------------------------------------------------------------- */

void orders_turn_back(struct orders *o, MlirValue was, MlirValue turned, int rank, const int64_t *perm,
                      const struct layout *at) {
  int64_t inverse[STRUCTURED_LOOPS_MAX];
  struct ir_builder b = edit_after(o->run, ir_defining_op(turned));

  orders_invert(rank, perm, inverse);
  MlirValue back = ir_result(ir_transpose(&b, turned, rank, inverse));
  edit_replace_data_uses(o->run->arena, was, back, ir_defining_op(back));
  struct order *made = add(o, back, turned, rank, perm);
  made->is_back = true;
  made->at = *at;
}

static bool is_only_read_by(MlirValue v, MlirOperation reader) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!ir_is_of(user, "nkipy.") && !mlirOperationEqual(user, reader))
      return false;
  }
  return true;
}

static void settle(struct arena *a, struct order *o) {
  MlirOperation op = ir_defining_op(o->value);
  assert(o->is_back && ir_is(op, "linalg.transpose"));
  struct layout now = layout_read(o->turned), back = o->at;

  if (!ir_is_used(o->value)) {
    edit_erase_unused(a, op);
    return;
  }
  now.space = back.space == MEM_SBUF || is_only_read_by(o->turned, op) ? MEM_SBUF : MEM_HBM;
  layout_write(o->turned, &now, mlirOperationGetLocation(op));
  back.space = back.space == MEM_SBUF && o->rank > 2 ? MEM_HBM : back.space;
  back.partition_dim = 0;
  back.tile[0] = at_most_partitions(back.tile[0]);
  back.n_loop = back.n_tile;
  memcpy(back.loop, back.tile, sizeof back.loop);
  layout_write(o->value, &back, mlirOperationGetLocation(op));
}

void orders_settle(struct orders *o) {
  /* from the last to the first: an erased transpose may be the only reader of an earlier one */
  for (int i = o->n - 1; i >= 0; i--)
    if (o->v[i].is_back)
      settle(o->run->arena, &o->v[i]);
}
