/* room: who is here, what they look at, and how much each may send. */
#include "session/room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

enum {
  SENDS_A_S = 30, /* requests with updates of one person */
  BYTES_A_S = 128 << 10,
  SHOWS_A_S = 20,
  BURST_S = 4, /* so many seconds' worth at once */
};

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
  struct person *p = room_person(r, person);
  assert(p);
  const bool ok = spend(&p->sends, 1, SENDS_A_S) && spend(&p->bytes, (int64_t)bytes, BYTES_A_S);
  const bool has_ended = r->ended_ms != 0;
  room_unlock(r);
  return has_ended ? ROOM_ENDED : ok ? ROOM_OK : ROOM_RATE;
}

/* Locked. */
static int count_here(const struct room *r) {
  int n = 0;
  for (int i = 0; i < r->n_people; i++)
    n += r->people[i].is_here;
  return n;
}

/* Locked: tells presence now, if it was not told just before. */
static bool tell_presence(struct room *r, int64_t now) {
  const struct person *leader = room_person(r, r->leader);
  const bool is_leaders = leader && leader->shown > r->told_news;
  r->is_dirty = now - r->told_ms < ROOM_CALM_MS + (is_leaders ? 0 : ROOM_CALM_EACH_MS * count_here(r));
  if (r->is_dirty)
    return false;
  r->told_ms = now;
  r->told_news = r->news;
  room_wake(r);
  return true;
}

enum room_refusal room_show(struct room *r, int person, const char *json, size_t len, bool *is_late) {
  char *copy = strndup(json, len);
  enum room_refusal refusal = ROOM_RATE;
  *is_late = false;
  room_lock(r);
  struct person *p = room_person(r, person);
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

int room_n_here(struct room *r) {
  room_lock(r);
  const int n = count_here(r);
  room_unlock(r);
  return n;
}

enum room_refusal room_may_enter(struct room *r, int person) {
  room_lock(r);
  const struct person *p = room_person(r, person);
  const bool is_full = !(p && p->is_here) && count_here(r) >= ROOM_HERE_MAX;
  const bool has_ended = r->ended_ms != 0;
  room_unlock(r);
  return has_ended ? ROOM_ENDED : is_full ? ROOM_CROWDED : ROOM_OK;
}

enum room_refusal room_may_claim(struct room *r, int person, int *leader) {
  room_lock(r);
  const struct person *p = room_person(r, r->leader);
  /* who is not here may be on the way back, or at another server that has not said so yet */
  const bool is_taken = p && p->number != person && (p->is_here || clock_now_ms() - p->left_ms < ROOM_AWAY_MS);
  *leader = r->leader;
  room_unlock(r);
  return is_taken ? ROOM_LEADER_IS_HERE : ROOM_OK;
}

bool room_may_compact(struct room *r, int person) {
  room_lock(r);
  const struct person *leader = room_person(r, r->leader);
  const bool may = r->leader == person || !leader || !leader->is_here;
  room_unlock(r);
  return may;
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

bool room_tell(struct room *r, int64_t now, bool is_slow) {
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
  const bool is_dirty = r->is_dirty;
  room_unlock(r);
  return is_dirty;
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
