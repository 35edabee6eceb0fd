/* walk: which part of which buffer an operand is.
 *
 *     %s = memref.subview %x[0, %i, 1, 0] [128, 1, 1, 128]        loops (d0, d1) = (128, 128)
 *     %c = memref.collapse_shape %s [[0, 1, 2], [3]]         ==>   %x: d0, %i, 1, d1
 *
 * The index of every dimension is kept as offset + constant + sum of coefficient * atom while views are followed:
 * subview adds its offset and multiplies by its stride, expand_shape adds up its group, and collapse_shape divides.  The
 * division is exact: what is a multiple of the trailing extents goes up, the rest must fit below them, and a loop that
 * does both is split in two (d1 = 64 * hi + lo).  An SSA offset is divided only as far as it is provably a multiple;
 * otherwise by arith.divui and remui if the rest still fits.  Offsets are computed in front of the operation.
 *
 * On chip everything must be expressed that way.  In HBM a reshape may remain: it is a view without data movement.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/range.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- forms ------------------------------------------------------------------------------------------------------ */

static MlirValue times(struct ir_builder *b, MlirValue v, int64_t c) {
  return c == 1 ? v : ir_binary(b, "arith.muli", v, ir_index(b, c));
}

static void add_value(struct ir_builder *b, struct ln_form *f, MlirValue v, int64_t factor) {
  int64_t c;
  if (mlirValueIsNull(v))
    return;
  if (ir_int_constant(v, &c)) {
    f->constant += factor * c;
    return;
  }
  v = times(b, v, factor);
  f->offset = mlirValueIsNull(f->offset) ? v : ir_binary(b, "arith.addi", f->offset, v);
}

static void add_term(struct ln_form *f, int atom, int64_t coef) {
  for (int k = 0; k < f->n; k++)
    if (f->term[k].atom == atom) {
      f->term[k].coef += coef;
      return;
    }
  if (f->n < LN_TERMS_MAX)
    f->term[f->n++] = (struct ln_term){atom, coef};
}

/* f += factor * g */
static void add_form(struct ir_builder *b, struct ln_form *f, const struct ln_form *g, int64_t factor) {
  f->constant += factor * g->constant;
  add_value(b, f, g->offset, factor);
  for (int k = 0; k < g->n; k++)
    add_term(f, g->term[k].atom, factor * g->term[k].coef);
}

/* ---- splitting loops -------------------------------------------------------------------------------------------- */

static void split_in(struct ln_form *f, int atom, int64_t inner, int lo) {
  for (int k = 0; k < f->n; k++)
    if (f->term[k].atom == atom) {
      add_term(f, lo, f->term[k].coef);
      f->term[k].coef *= inner;
      return;
    }
}

/* atom = inner * atom' + new; everything that mentions the atom follows.  extra: a form under construction. */
static bool split_atom(struct ln_walk *w, int atom, int64_t inner, int n_extra, struct ln_form *const *extra) {
  int at = 0, lo = w->n_atoms;

  if (lo == LN_ATOMS_MAX || w->atom[atom].extent % inner)
    return false;
  w->atom[lo] = (struct ln_atom){inner, w->atom[atom].loop};
  w->atom[atom].extent /= inner;
  w->n_atoms++;
  while (w->order[at] != atom)
    at++;
  memmove(&w->order[at + 2], &w->order[at + 1], (size_t)(lo - at - 1) * sizeof *w->order);
  w->order[at + 1] = lo;
  for (int v = 0; v < w->n_views; v++)
    for (int r = 0; r < w->view[v]->rank; r++)
      split_in(&w->view[v]->index[r], atom, inner, lo);
  for (int k = 0; k < n_extra; k++)
    split_in(extra[k], atom, inner, lo);
  return true;
}

/* ---- division --------------------------------------------------------------------------------------------------- */

