/* What the files of pool/ share.  Only the pool's thread uses these, except where it is said otherwise.
 *
 *   supervise.c    the loop
 *   launcher_link.c  the launchers: who starts zygotes, whether it answers
 *   zygote_link.c  zygotes: their messages, their replacement
 *   child.c        children: their frames, their ends
 *   queue.c        works that wait
 *   fair.c         which of them runs next, and running jobs that only wait
 *   signals.c      what is asked of a zygote for one of its children
 */
#ifndef POOL_INTERNAL_H
#define POOL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "pool/pool.h"
#include "pool/versions.h"
#include "pool/wire.h"
#include "work/work.h"

enum {
  KIDS_MAX = 128,
  EVENTS_MAX = 64,
  TRIES_MAX = 4,
  LAUNCHERS_MAX = 3,
  TODAY_ZYGOTES_MAX = 4,
  OTHER_ZYGOTES_MAX = 2, /* of each other version */
  ZYGOTES_MAX = TODAY_ZYGOTES_MAX + (VERSIONS_MAX - 1) * OTHER_ZYGOTES_MAX,
};

enum kid_state {
  KID_IDLE,    /* jailed, waits for a job */
  KID_RUNNING, /* has one */
  KID_LEAVING, /* its work is over, or its stream ended: we wait for its zygote to report its exit */
};

struct kid {
  uint32_t id; /* unique in the pool */
  struct zygote *zygote;
  uint32_t zygote_id; /* the zygote's number for it */
  pid_t pid;          /* for reading /proc; signals are sent by its zygote (signals.c) */
  enum kid_state state;
  int fd, pidfd;
  struct work *work; /* a reference while RUNNING, and while LEAVING until it is known why the child ended */
  const void *payer; /* RUNNING: the work's client */
  struct buf in;     /* bytes of frames not yet complete */
  struct buf out;    /* the job's record; written up to out_at */
  size_t out_at;
  int64_t deadline_ms; /* RUNNING: of the job; LEAVING: of the wait for the exit */
  int64_t began_ms, waited_ms;
  int64_t yields_at_ms; /* RUNNING: when the job becomes a long one, whose priority is lowered; 0: it was */
  uint32_t watch_id;
  int64_t busy_at_ms, busy_ms; /* RUNNING: when it was last seen to compute, and its processor time then (fair.c) */
  int tries;
  bool is_warned;      /* RUNNING: was asked to stop */
  long resident_start; /* RUNNING: pages of its own when it was given the job */
};

struct queued {
  struct work *work;
  const void *payer; /* its client, as work_payer gives it */
  int64_t since_ms;
  uint32_t watch_id; /* names the work in events about its client */
  int tries;         /* children that died before they began it */
  int turn;          /* works of the same client that waited or ran before it (queue.c) */
  int version;       /* the place of the version that is to run it */
};

enum zygote_role {
  ZYGOTE_NONE,     /* a free place */
  ZYGOTE_SPARE,    /* warms up, or waits to take over */
  ZYGOTE_ACTIVE,   /* makes the children; at most one of each version */
  ZYGOTE_RETIRING, /* was replaced, by plan or because it is silent; its children finish their jobs */
  ZYGOTE_ENDING,   /* was told to end; killed at end_at_ms */
};

struct zygote {
  enum zygote_role role;
  int version;        /* its place */
  uint32_t launch_id; /* its number at the launcher */
  int launcher;       /* the place of that in the pool */
  bool is_gone;       /* the launcher has reported its end */
  pid_t pid;          /* for the log, once it is up */
  int fd;
  bool is_up;        /* it has said hello */
  int asked;         /* children that were asked for and have not come yet; 0 or more */
  bool is_silent;    /* RETIRING: because it did not answer */
  int64_t spoken_ms; /* when it was asked for children, or answered */
  int jobs;          /* that its children were given */
  int64_t started_ms, active_ms, end_at_ms;
};

/* How the zygotes of one version do. */
struct lineage {
  int64_t retry_at_ms; /* when to start a zygote, or to ask for children again */
  int failures;        /* in a row, of children and of zygotes */
  int no_jail_signs;   /* in a row: weights of failures that suggest that this machine has no jail */
  int64_t used_ms;     /* of another version than today's: when a work was last given to a child */
  bool is_up;          /* of such a one, as is_down, under the lock: it has an active zygote */
  bool is_down;        /* of such a one: the last zygote did not come up, or makes no children */
};

struct launcher_link {
  int fd;             /* -1: a free place */
  int64_t asked_ms;   /* when it was asked for a sign of life that has not come; 0: it has */
  int64_t ping_at_ms; /* when to ask again */
  bool is_silent;     /* it did not answer in time, or has not answered yet */
};

struct pool {
  struct pool_config cfg;
  pthread_t thread;
  int epoll_fd, wake_fd;
  uint32_t last_launch_id;
  struct launcher_link launchers[LAUNCHERS_MAX]; /* the first is the service's parent */
  int launcher;                                  /* the place of the active one */
  atomic_bool is_serving;                        /* pool_set_serving was called */
  int64_t copy_at_ms;                            /* when to ask for one that stands by, if there is none */
  struct zygote zygotes[ZYGOTES_MAX];
  struct lineage lines[VERSIONS_MAX];
  bool has_cgroup; /* the kernel limits the jobs' memory */
  uint32_t last_kid_id;
  struct kid kids[KIDS_MAX];
  int n_kids;
  int64_t refill_at_ms;   /* 0: nothing to refill */
  int64_t memory_at_ms;   /* when to look at the jobs' memory again */
  int64_t sleepers_at_ms; /* when to look for jobs that only wait again */
  int64_t trim_at_ms;     /* when to give back memory; 0: nothing ran since it was given back */

