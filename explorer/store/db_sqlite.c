/* SQLite: only one connection of all processes writes and checkpoints, the others read.
 *
 * SQLite up to 3.51.2 can lose commits when two connections reset a write-ahead log at the same time.  With one writing
 * connection that cannot happen, so a lock file beside the database keeps a second writer from starting.  The lock is
 * the kernel's and ends with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/db.h"

enum {
  APPLICATION_ID = 0x6e6b7831 /* "nkx1" */,
  BUSY_MS = 5000,
  PATH_MAX_LEN = 3000,
  LOCK_TRIES = 50,
  LOCK_WAIT_US = 10000
};

struct lite {
  struct db db; /* first: a struct db * is also a struct lite * */
  sqlite3 *h;
  int lock_fd; /* -1 for readers */
};

static enum status lite_fail(struct lite *l, struct error *err) {
  int code = sqlite3_errcode(l->h) & 0xff, os = sqlite3_system_errno(l->h);
  enum status st = ST_IO;
  if (code == SQLITE_FULL || (code == SQLITE_IOERR && (os == ENOSPC || os == EDQUOT || os == EFBIG)))
    st = ST_FULL;
  else if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    st = ST_BUSY;
  else if (code == SQLITE_CONSTRAINT)
    st = ST_DENIED;
  else if (code == SQLITE_NOMEM)
    st = ST_NOMEM;
  return fail(err, st, "SQLite: %.180s", sqlite3_errmsg(l->h));
}

static int bind(sqlite3_stmt *s, int i, const struct db_value *v) {
  switch (v->kind) {
  case DB_INT:
    return sqlite3_bind_int64(s, i, v->i);
  case DB_TEXT:
    return sqlite3_bind_text64(s, i, v->p, v->n, SQLITE_STATIC, SQLITE_UTF8);
  case DB_BYTES:
    return sqlite3_bind_blob64(s, i, v->p, v->n, SQLITE_STATIC);
  case DB_NULL:
    break;
  }
  return sqlite3_bind_null(s, i);
}

static struct db_value column(sqlite3_stmt *s, int i) {
  switch (sqlite3_column_type(s, i)) {
  case SQLITE_INTEGER:
    return db_int(sqlite3_column_int64(s, i));
  case SQLITE_TEXT: {
    const void *p = sqlite3_column_text(s, i);
    return (struct db_value){.kind = DB_TEXT, .p = p, .n = (size_t)sqlite3_column_bytes(s, i)};
  }
  case SQLITE_BLOB: {
    const void *p = sqlite3_column_blob(s, i); /* NULL when empty */
    return (struct db_value){.kind = DB_BYTES, .p = p ? p : "", .n = (size_t)sqlite3_column_bytes(s, i)};
  }
  default:
    return (struct db_value){.kind = DB_NULL};
  }
}

static enum status step_all(struct lite *l, sqlite3_stmt *s, db_row_fn fn, void *user, struct error *err) {
  struct db_value row[DB_COLUMNS_MAX];
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    int n = sqlite3_column_count(s);
    if (n > DB_COLUMNS_MAX)
      return fail(err, ST_BUG, "%d columns", n);
    for (int i = 0; i < n; i++)
      row[i] = column(s, i);
    enum status st = fn ? fn(user, row, n, err) : ST_OK;
    if (st)
      return st;
  }
  return rc == SQLITE_DONE ? ST_OK : lite_fail(l, err);
}

static enum status lite_run(struct db *db, const char *sql, const struct db_value *args, int n, db_row_fn fn,
                            void *user, int64_t *changed, struct error *err) {
  struct lite *l = (struct lite *)db;
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(l->h, sql, -1, &s, NULL))
    return lite_fail(l, err);
  enum status st = ST_OK;
  for (int i = 0; !st && i < n; i++)
    if (bind(s, i + 1, &args[i]))
      st = lite_fail(l, err);
  if (!st)
    st = step_all(l, s, fn, user, err);
  if (!st && changed)
    *changed = sqlite3_changes64(l->h);
  sqlite3_finalize(s);
  return st;
}

static enum status lite_script(struct db *db, const char *sql, struct error *err) {
  struct lite *l = (struct lite *)db;
  return sqlite3_exec(l->h, sql, NULL, NULL, NULL) ? lite_fail(l, err) : ST_OK;
}

static enum status lite_prepare(struct db *db, struct error *err) {
  (void)db;
  (void)err;
  return ST_OK;
}

