/* insert_spill_reload: if buffers need more SBUF than there is, keeps some of them in HBM between their uses.
 *
 *     %a = memref.alloc() : …, 3 : i32                 %s = memref.alloc() : …, 1 : i32
 *     … uses %a …                                      %a = memref.alloc() : …, 3 : i32
 *     … more than the rest of SBUF …              ==>  … uses %a …
 *     … uses %a …                                      memref.copy %a, %s
 *                                                      … more than the rest of SBUF …
 *                                                      %b = memref.alloc() : …, 3 : i32
 *                                                      memref.copy %s, %b
 *                                                      … uses %b …
 *
 * The pass walks each block from the top with the set of its buffers that are in SBUF.  A buffer enters the set at its
 * first user (its allocation moves there) and leaves it after its last one.  A user inside a loop, or a user of a view,
 * counts as a use by the operation of the block that contains it.  An operation needs the buffers that it uses, the
 * other buffers in the set, and the largest amount that is allocated at once inside it.  If that exceeds the capacity,
 * buffers that it does not use are stored in HBM, the one with the farthest next use first (Belady: no other order
 * needs fewer stores).  If it still does not fit, the blocks inside are handled in the same way with the rest of the
 * capacity.  An element-wise operation that needs too much by itself writes its result over an operand (in_place.c).  A
 * loop over tiles of buffers that do not fit gets the tiles from HBM (large.c).  Any other operation that does not fit
 * is an error.
 *
 * A stored buffer frees its space: its last use is the copy to HBM.  Only what was written is copied (parts.c).  A new buffer is filled by the copy back, and later
 * users and their views use the new buffer.  A buffer that was not written since it was loaded is not stored again, and
 * a buffer that is a copy of data in HBM is loaded from there.  (The reference orders victims the other way round,
 * looks only at the outermost block and not through views, and keeps the allocation, so that it frees no space.)  The
 * buffer in HBM is allocated once, outside all loops.  A buffer that a loop carries, or that an arith.select chooses,
 * stays in SBUF.
 *
 * Lowering to instructions adds buffers, for a tile copied from PSUM to HBM or for intermediate values of a generic.
 * If SBUF is more than half full, the pass tries the lowering on a clone.  If the clone needs more SBUF than there is,
 * the pass runs again with a capacity reduced by the difference.
 *
 * Options: sbuf-capacity=N bytes per partition, target=trn1|trn2|trn3.  Time: operations of a block times its buffers.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/insert_spill_reload/insert_spill_reload.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

/* A buffer that is allocated in the block. */
struct held {
  MlirOperation alloc;        /* the original allocation */
  MlirValue now;              /* the buffer that currently holds the contents */
  MlirValue slot;             /* buffer in HBM, null if h was never stored */
  int64_t bytes;              /* bytes per partition */
  int n_uses, *uses;          /* positions in the block, ascending */
  struct spill_parts *wrote;  /* what each use writes; none for a reader */
  struct spill_parts written; /* what the uses before `next` have written */
  int next;                   /* index of the first use that the walk has not passed */
  bool is_pinned, is_resident;
  bool is_stored;   /* slot has the contents */
  bool is_borrowed; /* slot is the buffer that this one was copied from; it must not be written */
};

struct scan {
  struct pass_run *run;
  MlirBlock block, entry;    /* entry: first block of the function */
  int64_t capacity, outside; /* outside: bytes held by the enclosing blocks and needed by the lowering */
  int n_ops, n_held;
  MlirOperation *ops;
  struct held *held;
};

/* ---- reading a block ------------------------------------------------------------------------------------------- */

/* Moves an allocation directly before its first user. */
static void sink(MlirOperation alloc) {
  MlirOperation first = {NULL};
  MlirValue v = mlirOperationGetResult(alloc, 0);

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation here = ir_ancestor_in(mlirOpOperandGetOwner(u), mlirOperationGetBlock(alloc));
    if (!mlirOperationIsNull(here) && (mlirOperationIsNull(first) || buffer_is_before(here, first)))
      first = here;
  }
  if (!mlirOperationIsNull(first))
    mlirOperationMoveBefore(alloc, first);
}

