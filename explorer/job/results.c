#include "job/results.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "pool/pool.h"
#include "store/store.h"

enum {
  BUCKETS = 4096,
  TRIM_EVERY = 64,       /* results saved between looks at how much room they take */
  PLACE_BYTES = 4 << 10, /* what an entry costs besides its frames and its faces */
};

struct entry {
  struct entry *chain;         /* in its bucket */
  struct entry *newer, *older; /* ended ones, by last use */
  struct work *work;
  int64_t bytes; /* 0 while it has not ended */
  int64_t used_ms;
};

struct results {
  struct results_config cfg;
  pthread_mutex_t lock; /* guards what follows; a work's own lock is taken inside it, never the other way round */
  struct entry *buckets[BUCKETS];
  struct entry *newest, *oldest;
  struct results_counts counts;
  int n_saved;
};

/* One look-up in, or one write to, the store. */
struct errand {
  struct store_task task; /* first: a struct store_task * is also ours */
  struct results *results;
  struct work *work;
  uint32_t watch_id;
  bool is_for_compile; /* compile what is not found */
};

/* ---- the table, under the lock -------------------------------------------------------------------------------------
 */

static struct entry **bucket_of(struct results *r, const char *key) {
  char head[9] = {0};
  memcpy(head, key, 8); /* a key is a hash: its first digits are as good as any */
  return &r->buckets[strtoul(head, NULL, 16) % BUCKETS];
}

static struct entry *find(struct results *r, const char *key) {
  struct entry *e = *bucket_of(r, key);
  while (e && strcmp(work_key(e->work), key) != 0)
    e = e->chain;
  return e;
}

static void unlink_use(struct results *r, struct entry *e) {
  if (!e->bytes)
    return;
  *(e->newer ? &e->newer->older : &r->newest) = e->older;
  *(e->older ? &e->older->newer : &r->oldest) = e->newer;
  e->newer = e->older = NULL;
}

static void link_newest(struct results *r, struct entry *e) {
  e->used_ms = clock_now_ms();
  e->newer = NULL;
  e->older = r->newest;
  *(r->newest ? &r->newest->newer : &r->oldest) = e;
  r->newest = e;
}

static void drop(struct results *r, struct entry *e) {
  struct entry **at = bucket_of(r, work_key(e->work));
  while (*at != e)
    at = &(*at)->chain;
  *at = e->chain;
  unlink_use(r, e);
  r->counts.memory_bytes -= e->bytes;
  work_unref(e->work);
  free(e);
}

static void drop_old(struct results *r) {
  const int64_t since = clock_now_ms() - r->cfg.memory_ms;
  while (r->oldest && r->oldest->used_ms < since)
    drop(r, r->oldest);
}

/* False when out of memory. */
static bool insert(struct results *r, struct work *w) {
  struct entry *old = find(r, work_key(w)), *e = calloc(1, sizeof *e);
  if (old)
    drop(r, old);
  if (!e)
    return false;
  e->work = work_ref(w);
  struct entry **at = bucket_of(r, work_key(w));
  e->chain = *at;
  *at = e;
  return true;
}

static void note_ended(struct results *r, struct entry *e) {
  e->bytes = 2 * (int64_t)work_bytes(e->work) + PLACE_BYTES; /* the plain face is as long as the frames */
  r->counts.memory_bytes += e->bytes;
  link_newest(r, e);
  while (r->counts.memory_bytes > r->cfg.memory_max && r->oldest)
    drop(r, r->oldest);
}

/* ---- the store -----------------------------------------------------------------------------------------------------
 */

static bool send_errand(struct results *r, enum store_lane lane, void (*run)(struct store_task *, struct db *),
                        struct work *w, uint32_t watch_id, bool is_for_compile) {
  struct errand *e = calloc(1, sizeof *e);
  if (!e)
    return false;
  *e = (struct errand){
      .task.run = run, .results = r, .work = work_ref(w), .watch_id = watch_id, .is_for_compile = is_for_compile};
  if (store_submit(r->cfg.store, lane, &e->task))
    return true;
  work_unref(w);
  free(e);
  return false;
}

