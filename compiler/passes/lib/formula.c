/* formula: see formula.h.  Every function is of constant cost, because formulas are of limited size. */
#include "passes/lib/formula.h"

#include <math.h>
#include <string.h>

/* ---- equality --------------------------------------------------------------------------------------------------- */

static bool near(const struct formulas *fs, double a, double b) {
  return a == b || fabs(a - b) <= fs->tolerance * fmax(fabs(a), fabs(b));
}

static bool same_product(const struct formulas *fs, const struct formula *a, const struct formula *b);

static bool same_sum(const struct formulas *fs, const struct formula_atom *a, const struct formula_atom *b) {
  unsigned taken = 0;
  if (a->n != b->n)
    return false;
  for (int i = 0, j; i < a->n; i++) {
    for (j = 0; j < b->n; j++)
      if (!(taken & 1u << j) && near(fs, a->term[i].c, b->term[j].c) &&
          same_product(fs, &a->term[i].of, &b->term[j].of))
        break;
    if (j == b->n)
      return false;
    taken |= 1u << j;
  }
  return true;
}

static bool same_atom(const struct formulas *fs, const struct formula_atom *a, const struct formula_atom *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind)
    return false;
  return a->kind == FORMULA_X || (a->kind == FORMULA_SUM ? same_sum(fs, a, b) : formula_same(fs, &a->arg, &b->arg));
}

static int find_factor(const struct formulas *fs, const struct formula *a, const struct formula_atom *atom) {
  for (int k = 0; k < a->n; k++)
    if (same_atom(fs, a->f[k].atom, atom))
      return k;
  return -1;
}

/* Compares the products without their coefficients. */
static bool same_product(const struct formulas *fs, const struct formula *a, const struct formula *b) {
  if (a->n != b->n)
    return false;
  for (int k = 0; k < a->n; k++) {
    const int j = find_factor(fs, b, a->f[k].atom);
    if (j < 0 || b->f[j].power != a->f[k].power)
      return false;
  }
  return true;
}

bool formula_same(const struct formulas *fs, const struct formula *a, const struct formula *b) {
  return !a->is_none && !b->is_none && near(fs, a->c, b->c) && same_product(fs, a, b);
}

static const struct formula_atom *single(const struct formula *a) {
  return !a->is_none && a->n == 1 && a->f[0].power == 1 ? a->f[0].atom : NULL;
}

const struct formula *formula_arg(const struct formulas *fs, const struct formula *a, enum formula_kind function) {
  const struct formula_atom *atom = single(a);
  return atom && atom->kind == function && near(fs, a->c, 1) ? &atom->arg : NULL;
}

bool formula_is_linear(const struct formulas *fs, const struct formula *a, double *scale, double *bias) {
  const struct formula_atom *atom = single(a);

  (void)fs;
  *bias = 0;
  *scale = a->c;
  if (!atom)
    return false;
  if (atom->kind == FORMULA_X)
    return true;
  if (atom->kind != FORMULA_SUM || atom->n != 2 || atom->term[0].of.n != 0)
    return false;
  const struct formula_atom *x = single(&atom->term[1].of);
  *bias = a->c * atom->term[0].c;
  *scale = a->c * atom->term[1].c;
  return x && x->kind == FORMULA_X;
}

/* ---- making formulas -------------------------------------------------------------------------------------------- */

struct formula formula_none(void) {
  return (struct formula){.is_none = true};
}

struct formula formula_number(double c) {
  return isfinite(c) ? (struct formula){.c = c} : formula_none();
}

static struct formula of_atom(const struct formula_atom *atom, double c) {
  return (struct formula){.c = c, .n = 1, .f = {{atom, 1}}};
}

static struct formula function(struct formulas *fs, enum formula_kind kind, struct formula arg, double c) {
  struct formula_atom *atom = arena_new(fs->arena, struct formula_atom);
  *atom = (struct formula_atom){.kind = kind, .arg = arg};
  return arg.is_none ? arg : of_atom(atom, c);
}

struct formula formula_x(struct formulas *fs) {
  return function(fs, FORMULA_X, formula_number(0), 1);
}

