#include "work/work.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "work/internal.h"

/* ---- from its first reference to its last ------------------------------------------------------------------------ */

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
  transcript_init(&w->transcript);
  return w;
}

struct work *work_new(const struct job *job) {
  struct work *w = make();
  if (!w)
    return NULL;
  w->transcript.language = job->language;
  w->transcript.target = job->target;
  w->json = job_dump(job, &w->json_len);
  if (!w->json) {
    work_unref(w);
    return NULL;
  }
  if (job->version)
    snprintf(w->transcript.pipeline, sizeof w->transcript.pipeline, "%s", job->version);
  job_key_by(w->json, w->json_len, w->transcript.pipeline, w->transcript.key);
  return w;
}

struct work *work_new_stored(const char key[JOB_KEY_SIZE]) {
  struct work *w = make();
  if (w)
    memcpy(w->transcript.key, key, JOB_KEY_SIZE);
  return w;
}

struct work *work_ref(struct work *w) {
  int before = atomic_fetch_add(&w->refs, 1);
  assert(before > 0);
  (void)before;
  return w;
}

void work_unref(struct work *w) {
  if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
    return;
  assert(!w->waiters);
  work_release_payer(w);
  transcript_clear(&w->transcript);
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
  assert(w->json);
  *len = w->json_len;
  return w->json;
}

const char *work_key(const struct work *w) {
  return w->transcript.key;
}

const char *work_pipeline(const struct work *w) {
  return w->transcript.pipeline;
}

void work_on_end(struct work *w, work_end_fn fn, void *user) {
  w->on_end = fn;
  w->on_end_user = user;
}

/* ---- the pool's side --------------------------------------------------------------------------------------------- */

/* Outside the lock, by the thread that ended it.  Readers come last: what they ask for next depends on what on_end
 * does. */
static void tell_end(struct work *w, bool is_lasting) {
  work_release_payer(w);
  if (w->on_end)
    w->on_end(w->on_end_user, w, is_lasting);
  pthread_mutex_lock(&w->lock);
  assert(work_is_settled(w));
  work_wake(w);
  pthread_mutex_unlock(&w->lock);
}

void work_begin(struct work *w) {
  pthread_mutex_lock(&w->lock);
  assert(!work_is_settled(w)); /* but maybe running: a child may die before it begins */
  w->state = WORK_RUNNING;
  w->began_us = clock_now_us();
  w->position = 0;
  pthread_mutex_unlock(&w->lock);
}

void work_set_position(struct work *w, int position) {
  assert(position > 0);
  pthread_mutex_lock(&w->lock);
  bool is_news = w->position != position;
  w->position = position;
  if (is_news)
    work_wake(w);
  pthread_mutex_unlock(&w->lock);
}

enum status work_add_frame(struct work *w, const char *json, size_t len, bool *is_end, struct error *err) {
  pthread_mutex_lock(&w->lock);
  enum status st = transcript_add(&w->transcript, json, len, err);
  bool is_lasting = !w->transcript.hit_limit;
  *is_end = w->transcript.gather.is_ended;
  if (!st) {
    if (*is_end)
      w->state = WORK_ENDED;
    else
      work_wake(w);
  }
  pthread_mutex_unlock(&w->lock);
  if (!st && *is_end)
    tell_end(w, is_lasting);
  return st;
}

enum status work_load(struct work *w, const char *frames, size_t len, struct error *err) {
  pthread_mutex_lock(&w->lock);
  assert(w->state == WORK_WAITING);
  enum status st = transcript_load(&w->transcript, frames, len, err);
  if (!st) {
    w->state = WORK_ENDED;
    w->was_loaded = true;
  }
  pthread_mutex_unlock(&w->lock);
  if (!st)
    tell_end(w, true);
  return st;
}

/* Under the lock: since a child took it. */
static int64_t time_us(const struct work *w) {
  return w->began_us ? clock_now_us() - w->began_us : 0;
}

void work_fail(struct work *w, enum diag_code code, const char *message, const char *hint) {
  const struct own_error e = {code, message, hint};
  pthread_mutex_lock(&w->lock);
  assert(!work_is_settled(w));
  transcript_fail(&w->transcript, &e, time_us(w));
  w->state = WORK_ENDED;
  pthread_mutex_unlock(&w->lock);
  tell_end(w, false);
}

void work_refuse(struct work *w) {
  pthread_mutex_lock(&w->lock);
  assert(!work_is_settled(w));
  w->state = WORK_REFUSED;
  pthread_mutex_unlock(&w->lock);
  tell_end(w, false);
}

/* ---- what it has so far ------------------------------------------------------------------------------------------ */

enum work_state work_look(struct work *w, int *n_stages, bool *is_ok) {
  const struct gather *g = &w->transcript.gather;
  pthread_mutex_lock(&w->lock);
  enum work_state s = w->state;
  if (n_stages)
    *n_stages = g->n_stages;
  if (is_ok)
    *is_ok = g->is_ended && g->is_ok;
  pthread_mutex_unlock(&w->lock);
  return s;
}

size_t work_bytes(struct work *w) {
  pthread_mutex_lock(&w->lock);
  size_t n = w->transcript.packed.len;
  pthread_mutex_unlock(&w->lock);
  return n;
}

bool work_has_frames(struct work *w) {
  return work_bytes(w) > 0;
}

bool work_was_loaded(struct work *w) {
  pthread_mutex_lock(&w->lock);
  bool was = w->was_loaded;
  pthread_mutex_unlock(&w->lock);
  return was;
}

