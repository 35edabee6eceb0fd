/* lower: lowers HLO to linalg.  This file has the walk over the module and the table of lowerings; the other files of
 * this directory have the lowerings.
 *
 * Integers are signless in MLIR, so each lowering chooses operations by the HLO dtype, never by the MLIR type.  Shapes
 * are static.
 */
#include "linalg/lower.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "hlo/complex.h"
#include "linalg/impl.h"

/* ---- helpers for all files -------------------------------------------------------------------------- */

enum status lower_refuse(struct lower *l, const struct hlo_instr *i, const char *fmt, ...) {
  va_list ap;

  va_start(ap, fmt);
  const char *why = arena_vprintf(l->ds->arena, fmt, ap);
  va_end(ap);
  diag_add(l->ds, DS_ERROR, DG_LOWERING_UNSUPPORTED, i->locs.n ? i->locs.v[0] : NULL, "%%%s = %s %s: %s", i->name,
           hlo_shape_text(l->ds->arena, &i->shape), hlo_op_name(i->op), why);
  return ST_INPUT;
}

/* True for a constant whose elements are all equal, and for a broadcast of one. */
static bool is_number(const struct hlo_instr *i) {
  while (i->op == HLO_BROADCAST || i->op == HLO_RESHAPE)
    i = i->operands[0];
  return lower_is_splat(i);
}

MlirLocation lower_location(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *other) {
  MlirLocation locs[] = {ir_loc_tagged(l->ir->ctx, i->id, i->locs), {NULL}};

  if (!other)
    return locs[0];
  /* a number that several instructions share has the places of all of them; here i's own place is sufficient */
  locs[1] = ir_loc_tagged(l->ir->ctx, other->id, is_number(other) ? (struct src_locs){0} : other->locs);
  return mlirLocationFusedGet(l->ir->ctx, 2, locs, mlirAttributeGetNull());
}

void lower_set(struct lower *l, const struct hlo_instr *i, MlirValue v, MlirOperation op) {
  struct node *n = node_of(l, i);

  assert(!mlirValueIsNull(v));
  n->value = v;
  n->is_done = true;
  if (mlirOperationIsNull(op))
    return;
  n->work = op;
  n->n_loops = i->shape.rank;
  n->extents = i->shape.dims;
}

MlirValue lower_empty(struct lower *l, const struct hlo_shape *s) {
  return ir_empty(&l->b, s->dtype, s->rank, s->dims);
}

bool lower_is_splat(const struct hlo_instr *i) {
  if (i->op != HLO_CONSTANT || !i->attrs->literal->size)
    return false;
  const size_t n = dtype_size(i->shape.dtype);
  const char *data = i->attrs->literal->data;
  return i->attrs->literal->size == n || !memcmp(data, data + n, i->attrs->literal->size - n);
}

MlirValue lower_splat(struct lower *l, const struct hlo_instr *i) {
  struct node *n = node_of(l, i);

  if (mlirValueIsNull(n->scalar) && lower_is_splat(i)) {
    struct ir_builder b = l->b;
    b.loc = lower_location(l, i, NULL);
    n->scalar = ir_element(&b, i->shape.dtype, i->attrs->literal->data);
  }
  return n->scalar;
}

/* ---- leaves and the root ----------------------------------------------------------------------------- */

static MlirAttribute literal_attr(struct lower *l, const struct hlo_instr *i, MlirType type) {
  const struct hlo_literal *lit = i->attrs->literal;
  const size_t size = dtype_size(i->shape.dtype);
  const bool splat = lower_is_splat(i);

  if (i->shape.dtype != DT_BOOL)
    return mlirDenseElementsAttrRawBufferGet(type, splat ? size : lit->size, lit->data);
  const uint8_t *bytes = lit->data;
  if (splat)
    return mlirDenseElementsAttrBoolSplatGet(type, bytes[0] != 0);
  int *v = arena_new_array(&l->arena, int, lit->size);
  for (size_t k = 0; k < lit->size; k++)
    v[k] = bytes[k] != 0;
  return mlirDenseElementsAttrBoolGet(type, (intptr_t)lit->size, v);
}

static enum status lower_constant(struct lower *l, const struct hlo_instr *i) {
  if (!i->attrs->literal->size) {
    lower_set(l, i, lower_empty(l, &i->shape), lower_no_op());
    return ST_OK;
  }
  MlirType type = ir_tensor_type(&l->b, i->shape.dtype, i->shape.rank, i->shape.dims);
  lower_set(l, i, ir_constant_of(&l->b, literal_attr(l, i, type)), lower_no_op());
  return ST_OK;
}

