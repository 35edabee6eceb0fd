/* pool: runs works in jailed children, a few at a time.
 *
 * One thread owns the zygotes and the children; everything below may be called from any thread.  Idle children wait in
 * their jails, and a work is given to one by a write.  Each work has one wall-clock deadline: when it passes, the
 * child's zygote is told to kill the child, and its pid namespace with it.  A second zygote is kept warm; it
 * takes over when the first dies or has been in use for long enough, so that waiting works are not delayed.
 *
 * Works name the version of the compiler that is to run them.  Other versions than today's have a zygote only while they are in use:
 * it is started for the first work, and ends after some minutes without one.  All versions share the queue and the workers.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "jail/layer.h"
#include "jail/limits.h"

struct pool; /* opaque */
struct versions;
struct work;

struct pool_config {
  const struct versions *versions; /* whose works it takes; outlives the pool */
  int launcher_fd;                 /* the process that starts zygotes (launcher.h); pool_free closes it */
  int workers;                     /* works that run at once */
  int queue_max;                   /* works that may wait for a child */
  int job_timeout_ms;              /* wall-clock time of one work, from when a child gets it */
  int wait_timeout_ms;             /* a work that waited this long for a child is refused */
  struct jail_limits limits;       /* of one work */
  int zygote_jobs, zygote_minutes; /* a zygote is replaced after so many works, or so long */
};

/* How works end: "ok", "error" (the kernel was refused), …; a work that ends as POOL_REFUSED never reached a child. */
enum { POOL_OUTCOMES = 9, POOL_REFUSED = 8 };
extern const char *const pool_outcomes[POOL_OUTCOMES];

struct pool_health {
  bool is_ready;    /* a zygote is up and its children get jailed */
  bool has_no_jail; /* children cannot be jailed: works are refused at once */
  int running, waiting, idle;
  int long_running;                /* of those that run: longer than a quarter of a second */
  int restarts;                    /* zygotes that died, since start */
  int replaced;                    /* zygotes that were replaced by plan */
  int64_t outcomes[POOL_OUTCOMES]; /* since start */
  enum jail_level level;
  char level_why[160]; /* what a higher level would need */
  uint32_t layers;     /* of the newest child's jail */
  int landlock_abi;
  char trouble[200]; /* why it is not ready; "" if it is, or is just starting */
};

MUST_USE enum status pool_start(const struct pool_config *cfg, struct pool **out, struct error *err);
/* Watches a client from now on: if it hangs up, the work submitted with this id is cancelled, unless others read it
 * too. 0: it cannot be watched. */
uint32_t pool_watch(struct pool *p, int client_fd);
void pool_unwatch(struct pool *p, int client_fd); /* before the descriptor is closed */
/* Queues w, of which the caller is a reader (takes a reference).  watch_id: of its client, or 0.  From now on the work
 * is stopped when its last reader leaves, whether it waits or runs.  ST_BUSY when the queue is full or the pool is
 * closing. */
MUST_USE enum status pool_submit(struct pool *p, struct work *w, uint32_t watch_id);
/* The server answers requests now: the launcher tells the service manager. */
void pool_set_serving(struct pool *p);
/* Whether works of another version than today's can run: its zygote may have to be started for them; or that has failed, and they
 * are refused for a while.  Today's is always up here: pool_look says how it does. */
enum pool_version { POOL_VERSION_UP, POOL_VERSION_STARTING, POOL_VERSION_DOWN };
enum pool_version pool_look_version(struct pool *p, const char *pipeline);
void pool_look(struct pool *p, struct pool_health *h);
/* Refuses new works, lets running ones go on for the grace period, then ends everything and the thread.  Afterwards
 * every work has ended or was refused, no process is left, and the other functions may still be called. */
void pool_close(struct pool *p, int grace_ms);
void pool_free(struct pool *p); /* once it was closed and no other function will be called; NULL is fine */

#endif
