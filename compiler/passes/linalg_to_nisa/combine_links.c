/* combine_links: finds buffers with one writer and one reader, and puts one instruction in the place of the two.  See combine.h. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/linalg_to_nisa/combine.h"

/* ---- order ------------------------------------------------------------------------------------------------------ */

int *link_position(const struct positions *p, MlirOperation op) {
  for (struct index_probe at = index_probe(&p->by_op, hash_pointer(op.ptr)); index_next(&at);)
    if (p->all.v[at.entry].op == op.ptr)
      return &p->all.v[at.entry].at;
  return NULL;
}

void link_set_position(struct positions *p, MlirOperation op, int at) {
  int *known = link_position(p, op);
  if (known) {
    *known = at;
    return;
  }
  index_add(&p->by_op, hash_pointer(op.ptr), p->all.n);
  array_push(p->arena, &p->all, (struct position){op.ptr, at});
}

void link_positions(struct positions *p, struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, NULL, NULL);
  *p = (struct positions){.arena = run->arena, .by_op.arena = run->arena};
  for (int k = 0; k < ops.n; k++)
    link_set_position(p, ops.v[k], k);
}

bool link_is_before(const struct link *l, MlirOperation x, MlirOperation y) {
  const int *at_x = link_position(l->positions, x), *at_y = link_position(l->positions, y);
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

bool link_same_tile(const struct nisa_access *a, const struct nisa_access *b) {
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

bool link_find(struct pass_run *run, struct positions *positions, MlirOperation alloc, struct link *l) {
  *l = (struct link){.run = run, .positions = positions, .alloc = alloc, .buffer = mlirOperationGetResult(alloc, 0)};
  MlirType t = mlirValueGetType(l->buffer);

  if (nisa_type_space(t) != MEM_SBUF)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(l->buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!add_use(l, mlirOpOperandGetOwner(u)))
      return false;
  return l->w.def && l->r.def && !mlirOperationIsNull(l->release) && link_is_before(l, l->w.op, l->r.op) &&
         ln_same_access(&l->w.operand[0], &l->r.operand[l->operand]);
}

/* ---- moving what the writer reads ------------------------------------------------------------------------------- */

bool link_uses(MlirOperation op, MlirValue v) {
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

bool link_is_own_buffer(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && ir_is(def, "nisa.alloc") && mem_is_on_chip(nisa_type_space(mlirValueGetType(v)));
}

/* True if nothing writes v between the writer and the reader, and v is not used after its release. */
static bool is_unchanged(const struct link *l, MlirValue v, struct late *late) {
  bool is_released = false;
  struct nisa_instr in;

  if (!link_is_own_buffer(v))
    return false;
  for (MlirOperation op = mlirOperationGetNextInBlock(l->w.op); !mlirOperationEqual(op, l->r.op);
       op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationGetNumRegions(op))
      return false;
    if (!link_uses(op, v))
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

bool link_can_read_late(const struct link *l, struct late *late) {
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

void link_replace(struct link *l, const struct nisa_instr *in, const struct late *late, int n_attrs,
                  MlirNamedAttribute const *attrs) {
  MlirLocation both[] = {mlirOperationGetLocation(l->w.op), mlirOperationGetLocation(l->r.op)};
  MlirLocation loc = mlirLocationFusedGet(mlirLocationGetContext(both[0]), 2, both, mlirAttributeGetNull());
  MlirOperation op = nisa_create(in, loc, n_attrs, attrs);

  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(l->r.op), l->r.op, op);
  link_set_position(l->positions, op, *link_position(l->positions, l->r.op));
  for (int k = 0; k < late->n; k++)
    mlirOperationMoveAfter(late->v[k], l->r.op);
  mlirOperationDestroy(l->r.op);
  mlirOperationDestroy(l->w.op);
  mlirOperationDestroy(l->release);
  mlirOperationDestroy(l->alloc);
}

MlirNamedAttribute link_named(const struct link *l, const char *name, const char *value) {
  MlirContext ctx = l->run->ir->ctx;
  return mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str(name)), mlirStringAttrGet(ctx, ir_str(value)));
}

int ln_own_attrs(MlirOperation op, MlirNamedAttribute out[LN_ATTRS_MAX]) {
  const struct nisa_op_def *def = nisa_op_of(op);
  int n = 0;
  for (intptr_t k = 0; k < mlirOperationGetNumAttributes(op); k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(op, k);
    if (!nisa_is_own_attr(def, mlirIdentifierStr(a.name)))
      continue;
    assert(n < LN_ATTRS_MAX);
    out[n++] = a;
  }
  return n;
}

bool link_is_unsigned(const struct nisa_instr *in) {
  return !mlirAttributeIsNull(ir_attr(in->op, "unsigned"));
}

bool link_is_in(const struct nisa_access *x, enum mem_space s) {
  return nisa_is_data(x) && nisa_access_space(x) == s;
}

void link_replace_writer(struct link *l, const struct nisa_instr *in, int n, MlirNamedAttribute const *attrs) {
  MlirOperation made = nisa_create(in, mlirOperationGetLocation(l->w.op), n, attrs);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(l->w.op), l->w.op, made);
  link_set_position(l->positions, made, *link_position(l->positions, l->w.op));
  mlirOperationDestroy(l->r.op);
  mlirOperationDestroy(l->w.op);
  mlirOperationDestroy(l->release);
  mlirOperationDestroy(l->alloc);
}

bool link_is_constant(const struct nisa_access *x, double want) {
  MlirAttribute a = nisa_is_scalar(x) ? ir_constant(x->base) : mlirAttributeGetNull();
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) == want;
}
