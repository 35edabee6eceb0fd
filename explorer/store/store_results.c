/* store: results as rows, and the row that tries the store; the same SQL for both databases. */
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"

enum { KEY_BYTES = 32, TRIM_STEP = 64 };

/* ---- results ----------------------------------------------------------------------------------------------------- */

static enum status parse_key(const char *key, uint8_t out[KEY_BYTES], struct error *err) {
  if (strlen(key) != 2 * KEY_BYTES || strspn(key, "0123456789abcdef") != 2 * KEY_BYTES)
    return fail(err, ST_INPUT, "a key has 64 hexadecimal digits");
  for (int i = 0; i < KEY_BYTES; i++) {
    const char two[3] = {key[2 * i], key[2 * i + 1], 0};
    out[i] = (uint8_t)strtoul(two, NULL, 16);
  }
  return ST_OK;
}

struct result_row {
  struct ident_hash frames;
  int64_t used_ms;
  bool found;
};

static enum status take_result(void *user, const struct db_value *row, int n, struct error *err) {
  struct result_row *r = user;
  (void)n;
  if (!row_take_hash(&row[0], &r->frames) || row[1].kind != DB_INT)
    return fail(err, ST_IO, "a damaged result");
  r->used_ms = row[1].i;
  r->found = true;
  return ST_OK;
}

enum status store_get_result(struct db *db, const char *key, struct buf *frames, bool *found, struct error *err) {
  uint8_t k[KEY_BYTES];
  struct result_row r = {0};
  *found = false;
  enum status st = parse_key(key, k, err);
  if (st)
    return st;
  const struct db_value arg = db_bytes(k, sizeof k);
  st = db_run(db, "SELECT frames, used_ms FROM results WHERE key = $1", &arg, 1, take_result, &r, NULL, err);
  if (!st && r.found)
    st = blob_get(db, &r.frames, frames, err);
  *found = !st && r.found;
  return st;
}

struct saving {
  struct db_value key;
  const void *frames;
  size_t len;
};

static enum status save_body(struct db *db, void *user, struct error *err) {
  struct saving *s = user;
  struct ident_hash hash;
  struct result_row old = {0};
  int64_t packed;
  enum status st = blob_put(db, BLOB_RESULT, s->frames, s->len, &hash, &packed, err);
  if (!st)
    st = db_run(db, "SELECT frames, used_ms FROM results WHERE key = $1", &s->key, 1, take_result, &old, NULL, err);
  if (st)
    return st;
  const struct db_value args[] = {s->key, row_hash(&hash), db_int(packed), db_int(store_now_ms())};
  st = db_run(db,
              "INSERT INTO results (key, frames, size, used_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO UPDATE"
              " SET frames = excluded.frames, size = excluded.size, used_ms = excluded.used_ms",
              args, 4, NULL, NULL, NULL, err);
  if (!st && old.found && !ident_hash_equal(&old.frames, &hash))
    st = blob_drop(db, &old.frames, err);
  return st;
}

enum status store_put_result(struct db *db, const char *key, const void *frames, size_t len, struct error *err) {
  uint8_t k[KEY_BYTES];
  enum status st = parse_key(key, k, err);
  if (st)
    return st;
  struct saving s = {.key = db_bytes(k, sizeof k), .frames = frames, .len = len};
  return row_transaction(db, save_body, &s, err);
}

/* A result that is to be removed. */
struct victim {
  uint8_t key[KEY_BYTES];
  struct ident_hash frames;
  int64_t size;
};

struct trimming {
  int64_t max, total;
  struct victim victims[TRIM_STEP];
  int n;
};

static enum status take_total(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  (void)err;
  ((struct trimming *)user)->total = row[0].i;
  return ST_OK;
}

