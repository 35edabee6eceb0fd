/* groups: decides which operations become one loop.  See fuse_row_tiles.c.
 *
 * An operation joins the group of the operations that compute its operands, or that read the same value, if both go
 * over the same rows in the same tiles and nothing in between needs the whole value.  "In between" is found by stages: a member
 * has the stage of the members that it reads; one that reads another operation, such as a matmul, has a later stage
 * than all members that this operation depends on.  Only members of one stage are in one group, so a group never
 * depends on itself by way of other operations.
 */
#include <inttypes.h>

#include "base/array.h"
#include "ir/structured.h"
#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/price.h"

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

struct fuse_node *fuse_node_of(const struct fuse_block *b, MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return mlirOperationIsNull(def) ? NULL : table_get(&b->by_op, def.ptr);
}

int fuse_root(struct fuse_block *b, int k) {
  while (b->members[k].parent != k)
    k = b->members[k].parent = b->members[b->members[k].parent].parent;
  return k;
}

static int number(const struct fuse_block *b, const struct fuse_member *m) {
  return (int)(m - b->members);
}

bool fuse_is_same_in_rows(const struct fuse_member *m, int o) {
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(m->node->op, o));
  if (m->row_dim || m->takes_columns || mlirOperationIsNull(def) || !ir_is(def, "linalg.broadcast"))
    return false;
  MlirAttribute dims = ir_attr(def, "dimensions");
  for (intptr_t i = 0; !mlirAttributeIsNull(dims) && i < mlirDenseArrayGetNumElements(dims); i++)
    if (mlirDenseI64ArrayGetElement(dims, i) == 0)
      return true;
  return false;
}

/* With fewer rows in a tile most partitions would be idle in every operation of the loop. */
enum { ROWS_LEAST = NISA_PARTITIONS / 4 };

/* ---- which operations may be members ------------------------------------------------------------------------------ */

static MlirOperation fuse_knob_of(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "nkipy.fuse_op"))
      return mlirOpOperandGetOwner(u);
  return (MlirOperation){NULL};
}

/* True if the body reads its position or another tensor. */
static bool reads_more(MlirOperation op) {
  MlirBlock body = ir_body(op);
  if (mlirBlockIsNull(body))
    return false;
  for (MlirOperation o = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (!ir_is_of(o, "arith.") && !ir_is_of(o, "math.") && !ir_is(o, "linalg.yield"))
      return true;
  return false;
}

bool fuse_is_one_row(const struct fuse_member *m, int o) {
  const MlirAffineMap map = m->s.maps[o];
  MlirType t = mlirValueGetType(mlirOperationGetOperand(m->node->op, o));
  return mlirTypeIsARankedTensor(t) && mlirShapedTypeGetRank(t) > (m->row_dim ? m->row_dim : 1) &&
         mlirShapedTypeGetDimSize(t, m->row_dim) == 1 && structured_map_loop(map, m->row_dim) < 0;
}

/* Whether dimension r of operand o has to have the rows: row_dim, or the next one of what has them as columns. */
static bool has_rows(const struct fuse_member *m, int o, int r) {
  const bool are_columns = fuse_turns(m) && m->takes_columns == (o < m->s.n_inputs);
  return r == m->row_dim + are_columns;
}

/* With planes, dimension r of an operand is loop r or 1. */
static bool is_in_place(const struct fuse_member *m, int o, int r) {
  const int loop = structured_map_loop(m->s.maps[o], r);
  return !m->row_dim || loop == r || fuse_turns(m) ||
         (loop < 0 && mlirShapedTypeGetDimSize(mlirValueGetType(mlirOperationGetOperand(m->node->op, o)), r) == 1);
}

/* Every operand and the result must have the rows of row_loop in row_dim, and only there; an operand may also have one row,
 * and a transpose has them as columns on one side.  Returns why it is not so, or NULL. */
static const char *other_rows(struct arena *a, const struct fuse_member *m) {
  for (int o = 0; o < m->s.n_inputs + m->s.n_inits; o++) {
    MlirValue v = mlirOperationGetOperand(m->node->op, o);
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) {
      if (o >= m->s.n_inputs)
        return "its result is a number";
      continue;
    }
    const int rank = (int)mlirAffineMapGetNumResults(m->s.maps[o]);
    const bool is_result = o >= m->s.n_inputs;
    const char *what = is_result ? "its result" : arena_printf(a, "operand %d", o);
    if (rank <= m->row_dim)
      return arena_printf(a, "%s has no dimension for its rows", what);
    for (int r = 0; r < rank; r++) {
      const bool is_of_rows = structured_map_loop(m->s.maps[o], r) == m->row_loop, should = has_rows(m, o, r);
      if (is_of_rows != should && (!should || is_result || !fuse_is_one_row(m, o)))
        return arena_printf(a, "dimension %d of %s %s the rows that it computes", r, what,
                            should ? "does not have" : "has");
      if (!is_in_place(m, o, r))
        return arena_printf(a, "%s has other dimensions than its result", what);
    }
  }
  return NULL;
}

