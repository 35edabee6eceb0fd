/* runs_lease: runs are given to runners under a lease, which a runner keeps by its beats until it ends the run. */
#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "store/db.h"
#include "store/rows.h"
#include "store/runs.h"
#include "store/runs_rows.h"

static const char lost_text[] =
    "{\"status\":\"error\",\"code\":\"runner-lost\",\"message\":\"The run was given to several "
    "runners, and none of them brought it to its end.\"}";

static const char refused_text[] = "{\"status\":\"error\",\"code\":\"runner-data\",\"message\":\"What the runner sent "
                                   "is not what the run computes, and no "
                                   "other runner is connected.\",\"hint\":\"The log says what was wrong.\"}";

/* ---- taking ------------------------------------------------------------------------------------------------------ */

struct taking {
  const struct runner *runner;
  int lease_ms;
  struct run_taken *out;
  bool found;
};

static enum status note_runner(struct db *db, const struct runner *r, int64_t now, struct error *err) {
  const struct db_value args[] = {row_hash(&r->id), row_hash(&r->token), db_text(r->about), db_int(now)};
  return db_run(db,
                "INSERT INTO runners (id, token, about, seen_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET"
                " token = excluded.token, about = excluded.about, seen_ms = excluded.seen_ms",
                args, 4, NULL, NULL, NULL, err);
}

/* A runner that runs something does not ask for a run, but its lease shows that it is there. */
enum status run_fail_lost(struct db *db, int64_t now, struct error *err) {
  const struct db_value lost[] = {db_int(now), db_text(lost_text), db_int(RUN_TRIES)};
  const struct db_value refused[] = {db_int(now), db_text(refused_text), db_int(now - RUNNER_AWAY_MS)};
  const enum status st =
      db_run(db,
             "UPDATE runs SET state = 3, version = version + 1, fence = 0, ended_ms = $1, outcome = $2"
             " WHERE state = 1 AND lease_ms < $1 AND tries >= $3",
             lost, 3, NULL, NULL, NULL, err);
  return st ? st
            : db_run(db,
                     "UPDATE runs SET state = 3, version = version + 1, ended_ms = $1, outcome = $2"
                     " WHERE state = 0 AND refused IS NOT NULL AND lease_ms < $1 AND NOT EXISTS (SELECT 1 FROM "
                     "runners, runner_tokens"
                     " WHERE runners.id <> runs.refused AND runner_tokens.hash = runners.token"
                     " AND runner_tokens.revoked_ms = 0 AND (runners.seen_ms > $3 OR EXISTS (SELECT 1 FROM runs held"
                     " WHERE held.runner = runners.id AND held.state = 1 AND held.lease_ms >= $1)))",
                     refused, 3, NULL, NULL, NULL, err);
}

/* What a runner may take: $1 is the time, $2 its target, $3 what it can do, $4 its id. */
#define CANDIDATES \
  " WHERE (state = 0 OR (state = 1 AND lease_ms < $1)) AND ($2 = '' OR target = $2) AND (wants & $3) = wants" \
  " AND (refused IS NULL OR refused <> $4)"

enum status store_has_run(struct db *db, const struct runner *r, bool *out, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), db_text(r->target), db_int(r->can), row_hash(&r->id)};
  int64_t n = 0;
  const enum status st = db_run(db, "SELECT COUNT(*) FROM runs" CANDIDATES, args, 4, run_take_int, &n, NULL, err);
  *out = !st && n > 0;
  return st;
}

static enum status see_candidate(void *user, const struct db_value *row, int n, struct error *err) {
  struct taking *t = user;
  struct run_taken *o = t->out;
  (void)n;
  buf_clear(&o->about);
  if (!row_take_hash(&row[0], &o->id) || row[1].kind != DB_INT || row[2].kind != DB_INT ||
      !run_take_text(&row[4], &o->about))
    return fail(err, ST_IO, "a damaged run");
  o->wants = (int)row[1].i;
  o->tries = (int)row[2].i + 1;
  run_take_short(&row[3], o->target, sizeof o->target);
  t->found = true;
  return ST_OK;
}

