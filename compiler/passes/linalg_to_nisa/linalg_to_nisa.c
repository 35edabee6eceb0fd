/* linalg_to_nisa: lowers buffers and linalg operations on tiles to NeuronCore instructions.
 *
 *     memref.alloc, memref.dealloc                     nisa.alloc, nisa.release
 *     memref.copy %hbm_tile, %tile             ==>     nisa.dma_copy
 *     linalg.exp ins(%tile) outs(%out)                 nisa.activation
 *
 * Input: static memrefs with integer memory spaces, views, scf loops, arith on indices.  Operations are lowered one
 * by one in program order.  For an operation without a lowering, the pass reports an error with the operation and
 * the reason; nothing is left over silently, as it is in nkigen.
 *
 * On chip a buffer has at least two dimensions, so smaller ones get dimensions of extent 1 at the end.  A PSUM
 * buffer that a matmul accumulates into is f32 whatever the type of the value is, because the tensor engine writes
 * f32.  An accumulator of integers is in SBUF, because another engine adds their products (move.c).  A scalar that
 * is read from memory (memref.load) becomes an element of SBUF.  It is broadcast if an instruction needs data, and
 * loaded into a register if an index is needed.
 *
 * At the end, memory spaces become #nisa.mem, nkipy attributes are removed, functions get nki.output_names and the
 * module gets nisa.target (finish.c).  Calls of custom ops are replaced by their code (custom.c), and pairs of
 * instructions that one instruction can replace are combined (combine.c, fold.c, widen.c, moments.c).
 *
 * Options: sbuf-capacity=N bytes per partition that longer lives of loaded buffers may fill; all of SBUF by default.
 *
 * The time is linear in the number of operations, except that a body is searched for each of its operations.
 */
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/busy.h"
#include "passes/lib/price.h"

/* ---- shared by the pass's files --------------------------------------------------------------------------------- */

enum status ln_fail(struct ln *ln, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *why = arena_vprintf(ln->run->arena, fmt, ap);
  va_end(ap);
  return pass_fail(ln->run, ln->op, "not supported on NISA: %s: %s",
                   mlirIdentifierStr(mlirOperationGetName(ln->op)).data, why);
}

enum mem_space ln_type_space(MlirType t) {
  MlirAttribute a = mlirTypeIsAMemRef(t) ? mlirMemRefTypeGetMemorySpace(t) : mlirAttributeGetNull();
  int64_t v = !mlirAttributeIsNull(a) && mlirAttributeIsAInteger(a) ? mlirIntegerAttrGetValueInt(a) : MEM_HBM;
  return v == MEM_PSUM || v == MEM_SBUF || v == MEM_SHARED_HBM ? (enum mem_space)v : MEM_HBM;
}

enum mem_space ln_space(MlirValue memref) {
  return ln_type_space(mlirValueGetType(memref));
}

MlirType ln_memref(struct ln *ln, MlirType element, int rank, const int64_t *dims, enum mem_space s) {
  MlirAttribute space = ln->is_converted ? nisa_space_attr(ln->b.ctx, s) : ir_i32_attr(&ln->b, s);
  return mlirMemRefTypeContiguousGet(element, rank, dims, space);
}

MlirValue ln_buffer(struct ln *ln, MlirValue v) {
  MlirValue known = {table_get(&ln->allocs, v.ptr)};
  return mlirValueIsNull(known) ? v : known;
}

MlirOperation ln_insert(struct ln *ln, MlirOperation op) {
  mlirBlockInsertOwnedOperationBefore(ln->b.block, ln->b.before, op);
  return op;
}

MlirAttribute ln_text(struct ln *ln, const char *s) {
  return mlirStringAttrGet(ln->b.ctx, ir_str(s));
}
MlirAttribute ln_bool(struct ln *ln, bool v) {
  return mlirBoolAttrGet(ln->b.ctx, v);
}
MlirAttribute ln_int(struct ln *ln, int64_t v) {
  return ir_i64_attr(&ln->b, v);
}

/* Why another engine that has the instruction does not execute it. */
static const char *why_not(enum nisa_engine chosen, enum nisa_engine other, bool is_slower) {
  if (chosen == NISA_ENGINE_GPSIMD)
    return "it computes in f32 and rounds, where this must be exact";
  if (other == NISA_ENGINE_GPSIMD)
    return is_slower ? "it is slower and cannot reach PSUM"
                     : "it cannot reach PSUM; balance-engines gives it what shortens a round";
  return chosen == NISA_ENGINE_VECTOR ? "it is kept for functions" : "it is kept for arithmetic";
}

