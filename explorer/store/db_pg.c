/* PostgreSQL through libpq, never waiting beyond a deadline.
 *
 * libpq's blocking calls would hang when the server is up but does not answer, so statements are sent, and their
 * results are awaited with poll.  A lost connection is made anew by the next statement, or at once if that is safe.
 * After connecting has failed, or a statement took too long, statements fail for a while without being tried, so that
 * no queue builds up while the database is down.
 */
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/db.h"

enum { CONNECT_MS = 3000, STATEMENT_MS = 10000, RETRY_MS = 500, RETRY_SLOW_MS = 5000, SIZE_EVERY_MS = 60000 };
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25 };

struct pg {
  struct db db; /* first: a struct db * is also a struct pg * */
  char *url;
  PGconn *c;
  int64_t retry_at_ms; /* no attempt to connect before this */
};

static int patience(const struct pg *p, int usual_ms) {
  return p->db.patience_ms && p->db.patience_ms < usual_ms ? p->db.patience_ms : usual_ms;
}

/* Waits for the socket; false at the deadline, or on an error. */
static bool wait_for(const struct pg *p, short events, int64_t deadline_ms) {
  struct pollfd f = {.fd = PQsocket(p->c), .events = events};
  int64_t left = deadline_ms - clock_now_ms();
  return f.fd >= 0 && left > 0 && poll(&f, 1, (int)left) > 0;
}

static enum status lose(struct pg *p, bool was_slow, const char *what, struct error *err) {
  bool is_connecting = !strcmp(what, "connect");
  char why[160];
  snprintf(why, sizeof why, "%.150s", p->c ? PQerrorMessage(p->c) : "out of memory");
  for (char *c = why; *c; c++)
    if (*c == '\n' || *c == '\t' || *c == '"')
      *c = ' ';
  PQfinish(p->c);
  p->c = NULL;
  p->retry_at_ms = clock_now_ms() + (was_slow ? RETRY_SLOW_MS : is_connecting ? RETRY_MS : 0);
  log_warn("store_lost", "what=%s slow=%d why=\"%s\"", what, was_slow, why);
  return fail(err, ST_BUSY, "PostgreSQL: %s: %s", what, was_slow ? "no answer in time" : why);
}

static void ignore_notice(void *user, const PGresult *r) {
  (void)user;
  (void)r;
}

