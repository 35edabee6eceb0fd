/* The library asks for bytes; when there are none, the connection is suspended until the work has some.
 *
 * A stream has the frames of the work, and frames for its own reader: its place in the queue, and why the stream ends
 * before the work does.  For a reader that has an earlier result, stages are sent as their difference from that (delta.h).
 *
 * The text is compressed here, as one stream: a stage repeats most of the stage before it.  It is flushed whenever the
 * work has no more for the moment.
 */
#include "api/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/part.h"
#include "api/services.h"
#include "driver/frames.h"
#include "http/packer.h"
#include "job/results.h"
#include "work/delta.h"

enum {
  BLOCK = 48 << 10,
  OWN_MAX = FRAME_MAX + (64 << 10), /* the rest of a frame, and our own ones */
  DELTA_FRAME_MAX = 8 << 20,        /* a longer frame is sent as it is, without a copy of it */
};

/* Server-sent events wrap each frame: "data: " before it, and a blank line after. */
struct stream {
  struct work *work;          /* a reference */
  struct work *have;          /* a reference to the result that the reader has; NULL: none, or it is no longer used */
  struct work_waiter *waiter; /* the request's */
  struct MHD_Connection *connection;
  bool is_sse;
  size_t at;      /* bytes of the work's frames that were sent or are in own */
  struct buf own; /* frames for this reader only; sent up to own_at */
  size_t own_at;
  bool is_ending;        /* nothing comes after own */
  bool in_line;          /* SSE: "data: " of the present line was sent */
  struct packer *packer; /* NULL: the text is not compressed */
  char *plain;           /* heap, BLOCK bytes: the text that the packer takes */
  struct packer_input left;
  bool is_dirty;                          /* the packer holds text that was not flushed */
  bool text_at_end, packed_at_end, is_ok; /* what was read and written last; is_ok: nothing was cut off */
};

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Adds the frames for this reader that are due now. */
static void add_own(struct stream *st) {
  int position = st->at ? 0 : work_take_position(st->work, st->waiter);
  if (work_is_called_off(st->work, st->waiter)) {
    work_put_farewell(st->work, st->at, DG_SUPERSEDED, "A newer compile of the same editor has replaced this one.",
                      &st->own);
    st->is_ending = true;
  } else if (work_look(st->work, NULL, NULL) == WORK_REFUSED) {
    work_put_farewell(st->work, st->at, DG_BUSY, "No worker was free in time. Try again in a moment.", &st->own);
    st->is_ending = true;
  } else if (position) {
    buf_printf(&st->own, "{\"frame\":\"queued\",\"position\":%d}\n", position);
  }
}

static void drop_have(struct stream *st) {
  work_unref(st->have);
  st->have = NULL;
}

/* Replaces the frame in own by its delta, if it has one. */
static void shorten(struct stream *st) {
  struct delta d;
  struct buf base, out;
  buf_init(&base, FRAME_MAX);
  buf_init(&out, DELTA_FRAME_MAX);
  if (delta_read(&d, st->own.data, st->own.len - 1) && work_stage(st->have, &d.which, &base) &&
      delta_put(&d, base.data, base.len, &out)) {
    buf_putc(&out, '\n');
    struct buf frame = st->own;
    st->own = out;
    out = frame;
  }
  buf_clear(&out);
  buf_clear(&base);
}

/* Adds the next frame of the work to own, as a delta if possible. */
static void add_frame(struct stream *st, bool *at_end) {
  if (!work_read_frame(st->work, &st->at, DELTA_FRAME_MAX, &st->own, at_end))
    drop_have(st);
  else if (st->own.len)
    shorten(st);
}

/* Copies lines of frames, as many bytes as there are and fit. */
static size_t read_lines(struct stream *st, char *to, size_t max, bool *at_end) {
  bool work_at_end = false;
  if (!st->is_ending && st->own_at == st->own.len) {
    buf_clear(&st->own);
    st->own_at = 0;
    add_own(st);
    if (st->have && !st->own.len && !st->is_ending)
      add_frame(st, &work_at_end);
  }
  assert(st->own_at <= st->own.len);
  size_t n = st->own.len - st->own_at;
  if (!n && !st->is_ending && !st->have) {
    n = work_read(st->work, st->at, to, max, at_end);
    st->at += n;
    return n;
  }
  n = n < max ? n : max;
  if (n)
    memcpy(to, st->own.data + st->own_at, n);
  st->own_at += n;
  *at_end = (st->is_ending || work_at_end) && st->own_at == st->own.len;
  return n;
}