/* Says once for each operation which engine executes a kind of its instructions. */
static void remark_engine(struct ln *ln, const struct nisa_instr *in, enum nisa_engine engine) {
  const struct nisa_op_def *def = in->def;
  const enum target t = ln->run->target;
  _Static_assert(NISA_KIND_COUNT <= 64, "a bit for each kind");
  if (ln->said[engine] & UINT64_C(1) << def->kind)
    return;
  ln->said[engine] |= UINT64_C(1) << def->kind;
  struct remark *r = pass_remark(ln->run, ln->op, RULE_ENGINE, "%s on %s", def->name, nisa_engine_name(engine));
  if (!(def->engines & ~(1u << engine))) {
    remark_forced(r, "No other engine has it.");
    return;
  }
  const double own = busy_ns(in, engine, t);
  price_chosen(r, own);
  for (int e = NISA_ENGINE_NONE + 1; e < NISA_ENGINE_COUNT; e++)
    if (def->engines & 1u << e && e != (int)engine)
      price_instead(r, nisa_engine_name((enum nisa_engine)e), busy_ns(in, (enum nisa_engine)e, t),
                    why_not(engine, (enum nisa_engine)e, busy_ns(in, (enum nisa_engine)e, t) >= own));
}

MlirOperation ln_emit(struct ln *ln, enum nisa_kind k, enum nisa_engine engine, const struct nisa_access *operands,
                      const struct ln_attr *attrs) {
  struct nisa_instr in = {.def = nisa_op_def(k), .engine = engine};
  MlirNamedAttribute named[LN_ATTRS_MAX];
  int n = 0;

  memcpy(in.operand, operands, (size_t)in.def->n_operands * sizeof *operands);
  for (; attrs && attrs[n].name; n++) {
    assert(n < LN_ATTRS_MAX);
    named[n] = ir_named(&ln->b, attrs[n].name, attrs[n].value);
  }
  in.op = ln_insert(ln, nisa_create(&in, ln->b.loc, n, named));
  remark_engine(ln, &in, engine);
  return in.op;
}

static void point_at(struct ln *ln, MlirOperation op) {
  ln->op = op;
  ln->b = edit_before(ln->run, op);
  memset(ln->said, 0, sizeof ln->said);
}

