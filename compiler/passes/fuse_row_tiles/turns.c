/* turns: transposes at the ends of a loop over rows.  See fuse_row_tiles.c.
 *
 *     %t = linalg.transpose ins(%x : 8x256x784) permutation = [0, 2, 1]
 *     op(%t)                          in the loop over 128 of 784 rows:
 *                                ==>    %s = extract_slice %x[%b, 0, %i] [1, 256, 128], copied to SBUF
 *                                       %t = linalg.transpose ins(%s) permutation = [1, 0]; op(%t)
 *
 * What is transposed alone goes to HBM and comes back, unless all of it has room in SBUF.  In the loop the Tensor engine transposes
 * what the loop loads, or what it is about to store.
 *
 * A tile of SBUF has as many blocks of partitions as a multiple of their number takes; of another number of columns, each block has
 * a tile of its own, which is transposed to its place in the row, or from there.
 */
#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"

/* ---- which transposes may be members ------------------------------------------------------------------------------- */

/* True if op exchanges the last two of its dimensions. */
static bool swaps_last(MlirOperation op, int rank) {
  MlirAttribute order = ir_attr(op, "permutation");

  if (rank < 2 || mlirAttributeIsNull(order) || mlirDenseArrayGetNumElements(order) != rank)
    return false;
  for (int d = 0; d < rank; d++) {
    const int from = d < rank - 2 ? d : d == rank - 2 ? rank - 1 : rank - 2;
    if (mlirDenseI64ArrayGetElement(order, d) != from)
      return false;
  }
  return true;
}

/* The tile of rows with which an operation reads the transpose's result, if all of them have the same one; 0 if not. */
static int64_t tile_of_readers(const struct fuse_member *m, int row_dim) {
  int64_t tile = 0;

  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(m->node->op)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    struct structured s;
    if (ir_is_of(op, "nkipy."))
      continue;
    if (!structured_read(op, &s) || !(structured_is_elementwise(&s) || s.kind == SK_REDUCTION) || s.n_loops <= row_dim)
      return 0;
    const struct layout at = layout_read(ir_result(op));
    if (at.partition_dim != row_dim || at.n_loop != s.n_loops || (tile && at.loop[row_dim] != tile))
      return 0;
    tile = at.loop[row_dim];
  }
  return tile;
}

bool fuse_read_turn(const struct fuse_block *b, struct fuse_member *m) {
  const int rank = m->s.n_loops;
  MlirType t = ir_value_element(ir_result(m->node->op));
  const struct fuse_node *def = fuse_node_of(b, mlirOperationGetOperand(m->node->op, 0));
  const struct fuse_member *from = def && def->member && !fuse_turns_out(def->member) ? def->member : NULL;

  if (!swaps_last(m->node->op, rank) || !(mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t)))
    return false;
  m->row_dim = rank - 2;
  m->takes_columns = !from && tile_of_readers(m, m->row_dim) > 0;
  m->row_loop = m->takes_columns ? rank - 2 : rank - 1;
  m->column_loop = m->takes_columns ? rank - 1 : rank - 2;
  m->rows = m->s.extents[m->row_loop];
  if (m->takes_columns)
    m->tile = tile_of_readers(m, m->row_dim);
  else if (from && from->row_dim == m->row_dim)
    m->tile = from->tile;
  else
    m->tile = rank == 2 ? m->at.loop[m->row_loop] : 0;
  return m->tile > 0 && (m->takes_columns || m->at.space != MEM_SBUF);
}

/* ---- code ------------------------------------------------------------------------------------------------------------ */

/* How many columns one transpose takes: all of them in whole blocks of partitions. */
static int64_t block_of(int64_t columns) {
  return columns % NISA_PARTITIONS ? NISA_PARTITIONS : columns;
}

int64_t fuse_taken_bytes(const struct fuse_member *m) {
  const int64_t columns = m->s.extents[m->column_loop];
  return (columns + NISA_PARTITIONS - 1) / NISA_PARTITIONS * m->tile *
         nisa_element_bytes(ir_value_element(ir_result(m->node->op)));
}

/* The part of s with n columns from `from` on, which are dimension d. */
static struct ir_slice columns_of(struct ir_builder *b, const struct ir_slice *s, int d, int64_t from, int64_t n) {
  int64_t *offsets = arena_new_array(b->arena, int64_t, (size_t)s->rank),
          *sizes = arena_new_array(b->arena, int64_t, (size_t)s->rank);
  MlirValue *dynamic = arena_new_array(b->arena, MlirValue, (size_t)s->rank);

  for (int k = 0; k < s->rank; k++) {
    offsets[k] = s->offsets[k] + (k == d ? from : 0);
    sizes[k] = k == d ? n : s->sizes[k];
    dynamic[k] = s->dynamic[k];
  }
  if (from && !mlirValueIsNull(dynamic[d]))
    dynamic[d] = ir_binary(b, "arith.addi", dynamic[d], ir_index(b, from));
  return (struct ir_slice){.rank = s->rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
}

/* Columns from `from` on of a tile with rows, whose other dimensions have one element. */
static struct ir_slice columns_of_tile(struct ir_builder *b, int rank, int64_t rows, int64_t from, int64_t n) {
  int64_t *offsets = arena_new_array(b->arena, int64_t, (size_t)rank),
          *sizes = arena_new_array(b->arena, int64_t, (size_t)rank);

