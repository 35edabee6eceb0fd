/* combine_turns: what is transposed for several readers stays in PSUM.  See combine.h.
 *
 *     %t = alloc [128, 256] in SBUF                              %t = alloc [128, 256] in PSUM
 *     scf.for %k                                                 scf.for %k
 *       %p = alloc [128, 128] in PSUM                      ==>     matmul(%t[d0, %k * 128 + d1], …, is_transpose = true)
 *       matmul(%p, …, is_transpose = true)                       tensor_reduce(%m, %t); activation(%e, %t, bias = %m)
 *       tensor_copy(%t[d0, %k * 128 + d1], %p); release %p       release %t
 *     tensor_reduce(%m, %t); activation(%e, %t, bias = %m)
 *     release %t
 *
 * Vector and Scalar read PSUM as fast as SBUF, so the copies are saved; a sum of two tensors is even faster with one of them in PSUM.
 * GpSimd, the Tensor engine and DMA do not read PSUM, so that all readers are of Vector and Scalar, and read one such operand each.
 *
 * Only buffers that have room in a bank, which only transposes fill, and only while half of PSUM stays free: then buffers
 * have copies, and the Tensor engine fills one while another is read.  Linear in the operations for each buffer, of which there are few.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/linalg_to_nisa/combine.h"
#include "passes/lib/price.h"

/* More of them in a function are unrolled code, for which the peak is not computed so often. */
enum { TURNS_MAX = 32, WRITERS_MAX = 16 };

/* A copy out of PSUM, and the transpose before it. */
struct turn {
  struct nisa_instr copy, matmul;
  MlirOperation alloc, release; /* of what the transpose writes */
};

struct turned {
  MlirOperation alloc;
  MlirValue buffer;
  int n, n_readers;
  struct turn v[WRITERS_MAX];
};

static bool is_transpose(MlirOperation op) {
  MlirAttribute passes = ir_attr(op, "is_transpose");
  return ir_is(op, "nisa.matmul") && !mlirAttributeIsNull(passes) && mlirBoolAttrGetValue(passes);
}

/* Reads the transpose that fills what the copy reads: nothing is between the two but arithmetic, nothing else uses what is copied. */
static bool read_turn(struct turn *t) {
  const struct nisa_access *src = &t->copy.operand[1];
  int n = 0;

  if (!link_is_own_buffer(src->base) || !link_is_in(src, MEM_PSUM) || !link_same_tile(src, &t->copy.operand[0]) ||
      !mlirTypeEqual(nisa_access_element(src), nisa_access_element(&t->copy.operand[0]))) /* it converts on its way */
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(src->base); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    n++;
    if (is_transpose(op) && nisa_read(op, &t->matmul, NULL) && ln_same_access(&t->matmul.operand[0], src))
      continue;
    if (ir_is(op, "nisa.release"))
      t->release = op;
    else if (!mlirOperationEqual(op, t->copy.op))
      return false;
  }
  t->alloc = ir_defining_op(src->base);
  if (n != 3 || !t->matmul.def || mlirOperationIsNull(t->release) ||
      !mlirBlockEqual(mlirOperationGetBlock(t->matmul.op), mlirOperationGetBlock(t->copy.op)))
    return false;
  MlirOperation op = mlirOperationGetNextInBlock(t->matmul.op);
  while (!mlirOperationIsNull(op) && ir_is_of(op, "arith."))
    op = mlirOperationGetNextInBlock(op);
  return mlirOperationEqual(op, t->copy.op);
}

/* True if the instruction may read operand k from PSUM. */
static bool may_read(const struct nisa_instr *in, int k) {
  if ((in->engine != NISA_ENGINE_VECTOR && in->engine != NISA_ENGINE_SCALAR) || in->def->operand[k].writes ||
      in->def->kind == NISA_DMA_COPY)
    return false;
  for (int o = 0; o < in->def->n_operands; o++)
    if (o != k && o > 0 &&
        (link_is_in(&in->operand[o], MEM_PSUM) ||
         (nisa_is_data(&in->operand[o]) && mlirValueEqual(in->operand[o].base, in->operand[k].base))))
      return false;
  return true;
}

