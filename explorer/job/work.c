#include "job/work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "driver/frames.h"
#include "driver/pipeline.h"
#include "driver/gather.h"
#include "job/quota.h"

enum { OWN_FRAME_MAX = 4 << 10, OWN_FRAMES_ROOM = 3 * OWN_FRAME_MAX, RESULT_ROOM = 64 << 10 };

struct work {
  atomic_int refs;
  pthread_mutex_t lock;
  char tag[WORK_TAG_SIZE];
  char key[JOB_KEY_SIZE];
  enum language language;
  enum target target;
  char *json;
  size_t json_len;

  enum work_state state;
  int64_t began_us;
  struct buf lines;     /* frames, each with its newline */
  struct gather gather; /* where in lines each of them lies */

  struct work_waiter *waiters; /* called back when more than `at` bytes are there, or, if whole, at the end */
  int n_readers;
  bool is_given_up;    /* the last reader left */
  bool has_lost_first; /* the reader it was made for left */
  int position;        /* in the queue, from 1; 0: it is not there */
  struct client *payer;
  struct work_face faces[WORK_FACES];
  bool was_loaded;
  bool hit_limit; /* of time or memory: another run may end otherwise */
  work_end_fn on_end;
  void *on_end_user;
};

static void make_tag(char tag[WORK_TAG_SIZE]) {
  uint32_t r = 0;
  if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
    r = (uint32_t)clock_now_ns();
  snprintf(tag, WORK_TAG_SIZE, "%08x", r);
}

static struct work *make(void) {
  struct work *w = calloc(1, sizeof *w);
  if (!w)
    return NULL;
  atomic_init(&w->refs, 1);
  pthread_mutex_init(&w->lock, NULL);
  make_tag(w->tag);
  w->n_readers = 1;
  buf_init(&w->lines, WORK_BYTES_MAX + OWN_FRAMES_ROOM);
  return w;
}

struct work *work_new(const struct job *job) {
  struct work *w = make();
  if (!w)
    return NULL;
  w->language = job->language;
  w->target = job->target;
  w->json = job_dump(job, &w->json_len);
  if (!w->json) {
    work_unref(w);
    return NULL;
  }
  job_key(w->json, w->json_len, w->key);
  return w;
}

struct work *work_new_stored(const char key[JOB_KEY_SIZE]) {
  struct work *w = make();
  if (w)
    memcpy(w->key, key, JOB_KEY_SIZE);
  return w;
}

struct work *work_ref(struct work *w) {
  atomic_fetch_add(&w->refs, 1);
  return w;
}

void work_set_payer(struct work *w, struct client *payer) {
  w->payer = payer;
}

int work_turn(struct work *w) {
  pthread_mutex_lock(&w->lock);
  int n = client_jobs(w->payer); /* itself among them */
  pthread_mutex_unlock(&w->lock);
  return n > 0 ? n - 1 : 0;
}

/* Tells who pays that it is over; once. */
static void let_payer_go(struct work *w) {
  pthread_mutex_lock(&w->lock);
  struct client *payer = w->payer;
  bool has_run = w->began_us != 0;
  w->payer = NULL;
  pthread_mutex_unlock(&w->lock);
  client_end_job(payer, has_run);
  client_let_go(payer);
}

