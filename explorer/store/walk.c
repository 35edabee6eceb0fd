/* Reads everything, to check it or to copy it into another store.
 *
 * A copy is made row by row from the state of one moment, and each row is checked: damaged rows are reported and left
 * out.  The same code backs up and restores both kinds of database, also from one kind to the other.  Runs on Neuron hosts
 * (runs.h) and sessions (sessions.h) are neither checked nor copied: they are kept for some days only.
 *
 * Where pages of a SQLite file are damaged, no index can be trusted, and a statement fails in the middle of a table.  So that file is
 * read in the order of row numbers, and goes on after the numbers that lie in a damaged page.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/s3.h"
#include "store/store.h"

enum {
  PAGE = 32,
  KEY_SIZE = 32,
  LINEAR = 4096,
};

static const int64_t NUMBER_MAX = INT64_C(1) << 40; /* no table has so many rows */

struct walk {
  struct db *from, *to; /* to: NULL when checking only */
  struct store_report *report;
  void (*tell)(const char *line);
  uint8_t last[KEY_SIZE]; /* the key of the last row seen */
  int rows;               /* in this page */
  bool goes_past;         /* damaged pages; else they are a failure */
  bool is_salvage;        /* tables and columns that cannot be checked are left out */
  bool is_fatal;          /* the failure is not one of reading */
  const struct table *table;
  int64_t at; /* SQLite: the number of the last row seen */
};

static enum status fatal(struct walk *w, enum status st) {
  w->is_fatal |= st != ST_OK;
  return st;
}

static void damaged(struct walk *w, const char *what, const uint8_t *key) {
  char line[160], hex[17];
  for (int i = 0; i < 8; i++)
    snprintf(hex + 2 * i, 3, "%02x", key[i]);
  snprintf(line, sizeof line, "damaged: %s %s…", what, hex);
  w->report->damaged++;
  w->tell(line);
}

/* A table: its columns, the key among them, and what sees its rows. */
struct table {
  const char *what, *name, *key, *columns;
  db_row_fn see;
};

static void damaged_row(struct walk *w) {
  char line[160];
  snprintf(line, sizeof line, "damaged: %s in row %lld", w->table->what, (long long)w->at);
  w->report->damaged++;
  w->tell(line);
}

