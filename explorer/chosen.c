#include "chosen.h"

#include <stdlib.h>
#include <string.h>

#include "pool/versions.h"

#define OPTION "--version"
#define LIST "NKX_WORKER_VERSION"

/* The value of the option at argv[i], and in *n how many places it takes; NULL if it is another argument. */
static const char *value_at(char **argv, int i, int *n) {
  const size_t len = sizeof OPTION - 1;
  if (strncmp(argv[i], OPTION, len) != 0 || (argv[i][len] && argv[i][len] != '='))
    return NULL;
  *n = argv[i][len] || !argv[i + 1] ? 1 : 2;
  return argv[i][len] ? argv[i] + len + 1 : argv[i + 1] ? argv[i + 1] : "";
}

static const char *take(char **argv) {
  const char *name = NULL;
  for (int i = 1; argv[i] && strcmp(argv[i], "--") != 0;) {
    int n = 0, end = i;
    const char *value = value_at(argv, i, &n);
    if (!value) {
      i++;
      continue;
    }
    name = value;
    while (argv[end])
      end++;
    memmove(&argv[i], &argv[i + n], (size_t)(end - i - n + 1) * sizeof *argv);
  }
  return name;
}

enum status chosen_worker(struct arena *a, char **argv, const char **worker, struct error *err) {
  const char *name = take(argv), *list = getenv(LIST);
  struct versions vs;
  struct error e;
  *worker = NULL;
  if (!name)
    return ST_OK;
  versions_init(&vs);
  if (list && *list && versions_add(a, &vs, list, &e))
    return fail(err, ST_INPUT, LIST ": %.180s", e.text);
  const int v = versions_find(&vs, name);
  if (v < 0)
    return fail(err, ST_INPUT, OPTION " %.40s: it is not installed; " LIST " lists the versions as NAME=DIR,…", name);
  *worker = vs.v[v].worker_path;
  return ST_OK;
}
