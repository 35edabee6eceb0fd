#include "store_main.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config.h"
#include "store/store.h"

enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_FAULT = 4 };

static const char help[] =
    "usage: nkx store backup  [--store URL] FILE     copies the store into a new SQLite file; the server may be "
    "running\n"
    "       nkx store restore [--store URL] FILE     copies such a file into an empty store\n"
    "       nkx store check   [--store URL]          reads everything and verifies every checksum\n"
    "URL is sqlite:PATH (../data/nkx.sqlite beside this program) or postgresql://…\n";

static void tell(const char *line) {
  fprintf(stderr, "%s\n", line);
}

static int report(const char *verb, const struct store_report *r) {
  printf("%s %lld snippets, %lld results, %lld blobs; %lld damaged\n", verb, (long long)r->snippets,
         (long long)r->results, (long long)r->blobs, (long long)r->damaged);
  return r->damaged ? EXIT_REFUSED : EXIT_DONE;
}

static int run(const char *what, const char *url, const char *file) {
  struct arena a;
  struct error err;
  struct store_report r;
  enum status st;
  const char *verb = "checked";

  arena_init(&a);
  const char *backup = arena_printf(&a, "sqlite:%s", file ? file : "");
  if (!strcmp(what, "check")) {
    st = store_check(url, &r, tell, &err);
  } else if (!strcmp(what, "backup")) {
    verb = "backed up";
    st = store_copy(url, backup, &r, tell, &err);
  } else {
    verb = "restored";
    st = store_copy(backup, url, &r, tell, &err);
  }
  arena_clear(&a);
  if (!st)
    return report(verb, &r);
  fprintf(stderr, "nkx: %s\n", err.text);
  return st == ST_INPUT || st == ST_DENIED ? EXIT_USAGE : EXIT_FAULT;
}

int store_main(int argc, char **argv) {
  struct arena a;
  struct error err;
  const char *url = NULL, *file = NULL, *dir, *what = argc ? argv[0] : "";
  bool is_check = !strcmp(what, "check"), is_right = is_check || !strcmp(what, "backup") || !strcmp(what, "restore");

  if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
    fputs(help, stdout);
    return EXIT_DONE;
  }
  for (int i = 1; i < argc && is_right; i++) {
    if (!strcmp(argv[i], "--store") && i + 1 < argc)
      url = argv[++i];
    else if (argv[i][0] != '-' && !file)
      file = argv[i];
    else
      is_right = false;
  }
  if (!is_right || is_check == (file != NULL)) {
    fputs(help, stderr);
    return EXIT_USAGE;
  }
  arena_init(&a);
  if (!url && !config_program_dir(&a, &dir, &err))
    url = arena_printf(&a, "sqlite:%s/../data/nkx.sqlite", dir);
  int status = url ? run(what, url, file) : EXIT_FAULT;
  arena_clear(&a);
  return status;
}
