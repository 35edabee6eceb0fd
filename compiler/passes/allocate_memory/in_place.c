/* in_place: sums are added up in one buffer where memory is scarce.
 *
 *     %a = alloc; %b = alloc in a loop                              %a = alloc
 *     tensor_tensor_arith(%b, %a, %x); release %a          ==>      tensor_tensor_arith(%a, %a, %x)
 *     … %b …; release %b                                            … %a …; release %a
 *
 * A sum of many terms has a buffer for each partial sum.  Where the buffers of a loop do not fit twice, engines wait for memory: they
 * write what another engine still reads.  With one buffer for all partial sums there is room for copies (copies.c).
 *
 * Safe because the instruction reads each element before it writes it, at the same place, and nothing reads %a after it.  Only whole
 * buffers of one block, of the same type, and only %b's one writer.  Linear in uses.
 */
#include <string.h>

#include "ir/query.h"
#include "passes/allocate_memory/allocate_memory.h"
#include "passes/lib/edit.h"

/* The buffer in SBUF that x is all of, if it is allocated in this block; null for others. */
static MlirOperation whole_of(const struct nisa_access *x, MlirBlock block) {
  int64_t dims[NISA_RANK_MAX];
  MlirOperation alloc = nisa_is_absent(x) || nisa_is_scalar(x) ? (MlirOperation){NULL} : ir_defining_op(x->base);

  if (mlirOperationIsNull(alloc) || !ir_is(alloc, "nisa.alloc") ||
      !mlirBlockEqual(mlirOperationGetBlock(alloc), block) || nisa_has_place_attr(alloc) ||
      !mlirAttributeIsNull(ir_attr(alloc, "address")) || nisa_access_space(x) != MEM_SBUF)
    return (MlirOperation){NULL};
  const int rank = ir_shape(x->base, NISA_RANK_MAX, dims);
  if (rank != x->n_dims || !mlirAffineMapIsIdentity(x->map) || memcmp(dims, x->tile, (size_t)rank * sizeof *dims))
    return (MlirOperation){NULL};
  return alloc;
}

/* Finds the release of the buffer.  False if an instruction uses it after op (is_source: before op), in another block, or more than
 * once writes it besides op. */
static bool is_free(MlirOperation alloc, MlirOperation op, bool is_source, MlirOperation *release) {
  *release = (MlirOperation){NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(alloc)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(op)) || !nisa_op_of(user))
      return false;
    if (ir_is(user, "nisa.release"))
      *release = user;
    else if (!mlirOperationEqual(user, op) && mlirOperationIsBeforeInBlock(op, user) == is_source)
      return false;
  }
  return !mlirOperationIsNull(*release);
}

static bool add_up(struct pass_run *run, MlirOperation op) {
  struct nisa_instr in;
  MlirOperation given, freed;

  if (!nisa_read(op, &in, NULL) ||
      (in.def->kind != NISA_TENSOR_TENSOR_ARITH && in.def->kind != NISA_SCALAR_TENSOR_TENSOR) || nisa_keeps_order(op))
    return false;
  MlirBlock block = mlirOperationGetBlock(op);
  MlirOperation to = whole_of(&in.operand[0], block);
  if (mlirOperationIsNull(to) || !is_free(to, op, false, &given))
    return false;
  for (int k = 1; k < in.def->n_operands; k++) {
    MlirOperation from = whole_of(&in.operand[k], block);
    if (mlirOperationIsNull(from) || mlirOperationEqual(from, to) ||
        !mlirTypeEqual(mlirValueGetType(ir_result(from)), mlirValueGetType(ir_result(to))) ||
        !is_free(from, op, true, &freed))
      continue;
    pass_step(run, op, "add-in-place");
    struct remark *r = pass_remark(run, op, RULE_IN_PLACE, "overwrites its operand: a buffer of %lld bytes less",
                                   (long long)nisa_type_bytes(mlirValueGetType(ir_result(to))));
    remark_cost(r, "0 bytes per partition");
    remark_reject_for(r, "a buffer of its own", NULL,
                      arena_printf(run->arena, "%lld bytes per partition",
                                   (long long)nisa_type_bytes(mlirValueGetType(ir_result(to)))),
                      "the loop's buffers do not fit into SBUF twice");
    mlirValueReplaceAllUsesOfWith(ir_result(to), ir_result(from));
    mlirOperationDestroy(freed);
    mlirOperationDestroy(to);
    return true;
  }
  return false;
}

/* The bytes of a partition of all buffers that the block allocates in SBUF. */
static int64_t bytes_of(MlirBlock block) {
  int64_t n = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "nisa.alloc") && nisa_type_space(mlirValueGetType(ir_result(op))) == MEM_SBUF)
      n += nisa_type_bytes(mlirValueGetType(ir_result(op)));
  return n;
}

void sums_in_place(struct pass_run *run, MlirOperation function, const struct nisa_machine *machine) {
  const struct ir_ops loops = ir_collect_named(run->arena, function, "scf.for");

  for (int k = 0; k < loops.n; k++) {
    MlirBlock block = ir_body(loops.v[k]);
    if (2 * bytes_of(block) <= machine->sbuf_bytes)
      continue;
    for (MlirOperation op = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(op); op = next) {
      next = mlirOperationGetNextInBlock(op);
      while (!mlirOperationIsNull(next) && ir_is(next, "nisa.release")) /* may go */
        next = mlirOperationGetNextInBlock(next);
      add_up(run, op);
    }
  }
}