static void run_save(struct store_task *t, struct db *db) {
  struct errand *e = (struct errand *)t;
  struct results *r = e->results;
  struct error err;
  size_t len;
  char *frames = work_frames(e->work, &len);
  enum status st = frames ? store_put_result(db, work_key(e->work), frames, len, &err) : ST_OK;
  free(frames);
  pthread_mutex_lock(&r->lock);
  bool is_time = r->n_saved++ % TRIM_EVERY == 0;
  pthread_mutex_unlock(&r->lock);
  if (!st && is_time)
    st = store_trim_results(db, r->cfg.store_max, &err);
  if (st) /* the cache is a convenience: its user has the result already */
    log_warn("result_not_saved", "job=%s status=%s %s", work_tag(e->work), status_name(st), err.text);
  work_unref(e->work);
  free(e);
}

/* Loads what the store has; false if that is nothing. */
static bool load(struct errand *e, struct db *db) {
  struct error err;
  struct buf frames;
  bool found = false;
  buf_init(&frames, STORE_BLOB_MAX);
  enum status st = store_get_result(db, work_key(e->work), &frames, &found, &err);
  if (!st && found)
    st = work_load(e->work, buf_text(&frames), frames.len, &err);
  buf_clear(&frames);
  if (st && st != ST_BUSY)
    log_warn("result_not_loaded", "status=%s %s", status_name(st), err.text);
  return !st && found;
}

/* Its readers may have left meanwhile; so we become one for as long as the work is not yet the pool's. */
static void compile_or_refuse(struct errand *e) {
  struct pool *pool = e->results->cfg.pool;
  bool is_wanted = e->is_for_compile && work_join(e->work);
  if (!is_wanted || pool_submit(pool, e->work, e->watch_id))
    work_refuse(e->work);
  if (is_wanted && work_leave(e->work, NULL))
    pool_cancel(pool, e->work);
}

static void run_load(struct store_task *t, struct db *db) {
  struct errand *e = (struct errand *)t;
  struct results *r = e->results;
  bool found = load(e, db);
  pthread_mutex_lock(&r->lock);
  *(found ? &r->counts.from_store : &r->counts.compiled) += found || e->is_for_compile;
  if (found && !e->is_for_compile && !find(r, work_key(e->work)) && insert(r, e->work))
    note_ended(r, find(r, work_key(e->work)));
  pthread_mutex_unlock(&r->lock);
  if (!found)
    compile_or_refuse(e);
  work_unref(e->work);
  free(e);
}

/* The end of a work that others may join, on whichever thread ended it. */
static void on_end(void *user, struct work *w, bool is_lasting) {
  struct results *r = user;
  pthread_mutex_lock(&r->lock);
  struct entry *e = find(r, work_key(w));
  bool is_ours = e && e->work == w;
  if (is_ours && is_lasting)
    note_ended(r, e);
  else if (is_ours)
    drop(r, e);
  pthread_mutex_unlock(&r->lock);
}

/* The same for one that the pool ran. */
static void on_run_end(void *user, struct work *w, bool is_lasting) {
  on_end(user, w, is_lasting);
  if (is_lasting && !work_was_loaded(w))
    send_errand(user, STORE_WRITE, run_save, w, 0, false);
}

/* ---- requests ------------------------------------------------------------------------------------------------------
 */

/* Under the lock: what is under this key, joined; NULL if that is nothing. */
static struct work *join(struct results *r, const char *key) {
  drop_old(r);
  struct entry *e = find(r, key);
  if (!e || !work_join(e->work))
    return NULL;
  *(e->bytes ? &r->counts.from_memory : &r->counts.joined) += 1;
  if (e->bytes) {
    unlink_use(r, e);
    link_newest(r, e);
  }
  return work_ref(e->work);
}

