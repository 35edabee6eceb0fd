/* in_place: what is copied on the chip only to be read is read where it is.
 *
 *     tensor_copy(%t[d0, d1, 0, d2], %s[d0, d1, %i, d2])
 *     matmul(…, moving = %t[d0, %j, 0, d1])                   ==>   matmul(…, moving = %s[d0, %j, %i, d1])
 *
 * Such copies are left where a value is written in other tiles than it is read in (linalg_to_nisa/keep.c).  The copy fills all of %t, whose
 * dimensions are its own, one by one, and %s lies on the same partitions.  %s is complete before the operation of its block that has the copy,
 * so that it is the same wherever %t is read.  Transfers keep their copy: their descriptors would be shorter.
 *
 * Linear in the uses of the buffers, and for each copy that reads a copy in the number of copies. */
#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"
#include "passes/lib/price.h"

struct in_place {
  struct nisa_instr copy;
  MlirOperation alloc, release; /* of what the copy fills */
  MlirOperation source, last;   /* the allocation of what it reads, and its release */
  int dim[NISA_RANK_MAX];       /* the dimension of the copy in each one of what it fills; -1: its extent is 1 */
  struct nisa_index index[NISA_RANK_MAX]; /* of the copy's source */
  int rank;                               /* of the source */
};

static bool is_buffer(MlirValue v, MlirOperation *alloc) {
  *alloc = ir_defining_op(v);
  return !mlirOperationIsNull(*alloc) && ir_is(*alloc, "nisa.alloc") &&
         nisa_type_space(mlirValueGetType(v)) == MEM_SBUF;
}

/* Reads which dimension of the copy each dimension of what it fills is; false if it does not fill all of it. */
static bool read_dims(struct in_place *p, const struct nisa_access *dst) {
  int64_t dims[NISA_RANK_MAX];
  const int rank = ir_shape(dst->base, NISA_RANK_MAX, dims);

  if (rank > NISA_RANK_MAX || dst->n_indices || dst->par_dims != 1)
    return false;
  for (int r = 0; r < rank; r++) {
    struct nisa_index i;
    if (!nisa_access_index(dst, r, &i) || i.constant)
      return false;
    p->dim[r] = -1;
    for (int d = 0; d < dst->n_dims; d++) {
      if (!i.dim[d])
        continue;
      if (i.dim[d] != 1 || p->dim[r] >= 0 || dst->tile[d] != dims[r])
        return false;
      p->dim[r] = d;
    }
    if (p->dim[r] < 0 && dims[r] != 1)
      return false;
  }
  return p->dim[0] == 0;
}

/* Writes each index of the source by the dimensions of dst: one dimension of the source may be several of them.  False if they do not fit
 * together. */
static bool read_source_by(struct in_place *p, const struct nisa_access *dst, const struct nisa_access *src) {
  struct nisa_index was;
  int d = 0;

  p->rank = (int)mlirAffineMapGetNumResults(src->map);
  for (int r = 0; r < p->rank; r++) {
    if (!nisa_access_index(src, r, &was))
      return false;
    p->index[r] = was;
    for (int k = 0; k < NISA_TILE_MAX; k++)
      p->index[r].dim[k] = 0;
  }
  for (int k = 0; k < src->n_dims; k++) {
    const int first = d;
    int64_t n = 1;
    while (d < dst->n_dims && n < src->tile[k])
      n *= dst->tile[d++];
    if (n != src->tile[k])
      return false;
    if (n == 1 && d < dst->n_dims && dst->tile[d] == 1)
      d++;
    for (int r = 0; r < p->rank; r++) {
      (void)nisa_access_index(src, r, &was);
      int64_t by = was.dim[k];
      for (int e = d - 1; e >= first; e--) {
        p->index[r].dim[e] = by;
        by *= dst->tile[e];
      }
    }
  }
  while (d < dst->n_dims && dst->tile[d] == 1)
    d++;
  return d == dst->n_dims;
}

