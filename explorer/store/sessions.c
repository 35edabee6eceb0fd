/* sessions: snapshots, updates and people as rows; the same SQL for both databases. */
#include "store/sessions.h"

#include <stdio.h>
#include <string.h>

#include "store/bulletin.h"
#include "store/db.h"
#include "store/rows.h"

/* ---- what a write finds ---------------------------------------------------------------------------------------------- */

struct found {
  bool is_there;
  int64_t ended_ms, seq, log_bytes, leader, offered, read_only, snapshot_seq, people;
};

static enum status take_found(void *user, const struct db_value *row, int n, struct error *err) {
  struct found *f = user;
  for (int i = 0; i < n; i++)
    if (row[i].kind != DB_INT)
      return fail(err, ST_IO, "a damaged session");
  *f = (struct found){.is_there = true,
                      .ended_ms = row[0].i,
                      .seq = row[1].i,
                      .log_bytes = row[2].i,
                      .leader = row[3].i,
                      .offered = row[4].i,
                      .read_only = row[5].i,
                      .snapshot_seq = row[6].i,
                      .people = row[7].i};
  return ST_OK;
}

/* The first statement locks the row, so that another server's write to the same session comes before or after this one. */
static enum status find(struct db *db, const struct ident_hash *id, struct found *f, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), row_hash(id)};
  *f = (struct found){0};
  enum status st = db_run(db, "UPDATE sessions SET touched_ms = $1 WHERE id_hash = $2 AND ended_ms = 0", args, 2, NULL,
                          NULL, NULL, err);
  if (st)
    return st;
  return db_run(db,
                "SELECT ended_ms, seq, log_bytes, leader, offered, read_only, snapshot_seq,"
                " (SELECT COUNT(*) FROM session_people WHERE session = id_hash) FROM sessions WHERE id_hash = $1",
                &args[1], 1, take_found, f, NULL, err);
}

/* ---- the acts -------------------------------------------------------------------------------------------------------- */

static enum status add_updates(struct db *db, struct session_write *w, const struct found *f, struct error *err) {
  int64_t bytes = 0;
  for (int i = 0; i < w->n_pieces; i++)
    bytes += (int64_t)w->pieces[i].len;
  if (f->read_only && w->person != f->leader)
    w->verdict = SESSION_IS_READ_ONLY;
  else if (f->log_bytes + bytes > SESSION_LOG_MAX)
    w->verdict = SESSION_LOG_FULL;
  if (w->verdict)
    return ST_OK;
  w->seq = f->seq + 1;
  enum status st = ST_OK;
  for (int i = 0; i < w->n_pieces && !st; i++) {
    const struct db_value args[] = {row_hash(&w->session), db_int(w->seq + i), db_int(w->person),
                                    db_bytes(w->pieces[i].data, w->pieces[i].len)};
    st = db_run(db, "INSERT INTO session_updates (session, seq, person, data) VALUES ($1, $2, $3, $4)", args, 4, NULL,
                NULL, NULL, err);
  }
  const struct db_value args[] = {db_int(f->seq + w->n_pieces), db_int(f->log_bytes + bytes), row_hash(&w->session)};
  return st ? st
            : db_run(db, "UPDATE sessions SET seq = $1, log_bytes = $2 WHERE id_hash = $3", args, 3, NULL, NULL, NULL,
                     err);
}

static enum status put_person(struct db *db, const struct ident_hash *session, int person,
                              const struct ident_hash *token, const char *name, struct error *err) {
  const struct db_value args[] = {row_hash(session), db_int(person), row_hash(token), db_text(name)};
  return db_run(db, "INSERT INTO session_people (session, person, token, name) VALUES ($1, $2, $3, $4)", args, 4, NULL,
                NULL, NULL, err);
}

static enum status join(struct db *db, struct session_write *w, const struct found *f, struct error *err) {
  if (f->people >= SESSION_PEOPLE_MAX)
    w->verdict = SESSION_CROWDED;
  w->person = (int)f->people + 1;
  return w->verdict ? ST_OK : put_person(db, &w->session, w->person, &w->token, w->text, err);
}

static enum status set(struct db *db, const struct session_write *w, int64_t leader, int64_t offered, int64_t read_only,
                       struct error *err) {
  const struct db_value args[] = {db_int(leader), db_int(offered), db_int(read_only), row_hash(&w->session)};
  return db_run(db, "UPDATE sessions SET leader = $1, offered = $2, read_only = $3 WHERE id_hash = $4", args, 4, NULL,
                NULL, NULL, err);
}

