/* lower_device: loops and branches on the device become scf.for, scf.while and scf.if.
 *
 * What a loop carries is in memory, so none of them has results: registers that a body writes are cells (registers.c).
 */
#include "nki/lower_internal.h"

/* The truth of a register as an i1. */
static MlirValue truth_of(struct nki_lower *l, const struct nki_tensor *reg) {
  MlirValue v = nki_register_value(l, reg);
  MlirOperation def = ir_defining_op(v);
  MlirType t = mlirValueGetType(v);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.extui") &&
      mlirIntegerTypeGetWidth(mlirValueGetType(mlirOperationGetOperand(def, 0))) == 1)
    return mlirOperationGetOperand(def, 0);
  return reg->dtype == DT_F32 ? ir_cmpf(&l->b, IR_FLT_UNE, v, ir_float(&l->b, t, 0))
                              : ir_cmpi(&l->b, IR_INT_NE, v, ir_int(&l->b, t, 0));
}

static const struct nki_tensor *condition_of(const struct nki_item *x) {
  return nki_value(x->call, "condition")->view->tensor;
}

/* Fills a region that ends in a yield. */
static enum status fill(struct nki_lower *l, const struct nki_items *items, int from, int to, int nesting,
                        MlirLocation loc) {
  enum status st = nki_lower_items(l, items, from, to, nesting + 1);
  l->b.loc = loc;
  ir_yield(&l->b, 0, NULL);
  return st;
}

static MlirValue bound(struct nki_lower *l, const struct nki_call *c, const char *name) {
  const struct nki_value *v = nki_value(c, name);
  return v->kind == NKI_VIEW ? nki_register_index(l, v->view->tensor) : ir_index(&l->b, v->integer);
}

static enum status lower_for(struct nki_lower *l, const struct nki_items *items, int begin, int end, int nesting) {
  const struct nki_call *c = items->v[begin].call;
  struct nki_register *reg = &l->values[nki_value(c, "dst")->view->tensor->number];
  MlirValue bounds[3] = {bound(l, c, "lower"), bound(l, c, "upper"),
                         ir_index(&l->b, nki_first_int(nki_value(c, "step"), 1))};
  struct ir_builder outside = l->b;
  MlirRegion region = ir_loop_region(&outside, 0, NULL, &l->b);
  ir_for(&outside, bounds, 0, NULL, region);
  reg->index = mlirBlockGetArgument(l->b.block, 0);
  enum status st = fill(l, items, begin + 1, end, nesting, outside.loc);
  l->b = outside;
  return st;
}

static enum status lower_while(struct nki_lower *l, const struct nki_items *items, int begin, int middle, int end,
                               int nesting) {
  struct ir_builder outside = l->b;
  MlirRegion regions[] = {ir_region(&outside, 0, NULL, &l->b), {NULL}};
  enum status st = nki_lower_items(l, items, begin + 1, middle, nesting + 1);
  if (st) { /* the condition may have no value */
    mlirRegionDestroy(regions[0]);
    l->b = outside;
    return st;
  }
  l->b.loc = outside.loc;
  MlirValue goes_on = truth_of(l, condition_of(&items->v[middle]));
  nki_release_after(l, items->v[middle].id);
  ir_op0(&l->b, "scf.condition", 1, &goes_on);
  regions[1] = ir_region(&outside, 0, NULL, &l->b);
  st = nki_lower_items(l, items, middle + 1, end, nesting + 1);
  l->b.loc = outside.loc;
  ir_yield(&l->b, 0, NULL);
  l->b = outside;
  ir_create(&l->b, &(struct ir_parts){.name = "scf.while", .n_regions = 2, .regions = regions});
  return st;
}

static enum status lower_if(struct nki_lower *l, const struct nki_items *items, int begin, int middle, int end,
                            int nesting) {
  MlirValue condition = truth_of(l, condition_of(&items->v[begin]));
  struct ir_builder outside = l->b;
  MlirRegion regions[2] = {ir_region(&outside, 0, NULL, &l->b), {NULL}};
  const int then_end = middle < 0 ? end : middle;
  enum status st = fill(l, items, begin + 1, then_end, nesting, outside.loc);
  regions[1] = ir_region(&outside, 0, NULL, &l->b);
  enum status other = fill(l, items, middle < 0 ? end : middle + 1, end, nesting, outside.loc);
  l->b = outside;
  ir_if(&l->b, condition, 0, NULL, regions);
  return st ? st : other;
}

enum status nki_lower_region(struct nki_lower *l, const struct nki_items *items, int begin, int middle, int end,
                             int nesting) {
  if (!nesting)
    nki_prepare(l, items, begin + 1, end);
  l->nesting = nesting + 1;
  enum status st = ST_BUG;
  switch (items->v[begin].call->kind) {
  case NKI_DEVICE_FOR:
    st = lower_for(l, items, begin, end, nesting);
    break;
  case NKI_DEVICE_WHILE:
    st = lower_while(l, items, begin, middle, end, nesting);
    break;
  default:
    st = lower_if(l, items, begin, middle, end, nesting);
  }
  l->nesting = nesting;
  return st;
}
