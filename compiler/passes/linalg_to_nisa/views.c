/* views: describes operands as sums of atoms, allocates temporary buffers, and makes operands of instructions from
 * views.
 *
 *     view of %x: index (d0, %i, 1, d1)     ==>     base %x, indices (%i), map (d0, d1)[s0] -> (d0, s0, 1, d1)
 *
 * A temporary buffer has the atoms of its partitions in dimension 0, and one dimension for each other loop.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- making views ----------------------------------------------------------------------------------------------- */

void ln_walk_element(struct ln_walk *w, struct ln *ln) {
  *w = (struct ln_walk){.ln = ln};
}

enum status ln_walk_init(struct ln_walk *w, struct ln *ln, int n_loops, const int64_t *extents) {
  assert(n_loops <= STRUCTURED_LOOPS_MAX);
  *w = (struct ln_walk){.ln = ln, .n_loops = n_loops};
  for (int k = 0; k < n_loops; k++) {
    w->extent[k] = extents[k];
    if (extents[k] == 1)
      continue;
    if (w->n_atoms == LN_LOOPS_MAX)
      return ln_fail(ln, "it works on more than %d dimensions", LN_LOOPS_MAX);
    w->order[w->n_atoms] = w->n_atoms;
    w->atom[w->n_atoms++] = (struct ln_atom){extents[k], k};
  }
  return ST_OK;
}

struct ln_form ln_loop_form(const struct ln_walk *w, int loop) {
  struct ln_form f = {.n = 0};
  int64_t factor = 1;

  for (int k = w->n_atoms - 1; k >= 0; k--)
    if (w->atom[w->order[k]].loop == loop) {
      ln_add_term(&f, w->order[k], factor);
      factor *= w->atom[w->order[k]].extent;
    }
  return f;
}

static struct ln_view *new_view(struct ln_walk *w, MlirValue base) {
  struct ln_view *v = arena_new(&w->ln->scratch, struct ln_view);
  v->base = base;
  v->space = ln_space(base);
  v->element = mlirShapedTypeGetElementType(mlirValueGetType(base));
  array_push(&w->ln->scratch, &w->views, v);
  return v;
}

/* Follows v to its buffer.  A dimension that lower_alloc has added to the buffer has index 0. */
static enum status finish(struct ln_walk *w, struct ln_view *v, struct ln_view **out) {
  enum status st = ln_follow(w, v);
  if (st)
    return st;
  v->base = ln_buffer(w->ln, v->base);
  v->space = ln_space(v->base);
  v->element = mlirShapedTypeGetElementType(mlirValueGetType(v->base));
  int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(v->base));
  assert(rank <= NISA_RANK_MAX);
  while (v->rank < rank)
    v->index[v->rank++] = (struct ln_form){.n = 0};
  *out = v;
  return ST_OK;
}

static enum status begin(struct ln_walk *w, MlirValue v, struct ln_view **out) {
  MlirType t = mlirValueGetType(v);
  if (!mlirTypeIsAMemRef(t))
    return ln_fail(w->ln, "an operand is not a memref");
  if (!mlirShapedTypeHasStaticShape(t))
    return ln_fail(w->ln, "the shape of an operand is not known");
  if (mlirShapedTypeGetRank(t) > NISA_RANK_MAX)
    return ln_fail(w->ln, "an operand has more than %d dimensions", NISA_RANK_MAX);
  *out = new_view(w, v);
  (*out)->rank = (int)mlirShapedTypeGetRank(t);
  return ST_OK;
}

/* Adds factor * x to f, where x is a result of an indexing map.  False if x is not linear in the loops. */
static bool add_affine(struct ln_walk *w, struct ln_form *f, MlirAffineExpr x, int64_t factor) {
  if (mlirAffineExprIsADim(x)) {
    struct ln_form loop = ln_loop_form(w, (int)mlirAffineDimExprGetPosition(x));
    ln_add_form(&w->ln->b, f, &loop, factor);
    return true;
  }
  if (mlirAffineExprIsAConstant(x)) {
    f->constant += factor * mlirAffineConstantExprGetValue(x);
    return true;
  }
  if (mlirAffineExprIsAAdd(x))
    return add_affine(w, f, mlirAffineBinaryOpExprGetLHS(x), factor) &&
           add_affine(w, f, mlirAffineBinaryOpExprGetRHS(x), factor);
  MlirAffineExpr r = mlirAffineExprIsAMul(x) ? mlirAffineBinaryOpExprGetRHS(x) : (MlirAffineExpr){NULL};
  if (!mlirAffineExprIsNull(r) && mlirAffineExprIsAConstant(r))
    return add_affine(w, f, mlirAffineBinaryOpExprGetLHS(x), factor * mlirAffineConstantExprGetValue(r));
  return false;
}

