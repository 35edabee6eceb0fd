#include "preview/glyphs.h"

#include <stdbool.h>

#include "atlas.inc"

#define FACE(name) {name##_glyphs, sizeof name##_glyphs / sizeof *name##_glyphs, name##_bits}
static const struct {
  const struct glyph *v; /* in order of code points */
  size_t n;
  const unsigned char *bits;
} faces[FACE_COUNT] = {[FACE_CODE] = FACE(code), [FACE_TEXT] = FACE(text), [FACE_TITLE] = FACE(title)};

const struct glyph *glyph_find(enum typeface face, unsigned code, const unsigned char **bits) {
  size_t low = 0, high = faces[face].n;
  while (low < high) {
    const size_t mid = (low + high) / 2;
    const struct glyph *g = &faces[face].v[mid];
    if (g->code == code) {
      *bits = faces[face].bits + g->bits;
      return g;
    }
    if (g->code < code)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}

static const struct glyph *letter_x(enum typeface face) {
  const unsigned char *bits;
  return glyph_find(face, 'X', &bits);
}

int glyph_box_width(enum typeface face) {
  return letter_x(face)->width;
}

int glyph_box_height(enum typeface face) {
  return letter_x(face)->top;
}
