/* join: values that a loop computes only to be joined are written where they belong, tile by tile.
 *
 *     %a, %b = scf.for %i … iter_args(%p = %e, %q = %e) {           %d = tensor.empty
 *       %s = insert_slice %x into %p[%i, 0]                         %c = scf.for %i … iter_args(%r = %d) {
 *       %t = insert_slice %y into %q[%i, 0]                           %s = insert_slice %x into %r[%i, 0]
 *       yield %s, %t }                                       ==>      %t = insert_slice %y into %s[%i, 64]
 *     %f = insert_slice %a into %empty[0, 0]                          yield %t }
 *     %c = insert_slice %b into %f[0, 64]
 *
 * Without this the whole of %a and %b lies in SBUF, or goes to HBM and back, and is stored after the loop instead of beside it.
 *
 * Only where the joined value is in HBM and nothing in it is read before the end; what the loop carries is only inserted into,
 * each part is read by its insertion only, and the parts do not overlap.  So the order of the insertions does not matter.  Linear
 * in the insertions.
 */
#include <assert.h>

#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/edit.h"
#include "passes/lib/slice.h"

enum { PARTS_MAX = 8 };

struct join {
  struct pass_run *run;
  MlirOperation loop;
  int n;
  struct slice part[PARTS_MAX]; /* the insertions of the loop's results */
};

/* The use of v that is no annotation, if it is the only one; a null operand otherwise. */
static MlirOpOperand only_use(MlirValue v) {
  MlirOpOperand found = {NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      continue;
    if (!mlirOpOperandIsNull(found))
      return (MlirOpOperand){NULL};
    found = u;
  }
  return found;
}

static bool is_fresh(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && ir_is(def, "tensor.empty");
}

static intptr_t number_of(const struct slice *part) {
  return mlirOpResultGetResultNumber(slice_part(part));
}

/* What the loop has of the part in a round, before it inserts. */
static MlirValue carried_of(const struct join *j, const struct slice *part) {
  return mlirBlockGetArgument(ir_body(j->loop), 1 + number_of(part));
}

/* The next insertion in the round after the value v of a part; null at the end of the round.  *ok: there is nothing else. */
static MlirOperation next_insert(const struct join *j, MlirValue v, bool *ok) {
  MlirOpOperand u = only_use(v);
  MlirOperation op = mlirOpOperandIsNull(u) ? (MlirOperation){NULL} : mlirOpOperandGetOwner(u);
  struct slice s;

  *ok = !mlirOperationIsNull(op) && mlirBlockEqual(mlirOperationGetBlock(op), ir_body(j->loop));
  if (*ok && ir_is(op, "scf.yield"))
    return (MlirOperation){NULL};
  *ok = *ok && slice_read(op, &s) && s.is_insert && mlirOpOperandGetOperandNumber(u) == 1;
  return *ok ? op : (MlirOperation){NULL};
}

static bool is_only_inserted(const struct join *j, const struct slice *part) {
  MlirValue v = carried_of(j, part);
  bool ok;
  for (MlirOperation op; !mlirOperationIsNull(op = next_insert(j, v, &ok)); v = ir_result(op))
    ;
  MlirOperation yield = mlirBlockGetTerminator(ir_body(j->loop));
  return ok && mlirValueEqual(mlirOperationGetOperand(yield, number_of(part)), v);
}

/* True if the part has no element in common with those before it. */
static bool is_disjoint(const struct join *j, const struct slice *s) {
  for (int k = 0; k < j->n; k++) {
    const struct slice *t = &j->part[k];
    bool meet = true;
    for (int d = 0; d < s->rank; d++)
      meet &= s->offset[d] < t->offset[d] + t->size[d] && t->offset[d] < s->offset[d] + s->size[d];
    if (meet)
      return false;
  }
  return true;
}

/* Reads an insertion of a whole result of the loop, of any loop if none is known yet. */
static bool read_part(struct join *j, MlirOperation op) {
  struct slice *s = &j->part[j->n];

  if (j->n == PARTS_MAX || !slice_read(op, s) || !s->is_insert)
    return false;
  for (int d = 0; d < s->rank; d++)
    if (s->offset[d] == SLICE_DYNAMIC)
      return false;
  MlirValue v = slice_part(s);
  MlirOperation loop = ir_defining_op(v);
  if (mlirOperationIsNull(loop) || !ir_is(loop, "scf.for") || (j->n && !mlirOperationEqual(loop, j->loop)) ||
      !mlirBlockEqual(mlirOperationGetBlock(loop), mlirOperationGetBlock(op)) ||
      mlirShapedTypeGetRank(mlirValueGetType(v)) != s->rank || mlirOpOperandIsNull(only_use(v)))
    return false;
  j->loop = loop;
  return is_fresh(mlirOperationGetOperand(loop, 3 + number_of(s))) && is_disjoint(j, s) && is_only_inserted(j, s);
}

