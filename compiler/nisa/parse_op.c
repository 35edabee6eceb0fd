/* parse_op: rewrites one operation of the readable form to MLIR's generic form.
 *
 *     op      = NAME "(" item {"," item} ")" "engine" "=" WORD ["signal"] [":" type]
 *             | "nisa.alloc" {place} ":" type  |  "nisa.release" VALUE ":" type
 *     place   = ("alignment" | "copies" | "stride") "=" INT  |  ("at" | "address") "=" "[" INT ["," INT] "]"
 *     item    = NAME "<" tile "=" type VALUE ["as" type] ("[" indices "]" | map "[" values "]")      (parse_access.c)
 *             | NAME "=" type VALUE      (an operand of the operation)      |  NAME ["=" value]   (an attribute)
 *
 * The parser is not recursive.  Types, maps and values of attributes are passed on to MLIR as the text between
 * brackets.
 */
#include "nisa/parse_op.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "nisa/other.h"
#include "nisa/print_op.h"
#include "nisa/tokens.h"

/* ---- items ------------------------------------------------------------------------------------------------------ */

/* Reads  as bf16  if it is there. */
static enum status other_type(struct nisa_statement *t, struct nisa_parsed_operand *x) {
  const size_t at = t->s->at;
  if (nisa_span_is(t->s, nisa_word(t->s), "as"))
    return nisa_parse_type(t, &x->other);
  t->s->at = at;
  return ST_OK;
}

static enum status operand(struct nisa_statement *t, struct nisa_parsed_operand *x, struct nisa_span name) {
  enum status st;

  if (x->is_given)
    return nisa_source_fail(t->s, name.from, "%s: the operand %.*s is there twice", t->def->full_name,
                            nisa_span_width(name), t->s->text + name.from);
  x->is_given = true;
  x->is_access = nisa_eat(t->s, '<');
  if (x->is_access && (st = nisa_parse_tile(t, x)) != ST_OK)
    return st;
  if ((st = nisa_expect(t, '=', "after the operand's name")) != ST_OK || (st = nisa_parse_type(t, &x->type)) != ST_OK)
    return st;
  if (nisa_span_is(t->s, x->type, "view") && nisa_peek(t->s) == '(')
    return nisa_source_fail(t->s, x->type.from,
                            "%s: a view(…) is not read: memref.expand_shape or collapse_shape gives "
                            "the memory another shape",
                            t->def->full_name);
  if ((st = nisa_parse_value(t, &x->base)) != ST_OK || !x->is_access || (st = other_type(t, x)) != ST_OK)
    return st;
  nisa_skip_space(t->s);
  return nisa_peek(t->s) == 'a' ? nisa_parse_map(t, x) : nisa_parse_indices(t, x);
}

static enum status attribute(struct nisa_statement *t, struct nisa_span name) {
  struct nisa_source *s = t->s;
  if (t->n_attrs == NISA_ATTRS_MAX)
    return nisa_source_fail(s, name.from, "%s: it has more than %d attributes", t->def->full_name, NISA_ATTRS_MAX);
  struct nisa_parsed_attr *a = &t->attr[t->n_attrs++];
  a->name = name;
  if (!nisa_eat(s, '='))
    return ST_OK;
  nisa_skip_space(s);
  a->value.from = s->at;
  while (s->at < s->len && nisa_peek(s) != ',' && nisa_peek(s) != ')') {
    if (nisa_peek(s) == '"')
      nisa_skip_string(s);
    else if (nisa_closing(nisa_peek(s))) {
      enum status st = nisa_skip_brackets(t);
      if (st)
        return st;
    } else
      s->at += nisa_peek(s) == '-' && s->at + 1 < s->len && s->text[s->at + 1] == '>' ? 2 : 1;
  }
  a->value.to = s->at;
  while (!nisa_span_is_empty(a->value) && isspace((unsigned char)s->text[a->value.to - 1]))
    a->value.to--;
  return nisa_span_is_empty(a->value)
             ? nisa_source_fail(s, a->value.from, "%s: expected a value after '='", t->def->full_name)
             : ST_OK;
}

