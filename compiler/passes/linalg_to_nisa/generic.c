/* generic: structured operations: element-wise, reductions, gathers.
 *
 * Named operations have a body, too, so linalg.add is a generic like any other.  Operands in HBM, or with other loops on
 * the partitions than the result, are brought to SBUF first; a result in HBM is computed in SBUF and stored.
 *
 * A reduction combines what its body computes into a temporary, then that into the destination, which therefore may
 * be filled before, or hold the tiles done so far (nkigen overwrites it when it reduces partitions):
 *
 *     free dimensions    tensor_reduce_arith, the reduced loops innermost, in whatever order they are in memory
 *     partitions         cross_lane_reduce_arith, behind the free dimensions; a minimum is minus the maximum of minus;
 *                        what no engine reduces partitions with (products, bits): halves are moved beside each other
 *                        and combined, as often as there are halves
 *
 * A gather is a memref.load at computed places: dma_copy_indirect with one index per partition.  If the index depends on
 * other loops as well they become scf.for around it.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

static MlirValue operand(const struct ln *ln, int k) {
  return mlirOperationGetOperand(ln->op, k);
}

static bool is_used(MlirValue v) {
  return ir_is_used(v);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

struct generic {
  struct ln *ln;
  const struct structured *s;
  struct ln_walk w;
  struct ln_body body;
  MlirOperation yield;
  struct ln_view *view[STRUCTURED_OPERANDS_MAX]; /* NULL for inputs that nobody reads */
};

static enum status begin(struct generic *g, struct ln *ln, const struct structured *s) {
  memset(g, 0, sizeof *g);
  g->ln = ln;
  g->s = s;
  for (int k = 0; k < s->n_loops; k++)
    if (s->extents[k] < 0)
      return ln_fail(ln, "its shape is not known");
  ln_walk_init(&g->w, ln, s->n_loops, s->extents);
  g->body = (struct ln_body){.w = &g->w, .block = ir_body(ln->op)};
  g->yield = mlirBlockGetTerminator(g->body.block);
  for (int k = 0; k < s->n_inputs + s->n_inits; k++) {
    MlirValue arg = mlirBlockGetArgument(g->body.block, k);
    if (!is_used(arg) && k < s->n_inputs)
      continue;
    if (!mlirTypeIsAMemRef(mlirValueGetType(operand(ln, k)))) { /* a scalar input */
      ln_define(&g->body, (struct ln_value){.v = arg, .kind = LN_ONE, .one = operand(ln, k)});
      continue;
    }
    enum status st = ln_trace(&g->w, operand(ln, k), s->maps[k], &g->view[k]);
    if (st)
      return st;
    ln_define(&g->body, (struct ln_value){.v = arg, .kind = LN_MANY, .at = g->view[k]});
  }
  return ST_OK;
}

/* The inputs that are views. */
static int inputs_of(const struct generic *g, struct ln_view **out) {
  int n = 0;
  for (int k = 0; k < g->s->n_inputs; k++)
    if (g->view[k])
      out[n++] = g->view[k];
  return n;
}

/* dst = x, whatever x is. */
static enum status store(struct generic *g, const struct ln_view *dst, MlirValue v) {
  struct ln_value *x = ln_value_of(&g->body, v);
  struct ln_view *data;

  if (x->kind == LN_ONE)
    return ln_set(&g->w, dst, x->one);
  if (x->kind == LN_MANY)
    return ln_move(&g->w, dst, x->at, false);
  enum status st = ln_materialize(&g->body, x, &data);
  return st ? st : ln_move(&g->w, dst, data, false);
}

/* ---- element-wise ----------------------------------------------------------------------------------------------- */

static enum status lower_elementwise(struct ln *ln, const struct structured *s) {
  struct generic g;
  struct ln_view *inputs[STRUCTURED_OPERANDS_MAX];

  enum status st = begin(&g, ln, s);
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
  struct generic g;
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

static bool is_int(MlirType t) {
  return mlirTypeIsAInteger(t);
}

static enum nisa_engine reduce_engine(const char *op, MlirType from, MlirType to) {
  const bool wide = is_int(from) && mlirIntegerTypeGetWidth(from) > 16;
  const bool wraps = is_int(to) && (!strcmp(op, "add") || !strcmp(op, "multiply"));
  return (wide || wraps) && strncmp(op, "bitwise", 7) ? NISA_ENGINE_GPSIMD : NISA_ENGINE_VECTOR;
}

/* Over the free dimensions: a new buffer without the reduced ones. */
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
    enum status st = from ? ln_move(w, from, src, false) : ln_fail(ln, "it has too many dimensions");
    if (st)
      return st;
  }
  *out = ln_temp(w, type, MEM_SBUF, par, kept);
  if (!*out)
    return ln_fail(ln, "it has too many dimensions");
  struct ln_shape to = ln_shape_of(w, par, kept), all = to, inner = ln_shape_of(w, 0, reduced);
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
  MlirValue by = is_int(src->element) ? ir_int(b, src->element, -1) : ir_float(b, src->element, -1);
  return ln_arith(&r->g.w, par, "multiply", dst, ln_data(src), ln_number(by), false);
}