static void remember(struct ln *ln, MlirValue from, MlirValue to) {
  table_put(&ln->allocs, from.ptr, (void *)(uintptr_t)to.ptr);
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

/* True if a matmul writes to v or a view of it. */
static bool is_accumulator(struct ln *ln, MlirValue v) {
  struct buffer_uses uses = buffer_find_uses(ln->run->arena, v);
  for (int k = 0; k < uses.n; k++)
    if (ir_is(uses.v[k].op, "linalg.matmul") && uses.v[k].operand == 2)
      return true;
  return false;
}

/* Fills v with zeros. */
static enum status clear(struct ln *ln, MlirValue v, int rank, const int64_t *dims, MlirType element) {
  struct ln_walk w;
  struct ln_view *dst;

  enum status st = ln_walk_init(&w, ln, rank, dims);
  if (!st)
    st = ln_trace(&w, v, (MlirAffineMap){NULL}, &dst);
  return st ? st : ln_set(&w, dst, ir_int(&ln->b, element, 0));
}

static enum status lower_alloc(struct ln *ln) {
  MlirValue v = mlirOperationGetResult(ln->op, 0);
  MlirType t = mlirValueGetType(v), element = mlirShapedTypeGetElementType(t);
  MlirAttribute alignment = ir_attr(ln->op, "alignment");
  int64_t dims[NISA_RANK_MAX + 2];
  int rank = ir_shape(v, NISA_RANK_MAX, dims);
  enum mem_space s = ln_type_space(t);
  bool is_sum = false; /* of integers, which the tensor engine does not add */

  if (!mlirShapedTypeHasStaticShape(t))
    return ln_fail(ln, "its shape is not known");
  if (rank > NISA_RANK_MAX)
    return ln_fail(ln, "it has more than %d dimensions", NISA_RANK_MAX);
  if (mlirAttributeIsNull(mlirMemRefTypeGetMemorySpace(t)))
    return ln_fail(ln, "it has no memory space");
  if (mem_is_on_chip(s)) {
    while (rank < 2)
      dims[rank++] = 1;
    if (s == MEM_PSUM && mlirTypeIsAFloat(element) && nisa_element_bytes(element) < 4 && is_accumulator(ln, v)) {
      element = mlirF32TypeGet(ln->b.ctx);
      struct remark *r = pass_remark(ln->run, ln->op, RULE_SUM_IN_F32, "adds up in f32");
      remark_limit(r, "PSUM bank", "bytes per partition", nisa_type_bytes(ln_memref(ln, element, rank, dims, s)),
                   nisa_machine(ln->run->target)->psum_bank_bytes);
      remark_reject(r, "the type of the value", "each product would be rounded before the next one is added");
    }
    is_sum = s == MEM_PSUM && mlirTypeIsAInteger(element) && is_accumulator(ln, v);
    if (is_sum)
      s = MEM_SBUF;
    t = ln_memref(ln, element, rank, dims, s);
  }
  int64_t bytes = mlirAttributeIsNull(alignment) ? 0 : mlirIntegerAttrGetValueInt(alignment);
  MlirOperation made = ln_insert(ln, nisa_create_alloc(ln->b.loc, t, bytes));
  remember(ln, v, mlirOperationGetResult(made, 0));
  return is_sum ? clear(ln, v, rank, dims, element) : ST_OK;
}

static enum status lower_dealloc(struct ln *ln) {
  MlirValue v = ln_buffer(ln, buffer_root(mlirOperationGetOperand(ln->op, 0)));
  if (mem_is_on_chip(ln_space(v)))
    ln_insert(ln, nisa_create_release(ln->b.loc, v));
  mlirOperationDestroy(ln->op);
  return ST_OK;
}

/* ---- scalars in memory ------------------------------------------------------------------------------------------ */

/* Allocates a buffer in SBUF for one element. */
static MlirValue new_cell(struct ln *ln, MlirType element) {
  MlirType t = ln_memref(ln, element, 2, (int64_t[]){1, 1}, MEM_SBUF);
  return mlirOperationGetResult(ln_insert(ln, nisa_create_alloc(ln->b.loc, t, 64)), 0);
}

/* Releases the cell at the end of its block. */
static void release_at_end(struct ln *ln, MlirValue cell) {
  MlirBlock block = mlirOperationGetBlock(ir_defining_op(cell));
  mlirBlockInsertOwnedOperationBefore(block, mlirBlockGetTerminator(block), nisa_create_release(ln->b.loc, cell));
}

/* Copies one element of `memref`, at the indices that start at operand first_index of ln->op, to the cell or from
 * it. */
static enum status move_element(struct ln *ln, MlirValue cell, MlirValue memref, int first_index, bool to_cell) {
  MlirValue at[NISA_RANK_MAX];
  struct ln_walk w;
  struct ln_view *c, *m;
  int n = (int)mlirOperationGetNumOperands(ln->op) - first_index;

  if (n > NISA_RANK_MAX)
    return ln_fail(ln, "an operand has more than %d dimensions", NISA_RANK_MAX);
  ln_walk_element(&w, ln);
  for (int k = 0; k < n; k++)
    at[k] = mlirOperationGetOperand(ln->op, first_index + k);
  enum status st = ln_trace_element(&w, memref, n, at, &m);
  if (!st)
    st = ln_trace_element(&w, cell, 0, NULL, &c);
  return st ? st : ln_move(&w, to_cell ? c : m, to_cell ? m : c, false);
}

static enum status lower_load(struct ln *ln) {
  MlirValue result = mlirOperationGetResult(ln->op, 0);
  if (mlirTypeIsNull(ln_storage(mlirValueGetType(result))) || mlirTypeIsAIndex(mlirValueGetType(result)))
    return ln_fail(ln, "no engine reads its type");
  MlirValue cell = new_cell(ln, mlirValueGetType(result));
  enum status st = move_element(ln, cell, mlirOperationGetOperand(ln->op, 0), 1, true);
  remember(ln, result, cell);
  release_at_end(ln, cell);
  return st;
}

static enum status lower_store(struct ln *ln) {
  MlirValue value = mlirOperationGetOperand(ln->op, 0), cell = ln_buffer(ln, value);
  const bool is_known = !mlirValueEqual(cell, value);

  if (!is_known && mlirAttributeIsNull(ir_constant(value)))
    return ln_fail(ln, "it stores a scalar that is neither a constant nor an element of a tensor");
  enum status st = ST_OK;
  if (!is_known) {
    cell = new_cell(ln, mlirValueGetType(value));
    release_at_end(ln, cell);
    struct ln_walk w;
    struct ln_view *c;
    ln_walk_element(&w, ln);
    st = ln_trace_element(&w, cell, 0, NULL, &c);
    if (!st)
      st = ln_set(&w, c, value);
  }
  if (!st)
    st = move_element(ln, cell, mlirOperationGetOperand(ln->op, 1), 2, false);
  if (!st)
    mlirOperationDestroy(ln->op);
  return st;
}

/* Loads the result of a memref.load into a register if it is still used. */
static void finish_loads(struct ln *ln, const struct ir_ops *ops) {
  for (int k = 0; k < ops->n; k++) {
    MlirOperation op = ops->v[k];
    MlirValue result = mlirOperationGetResult(op, 0), cell = ln_buffer(ln, result);
    if (ir_is_used(result) && !mlirValueEqual(cell, result)) {
      struct ln_walk w;
      struct ln_view *c;
      struct nisa_access x;
      point_at(ln, op);
      ln_walk_element(&w, ln);
      struct ln_shape s = {0};
      if (!ln_trace_element(&w, cell, 0, NULL, &c) && !ln_access(&w, c, &s, &x)) {
        MlirOperation made = ln_emit(ln, NISA_REGISTER_LOAD, NISA_ENGINE_SYNC, &x, NULL);
        mlirValueReplaceAllUsesOfWith(result, mlirOperationGetResult(made, 0));
      }
    }
    mlirOperationDestroy(op);
  }
}

/* ---- program order ---------------------------------------------------------------------------------------------- */

/* True if op is lowered: it is not in the body of another operation. */
static bool is_work(MlirOperation op, void *user) {
  static const char *const names[] = {"memref.alloc", "memref.alloca", "memref.dealloc", "memref.copy",
                                      "memref.load",  "memref.store",  "func.call"};
  MlirOperation parent = mlirOperationGetParentOperation(op);

  (void)user;
  if (!mlirOperationIsNull(parent) && ir_is_of(parent, "linalg."))
    return false;
  if (ir_is_of(op, "linalg.") || ir_is_of(op, "nkipy."))
    return true;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k]))
      return true;
  return false;
}

