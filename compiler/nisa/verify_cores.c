/* verify_cores: checks programs of two cores (nisa/cores.h).
 *
 * What both cores use stands outside of their regions, and is in shared_hbm.  Both meet as often: they have as many
 * core_barriers and transfers to each other, in loops of the same form.  Whether their accesses to shared memory are
 * ordered, and whether they wait for each other for ever, is known only when the program runs. */
#include "mlir-c/BuiltinTypes.h"

#include "base/buf.h"
#include "nisa/cores.h"
#include "nisa/verify.h"

enum { TEXT_MAX = 1 << 20 };

/* ---- where things stand ------------------------------------------------------------------------------------------ */

/* Checks the entry block: all but what both cores use stands in a core. */
static void check_entry(struct nisa_check *c, MlirOperation function) {
  MlirBlock body = ir_body(function);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const struct nisa_op_def *d = nisa_op_of(op);
    if (nisa_is_core(op))
      continue;
    if (d ? d->kind != NISA_ALLOC : mlirOperationGetNumRegions(op) > 0 || nisa_sync_of(op))
      nisa_complain(c, op, "it stands outside of the cores");
    else if (d && nisa_type_space(mlirValueGetType(mlirOperationGetResult(op, 0))) != MEM_SHARED_HBM)
      nisa_complain(c, op, "both cores use it, but only shared_hbm is common to them");
  }
}

static void check_core(struct nisa_check *c, MlirOperation core, int number) {
  const struct ir_ops allocs = ir_collect_named(c->arena, core, "nisa.alloc");
  if (nisa_core_number(core) != number)
    nisa_complain(c, core, "it is core %d; the cores of a function are 0 and 1, in this order", nisa_core_number(core));
  if (mlirOperationGetNumResults(core))
    nisa_complain(c, core, "it may have no results");
  for (int k = 0; k < allocs.n; k++)
    if (nisa_type_space(mlirValueGetType(mlirOperationGetResult(allocs.v[k], 0))) == MEM_SHARED_HBM)
      nisa_complain(c, allocs.v[k], "it is in shared_hbm, which is allocated before the cores");
}

/* ---- meetings ---------------------------------------------------------------------------------------------------- */

static bool is_barrier(MlirOperation op) {
  return nisa_sync_of(op) == NISA_SYNC_CORE_BARRIER;
}

static bool is_exchange(MlirOperation op) {
  return nisa_op_of(op) && nisa_op_of(op)->kind == NISA_SENDRECV;
}

/* How the cores meet in a block: "for 0,4,1{core_barrier;}sendrecv 128x64 f32;". */
struct meetings {
  struct nisa_check *c;
  struct buf *out;
  bool (*is_counted)(MlirOperation op);
};

static bool counts(MlirOperation op, void *user) {
  const struct meetings *m = user;
  return m->is_counted(op);
}

static bool has_meeting(const struct meetings *m, MlirOperation op) {
  return ir_collect(m->c->arena, op, counts, (void *)(uintptr_t)m).n;
}

static void describe_exchange(const struct meetings *m, MlirOperation op) {
  struct nisa_instr in;
  if (!nisa_read(op, &in, NULL))
    return;
  buf_printf(m->out, "sendrecv %lldx%lld of %lld bytes;", (long long)nisa_partitions(&in.operand[0]),
             (long long)nisa_free_elements(&in.operand[0]),
             (long long)nisa_element_bytes(nisa_access_element(&in.operand[0])));
}

static void describe(const struct meetings *m, MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    int64_t v;
    if (m->is_counted(op) && is_barrier(op))
      buf_puts(m->out, "core_barrier;");
    if (m->is_counted(op) && is_exchange(op))
      describe_exchange(m, op);
    if (!mlirOperationGetNumRegions(op) || !has_meeting(m, op))
      continue;
    if (!ir_is(op, "scf.for")) {
      nisa_complain(m->c, op, "the cores meet in it, but it depends on data, which may differ between them");
      continue;
    }
    buf_puts(m->out, "for ");
    for (int k = 0; k < 3; k++) {
      if (!ir_int_constant(mlirOperationGetOperand(op, k), &v))
        nisa_complain(m->c, op, "the cores meet in it, but its bounds depend on data, which may differ between them");
      else
        buf_printf(m->out, "%lld,", (long long)v);
    }
    buf_puts(m->out, "{");
    describe(m, ir_body(op));
    buf_puts(m->out, "}");
  }
}

/* The first operation of the core in which it meets the other, or the core. */
static MlirOperation first_meeting(struct nisa_check *c, MlirOperation core, bool (*is_counted)(MlirOperation op)) {
  const struct ir_ops all = ir_collect(c->arena, core, NULL, NULL);
  for (int k = 0; k < all.n; k++)
    if (is_counted(all.v[k]))
      return all.v[k];
  return core;
}