enum status ln_trace(struct ln_walk *w, MlirValue v, MlirAffineMap map, struct ln_view **out) {
  struct ln_view *view;
  enum status st = begin(w, v, &view);
  if (st)
    return st;
  for (int r = 0; r < view->rank; r++) {
    if (mlirAffineMapIsNull(map))
      view->index[r] = ln_loop_form(w, r);
    else if (!add_affine(w, &view->index[r], mlirAffineMapGetResult(map, r), 1))
      return ln_fail(w->ln, "an indexing map is not linear");
  }
  return finish(w, view, out);
}

enum status ln_trace_element(struct ln_walk *w, MlirValue v, int n, MlirValue const *indices, struct ln_view **out) {
  struct ln_view *view;
  enum status st = begin(w, v, &view);
  if (st)
    return st;
  assert(n == 0 || n == view->rank);
  for (int r = 0; r < n; r++)
    ln_add_value(&w->ln->b, &view->index[r], indices[r], 1);
  return finish(w, view, out);
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

ln_atoms ln_all_atoms(const struct ln_walk *w) {
  return ((ln_atoms)1 << w->n_atoms) - 1;
}

ln_atoms ln_loop_atoms(const struct ln_walk *w, int loop) {
  ln_atoms s = 0;
  for (int k = 0; k < w->n_atoms; k++)
    if (w->atom[k].loop == loop)
      s |= (ln_atoms)1 << k;
  return s;
}

ln_atoms ln_view_atoms(const struct ln_view *v) {
  ln_atoms s = 0;
  for (int r = 0; r < v->rank; r++)
    s |= ln_form_atoms(&v->index[r]);
  return s;
}

ln_atoms ln_partition_atoms(const struct ln_view *v) {
  return mem_is_on_chip(v->space) && v->rank ? ln_form_atoms(&v->index[0]) : 0;
}

static bool same_terms(const struct ln_form *a, const struct ln_form *b) {
  if (a->n != b->n)
    return false;
  for (int k = 0; k < a->n; k++) {
    int j = 0;
    while (j < b->n && b->term[j].atom != a->term[k].atom)
      j++;
    if (j == b->n || b->term[j].coef != a->term[k].coef)
      return false;
  }
  return true;
}

bool ln_same_partitions(const struct ln_view *a, const struct ln_view *b) {
  return mem_is_on_chip(a->space) && mem_is_on_chip(b->space) && same_terms(&a->index[0], &b->index[0]);
}

bool ln_same_elements(const struct ln_view *a, const struct ln_view *b) {
  if (!mlirValueEqual(a->base, b->base) || a->rank != b->rank)
    return false;
  for (int r = 0; r < a->rank; r++)
    if (a->index[r].constant != b->index[r].constant || !same_terms(&a->index[r], &b->index[r]) ||
        a->index[r].offset.ptr != b->index[r].offset.ptr)
      return false;
  return true;
}

bool ln_has_partitions(const struct ln_walk *w, const struct ln_view *v, ln_atoms par) {
  const struct ln_form *f = &v->index[0];
  int64_t factor = 1;
  int n = 0;

  if (!mem_is_on_chip(v->space))
    return false;
  for (int k = w->n_atoms - 1; k >= 0; k--) {
    int a = w->order[k];
    if (!(par >> a & 1))
      continue;
    int t = 0;
    while (t < f->n && f->term[t].atom != a)
      t++;
    if (t == f->n || f->term[t].coef != factor)
      return false;
    factor *= w->atom[a].extent;
    n++;
  }
  return n == f->n;
}

int64_t ln_extent(const struct ln_walk *w, ln_atoms atoms) {
  int64_t n = 1;
  for (int k = 0; k < w->n_atoms; k++)
    if (atoms >> k & 1)
      n *= w->atom[k].extent;
  return n;
}

/* ---- buffers and accesses --------------------------------------------------------------------------------------- */

/* The first dimension of the buffer is the partitions; each loop with other atoms adds one dimension. */
struct ln_view *ln_temp(struct ln_walk *w, MlirType element, enum mem_space s, ln_atoms par, ln_atoms atoms) {
  struct ln_form index[NISA_RANK_MAX] = {{.n = 0}};
  int64_t dims[NISA_RANK_MAX] = {1, 1};
  int rank = 1, loop = -1;

  for (int k = w->n_atoms - 1; k >= 0; k--) {
    int a = w->order[k];
    if (!((par & atoms) >> a & 1))
      continue;
    ln_add_term(&index[0], a, dims[0]);
    dims[0] *= w->atom[a].extent;
  }
  for (int k = 0; k < w->n_atoms; k++) {
    int a = w->order[k];
    if (!(atoms >> a & 1) || (par >> a & 1))
      continue;
    assert(w->atom[a].loop == loop || rank < NISA_RANK_MAX); /* there are at most LN_LOOPS_MAX loops */
    if (w->atom[a].loop != loop)
      dims[rank++] = 1;
    loop = w->atom[a].loop;
    for (int t = 0; t < index[rank - 1].n; t++)
      index[rank - 1].term[t].coef *= w->atom[a].extent;
    ln_add_term(&index[rank - 1], a, 1);
    dims[rank - 1] *= w->atom[a].extent;
  }
  if (rank == 1)
    rank = 2;
  MlirType t = ln_memref(w->ln, element, rank, dims, s);
  MlirOperation op = ln_insert(w->ln, nisa_create_alloc(w->ln->b.loc, t, 64));
  struct ln_view *v = new_view(w, mlirOperationGetResult(op, 0));
  memcpy(v->index, index, sizeof index);
  v->rank = rank;
  v->is_temp = true;
  return v;
}

void ln_release(struct ln *ln, const struct ln_view *v) {
  if (!v || !v->is_temp)
    return;
  ln_insert(ln, nisa_create_release(ln->b.loc, v->base));
}

struct ln_shape ln_shape_of(const struct ln_walk *w, ln_atoms par, ln_atoms atoms) {
  struct ln_shape s = {0};

