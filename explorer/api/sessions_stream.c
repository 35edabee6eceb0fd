/* GET /api/v1/session/events/ID: a session's events, as long as its reader takes them.
 *
 * A reader that takes nothing for --answer-timeout-ms is cut off; it comes again, and names the last event that it has.
 */
#include <stdlib.h>

#include "api/sessions.h"
#include "api/sessions_internal.h"
#include "session/reader.h"

enum {
  BLOCK = 16 << 10,
  STALL_MIN_MS = READER_BEAT_MS + 1000, /* a stream without events sends nothing between two signs of life */
};

struct stream {
  struct reader reader;
  struct room *room;
  struct hub *hub;
  struct request *rq; /* it ends after the stream */
  struct MHD_Connection *connection;
};

static ssize_t read_stream(void *user, uint64_t pos, char *to, size_t max) {
  struct stream *st = user;
  bool at_end;
  (void)pos;
  const int ms = st->rq->cfg->http.answer_timeout_ms;
  http_allow(st->rq, ms > STALL_MIN_MS ? ms : STALL_MIN_MS);
  const size_t n = reader_read(&st->reader, to, max, &at_end, http_park, http_resume, st->connection);
  return n ? (ssize_t)n : at_end ? MHD_CONTENT_READER_END_OF_STREAM : 0;
}

static void free_stream(void *user) {
  struct stream *st = user;
  reader_close(&st->reader);
  hub_leave(st->hub, st->room);
  free(st);
}

/* The last event that the reader has; -1: none. */
static int64_t last_of(const struct request *rq) {
  const char *text = http_header(rq, "Last-Event-ID");
  char *end = NULL;
  const long long n = text ? strtoll(text, &end, 10) : -1;
  return text && end != text && !*end && n >= 0 ? n : -1;
}

static enum MHD_Result open_stream(struct request *rq) {
  struct session_state *s = rq->state;
  struct stream *st = calloc(1, sizeof *st);
  if (!st)
    return MHD_NO;
  st->hub = s->hub;
  st->room = s->room; /* the stream holds it from now on */
  s->room = NULL;
  st->rq = rq;
  st->connection = rq->connection;
  reader_open(&st->reader, st->room, s->person, last_of(rq));
  if (hub_is_ending(st->hub))
    room_end_watchers(st->room);
  struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, st, free_stream);
  if (!r) {
    free_stream(st);
    return MHD_NO;
  }
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* asks a proxy to pass each event on as it comes */
  rq->is_stream = true;
  return http_send(rq, MHD_HTTP_OK, r);
}

enum MHD_Result api_session_events(struct request *rq) {
  enum MHD_Result answer;
  if (!session_begin(rq, SESSION_PERSON_NEEDED, &answer))
    return answer;
  struct session_state *s = rq->state;
  if (rq->method[0] == 'H') /* HEAD */
    return http_json(rq, MHD_HTTP_OK, "", 0, true);
  if (s->step == STEP_READY) {
    const enum room_refusal refusal = room_may_enter(s->room, s->person);
    if (refusal == ROOM_CROWDED)
      return session_refuse(rq, refusal);
    return session_make(rq, SESSION_TOUCH); /* the session lives on */
  }
  if (s->write.w.verdict != SESSION_HAS_ENDED && session_failed(rq, &answer)) /* an ended one says what it became */
    return answer;
  return open_stream(rq);
}
