#include "driver/neff_file.h"

#include <stdio.h>
#include <string.h>

static const size_t file_max = (size_t)1 << 30;

static enum status read_bytes(const char *path, struct buf *b, struct error *err) {
  char chunk[64 << 10];
  size_t n;
  FILE *f = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
    if (buf_append(b, chunk, n))
      break;
  enum status st = buf_status(b) ? fail(err, buf_status(b), "%.160s is larger than %zu bytes", path, file_max)
                   : ferror(f)   ? fail(err, ST_IO, "%.160s: %m", path)
                                 : ST_OK;
  if (f != stdin)
    fclose(f);
  return st;
}

enum status neff_file_read(struct arena *a, const char *path, struct neff *out, struct error *err) {
  struct error why = {0};
  struct buf b;
  buf_init(&b, file_max);
  enum status st = read_bytes(path, &b, err);
  if (!st) {
    st = neff_read(a, buf_text(&b), b.len, NEFF_LIMITS, out, &why);
    if (st)
      fail(err, st, "%.80s: %.150s", path, why.text);
  }
  buf_clear(&b);
  return st;
}

enum status neff_file_bytes(struct arena *a, const char *path, const void **out, size_t *size, struct error *err) {
  struct buf b;
  buf_init(&b, file_max);
  enum status st = read_bytes(path, &b, err);
  if (!st) {
    *out = arena_dup(a, buf_text(&b), b.len + 1);
    *size = b.len;
  }
  buf_clear(&b);
  return st;
}

bool neff_file_is(const char *path) {
  const size_t n = strlen(path);
  return n > 5 && !strcmp(path + n - 5, ".neff");
}