/* True if the operands in SBUF have tiles of as many rows. */
static bool reads_whole_tiles(const struct fuse_member *m) {
  for (int o = 0; o < m->s.n_inputs; o++) {
    const struct layout at = layout_read(mlirOperationGetOperand(m->node->op, o));
    if (at.space == MEM_SBUF && !fuse_is_one_row(m, o) &&
        (at.partition_dim != m->row_dim || at.n_tile <= m->row_dim || at.tile[m->row_dim] != m->tile))
      return false;
  }
  return true;
}

static bool starts_from_nothing(const struct fuse_member *m) {
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(m->node->op, m->s.n_inputs));
  if (mlirOperationIsNull(def))
    return false;
  return ir_is(def, "tensor.empty") || (ir_is(def, "linalg.fill") && mlirOperationGetNumOperands(def) == 2 &&
                                        !mlirOperationIsNull(ir_defining_op(mlirOperationGetOperand(def, 1))) &&
                                        ir_is(ir_defining_op(mlirOperationGetOperand(def, 1)), "tensor.empty"));
}

/* True if op only rounds a product that nothing else reads: round-products does it as the product leaves PSUM. */
static bool rounds_a_product(const struct fuse_member *m) {
  MlirOperation op = m->node->op, product = ir_defining_op(mlirOperationGetOperand(op, 0));
  MlirBlock body = ir_body(op);

  if (mlirOperationIsNull(product) || !ir_is(product, "linalg.matmul") || m->s.n_inputs != 1 || m->s.n_loops != 2 ||
      !ir_is(op, "linalg.generic") || !ir_is(mlirBlockGetFirstOperation(body), "arith.truncf") ||
      !ir_is(mlirOperationGetNextInBlock(mlirBlockGetFirstOperation(body)), "linalg.yield"))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(product)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u))
    if (!ir_is_of(mlirOpOperandGetOwner(u), "nkipy.") && !mlirOperationEqual(mlirOpOperandGetOwner(u), op))
      return false;
  return true;
}

static int64_t planes_of(const struct fuse_member *m) {
  int64_t n = 1;
  for (int l = 0; l < m->row_dim; l++)
    n *= m->s.extents[l];
  return n;
}

static const char *reduces_rows(struct arena *a, const struct fuse_member *m) {
  for (int l = 0; l <= m->row_dim; l++)
    if (m->s.reduction[l])
      return arena_printf(a, "it reduces dimension %d, %s of the tiles", l, l < m->row_dim ? "the planes" : "the rows");
  return NULL;
}

static bool has_single_planes(const struct fuse_member *m) {
  for (int l = 0; l < m->row_dim; l++)
    if (m->at.loop[l] != 1)
      return false;
  return true;
}

/* True if a reduction's result is in HBM: outside a loop over rows so is what it accumulates, which then goes there and back. */
static bool accumulates_in_hbm(const struct fuse_member *m) {
  return m->s.kind == SK_REDUCTION && m->at.space != MEM_SBUF;
}

/* True if an operand is one of several slices of a value, or comes from a member with all rows in one tile. */
static bool is_of_windows(const struct fuse_block *b, const struct fuse_member *m) {
  for (int o = 0; o < m->s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(m->node->op, o);
    const struct fuse_node *node = fuse_node_of(b, v);
    if (fuse_is_one_of_slices(v) || (node && node->member && node->member->is_single))
      return true;
  }
  return false;
}