  for (int k = 0; k < rank; k++) {
    offsets[k] = k == rank - 1 ? from : 0;
    sizes[k] = k == rank - 1 ? n : k == rank - 2 ? rows : 1;
  }
  return (struct ir_slice){.rank = rank, .offsets = offsets, .sizes = sizes};
}

/* Transposes a matrix to `to`. */
static MlirValue transpose(struct ir_builder *b, MlirValue x, MlirValue to) {
  const MlirNamedAttribute order = ir_named(b, "permutation", mlirDenseI64ArrayGet(b->ctx, 2, (const int64_t[]){1, 0}));
  return ir_result(ir_linalg_copying(b, "linalg.transpose", x, to, order));
}

/* The part of a matrix in SBUF with its columns from `from` on: all of it if these are all. */
static MlirValue columns_in_sbuf(struct ir_builder *b, MlirValue x, int64_t from, int64_t n) {
  MlirType t = mlirValueGetType(x);
  const int64_t rows = mlirShapedTypeGetDimSize(t, 0);

  if (mlirShapedTypeGetDimSize(t, 1) == n)
    return x;
  const struct ir_slice s = columns_of_tile(b, 2, rows, from, n);
  return ir_extract_slice(b, x, &s, ir_tensor_of(ir_value_element(x), 2, (int64_t[]){rows, n}));
}

void fuse_take_columns(struct ir_builder *b, MlirValue v, const struct ir_slice *s, int n_tiles, const int64_t *rows,
                       MlirValue *tile) {
  const int64_t columns = s->sizes[s->rank - 2], all = s->sizes[s->rank - 1], block = block_of(columns);
  MlirType element = ir_value_element(v);
  int64_t dims[STRUCTURED_LOOPS_MAX];

  for (int u = 0; u < n_tiles; u++) {
    for (int d = 0; d < s->rank; d++)
      dims[d] = d < s->rank - 2 ? 1 : d == s->rank - 2 ? rows[u] : columns;
    tile[u] = fuse_tile_in_sbuf(b, ir_tensor_of(element, s->rank, dims));
  }
  for (int64_t from = 0; from < columns; from += block) {
    const int64_t n = columns - from < block ? columns - from : block;
    const struct ir_slice part = columns_of(b, s, s->rank - 2, from, n);
    MlirType t = ir_tensor_of(element, 2, (int64_t[]){n, all});
    MlirValue x = ir_extract_slice(b, v, &part, t);
    if (layout_read(v).space != MEM_SBUF)
      x = ir_op1(b, "bufferization.materialize_in_destination", t, 2, (MlirValue[]){x, fuse_tile_in_sbuf(b, t)});
    for (int64_t u = 0, at = 0; u < n_tiles; at += rows[u++]) {
      const struct ir_slice place = columns_of_tile(b, s->rank, rows[u], from, n);
      MlirValue one = columns_in_sbuf(b, x, at, rows[u]);
      if (s->rank == 2 && n == columns) {
        tile[u] = transpose(b, one, tile[u]);
        continue;
      }
      MlirValue to = ir_extract_slice(b, tile[u], &place, ir_tensor_of(element, 2, (int64_t[]){rows[u], n}));
      tile[u] = ir_insert_slice(b, transpose(b, one, to), tile[u], &place);
    }
  }
}

MlirValue fuse_put_columns(struct ir_builder *b, int n_tiles, const int64_t *rows, MlirValue const *tile,
                           MlirValue carried, const struct ir_slice *s) {
  const int64_t columns = s->sizes[s->rank - 2], all = s->sizes[s->rank - 1], block = block_of(columns);
  MlirType element = ir_value_element(carried);

  for (int64_t from = 0; from < columns; from += block) {
    const int64_t n = columns - from < block ? columns - from : block;
    const struct ir_slice part = columns_of(b, s, s->rank - 2, from, n);
    MlirValue to = fuse_tile_in_sbuf(b, ir_tensor_of(element, 2, (int64_t[]){n, all}));
    for (int64_t u = 0, at = 0; u < n_tiles; at += rows[u++]) {
      const struct ir_slice of = columns_of_tile(b, s->rank, rows[u], from, n),
                            place = columns_of_tile(b, 2, n, at, rows[u]);
      MlirValue x = s->rank == 2 && n == columns
                        ? tile[u]
                        : ir_extract_slice(b, tile[u], &of, ir_tensor_of(element, 2, (int64_t[]){rows[u], n}));
      MlirValue made = transpose(b, x, columns_in_sbuf(b, to, at, rows[u]));
      to = rows[u] == all ? made : ir_insert_slice(b, made, to, &place);
    }
    carried = ir_insert_slice(b, to, carried, &part);
  }
  return carried;
}
