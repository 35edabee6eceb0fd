/* verify_memory: checks allocations: their form, that each is released once after its last use, accumulation groups,
 * and that the live buffers fit into SBUF and PSUM at every point.  Sizes are those of the architecture guides.
 *
 * Every allocation on chip is released in its own block, so no buffer stays allocated after a loop's body, and one
 * walk in program order visits every point.  PSUM is allocated in banks, because groups in one bank are one group. */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/lifetime.h"
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
  struct nisa_place at;
  if (!mlirAttributeIsNull(ir_attr(alloc, "address")) && !nisa_address_of(alloc, &at))
    nisa_complain(c, alloc, "an address is array<i64: partition or bank, offset>, of memory on chip");
  if (c->n_errors > before || !mem_is_on_chip(s))
    return c->n_errors == before;
  if (mlirShapedTypeGetRank(t) < 2)
    nisa_complain(c, alloc, "a buffer on chip has at least two dimensions");
  else if (mlirShapedTypeGetDimSize(t, 0) > m->partitions)
    nisa_complain(c, alloc, "its first dimension of %lld is more than the %lld partitions",
                  (long long)mlirShapedTypeGetDimSize(t, 0), (long long)m->partitions);
  if (nisa_type_bytes(t) < 0 || nisa_type_bytes(t) > INT32_MAX)
    nisa_complain(c, alloc, "it is larger than any memory on chip");
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
      *(d->kind == NISA_MATMUL || d->kind == NISA_MATMUL_MX ? &u->matmul : &u->other_writer) = op;
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

static void check_alloc(struct nisa_check *c, MlirOperation alloc, bool is_released) {
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
  if (is_released)
    check_lifetime(c, alloc, &u);
  if (nisa_type_space(t) == MEM_PSUM && !mlirOperationIsNull(u.matmul) && !mlirOperationIsNull(u.other_writer))
    nisa_complain(c, u.other_writer, "it writes to PSUM that a matmul accumulates in");
}

/* ---- capacity --------------------------------------------------------------------------------------------------- */

void nisa_memory_peak(MlirOperation root, enum target target, struct arena *a, int64_t *sbuf, int64_t *psum) {
  const struct nisa_lifetimes l = nisa_find_lifetimes(a, root, nisa_machine(target));
  const struct nisa_lifetime *at;
  *sbuf = nisa_live_peak(a, &l, MEM_SBUF, &at);
  *psum = nisa_live_peak(a, &l, MEM_PSUM, &at);
}

static void check_capacity(struct nisa_check *c, const struct nisa_lifetimes *l) {
  const struct nisa_machine *m = c->machine;
  const struct nisa_lifetime *at;
  int64_t peak = nisa_live_peak(c->arena, l, MEM_SBUF, &at);

  if (peak > m->sbuf_bytes)
    nisa_complain(c, at->alloc, "with it %lld bytes of every SBUF partition are in use; there are %lld: %s",
                  (long long)peak, (long long)m->sbuf_bytes, nisa_describe_live(c->arena, l, MEM_SBUF, at->from))
        ->code = DG_MEMORY_FULL;
  peak = nisa_live_peak(c->arena, l, MEM_PSUM, &at);
  if (peak > m->psum_bytes)
    nisa_complain(c, at->alloc,
                  "with it %lld bytes of every PSUM partition are in use, in whole banks; there are %lld: %s",
                  (long long)peak, (long long)m->psum_bytes, nisa_describe_live(c->arena, l, MEM_PSUM, at->from))
        ->code = DG_MEMORY_FULL;
}

void nisa_check_memory(struct nisa_check *c, MlirOperation module) {
  struct ir_ops functions = ir_collect_named(c->arena, module, "func.func");
  int before = c->n_errors;

  for (int f = 0; f < functions.n; f++) {
    struct ir_ops allocs = ir_collect_named(c->arena, functions.v[f], "nisa.alloc");
    /* those of engine programs are never released: places say which memory is used again */
    const bool is_released = !nisa_has_streams(functions.v[f]);
    for (int k = 0; k < allocs.n; k++)
      check_alloc(c, allocs.v[k], is_released);
  }
  if (c->n_errors > before)
    return; /* the live buffers are not known in that case */
  for (int k = 0; k < functions.n; k++) {
    const struct nisa_lifetimes l = nisa_find_lifetimes(c->arena, functions.v[k], c->machine);
    const bool in_program_order = !nisa_has_streams(functions.v[k]);
    if (in_program_order) /* of engine programs, nothing is released */
      check_capacity(c, &l);
    nisa_check_places(c, &l, in_program_order);
  }
}
