/* combine: replaces two instructions by one that does the work of both.
 *
 *     dma_copy(t, x); tensor_copy(y, t)                        ==>  dma_copy(y, x)
 *     tensor_copy(t, psum); op(y, t)                           ==>  op(y, psum)
 *     tensor_copy(t, bf16); op(y, t)                                op(y, bf16)
 *     tensor_copy(t, x); op(y, t)                                   op(y, x)                       x in SBUF, of t's type
 *     op(t, x); tensor_copy(y, t)                                   op(y, x)
 *     tensor_scalar(t, x, a, op0); tensor_scalar(y, t, b, op1)     tensor_scalar(y, x, a, b, op0, op1)
 *     tensor_scalar(t, x, a, op0); tensor_tensor(y, t, z, op1)     scalar_tensor_tensor(y, x, a, z, op0, op1)   (*)
 *     tensor_scalar(t, x, a, multiply, b, add); activation(y, t)   activation(y, x, scale = a, bias = b)
 *     tensor_scalar(t, x, a, subtract); activation(y, t)            tensor_scalar(b, a, -1, multiply); activation(y, x, bias = b)
 *     activation(t, x, sqrt); reciprocal(y, t)                     activation(y, x, rsqrt)
 *     memset(y, 0); reduce(t, x); tensor_tensor(y, y, t, add)      reduce(y, x)
 *     reduce(t, x, max); tensor_scalar(y, t, -1, multiply)         reduce(y, x, min, negated)
 *
 * t is f32 (of a load, of any type) and in SBUF; only the first instruction writes it and only the second reads it, with
 * the same access.  Engines compute in f32, so t was not rounded, and the result is the same without it.  With a factor or
 * a summand, x, t and y may also be of one shorter float type: then the result is rounded once instead of twice, which is
 * nearer to the exact one.  The new instruction replaces the second one (for the reduction: the reduction; for the load: the load).  So the operands of the
 * first instruction must not change before the second one, and may have to be released later.  This is done only if the memory of t, which is saved,
 * is at least as large.
 *
 * (*) Only Vector has this one, and a column in it cannot be repeated, so balance-engines does it with what stays on Vector after
 * the work is divided (ln_combine_tensors).
 *
 * On trn1 a bias other than zero must be in memory, so a constant is not made a bias.  The file
 * runs at the end of linalg-to-nisa.  Its time is linear in the number of operations, times the distance between the
 * two instructions.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/linalg_to_nisa/combine.h"

static bool is_f32(MlirValue buffer) {
  return mlirTypeIsAF32(mlirShapedTypeGetElementType(mlirValueGetType(buffer)));
}

static bool is_short_float(MlirType t) {
  return mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* True if v exists before the writer, and nothing uses it from there to the reader. */
static bool is_free_for_writer(const struct link *l, MlirValue v) {
  MlirOperation def = ir_defining_op(v);

  if (!link_is_own_buffer(v) || nisa_type_space(mlirValueGetType(v)) != MEM_SBUF)
    return false;
  if (mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(l->w.op)) && !link_is_before(l, def, l->w.op))
    return false;
  for (MlirOperation op = l->w.op; !mlirOperationEqual(op, l->r.op); op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op) || link_uses(op, v))
      return false;
  return true;
}

/* True if the values that x names are known where op is. */
static bool is_known_at(const struct link *l, const struct nisa_access *x, MlirOperation op) {
  for (int k = 0; k < x->n_indices; k++) {
    MlirOperation def = ir_defining_op(x->indices[k]);
    if (!mlirOperationIsNull(def) && mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(op)) &&
        !link_is_before(l, def, op))
      return false;
  }
  return true;
}

