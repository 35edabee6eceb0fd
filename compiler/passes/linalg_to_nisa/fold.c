/* fold: merges instructions of a block that read or compute the same data.
 *
 *     dma_copy(t, x[i]); …; dma_copy(u, x[i])          ==>  dma_copy(t, x[i]); u is t
 *     activation(t, x, f); reduce(s, t, add)                memset(s, 0); activation(t, x, f, reduce_res = s)
 *     tensor_tensor(t, x, x, multiply); reduce(s, t, add)   memset(s, 0); activation(t, x, square, reduce_res = s)
 *
 * Loads: x is an argument that nothing writes, or an array that one store fills, whose data are in SBUF then.  Both buffers have one writer, and
 * all is in one block.  The first buffer lives
 * until the last use of the second.  It takes room between them only if it was released before; the sum of such rooms and
 * the program's peak stay within SBUF.
 *
 * Sums: t is of floats and has one writer, the sum is f32 and over all of a partition, and nothing uses its buffer before.
 * The Scalar engine adds up what it writes in 64 cycles more, where the Vector engine would read all of it again.  It adds
 * before it rounds: the sum of t in a shorter type than f32 is of the numbers that were to be rounded.
 *
 * The file runs at the end of linalg-to-nisa, before and after combine.c.  Linear in operations, times the distance between the
 * two instructions.
 */
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "base/index.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"
#include "passes/lib/busy.h"
#include "passes/lib/price.h"

static bool in_block_of(MlirOperation a, MlirOperation b) {
  return mlirBlockEqual(mlirOperationGetBlock(a), mlirOperationGetBlock(b));
}

struct ln_uses ln_uses_of(MlirValue buffer) {
  struct ln_uses u = {.is_known = true};
  struct nisa_instr in;

  for (MlirOpOperand use = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (!nisa_read(op, &in, NULL)) {
      u.is_known = false;
      continue;
    }
    if (in.def->kind == NISA_RELEASE)
      u.release = op;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, buffer)) {
        u.writer = op;
        u.n_writers++;
      }
  }
  return u;
}

MlirOperation ln_own_alloc(MlirValue buffer, MlirOperation op) {
  MlirOperation def = ir_defining_op(buffer);
  const bool is_own = !mlirOperationIsNull(def) && ir_is(def, "nisa.alloc") &&
                      nisa_type_space(mlirValueGetType(buffer)) == MEM_SBUF && in_block_of(def, op);
  return is_own ? def : (MlirOperation){NULL};
}

/* ---- repeated loads --------------------------------------------------------------------------------------------- */

struct load {
  MlirOperation op;
  struct nisa_instr in;
  struct ln_uses uses; /* of its buffer; what joins them later are only readers */
  bool has_uses;       /* uses is filled in */
  bool
      is_too_short; /* a later load could not reuse its buffer: it is released too early, and there was no room to keep it */
};
struct loads {
  struct pass_run *run;
  struct table read_only; /* argument -> &yes or &no (ln_is_read_only) */
  struct table stored;    /* array in HBM that one transfer writes, which was seen -> itself */
  struct index by_source;
  struct {
    struct load *v;
    int n, cap;
  } all;
  struct ln_room room;
};

/* True if all that uses v, also as a view, is known, and nothing writes it. */
static bool is_never_written(MlirValue v, int depth) {
  enum { DEPTH_MAX = 8 };
  struct nisa_instr in;

  for (MlirOpOperand use = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (buffer_is_view(op)) {
      if (depth == DEPTH_MAX || !is_never_written(mlirOperationGetResult(op, 0), depth + 1))
        return false;
      continue;
    }
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, v))
        return false;
  }
  return true;
}

bool ln_is_read_only(struct table *known, MlirValue source) {
  static char yes, no;
  MlirValue root = buffer_root(source);
  if (!mlirValueIsABlockArgument(root))
    return false;
  void *is = table_get(known, root.ptr);
  if (!is) {
    is = is_never_written(root, 0) ? &yes : &no;
    table_put(known, root.ptr, is);
  }
  return is == &yes;
}

static uint64_t hash_load(const struct load *l) {
  const struct nisa_access *src = &l->in.operand[1];
  uint64_t h = hash_pointer(src->base.ptr) * 31 + hash_pointer(src->map.ptr);
  for (int k = 0; k < src->n_indices; k++)
    h = h * 31 + hash_pointer(src->indices[k].ptr);
  return h * 31 + hash_pointer(mlirOperationGetBlock(l->op).ptr);
}

