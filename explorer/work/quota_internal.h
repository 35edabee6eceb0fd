/* quota_internal: what quota.c and quota_open.c share. */
#ifndef WORK_QUOTA_INTERNAL_H
#define WORK_QUOTA_INTERNAL_H

#include <pthread.h>

#include "base/chain.h"
#include "work/quota.h"

enum { QUOTA_NAME_SIZE = 48, SECOND_US = 1000000 };

struct client {
  struct chain_link link; /* first: a struct chain_link * is also a struct client * */
  struct quota *quota;
  struct client *outer;         /* the network that it is in, held; NULL: none */
  int shares;                   /* that it has: of a client, 1 */
  int inner;                    /* clients that are in it */
  int holds, jobs, connections; /* 0 or more */
  struct quota_open elsewhere;  /* on other servers of the site, as they say */
  struct quota_open told;       /* what they have been told of this one */
  int64_t told_at_us;
  struct client *next_told; /* in the list of those of whom something was told, which holds them */
  bool is_listed;
  int64_t full_at_us;                       /* when the bucket of compiles will be full again */
  int64_t links_full_at_us, day_full_at_us; /* the buckets of links */
  int64_t notes_full_at_us;                 /* the bucket of notes */
  int64_t bytes_full_at_us;                 /* the bucket of their bytes; may lie more than a day ahead: owed */
  int64_t wait_until_us;      /* what the last refusal told the client; 0: it was not refused since its last compile */
  int64_t link_wait_until_us; /* the same for links */
  char name[QUOTA_NAME_SIZE];
};

struct quota {
  struct quota_config cfg;
  uint64_t seed;        /* so that nobody can choose addresses that fall into one chain */
  pthread_mutex_t lock; /* guards what follows, and all clients */
  struct chain_table clients;
  int sweep; /* the chain after the last that was looked through for room */
  int64_t refused[QUOTA_VERDICTS];
  quota_tell_fn tell; /* NULL: there are no other servers */
  void *tell_user;
  struct client *told;
  struct chain_table elsewhere; /* of struct open_elsewhere (quota_open.c) */
};

/* Under the lock: the client has one more open; the other servers are told, if that matters to them. */
void quota_tell_more(struct client *c);
/* Forgets what other servers have open, and lets go whoever they were told of; for quota_stop. */
void quota_forget_open(struct quota *q);

#endif
