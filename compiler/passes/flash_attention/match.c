/* match: finds the operations of an attention.  See flash_attention.h. */
#include "passes/flash_attention/flash_attention.h"

#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

/* True if v is [batch…, queries, last] of floats. */
static bool has_shape(const struct attention *a, MlirValue v, int64_t last) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const struct product *p = &a->mixed;

  if (ir_shape(v, STRUCTURED_LOOPS_MAX, dims) != p->rank)
    return false;
  for (int d = 0; d < p->rank - 1; d++)
    if (dims[d] != p->s.extents[structured_map_loop(p->s.maps[2], d)])
      return false;
  return dims[p->rank - 1] == last;
}

static bool is_scores(const struct attention *a, MlirValue v) {
  return has_shape(a, v, a->mixed.s.extents[a->mixed.k]);
}

static bool is_row(const struct attention *a, MlirValue v) {
  return has_shape(a, v, 1);
}

static bool is_float(MlirValue v) {
  MlirType t = ir_value_element(v);
  return mlirTypeIsAF32(t) || mlirTypeIsABF16(t) || mlirTypeIsAF16(t);
}

/* True if a product starts from zero and multiplies floats. */
static bool is_plain(const struct product *p) {
  MlirOperation init = ir_defining_op(mlirOperationGetOperand(p->op, 2));

  for (int l = 0; l < p->s.n_loops; l++)
    if (p->s.extents[l] < 1)
      return false;
  for (int o = 0; o < 3; o++)
    if (!is_float(mlirOperationGetOperand(p->op, o)))
      return false;
  return !mlirOperationIsNull(init) && ir_is(init, "tensor.empty");
}

/* ---- members ---------------------------------------------------------------------------------------------------- */

/* The body computes with its arguments and with scalars from outside; it does not ask where it is. */
static bool has_plain_body(MlirOperation op) {
  if (!ir_is(op, "linalg.generic"))
    return true;
  for (MlirOperation x = mlirBlockGetFirstOperation(ir_body(op)); !mlirOperationIsNull(x);
       x = mlirOperationGetNextInBlock(x))
    if (!ir_is_of(x, "arith.") && !ir_is_of(x, "math.") && !ir_is(x, "linalg.yield"))
      return false;
  return true;
}

/* True if result r of the output's map is loop r; the last one may be the constant 0. */
static bool writes_in_order(const struct structured *s, bool last_is_reduced) {
  MlirAffineMap out = s->maps[s->n_inputs];
  const int rank = (int)mlirAffineMapGetNumResults(out);

  for (int r = 0; r < rank - last_is_reduced; r++)
    if (structured_map_loop(out, r) != r)
      return false;
  return rank == s->n_loops;
}

/* True if op can be a member: its row of queries depends on that row only. */
static bool can_be_member(const struct attention *a, MlirOperation op, struct member *m) {
  *m = (struct member){.op = op};
  if (!structured_read(op, &m->s) || m->s.n_inits != 1 || mlirOperationGetNumResults(op) != 1)
    return false;
  const struct structured *s = &m->s;
  m->is_row = is_row(a, ir_result(op));
  if (!m->is_row && !is_scores(a, ir_result(op)))
    return false;
  if (s->kind == SK_BROADCAST)
    return true;
  if (!structured_has_simple_maps(s) || !has_plain_body(op))
    return false;
  if (structured_is_elementwise(s))
    return writes_in_order(s, false);
  if (s->kind != SK_REDUCTION || !m->is_row || s->n_inputs != 1)
    return false;
  for (int l = 0; l < s->n_loops; l++)
    if (s->reduction[l] != (l == s->n_loops - 1))
      return false;
  return writes_in_order(s, true);
}

const struct member *attention_member(const struct attention *a, MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  for (int k = 0; k < a->n && !mlirOperationIsNull(def); k++)
    if (mlirOperationEqual(a->member[k].op, def))
      return &a->member[k];
  return NULL;
}

static void give_up(struct attention *a, MlirOperation who, const char *why) {
  if (a->why)
    return;
  a->why = why;
  a->who = who;
}

