/* infer_control: shape rules of call, while and conditional (XLA's operation semantics).
 *
 * The called computations determine the result, so they must be finished before their caller is built.
 */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(s) hlo_shape_text(a, s)

/* c must take one value per operand, each of its shape, and have a root. */
static enum status check_takes(struct arena *a, const struct hlo_instr *i, const struct hlo_computation *c, int n,
                               struct hlo_instr *const *operands, struct error *err) {
  const char *op = hlo_op_name(i->op);
  if (!c || !c->root)
    REFUSE("%s: a called computation is missing or has no root", op);
  if (c->n_params != n)
    REFUSE("%s: %s takes %d values, not %d", op, c->name, c->n_params, n);
  for (int k = 0; k < n; k++)
    if (!hlo_shape_equal(&c->params[k]->shape, &operands[k]->shape))
      REFUSE("%s: parameter %d of %s is %s, but it is given %s", op, k, c->name, TEXT(&c->params[k]->shape),
             TEXT(&operands[k]->shape));
  return ST_OK;
}

enum status hlo_infer_call(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (i->n_called != 1)
    REFUSE("call: needs exactly one called computation");
  enum status st = check_takes(a, i, i->called[0], i->n_operands, i->operands, err);
  if (!st)
    *out = i->called[0]->root->shape;
  return st;
}

enum status hlo_infer_while(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape truth = {.dtype = DT_BOOL};
  if (i->n_called != 2)
    REFUSE("while: needs a body and a condition");
  for (int k = 0; k < 2; k++) {
    enum status st = check_takes(a, i, i->called[k], 1, i->operands, err);
    if (st)
      return st;
  }
  const struct hlo_shape *next = &i->called[0]->root->shape, *goes_on = &i->called[1]->root->shape;
  if (!hlo_shape_equal(next, &i->operands[0]->shape))
    REFUSE("while: the body %s makes %s of %s", i->called[0]->name, TEXT(next), TEXT(&i->operands[0]->shape));
  if (!hlo_shape_equal(goes_on, &truth))
    REFUSE("while: the condition %s gives %s, not pred[]", i->called[1]->name, TEXT(goes_on));
  *out = *next;
  return ST_OK;
}

enum status hlo_infer_conditional(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                  struct error *err) {
  if (i->n_operands < 2 || i->n_called != i->n_operands - 1)
    REFUSE("conditional: %d branches for %d operands", i->n_called, i->n_operands - 1);
  const struct hlo_shape *index = &i->operands[0]->shape;
  if (index->rank || !(index->dtype == DT_I32 || (index->dtype == DT_BOOL && i->n_called == 2)))
    REFUSE("conditional: %s cannot choose between %d branches", TEXT(index), i->n_called);
  for (int k = 0; k < i->n_called; k++) {
    enum status st = check_takes(a, i, i->called[k], 1, i->operands + 1 + k, err);
    if (st)
      return st;
    if (!hlo_shape_equal(&i->called[k]->root->shape, &i->called[0]->root->shape))
      REFUSE("conditional: the branches give %s and %s", TEXT(&i->called[0]->root->shape),
             TEXT(&i->called[k]->root->shape));
  }
  *out = i->called[0]->root->shape;
  return ST_OK;
}
