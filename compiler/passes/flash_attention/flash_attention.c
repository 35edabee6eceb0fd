/* flash-attention: computes attention in blocks of queries, so that scores and weights stay on the chip.
 *
 *     %s = q @ k.T                                for each tile of queries, two of them in a block:
 *     %w = softmax(%s), operation by operation        %s = q[tile] @ k.T               [128, keys] in SBUF
 *     %o = %w @ v                            ==>      %e = exp(%s - rowmax(%s))
 *                                                     %o[tile] = (%e @ v) / rowsum(%e)
 *
 * An attention is two products and what is between them (match.c), in one shape (raise.c): operations on
 * [batch…, queries, keys], element by element, and on [batch…, queries, 1], with reductions along the keys.  Scales, masks
 * that are added or select, a temperature for each row, conversions, with or without a subtraction of the largest score:
 * each row of the result depends on that row only, whatever these operations are.  So they are repeated on a tile of rows as
 * they are.  The division by the row's sum is done after the second product, on fewer elements.
 *
 * Keys and values are loaded into SBUF once for each batch if they take at most an eighth of it each, the keys turned for
 * the tensor engine.  If a row of scores does not fit, the keys are in blocks, too (running.c), for which the form must be
 * that of a softmax.  plan.c chooses.
 *
 * The pass runs on tensors, before decompose-batch-matmul: batches are loops around the blocks.  The values in the loops
 * have layouts and tiles, so that infer-layout leaves them in SBUF.  An attention is left alone, with a remark, if a knob
 * names one of its values, if another operation reads one of them, if it fits in neither form, and if the batches have few
 * queries each.  With the option form=none, all are.  Linear in operations: between two products there are at most 64.
 */
#include "passes/flash_attention/flash_attention.h"

#include <string.h>

#include "nisa/nisa.h"
#include "passes/lib/edit.h"

static bool is_product(MlirOperation op, void *user) {
  struct product p;
  (void)user;
  return product_read(op, &p);
}

static void explain(struct pass_run *run, const struct attention *a, const struct attention_plan *p) {
  struct arena *m = run->arena;
  const bool runs = p->step < p->keys;
  const char *keys = runs ? arena_printf(m, "blocks of %lld of %lld keys, with a running maximum and sum",
                                         (long long)p->step, (long long)p->keys)
                          : arena_printf(m, "all %lld keys", (long long)p->keys);
  struct remark *r = pass_remark(run, a->mixed.op, RULE_FLASH_ATTENTION,
                                 "attention in blocks of %lld of %lld queries%s and %s; keys %s, values %s",
                                 (long long)p->rows, (long long)p->queries, p->batches > 1 ? " of two batches" : "",
                                 keys, p->keeps_keys ? "loaded once" : "loaded for each block",
                                 p->keeps_values ? "loaded once" : "loaded for each block");
  remark_cost(r, "%.1f MB through HBM", (double)attention_block_bytes(a, p) / 1e6);
  remark_limit(r, "SBUF", "bytes per partition", p->bytes, nisa_machine(run->target)->sbuf_bytes);
  if (p->scale >= 0)
    remark_reject(r, "scores times a constant",
                  "there are more of them than elements of the keys, which take the factor");
  if (runs)
    remark_reject(r, "whole rows of scores",
                  "128 of them do not fit into three quarters of SBUF with what is computed from them");
  else if (a->can_run)
    remark_reject_for(
        r, "a running maximum and sum over blocks of keys", NULL,
        arena_printf(m, "%lld cycles of the vector engine more for each batch", (long long)attention_running_cycles(p)),
        "the row of scores fits into SBUF, so that nothing has to be scaled again");
  remark_reject_for(
      r, "one operation after the other for all queries", NULL,
      arena_printf(m, "%.1f MB through HBM", (double)(attention_operand_bytes(a, p) + attention_plain_bytes(a)) / 1e6),
      "scores and weights that do not fit into SBUF go to HBM and back at each step");
}

static void explain_not(struct pass_run *run, MlirOperation mixed, const struct attention *a) {
  pass_remark(run, mlirOperationIsNull(a->who) ? mixed : a->who, RULE_PLAIN_ATTENTION,
              "attention is not computed in blocks: %s", a->why);
}

/* The product that the module had for a product which was raised. */
static MlirOperation before_raising(const struct raised *r, MlirOperation op) {
  for (int k = 0; k < r->n; k++)
    if (mlirValueEqual(r->v[k].made, ir_result(op)) && !r->v[k].is_replaced)
      return ir_defining_op(r->v[k].old);
  return op;
}

/* Rewrites what ends with the product if it is an attention.  *first: its first product, which is gone then. */
static bool is_rewritten(struct pass_run *run, MlirOperation mixed, struct raised *raised, struct attention *a,
                         MlirOperation *first) {
  struct attention_plan plan;
  const bool is_one = attention_read(run, mixed, raised, a);

  if (is_one && attention_is_narrow(a))
    a->why = "each batch has few queries, which would use as few partitions";
  else if (is_one && !attention_plan(run, a, &plan))
    a->why = "neither a row of scores nor a block of it fits into SBUF with all that is computed from it";
  if (a->why)
    explain_not(run, mixed, a);
  if (!is_one || a->why)
    return false;
  explain(run, a, &plan);
  *first = before_raising(raised, a->scores.op);
  attention_keep_raised(run, raised);
  attention_rewrite(run, a, &plan);
  return true;
}

static enum status run_pass(struct pass_run *run) {
  const char *form = pass_option(run, "form");
  enum status st = pass_target(run, &run->target);
  bool is_changed = false;

  if (st || (form && !strcmp(form, "none")))
    return st;
  if (form && strcmp(form, "blocks"))
    return pass_fail(run, run->module, "the form of attention is blocks or none, not '%s'", form);
  struct ir_ops ops = ir_collect(run->arena, run->module, is_product, NULL);
  struct attention *a = arena_new(run->arena, struct attention);
  for (int i = ops.n - 1; i >= 0; i--) { /* from the last one: what is erased comes earlier */
    struct raised raised;
    pass_step(run, ops.v[i], "attention-in-blocks");
    MlirOperation first, mixed = attention_raise(run, ops.v[i], &raised);
    if (!is_rewritten(run, mixed, &raised, a, &first)) {
      attention_lower(run, &raised);
      continue;
    }
    is_changed = true;
    for (int k = 0; k < i; k++)
      if (mlirOperationEqual(ops.v[k], first)) {
        memmove(&ops.v[k], &ops.v[k + 1], (size_t)(ops.n - k - 1) * sizeof *ops.v);
        i--;
        break;
      }
  }
  if (is_changed)
    edit_sweep(run);
  return ST_OK;
}

const struct pass_def flash_attention = {
    .name = "flash-attention",
    .run = run_pass,
};
