/* eliminate_same_memspace_copy: removes copies within one memory that only duplicate data.
 *
 * a. A copy of a part of a buffer to itself is removed.
 *
 * b. A new buffer that starts as a copy is replaced by the original:
 *
 *        %s = memref.subview %x[%i, 0]                             %s = memref.subview %x[%i, 0]
 *        %b = memref.alloc() : …, 3 : i32                   ==>
 *        memref.copy %s, %b                                        linalg.… outs(%s)
 *        linalg.… outs(%b)
 *        memref.copy %b, %s
 *
 * c. A buffer that is computed only to be copied is computed in the target of the copy.  The target may be a slice with
 *    more dimensions of extent 1, as in the iterations of a batch:
 *
 *        %b = memref.alloc() : …<128x64xf32, 3 : i32>              %s = memref.subview %x[%i, 0]
 *        linalg.… outs(%b)                                  ==>    linalg.… outs(%s)
 *        %s = memref.subview %x[%i, 0]
 *        memref.copy %b, %s
 *
 * b and c must not change the value that any operation reads.  For b: while both buffers are used, nothing writes the
 * original; if the copy is written, it is copied back before the original is read again.  For c: all uses of the buffer
 * precede the copy, and between the first use and the copy nothing else reads or writes the target.  An on-chip buffer
 * must be written before it is read, since undefined contents count as zero.  (nkigen does the substitution of b
 * without looking at writes.)  Both buffers are in the same memory, or both in DRAM.  Views of the buffer get new
 * types.  The copy stays if the type of the buffer cannot change (it is returned, for example) or if a reshape crosses
 * partitions.  An argument has a type with unknown strides, which no reshape takes; its elements are contiguous, as a
 * memref.cast says:
 *
 *        %b = memref.alloc() : memref<8x4xf32, 1 : i32>            %b = memref.cast %arg : … to memref<8x4xf32, 4 : i32>
 *        memref.copy %arg, %b                               ==>
 *        %c = memref.collapse_shape %b [[0, 1]]                    %c = memref.collapse_shape %b [[0, 1]]
 *
 * Each round is linear in the uses of the copied buffers.  Rounds repeat while something changes.
 */
#include <string.h>

#include "nisa/nisa.h"
#include "passes/lib/access.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

static bool same_memory(MlirValue x, MlirValue y) {
  return memrefs_space(x) == memrefs_space(y) || (memrefs_is_dram(x) && memrefs_is_dram(y));
}

static bool is_alloc(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && ir_is(def, "memref.alloc");
}

static bool same_shape(MlirValue x, MlirValue y) {
  int64_t dx[IR_MEMREF_RANK_MAX], dy[IR_MEMREF_RANK_MAX];
  const int rank = ir_shape(x, IR_MEMREF_RANK_MAX, dx);

  if (rank != ir_shape(y, IR_MEMREF_RANK_MAX, dy) || !mlirTypeEqual(memrefs_element(x), memrefs_element(y)))
    return false;
  for (int d = 0; d < rank; d++)
    if (dx[d] != dy[d])
      return false;
  return true;
}

/* Returns the operation in block that is or contains the access. */
static MlirOperation position(const struct buffer_use *u, MlirBlock block) {
  return ir_ancestor_in(u->op, block);
}

static MlirValue used_value(const struct buffer_use *u) {
  return mlirOperationGetOperand(u->op, u->operand);
}

static bool is_same(MlirOperation x, MlirOperation y) {
  return mlirOperationEqual(x, y);
}

/* Moves the layout of `gone` to `by`, its replacement, if `by` is an allocation without a layout.  Otherwise erases
 * it. */
static void hand_over_layout(MlirValue gone, MlirValue by) {
  struct layout l = layout_read(gone);

  if (!mlirOperationIsNull(l.layout_op)) {
    MlirLocation loc = mlirOperationGetLocation(l.layout_op);
    if (is_alloc(by) && mlirOperationIsNull(layout_read(by).layout_op)) {
      l.space = memrefs_space(by);
      l.n_loop = 0;
      layout_write(by, &l, loc);
    }
    for (struct layout m = l; !mlirOperationIsNull(m.layout_op); m = layout_read(gone))
      mlirOperationDestroy(m.layout_op);
  }
}

