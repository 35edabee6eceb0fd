/* The library asks for bytes; when there are none, the connection is suspended until the work has some.
 *
 * A stream has the frames of the work, and frames for its own reader: its place in the queue, and why the stream ends
 * before the work does.
 */
#include "api/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/part.h"
#include "api/services.h"

enum { BLOCK = 48 << 10, OWN_MAX = 2 << 20 };

/* Server-sent events wrap each frame: "data: " before it, and a blank line after. */
struct stream {
  struct work *work;          /* a reference */
  struct work_waiter *waiter; /* the request's */
  struct MHD_Connection *connection;
  bool is_sse;
  size_t at;      /* bytes of the work's frames that were sent */
  struct buf own; /* frames for this reader only; sent up to own_at */
  size_t own_at;
  bool is_ending; /* nothing comes after own */
  bool in_line;   /* SSE: "data: " of the present line was sent */
};

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

/* Copies lines of frames, as many bytes as there are and fit. */
static size_t read_lines(struct stream *st, char *to, size_t max, bool *at_end) {
  if (!st->is_ending && st->own_at == st->own.len) {
    buf_clear(&st->own);
    st->own_at = 0;
    add_own(st);
  }
  assert(st->own_at <= st->own.len);
  size_t n = st->own.len - st->own_at;
  *at_end = false;
  if (!n && !st->is_ending) {
    n = work_read(st->work, st->at, to, max, at_end);
    st->at += n;
    return n;
  }
  n = n < max ? n : max;
  memcpy(to, buf_text(&st->own) + st->own_at, n);
  st->own_at += n;
  *at_end = st->is_ending && st->own_at == st->own.len;
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

static ssize_t read_stream(void *user, uint64_t pos, char *to, size_t max) {
  struct stream *st = user;
  bool at_end = false;
  (void)pos;

  size_t n = (st->is_sse ? read_sse : read_lines)(st, to, max, &at_end);
  if (n)
    return (ssize_t)n;
  if (at_end)
    return MHD_CONTENT_READER_END_OF_STREAM;
  work_wait_at(st->work, st->waiter, st->at, http_park, http_resume, st->connection);
  return 0; /* called again, at once or after the resume */
}

static void free_stream(void *user) {
  struct stream *st = user;
  work_unref(st->work);
  buf_clear(&st->own);
  free(st);
}

enum MHD_Result stream_send(struct request *rq, bool is_sse) {
  struct api_part *part = api_part(rq);
  struct stream *st = calloc(1, sizeof *st);
  if (!st)
    return MHD_NO;
  *st = (struct stream){
      .work = work_ref(part->work), .waiter = &part->waiter, .connection = rq->connection, .is_sse = is_sse};
  buf_init(&st->own, OWN_MAX);
  struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, st, free_stream);
  if (!r) {
    free_stream(st);
    return MHD_NO;
  }
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, is_sse ? "text/event-stream" : "application/x-ndjson");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* asks a proxy to pass each frame on as it comes */
  rq->extra_ms = services_of(rq)->work_ms;               /* a stream ends with its job */
  return http_send(rq, MHD_HTTP_OK, r);
}
