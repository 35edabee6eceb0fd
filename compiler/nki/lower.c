/* lower: see lower.h.  compose.c knows which calls are several. */
#include "nki/lower.h"

#include <assert.h>
#include <string.h>

#include "nisa/cores.h"
#include "nki/lower_internal.h"
#include "nki/order.h"
#include "nki/reroll.h"

enum status nki_lower_refuse(struct nki_lower *l, const struct nki_call *c, const char *hint, const char *what) {
  diag_add(l->ds, DS_ERROR, DG_NKI_UNSUPPORTED, c->locs.n ? c->locs.v[0] : NULL, "nisa.%s: %s", nki_def(c)->name, what)
      ->hint = hint;
  return ST_INPUT;
}

/* ---- signed and unsigned integers -------------------------------------------------------------------------------- */

/* The call does not compute, or does so in integers. */
static bool moves_bits(const struct nki_call *c) {
  switch (c->kind) {
  case NKI_TENSOR_COPY_PREDICATED:
  case NKI_DMA_COPY:
  case NKI_NC_STREAM_SHUFFLE:
  case NKI_NC_N_GATHER:
  case NKI_LOCAL_GATHER:
  case NKI_NONZERO_WITH_COUNT:
  case NKI_TOPK:
  case NKI_RNG:
  case NKI_SET_RNG_SEED:
  case NKI_RAND_SET_STATE:
  case NKI_RAND_GET_STATE:
  case NKI_QUANTIZE_MX:
  case NKI_NC_MATMUL_MX:
  case NKI_CORE_BARRIER:
  case NKI_SENDRECV:
    return true;
  default:
    return false;
  }
}

static bool is_int_view(const struct nki_value *v) {
  return v->kind == NKI_VIEW && dtype_is_int(v->view->tensor->dtype);
}

static bool is_signed(const struct nki_value *v) {
  return dtype_kind(v->view->tensor->dtype) == DK_SIGNED;
}

/* The call computes in integers of 32 bits, whose sums and products are the same bits with and without signs. */
static bool wraps_around(const struct nki_call *c) {
  static const char *const can[] = {"add", "subtract", "multiply"};
  bool found = false;
  if (c->kind != NKI_TENSOR_TENSOR || c->engine != NISA_ENGINE_GPSIMD)
    return false;
  for (size_t k = 0; k < sizeof can / sizeof *can; k++)
    found |= !strcmp(nki_value(c, "op")->op->nisa, can[k]);
  for (int k = 0; k < nki_n_params(nki_def(c)); k++)
    found &=
        c->value[k].kind != NKI_VIEW || (is_int_view(&c->value[k]) && dtype_size(c->value[k].view->tensor->dtype) == 4);
  return found;
}

/* NISA reads and writes all integers of an instruction as signed, or all as unsigned.  Says for each parameter whether it has
 * to be f32 because the call means something else: all that it reads, if it reads integers of both kinds; and its result, if
 * that is an integer of another kind than the operands.  Returns false if no parameter has to. */
static bool find_mixed(const struct nki_call *c, bool mixed[NKI_PARAMS_MAX]) {
  const struct nki_call_def *def = nki_def(c);
  bool reads[2] = {false, false}, any = false;
  memset(mixed, 0, NKI_PARAMS_MAX * sizeof *mixed);
  for (int k = 0; k < nki_n_params(def); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind == NKI_OP && v->op->is == NKI_BITS)
      return false;
    if (def->param[k].kind != NKI_PARAM_DST && is_int_view(v))
      reads[is_signed(v)] = true;
  }
  if (moves_bits(c) || wraps_around(c))
    return false;
  const struct nki_value *dst = nki_value(c, "dst");
  /* GpSimd keeps the low bits where NKI's copy saturates */
  const bool narrows = c->kind == NKI_TENSOR_COPY && c->engine == NISA_ENGINE_GPSIMD && is_int_view(dst) &&
                       is_int_view(&c->value[1]) && dst->view->tensor->dtype != c->value[1].view->tensor->dtype;
  for (int k = 0; k < nki_n_params(def); k++) {
    const struct nki_value *v = &c->value[k];
    if (v == dst)
      mixed[k] = is_int_view(v) && (reads[!is_signed(v)] || narrows);
    else
      mixed[k] = def->param[k].kind != NKI_PARAM_DST && is_int_view(v) && reads[0] && reads[1] && !is_signed(v);
    any |= mixed[k];
  }
  return any;
}