static void become(MlirValue gone, MlirValue by) {
  hand_over_layout(gone, by);
  mlirValueReplaceAllUsesOfWith(gone, by);
  memrefs_retype_views(by);
}

/* Follows reshapes and casts of v that only add or drop dimensions of extent 1, and returns the value they start
 * from. */
static MlirValue behind_unit_dims(MlirValue v) {
  for (;;) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) ||
        (!ir_is(def, "memref.expand_shape") && !ir_is(def, "memref.collapse_shape") && !ir_is(def, "memref.cast")))
      return v;
    MlirValue source = mlirOperationGetOperand(def, 0);
    int64_t x[IR_MEMREF_RANK_MAX], y[IR_MEMREF_RANK_MAX];
    const int nx = ir_shape(v, IR_MEMREF_RANK_MAX, x), ny = ir_shape(source, IR_MEMREF_RANK_MAX, y);
    int i = 0, j = 0;
    for (;; i++, j++) {
      while (i < nx && x[i] == 1)
        i++;
      while (j < ny && y[j] == 1)
        j++;
      if (i == nx || j == ny || x[i] != y[j])
        break;
    }
    if (i != nx || j != ny)
      return v;
    v = source;
  }
}

/* True if v is a reshape of an on-chip buffer, so that data would have to come from other partitions. */
static bool is_reshaped(MlirValue v) {
  if (!memrefs_is_on_chip(v))
    return false;
  for (MlirOperation def; !mlirOperationIsNull(def = ir_defining_op(v)) && buffer_is_view(def);
       v = mlirOperationGetOperand(def, 0))
    if (!ir_is(def, "memref.subview") && !ir_is(def, "memref.cast") && mlirValueEqual(behind_unit_dims(v), v))
      return true;
  return false;
}

/* ---- b: a new buffer that starts as a copy --------------------------------------------------------------------- */

struct renaming {
  MlirOperation copy;
  MlirValue from, to; /* to: the new buffer */
  MlirBlock block;
  struct buffer_uses of_to, of_root;
  MlirOperation last; /* the last operation that uses `to` */
  MlirOperation back; /* the copy of `to` back to `from`, or null */
};

/* Finds the last use, the copy back and writes of the new buffer.  Returns false if a use is not after the copy in
 * its block. */
static bool read_renaming(struct renaming *r, bool *is_written) {
  r->last = r->copy;
  r->back = (MlirOperation){NULL};
  *is_written = false;
  for (int k = 0; k < r->of_to.n; k++) {
    const struct buffer_use *u = &r->of_to.v[k];
    MlirOperation here = position(u, r->block);
    if (is_same(u->op, r->copy) || layout_is_annotation(u->op))
      continue;
    if (mlirOperationIsNull(here) || !buffer_is_before(r->copy, here))
      return false;
    if (buffer_is_before(r->last, here))
      r->last = here;
    *is_written |= (u->access & BUFFER_WRITES) != 0;
    if (ir_is(u->op, "memref.copy") && u->operand == 0 && is_same(here, u->op) &&
        mlirValueEqual(used_value(u), r->to) && buffer_same_part(mlirOperationGetOperand(u->op, 1), r->from))
      r->back = u->op;
  }
  return true;
}

/* True if an operation after op writes the new buffer. */
static bool written_after(const struct renaming *r, MlirOperation op) {
  for (int k = 0; k < r->of_to.n; k++)
    if ((r->of_to.v[k].access & BUFFER_WRITES) && buffer_is_before(op, position(&r->of_to.v[k], r->block)))
      return true;
  return false;
}

/* True if an access to the original between the copy and the last use of the new buffer would read or write other
 * data. */
