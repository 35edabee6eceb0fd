/* store: snippets as rows; the same SQL for both databases.  Results are in store_results.c. */
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <openssl/sha.h>

#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"

enum { TRIES = 4 };

int64_t store_now_ms(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  return (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000;
}

enum status row_transaction(struct db *db, enum status (*body)(struct db *, void *, struct error *), void *user,
                            struct error *err) {
  enum status st = ST_OK;
  for (int i = 0; i < TRIES; i++) {
    st = db_transaction(db, body, user, err);
    if (st != ST_DENIED)
      break;
  }
  return st;
}

/* ---- one snippet's row ------------------------------------------------------------------------------------------- */

void store_snippet_init(struct store_snippet *s) {
  *s = (struct store_snippet){0};
  buf_init(&s->doc, STORE_BLOB_MAX);
  buf_init(&s->frames, STORE_BLOB_MAX);
}

void store_snippet_clear(struct store_snippet *s) {
  buf_clear(&s->doc);
  buf_clear(&s->frames);
}

static void append_int(struct buf *b, int64_t v) {
  for (int shift = 56; shift >= 0; shift -= 8)
    buf_putc(b, (char)((uint64_t)v >> shift));
}

/* The checksum over all columns of a row; each has a known length. */
static enum status row_sum(const struct store_snippet *s, const struct ident_hash *doc, const struct ident_hash *frames,
                           struct ident_hash *out, struct error *err) {
  struct buf b;
  buf_init(&b, 512);
  buf_puts(&b, "nkx snippet 1:");
  buf_append(&b, s->id.bytes, IDENT_HASH_SIZE);
  buf_append(&b, s->public_id, sizeof s->public_id);
  buf_append(&b, s->token.bytes, IDENT_HASH_SIZE);
  buf_putc(&b, s->has_parent ? 1 : 0);
  buf_append(&b, s->parent.bytes, IDENT_HASH_SIZE);
  append_int(&b, s->created_ms);
  append_int(&b, s->expires_ms);
  buf_append(&b, doc->bytes, IDENT_HASH_SIZE);
  buf_append(&b, frames->bytes, IDENT_HASH_SIZE);
  if (s->n_revisions > 1)
    append_int(&b, s->n_revisions);
  SHA256((const unsigned char *)buf_text(&b), b.len, out->bytes);
  enum status st = buf_status(&b);
  buf_clear(&b);
  return st ? fail(err, st, "snippet") : ST_OK;
}

bool row_take_hash(const struct db_value *v, struct ident_hash *out) {
  if (v->kind != DB_BYTES || v->n != IDENT_HASH_SIZE)
    return false;
  memcpy(out->bytes, v->p, IDENT_HASH_SIZE);
  return true;
}

static bool take_public_id(const struct db_value *v, char out[IDENT_PUBLIC_LEN + 1]) {
  if (v->kind == DB_NULL)
    return true;
  if (v->kind != DB_TEXT || !ident_is_public(v->p, v->n))
    return false;
  memcpy(out, v->p, IDENT_PUBLIC_LEN);
  return true;
}

enum status row_snippet(const struct db_value *row, struct row_snippet *out, struct error *err) {
  struct store_snippet *s = &out->snippet;
  struct ident_hash stored, now;
  s->has_parent = row[3].kind != DB_NULL;
  bool fits = row_take_hash(&row[0], &s->id) && take_public_id(&row[1], s->public_id) &&
              row_take_hash(&row[2], &s->token) && (!s->has_parent || row_take_hash(&row[3], &s->parent)) &&
              row[4].kind == DB_INT && row[5].kind == DB_INT && row_take_hash(&row[6], &out->doc) &&
              row_take_hash(&row[7], &out->frames) && row_take_hash(&row[8], &stored) && row[9].kind == DB_INT &&
              row[9].i >= 0 && row[9].i < STORE_REVISIONS_MAX;
  if (!fits)
    return fail(err, ST_IO, "a damaged snippet");
  s->created_ms = row[4].i;
  s->expires_ms = row[5].i;
  s->revision = 1;
  s->n_revisions = 1 + (int)row[9].i;
  enum status st = row_sum(s, &out->doc, &out->frames, &now, err);
  return st ? st : ident_hash_equal(&now, &stored) ? ST_OK : fail(err, ST_IO, "a damaged snippet");
}

static enum status take_found(void *user, const struct db_value *row, int n, struct error *err) {
  struct row_found *f = user;
  (void)n;
  f->found = true;
  return row_snippet(row, &f->row, err);
}

enum status row_find(struct db *db, const struct ident_hash *id, struct row_found *f, struct error *err) {
  const struct db_value arg = row_hash(id);
  f->found = false;
  enum status st =
      db_run(db, "SELECT " ROW_SNIPPET_COLUMNS " FROM snippets WHERE id_hash = $1", &arg, 1, take_found, f, NULL, err);
  if (!st && f->found && !ident_hash_equal(&f->row.snippet.id, id))
    return fail(err, ST_IO, "a damaged index of snippets");
  return st;
}

/* ---- snippets ---------------------------------------------------------------------------------------------------- */

enum status row_put_snippet(struct db *db, const struct row_snippet *r, bool *is_new, struct error *err) {
  const struct store_snippet *s = &r->snippet;
  struct ident_hash sum;
  int64_t changed = 0;
  enum status st = row_sum(s, &r->doc, &r->frames, &sum, err);
  if (st)
    return st;
  const struct db_value args[] = {
      row_hash(&s->id),      db_text(s->public_id[0] ? s->public_id : NULL),
      row_hash(&s->token),   db_bytes(s->has_parent ? s->parent.bytes : NULL, IDENT_HASH_SIZE),
      db_int(s->created_ms), db_int(s->expires_ms),
      row_hash(&r->doc),     row_hash(&r->frames),
      row_hash(&sum),        db_int(s->n_revisions > 1 ? s->n_revisions - 1 : 0),
  };
  st = db_run(db,
              "INSERT INTO snippets (" ROW_SNIPPET_COLUMNS
              ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
              args, 10, NULL, NULL, &changed, err);
  *is_new = changed == 1;
  return st;
}

enum status row_update(struct db *db, const struct row_snippet *was, const struct row_snippet *r, struct error *err) {
  const struct store_snippet *s = &r->snippet;
  struct ident_hash before, sum;
  int64_t changed = 0;
  enum status st = row_sum(&was->snippet, &was->doc, &was->frames, &before, err);
  if (!st)
    st = row_sum(s, &r->doc, &r->frames, &sum, err);
  if (st)
    return st;
  const struct db_value args[] = {db_int(s->expires_ms), db_int(s->n_revisions - 1), row_hash(&r->doc),
                                  row_hash(&sum),        row_hash(&s->id),           row_hash(&before)};
  st = db_run(db,
              "UPDATE snippets SET expires_ms = $1, revisions = $2, doc = $3, sum = $4 WHERE id_hash = $5 AND sum = $6",
              args, 6, NULL, NULL, &changed, err);
  return st || changed ? st : fail(err, ST_DENIED, "another server has changed the link");
}

/* Writes doc and frames; r borrows the buffers of *s. */
static enum status put_texts(struct db *db, struct store_snippet *s, struct row_snippet *r, struct error *err) {
  int64_t doc = 0, frames = 0;
  enum status st = blob_put(db, BLOB_DOC, buf_text(&s->doc), s->doc.len, &r->doc, &doc, err);
  if (!st)
    st = blob_put(db, BLOB_RESULT, buf_text(&s->frames), s->frames.len, &r->frames, &frames, err);
  s->packed = doc + frames;
  return st;
}

struct putting {
  struct store_snippet *snippet;
  bool is_new;
};

enum status row_put_whole(struct db *db, struct store_snippet *s, bool *is_new, struct error *err) {
  struct row_snippet r = {.snippet = *s};
  enum status st = put_texts(db, s, &r, err);
  return st ? st : row_put_snippet(db, &r, is_new, err);
}

static enum status put_body(struct db *db, void *user, struct error *err) {
  struct putting *p = user;
  return row_put_whole(db, p->snippet, &p->is_new, err);
}

enum status store_put_snippet(struct db *db, struct store_snippet *s, struct error *err) {
  struct putting p = {.snippet = s};
  enum status st = row_transaction(db, put_body, &p, err);
  return st ? st : p.is_new ? ST_OK : fail(err, ST_DENIED, "the id is taken");
}

bool row_is_expired(const struct store_snippet *s) {
  return s->expires_ms && s->expires_ms <= store_now_ms();
}

/* Finds a revision by the row of the snippet itself: f is the one and becomes the other.  It is not found, either, if
 * another server has just removed it. */
static enum status find_revision(struct db *db, int revision, struct row_found *f, struct error *err) {
  const struct store_snippet first = f->row.snippet;
  const int n = revision ? revision : first.n_revisions;
  struct ident_hash hash;
  if (n == 1)
    return ST_OK;
  f->found = false;
  if (n < 1 || n > first.n_revisions)
    return ST_OK;
  ident_hash_revision(&first.id, n, &hash);
  *f = (struct row_found){0};
  enum status st = row_find(db, &hash, f, err);
  f->row.snippet.revision = n;
  f->row.snippet.n_revisions = first.n_revisions;
  memcpy(f->row.snippet.public_id, first.public_id, sizeof first.public_id);
  return st;
}

enum status store_get_revision(struct db *db, const struct ident_hash *id, int revision, enum store_extent extent,
                               struct store_snippet *out, bool *found, struct error *err) {
  struct row_found f = {0};
  *found = false;
  enum status st = row_find(db, id, &f, err);
  if (st || !f.found || row_is_expired(&f.row.snippet))
    return st;
  st = find_revision(db, revision, &f, err);
  if (st || !f.found)
    return st;
  struct buf doc = out->doc, frames = out->frames;
  *out = f.row.snippet;
  out->doc = doc;
  out->frames = frames;
  if (extent >= STORE_DOC)
    st = blob_get(db, &f.row.doc, &out->doc, err);
  if (!st && extent == STORE_WHOLE)
    st = blob_get(db, &f.row.frames, &out->frames, err);
  *found = !st;
  return st;
}

enum status store_get_snippet(struct db *db, const struct ident_hash *id, enum store_extent extent,
                              struct store_snippet *out, bool *found, struct error *err) {
  return store_get_revision(db, id, 1, extent, out, found, err);
}

struct adding {
  const struct ident_hash *id, *token;
  struct store_snippet *snippet;
  bool found, added;
};

static enum status add_body(struct db *db, void *user, struct error *err) {
  struct adding *a = user;
  struct row_found f = {0};
  bool is_new = false;
  enum status st = row_find(db, a->id, &f, err);
  const struct row_snippet was = f.row;
  struct store_snippet *first = &f.row.snippet;
  a->found = f.found && !row_is_expired(first);
  a->added = a->found && ident_hash_equal(&first->token, a->token);
  if (st || !a->added)
    return st;
  if (first->n_revisions == STORE_REVISIONS_MAX)
    return fail(err, ST_LIMIT, "A link has at most %d revisions.", STORE_REVISIONS_MAX);
  struct row_snippet r = {.snippet = *a->snippet}; /* borrows the buffers */
  ident_hash_revision(a->id, ++first->n_revisions, &r.snippet.id);
  r.snippet.public_id[0] = 0;
  r.snippet.token = first->token;
  r.snippet.expires_ms = first->expires_ms;
  st = put_texts(db, a->snippet, &r, err);
  if (!st)
    st = row_put_snippet(db, &r, &is_new, err);
  if (!st && !is_new)
    st = fail(err, ST_DENIED, "another server has added a revision");
  if (!st)
    st = row_update(db, &was, &f.row, err);
  a->snippet->expires_ms = first->expires_ms;
  a->snippet->revision = a->snippet->n_revisions = first->n_revisions;
  memcpy(a->snippet->public_id, first->public_id, sizeof first->public_id);
  return st;
}

enum status store_add_revision(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                               struct store_snippet *s, bool *found, bool *added, struct error *err) {
  struct adding a = {.id = id, .token = token, .snippet = s};
  enum status st = row_transaction(db, add_body, &a, err);
  *found = a.found;
  *added = !st && a.added;
  return st;
}

/* Writes another document for a row that was read as `was`. */
static enum status put_doc(struct db *db, const struct row_snippet *was, const struct buf *doc, int64_t *packed,
                           struct error *err) {
  struct row_snippet r = *was;
  enum status st = blob_put(db, BLOB_DOC, doc->data, doc->len, &r.doc, packed, err);
  if (!st)
    st = row_update(db, was, &r, err);
  return st ? st : blob_drop(db, &was->doc, err);
}

struct rewriting {
  const struct ident_hash *id;
  int revision;
  store_rewrite_fn rewrite;
  void *user;
  int64_t packed;
  bool found;
};

/* Replaces the document of the row; s has the one that it has. */
static enum status replace_doc(struct db *db, struct rewriting *w, const struct row_snippet *row,
                               struct store_snippet *s, struct buf *doc, struct error *err) {
  enum status st = blob_get(db, &row->doc, &s->doc, err);
  if (!st)
    st = w->rewrite(w->user, s, doc, err);
  if (!st && buf_status(doc))
    st = fail(err, buf_status(doc), "snippet");
  return st || !doc->len ? st : put_doc(db, row, doc, &w->packed, err);
}

static enum status rewrite_body(struct db *db, void *user, struct error *err) {
  struct rewriting *w = user;
  struct row_found first = {0}, at;
  struct ident_hash hash;
  struct buf doc;
  w->packed = 0;
  enum status st = row_find(db, w->id, &first, err);
  w->found = first.found && !row_is_expired(&first.row.snippet);
  if (st || !w->found)
    return st;
  struct store_snippet s = first.row.snippet;
  s.revision = w->revision ? w->revision : s.n_revisions;
  at = first;
  if (s.revision > 1) {
    at = (struct row_found){0};
    ident_hash_revision(w->id, s.revision, &hash);
    st = row_find(db, &hash, &at, err);
    w->found = at.found;
    if (st || !at.found)
      return st;
  }
  buf_init(&s.doc, STORE_BLOB_MAX);
  buf_init(&s.frames, 0);
  buf_init(&doc, STORE_BLOB_MAX);
  st = replace_doc(db, w, &at.row, &s, &doc, err);
  buf_clear(&doc);
  store_snippet_clear(&s);
  return st;
}

enum status store_rewrite_doc(struct db *db, const struct ident_hash *id, int revision, store_rewrite_fn rewrite,
                              void *user, int64_t *packed, bool *found, struct error *err) {
  struct rewriting w = {.id = id, .revision = revision, .rewrite = rewrite, .user = user};
  const enum status st = row_transaction(db, rewrite_body, &w, err);
  *found = w.found;
  *packed = st ? 0 : w.packed;
  return st;
}
