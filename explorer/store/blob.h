/* blob: bytes, packed with zstd and kept under the SHA-256 of the unpacked bytes, so that equal ones are kept once.  What results
 * consist of may be moved to an object store (objects.h).
 * The functions that write are called inside a transaction. */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/buf.h"
#include "store/db.h"
#include "store/ident.h"

enum { BLOB_OBJECT_SIZE = 2 * IDENT_HASH_SIZE + 1 + 16 + 1 }; /* of an object's name, with its NUL */
#define BLOB_COLUMNS "size, data, object, packed"

enum blob_kind { BLOB_DOC, BLOB_RESULT /* may be moved */ };

/* Stores the bytes; *packed (may be NULL): how many they are in the store. */
MUST_USE enum status blob_put(struct db *db, enum blob_kind kind, const void *p, size_t n, struct ident_hash *hash,
                              int64_t *packed, struct error *err);
/* Appends the bytes to out.  ST_IO when the blob is missing or damaged; ST_BUSY when it cannot be reached now. */
MUST_USE enum status blob_get(struct db *db, const struct ident_hash *hash, struct buf *out, struct error *err);
/* The same for the columns BLOB_COLUMNS of one row. */
MUST_USE enum status blob_unpack(struct db *db, const struct db_value *hash, const struct db_value *row,
                                 struct buf *out, struct error *err);
/* Appends the packed bytes of such a row, which are not checked. */
MUST_USE enum status blob_packed(struct db *db, const struct db_value *row, struct buf *out, struct error *err);
/* Removes the blob unless a row still refers to it. */
MUST_USE enum status blob_drop(struct db *db, const struct ident_hash *hash, struct error *err);

#endif
