/* atlas: a program of the build.  Draws the characters of the preview's typefaces once, with FreeType, so that the server
 * needs neither fonts nor FreeType.
 *
 *   atlas FONT.ttf:PIXELS:NAME…  > atlas.inc
 *
 * For each typeface it writes an array NAME_glyphs of struct glyph (glyphs.h) in order of code points, and NAME_bits, the
 * coverage of their pixels, one byte each, 0 to 15.
 */
#include <ft2build.h>
#include FT_FREETYPE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first and the last of each range of code points: ASCII, Latin-1, Greek, and signs that kernels and titles use. */
static const unsigned ranges[][2] = {
    {0x20, 0x7e},     {0xa0, 0xff},     {0x391, 0x3c9},   {0x2013, 0x2014}, {0x2018, 0x201d}, {0x2022, 0x2022},
    {0x2026, 0x2026}, {0x2032, 0x2033}, {0x2190, 0x2193}, {0x21d2, 0x21d2}, {0x2208, 0x2208}, {0x2211, 0x2212},
    {0x221a, 0x221a}, {0x2248, 0x2248}, {0x2264, 0x2265}, {0x22c5, 0x22c5}, {0x2713, 0x2713}, {0x2717, 0x2717}};
enum { N_RANGES = sizeof ranges / sizeof *ranges };

static void stop(const char *what, const char *about) {
  fprintf(stderr, "atlas: %s: %s\n", about, what);
  exit(1);
}

/* Calls put for each character of the typeface; *at counts bytes of pixels. */
static void each(FT_Face face, void (*put)(unsigned code, const FT_GlyphSlotRec *g, int at)) {
  int at = 0;
  for (int r = 0; r < N_RANGES; r++)
    for (unsigned code = ranges[r][0]; code <= ranges[r][1]; code++) {
      if (!FT_Get_Char_Index(face, code) || FT_Load_Char(face, code, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT))
        continue;
      put(code, face->glyph, at);
      at += (int)(face->glyph->bitmap.width * face->glyph->bitmap.rows);
    }
}

static void put_glyph(unsigned code, const FT_GlyphSlotRec *g, int at) {
  printf("{0x%x,%d,%d,%d,%u,%u,%d},\n", code, at, g->bitmap_left, g->bitmap_top, g->bitmap.width, g->bitmap.rows,
         (int)((g->advance.x + 32) >> 6));
}

static void put_bits(unsigned code, const FT_GlyphSlotRec *g, int at) {
  (void)code, (void)at;
  for (unsigned y = 0; y < g->bitmap.rows; y++)
    for (unsigned x = 0; x < g->bitmap.width; x++)
      printf("%d,", (g->bitmap.buffer[(int)y * g->bitmap.pitch + (int)x] * 15 + 127) / 255);
  printf("\n");
}

static void put_face(FT_Library library, char *what) {
  char *pixels = strchr(what, ':'), *name = pixels ? strchr(pixels + 1, ':') : NULL;
  FT_Face face;
  if (!name)
    stop("expected FONT:PIXELS:NAME", what);
  *pixels++ = *name++ = 0;
  if (FT_New_Face(library, what, 0, &face))
    stop("cannot be read", what);
  if (FT_Set_Pixel_Sizes(face, 0, (unsigned)atoi(pixels)))
    stop("has no such size", what);
  printf("static const struct glyph %s_glyphs[] = {\n", name);
  each(face, put_glyph);
  printf("};\nstatic const unsigned char %s_bits[] = {\n", name);
  each(face, put_bits);
  printf("};\n");
  FT_Done_Face(face);
}

int main(int argc, char **argv) {
  FT_Library library;
  if (FT_Init_FreeType(&library))
    stop("FreeType does not start", argv[0]);
  for (int i = 1; i < argc; i++)
    put_face(library, argv[i]);
  FT_Done_FreeType(library);
  return 0;
}