/* The same as events. */
static size_t read_sse(struct stream *st, char *to, size_t max, bool *at_end) {
  static const char before[] = "data: ";
  char raw[8 << 10];
  size_t room = sizeof before + 2, n = 0, out = 0;

  if (max < 2 * room)
    return 0;
  /* a line takes at most `room` bytes more than it has; reading few bytes at a time keeps the bound simple */
  size_t want = (max - room) / (room + 1);
  n = read_lines(st, raw, want < sizeof raw ? want : sizeof raw, at_end);
  for (size_t i = 0; i < n; i++) {
    if (!st->in_line) {
      memcpy(to + out, before, sizeof before - 1);
      out += sizeof before - 1;
      st->in_line = true;
    }
    to[out++] = raw[i];
    if (raw[i] == '\n') {
      to[out++] = '\n';
      st->in_line = false;
    }
  }
  assert(out <= max);
  return out;
}

static size_t read_text(struct stream *st, char *to, size_t max, bool *at_end) {
  return (st->is_sse ? read_sse : read_lines)(st, to, max, at_end);
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* Packs text until `to` is full or there is no more for now, and then flushes. */
static size_t read_packed(struct stream *st, char *to, size_t max, bool *at_end) {
  size_t out = 0;
  while (out < max && !st->packed_at_end) {
    if (!st->left.len && !st->text_at_end)
      st->left = (struct packer_input){st->plain, read_text(st, st->plain, BLOCK, &st->text_at_end)};
    const bool is_idle = !st->left.len && !st->text_at_end;
    if (is_idle && !st->is_dirty)
      break;
    const enum packer_step step = st->text_at_end ? PACKER_END : is_idle ? PACKER_FLUSH : PACKER_MORE;
    bool done;
    out += packer_run(st->packer, &st->left, step, to + out, max - out, &done, &st->is_ok);
    st->is_dirty = step == PACKER_MORE || !done;
    st->packed_at_end = done && (step == PACKER_END || !st->is_ok);
  }
  *at_end = st->packed_at_end;
  return out;
}

/* ---- the response ------------------------------------------------------------------------------------------------ */

static ssize_t read_stream(void *user, uint64_t pos, char *to, size_t max) {
  struct stream *st = user;
  bool at_end = false;
  (void)pos;

  size_t n = (st->packer ? read_packed : read_text)(st, to, max, &at_end);
  if (n)
    return (ssize_t)n;
  if (at_end)
    return st->is_ok ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
  work_wait_at(st->work, st->waiter, st->at, http_park, http_resume, st->connection);
  return 0; /* called again, at once or after the resume */
}

static void free_stream(void *user) {
  struct stream *st = user;
  work_unref(st->work);
  work_unref(st->have);
  buf_clear(&st->own);
  packer_free(st->packer);
  free(st->plain);
  free(st);
}

static bool begin_packing(struct stream *st, enum packing packing) {
  st->plain = malloc(BLOCK);
  st->packer = packer_new(packing);
  return st->plain && st->packer;
}

/* Returns the result of the run that the request says it has, if memory still holds it; NULL if not. */
static struct work *find_have(struct request *rq) {
  const char *named = http_header(rq, STREAM_HAVE_HEADER);
  char key[JOB_KEY_SIZE], run[WORK_RUN_SIZE];
  if (!named || strspn(named, "0123456789abcdef") != JOB_KEY_SIZE - 1)
    return NULL;
  memcpy(key, named, JOB_KEY_SIZE - 1);
  key[JOB_KEY_SIZE - 1] = 0;
  struct work *w = results_peek(services_of(rq)->results, key);
  if (w)
    work_run(w, run);
  if (!w || !strcmp(run, named))
    return w;
  work_unref(w);
  return NULL;
}

enum MHD_Result stream_send(struct request *rq, bool is_sse) {
  const enum packing packing = packing_for(rq);
  struct api_part *part = api_part(rq);
  struct stream *st = calloc(1, sizeof *st);
  if (!st)
    return MHD_NO;
  *st = (struct stream){.work = work_ref(part->work),
                        .have = find_have(rq),
                        .waiter = &part->waiter,
                        .connection = rq->connection,
                        .is_sse = is_sse,
                        .is_ok = true};
  buf_init(&st->own, OWN_MAX);
  struct MHD_Response *r = NULL;
  if (!packing || begin_packing(st, packing))
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, st, free_stream);
  if (!r) {
    free_stream(st);
    return MHD_NO;
  }
  packing_add_headers(packing, r);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, is_sse ? "text/event-stream" : "application/x-ndjson");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (part->is_found || work_was_loaded(part->work)) /* the result was there already */
    MHD_add_response_header(r, "X-Nkx-Cached", "1");
  MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* asks a proxy to pass each frame on as it comes */
  if (rq->extra_ms < services_of(rq)->work_ms)           /* a stream ends with its job */
    rq->extra_ms = services_of(rq)->work_ms;
  return http_send(rq, MHD_HTTP_OK, r);
}
