/* What the files of a search share. */
#ifndef API_SEARCH_INTERNAL_H
#define API_SEARCH_INTERNAL_H

#include <semaphore.h>

#include "api/search.h"
#include "driver/job_runner.h"
#include "work/quota.h"
#include "work/work.h"

struct search {
  const struct services *services;
  struct searches *all;
  struct search *next;
  struct work *work;    /* the answer */
  struct client *payer; /* held; NULL: it has no quota */
  char address[ADDRESS_TEXT_SIZE];
  int client_fd;
  int64_t until_ms;   /* of clock_now_ms */
  sem_t woken;        /* the job that runs has ended */
  struct arena arena; /* of the jobs */
  struct job jobs[2]; /* two for a parting */
  char scope[JOB_SCOPE_MAX + 1];
  int seconds, candidates;
  bool with_values;
  /* Searches, and says what was found.  ST_INPUT: err is for the user. */
  enum status (*go)(struct search *s, const struct job_runner *runner, struct error *err);
};

/* Zeroed, with an empty arena; NULL when out of memory. */
struct search *search_new(void);
void search_free(struct search *s);
/* Takes s, whose jobs are set, and makes it the request's work.  ST_QUOTA, ST_BUSY: there are too many. */
MUST_USE enum status search_begin(struct request *rq, struct search *s, struct error *err);
/* Adds a frame to the answer, and clears b.  A frame for which there is no room is left out. */
void search_say(struct search *s, struct buf *b);
/* True once the server ends. */
bool search_is_ending(const struct search *s);

#endif