static enum status item(struct nisa_statement *t) {
  struct nisa_span name = nisa_word(t->s);
  if (nisa_span_is_empty(name))
    return nisa_source_fail(t->s, name.from, "%s: expected the name of an operand or an attribute", t->def->full_name);
  for (int k = 0; k < t->def->n_operands; k++)
    if (nisa_span_is(t->s, name, t->def->operand[k].name))
      return operand(t, &t->operand[k], name);
  nisa_skip_space(t->s);
  if (nisa_peek(t->s) == '<')
    return nisa_source_fail(t->s, name.from, "%s has no operand %.*s", t->def->full_name, nisa_span_width(name),
                            t->s->text + name.from);
  return attribute(t, name);
}

static enum status items(struct nisa_statement *t) {
  enum status st = nisa_expect(t, '(', "and the operands");
  if (st || nisa_eat(t->s, ')'))
    return st;
  do {
    if ((st = item(t)) != ST_OK)
      return st;
  } while (nisa_eat(t->s, ','));
  return nisa_expect(t, ')', "or ',' after an operand or an attribute");
}

/* ---- the generic form ------------------------------------------------------------------------------------------- */

static void put_operands(struct nisa_statement *t, bool types) {
  struct nisa_source *s = t->s;
  const char *comma = "";

  for (int k = 0; k < t->def->n_operands; k++) {
    const struct nisa_parsed_operand *x = &t->operand[k];
    if (!x->is_given)
      continue;
    const struct nisa_span base = types ? x->type : x->base;
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

static void put_segments(struct nisa_statement *t) {
  for (int k = 0; k < t->def->n_operands; k++)
    nisa_source_put(t->s, t->start, "%s%d, %d", k ? ", " : "", t->operand[k].is_given, t->operand[k].n_indices);
}

static void put_access(struct nisa_statement *t, const char *name, const struct nisa_parsed_operand *x) {
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
  if (nisa_span_is_empty(x->other))
    return;
  nisa_source_put(s, at, ", %s_type = ", name);
  nisa_source_copy(s, x->other.from, x->other.to);
}

static bool is_number(const char *v, size_t n) {
  size_t k = n > 1 && v[0] == '-';
  for (; k < n; k++)
    if (!isdigit((unsigned char)v[k]))
      return false;
  return n > 0;
}

static void put_attr(struct nisa_statement *t, const struct nisa_parsed_attr *a) {
  struct nisa_source *s = t->s;
  const char *v = s->text + a->value.from;
  const size_t n = a->value.to - a->value.from, at = a->value.from;

  nisa_source_put(s, a->name.from, ", ");
  nisa_source_copy(s, a->name.from, a->name.to);
  if (!n)
    return;
  nisa_source_put(s, at, " = ");
  const char *ours = nisa_other_word(s->text + a->name.from, a->name.to - a->name.from, v, n);
  if (ours)
    nisa_source_put(s, at, "\"%s\"", ours);
  else if (nisa_text_is_word(v, n) && !nisa_span_is(s, a->value, "true") && !nisa_span_is(s, a->value, "false")) {
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

static void put_default(struct nisa_statement *t) {
  const char *name, *value;
  nisa_other_default(t->def->kind, &name, &value);
  bool is_given = !name;
  for (int k = 0; k < t->n_attrs; k++)
    is_given = is_given || nisa_span_is(t->s, t->attr[k].name, name);
  if (!is_given)
    nisa_source_put(t->s, t->start, ", %s = %s", name, value);
}

static void put_generic(struct nisa_statement *t) {
  struct nisa_source *s = t->s;

  nisa_source_put(s, t->start, "\"%s\"(", t->def->full_name);
  put_operands(t, false);
  nisa_source_put(s, t->engine.from, ") {engine = \"");
  nisa_source_copy(s, t->engine.from, t->engine.to);
  nisa_source_put(s, t->start,
                  t->signals ? "\", signal, operandSegmentSizes = array<i32: "
                             : "\", operandSegmentSizes = array<i32: ");
  put_segments(t);
  nisa_source_put(s, t->start, ">");
  for (int k = 0; k < t->def->n_operands; k++)
    if (t->operand[k].is_access)
      put_access(t, t->def->operand[k].name, &t->operand[k]);
  for (int k = 0; k < t->n_attrs; k++)
    put_attr(t, &t->attr[k]);
  put_default(t);
  nisa_source_put(s, t->start, "} : (");
  put_operands(t, true);
  nisa_source_put(s, t->start, nisa_span_is_empty(t->result) ? ") -> ()" : ") -> ");
  nisa_source_copy(s, t->result.from, t->result.to);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static enum status check_operands(struct nisa_statement *t) {
  for (int k = 0; k < t->def->n_operands; k++) {
    const struct nisa_operand_def *d = &t->def->operand[k];
    const struct nisa_parsed_operand *x = &t->operand[k];
    if (!x->is_given && !d->is_optional)
      return nisa_source_fail(t->s, t->start, "%s: the operand %s is missing", t->def->full_name, d->name);
    if (x->is_given && !(x->is_access ? d->may_be_access : d->may_be_scalar))
      return nisa_source_fail(t->s, x->type.from, "%s: the operand %s is %s", t->def->full_name, d->name,
                              x->is_access ? "a scalar, without a tile" : "an access: its tile is missing");
  }
  return ST_OK;
}

static enum status engine(struct nisa_statement *t) {
  struct nisa_source *s = t->s;
  const struct nisa_span key = nisa_word(s);

  if (!nisa_span_is(s, key, "engine"))
    return nisa_source_fail(s, key.from, "%s: expected engine=… after the operands", t->def->full_name);
  enum status st = nisa_expect(t, '=', "after engine");
  if (st)
    return st;
  t->engine = nisa_word(s);
  const char *name = s->text + t->engine.from;
  enum nisa_engine e = nisa_engine_from_name(mlirStringRefCreate(name, t->engine.to - t->engine.from));
  if (e == NISA_ENGINE_NONE)
    return nisa_source_fail(s, t->engine.from, "%s: there is no engine %.*s", t->def->full_name,
                            nisa_span_width(t->engine), name);
  if (!(t->def->engines & 1u << e))
    return nisa_source_fail(s, t->engine.from, "%s does not run on the %s engine", t->def->full_name,
                            nisa_engine_name(e));
  const size_t after = s->at;
  t->signals = nisa_span_is(s, nisa_word(s), "signal");
  s->at = t->signals ? s->at : after;
  return ST_OK;
}

static enum status instruction(struct nisa_statement *t) {
  enum status st = items(t);
  if (st || (st = check_operands(t)) != ST_OK)
    return st;
  if ((st = engine(t)) != ST_OK)
    return st;
  if (t->def->kind == NISA_REGISTER_LOAD && ((st = nisa_expect(t, ':', "and the type of the result")) != ST_OK ||
                                             (st = nisa_parse_type(t, &t->result)) != ST_OK))
    return st;
  put_generic(t);
  return ST_OK;
}

/* ---- allocations ------------------------------------------------------------------------------------------------ */

/* "[0, 4096]": the numbers of a place, the last of which is the offset. */
struct at {
  int n;
  int64_t v[2];
};

static enum status parse_at(struct nisa_statement *t, struct at *at) {
  enum status st = nisa_expect(t, '[', "and the place of the memory");
  do {
    if (st)
      return st;
    if (at->n == 2)
      return nisa_source_fail(t->s, t->s->at, "%s: a place has at most two numbers", t->def->full_name);
    st = nisa_parse_integer(t, &at->v[at->n++]);
  } while (!st && nisa_eat(t->s, ','));
  return st ? st : nisa_expect(t, ']', "after the place");
}

/* The first number of a place: the attribute that the memory of the type calls for; NULL if the type does not name
 * one that has two numbers. */
static const char *first_attr(const struct nisa_source *s, struct nisa_span memref) {
  static const char head[] = "#nisa.mem<";
  for (size_t k = memref.from; k + sizeof head + 4 < memref.to; k++) {
    if (memcmp(s->text + k, head, sizeof head - 1) != 0)
      continue;
    const char *space = s->text + k + sizeof head - 1;
    space += *space == '"';
    return !memcmp(space, "sbuf", 4) ? "partition" : !memcmp(space, "psum", 4) ? "bank" : NULL;
  }
  return NULL;
}

/* The attributes of an allocation, before its type. */
struct alloc_attrs {
  struct nisa_span name; /* the last one; empty if there is none */
  struct at at, address;
  struct {
    const char *name;
    bool is_given;
    int64_t value;
  } number[3];
};

static enum status parse_alloc_attr(struct nisa_statement *t, struct alloc_attrs *a) {
  struct nisa_source *s = t->s;
  for (int k = 0; k < 3; k++)
    if (nisa_span_is(s, a->name, a->number[k].name) && !a->number[k].is_given) {
      enum status st = nisa_expect(t, '=', "after the name");
      a->number[k].is_given = true;
      return st ? st : nisa_parse_integer(t, &a->number[k].value);
    }
  if (nisa_span_is(s, a->name, "at") && !a->at.n) {
    enum status st = nisa_expect(t, '=', "after at");
    return st ? st : parse_at(t, &a->at);
  }
  if (nisa_span_is(s, a->name, "address") && !a->address.n) {
    enum status st = nisa_expect(t, '=', "after address");
    return st ? st : parse_at(t, &a->address);
  }
  return nisa_source_fail(s, a->name.from, "nisa.alloc has no attribute %.*s, or has it twice",
                          nisa_span_width(a->name), s->text + a->name.from);
}

static enum status put_alloc(struct nisa_statement *t, const struct alloc_attrs *a, struct nisa_span memref) {
  struct nisa_source *s = t->s;
  const char *comma = "", *first = first_attr(s, memref);

  if (a->at.n == 2 && !first)
    return nisa_source_fail(s, memref.from, "nisa.alloc: a place of two numbers is in sbuf or psum");
  if (a->address.n && (a->address.n != 2 || !first))
    return nisa_source_fail(s, memref.from, "nisa.alloc: an address has two numbers, in sbuf or psum");
  nisa_source_put(s, t->start, "\"nisa.alloc\"() {");
  for (int k = 0; k < 3; k++)
    if (a->number[k].is_given) {
      nisa_source_put(s, t->start, "%s%s = %" PRId64 " : i64", comma, a->number[k].name, a->number[k].value);
      comma = ", ";
    }
  if (a->address.n) {
    nisa_source_put(s, t->start, "%saddress = array<i64: %" PRId64 ", %" PRId64 ">", comma, a->address.v[0],
                    a->address.v[1]);
    comma = ", ";
  }
  if (a->at.n) {
    nisa_source_put(s, t->start, "%soffset = %" PRId64 " : i64", comma, a->at.v[a->at.n - 1]);
    if (a->at.n == 2)
      nisa_source_put(s, t->start, ", %s = %" PRId64 " : i64", first, a->at.v[0]);
  }
  nisa_source_put(s, t->start, "} : () -> ");
  nisa_source_copy(s, memref.from, memref.to);
  return ST_OK;
}

static enum status alloc(struct nisa_statement *t) {
  struct alloc_attrs a = {.number = {{.name = "alignment"}, {.name = "copies"}, {.name = "stride"}}};
  struct nisa_span memref;
  enum status st = ST_OK;

  while (!st && !nisa_span_is_empty(a.name = nisa_word(t->s)))
    st = parse_alloc_attr(t, &a);
  if (st || (st = nisa_expect(t, ':', "and the type of the memory")) != ST_OK ||
      (st = nisa_parse_type(t, &memref)) != ST_OK)
    return st;
  return put_alloc(t, &a, memref);
}

static enum status release(struct nisa_statement *t) {
  struct nisa_source *s = t->s;
  struct nisa_span memory, memref;
  enum status st = nisa_parse_value(t, &memory);

  if (st || (st = nisa_expect(t, ':', "and the type of the memory")) != ST_OK ||
      (st = nisa_parse_type(t, &memref)) != ST_OK)
    return st;
  nisa_source_put(s, t->start, "\"nisa.release\"(");
  nisa_source_copy(s, memory.from, memory.to);
  nisa_source_put(s, t->start, ") : (");
  nisa_source_copy(s, memref.from, memref.to);
  nisa_source_put(s, t->start, ") -> ()");
  return ST_OK;
}

enum status nisa_parse_op(struct nisa_source *s, const struct nisa_op_def *def, size_t start) {
  struct nisa_statement t = {.s = s, .def = def, .start = start};
  return def->kind == NISA_ALLOC ? alloc(&t) : def->kind == NISA_RELEASE ? release(&t) : instruction(&t);
}
