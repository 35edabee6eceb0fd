/* collective: collectives and custom calls.
 *
 * One program runs on one device here, so a collective has the meaning it has when every device of its group holds the
 * same data: all-gather repeats it, all-reduce combines it with itself, reduce-scatter gives the first part of that, and
 * all-to-all and collective-permute give the data back.  A custom call is a call of a function that has no body.
 */
#include "linalg/impl.h"

#include <string.h>

enum { DEVICES_MAX = 128 };

static int64_t group_size(const struct hlo_instr *i) {
  const struct hlo_shape *x = &i->operands[0]->shape;
  if (i->groups && i->groups->n)
    return i->groups->v[0].n;
  if (i->op == HLO_ALL_GATHER || i->op == HLO_REDUCE_SCATTER) {
    const int64_t a = x->dims[i->dimensions.v[0]], b = i->shape.dims[i->dimensions.v[0]];
    return a && b ? i->op == HLO_ALL_GATHER ? b / a : a / b : 1;
  }
  return 1;
}

struct combination {
  struct lower *l;
  const struct hlo_instr *instr;
  int64_t n;
};

static MlirValue write_combination(struct emit *e, MlirValue const *args, void *user) {
  const struct combination *c = user;
  MlirValue v = args[0];
  for (int64_t k = 1; k < c->n; k++) {
    MlirValue pair[] = {v, args[0]};
    inline_computation(c->l, e, c->instr->called[0], pair, &v);
  }
  return v;
}

/* x combined with itself, n times x in all. */
static MlirValue combine(struct lower *l, const struct hlo_instr *i, MlirValue x, const struct hlo_shape *s,
                         int64_t n) {
  struct combination c = {l, i, n};
  MlirAffineMap id = emit_identity_map(&l->e, s->rank);
  if (n == 1)
    return x;
  return emit_result(emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = s->rank,
                                                                       .n_inputs = 1,
                                                                       .inputs = &x,
                                                                       .maps = (MlirAffineMap[]){id, id},
                                                                       .output = lower_empty(l, s),
                                                                       .body = write_combination,
                                                                       .user = &c}));
}

static MlirValue repeat(struct lower *l, const struct hlo_instr *i, MlirValue x, int64_t n) {
  const struct hlo_shape *s = &i->operands[0]->shape;
  int64_t offsets[HLO_RANK_MAX] = {0};
  MlirValue dest = lower_empty(l, &i->shape);
  if (n == 1)
    return x;
  for (int64_t k = 0; k < n; k++) {
    offsets[i->dimensions.v[0]] = k * s->dims[i->dimensions.v[0]];
    struct emit_slice at = {.rank = s->rank, .offsets = offsets, .sizes = s->dims};
    dest = emit_insert_slice(&l->e, x, dest, &at);
  }
  return dest;
}

static MlirValue first_part(struct lower *l, const struct hlo_instr *i, MlirValue x) {
  const int64_t zeros[HLO_RANK_MAX] = {0};
  struct emit_slice at = {.rank = i->shape.rank, .offsets = zeros, .sizes = i->shape.dims};
  if (hlo_shape_equal(&i->shape, &i->operands[0]->shape))
    return x;
  return emit_extract_slice(&l->e, x, &at, emit_tensor_type(&l->e, i->shape.dtype, i->shape.rank, i->shape.dims));
}

enum status lower_collective(struct lower *l, const struct hlo_instr *i) {
  const bool combines = i->op == HLO_ALL_REDUCE || i->op == HLO_REDUCE_SCATTER;
  const int64_t n = group_size(i);
  enum status st = combines ? inline_check(l, i, i->called[0]) : ST_OK;
  if (st)
    return st;
  if (n > DEVICES_MAX)
    return lower_refuse(l, i, "its groups have more than %d devices", DEVICES_MAX);
  MlirValue v = lower_value(l, i->operands[0]);
  if (i->op == HLO_ALL_GATHER)
    v = repeat(l, i, v, n);
  if (i->op == HLO_REDUCE_SCATTER)
    v = first_part(l, i, v);
  if (combines)
    v = combine(l, i, v, &i->shape, n);
  lower_set(l, i, v, lower_no_op());
  return ST_OK;
}

/* ---- custom calls ------------------------------------------------------------------------------------------ */

/* NKIPy's top-k: the configuration is k, the indices are unsigned. */
static bool is_topk(const struct hlo_instr *i) {
  return i->custom_call_target && !strcmp(i->custom_call_target, "AwsNeuronTopK") && i->n_operands == 1 &&
         i->shape.dtype == DT_TUPLE && i->shape.n_elems == 2 && i->operands[0]->shape.rank &&
         i->shape.elems[0].rank == i->operands[0]->shape.rank &&
         i->shape.elems[0].dtype == i->operands[0]->shape.dtype && dtype_size(i->shape.elems[1].dtype) == 4 &&
         hlo_shape_same_dims(&i->shape.elems[0], &i->shape.elems[1]);
}

