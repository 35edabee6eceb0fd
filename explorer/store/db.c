/* What both kinds of database share: transactions and the schema's versions. */
#include "store/db.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "store/s3.h"

static const struct {
  int version;
  const char *sql;
} migrations[] = {
#include "migrations.inc"
};
enum { N_MIGRATIONS = sizeof migrations / sizeof *migrations };

struct db_value db_text(const char *s) {
  return s ? (struct db_value){.kind = DB_TEXT, .p = s, .n = strlen(s)} : (struct db_value){.kind = DB_NULL};
}

enum status db_open(const char *url, bool may_write, struct db **out, struct error *err) {
  static const char sqlite[] = "sqlite:";
  if (!strncmp(url, sqlite, sizeof sqlite - 1) && url[sizeof sqlite - 1])
    return db_open_sqlite(url + sizeof sqlite - 1, may_write, out, err);
  if (!strncmp(url, "postgresql://", 13) || !strncmp(url, "postgres://", 11))
    return db_open_pg(url, out, err);
  return fail(err, ST_INPUT, "--store: expected sqlite:PATH or postgresql://…");
}

void db_set_patience(struct db *db, int ms) {
  assert(ms > 0);
  db->patience_ms = ms;
}

void db_close(struct db *db) {
  if (!db)
    return;
  s3_close(db->objects);
  db->ops->close(db);
}

enum status db_run(struct db *db, const char *sql, const struct db_value *args, int n, db_row_fn fn, void *user,
                   int64_t *changed, struct error *err) {
  assert(n >= 0 && n <= DB_ARGS_MAX);
  return db->ops->run(db, sql, args, n, fn, user, changed, err);
}

enum status db_transaction(struct db *db, enum status (*body)(struct db *, void *, struct error *), void *user,
                           struct error *err) {
  enum status st = db_run(db, db->ops->begin, NULL, 0, NULL, NULL, NULL, err);
  if (st)
    return st;
  st = body(db, user, err);
  if (!st)
    st = db_run(db, "COMMIT", NULL, 0, NULL, NULL, NULL, err);
  if (st && db_run(db, "ROLLBACK", NULL, 0, NULL, NULL, NULL, NULL)) {
    /* the connection was lost, and the transaction with it; or the failure has rolled it back already */
  }
  return st;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static enum status take_int(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  (void)err;
  if (row[0].kind == DB_INT)
    *(int64_t *)user = row[0].i;
  return ST_OK;
}

static enum status newest(struct db *db, int64_t *version, struct error *err) {
  *version = 0;
  return db_run(db, "SELECT MAX(version) FROM migrations", NULL, 0, take_int, version, NULL, err);
}

static enum status apply(struct db *db, int i, struct error *err) {
  struct timeval now;
  gettimeofday(&now, NULL);
  const struct db_value args[] = {db_int(migrations[i].version),
                                  db_int((int64_t)now.tv_sec * 1000 + now.tv_usec / 1000)};
  enum status st = db->ops->script(db, migrations[i].sql, err);
  if (!st)
    st = db_run(db, "INSERT INTO migrations (version, applied_ms) VALUES ($1, $2)", args, 2, NULL, NULL, NULL, err);
  return st;
}

static enum status migrate(struct db *db, void *user, struct error *err) {
  int64_t have = 0;
  (void)user;
  enum status st = db->ops->prepare(db, err);
  if (!st)
    st = db->ops->script(
        db, "CREATE TABLE IF NOT EXISTS migrations (version BIGINT PRIMARY KEY, applied_ms BIGINT NOT NULL)", err);
  if (!st)
    st = newest(db, &have, err);
  if (!st && have > migrations[N_MIGRATIONS - 1].version)
    st = fail(err, ST_DENIED, "the store has version %lld, this program knows %d: it was written by a newer one",
              (long long)have, migrations[N_MIGRATIONS - 1].version);
  for (int i = 0; !st && i < N_MIGRATIONS; i++)
    if (migrations[i].version > have)
      st = apply(db, i, err);
  return st;
}

enum status db_migrate(struct db *db, struct error *err) {
  return db_transaction(db, migrate, NULL, err);
}

enum status db_check_version(struct db *db, struct error *err) {
  int64_t have;
  enum status st = newest(db, &have, err);
  if (!st && have != migrations[N_MIGRATIONS - 1].version)
    st = fail(err, ST_DENIED, "the store has version %lld, this program needs %d", (long long)have,
              migrations[N_MIGRATIONS - 1].version);
  return st;
}
