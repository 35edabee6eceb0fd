/* hoist: loads that a loop repeats move before the loop.  See legalize_layout.h.
 *
 *     scf.for %i { scf.for %j {                        %all = memref.alloc() : the part for every %j, 3 : i32
 *       %s = memref.alloc() : …, 3 : i32               memref.copy %h[0, …], %all
 *       memref.copy %h[0, %j * 128], %s           ==>  scf.for %i { scf.for %j {
 *       linalg.generic … ins(%x, %s)                     linalg.generic … ins(%x, %all[0, %j * 128])
 *     } }                                              } }
 *
 * A mask, a table, a bias and a factor per row are smaller than what they are combined with, so a tile loop reads them
 * again and again.  The loop that moves out is the outermost one whose counter the load does not use; for the loops
 * inside it the buffer holds all their parts.  Copies and broadcasts to the partitions move alike.
 *
 * Safe because the buffer in SBUF has no other writer, and the source is not written in the loop; a source that is
 * passed to anything but known readers and writers does not count as known.  A moved buffer lives as long as the loop, so
 * the moved buffers of a function together take a quarter of SBUF at most.  Linear in the uses of the sources.
 */
#include <assert.h>

#include "nisa/nisa.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

enum {
  LOOPS_MAX = 2 * LEGAL_RANK_MAX, /* around a load that are looked at: two nests of loops over tiles */
  ROOM_PARTS = 4,                 /* the moved buffers take a fourth of SBUF */
};

struct hoister {
  struct pass_run *run;
  struct table written; /* source -> struct table of the operations that contain a write to it; see written_in */
  int64_t room;         /* bytes per partition that moved buffers may still take */
};

/* A load: a copy or broadcast from `from` to the whole buffer `own`. */
struct load {
  MlirOperation op;
  MlirValue own;
  struct access from;
  int rank; /* of own */
  int64_t dims[LEGAL_RANK_MAX];
  int root_dim[LEGAL_RANK_MAX]; /* the dimension of the source that each dimension of own is; -1: none */
  int new_dim;                  /* of own, that a broadcast adds; -1: a copy */
  int n_loops;                  /* around it that it may leave, from the innermost one */
  MlirOperation loop[LOOPS_MAX];
  MlirValue counter[LOOPS_MAX];
  int64_t trips[LOOPS_MAX];
};

/* ---- what may move ---------------------------------------------------------------------------------------------- */

static bool is_known(MlirOperation op) {
  return ir_is_of(op, "linalg.") || ir_is_of(op, "nkipy.") || ir_is(op, "memref.copy") || ir_is(op, "memref.load") ||
         ir_is(op, "memref.store") || ir_is(op, "func.return");
}

/* Returns the operations that contain a write to root; one that is not known makes the function contain one. */
static struct table *find_written(struct hoister *h, MlirValue root) {
  struct buffer_uses uses = buffer_find_uses(h->run->arena, root);
  struct table *in = arena_new(h->run->arena, struct table);

  *in = (struct table){.arena = h->run->arena};
  table_put(in, in, in); /* never empty, so that it is found again */
  for (int k = 0; k < uses.n; k++) {
    if (!is_known(uses.v[k].op))
      table_put(in, h->run->module.ptr, in);
    if (uses.v[k].access & BUFFER_WRITES)
      for (MlirOperation op = uses.v[k].op; !mlirOperationIsNull(op) && !table_get(in, op.ptr);
           op = mlirOperationGetParentOperation(op))
        if (!ir_is(op, "builtin.module"))
          table_put(in, op.ptr, in);
  }
  table_put(&h->written, root.ptr, in);
  return in;
}

static bool is_written_in(struct hoister *h, MlirValue root, MlirOperation loop) {
  struct table *in = table_get(&h->written, root.ptr);
  if (!in)
    in = find_written(h, root);
  return table_get(in, h->run->module.ptr) || table_get(in, loop.ptr);
}

static bool is_defined_in(MlirValue v, MlirOperation loop) {
  MlirOperation op = mlirValueIsABlockArgument(v) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v))
                                                  : mlirOperationGetParentOperation(mlirOpResultGetOwner(v));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (mlirOperationEqual(op, loop))
      return true;
  return false;
}

