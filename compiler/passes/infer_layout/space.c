/* space: chooses the memory of values.  See infer_layout.c.
 *
 * Values that share one buffer must be in the same memory: the initial, carried and final value of a loop, the target
 * of an insert_slice and its result, a view and its source.  alias() follows such a chain from its end to the
 * operations that fill the buffer.  Returned buffers are in shared HBM, loop-carried buffers in HBM.
 *
 * A tiled value outside such chains is in SBUF if it leaves room there and all its readers read it in the tiles in
 * which it is computed.  The following readers do not: views, broadcasts and transposes of more than two dimensions
 * (they change partitions, which only DMA can do), bodies that pick elements, operations with other tiles.  The user's
 * choice wins, except for returned or loop-carried values and for tables of a gather: these keep their tiles but are in
 * HBM, and a warning says so.
 */
#include "passes/lib/carried.h"
#include "passes/infer_layout/infer_layout.h"

#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/internal.h"
#include "nisa/nisa.h"

struct spaces {
  struct infer *f;
  struct table done; /* values with a space that no tiled operation computes */
};

/* ---- values that no tiled operation computes --------------------------------------------------------------------- */

static bool is_done(const struct spaces *s, MlirValue v) {
  return table_get(&s->done, v.ptr) != NULL;
}

static void set_done(struct spaces *s, MlirValue v) {
  table_put(&s->done, v.ptr, s);
}

/* Warns if a layout names another memory than the value gets.  HBM and shared HBM count as one. */
static void warn_ignored(struct infer *f, const struct layout *l, enum mem_space space, const char *why) {
  if (l->space == (int)space || l->space == MEM_NONE || l->space == MEM_HBM || l->space == MEM_SHARED_HBM)
    return;
  infer_warn_knob(f, l->layout_op, "%s lives in %s, not in %s; its tiles are computed as asked", why,
                  layout_space_name(space), layout_space_name(l->space));
}

/* Sets the tile of v: that of the operation whose result is inserted into v, otherwise all partitions and one row of
 * the last dimension. */
static void default_tile(struct infer *f, MlirValue v, struct layout *l, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(v);
  const struct tiled *t = NULL;
  struct carried from;

  while (!mlirOperationIsNull(def) && carried_read(def, &from)) {
    v = mlirOperationGetOperand(from.yield, mlirOpResultGetResultNumber(v));
    def = ir_defining_op(v);
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

/* Gives v a complete layout in `space`, but no tile_op.  If the user's choice of a space does not count, why is the
 * reason for the warning; otherwise NULL. */
static void annotate(struct infer *f, MlirValue v, enum mem_space space, const char *why) {
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
  pass_step(f->run, mlirOperationIsNull(def) ? f->run->module : def, "choose-memory");
  layout_write(v, &l, mlirOperationGetLocation(mlirOperationIsNull(def) ? f->run->module : def));
}

/* ---- buffers that are shared ------------------------------------------------------------------------------------ */

static bool is_view(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape") || ir_is(op, "tensor.cast") ||
         ir_is(op, "tensor.extract_slice") || ir_is(op, "tensor.reshape");
}

static void alias_tiled(struct infer *f, struct tiled *t, enum mem_space space, const char *why) {
  if (t->at.space == MEM_SHARED_HBM && space == MEM_HBM)
    return; /* shared HBM is a kind of HBM */
  if (t->is_user_space)
    warn_ignored(f, &t->at, space, why);
  else if (t->at.space == MEM_SHARED_HBM)
    return; /* the value is also returned */
  t->at.space = space;
  t->is_user_space = false;
  t->is_space_fixed = true;
  t->why_space = why;
}

/* Values that must still get the space of their buffer.  is_said: another value of the buffer has a layout that names
 * the space; one layout per buffer is enough. */
struct aliased {
  MlirValue v;
  bool is_said;
};
struct pending {
  struct aliased *v;
  int n, cap;
};

static void add_pending(struct spaces *s, struct pending *p, MlirValue v, bool is_said) {
  array_push(s->f->run->arena, p, (struct aliased){v, is_said});
}

/* Adds the values that the regions of op, a loop or a branch, yield for this result. */
static void add_yields(struct spaces *s, struct pending *p, MlirOperation op, intptr_t result) {
  for (intptr_t r = mlirOperationGetNumRegions(op) - 1; r >= 0; r--) { /* a stack: the first region comes out first */
    MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    if (!mlirBlockIsNull(b) && ir_is(mlirBlockGetTerminator(b), "scf.yield"))
      add_pending(s, p, mlirOperationGetOperand(mlirBlockGetTerminator(b), result), true);
  }
}

/* Sets the space of one value of the buffer.  Adds the values that it is made from. */
static void alias_one(struct spaces *s, struct pending *p, MlirValue v, bool is_said, enum mem_space space,
                      const char *why) {
  struct tiled *t = infer_find(s->f, v);
  MlirOperation def = ir_defining_op(v);

  if (t) {
    alias_tiled(s->f, t, space, why);
    return;
  }
  if (mlirOperationIsNull(def) || is_done(s, v) || !mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return;
  set_done(s, v);
  struct carried loop;
  const bool is_insert = ir_is(def, "tensor.insert_slice"), is_loop = carried_read(def, &loop),
             is_if = ir_is(def, "scf.if");
  const bool has_buffer = ir_is(def, "linalg.fill") || is_insert || is_loop || is_if;
  if ((has_buffer && !is_said) || layout_read(v).layout_op.ptr)
    annotate(s->f, v, space, why);
  if (is_insert || is_loop || is_view(def)) {
    const intptr_t source = is_insert ? 1 : is_loop ? loop.first_init + mlirOpResultGetResultNumber(v) : 0;
    add_pending(s, p, mlirOperationGetOperand(def, source), is_said || has_buffer);
  }
  if (is_loop || is_if)
    add_yields(s, p, def, mlirOpResultGetResultNumber(v));
}

/* Gives `space` to all values that may be in the same buffer as v. */
static void alias(struct spaces *s, MlirValue v, enum mem_space space, const char *why) {
  struct pending p = {0};

  add_pending(s, &p, v, false);
  while (p.n > 0) {
    const struct aliased one = p.v[--p.n];
    alias_one(s, &p, one.v, one.is_said, space, why);
  }
}

/* Returns shared HBM if the user's layout of a loop's result, or of the value it yields, names it.  Otherwise returns
 * HBM. */
static enum mem_space carried_space(MlirOperation op, intptr_t result) {
  struct carried loop;
  MlirOperation yield = carried_read(op, &loop) ? loop.yield : mlirBlockGetTerminator(ir_body(op));
  const int own = layout_read(mlirOperationGetResult(op, result)).space;
  const int yielded = layout_read(mlirOperationGetOperand(yield, result)).space;
  return own == MEM_SHARED_HBM || yielded == MEM_SHARED_HBM ? MEM_SHARED_HBM : MEM_HBM;
}

static void alias_returned(struct spaces *s) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++)
      alias(s, mlirOperationGetOperand(ops.v[i], k), MEM_SHARED_HBM, "a returned value");
}

/* Sets the space of the results of loops and branches. */
static void alias_carried(struct spaces *s, const char *name, const char *why) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, name);

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumResults(ops.v[i]); k++)
      alias(s, mlirOperationGetResult(ops.v[i], k), carried_space(ops.v[i], k), why);
}

