/* move: lowers copies, transposes, broadcasts and fills: dst = src for any two views.
 *
 *     HBM <-> HBM, SBUF     dma_copy                        a source that lacks a loop is repeated, also over partitions
 *     SBUF -> SBUF, PSUM    tensor_copy                     if both sides have the same loops on the partitions
 *     SBUF -> SBUF          dma_copy                        otherwise, and if no engine can start at the partition
 *     transpose of 2 loops  a product with the identity     floats, SBUF -> SBUF (transpose.c)
 *                           dma_transpose into SBUF         other elements of 2 and 4 bytes, and from HBM; dma_copy of
 *                                                           elements otherwise
 *     PSUM <-> HBM          through a buffer in SBUF, which is released again
 *
 * nkigen refuses moves that its table does not list (real transposes out of SBUF, copies inside PSUM, fills of HBM)
 * and never releases the temporary buffer.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"
#include "passes/lib/price.h"

enum status ln_choose_partitions(struct ln_walk *w, const struct ln_view *dst, int n, struct ln_view *const *inputs,
                                 ln_atoms *out) {
  if (mem_is_on_chip(dst->space)) {
    *out = ln_partition_atoms(dst);
    return ST_OK;
  }
  for (int k = 0; k < n; k++) {
    ln_atoms par = ln_partition_atoms(inputs[k]);
    if (par && ln_has_partitions(w, inputs[k], par)) {
      *out = par;
      return ST_OK;
    }
  }
  *out = w->n_loops ? ln_loop_atoms(w, 0) : 0;
  if (ln_extent(w, *out) > NISA_PARTITIONS)
    return ln_fail(w->ln, "it works on HBM and its first dimension of %lld is more than the %d partitions",
                   (long long)ln_extent(w, *out), NISA_PARTITIONS);
  return ST_OK;
}

/* ---- single instructions ---------------------------------------------------------------------------------------- */

static enum status emit_pair(struct ln_walk *w, enum nisa_kind kind, enum nisa_engine engine, ln_atoms par,
                             const struct ln_view *dst, const struct ln_view *src, bool is_unsigned) {
  struct ln_shape s = ln_shape_of(w, par, ln_view_atoms(dst));
  struct nisa_access x[2];
  struct ln_attr attrs[] = {{is_unsigned ? "unsigned" : NULL, mlirUnitAttrGet(w->ln->b.ctx)}, {NULL, {NULL}}};
  enum status st = ln_access(w, dst, &s, &x[0]);

  if (!st)
    st = ln_access(w, src, &s, &x[1]);
  if (!st)
    ln_emit(w->ln, kind, engine, x, attrs);
  return st;
}

static enum status engine_copy(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src,
                               bool is_unsigned) {
  const bool converts = !mlirTypeEqual(dst->element, src->element);
  const bool integers = converts && mlirTypeIsAInteger(dst->element) && mlirTypeIsAInteger(src->element);
  const bool matters =
      converts && is_unsigned && (mlirTypeIsAInteger(dst->element) || mlirTypeIsAInteger(src->element));

  return emit_pair(w, NISA_TENSOR_COPY, integers ? NISA_ENGINE_GPSIMD : NISA_ENGINE_VECTOR, ln_partition_atoms(dst),
                   dst, src, matters);
}

/* Returns the atom with the smallest stride in memory; -1 if v has no atoms. */
static int innermost(const struct ln_view *v) {
  for (int r = v->rank - 1; r >= (mem_is_on_chip(v->space) ? 1 : 0); r--) {
    const struct ln_form *f = &v->index[r];
    int best = 0;
    if (!f->n)
      continue;
    for (int k = 1; k < f->n; k++)
      if (f->term[k].coef < f->term[best].coef)
        best = k;
    return f->term[best].atom;
  }
  return -1;
}

/* True if dst = src exchanges the loops `par`, on dst's partitions, with all others: src has those on its partitions, or,
 * in HBM, its rows run along dst's partitions. */
static bool is_turn(const struct ln_view *dst, const struct ln_view *src, ln_atoms par) {
  const ln_atoms atoms = ln_view_atoms(dst);
  const int64_t bytes = nisa_element_bytes(dst->element);

  if (!par || !(atoms & ~par) || ln_view_atoms(src) != atoms)
    return false;
  if ((bytes != 2 && bytes != 4) || !mlirTypeEqual(dst->element, src->element))
    return false;
  if (mem_is_on_chip(src->space))
    return ln_partition_atoms(src) == (atoms & ~par);
  const int inner = innermost(src);
  return inner >= 0 && (par >> inner & 1);
}

