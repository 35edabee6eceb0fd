/* The page's files, read from one directory.
 *
 * A path is accepted only if it is made of plain names.  It is opened part by part from the directory, so that
 * neither ".." nor a link leads out.  Each file is looked up anew, so a rebuilt page is served without a restart.  A
 * file whose name holds a hash of its content never changes, and clients keep it for good; the others are revalidated.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/http.h"
#include "http/server.h"

enum { PATH_LEN_MAX = 200, HASH_LEN = 8, SMALL_MAX = 64 << 10 };

static const struct {
  const char *suffix, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".json", "application/json"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".webmanifest", "application/manifest+json"},
    {".wasm", "application/wasm"},
    {".map", "application/json"},
};

/* The media type by the file's suffix; NULL for kinds of files that the page does not have: those are not served. */
static const char *type_of(const char *path) {
  size_t n = strlen(path);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    size_t k = strlen(types[i].suffix);
    if (n > k && !strcmp(path + n - k, types[i].suffix))
      return types[i].type;
  }
  return NULL;
}

/* True for names of letters, digits, '.', '_' and '-' joined by single slashes, none of which begins with a dot. */
static bool is_plain(const char *path) {
  bool at_start = true;
  for (const char *p = path; *p; p++) {
    if (*p == '/' ? at_start : !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p))
      return false;
    if (at_start && *p == '.')
      return false;
    at_start = *p == '/';
  }
  return !at_start && strlen(path) <= PATH_LEN_MAX;
}

/* True for a name such as "main-6B4AUXG2.js": eight capitals or digits between a dash and the last dot. */
static bool has_hash(const char *path) {
  const char *dot = strrchr(path, '.');
  if (!dot || dot - path < HASH_LEN + 1 || dot[-HASH_LEN - 1] != '-')
    return false;
  for (const char *p = dot - HASH_LEN; p < dot; p++)
    if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *p))
      return false;
  return true;
}

/* Opens a regular file beneath the page's directory, of a path of plain names, no part of which is a symbolic link; -1 if there is none.
 * Not with openat2: filters of system calls that cannot look into its argument refuse it, systemd's RestrictSUIDSGID among them. */
static int open_beneath(const char *dir, const char *path, struct stat *s) {
  int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (bool is_last = false; fd >= 0 && !is_last;) {
    char name[PATH_LEN_MAX + 8];
    const size_t n = strcspn(path, "/");
    is_last = !path[n];
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    const int at = openat(fd, name, O_NOFOLLOW | O_CLOEXEC | (is_last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY));
    close(fd);
    fd = at;
    path += n + !is_last;
  }
  if (fd >= 0 && (fstat(fd, s) || !S_ISREG(s->st_mode))) {
    close(fd);
    fd = -1;
  }
  return fd;
}

/* Opens the compressed sibling if there is one and the client accepts it, else the file itself. */
static int open_best(struct request *rq, const char *path, struct stat *s, const char **encoding) {
  static const char *const forms[][2] = {{"br", ".br"}, {"gzip", ".gz"}};
  char name[PATH_LEN_MAX + 8];
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (!http_accepts_encoding(rq, forms[i][0]))
      continue;
    snprintf(name, sizeof name, "%s%s", path, forms[i][1]);
    int fd = open_beneath(rq->cfg->http.web_dir, name, s);
    if (fd >= 0) {
      *encoding = forms[i][0];
      return fd;
    }
  }
  *encoding = NULL;
  return open_beneath(rq->cfg->http.web_dir, path, s);
}

static void make_etag(char *to, size_t size, const struct stat *s) {
  snprintf(to, size, "\"%llx-%llx-%llx\"", (unsigned long long)s->st_size, (unsigned long long)s->st_ino,
           (unsigned long long)s->st_mtim.tv_sec * 1000000000ull + (unsigned long long)s->st_mtim.tv_nsec);
}

/* Takes fd.  A small file is sent with its headers in one system call, which takes half the time of two. */
static struct MHD_Response *file_response(int fd, const struct stat *s) {
  size_t size = (size_t)s->st_size;
  struct MHD_Response *r = NULL;
  if (size <= SMALL_MAX) {
    char *bytes = malloc(size + 1);
    if (bytes && read(fd, bytes, size) == (ssize_t)size)
      r = MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (!r)
      free(bytes);
  } else {
    r = MHD_create_response_from_fd64(size, fd);
  }
  if (!r || size <= SMALL_MAX)
    close(fd);
  return r;
}

static enum MHD_Result send_file(struct request *rq, const char *path, int fd, const struct stat *s,
                                 const char *encoding) {
  char etag[64];
  make_etag(etag, sizeof etag, s);
  bool is_known = http_has_etag(rq, etag);
  struct MHD_Response *r;
  if (is_known) {
    close(fd);
    r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
  } else {
    r = file_response(fd, s);
  }
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type_of(path));
  MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, etag);
  MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL,
                          has_hash(path) ? "public, max-age=31536000, immutable" : "no-cache");
  if (encoding)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, encoding);
  return http_send(rq, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r);
}

enum MHD_Result static_get(struct request *rq) {
  const char *path = !strcmp(rq->path, "/") ? "index.html" : rq->path + 1;
  const char *encoding;
  struct stat s;

  if (rq->path[0] != '/' || !is_plain(path) || !type_of(path))
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  int fd = open_best(rq, path, &s, &encoding);
  if (fd < 0)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  return send_file(rq, path, fd, &s, encoding);
}

bool static_read(const struct request *rq, const char *path, struct buf *out) {
  struct stat s;
  int fd = open_beneath(rq->cfg->http.web_dir, path, &s);
  const size_t size = fd >= 0 ? (size_t)s.st_size : 0;
  bool ok = fd >= 0 && !buf_reserve(out, size) && read(fd, out->data + out->len, size) == (ssize_t)size;
  if (ok) {
    out->len += size;
    out->data[out->len] = 0;
  }
  if (fd >= 0)
    close(fd);
  return ok;
}

enum MHD_Result static_page(struct request *rq, unsigned status) {
  const char *encoding;
  struct stat s;
  int fd = open_best(rq, "index.html", &s, &encoding);
  if (fd < 0)
    return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
  struct MHD_Response *r = file_response(fd, &s);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type_of("index.html"));
  MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (encoding)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, encoding);
  return http_send(rq, status, r);
}
