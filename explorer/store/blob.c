#include "store/blob.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>
#include <zstd.h>

#include "store/store.h"

enum { LEVEL = 3 };

static enum status pack(const void *p, size_t n, void **out, size_t *len, struct error *err) {
  size_t bound = ZSTD_compressBound(n);
  *out = malloc(bound);
  if (!*out)
    return fail(err, ST_NOMEM, "blob");
  *len = ZSTD_compress(*out, bound, p, n, LEVEL);
  return ZSTD_isError(*len) ? fail(err, ST_BUG, "zstd: %s", ZSTD_getErrorName(*len)) : ST_OK;
}

/* An existing row is written anew, so that a damaged one is repaired. */
enum status blob_put(struct db *db, const void *p, size_t n, struct ident_hash *hash, int64_t *packed,
                     struct error *err) {
  void *data = NULL;
  size_t len = 0;
  if (n > STORE_BLOB_MAX)
    return fail(err, ST_LIMIT, "%zu bytes; the store takes at most %d", n, STORE_BLOB_MAX);
  SHA256(p, n, hash->bytes);
  enum status st = pack(p, n, &data, &len, err);
  if (!st) {
    const struct db_value args[] = {db_bytes(hash->bytes, IDENT_HASH_SIZE), db_int((int64_t)n), db_bytes(data, len)};
    st = db_run(db,
                "INSERT INTO blobs (hash, size, data) VALUES ($1, $2, $3)"
                " ON CONFLICT (hash) DO UPDATE SET size = excluded.size, data = excluded.data",
                args, 3, NULL, NULL, NULL, err);
  }
  if (packed)
    *packed = (int64_t)len;
  free(data);
  return st;
}

enum status blob_unpack(const struct db_value *hash, const struct db_value *size, const struct db_value *data,
                        struct buf *out, struct error *err) {
  uint8_t digest[IDENT_HASH_SIZE];
  if (hash->n != IDENT_HASH_SIZE || size->kind != DB_INT || size->i < 0 || size->i > STORE_BLOB_MAX)
    return fail(err, ST_IO, "a damaged blob");
  size_t n = (size_t)size->i;
  enum status st = buf_reserve(out, n);
  if (st)
    return fail(err, st, "blob");
  if (ZSTD_decompress(out->data + out->len, n, data->p, data->n) != n)
    return fail(err, ST_IO, "a damaged blob");
  SHA256((const unsigned char *)out->data + out->len, n, digest);
  if (memcmp(digest, hash->p, sizeof digest))
    return fail(err, ST_IO, "a damaged blob");
  out->len += n;
  out->data[out->len] = 0;
  return ST_OK;
}

struct reading {
  struct buf *out;
  struct db_value hash;
  int rows;
};

static enum status read_row(void *user, const struct db_value *row, int n, struct error *err) {
  struct reading *r = user;
  (void)n;
  r->rows++;
  return blob_unpack(&r->hash, &row[0], &row[1], r->out, err);
}

enum status blob_get(struct db *db, const struct ident_hash *hash, struct buf *out, struct error *err) {
  struct reading r = {.out = out, .hash = db_bytes(hash->bytes, IDENT_HASH_SIZE)};
  enum status st = db_run(db, "SELECT size, data FROM blobs WHERE hash = $1", &r.hash, 1, read_row, &r, NULL, err);
  return st ? st : r.rows == 1 ? ST_OK : fail(err, ST_IO, "a missing blob");
}

enum status blob_drop(struct db *db, const struct ident_hash *hash, struct error *err) {
  const struct db_value arg = db_bytes(hash->bytes, IDENT_HASH_SIZE);
  return db_run(db,
                "DELETE FROM blobs WHERE hash = $1"
                " AND NOT EXISTS (SELECT 1 FROM snippets WHERE doc = $1)"
                " AND NOT EXISTS (SELECT 1 FROM snippets WHERE frames = $1)"
                " AND NOT EXISTS (SELECT 1 FROM results WHERE frames = $1)",
                &arg, 1, NULL, NULL, NULL, err);
}
