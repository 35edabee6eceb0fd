/* generic: lowers element-wise operations and reductions.
 *
 * Named operations have a body, too, so linalg.add is a generic like any other.  Operands in HBM, and operands with
 * other loops on the partitions than the result, are copied to SBUF first; a result in HBM is computed in SBUF and
 * stored.
 *
 * A reduction reduces the values of its body into a temporary buffer and combines that with the destination.  So the
 * destination may contain the result of earlier tiles.  (nkigen overwrites it when it reduces partitions.)
 *
 *     free dimensions    tensor_reduce_arith; the reduced loops are the innermost ones, whatever their order in memory is
 *     partitions         cross_lane_reduce_arith, after the free dimensions; a minimum is minus the maximum of minus;
 *                        for operators that no engine has across partitions (products, bits) the upper half of the
 *                        partitions is moved to the lower half and combined with it, until one partition is left
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/scan.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

static MlirValue operand(const struct ln *ln, int k) {
  return mlirOperationGetOperand(ln->op, k);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

enum status ln_begin(struct ln_generic *g, struct ln *ln, const struct structured *s) {
  memset(g, 0, sizeof *g);
  g->ln = ln;
  g->s = s;
  for (int k = 0; k < s->n_loops; k++)
    if (s->extents[k] < 0)
      return ln_fail(ln, "its shape is not known");
  enum status st = ln_walk_init(&g->w, ln, s->n_loops, s->extents);
  if (st)
    return st;
  g->body = (struct ln_body){.w = &g->w, .block = ir_body(ln->op)};
  g->yield = mlirBlockGetTerminator(g->body.block);
  for (int k = 0; k < s->n_inputs + s->n_inits; k++) {
    MlirValue arg = mlirBlockGetArgument(g->body.block, k);
    if (!ir_is_used(arg) && k < s->n_inputs)
      continue;
    if (!mlirTypeIsAMemRef(mlirValueGetType(operand(ln, k)))) { /* a scalar input */
      ln_define(&g->body, (struct ln_value){.v = arg, .kind = LN_ONE, .one = operand(ln, k)});
      continue;
    }
    st = ln_trace(&g->w, operand(ln, k), s->maps[k], &g->view[k]);
    if (st)
      return st;
    ln_define(&g->body, (struct ln_value){.v = arg, .kind = LN_MANY, .at = g->view[k]});
  }
  ln_mark_functions(&g->body);
  return ST_OK;
}

/* Collects the inputs that are views. */
static int inputs_of(const struct ln_generic *g, struct ln_view **out) {
  int n = 0;
  for (int k = 0; k < g->s->n_inputs; k++)
    if (g->view[k])
      out[n++] = g->view[k];
  return n;
}

/* True if dst has an element for each of these positions, where GpSimd writes them: nothing has to be repeated, or converted. */
static bool is_written_there(const struct ln_generic *g, const struct ln_view *dst, const struct ln_value *x) {
  MlirType t = ln_storage(mlirValueGetType(x->v));
  return x->kind == LN_POSITION && dst->space == MEM_SBUF && !mlirTypeIsNull(t) && mlirTypeEqual(t, dst->element) &&
         ln_has_partitions(&g->w, dst, g->body.par) &&
         (ln_form_atoms(&x->position) | g->body.par) == ln_view_atoms(dst);
}

/* Stores the value v of the body: dst = v. */
static enum status store(struct ln_generic *g, const struct ln_view *dst, MlirValue v) {
  struct ln_value *x = ln_value_of(&g->body, v);
  struct ln_view *data;

  if (x->kind == LN_ONE)
    return ln_set(&g->w, dst, x->one);
  if (x->kind == LN_MANY)
    return ln_move(&g->w, dst, x->at, false);
  if (is_written_there(g, dst, x))
    return ln_iota(&g->w, g->body.par, dst, &x->position);
  enum status st = ln_materialize(&g->body, x, &data);
  return st ? st : ln_move(&g->w, dst, data, false);
}

/* ---- element-wise ----------------------------------------------------------------------------------------------- */

static enum status lower_elementwise(struct ln *ln, const struct structured *s) {
  struct ln_generic g;
  struct ln_view *inputs[STRUCTURED_OPERANDS_MAX];

