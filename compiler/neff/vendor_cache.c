#include "neff/vendor_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static const size_t product_max = (size_t)1 << 30;

bool vendor_file_read(struct arena *a, const char *path, struct vendor_file *out) {
  FILE *f = fopen(path, "rbe");
  struct stat st;
  bool ok = f && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) && (size_t)st.st_size <= product_max;
  char *data = ok ? arena_alloc(a, (size_t)st.st_size + 1) : NULL;
  ok = ok && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size;
  if (f)
    fclose(f);
  if (!ok)
    return false;
  data[st.st_size] = 0;
  *out = (struct vendor_file){.data = data, .size = (size_t)st.st_size};
  return true;
}

bool vendor_file_write(struct arena *a, const char *path, const void *data, size_t n) {
  const char *part = arena_printf(a, "%s.%d.part", path, (int)getpid());
  FILE *f = fopen(part, "wbe");
  bool ok = f && fwrite(data, 1, n, f) == n;
  if (f)
    ok &= fclose(f) == 0;
  ok = ok && !rename(part, path);
  if (f && !ok)
    unlink(part);
  return ok;
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

struct kept {
  const char *path;
  int64_t size;
  struct timespec used;
};

struct kept_list {
  struct kept *v;
  int n, cap;
  int64_t bytes;
};

/* Other files of the folder are somebody else's. */
static bool is_ours(const char *name) {
  enum { HASH_DIGITS = 64 };
  return strspn(name, "0123456789abcdef") == HASH_DIGITS && name[HASH_DIGITS] == '-';
}

static void list_kept(struct arena *a, const char *dir, struct kept_list *out) {
  DIR *d = opendir(dir);
  struct stat st;
  for (const struct dirent *e; d && (e = readdir(d));) {
    const char *path = arena_printf(a, "%s/%s", dir, e->d_name);
    if (!is_ours(e->d_name) || lstat(path, &st) || !S_ISREG(st.st_mode))
      continue;
    array_push(a, out, ((struct kept){path, st.st_size, st.st_mtim}));
    out->bytes += st.st_size;
  }
  if (d)
    closedir(d);
}

static int by_use(const void *x, const void *y) {
  const struct timespec *a = &((const struct kept *)x)->used, *b = &((const struct kept *)y)->used;
  return a->tv_sec != b->tv_sec ? (a->tv_sec > b->tv_sec) - (a->tv_sec < b->tv_sec)
                                : (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static void trim(struct arena *a, const char *dir, const char *but, int64_t most_bytes) {
  struct kept_list list = {0};
  list_kept(a, dir, &list);
  if (list.n)
    qsort(list.v, (size_t)list.n, sizeof *list.v, by_use);
  for (int i = 0; i < list.n && list.bytes > most_bytes; i++) {
    if (strcmp(list.v[i].path, but) != 0 && !unlink(list.v[i].path))
      list.bytes -= list.v[i].size;
  }
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void make_folders(struct arena *a, const char *dir) {
  char *path = arena_strdup(a, dir);
  for (char *p = path + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    mkdir(path, 0777);
  }
  mkdir(path, 0777);
}

bool vendor_cache_keep(struct arena *a, const char *dir, const char *path, const void *data, size_t n,
                       int64_t most_bytes) {
  make_folders(a, dir);
  if (!vendor_file_write(a, path, data, n))
    return false;
  trim(a, dir, path, most_bytes);
  return true;
}

void vendor_cache_use(const char *path) {
  utimensat(AT_FDCWD, path, NULL, 0);
}
