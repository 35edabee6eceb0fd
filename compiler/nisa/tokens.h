/* tokens: reading the readable form of one NISA operation, token by token.
 *
 * Functions skip spaces and comments before they read, unless they say otherwise.  After an error, which they add at
 * the place of the token, the text is not read any further.
 */
#ifndef NISA_TOKENS_H
#define NISA_TOKENS_H

#include "nisa/parse_op.h"

enum { NISA_ATTRS_MAX = 32 }; /* that one operation may have; more are refused */

/* Bytes [from, to) of the text. */
struct nisa_span {
  size_t from, to;
};

struct nisa_parsed_operand {
  bool is_given, is_access;
  struct nisa_span type, base, other; /* other: the type after `as`; may be empty */
  int n_dims, par_dims;
  int64_t tile[NISA_TILE_MAX];
  int n_indices;
  struct nisa_span index[NISA_RANK_MAX];
  struct nisa_span map; /* as the text has it; empty if it has index expressions */
  const char *made;     /* from index expressions: "(d0, d1)[s0] -> (d0, d1 + s0)" */
};

struct nisa_parsed_attr {
  struct nisa_span name, value; /* an empty value: a unit attribute */
};

struct nisa_statement {
  struct nisa_source *s;
  const struct nisa_op_def *def;
  size_t start;
  struct nisa_parsed_operand operand[NISA_OPERANDS_MAX];
  int n_attrs;
  struct nisa_parsed_attr attr[NISA_ATTRS_MAX];
  struct nisa_span engine, result; /* result: its type */
  bool signals;
};

static inline bool nisa_span_is_empty(struct nisa_span x) {
  return x.from == x.to;
}
/* The length of x for a message, which shows 60 bytes at most. */
static inline int nisa_span_width(struct nisa_span x) {
  return x.to - x.from < 60 ? (int)(x.to - x.from) : 60;
}
bool nisa_span_is(const struct nisa_source *s, struct nisa_span x, const char *text);

/* The next byte, which may be a space; NUL at the end. */
char nisa_peek(const struct nisa_source *s);
void nisa_skip_space(struct nisa_source *s);
/* Reads c if it is the next character. */
bool nisa_eat(struct nisa_source *s, char c);
/* The same, with an error if it is not: "expected '=' after engine". */
enum status nisa_expect(struct nisa_statement *t, char c, const char *where);
/* Letters, digits and '_' that make a word (nisa_text_is_word); empty if there is no word. */
struct nisa_span nisa_word(struct nisa_source *s);
/* %name, also with the number of a result: %0#1 */
enum status nisa_parse_value(struct nisa_statement *t, struct nisa_span *out);
/* A number that is not negative. */
enum status nisa_parse_integer(struct nisa_statement *t, int64_t *out);
/* f32, index, memref<…>, !dialect.type<…> */
enum status nisa_parse_type(struct nisa_statement *t, struct nisa_span *out);

/* The bracket that closes `open`; NUL if it is not an opening bracket. */
char nisa_closing(char open);
/* From the opening bracket, which is the next byte, to after the one that closes it. */
enum status nisa_skip_brackets(struct nisa_statement *t);
/* From the quote, which is the next byte, to after the one that ends the string. */
void nisa_skip_string(struct nisa_source *s);

/* ---- accesses (parse_access.c) ----------------------------------------------------------------------------------- */

/* "128| 4, 512>" */
enum status nisa_parse_tile(struct nisa_statement *t, struct nisa_parsed_operand *x);
/* "[%i * 128 + d0, d1]" */
enum status nisa_parse_indices(struct nisa_statement *t, struct nisa_parsed_operand *x);
/* What a wait counts to: "%i * 2 + 1", or a map as below. */
enum status nisa_parse_count(struct nisa_statement *t, struct nisa_parsed_operand *x);
/* "affine_map<…>[%i, %j]" */
enum status nisa_parse_map(struct nisa_statement *t, struct nisa_parsed_operand *x);

#endif
