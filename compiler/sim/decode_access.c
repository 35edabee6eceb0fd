/* decode_access: instructions and their operands. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/internal.h"
#include "ir/query.h"
#include "sim/decode_internal.h"

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The buffer, or whichever it is at run time, has elements of this many bytes, too. */
static void note_unit(struct decoder *d, const struct decoded *base, int bytes) {
  for (int k = 0; k < d->buffers.n; k++)
    if ((base->buffer < 0 || base->buffer == k) && bytes < d->buffers.v[k].unit)
      d->buffers.v[k].unit = bytes;
}

static void decode_data(struct decoder *d, const struct nisa_access *x, struct sim_operand *o) {
  const struct decoded *base = decode_find(d, x->base);
  assert(base && base->reg < 0 && mlirAffineMapGetNumResults(x->map) == base->rank);
  struct sim_bound *bounds = arena_new_array(d->arena, struct sim_bound, (size_t)base->rank);
  o->kind = SIM_ACCESS;
  o->buffer = base->buffer;
  o->ref = base->ref;
  o->start = base->start;
  o->copy = base->copy;
  o->group = base->group;
  o->n_dims = x->n_dims;
  o->par_dims = x->par_dims;
  o->partitions = nisa_partitions(x);
  o->elements = nisa_free_elements(x);
  o->bounds = bounds;
  if (!mlirTypeIsNull(x->type))
    note_unit(d, base, sim_type_bytes(o->type));
  for (int k = 0; k < x->n_dims; k++)
    o->dim[k].n = x->tile[k];
  for (int r = 0; r < base->rank; r++) {
    struct nisa_index i;
    bool is_affine = nisa_access_index(x, r, &i);
    assert(is_affine); /* nisa_verify has checked it */
    struct sim_bound b = {.at = {.constant = i.constant}, .extent = nisa_access_extent(x, r), .dim = r};
    const int64_t step = !mlirTypeIsNull(x->type) && r + 1 == base->rank ? sim_type_bytes(o->type) : base->steps[r];
    for (int k = 0; k < x->n_dims; k++) {
      o->dim[k].step += i.dim[k] * step;
      *(i.dim[k] < 0 ? &b.low : &b.high) += i.dim[k] * (x->tile[k] - 1);
    }
    for (int k = 0; k < x->n_indices; k++)
      if (i.sym[k])
        b.at = decode_add(d, b.at, decode_scalar(d, x->indices[k]), i.sym[k]);
    o->start.constant += i.constant * step;
    for (int k = 0; k < b.at.n; k++)
      o->start = decode_add(d, o->start, b.at.terms[k].reg, b.at.terms[k].factor * step);
    if (b.at.n || b.at.constant + b.low < 0 || b.at.constant + b.high >= b.extent)
      bounds[o->n_bounds++] = b;
  }
}

