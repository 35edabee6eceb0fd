/* space: in which memory values live.  See infer_layout.c.
 *
 * Values that share one buffer must agree: what a function returns, a loop's initial, carried and final value, the
 * target of an insert_slice and its result, a view and what it looks at.  alias() goes from the end of such a chain to
 * the operations that fill the buffer.  Returned buffers are shared HBM, those that loops carry HBM.
 *
 * A tiled value outside of such chains is in SBUF if it leaves room there and all its readers take it in the tiles it is
 * made of.  Readers that do not: views, broadcasts and transposes of more than two dimensions (they change partitions,
 * which only DMA can do), bodies that pick elements, operations with other tiles.  The user's choice wins, except for
 * returned and carried values and tables of a gather: those keep their tiles, but not SBUF or PSUM, and a warning says
 * so.
 */
#include "passes/infer_layout/infer_layout.h"

#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "nisa/nisa.h"

struct spaces {
  struct infer *f;
  struct table done; /* values that have their space, and are not computed by a tiled operation */
};

/* ---- annotating what is no tiled operation ---------------------------------------------------------------------- */

static bool is_done(const struct spaces *s, MlirValue v) {
  return table_get(&s->done, v.ptr) != NULL;
}

static void set_done(struct spaces *s, MlirValue v) {
  table_put(&s->done, v.ptr, s);
}

/* A layout says another memory than the value gets.  Which part of HBM is nothing to warn about. */
static void warn_ignored(struct infer *f, const struct layout *l, int space, const char *why) {
  if (l->space == space || l->space == MEM_NONE || l->space == MEM_HBM || l->space == MEM_SHARED_HBM)
    return;
  infer_warn_knob(f, l->layout_op, "%s lives in %s, not in %s; its tiles are computed as asked", why,
                  layout_space_name(space), layout_space_name(l->space));
}

/* The tile of the operation whose result is inserted into v, or one row of partitions and a long run. */
static void default_tile(struct infer *f, MlirValue v, struct layout *l, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(v);
  const struct tiled *t = NULL;

  for (int i = 0; i < 8 && !mlirOperationIsNull(def) && ir_is(def, "scf.for"); i++) {
    MlirOperation yield = mlirBlockGetTerminator(ir_body(def));
    def = ir_defining_op(mlirOperationGetOperand(yield, mlirOpResultGetResultNumber(v)));
    v = mlirOperationIsNull(def) ? v : mlirOperationGetResult(def, 0);
  }
  if (!mlirOperationIsNull(def))
    t = ir_is(def, "tensor.insert_slice") ? infer_find(f, mlirOperationGetOperand(def, 0)) : infer_find(f, v);
  l->n_tile = rank;
  for (int d = 0; d < rank; d++) {
    const int own = t ? d - (rank - t->rank) : -1, loop = own < 0 ? -1 : infer_result_loop(t, own);
    const int64_t most = d == 0 ? NISA_PARTITIONS : d == rank - 1 ? FREE_TILE_MAX : 1;
    l->tile[d] = dims[d] < most ? dims[d] : most;
    if (t && rank >= t->rank)
      l->tile[d] = loop >= 0 ? infer_tile(f, t, loop) : 1;
    l->tile[d] = dims[d] < l->tile[d] ? dims[d] : l->tile[d];
    l->tile[d] = l->tile[d] < 1 ? 1 : l->tile[d];
  }
}

/* Gives v a complete layout in `space`, unless the user chose one that can hold; no tile_op: nothing is tiled here. */
static void annotate(struct infer *f, MlirValue v, int space, const char *why) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  struct layout l = layout_read(v);
  MlirOperation def = ir_defining_op(v);

  if (rank < 1 || rank > STRUCTURED_LOOPS_MAX)
    return;
  if (why)
    warn_ignored(f, &l, space, why);
  if (l.space == MEM_NONE || why)
    l.space = space;
  if (!l.n_tile)
    default_tile(f, v, &l, rank, dims);
  if (l.partition_dim < 0)
    l.partition_dim = 0;
  layout_write(v, &l, mlirOperationGetLocation(mlirOperationIsNull(def) ? f->run->module : def));
}

/* ---- buffers that are shared ------------------------------------------------------------------------------------ */

static bool is_view(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape") || ir_is(op, "tensor.cast") ||
         ir_is(op, "tensor.extract_slice") || ir_is(op, "tensor.reshape");
}

static void alias(struct spaces *s, MlirValue v, int space, const char *why, bool is_said, int depth);

static void alias_tiled(struct infer *f, struct tiled *t, int space, const char *why) {
  if (t->at.space == MEM_SHARED_HBM && space == MEM_HBM)
    return; /* a kind of HBM */
  if (t->is_user_space)
    warn_ignored(f, &t->at, space, why);
  else if (t->at.space == MEM_SHARED_HBM)
    return; /* returned, too */
  t->at.space = space;
  t->is_user_space = false;
}