static void add_use(struct held *h, int at, struct spill_parts wrote) {
  assert(at >= 0);
  int k = h->n_uses++;
  for (; k > 0 && h->uses[k - 1] > at; k--) {
    h->uses[k] = h->uses[k - 1];
    h->wrote[k] = h->wrote[k - 1];
  }
  h->uses[k] = at;
  h->wrote[k] = wrote;
}

/* Counts the uses of v.  Views count, too: they must be rebuilt on the reloaded buffer. */
static int count_uses(MlirValue v) {
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirValue next = buffer_passed_on(mlirOpOperandGetOwner(u), mlirOpOperandGetOperandNumber(u));
    n += 1 + (mlirValueIsNull(next) ? 0 : count_uses(next));
  }
  return n;
}

static void read_uses(struct scan *s, struct held *h, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, s->block);
    const intptr_t k = mlirOpOperandGetOperandNumber(u);
    MlirValue next = buffer_passed_on(op, k);
    if (!mlirValueIsNull(next))
      read_uses(s, h, next);
    if (buffer_is_view(op) || ir_is(op, "memref.dealloc") || mlirOperationIsNull(here))
      continue;
    h->is_pinned |= !mlirValueIsNull(next) || spill_is_handed_on(op);
    struct spill_parts wrote = {0};
    if (buffer_access(op, k) & BUFFER_WRITES)
      wrote = spill_parts_written(s->run->arena, v);
    add_use(h, spill_position(s->n_ops, s->ops, here), wrote);
  }
}

static void read_block(struct scan *s) {
  struct arena *a = s->run->arena;
  MlirOperation *before = spill_operations(a, s->block, &s->n_ops);

  for (int k = 0; k < s->n_ops; k++)
    if (spill_is_sbuf_alloc(before[k]))
      sink(before[k]);
  s->ops = spill_operations(a, s->block, &s->n_ops);
  s->held = arena_new_array(a, struct held, (size_t)s->n_ops + 1);
  for (int k = 0; k < s->n_ops; k++) {
    if (!spill_is_sbuf_alloc(s->ops[k]))
      continue;
    struct held *h = &s->held[s->n_held++];
    MlirValue v = mlirOperationGetResult(s->ops[k], 0);
    const size_t uses = (size_t)count_uses(v) + 1;
    *h = (struct held){.alloc = s->ops[k], .now = v, .bytes = spill_bytes(v)};
    h->uses = arena_new_array(s->run->arena, int, uses);
    h->wrote = arena_new_array(s->run->arena, struct spill_parts, uses);
    add_use(h, k, (struct spill_parts){0}); /* the buffer exists from here on */
    read_uses(s, h, v);
  }
}

/* ---- putting away and bringing back ---------------------------------------------------------------------------- */

/* Allocates the buffer in HBM in the function's first block, because loops use it repeatedly. */
static MlirValue make_slot(struct scan *s, struct held *h) {
  MlirOperation at = ir_ancestor_in(h->alloc, s->entry);
  struct ir_builder b = edit_before(s->run, at);
  int64_t dims[IR_MEMREF_RANK_MAX];
  const int rank = ir_shape(h->now, IR_MEMREF_RANK_MAX, dims);

  b.loc = mlirOperationGetLocation(h->alloc);
  return memrefs_alloc(&b, memrefs_type(b.ctx, memrefs_element(h->now), rank, dims, MEM_HBM));
}

static int64_t resident_bytes(const struct scan *s) {
  int64_t sum = 0;
  for (int k = 0; k < s->n_held; k++)
    sum += s->held[k].is_resident ? s->held[k].bytes : 0;
  return sum;
}

/* Of storing it and loading it again. */
static double away_ns(const struct scan *s, const struct held *h) {
  return 2 * price_transfer_ns(s->run->target, h->bytes * NISA_PARTITIONS, h->bytes);
}

static bool is_used_at(const struct held *h, int at) {
  return h->next < h->n_uses && h->uses[h->next] == at;
}

/* True if h is a better victim than x: its next use is later; or it is equally late and h need not be stored; or h is
 * larger. */
static bool is_better(const struct held *h, const struct held *x) {
  if (h->uses[h->next] != x->uses[x->next])
    return h->uses[h->next] > x->uses[x->next];
  return h->is_stored != x->is_stored ? h->is_stored : h->bytes > x->bytes;
}

