/* print_op: prints one NISA operation in the readable form of print.h; the rules that printer and parser share. */
#ifndef NISA_PRINT_OP_H
#define NISA_PRINT_OP_H

#include "base/buf.h"
#include "base/index.h"
#include "nisa/streams.h"

/* The texts of the types and attributes of a module, each printed once: MLIR makes a state of its printer for each that it prints.
 * Starts as {.by_what.arena = …}, otherwise zero. */
struct nisa_texts {
  struct index by_what;
  struct {
    struct nisa_text {
      const void *what; /* the address of the type, the attribute, or the map of indices */
      const char *text; /* NULL: it is too long */
      size_t len;
    } *v;
    int n, cap;
  } texts;
};

struct nisa_line {
  struct arena *arena;
  MlirAsmState names;
  struct nisa_texts *texts;
  struct buf *out;
  /* filled by nisa_can_write */
  struct nisa_instr in;
  enum nisa_sync sync;      /* if it is none, op is in `in` */
  struct nisa_access count; /* of a wait */
};

/* False if the readable form cannot express op. */
bool nisa_can_write(struct nisa_line *w, MlirOperation op);
/* After nisa_can_write: appends op, without indentation and newline. */
void nisa_write(struct nisa_line *w, MlirOperation op);

/* The length of  #nisa.mem<  or  #nisa.target<  at s; 0 if s begins otherwise.  The readable form omits the quotes of
 * their keyword. */
size_t nisa_text_keyword_attr(const char *s, const char *end);
/* The text can be a string without quotes, or the name of an attribute. */
bool nisa_text_is_word(const char *s, size_t len);

#endif
