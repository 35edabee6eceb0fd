/* parse_access: reads the tile and the indices of an operand in the readable form.
 *
 *     tile    = ints "|" ints ">"
 *     index   = ["-"] term {("+" | "-") term}
 *     term    = VALUE ["*" INT] | dN ["*" INT] | INT ["*" (VALUE | dN)]
 *
 * Index expressions become the text of an affine map.  A map in the text is passed on to MLIR.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "nisa/tokens.h"

enum { TERMS_MAX = 64, MAP_RESULTS_MAX = NISA_RANK_MAX };

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

static enum status extents(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  do {
    enum status st;
    if (x->n_dims == NISA_TILE_MAX)
      return nisa_source_fail(t->s, t->s->at, "%s: a tile has at most %d dimensions", t->def->full_name, NISA_TILE_MAX);
    if ((st = nisa_parse_integer(t, &x->tile[x->n_dims])) != ST_OK)
      return st;
    x->n_dims++;
  } while (nisa_eat(t->s, ','));
  return ST_OK;
}

enum status nisa_parse_tile(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  enum status st = extents(t, x);
  if (st || (st = nisa_expect(t, '|', "between partition and free dimensions")) != ST_OK)
    return st;
  x->par_dims = x->n_dims;
  if ((st = extents(t, x)) != ST_OK)
    return st;
  return nisa_expect(t, '>', "after the tile");
}

/* ---- index expressions ------------------------------------------------------------------------------------------ */

/* The terms of a sum, sorted by kind: MLIR sorts them in the same way. */
struct sum {
  int n;
  const char *dims, *symbols;
  int64_t constant;
};

static enum status overflow(struct nisa_statement *t, size_t at) {
  return nisa_source_fail(t->s, at, "%s: the number is too large", t->def->full_name);
}

/* Reads dN or a value, and adds factor times the atom to the sum. */
static enum status atom(struct nisa_statement *t, struct nisa_parsed_operand *x, struct sum *sum, int64_t factor) {
  struct nisa_source *s = t->s;
  const size_t at = s->at;
  int64_t d;
  enum status st;

  if (nisa_peek(s) == '%') {
    if (x->n_indices == NISA_RANK_MAX)
      return nisa_source_fail(s, at, "%s: an operand has at most %d indices", t->def->full_name, NISA_RANK_MAX);
    if ((st = nisa_parse_value(t, &x->index[x->n_indices])) != ST_OK)
      return st;
    sum->symbols = arena_printf(s->arena, "%s + s%d * %" PRId64, sum->symbols, x->n_indices++, factor);
    return ST_OK;
  }
  if (nisa_peek(s) != 'd')
    return nisa_source_fail(s, at, "%s: expected a %%value, d0, d1, … or a number", t->def->full_name);
  s->at++;
  if ((st = nisa_parse_integer(t, &d)) != ST_OK)
    return st;
  if (d >= x->n_dims)
    return nisa_source_fail(s, at, "%s: there is no d%" PRId64 ": the tile has %d dimensions", t->def->full_name, d,
                            x->n_dims);
  sum->dims = arena_printf(s->arena, "%s + d%" PRId64 " * %" PRId64, sum->dims, d, factor);
  return ST_OK;
}

static enum status term(struct nisa_statement *t, struct nisa_parsed_operand *x, struct sum *sum, int64_t sign) {
  struct nisa_source *s = t->s;
  nisa_skip_space(s);
  const size_t at = s->at;
  int64_t factor = 1;
  enum status st;

  if (++sum->n > TERMS_MAX)
    return nisa_source_fail(s, at, "%s: an index has at most %d terms", t->def->full_name, TERMS_MAX);
  if (isdigit((unsigned char)nisa_peek(s))) {
    if ((st = nisa_parse_integer(t, &factor)) != ST_OK)
      return st;
    if (nisa_eat(s, '*')) {
      nisa_skip_space(s);
      return atom(t, x, sum, sign * factor);
    }
    return __builtin_add_overflow(sum->constant, sign * factor, &sum->constant) ? overflow(t, at) : ST_OK;
  }
  /* the factor comes after the atom: find it first, then read the atom */
  struct nisa_source ahead = *s;
  ahead.at = s->at + (nisa_peek(s) == '%' || nisa_peek(s) == 'd');
  while (isalnum((unsigned char)nisa_peek(&ahead)) || (nisa_peek(&ahead) && strchr("_$.-#", nisa_peek(&ahead))))
    ahead.at++;
  if (nisa_eat(&ahead, '*')) {
    const size_t here = s->at;
    s->at = ahead.at;
    if ((st = nisa_parse_integer(t, &factor)) != ST_OK)
      return st;
    ahead.at = s->at;
    s->at = here;
    st = atom(t, x, sum, sign * factor);
    s->at = st ? s->at : ahead.at;
    return st;
  }
  return atom(t, x, sum, sign);
}