/* v / n, v being a multiple of n. */
static MlirValue exact_quotient(struct ir_builder *b, MlirValue v, int64_t n) {
  MlirOperation def = ir_defining_op(v);
  int64_t c;

  if (n == 1)
    return v;
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.muli"))
    for (int k = 0; k < 2; k++)
      if (ir_int_constant(mlirOperationGetOperand(def, k), &c) && c % n == 0)
        return times(b, mlirOperationGetOperand(def, 1 - k), c / n);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.addi")) {
    MlirValue x = mlirOperationGetOperand(def, 0), y = mlirOperationGetOperand(def, 1);
    if (nisa_divisor(x) % n == 0 && nisa_divisor(y) % n == 0)
      return ir_binary(b, "arith.addi", exact_quotient(b, x, n), exact_quotient(b, y, n));
  }
  return ir_binary(b, "arith.divui", v, ir_index(b, n));
}

struct division {
  struct ln_walk *w;
  struct ln_form *f; /* becomes the quotient */
  struct ln_form rest;
  int n_extra;
  struct ln_form *extra[3 * NISA_RANK_MAX + 2]; /* forms that splits must follow */
};

/* Terms that are multiples of n stay in f, divided; the others go to rest. */
static bool divide_terms(struct division *d, int64_t n) {
  for (int k = 0; k < d->f->n; k++) {
    struct ln_term t = d->f->term[k];
    int64_t extent = d->w->atom[t.atom].extent;
    if (t.coef % n == 0 || t.coef > n || t.coef * (extent - 1) < n)
      continue;
    if (n % t.coef || !split_atom(d->w, t.atom, n / t.coef, d->n_extra, d->extra))
      return false;
    k = -1; /* the terms have changed */
  }
  int kept = 0;
  for (int k = 0; k < d->f->n; k++) {
    struct ln_term t = d->f->term[k];
    if (t.coef % n == 0)
      d->f->term[kept++] = (struct ln_term){t.atom, t.coef / n};
    else
      d->rest.term[d->rest.n++] = t;
  }
  d->f->n = kept;
  return true;
}

/* Largest value of the terms. */
static int64_t reach(const struct ln_walk *w, const struct ln_form *f) {
  int64_t sum = 0;
  for (int k = 0; k < f->n; k++)
    sum += f->term[k].coef * (w->atom[f->term[k].atom].extent - 1);
  return sum;
}

static bool divide_offset(struct division *d, int64_t n) {
  struct ir_builder *b = &d->w->ln->b;
  struct ln_form *f = d->f;
  const int64_t above = reach(d->w, &d->rest);
  int64_t k = f->constant;

  if (k < 0)
    return false;
  int64_t g = mlirValueIsNull(f->offset) ? 0 : nisa_divisor(f->offset);
  if (g % n == 0) {
    if (k % n + above >= n)
      return false;
    d->rest.constant = k % n;
    f->constant = k / n;
    if (!mlirValueIsNull(f->offset))
      f->offset = exact_quotient(b, f->offset, n);
    return true;
  }
  g = nisa_gcd(g, n);
  if (k % g + above >= g)
    return false;
  MlirValue o = f->offset;
  if (k - k % g)
    o = ir_binary(b, "arith.addi", o, ir_index(b, k - k % g));
  MlirValue by = ir_index(b, n);
  d->rest.offset = ir_binary(b, "arith.remui", o, by);
  d->rest.constant = k % g;
  f->offset = ir_binary(b, "arith.divui", o, by);
  f->constant = 0;
  return true;
}

/* Splits index f of a dimension of n_dims dimensions collapsed into one: out[j] is the index in dims[j].  May fail after
 * it changed f; what it emitted is dead then.  others: further forms that must follow splits. */
static bool delinearize(struct ln_walk *w, struct ln_form *f, int n_dims, const int64_t *dims, struct ln_form *out,
                        int n_others, struct ln_form *others) {
  struct division d = {.w = w, .f = f};

  for (int k = 0; k < n_others; k++)
    d.extra[d.n_extra++] = &others[k];
  d.extra[d.n_extra++] = f;
  for (int j = n_dims - 1; j >= 0; j--) {
    bool is_first = true;
    for (int i = 0; i < j; i++)
      is_first &= dims[i] == 1;
    out[j] = (struct ln_form){.n = 0};
    if (dims[j] == 1)
      continue;
    if (is_first) {
      out[j] = *f;
      *f = (struct ln_form){.n = 0};
    } else {
      d.rest = (struct ln_form){.n = 0};
      if (!divide_terms(&d, dims[j]) || !divide_offset(&d, dims[j]))
        return false;
      out[j] = d.rest;
    }
    d.extra[d.n_extra++] = &out[j];
  }
  return true;
}