static enum status lead(struct db *db, struct session_write *w, const struct found *f, struct error *err) {
  const bool is_offered = f->offered && f->offered == w->person;
  switch (w->act) {
  case SESSION_OFFER:
    if (w->number < 0 || w->number > f->people || w->number == w->person)
      w->verdict = SESSION_NO_PERSON;
    return w->verdict ? ST_OK : set(db, w, f->leader, w->number, f->read_only, err);
  case SESSION_ACCEPT:
  case SESSION_DECLINE:
    if (!is_offered)
      w->verdict = SESSION_NOT_OFFERED;
    return w->verdict ? ST_OK : set(db, w, w->act == SESSION_ACCEPT ? w->person : f->leader, 0, f->read_only, err);
  case SESSION_CLAIM:
    if (f->leader != w->number)
      w->verdict = SESSION_NOT_OFFERED;
    return w->verdict ? ST_OK : set(db, w, w->person, 0, f->read_only, err);
  default:
    return set(db, w, f->leader, f->offered, w->number != 0, err);
  }
}

static enum status take_int(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  if (row[0].kind != DB_INT)
    return fail(err, ST_IO, "a damaged session");
  *(int64_t *)user = row[0].i;
  return ST_OK;
}

static enum status put_snapshot(struct db *db, struct session_write *w, const struct found *f, struct error *err) {
  if (f->read_only && w->person != f->leader)
    w->verdict = SESSION_NOT_LEADER;
  else if (w->number < f->snapshot_seq || w->number > f->seq)
    w->verdict = SESSION_OLD;
  if (w->verdict)
    return ST_OK;
  const struct db_value del[] = {row_hash(&w->session), db_int(w->number)};
  int64_t left = 0;
  enum status st =
      db_run(db, "DELETE FROM session_updates WHERE session = $1 AND seq <= $2", del, 2, NULL, NULL, NULL, err);
  if (!st)
    st = db_run(db, "SELECT CAST(COALESCE(SUM(length(data)), 0) AS BIGINT) FROM session_updates WHERE session = $1",
                del, 1, take_int, &left, NULL, err);
  const struct db_value args[] = {db_bytes(w->pieces[0].data, w->pieces[0].len), db_int(w->number), db_text(w->text),
                                  db_int(left), row_hash(&w->session)};
  return st ? st
            : db_run(db,
                     "UPDATE sessions SET snapshot = $1, snapshot_seq = $2, request = $3, log_bytes = $4"
                     " WHERE id_hash = $5",
                     args, 5, NULL, NULL, NULL, err);
}

/* Of the link that it becomes; NULL if it becomes none. */
static struct db_value link_hash(const struct session_write *w, struct ident_hash *hash) {
  ident_hash(w->text, strlen(w->text), hash);
  return *w->text ? row_hash(hash) : db_text(NULL);
}

static enum status end(struct db *db, const struct session_write *w, struct error *err) {
  struct ident_hash hash;
  const struct db_value args[] = {db_int(store_now_ms()), db_text(w->text), link_hash(w, &hash), row_hash(&w->session)};
  return db_run(db, "UPDATE sessions SET ended_ms = $1, snippet = $2, link_hash = $3, offered = 0 WHERE id_hash = $4",
                args, 4, NULL, NULL, NULL, err);
}

/* Its condition is that nobody has touched the session, so it must not do so, either. */
static enum status seal(struct db *db, struct session_write *w, struct error *err) {
  struct ident_hash hash;
  const struct db_value args[] = {db_int(store_now_ms()), db_text(w->text), link_hash(w, &hash), row_hash(&w->session),
                                  db_int(w->number)};
  int64_t changed = 0;
  bool is_new = true;
  enum status st = db_run(db,
                          "UPDATE sessions SET ended_ms = $1, snippet = $2, link_hash = $3, offered = 0"
                          " WHERE id_hash = $4 AND ended_ms = 0 AND touched_ms < $5",
                          args, 5, NULL, NULL, &changed, err);
  w->verdict = changed ? SESSION_DONE : SESSION_OLD;
  if (!st && changed && w->link)
    st = row_put_whole(db, w->link, &is_new, err);
  return st || is_new ? st : fail(err, ST_IO, "the id of a new link is taken");
}

static bool is_leaders(enum session_act act) {
  return act == SESSION_OFFER || act == SESSION_READ_ONLY || act == SESSION_END;
}

static enum status make_one(struct db *db, struct session_write *w, struct error *err) {
  struct found f;
  w->verdict = SESSION_DONE;
  if (w->act == SESSION_SEAL)
    return seal(db, w, err);
  enum status st = find(db, &w->session, &f, err);
  if (st)
    return st;
  if (!f.is_there)
    w->verdict = SESSION_UNKNOWN;
  else if (f.ended_ms)
    w->verdict = SESSION_HAS_ENDED;
  else if (is_leaders(w->act) && f.leader != w->person)
    w->verdict = SESSION_NOT_LEADER;
  if (w->verdict || w->act == SESSION_TOUCH)
    return ST_OK;
  switch (w->act) {
  case SESSION_UPDATE:
    return add_updates(db, w, &f, err);
  case SESSION_JOIN:
    return join(db, w, &f, err);
  case SESSION_SNAPSHOT:
    return put_snapshot(db, w, &f, err);
  case SESSION_END:
    return end(db, w, err);
  default:
    return lead(db, w, &f, err);
  }
}

