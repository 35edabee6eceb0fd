/* backwards: dst = src where src goes backwards along loops.
 *
 *     dst[p, n] = src[p, 2047 - n]     ==>     a = src                                         one transfer
 *                                              b[p, i, j, 15-k]  = a[p, i, j, k]               16 copies, one for each k
 *                                              c[p, i, 15-j, k]  = b[p, i, j, k]               16 copies
 *                                              dst[p, 7-i, j, k] = c[p, i, j, k]               8 copies
 *
 * Access patterns only go forwards.  So the place in a row is written as digits, and a pass over the row turns one of them: for each
 * value of the digit an instruction copies the elements that have it, wherever they are.  Many digits take many passes, few of them
 * many instructions; the cheapest ones are taken.  A length without good divisors is turned in two parts.
 *
 * By DMA each element would be a transfer of its own, because it has no neighbour that comes along.  Only a backward loop across the
 * partitions is left to DMA, a transfer for each of them.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/array.h"
#include "passes/lib/price.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

enum {
  DIGITS_MAX = 3,
  OVER_MAX = 32,  /* elements of the shorter one of two parts */
  START = 150,    /* of an instruction, in half cycles; an element of 4 bytes takes one */
  RUN_BYTES = 512 /* a descriptor of as many takes little longer than its data */
};

/* ---- digits ------------------------------------------------------------------------------------------------------ */

struct digits {
  int n;
  int64_t size[DIGITS_MAX], cost;
};

/* Returns the cheapest digits for a loop of so many values, none of which is less than `least`.  beside: the elements of a
 * partition for each value. */
static struct digits best_digits(int64_t extent, int64_t beside, int64_t least, int n_max) {
  struct digits best = {1, {extent}, extent * (START + beside)};

  for (int64_t first = least; n_max > 1 && first * first <= extent; first++) {
    if (extent % first)
      continue;
    struct digits d = best_digits(extent / first, beside * first, first, n_max - 1);
    d.cost += first * (START + extent / first * beside);
    if (d.cost >= best.cost)
      continue;
    d.size[d.n++] = first;
    best = d;
  }
  return best;
}

/* Divides the loop's values into a first part and a rest, which may be empty. */
static void best_parts(int64_t extent, int64_t beside, int n_max, struct digits *first, struct digits *rest) {
  *first = best_digits(extent, beside, 2, n_max);
  *rest = (struct digits){0};
  for (int64_t over = 1; over <= OVER_MAX && 2 * over < extent; over++) {
    const struct digits a = best_digits(extent - over, beside, 2, n_max), b = best_digits(over, beside, 2, n_max);
    if (a.cost + b.cost < first->cost + rest->cost) {
      *first = a;
      *rest = b;
    }
  }
}

static int64_t size_of(const struct digits *d) {
  int64_t n = d->n > 0;
  for (int k = 0; k < d->n; k++)
    n *= d->size[k];
  return n;
}

