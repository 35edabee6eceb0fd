#include "session/reader.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

enum { PART = 64 << 10 }; /* bytes of the log that are copied at a time, or one event */

static struct person *person_at(const struct reader *rd) {
  return &rd->room->people[rd->person - 1];
}

void reader_open(struct reader *rd, struct room *room, int person, int64_t seq) {
  *rd = (struct reader){.room = room, .person = person, .seq = seq};
  buf_init(&rd->own, READER_OWN_MAX);
  rd->watcher.beat_ms = clock_now_ms() + READER_BEAT_MS;
  rd->end_ms = clock_now_ms() + READER_LIFE_MS;
  room_lock(room);
  assert(person > 0 && person <= room->n_people);
  rd->watcher.next = room->watchers;
  room->watchers = &rd->watcher;
  person_at(rd)->n_streams++;
  room->far_here++;
  if (!person_at(rd)->is_here) {
    person_at(rd)->is_here = true;
    room->version++;
    room_wake(room);
  }
  room_unlock(room);
}

void reader_close(struct reader *rd) {
  struct room *room = rd->room;
  room_lock(room);
  struct watcher **at = &room->watchers;
  while (*at != &rd->watcher) {
    assert(*at);
    at = &(*at)->next;
  }
  *at = rd->watcher.next;
  person_at(rd)->n_streams--;
  room->far_here++;
  person_at(rd)->left_ms = clock_now_ms();
  room_unlock(room);
  buf_clear(&rd->own);
}

/* ---- what it has not yet; the room is locked ---------------------------------------------------------------------------- */

static void put_updates(struct reader *rd) {
  const struct room *r = rd->room;
  const size_t *ends = (const size_t *)(const void *)r->ends.data;
  const size_t n = r->ends.len / sizeof(size_t);
  if (rd->seq > r->seq)
    rd->seq = -1; /* it has another session's, or the store is an older copy */
  if (rd->seq < r->snapshot_seq) {
    buf_append(&rd->own, r->snapshot.data, r->snapshot.len);
    rd->seq = r->snapshot_seq;
  }
  const size_t first = (size_t)(rd->seq - r->snapshot_seq);
  size_t i = first, from = first ? ends[first - 1] : 0;
  while (i < n && (i == first || ends[i] - from <= PART))
    i++;
  if (i > first)
    buf_append(&rd->own, r->log.data + from, ends[i - 1] - from);
  rd->seq += (int64_t)(i - first);
}

static void put_state(struct reader *rd) {
  buf_puts(&rd->own, "event: state\ndata: {");
  room_put_state(rd->room, &rd->own, rd->person);
  buf_puts(&rd->own, "}\n\n");
  rd->version = rd->room->version;
}

static void put_presences(struct reader *rd) {
  const struct room *r = rd->room;
  for (int i = 0; i < r->n_people; i++) {
    const struct person *p = &r->people[i];
    if (p->presence && p->shown > rd->news && p->number != rd->person)
      buf_printf(&rd->own, "event: presence\ndata: {\"person\":%d,\"presence\":%s}\n\n", p->number, p->presence);
  }
  rd->news = r->news;
}

static void fill(struct reader *rd) {
  struct room *r = rd->room;
  buf_clear(&rd->own);
  rd->own_at = 0;
  if (rd->watcher.is_over)
    return;
  if (rd->version != r->version && !r->ended_ms)
    put_state(rd);
  if (r->is_known)
    put_updates(rd);
  if (rd->news != r->news)
    put_presences(rd);
  if (r->ended_ms && rd->seq == r->seq) {
    put_state(rd);
    rd->watcher.is_over = true;
  }
  const int64_t now = clock_now_ms();
  if (!rd->own.len && now >= rd->watcher.beat_ms)
    buf_puts(&rd->own, ":\n\n");
  if (buf_status(&rd->own) || now >= rd->end_ms)
    rd->watcher.is_over = true;
  if (rd->own.len)
    rd->watcher.beat_ms = now + READER_BEAT_MS;
}

size_t reader_read(struct reader *rd, char *to, size_t max, bool *at_end, void (*park)(void *), void (*resume)(void *),
                   void *user) {
  room_lock(rd->room);
  if (rd->own_at == rd->own.len)
    fill(rd);
  const size_t left = rd->own.len - rd->own_at, n = left < max ? left : max;
  if (n)
    memcpy(to, rd->own.data + rd->own_at, n);
  rd->own_at += n;
  *at_end = !n && rd->watcher.is_over;
  if (!n && !rd->watcher.is_over) {
    rd->watcher.resume = resume;
    rd->watcher.user = user;
    rd->watcher.is_parked = true;
    park(user);
  }
  room_unlock(rd->room);
  return n;
}
