/* ast: the analysis of a kernel before it runs (python/nkx/nki_ast.py), and places of arguments. */
#ifndef TRACE_NKI_AST_H
#define TRACE_NKI_AST_H

#include "nki/ast.h"
#include "trace/program.h"

/* Analyses the kernel: every violation that its source shows becomes a diagnostic.  has_shapes: k's parameters are known.
 * Returns the text of the stage, in the program's arena; NULL with an exception if the job's time is up. */
struct nki_ast *nki_analyse(struct trace_program *program, const struct program_kernel *k, bool has_shapes,
                            struct diags *ds);
/* The place of the argument for a parameter in the call at `loc`; loc itself if that is not known. */
const struct src_loc *nki_argument_loc(struct ranges *r, const struct src_loc *loc, const char *param);
/* Drops the errors from number `from` on whose places overlap one of an earlier error from number `first` on: the same
 * mistake, found again when the kernel ran. */
void nki_drop_repeated(struct diags *ds, int first, int from);
/* True if there is an error from number `first` on. */
bool nki_has_error(const struct diags *ds, int first);

#endif
