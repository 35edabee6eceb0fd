/* glyphs: the characters of the preview's typefaces as pixels, drawn when the server was built (font/atlas.c). */
#ifndef PREVIEW_GLYPHS_H
#define PREVIEW_GLYPHS_H

#include <stddef.h>

enum typeface { FACE_CODE, FACE_TEXT, FACE_TITLE, FACE_COUNT };

struct glyph {
  unsigned code; /* point of Unicode */
  int bits;      /* index of its pixels: rows from the top, `width` bytes each, 0 (nothing) to 15 (full) */
  int left, top; /* of the pixels, from the pen to the right and from the base line up */
  int width, height;
  int advance; /* of the pen */
};

/* Returns the character of the typeface and sets *bits to its pixels; NULL if the typeface does not have it. */
const struct glyph *glyph_find(enum typeface face, unsigned code, const unsigned char **bits);
/* Width of the box that stands for a character that the typeface does not have. */
int glyph_box_width(enum typeface face);
int glyph_box_height(enum typeface face);

#endif
