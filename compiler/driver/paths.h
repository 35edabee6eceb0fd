/* paths: the directories of the Python packages, relative to the running binary. */
#ifndef DRIVER_PATHS_H
#define DRIVER_PATHS_H

#include "base/arena.h"

struct paths {
  const char *python_dir; /* our importable packages: ../python, relative to the binary's folder */
  const char *site_dir;   /* site-packages with NumPy: $NKX_SITE_DIR, ../venv/…, or that of the build */
};

MUST_USE enum status paths_find(struct arena *a, struct paths *out, struct error *err);

#endif