static bool read_copy(struct in_place *p, MlirOperation op) {
  if (!nisa_read(op, &p->copy, NULL) || nisa_keeps_order(op))
    return false;
  const struct nisa_access *dst = &p->copy.operand[0], *src = &p->copy.operand[1];
  if (!is_buffer(dst->base, &p->alloc) || !is_buffer(src->base, &p->source) || mlirValueEqual(dst->base, src->base) ||
      !mlirBlockEqual(mlirOperationGetBlock(p->alloc), mlirOperationGetBlock(op)) ||
      !mlirTypeEqual(nisa_access_element(dst), nisa_access_element(src)) || !mlirTypeIsNull(dst->type) ||
      !mlirTypeIsNull(src->type) || src->par_dims != 1 || src->tile[0] != dst->tile[0] || !read_dims(p, dst) ||
      !read_source_by(p, dst, src))
    return false;
  for (int r = 0; r < p->rank; r++)
    if ((p->index[r].dim[0] != 0) != (r == 0))
      return false;
  const struct nisa_index *first = &p->index[0];
  if (first->dim[0] != 1 || first->constant)
    return false;
  for (int k = 0; k < src->n_indices; k++)
    if (first->sym[k])
      return false;
  return true;
}

/* to += by * from, an index of x; `to` is one of `out`, whose indices are those from `first` on. */
static bool add(struct nisa_index *to, int64_t by, const struct nisa_index *from, const struct nisa_access *x,
                int first, struct nisa_access *out) {
  to->constant += by * from->constant;
  for (int d = 0; d < NISA_TILE_MAX; d++)
    to->dim[d] += by * from->dim[d];
  for (int k = 0; k < x->n_indices; k++)
    if (from->sym[k] && !nisa_add_index(out, first, to->sym, x->indices[k], by * from->sym[k]))
      return false;
  return true;
}

/* What x reads of the copy, where the copy took it from; false if the access has too many indices. */
static bool compose(const struct in_place *p, const struct nisa_access *x, struct nisa_access *out) {
  const struct nisa_access *src = &p->copy.operand[1];
  MlirContext ctx = mlirAffineMapGetContext(x->map);
  MlirAffineExpr results[NISA_RANK_MAX];
  const int rank = (int)mlirAffineMapGetNumResults(x->map);

  *out = *x;
  out->base = src->base;
  out->n_indices = 0;
  for (int r = 0; r < p->rank; r++) {
    struct nisa_index i = {0}, own = p->index[r];
    const int first = out->n_indices;
    for (int d = 0; d < NISA_TILE_MAX; d++)
      own.dim[d] = 0;
    if (!add(&i, 1, &own, src, first, out))
      return false;
    for (int q = 0; q < rank; q++) {
      struct nisa_index at;
      if (p->dim[q] < 0 || !p->index[r].dim[p->dim[q]])
        continue;
      if (!nisa_access_index(x, q, &at) || !add(&i, p->index[r].dim[p->dim[q]], &at, x, first, out))
        return false;
    }
    results[r] = nisa_index_expr(ctx, out, &i);
  }
  out->map = mlirAffineMapGet(ctx, out->n_dims, out->n_indices, p->rank, results);
  return true;
}

/* True if the instruction reads what the copy fills, in a way in which it can read the source. */
static bool is_reader(struct in_place *p, MlirOperation op) {
  MlirValue t = p->copy.operand[0].base;
  struct nisa_instr in;
  struct nisa_access out;

  if (!nisa_read(op, &in, NULL) || nisa_keeps_order(op) || in.engine == NISA_ENGINE_DMA)
    return false;
  for (int k = 0; k < in.def->n_operands; k++) {
    if (nisa_is_absent(&in.operand[k]) || !mlirValueEqual(in.operand[k].base, t))
      continue;
    if (in.def->operand[k].writes || !nisa_is_data(&in.operand[k]) || !mlirTypeIsNull(in.operand[k].type) ||
        !compose(p, &in.operand[k], &out))
      return false;
  }
  return true;
}

