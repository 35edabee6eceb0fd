/* diff_speed A B: compares two texts as the server does, JSON included; {"ms","lines":[lines of A in hunks]}. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "diff/diff.h"

enum { JSON_MAX = 64 << 20 };

static bool read_file(const char *path, struct buf *out) {
  FILE *f = fopen(path, "r");
  char piece[1 << 16];
  size_t n;
  buf_init(out, DIFF_TEXT_MAX);
  while (f && (n = fread(piece, 1, sizeof piece, f)) > 0)
    buf_append(out, piece, n);
  if (f)
    fclose(f);
  return f && !buf_status(out);
}

int main(int argc, char **argv) {
  struct buf a, b, json;
  struct diff d;
  if (argc != 3 || !read_file(argv[1], &a) || !read_file(argv[2], &b))
    return 2;
  struct diff_text from = {buf_text(&a), a.len}, to = {buf_text(&b), b.len};
  buf_init(&json, JSON_MAX);
  int64_t began = clock_now_us();
  if (diff_make(from, to, &d, NULL))
    return 1;
  diff_json(&d, from, to, &json);
  printf("{\"ms\":%.3f,\"lines\":[", (double)(clock_now_us() - began) / 1e3);
  const char *comma = "";
  for (int i = 0; i < d.n; i++)
    for (int k = 0; k < d.hunks[i].n_from; k++, comma = ",")
      printf("%s%d", comma, d.hunks[i].from + k);
  puts("]}");
  return buf_status(&json) ? 1 : 0;
}