static enum status write_one(struct db *db, struct session_write *w, struct error *err) {
  const enum status st = make_one(db, w, err);
  return !st && !w->verdict && w->told ? bulletin_post(db, w->told, err) : st;
}

static enum status write_body(struct db *db, void *user, struct error *err) {
  enum status st = ST_OK;
  for (struct session_write *w = user; w && !st; w = w->next)
    st = write_one(db, w, err);
  return st;
}

enum status store_write_sessions(struct db *db, struct session_write *list, struct error *err) {
  return row_transaction(db, write_body, list, err);
}

/* ---- a new one ------------------------------------------------------------------------------------------------------- */

static enum status put_body(struct db *db, void *user, struct error *err) {
  const struct session_new *s = user;
  const struct db_value args[] = {row_hash(&s->id), db_int(store_now_ms()), db_bytes(s->snapshot, s->snapshot_len),
                                  db_text(s->request)};
  enum status st =
      db_run(db,
             "INSERT INTO sessions (id_hash, created_ms, touched_ms, ended_ms, seq, log_bytes, leader, offered,"
             " read_only, snapshot_seq, snapshot, request, snippet)"
             " VALUES ($1, $2, $2, 0, 0, 0, 1, 0, 0, 0, $3, $4, '')",
             args, 4, NULL, NULL, NULL, err);
  return st ? st : put_person(db, &s->id, 1, &s->token, s->name, err);
}

