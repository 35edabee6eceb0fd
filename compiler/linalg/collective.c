/* collective: lowers collectives and custom calls to calls of functions without a body.
 *
 * The attribute nkipy.collective of the function's declaration states which collective it is:
 *
 *     func.func private @all_reduce(tensor<4x6xf32>) -> tensor<4x6xf32> attributes
 *         {nkipy.collective = {kind = "all_reduce", op = "add", replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
 *
 *     kind                 "all_gather", "all_reduce", "reduce_scatter", "all_to_all" or "collective_permute"
 *     op                   all_reduce and reduce_scatter: add, multiply, max, min, bitwise_and or bitwise_or
 *     unsigned             all_reduce and reduce_scatter: present if the integers are unsigned, for max and min
 *     dim                  i64; all_gather, reduce_scatter, all_to_all: the dimension to gather, scatter or split
 *     replica_groups       one row for each group of devices; absent if all devices are one group
 *     source_target_pairs  collective_permute: a row for each pair
 *     channel_id           i64; absent if there is none
 *
 * The function of a custom call has the name of the call's target and nkipy.custom_call = {backend_config, aliases =
 * dense<[[output, operand], …]>, has_collectives}; entries that the call does not have are absent.
 *
 * The call passes through every stage unchanged and finally becomes the instruction nisa.<kind> with these attributes
 * (passes/linalg_to_nisa/collective.c).  To run a stage on one processor, driver/check_collective.c gives the function
 * a body that is correct if every device of the group holds the same data.
 */
#include <assert.h>
#include <string.h>

#include "linalg/impl.h"

/* ---- declarations and calls --------------------------------------------------------------------------------- */

/* Returns the code of nkigen's custom op, which is its configuration; NULL for other calls. */
static const char *code_of(const struct hlo_instr *i) {
  static const char prefix[] = "__custom_op__";
  return i->op != HLO_CUSTOM_CALL || strncmp(i->attrs->custom_call_target, prefix, sizeof prefix - 1)
             ? NULL
             : i->attrs->backend_config;
}

static bool is_same_attribute(MlirAttribute x, MlirAttribute y) {
  return mlirAttributeIsNull(x) || mlirAttributeIsNull(y) ? x.ptr == y.ptr : mlirAttributeEqual(x, y);
}

MlirAttribute lower_declare(struct lower *l, const struct lower_target *want) {
  const char *symbol = want->symbol;
  for (int k = 1;; k++) {
    const struct lower_target *t = l->targets;
    while (t && strcmp(t->symbol, symbol))
      t = t->next;
    if (t && mlirTypeEqual(t->type, want->type) && is_same_attribute(t->what, want->what))
      return mlirFlatSymbolRefAttrGet(l->b.ctx, ir_str(symbol));
    if (!t && strcmp(symbol, l->module->name))
      break;
    symbol = arena_printf(&l->arena, "%s_%d", want->symbol, k);
  }
  struct lower_target *t = arena_new(&l->arena, struct lower_target);
  *t = *want;
  t->symbol = symbol;
  t->next = l->targets;
  l->targets = t;
  return mlirFlatSymbolRefAttrGet(l->b.ctx, ir_str(symbol));
}

/* Lowers i to a call of the function `name`. */
static enum status call(struct lower *l, const struct hlo_instr *i, const char *name, MlirAttribute what) {
  const bool is_tuple = i->shape.dtype == DT_TUPLE;
  const int n_results = is_tuple ? i->shape.n_elems : 1;
  MlirType *types = arena_new_array(&l->arena, MlirType, (size_t)(i->n_operands + n_results));
  MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)(i->n_operands > n_results ? i->n_operands : n_results));
  for (int k = 0; k < i->n_operands + n_results; k++) {
    const struct hlo_shape *s = k < i->n_operands ? &i->operands[k]->shape
                                : is_tuple        ? &i->shape.elems[k - i->n_operands]
                                                  : &i->shape;
    if (s->dtype == DT_TUPLE)
      return lower_refuse(l, i, "tuples in tuples, or as operands, are not possible");
    types[k] = ir_tensor_type(&l->b, s->dtype, s->rank, s->dims);
    if (k < i->n_operands)
      v[k] = lower_value(l, i->operands[k]);
  }
  MlirType type = mlirFunctionTypeGet(l->b.ctx, i->n_operands, types, n_results, types + i->n_operands);
  const struct lower_target target = {.symbol = name,
                                      .code = code_of(i),
                                      .what_name =
                                          hlo_op_is_collective(i->op) ? "nkipy.collective" : "nkipy.custom_call",
                                      .what = what,
                                      .type = type};
  MlirNamedAttribute attr = ir_named(&l->b, "callee", lower_declare(l, &target));
  MlirOperation op = ir_create(&l->b, &(struct ir_parts){.name = "func.call",
                                                         .n_operands = i->n_operands,
                                                         .operands = v,
                                                         .n_results = n_results,
                                                         .results = types + i->n_operands,
                                                         .n_attrs = 1,
                                                         .attrs = &attr});
  for (int k = 0; k < n_results; k++)
    v[k] = mlirOperationGetResult(op, k);
  lower_set_parts(l, i, v);
  return ST_OK;
}