/* Puts tables of gathers into HBM, because DMA picks their rows from there. */
static void alias_gathered(struct spaces *s) {
  struct ir_ops ops = ir_collect_named(s->f->run->arena, s->f->run->module, "tensor.extract");

  for (int i = 0; i < ops.n; i++)
    alias(s, mlirOperationGetOperand(ops.v[i], 0), MEM_HBM, "a table that elements are picked from");
}

/* ---- tiled values ----------------------------------------------------------------------------------------------- */

/* True if c reads its operand o, which p computes, in the tiles of p. */
static bool reads_its_tiles(const struct infer *f, const struct tiled *p, const struct tiled *c, int o) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(p->value, STRUCTURED_LOOPS_MAX, dims);
  const int p_dim = infer_dim(p, p->s.n_inputs, p->part), c_dim = infer_dim(c, o, c->part);
  const bool is_vector = structured_is_elementwise(&c->s) || c->s.kind == SK_REDUCTION;

  if (c->s.kind == SK_BROADCAST || (c->s.kind == SK_TRANSPOSE && rank > 2))
    return false;
  if (is_vector && c->part >= 0 && c_dim >= 0 && c_dim != p_dim && rank > 2)
    return false;
  for (int d = 0; d < rank; d++) {
    const int x = infer_result_loop(p, d), y = infer_loop(c, o, d);
    if (dims[d] > 1 && (x < 0 || y < 0 || infer_tile(f, p, x) != infer_tile(f, c, y)))
      return false;
  }
  return true;
}

int64_t infer_partition_bytes(const struct infer *f, const struct tiled *t) {
  const int64_t sbuf = nisa_machine(f->run->target)->sbuf_bytes;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t bytes = nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(t->value)));
  const int rank = ir_shape(t->value, STRUCTURED_LOOPS_MAX, dims);

  for (int d = 0; d < rank && bytes <= sbuf; d++) {
    const int loop = infer_result_loop(t, d);
    const bool is_part = loop >= 0 && loop == t->part;
    const int64_t longest = is_part ? infer_tile(f, t, loop) : 1,
                  tile = longest < NISA_PARTITIONS ? longest : NISA_PARTITIONS;
    bytes *= tile > 0 ? (dims[d] + tile - 1) / tile : dims[d];
  }
  return bytes;
}

bool infer_is_too_large(const struct infer *f, const struct tiled *t) {
  return infer_partition_bytes(f, t) > nisa_machine(f->run->target)->sbuf_bytes / 2;
}

