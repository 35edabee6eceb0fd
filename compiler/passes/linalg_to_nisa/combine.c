/* combine: replaces two instructions by one that does the work of both.
 *
 *     dma_copy(t, x); tensor_copy(y, t)                        ==>  dma_copy(y, x)
 *     tensor_copy(t, psum); op(y, t)                           ==>  op(y, psum)
 *     tensor_copy(t, bf16); op(y, t)                                op(y, bf16)
 *     tensor_scalar(t, x, a, op0); tensor_scalar(y, t, b, op1)     tensor_scalar(y, x, a, b, op0, op1)
 *     tensor_scalar(t, x, a, multiply, b, add); activation(y, t)   activation(y, x, scale = a, bias = b)
 *     tensor_scalar(t, x, a, subtract); activation(y, t)            tensor_scalar(b, a, -1, multiply); activation(y, x, bias = b)
 *     activation(t, x, sqrt); reciprocal(y, t)                     activation(y, x, rsqrt)
 *     memset(y, 0); reduce(t, x); tensor_tensor(y, y, t, add)      reduce(y, x)
 *
 * t is f32 (of a load, of any type) and in SBUF; only the first instruction writes it and only the second reads it, with
 * the same access.  Engines compute in f32, so t was not rounded, and the result is the same without it.  The new
 * instruction replaces the second one (for the reduction: the reduction; for the load: the load).  So the operands of the
 * first instruction must not change before the second one, and may have to be released later.  This is done only if the memory of t, which is saved,
 * is at least as large.
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

#include "base/array.h"
#include "base/index.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* The position of each operation in the module.  MLIR renumbers a block when it is asked for the order of operations
 * after one was moved.  A position here does not change: a new instruction gets the position of the one that it
 * replaces. */
struct positions {
  struct arena *arena;
  struct index by_op;
  struct {
    struct position {
      const void *op;
      int at;
    } *v;
    int n, cap;
  } all;
};

/* A buffer with its writer, its reader and its release. */
struct link {
  struct pass_run *run;
  struct positions *positions;
  MlirOperation alloc, release;
  MlirValue buffer;
  struct nisa_instr w, r; /* its writer and its reader */
  int operand;            /* of the reader */
};

/* ---- order ------------------------------------------------------------------------------------------------------ */

static int *find_position(const struct positions *p, MlirOperation op) {
  for (struct index_probe at = index_probe(&p->by_op, hash_pointer(op.ptr)); index_next(&at);)
    if (p->all.v[at.entry].op == op.ptr)
      return &p->all.v[at.entry].at;
  return NULL;
}

/* Sets the position of op, which may have the address of an erased operation. */
static void set_position(struct positions *p, MlirOperation op, int at) {
  int *known = find_position(p, op);
  if (known) {
    *known = at;
    return;
  }
  index_add(&p->by_op, hash_pointer(op.ptr), p->all.n);
  array_push(p->arena, &p->all, (struct position){op.ptr, at});
}

static void find_positions(struct positions *p, struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, NULL, NULL);
  *p = (struct positions){.arena = run->arena, .by_op.arena = run->arena};
  for (int k = 0; k < ops.n; k++)
    set_position(p, ops.v[k], k);
}

/* True if x is before y.  Both are in one block. */
static bool is_before(const struct link *l, MlirOperation x, MlirOperation y) {
  const int *at_x = find_position(l->positions, x), *at_y = find_position(l->positions, y);
  assert(at_x && at_y);
  return *at_x < *at_y;
}

/* ---- finding links ---------------------------------------------------------------------------------------------- */

bool ln_same_access(const struct nisa_access *a, const struct nisa_access *b) {
  if (!mlirAffineMapEqual(a->map, b->map) || a->n_dims != b->n_dims || a->par_dims != b->par_dims ||
      memcmp(a->tile, b->tile, (size_t)a->n_dims * sizeof *a->tile) || a->n_indices != b->n_indices)
    return false;
  for (int k = 0; k < a->n_indices; k++)
    if (!mlirValueEqual(a->indices[k], b->indices[k]))
      return false;
  return true;
}