/* Returns the resident buffer that is not used at `at` and whose next use is farthest, or NULL if there is none; not `but`. */
static struct held *victim_but(struct scan *s, int at, const struct held *but) {
  struct held *best = NULL;
  for (int k = 0; k < s->n_held; k++) {
    struct held *h = &s->held[k];
    if (h == but || !h->is_resident || h->is_pinned || is_used_at(h, at))
      continue;
    if (!best || is_better(h, best))
      best = h;
  }
  return best;
}

/* Stores h after the last operation that used it. */
static void put_away(struct scan *s, struct held *h, int at) {
  MlirOperation last = s->ops[h->uses[h->next - 1]];

  if (!h->is_stored && h->written.n) {
    if (mlirValueIsNull(h->slot) || h->is_borrowed)
      h->slot = make_slot(s, h);
    h->is_borrowed = false;
    pass_step(s->run, h->alloc, "spill");
    struct ir_builder b = edit_before(s->run, last);
    b.before = mlirOperationGetNextInBlock(last);
    b.loc = mlirOperationGetLocation(h->alloc);
    spill_parts_copy(&b, &h->written, h->now, h->slot);
    struct remark *r =
        pass_remark(s->run, h->alloc, RULE_SPILL, "spilled to HBM, %" PRId64 " bytes per partition", h->bytes);
    remark_limit(r, "SBUF", "bytes per partition", resident_bytes(s), s->capacity);
    price_chosen(r, away_ns(s, h));
    price_instead(r, "staying in SBUF", 0, "what is in use here does not fit beside it");
    const struct held *other = victim_but(s, at, h);
    if (other)
      price_instead(r, "another buffer", away_ns(s, other), "its next use comes earlier");
  }
  h->is_stored = true;
  h->is_resident = false;
}

/* If `copy`, at position `at`, fills h and its source in HBM keeps its contents until h's last use, returns the
 * source.  Otherwise returns null. */
static MlirValue source_of(struct scan *s, const struct held *h, int at, MlirOperation copy) {
  if (!ir_is(copy, "memref.copy") || !mlirValueEqual(mlirOperationGetOperand(copy, 1), h->now))
    return (MlirValue){NULL};
  MlirValue from = mlirOperationGetOperand(copy, 0);
  if (!memrefs_is_dram(from))
    return (MlirValue){NULL};
  MlirOperation def = ir_defining_op(buffer_root(from));
  if (!mlirOperationIsNull(def) && !ir_is(def, "memref.alloc"))
    return (MlirValue){NULL}; /* a loop's result, which shares its buffer with other values */
  struct buffer_uses uses = buffer_find_uses(s->run->arena, buffer_root(from));
  for (int k = 0; k < uses.n; k++) {
    MlirOperation here = ir_ancestor_in(uses.v[k].op, s->block);
    if (!mlirValueIsNull(buffer_passed_on(uses.v[k].op, uses.v[k].operand)))
      return (MlirValue){NULL};
    /* operations outside of the block do not run in between */
    if (!mlirOperationIsNull(here) && (uses.v[k].access & BUFFER_WRITES) && !buffer_is_before(here, s->ops[at]))
      return (MlirValue){NULL};
  }
  MlirOperation owner = mlirOperationIsNull(def)
                            ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(buffer_root(from)))
                            : (MlirOperation){NULL};
  return mlirOperationIsNull(owner) || ir_is(owner, "func.func") ? from : (MlirValue){NULL};
}

/* Replaces the uses of `from` by `to` at the operation `at` and after it in the block.  Views that are used there are
 * rebuilt at the position of b. */
