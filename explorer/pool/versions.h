/* versions: the compilers whose workers this server can start.
 *
 * The first is the server's own, "today's".  The others are directories that `make release` has packed, from other states of the
 * sources: bin/nkx-worker, python/, venv/ and release.json, which says what they are.
 */
#ifndef POOL_VERSIONS_H
#define POOL_VERSIONS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

enum { VERSION_TODAY, VERSIONS_MAX = 5 };

struct version {
  const char *name;                  /* as the operator calls it; of today's, unless they gave it one: its release */
  const char *release, *pipeline;    /* of driver/pipeline.h */
  const char *worker_path;           /* its nkx-worker */
  const char *python_dir, *site_dir; /* NULL: the worker's defaults */
};

struct versions {
  int n;
  struct version v[VERSIONS_MAX];
};

/* Only today's, whose paths the caller sets. */
void versions_init(struct versions *vs);
/* Adds those of a list "NAME=DIR,…".  A directory with today's pipeline only gives today's its name.  ST_INPUT with what is wrong:
 * a name that is none or is taken, a directory that lacks something, a release that speaks another protocol (wire.h). */
MUST_USE enum status versions_add(struct arena *a, struct versions *vs, const char *list, struct error *err);
/* The place of the version with this name, or with this pipeline; -1: it is not installed.  NULL: today's. */
int versions_find(const struct versions *vs, const char *name);

#endif
