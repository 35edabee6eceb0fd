/* db: one connection to a database of either kind.
 *
 * store.c writes its SQL once, in the language that SQLite and PostgreSQL have in common; arguments are called $1, $2,
 * … in the order in which they first appear.  A connection belongs to one thread.  Only the files of store/ include
 * this.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DB_ARGS_MAX = 10, DB_COLUMNS_MAX = 11 };

enum db_kind { DB_NULL, DB_INT, DB_TEXT, DB_BYTES };

struct db_value {
  enum db_kind kind;
  int64_t i;
  const void *p; /* DB_TEXT, DB_BYTES; of a row: valid during the callback */
  size_t n;
};

static inline struct db_value db_int(int64_t i) {
  return (struct db_value){.kind = DB_INT, .i = i};
}
static inline struct db_value db_bytes(const void *p, size_t n) {
  return p ? (struct db_value){.kind = DB_BYTES, .p = p, .n = n} : (struct db_value){.kind = DB_NULL};
}
struct db_value db_text(const char *s); /* NULL is NULL */

/* One row of the answer.  Any status but ST_OK ends the statement and is returned by it. */
typedef enum status (*db_row_fn)(void *user, const struct db_value *row, int n, struct error *err);

struct db;
struct db_ops {
  /* Runs one statement.  ST_BUSY: the database cannot be reached or is locked, but may be later; ST_FULL: no space;
   * ST_DENIED: a constraint of the schema refuses it; ST_IO: the database fails or is damaged.  *changed (may be NULL):
   * rows written.  fn may be NULL. */
  enum status (*run)(struct db *db, const char *sql, const struct db_value *args, int n, db_row_fn fn, void *user,
                     int64_t *changed, struct error *err);
  enum status (*script)(struct db *db, const char *sql, struct error *err); /* many statements, no arguments */
  enum status (*prepare)(struct db *db, struct error *err); /* before migrations, in their transaction */
  const char *begin;                                        /* starts a transaction that writes */
  const char *begin_read;                                   /* starts one that sees the state of one moment */
  const char *integrity; /* a statement whose rows of text are "ok" if all is well; NULL: there is none */
  const char *size;      /* a statement that gives the bytes the store takes */
  int size_every_ms;     /* how often it is worth its time */
  void (*close)(struct db *db);
};

struct s3;
struct db {
  const struct db_ops *ops;
  struct s3 *objects; /* where results may be, too; NULL: nowhere.  db_close closes it */
  int patience_ms;    /* how long a statement may take on PostgreSQL; 0: as long as it usually may */
};

/* `url` is "sqlite:PATH" or "postgresql://…".  With may_write a SQLite file is created if it does not exist.  Only one
 * connection at all may be open for writing to a SQLite file; ST_BUSY otherwise. */
MUST_USE enum status db_open(const char *url, bool may_write, struct db **out, struct error *err);
MUST_USE enum status db_open_sqlite(const char *path, bool may_write, struct db **out, struct error *err);
MUST_USE enum status db_open_pg(const char *url, struct db **out, struct error *err);
/* From now on a statement is given up after ms, where the database is another machine's: for what the service can do without. */
void db_set_patience(struct db *db, int ms);
void db_close(struct db *db); /* NULL is fine */

MUST_USE enum status db_run(struct db *db, const char *sql, const struct db_value *args, int n, db_row_fn fn,
                            void *user, int64_t *changed, struct error *err);
/* Starts a transaction, runs `body`, and commits if that returned ST_OK; else rolls back. */
MUST_USE enum status db_transaction(struct db *db, enum status (*body)(struct db *db, void *user, struct error *err),
                                    void *user, struct error *err);
/* Brings the schema to this program's version.  ST_DENIED when the database is of a newer one. */
MUST_USE enum status db_migrate(struct db *db, struct error *err);
/* ST_DENIED unless the schema is exactly this program's: for connections that only read. */
MUST_USE enum status db_check_version(struct db *db, struct error *err);

#endif
