/* inserts: chains of insertions before the analysis.
 *
 * Long chains become copies into one buffer.
 *
 *     %t0 = linalg.fill …                                       %m = bufferization.to_buffer %t0
 *     %t1 = tensor.insert_slice %a into %t0[0, 0] [1, 64] …     %v = memref.subview %m[0, 0] [1, 64] …
 *     %t2 = tensor.insert_slice %b into %t1[1, 0] [1, 64] …     bufferization.materialize_in_destination %a in %v
 *     …                                                   ==>   …
 *     use of %tn                                                %t = bufferization.to_tensor %m
 *                                                               use of %t
 *
 * All values of such a chain share a buffer, and upstream's analysis compares every read of the buffer with every
 * write: its time grows with the cube of the chain's length, to half a minute for 129 rows.  Here the answer is known:
 * nothing but the next insertion reads a value of the chain, so each insertion is in place.  The copies are the same as
 * upstream's.
 *
 * The chain begins with a tensor of its own, a fill or an undefined one.  Short chains are left to upstream.
 *
 * The beginning of a chain that two chains share, such as that of np.concatenate([x, h]) and np.concatenate([x, r * h])
 * after CSE, is repeated for each of them:
 *
 *     %t1 = tensor.insert_slice %x into %empty …                %t1 = tensor.insert_slice %x into %empty …
 *     %t2 = tensor.insert_slice %h into %t1 …            ==>    %t2 = tensor.insert_slice %h into %t1 …
 *     %u2 = tensor.insert_slice %rh into %t1 …                  %u1 = tensor.insert_slice %x into %empty_1 …
 *                                                               %u2 = tensor.insert_slice %rh into %u1 …
 *
 * Otherwise upstream copies the whole tensor, also the part that nothing has written; to write %x twice moves less.
 */
#include "ir/structured.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"
#include "passes/one_shot_bufferize/inserts.h"

enum { LONG = 24 };

/* The insertion into v that is v's only use, in v's block; or null. */
static MlirOperation next_of(MlirOperation op) {
  MlirValue v = mlirOperationGetResult(op, 0);
  if (!ir_has_one_use(v))
    return (MlirOperation){NULL};
  MlirOpOperand u = mlirValueGetFirstUse(v);
  MlirOperation next = mlirOpOperandGetOwner(u);
  const bool is_next = ir_is(next, "tensor.insert_slice") && mlirOpOperandGetOperandNumber(u) == 1 &&
                       mlirOperationGetNumOperands(next) == 2 && /* its place is constant */
                       mlirBlockEqual(mlirOperationGetBlock(next), mlirOperationGetBlock(op));
  return is_next ? next : (MlirOperation){NULL};
}

static bool is_fresh(MlirOperation op) {
  if (ir_is(op, "linalg.fill") && mlirOperationGetNumResults(op) == 1)
    op = ir_defining_op(mlirOperationGetOperand(op, 1));
  return !mlirOperationIsNull(op) && ir_is(op, "tensor.empty");
}

/* Sets drop[d] for the dimensions of extent 1 that the inserted tensor does not have.  False if the steps are not 1. */
static bool find_part(MlirOperation insert, int64_t *offset, int64_t *size, bool *drop) {
  MlirAttribute offsets = ir_attr(insert, "static_offsets"), sizes = ir_attr(insert, "static_sizes"),
                strides = ir_attr(insert, "static_strides");
  MlirType small = mlirValueGetType(mlirOperationGetOperand(insert, 0));
  const intptr_t rank = mlirDenseArrayGetNumElements(offsets), kept = mlirShapedTypeGetRank(small);
  intptr_t at = 0;
  if (rank > IR_MEMREF_RANK_MAX)
    return false;
  for (intptr_t d = 0; d < rank; d++) {
    offset[d] = mlirDenseI64ArrayGetElement(offsets, d);
    size[d] = mlirDenseI64ArrayGetElement(sizes, d);
    drop[d] = at == kept || mlirShapedTypeGetDimSize(small, at) != size[d];
    at += !drop[d];
    if (mlirDenseI64ArrayGetElement(strides, d) != 1 || (drop[d] && size[d] != 1))
      return false;
  }
  return at == kept;
}

static bool is_simple(MlirOperation insert) {
  int64_t offset[IR_MEMREF_RANK_MAX], size[IR_MEMREF_RANK_MAX];
  bool drop[IR_MEMREF_RANK_MAX];
  return find_part(insert, offset, size, drop);
}

/* Copies the inserted tensor into its part of the buffer. */
static void write_part(struct pass_run *run, MlirOperation insert, MlirValue buffer) {
  int64_t offset[IR_MEMREF_RANK_MAX], size[IR_MEMREF_RANK_MAX];
  bool drop[IR_MEMREF_RANK_MAX];
  struct ir_builder b = edit_before(run, insert);
  if (!find_part(insert, offset, size, drop))
    return;
  const struct memrefs_part part = {.offset = offset, .size = size, .drop = drop};
  MlirValue operands[] = {mlirOperationGetOperand(insert, 0), memrefs_subview(&b, buffer, &part)};
  MlirNamedAttribute writable = ir_named(&b, "writable", mlirUnitAttrGet(b.ctx));
  ir_op0_with(&b, "bufferization.materialize_in_destination", 2, operands, 1, &writable);
}