static bool same_tile(const struct nisa_access *a, const struct nisa_access *b) {
  return a->n_dims == b->n_dims && a->par_dims == b->par_dims &&
         !memcmp(a->tile, b->tile, (size_t)a->n_dims * sizeof *a->tile);
}

/* Returns the operand of `in` with base v; -1 if there is none, or more than one. */
static int operand_of(const struct nisa_instr *in, MlirValue v) {
  int found = -1;
  for (int k = 0; k < in->def->n_operands; k++)
    if (!nisa_is_absent(&in->operand[k]) && mlirValueEqual(in->operand[k].base, v)) {
      if (found >= 0)
        return -1;
      found = k;
    }
  return found;
}

static bool add_use(struct link *l, MlirOperation user) {
  struct nisa_instr in;

  if (!nisa_read(user, &in, NULL) || !mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(l->alloc)))
    return false;
  if (in.def->kind == NISA_RELEASE) {
    l->release = user;
    return true;
  }
  const int k = operand_of(&in, l->buffer);
  if (k < 0 || nisa_is_scalar(&in.operand[k]))
    return false;
  const struct nisa_operand_def *d = &in.def->operand[k];
  if (d->writes && !d->reads && k == 0 && !l->w.def) {
    l->w = in;
    return true;
  }
  if (!d->writes && !l->r.def) {
    l->r = in;
    l->operand = k;
    return true;
  }
  return false;
}

static bool find_link(struct pass_run *run, struct positions *positions, MlirOperation alloc, struct link *l) {
  *l = (struct link){.run = run, .positions = positions, .alloc = alloc, .buffer = mlirOperationGetResult(alloc, 0)};
  MlirType t = mlirValueGetType(l->buffer);

  if (nisa_type_space(t) != MEM_SBUF)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(l->buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!add_use(l, mlirOpOperandGetOwner(u)))
      return false;
  return l->w.def && l->r.def && !mlirOperationIsNull(l->release) && is_before(l, l->w.op, l->r.op) &&
         ln_same_access(&l->w.operand[0], &l->r.operand[l->operand]);
}

/* ---- moving what the writer reads ------------------------------------------------------------------------------- */

static bool uses(MlirOperation op, MlirValue v) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    if (mlirValueEqual(mlirOperationGetOperand(op, k), v))
      return true;
  return false;
}

static bool writes(const struct nisa_instr *in, MlirValue v) {
  for (int k = 0; k < in->def->n_operands; k++)
    if (in->def->operand[k].writes && !nisa_is_absent(&in->operand[k]) && mlirValueEqual(in->operand[k].base, v))
      return true;
  return false;
}

static bool is_own_buffer(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && ir_is(def, "nisa.alloc") && mem_is_on_chip(nisa_type_space(mlirValueGetType(v)));
}

/* The buffers that are released between the writer and the reader: at most one for each operand of the writer. */
struct late {
  int n;
  MlirOperation v[NISA_OPERANDS_MAX];
};

/* True if nothing writes v between the writer and the reader, and v is not used after its release. */
static bool is_unchanged(const struct link *l, MlirValue v, struct late *late) {
  bool is_released = false;
  struct nisa_instr in;

  if (!is_own_buffer(v))
    return false;
  for (MlirOperation op = mlirOperationGetNextInBlock(l->w.op); !mlirOperationEqual(op, l->r.op);
       op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationGetNumRegions(op))
      return false;
    if (!uses(op, v))
      continue;
    if (is_released || !nisa_read(op, &in, NULL) || writes(&in, v))
      return false;
    if (in.def->kind == NISA_RELEASE) {
      assert(late->n < NISA_OPERANDS_MAX);
      late->v[late->n++] = op;
      is_released = true;
    }
  }
  return !writes(&l->r, v);
}

