#include "neff/neff.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/array.h"
#include "neff/archive.h"

static_assert(EVP_MAX_MD_SIZE >= NEFF_HASH_SIZE, "a hash fits into its field");

/* The hash that a version of the package has; NULL if it is not documented. */
static const EVP_MD *hash_of(uint64_t package_version) {
  return package_version == 1 ? EVP_sha256() : package_version == 2 ? EVP_md5() : NULL;
}

/* Fills the field; the rest of it is zero. */
static bool hash_data(uint64_t package_version, const void *data, size_t n, uint8_t out[NEFF_HASH_SIZE]) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned len = 0;
  const EVP_MD *md = hash_of(package_version);
  memset(out, 0, NEFF_HASH_SIZE);
  if (!md || !EVP_Digest(data, n, digest, &len, md, NULL))
    return false;
  assert(len <= NEFF_HASH_SIZE);
  memcpy(out, digest, len);
  return true;
}

static bool is_gzip(const unsigned char *p, size_t n) {
  return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

enum status neff_read(struct arena *a, const void *bytes, size_t n, struct neff_limits limits, struct neff *out,
                      struct error *err) {
  struct neff x = {0};
  uint8_t hash[NEFF_HASH_SIZE];
  enum status st = neff_header_get(bytes, n, &x.header, err);
  if (st)
    return st;
  const unsigned char *data = (const unsigned char *)bytes + x.header.header_size;
  const size_t size = (size_t)x.header.data_size;
  if (hash_data(x.header.package_version, data, size, hash))
    x.hash = memcmp(hash, x.header.hash, sizeof hash) ? NEFF_HASH_WRONG : NEFF_HASH_RIGHT;
  x.is_compressed = is_gzip(data, size);
  st = neff_archive_read(a, data, size, limits, &x, err);
  if (!st)
    *out = x;
  return st;
}

enum status neff_write(const struct neff *x, struct buf *b, struct error *err) {
  unsigned char header[NEFF_HEADER_SIZE] = {0};
  struct neff_header h = x->header;
  const size_t at = b->len;

  assert(hash_of(h.package_version));
  if (buf_append(b, header, sizeof header))
    return fail(err, buf_status(b), "no room for a header");
  enum status st = neff_archive_write(x, b, err);
  if (st)
    return st;
  h.header_size = NEFF_HEADER_SIZE;
  h.data_size = b->len - at - NEFF_HEADER_SIZE;
  if (!hash_data(h.package_version, b->data + at + NEFF_HEADER_SIZE, (size_t)h.data_size, h.hash))
    return fail(err, ST_BUG, "the hash of a NEFF cannot be computed");
  neff_header_put(&h, header);
  memcpy(b->data + at, header, sizeof header);
  return ST_OK;
}

const struct neff_member *neff_find(const struct neff *x, const char *name) {
  for (int i = 0; i < x->members.n; i++)
    if (!strcmp(x->members.v[i].name, name))
      return &x->members.v[i];
  return NULL;
}

void neff_add(struct arena *a, struct neff *x, const char *name, const void *data, size_t size) {
  assert(neff_name_is_valid(name));
  array_push(a, &x->members, (struct neff_member){name, data, size});
}
