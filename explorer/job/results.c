#include "job/results.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/log.h"
#include "base/recent.h"
#include "pool/pool.h"
#include "store/store.h"

enum {
  TRIM_EVERY = 64,       /* results that are saved before the store is trimmed again */
  PLACE_BYTES = 4 << 10, /* what an entry takes besides its frames and its faces */
};

struct entry {
  struct chain_link link;  /* first: a struct chain_link * is also a struct entry * */
  struct recent_link used; /* in `recent` once it has ended */
  struct work *work;
  int64_t bytes; /* 0 while it has not ended */
  int64_t used_ms;
};

struct results {
  struct results_config cfg;
  pthread_mutex_t lock; /* guards what follows; a work's own lock is taken inside it, never the other way round */
  struct chain_table entries;
  struct recent_list recent;
  struct results_counts counts;
  int n_saved;
};

/* One look-up in the store, or one write to it. */
struct errand {
  struct store_task task; /* first: a struct store_task * is also a struct errand * */
  struct results *results;
  struct work *work;
  uint32_t watch_id;
  bool is_for_compile; /* what is not found is compiled */
};

/* ---- the table, under the lock ----------------------------------------------------------------------------------- */

static struct entry *find(struct results *r, const char *key) {
  for (struct chain_link *l = chain_first(&r->entries, hash_text(key)); l; l = chain_next(l))
    if (!strcmp(work_key(((struct entry *)l)->work), key))
      return (struct entry *)l;
  return NULL;
}

static void note_use(struct results *r, struct entry *e) {
  e->used_ms = clock_now_ms();
  recent_add(&r->recent, &e->used);
}

static struct entry *oldest(const struct results *r) {
  struct recent_link *l = r->recent.oldest;
  return l ? (struct entry *)((char *)l - offsetof(struct entry, used)) : NULL;
}

static void drop(struct results *r, struct entry *e) {
  chain_remove(&r->entries, &e->link);
  if (e->bytes)
    recent_remove(&r->recent, &e->used);
  r->counts.memory_bytes -= e->bytes;
  assert(r->counts.memory_bytes >= 0);
  work_unref(e->work);
  free(e);
}

static void drop_old(struct results *r) {
  const int64_t since = clock_now_ms() - r->cfg.memory_ms;
  while (oldest(r) && oldest(r)->used_ms < since)
    drop(r, oldest(r));
}

/* False when out of memory. */
static bool insert(struct results *r, struct work *w) {
  struct entry *old = find(r, work_key(w)), *e = calloc(1, sizeof *e);
  if (old)
    drop(r, old);
  if (!e)
    return false;
  e->work = work_ref(w);
  chain_add(&r->entries, &e->link, hash_text(work_key(w)));
  return true;
}

static void note_ended(struct results *r, struct entry *e) {
  assert(!e->bytes);
  e->bytes =
      2 * (int64_t)work_bytes(e->work) + PLACE_BYTES; /* the result, which is kept packed, is as long as the frames */
  r->counts.memory_bytes += e->bytes;
  note_use(r, e);
  while (r->counts.memory_bytes > r->cfg.memory_max && oldest(r))
    drop(r, oldest(r));
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

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
  if (st) /* only the cache lacks it: the client has its result already */
    log_warn("result_not_saved", "job=%s status=%s %s", work_tag(e->work), status_name(st), err.text);
  work_unref(e->work);
  free(e);
}

/* Loads the work's frames from the store; false if it has none. */
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

/* The work's readers may have left meanwhile, so we are one until the pool has it. */
static void compile_or_refuse(struct errand *e) {
  bool is_wanted = e->is_for_compile && work_join(e->work);
  if (!is_wanted || pool_submit(e->results->cfg.pool, e->work, e->watch_id))
    work_refuse(e->work);
  if (is_wanted)
    work_leave(e->work, NULL);
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

/* A work that others may join has ended; on the thread that ended it. */
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

/* The same for one that was made for the pool. */
static void on_run_end(void *user, struct work *w, bool is_lasting) {
  on_end(user, w, is_lasting);
  if (is_lasting && !work_was_loaded(w))
    send_errand(user, STORE_WRITE, run_save, w, 0, false);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Under the lock: joins the work with this key; NULL if there is none. */
static struct work *join(struct results *r, const char *key) {
  drop_old(r);
  struct entry *e = find(r, key);
  if (!e || !work_join(e->work))
    return NULL;
  *(e->bytes ? &r->counts.from_memory : &r->counts.joined) += 1;
  if (e->bytes) {
    recent_remove(&r->recent, &e->used);
    note_use(r, e);
  }
  return work_ref(e->work);
}

/* Sends w to a child, by way of the store if a stored result will do. */
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

/* Under the lock: an existing work, joined, or else w, which is then counted against its client and can be joined; NULL
 * with ask->verdict if the client may not start it. */
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

enum status results_compile(struct results *r, struct work *w, struct results_ask *ask, struct work **out,
                            struct error *err) {
  pthread_mutex_lock(&r->lock);
  struct work *mine = join_or_enter(r, w, ask);
  pthread_mutex_unlock(&r->lock);
  enum status st = !mine ? fail(err, ST_QUOTA, "quota") : mine == w ? launch(r, w, ask, err) : ST_OK;
  if (mine == w && st)
    work_refuse(w); /* for requests that have joined it, and for the table */
  if (mine != w || st)
    work_unref(w);
  if (!st)
    *out = mine;
  return st;
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

struct work *results_peek(struct results *r, const char key[JOB_KEY_SIZE]) {
  pthread_mutex_lock(&r->lock);
  const struct entry *e = find(r, key);
  struct work *w = e && e->bytes ? work_ref(e->work) : NULL;
  pthread_mutex_unlock(&r->lock);
  return w;
}

void results_release(struct results *r, struct work *w, struct work_waiter *me, int client_fd) {
  pool_unwatch(r->cfg.pool, client_fd);
  work_forget_reader(w, me);
  work_leave(w, me);
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
  for (int i = 0; i < CHAINS; i++)
    while (r->entries.heads[i])
      drop(r, (struct entry *)r->entries.heads[i]);
  assert(!r->recent.newest && !r->counts.memory_bytes);
  pthread_mutex_destroy(&r->lock);
  free(r);
}