/* Another server may take the run between both statements; the second then changes nothing. */
static enum status take_body(struct db *db, void *user, struct error *err) {
  struct taking *t = user;
  const struct runner *r = t->runner;
  const int64_t now = store_now_ms();
  uint64_t fence;
  int64_t changed = 0;
  t->found = false;
  if (getrandom(&fence, sizeof fence, 0) != sizeof fence)
    return fail(err, ST_IO, "no random bytes: %m");
  t->out->fence = (int64_t)(fence >> 1 | 1);
  enum status st = note_runner(db, r, now, err);
  if (!st)
    st = run_fail_lost(db, now, err);
  const struct db_value which[] = {db_int(now), db_text(r->target), db_int(r->can), row_hash(&r->id)};
  if (!st)
    st = db_run(
        db, "SELECT id_hash, wants, tries, target, about FROM runs" CANDIDATES " ORDER BY created_ms, id_hash LIMIT 1",
        which, 4, see_candidate, t, NULL, err);
  if (st || !t->found)
    return st;
  const struct db_value lease[] = {db_int(t->out->fence), db_int(now + t->lease_ms), row_hash(&r->token),
                                   row_hash(&r->id),      row_hash(&t->out->id),     db_int(now)};
  st = db_run(
      db,
      "UPDATE runs SET state = 1, version = version + 1, tries = tries + 1, fence = $1, lease_ms = $2, token = $3,"
      " runner = $4 WHERE id_hash = $5 AND (state = 0 OR (state = 1 AND lease_ms < $6))",
      lease, 6, NULL, NULL, &changed, err);
  t->found = changed == 1;
  if (st || !t->found)
    return st;
  return db_run(db, "DELETE FROM run_files WHERE run = $1 AND name LIKE '" RUN_OUT "%'", &lease[4], 1, NULL, NULL, NULL,
                err);
}

enum status store_take_run(struct db *db, const struct runner *r, int lease_ms, struct run_taken *out, bool *found,
                           struct error *err) {
  struct taking t = {.runner = r, .lease_ms = lease_ms, .out = out};
  const enum status st = row_transaction(db, take_body, &t, err);
  *found = !st && t.found;
  return st;
}

/* ---- what the holder of a lease does ------------------------------------------------------------------------------- */

struct holding {
  struct ident_hash id;
  int64_t fence;
  const char *log, *outcome;
  int lease_ms;
  enum run_state state;
  const struct run_file *file;
  enum run_hold hold;
  int64_t log_len;
};

static enum status see_hold(void *user, const struct db_value *row, int n, struct error *err) {
  struct holding *h = user;
  (void)n;
  if (row[0].kind != DB_INT || row[1].kind != DB_INT || row[2].kind != DB_INT)
    return fail(err, ST_IO, "a damaged run");
  const bool is_same = row[1].i == h->fence && h->fence;
  h->log_len = row[2].i;
  h->hold = !is_same                                         ? RUN_LOST
            : row[0].i == RUN_RUNNING                        ? RUN_HELD
            : row[0].i == RUN_DONE || row[0].i == RUN_FAILED ? RUN_SETTLED
                                                             : RUN_LOST;
  return ST_OK;
}

/* Locks the row on PostgreSQL, where another server may give the run away at the same time: an UPDATE waits for the other's
 * transaction, and then sees what that has written. */
static enum status look(struct db *db, struct holding *h, struct error *err) {
  const struct db_value args[] = {row_hash(&h->id), db_int(h->fence)};
  const struct db_value *id = &args[0];
  h->hold = RUN_LOST;
  enum status st =
      db_run(db, "UPDATE runs SET fence = fence WHERE id_hash = $1 AND fence = $2", args, 2, NULL, NULL, NULL, err);
  return st ? st
            : db_run(db, "SELECT state, fence, CAST(length(log) AS BIGINT) FROM runs WHERE id_hash = $1", id, 1,
                     see_hold, h, NULL, err);
}

/* What of the text still has room in the log, or the note that it has none. */
static const char *fitting(const struct holding *h) {
  if (h->log_len >= RUN_LOG_MAX)
    return "";
  return h->log_len + (int64_t)strlen(h->log) <= RUN_LOG_MAX
             ? h->log
             : "… lines are left out here: no more of the log is kept\n";
}

