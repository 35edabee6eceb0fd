/* What the reader of HLO text shares: a cursor over the text, and the parsed form of one instruction. */
#ifndef HLO_READ_TEXT_H
#define HLO_READ_TEXT_H

#include "hlo/read.h"

/* A place in the text.  The first error sticks: later reads do nothing and say false. */
struct cursor {
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
struct span {
  const char *at;
  size_t len;
};

/* The text is borrowed. */
void cur_start(struct cursor *c, struct arena *a, struct arena *tmp, const char *text, size_t len, const char *file,
               struct diags *ds);
bool cur_fail(struct cursor *c, struct span where, enum diag_code code, const char *fmt, ...) PRINTF(4, 5);
struct src_loc *cur_place(struct cursor *c, struct span where); /* its range, lines and columns counted */

void cur_space(struct cursor *c);         /* white space and comments */
bool cur_peek(struct cursor *c, char ch); /* after space */
bool cur_take(struct cursor *c, char ch); /* takes it if it is next */
bool cur_need(struct cursor *c, char ch); /* or fails */
bool cur_take_word(struct cursor *c, const char *word);
bool cur_word(struct cursor *c, struct span *out, const char *what); /* letters, digits, _ . - */
bool cur_name(struct cursor *c, struct span *out);                   /* the same, with or without % */
bool cur_int(struct cursor *c, int64_t *out);
bool cur_string(struct cursor *c, const char **out);   /* in quotes, unescaped, in the arena */
bool cur_ints(struct cursor *c, struct hlo_ints *out); /* {1,2}, or {} */
/* The value of an attribute: up to the comma or the line's end outside all brackets and quotes. */
bool cur_value(struct cursor *c, struct span *out);
struct cursor cur_within(const struct cursor *c, struct span s);

bool span_is(struct span s, const char *word);
bool span_equal(struct span x, struct span y);

bool read_shape(struct cursor *c, struct hlo_shape *out);
/* read_window.c: {size=2x2 stride=…}; b01f_01io->b01f; {{0,1},{2,3}} or [2,2]<=[4]; {{0}: (1, {})} */
bool read_window(struct cursor *c, const struct hlo_window **out);
bool read_dim_labels(struct cursor *c, struct hlo_conv_dims *out);
bool read_groups(struct cursor *c, const struct hlo_groups **out);
bool read_operand_aliases(struct cursor *c, struct hlo_attrs *out);
bool read_literal(struct cursor *c, const struct hlo_shape *shape, const struct hlo_literal **out);

/* ---- one instruction, not yet linked to others ----------------------------------------------------------------- */

struct text_attr {
  struct span key, value;
  struct text_attr *next;
};

struct text_instr {
  struct span whole, name, opcode;
  struct hlo_shape shape;
  bool is_root;
  int op; /* enum hlo_op */
  int n_operands;
  struct span *operands;
  const struct hlo_literal *literal; /* constant */
  int64_t number;                    /* parameter */
  struct text_attr *attrs;
  struct hlo_instr *made;
  struct text_instr *next;
};

/* Looks for an attribute; NULL if it is not there. */
const struct text_attr *text_attr(const struct text_instr *t, const char *key);

/* Names the module's outputs by number; false if one is a tuple. */
bool read_set_outputs(struct hlo_module *m);
/* The program writes parameter `param` in place and gives it as result `output`, which is named like it. */
void read_add_alias(struct hlo_module *m, int output, int param);

/* read_attr.c: fills the attributes of `out` (its op, shape and operands are there).  called names computations: they are
 * found with `find`. */
struct attr_reader {
  struct cursor *c;
  const struct text_instr *t;
  struct hlo_computation *(*find)(void *user, struct span name);
  void *user;
};
bool read_attributes(struct attr_reader *r, struct hlo_instr *out);
/* The computations that t calls, by name, in the order of hlo_instr.called. */
bool read_called(struct cursor *c, const struct text_instr *t, int *n, struct span **out);

#endif