  enum status st = ln_begin(&g, ln, s);
  if (st)
    return st;
  struct ln_view *dst = g.view[s->n_inputs];
  if (!dst)
    return ln_fail(ln, "its result is not a memref");
  st = ln_choose_partitions(&g.w, dst, inputs_of(&g, inputs), inputs, &g.body.par);
  if (st)
    return st;
  MlirValue result = mlirOperationGetOperand(g.yield, 0);
  if (s->n_inits == 1 && ln_has_partitions(&g.w, dst, g.body.par) && mlirValueIsAOpResult(result)) {
    g.body.sink = result;
    g.body.dst = dst;
  }
  st = ln_compile_body(&g.body, g.yield);
  for (int k = 0; !st && k < s->n_inits; k++)
    st = store(&g, g.view[s->n_inputs + k], mlirOperationGetOperand(g.yield, k));
  ln_body_finish(&g.body);
  return st;
}

/* ---- reductions ------------------------------------------------------------------------------------------------- */

struct reduction {
  struct ln_generic g;
  const char *op;
  bool is_unsigned;
  MlirOperation combine; /* accumulator `op` element */
  MlirValue element;
  ln_atoms reduced;
};

static enum status read_reduction(struct reduction *r) {
  struct ln *ln = r->g.ln;
  const struct structured *s = r->g.s;

  if (s->n_inits != 1)
    return ln_fail(ln, "it has several results");
  MlirValue acc = mlirBlockGetArgument(r->g.body.block, s->n_inputs);
  r->combine = ir_defining_op(mlirOperationGetOperand(r->g.yield, 0));
  if (mlirOperationIsNull(r->combine) || mlirOperationGetNumOperands(r->combine) != 2)
    return ln_fail(ln, "its body does not end in one operation that combines");
  r->op = ln_operator(r->combine, &r->is_unsigned);
  MlirValue x = mlirOperationGetOperand(r->combine, 0), y = mlirOperationGetOperand(r->combine, 1);
  r->element = mlirValueEqual(x, acc) ? y : x;
  if (!r->op || mlirValueEqual(x, y) || (!mlirValueEqual(x, acc) && !mlirValueEqual(y, acc)))
    return ln_fail(ln, "its body does not end in one operation that combines");
  if (!strcmp(r->op, "logical_and"))
    r->op = "min";
  if (!strcmp(r->op, "logical_or"))
    r->op = "max";
  static const char *const known[] = {"add", "multiply", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor"};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strcmp(r->op, known[k]))
      return ST_OK;
  return ln_fail(ln, "no engine reduces with %s", r->op);
}

static enum nisa_engine reduce_engine(const char *op, MlirType from, MlirType to) {
  const bool wide = mlirTypeIsAInteger(from) && mlirIntegerTypeGetWidth(from) > 16;
  const bool wraps = mlirTypeIsAInteger(to) && (!strcmp(op, "add") || !strcmp(op, "multiply"));
  return (wide || wraps) && strncmp(op, "bitwise", 7) ? NISA_ENGINE_GPSIMD : NISA_ENGINE_VECTOR;
}

/* Reduces over the free dimensions, into a new buffer.  *out is src if no free dimension is reduced. */
static enum status reduce_free(struct reduction *r, struct ln_view *src, ln_atoms par, MlirType type,
                               struct ln_view **out) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  ln_atoms kept = ln_all_atoms(w) & ~(r->reduced & ~par), reduced = r->reduced & ~par;
  enum nisa_engine engine = reduce_engine(r->op, src->element, type);

  *out = src;
  if (!reduced)
    return ST_OK;
  struct ln_view *from = src;
  if (engine == NISA_ENGINE_GPSIMD && src->space == MEM_PSUM) {
    from = ln_temp(w, src->element, MEM_SBUF, par, ln_view_atoms(src));
    enum status st = ln_move(w, from, src, false);
    if (st)
      return st;
  }
  *out = ln_temp(w, type, MEM_SBUF, par, kept);
  struct ln_shape to = ln_shape_of(w, par, kept), all = to, inner = ln_shape_of(w, 0, reduced);
  assert(all.n + inner.n <= LN_ATOMS_MAX);
  for (int k = 0; k < inner.n; k++)
    all.atom[all.n++] = inner.atom[k];
  struct nisa_access x[2];
  struct ln_attr attrs[5] = {{"op", ln_text(ln, r->op)},
                             {"negated", ln_bool(ln, false)},
                             {"num_r_dim", ln_int(ln, inner.n)},
                             {r->is_unsigned ? "unsigned" : NULL, mlirUnitAttrGet(ln->b.ctx)}};
  enum status st = ln_access(w, *out, &to, &x[0]);
  if (!st)
    st = ln_access(w, from, &all, &x[1]);
  if (!st)
    ln_emit(ln, NISA_TENSOR_REDUCE_ARITH, engine, x, attrs);
  if (from != src)
    ln_release(ln, from);
  return st;
}