/* Compares how the blocks of two programs meet. */
static void compare(struct nisa_check *c, MlirOperation const core[2], MlirBlock const block[2],
                    bool (*is_counted)(MlirOperation op), const char *what) {
  struct buf text[2];
  for (int k = 0; k < 2; k++) {
    buf_init(&text[k], TEXT_MAX);
    describe(&(struct meetings){c, &text[k], is_counted}, block[k]);
  }
  if (strcmp(buf_text(&text[0]), buf_text(&text[1])))
    nisa_complain(c, first_meeting(c, core[text[1].len > text[0].len], is_counted), "%s of the two cores differ", what);
  for (int k = 0; k < 2; k++)
    buf_clear(&text[k]);
}

/* The block in which the core's operations of this kind are: its own, or that of a stream of its engine programs. */
static MlirBlock block_of(struct nisa_check *c, MlirOperation core, bool (*is_counted)(MlirOperation op)) {
  const struct ir_ops all = ir_collect(c->arena, core, NULL, NULL);
  for (int k = 0; k < all.n; k++)
    if (is_counted(all.v[k]) && !mlirOperationIsNull(nisa_stream_around(all.v[k])))
      return ir_body(nisa_stream_around(all.v[k]));
  return ir_body(core);
}

/* Exchanges are counted by core, so one stream has all of them; it has no other transfers, which they would hold up. */
static void check_exchange_queue(struct nisa_check *c, MlirOperation core) {
  const struct ir_ops all = ir_collect(c->arena, core, NULL, NULL);
  MlirOperation queue = {NULL};
  for (int k = 0; k < all.n; k++) {
    MlirOperation stream = nisa_stream_around(all.v[k]);
    if (!is_exchange(all.v[k]) || mlirOperationIsNull(stream))
      continue;
    if (mlirOperationIsNull(queue))
      queue = stream;
    else if (!mlirOperationEqual(queue, stream))
      nisa_complain(c, all.v[k], "another queue of its core exchanges data, too");
  }
  for (int k = 0; k < all.n && !mlirOperationIsNull(queue); k++)
    if (nisa_op_of(all.v[k]) && !is_exchange(all.v[k]) && nisa_op_of(all.v[k])->kind != NISA_REGISTER_LOAD &&
        mlirOperationEqual(nisa_stream_around(all.v[k]), queue))
      nisa_complain(c, all.v[k], "it stands in the queue that exchanges data with the other core");
}

static void check_meetings(struct nisa_check *c, MlirOperation const core[2]) {
  bool (*const kinds[])(MlirOperation) = {is_barrier, is_exchange};
  static const char *const names[] = {"the barriers", "the exchanges"};
  for (int k = 0; k < 2; k++) {
    MlirBlock blocks[] = {block_of(c, core[0], kinds[k]), block_of(c, core[1], kinds[k])};
    compare(c, core, blocks, kinds[k], names[k]);
    check_exchange_queue(c, core[k]);
  }
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void check_function(struct nisa_check *c, MlirOperation function) {
  const struct ir_ops roots = nisa_roots(c->arena, function);
  if (!nisa_has_cores(function))
    return;
  const int before = c->n_errors;
  check_entry(c, function);
  for (int k = 0; k < roots.n; k++)
    check_core(c, roots.v[k], k);
  if (roots.n < NISA_CORES)
    nisa_complain(c, roots.v[0], "there is no other core");
  if (c->target == TARGET_TRN1)
    nisa_complain(c, roots.v[0], "trn1 has no two cores that run one kernel");
  if (c->n_errors == before)
    check_meetings(c, roots.v);
}

/* Checks an operation of cores that stands outside of them. */
static void check_alone(struct nisa_check *c, MlirOperation op) {
  MlirOperation parent = mlirOperationGetParentOperation(op);
  if (nisa_is_core(op)) {
    if (!ir_is(parent, "func.func") || nisa_roots(c->arena, parent).v[nisa_core_number(op) == 1].ptr != op.ptr)
      nisa_complain(c, op, "a core stands directly in a function, which has each once");
  } else if ((is_barrier(op) || is_exchange(op)) && mlirOperationIsNull(nisa_core_around(op))) {
    nisa_complain(c, op, "only a program of two cores has it");
  }
}

void nisa_check_cores(struct nisa_check *c, MlirOperation module) {
  const struct ir_ops functions = ir_collect_named(c->arena, module, "func.func"),
                      all = ir_collect(c->arena, module, NULL, NULL);
  for (int k = 0; k < all.n; k++)
    check_alone(c, all.v[k]);
  for (int k = 0; k < functions.n; k++)
    if (!mlirBlockIsNull(ir_body(functions.v[k])))
      check_function(c, functions.v[k]);
}
