#include "store/objects.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "store/blob.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

enum {
  SENDERS = 3,
  BATCH = 16,
  BATCH_BYTES = 16 << 20, /* after which a batch is full */
  IDLE_MS = 500,
  CLAIM_MS = 300000, /* longer than a batch takes: each request ends within ten seconds */
  AGAIN_MS = 2000,
  INTENT_MS = 900000, /* then an object that was sent in vain is deleted */
};

struct objects {
  struct store *store;
  struct s3_site *site;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_stopping;
  int n_threads;
  pthread_t threads[SENDERS];
};

static bool is_stopping(struct objects *o) {
  pthread_mutex_lock(&o->lock);
  const bool it_is = o->is_stopping;
  pthread_mutex_unlock(&o->lock);
  return it_is;
}

/* ---- on the store's writing thread ------------------------------------------------------------------------------- */

/* One transaction that a sender waits for. */
struct errand {
  struct store_task task; /* first: a struct store_task * is also a struct errand * */
  enum status (*body)(struct db *db, void *user, struct error *err);
  void *user;
  struct store *store;
  const int64_t *moved; /* bytes that it has moved, counted before the store may be measured again; NULL: none */
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool is_over;
  enum status st;
  struct error err;
};

static void run_errand(struct store_task *t, struct db *db) {
  struct errand *e = (struct errand *)t;
  const enum status st = row_transaction(db, e->body, e->user, &e->err);
  if (!st && e->moved)
    store_took_objects(e->store, *e->moved);
  pthread_mutex_lock(&e->lock);
  e->st = st;
  e->is_over = true;
  pthread_cond_signal(&e->over);
  pthread_mutex_unlock(&e->lock);
}

