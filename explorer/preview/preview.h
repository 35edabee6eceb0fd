/* preview: the picture of a stored link that other programs show beside the link (og:image).
 *
 *   +----------------------------------------------------------+
 *   | nkx  Neuron Kernel Explorer                      trn2    |
 *   | The link's title                                         |
 *   | +------------------------------------------------------+ |
 *   | | 1  def kernel(x):           the source's first lines  | |
 *   | +------------------------------------------------------+ |
 *   | 46 stages · 44 of them checked, all pass · 12.3 µs       |
 *   +----------------------------------------------------------+
 *
 * Nothing is read at run time: the characters are part of the program.  Any text may be given; what the typefaces do not
 * have is drawn as a box.
 */
#ifndef PREVIEW_PREVIEW_H
#define PREVIEW_PREVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { PREVIEW_WIDTH = 1200, PREVIEW_HEIGHT = 630 };

struct preview {
  const char *title, *target; /* UTF-8; target NULL: unknown */
  size_t title_len;
  const char *source; /* NULL: it is not a text */
  size_t source_len;
  bool is_python;              /* its words have colours */
  int stages, checked, failed; /* of the first kernel; checked: of stages, with a result; failed: of those */
  double simulated_us;         /* 0: not simulated */
  bool is_refused;             /* the kernel was not compiled to the end */
};

/* Appends the picture as a PNG.  ST_NOMEM; ST_LIMIT if out is too small. */
MUST_USE enum status preview_png(const struct preview *p, struct buf *out);

#endif
