/* Snippets that go: they are deleted, are to expire, or have expired. */
#include <assert.h>
#include <stdlib.h>

#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

enum { TRIM_STEP = 64 };

static enum status remove_row(struct db *db, const struct row_snippet *r, struct error *err) {
  const struct db_value arg = row_hash(&r->snippet.id);
  const struct db_value frames = row_hash(&r->frames);
  enum status st = db_run(db, "DELETE FROM snippets WHERE id_hash = $1", &arg, 1, NULL, NULL, NULL, err);
  if (!st) /* a deleted snippet must not stay in the cache; another client with the same result compiles it again */
    st = db_run(db, "DELETE FROM results WHERE frames = $1", &frames, 1, NULL, NULL, NULL, err);
  if (!st)
    st = blob_drop(db, &r->doc, err);
  return st ? st : blob_drop(db, &r->frames, err);
}

struct deleting {
  const struct ident_hash *id, *token; /* NULL: any token */
  int64_t at_ms;                       /* 0: now */
  bool found, removed;
};

static enum status expire_row(struct db *db, struct row_snippet *r, int64_t at_ms, struct error *err) {
  const struct row_snippet was = *r;
  if (r->snippet.expires_ms && r->snippet.expires_ms < at_ms)
    return ST_OK;
  r->snippet.expires_ms = at_ms;
  return row_update(db, &was, r, err);
}

/* Removes or expires the row of one revision.  One that is not there was purged: it had expired. */
static enum status delete_revision(struct db *db, const struct deleting *d, const struct ident_hash *hash,
                                   struct error *err) {
  struct row_found f = {0};
  enum status st = row_find(db, hash, &f, err);
  if (st || !f.found)
    return st;
  return d->at_ms ? expire_row(db, &f.row, d->at_ms, err) : remove_row(db, &f.row, err);
}

static enum status delete_body(struct db *db, void *user, struct error *err) {
  struct deleting *d = user;
  struct row_found f = {0};
  enum status st = row_find(db, d->id, &f, err);
  d->found = f.found && !row_is_expired(&f.row.snippet);
  d->removed = d->found && (!d->token || ident_hash_equal(&f.row.snippet.token, d->token));
  if (st || !d->removed)
    return st;
  for (int n = f.row.snippet.n_revisions; !st && n > 1; n--) {
    struct ident_hash hash;
    ident_hash_revision(d->id, n, &hash);
    st = delete_revision(db, d, &hash, err);
  }
  return st ? st : delete_revision(db, d, d->id, err);
}

enum status store_delete_snippet(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                                 bool *found, bool *removed, struct error *err) {
  struct deleting d = {.id = id, .token = token};
  enum status st = row_transaction(db, delete_body, &d, err);
  *found = d.found;
  *removed = !st && d.removed;
  return st;
}

enum status store_expire_snippet(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                                 int64_t at_ms, bool *found, bool *changed, struct error *err) {
  struct deleting d = {.id = id, .token = token, .at_ms = at_ms};
  enum status st = row_transaction(db, delete_body, &d, err);
  *found = d.found;
  *changed = !st && d.removed;
  return st;
}

/* Ids of expired snippets, in order. */
struct batch {
  struct ident_hash ids[TRIM_STEP];
  int n;
  int first, end; /* what purge_body removes */
  int removed;
};

static enum status take_id(void *user, const struct db_value *row, int n, struct error *err) {
  struct batch *b = user;
  (void)n;
  (void)err;
  assert(b->n < TRIM_STEP);                      /* the statement's own limit */
  b->n += row_take_hash(&row[0], &b->ids[b->n]); /* a key that is no hash is for store_check to report */
  return ST_OK;
}

static enum status purge_body(struct db *db, void *user, struct error *err) {
  struct batch *b = user;
  enum status st = ST_OK;
  b->removed = 0;
  for (int i = b->first; !st && i < b->end; i++) {
    struct row_found f = {0};
    st = row_find(db, &b->ids[i], &f, err);
    if (st || !f.found) /* not found: another server has removed it */
      continue;
    st = remove_row(db, &f.row, err);
    b->removed++;
  }
  return st;
}

static enum status purge_range(struct db *db, struct batch *b, int first, int end, int64_t *n, struct error *err) {
  b->first = first;
  b->end = end;
  enum status st = row_transaction(db, purge_body, b, err);
  *n += st ? 0 : b->removed;
  return st;
}

/* Removes the batch in one transaction; if that fails, each snippet in its own, so that one that cannot be removed does
 * not keep the others.  Returns the first failure of these. */
static enum status purge_batch(struct db *db, struct batch *b, int64_t *n, struct error *err) {
  if (!b->n || !purge_range(db, b, 0, b->n, n, err))
    return ST_OK;
  enum status first = ST_OK;
  for (int i = 0; i < b->n; i++) {
    struct error own;
    const enum status st = purge_range(db, b, i, i + 1, n, &own);
    if (st && !first) {
      first = st;
      *err = own;
    }
  }
  return first;
}

/* Reads the next expired snippets after the last one of the batch. */
static enum status next_batch(struct db *db, struct batch *b, int64_t now_ms, struct error *err) {
  static const struct ident_hash zeros;
  const struct ident_hash last = b->n ? b->ids[b->n - 1] : zeros;
  const struct db_value args[] = {db_int(now_ms), db_bytes(last.bytes, b->n ? IDENT_HASH_SIZE : 0), db_int(TRIM_STEP)};
  b->n = 0;
  return db_run(db,
                "SELECT id_hash FROM snippets WHERE expires_ms > 0 AND expires_ms <= $1 AND id_hash > $2"
                " ORDER BY id_hash LIMIT $3",
                args, 3, take_id, b, NULL, err);
}

enum status store_purge(struct db *db, int64_t *n, struct error *err) {
  const int64_t now_ms = store_now_ms();
  struct batch *b = calloc(1, sizeof *b);
  struct error own;
  enum status st = ST_OK, first = b ? ST_OK : fail(err, ST_NOMEM, "purge");
  *n = 0;
  while (b && !(st = next_batch(db, b, now_ms, &own)) && b->n) {
    st = purge_batch(db, b, n, &own);
    if (st && !first) {
      first = st;
      *err = own;
    }
  }
  if (st && !first) {
    first = st;
    *err = own;
  }
  free(b);
  return first;
}