bool ln_takes_room(struct pass_run *run, struct ln_room *r, int64_t bytes) {
  const char *capacity = pass_option(run, "sbuf-capacity"); /* of insert-spill-reload, which tries what fits */
  int64_t sbuf, psum;
  if (!r->is_known) {
    nisa_memory_peak(run->module, run->target, run->arena, &sbuf, &psum);
    r->bytes = (capacity ? strtoll(capacity, NULL, 10) : nisa_machine(run->target)->sbuf_bytes) - sbuf;
    r->is_known = true;
  }
  if (bytes > r->bytes)
    return false;
  r->bytes -= bytes;
  return true;
}

static const struct ln_uses *uses_of(struct load *l) {
  if (!l->has_uses)
    l->uses = ln_uses_of(l->in.operand[0].base);
  l->has_uses = true;
  return &l->uses;
}

/* Lets the buffer live until the second release, the later one.  Nothing is moved: a move makes the block forget the order of its
 * operations, which the next load would ask for. */
static void release_later(struct load *first, MlirOperation second) {
  mlirOperationSetLocation(second, mlirOperationGetLocation(first->uses.release));
  mlirOperationDestroy(first->uses.release);
  first->uses.release = second;
}

/* Lets the buffer of `first` take the place of that of `second`. */
static bool reuse(struct loads *ls, struct load *first, struct load *second) {
  MlirValue f = first->in.operand[0].base, s = second->in.operand[0].base;
  MlirOperation alloc = ln_own_alloc(s, second->op);

  /* Room only becomes less.  This is asked first, because a program that loads again and again has many such loads. */
  if (first->is_too_short && nisa_type_bytes(mlirValueGetType(s)) > ls->room.bytes && !mlirOperationIsNull(alloc) &&
      buffer_is_before(first->uses.release, alloc))
    return false;
  if (!ln_same_access(&first->in.operand[1], &second->in.operand[1]) ||
      !ln_same_access(&first->in.operand[0], &second->in.operand[0]) ||
      !mlirTypeEqual(mlirValueGetType(f), mlirValueGetType(s)) || mlirValueEqual(f, s))
    return false;
  const struct ln_uses *uf = uses_of(first), *us = uses_of(second);
  if (mlirOperationIsNull(alloc) || mlirOperationIsNull(ln_own_alloc(f, second->op)) || !uf->is_known ||
      !us->is_known || uf->n_writers != 1 || us->n_writers != 1 || mlirOperationIsNull(uf->release) ||
      mlirOperationIsNull(us->release) || !in_block_of(uf->release, second->op) ||
      !in_block_of(us->release, second->op))
    return false;
  if (buffer_is_before(uf->release, alloc) &&
      !ln_takes_room(ls->run, &ls->room, nisa_type_bytes(mlirValueGetType(f)))) {
    first->is_too_short = true;
    return false;
  }
  struct remark *r = pass_remark(ls->run, second->op, RULE_REUSE_LOAD, "not loaded again: it is in SBUF already");
  price_chosen(r, 0);
  price_instead(r, "another load", price_move_ns(ls->run->target, &second->in.operand[0], &second->in.operand[1]),
                "the data is in SBUF still");
  if (buffer_is_before(uf->release, us->release))
    release_later(first, us->release);
  else
    mlirOperationDestroy(us->release);
  mlirOperationDestroy(second->op);
  mlirValueReplaceAllUsesOfWith(s, f);
  mlirOperationDestroy(alloc);
  return true;
}

/* True if an earlier load of the same data has taken over. */
static bool reuse_earlier(struct loads *ls, struct load *l, uint64_t hash) {
  for (struct index_probe at = index_probe(&ls->by_source, hash); index_next(&at);)
    if (in_block_of(ls->all.v[at.entry].op, l->op) && reuse(ls, &ls->all.v[at.entry], l))
      return true;
  return false;
}

/* True if v is allocated in HBM and only one instruction writes it. */
static bool is_written_once(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct nisa_instr in;
  int n_writers = 0;

  if (mlirOperationIsNull(def) || !ir_is(def, "nisa.alloc") || mem_is_on_chip(nisa_type_space(mlirValueGetType(v))))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, "func.return"))
      continue;
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++)
      n_writers +=
          in.def->operand[k].writes && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, v);
  }
  return n_writers == 1;
}