static enum status cross_lanes(struct reduction *r, const char *op, const struct ln_view *dst,
                               const struct ln_view *src, ln_atoms par, ln_atoms kept) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  struct ln_shape to = ln_shape_of(w, 0, kept), from = ln_shape_of(w, par, par | kept);
  struct nisa_access x[2];
  struct ln_attr attrs[4] = {{"reduce_op", ln_text(ln, op)},
                             {"num_r_dim", ln_int(ln, 0)},
                             {r->is_unsigned ? "unsigned" : NULL, mlirUnitAttrGet(ln->b.ctx)}};
  enum status st = ln_access(w, dst, &to, &x[0]);
  if (!st)
    st = ln_access(w, src, &from, &x[1]);
  if (!st)
    ln_emit(ln, NISA_CROSS_LANE_REDUCE_ARITH, NISA_ENGINE_GPSIMD, x, attrs);
  return st;
}

static enum status negate(struct reduction *r, const struct ln_view *dst, const struct ln_view *src, ln_atoms par) {
  struct ir_builder *b = &r->g.ln->b;
  MlirValue by = mlirTypeIsAInteger(src->element) ? ir_int(b, src->element, -1) : ir_float(b, src->element, -1);
  return ln_arith(&r->g.w, par, "multiply", dst, ln_data(src), ln_number(by), false);
}

/* Accesses partitions [first, first + n) of a buffer, over the atoms in `kept`. */
static enum status lanes(struct ln_walk *w, const struct ln_view *v, ln_atoms kept, int64_t first, int64_t n,
                         struct nisa_access *out) {
  struct ln_shape s = ln_shape_of(w, 0, kept);
  MlirAffineExpr results[NISA_RANK_MAX];
  MlirContext ctx = w->ln->b.ctx;

  enum status st = ln_access(w, v, &s, out);
  if (st)
    return st;
  for (int r = 0; r < v->rank; r++)
    results[r] = mlirAffineMapGetResult(out->map, r);
  results[0] = mlirAffineAddExprGet(mlirAffineDimExprGet(ctx, 0), mlirAffineConstantExprGet(ctx, first));
  out->tile[0] = n;
  out->map = mlirAffineMapGet(ctx, out->n_dims, out->n_indices, v->rank, results);
  return ST_OK;
}

/* Moves the upper half of n partitions to the lower half and combines the two. */
static enum status fold_once(struct reduction *r, const struct ln_view *all, const struct ln_view *half, ln_atoms kept,
                             int64_t n) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  const int64_t first = (n + 1) / 2, rest = n - first;
  struct nisa_access upper, lower, moved;
  const struct ln_attr attrs[] = {
      {"op", ln_text(ln, r->op)}, {r->is_unsigned ? "unsigned" : NULL, mlirUnitAttrGet(ln->b.ctx)}, {NULL, {NULL}}};

  enum status st = lanes(w, all, kept, first, rest, &upper);
  if (!st)
    st = lanes(w, all, kept, 0, rest, &lower);
  if (!st)
    st = lanes(w, half, kept, 0, rest, &moved);
  if (st)
    return st;
  ln_emit(ln, NISA_DMA_COPY, NISA_ENGINE_DMA, (struct nisa_access[]){moved, upper}, NULL);
  ln_emit(ln, NISA_TENSOR_TENSOR_ARITH, reduce_engine(r->op, all->element, all->element),
          (struct nisa_access[]){lower, lower, moved}, attrs);
  return ST_OK;
}

/* Reduces over the partitions by halving them, for an operator that no engine has across partitions. */
static enum status fold_partitions(struct reduction *r, struct ln_view *src, ln_atoms par, struct ln_view **out) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  const ln_atoms kept = ln_all_atoms(w) & ~r->reduced;
  struct ln_view *all = ln_temp(w, src->element, MEM_SBUF, par, par | kept);
  struct ln_view *half = ln_temp(w, src->element, MEM_SBUF, par, par | kept);
  struct nisa_access x[2];

  *out = ln_temp(w, src->element, MEM_SBUF, 0, kept);
  enum status st = ln_move(w, all, src, r->is_unsigned);
  for (int64_t n = ln_extent(w, par); !st && n > 1; n = (n + 1) / 2)
    st = fold_once(r, all, half, kept, n);
  if (!st)
    st = lanes(w, *out, kept, 0, 1, &x[0]);
  if (!st)
    st = lanes(w, all, kept, 0, 1, &x[1]);
  if (!st)
    ln_emit(ln, NISA_TENSOR_COPY, NISA_ENGINE_VECTOR, x, NULL);
  ln_release(ln, half);
  ln_release(ln, all);
  return st;
}

