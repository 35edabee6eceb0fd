/* registers: registers of kernels as values and cells, and their arithmetic.
 *
 * A register that is written once, where it is made and before it is read, is a value of the program.  Any other one is a cell: an
 * element of SBUF that Sync writes with register_store and every engine reads with register_load.
 */
#include <string.h>

#include "nki/lower_emit.h"

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Where a register is made and written.  Blocks are lists of items, and parts of loops and branches on the device. */
struct life {
  int made, written, n_writes;
  bool is_read_first;
};

struct walk {
  struct life *lives; /* of the program's tensors */
  int block, n_blocks;
};

static void note_use(void *user, struct nki_tensor *t, bool is_written) {
  struct walk *w = user;
  struct life *x = &w->lives[t->number];
  if (!t->reg)
    return;
  x->is_read_first |= !is_written && !x->n_writes;
  x->n_writes += is_written;
  x->written = is_written ? w->block : x->written;
}

static void find_lives(struct walk *w, const struct nki_items *items) {
  int outer[NKI_REGIONS_MAX], n_outer = 0;
  for (int i = 0; i < items->n; i++) {
    const struct nki_item *x = &items->v[i];
    const enum nki_region region = x->call ? nki_region_of(x->call) : NKI_NO_REGION;
    if (x->tensor)
      w->lives[x->tensor->number].made = w->block;
    if (x->call)
      nki_each_tensor(x->call, note_use, w);
    if (region == NKI_BEGINS)
      outer[n_outer++] = w->block;
    if (region == NKI_BEGINS || region == NKI_GOES_ON)
      w->block = ++w->n_blocks;
    if (region == NKI_ENDS)
      w->block = outer[--n_outer];
    if (x->loop) {
      const int here = w->block;
      w->block = ++w->n_blocks;
      find_lives(w, &x->loop->items);
      w->block = here;
    }
  }
}

