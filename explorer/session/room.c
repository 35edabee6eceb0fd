#include "session/room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/json.h"

enum {
  SENDS_A_S = 30, /* requests with updates of one person */
  BYTES_A_S = 128 << 10,
  SHOWS_A_S = 20,
  BURST_S = 4, /* so many seconds' worth at once */
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

static struct person *person_of(struct room *r, int number) {
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
  fresh->seq = fresh->snapshot_seq = after;
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

/* ---- people ---------------------------------------------------------------------------------------------------------- */

/* Takes n from a bucket that fills with a_s a second; false if it has not as many. */
static bool spend(struct bucket *b, int64_t n, int64_t a_s) {
  const int64_t now = clock_now_ms(), room = a_s * BURST_S * 1000;
  b->spent -= (now - b->at_ms) * a_s;
  b->at_ms = now;
  if (b->spent < 0)
    b->spent = 0;
  if (b->spent + n * 1000 > room && b->spent > 0)
    return false;
  b->spent += n * 1000;
  return true;
}

enum room_refusal room_may_send(struct room *r, int person, size_t bytes) {
  room_lock(r);
  struct person *p = person_of(r, person);
  assert(p);
  const bool ok = spend(&p->sends, 1, SENDS_A_S) && spend(&p->bytes, (int64_t)bytes, BYTES_A_S);
  const bool has_ended = r->ended_ms != 0;
  room_unlock(r);
  return has_ended ? ROOM_ENDED : ok ? ROOM_OK : ROOM_RATE;
}

/* Locked: tells presence now, if it was not told just before. */
static bool tell_presence(struct room *r, int64_t now) {
  r->is_dirty = now - r->told_ms < ROOM_CALM_MS;
  if (r->is_dirty)
    return false;
  r->told_ms = now;
  room_wake(r);
  return true;
}

enum room_refusal room_show(struct room *r, int person, const char *json, size_t len, bool *is_late) {
  char *copy = strndup(json, len);
  enum room_refusal refusal = ROOM_RATE;
  *is_late = false;
  room_lock(r);
  struct person *p = person_of(r, person);
  assert(p);
  if (r->ended_ms) {
    refusal = ROOM_ENDED;
  } else if (copy && spend(&p->shows, 1, SHOWS_A_S)) {
    char *old = p->presence;
    p->presence = copy;
    copy = old;
    p->shown = ++r->news;
    *is_late = !tell_presence(r, clock_now_ms());
    refusal = ROOM_OK;
  }
  room_unlock(r);
  free(copy);
  return refusal;
}

/* Locked. */
static int count_here(const struct room *r) {
  int n = 0;
  for (int i = 0; i < r->n_people; i++)
    n += r->people[i].is_here;
  return n;
}

int room_n_here(struct room *r) {
  room_lock(r);
  const int n = count_here(r);
  room_unlock(r);
  return n;
}

enum room_refusal room_may_enter(struct room *r, int person) {
  room_lock(r);
  const struct person *p = person_of(r, person);
  const bool is_full = !(p && p->is_here) && count_here(r) >= ROOM_HERE_MAX;
  const bool has_ended = r->ended_ms != 0;
  room_unlock(r);
  return has_ended ? ROOM_ENDED : is_full ? ROOM_CROWDED : ROOM_OK;
}

enum room_refusal room_may_claim(struct room *r, int person, int *leader) {
  room_lock(r);
  const struct person *p = person_of(r, r->leader);
  /* who is not here may be on the way back, or at another server that has not said so yet */
  const bool is_taken = p && p->number != person && (p->is_here || clock_now_ms() - p->left_ms < ROOM_AWAY_MS);
  *leader = r->leader;
  room_unlock(r);
  return is_taken ? ROOM_LEADER_IS_HERE : ROOM_OK;
}

/* Locked. */
static void note_who_left(struct room *r, int64_t now) {
  for (int i = 0; i < r->n_people; i++) {
    struct person *p = &r->people[i];
    if (!p->is_here || p->n_streams || now - p->left_ms < ROOM_AWAY_MS || now < p->far_ms)
      continue;
    p->is_here = false;
    free(p->presence);
    p->presence = NULL;
    r->version++;
  }
}

void room_tell(struct room *r, int64_t now, bool is_slow) {
  room_lock(r);
  const uint64_t before = r->version;
  if (is_slow)
    note_who_left(r, now);
  if (r->version != before)
    room_wake(r);
  else if (r->is_dirty)
    tell_presence(r, now);
  for (struct watcher *l = is_slow ? r->watchers : NULL; l; l = l->next)
    if (l->is_parked && now >= l->beat_ms) {
      l->is_parked = false;
      l->resume(l->user);
    }
  room_unlock(r);
}

void room_put_state(const struct room *r, struct buf *b, int you) {
  const int64_t now = clock_now_ms();
  if (you)
    json_put_field_int(b, "you", you);
  json_put_field_int(b, "seq", r->seq);
  json_put_field_int(b, "leader", r->leader);
  json_put_field_int(b, "offered", r->offered);
  json_put_field_bool(b, "read_only", r->is_read_only);
  json_put_field_int(b, "created_ms", r->created_ms);
  json_put_field_bool(b, "ended", r->ended_ms != 0);
  if (*r->snippet)
    json_put_field_str(b, "snippet", r->snippet);
  json_put_key(b, "people");
  buf_putc(b, '[');
  for (int i = 0; i < r->n_people; i++) {
    const struct person *p = &r->people[i];
    if (!p->number || (!p->is_here && now - p->left_ms > ROOM_LISTED_MS && p->number != r->leader))
      continue;
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "person", p->number);
    json_put_field_str(b, "name", p->name);
    json_put_field_bool(b, "here", p->is_here);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

/* ---- other servers --------------------------------------------------------------------------------------------------- */

/* Locked: "here" and the numbers of those whose streams this server has. */
static void put_here(const struct room *r, struct buf *b) {
  buf_puts(b, "here");
  for (int i = 0; i < r->n_people; i++)
    if (r->people[i].n_streams)
      buf_printf(b, " %d", r->people[i].number);
}

void room_each_far(struct room *r, void (*fn)(void *user, const char *text), void *user) {
  const int64_t now = clock_now_ms();
  struct buf b;
  buf_init(&b, ROOM_PRESENCE_MAX + 64);
  room_lock(r);
  if (r->watchers || r->far_here_told != r->far_here) {
    if (r->far_here_told != r->far_here || now - r->far_told_ms >= ROOM_FAR_EACH_MS) {
      r->far_told_ms = now;
      r->far_here_told = r->far_here;
      put_here(r, &b);
      fn(user, buf_text(&b));
    }
  }
  for (int i = 0; i < r->n_people; i++) {
    const struct person *p = &r->people[i];
    if (!p->presence || !p->n_streams || p->shown <= r->far_told)
      continue;
    buf_clear(&b);
    buf_printf(&b, "presence %d %s", p->number, p->presence);
    fn(user, buf_text(&b));
  }
  r->far_told = r->news;
  room_unlock(r);
  buf_clear(&b);
}

/* Locked. */
static void hear_here(struct room *r, uint64_t from, const char *list) {
  const int64_t now = clock_now_ms();
  for (int i = 0; i < r->n_people; i++)
    if (r->people[i].far_from == from)
      r->people[i].far_ms = 0;
  for (char *end; *list; list = end) {
    struct person *p = person_of(r, (int)strtol(list, &end, 10));
    if (end == list)
      break;
    if (!p)
      continue;
    p->far_ms = now + ROOM_FAR_MS;
    p->far_from = from;
    if (!p->is_here) {
      p->is_here = true;
      r->version++;
    }
  }
}

/* Locked. */
static void hear_presence(struct room *r, const char *text) {
  char *end;
  struct person *p = person_of(r, (int)strtol(text, &end, 10));
  if (!p || *end != ' ' || p->n_streams)
    return;
  char *copy = strdup(end + 1);
  if (!copy)
    return;
  free(p->presence);
  p->presence = copy;
  p->shown = ++r->news;
}

void room_hear(struct room *r, uint64_t from, const char *text) {
  room_lock(r);
  if (!strncmp(text, "here", 4))
    hear_here(r, from, text + 4);
  else if (!strncmp(text, "presence ", 9))
    hear_presence(r, text + 9);
  room_wake(r);
  room_unlock(r);
}

bool room_begin_refresh(struct room *r, bool is_behind) {
  room_lock(r);
  r->is_behind |= is_behind;
  const bool is_due = r->is_behind && !r->is_refreshing;
  r->is_refreshing |= is_due;
  room_unlock(r);
  return is_due;
}

bool room_end_refresh(struct room *r, bool has_failed) {
  room_lock(r);
  const bool again = r->is_behind && !has_failed;
  r->is_refreshing = again;
  room_unlock(r);
  return again;
}
