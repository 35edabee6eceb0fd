/* The client that a work is counted against. */
#include <assert.h>

#include "work/internal.h"
#include "work/quota.h"

void work_set_payer(struct work *w, struct client *payer) {
  assert(!w->payer);
  w->payer = payer;
}

int work_turn(struct work *w) {
  pthread_mutex_lock(&w->lock);
  int n = client_jobs(w->payer); /* w among them */
  pthread_mutex_unlock(&w->lock);
  return n > 0 ? n - 1 : 0;
}

const void *work_payer(struct work *w) {
  pthread_mutex_lock(&w->lock);
  const void *payer = client_site(w->payer);
  pthread_mutex_unlock(&w->lock);
  return payer;
}

void work_release_payer(struct work *w) {
  pthread_mutex_lock(&w->lock);
  struct client *payer = w->payer;
  bool has_run = w->began_us != 0;
  w->payer = NULL;
  pthread_mutex_unlock(&w->lock);
  client_end_job(payer, has_run);
  client_let_go(payer);
}
