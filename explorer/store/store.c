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

enum { TRIES = 4, TRIM_STEP = 64 };

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

struct finding {
  struct row_snippet row;
  bool found;
};

static enum status take_found(void *user, const struct db_value *row, int n, struct error *err) {
  struct finding *f = user;
  (void)n;
  f->found = true;
  return row_snippet(row, &f->row, err);
}

static enum status find(struct db *db, const struct ident_hash *id, struct finding *f, struct error *err) {
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

/* Writes doc and frames; r borrows the buffers of *s. */
static enum status put_texts(struct db *db, struct store_snippet *s, struct row_snippet *r, struct error *err) {
  int64_t doc = 0, frames = 0;
  enum status st = blob_put(db, buf_text(&s->doc), s->doc.len, &r->doc, &doc, err);
  if (!st)
    st = blob_put(db, buf_text(&s->frames), s->frames.len, &r->frames, &frames, err);
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

static bool is_expired(const struct store_snippet *s) {
  return s->expires_ms && s->expires_ms <= store_now_ms();
}

/* Finds a revision by the row of the snippet itself: f is the one and becomes the other.  It is not found, either, if
 * another server has just removed it. */
static enum status find_revision(struct db *db, int revision, struct finding *f, struct error *err) {
  const struct store_snippet first = f->row.snippet;
  const int n = revision ? revision : first.n_revisions;
  struct ident_hash hash;
  if (n == 1)
    return ST_OK;
  f->found = false;
  if (n < 1 || n > first.n_revisions)
    return ST_OK;
  ident_hash_revision(&first.id, n, &hash);
  *f = (struct finding){0};
  enum status st = find(db, &hash, f, err);
  f->row.snippet.revision = n;
  f->row.snippet.n_revisions = first.n_revisions;
  memcpy(f->row.snippet.public_id, first.public_id, sizeof first.public_id);
  return st;
}

enum status store_get_revision(struct db *db, const struct ident_hash *id, int revision, enum store_extent extent,
                               struct store_snippet *out, bool *found, struct error *err) {
  struct finding f = {0};
  *found = false;
  enum status st = find(db, id, &f, err);
  if (st || !f.found || is_expired(&f.row.snippet))
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

/* Writes the row's expiry and number of revisions. */
static enum status update_row(struct db *db, const struct row_snippet *r, struct error *err) {
  const struct store_snippet *s = &r->snippet;
  struct ident_hash sum;
  enum status st = row_sum(s, &r->doc, &r->frames, &sum, err);
  if (st)
    return st;
  const struct db_value args[] = {db_int(s->expires_ms), db_int(s->n_revisions - 1), row_hash(&sum), row_hash(&s->id)};
  return db_run(db, "UPDATE snippets SET expires_ms = $1, revisions = $2, sum = $3 WHERE id_hash = $4", args, 4, NULL,
                NULL, NULL, err);
}

static enum status expire_row(struct db *db, struct row_snippet *r, int64_t at_ms, struct error *err) {
  if (r->snippet.expires_ms && r->snippet.expires_ms < at_ms)
    return ST_OK;
  r->snippet.expires_ms = at_ms;
  return update_row(db, r, err);
}

/* Removes or expires the row of one revision.  One that is not there was purged: it had expired. */
static enum status delete_revision(struct db *db, const struct deleting *d, const struct ident_hash *hash,
                                   struct error *err) {
  struct finding f = {0};
  enum status st = find(db, hash, &f, err);
  if (st || !f.found)
    return st;
  return d->at_ms ? expire_row(db, &f.row, d->at_ms, err) : remove_row(db, &f.row, err);
}

static enum status delete_body(struct db *db, void *user, struct error *err) {
  struct deleting *d = user;
  struct finding f = {0};
  enum status st = find(db, d->id, &f, err);
  d->found = f.found && !is_expired(&f.row.snippet);
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

struct adding {
  const struct ident_hash *id, *token;
  struct store_snippet *snippet;
  bool found, added;
};

static enum status add_body(struct db *db, void *user, struct error *err) {
  struct adding *a = user;
  struct finding f = {0};
  bool is_new = false;
  enum status st = find(db, a->id, &f, err);
  struct store_snippet *first = &f.row.snippet;
  a->found = f.found && !is_expired(first);
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
    st = update_row(db, &f.row, err);
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

struct changing {
  const struct ident_hash *id, *token;
  int revision;
  store_doc_fn fn;
  void *user;
  struct store_snippet *snippet;
  bool found, changed;
};

/* Writes another doc for a row. */
static enum status put_doc(struct db *db, struct row_snippet *r, const struct buf *doc, int64_t *packed,
                           struct error *err) {
  const struct ident_hash old = r->doc;
  struct ident_hash sum;
  enum status st = blob_put(db, doc->data, doc->len, &r->doc, packed, err);
  if (!st)
    st = row_sum(&r->snippet, &r->doc, &r->frames, &sum, err);
  if (st)
    return st;
  const struct db_value args[] = {row_hash(&r->doc), row_hash(&sum), row_hash(&r->snippet.id)};
  st = db_run(db, "UPDATE snippets SET doc = $1, sum = $2 WHERE id_hash = $3", args, 3, NULL, NULL, NULL, err);
  return st ? st : blob_drop(db, &old, err);
}

static enum status change_body(struct db *db, void *user, struct error *err) {
  struct changing *c = user;
  struct finding f = {0};
  struct buf doc;
  enum status st = find(db, c->id, &f, err);
  c->found = f.found && !is_expired(&f.row.snippet);
  c->changed = c->found && ident_hash_equal(&f.row.snippet.token, c->token);
  if (st || !c->changed)
    return st;
  c->snippet->n_revisions = f.row.snippet.n_revisions;
  c->snippet->revision = c->revision ? c->revision : f.row.snippet.n_revisions;
  const struct ident_hash first = *c->id;
  struct ident_hash hash = first;
  if (c->snippet->revision > 1)
    ident_hash_revision(&first, c->snippet->revision, &hash);
  f = (struct finding){0};
  st = find(db, &hash, &f, err);
  c->found = c->changed = f.found;
  if (st || !f.found)
    return st;
  buf_init(&doc, STORE_BLOB_MAX);
  st = blob_get(db, &f.row.doc, &doc, err);
  if (!st)
    st = c->fn(c->user, &doc, err);
  if (!st)
    st = put_doc(db, &f.row, &doc, &c->snippet->packed, err);
  buf_clear(&doc);
  return st;
}

enum status store_change_doc(struct db *db, const struct ident_hash *id, const struct ident_hash *token, int revision,
                             store_doc_fn fn, void *user, struct store_snippet *s, bool *found, bool *changed,
                             struct error *err) {
  struct changing c = {id, token, revision, fn, user, s, false, false};
  const enum status st = row_transaction(db, change_body, &c, err);
  *found = c.found;
  *changed = !st && c.changed;
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
    struct finding f = {0};
    st = find(db, &b->ids[i], &f, err);
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