static bool allocates_psum(const struct link *l) {
  for (MlirOperation op = l->w.op; !mlirOperationEqual(op, l->r.op); op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "nisa.alloc") && nisa_type_space(mlirValueGetType(mlirOperationGetResult(op, 0))) == MEM_PSUM)
      return true;
  return false;
}

/* True if the reader may read the operands of the writer, and their later release costs no memory. */
static bool can_read_late(const struct link *l, struct late *late) {
  enum { COLUMN_BYTES = 64 }; /* per partition; a column of factors may cost this much */
  int64_t bytes = 0;

  for (int k = 0; k < l->w.def->n_operands; k++) {
    const struct nisa_access *x = &l->w.operand[k];
    if (k > 0 && !nisa_is_absent(x) && !nisa_is_scalar(x) && !is_unchanged(l, x->base, late))
      return false;
  }
  for (int k = 0; k < late->n; k++) {
    MlirType t = mlirValueGetType(mlirOperationGetOperand(late->v[k], 0));
    if (nisa_type_space(t) == MEM_SBUF)
      bytes += nisa_type_bytes(t);
    else if (allocates_psum(l))
      return false;
  }
  return bytes <= nisa_type_bytes(mlirValueGetType(l->buffer)) + COLUMN_BYTES;
}

/* ---- the new instruction ---------------------------------------------------------------------------------------- */

static void replace(struct link *l, const struct nisa_instr *in, const struct late *late, int n_attrs,
                    MlirNamedAttribute const *attrs) {
  MlirLocation both[] = {mlirOperationGetLocation(l->w.op), mlirOperationGetLocation(l->r.op)};
  MlirLocation loc = mlirLocationFusedGet(mlirLocationGetContext(both[0]), 2, both, mlirAttributeGetNull());
  MlirOperation op = nisa_create(in, loc, n_attrs, attrs);

  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(l->r.op), l->r.op, op);
  set_position(l->positions, op, *find_position(l->positions, l->r.op));
  for (int k = 0; k < late->n; k++)
    mlirOperationMoveAfter(late->v[k], l->r.op);
  mlirOperationDestroy(l->r.op);
  mlirOperationDestroy(l->w.op);
  mlirOperationDestroy(l->release);
  mlirOperationDestroy(l->alloc);
}

static MlirNamedAttribute named(const struct link *l, const char *name, const char *value) {
  MlirContext ctx = l->run->ir->ctx;
  return mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str(name)), mlirStringAttrGet(ctx, ir_str(value)));
}

/* True if the attribute says how an operand is accessed, or which engine executes the instruction: nisa_create sets it. */
static bool is_of_operands(MlirStringRef name) {
  static const char *const ends[] = {"_ap", "_tile", "_par_dims", "_type"};
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
    const size_t n = strlen(ends[k]);
    if (name.length > n && !memcmp(name.data + name.length - n, ends[k], n))
      return true;
  }
  return mlirStringRefEqual(name, ir_str("engine")) || mlirStringRefEqual(name, ir_str("operandSegmentSizes"));
}

int ln_own_attrs(MlirOperation op, MlirNamedAttribute out[LN_ATTRS_MAX]) {
  int n = 0;
  for (intptr_t k = 0; k < mlirOperationGetNumAttributes(op); k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(op, k);
    if (is_of_operands(mlirIdentifierStr(a.name)))
      continue;
    assert(n < LN_ATTRS_MAX);
    out[n++] = a;
  }
  return n;
}

static bool is_unsigned(const struct nisa_instr *in) {
  return !mlirAttributeIsNull(ir_attr(in->op, "unsigned"));
}

static bool is_in(const struct nisa_access *x, enum mem_space s) {
  return nisa_is_data(x) && nisa_access_space(x) == s;
}

