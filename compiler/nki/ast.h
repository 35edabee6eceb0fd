/* ast: the analysis of an NKI kernel before it is run: the text of the stage nki-ast.  The tracer makes it
 * (trace/nki/ast.h). */
#ifndef NKI_AST_H
#define NKI_AST_H

#include <stddef.h>
#include <stdint.h>

#include "base/src.h"

/* A line of the text, from 1, with the kind of its statement ("for") and its place in the source. */
struct nki_ast_line {
  int line;
  const char *name;
  const struct src_loc *loc;
};

struct nki_ast {
  const char *text;
  size_t text_len;
  int n; /* lines that have a place, in order */
  struct nki_ast_line *v;
  int64_t time_us;
};

#endif