static enum status lower_linalg(struct ln *ln) {
  struct structured s;

  if (mlirOperationGetNumResults(ln->op))
    return ln_fail(ln, "it computes a tensor: one-shot-bufferize gives tensors their buffers");
  if (!structured_read(ln->op, &s))
    return ln_fail(ln, "it is none of the linalg operations that are known");
  switch (s.kind) {
  case SK_FILL:
    return ln_lower_fill(ln);
  case SK_TRANSPOSE:
  case SK_BROADCAST:
    return ln_lower_copy(ln);
  case SK_MATMUL:
    return ln_lower_matmul(ln);
  case SK_BATCH_MATMUL:
    return ln_fail(ln, "batches are taken apart before (decompose-batch-matmul)");
  case SK_UNARY:
  case SK_BINARY:
  case SK_ELEMENTWISE:
  case SK_REDUCTION:
    return ln_lower_structured(ln, &s);
  default:
    return ln_fail(ln, "no instruction does what it does");
  }
}

/* Lowers the call of a collective or a topk.  A call of a function that has code is replaced at the end; other calls are
 * refused. */
static enum status lower_call(struct ln *ln) {
  MlirAttribute what = ln_declared(ln, "nkipy.collective"), topk = ln_declared(ln, "nkipy.topk");
  if (mlirAttributeIsNull(what) && mlirAttributeIsNull(topk))
    return ST_OK;
  enum status st = mlirAttributeIsNull(topk) ? ln_lower_collective(ln, what) : ln_lower_topk(ln, topk);
  if (!st)
    mlirOperationDestroy(ln->op);
  return st;
}

static enum status lower(struct ln *ln, MlirOperation op) {
  enum status st;

