/* parse_op: rewrites one operation of the readable form; and the text that is being rewritten. */
#ifndef NISA_PARSE_OP_H
#define NISA_PARSE_OP_H

#include "base/buf.h"
#include "nisa/streams.h"

/* The bytes of the new text from `out` on come from the old text at `in`: byte by byte if they were copied, otherwise
 * all from that one place. */
struct nisa_piece {
  size_t out, in;
  bool is_copy;
};

/* The program of a stream or a core whose end has not been read yet. */
struct nisa_open_stream {
  const char *name, *on; /* name: "" for a core; on: "" for an engine */
  int core;              /* number of a core */
  int depth;             /* of braces outside */
};

struct nisa_source {
  const char *name, *text;
  size_t len, at; /* at: the next byte to read */
  struct arena *arena;
  struct diags *ds;
  struct buf out;
  struct {
    struct nisa_piece *v;
    int n, cap;
  } pieces;  /* in ascending order of `out` */
  int depth; /* of braces */
  struct {
    struct nisa_open_stream *v;
    int n, cap;
  } streams;
};

/* Appends text[from, to) to out, with  #nisa.mem<sbuf>  as  #nisa.mem<"sbuf">. */
void nisa_source_copy(struct nisa_source *s, size_t from, size_t to);
/* Appends generated text, which comes from the place `in`. */
void nisa_source_put(struct nisa_source *s, size_t in, const char *fmt, ...) PRINTF(3, 4);
/* Adds an error at a byte of the text.  Returns ST_INPUT. */
enum status nisa_source_fail(struct nisa_source *s, size_t at, const char *fmt, ...) PRINTF(3, 4);
/* Adds the error that the brackets from this byte on are nested more than IR_NEST_MAX deep.  Returns ST_LIMIT. */
enum status nisa_source_too_deep(struct nisa_source *s, size_t at);

/* Rewrites an operation.  Its name began at `start`, and s->at is after it. */
MUST_USE enum status nisa_parse_op(struct nisa_source *s, const struct nisa_op_def *def, size_t start);

/* parse_stream.c.  Rewrites  nisa.wait, …  as above. */
MUST_USE enum status nisa_parse_sync(struct nisa_source *s, enum nisa_sync kind, size_t start);
/* Rewrites  nisa.program vector {  or  nisa.queue qSyncIn on sync {  up to the brace. */
MUST_USE enum status nisa_parse_stream(struct nisa_source *s, bool is_queue, size_t start);
/* Rewrites  nisa.core 0 {  in the same way. */
MUST_USE enum status nisa_parse_core(struct nisa_source *s, size_t start);
/* Rewrites the brace at s->at, after which s->at is, if it ends a stream or a core. */
bool nisa_end_stream(struct nisa_source *s, size_t *copied);

#endif