/* Adds the operations that v is computed from, the first ones first. */
static void add_members(struct attention *a, MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct product p;
  struct member m;

  if (mlirOperationIsNull(def) || attention_member(a, v) ||
      !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(a->mixed.op)))
    return;
  if (product_read(def, &p)) {
    if (mlirOperationIsNull(a->scores.op) && is_scores(a, v) && is_plain(&p))
      a->scores = p;
    return;
  }
  if (!can_be_member(a, def, &m))
    return;
  for (int o = 0; o < m.s.n_inputs && m.s.kind != SK_BROADCAST; o++)
    add_members(a, mlirOperationGetOperand(def, o));
  if (a->n == ATTENTION_MEMBERS_MAX) {
    give_up(a, def, "there are more than 64 operations between the products");
    return;
  }
  a->member[a->n++] = m;
}

static bool comes_from(const struct attention *a, const struct member *m) {
  for (int o = 0; o < m->s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(m->op, o);
    const struct member *in = attention_member(a, v);
    if (mlirOperationEqual(ir_defining_op(v), a->scores.op) || (in && in->of_scores))
      return true;
  }
  return false;
}

/* The first use from u on by an operation that stays. */
static MlirOpOperand next_live(const struct attention *a, MlirOpOperand u) {
  while (!mlirOpOperandIsNull(u) && attention_is_replaced(a->raised, mlirOpOperandGetOwner(u)))
    u = mlirOpOperandGetNextUse(u);
  return u;
}

/* Returns the only use of v; null if there is none or more than one. */
static MlirOpOperand only_use(const struct attention *a, MlirValue v) {
  MlirOpOperand u = next_live(a, mlirValueGetFirstUse(v)), none = {NULL};
  return mlirOpOperandIsNull(u) || mlirOpOperandIsNull(next_live(a, mlirOpOperandGetNextUse(u))) ? u : none;
}

/* Returns a user of v that is neither a member nor the second product; a null operation if there is none. */
static MlirOperation stranger(const struct attention *a, MlirValue v) {
  for (MlirOpOperand u = next_live(a, mlirValueGetFirstUse(v)); !mlirOpOperandIsNull(u);
       u = next_live(a, mlirOpOperandGetNextUse(u))) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    const struct member *m = mlirOperationGetNumResults(user) ? attention_member(a, ir_result(user)) : NULL;
    const int o = (int)mlirOpOperandGetOperandNumber(u);
    if (mlirOperationEqual(user, a->division))
      continue;
    if (m ? o >= m->s.n_inputs : !mlirOperationEqual(user, a->mixed.op) || o != 0)
      return user;
  }
  return (MlirOperation){NULL};
}

static void remove_member(struct attention *a, int k) {
  memmove(&a->member[k], &a->member[k + 1], (size_t)(a->n - k - 1) * sizeof *a->member);
  a->n--;
}

static const char *why_strange(const struct attention *a, MlirOperation user) {
  struct structured s;
  if (ir_is_of(user, "nkipy."))
    return "a knob names a value between the products";
  if (ir_is(user, "func.return"))
    return "a value between the products is returned";
  if (structured_read(user, &s) && s.kind == SK_REDUCTION && !is_row(a, ir_result(user)))
    return "a value between the products is reduced along another axis than the keys";
  return "a value between the products is read by another operation";
}

/* Members that do not depend on the scores stay outside if others read them, too; broadcasts are repeated inside.  Other
 * members must have no other readers. */
static void check_readers(struct attention *a) {
  for (int k = 0; k < a->n; k++)
    a->member[k].of_scores = comes_from(a, &a->member[k]);
  for (int k = a->n - 1; k >= 0; k--) {
    MlirOperation user = stranger(a, ir_result(a->member[k].op));
    if (mlirOperationIsNull(user) || (a->member[k].s.kind == SK_BROADCAST && !ir_is_of(user, "nkipy.")))
      continue;
    if (a->member[k].of_scores)
      give_up(a, user, why_strange(a, user));
    else
      remove_member(a, k);
  }
  MlirOperation user = stranger(a, ir_result(a->scores.op));
  if (!mlirOperationIsNull(user))
    give_up(a, user, why_strange(a, user));
}