/* Reads the insertions that begin with `first`, as far as they are of one loop. */
static bool read_join(struct pass_run *run, MlirOperation first, struct join *j) {
  *j = (struct join){.run = run};
  if (!is_fresh(mlirOperationGetOperand(first, 1)))
    return false;
  MlirOpOperand u;
  MlirOperation op = first, end = first;
  while (read_part(j, op)) {
    j->n++;
    end = op;
    u = only_use(ir_result(op));
    if (mlirOpOperandIsNull(u) || !ir_is(mlirOpOperandGetOwner(u), "tensor.insert_slice") ||
        mlirOpOperandGetOperandNumber(u) != 1)
      break;
    op = mlirOpOperandGetOwner(u);
  }
  if (!j->n)
    return false;
  /* the annotation is at the last of all insertions, which may be a later one */
  MlirValue last = ir_result(end);
  while (!mlirOpOperandIsNull(u = only_use(last)) && ir_is(mlirOpOperandGetOwner(u), "tensor.insert_slice") &&
         mlirOpOperandGetOperandNumber(u) == 1)
    last = ir_result(mlirOpOperandGetOwner(u));
  const enum mem_space space = layout_read(last).space;
  return space == MEM_HBM || space == MEM_SHARED_HBM;
}

/* ---- the new loop -------------------------------------------------------------------------------------------------- */

/* Lets the insertion of a round go into `into`, at the part's place in it.  Returns what comes out. */
static MlirValue insert_into(const struct join *j, MlirOperation op, const struct slice *part, MlirValue into) {
  struct slice s;
  const bool is_slice = slice_read(op, &s);
  assert(is_slice);
  (void)is_slice;
  for (int d = 0; d < s.rank; d++)
    if (s.offset[d] != SLICE_DYNAMIC) {
      s.offset[d] += part->offset[d];
    } else if (part->offset[d]) {
      struct ir_builder b = edit_before(j->run, op);
      s.at[d] = ir_binary(&b, "arith.addi", s.at[d], ir_index(&b, part->offset[d]));
    }
  slice_set(&s, into);
  mlirValueSetType(ir_result(op), mlirValueGetType(into));
  return ir_result(op);
}

static void erase_annotations(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v), next; !mlirOpOperandIsNull(u); u = next) {
    next = mlirOpOperandGetNextUse(u);
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
}

/* Moves the body of the loop to `inside`, where the last argument is the joined value.  kept: the numbers of what the loop
 * carries besides.  Returns the joined value at the end of a round. */
static MlirValue move_body(const struct join *j, const struct ir_builder *inside, int n_kept, const int *kept) {
  MlirBlock from = ir_body(j->loop), to = inside->block;
  struct table part_of = {.arena = j->run->arena}; /* insertion of a round -> its part */
  MlirOperation end = mlirBlockGetTerminator(from);
  bool ok;

  for (int k = 0; k < j->n; k++) {
    MlirValue v = carried_of(j, &j->part[k]);
    for (MlirOperation op; !mlirOperationIsNull(op = next_insert(j, v, &ok)); v = ir_result(op))
      table_put(&part_of, op.ptr, (void *)&j->part[k]);
  }
  mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 0), mlirBlockGetArgument(to, 0));
  for (int k = 0; k < n_kept; k++)
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 1 + kept[k]), mlirBlockGetArgument(to, 1 + k));
  MlirValue joined = mlirBlockGetArgument(to, 1 + n_kept);
  for (MlirOperation op = mlirBlockGetFirstOperation(from); !mlirOperationEqual(op, end);
       op = mlirBlockGetFirstOperation(from)) {
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
    const struct slice *part = table_get(&part_of, op.ptr);
    if (part)
      joined = insert_into(j, op, part, joined);
  }
  return joined;
}

