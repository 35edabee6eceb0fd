/* read_text: what the files of the text reader share: a cursor over the text, and one instruction as it was parsed.
 *
 * Private to hlo/.  Functions that return bool return false when they refuse the text; the cursor then holds the fact and
 * its diagnostics the reason.
 */
#ifndef HLO_READ_TEXT_H
#define HLO_READ_TEXT_H

#include "hlo/read.h"

/* A position in the text.  The first error stays: later reads do nothing and return false. */
struct hlo_cursor {
  const char *at, *end;
  const char *text;  /* the whole text, with a NUL after it */
  const char *file;  /* its name, for ranges */
  struct arena *a;   /* the module's */
  struct arena *tmp; /* dropped when the text has been read */
  struct diags *ds;
  const size_t *line_starts;
  int n_lines;
  bool is_bad;
};

/* A stretch of the text. */
struct hlo_span {
  const char *at;
  size_t len;
};
bool hlo_span_is(struct hlo_span s, const char *word);
bool hlo_span_equal(struct hlo_span x, struct hlo_span y);

/* ---- read_cursor.c ------------------------------------------------------------------------------------------------- */

/* The text is borrowed; text[len] is NUL. */
void hlo_cur_start(struct hlo_cursor *c, struct arena *a, struct arena *tmp, const char *text, size_t len,
                   const char *file, struct diags *ds);
/* A cursor over part of the text.  It shares the diagnostics, but not is_bad. */
struct hlo_cursor hlo_cur_within(const struct hlo_cursor *c, struct hlo_span s);
/* Refuses the text, unless it was refused before; always false. */
bool hlo_cur_fail(struct hlo_cursor *c, struct hlo_span where, enum diag_code code, const char *fmt, ...) PRINTF(4, 5);
bool hlo_cur_refuse_here(struct hlo_cursor *c, const char *wanted);         /* "expected …, found 'x'" */
struct src_loc *hlo_cur_place(struct hlo_cursor *c, struct hlo_span where); /* as lines and columns */

void hlo_cur_space(struct hlo_cursor *c);         /* skips white space and comments */
bool hlo_cur_peek(struct hlo_cursor *c, char ch); /* whether ch is next, after space */
bool hlo_cur_take(struct hlo_cursor *c, char ch); /* takes ch if it is next; false: it is not */
bool hlo_cur_need(struct hlo_cursor *c, char ch); /* refuses the text if ch is not next */
bool hlo_cur_take_word(struct hlo_cursor *c, const char *word);
/* A word of letters, digits, _ . and -; `what` names it in the refusal. */
bool hlo_cur_word(struct hlo_cursor *c, struct hlo_span *out, const char *what);
bool hlo_cur_name(struct hlo_cursor *c, struct hlo_span *out); /* a word with or without % */
bool hlo_cur_number_starts(struct hlo_cursor *c);              /* whether a character that can start a number is next */
bool hlo_cur_int(struct hlo_cursor *c, int64_t *out);
bool hlo_cur_string(struct hlo_cursor *c, const char **out);   /* in quotes; without escapes, in the module's arena */
bool hlo_cur_ints(struct hlo_cursor *c, struct hlo_ints *out); /* {1,2}, or {} */
/* The value of an attribute: up to the comma or the end of the line outside all brackets and quotes. */
bool hlo_cur_value(struct hlo_cursor *c, struct hlo_span *out);
void hlo_cur_skip_item(struct hlo_cursor *c); /* the same up to a space, and unread */

/* read_literal.c */
bool hlo_read_shape(struct hlo_cursor *c, struct hlo_shape *out);
bool hlo_read_literal(struct hlo_cursor *c, const struct hlo_shape *shape, const struct hlo_literal **out);

/* ---- one instruction, not yet linked to others ---------------------------------------------------------------------- */

struct hlo_text_attr {
  struct hlo_span key, value;
  struct hlo_text_attr *next;
};

struct hlo_text_instr {
  struct hlo_span whole, name, opcode;
  struct hlo_shape shape;
  bool is_root;
  int op; /* enum hlo_op */
  int n_operands;
  struct hlo_span *operands;
  const struct hlo_literal *literal; /* of a constant */
  int64_t number;                    /* of a parameter */
  struct hlo_text_attr *attrs;
  struct hlo_instr *made; /* NULL until the graph has it */
  struct hlo_text_instr *next;
};

/* The attribute of this name; NULL if there is none. */
const struct hlo_text_attr *hlo_text_attr(const struct hlo_text_instr *t, const char *key);

/* ---- read_outputs.c: for both readers ------------------------------------------------------------------------------ */

/* Names the module's outputs by number; false if one of several is a tuple itself. */
bool hlo_read_set_outputs(struct hlo_module *m);
/* The program writes parameter `param` in place and returns it as result `output`, which gets its name.  The caller has
 * made room in m->aliases. */
void hlo_read_add_alias(struct hlo_module *m, int output, int param);

#endif
