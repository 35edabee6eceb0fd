#include "driver/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE "lib/python3.11/site-packages"

enum status paths_find(struct arena *a, struct paths *out, struct error *err) {
  char exe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n < 0)
    return fail(err, ST_IO, "readlink /proc/self/exe: %m");
  exe[n] = 0;
  for (int up = 0; up < 2; up++) { /* removes the file name, then "bin" */
    char *slash = strrchr(exe, '/');
    if (slash)
      *slash = 0;
  }
  out->python_dir = arena_printf(a, "%s/python", exe);
  out->site_dir = getenv("NKX_SITE_DIR");
  if (!out->site_dir)
    out->site_dir = arena_printf(a, "%s/venv/" SITE, exe);
  if (access(out->site_dir, R_OK))
    out->site_dir = arena_printf(a, "%s/" NKX_VENV "/" SITE, exe); /* the build's, seen from its folder */
  if (access(out->python_dir, R_OK) && !access(arena_printf(a, "%s/notebook.py", exe), R_OK))
    out->python_dir = arena_printf(a, "%s/..", exe); /* in the wheel the program is in a folder of the package nkx */
  if (access(out->python_dir, R_OK) || access(out->site_dir, R_OK))
    return fail(err, ST_IO, "no Python packages in %.80s and %.80s: run `make build`", out->python_dir, out->site_dir);
  return ST_OK;
}
