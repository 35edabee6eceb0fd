/* copies: copies values that knobs put into two memories or two orders, or that are better not in HBM.  See infer_layout.c.
 *
 * Results are always in HBM.  If a returned value is in SBUF and is read as well, it stays there for its readers and a
 * copy is returned:
 *
 *     layout(%v) {mem_space = 3}         %c = linalg.copy ins(%v)
 *     %w = linalg.abs ins(%v)      ==>   layout(%c) {mem_space = 4}
 *     return %v, %w                      return %c, %w
 *
 * If no other operation reads it, there is no copy: its tiles are computed in SBUF in any case (space.c warns).
 *
 * A reduction over the first of three or more dimensions writes each tile of its result once for each tile of that dimension.  If
 * it is returned, it is computed in SBUF, and a copy is returned:
 *
 *     %v = linalg.generic (max)          %v = linalg.generic (max)
 *     return %v                    ==>   %c = linalg.copy ins(%v)
 *                                        return %c
 *
 * The rows of a matmul's result are on the partitions, and a reduced dimension cannot be there.  If partition_dim asks
 * for another layout, the operation keeps its own, and its readers get a copy with the requested layout:
 *
 *     %v = linalg.matmul                 %v = linalg.matmul
 *     layout(%v) {partition_dim = 1} ==> %c = linalg.copy ins(%v)
 *     %w = linalg.abs ins(%v)            layout(%c) {partition_dim = 1}
 *                                        %w = linalg.abs ins(%c)
 */
#include "ir/build.h"
#include "ir/internal.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/infer_layout/infer_layout.h"

static bool is_read_elsewhere(MlirValue v, MlirOperation ret) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!layout_is_annotation(user) && !ir_is(user, "nkipy.fuse_op") && !mlirOperationEqual(user, ret))
      return true;
  }
  return false;
}

static MlirValue copy_of(struct ir_builder b, MlirValue v, const struct layout *at, MlirOperation knob) {
  b.loc = mlirOperationGetLocation(ir_defining_op(v));
  MlirValue empty = ir_empty_of(&b, mlirValueGetType(v));
  MlirValue copy = ir_result(ir_linalg_named(&b, "linalg.copy", 1, &v, empty, 0, NULL));
  layout_write(copy, at, mlirOperationGetLocation(knob));
  return copy;
}

void infer_copy_returned(struct pass_run *run) {
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++) {
      MlirValue v = mlirOperationGetOperand(ops.v[i], k);
      MlirOperation def = ir_defining_op(v);
      struct structured s;
      const struct layout l = layout_read(v);
      if (l.space == MEM_SBUF && !mlirOperationIsNull(def) && structured_read(def, &s) &&
          structured_is_annotatable(&s) && is_read_elsewhere(v, ops.v[i])) {
        pass_step(run, ops.v[i], "copy-returned");
        const struct layout at = {.space = MEM_SHARED_HBM, .partition_dim = l.partition_dim};
        mlirOperationSetOperand(ops.v[i], k, copy_of(edit_before(run, ops.v[i]), v, &at, l.layout_op));
        struct remark *r =
            pass_remark(run, def, RULE_COPY_RETURNED, "returned as a copy: the value itself is read from SBUF");
        const struct price_shape shape = price_shape_of(v);
        price_chosen(r, price_transfer_ns(run->target, price_bytes(&shape), shape.columns * shape.element_bytes));
        price_instead(r, "the value in HBM only", price_away_ns(run->target, v),
                      "its readers would load it from there");
        remark_reject(r, "returning the value itself", "it is read from SBUF, and the host reads HBM only");
      }
    }
}

/* True if each tile of the result is written several times, as long as the first loop is the outermost one, and SBUF has room for
 * all of it. */
static bool is_revisited(struct pass_run *run, MlirOperation op, const struct structured *s) {
  MlirValue v = ir_result(op);
  int64_t dims[STRUCTURED_LOOPS_MAX], bytes = nisa_element_bytes(ir_value_element(v));
  const struct layout l = layout_read(v);
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);

  if (s->kind != SK_REDUCTION || s->n_loops < 3 || !s->reduction[0] || s->extents[0] < 2 ||
      !mlirOperationIsNull(l.layout_op) || !mlirOperationIsNull(l.tile_op) || rank > STRUCTURED_LOOPS_MAX)
    return false;
  for (int d = 0; d < rank; d++)
    bytes *= dims[d] < 0 ? INT64_MAX / (bytes ? bytes : 1) : dims[d];
  return bytes / NISA_PARTITIONS <= nisa_machine(run->target)->sbuf_bytes / 4;
}

