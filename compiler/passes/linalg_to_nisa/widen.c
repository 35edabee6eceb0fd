/* widen: two loads of neighbouring columns become one.
 *
 *     dma_copy(t<128| 8, 64>, x[i + d0, d1, d2])
 *     dma_copy(u<128| 8, 64>, x[i + d0, d1, d2 + 64])   ==>   dma_copy(w<128| 8, 128>, x[i + d0, d1, d2])
 *     op(t[d0, d1, d2]); op(u[d0, d1, d2])                    op(w[d0, d1, d2]); op(w[d0, d1, d2 + 64])
 *
 * A transfer takes a descriptor for each run of elements without a gap.  Runs of fewer than 512 bytes take about as long as ones
 * of 512, and those of both loads often close to a longer one.
 *
 * x is an argument that nothing writes; each buffer is filled by its load alone, all of it, and released in its block.  The new
 * buffer lives as long as both; the bytes that the second half lives longer are taken from what the program leaves of SBUF.
 *
 * Runs at the end of linalg-to-nisa, after repeated loads are gone (fold.c).  Linear in the loads and their uses.
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "base/index.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"
#include "passes/lib/price.h"

enum { SHORT_BYTES = 512 };

struct load {
  struct nisa_instr in;
  MlirOperation alloc, release;
  int64_t column; /* where its columns begin in the source */
  bool is_gone;   /* merged with another one */
};

struct widen {
  struct pass_run *run;
  struct ln_room room;
  struct table read_only; /* ln_is_read_only */
  struct index by_place;
  struct {
    struct load *v;
    int n, cap;
  } all;
};

/* ---- loads --------------------------------------------------------------------------------------------------------- */

static int last_of(const struct nisa_access *x) {
  return x->n_dims - 1;
}

/* True if x is all of its buffer, dimension by dimension. */
static bool is_whole(const struct nisa_access *x) {
  int64_t dims[NISA_RANK_MAX];
  const int rank = ir_shape(x->base, NISA_RANK_MAX, dims);
  if (rank != x->n_dims || !mlirAffineMapIsIdentity(x->map))
    return false;
  return !memcmp(dims, x->tile, (size_t)rank * sizeof *dims);
}

/* Reads where the columns begin: the last index of the source is the last dimension of the access plus a constant, and no other
 * index depends on that dimension. */
static bool read_column(const struct nisa_access *src, int64_t *out) {
  const int rank = (int)mlirAffineMapGetNumResults(src->map);
  struct nisa_index index = {0};

  for (int r = 0; r < rank; r++)
    if (!nisa_access_index(src, r, &index) || index.dim[last_of(src)] != (r == rank - 1))
      return false;
  *out = index.constant;
  for (int d = 0; d < last_of(src); d++)
    if (index.dim[d])
      return false;
  return true;
}

static bool read_load(struct widen *w, MlirOperation op, struct load *l) {
  *l = (struct load){.alloc = op};
  if (!nisa_read(op, &l->in, NULL) || l->in.def->kind != NISA_DMA_COPY)
    return false;
  const struct nisa_access *dst = &l->in.operand[0], *src = &l->in.operand[1];
  l->alloc = ln_own_alloc(dst->base, op);
  if (mlirOperationIsNull(l->alloc) || !ln_is_read_only(&w->read_only, src->base))
    return false;
  const struct ln_uses u = ln_uses_of(dst->base);
  l->release = u.release;
  if (!u.is_known || u.n_writers != 1 || mlirOperationIsNull(u.release) ||
      !mlirBlockEqual(mlirOperationGetBlock(u.release), mlirOperationGetBlock(op)))
    return false;
  return is_whole(dst) && src->n_dims == dst->n_dims && src->n_dims > 1 &&
         !memcmp(src->tile, dst->tile, (size_t)dst->n_dims * sizeof *dst->tile) && dst->par_dims == 1 &&
         mlirTypeEqual(nisa_access_element(src), nisa_access_element(dst)) && read_column(src, &l->column) &&
         dst->tile[last_of(dst)] * nisa_element_bytes(nisa_access_element(dst)) < SHORT_BYTES;
}

/* Of the source, of everything but the columns, and of the column where a load begins or ends. */
static uint64_t hash_place(const struct load *l, int64_t column, bool is_end) {
  const struct nisa_access *src = &l->in.operand[1];
  uint64_t h = hash_pointer(src->base.ptr) * 31 + (uint64_t)column * 2 + is_end;
  for (intptr_t r = 0; r < mlirAffineMapGetNumResults(src->map) - 1; r++)
    h = h * 31 + hash_pointer(mlirAffineMapGetResult(src->map, r).ptr);
  for (int k = 0; k < src->n_indices; k++)
    h = h * 31 + hash_pointer(src->indices[k].ptr);
  return h * 31 + hash_pointer(mlirOperationGetBlock(l->in.op).ptr);
}