/* True if nothing but the copy writes %t, and all others can read the source. */
static bool read_users(struct in_place *p) {
  MlirValue t = p->copy.operand[0].base;

  p->release = (MlirOperation){NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(t); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (mlirOperationEqual(op, p->copy.op))
      continue;
    if (ir_is(op, "nisa.release"))
      p->release = op;
    else if (!is_reader(p, op))
      return false;
  }
  return !mlirOperationIsNull(p->release) &&
         mlirBlockEqual(mlirOperationGetBlock(p->release), mlirOperationGetBlock(p->copy.op));
}

/* True if the source is complete before the operation of its block that has the copy, and not released before the last reader; or it may
 * be released later, because it is no larger than %t. */
static bool is_complete(struct in_place *p) {
  MlirValue s = p->copy.operand[1].base;
  MlirBlock block = mlirOperationGetBlock(p->source);
  MlirOperation at = ir_ancestor_in(p->copy.op, block);
  struct nisa_instr in;

  p->last = (MlirOperation){NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(s); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, block);
    if (ir_is(op, "nisa.release")) {
      p->last = op;
      continue;
    }
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, s) &&
          (mlirOperationEqual(here, at) || !buffer_is_before(here, at)))
        return false;
  }
  if (mlirOperationIsNull(p->last) || !mlirBlockEqual(mlirOperationGetBlock(p->last), block))
    return false;
  MlirOperation end = ir_ancestor_in(p->release, block);
  return buffer_is_before(end, p->last) ||
         nisa_type_bytes(mlirValueGetType(s)) <= nisa_type_bytes(mlirValueGetType(p->copy.operand[0].base));
}

/* Puts an instruction that reads the source in the place of op, which may be a copy that is looked at later. */
static void read_source(struct pass_run *run, const struct in_place *p, MlirOperation op, struct ir_ops *later) {
  MlirValue t = p->copy.operand[0].base;
  struct nisa_instr in;

  if (!nisa_read(op, &in, NULL))
    return;
  for (int k = 0; k < in.def->n_operands; k++)
    if (!nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, t)) {
      const struct nisa_access x = in.operand[k];
      (void)compose(p, &x, &in.operand[k]);
    }
  MlirOperation made = nisa_create_like(run->arena, &in, op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, made);
  for (int k = 0; k < later->n && in.def->kind == NISA_TENSOR_COPY; k++)
    if (mlirOperationEqual(later->v[k], op))
      later->v[k] = made;
  mlirOperationDestroy(op);
}

static void try_in_place(struct pass_run *run, MlirOperation copy, struct ir_ops *later) {
  struct in_place p;

  if (!read_copy(&p, copy) || !read_users(&p) || !is_complete(&p))
    return;
  MlirValue t = p.copy.operand[0].base;
  struct remark *r = pass_remark(run, copy, RULE_READ_IN_PLACE, "read where it is, without a copy");
  price_chosen(r, 0);
  price_instead(r, "the copy",
                price_instructions_ns(run->target, SIM_COST_VECTOR_COPY, 1, nisa_free_elements(&p.copy.operand[0])),
                "its readers would wait for it");
  MlirBlock block = mlirOperationGetBlock(p.source);
  MlirOperation end = ir_ancestor_in(p.release, block);
  if (!buffer_is_before(end, p.last))
    mlirOperationMoveAfter(p.last, end);
  mlirOperationDestroy(copy);
  mlirOperationDestroy(p.release);
  for (MlirOpOperand u = mlirValueGetFirstUse(t); !mlirOpOperandIsNull(u); u = mlirValueGetFirstUse(t))
    read_source(run, &p, mlirOpOperandGetOwner(u), later);
  mlirOperationDestroy(p.alloc);
}

void coalesce_read_in_place(struct pass_run *run) {
  const struct ir_ops copies = ir_collect_named(run->arena, run->module, "nisa.tensor_copy");
  for (int k = 0; k < copies.n; k++) {
    struct ir_ops later = {.v = copies.v + k + 1, .n = copies.n - k - 1};
    pass_step(run, copies.v[k], "read-in-place");
    try_in_place(run, copies.v[k], &later);
  }
}