static int64_t instructions_of(const struct digits *d) {
  int64_t n = 0;
  for (int k = 0; k < d->n; k++)
    n += d->size[k];
  return n;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static struct ln_view *copy_view(struct ln_walk *w, const struct ln_view *v) {
  struct ln_view *copy = arena_new(&w->ln->scratch, struct ln_view);
  *copy = *v;
  copy->is_temp = false;
  array_push(&w->ln->scratch, &w->views, copy);
  return copy;
}

/* Adds `by` to the atom in all indices of v. */
static void shift(struct ln_view *v, int atom, int64_t by) {
  for (int r = 0; r < v->rank; r++)
    for (int k = 0; k < v->index[r].n; k++)
      if (v->index[r].term[k].atom == atom)
        v->index[r].constant += v->index[r].term[k].coef * by;
}

/* v where the atom has this value. */
static struct ln_view at_value(const struct ln_view *v, int atom, int64_t value) {
  struct ln_view one = *v;
  shift(&one, atom, value);
  for (int r = 0; r < one.rank; r++)
    for (int k = 0; k < one.index[r].n; k++)
      if (one.index[r].term[k].atom == atom)
        one.index[r].term[k--] = one.index[r].term[--one.index[r].n];
  return one;
}

/* The distance in memory between neighbours along the atom, in elements. */
static int64_t distance(const struct ln_view *v, int atom) {
  int64_t unit = 1, sum = 0;

  for (int r = v->rank - 1; r >= 0; r--) {
    for (int k = 0; k < v->index[r].n; k++)
      if (v->index[r].term[k].atom == atom)
        sum += v->index[r].term[k].coef * unit;
    unit *= mlirShapedTypeGetDimSize(mlirValueGetType(v->base), r);
  }
  return sum;
}

static ln_atoms backward_atoms(const struct ln_walk *w, const struct ln_view *v) {
  ln_atoms s = 0;
  for (int a = 0; a < w->n_atoms; a++)
    if (distance(v, a) < 0)
      s |= (ln_atoms)1 << a;
  return s;
}

/* ---- by DMA ------------------------------------------------------------------------------------------------------ */

/* dst = src; each of these atoms becomes a loop. */
static enum status move_one_by_one(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src,
                                   ln_atoms atoms) {
  struct ln *ln = w->ln;
  struct ir_builder outside = ln->b;
  struct ln_view to = *dst, from = *src;

  for (int k = 0; k < w->n_atoms; k++) {
    const int a = w->order[k];
    if (!(atoms >> a & 1))
      continue;
    MlirValue iv = ln_open_loop(ln, w->atom[a].extent);
    ln_fix_atom(ln, &to, a, iv);
    ln_fix_atom(ln, &from, a, iv);
  }
  enum status st = ln_move(w, &to, &from, false);
  ln->b = outside;
  return st;
}

/* ---- in passes --------------------------------------------------------------------------------------------------- */

/* dst = src, except that the digit goes backwards in src. */
static enum status turn_digit(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src, int digit) {
  const int64_t n = w->atom[digit].extent;
  enum status st = ST_OK;

  for (int64_t k = 0; !st && k < n; k++) {
    const struct ln_view to = at_value(dst, digit, k), from = at_value(src, digit, n - 1 - k);
    st = ln_move(w, &to, &from, false);
  }
  return st;
}

/* Turns the values of the atom from `at` on, as many as the digits have, out of `all`. */
static enum status turn_part(const struct ln_walk *whole, const struct ln_view *dst, const struct ln_view *src,
                             int atom, int64_t at, const struct digits *d) {
  struct ln_walk w = *whole;
  const int64_t all = w.atom[atom].extent, n = size_of(d);
  int digit[DIGITS_MAX] = {atom};
  enum status st = ST_OK;

  w.views.v = NULL; /* the atoms of the other views stay as they are */
  w.views.n = w.views.cap = 0;
  struct ln_view *to = copy_view(&w, dst), *from = copy_view(&w, src);
  shift(to, atom, at);
  shift(from, atom, all - n - at);
  w.atom[atom].extent = n;
  for (int k = 1; k < d->n; k++) {
    digit[k] = w.n_atoms;
    if (!ln_split_atom(&w, atom, d->size[k]))
      return ln_fail(w.ln, "it works on too many dimensions");
  }
  for (int k = d->n - 1; !st && k >= 0; k--) {
    struct ln_view *into = k ? ln_temp(&w, dst->element, MEM_SBUF, ln_partition_atoms(to), ln_view_atoms(to)) : to;
    st = turn_digit(&w, into, from, digit[k]);
    ln_release(w.ln, from);
    from = into;
  }
  return st;
}

static void explain(const struct ln_walk *w, const struct ln_view *dst, int64_t n, int64_t instructions, int passes) {
  const enum target t = w->ln->run->target;
  const int64_t row = ln_extent(w, ln_view_atoms(dst) & ~ln_partition_atoms(dst)),
                rows = ln_extent(w, ln_partition_atoms(dst)), bytes = nisa_element_bytes(dst->element);
  struct remark *r = pass_remark(w->ln->run, w->ln->op, RULE_BACKWARDS,
                                 "%" PRId64 " elements go backwards in %d pass%s over the row: %" PRId64 " copies", n,
                                 passes, passes == 1 ? "" : "es", instructions);
  price_chosen(r, price_transfer_ns(t, rows * row * bytes, row * bytes) +
                      price_instructions_ns(t, SIM_COST_VECTOR_COPY, instructions, 0) +
                      passes * price_rows_ns(t, SIM_COST_VECTOR_COPY, rows, row));
  price_instead(r, "a transfer for each of them", price_transfers_ns(t, n, rows * row / n * bytes, bytes),
                "an element has no neighbour that comes along");
}

/* dst = src, except that the atom goes backwards in src. */
static enum status turn(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src, int atom) {
  const int64_t n = w->atom[atom].extent;
  const ln_atoms beside = ln_view_atoms(dst) & ~ln_partition_atoms(dst) & ~((ln_atoms)1 << atom);
  /* a pass has a dimension for each digit but one, and for each loop beside them */
  const int room = nisa_machine(w->ln->run->target)->free_dims + 1 - __builtin_popcountll(beside);
  struct digits first, rest;

  best_parts(n, ln_extent(w, beside), room < 1 ? 1 : room < DIGITS_MAX ? room : DIGITS_MAX, &first, &rest);
  explain(w, dst, n, instructions_of(&first) + instructions_of(&rest), first.n > rest.n ? first.n : rest.n);
  enum status st = turn_part(w, dst, src, atom, 0, &first);
  return st || !rest.n ? st : turn_part(w, dst, src, atom, size_of(&first), &rest);
}

enum status ln_move_backwards(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src) {
  const ln_atoms par = ln_partition_atoms(dst), backwards = backward_atoms(w, src);
  struct ln_view forwards = *src;
  enum status st = ST_OK;

  if (!(backwards & ~par) || dst->space != MEM_SBUF || !ln_has_partitions(w, dst, par) ||
      !mlirTypeEqual(dst->element, src->element) || nisa_element_bytes(src->element) > 4 ||
      (ln_view_atoms(src) & ~ln_view_atoms(dst)))
    return move_one_by_one(w, dst, src, backwards);
  for (int a = 0; a < w->n_atoms; a++) {
    if (!((backwards & ~par) >> a & 1))
      continue;
    shift(&forwards, a, w->atom[a].extent - 1);
    for (int r = 0; r < src->rank; r++)
      for (int k = 0; k < forwards.index[r].n; k++)
        if (forwards.index[r].term[k].atom == a)
          forwards.index[r].term[k].coef *= -1;
  }
  struct ln_view *from = ln_temp(w, dst->element, MEM_SBUF, par, ln_view_atoms(src) | par);
  st = move_one_by_one(w, from, &forwards, backwards & par);
  ln_atoms left = backwards & ~par;
  for (int a = 0; !st && a < w->n_atoms; a++) {
    if (!(left >> a & 1))
      continue;
    left &= ~((ln_atoms)1 << a);
    struct ln_view to = *dst, *into = left ? ln_temp(w, dst->element, MEM_SBUF, par, ln_view_atoms(src) | par) : &to;
    st = turn(w, into, from, a);
    ln_release(w->ln, from);
    from = into;
  }
  return st;
}
