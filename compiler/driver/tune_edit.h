/* tune_edit: knobs as changes of a Python text.
 *
 *     s = np.exp(x - m)        site of x - m, mem_space = "Hbm"        s = np.exp(knob.knob(x - m, mem_space="Hbm"))
 *     knob.knob(s).tile_op(…)  a statement that is dropped             pass
 *
 * A site is an expression and an argument that a knob around it would take, or a statement that is a knob.  Sites refer to the
 * text as it was first; a text with any choice of values is made from that one, so that the order of choices does not matter.
 */
#ifndef DRIVER_TUNE_EDIT_H
#define DRIVER_TUNE_EDIT_H

#include "base/buf.h"
#include "base/src.h"
#include "driver/knob_text.h"
#include "passes/remark.h"

enum { TUNE_ENTRIES_MAX = 8 }; /* of a tile size */

enum tune_what { TUNE_TILE, TUNE_SPACE, TUNE_DIM, TUNE_DROP };
struct tune_value {
  int n;                           /* of entries; a partition dimension has one */
  int64_t entry[TUNE_ENTRIES_MAX]; /* of a tile size, by loop */
  const char *text;                /* of a memory: "\"Hbm\"" */
};
struct tune_site {
  enum tune_what what;
  struct src_range range; /* in the text's own lines */
  size_t from, to;        /* the same in bytes */
  int64_t weight;         /* what the range takes of the critical path, ps */
  int n_dims;             /* of a tile: for each dimension of the value the entry, or -1 */
  int dims[TUNE_ENTRIES_MAX];
  struct tune_value now; /* what the compiler has chosen */
  int n_offers;
  struct tune_value offers[TUNE_ENTRIES_MAX];
};
struct tune_sites {
  struct knob_text written; /* set by the owner: the knobs and the place of an import */
  struct tune_site *v;
  int n, cap;
};

/* Adds the site of a remark's knob, unless there is none in this file, it is there already, or it has no form that goes around
 * an expression. */
void tune_add_remark(struct tune_sites *s, struct arena *a, const char *text, const char *file, const struct remark *r);
/* Adds the statements of the text that are knobs. */
void tune_add_statements(struct tune_sites *s, struct arena *a, const char *text, const char *file);

/* Appends the call around the expression, "…" standing for it, or "pass": what the values of all sites with this range write. */
void tune_put_call(struct buf *b, const struct tune_sites *s, const struct tune_value *const *chosen, int site);
/* Appends the text with the chosen value of each site (NULL: none). */
void tune_put_text(struct buf *b, const char *text, const struct tune_sites *s, const struct tune_value *const *chosen);

#endif
