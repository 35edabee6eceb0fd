/* What supervise.c, zygote_link.c and child.c share.  Only the pool's thread touches these, except where said. */
#ifndef POOL_INTERNAL_H
#define POOL_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "base/buf.h"
#include "job/work.h"
#include "pool/pool.h"
#include "pool/wire.h"

enum { KIDS_MAX = 128, EVENTS_MAX = 64, ZYGOTES_MAX = 4, TRIES_MAX = 4 };

enum kid_state {
  KID_IDLE,    /* jailed, waits for a job */
  KID_RUNNING, /* has one */
  KID_LEAVING, /* its work is over, or its stream ended: we wait for word of its exit */
};

struct kid {
  uint32_t id; /* ours */
  struct zygote *zygote;
  uint32_t zygote_id; /* its zygote's name for it */
  pid_t pid;          /* for looking at; signals go by its zygote (zygote_signal) */
  enum kid_state state;
  int fd, pidfd;
  struct work *work; /* a reference while RUNNING, or LEAVING without a verdict */
  struct buf in;     /* bytes of frames not yet complete */
  struct buf out;    /* the job, as far as not yet written */
  size_t out_at;
  int64_t deadline_ms; /* RUNNING: of the job; LEAVING: of the wait for its exit */
  int64_t began_ms, waited_ms;
  int64_t yields_at_ms; /* RUNNING: when a job becomes a long one, which lets short ones go first; 0: it has */
  uint32_t watch_id;
  int tries;
  bool is_warned;      /* RUNNING: was asked to stop */
  long resident_start; /* RUNNING: pages of its own when it got the job */
};

struct queued {
  struct work *work;
  int64_t since_ms;
  uint32_t watch_id; /* names the work in events about its client */
  int tries;         /* children that died before they began it */
  int turn;          /* works of the same client that were there before it: see struct pool */
};

enum zygote_role {
  ZYGOTE_NONE,     /* a free place */
  ZYGOTE_SPARE,    /* warms up, or waits to take over */
  ZYGOTE_ACTIVE,   /* makes the children; at most one */
  ZYGOTE_RETIRING, /* was replaced; its children finish their jobs */
  ZYGOTE_ENDING,   /* was told to end; killed at end_at_ms */
};

struct zygote {
  enum zygote_role role;
  uint32_t launch_id; /* what the launcher knows it by */
  bool is_gone;       /* the launcher said so */
  pid_t pid;          /* for the log, once it is up */
  int fd;
  bool is_up; /* said hello */
  int asked;  /* children asked for and not yet come */
  int jobs;   /* that its children got */
  int64_t started_ms, active_ms, end_at_ms;
};

struct pool {
  struct pool_config cfg;
  pthread_t thread;
  int epoll_fd, wake_fd;
  uint32_t last_launch_id;
  struct zygote zygotes[ZYGOTES_MAX];
  int64_t retry_at_ms; /* when to start a zygote, or to ask for children again */
  int failures;        /* in a row, of children and of zygotes */
  int no_jail_signs;   /* in a row: what speaks for there being no jail, each in its weight */
  bool has_cgroup;     /* jobs' memory is limited by the kernel */
  uint32_t last_kid_id;
  struct kid kids[KIDS_MAX];
  int n_kids;
  int64_t refill_at_ms; /* 0: nothing to refill */
  int64_t memory_at_ms; /* when to look at jobs' memory again */
  int64_t trim_at_ms;   /* when to give back memory; 0: nothing ran since that was done */

  pthread_mutex_t lock; /* guards what follows */
  /* queue_max places: the first work of each client, then the second of each, and among those first come first served,
   * so that who sends many waits for himself */
  struct queued *queue;
  int n_queued;
  bool is_queue_moved;              /* places in it have changed since they were last told */
  struct work *cancelled[KIDS_MAX]; /* running works whose reader left; references */
  int n_cancelled;
  uint32_t last_watch_id;
  bool is_closing;
  int64_t closing_deadline_ms;
  struct pool_health health;
};

/* What an epoll event is about; the low 32 bits say which. */
enum event_kind { EV_WAKE, EV_LAUNCHER, EV_ZYGOTE, EV_KID, EV_CLIENT };
static inline uint64_t event_tag(enum event_kind k, uint32_t which) {
  return (uint64_t)k << 32 | which;
}

/* zygote_link.c */
struct zygote *zygote_active(struct pool *p); /* NULL: none */
/* Starts, promotes, retires and ends zygotes; each turn of the loop. */
void zygotes_tend(struct pool *p, int64_t now);
void zygote_read(struct pool *p, struct zygote *z, int64_t now);
void zygote_ask(struct pool *p, struct zygote *z, int n);
/* Its child gets a signal; of a zygote that is lost or ending the children end anyway. */
void zygote_signal(struct zygote *z, uint32_t zygote_id, int sig);
void zygote_nice(struct zygote *z, uint32_t zygote_id, int nice);
void launcher_read(struct pool *p, int64_t now);
void zygotes_end(struct pool *p);                       /* all of them, and waits until none is left */
int64_t zygotes_due(const struct pool *p, int64_t now); /* when zygotes_tend has something to do */

/* supervise.c: a work ended, or was refused; how: one of pool_outcomes. */
void pool_count(struct pool *p, const char *how);

/* child.c */
void kid_add(struct pool *p, struct zygote *z, const struct ctl_msg *m, int fd, int pidfd);
struct kid *kid_find(struct pool *p, uint32_t id);
struct kid *kid_find_of(struct pool *p, const struct zygote *z, uint32_t zygote_id);
struct kid *kid_idle(struct pool *p);
void kid_give(struct pool *p, struct kid *k, struct queued *q, int64_t now);
void kid_event(struct pool *p, struct kid *k, uint32_t events, int64_t now);
void kid_exited(struct pool *p, struct kid *k, const struct ctl_msg *m);
void kid_overdue(struct pool *p, struct kid *k);
void kid_yield(struct kid *k); /* its job is a long one */
void kid_cancel(struct pool *p, struct kid *k);
void kid_retire(struct kid *k);               /* an idle one that is not needed any more */
void kid_drop(struct pool *p, struct kid *k); /* kills it; a work it still has ends as "worker died" */
int kids_in(const struct pool *p, enum kid_state s);
int kids_of(const struct pool *p, const struct zygote *z);
/* Ends running jobs that use more memory than they may, where no control group does. */
void kids_watch_memory(struct pool *p);

/* supervise.c: puts a work back at the head of the queue because the child it was given to never started it. */
void pool_requeue(struct pool *p, struct work *w, uint32_t watch_id, int tries);

#endif
