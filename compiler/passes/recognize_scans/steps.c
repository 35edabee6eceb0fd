/* steps: reads the steps of a recurrence.  See unrolled.h. */
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/recognize_scans/unrolled.h"

/* ---- one operation of a step ---------------------------------------------------------------------------------------- */

static const char *name_of(MlirOperation op) {
  return mlirIdentifierStr(mlirOperationGetName(op)).data;
}

static bool is_commutative(const char *name) {
  return strcmp(name, "arith.subf") != 0;
}

static bool is_known(const char *name) {
  static const char *const names[] = {"arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minimumf"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (!strcmp(name, names[k]))
      return true;
  return false;
}

/* True if the result, and the input that is the state, have the loops as dimensions. */
static bool is_identity(const struct form *f, int o) {
  for (int d = 0; d < f->rank[o]; d++)
    if (f->loop[o][d] != d)
      return false;
  return f->rank[o] == f->n_loops;
}

/* The number of the body's argument; -1 if v is none. */
static int argument(MlirOperation op, MlirValue v) {
  return mlirValueIsABlockArgument(v) && mlirBlockEqual(mlirBlockArgumentGetOwner(v), ir_body(op))
             ? (int)mlirBlockArgumentGetArgNumber(v)
             : -1;
}

/* Sets the operand that the state is combined with: an argument of the body, or a scalar from outside. */
static bool read_other(MlirOperation op, const struct form *f, MlirValue x, struct link *out) {
  const int k = argument(op, x);

  if (k < 0) {
    out->scalar = x;
    return true;
  }
  if (k >= f->n_inputs)
    return false;
  out->other = form_source(mlirOperationGetOperand(op, k));
  out->rank = f->rank[k];
  memcpy(out->loop, f->loop[k], sizeof out->loop);
  return true;
}

/* The operation of the body if op is element-wise and its body is one operation that a scan has; null otherwise. */
static MlirOperation combine_of(MlirOperation op, struct form *f) {
  if (!form_read(op, f) || f->reads_init || !is_identity(f, f->n_inputs))
    return (MlirOperation){NULL};
  for (int l = 0; l < f->n_loops; l++)
    if (f->reduction[l])
      return (MlirOperation){NULL};
  MlirOperation combine = form_only_operation(op);
  return !mlirOperationIsNull(combine) && is_known(name_of(combine)) ? combine : (MlirOperation){NULL};
}

/* Reads op, whose operand `state` is the state. */
static bool read_link(MlirOperation op, int state, struct link *out) {
  struct form f;
  MlirOperation combine = combine_of(op, &f);

  if (mlirOperationIsNull(combine) || state >= f.n_inputs || !is_identity(&f, state))
    return false;
  for (int k = 0; k < 2; k++) {
    if (argument(op, mlirOperationGetOperand(combine, k)) != state)
      continue;
    *out = (struct link){.op = op, .name = name_of(combine), .is_left = k == 0};
    return argument(op, mlirOperationGetOperand(combine, 1 - k)) != state &&
           read_other(op, &f, mlirOperationGetOperand(combine, 1 - k), out);
  }
  return false;
}

/* Reads op as the same link as `like` with a scalar as state, which *scalar is set to. */
static bool read_first_link(MlirOperation op, const struct link *like, struct link *out, MlirValue *scalar) {
  struct form f;
  MlirOperation combine = combine_of(op, &f);

  if (mlirOperationIsNull(combine) || f.n_inputs != 1 || mlirValueIsNull(like->other) ||
      strcmp(name_of(combine), like->name) != 0)
    return false;
  for (int k = 0; k < 2; k++) {
    MlirValue x = mlirOperationGetOperand(combine, k);
    if (argument(op, x) >= 0 || ((k == 0) != like->is_left && !is_commutative(like->name)))
      continue;
    *out = (struct link){.op = op, .name = like->name, .is_left = like->is_left};
    *scalar = x;
    return read_other(op, &f, mlirOperationGetOperand(combine, 1 - k), out) && !mlirValueIsNull(out->other) &&
           !mlirAttributeIsNull(ir_constant(x));
  }
  return false;
}

static bool is_same_link(const struct link *x, const struct link *y) {
  if (strcmp(x->name, y->name) != 0 || (x->is_left != y->is_left && !is_commutative(x->name)) || x->rank != y->rank ||
      mlirValueIsNull(x->other) != mlirValueIsNull(y->other) ||
      memcmp(x->loop, y->loop, (size_t)x->rank * sizeof *x->loop) != 0)
    return false;
  return mlirValueIsNull(x->scalar) || mlirValueEqual(x->scalar, y->scalar);
}

/* ---- steps ---------------------------------------------------------------------------------------------------------- */

static MlirValue operand(MlirOperation op, int k) {
  return form_source(mlirOperationGetOperand(op, k));
}

bool steps_find(MlirValue v, MlirValue before, struct step_form *out) {
  struct form f, g;
  MlirOperation last = ir_defining_op(v);

  if (mlirOperationIsNull(combine_of(last, &f)))
    return false;
  for (int k = 0; k < f.n_inputs; k++) {
    *out = (struct step_form){k, -1};
    if (mlirValueEqual(operand(last, k), before))
      return true;
    MlirOperation first = ir_defining_op(operand(last, k));
    if (mlirOperationIsNull(combine_of(first, &g)))
      continue;
    for (out->first = 0; out->first < g.n_inputs; out->first++)
      if (mlirValueEqual(operand(first, out->first), before))
        return true;
  }
  return false;
}

/* Reads the step that computes p->v[t], with the state before it in p->v[t - 1]. */
static bool read_step(struct steps *s, const struct pack *p, struct step_form at, int t) {
  MlirOperation last = ir_defining_op(p->v[t]);

  if (!read_link(last, at.last, &s->links[s->n_links - 1][t]))
    return false;
  MlirValue state = operand(last, at.last);
  if (at.first >= 0) {
    MlirOperation first = ir_defining_op(state);
    if (form_is_annotated(state) || mlirOperationIsNull(first) || !read_link(first, at.first, &s->links[0][t]))
      return false;
    state = operand(first, at.first);
  }
  return mlirValueEqual(state, p->v[t - 1]);
}

/* Reads the step that computes p->v[0], which begins with any value or scalar. */
static bool read_first_step(struct steps *s, const struct pack *p, struct step_form at) {
  MlirOperation op = ir_defining_op(p->v[0]);

  s->first = s->first_scalar = (MlirValue){NULL};
  if (at.first >= 0) {
    if (!read_link(op, at.last, &s->links[1][0]))
      return false;
    MlirValue state = operand(op, at.last);
    op = ir_defining_op(state);
    if (form_is_annotated(state))
      return false;
    at.last = at.first;
  }
  if (read_link(op, at.last, &s->links[0][0]) && is_same_link(&s->links[0][0], &s->links[0][1]))
    s->first = operand(op, at.last);
  else if (!read_first_link(op, &s->links[0][1], &s->links[0][0], &s->first_scalar))
    return false;
  for (int k = 0; k < s->n_links; k++)
    if (!is_same_link(&s->links[k][0], &s->links[k][1]))
      return false;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  return mlirValueIsNull(s->first) ||
         (form_dims(s->first, dims) == p->rank && (!p->rank || !memcmp(dims, p->dims, (size_t)p->rank * sizeof *dims)));
}

/* Plans the packs of what the state is combined with from step s->from on. */
static bool pack_others(struct unrolled *u, struct pack *p) {
  struct steps *s = p->steps;
  const int n = p->n - s->from;
  MlirValue *v = arena_new_array(u->run->arena, MlirValue, (size_t)n);
  bool has_one = false;

  p->before = (MlirOperation){NULL};
  for (int k = 0; k < s->n_links; k++) {
    s->other[k] = NULL;
    if (mlirValueIsNull(s->links[k][1].other)) {
      pack_needs(u, s->links[k][1].scalar, &p->before);
      continue;
    }
    for (int t = 0; t < n; t++)
      v[t] = s->links[k][s->from + t].other;
    s->other[k] = pack_values(u, n, v);
    if (s->other[k]->kind == PACK_REFUSED)
      return false;
    has_one |= s->other[k]->kind != PACK_SAME;
    pack_needs_pack(p, s->other[k]);
  }
  pack_needs(u, s->from ? p->v[0] : mlirValueIsNull(s->first) ? s->first_scalar : s->first, &p->before);
  return has_one;
}

/* The scan takes two cycles an element and some for each row, the steps as written one or two an element and some for each step.
 * Where a step has many elements in each partition, it is better as it is.  What all steps have in a partition must fit. */
static bool is_worth_it(const struct pack *p) {
  enum { ROW_BYTES_MAX = 32 * 1024 };
  int64_t in_row = 1;

  for (int k = 1; k < p->rank; k++)
    in_row *= p->dims[p->order[k]];
  return in_row <= 2 * (int64_t)p->n && in_row * p->n * 4 <= ROW_BYTES_MAX;
}

bool pack_steps(struct unrolled *u, struct pack *p) {
  struct arena *a = u->run->arena;
  struct step_form at;

  if (!mlirTypeIsAF32(ir_value_element(p->v[0])) || p->n < UNROLLED_STEPS_MIN || !steps_find(p->v[1], p->v[0], &at) ||
      !is_worth_it(p))
    return false;
  struct steps *s = arena_new(a, struct steps);
  *s = (struct steps){.n_links = at.first < 0 ? 1 : 2};
  for (int k = 0; k < s->n_links; k++)
    s->links[k] = arena_new_array(a, struct link, (size_t)p->n);
  for (int t = 1; t < p->n; t++) {
    if (!read_step(s, p, at, t))
      return false;
    for (int k = 0; k < s->n_links; k++)
      if (!is_same_link(&s->links[k][t], &s->links[k][1]))
        return false;
  }
  p->steps = s;
  for (s->from = read_first_step(s, p, at) ? 0 : 1; s->from < 2; s->from++)
    if (pack_others(u, p)) {
      p->kind = PACK_STEPS;
      array_push(a, &u->chains, p);
      return true;
    }
  return false;
}