/* A load goes where the data are wanted. */
static bool combine_load(struct link *l) {
  const struct nisa_access *to = &l->r.operand[0];
  struct nisa_instr in = l->w;

  if (l->w.def->kind != NISA_DMA_COPY || l->r.def->kind != NISA_TENSOR_COPY || !link_same_tile(to, &l->r.operand[1]) ||
      !is_free_for_writer(l, to->base) || !is_known_at(l, to, l->w.op) ||
      !mlirTypeEqual(mlirShapedTypeGetElementType(mlirValueGetType(to->base)),
                     mlirShapedTypeGetElementType(mlirValueGetType(l->buffer))))
    return false;
  in.operand[0] = *to;
  link_replace_writer(l, &in, 0, NULL);
  return true;
}

/* What is computed is written where the copy goes. */
static bool combine_written(struct link *l) {
  const struct nisa_access *to = &l->r.operand[0];
  struct nisa_instr in = l->w;
  MlirNamedAttribute attrs[LN_ATTRS_MAX];

  const bool adds_up = l->w.def->kind == NISA_ACTIVATION && !nisa_is_absent(&l->w.operand[1]);
  if (adds_up || !ln_rounds_when_it_writes(&l->w) || l->r.def->kind != NISA_TENSOR_COPY ||
      !link_same_tile(to, &l->r.operand[1]) || !link_is_in(to, MEM_SBUF) ||
      !mlirTypeEqual(nisa_access_element(to), nisa_access_element(&l->w.operand[0])) || !mlirTypeIsNull(to->type) ||
      !mlirTypeIsNull(l->w.operand[0].type) || nisa_keeps_order(l->w.op) || nisa_keeps_order(l->r.op) ||
      !is_free_for_writer(l, to->base) || !is_known_at(l, to, l->w.op))
    return false;
  in.operand[0] = *to;
  link_replace_writer(l, &in, ln_own_attrs(l->w.op, attrs), attrs);
  return true;
}

/* True if a copy of x is exact, and an engine can read x in its place: f32 in PSUM, shorter floats in SBUF, or there what is of the type
 * of the copy. */
static bool is_exact_source(const struct nisa_access *x, MlirType copied) {
  if (!nisa_is_data(x))
    return false;
  MlirType t = mlirShapedTypeGetElementType(mlirValueGetType(x->base));
  return nisa_access_space(x) == MEM_PSUM
             ? mlirTypeIsAF32(t)
             : nisa_access_space(x) == MEM_SBUF && (is_short_float(t) || mlirTypeEqual(t, copied));
}

static bool combine_copy(struct link *l) {
  const struct nisa_access *src = &l->w.operand[1];
  struct nisa_instr in = l->r;
  struct late late = {0};
  MlirNamedAttribute attrs[LN_ATTRS_MAX];

  if (l->w.def->kind != NISA_TENSOR_COPY || !is_exact_source(src, nisa_access_element(&l->w.operand[0])) ||
      !link_same_tile(src, &l->w.operand[0]))
    return false;
  if (l->r.engine != NISA_ENGINE_VECTOR && l->r.engine != NISA_ENGINE_SCALAR)
    return false;
  for (int k = 1; k < in.def->n_operands; k++)
    if (k != l->operand && link_is_in(&in.operand[k], MEM_PSUM) && link_is_in(src, MEM_PSUM))
      return false;
  if (!link_can_read_late(l, &late))
    return false;
  in.operand[l->operand] = *src;
  link_replace(l, &in, &late, ln_own_attrs(l->r.op, attrs), attrs);
  return true;
}

/* ---- the first part of a reduction ------------------------------------------------------------------------------ */

/* True if v `op` x is x for every x of v's type: a signed integer, or bool as 0 and 1. */
static bool is_neutral_integer(const char *op, MlirAttribute v) {
  const unsigned width = mlirIntegerTypeGetWidth(mlirAttributeGetType(v));
  const int64_t high = width == 1 ? 1 : INT64_MAX >> (64 - width), low = width == 1 ? 0 : -high - 1;
  const int64_t is = width == 1 ? mlirIntegerAttrGetValueInt(v) & 1 : mlirIntegerAttrGetValueInt(v);

  return (!strcmp(op, "add") && is == 0) || (!strcmp(op, "max") && is == low) || (!strcmp(op, "min") && is == high);
}

