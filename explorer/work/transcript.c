#include "work/transcript.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/array.h"
#include "base/json.h"
#include "driver/frames.h"
#include "driver/pipeline.h"
#include "work/work.h"

enum {
  OWN_FRAME_MAX = 4 << 10,
  OWN_FRAMES_ROOM = 3 * OWN_FRAME_MAX,
  RESULT_ROOM = 64 << 10,
  PACKED_ROOM = WORK_PACKED_MAX + OWN_FRAMES_ROOM,
  PACK_LEVEL = 1, /* the pool's thread packs what all children send */
};

const size_t transcript_result_max = WORK_BYTES_MAX + OWN_FRAMES_ROOM + RESULT_ROOM;

void transcript_init(struct transcript *t) {
  *t = (struct transcript){0};
  snprintf(t->pipeline, sizeof t->pipeline, "%s", pipeline_version());
  buf_init(&t->packed, PACKED_ROOM + ZSTD_COMPRESSBOUND((size_t)FRAME_MAX + 1));
  buf_init(&t->open, FRAME_MAX + 1);
}

static void drop_packer(struct transcript *t) {
  ZSTD_freeCCtx(t->packer);
  t->packer = NULL;
}

/* Without frames it is ready for new ones. */
static void drop_frames(struct transcript *t) {
  gather_clear(&t->gather);
  free(t->frames);
  t->frames = NULL;
  t->n_frames = t->cap_frames = 0;
  t->text_len = 0;
  buf_clear(&t->packed);
  buf_clear(&t->open);
}

void transcript_clear(struct transcript *t) {
  drop_packer(t);
  drop_frames(t);
}

/* ---- our own frames ---------------------------------------------------------------------------------------------- */

static void put_start(const struct transcript *t, struct buf *b) {
  buf_printf(b,
             "{\"frame\":\"start\",\"version\":1,\"key\":\"%s\",\"language\":\"%s\",\"target\":\"%s\","
             "\"pipeline\":\"%s\"}",
             t->key, language_name(t->language), target_name(t->target), t->pipeline);
}

static void put_error(const struct own_error *e, struct buf *b) {
  buf_puts(b, "{\"frame\":\"diagnostic\",\"diagnostic\":{");
  json_put_field_str(b, "severity", diag_severity_name(DS_ERROR));
  json_put_field_str(b, "code", diag_code_name(e->code));
  json_put_field_str(b, "message", e->message);
  if (e->hint)
    json_put_field_str(b, "hint", e->hint);
  buf_puts(b, "}}");
}

