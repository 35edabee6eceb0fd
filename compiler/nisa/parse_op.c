/* parse_op: see the header.
 *
 *     op      = NAME "(" item {"," item} ")" "engine" "=" WORD [":" type]
 *             | "nisa.alloc" ["alignment" "=" INT] ":" type  |  "nisa.release" VALUE ":" type
 *     item    = NAME "<" ints "|" ints ">" "=" type VALUE ("[" indices "]" | map "[" values "]")
 *             | NAME "=" type VALUE      (an operand of the operation)      |  NAME ["=" value]   (an attribute)
 *     index   = ["-"] term {("+" | "-") term}
 *     term    = VALUE ["*" INT] | dN ["*" INT] | INT ["*" (VALUE | dN)]
 *
 * Nothing here recurses; types, maps and attribute values are passed on to MLIR by their brackets.
 */
#include "nisa/parse_op.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "ir/query.h"
#include "nisa/print_op.h"

enum { ATTRS_MAX = 32, TERMS_MAX = 64, MAP_RESULTS_MAX = NISA_RANK_MAX };

struct span {
  size_t from, to;
};

struct operand {
  bool is_given, is_access;
  struct span type, base;
  int n_dims, par_dims;
  int64_t tile[NISA_TILE_MAX];
  int n_indices;
  struct span index[NISA_RANK_MAX];
  struct span map;  /* written out, or empty */
  const char *made; /* from index expressions: "(d0, d1)[s0] -> (d0, d1 + s0)" */
};

struct attr {
  struct span name, value; /* an empty value: unit */
};

struct statement {
  struct nisa_source *s;
  const struct nisa_op_def *def;
  size_t start;
  struct operand operand[NISA_OPERANDS_MAX];
  int n_attrs;
  struct attr attr[ATTRS_MAX];
  struct span engine, result; /* result: its type */
};

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

static char peek(const struct nisa_source *s) {
  return s->at < s->len ? s->text[s->at] : '\0';
}

static void skip_space(struct nisa_source *s) {
  for (; s->at < s->len; s->at++) {
    if (s->text[s->at] == '/' && s->at + 1 < s->len && s->text[s->at + 1] == '/')
      while (s->at < s->len && s->text[s->at] != '\n')
        s->at++;
    if (!isspace((unsigned char)peek(s)))
      return;
  }
}

static bool eat(struct nisa_source *s, char c) {
  skip_space(s);
  if (s->at >= s->len || s->text[s->at] != c)
    return false;
  s->at++;
  return true;
}

static enum status expect(struct statement *t, char c, const char *where) {
  if (eat(t->s, c))
    return ST_OK;
  return nisa_source_fail(t->s, t->s->at, "%s: expected '%c' %s", t->def->full_name, c, where);
}

static struct span word(struct nisa_source *s) {
  skip_space(s);
  struct span w = {s->at, s->at};
  while (s->at < s->len && (isalnum((unsigned char)s->text[s->at]) || s->text[s->at] == '_'))
    s->at++;
  w.to = s->at;
  return nisa_text_is_word(s->text + w.from, w.to - w.from) ? w : (s->at = w.from, (struct span){w.from, w.from});
}

static bool is_empty(struct span x) {
  return x.from == x.to;
}

static int width(struct span x) {
  return x.to - x.from < 60 ? (int)(x.to - x.from) : 60;
}

static bool span_is(const struct nisa_source *s, struct span x, const char *text) {
  return strlen(text) == x.to - x.from && !memcmp(s->text + x.from, text, x.to - x.from);
}

/* %name, with the number of a result behind it. */
static enum status value(struct statement *t, struct span *out) {
  struct nisa_source *s = t->s;
  skip_space(s);
  out->from = s->at;
  if (peek(s) == '%') {
    s->at++;
    while (s->at < s->len && (isalnum((unsigned char)s->text[s->at]) || strchr("_$.-#", s->text[s->at])) && peek(s))
      s->at++;
  }
  out->to = s->at;
  if (out->to - out->from < 2)
    return nisa_source_fail(s, out->from, "%s: expected a %%value", t->def->full_name);
  return ST_OK;
}