/* Why the reader c, NULL if it has no tiles, does not take tiles of a value of SBUF. */
static const char *why_not_tiled(const struct tiled *c) {
  if (!c)
    return "a reader views or slices it";
  if (c->s.kind == SK_BROADCAST || c->s.kind == SK_TRANSPOSE)
    return "a reader moves it to other partitions";
  return "a reader needs other tiles of it";
}

/* True for a product of which another one only continues the sum, tile by tile. */
static bool is_continued(const struct infer *f, const struct tiled *t) {
  bool is_init = false;

  if (t->s.kind != SK_MATMUL)
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(t->value); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (layout_is_annotation(user))
      continue;
    const struct tiled *c = mlirOperationGetNumResults(user) ? infer_find(f, mlirOperationGetResult(user, 0)) : NULL;
    if (is_init || !c || c->s.kind != SK_MATMUL || mlirOpOperandGetOperandNumber(u) != 2 ||
        !reads_its_tiles(f, t, c, 2))
      return false;
    is_init = true;
  }
  return is_init;
}

/* Sets *why if the value must be in HBM, or is never in memory as a whole. */
static enum mem_space space_of(const struct infer *f, const struct tiled *t, const char **why) {
  if (is_continued(f, t)) {
    *why = "the next product is added to it in PSUM";
    return MEM_SBUF;
  }
  if (infer_is_too_large(f, t)) {
    *why = "it takes more than half of SBUF";
    return MEM_HBM;
  }
  for (MlirOpOperand u = mlirValueGetFirstUse(t->value); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    const int o = (int)mlirOpOperandGetOperandNumber(u);
    if (layout_is_annotation(user) || ir_is(user, "nkipy.fuse_op"))
      continue;
    if (ir_is(user, "tensor.insert_slice") && o == 0)
      continue; /* the value is copied into the target */
    const struct tiled *c = mlirOperationGetNumResults(user) ? infer_find(f, mlirOperationGetResult(user, 0)) : NULL;
    if (!c || o >= c->s.n_inputs || !reads_its_tiles(f, t, c, o)) {
      *why = why_not_tiled(c && o < c->s.n_inputs ? c : NULL);
      return MEM_HBM;
    }
  }
  return MEM_SBUF;
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

/* Returns the space of the buffer that v is a view of. */
static enum mem_space space_of_source(const struct infer *f, MlirValue v) {
  for (;;) {
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
  return said == MEM_NONE ? MEM_HBM : (enum mem_space)said;
}

/* Completes the user's layouts of values that no tiled operation computes.  A view gets the space of its source. */
static void complete_others(struct spaces *s) {
  struct pass_run *run = s->f->run;
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "nkipy.layout");

  /* A second layout of one value may be erased with the first, so the values are collected before anything
   * changes. */
  MlirValue *v = arena_new_array(run->arena, MlirValue, (size_t)ops.n + 1);
  for (int i = 0; i < ops.n; i++)
    v[i] = mlirOperationGetOperand(ops.v[i], 0);
  for (int i = 0; i < ops.n; i++) {
    MlirOperation def = ir_defining_op(v[i]);
    if (infer_find(s->f, v[i]) || is_done(s, v[i]) || mlirOperationIsNull(def))
      continue;
    set_done(s, v[i]);
    annotate(s->f, v[i], is_view(def) ? space_of_source(s->f, v[i]) : MEM_HBM, is_view(def) ? "a view" : NULL);
  }
}

/* Gives the source of a view the view's space if the user put the view into HBM. */
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

/* True if op is a fill or a concatenation that is read, so that it needs a buffer even outside a chain. */
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

/* Notes that the user put a value into HBM: then linalg-to-nisa leaves there what is there. */
static void note_hbm(const struct pass_run *run) {
  const struct ir_ops layouts = ir_collect_named(run->arena, run->module, "nkipy.layout");
  for (int i = 0; i < layouts.n; i++)
    if (layout_read(mlirOperationGetOperand(layouts.v[i], 0)).space == MEM_HBM)
      ir_set_attr(run->module, "nkipy.keeps_hbm", mlirUnitAttrGet(run->ir->ctx));
}

void infer_spaces(struct infer *f) {
  struct spaces s = {.f = f, .done = {.arena = f->run->arena}};

  note_hbm(f->run);
  for (int i = 0; i < f->n; i++)
    f->v[i].is_user_space = f->v[i].at.space != MEM_NONE;
  alias_returned(&s);
  alias_carried(&s, "scf.for", "a value that a loop carries");
  alias_carried(&s, "scf.while", "a value that a loop carries");
  alias_carried(&s, "scf.if", "a value of a branch");
  alias_gathered(&s);
  alias_views(&s);
  for (int i = 0; i < f->n; i++)
    if (f->v[i].at.space == MEM_NONE)
      f->v[i].at.space = space_of(f, &f->v[i], &f->v[i].why_space);
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
