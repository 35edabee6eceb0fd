/* rows: a snippet as a row of the database; what store.c shares with walk.c. */
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

#endif