/* The same of two loops, which DMA can transpose. */
static bool is_transpose(const struct ln_view *dst, const struct ln_view *src, ln_atoms par) {
  return __builtin_popcountll(par) == 1 && __builtin_popcountll(ln_view_atoms(dst)) == 2 && is_turn(dst, src, par);
}

/* Emits dst(i, j) = src(j, i).  Each side is accessed in the order of its own rows. */
static enum status emit_transpose_copy(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src,
                                       ln_atoms par) {
  ln_atoms atoms = ln_view_atoms(dst);
  assert(__builtin_popcountll(atoms) == 2 && (par & atoms) == par);
  struct ln_shape s = ln_shape_of(w, par, atoms), t = ln_shape_of(w, atoms & ~par, atoms);
  struct nisa_access x[2];
  struct ln_attr attrs[] = {{"permutation", ir_i64_array(&w->ln->b, 2, (int64_t[]){1, 0})}, {NULL, {NULL}}};
  enum status st = ln_access(w, dst, &s, &x[0]);

  if (!st)
    st = ln_access(w, src, &t, &x[1]);
  if (st)
    return st;
  struct remark *r = pass_remark(w->ln->run, w->ln->op, RULE_TRANSPOSE_BY_DMA, "transposed by DMA");
  const enum target target = w->ln->run->target;
  const int64_t rows = ln_extent(w, par), columns = ln_extent(w, atoms & ~par), each = nisa_element_bytes(dst->element);
  const double turned = price_turn_ns(target, &x[0], &x[1]);
  price_chosen(r, turned);
  price_instead(r, "the tensor engine", turned + price_transpose_ns(target, rows, columns, each),
                "a product with the identity would keep it busy, and DMA moves the data anyway");
  ln_emit(w->ln, NISA_DMA_TRANSPOSE, NISA_ENGINE_DMA, x, attrs);
  return ST_OK;
}

/* ---- moving ----------------------------------------------------------------------------------------------------- */

/* Moves dst = src through a new buffer in SBUF with these partitions. */
static enum status move_through(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src,
                                MlirType element, ln_atoms par, bool is_unsigned) {
  const struct ln_view *temp = ln_temp(w, element, MEM_SBUF, par, ln_view_atoms(src) & ln_view_atoms(dst));
  enum status st = ln_move(w, temp, src, is_unsigned);
  if (!st)
    st = ln_move(w, dst, temp, is_unsigned);
  ln_release(w->ln, temp);
  return st;
}

/* True if an engine can start at the first partition of v.  access_starts_well has the rule. */
static bool starts_well(const struct ln_walk *w, const struct ln_view *v) {
  const struct ln_form *f = &v->index[0];
  struct linear at = {.constant = f->constant};

  if (!mlirValueIsNull(f->offset) && !linear_add(&at, f->offset, 1))
    return false;
  const int64_t n = ln_extent(w, ln_partition_atoms(v));
  return access_starts_well(&at, n, NISA_PARTITIONS, n);
}

static enum status move_by_dma(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src,
                               bool is_unsigned) {
  const bool into_chip = mem_is_on_chip(dst->space), from_chip = mem_is_on_chip(src->space);
  ln_atoms par = ln_partition_atoms(into_chip ? dst : src);

  if (!into_chip && !from_chip) { /* neither side has partitions: use the first loop */
    struct ln_shape all = ln_shape_of(w, 0, ln_view_atoms(dst));
    par = all.n ? (ln_atoms)1 << all.atom[0] : 0;
  }
  if (mlirTypeIsAInteger(dst->element) && mlirTypeIsAInteger(src->element) &&
      !mlirTypeEqual(dst->element, src->element))
    return ln_fail(w->ln, "DMA does not convert between integer types");
  if (into_chip && is_turn(dst, src, par) && ln_can_transpose(dst, src) && starts_well(w, dst) && starts_well(w, src))
    return ln_transpose(w, dst, src);
  if (into_chip && is_transpose(dst, src, par))
    return emit_transpose_copy(w, dst, src, par);
  if (into_chip && !from_chip && is_turn(dst, src, par) && ln_passes_through(dst->element) &&
      ln_extent(w, ln_view_atoms(dst) & ~par) <= NISA_PARTITIONS)
    return move_through(w, dst, src, src->element, ln_view_atoms(dst) & ~par,
                        is_unsigned); /* whole rows, then a turn */
  if (!into_chip && from_chip) {
    ln_atoms other = ln_view_atoms(dst) & ~par;
    int inner = innermost(dst);
    if (__builtin_popcountll(par) == 1 && __builtin_popcountll(other) == 1 && inner >= 0 && (par >> inner & 1) &&
        ln_extent(w, other) <= NISA_PARTITIONS && ln_view_atoms(src) == (other | par))
      return move_through(w, dst, src, src->element, other, is_unsigned);
  }
  return emit_pair(w, NISA_DMA_COPY, NISA_ENGINE_DMA, par, dst, src, false);
}