/* ---- following views -------------------------------------------------------------------------------------------- */

static int64_t dense_at(MlirOperation op, const char *name, int k) {
  return mlirDenseI64ArrayGetElement(ir_attr(op, name), k);
}

static int segment(MlirOperation op, int k) {
  return mlirDenseI32ArrayGetElement(ir_attr(op, "operandSegmentSizes"), k);
}

static enum status follow_subview(struct ln_walk *w, MlirOperation op, struct ln_view *v) {
  struct ir_builder *b = &w->ln->b;
  bool kept[IR_MEMREF_RANK_MAX];
  const int rank = buffer_kept_dims(op, kept);
  int next = 1, from = 0;
  struct ln_form old[NISA_RANK_MAX];

  if (rank > NISA_RANK_MAX)
    return ln_fail(w->ln, "an operand has %d dimensions", rank);
  if (segment(op, 2) || segment(op, 3))
    return ln_fail(w->ln, "the size or stride of an operand's slice is not known");
  memcpy(old, v->index, sizeof old);
  for (int d = 0; d < rank; d++) {
    struct ln_form f = {.n = 0};
    int64_t offset = dense_at(op, "static_offsets", d);
    if (kept[d])
      add_form(b, &f, &old[from++], dense_at(op, "static_strides", d));
    if (offset == mlirShapedTypeGetDynamicStrideOrOffset())
      add_value(b, &f, mlirOperationGetOperand(op, next++), 1);
    else
      f.constant += offset;
    v->index[d] = f;
  }
  v->rank = rank;
  v->base = mlirOperationGetOperand(op, 0);
  return ST_OK;
}

static void follow_expand(struct ln_walk *w, MlirOperation op, struct ln_view *v) {
  MlirAttribute groups = ir_attr(op, "reassociation");
  int64_t dims[NISA_RANK_MAX];
  struct ln_form out[NISA_RANK_MAX] = {{.n = 0}};
  int rank = (int)mlirArrayAttrGetNumElements(groups), end = 0;

  ir_shape(mlirOperationGetResult(op, 0), NISA_RANK_MAX, dims);
  for (int g = 0; g < rank; g++) {
    int first = end;
    int64_t factor = 1;
    end += (int)mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g));
    for (int d = end - 1; d >= first; d--) {
      add_form(&w->ln->b, &out[g], &v->index[d], factor);
      factor *= dims[d];
    }
  }
  memcpy(v->index, out, sizeof out);
  v->rank = rank;
  v->base = mlirOperationGetOperand(op, 0);
}

/* False if the split is not possible; v is then as it was, except that loops may have been split further. */
static bool follow_collapse(struct ln_walk *w, MlirOperation op, struct ln_view *v) {
  MlirAttribute groups = ir_attr(op, "reassociation");
  MlirValue src = mlirOperationGetOperand(op, 0);
  int64_t dims[NISA_RANK_MAX];
  /* all in one array, so that splits reach what is done and what is to come */
  struct ln_form f[2 * NISA_RANK_MAX] = {{.n = 0}};
  int n = (int)mlirArrayAttrGetNumElements(groups), rank = ir_shape(src, NISA_RANK_MAX, dims), end = 0;

  if (rank > NISA_RANK_MAX)
    return false;
  memcpy(f + NISA_RANK_MAX, v->index, sizeof v->index);
  for (int g = 0; g < n; g++) {
    int size = (int)mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g));
    struct ln_form work = f[NISA_RANK_MAX + g], out[NISA_RANK_MAX];
    f[NISA_RANK_MAX + g] = (struct ln_form){.n = 0};
    if (!delinearize(w, &work, size, dims + end, out, 2 * NISA_RANK_MAX, f))
      return false;
    memcpy(f + end, out, (size_t)size * sizeof *out);
    end += size;
  }
  memcpy(v->index, f, sizeof v->index);
  v->rank = rank;
  v->base = src;
  return true;
}

static bool is_contiguous(MlirType memref, int rank, const int64_t *dims) {
  int64_t strides[NISA_RANK_MAX], offset, expected = 1;
  if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(memref, strides, &offset)) || offset)
    return false;
  for (int d = rank - 1; d >= 0; d--) {
    if (dims[d] != 1 && strides[d] != expected)
      return false;
    expected *= dims[d];
  }
  return true;
}