struct formula formula_scaled(struct formula a, double by) {
  a.c *= by;
  if (a.c == 0)
    a.n = 0;
  return isfinite(a.c) ? a : formula_none();
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

static void add_term(struct formulas *fs, struct formula_atom *sum, const struct formula *of, double c) {
  for (int k = 0; k < sum->n && k < FORMULA_TERMS; k++)
    if (same_product(fs, &sum->term[k].of, of)) {
      const double old = sum->term[k].c;
      sum->term[k].c = near(fs, old, -c) ? 0 : old + c;
      return;
    }
  if (sum->n == FORMULA_TERMS) {
    sum->n++; /* too many: the caller sees it */
    return;
  }
  if (sum->n < FORMULA_TERMS) {
    sum->term[sum->n].c = c;
    sum->term[sum->n].of = *of;
    sum->term[sum->n++].of.c = 1;
  }
}

static void add_terms(struct formulas *fs, struct formula_atom *sum, const struct formula *a) {
  const struct formula_atom *atom = single(a);
  if (!atom || atom->kind != FORMULA_SUM) {
    add_term(fs, sum, a, a->c);
    return;
  }
  for (int k = 0; k < atom->n; k++)
    add_term(fs, sum, &atom->term[k].of, a->c * atom->term[k].c);
}

/* Drops terms that are 0 and puts the constant first. */
static void tidy(struct formula_atom *sum) {
  int n = 0;
  for (int k = 0; k < sum->n; k++)
    if (sum->term[k].c != 0)
      sum->term[n++] = sum->term[k];
  sum->n = n;
  for (int k = 1; k < n; k++)
    if (sum->term[k].of.n == 0) {
      const struct formula of = sum->term[0].of;
      const double c = sum->term[0].c;
      sum->term[0] = sum->term[k];
      sum->term[k].of = of;
      sum->term[k].c = c;
    }
}

/* 1 + c f(y), of which the function of y is known under another name. */
static bool known_sum(struct formulas *fs, const struct formula_atom *sum, struct formula *out) {
  const struct formula_atom *t = sum->n == 2 && sum->term[0].of.n == 0 ? single(&sum->term[1].of) : NULL;
  if (!t || !near(fs, fabs(sum->term[1].c), 1))
    return false;
  const double sign = sum->term[1].c > 0 ? 1 : -1;
  if (t->kind == FORMULA_TANH) /* (1 + tanh(y)) / 2 is the sigmoid of 2y */
    *out = function(fs, FORMULA_SIGMOID, formula_scaled(t->arg, 2 * sign), 2);
  else if (t->kind == FORMULA_ERF)
    *out = function(fs, FORMULA_NORMAL, formula_scaled(t->arg, sign * sqrt(2)), 2);
  else if (t->kind == FORMULA_SIGMOID && sign < 0)
    *out = function(fs, FORMULA_SIGMOID, formula_scaled(t->arg, -1), 1);
  else
    return false;
  return true;
}

/* max(y, 0) + log(1 + exp(-|y|)) is the softplus of y. */
static bool stable_softplus(struct formulas *fs, const struct formula_atom *sum, struct formula *out) {
  if (sum->n != 2 || !near(fs, sum->term[1].c, 1))
    return false;
  for (int k = 0; k < 2; k++) {
    const struct formula *y = formula_arg(fs, &sum->term[k].of, FORMULA_POSITIVE);
    const struct formula *z = formula_arg(fs, &sum->term[1 - k].of, FORMULA_SOFTPLUS);
    if (!y || !z)
      continue;
    const struct formula want = formula_scaled(formula_of(fs, FORMULA_ABS, *y), -1);
    if (formula_same(fs, z, &want)) {
      *out = function(fs, FORMULA_SOFTPLUS, *y, 1);
      return true;
    }
  }
  return false;
}

struct formula formula_add(struct formulas *fs, struct formula a, struct formula b) {
  struct formula_atom *sum = arena_new(fs->arena, struct formula_atom);
  struct formula known;