/* Puts `in` in the place of the writer.  The reader, the buffer between them and its release go. */
static void replace_writer(struct link *l, const struct nisa_instr *in, int n, MlirNamedAttribute const *attrs) {
  MlirOperation made = nisa_create(in, mlirOperationGetLocation(l->w.op), n, attrs);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(l->w.op), l->w.op, made);
  set_position(l->positions, made, *find_position(l->positions, l->w.op));
  mlirOperationDestroy(l->r.op);
  mlirOperationDestroy(l->w.op);
  mlirOperationDestroy(l->release);
  mlirOperationDestroy(l->alloc);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* True if v exists before the writer, and nothing uses it from there to the reader. */
static bool is_free_for_writer(const struct link *l, MlirValue v) {
  MlirOperation def = ir_defining_op(v);

  if (!is_own_buffer(v) || nisa_type_space(mlirValueGetType(v)) != MEM_SBUF)
    return false;
  if (mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(l->w.op)) && !is_before(l, def, l->w.op))
    return false;
  for (MlirOperation op = l->w.op; !mlirOperationEqual(op, l->r.op); op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op) || uses(op, v))
      return false;
  return true;
}

/* True if the values that x names are known where op is. */
static bool is_known_at(const struct link *l, const struct nisa_access *x, MlirOperation op) {
  for (int k = 0; k < x->n_indices; k++) {
    MlirOperation def = ir_defining_op(x->indices[k]);
    if (!mlirOperationIsNull(def) && mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(op)) &&
        !is_before(l, def, op))
      return false;
  }
  return true;
}

/* A load goes where the data are wanted. */
static bool combine_load(struct link *l) {
  const struct nisa_access *to = &l->r.operand[0];
  struct nisa_instr in = l->w;

  if (l->w.def->kind != NISA_DMA_COPY || l->r.def->kind != NISA_TENSOR_COPY || !same_tile(to, &l->r.operand[1]) ||
      !is_free_for_writer(l, to->base) || !is_known_at(l, to, l->w.op) ||
      !mlirTypeEqual(mlirShapedTypeGetElementType(mlirValueGetType(to->base)),
                     mlirShapedTypeGetElementType(mlirValueGetType(l->buffer))))
    return false;
  in.operand[0] = *to;
  replace_writer(l, &in, 0, NULL);
  return true;
}

/* True if a copy of x to f32 is exact, and an engine can read x in its place: f32 in PSUM, or shorter floats in SBUF. */
static bool is_exact_source(const struct nisa_access *x) {
  if (!nisa_is_data(x))
    return false;
  MlirType t = mlirShapedTypeGetElementType(mlirValueGetType(x->base));
  return nisa_access_space(x) == MEM_PSUM
             ? mlirTypeIsAF32(t)
             : nisa_access_space(x) == MEM_SBUF && (mlirTypeIsABF16(t) || mlirTypeIsAF16(t));
}

static bool combine_copy(struct link *l) {
  const struct nisa_access *src = &l->w.operand[1];
  struct nisa_instr in = l->r;
  struct late late = {0};
  MlirNamedAttribute attrs[LN_ATTRS_MAX];

  if (l->w.def->kind != NISA_TENSOR_COPY || !is_exact_source(src) || !same_tile(src, &l->w.operand[0]))
    return false;
  if (l->r.engine != NISA_ENGINE_VECTOR && l->r.engine != NISA_ENGINE_SCALAR)
    return false;
  for (int k = 1; k < in.def->n_operands; k++)
    if (k != l->operand && is_in(&in.operand[k], MEM_PSUM) && is_in(src, MEM_PSUM))
      return false;
  if (!can_read_late(l, &late))
    return false;
  in.operand[l->operand] = *src;
  replace(l, &in, &late, ln_own_attrs(l->r.op, attrs), attrs);
  return true;
}

/* ---- two operations with scalars -------------------------------------------------------------------------------- */

enum { DST, SRC, OPERAND0, OPERAND1 };         /* tensor_scalar_arith */
enum { A_DST, A_RES, A_SRC, A_BIAS, A_SCALE }; /* activation */
enum { NEGATE_FOR = 64 }; /* elements per partition from which a subtraction costs more than to negate a column */