void nki_find_cells(struct nki_lower *l) {
  const struct nki_program *p = l->p;
  struct walk w = {.lives = arena_new_array(&l->arena, struct life, (size_t)p->tensors.n)};
  find_lives(&w, &p->items);
  for (int i = 0; i < p->tensors.n; i++) {
    const struct life *x = &w.lives[i];
    const bool is_value = x->n_writes == 1 && x->written == x->made && !x->is_read_first;
    l->values[i].is_cell = p->tensors.v[i]->reg == NKI_REGISTER && !is_value;
  }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static MlirValue load(struct nki_lower *l, const struct nki_view *v) {
  const struct nisa_instr in = {
      .def = nisa_op_def(NISA_REGISTER_LOAD), .engine = NISA_ENGINE_SYNC, .operand = {nki_access_on_chip(l, v)}};
  MlirOperation op = nisa_create(&in, l->b.loc, 0, NULL);
  mlirBlockAppendOwnedOperation(l->b.block, op);
  return ir_result(op);
}

static void store(struct nki_lower *l, const struct nki_view *v, MlirValue value) {
  const struct nisa_instr in = {
      .def = nisa_op_def(NISA_REGISTER_STORE),
      .engine = NISA_ENGINE_SYNC,
      .operand = {nki_access_on_chip(l, v), scalar(value)},
  };
  mlirBlockAppendOwnedOperation(l->b.block, nisa_create(&in, l->b.loc, 0, NULL));
}

static MlirType type_of(struct nki_lower *l, enum dtype t) {
  return ir_element_type(&l->b, t);
}

MlirValue nki_register_value(struct nki_lower *l, const struct nki_tensor *reg) {
  const struct nki_register *x = &l->values[reg->number];
  const struct nki_view whole = nki_whole((struct nki_tensor *)reg);
  if (x->is_cell)
    return load(l, &whole);
  return mlirValueIsNull(x->index) ? x->value : ir_op1(&l->b, "arith.index_cast", type_of(l, DT_I32), 1, &x->index);
}

MlirValue nki_register_index(struct nki_lower *l, const struct nki_tensor *reg) {
  const struct nki_register *x = &l->values[reg->number];
  if (!mlirValueIsNull(x->index))
    return x->index;
  MlirValue v = nki_register_value(l, reg);
  return ir_op1(&l->b, reg->dtype == DT_U32 ? "arith.index_castui" : "arith.index_cast", ir_index_type(&l->b), 1, &v);
}

MlirValue nki_register_or_number(struct nki_lower *l, const struct nki_value *v, enum dtype t) {
  if (v->kind == NKI_VIEW)
    return nki_register_value(l, v->view->tensor);
  return t == DT_F32 ? ir_float(&l->b, type_of(l, t), (double)(float)v->number)
                     : ir_int(&l->b, type_of(l, t), (int32_t)(uint32_t)v->integer);
}

static void set(struct nki_lower *l, const struct nki_tensor *reg, MlirValue v) {
  const struct nki_view whole = nki_whole((struct nki_tensor *)reg);
  if (l->values[reg->number].is_cell)
    store(l, &whole, v);
  else
    l->values[reg->number].value = v;
}

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

/* An element of SBUF, through which one of HBM is read or written. */
static struct nki_tensor cell_like(struct nki_lower *l, const struct nki_tensor *t) {
  return (struct nki_tensor){
      .number = nki_first_temp(l), .dtype = t->dtype, .space = MEM_SBUF, .rank = 2, .dims = {1, 1}, .input = -1};
}

static enum status copy(struct nki_lower *l, const struct nki_call *c, const struct nki_view *to,
                        const struct nki_view *from) {
  struct nki_call dma = {.kind = NKI_DMA_COPY, .engine = NISA_ENGINE_DMA, .locs = c->locs};
  struct nki_view views[2] = {*to, *from};
  for (int i = 0; i < 2; i++)
    dma.value[i] = (struct nki_value){.kind = NKI_VIEW, .view = &views[i]};
  return nki_lower_call(l, &dma);
}

static enum status lower_load(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_view *src = VIEW("src");
  const enum dtype t = src->tensor->dtype;
  struct nki_tensor cell = cell_like(l, src->tensor);
  struct nki_view whole = nki_whole(&cell);
  const bool is_far = !nki_is_on_chip(src);
  if (is_far && copy(l, c, &whole, src))
    return ST_INPUT;
  MlirValue v = load(l, is_far ? &whole : src);
  if (is_far)
    nki_release(l, &l->homes[cell.number]);
  if (dtype_size(t) < 4)
    v = ir_op1(&l->b, dtype_kind(t) == DK_UNSIGNED ? "arith.extui" : "arith.extsi", type_of(l, DT_I32), 1, &v);
  set(l, VIEW("dst")->tensor, v);
  return ST_OK;
}

static enum status lower_store(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_view *dst = VIEW("dst");
  const enum dtype t = dst->tensor->dtype;
  struct nki_tensor cell = cell_like(l, dst->tensor);
  struct nki_view whole = nki_whole(&cell);
  MlirValue v = nki_register_value(l, VIEW("src")->tensor);
  if (dtype_size(t) < 4)
    v = ir_op1(&l->b, "arith.trunci", type_of(l, t), 1, &v);
  if (nki_is_on_chip(dst)) {
    store(l, dst, v);
    return ST_OK;
  }
  store(l, &whole, v);
  enum status st = copy(l, c, dst, &whole);
  nki_release(l, &l->homes[cell.number]);
  return st;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static MlirValue compare(struct nki_lower *l, const char *op, enum dtype t, MlirValue x, MlirValue y) {
  static const struct {
    const char *op;
    enum ir_int_pred is_signed, is_unsigned;
    enum ir_float_pred of_floats;
  } table[] = {{"is_eq", IR_INT_EQ, IR_INT_EQ, IR_FLT_OEQ},   {"is_ne", IR_INT_NE, IR_INT_NE, IR_FLT_UNE},
               {"is_gt", IR_INT_SGT, IR_INT_UGT, IR_FLT_OGT}, {"is_ge", IR_INT_SGE, IR_INT_UGE, IR_FLT_OGE},
               {"is_lt", IR_INT_SLT, IR_INT_ULT, IR_FLT_OLT}, {"is_le", IR_INT_SLE, IR_INT_ULE, IR_FLT_OLE}};
  size_t k = 0;
  while (strcmp(table[k].op, op) != 0)
    k++;
  MlirValue bit = t == DT_F32 ? ir_cmpf(&l->b, table[k].of_floats, x, y)
                              : ir_cmpi(&l->b, t == DT_U32 ? table[k].is_unsigned : table[k].is_signed, x, y);
  return ir_op1(&l->b, "arith.extui", type_of(l, DT_I32), 1, &bit);
}

static void lower_alu(struct nki_lower *l, const struct nki_call *c) {
  static const struct {
    const char *op, *of_ints, *of_unsigned, *of_floats;
  } table[] = {{"add", "arith.addi", "arith.addi", "arith.addf"},
               {"subtract", "arith.subi", "arith.subi", "arith.subf"},
               {"multiply", "arith.muli", "arith.muli", "arith.mulf"},
               {"bitwise_and", "arith.andi", "arith.andi", NULL},
               {"bitwise_or", "arith.ori", "arith.ori", NULL},
               {"bitwise_xor", "arith.xori", "arith.xori", NULL},
               {"shift_left", "arith.shli", "arith.shli", NULL},
               {"shift_right_logical", "arith.shrsi", "arith.shrui", NULL}};
  const char *op = nki_value(c, "op")->op->nisa;
  const struct nki_value *v = nki_value(c, "x"), *w = nki_value(c, "y");
  const enum dtype t = (v->kind == NKI_VIEW ? v : w)->view->tensor->dtype;
  MlirValue x = nki_register_or_number(l, v, t), y = nki_register_or_number(l, w, t);
  const struct nki_tensor *dst = VIEW("dst")->tensor;
  if (!strncmp(op, "is_", 3)) {
    set(l, dst, compare(l, op, t, x, y));
    return;
  }
  size_t k = 0;
  while (strcmp(table[k].op, op) != 0)
    k++;
  const char *name = t == DT_F32 ? table[k].of_floats : t == DT_U32 ? table[k].of_unsigned : table[k].of_ints;
  set(l, dst, ir_binary(&l->b, name, x, y));
}

enum status nki_lower_registers(struct nki_lower *l, const struct nki_call *c) {
  switch (c->kind) {
  case NKI_REGISTER_LOAD:
    return lower_load(l, c);
  case NKI_REGISTER_STORE:
    return lower_store(l, c);
  case NKI_REGISTER_MOVE:
    set(l, VIEW("dst")->tensor, nki_register_or_number(l, nki_value(c, "src"), VIEW("dst")->tensor->dtype));
    return ST_OK;
  case NKI_REGISTER_ALU:
    lower_alu(l, c);
    return ST_OK;
  default:
    return ST_BUG;
  }
}
