/* lsp: the Language Server Protocol (3.17): what an editor is told about the kernels in its texts.
 *
 * serve.c reads messages and runs compiles; tell.c and actions.c make answers from a document and its last good result.
 */
#ifndef LSP_LSP_H
#define LSP_LSP_H

#include "driver/job.h"
#include "lsp/document.h"

#define LSP_OPEN "nkx.openInExplorer" /* a command of the editor: its argument is {"uri", "range"?} */

struct lsp_settings {
  const char *server; /* the explorer that links open */
  enum target target;
};

/* The job of a document, whose texts it borrows. */
void lsp_job(const struct document *d, const struct lsp_settings *cfg, struct job *out);

/* All return an object or a list that the caller releases; NULL: null, which is nothing. */

/* tell.c: the diagnostics of a result of the document's present text. */
struct json_t *lsp_diagnostics(const struct document *d, const struct json_t *result);
/* What the expression at the position becomes, and what its line costs. */
struct json_t *lsp_hover(const struct document *d, const struct json_t *position);
/* Tiles and memories of the expressions in a range. */
struct json_t *lsp_hints(const struct document *d, const struct json_t *range);
/* actions.c: writing a knob that a decision about an expression in the range offers; opening the explorer. */
struct json_t *lsp_actions(const struct document *d, const struct json_t *range);
/* Appends an address that opens the document, as it is, with the range selected. */
MUST_USE enum status lsp_link(const struct document *d, const struct lsp_settings *cfg, const struct json_t *range,
                              struct buf *out, struct error *err);

/* ---- what tell.c and actions.c share ----------------------------------------------------------------------------- */

struct span {
  struct place from, to;
};
bool span_has(const struct span *s, struct place p);
/* Reads a place of frames.h. */
struct span span_read(const struct json_t *place);
/* The innermost place of a remark, or of a line, that is in the document's own text; false: there is none. */
bool lsp_own_span(const struct document *d, const struct json_t *holder, struct span *out);
/* The last good result's range in the present text; NULL: it is not there any more. */
struct json_t *lsp_present_range(const struct document *d, const struct span *s);

#endif