static enum status take_victim(void *user, const struct db_value *row, int n, struct error *err) {
  struct trimming *t = user;
  struct victim *v = &t->victims[t->n];
  (void)n;
  assert(t->n < TRIM_STEP);
  if (row[0].n != KEY_BYTES || !row_take_hash(&row[1], &v->frames))
    return fail(err, ST_IO, "a damaged result");
  memcpy(v->key, row[0].p, KEY_BYTES);
  v->size = row[2].i;
  t->n++;
  return ST_OK;
}

static enum status trim_body(struct db *db, void *user, struct error *err) {
  struct trimming *t = user;
  const struct db_value step = db_int(TRIM_STEP);
  t->n = 0;
  enum status st =
      db_run(db, "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM results", NULL, 0, take_total, t, NULL, err);
  if (st || t->total <= t->max)
    return st;
  st = db_run(db, "SELECT key, frames, size FROM results ORDER BY used_ms LIMIT $1", &step, 1, take_victim, t, NULL,
              err);
  for (int i = 0; !st && i < t->n && t->total > t->max; i++) {
    const struct db_value key = db_bytes(t->victims[i].key, KEY_BYTES);
    st = db_run(db, "DELETE FROM results WHERE key = $1", &key, 1, NULL, NULL, NULL, err);
    if (!st)
      st = blob_drop(db, &t->victims[i].frames, err);
    t->total -= t->victims[i].size;
  }
  return st;
}

enum status store_trim_results(struct db *db, int64_t max_bytes, struct error *err) {
  struct trimming t = {.max = max_bytes};
  enum status st;
  do
    st = row_transaction(db, trim_body, &t, err);
  while (!st && t.n && t.total > t.max);
  return st;
}

/* ---- how much there is --------------------------------------------------------------------------------------------- */

static enum status take_number(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  *(int64_t *)user = row[0].i;
  return row[0].kind == DB_INT ? ST_OK : fail(err, ST_IO, "a number of the store is none");
}

enum status store_measure(struct db *db, int64_t *bytes, struct error *err) {
  return db_run(db, db->ops->size, NULL, 0, take_number, bytes, NULL, err);
}

enum status store_measure_objects(struct db *db, int64_t *bytes, int64_t *to_send, struct error *err) {
  enum status st = db_run(db, "SELECT CAST(COALESCE(SUM(packed), 0) AS BIGINT) FROM blobs WHERE packed > 0", NULL, 0,
                          take_number, bytes, NULL, err);
  return st ? st : db_run(db, "SELECT COUNT(*) FROM blobs WHERE send_ms > 0", NULL, 0, take_number, to_send, NULL, err);
}

enum status store_count_links(struct db *db, int64_t *n, struct error *err) {
  return db_run(db, "SELECT COUNT(*) FROM snippets", NULL, 0, take_number, n, NULL, err);
}

/* ---- the trial row ----------------------------------------------------------------------------------------------- */

static enum status compare_trial(void *user, const struct db_value *row, int n, struct error *err) {
  int64_t *left = user;
  (void)n;
  if (row[0].n != sizeof *left || memcmp(row[0].p, left, sizeof *left) != 0)
    return fail(err, ST_IO, "a row was read back as another one");
  *left = 0;
  return ST_OK;
}

/* In one transaction, so that servers on one store do not read each other's row. */
static enum status probe_body(struct db *db, void *user, struct error *err) {
  const struct db_value arg = db_bytes(user, sizeof(int64_t));
  enum status st = db_run(db,
                          "INSERT INTO meta (name, value) VALUES ('trial', $1) "
                          "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                          &arg, 1, NULL, NULL, NULL, err);
  return st ? st : db_run(db, "SELECT value FROM meta WHERE name = 'trial'", NULL, 0, compare_trial, user, NULL, err);
}

enum status store_probe(struct db *db, struct error *err) {
  int64_t value = store_now_ms();
  enum status st = row_transaction(db, probe_body, &value, err);
  return st || !value ? st : fail(err, ST_IO, "a row that was written is not there");
}
