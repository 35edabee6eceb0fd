/* store: keeps snippets, and the results that are not in memory any more.
 *
 * There are two databases with one schema: "sqlite:PATH" (for one server) and "postgresql://…" (for several).  What is
 * written is durable once the function has returned ST_OK: it survives kill -9 and power loss.  What is read is checked
 * against its checksum: a flipped bit gives ST_IO, never a wrong text.
 *
 * All functions that take a `struct db` block.  The server calls them only in tasks, on the store's own threads; the
 * command line calls them directly.
 *
 * Statuses: ST_BUSY: the database cannot be reached now; ST_FULL: there is no space, and nothing was stored; ST_IO: the
 * database fails or is damaged; ST_LIMIT: the data are larger than the store takes.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/ident.h"

struct store; /* connections and their threads */
struct db;    /* one connection */
struct s3_site;

enum {
  STORE_BLOB_MAX = 48 << 20, /* bytes of one text, or of a job's packed frames; a job may send less */
  STORE_SECRET_SIZE = 32,
  STORE_ANCESTORS_MAX = 32,
};

int64_t store_now_ms(void); /* Unix time */

/* ---- the threads ------------------------------------------------------------------------------------------------- */

enum store_lane {
  STORE_READ,  /* on a few threads */
  STORE_WRITE, /* on one thread, one after the other */
  STORE_BUILD, /* what takes long: archives, diffs, answers cut out of results; of one owner, one at a time */
  STORE_LANES
};

struct store_task {
  struct store_task *next;
  uint64_t owner; /* at most one of an owner's tasks runs at a time; 0: it has no owner */
  void (*run)(struct store_task *t, struct db *db); /* t is no longer used by the store */
};

/* Opens the database, migrates it, and starts the threads.  objects: where results are moved to (objects.h), borrowed until
 * store_close; NULL: nowhere.  ST_BUSY: another process writes to this SQLite file. */
MUST_USE enum status store_open(const char *url, struct s3_site *objects, struct store **out, struct error *err);
/* Queues t; false, and t is not used, when too many tasks wait, in all or of this owner, or the store was stopped. */
bool store_submit(struct store *s, enum store_lane lane, struct store_task *t);
/* Runs the queued tasks and ends the threads; no task is taken any more.  NULL is fine, here and below. */
void store_stop(struct store *s);
/* Stops it, if that was not done, and frees it. */
void store_close(struct store *s);
/* True if several servers may write to it. */
bool store_is_shared(const struct store *s);
/* From now on store_has_room is false while the store takes max_bytes or more; 0: it may take any number. */
void store_limit(struct store *s, int64_t max_bytes);
/* Any thread.  Reading, deleting, and results, which make room for each other, go on without room. */
bool store_has_room(const struct store *s);
/* Counts what was just stored, until the store is measured again. */
void store_took(struct store *s, int64_t bytes);
/* The same for what was moved to the object store. */
void store_took_objects(struct store *s, int64_t bytes);
/* The object store; NULL: there is none. */
struct s3_site *store_objects(const struct store *s);
enum store_space { SPACE_OK, SPACE_NEARLY_FULL /* at four fifths of its ceiling */, SPACE_FULL };
struct store_counts {
  int waiting[STORE_LANES];
  int64_t done[STORE_LANES], refused[STORE_LANES];
  int64_t bytes, max_bytes; /* what it takes, without free pages, objects included; its ceiling, 0: none */
  int64_t object_bytes,
      objects_to_send; /* in the object store, and blobs that are to go there; counted once a minute */
  int64_t free_bytes;  /* left where SQLite's file is; -1: unknown */
  int64_t links;       /* with their revisions; counted once a minute */
  int runs_waiting, runs_running,
      runners; /* on Neuron hosts, and these; counted every few seconds while something is written */
  enum store_space space;
};
void store_look(struct store *s, struct store_counts *out);
/* STORE_SECRET_SIZE bytes, the same for every server on this store; known to no one else. */
const uint8_t *store_secret(const struct store *s);

/* ---- snippets ---------------------------------------------------------------------------------------------------- */

struct store_snippet {
  struct ident_hash id, token, parent;
  bool has_parent;
  char public_id[IDENT_PUBLIC_LEN + 1]; /* "" for an unlisted one */
  int64_t created_ms, expires_ms;       /* 0: never */
  int revision, n_revisions;            /* from 1; of a snippet that was read */
  struct buf doc, frames;               /* any bytes, for the store */
  int64_t packed;                       /* bytes that doc and frames take in the store; of a snippet that was put */
};

void store_snippet_init(struct store_snippet *s);
void store_snippet_clear(struct store_snippet *s);

