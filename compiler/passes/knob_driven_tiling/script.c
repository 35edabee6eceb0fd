/* script: see script.h. */
#include "passes/knob_driven_tiling/script.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"

#include "base/array.h"
#include "ir/query.h"

/* A line has about 150 bytes; a program has at most a few thousand tiled operations. */
enum { SCRIPT_MAX = 16 << 20 };

void script_init(struct script *s, struct pass_run *run) {
  *s = (struct script){.run = run, .at = mlirOperationGetLocation(run->module)};
  buf_init(&s->text, SCRIPT_MAX);
  buf_puts(&s->text, "module attributes {transform.with_named_sequence} {\n"
                     "transform.named_sequence @__transform_main(%arg0: !transform.any_op {transform.readonly}) {\n");
}

void script_clear(struct script *s) {
  buf_clear(&s->text);
}

/* Records the location of one more operation. */
static void add(struct script *s) {
  array_push(s->run->arena, &s->locs, s->at);
}

int script_match(struct script *s, const char *name, int64_t op_id) {
  add(s);
  buf_printf(&s->text,
             "%%%d = transform.structured.match ops{[\"%s\"]} attributes {nkipy.op_id = %" PRId64
             " : i64} in %%arg0 : (!transform.any_op) -> !transform.any_op\n",
             s->next, name, op_id);
  return s->next++;
}

void script_split(struct script *s, int h, int64_t at, int dim, int *head, int *rest) {
  const int both = s->next++;
  add(s);
  buf_printf(&s->text,
             "%%%d = transform.structured.split %%%d after %" PRId64 " {dimension = %d} : !transform.any_op\n", both, h,
             at, dim);
  *head = s->next++;
  *rest = s->next++;
  add(s);
  buf_printf(&s->text,
             "%%%d, %%%d = transform.split_handle %%%d : (!transform.any_op) -> (!transform.any_op, "
             "!transform.any_op)\n",
             *head, *rest, both);
}

int script_tile(struct script *s, int h, int n, const int64_t *tile) {
  const int inside = s->next++;
  int loops = 0;

  for (int k = 0; k < n; k++)
    loops += tile[k] != 0;
  if (!loops)
    return h;
  add(s);
  buf_printf(&s->text, "%%%d", inside);
  for (int k = 0; k < loops; k++)
    buf_printf(&s->text, ", %%%d", s->next++);
  buf_printf(&s->text, " = transform.structured.tile_using_for %%%d tile_sizes [", h);
  for (int k = 0; k < n; k++)
    buf_printf(&s->text, "%s%" PRId64, k ? ", " : "", tile[k]);
  buf_puts(&s->text, "] : (!transform.any_op) -> (!transform.any_op");
  for (int k = 0; k < loops; k++)
    buf_puts(&s->text, ", !transform.any_op");
  buf_puts(&s->text, ")\n");
  return inside;
}

void script_promote(struct script *s, int h, int operand, int mem_space) {
  const int v = s->next++;
  add(s);
  buf_printf(&s->text, "%%%d = transform.get_operand %%%d[%d] : (!transform.any_op) -> !transform.any_value\n", v, h,
             operand);
  add(s);
  buf_printf(&s->text, "%%%d = transform.structured.promote_tensor to %d : i32 %%%d : !transform.any_value\n",
             s->next++, mem_space, v);
}

int script_transpose_lhs(struct script *s, int h) {
  add(s);
  buf_printf(&s->text, "%%%d = transform.structured.transpose_matmul %%%d : (!transform.any_op) -> !transform.any_op\n",
             s->next, h);
  return s->next++;
}

int script_producer(struct script *s, int h, int operand) {
  add(s);
  buf_printf(&s->text, "%%%d = transform.get_producer_of_operand %%%d[%d] : (!transform.any_op) -> !transform.any_op\n",
             s->next, h, operand);
  return s->next++;
}

void script_annotate(struct script *s, int h, const char *name, int64_t value) {
  const int p = s->next++;
  add(s);
  buf_printf(&s->text, "%%%d = transform.param.constant %" PRId64 " : i64 -> !transform.param<i64>\n", p, value);
  add(s);
  buf_printf(&s->text, "transform.annotate %%%d \"%s\" = %%%d : !transform.any_op, !transform.param<i64>\n", h, name,
             p);
}

/* ---- the end ---------------------------------------------------------------------------------------- */

/* Replaces the locations, because they refer to lines of the script's text, which the user does not have.  The
 * sequence gets the location of its first operation, the yield that of the last operation before it. */
static void set_locations(struct script *s, MlirOperation sequence) {
  MlirBlock body = ir_body(sequence);
  const MlirLocation none = mlirOperationGetLocation(s->run->module);
  int k = 0;

  mlirOperationSetLocation(sequence, s->locs.n ? s->locs.v[0] : none);
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op), k++)
    mlirOperationSetLocation(op, k < s->locs.n ? s->locs.v[k] : s->locs.n ? s->locs.v[s->locs.n - 1] : none);
  assert(k == s->locs.n + 1); /* the last one is the yield */
}

enum status script_finish(struct script *s) {
  static const char end[] = "transform.yield\n}\n}\n";
  MlirModule parsed;
  struct buf whole;

  buf_init(&whole, SCRIPT_MAX);
  buf_append(&whole, buf_text(&s->text), s->text.len);
  buf_puts(&whole, end);
  enum status st =
      buf_status(&s->text) || buf_status(&whole)
          ? pass_fail(s->run, s->run->module, "the transform script is larger than %d MiB", SCRIPT_MAX >> 20)
          : ir_parse(s->run->ir, buf_text(&whole), whole.len, "transform script", s->run->arena, s->run->ds, &parsed);
  buf_clear(&whole);
  if (st)
    return st;
  MlirOperation sequence = mlirBlockGetFirstOperation(mlirModuleGetBody(parsed));
  set_locations(s, sequence);
  if (!mlirOperationIsNull(s->shown))
    mlirOperationDestroy(s->shown);
  mlirOperationRemoveFromParent(sequence);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(mlirModuleFromOperation(s->run->module)), sequence);
  s->shown = sequence;
  ir_set_attr(s->run->module, "transform.with_named_sequence", mlirUnitAttrGet(s->run->ir->ctx));
  mlirModuleDestroy(parsed);
  return ST_OK;
}

enum status script_show(struct script *s) {
  return s->run->steps ? script_finish(s) : ST_OK;
}
