#include "session/hub.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/log.h"
#include "session/room.h"
#include "store/bulletin.h"

enum {
  TICK_MS = 50,    /* while there is presence to tell */
  SLOW_MS = 500,   /* while there is a room */
  IDLE_MS = 30000, /* after which a room without requests is forgotten */
  TOUCH_MS = 600000,
  TOUCH_OF = 4, /* the store is told at least so often, before a session that somebody is in would count as empty */
  TOUCHES = 64, /* at a time */
};

struct hub {
  struct store *store;
  pthread_t thread;
  bool has_thread;
  int64_t touch_ms;
  pthread_mutex_t lock; /* guards what follows; taken before the lock of a room */
  pthread_cond_t moved;
  bool is_stopping, is_dirty;
  struct chain_table table;
  struct room *rooms;
  int n_rooms;
  struct store_task task; /* makes the writes */
  bool is_writing;
  struct session_write *first, **last;
  atomic_bool is_ending;
  /* other servers */
  struct bulletin *bulletin; /* NULL: there are none */
  uint64_t name;             /* this server's, random */
  struct store_task far_task;
  bool is_telling;
  atomic_llong updates, presences;
};

/* ---- rooms ----------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const struct ident_hash *id) {
  return hash_bytes((const char *)id->bytes, sizeof id->bytes);
}

static struct room *find(struct hub *h, const struct ident_hash *id) {
  for (struct chain_link *l = chain_first(&h->table, hash_of(id)); l; l = chain_next(l))
    if (ident_hash_equal(&((struct room *)l)->id, id))
      return (struct room *)l;
  return NULL;
}

static bool has_room(const struct hub *h) {
  size_t bytes = 0;
  for (const struct room *r = h->rooms; r; r = r->next)
    bytes += atomic_load(&r->bytes);
  return h->n_rooms < HUB_ROOMS_MAX && bytes < HUB_BYTES_MAX;
}

/* Under the lock. */
static struct room *add(struct hub *h, const struct ident_hash *id) {
  struct room *r = has_room(h) ? room_new(id) : NULL;
  if (!r)
    return NULL;
  r->hub = h;
  chain_add(&h->table, &r->link, hash_of(id));
  r->next = h->rooms;
  h->rooms = r;
  h->n_rooms++;
  pthread_cond_signal(&h->moved);
  return r;
}

struct room *hub_enter(struct hub *h, const struct ident_hash *id) {
  pthread_mutex_lock(&h->lock);
  struct room *r = find(h, id);
  if (!r)
    r = add(h, id);
  if (r)
    r->refs++;
  pthread_mutex_unlock(&h->lock);
  return r;
}

static void remove_at(struct hub *h, struct room **at) {
  struct room *r = *at;
  assert(!r->refs);
  *at = r->next;
  chain_remove(&h->table, &r->link);
  h->n_rooms--;
  room_free(r);
}

/* Under the lock: a session that the store does not know is forgotten at once. */
void hub_leave(struct hub *h, struct room *r) {
  pthread_mutex_lock(&h->lock);
  assert(r->refs > 0);
  r->idle_ms = clock_now_ms();
  room_lock(r);
  const bool is_known = r->is_known;
  room_unlock(r);
  if (!--r->refs && !is_known) {
    struct room **at = &h->rooms;
    while (*at != r)
      at = &(*at)->next;
    remove_at(h, at);
  }
  pthread_mutex_unlock(&h->lock);
}

bool hub_is_ending(const struct hub *h) {
  return atomic_load(&h->is_ending);
}

void hub_end_streams(struct hub *h) {
  if (!h)
    return;
  atomic_store(&h->is_ending, true);
  pthread_mutex_lock(&h->lock);
  for (struct room *r = h->rooms; r; r = r->next)
    room_end_watchers(r);
  pthread_mutex_unlock(&h->lock);
}

/* ---- reading anew what another server wrote ------------------------------------------------------------------------------ */

static void refresh(struct store_task *t, struct db *db) {
  struct room *r = (struct room *)((char *)t - offsetof(struct room, refresh));
  struct error err;
  bool found;
  enum status st;
  do {
    st = room_read_store(r, db, &found, &err);
    if (st)
      log_warn("session_read", "status=%s %s", status_name(st), err.text);
  } while (room_end_refresh(r, st != ST_OK));
  hub_leave(r->hub, r);
}

