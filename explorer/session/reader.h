/* reader: one stream of a room's events, as text/event-stream.
 *
 *   event: state      the session: who leads, who is here; at first, and whenever that changes
 *   event: snapshot   id: of the last update that it contains; data: base64
 *   event: update     id: its number; data: {"person", "data": base64}
 *   event: presence   data: {"person", "presence": what that person's page has sent}
 *
 * A reader that names the last id that it has gets what came after it; if that is not kept any more, the snapshot comes first.
 * States and presences are told as they are now, not as they became: a reader that is slow skips those in between.
 */
#ifndef SESSION_READER_H
#define SESSION_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "session/room.h"

enum {
  READER_BEAT_MS = 2000,    /* a stream without events gets a comment so often; the send shows who has gone, too */
  READER_LIFE_MS = 3600000, /* then a stream ends, and its client comes again */
  READER_OWN_MAX = 8 << 20,
};

struct reader {
  struct watcher watcher; /* first: a struct watcher * is also a struct reader * */
  struct room *room;
  int person;
  int64_t seq; /* of the last update that it has; -1: none */
  uint64_t version, news;
  int64_t end_ms;
  struct buf own; /* events; sent up to own_at */
  size_t own_at;
};

/* The person is here from now on.  The room must outlive the reader. */
void reader_open(struct reader *rd, struct room *room, int person, int64_t seq);
void reader_close(struct reader *rd);
/* Copies at most max bytes; *at_end: nothing follows.  If there is nothing yet, calls park(user) and returns 0; resume(user) is
 * called once when there is. */
size_t reader_read(struct reader *rd, char *to, size_t max, bool *at_end, void (*park)(void *), void (*resume)(void *),
                   void *user);

#endif
