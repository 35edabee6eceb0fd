/* The store's threads: each has a connection of its own, so that no lock is held while the database works. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "store/db.h"
#include "store/objects.h"
#include "store/runs.h"
#include "store/s3.h"
#include "store/sessions.h"
#include "store/space.h"
#include "store/store.h"

enum {
  READERS = 2,
  BUILDERS = 2, /* one owner uses only one of them */
  THREADS = 1 + READERS + BUILDERS,
  OWNER_MAX = 64,   /* tasks of one owner that wait in a lane, so that others find room */
  QUEUE_MAX = 1000, /* tasks of a lane; beyond that the database is too slow for the requests */
  PURGE_S = 60,
  BUILD_NICE = 5,    /* what takes long gives way to compiles */
  LOOK_UP_MS = 2000, /* compiles wait for look-ups, which only save time */
};

struct lane {
  struct store_task *head, **tail;
  int n;
  int64_t done, refused;
  pthread_cond_t more;
};

struct thread {
  struct store *store;
  enum store_lane lane;
  struct db *db;
  pthread_t id;
  bool is_running;
  uint64_t owner; /* of the task that it runs; 0: none */
};

struct store {
  bool is_shared;
  struct s3_site *site; /* the object store; NULL: there is none */
  struct objects *objects;
  uint8_t secret[STORE_SECRET_SIZE];
  pthread_mutex_t lock; /* guards the lanes and is_closing */
  struct lane lanes[STORE_LANES];
  bool is_closing;
  struct space space;
  struct thread threads[THREADS]; /* the writer, the readers, the builders */
};

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static void purge(struct db *db) {
  struct error err;
  int64_t n;
  enum status st = store_purge(db, &n, &err);
  if (st)
    log_warn("store_purge", "status=%s %s", status_name(st), err.text);
  else if (n)
    log_info("store_purge", "expired=%lld", (long long)n);
  st = store_purge_runs(db, RUN_BYTES_MAX, &err);
  if (st)
    log_warn("store_purge", "status=%s %s", status_name(st), err.text);
  st = store_purge_sessions(db, &err);
  if (st)
    log_warn("store_purge", "status=%s %s", status_name(st), err.text);
}

/* Under the lock: another thread runs a task of this owner. */
static bool is_busy(const struct store *s, uint64_t owner) {
  for (int i = 0; owner && i < THREADS; i++)
    if (s->threads[i].owner == owner)
      return true;
  return false;
}

/* Under the lock: where the first task is whose owner has none that runs; at the end of the list if there is none. */
static struct store_task **first_free(struct store *s, struct lane *l) {
  struct store_task **at = &l->head;
  while (*at && is_busy(s, (*at)->owner))
    at = &(*at)->next;
  return at;
}

/* Under the lock: waits for a task; NULL when the store is closing and none is left, or when it is time to purge. */
static struct store_task *take(struct store *s, struct lane *l, const struct timespec *until) {
  int timed_out = 0;
  struct store_task **at;
  while (!*(at = first_free(s, l)) && (!s->is_closing || l->head) && !timed_out)
    timed_out = pthread_cond_clockwait(&l->more, &s->lock, CLOCK_MONOTONIC, until);
  struct store_task *t = *at;
  if (!t)
    return NULL;
  *at = t->next;
  if (!*at)
    l->tail = at;
  l->n--;
  assert(l->n >= 0 && !l->n == !l->head);
  l->done++;
  return t;
}