static enum status lower_parameter(struct lower *l, const struct hlo_instr *i) {
  lower_set(l, i, mlirBlockGetArgument(l->b.block, i->attrs->parameter_number), lower_no_op());
  return ST_OK;
}

/* op-expander has expanded conversions between types of different sizes, except those to and from 64 bits. */
static enum status lower_bitcast_convert(struct lower *l, const struct hlo_instr *i) {
  if (dtype_size(i->shape.dtype) != dtype_size(i->operands[0]->shape.dtype))
    return lower_refuse(l, i, "the hardware has no 64-bit types");
  return lower_elementwise(l, i);
}

/* The barrier forbids moving instructions across it.  This lowering never moves any, so the barrier is a copy. */
static enum status lower_opt_barrier(struct lower *l, const struct hlo_instr *i) {
  if (i->shape.dtype == DT_TUPLE)
    lower_copy_tuple(l, i);
  else
    lower_set(l, i, lower_value(l, i->operands[0]), lower_no_op());
  return ST_OK;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static const lower_fn table[HLO_OP_COUNT] = {
    [HLO_PARAMETER] = lower_parameter,
    [HLO_CONSTANT] = lower_constant,
    [HLO_IOTA] = lower_iota,
    [HLO_ABS] = lower_elementwise,
    [HLO_NEGATE] = lower_elementwise,
    [HLO_EXP] = lower_elementwise,
    [HLO_LOG] = lower_elementwise,
    [HLO_SQRT] = lower_elementwise,
    [HLO_SIN] = lower_elementwise,
    [HLO_COS] = lower_elementwise,
    [HLO_TANH] = lower_elementwise,
    [HLO_CEIL] = lower_elementwise,
    [HLO_FLOOR] = lower_elementwise,
    [HLO_SIGN] = lower_elementwise,
    [HLO_NOT] = lower_elementwise,
    [HLO_RSQRT] = lower_elementwise,
    [HLO_CBRT] = lower_elementwise,
    [HLO_TAN] = lower_elementwise,
    [HLO_ERF] = lower_elementwise,
    [HLO_LOGISTIC] = lower_elementwise,
    [HLO_LOG1P] = lower_elementwise,
    [HLO_EXPM1] = lower_elementwise,
    [HLO_ROUND_EVEN] = lower_elementwise,
    [HLO_ROUND_AFZ] = lower_elementwise,
    [HLO_POPCNT] = lower_elementwise,
    [HLO_CLZ] = lower_elementwise,
    [HLO_IS_FINITE] = lower_elementwise,
    [HLO_BITCAST_CONVERT] = lower_bitcast_convert,
    [HLO_SHIFT_LEFT] = lower_elementwise,
    [HLO_SHIFT_RIGHT_ARITHMETIC] = lower_elementwise,
    [HLO_SHIFT_RIGHT_LOGICAL] = lower_elementwise,
    [HLO_CLAMP] = lower_elementwise,
    [HLO_MAP] = lower_map,
    [HLO_OPT_BARRIER] = lower_opt_barrier,
    [HLO_COPY] = lower_copy,
    [HLO_CONVERT] = lower_elementwise,
    [HLO_ADD] = lower_elementwise,
    [HLO_SUBTRACT] = lower_elementwise,
    [HLO_MULTIPLY] = lower_elementwise,
    [HLO_DIVIDE] = lower_elementwise,
    [HLO_REMAINDER] = lower_elementwise,
    [HLO_POWER] = lower_elementwise,
    [HLO_MAXIMUM] = lower_elementwise,
    [HLO_MINIMUM] = lower_elementwise,
    [HLO_ATAN2] = lower_elementwise,
    [HLO_AND] = lower_elementwise,
    [HLO_OR] = lower_elementwise,
    [HLO_XOR] = lower_elementwise,
    [HLO_COMPARE] = lower_elementwise,
    [HLO_SELECT] = lower_elementwise,
    [HLO_BROADCAST] = lower_broadcast,
    [HLO_RESHAPE] = lower_reshape,
    [HLO_TRANSPOSE] = lower_transpose,
    [HLO_SLICE] = lower_slice,
    [HLO_PAD] = lower_pad,
    [HLO_CONCATENATE] = lower_concatenate,
    [HLO_REDUCE] = lower_reduce,
    [HLO_REVERSE] = lower_reverse,
    [HLO_REDUCE_WINDOW] = lower_reduce_window,
    [HLO_SELECT_AND_SCATTER] = lower_select_and_scatter,
    [HLO_SORT] = lower_sort,
    [HLO_TOPK] = lower_topk,
    [HLO_CONVOLUTION] = lower_convolution,
    [HLO_ALL_GATHER] = lower_collective,
    [HLO_ALL_REDUCE] = lower_collective,
    [HLO_REDUCE_SCATTER] = lower_collective,
    [HLO_ALL_TO_ALL] = lower_collective,
    [HLO_COLLECTIVE_PERMUTE] = lower_collective,
    [HLO_DOT] = lower_dot,
    [HLO_GATHER] = lower_gather,
    [HLO_SCATTER] = lower_scatter,
    [HLO_DYNAMIC_SLICE] = lower_dynamic_slice,
    [HLO_DYNAMIC_UPDATE_SLICE] = lower_dynamic_update_slice,
    [HLO_TUPLE] = lower_tuple,
    [HLO_GET_TUPLE_ELEMENT] = lower_get_tuple_element,
    [HLO_CALL] = lower_call,
    [HLO_CONDITIONAL] = lower_conditional,
    [HLO_WHILE] = lower_while,
    [HLO_CUSTOM_CALL] = lower_custom_call,
};

bool lower_is_elementwise(enum hlo_op op) {
  return table[op] == lower_elementwise || op == HLO_COPY || op == HLO_BITCAST_CONVERT;
}

/* True if i is emitted only when an instruction needs it as a tensor; element-wise users often do not.  The recursion
 * through such instructions is never deep, because their lowerings follow chains of them in a loop. */
static bool is_put_off(const struct hlo_instr *i) {
  if (i->op == HLO_CONSTANT)
    return true;
  return !i->knob && (i->op == HLO_BROADCAST || (i->op == HLO_RESHAPE && lower_is_unit_reshape(i)));
}

static enum status lower_instr(struct lower *l, const struct hlo_instr *i) {
  lower_fn fn = table[i->op];
  MlirLocation outer = l->b.loc;