enum status ln_move(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src, bool is_unsigned) {
  if (ln_same_elements(dst, src))
    return ST_OK;
  if (ln_view_atoms(src) & ~ln_view_atoms(dst))
    return ln_fail(w->ln, "several elements would be written to the same place");
  const bool is_dma = dst->space == MEM_SBUF && src->space == MEM_SBUF && mlirTypeEqual(dst->element, src->element) &&
                      !(starts_well(w, dst) && starts_well(w, src));
  if (ln_same_partitions(dst, src) && !is_dma)
    return engine_copy(w, dst, src, is_unsigned);
  if (src->space == MEM_PSUM)
    return move_through(w, dst, src, dst->element, ln_partition_atoms(src), is_unsigned);
  if (dst->space == MEM_PSUM)
    return move_through(w, dst, src, src->element, ln_partition_atoms(dst), is_unsigned);
  /* DMA does not convert all types: an engine converts before or after it */
  if (mem_is_on_chip(src->space) && !mlirTypeEqual(dst->element, src->element))
    return move_through(w, dst, src, dst->element, ln_partition_atoms(src), is_unsigned);
  if (mem_is_on_chip(dst->space) && !mlirTypeEqual(dst->element, src->element))
    return move_through(w, dst, src, src->element, ln_partition_atoms(dst), is_unsigned);
  return move_by_dma(w, dst, src, is_unsigned);
}

enum status ln_stage(struct ln_walk *w, struct ln_view *src, ln_atoms par, struct ln_view **out) {
  *out = src;
  if (ln_has_partitions(w, src, par))
    return ST_OK;
  struct ln_view *temp = ln_temp(w, src->element, MEM_SBUF, par, ln_view_atoms(src) | par);
  *out = temp;
  return ln_move(w, temp, src, false);
}

/* ---- scalars ---------------------------------------------------------------------------------------------------- */

enum status ln_set(struct ln_walk *w, const struct ln_view *dst, MlirValue scalar) {
  if (!mem_is_on_chip(dst->space)) {
    const struct ln_view *cell = ln_temp(w, dst->element, MEM_SBUF, 0, 0);
    enum status st = ln_set(w, cell, scalar);
    if (!st)
      st = ln_move(w, dst, cell, false);
    ln_release(w->ln, cell);
    return st;
  }
  struct ln_shape s = ln_shape_of(w, ln_partition_atoms(dst), ln_view_atoms(dst));
  struct nisa_access x[2] = {{.n_dims = 0}, ln_scalar(scalar)};
  enum status st = ln_access(w, dst, &s, &x[0]);
  const bool gpsimd = mlirTypeIsAInteger(dst->element) && dst->space == MEM_SBUF;
  if (!st)
    ln_emit(w->ln, NISA_MEMSET, gpsimd ? NISA_ENGINE_GPSIMD : NISA_ENGINE_VECTOR, x, NULL);
  return st;
}

/* True if dst is an accumulator in PSUM that has not been used yet.  It is zero already, so zeros need not be
 * written to it; on the hardware, a matmul could not add to written zeros. */
static bool is_fresh_accumulator(struct ln *ln, const struct ln_view *dst) {
  MlirOperation alloc = ir_defining_op(dst->base);

  if (dst->space != MEM_PSUM || mlirOperationIsNull(alloc) || !ir_is(alloc, "nisa.alloc") ||
      !mlirBlockEqual(mlirOperationGetBlock(alloc), mlirOperationGetBlock(ln->op)))
    return false;
  for (MlirOperation op = alloc; !mlirOperationEqual(op, ln->op); op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationGetNumRegions(op) && !ir_is(op, "linalg.fill"))
      return false;
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
      if (mlirValueEqual(mlirOperationGetOperand(op, k), dst->base))
        return false;
  }
  return true;
}