/* Reads the number of iterations of a loop that counts from 0 by 1. */
static bool read_trips(MlirOperation loop, int64_t *trips) {
  int64_t from, step;
  return ir_is(loop, "scf.for") && ir_int_constant(mlirOperationGetOperand(loop, 0), &from) && from == 0 &&
         ir_int_constant(mlirOperationGetOperand(loop, 1), trips) &&
         ir_int_constant(mlirOperationGetOperand(loop, 2), &step) && step == 1 && *trips > 0;
}

static int loop_of(const struct load *l, MlirValue v) {
  for (int k = 0; k < l->n_loops; k++)
    if (mlirValueEqual(l->counter[k], v))
      return k;
  return -1;
}

/* Finds the loops that the load may leave: the source is known outside of them, and so is its place but for counters. */
static void find_loops(struct hoister *h, struct load *l) {
  MlirOperation loop = mlirOperationGetParentOperation(l->op);
  int64_t trips;

  for (; l->n_loops < LOOPS_MAX && read_trips(loop, &trips); loop = mlirOperationGetParentOperation(loop)) {
    if (is_defined_in(l->from.root, loop) || is_written_in(h, l->from.root, loop))
      break;
    l->loop[l->n_loops] = loop;
    l->counter[l->n_loops] = mlirBlockGetArgument(ir_body(loop), 0);
    l->trips[l->n_loops++] = trips;
  }
  for (int d = 0; d < l->from.rank; d++)
    for (int k = 0; k < l->from.at[d].n; k++) {
      MlirValue v = l->from.at[d].term[k].v;
      for (int i = 0; loop_of(l, v) < 0 && i < l->n_loops; i++)
        if (is_defined_in(v, l->loop[i])) {
          l->n_loops = i;
          break;
        }
    }
}

/* True if the only writer of own is the load, which writes all of it, in the block where it is allocated. */
static bool is_own(struct hoister *h, const struct load *l) {
  MlirOperation def = ir_defining_op(l->own);
  if (mlirOperationIsNull(def) || !ir_is(def, "memref.alloc") || memrefs_space(l->own) != MEM_SBUF ||
      !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(l->op)))
    return false;
  struct buffer_uses uses = buffer_find_uses(h->run->arena, l->own);
  for (int k = 0; k < uses.n; k++)
    if (!is_known(uses.v[k].op) || ir_is(uses.v[k].op, "linalg.matmul") ||
        ((uses.v[k].access & BUFFER_WRITES) && !mlirOperationEqual(uses.v[k].op, l->op)))
      return false; /* the blocks of a product are chosen where it is tiled */
  return true;
}

static bool read_load(struct hoister *h, MlirOperation op, struct load *l) {
  const bool spreads = ir_is(op, "linalg.broadcast");

  *l = (struct load){.op = op, .own = mlirOperationGetOperand(op, 1), .new_dim = -1};
  l->rank = ir_shape(l->own, LEGAL_RANK_MAX, l->dims);
  if (l->rank < 1 || l->rank > LEGAL_RANK_MAX || !is_own(h, l) ||
      !access_read(mlirOperationGetOperand(op, 0), &l->from) || l->from.view_rank != l->rank - spreads)
    return false;
  if (spreads)
    l->new_dim = (int)mlirDenseI64ArrayGetElement(ir_attr(op, "dimensions"), 0);
  int last = -1;
  for (int d = 0, k = 0; d < l->rank; d++) {
    l->root_dim[d] = d == l->new_dim ? -1 : l->from.dim[k++];
    if (l->root_dim[d] >= 0 && l->root_dim[d] <= last)
      return false; /* permuted */
    last = l->root_dim[d] >= 0 ? l->root_dim[d] : last;
  }
  find_loops(h, l);
  return l->n_loops > 0;
}

/* ---- how far -------------------------------------------------------------------------------------------------------- */

/* Where a load goes: before loop `out`, with these extents. */
struct goal {
  int out;
  int64_t dims[LEGAL_RANK_MAX];
};

static bool uses_counter(const struct load *l, int loop) {
  for (int d = 0; d < l->from.rank; d++)
    for (int k = 0; k < l->from.at[d].n; k++)
      if (l->from.at[d].term[k].factor && mlirValueEqual(l->from.at[d].term[k].v, l->counter[loop]))
        return true;
  return false;
}

