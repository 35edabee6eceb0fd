#include "driver/neff_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/neff_file.h"

enum { DEPTH_MAX = 16 }; /* of folders */

struct reading {
  struct arena *arena;
  const char *dir;
  struct neff found; /* members in the order in which the folders list them */
  size_t total;
  struct error *err;
};

static enum status read_folder(struct reading *r, const char *prefix, int depth);

static enum status read_file(struct reading *r, const char *path, const char *name) {
  const void *data;
  size_t size;
  if (!neff_name_is_valid(name))
    return fail(r->err, ST_INPUT, "%.160s: a member of a NEFF cannot have this name", path);
  if (r->found.members.n == NEFF_LIMITS.members)
    return fail(r->err, ST_LIMIT, "%.100s has more than %d files", r->dir, NEFF_LIMITS.members);
  enum status st = neff_file_bytes(r->arena, path, &data, &size, r->err);
  if (!st && size > NEFF_LIMITS.total_bytes - r->total)
    st = fail(r->err, ST_LIMIT, "the files of %.100s have more than %zu bytes", r->dir, NEFF_LIMITS.total_bytes);
  if (st)
    return st;
  r->total += size;
  neff_add(r->arena, &r->found, name, data, size);
  return ST_OK;
}

/* A link could lead anywhere. */
static enum status read_entry(struct reading *r, const char *name, int depth) {
  const char *path = arena_printf(r->arena, "%s/%s", r->dir, name);
  struct stat s;
  if (lstat(path, &s))
    return fail(r->err, ST_INPUT, "%.160s: %m", path);
  if (S_ISDIR(s.st_mode))
    return read_folder(r, arena_printf(r->arena, "%s/", name), depth + 1);
  return S_ISREG(s.st_mode) ? read_file(r, path, name)
                            : fail(r->err, ST_INPUT, "%.160s is neither a file nor a folder", path);
}

/* prefix: of the names in the folder, "" or "sg00/". */
static enum status read_folder(struct reading *r, const char *prefix, int depth) {
  const char *path = arena_printf(r->arena, "%s/%s", r->dir, prefix);
  enum status st = ST_OK;
  if (depth > DEPTH_MAX)
    return fail(r->err, ST_LIMIT, "%.160s: folders are nested more than %d deep", path, DEPTH_MAX);
  DIR *d = opendir(path);
  if (!d)
    return fail(r->err, ST_INPUT, "%.160s: %m", path);
  const struct dirent *e;
  while (!st && (errno = 0, e = readdir(d)))
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      st = read_entry(r, arena_printf(r->arena, "%s%s", prefix, e->d_name), depth);
  if (!st && errno)
    st = fail(r->err, ST_IO, "%.160s: %m", path);
  closedir(d);
  return st;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct neff_member *)a)->name, ((const struct neff_member *)b)->name);
}

enum status neff_folder_read(struct arena *a, const char *dir, const struct neff *like, struct neff *out,
                             struct error *err) {
  struct reading r = {.arena = a, .dir = dir, .err = err};
  struct neff x = {.header = like->header, .is_compressed = like->is_compressed};
  enum status st = read_folder(&r, "", 0);
  if (st)
    return st;
  if (r.found.members.n)
    qsort(r.found.members.v, (size_t)r.found.members.n, sizeof *r.found.members.v, by_name);
  for (int k = 0; k < like->members.n; k++) {
    const struct neff_member *m = neff_find(&r.found, like->members.v[k].name);
    if (m)
      neff_add(a, &x, m->name, m->data, m->size);
  }
  for (int k = 0; k < r.found.members.n; k++) {
    const struct neff_member *m = &r.found.members.v[k];
    if (!neff_find(like, m->name))
      neff_add(a, &x, m->name, m->data, m->size);
  }
  *out = x;
  return ST_OK;
}