/* On its way to a child, over the store unless that cannot help. */
static enum status launch(struct results *r, struct work *w, const struct results_ask *ask, struct error *err) {
  uint32_t watch_id = pool_watch(r->cfg.pool, ask->client_fd);
  if (ask->mode == RESULTS_CACHED && send_errand(r, STORE_READ, run_load, w, watch_id, true))
    return ST_OK;
  pthread_mutex_lock(&r->lock);
  r->counts.compiled++;
  pthread_mutex_unlock(&r->lock);
  if (!pool_submit(r->cfg.pool, w, watch_id))
    return ST_OK;
  pool_unwatch(r->cfg.pool, ask->client_fd);
  return fail(err, ST_BUSY, "queue");
}

/* Under the lock: what is there already, or w, which its client may start, in the table; NULL with ask->verdict if not. */
static struct work *join_or_enter(struct results *r, struct work *w, struct results_ask *ask) {
  struct work *there = ask->mode == RESULTS_CACHED ? join(r, work_key(w)) : NULL;
  if (there)
    return there;
  ask->verdict = client_begin_job(ask->payer, &ask->retry_s);
  if (ask->verdict)
    return NULL;
  work_set_payer(w, client_hold(ask->payer));
  ask->waiter->is_first = true;
  if (ask->mode != RESULTS_APART && insert(r, w))
    work_on_end(w, on_run_end, r);
  return w;
}

enum status results_compile(struct results *r, struct results_ask *ask, struct work **out, struct error *err) {
  struct work *w = work_new(ask->job);
  if (!w)
    return fail(err, ST_NOMEM, "work");
  pthread_mutex_lock(&r->lock);
  struct work *mine = join_or_enter(r, w, ask);
  pthread_mutex_unlock(&r->lock);
  if (mine != w) {
    work_unref(w);
    *out = mine;
    return mine ? ST_OK : fail(err, ST_QUOTA, "quota");
  }
  enum status st = launch(r, w, ask, err);
  if (st) {
    work_refuse(w); /* for those who joined meanwhile, and for the table */
    work_unref(w);
    return st;
  }
  *out = w;
  return ST_OK;
}

bool results_call_off(struct results *r, struct work *w, struct work_waiter *me, int client_fd) {
  bool is_last;
  if (!work_call_off(w, me, &is_last))
    return false;
  if (me->is_first)
    pool_unwatch(r->cfg.pool, client_fd);
  if (is_last)
    pool_cancel(r->cfg.pool, w);
  return true;
}

struct work *results_find(struct results *r, const char key[JOB_KEY_SIZE]) {
  pthread_mutex_lock(&r->lock);
  struct work *w = join(r, key);
  pthread_mutex_unlock(&r->lock);
  if (w)
    return w;
  w = work_new_stored(key);
  if (w && !send_errand(r, STORE_READ, run_load, w, 0, false))
    work_refuse(w);
  return w;
}

void results_release(struct results *r, struct work *w, struct work_waiter *me, int client_fd) {
  pool_unwatch(r->cfg.pool, client_fd);
  work_forget_reader(w, me);
  if (work_leave(w, me))
    pool_cancel(r->cfg.pool, w);
}

void results_look(struct results *r, struct results_counts *out) {
  pthread_mutex_lock(&r->lock);
  *out = r->counts;
  pthread_mutex_unlock(&r->lock);
}

enum status results_start(const struct results_config *cfg, struct results **out, struct error *err) {
  struct results *r = calloc(1, sizeof *r);
  if (!r)
    return fail(err, ST_NOMEM, "results");
  r->cfg = *cfg;
  pthread_mutex_init(&r->lock, NULL);
  *out = r;
  return ST_OK;
}

void results_stop(struct results *r) {
  if (!r)
    return;
  for (int i = 0; i < BUCKETS; i++)
    while (r->buckets[i])
      drop(r, r->buckets[i]);
  pthread_mutex_destroy(&r->lock);
  free(r);
}
