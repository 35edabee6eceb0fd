/* room: a session in memory, as the people on this server see it.
 *
 * It holds what the store holds (store/sessions.h), and what no store needs to keep: who is here, and what each of them looks at
 * (their presence, JSON that nothing here reads).  Readers take events from it (reader.h).
 *
 * Each room has a lock.  Functions without "locked" in their comment take it.
 */
#ifndef SESSION_ROOM_H
#define SESSION_ROOM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/chain.h"
#include "store/sessions.h"

enum {
  ROOM_PRESENCE_MAX = 4 << 10, /* bytes of one person's presence */
  ROOM_HERE_MAX = 120,         /* people who are in one session at a time */
  ROOM_AWAY_MS = 3000,         /* a person whose last stream ended so long ago is away */
  ROOM_LISTED_MS = 120000,     /* who is away is listed for so long */
  ROOM_CALM_MS = 40,           /* presence is told at most this often, the leader's; that of others … */
  ROOM_CALM_EACH_MS = 2,       /* … less often the more people are here: each telling goes to all */
};

/* Whom a room calls when there is news: a part of a reader (reader.h). */
struct watcher {
  struct watcher *next;
  bool is_parked;  /* resume(user) is to be called, once */
  bool is_over;    /* it gets no more */
  int64_t beat_ms; /* when it is called in any case */
  void (*resume)(void *);
  void *user;
};

/* Fills evenly; a tenth of a second is the finest step. */
struct bucket {
  int64_t at_ms;
  int64_t spent; /* thousandths */
};

struct person {
  int number; /* from 1; 0: there is no such person */
  struct ident_hash token;
  char name[SESSION_NAME_MAX + 1];
  bool is_here;
  int n_streams;
  int64_t left_ms;   /* of the monotonic clock: when the last stream ended */
  int64_t far_ms;    /* until when another server has said that they are there; 0: none has */
  uint64_t far_from; /* that server */
  struct bucket sends, bytes, shows;
  char *presence; /* heap; NULL: none */
  uint64_t shown; /* the room's news when it was set */
};

struct room {
  struct chain_link link; /* of the hub, under its lock; first: a struct chain_link * is also a struct room * */
  struct room *next;
  int refs;
  int64_t idle_ms;
  int64_t touched_ms; /* when the store was told that somebody is here */
  struct ident_hash id;
  atomic_size_t bytes; /* that the texts take */

  pthread_mutex_t lock; /* guards what follows */
  bool is_known;        /* it was read from the store */
  bool is_behind;       /* another server has written to it */
  struct store_task refresh;
  struct hub *hub;
  bool is_refreshing;
  uint64_t epoch;   /* counts the writes that were applied */
  uint64_t version; /* counts the changes that people are told: of the state … */
  uint64_t news;    /* … and of presences */
  int64_t created_ms, ended_ms, seq, snapshot_seq;
  int leader, offered;
  bool is_read_only;
  char snippet[IDENT_LEN + 1];
  struct person *people; /* that of number n is at n - 1 */
  int n_people;
  struct buf snapshot; /* the event */
  struct buf log;      /* the events of the updates after snapshot_seq */
  struct buf ends;     /* size_t each: where in the log the update snapshot_seq + 1 + i ends */
  struct watcher *watchers;
  int64_t told_ms; /* when presence was told last, and which news */
  uint64_t told_news;
  bool is_dirty;     /* there is presence that was not told */
  uint64_t far_told; /* the news that other servers were told */
  uint64_t far_here; /* the changes of who is here on this server, and those that others were told */
  uint64_t far_here_told;
  int64_t far_told_ms; /* when they were told who is here */
};

struct room *room_new(const struct ident_hash *id); /* NULL: no memory */
void room_free(struct room *r);

/* On a store thread: reads it from the store, or what is new there.  ST_BUSY: it changes too fast; try again. */
MUST_USE enum status room_read_store(struct room *r, struct db *db, bool *found, struct error *err);
bool room_is_known(struct room *r);
/* The person of this number; NULL: there is none.  Locked. */
struct person *room_person(struct room *r, int number);
/* The number of the person with this token; 0: there is none. */
int room_find_person(struct room *r, const struct ident_hash *token);

/* After the write was made: changes the room likewise.  True: another server has written before, and the store must be read. */
bool room_apply(struct room *r, const struct session_write *w);

/* ---- people ---------------------------------------------------------------------------------------------------------- */

enum room_refusal { ROOM_OK, ROOM_ENDED, ROOM_CROWDED, ROOM_RATE, ROOM_LEADER_IS_HERE };
/* Counts a request with so many bytes of updates. */
enum room_refusal room_may_send(struct room *r, int person, size_t bytes);
/* Sets a person's presence, a JSON text.  *is_late: it is to be told by room_tell later. */
enum room_refusal room_show(struct room *r, int person, const char *json, size_t len, bool *is_late);
/* Whether somebody may come in: a person who was here before, or a new one (0). */
enum room_refusal room_may_enter(struct room *r, int person);
/* Whether the lead may be claimed; *leader: from whom. */
enum room_refusal room_may_claim(struct room *r, int person, int *leader);
/* Whether this person's page may replace the snapshot: the leader's, or anyone's while the leader is away. */
bool room_may_compact(struct room *r, int person);
/* Tells what was not told; notes who has left.  is_slow: a call that comes every half second.  True: there is presence left to tell. */
bool room_tell(struct room *r, int64_t now_ms, bool is_slow);
int room_n_here(struct room *r);

/* ---- other servers --------------------------------------------------------------------------------------------------- */

enum { ROOM_FAR_MS = 20000, ROOM_FAR_EACH_MS = 6000 };
/* What other servers are to be told now: calls fn with each text, without the session's name. */
void room_each_far(struct room *r, void (*fn)(void *user, const char *text), void *user);
/* What another server has told: "here N N …" or "presence N JSON". */
void room_hear(struct room *r, uint64_t from, const char *text);
/* Another server has written: the store must be read.  True if nobody does so already; the caller must. */
bool room_begin_refresh(struct room *r, bool is_behind);
/* After it was read.  True: it must be read once more. */
bool room_end_refresh(struct room *r, bool has_failed);

/* Appends the members of the state; locked.  you: the person who reads it, 0: nobody. */
void room_put_state(const struct room *r, struct buf *b, int you);
void room_lock(struct room *r);
void room_unlock(struct room *r);

/* Calls all watchers; locked. */
void room_wake(struct room *r);
/* Ends all watchers: they come again, here or at another server. */
void room_end_watchers(struct room *r);

#endif