/* nkigen's custom ops: the configuration is the function's code. */
static const char *code_of(const struct hlo_instr *i) {
  static const char prefix[] = "__custom_op__";
  return strncmp(i->custom_call_target, prefix, sizeof prefix - 1) ? NULL : i->backend_config;
}

/* A private declaration of the target with these types, once for each pair of target and types. */
static MlirAttribute declare(struct lower *l, const struct hlo_instr *i, MlirType type) {
  const char *name = i->custom_call_target, *symbol = name;
  for (int k = 1; l->targets; k++) {
    const struct lower_target *t = l->targets;
    while (t && strcmp(t->symbol, symbol))
      t = t->next;
    if (t && mlirTypeEqual(t->type, type))
      return mlirFlatSymbolRefAttrGet(l->e.ctx, ir_str(symbol));
    if (!t)
      break;
    symbol = arena_printf(&l->arena, "%s_%d", name, k);
  }
  struct lower_target *t = arena_new(&l->arena, struct lower_target);
  *t = (struct lower_target){symbol, code_of(i), type, l->targets};
  l->targets = t;
  return mlirFlatSymbolRefAttrGet(l->e.ctx, ir_str(symbol));
}

enum status lower_custom_call(struct lower *l, const struct hlo_instr *i) {
  const bool is_tuple = i->shape.dtype == DT_TUPLE;
  const int n_results = is_tuple ? i->shape.n_elems : 1;
  if (is_topk(i)) {
    struct hlo_instr topk = *i;
    topk.k = i->shape.elems[0].dims[i->shape.elems[0].rank - 1];
    if (topk.k <= i->operands[0]->shape.dims[i->shape.elems[0].rank - 1])
      return lower_topk(l, &topk);
  }
  if (!i->custom_call_target || !*i->custom_call_target || i->n_called)
    return lower_refuse(l, i, "the custom call has no name, or calls back");
  MlirType *types = arena_new_array(&l->arena, MlirType, (size_t)(i->n_operands + n_results));
  MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)(i->n_operands > n_results ? i->n_operands : n_results));
  for (int k = 0; k < i->n_operands + n_results; k++) {
    const struct hlo_shape *s = k < i->n_operands ? &i->operands[k]->shape
                                : is_tuple        ? &i->shape.elems[k - i->n_operands]
                                                  : &i->shape;
    if (s->dtype == DT_TUPLE)
      return lower_refuse(l, i, "tuples in tuples, or as operands, are not possible");
    types[k] = emit_tensor_type(&l->e, s->dtype, s->rank, s->dims);
    if (k < i->n_operands)
      v[k] = lower_value(l, i->operands[k]);
  }
  MlirType type = mlirFunctionTypeGet(l->e.ctx, i->n_operands, types, n_results, types + i->n_operands);
  MlirNamedAttribute attr = emit_attr(&l->e, "callee", declare(l, i, type));
  MlirOperation op = emit_operation(&l->e, &(struct emit_op){.name = "func.call",
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

void declare_targets(struct lower *l, MlirModule module) {
  struct emit top = l->e;
  int n = 0, n_codes = 0;
  top.block = mlirModuleGetBody(module);
  top.loc = mlirLocationUnknownGet(l->e.ctx);
  for (const struct lower_target *t = l->targets; t; t = t->next)
    n++;
  MlirNamedAttribute *codes = arena_new_array(&l->arena, MlirNamedAttribute, (size_t)n);
  for (const struct lower_target *t = l->targets; t; t = t->next) {
    MlirRegion empty = mlirRegionCreate();
    MlirNamedAttribute attrs[] = {
        emit_attr(&l->e, "sym_name", mlirStringAttrGet(l->e.ctx, ir_str(t->symbol))),
        emit_attr(&l->e, "function_type", mlirTypeAttrGet(t->type)),
        emit_attr(&l->e, "sym_visibility", mlirStringAttrGet(l->e.ctx, ir_str("private"))),
        emit_attr(&l->e, "nkipy.custom_op", mlirUnitAttrGet(l->e.ctx)),
    };
    emit_operation(
        &top, &(struct emit_op){
                  .name = "func.func", .n_attrs = t->code ? 4 : 3, .attrs = attrs, .n_regions = 1, .regions = &empty});
    if (t->code)
      codes[n_codes++] = emit_attr(&l->e, t->symbol, mlirStringAttrGet(l->e.ctx, ir_str(t->code)));
  }
  if (n_codes)
    mlirOperationSetDiscardableAttributeByName(mlirModuleGetOperation(module), ir_str("nkipy.custom_op_bodies"),
                                               mlirDictionaryAttrGet(l->e.ctx, n_codes, codes));
}
