/* runs: the queue of runs as rows; the same SQL for both databases.  Leases are in runs_lease.c, tokens and runners in runners.c. */
#include "store/runs.h"

#include <assert.h>
#include <stdio.h>

#include <openssl/sha.h>

#include "store/db.h"
#include "store/rows.h"
#include "store/runs_rows.h"

enum { DROP_STEP = 64 };

const char *run_state_name(enum run_state s) {
  static const char *const names[] = {"waiting", "running", "done", "failed", "cancelled"};
  assert((unsigned)s < RUN_STATES);
  return names[s];
}

bool run_take_text(const struct db_value *v, struct buf *out) {
  return v->kind == DB_TEXT && !buf_append(out, v->p, v->n);
}

void run_take_short(const struct db_value *v, char *out, size_t size) {
  snprintf(out, size, "%.*s", v->kind == DB_TEXT ? (int)v->n : 0, v->kind == DB_TEXT ? (const char *)v->p : "");
}

enum status run_take_int(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  if (row[0].kind != DB_INT)
    return fail(err, ST_IO, "a damaged run");
  *(int64_t *)user = row[0].i;
  return ST_OK;
}

/* ---- queueing ---------------------------------------------------------------------------------------------------- */

struct putting {
  const struct store_run *run;
  int most, most_own;
  enum run_put verdict;
};

enum status run_put_file_row(struct db *db, const struct ident_hash *id, const struct run_file *f, struct error *err) {
  struct ident_hash hash;
  if (f->len > RUN_FILE_MAX)
    return fail(err, ST_LIMIT, "%s has %zu bytes; a run takes at most %d", f->name, f->len, RUN_FILE_MAX);
  SHA256(f->data, f->len, hash.bytes);
  const struct db_value args[] = {row_hash(id), db_text(f->name), row_hash(&hash),
                                  db_bytes(f->len ? f->data : "", f->len)};
  return db_run(db,
                "INSERT INTO run_files (run, name, hash, data) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT (run, name) DO UPDATE SET hash = excluded.hash, data = excluded.data",
                args, 4, NULL, NULL, NULL, err);
}

static enum status put_row(struct db *db, const struct store_run *r, struct error *err) {
  const struct db_value args[] = {row_hash(&r->id),   row_hash(&r->owner), db_int(store_now_ms()),
                                  db_text(r->target), db_int(r->wants),    db_text(r->about)};
  return db_run(db,
                "INSERT INTO runs (id_hash, owner, created_ms, target, wants, about, state, version, tries, fence,"
                " lease_ms, token, runner, refused, ended_ms, log, outcome)"
                " VALUES ($1, $2, $3, $4, $5, $6, 0, 1, 0, 0, 0, NULL, NULL, NULL, 0, '', '')",
                args, 6, NULL, NULL, NULL, err);
}

/* Two servers may count at the same time, so that a queue gets longer than it may by as many as there are servers. */
static enum status put_body(struct db *db, void *user, struct error *err) {
  struct putting *p = user;
  const struct db_value owner = row_hash(&p->run->owner);
  int64_t all = 0, own = 0;
  enum status st = db_run(db, "SELECT COUNT(*) FROM runs WHERE state < 2", NULL, 0, run_take_int, &all, NULL, err);
  if (!st)
    st = db_run(db, "SELECT COUNT(*) FROM runs WHERE owner = $1 AND state < 2", &owner, 1, run_take_int, &own, NULL,
                err);
  p->verdict = all >= p->most ? RUN_QUEUE_FULL : p->most_own && own >= p->most_own ? RUN_OWNER_FULL : RUN_PUT;
  if (st || p->verdict != RUN_PUT)
    return st;
  st = put_row(db, p->run, err);
  for (int i = 0; i < p->run->n_files && !st; i++)
    st = run_put_file_row(db, &p->run->id, &p->run->files[i], err);
  return st;
}

