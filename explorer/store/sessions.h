/* sessions: people together in one kernel.
 *
 * A session is a snapshot and the updates after it.  Both are bytes that the participants' editors make and merge; nothing here
 * reads them.  Each update has a number, `seq`, from 1 on without gaps, and the snapshot has the number of the last update that it
 * contains.  The leader replaces the snapshot from time to time, and with that the updates that it contains are removed.
 *
 * Writes of many requests are made in one transaction, because a transaction costs a wait for the disk.  A write that its
 * conditions refuse changes nothing, and does not affect the others; its verdict says why.
 *
 * With several servers on one store, every write to a session is told to all of them (bulletin.h).  Statuses are those of store.h.
 */
#ifndef STORE_SESSIONS_H
#define STORE_SESSIONS_H

#include "base/buf.h"
#include "store/store.h"

enum {
  SESSION_NAME_MAX = 64,              /* bytes of a person's name */
  SESSION_PEOPLE_MAX = 500,           /* that ever joined one session */
  SESSION_LOG_MAX = 1 << 20,          /* bytes of updates after the snapshot */
  SESSION_SNAPSHOT_MAX = 2 << 20,     /* bytes; a longest source with its history of changes fits */
  SESSION_REQUEST_MAX = 1 << 20,      /* bytes of the kernel as a request */
  SESSION_UPDATES_MAX = 64,           /* updates that one write adds */
  SESSION_KEEP_MS = 7 * 24 * 3600000, /* so long an ended session has more than the link that it became */
};

enum session_act {
  SESSION_UPDATE,    /* adds `pieces`; by the leader only, if the session is read-only */
  SESSION_JOIN,      /* adds a person with `text` as name and `token`; sets `person` */
  SESSION_OFFER,     /* the leader offers the lead to person `number`; 0: no longer */
  SESSION_ACCEPT,    /* the person to whom it is offered takes the lead */
  SESSION_DECLINE,   /* they do not */
  SESSION_CLAIM,     /* takes the lead from person `number`, who is away */
  SESSION_READ_ONLY, /* the leader: number 1: only the leader may change the text, 0: everybody */
  SESSION_SNAPSHOT, /* pieces[0] contains all updates up to `number`; text: the kernel as a request; not by others than the leader
                        if the session is read-only */
  SESSION_END,   /* the leader; text: the link that it becomes, "" if none */
  SESSION_TOUCH, /* somebody is there */
  SESSION_SEAL, /* nobody: ends it if nobody was there since `number`, of store_now_ms; text and link: what it becomes */
};

enum session_verdict {
  SESSION_DONE,
  SESSION_UNKNOWN, /* there is no such session */
  SESSION_HAS_ENDED,
  SESSION_NOT_LEADER,  /* only the leader may do that */
  SESSION_NOT_OFFERED, /* the lead is not offered to this person, or is not that person's any more */
  SESSION_NO_PERSON,   /* there is no person `number` */
  SESSION_IS_READ_ONLY,
  SESSION_LOG_FULL, /* until the leader has replaced the snapshot */
  SESSION_CROWDED,  /* as many as there may be have joined */
  SESSION_OLD,      /* the snapshot is older than the one there is, or newer than the last update; or somebody came */
};

struct session_piece {
  const void *data;
  size_t len;
};

struct session_write {
  struct session_write *next;
  struct ident_hash session;
  enum session_act act;
  int person;
  int64_t number;
  const char *text;
  struct ident_hash token;
  struct store_snippet *link; /* SESSION_SEAL: stored with it; NULL: it becomes no link */
  const char *told;           /* if it is made, other servers are told this (bulletin.h); NULL: there are none */
  int n_pieces;
  struct session_piece pieces[SESSION_UPDATES_MAX];
  /* the outcome */
  enum session_verdict verdict;
  int64_t seq; /* SESSION_UPDATE: of the first piece */
};
/* Makes the writes of the list in its order.  After a failure none was made. */
MUST_USE enum status store_write_sessions(struct db *db, struct session_write *list, struct error *err);

/* A new session of one person, who leads it.  ST_DENIED: there is a session with this id. */
struct session_new {
  struct ident_hash id, token;
  const char *name, *request;
  const void *snapshot;
  size_t snapshot_len;
};
MUST_USE enum status store_put_session(struct db *db, const struct session_new *s, struct error *err);

struct session_row {
  int64_t created_ms, touched_ms, ended_ms, seq, snapshot_seq;
  int leader, offered;
  bool is_read_only;
  const char *request, *snippet; /* valid during the call */
};
/* The calls of a reader, in this order. */
struct session_reader {
  void *user;
  void (*on_row)(void *user, const struct session_row *row);
  void (*on_person)(void *user, int person, const struct ident_hash *token, const char *name);
  void (*on_snapshot)(void *user, int64_t seq, const void *data, size_t len);
  void (*on_update)(void *user, int64_t seq, int person, const void *data, size_t len);
};
/* Reads the state of one moment, the snapshot if it is newer than `snapshot`, and the updates after `after`. */
MUST_USE enum status store_read_session(struct db *db, const struct ident_hash *id, int64_t snapshot, int64_t after,
                                        const struct session_reader *r, bool *found, struct error *err);

/* Finds the session that has been without anyone for the longest time, if that is since before_ms: sets *id, and appends its
 * kernel as a request. */
MUST_USE enum status store_find_idle_session(struct db *db, int64_t before_ms, struct ident_hash *id,
                                             struct buf *request, bool *found, struct error *err);
/* Removes those that ended long ago; of one that became a link, its address stays as long as the link is there. */
MUST_USE enum status store_purge_sessions(struct db *db, struct error *err);
MUST_USE enum status store_count_sessions(struct db *db, int64_t *n, struct error *err); /* that have not ended */

#endif