void infer_copy_revisited(struct pass_run *run) {
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++) {
      MlirValue v = mlirOperationGetOperand(ops.v[i], k);
      MlirOperation reader = ops.v[i], def = ir_defining_op(v);
      struct structured s;
      while (!mlirOperationIsNull(def) && (ir_is(def, "tensor.collapse_shape") || ir_is(def, "tensor.expand_shape")) &&
             !is_read_elsewhere(v, reader)) {
        reader = def;
        v = mlirOperationGetOperand(def, 0);
        def = ir_defining_op(v);
      }
      if (mlirOperationIsNull(def) || mlirOperationGetNumResults(def) != 1 || !structured_read(def, &s) ||
          is_read_elsewhere(v, reader) || !is_revisited(run, def, &s))
        continue;
      pass_step(run, def, "copy-revisited");
      struct ir_builder b = edit_after(run, def);
      b.loc = mlirOperationGetLocation(def);
      MlirValue copy =
          ir_result(ir_linalg_named(&b, "linalg.copy", 1, &v, ir_empty_of(&b, mlirValueGetType(v)), 0, NULL));
      edit_replace_data_uses(run->arena, v, copy, ir_defining_op(copy));
      struct remark *r = pass_remark(run, def, RULE_COPY_REVISITED, "reduced in SBUF and copied to HBM at the end");
      remark_cost(r, "1 write of each tile");
      remark_reject_for(
          r, "the returned value itself", NULL,
          arena_printf(run->arena, "%lld write%s of each tile", (long long)s.extents[0], s.extents[0] == 1 ? "" : "s"),
          "it is in HBM, where each round of the reduction would load and store it");
    }
}

/* True if partition_dim names a dimension that the operation cannot put on the partitions. */
static bool needs_relaying(const struct structured *s, const struct layout *l) {
  if (l->partition_dim < 0 || l->partition_dim >= mlirAffineMapGetNumResults(s->maps[s->n_inputs]))
    return false;
  if (s->kind == SK_MATMUL || s->kind == SK_FILL)
    return l->partition_dim > 0;
  if (s->kind != SK_REDUCTION)
    return false;
  const int loop = structured_map_loop(s->maps[s->n_inputs], l->partition_dim);
  return loop < 0 || s->reduction[loop];
}

/* Warns that the knob on the matmul causes a transposed copy, which the user may not expect. */
static void warn_of_matmul(struct pass_run *run, const struct layout *l) {
  const struct src_loc *at = ir_first_place(run->arena, mlirOperationGetLocation(l->layout_op));
  struct diag *d =
      diag_add(run->ds, DS_WARNING, DG_KNOB_IGNORED, at,
               "partition_dim %d has no effect on the matmul itself, which leaves the rows of its result on "
               "the partitions; the operations that read it get a transposed copy",
               l->partition_dim);
  d->stage = run->def->name;
  d->hint = "put the knob on the element-wise operation that reads the product";
}

static bool has_layout(MlirOperation op, void *user) {
  (void)user;
  return mlirOperationGetNumResults(op) == 1 && structured_read(op, &(struct structured){0}) &&
         !mlirOperationIsNull(layout_read(mlirOperationGetResult(op, 0)).layout_op);
}

void infer_copy_relaid(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, has_layout, NULL);

  for (int i = 0; i < ops.n; i++) {
    MlirValue v = ir_result(ops.v[i]);
    struct layout l = layout_read(v), wanted = l;
    struct structured s;
    if (!structured_read(ops.v[i], &s) || !needs_relaying(&s, &l))
      continue;
    if (s.kind == SK_MATMUL)
      warn_of_matmul(run, &l);
    pass_step(run, ops.v[i], "copy-relaid");
    wanted.layout_op = wanted.tile_op = (MlirOperation){NULL};
    wanted.n_loop = 0;
    MlirValue copy = copy_of(edit_after(run, ops.v[i]), v, &wanted, l.layout_op);
    edit_replace_data_uses(run->arena, v, copy, ir_defining_op(copy));
    mlirOperationDestroy(l.layout_op);
    struct remark *r = pass_remark(run, ops.v[i], RULE_COPY_RELAID,
                                   "copied, so that dimension %d lies across the partitions as asked", l.partition_dim);
    remark_reject(r, "no copy", "the operation cannot put that dimension on the partitions");
  }
}