/* True if both differ in their columns only. */
static bool have_same_rows(const struct load *a, const struct load *b) {
  const struct nisa_access *x = &a->in.operand[1], *y = &b->in.operand[1];
  const int rank = (int)mlirAffineMapGetNumResults(x->map);

  if (!mlirValueEqual(x->base, y->base) || x->n_dims != y->n_dims || x->n_indices != y->n_indices ||
      memcmp(x->tile, y->tile, (size_t)last_of(x) * sizeof *x->tile) || rank != mlirAffineMapGetNumResults(y->map) ||
      !mlirBlockEqual(mlirOperationGetBlock(a->in.op), mlirOperationGetBlock(b->in.op)))
    return false;
  for (int k = 0; k < x->n_indices; k++)
    if (!mlirValueEqual(x->indices[k], y->indices[k]))
      return false;
  for (int r = 0; r < rank - 1; r++)
    if (!mlirAffineExprEqual(mlirAffineMapGetResult(x->map, r), mlirAffineMapGetResult(y->map, r)))
      return false;
  MlirAffineExpr shift = mlirAffineConstantExprGet(mlirAffineMapGetContext(x->map), b->column - a->column);
  MlirAffineExpr last = mlirAffineAddExprGet(mlirAffineMapGetResult(x->map, rank - 1), shift);
  return mlirAffineExprEqual(last, mlirAffineMapGetResult(y->map, rank - 1));
}

/* ---- merging ------------------------------------------------------------------------------------------------------- */

/* Lets an operand of op read the wide buffer, `shift` columns further; it is operand number `at` of the operation. */
static void read_wide(struct pass_run *run, MlirOperation op, const char *name, const struct nisa_access *x,
                      intptr_t at, MlirValue wide, int64_t shift) {
  MlirAffineExpr results[NISA_RANK_MAX];
  const intptr_t rank = mlirAffineMapGetNumResults(x->map);

  for (intptr_t r = 0; r < rank; r++)
    results[r] = mlirAffineMapGetResult(x->map, r);
  results[rank - 1] = mlirAffineAddExprGet(results[rank - 1], mlirAffineConstantExprGet(run->ir->ctx, shift));
  MlirAffineMap map = mlirAffineMapGet(run->ir->ctx, mlirAffineMapGetNumDims(x->map),
                                       mlirAffineMapGetNumSymbols(x->map), rank, results);
  mlirOperationSetOperand(op, at, wide);
  ir_set_attr(op, arena_printf(run->arena, "%s_ap", name), mlirAffineMapAttrGet(map));
}

/* Lets the readers of a buffer read the wide one, `shift` columns further.  They remain the operations that they are: transfers
 * among them may be looked at later. */
static void read_instead(struct pass_run *run, MlirValue buffer, MlirValue wide, int64_t shift) {
  struct nisa_instr in;

  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirValueGetFirstUse(buffer)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    intptr_t at = 0;
    (void)nisa_read(op, &in, NULL);
    for (int k = 0; k < in.def->n_operands; k++) {
      const struct nisa_access *x = &in.operand[k];
      if (nisa_is_absent(x))
        continue;
      if (mlirValueEqual(x->base, buffer))
        read_wide(run, op, in.def->operand[k].name, x, at, wide, shift);
      at += 1 + x->n_indices;
    }
  }
}

/* Makes a buffer for both loads before that of the first one.  Returns its access, all of it. */
static struct nisa_access new_buffer(const struct load *first, int64_t columns) {
  struct nisa_access x = first->in.operand[0];
  MlirType t = mlirValueGetType(x.base);
  MlirAttribute alignment = ir_attr(first->alloc, "alignment");
  const int64_t bytes = mlirAttributeIsNull(alignment) ? 0 : mlirIntegerAttrGetValueInt(alignment);

  x.tile[last_of(&x)] = columns;
  t = mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(t), x.n_dims, x.tile, mlirMemRefTypeGetMemorySpace(t));
  MlirOperation alloc = nisa_create_alloc(mlirOperationGetLocation(first->alloc), t, bytes);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(first->alloc), first->alloc, alloc);
  x.base = mlirOperationGetResult(alloc, 0);
  return x;
}