/* A store is a load for what reads the array later: what it stores is in SBUF.  False if l is no such store. */
static bool read_store(struct loads *ls, struct load *l) {
  const struct nisa_access to = l->in.operand[0], from = l->in.operand[1];

  if (mlirOperationIsNull(ln_own_alloc(from.base, l->op)) || !is_written_once(to.base) || nisa_keeps_order(l->op) ||
      !mlirTypeEqual(nisa_access_element(&to), nisa_access_element(&from)))
    return false;
  l->in.operand[0] = from;
  l->in.operand[1] = to;
  table_put(&ls->stored, to.base.ptr, ls);
  return true;
}

/* True if l loads what does not change after that. */
static bool is_load(struct loads *ls, const struct load *l) {
  return !mlirOperationIsNull(ln_own_alloc(l->in.operand[0].base, l->op)) &&
         (ln_is_read_only(&ls->read_only, l->in.operand[1].base) || table_get(&ls->stored, l->in.operand[1].base.ptr));
}

int ln_reuse_loads(struct pass_run *run) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "nisa.dma_copy");
  struct loads ls = {
      .run = run, .read_only.arena = run->arena, .stored.arena = run->arena, .by_source.arena = run->arena};
  int n = 0;

  for (int k = 0; k < copies.n; k++) {
    struct load l = {.op = copies.v[k]};
    pass_step(run, l.op, "reuse-load");
    if (!nisa_read(l.op, &l.in, NULL))
      continue;
    const bool is_store = read_store(&ls, &l);
    if (!is_store && !is_load(&ls, &l))
      continue;
    const uint64_t hash = hash_load(&l);
    if (!is_store && reuse_earlier(&ls, &l, hash)) {
      n++;
      continue;
    }
    index_add(&ls.by_source, hash, ls.all.n);
    array_push(run->arena, &ls.all, l);
  }
  return n;
}

/* ---- running sums ----------------------------------------------------------------------------------------------- */

enum { A_DST, A_RES, A_SRC, A_BIAS, A_SCALE }; /* activation */
enum { SUM_ELEMENTS = 64 }; /* of fewer, the sum costs less than reading it out of the Scalar engine */

/* True if r adds up all elements of each partition of its source, into f32. */
static bool is_row_sum(const struct nisa_instr *r) {
  const struct nisa_access *dst = &r->operand[0], *src = &r->operand[1];
  MlirAttribute negated = ir_attr(r->op, "negated");
  return r->def->kind == NISA_TENSOR_REDUCE_ARITH && r->engine == NISA_ENGINE_VECTOR &&
         !strcmp(nisa_text_attr(r->op, "op"), "add") &&
         (mlirAttributeIsNull(negated) || !mlirBoolAttrGetValue(negated)) && nisa_free_elements(dst) == 1 &&
         nisa_free_elements(src) >= SUM_ELEMENTS && mlirTypeIsAF32(nisa_access_element(dst)) &&
         (mlirTypeIsAF32(nisa_access_element(src)) || mlirTypeIsABF16(nisa_access_element(src)) ||
          mlirTypeIsAF16(nisa_access_element(src)));
}

/* Fills *out with the activation that does what w does; false if there is none. */
static bool as_activation(const struct nisa_instr *w, struct ir_builder *b, struct nisa_instr *out) {
  MlirType f32 = mlirF32TypeGet(b->ctx);

  *out = *w;
  if (w->def->kind == NISA_ACTIVATION)
    return nisa_is_absent(&w->operand[A_RES]);
  const struct nisa_access *x = &w->operand[1], *y = &w->operand[2];
  if (w->def->kind != NISA_TENSOR_TENSOR_ARITH || w->engine != NISA_ENGINE_VECTOR ||
      strcmp(nisa_text_attr(w->op, "op"), "multiply") || !mlirValueEqual(x->base, y->base) || !ln_same_access(x, y))
    return false;
  *out = (struct nisa_instr){.def = nisa_op_def(NISA_ACTIVATION), .engine = NISA_ENGINE_SCALAR};
  out->operand[A_DST] = w->operand[0];
  out->operand[A_SRC] = *x;
  out->operand[A_BIAS] = ln_scalar(ir_float(b, f32, 0));
  out->operand[A_SCALE] = ln_scalar(ir_float(b, f32, 1));
  return true;
}

