/* POST /api/v1/compile: a kernel in, its stages out, whole or as they come.
 *
 * The connection is suspended while there is nothing to send; the work resumes it.  A stream's status line goes out
 * with the first frame, so that a work which is refused at once is still a proper 503.  A stream also has frames that are
 * not the work's but its reader's own: its place in the queue, and why it ends before the work.
 */
#include "api/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/hmac.h>

#include "base/arena.h"
#include "job/results.h"
#include "pool/pool.h"

enum { JSON_NEST_MAX = 64, BLOCK = 48 << 10, OWN_MAX = 2 << 20 };
/* What a job takes in its arena: its texts, once and a little, and its lists. */
enum { ROOM = 64 << 10, ROOM_PER_BYTE = 3 };

#define EDITOR_HEADER "X-Nkx-Editor"

/* Deepest nesting of brackets outside strings; counted before any parser recurses. */
static int nesting(const char *s, size_t n) {
  int depth = 0, most = 0;
  bool in_string = false;
  for (size_t i = 0; i < n; i++) {
    if (in_string) {
      if (s[i] == '\\')
        i++;
      else if (s[i] == '"')
        in_string = false;
    } else if (s[i] == '"') {
      in_string = true;
    } else if (s[i] == '{' || s[i] == '[') {
      most = ++depth > most ? depth : most;
    } else if (s[i] == '}' || s[i] == ']') {
      depth--;
    }
  }
  return most;
}

static bool wants(struct request *rq, const char *type) {
  const char *h = MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
  return h && strcasestr(h, type);
}

/* ---- the stream ---------------------------------------------------------------------------------------------------
 */

/* Server-sent events wrap each frame: "data: " before, a blank line after. */
struct stream {
  struct work *work;
  struct work_waiter *waiter; /* the request's */
  struct MHD_Connection *connection;
  bool is_sse;
  size_t at;      /* bytes of the work's frames already sent */
  struct buf own; /* frames that are only this reader's, and how much of them is sent */
  size_t own_at;
  bool is_ending; /* nothing comes after own */
  bool in_line;   /* SSE: "data: " of the present line is out */
};

/* Frames of our own that are due now. */
static void add_own(struct stream *st) {
  int position = st->at ? 0 : work_take_position(st->work, st->waiter);
  if (work_is_called_off(st->work, st->waiter)) {
    work_put_farewell(st->work, st->at, DG_SUPERSEDED, "A newer compile of the same editor took this one's place.",
                      &st->own);
    st->is_ending = true;
  } else if (work_look(st->work, NULL, NULL) == WORK_REFUSED) {
    work_put_farewell(st->work, st->at, DG_BUSY, "No worker took the job in time. Try again in a moment.", &st->own);
    st->is_ending = true;
  } else if (position) {
    buf_printf(&st->own, "{\"frame\":\"queued\",\"position\":%d}\n", position);
  }
}

/* Lines of frames, as many bytes of them as there are and fit. */
static size_t read_lines(struct stream *st, char *to, size_t max, bool *at_end) {
  if (!st->is_ending && st->own_at == st->own.len) {
    buf_clear(&st->own);
    st->own_at = 0;
    add_own(st);
  }
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
  /* a line costs at most `room` bytes more than it has; taking few bytes at a time keeps the sum simple */
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
  return 0; /* called again, once resumed */
}

static void free_stream(void *user) {
  struct stream *st = user;
  work_unref(st->work);
  buf_clear(&st->own);
  free(st);
}

static enum MHD_Result send_stream(struct request *rq) {
  struct stream *st = calloc(1, sizeof *st);
  if (!st)
    return MHD_NO;
  *st = (struct stream){
      .work = work_ref(rq->work), .waiter = &rq->waiter, .connection = rq->connection, .is_sse = rq->is_sse};
  buf_init(&st->own, OWN_MAX);
  struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, st, free_stream);
  if (!r) {
    free_stream(st);
    return MHD_NO;
  }
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, rq->is_sse ? "text/event-stream" : "application/x-ndjson");
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* a proxy must not gather what we send as it comes */
  return http_send(rq, MHD_HTTP_OK, r);
}

/* ---- the request --------------------------------------------------------------------------------------------------
 */

/* Hex of the store's secret with the client's address: what it compiles without a scope of its own is its own all the
 * same. */
static const char *own_scope(struct request *rq, struct arena *a) {
  char address[48], *text = arena_alloc(a, JOB_SCOPE_MAX + 1);
  unsigned char digest[32];
  unsigned int n;
  http_client_address(rq, address);
  HMAC(EVP_sha256(), store_secret(rq->app->store), STORE_SECRET_SIZE, (const unsigned char *)address, strlen(address),
       digest, &n);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return text;
}