/* Under the lock.  If the store takes no task, the next slow tick tries again. */
static void begin_refresh(struct hub *h, struct room *r, bool is_behind) {
  if (!room_begin_refresh(r, is_behind))
    return;
  r->refresh.run = refresh;
  r->refs++;
  if (store_submit(h->store, STORE_READ, &r->refresh))
    return;
  r->refs--;
  room_end_refresh(r, true);
}

/* ---- what servers tell each other ------------------------------------------------------------------------------------------ */

enum { NAME_LEN = 16, HASH_LEN = 2 * IDENT_HASH_SIZE };

static void put_hex(char *to, const struct ident_hash *id) {
  for (int i = 0; i < IDENT_HASH_SIZE; i++)
    snprintf(to + 2 * i, 3, "%02x", id->bytes[i]);
}

static bool read_hex(const char *text, struct ident_hash *out) {
  for (int i = 0; i < IDENT_HASH_SIZE; i++) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1)
      return false;
    out->bytes[i] = (uint8_t)byte;
  }
  return true;
}

/* "SERVER SESSION wrote", or what room_hear takes in place of the last word. */
static void hear(void *user, const char *text) {
  struct hub *h = user;
  struct ident_hash id;
  uint64_t from = 0;
  pthread_mutex_lock(&h->lock);
  if (!text) {
    for (struct room *r = h->rooms; r; r = r->next)
      begin_refresh(h, r, true);
  } else if (strlen(text) > NAME_LEN + HASH_LEN + 2 && sscanf(text, "%16" SCNx64, &from) == 1 && from != h->name &&
             read_hex(text + NAME_LEN + 1, &id)) {
    const char *rest = text + NAME_LEN + HASH_LEN + 2;
    struct room *r = find(h, &id);
    if (r && !strcmp(rest, "wrote"))
      begin_refresh(h, r, true);
    else if (r)
      room_hear(r, from, rest);
  }
  pthread_mutex_unlock(&h->lock);
}

struct telling {
  const struct hub *hub;
  const struct ident_hash *id;
  struct buf *texts; /* each with a NUL after it */
};

static void add_text(void *user, const char *text) {
  const struct telling *t = user;
  char hash[HASH_LEN + 1];
  put_hex(hash, t->id);
  buf_printf(t->texts, "%016" PRIx64 " %s %s", t->hub->name, hash, text);
  buf_putc(t->texts, 0);
}

static void tell_far(struct store_task *task, struct db *db) {
  struct hub *h = (struct hub *)((char *)task - offsetof(struct hub, far_task));
  struct buf texts;
  struct error err;
  enum status st = ST_OK;
  buf_init(&texts, 16 << 20);
  pthread_mutex_lock(&h->lock);
  for (struct room *r = h->rooms; r; r = r->next)
    room_each_far(r, add_text, &(struct telling){h, &r->id, &texts});
  pthread_mutex_unlock(&h->lock);
  for (size_t at = 0; at < texts.len && !st; at += strlen(texts.data + at) + 1)
    st = bulletin_post(db, texts.data + at, &err);
  if (st)
    log_warn("session_tell", "status=%s %s", status_name(st), err.text);
  buf_clear(&texts);
  pthread_mutex_lock(&h->lock);
  h->is_telling = false;
  pthread_mutex_unlock(&h->lock);
}

