/* rows: a snippet as a row of the database; what the files of store/ share. */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H

#include "store/db.h"
#include "store/store.h"

#define ROW_SNIPPET_COLUMNS \
  "id_hash, public_id, token_hash, parent_hash, created_ms, expires_ms, doc, frames, sum, revisions"

struct row_snippet {
  struct store_snippet snippet;  /* without doc and frames */
  struct ident_hash doc, frames; /* their blobs */
};

/* Reads the columns above; ST_IO when they do not fit their checksum. */
MUST_USE enum status row_snippet(const struct db_value *row, struct row_snippet *out, struct error *err);
/* *is_new is false, and nothing was written, if the id is taken. */
MUST_USE enum status row_put_snippet(struct db *db, const struct row_snippet *r, bool *is_new, struct error *err);

/* The same for a whole snippet, with its texts; inside a transaction. */
MUST_USE enum status row_put_whole(struct db *db, struct store_snippet *s, bool *is_new, struct error *err);

struct row_found {
  struct row_snippet row;
  bool found;
};
/* Finds a row by its key, whether it has expired or not. */
MUST_USE enum status row_find(struct db *db, const struct ident_hash *id, struct row_found *f, struct error *err);
bool row_is_expired(const struct store_snippet *s);
/* Writes document, expiry and number of revisions of a row that was read as `was`.  ST_DENIED, for row_transaction, if it is not that
 * any more. */
MUST_USE enum status row_update(struct db *db, const struct row_snippet *was, const struct row_snippet *r,
                                struct error *err);

/* Two servers may collide: one adds a row that refers to a blob while the other removes that blob, or both change a row.  One of
 * the two transactions then fails, and is tried again. */
MUST_USE enum status row_transaction(struct db *db, enum status (*body)(struct db *, void *, struct error *),
                                     void *user, struct error *err);

/* False if the column is no hash. */
bool row_take_hash(const struct db_value *v, struct ident_hash *out);
static inline struct db_value row_hash(const struct ident_hash *h) {
  return db_bytes(h->bytes, IDENT_HASH_SIZE);
}

#endif