static enum status connect_now(struct pg *p, struct error *err) {
  int64_t deadline = clock_now_ms() + patience(p, CONNECT_MS);
  if (clock_now_ms() < p->retry_at_ms)
    return fail(err, ST_BUSY, "PostgreSQL cannot be reached");
  p->c = PQconnectStart(p->url);
  if (!p->c || PQstatus(p->c) == CONNECTION_BAD)
    return lose(p, false, "connect", err);
  for (PostgresPollingStatusType s = PGRES_POLLING_WRITING; s != PGRES_POLLING_OK; s = PQconnectPoll(p->c)) {
    if (s == PGRES_POLLING_FAILED)
      return lose(p, false, "connect", err);
    if (!wait_for(p, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
      return lose(p, clock_now_ms() >= deadline, "connect", err);
  }
  PQsetnonblocking(p->c, 1);
  PQsetNoticeReceiver(p->c, ignore_notice, NULL);
  return ST_OK;
}

static enum status result_status(const PGresult *r, struct error *err) {
  const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
  enum status st = ST_IO;
  if (!state)
    state = "";
  if (!strcmp(state, "53100"))
    st = ST_FULL;
  else if (!strncmp(state, "23", 2)) /* integrity constraint */
    st = ST_DENIED;
  else if (!strncmp(state, "40", 2) || !strncmp(state, "53", 2) || !strncmp(state, "55", 2) || !strncmp(state, "57", 2))
    st = ST_BUSY; /* deadlock, resources, locked, shutting down */
  return fail(err, st, "PostgreSQL: %.5s %.180s", state, text ? text : "");
}

/* Sends what is buffered, and waits until there is a result. */
static bool flush_and_wait(struct pg *p, int64_t deadline) {
  int more;
  while ((more = PQflush(p->c)) > 0)
    if (!wait_for(p, POLLIN | POLLOUT, deadline) || !PQconsumeInput(p->c))
      return false;
  if (more < 0)
    return false;
  while (PQisBusy(p->c))
    if (!wait_for(p, POLLIN, deadline) || !PQconsumeInput(p->c))
      return false;
  return true;
}

static struct db_value value_at(const PGresult *r, int row, int col) {
  const char *p = PQgetvalue(r, row, col);
  size_t n = (size_t)PQgetlength(r, row, col);
  uint64_t i;
  if (PQgetisnull(r, row, col))
    return (struct db_value){.kind = DB_NULL};
  if (PQftype(r, col) == OID_INT8 && n == sizeof i) {
    memcpy(&i, p, sizeof i);
    return db_int((int64_t)be64toh(i));
  }
  return (struct db_value){.kind = PQftype(r, col) == OID_TEXT ? DB_TEXT : DB_BYTES, .p = p, .n = n};
}

static enum status give_rows(const PGresult *r, db_row_fn fn, void *user, struct error *err) {
  struct db_value row[DB_COLUMNS_MAX];
  int columns = PQnfields(r);
  if (columns > DB_COLUMNS_MAX)
    return fail(err, ST_BUG, "%d columns", columns);
  for (int i = 0; fn && i < PQntuples(r); i++) {
    for (int k = 0; k < columns; k++)
      row[k] = value_at(r, i, k);
    enum status st = fn(user, row, columns, err);
    if (st)
      return st;
  }
  return ST_OK;
}

/* Takes all results of what was sent; the first failure counts.  Rows are passed on at the end, when the connection is
 * free again, because the function that gets them may send statements itself. */
static enum status collect(struct pg *p, db_row_fn fn, void *user, int64_t *changed, struct error *err) {
  int64_t deadline = clock_now_ms() + patience(p, STATEMENT_MS);
  enum status st = ST_OK;
  PGresult *rows = NULL, *r = NULL;
  for (;;) {
    if (!flush_and_wait(p, deadline)) {
      st = lose(p, clock_now_ms() >= deadline, "statement", err);
      break;
    }
    r = PQgetResult(p->c);
    if (!r)
      break;
    ExecStatusType s = PQresultStatus(r);
    if (!st && s != PGRES_TUPLES_OK && s != PGRES_COMMAND_OK && s != PGRES_EMPTY_QUERY)
      st = result_status(r, err);
    if (changed)
      *changed = strtoll(PQcmdTuples(r), NULL, 10);
    PQclear(rows);
    rows = r;
  }
  if (p->c && PQstatus(p->c) == CONNECTION_BAD)
    st = lose(p, false, "statement", err);
  if (!st && rows && PQresultStatus(rows) == PGRES_TUPLES_OK)
    st = give_rows(rows, fn, user, err);
  PQclear(rows);
  return st;
}

static enum status send(struct pg *p, const char *sql, const struct db_value *args, int n, struct error *err) {
  Oid types[DB_ARGS_MAX];
  const char *values[DB_ARGS_MAX];
  int lengths[DB_ARGS_MAX], formats[DB_ARGS_MAX];
  uint64_t ints[DB_ARGS_MAX];

  for (int i = 0; i < n; i++) {
    const struct db_value *v = &args[i];
    bool is_int = v->kind == DB_INT;
    ints[i] = htobe64((uint64_t)v->i);
    types[i] = is_int ? OID_INT8 : v->kind == DB_TEXT ? OID_TEXT : v->kind == DB_BYTES ? OID_BYTEA : 0;
    values[i] = v->kind == DB_NULL ? NULL : is_int ? (const char *)&ints[i] : v->p;
    lengths[i] = is_int ? (int)sizeof ints[i] : (int)v->n;
    formats[i] = 1;
  }
  return PQsendQueryParams(p->c, sql, n, types, values, lengths, formats, 1) ? ST_OK : lose(p, false, "send", err);
}

/* A connection that was lost while it was idle, for example because the server was restarted, shows that only when it
 * is used.  Then the statement can be sent once more without harm: it is a SELECT or begins a transaction. */
static enum status pg_run(struct db *db, const char *sql, const struct db_value *args, int n, db_row_fn fn, void *user,
                          int64_t *changed, struct error *err) {
  struct pg *p = (struct pg *)db;
  enum status st;
  if (n > DB_ARGS_MAX)
    return fail(err, ST_BUG, "%d arguments", n);
  for (bool may_repeat = p->c && PQtransactionStatus(p->c) == PQTRANS_IDLE;; may_repeat = false) {
    st = p->c ? ST_OK : connect_now(p, err);
    if (!st)
      st = send(p, sql, args, n, err);
    if (!st)
      st = collect(p, fn, user, changed, err);
    if (!may_repeat || p->c)
      return st;
  }
}

static enum status pg_script(struct db *db, const char *sql, struct error *err) {
  struct pg *p = (struct pg *)db;
  enum status st = p->c ? ST_OK : connect_now(p, err);
  if (!st && !PQsendQuery(p->c, sql))
    st = lose(p, false, "send", err);
  return st ? st : collect(p, NULL, NULL, NULL, err);
}

/* One server at a time migrates; the schema's BLOB is PostgreSQL's bytea. */
static enum status pg_prepare(struct db *db, struct error *err) {
  return pg_script(db,
                   "SELECT pg_advisory_xact_lock(1853585457);"
                   "DO $$ BEGIN CREATE DOMAIN blob AS bytea; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
                   err);
}

static void pg_close(struct db *db) {
  struct pg *p = (struct pg *)db;
  PQfinish(p->c);
  free(p->url);
  free(p);
}

/* What rows of texts take.  The size of the tables' files would not do: they do not shrink when rows are removed.  This reads
 * the table, but not the texts. */
static const char size[] = "SELECT CAST(COALESCE(SUM(octet_length(data)), 0) AS BIGINT) FROM blobs";

static const struct db_ops ops = {.run = pg_run,
                                  .script = pg_script,
                                  .prepare = pg_prepare,
                                  .begin = "BEGIN",
                                  .begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                  .size = size,
                                  .size_every_ms = SIZE_EVERY_MS,
                                  .close = pg_close};

enum status db_open_pg(const char *url, struct db **out, struct error *err) {
  struct pg *p = calloc(1, sizeof *p);
  if (!p || !(p->url = strdup(url))) {
    free(p);
    return fail(err, ST_NOMEM, "PostgreSQL");
  }
  p->db.ops = &ops;
  *out = &p->db; /* connected by the first statement */
  return ST_OK;
}