/* Reads a node.  Returns false if it is neither element-wise, with more than one tile of rows or windows, nor a reduction.  Sets
 * *why if it is, but cannot be a member. */
static bool read_member(struct fuse_block *b, struct fuse_node *node, struct fuse_member *m, const char **why) {
  MlirOperation op = node->op;

  *why = NULL;
  *m = (struct fuse_member){.node = node};
  if (mlirOperationGetNumResults(op) != 1 || !structured_read(op, &m->s) || m->s.n_inits != 1 ||
      !(structured_is_elementwise(&m->s) || m->s.kind == SK_REDUCTION || fuse_turns(m)))
    return false;
  m->at = layout_read(ir_result(op));
  if (mlirOperationIsNull(m->at.tile_op) || m->at.n_loop != m->s.n_loops || m->s.n_loops < 2 ||
      m->at.n_tile != mlirShapedTypeGetRank(mlirValueGetType(ir_result(op))))
    return false;
  for (int l = 0; l < m->s.n_loops; l++)
    if (m->s.extents[l] < 1)
      return false;
  m->row_dim = m->row_loop = m->at.partition_dim;
  m->column_loop = m->s.n_loops - 1;
  if (!fuse_turns(m) && (m->row_dim < 0 || m->row_dim >= m->s.n_loops))
    return false;
  m->rows = m->s.extents[m->row_loop];
  m->tile = m->at.loop[m->row_loop];
  if (fuse_turns(m) && !fuse_read_turn(b, m))
    return false;
  m->is_single = m->rows <= m->tile && planes_of(m) == 1 && !accumulates_in_hbm(m);
  if (m->tile < 1 || m->tile > NISA_PARTITIONS || (m->is_single && !is_of_windows(b, m)))
    return false;
  if (rounds_a_product(m))
    *why = "the product is rounded as it leaves PSUM";
  else if (!mlirAttributeIsNull(ir_attr(m->at.layout_op, "given")))
    *why = "a knob or an earlier pass gives its tile or its memory";
  else if (!mlirOperationIsNull(fuse_knob_of(ir_result(op))))
    *why = mlirAttributeIsNull(ir_attr(fuse_knob_of(ir_result(op)), "never")) ? "knob.fuse names its value"
                                                                              : "knob.fuse forbids it";
  else if (node->needs_named && node->is_needed_by_named)
    *why = "knob.fuse names values before and after it";
  else if ((*why = reduces_rows(b->run->arena, m)))
    return true;
  else if (fuse_turns(m) && !m->row_dim && m->at.partition_dim != 0)
    *why = "its partitions are not along dimension 0";
  else if (!fuse_turns(m) && !has_single_planes(m))
    *why = "one tile has several planes";
  else if (!structured_has_simple_maps(&m->s))
    *why = "it reads elements at computed places";
  else if ((*why = other_rows(b->run->arena, m)))
    return true;
  else if (m->tile < ROWS_LEAST)
    *why = arena_printf(b->run->arena, "its tiles have few rows: %" PRId64 " in dimension 0", m->tile);
  else if (!reads_whole_tiles(m))
    *why = "an operand in SBUF has other tiles along dimension 0";
  else if (reads_more(op))
    *why = "its body reads its position or picks elements";
  else if (!starts_from_nothing(m))
    *why = "it changes a value in place";
  return true;
}

/* ---- values that knob.fuse names ---------------------------------------------------------------------------------- */

static void visit_operands(struct fuse_block *b, MlirOperation op,
                           void (*visit)(struct fuse_block *, struct fuse_node *def, MlirValue v, void *), void *user) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    struct fuse_node *def = fuse_node_of(b, mlirOperationGetOperand(op, k));
    if (def)
      visit(b, def, mlirOperationGetOperand(op, k), user);
  }
  if (!mlirOperationGetNumRegions(op) || (ir_is_of(op, "linalg.") && !ir_is(op, "linalg.generic")))
    return; /* the body that the name implies reads nothing else; that of a gather picks elements of another value */
  struct ir_ops inside = ir_collect(b->run->arena, op, NULL, NULL);
  for (int i = 1; i < inside.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(inside.v[i]); k++) {
      struct fuse_node *def = fuse_node_of(b, mlirOperationGetOperand(inside.v[i], k));
      if (def)
        visit(b, def, mlirOperationGetOperand(inside.v[i], k), user);
    }
}