static void declare_target(struct lower *l, struct ir_builder *top, const struct lower_target *t) {
  MlirRegion empty = mlirRegionCreate();
  enum { N_ATTRS_MAX = 5 };
  MlirNamedAttribute attrs[N_ATTRS_MAX] = {
      ir_named(&l->b, "sym_name", mlirStringAttrGet(l->b.ctx, ir_str(t->symbol))),
      ir_named(&l->b, "function_type", mlirTypeAttrGet(t->type)),
      ir_named(&l->b, "sym_visibility", mlirStringAttrGet(l->b.ctx, ir_str("private"))),
  };
  int n = 3;
  if (t->code)
    attrs[n++] = ir_named(&l->b, "nkipy.custom_op", mlirUnitAttrGet(l->b.ctx));
  if (!mlirAttributeIsNull(t->what))
    attrs[n++] = ir_named(&l->b, t->what_name, t->what);
  assert(n <= N_ATTRS_MAX);
  ir_create(top,
            &(struct ir_parts){.name = "func.func", .n_attrs = n, .attrs = attrs, .n_regions = 1, .regions = &empty});
}

void lower_declare_targets(struct lower *l, MlirModule module) {
  struct ir_builder top = l->b;
  int n = 0, n_codes = 0;
  top.block = mlirModuleGetBody(module);
  top.loc = mlirLocationUnknownGet(l->b.ctx);
  for (const struct lower_target *t = l->targets; t; t = t->next)
    n++;
  MlirNamedAttribute *codes = arena_new_array(&l->arena, MlirNamedAttribute, (size_t)n);
  for (const struct lower_target *t = l->targets; t; t = t->next) {
    declare_target(l, &top, t);
    if (t->code)
      codes[n_codes++] = ir_named(&l->b, t->symbol, mlirStringAttrGet(l->b.ctx, ir_str(t->code)));
  }
  if (n_codes)
    mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(module), ir_str("nkipy.custom_op_bodies"),
                                               mlirDictionaryAttrGet(l->b.ctx, n_codes, codes));
}

/* ---- collectives ---------------------------------------------------------------------------------------------- */

static const char *kind_of(enum hlo_op op) {
  switch (op) {
  case HLO_ALL_GATHER:
    return "all_gather";
  case HLO_ALL_REDUCE:
    return "all_reduce";
  case HLO_REDUCE_SCATTER:
    return "reduce_scatter";
  case HLO_ALL_TO_ALL:
    return "all_to_all";
  default:
    return "collective_permute";
  }
}

/* Returns the combiner's name, or NULL if collectives do not support it.  On bool, add and maximum are bitwise_or;
 * multiply and minimum are bitwise_and. */
static const char *reduction_of(const struct hlo_instr *i) {
  const bool is_bool = i->shape.dtype == DT_BOOL;
  if (!reduce_is_plain(i))
    return NULL;
  switch (i->called[0]->root->op) {
  case HLO_ADD:
    return is_bool ? "bitwise_or" : "add";
  case HLO_MULTIPLY:
    return is_bool ? "bitwise_and" : "multiply";
  case HLO_MAXIMUM:
    return is_bool ? "bitwise_or" : "max";
  case HLO_MINIMUM:
    return is_bool ? "bitwise_and" : "min";
  case HLO_AND:
    return "bitwise_and";
  default:
    return "bitwise_or";
  }
}

/* Returns the groups as an attribute such as dense<[[0, 1], [2, 3]]>.  All groups have the same length. */
static MlirAttribute groups_attr(struct lower *l, const struct hlo_groups *g) {
  const int64_t dims[] = {g->n, g->v[0].n};
  MlirType type = ir_tensor_type(&l->b, DT_I64, 2, dims);
  int64_t *v = arena_new_array(&l->arena, int64_t, (size_t)(dims[0] * dims[1]));
  for (int k = 0; k < g->n; k++) {
    assert(g->v[k].n == dims[1]); /* hlo_verify */
    memcpy(v + k * dims[1], g->v[k].v, (size_t)dims[1] * sizeof *v);
  }
  return mlirDenseElementsAttrInt64Get(type, dims[0] * dims[1], v);
}