static enum status write_by(struct objects *o, enum status (*body)(struct db *, void *, struct error *), void *user,
                            const int64_t *moved, struct error *err) {
  struct errand e = {.task.run = run_errand, .body = body, .user = user, .store = o->store, .moved = moved};
  pthread_mutex_init(&e.lock, NULL);
  pthread_cond_init(&e.over, NULL);
  if (store_submit(o->store, STORE_WRITE, &e.task)) {
    pthread_mutex_lock(&e.lock);
    while (!e.is_over)
      pthread_cond_wait(&e.over, &e.lock);
    pthread_mutex_unlock(&e.lock);
    *err = e.err;
  } else {
    e.st = fail(err, ST_BUSY, "too many writes wait");
  }
  pthread_cond_destroy(&e.over);
  pthread_mutex_destroy(&e.lock);
  return e.st;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

struct parcel {
  struct ident_hash hash;
  char name[BLOB_OBJECT_SIZE];
  int64_t send_ms, due_ms; /* as claimed; of the intent to delete it */
  char *data;              /* heap */
  size_t len;
  bool is_mine, is_tried, is_sent;
};

struct sending {
  struct parcel parcels[BATCH];
  int n;
  size_t bytes;
  int64_t moved; /* bytes */
};

static enum status take_parcel(void *user, const struct db_value *row, int n, struct error *err) {
  struct sending *s = user;
  (void)n;
  assert(s->n < BATCH);
  struct parcel *p = &s->parcels[s->n];
  if (s->bytes >= BATCH_BYTES)
    return ST_OK;
  *p = (struct parcel){.send_ms = row[1].i, .len = row[2].n};
  if (!row_take_hash(&row[0], &p->hash) || !p->len)
    return ST_OK; /* damaged, which store_check reports */
  p->data = malloc(p->len);
  if (!p->data)
    return fail(err, ST_NOMEM, "an object");
  memcpy(p->data, row[2].p, p->len);
  s->bytes += p->len;
  s->n++;
  return ST_OK;
}

static void clear_parcels(struct sending *s) {
  for (int i = 0; i < s->n; i++)
    free(s->parcels[i].data);
  s->n = 0;
  s->bytes = 0;
}

static enum status name_object(const struct ident_hash *hash, char out[BLOB_OBJECT_SIZE], struct error *err) {
  uint8_t own[8];
  if (getrandom(own, sizeof own, 0) != sizeof own)
    return fail(err, ST_IO, "no random bytes: %m");
  for (int i = 0; i < IDENT_HASH_SIZE; i++)
    snprintf(out + 2 * i, 3, "%02x", hash->bytes[i]);
  out[2 * IDENT_HASH_SIZE] = '-';
  for (size_t i = 0; i < sizeof own; i++)
    snprintf(out + 2 * (IDENT_HASH_SIZE + i) + 1, 3, "%02x", own[i]);
  return ST_OK;
}

/* Claims a blob, and notes that its object is to be deleted unless it is settled. */
static enum status claim(struct db *db, struct parcel *p, int64_t now_ms, struct error *err) {
  int64_t changed = 0;
  const struct db_value args[] = {db_int(now_ms + CLAIM_MS), row_hash(&p->hash), db_int(p->send_ms)};
  enum status st = db_run(db, "UPDATE blobs SET send_ms = $1 WHERE hash = $2 AND send_ms = $3 AND object IS NULL", args,
                          3, NULL, NULL, &changed, err);
  p->is_mine = !st && changed == 1;
  if (st || !p->is_mine)
    return st;
  p->send_ms = now_ms + CLAIM_MS;
  p->due_ms = now_ms + INTENT_MS;
  st = name_object(&p->hash, p->name, err);
  const struct db_value intent[] = {db_text(p->name), db_int(p->due_ms)};
  return st ? st
            : db_run(db, "INSERT INTO objects_gone (name, due_ms) VALUES ($1, $2)", intent, 2, NULL, NULL, NULL, err);
}

static enum status claim_body(struct db *db, void *user, struct error *err) {
  struct sending *s = user;
  const int64_t now_ms = store_now_ms();
  const struct db_value args[] = {db_int(now_ms), db_int(BATCH)};
  clear_parcels(s); /* of an earlier try */
  enum status st = db_run(db,
                          "SELECT hash, send_ms, data FROM blobs WHERE send_ms > 0 AND send_ms <= $1 ORDER BY send_ms"
                          " LIMIT $2",
                          args, 2, take_parcel, s, NULL, err);
  for (int i = 0; !st && i < s->n; i++)
    st = claim(db, &s->parcels[i], now_ms, err);
  return st;
}

/* The blob gets the object, unless the blob is gone or others have claimed either: then the intent stands. */
static enum status settle(struct db *db, const struct parcel *p, int64_t *moved, struct error *err) {
  int64_t n = 0;
  const struct db_value look[] = {row_hash(&p->hash), db_int(p->send_ms)};
  const struct db_value intent[] = {db_text(p->name), db_int(p->due_ms)};
  const struct db_value args[] = {db_text(p->name), db_int((int64_t)p->len), db_bytes("", 0), row_hash(&p->hash)};
  enum status st = db_run(db, "UPDATE blobs SET send_ms = send_ms WHERE hash = $1 AND send_ms = $2 AND object IS NULL",
                          look, 2, NULL, NULL, &n, err); /* locks the row */
  if (st || n != 1)
    return st;
  st = db_run(db, "DELETE FROM objects_gone WHERE name = $1 AND due_ms = $2", intent, 2, NULL, NULL, &n, err);
  if (st || n != 1)
    return st;
  *moved += (int64_t)p->len;
  return db_run(db, "UPDATE blobs SET object = $1, packed = $2, data = $3, send_ms = 0 WHERE hash = $4", args, 4, NULL,
                NULL, NULL, err);
}

/* What was not sent is tried again soon; its object, if it was tried, is deleted at once, because a part may have been taken. */
static enum status release(struct db *db, const struct parcel *p, int64_t now_ms, struct error *err) {
  const struct db_value again[] = {db_int(now_ms + AGAIN_MS), row_hash(&p->hash), db_int(p->send_ms)};
  const struct db_value gone[] = {db_int(now_ms), db_text(p->name), db_int(p->due_ms)};
  enum status st =
      db_run(db, "UPDATE blobs SET send_ms = $1 WHERE hash = $2 AND send_ms = $3", again, 3, NULL, NULL, NULL, err);
  if (st)
    return st;
  return p->is_tried ? db_run(db, "UPDATE objects_gone SET due_ms = $1 WHERE name = $2 AND due_ms = $3", gone, 3, NULL,
                              NULL, NULL, err)
                     : db_run(db, "DELETE FROM objects_gone WHERE name = $1 AND due_ms = $2", &gone[1], 2, NULL, NULL,
                              NULL, err);
}

static void send(struct s3 *c, struct parcel *p) {
  struct error err;
  p->is_tried = p->is_mine && !s3_rests(s3_site_of(c), S3_PUT);
  p->is_sent = p->is_tried && !s3_put(c, p->name, p->data, p->len, &err);
}

static enum status settle_body(struct db *db, void *user, struct error *err) {
  struct sending *s = user;
  const int64_t now_ms = store_now_ms();
  enum status st = ST_OK;
  s->moved = 0;
  for (int i = 0; !st && i < s->n; i++) {
    const struct parcel *p = &s->parcels[i];
    if (p->is_mine)
      st = p->is_sent ? settle(db, p, &s->moved, err) : release(db, p, now_ms, err);
  }
  return st;
}

/* True if there may be more to send. */
static bool send_some(struct objects *o, struct s3 *c, struct sending *s) {
  struct error err;
  enum status st = write_by(o, claim_body, s, NULL, &err);
  for (int i = 0; !st && i < s->n && !is_stopping(o); i++)
    send(c, &s->parcels[i]);
  const bool is_full = s->n == BATCH || s->bytes >= BATCH_BYTES;
  if (!st && s->n)
    st = write_by(o, settle_body, s, &s->moved, &err);
  if (st && st != ST_BUSY)
    log_warn("objects", "status=%s %s", status_name(st), err.text);
  const bool went_well = !st && !s3_rests(o->site, S3_PUT);
  clear_parcels(s);
  return went_well && is_full;
}

/* ---- deleting ---------------------------------------------------------------------------------------------------- */

struct deleting {
  struct {
    char name[BLOB_OBJECT_SIZE];
    int64_t due_ms;
    bool is_mine, is_done;
  } at[BATCH];
  int n;
};

static enum status take_gone(void *user, const struct db_value *row, int n, struct error *err) {
  struct deleting *d = user;
  (void)n;
  (void)err;
  assert(d->n < BATCH);
  if (row[0].kind != DB_TEXT || row[0].n != BLOB_OBJECT_SIZE - 1)
    return ST_OK;
  memcpy(d->at[d->n].name, row[0].p, BLOB_OBJECT_SIZE - 1);
  d->at[d->n].name[BLOB_OBJECT_SIZE - 1] = 0;
  d->at[d->n].due_ms = row[1].i;
  d->at[d->n].is_done = false;
  d->n++;
  return ST_OK;
}

static enum status claim_gone_body(struct db *db, void *user, struct error *err) {
  struct deleting *d = user;
  const int64_t now_ms = store_now_ms();
  const struct db_value args[] = {db_int(now_ms), db_int(BATCH)};
  d->n = 0;
  enum status st = db_run(db, "SELECT name, due_ms FROM objects_gone WHERE due_ms <= $1 ORDER BY due_ms LIMIT $2", args,
                          2, take_gone, d, NULL, err);
  for (int i = 0; !st && i < d->n; i++) {
    int64_t changed = 0;
    const struct db_value mine[] = {db_int(now_ms + CLAIM_MS), db_text(d->at[i].name), db_int(d->at[i].due_ms)};
    st = db_run(db, "UPDATE objects_gone SET due_ms = $1 WHERE name = $2 AND due_ms = $3", mine, 3, NULL, NULL,
                &changed, err);
    d->at[i].is_mine = changed == 1;
    d->at[i].due_ms = now_ms + CLAIM_MS;
  }
  return st;
}

static enum status end_gone_body(struct db *db, void *user, struct error *err) {
  struct deleting *d = user;
  const int64_t now_ms = store_now_ms();
  enum status st = ST_OK;
  for (int i = 0; !st && i < d->n; i++) {
    const struct db_value done = db_text(d->at[i].name);
    const struct db_value again[] = {db_int(now_ms + AGAIN_MS), db_text(d->at[i].name), db_int(d->at[i].due_ms)};
    if (d->at[i].is_mine && d->at[i].is_done)
      st = db_run(db, "DELETE FROM objects_gone WHERE name = $1", &done, 1, NULL, NULL, NULL, err);
    else if (d->at[i].is_mine)
      st = db_run(db, "UPDATE objects_gone SET due_ms = $1 WHERE name = $2 AND due_ms = $3", again, 3, NULL, NULL, NULL,
                  err);
  }
  return st;
}

static bool delete_some(struct objects *o, struct s3 *c) {
  struct deleting d = {.n = 0};
  struct error err;
  enum status st = write_by(o, claim_gone_body, &d, NULL, &err);
  for (int i = 0; !st && i < d.n && !is_stopping(o); i++)
    if (d.at[i].is_mine)
      d.at[i].is_done = !s3_delete(c, d.at[i].name, &err);
  const bool is_full = d.n == BATCH;
  if (!st && d.n)
    st = write_by(o, end_gone_body, &d, NULL, &err);
  if (st && st != ST_BUSY)
    log_warn("objects", "status=%s %s", status_name(st), err.text);
  return !st && is_full && !s3_rests(o->site, S3_DELETE);
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

/* False when it is time to end. */
static bool wait_a_while(struct objects *o, bool is_busy) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += IDLE_MS * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  pthread_mutex_lock(&o->lock);
  int timed_out = is_busy;
  while (!o->is_stopping && !timed_out)
    timed_out = pthread_cond_clockwait(&o->changed, &o->lock, CLOCK_MONOTONIC, &until);
  const bool goes_on = !o->is_stopping;
  pthread_mutex_unlock(&o->lock);
  return goes_on;
}

static void *run(void *user) {
  struct objects *o = user;
  struct sending *s = calloc(1, sizeof *s);
  struct s3 *c = NULL;
  struct error err;
  bool is_busy = false;
  if (!s || s3_open(o->site, &c, &err))
    log_warn("objects", "out of memory: nothing is sent");
  while (c && wait_a_while(o, is_busy)) {
    is_busy = false;
    if (!s3_rests(o->site, S3_PUT))
      is_busy = send_some(o, c, s);
    if (!s3_rests(o->site, S3_DELETE))
      is_busy |= delete_some(o, c);
  }
  s3_close(c);
  free(s);
  return NULL;
}

enum status objects_start(struct store *store, struct s3_site *site, struct objects **out, struct error *err) {
  struct objects *o = calloc(1, sizeof *o);
  if (!o)
    return fail(err, ST_NOMEM, "objects");
  o->store = store;
  o->site = site;
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->changed, NULL);
  enum status st = ST_OK;
  for (int i = 0; !st && i < SENDERS; i++) {
    if (pthread_create(&o->threads[i], NULL, run, o))
      st = fail(err, ST_IO, "objects: no thread");
    else
      o->n_threads++;
  }
  if (st)
    objects_stop(o);
  else
    *out = o;
  return st;
}

void objects_stop(struct objects *o) {
  if (!o)
    return;
  pthread_mutex_lock(&o->lock);
  o->is_stopping = true;
  pthread_cond_broadcast(&o->changed);
  pthread_mutex_unlock(&o->lock);
  for (int i = 0; i < o->n_threads; i++)
    pthread_join(o->threads[i], NULL);
  pthread_cond_destroy(&o->changed);
  pthread_mutex_destroy(&o->lock);
  free(o);
}
