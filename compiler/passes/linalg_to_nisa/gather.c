/* gather: compiles memref.load with computed indices in a body.
 *
 *     for every element (p, f):  dst = src[index(p), f]     ==>     dma_copy_indirect, with one index per partition
 *
 * If the index also depends on other loops, these become scf.for around the instruction.  A load with indices that
 * are linear in the loops is a copy, which may go backwards.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

struct gather {
  struct ln_body *b;
  struct ln_view src, dst, index; /* copies in which counters of loops replace atoms */
  int dim;                        /* the dimension of src that the index is added to; -1: none */
  int64_t limit;
};

static enum status emit_indirect(struct gather *g, ln_atoms atoms) {
  assert(g->dim >= 0 && g->dim < g->src.rank);
  struct ln_walk *w = g->b->w;
  struct ln *ln = w->ln;
  struct ln_shape s = ln_shape_of(w, g->b->par, atoms), column = ln_shape_of(w, g->b->par, g->b->par);
  struct nisa_access x[3];
  const struct ln_attr attrs[] = {
      {"src_index_dim", ln_int(ln, g->dim)}, {"src_indirect_max_index", ln_int(ln, g->limit)}, {NULL, {NULL}}};

  enum status st = ln_access(w, &g->dst, &s, &x[0]);
  if (!st)
    st = ln_access(w, &g->src, &s, &x[1]);
  if (!st)
    st = ln_access(w, &g->index, &column, &x[2]);
  if (!st)
    ln_emit(ln, NISA_DMA_COPY_INDIRECT, NISA_ENGINE_DMA, x, attrs);
  return st;
}

static enum status gather_rows(struct gather *g) {
  struct ln_walk *w = g->b->w;
  struct ln *ln = w->ln;
  struct ir_builder outside = ln->b;
  ln_atoms atoms = ln_view_atoms(&g->dst) | g->b->par, looped = ln_view_atoms(&g->index) & ~g->b->par;

  for (int k = 0; k < w->n_atoms; k++) {
    int a = w->order[k];
    if (!(looped >> a & 1))
      continue;
    MlirValue iv = ln_open_loop(ln, w->atom[a].extent);
    ln_fix_atom(ln, &g->dst, a, iv);
    ln_fix_atom(ln, &g->src, a, iv);
    ln_fix_atom(ln, &g->index, a, iv);
  }
  enum status st = emit_indirect(g, atoms & ~looped);
  ln->b = outside;
  return st;
}

/* Returns in *out the index as i32 in SBUF. */
static enum status index_data(struct ln_body *b, MlirValue v, struct ln_view **out) {
  MlirType i32 = mlirIntegerTypeGet(b->w->ln->b.ctx, 32);
  struct ln_value *x = ln_value_of(b, v);
  struct ln_view *data;

  enum status st = ln_materialize(b, x, &data);
  *out = data;
  if (st || (mlirTypeEqual(data->element, i32) && data->space == MEM_SBUF))
    return st;
  *out = ln_temp(b->w, i32, MEM_SBUF, b->par, ln_view_atoms(data));
  x->at = *out; /* released with the value */
  return ln_move(b->w, *out, data, false);
}

/* Reads the indices of the load: formulas go to src, and the dimension with an index that is data goes to dim. */
static enum status read_places(struct ln_body *b, MlirOperation load, struct gather *g) {
  struct ln *ln = b->w->ln;
  int n = (int)mlirOperationGetNumOperands(load) - 1;

  g->dim = -1;
  g->src.rank = n;
  for (int k = 0; k < n; k++) {
    struct ln_value *x = ln_value_of(b, mlirOperationGetOperand(load, k + 1));
    if (x->kind == LN_POSITION) {
      g->src.index[k] = x->position;
    } else if (x->kind == LN_ONE) {
      if (!ir_int_constant(x->one, &g->src.index[k].constant))
        g->src.index[k].offset = x->one;
    } else if (g->dim >= 0) {
      return ln_fail(ln, "it gathers by more than one index");
    } else {
      g->dim = k;
    }
  }
  return ST_OK;
}

enum status ln_gather(struct ln_body *b, MlirOperation load) {
  struct ln_walk *w = b->w;
  struct ln *ln = w->ln;
  MlirValue source = mlirOperationGetOperand(load, 0), result = mlirOperationGetResult(load, 0);
  struct gather g = {.b = b};
  struct ln_view *index = NULL, *dst;

  if (mem_is_on_chip(ln_space(source)))
    return ln_fail(ln, "it gathers from on-chip memory");
  if (!mlirShapedTypeHasStaticShape(mlirValueGetType(source)))
    return ln_fail(ln, "the shape of an operand is not known");
  if (mlirShapedTypeGetRank(mlirValueGetType(source)) > NISA_RANK_MAX)
    return ln_fail(ln, "an operand has more than %d dimensions", NISA_RANK_MAX);
  enum status st = read_places(b, load, &g);
  if (st)
    return st;
  g.src.base = ln_buffer(ln, source);
  g.src.space = ln_space(source);
  g.src.element = mlirShapedTypeGetElementType(mlirValueGetType(source));
  if (g.dim >= 0) {
    g.limit = mlirShapedTypeGetDimSize(mlirValueGetType(source), g.dim);
    st = index_data(b, mlirOperationGetOperand(load, g.dim + 1), &index);
  }
  if (!st)
    st = ln_target(b, result, ln_view_atoms(&g.src) | (index ? ln_view_atoms(index) : 0), &dst);
  if (st)
    return st;
  if (!index)
    return ln_move_backwards(w, dst, &g.src);
  struct ln_view *to = dst;
  if (dst->space != MEM_SBUF)
    to = ln_temp(w, dst->element, MEM_SBUF, b->par, ln_view_atoms(dst));
  g.dst = *to;
  g.index = *index;
  st = gather_rows(&g);
  if (!st && to != dst) {
    st = ln_move(w, dst, to, false);
    ln_release(ln, to);
  }
  return st;
}