static bool add_use(struct turned *t, MlirOperation user) {
  struct nisa_instr in;

  if (!nisa_read(user, &in, NULL))
    return false;
  if (in.def->kind == NISA_RELEASE)
    return true;
  for (int k = 0; k < in.def->n_operands; k++) {
    if (!nisa_is_data(&in.operand[k]) || !mlirValueEqual(in.operand[k].base, t->buffer))
      continue;
    if (k) {
      t->n_readers++;
      return may_read(&in, k);
    }
    if (in.def->kind != NISA_TENSOR_COPY || t->n == WRITERS_MAX)
      return false;
    t->v[t->n] = (struct turn){.copy = in};
    return read_turn(&t->v[t->n++]);
  }
  return false;
}

static bool find(struct pass_run *run, MlirOperation alloc, struct turned *t) {
  t->alloc = alloc;
  t->buffer = mlirOperationGetResult(alloc, 0);
  t->n = t->n_readers = 0;
  MlirType type = mlirValueGetType(t->buffer);

  if (!ln_passes_through(mlirShapedTypeGetElementType(type)) || !mlirAttributeIsNull(ir_attr(alloc, "address")) ||
      nisa_type_bytes(type) > nisa_machine(run->target)->psum_bank_bytes)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(t->buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!add_use(t, mlirOpOperandGetOwner(u)))
      return false;
  return t->n > 0 && t->n_readers > 0;
}

static void take(struct pass_run *run, struct turned *t) {
  MlirType was = mlirValueGetType(t->buffer), psum = mlirValueGetType(t->v[0].copy.operand[1].base);
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(t->buffer, STRUCTURED_LOOPS_MAX, dims);

  mlirValueSetType(t->buffer, mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(was), rank, dims,
                                                          mlirMemRefTypeGetMemorySpace(psum)));
  for (int i = 0; i < t->n; i++) {
    struct turn *v = &t->v[i];
    v->matmul.operand[0] = v->copy.operand[0];
    MlirOperation made = nisa_create_like(run->arena, &v->matmul, v->matmul.op);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(v->copy.op), v->copy.op, made);
    mlirOperationDestroy(v->release);
    mlirOperationDestroy(v->copy.op);
    mlirOperationDestroy(v->matmul.op);
    mlirOperationDestroy(v->alloc);
  }
}

static bool is_in_sbuf(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "nisa.alloc") && nisa_type_space(mlirValueGetType(ir_result(op))) == MEM_SBUF;
}

int ln_combine_turns(struct pass_run *run) {
  const struct ir_ops allocs = ir_collect(run->arena, run->module, is_in_sbuf, NULL); /* only others are erased here */
  const struct nisa_machine *m = nisa_machine(run->target);
  struct turned t;
  int n = 0;

  for (int k = 0; k < allocs.n && n < TURNS_MAX; k++) {
    int64_t sbuf, psum;
    if (!find(run, allocs.v[k], &t))
      continue;
    nisa_memory_peak(run->module, run->target, run->arena, &sbuf, &psum);
    if (psum + m->psum_bank_bytes > m->psum_bytes / 2)
      break;
    pass_step(run, allocs.v[k], "read-transposed-in-psum");
    struct remark *r =
        pass_remark(run, t.alloc, RULE_READ_IN_PSUM, "what is transposed is read from PSUM by %d instruction%s",
                    t.n_readers, t.n_readers > 1 ? "s" : "");
    remark_limit(r, "bank of PSUM", "bytes per partition", nisa_type_bytes(mlirValueGetType(t.buffer)),
                 m->psum_bank_bytes);
    const int64_t elements =
        nisa_type_bytes(mlirValueGetType(t.buffer)) / nisa_element_bytes(ir_value_element(t.buffer));
    price_chosen(r, 0);
    price_instead(r, "a copy to SBUF", price_instructions_ns(run->target, SIM_COST_VECTOR_COPY, t.n, elements / t.n),
                  "Vector and Scalar read PSUM as fast as SBUF");
    take(run, &t);
    n++;
  }
  return n;
}