  for (int k = 0; k < w->n_atoms; k++)
    if ((par & atoms) >> w->order[k] & 1)
      s.atom[s.n++] = w->order[k];
  s.n_par = s.n;
  for (int k = 0; k < w->n_atoms; k++)
    if ((atoms & ~par) >> w->order[k] & 1)
      s.atom[s.n++] = w->order[k];
  return s;
}

struct nisa_access ln_scalar(MlirValue v) {
  return (struct nisa_access){.base = v};
}

static MlirAffineExpr plus(MlirAffineExpr a, MlirAffineExpr b) {
  return mlirAffineExprIsNull(a) ? b : mlirAffineAddExprGet(a, b);
}

/* Returns one result of the access map.  dim_of[atom] is the dimension of the tile, or -1 if the instruction does
 * not iterate over the atom.  Adds the offset to the indices of x. */
static MlirAffineExpr index_expr(MlirContext ctx, const struct ln_form *f, const int *dim_of, int n_dims,
                                 struct nisa_access *x) {
  MlirAffineExpr sum = {NULL};

  for (int d = 0; d < n_dims; d++)
    for (int k = 0; k < f->n; k++)
      if (dim_of[f->term[k].atom] == d)
        sum = plus(sum,
                   mlirAffineMulExprGet(mlirAffineDimExprGet(ctx, d), mlirAffineConstantExprGet(ctx, f->term[k].coef)));
  if (!mlirValueIsNull(f->offset)) {
    sum = plus(sum, mlirAffineSymbolExprGet(ctx, x->n_indices));
    assert(x->n_indices < NISA_RANK_MAX);
    x->indices[x->n_indices++] = f->offset;
  }
  if (f->constant || mlirAffineExprIsNull(sum))
    sum = plus(sum, mlirAffineConstantExprGet(ctx, f->constant));
  return sum;
}

enum status ln_access(struct ln_walk *w, const struct ln_view *v, const struct ln_shape *s, struct nisa_access *out) {
  MlirContext ctx = w->ln->b.ctx;
  MlirAffineExpr results[NISA_RANK_MAX];
  int dim_of[LN_ATOMS_MAX];

  *out = (struct nisa_access){.base = v->base};
  memset(dim_of, -1, sizeof dim_of);
  if (s->n + 2 > NISA_TILE_MAX)
    return ln_fail(w->ln, "it works on more than %d dimensions", NISA_TILE_MAX - 2);
  assert(s->n_par <= s->n);
  for (int k = 0; k < s->n_par; k++) {
    dim_of[s->atom[k]] = out->n_dims;
    out->tile[out->n_dims++] = w->atom[s->atom[k]].extent;
  }
  if (!out->n_dims)
    out->tile[out->n_dims++] = 1;
  out->par_dims = out->n_dims;
  for (int k = s->n_par; k < s->n; k++) {
    dim_of[s->atom[k]] = out->n_dims;
    out->tile[out->n_dims++] = w->atom[s->atom[k]].extent;
  }
  if (out->n_dims == out->par_dims)
    out->tile[out->n_dims++] = 1;
  for (int r = 0; r < v->rank; r++)
    results[r] = index_expr(ctx, &v->index[r], dim_of, out->n_dims, out);
  out->map = mlirAffineMapGet(ctx, out->n_dims, out->n_indices, v->rank, results);
  return ST_OK;
}

/* ---- atoms as loops --------------------------------------------------------------------------------------------- */

MlirValue ln_open_loop(struct ln *ln, int64_t n) {
  return ir_count_loop(&ln->b, n, &ln->b);
}

void ln_fix_atom(struct ln *ln, struct ln_view *v, int atom, MlirValue iv) {
  struct ir_builder *b = &ln->b;
  for (int r = 0; r < v->rank; r++) {
    struct ln_form *f = &v->index[r];
    for (int k = 0; k < f->n; k++) {
      if (f->term[k].atom != atom)
        continue;
      MlirValue at = f->term[k].coef == 1 ? iv : ir_binary(b, "arith.muli", iv, ir_index(b, f->term[k].coef));
      f->offset = mlirValueIsNull(f->offset) ? at : ir_binary(b, "arith.addi", f->offset, at);
      f->term[k--] = f->term[--f->n];
    }
  }
}
