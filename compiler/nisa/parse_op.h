/* parse_op: one operation of the readable form, rewritten; and the text being rewritten. */
#ifndef NISA_PARSE_OP_H
#define NISA_PARSE_OP_H

#include "base/buf.h"
#include "nisa/nisa.h"

/* The bytes of the new text from `out` on stand for the old text from `in` on: one by one if they were copied,
 * otherwise for that one place. */
struct nisa_piece {
  size_t out, in;
  bool is_copy;
};

struct nisa_source {
  const char *name, *text;
  size_t len, at; /* at: the next byte to read */
  struct arena *arena;
  struct diags *ds;
  struct buf out;
  struct nisa_piece *pieces; /* ascending `out` */
  size_t n, cap;
};

/* Copies text[from, to), with  #nisa.mem<sbuf>  as  #nisa.mem<"sbuf">. */
void nisa_source_copy(struct nisa_source *s, size_t from, size_t to);
/* Generated text that stands for the place `in`. */
void nisa_source_put(struct nisa_source *s, size_t in, const char *fmt, ...) PRINTF(3, 4);
/* Reports an error at a byte of the text.  ST_INPUT. */
enum status nisa_source_fail(struct nisa_source *s, size_t at, const char *fmt, ...) PRINTF(3, 4);
/* The brackets from this byte on are nested more than IR_NEST_MAX deep.  ST_LIMIT. */
enum status nisa_source_too_deep(struct nisa_source *s, size_t at);

/* at is behind the operation's name, which began at `start`. */
MUST_USE enum status nisa_parse_op(struct nisa_source *s, const struct nisa_op_def *def, size_t start);

#endif