static enum results_mode mode_of(struct request *rq) {
  const char *h = http_header(rq, MHD_HTTP_HEADER_CACHE_CONTROL);
  if (!h)
    return RESULTS_CACHED;
  return strcasestr(h, "no-store") ? RESULTS_APART : strcasestr(h, "no-cache") ? RESULTS_FRESH : RESULTS_CACHED;
}

enum status compile_arena(struct arena *a, size_t text_len, struct error *err) {
  arena_init(a);
  return arena_reserve(a, ROOM + ROOM_PER_BYTE * text_len) ? ST_OK : fail(err, ST_NOMEM, "request");
}

enum status compile_check_nesting(const struct buf *b, struct error *err) {
  if (nesting(buf_text(b), b->len) > JSON_NEST_MAX)
    return fail(err, ST_INPUT, "The JSON is nested more than %d levels deep.", JSON_NEST_MAX);
  return ST_OK;
}

enum status compile_start(struct request *rq, struct arena *a, struct job *job, struct error *err) {
  return compile_start_as(rq, a, job, mode_of(rq), err);
}

enum status compile_start_as(struct request *rq, struct arena *a, struct job *job, enum results_mode mode,
                             struct error *err) {
  char address[ADDRESS_TEXT_SIZE];
  if (!job->scope)
    job->scope = own_scope(rq, a);
  http_client_address(rq, address);
  struct results_ask ask = {.job = job,
                            .mode = mode,
                            .client_fd = http_client_fd(rq),
                            .payer = quota_client(rq->app->quota, address),
                            .waiter = &rq->waiter};
  enum status st = results_compile(rq->app->results, &ask, &rq->work, err);
  client_let_go(ask.payer);
  rq->quota = ask.verdict;
  rq->retry_s = ask.retry_s;
  return st;
}

/* The same for a request that names its editor.  It enters first: calling off the editor's compile makes room for it. */
static enum status start_for_editor(struct request *rq, struct arena *a, struct job *job, const char *name,
                                    struct error *err) {
  struct editor_place *place = &rq->editor;
  char address[ADDRESS_TEXT_SIZE];
  if (!editor_is_name(name))
    return fail(err, ST_INPUT, EDITOR_HEADER ": expected %d to %d letters, digits, \"-\" or \"_\"", EDITOR_NAME_MIN,
                EDITOR_NAME_MAX);
  if (!job->scope)
    job->scope = own_scope(rq, a);
  if (mode_of(rq) == RESULTS_CACHED) {
    size_t len;
    char *text = job_dump(job, &len);
    if (!text)
      return fail(err, ST_NOMEM, "request");
    job_key(text, len, place->job);
    free(text);
  }
  http_client_address(rq, address);
  snprintf(place->key, sizeof place->key, "%s %s", address, name);
  editors_enter(rq->app->editors, place);
  enum status st = compile_start(rq, a, job, err);
  if (!st)
    editors_set_work(rq->app->editors, place, rq->work, &rq->waiter, http_client_fd(rq));
  return st;
}

static enum status start(struct request *rq, struct error *err) {
  struct arena a;
  struct job job;

  enum status st = compile_check_nesting(&rq->body, err);
  if (!st)
    st = compile_arena(&a, rq->body.len, err);
  if (st)
    return st;
  st = job_parse(&a, buf_text(&rq->body), rq->body.len, &job, err);
  const char *editor = http_header(rq, EDITOR_HEADER);
  if (!st)
    st = editor ? start_for_editor(rq, &a, &job, editor, err) : compile_start(rq, &a, &job, err);
  arena_clear(&a);
  buf_clear(&rq->body);
  return st;
}

enum MHD_Result compile_refused(struct request *rq) {
  struct pool_health h;
  pool_look(rq->app->pool, &h);
  return http_problem(rq, h.is_ready ? PB_BUSY : h.has_no_jail ? PB_UNAVAILABLE : PB_STARTING, NULL, NULL);
}

enum MHD_Result api_compile(struct request *rq) {
  struct error err;

  if (!rq->work) {
    rq->is_sse = wants(rq, "text/event-stream");
    rq->is_streaming = rq->is_sse || wants(rq, "application/x-ndjson");
    enum status st = start(rq, &err);
    if (st)
      return http_status_problem(rq, st, &err);
  }
  if (!work_wait(rq->work, &rq->waiter, !rq->is_streaming, http_park, http_resume, rq->connection))
    return MHD_YES; /* we are called again */
  bool is_called_off = work_is_called_off(rq->work, &rq->waiter);
  if (is_called_off && !rq->is_streaming)
    return http_problem(rq, PB_SUPERSEDED, NULL, NULL);
  if (!is_called_off && work_look(rq->work, NULL, NULL) == WORK_REFUSED)
    return compile_refused(rq);
  if (rq->is_streaming)
    return send_stream(rq);
  size_t len;
  char *json = work_result(rq->work, &len);
  return http_json_take(rq, MHD_HTTP_OK, json, len);
}
