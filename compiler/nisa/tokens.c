/* tokens: see tokens.h. */
#include "nisa/tokens.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "ir/ir.h"
#include "nisa/print_op.h"

char nisa_peek(const struct nisa_source *s) {
  return s->at < s->len ? s->text[s->at] : '\0';
}

void nisa_skip_space(struct nisa_source *s) {
  for (; s->at < s->len; s->at++) {
    if (s->text[s->at] == '/' && s->at + 1 < s->len && s->text[s->at + 1] == '/')
      while (s->at < s->len && s->text[s->at] != '\n')
        s->at++;
    if (!isspace((unsigned char)nisa_peek(s)))
      return;
  }
}

bool nisa_eat(struct nisa_source *s, char c) {
  nisa_skip_space(s);
  if (s->at >= s->len || s->text[s->at] != c)
    return false;
  s->at++;
  return true;
}

enum status nisa_expect(struct nisa_statement *t, char c, const char *where) {
  if (nisa_eat(t->s, c))
    return ST_OK;
  return nisa_source_fail(t->s, t->s->at, "%s: expected '%c' %s", t->def->full_name, c, where);
}

struct nisa_span nisa_word(struct nisa_source *s) {
  nisa_skip_space(s);
  struct nisa_span w = {s->at, s->at};
  while (s->at < s->len && (isalnum((unsigned char)s->text[s->at]) || s->text[s->at] == '_'))
    s->at++;
  w.to = s->at;
  return nisa_text_is_word(s->text + w.from, w.to - w.from) ? w : (s->at = w.from, (struct nisa_span){w.from, w.from});
}

bool nisa_span_is(const struct nisa_source *s, struct nisa_span x, const char *text) {
  return strlen(text) == x.to - x.from && !memcmp(s->text + x.from, text, x.to - x.from);
}

enum status nisa_parse_value(struct nisa_statement *t, struct nisa_span *out) {
  struct nisa_source *s = t->s;
  nisa_skip_space(s);
  out->from = s->at;
  if (nisa_peek(s) == '%') {
    s->at++;
    while (s->at < s->len && (isalnum((unsigned char)s->text[s->at]) || strchr("_$.-#", s->text[s->at])) &&
           nisa_peek(s))
      s->at++;
  }
  out->to = s->at;
  if (out->to - out->from < 2)
    return nisa_source_fail(s, out->from, "%s: expected a %%value", t->def->full_name);
  return ST_OK;
}

enum status nisa_parse_integer(struct nisa_statement *t, int64_t *out) {
  struct nisa_source *s = t->s;
  nisa_skip_space(s);
  const size_t from = s->at;
  int64_t v = 0;
  bool is_big = false;
  for (; isdigit((unsigned char)nisa_peek(s)); s->at++)
    is_big |= __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, nisa_peek(s) - '0', &v);
  if (s->at == from)
    return nisa_source_fail(s, from, "%s: expected a number", t->def->full_name);
  if (is_big)
    return nisa_source_fail(s, from, "%s: the number is too large", t->def->full_name);
  *out = v;
  return ST_OK;
}

void nisa_skip_string(struct nisa_source *s) {
  for (s->at++; s->at < s->len && s->text[s->at] != '"'; s->at++)
    s->at += s->text[s->at] == '\\';
  s->at += s->at < s->len;
  if (s->at > s->len)
    s->at = s->len;
}

char nisa_closing(char open) {
  return open == '(' ? ')' : open == '<' ? '>' : open == '[' ? ']' : open == '{' ? '}' : '\0';
}

enum status nisa_skip_brackets(struct nisa_statement *t) {
  struct nisa_source *s = t->s;
  const size_t open = s->at;
  char expected[IR_NEST_MAX]; /* the closing brackets of the open ones */
  int depth = 0;

  assert(nisa_closing(nisa_peek(s)));
  while (s->at < s->len) {
    const char c = s->text[s->at], next = s->at + 1 < s->len ? s->text[s->at + 1] : '\0';
    if (c == '"') {
      nisa_skip_string(s);
      continue;
    }
    s->at++;
    if ((c == '-' && next == '>') || (c == '>' && next == '=')) /* in function types, in affine sets */
      s->at++;
    else if (nisa_closing(c) && depth == IR_NEST_MAX)
      return nisa_source_too_deep(s, open);
    else if (nisa_closing(c))
      expected[depth++] = nisa_closing(c);
    else if (strchr(")>]}", c) && c && c != expected[--depth])
      break;
    else if (depth == 0)
      return ST_OK;
  }
  return nisa_source_fail(s, open, "%s: the '%c' is never closed", t->def->full_name, s->text[open]);
}

enum status nisa_parse_type(struct nisa_statement *t, struct nisa_span *out) {
  struct nisa_source *s = t->s;
  nisa_skip_space(s);
  out->from = s->at;
  s->at += nisa_peek(s) == '!';
  while (isalnum((unsigned char)nisa_peek(s)) || nisa_peek(s) == '_' || nisa_peek(s) == '.')
    s->at++;
  out->to = s->at;
  if (nisa_span_is_empty(*out))
    return nisa_source_fail(s, out->from, "%s: expected a type", t->def->full_name);
  enum status st = nisa_peek(s) == '<' ? nisa_skip_brackets(t) : ST_OK;
  out->to = s->at;
  return st;
}