/* Sets the extents of a buffer for all iterations of the loops inside `out`.  False if a dimension that own does not
 * have would grow. */
static bool grow(const struct load *l, int out, struct goal *t) {
  t->out = out;
  for (int d = 0; d < l->rank; d++)
    t->dims[d] = l->dims[d];
  for (int r = 0; r < l->from.rank; r++)
    for (int k = 0; k < l->from.at[r].n; k++) {
      const int loop = loop_of(l, l->from.at[r].term[k].v);
      const int64_t factor = l->from.at[r].term[k].factor;
      int d = 0;
      if (loop < 0 || loop > out || factor == 0)
        continue;
      while (d < l->rank && l->root_dim[d] != r)
        d++;
      if (d == l->rank || factor < 0)
        return false;
      t->dims[d] += factor * (l->trips[loop] - 1);
    }
  return true;
}

/* The bytes that the buffer takes in one partition. */
static int64_t bytes_of(const struct load *l, const struct goal *t) {
  int64_t bytes = memrefs_bits(memrefs_element(l->own)) / 8;
  int p = 0;
  while (p < l->rank - 2 && l->dims[p] == 1)
    p++;
  const int64_t rows = l->dims[p] < NISA_PARTITIONS ? l->dims[p] : NISA_PARTITIONS;
  for (int d = 0; d < l->rank; d++)
    bytes *= d == p ? (t->dims[d] + rows - 1) / rows : t->dims[d];
  return bytes;
}

/* Chooses the outermost loop that repeats the load and that fits. */
static bool choose_goal(const struct hoister *h, const struct load *l, struct goal *t) {
  for (int out = l->n_loops - 1; out >= 0; out--)
    if (l->trips[out] > 1 && !uses_counter(l, out) && grow(l, out, t) && bytes_of(l, t) <= h->room)
      return true;
  return false;
}

/* ---- moving --------------------------------------------------------------------------------------------------------- */

/* Builds the terms of `at` that are counters of the loops inside `out`, or, if inside is false, all others. */
static MlirValue offset_of(struct ir_builder *b, const struct load *l, const struct linear *at, int out, bool inside) {
  MlirValue sum = {NULL};

  for (int k = 0; k < at->n; k++) {
    const int loop = loop_of(l, at->term[k].v);
    if (at->term[k].factor == 0 || (loop >= 0 && loop <= out) != inside)
      continue;
    MlirValue v = memrefs_times(b, at->term[k].v, at->term[k].factor);
    sum = mlirValueIsNull(sum) ? v : ir_binary(b, "arith.addi", sum, v);
  }
  return mlirValueIsNull(sum) || inside || !at->constant ? sum : memrefs_plus(b, sum, at->constant);
}

/* Builds the source of the moved load: the part of the root that all iterations read, in the dimensions of own without
 * the one that a broadcast adds. */
static MlirValue source_of(struct ir_builder *b, const struct load *l, const struct goal *t) {
  int64_t offset[LEGAL_RANK_MAX], size[LEGAL_RANK_MAX], shape[LEGAL_RANK_MAX];
  MlirValue at[LEGAL_RANK_MAX];
  bool drop[LEGAL_RANK_MAX];
  int end[LEGAL_RANK_MAX], n = 0, n_kept = 0;

  for (int r = 0; r < l->from.rank; r++) {
    offset[r] = l->from.at[r].constant;
    size[r] = l->from.size[r];
    at[r] = offset_of(b, l, &l->from.at[r], t->out, false);
    drop[r] = true;
  }
  for (int d = 0; d < l->rank; d++) {
    if (d == l->new_dim)
      continue;
    shape[n++] = t->dims[d];
    if (l->root_dim[d] < 0)
      continue;
    drop[l->root_dim[d]] = false;
    size[l->root_dim[d]] = t->dims[d];
    end[n_kept++] = n;
  }
  MlirValue v =
      memrefs_subview(b, l->from.root, &(struct memrefs_part){.offset = offset, .size = size, .at = at, .drop = drop});
  if (n_kept == n)
    return v;
  end[n_kept - 1] = n; /* dimensions of one element that the source does not have */
  return memrefs_expand(b, v, end, n, shape);
}