static int64_t bytes_of(MlirValue v) {
  int64_t dims[STRUCTURED_LOOPS_MAX], n = nisa_element_bytes(ir_value_element(v));
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  for (int d = 0; d < rank; d++)
    n *= dims[d];
  return n;
}

/* Both choices store the parts once; those of their own are kept until the loop ends, in SBUF as far as they fit there, and in HBM
 * otherwise, which they then go to and come from once more. */
static void explain(const struct join *j, MlirOperation last) {
  struct arena *a = j->run->arena;
  const int64_t sbuf = nisa_machine(j->run->target)->sbuf_bytes * NISA_PARTITIONS;
  int64_t bytes = 0;

  for (int k = 0; k < j->n; k++)
    bytes += bytes_of(slice_part(&j->part[k]));
  const double moved = (double)bytes / 1e6;
  struct remark *r = pass_remark(j->run, last, RULE_FUSE_ROWS,
                                 "the loop over tiles of rows writes %d part%s of it: %.2f MB to HBM beside the loop",
                                 j->n, j->n > 1 ? "s" : "", moved);
  remark_cost(r, "%.2f MB to and from HBM", moved);
  remark_reject_for(r, "parts of their own", NULL,
                    arena_printf(a, "%.2f MB to and from HBM", bytes > sbuf ? 3 * moved : moved),
                    bytes > sbuf ? "they would be copied after the loop"
                                 : "they would take SBUF until the loop ends, and be copied after it, not beside it");
}

static void rewrite(struct join *j) {
  const int n = (int)mlirOperationGetNumResults(j->loop);
  struct ir_builder b = edit_before(j->run, j->loop), inside;
  int *kept = arena_new_array(j->run->arena, int, (size_t)n + 1), n_kept = 0;
  MlirValue *carried = arena_new_array(j->run->arena, MlirValue, (size_t)n + 1);
  MlirOperation last = j->part[j->n - 1].op;

  explain(j, last);
  for (int k = 0; k < n; k++) {
    bool is_part = false;
    for (int i = 0; i < j->n; i++)
      is_part |= number_of(&j->part[i]) == k;
    if (is_part)
      continue;
    carried[n_kept] = mlirOperationGetOperand(j->loop, 3 + k);
    kept[n_kept++] = k;
  }
  carried[n_kept] = ir_empty_of(&b, mlirValueGetType(ir_result(last)));
  MlirRegion region = ir_loop_region(&b, n_kept + 1, carried, &inside);
  MlirValue joined = move_body(j, &inside, n_kept, kept);
  MlirOperation yield = mlirBlockGetTerminator(ir_body(j->loop));
  MlirValue *yields = arena_new_array(j->run->arena, MlirValue, (size_t)n_kept + 1);
  for (int k = 0; k < n_kept; k++)
    yields[k] = mlirOperationGetOperand(yield, kept[k]);
  yields[n_kept] = joined;
  ir_yield(&inside, n_kept + 1, yields);
  MlirValue bounds[3];
  for (int k = 0; k < 3; k++)
    bounds[k] = mlirOperationGetOperand(j->loop, k);
  MlirOperation loop = ir_for(&b, bounds, n_kept + 1, carried, region);
  for (int k = 0; k < n_kept; k++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(j->loop, kept[k]), mlirOperationGetResult(loop, k));
  mlirValueReplaceAllUsesOfWith(ir_result(last), mlirOperationGetResult(loop, n_kept));
  while (j->n--) {
    erase_annotations(slice_part(&j->part[j->n]));
    erase_annotations(ir_result(j->part[j->n].op));
    mlirOperationDestroy(j->part[j->n].op);
  }
  mlirOperationDestroy(j->loop);
}

void fuse_join(struct pass_run *run) {
  struct ir_ops inserts = ir_collect_named(run->arena, run->module, "tensor.insert_slice");
  struct join *joins = arena_new_array(run->arena, struct join, (size_t)inserts.n + 1);
  int n = 0;

  for (int k = 0; k < inserts.n; k++) /* all are found before the first is changed, which destroys insertions */
    n += read_join(run, inserts.v[k], &joins[n]);
  for (int k = 0; k < n; k++) {
    bool is_changed = false; /* an earlier one has replaced its loop */
    for (int i = 0; i < k; i++)
      is_changed |= mlirOperationEqual(joins[i].loop, joins[k].loop);
    if (!is_changed) {
      pass_step(run, joins[k].loop, "join-parts");
      rewrite(&joins[k]);
    }
  }
}