  if (!fn)
    return lower_refuse(l, i, "there is no lowering for it");
  l->b.loc = lower_location(l, i, NULL);
  enum status st = fn(l, i);
  l->b.loc = outer;
  return st;
}

MlirValue lower_value(struct lower *l, const struct hlo_instr *i) {
  struct node *n = node_of(l, i);

  if (mlirValueIsNull(n->value) && n->scalar_kind)
    n->value = scalar_tensor(l, i);
  else if (mlirValueIsNull(n->value) && is_put_off(i))
    (void)lower_instr(l, i); /* the lowering of such an instruction never fails */
  assert(!mlirValueIsNull(n->value));
  return n->value;
}

static void count_users(struct lower *l, const struct hlo_computation *c) {
  hlo_for_each(i, c) {
    for (int k = 0; k < i->n_operands; k++)
      node_of(l, i->operands[k])->n_users++;
  }
}

void lower_forget(struct lower *l, const struct hlo_computation *c) {
  hlo_for_each(i, c) * node_of(l, i) = (struct node){.counter.at = -1};
}

enum status lower_computation(struct lower *l, const struct hlo_computation *c) {
  const struct hlo_computation *outer = l->computation;

  count_users(l, c);
  reduce_plan(l, c);
  hlo_for_each(i, c) {
    if (node_of(l, i)->is_done || scalar_note(l, i) || is_put_off(i))
      continue;
    l->computation = c;
    enum status st = lower_instr(l, i);
    if (st)
      return st;
  }
  l->computation = outer;
  return l->is_plain ? ST_OK : lower_knobs(l, c);
}

/* ---- the function ------------------------------------------------------------------------------------ */

static int result_values(struct lower *l, MlirValue *out) {
  const struct hlo_instr *root = l->module->entry->root;

  if (!root)
    return 0;
  const int n = root->shape.dtype == DT_TUPLE ? root->shape.n_elems : 1;
  for (int k = 0; k < n; k++)
    out[k] = lower_part(l, root, k);
  return n;
}

static MlirAttribute argument_attrs(struct lower *l) {
  const struct hlo_module *m = l->module;
  const int n = m->entry->n_params;
  MlirAttribute *v = arena_new_array(&l->arena, MlirAttribute, (size_t)n);

  for (int k = 0; k < n; k++)
    v[k] = mlirDictionaryAttrGet(l->b.ctx, 0, NULL);
  for (int k = 0; k < m->n_aliases; k++) {
    MlirAttribute index = ir_i64_attr(&l->b, m->aliases[k].output_index);
    MlirNamedAttribute attr = ir_named(&l->b, "nkipy.alias", index);
    v[m->aliases[k].param_index] = mlirDictionaryAttrGet(l->b.ctx, 1, &attr);
  }
  return mlirArrayAttrGet(l->b.ctx, n, v);
}

/* Returns the function's region, whose block has an argument per parameter. */
static MlirRegion function_region(struct lower *l, MlirType *types) {
  const struct hlo_computation *c = l->module->entry;
  MlirLocation *locs = arena_new_array(&l->arena, MlirLocation, (size_t)c->n_params);
  MlirRegion region = mlirRegionCreate();

  for (int k = 0; k < c->n_params; k++) {
    const struct hlo_shape *s = &c->params[k]->shape;
    types[k] = ir_tensor_type(&l->b, s->dtype, s->rank, s->dims);
    locs[k] = lower_location(l, c->params[k], NULL);
  }
  l->b.block = mlirBlockCreate(c->n_params, types, locs);
  mlirRegionAppendOwnedBlock(region, l->b.block);
  return region;
}

static void add_function(struct lower *l, MlirModule module, MlirRegion region, MlirType *args, int n_results,
                         MlirType *results) {
  MlirType type = mlirFunctionTypeGet(l->b.ctx, l->module->entry->n_params, args, n_results, results);
  MlirNamedAttribute attrs[] = {
      ir_named(&l->b, "sym_name", mlirStringAttrGet(l->b.ctx, ir_str(l->module->name))),
      ir_named(&l->b, "function_type", mlirTypeAttrGet(type)),
      ir_named(&l->b, "arg_attrs", argument_attrs(l)),
  };
  struct ir_builder top = l->b;

  top.block = mlirModuleGetBody(module);
  top.loc = mlirLocationUnknownGet(l->b.ctx);
  ir_create(&top, &(struct ir_parts){.name = "func.func",
                                     .n_attrs = l->module->n_aliases ? 3 : 2,
                                     .attrs = attrs,
                                     .n_regions = 1,
                                     .regions = &region});
}

static enum status lower_function(struct lower *l, MlirModule module) {
  const struct hlo_computation *c = l->module->entry;
  const struct hlo_instr *root = c->root;
  const int max_results = root && root->shape.dtype == DT_TUPLE ? root->shape.n_elems : 1;
  MlirType *args = arena_new_array(&l->arena, MlirType, (size_t)c->n_params);
  MlirValue *values = arena_new_array(&l->arena, MlirValue, (size_t)max_results);
  MlirType *results = arena_new_array(&l->arena, MlirType, (size_t)max_results);
  MlirRegion region = function_region(l, args);