/* to = from, one of which is f32. */
static void convert(struct nki_lower *l, const struct nki_call *c, struct nki_view *to, struct nki_view *from) {
  struct nki_call copy = {.kind = NKI_TENSOR_COPY, .engine = NISA_ENGINE_VECTOR, .locs = c->locs};
  copy.value[0] = (struct nki_value){.kind = NKI_VIEW, .view = to};
  copy.value[1] = (struct nki_value){.kind = NKI_VIEW, .view = from};
  if (c->engine == NISA_ENGINE_GPSIMD)
    copy.engine = c->engine;
  nki_lower_copy(l, &copy, NISA_TENSOR_COPY, "src");
}

/* The call with f32 instead of the parameters that are mixed: engines compute in f32 anyway. */
static enum status lower_by_floats(struct nki_lower *l, const struct nki_call *c, const bool mixed[NKI_PARAMS_MAX]) {
  const int n = nki_n_params(nki_def(c));
  struct nki_tensor floats[NKI_PARAMS_MAX];
  struct nki_view whole[NKI_PARAMS_MAX];
  struct nki_call plain = nki_call_copy(c);
  for (int k = 0; k < n; k++) {
    if (!mixed[k])
      continue;
    const struct nki_view *v = c->value[k].view;
    floats[k] = (struct nki_tensor){
        .number = nki_floats_number(l, k), .dtype = DT_F32, .space = MEM_SBUF, .rank = v->rank, .input = -1};
    for (int d = 0; d < v->rank; d++)
      floats[k].dims[d] = v->dim[d].size;
    whole[k] = nki_whole(&floats[k]);
    plain.value[k].view = &whole[k];
    if (nki_def(c)->param[k].kind != NKI_PARAM_DST)
      convert(l, c, &whole[k], c->value[k].view);
  }
  enum status st = nki_lower_call(l, &plain);
  for (int k = 0; !st && k < n; k++)
    if (mixed[k]) {
      if (nki_def(c)->param[k].kind == NKI_PARAM_DST)
        convert(l, c, c->value[k].view, &whole[k]);
      nki_release(l, &l->homes[floats[k].number]);
    }
  return st;
}

static enum status lower_alone(struct nki_lower *l, const struct nki_call *c) {
  bool mixed[NKI_PARAMS_MAX];
  return find_mixed(c, mixed) ? lower_by_floats(l, c, mixed) : nki_lower_call(l, c);
}

static enum status lower_steps(struct nki_lower *l, const struct nki_call *c) {
  struct nki_steps s = {.arena = &l->arena, .first_temp = nki_first_temp(l)};
  enum status st = ST_OK;
  for (int r = 0; r < NKI_REGISTERS; r++)
    s.registers[r] = l->registers[r].rank ? &l->registers[r] : NULL;
  if (!nki_compose(c, &s))
    return lower_alone(l, c);
  for (int k = 0; !st && k < s.n; k++)
    st = lower_alone(l, &s.step[k]);
  for (int k = 0; !st && k < s.n_temps; k++)
    nki_release(l, &l->homes[s.temp[k]->number]);
  return st;
}

/* ---- calls that wait for others ---------------------------------------------------------------------------------- */

/* An instruction that an engine executes. */
static bool is_executed(MlirOperation op) {
  const struct nisa_op_def *def = nisa_op_of(op);
  return def && def->kind != NISA_ALLOC && def->kind != NISA_RELEASE;
}

static void set_order(struct nki_lower *l, const struct nki_order *o, MlirOperation first, MlirOperation last) {
  const char *names = o->after.n ? o->after.v[0] : NULL;
  for (int i = 1; i < o->after.n; i++)
    names = arena_printf(&l->arena, "%s,%s", names, o->after.v[i]);
  if (names)
    ir_set_attr(first, "after", mlirStringAttrGet(l->b.ctx, ir_str(names)));
  if (o->is_awaited)
    ir_set_attr(last, "label", mlirStringAttrGet(l->b.ctx, ir_str(o->name)));
}

