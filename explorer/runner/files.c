#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "runner/host.h"

enum { FILE_MS = 120000 };

enum status host_read_file(const char *dir, const char *name, struct buf *out, struct error *err) {
  char path[PATH_MAX], piece[64 << 10];
  size_t n;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "rbe");
  if (!f)
    return fail(err, errno == ENOENT ? ST_INPUT : ST_IO, "%.160s: %m", path);
  while ((n = fread(piece, 1, sizeof piece, f)) > 0 && !buf_append(out, piece, n)) {
  }
  const bool ok = !ferror(f);
  fclose(f);
  return !ok               ? fail(err, ST_IO, "%.160s: %m", path)
         : buf_status(out) ? fail(err, ST_LIMIT, "%s has more than %d MiB", name, HOST_FILE_MAX >> 20)
                           : ST_OK;
}

enum status host_write_file(const char *dir, const char *name, const void *data, size_t len, struct error *err) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "wbe");
  bool ok = f && fwrite(data, 1, len, f) == len;
  if (f)
    ok &= fclose(f) == 0;
  return ok ? ST_OK : fail(err, ST_IO, "%.160s: %m", path);
}

enum status host_judge(const struct wire_answer *a, struct error *err) {
  if (a->status >= 200 && a->status < 300)
    return ST_OK;
  const bool is_lost = !strcmp(a->code, "lease-lost") || !strcmp(a->code, "runner-token");
  const enum status st = is_lost ? ST_DENIED : a->status >= 500 || a->status == 429 ? ST_BUSY : ST_INPUT;
  return fail(err, st, "the server answered %ld %s: %s", a->status, a->code, a->message);
}

enum status host_fetch(struct host *h, const struct host_run *run, const char *name, struct error *err) {
  struct wire_answer a;
  char path[200];
  snprintf(path, sizeof path, "/api/v1/runner/files/%s/%s", run->run, name);
  const struct wire_ask ask = {
      .method = "GET", .path = path, .headers = {run->fence}, .timeout_ms = FILE_MS, .max = HOST_FILE_MAX};
  enum status st = wire_send(h->wire, &ask, &a, err);
  if (!st)
    st = host_judge(&a, err);
  if (!st)
    st = host_write_file(run->dir, name, buf_text(&a.body), a.body.len, err);
  buf_clear(&a.body);
  return st;
}

static void write_hash(const struct buf *b, char out[65]) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256((const unsigned char *)buf_text(b), b->len, digest);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static enum status send(struct host *h, const struct host_run *run, const char *name, const struct buf *b,
                        const char *sha256, struct error *err) {
  struct wire_answer a;
  char path[200], hash[100];
  snprintf(path, sizeof path, "/api/v1/runner/files/%s/%s", run->run, name);
  snprintf(hash, sizeof hash, "X-Nkx-Sha256: %s", sha256);
  const struct wire_ask ask = {.method = "POST",
                               .path = path,
                               .type = "application/octet-stream",
                               .body = buf_text(b),
                               .len = b->len,
                               .headers = {run->fence, hash},
                               .timeout_ms = FILE_MS,
                               .is_last = true,
                               .max = 64 << 10};
  enum status st = wire_send(h->wire, &ask, &a, err);
  if (!st)
    st = host_judge(&a, err);
  buf_clear(&a.body);
  return st;
}

enum status host_bring(struct host *h, const struct host_run *run, const char *name, char sha256[65],
                       struct error *err) {
  struct buf b;
  buf_init(&b, HOST_FILE_MAX);
  *sha256 = 0;
  enum status st = host_read_file(run->dir, name, &b, err);
  if (!st) {
    write_hash(&b, sha256);
    st = send(h, run, name, &b, sha256, err);
  } else if (st == ST_INPUT) {
    st = ST_OK; /* there is none */
  }
  buf_clear(&b);
  return st;
}