enum status store_put_session(struct db *db, const struct session_new *s, struct error *err) {
  return db_transaction(db, put_body, (void *)s, err);
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

struct reading {
  const struct session_reader *r;
  const struct ident_hash *id;
  int64_t snapshot, after, snapshot_seq;
  bool found;
};

static enum status see_row(void *user, const struct db_value *row, int n, struct error *err) {
  struct reading *g = user;
  struct buf request, snippet;
  (void)n;
  for (int i = 0; i < 8; i++)
    if (row[i].kind != DB_INT)
      return fail(err, ST_IO, "a damaged session");
  if (row[8].kind != DB_TEXT || row[9].kind != DB_TEXT)
    return fail(err, ST_IO, "a damaged session");
  buf_init(&request, 2 * SESSION_REQUEST_MAX);
  buf_init(&snippet, 64);
  buf_append(&request, row[8].p, row[8].n);
  buf_append(&snippet, row[9].p, row[9].n);
  const struct session_row s = {.created_ms = row[0].i,
                                .touched_ms = row[1].i,
                                .ended_ms = row[2].i,
                                .seq = row[3].i,
                                .leader = (int)row[4].i,
                                .offered = (int)row[5].i,
                                .is_read_only = row[6].i != 0,
                                .snapshot_seq = row[7].i,
                                .request = buf_text(&request),
                                .snippet = buf_text(&snippet)};
  g->found = true;
  g->snapshot_seq = s.snapshot_seq;
  const bool ok = !buf_status(&request) && !buf_status(&snippet);
  if (ok)
    g->r->on_row(g->r->user, &s);
  buf_clear(&request);
  buf_clear(&snippet);
  return ok ? ST_OK : fail(err, ST_IO, "a damaged session");
}

static enum status see_person(void *user, const struct db_value *row, int n, struct error *err) {
  const struct reading *g = user;
  char name[SESSION_NAME_MAX + 1];
  struct ident_hash token;
  (void)n;
  if (row[0].kind != DB_INT || !row_take_hash(&row[1], &token) || row[2].kind != DB_TEXT || row[2].n >= sizeof name)
    return fail(err, ST_IO, "a damaged person of a session");
  memcpy(name, row[2].p, row[2].n);
  name[row[2].n] = 0;
  g->r->on_person(g->r->user, (int)row[0].i, &token, name);
  return ST_OK;
}

static enum status see_snapshot(void *user, const struct db_value *row, int n, struct error *err) {
  const struct reading *g = user;
  (void)n;
  (void)err;
  g->r->on_snapshot(g->r->user, g->snapshot_seq, row[0].p, row[0].n);
  return ST_OK;
}

static enum status see_update(void *user, const struct db_value *row, int n, struct error *err) {
  const struct reading *g = user;
  (void)n;
  if (row[0].kind != DB_INT || row[1].kind != DB_INT)
    return fail(err, ST_IO, "a damaged update of a session");
  g->r->on_update(g->r->user, row[0].i, (int)row[1].i, row[2].p, row[2].n);
  return ST_OK;
}

static enum status read_body(struct reading *g, struct db *db, struct error *err) {
  const struct db_value id = row_hash(g->id);
  enum status st =
      db_run(db,
             "SELECT created_ms, touched_ms, ended_ms, seq, leader, offered, read_only, snapshot_seq, request,"
             " snippet FROM sessions WHERE id_hash = $1",
             &id, 1, see_row, g, NULL, err);
  if (st || !g->found)
    return st;
  st = db_run(db, "SELECT person, token, name FROM session_people WHERE session = $1 ORDER BY person", &id, 1,
              see_person, g, NULL, err);
  if (!st && g->snapshot_seq > g->snapshot)
    st = db_run(db, "SELECT snapshot FROM sessions WHERE id_hash = $1", &id, 1, see_snapshot, g, NULL, err);
  const int64_t after = g->snapshot_seq > g->after ? g->snapshot_seq : g->after;
  const struct db_value args[] = {id, db_int(after)};
  return st ? st
            : db_run(db, "SELECT seq, person, data FROM session_updates WHERE session = $1 AND seq > $2 ORDER BY seq",
                     args, 2, see_update, g, NULL, err);
}

enum status store_read_session(struct db *db, const struct ident_hash *id, int64_t snapshot, int64_t after,
                               const struct session_reader *r, bool *found, struct error *err) {
  struct reading g = {.r = r, .id = id, .snapshot = snapshot, .after = after};
  enum status st = db_run(db, db->ops->begin_read, NULL, 0, NULL, NULL, NULL, err);
  if (st)
    return st;
  st = read_body(&g, db, err);
  const enum status ended = db_run(db, "COMMIT", NULL, 0, NULL, NULL, NULL, NULL);
  *found = !st && g.found;
  return st ? st : ended ? fail(err, ended, "a session") : ST_OK;
}

/* ---- purging --------------------------------------------------------------------------------------------------------- */

struct idle {
  struct ident_hash *id;
  struct buf *request;
  bool found;
};

static enum status see_idle(void *user, const struct db_value *row, int n, struct error *err) {
  struct idle *f = user;
  (void)n;
  if (!row_take_hash(&row[0], f->id) || row[1].kind != DB_TEXT)
    return fail(err, ST_IO, "a damaged session");
  f->found = true;
  return buf_append(f->request, row[1].p, row[1].n) ? fail(err, ST_NOMEM, "a session") : ST_OK;
}

enum status store_find_idle_session(struct db *db, int64_t before_ms, struct ident_hash *id, struct buf *request,
                                    bool *found, struct error *err) {
  struct idle f = {.id = id, .request = request};
  const struct db_value before = db_int(before_ms);
  const enum status st = db_run(db,
                                "SELECT id_hash, request FROM sessions WHERE ended_ms = 0 AND touched_ms < $1"
                                " ORDER BY touched_ms LIMIT 1",
                                &before, 1, see_idle, &f, NULL, err);
  *found = !st && f.found;
  return st;
}

static enum status purge_body(struct db *db, void *user, struct error *err) {
  static const char *const statements[] = {
      "DELETE FROM sessions WHERE ended_ms > 0 AND ended_ms < $1"
      " AND NOT EXISTS (SELECT 1 FROM snippets WHERE snippets.id_hash = sessions.link_hash)",
      "DELETE FROM session_people WHERE session IN (SELECT id_hash FROM sessions WHERE ended_ms > 0 AND ended_ms < $1)",
      "DELETE FROM session_updates WHERE session IN (SELECT id_hash FROM sessions WHERE ended_ms > 0 AND ended_ms < "
      "$1)",
      "UPDATE sessions SET snapshot = '', request = '{\"request\":{\"source\":\"\"}}'"
      " WHERE ended_ms > 0 AND ended_ms < $1 AND length(snapshot) > 0",
  };
  enum status st = ST_OK;
  for (size_t i = 0; !st && i < sizeof statements / sizeof *statements; i++)
    st = db_run(db, statements[i], user, 1, NULL, NULL, NULL, err);
  return st;
}

/* By when they ended: what a session became is told for a while after that, and where its link is, as long as that is there. */
enum status store_purge_sessions(struct db *db, struct error *err) {
  struct db_value old = db_int(store_now_ms() - SESSION_KEEP_MS);
  return db_transaction(db, purge_body, &old, err);
}

enum status store_count_sessions(struct db *db, int64_t *n, struct error *err) {
  *n = 0;
  return db_run(db, "SELECT COUNT(*) FROM sessions WHERE ended_ms = 0", NULL, 0, take_int, n, NULL, err);
}
