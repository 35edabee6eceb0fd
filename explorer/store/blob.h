/* blob: bytes packed with zstd under the SHA-256 of what they unpack to, so that equal ones are kept once.
 * Inside a transaction of the caller's. */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/buf.h"
#include "store/db.h"
#include "store/ident.h"

/* The hash and, in *packed (may be NULL), the bytes it takes in the store. */
MUST_USE enum status blob_put(struct db *db, const void *p, size_t n, struct ident_hash *hash, int64_t *packed,
                              struct error *err);
/* Appends the bytes to out.  ST_IO when it is missing or not what it was. */
MUST_USE enum status blob_get(struct db *db, const struct ident_hash *hash, struct buf *out, struct error *err);
/* Unpacks and checks one row's columns. */
MUST_USE enum status blob_unpack(const struct db_value *hash, const struct db_value *size, const struct db_value *data,
                                 struct buf *out, struct error *err);
/* Removes it unless something still refers to it. */
MUST_USE enum status blob_drop(struct db *db, const struct ident_hash *hash, struct error *err);

#endif