static bool original_disturbs(const struct renaming *r, bool is_written) {
  MlirValue root = buffer_root(r->from);
  MlirOperation end = is_written ? r->back : r->last;

  for (int k = 0; k < r->of_root.n; k++) {
    const struct buffer_use *u = &r->of_root.v[k];
    MlirOperation here = position(u, r->block);
    if (is_same(u->op, r->copy) || (!mlirOperationIsNull(r->back) && is_same(u->op, r->back)) || !u->access)
      continue;
    if (mlirOperationIsNull(here)) /* in another block: before or after the whole range */
      continue;
    const bool between = buffer_is_before(r->copy, here) && !buffer_is_before(end, here);
    const bool late = is_written && buffer_is_before(end, here) && !buffer_is_before(r->last, here) &&
                      (u->access & BUFFER_WRITES); /* `to` is still read after the copy back */
    if (((between && (is_written || (u->access & BUFFER_WRITES))) || late) &&
        !buffer_disjoint(root, used_value(u), r->from))
      return true;
  }
  return false;
}

/* Returns the type that a whole argument has when its elements are contiguous, as those of all arguments are; null for other
 * values. */
static MlirType contiguous_argument(struct pass_run *run, MlirValue v) {
  int64_t dims[IR_MEMREF_RANK_MAX];

  if (!mlirValueIsABlockArgument(v) || !memrefs_is_dram(v) ||
      !ir_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), "func.func"))
    return (MlirType){NULL};
  return memrefs_type(run->ir->ctx, memrefs_element(v), ir_shape(v, IR_MEMREF_RANK_MAX, dims), dims, memrefs_space(v));
}

static void price_dropped(struct remark *r, double ns, const char *reason) {
  price_chosen(r, 0);
  price_instead(r, "the copy", ns, reason);
}

/* Replaces the new buffer by the original.  *back is the copy back that was erased, or null. */
static bool rename_copy(struct pass_run *run, MlirOperation copy, MlirOperation *back) {
  struct renaming r = {.copy = copy,
                       .from = mlirOperationGetOperand(copy, 0),
                       .to = mlirOperationGetOperand(copy, 1),
                       .block = mlirOperationGetBlock(copy)};
  bool is_written;

  if (!is_alloc(r.to) || !same_shape(r.from, r.to) ||
      !mlirBlockEqual(mlirOperationGetBlock(ir_defining_op(r.to)), r.block))
    return false;
  MlirValue root = buffer_root(r.from);
  MlirType type = mlirValueGetType(r.from);
  if (mlirValueEqual(root, r.to))
    return false;
  if (!memrefs_can_retype(r.to, type)) {
    type = contiguous_argument(run, r.from);
    if (mlirTypeIsNull(type) || !memrefs_can_retype(r.to, type))
      return false;
  }
  r.of_to = buffer_find_uses(run->arena, r.to);
  r.of_root = buffer_find_uses(run->arena, root);
  if (!read_renaming(&r, &is_written))
    return false;
  if (is_written && (mlirOperationIsNull(r.back) || written_after(&r, r.back)))
    return false;
  if (original_disturbs(&r, is_written))
    return false;
  struct remark *said = pass_remark(
      run, copy, RULE_RENAME_BUFFER, "removed a copy within %s: the new buffer is the old one%s",
      layout_space_name(memrefs_space(r.from)), mlirOperationIsNull(r.back) ? "" : ", and nothing is copied back");
  price_dropped(said, (mlirOperationIsNull(r.back) ? 1 : 2) * price_copy_ns(run->target, r.to),
                "nothing writes the old buffer as long as the new one is read");
  MlirOperation alloc = ir_defining_op(r.to);
  *back = r.back;
  if (!mlirOperationIsNull(r.back))
    mlirOperationDestroy(r.back);
  MlirValue by = r.from;
  if (!mlirTypeEqual(type, mlirValueGetType(by))) {
    struct ir_builder b = edit_before(run, copy);
    by = ir_op1(&b, "memref.cast", type, 1, &by);
  }
  mlirOperationDestroy(copy);
  become(r.to, by);
  mlirOperationDestroy(alloc);
  return true;
}

/* ---- c: a buffer that is computed to be copied ----------------------------------------------------------------- */

/* Moves op and the definitions of its operands before `at`.  Returns false if that is not possible.  If dry is true,
 * nothing changes. */
