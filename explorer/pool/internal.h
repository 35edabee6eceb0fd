/* What supervise.c, zygote_link.c and child.c share.  Only the pool's thread touches these, except where said. */
#ifndef POOL_INTERNAL_H
#define POOL_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "base/buf.h"
#include "job/work.h"
#include "pool/pool.h"
#include "pool/wire.h"

enum { KIDS_MAX = 128, EVENTS_MAX = 64 };

enum kid_state {
  KID_IDLE,    /* jailed, waits for a job */
  KID_RUNNING, /* has one */
  KID_LEAVING, /* its work is over, or its stream ended: we wait for word of its exit */
};

struct kid {
  uint32_t id;
  enum kid_state state;
  int fd, pidfd;
  struct work *work; /* a reference while RUNNING, or LEAVING without a verdict */
  struct buf in;     /* bytes of frames not yet complete */
  struct buf out;    /* the job, as far as not yet written */
  size_t out_at;
  int64_t deadline_ms; /* RUNNING: of the job; LEAVING: of the wait for its exit */
  int64_t began_ms, waited_ms;
  uint32_t watch_id;
  bool is_retry;
  bool is_warned; /* RUNNING: was asked to stop */
};

struct queued {
  struct work *work;
  int64_t since_ms;
  uint32_t watch_id; /* names the work in events about its client */
  bool is_retry;     /* its first child died before it began */
};

struct zygote_link {
  pid_t pid; /* 0: none */
  int fd;
  bool is_up; /* said hello */
  int asked;  /* children asked for and not yet come */
  int64_t started_ms;
  int64_t retry_at_ms; /* when to start another one, or to ask for children again */
  int failures;        /* in a row */
};

struct pool {
  struct pool_config cfg;
  pthread_t thread;
  int epoll_fd, wake_fd;
  struct zygote_link zygote;
  struct kid kids[KIDS_MAX];
  int n_kids;
  int64_t refill_at_ms; /* 0: nothing to refill */

  pthread_mutex_t lock; /* guards what follows */
  struct queued *queue; /* queue_max places, first come first served */
  int n_queued;
  struct work *cancelled[KIDS_MAX]; /* running works whose reader left; references */
  int n_cancelled;
  uint32_t last_watch_id;
  bool is_closing;
  int64_t closing_deadline_ms;
  struct pool_health health;
};

/* What an epoll event is about; the low 32 bits say which. */
enum event_kind { EV_WAKE, EV_ZYGOTE, EV_KID, EV_CLIENT };
static inline uint64_t event_tag(enum event_kind k, uint32_t which) {
  return (uint64_t)k << 32 | which;
}

/* zygote_link.c */
void zygote_start(struct pool *p, int64_t now);
void zygote_read(struct pool *p, int64_t now);
void zygote_ask(struct pool *p, int n);
void zygote_lost(struct pool *p, const char *why, int64_t now);
void zygote_end(struct pool *p);
bool zygote_reap(struct pool *p);

/* child.c */
void kid_add(struct pool *p, const struct ctl_msg *m, int fd, int pidfd);
struct kid *kid_find(struct pool *p, uint32_t id);
struct kid *kid_idle(struct pool *p);
void kid_give(struct pool *p, struct kid *k, struct queued *q, int64_t now);
void kid_event(struct pool *p, struct kid *k, uint32_t events, int64_t now);
void kid_exited(struct pool *p, struct kid *k, const struct ctl_msg *m);
void kid_overdue(struct pool *p, struct kid *k);
void kid_cancel(struct pool *p, struct kid *k);
void kid_drop(struct pool *p, struct kid *k); /* kills it; a work it still has ends as "worker died" */
int kids_in(const struct pool *p, enum kid_state s);

/* supervise.c: puts a work back at the head of the queue because the child it was given to never started it. */
void pool_requeue(struct pool *p, struct work *w, uint32_t watch_id);

#endif
