/* rounded: what is only read to be copied is written where the copy goes.
 *
 *     for … { tensor_copy(t[j], psum) }                    for … { tensor_copy(y[j], psum) }
 *     for … { tensor_copy(y[j], t[j]) }            ==>
 *
 * t is f32 and y any float, both of one shape and in SBUF; only this copy writes y and reads t, each element to the same
 * place.  The writers of t are done before the copy begins.  Engines compute in f32 and round when they write, so that
 * rounding happens once in both forms.  combine.c does this for one writer in the block of the copy.
 *
 * Linear in the uses of buffers. */
#include "mlir-c/BuiltinTypes.h"

#include "passes/linalg_to_nisa/linalg_to_nisa.h"

static bool is_float(MlirType t) {
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

static MlirType element_of(MlirValue buffer) {
  return mlirShapedTypeGetElementType(mlirValueGetType(buffer));
}

static bool have_one_shape(MlirValue x, MlirValue y) {
  int64_t a[NISA_RANK_MAX], b[NISA_RANK_MAX];
  const int rank = ir_shape(x, NISA_RANK_MAX, a);
  if (rank > NISA_RANK_MAX || ir_shape(y, NISA_RANK_MAX, b) != rank)
    return false;
  for (int d = 0; d < rank; d++)
    if (a[d] != b[d])
      return false;
  return true;
}

bool ln_rounds_when_it_writes(const struct nisa_instr *in) {
  switch (in->def->kind) {
  case NISA_TENSOR_COPY:
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_SCALAR_ARITH:
  case NISA_SCALAR_TENSOR_TENSOR:
  case NISA_ACTIVATION:
    return true;
  default:
    return false;
  }
}

struct passing {
  MlirOperation alloc, release, copy;
  MlirValue t, y;
  int n_writers;
};

/* Notes a use of t.  False if it is of another kind. */
static bool note_use(struct passing *p, MlirOperation op) {
  struct nisa_instr in;

  if (!nisa_read(op, &in, NULL))
    return false;
  if (in.def->kind == NISA_RELEASE) {
    p->release = op;
    return true;
  }
  int uses = 0;
  for (int k = 0; k < in.def->n_operands; k++)
    uses += !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, p->t);
  if (uses != 1)
    return false;
  if (mlirValueEqual(in.operand[0].base, p->t)) {
    p->n_writers++;
    return ln_rounds_when_it_writes(&in) && mlirTypeIsAF32(nisa_access_element(&in.operand[0]));
  }
  if (in.def->kind != NISA_TENSOR_COPY || !mlirOperationIsNull(p->copy) ||
      !ln_same_access(&in.operand[0], &in.operand[1]))
    return false;
  p->copy = op;
  p->y = in.operand[0].base;
  return true;
}

/* True if only the copy writes y, and y is allocated beside t. */
static bool is_free(const struct passing *p) {
  MlirOperation def = ir_defining_op(p->y);
  struct nisa_instr in;

  if (mlirOperationIsNull(def) || !ir_is(def, "nisa.alloc") || nisa_type_space(mlirValueGetType(p->y)) != MEM_SBUF ||
      !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(p->alloc)) || !is_float(element_of(p->y)) ||
      !have_one_shape(p->t, p->y))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(p->y); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (mlirOperationEqual(op, p->copy))
      continue;
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, p->y))
        return false;
  }
  return true;
}

/* True if all of t is written before the operation of its block that has the copy, and y is not used before that. */
static bool is_in_order(const struct passing *p) {
  MlirBlock block = mlirOperationGetBlock(p->alloc);
  MlirOperation last = ir_ancestor_in(p->copy, block);

  for (MlirOpOperand u = mlirValueGetFirstUse(p->t); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (mlirOperationEqual(op, p->copy) || mlirOperationEqual(op, p->release))
      continue;
    MlirOperation here = ir_ancestor_in(op, block);
    if (mlirOperationIsNull(here) || mlirOperationEqual(here, last) || !mlirOperationIsBeforeInBlock(here, last))
      return false;
  }
  return true;
}

/* Removes op, and the loops around it that have nothing else to do. */
static void remove_with_loops(MlirOperation op, MlirBlock upto) {
  while (!mlirBlockEqual(mlirOperationGetBlock(op), upto)) {
    MlirOperation loop = mlirOperationGetParentOperation(op);
    bool is_idle = ir_is(loop, "scf.for") && !mlirOperationGetNumResults(loop);
    for (MlirOperation x = mlirBlockGetFirstOperation(mlirOperationGetBlock(op)); is_idle && !mlirOperationIsNull(x);
         x = mlirOperationGetNextInBlock(x))
      is_idle = mlirOperationEqual(x, op) || ir_is_of(x, "arith.") || ir_is(x, "scf.yield");
    if (!is_idle)
      break;
    op = loop;
  }
  mlirOperationDestroy(op);
}

static bool pass_on(MlirOperation alloc) {
  struct passing p = {.alloc = alloc, .t = mlirOperationGetResult(alloc, 0)};

  if (nisa_type_space(mlirValueGetType(p.t)) != MEM_SBUF || !mlirTypeIsAF32(element_of(p.t)))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(p.t); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!note_use(&p, mlirOpOperandGetOwner(u)))
      return false;
  if (!p.n_writers || mlirOperationIsNull(p.copy) || mlirOperationIsNull(p.release) || !is_free(&p) || !is_in_order(&p))
    return false;
  mlirOperationMoveBefore(ir_defining_op(p.y), alloc);
  remove_with_loops(p.copy, mlirOperationGetBlock(alloc));
  mlirOperationDestroy(p.release);
  mlirValueReplaceAllUsesOfWith(p.t, p.y);
  mlirOperationDestroy(alloc);
  return true;
}

int ln_pass_on(struct pass_run *run) {
  const struct ir_ops allocs = ir_collect_named(run->arena, run->module, "nisa.alloc");
  int n = 0;
  for (int k = 0; k < allocs.n; k++) {
    pass_step(run, allocs.v[k], "write-rounded");
    n += pass_on(allocs.v[k]);
  }
  return n;
}
