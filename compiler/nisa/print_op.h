/* print_op: one NISA operation in the readable form of print.h, and what the printer and the parser agree on. */
#ifndef NISA_PRINT_OP_H
#define NISA_PRINT_OP_H

#include "base/buf.h"
#include "nisa/nisa.h"

struct nisa_line {
  struct arena *arena;
  MlirAsmState names;
  struct buf *out;
  struct nisa_instr in; /* filled by nisa_can_write */
};

/* False if only the generic form says everything about op. */
bool nisa_can_write(struct nisa_line *w, MlirOperation op);
/* After nisa_can_write: appends op, without indentation and newline. */
void nisa_write(struct nisa_line *w, MlirOperation op);

/* Length of  #nisa.mem<  or  #nisa.target<  at s, 0 if neither stands there.  Their keyword has no quotes in our form. */
size_t nisa_text_keyword_attr(const char *s, const char *end);
/* A word that may stand for a string, or for the name of an attribute. */
bool nisa_text_is_word(const char *s, size_t len);

#endif
