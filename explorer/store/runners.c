/* runners: who asks for runs, and the tokens by which they may. */
#include <stdio.h>
#include <string.h>

#include "store/db.h"
#include "store/rows.h"
#include "store/runs.h"

/* ---- runners ------------------------------------------------------------------------------------------------------- */

struct listing {
  void (*on_runner)(void *user, const struct runner_seen *r);
  void (*on_token)(void *user, const struct token_seen *t);
  void *user;
  int64_t now;
};

static const char *text_of(const struct db_value *v, char *out, size_t size) {
  snprintf(out, size, "%.*s", v->kind == DB_TEXT ? (int)v->n : 0, v->kind == DB_TEXT ? (const char *)v->p : "");
  return out;
}

static enum status see_runner(void *user, const struct db_value *row, int n, struct error *err) {
  const struct listing *l = user;
  struct buf about;
  char name[TOKEN_NAME_MAX + 1];
  (void)n;
  if (row[0].kind != DB_TEXT || row[1].kind != DB_INT || row[3].kind != DB_INT)
    return fail(err, ST_IO, "a damaged runner");
  buf_init(&about, RUN_ABOUT_MAX);
  buf_append(&about, row[0].p, row[0].n);
  const struct runner_seen r = {.about = buf_text(&about),
                                .token_name = text_of(&row[2], name, sizeof name),
                                .seen_ms = row[1].i,
                                .is_connected = row[1].i > l->now - RUNNER_AWAY_MS || row[3].i > 0,
                                .is_busy = row[3].i > 0};
  l->on_runner(l->user, &r);
  const enum status st = buf_status(&about);
  buf_clear(&about);
  return st ? fail(err, st, "a runner") : ST_OK;
}

/* A runner whose token was revoked is none any more.  One that runs something does not ask, but its lease shows that it is
 * there. */
enum status store_each_runner(struct db *db, void (*fn)(void *user, const struct runner_seen *r), void *user,
                              struct error *err) {
  struct listing l = {.on_runner = fn, .user = user, .now = store_now_ms()};
  const struct db_value now = db_int(l.now);
  return db_run(db,
                "SELECT runners.about, runners.seen_ms, runner_tokens.name, (SELECT COUNT(*) FROM runs"
                " WHERE runs.runner = runners.id AND runs.state = 1 AND runs.lease_ms >= $1)"
                " FROM runners, runner_tokens WHERE runner_tokens.hash = runners.token AND runner_tokens.revoked_ms = 0"
                " ORDER BY runners.id",
                &now, 1, see_runner, &l, NULL, err);
}

/* Its row stays for the runs that it has had. */
enum status store_forget_runner(struct db *db, const struct runner *r, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms() - RUNNER_AWAY_MS - 1), row_hash(&r->id), row_hash(&r->token)};
  return db_run(db, "UPDATE runners SET seen_ms = $1 WHERE id = $2 AND token = $3", args, 3, NULL, NULL, NULL, err);
}

/* ---- tokens -------------------------------------------------------------------------------------------------------- */

enum status store_put_token(struct db *db, const char *name, const struct ident_hash *hash, struct error *err) {
  const struct db_value args[] = {row_hash(hash), db_text(name), db_int(store_now_ms())};
  return db_run(db, "INSERT INTO runner_tokens (hash, name, created_ms, revoked_ms) VALUES ($1, $2, $3, 0)", args, 3,
                NULL, NULL, NULL, err);
}

struct revoking {
  const char *name;
  bool found;
};

static enum status revoke_body(struct db *db, void *user, struct error *err) {
  struct revoking *r = user;
  const struct db_value args[] = {db_int(store_now_ms()), db_text(r->name)};
  int64_t n = 0;
  enum status st = db_run(db, "UPDATE runner_tokens SET revoked_ms = $1 WHERE name = $2 AND revoked_ms = 0", args, 2,
                          NULL, NULL, &n, err);
  r->found = n > 0;
  if (st)
    return st;
  return db_run(db,
                "UPDATE runs SET state = 0, version = version + 1, fence = 0, lease_ms = 0 WHERE state = 1"
                " AND token IN (SELECT hash FROM runner_tokens WHERE name = $1)",
                &args[1], 1, NULL, NULL, NULL, err);
}

enum status store_revoke_token(struct db *db, const char *name, bool *found, struct error *err) {
  struct revoking r = {.name = name};
  const enum status st = row_transaction(db, revoke_body, &r, err);
  *found = !st && r.found;
  return st;
}

static enum status note_there(void *user, const struct db_value *row, int n, struct error *err) {
  (void)row;
  (void)n;
  (void)err;
  *(bool *)user = true;
  return ST_OK;
}

enum status store_check_token(struct db *db, const struct ident_hash *hash, bool *is_valid, struct error *err) {
  const struct db_value arg = row_hash(hash);
  *is_valid = false;
  return db_run(db, "SELECT hash FROM runner_tokens WHERE hash = $1 AND revoked_ms = 0", &arg, 1, note_there, is_valid,
                NULL, err);
}

static enum status see_token(void *user, const struct db_value *row, int n, struct error *err) {
  const struct listing *l = user;
  char name[TOKEN_NAME_MAX + 1];
  (void)n;
  if (row[1].kind != DB_INT || row[2].kind != DB_INT)
    return fail(err, ST_IO, "a damaged token");
  const struct token_seen t = {text_of(&row[0], name, sizeof name), row[1].i, row[2].i};
  l->on_token(l->user, &t);
  return ST_OK;
}

enum status store_each_token(struct db *db, void (*fn)(void *user, const struct token_seen *t), void *user,
                             struct error *err) {
  struct listing l = {.on_token = fn, .user = user};
  return db_run(db, "SELECT name, created_ms, revoked_ms FROM runner_tokens ORDER BY created_ms, name", NULL, 0,
                see_token, &l, NULL, err);
}
