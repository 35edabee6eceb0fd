/* Reads everything, to check it or to copy it into another store.
 *
 * A copy is made row by row from the state of one moment, and each row is checked: damaged rows are reported and left
 * out.  The same code backs up and restores both kinds of database, also from one kind to the other.  Runs on Neuron hosts
 * (runs.h) are neither checked nor copied: they are kept for a day only.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

enum { PAGE = 32, KEY_SIZE = 32 };

struct walk {
  struct db *from, *to; /* to: NULL when checking only */
  struct store_report *report;
  void (*tell)(const char *line);
  uint8_t last[KEY_SIZE]; /* the key of the last row seen */
  int rows;               /* in this page */
};

static void damaged(struct walk *w, const char *what, const uint8_t *key) {
  char line[160], hex[17];
  for (int i = 0; i < 8; i++)
    snprintf(hex + 2 * i, 3, "%02x", key[i]);
  snprintf(line, sizeof line, "damaged: %s %s…", what, hex);
  w->report->damaged++;
  w->tell(line);
}

/* Notes the key of a row, after which the next page begins; without it the walk cannot go on. */
static enum status take_key(struct walk *w, const struct db_value *v, struct error *err) {
  if (v->kind != DB_BYTES || v->n != KEY_SIZE)
    return fail(err, ST_IO, "a row whose key is damaged");
  memcpy(w->last, v->p, KEY_SIZE);
  w->rows++;
  return ST_OK;
}

static enum status note_there(void *user, const struct db_value *row, int n, struct error *err) {
  (void)row;
  (void)n;
  (void)err;
  *(bool *)user = true;
  return ST_OK;
}

/* Whether the blob is in the store that the row is copied to or, when checking, in the one that it comes from. */
static enum status has_blob(struct walk *w, const struct db_value *hash, bool *there, struct error *err) {
  return db_run(w->to ? w->to : w->from, "SELECT hash FROM blobs WHERE hash = $1", hash, 1, note_there, there, NULL,
                err);
}