static bool hoist(MlirOperation op, MlirOperation at, bool dry) {
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(at)) ||
      buffer_is_before(op, at))
    return true; /* defined outside the block, or already before `at` */
  if (!ir_is_of(op, "arith.") && !buffer_is_view(op) && !ir_is(op, "memref.alloc"))
    return false;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    if (!hoist(ir_defining_op(mlirOperationGetOperand(op, k)), at, dry))
      return false;
  if (!dry)
    mlirOperationMoveBefore(op, at);
  return true;
}

/* Drops dimensions of extent 1 of v so that it has the shape of `like`.  Returns null if there is no such view. */
static MlirValue in_shape_of(struct ir_builder *b, MlirValue v, MlirValue like) {
  int64_t x[IR_MEMREF_RANK_MAX], y[IR_MEMREF_RANK_MAX], zero[IR_MEMREF_RANK_MAX] = {0};
  bool drop[IR_MEMREF_RANK_MAX] = {false};
  const int nx = ir_shape(v, IR_MEMREF_RANK_MAX, x), ny = ir_shape(like, IR_MEMREF_RANK_MAX, y);
  int j = 0;

  if (same_shape(v, like))
    return v;
  for (int i = 0; i < nx; i++) {
    if (j < ny && x[i] == y[j] && nx - i - 1 >= ny - j - 1)
      j++;
    else if (x[i] == 1)
      drop[i] = true;
    else
      return (MlirValue){NULL};
  }
  if (j != ny)
    return (MlirValue){NULL};
  return memrefs_subview(b, v, &(struct memrefs_part){.offset = zero, .size = x, .drop = drop});
}

/* Returns the first operation in the copy's block that uses the buffer.  Returns null if a use comes after the copy,
 * or if the first use of an on-chip buffer does not write all of it. */
static MlirOperation first_use(const struct buffer_uses *uses, MlirOperation copy, MlirValue buffer) {
  MlirOperation first = copy;
  bool writes_all = true;

  for (int k = 0; k < uses->n; k++) {
    const struct buffer_use *u = &uses->v[k];
    MlirOperation here = ir_ancestor_in(u->op, mlirOperationGetBlock(copy));
    if (layout_is_annotation(u->op) || is_same(u->op, copy))
      continue;
    if (mlirOperationIsNull(here) || !buffer_is_before(here, copy))
      return (MlirOperation){NULL};
    if (is_same(here, first) ? !writes_all || u->access != BUFFER_WRITES : buffer_is_before(here, first)) {
      writes_all = u->access == BUFFER_WRITES && is_same(here, u->op) && mlirValueEqual(used_value(u), buffer);
      first = here;
    }
  }
  if (is_same(first, copy) || (memrefs_is_on_chip(buffer) && !writes_all))
    return (MlirOperation){NULL};
  return first;
}

/* True if an operation from `first` up to the copy accesses the target. */
static bool target_is_touched(struct pass_run *run, MlirValue target, MlirOperation first, MlirOperation copy) {
  MlirValue root = buffer_root(target);
  struct buffer_uses uses = buffer_find_uses(run->arena, root);

  for (int k = 0; k < uses.n; k++) {
    MlirOperation here = position(&uses.v[k], mlirOperationGetBlock(copy));
    if (mlirOperationIsNull(here) || is_same(uses.v[k].op, copy) || !uses.v[k].access ||
        buffer_is_before(here, first) || buffer_is_before(copy, here))
      continue;
    if (!buffer_disjoint(root, used_value(&uses.v[k]), target))
      return true;
  }
  return false;
}

/* Returns the first operation in the buffer's block that uses it, views included. */
static MlirOperation first_user(MlirValue buffer, MlirOperation copy) {
  MlirOperation first = copy;

  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, mlirOperationGetBlock(copy));
    if (!layout_is_annotation(op) && !mlirOperationIsNull(here) && buffer_is_before(here, first))
      first = here;
  }
  return first;
}