static enum status integer(struct statement *t, int64_t *out) {
  struct nisa_source *s = t->s;
  skip_space(s);
  const size_t from = s->at;
  int64_t v = 0;
  bool is_big = false;
  for (; isdigit((unsigned char)peek(s)); s->at++)
    is_big |= __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, peek(s) - '0', &v);
  if (s->at == from)
    return nisa_source_fail(s, from, "%s: expected a number", t->def->full_name);
  if (is_big)
    return nisa_source_fail(s, from, "%s: the number is too large", t->def->full_name);
  *out = v;
  return ST_OK;
}

static void skip_string(struct nisa_source *s) {
  for (s->at++; s->at < s->len && s->text[s->at] != '"'; s->at++)
    s->at += s->text[s->at] == '\\';
  s->at += s->at < s->len;
  if (s->at > s->len)
    s->at = s->len;
}

static char closing(char open) {
  return open == '(' ? ')' : open == '<' ? '>' : open == '[' ? ']' : open == '{' ? '}' : '\0';
}

/* From an opening bracket to behind the one that closes it. */
static enum status skip_brackets(struct statement *t) {
  struct nisa_source *s = t->s;
  const size_t open = s->at;
  char expected[IR_NEST_MAX];
  int depth = 0;

  while (s->at < s->len) {
    const char c = s->text[s->at], next = s->at + 1 < s->len ? s->text[s->at + 1] : '\0';
    if (c == '"') {
      skip_string(s);
      continue;
    }
    s->at++;
    if ((c == '-' && next == '>') || (c == '>' && next == '=')) /* of function types, of affine sets */
      s->at++;
    else if (closing(c) && depth == IR_NEST_MAX)
      return nisa_source_too_deep(s, open);
    else if (closing(c))
      expected[depth++] = closing(c);
    else if (strchr(")>]}", c) && c && c != expected[--depth])
      break;
    else if (depth == 0)
      return ST_OK;
  }
  return nisa_source_fail(s, open, "%s: the '%c' is never closed", t->def->full_name, s->text[open]);
}

/* f32, index, memref<…>, !dialect.type<…>. */
static enum status type(struct statement *t, struct span *out) {
  struct nisa_source *s = t->s;
  skip_space(s);
  out->from = s->at;
  s->at += peek(s) == '!';
  while (isalnum((unsigned char)peek(s)) || peek(s) == '_' || peek(s) == '.')
    s->at++;
  out->to = s->at;
  if (is_empty(*out))
    return nisa_source_fail(s, out->from, "%s: expected a type", t->def->full_name);
  enum status st = peek(s) == '<' ? skip_brackets(t) : ST_OK;
  out->to = s->at;
  return st;
}

/* ---- index expressions ------------------------------------------------------------------------------------------ */

/* A sum, by what its terms are: MLIR puts them in this order too. */
struct sum {
  int n;
  const char *dims, *symbols;
  int64_t constant;
};

static enum status overflow(struct statement *t, size_t at) {
  return nisa_source_fail(t->s, at, "%s: the number is too large", t->def->full_name);
}

/* dN or a value times factor. */
static enum status atom(struct statement *t, struct operand *x, struct sum *sum, int64_t factor) {
  struct nisa_source *s = t->s;
  const size_t at = s->at;
  int64_t d;
  enum status st;

  if (peek(s) == '%') {
    if (x->n_indices == NISA_RANK_MAX)
      return nisa_source_fail(s, at, "%s: an operand has at most %d indices", t->def->full_name, NISA_RANK_MAX);
    if ((st = value(t, &x->index[x->n_indices])) != ST_OK)
      return st;
    sum->symbols = arena_printf(s->arena, "%s + s%d * %" PRId64, sum->symbols, x->n_indices++, factor);
    return ST_OK;
  }
  if (peek(s) != 'd')
    return nisa_source_fail(s, at, "%s: expected a %%value, d0, d1, … or a number", t->def->full_name);
  s->at++;
  if ((st = integer(t, &d)) != ST_OK)
    return st;
  if (d >= x->n_dims)
    return nisa_source_fail(s, at, "%s: there is no d%" PRId64 ": the tile has %d dimensions", t->def->full_name, d,
                            x->n_dims);
  sum->dims = arena_printf(s->arena, "%s + d%" PRId64 " * %" PRId64, sum->dims, d, factor);
  return ST_OK;
}