enum status ln_lower_fill(struct ln *ln) {
  MlirValue value = mlirOperationGetOperand(ln->op, 0), out = mlirOperationGetOperand(ln->op, 1);
  int64_t dims[NISA_RANK_MAX];
  struct ln_walk w;
  struct ln_view *dst;

  const int rank = ir_shape(out, NISA_RANK_MAX, dims);
  enum status st = rank > NISA_RANK_MAX ? ln_fail(ln, "an operand has more than %d dimensions", NISA_RANK_MAX)
                                        : ln_walk_init(&w, ln, rank, dims);
  if (!st)
    st = ln_trace(&w, out, (MlirAffineMap){NULL}, &dst);
  if (st)
    return st;
  if (ir_is_zero(value) && is_fresh_accumulator(ln, dst))
    return ST_OK;
  MlirValue cell = ln_buffer(ln, value);
  if (mlirValueEqual(cell, value))
    return ln_set(&w, dst, value);
  struct ln_view *src;
  st = ln_trace_element(&w, cell, 0, NULL, &src);
  return st ? st : ln_move(&w, dst, src, false);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

enum status ln_lower_copy(struct ln *ln) {
  MlirValue in = mlirOperationGetOperand(ln->op, 0), out = mlirOperationGetOperand(ln->op, 1);
  struct structured s = {.n_loops = 0};
  struct ln_walk w;
  struct ln_view *dst = NULL, *src = NULL;

  if (!structured_read(ln->op, &s)) { /* memref.copy: its maps are null, which is the identity */
    s.n_loops = ir_shape(out, STRUCTURED_LOOPS_MAX, s.extents);
    if (s.n_loops > STRUCTURED_LOOPS_MAX)
      return ln_fail(ln, "it has more than %d dimensions", STRUCTURED_LOOPS_MAX);
  }
  enum status st = ln_walk_init(&w, ln, s.n_loops, s.extents);
  if (!st)
    st = ln_trace(&w, out, s.maps[1], &dst);
  if (!st)
    st = ln_trace(&w, in, s.maps[0], &src);
  return st ? st : ln_move(&w, dst, src, false);
}

/* ---- matmul ----------------------------------------------------------------------------------------------------- */

static enum status emit_matmul(struct ln_walk *w, const struct ln_view *c, const struct ln_view *a,
                               const struct ln_view *b) {
  ln_atoms m = ln_loop_atoms(w, 0), n = ln_loop_atoms(w, 1), k = ln_loop_atoms(w, 2);
  struct ln_shape cs = ln_shape_of(w, m, m | n), as = ln_shape_of(w, k, k | m), bs = ln_shape_of(w, k, k | n);
  struct nisa_access x[5];
  const struct ln_attr attrs[] = {{"is_transpose", ln_bool(w->ln, false)},
                                  {"perf_opt", ln_text(w->ln, "none_")},
                                  {"psum_zero_region", ln_text(w->ln, "size2048")},
                                  {NULL, {NULL}}};

  enum status st = ln_access(w, c, &cs, &x[0]);
  if (!st)
    st = ln_access(w, a, &as, &x[1]);
  if (!st)
    st = ln_access(w, b, &bs, &x[2]);
  if (st)
    return st;
  x[3] = x[4] = ln_scalar(ir_index(&w->ln->b, 0));
  ln_emit(w->ln, NISA_MATMUL, NISA_ENGINE_TENSOR, x, attrs);
  return ST_OK;
}

/* Handles a result that is not an accumulator in PSUM: multiplies into an accumulator, then adds that to the result. */
static enum status matmul_then_add(struct ln_walk *w, struct ln_view *c, const struct ln_view *a,
                                   const struct ln_view *b) {
  ln_atoms m = ln_loop_atoms(w, 0), n = ln_loop_atoms(w, 1);
  struct ln_view *acc = ln_temp(w, mlirF32TypeGet(w->ln->b.ctx), MEM_PSUM, m, m | n);
  struct ln_view *old;

  enum status st = emit_matmul(w, acc, a, b);
  if (!st)
    st = ln_stage(w, c, m, &old);
  if (st)
    return st;
  st = ln_arith(w, m, "add", old, ln_data(old), ln_data(acc), false);
  if (!st)
    st = ln_move(w, c, old, false);
  if (old != c)
    ln_release(w->ln, old);
  ln_release(w->ln, acc);
  return st;
}

/* Multiplies integers: for every k, adds the product of row k of b, copied to all partitions, and column k of a.
 * gpsimd computes it without rounding. */
static enum status multiply_integers(struct ln_walk *w, struct ln_view *c, struct ln_view *a, const struct ln_view *b) {
  struct ln *ln = w->ln;
  struct remark *r = pass_remark(ln->run, ln->op, RULE_INTEGER_PRODUCT, "integers are multiplied by gpsimd");
  remark_reject(r, "the tensor engine", "it multiplies floats only");
  const ln_atoms m = ln_loop_atoms(w, 0), n = ln_loop_atoms(w, 1), k = ln_loop_atoms(w, 2);
  struct ln_view *rows, *sum, *term = ln_temp(w, c->element, MEM_SBUF, m, m | n);
  struct ln_view *row = ln_temp(w, b->element, MEM_SBUF, m, m | n);

