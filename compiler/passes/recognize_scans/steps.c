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
  MlirOperation combine = mlirOperationIsNull(op) ? op : combine_of(op, &f);

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

/* A scan computes in f32. */
static bool may_be_states(const struct pack *p) {
  return mlirTypeIsAF32(ir_value_element(p->v[0])) && p->n >= UNROLLED_STEPS_MIN - 1;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------- */

static MlirValue operand(MlirOperation op, int k) {
  return form_source(mlirOperationGetOperand(op, k));
}

/* True if v is computed from `before` by one step; sets how. */
static bool find_form(MlirValue v, MlirValue before, struct step_form *out) {
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

/* Reads the step that computes v, and sets the state before it, which is null if it is a scalar.  `like`: two links that it must
 * be like, or NULL. */
static bool read_step(MlirValue v, struct step_form at, const struct link *like, struct link *out, MlirValue *state,
                      MlirValue *scalar) {
  MlirOperation op = ir_defining_op(v);
  int k = at.first < 0 ? 0 : 1, input = at.last;

  *scalar = (MlirValue){NULL};
  for (; k >= 0; k--, input = at.first) {
    if (mlirOperationIsNull(op) || form_is_annotated(v))
      return false;
    if (!read_link(op, input, &out[k]) || (like && !is_same_link(&out[k], &like[k]))) {
      *state = (MlirValue){NULL};
      return !k && like && read_first_link(op, &like[0], &out[0], scalar) && is_same_link(&out[0], &like[0]);
    }
    *state = v = operand(op, input);
    op = ir_defining_op(v);
  }
  return true;
}

/* What an operation like `like` computes of v, or of a reshape of it, as operand k; null if there is none. */
static MlirValue result_of_link(MlirValue v, int k, const struct link *like) {
  struct link own;
  for (MlirOpOperand o = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(o); o = mlirOpOperandGetNextUse(o)) {
    MlirOperation op = mlirOpOperandGetOwner(o);
    if (ir_is(op, "tensor.collapse_shape") || ir_is(op, "tensor.expand_shape")) {
      MlirValue past = result_of_link(ir_result(op), k, like);
      if (!mlirValueIsNull(past))
        return past;
    } else if ((int)mlirOpOperandGetOperandNumber(o) == k && read_link(op, k, &own) && is_same_link(&own, like))
      return ir_result(op);
  }
  return (MlirValue){NULL};
}

/* The state after v, by a step like `like`; null if there is none. */
static MlirValue state_after(MlirValue v, struct step_form at, const struct link *like) {
  struct link own[2];
  MlirValue next = v, before, scalar;

  if (at.first >= 0)
    next = result_of_link(next, at.first, &like[0]);
  if (!mlirValueIsNull(next))
    next = result_of_link(next, at.last, &like[at.first >= 0]);
  if (mlirValueIsNull(next) || !read_step(next, at, like, own, &before, &scalar) || !mlirValueEqual(before, v))
    return (MlirValue){NULL};
  return next;
}

struct states steps_around(struct unrolled *u, MlirValue v, struct step_form at) {
  struct arena *a = u->run->arena;
  struct link like[2], own[2];
  struct states all = {0};
  MlirValue x = v, before, scalar;

  if (!read_step(v, at, NULL, like, &before, &scalar))
    return all;
  while (!mlirValueIsNull(x) && read_step(x, at, like, own, &before, &scalar)) {
    array_push(a, &all, x);
    x = before;
  }
  all.first = x;
  for (int k = 0; k < all.n / 2; k++) {
    x = all.v[k];
    all.v[k] = all.v[all.n - 1 - k];
    all.v[all.n - 1 - k] = x;
  }
  for (x = state_after(v, at, like); !mlirValueIsNull(x); x = state_after(x, at, like))
    array_push(a, &all, x);
  return all;
}

/* True if the states are what the last operation of a step computes of others: they begin with one that it computes of the
 * first of these.  So x + w is no first state where m = max(m + w, u[t]) begins with m = x. */
static bool are_between(const struct states *all, struct step_form at) {
  struct link like[2], own[2];
  MlirValue before, scalar;

  return at.first >= 0 && all->n && !mlirValueIsNull(all->first) &&
         read_step(all->v[all->n - 1], at, NULL, like, &before, &scalar) &&
         read_link(ir_defining_op(all->first), at.last, own) && is_same_link(own, &like[1]);
}

bool pack_part(struct unrolled *u, struct pack *p) {
  struct step_form at;

  if (!may_be_states(p) || !find_form(p->v[1], p->v[0], &at))
    return false;
  struct states all = steps_around(u, p->v[1], at);
  int begin = 0;
  p->is_between = are_between(&all, at);
  while (!p->is_between && begin < all.n && !mlirValueEqual(all.v[begin], p->v[1]))
    begin++;
  if (p->is_between || begin-- == all.n || begin + p->n > all.n || (begin == 0 && p->n == all.n))
    return false;
  for (int t = begin < 0; t < p->n; t++)
    if (!mlirValueEqual(p->v[t], all.v[begin + t]))
      return false;
  p->whole = pack_values(u, all.n, all.v);
  if (p->whole->kind != PACK_STEPS || (begin < 0 && p->whole->steps->from))
    return false;
  p->kind = PACK_PART;
  p->begin = begin;
  pack_needs_pack(p, p->whole);
  return true;
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

static bool has_dims(MlirValue v, const struct pack *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  return form_dims(v, dims) == p->rank && (!p->rank || !memcmp(dims, p->dims, (size_t)p->rank * sizeof *dims));
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
  struct link like[2], own[2];
  MlirValue before, scalar;

  if (!may_be_states(p) || !find_form(p->v[1], p->v[0], &at) || !is_worth_it(p) ||
      !read_step(p->v[1], at, NULL, like, &before, &scalar))
    return false;
  struct steps *s = arena_new(a, struct steps);
  *s = (struct steps){.n_links = at.first < 0 ? 1 : 2};
  for (int k = 0; k < s->n_links; k++)
    s->links[k] = arena_new_array(a, struct link, (size_t)p->n);
  s->from = 1;
  for (int t = p->n - 1; t >= 0; t--) {
    if (!read_step(p->v[t], at, like, own, &before, &scalar) || (t && !mlirValueEqual(before, p->v[t - 1]))) {
      if (t)
        return false;
      break;
    }
    for (int k = 0; k < s->n_links; k++)
      s->links[k][t] = own[k];
    if (!t && (mlirValueIsNull(before) || has_dims(before, p))) {
      s->first = before;
      s->first_scalar = scalar;
      s->from = 0;
    }
  }
  p->steps = s;
  for (; s->from < 2 && p->n - s->from >= UNROLLED_STEPS_MIN; s->from++)
    if (pack_others(u, p)) {
      p->kind = PACK_STEPS;
      array_push(a, &u->chains, p);
      return true;
    }
  return false;
}