static enum status term(struct statement *t, struct operand *x, struct sum *sum, int64_t sign) {
  struct nisa_source *s = t->s;
  skip_space(s);
  const size_t at = s->at;
  int64_t factor = 1;
  enum status st;

  if (++sum->n > TERMS_MAX)
    return nisa_source_fail(s, at, "%s: an index has at most %d terms", t->def->full_name, TERMS_MAX);
  if (isdigit((unsigned char)peek(s))) {
    if ((st = integer(t, &factor)) != ST_OK)
      return st;
    if (eat(s, '*')) {
      skip_space(s);
      return atom(t, x, sum, sign * factor);
    }
    return __builtin_add_overflow(sum->constant, sign * factor, &sum->constant) ? overflow(t, at) : ST_OK;
  }
  /* the factor stands behind: look ahead, then read the atom */
  struct nisa_source ahead = *s;
  ahead.at = s->at + (peek(s) == '%' || peek(s) == 'd');
  while (isalnum((unsigned char)peek(&ahead)) || (peek(&ahead) && strchr("_$.-#", peek(&ahead))))
    ahead.at++;
  if (eat(&ahead, '*')) {
    const size_t here = s->at;
    s->at = ahead.at;
    if ((st = integer(t, &factor)) != ST_OK)
      return st;
    ahead.at = s->at;
    s->at = here;
    st = atom(t, x, sum, sign * factor);
    s->at = st ? s->at : ahead.at;
    return st;
  }
  return atom(t, x, sum, sign);
}

/* One index.  Appends what it is as the result of a map to *results. */
static enum status index_expr(struct statement *t, struct operand *x, const char **results) {
  struct sum sum = {.dims = "", .symbols = ""};
  int64_t sign = eat(t->s, '-') ? -1 : 1;