static void decode_operand(struct decoder *d, const struct nisa_access *x, bool is_unsigned, struct sim_operand *o) {
  if (nisa_is_absent(x))
    return;
  MlirType t = mlirValueGetType(x->base);
  if (nisa_is_scalar(x)) {
    o->kind = SIM_SCALAR;
    o->type = decode_type(t, is_unsigned);
    o->reg = decode_scalar(d, x->base);
    o->partitions = o->elements = 1;
    return;
  }
  o->type = decode_type(nisa_access_element(x), is_unsigned);
  decode_data(d, x, o);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static bool bool_attr(MlirOperation op, const char *name) {
  MlirAttribute a = ir_attr(op, name);
  return !mlirAttributeIsNull(a) && (!mlirAttributeIsABool(a) || mlirBoolAttrGetValue(a));
}

static void decode_operators(MlirOperation op, struct sim_instr *i) {
  static const char *const names[][2] = {{"op", "op0"}, {"reduce_op", "op1"}};
  for (int k = 0; k < 2; k++)
    for (int n = 0; n < 2; n++) {
      const char *text = nisa_text_attr(op, names[n][k]);
      if (*text)
        i->op[n == 1 && k == 1 ? 1 : 0] = sim_operator_from_name(text);
    }
  const char *turned = nisa_text_attr(op, "reverse_operands");
  i->is_reversed[0] = !strcmp(turned, "first") || !strcmp(turned, "both");
  i->is_reversed[1] = !strcmp(turned, "second") || !strcmp(turned, "both");
}

/* How many devices exchange data: as many as a row of replica_groups has; without it, as the shapes say. */
static int64_t decode_devices(const struct decoder *d, const struct nisa_instr *in, const struct sim_instr *i) {
  MlirAttribute groups = ir_attr(in->op, "replica_groups");
  if (!mlirAttributeIsNull(groups))
    return mlirShapedTypeGetDimSize(mlirAttributeGetType(groups), 1);
  if (i->dim < 0)
    return 1;
  const int64_t to = decode_find(d, in->operand[0].base)->dims[i->dim],
                from = decode_find(d, in->operand[1].base)->dims[i->dim];
  return to > from ? to / from : from / to;
}

/* The entries of shuffle_mask, of which nisa_verify has found 32. */
static const int64_t *decode_shuffle(struct decoder *d, MlirOperation op) {
  MlirAttribute mask = ir_attr(op, "shuffle_mask");
  const intptr_t n = mlirDenseArrayGetNumElements(mask);
  int64_t *v = arena_new_array(d->arena, int64_t, (size_t)n);
  for (intptr_t k = 0; k < n; k++)
    v[k] = mlirDenseI64ArrayGetElement(mask, k);
  return v;
}

static enum sim_type packed_format(const char *name) {
  return !strcmp(name, "f8E4M3FN") ? SIM_F8E4M3FN : !strcmp(name, "f8E5M2") ? SIM_F8E5M2 : SIM_NONE;
}

static void decode_attributes(struct decoder *d, const struct nisa_instr *in, struct sim_instr *i) {
  MlirOperation op = in->op;
  MlirAttribute coefficients = ir_attr(op, "coefficients");
  decode_operators(op, i);
  i->negates = bool_attr(op, "negated");
  i->is_transpose = bool_attr(op, "is_transpose");
  const char *perf_opt = nisa_text_attr(op, "perf_opt");
  i->is_double_row = !strcmp(perf_opt, "double_row");
  i->is_tf32[0] = !strcmp(perf_opt, "tf32") || !strcmp(perf_opt, "tf32_stationary");
  i->is_tf32[1] = !strcmp(perf_opt, "tf32") || !strcmp(perf_opt, "tf32_moving");
  i->format[0] = packed_format(nisa_text_attr(op, i->kind == NISA_QUANTIZE_MX ? "format" : "stationary_format"));
  i->format[1] = packed_format(nisa_text_attr(op, "moving_format"));
  i->where_zero = bool_attr(op, "reverse_pred");
  i->reduced_dims = (int)ir_int_attr(op, "num_r_dim", 0);
  const int indirect = nisa_indirect_operand(i->kind);
  i->dim = (int)ir_int_attr(op, indirect < 0 ? "dim" : indirect ? "src_index_dim" : "dst_index_dim", -1);
  i->limit = ir_int_attr(op, indirect ? "src_indirect_max_index" : "dst_indirect_max_index", 0);
  i->skips = bool_attr(op, "skips_out_of_range");
  if (i->kind >= NISA_ALL_GATHER && i->kind <= NISA_COLLECTIVE_PERMUTE)
    i->devices = decode_devices(d, in, i);
  i->index_run = ir_int_attr(op, "elements_per_index", 1);
  i->n_indices = ir_int_attr(op, i->kind == NISA_TOPK ? "n_elements" : "n_indices", 0);
  i->index_offset = ir_int_attr(op, "index_offset", 0);
  i->padding = ir_int_attr(op, "padding", 0);
  if (i->kind == NISA_STREAM_SHUFFLE)
    i->shuffle = decode_shuffle(d, op);
  if (!mlirAttributeIsNull(coefficients))
    for (intptr_t k = 0; k < mlirDenseArrayGetNumElements(coefficients) && k < NISA_TILE_MAX; k++)
      i->coefficient[k] = mlirDenseI64ArrayGetElement(coefficients, k);
}

enum status decode_instr(struct decoder *d, MlirOperation op) {
  struct nisa_instr in;
  const char *why;

  if (!nisa_read(op, &in, &why))
    return decode_refuse(d, op, why);
  struct sim_instr i = {.kind = in.def->kind,
                        .engine = in.engine,
                        .def = in.def,
                        .loc = ir_first_place(d->arena, mlirOperationGetLocation(op)),
                        .is_unsigned = bool_attr(op, "unsigned"),
                        .in_integers = in.engine == NISA_ENGINE_GPSIMD,
                        .signals = nisa_signals(op),
                        .result = -1};
  for (int k = 0; k < in.def->n_operands; k++)
    decode_operand(d, &in.operand[k], i.is_unsigned, &i.operand[k]);
  decode_attributes(d, &in, &i);
  const int indirect = nisa_indirect_operand(i.kind);
  if (indirect >= 0)
    i.index_step = decode_find(d, in.operand[indirect].base)->steps[i.dim];
  if (i.kind == NISA_REGISTER_LOAD)
    decode_define(d, mlirOperationGetResult(op, 0))->reg = i.result = decode_register(d, 0);
  array_push(d->arena, &d->instrs, i);
  return ST_OK;
}