/* The flat address, taken apart by the source's dimensions.  Same shape and no offset: a change of strides that only
 * says how the buffer lies in memory, which on chip nobody sees. */
static bool follow_reinterpret(struct ln_walk *w, MlirOperation op, struct ln_view *v) {
  MlirValue src = mlirOperationGetOperand(op, 0);
  int64_t from[NISA_RANK_MAX], to[NISA_RANK_MAX];
  int rank = ir_shape(src, NISA_RANK_MAX, from), n = ir_shape(mlirOperationGetResult(op, 0), NISA_RANK_MAX, to);
  struct ln_form flat = {.n = 0}, out[NISA_RANK_MAX] = {{.n = 0}};

  if (segment(op, 1) || segment(op, 2) || segment(op, 3) || rank > NISA_RANK_MAX)
    return false;
  flat.constant = dense_at(op, "static_offsets", 0);
  if (rank == n && !memcmp(from, to, (size_t)n * sizeof *to) && !flat.constant) {
    v->base = src;
    return true;
  }
  if (!is_contiguous(mlirValueGetType(src), rank, from))
    return false;
  struct ln_form saved[NISA_RANK_MAX];
  memcpy(saved, v->index, sizeof saved);
  for (int d = 0; d < n; d++)
    add_form(&w->ln->b, &flat, &saved[d], dense_at(op, "static_strides", d));
  if (!delinearize(w, &flat, rank, from, out, 0, NULL))
    return false;
  memcpy(v->index, out, sizeof out);
  v->rank = rank;
  v->base = src;
  return true;
}

static enum status follow(struct ln_walk *w, struct ln_view *v) {
  for (;;) {
    MlirOperation def = ir_defining_op(v->base);
    enum status st = ST_OK;
    bool ok = true;
    if (mlirOperationIsNull(def))
      return ST_OK;
    if (ir_is(def, "memref.subview"))
      st = follow_subview(w, def, v);
    else if (ir_is(def, "memref.expand_shape"))
      follow_expand(w, def, v);
    else if (ir_is(def, "memref.collapse_shape"))
      ok = follow_collapse(w, def, v);
    else if (ir_is(def, "memref.reinterpret_cast"))
      ok = follow_reinterpret(w, def, v);
    else if (ir_is(def, "memref.cast"))
      v->base = mlirOperationGetOperand(def, 0);
    else
      return ST_OK;
    if (st)
      return st;
    if (!ok && mem_is_on_chip(v->space))
      return ln_fail(w->ln, "an operand's reshape mixes partitions and blocks in a way no access pattern has");
    if (!ok)
      return ST_OK;
  }
}

/* ---- making views ----------------------------------------------------------------------------------------------- */

void ln_walk_init(struct ln_walk *w, struct ln *ln, int n_loops, const int64_t *extents) {
  *w = (struct ln_walk){.ln = ln, .n_loops = n_loops};
  for (int k = 0; k < n_loops; k++) {
    w->extent[k] = extents[k];
    if (extents[k] == 1)
      continue;
    w->order[w->n_atoms] = w->n_atoms;
    w->atom[w->n_atoms++] = (struct ln_atom){extents[k], k};
  }
}

struct ln_form ln_loop_form(const struct ln_walk *w, int loop) {
  struct ln_form f = {.n = 0};
  int64_t factor = 1;

  for (int k = w->n_atoms - 1; k >= 0; k--)
    if (w->atom[w->order[k]].loop == loop) {
      add_term(&f, w->order[k], factor);
      factor *= w->atom[w->order[k]].extent;
    }
  return f;
}

static struct ln_view *new_view(struct ln_walk *w, MlirValue base) {
  if (w->n_views == LN_VIEWS_MAX)
    return NULL;
  struct ln_view *v = arena_new(w->ln->run->arena, struct ln_view);
  v->base = base;
  v->space = ln_space(base);
  v->element = mlirShapedTypeGetElementType(mlirValueGetType(base));
  w->view[w->n_views++] = v;
  return v;
}

