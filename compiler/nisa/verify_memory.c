/* verify_memory: checks allocations: their form, that each is released once after its last use, accumulation groups,
 * and that the live buffers fit into SBUF and PSUM at every point (hardware.md §2, §5, §6).
 *
 * Every allocation on chip is released in its own block, so no buffer stays allocated after a loop's body, and one
 * walk in program order visits every point.  PSUM is allocated in banks, because groups in one bank are one group. */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "ir/structured.h"
#include "nisa/verify.h"

/* ---- one allocation --------------------------------------------------------------------------------------------- */

static bool check_form(struct nisa_check *c, MlirOperation alloc) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(alloc, 0));
  const struct nisa_machine *m = c->machine;
  enum mem_space s = nisa_type_space(t);
  int before = c->n_errors;

  if (s == MEM_NONE)
    nisa_complain(c, alloc, "it has no memory space");
  else if (!mlirShapedTypeHasStaticShape(t))
    nisa_complain(c, alloc, "its shape is not static");
  else if (nisa_element_bytes(mlirShapedTypeGetElementType(t)) == 0)
    nisa_complain(c, alloc, "its elements have a type that no memory holds");
  if (c->n_errors > before || !mem_is_on_chip(s))
    return c->n_errors == before;
  if (mlirShapedTypeGetRank(t) < 2)
    nisa_complain(c, alloc, "a buffer on chip has at least two dimensions");
  else if (mlirShapedTypeGetDimSize(t, 0) > m->partitions)
    nisa_complain(c, alloc, "its first dimension of %lld is more than the %lld partitions",
                  (long long)mlirShapedTypeGetDimSize(t, 0), (long long)m->partitions);
  if (nisa_element_bytes(mlirShapedTypeGetElementType(t)) > 4)
    nisa_complain(c, alloc, "no engine works on elements as wide as these");
  return c->n_errors == before;
}

/* The number of releases, and the writers.  `release` is the first release in the allocation's block. */
struct uses {
  int n_releases;
  MlirOperation release, matmul, other_writer;
};

static void add_uses(struct nisa_check *c, MlirOperation alloc, MlirValue v, struct uses *u) {
  for (MlirOpOperand use = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    const struct nisa_op_def *d = nisa_op_of(op);
    if (nisa_sync_of(op) == NISA_SYNC_ROTATE && mlirValueEqual(v, mlirOperationGetResult(alloc, 0))) {
      add_uses(c, alloc, mlirOperationGetResult(op, 0), u);
    } else if (!d) {
      nisa_complain(c, alloc, "it leaves its block through %s", mlirIdentifierStr(mlirOperationGetName(op)).data);
    } else if (d->kind == NISA_RELEASE) {
      u->n_releases++;
      u->release = op;
    } else if (mlirOpOperandGetOperandNumber(use) == 0 && d->kind != NISA_REGISTER_LOAD) { /* dst comes first */
      *(d->kind == NISA_MATMUL ? &u->matmul : &u->other_writer) = op;
    }
  }
}

static struct uses find_uses(struct nisa_check *c, MlirOperation alloc) {
  struct uses u = {0};
  add_uses(c, alloc, mlirOperationGetResult(alloc, 0), &u);
  return u;
}

static void check_lifetime(struct nisa_check *c, MlirOperation alloc, const struct uses *u) {
  MlirBlock block = mlirOperationGetBlock(alloc);
  MlirValue v = mlirOperationGetResult(alloc, 0);

  if (u->n_releases != 1) {
    nisa_complain(c, alloc, "it is released %s", u->n_releases ? "more than once" : "nowhere");
    return;
  }
  if (!mlirBlockEqual(mlirOperationGetBlock(u->release), block)) {
    nisa_complain(c, u->release, "it releases a buffer of another block");
    return;
  }
  for (MlirOpOperand use = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use), here = ir_ancestor_in(op, block);
    if (!mlirOperationEqual(op, u->release) && !mlirOperationIsNull(here) &&
        mlirOperationIsBeforeInBlock(u->release, here))
      nisa_complain(c, op, "it uses a buffer that was released");
  }
}

/* True for the allocations of engine programs, which are never released: places say which memory is used again. */
static bool is_for_streams(MlirOperation alloc) {
  MlirOperation up = mlirOperationGetParentOperation(alloc);
  return ir_is(up, "func.func") && nisa_has_streams(up);
}