static void alias_yields(struct spaces *s, MlirOperation op, intptr_t result, int space, const char *why, int depth) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
    MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    if (!mlirBlockIsNull(b))
      alias(s, mlirOperationGetOperand(mlirBlockGetTerminator(b), result), space, why, true, depth);
  }
}

enum { ALIAS_DEPTH_MAX = 4000 };

/* Everything that may be in the same buffer as v gets `space`.  One layout per buffer is enough: is_said tells that the
 * buffer has it already. */
static void alias(struct spaces *s, MlirValue v, int space, const char *why, bool is_said, int depth) {
  for (; depth < ALIAS_DEPTH_MAX; depth++) {
    struct tiled *t = infer_find(s->f, v);
    MlirOperation def = ir_defining_op(v);
    if (t) {
      alias_tiled(s->f, t, space, why);
      return;
    }
    if (mlirOperationIsNull(def) || is_done(s, v) || !mlirTypeIsARankedTensor(mlirValueGetType(v)))
      return;
    set_done(s, v);
    const bool is_insert = ir_is(def, "tensor.insert_slice");
    const bool is_loop = ir_is(def, "scf.for"), is_if = ir_is(def, "scf.if");
    const bool has_buffer = ir_is(def, "linalg.fill") || is_insert || is_loop || is_if;
    if ((has_buffer && !is_said) || layout_read(v).layout_op.ptr)
      annotate(s->f, v, space, why);
    is_said = is_said || has_buffer;
    if (is_loop || is_if)
      alias_yields(s, def, mlirOpResultGetResultNumber(v), space, why, depth + 1);
    if (!is_insert && !is_loop && !is_view(def))
      return;
    v = mlirOperationGetOperand(def, is_insert ? 1 : is_loop ? 3 + mlirOpResultGetResultNumber(v) : 0);
  }
}

/* What the user says of a loop's result, or of what it yields, if it is a part of HBM; otherwise HBM. */
static int carried_space(MlirOperation op, intptr_t result) {
  MlirBlock b = ir_body(op);
  const int own = layout_read(mlirOperationGetResult(op, result)).space;
  const int yielded = layout_read(mlirOperationGetOperand(mlirBlockGetTerminator(b), result)).space;
  return own == MEM_SHARED_HBM || yielded == MEM_SHARED_HBM ? MEM_SHARED_HBM : MEM_HBM;
}

static void alias_returned(struct spaces *s) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++)
      alias(s, mlirOperationGetOperand(ops.v[i], k), MEM_SHARED_HBM, "a returned value", false, 0);
}

/* Results of loops and branches. */
static void alias_carried(struct spaces *s, const char *name, const char *why) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, name);

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumResults(ops.v[i]); k++)
      alias(s, mlirOperationGetResult(ops.v[i], k), carried_space(ops.v[i], k), why, false, 0);
}

/* Rows are picked by DMA, out of HBM. */
static void alias_gathered(struct spaces *s) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, "tensor.extract");

  for (int i = 0; i < ops.n; i++)
    alias(s, mlirOperationGetOperand(ops.v[i], 0), MEM_HBM, "a table that elements are picked from", false, 0);
}

/* ---- tiled values ----------------------------------------------------------------------------------------------- */

/* True if reader c takes its operand o, which p computes, in the tiles that p makes. */
static bool reads_its_tiles(const struct infer *f, const struct tiled *p, const struct tiled *c, int o) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(p->value, STRUCTURED_LOOPS_MAX, dims);
  const int p_dim = infer_dim(p, p->s.n_inputs, p->part), c_dim = infer_dim(c, o, c->part);
  const bool is_vector = structured_is_elementwise(&c->s) || c->s.kind == SK_REDUCTION;

  if (c->s.kind == SK_BROADCAST || (c->s.kind == SK_TRANSPOSE && rank > 2))
    return false;
  if (is_vector && c_dim < 0 && (c->part > 0 || (c->part == 0 && c->s.extents[0] > 1)))
    return false; /* copied to all partitions */
  if (is_vector && c->part >= 0 && c_dim != p_dim && rank > 2)
    return false;
  for (int d = 0; d < rank; d++) {
    const int x = infer_result_loop(p, d), y = infer_loop(c, o, d);
    if (dims[d] > 1 && (x < 0 || y < 0 || infer_tile(f, p, x) != infer_tile(f, c, y)))
      return false;
  }
  return true;
}

/* A value whose part in one partition takes more than half of SBUF is kept in HBM: nothing could be computed beside it. */
static bool is_too_large(const struct infer *f, const struct tiled *t) {
  const int64_t sbuf = nisa_machine(f->run->target)->sbuf_bytes;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t bytes = nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(t->value)));
  const int rank = ir_shape(t->value, STRUCTURED_LOOPS_MAX, dims);

  for (int d = 0; d < rank && bytes <= sbuf; d++) {
    const int loop = infer_result_loop(t, d);
    const bool is_part = loop >= 0 && loop == t->part;
    const int64_t tile = is_part ? infer_tile(f, t, loop) : 1;
    bytes *= tile > 0 ? (dims[d] + tile - 1) / tile : dims[d];
  }
  return bytes > sbuf / 2;
}

