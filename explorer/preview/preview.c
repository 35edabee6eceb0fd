#include "preview/preview.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "preview/canvas.h"
#include "preview/words.h"

/* The colours of the page's dark theme (web/src/style/tokens.css). */
#define PAGE 0x0d1117
#define SURFACE 0x12171e
enum {
  INK_PAGE, /* the background; the first of the canvas */
  INK_SURFACE,
  INK_LINE,
  INK_TITLE,
  INK_ACCENT,
  INK_SOFT,
  INK_GOOD,
  INK_BAD,
  INK_NUMBER, /* of a line */
  INK_CODE,   /* and on, in the order of enum word_kind */
  INK_COUNT = INK_CODE + WORD_COUNT
};
static const struct canvas_ink inks[INK_COUNT] = {
    [INK_PAGE] = {PAGE, PAGE},
    [INK_SURFACE] = {SURFACE, 0x242c37},
    [INK_LINE] = {0x242c37, PAGE},
    [INK_TITLE] = {0xdce3ec, PAGE},
    [INK_ACCENT] = {0x6cb0ff, PAGE},
    [INK_SOFT] = {0xa9b4c2, PAGE},
    [INK_GOOD] = {0x4cc38a, PAGE},
    [INK_BAD] = {0xff8a80, PAGE},
    [INK_NUMBER] = {0x96a1b0, SURFACE},
    [INK_CODE + WORD_PLAIN] = {0xdce3ec, SURFACE},
    [INK_CODE + WORD_KEYWORD] = {0xd2a8ff, SURFACE},
    [INK_CODE + WORD_STRING] = {0xa5d6a0, SURFACE},
    [INK_CODE + WORD_NUMBER] = {0xffa98a, SURFACE},
    [INK_CODE + WORD_CALL] = {0x8ac0ff, SURFACE},
    [INK_CODE + WORD_DECORATOR] = {0xe9c46a, SURFACE},
    [INK_CODE + WORD_COMMENT] = {0x9ca7b6, SURFACE},
};

enum {
  MARGIN = 56,
  RIGHT = PREVIEW_WIDTH - MARGIN,
  BRAND_Y = 74,
  TITLE_Y = 142,
  PANEL_Y = 172,
  PANEL_HEIGHT = 360,
  PANEL_PAD = 24,
  LINES = 11,
  LINE_HEIGHT = 30,
  FOOT_Y = 586,
};

static int put_words(struct canvas *c, enum typeface face, int x, int y, int ink, const char *text) {
  return canvas_text(c, face, x, y, RIGHT, ink, text, strlen(text));
}

