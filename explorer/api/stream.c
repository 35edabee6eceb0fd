/* The library asks for bytes; when there are none, the connection is suspended until the work has some.
 *
 * A stream has the frames of the work, and frames for its own reader: its place in the queue, and why the stream ends
 * before the work does.
 *
 * A client that takes zstd gets the frames as they are kept, each packed on its own, and its own frames packed in the same
 * way: what has been sent can be unpacked up to the last frame.  For gzip the text is packed here and flushed whenever the
 * work has no more for the moment.
 */
#include "api/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "api/part.h"
#include "api/services.h"
#include "driver/frames.h"

enum {
  BLOCK = 48 << 10,
  OWN_MAX = FRAME_MAX + (64 << 10), /* the rest of a frame, and our own ones */
  PACKED_MAX = 256 << 10,           /* packed frames taken at once, or one frame */
  GZIP_LEVEL = 4,                   /* higher levels take twice the time and gain a tenth */
  GZIP_WINDOW = 15 + 16,            /* asks zlib for gzip's header */
};

enum encoding { ENCODING_NONE, ENCODING_GZIP, ENCODING_ZSTD };

/* Server-sent events wrap each frame: "data: " before it, and a blank line after. */
struct stream {
  struct work *work;          /* a reference */
  struct work_waiter *waiter; /* the request's */
  struct MHD_Connection *connection;
  enum encoding encoding;
  bool is_sse;
  size_t at;      /* bytes of the work's frames that were sent, unpacked */
  struct buf own; /* frames for this reader only, or packed ones of the work; sent up to own_at */
  size_t own_at;
  bool is_ending; /* nothing comes after own */
  bool in_line;   /* SSE: "data: " of the present line was sent */
  z_stream gzip;
  bool has_gzip, gzip_is_dirty, gzip_is_done; /* dirty: it holds text that was not flushed */
  char *plain;                                /* what gzip has not taken yet; heap, BLOCK bytes */
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

/* Packs what is in own as one frame; without memory the stream ends there. */
static void pack_own(struct stream *st) {
  struct buf packed;
  const size_t bound = ZSTD_compressBound(st->own.len);
  buf_init(&packed, OWN_MAX);
  const bool ok = !buf_reserve(&packed, bound);
  const size_t n = ok ? ZSTD_compress(packed.data, bound, st->own.data, st->own.len, 1) : 0;
  packed.len = ok && !ZSTD_isError(n) ? n : 0;
  st->is_ending |= !packed.len;
  buf_clear(&st->own);
  st->own = packed;
}

/* Fills own, which was sent, with what is due; false if the stream is at its end. */
static bool refill(struct stream *st, bool *at_end) {
  buf_clear(&st->own);
  st->own_at = 0;
  add_own(st);
  if (st->encoding != ENCODING_ZSTD)
    return true;
  if (st->own.len)
    pack_own(st);
  else if (!st->is_ending && !work_read_packed(st->work, &st->at, PACKED_MAX, &st->own, at_end))
    st->is_ending = true;
  return !st->is_ending || st->own.len;
}

/* Copies lines of frames, packed with zstd if that is the encoding, as many bytes as there are and fit. */
static size_t read_lines(struct stream *st, char *to, size_t max, bool *at_end) {
  bool work_at_end = false;
  *at_end = false;
  if (!st->is_ending && st->own_at == st->own.len && !refill(st, &work_at_end)) {
    *at_end = true;
    return 0;
  }
  assert(st->own_at <= st->own.len);
  size_t n = st->own.len - st->own_at;
  if (!n && !st->is_ending && st->encoding != ENCODING_ZSTD) {
    n = work_read(st->work, st->at, to, max, at_end);
    st->at += n;
    return n;
  }
  n = n < max ? n : max;
  if (n)
    memcpy(to, st->own.data + st->own_at, n);
  st->own_at += n;
  *at_end = (st->is_ending || (work_at_end && !st->own.len)) && st->own_at == st->own.len;
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

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

/* One call of deflate, which fills `to`; *done: it wants no more room for what it has. */
static size_t deflate_into(struct stream *st, char *to, size_t max, int flush, bool *done) {
  st->gzip.next_out = (Bytef *)to;
  st->gzip.avail_out = (uInt)max;
  const int rc = deflate(&st->gzip, flush);
  assert(rc != Z_STREAM_ERROR);
  *done = st->gzip.avail_out > 0;
  st->gzip_is_done = rc == Z_STREAM_END;
  return max - st->gzip.avail_out;
}

/* Packs text until `to` is full or there is no more for now, and then flushes. */
static size_t read_gzip(struct stream *st, char *to, size_t max, bool *at_end) {
  size_t out = 0;
  bool done = true;
  *at_end = st->gzip_is_done;
  while (out < max && !st->gzip_is_done) {
    bool text_at_end = false;
    if (!st->gzip.avail_in) {
      const size_t n = read_text(st, st->plain, BLOCK, &text_at_end);
      st->gzip.next_in = (Bytef *)st->plain;
      st->gzip.avail_in = (uInt)n;
      if (!n && !text_at_end && !st->gzip_is_dirty)
        break;
    }
    const bool is_idle = !st->gzip.avail_in;
    const int flush = !is_idle ? Z_NO_FLUSH : text_at_end ? Z_FINISH : Z_SYNC_FLUSH;
    st->gzip_is_dirty |= !is_idle;
    out += deflate_into(st, to + out, max - out, flush, &done);
    if (flush == Z_SYNC_FLUSH && done) {
      st->gzip_is_dirty = false;
      break;
    }
  }
  return out;
}

/* ---- the response ------------------------------------------------------------------------------------------------ */

static ssize_t read_stream(void *user, uint64_t pos, char *to, size_t max) {
  struct stream *st = user;
  bool at_end = false;
  (void)pos;

  size_t n = (st->encoding == ENCODING_GZIP ? read_gzip : read_text)(st, to, max, &at_end);
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
  if (st->has_gzip)
    deflateEnd(&st->gzip);
  free(st->plain);
  free(st);
}

/* Events are not packed frame by frame, since they are not the frames as they are kept. */
static enum encoding choose(const struct request *rq, bool is_sse) {
  if (!is_sse && http_accepts_encoding(rq, "zstd"))
    return ENCODING_ZSTD;
  return http_accepts_encoding(rq, "gzip") ? ENCODING_GZIP : ENCODING_NONE;
}

static bool begin_gzip(struct stream *st) {
  st->plain = malloc(BLOCK);
  st->has_gzip =
      st->plain && deflateInit2(&st->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  return st->has_gzip;
}

enum MHD_Result stream_send(struct request *rq, bool is_sse) {
  static const char *const names[] = {[ENCODING_GZIP] = "gzip", [ENCODING_ZSTD] = "zstd"};
  struct api_part *part = api_part(rq);
  struct stream *st = calloc(1, sizeof *st);
  if (!st)
    return MHD_NO;
  *st = (struct stream){.work = work_ref(part->work),
                        .waiter = &part->waiter,
                        .connection = rq->connection,
                        .encoding = choose(rq, is_sse),
                        .is_sse = is_sse};
  buf_init(&st->own, OWN_MAX);
  struct MHD_Response *r = NULL;
  if (st->encoding != ENCODING_GZIP || begin_gzip(st))
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, st, free_stream);
  if (!r) {
    free_stream(st);
    return MHD_NO;
  }
  if (st->encoding)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, names[st->encoding]);
  MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, is_sse ? "text/event-stream" : "application/x-ndjson");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* asks a proxy to pass each frame on as it comes */
  rq->extra_ms = services_of(rq)->work_ms;               /* a stream ends with its job */
  return http_send(rq, MHD_HTTP_OK, r);
}