  l->function = l->b.block;
  lower_forget(l, c);
  enum status st = lower_computation(l, c);
  if (st) {
    mlirRegionDestroy(region);
    return st;
  }
  int n = result_values(l, values);
  for (int k = 0; k < n; k++)
    results[k] = mlirValueGetType(values[k]);
  if (root)
    l->b.loc = lower_location(l, root, NULL);
  ir_op0(&l->b, "func.return", n, values);
  add_function(l, module, region, args, n, results);
  lower_declare_targets(l, module);
  return ST_OK;
}

/* Refuses complex numbers.  op-expander turns them into pairs, but it may not have run on the module. */
static enum status refuse_complex(struct lower *l) {
  for (const struct hlo_computation *c = l->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (hlo_complex_is_in(&i->shape))
        return lower_refuse(l, i, "complex numbers are lowered as pairs of reals: run op-expander");
    }
  return ST_OK;
}

static enum status lower_module(struct ir *ir, const struct hlo_module *m, bool is_plain, struct diags *ds,
                                MlirModule *out) {
  struct lower l = {.ir = ir, .module = m, .is_plain = is_plain, .ds = ds};
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(ir->ctx));
  struct ir_capture capture;

  arena_init(&l.arena);
  l.nodes = arena_new_array(&l.arena, struct node, (size_t)m->next_id);
  l.b = (struct ir_builder){.ctx = ir->ctx, .loc = mlirLocationUnknownGet(ir->ctx), .arena = &l.arena};
  ir_capture_begin(ir, &capture, ds, DG_INTERNAL, ds->arena);
  enum status st = refuse_complex(&l);
  if (!st)
    st = lower_function(&l, module);
  if (!st && !mlirOperationVerify(mlirModuleGetOperation(module))) {
    log_error("linalg_invalid", "kernel=%s", m->name);
    st = ST_BUG;
  }
  ir_capture_end(ir, &capture);
  arena_clear(&l.arena);
  if (st)
    mlirModuleDestroy(module);
  else
    *out = module;
  return st;
}

enum status linalg_from_hlo(struct ir *ir, const struct hlo_module *m, struct diags *ds, MlirModule *out) {
  return lower_module(ir, m, false, ds, out);
}

enum status linalg_from_hlo_plain(struct ir *ir, const struct hlo_module *m, struct diags *ds, MlirModule *out) {
  return lower_module(ir, m, true, ds, out);
}
