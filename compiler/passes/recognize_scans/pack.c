/* pack: plans how values that correspond, one for each step, become one value.  See unrolled.h. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/recognize_scans/unrolled.h"

/* Values of table `busy`. */
static char is_busy, is_done;

/* ---- where ---------------------------------------------------------------------------------------------------------- */

static void later(MlirOperation *before, MlirOperation other) {
  if (mlirOperationIsNull(*before) || mlirOperationIsBeforeInBlock(*before, other))
    *before = other;
}

void pack_needs(const struct unrolled *u, MlirValue v, MlirOperation *before) {
  MlirOperation def = ir_defining_op(v);
  const bool is_here = !mlirOperationIsNull(def) && mlirBlockEqual(mlirOperationGetBlock(def), u->block);

  later(before, is_here ? mlirOperationGetNextInBlock(def) : mlirBlockGetFirstOperation(u->block));
}

void pack_needs_pack(struct pack *p, const struct pack *needed) {
  later(&p->before, needed->before);
}

/* What the body of op takes from outside. */
static void needs_captured(const struct unrolled *u, MlirOperation op, MlirOperation *before) {
  MlirBlock body = ir_body(op);
  for (MlirOperation o = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(o); k++) {
      MlirValue x = mlirOperationGetOperand(o, k);
      MlirOperation def = ir_defining_op(x);
      const bool is_inside = mlirOperationIsNull(def) ? mlirBlockEqual(mlirBlockArgumentGetOwner(x), body)
                                                      : mlirBlockEqual(mlirOperationGetBlock(def), body);
      if (!is_inside)
        pack_needs(u, x, before);
    }
}

/* ---- the same value, and slices ------------------------------------------------------------------------------------- */

static bool is_same_value(const struct pack *p) {
  for (int t = 1; t < p->n; t++)
    if (!mlirValueEqual(p->v[t], p->v[0]))
      return false;
  return true;
}

/* True if every value is a tensor of the same elements and extents, and no knob asks something for it. */
static bool is_alike(const struct pack *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  for (int t = 0; t < p->n; t++)
    if (form_dims(p->v[t], dims) != p->rank ||
        (p->rank && memcmp(dims, p->dims, (size_t)p->rank * sizeof *dims) != 0) ||
        !mlirTypeEqual(ir_value_element(p->v[t]), ir_value_element(p->v[0])) || form_is_annotated(p->v[t]))
      return false;
  return true;
}

static int64_t entry(MlirOperation slice, const char *name, int d) {
  return mlirDenseI64ArrayGetElement(ir_attr(slice, name), d);
}

/* True if a and b are slices of one tensor that differ only in where they begin, along one dimension, of which they have one
 * element; sets it and the distance.  *axis is -1 if it is not known yet. */
static bool is_next_slice(MlirOperation a, MlirOperation b, int *axis, int64_t *by) {
  if (!mlirValueEqual(mlirOperationGetOperand(a, 0), mlirOperationGetOperand(b, 0)))
    return false;
  const int rank = (int)mlirDenseArrayGetNumElements(ir_attr(a, "static_offsets"));
  for (int d = 0; d < rank; d++) {
    const int64_t far = entry(b, "static_offsets", d) - entry(a, "static_offsets", d);
    if (entry(a, "static_sizes", d) != entry(b, "static_sizes", d) ||
        entry(a, "static_strides", d) != entry(b, "static_strides", d))
      return false;
    if (!far && d != *axis)
      continue;
    if (far <= 0 || entry(a, "static_sizes", d) != 1 || (*axis >= 0 && (d != *axis || far != *by)))
      return false;
    *axis = d;
    *by = far;
  }
  return *axis >= 0;
}

static bool pack_slices(struct unrolled *u, struct pack *p) {
  MlirOperation before = {NULL};
  int axis = -1;
  int64_t by = 0;

  for (int t = 0; t < p->n; t++) {
    MlirOperation op = ir_defining_op(p->v[t]);
    if (mlirOperationIsNull(op) || !ir_is(op, "tensor.extract_slice") || mlirOperationGetNumOperands(op) != 1 ||
        (t && !is_next_slice(before, op, &axis, &by)))
      return false;
    before = op;
  }
  p->kind = PACK_SLICES;
  p->axis = axis;
  p->begin = entry(ir_defining_op(p->v[0]), "static_offsets", axis);
  p->stride = by;
  pack_needs(u, mlirOperationGetOperand(before, 0), &p->before);
  return true;
}

/* ---- operations ----------------------------------------------------------------------------------------------------- */