static bool is_arithmetic(const char *op) {
  return strncmp(op, "bitwise_", 8) && strncmp(op, "shift_", 6) && strncmp(op, "logical_", 8);
}

static bool is_number_type(const struct nisa_access *x) {
  MlirType t = mlirValueGetType(x->base);
  return mlirTypeIsAF32(nisa_is_scalar(x) ? t : mlirShapedTypeGetElementType(t));
}

/* True for a tensor_scalar_arith in f32. */
static bool is_float_scaling(const struct nisa_instr *in) {
  return in->def->kind == NISA_TENSOR_SCALAR_ARITH && in->engine == NISA_ENGINE_VECTOR && !is_unsigned(in) &&
         is_arithmetic(nisa_text_attr(in->op, "op0")) && is_number_type(&in->operand[OPERAND0]);
}

static bool is_single(const struct nisa_instr *in) {
  return nisa_is_absent(&in->operand[OPERAND1]);
}

static bool reverses_first(const struct nisa_instr *in) {
  const char *r = nisa_text_attr(in->op, "reverse_operands");
  return !strcmp(r, "first") || !strcmp(r, "both");
}

static bool combine_scalings(struct link *l) {
  static const char *const reverse[] = {"none", "first", "second", "both"};
  struct nisa_instr in = l->r;
  struct late late = {0};

  if (!is_float_scaling(&l->w) || !is_float_scaling(&l->r) || l->operand != SRC || !is_single(&l->w) ||
      !is_single(&l->r) || (is_in(&l->w.operand[SRC], MEM_PSUM) && is_in(&l->r.operand[OPERAND0], MEM_PSUM)))
    return false;
  if (!same_tile(&l->w.operand[SRC], &l->w.operand[DST]) || !can_read_late(l, &late))
    return false;
  in.operand[SRC] = l->w.operand[SRC];
  in.operand[OPERAND1] = l->r.operand[OPERAND0];
  in.operand[OPERAND0] = l->w.operand[OPERAND0];
  const MlirNamedAttribute attrs[] = {
      named(l, "op0", nisa_text_attr(l->w.op, "op0")), named(l, "op1", nisa_text_attr(l->r.op, "op0")),
      named(l, "reverse_operands", reverse[reverses_first(&l->w) + 2 * reverses_first(&l->r)])};
  replace(l, &in, &late, 3, attrs);
  return true;
}

/* ---- scale and bias of activation ------------------------------------------------------------------------------- */

static bool is_constant(const struct nisa_access *x, double want) {
  MlirAttribute a = nisa_is_scalar(x) ? ir_constant(x->base) : mlirAttributeGetNull();
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) == want;
}

/* Reads the writer as x * scale + bias; null accesses mean 1 and 0.  A constant with a changed sign becomes a new
 * one before the reader.  Sets *is_negative if the bias has to be negated: a column that is subtracted. */
static bool read_affine(const struct link *l, struct nisa_access *scale, struct nisa_access *bias, bool *is_negative) {
  const char *op0 = nisa_text_attr(l->w.op, "op0"), *op1 = nisa_text_attr(l->w.op, "op1");
  const struct nisa_access *c = &l->w.operand[OPERAND0];
  const bool turned = reverses_first(&l->w);
  struct ir_builder b = edit_before(l->run, l->r.op);
  MlirType f32 = mlirF32TypeGet(b.ctx);

  *scale = *bias = (struct nisa_access){.n_dims = 0};
  if (!is_single(&l->w)) {
    *scale = *c;
    *bias = l->w.operand[OPERAND1];
    return !strcmp(op0, "multiply") && !strcmp(op1, "add") && is_number_type(bias);
  }
  if (!strcmp(op0, "multiply")) {
    *scale = *c;
  } else if (!strcmp(op0, "add")) {
    *bias = *c;
  } else if (!strcmp(op0, "subtract") && turned) {
    *scale = ln_scalar(ir_float(&b, f32, -1));
    *bias = *c;
  } else if (!strcmp(op0, "subtract") && nisa_is_scalar(c) && !mlirAttributeIsNull(ir_constant(c->base))) {
    *bias = ln_scalar(ir_float(&b, f32, -mlirFloatAttrGetValueDouble(ir_constant(c->base))));
  } else if (!strcmp(op0, "subtract") && nisa_is_data(c) && nisa_free_elements(&l->w.operand[SRC]) >= NEGATE_FOR) {
    *bias = *c;
    *is_negative = true;
  } else {
    return false;
  }
  return true;
}