enum status store_put_run(struct db *db, const struct store_run *r, int most, int most_own, enum run_put *out,
                          struct error *err) {
  struct putting p = {.run = r, .most = most, .most_own = most_own};
  const enum status st = db_transaction(db, put_body, &p, err);
  *out = p.verdict;
  return st;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

void run_view_init(struct run_view *v) {
  *v = (struct run_view){.state = RUN_WAITING};
  buf_init(&v->about, RUN_ABOUT_MAX);
  buf_init(&v->log, 2 * RUN_LOG_MAX);
  buf_init(&v->outcome, 2 * RUN_ABOUT_MAX);
  buf_init(&v->runner, RUN_ABOUT_MAX);
}

void run_view_clear(struct run_view *v) {
  buf_clear(&v->about);
  buf_clear(&v->log);
  buf_clear(&v->outcome);
  buf_clear(&v->runner);
}

struct seeing {
  struct run_view *view;
  int64_t lease_ms;
  bool found;
};

static enum status see_times(void *user, const struct db_value *row, int n, struct error *err) {
  struct seeing *s = user;
  struct run_view *v = s->view;
  for (int i = 0; i < 8; i++)
    if (row[i].kind != DB_INT)
      return fail(err, ST_IO, "a damaged run");
  (void)n;
  if (row[0].i < 0 || row[0].i >= RUN_STATES)
    return fail(err, ST_IO, "a damaged run");
  v->state = (enum run_state)row[0].i;
  v->version = row[1].i;
  v->created_ms = row[2].i;
  v->ended_ms = row[3].i;
  v->tries = (int)row[4].i;
  v->wants = (int)row[5].i;
  s->lease_ms = row[6].i;
  run_take_short(&row[8], v->target, sizeof v->target);
  s->found = true;
  return ST_OK;
}

static enum status see_texts(void *user, const struct db_value *row, int n, struct error *err) {
  struct run_view *v = user;
  (void)n;
  bool ok = run_take_text(&row[0], &v->about) && run_take_text(&row[1], &v->log) && run_take_text(&row[2], &v->outcome);
  return ok ? ST_OK : fail(err, ST_IO, "a damaged run");
}

static enum status see_runner(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  return run_take_text(&row[0], user) ? ST_OK : fail(err, ST_IO, "a damaged runner");
}

static enum status find_position(struct db *db, const struct ident_hash *id, struct run_view *v, int64_t now,
                                 struct error *err) {
  const struct db_value args[] = {db_int(now), db_int(v->created_ms), row_hash(id)};
  int64_t before = 0;
  const enum status st = db_run(db,
                                "SELECT COUNT(*) FROM runs WHERE (state = 0 OR (state = 1 AND lease_ms < $1))"
                                " AND (created_ms < $2 OR (created_ms = $2 AND id_hash < $3))",
                                args, 3, run_take_int, &before, NULL, err);
  v->position = 1 + (int)before;
  return st;
}

enum status store_get_run(struct db *db, const struct ident_hash *id, struct run_view *out, bool *found,
                          struct error *err) {
  const struct db_value arg = row_hash(id);
  const int64_t now = store_now_ms();
  struct seeing s = {.view = out};
  *found = false;
  enum status st = db_run(db,
                          "SELECT state, version, created_ms, ended_ms, tries, wants, lease_ms, lease_ms, target"
                          " FROM runs WHERE id_hash = $1",
                          &arg, 1, see_times, &s, NULL, err);
  if (st || !s.found)
    return st;
  st = db_run(db, "SELECT about, log, outcome FROM runs WHERE id_hash = $1", &arg, 1, see_texts, out, NULL, err);
  if (!st && out->state == RUN_RUNNING && s.lease_ms < now)
    out->state = RUN_WAITING;
  if (!st && out->state == RUN_WAITING)
    st = find_position(db, id, out, now, err);
  else if (!st)
    st = db_run(db, "SELECT runners.about FROM runners, runs WHERE runs.id_hash = $1 AND runners.id = runs.runner",
                &arg, 1, see_runner, &out->runner, NULL, err);
  *found = !st;
  return st;
}

struct reading {
  struct buf *out;
  bool found;
};

static enum status read_file(void *user, const struct db_value *row, int n, struct error *err) {
  struct reading *r = user;
  struct ident_hash hash, now;
  (void)n;
  if (!row_take_hash(&row[0], &hash) || row[1].kind != DB_BYTES)
    return fail(err, ST_IO, "a damaged file of a run");
  SHA256(row[1].p, row[1].n, now.bytes);
  if (!ident_hash_equal(&hash, &now))
    return fail(err, ST_IO, "a damaged file of a run");
  r->found = true;
  return buf_append(r->out, row[1].p, row[1].n) ? fail(err, ST_NOMEM, "a file of a run") : ST_OK;
}

enum status store_get_run_file(struct db *db, const struct ident_hash *id, const char *name, struct buf *out,
                               bool *found, struct error *err) {
  const struct db_value args[] = {row_hash(id), db_text(name)};
  struct reading r = {.out = out};
  const enum status st =
      db_run(db, "SELECT hash, data FROM run_files WHERE run = $1 AND name = $2", args, 2, read_file, &r, NULL, err);
  *found = !st && r.found;
  return st;
}

struct listing {
  void (*fn)(void *user, const char *name, int64_t size);
  void *user;
};

static enum status list_file(void *user, const struct db_value *row, int n, struct error *err) {
  const struct listing *l = user;
  char name[64];
  (void)n;
  if (row[1].kind != DB_INT)
    return fail(err, ST_IO, "a damaged file of a run");
  run_take_short(&row[0], name, sizeof name);
  l->fn(l->user, name, row[1].i);
  return ST_OK;
}

enum status store_each_run_file(struct db *db, const struct ident_hash *id,
                                void (*fn)(void *user, const char *name, int64_t size), void *user, struct error *err) {
  const struct db_value arg = row_hash(id);
  struct listing l = {fn, user};
  return db_run(db, "SELECT name, CAST(length(data) AS BIGINT) FROM run_files WHERE run = $1 ORDER BY name", &arg, 1,
                list_file, &l, NULL, err);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

enum status store_cancel_run(struct db *db, const struct ident_hash *id, bool *found, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), row_hash(id)};
  int64_t n = 0, there = 0;
  enum status st = db_run(db,
                          "UPDATE runs SET state = 4, version = version + 1, fence = 0, ended_ms = $1"
                          " WHERE id_hash = $2 AND state < 2",
                          args, 2, NULL, NULL, &n, err);
  if (!st)
    st = db_run(db, "SELECT COUNT(*) FROM runs WHERE id_hash = $1", &args[1], 1, run_take_int, &there, NULL, err);
  *found = !st && there > 0;
  return st;
}