  enum status st = ln_stage(w, a, m, &rows);
  if (!st)
    st = ln_stage(w, c, m, &sum);
  if (st)
    return st;
  struct ir_builder outside = ln->b;
  struct ln_view column = *rows, from = *b;
  for (int at = 0; at < w->n_atoms; at++) {
    if (!(k >> w->order[at] & 1))
      continue;
    MlirValue iv = ln_open_loop(ln, w->atom[w->order[at]].extent);
    ln_fix_atom(ln, &column, w->order[at], iv);
    ln_fix_atom(ln, &from, w->order[at], iv);
  }
  st = ln_move(w, row, &from, false);
  if (!st)
    st = ln_arith(w, m, "multiply", term, ln_data(row), ln_data(&column), false);
  if (!st)
    st = ln_arith(w, m, "add", sum, ln_data(sum), ln_data(term), false);
  ln->b = outside;
  if (!st)
    st = ln_move(w, c, sum, false);
  if (sum != c)
    ln_release(ln, sum);
  if (rows != a)
    ln_release(ln, rows);
  ln_release(ln, row);
  ln_release(ln, term);
  return st;
}

enum status ln_lower_matmul(struct ln *ln) {
  struct structured s;
  struct ln_walk w;
  struct ln_view *a, *b, *c;
  struct ln_view *stationary, *moving;

  if (!structured_read(ln->op, &s) || s.n_loops != 3 || s.n_inputs != 2)
    return ln_fail(ln, "it is not a plain matrix product");
  enum status st = ln_walk_init(&w, ln, 3, s.extents);
  if (!st)
    st = ln_trace(&w, mlirOperationGetOperand(ln->op, 2), s.maps[2], &c);
  if (!st)
    st = ln_trace(&w, mlirOperationGetOperand(ln->op, 0), s.maps[0], &a);
  if (!st)
    st = ln_trace(&w, mlirOperationGetOperand(ln->op, 1), s.maps[1], &b);
  if (st)
    return st;
  if (mlirTypeIsAInteger(c->element) && mlirTypeEqual(a->element, c->element) && mlirTypeEqual(b->element, c->element))
    return multiply_integers(&w, c, a, b);
  if (!mlirTypeIsAFloat(a->element) || !mlirTypeIsAFloat(b->element))
    return ln_fail(ln, "the tensor engine multiplies floats only, and others multiply integers of one type");
  ln_atoms k = ln_loop_atoms(&w, 2);
  st = ln_stage(&w, a, k, &stationary);
  if (!st && stationary->space == MEM_PSUM)
    return ln_fail(ln, "its first operand is in PSUM");
  if (!st)
    st = ln_stage(&w, b, k, &moving);
  if (!st && moving->space == MEM_PSUM)
    return ln_fail(ln, "its second operand is in PSUM");
  if (!st)
    st = c->space == MEM_PSUM && ln_has_partitions(&w, c, ln_loop_atoms(&w, 0))
             ? emit_matmul(&w, c, stationary, moving)
             : matmul_then_add(&w, c, stationary, moving);
  if (!st && moving != b)
    ln_release(ln, moving);
  if (!st && stationary != a)
    ln_release(ln, stationary);
  return st;
}