/* Reduces over the partitions, into a new buffer with one partition.  *out is src if the reduction is not over them. */
static enum status reduce_partitions(struct reduction *r, struct ln_view *src, ln_atoms par, struct ln_view **out) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  ln_atoms kept = ln_all_atoms(w) & ~r->reduced;
  const bool minimum = !strcmp(r->op, "min");

  *out = src;
  if (!(par & r->reduced))
    return ST_OK;
  if (par & ~r->reduced)
    return ln_fail(ln, "it reduces some of the partitions");
  const bool narrow = mlirTypeIsAInteger(src->element) && mlirIntegerTypeGetWidth(src->element) < 32;
  if ((strcmp(r->op, "add") && strcmp(r->op, "max") && !minimum) || (minimum && (r->is_unsigned || narrow)))
    return fold_partitions(r, src, par, out);
  *out = ln_temp(w, src->element, MEM_SBUF, 0, kept);
  struct ln_view *work = minimum ? ln_temp(w, src->element, MEM_SBUF, par, par | kept) : src;
  enum status st = minimum ? negate(r, work, src, par) : ST_OK;
  if (!st && work->space == MEM_PSUM)
    st = ln_fail(ln, "partitions of PSUM cannot be reduced");
  if (!st)
    st = cross_lanes(r, minimum ? "max" : r->op, *out, work, par, kept);
  if (!st && minimum)
    st = negate(r, *out, *out, 0);
  if (minimum)
    ln_release(ln, work);
  return st;
}

/* dst = dst `op` part */
static enum status combine(struct reduction *r, struct ln_view *dst, struct ln_view *part) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  ln_atoms par = mem_is_on_chip(dst->space) ? ln_partition_atoms(dst) : ln_partition_atoms(part);
  struct ln_view *old = NULL, *fresh = NULL;

  enum status st = ln_stage(w, dst, par, &old);
  if (!st)
    st = ln_stage(w, part, par, &fresh);
  if (!st)
    st = ln_arith(w, par, r->op, old, ln_data(old), ln_data(fresh), r->is_unsigned);
  if (!st)
    st = ln_move(w, dst, old, false);
  if (!st && fresh != part)
    ln_release(ln, fresh);
  if (!st && old != dst)
    ln_release(ln, old);
  return st;
}

static enum status lower_reduction(struct ln *ln, const struct structured *s) {
  struct reduction r;
  struct ln_view *inputs[STRUCTURED_OPERANDS_MAX], *element, *rows, *part;

  memset(&r, 0, sizeof r);
  enum status st = ln_begin(&r.g, ln, s);
  if (!st)
    st = read_reduction(&r);
  if (st)
    return st;
  struct ln_walk *w = &r.g.w;
  struct ln_view *dst = r.g.view[s->n_inputs];
  for (int k = 0; k < s->n_loops; k++)
    if (s->reduction[k])
      r.reduced |= ln_loop_atoms(w, k);
  int n = inputs_of(&r.g, inputs);
  ln_atoms par = ln_partition_atoms(dst);
  if (!par)
    st = ln_choose_partitions(w, &(struct ln_view){.space = MEM_HBM}, n, inputs, &par);
  if (st)
    return st;
  r.g.body.par = par;
  st = ln_compile_body(&r.g.body, r.combine);
  if (!st)
    st = ln_materialize(&r.g.body, ln_value_of(&r.g.body, r.element), &element);
  if (!st)
    st = reduce_free(&r, element, par, dst->element, &rows);
  if (!st)
    st = reduce_partitions(&r, rows, par, &part);
  if (!st)
    st = combine(&r, dst, part);
  if (!st && part != rows)
    ln_release(ln, part);
  if (!st && rows != element)
    ln_release(ln, rows);
  ln_body_finish(&r.g.body);
  return st;
}

enum status ln_lower_structured(struct ln *ln, const struct structured *s) {
  struct scan scan;
  if (scan_read(ln->op, &scan))
    return ln_lower_scan(ln, &scan);
  return s->kind == SK_REDUCTION ? lower_reduction(ln, s) : lower_elementwise(ln, s);
}
