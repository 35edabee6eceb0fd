/* walk: finds the part of a buffer that an operand covers.
 *
 *     %s = memref.subview %x[0, %i, 1, 0] [128, 1, 1, 128]        loops (d0, d1) = (128, 128)
 *     %c = memref.collapse_shape %s [[0, 1, 2], [3]]         ==>   %x: d0, %i, 1, d1
 *
 * Follows the views from the operand to the buffer.  The index of every dimension is offset + constant + sum of
 * coefficient * atom: subview adds its offset and multiplies by its stride, expand_shape adds up its group, and
 * collapse_shape divides.  The division is exact: multiples of the trailing extents go to the leading dimension, the
 * rest must fit into the trailing ones, and a loop that contributes to both is split into two atoms (d1 = 64 * hi +
 * lo).  An SSA offset is divided exactly as far as it is known to be a multiple; otherwise arith.divui and remui
 * divide it, if the rest still fits.  Offsets are computed before the operation.
 *
 * On chip every view must be expressed in this form.  In HBM a reshape may stay: it is a view that moves no data.
 */
#include <assert.h>
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

void ln_add_value(struct ir_builder *b, struct ln_form *f, MlirValue v, int64_t factor) {
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

void ln_add_term(struct ln_form *f, int atom, int64_t coef) {
  for (int k = 0; k < f->n; k++)
    if (f->term[k].atom == atom) {
      f->term[k].coef += coef;
      return;
    }
  assert(f->n < LN_ATOMS_MAX);
  f->term[f->n++] = (struct ln_term){atom, coef};
}

void ln_add_form(struct ir_builder *b, struct ln_form *f, const struct ln_form *g, int64_t factor) {
  f->constant += factor * g->constant;
  ln_add_value(b, f, g->offset, factor);
  for (int k = 0; k < g->n; k++)
    ln_add_term(f, g->term[k].atom, factor * g->term[k].coef);
}

ln_atoms ln_form_atoms(const struct ln_form *f) {
  ln_atoms s = 0;
  for (int k = 0; k < f->n; k++)
    s |= (ln_atoms)1 << f->term[k].atom;
  return s;
}

/* ---- splitting loops -------------------------------------------------------------------------------------------- */

/* Replaces the atom by inner * atom + lo. */
static void split_in(struct ln_form *f, int atom, int64_t inner, int lo) {
  for (int k = 0; k < f->n; k++)
    if (f->term[k].atom == atom) {
      ln_add_term(f, lo, f->term[k].coef);
      f->term[k].coef *= inner;
      return;
    }
}

/* Splits atom into inner * atom + a new atom, in all views and in the forms `extra`, which are under construction.
 * False if inner does not divide its extent, or there are too many atoms. */
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
  for (int v = 0; v < w->views.n; v++)
    for (int r = 0; r < w->views.v[v]->rank; r++)
      split_in(&w->views.v[v]->index[r], atom, inner, lo);
  for (int k = 0; k < n_extra; k++)
    split_in(extra[k], atom, inner, lo);
  return true;
}

bool ln_split_atom(struct ln_walk *w, int atom, int64_t inner) {
  return split_atom(w, atom, inner, 0, NULL);
}

/* ---- division --------------------------------------------------------------------------------------------------- */

/* Returns v / n, where n divides v. */
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
  struct ln_form *extra[3 * NISA_RANK_MAX + 2]; /* splits apply to these forms, too */
};

/* Divides the terms that are multiples of n, which stay in f; the others go to rest.  Splits an atom with a term
 * that contributes to both. */
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
      ln_add_term(&d->rest, t.atom, t.coef);
  }
  d->f->n = kept;
  return true;
}

/* Returns the largest value of the terms. */
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

/* Divides the index f of a dimension that n_dims dimensions were collapsed into: out[j] is the index in dims[j].
 * others: further forms in which atoms must be split.  On failure, f may have changed, and the emitted operations
 * are not used. */
static bool delinearize(struct ln_walk *w, struct ln_form *f, int n_dims, const int64_t *dims, struct ln_form *out,
                        int n_others, struct ln_form *others) {
  struct division d = {.w = w, .f = f};

  assert(n_others + 1 + n_dims <= (int)(sizeof d.extra / sizeof *d.extra));
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
      ln_add_form(b, &f, &old[from++], dense_at(op, "static_strides", d));
    if (offset == mlirShapedTypeGetDynamicStrideOrOffset())
      ln_add_value(b, &f, mlirOperationGetOperand(op, next++), 1);
    else
      f.constant += offset;
    v->index[d] = f;
  }
  assert(from <= v->rank);
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
      ln_add_form(&w->ln->b, &out[g], &v->index[d], factor);
      factor *= dims[d];
    }
  }
  memcpy(v->index, out, sizeof out);
  v->rank = rank;
  v->base = mlirOperationGetOperand(op, 0);
}

/* Returns false if the division is not possible; v is then as before, except that more atoms may be split. */
static bool follow_collapse(struct ln_walk *w, MlirOperation op, struct ln_view *v) {
  MlirAttribute groups = ir_attr(op, "reassociation");
  MlirValue src = mlirOperationGetOperand(op, 0);
  int64_t dims[NISA_RANK_MAX];
  /* the results, then the indices that are not divided yet: a split changes both */
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

/* Divides the address of the element by the source's dimensions.  If the result has the source's shape and no
 * offset, only the strides change: they describe the layout of the buffer in memory, and indices stay as they are. */
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
    ln_add_form(&w->ln->b, &flat, &saved[d], dense_at(op, "static_strides", d));
  if (!delinearize(w, &flat, rank, from, out, 0, NULL))
    return false;
  memcpy(v->index, out, sizeof out);
  v->rank = rank;
  v->base = src;
  return true;
}

enum status ln_follow(struct ln_walk *w, struct ln_view *v) {
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