  for (;;) {
    enum status st = term(t, x, &sum, sign);
    if (st)
      return st;
    if (eat(t->s, '+'))
      sign = 1;
    else if (eat(t->s, '-'))
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

/* "(d0, d1)[s0, s1]" */
static const char *map_head(struct arena *a, int n_dims, int n_symbols) {
  const char *head = "(";
  for (int d = 0; d < n_dims; d++)
    head = arena_printf(a, "%s%sd%d", head, d ? ", " : "", d);
  head = arena_printf(a, "%s)[", head);
  for (int k = 0; k < n_symbols; k++)
    head = arena_printf(a, "%s%ss%d", head, k ? ", " : "", k);
  return arena_printf(a, "%s]", head);
}

static enum status indices(struct statement *t, struct operand *x) {
  const char *results = "";
  int n = 0;
  enum status st = expect(t, '[', "and the indices of the operand");

  if (st)
    return st;
  if (!eat(t->s, ']')) {
    do {
      if (n++ == MAP_RESULTS_MAX)
        return nisa_source_fail(t->s, t->s->at, "%s: an operand has at most %d dimensions", t->def->full_name,
                                MAP_RESULTS_MAX);
      if ((st = index_expr(t, x, &results)) != ST_OK)
        return st;
    } while (eat(t->s, ','));
    if ((st = expect(t, ']', "behind the indices")) != ST_OK)
      return st;
  }
  x->made = arena_printf(t->s->arena, "%s -> (%s)", map_head(t->s->arena, x->n_dims, x->n_indices), results);
  return ST_OK;
}

/* affine_map<…>[%i, %j] */
static enum status written_map(struct statement *t, struct operand *x) {
  enum status st;

  x->map.from = t->s->at;
  word(t->s);
  if (peek(t->s) != '<')
    return nisa_source_fail(t->s, x->map.from, "%s: expected affine_map<…>", t->def->full_name);
  if ((st = skip_brackets(t)) != ST_OK)
    return st;
  x->map.to = t->s->at;
  if ((st = expect(t, '[', "and the values of the map's symbols")) != ST_OK)
    return st;
  if (eat(t->s, ']'))
    return ST_OK;
  do {
    if (x->n_indices == NISA_RANK_MAX)
      return nisa_source_fail(t->s, t->s->at, "%s: an operand has at most %d indices", t->def->full_name,
                              NISA_RANK_MAX);
    if ((st = value(t, &x->index[x->n_indices++])) != ST_OK)
      return st;
  } while (eat(t->s, ','));
  return expect(t, ']', "behind the map's symbols");
}

/* ---- items ------------------------------------------------------------------------------------------------------ */

static enum status extents(struct statement *t, struct operand *x) {
  do {
    enum status st;
    if (x->n_dims == NISA_TILE_MAX)
      return nisa_source_fail(t->s, t->s->at, "%s: a tile has at most %d dimensions", t->def->full_name, NISA_TILE_MAX);
    if ((st = integer(t, &x->tile[x->n_dims])) != ST_OK)
      return st;
    x->n_dims++;
  } while (eat(t->s, ','));
  return ST_OK;
}

static enum status tile(struct statement *t, struct operand *x) {
  enum status st = extents(t, x);
  if (st || (st = expect(t, '|', "between partition and free dimensions")) != ST_OK)
    return st;
  x->par_dims = x->n_dims;
  if ((st = extents(t, x)) != ST_OK)
    return st;
  return expect(t, '>', "behind the tile");
}

static enum status operand(struct statement *t, struct operand *x, struct span name) {
  enum status st;

  if (x->is_given)
    return nisa_source_fail(t->s, name.from, "%s: the operand %.*s is there twice", t->def->full_name, width(name),
                            t->s->text + name.from);
  x->is_given = true;
  x->is_access = eat(t->s, '<');
  if (x->is_access && (st = tile(t, x)) != ST_OK)
    return st;
  if ((st = expect(t, '=', "behind the operand's name")) != ST_OK || (st = type(t, &x->type)) != ST_OK ||
      (st = value(t, &x->base)) != ST_OK || !x->is_access)
    return st;
  skip_space(t->s);
  return peek(t->s) == 'a' ? written_map(t, x) : indices(t, x);
}

static enum status attribute(struct statement *t, struct span name) {
  struct nisa_source *s = t->s;
  if (t->n_attrs == ATTRS_MAX)
    return nisa_source_fail(s, name.from, "%s: it has more than %d attributes", t->def->full_name, ATTRS_MAX);
  struct attr *a = &t->attr[t->n_attrs++];
  a->name = name;
  if (!eat(s, '='))
    return ST_OK;
  skip_space(s);
  a->value.from = s->at;
  while (s->at < s->len && peek(s) != ',' && peek(s) != ')') {
    if (peek(s) == '"')
      skip_string(s);
    else if (closing(peek(s))) {
      enum status st = skip_brackets(t);
      if (st)
        return st;
    } else
      s->at += peek(s) == '-' && s->at + 1 < s->len && s->text[s->at + 1] == '>' ? 2 : 1;
  }
  a->value.to = s->at;
  while (!is_empty(a->value) && isspace((unsigned char)s->text[a->value.to - 1]))
    a->value.to--;
  return is_empty(a->value) ? nisa_source_fail(s, a->value.from, "%s: expected a value behind '='", t->def->full_name)
                            : ST_OK;
}

static enum status item(struct statement *t) {
  struct span name = word(t->s);
  if (is_empty(name))
    return nisa_source_fail(t->s, name.from, "%s: expected the name of an operand or an attribute", t->def->full_name);
  for (int k = 0; k < t->def->n_operands; k++)
    if (span_is(t->s, name, t->def->operand[k].name))
      return operand(t, &t->operand[k], name);
  skip_space(t->s);
  if (peek(t->s) == '<')
    return nisa_source_fail(t->s, name.from, "%s has no operand %.*s", t->def->full_name, width(name),
                            t->s->text + name.from);
  return attribute(t, name);
}

static enum status items(struct statement *t) {
  enum status st = expect(t, '(', "and the operands");
  if (st || eat(t->s, ')'))
    return st;
  do {
    if ((st = item(t)) != ST_OK)
      return st;
  } while (eat(t->s, ','));
  return expect(t, ')', "or ',' behind an operand or an attribute");
}

/* ---- the generic form ------------------------------------------------------------------------------------------- */

static void put_operands(struct statement *t, bool types) {
  struct nisa_source *s = t->s;
  const char *comma = "";

  for (int k = 0; k < t->def->n_operands; k++) {
    const struct operand *x = &t->operand[k];
    if (!x->is_given)
      continue;
    const struct span base = types ? x->type : x->base;
    nisa_source_put(s, base.from, "%s", comma);
    nisa_source_copy(s, base.from, base.to);
    for (int i = 0; i < x->n_indices; i++) {
      nisa_source_put(s, x->index[i].from, types ? ", index" : ", ");
      if (!types)
        nisa_source_copy(s, x->index[i].from, x->index[i].to);
    }
    comma = ", ";
  }
}

static void put_segments(struct statement *t) {
  for (int k = 0; k < t->def->n_operands; k++)
    nisa_source_put(t->s, t->start, "%s%d, %d", k ? ", " : "", t->operand[k].is_given, t->operand[k].n_indices);
}

static void put_access(struct statement *t, const char *name, const struct operand *x) {
  struct nisa_source *s = t->s;
  const size_t at = x->base.from;

  nisa_source_put(s, at, ", %s_ap = ", name);
  if (x->made)
    nisa_source_put(s, at, "affine_map<%s>", x->made);
  else
    nisa_source_copy(s, x->map.from, x->map.to);
  nisa_source_put(s, at, ", %s_par_dims = %d : i32, %s_tile = array<i64: ", name, x->par_dims, name);
  for (int d = 0; d < x->n_dims; d++)
    nisa_source_put(s, at, "%s%" PRId64, d ? ", " : "", x->tile[d]);
  nisa_source_put(s, at, ">");
}

static bool is_number(const char *v, size_t n) {
  size_t k = n > 1 && v[0] == '-';
  for (; k < n; k++)
    if (!isdigit((unsigned char)v[k]))
      return false;
  return n > 0;
}

static void put_attr(struct statement *t, const struct attr *a) {
  struct nisa_source *s = t->s;
  const char *v = s->text + a->value.from;
  const size_t n = a->value.to - a->value.from, at = a->value.from;

  nisa_source_put(s, a->name.from, ", ");
  nisa_source_copy(s, a->name.from, a->name.to);
  if (!n)
    return;
  nisa_source_put(s, at, " = ");
  if (nisa_text_is_word(v, n) && !span_is(s, a->value, "true") && !span_is(s, a->value, "false")) {
    nisa_source_put(s, at, "\"%.*s\"", (int)n, v);
  } else if (v[0] == '[' && v[n - 1] == ']') {
    const bool is_list = strspn(v + 1, " \t\r\n") < n - 2;
    nisa_source_put(s, at, is_list ? "array<i64: " : "array<i64");
    nisa_source_copy(s, a->value.from + 1, is_list ? a->value.to - 1 : a->value.from + 1);
    nisa_source_put(s, at, ">");
  } else {
    nisa_source_copy(s, a->value.from, a->value.to);
    nisa_source_put(s, a->value.to, is_number(v, n) ? " : i64" : "");
  }
}

static void put_generic(struct statement *t) {
  struct nisa_source *s = t->s;

  nisa_source_put(s, t->start, "\"%s\"(", t->def->full_name);
  put_operands(t, false);
  nisa_source_put(s, t->engine.from, ") {engine = \"");
  nisa_source_copy(s, t->engine.from, t->engine.to);
  nisa_source_put(s, t->start, "\", operandSegmentSizes = array<i32: ");
  put_segments(t);
  nisa_source_put(s, t->start, ">");
  for (int k = 0; k < t->def->n_operands; k++)
    if (t->operand[k].is_access)
      put_access(t, t->def->operand[k].name, &t->operand[k]);
  for (int k = 0; k < t->n_attrs; k++)
    put_attr(t, &t->attr[k]);
  nisa_source_put(s, t->start, "} : (");
  put_operands(t, true);
  nisa_source_put(s, t->start, is_empty(t->result) ? ") -> ()" : ") -> ");
  nisa_source_copy(s, t->result.from, t->result.to);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static enum status check_operands(struct statement *t) {
  for (int k = 0; k < t->def->n_operands; k++) {
    const struct nisa_operand_def *d = &t->def->operand[k];
    const struct operand *x = &t->operand[k];
    if (!x->is_given && !d->is_optional)
      return nisa_source_fail(t->s, t->start, "%s: the operand %s is missing", t->def->full_name, d->name);
    if (x->is_given && !(x->is_access ? d->may_be_access : d->may_be_scalar))
      return nisa_source_fail(t->s, x->type.from, "%s: the operand %s is %s", t->def->full_name, d->name,
                              x->is_access ? "a scalar, without a tile" : "an access: its tile is missing");
  }
  return ST_OK;
}

static enum status engine(struct statement *t) {
  struct nisa_source *s = t->s;
  const struct span key = word(s);

  if (!span_is(s, key, "engine"))
    return nisa_source_fail(s, key.from, "%s: expected engine=… behind the operands", t->def->full_name);
  enum status st = expect(t, '=', "behind engine");
  if (st)
    return st;
  t->engine = word(s);
  const char *name = s->text + t->engine.from;
  enum nisa_engine e = nisa_engine_from_name(mlirStringRefCreate(name, t->engine.to - t->engine.from));
  if (e == NISA_ENGINE_NONE)
    return nisa_source_fail(s, t->engine.from, "%s: there is no engine %.*s", t->def->full_name, width(t->engine),
                            name);
  if (!(t->def->engines & 1u << e))
    return nisa_source_fail(s, t->engine.from, "%s does not run on the %s engine", t->def->full_name,
                            nisa_engine_name(e));
  return ST_OK;
}

static enum status instruction(struct statement *t) {
  enum status st = items(t);
  if (st || (st = check_operands(t)) != ST_OK)
    return st;
  if ((st = engine(t)) != ST_OK)
    return st;
  if (t->def->kind == NISA_REGISTER_LOAD &&
      ((st = expect(t, ':', "and the type of the result")) != ST_OK || (st = type(t, &t->result)) != ST_OK))
    return st;
  put_generic(t);
  return ST_OK;
}

static enum status alloc(struct statement *t) {
  struct nisa_source *s = t->s;
  struct span name = word(s), memref;
  int64_t alignment = 0;
  enum status st;

  if (!is_empty(name)) {
    if (!span_is(s, name, "alignment"))
      return nisa_source_fail(s, name.from, "nisa.alloc has no attribute %.*s", width(name), s->text + name.from);
    if ((st = expect(t, '=', "behind alignment")) != ST_OK || (st = integer(t, &alignment)) != ST_OK)
      return st;
  }
  if ((st = expect(t, ':', "and the type of the memory")) != ST_OK || (st = type(t, &memref)) != ST_OK)
    return st;
  nisa_source_put(s, t->start, "\"nisa.alloc\"() {");
  if (!is_empty(name))
    nisa_source_put(s, name.from, "alignment = %" PRId64 " : i64", alignment);
  nisa_source_put(s, t->start, "} : () -> ");
  nisa_source_copy(s, memref.from, memref.to);
  return ST_OK;
}

static enum status release(struct statement *t) {
  struct nisa_source *s = t->s;
  struct span memory, memref;
  enum status st = value(t, &memory);

  if (st || (st = expect(t, ':', "and the type of the memory")) != ST_OK || (st = type(t, &memref)) != ST_OK)
    return st;
  nisa_source_put(s, t->start, "\"nisa.release\"(");
  nisa_source_copy(s, memory.from, memory.to);
  nisa_source_put(s, t->start, ") : (");
  nisa_source_copy(s, memref.from, memref.to);
  nisa_source_put(s, t->start, ") -> ()");
  return ST_OK;
}

enum status nisa_parse_op(struct nisa_source *s, const struct nisa_op_def *def, size_t start) {
  struct statement t = {.s = s, .def = def, .start = start};
  return def->kind == NISA_ALLOC ? alloc(&t) : def->kind == NISA_RELEASE ? release(&t) : instruction(&t);
}