static void write_chain(struct pass_run *run, MlirOperation first, MlirOperation last) {
  MlirValue start = mlirOperationGetOperand(first, 1);
  MlirType t = mlirValueGetType(start);
  int64_t dims[IR_MEMREF_RANK_MAX];
  const int rank = (int)mlirShapedTypeGetRank(t);
  for (int d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  struct ir_builder b = edit_before(run, first);
  MlirType memref = mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(t), rank, dims, mlirAttributeGetNull());
  MlirValue buffer = ir_op1(&b, "bufferization.to_buffer", memref, 1, &start);
  for (MlirOperation op = first;; op = next_of(op)) {
    write_part(run, op, buffer);
    if (mlirOperationEqual(op, last))
      break;
  }
  b = edit_before(run, last);
  MlirNamedAttribute attrs[] = {ir_named(&b, "restrict", mlirUnitAttrGet(b.ctx)),
                                ir_named(&b, "writable", mlirUnitAttrGet(b.ctx))};
  MlirValue written = ir_op1_with(&b, "bufferization.to_tensor", t, 1, &buffer, 2, attrs);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(last, 0), written);
  for (MlirOperation op = last; !mlirOperationEqual(op, ir_defining_op(start));) {
    MlirOperation before = ir_defining_op(mlirOperationGetOperand(op, 1));
    mlirOperationDestroy(op);
    op = before;
  }
}

/* ---- shared beginnings ---------------------------------------------------------------------------------- */

static int64_t elements_of(MlirType t) {
  int64_t n = 1;
  for (intptr_t d = 0; d < mlirShapedTypeGetRank(t); d++)
    n *= mlirShapedTypeGetDimSize(t, d);
  return n;
}

/* The number of insertions in the chain of constant places from an undefined tensor to v, if they leave a part of it
 * undefined; 0 otherwise.  Overlaps count twice, so a chain may pass for a whole tensor: upstream's copy is right there. */
static int begun_by(MlirValue v) {
  int64_t undefined = elements_of(mlirValueGetType(v));
  for (int n = 0; n < LONG; n++) {
    MlirOperation op = ir_defining_op(v);
    if (mlirOperationIsNull(op))
      return 0;
    if (ir_is(op, "tensor.empty"))
      return undefined > 0 ? n : 0;
    if (!ir_is(op, "tensor.insert_slice") || mlirOperationGetNumOperands(op) != 2)
      return 0;
    undefined -= elements_of(mlirValueGetType(mlirOperationGetOperand(op, 0)));
    v = mlirOperationGetOperand(op, 1);
  }
  return 0;
}

/* Gives insertion `user` a copy of the n insertions, and of the undefined tensor, that its chain begins with. */
static void repeat_beginning(MlirOperation user, int n) {
  MlirOperation at = user;
  for (int k = 0; k <= n; k++) {
    MlirOperation own = mlirOperationClone(ir_defining_op(mlirOperationGetOperand(at, 1)));
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(at), at, own);
    mlirOperationSetOperand(at, 1, mlirOperationGetResult(own, 0));
    at = own;
  }
}

void bufferize_shared_beginnings(struct pass_run *run) {
  struct ir_ops inserts = ir_collect_named(run->arena, run->module, "tensor.insert_slice");
  for (int k = 0; k < inserts.n; k++) {
    MlirValue into = mlirOperationGetOperand(inserts.v[k], 1);
    const int n = ir_has_one_use(into) ? 0 : begun_by(into);
    if (n)
      repeat_beginning(inserts.v[k], n);
  }
}

/* ---- long chains -------------------------------------------------------------------------------------------- */

void bufferize_long_chains(struct pass_run *run) {
  struct ir_ops inserts = ir_collect_named(run->arena, run->module, "tensor.insert_slice");
  /* the first of a chain comes before the others, which are destroyed with it: chains are found before they change */
  struct chain {
    MlirOperation first, last;
  } *chains = arena_new_array(run->arena, struct chain, (size_t)inserts.n);
  int n = 0;
  for (int k = 0; k < inserts.n; k++) {
    MlirOperation op = inserts.v[k], start = ir_defining_op(mlirOperationGetOperand(op, 1));
    int length = 0;
    if (mlirOperationIsNull(start) || !is_fresh(start) ||
        !mlirOperationEqual(next_of(start), op)) /* the chain's tensor has another reader */
      continue;
    for (MlirOperation i = op; !mlirOperationIsNull(i) && is_simple(i); i = next_of(i), length++)
      chains[n] = (struct chain){op, i};
    n += length >= LONG;
  }
  for (int k = 0; k < n; k++)
    write_chain(run, chains[k].first, chains[k].last);
}