/* Emits minus the column before the reader, into a new buffer that is released after the reader.  Returns the column there. */
static struct nisa_access negated(struct link *l, const struct nisa_access *column) {
  MlirContext ctx = l->run->ir->ctx;
  struct ir_builder b = edit_before(l->run, l->r.op);
  MlirType f32 = mlirF32TypeGet(ctx);
  MlirAttribute space = mlirMemRefTypeGetMemorySpace(mlirValueGetType(l->buffer));
  MlirType t = mlirMemRefTypeContiguousGet(f32, 2, (int64_t[]){nisa_partitions(column), 1}, space);
  MlirOperation alloc = nisa_create_alloc(b.loc, t, 64);
  struct nisa_instr in = {.def = nisa_op_def(NISA_TENSOR_SCALAR_ARITH), .engine = NISA_ENGINE_VECTOR};
  struct nisa_access at = {.base = mlirOperationGetResult(alloc, 0), .n_dims = 2, .par_dims = 1, .tile = {0, 1}};
  MlirAffineExpr results[] = {mlirAffineDimExprGet(ctx, 0), mlirAffineConstantExprGet(ctx, 0)};

  at.tile[0] = nisa_partitions(column);
  at.map = mlirAffineMapGet(ctx, 2, 0, 2, results);
  in.operand[DST] = at;
  in.operand[SRC] = *column;
  in.operand[OPERAND0] = ln_scalar(ir_float(&b, f32, -1));
  const MlirNamedAttribute attrs[] = {named(l, "op0", "multiply"), named(l, "reverse_operands", "none")};
  MlirOperation made = nisa_create(&in, b.loc, 2, attrs);
  struct nisa_instr free = {.def = nisa_op_def(NISA_RELEASE), .operand = {{.base = at.base}}};
  MlirOperation release = nisa_create(&free, b.loc, 0, NULL);
  mlirBlockInsertOwnedOperationBefore(b.block, l->r.op, alloc);
  mlirBlockInsertOwnedOperationBefore(b.block, l->r.op, made);
  mlirBlockInsertOwnedOperationAfter(b.block, l->r.op, release);
  set_position(l->positions, made, *find_position(l->positions, l->r.op));
  return at;
}

static bool combine_activation(struct link *l) {
  struct nisa_instr in = l->r;
  struct nisa_access scale, bias;
  struct late late = {0};
  MlirNamedAttribute attrs[LN_ATTRS_MAX];
  bool is_negative = false;

  if (!is_float_scaling(&l->w) || l->r.def->kind != NISA_ACTIVATION || l->operand != A_SRC ||
      !is_constant(&l->r.operand[A_SCALE], 1) || is_unsigned(&l->r) ||
      !same_tile(&l->w.operand[SRC], &l->w.operand[DST]))
    return false;
  if (!read_affine(l, &scale, &bias, &is_negative))
    return false;
  if (!nisa_is_absent(&bias)) {
    if (!is_constant(&l->r.operand[A_BIAS], 0) || (l->run->target == TARGET_TRN1 && nisa_is_scalar(&bias)))
      return false;
    in.operand[A_BIAS] = bias;
  }
  if (!nisa_is_absent(&scale))
    in.operand[A_SCALE] = scale;
  in.operand[A_SRC] = l->w.operand[SRC];
  if (is_in(&in.operand[A_SRC], MEM_PSUM) && (is_in(&scale, MEM_PSUM) || is_in(&bias, MEM_PSUM)))
    return false;
  if (!can_read_late(l, &late))
    return false;
  if (is_negative)
    in.operand[A_BIAS] = negated(l, &bias);
  replace(l, &in, &late, ln_own_attrs(l->r.op, attrs), attrs);
  return true;
}