/* The same as lower_steps; the first instruction waits, and the last one is waited for, which itself waits for those before
 * it: they are of its engine, or it reads what they write. */
static enum status lower_ordered(struct nki_lower *l, const struct nki_call *c) {
  MlirOperation mark = mlirOpResultGetOwner(ir_index(&l->b, 0)), first = {NULL}, last = {NULL};
  enum status st = lower_steps(l, c);
  for (MlirOperation op = mark; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (is_executed(op)) {
      first = mlirOperationIsNull(first) ? op : first;
      last = op;
    }
  if (!st && !mlirOperationIsNull(last))
    set_order(l, c->order, first, last);
  mlirOperationDestroy(mark);
  return st;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The items around the present one, the outermost first. */
struct way {
  int depth, ids[NKI_LOOPS_MAX + NKI_REGIONS_MAX + 1];
};

struct last_uses {
  struct way way;
  int *made, *last;
};

static void note_last_use(void *user, struct nki_tensor *t, bool is_written) {
  struct last_uses *u = user;
  (void)is_written;
  u->last[t->number] = u->way.ids[u->made[t->number]];
}

/* Finds the item after which each tensor on chip is not used any more, among the items beside the one that makes it: of a
 * loop or branch on the device its end.  made[t]: its depth; last[t]: the id of the last such item. */
static void find_last_uses(const struct nki_items *items, struct last_uses *u) {
  int middle, end;
  for (int i = 0; i < items->n; i++) {
    const struct nki_item *x = &items->v[i];
    const enum nki_region region = x->call ? nki_region_of(x->call) : NKI_NO_REGION;
    if (region == NKI_ENDS) {
      u->way.depth--;
      continue;
    }
    u->way.ids[u->way.depth] = x->id;
    if (region == NKI_BEGINS) {
      nki_region_find(items, i, &middle, &end);
      u->way.ids[u->way.depth] = items->v[end].id;
    }
    if (x->tensor)
      u->made[x->tensor->number] = u->way.depth;
    if (x->call)
      nki_each_tensor(x->call, note_last_use, u);
    u->way.depth += region == NKI_BEGINS || x->loop;
    if (x->loop) {
      find_last_uses(&x->loop->items, u);
      u->way.depth--;
    }
  }
}

static int count_items(const struct nki_items *items) {
  int n = items->n;
  for (int i = 0; i < items->n; i++)
    n += items->v[i].loop ? count_items(&items->v[i].loop->items) : 0;
  return n;
}

static void find_releases(struct nki_lower *l) {
  const struct nki_program *p = l->p;
  struct last_uses u = {.made = arena_new_array(&l->arena, int, (size_t)p->tensors.n),
                        .last = arena_new_array(&l->arena, int, (size_t)p->tensors.n)};
  find_last_uses(&p->items, &u);
  l->releases = arena_new_array(&l->arena, struct nki_release *, (size_t)count_items(&p->items) + 1);
  for (int t = p->tensors.n - 1; t >= 0; t--) {
    if (!mem_is_on_chip(p->tensors.v[t]->space) || (p->tensors.v[t]->reg && !l->values[t].is_cell))
      continue;
    struct nki_release *x = arena_new(&l->arena, struct nki_release);
    *x = (struct nki_release){p->tensors.v[t], l->releases[u.last[t]]};
    l->releases[u.last[t]] = x;
  }
}

/* Identity matrices, and views of arrays in HBM as one dimension. */
void nki_prepare(struct nki_lower *l, const struct nki_items *items, int from, int to) {
  for (int i = from; i < to; i++) {
    const struct nki_call *c = items->v[i].call;
    if (items->v[i].loop)
      nki_prepare(l, &items->v[i].loop->items, 0, items->v[i].loop->items.n);
    if (c && c->kind == NKI_NC_TRANSPOSE && c->engine == NISA_ENGINE_TENSOR)
      nki_make_identity(l, c);
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++) {
      const struct nki_tensor *t = c->value[k].kind == NKI_VIEW ? c->value[k].view->tensor : NULL;
      if (t && mem_is_dram(t->space) && l->homes[t->number].is_flat)
        nki_memref_of(l, t, true);
    }
  }
}

static enum status lower_loop(struct nki_lower *l, const struct nki_loop *loop, int nesting) {
  if (!nesting)
    nki_prepare(l, &loop->items, 0, loop->items.n);
  struct ir_builder outside = l->b;
  MlirValue bounds[] = {ir_index(&l->b, 0), ir_index(&l->b, loop->trips), ir_index(&l->b, 1)};
  MlirRegion region = ir_loop_region(&outside, 0, NULL, &l->b);
  l->counters[loop->depth] = mlirBlockGetArgument(l->b.block, 0);
  ir_for(&outside, bounds, 0, NULL, region);
  l->nesting = nesting + 1;
  enum status st = nki_lower_items(l, &loop->items, 0, loop->items.n, nesting + 1);
  l->nesting = nesting;
  l->b.loc = outside.loc;
  ir_yield(&l->b, 0, NULL);
  l->b = outside;
  return st;
}

void nki_release_after(struct nki_lower *l, int id) {
  for (const struct nki_release *e = l->releases[id]; e; e = e->next)
    nki_release(l, &l->homes[e->tensor->number]);
}

enum status nki_lower_items(struct nki_lower *l, const struct nki_items *items, int from, int to, int nesting) {
  enum status st = ST_OK;
  int middle, end;
  for (int i = from; !st && i < to; i++) {
    const struct nki_item *x = &items->v[i];
    if (x->core != l->core)
      continue;
    l->b.loc = ir_loc_tagged(l->b.ctx, x->id, x->locs);
    if (x->call && nki_region_of(x->call) == NKI_BEGINS) {
      nki_region_find(items, i, &middle, &end);
      st = nki_lower_region(l, items, i, middle, end, nesting);
      i = end;
    } else if (x->call && nki_def(x->call)->engines[0] == NISA_ENGINE_SYNC)
      st = nki_lower_registers(l, x->call);
    else if (x->call)
      st = nki_is_ordered(x->call) ? lower_ordered(l, x->call) : lower_steps(l, x->call);
    else if (x->loop)
      st = lower_loop(l, x->loop, nesting);
    else if (!x->tensor->reg || l->values[x->tensor->number].is_cell)
      nki_memref_of(l, x->tensor, false);
    if (!st)
      nki_release_after(l, items->v[i].id);
  }
  return st;
}

/* ---- accumulator registers --------------------------------------------------------------------------------------- */

static void find_registers(struct nki_lower *l, const struct nki_items *items) {
  for (int i = 0; i < items->n; i++) {
    const struct nki_call *c = items->v[i].call;
    if (items->v[i].core != l->core)
      continue;
    if (items->v[i].loop)
      find_registers(l, &items->v[i].loop->items);
    if (c && nki_needs_registers(c))
      l->registers[nki_registers_of(c)] = (struct nki_tensor){.number = nki_registers_number(l, nki_registers_of(c)),
                                                              .dtype = DT_F32,
                                                              .space = MEM_SBUF,
                                                              .rank = 2,
                                                              .dims = {NISA_PARTITIONS, 1},
                                                              .input = -1};
  }
}

/* Allocates the columns that the program needs for registers, which live until the function ends. */
static void make_registers(struct nki_lower *l, const struct nki_items *items) {
  find_registers(l, items);
  for (int r = 0; r < NKI_REGISTERS; r++)
    if (l->registers[r].rank)
      nki_memref_of(l, &l->registers[r], false);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

/* memref.global @name : the tensor's memref = its elements */
static void add_global(struct nki_lower *l, MlirModule module, const struct nki_tensor *t) {
  MlirType type = mlirRankedTensorTypeGet(t->rank, t->dims, ir_element_type(&l->b, t->dtype), (MlirAttribute){NULL});
  const size_t bytes = (size_t)nki_tensor_extent(t) * dtype_size(t->dtype);
  MlirNamedAttribute attrs[] = {
      ir_named(&l->b, "sym_name", mlirStringAttrGet(l->b.ctx, ir_str(t->name))),
      ir_named(&l->b, "type", mlirTypeAttrGet(nki_memref_type(l, t, false))),
      ir_named(&l->b, "initial_value", mlirDenseElementsAttrRawBufferGet(type, bytes, t->initial)),
      ir_named(&l->b, "constant", mlirUnitAttrGet(l->b.ctx)),
      ir_named(&l->b, "sym_visibility", mlirStringAttrGet(l->b.ctx, ir_str("private"))),
  };
  struct ir_builder top = l->b;
  top.block = mlirModuleGetBody(module);
  top.loc = ir_loc_tagged(l->b.ctx, 0, t->locs);
  ir_create(&top, &(struct ir_parts){.name = "memref.global", .n_attrs = 5, .attrs = attrs});
}

static void make_constants(struct nki_lower *l, MlirModule module) {
  for (int i = 0; i < l->p->tensors.n; i++) {
    const struct nki_tensor *t = l->p->tensors.v[i];
    if (!t->initial)
      continue;
    add_global(l, module, t);
    MlirNamedAttribute name = ir_named(&l->b, "name", mlirFlatSymbolRefAttrGet(l->b.ctx, ir_str(t->name)));
    l->homes[i].memref = ir_op1_with(&l->b, "memref.get_global", nki_memref_type(l, t, false), 0, NULL, 1, &name);
  }
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static int count_inputs(const struct nki_program *p) {
  int n = 0;
  for (int i = 0; i < p->tensors.n; i++)
    n += p->tensors.v[i]->input >= 0;
  return n;
}

static MlirRegion make_region(struct nki_lower *l, int n, MlirType *types) {
  MlirLocation *locs = arena_new_array(&l->arena, MlirLocation, (size_t)n);
  MlirRegion region = mlirRegionCreate();
  for (int i = 0; i < l->p->tensors.n; i++) {
    const struct nki_tensor *t = l->p->tensors.v[i];
    if (t->input < 0)
      continue;
    types[t->input] = nki_memref_type(l, t, false);
    locs[t->input] = ir_loc_tagged(l->b.ctx, 0, t->locs);
  }
  l->b.block = mlirBlockCreate(n, types, locs);
  mlirRegionAppendOwnedBlock(region, l->b.block);
  for (int i = 0; i < l->p->tensors.n; i++)
    if (l->p->tensors.v[i]->input >= 0)
      l->homes[i].memref = mlirBlockGetArgument(l->b.block, l->p->tensors.v[i]->input);
  return region;
}

static void add_function(struct nki_lower *l, MlirModule module, MlirRegion region, int n_args, MlirType *args) {
  const struct nki_program *p = l->p;
  MlirType *results = arena_new_array(&l->arena, MlirType, (size_t)p->n_outputs);
  MlirAttribute *names = arena_new_array(&l->arena, MlirAttribute, (size_t)p->n_outputs);
  for (int i = 0; i < p->n_outputs; i++) {
    results[i] = nki_memref_type(l, p->outputs[i], false);
    names[i] = mlirStringAttrGet(l->b.ctx, ir_str(p->outputs[i]->name));
  }
  MlirNamedAttribute attrs[] = {
      ir_named(&l->b, "sym_name", mlirStringAttrGet(l->b.ctx, ir_str(p->name))),
      ir_named(&l->b, "function_type",
               mlirTypeAttrGet(mlirFunctionTypeGet(l->b.ctx, n_args, args, p->n_outputs, results))),
      ir_named(&l->b, "nki.output_names", mlirArrayAttrGet(l->b.ctx, p->n_outputs, names)),
  };
  struct ir_builder top = l->b;
  top.block = mlirModuleGetBody(module);
  top.loc = ir_loc_tagged(l->b.ctx, 0, p->locs);
  ir_create(&top,
            &(struct ir_parts){.name = "func.func", .n_attrs = 3, .attrs = attrs, .n_regions = 1, .regions = &region});
}

/* The program of l->core, in the present block. */
static enum status lower_core(struct nki_lower *l) {
  const struct nki_items *items = &l->p->items;
  make_registers(l, items);
  enum status st = nki_lower_items(l, items, 0, items->n, 0);
  if (st)
    return st;
  for (int t = 0; t < DT_COUNT; t++)
    if (l->identity[t].rank)
      nki_release(l, &l->homes[l->identity[t].number]);
  for (int r = 0; r < NKI_REGISTERS; r++)
    if (l->registers[r].rank)
      nki_release(l, &l->homes[l->registers[r].number]);
  return ST_OK;
}

/* Makes, before the cores, what both use: tensors in shared_hbm, and views of these, of parameters and of constants. */
static void make_common(struct nki_lower *l, const struct nki_items *items) {
  for (int i = 0; i < items->n; i++) {
    const struct nki_item *x = &items->v[i];
    l->b.loc = ir_loc_tagged(l->b.ctx, x->id, x->locs);
    if (x->loop)
      make_common(l, &x->loop->items);
    if (x->tensor && x->tensor->space == MEM_SHARED_HBM)
      nki_memref_of(l, x->tensor, false);
    for (int k = 0; x->call && k < nki_n_params(nki_def(x->call)); k++) {
      const struct nki_tensor *t = x->call->value[k].kind == NKI_VIEW ? x->call->value[k].view->tensor : NULL;
      if (t && (t->space == MEM_SHARED_HBM || t->input >= 0 || t->initial))
        nki_memref_of(l, t, l->homes[t->number].is_flat);
    }
  }
}

/* A region for each core. */
static enum status lower_cores(struct nki_lower *l) {
  struct ir_builder outside = l->b;
  enum status st = ST_OK;
  make_common(l, &l->p->items);
  for (l->core = 0; !st && l->core < l->n_cores; l->core++) {
    MlirOperation core = nisa_create_core(ir_loc_tagged(l->b.ctx, 0, l->p->locs), l->core);
    MlirOperation yield = mlirBlockGetTerminator(ir_body(core));
    mlirBlockAppendOwnedOperation(outside.block, core);
    mlirOperationRemoveFromParent(yield);
    l->b = outside;
    l->b.block = ir_body(core);
    memset(l->identity, 0, sizeof l->identity);
    memset(l->registers, 0, sizeof l->registers);
    st = lower_core(l);
    mlirBlockAppendOwnedOperation(ir_body(core), yield);
  }
  l->b = outside;
  return st;
}

static enum status lower_function(struct nki_lower *l, MlirModule module) {
  const struct nki_program *p = l->p;
  const int n = count_inputs(p);
  MlirType *args = arena_new_array(&l->arena, MlirType, (size_t)n);
  MlirValue *results = arena_new_array(&l->arena, MlirValue, (size_t)p->n_outputs);
  MlirRegion region = make_region(l, n, args);
  make_constants(l, module);
  enum status st = l->n_cores > 1 ? lower_cores(l) : lower_core(l);
  if (st) {
    mlirRegionDestroy(region);
    return st;
  }
  for (int i = 0; i < p->n_outputs; i++)
    results[i] = nki_memref_of(l, p->outputs[i], false);
  l->b.loc = ir_loc_tagged(l->b.ctx, count_items(&p->items) + 1, p->return_locs);
  ir_op0(&l->b, "func.return", p->n_outputs, results);
  add_function(l, module, region, n, args);
  return ST_OK;
}

enum status nki_lower(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out) {
  struct nki_program *rerolled;
  struct nki_notes notes = {0};
  if (!p->is_rerolled) {
    enum status made = nki_reroll(p, false, ds, &rerolled, &notes);
    if (made)
      return made;
    p = rerolled;
  }
  struct nki_lower l = {.ir = ir, .p = p, .n_cores = nki_program_cores(p), .ds = ds};
  struct ir_capture capture;
  arena_init(&l.arena);
  l.homes = arena_new_array(&l.arena, struct nki_home, (size_t)nki_registers_number(&l, NKI_REGISTERS));
  l.b = (struct ir_builder){.ctx = ir->ctx, .loc = mlirLocationUnknownGet(ir->ctx), .arena = &l.arena};
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(ir->ctx));
  mlirOperationSetAttributeByName(mlirModuleGetOperation(module), ir_str("nisa.target"),
                                  nisa_target_attr(ir->ctx, p->target));
  l.values = arena_new_array(&l.arena, struct nki_register, (size_t)p->tensors.n);
  nki_find_flat(&l);
  nki_find_cells(&l);
  ir_capture_begin(ir, &capture, ds, DG_INTERNAL, ds->arena);
  find_releases(&l);
  enum status st = lower_function(&l, module);
  if (!st && !mlirOperationVerify(mlirModuleGetOperation(module)))
    st = ST_BUG;
  ir_capture_end(ir, &capture);
  arena_clear(&l.arena);
  if (st)
    mlirModuleDestroy(module);
  else
    *out = module;
  return st;
}