void work_unref(struct work *w) {
  if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
    return;
  let_payer_go(w);
  gather_clear(&w->gather);
  buf_clear(&w->lines);
  free(w->json);
  for (int i = 0; i < WORK_FACES; i++)
    free(w->faces[i].data);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

const char *work_tag(const struct work *w) {
  return w->tag;
}

const char *work_json(const struct work *w, size_t *len) {
  *len = w->json_len;
  return w->json;
}

const char *work_key(const struct work *w) {
  return w->key;
}

void work_on_end(struct work *w, work_end_fn fn, void *user) {
  w->on_end = fn;
  w->on_end_user = user;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------
 */

static bool is_settled(const struct work *w) {
  return w->state == WORK_ENDED || w->state == WORK_REFUSED;
}

static bool has_news(const struct work *w, const struct work_waiter *me) {
  return w->lines.len > me->at || (!me->at && w->position && w->position != me->position);
}

static bool is_ready(const struct work *w, const struct work_waiter *me) {
  return is_settled(w) || me->is_called_off || (!me->whole && has_news(w, me));
}

/* Under the lock: calls back the parked readers whose wait is over. */
static void wake(struct work *w) {
  struct work_waiter **at = &w->waiters;
  while (*at) {
    struct work_waiter *r = *at;
    if (is_ready(w, r)) {
      *at = r->next; /* first: once called back, the reader may use its place again */
      r->resume(r->user);
    } else {
      at = &r->next;
    }
  }
}

static bool wait_for(struct work *w, struct work_waiter *me, void (*park)(void *), void (*resume)(void *), void *user) {
  pthread_mutex_lock(&w->lock);
  me->resume = resume;
  me->user = user;
  bool ready = is_ready(w, me);
  if (!ready) {
    me->next = w->waiters;
    w->waiters = me;
    park(user); /* under the lock, so that resume cannot come first */
  }
  pthread_mutex_unlock(&w->lock);
  return ready;
}

bool work_wait(struct work *w, struct work_waiter *me, bool whole, void (*park)(void *), void (*resume)(void *),
               void *user) {
  me->at = 0;
  me->whole = whole;
  return wait_for(w, me, park, resume, user);
}

bool work_wait_at(struct work *w, struct work_waiter *me, size_t at, void (*park)(void *), void (*resume)(void *),
                  void *user) {
  me->at = at;
  me->whole = false;
  return wait_for(w, me, park, resume, user);
}

void work_forget_reader(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  for (struct work_waiter **at = &w->waiters; *at; at = &(*at)->next) {
    if (*at == me) {
      *at = me->next;
      break;
    }
  }
  pthread_mutex_unlock(&w->lock);
}

bool work_join(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool may = w->state == WORK_ENDED || (w->state != WORK_REFUSED && !w->is_given_up);
  w->n_readers += may;
  pthread_mutex_unlock(&w->lock);
  return may;
}

/* Under the lock: true if that was the last one. */
static bool leave(struct work *w, const struct work_waiter *me) {
  bool is_last = --w->n_readers == 0;
  w->is_given_up |= is_last;
  w->has_lost_first |= me && me->is_first;
  return is_last;
}

bool work_leave(struct work *w, const struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  bool is_last = !(me && me->is_called_off) && leave(w, me);
  pthread_mutex_unlock(&w->lock);
  return is_last;
}

bool work_call_off(struct work *w, struct work_waiter *me, bool *is_last) {
  pthread_mutex_lock(&w->lock);
  bool does = !is_settled(w) && !me->is_called_off;
  *is_last = does && leave(w, me);
  me->is_called_off |= does;
  if (does)
    wake(w);
  pthread_mutex_unlock(&w->lock);
  if (*is_last)
    let_payer_go(w); /* the newer compile takes its place at once */
  return does;
}

bool work_is_called_off(struct work *w, const struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  bool is = me->is_called_off;
  pthread_mutex_unlock(&w->lock);
  return is;
}

bool work_give_up(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool is_sole = w->n_readers <= 1 && !w->has_lost_first;
  w->is_given_up |= is_sole;
  pthread_mutex_unlock(&w->lock);
  return is_sole;
}

/* ---- the pool's side ----------------------------------------------------------------------------------------------
 */

void work_begin(struct work *w) {
  pthread_mutex_lock(&w->lock);
  w->state = WORK_RUNNING;
  w->began_us = clock_now_us();
  w->position = 0;
  pthread_mutex_unlock(&w->lock);
}

void work_set_position(struct work *w, int position) {
  pthread_mutex_lock(&w->lock);
  bool is_news = w->position != position;
  w->position = position;
  if (is_news)
    wake(w);
  pthread_mutex_unlock(&w->lock);
}

/* The first frame comes before any user code runs, and must be about this job. */
static bool is_about(const struct work *w, const struct frame *f) {
  const struct frame_member *key = frame_get(f, "key");
  return key->value_len == sizeof w->key + 1 && !memcmp(key->value + 1, w->key, sizeof w->key - 1);
}

/* What the start frame and the result say about the job itself: members, without braces. */
static void put_identity(const struct work *w, struct buf *b) {
  buf_printf(b, "\"key\":\"%s\",\"language\":\"%s\",\"target\":\"%s\",\"pipeline\":\"%s\"", w->key,
             language_name(w->language), target_name(w->target), pipeline_version());
}

static void put_start(const struct work *w, struct buf *b) {
  buf_puts(b, "{\"frame\":\"start\",\"version\":1,");
  put_identity(w, b);
  buf_putc(b, '}');
}

/* As the child writes it; quotes within a message are escaped, so that no message can look like this. */
static bool tells_limit(const struct frame *f) {
  const struct frame_member *d = frame_get(f, "diagnostic");
  static const enum diag_code limits[] = {DG_TIME_LIMIT, DG_MEMORY_LIMIT, DG_CHECK_INCOMPLETE};
  char code[64];
  for (size_t i = 0; d && i < sizeof limits / sizeof *limits; i++) {
    int n = snprintf(code, sizeof code, "\"code\":\"%s\"", diag_code_name(limits[i]));
    if (memmem(d->value, d->value_len, code, (size_t)n))
      return true;
  }
  return false;
}

/* Under the lock: keeps a frame that was scanned. */
static enum status keep(struct work *w, const struct frame *f, const char *json, size_t len, struct error *err) {
  enum status st = buf_reserve(&w->lines, len + 1); /* room first, so that what was gathered is surely there */
  if (!st)
    st = gather_add(&w->gather, f, w->lines.len, len, err);
  if (!st)
    st = buf_append(&w->lines, json, len);
  if (!st)
    st = buf_putc(&w->lines, '\n');
  if (f->kind == FRAME_DIAGNOSTIC)
    w->hit_limit |= tells_limit(f);
  return st;
}

/* Under the lock.  A child's start says nothing that we do not know better, so ours is kept in its place. */
static enum status add(struct work *w, const char *json, size_t len, struct error *err) {
  struct frame f;
  struct buf own;
  enum status st = frame_scan(json, len, &f, err);
  if (st)
    return st;
  if (f.kind != FRAME_START)
    return keep(w, &f, json, len, err);
  if (!is_about(w, &f))
    return fail(err, ST_INPUT, "the start of another job");
  buf_init(&own, OWN_FRAME_MAX);
  put_start(w, &own);
  st = buf_status(&own);
  if (!st)
    st = keep(w, &f, buf_text(&own), own.len, err);
  buf_clear(&own);
  return st;
}

/* Outside the lock, by whoever ended it.  Readers come last: what they ask for next, the end has settled. */
static void tell_end(struct work *w, bool is_lasting) {
  let_payer_go(w);
  if (w->on_end)
    w->on_end(w->on_end_user, w, is_lasting);
  pthread_mutex_lock(&w->lock);
  wake(w);
  pthread_mutex_unlock(&w->lock);
}

enum status work_add_frame(struct work *w, const char *json, size_t len, bool *is_end, struct error *err) {
  enum status st;
  pthread_mutex_lock(&w->lock);
  if (w->lines.len + len + 1 > WORK_BYTES_MAX)
    st = fail(err, ST_LIMIT, "more than %d bytes of frames", WORK_BYTES_MAX);
  else
    st = add(w, json, len, err);
  *is_end = w->gather.is_ended;
  if (!st) {
    if (*is_end)
      w->state = WORK_ENDED;
    else
      wake(w);
  }
  pthread_mutex_unlock(&w->lock);
  if (!st && *is_end)
    tell_end(w, !w->hit_limit);
  return st;
}

/* Under the lock: lines of an earlier work, each a frame. */
static enum status add_all(struct work *w, const char *frames, size_t len, struct error *err) {
  struct frame f;
  enum status st = ST_OK;
  if (len > WORK_BYTES_MAX + OWN_FRAMES_ROOM)
    return fail(err, ST_LIMIT, "more than %d bytes of frames", WORK_BYTES_MAX);
  for (const char *p = frames, *end = frames + len; !st && p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    st = frame_scan(p, n, &f, err);
    if (!st)
      st = keep(w, &f, p, n, err);
    p += n + 1;
  }
  return st || w->gather.is_ended ? st : fail(err, ST_INPUT, "frames without an end");
}

enum status work_load(struct work *w, const char *frames, size_t len, struct error *err) {
  pthread_mutex_lock(&w->lock);
  enum status st = add_all(w, frames, len, err);
  if (st) {
    gather_clear(&w->gather);
    buf_clear(&w->lines);
  } else {
    w->state = WORK_ENDED;
    w->was_loaded = true;
  }
  pthread_mutex_unlock(&w->lock);
  if (!st)
    tell_end(w, true);
  return st;
}

static void put_end(const struct work *w, struct buf *b) {
  buf_printf(b, "{\"frame\":\"end\",\"status\":\"error\",\"time_us\":%lld}",
             w->began_us ? (long long)(clock_now_us() - w->began_us) : 0LL);
}

static void put_diagnostic(struct buf *b, enum diag_code code, const char *message, const char *hint) {
  buf_puts(b, "{\"frame\":\"diagnostic\",\"diagnostic\":{");
  json_put_field_str(b, "severity", diag_severity_name(DS_ERROR));
  json_put_field_str(b, "code", diag_code_name(code));
  json_put_field_str(b, "message", message);
  if (hint)
    json_put_field_str(b, "hint", hint);
  buf_puts(b, "}}");
}

/* Under the lock: one of our own frames; those always fit, see OWN_FRAMES_ROOM. */
static void add_own(struct work *w, struct buf *b) {
  struct error err;
  if (buf_status(b) || add(w, buf_text(b), b->len, &err))
    w->state = WORK_ENDED; /* out of memory: what is there is all there will be */
  buf_clear(b);
}

void work_fail(struct work *w, enum diag_code code, const char *message, const char *hint) {
  struct buf b;
  buf_init(&b, OWN_FRAME_MAX);
  pthread_mutex_lock(&w->lock);
  if (!w->lines.len) {
    put_start(w, &b);
    add_own(w, &b);
  }
  put_diagnostic(&b, code, message, hint);
  add_own(w, &b);
  put_end(w, &b);
  add_own(w, &b);
  w->state = WORK_ENDED;
  pthread_mutex_unlock(&w->lock);
  tell_end(w, false);
}

void work_refuse(struct work *w) {
  pthread_mutex_lock(&w->lock);
  w->state = WORK_REFUSED;
  pthread_mutex_unlock(&w->lock);
  tell_end(w, false);
}

bool work_has_frames(const struct work *w) {
  struct work *x = (struct work *)w;
  pthread_mutex_lock(&x->lock);
  bool has = w->lines.len > 0;
  pthread_mutex_unlock(&x->lock);
  return has;
}

/* ---- the reader's side --------------------------------------------------------------------------------------------
 */

enum work_state work_look(struct work *w, int *n_stages, bool *is_ok) {
  pthread_mutex_lock(&w->lock);
  enum work_state s = w->state;
  if (n_stages)
    *n_stages = w->gather.n_stages;
  if (is_ok)
    *is_ok = w->gather.is_ended && w->gather.is_ok;
  pthread_mutex_unlock(&w->lock);
  return s;
}

int work_take_position(struct work *w, struct work_waiter *me) {
  pthread_mutex_lock(&w->lock);
  int news = w->position != me->position ? w->position : 0;
  me->position = w->position;
  pthread_mutex_unlock(&w->lock);
  return news;
}

void work_put_farewell(struct work *w, size_t at, enum diag_code code, const char *message, struct buf *out) {
  pthread_mutex_lock(&w->lock);
  const char *text = buf_text(&w->lines);
  if (!at) {
    put_start(w, out);
    buf_putc(out, '\n');
  } else if (text[at - 1] != '\n') {
    buf_append(out, text + at, (size_t)(strchr(text + at, '\n') + 1 - (text + at))); /* what is kept ends in one */
  }
  put_diagnostic(out, code, message, NULL);
  buf_putc(out, '\n');
  put_end(w, out);
  buf_putc(out, '\n');
  pthread_mutex_unlock(&w->lock);
}

size_t work_read(struct work *w, size_t at, char *to, size_t max, bool *at_end) {
  pthread_mutex_lock(&w->lock);
  size_t n = w->lines.len - at;
  if (n > max)
    n = max;
  if (n)
    memcpy(to, w->lines.data + at, n);
  *at_end = is_settled(w) && at + n == w->lines.len;
  pthread_mutex_unlock(&w->lock);
  return n;
}

char *work_result(struct work *w, size_t *len) {
  struct buf out;
  buf_init(&out, WORK_BYTES_MAX + OWN_FRAMES_ROOM + RESULT_ROOM);
  pthread_mutex_lock(&w->lock);
  buf_reserve(&out, w->lines.len + RESULT_ROOM); /* the result is hardly longer than its frames */
  gather_result(&w->gather, buf_text(&w->lines), &out);
  pthread_mutex_unlock(&w->lock);
  *len = out.len;
  return out.data; /* NULL if it failed */
}

char *work_frames(struct work *w, size_t *len) {
  pthread_mutex_lock(&w->lock);
  char *text = malloc(w->lines.len + 1);
  if (text) {
    memcpy(text, buf_text(&w->lines), w->lines.len + 1);
    *len = w->lines.len;
  }
  pthread_mutex_unlock(&w->lock);
  return text;
}

bool work_stage(struct work *w, const struct gather_stage *which, struct buf *out) {
  size_t len;
  pthread_mutex_lock(&w->lock);
  const char *json = gather_find_stage(&w->gather, buf_text(&w->lines), which, &len);
  bool ok = json && !buf_append(out, json, len);
  pthread_mutex_unlock(&w->lock);
  return ok;
}

size_t work_bytes(struct work *w) {
  pthread_mutex_lock(&w->lock);
  size_t n = w->lines.len;
  pthread_mutex_unlock(&w->lock);
  return n;
}

bool work_was_loaded(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool was = w->was_loaded;
  pthread_mutex_unlock(&w->lock);
  return was;
}

int64_t work_began_us(struct work *w) {
  pthread_mutex_lock(&w->lock);
  int64_t began_us = w->began_us;
  pthread_mutex_unlock(&w->lock);
  return began_us;
}

const struct work_face *work_face(struct work *w, int which) {
  pthread_mutex_lock(&w->lock);
  const struct work_face *f = w->faces[which].data ? &w->faces[which] : NULL;
  pthread_mutex_unlock(&w->lock);
  return f;
}

void work_set_face(struct work *w, int which, const struct work_face *face) {
  pthread_mutex_lock(&w->lock);
  if (w->faces[which].data)
    free(face->data);
  else
    w->faces[which] = *face;
  pthread_mutex_unlock(&w->lock);
}
