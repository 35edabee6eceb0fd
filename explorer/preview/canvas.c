#include "preview/canvas.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { LEVELS = 16, ELLIPSIS = 0x2026 };

enum status canvas_open(struct canvas *c, int width, int height, const struct canvas_ink *inks, int n_inks) {
  assert(n_inks > 0 && n_inks <= CANVAS_INKS_MAX);
  const size_t n = (size_t)width * (size_t)height;
  *c = (struct canvas){.width = width, .height = height, .inks = inks, .n_inks = n_inks, .pixels = malloc(n)};
  if (!c->pixels)
    return ST_NOMEM;
  memset(c->pixels, LEVELS - 1, n);
  return ST_OK;
}

void canvas_close(struct canvas *c) {
  free(c->pixels);
  c->pixels = NULL;
}

static void put(struct canvas *c, int x, int y, int ink, int level) {
  assert(ink >= 0 && ink < c->n_inks && level >= 0 && level < LEVELS);
  if (level && x >= 0 && y >= 0 && x < c->width && y < c->height)
    c->pixels[(size_t)y * (size_t)c->width + (size_t)x] = (unsigned char)(ink * LEVELS + level);
}

void canvas_fill(struct canvas *c, int x, int y, int width, int height, int ink) {
  for (int j = y; j < y + height; j++)
    for (int i = x; i < x + width; i++)
      put(c, i, j, ink, LEVELS - 1);
}

/* Returns how much of the pixel is inside of a circle: 4 x 4 points are looked at. */
static int coverage(int dx, int dy, int radius) {
  int inside = 0;
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++) {
      const int px = 8 * dx + 2 * i + 1, py = 8 * dy + 2 * j + 1, r = 8 * radius;
      inside += px * px + py * py <= r * r;
    }
  return inside * (LEVELS - 1) / 16;
}

void canvas_round(struct canvas *c, int x, int y, int width, int height, int radius, int ink) {
  canvas_fill(c, x + radius, y, width - 2 * radius, height, ink);
  canvas_fill(c, x, y + radius, width, height - 2 * radius, ink);
  for (int dy = 0; dy < radius; dy++)
    for (int dx = 0; dx < radius; dx++) {
      const int level = coverage(dx, dy, radius), left = x + radius - 1 - dx, right = x + width - radius + dx;
      const int top = y + radius - 1 - dy, bottom = y + height - radius + dy;
      put(c, left, top, ink, level);
      put(c, right, top, ink, level);
      put(c, left, bottom, ink, level);
      put(c, right, bottom, ink, level);
    }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Reads one character; 0 for a byte that is not UTF-8. */
static unsigned next_code(const char **p, const char *end) {
  const char *s = *p;
  const size_t n = utf8_char(s, (size_t)(end - s));
  *p += n ? n : 1;
  unsigned code = n < 2 ? (unsigned char)*s : (unsigned char)*s & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++)
    code = code << 6 | ((unsigned char)s[i] & 0x3f);
  return n ? code : 0;
}

static int advance_of(enum typeface face, unsigned code) {
  const unsigned char *bits;
  const struct glyph *g = glyph_find(face, code, &bits);
  return g ? g->advance : glyph_box_width(face) + 4;
}

int canvas_text_width(enum typeface face, const char *text, size_t len) {
  int width = 0;
  for (const char *p = text, *end = text + len; p < end;)
    width += advance_of(face, next_code(&p, end));
  return width;
}

/* The outline of a box. */
static void draw_box(struct canvas *c, enum typeface face, int x, int y, int ink) {
  const int width = glyph_box_width(face), height = glyph_box_height(face);
  canvas_fill(c, x + 2, y - height, width, 1, ink);
  canvas_fill(c, x + 2, y - 1, width, 1, ink);
  canvas_fill(c, x + 2, y - height, 1, height, ink);
  canvas_fill(c, x + 1 + width, y - height, 1, height, ink);
}

static int draw(struct canvas *c, enum typeface face, int x, int y, int ink, unsigned code) {
  const unsigned char *bits;
  const struct glyph *g = glyph_find(face, code, &bits);
  if (!g)
    draw_box(c, face, x, y, ink);
  for (int j = 0; g && j < g->height; j++)
    for (int i = 0; i < g->width; i++)
      put(c, x + g->left + i, y - g->top + j, ink, bits[j * g->width + i]);
  return x + advance_of(face, code);
}

int canvas_text(struct canvas *c, enum typeface face, int x, int y, int right, int ink, const char *text, size_t len) {
  const char *end = text + len;
  const int last = right - advance_of(face, ELLIPSIS);
  int rest = canvas_text_width(face, text, len < 4096 ? len : 4096); /* a longer text never fits */
  for (const char *p = text; p < end;) {
    const unsigned code = next_code(&p, end);
    const int advance = advance_of(face, code);
    if (x + rest > right && x + advance > last)
      return draw(c, face, x, y, ink, ELLIPSIS);
    x = draw(c, face, x, y, ink, code);
    rest -= advance;
  }
  return x;
}