static void draw_head(struct canvas *c, const struct preview *p) {
  int x = put_words(c, FACE_TEXT, MARGIN, BRAND_Y, INK_ACCENT, "nkx");
  put_words(c, FACE_TEXT, x + 14, BRAND_Y, INK_SOFT, "Neuron Kernel Explorer");
  if (p->target) {
    const size_t len = strlen(p->target);
    canvas_text(c, FACE_TEXT, RIGHT - canvas_text_width(FACE_TEXT, p->target, len < 64 ? len : 64), BRAND_Y, RIGHT,
                INK_SOFT, p->target, len);
  }
  canvas_text(c, FACE_TITLE, MARGIN, TITLE_Y, RIGHT, INK_TITLE, p->title, p->title_len);
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static const char *line_end(const char *p, const char *end) {
  const char *newline = memchr(p, '\n', (size_t)(end - p));
  return newline ? newline : end;
}

/* True for a line of the docstring at the start of a file, a comment, an import and a blank line. */
static bool is_preamble(const char *p, const char *end, bool *in_docstring) {
  const char *quotes = memmem(p, (size_t)(end - p), "\"\"\"", 3);
  if (*in_docstring) {
    *in_docstring = !quotes;
    return true;
  }
  if (quotes == p && p < end) {
    *in_docstring = !memmem(p + 3, (size_t)(end - p - 3), "\"\"\"", 3);
    return true;
  }
  const size_t n = (size_t)(end - p);
  return !n || *p == '#' || *p == '\r' || (n > 7 && !memcmp(p, "import ", 7)) || (n > 5 && !memcmp(p, "from ", 5));
}

/* Returns where the lines begin that say something: after the docstring, comments, imports and blank lines at the start of
 * a long Python source.  *number: of that line, from 1. */
static const char *skip_preamble(const struct preview *p, int *number) {
  const char *end = p->source + p->source_len, *at = p->source;
  int lines = 1;
  bool in_docstring = false;
  *number = 1;
  for (const char *q = p->source; q < end; q++)
    lines += *q == '\n';
  while (p->is_python && at < end && lines - *number >= LINES && is_preamble(at, line_end(at, end), &in_docstring)) {
    at = line_end(at, end) + 1;
    ++*number;
  }
  if (in_docstring) { /* it is longer than the picture, or never ends */
    at = p->source;
    *number = 1;
  }
  return at < end ? at : end;
}

/* Draws one line, word by word.  A tab ends at the next multiple of eight columns, as in an editor. */
static void draw_line(struct canvas *c, struct words *w, int x, int y, const char *line, const char *end) {
  const int right = RIGHT - PANEL_PAD, start = x, column = canvas_text_width(FACE_CODE, " ", 1);
  struct word word;
  words_line(w, line, end);
  while (x < right && words_next(w, &word)) {
    for (size_t i = 0, n; i < word.len; i += n) {
      const char *tab = memchr(word.text + i, '\t', word.len - i);
      n = tab ? (size_t)(tab - word.text) - i : word.len - i;
      x = canvas_text(c, FACE_CODE, x, y, right, INK_CODE + (int)word.kind, word.text + i, n);
      if (tab) {
        x = start + ((x - start) / column / 8 + 1) * 8 * column;
        n++;
      }
    }
  }
}

static void draw_source(struct canvas *c, const struct preview *p) {
  canvas_round(c, MARGIN, PANEL_Y, RIGHT - MARGIN, PANEL_HEIGHT, 14, INK_LINE);
  canvas_round(c, MARGIN + 2, PANEL_Y + 2, RIGHT - MARGIN - 4, PANEL_HEIGHT - 4, 12, INK_SURFACE);
  const int column = canvas_text_width(FACE_CODE, "0", 1);
  int number = 1, y = PANEL_Y + PANEL_PAD + 18;
  if (!p->source)
    return;
  struct words w = {.is_python = p->is_python};
  const char *end = p->source + p->source_len;
  for (const char *at = skip_preamble(p, &number); at < end && y < PANEL_Y + PANEL_HEIGHT - 8; y += LINE_HEIGHT) {
    const char *stop = line_end(at, end);
    const char *shown = stop > at && stop[-1] == '\r' ? stop - 1 : stop;
    char text[16];
    const int n = snprintf(text, sizeof text, "%d", number++);
    canvas_text(c, FACE_CODE, MARGIN + PANEL_PAD + (3 - n) * column, y, RIGHT, INK_NUMBER, text, (size_t)n);
    draw_line(c, &w, MARGIN + PANEL_PAD + 5 * column, y, at, shown);
    at = stop < end ? stop + 1 : end;
  }
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static void draw_foot(struct canvas *c, const struct preview *p) {
  char text[96];
  int x = MARGIN;
  if (p->is_refused) {
    put_words(c, FACE_TEXT, x, FOOT_Y, INK_BAD, "does not compile");
    return;
  }
  snprintf(text, sizeof text, "%d stage%s", p->stages, p->stages == 1 ? "" : "s");
  if (p->stages)
    x = put_words(c, FACE_TEXT, x, FOOT_Y, INK_SOFT, text);
  if (p->checked) {
    x = put_words(c, FACE_TEXT, x, FOOT_Y, INK_SOFT, "  ·  ");
    if (p->failed)
      snprintf(text, sizeof text, "%d of %d checks fail", p->failed, p->checked);
    else
      snprintf(text, sizeof text, "✓ %d of them checked, all pass", p->checked);
    x = put_words(c, FACE_TEXT, x, FOOT_Y, p->failed ? INK_BAD : INK_GOOD, text);
  }
  if (p->simulated_us > 0) {
    snprintf(text, sizeof text, "  ·  %.1f µs simulated", p->simulated_us);
    put_words(c, FACE_TEXT, x, FOOT_Y, INK_SOFT, text);
  }
}

enum status preview_png(const struct preview *p, struct buf *out) {
  struct canvas c;
  enum status st = canvas_open(&c, PREVIEW_WIDTH, PREVIEW_HEIGHT, inks, INK_COUNT);
  if (st)
    return st;
  draw_head(&c, p);
  draw_source(&c, p);
  draw_foot(&c, p);
  st = canvas_png(&c, out);
  canvas_close(&c);
  return st;
}