/* Loads both where the first one stands. */
static void merge(struct widen *w, struct load *first, struct load *second) {
  const struct load *lo = first->column < second->column ? first : second, *hi = lo == first ? second : first;
  const int64_t n_lo = lo->in.operand[0].tile[last_of(&lo->in.operand[0])],
                n_hi = hi->in.operand[0].tile[last_of(&hi->in.operand[0])];
  MlirLocation both[] = {mlirOperationGetLocation(lo->in.op), mlirOperationGetLocation(hi->in.op)};
  MlirLocation loc = mlirLocationFusedGet(w->run->ir->ctx, 2, both, mlirAttributeGetNull());
  MlirValue a = lo->in.operand[0].base, b = hi->in.operand[0].base;
  struct nisa_instr in = lo->in;
  const int64_t bytes = nisa_partitions(&in.operand[0]) * nisa_free_elements(&in.operand[0]) *
                        nisa_element_bytes(nisa_access_element(&in.operand[0])),
                run = n_lo * nisa_element_bytes(nisa_access_element(&in.operand[0]));

  in.operand[0] = new_buffer(first, n_lo + n_hi);
  in.operand[1].tile[last_of(&in.operand[1])] = n_lo + n_hi;
  struct remark *r = pass_remark(w->run, second->in.op, RULE_WIDEN_LOAD,
                                 "loaded with its neighbour, %" PRId64 " columns", n_lo + n_hi);
  price_chosen(r, price_transfer_ns(w->run->target, bytes / n_lo * (n_lo + n_hi), run / n_lo * (n_lo + n_hi)));
  price_instead(r, "two loads", price_transfers_ns(w->run->target, 2, bytes, run), "each would have short descriptors");
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(first->in.op), first->in.op,
                                      nisa_create(&in, loc, 0, NULL));
  mlirOperationDestroy(first->in.op);
  mlirOperationDestroy(second->in.op);
  MlirOperation end = buffer_is_before(lo->release, hi->release) ? hi->release : lo->release;
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(end), end,
                                      nisa_create_release(mlirOperationGetLocation(end), in.operand[0].base));
  mlirOperationDestroy(lo->release);
  mlirOperationDestroy(hi->release);
  read_instead(w->run, a, in.operand[0].base, 0);
  read_instead(w->run, b, in.operand[0].base, n_lo);
  mlirOperationDestroy(lo->alloc);
  mlirOperationDestroy(hi->alloc);
  first->is_gone = second->is_gone = true;
}

static bool may_merge(struct widen *w, const struct load *first, const struct load *second) {
  if (first->is_gone || !have_same_rows(first, second))
    return false;
  const int64_t bytes = nisa_type_bytes(mlirValueGetType(first->in.operand[0].base)) +
                        nisa_type_bytes(mlirValueGetType(second->in.operand[0].base));
  return ln_takes_room(w->run, &w->room, bytes);
}

static int64_t end_of(const struct load *l) {
  return l->column + l->in.operand[0].tile[last_of(&l->in.operand[0])];
}

/* Merges the load, the last of the list, with one that ends where it begins, or begins where it ends. */
static bool merge_with_earlier(struct widen *w) {
  struct load *l = &w->all.v[w->all.n - 1];
  for (int is_end = 0; is_end < 2; is_end++) {
    const int64_t at = is_end ? l->column : end_of(l);
    for (struct index_probe p = index_probe(&w->by_place, (uint32_t)hash_place(l, at, is_end)); index_next(&p);) {
      struct load *e = &w->all.v[p.entry];
      if ((is_end ? end_of(e) : e->column) == at && may_merge(w, e, l)) {
        merge(w, e, l);
        return true;
      }
    }
  }
  return false;
}

int ln_widen_loads(struct pass_run *run) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "nisa.dma_copy");
  struct widen w = {.run = run, .read_only.arena = run->arena, .by_place.arena = run->arena};
  struct load l;
  int n = 0;

  for (int k = 0; k < copies.n; k++) {
    pass_step(run, copies.v[k], "widen-load");
    if (!read_load(&w, copies.v[k], &l))
      continue;
    array_push(run->arena, &w.all, l);
    if (merge_with_earlier(&w)) {
      n++;
      continue;
    }
    index_add(&w.by_place, (uint32_t)hash_place(&l, l.column, false), w.all.n - 1);
    index_add(&w.by_place, (uint32_t)hash_place(&l, end_of(&l), true), w.all.n - 1);
  }
  return n;
}