/* True if an operation that begins before r uses v. */
static bool is_used_before(MlirOperation r, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    while (!in_block_of(op, r))
      op = mlirOperationGetParentOperation(op);
    if (buffer_is_before(op, r))
      return true;
  }
  return false;
}

static bool has_indices(const struct nisa_access *x) {
  return x->n_indices > 0;
}

/* Clears the sum at the start of the block: GpSimd, which may have transfers to start, clears it long before it is used. */
static void clear_early(struct pass_run *run, MlirOperation alloc, const struct nisa_instr *r) {
  MlirOperation first = mlirBlockGetFirstOperation(mlirOperationGetBlock(alloc));
  if (!mlirOperationEqual(first, alloc))
    mlirOperationMoveBefore(alloc, first);
  MlirOperation next = mlirOperationGetNextInBlock(alloc);
  struct ir_builder b = edit_before(run, next);
  struct nisa_instr set = {.def = nisa_op_def(NISA_MEMSET), .engine = NISA_ENGINE_GPSIMD};

  set.operand[0] = r->operand[0];
  set.operand[1] = ln_scalar(ir_float(&b, mlirF32TypeGet(b.ctx), 0));
  mlirBlockInsertOwnedOperationBefore(b.block, next, nisa_create(&set, mlirOperationGetLocation(r->op), 0, NULL));
}

static bool sum_along(struct pass_run *run, MlirOperation reduce) {
  struct nisa_instr r, w, a;

  if (!nisa_read(reduce, &r, NULL) || !is_row_sum(&r) || has_indices(&r.operand[0]))
    return false;
  MlirValue data = r.operand[1].base, sum = r.operand[0].base;
  MlirOperation alloc = ln_own_alloc(sum, reduce);
  const struct ln_uses u = ln_uses_of(data);
  if (mlirOperationIsNull(ln_own_alloc(data, reduce)) || mlirOperationIsNull(alloc) || !u.is_known ||
      u.n_writers != 1 || !in_block_of(u.writer, reduce) || !buffer_is_before(u.writer, reduce) ||
      !nisa_read(u.writer, &w, NULL) || !ln_same_access(&w.operand[0], &r.operand[1]) || is_used_before(reduce, sum))
    return false;
  struct ir_builder b = edit_before(run, u.writer);
  if (!as_activation(&w, &b, &a))
    return false;
  MlirLocation both[] = {mlirOperationGetLocation(u.writer), mlirOperationGetLocation(reduce)};
  MlirLocation loc = mlirLocationFusedGet(b.ctx, 2, both, mlirAttributeGetNull());
  clear_early(run, alloc, &r);
  a.operand[A_RES] = r.operand[0];
  const bool is_square = w.def->kind != NISA_ACTIVATION;
  const char *function = is_square ? "square" : nisa_text_attr(w.op, "op");
  MlirNamedAttribute attrs[2] = {ir_named(&b, "op", mlirStringAttrGet(b.ctx, ir_str(function)))};
  const bool is_unsigned = !mlirAttributeIsNull(ir_attr(w.op, "unsigned"));
  attrs[1] = ir_named(&b, "unsigned", mlirUnitAttrGet(b.ctx));
  mlirBlockInsertOwnedOperationBefore(b.block, u.writer, nisa_create(&a, loc, 1 + is_unsigned, attrs));
  struct remark *rk =
      pass_remark(run, reduce, RULE_SUM_ALONG, "added up by the activation (%s) that writes it", function);
  price_chosen(rk, (double)sim_cycles_ps(sim_constant(SIM_SCALAR_SUM, run->target), NISA_ENGINE_SCALAR, run->target) /
                       SIM_PS_PER_NS);
  price_instead(rk, "a reduction", busy_ns(&r, NISA_ENGINE_VECTOR, run->target),
                "the Vector engine would read all elements again");
  mlirOperationDestroy(reduce);
  mlirOperationDestroy(u.writer);
  return true;
}

int ln_sum_along(struct pass_run *run) {
  struct ir_ops reductions = ir_collect_named(run->arena, run->module, "nisa.tensor_reduce_arith");
  int n = 0;
  for (int k = 0; k < reductions.n; k++) {
    pass_step(run, reductions.v[k], "sum-while-computing");
    n += sum_along(run, reductions.v[k]);
  }
  return n;
}