static bool compute_in_place(struct pass_run *run, MlirOperation copy) {
  MlirValue from = mlirOperationGetOperand(copy, 0), to = mlirOperationGetOperand(copy, 1);
  MlirValue buffer = behind_unit_dims(from);
  MlirOperation alloc = ir_defining_op(buffer);

  if (!is_alloc(buffer) || !mlirBlockEqual(mlirOperationGetBlock(alloc), mlirOperationGetBlock(copy)) ||
      mlirValueEqual(buffer_root(to), buffer))
    return false;
  struct buffer_uses uses = buffer_find_uses(run->arena, buffer);
  MlirOperation first = first_use(&uses, copy, buffer);
  if (mlirOperationIsNull(first) || target_is_touched(run, to, first, copy))
    return false;
  MlirOperation at = first_user(buffer, copy);
  if (!hoist(ir_defining_op(to), at, true))
    return false;
  hoist(ir_defining_op(to), at, false);
  struct ir_builder b = edit_before(run, at);
  b.loc = mlirOperationGetLocation(copy);
  MlirValue target = in_shape_of(&b, to, buffer);
  if (mlirValueIsNull(target))
    return false;
  if (!memrefs_can_retype(buffer, mlirValueGetType(target))) {
    if (!mlirValueEqual(target, to))
      mlirOperationDestroy(ir_defining_op(target));
    return false;
  }
  price_dropped(pass_remark(run, copy, RULE_COMPUTE_AT_TARGET,
                            "removed a copy within %s: the value is computed where it was copied to",
                            layout_space_name(memrefs_space(to))),
                price_copy_ns(run->target, to), "nothing else uses the target before");
  mlirOperationDestroy(copy);
  become(buffer, target);
  mlirOperationDestroy(alloc);
  return true;
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

/* True if no engine starts at the first partition of v. */
static bool starts_between(MlirValue v) {
  struct access a;

  return memrefs_space(v) == MEM_SBUF && access_read(v, &a) && a.rank > 0 &&
         !access_starts_well(&a.at[0], a.size[0], NISA_PARTITIONS, a.size[0]);
}

static bool visit(struct pass_run *run, MlirOperation copy, bool has_partitions, MlirOperation *back) {
  MlirValue from = mlirOperationGetOperand(copy, 0), to = mlirOperationGetOperand(copy, 1);

  if (memrefs_space(from) == MEM_NONE || !same_memory(from, to))
    return false;
  if (buffer_same_part(from, to)) {
    price_dropped(pass_remark(run, copy, RULE_DROP_SELF_COPY, "removed a copy of a part of %s to itself",
                              layout_space_name(memrefs_space(to))),
                  price_copy_ns(run->target, to), "it changes nothing");
    mlirOperationDestroy(copy);
    return true;
  }
  if (is_reshaped(from) || is_reshaped(to) || (has_partitions && (starts_between(from) || starts_between(to))))
    return false;
  return rename_copy(run, copy, back) || compute_in_place(run, copy);
}

static void erase_unused_views(struct pass_run *run) {
  struct ir_ops views = ir_collect(run->arena, run->module, NULL, NULL);

  for (int k = views.n - 1; k >= 0; k--)
    if (buffer_is_view(views.v[k]) && !ir_is_used(mlirOperationGetResult(views.v[k], 0))) {
      pass_step(run, views.v[k], "drop-unused-view");
      mlirOperationDestroy(views.v[k]);
    }
}

void memrefs_drop_copies(struct pass_run *run, bool has_partitions) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "memref.copy");
  bool again;

  do { /* a removed copy can make others removable */
    again = false;
    for (int k = 0; k < copies.n; k++) {
      MlirOperation back = {NULL};
      if (mlirOperationIsNull(copies.v[k]))
        continue;
      pass_step(run, copies.v[k], "drop-copy");
      if (!visit(run, copies.v[k], has_partitions, &back))
        continue;
      again = true;
      copies.v[k] = (MlirOperation){NULL};
      for (int j = 0; !mlirOperationIsNull(back) && j < copies.n; j++)
        if (mlirOperationEqual(copies.v[j], back))
          copies.v[j] = (MlirOperation){NULL};
    }
  } while (again);
  erase_unused_views(run);
}

static enum status run_pass(struct pass_run *run) {
  memrefs_drop_copies(run, false);
  return ST_OK;
}

const struct pass_def eliminate_same_memspace_copy = {
    .name = "eliminate-same-memspace-copy",
    .run = run_pass,
};