static enum status beat_body(struct db *db, void *user, struct error *err) {
  struct holding *h = user;
  enum status st = look(db, h, err);
  if (st || h->hold != RUN_HELD)
    return st;
  const char *log = fitting(h);
  const struct db_value args[] = {db_text(log), db_int(store_now_ms() + h->lease_ms), db_int(*log ? 1 : 0),
                                  row_hash(&h->id)};
  return db_run(db, "UPDATE runs SET log = log || $1, lease_ms = $2, version = version + $3 WHERE id_hash = $4", args,
                4, NULL, NULL, NULL, err);
}

static enum status hold_transaction(struct db *db, enum status (*body)(struct db *, void *, struct error *),
                                    struct holding *h, enum run_hold *out, struct error *err) {
  const enum status st = row_transaction(db, body, h, err);
  *out = st ? RUN_LOST : h->hold;
  return st;
}

enum status store_beat_run(struct db *db, const struct ident_hash *id, int64_t fence, const char *log, int lease_ms,
                           enum run_hold *out, struct error *err) {
  struct holding h = {.id = *id, .fence = fence, .log = log, .lease_ms = lease_ms};
  return hold_transaction(db, beat_body, &h, out, err);
}

static enum status file_body(struct db *db, void *user, struct error *err) {
  struct holding *h = user;
  const enum status st = look(db, h, err);
  return st || h->hold != RUN_HELD ? st : run_put_file_row(db, &h->id, h->file, err);
}

enum status store_put_run_file(struct db *db, const struct ident_hash *id, int64_t fence, const struct run_file *f,
                               enum run_hold *out, struct error *err) {
  struct holding h = {.id = *id, .fence = fence, .file = f};
  return hold_transaction(db, file_body, &h, out, err);
}

static enum status end_body(struct db *db, void *user, struct error *err) {
  struct holding *h = user;
  const enum status st = look(db, h, err);
  if (st || h->hold != RUN_HELD)
    return st;
  const struct db_value args[] = {db_int(h->state), db_int(store_now_ms()), db_text(h->outcome), row_hash(&h->id)};
  return db_run(db, "UPDATE runs SET state = $1, version = version + 1, ended_ms = $2, outcome = $3 WHERE id_hash = $4",
                args, 4, NULL, NULL, NULL, err);
}

enum status store_end_run(struct db *db, const struct ident_hash *id, int64_t fence, enum run_state state,
                          const char *outcome, enum run_hold *out, struct error *err) {
  assert(state == RUN_DONE || state == RUN_FAILED);
  struct holding h = {.id = *id, .fence = fence, .state = state, .outcome = outcome};
  return hold_transaction(db, end_body, &h, out, err);
}

/* The end of the lease is that of the runner's turn: the run waits again, and lease_ms is until when at least. */
static enum status refuse_body(struct db *db, void *user, struct error *err) {
  struct holding *h = user;
  const enum status st = look(db, h, err);
  if (st || h->hold != RUN_HELD)
    return st;
  const struct db_value args[] = {db_int(store_now_ms() + h->lease_ms), db_text(fitting(h)), row_hash(&h->id)};
  return db_run(db,
                "UPDATE runs SET state = CASE WHEN tries >= 3 THEN 1 ELSE 0 END, version = version + 1, fence = 0,"
                " lease_ms = CASE WHEN tries >= 3 THEN 0 ELSE CAST($1 AS BIGINT) END, refused = runner, log = log || $2"
                " WHERE id_hash = $3",
                args, 3, NULL, NULL, NULL, err);
}

enum status store_refuse_run(struct db *db, const struct ident_hash *id, int64_t fence, const char *why, int lease_ms,
                             enum run_hold *out, struct error *err) {
  struct holding h = {.id = *id, .fence = fence, .log = why, .lease_ms = lease_ms};
  return hold_transaction(db, refuse_body, &h, out, err);
}

static enum status look_body(struct db *db, void *user, struct error *err) {
  return look(db, user, err);
}

enum status store_look_hold(struct db *db, const struct ident_hash *id, int64_t fence, enum run_hold *out,
                            struct error *err) {
  struct holding h = {.id = *id, .fence = fence};
  return hold_transaction(db, look_body, &h, out, err);
}
