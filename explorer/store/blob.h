/* blob: bytes, packed with zstd and kept under the SHA-256 of the unpacked bytes, so that equal ones are kept once.
 * The functions that write are called inside a transaction. */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/buf.h"
#include "store/db.h"
#include "store/ident.h"

/* Stores the bytes; *packed (may be NULL): how many they are in the store. */
MUST_USE enum status blob_put(struct db *db, const void *p, size_t n, struct ident_hash *hash, int64_t *packed,
                              struct error *err);
/* Appends the bytes to out.  ST_IO when the blob is missing or damaged. */
MUST_USE enum status blob_get(struct db *db, const struct ident_hash *hash, struct buf *out, struct error *err);
/* Unpacks and checks the columns of one row. */
MUST_USE enum status blob_unpack(const struct db_value *hash, const struct db_value *size, const struct db_value *data,
                                 struct buf *out, struct error *err);
/* Removes the blob unless a row still refers to it. */
MUST_USE enum status blob_drop(struct db *db, const struct ident_hash *hash, struct error *err);

#endif
