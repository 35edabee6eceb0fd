/* png: writes a canvas as a PNG with a palette (RFC 2083): signature, IHDR, PLTE, IDAT, IEND. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "preview/canvas.h"

enum { LEVELS = 16 };

static void put_u32(unsigned char *to, uint32_t v) {
  for (int i = 0; i < 4; i++)
    to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void put_chunk(struct buf *out, const char type[4], const unsigned char *data, size_t len) {
  unsigned char word[4];
  put_u32(word, (uint32_t)len);
  buf_append(out, word, 4);
  buf_append(out, type, 4);
  buf_append(out, data, len);
  uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
  put_u32(word, (uint32_t)(len ? crc32(crc, data, (uInt)len) : crc));
  buf_append(out, word, 4);
}

/* The colour that is `level` of 15 on the way from the background to the ink's own. */
static void put_colour(unsigned char *to, const struct canvas_ink *ink, int level) {
  for (int i = 0; i < 3; i++) {
    const int own = ink->colour >> (16 - 8 * i) & 0xff, background = ink->background >> (16 - 8 * i) & 0xff;
    to[i] = (unsigned char)(background + (own - background) * level / (LEVELS - 1));
  }
}

/* Compresses the rows, each after a byte that says that it is not filtered.  Returns NULL when out of memory. */
static unsigned char *pack(const struct canvas *c, uLongf *len) {
  const size_t row = (size_t)c->width + 1, size = row * (size_t)c->height;
  unsigned char *rows = malloc(size), *packed = NULL;
  *len = compressBound(size);
  if (rows)
    packed = malloc(*len);
  for (int y = 0; packed && y < c->height; y++) {
    rows[row * (size_t)y] = 0;
    memcpy(rows + row * (size_t)y + 1, c->pixels + (size_t)y * (size_t)c->width, (size_t)c->width);
  }
  if (packed && compress2(packed, len, rows, size, 6) != Z_OK) {
    free(packed);
    packed = NULL;
  }
  free(rows);
  return packed;
}

enum status canvas_png(const struct canvas *c, struct buf *out) {
  unsigned char header[13] = {0}, palette[CANVAS_INKS_MAX * LEVELS * 3];
  put_u32(header, (uint32_t)c->width);
  put_u32(header + 4, (uint32_t)c->height);
  header[8] = 8; /* bits of a pixel */
  header[9] = 3; /* which are an index of the palette */
  for (int i = 0; i < c->n_inks * LEVELS; i++)
    put_colour(palette + 3 * i, &c->inks[i / LEVELS], i % LEVELS);
  uLongf len;
  unsigned char *data = pack(c, &len);
  if (!data)
    return ST_NOMEM;
  buf_append(out, "\x89PNG\r\n\x1a\n", 8);
  put_chunk(out, "IHDR", header, sizeof header);
  put_chunk(out, "PLTE", palette, (size_t)c->n_inks * LEVELS * 3);
  put_chunk(out, "IDAT", data, len);
  put_chunk(out, "IEND", NULL, 0);
  free(data);
  return buf_status(out);
}
