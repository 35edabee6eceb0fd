#include "work/transcript.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "driver/pipeline.h"
#include "work/work.h"

enum { OWN_FRAME_MAX = 4 << 10, OWN_FRAMES_ROOM = 3 * OWN_FRAME_MAX, RESULT_ROOM = 64 << 10 };

const size_t transcript_result_max = WORK_BYTES_MAX + OWN_FRAMES_ROOM + RESULT_ROOM;

void transcript_init(struct transcript *t) {
  *t = (struct transcript){0};
  buf_init(&t->lines, WORK_BYTES_MAX + OWN_FRAMES_ROOM);
}

void transcript_clear(struct transcript *t) {
  gather_clear(&t->gather);
  buf_clear(&t->lines);
}

/* ---- our own frames ---------------------------------------------------------------------------------------------- */

static void put_start(const struct transcript *t, struct buf *b) {
  buf_printf(b,
             "{\"frame\":\"start\",\"version\":1,\"key\":\"%s\",\"language\":\"%s\",\"target\":\"%s\","
             "\"pipeline\":\"%s\"}",
             t->key, language_name(t->language), target_name(t->target), pipeline_version());
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

/* Keeps a frame that was scanned.  Room comes first, so that whatever the gather notes is in the text. */
static enum status keep(struct transcript *t, const struct frame *f, const char *json, size_t len, struct error *err) {
  const size_t at = t->lines.len;
  enum status st = buf_reserve(&t->lines, len + 1);
  if (st) { /* the text is gone with the buffer, so nothing may point into it */
    gather_clear(&t->gather);
    return fail(err, st, "frames");
  }
  st = gather_add(&t->gather, f, at, len, err);
  if (st)
    return st;
  buf_append(&t->lines, json, len);
  buf_putc(&t->lines, '\n');
  assert(t->lines.len == at + len + 1);
  if (f->kind == FRAME_DIAGNOSTIC)
    t->hit_limit |= tells_limit(f);
  return ST_OK;
}

/* The first frame comes before any user code runs, and must be about this job. */
static bool is_about(const struct transcript *t, const struct frame *f) {
  return frame_has_string(f, "key", t->key, strlen(t->key));
}

/* Keeps a frame, by any author.  What a child says about the job is known here already, so its start is replaced. */
static enum status add(struct transcript *t, const char *json, size_t len, struct error *err) {
  struct frame f;
  struct buf own;
  enum status st = frame_scan(json, len, &f, err);
  if (st)
    return st;
  if (f.kind != FRAME_START)
    return keep(t, &f, json, len, err);
  if (!is_about(t, &f))
    return fail(err, ST_INPUT, "the start of another job");
  buf_init(&own, OWN_FRAME_MAX);
  put_start(t, &own);
  st = buf_status(&own) ? fail(err, buf_status(&own), "frames") : keep(t, &f, buf_text(&own), own.len, err);
  buf_clear(&own);
  return st;
}

enum status transcript_add(struct transcript *t, const char *json, size_t len, struct error *err) {
  if (t->lines.len + len + 1 > WORK_BYTES_MAX)
    return fail(err, ST_LIMIT, "more than %d bytes of frames", WORK_BYTES_MAX);
  return add(t, json, len, err);
}

static enum status add_all(struct transcript *t, const char *frames, size_t len, struct error *err) {
  struct frame f;
  enum status st = ST_OK;
  if (len > WORK_BYTES_MAX + OWN_FRAMES_ROOM)
    return fail(err, ST_LIMIT, "more than %d bytes of frames", WORK_BYTES_MAX);
  for (const char *p = frames, *end = frames + len; !st && p < end;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
    st = frame_scan(p, n, &f, err);
    if (!st)
      st = keep(t, &f, p, n, err);
    p += n + 1;
  }
  return st || t->gather.is_ended ? st : fail(err, ST_INPUT, "frames without an end");
}

enum status transcript_load(struct transcript *t, const char *frames, size_t len, struct error *err) {
  assert(!t->lines.len && !t->gather.is_started);
  enum status st = add_all(t, frames, len, err);
  if (st)
    transcript_clear(t);
  return st;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Adds one of our own frames, which always fit (OWN_FRAMES_ROOM), and empties b.  Without memory the transcript ends
 * where it is. */
static void add_own(struct transcript *t, struct buf *b) {
  struct error err;
  if (buf_status(b) || add(t, buf_text(b), b->len, &err))
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

void transcript_put_farewell(const struct transcript *t, size_t at, const struct own_error *e, int64_t time_us,
                             struct buf *out) {
  const char *text = buf_text(&t->lines);
  if (!at) {
    put_start(t, out);
    buf_putc(out, '\n');
  } else if (at < t->lines.len && text[at - 1] != '\n') { /* beyond the end: memory ran out, and the text is gone */
    const char *newline = strchr(text + at, '\n');
    assert(newline); /* every frame that is kept ends with one */
    buf_append(out, text + at, (size_t)(newline + 1 - (text + at)));
  }
  put_error(e, out);
  buf_putc(out, '\n');
  put_end(time_us, out);
  buf_putc(out, '\n');
}

void transcript_put_result(const struct transcript *t, struct buf *out) {
  buf_reserve(out, t->lines.len + RESULT_ROOM); /* the result is hardly longer than its frames */
  gather_result(&t->gather, buf_text(&t->lines), out);
}
