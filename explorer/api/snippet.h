/* snippet: functions that the routes about snippets and links share. */
#ifndef API_SNIPPET_H
#define API_SNIPPET_H

#include <jansson.h>

#include "api/diffs.h"
#include "api/kept.h"
#include "api/part.h"
#include "driver/job.h"

enum { REPORT_URL_MAX = 2048 };
enum { SNIPPET_EXPIRES_MAX_S = 10 * 366 * 24 * 3600 };

/* The state of one request about a snippet. */
struct snippet_state {
  /* the request */
  char id[IDENT_LEN + 1]; /* "" if the client sent something that cannot be an id */
  struct ident_hash id_hash, token;
  int revision;               /* that is asked for; 0: the newest */
  struct ident_hash kept_key; /* of the revision, for kept.h */
  int64_t after_ms;           /* DELETE: the time from now until the snippet expires; -1: delete it now */
  struct store_snippet snippet;
  char edit_token[IDENT_LEN + 1];
  bool is_public, is_revision; /* POST */
  bool is_private;             /* it is for some people only (access.h); POST: and so it is asked for */
  const struct identity *who;  /* asks */
  /* the outcome */
  enum status st;
  struct error err;
  bool found, is_allowed;
  enum diff_found diff_found; /* also DIFF_FOUND if no diff was requested */
  struct buf answer;
  /* for kept.h */
  enum kept_kind kind;
  uint64_t moment;
  int64_t expires_ms; /* the earliest expiry of the snippets in the answer; 0: none expires */
  const struct kept_answer *kept;
  void *more; /* of another API's handler, released with the state; NULL: there is none */
  void (*free_more)(void *);
  const char *report_url; /* where to report the link, with {link} in place of it; NULL: nowhere */
};

/* What a view may have, in bytes of JSON.  Notes and a recording have room of their own. */
enum { VIEW_MAX = 64 << 10, NOTES_MAX = 256 << 10, RECORDING_MAX = 256 << 10 };
/* ST_INPUT if it is no object, ST_LIMIT if it, its notes or its recording are too large. */
MUST_USE enum status snippet_check_view(const json_t *view, struct error *err);
MUST_USE enum status snippet_check_notes(const json_t *notes, struct error *err);

/* Returns a state that lives as long as the request; NULL if there is no memory. */
struct snippet_state *snippet_state_new(struct request *rq);
static inline struct snippet_state *snippet_state_of(const struct request *rq) {
  return rq->state;
}
/* Sets the id.  A text that cannot be an id is looked up like any other, as an id that no snippet has, so that the two
 * cannot be told apart, not even by the time that the answer takes. */
void snippet_set_id(struct snippet_state *s, const char *text, size_t len);

/* Sets the token that the request's header names; a text that cannot be a token is one that no snippet has. */
void snippet_set_token(struct request *rq);

/* Returns true if this address may ask about snippets.  If not, sets *answer. */
bool snippet_may_ask(struct request *rq, enum MHD_Result *answer);
/* Returns a new state for the snippet whose id is the first id_len bytes of the path's rest.  NULL with *answer if the address may
 * not ask, or if there is no memory. */
struct snippet_state *snippet_begin(struct request *rq, size_t id_len, enum MHD_Result *answer);
/* Before the compile: counts a link that the request's client is about to store.  ST_QUOTA: it has stored too many, or too many
 * bytes; ST_FULL: the store has no room for links; both for http_status_problem. */
MUST_USE enum status snippet_count_link(struct request *rq, struct error *err);
/* Counts a change of a link, which takes no room, as a link. */
MUST_USE enum status snippet_count_change(struct request *rq, struct error *err);
/* Counts a change of a link's notes; ST_QUOTA or ST_FULL as above. */
MUST_USE enum status snippet_count_notes(struct request *rq, struct error *err);
/* On the writing thread: asks again whether there is room, stores the snippet by `put`, which returns its status, and counts its
 * bytes.  Sets s->st. */
void snippet_store(struct request *rq, struct db *db, enum status (*put)(struct snippet_state *s, struct db *db));
/* On the store's writing thread, after a change: to who was not allowed it, a private link that they may not open either is not found. */
void snippet_hide(struct snippet_state *s, struct db *db);
/* Counts a miss of the request's address. */
void snippet_count_miss(struct request *rq);
/* Counts the miss and answers 404. */
enum MHD_Result snippet_not_found(struct request *rq);
/* Returns true if the store has failed on the request, and sets *answer. */
bool snippet_store_failed(struct request *rq, enum MHD_Result *answer);

/* Reads the argument `revision`.  Returns false if it is not a number from 1. */
bool snippet_read_revision(struct request *rq, int *out);
/* Answers that the argument is wrong. */
enum MHD_Result snippet_bad_revision(struct request *rq);

/* Reads the revision of the snippet s->id_hash into s->snippet, its document with the link's access, and sets s->st, s->found and s->is_private; on a store thread.  A
 * private one that s->who may not open is not found.  extent: STORE_DOC or STORE_WHOLE. */
void snippet_fetch(struct snippet_state *s, struct db *db, enum store_extent extent);
/* The whole of it. */
void snippet_load(struct snippet_state *s, struct db *db);
/* Keeps the store's answer for the next requests, if the snippet was found.  Runs on a store thread. */
void snippet_keep(struct request *rq, const struct buf *bytes);
/* Looks up the id that is the rest of the path before `suffix`: fn runs on a store thread, unless the answer is kept.
 * True: *answer is what the handler returns now.  False: state->kept is the answer, or fn has run. */
bool snippet_look_up_kept(struct request *rq, enum kept_kind kind, const char *suffix,
                          void (*fn)(struct request *, struct db *), enum MHD_Result *answer);
/* Sends the kept bytes, or else those of the answer, and takes them from the state.  The caller sets the type and the
 * disposition. */
enum MHD_Result snippet_send(struct request *rq, struct http_bytes *b);
/* Makes a work from the frames that were stored with the snippet.  The caller releases it. */
MUST_USE enum status snippet_thaw(const struct store_snippet *s, struct work **out, struct error *err);
/* Copies the frames of the request's work, which has ended, into the snippet. */
MUST_USE enum status snippet_take_frames(struct request *rq);

/* On the store's writing thread: stores state->snippet under a new id, which it sets together with the edit token; found is false
 * if the parent does not exist. */
void snippet_put_new(struct request *rq, struct db *db);

/* POST /api/v1/snippets/ID/access (snippet_access.c); the id has id_len bytes. */
enum MHD_Result snippet_change_access(struct request *rq, size_t id_len);
/* POST /api/v1/snippets/ID/notes; the id has id_len bytes. */
enum MHD_Result snippet_post_notes(struct request *rq, size_t id_len);

/* Members of a document besides the request and the pipeline's version; NULL: absent, but for the view, which is
 * null. */
struct snippet_extra {
  const json_t *title, *view, *ce;
  const json_t *access; /* of a private link (access.h) */
};
/* Writes the document of a snippet: {"access"?,"title"?,"view","request","pipeline","ce"?}.  The request is the job without its
 * scope. */
MUST_USE enum status snippet_write_doc(struct buf *out, const struct job *job, const struct snippet_extra *extra,
                                       struct error *err);

/* Appends the address where the snippet is reported; report_url must not be NULL. */
void snippet_put_report_url(struct buf *out, const struct snippet_state *s);

const char *snippet_visibility(const struct store_snippet *s, bool is_private); /* "public", "unlisted" or "private" */
/* Writes "key": ms, or null if ms is 0. */
void snippet_put_time(struct buf *b, const char *key, int64_t ms);

#endif