/* Sets s->packed.  ST_DENIED when the id is taken: try another one. */
MUST_USE enum status store_put_snippet(struct db *db, struct store_snippet *s, struct error *err);
/* How much of a snippet is read: neither doc nor frames, doc, or both; the others stay empty. */
enum store_extent { STORE_ROW, STORE_DOC, STORE_WHOLE };
/* Fills *out, which the caller initialises and clears, if the snippet exists and has not expired. */
MUST_USE enum status store_get_snippet(struct db *db, const struct ident_hash *id, enum store_extent extent,
                                       struct store_snippet *out, bool *found, struct error *err);
/* The same for one of its revisions, which begin at 1; 0 is the newest. */
MUST_USE enum status store_get_revision(struct db *db, const struct ident_hash *id, int revision,
                                        enum store_extent extent, struct store_snippet *out, bool *found,
                                        struct error *err);
/* Adds doc and frames of `s` as a new revision of the snippet, if the token is the snippet's, and sets revision,
 * n_revisions, public_id, expires_ms and packed of s.  *found: the snippet existed; *added: and the token was right.  ST_LIMIT when it
 * has STORE_REVISIONS_MAX already. */
enum { STORE_REVISIONS_MAX = 50 };
MUST_USE enum status store_add_revision(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                                        struct store_snippet *s, bool *found, bool *added, struct error *err);
/* Replaces the document of a revision (0: the newest) by what `rewrite` appends to `out`.  `now` has the row of the first revision,
 * with the link's token, and of the revision its number and its document.  If `rewrite` appends nothing, or fails, nothing changes.  It may
 * be called again for the same change.  *packed: bytes that the new document takes in the store; *found: the revision existed. */
typedef enum status (*store_rewrite_fn)(void *user, const struct store_snippet *now, struct buf *out,
                                        struct error *err);
MUST_USE enum status store_rewrite_doc(struct db *db, const struct ident_hash *id, int revision,
                                       store_rewrite_fn rewrite, void *user, int64_t *packed, bool *found,
                                       struct error *err);
/* Removes all its revisions, and cached results with the same frames, if the token is the snippet's, or NULL: an operator needs none.
 * *found: it existed; *removed: and the token was right. */
MUST_USE enum status store_delete_snippet(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                                          bool *found, bool *removed, struct error *err);
/* The same, but it expires at `at_ms`, unless it was to expire earlier. */
MUST_USE enum status store_expire_snippet(struct db *db, const struct ident_hash *id, const struct ident_hash *token,
                                          int64_t at_ms, bool *found, bool *changed, struct error *err);
/* Removes expired snippets in the same way; *n: how many.  Returns the first failure; a snippet that cannot be removed
 * does not keep the others. */
MUST_USE enum status store_purge(struct db *db, int64_t *n, struct error *err);

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* key: 64 hexadecimal digits.  Appends the frames if there is such a result. */
MUST_USE enum status store_get_result(struct db *db, const char *key, struct buf *frames, bool *found,
                                      struct error *err);
MUST_USE enum status store_put_result(struct db *db, const char *key, const void *frames, size_t len,
                                      struct error *err);
/* Removes the least recently used results until they take at most max_bytes in the store. */
MUST_USE enum status store_trim_results(struct db *db, int64_t max_bytes, struct error *err);

/* Writes a row without a meaning, and reads it back. */
MUST_USE enum status store_probe(struct db *db, struct error *err);

/* How many bytes the store takes, and how many links it has.  The first is cheap for SQLite; the second reads an index. */
MUST_USE enum status store_measure(struct db *db, int64_t *bytes, struct error *err);
/* Bytes in the object store, and how many blobs are to be sent there. */
MUST_USE enum status store_measure_objects(struct db *db, int64_t *bytes, int64_t *to_send, struct error *err);
MUST_USE enum status store_count_links(struct db *db, int64_t *n, struct error *err);

/* ---- for the command line (walk.c) ------------------------------------------------------------------------------- */

struct store_report {
  int64_t snippets, results, blobs, damaged;
};
/* Reads everything and checks every checksum.  Damaged rows are counted, and `tell` gets a line for each.  objects, here and
 * below: where the results of the store lie that is read; may be NULL. */
MUST_USE enum status store_check(const char *url, struct s3_site *objects, struct store_report *out,
                                 void (*tell)(const char *line), struct error *err);
/* Copies what can be read of a damaged SQLite store, past pages that cannot; cached results are left out. */
MUST_USE enum status store_salvage(const char *from, const char *to, struct s3_site *objects, struct store_report *out,
                                   void (*tell)(const char *line), struct error *err);
/* Copies everything, as it is at one moment, into the store at `to`; ST_INPUT if that is not empty.  Damaged rows are
 * left out, and `tell` gets a line for each. */
MUST_USE enum status store_copy(const char *from, const char *to, struct s3_site *objects, struct store_report *out,
                                void (*tell)(const char *line), struct error *err);

#endif