static MlirAttribute text_attr(struct lower *l, const char *text) {
  return mlirStringAttrGet(l->b.ctx, ir_str(text));
}

static MlirAttribute i64_attr(struct lower *l, int64_t v) {
  return ir_i64_attr(&l->b, v);
}

enum status lower_collective(struct lower *l, const struct hlo_instr *i) {
  const bool combines = i->op == HLO_ALL_REDUCE || i->op == HLO_REDUCE_SCATTER;
  const bool permutes = i->op == HLO_COLLECTIVE_PERMUTE;
  const char *reduction = combines ? reduction_of(i) : NULL;
  MlirNamedAttribute v[6];
  int n = 0;

  if (combines && !reduction)
    return lower_refuse(l, i,
                        "its computation must be add, multiply, maximum, minimum, and or or of its two parameters");
  v[n++] = ir_named(&l->b, "kind", text_attr(l, kind_of(i->op)));
  if (combines)
    v[n++] = ir_named(&l->b, "op", text_attr(l, reduction));
  if (combines && dtype_kind(i->shape.dtype) == DK_UNSIGNED)
    v[n++] = ir_named(&l->b, "unsigned", mlirUnitAttrGet(l->b.ctx));
  if (!permutes && i->op != HLO_ALL_REDUCE)
    v[n++] = ir_named(&l->b, "dim", i64_attr(l, i->attrs->dimensions.v[0]));
  if (i->attrs->groups && i->attrs->groups->n && i->attrs->groups->v[0].n)
    v[n++] = ir_named(&l->b, permutes ? "source_target_pairs" : "replica_groups", groups_attr(l, i->attrs->groups));
  if (i->attrs->channel_id)
    v[n++] = ir_named(&l->b, "channel_id", i64_attr(l, i->attrs->channel_id));
  return call(l, i, kind_of(i->op), mlirDictionaryAttrGet(l->b.ctx, n, v));
}

/* ---- custom calls ------------------------------------------------------------------------------------------ */

/* Returns a row {output, operand} for each alias.  A result that is not a tuple is output 0. */
static MlirAttribute aliases_attr(struct lower *l, const struct hlo_attrs *at) {
  const int64_t dims[] = {at->operand_aliases.n, 2};
  int64_t *v = arena_new_array(&l->arena, int64_t, (size_t)(2 * at->operand_aliases.n));
  for (int k = 0; k < at->operand_aliases.n; k++) {
    const struct hlo_operand_alias *x = &at->operand_aliases.v[k];
    v[2 * k] = x->output_index.n ? x->output_index.v[0] : 0;
    v[2 * k + 1] = x->operand;
  }
  return mlirDenseElementsAttrInt64Get(ir_tensor_type(&l->b, DT_I64, 2, dims), 2 * at->operand_aliases.n, v);
}

/* Returns the attribute nkipy.custom_call, or null if it would have no entries or the call is a custom op of nkigen. */
static MlirAttribute what_is_called(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_attrs *at = i->attrs;
  MlirNamedAttribute v[3];
  int n = 0;
  if (code_of(i))
    return mlirAttributeGetNull();
  if (at->backend_config && *at->backend_config)
    v[n++] = ir_named(&l->b, "backend_config", text_attr(l, at->backend_config));
  if (at->operand_aliases.n)
    v[n++] = ir_named(&l->b, "aliases", aliases_attr(l, at));
  if (at->has_collectives)
    v[n++] = ir_named(&l->b, "has_collectives", mlirUnitAttrGet(l->b.ctx));
  return n ? mlirDictionaryAttrGet(l->b.ctx, n, v) : mlirAttributeGetNull();
}

enum status lower_custom_call(struct lower *l, const struct hlo_instr *i) {
  if (hlo_is_topk(i)) {
    struct hlo_instr topk = *i;
    struct hlo_attrs at = *i->attrs;
    at.k = i->shape.elems[0].dims[i->shape.elems[0].rank - 1];
    topk.attrs = &at;
    return lower_topk(l, &topk);
  }
  if (!i->attrs->custom_call_target || !*i->attrs->custom_call_target || i->n_called)
    return lower_refuse(l, i, "a custom call needs a target name and must not have called computations");
  return call(l, i, i->attrs->custom_call_target, what_is_called(l, i));
}