/* The traced view ends on a buffer; one whose rank was padded gets zeros behind. */
static enum status finish(struct ln_walk *w, struct ln_view *v, struct ln_view **out) {
  enum status st = follow(w, v);
  if (st)
    return st;
  v->base = ln_buffer(w->ln, v->base);
  v->space = ln_space(v->base);
  v->element = mlirShapedTypeGetElementType(mlirValueGetType(v->base));
  int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(v->base));
  while (v->rank < rank && v->rank < NISA_RANK_MAX)
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
  if (!*out)
    return ln_fail(w->ln, "it needs more than %d buffers", LN_VIEWS_MAX);
  (*out)->rank = (int)mlirShapedTypeGetRank(t);
  return ST_OK;
}

/* An indexing map's result as a form over the loops. */
static bool add_affine(struct ln_walk *w, struct ln_form *f, MlirAffineExpr x, int64_t factor) {
  if (mlirAffineExprIsADim(x)) {
    struct ln_form loop = ln_loop_form(w, (int)mlirAffineDimExprGetPosition(x));
    add_form(&w->ln->b, f, &loop, factor);
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
  for (int r = 0; r < n && r < view->rank; r++)
    add_value(&w->ln->b, &view->index[r], indices[r], 1);
  return finish(w, view, out);
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

static ln_atoms form_atoms(const struct ln_form *f) {
  ln_atoms s = 0;
  for (int k = 0; k < f->n; k++)
    s |= (ln_atoms)1 << f->term[k].atom;
  return s;
}

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
    s |= form_atoms(&v->index[r]);
  return s;
}

ln_atoms ln_partition_atoms(const struct ln_view *v) {
  return mem_is_on_chip(v->space) && v->rank ? form_atoms(&v->index[0]) : 0;
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

int64_t ln_extent(const struct ln_walk *w, ln_atoms atoms) {
  int64_t n = 1;
  for (int k = 0; k < w->n_atoms; k++)
    if (atoms >> k & 1)
      n *= w->atom[k].extent;
  return n;
}

/* ---- buffers and accesses --------------------------------------------------------------------------------------- */

/* The dimensions of a temporary: the partitions, then one for every loop that has other atoms. */
struct ln_view *ln_temp(struct ln_walk *w, MlirType element, enum mem_space s, ln_atoms par, ln_atoms atoms) {
  struct ln_form index[NISA_RANK_MAX] = {{.n = 0}};
  int64_t dims[NISA_RANK_MAX] = {1, 1};
  int rank = 1, loop = -1;

  for (int k = w->n_atoms - 1; k >= 0; k--) {
    int a = w->order[k];
    if (!(par & atoms) || !((par & atoms) >> a & 1))
      continue;
    add_term(&index[0], a, dims[0]);
    dims[0] *= w->atom[a].extent;
  }
  for (int k = 0; k < w->n_atoms; k++) {
    int a = w->order[k];
    if (!(atoms >> a & 1) || (par >> a & 1))
      continue;
    if (w->atom[a].loop != loop && rank == NISA_RANK_MAX)
      return NULL;
    if (w->atom[a].loop != loop)
      dims[rank++] = 1;
    loop = w->atom[a].loop;
    for (int t = 0; t < index[rank - 1].n; t++)
      index[rank - 1].term[t].coef *= w->atom[a].extent;
    add_term(&index[rank - 1], a, 1);
    dims[rank - 1] *= w->atom[a].extent;
  }
  if (rank == 1)
    rank = 2;
  MlirType t = ln_memref(w->ln, element, rank, dims, s);
  MlirOperation op = ln_insert(w->ln, nisa_create_alloc(w->ln->b.loc, t, 64));
  struct ln_view *v = new_view(w, mlirOperationGetResult(op, 0));
  if (!v)
    return NULL;
  memcpy(v->index, index, sizeof index);
  v->rank = rank;
  v->is_temp = true;
  return v;
}

void ln_release(struct ln *ln, const struct ln_view *v) {
  if (!v || !v->is_temp)
    return;
  struct nisa_instr in = {.def = nisa_op_def(NISA_RELEASE), .operand = {{.base = v->base}}};
  ln_insert(ln, nisa_create(&in, ln->b.loc, 0, NULL));
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

/* One result of the map.  dim_of[atom]: its tile dimension, -1 if the instruction does not go over it. */
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