/* Builds the part of the moved buffer that one iteration reads; all if it does not depend on the iteration. */
static MlirValue part_of(struct ir_builder *b, const struct load *l, const struct goal *t, MlirValue all) {
  static const int64_t zero[LEGAL_RANK_MAX];
  MlirValue at[LEGAL_RANK_MAX];
  bool is_whole = true;

  for (int d = 0; d < l->rank; d++) {
    at[d] = l->root_dim[d] < 0 ? (MlirValue){NULL} : offset_of(b, l, &l->from.at[l->root_dim[d]], t->out, true);
    is_whole &= t->dims[d] == l->dims[d];
  }
  return is_whole ? all : memrefs_subview(b, all, &(struct memrefs_part){.offset = zero, .size = l->dims, .at = at});
}

/* Gives the moved buffer the tile of own: its layout's, or all of it. */
static void move_layout(const struct load *l, MlirValue all, MlirLocation loc) {
  struct layout at = layout_read(l->own);
  const struct layout own = at;

  at.layout_op = at.tile_op = (MlirOperation){NULL};
  at.n_loop = 0;
  if (at.n_tile != l->rank) {
    at = (struct layout){.space = MEM_SBUF, .partition_dim = 0, .n_tile = l->rank};
    for (int d = 0; d < l->rank; d++)
      at.tile[d] = l->dims[d];
  }
  layout_write(all, &at, loc);
  if (!mlirOperationIsNull(own.layout_op))
    mlirOperationDestroy(own.layout_op);
}

static bool move(struct hoister *h, struct load *l) {
  struct goal t;
  bool has_root = false;

  for (int d = 0; d < l->rank; d++)
    has_root |= l->root_dim[d] >= 0;
  if (!has_root || !choose_goal(h, l, &t))
    return false;
  struct ir_builder out = edit_before(h->run, l->loop[t.out]), in = edit_before(h->run, l->op);
  out.loc = in.loc;
  MlirValue all = memrefs_alloc(&out, memrefs_type(out.ctx, memrefs_element(l->own), l->rank, t.dims, MEM_SBUF));
  MlirValue part = part_of(&in, l, &t, all);
  if (!memrefs_can_retype(l->own, mlirValueGetType(part))) {
    if (!mlirValueEqual(part, all))
      mlirOperationDestroy(ir_defining_op(part));
    mlirOperationDestroy(ir_defining_op(all));
    return false;
  }
  move_layout(l, all, out.loc);
  MlirValue source = source_of(&out, l, &t);
  if (l->new_dim < 0)
    memrefs_copy(&out, source, all);
  else
    ir_broadcast(&out, source, all, l->new_dim);
  struct remark *r = pass_remark(h->run, l->op, RULE_LOAD_ONCE, "loaded once, before the loop that reads it %lld times",
                                 (long long)l->trips[t.out]);
  remark_limit(r, "a quarter of SBUF", "bytes per partition", bytes_of(l, &t),
               nisa_machine(h->run->target)->sbuf_bytes / ROOM_PARTS);
  const int64_t bytes = bytes_of(l, &t);
  price_chosen(r, price_transfer_ns(h->run->target, bytes * NISA_PARTITIONS, bytes));
  price_instead(r, "loading it in each iteration",
                price_transfers_ns(h->run->target, l->trips[t.out], bytes * NISA_PARTITIONS, bytes),
                "the same bytes would come again");
  h->room -= bytes_of(l, &t);
  mlirOperationDestroy(l->op);
  mlirValueReplaceAllUsesOfWith(l->own, part);
  memrefs_retype_views(part); /* own stays, unused: canonicalize removes it, and tables may still have its address */
  return true;
}

static bool is_load(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "memref.copy") || ir_is(op, "linalg.broadcast");
}

bool legal_hoist(struct pass_run *run) {
  struct hoister h = {
      .run = run, .written = {.arena = run->arena}, .room = nisa_machine(run->target)->sbuf_bytes / ROOM_PARTS};
  struct ir_ops ops = ir_collect(run->arena, run->module, is_load, NULL);
  bool changed = false;

  for (int k = 0; k < ops.n; k++) {
    struct load l;
    pass_step(run, ops.v[k], "hoist-load");
    if (read_load(&h, ops.v[k], &l))
      changed |= move(&h, &l);
  }
  return changed;
}
