/* room: what servers of one session tell each other: who is at which, and what they look at. */
#include "session/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

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
    struct person *p = room_person(r, (int)strtol(list, &end, 10));
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
  struct person *p = room_person(r, (int)strtol(text, &end, 10));
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
