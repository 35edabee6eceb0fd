/* runs: kernels that wait for a Neuron host, the leases of the runners there, and the runners' tokens.
 *
 * A run waits until a runner takes it.  With that the runner gets a lease, which is a number drawn at random, the fence, and
 * a time; each sign of life moves the time.  After that time another runner may take the run, with another fence.  Whatever a
 * runner writes names its fence, and is refused if the run has another one by now: so a runner that was cut off and comes
 * back changes nothing, and the first outcome that is stored is the only one.  A run that RUN_TRIES runners have lost fails.
 *
 * States, each with what leads on:
 *
 *     waiting ──take──▶ running ──end──▶ done, failed
 *        │  ◀──lease over──┘ └──────cancel──▶ cancelled
 *        └──────────────────────────cancel──▶ cancelled
 *
 * A run whose runner sent wrong data waits for another runner; it fails if after the time of a lease no
 * other is connected.
 *
 * `version` counts the changes that a reader can see.  Times are those of the servers' clocks, which must agree within a
 * fraction of the lease.  The statuses are those of store.h.
 */
#ifndef STORE_RUNS_H
#define STORE_RUNS_H

#include "base/buf.h"
#include "store/store.h"

enum {
  RUN_TRIES = 3,
  RUN_FILES_MAX = 4,          /* that a run is made with */
  RUN_FILE_MAX = 8 << 20,     /* bytes of one */
  RUN_ABOUT_MAX = 64 << 10,   /* bytes of a description: of a run, of a runner, of an outcome */
  RUN_LOG_MAX = 64 << 10,     /* bytes of a log; what is longer is left out, and the log says so */
  RUN_BYTES_MAX = 1 << 30,    /* of the files of runs that have ended: the oldest make room for newer ones */
  RUN_KEEP_MS = 24 * 3600000, /* after its end a run is kept so long, and one that waits, too */
  RUNNER_AWAY_MS = 60000,     /* a runner that has not asked for so long is not connected */
  RUNNER_FORGET_MS = 24 * 3600000,
  TOKEN_NAME_MAX = 64,
};

enum run_state { RUN_WAITING, RUN_RUNNING, RUN_DONE, RUN_FAILED, RUN_CANCELLED, RUN_STATES };
/* "waiting" … */
const char *run_state_name(enum run_state s);

/* What is to be done with the kernel, and what a runner can do: bits. */
enum {
  RUN_COMPILE = 1,
  RUN_EXECUTE = 2,
  RUN_PROFILE = 4,
  RUN_NKI = 8 /* the kernel as NKI, by the vendor's compiler */
};

struct run_file {
  const char *name;
  const void *data;
  size_t len;
};

/* ---- for those who want a run ------------------------------------------------------------------------------------ */

struct store_run {
  struct ident_hash id, owner; /* owner: of the client, for its share */
  const char *target;          /* "trn2" */
  int wants;
  const char *about; /* a JSON object for readers and runners */
  int n_files;
  struct run_file files[RUN_FILES_MAX];
};

enum run_put { RUN_PUT, RUN_QUEUE_FULL, RUN_OWNER_FULL };
/* Queues the run, unless `most` runs wait or are running, or most_own of the same owner; 0: no limit for an owner. */
MUST_USE enum status store_put_run(struct db *db, const struct store_run *r, int most, int most_own, enum run_put *out,
                                   struct error *err);

/* A run as its readers see it.  A run whose lease is over counts as one that waits. */
struct run_view {
  enum run_state state;
  int64_t version, created_ms, ended_ms;
  int tries, position; /* position: in the queue, from 1; 0: it does not wait */
  int wants;
  char target[16];
  struct buf about, log, outcome, runner; /* runner: what the runner that has it says about itself, "" if none has */
};
void run_view_init(struct run_view *v);
void run_view_clear(struct run_view *v);
MUST_USE enum status store_get_run(struct db *db, const struct ident_hash *id, struct run_view *out, bool *found,
                                   struct error *err);
/* Appends a file of the run.  ST_IO if it is damaged. */
MUST_USE enum status store_get_run_file(struct db *db, const struct ident_hash *id, const char *name, struct buf *out,
                                        bool *found, struct error *err);
/* The names and sizes of its files, in order. */
MUST_USE enum status store_each_run_file(struct db *db, const struct ident_hash *id,
                                         void (*fn)(void *user, const char *name, int64_t size), void *user,
                                         struct error *err);
