/* What the reader of HLO text shares: a cursor over the text, and the parsed form of one instruction. */
#ifndef HLO_READ_TEXT_H
#define HLO_READ_TEXT_H

#include "hlo/read.h"

/* A place in the text.  The first error sticks: later reads do nothing and say false. */
struct hlo_cursor {
  const char *at, *end;
  const char *text; /* the whole */
  const char *file;
  struct arena *a;   /* the module's */
  struct arena *tmp; /* for as long as the text is read */
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

/* The text is borrowed. */
void hlo_cur_start(struct hlo_cursor *c, struct arena *a, struct arena *tmp, const char *text, size_t len,
                   const char *file, struct diags *ds);
bool hlo_cur_fail(struct hlo_cursor *c, struct hlo_span where, enum diag_code code, const char *fmt, ...) PRINTF(4, 5);
struct src_loc *hlo_cur_place(struct hlo_cursor *c, struct hlo_span where); /* its range, lines and columns counted */

void hlo_cur_space(struct hlo_cursor *c);         /* white space and comments */
bool hlo_cur_peek(struct hlo_cursor *c, char ch); /* after space */
bool hlo_cur_take(struct hlo_cursor *c, char ch); /* takes it if it is next */
bool hlo_cur_need(struct hlo_cursor *c, char ch); /* or fails */
bool hlo_cur_take_word(struct hlo_cursor *c, const char *word);
bool hlo_cur_word(struct hlo_cursor *c, struct hlo_span *out, const char *what); /* letters, digits, _ . - */
bool hlo_cur_name(struct hlo_cursor *c, struct hlo_span *out);                   /* the same, with or without % */
bool hlo_cur_int(struct hlo_cursor *c, int64_t *out);
bool hlo_cur_string(struct hlo_cursor *c, const char **out);   /* in quotes, unescaped, in the arena */
bool hlo_cur_ints(struct hlo_cursor *c, struct hlo_ints *out); /* {1,2}, or {} */
/* The value of an attribute: up to the comma or the line's end outside all brackets and quotes. */
bool hlo_cur_value(struct hlo_cursor *c, struct hlo_span *out);
struct hlo_cursor hlo_cur_within(const struct hlo_cursor *c, struct hlo_span s);

bool hlo_span_is(struct hlo_span s, const char *word);
bool hlo_span_equal(struct hlo_span x, struct hlo_span y);

bool hlo_read_shape(struct hlo_cursor *c, struct hlo_shape *out);
/* hlo_read_window.c: {size=2x2 stride=…}; b01f_01io->b01f; {{0,1},{2,3}} or [2,2]<=[4]; {{0}: (1, {})} */
bool hlo_read_window(struct hlo_cursor *c, const struct hlo_window **out);
bool hlo_read_dim_labels(struct hlo_cursor *c, struct hlo_conv_dims *out);
bool hlo_read_groups(struct hlo_cursor *c, const struct hlo_groups **out);
bool hlo_read_operand_aliases(struct hlo_cursor *c, struct hlo_attrs *out);
bool hlo_read_literal(struct hlo_cursor *c, const struct hlo_shape *shape, const struct hlo_literal **out);

/* ---- one instruction, not yet linked to others ----------------------------------------------------------------- */

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
  const struct hlo_literal *literal; /* constant */
  int64_t number;                    /* parameter */
  struct hlo_text_attr *attrs;
  struct hlo_instr *made;
  struct hlo_text_instr *next;
};

/* Looks for an attribute; NULL if it is not there. */
const struct hlo_text_attr *hlo_text_attr(const struct hlo_text_instr *t, const char *key);

/* Names the module's outputs by number; false if one is a tuple. */
bool hlo_read_set_outputs(struct hlo_module *m);
/* The program writes parameter `param` in place and gives it as result `output`, which is named like it. */
void hlo_read_add_alias(struct hlo_module *m, int output, int param);

/* read_attr.c: fills the attributes of `out` (its op, shape and operands are there).  called names computations: they are
 * found with `find`. */
struct attr_reader {
  struct hlo_cursor *c;
  const struct hlo_text_instr *t;
  struct hlo_computation *(*find)(void *user, struct hlo_span name);
  void *user;
};
bool hlo_read_attributes(struct attr_reader *r, struct hlo_instr *out);
/* The computations that t calls, by name, in the order of hlo_instr.called. */
bool hlo_read_called(struct hlo_cursor *c, const struct hlo_text_instr *t, int *n, struct hlo_span **out);

#endif