/* ---- softmax ---------------------------------------------------------------------------------------------------- */

/* The operation of which a body of two arguments or one yields the result, if it is the only one; otherwise a null
 * operation. */
static MlirOperation only_operation(MlirOperation op) {
  MlirOperation first = mlirBlockGetFirstOperation(ir_body(op)), end = mlirOperationGetNextInBlock(first);
  if (mlirOperationIsNull(end) || !ir_is(end, "linalg.yield") || mlirOperationGetNumResults(first) != 1)
    return (MlirOperation){NULL};
  return first;
}

/* v, or what it converts if `name` (arith.extf or truncf) makes it. */
static MlirValue unconverted(MlirValue v, const char *name) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && ir_is(def, name) ? mlirOperationGetOperand(def, 0) : v;
}

/* True if the body yields `name`(argument 0, argument 1), perhaps computed in f32 and rounded. */
static bool applies_to_arguments(MlirOperation op, const char *name) {
  MlirOperation yield = mlirBlockGetTerminator(ir_body(op));
  MlirOperation does = ir_defining_op(unconverted(mlirOperationGetOperand(yield, 0), "arith.truncf"));

  if (mlirOperationIsNull(does) || !ir_is(does, name))
    return false;
  for (int k = 0; k < 2; k++)
    if (!mlirValueEqual(unconverted(mlirOperationGetOperand(does, k), "arith.extf"),
                        mlirBlockGetArgument(ir_body(op), k)))
      return false;
  return true;
}

/* True if op is `name`(x, row), element by element, or `name`(row, x) if either_way; row is [batch…, queries, 1]. */
static bool is_with_row(const struct attention *a, MlirOperation op, const char *name, bool either_way, MlirValue *x,
                        MlirValue *row) {
  struct structured s;

  if (!ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.n_inputs != 2 || s.kind != SK_ELEMENTWISE)
    return false;
  if (!applies_to_arguments(op, name))
    return false;
  for (int k = 0; k < 1 + either_way; k++) {
    *x = mlirOperationGetOperand(op, k);
    *row = mlirOperationGetOperand(op, 1 - k);
    if (mlirAffineMapIsIdentity(s.maps[k]) && mlirAffineMapIsIdentity(s.maps[2]) && is_row(a, *row))
      return true;
  }
  return false;
}

static bool is_conversion(const struct member *m) {
  if (!ir_is(m->op, "linalg.generic") || m->s.n_inputs != 1 || m->s.kind == SK_REDUCTION)
    return false;
  MlirOperation body = only_operation(m->op);
  return !mlirOperationIsNull(body) && (ir_is(body, "arith.truncf") || ir_is(body, "arith.extf"));
}

static bool reduces_with(const struct member *m, const char *name) {
  if (m->s.kind != SK_REDUCTION || !ir_is(m->op, "linalg.generic"))
    return false;
  MlirOperation body = only_operation(m->op);
  return !mlirOperationIsNull(body) && ir_is(body, name);
}

static bool is_exp(const struct member *m) {
  return ir_is(m->op, "linalg.exp");
}

static int index_of(const struct attention *a, const struct member *m) {
  return m ? (int)(m - a->member) : -1;
}

/* If the weights are y * r with one r for each row, perhaps converted afterwards, the result can be multiplied by r
 * instead: fewer elements.  Only after the largest score was subtracted, so that the larger sums do not overflow. */
static void find_divisor(struct attention *a) {
  MlirValue v = mlirOperationGetOperand(a->mixed.op, 0), x, row;
  const struct member *m = attention_member(a, v);

  while (m && is_conversion(m) && !mlirOpOperandIsNull(only_use(a, ir_result(m->op))))
    m = attention_member(a, mlirOperationGetOperand(m->op, 0));
  if (!m || a->max < 0 || mlirOpOperandIsNull(only_use(a, ir_result(m->op))) || !mlirValueIsNull(a->divisor) ||
      !is_with_row(a, m->op, "arith.mulf", true, &x, &row) ||
      !mlirTypeEqual(mlirValueGetType(x), mlirValueGetType(ir_result(m->op))))
    return;
  a->member[index_of(a, m)].is_dropped = true;
  a->weights = x;
  a->divisor = row;
}