/* Notes the key of a row, after which the next page begins. */
static enum status take_key(struct walk *w, const struct db_value *v, struct error *err) {
  w->rows++;
  if (v->kind != DB_BYTES || v->n != KEY_SIZE)
    return fail(err, ST_IO, "a row whose key is damaged");
  memcpy(w->last, v->p, KEY_SIZE);
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
  enum status st =
      db_run(w->to ? w->to : w->from, "SELECT hash FROM blobs WHERE hash = $1", hash, 1, note_there, there, NULL, err);
  return w->to ? fatal(w, st) : st;
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

/* Whatever may be an object is one that is to be sent, if the copy has an object store. */
static enum status copy_blob(struct walk *w, const struct db_value *row, const struct buf *packed, struct error *err) {
  const bool may_move = row[3].kind != DB_NULL || row[5].i > 0;
  const struct db_value args[] = {row[0], row[1], db_bytes(buf_text(packed), packed->len), db_int(may_move)};
  return fatal(w, db_run(w->to,
                         "INSERT INTO blobs (hash, size, data, send_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                         args, 4, NULL, NULL, NULL, err));
}

static enum status see_blob(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  struct buf bytes, packed;
  (void)n;
  enum status st = take_key(w, &row[0], err);
  if (st)
    return st;
  buf_init(&bytes, STORE_BLOB_MAX);
  buf_init(&packed, STORE_BLOB_MAX);
  st = blob_packed(w->from, &row[1], &packed, err);
  if (!st) {
    const struct db_value here[] = {
        row[1], db_bytes(buf_text(&packed), packed.len), {.kind = DB_NULL}, {.kind = DB_NULL}};
    st = blob_unpack(w->from, &row[0], here, &bytes, err);
  }
  w->report->blobs += !st;
  if (!st && w->to)
    st = copy_blob(w, row, &packed, err);
  else if (st == ST_IO) {
    damaged(w, "blob", w->last);
    st = ST_OK;
  }
  buf_clear(&packed);
  buf_clear(&bytes);
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
  return w->to ? fatal(w, row_put_snippet(w->to, &r, &is_new, err)) : ST_OK;
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
  return w->to ? fatal(w, db_run(w->to, "INSERT INTO results (key, frames, size, used_ms) VALUES ($1, $2, $3, $4)", row,
                                 4, NULL, NULL, NULL, err))
               : ST_OK;
}

/* Takes the key of a row that is copied as it is, by this statement. */
static enum status copy_row(struct walk *w, const char *sql, const struct db_value *row, int n, struct error *err) {
  const enum status st = take_key(w, &row[0], err);
  return st || !w->to ? st : fatal(w, db_run(w->to, sql, row, n, NULL, NULL, NULL, err));
}

static enum status see_token(void *user, const struct db_value *row, int n, struct error *err) {
  static const char sql[] = "INSERT INTO runner_tokens (hash, name, created_ms, revoked_ms) VALUES ($1, $2, $3, $4)";
  (void)n;
  return copy_row(user, sql, row, 4, err);
}

static enum status see_access_token(void *user, const struct db_value *row, int n, struct error *err) {
  static const char sql[] = "INSERT INTO access_tokens (hash, name, role, member_of, created_ms, revoked_ms)"
                            " VALUES ($1, $2, $3, $4, $5, $6)";
  (void)n;
  return copy_row(user, sql, row, 6, err);
}

static const struct table tables[] = {
    {"blob", "blobs", "hash", "hash, " BLOB_COLUMNS ", send_ms", see_blob},
    {"snippet", "snippets", "id_hash", ROW_SNIPPET_COLUMNS, see_snippet},
    {"result", "results", "key", "key, frames, size, used_ms", see_result},
    {"token", "runner_tokens", "hash", "hash, name, created_ms, revoked_ms", see_token},
    {"token", "access_tokens", "hash", "hash, name, role, member_of, created_ms, revoked_ms", see_access_token},
};

enum { SQL_MAX = 400 };

/* In the order of keys, which every database has. */
static enum status walk_by_key(struct walk *w, const struct table *t, struct error *err) {
  enum status st = ST_OK;
  char sql[SQL_MAX];
  size_t n = 0; /* an empty key, which is before all others */
  snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE %s > $1 ORDER BY %s LIMIT $2", t->columns, t->name, t->key,
           t->key);
  do {
    const struct db_value args[] = {db_bytes(w->last, n), db_int(PAGE)};
    w->rows = 0;
    st = db_run(w->from, sql, args, 2, t->see, w, NULL, err);
    n = KEY_SIZE;
    assert(st || w->rows <= PAGE);
  } while (!st && w->rows == PAGE);
  return st;
}

static enum status take_number(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  *(int64_t *)user = row[0].i;
  return row[0].kind == DB_INT ? ST_OK : fail(err, ST_IO, "a damaged row number");
}

/* One row with its number in the last column.  A row that cannot be read whole is reported and left out. */
static enum status see_row(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  w->at = row[n - 1].i;
  enum status st = w->table->see(w, row, n - 1, err);
  if (st != ST_IO || w->is_fatal)
    return st;
  damaged_row(w);
  return ST_OK;
}

/* Whether the next row number after `at` can be found; *next is then this, or `at` if there is none. */
static bool probe(struct walk *w, int64_t at, int64_t *next) {
  char sql[SQL_MAX];
  struct error err;
  const struct db_value arg = db_int(at);
  *next = at;
  snprintf(sql, sizeof sql, "SELECT rowid FROM %s WHERE rowid > $1 ORDER BY rowid LIMIT 1", w->table->name);
  return db_run(w->from, sql, &arg, 1, take_number, next, NULL, &err) == ST_OK;
}

/* The least number after a damaged page, which ends somewhere after `bad`: from there on numbers are found.  False: the page is the
 * last one.  Pages hold fewer rows than LINEAR, but their numbers may have gaps. */
static bool page_end(struct walk *w, int64_t bad, int64_t *out) {
  int64_t good = bad, step = 1, next;
  for (int i = 0; !probe(w, good += step, &next); i++) {
    bad = good;
    step = i < LINEAR ? 1 : 2 * step;
    if (bad > NUMBER_MAX)
      return false;
  }
  while (good - bad > 1) {
    const int64_t middle = bad + (good - bad) / 2;
    if (probe(w, middle, &next))
      good = middle;
    else
      bad = middle;
  }
  *out = good;
  return true;
}

/* After a failure: moves w->at to the damaged row, or to the end of the damaged page.  False: nothing follows it. */
static bool step_past(struct walk *w) {
  int64_t next;
  if (probe(w, w->at, &next) && next > w->at) {
    w->at = next;
    damaged_row(w);
    return true;
  }
  w->at++;
  damaged_row(w); /* and others of its page */
  return page_end(w, w->at - 1, &w->at);
}

/* In the order of row numbers, past what cannot be read. */
static enum status walk_by_row(struct walk *w, struct error *err) {
  const struct table *t = w->table;
  char sql[SQL_MAX];
  snprintf(sql, sizeof sql, "SELECT %s, rowid FROM %s WHERE rowid > $1 ORDER BY rowid LIMIT $2", t->columns, t->name);
  for (w->at = 0;;) {
    const struct db_value args[] = {db_int(w->at), db_int(PAGE)};
    w->rows = 0;
    enum status st = db_run(w->from, sql, args, 2, see_row, w, NULL, err);
    if (st && (st != ST_IO || w->is_fatal))
      return st;
    if (!st && w->rows < PAGE)
      return ST_OK;
    if (st && !step_past(w)) {
      w->tell("damaged: the rest of a table cannot be read");
      return ST_OK;
    }
  }
}

static enum status walk_all(struct walk *w, struct error *err) {
  enum status st = ST_OK;
  for (size_t i = 0; !st && i < sizeof tables / sizeof *tables; i++) {
    const struct table *t = &tables[i];
    if (w->is_salvage && (t->see == see_result || t->see == see_token)) /* their rows have no checksum */
      continue;
    w->table = t;
    st = w->goes_past ? walk_by_row(w, err) : walk_by_key(w, t, err);
  }
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

/* Whether the file's pages fit together; a page that is damaged ends the statement, and is one more finding. */
static enum status check_integrity(struct walk *w, struct error *err) {
  char line[160];
  enum status st = db_run(w->from, w->from->ops->integrity, NULL, 0, see_integrity, w, NULL, err);
  if (st != ST_IO)
    return st;
  snprintf(line, sizeof line, "damaged: %.140s", err->text);
  w->report->damaged++;
  w->tell(line);
  return ST_OK;
}

static bool is_sqlite(const char *url) {
  return !strncmp(url, "sqlite:", 7);
}

enum status store_check(const char *url, struct s3_site *objects, struct store_report *out,
                        void (*tell)(const char *line), struct error *err) {
  struct db *db = NULL;
  struct walk w = {.report = out, .tell = tell};
  *out = (struct store_report){0};
  enum status st = db_open(url, false, &db, err);
  if (!st && objects)
    st = s3_open(objects, &db->objects, err);
  w.from = db;
  w.goes_past = is_sqlite(url);
  if (!st)
    st = db_check_version(db, err);
  if (!st && db->ops->integrity)
    st = check_integrity(&w, err);
  if (!st)
    st = walk_all(&w, err);
  db_close(db);
  return st;
}

/* ---- copy -------------------------------------------------------------------------------------------------------- */

static enum status copy_meta(void *user, const struct db_value *row, int n, struct error *err) {
  struct walk *w = user;
  (void)n;
  return fatal(w, db_run(w->to, "INSERT INTO meta (name, value) VALUES ($1, $2)", row, 2, NULL, NULL, NULL, err));
}

static enum status check_empty(struct db *db, struct error *err) {
  bool there = false;
  enum status st = db_run(db, "SELECT name FROM meta UNION ALL SELECT 'x' FROM blobs LIMIT 1", NULL, 0, note_there,
                          &there, NULL, err);
  return st || !there ? st : fail(err, ST_INPUT, "the store to write to is not empty");
}

/* Without the secret, which a server then makes anew, links of Compiler Explorer that are stored again get other ids. */
static enum status copy_all_meta(struct walk *w, struct error *err) {
  enum status st = db_run(w->from, "SELECT name, value FROM meta", NULL, 0, copy_meta, w, NULL, err);
  if (st != ST_IO || !w->is_salvage || w->is_fatal)
    return st;
  w->report->damaged++;
  w->tell("damaged: the table meta");
  return ST_OK;
}

/* In a transaction of `to`. */
static enum status copy_body(struct db *to, void *user, struct error *err) {
  struct walk *w = user;
  enum status st = check_empty(to, err);
  if (!st)
    st = db_run(w->from, w->from->ops->begin_read, NULL, 0, NULL, NULL, NULL, err);
  if (!st)
    st = copy_all_meta(w, err);
  return st ? st : walk_all(w, err);
}

static enum status copy(const char *from, const char *to, struct s3_site *objects, struct walk *w, struct error *err) {
  *w->report = (struct store_report){0};
  enum status st = db_open(from, false, &w->from, err);
  if (!st && objects)
    st = s3_open(objects, &w->from->objects, err);
  if (!st)
    st = db_check_version(w->from, err);
  if (st == ST_IO && w->is_salvage && w->from)
    st = ST_OK; /* the version is in a damaged page: each row is checked */
  if (!st)
    st = db_open(to, true, &w->to, err);
  if (!st)
    st = db_migrate(w->to, err);
  if (!st)
    st = db_transaction(w->to, copy_body, w, err);
  db_close(w->to);
  db_close(w->from);
  return st;
}

enum status store_copy(const char *from, const char *to, struct s3_site *objects, struct store_report *out,
                       void (*tell)(const char *line), struct error *err) {
  return copy(from, to, objects, &(struct walk){.report = out, .tell = tell}, err);
}

enum status store_salvage(const char *from, const char *to, struct s3_site *objects, struct store_report *out,
                          void (*tell)(const char *line), struct error *err) {
  if (!is_sqlite(from))
    return fail(err, ST_INPUT, "only a SQLite store is salvaged here; PostgreSQL has tools of its own");
  return copy(from, to, objects, &(struct walk){.report = out, .tell = tell, .goes_past = true, .is_salvage = true},
              err);
}