/* ---- the reciprocal of a root ----------------------------------------------------------------------------------- */

static bool combine_rsqrt(struct link *l) {
  struct nisa_instr in = l->w;
  struct late late = {0};

  if (l->w.def->kind != NISA_ACTIVATION || strcmp(nisa_text_attr(l->w.op, "op"), "sqrt") || is_unsigned(&l->w) ||
      !nisa_is_absent(&l->w.operand[A_RES]) || l->r.def->kind != NISA_RECIPROCAL || !can_read_late(l, &late))
    return false;
  in.operand[A_DST] = l->r.operand[0];
  const MlirNamedAttribute op = named(l, "op", "rsqrt");
  replace(l, &in, &late, 1, &op);
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
    return is_constant(v, 0);
  if (!strcmp(op, "multiply"))
    return is_constant(v, 1);
  return (!strcmp(op, "max") && is_constant(v, -HUGE_VAL)) || (!strcmp(op, "min") && is_constant(v, HUGE_VAL));
}

/* Returns the memset that wrote the elements that the reader reads at x; null if another operation may have written
 * them. */
static MlirOperation fresh_memset(const struct link *l, const struct nisa_access *x, struct nisa_instr *in) {
  MlirOperation none = {NULL}, last = none;

  if (!is_own_buffer(x->base) ||
      !mlirBlockEqual(mlirOperationGetBlock(ir_defining_op(x->base)), mlirOperationGetBlock(l->r.op)))
    return none;
  for (MlirOperation op = ir_defining_op(x->base); !mlirOperationEqual(op, l->r.op);
       op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op))
      last = none;
    else if (uses(op, x->base))
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
      !is_combined_type(nisa_access_element(dst)) || is_unsigned(&l->w) || is_unsigned(&l->r))
    return false;
  MlirOperation memset_op = fresh_memset(l, acc, &set);
  if (mlirOperationIsNull(memset_op) || !is_before(l, memset_op, l->w.op) || !is_neutral(op, &set.operand[1]))
    return false;
  in.operand[0] = *dst;
  replace_writer(l, &in, ln_own_attrs(l->w.op, attrs), attrs);
  mlirOperationDestroy(memset_op);
  return true;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static bool is_f32(MlirValue buffer) {
  return mlirTypeIsAF32(mlirShapedTypeGetElementType(mlirValueGetType(buffer)));
}

int ln_combine_reductions(struct pass_run *run) {
  struct ir_ops reductions = ir_collect_named(run->arena, run->module, "nisa.tensor_reduce_arith");
  struct positions positions;
  struct nisa_instr in;
  struct link l;
  int n = 0;

  if (!reductions.n)
    return 0;
  find_positions(&positions, run);
  for (int k = 0; k < reductions.n; k++) {
    pass_step(run, reductions.v[k], "reduce-while-computing");
    if (nisa_read(reductions.v[k], &in, NULL) && is_own_buffer(in.operand[0].base) &&
        find_link(run, &positions, ir_defining_op(in.operand[0].base), &l))
      n += combine_reduction(&l);
  }
  return n;
}

int ln_combine(struct pass_run *run) {
  struct ir_ops allocs = ir_collect_named(run->arena, run->module, "nisa.alloc");
  struct positions positions;
  struct link l;
  int n = 0;

  find_positions(&positions, run);
  for (int k = 0; k < allocs.n; k++) {
    pass_step(run, allocs.v[k], "combine-instructions");
    if (find_link(run, &positions, allocs.v[k], &l))
      n += combine_load(&l) || (is_f32(l.buffer) && (combine_copy(&l) || combine_scalings(&l) ||
                                                     combine_activation(&l) || combine_rsqrt(&l)));
  }
  return n;
}