static void lite_close(struct db *db) {
  struct lite *l = (struct lite *)db;
  sqlite3_close(l->h);
  if (l->lock_fd >= 0)
    close(l->lock_fd);
  free(l);
}

/* Free pages do not count: the next rows take them. */
static const char size[] = "SELECT (page_count - freelist_count) * page_size"
                           " FROM pragma_page_count, pragma_freelist_count, pragma_page_size";

static const struct db_ops ops = {.run = lite_run,
                                  .script = lite_script,
                                  .prepare = lite_prepare,
                                  .begin = "BEGIN IMMEDIATE",
                                  .begin_read = "BEGIN",
                                  .integrity = "PRAGMA integrity_check",
                                  .size = size,
                                  .close = lite_close};

static enum status take_lock(struct lite *l, const char *path, struct error *err) {
  char name[PATH_MAX_LEN + 8];
  snprintf(name, sizeof name, "%s-lock", path);
  l->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (l->lock_fd < 0)
    return fail(err, ST_IO, "%.180s: %m", name);
  for (int i = 0; i < LOCK_TRIES; i++) { /* a server that was killed releases the lock in a moment */
    if (!flock(l->lock_fd, LOCK_EX | LOCK_NB))
      return ST_OK;
    if (errno != EWOULDBLOCK)
      return fail(err, ST_IO, "%.180s: %m", name);
    usleep(LOCK_WAIT_US);
  }
  return fail(err, ST_BUSY, "%.160s is in use: another process writes to it", path);
}

/* Checks that the file is a store, or new.  A file that cannot be read now is not said to be damaged. */
static enum status check_kind(struct lite *l, const char *path, struct error *err) {
  sqlite3_stmt *s = NULL;
  int id = 0, tables = 0;
  if (!sqlite3_prepare_v2(l->h, "PRAGMA application_id", -1, &s, NULL) && sqlite3_step(s) == SQLITE_ROW)
    id = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  s = NULL;
  if (!sqlite3_prepare_v2(l->h, "SELECT COUNT(*) FROM sqlite_master", -1, &s, NULL) && sqlite3_step(s) == SQLITE_ROW)
    tables = sqlite3_column_int(s, 0);
  else
    id = -1;
  const int rc = id < 0 ? sqlite3_errcode(l->h) & 0xff : SQLITE_OK; /* of the call that has failed */
  sqlite3_finalize(s);
  if (rc == SQLITE_CANTOPEN || rc == SQLITE_NOMEM || rc == SQLITE_BUSY || rc == SQLITE_PERM)
    return fail(err, ST_IO, "%.180s: %s", path, sqlite3_errstr(rc));
  if (id == APPLICATION_ID || (id == 0 && tables == 0))
    return ST_OK;
  return fail(err, ST_INPUT, "%.180s is not a store of this program, or is damaged", path);
}

static enum status set_up(struct lite *l, const char *path, bool may_write, struct error *err) {
  char pragmas[400];
  sqlite3_db_config(l->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(l->h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_busy_timeout(l->h, BUSY_MS);
  enum status st = check_kind(l, path, err);
  if (!st) /* a statement that changes many pages keeps their old content: a confined process has no place for a file */
    st = lite_script(&l->db, "PRAGMA temp_store=MEMORY", err);
  if (st || !may_write)
    return st;
  snprintf(pragmas, sizeof pragmas,
           "PRAGMA application_id=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
           "PRAGMA secure_delete=ON; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON",
           APPLICATION_ID);
  return lite_script(&l->db, pragmas, err);
}

enum status db_open_sqlite(const char *path, bool may_write, struct db **out, struct error *err) {
  struct lite *l = calloc(1, sizeof *l);
  enum status st = ST_OK;
  if (!l)
    return fail(err, ST_NOMEM, "SQLite");
  l->db.ops = &ops;
  l->lock_fd = -1;
  if (strlen(path) > PATH_MAX_LEN)
    st = fail(err, ST_INPUT, "--store: the path is too long");
  if (!st && may_write)
    st = take_lock(l, path, err);
  int flags = may_write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (!st && sqlite3_open_v2(path, &l->h, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL))
    st = fail(err, ST_IO, "%.160s: %s", path, l->h ? sqlite3_errmsg(l->h) : "out of memory");
  if (!st)
    st = set_up(l, path, may_write, err);
  if (st)
    lite_close(&l->db);
  else
    *out = &l->db;
  return st;
}