static void take_need(struct fuse_block *b, struct fuse_node *def, MlirValue v, void *user) {
  (void)b, (void)v;
  struct fuse_node *node = user;
  node->needs_named |= def->needs_named;
}

static void give_need(struct fuse_block *b, struct fuse_node *def, MlirValue v, void *user) {
  (void)b, (void)v;
  const struct fuse_node *node = user;
  def->is_needed_by_named |= node->is_needed_by_named;
}

static void mark_named(struct fuse_block *b) {
  bool any = false;

  for (int i = 0; i < b->n; i++) {
    MlirOperation op = b->v[i].op;
    if (!ir_is(op, "nkipy.fuse_op") || !mlirAttributeIsNull(ir_attr(op, "never")))
      continue;
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
      struct fuse_node *named = fuse_node_of(b, mlirOperationGetOperand(op, k));
      if (named)
        any = named->needs_named = named->is_needed_by_named = true;
    }
  }
  for (int i = 0; any && i < b->n; i++)
    if (!ir_is_of(b->v[i].op, "nkipy."))
      visit_operands(b, b->v[i].op, take_need, &b->v[i]);
  for (int i = b->n - 1; any && i >= 0; i--)
    if (!ir_is_of(b->v[i].op, "nkipy."))
      visit_operands(b, b->v[i].op, give_need, &b->v[i]);
}

/* ---- stages and groups -------------------------------------------------------------------------------------------- */

static bool have_same_planes(const struct fuse_member *x, const struct fuse_member *y) {
  for (int l = 0; l < x->row_dim && x->row_dim == y->row_dim; l++)
    if (x->s.extents[l] != y->s.extents[l])
      return false;
  return x->row_dim == y->row_dim;
}

static bool are_alike(const struct fuse_member *x, const struct fuse_member *y) {
  return x->rows == y->rows && x->tile == y->tile && have_same_planes(x, y) &&
         !((x->is_wide || y->is_wide) && (x->s.kind == SK_REDUCTION || y->s.kind == SK_REDUCTION));
}

static void note_stage(struct fuse_block *b, struct fuse_node *def, MlirValue v, void *user) {
  (void)b, (void)v;
  struct fuse_node *node = user;
  int after = def->after;

  if (node->member)
    after = def->member && !fuse_turns_out(def->member) && !node->member->takes_columns
                ? def->after + !are_alike(def->member, node->member)
                : def->after + 1;
  node->after = after > node->after ? after : node->after;
}

static void unite(struct fuse_block *b, const struct fuse_member *x, const struct fuse_member *y) {
  if (x->node->after == y->node->after && are_alike(x, y))
    b->members[fuse_root(b, number(b, y))].parent = fuse_root(b, number(b, x));
}

/* Gives every node its stage and unites members.  readers: value -> the last member that reads it. */
static void unite_members(struct fuse_block *b) {
  struct table readers = {.arena = b->run->arena};

  for (int k = 0; k < b->n_members; k++)
    b->members[k].parent = k;
  for (int i = 0; i < b->n; i++) {
    struct fuse_node *node = &b->v[i];
    if (ir_is_of(node->op, "nkipy."))
      continue;
    node->after = node->member ? 0 : -1;
    visit_operands(b, node->op, note_stage, node);
    for (int o = 0; node->member && o < node->member->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(node->op, o);
      struct fuse_node *def = fuse_node_of(b, v);
      struct fuse_member *sibling = table_get(&readers, v.ptr);
      if (node->member->takes_columns)
        continue;
      if (def && def->member && !fuse_turns_out(def->member))
        unite(b, def->member, node->member);
      if (sibling && mlirTypeIsARankedTensor(mlirValueGetType(v)))
        unite(b, sibling, node->member);
      table_put(&readers, v.ptr, node->member);
    }
  }
}