/* Finds exp(x - max) and its sum. */
static void find_softmax(struct attention *a) {
  int n_max = 0, n_sum = 0;
  MlirValue x, row;

  a->max = a->sum = a->exp = -1;
  for (int k = 0; k < a->n; k++) {
    const struct member *m = &a->member[k];
    if (!m->of_scores)
      continue;
    n_max += reduces_with(m, "arith.maximumf");
    n_sum += m->s.kind == SK_REDUCTION && !reduces_with(m, "arith.maximumf");
    if (is_exp(m)) {
      const struct member *sub = attention_member(a, mlirOperationGetOperand(m->op, 0));
      if (!sub || !is_with_row(a, sub->op, "arith.subf", false, &x, &row))
        continue;
      const struct member *max = attention_member(a, row);
      if (max && reduces_with(max, "arith.maximumf") && mlirValueEqual(mlirOperationGetOperand(max->op, 0), x)) {
        a->exp = k;
        a->max = index_of(a, max);
      }
    }
    if (reduces_with(m, "arith.addf"))
      a->sum = k;
  }
  if (n_max != 1)
    a->max = -1;
  if (n_sum != 1)
    a->sum = -1;
}

static void find_dependences(struct attention *a) {
  for (int k = 0; k < a->n; k++) {
    struct member *m = &a->member[k];
    m->after_max = k == a->max;
    m->after_sum = k == a->sum;
    for (int o = 0; o < m->s.n_inputs; o++) {
      MlirValue v = mlirOperationGetOperand(m->op, o);
      const struct member *in = attention_member(a, v);
      if (m->is_dropped && !mlirValueEqual(v, a->weights))
        continue;
      m->after_max |= in && in->after_max;
      m->after_sum |= in && in->after_sum;
    }
  }
}

/* Marks the members from which the operand of the second product is computed. */
static void find_weights(struct attention *a, MlirValue v) {
  struct member *m = (struct member *)attention_member(a, v);
  if (!m || m->for_weights)
    return;
  m->for_weights = true;
  for (int o = 0; o < m->s.n_inputs; o++)
    if (!m->is_dropped || mlirValueEqual(mlirOperationGetOperand(m->op, o), a->weights))
      find_weights(a, mlirOperationGetOperand(m->op, o));
}

/* True if v is exp(x - max), perhaps converted, divided or both. */
static bool is_weight(const struct attention *a, MlirValue v) {
  const struct member *m = attention_member(a, v);
  while (m && (is_conversion(m) || m->is_dropped))
    m = attention_member(a, m->is_dropped ? a->weights : mlirOperationGetOperand(m->op, 0));
  return m && index_of(a, m) == a->exp;
}

/* Blocks of keys can be added up if the rest is linear in exp(x - max). */
static bool can_run(const struct attention *a) {
  if (a->max < 0 || a->sum < 0 || a->exp < 0 || mlirValueIsNull(a->divisor) ||
      !is_weight(a, mlirOperationGetOperand(a->mixed.op, 0)) ||
      !is_weight(a, mlirOperationGetOperand(a->member[a->sum].op, 0)))
    return false;
  const struct member *by = attention_member(a, a->divisor);
  MlirOperation from = ir_defining_op(mlirOperationGetOperand(a->member[a->max].op, 1));
  if (!by || !by->after_sum || mlirOperationIsNull(from) || !ir_is(from, "linalg.fill") ||
      !mlirTypeIsAF32(ir_value_element(ir_result(a->member[a->sum].op))) ||
      !mlirTypeIsAF32(ir_value_element(ir_result(a->mixed.op))))
    return false;
  from = ir_defining_op(mlirOperationGetOperand(a->member[a->sum].op, 1));
  if (mlirOperationIsNull(from) || !ir_is(from, "linalg.fill") || !ir_is_zero(mlirOperationGetOperand(from, 0)))
    return false;
  MlirOperation difference = ir_defining_op(mlirOperationGetOperand(a->member[a->exp].op, 0));
  for (int k = 0; k < a->n; k++) {
    const struct member *m = &a->member[k];
    const bool is_known = k == a->max || k == a->sum || m->is_dropped || (m->is_row && m->after_sum) ||
                          mlirOperationEqual(m->op, difference) || is_weight(a, ir_result(m->op));
    if (m->after_max && !is_known)
      return false;
  }
  return true;
}