/* The scalar in every element of a destination; null if it is none. */
static MlirValue filled_with(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return mlirOperationIsNull(def) || !ir_is(def, "linalg.fill") ? (MlirValue){NULL} : mlirOperationGetOperand(def, 0);
}

static bool read_operations(struct pack *p) {
  MlirOperation first = ir_defining_op(p->v[0]);
  struct form f;

  if (!form_read(first, &p->form))
    return false;
  if (p->form.reads_init)
    p->fill = filled_with(mlirOperationGetOperand(first, p->form.n_inputs));
  if (p->form.reads_init && mlirValueIsNull(p->fill))
    return false;
  for (int t = 1; t < p->n; t++) {
    MlirOperation op = ir_defining_op(p->v[t]);
    if (!form_read(op, &f) || !form_is_same(first, &p->form, op, &f) ||
        (f.reads_init && !mlirValueEqual(filled_with(mlirOperationGetOperand(op, f.n_inputs)), p->fill)))
      return false;
  }
  return p->form.n_loops < STRUCTURED_LOOPS_MAX;
}

static bool pack_operations(struct unrolled *u, struct pack *p) {
  MlirValue *v = arena_new_array(u->run->arena, MlirValue, (size_t)p->n);
  bool varies = false;

  if (!read_operations(p))
    return false;
  for (int k = 0; k < p->form.n_inputs; k++) {
    for (int t = 0; t < p->n; t++)
      v[t] = mlirOperationGetOperand(ir_defining_op(p->v[t]), k);
    p->in[k] = pack_values(u, p->n, v);
    if (p->in[k]->kind == PACK_REFUSED)
      return false;
    varies |= p->in[k]->kind != PACK_SAME;
    pack_needs_pack(p, p->in[k]);
  }
  if (!varies)
    return false;
  needs_captured(u, ir_defining_op(p->v[0]), &p->before);
  if (p->form.reads_init)
    pack_needs(u, p->fill, &p->before);
  p->kind = PACK_OPERATIONS;
  return true;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

/* The rows of a packed value should fill the partitions: if there are fewer than 128, the longest dimension comes first. */
static void set_order(struct pack *p) {
  enum { PARTITIONS = 128 };
  int first = 0;

  for (int d = 1; d < p->rank && p->dims[0] < PARTITIONS; d++)
    if (p->dims[d] > p->dims[first])
      first = d;
  for (int k = 0; k < p->rank; k++)
    p->order[k] = !k ? first : k <= first ? k - 1 : k;
}

static bool is_any_busy(const struct unrolled *u, const struct pack *p) {
  for (int t = 0; t < p->n; t++)
    if (table_get(&u->busy, p->v[t].ptr) == &is_busy)
      return true;
  return false;
}

static void plan(struct unrolled *u, struct pack *p) {
  p->rank = form_dims(p->v[0], p->dims);
  for (int k = 0; k < p->rank; k++)
    p->order[k] = k;
  if (p->rank < 0)
    return;
  if (is_same_value(p)) {
    p->kind = PACK_SAME;
    pack_needs(u, p->v[0], &p->before);
    return;
  }
  if (p->n < UNROLLED_STEPS_MIN - 1 || p->rank == STRUCTURED_LOOPS_MAX || !is_alike(p) || is_any_busy(u, p))
    return;
  set_order(p);
  if (pack_slices(u, p) || pack_part(u, p))
    return;
  for (int t = 0; t < p->n; t++)
    table_put(&u->busy, p->v[t].ptr, &is_busy);
  if (!(p->is_between && pack_operations(u, p)) && !pack_steps(u, p) && !pack_operations(u, p))
    p->kind = PACK_REFUSED;
  for (int t = 0; t < p->n; t++)
    table_put(&u->busy, p->v[t].ptr, &is_done);
}

struct pack *pack_values(struct unrolled *u, int n, MlirValue const *v) {
  struct arena *a = u->run->arena;
  MlirValue *own = arena_new_array(a, MlirValue, (size_t)n);

  for (int t = 0; t < n; t++)
    own[t] = form_source(v[t]);
  struct pack *known = table_get(&u->packs, own[1].ptr);
  for (struct pack *p = known; p; p = p->next)
    if (p->n == n && !memcmp(p->v, own, (size_t)n * sizeof *own))
      return p;
  struct pack *p = arena_new(a, struct pack);
  *p = (struct pack){.n = n, .v = own, .next = known};
  table_put(&u->packs, own[1].ptr, p);
  plan(u, p);
  return p;
}