  *sum = (struct formula_atom){.kind = FORMULA_SUM};
  if (a.is_none || b.is_none)
    return formula_none();
  add_terms(fs, sum, &a);
  add_terms(fs, sum, &b);
  if (sum->n > FORMULA_TERMS)
    return formula_none();
  tidy(sum);
  if (sum->n < 2)
    return sum->n ? formula_scaled(sum->term[0].of, sum->term[0].c) : formula_number(0);
  const double first = sum->term[0].c;
  for (int k = 0; k < sum->n; k++)
    sum->term[k].c /= first;
  if (known_sum(fs, sum, &known) || stable_softplus(fs, sum, &known))
    return formula_scaled(known, first);
  return of_atom(sum, first);
}

/* ---- products --------------------------------------------------------------------------------------------------- */

/* The y of 1 + exp(y); NULL for another atom. */
static const struct formula *one_plus_exp(const struct formulas *fs, const struct formula_atom *a) {
  if (a->kind != FORMULA_SUM || a->n != 2 || a->term[0].of.n != 0 || !near(fs, a->term[1].c, 1))
    return NULL;
  return formula_arg(fs, &a->term[1].of, FORMULA_EXP);
}

static void remove_factor(struct formula *a, int k) {
  a->f[k] = a->f[--a->n];
}

static void push(struct formulas *fs, struct formula *a, const struct formula_atom *atom, int power) {
  const int k = find_factor(fs, a, atom);
  if (k >= 0) {
    a->f[k].power += power;
    if (!a->f[k].power)
      remove_factor(a, k);
  } else if (a->n == FORMULA_FACTORS) {
    *a = formula_none();
  } else {
    a->f[a->n].atom = atom;
    a->f[a->n++].power = power;
  }
}

/* exp(y)^n is exp(n y), (1 + exp(y))^-n is sigmoid(-y)^n, sqrt(y)^-n is rsqrt(y)^n. */
static void push_known(struct formulas *fs, struct formula *a, const struct formula_atom *atom, int power) {
  const struct formula *y = one_plus_exp(fs, atom);
  struct formula f;

  if (y && power < 0)
    f = function(fs, FORMULA_SIGMOID, formula_scaled(*y, -1), 1);
  else if (atom->kind == FORMULA_SQRT && power < 0)
    f = function(fs, FORMULA_RSQRT, atom->arg, 1);
  else if (atom->kind == FORMULA_EXP && power != 1) {
    f = function(fs, FORMULA_EXP, formula_scaled(atom->arg, power), 1);
    power = -1;
  } else {
    push(fs, a, atom, power);
    return;
  }
  if (f.is_none)
    *a = f;
  else
    push(fs, a, f.f[0].atom, -power);
}

/* exp(y) sigmoid(-y) is sigmoid(y). */
static void join_exp(struct formulas *fs, struct formula *a) {
  for (int i = 0; i < a->n; i++)
    for (int j = 0; j < a->n; j++) {
      if (a->f[i].atom->kind != FORMULA_EXP || a->f[i].power != 1 || a->f[j].atom->kind != FORMULA_SIGMOID ||
          a->f[j].power != 1)
        continue;
      const struct formula y = a->f[i].atom->arg, minus = formula_scaled(y, -1);
      if (!formula_same(fs, &a->f[j].atom->arg, &minus))
        continue;
      a->f[j].atom = function(fs, FORMULA_SIGMOID, y, 1).f[0].atom;
      remove_factor(a, i);
      return;
    }
}

struct formula formula_power(struct formulas *fs, struct formula a, int power) {
  struct formula out = {.c = a.is_none || (a.c == 0 && power < 0) ? 0 : pow(a.c, power)};
  if (a.is_none || (a.c == 0 && power < 0) || !isfinite(out.c))
    return formula_none();
  for (int k = 0; k < a.n && power && !out.is_none; k++)
    push_known(fs, &out, a.f[k].atom, a.f[k].power * power);
  return out;
}

struct formula formula_mul(struct formulas *fs, struct formula a, struct formula b) {
  if (a.is_none || b.is_none)
    return formula_none();
  if (a.n == 0 || b.n == 0) {
    const double by = a.n == 0 ? a.c : b.c;
    return formula_scaled(a.n == 0 ? b : a, by);
  }
  const double c = a.c * b.c;
  for (int k = 0; k < b.n && !a.is_none; k++)
    push_known(fs, &a, b.f[k].atom, b.f[k].power);
  if (a.is_none || !isfinite(c))
    return formula_none();
  a.c = c;
  join_exp(fs, &a);
  return a;
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

struct formula formula_of(struct formulas *fs, enum formula_kind kind, struct formula arg) {
  const struct formula_atom *atom = single(&arg);

  if (arg.is_none || arg.n == 0) /* functions of constants are folded before */
    return formula_none();
  if (kind == FORMULA_LOG && atom && near(fs, arg.c, 1) && one_plus_exp(fs, atom))
    return function(fs, FORMULA_SOFTPLUS, *one_plus_exp(fs, atom), 1);
  if (kind == FORMULA_EXP && atom && atom->kind == FORMULA_SOFTPLUS && near(fs, arg.c, -1))
    return function(fs, FORMULA_SIGMOID, formula_scaled(atom->arg, -1), 1); /* 1 / (1 + exp(y)) */
  if (kind == FORMULA_ABS || (kind == FORMULA_POSITIVE && arg.c > 0)) {
    const double size = fabs(arg.c);
    arg.c = 1;
    if (atom && (atom->kind == FORMULA_EXP || atom->kind == FORMULA_SIGMOID || atom->kind == FORMULA_ABS))
      return formula_scaled(arg, size);
    return function(fs, kind, arg, size);
  }
  return function(fs, kind, arg, 1);
}