static void redirect(struct scan *s, struct ir_builder *b, MlirValue from, MlirValue to, MlirOperation at) {
  int n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(from); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    n++;
  MlirOpOperand *uses = arena_new_array(s->run->arena, MlirOpOperand, (size_t)n + 1);
  n = 0;
  for (MlirOpOperand u = mlirValueGetFirstUse(from); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    uses[n++] = u;
  while (n--) {
    MlirOperation op = mlirOpOperandGetOwner(uses[n]), here = ir_ancestor_in(op, s->block);
    if (!mlirOperationIsNull(here) && !buffer_is_before(here, at)) {
      mlirOperationSetOperand(op, mlirOpOperandGetOperandNumber(uses[n]), to);
      continue;
    }
    if (!buffer_is_view(op) || !mlirOperationEqual(here, op))
      continue;
    MlirOperation again = mlirOperationClone(op);
    mlirOperationSetOperand(again, 0, to);
    mlirBlockInsertOwnedOperationBefore(b->block, b->before, again);
    redirect(s, b, mlirOperationGetResult(op, 0), mlirOperationGetResult(again, 0), at);
    if (!ir_is_used(mlirOperationGetResult(again, 0)))
      mlirOperationDestroy(again);
    if (!ir_is_used(mlirOperationGetResult(op, 0)))
      mlirOperationDestroy(op); /* an unused view would keep the old buffer alive */
  }
}

/* Reloads h directly before the operation at position `at`. */
static void bring_back(struct scan *s, struct held *h, int at) {
  pass_step(s->run, h->alloc, "reload");
  struct ir_builder b = edit_before(s->run, s->ops[at]);
  MlirValue old = h->now;

  b.loc = mlirOperationGetLocation(h->alloc);
  h->now = memrefs_alloc(&b, mlirValueGetType(old));
  if (h->written.n) /* otherwise there is no slot */
    spill_parts_copy(&b, &h->written, h->slot, h->now);
  redirect(s, &b, old, h->now, s->ops[at]);
  h->is_resident = true;
  if (!h->written.n)
    return;
  struct remark *r =
      pass_remark(s->run, h->alloc, RULE_RELOAD, "reloaded from HBM, %" PRId64 " bytes per partition", h->bytes);
  remark_limit(r, "SBUF", "bytes per partition", h->bytes, s->capacity);
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

static enum status scan_block(struct pass_run *run, MlirBlock block, MlirBlock entry, int64_t capacity,
                              int64_t outside);

static enum status fit_inside(struct scan *s, MlirOperation op) {
  const int64_t left = s->capacity - resident_bytes(s);

  if (left >= 0 && mlirOperationGetNumRegions(op) && spill_peak(s->run->arena, op) > 0) {
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
      for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
           b = mlirBlockGetNextInRegion(b)) {
        enum status st = scan_block(s->run, b, s->entry, left, s->outside + resident_bytes(s));
        if (st)
          return st;
      }
    return ST_OK;
  }
  return pass_fail(s->run, op,
                   "needs %" PRId64 " bytes of SBUF per partition at once, there are %" PRId64
                   ": spilling does not help, because it uses all of them; use smaller tiles",
                   s->outside + resident_bytes(s) + spill_peak(s->run->arena, op), s->outside + s->capacity);
}

static enum status step(struct scan *s, int at) {
  for (int k = 0; k < s->n_held; k++) {
    struct held *h = &s->held[k];
    if (!is_used_at(h, at) || h->is_resident)
      continue;
    if (h->next > 0)
      bring_back(s, h, at);
    h->is_resident = true;
  }
  const int64_t inside = spill_peak(s->run->arena, s->ops[at]);
  for (struct held *h; resident_bytes(s) + inside > s->capacity && (h = victim_but(s, at, NULL));)
    put_away(s, h, at);
  if (resident_bytes(s) + inside > s->capacity) {
    enum status st = fit_inside(s, s->ops[at]);
    if (st)
      return st;
  }
  for (int k = 0; k < s->n_held; k++) {
    struct held *h = &s->held[k];
    if (!is_used_at(h, at))
      continue;
    for (; is_used_at(h, at); h->next++) {
      h->is_stored &= !h->wrote[h->next].n;
      spill_parts_add(s->run->arena, h->now, &h->written, &h->wrote[h->next]);
    }
    MlirValue from = source_of(s, h, at, s->ops[at]);
    if (!mlirValueIsNull(from)) {
      h->slot = from;
      h->is_stored = h->is_borrowed = true;
    }
    if (h->is_resident && h->next == h->n_uses)
      h->is_resident = false;
  }
  return ST_OK;
}

static enum status scan_block(struct pass_run *run, MlirBlock block, MlirBlock entry, int64_t capacity,
                              int64_t outside) {
  struct scan s = {.run = run, .block = block, .entry = entry, .capacity = capacity, .outside = outside};
  enum status st = ST_OK;

  if (spill_block_peak(run->arena, block) <= capacity)
    return ST_OK;
  spill_compute_in_place(run, block, entry, capacity);
  read_block(&s);
  for (int k = 0; !st && k < s.n_ops; k++)
    st = step(&s, k);
  return st;
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

static enum status read_capacity(struct pass_run *run, int64_t *out) {
  const char *capacity = pass_option(run, "sbuf-capacity");
  enum target target;
  enum status st = pass_target(run, &target);
  if (st)
    return st;
  *out = nisa_machine(target)->sbuf_bytes;
  if (!capacity)
    return ST_OK;
  char *end;
  const long long n = strtoll(capacity, &end, 10);
  if (*end || end == capacity)
    return pass_fail(run, run->module, "sbuf-capacity is a number of bytes per partition, not '%s'", capacity);
  if (n >= 0)
    *out = n;
  return ST_OK;
}

/* Spills with a capacity reduced by `less`, the bytes that the lowering itself needs. */
static enum status spill(struct pass_run *run, int64_t capacity, int64_t less) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  enum status st = ST_OK;

  for (int k = 0; !st && k < functions.n; k++) {
    MlirBlock body = ir_body(functions.v[k]);
    if (mlirBlockIsNull(body) || spill_block_peak(run->arena, body) <= capacity - less)
      continue;
    spill_move_large(run, body, capacity - less);
    st = scan_block(run, body, body, capacity - less, less);
  }
  return st;
}

/* Returns the largest amount of SBUF that the lowered module uses at once, or 0 if it cannot be lowered;
 * linalg-to-nisa reports that error. */
static int64_t lowered_peak(struct pass_run *run, int64_t capacity) {
  static const char *const names[] = {"insert-memref-dealloc", "linalg-to-nisa"};
  MlirOperation clone = mlirOperationClone(run->module);
  const char *options = arena_printf(run->arena, "sbuf-capacity=%" PRId64, capacity);
  struct pass_run trial = {
      .ir = run->ir, .module = clone, .target = run->target, .options = options, .arena = run->arena};
  struct diags ds;
  enum status st = ST_OK;
  int64_t sbuf = 0, psum;

  diags_init(&ds, run->arena);
  trial.ds = &ds;
  for (int k = 0; !st && k < 2; k++) {
    trial.def = pass_find(names[k]);
    st = trial.def->run(&trial);
  }
  if (!st)
    nisa_memory_peak(clone, run->target, run->arena, &sbuf, &psum);
  mlirOperationDestroy(clone);
  return sbuf;
}

static bool is_rather_full(struct pass_run *run, int64_t capacity) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++)
    if (spill_peak(run->arena, functions.v[k]) > capacity / 2)
      return true;
  return false;
}

