/* room: what the store holds of a session, as events for readers. */
#include "session/room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"

enum {
  LOG_TEXT_MAX = 2 * SESSION_LOG_MAX + (1 << 20),
  SNAPSHOT_TEXT_MAX = SESSION_SNAPSHOT_MAX / 3 * 4 + 128,
  READ_TRIES = 4,
};

struct room *room_new(const struct ident_hash *id) {
  struct room *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->id = *id;
  pthread_mutex_init(&r->lock, NULL);
  buf_init(&r->snapshot, SNAPSHOT_TEXT_MAX);
  buf_init(&r->log, LOG_TEXT_MAX);
  buf_init(&r->ends, LOG_TEXT_MAX);
  return r;
}

void room_free(struct room *r) {
  if (!r)
    return;
  assert(!r->watchers);
  for (int i = 0; i < r->n_people; i++)
    free(r->people[i].presence);
  free(r->people);
  buf_clear(&r->snapshot);
  buf_clear(&r->log);
  buf_clear(&r->ends);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

void room_lock(struct room *r) {
  pthread_mutex_lock(&r->lock);
}

void room_unlock(struct room *r) {
  pthread_mutex_unlock(&r->lock);
}

void room_wake(struct room *r) {
  for (struct watcher *l = r->watchers; l; l = l->next)
    if (l->is_parked) {
      l->is_parked = false;
      l->resume(l->user);
    }
}

void room_end_watchers(struct room *r) {
  room_lock(r);
  for (struct watcher *l = r->watchers; l; l = l->next)
    l->is_over = true;
  room_wake(r);
  room_unlock(r);
}

bool room_is_known(struct room *r) {
  room_lock(r);
  const bool is_known = r->is_known && !r->is_behind;
  room_unlock(r);
  return is_known;
}

struct person *room_person(struct room *r, int number) {
  return number > 0 && number <= r->n_people && r->people[number - 1].number ? &r->people[number - 1] : NULL;
}

int room_find_person(struct room *r, const struct ident_hash *token) {
  int found = 0;
  room_lock(r);
  for (int i = 0; i < r->n_people; i++)
    if (r->people[i].number && ident_hash_equal(&r->people[i].token, token))
      found = r->people[i].number;
  room_unlock(r);
  return found;
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

static void put_base64(struct buf *b, const void *data, size_t len) {
  if (buf_reserve(b, len / 3 * 4 + 8))
    return;
  b->len += (size_t)EVP_EncodeBlock((unsigned char *)b->data + b->len, data, (int)len);
}

static void count_bytes(struct room *r) {
  atomic_store(&r->bytes, r->snapshot.cap + r->log.cap + r->ends.cap + (size_t)r->n_people * sizeof *r->people);
}

/* Locked. */
static bool add_update(struct room *r, int64_t seq, int person, const void *data, size_t len) {
  if (seq <= r->seq)
    return true;
  if (seq != r->seq + 1)
    return false;
  buf_printf(&r->log, "id: %lld\nevent: update\ndata: {\"person\":%d,\"data\":\"", (long long)seq, person);
  put_base64(&r->log, data, len);
  buf_puts(&r->log, "\"}\n\n");
  const size_t end = r->log.len;
  buf_append(&r->ends, &end, sizeof end);
  if (buf_status(&r->log) || buf_status(&r->ends))
    return false;
  r->seq = seq;
  return true;
}

/* Locked: drops the updates up to seq, which a snapshot contains. */
static void drop_log(struct room *r, int64_t seq) {
  assert(seq >= r->snapshot_seq);
  const size_t n = r->ends.len / sizeof(size_t);
  const size_t drop = seq - r->snapshot_seq > (int64_t)n ? n : (size_t)(seq - r->snapshot_seq);
  size_t *ends = (size_t *)(void *)r->ends.data;
  const size_t cut = drop ? ends[drop - 1] : 0;
  if (!drop)
    return;
  memmove(r->log.data, r->log.data + cut, r->log.len - cut);
  r->log.len -= cut;
  for (size_t i = drop; i < n; i++)
    ends[i - drop] = ends[i] - cut;
  r->ends.len = (n - drop) * sizeof(size_t);
}

/* Locked. */
static bool set_snapshot(struct room *r, int64_t seq, const void *data, size_t len) {
  if (r->snapshot.len && seq <= r->snapshot_seq)
    return true;
  struct buf text;
  buf_init(&text, SNAPSHOT_TEXT_MAX);
  buf_printf(&text, "id: %lld\nevent: snapshot\ndata: ", (long long)seq);
  put_base64(&text, data, len);
  buf_puts(&text, "\n\n");
  if (buf_status(&text)) {
    buf_clear(&text);
    return false;
  }
  buf_clear(&r->snapshot);
  r->snapshot = text;
  drop_log(r, seq);
  r->snapshot_seq = seq;
  r->seq = seq > r->seq ? seq : r->seq;
  return true;
}

/* Locked. */
static bool add_person(struct room *r, int number, const struct ident_hash *token, const char *name) {
  assert(number > 0 && number <= SESSION_PEOPLE_MAX);
  if (number > r->n_people) {
    struct person *more = realloc(r->people, (size_t)number * sizeof *more);
    if (!more)
      return false;
    memset(more + r->n_people, 0, (size_t)(number - r->n_people) * sizeof *more);
    r->people = more;
    r->n_people = number;
  }
  struct person *p = &r->people[number - 1];
  if (p->number)
    return true;
  p->number = number;
  p->token = *token;
  p->left_ms = clock_now_ms();
  strncpy(p->name, name, SESSION_NAME_MAX);
  return true;
}

/* ---- the store ------------------------------------------------------------------------------------------------------- */

/* What is read goes into a room of its own, so that no lock is held while the store works. */
struct copying {
  struct room *fresh;
  bool is_broken;
};

static void on_row(void *user, const struct session_row *row) {
  struct room *r = ((struct copying *)user)->fresh;
  r->created_ms = row->created_ms;
  r->ended_ms = row->ended_ms;
  r->leader = row->leader;
  r->offered = row->offered;
  r->is_read_only = row->is_read_only;
  strncpy(r->snippet, row->snippet, IDENT_LEN);
}

static void on_person(void *user, int person, const struct ident_hash *token, const char *name) {
  struct copying *c = user;
  if (person < 1 || person > SESSION_PEOPLE_MAX || !add_person(c->fresh, person, token, name))
    c->is_broken = true;
}

static void on_snapshot(void *user, int64_t seq, const void *data, size_t len) {
  struct copying *c = user;
  if (!set_snapshot(c->fresh, seq, data, len))
    c->is_broken = true;
}

static void on_update(void *user, int64_t seq, int person, const void *data, size_t len) {
  struct copying *c = user;
  if (!add_update(c->fresh, seq, person, data, len))
    c->is_broken = true;
}

/* Locked: adds the updates of fresh that r has not; false if some are missing between them. */
static bool merge_log(struct room *r, const struct room *fresh) {
  const size_t *ends = (const size_t *)(const void *)fresh->ends.data, n = fresh->ends.len / sizeof *ends;
  for (size_t i = 0; i < n; i++) {
    const int64_t seq = fresh->seq - (int64_t)n + 1 + (int64_t)i;
    const size_t from = i ? ends[i - 1] : 0;
    if (seq <= r->seq)
      continue;
    buf_append(&r->log, fresh->log.data + from, ends[i] - from);
    const size_t end = r->log.len;
    buf_append(&r->ends, &end, sizeof end);
    if (seq != r->seq + 1 || buf_status(&r->log) || buf_status(&r->ends))
      return false;
    r->seq = seq;
  }
  return true;
}

/* Locked. */
static bool merge(struct room *r, struct room *fresh) {
  bool ok = true;
  r->created_ms = fresh->created_ms;
  r->ended_ms = fresh->ended_ms;
  r->leader = fresh->leader;
  r->offered = fresh->offered;
  r->is_read_only = fresh->is_read_only;
  memcpy(r->snippet, fresh->snippet, sizeof r->snippet);
  for (int i = 0; i < fresh->n_people; i++)
    ok = ok && add_person(r, i + 1, &fresh->people[i].token, fresh->people[i].name);
  if (fresh->snapshot.len && (!r->snapshot.len || fresh->snapshot_seq > r->snapshot_seq)) {
    const struct buf text = r->snapshot;
    r->snapshot = fresh->snapshot;
    fresh->snapshot = text;
    drop_log(r, fresh->snapshot_seq);
    r->snapshot_seq = fresh->snapshot_seq;
    r->seq = r->snapshot_seq > r->seq ? r->snapshot_seq : r->seq;
  }
  return ok && merge_log(r, fresh);
}

static enum status read_once(struct room *r, struct db *db, bool *found, bool *is_done, struct error *err) {
  struct room *fresh = room_new(&r->id);
  if (!fresh)
    return fail(err, ST_NOMEM, "a session");
  struct copying c = {.fresh = fresh};
  const struct session_reader reader = {
      .user = &c, .on_row = on_row, .on_person = on_person, .on_snapshot = on_snapshot, .on_update = on_update};
  room_lock(r);
  const uint64_t epoch = r->epoch;
  r->is_behind = false; /* what is written from now on says so again */
  const int64_t snapshot = r->is_known ? r->snapshot_seq : -1, after = r->is_known ? r->seq : -1;
  room_unlock(r);
  fresh->snapshot_seq = snapshot; /* it can be older than `after`, and so can the one that is read */
  fresh->seq = after;
  enum status st = store_read_session(db, &r->id, snapshot, after, &reader, found, err);
  room_lock(r);
  *is_done = st || !*found || r->epoch == epoch; /* else a write was applied that this state may lack */
  if (!st && *found && *is_done) {
    if (c.is_broken || !merge(r, fresh))
      st = fail(err, ST_NOMEM, "a session");
    r->is_known = !st;
    r->version++;
    count_bytes(r);
    room_wake(r);
  }
  r->is_behind |= st && r->is_known;
  room_unlock(r);
  room_free(fresh);
  return st;
}

enum status room_read_store(struct room *r, struct db *db, bool *found, struct error *err) {
  for (int i = 0; i < READ_TRIES; i++) {
    bool is_done = false;
    const enum status st = read_once(r, db, found, &is_done, err);
    if (st || is_done)
      return st;
  }
  return fail(err, ST_BUSY, "a session that changes too fast");
}

static bool apply_updates(struct room *r, const struct session_write *w) {
  for (int i = 0; i < w->n_pieces; i++)
    if (!add_update(r, w->seq + i, w->person, w->pieces[i].data, w->pieces[i].len))
      return false;
  return true;
}

/* Locked. */
static bool apply(struct room *r, const struct session_write *w) {
  switch (w->act) {
  case SESSION_UPDATE:
    return apply_updates(r, w);
  case SESSION_JOIN:
    return add_person(r, w->person, &w->token, w->text);
  case SESSION_OFFER:
    r->offered = (int)w->number;
    return true;
  case SESSION_ACCEPT:
  case SESSION_CLAIM:
    r->leader = w->person;
    r->offered = 0;
    return true;
  case SESSION_DECLINE:
    r->offered = 0;
    return true;
  case SESSION_READ_ONLY:
    r->is_read_only = w->number != 0;
    return true;
  case SESSION_SNAPSHOT:
    return set_snapshot(r, w->number, w->pieces[0].data, w->pieces[0].len);
  case SESSION_END:
  case SESSION_SEAL:
    r->ended_ms = store_now_ms();
    strncpy(r->snippet, w->text, IDENT_LEN);
    return true;
  case SESSION_TOUCH:
    break;
  }
  return true;
}

bool room_apply(struct room *r, const struct session_write *w) {
  room_lock(r);
  r->epoch++;
  if (w->verdict == SESSION_DONE && !apply(r, w))
    r->is_behind = true;
  if (w->verdict == SESSION_HAS_ENDED && !r->ended_ms)
    r->is_behind = true;
  if (w->act != SESSION_UPDATE && w->act != SESSION_SNAPSHOT && w->act != SESSION_TOUCH)
    r->version++;
  const bool is_behind = r->is_behind;
  count_bytes(r);
  room_wake(r);
  room_unlock(r);
  return is_behind;
}
