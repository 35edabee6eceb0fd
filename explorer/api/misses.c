#include "api/misses.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/index.h"

/* A table of fixed size: addresses that fall into one place share its allowance.  An attacker with very many addresses
 * can bring that about, but gains nothing by it. */
enum { PLACES = 1 << 14, PER_MINUTE = 30, UNIT = 60000 / PER_MINUTE };

struct misses {
  pthread_mutex_t lock;
  int64_t free_at_ms[PLACES]; /* when all misses will be forgiven; each takes UNIT ms */
};

static int64_t *place(struct misses *m, const char *address) {
  return &m->free_at_ms[hash_text(address) % PLACES];
}

enum status misses_start(struct misses **out, struct error *err) {
  struct misses *m = calloc(1, sizeof *m);
  if (!m)
    return fail(err, ST_NOMEM, "misses");
  pthread_mutex_init(&m->lock, NULL);
  *out = m;
  return ST_OK;
}

void misses_stop(struct misses *m) {
  if (!m)
    return;
  pthread_mutex_destroy(&m->lock);
  free(m);
}

bool misses_allow(struct misses *m, const char *address) {
  pthread_mutex_lock(&m->lock);
  bool may = *place(m, address) - clock_now_ms() <= (PER_MINUTE - 1) * (int64_t)UNIT;
  pthread_mutex_unlock(&m->lock);
  return may;
}

void misses_count(struct misses *m, const char *address) {
  int64_t now = clock_now_ms();
  pthread_mutex_lock(&m->lock);
  int64_t *at = place(m, address);
  *at = (*at > now ? *at : now) + UNIT;
  pthread_mutex_unlock(&m->lock);
}
