/* Which work runs next, and running jobs that only wait.
 *
 * One client's jobs count as at most half of the workers while works of others wait.  What it runs beyond that was given
 * to it when nobody waited; it goes on, at a lower priority (kid_yield), but takes no place from the others: at most as
 * many jobs as there are workers run besides it.
 *
 * A job that neither computes nor waits for a processor is stopped early if all places are taken and works of other
 * clients wait: a kernel is traced, and there is nothing that a tracer has to wait for.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "pool/internal.h"

enum {
  SLEEP_MAX_MS = 2000, /* a job may do nothing for this long */
  BUSY_MS = 100, /* computes: this much processor time, or time in the line for a processor, within SLEEP_MAX_MS */
};

static int share(const struct pool *p) {
  return p->cfg.workers > 1 ? p->cfg.workers / 2 : 1;
}

static int running_of(const struct pool *p, const void *payer) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++)
    n += p->kids[i].state == KID_RUNNING && p->kids[i].payer == payer;
  return n;
}

/* The places that other clients than this one take: of each at most its share. */
static int places_of_others(const struct pool *p, const void *payer) {
  int n = 0;
  for (int i = 0; i < p->n_kids; i++) {
    const struct kid *k = &p->kids[i];
    if (k->state != KID_RUNNING || k->payer == payer)
      continue;
    int before = 0; /* jobs of the same client that were counted */
    for (int j = 0; j < i; j++)
      before += p->kids[j].state == KID_RUNNING && p->kids[j].payer == k->payer;
    n += before < share(p);
  }
  return n;
}

bool fair_may_run(const struct pool *p, const void *payer) {
  const int own = running_of(p, payer);
  return own + places_of_others(p, payer) < p->cfg.workers && (own < share(p) || !queue_has_other(p, payer));
}

/* Milliseconds for which the process has computed, or its main thread stood in line for a processor; -1: not known. */
static int64_t busy_ms(pid_t pid) {
  char path[40];
  unsigned long user, system;
  unsigned long long waited_ns = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "re");
  /* the name of the program, in parentheses, is ours and has no space */
  const bool ok = f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2;
  if (f)
    fclose(f);
  if (!ok)
    return -1;
  snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
  f = fopen(path, "re"); /* some kernels lack it */
  if (f && fscanf(f, "%*u %llu", &waited_ns) != 1)
    waited_ns = 0;
  if (f)
    fclose(f);
  return (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK) + (int64_t)(waited_ns / 1000000);
}

/* A work of another client waits because all places are taken, and not, say, because there is no child yet. */
static bool is_in_the_way(struct pool *p, const void *payer) {
  bool is = false;
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->n_queued && !is; i++) {
    const void *other = p->queue[i].payer;
    is = other != payer && running_of(p, other) + places_of_others(p, other) >= p->cfg.workers;
  }
  pthread_mutex_unlock(&p->lock);
  return is;
}

void fair_end_sleepers(struct pool *p, int64_t now) {
  for (int i = p->n_kids; i-- > 0;) {
    struct kid *k = &p->kids[i];
    if (k->state != KID_RUNNING || !is_in_the_way(p, k->payer))
      continue;
    const int64_t busy = busy_ms(k->pid); /* since it was last in the way, or since it was made */
    if (busy < 0 || busy - k->busy_ms >= BUSY_MS) {
      k->busy_ms = busy;
      k->busy_at_ms = now;
    } else if (now - k->busy_at_ms >= SLEEP_MAX_MS) {
      log_info("job_sleeps", "job=%s idle_ms=%lld", work_tag(k->work), (long long)(now - k->busy_at_ms));
      kid_sleeps(p, k, SLEEP_MAX_MS);
    }
  }
}