/* Partitions first … first + n - 1 of a buffer, with everything that `kept` counts. */
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

/* Partitions n/2 and on are moved beside the first ones and combined with them. */
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

/* Over the partitions with an operator that no engine has across them: as many times as they can be halved. */
static enum status fold_partitions(struct reduction *r, struct ln_view *src, ln_atoms par, struct ln_view **out) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  const ln_atoms kept = ln_all_atoms(w) & ~r->reduced;
  struct ln_view *all = ln_temp(w, src->element, MEM_SBUF, par, par | kept);
  struct ln_view *half = ln_temp(w, src->element, MEM_SBUF, par, par | kept);
  struct nisa_access x[2];

  *out = ln_temp(w, src->element, MEM_SBUF, 0, kept);
  if (!all || !half || !*out)
    return ln_fail(ln, "it has too many dimensions");
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

/* Over the partitions: a new buffer with one partition. */
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
  const bool narrow = is_int(src->element) && mlirIntegerTypeGetWidth(src->element) < 32;
  if ((strcmp(r->op, "add") && strcmp(r->op, "max") && !minimum) || (minimum && (r->is_unsigned || narrow)))
    return fold_partitions(r, src, par, out);
  *out = ln_temp(w, src->element, MEM_SBUF, 0, kept);
  struct ln_view *work = minimum ? ln_temp(w, src->element, MEM_SBUF, par, par | kept) : src;
  if (!*out || !work)
    return ln_fail(ln, "it has too many dimensions");
  enum status st = minimum ? negate(r, work, src, par) : ST_OK;
  if (!st && work->space == MEM_PSUM) {
    st = ln_fail(ln, "partitions of PSUM cannot be reduced");
  }
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
  enum status st = begin(&r.g, ln, s);
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
  return s->kind == SK_REDUCTION ? lower_reduction(ln, s) : lower_elementwise(ln, s);
}

/* ---- gathers ---------------------------------------------------------------------------------------------------- */

struct gather {
  struct ln_body *b;
  struct ln_view src, dst, index; /* copies: loops are taken out of them */
  int dim;                        /* of src that the index is added to */
  int64_t limit;
};

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

static enum status emit_indirect(struct gather *g, ln_atoms atoms) {
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

MlirValue ln_open_loop(struct ln *ln, int64_t n) {
  return ir_count_loop(&ln->b, n, &ln->b);
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

/* The index as i32 in SBUF. */
static enum status index_data(struct ln_body *b, MlirValue v, struct ln_view **out) {
  MlirType i32 = mlirIntegerTypeGet(b->w->ln->b.ctx, 32);
  struct ln_value *x = ln_value_of(b, v);
  struct ln_view *data;

  enum status st = ln_materialize(b, x, &data);
  *out = data;
  if (st || (mlirTypeEqual(data->element, i32) && data->space == MEM_SBUF))
    return st;
  *out = ln_temp(b->w, i32, MEM_SBUF, b->par, ln_view_atoms(data));
  if (!*out)
    return ln_fail(b->w->ln, "it has too many dimensions");
  x->at = *out; /* released with the value */
  return ln_move(b->w, *out, data, false);
}

/* Reads the places of the load: formulas into src, and which one is data. */
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

/* dst = src, where src may run backwards along some atoms: access patterns go forwards only, so those become loops. */
static enum status move_either_way(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src) {
  struct ln *ln = w->ln;
  struct ir_builder outside = ln->b;
  struct ln_view to = *dst, from = *src;
  ln_atoms backwards = 0;

  for (int r = 0; r < src->rank; r++)
    for (int k = 0; k < src->index[r].n; k++)
      if (src->index[r].term[k].coef < 0)
        backwards |= (ln_atoms)1 << src->index[r].term[k].atom;
  for (int k = 0; k < w->n_atoms; k++) {
    const int a = w->order[k];
    if (!(backwards >> a & 1))
      continue;
    MlirValue iv = ln_open_loop(ln, w->atom[a].extent);
    ln_fix_atom(ln, &to, a, iv);
    ln_fix_atom(ln, &from, a, iv);
  }
  enum status st = ln_move(w, &to, &from, false);
  ln->b = outside;
  return st;
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
    return ln_fail(ln, "an operand has too many dimensions");
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
    return move_either_way(w, dst, &g.src);
  struct ln_view *to = dst;
  if (dst->space != MEM_SBUF)
    to = ln_temp(w, dst->element, MEM_SBUF, b->par, ln_view_atoms(dst));
  if (!to)
    return ln_fail(ln, "it has too many dimensions");
  g.dst = *to;
  g.index = *index;
  st = gather_rows(&g);
  if (!st && to != dst) {
    st = ln_move(w, dst, to, false);
    ln_release(ln, to);
  }
  return st;
}