static int space_of(const struct infer *f, const struct tiled *t) {
  if (is_too_large(f, t))
    return MEM_HBM;
  for (MlirOpOperand u = mlirValueGetFirstUse(t->value); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    const int o = (int)mlirOpOperandGetOperandNumber(u);
    if (layout_is_annotation(user) || ir_is(user, "nkipy.fuse_op"))
      continue;
    if (ir_is(user, "tensor.insert_slice") && o == 0)
      continue; /* copied into the target */
    const struct tiled *c = mlirOperationGetNumResults(user) ? infer_find(f, mlirOperationGetResult(user, 0)) : NULL;
    if (!c || o >= c->s.n_inputs || !reads_its_tiles(f, t, c, o))
      return MEM_HBM;
  }
  return MEM_SBUF;
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

/* Where the buffer is that v, a view, looks at. */
static int space_behind(const struct infer *f, MlirValue v) {
  for (int depth = 0; depth < ALIAS_DEPTH_MAX; depth++) {
    const struct tiled *t = infer_find(f, v);
    MlirOperation def = ir_defining_op(v);
    if (t)
      return t->at.space;
    if (mlirOperationIsNull(def)) {
      MlirOperation owner = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
      return ir_is(owner, "func.func") ? MEM_SHARED_HBM : MEM_HBM;
    }
    if (!is_view(def))
      break;
    v = mlirOperationGetOperand(def, 0);
  }
  const int said = layout_read(v).space;
  return said == MEM_NONE ? MEM_HBM : said;
}

/* A user's layout of a value that no tiled operation computes: completed, a view's with what it looks at. */
static void complete_others(struct spaces *s) {
  struct pass_run *run = s->f->run;
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "nkipy.layout");

  /* A second layout of one value may vanish with the first, so values are noted before anything changes. */
  MlirValue *v = arena_new_array(run->arena, MlirValue, (size_t)ops.n + 1);
  for (int i = 0; i < ops.n; i++)
    v[i] = mlirOperationGetOperand(ops.v[i], 0);
  for (int i = 0; i < ops.n; i++) {
    MlirOperation def = ir_defining_op(v[i]);
    if (infer_find(s->f, v[i]) || is_done(s, v[i]) || mlirOperationIsNull(def))
      continue;
    set_done(s, v[i]);
    annotate(s->f, v[i], is_view(def) ? space_behind(s->f, v[i]) : MEM_HBM, is_view(def) ? "a view" : NULL);
  }
}

/* Views that the user puts somewhere take what they look at along. */
static void alias_views(struct spaces *s) {
  struct pass_run *run = s->f->run;
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "nkipy.layout");

  for (int i = 0; i < ops.n; i++) {
    MlirValue v = mlirOperationGetOperand(ops.v[i], 0);
    MlirOperation def = ir_defining_op(v);
    const int space = layout_read(v).space;
    struct tiled *t = NULL;
    if (space != MEM_HBM && space != MEM_SHARED_HBM)
      continue;
    for (; !mlirOperationIsNull(def) && is_view(def) && !t; def = ir_defining_op(v)) {
      v = mlirOperationGetOperand(def, 0);
      t = infer_find(s->f, v);
    }
    if (t && !t->is_user_space && t->at.space == MEM_NONE)
      t->at.space = space;
  }
}

/* Fills and concatenations that are read, and are in no chain: they need a buffer in some memory. */
static bool needs_space(MlirOperation op, void *user) {
  (void)user;
  if (!ir_is(op, "linalg.fill") && !ir_is(op, "tensor.insert_slice"))
    return false;
  if (!mlirOperationGetNumResults(op))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(op, 0)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u)) {
    MlirOperation reader = mlirOpOperandGetOwner(u);
    const int o = (int)mlirOpOperandGetOperandNumber(u);
    struct structured s;
    if (layout_is_annotation(reader))
      continue;
    if (structured_read(reader, &s) ? o < s.n_inputs : !ir_is(reader, "tensor.insert_slice") || o == 0)
      return true;
  }
  return false;
}

void infer_spaces(struct infer *f) {
  struct spaces s = {.f = f, .done = {.arena = f->run->arena}};

  for (int i = 0; i < f->n; i++)
    f->v[i].is_user_space = f->v[i].at.space != MEM_NONE;
  alias_returned(&s);
  alias_carried(&s, "scf.for", "a value that a loop carries");
  alias_carried(&s, "scf.if", "a value of a branch");
  alias_gathered(&s);
  alias_views(&s);
  for (int i = 0; i < f->n; i++)
    if (f->v[i].at.space == MEM_NONE)
      f->v[i].at.space = space_of(f, &f->v[i]);
  struct ir_ops ops = ir_collect(f->run->arena, f->run->module, needs_space, NULL);
  for (int i = 0; i < ops.n; i++) {
    MlirValue v = mlirOperationGetResult(ops.v[i], 0);
    if (!is_done(&s, v)) {
      set_done(&s, v);
      annotate(f, v, MEM_HBM, NULL);
    }
  }
  complete_others(&s);
}