/* True if v `op` x is x for every x, except for the sign of zeros. */
static bool is_neutral(const char *op, const struct nisa_access *v) {
  MlirAttribute a = nisa_is_scalar(v) ? ir_constant(v->base) : mlirAttributeGetNull();
  if (!mlirAttributeIsNull(a) && mlirAttributeIsAInteger(a) && mlirTypeIsAInteger(mlirAttributeGetType(a)))
    return is_neutral_integer(op, a);
  if (!strcmp(op, "add"))
    return link_is_constant(v, 0);
  if (!strcmp(op, "multiply"))
    return link_is_constant(v, 1);
  return (!strcmp(op, "max") && link_is_constant(v, -HUGE_VAL)) ||
         (!strcmp(op, "min") && link_is_constant(v, HUGE_VAL));
}

/* Returns the memset that wrote the elements that the reader reads at x; null if another operation may have written
 * them. */
static MlirOperation fresh_memset(const struct link *l, const struct nisa_access *x, struct nisa_instr *in) {
  MlirOperation none = {NULL}, last = none;

  if (!link_is_own_buffer(x->base) ||
      !mlirBlockEqual(mlirOperationGetBlock(ir_defining_op(x->base)), mlirOperationGetBlock(l->r.op)))
    return none;
  for (MlirOperation op = ir_defining_op(x->base); !mlirOperationEqual(op, l->r.op);
       op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op))
      last = none;
    else if (link_uses(op, x->base))
      last = op;
  if (mlirOperationIsNull(last) || !nisa_read(last, in, NULL) || in->def->kind != NISA_MEMSET)
    return none;
  return ln_same_access(&in->operand[0], x) ? last : none;
}

static bool is_combined_type(MlirType t) {
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t) || mlirTypeIsAInteger(t);
}

/* The sum is rounded to the type of the result in both forms, so all types may be added to a neutral element. */
static bool combine_reduction(struct link *l) {
  struct nisa_instr set, in = l->w;
  MlirNamedAttribute attrs[LN_ATTRS_MAX];
  const int other = l->operand == 1 ? 2 : 1;

  if (l->w.def->kind != NISA_TENSOR_REDUCE_ARITH || l->r.def->kind != NISA_TENSOR_TENSOR_ARITH)
    return false;
  const struct nisa_access *dst = &l->r.operand[0], *acc = &l->r.operand[other];
  const char *op = nisa_text_attr(l->r.op, "op");
  if (strcmp(op, nisa_text_attr(l->w.op, "op")) || !mlirValueEqual(dst->base, acc->base) || !ln_same_access(dst, acc) ||
      !mlirTypeEqual(nisa_access_element(dst), nisa_access_element(&l->w.operand[0])) ||
      !is_combined_type(nisa_access_element(dst)) || link_is_unsigned(&l->w) || link_is_unsigned(&l->r))
    return false;
  MlirOperation memset_op = fresh_memset(l, acc, &set);
  if (mlirOperationIsNull(memset_op) || !link_is_before(l, memset_op, l->w.op) || !is_neutral(op, &set.operand[1]))
    return false;
  in.operand[0] = *dst;
  link_replace_writer(l, &in, ln_own_attrs(l->w.op, attrs), attrs);
  mlirOperationDestroy(memset_op);
  return true;
}

/* ---- a result of a reduction that is negated -------------------------------------------------------------------- */

/* True if the link's reader writes minus the buffer, all of it, into a buffer of its own. */
static bool is_negation(const struct link *l) {
  const struct nisa_access *dst = &l->r.operand[0];
  return l->r.def->kind == NISA_TENSOR_SCALAR_ARITH && l->operand == 1 && nisa_is_absent(&l->r.operand[3]) &&
         !strcmp(nisa_text_attr(l->r.op, "op0"), "multiply") && link_is_constant(&l->r.operand[2], -1) &&
         link_is_own_buffer(dst->base) && link_is_in(dst, MEM_SBUF) && is_f32(dst->base) &&
         mlirBlockEqual(mlirOperationGetBlock(ir_defining_op(dst->base)), mlirOperationGetBlock(l->w.op)) &&
         ln_same_access(dst, &l->r.operand[1]) && ln_same_access(dst, &l->w.operand[0]) &&
         ln_uses_of(dst->base).n_writers == 1;
}

