/* keep: what goes through HBM between the same partitions stays on chip.
 *
 *     %h = alloc [8, 128, 64] in HBM                                %s = alloc [128, 8, 64] in SBUF
 *     for %i { dma_copy(%h[%i, d0, d1], %a[d0, d1]) }        ==>    for %i { tensor_copy(%s[d0, %i, d1], %a[d0, d1]) }
 *     for %i { dma_copy(%b[d0, d1], %h[%i, d0, d1]) }               for %i { tensor_copy(%b[d0, d1], %s[d0, %i, d1]) }
 *
 * Values that are written and read in tiles of other sizes, or with their dimensions in another order, such as the heads of an
 * attention, lie in HBM.  A store and a load take 4 us, and each waits for the one before.  Where every access has the same dimension of
 * the buffer on the partitions, from the first one on, each partition only reads what it wrote.  Then engines copy it in a fraction
 * of the time.  A dimension of several tiles of 128 becomes two.  A load that transposes becomes a transpose on the Tensor engine.  The
 * copies are merged with what writes and reads later (rounded.c, combine.c, coalesce-transfers).
 *
 * Only if SBUF has room for the buffer beside all that it holds otherwise, and if no knob asks for HBM (infer-layout notes that in
 * nkipy.keeps_hbm).
 *
 * Runs at the end of linalg-to-nisa, before everything that merges instructions.  Linear in the uses of buffers in HBM.
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/access.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

enum {
  FREE_DIMS = 4,      /* of an access pattern of an engine */
  BYTES_MAX = 1 << 15 /* of a buffer in each partition */
};

/* One access to a buffer in HBM. */
struct visit {
  MlirOperation op;
  int operand;
  bool is_with_chip, is_turn; /* the other operand is in SBUF; it is loaded transposed */
  struct linear tile;         /* the number of the tile of 128 */
};

struct kept {
  MlirOperation alloc;
  MlirValue buffer;
  int rank, par; /* the dimension on the partitions */
  int64_t dims[NISA_RANK_MAX], tiles, bytes;
  int n_stores, n_loads; /* from SBUF and to SBUF */
  struct {
    struct visit *v;
    int n, cap;
  } visits;
};

/* ---- what agrees -------------------------------------------------------------------------------------------------- */

/* The only dimension of x's memref in which the partitions lie, in order; -1: there is none. */
static int partition_dim(const struct nisa_access *x, struct nisa_index *out) {
  const int rank = (int)mlirAffineMapGetNumResults(x->map);
  struct nisa_index index;
  int par = -1;

  if (x->par_dims != 1 || x->tile[0] > NISA_PARTITIONS || x->n_dims - 1 > FREE_DIMS)
    return -1;
  for (int r = 0; r < rank; r++) {
    if (!nisa_access_index(x, r, &index))
      return -1;
    if (!index.dim[0])
      continue;
    if (par >= 0 || index.dim[0] != 1)
      return -1;
    for (int d = 1; d < x->n_dims; d++)
      if (index.dim[d])
        return -1;
    par = r;
    *out = index;
  }
  return par;
}

/* Reads which tile of 128 the access begins with; false if it begins within one. */
static bool read_tile(const struct nisa_access *x, const struct nisa_index *i, struct linear *out) {
  *out = (struct linear){.constant = i->constant};
  for (int k = 0; k < x->n_indices; k++)
    if (i->sym[k] && !linear_add(out, x->indices[k], i->sym[k]))
      return false;
  if (out->constant % NISA_PARTITIONS)
    return false;
  out->constant /= NISA_PARTITIONS;
  for (int k = 0; k < out->n; k++) {
    if (out->term[k].factor % NISA_PARTITIONS)
      return false;
    out->term[k].factor /= NISA_PARTITIONS;
  }
  return true;
}

static bool depends_on_indices(const struct nisa_access *x, const struct nisa_index *i) {
  for (int k = 0; k < x->n_indices; k++)
    if (i->sym[k])
      return true;
  return false;
}

/* True if an engine can copy between them: it begins at the first partition, and the values do not change but by rounding. */
static bool can_copy(const struct nisa_access *on_chip, const struct nisa_access *in_hbm) {
  MlirType a = nisa_access_element(on_chip), b = nisa_access_element(in_hbm);
  struct nisa_index index;

  return partition_dim(on_chip, &index) == 0 && nisa_access_space(on_chip) == MEM_SBUF && !index.constant &&
         !depends_on_indices(on_chip, &index) && (mlirTypeEqual(a, b) || (mlirTypeIsAFloat(a) && mlirTypeIsAFloat(b)));
}

/* True if the Tensor engine can transpose what is loaded. */
static bool can_turn(const struct nisa_access *dst, const struct nisa_access *src) {
  return src->n_dims == 2 && dst->n_dims == 2 && dst->tile[0] <= NISA_PARTITIONS && dst->tile[1] == src->tile[0] &&
         dst->tile[0] == src->tile[1] && ln_passes_through(nisa_access_element(src)) &&
         mlirTypeEqual(nisa_access_element(src), nisa_access_element(dst));
}