static void collect_groups(struct fuse_block *b) {
  struct arena *a = b->run->arena;
  int *group = arena_new_array(a, int, (size_t)b->n_members + 1);

  b->n_groups = 0;
  b->groups = arena_new_array(a, struct fuse_group, (size_t)b->n_members + 1);
  for (int k = 0; k < b->n_members; k++)
    if (fuse_root(b, k) == k)
      group[k] = b->n_groups++;
  for (int k = 0; k < b->n_members; k++)
    b->groups[group[fuse_root(b, k)]].n++;
  for (int g = 0; g < b->n_groups; g++) {
    b->groups[g].v = arena_new_array(a, struct fuse_member *, (size_t)b->groups[g].n);
    b->groups[g].n = 0;
  }
  for (int k = 0; k < b->n_members; k++) {
    struct fuse_group *g = &b->groups[group[fuse_root(b, k)]];
    struct fuse_member *m = &b->members[k];
    g->v[g->n++] = m;
    g->n_planes = m->row_dim;
    g->planes = planes_of(m);
    g->rows = m->rows;
    g->tile = m->tile;
    g->has_reduction |= m->s.kind == SK_REDUCTION;
    g->has_transpose |= fuse_turns(m);
  }
}

bool fuse_leaves(struct fuse_block *b, const struct fuse_group *g, MlirValue v) {
  const int root = fuse_root(b, number(b, g->v[0]));

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const struct fuse_node *node = table_get(&b->by_op, op.ptr);
    if (ir_is_of(op, "nkipy."))
      continue;
    if (!node || !node->member || fuse_root(b, number(b, node->member)) != root)
      return true;
  }
  return false;
}

/* ---- the decision ------------------------------------------------------------------------------------------------- */

void fuse_price_apart(struct remark *r, enum target t, MlirValue v, const char *choice, const char *why) {
  price_chosen(r, layout_read(v).space == MEM_SBUF ? 0 : price_away_ns(t, v));
  price_instead(r, choice, 0, why);
}

static void find_members(struct fuse_block *b) {
  b->members = arena_new_array(b->run->arena, struct fuse_member, (size_t)b->n + 1);
  for (int i = 0; i < b->n; i++) {
    struct fuse_member *m = &b->members[b->n_members];
    const char *why;
    if (!read_member(b, &b->v[i], m, &why))
      continue;
    if (why) {
      struct remark *r = pass_remark(b->run, b->v[i].op, RULE_FUSE_ROWS_NOT, "keeps loops of its own: %s", why);
      fuse_price_apart(r, b->run->target, ir_result(b->v[i].op), "a loop with its neighbours", why);
      continue;
    }
    b->v[i].member = m;
    b->n_members++;
  }
}

/* Says why a member is not in the loop of a member that it reads. */
static void explain_apart(struct fuse_block *b, const struct fuse_member *m) {
  for (int o = 0; o < m->s.n_inputs; o++) {
    const struct fuse_node *node = fuse_node_of(b, mlirOperationGetOperand(m->node->op, o));
    const struct fuse_member *def = node ? node->member : NULL;
    if (!def || fuse_root(b, number(b, def)) == fuse_root(b, number(b, m)))
      continue;
    const char *why =
        def->tile != m->tile
            ? arena_printf(b->run->arena, "dimension %d has tiles of %" PRId64 " rows there and of %" PRId64 " here",
                           m->row_dim, def->tile, m->tile)
        : !have_same_planes(def, m) ? "its planes, the dimensions before the partitions, are others"
        : !are_alike(def, m)        ? "whole rows of both, along the last dimension, do not fit into SBUF"
                                    : "an operation between them needs all rows of dimension 0";
    fuse_price_apart(pass_remark(b->run, m->node->op, RULE_FUSE_ROWS_NOT, "not in the loop of operand %d: %s", o, why),
                     b->run->target, mlirOperationGetOperand(m->node->op, o), "one loop with what it reads", why);
    return;
  }
}

void fuse_find_groups(struct fuse_block *b) {
  bool again = false;

  mark_named(b);
  find_members(b);
  unite_members(b);
  collect_groups(b);
  for (int k = 0; k < b->n_groups; k++) {
    struct fuse_group *g = &b->groups[k];
    fuse_weigh(b, g);
    for (int i = 0; g->why_not && g->has_reduction && i < g->n; i++)
      again = g->v[i]->is_wide = true;
  }
  if (again) {
    unite_members(b);
    collect_groups(b);
    for (int k = 0; k < b->n_groups; k++)
      fuse_weigh(b, &b->groups[k]);
  }
  for (int k = 0; k < b->n_members; k++)
    explain_apart(b, &b->members[k]);
}