/* *found: it exists.  One that has ended stays as it is. */
MUST_USE enum status store_cancel_run(struct db *db, const struct ident_hash *id, bool *found, struct error *err);

/* ---- for runners ------------------------------------------------------------------------------------------------- */

struct runner {
  struct ident_hash id, token;
  const char *about;  /* JSON */
  const char *target; /* that it can run; "": any */
  int can;
};
/* Notes that the runner is there, and takes the oldest run that it can do.  *found is false if there is none. */
struct run_taken {
  struct ident_hash id;
  int64_t fence;
  int wants, tries;
  char target[16];
  struct buf about; /* the caller initialises and clears it */
};
MUST_USE enum status store_take_run(struct db *db, const struct runner *r, int lease_ms, struct run_taken *out,
                                    bool *found, struct error *err);

/* The runner has ended. */
MUST_USE enum status store_forget_runner(struct db *db, const struct runner *r, struct error *err);
/* Whether there is one: for the store's readers. */
MUST_USE enum status store_has_run(struct db *db, const struct runner *r, bool *out, struct error *err);

/* RUN_HELD: the lease is this one.  RUN_LOST: it is over, or the run was cancelled or removed; nothing was changed.
 * RUN_SETTLED: of store_end_run, the lease is this one and the outcome was stored before. */
enum run_hold { RUN_HELD, RUN_LOST, RUN_SETTLED };
/* A sign of life: moves the lease's end, and appends to the log: UTF-8 without NUL. */
MUST_USE enum status store_beat_run(struct db *db, const struct ident_hash *id, int64_t fence, const char *log,
                                    int lease_ms, enum run_hold *out, struct error *err);
/* Stores a file that the runner sends back, in the place of an earlier one of this name, which begins with RUN_OUT.  They are
 * removed when another runner takes the run. */
#define RUN_OUT "out/"
MUST_USE enum status store_put_run_file(struct db *db, const struct ident_hash *id, int64_t fence,
                                        const struct run_file *f, enum run_hold *out, struct error *err);
/* Ends the run.  state: RUN_DONE or RUN_FAILED. */
MUST_USE enum status store_end_run(struct db *db, const struct ident_hash *id, int64_t fence, enum run_state state,
                                   const char *outcome, enum run_hold *out, struct error *err);
/* Ends the lease because the runner sent wrong data; the run goes to another, if one comes within lease_ms.  why: a line of the log. */
MUST_USE enum status store_refuse_run(struct db *db, const struct ident_hash *id, int64_t fence, const char *why,
                                      int lease_ms, enum run_hold *out, struct error *err);
MUST_USE enum status store_look_hold(struct db *db, const struct ident_hash *id, int64_t fence, enum run_hold *out,
                                     struct error *err);

/* ---- runners and tokens ------------------------------------------------------------------------------------------ */

struct runner_seen {
  const char *about, *token_name;
  int64_t seen_ms;
  bool is_connected, is_busy;
};
MUST_USE enum status store_each_runner(struct db *db, void (*fn)(void *user, const struct runner_seen *r), void *user,
                                       struct error *err);
MUST_USE enum status store_count_runs(struct db *db, int *waiting, int *running, struct error *err);

struct token_seen {
  const char *name;
  int64_t created_ms, revoked_ms; /* 0: it is valid */
};
/* ST_DENIED: there is a token of this name, or this hash. */
MUST_USE enum status store_put_token(struct db *db, const char *name, const struct ident_hash *hash, struct error *err);
/* What its runners have begun goes to others.  *found: there is such a token, and it was valid. */
MUST_USE enum status store_revoke_token(struct db *db, const char *name, bool *found, struct error *err);
MUST_USE enum status store_check_token(struct db *db, const struct ident_hash *hash, bool *is_valid, struct error *err);
MUST_USE enum status store_each_token(struct db *db, void (*fn)(void *user, const struct token_seen *t), void *user,
                                      struct error *err);

/* Removes runs that ended long ago, and the oldest ended ones whose files are more than most_bytes together; removes runners that were not seen for long; fails runs that were lost too often.  On the
 * store's writing thread (threads.c). */
MUST_USE enum status store_purge_runs(struct db *db, int64_t most_bytes, struct error *err);

#endif