/* Adds the access of op to the buffer; false if the buffer has to stay in HBM for it. */
static bool add_visit(struct pass_run *run, struct kept *k, MlirOperation op) {
  struct visit v = {.op = op, .operand = -1};
  struct nisa_index index;
  struct nisa_instr in;

  if (!nisa_read(op, &in, NULL) || nisa_keeps_order(op) ||
      (in.def->kind != NISA_DMA_COPY && in.def->kind != NISA_DMA_TRANSPOSE))
    return false;
  for (int o = 0; o < 2; o++)
    if (mlirValueEqual(in.operand[o].base, k->buffer)) {
      if (v.operand >= 0)
        return false;
      v.operand = o;
    }
  const struct nisa_access *x = &in.operand[v.operand], *other = &in.operand[1 - v.operand];
  const int par = partition_dim(x, &index);
  if (par < 0 || (k->visits.n && par != k->par) || !mlirTypeIsNull(x->type) || !read_tile(x, &index, &v.tile))
    return false;
  k->par = par;
  v.is_with_chip = mem_is_on_chip(nisa_access_space(other));
  v.is_turn = in.def->kind == NISA_DMA_TRANSPOSE;
  if (v.is_with_chip && (!can_copy(other, x) || !mlirTypeIsNull(other->type)))
    return false;
  if (v.is_turn && (!v.is_with_chip || !v.operand || !can_turn(other, x)))
    return false;
  k->n_stores += v.is_with_chip && !v.operand;
  k->n_loads += v.is_with_chip && v.operand;
  array_push(run->arena, &k->visits, v);
  return true;
}

static bool read_buffer(struct pass_run *run, MlirOperation alloc, struct kept *k) {
  *k = (struct kept){.alloc = alloc, .buffer = ir_result(alloc), .par = -1, .tiles = 1};
  MlirType type = mlirValueGetType(k->buffer);
  if (nisa_type_space(type) != MEM_HBM || (k->rank = ir_shape(k->buffer, NISA_RANK_MAX, k->dims)) >= NISA_RANK_MAX)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(k->buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!add_visit(run, k, mlirOpOperandGetOwner(u)))
      return false;
  if (!k->n_stores || !k->n_loads)
    return false;
  k->tiles = (k->dims[k->par] + NISA_PARTITIONS - 1) / NISA_PARTITIONS;
  k->bytes = k->tiles * nisa_element_bytes(mlirShapedTypeGetElementType(type));
  for (int d = 0; d < k->rank; d++)
    k->bytes *= d == k->par ? 1 : k->dims[d];
  return k->bytes > 0 && k->bytes <= BYTES_MAX;
}

/* ---- rewriting ---------------------------------------------------------------------------------------------------- */

static MlirValue allocate(struct kept *k) {
  MlirType type = mlirValueGetType(k->buffer);
  MlirContext ctx = mlirTypeGetContext(type);
  int64_t dims[NISA_RANK_MAX] = {k->dims[k->par] < NISA_PARTITIONS ? k->dims[k->par] : NISA_PARTITIONS};
  int rank = 1;

  if (k->tiles > 1)
    dims[rank++] = k->tiles;
  for (int d = 0; d < k->rank; d++)
    if (d != k->par)
      dims[rank++] = k->dims[d];
  if (rank == 1)
    dims[rank++] = 1;
  MlirType t =
      mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(type), rank, dims, nisa_space_attr(ctx, MEM_SBUF));
  MlirOperation made = nisa_create_alloc(mlirOperationGetLocation(k->alloc), t, 64);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(k->alloc), k->alloc, made);
  return ir_result(made);
}

/* The same elements in the buffer on the chip; false if they need too many indices. */
static bool access_on_chip(const struct kept *k, const struct nisa_access *x, const struct visit *v, MlirValue buffer,
                           struct nisa_access *out) {
  struct nisa_index at[NISA_RANK_MAX] = {{.dim = {1}}};
  MlirAffineExpr results[NISA_RANK_MAX];
  int rank = 1;

  *out = *x;
  out->base = buffer;
  out->n_indices = 0;
  if (k->tiles > 1) {
    at[rank].constant = v->tile.constant;
    for (int t = 0; t < v->tile.n; t++)
      if (!nisa_add_index(out, 0, at[rank].sym, v->tile.term[t].v, v->tile.term[t].factor))
        return false;
    rank++;
  }
  for (int d = 0; d < k->rank; d++) {
    struct nisa_index was;
    if (d == k->par)
      continue;
    (void)nisa_access_index(x, d, &was);
    at[rank] = was;
    memset(at[rank].sym, 0, sizeof at[rank].sym);
    const int first = out->n_indices;
    for (int s = 0; s < x->n_indices; s++)
      if (was.sym[s] && !nisa_add_index(out, first, at[rank].sym, x->indices[s], was.sym[s]))
        return false;
    rank++;
  }
  if (rank == 1)
    at[rank++] = (struct nisa_index){.constant = 0};
  MlirContext ctx = mlirAffineMapGetContext(x->map);
  for (int r = 0; r < rank; r++)
    results[r] = nisa_index_expr(ctx, out, &at[r]);
  out->map = mlirAffineMapGet(ctx, out->n_dims, out->n_indices, rank, results);
  return true;
}

