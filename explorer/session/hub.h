/* hub: the rooms of this server, and the writes to them.
 *
 * A room is read from the store when the first request names it, and is forgotten some time after the last one.  Writes of all
 * rooms that come while the store writes are made together, in one transaction (store/sessions.h).
 *
 * Servers on one PostgreSQL store tell each other what was written, who is there, and presences (store/bulletin.h).
 *
 * Its thread tells presence that came in quick succession, notes who has left, sends signs of life to streams, and tells the store
 * which sessions somebody is in.
 */
#ifndef SESSION_HUB_H
#define SESSION_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/sessions.h"

struct hub; /* opaque */
struct room;

enum {
  HUB_ROOMS_MAX = 2000,
  HUB_BYTES_MAX = 256 << 20, /* of all rooms */
};

/* url: of the store; idle_ms: after so long without anyone a session is sealed (api/seal.h). */
MUST_USE enum status hub_start(struct store *store, const char *url, int64_t idle_ms, struct hub **out,
                               struct error *err);
/* Ends all streams, and those that begin later at once. */
void hub_end_streams(struct hub *h);
void hub_stop(struct hub *h); /* after the server has ended; NULL is fine, here and above */

/* The room of this session, which may not be known yet; NULL: there are too many, or no memory. */
struct room *hub_enter(struct hub *h, const struct ident_hash *id);
void hub_leave(struct hub *h, struct room *r);
bool hub_is_ending(const struct hub *h);

/* A write, a member of its request. */
struct hub_write {
  struct session_write w; /* first: a struct session_write * is also a struct hub_write * */
  struct room *room;
  char told[96]; /* the hub's own */
  void (*resume)(void *);
  void *user;
  enum status st; /* the outcome; w.verdict counts if it is ST_OK */
  struct error err;
};
/* Makes the write, applies it to the room, and then calls resume(user) once, on another thread. */
void hub_make(struct hub *h, struct hub_write *w);
/* Sets a presence, and sees to it that it is told. */
int hub_show(struct hub *h, struct room *r, int person, const char *json, size_t len); /* enum room_refusal */

struct hub_counts {
  int rooms, people, streams;
  int64_t bytes, updates, presences; /* updates, presences: since start */
};
void hub_look(struct hub *h, struct hub_counts *out);

#endif