static void check_alloc(struct nisa_check *c, MlirOperation alloc) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(alloc, 0));

  if (!check_form(c, alloc))
    return;
  if (!mem_is_on_chip(nisa_type_space(t))) {
    MlirValue v = mlirOperationGetResult(alloc, 0);
    for (MlirOpOperand use = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
      if (ir_is(mlirOpOperandGetOwner(use), "nisa.release"))
        nisa_complain(c, mlirOpOperandGetOwner(use), "HBM is not released");
    return;
  }
  struct uses u = find_uses(c, alloc);
  if (!is_for_streams(alloc))
    check_lifetime(c, alloc, &u);
  if (nisa_type_space(t) == MEM_PSUM && !mlirOperationIsNull(u.matmul) && !mlirOperationIsNull(u.other_writer))
    nisa_complain(c, u.other_writer, "it writes to PSUM that a matmul accumulates in");
}

/* ---- capacity --------------------------------------------------------------------------------------------------- */

struct live {
  int64_t sbuf, psum, sbuf_peak, psum_peak;
  MlirOperation sbuf_at, psum_at; /* the operations at which the peaks occur */
};

static int64_t whole_banks(int64_t bytes, int64_t bank) {
  return (bytes + bank - 1) / bank * bank;
}

static void count_buffer(const struct nisa_machine *m, struct live *l, MlirOperation op, MlirType t, int sign) {
  int64_t bytes = nisa_type_bytes(t);

  assert(bytes >= 0 || !mem_is_on_chip(nisa_type_space(t))); /* check_form refuses dynamic shapes on chip */
  if (nisa_type_space(t) == MEM_SBUF)
    l->sbuf += sign * bytes;
  if (nisa_type_space(t) == MEM_PSUM)
    l->psum += sign * whole_banks(bytes, m->psum_bank_bytes);
  if (l->sbuf > l->sbuf_peak) {
    l->sbuf_peak = l->sbuf;
    l->sbuf_at = op;
  }
  if (l->psum > l->psum_peak) {
    l->psum_peak = l->psum;
    l->psum_at = op;
  }
}

static void count_live(const struct nisa_machine *m, struct live *l, MlirOperation op) {
  if (ir_is(op, "nisa.alloc"))
    count_buffer(m, l, op, mlirValueGetType(mlirOperationGetResult(op, 0)), 1);
  if (ir_is(op, "nisa.release"))
    count_buffer(m, l, op, mlirValueGetType(mlirOperationGetOperand(op, 0)), -1);
}

static struct live walk_live(struct arena *a, const struct nisa_machine *m, MlirOperation function) {
  struct ir_ops all = ir_collect(a, function, NULL, NULL); /* pre-order: program order, each loop once */
  struct live l = {0};
  for (int k = 0; k < all.n; k++)
    count_live(m, &l, all.v[k]);
  return l;
}

void nisa_memory_peak(MlirOperation root, enum target target, struct arena *a, int64_t *sbuf, int64_t *psum) {
  struct live l = walk_live(a, nisa_machine(target), root);
  *sbuf = l.sbuf_peak;
  *psum = l.psum_peak;
}

void nisa_check_memory(struct nisa_check *c, MlirOperation module) {
  struct ir_ops allocs = ir_collect_named(c->arena, module, "nisa.alloc");
  struct ir_ops functions = ir_collect_named(c->arena, module, "func.func");
  const struct nisa_machine *m = c->machine;
  int before = c->n_errors;

  for (int k = 0; k < allocs.n; k++)
    check_alloc(c, allocs.v[k]);
  if (c->n_errors > before)
    return; /* the live buffers are not known in that case */
  for (int k = 0; k < functions.n; k++) {
    if (nisa_has_streams(functions.v[k]))
      continue; /* what is used at the same time depends on the order in which streams run */
    struct live l = walk_live(c->arena, m, functions.v[k]);
    if (l.sbuf_peak > m->sbuf_bytes)
      nisa_complain(c, l.sbuf_at, "with it %lld bytes of every SBUF partition are in use; there are %lld",
                    (long long)l.sbuf_peak, (long long)m->sbuf_bytes);
    if (l.psum_peak > m->psum_bytes)
      nisa_complain(c, l.psum_at,
                    "with it %lld bytes of every PSUM partition are in use, in whole banks; there are %lld",
                    (long long)l.psum_peak, (long long)m->psum_bytes);
  }
}
