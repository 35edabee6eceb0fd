/* nki_main: `nkx nki upgrade FILE`: rewrites kernels of NKI beta 1 for the newest generation. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "driver/main.h"
#include "driver/paths.h"
#include "trace/nki/upgrade.h"
#include "trace/trace.h"

enum { SOURCE_MAX = 4 << 20 };

static const char usage[] =
    "usage: nkx nki upgrade FILE.py  (- reads standard input)\n"
    "  Prints the file with its kernels of NKI beta 1 (neuronxcc.nki) rewritten for NKI 0.3 and later.  A statement\n"
    "  whose meaning is not certain stays as it is, below a comment \"# nkx: not upgraded: …\".\n";

static enum status read_file(const char *path, struct buf *out, struct error *err) {
  FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  char chunk[64 << 10];
  size_t n;
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
    if (buf_append(out, chunk, n))
      break;
  const bool is_bad = ferror(f);
  if (f != stdin)
    fclose(f);
  if (is_bad)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  return buf_status(out) ? fail(err, ST_LIMIT, "%.160s is larger than %d MiB", path, SOURCE_MAX >> 20) : ST_OK;
}

static enum status upgrade(struct arena *a, const char *path, struct buf *source, struct error *err) {
  struct paths paths;
  const char *text, *said;
  enum status st = read_file(path, source, err);
  if (!st)
    st = paths_find(a, &paths, err);
  if (!st)
    st = trace_init(paths.python_dir, paths.site_dir, err);
  if (st)
    return st;
  st = nki_upgrade(a, path, buf_text(source), strlen(buf_text(source)), &text, &said, err);
  if (said)
    fprintf(stderr, "nkx: %s\n", said);
  if (!st)
    fputs(text, stdout);
  return st;
}

int nki_main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    fputs(usage, stdout);
    return EXIT_DONE;
  }
  if (argc != 3 || strcmp(argv[1], "upgrade") != 0 || (argv[2][0] == '-' && argv[2][1])) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  struct arena a;
  struct buf source;
  struct error err = {0};
  arena_init(&a);
  buf_init(&source, SOURCE_MAX);
  const enum status st = upgrade(&a, argv[2], &source, &err);
  if (st && err.text[0])
    fprintf(stderr, "nkx: %s\n", err.text);
  buf_clear(&source);
  arena_clear(&a);
  return st == ST_OK ? EXIT_DONE : st == ST_INPUT ? EXIT_REFUSED : st == ST_LIMIT ? EXIT_LIMIT : EXIT_FAULT;
}