static void put_end(int64_t time_us, struct buf *b) {
  buf_printf(b, "{\"frame\":\"end\",\"status\":\"error\",\"time_us\":%lld}", (long long)time_us);
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

/* True for a diagnostic that says that a limit ended the job.  The child writes the code in this form; quotes within a
 * message are escaped, so no message can look like it. */
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

/* Notes a frame whose packed form is at the end of t->packed; false when out of memory. */
static bool note_packed(struct transcript *t, size_t len, size_t packed_len) {
  void *frames = t->frames;
  if (t->n_frames == t->cap_frames && !array_grow_heap(&frames, &t->cap_frames, sizeof *t->frames))
    return false;
  t->frames = frames;
  t->frames[t->n_frames++] = (struct transcript_frame){t->text_len, len, t->packed.len, packed_len};
  t->packed.len += packed_len;
  t->text_len += len;
  return true;
}

/* Packs a frame after the end of t->packed; *n: how many bytes that gives. */
static enum status pack(struct transcript *t, const char *json, size_t len, size_t *n, struct error *err) {
  const size_t bound = ZSTD_compressBound(len + 1);
  buf_clear(&t->open); /* a reader that was within a frame unpacks it again */
  enum status st = buf_reserve(&t->open, len + 1);
  if (!st)
    st = buf_reserve(&t->packed, bound);
  if (!t->packer)
    t->packer = ZSTD_createCCtx();
  if (st || !t->packer)
    return fail(err, ST_NOMEM, "frames");
  memcpy(t->open.data, json, len);
  t->open.data[len] = '\n';
  *n = ZSTD_compressCCtx(t->packer, t->packed.data + t->packed.len, bound, t->open.data, len + 1, PACK_LEVEL);
  buf_clear(&t->open);
  return ZSTD_isError(*n) ? fail(err, ST_NOMEM, "zstd: %s", ZSTD_getErrorName(*n)) : ST_OK;
}

/* Gives back the room that packing has reserved. */
static void settle(struct transcript *t) {
  drop_packer(t);
  char *data = realloc(t->packed.data, t->packed.len + 1);
  if (data) {
    t->packed.data = data;
    t->packed.cap = t->packed.len + 1;
  }
}

/* Keeps a frame that was scanned, unless the packed frames would be more than `most` bytes.  Without memory, all is
 * lost. */
static enum status keep(struct transcript *t, const struct frame *f, const char *json, size_t len, size_t most,
                        struct error *err) {
  const size_t at = t->text_len;
  size_t n = 0;
  enum status st = pack(t, json, len, &n, err);
  if (!st && t->packed.len + n > most)
    return fail(err, ST_LIMIT, "The result takes more than %d MiB of the server's memory, packed.",
                WORK_PACKED_MAX >> 20);
  if (!st)
    st = gather_add(&t->gather, f, at, len, err);
  if (!st && !note_packed(t, len + 1, n))
    st = fail(err, ST_NOMEM, "frames");
  if (st == ST_NOMEM)
    drop_frames(t);
  if (st)
    return st;
  assert(t->text_len == at + len + 1);
  if (f->kind == FRAME_DIAGNOSTIC)
    t->hit_limit |= tells_limit(f);
  if (t->gather.is_ended)
    settle(t);
  return ST_OK;
}

/* The first frame comes before any user code runs, and must be about this job. */
static bool is_about(const struct transcript *t, const struct frame *f) {
  return frame_has_string(f, "key", t->key, strlen(t->key));
}

/* Keeps a frame, by any author.  What a child says about the job is known here already, so its start is replaced. */
static enum status add(struct transcript *t, const char *json, size_t len, size_t most, struct error *err) {
  struct frame f;
  struct buf own;
  enum status st = frame_scan(json, len, &f, err);
  if (st)
    return st;
  if (f.kind != FRAME_START)
    return keep(t, &f, json, len, most, err);
  if (!is_about(t, &f))
    return fail(err, ST_INPUT, "the start of another job");
  buf_init(&own, OWN_FRAME_MAX);
  put_start(t, &own);
  st = buf_status(&own) ? fail(err, buf_status(&own), "frames") : keep(t, &f, buf_text(&own), own.len, most, err);
  buf_clear(&own);
  return st;
}

enum status transcript_add(struct transcript *t, const char *json, size_t len, struct error *err) {
  if (t->text_len + len + 1 > WORK_BYTES_MAX)
    return fail(err, ST_LIMIT, "The result is longer than %d MiB.", WORK_BYTES_MAX >> 20);
  return add(t, json, len, WORK_PACKED_MAX, err);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static enum status add_text(struct transcript *t, const char *frames, size_t len, struct error *err) {
  struct frame f;
  enum status st = ST_OK;
  for (const char *p = frames, *end = frames + len; !st && p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    st = frame_scan(p, n, &f, err);
    if (!st)
      st = keep(t, &f, p, n, PACKED_ROOM, err);
    p += n + 1;
  }
  return st;
}

/* Each thread keeps one context for unpacking: making one for each frame costs more than unpacking a small frame. */
static pthread_key_t unpacker_key;
static pthread_once_t unpacker_once = PTHREAD_ONCE_INIT;

static void free_unpacker(void *context) {
  ZSTD_freeDCtx(context);
}

static void make_unpacker_key(void) {
  const int failed = pthread_key_create(&unpacker_key, free_unpacker);
  assert(!failed);
  (void)failed;
}

/* As ZSTD_decompress; 0 when out of memory. */
static size_t unpack(char *to, size_t max, const char *from, size_t len) {
  pthread_once(&unpacker_once, make_unpacker_key);
  ZSTD_DCtx *context = pthread_getspecific(unpacker_key);
  if (!context) {
    context = ZSTD_createDCtx();
    if (!context || pthread_setspecific(unpacker_key, context)) {
      ZSTD_freeDCtx(context);
      return 0;
    }
  }
  return ZSTD_decompressDCtx(context, to, max, from, len);
}

/* Takes the packed frame at p, the first of n bytes; *size: how many of them it has. */
static enum status add_packed(struct transcript *t, const char *p, size_t n, size_t *size, struct error *err) {
  struct frame f;
  *size = ZSTD_findFrameCompressedSize(p, n);
  const unsigned long long len = ZSTD_getFrameContentSize(p, n);
  if (ZSTD_isError(*size) || len < 1 || len > FRAME_MAX + 1) /* an unknown size is larger than all others */
    return fail(err, ST_INPUT, "not a packed frame");
  buf_clear(&t->open);
  enum status st = buf_reserve(&t->open, (size_t)len);
  if (!st)
    st = buf_reserve(&t->packed, *size);
  if (st)
    return fail(err, st, "frames");
  const size_t got = unpack(t->open.data, (size_t)len, p, *size);
  if (got != len || t->open.data[len - 1] != '\n')
    return fail(err, ST_INPUT, "not a packed frame");
  st = frame_scan(t->open.data, (size_t)len - 1, &f, err);
  if (!st)
    st = gather_add(&t->gather, &f, t->text_len, (size_t)len - 1, err);
  if (st)
    return st;
  memcpy(t->packed.data + t->packed.len, p, *size);
  return note_packed(t, (size_t)len, *size) ? ST_OK : fail(err, ST_NOMEM, "frames");
}

static enum status add_all(struct transcript *t, const char *frames, size_t len, struct error *err) {
  enum status st = ST_OK;
  if (len && frames[0] == '{')
    st = add_text(t, frames, len, err);
  for (size_t at = 0, n; !st && at < len && frames[0] != '{'; at += n)
    st = add_packed(t, frames + at, len - at, &n, err);
  buf_clear(&t->open);
  return st || t->gather.is_ended ? st : fail(err, ST_INPUT, "frames without an end");
}

enum status transcript_load(struct transcript *t, const char *frames, size_t len, struct error *err) {
  assert(!t->n_frames && !t->gather.is_started);
  enum status st = add_all(t, frames, len, err);
  if (st)
    transcript_clear(t);
  return st;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The number of the frame that holds the byte at `at` of the text. */
static int frame_at(const struct transcript *t, size_t at) {
  int from = 0, to = t->n_frames;
  assert(at < t->text_len);
  while (to - from > 1) {
    const int mid = from + (to - from) / 2;
    if (t->frames[mid].at <= at)
      from = mid;
    else
      to = mid;
  }
  return from;
}

/* The text of a frame, kept in t->open; NULL when out of memory. */
static const char *open_frame(struct transcript *t, int i) {
  const struct transcript_frame *f = &t->frames[i];
  if (t->open.len && t->open_frame == i)
    return t->open.data;
  buf_clear(&t->open);
  if (buf_reserve(&t->open, f->len))
    return NULL;
  const size_t n = unpack(t->open.data, f->len, t->packed.data + f->packed_at, f->packed_len);
  if (n != f->len) { /* only memory can be short: the frame was packed, or unpacked once, by us */
    buf_clear(&t->open);
    return NULL;
  }
  t->open.len = n;
  t->open.data[n] = 0;
  t->open_frame = i;
  return t->open.data;
}

static const char *text_of_frame(void *user, size_t at, size_t len) {
  struct transcript *t = user;
  const int i = frame_at(t, at);
  assert(t->frames[i].at == at && t->frames[i].len == len + 1);
  (void)len;
  return open_frame(t, i);
}

size_t transcript_read(struct transcript *t, size_t at, char *to, size_t max) {
  size_t done = 0;
  while (at < t->text_len && done < max) {
    const int i = frame_at(t, at);
    const struct transcript_frame *f = &t->frames[i];
    const char *text = open_frame(t, i);
    if (!text)
      break;
    size_t n = f->at + f->len - at;
    const bool is_whole = n <= max - done;
    n = is_whole ? n : max - done;
    memcpy(to + done, text + (at - f->at), n);
    if (is_whole)
      buf_clear(&t->open); /* a reader that stays within a large frame holds it; one that is done does not */
    done += n;
    at += n;
  }
  return done;
}

bool transcript_read_frame(struct transcript *t, size_t at, size_t max, struct buf *out) {
  if (at >= t->text_len)
    return true;
  const int i = frame_at(t, at);
  const struct transcript_frame *f = &t->frames[i];
  if (f->at != at || f->len > max)
    return false;
  const char *text = open_frame(t, i);
  const bool ok = text && !buf_append(out, text, f->len);
  buf_clear(&t->open);
  return ok;
}

const char *transcript_stage(struct transcript *t, const struct gather_stage *which, size_t *len) {
  const struct gather_text text = {text_of_frame, t};
  return gather_find_stage(&t->gather, &text, which, len);
}

bool transcript_each(struct transcript *t, bool (*fn)(void *user, const char *json, size_t len), void *user) {
  bool goes_on = true;
  for (int i = 0; goes_on && i < t->n_frames; i++) {
    const char *text = open_frame(t, i);
    goes_on = text && fn(user, text, t->frames[i].len - 1);
  }
  buf_clear(&t->open);
  return goes_on;
}

bool transcript_each_artifact(struct transcript *t, bool (*fn)(void *user, const char *json, size_t len), void *user) {
  bool goes_on = true;
  for (int k = 0; goes_on && k < t->gather.n; k++) {
    const struct gather_part *p = &t->gather.parts[k];
    if (p->kind != FRAME_ARTIFACT)
      continue;
    const char *text = text_of_frame(t, p->at, p->len);
    goes_on = text && fn(user, text, p->len);
  }
  buf_clear(&t->open);
  return goes_on;
}

void transcript_put_sources(struct transcript *t, struct buf *out) {
  const struct gather_text text = {text_of_frame, t};
  gather_sources(&t->gather, &text, out);
  buf_clear(&t->open);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Adds one of our own frames, which always fit (OWN_FRAMES_ROOM), and empties b.  Without memory the transcript ends
 * where it is. */
static void add_own(struct transcript *t, struct buf *b) {
  struct error err;
  if (buf_status(b) || add(t, buf_text(b), b->len, PACKED_ROOM, &err))
    t->gather.is_ended = true;
  buf_clear(b);
}

void transcript_fail(struct transcript *t, const struct own_error *e, int64_t time_us) {
  struct buf b;
  assert(!t->gather.is_ended);
  buf_init(&b, OWN_FRAME_MAX);
  if (!t->gather.is_started) {
    put_start(t, &b);
    add_own(t, &b);
  }
  put_error(e, &b);
  add_own(t, &b);
  put_end(time_us, &b);
  add_own(t, &b);
}

void transcript_put_farewell(struct transcript *t, size_t at, const struct own_error *e, int64_t time_us,
                             struct buf *out) {
  if (!at) {
    put_start(t, out);
    buf_putc(out, '\n');
  } else if (at < t->text_len) { /* beyond the end: memory ran out, and the text is gone */
    const int i = frame_at(t, at);
    const char *text = t->frames[i].at < at ? open_frame(t, i) : NULL;
    if (text)
      buf_append(out, text + (at - t->frames[i].at), t->frames[i].at + t->frames[i].len - at);
    buf_clear(&t->open);
  }
  put_error(e, out);
  buf_putc(out, '\n');
  put_end(time_us, out);
  buf_putc(out, '\n');
}

void transcript_put_result(struct transcript *t, struct buf *out) {
  const struct gather_text text = {text_of_frame, t};
  buf_reserve(out, t->text_len + RESULT_ROOM); /* the result is hardly longer than its frames */
  gather_result(&t->gather, &text, out, NULL, NULL);
  buf_clear(&t->open);
}