static void *run(void *user) {
  struct thread *me = user;
  struct store *s = me->store;
  if (me->lane == STORE_BUILD && setpriority(PRIO_PROCESS, (id_t)gettid(), BUILD_NICE))
    log_debug("store", "priority: %m");
  struct lane *l = &s->lanes[me->lane];
  struct timespec purge_at;
  clock_gettime(CLOCK_MONOTONIC, &purge_at);

  pthread_mutex_lock(&s->lock);
  for (;;) {
    struct store_task *t = take(s, l, &purge_at);
    if (!t && s->is_closing)
      break;
    me->owner = t ? t->owner : 0;
    pthread_mutex_unlock(&s->lock);
    if (t) {
      t->run(t, me->db); /* the task may be gone after this */
    } else {
      if (me->lane == STORE_WRITE)
        purge(me->db);
      clock_gettime(CLOCK_MONOTONIC, &purge_at);
      purge_at.tv_sec += PURGE_S;
    }
    if (me->lane == STORE_WRITE)
      space_tend(&s->space, me->db);
    pthread_mutex_lock(&s->lock);
    if (me->owner && l->head)
      pthread_cond_broadcast(&l->more); /* a task of the same owner may run now */
    me->owner = 0;
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* Under the lock. */
static bool has_room(const struct lane *l, uint64_t owner) {
  int n = 0;
  for (const struct store_task *t = l->head; owner && t; t = t->next)
    n += t->owner == owner;
  return l->n < QUEUE_MAX && n < OWNER_MAX;
}

bool store_submit(struct store *s, enum store_lane lane, struct store_task *t) {
  struct lane *l = &s->lanes[lane];
  t->next = NULL;
  pthread_mutex_lock(&s->lock);
  bool fits = !s->is_closing && has_room(l, t->owner);
  if (fits) {
    *l->tail = t;
    l->tail = &t->next;
    l->n++;
    pthread_cond_signal(&l->more);
  } else {
    l->refused++;
  }
  pthread_mutex_unlock(&s->lock);
  return fits;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static enum status take_secret(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  if (row[0].n != STORE_SECRET_SIZE)
    return fail(err, ST_IO, "the store's secret is damaged");
  memcpy(user, row[0].p, STORE_SECRET_SIZE);
  return ST_OK;
}

/* The secret is made by the first server on the store; the others read it. */
static enum status load_secret(struct db *db, uint8_t secret[STORE_SECRET_SIZE], struct error *err) {
  if (getrandom(secret, STORE_SECRET_SIZE, 0) != STORE_SECRET_SIZE)
    return fail(err, ST_IO, "no random bytes: %m");
  const struct db_value arg = db_bytes(secret, STORE_SECRET_SIZE);
  enum status st = db_run(db, "INSERT INTO meta (name, value) VALUES ('secret', $1) ON CONFLICT DO NOTHING", &arg, 1,
                          NULL, NULL, NULL, err);
  return st ? st : db_run(db, "SELECT value FROM meta WHERE name = 'secret'", NULL, 0, take_secret, secret, NULL, err);
}

static enum status note_there(void *user, const struct db_value *row, int n, struct error *err) {
  (void)row, (void)n, (void)err;
  *(bool *)user = true;
  return ST_OK;
}

/* Without its object store a store could neither read its results nor delete them. */
static enum status check_objects(struct db *db, struct error *err) {
  bool there = false;
  enum status st =
      db_run(db, "SELECT packed FROM blobs WHERE packed > 0 LIMIT 1", NULL, 0, note_there, &there, NULL, err);
  return st || !there ? st : fail(err, ST_INPUT, "results of this store are in an object store: name it with --s3-url");
}

static enum status open_all(struct store *s, const char *url, struct error *err) {
  enum status st = db_open(url, true, &s->threads[0].db, err);
  if (!st)
    st = db_migrate(s->threads[0].db, err);
  if (!st)
    st = load_secret(s->threads[0].db, s->secret, err);
  if (!st && !s->site)
    st = check_objects(s->threads[0].db, err);
  for (int i = 1; !st && i < THREADS; i++) {
    st = db_open(url, false, &s->threads[i].db, err);
    if (!st && i <= READERS)
      db_set_patience(s->threads[i].db, LOOK_UP_MS);
  }
  for (int i = 0; !st && s->site && i < THREADS; i++)
    st = s3_open(s->site, &s->threads[i].db->objects, err);
  return st;
}

enum status store_open(const char *url, struct s3_site *objects, struct store **out, struct error *err) {
  struct store *s = calloc(1, sizeof *s);
  if (!s)
    return fail(err, ST_NOMEM, "store");
  s->is_shared = strncmp(url, "sqlite:", 7) != 0;
  space_init(&s->space, url);
  pthread_mutex_init(&s->lock, NULL);
  for (int i = 0; i < STORE_LANES; i++) {
    pthread_cond_init(&s->lanes[i].more, NULL);
    s->lanes[i].tail = &s->lanes[i].head;
  }
  s->site = objects;
  enum status st = open_all(s, url, err);
  for (int i = 0; !st && i < THREADS; i++) {
    struct thread *t = &s->threads[i];
    t->store = s;
    t->lane = i == 0 ? STORE_WRITE : i <= READERS ? STORE_READ : STORE_BUILD;
    t->is_running = pthread_create(&t->id, NULL, run, t) == 0;
    if (!t->is_running)
      st = fail(err, ST_IO, "store: no thread");
  }
  if (!st && s->site)
    st = objects_start(s, s->site, &s->objects, err);
  if (st)
    store_close(s);
  else
    *out = s;
  return st;
}

void store_stop(struct store *s) {
  if (!s)
    return;
  objects_stop(s->objects);
  s->objects = NULL;
  pthread_mutex_lock(&s->lock);
  s->is_closing = true;
  for (int i = 0; i < STORE_LANES; i++)
    pthread_cond_broadcast(&s->lanes[i].more);
  pthread_mutex_unlock(&s->lock);
  for (int i = THREADS - 1; i >= 0; i--) { /* the writer last, because it closes the log */
    if (s->threads[i].is_running)
      pthread_join(s->threads[i].id, NULL);
    s->threads[i].is_running = false;
    db_close(s->threads[i].db);
    s->threads[i].db = NULL;
  }
}

void store_close(struct store *s) {
  if (!s)
    return;
  store_stop(s);
  for (int i = 0; i < STORE_LANES; i++) {
    assert(!s->lanes[i].head);
    pthread_cond_destroy(&s->lanes[i].more);
  }
  pthread_mutex_destroy(&s->lock);
  space_clear(&s->space);
  free(s);
}

void store_look(struct store *s, struct store_counts *out) {
  pthread_mutex_lock(&s->lock);
  for (int i = 0; i < STORE_LANES; i++) {
    out->waiting[i] = s->lanes[i].n;
    out->done[i] = s->lanes[i].done;
    out->refused[i] = s->lanes[i].refused;
  }
  pthread_mutex_unlock(&s->lock);
  out->bytes = atomic_load(&s->space.bytes);
  out->object_bytes = atomic_load(&s->space.object_bytes);
  out->objects_to_send = atomic_load(&s->space.objects_to_send);
  out->max_bytes = atomic_load(&s->space.max);
  out->free_bytes = atomic_load(&s->space.free_bytes);
  out->links = atomic_load(&s->space.links);
  out->runs_waiting = atomic_load(&s->space.runs_waiting);
  out->runs_running = atomic_load(&s->space.runs_running);
  out->runners = atomic_load(&s->space.runners);
  out->space = space_look(&s->space);
}

void store_limit(struct store *s, int64_t max_bytes) {
  atomic_store(&s->space.max, max_bytes);
}

void store_took(struct store *s, int64_t bytes) {
  atomic_fetch_add(&s->space.bytes, bytes);
}

void store_took_objects(struct store *s, int64_t bytes) {
  atomic_fetch_add(&s->space.object_bytes, bytes);
  atomic_fetch_add(&s->space.bytes, bytes);
}

struct s3_site *store_objects(const struct store *s) {
  return s->site;
}

bool store_has_room(const struct store *s) {
  return space_look(&s->space) != SPACE_FULL;
}

bool store_is_shared(const struct store *s) {
  return s->is_shared;
}

const uint8_t *store_secret(const struct store *s) {
  return s->secret;
}
