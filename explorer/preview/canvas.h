/* canvas: a picture of a few inks on which rectangles and text are drawn.
 *
 * Each ink has 16 levels, from its background to its own colour.  So a pixel is one byte, and the picture becomes a PNG with
 * a palette without counting colours.  What is drawn outside of the picture is left out.
 */
#ifndef PREVIEW_CANVAS_H
#define PREVIEW_CANVAS_H

#include <stdint.h>

#include "base/buf.h"
#include "preview/glyphs.h"

enum { CANVAS_INKS_MAX = 16 };

struct canvas_ink {
  uint32_t colour, background; /* 0xRRGGBB */
};

struct canvas {
  int width, height;
  const struct canvas_ink *inks;
  int n_inks;
  unsigned char *pixels; /* ink * 16 + level, row by row; heap */
};

/* The picture is filled with ink 0.  inks: at most CANVAS_INKS_MAX; they outlive the canvas. */
MUST_USE enum status canvas_open(struct canvas *c, int width, int height, const struct canvas_ink *inks, int n_inks);
void canvas_close(struct canvas *c);

void canvas_fill(struct canvas *c, int x, int y, int width, int height, int ink);
/* A rectangle whose corners are rounded. */
void canvas_round(struct canvas *c, int x, int y, int width, int height, int radius, int ink);
/* Draws UTF-8 on a base line and returns where the pen is then.  A character that the typeface does not have, and what is
 * not UTF-8, is a box.  Stops before `right` with an ellipsis. */
int canvas_text(struct canvas *c, enum typeface face, int x, int y, int right, int ink, const char *text, size_t len);
/* Width of the text. */
int canvas_text_width(enum typeface face, const char *text, size_t len);

/* Appends the picture as a PNG. */
MUST_USE enum status canvas_png(const struct canvas *c, struct buf *out);

#endif
