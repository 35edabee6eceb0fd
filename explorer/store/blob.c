#include "store/blob.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>
#include <zstd.h>

#include "store/s3.h"
#include "store/store.h"

enum { LEVEL = 3 };

#define UNUSED \
  "NOT EXISTS (SELECT 1 FROM snippets WHERE doc = blobs.hash) AND NOT EXISTS (SELECT 1 FROM snippets WHERE frames = " \
  "blobs.hash)" \
  " AND NOT EXISTS (SELECT 1 FROM results WHERE frames = blobs.hash)"

static enum status pack(const void *p, size_t n, void **out, size_t *len, struct error *err) {
  size_t bound = ZSTD_compressBound(n);
  *out = malloc(bound);
  if (!*out)
    return fail(err, ST_NOMEM, "blob");
  *len = ZSTD_compress(*out, bound, p, n, LEVEL);
  return ZSTD_isError(*len) ? fail(err, ST_BUG, "zstd: %s", ZSTD_getErrorName(*len)) : ST_OK;
}

/* Its object is deleted, and the row has nothing until it gets bytes. */
static enum status forget_object(struct db *db, const struct ident_hash *hash, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), db_bytes(hash->bytes, IDENT_HASH_SIZE)};
  enum status st = db_run(
      db, "INSERT INTO objects_gone (name, due_ms) SELECT object, $1 FROM blobs WHERE hash = $2 AND object IS NOT NULL",
      args, 2, NULL, NULL, NULL, err);
  return st ? st
            : db_run(db,
                     "UPDATE blobs SET object = NULL, packed = 0, send_ms = 1 WHERE hash = $1 AND object IS NOT NULL",
                     &args[1], 1, NULL, NULL, NULL, err);
}

/* An existing row is written anew, so that a damaged one is repaired; one whose bytes are an object keeps that, unless it is known
 * to be damaged. */
enum status blob_put(struct db *db, enum blob_kind kind, const void *p, size_t n, struct ident_hash *hash,
                     int64_t *packed, struct error *err) {
  void *data = NULL;
  size_t len = 0;
  if (n > STORE_BLOB_MAX)
    return fail(err, ST_LIMIT, "%zu bytes; the store takes at most %d", n, STORE_BLOB_MAX);
  SHA256(p, n, hash->bytes);
  enum status st = pack(p, n, &data, &len, err);
  if (!st && db->objects && s3_was_suspected(s3_site_of(db->objects), hash))
    st = forget_object(db, hash, err);
  if (!st) {
    const struct db_value args[] = {db_bytes(hash->bytes, IDENT_HASH_SIZE), db_int((int64_t)n), db_bytes(data, len),
                                    db_int(kind == BLOB_RESULT)};
    st = db_run(
        db,
        "INSERT INTO blobs (hash, size, data, send_ms) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (hash) DO UPDATE SET size = excluded.size, data = excluded.data WHERE blobs.object IS NULL",
        args, 4, NULL, NULL, NULL, err);
  }
  if (packed)
    *packed = (int64_t)len;
  free(data);
  return st;
}

static enum status unpack(const struct db_value *hash, const struct db_value *size, const void *packed, size_t len,
                          struct buf *out, struct error *err) {
  uint8_t digest[IDENT_HASH_SIZE];
  if (hash->n != IDENT_HASH_SIZE || size->kind != DB_INT || size->i < 0 || size->i > STORE_BLOB_MAX)
    return fail(err, ST_IO, "a damaged blob");
  size_t n = (size_t)size->i;
  enum status st = buf_reserve(out, n);
  if (st)
    return fail(err, st, "blob");
  if (ZSTD_decompress(out->data + out->len, n, packed, len) != n)
    return fail(err, ST_IO, "a damaged blob");
  SHA256((const unsigned char *)out->data + out->len, n, digest);
  if (memcmp(digest, hash->p, sizeof digest))
    return fail(err, ST_IO, "a damaged blob");
  out->len += n;
  out->data[out->len] = 0;
  return ST_OK;
}

/* Fetches the object of a row. */
static enum status fetch(struct db *db, const struct db_value *row, struct buf *out, struct error *err) {
  char name[BLOB_OBJECT_SIZE];
  if (row[2].kind != DB_TEXT || row[2].n != sizeof name - 1 || row[3].kind != DB_INT || row[3].i <= 0 ||
      row[3].i > STORE_BLOB_MAX)
    return fail(err, ST_IO, "a damaged blob");
  if (!db->objects)
    return fail(err, ST_INPUT, "results of this store are in an object store: name it with --s3-url");
  memcpy(name, row[2].p, sizeof name - 1);
  name[sizeof name - 1] = 0;
  return s3_get(db->objects, name, (size_t)row[3].i, out, err);
}

enum status blob_packed(struct db *db, const struct db_value *row, struct buf *out, struct error *err) {
  return row[2].kind != DB_NULL                ? fetch(db, row, out, err)
         : buf_append(out, row[1].p, row[1].n) ? fail(err, ST_NOMEM, "blob")
                                               : ST_OK;
}

enum status blob_unpack(struct db *db, const struct db_value *hash, const struct db_value *row, struct buf *out,
                        struct error *err) {
  struct buf packed;
  if (row[2].kind == DB_NULL)
    return unpack(hash, &row[0], row[1].p, row[1].n, out, err);
  buf_init(&packed, STORE_BLOB_MAX);
  enum status st = fetch(db, row, &packed, err);
  if (!st)
    st = unpack(hash, &row[0], buf_text(&packed), packed.len, out, err);
  buf_clear(&packed);
  return st;
}

struct reading {
  struct db *db;
  struct buf *out;
  struct db_value hash;
  int rows;
};

static enum status read_row(void *user, const struct db_value *row, int n, struct error *err) {
  struct reading *r = user;
  (void)n;
  r->rows++;
  enum status st = blob_unpack(r->db, &r->hash, row, r->out, err);
  if (st == ST_IO && row[2].kind != DB_NULL && r->db->objects) {
    struct ident_hash hash;
    memcpy(hash.bytes, r->hash.p, IDENT_HASH_SIZE);
    s3_suspect(s3_site_of(r->db->objects), &hash);
  }
  return st;
}

enum status blob_get(struct db *db, const struct ident_hash *hash, struct buf *out, struct error *err) {
  struct reading r = {.db = db, .out = out, .hash = db_bytes(hash->bytes, IDENT_HASH_SIZE)};
  enum status st =
      db_run(db, "SELECT " BLOB_COLUMNS " FROM blobs WHERE hash = $1", &r.hash, 1, read_row, &r, NULL, err);
  return st ? st : r.rows == 1 ? ST_OK : fail(err, ST_IO, "a missing blob");
}

enum status blob_drop(struct db *db, const struct ident_hash *hash, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), db_bytes(hash->bytes, IDENT_HASH_SIZE)};
  enum status st = db_run(db,
                          "INSERT INTO objects_gone (name, due_ms) SELECT object, $1 FROM blobs WHERE hash = $2"
                          " AND object IS NOT NULL AND " UNUSED,
                          args, 2, NULL, NULL, NULL, err);
  return st ? st : db_run(db, "DELETE FROM blobs WHERE hash = $1 AND " UNUSED, &args[1], 1, NULL, NULL, NULL, err);
}