void work_run(struct work *w, char run[WORK_RUN_SIZE]) {
  pthread_mutex_lock(&w->lock);
  assert(w->state == WORK_ENDED);
  snprintf(run, WORK_RUN_SIZE, "%s.%ld", w->transcript.key, w->transcript.gather.time_us);
  pthread_mutex_unlock(&w->lock);
}

int64_t work_began_us(struct work *w) {
  pthread_mutex_lock(&w->lock);
  int64_t began_us = w->began_us;
  pthread_mutex_unlock(&w->lock);
  return began_us;
}

/* Under the lock.  `at` is beyond the end if memory ran out, and the text is gone. */
static bool is_at_end(const struct work *w, size_t at) {
  return work_is_settled(w) && at >= w->transcript.text_len;
}

size_t work_read(struct work *w, size_t at, char *to, size_t max, bool *at_end) {
  pthread_mutex_lock(&w->lock);
  size_t n = transcript_read(&w->transcript, at, to, max);
  *at_end = is_at_end(w, at + n);
  pthread_mutex_unlock(&w->lock);
  return n;
}

bool work_read_frame(struct work *w, size_t *at, size_t max, struct buf *out, bool *at_end) {
  pthread_mutex_lock(&w->lock);
  const size_t before = out->len;
  const bool ok = transcript_read_frame(&w->transcript, *at, max, out);
  *at += ok ? out->len - before : 0;
  *at_end = is_at_end(w, *at);
  pthread_mutex_unlock(&w->lock);
  return ok;
}

void work_put_farewell(struct work *w, size_t at, enum diag_code code, const char *message, struct buf *out) {
  const struct own_error e = {code, message, NULL};
  pthread_mutex_lock(&w->lock);
  transcript_put_farewell(&w->transcript, at, &e, time_us(w), out);
  pthread_mutex_unlock(&w->lock);
}

size_t work_text_len(struct work *w) {
  pthread_mutex_lock(&w->lock);
  const size_t n = w->transcript.text_len;
  pthread_mutex_unlock(&w->lock);
  return n;
}

/* The transcript of an ended work, which changes no more, for a reader that takes long: it needs no lock, for which the
 * server's own threads would wait.  It has a cache of its own. */
static struct transcript view(struct work *w) {
  pthread_mutex_lock(&w->lock);
  assert(w->state == WORK_ENDED);
  struct transcript own = w->transcript;
  buf_init(&own.open, w->transcript.open.max);
  pthread_mutex_unlock(&w->lock);
  return own;
}

char *work_result(struct work *w, size_t *len) {
  struct buf out;
  struct transcript own = view(w);
  buf_init(&out, transcript_result_max);
  transcript_put_result(&own, &out);
  buf_clear(&own.open);
  *len = out.len;
  return out.data; /* NULL if it failed */
}

/* Under the lock; heap, NULL when out of memory. */
static char *all_text(struct work *w) {
  const size_t n = w->transcript.text_len;
  char *text = malloc(n + 1);
  if (text && transcript_read(&w->transcript, 0, text, n) == n) {
    text[n] = 0;
    return text;
  }
  free(text);
  return NULL;
}

static char *all_packed(const struct work *w) {
  const struct buf *packed = &w->transcript.packed;
  char *bytes = malloc(packed->len + 1);
  return bytes ? memcpy(bytes, buf_text(packed), packed->len + 1) : NULL;
}

char *work_frames(struct work *w, size_t *len) {
  pthread_mutex_lock(&w->lock);
  assert(w->state == WORK_ENDED);
  const bool is_short = w->transcript.text_len <= WORK_TEXT_STORED;
  *len = is_short ? w->transcript.text_len : w->transcript.packed.len;
  char *frames = is_short ? all_text(w) : all_packed(w);
  pthread_mutex_unlock(&w->lock);
  return frames;
}

bool work_each_frame(struct work *w, bool (*fn)(void *user, const char *json, size_t len), void *user) {
  pthread_mutex_lock(&w->lock);
  bool ok = transcript_each(&w->transcript, fn, user);
  pthread_mutex_unlock(&w->lock);
  return ok;
}

bool work_each_artifact(struct work *w, bool (*fn)(void *user, const char *json, size_t len), void *user) {
  pthread_mutex_lock(&w->lock);
  bool ok = transcript_each_artifact(&w->transcript, fn, user);
  pthread_mutex_unlock(&w->lock);
  return ok;
}

bool work_stage(struct work *w, const struct gather_stage *which, struct buf *out) {
  size_t len;
  pthread_mutex_lock(&w->lock);
  const char *json = transcript_stage(&w->transcript, which, &len);
  bool ok = json && !buf_append(out, json, len);
  buf_clear(&w->transcript.open);
  pthread_mutex_unlock(&w->lock);
  return ok;
}

bool work_sources(struct work *w, struct buf *out) {
  pthread_mutex_lock(&w->lock);
  transcript_put_sources(&w->transcript, out);
  pthread_mutex_unlock(&w->lock);
  return !buf_status(out);
}

const struct work_face *work_face(struct work *w, int which) {
  assert(which >= 0 && which < WORK_FACES);
  pthread_mutex_lock(&w->lock);
  const struct work_face *f = w->faces[which].data ? &w->faces[which] : NULL;
  pthread_mutex_unlock(&w->lock);
  return f;
}

void work_set_face(struct work *w, int which, const struct work_face *face) {
  assert(which >= 0 && which < WORK_FACES && face->data);
  pthread_mutex_lock(&w->lock);
  if (w->faces[which].data)
    free(face->data);
  else
    w->faces[which] = *face;
  pthread_mutex_unlock(&w->lock);
}