static enum status has_blobs(struct walk *w, const struct db_value *a, const struct db_value *b, bool *there,
                             struct error *err) {
  bool has_b = false;
  enum status st = has_blob(w, a, there, err);
  if (!st)
    st = has_blob(w, b, &has_b, err);
  *there &= has_b;
  return st;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static enum status see_blob(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  struct buf bytes;
  (void)n;
  enum status st = take_key(w, &row[0], err);
  if (st)
    return st;
  buf_init(&bytes, STORE_BLOB_MAX);
  st = blob_unpack(&row[0], &row[1], &row[2], &bytes, err);
  buf_clear(&bytes);
  if (st == ST_IO) {
    damaged(w, "blob", w->last);
    return ST_OK;
  }
  w->report->blobs += !st;
  if (!st && w->to)
    st = db_run(w->to, "INSERT INTO blobs (hash, size, data) VALUES ($1, $2, $3)", row, 3, NULL, NULL, NULL, err);
  return st;
}

static enum status see_snippet(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  struct row_snippet r = {0};
  bool there = false, is_new;
  (void)n;
  enum status st = take_key(w, &row[0], err);
  if (st)
    return st;
  bool is_sound = row_snippet(row, &r, NULL) == ST_OK;
  if (is_sound)
    st = has_blobs(w, &row[6], &row[7], &there, err);
  if (!st && !there)
    damaged(w, "snippet", w->last);
  if (st || !there)
    return st;
  w->report->snippets++;
  return w->to ? row_put_snippet(w->to, &r, &is_new, err) : ST_OK;
}

static enum status see_result(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  bool there = false;
  (void)n;
  enum status st = take_key(w, &row[0], err);
  if (!st)
    st = has_blob(w, &row[1], &there, err);
  if (!st && !there)
    damaged(w, "result", w->last);
  if (st || !there)
    return st;
  w->report->results++;
  return w->to ? db_run(w->to, "INSERT INTO results (key, frames, size, used_ms) VALUES ($1, $2, $3, $4)", row, 4, NULL,
                        NULL, NULL, err)
               : ST_OK;
}

static enum status see_token(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  (void)n;
  const enum status st = take_key(w, &row[0], err);
  return st || !w->to
             ? st
             : db_run(w->to, "INSERT INTO runner_tokens (hash, name, created_ms, revoked_ms) VALUES ($1, $2, $3, $4)",
                      row, 4, NULL, NULL, NULL, err);
}

static enum status walk_table(struct walk *w, const char *sql, db_row_fn see, struct error *err) {
  enum status st = ST_OK;
  size_t n = 0; /* an empty key, which is before all others */
  do {
    const struct db_value args[] = {db_bytes(w->last, n), db_int(PAGE)};
    w->rows = 0;
    st = db_run(w->from, sql, args, 2, see, w, NULL, err);
    n = KEY_SIZE;
    assert(st || w->rows <= PAGE);
  } while (!st && w->rows == PAGE);
  return st;
}

static enum status walk_all(struct walk *w, struct error *err) {
  enum status st =
      walk_table(w, "SELECT hash, size, data FROM blobs WHERE hash > $1 ORDER BY hash LIMIT $2", see_blob, err);
  if (!st)
    st = walk_table(w, "SELECT " ROW_SNIPPET_COLUMNS " FROM snippets WHERE id_hash > $1 ORDER BY id_hash LIMIT $2",
                    see_snippet, err);
  if (!st)
    st = walk_table(w, "SELECT key, frames, size, used_ms FROM results WHERE key > $1 ORDER BY key LIMIT $2",
                    see_result, err);
  if (!st)
    st = walk_table(
        w, "SELECT hash, name, created_ms, revoked_ms FROM runner_tokens WHERE hash > $1 ORDER BY hash LIMIT $2",
        see_token, err);
  return st;
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static enum status see_integrity(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  char line[200];
  (void)n;
  (void)err;
  if (row[0].kind == DB_TEXT && row[0].n == 2 && !memcmp(row[0].p, "ok", 2))
    return ST_OK;
  snprintf(line, sizeof line, "damaged: %.*s", row[0].kind == DB_TEXT ? (int)row[0].n : 1,
           row[0].kind == DB_TEXT ? (const char *)row[0].p : "?");
  line[strcspn(line, "\n")] = 0;
  w->report->damaged++;
  w->tell(line);
  return ST_OK;
}

enum status store_check(const char *url, struct store_report *out, void (*tell)(const char *line), struct error *err) {
  struct db *db = NULL;
  struct walk w = {.report = out, .tell = tell};
  *out = (struct store_report){0};
  enum status st = db_open(url, false, &db, err);
  w.from = db;
  if (!st)
    st = db_check_version(db, err);
  if (!st && db->ops->integrity)
    st = db_run(db, db->ops->integrity, NULL, 0, see_integrity, &w, NULL, err);
  if (!st)
    st = walk_all(&w, err);
  db_close(db);
  return st;
}

/* ---- copy -------------------------------------------------------------------------------------------------------- */

static enum status copy_meta(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  (void)n;
  return db_run(w->to, "INSERT INTO meta (name, value) VALUES ($1, $2)", row, 2, NULL, NULL, NULL, err);
}

static enum status check_empty(struct db *db, struct error *err) {
  bool there = false;
  enum status st = db_run(db, "SELECT name FROM meta UNION ALL SELECT 'x' FROM blobs LIMIT 1", NULL, 0, note_there,
                          &there, NULL, err);
  return st || !there ? st : fail(err, ST_INPUT, "the store to write to is not empty");
}

/* In a transaction of `to`. */
static enum status copy_body(struct db *to, void *user, struct error *err) {
  struct walk *w = user;
  enum status st = check_empty(to, err);
  if (!st)
    st = db_run(w->from, w->from->ops->begin_read, NULL, 0, NULL, NULL, NULL, err);
  if (!st)
    st = db_run(w->from, "SELECT name, value FROM meta", NULL, 0, copy_meta, w, NULL, err);
  return st ? st : walk_all(w, err);
}

enum status store_copy(const char *from, const char *to, struct store_report *out, void (*tell)(const char *line),
                       struct error *err) {
  struct walk w = {.report = out, .tell = tell};
  *out = (struct store_report){0};
  enum status st = db_open(from, false, &w.from, err);
  if (!st)
    st = db_check_version(w.from, err);
  if (!st)
    st = db_open(to, true, &w.to, err);
  if (!st)
    st = db_migrate(w.to, err);
  if (!st)
    st = db_transaction(w.to, copy_body, &w, err);
  db_close(w.to);
  db_close(w.from);
  return st;
}