static void remark_peaks(struct pass_run *run, int64_t capacity) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++) {
    const int64_t peak = spill_peak(run->arena, functions.v[k]);
    struct remark *r = NULL;
    if (peak > capacity)
      r = pass_remark(run, functions.v[k], RULE_SBUF_PEAK,
                      "buffers would take up to %" PRId64 " bytes of SBUF per partition, there are %" PRId64
                      ": what does not fit waits in HBM",
                      peak, capacity);
    else if (peak)
      r = pass_remark(run, functions.v[k], RULE_SBUF_PEAK,
                      "buffers take at most %" PRId64 " bytes of SBUF per partition, there are %" PRId64, peak,
                      capacity);
    remark_limit(r, "SBUF", "bytes per partition", peak, capacity);
  }
}

enum { TRIALS_MAX = 4 };

static enum status run_pass(struct pass_run *run) {
  int64_t capacity = 0, less = 0;
  enum status st = read_capacity(run, &capacity);

  if (!st) {
    remark_peaks(run, capacity);
    st = spill(run, capacity, 0);
  }
  for (int k = 0; !st && k < TRIALS_MAX && is_rather_full(run, capacity); k++) {
    const int64_t peak = lowered_peak(run, capacity);
    if (peak <= capacity)
      break;
    less += peak - capacity;
    st = spill(run, capacity, less);
  }
  return st;
}

const struct pass_def insert_spill_reload = {
    .name = "insert-spill-reload",
    .run = run_pass,
};
