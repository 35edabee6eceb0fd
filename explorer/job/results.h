/* results: every compile goes through here, so that equal ones run once.
 *
 * A request for a key that runs already joins it; one for a key that ended lately gets its frames from memory; one that
 * the store knows gets them from there; only then is the job given to the pool.  What ends as this job always ends
 * (not by an accident such as a killed worker) is kept, in memory and in the store, until newer results need the room; in
 * memory also only for a while after its last use: what was deleted from the store does not outlive that.
 *
 * A key covers the request's scope (driver/job.h), so that a client can find only what it knows the scope of.
 */
#ifndef JOB_RESULTS_H
#define JOB_RESULTS_H

#include <stdint.h>

#include "driver/job.h"
#include "job/quota.h"
#include "job/work.h"

struct results; /* opaque */
struct pool;
struct store;

struct results_config {
  struct pool *pool;
  struct store *store;
  int64_t memory_max; /* bytes of frames, and of results made of them, kept in memory */
  int64_t memory_ms;  /* for so long after its last use, at most */
  int64_t store_max;  /* bytes that results take in the store */
};

struct results_counts {
  int64_t compiled, joined, from_memory, from_store; /* since start */
  int64_t memory_bytes;
};

enum results_mode {
  RESULTS_CACHED, /* whatever is there already will do */
  RESULTS_FRESH,  /* compiles anew and keeps that */
  RESULTS_APART,  /* compiles anew; neither shared nor kept */
};

MUST_USE enum status results_start(const struct results_config *cfg, struct results **out, struct error *err);
/* Once no work is left and the store's threads have ended. */
void results_stop(struct results *r);

struct results_ask {
  const struct job *job;
  enum results_mode mode;
  int client_fd;
  struct client *payer;       /* borrowed; NULL: it has no quota */
  struct work_waiter *waiter; /* the caller as a reader */
  /* with ST_QUOTA: */
  enum quota_verdict verdict;
  int retry_s;
};

/* A work for this job, with the caller as a reader; a client that hangs up cancels it unless others read it too.
 * ST_BUSY when there is no room for it, ST_QUOTA when its client has no share left; a work may also end refused. */
MUST_USE enum status results_compile(struct results *r, struct results_ask *ask, struct work **out, struct error *err);
/* A reader is called off (work_call_off); nobody else's reading ends with it.  False: there was nothing to call off. */
bool results_call_off(struct results *r, struct work *w, struct work_waiter *me, int client_fd);
/* A work that is, or will be, what is known under the key, with the caller as a reader; it is refused if that is
 * nothing.  NULL when out of memory. */
struct work *results_find(struct results *r, const char key[JOB_KEY_SIZE]);
/* The caller of one of the above reads no more, and its client is not watched any more. */
void results_release(struct results *r, struct work *w, struct work_waiter *me, int client_fd);
void results_look(struct results *r, struct results_counts *out);

#endif