  point_at(ln, op);
  if (ir_is(op, "memref.alloc"))
    return lower_alloc(ln);
  if (ir_is(op, "memref.dealloc"))
    return lower_dealloc(ln);
  if (ir_is(op, "memref.load"))
    return lower_load(ln);
  if (ir_is(op, "memref.store"))
    return lower_store(ln);
  if (ir_is(op, "func.call"))
    return lower_call(ln);
  if (ir_is(op, "memref.copy"))
    st = ln_lower_copy(ln);
  else if (ir_is_of(op, "linalg."))
    st = lower_linalg(ln);
  else
    st = ln_fail(ln, "it should be gone by now");
  if (!st)
    mlirOperationDestroy(op);
  return st;
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

static bool is_affine(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "affine.");
}

/* Frees the views, which are large and are not used by the next operation. */
static void drop_views(struct ln *ln) {
  enum { KEPT = 256 << 10 };
  if (ln->scratch.total > KEPT)
    arena_clear(&ln->scratch);
}

static enum status lower_all(struct ln *ln) {
  struct pass_run *run = ln->run;
  struct ir_ops work = ir_collect(run->arena, run->module, is_work, NULL);
  struct ir_ops loads = {.v = arena_new_array(run->arena, MlirOperation, (size_t)work.n + 1)};
  struct ir_ops allocs = {.v = arena_new_array(run->arena, MlirOperation, (size_t)work.n + 1)};
  enum status st = ST_OK;

  for (int k = 0; k < work.n; k++) {
    MlirOperation op = work.v[k];
    if (ir_is(op, "memref.load"))
      loads.v[loads.n++] = op;
    if (ir_is(op, "memref.alloc"))
      allocs.v[allocs.n++] = op;
    pass_step(run, op, "choose-instruction");
    enum status one = lower(ln, op);
    drop_views(ln);
    if (one)
      st = one;
  }
  if (st)
    return st;
  pass_step(run, run->module, "finish-loads");
  finish_loads(ln, &loads);
  pass_step(run, run->module, "allocate-buffers");
  st = ln_replace_allocs(ln, &allocs);
  return st ? st : ln_refuse_leftovers(ln);
}

/* The order matters: data that is loaded once is seen to be the same, moments are found before combine takes their parts
 * into other instructions, and a sum needs the activation that combine makes. */
static int merge_instructions(struct ln *ln, bool keeps_hbm) {
  struct pass_run *run = ln->run;
  if (!keeps_hbm)
    ln_keep_on_chip(ln);
  int n = ln_reuse_loads(run);
  n += ln_widen_loads(run);
  n += ln_pass_on(run);
  n += ln_combine_reductions(run);
  n += ln_moments(run);
  n += ln_combine(run);
  n += ln_sum_along(run);
  return n + ln_combine_turns(run);
}

static enum status run_pass(struct pass_run *run) {
  struct ln ln = {.run = run, .allocs = {.arena = run->arena}};
  ln.codes = ir_attr(run->module, "nkipy.custom_op_bodies");
  const bool keeps_hbm = !mlirAttributeIsNull(ir_attr(run->module, "nkipy.keeps_hbm"));
  enum status st = pass_target(run, &run->target);

  if (!st && ir_collect(run->arena, run->module, is_affine, NULL).n)
    st = ir_run_pipeline(run->ir, run->module, "builtin.module(lower-affine)", run->arena, run->ds);
  arena_init(&ln.scratch);
  if (!st)
    st = lower_all(&ln);
  arena_clear(&ln.scratch);
  if (st)
    return st;
  pass_step(run, run->module, "convert-types");
  ln_convert_types(&ln);
  pass_step(run, run->module, "inline-custom-operations");
  st = ln_inline_custom(run, ln.codes);
  if (st)
    return st;
  pass_step(run, run->module, "drop-declarations");
  ln_erase_declarations(run);
  ir_set_attr(run->module, "nisa.target", nisa_target_attr(run->ir->ctx, run->target));
  pass_step(run, run->module, "canonicalize,cse");
  st = ir_run_pipeline(run->ir, run->module, "builtin.module(canonicalize,cse)", run->arena, run->ds);
  const int n_merged = st ? 0 : merge_instructions(&ln, keeps_hbm);
  pass_step(run, run->module, "canonicalize");
  if (n_merged) /* constants that were operands may be unused now */
    st = ir_run_pipeline(run->ir, run->module, "builtin.module(canonicalize)", run->arena, run->ds);
  if (!st)
    ln_remark_engines(run, n_merged);
  return st;
}

const struct pass_def linalg_to_nisa = {
    .name = "linalg-to-nisa",
    .run = run_pass,
};