  pthread_mutex_t lock; /* guards what follows */
  struct queued *queue; /* queue_max places, and one for each child */
  int n_queued;
  bool is_queue_moved;              /* positions have changed since the works got theirs */
  struct work *cancelled[KIDS_MAX]; /* works to be stopped that are not in the queue; references */
  int n_cancelled;
  uint32_t last_watch_id;
  bool is_launcher_silent; /* the active one, and no other can take over */
  bool is_closing;
  int64_t closing_deadline_ms;
  struct pool_health health;
};

/* What an epoll event is about; the low 32 bits of its data hold the id. */
enum event_kind { EV_WAKE, EV_LAUNCHER, EV_ZYGOTE, EV_KID, EV_CLIENT };
static inline uint64_t event_tag(enum event_kind k, uint32_t which) {
  return (uint64_t)k << 32 | which;
}

/* signals.c */
/* A signal, or a nice value, for a child; the children of a zygote that is lost or ending end anyway. */
void zygote_signal(struct zygote *z, uint32_t zygote_id, int sig);
void zygote_nice(struct zygote *z, uint32_t zygote_id, int nice);

/* queue.c */
/* A work has ended or was refused; how: one of pool_outcomes. */
void pool_count(struct pool *p, const char *how);
void pool_wake(struct pool *p); /* any thread: ends the loop's wait */
/* Takes the first work in the queue for which may_run is true; false if there is none.  may_run is called under the lock. */
bool queue_pop(struct pool *p, bool (*may_run)(struct pool *p, const struct queued *q), struct queued *out);
int queue_count(struct pool *p, int version); /* works that wait for a child of this version */
/* A work of another client than this one waits; the lock is held. */
bool queue_has_other(const struct pool *p, const void *payer);
/* Puts a work at the head of the queue because the child it was given to never began it; takes the reference. */
void queue_put_back(struct pool *p, struct work *w, uint32_t watch_id, int tries);
void queue_refuse_overdue(struct pool *p, int64_t now); /* works that have waited too long */
void queue_refuse_all(struct pool *p);
void queue_tell_places(struct pool *p); /* if they have changed */
/* Any thread: stops w, whether it waits or a child has it. */
void queue_cancel(struct pool *p, struct work *w);

/* fair.c */
/* A work of this client may be given to a child now; the pool's lock is held. */
bool fair_may_run(const struct pool *p, const void *payer);
/* Stops running jobs that wait instead of computing while works of other clients wait for their places. */
void fair_end_sleepers(struct pool *p, int64_t now);

/* zygote_link.c */
struct zygote *zygote_active(struct pool *p, int version); /* NULL: none */
/* Starts, promotes, retires and ends zygotes; called in each iteration of the loop. */
void zygotes_tend(struct pool *p, int64_t now);
void zygote_read(struct pool *p, struct zygote *z, int64_t now);
void zygote_ask(struct pool *p, struct zygote *z, int n);
/* It was there before it was asked for: fd, which this takes, is its control socket. */
void zygote_adopt(struct pool *p, uint32_t launch_id, int fd, int64_t now);
void zygote_gone(struct pool *p, uint32_t launch_id, int64_t now); /* its launcher says that it has ended */
void zygotes_end(struct pool *p);                                  /* all of them; returns when none is left */
int64_t zygotes_due(const struct pool *p, int64_t now);            /* when zygotes_tend is to be called at the latest */

/* launcher_link.c */
bool launchers_init(struct pool *p); /* false: the first cannot be watched */
void launchers_clear(struct pool *p);
/* Looks whether they answer, and replaces the active one if it does not; called in each iteration of the loop. */
void launchers_tend(struct pool *p, int64_t now);
int64_t launchers_due(const struct pool *p); /* when launchers_tend is to be called at the latest */
/* False: the first one is gone, and the service must end. */
bool launcher_read(struct pool *p, int which, int64_t now);
/* Asks the active one to start z, with fd as its control socket, or z's own to kill it; false if it could not be asked. */
bool launcher_start(struct pool *p, struct zygote *z, int fd);
bool launcher_kill(struct pool *p, const struct zygote *z);
bool launcher_is_silent(const struct pool *p, int which);

/* child.c */
void kid_add(struct pool *p, struct zygote *z, const struct ctl_msg *m, int fd, int pidfd);
struct kid *kid_find(struct pool *p, uint32_t id);
struct kid *kid_find_of(struct pool *p, const struct zygote *z, uint32_t zygote_id);
struct kid *kid_idle(struct pool *p, int version);
void kid_give(struct pool *p, struct kid *k, struct queued *q, int64_t now);
void kid_event(struct pool *p, struct kid *k, uint32_t events, int64_t now);
void kid_exited(struct pool *p, struct kid *k, const struct ctl_msg *m);
void kid_overdue(struct pool *p, struct kid *k);
void kid_yield(struct kid *k);                  /* its job is a long one: lowers its priority */
void kid_cancel(struct pool *p, struct kid *k); /* its work has no reader any more */
/* Stops its job, which has waited for this long instead of computing. */
void kid_sleeps(struct pool *p, struct kid *k, int ms);
void kid_retire(struct kid *k);               /* an idle one that is not needed any more */
void kid_drop(struct pool *p, struct kid *k); /* kills it; its work, if it has one, ends as "worker died" */
int kids_in(const struct pool *p, enum kid_state s);
int kids_of(const struct pool *p, const struct zygote *z);
/* Ends running jobs that use more memory than they may, where no control group does. */
void kids_watch_memory(struct pool *p);

#endif
