/* formula: a body's arithmetic in a normal form, in which different spellings of one function are equal.
 *
 *     1 / (1 + exp(-x))     exp(x) / (exp(x) + 1)     (tanh(x / 2) + 1) / 2        ==>    sigmoid(x)
 *
 * A formula is a coefficient times a product of atoms with integer powers.  An atom is the unknown x, a function of a
 * formula, or a sum of formulas whose constant, or first term, is 1.  Products and sums are made by functions that keep
 * this form and apply what is known about exp, tanh, erf, log and sqrt.  So two expressions that are the same up to order,
 * grouping and constants become equal formulas.  As functions of real numbers they are equal; where an expression overflows
 * in between (exp(x) / (1 + exp(x)) is NaN from 89 on), its formula has the value without the overflow.
 *
 * Formulas live as long as their arena.  A formula of a size above the limits here, or of operations that it does not know,
 * is not a formula: is_none.
 */
#ifndef PASSES_FORMULA_H
#define PASSES_FORMULA_H

#include <stdbool.h>

#include "base/arena.h"

enum { FORMULA_FACTORS = 4, FORMULA_TERMS = 6 };

enum formula_kind {
  FORMULA_X,
  FORMULA_SUM,
  FORMULA_EXP,
  FORMULA_LOG,
  FORMULA_TANH,
  FORMULA_ERF,
  FORMULA_SQRT,
  FORMULA_ABS,
  FORMULA_POSITIVE, /* max(y, 0) */
  FORMULA_RSQRT,
  FORMULA_SIGMOID,  /* 1 / (1 + exp(-y)) */
  FORMULA_NORMAL,   /* (1 + erf(y / sqrt(2))) / 2 */
  FORMULA_SOFTPLUS, /* log(1 + exp(y)) */
};

struct formula_atom;
struct formula {
  bool is_none;
  double c;
  int n;
  struct {
    const struct formula_atom *atom;
    int power; /* never 0 */
  } f[FORMULA_FACTORS];
};
struct formula_atom {
  enum formula_kind kind;
  struct formula arg; /* of a function */
  int n;              /* of a sum: at least two terms, coefficient times a product whose own coefficient is 1 */
  struct {
    double c;
    struct formula of;
  } term[FORMULA_TERMS];
};

/* Where formulas are made.  Constants that differ by less than `tolerance` of their size are equal: they have been rounded to
 * the type of the expression. */
struct formulas {
  struct arena *arena;
  double tolerance;
};

struct formula formula_none(void);
struct formula formula_number(double c);
struct formula formula_x(struct formulas *fs);
struct formula formula_add(struct formulas *fs, struct formula a, struct formula b);
struct formula formula_mul(struct formulas *fs, struct formula a, struct formula b);
struct formula formula_scaled(struct formula a, double by);
struct formula formula_power(struct formulas *fs, struct formula a, int power); /* a constant 0 has no negative power */
struct formula formula_of(struct formulas *fs, enum formula_kind function, struct formula arg);

bool formula_same(const struct formulas *fs, const struct formula *a, const struct formula *b);
/* The formula is a function, alone and with the coefficient 1: its argument; NULL otherwise. */
const struct formula *formula_arg(const struct formulas *fs, const struct formula *a, enum formula_kind function);
/* a = scale * x + bias. */
bool formula_is_linear(const struct formulas *fs, const struct formula *a, double *scale, double *bias);

#endif
