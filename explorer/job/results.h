/* results: every compile goes through here, so that equal ones run once.
 *
 * A request whose key is being compiled already joins that work.  One whose key was compiled lately gets its frames
 * from memory; one that the store knows gets them from the store; only then is the work given to the pool.
 *
 * A work that ended as its job always ends, and not by an accident such as a killed worker, is kept in memory and in
 * the store until newer results need the room.  Memory also drops a result some time after its last use, so that a
 * result that was deleted from the store does not stay there much longer.
 *
 * A key covers the request's scope (driver/job.h), so a client finds only results of scopes that it knows.
 */
#ifndef JOB_RESULTS_H
#define JOB_RESULTS_H

#include <stdint.h>

#include "base/error.h"
#include "driver/job.h"
#include "work/quota.h"
#include "work/work.h"

struct results; /* opaque */
struct pool;
struct store;

struct results_config {
  struct pool *pool;
  struct store *store;
  int64_t memory_max; /* bytes of the frames kept in memory, and of the results made from them */
  int64_t memory_ms;  /* how long a result stays there after its last use */
  int64_t store_max;  /* bytes that results take in the store */
};

struct results_counts {
  int64_t compiled, joined, from_memory, from_store; /* since start */
  int64_t memory_bytes;
};

enum results_mode {
  RESULTS_CACHED, /* an existing result will do */
  RESULTS_FRESH,  /* compiles anew and keeps the result */
  RESULTS_APART,  /* compiles anew; the result is neither shared nor kept */
};

MUST_USE enum status results_start(const struct results_config *cfg, struct results **out, struct error *err);
/* Once no work is left and the store's threads have ended; NULL is fine. */
void results_stop(struct results *r);

struct results_ask {
  enum results_mode mode;
  int client_fd;              /* watched: a client that hangs up cancels the work, unless others read it too */
  struct client *payer;       /* borrowed; NULL: it has no quota */
  struct work_waiter *waiter; /* the caller as a reader */
  /* with ST_QUOTA: */
  enum quota_verdict verdict;
  int retry_s;
};

/* Runs w, which is new and whose reference is taken, or finds an equal work.  *out is the one or the other, with the
 * caller as a reader; it may still end refused.  ST_BUSY when there is no room for it, ST_QUOTA when its client has no
 * share left. */
MUST_USE enum status results_compile(struct results *r, struct work *w, struct results_ask *ask, struct work **out,
                                     struct error *err);
/* The work with this key, with the caller as a reader.  It may not have ended yet; it ends refused if there is no
 * result with this key.  NULL when out of memory. */
struct work *results_find(struct results *r, const char key[JOB_KEY_SIZE]);
/* Returns a reference to the ended work with this key that memory holds, or NULL.  The caller is no reader of it. */
struct work *results_peek(struct results *r, const char key[JOB_KEY_SIZE]);
/* The caller of results_compile or results_find reads no more, and its client is not watched any more. */
void results_release(struct results *r, struct work *w, struct work_waiter *me, int client_fd);
void results_look(struct results *r, struct results_counts *out);

#endif
