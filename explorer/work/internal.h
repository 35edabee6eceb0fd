/* What the files of work/ share: the struct, and what one calls in another under or outside its lock. */
#ifndef WORK_INTERNAL_H
#define WORK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "work/transcript.h"
#include "work/work.h"

struct work {
  atomic_int refs;
  char tag[WORK_TAG_SIZE];
  char *json; /* the job; NULL for one that is loaded */
  size_t json_len;
  work_end_fn on_end;
  void *on_end_user;

  pthread_mutex_t lock; /* guards what follows; transcript.key never changes */
  enum work_state state;
  int64_t began_us;
  struct transcript transcript;
  struct work_waiter *waiters; /* parked readers */
  int n_readers;               /* 0 or more */
  bool is_given_up;            /* the last reader has left */
  bool has_lost_first;         /* the reader it was made for has left */
  int position;                /* in the queue, from 1; 0: it is not there */
  work_abandoned_fn on_abandoned;
  void *on_abandoned_user;
  struct client *payer;
  struct work_face faces[WORK_FACES];
  bool was_loaded;
};

static inline bool work_is_settled(const struct work *w) {
  return w->state == WORK_ENDED || w->state == WORK_REFUSED;
}

/* readers.c, under the lock: calls back the parked readers that need not wait any more. */
void work_wake(struct work *w);
/* payer.c, outside the lock: tells the client that the job is over, once. */
void work_release_payer(struct work *w);

#endif