/* The kernel may divide after the second product itself. */
static void find_division(struct attention *a) {
  MlirOpOperand u = only_use(a, ir_result(a->mixed.op));
  MlirValue x, row;

  if (mlirOpOperandIsNull(u))
    return;
  MlirOperation op = mlirOpOperandGetOwner(u);
  if (!is_with_row(a, op, "arith.mulf", true, &x, &row) || !mlirValueEqual(x, ir_result(a->mixed.op)) ||
      !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(a->mixed.op)) ||
      !mlirTypeEqual(mlirValueGetType(ir_result(op)), mlirValueGetType(x)))
    return;
  const int n = a->n;
  add_members(a, row);
  if (a->n == n)
    return;
  a->division = op;
  a->divisor = row;
}

/* The operations after the second product that convert or scale its result, element by element. */
static void find_epilogue(struct attention *a) {
  MlirValue v = ir_result(mlirOperationIsNull(a->division) ? a->mixed.op : a->division);
  struct structured s;

  while (a->n_epilogue < ATTENTION_EPILOGUE_MAX) {
    MlirOpOperand u = only_use(a, v);
    if (mlirOpOperandIsNull(u))
      return;
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!structured_read(op, &s) || !structured_is_elementwise(&s) || s.n_inputs != 1 || s.n_inits != 1 ||
        mlirOpOperandGetOperandNumber(u) != 0 || !mlirAffineMapIsIdentity(s.maps[0]) ||
        !mlirAffineMapIsIdentity(s.maps[1]) || !has_plain_body(op) || mlirOperationGetNumResults(op) != 1 ||
        !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(a->mixed.op)))
      return;
    v = ir_result(op);
    a->epilogue[a->n_epilogue++] = op;
  }
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

bool attention_read(struct pass_run *run, MlirOperation mixed, const struct raised *raised, struct attention *out) {
  struct attention *a = out;
  bool has_exp = false, has_reduction = false;

  (void)run;
  memset(a, 0, sizeof *a);
  a->raised = raised;
  if (!product_read(mixed, &a->mixed) || !is_plain(&a->mixed) || mlirOperationGetNumResults(mixed) != 1)
    return false;
  const struct product *p = &a->mixed;
  MlirAffineMap first = p->s.maps[0];
  if (mlirAffineMapGetNumResults(first) != p->rank || product_dim(p, 0, p->k) != p->rank - 1)
    return false; /* weights are [batch…, queries, keys] */
  for (int d = 0; d < p->rank - 1; d++)
    if (structured_map_loop(first, d) != structured_map_loop(p->s.maps[2], d))
      return false;
  add_members(a, mlirOperationGetOperand(mixed, 0));
  if (mlirOperationIsNull(a->scores.op) || !a->n)
    return false;
  find_division(a);
  check_readers(a);
  for (int k = 0; k < a->n; k++) {
    has_exp |= is_exp(&a->member[k]) && a->member[k].of_scores;
    has_reduction |= a->member[k].s.kind == SK_REDUCTION && a->member[k].of_scores;
  }
  if (!has_exp || (!has_reduction && !a->why)) {
    a->why = NULL;
    return false;
  }
  const struct layout at = layout_read(ir_result(mixed));
  if (!mlirOperationIsNull(at.layout_op) || !mlirOperationIsNull(at.tile_op))
    give_up(a, mixed, "a knob names the result");
  if (a->why)
    return false;
  find_softmax(a);
  find_divisor(a);
  find_dependences(a);
  find_weights(a, mlirOperationGetOperand(a->mixed.op, 0));
  a->can_run = can_run(a);
  find_epilogue(a);
  return true;
}