/* True if the reduction does not round: the buffer is f32, or one of the elements is the result. */
static bool is_exact(const struct link *l, const char *op) {
  return is_f32(l->buffer) ||
         (strcmp(op, "add") && is_short_float(nisa_access_element(&l->w.operand[1])) &&
          mlirTypeEqual(nisa_access_element(&l->w.operand[1]), nisa_access_element(&l->w.operand[0])));
}

/* NISA negates what a reduction reads, so minus a maximum is the minimum of what is negated. */
static bool combine_negation(struct link *l) {
  MlirAttribute negated = l->w.def->kind == NISA_TENSOR_REDUCE_ARITH ? ir_attr(l->w.op, "negated") : (MlirAttribute){0};
  struct nisa_instr in = l->w;
  MlirNamedAttribute attrs[LN_ATTRS_MAX];

  if (mlirAttributeIsNull(negated) || mlirBoolAttrGetValue(negated) || !is_negation(l) || nisa_keeps_order(l->w.op) ||
      nisa_keeps_order(l->r.op))
    return false;
  const char *op = nisa_text_attr(l->w.op, "op"), *by = !strcmp(op, "max")   ? "min"
                                                        : !strcmp(op, "min") ? "max"
                                                        : !strcmp(op, "add") ? op
                                                                             : NULL;
  if (!by || !is_exact(l, op))
    return false;
  MlirValue result = l->r.operand[0].base;
  const int n = ln_own_attrs(l->w.op, attrs);
  for (int k = 0; k < n; k++) {
    if (mlirIdentifierEqual(attrs[k].name, link_named(l, "op", by).name))
      attrs[k] = link_named(l, "op", by);
    else if (mlirAttributeEqual(attrs[k].attribute, negated))
      attrs[k].attribute = mlirBoolAttrGet(l->run->ir->ctx, true);
  }
  in.operand[0].base = result;
  mlirOperationMoveBefore(ir_defining_op(result), l->w.op);
  link_replace_writer(l, &in, n, attrs);
  return true;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

int ln_combine_reductions(struct pass_run *run) {
  struct ir_ops reductions = ir_collect_named(run->arena, run->module, "nisa.tensor_reduce_arith");
  struct positions positions;
  struct nisa_instr in;
  struct link l;
  int n = 0;

  if (!reductions.n)
    return 0;
  link_positions(&positions, run);
  for (int k = 0; k < reductions.n; k++) {
    pass_step(run, reductions.v[k], "reduce-while-computing");
    if (nisa_read(reductions.v[k], &in, NULL) && link_is_own_buffer(in.operand[0].base) &&
        link_find(run, &positions, ir_defining_op(in.operand[0].base), &l))
      n += combine_reduction(&l);
  }
  return n;
}

static int combine_each(struct pass_run *run, bool (*combine)(struct link *l)) {
  struct ir_ops allocs = ir_collect_named(run->arena, run->module, "nisa.alloc");
  struct positions positions;
  struct link l;
  int n = 0;

  link_positions(&positions, run);
  for (int k = 0; k < allocs.n; k++) {
    pass_step(run, allocs.v[k], "combine-instructions");
    n += link_find(run, &positions, allocs.v[k], &l) && combine(&l);
  }
  return n;
}

static bool combine_any(struct link *l) {
  return combine_load(l) || combine_written(l) || (is_f32(l->buffer) && combine_copy(l)) || combine_scale(l);
}

int ln_combine(struct pass_run *run) {
  const int n = combine_each(run, combine_any);
  return n +
         combine_each(run, combine_negation); /* the negations are what an activation's bias needs (combine_scales.c) */
}

int ln_combine_tensors(struct pass_run *run) {
  return combine_each(run, combine_tensor);
}