/* Reads one index and appends it to *results as a result of a map. */
static enum status index_expr(struct nisa_statement *t, struct nisa_parsed_operand *x, const char **results) {
  struct sum sum = {.dims = "", .symbols = ""};
  int64_t sign = nisa_eat(t->s, '-') ? -1 : 1;

  for (;;) {
    enum status st = term(t, x, &sum, sign);
    if (st)
      return st;
    if (nisa_eat(t->s, '+'))
      sign = 1;
    else if (nisa_eat(t->s, '-'))
      sign = -1;
    else
      break;
  }
  const char *all = arena_printf(t->s->arena, "%s%s", sum.dims, sum.symbols);
  if (sum.constant || !*all)
    all = arena_printf(t->s->arena, "%s + %" PRId64, all, sum.constant);
  *results = arena_printf(t->s->arena, "%s%s%s", *results, **results ? ", " : "", all + strlen(" + "));
  return ST_OK;
}

/* Returns, for example, "(d0, d1)[s0, s1]". */
static const char *map_head(struct arena *a, int n_dims, int n_symbols) {
  const char *head = "(";
  for (int d = 0; d < n_dims; d++)
    head = arena_printf(a, "%s%sd%d", head, d ? ", " : "", d);
  head = arena_printf(a, "%s)[", head);
  for (int k = 0; k < n_symbols; k++)
    head = arena_printf(a, "%s%ss%d", head, k ? ", " : "", k);
  return arena_printf(a, "%s]", head);
}

enum status nisa_parse_indices(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  const char *results = "";
  int n = 0;
  enum status st = nisa_expect(t, '[', "and the indices of the operand");

  if (st)
    return st;
  if (!nisa_eat(t->s, ']')) {
    do {
      if (n++ == MAP_RESULTS_MAX)
        return nisa_source_fail(t->s, t->s->at, "%s: an operand has at most %d dimensions", t->def->full_name,
                                MAP_RESULTS_MAX);
      if ((st = index_expr(t, x, &results)) != ST_OK)
        return st;
    } while (nisa_eat(t->s, ','));
    if ((st = nisa_expect(t, ']', "after the indices")) != ST_OK)
      return st;
  }
  x->made = arena_printf(t->s->arena, "%s -> (%s)", map_head(t->s->arena, x->n_dims, x->n_indices), results);
  return ST_OK;
}

enum status nisa_parse_count(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  const char *results = "";
  nisa_skip_space(t->s);
  if (isalpha((unsigned char)nisa_peek(t->s)))
    return nisa_parse_map(t, x);
  enum status st = index_expr(t, x, &results);
  if (!st)
    x->made = arena_printf(t->s->arena, "%s -> (%s)", map_head(t->s->arena, 0, x->n_indices), results);
  return st;
}

enum status nisa_parse_map(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  enum status st;

  x->map.from = t->s->at;
  nisa_word(t->s);
  if (nisa_peek(t->s) != '<')
    return nisa_source_fail(t->s, x->map.from, "%s: expected affine_map<…>", t->def->full_name);
  if ((st = nisa_skip_brackets(t)) != ST_OK)
    return st;
  x->map.to = t->s->at;
  if ((st = nisa_expect(t, '[', "and the values of the map's symbols")) != ST_OK)
    return st;
  if (nisa_eat(t->s, ']'))
    return ST_OK;
  do {
    if (x->n_indices == NISA_RANK_MAX)
      return nisa_source_fail(t->s, t->s->at, "%s: an operand has at most %d indices", t->def->full_name,
                              NISA_RANK_MAX);
    if ((st = nisa_parse_value(t, &x->index[x->n_indices++])) != ST_OK)
      return st;
  } while (nisa_eat(t->s, ','));
  return nisa_expect(t, ']', "after the map's symbols");
}