/* Under the lock. */
static void begin_telling(struct hub *h) {
  if (!h->bulletin || h->is_telling)
    return;
  h->far_task.run = tell_far;
  h->is_telling = store_submit(h->store, STORE_WRITE, &h->far_task);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static void end_writes(struct hub *h, struct session_write *list, enum status st, const struct error *err) {
  while (list) {
    struct hub_write *w = (struct hub_write *)list;
    list = list->next; /* the request may end as soon as it is resumed */
    w->st = st;
    if (st)
      w->err = *err;
    if (!st && w->w.act == SESSION_UPDATE && !w->w.verdict)
      atomic_fetch_add(&h->updates, w->w.n_pieces);
    if (!st && room_apply(w->room, &w->w)) {
      pthread_mutex_lock(&h->lock);
      begin_refresh(h, w->room, true);
      pthread_mutex_unlock(&h->lock);
    }
    w->resume(w->user);
  }
}

/* Under the lock: by session, so that two servers lock the sessions of their writes in the same order. */
static struct session_write *take_sorted(struct hub *h) {
  struct session_write *sorted = NULL;
  while (h->first) {
    struct session_write *w = h->first, **at = &sorted;
    h->first = w->next;
    while (*at && memcmp((*at)->session.bytes, w->session.bytes, IDENT_HASH_SIZE) <= 0)
      at = &(*at)->next;
    w->next = *at;
    *at = w;
  }
  h->last = &h->first;
  return sorted;
}

static void submit(struct hub *h);

static void write_all(struct store_task *t, struct db *db) {
  struct hub *h = (struct hub *)((char *)t - offsetof(struct hub, task));
  struct error err;
  pthread_mutex_lock(&h->lock);
  struct session_write *list = take_sorted(h);
  pthread_mutex_unlock(&h->lock);
  const enum status st = list ? store_write_sessions(db, list, &err) : ST_OK;
  if (st)
    log_warn("session_write", "status=%s %s", status_name(st), err.text);
  end_writes(h, list, st, &err);
  pthread_mutex_lock(&h->lock);
  h->is_writing = h->first != NULL;
  const bool has_more = h->is_writing;
  pthread_mutex_unlock(&h->lock);
  if (has_more)
    submit(h);
}

static void submit(struct hub *h) {
  struct error err;
  h->task.run = write_all;
  if (store_submit(h->store, STORE_WRITE, &h->task))
    return;
  pthread_mutex_lock(&h->lock);
  struct session_write *list = take_sorted(h);
  h->is_writing = false;
  pthread_mutex_unlock(&h->lock);
  end_writes(h, list, fail(&err, ST_BUSY, "too much waits for the store"), &err);
}

void hub_make(struct hub *h, struct hub_write *w) {
  if (h->bulletin && w->w.act != SESSION_TOUCH) {
    char hash[HASH_LEN + 1];
    put_hex(hash, &w->w.session);
    snprintf(w->told, sizeof w->told, "%016" PRIx64 " %s wrote", h->name, hash);
    w->w.told = w->told;
  }
  pthread_mutex_lock(&h->lock);
  w->w.next = NULL;
  *h->last = &w->w;
  h->last = &w->w.next;
  const bool is_first = !h->is_writing;
  h->is_writing = true;
  pthread_mutex_unlock(&h->lock);
  if (is_first)
    submit(h);
}

int hub_show(struct hub *h, struct room *r, int person, const char *json, size_t len) {
  bool is_late;
  const enum room_refusal refusal = room_show(r, person, json, len, &is_late);
  if (refusal == ROOM_OK)
    atomic_fetch_add(&h->presences, 1);
  if (is_late || h->bulletin) {
    pthread_mutex_lock(&h->lock);
    h->is_dirty = true;
    pthread_cond_signal(&h->moved);
    pthread_mutex_unlock(&h->lock);
  }
  return refusal;
}

/* ---- who is there ---------------------------------------------------------------------------------------------------- */

static void end_touch(void *user) {
  struct hub_write *w = user;
  if (w->st)
    log_warn("session_touch", "status=%s %s", status_name(w->st), w->err.text);
  hub_leave(w->room->hub, w->room);
  free(w);
}

/* Tells the store that somebody is in the room, which is held. */
static void touch(struct hub *h, struct room *r) {
  struct hub_write *w = calloc(1, sizeof *w);
  if (!w) {
    hub_leave(h, r);
    return;
  }
  w->w.act = SESSION_TOUCH;
  w->w.session = r->id;
  w->w.text = "";
  w->room = r;
  w->resume = end_touch;
  w->user = w;
  hub_make(h, w);
}

/* Under the lock: holds rooms that somebody is in and the store has not been told of for a while. */
static int take_due(struct hub *h, int64_t now, struct room *due[TOUCHES]) {
  int n = 0;
  for (struct room *r = h->rooms; r && n < TOUCHES; r = r->next) {
    room_lock(r);
    const bool is_due = r->watchers && !r->ended_ms && now - r->touched_ms >= h->touch_ms;
    room_unlock(r);
    if (!is_due)
      continue;
    r->touched_ms = now;
    r->refs++;
    due[n++] = r;
  }
  return n;
}

/* Under the lock, which it releases meanwhile. */
static void touch_due(struct hub *h, int64_t now) {
  struct room *due[TOUCHES];
  const int n = take_due(h, now, due);
  if (!n)
    return;
  pthread_mutex_unlock(&h->lock);
  for (int i = 0; i < n; i++)
    touch(h, due[i]);
  pthread_mutex_lock(&h->lock);
}

/* ---- the thread ------------------------------------------------------------------------------------------------------ */

static void tell_all(struct hub *h, int64_t now, bool is_slow) {
  h->is_dirty = false;
  begin_telling(h);
  for (struct room **at = &h->rooms; *at;) {
    struct room *r = *at;
    h->is_dirty |= room_tell(r, now, is_slow);
    if (is_slow)
      begin_refresh(h, r, false);
    if (is_slow && !r->refs && now - r->idle_ms > IDLE_MS)
      remove_at(h, at);
    else
      at = &r->next;
  }
}

static void *run(void *user) {
  struct hub *h = user;
  int64_t slow_ms = 0;
  pthread_mutex_lock(&h->lock);
  while (!h->is_stopping) {
    const int64_t now = clock_now_ms(), until = now + (h->is_dirty ? TICK_MS : SLOW_MS);
    const struct timespec at = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    const bool is_slow = now - slow_ms >= SLOW_MS;
    if (is_slow)
      slow_ms = now;
    if (h->rooms)
      tell_all(h, now, is_slow);
    if (is_slow)
      touch_due(h, now);
    if (h->is_stopping)
      break;
    if (!h->rooms)
      pthread_cond_wait(&h->moved, &h->lock);
    else
      pthread_cond_clockwait(&h->moved, &h->lock, CLOCK_MONOTONIC, &at);
  }
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

enum status hub_start(struct store *store, const char *url, int64_t idle_ms, struct hub **out, struct error *err) {
  struct hub *h = calloc(1, sizeof *h);
  if (!h)
    return fail(err, ST_NOMEM, "sessions");
  *out = h;
  h->store = store;
  h->touch_ms = idle_ms / TOUCH_OF < TOUCH_MS ? idle_ms / TOUCH_OF : TOUCH_MS;
  h->last = &h->first;
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->moved, NULL);
  if (pthread_create(&h->thread, NULL, run, h))
    return fail(err, ST_IO, "sessions: no thread");
  h->has_thread = true;
  if (getrandom(&h->name, sizeof h->name, 0) != (ssize_t)sizeof h->name)
    return fail(err, ST_IO, "no random bytes: %m");
  return store_is_shared(store) ? bulletin_start(url, hear, h, &h->bulletin, err) : ST_OK;
}

void hub_stop(struct hub *h) {
  if (!h)
    return;
  bulletin_stop(h->bulletin);
  pthread_mutex_lock(&h->lock);
  h->is_stopping = true;
  pthread_cond_signal(&h->moved);
  pthread_mutex_unlock(&h->lock);
  if (h->has_thread)
    pthread_join(h->thread, NULL);
  while (h->rooms)
    remove_at(h, &h->rooms);
  pthread_cond_destroy(&h->moved);
  pthread_mutex_destroy(&h->lock);
  free(h);
}

void hub_look(struct hub *h, struct hub_counts *out) {
  *out = (struct hub_counts){.updates = atomic_load(&h->updates), .presences = atomic_load(&h->presences)};
  pthread_mutex_lock(&h->lock);
  out->rooms = h->n_rooms;
  for (struct room *r = h->rooms; r; r = r->next) {
    out->bytes += (int64_t)atomic_load(&r->bytes);
    out->people += room_n_here(r);
    room_lock(r);
    for (const struct watcher *l = r->watchers; l; l = l->next)
      out->streams++;
    room_unlock(r);
  }
  pthread_mutex_unlock(&h->lock);
}