/* Fills new[] with the instructions that take the place of the visits; false if there is one that cannot. */
static bool rewrite(const struct kept *k, MlirValue buffer, struct nisa_instr *new) {
  for (int n = 0; n < k->visits.n; n++) {
    const struct visit *v = &k->visits.v[n];
    (void)nisa_read(v->op, &new[n], NULL);
    const struct nisa_access x = new[n].operand[v->operand];
    if (!access_on_chip(k, &x, v, buffer, &new[n].operand[v->operand]))
      return false;
    if (v->is_with_chip && !v->is_turn) {
      new[n].def = nisa_op_def(NISA_TENSOR_COPY);
      new[n].engine = NISA_ENGINE_VECTOR;
    }
  }
  return true;
}

/* Releases the buffer after the last operation that uses it. */
static void release_after_last(MlirValue buffer) {
  MlirBlock block = mlirOperationGetBlock(ir_defining_op(buffer));
  MlirOperation last = {NULL};

  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = ir_ancestor_in(mlirOpOperandGetOwner(u), block);
    if (mlirOperationIsNull(last) || buffer_is_before(last, op))
      last = op;
  }
  mlirBlockInsertOwnedOperationAfter(block, last, nisa_create_release(mlirOperationGetLocation(last), buffer));
}

static void explain(struct pass_run *run, const struct kept *k, const struct nisa_instr *first) {
  struct remark *r = pass_remark(run, k->alloc, RULE_KEEP_ON_CHIP,
                                 "stays in SBUF, %" PRId64
                                 " bytes of each partition: every access has its dimension %d on the partitions",
                                 k->bytes, k->par);
  const int64_t elements = nisa_free_elements(&first->operand[0]);
  price_chosen(r, price_instructions_ns(run->target, SIM_COST_VECTOR_COPY, k->visits.n, elements));
  price_instead(r, "a store to HBM and loads from there",
                price_transfers_ns(run->target, k->visits.n, elements * nisa_partitions(&first->operand[0]) * 4, 512),
                "a transfer takes about 2 us to start, and the next one waits for it");
}

/* dst = src transposed, through PSUM. */
static void emit_turn(struct ln *ln, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  MlirContext ctx = ln->b.ctx;
  MlirType t = mlirMemRefTypeContiguousGet(nisa_access_element(src), 2, dst->tile, nisa_space_attr(ctx, MEM_PSUM));
  MlirValue buffer = ir_result(ln_insert(ln, nisa_create_alloc(ln->b.loc, t, 64)));
  const struct nisa_access psum = nisa_matrix(ctx, buffer, dst->tile[0], dst->tile[1]);

  ln_emit_turn(ln, &psum, src, src->tile[0]);
  ln_emit(ln, NISA_TENSOR_COPY, NISA_ENGINE_VECTOR, (struct nisa_access[]){*dst, psum}, NULL);
  ln_release(ln, &(struct ln_view){.base = buffer, .is_temp = true});
}

static void keep(struct ln *ln, MlirOperation alloc, struct ln_room *room) {
  struct pass_run *run = ln->run;
  struct kept k;

  if (!read_buffer(run, alloc, &k))
    return;
  struct nisa_instr *new = arena_new_array(run->arena, struct nisa_instr, (size_t)k.visits.n);
  MlirValue buffer = allocate(&k);
  if (!rewrite(&k, buffer, new) || !ln_takes_room(run, room, k.bytes)) {
    mlirOperationDestroy(ir_defining_op(buffer));
    return;
  }
  explain(run, &k, &new[0]);
  for (int n = 0; n < k.visits.n; n++) {
    MlirOperation op = k.visits.v[n].op;
    ln->op = op;
    ln->b = edit_before(run, op);
    memset(ln->said, 0, sizeof ln->said);
    if (k.visits.v[n].is_with_chip)
      pass_drop_remarks(run, op, RULE_ENGINE, k.visits.v[n].is_turn ? "dma_transpose " : "dma_copy ");
    if (k.visits.v[n].is_turn)
      emit_turn(ln, &new[n]);
    else if (k.visits.v[n].is_with_chip)
      (void)ln_emit(ln, NISA_TENSOR_COPY, NISA_ENGINE_VECTOR, new[n].operand, NULL);
    else
      (void)ln_insert(ln, nisa_create(&new[n], ln->b.loc, 0, NULL));
    mlirOperationDestroy(op);
  }
  release_after_last(buffer);
  mlirOperationDestroy(alloc);
}

void ln_keep_on_chip(struct ln *ln) {
  const struct ir_ops allocs = ir_collect_named(ln->run->arena, ln->run->module, "nisa.alloc");
  struct ln_room room = {.is_known = false};

  ln->n_identities = 0; /* those of the lowering may be gone */
  for (int k = 0; k < allocs.n; k++) {
    pass_step(ln->run, allocs.v[k], "keep-on-chip");
    keep(ln, allocs.v[k], &room);
  }
}