enum status store_count_runs(struct db *db, int *waiting, int *running, struct error *err) {
  const struct db_value now = db_int(store_now_ms());
  int64_t w = 0, r = 0;
  enum status st = db_run(db, "SELECT COUNT(*) FROM runs WHERE state = 0 OR (state = 1 AND lease_ms < $1)", &now, 1,
                          run_take_int, &w, NULL, err);
  if (!st)
    st = db_run(db, "SELECT COUNT(*) FROM runs WHERE state = 1 AND lease_ms >= $1", &now, 1, run_take_int, &r, NULL,
                err);
  *waiting = (int)w;
  *running = (int)r;
  return st;
}

struct sizing {
  int64_t left; /* bytes that the next runs may have */
  struct ident_hash drop[DROP_STEP];
  int n;
};

/* Runs come from the newest to the oldest. */
static enum status size_run(void *user, const struct db_value *row, int n, struct error *err) {
  struct sizing *s = user;
  (void)n;
  if (row[1].kind != DB_INT)
    return fail(err, ST_IO, "a damaged run");
  s->left -= row[1].i;
  if (s->left < 0 && s->n < DROP_STEP)
    s->n += row_take_hash(&row[0], &s->drop[s->n]);
  return ST_OK;
}

/* What is more than a step is for the next time. */
static enum status trim_runs(struct db *db, int64_t most_bytes, struct error *err) {
  struct sizing s = {.left = most_bytes};
  enum status st = db_run(db,
                          "SELECT runs.id_hash, CAST(COALESCE(SUM(length(run_files.data)), 0) AS BIGINT) FROM runs,"
                          " run_files WHERE run_files.run = runs.id_hash AND runs.state >= 2"
                          " GROUP BY runs.id_hash, runs.ended_ms ORDER BY runs.ended_ms DESC, runs.id_hash",
                          NULL, 0, size_run, &s, NULL, err);
  for (int i = 0; i < s.n && !st; i++) {
    const struct db_value id = row_hash(&s.drop[i]);
    st = db_run(db, "DELETE FROM runs WHERE id_hash = $1", &id, 1, NULL, NULL, NULL, err);
  }
  return st;
}

enum status store_purge_runs(struct db *db, int64_t most_bytes, struct error *err) {
  const int64_t now = store_now_ms();
  const struct db_value kept = db_int(now - RUN_KEEP_MS), seen = db_int(now - RUNNER_FORGET_MS);
  enum status st = run_fail_lost(db, now, err);
  if (!st)
    st = db_run(db, "DELETE FROM runs WHERE (ended_ms > 0 AND ended_ms < $1) OR (state = 0 AND created_ms < $1)", &kept,
                1, NULL, NULL, NULL, err);
  if (!st)
    st = trim_runs(db, most_bytes, err);
  return st ? st : db_run(db, "DELETE FROM runners WHERE seen_ms < $1", &seen, 1, NULL, NULL, NULL, err);
}
